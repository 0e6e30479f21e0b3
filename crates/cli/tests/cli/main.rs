//! The `tacit` command as a user meets it: processes, files, exit codes and JSON.

mod audit;
mod before;
mod budgets;
mod circuit;
mod contracts;
mod files;
mod gate;
mod generate;
mod going_on;
mod governance;
mod init;
mod kills;
mod many;
mod market;
mod match_workers;
mod meeting;
mod read_once;
mod ring4;
mod scale;
mod served;
mod simulate;
mod state;
mod support;
mod version;
mod workers;

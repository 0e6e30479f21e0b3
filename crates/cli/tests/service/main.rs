//! `tacit service` as its people and its attackers meet it: a process, TLS, HTTP and the command line.

mod agreed;
mod api;
mod clocks;
mod crowd;
mod demo;
mod hostile;
mod house;
mod houses;
mod metrics;
mod pages;
mod rehearsal;
mod several;
mod sides;
mod threats;

//! `osprey run` as a user sees it: real processes, namespaces and groups, with a program that misbehaves on
//! purpose.

mod isolation;
mod kills;
mod modes;
mod pressure;
mod secrets;
mod support;
mod troubles;

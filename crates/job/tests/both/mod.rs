//! Both parties of a study, threads of one process.
#![allow(dead_code, reason = "each test file uses parts of its own")]

use base::Error;
use job::run::{Watch, run};
use report::RunReport;
use study::party::PartySetup;

pub fn both(parties: &[PartySetup; 2], watch: &Watch) -> [Result<RunReport, Error>; 2] {
    std::thread::scope(|scope| {
        let threads = parties.each_ref().map(|p| scope.spawn(move || run(p, watch)));
        threads.map(|t| t.join().unwrap())
    })
}

pub fn whole(done: [Result<RunReport, Error>; 2]) -> [RunReport; 2] {
    done.map(|done| done.unwrap_or_else(|e| panic!("{e}")))
}

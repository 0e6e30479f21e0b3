//! Telling people that something waits for them: by a program of the organisation's own.

use std::process::{Command, Stdio};
use study::StudyHash;

/// Calls the program of `policy.notify` with a word and the hash of the study, and nothing that a peer wrote.
/// That it cannot be started, or fails, stops nothing.
pub fn tell(notify: &[String], word: &'static str, study: &StudyHash) {
    let Some((program, first)) = notify.split_first() else { return };
    let mut command = Command::new(program);
    command.args(first).arg(word).arg(study.full());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    std::thread::spawn(move || command.spawn().and_then(|mut child| child.wait()));
}

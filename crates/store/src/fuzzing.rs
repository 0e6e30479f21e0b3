//! Decoders of what a store gives back, as functions of bytes for `crates/fuzzing`: headers and chunks of
//! sealed objects, objects of the log, footers of runs.

use crate::log::{LogBody, LogObject};
use crate::runs::RunFooter;
use crate::seal::{HEADER, RunKey, opened_len};
use crate::{ChunkSize, LogLead, LogRecord, StateKey};

/// Opens bytes as a sealed object under a key that is known; what opens is as long as its size says.
pub fn sealed(bytes: &[u8]) {
    let key = RunKey::new(&StateKey::known(), &[7; 32], "fuzz");
    let Ok(seal) = key.open("name", bytes.get(..HEADER).unwrap_or(bytes)) else { return };
    if let Some(len) = opened_len(bytes.len() as u64, seal.size) {
        let mut into = Vec::new();
        let opened = seal.open(0, &bytes[HEADER..], len, &mut into);
        assert!(opened.is_err() || into.len() as u64 == len, "{} bytes of {len}", into.len());
    }
}

/// Reads bytes as an object of the log, and writes them back.
pub fn log(bytes: &[u8]) {
    if let Some(object) = LogObject::from_bytes(bytes) {
        assert!(object.to_bytes() == bytes, "written back otherwise");
    }
}

/// Reads bytes as the end of a run: eight bytes that say how long its records are, and its footer.
pub fn footer(bytes: &[u8]) {
    let Some((body, footer)) = bytes.split_first_chunk() else { return };
    let _ = RunFooter::from_bytes(footer, u64::from_le_bytes(*body));
}

/// What the decoders take: a sealed object, objects of the log, and the end of a run.
#[must_use]
pub fn seeds() -> [Vec<Vec<u8>>; 3] {
    let key = RunKey::new(&StateKey::known(), &[7; 32], "fuzz");
    let (header, seal) = key.begin_as("name", ChunkSize::Small, &[3; 32]);
    let mut chunk = vec![5; 9];
    seal.seal(0, true, &mut chunk);
    let record = LogRecord { tag: 1, payload: vec![2; 3] };
    let lead = LogLead { epoch: 1, host: "host".into(), pid: 9, started: 8 };
    let bodies =
        [LogBody::Lead(lead), LogBody::Records(vec![record.clone()]), LogBody::Snapshot(vec![record])];
    let object = |body| LogObject { number: 1, epoch: 1, snapshot: 0, previous: [0; 32], body }.to_bytes();
    let numbers = [30u64, 0, 10, 30].map(u64::to_le_bytes).concat();
    let end = [&numbers[..], &crate::runs::trailer(3, 2, crate::RecordSize::Fixed(10))].concat();
    [vec![[&header[..], &chunk].concat()], bodies.map(object).into(), vec![end]]
}

//! What stubs say they touch is traced as if instructions had done it: children in the same sequence of
//! touches, by instructions, by stubs and by both in turns, leave the same trace. A child each, as a process
//! has one region.
#![expect(unsafe_code, reason = "single bytes read and written, so that no access is left out")]

mod common;

use osprey::trace::{Header, TraceBlock};
use osprey::{OspVec, PassMode, ProcessSettings, touch_read, touch_write};

const CHUNK: usize = 64 << 10;
const CHUNKS: usize = 40;

/// What children do: 4000 touches of up to three chunks, some at their edges, by a generator of Lehmer's.
#[test]
#[ignore = "the child process of the other test"]
fn child() {
    let how = common::case();
    let mut data = OspVec::<u8>::zeroed(CHUNKS * CHUNK);
    let mut state = 1u64;
    let mut below = |n: usize| {
        state = state * 48271 % 0x7fff_ffff;
        state as usize % n
    };
    for _ in 0..4000 {
        let (at, write, by_stub) = (below((CHUNKS - 2) * CHUNK), below(2) == 1, below(2) == 1);
        let len = [1, 4096, CHUNK, 2 * CHUNK][below(4)];
        let part = &mut data[at..at + len];
        match (how == "stubs" || how == "both" && by_stub, write) {
            (true, true) => touch_write(part),
            (true, false) => touch_read(part),
            (false, _) => {
                for byte in part.chunks_mut(1024).flat_map(|piece| piece.first_mut()) {
                    instruct(byte, write);
                }
                instruct(&mut part[len - 1], write);
            }
        }
        osprey::tick();
    }
}

fn instruct(byte: &mut u8, write: bool) {
    // SAFETY: a byte that is borrowed alone.
    unsafe {
        if write {
            std::ptr::from_mut(byte).write_volatile(1)
        } else {
            _ = std::ptr::from_mut(byte).read_volatile()
        }
    }
}

/// The trace that a child leaves. `None`: this machine cannot speculate.
fn trace(how: &str) -> Option<Vec<TraceBlock>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    let settings = ProcessSettings {
        mode: PassMode::Speculate,
        microset: 4,
        region: 1 << 30,
        trace: Some(path.clone()),
        ..ProcessSettings::default()
    };
    let output = common::child(how, &settings).output().expect("a child");
    if common::is_unavailable(&output) {
        return None;
    }
    assert!(output.status.success(), "{how}: {}", common::said(&output));
    let header = Header { chunk: CHUNK as u64, region: 1 << 30, microset: 4, key: 0 };
    Some(common::trace(&path, &header).0)
}

#[test]
fn stubs_leave_the_trace_of_instructions() {
    let Some(expected) = trace("instructions") else { return };
    assert!(expected.iter().flat_map(|block| &block.entries).any(|entry| !entry.written));
    assert!(expected.len() > 500);
    for how in ["stubs", "both"] {
        assert_eq!(trace(how).as_ref(), Some(&expected), "{how}");
    }
}

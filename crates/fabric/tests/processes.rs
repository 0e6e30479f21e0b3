//! Two processes over every plain transport: order, ends, deadlines, a peer that is killed.

mod common;

use base::{ChannelError, Error, Fault};
use common::{P0, P1, Party, start};
use net::Session;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
const FULL: usize = 8 << 20;
const TINY: usize = 4 << 10;

/// Where a shim for these tests is, if this machine can build one.
fn shim() -> Option<&'static PathBuf> {
    static SHIM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let flags = Command::new("pkg-config").args(["--cflags", "--libs", "libfabric"]).output().ok()?;
        let flags = String::from_utf8(flags.status.success().then_some(flags.stdout)?).ok()?;
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("shim-{}.so", std::process::id()));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/shim/tacit_fabric.c");
        let built = Command::new("cc")
            .args(["-std=c11", "-O2", "-Wall", "-Werror", "-fPIC", "-shared", source])
            .args(flags.split_whitespace())
            .arg("-o")
            .arg(&out)
            .status();
        assert!(built.is_ok_and(|status| status.success()), "libfabric is here: the shim must build");
        Some(out)
    };
    SHIM.get_or_init(build).as_ref()
}

/// Runs both parties of a task over a transport, where it can be had.
fn both(task: &str, transport: &str, window: usize) -> Option<[(bool, String); 2]> {
    let shim = if transport.starts_with("fabric") { shim() } else { None };
    if transport.starts_with("fabric") && shim.is_none() {
        println!("skipped: {task} over {transport}: no libfabric-dev, pkg-config or cc");
        return None;
    }
    let run =
        start(&["--exact", "one_party", "--ignored", "--nocapture"], task, transport, window, |_, c| {
            if let Some(shim) = shim {
                c.env("TACIT_FABRIC", shim);
            }
        });
    Some(run.outputs())
}

const TRANSPORTS: [&str; 3] = ["shm", "fabric-tcp", "fabric-shm"];

fn well(task: &str, window: usize) {
    for transport in TRANSPORTS {
        for (fine, text) in both(task, transport, window).iter().flatten() {
            assert!(fine, "{task} over {transport}: {text}");
        }
    }
}

/// Not a test: what the processes of the tests run.
#[test]
#[ignore = "started by the tests"]
fn one_party() {
    let party = common::party().expect("started by a test");
    match &party.task[..] {
        "talk" => talk(&party),
        "flood" => flood(&party),
        "killed" => killed(&party),
        "killed while we send" => killed_while_we_send(&party),
        "silence" => silence(&party),
        "owed" => owed(&party),
        "leave" => leave(&party),
        "upgrade" => {
            let error = party.upgraded(LONG).err().expect("one of us has no shim");
            println!("error: {error}");
        }
        other => panic!("no task {other}"),
    }
}

#[test]
fn messages_of_every_size_arrive_in_order() {
    well("talk", FULL);
    well("talk", TINY);
}

#[test]
fn both_sides_may_stream_at_once() {
    well("flood", FULL);
    well("flood", TINY);
}

/// Party 1 kills itself: party 0 checks what it sees.
#[test]
fn a_killed_peer_is_a_cut() {
    for task in ["killed", "killed while we send"] {
        for transport in TRANSPORTS {
            if let Some([(fine, text), (lived, _)]) = both(task, transport, FULL) {
                assert!(fine && !lived, "{task} over {transport}: {text}");
            }
        }
    }
}

/// What arrived is read, and the conversation ends well, after the peer has left in good order.
#[test]
fn a_peer_that_has_left_is_owed_nothing() {
    well("owed", FULL);
}

#[test]
fn silence_ends_at_the_deadline() {
    well("silence", FULL);
}

#[test]
fn a_goodbye_is_told_from_a_cut() {
    well("leave", FULL);
}

/// The party without a shim says what to do, and the other one who it was.
#[test]
fn a_missing_shim_stops_all_parties() {
    let Some(shim) = shim() else { return println!("skipped: no libfabric-dev, pkg-config or cc") };
    let arguments = ["--exact", "one_party", "--ignored", "--nocapture"];
    let run = start(&arguments, "upgrade", "fabric-tcp", FULL, |i, c| {
        c.env("TACIT_FABRIC", if i == 0 { shim.clone() } else { "/nowhere/libtacit_fabric.so".into() });
    });
    let [(_, has), (_, lacks)] = run.outputs();
    assert!(has.contains("p0 at upgrade: p1 has no endpoint; see its own output"), "{has}");
    assert!(lacks.contains("build it with `make fabric`"), "{lacks}");
}

#[test]
fn a_provider_that_is_not_there_is_named() {
    if let Some(outputs) = both("upgrade", "fabric-nonsense", FULL) {
        for (_, text) in outputs {
            assert!(text.contains("provider nonsense cannot be opened"), "{text}");
        }
    }
}

/// Bytes that differ everywhere, so that a lost, doubled or moved byte shows.
fn pattern(len: usize, key: u64) -> Vec<u8> {
    let mut state = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let mut bytes = vec![0; len.next_multiple_of(4)];
    for four in bytes.as_chunks_mut::<4>().0 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *four = ((state >> 32) as u32).to_le_bytes();
    }
    bytes.truncate(len);
    bytes
}

/// Lengths of a conversation, the same at both parties.
fn lengths() -> impl Iterator<Item = usize> {
    let edges = [0, 1, 15, 16, 17, 4095, 4096, 4097, 65_535, 65_536, 65_537, 300_001, 3 << 20];
    let mut state = 7u64;
    let random = std::iter::repeat_with(move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let bits = 1 + (state >> 60);
        (state >> 20) as usize % (2 << bits)
    });
    edges.into_iter().chain(random.take(400))
}

fn talk(party: &Party) {
    let mut session = party.upgraded(LONG).unwrap();
    let peer = party.me.other();
    assert!(!session.link(peer).is_private());
    for (i, len) in lengths().enumerate() {
        // They speak in turns, sometimes the same one twice.
        if (i % 5 < 3) == (party.me == P0) {
            session.link(peer).send(&pattern(len, i as u64)).unwrap();
            if i % 2 == 0 {
                session.link(peer).flush().unwrap();
            }
        } else {
            let mut got = vec![0; len];
            session.link(peer).recv(&mut got).unwrap();
            assert!(got == pattern(len, i as u64), "message {i} of {len} bytes");
        }
    }
    end(session);
}

fn flood(party: &Party) {
    let len = if party.window == FULL { 24 << 20 } else { 2 << 20 };
    let mut session = party.upgraded(LONG).unwrap();
    let peer = party.me.other();
    let mut theirs = vec![0; len];
    session.link(peer).exchange(&pattern(len, party.me.0.into()), &mut theirs).unwrap();
    assert!(theirs == pattern(len, peer.0.into()));
    end(session);
}

/// Party 1 reads after party 0 is gone: credits for what it reads go nowhere.
fn owed(party: &Party) {
    let mut session = party.upgraded(LONG).unwrap();
    let mut bytes = pattern(FULL / 2, 1);
    if party.me == P0 {
        session.link(P1).send(&bytes).unwrap();
        return session.finish().unwrap();
    }
    std::thread::sleep(Duration::from_secs(1));
    bytes.fill(0);
    session.link(P0).recv(&mut bytes).unwrap();
    assert!(bytes == pattern(FULL / 2, 1));
    end(session);
}

/// Party 0 leaves first; party 1 then reads its goodbye.
fn end(mut session: Session) {
    let peer = session.me().other();
    session.finish().unwrap();
    if peer == P0 {
        assert_eq!(fault(session.link(P0).recv(&mut [0])), ChannelError::Closed);
    }
}

fn fault(done: Result<(), Error>) -> ChannelError {
    let error = done.expect_err("the peer is gone");
    match error.kind() {
        Fault::Channel(why) => why.clone(),
        other => panic!("{other}"),
    }
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    unreachable!("killed")
}

/// What was sent arrives, then the cut is noticed long before the deadline.
fn killed(party: &Party) {
    let mut session = party.upgraded(LONG).unwrap();
    if party.me == P1 {
        session.link(P0).send(&pattern(100_000, 1)).unwrap();
        session.finish().unwrap();
        session.link(P0).recv(&mut [0]).unwrap();
        die();
    }
    let mut got = vec![0; 100_000];
    session.link(P1).recv(&mut got).unwrap();
    assert!(got == pattern(100_000, 1));
    // Under a name of ours, so that the next process can tell that it is left over.
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    let own = names.any(|name| common::shm_file_of(&name, std::process::id()));
    assert_eq!(own, party.transport == "fabric-shm");
    session.link(P1).send(&[1]).unwrap();
    assert_eq!(fault(session.link(P1).recv(&mut [0])), ChannelError::Cut);
}

fn killed_while_we_send(party: &Party) {
    let mut session = party.upgraded(LONG).unwrap();
    if party.me == P1 {
        session.link(P0).recv(&mut [0; 1 << 20]).unwrap();
        die();
    }
    let chunk = pattern(1 << 20, 2);
    let error = (0..100).find_map(|_| session.link(P1).send(&chunk).err());
    assert_eq!(fault(error.map_or(Ok(()), Err)), ChannelError::Cut);
}

fn silence(party: &Party) {
    let mut session = party.upgraded(LONG).unwrap();
    if party.me == P0 {
        // Only now, so that a busy machine has its time to meet.
        session.replace_channel(P1, |mut channel| {
            channel.set_deadline(SHORT);
            channel
        });
        let limit = ChannelError::Deadline { limit_ms: SHORT.as_millis() as u64 };
        assert_eq!(fault(session.link(P1).recv(&mut [0])), limit);
        return;
    }
    // Party 0 gives up without a goodbye.
    assert_eq!(fault(session.link(P0).recv(&mut [0])), ChannelError::Cut);
}

/// Party 0 drops the session without an end: what was queued arrives, then a cut.
fn leave(party: &Party) {
    let mut session = party.upgraded(LONG).unwrap();
    if party.me == P0 {
        return session.link(P1).send(&pattern(50_000, 3)).unwrap();
    }
    let mut got = vec![0; 50_000];
    session.link(P0).recv(&mut got).unwrap();
    assert!(got == pattern(50_000, 3));
    assert_eq!(fault(session.link(P0).recv(&mut [0])), ChannelError::Cut);
}

//! What a channel between hosts promises: order, ends that can be told apart, deadlines, nothing lost.

mod common;

use base::{ChannelError, PartyId, Seed};
use common::{HOSPITALS, Keys, REGISTRY, met, met_tcp, met_tls};
use net::{ChannelSecurity, Meeting, Session};
use std::time::Duration;

fn both_kinds(test: impl Fn(Meeting, Meeting, bool)) {
    let (a, b) = met_tcp(0);
    test(a, b, false);
    let (a, b) = met_tls(0);
    test(a, b, true);
}

/// Bytes that differ everywhere, so that a lost, doubled or moved byte shows.
fn pattern(len: usize, key: u8) -> Vec<u8> {
    let mut state = u64::from(key) + 1;
    let mut bytes = vec![0; len];
    for byte in &mut bytes {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *byte = (state >> 56) as u8;
    }
    bytes
}

#[test]
fn messages_of_every_size_arrive_in_order() {
    let sizes = [0, 1, 2, 31, 96, 4095, 16_384, 16_385, 65_536, 65_537, 262_143, 262_144, 262_145, 3 << 20];
    both_kinds(|mut a, mut b, _| {
        let sender = std::thread::spawn(move || {
            for (i, &size) in sizes.iter().enumerate() {
                a.control[0].1.send(&pattern(size, i as u8)).unwrap();
                // A receive hands over what is queued: messages go out one by one and in batches.
                if i % 3 == 0 {
                    a.control[0].1.recv(&mut [0; 1]).unwrap();
                }
            }
            a.control[0].1.finish().unwrap();
        });
        for (i, &size) in sizes.iter().enumerate() {
            let mut got = vec![0; size];
            b.control[0].1.recv(&mut got).unwrap();
            assert!(got == pattern(size, i as u8), "message {i} of {size} bytes");
            if i % 3 == 0 {
                b.control[0].1.send(&[1]).unwrap();
                b.control[0].1.finish().unwrap();
            }
        }
        sender.join().unwrap();
    });
}

#[test]
fn both_sides_may_stream_at_once() {
    both_kinds(|a, b, _| {
        let run = |me: PartyId, meeting: Meeting| {
            let peer = me.other();
            let channels = meeting.control;
            let mut session = Session::new(me, common::roster(), channels, Seed::from_bytes([me.0; 32]));
            let (mine, mut theirs) = (pattern(48 << 20, me.0), vec![0; 48 << 20]);
            session.link(peer).exchange(&mine, &mut theirs).unwrap();
            session.finish().unwrap();
            assert!(theirs == pattern(48 << 20, peer.0));
        };
        let other = std::thread::spawn(move || run(REGISTRY, a));
        run(HOSPITALS, b);
        other.join().unwrap();
    });
}

#[test]
fn nothing_sent_before_the_end_is_lost() {
    both_kinds(|mut a, mut b, tls| {
        let data = pattern(20 << 20, 3);
        let sent = data.clone();
        let sender = std::thread::spawn(move || {
            a.control[0].1.send(&sent).unwrap();
            a.control[0].1.finish().unwrap();
        });
        // The receiver is late: what does not fit the kernel waits in the sender's process, and finish() with
        // it.
        std::thread::sleep(Duration::from_millis(100));
        let mut got = vec![0; data.len()];
        b.control[0].1.recv(&mut got).unwrap();
        assert!(got == data);
        sender.join().unwrap();
        assert_eq!(b.control[0].1.recv(&mut [0; 1]), Err(ChannelError::Closed), "tls {tls}");
    });
}

#[test]
fn a_cut_is_told_from_a_goodbye() {
    let (mut a, mut b) = met_tls(0);
    a.control[0].1.send(b"half a").unwrap();
    drop(a);
    let mut got = [0; 6];
    b.control[0].1.recv(&mut got).unwrap();
    assert_eq!(&got, b"half a", "what was queued arrives even when the sender gives up");
    assert_eq!(b.control[0].1.recv(&mut [0; 1]), Err(ChannelError::Cut));
}

#[test]
fn a_panic_of_one_party_ends_the_other() {
    both_kinds(|a, mut b, tls| {
        let dying = std::thread::spawn(move || {
            let mut a = a;
            a.control[0].1.send(&[1]).unwrap();
            panic!("on purpose");
        });
        let error = b.control[0].1.recv(&mut [0; 2]).unwrap_err();
        assert_eq!(error, if tls { ChannelError::Cut } else { ChannelError::Closed });
        assert!(dying.join().is_err());
    });
}

#[test]
fn sending_to_a_peer_that_left_fails() {
    both_kinds(|mut a, b, _| {
        drop(b);
        let chunk = vec![0; 1 << 20];
        let error = (0..1000).find_map(|_| a.control[0].1.send(&chunk).err());
        assert_eq!(error, Some(ChannelError::Cut));
    });
}

#[test]
fn silence_and_a_peer_that_takes_nothing_end_at_the_deadline() {
    let keys = Keys::new();
    for transports in
        [[ChannelSecurity::Tcp, ChannelSecurity::Tcp], [keys.tls(REGISTRY), keys.tls(HOSPITALS)]]
    {
        let [registry, hospitals] = transports;
        let listening = common::listen(hospitals, 0, |m| m);
        let dial = common::meet(REGISTRY, listening.dial(), registry);
        let mut a = dial.deadline(Duration::from_millis(200)).meet(0).unwrap();
        let _b = listening.join().unwrap();
        assert_eq!(a.control[0].1.recv(&mut [0; 1]), Err(ChannelError::Deadline { limit_ms: 200 }));
        let chunk = vec![0; 1 << 20];
        let error = (0..1000).find_map(|_| a.control[0].1.send(&chunk).err());
        assert_eq!(error, Some(ChannelError::Deadline { limit_ms: 200 }));
    }
}

#[test]
fn lanes_are_channels_of_their_own() {
    let keys = Keys::new();
    let (mut a, mut b) = met([keys.tls(REGISTRY), keys.tls(HOSPITALS)], 2);
    assert_eq!(a.session_id, b.session_id);
    let later = std::thread::spawn(move || {
        let more = a.more(3).unwrap();
        (a, more)
    });
    std::thread::sleep(Duration::from_millis(50));
    let more = b.more(3).unwrap();
    let (mut a, theirs) = later.join().unwrap();
    let mut dialled: Vec<_> = std::mem::take(&mut a.workers).into_iter().chain(theirs).collect();
    let mut listened: Vec<_> = std::mem::take(&mut b.workers).into_iter().chain(more).collect();
    assert_eq!((dialled.len(), listened.len()), (5, 5));
    for (lane, channel) in dialled.iter_mut().enumerate().rev() {
        channel[0].1.send(&[lane as u8; 4]).unwrap();
        channel[0].1.finish().unwrap();
    }
    for (lane, channel) in listened.iter_mut().enumerate() {
        let mut got = [0; 4];
        channel[0].1.recv(&mut got).unwrap();
        assert_eq!(got, [lane as u8; 4]);
    }
    let error = a.more(253).err().unwrap().to_string();
    assert_eq!(error, "registry at meet with hospitals: lanes: 258 is over the limit of 257");
}

#[test]
fn session_ids_are_fresh() {
    let (a, b) = met_tcp(0);
    let (c, d) = met_tcp(0);
    assert_eq!(a.session_id, b.session_id);
    assert_eq!(c.session_id, d.session_id);
    assert_ne!(a.session_id, c.session_id);
}

/// What a transport that replaces TLS must know of it.
#[test]
fn a_channel_is_watched_without_using_up_a_byte() {
    both_kinds(|mut a, b, tls| {
        let mut b = b;
        let channel = &mut b.control[0].1;
        assert_eq!((channel.private(), channel.watch()), (tls, Ok(())));
        assert_eq!(channel.local_ip(), Some(std::net::Ipv4Addr::LOCALHOST.into()));
        a.control[0].1.send(b"last").unwrap();
        a.control[0].1.finish().unwrap();
        drop(a);
        let mut got = [0; 4];
        channel.recv(&mut got).unwrap();
        assert_eq!(&got, b"last");
        let gone = (0..6000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            channel.watch().err()
        });
        assert_eq!(gone, Some(ChannelError::Closed), "tls {tls}");
    });
    let (a, mut b) = met_tls(0);
    drop(a);
    let gone = (0..6000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        b.control[0].1.watch().err()
    });
    assert_eq!(gone, Some(ChannelError::Cut));
}

#[test]
fn a_sessions_channel_is_exchanged_and_its_ledger_goes_on() {
    let (a, b) = met_tls(0);
    let (mine, theirs) = net::pair(Duration::from_secs(60));
    let run = |me: PartyId, meeting: Meeting, other: Box<dyn net::Channel>| {
        let mut session = Session::new(me, common::roster(), meeting.control, Seed::from_bytes([me.0; 32]));
        let peer = me.other();
        assert_eq!(session.peers(), [peer]);
        session.link(peer).exchange(&[1; 5], &mut [0; 5]).unwrap();
        // The old channel stays alive inside the test: its bytes are not the new one's.
        let mut old = None;
        session.replace_channel(peer, |channel| {
            old = Some(channel);
            other
        });
        session.link(peer).exchange(&[2; 7], &mut [0; 7]).unwrap();
        session.finish().unwrap();
        (session.traffic().sent(""), session.traffic().received(""))
    };
    let thread = std::thread::spawn(move || run(REGISTRY, a, mine));
    assert_eq!(run(HOSPITALS, b, theirs), (12, 12));
    assert_eq!(thread.join().unwrap(), (12, 12));
}

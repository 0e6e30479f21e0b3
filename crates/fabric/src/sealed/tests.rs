use super::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

const P0: PartyId = PartyId(0);
const P1: PartyId = PartyId(1);

/// A pipe whose content a test can alter on the way.
#[derive(Clone, Default)]
struct Pipe {
    sent: Arc<Mutex<Vec<u8>>>,
    comes: Arc<Mutex<VecDeque<u8>>>,
}

impl Channel for Pipe {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.sent.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        let mut comes = self.comes.lock().unwrap();
        if comes.len() < into.len() {
            return Err(ChannelError::Cut);
        }
        into.iter_mut().for_each(|byte| *byte = comes.pop_front().unwrap());
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        Ok(())
    }
}

fn keys(me: PartyId) -> PairKeys {
    let drawn = [[3; KEY_BYTES], [5; KEY_BYTES]];
    let peer = me.other();
    PairKeys::derive(me, peer, &drawn[me.index()], &drawn[peer.index()])
}

fn ends(me: PartyId) -> (Pipe, SealedChannel<Pipe>) {
    let pipe = Pipe::default();
    (pipe.clone(), SealedChannel::new(pipe, keys(me), "the test channel to p1"))
}

/// The wire of some messages, each flushed.
fn wire(messages: &[&[u8]]) -> Vec<u8> {
    let (pipe, mut sealed) = ends(P0);
    for message in messages {
        sealed.send(message).unwrap();
        sealed.recv(&mut []).unwrap();
    }
    let sent = pipe.sent.lock().unwrap();
    sent.clone()
}

/// What p1 gets of that wire: `len` bytes in pieces, or the error; nothing that was altered may be left in
/// the pieces.
fn open(wire: &[u8], pieces: &[usize]) -> (Vec<u8>, Result<(), ChannelError>) {
    let (pipe, mut sealed) = ends(P1);
    pipe.comes.lock().unwrap().extend(wire);
    let mut all = Vec::new();
    for &piece in pieces {
        let mut got = vec![0; piece];
        let done = sealed.recv(&mut got);
        if done.is_err() {
            assert_eq!(sealed.recv(&mut [0]), done, "a failed channel stays failed");
            assert_eq!(sealed.send(&[0]), done);
            return (all, done);
        }
        all.extend(got);
    }
    (all, Ok(()))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8 | 1).collect()
}

#[test]
fn what_is_sent_arrives_whatever_the_pieces() {
    let all = bytes(3 * FRAME_BYTES + 77);
    for cuts in [vec![], vec![1, 2, 3, 20, 4095, 4096, 70_000], vec![100_000, 100_001]] {
        let mut messages = Vec::new();
        let mut rest = &all[..];
        for cut in &cuts {
            let (head, tail) = rest.split_at(*cut - (all.len() - rest.len()).min(*cut));
            messages.push(head);
            rest = tail;
        }
        messages.push(rest);
        let wire = wire(&messages);
        for pieces in
            [vec![all.len()], vec![1, 15, 17, 4096, all.len() - 4129], vec![65_537, all.len() - 65_537]]
        {
            let (got, done) = open(&wire, &pieces);
            assert!(done.is_ok() && got == all, "{cuts:?} {pieces:?}: {done:?}");
        }
    }
}

#[test]
fn every_altered_byte_is_found_and_none_delivered() {
    let message = bytes(50);
    let wire = wire(&[&message, &message]);
    assert_eq!(wire.len(), 2 * (HEAD_BYTES + 50));
    for at in 0..wire.len() {
        for mask in [1, 0x80] {
            let mut altered = wire.clone();
            altered[at] ^= mask;
            let (got, done) = open(&altered, &[50, 20, 30]);
            let Err(ChannelError::Io(text)) = done else { panic!("byte {at}: {done:?}") };
            assert!(text.contains("on the test channel to p1 is wrong"), "{text}");
            assert!(got == message[..if at < 82 { 0 } else { 50 }], "byte {at}");
        }
    }
}

#[test]
fn altered_bytes_are_wiped_from_where_they_were_received() {
    let (pipe, mut sealed) = ends(P1);
    let mut altered = wire(&[&bytes(64)]);
    altered[HEAD_BYTES + 10] ^= 4;
    pipe.comes.lock().unwrap().extend(altered);
    let mut got = vec![0; 64];
    sealed.recv(&mut got).unwrap_err();
    assert!(got.iter().all(|byte| *byte == 0));
}

#[test]
fn frames_repeated_moved_or_sent_back_are_found() {
    let frame = HEAD_BYTES + 16;
    let wire = wire(&[&bytes(16), &bytes(16)]);
    let twice = [&wire[..frame], &wire[..frame]].concat();
    let swapped = [&wire[frame..], &wire[..frame]].concat();
    for (altered, delivered) in [(twice, 16), (swapped, 0)] {
        let (got, done) = open(&altered, &[16, 16]);
        assert!(done.is_err() && got.len() == delivered);
    }
    let (pipe, mut sealed) = ends(P0);
    pipe.comes.lock().unwrap().extend(&wire);
    assert!(sealed.recv(&mut [0; 16]).is_err(), "what p0 sent does not pass as p1's");
}

/// Zeros at the end count: frames that differ in them have different tags.
#[test]
fn lengths_are_hashed() {
    let tag = |body: &[u8]| keys(P0).send.digests(body)[1];
    assert!(tag(&[0; 15]) != tag(&[0; 16]) && tag(&[0; 16]) != tag(&[0; 17]));
    assert!(tag(&[0; 16]) != tag(&[0; 32]));
}

/// The hash does not depend on where in memory the bytes lie.
#[test]
fn bytes_may_lie_anywhere() {
    let all = bytes(9000);
    let half = keys(P0).send;
    for len in [0, 1, 16, 4095, 4096, 4097, 8200] {
        let expected = half.digests(&all[..len]);
        for shift in 0..17 {
            let moved = [vec![0; shift], all[..len].to_vec()].concat();
            assert!(half.digests(&moved[shift..]) == expected, "{len} bytes at {shift}");
        }
    }
}

/// Over plain TCP as over the others: the wrapper asks nothing of the channel inside.
#[test]
fn any_channel_can_be_sealed() {
    let (a, b) = net::pair(Duration::from_secs(60));
    let mut a = SealedChannel::new(a, keys(P0), "the plain channel to p1");
    let mut b = SealedChannel::new(b, keys(P1), "the plain channel to p0");
    let message = bytes(1 << 20);
    let expected = message.clone();
    let sender = std::thread::spawn(move || {
        a.send(&message).unwrap();
        a.finish().unwrap();
    });
    let mut got = vec![0; 1 << 20];
    b.recv(&mut got).unwrap();
    assert!(got == expected);
    sender.join().unwrap();
    assert_eq!(b.recv(&mut [0]), Err(ChannelError::Closed));
}

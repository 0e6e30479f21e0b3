use super::*;
use crate::{PairKeys, SealedChannel};
use base::PartyId;
use kernels::Block;

const LONG: Duration = Duration::from_secs(60);

/// Both ends in one process over a pair of in-process channels, and a third view of the memory: an
/// attacker's.
fn ends_and_attacker(ring: usize, deadline: Duration) -> ([ShmChannel; 2], SharedMemory) {
    let file = region::memory_file(region_bytes(ring)).unwrap();
    let map = || region::map(&file, region_bytes(ring)).unwrap();
    let mapped = |first| Mapped { region: Arc::new(map()), ring, first };
    let (a, b) = net::pair(deadline);
    ([mapped(true).channel(a), mapped(false).channel(b)], map())
}

fn ends(ring: usize, deadline: Duration) -> [ShmChannel; 2] {
    ends_and_attacker(ring, deadline).0
}

fn sealed(channel: ShmChannel, me: u8) -> SealedChannel<ShmChannel> {
    let drawn = [[1; 32], [2; 32]];
    let (mine, theirs) = (&drawn[usize::from(me)], &drawn[usize::from(1 - me)]);
    SealedChannel::in_rings(
        channel,
        PairKeys::derive(PartyId(me), PartyId(1 - me), mine, theirs),
        "the shm channel",
    )
}

#[test]
fn rings_of_any_size_carry_everything() {
    for ring in [64, 1000, 4096, 1 << 20] {
        let [mut a, mut b] = ends(ring, LONG);
        let all: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let expected = all.clone();
        let sender = std::thread::spawn(move || {
            for (i, piece) in all.chunks(777).enumerate() {
                a.send(piece).unwrap();
                if i % 7 == 0 {
                    a.recv(&mut []).unwrap();
                }
            }
            a.finish().unwrap();
        });
        let mut got = vec![0; expected.len()];
        got.chunks_mut(1234).for_each(|piece| b.recv(piece).unwrap());
        assert!(got == expected, "ring of {ring}");
        sender.join().unwrap();
        assert_eq!(b.recv(&mut [0]), Err(ChannelError::Closed));
    }
}

/// Somebody writes into the ring: wherever it is, nothing of it is delivered.
#[test]
fn bytes_altered_in_the_ring_fail_their_tag() {
    for at in [0, 5, 20, 32, 100] {
        let ([a, b], attacker) = ends_and_attacker(4096, LONG);
        let place = a.out + COUNTERS + at;
        let mut a = sealed(a, 0);
        a.send(&[7; 100]).unwrap();
        a.recv(&mut []).unwrap();
        let mut byte = [0];
        attacker.read(place, &mut byte);
        attacker.write(place, &[byte[0] ^ 1]);
        let mut got = [0; 100];
        let error = sealed(b, 1).recv(&mut got).unwrap_err().to_string();
        assert!(error.contains("on the shm channel is wrong"), "{error}");
        assert_eq!(got, [0; 100]);
    }
}

/// Bytes that change after the check change nothing: the receiver has its copy.
#[test]
fn a_check_is_not_outrun() {
    let ([a, b], attacker) = ends_and_attacker(4096, LONG);
    let place = a.out + COUNTERS;
    let (mut a, mut b) = (sealed(a, 0), sealed(b, 1));
    a.send(&[7; 100]).unwrap();
    a.recv(&mut []).unwrap();
    let mut got = [0; 50];
    b.recv(&mut got).unwrap();
    assert_eq!(got, [7; 50]);
    attacker.write(place, &[9; 200]);
    b.recv(&mut got).unwrap();
    assert_eq!(got, [7; 50], "the frame was checked and taken as a whole");
}

/// Long enough for messages in place, and not a multiple of a frame: it begins again within bodies and heads.
const PLACED_RING: usize = 300_008;

/// Messages of several lengths in places of the ring, among others that are sent as ever, arrive in order,
/// whether they are received in place or not.
#[test]
fn messages_lie_in_the_ring() {
    let lengths = [65536, 65536, 16, 4097, 65536, 1, 48, 65536];
    let content = move |round: usize, k: usize| -> Vec<u8> {
        (0..lengths[k]).map(|i| (i * 7 + k * 31 + round * 13 + (i >> 8)) as u8).collect()
    };
    for in_place in [true, false] {
        let [a, b] = ends(PLACED_RING, LONG);
        let (mut a, mut b) = (sealed(a, 0), sealed(b, 1));
        let sender = std::thread::spawn(move || {
            for round in 0..40 {
                a.send(&[round as u8; 5]).unwrap();
                let mut next = 0;
                while next < lengths.len() {
                    let memory = a.in_place().unwrap();
                    let places = memory.reserve(&lengths[next..], true).unwrap();
                    for (k, places) in (next..).zip(&places) {
                        kernels::Place::write_all(places, &content(round, k));
                    }
                    memory.publish(places.len(), None).unwrap();
                    next += places.len();
                }
            }
            a.finish().unwrap();
        });
        for round in 0..40 {
            let mut small = [0; 5];
            b.recv(&mut small).unwrap();
            assert_eq!(small, [round as u8; 5]);
            let mut next = 0;
            while next < lengths.len() {
                let mut got = Vec::new();
                if in_place {
                    let memory = b.in_place().unwrap();
                    let net::Peeked::There(places) = memory.peek(&lengths[next..], true).unwrap() else {
                        panic!("frames have the lengths of messages");
                    };
                    for places in &places {
                        let mut bytes = vec![0; places.iter().map(kernels::Place::bytes).sum()];
                        kernels::Place::read_all(places, &mut bytes);
                        got.push(bytes);
                    }
                    memory.check(places.len()).unwrap();
                    memory.release(places.len()).unwrap();
                } else {
                    got.push(vec![0; lengths[next]]);
                    b.recv(&mut got[0]).unwrap();
                }
                for bytes in got {
                    assert!(bytes == content(round, next), "round {round}, message {next}, {in_place}");
                    next += 1;
                }
            }
        }
        sender.join().unwrap();
        assert_eq!(b.recv(&mut [0]), Err(ChannelError::Closed));
    }
}

/// What comes as ever has no place; what is altered in its place is found.
#[test]
fn what_is_read_in_place_is_checked() {
    let ([a, b], attacker) = ends_and_attacker(PLACED_RING, LONG);
    let place = a.out + COUNTERS + 32;
    let (mut a, mut b) = (sealed(a, 0), sealed(b, 1));
    a.send(&[7; 100]).unwrap();
    a.send(&[8; 8000]).unwrap();
    a.recv(&mut []).unwrap();
    let memory = b.in_place().unwrap();
    assert!(matches!(memory.peek(&[50, 8000], true).unwrap(), net::Peeked::Otherwise));
    b.recv(&mut [0; 100]).unwrap();
    let memory = b.in_place().unwrap();
    assert!(matches!(memory.peek(&[8000], true).unwrap(), net::Peeked::There(places) if places.len() == 1));
    attacker.write(place + 32 + 100 + 4000, &[9]);
    let error = memory.check(1).unwrap_err().to_string();
    assert!(error.contains("the tag of frame") && memory.release(1).is_err(), "{error}");
    who_read_it_says_what_was_read();
    let [a, _b] = ends(4096, LONG);
    assert!(sealed(a, 0).in_place().is_none(), "the ring is too short");
}

/// Digests of who has read a message stand for what was read, whatever lies there now; wrong ones are found.
fn who_read_it_says_what_was_read() {
    for right in [true, false] {
        let ([a, b], attacker) = ends_and_attacker(PLACED_RING, LONG);
        let place = a.out + COUNTERS + 32;
        let (mut a, mut b) = (sealed(a, 0), sealed(b, 1));
        let body: Vec<Block> = (0..500).map(|i| Block(i * i + 1)).collect();
        let memory = a.in_place().unwrap();
        let places = memory.reserve(&[8000], true).unwrap();
        kernels::Place::write_all(&places[0], Block::bytes_of(&body));
        let [key, _] = memory.body_keys();
        let digest = kernels::gf_digest(&key, Block::ZERO, &body);
        memory.publish(1, Some(&[digest])).unwrap();
        a.recv(&mut []).unwrap();
        let memory = b.in_place().unwrap();
        assert!(matches!(memory.peek(&[8000], true).unwrap(), net::Peeked::There(_)));
        let [_, key] = memory.body_keys();
        assert!(kernels::gf_digest(&key, Block::ZERO, &body) == digest, "both ends have one key");
        attacker.write(place + 4000, &[9]);
        let owed = memory.release_unchecked(1).unwrap();
        assert!(owed.messages() == 1 && memory.release(1).is_err(), "its place is free");
        let read = if right { digest } else { digest ^ Block::ONE };
        let checked = owed.check(&[read]).map_err(|e| e.to_string());
        assert_eq!(checked.is_ok(), right);
        assert!(checked.err().is_none_or(|error| error.contains("the tag of frame")));
    }
    let [a, _b] = ends(PLACED_RING, LONG);
    let mut a = sealed(a, 0);
    let memory = a.in_place().unwrap();
    memory.reserve(&[1001], true).unwrap();
    assert!(memory.publish(1, Some(&[Block::ZERO; 2])).unwrap_err().to_string().contains("as many digests"));
}

#[test]
fn impossible_counters_end_the_channel() {
    for (word, value) in [(HEAD, 4097), (HEAD, u64::MAX)] {
        let [a, mut b] = ends(4096, LONG);
        a.region.word64(a.out + word).store(value, SeqCst);
        let error = b.recv(&mut [0; 10]).unwrap_err().to_string();
        assert!(error.contains("the counters in shared memory are impossible"), "{error}");
    }
    let [mut a, b] = ends(4096, LONG);
    b.region.word64(b.into + TAIL).store(1 << 40, SeqCst);
    let error = a.send(&[0; 5000]).unwrap_err().to_string();
    assert!(error.contains("the counters in shared memory are impossible"), "{error}");
}

#[test]
fn a_side_that_waits_ends_at_the_deadline() {
    let short = Duration::from_millis(50);
    let [mut a, _b] = ends(4096, short);
    assert_eq!(a.recv(&mut [0]), Err(passed(short)));
    assert_eq!(a.send(&[0; 5000]), Err(passed(short)));
}

#[test]
fn a_dropped_end_is_a_cut_for_both_directions() {
    let [a, mut b] = ends(4096, LONG);
    drop(a);
    assert_eq!(b.recv(&mut [0]), Err(ChannelError::Cut));
    let [a, mut b] = ends(4096, LONG);
    drop(a);
    assert_eq!(b.send(&[0; 5000]), Err(ChannelError::Cut));
}

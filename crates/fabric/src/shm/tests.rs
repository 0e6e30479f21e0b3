use super::*;
use crate::{PairKeys, SealedChannel};
use base::PartyId;

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
    SealedChannel::new(
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

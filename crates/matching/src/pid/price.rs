//! What Private-ID costs, from the schedule that the driver itself follows.

use super::Role;
use crate::chunks::CHUNK;
use crate::group::ELEMENT_BYTES;
use crate::matcher::PairSizes;
use crate::meter::LinkMeter;
use base::Cost;
use std::ops::Range;

/// Chunks of multiplications after which a party shows that it is still at work.
const PULSE: u64 = 4;
/// Pulses that a party lets wait before it takes one.
const PULSE_LAG: u64 = 4;
/// Slices of `e_c` that travel ahead of the answer to the first of them.
pub(super) const SLICE_LAG: u64 = 2;

/// Bytes of what both tell each other first.
pub(super) const HELLO_BYTES: u64 = 80;
/// Bytes of the count of a slice.
const COUNT_BYTES: u64 = 8;
/// Bytes of one half of a digest's exchange.
const DIGEST_BYTES: u64 = 32;

/// The least window of a channel that this schedule may be run on: six chunks wait in one direction at most.
pub(super) const WINDOW_BYTES: u64 = 6 * CHUNK * ELEMENT_BYTES + (1 << 18);
const _: () = assert!(WINDOW_BYTES <= base::limits::WINDOW_BYTES as u64);
const _: () = assert!((SLICE_LAG + 1) * (SLICE_MOST * ELEMENT_BYTES + COUNT_BYTES) <= WINDOW_BYTES);

/// Bits of the number of slices that elements are exchanged in: on average, at most a chunk of the larger
/// side each.
pub(super) fn slice_bits(rows: [u64; 2]) -> u32 {
    rows[0].max(rows[1]).div_ceil(CHUNK).next_power_of_two().trailing_zeros()
}

/// Most rows of a slice.
const SLICE_MOST: u64 = slice_cap(CHUNK, 0);

/// The most elements that a slice of `rows` uniform ones may have: more have a probability below `2^-1000`.
pub(super) const fn slice_cap(rows: u64, bits: u32) -> u64 {
    2 * (rows >> bits) + 1024
}

/// When a party tells that it is at work and when it takes what the other one tells, in rounds of one chunk.
pub(super) struct PulseBeat {
    /// Own chunks that are announced.
    own: u64,
    /// Pulses that are still to come from the peer.
    pub left: u64,
}

impl PulseBeat {
    /// For `own` chunks of this party that the peer waits for, and `peer` chunks of the peer's.
    pub fn new(own: u64, peer: u64) -> Self {
        Self { own, left: peer.div_ceil(PULSE) }
    }

    /// What to do after round `i`: whether to send a pulse, and whether to take one. Pulses are taken as one
    /// goes, so that few wait in a channel.
    pub fn after(&mut self, i: u64) -> [bool; 2] {
        let due = (i + 1).is_multiple_of(PULSE);
        let takes = due && (i + 1) / PULSE > PULSE_LAG && self.left > 0;
        self.left -= u64::from(takes);
        [i < self.own && (due || i + 1 == self.own), takes]
    }
}

/// One thing a party does while both stream: rows of its own column or of the peer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StreamMove {
    /// Hash and multiply own rows, send them: u.
    SendU(Range<u64>),
    /// Receive u of the peer's rows, multiply twice, keep e and send v.
    AnswerV(Range<u64>),
    /// Receive v of own rows, multiply.
    TakeV(Range<u64>),
}

/// The order of moves while both stream.
///
/// Each party starts its next chunk before it waits for the answer to an earlier one, so both compute at once
/// whatever the two sizes are: a row costs its owner two multiplications and the peer two. At most three
/// chunks of u and of v are on their way in one direction, far below the window of a channel.
pub(super) fn stream(own: u64, peer: u64) -> impl Iterator<Item = StreamMove> {
    let rounds = own.max(peer).div_ceil(CHUNK);
    let chunk = |rows: u64, i: Option<u64>| {
        let start = i? * CHUNK;
        (start < rows).then(|| start..rows.min(start + CHUNK))
    };
    (0..if rounds == 0 { 0 } else { rounds + 2 }).flat_map(move |i| {
        let send = chunk(own, Some(i)).map(StreamMove::SendU);
        let answer = chunk(peer, i.checked_sub(1)).map(StreamMove::AnswerV);
        let take = chunk(own, i.checked_sub(2)).map(StreamMove::TakeV);
        [send, answer, take].into_iter().flatten()
    })
}

impl LinkMeter {
    fn send_column(&mut self, rows: u64) {
        self.send(rows * ELEMENT_BYTES);
    }

    /// `rounds` rounds of `work`, with pulses.
    fn rounds(&mut self, rounds: u64, mut beat: PulseBeat, mut work: impl FnMut(&mut Self, u64)) {
        for i in 0..rounds {
            work(self, i);
            let [send, take] = beat.after(i);
            self.send(u64::from(send));
            if take {
                self.recv(1);
            }
        }
        if beat.left > 0 {
            self.recv(1);
        }
    }

    /// The exchange of `e_c` for `s_p` in slices.
    fn slices(&mut self, role: Role, sizes: PairSizes) {
        let slices = 1u64 << slice_bits(sizes.rows);
        let counts = slices * COUNT_BYTES;
        match role {
            Role::C => {
                // A turn per slice, and what is sent does not depend on where it is sent.
                (0..slices).for_each(|_| {
                    self.recv(1);
                    self.spoke = true;
                });
                self.send(counts + sizes.only()[1] * ELEMENT_BYTES);
            }
            Role::P => {
                self.send(counts + sizes.rows[0] * ELEMENT_BYTES);
                (0..slices + SLICE_LAG).for_each(|i| {
                    self.spoke |= i < slices;
                    if i >= SLICE_LAG {
                        self.recv(1);
                    }
                });
            }
        }
    }

    /// Both products of the difference.
    fn differences(&mut self, role: Role, sizes: PairSizes) {
        let [c, p] = sizes.only().map(|rows| rows.div_ceil(CHUNK));
        match role {
            Role::C => {
                self.rounds(c.max(p), PulseBeat::new(c, 0), |m, i| {
                    if i < p {
                        m.recv(1);
                    }
                });
                let column = sizes.only()[0];
                self.rounds(c, PulseBeat::new(0, c), |m, i| m.send_column(piece(column, i)));
            }
            Role::P => {
                let column = sizes.only()[1];
                self.rounds(p, PulseBeat::new(0, c), |m, i| m.send_column(piece(column, i)));
                self.rounds(c, PulseBeat::new(c, 0), |m, _| m.recv(1));
            }
        }
    }
}

/// Rows of chunk `i` of a column.
fn piece(rows: u64, i: u64) -> u64 {
    CHUNK.min(rows - i * CHUNK)
}

fn meter(role: Role, sizes: PairSizes) -> LinkMeter {
    let mut m = LinkMeter::default();
    let (own, peer) = (sizes.rows[role as usize], sizes.rows[1 - role as usize]);
    m.send(HELLO_BYTES);
    m.recv(1);
    let [own_chunks, peer_chunks] = [own, peer].map(|rows| rows.div_ceil(CHUNK));
    m.rounds(own_chunks, PulseBeat::new(own_chunks, peer_chunks), |_, _| ());
    for step in stream(own, peer) {
        match step {
            StreamMove::SendU(rows) => m.send_column(rows.end - rows.start),
            StreamMove::AnswerV(rows) => {
                m.recv(1);
                m.send_column(rows.end - rows.start);
            }
            StreamMove::TakeV(_) => m.recv(1),
        }
    }
    m.slices(role, sizes);
    m.differences(role, sizes);
    m.send(DIGEST_BYTES);
    m.recv(1);
    m
}

/// The exact cost for sizes that are known: after a run, or for a planned overlap. Sizes include dummies. A
/// run that goes on after a cut sends less.
#[must_use]
pub fn price(sizes: PairSizes) -> Cost {
    let [c, p] = [Role::C, Role::P].map(|role| meter(role, sizes));
    Cost { rounds: c.turns.max(p.turns), sent: vec![c.sent, p.sent], ..Cost::zero(2) }
}

/// Multiplications of the group per party. Both do the same number, besides hashing their own rows.
#[must_use]
pub fn multiplications(sizes: PairSizes) -> u64 {
    let [c, p] = sizes.only();
    2 * (sizes.rows[0] + sizes.rows[1]) + c + p
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays both schedules against each other: in-order pipes, no reading ahead.
    #[test]
    fn the_schedules_of_both_fit_for_all_sizes_and_stay_in_the_window() {
        let sizes = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 7 * CHUNK + 5];
        for (own, peer) in sizes.iter().flat_map(|&a| sizes.map(|b| (a, b))) {
            let mut moves = [stream(own, peer).peekable(), stream(peer, own).peekable()];
            let mut pipes: [std::collections::VecDeque<StreamMove>; 2] = Default::default();
            while moves.iter_mut().any(|m| m.peek().is_some()) {
                let mut went = false;
                for me in 0..2 {
                    while let Some(next) = moves[me].peek() {
                        let (needs, makes) = match next.clone() {
                            StreamMove::SendU(r) => (None, Some(StreamMove::SendU(r))),
                            StreamMove::AnswerV(r) => {
                                (Some(StreamMove::SendU(r.clone())), Some(StreamMove::AnswerV(r)))
                            }
                            StreamMove::TakeV(r) => (Some(StreamMove::AnswerV(r)), None),
                        };
                        if let Some(needs) = needs {
                            match pipes[1 - me].front() {
                                None => break,
                                Some(front) => assert_eq!(*front, needs, "{own} {peer}"),
                            }
                            pipes[1 - me].pop_front();
                        }
                        pipes[me].extend(makes);
                        assert!(pipes[me].len() <= 6, "{own} {peer}");
                        moves[me].next();
                        went = true;
                    }
                }
                assert!(went, "deadlock at {own} {peer}");
            }
            assert!(pipes.iter().all(|p| p.is_empty()));
        }
    }

    #[test]
    fn half_overlap_costs_six_and_a_half_elements_per_row() {
        let n = 1_000_000;
        let sizes = PairSizes::new([n, n], n + n / 2);
        let chunks = n.div_ceil(CHUNK);
        let pulses = 2 * chunks.div_ceil(PULSE) + 2 * (n / 2).div_ceil(CHUNK).div_ceil(PULSE);
        let counts = 2 * 8 * 256;
        assert_eq!(price(sizes).bytes(), n * 208 + 2 * HELLO_BYTES + counts + 2 * 32 + pulses);
        assert_eq!(multiplications(sizes), 5 * n);
    }

    #[test]
    fn pulses_that_are_sent_are_taken_and_few_wait() {
        for (own, peer) in [(0, 0), (1, 0), (0, 9), (40, 40), (100, 3), (5, 1000), (1000, 1001)] {
            let mut beats = [PulseBeat::new(own, peer), PulseBeat::new(peer, own)];
            let mut sent = [0u64; 2];
            let mut taken = [0u64; 2];
            for i in 0..own.max(peer) {
                for (me, rounds) in [own, peer].into_iter().enumerate().filter(|(_, rounds)| i < *rounds) {
                    let [send, take] = beats[me].after(i);
                    sent[me] += u64::from(send);
                    taken[me] += u64::from(take);
                    assert!(i < rounds);
                }
                let ended = [own, peer].map(|rounds| i >= rounds);
                for me in 0..2 {
                    assert!(ended[1 - me] || sent[me] <= taken[1 - me] + PULSE_LAG + 2, "{own} {peer}");
                }
            }
            assert_eq!([taken[1] + beats[1].left, taken[0] + beats[0].left], sent, "{own} {peer}");
        }
    }
}

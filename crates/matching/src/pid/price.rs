//! What Private-ID costs, from the schedule that the driver itself follows.

use super::partitions::Partitioning;
use super::{ROW_BYTES, Role};
use crate::chunks::{CHUNK, chunks};
use crate::disk::DiskSchedule;
use crate::group::ELEMENT_BYTES;
use crate::identifiers;
use crate::matcher::{MatchDisk, PairSizes};
use crate::meter::LinkMeter;
use crate::places::PLACE_BYTES;
use base::{Cost, PartyId};
use std::ops::Range;

/// Rows of multiplications after which a party shows that it is still at work.
const PULSE_ROWS: u64 = 4 * CHUNK;
/// Pulses that a party lets wait before it takes one.
const PULSE_LAG: u64 = 4;
/// Slices of `e_c` that travel ahead of the answer to the first of them.
pub(super) const SLICE_LAG: u32 = 2;

/// Bytes of what both tell each other first.
pub(super) const HELLO_BYTES: u64 = 72;
/// Bytes of the count of a slice, or of a partition.
const COUNT_BYTES: u64 = 8;
/// Bytes of one half of a digest's exchange.
const DIGEST_BYTES: u64 = 32;

/// The least window of a channel that this schedule may be run on: six chunks wait in one direction at most.
pub(super) const WINDOW_BYTES: u64 = 6 * CHUNK * ELEMENT_BYTES + (1 << 18);
const _: () = assert!(WINDOW_BYTES <= base::limits::WINDOW_BYTES as u64);
const _: () = assert!((SLICE_LAG as u64 + 1) * (SLICE_MOST * ELEMENT_BYTES + COUNT_BYTES) <= WINDOW_BYTES);

/// Bits of the number of slices that elements are exchanged in: on average, at most a chunk of the larger
/// side each; no partition is less than one.
pub(super) fn slice_bits(rows: [u64; 2], parts: Partitioning) -> u32 {
    let bits = rows[0].max(rows[1]).div_ceil(CHUNK).next_power_of_two().trailing_zeros();
    bits.max(parts.bits())
}

/// Most rows of a slice.
const SLICE_MOST: u64 = slice_cap(CHUNK, 0);

/// The most elements that a slice of `rows` uniform ones may have: more have a probability below `2^-1000`.
pub(super) const fn slice_cap(rows: u64, bits: u32) -> u64 {
    2 * (rows >> bits) + 1024
}

/// When a party tells that it is at work and when it takes what the other one tells: by rows, so that it is
/// the same however these are dealt.
pub(super) struct PulseBeat {
    /// Own rows that are announced.
    own: u64,
    /// Rows that are done.
    done: u64,
    /// Pulses that are still to come from the peer.
    pub left: u64,
}

impl PulseBeat {
    /// For `own` rows of this party that the peer waits for, and `peer` rows of the peer's.
    pub fn new(own: u64, peer: u64) -> Self {
        Self { own, done: 0, left: peer.div_ceil(PULSE_ROWS) }
    }

    /// What to do after `rows` more, at most two chunks: how many pulses to send, and how many to take. They
    /// are taken as rows go, so that few wait in a channel.
    pub fn after(&mut self, rows: u64) -> [u64; 2] {
        let told = |done: u64| {
            let end = done >= self.own;
            if end { self.own.div_ceil(PULSE_ROWS) } else { done / PULSE_ROWS }
        };
        let (before, now) = (self.done, self.done + rows);
        self.done = now;
        let due = now / PULSE_ROWS > before / PULSE_ROWS && now / PULSE_ROWS > PULSE_LAG;
        let takes = u64::from(due && self.left > 0);
        self.left -= takes;
        [told(now) - told(before), takes]
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

    /// Pulses after `rows` more.
    fn pulse(&mut self, beat: &mut PulseBeat, rows: u64) {
        let [send, take] = beat.after(rows);
        self.send(send);
        self.recv(take);
    }

    /// Pulses that are left.
    fn end(&mut self, beat: &PulseBeat) {
        self.recv(beat.left);
    }

    /// Sizes of all partitions but one.
    fn part_sizes(parts: Partitioning) -> u64 {
        (u64::from(parts.count()) - 1) * COUNT_BYTES
    }

    /// The exchange of `e_c` for `s_p` of one partition in slices, but for the elements.
    fn slices(&mut self, role: Role, slices: u32) {
        self.sent += u64::from(slices) * COUNT_BYTES;
        match role {
            // A turn per slice, and what is sent does not depend on where it is sent.
            Role::C => (0..slices).for_each(|_| {
                self.recv(1);
                self.spoke = true;
            }),
            Role::P => (0..slices + SLICE_LAG).for_each(|i| {
                self.spoke |= i < slices;
                if i >= SLICE_LAG {
                    self.recv(1);
                }
            }),
        }
    }

    /// Both products of the difference.
    fn differences(&mut self, role: Role, sizes: PairSizes, parts: Partitioning) {
        let [only_c, only_p] = sizes.only();
        let pieces = |rows: u64| {
            (0..parts.count()).flat_map(move |part| chunks(parts.share(rows, part))).map(|r| r.end - r.start)
        };
        match role {
            Role::C => {
                let mut beat = PulseBeat::new(only_c, 0);
                let mut done = 0;
                for _ in pieces(only_p) {
                    self.recv(1);
                    let rows = CHUNK.min(only_c - done);
                    done += rows;
                    self.pulse(&mut beat, rows);
                }
                chunks(only_c - done).for_each(|rows| self.pulse(&mut beat, rows.end - rows.start));
                self.send(Self::part_sizes(parts));
                let mut beat = PulseBeat::new(0, only_c);
                for rows in pieces(only_c) {
                    self.send_column(rows);
                    self.pulse(&mut beat, rows);
                }
                self.end(&beat);
            }
            Role::P => {
                let mut beat = PulseBeat::new(0, only_c);
                for rows in pieces(only_p) {
                    self.send_column(rows);
                    self.pulse(&mut beat, rows);
                }
                self.end(&beat);
                self.recv(Self::part_sizes(parts));
                let mut beat = PulseBeat::new(only_c, 0);
                for rows in pieces(only_c) {
                    self.recv(1);
                    self.pulse(&mut beat, rows);
                }
            }
        }
    }
}

fn meter(role: Role, sizes: PairSizes, parts: Partitioning) -> LinkMeter {
    let mut m = LinkMeter::default();
    let (own, peer) = (sizes.rows[role as usize], sizes.rows[1 - role as usize]);
    m.send(HELLO_BYTES);
    m.recv(1);
    let mut beat = PulseBeat::new(own, peer);
    chunks(own).for_each(|rows| m.pulse(&mut beat, rows.end - rows.start));
    m.end(&beat);
    m.send(LinkMeter::part_sizes(parts));
    m.recv(LinkMeter::part_sizes(parts));
    for part in 0..parts.count() {
        for step in stream(parts.share(own, part), parts.share(peer, part)) {
            match step {
                StreamMove::SendU(rows) => m.send_column(rows.end - rows.start),
                StreamMove::AnswerV(rows) => {
                    m.recv(1);
                    m.send_column(rows.end - rows.start);
                }
                StreamMove::TakeV(_) => m.recv(1),
            }
        }
    }
    m.send(DIGEST_BYTES);
    m.recv(1);
    let slices = 1u32 << (slice_bits(sizes.rows, parts) - parts.bits());
    (0..parts.count()).for_each(|_| m.slices(role, slices));
    m.sent += ELEMENT_BYTES * if role == Role::C { sizes.only()[1] } else { sizes.rows[0] };
    m.differences(role, sizes, parts);
    m.send(DIGEST_BYTES);
    m.recv(1);
    m
}

/// The cost for sizes that are known: after a run, or for a planned overlap; `least` is
/// [`crate::MatchOptions::partitions`]. Sizes include dummies. Bytes are exact. Turns are, for one partition;
/// for more they are those of partitions of equal sizes, which chance makes a few chunks larger or smaller. A
/// run that goes on after a cut sends less.
#[must_use]
pub fn price(sizes: PairSizes, least: u32) -> Cost {
    let parts = Partitioning::of(sizes.rows, least);
    let [c, p] = [Role::C, Role::P].map(|role| meter(role, sizes, parts));
    Cost { rounds: c.turns.max(p.turns), sent: vec![c.sent, p.sent], ..Cost::zero(2) }
}

/// The same where so many units of each stage go over lanes: no pulses between them, and promises of what a
/// unit will ask. Turns are those of one session.
#[must_use]
pub fn price_over_lanes(sizes: PairSizes, units: u32) -> Cost {
    let parts = Partitioning::of([0; 2], units);
    let (count, [only_c, only_p]) = (u64::from(parts.count()), sizes.only());
    let slices = 1u64 << slice_bits(sizes.rows, parts);
    let sent = |role: Role| {
        let (own, peer) = (sizes.rows[role as usize], sizes.rows[1 - role as usize]);
        let promised = count * parts.promised(own) as u64;
        let streams = HELLO_BYTES
            + LinkMeter::part_sizes(parts)
            + own.div_ceil(PULSE_ROWS)
            + ELEMENT_BYTES * (promised + own + peer)
            + DIGEST_BYTES;
        let differences = match role {
            Role::C => ELEMENT_BYTES * (only_p + only_c) + LinkMeter::part_sizes(parts),
            Role::P => ELEMENT_BYTES * (slices + sizes.rows[0] + only_p),
        };
        streams + COUNT_BYTES * slices + differences + DIGEST_BYTES
    };
    let rounds = [Role::C, Role::P].map(|role| meter(role, sizes, parts).turns).into_iter().max();
    Cost { rounds: rounds.unwrap_or(0), sent: vec![sent(Role::C), sent(Role::P)], ..Cost::zero(2) }
}

/// Multiplications of the group per party. Both do the same number, besides hashing their own rows.
#[must_use]
pub fn multiplications(sizes: PairSizes) -> u64 {
    let [c, p] = sizes.only();
    2 * (sizes.rows[0] + sizes.rows[1]) + c + p
}

/// What a party takes on disk, where nobody is in both: then all is raised.
pub(super) fn disk(rows: [u64; 2], me: PartyId) -> MatchDisk {
    let [own, peer] = [me, me.other()].map(|party| rows[party.index()]);
    let [placed, own_elements, elements] =
        [ROW_BYTES as u64 * own, ELEMENT_BYTES * own, ELEMENT_BYTES * peer];
    let mut disk = DiskSchedule::default();
    disk.pass_through(identifiers::TAG_BYTES * own);
    // Own rows, once and twice raised, and the peer's.
    disk.write(placed);
    disk.read(placed);
    disk.write(placed + elements);
    disk.drop(placed);
    // Own ones that the peer has not.
    disk.read(elements);
    disk.write(own_elements);
    disk.drop(elements);
    disk.read(own_elements);
    if me == PartyId(0) {
        // Raised, while the peer's wait.
        disk.write(own_elements + elements);
        disk.read(own_elements + elements);
    }
    disk.drop(own_elements);
    disk.write(elements);
    if me == PartyId(0) {
        disk.drop(own_elements + elements);
    }
    disk.read(placed + elements);
    disk.write(PLACE_BYTES * own);
    disk.drop(placed + elements);
    disk.disk(own.max(peer))
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
        // Two million elements are two partitions; the size of one says that of the other.
        let n = 1_000_000;
        let sizes = PairSizes::new([n, n], n + n / 2);
        let pulses = 2 * n.div_ceil(PULSE_ROWS) + 2 * (n / 2).div_ceil(PULSE_ROWS);
        let counts = 2 * 8 * 256;
        let words = counts + 2 * HELLO_BYTES + 4 * 32 + pulses;
        assert_eq!(price(sizes, 1).bytes(), n * 208 + words + 3 * 8);
        assert_eq!(price(sizes, 64).bytes(), n * 208 + words + 3 * 8 * 63);
        assert_eq!(multiplications(sizes), 5 * n);
    }

    #[test]
    fn pulses_that_are_sent_are_taken_and_few_wait() {
        for (own, peer) in [(0, 0), (1, 0), (0, 9), (40, 40), (100, 3), (5, 1000), (1000, 1001)] {
            for rows in [CHUNK, CHUNK - 1, 1000] {
                let totals = [own * CHUNK, peer * CHUNK];
                let mut beats = [PulseBeat::new(totals[0], totals[1]), PulseBeat::new(totals[1], totals[0])];
                let (mut sent, mut taken, mut done) = ([0u64; 2], [0u64; 2], [0u64; 2]);
                while done != totals {
                    for me in 0..2 {
                        let more = rows.min(totals[me] - done[me]);
                        done[me] += more;
                        let [send, take] = beats[me].after(more);
                        sent[me] += send;
                        taken[me] += take;
                    }
                    for me in 0..2 {
                        let ended = done[1 - me] == totals[1 - me];
                        assert!(ended || sent[me] <= taken[1 - me] + PULSE_LAG + 2, "{own} {peer}");
                        assert!(taken[me] <= sent[1 - me], "it would wait for what is not sent yet");
                    }
                }
                assert_eq!([taken[1] + beats[1].left, taken[0] + beats[0].left], sent, "{own} {peer}");
            }
        }
    }
}

//! What Private-ID costs, from the schedule that the driver itself follows.

use super::{Role, Sizes};
use crate::group::ELEMENT_BYTES;
use base::Cost;
use std::ops::Range;

/// Rows whose elements travel in one message.
pub const CHUNK: u64 = 4096;

/// Rows of the difference after which a party shows that it is still at work.
pub(super) const PULSE: u64 = 4 * CHUNK;

/// Bytes of a count or of one half of a digest's exchange.
const COUNT_BYTES: u64 = 8;
const DIGEST_BYTES: u64 = 32;

/// The chunks of a column, in order.
pub(super) fn chunks(rows: u64) -> impl Iterator<Item = Range<u64>> {
    (0..rows.div_ceil(CHUNK)).map(move |i| i * CHUNK..rows.min((i + 1) * CHUNK))
}

/// One thing a party does while both stream: rows of its own column or of the peer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
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
/// whatever the two sizes are: a row costs its owner two multiplications and the peer two. At most three chunks of
/// u and of v are on their way in one direction, far below the window of a channel.
pub(super) fn stream(own: u64, peer: u64) -> impl Iterator<Item = Move> {
    let rounds = own.max(peer).div_ceil(CHUNK);
    let chunk = |rows: u64, i: Option<u64>| {
        let start = i? * CHUNK;
        (start < rows).then(|| start..rows.min(start + CHUNK))
    };
    (0..if rounds == 0 { 0 } else { rounds + 2 }).flat_map(move |i| {
        let send = chunk(own, Some(i)).map(Move::SendU);
        let answer = chunk(peer, i.checked_sub(1)).map(Move::AnswerV);
        let take = chunk(own, i.checked_sub(2)).map(Move::TakeV);
        [send, answer, take].into_iter().flatten()
    })
}

const _: () = assert!(6 * CHUNK * ELEMENT_BYTES <= base::limits::WINDOW_BYTES as u64);

/// Counts bytes sent and waits for an answer, like the ledger of a session.
#[derive(Default)]
struct Meter {
    sent: u64,
    turns: u64,
    spoke: bool,
}

impl Meter {
    fn send(&mut self, bytes: u64) {
        self.sent += bytes;
        self.spoke |= bytes > 0;
    }

    fn recv(&mut self) {
        self.turns += u64::from(std::mem::take(&mut self.spoke));
    }

    fn send_column(&mut self, rows: u64) {
        self.send(rows * ELEMENT_BYTES);
    }

    fn recv_column(&mut self, rows: u64) {
        if rows > 0 {
            self.recv();
        }
    }

    fn pulses(&mut self, send: u64, recv: u64) {
        for _ in 0..send.div_ceil(PULSE) {
            self.send(1);
            self.recv();
        }
        if recv > 0 {
            self.recv();
        }
    }

    /// Multiplies and sends one column, receives and multiplies another.
    fn exchange(&mut self, send: u64, recv: u64) {
        self.pulses(send, recv);
        for (out, into) in super::pairs(send, recv) {
            self.send_column(out.end - out.start);
            self.recv_column(into.end - into.start);
        }
        self.pulses(recv, send);
    }
}

fn meter(role: Role, sizes: Sizes) -> Meter {
    let mut m = Meter::default();
    let (own, peer) = (sizes.rows[role as usize], sizes.rows[1 - role as usize]);
    let only = sizes.only();
    m.send(COUNT_BYTES);
    m.recv();
    for step in stream(own, peer) {
        match step {
            Move::SendU(rows) => m.send_column(rows.end - rows.start),
            Move::AnswerV(rows) => {
                m.recv();
                m.send_column(rows.end - rows.start);
            }
            Move::TakeV(_) => m.recv(),
        }
    }
    match role {
        Role::C => {
            m.recv_column(own);
            m.send(COUNT_BYTES);
            m.send_column(only[1]);
            m.exchange(only[0], only[1]);
        }
        Role::P => {
            m.send_column(peer);
            m.recv();
            m.recv_column(only[1]);
            m.exchange(only[1], only[0]);
        }
    }
    m.send(DIGEST_BYTES);
    m.recv();
    m
}

/// The exact cost for sizes that are known: after a run, or for a planned overlap.
#[must_use]
pub fn price(sizes: Sizes) -> Cost {
    let [c, p] = [Role::C, Role::P].map(|role| meter(role, sizes));
    Cost { rounds: c.turns.max(p.turns), sent: vec![c.sent, p.sent], ..Cost::zero(2) }
}

/// The cost before a run, when only the sizes of both sides are known: from all rows shared to none.
#[must_use]
pub fn price_range(rows: [u64; 2]) -> [Cost; 2] {
    let union = [rows[0].max(rows[1]), rows[0] + rows[1]];
    union.map(|union| price(Sizes { rows, union }))
}

/// Multiplications of the group per party. Both do the same number, besides hashing their own rows.
#[must_use]
pub fn multiplications(sizes: Sizes) -> u64 {
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
            let mut pipes: [std::collections::VecDeque<Move>; 2] = Default::default();
            while moves.iter_mut().any(|m| m.peek().is_some()) {
                let mut went = false;
                for me in 0..2 {
                    while let Some(next) = moves[me].peek() {
                        let (needs, makes) = match next.clone() {
                            Move::SendU(r) => (None, Some(Move::SendU(r))),
                            Move::AnswerV(r) => (Some(Move::SendU(r.clone())), Some(Move::AnswerV(r))),
                            Move::TakeV(r) => (Some(Move::AnswerV(r)), None),
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
        let sizes = Sizes { rows: [n, n], union: n + n / 2 };
        let pulses = 4 * (n / 2).div_ceil(PULSE);
        assert_eq!(price(sizes).bytes(), n * 208 + 2 * 8 + 8 + 2 * 32 + pulses);
        assert_eq!(multiplications(sizes), 5 * n);
        let [least, most] = price_range([n, n]);
        assert!(least.bytes() < price(sizes).bytes() && price(sizes).bytes() < most.bytes());
    }
}

//! What a conversation of OTs costs when the cost of a call depends on the calls before it.

use crate::ferret::TreeSchedule;
use crate::hub::HUB_K;
use crate::pair::{BATCH_MAX, follow_bytes};
use crate::{ExtensionCost, OtKind, base_ot, softspoken};
use kernels::Block;

/// One side of a conversation.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    sent: u64,
    turns: u64,
    spoke: bool,
}

impl Side {
    fn hears(&mut self) {
        self.turns += u64::from(std::mem::take(&mut self.spoke));
    }
}

/// What silent OT has ready.
#[derive(Clone, Copy, Debug)]
struct Pool {
    schedule: TreeSchedule,
    ready: u64,
}

/// Prices the OTs of one sender and one receiver: tell it the calls in order, then ask for the
/// [`PriceMeter::price`].
///
/// Bytes and OTs are exact. Turns are those of a conversation with nothing else in it.
#[derive(Clone, Debug)]
pub struct PriceMeter {
    kind: OtKind,
    pool: Pool,
    ots: u64,
    sender: Side,
    receiver: Side,
}

impl PriceMeter {
    /// A meter for a back end set up for about `expected` OTs, nothing said yet.
    #[must_use]
    pub fn new(kind: OtKind, expected: u64) -> Self {
        let pool = Pool { schedule: TreeSchedule::new(expected), ready: 0 };
        Self { kind, pool, ots: 0, sender: Side::default(), receiver: Side::default() }
    }

    /// The price of all calls so far.
    #[must_use]
    pub fn price(&self) -> ExtensionCost {
        let (sender, receiver) = (self.sender, self.receiver);
        let turns = sender.turns.max(receiver.turns);
        ExtensionCost { ots: self.ots, sender: sender.sent, receiver: receiver.sent, turns }
    }

    /// Turns of the sender and of the receiver, and whether the next thing that the sender hears is a turn of
    /// it: for a conversation in which OTs are a part.
    #[must_use]
    pub fn turns(&self) -> ([u64; 2], bool) {
        ([self.sender.turns, self.receiver.turns], self.sender.spoke)
    }

    pub(crate) fn sender_says(&mut self, bytes: usize) {
        self.sender.sent += bytes as u64;
        self.sender.spoke = true;
        self.receiver.hears();
    }

    fn receiver_says(&mut self, bytes: usize) {
        self.receiver.sent += bytes as u64;
        self.receiver.spoke = true;
        self.sender.hears();
    }

    /// Base OTs of their own.
    pub fn base(&mut self) {
        self.sender_says(base_ot::CHOICE_BYTES);
        self.receiver_says(base_ot::REPLY_BYTES);
    }

    /// Set-up over base OTs.
    pub fn setup(&mut self) {
        let trees = softspoken::setup_bytes(self.kind.k());
        if trees > 0 {
            self.receiver_says(trees);
        }
        if self.kind == OtKind::Ferret {
            let inputs = self.pool.schedule.extension().inputs();
            self.receiver_says(softspoken::random_bytes(self.kind.k(), inputs));
            self.ots += inputs as u64;
            self.boot();
        }
    }

    /// The part of Ferret's set-up in which the sender speaks.
    fn boot(&mut self) {
        while self.pool.schedule.is_boot() {
            self.step();
        }
    }

    fn step(&mut self) {
        let step = self.pool.schedule.peek();
        self.sender_says(step.bytes());
        self.pool.ready += step.yields() as u64;
        self.pool.schedule.advance();
    }

    /// `n` OTs with random choices; how they are cut into calls does not matter for whole batches of 128.
    pub fn correlated_random(&mut self, n: usize) {
        self.ots += n as u64;
        match self.kind {
            OtKind::SoftSpoken { .. } if n == 0 => {}
            OtKind::SoftSpoken { k } => self.receiver_says(softspoken::random_bytes(k, n)),
            OtKind::Ferret => {
                while self.pool.ready < n as u64 {
                    self.step();
                }
                self.pool.ready -= n as u64;
            }
        }
    }

    /// One call for `n` OTs with chosen bits, correlated or random.
    pub fn correlated(&mut self, n: usize) {
        match self.kind {
            _ if n == 0 => {}
            OtKind::SoftSpoken { k } => {
                self.ots += n as u64;
                self.receiver_says(softspoken::extension_bytes(k, n));
            }
            OtKind::Ferret => {
                self.correlated_random(n);
                self.receiver_says(n.div_ceil(8));
            }
        }
    }

    /// One call for `n` chosen OTs of `words` blocks per message.
    pub fn chosen(&mut self, n: usize, words: usize) {
        self.correlated(n);
        self.sender_says(2 * n * words * Block::BYTES);
    }
}

impl ExtensionCost {
    /// Both directions of one pair, set up by [`crate::setup_all`] with a full window. `sender` is the
    /// leader.
    #[must_use]
    pub fn pair(kind: OtKind, expected: u64) -> Self {
        let trees = softspoken::setup_bytes(kind.k()) as u64;
        let (sender, receiver) = (base_ot::CHOICE_BYTES as u64 + trees, follow_bytes(kind.k()) as u64);
        Self { ots: 0, sender, receiver, turns: 1 } + Self::boot_pair(kind, expected)
    }

    /// [`crate::Hubs`] of one pair and one fork for so many workers. `sender` is the leader.
    #[must_use]
    pub fn hubs(workers: u64) -> Self {
        let (fork, once) = (Self::fork(workers), Self::pair(OtKind::SoftSpoken { k: HUB_K }, 0));
        once + Self { ots: 2 * fork.ots, sender: fork.sender, receiver: fork.sender, turns: 1 }
    }

    /// What Ferret sends over its extensions before it serves, both directions.
    fn boot_pair(kind: OtKind, expected: u64) -> Self {
        if kind != OtKind::Ferret {
            return Self::default();
        }
        let mut one_way = PriceMeter::new(kind, expected);
        let inputs = one_way.pool.schedule.extension().inputs();
        let boots = one_way.pool.schedule.is_boot();
        one_way.boot();
        let each = one_way.sender.sent + softspoken::random_bytes(kind.k(), inputs) as u64;
        let turns = (inputs.div_ceil(BATCH_MAX) as u64 - 1).max(1) + u64::from(boots);
        Self { ots: 2 * inputs as u64, sender: each, receiver: each, turns }
    }
}

//! What shares of permuted tables cost, from the schedule that the drivers follow.

use super::network::switches;
use super::{Cut, WINDOW};
use base::{Cost, PartyId};
use ot::{ExtensionCost, OtKind, PriceMeter};

/// Adds up a conversation of two parties: bytes, OTs, and turns as the ledger counts them. Tell it what
/// happens in order.
#[derive(Clone, Debug)]
pub struct TransferBill {
    kind: OtKind,
    /// Of the OTs in which party 0 sends, and party 1.
    meters: Option<[PriceMeter; 2]>,
    ots: u64,
    sent: [u64; 2],
    turns: [u64; 2],
    spoke: [bool; 2],
}

impl TransferBill {
    /// Nothing said yet; OTs will be of this kind.
    #[must_use]
    pub fn new(kind: OtKind) -> Self {
        Self { kind, meters: None, ots: 0, sent: [0; 2], turns: [0; 2], spoke: [false; 2] }
    }

    /// `party` sends a message.
    pub fn say(&mut self, party: PartyId, bytes: u64) {
        self.sent[party.index()] += bytes;
        self.spoke[party.index()] = true;
    }

    /// `party` receives a message.
    pub fn hear(&mut self, party: PartyId) {
        self.turns[party.index()] += u64::from(std::mem::take(&mut self.spoke[party.index()]));
    }

    /// A [`super::Switchboard`] for about `expected` gates each way.
    pub fn set_up(&mut self, expected: u64) {
        let leads = ot::leads(PartyId(0), PartyId(1));
        let leader = if leads { PartyId(0) } else { PartyId(1) };
        let follower = leader.other();
        let price = ExtensionCost::pair(self.kind, expected);
        self.ots += price.ots;
        self.hear(follower);
        match self.kind {
            OtKind::SoftSpoken { k } => {
                self.say(leader, price.sender);
                self.say(follower, price.receiver);
                self.hear(leader);
                if ExtensionCost::setup(k).receiver > 0 {
                    self.say(leader, 0);
                    self.hear(follower);
                }
            }
            // Its last messages cross: nobody waits for an answer then.
            OtKind::Ferret => {
                self.say(leader, price.sender);
                self.say(follower, price.receiver);
                self.turns = self.turns.map(|turns| turns + price.turns);
                self.spoke = [false; 2];
            }
        }
        self.meters = Some([0, 1].map(|_| {
            let mut meter = PriceMeter::new(self.kind, expected);
            meter.setup();
            meter
        }));
    }

    /// A permutation of `rows` rows of `row_bytes`, in which `server` does not know the permutation.
    ///
    /// # Panics
    /// Before [`TransferBill::set_up`].
    pub fn permutation(&mut self, server: PartyId, rows: u64, row_bytes: usize) {
        self.gates(server, switches(rows), row_bytes);
    }

    /// An extended permutation of `rows` rows into `slots` slots.
    ///
    /// # Panics
    /// Before [`TransferBill::set_up`].
    pub fn extension(&mut self, server: PartyId, rows: u64, slots: u64, row_bytes: usize) {
        self.permutation(server, rows.max(slots), row_bytes);
        self.gates(server, slots.saturating_sub(1), row_bytes);
        self.permutation(server, slots, row_bytes);
    }

    /// The conversation of one network, in the order of the drivers.
    fn gates(&mut self, server: PartyId, gates: u64, row_bytes: usize) {
        let (cut, chooser) = (Cut::new(gates, row_bytes, WINDOW), server.other());
        // What either says when it posts the OTs of a chunk.
        let posts: Vec<[u64; 2]> =
            (0..cut.chunks()).map(|chunk| self.post(server, cut.chunk_len(chunk))).collect();
        let said = |chunk: usize| posts.get(chunk).copied().unwrap_or_default();
        for chunk in 0..cut.chunks().min(2) {
            self.speak(server, said(chunk));
        }
        self.take(server, said(0));
        for chunk in 0..=cut.chunks() {
            let len = cut.chunk_len(chunk) as u64;
            self.take(server, said(chunk + 1));
            if len > 0 {
                self.say(chooser, len.div_ceil(8));
                self.hear(server);
            }
            self.speak(server, said(chunk + 2));
            self.say_if(server, len * row_bytes as u64);
            if chunk > 0 {
                self.hear(chooser);
            }
        }
    }

    /// Bytes of the OTs of one chunk: those of the server and of the chooser.
    fn post(&mut self, server: PartyId, ots: usize) -> [u64; 2] {
        let meters = self.meters.as_mut().expect("set up first");
        let meter = &mut meters[server.index()];
        let before = meter.price();
        meter.correlated_random(ots);
        let after = meter.price();
        self.ots += after.ots - before.ots;
        [after.sender - before.sender, after.receiver - before.receiver]
    }

    fn speak(&mut self, server: PartyId, [by_server, by_chooser]: [u64; 2]) {
        self.say_if(server, by_server);
        self.say_if(server.other(), by_chooser);
    }

    fn take(&mut self, server: PartyId, [by_server, by_chooser]: [u64; 2]) {
        if by_chooser > 0 {
            self.hear(server);
        }
        if by_server > 0 {
            self.hear(server.other());
        }
    }

    fn say_if(&mut self, party: PartyId, bytes: u64) {
        if bytes > 0 {
            self.say(party, bytes);
        }
    }

    /// The cost so far.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let rounds = self.turns[0].max(self.turns[1]);
        Cost { and_gates: 0, ots: self.ots, rounds, sent: self.sent.to_vec() }
    }
}

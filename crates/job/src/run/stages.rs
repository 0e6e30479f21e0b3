//! Time and bytes of each stage, held against the price that was stated for it.

use super::Event;
use base::{Cost, PartyId};
use report::StageReport;
use std::sync::Arc;
use std::time::Instant;

pub(super) struct Stages {
    me: PartyId,
    parties: usize,
    events: Arc<dyn Fn(Event) + Send + Sync>,
    begun: Instant,
    done: Vec<StageReport>,
}

impl Stages {
    pub fn new(me: PartyId, parties: usize, events: Arc<dyn Fn(Event) + Send + Sync>) -> Self {
        Self { me, parties, events, begun: Instant::now(), done: Vec::new() }
    }

    pub fn begin(&mut self, name: &str, rows: u64) {
        self.begun = Instant::now();
        (self.events)(Event::Stage { name: name.to_owned(), rows });
    }

    /// Books what the ledger counted under `name`. What this party received is what the others sent to it: of
    /// two parties all that they sent, so that both sides of the price can be held against it; of more, this
    /// party's own.
    pub fn end(&mut self, said: &net::Traffic, name: &str, rows: u64, price: Cost) {
        let me = self.me.index();
        let mut bytes_sent = said.received_by_peer(name, self.parties);
        bytes_sent[me] = said.sent(name);
        let price_held = match self.parties {
            2 => {
                let work = [said.and_gates(name), said.ots(name)];
                price.sent == bytes_sent && work == [price.and_gates, price.ots]
            }
            _ => price.sent[me] == bytes_sent[me],
        };
        let stage = StageReport {
            name: name.to_owned(),
            seconds: self.begun.elapsed().as_secs_f64(),
            rows,
            price_held,
            bytes_sent,
            price,
        };
        (self.events)(Event::StageDone(stage.clone()));
        self.done.push(stage);
    }

    pub fn all(&self) -> &[StageReport] {
        &self.done
    }
}

//! Time and bytes of each stage, held against the price that was stated for it.

use super::Event;
use crate::report::Stage;
use base::{Cost, PartyId};
use std::sync::Arc;
use std::time::Instant;

pub(super) struct Stages {
    me: PartyId,
    events: Arc<dyn Fn(Event) + Send + Sync>,
    begun: Instant,
    done: Vec<Stage>,
}

impl Stages {
    pub fn new(me: PartyId, events: Arc<dyn Fn(Event) + Send + Sync>) -> Self {
        Self { me, events, begun: Instant::now(), done: Vec::new() }
    }

    pub fn begin(&mut self, name: &str, rows: u64) {
        self.begun = Instant::now();
        (self.events)(Event::Stage { name: name.to_owned(), rows });
    }

    /// Books what the ledger counted under `name`. What this party received is what the other one sent.
    pub fn end(&mut self, said: &net::Ledger, name: &str, rows: u64, price: Cost) {
        let mut bytes_sent = vec![0; 2];
        bytes_sent[self.me.index()] = said.sent(name);
        bytes_sent[self.me.other().index()] = said.received(name);
        let work = [said.and_gates(name), said.ots(name)];
        let stage = Stage {
            name: name.to_owned(),
            seconds: self.begun.elapsed().as_secs_f64(),
            rows,
            price_held: price.sent == bytes_sent && work == [price.and_gates, price.ots],
            bytes_sent,
            price,
        };
        (self.events)(Event::StageDone(stage.clone()));
        self.done.push(stage);
    }

    pub fn all(&self) -> &[Stage] {
        &self.done
    }
}

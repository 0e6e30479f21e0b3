//! A party that takes no part, and says so: its peers would wait for it until their patience ends.
//!
//! What it says is one verdict of a hello, after both sides have proven their keys; not why.

use super::dial::Errand;
use super::door::Door;
use super::{DoorPolicy, Effort, Meet, RETRY};
use crate::accept::Admission;
use crate::hello::HelloVerdict;
use base::PartyId;
use std::time::{Duration, Instant};

impl Meet {
    /// Tells every peer that is there within `patience` that this party takes no part. A peer that is not
    /// reached, or comes later, is not told.
    pub fn decline(mut self, patience: Duration) {
        self.patience = patience;
        self.deadline = self.deadline.min(patience);
        let (until, effort) = (Instant::now() + patience, Effort::until(self.roster.len() - 1));
        let (meet, effort) = (&self, &effort);
        std::thread::scope(|scope| {
            for peer in meet.dial.keys() {
                scope.spawn(move || meet.decline_to(*peer, until, effort));
            }
            let awaited = meet.awaited().unwrap_or_default();
            if let (Some(address), false) = (&meet.listen, awaited.is_empty()) {
                let admission = Admission::new(meet.allow.clone(), meet.deadline);
                let gate = meet.gate(&awaited);
                if let Ok(door) = gate.and_then(|gate| Door::open(address, gate, admission, awaited)) {
                    let at = door.address();
                    if let Some(access) = &meet.access {
                        // Where there is no route, nobody is told.
                        scope.spawn(move || meet.keep_routes(access, at, until, effort).is_ok());
                    }
                    door.decline(meet, effort, until);
                }
            }
        });
    }

    /// Goes to a peer and says it, until an answer has come.
    fn decline_to(&self, peer: PartyId, until: Instant, effort: &Effort) {
        let gate: DoorPolicy = match self.gate(&[peer]) {
            Ok(gate) => gate,
            Err(_) => return,
        };
        let errand = Errand { peer, gate: &gate, effort };
        let word = self.control(peer, HelloVerdict::Declined, [0; 32]);
        while Instant::now() < until && !effort.over() {
            // Who cannot be reached, or answers something else, is not told: there is nobody to tell that to.
            let Ok(Some((mut channel, at))) = self.reach(errand, until) else { return };
            match self.ask(&mut channel, &word, &at, effort) {
                Ok(Ok(_)) => return effort.come(peer),
                Ok(Err(_)) => effort.pause(RETRY.0),
                Err(_) => return,
            }
        }
    }
}

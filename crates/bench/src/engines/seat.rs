//! One of the four participants of a lift study on `ring4`, in a process of its own: the two owners hold a seat each.

use crate::SEED;
use crate::names::SecurityName;
use crate::party::{Found, Keys, Measured, agreement, measured, parts};
use crate::rows::lift_study;
use ::ring4::{Ring4, Settings};
use accel::Queue;
use base::{Error, PartyId, Roster, Seed};
use engine::Engine;
use net::{Meet, Meeting, Session, Transport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use studies::lift::BenchRows;

/// Names, owners first.
pub const NAMES: [&str; 4] = ["publisher", "advertiser", "server-2", "server-3"];
const SEATS: [PartyId; 4] = [PartyId(0), PartyId(1), PartyId(2), PartyId(3)];
const PATIENCE: Duration = Duration::from_secs(60);

/// What one participant is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    pub security: SecurityName,
    pub rows: u64,
    pub seat: u8,
    /// Where it listens.
    pub listen: String,
    /// Where those before it are reached.
    pub dial: Vec<String>,
    pub tls: Keys,
}

/// The engine that all four run; messages are under TLS.
pub fn engine(security: SecurityName) -> Ring4 {
    let settings = Settings { security: security.model(), ..Settings::default() };
    Ring4::new(settings, SEATS, || Ok(Queue::default()))
}

impl Task {
    /// Does it.
    ///
    /// # Errors
    /// Those of the network and of the protocol.
    pub fn run(&self) -> Result<Measured, Error> {
        let (me, roster) = (PartyId(self.seat), Roster::new(NAMES));
        let dial: BTreeMap<_, _> = SEATS.into_iter().zip(self.dial.iter().cloned()).collect();
        let transport: Transport = self.tls.transport()?;
        let start = Instant::now();
        let listen = Some(self.listen.clone());
        let meet = Meet::all(me, roster.clone(), listen, dial, transport, agreement()).patience(PATIENCE);
        let Meeting { control, .. } = meet.meet(0)?;
        let meeting_seconds = start.elapsed().as_secs_f64();
        let mut session = Session::new(me, roster, control, Seed::from_system());
        let (program, lift, layout) = lift_study()?;
        let mut rows = BenchRows::new(&lift, &layout, Some(me), self.rows, SEED);
        let shares = engine(self.security).rows(&program, &mut rows, &mut session)?;
        session.finish()?;
        let done = measured(start, session.ledger().sent(""), Found::Shares(parts(&shares)));
        Ok(Measured { meeting_seconds, ..done })
    }
}

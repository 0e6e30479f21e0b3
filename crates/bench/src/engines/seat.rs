//! One of the four participants of a lift study on `ring4`, in a process of its own: the two owners hold a
//! seat each.

use crate::SEED;
use crate::four::{SEATS, ServerPlace};
use crate::names::SecurityName;
use crate::party::{PartyMeasurement, PartyResult, measured, parts};
use crate::rows::lift_study;
use ::ring4::{Ring4, Settings};
use accel::DeviceQueue;
use base::Error;
use engine::run_rows;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use studies::lift::BenchRows;

/// Names, owners first.
pub const NAMES: [&str; 4] = ["publisher", "advertiser", "server-2", "server-3"];

/// What one participant is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineTask {
    pub security: SecurityName,
    pub rows: u64,
    pub place: ServerPlace,
}

/// The engine that all four run; messages are under TLS.
pub fn engine(security: SecurityName) -> Ring4 {
    let settings = Settings { security: security.model(), ..Settings::default() };
    Ring4::new(settings, SEATS, || Ok(DeviceQueue::default()))
}

impl EngineTask {
    /// Does it.
    pub fn run(&self) -> Result<PartyMeasurement, Error> {
        let start = Instant::now();
        let mut session = self.place.meet(NAMES)?;
        let meeting_seconds = start.elapsed().as_secs_f64();
        let (program, lift, layout) = lift_study()?;
        let mut rows = BenchRows::new(&lift, &layout, Some(session.me()), self.rows, SEED);
        let shares = run_rows(&engine(self.security), &program, &mut rows, &mut session)?;
        session.finish()?;
        let done = measured(start, session.traffic().sent(""), PartyResult::Shares(parts(&shares)));
        Ok(PartyMeasurement { meeting_seconds, ..done })
    }
}

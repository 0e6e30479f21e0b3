//! One of the four participants of a lift study on `ring4`, in a process of its own: the two owners hold a
//! seat each.

use crate::SEED;
use crate::four::{SEATS, ServerPlace};
use crate::names::{SecurityName, TransportName};
use crate::party::{PartyMeasurement, PartyResult, measured, parts};
use crate::ring4::{DeviceName, open};
use crate::rows::lift_study;
use ::ring4::{Ring4, RingRows, RowPhase, Settings};
use accel::DeviceQueue;
use base::Error;
use engine::{PreparedRows, RowInput, run_lanes};
use fabric::{PlainTransport, UpgradeOutcome};
use net::Session;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use studies::lift::BenchRows;

/// Names, owners first.
pub const NAMES: [&str; 4] = ["publisher", "advertiser", "server-2", "server-3"];

/// What one participant is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineTask {
    pub setting: RowsSetting,
    pub place: ServerPlace,
}

/// Rows of a lift study, and how they are computed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowsSetting {
    pub security: SecurityName,
    pub rows: u64,
    /// Ranges that are computed at once.
    pub lanes: u32,
    pub device: DeviceName,
    pub transport: TransportName,
    /// Of libfabric.
    pub provider: String,
    /// Of the memory of a card, for each range.
    pub card_bytes: usize,
}

/// What one participant measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowsMeasurement {
    pub party: PartyMeasurement,
    /// Seconds by [`RowPhase`], of all lanes.
    pub phases: [f64; RowPhase::ALL.len()],
    /// What its device did: commands, and operations that were handed over; and commands that the CPU took
    /// over.
    pub device: [u64; 3],
}

/// The engine that all four run, on the CPU.
pub fn engine(security: SecurityName, masked: bool) -> Ring4 {
    let settings = Settings { security: security.model(), masked, ..Settings::default() };
    Ring4::new(settings, SEATS, || Ok(DeviceQueue::default()))
}

impl RowsSetting {
    /// One range over TLS, on the CPU.
    pub fn plain(security: SecurityName, rows: u64) -> Self {
        let (device, transport) = (DeviceName::Cpu, TransportName::Tls);
        Self { security, rows, lanes: 1, device, transport, provider: String::new(), card_bytes: usize::MAX }
    }

    /// The engine, on the CPU.
    pub fn engine(&self) -> Ring4 {
        engine(self.security, self.transport != TransportName::Tls)
    }

    /// Its rows, made ready, on the CPU.
    pub fn stage(&self) -> Result<RingRows, Error> {
        Ok(self.engine().prepare(&lift_study()?.0))
    }

    /// How many rows each lane has.
    pub fn ranges(&self) -> impl Iterator<Item = u64> + use<> {
        let (rows, lanes) = (self.rows, u64::from(self.lanes));
        (0..lanes).map(move |lane| rows.saturating_sub(lane).div_ceil(lanes))
    }

    /// Goes on over shared memory or libfabric, where that is measured.
    fn upgrade(&self, session: &mut Session) -> Result<(), Error> {
        let kind = match self.transport {
            TransportName::Shm => PlainTransport::Shm,
            TransportName::Fabric => PlainTransport::Fabric { provider: self.provider.clone() },
            _ => return Ok(()),
        };
        // Keys and outputs stay on TLS.
        session.keep_private();
        // The network between processes of one machine is trusted, and the data is made up.
        match fabric::upgrade(session, &session.peers(), &kind, true)? {
            UpgradeOutcome::Upgraded(_) => Ok(()),
            UpgradeOutcome::Kept(why) => Err(Error::input(format!(
                "the four parties went on over TLS instead of {kind}: {why}; use --transport tls"
            ))),
        }
    }
}

impl EngineTask {
    /// Does it.
    pub fn run(&self) -> Result<RowsMeasurement, Error> {
        let start = Instant::now();
        let setting = &self.setting;
        let (mut session, mut lanes) = self.place.meet_over(NAMES, setting.lanes - 1)?;
        setting.upgrade(&mut session)?;
        lanes.iter_mut().try_for_each(|lane| setting.upgrade(lane))?;
        let meeting_seconds = start.elapsed().as_secs_f64();
        let (device, seat, most) = (setting.device, usize::from(session.me().0), setting.card_bytes);
        let engine = setting.engine().with_devices(move || Ok(open(device, 1, seat, most)?.0));
        let (program, lift, layout) = lift_study()?;
        let stage = engine.prepare(&program);
        let me = session.me();
        let rows =
            |lane| BenchRows::new(&lift, &layout, Some(me), setting.rows, SEED).shard(lane, setting.lanes);
        let ranges = (0..setting.lanes).map(rows).collect();
        let run = |mut rows: BenchRows, session: &mut Session| stage.run(RowInput::Owned(&mut rows), session);
        let shares = run_lanes(&program, (&mut session, &mut lanes), ranges, run, |error| error)?;
        session.finish()?;
        let sent = session.traffic().sent("rows");
        let done = measured(start, sent, PartyResult::Shares(parts(&shares)));
        let party = PartyMeasurement { meeting_seconds, ..done };
        let phases = RowPhase::ALL.map(|phase| stage.times().seconds(phase));
        let work = stage.times().device_work();
        Ok(RowsMeasurement { party, phases, device: [work.commands, work.handed_over, work.taken_over] })
    }
}

//! One of the four parties of `bench ring4`, in a process of its own.

use super::args::{DeviceName, ElementBits, HashName};
use super::devices::{self, Cycles};
use crate::four::{SEATS, ServerPlace};
use crate::names::{SecurityName, TransportName};
use ::ring4::{
    CHUNK_BLOCKS, DeviceShares, RoundQuote, SeatParty, Security, Settings, SharedVector, TagHash, VectorRing,
};
use base::Error;
use fabric::{PlainTransport, UpgradeOutcome};
use job::usage;
use kernels::Block;
use net::Session;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Instant;

/// Names, in order of the seats.
pub const NAMES: [&str; 4] = ["seat-0", "seat-1", "seat-2", "seat-3"];
/// Blocks of which factors and products are opened.
const SAMPLE: u64 = 64;

/// What is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeatSetting {
    pub security: SecurityName,
    pub hash: HashName,
    pub bits: ElementBits,
    pub device: DeviceName,
    /// Behind the queue of each party.
    pub devices: usize,
    pub transport: TransportName,
    /// Of libfabric.
    pub provider: String,
    /// Elements of a vector; whole blocks.
    pub vector: u64,
    /// Rounds of one run.
    pub rounds: u64,
    pub repeat: u32,
    /// Dependent products of one block each.
    pub chain: u64,
    /// Which blocks are opened is a function of it.
    pub sample: u64,
    /// Of the memory of a card, for each device.
    pub card_bytes: usize,
}

impl SeatSetting {
    pub fn ring(&self) -> VectorRing {
        match self.bits {
            ElementBits::Z128 => VectorRing::Z128,
            ElementBits::Z64 => VectorRing::Z64,
            ElementBits::Z2 => VectorRing::Z2,
        }
    }

    /// Whether messages are hidden from the fourth party: where it could read them.
    pub fn masked(&self) -> bool {
        self.transport != TransportName::Tls
    }

    pub fn settings(&self) -> Settings {
        Settings {
            security: self.security.model(),
            hash: match self.hash {
                HashName::Keyed => TagHash::Keyed,
                HashName::Blake3 => TagHash::Blake3,
            },
            masked: self.masked(),
        }
    }

    /// What each party sends in one round of products.
    pub fn price(&self) -> Vec<u64> {
        self.price_under(self.settings())
    }

    /// What all parties send in one round beyond the elements themselves.
    pub fn tags(&self) -> u64 {
        let bare = Settings { security: Security::SemiHonest, ..self.settings() };
        let sum = |settings| self.price_under(settings).iter().sum::<u64>();
        sum(self.settings()) - sum(bare)
    }

    fn price_under(&self, settings: Settings) -> Vec<u64> {
        let mut quote = RoundQuote::new(settings, SEATS, SEATS.len());
        quote.multiply(self.ring(), self.vector as usize);
        quote.total().sent
    }
    /// The transport that takes over after everybody has met over TLS, if one does.
    pub fn plain(&self) -> Option<PlainTransport> {
        match self.transport {
            TransportName::Memory | TransportName::Tcp | TransportName::Tls => None,
            TransportName::Shm => Some(PlainTransport::Shm),
            TransportName::Fabric => Some(PlainTransport::Fabric { provider: self.provider.clone() }),
        }
    }
}

/// What one seat is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeatTask {
    pub setting: SeatSetting,
    pub place: ServerPlace,
}

/// One run at one seat.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SeatRun {
    pub seconds: f64,
    pub cpu_seconds: f64,
}

/// What one seat measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeatMeasurement {
    pub runs: Vec<SeatRun>,
    pub chains: Vec<SeatRun>,
    /// Sent in all rounds of products on long vectors, and how many there were.
    pub bytes_sent: u64,
    pub rounds: u64,
    pub peak_memory_bytes: u64,
    /// Commands that the CPU took over from the devices.
    pub taken_over: u64,
    /// Of simulated devices in all runs, by stage.
    pub cycles: Option<[u64; 2]>,
    /// Whether what was opened is what was computed in the clear.
    pub correct: bool,
}

impl SeatTask {
    /// Does it.
    pub fn run(&self) -> Result<SeatMeasurement, Error> {
        let mut session = self.place.meet(NAMES)?;
        let measured = self.setting.measure(&mut session)?;
        session.finish()?;
        Ok(measured)
    }
}

impl SeatSetting {
    /// Goes on over shared memory or libfabric, where that is measured; keys were agreed over TLS.
    fn upgrade(&self, session: &mut Session) -> Result<(), Error> {
        let Some(kind) = self.plain() else { return Ok(()) };
        let peers = session.peers();
        // The network between processes of one machine is trusted, and the data is made up.
        match fabric::upgrade(session, &peers, &kind, true)? {
            UpgradeOutcome::Upgraded(_) => Ok(()),
            UpgradeOutcome::Kept(why) => Err(Error::input(format!(
                "the four parties went on over TLS instead of {kind}, so there is nothing of it to measure: \
                 {why}; use --transport tls"
            ))),
        }
    }

    fn measure(&self, session: &mut Session) -> Result<SeatMeasurement, Error> {
        // Made-up data: over plain TCP the keys may be read.
        let new = if self.transport.meets_by_tls() { SeatParty::new } else { SeatParty::in_the_open };
        let (queue, cycles) =
            devices::open(self.device, self.devices, session.me().0.into(), self.card_bytes)?;
        // Each of several devices takes its share of every chunk.
        let queue = queue.with_least(CHUNK_BLOCKS / self.devices);
        let mut party = new(session, SEATS, self.settings(), queue)?;
        self.upgrade(session)?;
        let (ring, len) = (self.ring(), self.vector as usize);
        let [x, y] = [(); 2].map(|()| BenchVector::random(&mut party, ring, len));
        let (x, y) = (x?, y?);
        let multiply = |party: &mut SeatParty, session: &mut Session| {
            session.step("products", |session| x.multiply(party, session, &y))
        };
        // Connections and allocators are warm when the clock starts.
        let mut z = multiply(&mut party, session)?;
        let (mut runs, before) = (Vec::new(), cycles.slowest());
        for _ in 0..self.repeat {
            let clock = Clock::start(session)?;
            for _ in 0..self.rounds {
                z = multiply(&mut party, session)?;
            }
            runs.push(clock.stop(session)?);
        }
        let cycles = since(&cycles, before);
        let peak_memory_bytes = usage::peak_memory_bytes();
        let correct = self.sampled(&mut party, session, [&x, &y, &z])?;
        let (chains, chained) = self.chain(&mut party, session)?;
        Ok(SeatMeasurement {
            runs,
            chains,
            bytes_sent: session.traffic().sent("products"),
            rounds: u64::from(self.repeat) * self.rounds + 1,
            peak_memory_bytes,
            taken_over: party.queue().work().taken_over,
            cycles,
            correct: correct && chained,
        })
    }

    /// Opens some blocks of factors and products and multiplies them in the clear.
    fn sampled(
        &self,
        party: &mut SeatParty,
        session: &mut Session,
        vectors: [&BenchVector; 3],
    ) -> Result<bool, Error> {
        let [x, y, z] = vectors.map(|vector| vector.fetch(party));
        let [x, y, z] = [&*x?, &*y?, &*z?];
        let blocks = x.blocks() as u64;
        let places: Vec<usize> =
            (0..SAMPLE).map(|i| (crate::mix(self.sample ^ i) % blocks) as usize).collect();
        let mut opened = Vec::new();
        for shares in [x, y, z] {
            let parts = shares.parts().map(|part| places.iter().map(|&at| part[at]).collect());
            let some = SharedVector::from_parts(self.ring(), places.len() * self.ring().lanes(), parts);
            opened.push(session.step("sample", |session| party.open(session, &some))?);
        }
        let product = |i: usize| self.ring().mul(opened[0][i], opened[1][i]);
        Ok((0..places.len()).all(|i| opened[2][i] == product(i)))
    }

    /// Products of one block that wait for each other: v = v w + x.
    fn chain(&self, party: &mut SeatParty, session: &mut Session) -> Result<(Vec<SeatRun>, bool), Error> {
        let (ring, mut runs, mut correct) = (self.ring(), Vec::new(), true);
        for _ in 0..self.repeat {
            let [v, w, x] = [(); 3].map(|()| BenchVector::random(party, ring, ring.lanes()));
            let (v, w, x) = (v?, w?, x?);
            let clock = Clock::start(session)?;
            let mut last: Option<BenchVector> = None;
            for _ in 0..self.chain {
                let before = last.as_ref().unwrap_or(&v);
                let product = session.step("chain", |session| before.multiply(party, session, &w))?;
                last = Some(product.add(party, &x)?);
            }
            runs.push(clock.stop(session)?);
            let mut open = |vector: &BenchVector| -> Result<Block, Error> {
                let shares = vector.fetch(party)?;
                Ok(session.step("sample", |session| party.open(session, &shares))?[0])
            };
            let [v, w, x, last] = [open(&v)?, open(&w)?, open(&x)?, open(last.as_ref().unwrap_or(&v))?];
            let clear = (0..self.chain).fold(v, |v: Block, _| ring.add(ring.mul(v, w), x));
            correct &= clear == last;
        }
        Ok((runs, correct))
    }
}

/// A vector where the device of the party has it: in its own memory, or in the host's.
enum BenchVector {
    Host(SharedVector),
    Device(DeviceShares),
}

impl BenchVector {
    fn random(party: &mut SeatParty, ring: VectorRing, len: usize) -> Result<Self, Error> {
        let shares = party.random(ring, len);
        Ok(if party.keeps_vectors() { Self::Device(party.keep(&shares)?) } else { Self::Host(shares) })
    }

    fn multiply(&self, party: &mut SeatParty, session: &mut Session, other: &Self) -> Result<Self, Error> {
        match (self, other) {
            (Self::Host(x), Self::Host(y)) => Ok(Self::Host(party.multiply(session, x, y)?)),
            (Self::Device(x), Self::Device(y)) => {
                Ok(Self::Device(party.dot_on_device(session, &[x], &[y])?))
            }
            _ => Err(Error::misuse("vectors of one party lie in one place")),
        }
    }

    fn add(self, party: &mut SeatParty, other: &Self) -> Result<Self, Error> {
        match (self, other) {
            (Self::Host(mut x), Self::Host(y)) => x.add(y).map(|()| Self::Host(x)),
            (Self::Device(x), Self::Device(y)) => Ok(Self::Device(party.add_on_device(false, &x, y)?)),
            _ => Err(Error::misuse("vectors of one party lie in one place")),
        }
    }

    fn fetch(&self, party: &mut SeatParty) -> Result<Cow<'_, SharedVector>, Error> {
        Ok(match self {
            Self::Host(x) => Cow::Borrowed(x),
            Self::Device(x) => Cow::Owned(party.fetch(x)?),
        })
    }
}

/// Cycles from an earlier count on.
fn since(cycles: &Cycles, before: Option<[u64; 2]>) -> Option<[u64; 2]> {
    let (now, before) = (cycles.slowest()?, before?);
    Some([0, 1].map(|stage| now[stage].saturating_sub(before[stage])))
}

/// Time and CPU of this process between two points that all four have reached.
struct Clock {
    start: Instant,
    cpu: f64,
}

impl Clock {
    fn start(session: &mut Session) -> Result<Self, Error> {
        together(session)?;
        Ok(Self { start: Instant::now(), cpu: cpu_seconds() })
    }

    fn stop(self, session: &mut Session) -> Result<SeatRun, Error> {
        together(session)?;
        Ok(SeatRun { seconds: self.start.elapsed().as_secs_f64(), cpu_seconds: cpu_seconds() - self.cpu })
    }
}

/// What is said then: a block, so that messages that follow in shared memory lie as they do elsewhere.
const TOGETHER: [u8; Block::BYTES] = [1; Block::BYTES];

/// Waits until all four are here.
fn together(session: &mut Session) -> Result<(), Error> {
    session.step("together", |session| {
        let peers = session.peers();
        for &peer in &peers {
            session.link(peer).send(&TOGETHER)?;
            session.link(peer).flush()?;
        }
        peers.into_iter().try_for_each(|peer| session.link(peer).recv(&mut [0; TOGETHER.len()]))
    })
}

/// CPU time of all threads of this process.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

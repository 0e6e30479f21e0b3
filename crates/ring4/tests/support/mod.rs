//! Four parties in one process.

use accel::{DeviceQueue, Seat, VectorRing};
use base::{Error, PartyId, Roster, Seed};
use kernels::{Aes128, Block};
use net::Session;
use net::cluster::Cluster;
use ring4::{SeatParty, Security, Settings, SharedVector, TagHash};

pub const SEATS: [PartyId; 4] = [PartyId(0), PartyId(1), PartyId(2), PartyId(3)];

/// All settings.
#[allow(dead_code, reason = "each test program takes what it needs")]
pub fn settings() -> Vec<Settings> {
    let mut all = Vec::new();
    for masked in [false, true] {
        all.push(Settings { security: Security::SemiHonest, hash: TagHash::Keyed, masked });
        for hash in [TagHash::Keyed, TagHash::Blake3] {
            all.push(Settings { security: Security::Malicious, hash, masked });
        }
    }
    all
}

/// Pseudorandom blocks.
pub fn random(label: u64, n: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; n];
    kernels::stream(&Aes128::new(Block(77)), label, 0, &mut out);
    out
}

/// A party of a session of four.
pub fn party(session: &mut Session, settings: Settings) -> Result<SeatParty, Error> {
    SeatParty::new(session, SEATS, settings, DeviceQueue::default())
}

/// Runs `work` at all four seats.
#[allow(dead_code, reason = "each test program takes what it needs")]
pub fn run<T: Send>(
    settings: Settings,
    work: impl Fn(&mut SeatParty, &mut Session) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    Cluster::new(4, 6).run(|session| {
        let mut party = party(session, settings)?;
        work(&mut party, session)
    })
}

/// A session without peers, for a speculator.
#[allow(dead_code, reason = "each test program takes what it needs")]
pub fn alone() -> Session {
    Session::alone(Roster::new(["alone"]), Seed::from_bytes([0; 32]))
}

/// Values that the seat `owner` enters; the others need only their number.
pub fn enter(
    party: &mut SeatParty,
    session: &mut Session,
    owner: usize,
    (ring, len): (VectorRing, usize),
    value: &[Block],
) -> Result<SharedVector, Error> {
    let owner = Seat::new(owner);
    let value = if party.seat() == owner { value } else { &[] };
    party.input(session, owner, (ring, len), value)
}

//! `bench match`: a matching protocol on made-up people.

use super::party::Found;
use super::people::{self, People};
use super::{joined, spine};
use crate::args::{BackendName, Bench, Protocol};
use base::Seed;
use base::{Error, PartyId};
use matching::dummies::Dummies;
use matching::ps3i::Backend;
use matching::{Joined, Layout, Spine, Table, circuit_psi, collecting, multi, pid, ps3i};
use net::Session;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is matched, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setting {
    protocol: Protocol,
    rows: u64,
    shared: u64,
    columns: u8,
    dummies: bool,
    backend: BackendName,
    memory: Option<u64>,
    /// Where joined shares are left for the check.
    pub folder: Option<PathBuf>,
}

/// Most rows of party 1 that one of party 0 collects.
const SLOTS: u32 = 2;

/// What came out at one party.
pub enum Matched {
    /// Positions in a spine.
    Spine(Spine),
    /// Shares.
    Joined(Joined),
}

impl Setting {
    /// As the command line says.
    pub fn of(args: &Bench) -> Self {
        Self {
            protocol: args.protocol,
            rows: args.rows,
            shared: people::shared(args.rows, args.overlap),
            columns: args.columns,
            dummies: args.dummies,
            backend: args.backend,
            memory: args.memory,
            folder: None,
        }
    }

    /// Rows of both sides, shared people once.
    pub fn union(&self) -> u64 {
        2 * self.rows - self.shared
    }

    /// Columns of 64 bits that each side brings, where the protocol carries any.
    pub fn columns(&self) -> Option<u8> {
        (!matches!(self.protocol, Protocol::Pid | Protocol::Multi)).then_some(self.columns)
    }

    fn people(&self, party: u8) -> People {
        let people = People::new(party, self.rows, self.shared);
        match self.protocol {
            Protocol::Multi => people.with_two_keys(),
            Protocol::Collecting => people.repeated(),
            _ => people,
        }
    }

    /// Multiplications of the group, by both parties, those of dummies left out.
    pub fn products(&self) -> u64 {
        let (rows, union) = ([self.rows; 2], self.union());
        match self.protocol {
            Protocol::Pid => 2 * pid::multiplications(pid::Sizes { rows, union }),
            Protocol::Multi => {
                let sizes = multi::Sizes { rows, keys: [2; 2], union };
                [0, 1].map(|party| multi::multiplications(sizes, PartyId(party))).iter().sum()
            }
            // Every name by both keys; a row of party 0 has a name per slot.
            Protocol::Ps3i => 2 * (rows[0] + rows[1]),
            Protocol::Collecting => 2 * (rows[0] * u64::from(SLOTS) + rows[1]),
            Protocol::CircuitPsi => 0,
        }
    }

    fn dummies(&self) -> Option<Dummies> {
        self.dummies.then(|| Dummies::usual(&Seed::from_system()))
    }

    /// What a dummy row carries: nobody.
    fn blank(&self) -> Option<Vec<u8>> {
        self.dummies.then(|| vec![0xff; 8 * usize::from(self.columns)])
    }

    fn backend(&self) -> Backend {
        match self.backend {
            BackendName::PermuteShare => Backend::PermuteShare,
            BackendName::Paillier => Backend::Paillier,
        }
    }

    /// Runs the protocol as one party, on one thread.
    ///
    /// # Errors
    /// Those of the protocol.
    pub fn run(&self, party: u8, session: &mut Session) -> Result<Matched, Error> {
        let people = self.people(party);
        match self.protocol {
            Protocol::Pid => {
                let options = pid::Options {
                    threads: 1,
                    memory: self.memory,
                    dummies: self.dummies(),
                    ..pid::Options::default()
                };
                Ok(Matched::Spine(pid::run(session, &people, &options)?))
            }
            Protocol::Multi => {
                let options =
                    multi::Options { threads: 1, dummies: self.dummies(), ..multi::Options::default() };
                Ok(Matched::Spine(multi::run(session, &people, &options)?.spine))
            }
            Protocol::Ps3i => {
                let options = ps3i::Options {
                    threads: 1,
                    dummies: self.dummies(),
                    blank: self.blank(),
                    backend: self.backend(),
                    ..ps3i::Options::default()
                };
                let (payload, layout) = self.payload(party)?;
                Ok(Matched::Joined(ps3i::run(session, &people, &payload, &layout, &options)?.joined))
            }
            Protocol::Collecting => {
                let options = collecting::Options {
                    threads: 1,
                    slots: SLOTS,
                    dummies: self.dummies(),
                    blank: self.blank(),
                    backend: self.backend(),
                    ..collecting::Options::default()
                };
                let (payload, layout) = self.payload(party)?;
                Ok(Matched::Joined(collecting::run(session, &people, &payload, &layout, &options)?.joined))
            }
            Protocol::CircuitPsi => {
                let options =
                    circuit_psi::Options { dummies: self.dummies(), ..circuit_psi::Options::default() };
                let (payload, layout) = self.payload(party)?;
                let own = (party == 1).then_some(&payload);
                Ok(Matched::Joined(circuit_psi::run(session, &people, own, &layout, &options)?.joined))
            }
        }
    }

    /// The party's payload, and the peer's layout: the same.
    fn payload(&self, party: u8) -> Result<(Table, Layout), Error> {
        let columns = self.columns.into();
        Ok((joined::payload(&self.people(party), self.rows, columns)?, joined::layout(columns)?))
    }

    /// What the check needs of it.
    ///
    /// # Errors
    /// When shares cannot be left in the folder.
    pub fn found(&self, party: u8, matched: &Matched) -> Result<Found, Error> {
        let people = self.people(party);
        match (matched, &self.folder) {
            (Matched::Spine(spine), _) => Ok(Found::Spine(spine::digest(people, spine))),
            (Matched::Joined(joined), Some(folder)) => {
                let path = folder.join(PartyId(party).to_string());
                joined::save(joined, &people, &path)?;
                Ok(Found::Joined(path))
            }
            (Matched::Joined(_), None) => Err(Error::misuse("shares of a join need a folder for the check")),
        }
    }
}

/// Whether what both parties found is the match that was asked for.
///
/// # Errors
/// When shares cannot be read.
pub fn correct(setting: &Setting, found: [&Found; 2]) -> Result<bool, Error> {
    match found {
        [Found::Spine(a), Found::Spine(b)] => {
            Ok(spine::agree(setting.rows, setting.shared, [*a, *b], setting.dummies))
        }
        [Found::Joined(a), Found::Joined(b)] => {
            let held = [joined::load(a)?, joined::load(b)?];
            let expected = joined::Expected {
                rows: setting.rows,
                pairs: setting.shared,
                columns: setting.columns.into(),
            };
            Ok(joined::agree(&held, setting.people(0), expected))
        }
        _ => Ok(false),
    }
}

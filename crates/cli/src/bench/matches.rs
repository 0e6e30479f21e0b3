//! `bench match`: a matching protocol on made-up people.

use super::party::Found;
use super::people::{self, People};
use super::{joined, spine};
use crate::args::{BackendName, Bench, Protocol};
use base::{Error, PartyId};
use matching::pid;
use matching::{Joined, Spine};
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

    /// Multiplications of the group, by both parties.
    pub fn products(&self) -> u64 {
        let sizes = pid::Sizes { rows: [self.rows; 2], union: self.union() };
        match self.protocol {
            Protocol::Pid => 2 * pid::multiplications(sizes),
            _ => 0,
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
                let options = pid::Options { threads: 1, ..pid::Options::default() };
                Ok(Matched::Spine(pid::run(session, &people, &options)?))
            }
            _ => Err(Error::input("bench match does not measure this protocol yet")),
        }
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
        [Found::Spine(a), Found::Spine(b)] => Ok(spine::agree(setting.rows, setting.shared, [*a, *b])),
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

//! `bench match`: a matching protocol on made-up people.

use super::joined::PeopleValues;
use super::names::{TransportName, only};
use super::party::{PartyMeasurement, PartyResult, Work};
use super::people::{self, People};
use super::two::{self, PairSummary, core_each};
use super::{PARTIES, expect, joined, spine, tell};
use base::Seed;
use base::{Error, PartyId};
use clap::{Args, ValueEnum};
use matching::dummies::Dummies;
use matching::{
    CircuitJoin, CollectingJoin, InnerJoin, MatchOptions, MatchOutput, Matcher, MultiId, PairSizes,
    PrivateId, ShareBackend, multi_pid, pid,
};
use net::Session;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::party::parse_memory;
use terminal::progress::{Board, Working};
use terminal::values::NamedValue as _;
use terminal::values::{count, share};

/// Measures a matching protocol.
#[derive(Clone, Debug, Args)]
pub struct MatchingArgs {
    /// Rows of each side
    #[arg(long, value_name = "N", value_parser = count)]
    rows: u64,
    /// The protocol
    #[arg(long, default_value = "pid")]
    protocol: ProtocolName,
    /// Share of rows that both sides have
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    overlap: f64,
    /// Columns of 64 bits that each side brings to ps3i, collecting and circuit-psi (where one side brings
    /// them); 2 unless told otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    columns: Option<u8>,
    /// Add dummy rows that hide exact sizes, as studies do unless they say otherwise
    #[arg(long)]
    dummies: bool,
    /// What carries the columns of ps3i and collecting; permute-share unless told otherwise
    #[arg(long, value_name = "NAME")]
    backend: Option<BackendName>,
    /// Memory of each party for pid, ps3i and circuit-psi, such as 256M; beyond it columns go to disk
    #[arg(long, value_name = "BYTES", value_parser = parse_memory)]
    memory: Option<u64>,
    /// How bytes travel
    #[arg(long, value_name = "NAME", default_value = "tcp", value_parser = only(&TransportName::TWO))]
    transport: TransportName,
}

/// A matching protocol to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolName {
    /// Private-ID: one identifier, a spine of all rows.
    Pid,
    /// Private-ID with two identifiers per row.
    Multi,
    /// Inner join to shares.
    Ps3i,
    /// Inner join to shares, each person up to twice.
    Collecting,
    /// Join to shares that hides the size of the match.
    CircuitPsi,
}

/// What carries the columns of ps3i.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BackendName {
    /// Permutation networks over oblivious transfer.
    PermuteShare,
    /// Additively homomorphic encryption.
    Paillier,
}

impl MatchingArgs {
    /// Measures and prints.
    pub fn run(&self, json: bool) -> Result<(), Error> {
        self.check()?;
        let (board, folder) = (Board::stderr(), two::folder()?);
        let setting = MatchSetting::of(self, folder.path());
        let secrets = two::keys(self.transport, &PARTIES, folder.path())?;
        let work = Work::Match(setting.clone());
        let parties = two::measure(&work, secrets.as_deref(), core_each(), Duration::ZERO, Some(&board))?;
        board.end();
        let working = Working::on("checking the result");
        let correct = correct(&setting, &parties)?;
        drop(working);
        let summary = PairSummary {
            protocol: Some(self.protocol),
            transport: self.transport.word(),
            union: Some(setting.union()),
            multiplications_per_row: Some(setting.products() as f64 / self.rows as f64),
            columns: setting.columns(),
            ..PairSummary::new("match", self.rows, &PARTIES, &parties, correct)
        };
        tell(&summary, json, PairSummary::text)?;
        expect(correct)
    }

    /// Refuses a flag that does nothing for the protocol.
    fn check(&self) -> Result<(), Error> {
        use ProtocolName::{CircuitPsi, Collecting, Pid, Ps3i};
        let rules: [(&str, bool, &[ProtocolName], &str); 3] = [
            (
                "columns",
                self.columns.is_some(),
                &[Ps3i, Collecting, CircuitPsi],
                "ps3i, collecting or circuit-psi",
            ),
            ("backend", self.backend.is_some(), &[Ps3i, Collecting], "ps3i or collecting"),
            (
                "memory",
                self.memory.is_some(),
                &[Pid, Ps3i, Collecting, CircuitPsi],
                "pid, ps3i, collecting or circuit-psi",
            ),
        ];
        match rules.iter().find(|(_, given, of, _)| *given && !of.contains(&self.protocol)) {
            None => Ok(()),
            Some((flag, .., names)) => {
                Err(Error::input(format!("--{flag} goes with --protocol {names}; remove --{flag}")))
            }
        }
    }
}

/// What is matched, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MatchSetting {
    protocol: ProtocolName,
    rows: u64,
    shared: u64,
    columns: u8,
    dummies: bool,
    backend: BackendName,
    memory: Option<u64>,
    /// Where joined shares are left for the check.
    folder: PathBuf,
}

/// Most rows of party 1 that one of party 0 collects.
const SLOTS: u32 = 2;

impl MatchSetting {
    /// As the command line says, with joined shares left in a folder.
    fn of(args: &MatchingArgs, folder: &Path) -> Self {
        Self {
            protocol: args.protocol,
            rows: args.rows,
            shared: people::shared(args.rows, args.overlap),
            columns: args.columns.unwrap_or(2),
            dummies: args.dummies,
            backend: args.backend.unwrap_or(BackendName::PermuteShare),
            memory: args.memory,
            folder: folder.to_owned(),
        }
    }

    /// Rows of both sides, shared people once.
    fn union(&self) -> u64 {
        2 * self.rows - self.shared
    }

    /// Columns of 64 bits that each side brings, where the protocol carries any.
    fn columns(&self) -> Option<u8> {
        (!matches!(self.protocol, ProtocolName::Pid | ProtocolName::Multi)).then_some(self.columns)
    }

    fn people(&self, party: u8) -> People {
        let people = People::new(party, self.rows, self.shared);
        match self.protocol {
            ProtocolName::Multi => people.with_two_keys(),
            ProtocolName::Collecting => people.repeated(),
            _ => people,
        }
    }

    /// Multiplications of the group, by both parties, those of dummies left out.
    fn products(&self) -> u64 {
        let (rows, union) = ([self.rows; 2], self.union());
        match self.protocol {
            ProtocolName::Pid => 2 * pid::multiplications(PairSizes::new(rows, union)),
            ProtocolName::Multi => {
                let sizes = PairSizes { rows, keys: [2; 2], union };
                [0, 1].map(|party| multi_pid::multiplications(sizes, PartyId(party))).iter().sum()
            }
            // Every name by both keys; a row of party 0 has a name per slot.
            ProtocolName::Ps3i => 2 * (rows[0] + rows[1]),
            ProtocolName::Collecting => 2 * (rows[0] * u64::from(SLOTS) + rows[1]),
            ProtocolName::CircuitPsi => 0,
        }
    }

    fn dummies(&self) -> Option<Dummies> {
        self.dummies.then(|| Dummies::usual(&Seed::from_system()))
    }

    /// What a dummy row carries: nobody.
    fn blank(&self) -> Option<Vec<u8>> {
        self.dummies.then(|| vec![0xff; 8 * usize::from(self.columns)])
    }

    fn backend(&self) -> ShareBackend {
        match self.backend {
            BackendName::PermuteShare => ShareBackend::PermuteShare,
            BackendName::Paillier => ShareBackend::Paillier,
        }
    }

    /// Runs the protocol as one party, on one thread.
    pub fn run(&self, party: u8, session: &mut Session) -> Result<MatchOutput, Error> {
        let (people, columns) = (self.people(party), self.columns.into());
        let matcher: &dyn Matcher = match self.protocol {
            ProtocolName::Pid => &PrivateId,
            ProtocolName::Multi => &MultiId,
            ProtocolName::Ps3i => &InnerJoin,
            ProtocolName::Collecting => &CollectingJoin,
            ProtocolName::CircuitPsi => &CircuitJoin,
        };
        let mut options = MatchOptions {
            threads: 1,
            memory: self.memory,
            dummies: self.dummies(),
            blank: self.blank(),
            slots: SLOTS,
            backend: self.backend(),
            ..MatchOptions::default()
        };
        let mut payload = None;
        if let Some(shared) = matcher.features().form.shared() {
            options.layouts = [joined::layout(columns)?, joined::layout(columns)?];
            let own = shared[usize::from(party)].then(|| PeopleValues::new(&people, self.rows, columns));
            payload = own.transpose()?;
        }
        Ok(matcher.run(session, &people, payload.as_ref().map(|values| values as _), &options)?.output)
    }

    /// What the check needs of it.
    pub fn found(&self, party: u8, matched: &MatchOutput) -> Result<PartyResult, Error> {
        let people = self.people(party);
        match matched {
            MatchOutput::Spine(spine) => Ok(PartyResult::Spine(spine::digest(people, spine)?)),
            MatchOutput::Shares(joined) => {
                let path = self.folder.join(PartyId(party).to_string());
                joined::save(joined, &people, &path)?;
                Ok(PartyResult::Joined(path))
            }
        }
    }
}

/// Whether what both parties found is the match that was asked for.
fn correct(setting: &MatchSetting, parties: &[PartyMeasurement]) -> Result<bool, Error> {
    let found: Vec<&PartyResult> = parties.iter().map(|party| &party.found).collect();
    match found[..] {
        [PartyResult::Spine(a), PartyResult::Spine(b)] => {
            Ok(spine::agree(setting.rows, setting.shared, [*a, *b], setting.dummies))
        }
        [PartyResult::Joined(a), PartyResult::Joined(b)] => {
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

//! A ledger for those who audit it: everything that was charged, given back, barred, allowed and signed, and
//! nothing that is secret. No held share, no salt, no key of tags, no seed of noise or of made-up rows, no
//! sketch, no result.

use super::paid::SignedDebits;
use super::{
    AnswerRow, Bytes32, CheckedChain, EntryRow, Ledger, SignatureRow, Statement, check_budgets,
    check_signatures, moment, now,
};
use base::{Error, hex, unhex};
use net::succession::Succession;
use num_traits::Signed;
use release::Rational;
use release::rational::{shown, small};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The format of [`Export`].
pub const EXPORT_FORMAT: &str = "tacit-ledger/1";
/// Largest export that is read, in bytes.
const EXPORT_BYTES: u64 = 1 << 30;

/// What a ledger holds, for somebody who may read it and must not be able to use it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Export {
    /// [`EXPORT_FORMAT`].
    pub format: String,
    /// When it was made, by the clock of the machine.
    pub made: String,
    /// Every debit, with its period and whether it was given back.
    pub debits: Vec<EntryRow>,
    /// What the parties signed of them.
    pub signatures: Vec<SignatureRow>,
    /// Debits that were given back.
    pub voids: Vec<VoidRecord>,
    /// Numbers of releases: held, dropped, sent, and with an outcome.
    pub numbers: Vec<NumberRecord>,
    /// Releases of candidates, by side and stage.
    pub transcripts: Vec<StageRecord>,
    /// What barred a peer.
    pub bars: Vec<BarRecord>,
    /// What this side's operator allowed.
    pub allows: Vec<AllowRecord>,
    /// Keys that took the place of others.
    pub successions: Vec<SuccessionRecord>,
    /// Runs that began with a peer.
    pub runs: Vec<RunRecord>,
    /// Statements of peers about their own ledgers, as they were sent.
    pub statements: Vec<StatementRecord>,
    /// This party's own statements, as peers gave them back.
    pub claims: Vec<StatementRecord>,
    /// Studies whose answers are kept.
    pub answers: Vec<AnswerRow>,
    /// Where the chain with each peer stands.
    pub chains: Vec<CheckedChain>,
}

/// A debit that was given back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VoidRecord {
    /// When.
    pub at: String,
    /// Its row.
    pub debit: u64,
    /// The other parties' keys.
    pub peer: String,
}

/// A number of a release.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NumberRecord {
    /// When it was held.
    pub at: String,
    /// Its name, 64 hex digits.
    pub number: String,
    /// Of which release.
    pub release: String,
    /// Which one of it, from 0.
    pub attempt: u32,
    /// The other parties' keys.
    pub peer: String,
    /// Of which data.
    pub lineage: String,
    /// `held`, `dropped`, `sent`, or `out` where those who see it have it.
    pub state: String,
    /// When this party's share went out, or may have.
    pub sent: Option<String>,
}

/// A release of candidates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageRecord {
    /// When.
    pub at: String,
    /// Which release.
    pub release: String,
    /// Which attempt.
    pub attempt: u32,
    /// `drawer` or `checker`.
    pub side: String,
    /// 0 to 3: committed, seeded, named, ended.
    pub stage: u32,
    /// The other party's key.
    pub peer: String,
    /// Of which data.
    pub lineage: String,
}

/// What barred a peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BarRecord {
    /// When.
    pub at: String,
    /// `noise` or `ledger`.
    pub kind: String,
    /// The peer's key.
    pub peer: String,
    /// On which data; empty for all.
    pub lineage: String,
    /// Why.
    pub reason: String,
    /// Whether it bars the peer still: nobody has allowed it, and, of a ledger, the peer has signed nothing
    /// since that fits.
    #[serde(default)]
    pub stands: bool,
    /// Of a bar on all data: those on which it bars the peer no longer, since this side's operator allowed
    /// them one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
}

/// What an operator allowed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AllowRecord {
    /// When.
    pub at: String,
    /// The peer's key.
    pub peer: String,
    /// On which data; empty for all.
    pub lineage: String,
    /// Why.
    pub reason: String,
}

/// A key that took the place of another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SuccessionRecord {
    /// When this ledger heard of it.
    pub at: String,
    /// The old key.
    pub old: String,
    /// The new one.
    pub new: String,
    /// What the old key signed, in hex digits.
    pub statement: String,
}

/// A run that began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// When.
    pub at: String,
    /// The peer's key.
    pub peer: String,
    /// The study, 64 hex digits.
    pub study: String,
}

/// A statement about a ledger.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatementRecord {
    /// When this ledger kept it.
    pub at: String,
    /// The peer's key.
    pub peer: String,
    /// As it was sent, in hex digits.
    pub statement: String,
}

/// What of an export was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifiedExport {
    /// Debits.
    pub debits: usize,
    /// Their signatures.
    pub signed: SignedDebits,
    /// Statements that one key takes the place of another.
    pub successions: usize,
}

impl Ledger {
    /// Everything that an auditor needs, and nothing secret.
    ///
    /// # Errors
    /// When the ledger cannot be read, or was changed by another program.
    pub fn export(&self) -> Result<Export, Error> {
        let chains = self.verify()?;
        Ok(Export {
            format: EXPORT_FORMAT.to_owned(),
            made: moment(now()),
            debits: self.entries()?,
            signatures: self.signatures()?,
            voids: self.listed("SELECT at, debit, peer FROM voids ORDER BY row", [], |row| {
                let debit = row.get::<_, i64>(1)?.unsigned_abs();
                Ok(VoidRecord { at: time(row)?, debit, peer: row.get(2)? })
            })?,
            numbers: self.numbers()?,
            transcripts: self.stages()?,
            bars: self.bars()?,
            allows: self.listed("SELECT at, peer, lineage, reason FROM allows ORDER BY row", [], |row| {
                Ok(AllowRecord {
                    at: time(row)?,
                    peer: row.get(1)?,
                    lineage: row.get(2)?,
                    reason: row.get(3)?,
                })
            })?,
            successions: self.listed(
                "SELECT at, old, new, statement FROM successions ORDER BY row",
                [],
                |row| {
                    let statement = hex(&row.get::<_, Vec<u8>>(3)?);
                    Ok(SuccessionRecord { at: time(row)?, old: row.get(1)?, new: row.get(2)?, statement })
                },
            )?,
            runs: self.listed("SELECT at, peer, study FROM runs ORDER BY row", [], |row| {
                let study = hex(&row.get::<_, Bytes32>(2)?);
                Ok(RunRecord { at: time(row)?, peer: row.get(1)?, study })
            })?,
            statements: self.stated("statements")?,
            claims: self.stated("claims")?,
            answers: self.answers()?,
            chains,
        })
    }

    fn numbers(&self) -> Result<Vec<NumberRecord>, Error> {
        let sql = "SELECT at, session, release, attempt, peer, lineage, dropped, \
                   (SELECT sent.at FROM sent WHERE sent.session = held.session) AS gone, \
                   EXISTS (SELECT 1 FROM outputs WHERE outputs.release = held.release \
                   AND outputs.attempt = held.attempt) AS out FROM held ORDER BY row";
        self.listed(sql, [], |row| {
            let gone: Option<i64> = row.get("gone")?;
            let state = match (row.get("dropped")?, row.get("out")?, gone) {
                (true, ..) => "dropped",
                (_, true, _) => "out",
                (_, _, Some(_)) => "sent",
                _ => "held",
            };
            Ok(NumberRecord {
                at: time(row)?,
                number: hex(&row.get::<_, Bytes32>("session")?),
                release: hex(&row.get::<_, Bytes32>("release")?),
                attempt: row.get("attempt")?,
                peer: row.get("peer")?,
                lineage: row.get("lineage")?,
                state: state.to_owned(),
                sent: gone.map(moment),
            })
        })
    }

    fn stages(&self) -> Result<Vec<StageRecord>, Error> {
        let sql = "SELECT at, release, attempt, side, stage, peer, lineage FROM transcripts ORDER BY row";
        self.listed(sql, [], |row| {
            Ok(StageRecord {
                at: time(row)?,
                release: hex(&row.get::<_, Bytes32>("release")?),
                attempt: row.get("attempt")?,
                side: row.get("side")?,
                stage: row.get("stage")?,
                peer: row.get("peer")?,
                lineage: row.get("lineage")?,
            })
        })
    }

    fn stated(&self, table: &str) -> Result<Vec<StatementRecord>, Error> {
        self.listed(&format!("SELECT at, peer, statement FROM {table} ORDER BY row"), [], |row| {
            Ok(StatementRecord {
                at: time(row)?,
                peer: row.get(1)?,
                statement: hex(&row.get::<_, Vec<u8>>(2)?),
            })
        })
    }
}

fn time(row: &rusqlite::Row<'_>) -> Result<String, rusqlite::Error> {
    row.get(0).map(moment)
}

impl Export {
    /// Reads the JSON of an export.
    ///
    /// # Errors
    /// When the file cannot be read, is too large, or is no export.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let failed = |e: &std::io::Error| Error::reading(format!("cannot read {shown}"), e);
        let length = std::fs::metadata(path).map_err(|e| failed(&e))?.len();
        if length > EXPORT_BYTES {
            return Err(Error::limit("bytes of an exported ledger", length, EXPORT_BYTES));
        }
        let text = std::fs::read_to_string(path).map_err(|e| failed(&e))?;
        let read = serde_json::from_str::<Self>(&text);
        match read {
            Ok(export) if export.format == EXPORT_FORMAT => Ok(export),
            Ok(export) => Err(Error::input(format!(
                "{shown} has format \"{}\", and this tacit reads \"{EXPORT_FORMAT}\": use the one that wrote \
                 it",
                export.format.escape_debug()
            ))),
            Err(error) => Err(Error::input(format!(
                "{shown} is no exported ledger ({error}); `tacit ledger export LEDGER --json` makes one"
            ))),
        }
    }

    /// What of it is about one study, 64 hex digits: debits, what was signed and given back of them, numbers,
    /// runs, the answer; and the keys that took the place of others. What is towards a peer as a whole, bars
    /// and statements among them, is left out.
    #[must_use]
    pub fn of_study(mut self, study: &str) -> Self {
        self.debits.retain(|debit| debit.study == study);
        let releases: BTreeSet<String> = self.debits.iter().map(|debit| debit.release.clone()).collect();
        let rows: BTreeSet<u64> = self.debits.iter().map(|debit| debit.row).collect();
        self.signatures.retain(|one| one.says("study") == Some(study));
        self.voids.retain(|void| rows.contains(&void.debit));
        self.numbers.retain(|number| releases.contains(&number.release));
        self.transcripts.retain(|stage| releases.contains(&stage.release));
        self.runs.retain(|run| run.study == study);
        self.answers.retain(|answer| answer.study == study);
        (self.bars, self.allows) = (Vec::new(), Vec::new());
        (self.statements, self.claims, self.chains) = (Vec::new(), Vec::new(), Vec::new());
        self
    }

    /// Checks all signatures in it: of debits, and that each says what its debit says; of successions; of
    /// statements. What a debit says in two ways must be the same.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn verify(&self) -> Result<VerifiedExport, Error> {
        let wrong = |text: String| Error::input(format!("the exported ledger was changed: {text}"));
        self.debits.iter().try_for_each(says_one_thing).map_err(wrong)?;
        let signed = check_signatures(&self.debits, &self.signatures).map_err(wrong)?;
        check_budgets(&self.debits).map_err(wrong)?;
        for one in &self.successions {
            let statement = unhex::<{ net::succession::SUCCESSION_BYTES }>(&one.statement);
            let statement = statement.and_then(|bytes| Succession::read(&bytes));
            let holds = statement.is_some_and(|statement| {
                let (old, new) = (statement.old().to_string(), statement.new_key().to_string());
                statement.holds() && (&old, &new) == (&one.old, &one.new)
            });
            if !holds {
                return Err(wrong(format!("{} did not sign that {} takes its place", one.old, one.new)));
            }
            if self.successions.iter().any(|other| other.old == one.old && other.new != one.new) {
                return Err(wrong(format!("{} has two successors", one.old)));
            }
        }
        for one in self.statements.iter().chain(&self.claims) {
            let bytes = unhex::<{ super::STATEMENT_BYTES }>(&one.statement);
            if bytes.and_then(|bytes| Statement::read(&bytes)).is_none() {
                return Err(wrong(format!("a statement about the ledger of {} cannot be read", one.peer)));
            }
        }
        for void in &self.voids {
            if !self.debits.iter().any(|debit| debit.row == void.debit && debit.given_back) {
                return Err(wrong(format!("debit {} is said to be given back, and is not", void.debit)));
            }
        }
        let void = |debit: &&EntryRow| self.voids.iter().any(|void| void.debit == debit.row);
        if let Some(debit) = self.debits.iter().filter(|debit| debit.given_back).find(|debit| !void(debit)) {
            return Err(wrong(format!("debit {} was given back, and nothing says when", debit.row)));
        }
        Ok(VerifiedExport { debits: self.debits.len(), signed, successions: self.successions.len() })
    }

    /// The debits as comma-separated values, a line for each, with how many parties signed it.
    #[must_use]
    pub fn csv(&self) -> String {
        let head = "row,at,lineage,viewers,peers,study,release,attempt,rho,delta,tau,budget,period,counts,\
                given_back,signed_by";
        let mut lines = vec![head.to_owned()];
        lines.extend(self.debits.iter().map(|debit| {
            let attempt = debit.attempt.to_string();
            let mut signers: Vec<&str> = self
                .signatures
                .iter()
                .filter(|one| {
                    one.says("release") == Some(&*debit.release) && one.says("attempt") == Some(&*attempt)
                })
                .map(|one| one.signer.as_str())
                .collect();
            signers.sort_unstable();
            signers.dedup();
            let at = moment(i64::try_from(debit.at).unwrap_or(i64::MAX));
            let (row, counts) = (debit.row.to_string(), debit.protects.to_string());
            let period = debit.period.clone().unwrap_or_default();
            let (given_back, signers) = (debit.given_back.to_string(), signers.join(" "));
            let cells = [
                &row,
                &at,
                &debit.lineage,
                &debit.viewer_key,
                &debit.peer_key,
                &debit.study,
                &debit.release,
                &attempt,
                &debit.exact_rho,
                &debit.exact_delta,
                &debit.tau,
                &debit.budget,
                &period,
                &counts,
                &given_back,
                &signers,
            ];
            cells.map(|cell| quoted(cell)).join(",")
        }));
        lines.join("\n") + "\n"
    }
}

/// Whether what a debit says for people is what it says exactly.
fn says_one_thing(debit: &EntryRow) -> Result<(), String> {
    let EntryRow { row, rho, exact_rho, delta, exact_delta, tau, .. } = debit;
    let number = |name: &str, text: &str| {
        let number = text.parse::<Rational>().ok().filter(|number| !number.is_negative());
        number.ok_or_else(|| format!("{name} of row {row} of debits is {text:?}, which is no charge"))
    };
    number("tau", tau)?;
    let derived = [
        ("rho", rho, shown(&number("exact_rho", exact_rho)?)),
        ("delta", delta, small(&number("exact_delta", exact_delta)?)),
    ];
    match derived.into_iter().find(|(_, said, derived)| *said != derived) {
        None => Ok(()),
        Some((name, said, derived)) => {
            Err(format!("row {row} of debits says {name} {said}, and exactly it is {derived}"))
        }
    }
}

/// A cell, between quotes where it has to be.
fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

//! What the ledger keeps of lineages: who has seen them, what they have spent over all viewers, and what they
//! look like; and how often a match was begun.

use super::promises::{set_silent, silent_match};
use super::succession::newest;
use super::{Bytes32, Debit, Ledger, SumExactly, VOIDED, agreed, begin, charge, file, now, rational_of};
use crate::PrivacyTotal;
use base::Error;
use data::sketch::Sketch;
use num_traits::Zero;
use release::Rational;
use release::rational::shown;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const OWN_SKETCHES: &str = "SELECT lineage, sketch FROM sketches WHERE lineage = ?1";

/// From this similarity on two versions of a lineage's data are one.
const MUCH_THE_SAME: f64 = 0.75;

/// One beginning of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchStart {
    /// Which one of this study and these data: 1 for the first.
    pub number: u64,
    /// Drawn for it from the system's randomness.
    pub nonce: Bytes32,
}

/// What one viewer has got of one lineage, over all studies, as one guarantee.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ViewerSpending {
    /// The protected data.
    pub lineage: String,
    /// The viewer's key.
    pub viewer_key: String,
    /// zCDP: a decimal where it is one, else `p/q`.
    pub rho: String,
    /// The same with its epsilon and delta.
    pub total: PrivacyTotal,
}

/// What a party's ledger has of one study between it and a peer, on whatever data, however its runs ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudySpending {
    /// zCDP of the releases of which this party can read something.
    pub released: Rational,
    /// How many times the sizes of a match were charged.
    pub matches: u64,
}

/// What all viewers of a lineage have got together; what several see is counted once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JointSpending {
    /// The protected data.
    pub lineage: String,
    /// zCDP: a decimal where it is one, else `p/q`.
    pub rho: String,
    /// Most that it may come to, where that is known.
    pub total: Option<String>,
    /// What is left of it.
    pub left: Option<String>,
}

impl Ledger {
    /// The names of parties by their keys, as the reports of the answers that are kept here have them: the
    /// newest one's.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn names(&self) -> Result<BTreeMap<String, String>, Error> {
        let mut names = BTreeMap::new();
        for text in
            self.listed("SELECT report FROM answers ORDER BY at, row", [], |row| row.get::<_, String>(0))?
        {
            // The report may be one of another version: what it does not say stays out.
            let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            for party in report["parties"].as_array().into_iter().flatten() {
                if let (Some(key), Some(name)) = (party["key"].as_str(), party["name"].as_str()) {
                    names.insert(key.to_owned(), name.to_owned());
                }
            }
        }
        Ok(names)
    }

    /// What all viewers of a lineage have got together, and what is left of a bound on that.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn left_of_total(&self, lineage: &str, total: Option<&Rational>) -> Result<JointSpending, Error> {
        let spent = self.spent_by_all(lineage)?;
        let left = total.map(|total| shown(&(total - &spent).max(Rational::zero())));
        let total = total.map(shown);
        Ok(JointSpending { lineage: lineage.to_owned(), rho: shown(&spent), total, left })
    }

    /// A viewer's budget and what is left of it, where the budget is known.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn left(
        &self,
        lineage: &str,
        viewer: &str,
        budget: Option<&Rational>,
    ) -> Result<Option<[String; 2]>, Error> {
        let Some(budget) = budget else { return Ok(None) };
        let left = (budget - self.spent(lineage, viewer)?).max(Rational::zero());
        Ok(Some([shown(budget), shown(&left)]))
    }

    /// What every viewer has got of every lineage, by name.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn totals(&self) -> Result<Vec<ViewerSpending>, Error> {
        let lineages = self.listed(
            "SELECT DISTINCT lineage FROM debits WHERE protects = 1 ORDER BY lineage",
            [],
            |row| row.get::<_, String>(0),
        )?;
        let mut all = Vec::new();
        for lineage in lineages {
            for viewer_key in self.viewers_of(&lineage)? {
                let (rho, delta) =
                    (self.spent(&lineage, &viewer_key)?, self.spent_delta(&lineage, &viewer_key)?);
                let total = PrivacyTotal::new(&rho, &delta, &self.spent_on_sizes(&lineage, &viewer_key)?);
                all.push(ViewerSpending { lineage: lineage.clone(), viewer_key, rho: shown(&rho), total });
            }
        }
        Ok(all)
    }

    /// What of it was for the sizes of matches; of what was taken over after a loss nobody can say.
    fn spent_on_sizes(&self, lineage: &str, viewer_key: &str) -> Result<Rational, Error> {
        let sizes = format!("{} AND delta <> '0' AND study <> zeroblob(32)", super::reads(2));
        let spent = super::spent_on(&self.connection, "rho", &sizes, [lineage, viewer_key]);
        spent.map_err(|e| self.explain("read", &e))
    }

    /// What was charged and recorded of a study so far, earlier matches and attempts included: of sizes what
    /// this party was charged towards the peer, of releases those that this party sees.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn spent_in_study(&self, study: &Bytes32, peer: &str) -> Result<StudySpending, Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let sizes = format!(
            "SELECT count(*) FROM debits WHERE study = ?1 AND protects = 1 AND delta <> '0' AND {} \
             AND {VOIDED}",
            super::sees(2)
        );
        let matches = self.connection.query_row(&sizes, params![study, peer], |row| row.get::<_, i64>(0));
        let seen = format!(
            "SELECT rho FROM debits WHERE study = ?1 AND delta = '0' AND {VOIDED} AND (protects = 0 OR \
             instr(' ' || viewer || ' ', ' {} ') > 0)",
            super::PUBLIC
        );
        let released = self.listed(&seen, [study], |row| rational_of(row, "rho"))?.into_iter().sum();
        Ok(StudySpending { released, matches: matches.map_err(explain)?.unsigned_abs() })
    }

    /// What all releases of a lineage were charged so far, to all viewers together, exactly.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn spent_by_all(&self, lineage: &str) -> Result<Rational, Error> {
        spent_by_all(&self.connection, lineage).map_err(|e| self.explain("read", &e))
    }

    /// The keys of those who have seen something of a lineage.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn viewers_of(&self, lineage: &str) -> Result<Vec<String>, Error> {
        viewers(&self.connection, lineage).map_err(|e| self.explain("read", &e))
    }

    /// What a study on these data was charged towards a viewer of a lineage, and would not be charged again
    /// if the peer's data are those of the last run as well: rho, and how far the noise may be from its law.
    /// `my_tag` is that of these data.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn charged_before(
        &self,
        study: &Bytes32,
        lineage: &str,
        viewer_key: &str,
        my_tag: &Bytes32,
    ) -> Result<[Rational; 2], Error> {
        // Of each release the latest attempt, unless that broke off: another one would be charged.
        let sees = super::sees(3);
        let sql = format!(
            "SELECT rho, coalesce(tau, '0') AS tau FROM debits AS d WHERE study = ?1 AND lineage = ?2 AND \
                   {sees} AND my_tag = ?4 AND protects = 1 AND {VOIDED} AND peer_tag = \
                   (SELECT peer_tag FROM debits WHERE study = ?1 AND lineage = ?2 AND {sees} AND \
                   my_tag = ?4 AND protects = 1 ORDER BY row DESC LIMIT 1) \
                   AND attempt = (SELECT max(attempt) FROM debits WHERE release = d.release AND protects = \
                   1) AND NOT EXISTS (SELECT 1 FROM bars WHERE bars.release = d.release AND bars.attempt = \
                   d.attempt) AND (EXISTS (SELECT 1 FROM outputs WHERE outputs.release = d.release AND \
                   outputs.attempt = d.attempt) OR NOT EXISTS (SELECT 1 FROM transcripts AS t WHERE \
                   t.release = d.release AND t.attempt = d.attempt AND stage >= 2))"
        );
        let values = params![study, lineage, viewer_key, my_tag];
        let read = |row: &rusqlite::Row<'_>| Ok([rational_of(row, "rho")?, rational_of(row, "tau")?]);
        let charges = self.listed(&sql, values, read)?;
        Ok([0, 1].map(|of| charges.iter().map(|charge| &charge[of]).sum()))
    }

    /// Whether a study was charged towards a viewer of a lineage before, and never on the data that have
    /// these tags; then whose data were others in the last run: this party's, the peer's.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn other_data(
        &self,
        (study, lineage, viewer_key): (&Bytes32, &str, &str),
        (my_tag, peer_tag): (&Bytes32, &Bytes32),
    ) -> Result<Option<[bool; 2]>, Error> {
        let sql = format!(
            "SELECT my_tag, peer_tag FROM debits WHERE study = ?1 AND lineage = ?2 AND {} AND protects = 1 \
             ORDER BY row DESC",
            super::sees(3)
        );
        let read = |row: &rusqlite::Row<'_>| Ok([row.get::<_, Bytes32>(0)?, row.get::<_, Bytes32>(1)?]);
        let all = self.listed(&sql, params![study, lineage, viewer_key], read)?;
        let these = [*my_tag, *peer_tag];
        Ok(all.first().filter(|_| !all.contains(&these)).map(|last| [0, 1].map(|i| last[i] != these[i])))
    }

    /// The other lineage of which something was charged and whose data are most like these, with the
    /// similarity; none where none has a sketch. Of a lineage whose data have changed, every kept version
    /// counts.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn most_alike(&self, lineage: &str, sketches: &[Sketch]) -> Result<Option<(String, f64)>, Error> {
        let sql = "SELECT lineage, sketch FROM sketches WHERE lineage <> ?1 \
                   AND lineage IN (SELECT lineage FROM debits WHERE protects = 1)";
        let all =
            likenesses(&self.connection, sql, lineage, sketches).map_err(|e| self.explain("read", &e))?;
        Ok(all.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)))
    }

    /// How much these data are like a lineage's own, as far as versions of them are kept: 0 where none is.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn alike(&self, lineage: &str, sketches: &[Sketch]) -> Result<f64, Error> {
        let own = likenesses(&self.connection, OWN_SKETCHES, lineage, sketches);
        let own = own.map_err(|e| self.explain("read", &e))?;
        Ok(own.into_iter().map(|(_, alike)| alike).fold(0.0, f64::max))
    }

    /// Whether something of a lineage was charged, or its operator said that it is none of the others.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn knows(&self, lineage: &str) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM debits WHERE lineage = ?1 AND protects = 1) \
                   OR EXISTS (SELECT 1 FROM sketches WHERE lineage = ?1 AND unlike IS NOT NULL)";
        self.connection.query_row(sql, [lineage], |row| row.get(0)).map_err(|e| self.explain("read", &e))
    }

    /// Another lineage of which something was charged and no sketch is kept: what its data look like is not
    /// known.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn without_sketch(&self, lineage: &str) -> Result<Option<String>, Error> {
        let sql = "SELECT DISTINCT lineage FROM debits WHERE lineage <> ?1 AND protects = 1 \
                   AND lineage NOT IN (SELECT lineage FROM sketches) ORDER BY lineage";
        Ok(self.listed(sql, [lineage], |row| row.get::<_, String>(0))?.into_iter().next())
    }

    /// Keeps what a column of a lineage's data looks like, unless a version that is much the same is kept
    /// already: a row for every small change would tell who came and went. `unlike`: the lineage that they
    /// resemble and are not, as the operator says.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn keep_sketch(&mut self, lineage: &str, sketch: &Sketch, unlike: Option<&str>) -> Result<(), Error> {
        if unlike.is_none() && self.alike(lineage, std::slice::from_ref(sketch))? >= MUCH_THE_SAME {
            return Ok(());
        }
        let sql = "INSERT INTO sketches (at, lineage, sketch, unlike) SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS \
                   (SELECT 1 FROM sketches WHERE lineage = ?2 AND sketch = ?3 AND unlike IS ?4)";
        let values = params![now(), lineage, sketch.as_bytes(), unlike];
        let done = self.connection.execute(sql, values);
        done.map(|_| ()).map_err(|e| self.explain("keep a sketch in", &e))
    }

    /// The latest beginning of a match.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn last_begun(&self, id: &Bytes32) -> Result<Option<MatchStart>, Error> {
        last_begun(&self.connection, id).map_err(|e| self.explain("read", &e))
    }

    /// Whether a match of any study has begun since a moment, in seconds since 1970.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn matched_since(&self, at: u64) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM matches WHERE at >= ?1)";
        self.connection
            .query_row(sql, [at.cast_signed()], |row| row.get(0))
            .map_err(|e| self.explain("read", &e))
    }

    /// As [`Self::begin_match`], for a match that says nothing of rows but their number until
    /// [`Self::begin_promises`] or [`Self::match_speaks`]: one that broke off before that is taken up, and
    /// not counted again. It is charged as one that begins now, which costs nothing unless its made-up rows
    /// are others by now: the peer has seen the number of both.
    ///
    /// # Errors
    /// As [`Ledger::debit`].
    pub fn begin_silent_match(
        &mut self,
        id: &Bytes32,
        debits: &dyn Fn(u64) -> Result<Vec<Debit>, Error>,
    ) -> Result<MatchStart, Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "begin a match in", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let begun = match silent_match(&write, id).map_err(explain)? {
            Some(silent) => {
                for debit in debits(silent.number)? {
                    charge(&write, path, &debit)?;
                }
                silent
            }
            None => {
                let begun = count_match((&write, path), id, debits)?;
                set_silent(&write, id, &begun.nonce).map_err(explain)?;
                begun
            }
        };
        write.commit().map_err(explain)?;
        Ok(begun)
    }

    /// Counts a match that begins, and charges what its number costs: both or neither. On return they are on
    /// stable storage.
    ///
    /// # Errors
    /// As [`Ledger::debit`].
    pub fn begin_match(
        &mut self,
        id: &Bytes32,
        debits: &dyn Fn(u64) -> Result<Vec<Debit>, Error>,
    ) -> Result<MatchStart, Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "begin a match in", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let begun = count_match((&write, path), id, debits)?;
        write.commit().map_err(explain)?;
        Ok(begun)
    }
}

/// [`Ledger::begin_match`] within a transaction.
fn count_match(
    (write, path): (&Connection, &Path),
    id: &Bytes32,
    debits: &dyn Fn(u64) -> Result<Vec<Debit>, Error>,
) -> Result<MatchStart, Error> {
    let explain = |e: rusqlite::Error| file::explain(path, "begin a match in", &e);
    let number = last_begun(write, id).map_err(explain)?.map_or(1, |last| last.number + 1);
    let begun = MatchStart { number, nonce: *base::Seed::from_system().expose() };
    for debit in debits(number)? {
        if let Some(agreed) = &debit.agreed {
            agreed::may_begin(write, path, id, agreed)?;
        }
        charge(write, path, &debit)?;
    }
    let sql = "INSERT INTO matches (at, id, nonce) VALUES (?1, ?2, ?3)";
    write.execute(sql, params![now(), id, begun.nonce]).map_err(explain)?;
    Ok(begun)
}

/// The keys of those who have seen something of a lineage, each the newest of its line.
pub(super) fn viewers(connection: &Connection, lineage: &str) -> Result<Vec<String>, rusqlite::Error> {
    let mut query =
        connection.prepare("SELECT DISTINCT viewer FROM debits WHERE lineage = ?1 AND protects = 1")?;
    let sets = query.query_map([lineage], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let all: BTreeSet<&str> = sets.iter().flat_map(|set| set.split(' ')).collect();
    // What was seen under an earlier key is its successor's.
    let newest = all.into_iter().map(|key| newest(connection, key)).collect::<Result<BTreeSet<_>, _>>()?;
    Ok(newest.into_iter().collect())
}

/// Which lineage each row of a query names, and how much the column of these data that is most like its
/// sketch is.
fn likenesses(
    connection: &Connection,
    sql: &str,
    lineage: &str,
    sketches: &[Sketch],
) -> Result<Vec<(String, f64)>, rusqlite::Error> {
    let mut query = connection.prepare(sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?));
    let rows = query.query_map([lineage], read)?.collect::<Result<Vec<_>, _>>()?;
    let alike = |(name, bytes): (String, Vec<u8>)| {
        let kept = Sketch::from_bytes(&bytes)?;
        Some((name, sketches.iter().map(|sketch| kept.similarity(sketch)).fold(0.0, f64::max)))
    };
    Ok(rows.into_iter().filter_map(alike).collect())
}

pub(super) fn last_begun(
    connection: &Connection,
    id: &Bytes32,
) -> Result<Option<MatchStart>, rusqlite::Error> {
    let sql = "SELECT (SELECT count(*) FROM matches WHERE id = ?1), nonce FROM matches WHERE id = ?1 \
               ORDER BY row DESC LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(MatchStart { number: row.get::<_, i64>(0)?.unsigned_abs(), nonce: row.get(1)? })
    };
    connection.query_row(sql, [id], read).optional()
}

/// The sum over all viewers.
pub(super) fn spent_by_all(connection: &Connection, lineage: &str) -> Result<Rational, rusqlite::Error> {
    let sql = format!("SELECT rho FROM debits WHERE lineage = ?1 AND protects = 1 AND {VOIDED}");
    let mut query = connection.prepare(&sql)?;
    let rows = query.query_map([lineage], |row| rational_of(row, "rho"))?;
    rows.sum_exactly()
}

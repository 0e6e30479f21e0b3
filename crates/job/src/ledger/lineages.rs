//! What the ledger keeps of lineages: who has seen them, what they have spent over all viewers, and what they look like; and
//! how often a match was begun.

use super::{Bytes32, Debit, Ledger, SumExactly, charge, file, now, rational_of, shown};
use crate::privacy::Total;
use crate::sketch::Sketch;
use base::Error;
use num_traits::Zero;
use release::Rational;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde::Serialize;

const OWN_SKETCHES: &str = "SELECT lineage, sketch FROM sketches WHERE lineage = ?1";

/// From this similarity on two versions of a lineage's data are one.
const MUCH_THE_SAME: f64 = 0.75;

/// One beginning of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Which one of this study and these data: 1 for the first.
    pub number: u64,
    /// Drawn for it from the system's randomness.
    pub nonce: Bytes32,
}

/// What one viewer has got of one lineage, over all studies, as one guarantee.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spent {
    /// The protected data.
    pub lineage: String,
    /// The viewer's key.
    pub viewer_key: String,
    /// zCDP: a decimal where it is one, else `p/q`.
    pub rho: String,
    /// The same with its epsilon and delta.
    pub total: Total,
}

impl Ledger {
    /// What every viewer has got of every lineage, by name.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn totals(&self) -> Result<Vec<Spent>, Error> {
        let lineages =
            self.texts("SELECT DISTINCT lineage FROM debits WHERE protects = 1 ORDER BY lineage", &[])?;
        let mut all = Vec::new();
        for lineage in lineages {
            for viewer_key in self.viewers_of(&lineage)? {
                let (rho, delta) =
                    (self.spent(&lineage, &viewer_key)?, self.spent_delta(&lineage, &viewer_key)?);
                let total = Total::new(&rho, &delta, &Rational::zero());
                all.push(Spent { lineage: lineage.clone(), viewer_key, rho: shown(&rho), total });
            }
        }
        Ok(all)
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
        let sql = "SELECT DISTINCT viewer FROM debits WHERE lineage = ?1 AND protects = 1 ORDER BY viewer";
        self.texts(sql, &[&lineage])
    }

    /// Whether a study was charged towards a viewer of a lineage before: on the same data it takes nothing again.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn has_charged(&self, study: &Bytes32, lineage: &str, viewer_key: &str) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM debits WHERE study = ?1 AND lineage = ?2 AND viewer = ?3 AND protects = 1)";
        let found = self.connection.query_row(sql, params![study, lineage, viewer_key], |row| row.get(0));
        found.map_err(|e| self.explain("read", &e))
    }

    /// The other lineage of which something was charged and whose data are most like these, with the similarity; none where
    /// none has a sketch. Of a lineage whose data have changed, every kept version counts.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn most_alike(&self, lineage: &str, sketch: &Sketch) -> Result<Option<(String, f64)>, Error> {
        let sql = "SELECT lineage, sketch FROM sketches WHERE lineage <> ?1 \
                   AND lineage IN (SELECT lineage FROM debits WHERE protects = 1)";
        let all = likenesses(&self.connection, sql, lineage, sketch).map_err(|e| self.explain("read", &e))?;
        Ok(all.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)))
    }

    /// How much these data are like a lineage's own, as far as versions of them are kept: 0 where none is.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn alike(&self, lineage: &str, sketch: &Sketch) -> Result<f64, Error> {
        let own = likenesses(&self.connection, OWN_SKETCHES, lineage, sketch);
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

    /// Keeps what a lineage's data look like, unless a version that is much the same is kept already: a row for every small
    /// change would tell who came and went. `unlike`: the lineage that they resemble and are not, as the operator says.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn keep_sketch(&mut self, lineage: &str, sketch: &Sketch, unlike: Option<&str>) -> Result<(), Error> {
        if unlike.is_none() && self.alike(lineage, sketch)? >= MUCH_THE_SAME {
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
    pub fn last_begun(&self, id: &Bytes32) -> Result<Option<Begun>, Error> {
        last_begun(&self.connection, id).map_err(|e| self.explain("read", &e))
    }

    /// Counts a match that begins, and charges what its number costs: both or neither. On return they are on stable storage.
    ///
    /// # Errors
    /// As [`Ledger::debit`].
    pub fn begin_match(
        &mut self,
        id: &Bytes32,
        debits: &dyn Fn(u64) -> Result<Vec<Debit>, Error>,
    ) -> Result<Begun, Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "begin a match in", &e);
        let write =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        let number = last_begun(&write, id).map_err(explain)?.map_or(1, |last| last.number + 1);
        let begun = Begun { number, nonce: *base::Seed::from_system().expose() };
        for debit in debits(number)? {
            charge(&write, path, &debit)?;
        }
        let sql = "INSERT INTO matches (at, id, nonce) VALUES (?1, ?2, ?3)";
        write.execute(sql, params![now(), id, begun.nonce]).map_err(explain)?;
        write.commit().map_err(explain)?;
        Ok(begun)
    }

    fn texts(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<String>, Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let mut query = self.connection.prepare(sql).map_err(explain)?;
        let rows = query.query_map(values, |row| row.get(0)).map_err(explain)?;
        rows.collect::<Result<_, _>>().map_err(explain)
    }
}

/// Which lineage each row of a query names, and how much these data are like its sketch.
fn likenesses(
    connection: &Connection,
    sql: &str,
    lineage: &str,
    sketch: &Sketch,
) -> Result<Vec<(String, f64)>, rusqlite::Error> {
    let mut query = connection.prepare(sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?));
    let rows = query.query_map([lineage], read)?.collect::<Result<Vec<_>, _>>()?;
    let alike =
        |(name, bytes): (String, Vec<u8>)| Some((name, Sketch::from_bytes(&bytes)?.similarity(sketch)));
    Ok(rows.into_iter().filter_map(alike).collect())
}

fn last_begun(connection: &Connection, id: &Bytes32) -> Result<Option<Begun>, rusqlite::Error> {
    let sql = "SELECT (SELECT count(*) FROM matches WHERE id = ?1), nonce FROM matches WHERE id = ?1 \
               ORDER BY row DESC LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Begun { number: row.get::<_, i64>(0)?.unsigned_abs(), nonce: row.get(1)? })
    };
    connection.query_row(sql, [id], read).optional()
}

/// The sum over all viewers.
pub(super) fn spent_by_all(connection: &Connection, lineage: &str) -> Result<Rational, rusqlite::Error> {
    let mut query = connection.prepare("SELECT rho FROM debits WHERE lineage = ?1 AND protects = 1")?;
    let rows = query.query_map([lineage], |row| rational_of(row, "rho"))?;
    rows.sum_exactly()
}

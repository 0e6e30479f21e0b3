//! What has come since somebody looked, for those who listen: studies that changed, and lines of runs.

use super::Store;
use super::runs::RunLine;
use super::studies::{COLUMNS, ProposalFilter, ProposalRow, conditions, proposal_row};
use base::Error;
use rusqlite::{Row, params};
use statements::ProposalId;
use std::fmt;
use std::str::FromStr;

/// Studies, and lines, that are read at a time.
const MOST: u32 = 100;

/// How far somebody has heard, as a word of three numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedPlace {
    /// When the last study changed, in milliseconds since 1970.
    pub changed_ms: u64,
    /// Its row.
    pub row: u64,
    /// The row of the last line of a run.
    pub line: u64,
}

impl fmt::Display for FeedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.changed_ms, self.row, self.line)
    }
}

impl FromStr for FeedPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers: Result<Vec<u64>, _> = text.split('-').map(str::parse).collect();
        match numbers.as_deref() {
            Ok([changed_ms, row, line]) => Ok(Self { changed_ms: *changed_ms, row: *row, line: *line }),
            _ => Err(()),
        }
    }
}

/// A line of a run, and whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedLine {
    /// The proposal.
    pub proposal: ProposalId,
    /// The run.
    pub run: u32,
    /// The line.
    pub line: RunLine,
}

impl Store {
    /// Where who begins to listen now is.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn feed_end(&self) -> Result<FeedPlace, Error> {
        let sql = "SELECT coalesce(max(changed_ms), 0), coalesce((SELECT max(row) FROM proposals p WHERE \
                   p.changed_ms = (SELECT max(changed_ms) FROM proposals)), 0), \
                   (SELECT coalesce(max(row), 0) FROM run_lines) FROM proposals";
        self.read(|connection| {
            connection.prepare_cached(sql)?.query_row([], |row| {
                let at = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
                Ok(FeedPlace { changed_ms: at(0)?, row: at(1)?, line: at(2)? })
            })
        })
    }

    /// Studies that have changed since, in that order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn changed_since(&self, place: FeedPlace) -> Result<Vec<ProposalRow>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM proposals WHERE (changed_ms, row) > (?1, ?2) ORDER BY changed_ms, row \
             LIMIT {MOST}"
        );
        let values = params![place.changed_ms.cast_signed(), place.row.cast_signed()];
        self.read(|connection| connection.prepare_cached(&sql)?.query_map(values, proposal_row)?.collect())
    }

    /// Proposals that were over here since: what was so last comes first, and so many at most.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn over_since(
        &self,
        filter: &ProposalFilter<'_>,
        ms: u64,
        most: usize,
    ) -> Result<Vec<ProposalRow>, Error> {
        let (sql, mut values) = conditions(filter);
        values.push(ms.cast_signed().into());
        let sql = format!(
            "SELECT {COLUMNS} FROM proposals WHERE {sql} AND over_ms >= ?{} ORDER BY over_ms DESC, row DESC \
             LIMIT {most}",
            values.len()
        );
        self.read(|connection| {
            let mut query = connection.prepare_cached(&sql)?;
            query.query_map(rusqlite::params_from_iter(values), proposal_row)?.collect()
        })
    }

    /// Lines of runs that have come since.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn lines_since(&self, place: FeedPlace) -> Result<Vec<FeedLine>, Error> {
        let sql = format!(
            "SELECT proposal, run, row, at_ms, line FROM run_lines WHERE row > ?1 ORDER BY row LIMIT {MOST}"
        );
        let line = |row: &Row<'_>| {
            let at = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
            let line = RunLine { row: at(2)?, at_ms: at(3)?, line: row.get(4)? };
            Ok(FeedLine { proposal: ProposalId(row.get(0)?), run: row.get(1)?, line })
        };
        let from = place.line.cast_signed();
        self.read(|connection| connection.prepare_cached(&sql)?.query_map([from], line)?.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_word() {
        let place = FeedPlace { changed_ms: 1_800_000_000_000, row: 7, line: 12 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for other in ["", "1-2", "1-2-3-4", "a-b-c", "1-2--3"] {
            assert_eq!(other.parse::<FeedPlace>(), Err(()), "{other}");
        }
    }
}

//! What accuracy, time and bytes of a study are reckoned for: rows and outcomes, and who says them. It is
//! shown beside a study and no part of what is signed: whoever has the hash of signed words could try numbers
//! of rows until it fits ([decision 136](../../../docs/decisions/136-what-is-reckoned-is-not-signed.md)).

use base::limits;
use page::numbers::{count, counted};
use study::{PartyRole, Study};

/// Rows where nobody says any, as `tacit check` supposes.
const NOBODY: u64 = 1_000_000;

/// Rows and outcomes that who proposed a study here named. No statement has them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SaidSizes {
    /// Rows of the first party, and of each other one.
    pub rows: Option<[u64; 2]>,
    /// The mean outcome of one person of the control arm.
    pub mean: Option<f64>,
}

/// Which rows something is reckoned for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RowsFrom {
    /// Nobody here knows any.
    #[default]
    Nobody,
    /// Those that were said with the proposal: of the first party, and of each other one.
    Said([u64; 2]),
    /// Those of an own data set.
    Checked(RowsOfCheck),
}

/// Rows that the last check of a data set found.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsOfCheck {
    /// The data set.
    pub data: String,
    /// Its rows.
    pub rows: u64,
    /// Whether these are all.
    pub whole: bool,
    /// The day of the check.
    pub day: String,
}

/// What a study is reckoned for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReckonedFor {
    /// Rows.
    pub rows: RowsFrom,
    /// The mean outcome of one person of the control arm, where somebody says it.
    pub mean: Option<f64>,
    /// Whether other engines are compared.
    pub engines: bool,
}

impl ReckonedFor {
    /// What was said with a proposal or in its form; other engines are compared where rows were.
    #[must_use]
    pub fn said(sizes: SaidSizes) -> Self {
        let rows = sizes.rows.map_or(RowsFrom::Nobody, RowsFrom::Said);
        Self { rows, mean: sizes.mean, engines: sizes.rows.is_some() }
    }

    /// Rows of the first party and of each other one; `us` is the key of this organisation.
    pub(crate) fn rows(&self, study: &Study, us: &str) -> [u64; 2] {
        match &self.rows {
            RowsFrom::Nobody => [NOBODY; 2],
            RowsFrom::Said(rows) => *rows,
            RowsFrom::Checked(found) => {
                // Whoever has outcomes knows of those people alone, and not how large the trial is.
                let own = found.rows.max(1);
                let first = if advertises(study, us) { NOBODY } else { own };
                [first, own.min(limits::ROWS.saturating_sub(first))]
            }
        }
    }

    /// Which rows these are and who says so, in words.
    pub(crate) fn words(&self, study: &Study, us: &str) -> String {
        let [first, others] = self.rows(study, us).map(count);
        match &self.rows {
            RowsFrom::Nobody => format!("{first} rows of each party, as nobody here said how many"),
            RowsFrom::Said(_) => {
                let names: Vec<&str> = study.parties.iter().map(|party| party.name.as_str()).collect();
                let whose = if names.len() == 2 { names[1] } else { "each other party" };
                let one = names.first().copied().unwrap_or_default();
                format!("{first} rows of {one} and {others} of {whose}, as was said with the proposal")
            }
            RowsFrom::Checked(RowsOfCheck { data, rows, whole, day }) => {
                let more = if *whole { "" } else { "more than " };
                let own = format!("{more}{} of {data}, as checked on {day}", counted(*rows, "row"));
                if advertises(study, us) {
                    format!("{own}; {first} of the publisher, as nobody here said how many")
                } else {
                    format!("{own}, and as many of each other party, as nobody here said theirs")
                }
            }
        }
    }
}

/// Whether the party with this key has the outcomes of a lift study.
fn advertises(study: &Study, key: &str) -> bool {
    study.parties.iter().any(|party| party.key == key && party.role == PartyRole::Advertiser)
}

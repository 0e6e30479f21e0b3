//! Rows of any party, and their cells as bytes of a fixed width.

use crate::tag::DataSet;
use crate::{AdvertiserRows, ProgramRows, PublisherRows, RowKeys};
use base::{Error, PartyId};
use study::{PartyRole, Question, Study, TrialArm};

/// One party's rows, or some of them.
pub enum Rows {
    /// The publisher's.
    Publisher(PublisherRows),
    /// The advertiser's.
    Advertiser(AdvertiserRows),
    /// A program's columns.
    Program(ProgramRows),
}

/// What a row's cells are, and so how many bytes they take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowShape {
    /// Arm, opportunity, and what else the study asks for.
    Publisher {
        /// Whether there are impressions.
        impressions: bool,
        /// Whether there is a breakdown.
        breakdown: bool,
    },
    /// Events, and what else the study asks for.
    Advertiser {
        /// Most events of a row.
        max_events: u8,
        /// Whether there is a cohort.
        cohort: bool,
    },
    /// A program's columns by name.
    Program {
        /// Their names, in order.
        names: Vec<String>,
    },
}

impl RowShape {
    /// That of a party's rows in a study.
    ///
    /// # Errors
    /// When there is no such party, its role has no rows, or the study's program does not parse.
    pub fn of(study: &Study, me: PartyId) -> Result<Self, Error> {
        let nobody = || Error::misuse("a party of a study has rows in it");
        let member = study.parties.get(me.index()).ok_or_else(nobody)?;
        Ok(match &study.kind {
            Question::Lift(lift) if member.role == PartyRole::Publisher => Self::Publisher {
                impressions: lift.publisher.impressions.is_some(),
                breakdown: lift.publisher.breakdown.is_some(),
            },
            Question::Lift(lift) => {
                let advertiser = lift.advertiser(me).ok_or_else(nobody)?;
                Self::Advertiser { max_events: advertiser.max_events, cohort: advertiser.cohort.is_some() }
            }
            Question::Program(own) => {
                Self::Program { names: crate::program::names(&own.source, &member.name)? }
            }
            Question::Match(columns) => {
                Self::Program { names: crate::program::names(columns, &member.name)? }
            }
        })
    }

    /// Bytes of a row's cells.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Self::Publisher { impressions, breakdown } => {
                5 + 2 * usize::from(*impressions) + usize::from(*breakdown)
            }
            Self::Advertiser { max_events, cohort } => {
                1 + 8 * usize::from(*max_events) + usize::from(*cohort)
            }
            Self::Program { names } => 8 * names.len(),
        }
    }

    /// No rows yet.
    #[must_use]
    pub fn no_rows(&self) -> Rows {
        match self {
            Self::Publisher { .. } => Rows::Publisher(PublisherRows::default()),
            Self::Advertiser { .. } => {
                Rows::Advertiser(AdvertiserRows { starts: vec![0], ..AdvertiserRows::default() })
            }
            Self::Program { names } => Rows::Program(ProgramRows {
                names: names.clone(),
                columns: vec![Vec::new(); names.len()],
                ..ProgramRows::default()
            }),
        }
    }
}

impl Rows {
    /// What their tags are of.
    pub(crate) fn data_set(&self) -> &dyn DataSet {
        match self {
            Self::Publisher(rows) => rows,
            Self::Advertiser(rows) => rows,
            Self::Program(rows) => rows,
        }
    }

    /// The identifiers, one or several per row; of rows without identifiers there are none.
    #[must_use]
    pub fn identifiers(&self) -> &RowKeys {
        match self {
            Self::Publisher(rows) => &rows.identifiers,
            Self::Advertiser(rows) => &rows.identifiers,
            Self::Program(rows) => &rows.identifiers,
        }
    }

    pub(crate) fn identifiers_mut(&mut self) -> &mut RowKeys {
        match self {
            Self::Publisher(rows) => &mut rows.identifiers,
            Self::Advertiser(rows) => &mut rows.identifiers,
            Self::Program(rows) => &mut rows.identifiers,
        }
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory(&self) -> u64 {
        match self {
            Self::Publisher(rows) => rows.memory(),
            Self::Advertiser(rows) => rows.memory(),
            Self::Program(rows) => rows.memory(),
        }
    }

    /// Rows of the test and the control arm, where this party knows arms.
    #[must_use]
    pub fn groups(&self) -> Option<[u64; 2]> {
        let Self::Publisher(rows) = self else { return None };
        let test = rows.arm.iter().filter(|arm| **arm == TrialArm::Test).count() as u64;
        Some([test, rows.arm.len() as u64 - test])
    }

    /// Appends a row's cells: as many bytes as the width of its shape.
    pub fn append_cells(&self, shape: &RowShape, row: usize, into: &mut Vec<u8>) {
        match (self, shape) {
            (Self::Publisher(rows), RowShape::Publisher { impressions, breakdown }) => {
                rows.append_cells(*impressions, *breakdown, row, into);
            }
            (Self::Advertiser(rows), RowShape::Advertiser { max_events, cohort }) => {
                rows.append_cells(*max_events, *cohort, row, into);
            }
            (Self::Program(rows), RowShape::Program { .. }) => rows.append_cells(row, into),
            _ => unreachable!("rows have the shape of their party"),
        }
    }

    /// Adds the cells of a further row, without its identifier; none where they are of no row of this shape.
    #[must_use]
    pub fn push_cells(&mut self, shape: &RowShape, cells: &[u8]) -> Option<()> {
        match (self, shape) {
            (Self::Publisher(rows), RowShape::Publisher { impressions, breakdown }) => {
                rows.push_cells(*impressions, *breakdown, cells)
            }
            (Self::Advertiser(rows), RowShape::Advertiser { max_events, cohort }) => {
                rows.push_cells(*max_events, *cohort, cells)
            }
            (Self::Program(rows), RowShape::Program { .. }) => rows.push_cells(cells),
            _ => None,
        }
    }
}

//! The readers of each sort of rows, in memory.

use crate::tag;
use crate::{AdvertiserRows, InputReport, ProgramRows, PublisherRows, RowStore, Rows};
use crate::{advertiser, program, publisher};
use base::{Error, PartyId, Seed};
use std::path::Path;
use std::sync::Arc;
use study::Study;

/// Rows that are in memory.
fn held(rows: RowStore) -> Rows {
    let held = rows.in_memory("a test").expect("no room was given for others").clone();
    drop(rows);
    Arc::into_inner(held).expect("nobody else has them")
}

pub(crate) fn read_publisher(path: &Path, study: &Study) -> Result<(PublisherRows, InputReport), Error> {
    let (rows, report) = publisher::read(path.into(), study, None)?;
    let Rows::Publisher(rows) = held(rows) else { panic!("a publisher's") };
    Ok((rows, report))
}

pub(crate) fn read_advertiser(
    path: &Path,
    study: &Study,
    me: PartyId,
) -> Result<(AdvertiserRows, InputReport), Error> {
    let (rows, report) = advertiser::read(path.into(), study, me, None)?;
    let Rows::Advertiser(rows) = held(rows) else { panic!("an advertiser's") };
    Ok((rows, report))
}

pub(crate) fn read_program_columns(
    path: &Path,
    study: &Study,
    party: &str,
) -> Result<(ProgramRows, InputReport), Error> {
    let (rows, report) = program::read(path.into(), study, party, None)?;
    let Rows::Program(rows) = held(rows) else { panic!("a program's") };
    Ok((rows, report))
}

/// Both names of a data set: by a key, and by the order of before.
pub(crate) fn names(rows: &dyn tag::DataSet) -> [[u8; 32]; 2] {
    let key = Seed::from_bytes([7; 32]);
    let (mut sum, mut hasher) = (tag::RowSum::new(&key), tag::RowsHasher::default());
    sum.add_rows(rows);
    hasher.add_rows(rows);
    [*sum.tag().as_bytes(), *hasher.finish().as_bytes()]
}

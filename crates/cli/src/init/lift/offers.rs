//! By which further columns results could be shown: tried on all rows, as `tacit check` does.

use super::{TrialSide, lift, read};
use crate::init::guess;
use crate::init::making::Making;
use base::Error;
use data::RowStore;
use data::survey::ColumnSurvey;
use job::small::too_small;
use page::numbers::count;
use study::{Categories, EventValue, Question, Study};

/// Bytes of data that are read once more for each column.
const TRIED: u64 = 64 << 20;
/// Columns that are tried.
const MOST: usize = 8;

/// The flag that shows results by a column of this side.
fn flag(side: TrialSide) -> &'static str {
    if side == TrialSide::Publisher { "--breakdown" } else { "--cohort" }
}

/// A study with results by a column, or without any.
fn by(study: &Study, side: TrialSide, column: Option<Categories>) -> Study {
    let mut study = study.clone();
    if let Question::Lift(lift) = &mut study.kind {
        match side {
            TrialSide::Publisher => lift.publisher.breakdown = column,
            TrialSide::Advertiser => lift.advertisers[0].cohort = column,
        }
    }
    study
}

/// Refuses a column that was said and would be refused by a run, where the study without it would not.
///
/// # Errors
/// That.
pub fn refuse_small(study: &Study, side: TrialSide, rows: &RowStore) -> Result<(), Error> {
    let small = too_small(study, rows)?;
    match small.first() {
        Some(first) if too_small(&by(study, side, None), rows)?.is_empty() => Err(Error::input(format!(
            "{first}; `tacit check` would refuse the study. Leave {} out, or put small values together in \
             the file",
            flag(side)
        ))),
        _ => Ok(()),
    }
}

/// Offers columns by which results could be shown as well, and says of others why not.
///
/// # Errors
/// When the data cannot be examined.
pub fn offer(making: &mut Making<'_>, study: &Study, side: TrialSide, rows: &RowStore) -> Result<(), Error> {
    let shown = match side {
        TrialSide::Publisher => lift(study).publisher.breakdown.is_some(),
        TrialSide::Advertiser => lift(study).advertisers[0].cohort.is_some(),
    };
    let large = data::input_bytes(making.location())? > TRIED;
    if shown || large || !too_small(study, rows)?.is_empty() {
        return Ok(());
    }
    let used = used(making, study, side);
    let fits = |column: &&ColumnSurvey| {
        column.values.len() > 1 && !guess::is_time(column) && !used.contains(&column.name)
    };
    let columns: Vec<ColumnSurvey> = making.survey.columns.iter().filter(fits).take(MOST).cloned().collect();
    for column in columns {
        let name = &column.name;
        let line = match refusal(making, study, side, &column)? {
            None => format!("{} \"{name}\": {} values", flag(side), column.values.len()),
            Some(why) => format!("not \"{name}\": {why}"),
        };
        making.offer(line);
    }
    Ok(())
}

/// Columns that have another meaning.
fn used(making: &Making<'_>, study: &Study, side: TrialSide) -> Vec<String> {
    let names = study.matching.identifiers.iter();
    let mut used: Vec<String> = names.map(|own| making.format.in_file(&own.name).to_owned()).collect();
    match side {
        TrialSide::Publisher => {
            let publisher = &lift(study).publisher;
            used.extend([&publisher.arm, &publisher.opportunity].map(String::clone));
            used.extend(publisher.impressions.clone());
        }
        TrialSide::Advertiser => {
            let advertiser = &lift(study).advertisers[0];
            used.extend(advertiser.events.iter().cloned());
            used.extend(advertiser.filter.iter().map(|filter| filter.column.clone()));
            if let EventValue::Columns { columns, .. } = &advertiser.value {
                used.extend(columns.iter().cloned());
            }
        }
    }
    used
}

/// Why a run would not show results by a column; none: it would.
fn refusal(
    making: &Making<'_>,
    study: &Study,
    side: TrialSide,
    column: &ColumnSurvey,
) -> Result<Option<String>, Error> {
    if column.empty > 0 {
        return Ok(Some(format!("{} cells of the sample are empty", count(column.empty))));
    }
    let values = column.values.iter().map(|(value, _)| value.clone()).collect();
    let study = by(study, side, Some(Categories { column: column.name.clone(), values }));
    match read(making, &study, side) {
        Ok((rows, _)) => Ok(too_small(&study, &rows)?.into_iter().next()),
        Err(error) => Ok(Some(error.to_string().lines().next().unwrap_or_default().to_owned())),
    }
}

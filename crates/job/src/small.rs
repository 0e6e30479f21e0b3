//! What a study asks for and its rows are too few for.

use base::Error;
use data::{RowStore, Rows};
use study::{Categories, LiftStudy, Question, Study, TrialArm};

/// What costs rho and can show nothing: the publisher knows its arms and breakdowns before anything is sent,
/// the advertiser how many rows a cohort has at most.
///
/// # Errors
/// When the rows cannot be read.
pub fn too_small(study: &Study, rows: &RowStore) -> Result<Vec<String>, Error> {
    let Question::Lift(lift) = &study.kind else { return Ok(Vec::new()) };
    let least = lift.release.minimum_group;
    let text = |what: String, has: u64| {
        format!(
            "{what} has {}, and no result is shown of fewer than the study's minimum_group of {}",
            page::numbers::counted(has, "row"),
            page::numbers::count(least)
        )
    };
    let mut small = Vec::new();
    let has = CellCounts::of(lift, rows)?;
    if let Some(groups) = rows.groups() {
        let arms = [
            ("test", &lift.publisher.test, &has.test, groups[0]),
            ("control", &lift.publisher.control, &has.control, groups[1]),
        ];
        for (arm, label, counts, all) in arms {
            if all < least {
                small.push(text(format!("the {arm} arm ({label})"), all));
                continue;
            }
            let values = lift.publisher.breakdown.as_ref().map_or(&[][..], |breakdown| &breakdown.values);
            for (value, &has) in values.iter().zip(counts).filter(|(_, has)| **has < least) {
                small.push(text(format!("the {arm} arm ({label}) of breakdown {value}"), has));
            }
        }
    }
    if let (None, [advertiser]) = (rows.groups(), &lift.advertisers[..]) {
        let values = advertiser.cohort.as_ref().map_or(&[][..], |cohort| &cohort.values);
        for (value, &has) in values.iter().zip(&has.cohort).filter(|(_, has)| **has < 2 * least) {
            let (all, half) = (page::numbers::counted(has, "row"), page::numbers::counted(has / 2, "row"));
            small.push(format!(
                "cohort {value}, of both arms together, has {all}, so the smaller arm of it {half} at most, \
                 and no result is shown of an arm of fewer than the study's minimum_group of {}",
                page::numbers::count(least)
            ));
        }
    }
    Ok(small)
}

/// Rows of each value of a breakdown, by arm, and of a cohort.
struct CellCounts {
    test: Vec<u64>,
    control: Vec<u64>,
    cohort: Vec<u64>,
}

impl CellCounts {
    fn of(lift: &LiftStudy, rows: &RowStore) -> Result<Self, Error> {
        let none = |values: Option<&Categories>| vec![0; values.map_or(0, |values| values.values.len())];
        let breakdown = none(lift.publisher.breakdown.as_ref());
        let cohort = none(lift.advertisers.first().and_then(|advertiser| advertiser.cohort.as_ref()));
        let mut has = Self { test: breakdown.clone(), control: breakdown, cohort };
        if has.test.is_empty() && has.cohort.is_empty() {
            return Ok(has);
        }
        let count = |counts: &mut [u64], value: u8| {
            if let Some(count) = counts.get_mut(usize::from(value)) {
                *count += 1;
            }
        };
        rows.each_block(|_, block| {
            match block {
                Rows::Publisher(own) => own.arm.iter().zip(&own.breakdown).for_each(|(arm, value)| {
                    count(if *arm == TrialArm::Test { &mut has.test } else { &mut has.control }, *value);
                }),
                Rows::Advertiser(own) => own.cohort.iter().for_each(|value| count(&mut has.cohort, *value)),
                Rows::Program(_) => {}
            }
            Ok(())
        })?;
        Ok(has)
    }
}

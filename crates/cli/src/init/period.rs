//! The times of a study: from the times of both parties' data, widened so that they tell whole months alone.

use super::draft::said;
use base::Error;
use page::numbers::count;
use std::collections::BTreeMap;
use std::ops::Range;
use study::LiftStudy;
use study::time::{Clock, DATES, Unit, date_of_days};

/// Seconds of a day.
pub const DAY: i64 = 86_400;
/// Days since 1970 that times of a study are of: the years 1700 to 2199.
pub const NEAR: Range<i64> = -98_615..84_006;
/// The largest span.
const LONGEST: i64 = 4_294_967_294;

/// What times a study has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeMonths {
    unit: Unit,
    /// The first second, of the first day of a month.
    from: i64,
    /// The first second after it, of the first day of a month.
    until: i64,
    /// Whether cells count seconds since 1970, which fixes the beginning.
    counted: bool,
}

/// The first day of the month that has a day.
fn month(day: i64) -> i64 {
    let of_month: i64 = date_of_days(day).rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or(1);
    day - (of_month - 1)
}

/// The first day after the month that has a day.
fn after_month(day: i64) -> i64 {
    let next = month(day) + 31;
    if DATES.contains(&next) { month(next) } else { next }
}

/// Months that somebody says, so that no row of the data does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaidMonths {
    from: i64,
    until: i64,
}

impl SaidMonths {
    /// Reads `2026-01..2026-12`.
    ///
    /// # Errors
    /// How it is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let day = |month: &str| base::days_of_date(&format!("{month}-01")).filter(|day| NEAR.contains(day));
        let ends = text.split_once("..").and_then(|(from, until)| Some([day(from)?, day(until)?]));
        match ends {
            Some([from, until]) if from <= until => {
                Ok(Self { from: from * DAY, until: after_month(until) * DAY })
            }
            _ => Err("write the first month and the last: 2026-01..2026-12, of 1700 to 2199".to_owned()),
        }
    }
}

/// How many times lie in each month.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DayCounts(BTreeMap<i64, u64>);

/// A month at an end of all times has so many of them, or is worth a word.
const FEW: u64 = 10;

impl DayCounts {
    /// One more.
    pub fn add(&mut self, clock: &Clock, time: u32) {
        let seconds = clock.origin_seconds() + i64::from(time) * clock.unit().seconds();
        *self.0.entry(seconds.div_euclid(DAY)).or_default() += 1;
    }

    /// The months of all of them, in the unit of those of a sample; none where there is no time.
    pub fn period(&self, sample: &WholeMonths) -> Option<WholeMonths> {
        let (first, last) = (self.0.first_key_value()?.0, self.0.last_key_value()?.0);
        Some(WholeMonths::of(sample.unit, first * DAY, last * DAY, sample.counted))
    }

    /// What is told of the data at an end where few times lie, in words; nothing where all are few.
    pub fn thin_ends(&self) -> Vec<String> {
        let mut months: BTreeMap<i64, u64> = BTreeMap::new();
        self.0.iter().for_each(|(day, times)| *months.entry(month(*day)).or_default() += times);
        let all: u64 = months.values().sum();
        let name = |month: i64| date_of_days(month).rsplit_once('-').map_or_else(String::new, |m| m.0.into());
        let end = |side: &str, which: &str, months: Vec<(i64, u64)>| {
            let (mut few, at) = (0, months.first()?.0);
            for (month, times) in months {
                if few + times >= FEW {
                    let are = if few == 1 { "is" } else { "are" };
                    return Some(format!(
                        "{} of {} times {are} {side} {}, the {which} in {}",
                        count(few),
                        count(all),
                        name(month),
                        name(at)
                    ))
                    .filter(|_| month != at);
                }
                few += times;
            }
            None
        };
        let forward: Vec<(i64, u64)> = months.into_iter().collect();
        let backward: Vec<(i64, u64)> = forward.iter().rev().copied().collect();
        if all < 10 * FEW {
            return Vec::new();
        }
        [end("before", "first", forward), end("after", "last", backward)].into_iter().flatten().collect()
    }
}

impl WholeMonths {
    /// The months of times from `low` to `high`, in seconds.
    pub fn of(unit: Unit, low: i64, high: i64, counted: bool) -> Self {
        let (first, last) = (low.div_euclid(DAY), high.div_euclid(DAY));
        Self { unit, from: month(first) * DAY, until: after_month(last) * DAY, counted }
    }

    /// The same in another unit; seconds since 1970 stay seconds.
    pub fn in_unit(self, unit: Unit) -> Self {
        if self.counted { self } else { Self { unit, ..self } }
    }

    /// That of a study which one party has begun.
    pub fn of_study(lift: &LiftStudy) -> Self {
        let (from, unit) = (lift.clock.origin_seconds(), lift.clock.unit());
        let until = from + (i64::from(lift.clock.span()) + 1) * unit.seconds();
        let counted = from == 0 && unit == Unit::Second && i64::from(lift.clock.span()) == LONGEST;
        Self { unit, from, until, counted }
    }

    /// Both, in the coarser unit.
    pub fn with(self, other: Self) -> Self {
        let unit = if self.unit.seconds() < other.unit.seconds() { other.unit } else { self.unit };
        if self.counted || other.counted {
            return Self { unit: Unit::Second, from: 0, until: LONGEST + 1, counted: true };
        }
        Self { unit, from: self.from.min(other.from), until: self.until.max(other.until), counted: false }
    }

    /// A clock with room around these times, for looking at data; in the unit of these.
    ///
    /// # Errors
    /// When no clock of that unit reaches from the first to the last.
    pub fn wide(&self) -> Result<String, Error> {
        let length = self.until - self.from;
        let most = LONGEST.saturating_mul(self.unit.seconds());
        if !self.counted && length > most {
            return Err(Error::input(format!(
                "times of the file go from {} to {} (whole months), and the longest time of a study is {} \
                 years of {}s: correct the rows that are far from all others, or say --time-unit day",
                date_of_days(self.from / DAY),
                date_of_days(self.until / DAY - 1),
                count((most / (365 * DAY)) as u64),
                self.unit.name()
            )));
        }
        // A sample may miss some.
        let room = (30 * 365 * DAY).min((most - length) / 2);
        let from = if self.counted { 0 } else { month((self.from - room).div_euclid(DAY)) };
        let span = match self.counted {
            true => LONGEST,
            false => ((self.until + room - from * DAY) / self.unit.seconds()).min(LONGEST),
        };
        Ok(format!(
            "[time]\norigin = {}\nunit = \"{}\"\nspan = {span}\n",
            date_of_days(from),
            self.unit.name()
        ))
    }

    /// The months that were said instead.
    ///
    /// # Errors
    /// When times are outside of them.
    pub fn said(self, months: SaidMonths) -> Result<Self, Error> {
        let SaidMonths { from, until } = months;
        if self.counted {
            return Err(Error::input(
                "times of the file count seconds since 1970, which fixes what the study says: leave --months \
                 out",
            ));
        }
        if self.from < from || until < self.until {
            return Err(Error::input(format!(
                "--months leaves out times of the file, which go from {} to {} (whole months); a run would \
                 refuse their rows",
                date_of_days(self.from / DAY),
                date_of_days(self.until / DAY - 1)
            )));
        }
        Ok(Self { from, until, ..self })
    }

    /// What it tells.
    pub fn shown(&self) -> String {
        match self.counted {
            true => "that times count seconds since 1970".to_owned(),
            false => format!(
                "times from {} to {}, whole months, in {}s",
                date_of_days(self.from / DAY),
                date_of_days(self.until / DAY - 1),
                self.unit.name()
            ),
        }
    }

    /// The section `[time]`; of a finished study with all times that take no more bits.
    pub fn section(&self, finished: bool) -> String {
        let (from, needed) = match self.counted {
            true => (0, LONGEST),
            false => (self.from, ((self.until - self.from) / self.unit.seconds() - 1).clamp(1, LONGEST)),
        };
        let bits = 64 - (needed + 1).leading_zeros();
        let span = if finished { ((1i64 << bits) - 2).clamp(needed, LONGEST) } else { needed };
        let origin = said(
            "A time before it is an error. The first day of a month: the first day of the data is not told.",
            &format!("origin = {}", date_of_days(from / DAY)),
        );
        let unit = said(
            match self.unit {
                Unit::Day => {
                    "Days: a party has no finer times, or a coarser unit was chosen. An event of the same \
                     day as the opportunity does not count."
                }
                _ => {
                    "As fine as the times of the files; a coarser unit (--time-unit) is cheaper. An event \
                     of the same unit as the opportunity does not count."
                }
            },
            &format!("unit   = \"{}\"", self.unit.name()),
        );
        let span = said(
            match (self.counted, finished) {
                (true, _) => "A file counts seconds since 1970: 32 bits.",
                (false, true) => {
                    "At least to the end of the last month; the longest span of as many bits, since that \
                     costs nothing more."
                }
                (false, false) => {
                    "To the end of the last month of this party's times; the other party's are added."
                }
            },
            &format!("span   = {span}"),
        );
        format!("[time]\n{origin}{unit}{span}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_hang_on_few_rows_are_named() {
        let origin = base::days_of_date("1900-01-01").unwrap();
        let clock = Clock::new(origin * DAY, Unit::Day, 60_000).unwrap();
        let mut days = DayCounts::default();
        let mut add = |date: &str, times: u64| {
            let day = (base::days_of_date(date).unwrap() - origin) as u32;
            (0..times).for_each(|_| days.add(&clock, day));
            days.clone()
        };
        assert!(add("2026-02-03", 9).thin_ends().is_empty(), "of few rows each counts");
        assert!(add("2026-03-03", 1_200).thin_ends().len() == 1);
        assert!(add("2026-02-04", 1).thin_ends().is_empty(), "ten are a month like others");
        add("1926-02-03", 1);
        let days = add("2026-04-01", 2);
        assert_eq!(
            days.thin_ends(),
            [
                "1 of 1,213 times is before 2026-02, the first in 1926-02",
                "2 of 1,213 times are after 2026-03, the last in 2026-04"
            ]
        );
        let sample = WholeMonths::of(Unit::Day, 0, 0, false);
        let told = |until: i64, unit: Unit| WholeMonths::of(unit, -50_000 * DAY, until, false).wide();
        assert!(told(20_000 * DAY, Unit::Day).unwrap().contains("origin = 1803-0"));
        assert!(
            told(20_000 * DAY, Unit::Second).unwrap_err().to_string().contains("is 136 years of seconds")
        );
        let period = days.period(&sample).unwrap();
        assert_eq!(period.shown(), "times from 1926-02-01 to 2026-04-30, whole months, in days");
        let said = |text: &str| period.said(SaidMonths::parse(text).unwrap()).map(|told| told.shown());
        assert_eq!(
            said("1926-01..2026-12").unwrap(),
            "times from 1926-01-01 to 2026-12-31, whole months, in days"
        );
        assert!(
            said("2026-01..2026-12").unwrap_err().to_string().contains("go from 1926-02-01 to 2026-04-30")
        );
        assert_eq!([NEAR.start, NEAR.end].map(date_of_days), ["1700-01-01", "2200-01-01"]);
        assert!(SaidMonths::parse("2026-01..9999-12").is_err());
        let far = WholeMonths::of(Unit::Day, DATES.start() * DAY, DATES.end() * DAY, false);
        assert_eq!(far.shown(), "times from 0000-01-01 to 9999-12-31, whole months, in days");
        assert!(SaidMonths::parse("2026-03..2026-02").is_err() && SaidMonths::parse("2026").is_err());
    }

    #[test]
    fn times_are_whole_months_of_both() {
        let day = |date: &str| base::days_of_date(date).unwrap() * DAY;
        let mails = WholeMonths::of(Unit::Day, day("2026-02-03"), day("2026-02-17"), false);
        let sales = WholeMonths::of(Unit::Second, day("2026-01-31") + 5, day("2026-12-24") + 7, false);
        assert_eq!(mails.shown(), "times from 2026-02-01 to 2026-02-28, whole months, in days");
        let both = mails.with(sales);
        assert_eq!(both.shown(), "times from 2026-01-01 to 2026-12-31, whole months, in days");
        let text = both.section(true);
        for line in ["origin = 2026-01-01\n", "unit   = \"day\"\n", "span   = 510\n"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(mails.section(false).contains("span   = 27\n"));
        let counted = WholeMonths::of(Unit::Second, 1_772_323_200, 1_772_323_200, true).with(mails);
        assert!(counted.section(true).contains("origin = 1970-01-01\n"));
        assert!(counted.section(true).contains("span   = 4294967294\n"));
    }
}

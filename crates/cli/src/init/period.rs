//! The times of a study: from the times of both parties' data, widened so that they tell whole months alone.

use super::draft::said;
use study::LiftStudy;
use study::time::{Clock, Unit, date_of_days};

/// Seconds of a day.
const DAY: i64 = 86_400;
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

impl WholeMonths {
    /// The months of times from `low` to `high`, in seconds.
    pub fn of(unit: Unit, low: i64, high: i64, counted: bool) -> Self {
        let (first, last) = (low.div_euclid(DAY), high.div_euclid(DAY));
        Self { unit, from: month(first) * DAY, until: month(month(last) + 31) * DAY, counted }
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
    pub fn wide(&self) -> String {
        let (from, span) = match (self.counted, self.unit) {
            (true, _) => (0, LONGEST),
            (false, Unit::Second) => (month(self.from / DAY - 365 * 30), LONGEST),
            (false, unit) => (month(self.from / DAY - 365 * 30), 365 * 100 * DAY / unit.seconds()),
        };
        format!("[time]\norigin = {}\nunit = \"{}\"\nspan = {span}\n", date_of_days(from), self.unit.name())
    }

    /// The period of exact times of a clock.
    pub fn exact(&self, clock: &Clock, times: [u32; 2]) -> Self {
        let seconds = |time: u32| clock.origin_seconds() + i64::from(time) * clock.unit().seconds();
        Self::of(self.unit, seconds(times[0]), seconds(times[1]), self.counted)
    }

    /// What it tells.
    pub fn shown(&self) -> String {
        match self.counted {
            true => "that times count seconds since 1970".to_owned(),
            false => format!(
                "times from {} to {}, whole months",
                date_of_days(self.from / DAY),
                date_of_days(self.until / DAY - 1)
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
    fn times_are_whole_months_of_both() {
        let day = |date: &str| base::days_of_date(date).unwrap() * DAY;
        let mails = WholeMonths::of(Unit::Day, day("2026-02-03"), day("2026-02-17"), false);
        let sales = WholeMonths::of(Unit::Second, day("2026-01-31") + 5, day("2026-12-24") + 7, false);
        assert_eq!(mails.shown(), "times from 2026-02-01 to 2026-02-28, whole months");
        let both = mails.with(sales);
        assert_eq!(both.shown(), "times from 2026-01-01 to 2026-12-31, whole months");
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

//! Cells of a column that fit the study's clock and all look as if they meant something else.

use super::dates::{DAY, LIKELY, SERIAL_1970, of_serial};
use std::fmt;
use study::reader::printable;
use study::time::{Clock, DATES, Unit, date_of_days};

/// What a cell was before it was a time of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeCell {
    /// A whole number, which counts units of the study.
    Counted(i64),
    /// Of a clock on a wall: whether it showed midnight, and whether UTC has another time.
    Wall { midnight: bool, moved: bool },
    /// What means one thing only.
    Plain,
}

/// What all cells of a column of times look like. For the owner of the data only.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TimeReport {
    /// The column, as the study calls it.
    pub column: String,
    /// Cells that are times.
    pub cells: u64,
    /// Whole numbers among them that spreadsheets give to days of our times.
    pub serials: u64,
    /// Whole numbers that are dates in digits: 20260315.
    pub digits: u64,
    /// Midnights of a zone of which UTC has another time.
    pub midnights: u64,
    /// The first whole number.
    pub example: i64,
}

impl TimeReport {
    pub(crate) fn new(column: &str) -> Self {
        Self { column: column.to_owned(), ..Self::default() }
    }

    pub(crate) fn see(&mut self, cell: TimeCell) {
        self.cells += 1;
        match cell {
            TimeCell::Counted(count) => {
                if self.serials + self.digits == 0 {
                    self.example = count;
                }
                self.serials += u64::from(LIKELY.contains(&(count as f64)));
                self.digits += u64::from(is_date(count));
            }
            TimeCell::Wall { midnight: true, moved: true } => self.midnights += 1,
            TimeCell::Wall { .. } | TimeCell::Plain => {}
        }
    }

    pub(crate) fn absorb(&mut self, later: Self) {
        if self.serials + self.digits == 0 {
            self.example = later.example;
        }
        self.cells += later.cells;
        self.serials += later.serials;
        self.digits += later.digits;
        self.midnights += later.midnights;
    }

    /// What was seen since this was last asked.
    pub(crate) fn taken(&mut self) -> Self {
        let fresh = Self::new(&self.column);
        std::mem::replace(self, fresh)
    }

    /// Whether all its cells look as if they meant something else than they do by this clock.
    pub(crate) fn is_doubtful(&self, clock: &Clock) -> bool {
        let days = clock.unit() == Unit::Day;
        let as_spreadsheets = days && clock.origin_seconds() == -SERIAL_1970 * DAY;
        let all = |some: u64| some > 0 && some == self.cells;
        all(self.serials) && !as_spreadsheets || all(self.digits) || all(self.midnights) && days
    }
}

/// Whether a number is a date of 1900 to 2099 in digits.
fn is_date(number: i64) -> bool {
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    (1900..2100).contains(&year) && base::days_of_date(&format!("{year}-{month:02}-{day:02}")).is_some()
}

impl fmt::Display for TimeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, cells, example, .. } = self;
        let name = printable(column);
        if self.midnights == *cells {
            return write!(
                f,
                "column \"{name}\": all {cells} times are midnight of `zone`, which is a day before or after \
                 in UTC. If they are days that were written with a time, say so by zeros: dates = {{ \
                 \"{name}\" = \"%Y-%m-%d %0:%0:%0\" }} under [format] of the party file (or --dates)"
            );
        }
        write!(
            f,
            "column \"{name}\": all {cells} whole numbers count units since the study's origin, and all \
             could be "
        )?;
        match of_serial(*example as f64).filter(|wall| self.serials == *cells && DATES.contains(&wall.days)) {
            Some(wall) => write!(
                f,
                "numbers that a spreadsheet gives to days ({example}: {}). If they are, add dates = \
                 \"spreadsheet\" under [format] of the party file (or --dates spreadsheet)",
                date_of_days(wall.days)
            ),
            None => write!(
                f,
                "dates in digits ({example}). If they are, add dates = \"%Y%m%d\" under [format] of the \
                 party file (or --dates %Y%m%d)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_that_look_so_as_a_whole_are_doubtful() {
        let of = |cells: &[TimeCell]| {
            let mut report = TimeReport::new("seen");
            cells.iter().for_each(|cell| report.see(*cell));
            report
        };
        let seconds = Clock::new(0, Unit::Second, u32::MAX).unwrap();
        let days = Clock::new(0, Unit::Day, 2_000_000).unwrap();
        let (serial, digits) = (TimeCell::Counted(46_082), TimeCell::Counted(20_260_315));
        let told = of(&[serial, TimeCell::Counted(46_090)]);
        assert!(told.is_doubtful(&seconds) && told.to_string().contains("(46082: 2026-03-01)"), "{told}");
        assert!(!told.is_doubtful(&Clock::new(-25_569 * DAY, Unit::Day, 60_000).unwrap()));
        assert!(!of(&[serial, TimeCell::Counted(7)]).is_doubtful(&seconds));
        assert!(!of(&[serial, TimeCell::Plain]).is_doubtful(&seconds) && !of(&[]).is_doubtful(&seconds));
        let told = of(&[digits, TimeCell::Counted(20_251_231)]);
        assert!(told.is_doubtful(&seconds));
        assert!(told.to_string().contains("(20260315). If they are, add dates = \"%Y%m%d\""), "{told}");
        assert!(!of(&[digits, TimeCell::Counted(20_261_315)]).is_doubtful(&seconds));
        let midnight = |moved| TimeCell::Wall { midnight: true, moved };
        assert!(of(&[midnight(true); 2]).is_doubtful(&days));
        assert!(!of(&[midnight(true); 2]).is_doubtful(&seconds));
        assert!(!of(&[midnight(true), TimeCell::Wall { midnight: false, moved: true }]).is_doubtful(&days));
        assert!(!of(&[midnight(false)]).is_doubtful(&days));
        let mut two = of(&[]);
        two.absorb(of(&[serial]));
        two.absorb(of(&[serial; 2]));
        assert_eq!((two.cells, two.serials, two.example), (3, 3, 46_082));
    }
}

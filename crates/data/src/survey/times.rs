//! The ways in which all cells of a column are days or times.

use crate::dates::{DAY, LIKELY, of_serial};
use crate::table::TableCell;
use study::format::{DateForm, WallTime};
use study::time::CellTime;

/// Whole numbers that may be seconds since 1970, until 2106.
const UNIX: std::ops::RangeInclusive<i64> = 0..=4_294_967_294;
/// The latest of such is of 1979 or later.
const UNIX_LATEST: i64 = 300_000_000;
/// Forms of a day that are tried.
const DAYS: [&str; 16] = [
    "%Y-%m-%d", "%d.%m.%Y", "%d.%m.%y", "%y.%m.%d", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y",
    "%y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d%m%Y", "%m%d%Y",
];
/// What may stand behind a day: nothing, zeros that say nothing, or a time.
const TIMES_OF_DAY: [&str; 9] = [
    "",
    " %0:%0",
    " %0:%0:%0",
    "T%0:%0:%0",
    " %0:%0:%0.%0",
    "T%0:%0:%0.%0",
    " %H:%M",
    " %H:%M:%S",
    "T%H:%M:%S",
];
/// Says of date-times of a spreadsheet that they are days, too.
const MIDNIGHTS: &str = "%Y-%m-%dT%0:%0:%0";

/// What the cells of a column say of time, by one way to read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSurvey {
    /// The form that has to be said; none where they can mean one thing only.
    pub form: Option<DateForm>,
    /// What they are.
    pub kind: TimeKind,
    /// Whether all are of midnight, and so days.
    pub midnight: bool,
    /// The earliest, in seconds since 1970 (of a clock on a wall where they have no offset).
    pub low: i64,
    /// The latest.
    pub high: i64,
}

impl TimeSurvey {
    /// Whether cells are digits alone, which other numbers are as well: seconds since 1970, `20260315`, or
    /// the number of a day in a spreadsheet.
    #[must_use]
    pub fn is_of_digits(&self) -> bool {
        let fields = |text: &str| text.bytes().all(|byte| byte == b'%' || byte.is_ascii_alphabetic());
        self.kind == TimeKind::Seconds || self.form.as_ref().is_some_and(|form| fields(&form.to_string()))
    }
}

/// What cells say of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeKind {
    /// Days.
    Day,
    /// Date-times with an offset.
    Instant,
    /// Date-times without one, some of them.
    Wall,
    /// Seconds since 1970.
    Seconds,
}

/// The ways that are left.
pub(super) struct TimeWatch {
    ways: Vec<(Option<DateForm>, Option<TimeSurvey>)>,
    /// Whether the form was said.
    said: bool,
}

impl TimeWatch {
    /// Those that are said, or all.
    pub fn new(said: &[DateForm]) -> Self {
        let mut ways: Vec<Option<DateForm>> = said.iter().cloned().map(Some).collect();
        if said.is_empty() {
            let patterns = DAYS.iter().flat_map(|day| TIMES_OF_DAY.map(|time| format!("{day}{time}")));
            ways.push(None);
            ways.extend(patterns.map(|pattern| DateForm::parse(&pattern).ok()).filter(Option::is_some));
            ways.push(Some(DateForm::Spreadsheet));
        }
        Self { ways: ways.into_iter().map(|form| (form, None)).collect(), said: !said.is_empty() }
    }

    pub fn see(&mut self, cell: TableCell<'_>) {
        let said = self.said;
        self.ways.retain_mut(|(form, seen)| {
            let Some((kind, seconds)) = read(form.as_ref(), said, cell) else { return false };
            let midnight = seconds.rem_euclid(DAY) == 0;
            match seen {
                Some(seen) => {
                    // Seconds since 1970 and dates are no one form.
                    if (seen.kind == TimeKind::Seconds) != (kind == TimeKind::Seconds) {
                        return false;
                    }
                    seen.kind = seen.kind.max(kind);
                    seen.midnight &= midnight;
                    (seen.low, seen.high) = (seen.low.min(seconds), seen.high.max(seconds));
                }
                None => {
                    let (low, high) = (seconds, seconds);
                    *seen = Some(TimeSurvey { form: form.clone(), kind, midnight, low, high });
                }
            }
            true
        });
    }

    /// The ways that read every cell; what the study reads by itself alone where it does. Where all are
    /// midnights of a clock, first that they are days.
    pub fn end(self) -> Vec<TimeSurvey> {
        let mut all: Vec<TimeSurvey> = self.ways.into_iter().filter_map(|(_, seen)| seen).collect();
        all.retain(|way| way.kind != TimeKind::Seconds || way.high >= UNIX_LATEST);
        let midnights = |way: &TimeSurvey| way.kind == TimeKind::Wall && way.midnight;
        match all.first().filter(|first| first.form.is_none()).map(midnights) {
            Some(false) => all.truncate(1),
            Some(true) => {
                // The same with a pattern can be said.
                let usual = all.remove(0);
                if !all.iter().any(midnights) {
                    all.push(usual);
                }
            }
            None => {}
        }
        all
    }
}

/// The time of a cell by one way.
fn read(form: Option<&DateForm>, said: bool, cell: TableCell<'_>) -> Option<(TimeKind, i64)> {
    let of_wall = |wall: WallTime| match wall.seconds {
        Some(seconds) => (TimeKind::Wall, wall.days * DAY + i64::from(seconds)),
        None => (TimeKind::Day, wall.days * DAY),
    };
    // What is a date has its form already; midnights are days where that is said.
    let (dated, of_days) = (form.is_none() || said, form.is_some_and(DateForm::is_of_days));
    match (form, cell) {
        (Some(form), TableCell::Wall(seconds))
            if of_days && seconds.rem_euclid(DAY) == 0 && (said || form.to_string() == MIDNIGHTS) =>
        {
            Some((TimeKind::Day, seconds))
        }
        (_, TableCell::Days(days)) if dated => Some((TimeKind::Day, i64::from(days) * DAY)),
        (_, TableCell::Seconds(seconds)) if dated => Some((TimeKind::Instant, seconds)),
        (_, TableCell::Wall(seconds)) if dated => Some((TimeKind::Wall, seconds)),
        (None, TableCell::Integer(count)) => UNIX.contains(&count).then_some((TimeKind::Seconds, count)),
        (None, TableCell::Text(text)) => match CellTime::read(text)? {
            CellTime::Day(days) => Some((TimeKind::Day, days * DAY)),
            CellTime::Instant(seconds) => Some((TimeKind::Instant, seconds)),
            CellTime::Wall(seconds) => Some((TimeKind::Wall, seconds)),
            // Telephone numbers have zeros in front; what counts seconds writes none.
            CellTime::Count(count) => (UNIX.contains(&count) && (count == 0 || !text.starts_with('0')))
                .then_some((TimeKind::Seconds, count)),
            CellTime::Long => None,
        },
        (Some(DateForm::Spreadsheet), cell) => {
            let number = match cell {
                TableCell::Integer(number) => number as f64,
                TableCell::Float(number) => number,
                TableCell::Text(text) => text.replace(',', ".").parse().ok()?,
                _ => return None,
            };
            LIKELY.contains(&number).then(|| of_serial(number)).flatten().map(of_wall)
        }
        (Some(DateForm::Pattern(pattern)), TableCell::Text(text)) => pattern.read(text).map(of_wall),
        (Some(DateForm::Pattern(pattern)), TableCell::Integer(number)) => {
            pattern.read(&number.to_string()).map(of_wall)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Form, kind and range of each way.
    fn ways(cells: &[&str]) -> Vec<(String, TimeKind, i64, i64)> {
        let mut watch = TimeWatch::new(&[]);
        cells.iter().for_each(|cell| watch.see(TableCell::Text(cell)));
        let name = |form: &Option<DateForm>| form.as_ref().map_or("usual".into(), ToString::to_string);
        watch.end().iter().map(|way| (name(&way.form), way.kind, way.low / DAY, way.high / DAY)).collect()
    }

    #[test]
    fn only_ways_that_read_all_cells_are_left() {
        let day = |form: &str, low, high| (form.to_owned(), TimeKind::Day, low, high);
        assert_eq!(ways(&["2026-03-01", "2026-02-01"]), [day("usual", 20_485, 20_513)]);
        assert_eq!(ways(&["01.03.2026", "28.02.2026"]), [day("%d.%m.%Y", 20_512, 20_513)]);
        assert_eq!(ways(&["03/04/2026", "3/13/2026"]), [day("%m/%d/%Y", 20_516, 20_525)]);
        let both: Vec<String> = ways(&["03/04/2026", "05/06/2026"]).into_iter().map(|way| way.0).collect();
        assert_eq!(both, ["%d/%m/%Y", "%m/%d/%Y"]);
        let packed: Vec<String> = ways(&["03042026", "05062026"]).into_iter().map(|way| way.0).collect();
        assert_eq!(packed, ["%d%m%Y", "%m%d%Y"]);
        assert_eq!(ways(&["46082", "46083,5"]), [("spreadsheet".to_owned(), TimeKind::Wall, 20_513, 20_514)]);
        assert_eq!(ways(&["1772323200"]), [("usual".to_owned(), TimeKind::Seconds, 20_513, 20_513)]);
        assert_eq!(
            ways(&["2026-03-01 10:00"]),
            [("%Y-%m-%d %H:%M".to_owned(), TimeKind::Wall, 20_513, 20_513)]
        );
        assert_eq!(ways(&["1", "1772323200"]), [("usual".to_owned(), TimeKind::Seconds, 0, 20_513)]);
        let forms = |cells: &[&str]| ways(cells).into_iter().map(|(form, kind, ..)| (form, kind));
        let midnights = |cells: &[&str], forms_of: [&str; 2]| {
            let expected = forms_of.map(str::to_owned).into_iter().zip([TimeKind::Day, TimeKind::Wall]);
            assert!(forms(cells).eq(expected), "{:?}", ways(cells));
        };
        midnights(&["2026-03-01T00:00:00"], ["%Y-%m-%dT%0:%0:%0", "%Y-%m-%dT%H:%M:%S"]);
        midnights(&["13.03.2026 0:00", "14.03.2026 00:00"], ["%d.%m.%Y %0:%0", "%d.%m.%Y %H:%M"]);
        midnights(&["2026-03-01T00:00:00.000"], ["%Y-%m-%dT%0:%0:%0.%0", "usual"]);
        midnights(&["2026-03-01 00:00:00.000"], ["%Y-%m-%d %0:%0:%0.%0", "usual"]);
        assert!(
            forms(&["2026-03-01T00:00:00", "2026-03-01T00:00:01"]).eq([("usual".into(), TimeKind::Wall)])
        );
        let both: Vec<String> = forms(&["26/03/01"]).map(|way| way.0).collect();
        assert_eq!(both, ["%d/%m/%y", "%y/%m/%d"]);
        assert!(ways(&["1", "299999999"]).is_empty());
        assert!(ways(&["01511234567"]).is_empty() && ways(&["0301234567", "1772323200"]).is_empty());
        assert!(ways(&["12", "2026-03-01"]).is_empty() && ways(&["a"]).is_empty());
        assert!(ways(&["1772323200", "2026-03-01"]).is_empty());
    }
}

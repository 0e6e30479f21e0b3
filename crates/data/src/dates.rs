//! What a cell says of a day or a time, in the form that is said of its column.

use super::table::TableCell;
use super::time_cells::TimeCell;
use std::borrow::Cow;
use study::format::{DateForm, DecimalSign, InputFormat, WallTime};
use study::time::{Clock, TimeError, date_of_days, wall_seconds};

/// Seconds of a day.
pub(crate) const DAY: i64 = 86_400;
/// The day of spreadsheets that is 1970-01-01.
pub(crate) const SERIAL_1970: i64 = 25_569;
/// Days that spreadsheets number alike: from 1900-03-01, before which one of them has a day too many, to
/// 9999-12-31.
const SERIALS: std::ops::RangeInclusive<f64> = 61.0..=2_958_465.999;
/// Numbers that are most likely days of a spreadsheet, where no number is expected: 1954 to 2064.
pub(crate) const LIKELY: std::ops::RangeInclusive<f64> = 20_000.0..=60_000.0;

/// What to do about a date-time of which it is not said where its clock hung.
const NO_ZONE: &str = "is a date-time without offset: add zone = \"+02:00\", or \"Europe/Berlin\", under \
                       [format] of the party file (or --zone)";

/// What to do about an instant where a day is due, which it is not before somebody says of which zone.
const OF_UTC: &str = "has a time of day in UTC, and a day is expected: hand over dates of the zone that is \
                      meant (of a frame of pandas `.dt.date`, in SQL CAST(.. AS DATE))";

/// The number of a time in the study, and what its cell was; else what is wrong with the cell, to stand
/// behind it.
pub(crate) fn time(
    cell: TableCell<'_>,
    column: &str,
    clock: &Clock,
    format: &InputFormat,
) -> Result<(u32, TimeCell), String> {
    let forms = format.dates_of(column);
    let days = !forms.is_empty() && forms.iter().all(DateForm::is_of_days);
    let is = |error: TimeError| match likely_serial(cell) {
        Some(hint) => hint,
        None => format!("is {error}"),
    };
    let zoned = |wall: i64| -> Result<_, String> {
        let at = instant(wall, format)?;
        Ok((clock.at_seconds(at), TimeCell::Wall { midnight: wall.rem_euclid(DAY) == 0, moved: at != wall }))
    };
    let (time, was) = match cell {
        TableCell::Days(days) => (clock.at_seconds(i64::from(days) * DAY), TimeCell::Plain),
        TableCell::Seconds(seconds) => (clock.at_seconds(seconds), TimeCell::Plain),
        // A spreadsheet shows the midnight of what is said to be a day.
        TableCell::Wall(seconds) if days && seconds.rem_euclid(DAY) == 0 => {
            (clock.at_seconds(seconds), TimeCell::Plain)
        }
        TableCell::Wall(seconds) => zoned(seconds)?,
        TableCell::Text(text) if forms.is_empty() => match (clock.parse(text), wall_seconds(text)) {
            (Err(TimeError::NoOffset), Some(wall)) if format.zone.is_some() => zoned(wall)?,
            (time, _) => (time, counted(text)),
        },
        TableCell::Integer(count) if forms.is_empty() => (clock.at_count(count), TimeCell::Counted(count)),
        _ if forms.is_empty() => (Err(TimeError::NotATime), TimeCell::Plain),
        cell => {
            let wall = formed(cell, forms, format.numbers().decimal)?;
            let midnight = wall.days * DAY;
            let (time, was) = match wall.seconds {
                None => (clock.at_seconds(midnight), TimeCell::Plain),
                Some(seconds) => zoned(midnight + i64::from(seconds))?,
            };
            return time.map(|time| (time, was)).map_err(|error| format!("is {error}"));
        }
    };
    time.map(|time| (time, was)).map_err(is)
}

/// What a text is that is read as a time without any form.
fn counted(text: &str) -> TimeCell {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().map_or(TimeCell::Plain, TimeCell::Counted),
        false => TimeCell::Plain,
    }
}

/// Seconds since 1970-01-01T00:00:00Z of a clock without an offset.
fn instant(wall: i64, format: &InputFormat) -> Result<i64, String> {
    let zone = format.zone.as_ref().ok_or(NO_ZONE)?;
    zone.instant(wall).map_err(|error| error.to_string())
}

/// Days since 1970-01-01 of a cell in the form that is said of its column; none where nothing is said.
pub(crate) fn day(cell: TableCell<'_>, column: &str, format: &InputFormat) -> Option<Result<i64, String>> {
    let of_time = |what: &str| Err(format!("is {what} with a time of day; a day is expected"));
    match cell {
        TableCell::Days(days) => Some(Ok(days.into())),
        TableCell::Seconds(seconds) | TableCell::Wall(seconds) if seconds % DAY == 0 => {
            Some(Ok(seconds / DAY))
        }
        TableCell::Seconds(_) => Some(Err(OF_UTC.to_owned())),
        TableCell::Wall(_) => Some(of_time("a date")),
        cell => {
            let forms = format.dates_of(column);
            if forms.is_empty() {
                return likely_serial(cell).map(Err);
            }
            Some(formed(cell, forms, format.numbers().decimal).and_then(|wall| match wall.seconds {
                None | Some(0) => Ok(wall.days),
                Some(_) => of_time("a date"),
            }))
        }
    }
}

/// A cell in one of these forms.
fn formed(cell: TableCell<'_>, forms: &[DateForm], decimal: Option<DecimalSign>) -> Result<WallTime, String> {
    let read = |form: &DateForm| match (form, cell) {
        (DateForm::Spreadsheet, cell) => serial(cell, decimal),
        (DateForm::Pattern(pattern), TableCell::Text(text)) => pattern.read(text),
        (DateForm::Pattern(pattern), TableCell::Integer(number)) => pattern.read(&number.to_string()),
        (DateForm::Pattern(_), _) => None,
    };
    forms.iter().find_map(read).ok_or_else(|| {
        let all: Vec<String> = forms.iter().map(DateForm::to_string).collect();
        format!("is no date in the form {}, which `dates` says", all.join(" or "))
    })
}

/// A cell that is a day's number in a spreadsheet.
fn serial(cell: TableCell<'_>, decimal: Option<DecimalSign>) -> Option<WallTime> {
    match cell {
        TableCell::Text(text) => {
            let text = match decimal {
                Some(DecimalSign::Comma) => Cow::Owned(text.replace(',', ".")),
                _ => Cow::Borrowed(text),
            };
            let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            text.parse().ok().filter(|_| plain).and_then(of_serial)
        }
        TableCell::Integer(number) => of_serial(number as f64),
        TableCell::Float(number) => of_serial(number),
        _ => None,
    }
}

/// The date, and the time of its day, that a spreadsheet gives this number: days since 1899-12-30.
pub(crate) fn of_serial(number: f64) -> Option<WallTime> {
    SERIALS.contains(&number).then(|| {
        let seconds = (number * DAY as f64).round() as i64;
        let (days, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let seconds = (rest > 0).then(|| u32::try_from(rest).expect("less than a day"));
        WallTime { days: days - SERIAL_1970, seconds }
    })
}

/// What to say of a number where a date is expected that spreadsheets give to a day of our times.
fn likely_serial(cell: TableCell<'_>) -> Option<String> {
    let number = match cell {
        TableCell::Integer(number) => number as f64,
        TableCell::Float(number) => number,
        TableCell::Text(text) => {
            let (whole, part) = text.split_once(['.', ',']).unwrap_or((text, ""));
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let number = (whole.len() == 5 && digits(whole) && digits(part)).then(|| whole.parse().ok());
            number.flatten()?
        }
        _ => return None,
    };
    let wall = of_serial(number).filter(|_| LIKELY.contains(&number))?;
    Some(format!(
        "looks like the number that a spreadsheet gives to {}: format the cells as dates, or add dates = \
         \"spreadsheet\" under [format] of the party file (or --dates spreadsheet)",
        date_of_days(wall.days)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_spreadsheets_have_dates_and_times() {
        let wall = |days, seconds| Some(WallTime { days, seconds });
        assert_eq!(of_serial(25_569.0), wall(0, None));
        assert_eq!(of_serial(46_082.5), wall(20_513, Some(43_200)));
        assert_eq!(of_serial(46_082.999_999_9), wall(20_514, None), "to the nearest second");
        assert_eq!(of_serial(46_082.0 + 1.0 / 86_400.0), wall(20_513, Some(1)));
        for wrong in [0.0, 60.0, -1.0, 2_958_466.0, f64::NAN, f64::INFINITY] {
            assert_eq!(of_serial(wrong), None, "{wrong}");
        }
    }
}

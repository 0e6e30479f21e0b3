//! Dates as people write them.

use time::Date;
use time::macros::format_description;

/// The Julian day of 1970-01-01.
const UNIX_JULIAN_DAY: i32 = 2_440_588;

/// Days from 1970-01-01 to a `YYYY-MM-DD` date; `None` when the text is not such a date.
#[must_use]
pub fn days_of_date(text: &str) -> Option<i64> {
    // A sign before the year would be read too.
    let text = Some(text).filter(|text| text.len() == 10)?;
    let date = Date::parse(text, format_description!("[year]-[month]-[day]")).ok()?;
    Some(i64::from(date.to_julian_day() - UNIX_JULIAN_DAY))
}

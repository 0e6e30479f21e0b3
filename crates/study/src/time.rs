//! Time as the study counts it: whole units since an origin both sides agreed on.
//!
//! Cells may be dates (`1954-04-26`), date-times with an offset (RFC 3339, `1954-04-26T09:30:00Z`), or whole
//! numbers that already count units since the origin. Everything is reduced to UTC and rounded down to the
//! unit.

use base::days_of_date;
use std::fmt;
use std::ops::RangeInclusive;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The unit in which a study counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// One second.
    Second,
    /// Sixty seconds.
    Minute,
    /// Sixty minutes.
    Hour,
    /// Twenty-four hours; days are days of UTC.
    Day,
}

impl Unit {
    /// All units by the name a study file uses.
    pub const NAMES: [(&'static str, Self); 4] =
        [("second", Self::Second), ("minute", Self::Minute), ("hour", Self::Hour), ("day", Self::Day)];

    /// Seconds in one unit.
    #[must_use]
    pub fn seconds(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        }
    }

    /// The name a study file uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

/// What a cell says of time by itself, before a study says where times begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellTime {
    /// A date: days since 1970-01-01.
    Day(i64),
    /// A date-time with an offset: seconds since 1970-01-01T00:00:00Z.
    Instant(i64),
    /// A date-time without one: the same on a clock on a wall.
    Wall(i64),
    /// A whole number, which counts units of some study.
    Count(i64),
    /// One of more digits.
    Long,
}

impl CellTime {
    /// Reads a cell; none where it is no time.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        if let Some(days) = days_of_date(text) {
            return Some(Self::Day(days));
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return Some(text.parse().map_or(Self::Long, Self::Count));
        }
        if let Ok(instant) = OffsetDateTime::parse(text, &Rfc3339) {
            return Some(Self::Instant(instant.unix_timestamp()));
        }
        let wall = OffsetDateTime::parse(&format!("{text}Z"), &Rfc3339).ok()?;
        Some(Self::Wall(wall.unix_timestamp()))
    }
}

/// Origin, unit and span of a study: which instants exist and which number each one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Seconds from 1970-01-01T00:00:00Z to the origin; negative before 1970.
    origin: i64,
    unit: Unit,
    span: u32,
}

/// Why a cell is not a time of the study. Its text says what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// Neither a date, nor a date-time with an offset, nor a whole number.
    NotATime,
    /// A date-time without an offset from UTC.
    NoOffset,
    /// Before the origin, which is written here.
    BeforeOrigin(String),
    /// After the last instant the study counts, which is written here.
    AfterSpan(String),
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATime => f.write_str(
                "not a time: use a date (1954-04-26), a date-time with offset (1954-04-26T09:30:00Z) or a \
                 whole number; another form is said by dates = \"%d.%m.%Y\" under [format] of the party file \
                 (or --dates)",
            ),
            Self::NoOffset => f.write_str(
                "a date-time without offset: append Z (UTC) or an offset such as +02:00, or add zone = \
                 \"+02:00\", or \"Europe/Berlin\", under [format] of the party file (or --zone)",
            ),
            Self::BeforeOrigin(origin) => {
                write!(
                    f,
                    "before the study's origin {origin}: correct the cell, or agree on an earlier \
                           [time] origin"
                )
            }
            Self::AfterSpan(last) => {
                write!(
                    f,
                    "after the study's last time {last}: correct the cell, or agree on a longer [time] \
                           span"
                )
            }
        }
    }
}

impl Clock {
    /// A clock. `origin` is in seconds since 1970-01-01T00:00:00Z; times run from 0 to `span` inclusive.
    ///
    /// # Errors
    /// A text when the last instant lies after the year 9999.
    pub fn new(origin: i64, unit: Unit, span: u32) -> Result<Self, String> {
        let clock = Self { origin, unit, span };
        match clock.instant(span) {
            Some(_) => Ok(clock),
            None => Err("origin and span reach beyond the year 9999".into()),
        }
    }

    /// Seconds from 1970-01-01T00:00:00Z to the origin.
    #[must_use]
    pub fn origin_seconds(&self) -> i64 {
        self.origin
    }

    /// The unit.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// The largest time.
    #[must_use]
    pub fn span(&self) -> u32 {
        self.span
    }

    /// Bits that hold every time `0..=span`; all ones is never earlier than any of them.
    #[must_use]
    pub fn bits(&self) -> u32 {
        32 - self.span.leading_zeros()
    }

    /// The number of the unit that holds an instant given in seconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// When the instant lies before the origin or after the span.
    pub fn at_seconds(&self, seconds: i64) -> Result<u32, TimeError> {
        self.at_units(i128::from(seconds) - i128::from(self.origin), self.unit.seconds())
    }

    /// A whole number that already counts units since the origin.
    ///
    /// # Errors
    /// When it is negative or larger than the span.
    pub fn at_count(&self, count: i64) -> Result<u32, TimeError> {
        self.at_units(i128::from(count), 1)
    }

    fn at_units(&self, distance: i128, unit: i64) -> Result<u32, TimeError> {
        let count = distance.div_euclid(i128::from(unit));
        if count < 0 {
            return Err(TimeError::BeforeOrigin(self.show(0)));
        }
        match u32::try_from(count) {
            Ok(count) if count <= self.span => Ok(count),
            _ => Err(TimeError::AfterSpan(self.show(self.span))),
        }
    }

    /// Reads a cell.
    ///
    /// # Errors
    /// When the text is no time, or one outside the study.
    pub fn parse(&self, text: &str) -> Result<u32, TimeError> {
        match CellTime::read(text) {
            Some(CellTime::Day(days)) => self.at_seconds(days * 86_400),
            Some(CellTime::Instant(seconds)) => self.at_seconds(seconds),
            Some(CellTime::Wall(_)) => Err(TimeError::NoOffset),
            Some(CellTime::Count(count)) => self.at_count(count),
            Some(CellTime::Long) if text.starts_with('-') => Err(TimeError::BeforeOrigin(self.show(0))),
            Some(CellTime::Long) => Err(TimeError::AfterSpan(self.show(self.span))),
            None => Err(TimeError::NotATime),
        }
    }

    /// The first instant of a unit, as a date when the unit is a day and as RFC 3339 otherwise.
    #[must_use]
    pub fn show(&self, count: u32) -> String {
        match self.instant(count) {
            Some(at) if self.unit == Unit::Day && self.origin % 86_400 == 0 => at.date().to_string(),
            Some(at) => at.format(&Rfc3339).unwrap_or_else(|_| at.to_string()),
            None => count.to_string(),
        }
    }

    fn instant(&self, count: u32) -> Option<OffsetDateTime> {
        let seconds = self.origin.checked_add(i64::from(count) * self.unit.seconds())?;
        OffsetDateTime::from_unix_timestamp(seconds).ok()
    }
}

/// Seconds from 1970-01-01T00:00:00 to a date-time without an offset, on the same clock.
#[must_use]
pub fn wall_seconds(text: &str) -> Option<i64> {
    let read = OffsetDateTime::parse(&format!("{text}Z"), &Rfc3339);
    read.ok().map(OffsetDateTime::unix_timestamp)
}

/// The `YYYY-MM-DD` date that lies `days` days after 1970-01-01; outside the years 0 to 9999 their number.
#[must_use]
pub fn date_of_days(days: i64) -> String {
    let at = DATES.contains(&days).then(|| OffsetDateTime::from_unix_timestamp(days * 86_400).ok()).flatten();
    match at {
        Some(at) => at.date().to_string(),
        None => format!("{days} days from 1970-01-01"),
    }
}

/// The days of the years 0 to 9999.
pub const DATES: RangeInclusive<i64> = -719_528..=2_932_896;

/// The day of a time in seconds since 1970, UTC, `2026-01-31`; of one outside 1970 to 9999 the nearest.
#[must_use]
pub fn date(at: i64) -> String {
    date_of_days(at.div_euclid(86_400).clamp(0, *DATES.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(origin: &str, span: u32) -> Clock {
        Clock::new(days_of_date(origin).expect("a date") * 86_400, Unit::Day, span).expect("a clock")
    }

    #[test]
    fn dates_before_1970_count_from_the_origin() {
        let clock = days("1954-01-01", 365);
        assert_eq!(clock.parse("1954-01-01"), Ok(0));
        assert_eq!(clock.parse("1954-04-26"), Ok(115));
        assert_eq!(clock.parse("1955-01-01"), Ok(365));
        assert_eq!(clock.parse("1954-01-01T23:59:59Z"), Ok(0));
        assert_eq!(clock.parse("1954-01-02T00:30:00+01:00"), Ok(0));
        assert_eq!(clock.parse("17"), Ok(17));
        assert_eq!(clock.bits(), 9);
    }

    #[test]
    fn what_is_outside_or_no_time_is_refused() {
        let clock = days("1954-01-01", 365);
        assert_eq!(clock.parse("1953-12-31"), Err(TimeError::BeforeOrigin("1954-01-01".into())));
        assert_eq!(clock.parse("1953-12-31T23:59:59Z"), Err(TimeError::BeforeOrigin("1954-01-01".into())));
        assert_eq!(clock.parse("-1"), Err(TimeError::BeforeOrigin("1954-01-01".into())));
        assert_eq!(clock.parse("1955-01-02"), Err(TimeError::AfterSpan("1955-01-01".into())));
        assert_eq!(clock.parse("366"), Err(TimeError::AfterSpan("1955-01-01".into())));
        assert_eq!(clock.parse("99999999999999999999"), Err(TimeError::AfterSpan("1955-01-01".into())));
        assert_eq!(clock.parse("1954-02-30"), Err(TimeError::NotATime));
        assert_eq!(clock.parse("26/04/1954"), Err(TimeError::NotATime));
        assert_eq!(clock.parse("1954-04-26T09:30:00"), Err(TimeError::NoOffset));
    }

    #[test]
    fn every_unit_rounds_down() {
        for (_, unit) in Unit::NAMES {
            let clock = Clock::new(0, unit, 1000).expect("a clock");
            assert_eq!(clock.at_seconds(unit.seconds() * 7), Ok(7));
            assert_eq!(clock.at_seconds(unit.seconds() * 8 - 1), Ok(7));
        }
        let wide = Clock::new(0, Unit::Second, u32::MAX).expect("a clock");
        assert_eq!((wide.bits(), wide.at_count(i64::from(u32::MAX))), (32, Ok(u32::MAX)));
    }

    #[test]
    fn a_date_has_one_form() {
        for wrong in [
            "+1954-04-26",
            "-1954-04-26",
            "1954-4-26",
            "1954-04-6 ",
            "+954-04-26",
            "1954-00-01",
            "19540-4-26",
        ] {
            assert_eq!(days_of_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dates_round_trip() {
        for day in (-20_000..40_000).step_by(17) {
            assert_eq!(days_of_date(&date_of_days(day)), Some(day));
        }
        let far = [i64::MIN, -719_529, -719_528, 2_932_896, 2_932_897, i64::MAX].map(date_of_days);
        assert_eq!((&*far[2], &*far[3]), ("0000-01-01", "9999-12-31"));
        assert!([0, 1, 4, 5].iter().all(|at| far[*at].ends_with(" days from 1970-01-01")), "{far:?}");
    }
}

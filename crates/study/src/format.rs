//! How a party's files say things: encoding, separator, decimal sign, dates. A private matter of each party:
//! rows that say the same are the same rows, in whatever form.

use crate::reader::printable;
use clap::Args;
use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use std::fmt;
use std::ops::RangeInclusive;
use time::{Date, Month};

/// What a party says about the form of its files: the section `[format]` of its file, or flags. What is not
/// said is found in the file where it can mean one thing only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct InputFormat {
    /// Of CSV: utf-8, utf-16, windows-1252 or latin-1
    #[arg(long, value_name = "NAME", value_parser = TextEncoding::parse)]
    pub encoding: Option<TextEncoding>,
    /// Of CSV, between fields: "," ";" "|" or tab
    #[arg(long, value_name = "CHARACTER", value_parser = parse_separator)]
    pub separator: Option<u8>,
    /// Before the decimals of numbers in text: "." or ","
    #[arg(long, value_name = "CHARACTER", value_parser = DecimalSign::parse)]
    pub decimal: Option<DecimalSign>,
    /// Between groups of three digits of numbers in text: "." or ",". The other one is before decimals
    #[arg(long, value_name = "CHARACTER", value_parser = DecimalSign::parse)]
    pub thousands: Option<DecimalSign>,
    /// Of CSV and Excel: the line (or row) that has the names of columns; those before it are skipped
    #[arg(long, value_name = "N", value_parser = parse_header_line)]
    pub header_line: Option<u64>,
    /// How dates are written, %d.%m.%Y, or spreadsheet for day numbers; of one column COLUMN=%d.%m.%Y; may be
    /// repeated
    #[arg(long = "dates", value_name = "[COLUMN=]FORM", value_parser = ColumnDates::parse)]
    pub dates: Vec<ColumnDates>,
    /// Where clocks hang whose times have no offset: +01:00, Z or Europe/Berlin
    #[arg(long, value_name = "ZONE", value_parser = WallZone::parse, allow_hyphen_values = true)]
    pub zone: Option<WallZone>,
    /// Of an Excel file (.xlsx): the sheet with the rows
    #[arg(long, value_name = "NAME")]
    pub sheet: Option<String>,
    /// How the files call a column that the study names otherwise: email=E-Mail; may be repeated
    #[arg(long = "column-name", value_name = "STUDY=FILE", value_parser = ColumnName::parse)]
    pub columns: Vec<ColumnName>,
}

impl InputFormat {
    /// Nothing said.
    pub const NONE: Self = Self {
        encoding: None,
        separator: None,
        decimal: None,
        thousands: None,
        header_line: None,
        dates: Vec::new(),
        zone: None,
        sheet: None,
        columns: Vec::new(),
    };

    /// How the files call a column of the study.
    #[must_use]
    pub fn in_file<'a>(&'a self, column: &'a str) -> &'a str {
        self.columns.iter().find(|name| name.study == column).map_or(column, |name| &name.file)
    }

    /// The forms of dates in a column; none where nothing is said about them.
    #[must_use]
    pub fn dates_of(&self, column: &str) -> &[DateForm] {
        let own = self.dates.iter().find(|dates| dates.column.as_deref() == Some(column));
        let all = || self.dates.iter().find(|dates| dates.column.is_none());
        own.or_else(all).map_or(&[], |dates| &dates.forms)
    }

    /// How numbers are written.
    #[must_use]
    pub fn numbers(&self) -> NumberForm {
        let decimal = self.decimal.or(self.thousands.map(DecimalSign::other));
        NumberForm { decimal, grouped: self.thousands.is_some() }
    }

    /// Puts forms of one column, or of all, together that several flags say.
    ///
    /// # Errors
    /// When two of them can mean two things, or one sign is said to stand before decimals and between
    /// thousands.
    pub fn gathered(mut self) -> Result<Self, String> {
        let mut dates: Vec<ColumnDates> = Vec::new();
        for said in self.dates {
            match dates.iter_mut().find(|of| of.column == said.column) {
                Some(of) => of.forms.extend(said.forms),
                None => dates.push(said),
            }
        }
        dates.iter().try_for_each(|of| check_forms(&of.forms)).map_err(|rule| format!("--dates: {rule}"))?;
        self.dates = dates;
        if let Some(sign) = self.thousands.filter(|sign| self.decimal == Some(*sign)) {
            return Err(format!(
                "thousands and decimal are both \"{}\": what stands between thousands does not stand before \
                 decimals",
                sign.character()
            ));
        }
        Ok(self)
    }
}

/// The encoding of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEncoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, by its byte order mark; without one, little-endian as Windows writes it.
    Utf16,
    /// Windows-1252; Latin-1 is the same in all that is printed.
    Windows1252,
}

impl TextEncoding {
    /// The name that settings use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Windows1252 => "windows-1252",
        }
    }

    /// Reads a name.
    ///
    /// # Errors
    /// The names there are.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" => Ok(Self::Utf8),
            "utf-16" | "utf16" => Ok(Self::Utf16),
            "windows-1252" | "latin-1" | "latin1" | "iso-8859-1" => Ok(Self::Windows1252),
            _ => Err("use \"utf-8\", \"utf-16\", \"windows-1252\" or \"latin-1\"; save files of another \
                      encoding as UTF-8"),
        }
    }
}

/// The characters that may stand between fields.
pub const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Reads a separator.
///
/// # Errors
/// Those there are.
pub fn parse_separator(text: &str) -> Result<u8, &'static str> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [one] if SEPARATORS.contains(one) => Ok(*one),
            _ => Err("use \",\", \";\", \"|\" or \"tab\""),
        },
    }
}

/// A separator for people: `","`, `tab`.
#[must_use]
pub fn separator_name(separator: u8) -> String {
    match separator {
        b'\t' => "\"tab\"".to_owned(),
        other => format!("\"{}\"", char::from(other)),
    }
}

/// What stands before decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalSign {
    /// `1.50`
    Point,
    /// `1,50`
    Comma,
}

impl DecimalSign {
    /// Reads `.` or `,`.
    ///
    /// # Errors
    /// The two there are.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "." => Ok(Self::Point),
            "," => Ok(Self::Comma),
            _ => Err("use \".\" or \",\""),
        }
    }

    /// The sign itself.
    #[must_use]
    pub fn character(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }

    /// The other one of the two.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Point => Self::Comma,
            Self::Comma => Self::Point,
        }
    }
}

/// How numbers are written in text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberForm {
    /// What stands before decimals, where that is known.
    pub decimal: Option<DecimalSign>,
    /// Whether it is said that the other sign separates thousands.
    pub grouped: bool,
}

/// Lines that may be the header.
pub(crate) const HEADER_LINES: RangeInclusive<u64> = 1..=1000;

fn parse_header_line(text: &str) -> Result<u64, &'static str> {
    let line = text.parse().ok().filter(|line| HEADER_LINES.contains(line));
    line.ok_or("the number of a line, from 1 to 1000")
}

/// Where a clock hangs that shows no offset from UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WallZone {
    /// So many seconds ahead of UTC, all year.
    Offset(i32),
    /// A zone by name, with all its changes: those that this version knows.
    Named(TimeZone),
}

/// Why a time of a zone is no instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneError {
    /// Clocks were put back over it: it was there twice.
    Twice(String),
    /// Clocks were put forward over it: it never was.
    Never(String),
    /// It is too far away.
    Far,
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(zone) => {
                write!(f, "was there twice in {zone}, as clocks were put back: write its offset in the cell")
            }
            Self::Never(zone) => {
                write!(f, "never was in {zone}, as clocks were put forward: correct the cell, or the zone")
            }
            Self::Far => f.write_str("is too far away"),
        }
    }
}

impl WallZone {
    /// Seconds since 1970-01-01T00:00:00Z, of seconds since the same date and time on a clock there.
    ///
    /// # Errors
    /// When clocks there showed the time twice or never.
    pub fn instant(&self, wall: i64) -> Result<i64, ZoneError> {
        let zone = match self {
            Self::Offset(seconds) => return Ok(wall - i64::from(*seconds)),
            Self::Named(zone) => zone,
        };
        let name = || zone.iana_name().unwrap_or_default().to_owned();
        let shown = Timestamp::from_second(wall).map_err(|_| ZoneError::Far)?;
        let ambiguous = zone.to_ambiguous_timestamp(Offset::UTC.to_datetime(shown));
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => Ok(wall - i64::from(offset.seconds())),
            AmbiguousOffset::Fold { .. } => Err(ZoneError::Twice(name())),
            AmbiguousOffset::Gap { .. } => Err(ZoneError::Never(name())),
        }
    }

    /// Reads `+01:00`, `-05:30`, `Z` or `Europe/Berlin`.
    ///
    /// # Errors
    /// The rule.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const RULE: &str =
            "write an offset from UTC (+01:00, -05:30, Z), or a zone by the name of a city: Europe/Berlin";
        if matches!(text, "Z" | "UTC" | "utc") {
            return Ok(Self::Offset(0));
        }
        // Names without a city are offsets in some systems and zones with summer time in others.
        if text.contains('/') {
            return TimeZone::get(text).map(Self::Named).map_err(|_| RULE);
        }
        let [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = text.as_bytes() else { return Err(RULE) };
        let digits = [h1, h2, m1, m2];
        if !digits.iter().all(|digit| digit.is_ascii_digit()) {
            return Err(RULE);
        }
        let [h1, h2, m1, m2] = digits.map(|digit| i32::from(digit - b'0'));
        let (hours, minutes) = (10 * h1 + h2, 10 * m1 + m2);
        let seconds = 3600 * hours + 60 * minutes;
        match hours <= 14 && minutes < 60 {
            true => Ok(Self::Offset(if *sign == b'-' { -seconds } else { seconds })),
            false => Err(RULE),
        }
    }
}

impl fmt::Display for WallZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset(seconds) => {
                let (sign, minutes) = (if *seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs() / 60);
                write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
            Self::Named(zone) => f.write_str(zone.iana_name().unwrap_or_default()),
        }
    }
}

/// A column that the study and the files call differently: identifiers have one name for all parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    /// Its name in the study.
    pub study: String,
    /// Its name in the files.
    pub file: String,
}

impl ColumnName {
    /// Reads `STUDY=FILE`.
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text.split_once('=') {
            Some((study, file)) if !study.is_empty() && !file.is_empty() => {
                Ok(Self { study: study.to_owned(), file: file.to_owned() })
            }
            _ => Err("write the study's name and the file's: email=E-Mail"),
        }
    }
}

/// The forms of dates of one column, or of all that have none of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDates {
    /// The column.
    pub column: Option<String>,
    /// At least one; a text that fits two of them means the same in both.
    pub forms: Vec<DateForm>,
}

impl ColumnDates {
    /// Reads `FORM` or `COLUMN=FORM`.
    fn parse(text: &str) -> Result<Self, String> {
        let (column, form) = match text.split_once('=') {
            Some((column, form)) => (Some(column.to_owned()), form),
            None => (None, text),
        };
        Ok(Self { column, forms: vec![DateForm::parse(form)?] })
    }
}

/// How dates are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DateForm {
    /// Days since 1899-12-30, the time of day as a fraction, as spreadsheets count.
    Spreadsheet,
    /// Text with fields.
    Pattern(DatePattern),
}

impl DateForm {
    /// Reads `spreadsheet` or a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "spreadsheet" => Ok(Self::Spreadsheet),
            _ => DatePattern::parse(text).map(Self::Pattern),
        }
    }

    /// Whether all that it reads are days, without a time of day.
    #[must_use]
    pub fn is_of_days(&self) -> bool {
        matches!(self, Self::Pattern(pattern) if !pattern.has(DateField::Hour))
    }
}

impl fmt::Display for DateForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spreadsheet => f.write_str("spreadsheet"),
            Self::Pattern(pattern) => f.write_str(&pattern.text),
        }
    }
}

/// Whether a text that fits several forms means the same in all.
///
/// # Errors
/// Two that do not.
pub(crate) fn check_forms(forms: &[DateForm]) -> Result<(), String> {
    for (i, one) in forms.iter().enumerate() {
        for other in &forms[..i] {
            let clash = match (one, other) {
                (DateForm::Pattern(one), DateForm::Pattern(other)) => {
                    one.literals().eq(other.literals()) && one.parts != other.parts
                }
                // A pattern without literal text reads digits, as day numbers are.
                (DateForm::Spreadsheet, DateForm::Pattern(pattern))
                | (DateForm::Pattern(pattern), DateForm::Spreadsheet) => {
                    matches!(pattern.literals().collect::<Vec<_>>()[..], [] | ["."])
                }
                (DateForm::Spreadsheet, DateForm::Spreadsheet) => false,
            };
            if clash {
                return Err(format!(
                    "a cell may fit both {other} and {one} and mean two things; write the form that the \
                     files have"
                ));
            }
        }
    }
    Ok(())
}

/// A date, and the time of its day where it has one. Of a clock on a wall: without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallTime {
    /// Days since 1970-01-01.
    pub days: i64,
    /// Seconds since midnight.
    pub seconds: Option<u32>,
}

/// The form of a date in fields and what stands between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatePattern {
    text: String,
    parts: Vec<PatternPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    Field(DateField),
    Literal(String),
}

/// A field of a date, in digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DateField {
    Year,
    /// Of 2000 to 2099.
    ShortYear,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    /// Zeros of a midnight, which say nothing: a day that was written with a time.
    Zeros,
}

const FIELDS: [(char, DateField); 8] = [
    ('Y', DateField::Year),
    ('y', DateField::ShortYear),
    ('m', DateField::Month),
    ('d', DateField::Day),
    ('H', DateField::Hour),
    ('M', DateField::Minute),
    ('S', DateField::Second),
    ('0', DateField::Zeros),
];

impl DateField {
    /// How many digits it has at most.
    fn digits(self) -> usize {
        match self {
            Self::Year => 4,
            Self::Zeros => 9,
            _ => 2,
        }
    }

    /// Whether one digit is enough where no other field touches it.
    fn may_be_short(self) -> bool {
        matches!(self, Self::Month | Self::Day | Self::Hour | Self::Zeros)
    }
}

impl DatePattern {
    /// Reads a pattern: `%d.%m.%Y`, `%Y-%m-%d %H:%M:%S`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<PatternPart> = Vec::new();
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            if c != '%' {
                if c.is_ascii_digit() {
                    return Err(format!("the digit {c} cannot be told from those of a field"));
                }
                match parts.last_mut() {
                    Some(PatternPart::Literal(text)) => text.push(c),
                    _ => parts.push(PatternPart::Literal(c.to_string())),
                }
                continue;
            }
            let letter = characters.next();
            let field = FIELDS.iter().find(|(name, _)| Some(*name) == letter).map(|(_, field)| *field);
            let field = field.ok_or_else(|| {
                let letter = letter.map(String::from).unwrap_or_default();
                format!(
                    "%{} is no field; there are %Y (2026), %y (26: 2026), %m, %d, %H, %M, %S and %0 \
                     (zeros of a midnight), and \"spreadsheet\" for day numbers",
                    printable(&letter)
                )
            })?;
            if field != DateField::Zeros && parts.contains(&PatternPart::Field(field)) {
                return Err(format!("%{} stands twice", letter.unwrap_or_default()));
            }
            parts.push(PatternPart::Field(field));
        }
        let pattern = Self { text: text.to_owned(), parts };
        pattern.check().map(|()| pattern)
    }

    fn has(&self, field: DateField) -> bool {
        self.parts.contains(&PatternPart::Field(field))
    }

    fn check(&self) -> Result<(), String> {
        use DateField as F;
        if self.has(F::Year) == self.has(F::ShortYear) || !self.has(F::Month) || !self.has(F::Day) {
            return Err("a date has %Y (or %y), %m and %d: %d.%m.%Y".to_owned());
        }
        if self.has(F::Minute) != self.has(F::Hour) || self.has(F::Second) && !self.has(F::Hour) {
            return Err("a time of day has %H and %M, and may have %S: %H:%M".to_owned());
        }
        if self.has(F::Zeros) && self.has(F::Hour) {
            return Err("%0 says that there is no time of day, and %H that there is one".to_owned());
        }
        Ok(())
    }

    /// What stands between digits.
    fn literals(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            PatternPart::Literal(text) => Some(text.as_str()),
            PatternPart::Field(_) => None,
        })
    }

    /// The date that a text is; none where it does not fit.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<WallTime> {
        use DateField as F;
        let mut rest = text;
        let mut met = [None; FIELDS.len()];
        for (i, part) in self.parts.iter().enumerate() {
            let field = match part {
                PatternPart::Literal(text) => {
                    rest = rest.strip_prefix(text.as_str())?;
                    continue;
                }
                PatternPart::Field(field) => *field,
            };
            let beside = |at: Option<usize>| {
                matches!(at.and_then(|at| self.parts.get(at)), Some(PatternPart::Field(_)))
            };
            let alone = !beside(i.checked_sub(1)) && !beside(Some(i + 1));
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count().min(field.digits());
            if digits < field.digits() && !(alone && digits > 0 && field.may_be_short()) {
                return None;
            }
            let (number, after) = rest.split_at(digits);
            rest = after;
            if field == F::Zeros {
                number.bytes().all(|digit| digit == b'0').then_some(())?;
                continue;
            }
            met[field as usize] = Some(number.parse::<u16>().ok()?);
        }
        let of = |field: F| met[field as usize];
        let year = of(F::Year).or(of(F::ShortYear).map(|year| 2000 + year))?;
        let month = Month::try_from(u8::try_from(of(F::Month)?).ok()?).ok()?;
        let date = Date::from_calendar_date(year.into(), month, u8::try_from(of(F::Day)?).ok()?).ok()?;
        let seconds = match of(F::Hour) {
            None => None,
            Some(hour) => {
                let (minute, second) = (of(F::Minute)?, of(F::Second).unwrap_or(0));
                let fits = hour < 24 && minute < 60 && second < 60;
                Some(fits.then(|| 3600 * u32::from(hour) + 60 * u32::from(minute) + u32::from(second))?)
            }
        };
        let days = date.to_julian_day() - time::macros::date!(1970 - 01 - 01).to_julian_day();
        rest.is_empty().then_some(WallTime { days: days.into(), seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str, text: &str) -> Option<(i64, Option<u32>)> {
        let wall = DatePattern::parse(pattern).unwrap().read(text)?;
        Some((wall.days, wall.seconds))
    }

    #[test]
    fn patterns_read_what_they_say_and_nothing_else() {
        assert_eq!(read("%d.%m.%Y", "01.03.1970"), Some((59, None)));
        assert_eq!(read("%d.%m.%Y", "1.3.1970"), Some((59, None)));
        assert_eq!(read("%m/%d/%y", "03/01/26"), Some((20_513, None)));
        assert_eq!(read("%Y%m%d", "19700301"), Some((59, None)));
        assert_eq!(read("%d.%m.%Y %H:%M", "01.01.1970 9:05"), Some((0, Some(32_700))));
        assert_eq!(read("%Y-%m-%dT%H:%M:%S", "1970-01-01T23:59:59"), Some((0, Some(86_399))));
        assert_eq!(read("%d.%m.%Y %0:%0", "02.01.1970 0:00"), Some((1, None)));
        assert_eq!(read("%Y-%m-%d %0:%0:%0.%0", "1970-01-02 00:00:00.000"), Some((1, None)));
        assert!(DatePattern::parse("%Y-%m-%d %H:%0").is_err());
        for (pattern, text) in [
            ("%d.%m.%Y", "30.02.2026"),
            ("%d.%m.%Y", "1970-03-01"),
            ("%d.%m.%Y", "01.03.70"),
            ("%d.%m.%Y", "01.03.19700"),
            ("%d.%m.%Y", "01.03.1970 "),
            ("%d.%m.%Y", "+1.03.1970"),
            ("%d.%m.%Y", "001.03.1970"),
            ("%Y%m%d", "1970031"),
            ("%d.%m.%Y %H:%M", "01.01.1970 24:00"),
            ("%d.%m.%Y %H:%M", "01.01.1970"),
            ("%d.%m.%Y %0:%0", "01.01.1970 00:01"),
            ("%d.%m.%Y %0:%0", "01.01.1970"),
            ("%d.%m.%Y", ""),
        ] {
            assert_eq!(read(pattern, text), None, "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_that_mean_nothing_or_two_things_are_refused() {
        for (wrong, why) in [
            ("%d.%m", "a date has"),
            ("%d.%m.%Y %y", "a date has"),
            ("%d.%m.%Y %H", "a time of day"),
            ("%d.%m.%Y %S", "a time of day"),
            ("%b %d %Y", "%b is no field"),
            ("%d.%m.%Y 1", "the digit 1"),
            ("%d.%d.%Y", "stands twice"),
            ("%", "% is no field"),
        ] {
            let said = DateForm::parse(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
        let form = |text: &str| DateForm::parse(text).unwrap();
        for clash in [
            ["%d/%m/%Y", "%m/%d/%Y"],
            ["%Y%m%d", "%d%m%Y"],
            ["spreadsheet", "%Y%m%d"],
            ["%d.%m.%y", "%d.%m.%Y"],
        ] {
            assert!(check_forms(&clash.map(form)).unwrap_err().contains("two things"), "{clash:?}");
        }
        for apart in [["%d/%m/%Y", "%Y-%m-%d"], ["%d.%m.%Y", "%d.%m.%Y %H:%M"], ["spreadsheet", "%d.%m.%Y"]] {
            assert_eq!(check_forms(&apart.map(form)), Ok(()), "{apart:?}");
        }
    }

    #[test]
    fn zones_have_offsets_of_their_own_and_times_that_are_none() {
        let instant = |zone, wall| WallZone::parse(zone).map(|zone| zone.instant(wall));
        assert_eq!(instant("+01:00", 3_600), Ok(Ok(0)));
        assert_eq!(instant("-05:30", 0), Ok(Ok(19_800)));
        assert_eq!(instant("Z", 7), Ok(Ok(7)));
        // 2026-01-15 and 2026-07-15 at noon, and the hours of both changes.
        let day = |days: i64, hour: i64| 86_400 * days + 3_600 * hour;
        let berlin = |wall| instant("Europe/Berlin", wall).expect("a zone");
        assert_eq!(berlin(day(20_468, 12)), Ok(day(20_468, 11)));
        assert_eq!(berlin(day(20_649, 12)), Ok(day(20_649, 10)));
        let name = || "Europe/Berlin".to_owned();
        assert_eq!(berlin(day(20_541, 2) + 1_800), Err(ZoneError::Never(name())));
        assert_eq!(berlin(day(20_751, 2) + 1_800), Err(ZoneError::Twice(name())));
        assert_eq!(berlin(i64::MAX), Err(ZoneError::Far));
        for wrong in ["", "1:00", "+1:00", "+15:00", "+01:60", "CET", "+0100", "Europe/Bonn", "EST"] {
            assert!(WallZone::parse(wrong).is_err(), "{wrong}");
        }
    }
}

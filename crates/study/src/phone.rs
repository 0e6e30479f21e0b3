//! Telephone numbers as they are written in a country, made international.
//!
//! A number that is read wrongly matches somebody else, or nobody, and nothing shows it. So a national number
//! is read only by the rules of a country in [`PLANS`], and refused where they leave two readings. Countries
//! whose lists mix several forms (Argentina, Brazil, Mexico) or whose prefix has changed (Belarus, Lithuania,
//! Uzbekistan) are left out.

use std::ops::RangeInclusive;

/// Fewest and most digits of a telephone number with its country (E.164 allows 15).
pub const DIGITS: RangeInclusive<usize> = 7..=15;

/// How numbers are written in one country.
struct Plan {
    /// Its calling code.
    code: u16,
    /// What stands before a national number and is no part of it.
    trunk: &'static str,
    /// Whether national numbers themselves may begin with 0.
    zero: bool,
    /// What is dialled before the calling code of another country. Nothing: there are several, and `+` is
    /// needed.
    abroad: &'static [&'static str],
    /// Digits of a national number without `trunk`.
    digits: RangeInclusive<usize>,
}

const fn plan(
    code: u16,
    trunk: &'static str,
    abroad: &'static [&'static str],
    digits: RangeInclusive<usize>,
) -> Plan {
    Plan { code, trunk, zero: false, abroad, digits }
}

/// Numbers that keep a leading 0 from abroad.
const fn zero(code: u16, digits: RangeInclusive<usize>) -> Plan {
    Plan { code, trunk: "", zero: true, abroad: DOUBLE, digits }
}

const DOUBLE: &[&str] = &["00"];
const PLUS: &[&str] = &[];

/// Ordered by code.
static PLANS: [Plan; 81] = [
    plan(1, "1", &["011", "00"], 10..=10),
    plan(7, "8", &["810", "00"], 10..=10),
    plan(20, "0", DOUBLE, 8..=10),
    plan(27, "0", DOUBLE, 9..=9),
    plan(30, "", DOUBLE, 10..=10),
    plan(31, "0", DOUBLE, 9..=9),
    plan(32, "0", DOUBLE, 8..=9),
    plan(33, "0", DOUBLE, 9..=9),
    plan(34, "", DOUBLE, 9..=9),
    plan(36, "06", DOUBLE, 8..=9),
    zero(39, 9..=11),
    plan(40, "0", DOUBLE, 9..=9),
    plan(41, "0", DOUBLE, 9..=9),
    plan(43, "0", DOUBLE, 7..=13),
    plan(44, "0", DOUBLE, 9..=10),
    plan(45, "", DOUBLE, 8..=8),
    plan(46, "0", DOUBLE, 7..=9),
    plan(47, "", DOUBLE, 8..=8),
    plan(48, "", DOUBLE, 9..=9),
    plan(49, "0", DOUBLE, 6..=11),
    plan(60, "0", DOUBLE, 8..=10),
    plan(61, "0", &["0011"], 9..=9),
    plan(62, "0", PLUS, 8..=12),
    plan(63, "0", DOUBLE, 8..=10),
    plan(64, "0", DOUBLE, 8..=10),
    plan(65, "", PLUS, 8..=8),
    plan(66, "0", PLUS, 8..=9),
    plan(81, "0", &["010"], 9..=10),
    plan(82, "0", PLUS, 8..=10),
    plan(84, "0", DOUBLE, 9..=10),
    plan(86, "0", DOUBLE, 10..=11),
    plan(90, "0", DOUBLE, 10..=10),
    plan(91, "0", DOUBLE, 10..=10),
    plan(92, "0", DOUBLE, 9..=10),
    plan(94, "0", DOUBLE, 9..=9),
    plan(212, "0", DOUBLE, 9..=9),
    plan(213, "0", DOUBLE, 8..=9),
    plan(216, "", DOUBLE, 8..=8),
    plan(233, "0", DOUBLE, 9..=9),
    plan(234, "0", PLUS, 8..=10),
    plan(254, "0", PLUS, 9..=9),
    plan(255, "0", PLUS, 9..=9),
    plan(256, "0", PLUS, 9..=9),
    plan(350, "", DOUBLE, 8..=8),
    plan(351, "", DOUBLE, 9..=9),
    plan(352, "", DOUBLE, 6..=9),
    plan(353, "0", DOUBLE, 7..=9),
    plan(354, "", DOUBLE, 7..=7),
    plan(355, "0", DOUBLE, 8..=9),
    plan(356, "", DOUBLE, 8..=8),
    plan(357, "", DOUBLE, 8..=8),
    plan(358, "0", DOUBLE, 6..=10),
    plan(359, "0", DOUBLE, 8..=9),
    plan(371, "", DOUBLE, 8..=8),
    plan(372, "", DOUBLE, 7..=8),
    plan(377, "", DOUBLE, 8..=9),
    zero(378, 8..=10),
    plan(380, "0", DOUBLE, 9..=9),
    plan(381, "0", DOUBLE, 8..=9),
    plan(382, "0", DOUBLE, 8..=8),
    plan(385, "0", DOUBLE, 8..=9),
    plan(386, "0", DOUBLE, 8..=8),
    plan(387, "0", DOUBLE, 8..=9),
    plan(389, "0", DOUBLE, 8..=8),
    plan(420, "", DOUBLE, 9..=9),
    plan(421, "0", DOUBLE, 9..=9),
    plan(423, "", DOUBLE, 7..=7),
    plan(852, "", PLUS, 8..=8),
    plan(853, "", PLUS, 8..=8),
    plan(886, "0", PLUS, 8..=9),
    plan(961, "0", DOUBLE, 7..=8),
    plan(962, "0", DOUBLE, 8..=9),
    plan(965, "", DOUBLE, 8..=8),
    plan(966, "0", DOUBLE, 8..=9),
    plan(968, "", DOUBLE, 8..=8),
    plan(971, "0", DOUBLE, 8..=9),
    plan(972, "0", DOUBLE, 8..=9),
    plan(973, "", DOUBLE, 8..=8),
    plan(974, "", DOUBLE, 8..=8),
    plan(994, "0", DOUBLE, 9..=9),
    plan(995, "0", DOUBLE, 9..=9),
];

/// Why a text is no telephone number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPhone {
    /// Nothing was written.
    Empty,
    /// Other characters, or a number of digits that no number of its country has.
    NotANumber,
    /// A national number, and the study names no country.
    NoCountry,
    /// It may be a national number, or one with a calling code.
    Ambiguous,
}

/// Whether national numbers of a country can be read.
pub(crate) fn is_known(code: u16) -> bool {
    find(code).is_some()
}

/// The calling codes of the countries whose national numbers can be read, as words.
pub(crate) fn codes() -> String {
    PLANS.iter().map(|plan| plan.code.to_string()).collect::<Vec<_>>().join(", ")
}

/// A number of this country that looks like one, for made-up data: another one for each `number`; none where
/// the country has not so many.
#[must_use]
pub fn made_up(code: u16, number: u64) -> Option<String> {
    let digits = *find(code)?.digits.end();
    // Behind a first digit that begins no prefix.
    let rest = digits.checked_sub(1)?;
    let fits =
        u32::try_from(rest).ok().and_then(|places| 10u64.checked_pow(places)).is_some_and(|all| number < all);
    fits.then(|| format!("+{code}7{number:0rest$}"))
}

fn find(code: u16) -> Option<&'static Plan> {
    PLANS.iter().find(|plan| plan.code == code)
}

/// `+` and 7 to 15 digits: the number that `text` is to somebody in `country`.
///
/// # Errors
/// When it is none, or can be read in two ways.
pub fn international(text: &str, country: Option<u16>) -> Result<String, BadPhone> {
    let text = text.trim();
    if text.is_empty() {
        return Err(BadPhone::Empty);
    }
    let (plus, rest) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
    let allowed = |c: char| c.is_ascii_digit() || c.is_whitespace() || "-./()".contains(c);
    if !rest.chars().all(allowed) {
        return Err(BadPhone::NotANumber);
    }
    if plus {
        return abroad(rest);
    }
    let all = digits(rest);
    let plan = country.map(|code| find(code).ok_or(BadPhone::NoCountry)).transpose()?;
    let prefixes = plan.map_or(DOUBLE, |plan| plan.abroad);
    let national = plan.map_or(Err(BadPhone::NoCountry), |plan| plan.read(&all));
    match prefixes.iter().find(|prefix| all.starts_with(**prefix)) {
        None => national,
        Some(_) if national.is_ok() => Err(BadPhone::Ambiguous),
        Some(prefix) => abroad(behind(rest, prefix.len())),
    }
}

/// What comes after the first `count` digits.
fn behind(text: &str, count: usize) -> &str {
    let mut at = text.char_indices().filter(|(_, c)| c.is_ascii_digit()).skip(count);
    at.next().map_or("", |(at, _)| &text[at..])
}

/// A number that begins with its calling code.
fn abroad(text: &str) -> Result<String, BadPhone> {
    let all = digits(text);
    // No calling code begins another one.
    let plan = (1..=3).find_map(|n| find(all.get(..n)?.parse().ok()?));
    // Some write `(0)`, the prefix of a national call, behind the country. Where that is no 0, it may be a
    // digit.
    let bracket = text.contains("(0)");
    let number = match plan {
        Some(plan) if bracket && plan.trunk == "0" => digits(&text.replacen("(0)", "", 1)),
        _ if bracket => return Err(BadPhone::Ambiguous),
        _ => all,
    };
    if let Some(plan) = plan {
        // A bracket within the code is none behind the country.
        let national = number.strip_prefix(&*plan.code.to_string()).ok_or(BadPhone::NotANumber)?;
        // Behind its calling code such a number has neither the prefix nor another length.
        let fits = plan.code > 9 || (plan.digits.contains(&national.len()) && plan.begins(national));
        if !fits || (national.starts_with('0') && !plan.zero) {
            return Err(BadPhone::NotANumber);
        }
    }
    if DIGITS.contains(&number.len()) && !number.starts_with('0') {
        return Ok(format!("+{number}"));
    }
    Err(BadPhone::NotANumber)
}

impl Plan {
    /// A number as it is written in this country, with or without the prefix of a national call.
    fn read(&self, all: &str) -> Result<String, BadPhone> {
        let bare = all.strip_prefix(self.trunk).filter(|_| !self.trunk.is_empty());
        let mut readings = bare.into_iter().chain([all]).filter(|national| self.is_national(national));
        let national = readings.next().ok_or(BadPhone::NotANumber)?;
        // The calling code without `+`, and behind it what may be all of the number.
        let again = national.strip_prefix(&*self.code.to_string());
        let whole = again.is_some_and(|rest| self.is_national(rest));
        if readings.next().is_some() || whole {
            return Err(BadPhone::Ambiguous);
        }
        Ok(format!("+{}{national}", self.code))
    }

    fn is_national(&self, number: &str) -> bool {
        self.digits.contains(&number.len()) && self.begins(number)
    }

    /// Whether a national number may begin like this.
    fn begins(&self, number: &str) -> bool {
        match number.as_bytes().first() {
            Some(b'0') => self.zero,
            Some(b'1') => self.code != 1,
            first => first.is_some(),
        }
    }
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_none_begins_another() {
        let codes: Vec<String> = PLANS.iter().map(|plan| plan.code.to_string()).collect();
        assert!(PLANS.windows(2).all(|pair| pair[0].code < pair[1].code));
        for (i, code) in codes.iter().enumerate() {
            assert!(codes[i + 1..].iter().all(|other| !other.starts_with(&**code)), "{code}");
        }
        assert!(is_known(44) && !is_known(55));
    }

    /// One number of each kind of plan in every form that is read, and forms that are refused.
    #[test]
    fn national_forms_become_one_number() {
        let good: [(u16, &str, &[&str]); 16] = [
            (
                1,
                "+12125550100",
                &["1-212-555-0100", "(212) 555-0100", "+1 212 555 0100", "2125550100", "001 212 555 0100"],
            ),
            (
                1,
                "+442079460000",
                &["011 44 20 7946 0000", "+44 20 7946 0000", "+44 (0)20 7946 0000", "00 44 20 7946 0000"],
            ),
            (
                7,
                "+74951234567",
                &["8 495 123-45-67", "+7 495 123-45-67", "(495) 123-45-67", "8 (495) 1234567"],
            ),
            (7, "+78005553535", &["8 800 555-35-35", "800 555-35-35"]),
            (7, "+442079460000", &["8-10-44 20 7946 0000", "810 44 20 7946 0000", "00 44 20 7946 0000"]),
            (
                36,
                "+3612345678",
                &["06 1 234 5678", "+36 1 234 5678", "1 234 5678", "06-1-234-5678", "0036 1 2345678"],
            ),
            (39, "+390612345678", &["06 1234 5678", "+39 06 1234 5678", "0039 06 1234 5678"]),
            (39, "+393331234567", &["333 1234567", "+39 333 123 4567"]),
            (378, "+3780549123456", &["0549 123456", "+378 0549 123456"]),
            (
                44,
                "+442079460000",
                &["020 7946 0000", "20 7946 0000", "0044 20 7946 0000", "+44 (0)20/7946.0000"],
            ),
            (49, "+49301234567", &["030 1234567", "030/1234567", "+49 (0)30 1234567", "0049 30 1234567"]),
            (34, "+34912345678", &["912 345 678", "+34 912 34 56 78", "0034 912345678"]),
            (61, "+61298765432", &["(02) 9876 5432", "+61 2 9876 5432", "0011 61 2 9876 5432"]),
            (81, "+81312345678", &["03-1234-5678", "+81 (0)3 1234 5678", "010 81 3 1234 5678"]),
            (82, "+821012345678", &["010-1234-5678", "+82 10 1234 5678"]),
            (91, "+919123456789", &["09123456789", "9123456789", "+91 91234 56789", "0091 9123456789"]),
        ];
        for (country, number, cells) in good {
            for cell in cells {
                assert_eq!(international(cell, Some(country)).as_deref(), Ok(number), "{country}: {cell}");
            }
        }
        use BadPhone::{Ambiguous, NotANumber};
        let bad = [
            // The calling code once more, without `+`.
            (44, "44 20 7946 0000", NotANumber),
            (39, "39 06 1234 567", Ambiguous),
            (49, "49 30 1234567", Ambiguous),
            (49, "0491 1234567", Ambiguous),
            (7, "7 495 123-45-67", NotANumber),
            (91, "91 98765 43210", NotANumber),
            // A prefix that is not the country's, twice, or behind the calling code.
            (34, "0912 345 678", NotANumber),
            (1, "0212 555 0100", NotANumber),
            (36, "0 1 234 5678", NotANumber),
            (44, "+44 020 7946 0000", NotANumber),
            (36, "+36 06 1 234 5678", NotANumber),
            (7, "+7 8 495 123-45-67", NotANumber),
            (1, "+1 1 212 555 0100", NotANumber),
            (1, "1 112 555 0100", NotANumber),
            // Prefixes of carriers, and `00` where it is none.
            (82, "001 44 20 7946 0000", NotANumber),
            (65, "00 44 20 7946 0000", NotANumber),
            (7, "810 123 45 67", Ambiguous),
            // A bracket that may be a digit.
            (44, "+39 (0)6 1234 5678", Ambiguous),
            (44, "+55 (0)11 1234 5678", Ambiguous),
            (44, "+4(0)", NotANumber),
            (44, "+4(0) 21 123 4567", NotANumber),
            (44, "020 7946", NotANumber),
            (44, "020 7946 0000 123", NotANumber),
        ];
        for (country, cell, error) in bad {
            assert_eq!(international(cell, Some(country)), Err(error), "{country}: {cell}");
        }
        assert_eq!(international("0011 44 20 7946 0000", None), Err(NotANumber), "Australia's prefix");
        assert_eq!(international("55 11 1234 5678", Some(55)), Err(BadPhone::NoCountry));
    }
}

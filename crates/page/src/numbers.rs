//! Numbers for people: thousands separators, no negative zero, never `NaN`.

pub use base::grouped;

/// What stands where there is no number.
pub const MISSING: &str = "n/a";
/// Larger numbers are written as a power of ten.
const LARGEST: f64 = 1e15;

/// With this many decimals and thousands separators.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    if value.abs() >= LARGEST {
        return scientific(value);
    }
    let text = format!("{value:.decimals$}");
    let is_zero = text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
    grouped(if is_zero { text.trim_start_matches('-') } else { &text })
}

/// As a power of ten, with at most three digits: `1.23·10⁻⁹`, `10⁻⁶`.
pub fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    power(&format!("{value:.2e}"))
}

/// A number as files have it, for people: `1.20e-9` as `1.2·10⁻⁹`, `1e-6` as `10⁻⁶`; other text unchanged.
pub fn power(text: &str) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let parts = text.split_once('e').filter(|(digits, _)| digits.parse::<f64>().is_ok());
    let Some((digits, Ok(exponent))) = parts.map(|(digits, power)| (digits, power.parse::<i32>())) else {
        return text.to_owned();
    };
    let raised = exponent.unsigned_abs().to_string();
    let raised = raised.bytes().map(|digit| RAISED[usize::from(digit - b'0')]);
    let power: String = ['1', '0'].into_iter().chain((exponent < 0).then_some('⁻')).chain(raised).collect();
    match trimmed(digits).as_str() {
        "1" => power,
        "-1" => format!("-{power}"),
        digits => format!("{digits}·{power}"),
    }
}

/// With this many significant digits at least; small and large ones as a power of ten.
pub fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = value.abs().log10().floor() as i32;
    if exponent < -4 {
        return scientific(value);
    }
    fixed(value, (digits - 1 - exponent).max(0) as usize)
}

/// Digits after the point of the smallest number that is written out.
const DECIMALS_MOST: i32 = 12;

/// With at most so many significant digits, written out: `32.1`, `0.0000228`.
pub fn plain(value: f64, digits: i32) -> String {
    let exponent = value.abs().log10().floor();
    if !exponent.is_finite() || !(-f64::from(DECIMALS_MOST)..-4.0).contains(&exponent) {
        return short(value, digits);
    }
    let text = fixed(value, (digits - 1 - exponent as i32) as usize);
    text.trim_end_matches('0').to_owned()
}

/// A number as people write it in a study: `0.1`, `1`, `2.45`; at most `digits` significant digits.
pub fn short(value: f64, digits: i32) -> String {
    let text = significant(value, digits);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// [`short`], rounded up: for what is promised not to be more.
pub fn up(value: f64, digits: i32) -> String {
    if !value.is_finite() || value <= 0.0 {
        return short(value, digits);
    }
    let step = 10f64.powi(value.log10().floor() as i32 + 1 - digits);
    // A number that is short as it is stays so.
    short((value / step - 1e-6).ceil() * step, digits)
}

/// A decimal number in text without the zeros that end its fraction; other text unchanged.
pub fn trimmed(text: &str) -> String {
    if text.contains('.') && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-')) {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

/// A zCDP charge: the number, and the fraction that it is exactly: `0.1 (1/10)`, `2`.
pub fn rho(exact: &str, value: f64) -> String {
    if exact.contains('/') { format!("{} ({exact})", short(value, 4)) } else { exact.to_owned() }
}

/// A count with thousands separators.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A part of one in percent: `72 %`, `0.4 %`.
pub fn percent(part: f64) -> String {
    let value = part * 100.0;
    let decimals = if !value.is_finite() || value == 0.0 || value.abs() >= 9.95 { 0 } else { 1 };
    match fixed(value, decimals) {
        text if text == MISSING => text,
        text => format!("{text} %"),
    }
}

/// Levels that a p-value is held against.
const LEVELS: [f64; 4] = [0.1, 0.05, 0.01, 0.001];
/// Most digits of a p-value that is next to one of them.
const P_DIGITS: i32 = 6;

/// `0.038`, `0.20`, `< 0.0001`: two digits, and more where these would say another side of a level: 0.0496 is
/// no 0.050.
pub fn p_value(value: f64) -> String {
    if value < 0.0001 {
        return "< 0.0001".to_owned();
    }
    let sides = |value: f64| LEVELS.map(|level| value.partial_cmp(&level));
    let shown = |digits: i32| significant(value, digits);
    let same = |text: &String| text.parse().is_ok_and(|shown: f64| sides(shown) == sides(value));
    (2..=P_DIGITS).map(shown).find(same).unwrap_or_else(|| shown(P_DIGITS))
}

/// `0.04 s`, `39.5 s`, `4 min 12 s`, `3 h 05 min`.
pub fn duration(value: f64) -> String {
    if !value.is_finite() || value < 0.0 {
        return MISSING.to_owned();
    }
    if value < 99.95 {
        return format!("{value:.*} s", if value < 0.995 { 2 } else { 1 });
    }
    if value >= LARGEST {
        return format!("{} s", scientific(value));
    }
    let whole = value.round() as u64;
    if whole < 3600 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        let minutes = (whole + 30) / 60;
        format!("{} h {:02} min", count(minutes / 60), minutes % 60)
    }
}

/// The middle value; of an even number, the mean of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

/// What is counted, in the singular or the plural: `1 bit`, `1,024 bits`.
pub fn counted(value: u64, what: &str) -> String {
    format!("{} {what}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Three significant digits where there are more, powers of a thousand by their letter: `850`, `12.9 k`,
/// `68.0 M`. Of a column of measurements none looks more exact than another.
pub fn scaled(value: f64) -> String {
    let (number, unit) = thousands(value, false);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// A number of three digits and the letter of the power of a thousand that it counts. Whole numbers of these
/// powers are `short` where somebody chose them.
fn thousands(value: f64, short: bool) -> (String, &'static str) {
    if !value.is_finite() || value < 0.0 {
        return (MISSING.to_owned(), "");
    }
    let (mut value, mut unit) = (value, "");
    for next in ["k", "M", "G", "T", "P", "E"] {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1e3, next);
    }
    let number = match value {
        v if v >= 99.95 || v.fract() == 0.0 && (short || unit.is_empty()) => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    };
    (number, unit)
}

/// What somebody chose, of a unit: `10 Gbit/s`, `1.25 Gbit/s`.
pub fn with_unit(value: f64, unit: &str) -> String {
    let (number, prefix) = thousands(value, true);
    format!("{number} {prefix}{unit}")
}

/// [`scaled`], of bytes: `950 B`, `27.3 kB`, `68.0 MB`.
pub fn bytes(value: u64) -> String {
    let (number, prefix) = thousands(value as f64, false);
    format!("{number} {prefix}B")
}

/// What a stage handles: a release and its noise have values, every other stage has rows. `stage` may be a
/// path that begins with the run that it is of.
pub fn handled(stage: &str) -> &'static str {
    match stage.rsplit('/').next() {
        Some("release" | "noise") => "values",
        _ => "rows",
    }
}

/// Powers of 1,024, for memory that is given out in powers of two: `256 MiB`, `1.5 GiB`.
pub fn binary(value: u64) -> String {
    let (mut shown, mut unit) = (value as f64, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if shown < 1024.0 {
            break;
        }
        (shown, unit) = (shown / 1024.0, next);
    }
    let digits = usize::from(shown < 99.95 && shown.fract() != 0.0);
    format!("{shown:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_have_three_digits_and_choices_those_that_they_need() {
        assert_eq!([13e6, 13.04e6, 1e3, 4.0].map(scaled), ["13.0 M", "13.0 M", "1.00 k", "4"]);
        assert_eq!([68_000_000, 1_000, 950].map(bytes), ["68.0 MB", "1.00 kB", "950 B"]);
        assert_eq!(
            [1e10, 1.25e9, 5e5].map(|rate| with_unit(rate, "bit/s")),
            ["10 Gbit/s", "1.25 Gbit/s", "500 kbit/s"]
        );
    }

    #[test]
    fn releases_and_noise_have_values() {
        let shown = ["release", "noise", "shop-1/release", "compute"].map(handled);
        assert_eq!(shown, ["values", "values", "values", "rows"]);
    }

    /// Beside an interval that leaves no difference out stands no p-value that says the contrary.
    #[test]
    fn p_values_stay_on_their_side_of_a_level() {
        let shown = [0.0496, 0.05, 0.0501, 0.2, 0.038, 0.009_999_6, 1.0, 0.000_05].map(p_value);
        let wanted = ["0.0496", "0.050", "0.0501", "0.20", "0.038", "0.0099996", "1.0", "< 0.0001"];
        assert_eq!(shown, wanted);
        assert_eq!([0.049_999_999_9, f64::NAN].map(p_value), ["0.0500000", MISSING]);
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!([median([]), median([1.0, 4.0]), median([3.0])], [0.0, 2.5, 3.0]);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}

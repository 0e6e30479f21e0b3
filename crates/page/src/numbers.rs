//! Numbers for people: thousands separators, no negative zero, never `NaN`.

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

/// As a power of ten, with at most three digits: `1.23e-9`, `1e-6`.
pub fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    let text = format!("{value:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
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

/// A number as people write it in a study: `0.1`, `1`, `2.45`; at most `digits` significant digits.
pub fn short(value: f64, digits: i32) -> String {
    let text = significant(value, digits);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
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

/// A decimal number in text, with thousands separators; other text unchanged.
pub fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.find('.').map_or((rest, ""), |at| rest.split_at(at));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !(fraction.is_empty() || is_digits(&fraction[1..])) {
        return text.to_owned();
    }
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
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

/// `0.038`, `< 0.0001`.
pub fn p_value(value: f64) -> String {
    if value < 0.0001 { "< 0.0001".to_owned() } else { short(value, 2) }
}

/// `0.4 s`, `39.5 s`, `4 min 12 s`, `3 h 05 min`.
pub fn seconds(value: f64) -> String {
    if !value.is_finite() || value < 0.0 {
        return MISSING.to_owned();
    }
    if value < 99.95 {
        return format!("{value:.1} s");
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

/// A rate in two digits: `850`, `13 k`, `1.2 M`.
pub fn per_second(value: f64) -> String {
    if !value.is_finite() || value < 0.0 {
        return MISSING.to_owned();
    }
    match value {
        value if value < 999.5 => fixed(value, 0),
        value if value < 999_500.0 => format!("{} k", fixed(value / 1e3, usize::from(value < 9_950.0))),
        value => format!("{} M", fixed(value / 1e6, usize::from(value < 9_950_000.0))),
    }
}

/// Powers of a thousand: `950 B`, `27 kB`, `6.8 MB`.
pub fn bytes(value: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if value < 1000 {
        return format!("{value} B");
    }
    let mut shown = value as f64 / 1000.0;
    let mut unit = 0;
    while shown >= 999.5 && unit + 1 < units.len() {
        shown /= 1000.0;
        unit += 1;
    }
    let decimals = usize::from(shown < 9.95);
    format!("{shown:.decimals$} {}", units[unit])
}

//! Text that shows as what it is.

/// Whether a character is a control character, invisible, or turns the direction of writing, so that a text
/// could show as another one.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}

/// Text without what would move a cursor, recolour a terminal or reorder its neighbours: control characters,
/// bidi controls and characters without a shape become U+FFFD.
#[must_use]
pub fn clean(text: &str) -> String {
    if !text.contains(is_deceptive) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_deceptive(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// A decimal number in text, with thousands separators; other text unchanged.
#[must_use]
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

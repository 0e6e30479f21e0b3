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
    text.chars().map(|c| if is_deceptive(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

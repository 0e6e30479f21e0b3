//! What names of accounts look like.

/// The rule, for messages.
pub const ACCOUNT_RULE: &str = "a name of an account has 1 to 40 of a-z, 0-9, \".\", \"_\" and \"-\"";

/// The same of a token.
pub const TOKEN_RULE: &str = "a name of a token has 1 to 40 of a-z, 0-9, \".\", \"_\" and \"-\"";

/// Whether a text may name an account, or a token of one.
#[must_use]
pub fn is_account_name(text: &str) -> bool {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
    (1..=40).contains(&text.len()) && text.bytes().all(good)
}

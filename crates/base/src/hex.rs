//! Bytes as hexadecimal digits.

/// Two lower-case digits for each byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that digits of either case spell; `None` where there are other characters, or not two digits for
/// each byte.
#[must_use]
pub fn unhex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_two_for_each_byte_and_nothing_else() {
        assert_eq!(hex(&[0, 0x0f, 0xa5]), "000fa5");
        assert_eq!(unhex("000fA5"), Some([0, 0x0f, 0xa5]));
        assert_eq!(unhex(""), Some([]));
        for wrong in ["000fa", "000fa50", "000fa5 ", "+00fa5", "0x0fa5", "00\u{e9}fa5"] {
            assert_eq!(unhex::<3>(wrong), None, "{wrong}");
        }
    }
}

//! The standard circuits against the standards' own vectors, and their sizes.

use circuits::Wired;
use circuits::standard;

/// The bits of hexadecimal digits, least significant first.
fn hex(digits: &str) -> Vec<bool> {
    let nibbles = digits.chars().rev().map(|c| c.to_digit(16).expect("a hexadecimal digit"));
    nibbles.flat_map(|n| (0..4).map(move |bit| n >> bit & 1 == 1)).collect()
}

fn word(value: u64) -> Vec<bool> {
    (0..64).map(|bit| value >> bit & 1 == 1).collect()
}

fn value(bits: &[bool]) -> u64 {
    bits.iter().enumerate().map(|(i, bit)| u64::from(*bit) << i).sum()
}

fn sizes(wired: &Wired) -> (usize, usize) {
    wired.check().unwrap();
    (wired.and_gates(), wired.depth())
}

#[test]
fn aes_gives_the_vectors_of_fips_197() {
    let aes = standard::aes128();
    assert_eq!(sizes(&aes), (6400, 60));
    for (key, block, cipher) in [
        // Appendix B and appendix C.1.
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "3243f6a8885a308d313198a2e0370734",
            "3925841d02dc09fbdc118597196a0b32",
        ),
        (
            "000102030405060708090a0b0c0d0e0f",
            "00112233445566778899aabbccddeeff",
            "69c4e0d86a7b0430d8cdb78070b4c55a",
        ),
    ] {
        assert_eq!(aes.evaluate(&[hex(key), hex(block)]), [hex(cipher)]);
    }
}

#[test]
fn sha_gives_the_vectors_of_fips_180() {
    let sha = standard::sha256();
    assert_eq!(sizes(&sha), (22_335, 1607));
    let start = "6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19";
    let abc = format!("61626380{}18", "0".repeat(118));
    let state = sha.evaluate(&[hex(&abc), hex(start)]);
    assert_eq!(state, [hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")]);
    // Two blocks: "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".
    let text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    let mut message = base::hex(text.as_bytes());
    message.push_str(&format!("80{}", "0".repeat(14)));
    let first = sha.evaluate(&[hex(&message), hex(start)]);
    let length = format!("{}{:04x}", "0".repeat(124), 8 * text.len());
    let state = sha.evaluate(&[hex(&length), first[0].clone()]);
    assert_eq!(state, [hex("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")]);
}

#[test]
fn arithmetic_is_that_of_u64() {
    let circuits = [
        (standard::add64(), (63, 63), u64::wrapping_add as fn(u64, u64) -> u64),
        (standard::sub64(), (63, 63), u64::wrapping_sub),
        (standard::mul64(), (4033, 63), u64::wrapping_mul),
        (standard::div64(), (3197, 2700), |a, b| a.checked_div(b).unwrap_or(u64::MAX)),
        (standard::lt64(), (64, 64), |a, b| u64::from(a < b)),
        (standard::eq64(), (63, 6), |a, b| u64::from(a == b)),
    ];
    let mut samples = vec![0, 1, 2, 3, 5, 63, 64, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 32) - 1, 1 << 32];
    samples.extend((1..12u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i * 5)));
    for (circuit, size, definition) in circuits {
        assert_eq!(sizes(&circuit), size);
        for a in &samples {
            for b in &samples {
                let out = circuit.evaluate(&[word(*a), word(*b)]);
                assert_eq!(value(&out[0]), definition(*a, *b), "{a} {b} with {size:?}");
            }
        }
    }
}

#[test]
fn every_circuit_has_a_name() {
    for standard in standard::ALL {
        let wired = (standard.build)();
        assert_eq!((wired.inputs.len(), wired.outputs.len(), wired.parties), (2, 1, 2), "{}", standard.name);
    }
}

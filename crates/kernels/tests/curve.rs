//! The 8-lane kernel gives the bytes of its portable twin, and the twin those of RFC 7748: random and
//! exceptional inputs, at many lengths.

use kernels::curve::{CurveBackend, Key, UCoordinate, Uniform};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

const LENGTHS: [usize; 12] = [0, 1, 2, 7, 8, 9, 15, 16, 17, 40, 1023, 1033];
const KEY_MAX: Key = {
    let mut key = [0xff; 32];
    key[31] = 0x0f;
    key
};

fn bytes<const N: usize>(rng: &mut ChaCha12Rng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn key(rng: &mut ChaCha12Rng) -> Key {
    let mut key: Key = bytes(rng);
    key[31] &= 15;
    key
}

/// All ways that this machine has.
fn ways() -> impl Iterator<Item = CurveBackend> {
    [Some(CurveBackend::portable()), CurveBackend::fast()].into_iter().flatten()
}

/// `2^255 - 256 + low`.
fn near_prime(low: u8) -> UCoordinate {
    std::array::from_fn(|i| match i {
        0 => low,
        31 => 0x7f,
        _ => 0xff,
    })
}

fn number(low: u8) -> [u8; 32] {
    std::array::from_fn(|i| if i == 0 { low } else { 0 })
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn hex_element(text: &str) -> UCoordinate {
    hex(text).try_into().unwrap()
}

/// 0, 1, 2, -1, p - 2, all encodings from p to `2^255 - 1`, both points of order 8, limbs at their bounds.
fn exceptional() -> Vec<UCoordinate> {
    let mut out: Vec<UCoordinate> = (0..3).map(number).collect();
    out.extend((0xea..=0xff).map(near_prime));
    out.push(hex_element("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"));
    out.push(hex_element("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"));
    // One full limb at a time, and all but one.
    for limb in 0..5 {
        let one: UCoordinate = std::array::from_fn(|i| {
            (0..8).map(|j| u8::from((8 * i + j) / 51 == limb && 8 * i + j < 255) << j).sum()
        });
        out.push(one);
        out.push(std::array::from_fn(|i| !one[i] & if i == 31 { 0x7f } else { 0xff }));
    }
    out
}

#[test]
fn products_agree() {
    let Some(fast) = CurveBackend::fast() else { return };
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    for len in LENGTHS {
        let key = key(&mut rng);
        let mut points: Vec<UCoordinate> = (0..len).map(|_| bytes(&mut rng)).collect();
        let mut expected = points.clone();
        fast.mul(&key, &mut points);
        CurveBackend::portable().mul(&key, &mut expected);
        assert!(points == expected, "{len} points");
    }
    for key in [number(0), number(1), number(2), number(3), KEY_MAX, key(&mut rng)] {
        let mut points = exceptional();
        let mut expected = points.clone();
        fast.mul(&key, &mut points);
        CurveBackend::portable().mul(&key, &mut expected);
        assert!(points == expected);
    }
}

#[test]
fn small_order_and_the_zero_key_give_zero() {
    // 0 and 1 on the curve, -1 on the twist, p and p + 1.
    let small = [number(0), number(1), near_prime(0xec), near_prime(0xed), near_prime(0xee)];
    for curve in ways() {
        let mut points = small.to_vec();
        points.push(hex_element("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"));
        points.push(hex_element("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"));
        points.push(number(9));
        curve.mul(&KEY_MAX, &mut points);
        let zeros = points.iter().filter(|p| **p == [0; 32]).count();
        assert_eq!((zeros, points[7] == [0; 32]), (7, false), "the neighbours of a neutral product stay");
        curve.mul(&number(0), &mut points);
        assert!(points.iter().all(|p| *p == [0; 32]));
    }
}

#[test]
fn vectors_of_rfc_7748() {
    let vectors = [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ];
    for curve in ways() {
        for (scalar, u, product) in vectors {
            // A clamped scalar, bits 0 to 2 and 255 clear and bit 254 set, is eight times a key.
            let mut scalar = hex(scalar);
            scalar[31] = scalar[31] & 0x7f | 0x40;
            let bit = |i: usize| scalar[i / 8] >> (i % 8) & 1;
            let key: Key = std::array::from_fn(|i| {
                (0..8).filter(|j| 8 * i + j < 252).map(|j| bit(8 * i + j + 3) << j).sum()
            });
            let mut points = [hex_element(u)];
            curve.mul(&key, &mut points);
            assert_eq!(points, [hex_element(product)]);
        }
    }
}

#[test]
fn vectors_of_rfc_9380() {
    // J.5.1: the two field elements, and u = (1 + y) / (1 - y) of the point P.
    let vectors = [
        (
            "03fef4813c8cb5f98c6eef88fae174e6e7d5380de2b007799ac7ee712d203f3a",
            "780bdddd137290c8f589dc687795aafae35f6b674668d92bf92ae793e6a60c75",
            "493a48fe2bc158f31a32ff26b5472d8d0031176b3189edb03af8a8d47a7e8766",
        ),
        (
            "5081955c4141e4e7d02ec0e36becffaa1934df4d7a270f70679c78f9bd57c227",
            "005bdc17a9b378b6272573a31b04361f21c371b256252ae5463119aa0b925b76",
            "d95136a0c803d4140ba1e3eebb7068b270fab21865f100a1ab59300522750466",
        ),
    ];
    for curve in ways() {
        for (first, second, u) in vectors {
            let uniform = pair(hex_element(first), hex_element(second));
            let mut out = [[0; 32]];
            curve.map(None, &[uniform], &mut out);
            assert_eq!(out, [hex_element(u)]);
        }
    }
}

/// Two big-endian numbers below `2^256`, as RFC 9380 would expand them.
fn pair(first: [u8; 32], second: [u8; 32]) -> Uniform {
    std::array::from_fn(|i| match i {
        16..48 => first[i - 16],
        64..96 => second[i - 64],
        _ => 0,
    })
}

#[test]
fn maps_agree() {
    let Some(fast) = CurveBackend::fast() else { return };
    let mut rng = ChaCha12Rng::seed_from_u64(2);
    for len in LENGTHS {
        let uniform: Vec<Uniform> = (0..len).map(|_| bytes(&mut rng)).collect();
        for key in [None, Some(key(&mut rng))] {
            maps_agree_on(fast, key.as_ref(), &uniform);
        }
    }
}

fn maps_agree_on(fast: CurveBackend, key: Option<&Key>, uniform: &[Uniform]) -> Vec<UCoordinate> {
    let (mut points, mut expected) = (vec![[1; 32]; uniform.len()], vec![[2; 32]; uniform.len()]);
    fast.map(key, uniform, &mut points);
    CurveBackend::portable().map(key, uniform, &mut expected);
    assert!(points == expected, "{} names", uniform.len());
    points
}

#[test]
fn exceptional_maps_agree() {
    let Some(fast) = CurveBackend::fast() else { return };
    let reversed = |mut x: UCoordinate| {
        x.reverse();
        x
    };
    let numbers: Vec<UCoordinate> = exceptional().into_iter().map(reversed).collect();
    let mut all: Vec<Uniform> = vec![[0xff; 96]];
    // Every pair: equal points are doubled, r = 0 gives the point of order 2.
    all.extend(numbers.iter().flat_map(|&r| numbers.iter().map(move |&s| pair(r, s))));
    maps_agree_on(fast, None, &all);
    maps_agree_on(fast, Some(&KEY_MAX), &all);
    // r and 1 / 2r give opposite points: 1 and (p + 1) / 2; r and -r give the same.
    let mut half = [0xff; 32];
    (half[0], half[31]) = (0xf7, 0x3f);
    let opposite = [
        pair(reversed(number(1)), reversed(half)),
        pair(reversed(half), reversed(near_prime(0xec))),
        pair([0; 32], [0; 32]),
    ];
    assert_eq!(maps_agree_on(fast, None, &opposite), [[0; 32]; 3]);
}

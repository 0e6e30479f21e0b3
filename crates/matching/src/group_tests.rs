//! Known answers were made by an independent implementation of RFC 9380 and of affine Montgomery arithmetic.

use super::*;
use crate::identifiers::NameDomain;
use base::Seed;
use curve25519_dalek::edwards::CompressedEdwardsY;

fn hex(text: &str) -> GroupElement {
    base::unhex(text).unwrap()
}

/// Fills `out` with fresh random elements of the subgroup, on up to `threads` cores: hashes of names that
/// nobody else can guess, of the sort [`NameDomain::Label`]. Nobody knows their logarithms.
fn random_elements(rng: &mut Rng, out: &mut [GroupElement], threads: usize) {
    let seed: [u8; 32] = rng.bytes();
    let names = |i: usize, name: &mut Vec<u8>| {
        name.clear();
        name.extend_from_slice(&seed);
        name.extend_from_slice(&(i as u64).to_le_bytes());
        NameDomain::Label.mark(name);
        Ok(())
    };
    CurveGroup::detect().hash_batch(&names, out, threads).expect("these names can always be read");
}

fn key(seed: u8) -> Exponent {
    Exponent::random(&mut Seed::from_bytes([seed; 32]).into_rng())
}

/// All ways that this machine has.
fn ways() -> [CurveGroup; 2] {
    [CurveGroup::one_by_one(), CurveGroup::detect()]
}

/// Random u-coordinates: about half lie on the curve, half on its twist.
fn elements(n: usize) -> Vec<GroupElement> {
    let mut rng = Seed::from_bytes([77; 32]).into_rng();
    let element = || {
        let mut e: GroupElement = rng.bytes();
        e[31] &= 0x3f;
        e
    };
    std::iter::repeat_with(element).take(n).collect()
}

#[test]
fn the_map_is_that_of_rfc_9380() {
    // RFC 9380, J.5.1: P.y, big endian, with the sign of P.x in the top bit.
    let vectors = [
        ("", "09a6c8561a0b22bef63124c588ce4c62ea83a3c899763af26d795302e115dc21", 0),
        ("abc", "1a8395b88338f22e435bbd301183e7f20a5f9de643f11882fb237f88268a5531", 1),
    ];
    for (message, y, sign) in vectors {
        let mut bytes = hex(y);
        bytes.reverse();
        bytes[31] |= sign << 7;
        let expected = CompressedEdwardsY(bytes).decompress().unwrap();
        let tag = b"QUUX-V01-CS02-with-edwards25519_XMD:SHA-512_ELL2_RO_";
        assert_eq!(hash_to_point(message.as_bytes(), tag).to_montgomery(), expected.to_montgomery());
    }
}

#[test]
fn known_answers() {
    let u = hash(b"anna@example.org");
    assert_eq!(u, hex("1bacfa381472972743041cb1a6272c168e920b8231b26a94449556c1fe799e50"));
    let k = Exponent::from_bytes(std::array::from_fn(|i| i as u8 + 1)).unwrap();
    let product = hex("bed16706a231653c8f90d4f8caf63225dd717e0d5126c54a579a6532eed21238");
    let mut points = [u];
    mul_batch(&mut points, &k, 1).unwrap();
    assert_eq!(points, [product]);
    assert_eq!(k.ladder(&u), product);
    let name = |_: usize, name: &mut Vec<u8>| {
        *name = b"anna@example.org".to_vec();
        Ok(())
    };
    hash_mul_batch(&name, &k, &mut points, 1).unwrap();
    assert_eq!(points, [product]);
    mul_batch(&mut points, &k.inverse().unwrap(), 1).unwrap();
    assert_eq!(points, [u]);
}

#[test]
fn both_ways_give_the_same_bytes() {
    let (a, b) = (key(3), key(4));
    let mut rng = Seed::from_bytes([5; 32]).into_rng();
    for len in [1, 5, 16, 17, 1025, 3000] {
        // Names around the block length of the hash, and random ones.
        let names: Vec<Vec<u8>> = (0..len).map(|i| rng.bytes::<300>()[..i % 300].to_vec()).collect();
        let read = |i: usize, name: &mut Vec<u8>| {
            name.clone_from(&names[i]);
            Ok(())
        };
        let [expected, found] = ways().map(|group| {
            let mut hashes = vec![[1; 32]; len];
            group.hash_batch(&read, &mut hashes, 2).unwrap();
            let mut once = vec![[2; 32]; len];
            group.hash_mul_batch(&read, &a, &mut once, 2).unwrap();
            let (mut first, mut second) = (elements(len), vec![[3; 32]; len]);
            group.mul_twice_batch(&mut first, &mut second, &a, &b, 2).unwrap();
            let mut third = hashes.clone();
            group.mul_batch(&mut third, &b, 2).unwrap();
            [hashes, once, first, second, third]
        });
        assert!(expected == found, "{len} rows");
        assert_eq!(expected[0], names.iter().map(|name| hash(name)).collect::<Vec<_>>());
    }
}

#[test]
fn extreme_inputs_give_the_same_bytes_both_ways() {
    // Numbers next to 0, to p and to the bounds of limbs, each refused by both or multiplied to the same.
    let mut inputs: Vec<GroupElement> = (0..255u8)
        .flat_map(|bit| {
            let power: GroupElement =
                std::array::from_fn(|i| if i == bit as usize / 8 { 1 << (bit % 8) } else { 0 });
            let below = std::array::from_fn(|i| match i.cmp(&(bit as usize / 8)) {
                std::cmp::Ordering::Less => 0xff,
                std::cmp::Ordering::Equal => (1 << (bit % 8)) - 1,
                std::cmp::Ordering::Greater => 0,
            });
            [power, below]
        })
        .collect();
    inputs.extend((0..64).map(|d| {
        let mut near = [0xff; 32];
        (near[0], near[31]) = (0xff - d, 0x7f);
        near
    }));
    let mut keys = vec![key(6)];
    keys.extend([[1; 32], [0xff; 32]].map(|bytes| Exponent::from_bytes(bytes).unwrap()));
    for k in &keys {
        for input in &inputs {
            let [expected, found] = ways().map(|group| {
                let mut points = [*input];
                group.mul_batch(&mut points, k, 1).map(|()| points)
            });
            assert_eq!(expected, found);
        }
    }
}

#[test]
fn random_elements_are_fresh_and_of_the_subgroup() {
    let mut rng = Seed::from_bytes([9; 32]).into_rng();
    let mut drawn = vec![[0; 32]; 40];
    let (left, right) = drawn.split_at_mut(20);
    random_elements(&mut rng, left, 1);
    random_elements(&mut rng, right, 2);
    let mut back = drawn.clone();
    let k = key(1);
    mul_batch(&mut back, &k, 1).and_then(|()| mul_batch(&mut back, &k.inverse().unwrap(), 1)).unwrap();
    assert_eq!(back, drawn, "no torsion, not on the twist");
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 40);
}

#[test]
fn an_unreadable_name_ends_the_batch() {
    let names = |i: usize, name: &mut Vec<u8>| {
        name.clear();
        if i == 5 { Err(Error::misuse("row 5 is gone")) } else { Ok(()) }
    };
    for group in ways() {
        let mut out = [[0; 32]; 9];
        let error = group.hash_mul_batch(&names, &key(1), &mut out, 2).unwrap_err();
        assert!(error.to_string().contains("row 5 is gone"));
    }
}

#[test]
fn products_are_those_of_the_plain_ladder_on_curve_and_twist() {
    let points = elements(300);
    let on_curve = points.iter().filter(|u| MontgomeryPoint(**u).to_edwards(0).is_some()).count();
    assert!((100..200).contains(&on_curve));
    let (a, b) = (key(1), key(2));
    let once: Vec<GroupElement> = points.iter().map(|u| a.ladder(u)).collect();
    let twice: Vec<GroupElement> = once.iter().map(|u| b.ladder(u)).collect();
    for (group, threads) in ways().into_iter().flat_map(|group| [1, 2, 3].map(|t| (group, t))) {
        let mut column = points.clone();
        group.mul_batch(&mut column, &a, threads).unwrap();
        assert_eq!(column, once);
        group.mul_batch(&mut column, &b, threads).unwrap();
        assert_eq!(column, twice);
        let (mut first, mut second) = (points.clone(), vec![[0; 32]; 300]);
        group.mul_twice_batch(&mut first, &mut second, &a, &b, threads).unwrap();
        assert_eq!((first, second), (once.clone(), twice.clone()));
    }
}

#[test]
fn keys_commute_and_torsion_does_not_show() {
    let (a, b) = (key(1), key(2));
    let mut points = elements(20);
    let mut reverse = points.clone();
    mul_batch(&mut points, &a, 1).and_then(|()| mul_batch(&mut points, &b, 1)).unwrap();
    mul_batch(&mut reverse, &b, 1).and_then(|()| mul_batch(&mut reverse, &a, 1)).unwrap();
    assert_eq!(points, reverse);
    // A point plus any torsion point has the product of the point itself.
    let point = hash_to_point(b"x", TAG);
    for torsion in curve25519_dalek::constants::EIGHT_TORSION {
        for group in ways() {
            let mut mixed = [(point + torsion).to_montgomery().to_bytes()];
            group.mul_batch(&mut mixed, &a, 1).unwrap();
            assert_eq!(mixed, [a.times(&point).to_montgomery().to_bytes()]);
        }
    }
}

#[test]
fn small_order_and_foreign_bytes_are_refused() {
    let one: GroupElement = std::array::from_fn(|i| u8::from(i == 0));
    // On the curve: 0 (order 2), 1 (order 4), the order 8; on the twist: -1 (order 4).
    let order_8 = curve25519_dalek::constants::EIGHT_TORSION[1].to_montgomery().to_bytes();
    let minus_one = std::array::from_fn(|i| PRIME[i] - one[i]);
    for bad in [[0; 32], one, order_8, minus_one] {
        assert!(is_canonical(&bad));
        for group in ways() {
            let mut points = elements(5);
            points[3] = bad;
            let mut twice = points.clone();
            assert_eq!(group.mul_batch(&mut points.clone(), &key(1), 2), Err(ElementRefusal::SmallOrder));
            let refused = group.mul_twice_batch(&mut points, &mut twice, &key(1), &key(2), 1);
            assert_eq!(refused, Err(ElementRefusal::SmallOrder));
        }
    }
    let mut over = PRIME;
    over[0] += 3;
    let mut high = hash(b"x");
    high[31] |= 0x80;
    for bad in [PRIME, over, high, [0xff; 32]] {
        for group in ways() {
            assert_eq!(group.mul_batch(&mut [bad], &key(1), 1), Err(ElementRefusal::NonCanonical));
            let refused = group.mul_twice_batch(&mut [bad], &mut [bad], &key(1), &key(2), 1);
            assert_eq!(refused, Err(ElementRefusal::NonCanonical));
        }
    }
}

#[test]
fn keys_are_multiples_of_eight_below_two_to_255() {
    assert!(Exponent::from_bytes([0; 32]).is_none());
    let mut lowest_four_of_the_top_byte = [0; 32];
    lowest_four_of_the_top_byte[31] = 0xf0;
    assert!(Exponent::from_bytes(lowest_four_of_the_top_byte).is_none());
    assert!(!format!("{:?}", key(1)).contains("bytes"));
}

#[test]
fn empty_batches_do_nothing() {
    mul_batch(&mut [], &key(1), 4).unwrap();
    mul_twice_batch(&mut [], &mut [], &key(1), &key(2), 4).unwrap();
    random_elements(&mut Seed::from_bytes([1; 32]).into_rng(), &mut [], 4);
}

#[test]
fn elements_of_the_subgroup_are_told_from_others() {
    assert!(is_in_subgroup(&hash(b"anna")));
    let [zero, one] = [[0; 32], std::array::from_fn(|i| u8::from(i == 0))];
    assert!(!is_in_subgroup(&zero) && !is_in_subgroup(&one), "of order 2, of order 4");
    // Sums of a point and one of order 8 are of mixed order.
    let mixed =
        curve25519_dalek::constants::EIGHT_TORSION.map(|t| (hash_to_point(b"anna", TAG) + t).to_montgomery());
    assert_eq!(mixed.iter().filter(|u| is_in_subgroup(&u.0)).count(), 1);
}

//! No branch, no address and no time of the group depends on keys or on what identifiers say.

use crate::group::{CurveGroup, Exponent};
use curve25519_dalek::MontgomeryPoint;
use timing::{TimedKernel, done};

const POINTS: usize = 3;
/// Bytes of an identifier; how long it is shows.
const NAME: usize = 24;

fn key(secret: &[u8]) -> Exponent {
    let mut bytes: [u8; 32] = secret.try_into().expect("32 bytes");
    // The fixed class of the t-test has only zeros, and zero is no key.
    bytes[0] |= 1;
    Exponent::from_bytes(bytes).expect("a key that is not zero")
}

/// Elements of the subgroup, which a peer knows too.
fn received() -> Vec<[u8; 32]> {
    let mut points = vec![[0; 32]; POINTS];
    let names = |i: usize, name: &mut Vec<u8>| {
        *name = vec![i as u8; NAME];
        Ok(())
    };
    CurveGroup::one_by_one().hash_batch(&names, &mut points, 1).expect("these names can be read");
    points
}

/// The cases of one way to compute.
fn group(way: &'static str, group: CurveGroup) -> Vec<TimedKernel<'static>> {
    let hash = move |secret: &mut [u8]| {
        let (key_bytes, all) = secret.split_at(32);
        let names = |i: usize, name: &mut Vec<u8>| {
            name.clear();
            name.extend_from_slice(&all[i * NAME..][..NAME]);
            Ok(())
        };
        let mut points = vec![[0; 32]; POINTS];
        group.hash_mul_batch(&names, &key(key_bytes), &mut points, 1).expect("these names can be read");
        done(&points[..]);
    };
    let points = received();
    let product = move |secret: &mut [u8]| {
        let mut points = points.clone();
        group.mul_batch(&mut points, &key(secret), 1).expect("elements of the subgroup");
        done(&points[..]);
    };
    let points = received();
    let products = move |secret: &mut [u8]| {
        let (mut points, mut twice) = (points.clone(), points.clone());
        let keys = [key(&secret[..32]), key(&secret[32..])];
        group.mul_twice_batch(&mut points, &mut twice, &keys[0], &keys[1], 1).expect("as above");
        done(&points[..]);
        done(&twice[..]);
    };
    vec![
        TimedKernel::new(format!("{way}: names hashed, times a key"), 32 + POINTS * NAME, hash),
        TimedKernel::new(format!("{way}: points times a key"), 32, product),
        TimedKernel::new(format!("{way}: points times two keys"), 64, products),
    ]
}

fn cases() -> Vec<TimedKernel<'static>> {
    let inverse = |secret: &mut [u8]| {
        let inverse = key(secret).inverse().expect("but for one key in 2^128");
        let mut points = received();
        CurveGroup::one_by_one().mul_batch(&mut points, &inverse, 1).expect("elements of the subgroup");
        done(&points[..]);
    };
    // One point of the twist takes the ladder of curve25519-dalek. Whether it is on the twist, its sender
    // knows.
    let mut small = (2u8..).map(|u| std::array::from_fn(|i| if i == 0 { u } else { 0 }));
    let of_twist = small.find(|u| MontgomeryPoint(*u).to_edwards(0).is_none()).expect("half of all are");
    let twist = move |secret: &mut [u8]| {
        let mut points = [of_twist];
        CurveGroup::one_by_one().mul_batch(&mut points, &key(secret), 1).expect("a point of the twist");
        done(&points);
    };
    let mut cases = group("one by one", CurveGroup::one_by_one());
    cases.push(TimedKernel::new("one by one: a point of the twist times a key", 32, twist));
    cases.push(TimedKernel::new("inverse of a key", 32, inverse));
    if CurveGroup::detect().lanes() > 1 {
        cases.extend(group("8 lanes", CurveGroup::detect()));
    }
    cases
}

timing::tests!(cases);

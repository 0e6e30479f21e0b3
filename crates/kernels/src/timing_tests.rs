//! No branch, no address and no time of a kernel depends on a secret: every kernel on every backend.

use crate::curve::CurveBackend;
use crate::*;
use timing::{TimedKernel, done, memcheck};

/// Not a multiple of any vector.
const LANES: usize = 67;
const TWEAK: Block = Block(4);

fn blocks(secret: &[u8]) -> Vec<Block> {
    let mut blocks = vec![Block::ZERO; secret.len() / Block::BYTES];
    Block::read_slice(secret, &mut blocks);
    blocks
}

fn words(secret: &[Block]) -> Vec<u64> {
    secret.iter().flat_map(|b| [b.0 as u64, (b.0 >> 64) as u64]).collect()
}

/// A case that takes so many secret blocks.
fn case(
    backend: InstructionSet,
    name: &str,
    secret: usize,
    mut run: impl FnMut(Vec<Block>) + 'static,
) -> TimedKernel<'static> {
    TimedKernel::new(format!("{backend:?}: {name}"), secret * Block::BYTES, move |secret| run(blocks(secret)))
}

fn ciphers(b: InstructionSet) -> Vec<TimedKernel<'static>> {
    let hash = move || TweakedHash::on(b, Block(7));
    vec![
        case(b, "AES, key and data", 1 + LANES, move |mut x| {
            let (key, data) = x.split_at_mut(1);
            Aes128::on(b, key[0]).encrypt(data);
            done(data);
        }),
        case(b, "AES, counter mode", 1 + LANES, move |mut x| {
            let (key, data) = x.split_at_mut(1);
            Aes128::on(b, key[0]).ctr_xor(5, data);
            done(data);
            Aes128::on(b, key[0]).ctr(5, data);
            done(data);
        }),
        case(b, "streams folded", 8, move |keys| {
            let keys: Vec<Aes128> = keys.iter().map(|&key| Aes128::on(b, key)).collect();
            let (mut u, mut v) = ([Block::ZERO; 9], [Block::ZERO; 27]);
            fold_streams(&keys, 3, &mut u, &mut v);
            done(&(u, v));
        }),
        case(b, "tweaked hash", LANES, move |x| {
            let mut out = vec![Block::ZERO; 3 * LANES];
            hash().hash_words(TWEAK, &x, 3, &mut out);
            done(&out[..]);
        }),
        case(b, "tweaked hash, lowest bits", 1 + LANES, move |x| {
            let mut bits = [[0; LANES.div_ceil(64)]; 3];
            let [one, two, three] = &mut bits;
            hash().hash_lsbs(TWEAK, &x[1..], one);
            hash().hash_lsbs_both(TWEAK, x[0], &x[1..], two, three);
            done(&bits);
        }),
    ]
}

fn gates(b: InstructionSet) -> Vec<TimedKernel<'static>> {
    let hash = move || TweakedHash::on(b, Block(7));
    let room = || (vec![Block::ZERO; LANES], vec![Block::ZERO; 2 * LANES]);
    vec![
        case(b, "half-gates, garbled", 1 + 2 * LANES, move |x| {
            let (delta, (left, right)) = (x[0] | Block::ONE, x[1..].split_at(LANES));
            let (mut out, mut table) = room();
            garble_and(&hash(), TWEAK, Block(5), delta, left, right, &mut out, &mut table);
            done(&out[..]);
            done(&table[..]);
        }),
        case(b, "half-gates, evaluated", 4 * LANES, move |x| {
            let (labels, table) = x.split_at(2 * LANES);
            let (left, right) = labels.split_at(LANES);
            let mut out = room().0;
            eval_and(&hash(), TWEAK, Block(5), left, right, &mut out, table);
            done(&out[..]);
        }),
        case(b, "gates with known bits, garbled", 3 + 2 * LANES, move |x| {
            let (delta, bits, (left, right)) = (x[0] | Block::ONE, words(&x[1..3]), x[3..].split_at(LANES));
            let (mut out, mut table) = room();
            let table = &mut table[..LANES];
            garble_and_garbler_known(&hash(), TWEAK, delta, &bits[..2], left, &mut out, table);
            done(&out[..]);
            done(table);
            garble_and_evaluator_known(&hash(), TWEAK, delta, left, right, &mut out, table);
            done(&out[..]);
            done(table);
        }),
        case(b, "gates with known bits, evaluated", 1 + 3 * LANES, move |x| {
            let (bits, (labels, table)) = (words(&x[..1]), x[1..].split_at(2 * LANES));
            let (left, right) = labels.split_at(LANES);
            let mut out = room().0;
            eval_and_garbler_known(&hash(), TWEAK, left, &mut out, table);
            done(&out[..]);
            eval_and_evaluator_known(&hash(), TWEAK, left, &bits, right, &mut out, table);
            done(&out[..]);
        }),
    ]
}

fn matrices(b: InstructionSet) -> Vec<TimedKernel<'static>> {
    vec![
        case(b, "transposition", 3 * 128, move |rows| {
            let mut out = vec![Block::ZERO; rows.len()];
            transpose128_on(b, &rows, &mut out);
            done(&out[..]);
        }),
        case(b, "local code", 64 + 256, move |mut x| {
            let (secret, rows) = x.split_at_mut(64);
            add_local(&Aes128::on(b, Block(9)), 6, secret, rows);
            done(rows);
        }),
    ]
}

fn selected(b: InstructionSet) -> Vec<TimedKernel<'static>> {
    vec![case(b, "blocks added by a bit", 1 + 2 * LANES, move |mut x| {
        let (bit, (sums, y)) = (x[0].0 as u64 & 1, x[1..].split_at_mut(LANES));
        xor_when_on(b, sums, y, bit);
        done(sums);
    })]
}

fn fields(b: InstructionSet) -> Vec<TimedKernel<'static>> {
    vec![
        case(b, "GF(2^128), products", 1 + 2 * LANES, move |mut x| {
            let (factor, (x, sums)) = (x[0], x[1..].split_at_mut(LANES));
            gf_add_multiples_on(b, factor, x, sums);
            done(sums);
        }),
        case(b, "GF(2^128), digest", 2 + LANES, move |x| {
            let key = GfKey::new(x[0]);
            let digest = gf_digest_on(b, &key, x[1], &x[2..]);
            done(&key.advance_on(b, digest, 12));
        }),
    ]
}

fn rings(b: InstructionSet, ring: VectorRing) -> Vec<TimedKernel<'static>> {
    let name = |what: &str| format!("{ring:?}, {what}");
    vec![
        case(b, &name("sums"), 2 * LANES, move |mut x| {
            let (sums, x) = x.split_at_mut(LANES);
            ring_add_on(b, ring, sums, x);
            ring_sub_on(b, ring, &mut sums[1..], &x[1..]);
            done(sums);
        }),
        case(b, &name("products of shares"), 9 * LANES, move |mut all| {
            let (factors, sums) = all.split_at_mut(6 * LANES);
            let part = |i: usize| &factors[i * LANES..][..LANES];
            let (x, y) = ([part(0), part(1), part(2)], [part(3), part(4), part(5)]);
            for write in [Write::Set, Write::Add] {
                let (first, rest) = sums.split_at_mut(LANES);
                let (second, third) = rest.split_at_mut(LANES);
                ring_cross_on(b, ring, write, x, y, [first, second, third]);
            }
            done(sums);
        }),
        case(b, &name("masks"), 2 + 4 * LANES, move |mut x| {
            let keys = [Aes128::on(b, x[0]), Aes128::on(b, x[1])];
            let [mask, wire] = [0, 1].map(|k| Keystream { key: &keys[k], prefix: 5, first: 3 });
            let (values, rest) = x[2..].split_at_mut(LANES);
            let (masks, rest) = rest.split_at_mut(LANES);
            let (rests, others) = rest.split_at_mut(LANES);
            let to = ((Write::Add, &mut *masks), (Write::Set, &mut *rests));
            JointMask { mask, wire: Some(wire), to_mask: to.0, to_rest: to.1 }.split(ring, values);
            wire.add_unmasked(ring, others, values);
            mask.add(ring, others);
            [values, masks, rests, others].into_iter().for_each(|part| done(part));
        }),
    ]
}

/// What all backends share.
fn plain() -> Vec<TimedKernel<'static>> {
    let case = |name: &str, secret: usize, mut run: Box<dyn FnMut(Vec<Block>)>| {
        TimedKernel::new(name, secret * Block::BYTES, move |secret| run(blocks(secret)))
    };
    vec![
        case(
            "labels by packed bits",
            3 + LANES,
            Box::new(|mut x| {
                let (bits, delta) = (words(&x[..2]), x[2]);
                xor_masked(&mut x[3..], &bits, delta);
                done(&x[3].when(bit(&bits, 70)));
                let mut packed = [0; LANES.div_ceil(64)];
                lsbs(&x[3..], &mut packed);
                done(&packed);
            }),
        ),
        case(
            "GF(2^128), elements from bits",
            2 * FIELD_BITS,
            Box::new(|x| {
                let mut out = Vec::new();
                gf_pack(&x, &mut out);
                done(&out[..]);
            }),
        ),
    ]
}

/// The ladder of the portable twin, and with the 8-lane kernel its map too; the twin's map is for comparisons
/// only.
fn curves() -> Vec<TimedKernel<'static>> {
    const POINTS: usize = 9;
    let key = |secret: &[u8]| -> curve::Key {
        let mut key: curve::Key = secret[..32].try_into().expect("32 bytes");
        key[31] &= 15;
        // That keys are below 2^252 is asserted; they always are.
        memcheck::public(&mut key[31]);
        key
    };
    let elements = |secret: &[u8]| secret.as_chunks::<32>().0.to_vec();
    let mul = move |curve: CurveBackend, secret: &[u8]| {
        let mut points = elements(&secret[32..]);
        curve.mul(&key(secret), &mut points);
        done(&points[..]);
    };
    let mut cases =
        vec![TimedKernel::new("Curve25519 of the twin: ladder", 64, move |secret: &mut [u8]| {
            mul(CurveBackend::portable(), secret);
        })];
    if let Some(curve) = CurveBackend::fast() {
        cases.push(TimedKernel::new(
            "Curve25519 of 8 lanes: ladder",
            32 + 32 * POINTS,
            move |secret: &mut [u8]| {
                mul(curve, secret);
            },
        ));
        cases.push(TimedKernel::new(
            "Curve25519 of 8 lanes: map",
            32 + 96 * POINTS,
            move |secret: &mut [u8]| {
                let mut points = [[0; 32]; POINTS];
                curve.map(Some(&key(secret)), secret[32..].as_chunks().0, &mut points);
                done(&points);
            },
        ));
    }
    cases
}

fn cases() -> Vec<TimedKernel<'static>> {
    let of = |b: InstructionSet| {
        let rings = VectorRing::ALL.into_iter().flat_map(move |ring| rings(b, ring));
        [ciphers(b), gates(b), matrices(b), selected(b), fields(b)].into_iter().flatten().chain(rings)
    };
    InstructionSet::available().into_iter().flat_map(of).chain(plain()).chain(curves()).collect()
}

timing::tests!(cases);

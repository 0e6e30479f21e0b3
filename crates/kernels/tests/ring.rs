//! Vectors over the three rings: every backend gives the bits of the definition, at many lengths.

use kernels::*;

/// Around the vectors of all backends and the passes of the portable twins.
const LENGTHS: [usize; 20] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 31, 63, 65, 255, 1000];

fn random(label: u64, n: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; n];
    stream(&Aes128::new(Block(0xabc)), label, 0, &mut out);
    out
}

/// Random blocks, and among them those whose halves carry, borrow and multiply at the ends of their ranges.
fn vectors(label: u64, n: usize) -> Vec<Block> {
    const EDGES: [u128; 8] = [0, 1, u128::MAX, u64::MAX as u128, 1 << 64, 1 << 127, !0 << 52, (1 << 104) - 1];
    let mut out = random(label, n);
    for (i, block) in out.iter_mut().enumerate() {
        if (i as u64 + label).is_multiple_of(3) {
            block.0 = EDGES[(i * 5 + label as usize) / 3 % EDGES.len()];
        }
    }
    out
}

fn parts(label: u64, n: usize) -> [Vec<Block>; 3] {
    [0, 1, 2].map(|k| vectors(label + k, n))
}

/// An operation on every backend, ring and length against its definition by index.
fn everywhere(
    what: &str,
    definition: impl Fn(VectorRing, usize, usize) -> Vec<Block>,
    kernel: impl Fn(InstructionSet, VectorRing, usize) -> Vec<Vec<Block>>,
) {
    for ring in VectorRing::ALL {
        for n in LENGTHS {
            let expected: Vec<Vec<Block>> = (0..n).map(|i| definition(ring, n, i)).collect();
            for backend in InstructionSet::available() {
                let results = kernel(backend, ring, n);
                for (j, result) in results.iter().enumerate() {
                    let same = result.len() == n && result.iter().zip(&expected).all(|(r, e)| *r == e[j]);
                    assert!(same, "{what}, result {j}, {n} blocks over {ring:?} on {backend:?}");
                }
            }
        }
    }
}

#[test]
fn elements_wrap_within_their_width() {
    let (x, y) = (Block(u128::MAX), Block(3 << 64 | 2));
    assert!(
        VectorRing::Z128.add(x, y) == Block(3 << 64 | 1) && VectorRing::Z128.sub(Block(1), Block(2)) == x
    );
    assert!(
        VectorRing::Z64.add(x, y) == Block(2 << 64 | 1)
            && VectorRing::Z64.mul(x, y) == Block((!2u64 as u128) << 64 | !1u64 as u128)
    );
    assert!(VectorRing::Z2.add(x, y) == Block(!y.0) && VectorRing::Z2.mul(x, y) == y);
    assert_eq!(VectorRing::ALL.map(|ring| ring.blocks(129)), [129, 65, 2]);
}

#[test]
fn sums_and_differences_agree() {
    everywhere(
        "sum",
        |ring, n, i| {
            let (x, y) = (vectors(1, n)[i], vectors(2, n)[i]);
            vec![ring.add(x, y), ring.sub(x, y)]
        },
        |backend, ring, n| {
            let [mut sum, mut difference] = [vectors(1, n), vectors(1, n)];
            ring_add_on(backend, ring, &mut sum, &vectors(2, n));
            ring_sub_on(backend, ring, &mut difference, &vectors(2, n));
            vec![sum, difference]
        },
    );
}

#[test]
fn local_products_agree() {
    for write in [Write::Set, Write::Add] {
        everywhere(
            "local products",
            |ring, n, i| {
                let ([x0, x1, x2], [y0, y1, y2]) = (parts(1, n).map(|x| x[i]), parts(5, n).map(|y| y[i]));
                let start = parts(9, n).map(|sum| if write == Write::Add { sum[i] } else { Block::ZERO });
                let dot = |start, pairs: &[(Block, Block)]| {
                    pairs.iter().fold(start, |sum, &(x, y)| ring.add(sum, ring.mul(x, y)))
                };
                vec![
                    dot(start[0], &[(x1, y2), (x2, y1), (x1, y1)]),
                    dot(start[1], &[(x0, y1), (x1, y0), (x0, y0)]),
                    dot(start[2], &[(x0, y2), (x2, y0)]),
                ]
            },
            |backend, ring, n| {
                let (x, y, mut sums) = (parts(1, n), parts(5, n), parts(9, n));
                let [a, b, c] = &mut sums;
                ring_cross_on(
                    backend,
                    ring,
                    write,
                    x.each_ref().map(|part| &**part),
                    y.each_ref().map(|part| &**part),
                    [a, b, c],
                );
                sums.into()
            },
        );
    }
}

/// Block `i` of a stream, by the definition.
fn mask(key: Block, prefix: u64, at: u64) -> Block {
    let mut block = [Block(u128::from(prefix) << 64 | u128::from(at))];
    Aes128::on(InstructionSet::Portable, key).encrypt(&mut block);
    block[0]
}

/// The last one of 1000 blocks has the last counter there is; and the counter passes 2^32 in between.
const STARTS: [u64; 3] = [0, (1 << 32) - 7, u64::MAX - 1000];

#[test]
fn streams_and_what_is_added_of_them_agree() {
    let (key, prefix) = (random(20, 1)[0], 0x8000_0000_0000_0007);
    for first in STARTS {
        everywhere(
            "stream",
            |ring, n, i| {
                let (sum, x) = (vectors(1, n)[i], vectors(2, n)[i]);
                let mask = mask(key, prefix, first + i as u64);
                vec![mask, ring.add(sum, mask), ring.add(sum, ring.sub(x, mask))]
            },
            |backend, ring, n| {
                let key = Aes128::on(backend, key);
                let stream = Keystream { key: &key, prefix, first };
                let [mut filled, mut added, mut unmasked] = [random(21, n), vectors(1, n), vectors(1, n)];
                stream.fill(&mut filled);
                stream.add(ring, &mut added);
                stream.add_unmasked(ring, &mut unmasked, &vectors(2, n));
                vec![filled, added, unmasked]
            },
        );
    }
}

#[test]
fn joint_values_are_split_alike() {
    let keys = random(30, 2);
    for (first, hidden, writes) in [
        (STARTS[0], false, [Write::Set, Write::Set]),
        (STARTS[1], true, [Write::Add, Write::Set]),
        (STARTS[2], true, [Write::Set, Write::Add]),
        (STARTS[0], false, [Write::Add, Write::Add]),
    ] {
        everywhere(
            "joint value",
            |ring, n, i| {
                let at = first + i as u64;
                let (rho, wire) = (mask(keys[0], 1, at), mask(keys[1], 2, at));
                let rest = ring.sub(vectors(1, n)[i], rho);
                let message = if hidden { ring.add(rest, wire) } else { rest };
                let put = |write, sum, x| if write == Write::Add { ring.add(sum, x) } else { x };
                let sums = [vectors(2, n)[i], vectors(3, n)[i]];
                vec![message, put(writes[0], sums[0], rho), put(writes[1], sums[1], rest)]
            },
            |backend, ring, n| {
                let keys = [0, 1].map(|k| Aes128::on(backend, keys[k]));
                let [mut values, mut masks, mut rests] = [vectors(1, n), vectors(2, n), vectors(3, n)];
                let wire = Keystream { key: &keys[1], prefix: 2, first };
                let mut joint = JointMask {
                    mask: Keystream { key: &keys[0], prefix: 1, first },
                    wire: hidden.then_some(wire),
                    to_mask: (writes[0], &mut masks),
                    to_rest: (writes[1], &mut rests),
                };
                joint.split(ring, &mut values);
                vec![values, masks, rests]
            },
        );
    }
}

#[test]
#[should_panic(expected = "a stream has 2^64 blocks")]
fn a_counter_does_not_come_round() {
    stream(&Aes128::new(Block(1)), 0, u64::MAX - 3, &mut [Block::ZERO; 5]);
}

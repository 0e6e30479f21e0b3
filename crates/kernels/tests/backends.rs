//! Every backend of this machine gives the bits of the portable one, at many lengths; gates follow their
//! truth tables.

use kernels::*;
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

const LENGTHS: [usize; 16] = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 64, 65, 255, 1000];

struct Source(ChaCha12Rng);

impl Source {
    fn new(seed: u64) -> Self {
        Self(ChaCha12Rng::seed_from_u64(seed))
    }
    fn block(&mut self) -> Block {
        let mut bytes = [0; 16];
        self.0.fill_bytes(&mut bytes);
        Block::from_bytes(bytes)
    }
    fn blocks(&mut self, n: usize) -> Vec<Block> {
        (0..n).map(|_| self.block()).collect()
    }
    fn bits(&mut self, n: usize) -> Vec<u64> {
        (0..n.div_ceil(64)).map(|_| self.0.next_u64()).collect()
    }
}

/// `work` gives the same on every backend as on the portable one.
fn same<T: PartialEq>(what: &str, work: impl Fn(InstructionSet) -> T) {
    let expected = work(InstructionSet::Portable);
    for backend in InstructionSet::available() {
        assert!(work(backend) == expected, "{what} on {backend:?}");
    }
}

#[test]
fn aes_counter_mode_and_folds_agree() {
    let mut source = Source::new(1);
    let key = source.block();
    for n in LENGTHS {
        let plain = source.blocks(n);
        same("encrypt", |b| {
            let mut x = plain.clone();
            Aes128::on(b, key).encrypt(&mut x);
            x
        });
        // The second counter wraps around inside the stream.
        for counter in [5, u64::MAX - 6] {
            same("ctr", |b| {
                let mut x = vec![Block::ONE; n];
                Aes128::on(b, key).ctr(counter, &mut x);
                x
            });
            let mut stream = vec![Block::ZERO; n];
            Aes128::new(key).ctr(counter, &mut stream);
            same("ctr in place", |b| {
                let mut x = plain.clone();
                Aes128::on(b, key).ctr_xor(counter, &mut x);
                xor_into(&mut x, &plain);
                assert!(x == stream, "the stream itself");
                x
            });
        }
        if n == 0 {
            continue;
        }
        for depth in 1..=5 {
            let seeds = source.blocks(1 << depth);
            same("fold", |b| {
                let keys: Vec<Aes128> = seeds.iter().map(|&s| Aes128::on(b, s)).collect();
                let (mut u, mut v) = (vec![Block::ONE; n], vec![Block::ONE; depth * n]);
                fold_streams(&keys, 77, &mut u, &mut v);
                (u, v)
            });
        }
    }
}

#[test]
fn counter_mode_encrypts_the_counter() {
    let key = Source::new(2).block();
    let mut stream = vec![Block::ZERO; 37];
    prg_fill(key, 1000, &mut stream);
    let mut counters: Vec<Block> = (1000..1037).map(Block).collect();
    Aes128::new(key).encrypt(&mut counters);
    assert!(stream == counters);
}

#[test]
fn the_hash_is_its_definition_on_every_backend() {
    let mut source = Source::new(3);
    let (start, tweak) = (source.block(), Block(source.block().0 & !3));
    for n in LENGTHS {
        let x = source.blocks(n);
        let mut expected: Vec<Block> = x.iter().map(|x| x.sigma()).collect();
        Aes128::new(start ^ tweak).encrypt(&mut expected);
        expected.iter_mut().zip(&x).for_each(|(e, x)| *e ^= x.sigma());
        same("hash", |b| {
            let mut out = vec![Block::ZERO; n];
            TweakedHash::on(b, start).hash(tweak, &x, &mut out);
            assert!(out == expected, "{b:?}");
            out
        });
        for words in 1..=WORDS_MAX {
            same("hash_words", |b| {
                let hash = TweakedHash::on(b, start);
                let (mut out, mut word) = (vec![Block::ZERO; n * words], vec![Block::ZERO; n]);
                hash.hash_words(tweak, &x, words, &mut out);
                for w in 0..words {
                    hash.hash(tweak ^ Block(w as u128), &x, &mut word);
                    assert!((0..n).all(|i| out[i * words + w] == word[i]), "word {w} of {words}");
                }
                out
            });
        }
    }
}

#[test]
fn packed_bits_of_the_hash_are_its_lowest_bits() {
    let mut source = Source::new(31);
    let (start, tweak, delta) = (source.block(), source.block(), source.block());
    for n in LENGTHS {
        let x = source.blocks(n);
        let shifted: Vec<Block> = x.iter().map(|&x| x ^ delta).collect();
        let expected = [&x, &shifted].map(|x| {
            let (mut h, mut bits) = (vec![Block::ZERO; n], vec![0; n.div_ceil(64)]);
            TweakedHash::on(InstructionSet::Portable, start).hash(tweak, x, &mut h);
            kernels::lsbs(&h, &mut bits);
            bits
        });
        for backend in InstructionSet::available() {
            let hash = TweakedHash::on(backend, start);
            let [mut one_side, mut zero, mut one] = [(); 3].map(|()| vec![u64::MAX; n.div_ceil(64)]);
            hash.hash_lsbs(tweak, &x, &mut one_side);
            hash.hash_lsbs_both(tweak, delta, &x, &mut zero, &mut one);
            assert_eq!(one_side, expected[0], "{backend:?} at {n}");
            assert_eq!([zero, one], expected, "{backend:?} at {n}");
        }
    }
}

struct Lanes {
    start: Block,
    t: [Block; 2],
    delta: Block,
    a: Vec<Block>,
    b: Vec<Block>,
    a_bits: Vec<u64>,
    b_bits: Vec<u64>,
}

impl Lanes {
    fn random(source: &mut Source, n: usize) -> Self {
        let delta = source.block();
        Self {
            start: source.block(),
            t: [source.block(), source.block()],
            delta: Block(delta.0 | 1),
            a: source.blocks(n),
            b: source.blocks(n),
            a_bits: source.bits(n),
            b_bits: source.bits(n),
        }
    }
    fn n(&self) -> usize {
        self.a.len()
    }
    fn active(&self, zero: &[Block], bits: &[u64]) -> Vec<Block> {
        let mut labels = zero.to_vec();
        xor_masked(&mut labels, bits, self.delta);
        labels
    }
    /// The labels that say `a AND b` given the labels of 0.
    fn expect(&self, zero: &[Block]) -> Vec<Block> {
        let bits: Vec<u64> = self.a_bits.iter().zip(&self.b_bits).map(|(a, b)| a & b).collect();
        self.active(zero, &bits)
    }
}

#[test]
fn half_gates_compute_and_on_every_backend() {
    let mut source = Source::new(4);
    for n in LENGTHS {
        let l = Lanes::random(&mut source, n);
        let (a, b) = (l.active(&l.a, &l.a_bits), l.active(&l.b, &l.b_bits));
        same("half-gates", |backend| {
            let hash = TweakedHash::on(backend, l.start);
            let mut zero = vec![Block::ZERO; n];
            let (mut table, mut out) = (vec![Block::ZERO; 2 * n], zero.clone());
            garble_and(&hash, l.t[0], l.t[1], l.delta, &l.a, &l.b, &mut zero, &mut table);
            eval_and(&hash, l.t[0], l.t[1], &a, &b, &mut out, &table);
            assert!(out == l.expect(&zero), "{n} lanes on {backend:?}");
            (zero, table, out)
        });
    }
}

#[test]
fn one_ciphertext_halves_compute_and_on_every_backend() {
    let mut source = Source::new(5);
    for n in LENGTHS {
        let l = Lanes::random(&mut source, n);
        let (a, b) = (l.active(&l.a, &l.a_bits), l.active(&l.b, &l.b_bits));
        same("garbler's half", |backend| {
            let hash = TweakedHash::on(backend, l.start);
            let mut zero = vec![Block::ZERO; n];
            let (mut table, mut out) = (zero.clone(), zero.clone());
            garble_and_garbler_known(&hash, l.t[0], l.delta, &l.a_bits, &l.b, &mut zero, &mut table);
            eval_and_garbler_known(&hash, l.t[0], &b, &mut out, &table);
            assert!(out == l.expect(&zero), "{n} lanes on {backend:?}");
            (zero, table, out)
        });
        same("evaluator's half", |backend| {
            let hash = TweakedHash::on(backend, l.start);
            let mut zero = vec![Block::ZERO; n];
            let (mut table, mut out) = (zero.clone(), zero.clone());
            garble_and_evaluator_known(&hash, l.t[1], l.delta, &l.a, &l.b, &mut zero, &mut table);
            eval_and_evaluator_known(&hash, l.t[1], &a, &l.a_bits, &b, &mut out, &table);
            assert!(out == l.expect(&zero), "{n} lanes on {backend:?}");
            (zero, table, out)
        });
    }
}

#[test]
fn all_four_rows_and_all_colours_of_the_truth_table() {
    let mut source = Source::new(6);
    for case in 0..16u64 {
        let mut l = Lanes::random(&mut source, 1);
        l.a_bits = vec![case & 1];
        l.b_bits = vec![case >> 1 & 1];
        l.a[0] = Block(l.a[0].0 & !1 | u128::from(case >> 2 & 1));
        l.b[0] = Block(l.b[0].0 & !1 | u128::from(case >> 3 & 1));
        let hash = TweakedHash::new(l.start);
        let (mut zero, mut out) = ([Block::ZERO], [Block::ZERO]);
        let mut table = [Block::ZERO; 2];
        garble_and(&hash, l.t[0], l.t[1], l.delta, &l.a, &l.b, &mut zero, &mut table);
        let (a, b) = (l.active(&l.a, &l.a_bits), l.active(&l.b, &l.b_bits));
        eval_and(&hash, l.t[0], l.t[1], &a, &b, &mut out, &table);
        let and = case & (case >> 1) & 1 == 1;
        assert!(out[0] == if and { zero[0] ^ l.delta } else { zero[0] }, "case {case}, {} lane", l.n());
    }
}

#[test]
fn the_transpose_is_one_on_every_backend() {
    let mut source = Source::new(7);
    for per_row in [0usize, 1, 2, 3, 5, 16] {
        let rows = source.blocks(128 * per_row);
        let mut expected = vec![Block::ZERO; rows.len()];
        for (j, e) in expected.iter_mut().enumerate() {
            for r in 0..128 {
                e.0 |= (rows[r * per_row + j / 128].0 >> (j % 128) & 1) << r;
            }
        }
        same("transpose", |b| {
            let mut out = vec![Block::ZERO; rows.len()];
            transpose128_on(b, &rows, &mut out);
            assert!(out == expected, "{per_row} blocks per row on {b:?}");
            out
        });
    }
}

#[test]
fn local_codes_are_their_definition_on_every_backend() {
    let mut source = Source::new(8);
    let key = source.block();
    for k in [1usize, 2, 64, 1 << 12] {
        let secret = source.blocks(k);
        for (first, n) in [(0u64, 0usize), (0, 2), (2, 6), (10, 254), (0, 256), (256, 258), (1 << 40, 1000)] {
            let rows = source.blocks(n);
            let mut words = vec![Block::ZERO; n / 2 * 5];
            Aes128::new(key).ctr(first / 2 * 5, &mut words);
            let entry = |i: usize| secret[(words[i / 4].0 >> (32 * (i % 4) + 4)) as usize % (1 << 28) % k];
            let row = |i: usize| (0..LOCALITY).fold(rows[i].0 & !1, |sum, j| sum ^ entry(10 * i + j).0);
            let expected: Vec<Block> = (0..n).map(|i| Block(row(i))).collect();
            same("local code", |b| {
                let mut out = rows.clone();
                add_local(&Aes128::on(b, key), first, &secret, &mut out);
                assert!(out == expected, "{n} rows of {k} entries on {b:?}");
                out
            });
        }
    }
}

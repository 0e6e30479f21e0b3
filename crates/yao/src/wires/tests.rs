//! Programs against the clear computation, in both roles; prices against ledgers; peers that misbehave.

use super::*;
use base::{Error, PartyId};
use kernels::Block;
use net::cluster::Cluster;
use net::{InjectedFault, Session};
use osprey::{Heap, Memory};

/// A bijection of 64 bits that scatters neighbours.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// A program on numbers of both parties: `width` bits each, a garbler's and an evaluator's per item.
type Program = fn(&mut WireParty<'_>, &WireLanes, &WireLanes) -> Result<WireLanes, Error>;

fn number(owner: Role, item: usize, width: usize) -> u64 {
    let seed = if owner == Role::Garbler { 1 << 40 } else { 2 << 40 };
    // A few small and equal numbers among the random ones.
    let value = if item.is_multiple_of(5) { (item / 5 % 3) as u64 } else { mix(seed | item as u64) };
    value & (u64::MAX >> (64 - width))
}

fn pack(values: impl Iterator<Item = u64>, width: usize) -> Vec<u64> {
    let bits: Vec<u64> = values.flat_map(|v| (0..width).map(move |bit| v >> bit & 1)).collect();
    bits.chunks(64).map(|word| word.iter().enumerate().fold(0, |w, (i, bit)| w | bit << i)).collect()
}

fn unpack(bits: &[u64], width: usize) -> Vec<u64> {
    let all = (0..bits.len() * 64).map(|i| kernels::bit(bits, i)).collect::<Vec<_>>();
    let word = |bits: &[u64]| bits.iter().enumerate().fold(0, |w, (i, bit)| w | bit << i);
    all.chunks_exact(width).map(word).collect()
}

fn input(
    p: &mut WireParty<'_>,
    owner: Role,
    items: usize,
    width: usize,
) -> Result<WireArray<Vec<Block>>, Error> {
    let mut array = WireArray::new(&Heap, items, width);
    let bits = p.enters(owner).then(|| pack((0..items).map(|i| number(owner, i, width)), width));
    p.input(owner, &bits.unwrap_or_default(), array.wires_mut())?;
    Ok(array)
}

fn run(
    p: &mut WireParty<'_>,
    items: usize,
    width: usize,
    program: Program,
) -> Result<Option<Vec<u64>>, Error> {
    let x = input(p, Role::Garbler, items, width)?;
    let y = input(p, Role::Evaluator, items, width)?;
    let [x, y] = [x, y].map(|array| p.load(&array, 0..width, Items::range(0..items)));
    let z = program(p, &x, &y)?;
    let mut out = WireArray::new(&Heap, z.count(), z.width());
    p.store(&z, &mut out, 0, Items::range(0..z.count()));
    let opened = p.reveal(To::Both, out.wires())?;
    Ok(opened.map(|bits| unpack(&bits, z.width())[..z.count()].to_vec()))
}

fn party(session: &mut Session) -> Result<WireParty<'_>, Error> {
    if session.me() == PartyId(0) { WireParty::garbler(session) } else { WireParty::evaluator(session) }
}

/// Both parties and a speculator: all have one price, the ledgers agree with it, and both learn the same.
fn both(items: usize, width: usize, program: Program) -> Vec<u64> {
    let mut speculator = WireParty::speculator(Role::Evaluator);
    assert_eq!(run(&mut speculator, items, width, program), Ok(None));
    let (price, calls) = (speculator.price(), speculator.calls());
    let done = Cluster::new(2, 7).tiny_window().run(|session| {
        let mut p = party(session)?;
        let (role, out) = (p.role(), run(&mut p, items, width, program)?);
        assert_eq!(p.price(), price, "a price comes from sizes alone");
        assert_eq!(p.calls(), calls, "a stub of an operation is the same call");
        let ledger = session.traffic();
        assert_eq!((ledger.and_gates(""), ledger.ots("")), (price.and_gates, price.ots));
        let other = role.other();
        assert_eq!((ledger.sent(""), ledger.received("")), (price.sent(role), price.sent(other)));
        Ok(out.expect("both learn it"))
    });
    let [one, two] = <[_; 2]>::try_from(done).expect("two parties").map(|out| out.expect("the run succeeds"));
    assert_eq!(one, two);
    one
}

fn check(items: usize, width: usize, program: Program, clear: impl Fn(u64, u64) -> u64) {
    let expected: Vec<u64> = (0..items)
        .map(|i| clear(number(Role::Garbler, i, width), number(Role::Evaluator, i, width)))
        .collect();
    assert_eq!(both(items, width, program), expected, "{items} items of {width} bits");
}

#[test]
fn gadgets_agree_with_arithmetic() {
    for (items, width) in [(1, 1), (3, 8), (64, 5), (130, 8), (512, 3)] {
        let mask = u64::MAX >> (64 - width);
        check(items, width, |p, x, y| p.and_lanes(x, y), |x, y| x & y);
        check(items, width, |p, x, y| Ok(p.xor_lanes(x, y)), |x, y| x ^ y);
        check(items, width, |p, x, _| Ok(p.not_lanes(x)), |x, _| !x & mask);
        check(items, width, |p, x, y| p.add(x, y), |x, y| (x + y) & mask);
        check(items, width, |p, x, y| p.add_wide(x, y, None), |x, y| x + y);
        check(items, width, |p, x, y| p.less_than(x, y), |x, y| u64::from(x < y));
        check(items, width, |p, x, y| p.equal(x, y), |x, y| u64::from(x == y));
        check(items, width, |p, x, y| p.multiply(x, y), |x, y| x * y);
        check(items, width, |p, x, _| p.popcount(x), |x, _| x.count_ones().into());
        let largest = |p: &mut WireParty<'_>, x: &WireLanes, y: &WireLanes| {
            let less = p.less_than(x, y)?;
            p.mux(&less, y, x)
        };
        check(items, width, largest, u64::max);
    }
}

#[test]
fn constants_and_broadcasts_are_numbers_like_others() {
    check(
        100,
        8,
        |p, x, y| {
            let (five, one) = (p.number(5, 8, 100), p.number(1, 1, 100));
            let sum = p.add_wide(x, &five, Some(&one))?;
            let less = p.less_than(y, &five)?;
            p.mask(&less, &sum)
        },
        |x, y| if y < 5 { x + 6 } else { 0 },
    );
    // Every lane multiplies by the same wires.
    let program = |p: &mut WireParty<'_>, x: &WireLanes, _: &WireLanes| {
        let mut array = WireArray::new(&Heap, 64, 8);
        p.store(x, &mut array, 0, Items::range(0..64));
        let first = p.load(&array, 0..8, Items::same(1, 64));
        p.multiply(x, &first)
    };
    check(64, 8, program, |x, _| x * number(Role::Garbler, 1, 8));
}

#[test]
fn popcounts_of_many_bits_and_sums_over_lanes() {
    for width in [2usize, 6, 7, 31, 60] {
        check(20, width, |p, x, _| p.popcount(x), |x, _| x.count_ones().into());
    }
    let sums = both(96, 8, |p, x, y| {
        let wide = p.add_wide(x, y, None)?;
        p.sum_groups(wide, 32, true)
    });
    let all = |i| number(Role::Garbler, i, 8) + number(Role::Evaluator, i, 8);
    let expected: Vec<u64> = (0..3).map(|g| (32 * g..32 * g + 32).map(all).sum()).collect();
    assert_eq!(sums, expected);
}

#[test]
fn pairs_are_put_in_order_where_they_lie() {
    let program = |p: &mut WireParty<'_>, x: &WireLanes, y: &WireLanes| {
        let mut array = WireArray::new(&Heap, 64, 40);
        p.store(x, &mut array, 0, Items::range(0..64));
        p.store(y, &mut array, 20, Items::range(0..64));
        // Key: the evaluator's number. Runs of 8, one up, one down.
        let pairs = [Items::grid(0, 8, 16, 32), Items::mirrored(15, 8, 16, 32)];
        p.order(&mut array, 20..40, pairs)?;
        Ok(p.load(&array, 0..40, Items::range(0..64)))
    };
    let mut expected: Vec<(u64, u64)> =
        (0..64).map(|i| (number(Role::Evaluator, i, 20), number(Role::Garbler, i, 20))).collect();
    for i in 0..32 {
        let (first, second) = (i / 8 * 16 + i % 8, i / 8 * 16 + 15 - i % 8);
        if expected[second].0 < expected[first].0 {
            expected.swap(first, second);
        }
    }
    let expected: Vec<u64> = expected.into_iter().map(|(key, value)| key << 20 | value).collect();
    assert_eq!(both(64, 20, program), expected);
}

#[test]
fn operations_on_slices_are_as_wide_as_they_like() {
    const WIRES: usize = STRETCH + 1000;
    let done = Cluster::new(2, 3).run(|session| {
        let mut p = party(session)?;
        let buffer = || -> Vec<Block> { Heap.zeroed(WIRES) };
        let [mut x, mut y, mut z, mut one] = [(); 4].map(|()| buffer());
        let words =
            |owner: u64| (0..WIRES.div_ceil(64) as u64).map(|i| mix(owner << 32 | i)).collect::<Vec<_>>();
        let inputs =
            [Role::Garbler, Role::Evaluator].map(|r| if p.enters(r) { words(r as u64) } else { vec![] });
        p.input(Role::Garbler, &inputs[0], &mut x)?;
        p.input(Role::Evaluator, &inputs[1], &mut y)?;
        p.constant(true, &mut one);
        p.and(&x, &y, &mut z)?;
        p.xor(&z, &one, &mut y);
        p.not(&x, &mut z);
        p.and(&y, &z, &mut x)?;
        let role = p.role();
        let [mine, other] = [To::One(Role::Garbler), To::One(Role::Evaluator)].map(|to| p.reveal(to, &x));
        let (mine, other) = (mine?, other?);
        assert_eq!((mine.is_some(), other.is_some()), (role == Role::Garbler, role == Role::Evaluator));
        let price = p.price();
        assert_eq!(session.traffic().sent(""), price.sent(role));
        Ok((mine.or(other), words(0), words(1)))
    });
    for done in done {
        let (out, x, y) = done.expect("the run succeeds");
        let expected = |i: usize| {
            let (x, y) = (kernels::bit(&x, i), kernels::bit(&y, i));
            (1 - (x & y)) & (1 - x)
        };
        let out = out.expect("one of two reveals is for it");
        assert!((0..WIRES).all(|i| kernels::bit(&out, i) == expected(i)));
        assert!((WIRES..out.len() * 64).all(|i| kernels::bit(&out, i) == 0));
    }
}

/// 300 random gates on random registers, which repeat operands, constants and complements as they come.
#[test]
fn random_circuits_agree_with_the_clear_computation() {
    const WIRES: usize = 700;
    let words = WIRES.div_ceil(64);
    for seed in 0..4u64 {
        let draw = |i: u64| mix(seed << 32 | i);
        let inputs: Vec<Vec<u64>> =
            (0..4).map(|r| (0..words as u64).map(|w| draw(1 << 20 | r << 10 | w)).collect()).collect();
        let done = Cluster::new(2, seed).run(|session| {
            let mut p = party(session)?;
            let mut registers: Vec<Vec<Block>> = (0..8).map(|_| Heap.zeroed(WIRES)).collect();
            for (r, bits) in inputs.iter().enumerate() {
                let owner = [Role::Garbler, Role::Evaluator][r % 2];
                let bits = if p.enters(owner) { &bits[..] } else { &[] };
                p.input(owner, bits, &mut registers[r])?;
            }
            for i in 0..300 {
                let [gate, x, y, to] = [0, 8, 16, 24].map(|at| (draw(i) >> at) as usize % 8);
                let (x, y, mut out) = (&registers[x], &registers[y], vec![Block::ZERO; WIRES]);
                match gate {
                    0..=3 => p.and(x, y, &mut out)?,
                    4 | 5 => p.xor(x, y, &mut out),
                    6 => p.not(x, &mut out),
                    _ => p.constant(i % 2 == 0, &mut out),
                }
                registers[to] = out;
            }
            p.reveal(To::Both, &registers.concat())
        });
        let mut clear = vec![vec![0u64; words]; 8];
        clear[..4].clone_from_slice(&inputs);
        for i in 0..300 {
            let [gate, x, y, to] = [0, 8, 16, 24].map(|at| (draw(i) >> at) as usize % 8);
            let work = |w: usize| match gate {
                0..=3 => clear[x][w] & clear[y][w],
                4 | 5 => clear[x][w] ^ clear[y][w],
                6 => !clear[x][w],
                _ => {
                    if i % 2 == 0 {
                        u64::MAX
                    } else {
                        0
                    }
                }
            };
            clear[to] = (0..words).map(work).collect();
        }
        for out in done {
            let out = out.expect("the run succeeds").expect("both learn it");
            for (r, clear) in clear.iter().enumerate() {
                let same = |i: usize| kernels::bit(&out, r * WIRES + i) == kernels::bit(clear, i);
                assert!((0..WIRES).all(same), "seed {seed}, register {r}");
            }
        }
    }
}

/// What the evaluator hashes under one tweak differs in every lane, though the program put one wire into all
/// of them: the ciphertexts of two lanes never differ by a multiple of Delta, as they would if pads repeated.
#[test]
fn equal_wires_in_many_lanes_do_not_share_pads() {
    let tables = Cluster::new(2, 11).run(|session| {
        if session.me() == PartyId(1) {
            let (line, mut ot) = setup::evaluator(session)?;
            let mut labels = Vec::new();
            ot.correlated_one(line.session, &mut labels)?;
            let mut table = vec![Block::ZERO; 2 * 64];
            line.session.link(line.peer).recv(Block::as_bytes_mut(&mut table))?;
            return Ok((table, Block::ZERO));
        }
        let mut p = WireParty::garbler(session)?;
        let mut wire = [Block::ZERO];
        p.input(Role::Evaluator, &[], &mut wire)?;
        let (x, mut out) = (vec![wire[0]; 64], vec![Block::ZERO; 64]);
        p.and(&x, &x, &mut out)?;
        p.flush()?;
        Ok((Vec::new(), p.flip()))
    });
    let [garbler, evaluator] = <[_; 2]>::try_from(tables).expect("two").map(|r| r.expect("the run succeeds"));
    let (delta, table) = (garbler.1, evaluator.0);
    for (i, one) in table.chunks(2).enumerate() {
        for two in table[..2 * i].chunks(2) {
            for half in 0..2 {
                let sum = one[half] ^ two[half];
                assert!(sum != Block::ZERO && sum != delta);
            }
        }
    }
}

trait One {
    fn correlated_one(&mut self, session: &mut Session, out: &mut Vec<Block>) -> Result<(), Error>;
}

impl One for ot::CotReceiver {
    fn correlated_one(&mut self, session: &mut Session, out: &mut Vec<Block>) -> Result<(), Error> {
        ot::OtReceiver::correlated(self, session, &[1], 1, out)
    }
}

fn errors(cluster: &Cluster, work: impl Fn(&mut Session) -> Result<(), Error> + Sync) -> Vec<String> {
    cluster.run(work).into_iter().filter_map(|r| r.err().map(|e| e.to_string())).collect()
}

fn product(p: &mut WireParty<'_>, items: usize) -> Result<(), Error> {
    run(p, items, 8, |p, x, y| p.multiply(x, y)).map(drop)
}

#[test]
fn peers_that_do_not_fit_are_told() {
    let same = errors(&Cluster::new(2, 1), |s| WireParty::garbler(s).map(drop));
    assert!(
        same.iter().all(|e| e.contains("both parties took the same role")) && same.len() == 2,
        "{same:?}"
    );
    let other = errors(&Cluster::new(2, 1), |s| {
        if s.me() == PartyId(0) {
            return WireParty::garbler(s).map(drop);
        }
        s.step("wires-setup", |s| s.link(PartyId(0)).exchange(b"who goes", &mut [0; 8]))
    });
    assert!(other[0].contains("a greeting of another protocol or version"), "{other:?}");
    let three = errors(&Cluster::new(3, 1), |s| WireParty::garbler(s).map(drop));
    assert!(three[0].contains("exactly two parties"), "{three:?}");
    let program = errors(&Cluster::new(2, 1), |s| {
        let (mut p, gates) = match s.me() {
            PartyId(0) => (WireParty::garbler(s)?, 512),
            _ => (WireParty::evaluator(s)?, 500),
        };
        let x = vec![Block::ZERO; gates];
        let mut out = x.clone();
        p.and(&x, &x, &mut out)?;
        if p.role() == Role::Garbler {
            p.and(&x, &x, &mut out)?;
        }
        p.reveal(To::Both, &out[..8]).map(drop)
    });
    assert!(program.iter().any(|e| e.contains("called other operations")), "{program:?}");
    let few = errors(&Cluster::new(2, 1), |s| party(s)?.input(Role::Garbler, &[1], &mut [Block::ZERO; 65]));
    assert!(few[0].contains("64 input bits for 65 wires; give a bit per wire"), "{few:?}");
}

/// Programs that cost the same and mean something else.
#[test]
fn peers_whose_programs_differ_at_equal_cost_are_told() {
    let base: Program = |p, x, y| p.less_than(x, y);
    let others: [(&str, Program); 4] = [
        ("another operation", |p, x, y| p.add_wide(x, y, None)),
        ("swapped operands", |p, x, y| p.less_than(y, x)),
        ("another operand", |p, x, _| p.less_than(x, x)),
        ("a free operation more", |p, x, y| {
            let x = p.not_lanes(x);
            p.less_than(&x, y)
        }),
    ];
    let compared = |mine: Program, theirs: Program| {
        errors(&Cluster::new(2, 3), move |s| {
            let program = if s.me() == PartyId(0) { mine } else { theirs };
            let mut p = party(s)?;
            let x = input(&mut p, Role::Garbler, 70, 8)?;
            let y = input(&mut p, Role::Evaluator, 70, 8)?;
            let [x, y] = [x, y].map(|array| p.load(&array, 0..8, Items::range(0..70)));
            program(&mut p, &x, &y)?;
            p.agree()
        })
    };
    assert!(compared(base, base).is_empty());
    for (what, other) in others {
        let found = compared(base, other);
        assert!(found.iter().any(|e| e.contains("called other operations")), "{what}: {found:?}");
    }
    // Free as well, and public: a constant.
    let told = errors(&Cluster::new(2, 3), |s| {
        let mut p = party(s)?;
        let mut wires = vec![Block::ZERO; 64];
        p.constant(p.role() == Role::Garbler, &mut wires);
        p.reveal(To::Both, &wires).map(drop)
    });
    assert!(told.iter().any(|e| e.contains("called other operations")), "{told:?}");
}

#[test]
fn a_broken_or_altered_line_is_an_error() {
    let quick = || Cluster::new(2, 5).deadline(std::time::Duration::from_secs(2));
    for (party, step) in [(0, "wires-setup"), (1, "wires-setup"), (0, "")] {
        for fault in [InjectedFault::Cut, InjectedFault::Truncate] {
            let cluster = quick().fault(PartyId(party), step, fault);
            let found = errors(&cluster, |s| product(&mut self::party(s)?, 70));
            assert!(!found.is_empty(), "{party} {step} {fault:?}");
        }
    }
    // A base OT element that is no point of the group: the greeting is 8 bytes, the encoding's top bit must
    // be clear.
    let element = InjectedFault::Corrupt { byte: 8 + 31, mask: 0x80 };
    let found =
        errors(&quick().fault(PartyId(0), "wires-setup", element), |s| product(&mut self::party(s)?, 70));
    assert!(found.iter().any(|e| e.contains("malformed")), "{found:?}");
}

//! The arithmetic library: every operation against ordinary integers, in every setting, at its price.

mod support;

use accel::{Seat, VectorRing};
use base::{Error, Fault};
use net::Session;
use net::cluster::Cluster;
use net::faults::InjectedFault;
use ring4::{
    Division, Number, Planes, RoundQuote, STATISTICAL_BITS, SeatParty, Security, Settings, SharedVector,
    elements, pack,
};
use std::collections::BTreeMap;
use std::time::Duration;
use support::{SEATS, alone, enter, party, random, run, settings};

const WIDE: [VectorRing; 2] = [VectorRing::Z128, VectorRing::Z64];

fn mask(bits: u32) -> u128 {
    u128::MAX >> (128 - bits)
}

/// A number of so many bits as two's complement.
fn signed(x: u128, bits: u32) -> i128 {
    (x << (128 - bits)) as i128 >> (128 - bits)
}

/// The edges of a width, then random numbers, of all magnitudes in turn.
fn numbers(label: u64, len: usize, bits: u32) -> Vec<u128> {
    let top = 1 << (bits - 1);
    let edges = [0, 1, mask(bits), top, top - 1, 2, mask(bits) - 1, 3];
    let random = random(label, len);
    let any = |i: usize| match edges.get(i) {
        Some(edge) => edge & mask(bits),
        None => random[i].0 & mask(1 + (i as u32 * 7) % bits),
    };
    (0..len).map(any).collect()
}

/// One party under test: what is called on `p` is called on `q` too.
struct Seated<'a> {
    p: &'a mut SeatParty,
    s: &'a mut Session,
    q: RoundQuote,
}

impl Seated<'_> {
    fn show(&mut self, x: &SharedVector) -> Result<Vec<u128>, Error> {
        self.q.open(x.ring(), x.len());
        Ok(elements(x.ring(), x.len(), &self.p.open(self.s, x)?))
    }

    fn show_words(&mut self, words: &Planes) -> Result<Vec<u128>, Error> {
        let mut all = vec![0; words.len()];
        for (i, plane) in words.planes().iter().enumerate() {
            all.iter_mut().zip(self.show(plane)?).for_each(|(word, bit)| *word |= bit << i);
        }
        Ok(all)
    }

    /// Words entered bit by bit.
    fn enter_words(&mut self, width: u32, words: &[u128]) -> Result<Planes, Error> {
        let mut planes = Vec::new();
        for i in 0..width {
            let bits: Vec<u128> = words.iter().map(|word| word >> i & 1).collect();
            planes.push(self.enter(i as usize, VectorRing::Z2, &bits)?);
        }
        Planes::new(planes)
    }

    fn enter(&mut self, owner: usize, ring: VectorRing, values: &[u128]) -> Result<SharedVector, Error> {
        self.q.input(Seat::new(owner), ring, values.len());
        enter(self.p, self.s, owner % 4, (ring, values.len()), &pack(ring, values))
    }
}

type Results = Vec<Vec<u128>>;

/// Runs `work` at all seats: they get the same, and send what the price says, in as many rounds.
fn play(settings: Settings, work: impl Fn(&mut Seated<'_>) -> Result<Results, Error> + Sync) -> Results {
    let done = run(settings, |p, s| {
        let mut q = RoundQuote::new(settings, SEATS, 4);
        q.setup();
        let seat = p.seat().index();
        let mut seated = Seated { p, s, q };
        let results = work(&mut seated)?;
        let Seated { s, q, .. } = seated;
        assert_eq!(s.traffic().sent(""), q.total().sent[seat], "bytes of seat {seat}, {settings:?}");
        let mut turns = BTreeMap::<u8, u64>::new();
        s.traffic().entries().iter().for_each(|e| *turns.entry(e.peer.0).or_default() += e.turns);
        Ok((results, turns.into_values().max().unwrap_or(0), q.total().rounds))
    });
    let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
    assert_eq!(done.iter().map(|d| d.1).max().unwrap(), done[0].2, "rounds, {settings:?}");
    assert!(done.iter().all(|d| d.0 == done[0].0), "all seats see the same");
    let results = done.into_iter().next().unwrap().0;
    speculate(settings, work, &results);
    results
}

/// The same work at every seat without peers, twice, since what was done before is left out: results of the
/// same shape, and the price of the run.
fn speculate(
    settings: Settings,
    work: impl Fn(&mut Seated<'_>) -> Result<Results, Error>,
    results: &Results,
) {
    for seat in Seat::ALL {
        let (mut p, mut s) = (SeatParty::speculator(seat, settings), alone());
        let mut q = RoundQuote::new(settings, SEATS, 4);
        q.setup();
        for _ in 0..2 {
            let mut seated = Seated { p: &mut p, s: &mut s, q };
            let stubbed = work(&mut seated).expect("nobody is there who could fail");
            q = seated.q;
            let lengths = |results: &Results| results.iter().map(Vec::len).collect::<Vec<_>>();
            assert_eq!(lengths(&stubbed), lengths(results), "{settings:?}");
            let booked = p.booked().expect("it has no peers");
            assert_eq!(booked.total(), q.total(), "seat {seat:?}, {settings:?}");
            assert_eq!(booked.trips(), q.trips(), "seat {seat:?}, {settings:?}");
        }
    }
}

/// Every setting with one length, and several lengths with one setting.
fn cases() -> Vec<(Settings, usize)> {
    let all = settings();
    let masked = all[4];
    let lengths = [1, 2, 127, 260].map(|len| (masked, len));
    all.into_iter().map(|settings| (settings, 70)).chain(lengths).collect()
}

/// A setting that checks and masks, and one that does neither.
fn two() -> [Settings; 2] {
    let all = settings();
    [all[0], all[4]]
}

#[test]
fn random_bits_are_bits_and_doubly_shared_ones_agree() {
    for (settings, len) in cases() {
        for ring in WIDE {
            let got = play(settings, |t| {
                let bits = t.p.random_bits(t.s, ring, len)?;
                t.q.random_bits(ring, len);
                let (binary, wide) = t.p.dabits(t.s, ring, len)?;
                t.q.dabits(ring, len);
                Ok(vec![t.show(&bits)?, t.show(&binary)?, t.show(&wide)?])
            });
            assert!(got.iter().flatten().all(|&bit| bit < 2));
            assert_eq!(got[1], got[2]);
            if len > 100 {
                assert!(
                    got[..2]
                        .iter()
                        .all(|bits| (len / 4..3 * len / 4).contains(&(bits.iter().sum::<u128>() as usize)))
                );
                assert_ne!(got[0], got[1]);
            }
        }
    }
}

#[test]
fn words_are_added_compared_selected() {
    for (settings, len) in cases() {
        for width in [1, 2, 3, 8, 33] {
            let (a, mut b) = (numbers(1, len, width), numbers(2, len, width));
            b.rotate_left(len / 3);
            b[len - 1] = a[len - 1];
            let got = play(settings, |t| {
                let (x, y) = (t.enter_words(width, &a)?, t.enter_words(width, &b)?);
                let sum = t.p.add_words(t.s, &x, &y)?;
                t.q.add_words(len, width);
                let below = t.p.less_words(t.s, &x, &y, false)?;
                t.q.less_words(len, width);
                let signed_below = t.p.less_words(t.s, &x, &y, true)?;
                t.q.less_words(len, width);
                let equal = t.p.equal_words(t.s, &x, &y)?;
                t.q.equal_words(len, width);
                let chosen = t.p.select_words(t.s, &below, &x, &y)?;
                t.q.select_words(len, width);
                let public = Planes::public(t.p.seat(), width, &a);
                let mut all = vec![t.show_words(&sum)?];
                for plane in [&below, &signed_below, &equal] {
                    all.push(t.show(plane)?);
                }
                all.extend([t.show_words(&chosen)?, t.show_words(&public)?]);
                Ok(all)
            });
            for i in 0..len {
                let (x, y) = (a[i], b[i]);
                let wanted = [
                    x.wrapping_add(y) & mask(width),
                    (x < y).into(),
                    (signed(x, width) < signed(y, width)).into(),
                    (x == y).into(),
                    x.min(y),
                    x,
                ];
                let got: Vec<u128> = got.iter().map(|values| values[i]).collect();
                assert_eq!(got, wanted, "{width} bits: {x} and {y}");
            }
        }
    }
}

#[test]
fn elements_become_bits() {
    for (settings, len) in cases() {
        for ring in WIDE {
            let k = ring.bits();
            let x = numbers(3, len, k);
            for width in [1, 2, 3, 6, k - 1, k] {
                let got = play(settings, |t| {
                    let shared = t.enter(1, ring, &x)?;
                    let words = t.p.bits(t.s, &shared, width)?;
                    t.q.bits(ring, len, width);
                    let other = shared.clone();
                    let top = t.p.bit(t.s, &[&shared, &other], width - 1)?;
                    t.q.bit(len, 2, width - 1);
                    Ok(vec![t.show_words(&words)?, t.show(&top[0])?, t.show(&top[1])?])
                });
                assert_eq!(got[0], x.iter().map(|x| x & mask(width)).collect::<Vec<_>>());
                let top: Vec<u128> = x.iter().map(|x| x >> (width - 1) & 1).collect();
                assert!(got[1] == top && got[2] == top, "bit {}", width - 1);
            }
        }
    }
}

#[test]
fn bits_and_words_become_elements() {
    for (settings, len) in cases() {
        for ring in WIDE {
            let k = ring.bits();
            for width in [1, 3, 4, 5, 20, k] {
                let x = numbers(4, len, width);
                let got = play(settings, |t| {
                    let words = t.enter_words(width, &x)?;
                    let number = t.p.word_to_ring(t.s, ring, &words)?;
                    t.q.word_to_ring(ring, len, width);
                    let signed = t.p.signed_word_to_ring(t.s, ring, &words)?;
                    t.q.word_to_ring(ring, len, width);
                    let planes = words.planes();
                    let bits = t.p.bits_to_ring(t.s, ring, &[&planes[0], &planes[planes.len() - 1]])?;
                    t.q.bits_to_ring(ring, len, 2);
                    Ok(vec![t.show(&number)?, t.show(&signed)?, t.show(&bits[0])?, t.show(&bits[1])?])
                });
                for i in 0..len {
                    let wanted = [x[i], signed(x[i], width) as u128 & mask(k), x[i] & 1, x[i] >> (width - 1)];
                    assert_eq!([got[0][i], got[1][i], got[2][i], got[3][i]], wanted, "{width} bits over {k}");
                }
            }
        }
    }
}

#[test]
fn elements_are_compared_and_chosen() {
    for (settings, len) in cases() {
        for ring in WIDE {
            let k = ring.bits();
            for number in
                [1, 9, k - 1, k].into_iter().flat_map(|bits| [Number::signed(bits), Number::unsigned(bits)])
            {
                let bits = number.bits;
                let (a, mut b) = (numbers(5, len, bits), numbers(6, len, bits));
                b.rotate_left(len / 3);
                b[len - 1] = a[len - 1];
                let extend = |x: u128| if number.signed { signed(x, bits) as u128 } else { x } & mask(k);
                let [x, y] = [&a, &b].map(|v| v.iter().map(|&x| extend(x)).collect::<Vec<_>>());
                let got = play(settings, |t| {
                    let (x, y) = (t.enter(2, ring, &x)?, t.enter(3, ring, &y)?);
                    let below = t.p.less(t.s, &x, &y, number)?;
                    t.q.less(ring, len, number);
                    let equal = t.p.equal(t.s, &x, &y, bits)?;
                    t.q.equal(len, bits);
                    let (least, most) = t.p.min_max(t.s, &x, &y, number)?;
                    t.q.min_max(ring, len, number);
                    let number = t.p.bits_to_ring(t.s, ring, &[&below])?.remove(0);
                    t.q.bits_to_ring(ring, len, 1);
                    let chosen = t.p.select_by_bit(t.s, &equal, &x, &number)?;
                    t.q.select_by_bit(ring, len);
                    let mut all = Vec::new();
                    for shares in [&below, &equal, &least, &most, &chosen] {
                        all.push(t.show(shares)?);
                    }
                    Ok(all)
                });
                for i in 0..len {
                    let less =
                        if number.signed { signed(a[i], bits) < signed(b[i], bits) } else { a[i] < b[i] };
                    let (least, most) = if less { (x[i], y[i]) } else { (y[i], x[i]) };
                    let chosen = if x[i] == y[i] { x[i] } else { less.into() };
                    let wanted = [less.into(), (x[i] == y[i]).into(), least, most, chosen];
                    let got: Vec<u128> = got.iter().map(|values| values[i]).collect();
                    assert_eq!(got, wanted, "{number:?}: {} and {}", x[i], y[i]);
                }
            }
        }
    }
}

#[test]
fn truncation_rounds_as_it_says() {
    for (settings, len) in cases() {
        for ring in WIDE {
            let k = ring.bits();
            let masked = k.saturating_sub(STATISTICAL_BITS + 2);
            for (width, f) in
                [(k - 1, 1), (k - 1, k / 2 - 3), (k - 1, k - 2), (masked, 7), (5, masked - 1), (9, 0)]
            {
                let x = numbers(7, len, width);
                let extended: Vec<u128> = x.iter().map(|&x| signed(x, width) as u128 & mask(k)).collect();
                let got = play(settings, |t| {
                    let x = t.enter(0, ring, &extended)?;
                    let public = SharedVector::public(ring, len, t.p.seat(), &pack(ring, &extended));
                    let mut all = Vec::new();
                    for x in [x, public] {
                        let about = t.p.truncate(t.s, &x, width, f)?;
                        t.q.truncate(ring, len, width, f);
                        let exact = t.p.truncate_exact(t.s, &x, f)?;
                        t.q.truncate_exact(ring, len, f);
                        all.extend([t.show(&about)?, t.show(&exact)?]);
                    }
                    Ok(all)
                });
                for i in 0..len {
                    let down = signed(x[i], width) >> f;
                    for values in got.chunks(2) {
                        let off = signed(values[0][i], k) - down;
                        assert!((0..=i128::from(f > 0)).contains(&off), "{:x} / 2^{f} is off by {off}", x[i]);
                        assert_eq!(signed(values[1][i], k), down, "{:x} / 2^{f} rounded down", x[i]);
                    }
                }
            }
        }
    }
}

/// Rounding is up about as often as the fraction that is lost is large.
#[test]
fn truncation_is_right_on_average() {
    let len = 4000;
    for (ring, width) in [(VectorRing::Z128, 40), (VectorRing::Z64, 40)] {
        for fraction in [1, 4, 7] {
            let got = play(two()[0], |t| {
                let x = t.enter(0, ring, &vec![80 + fraction; len])?;
                let x = t.p.truncate(t.s, &x, width, 3)?;
                t.q.truncate(ring, len, width, 3);
                Ok(vec![t.show(&x)?])
            });
            let ups = got[0].iter().filter(|&&x| x == 11).count() as i64;
            let wanted = (len * fraction as usize / 8) as i64;
            // Six standard deviations of 4000 tosses are below 190.
            assert!((ups - wanted).abs() < 190, "{ups} of {wanted}");
        }
    }
}

#[test]
fn fixed_point_products_are_within_one_unit() {
    for (settings, len) in cases() {
        for (ring, width, f) in
            [(VectorRing::Z128, 80, 30), (VectorRing::Z128, 126, 60), (VectorRing::Z64, 62, 20)]
        {
            let half = width / 2;
            let [a, b] = [8, 9].map(|label| {
                let all = numbers(label, len, half);
                all.iter().map(|&x| signed(x, half)).collect::<Vec<_>>()
            });
            let enter = |x: &[i128]| x.iter().map(|&x| x as u128 & mask(ring.bits())).collect::<Vec<_>>();
            let got = play(settings, |t| {
                let (x, y) = (t.enter(0, ring, &enter(&a))?, t.enter(3, ring, &enter(&b))?);
                let product = t.p.multiply_fixed(t.s, (&x, &y), width + 1, f)?;
                t.q.multiply_fixed(ring, len, width + 1, f);
                Ok(vec![t.show(&product)?])
            });
            for i in 0..len {
                let off = signed(got[0][i], ring.bits()) - ((a[i] * b[i]) >> f);
                assert!((0..=1).contains(&off), "{} {} is off by {off}", a[i], b[i]);
            }
        }
    }
}

#[test]
fn integer_quotients_are_exact() {
    for (ring, width) in [
        (VectorRing::Z64, 1),
        (VectorRing::Z64, 8),
        (VectorRing::Z64, 22),
        (VectorRing::Z64, 23),
        (VectorRing::Z64, 32),
    ]
    .into_iter()
    .chain([
        (VectorRing::Z128, 16),
        (VectorRing::Z128, 54),
        (VectorRing::Z128, 55),
        (VectorRing::Z128, 64),
    ]) {
        for (settings, len) in two().map(|settings| (settings, 500)).into_iter().chain([(settings()[2], 3)]) {
            let (mut a, mut b) = (numbers(10, len, width), numbers(11, len, width));
            // Divisors that fit exactly, almost, and edges against edges.
            for i in 8..len / 3 {
                b[i] = b[i].max(1);
                let rest = [0, b[i] - 1, 1 % b[i]][i % 3];
                a[i] = ((a[i] / b[i]) * b[i] + rest).min(mask(width));
            }
            let edges = b[..8.min(len)].to_vec();
            for (i, &divisor) in edges.iter().cycle().take(64.min(len / 3)).enumerate() {
                (a[len - 1 - i], b[len - 1 - i]) = (edges[i / 8], divisor);
            }
            let got = play(settings, |t| {
                let (x, y) = (t.enter(0, ring, &a)?, t.enter(1, ring, &b)?);
                let quotient = t.p.divide(t.s, (&x, &y), width)?;
                t.q.divide(ring, len, width)?;
                Ok(vec![t.show(&quotient)?])
            });
            for i in 0..len {
                let wanted = a[i].checked_div(b[i]).unwrap_or(mask(width));
                assert_eq!(got[0][i], wanted, "{} / {} of {width} bits over {}", a[i], b[i], ring.bits());
            }
        }
    }
}

/// Against exact rationals: |q b - a 2^f| <= b (1 + 2^(f - g - 1)) + a 2^f 2^(5 - P).
#[test]
fn fixed_point_quotients_are_within_their_bound() {
    for (ring, width, f) in [
        (VectorRing::Z64, 20, 10),
        (VectorRing::Z64, 24, 4),
        (VectorRing::Z128, 40, 16),
        (VectorRing::Z128, 30, 30),
    ] {
        let division = Division::new(ring, width, f).unwrap();
        for settings in two() {
            let len = 500;
            let magnitudes = numbers(12, len, width);
            let divisors: Vec<u128> = numbers(13, len, width).iter().map(|&b| b.max(1)).collect();
            let dividends: Vec<i128> = magnitudes
                .iter()
                .enumerate()
                .map(|(i, &a)| if i % 3 == 0 { -(a as i128) } else { a as i128 })
                .collect();
            let entered: Vec<u128> = dividends.iter().map(|&a| a as u128 & mask(ring.bits())).collect();
            let got = play(settings, |t| {
                let (x, y) = (t.enter(2, ring, &entered)?, t.enter(0, ring, &divisors)?);
                let quotient = t.p.divide_fixed(t.s, (&x, &y), width, f)?;
                t.q.divide_fixed(ring, len, width, f)?;
                Ok(vec![t.show(&quotient)?])
            });
            for i in 0..len {
                let b = divisors[i] as i128;
                let off = (signed(got[0][i], ring.bits()) * b - (dividends[i] << f)).unsigned_abs();
                // All of it times 2^P, so that nothing is rounded.
                let guard = f as i32 - division.guard - 1;
                let unit =
                    (1u128 << division.precision) + (1u128 << (division.precision as i32 + guard).max(0));
                let bound = b as u128 * unit + ((magnitudes[i] << f) << 5);
                let small = off.leading_zeros() > division.precision;
                assert!(
                    small && off << division.precision <= bound,
                    "{} / {b}: off by {off} / {b}",
                    dividends[i]
                );
            }
        }
    }
}

#[test]
fn roots_are_exact() {
    for (ring, width) in [
        (VectorRing::Z64, 1),
        (VectorRing::Z64, 2),
        (VectorRing::Z64, 9),
        (VectorRing::Z64, 32),
        (VectorRing::Z64, 40),
    ]
    .into_iter()
    .chain([(VectorRing::Z128, 64), (VectorRing::Z128, 104)])
    {
        for (settings, len) in two().map(|settings| (settings, 400)).into_iter().chain([(settings()[2], 2)]) {
            let mut x = numbers(14, len, width);
            // Squares, and what is one less or more.
            for i in 8..len {
                let root = x[i].isqrt();
                x[i] =
                    [x[i], root * root, (root * root).saturating_sub(1), (root * root + 1).min(mask(width))]
                        [i % 4];
            }
            let f = (width / 4).min(7);
            let got = play(settings, |t| {
                let shared = t.enter(3, ring, &x)?;
                let root = t.p.root(t.s, &shared, width)?;
                t.q.root(ring, len, width)?;
                let narrow: Vec<u128> = x.iter().map(|x| x >> f).collect();
                let narrow = t.enter(1, ring, &narrow)?;
                let fixed = t.p.root_fixed(t.s, &narrow, width - f, f)?;
                t.q.root_fixed(ring, len, width - f, f)?;
                Ok(vec![t.show(&root)?, t.show(&fixed)?])
            });
            for i in 0..len {
                assert_eq!(got[0][i], x[i].isqrt(), "root of {} of {width} bits", x[i]);
                assert_eq!(got[1][i], (x[i] >> f << f).isqrt(), "root of {} / 2^{f}", x[i] >> f);
            }
        }
    }
}

/// What the headers say: whole blocks, semi-honest, all parties together, and trips.
#[test]
fn prices_are_those_of_the_headers() {
    let price = |work: &dyn Fn(&mut RoundQuote)| {
        let mut q = RoundQuote::new(settings()[0], SEATS, 4);
        work(&mut q);
        (q.total().sent.iter().sum::<u64>(), q.trips())
    };
    let len = 1280;
    let element = 16 * len as u64;
    let bit = len as u64 / 8;
    let ring = VectorRing::Z128;
    assert_eq!(price(&|q| q.random_bits(ring, len)), (6 * element, 2));
    assert_eq!(price(&|q| q.dabits(ring, len)), (6 * element, 2));
    assert_eq!(price(&|q| q.ands(len, 5)), (30 * bit, 1));
    assert_eq!(price(&|q| q.bits_to_ring(ring, len, 1)), (6 * element, 2));
    assert_eq!(price(&|q| q.word_to_ring(ring, len, 4)), (12 * element, 2));
    assert_eq!(price(&|q| q.truncate(ring, len, 80, 20)), (4 * element, 2));
    assert_eq!(price(&|q| q.truncate(ring, len, 100, 20)), (5 * element, 2));
    assert_eq!(price(&|q| q.truncate(ring, len, 100, 65)), (8 * element, 2));
    assert_eq!(price(&|q| q.truncate(VectorRing::Z64, len, 40, 20)), (4 * element, 2));
    assert_eq!(price(&|q| q.multiply_fixed(ring, len, 80, 20)), (10 * element, 3));
    assert_eq!(price(&|q| q.select_words(len, 64)), (6 * 64 * bit, 1));
    assert_eq!(price(&|q| q.select_by_bit(ring, len)), (12 * element, 3));
    let (all_bits, trips) = price(&|q| q.bits(ring, len, 64));
    assert!(
        (18 * 64..20 * 64).contains(&(all_bits / bit)) && trips == 2 * 6 - 1,
        "{} bits, {trips}",
        all_bits / bit
    );
    let (one_bit, trips) = price(&|q| q.bit(len, 1, 63));
    assert!(
        (10 * 63..12 * 63).contains(&(one_bit / bit)) && trips == 2 + 5,
        "{} bits, {trips}",
        one_bit / bit
    );
    let (equal, trips) = price(&|q| q.equal(len, 64));
    assert_eq!((equal, trips), ((2 * 64 + 6 * 63) * bit, 1 + 6));
    let (wide, _) = price(&|q| q.word_to_ring(ring, len, 64));
    assert_eq!(price(&|q| q.divide(ring, len, 64).unwrap()), (31_840 * bit, 98));
    assert_eq!(price(&|q| q.divide(VectorRing::Z64, len, 32).unwrap()), (16_846 * bit, 85));
    assert_eq!(price(&|q| q.root(ring, len, 64).unwrap()), (33_154 * bit, 103));
    assert_eq!(price(&|q| q.root(VectorRing::Z64, len, 32).unwrap()), (18_400 * bit, 87));
    assert!(wide < 8 * element + 26 * 64 * bit, "{} bits", (wide - 8 * element) / bit);
}

#[test]
fn what_does_not_fit_is_refused_before_a_byte() {
    let done = run(settings()[0], |p, s| {
        let before = s.traffic().sent("");
        let x = SharedVector::zero(VectorRing::Z64, 3);
        let bit = SharedVector::zero(VectorRing::Z2, 3);
        let refused = [
            p.bits(s, &x, 65).err(),
            p.bits(s, &x, 0).err(),
            p.bits(s, &bit, 1).err(),
            p.bit(s, &[&x], 64).err(),
            p.less(s, &x, &SharedVector::zero(VectorRing::Z64, 4), Number::signed(9)).err(),
            p.less(s, &x, &x, Number::signed(65)).err(),
            p.equal(s, &x, &x, 65).err(),
            p.bits_to_ring(s, VectorRing::Z2, &[&bit]).err(),
            p.ands(s, &[(&x, &x)]).err(),
            p.truncate(s, &x, 64, 3).err(),
            p.truncate_exact(s, &x, 63).err(),
            p.divide(s, (&x, &x), 33).err(),
            p.divide_fixed(s, (&x, &x), 30, 40).err(),
            p.root(s, &x, 41).err(),
            p.root_fixed(s, &x, 20, 30).err(),
            Planes::<SharedVector>::new(vec![]).err(),
            Planes::new(vec![x.clone()]).err(),
        ];
        assert_eq!(s.traffic().sent(""), before);
        Ok(refused.map(|error| error.map(|e| matches!(e.kind(), Fault::Misuse(_)))))
    });
    for done in done {
        assert!(done.unwrap().iter().all(|refused| *refused == Some(true)));
    }
}

/// One changed byte, at any seat, anywhere in a division: nobody gets another quotient, and somebody says who
/// it was.
#[test]
fn a_changed_byte_in_a_division_is_noticed() {
    let malicious = settings().into_iter().filter(|s| s.security == Security::Malicious);
    for settings in malicious {
        for (i, who) in SEATS.into_iter().enumerate() {
            let fault = InjectedFault::Corrupt { byte: [0, 300, 2000, 5000][i], mask: 1 };
            let cluster = Cluster::new(4, 6).deadline(Duration::from_secs(30));
            let ended = cluster.fault(who, "divide", fault).run(|s| {
                let mut p = party(s, settings)?;
                let x = enter(&mut p, s, 0, (VectorRing::Z64, 9), &pack(VectorRing::Z64, &[1000; 9]))?;
                s.step("divide", |s| p.divide(s, (&x, &x), 16))
            });
            let errors: Vec<_> = ended.iter().filter_map(|end| end.as_ref().err()).collect();
            let noticed = errors.iter().find(|e| matches!(e.kind(), Fault::Deviated(_)));
            let noticed = noticed.unwrap_or_else(|| panic!("{who} was not noticed: {errors:?}"));
            assert!(
                noticed.at().peer.as_ref().is_some_and(|peer| peer.contains(&format!("p{}", who.0))),
                "{noticed}"
            );
            assert_eq!(errors.len(), 4, "nobody ends with a quotient");
        }
    }
}

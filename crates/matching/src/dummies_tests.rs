use super::*;
use crate::FlatIdentifiers;
use net::cluster::Cluster;
use release::rational::to_f64;
use std::collections::{BTreeMap, BTreeSet};

fn seed(n: u8) -> Seed {
    Seed::from_bytes([n; 32])
}

fn dummies(epsilon: (u32, u32), delta: (u32, u32), n: u8) -> Dummies {
    Dummies::new(&ratio(epsilon.0, epsilon.1), &ratio(delta.0, delta.1), &seed(n)).unwrap()
}

/// The law of one secret size, from its definition.
fn law(dummies: &Dummies) -> Vec<f64> {
    let (epsilon, s) = (to_f64(&dummies.epsilon), dummies.centre as i64);
    let weight: Vec<f64> = (-s..=s).map(|x| (-epsilon * x.abs() as f64).exp()).collect();
    let total: f64 = weight.iter().sum();
    weight.into_iter().map(|w| w / total).collect()
}

type View = BTreeMap<(i64, i64), f64>;

/// The law of what a peer sees of a party with `n` rows, `shared` of which match: sizes of the list and of
/// the intersection, after taking off what is public or the peer's own.
fn view(dummies: &Dummies, n: i64, shared: i64) -> View {
    let law = law(dummies);
    let mut view = View::new();
    for (z, p) in law.iter().enumerate() {
        for (w, q) in law.iter().enumerate() {
            *view.entry((n + z as i64 + w as i64, shared + z as i64)).or_default() += p * q;
        }
    }
    view
}

/// The least delta for which `(epsilon, delta)` holds of `a` against `b`: the hockey-stick divergence.
fn excess(a: &View, b: &View, epsilon: f64) -> f64 {
    let over = |(at, p): (&(i64, i64), &f64)| (p - epsilon.exp() * b.get(at).unwrap_or(&0.0)).max(0.0);
    a.iter().map(over).sum()
}

/// Renyi divergence of order `alpha` of `a` against `b`, both given that they lie where the other one can be.
fn renyi(a: &View, b: &View, alpha: f64) -> f64 {
    let common: Vec<(f64, f64)> = a.iter().filter_map(|(at, p)| Some((*p, *b.get(at)?))).collect();
    let (of_a, of_b): (f64, f64) = common.iter().fold((0.0, 0.0), |sum, (p, q)| (sum.0 + p, sum.1 + q));
    let sum: f64 = common.iter().map(|(p, q)| p / of_a * (p / of_a * of_b / q).powf(alpha - 1.0)).sum();
    sum.ln() / (alpha - 1.0)
}

#[test]
fn what_a_peer_sees_of_neighbours_is_as_close_as_the_charge_says() {
    for (epsilon, delta) in [((1, 2), (1, 100)), ((1, 5), (1, 20)), ((1, 1), (1, 10_000))] {
        let dummies = dummies(epsilon, delta, 1);
        let (charge, single) = (dummies.charge(ShownSizes::Intersection, 1), to_f64(&dummies.epsilon));
        let [worst, bound, rho] = [&charge.epsilon, &charge.delta, &charge.rho].map(to_f64);
        assert!(bound <= to_f64(&dummies.delta) && worst == 2.0 * single);
        let before = view(&dummies, 100, 40);
        // A row is added that matches, or not; one becomes another, with its match or not.
        for (n, shared, step) in [(101, 41, 1.0), (101, 40, 1.0), (100, 41, 2.0), (100, 40, 0.0)] {
            let after = view(&dummies, n, shared);
            for (a, b) in [(&before, &after), (&after, &before)] {
                let excess = excess(a, b, step * single);
                assert!(excess <= bound * step / 2.0 + 1e-12, "{n} {shared}: {excess} > {bound}");
                // Truncation costs something, and the bound is what it costs.
                assert!(step == 0.0 || excess > 0.99 * (1.0 - (1.0 - bound / 2.0).powf(step)), "{excess}");
                for alpha in [1.5, 2.0, 8.0, 64.0] {
                    assert!(renyi(a, b, alpha) <= rho * alpha + 1e-12, "{n} {shared} {alpha}");
                }
            }
        }
    }
}

#[test]
fn without_rows_that_nobody_has_an_unmatched_row_shows() {
    // The two sizes with z alone: their difference is n - I, exactly.
    let law = law(&dummies((1, 5), (1, 20), 1));
    let view = |n: i64, shared: i64| -> View {
        law.iter().enumerate().map(|(z, p)| ((n + z as i64, shared + z as i64), *p)).collect()
    };
    assert!((excess(&view(100, 40), &view(101, 40), 5.0) - 1.0).abs() < 1e-9);
}

#[test]
fn rows_of_several_keys_are_charged_for_the_pairs_that_they_change() {
    let dummies = dummies((1, 4), (1, 100), 1);
    let (charge, keys) = (dummies.charge(ShownSizes::Intersection, 3), 3);
    let before = view(&dummies, 100, 40);
    for shared in 40 - keys..=40 + keys {
        let after = view(&dummies, 100, shared);
        assert!(excess(&before, &after, to_f64(&charge.epsilon)) <= to_f64(&charge.delta));
        assert!(renyi(&before, &after, 3.0) <= 3.0 * to_f64(&charge.rho) + 1e-12);
    }
    assert_eq!(charge.epsilon, ratio(6, 4));
    assert_eq!(charge.rho, ratio(9, 16));
    let rows = dummies.charge(ShownSizes::Rows, 3);
    assert_eq!((rows.epsilon, rows.rho), (ratio(1, 4), ratio(1, 32)));
}

#[test]
fn the_centre_is_the_least_that_keeps_delta() {
    for (epsilon, delta) in [((1u32, 10u32), 1e-9), ((1, 2), 1e-6), ((3, 1), 0.3), ((1, 100), 1e-12)] {
        let asked = ratio(1u64, (1.0 / delta) as u64);
        let dummies = Dummies::new(&ratio(epsilon.0, epsilon.1), &asked, &seed(1)).unwrap();
        let g = (f64::from(epsilon.0) / f64::from(epsilon.1)).exp();
        let delta_of = |s: i32| 2.0 / (g.powi(s) + 2.0 * (g.powi(s) - 1.0) / (g - 1.0));
        let s = dummies.centre() as i32;
        let asked = to_f64(&asked);
        assert!(delta_of(s) <= asked && (s == 0 || delta_of(s - 1) > asked), "{epsilon:?} {s}");
        let stated = to_f64(&dummies.charge(ShownSizes::Intersection, 1).delta);
        assert!((stated / delta_of(s) - 1.0).abs() < 1e-9, "{stated}");
        assert!(dummies.charge(ShownSizes::Intersection, 1).delta <= dummies.delta);
    }
    assert_eq!(Dummies::usual(&seed(1)).centre(), 185);
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    let error = |epsilon, delta| Dummies::new(&epsilon, &delta, &seed(1)).unwrap_err().to_string();
    assert!(error(ratio(0, 1), ratio(1, 10)).starts_with("epsilon"));
    assert!(error(ratio(11, 1), ratio(1, 10)).starts_with("epsilon"));
    assert!(error(ratio(1, 1), ratio(1, 1)).starts_with("delta"));
    assert!(error(ratio(1, 1), ratio(0, 1)).starts_with("delta"));
    assert!(error(ratio(1, 10_000_000), ratio(1, 1_000_000_000)).contains("more than a million rows"));
}

#[test]
fn sizes_have_their_law() {
    let dummies = dummies((1, 2), (1, 100), 3);
    let law = law(&dummies);
    let draws = 20_000;
    let mut seen = vec![0u32; law.len()];
    let mut rng = seed(4).into_rng();
    (0..draws).for_each(|_| seen[dummies.size(&mut rng) as usize] += 1);
    let chi2: f64 = law
        .iter()
        .zip(&seen)
        .map(|(p, n)| (f64::from(*n) - p * f64::from(draws)).powi(2) / (p * f64::from(draws)))
        .sum();
    let freedom = law.len() as f64 - 1.0;
    assert!(chi2 < freedom + 5.0 * (2.0 * freedom).sqrt(), "{chi2} of {freedom}");
}

/// All names of a padded column with their domains, dummies first to last.
fn names(padded: &PaddedIdentifiers<'_>) -> Vec<(u8, Vec<u8>)> {
    let read = |row| {
        let mut name = Vec::new();
        padded.read(row, 0, &mut name).unwrap();
        (padded.domain(row) as u8, name)
    };
    (0..padded.rows() as u32).map(read).collect()
}

/// How many names exactly the parties of each set have, at the index of the set's bits.
fn cells(sets: &[BTreeSet<(u8, Vec<u8>)>]) -> Vec<i64> {
    let mut cells = vec![0; 1 << sets.len()];
    for name in sets.iter().flatten().collect::<BTreeSet<_>>() {
        cells[(0..sets.len()).filter(|&i| sets[i].contains(name)).map(|i| 1 << i).sum::<usize>()] += 1;
    }
    cells
}

/// A party's secret sizes: `z` by set of others, and at 0 `w`.
type Noise = BTreeMap<usize, i64>;

/// The sets of others that party `i` of `n` has a list for, and the empty one.
fn sets_of_others(i: usize, n: usize) -> Vec<usize> {
    (0..1 << n).filter(|set| set >> i & 1 == 0).collect()
}

/// What all parties' dummies add to the cells, from the page's words.
fn added(noises: &[Noise], s: i64) -> Vec<i64> {
    let mut cells = vec![0; 1 << noises.len()];
    for (i, noise) in noises.iter().enumerate() {
        for (&set, &size) in noise {
            cells[set | 1 << i] += size;
            cells[set] += 2 * s - size;
        }
    }
    cells[0] = 0;
    cells
}

#[test]
fn lists_meet_and_fillers_do_not() {
    let (bytes, ends) = (b"annabert".to_vec(), [4, 8]);
    let own = FlatIdentifiers::new(&bytes, &ends).unwrap();
    for parties in [2, 3, 4] {
        let dummies: Vec<_> = (0..parties).map(|i| dummies((1, 2), (1, 100), i as u8)).collect();
        let plans: Vec<_> = (0..parties)
            .map(|i| {
                DummyPlan::new(PartyId(i as u8), parties, &dummies[i], ShownSizes::Intersection).unwrap()
            })
            .collect();
        let sets: Vec<BTreeSet<_>> = plans
            .iter()
            .map(|plan| {
                let padded = PaddedIdentifiers::new(&own, Some(plan));
                let names = names(&padded);
                let set: BTreeSet<_> = names.iter().cloned().collect();
                assert_eq!(set.len(), names.len(), "a name occurs twice");
                assert_eq!((padded.real_rows(), &names[0].1[..]), (2, &b"anna"[..]));
                assert_eq!(names.len() as u64, 2 + plan.rows());
                assert_eq!(
                    names.iter().filter(|n| n.0 == NameDomain::Filler as u8).count(),
                    plan.fillers.len()
                );
                let mut rest = vec![1];
                padded.read(2, 1, &mut rest).unwrap();
                assert!(rest.is_empty(), "a dummy row has one name");
                set
            })
            .collect();
        // Every cell is what the construction says, so the laws below are those of the rows that are
        // inserted.
        let noise = |(i, plan): (usize, &DummyPlan)| -> Noise {
            let z = |set: usize| plan.own.iter().filter(|(list, _)| usize::from(list.holders) == set).count();
            let size = |set| if set == 0 { plan.fillers.len() } else { z(set) };
            sets_of_others(i, parties).into_iter().map(|set| (set, size(set) as i64)).collect()
        };
        let noises: Vec<Noise> = plans.iter().enumerate().map(noise).collect();
        let mut expected = added(&noises, dummies[0].centre() as i64);
        expected[(1 << parties) - 1] += 2;
        assert_eq!(cells(&sets), expected);
        let range = dummies[0].rows_range(ShownSizes::Intersection, parties);
        assert!(plans.iter().all(|p| (range[0]..=range[1]).contains(&p.rows())));
        assert_eq!(range[0] + range[1], (2 * parties as u64 * dummies[0].centre()) << (parties - 1));
    }
    let many =
        DummyPlan::new(PartyId(0), PARTIES_MAX + 1, &dummies((1, 2), (1, 100), 1), ShownSizes::Intersection);
    let text = "dummies hide overlaps among at most 6 parties, here are 7: set dummies = \"off\"";
    assert_eq!(many.err().unwrap().to_string(), text);
}

/// The law of all cells among three parties as party 0 sees them, its own noise taken off: `real` rows in
/// each cell, and what the two other parties insert.
fn law_of_cells(dummies: &Dummies, real: &[i64; 8]) -> BTreeMap<Vec<i64>, f64> {
    let (law, s) = (law(dummies), dummies.centre as i64);
    let mut laws = BTreeMap::from([(real.to_vec(), 1.0)]);
    for i in [1, 2] {
        for set in sets_of_others(i, 3) {
            let mut next: BTreeMap<Vec<i64>, f64> = BTreeMap::new();
            for (cells, p) in &laws {
                for (size, q) in (0..).zip(&law) {
                    let mut noises = vec![Noise::new(); 3];
                    noises[i].insert(set, size);
                    let cells = cells.iter().zip(added(&noises, s)).map(|(a, b)| a + b).collect();
                    *next.entry(cells).or_default() += p * q;
                }
            }
            laws = next;
        }
    }
    laws
}

#[test]
fn what_party_0_sees_of_three_is_as_close_as_the_charge_says() {
    let dummies = dummies((1, 2), (3, 5), 1);
    assert_eq!(dummies.centre(), 1, "small enough for an exact law");
    let charge = dummies.charge(ShownSizes::Intersection, 1);
    let (single, bound) = (to_f64(&dummies.epsilon), to_f64(&charge.delta));
    let real = [0, 5, 6, 7, 8, 9, 10, 11];
    let before = law_of_cells(&dummies, &real);
    // One row of party 1 comes, goes or is replaced, by who else has it.
    for gone in [None, Some(0), Some(0b001), Some(0b100), Some(0b101)] {
        for come in [None, Some(0), Some(0b001), Some(0b100), Some(0b101)] {
            let (mut cells, steps) = (real, f64::from(u8::from(gone.is_some()) + u8::from(come.is_some())));
            for (set, sign) in [(gone, -1), (come, 1)] {
                let Some(set) = set else { continue };
                let set: usize = set;
                cells[set | 0b010] += sign;
                // Without it the others have the identifier by themselves.
                cells[set] -= if set == 0 { 0 } else { sign };
            }
            let after = law_of_cells(&dummies, &cells);
            for (a, b) in [(&before, &after), (&after, &before)] {
                let over = |(at, p): (&Vec<i64>, &f64)| {
                    (p - (single * steps).exp() * b.get(at).unwrap_or(&0.0)).max(0.0)
                };
                let excess: f64 = a.iter().map(over).sum();
                assert!(excess <= bound * steps / 2.0 + 1e-12, "{gone:?} {come:?}: {excess}");
                // What it costs where anything changes, and nothing where nothing does.
                assert_eq!(excess > 1e-9, gone != come, "{gone:?} {come:?}: {excess}");
            }
        }
    }
}

#[test]
fn where_no_intersection_shows_there_are_no_lists() {
    let dummies = dummies((1, 2), (1, 100), 5);
    let plan = DummyPlan::new(PartyId(1), 2, &dummies, ShownSizes::Rows).unwrap();
    assert_eq!((plan.rows(), plan.own.len()), (plan.fillers.len() as u64, 0));
    assert!(
        names(&PaddedIdentifiers::new(&FlatIdentifiers::new(&[], &[]).unwrap(), Some(&plan)))
            .iter()
            .all(|n| n.0 == 2)
    );
    assert!(plan.rows() <= dummies.rows_range(ShownSizes::Rows, 2)[1]);
}

#[test]
fn one_seed_draws_the_same_and_another_does_not() {
    let draw = |n| {
        let dummies = dummies((1, 2), (1, 100), n);
        let plan = DummyPlan::new(PartyId(0), 2, &dummies, ShownSizes::Intersection).unwrap();
        (plan.own.clone(), plan.fillers.clone())
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let shown = format!("{:?}", dummies((1, 2), (1, 100), 0x5a));
    assert_eq!(shown, "Dummies { epsilon: 1/2, delta: 1/100, centre: 8 }");
}

#[test]
fn parties_that_hide_sizes_otherwise_do_not_go_on() {
    let run = |of: [Option<Dummies>; 2]| {
        let done = Cluster::new(2, 1).run(|s| {
            let own = of[s.me().index()].as_ref();
            let (terms, peer) = (terms(own, ShownSizes::Intersection), s.me().other());
            s.step("dummies", |s| {
                s.link(peer).send(&terms)?;
                check_terms(&mut s.link(peer), &terms)
            })?;
            let plan = plan(s, own, ShownSizes::Intersection)?;
            let ledger = s.traffic();
            assert_eq!((ledger.sent("dummies"), ledger.turns("dummies")), (TERMS_BYTES, 1));
            Ok(plan.map_or(0, |p| p.rows()))
        });
        done.into_iter().map(|d| d.map_err(|e| e.to_string())).collect::<Vec<_>>()
    };
    let usual = || Some(Dummies::usual(&seed(1)));
    let error = "p0 at dummies with p1: the peer deviated from the protocol: \
                 it hides sizes with the same dummies as we do";
    assert_eq!(run([usual(), None])[0], Err(error.to_owned()));
    assert_eq!(run([usual(), Some(dummies((1, 10), (1, 1_000_000), 1))])[0], Err(error.to_owned()));
    assert!(run([usual(), usual()]).into_iter().all(|rows| rows.unwrap() > 370));
    assert_eq!(run([None, None]), [Ok(0), Ok(0)]);
}

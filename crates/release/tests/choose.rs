//! Seeded cut-and-choose: honest runs, every deviation, resumption, and the bytes on the wire.

use base::{Error, Fault, PartyId, Rng, Seed, limits};
use release::choose::*;
use release::gaussian::DiscreteGaussian;
use release::rational::ratio;

fn rng(seed: u8) -> Rng {
    Seed::from_bytes([seed; 32]).into_rng()
}

fn context() -> NoiseContext {
    NoiseContext {
        study: [1; 32],
        release: [2; 32],
        session: [3; 32],
        data: vec![[4; 32], [5; 32]],
        viewer: PartyId(1),
        drawer: PartyId(0),
    }
}

fn draws() -> Vec<Draw> {
    [ratio(17, 3), ratio(10_000, 1), ratio(1i64 << 40, 7)]
        .into_iter()
        .map(|sigma2| Draw { width: DiscreteGaussian::new(&sigma2).unwrap().width(), sigma2 })
        .collect()
}

fn setup(k: usize) -> Setup {
    Setup::new(context(), draws(), k).unwrap()
}

type Candidates = Vec<Vec<i128>>;

/// Both sides up to the named index, over one setup. `cheat` may change what is entered.
fn up_to_index(
    k: usize,
    seed: u8,
    cheat: impl Fn(&mut Candidates),
) -> (DrawerEntered, Candidates, CheckerWaiting) {
    let (drawer, commitments) = Drawer::commit(setup(k), &mut rng(seed));
    assert_eq!(commitments.len(), setup(k).commitments_bytes());
    let (checker, seeds) = Checker::new(setup(k), &commitments, &mut rng(seed ^ 0x80)).unwrap();
    assert_eq!(seeds.len(), setup(k).seeds_bytes());
    let drawn = drawer.draw(&seeds).unwrap();
    let mut entered: Candidates = drawn.candidates().iter().map(|c| c.expose().clone()).collect();
    cheat(&mut entered);
    let (drawer, checker) = (drawn.entered([9; 32]), checker.entered([9; 32]));
    assert_eq!(drawer.transcript().shared_digest(), checker.transcript().shared_digest());
    let chosen = checker.choose(Debited::committed(&setup(k), 7), &mut rng(seed ^ 0x40)).unwrap();
    (drawer, entered, chosen)
}

fn others(entered: &Candidates, index: usize) -> Candidates {
    entered.iter().enumerate().filter(|(j, _)| *j != index).map(|(_, c)| c.clone()).collect()
}

fn run(
    k: usize,
    seed: u8,
    cheat: impl Fn(&mut Candidates),
    tamper: impl Fn(&mut Vec<u8>),
) -> (usize, CheckerVerdict) {
    let (drawer, entered, chosen) = up_to_index(k, seed, cheat);
    let index = chosen.index();
    let named = drawer.named(Debited::committed(&setup(k), 3), &chosen.message()).unwrap();
    assert_eq!(named.index(), index);
    let (record, mut openings) = named.open();
    assert_eq!(openings.len(), setup(k).openings_bytes());
    assert_eq!(record.shared_digest(), chosen.transcript().shared_digest());
    tamper(&mut openings);
    (index, chosen.check(&openings, &others(&entered, index)).unwrap())
}

fn deviation(verdict: CheckerVerdict) -> Option<Deviation> {
    match verdict {
        CheckerVerdict::Accepted(_) => None,
        CheckerVerdict::Detected(detected) => {
            assert!(matches!(detected.error().kind(), Fault::Deviated(_)));
            assert_eq!(detected.transcript().outcome(), Some(TranscriptEnd::Detected(detected.deviation())));
            Some(detected.deviation())
        }
    }
}

#[test]
fn honest_noise_is_accepted_and_is_the_noise_of_the_law() {
    let mut z = Vec::new();
    for seed in 0..20 {
        let (index, verdict) = run(DEFAULT_CANDIDATES, seed, |_| (), |_| ());
        let CheckerVerdict::Accepted(accepted) = verdict else { panic!("a false alarm") };
        assert_eq!(accepted.index(), index);
        let (_, entered, _) = up_to_index(DEFAULT_CANDIDATES, seed, |_| ());
        z.extend(entered.iter().map(|noises| noises[1] as f64 / 100.0));
    }
    let count = z.len() as f64;
    let mean = z.iter().sum::<f64>() / count;
    let square = z.iter().map(|x| x * x).sum::<f64>() / count;
    assert!(mean.abs() * count.sqrt() < 4.0 && (square - 1.0).abs() * (count / 2.0).sqrt() < 4.0);
}

#[test]
fn a_changed_noise_is_named_unless_it_is_the_picked_one() {
    let (mut caught, mut picked) = (0, 0);
    for seed in 0..40 {
        let (index, verdict) = run(4, seed, |entered| entered[2][1] += 1, |_| ());
        match deviation(verdict) {
            Some(deviation) => {
                assert_eq!(deviation, Deviation::Noise { candidate: 2, draw: 1 });
                caught += 1;
            }
            None => {
                assert_eq!(index, 2);
                picked += 1;
            }
        }
    }
    // One in four on average; the seeds are fixed.
    assert!(caught > 20 && picked > 2, "{caught} {picked}");
}

#[test]
fn a_changed_opening_is_named() {
    for (byte, pair) in [(0, 0), (33, 0), (64 * 2 + 5, 2), (64 * 2 + 63, 2)] {
        let (index, verdict) = run(5, 11, |_| (), |openings| openings[byte] ^= 1);
        let candidate = if pair < index { pair } else { pair + 1 };
        assert_eq!(deviation(verdict), Some(Deviation::Opening { candidate }));
    }
    // Two openings exchanged: each is bound to its j.
    let (_, verdict) = run(5, 12, |_| (), |openings| openings.rotate_left(64));
    assert!(matches!(deviation(verdict), Some(Deviation::Opening { .. })));
    for tamper in [|o: &mut Vec<u8>| o.truncate(63), |o: &mut Vec<u8>| o.push(0), |o: &mut Vec<u8>| o.clear()]
    {
        assert_eq!(deviation(run(5, 13, |_| (), tamper).1), Some(Deviation::Silence));
    }
    let (_, _, chosen) = up_to_index(5, 14, |_| ());
    assert_eq!(chosen.silent().deviation(), Deviation::Silence);
}

#[test]
fn the_index_is_uniform() {
    let mut seen = [0; 4];
    for seed in 0..200 {
        seen[up_to_index(4, seed, |_| ()).2.index()] += 1;
    }
    assert!(seen.iter().all(|n| (25..=75).contains(n)), "{seen:?}");
}

#[test]
fn every_part_of_the_context_changes_the_noise_or_the_commitment() {
    let noises = |context: NoiseContext| {
        let setup = Setup::new(context, draws(), 2).unwrap();
        let (drawer, commitments) = Drawer::commit(setup.clone(), &mut rng(1));
        let drawn = drawer.draw(&[7; 64]).unwrap();
        let noises: Candidates = drawn.candidates().iter().map(|c| c.expose().clone()).collect();
        (noises, commitments)
    };
    let base = noises(context());
    assert_eq!(base.0, noises(context()).0);
    assert_ne!(base.0[0], base.0[1]);
    let changes: [fn(&mut NoiseContext); 5] = [
        |c| c.study[0] ^= 1,
        |c| c.release[31] ^= 1,
        |c| c.data[1][0] ^= 1,
        |c| c.data.push([0; 32]),
        |c| std::mem::swap(&mut c.viewer, &mut c.drawer),
    ];
    for change in changes {
        let mut other = context();
        change(&mut other);
        let other = noises(other);
        assert_ne!(base.0, other.0);
        assert_ne!(base.1, other.1);
    }
    let session = noises(NoiseContext { session: [8; 32], ..context() });
    assert_ne!(base.1, session.1);
}

/// The keys and the order of draws are part of the format.
#[test]
fn the_noise_of_a_seed_is_pinned() {
    let (drawer, commitments) = Drawer::commit(setup(2), &mut rng(1));
    let drawn = drawer.draw(&[7; 64]).unwrap();
    let noises: Candidates = drawn.candidates().iter().map(|c| c.expose().clone()).collect();
    let digest = blake3::hash(&commitments).to_hex();
    assert_eq!((&noises[..], digest.as_str()), (&PINNED.map(Vec::from)[..], PINNED_COMMITMENTS));
}
const PINNED: [[i128; 3]; 2] = [[0, -21, -599_069], [3, 106, 8878]];
const PINNED_COMMITMENTS: &str = "6d780f37b179b8e3cd2ada8da7249f923cb65db88519d97f3b593088f78e5d0b";

#[test]
fn a_debit_for_another_release_names_nothing() {
    let other = Setup::new(NoiseContext { release: [99; 32], ..context() }, draws(), 4).unwrap();
    let (_, commitments) = Drawer::commit(setup(4), &mut rng(1));
    let (checker, _) = Checker::new(setup(4), &commitments, &mut rng(2)).unwrap();
    let refused = checker.entered([0; 32]).choose(Debited::committed(&other, 1), &mut rng(3));
    assert!(matches!(refused.unwrap_err().kind(), Fault::Misuse(_)));
    let (drawer, _, chosen) = up_to_index(4, 1, |_| ());
    assert!(drawer.named(Debited::committed(&other, 1), &chosen.message()).is_err());
}

#[test]
fn messages_have_their_length() {
    let malformed = |error: Error| assert!(matches!(error.kind(), Fault::Malformed(_)), "{error}");
    for len in [0, 1, 127, 129, 160] {
        malformed(Checker::new(setup(4), &vec![0; len], &mut rng(1)).unwrap_err());
        malformed(Drawer::commit(setup(4), &mut rng(1)).0.draw(&vec![0; len]).unwrap_err());
    }
    for bad in [&[][..], &[0], &[0, 0, 0], &[4, 0], &[0, 1], &[255, 255]] {
        let (drawer, _, _) = up_to_index(4, 1, |_| ());
        malformed(drawer.named(Debited::committed(&setup(4), 1), bad).unwrap_err());
    }
    let (_, entered, chosen) = up_to_index(4, 1, |_| ());
    assert!(matches!(chosen.check(&[0; 192], &entered).unwrap_err().kind(), Fault::Misuse(_)));
}

fn stored(record: &Transcript) -> Transcript {
    serde_json::from_str(&serde_json::to_string(record).unwrap()).unwrap()
}

#[test]
fn a_crash_resumes_the_same_seeds_and_the_same_index() {
    let (drawer, commitments) = Drawer::commit(setup(4), &mut rng(1));
    let Resumed::Drawer(drawer) = resume(stored(drawer.transcript()), &setup(4)).unwrap() else { panic!() };
    assert_eq!(drawer.transcript().commitments(), commitments);
    let (checker, seeds) = Checker::new(setup(4), &commitments, &mut rng(2)).unwrap();
    let Resumed::Checker(checker) = resume(stored(checker.transcript()), &setup(4)).unwrap() else {
        panic!()
    };
    assert_eq!(checker.seeds(), seeds);
    let drawn = drawer.draw(&seeds).unwrap();
    let before: Candidates = drawn.candidates().iter().map(|c| c.expose().clone()).collect();
    let Resumed::Drawn(drawn) = resume(stored(drawn.transcript()), &setup(4)).unwrap() else { panic!() };
    let after: Candidates = drawn.candidates().iter().map(|c| c.expose().clone()).collect();
    assert_eq!(before, after);
    let entered = drawn.entered([9; 32]);
    let Resumed::DrawerEntered(entered) = resume(stored(entered.transcript()), &setup(4)).unwrap() else {
        panic!()
    };
    let checker = checker.entered([9; 32]);
    let Resumed::CheckerEntered(checker) = resume(stored(checker.transcript()), &setup(4)).unwrap() else {
        panic!()
    };
    let chosen = checker.choose(Debited::committed(&setup(4), 1), &mut rng(3)).unwrap();
    let index = chosen.index();
    let Resumed::Chosen(chosen) = resume(stored(chosen.transcript()), &setup(4)).unwrap() else { panic!() };
    assert_eq!(chosen.index(), index);
    let named = entered.named(Debited::committed(&setup(4), 1), &chosen.message()).unwrap();
    let Resumed::Named(named) = resume(stored(named.transcript()), &setup(4)).unwrap() else { panic!() };
    named.again(&chosen.message()).unwrap();
    let second = (chosen.index() as u16 + 1) % 4;
    assert!(matches!(named.again(&second.to_le_bytes()).unwrap_err().kind(), Fault::Deviated(_)));
    let (record, openings) = named.open();
    let Resumed::Named(again) = resume(stored(&record), &setup(4)).unwrap() else { panic!() };
    assert_eq!(again.open().1, openings);
    let CheckerVerdict::Accepted(accepted) = chosen.check(&openings, &others(&before, index)).unwrap() else {
        panic!()
    };
    assert!(matches!(
        resume(stored(accepted.transcript()), &setup(4)).unwrap(),
        Resumed::Accepted(a) if a.index() == index
    ));
}

#[test]
fn a_transcript_serves_nothing_else() {
    let refused = |record: &Transcript, setup: &Setup| resume(stored(record), setup).unwrap_err().to_string();
    let (drawer, _, chosen) = up_to_index(4, 1, |_| ());
    let other = |change: fn(&mut NoiseContext)| {
        let mut context = context();
        change(&mut context);
        Setup::new(context, draws(), 4).unwrap()
    };
    for record in [drawer.transcript(), chosen.transcript()] {
        assert!(refused(record, &other(|c| c.data[0] = [0; 32])).contains("other data"));
        assert!(refused(record, &other(|c| c.study = [0; 32])).contains("another study"));
        assert!(refused(record, &setup(5)).contains("another study"));
    }
    let text = serde_json::to_string(chosen.transcript()).unwrap();
    for (from, to) in [
        ("tacit-noise/1", "tacit-noise/2"),
        ("\"entered\":[9", "\"entered\":null,\"x\":[9"),
        ("\"ledger_entry\":7", "\"ledger_entry\":null"),
    ] {
        let damaged = text.replace(from, to);
        assert_ne!(damaged, text);
        assert!(resume(serde_json::from_str(&damaged).unwrap(), &setup(4)).is_err(), "{from}");
    }
    let detected = chosen.silent();
    assert!(refused(detected.transcript(), &setup(4)).contains("a later attempt has new noise"));
}

#[test]
fn secrets_do_not_print() {
    let (drawer, _) = Drawer::commit(setup(2), &mut rng(1));
    let text = format!("{drawer:?}");
    assert!(!text.contains("seed") && text.len() < 200, "{text}");
    let drawn = drawer.draw(&[7; 64]).unwrap();
    assert!(!format!("{drawn:?}").contains("candidates"));
}

#[test]
fn agreements_are_bounded() {
    let with = |k| Setup::new(context(), draws(), k);
    assert!(with(1).is_err() && with(2).is_ok() && with(limits::CANDIDATES).is_ok());
    assert!(matches!(with(limits::CANDIDATES + 1).unwrap_err().kind(), Fault::Limit { .. }));
    assert!(Setup::new(context(), vec![], 4).is_err());
    let draw = draws()[0].clone();
    assert!(Setup::new(context(), vec![draw.clone(); DRAWS], 2).is_ok());
    assert!(Setup::new(context(), vec![draw.clone(); DRAWS + 1], 2).is_err());
    assert!(Setup::new(context(), vec![Draw { width: draw.width - 1, ..draw }], 2).is_err());
    let same = NoiseContext { viewer: PartyId(0), ..context() };
    assert!(Setup::new(same, draws(), 4).is_err());
    let many = NoiseContext { data: vec![[0; 32]; limits::PARTIES + 1], ..context() };
    assert!(Setup::new(many, draws(), 4).is_err());
}

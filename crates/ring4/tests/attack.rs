//! A seat, or an owner together with a seat, that deviates anywhere: any byte of any message, messages cut
//! short, shares other than those it holds. Nobody honest gets a wrong result, nobody panics, nobody waits
//! for ever, and who accuses others accuses the one that deviated. Places and masks are drawn at random under
//! a seed that a failure prints.
//!
//! Bounded to 5 s and a last run; `TACIT_ATTACK_SECONDS=600` for a longer hunt, `TACIT_ATTACK_SEED` to repeat
//! one.

mod support;

use accel::{DeviceQueue, VectorRing};
use base::{Error, Fault, PartyId, Seed};
use kernels::Block;
use net::Session;
use net::cluster::Cluster;
use net::faults::InjectedFault;
use ring4::{
    DeviceShares, Member, Number, Planes, SeatParty, Security, Settings, SharedVector, TagHash, elements,
};
use std::time::{Duration, Instant};
use support::{SEATS, enter, party, random};

const STEPS: [&str; 15] = [
    "setup", "in0", "in1", "mul", "dot", "bits", "word", "less", "trunc", "texact", "rbits", "select",
    "confirm", "open", "device",
];

/// Without progress for this long, a party gives up: what is cut short ends so.
const DEADLINE: Duration = Duration::from_secs(3);

/// A run that takes longer hangs.
const HANGS: Duration = Duration::from_secs(60);

/// A share that a seat computes on in place of the one it holds.
#[derive(Clone, Copy, Debug)]
struct Bend {
    seat: usize,
    /// The step before which it does so, as an index of [`STEPS`].
    before: usize,
    part: usize,
    block: usize,
    bit: u32,
}

/// The steps before which a share is bent in [`work`].
const BENT: [usize; 9] = [3, 4, 5, 6, 7, 8, 9, 11, 13];

fn bend(bend: Option<Bend>, party: &SeatParty, before: usize, x: &mut SharedVector) {
    let Some(bend) = bend.filter(|bend| party.seat().index() == bend.seat && before == bend.before) else {
        return;
    };
    let block = bend.block % x.blocks();
    x.parts_mut()[bend.part][block].0 ^= 1 << bend.bit;
}

/// What operations on vectors with a device give that is right up to the last digit.
fn by_handle(
    p: &mut SeatParty,
    s: &mut Session,
    [x, y]: &[DeviceShares; 2],
) -> Result<[DeviceShares; 3], Error> {
    let product = p.dot_on_device(s, &[x], &[y])?;
    let low = p.bits(s, &product, 8)?;
    let low = p.word_to_ring(s, VectorRing::Z64, &low)?;
    let below = p.less(s, x, y, Number { bits: 41, signed: false })?;
    let below = p.bits_to_ring(s, VectorRing::Z64, &[&below])?.remove(0);
    p.truncate(s, y, 20, 3)?;
    Ok([product, low, p.truncate_exact(s, &below, 5)?])
}

/// Operations that depend on each other, conversions, comparisons and truncations among them, each at a step
/// of its own.
fn work(p: &mut SeatParty, s: &mut Session, bent: Option<Bend>) -> Result<Vec<u128>, Error> {
    let shape = (VectorRing::Z64, 10);
    let values =
        |a: u128, b: u128| (0..5).map(move |i| Block((i * a + 99) | ((i * b + 5) << 64))).collect::<Vec<_>>();
    let mut x = s.step("in0", |s| enter(p, s, 0, shape, &values(1_234_567, 7_654_321)))?;
    let y = s.step("in1", |s| enter(p, s, 1, shape, &values(31, 17)))?;
    bend(bent, p, 3, &mut x);
    let mut z = s.step("mul", |s| p.multiply(s, &x, &y))?;
    bend(bent, p, 4, &mut z);
    let kept = [p.keep(&z)?, p.keep(&y)?];
    for on_device in s.step("device", |s| by_handle(p, s, &kept))? {
        z.add(&p.fetch(&on_device)?)?;
    }
    let mut d = s.step("dot", |s| p.dot(s, &[&x, &z], &[&y, &y]))?;
    bend(bent, p, 5, &mut d);
    let bits = s.step("bits", |s| p.bits(s, &d, 40))?;
    let mut planes = bits.planes().to_vec();
    let middle = planes.len() / 2;
    bend(bent, p, 6, &mut planes[middle]);
    let bits = Planes::new(planes)?;
    let mut back = s.step("word", |s| p.word_to_ring(s, VectorRing::Z64, &bits))?;
    bend(bent, p, 7, &mut back);
    let mut below = s.step("less", |s| p.less(s, &back, &z, Number { bits: 41, signed: false }))?;
    bend(bent, p, 8, &mut back);
    // Its result is right up to the last digit only, so it is not opened.
    s.step("trunc", |s| p.truncate(s, &y, 20, 3))?;
    bend(bent, p, 9, &mut back);
    let exact = s.step("texact", |s| p.truncate_exact(s, &back, 5))?;
    let (bit, same) = s.step("rbits", |s| p.dabits(s, VectorRing::Z64, 10))?;
    bend(bent, p, 11, &mut below);
    let selected = s.step("select", |s| p.select_by_bit(s, &below, &back, &z))?;
    let converted = s.step("rbits", |s| p.bits_to_ring(s, VectorRing::Z64, &[&bit]))?;
    let mut sum = selected;
    sum.add(&exact)?;
    sum.add(&back)?;
    // A random bit, in the ring and converted, cancels out.
    sum.add(&same)?;
    sum.sub(&converted[0])?;
    s.step("confirm", |s| p.confirm(s))?;
    bend(bent, p, 13, &mut sum);
    let opened = s.step("open", |s| p.open(s, &sum))?;
    Ok(elements(VectorRing::Z64, 10, &opened))
}

type Planned = (PartyId, PartyId, &'static str, InjectedFault);

/// How one seat ended, and what it sent by step and peer.
struct Ended {
    result: Result<Vec<u128>, Error>,
    sent: Vec<[u64; 4]>,
}

fn play(settings: Settings, fault: Option<Planned>, bent: Option<Bend>) -> Vec<Ended> {
    let mut cluster = Cluster::new(4, 7).deadline(DEADLINE);
    if let Some((who, towards, step, fault)) = fault {
        cluster = cluster.fault_towards(who, towards, step, fault);
    }
    let start = Instant::now();
    let ended = cluster.run(|s| {
        let result = party(s, settings).and_then(|mut p| work(&mut p, s, bent));
        let under = |at: &str, step: &str| {
            at.strip_prefix(step).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let to = |step, peer| {
            let of = s.traffic().entries().iter().filter(move |e| e.peer == peer && under(&e.step, step));
            of.map(|e| e.sent).sum()
        };
        let sent = STEPS.map(|step| SEATS.map(|peer| to(step, peer))).to_vec();
        Ok(Ended { result, sent })
    });
    assert!(start.elapsed() < HANGS, "a run that hangs");
    ended
        .into_iter()
        .map(|e| e.unwrap_or_else(|error| Ended { result: Err(error), sent: Vec::new() }))
        .collect()
}

fn malicious() -> [Settings; 4] {
    [(TagHash::Keyed, false), (TagHash::Keyed, true), (TagHash::Blake3, false), (TagHash::Blake3, true)]
        .map(|(hash, masked)| Settings { security: Security::Malicious, hash, masked })
}

/// Draws points until the time is over; a failure says under which seed.
struct Hunt {
    rng: base::Rng,
    seed: u64,
    until: Instant,
    points: u32,
}

impl Hunt {
    fn new(label: &str) -> Self {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let seed = number("TACIT_ATTACK_SEED")
            .unwrap_or_else(|| u64::from_le_bytes(Seed::from_system().into_rng().bytes()));
        let seconds = number("TACIT_ATTACK_SECONDS").unwrap_or(5);
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = Seed::from_bytes(bytes).fork(label).into_rng();
        Self { rng, seed, until: Instant::now() + Duration::from_secs(seconds), points: 0 }
    }

    fn goes_on(&mut self) -> bool {
        self.points += 1;
        Instant::now() < self.until
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn mask(&mut self) -> u8 {
        1 << self.below(8)
    }
}

impl Drop for Hunt {
    fn drop(&mut self) {
        match std::thread::panicking() {
            true => eprintln!("to repeat: TACIT_ATTACK_SEED={} (point {})", self.seed, self.points),
            false => println!("{} points, seed {}", self.points, self.seed),
        }
    }
}

/// What must hold of an honest party's end, whatever `deviates` did: the right result or an error, and an
/// accusation that holds one of them.
fn judge<T: PartialEq + std::fmt::Debug>(
    label: &str,
    result: &Result<T, Error>,
    wanted: &T,
    deviates: &[PartyId],
) {
    match result {
        Ok(value) => assert_eq!(value, wanted, "{label}: a wrong result"),
        Err(error) if matches!(error.kind(), Fault::Deviated(_)) => {
            let told = error.accusation().unwrap_or_else(|| panic!("{label}: nobody is accused by {error}"));
            let guilty = deviates.iter().any(|party| told.accused.contains(&format!("p{}", party.0)));
            assert!(guilty, "{label}: {error} accuses {:?}", told.accused);
        }
        Err(_) => {}
    }
}

#[test]
fn any_byte_of_any_message() {
    let mut hunt = Hunt::new("any byte");
    let honest = malicious().map(|settings| play(settings, None, None));
    let wanted = honest[0][0].result.clone().unwrap();
    assert!(honest.iter().flatten().all(|end| end.result.as_ref() == Ok(&wanted)));
    while hunt.goes_on() {
        let (setting, who, to, step) = (hunt.below(4), hunt.below(4), hunt.below(4), hunt.below(STEPS.len()));
        let sent = honest[setting][who].sent[step][to];
        if sent == 0 {
            continue;
        }
        let (byte, mask) = (hunt.rng.below(sent), hunt.mask());
        // What is cut short ends at a deadline, so there are few of these.
        let fault =
            if hunt.below(40) == 0 { InjectedFault::Truncate } else { InjectedFault::Corrupt { byte, mask } };
        let ended = play(malicious()[setting], Some((SEATS[who], SEATS[to], STEPS[step], fault)), None);
        let label = format!("{:?}, {who} to {to} at {}, {fault:?}", malicious()[setting], STEPS[step]);
        let others = || ended.iter().enumerate().filter(|(seat, _)| *seat != who);
        others().for_each(|(_, end)| judge(&label, &end.result, &wanted, &[SEATS[who]]));
        assert!(others().any(|(_, end)| end.result.is_err()), "{label}: nobody noticed");
    }
}

#[test]
fn shares_that_a_seat_does_not_hold() {
    let mut hunt = Hunt::new("bent shares");
    let wanted = play(malicious()[0], None, None)[0].result.clone().unwrap();
    while hunt.goes_on() {
        let bent = Bend {
            seat: hunt.below(4),
            before: BENT[hunt.below(BENT.len())],
            part: hunt.below(3),
            block: hunt.below(5),
            bit: hunt.below(10) as u32,
        };
        let settings = malicious()[hunt.below(4)];
        let label = format!("{settings:?}, {bent:?}");
        for (seat, end) in
            play(settings, None, Some(bent)).iter().enumerate().filter(|(seat, _)| *seat != bent.seat)
        {
            judge(&format!("{label}, seat {seat}"), &end.result, &wanted, &[SEATS[bent.seat]]);
        }
    }
}

/// What an owner without a seat and a seat, both corrupted, send otherwise; the viewer is honest.
#[test]
fn an_owner_together_with_a_seat() {
    let mut hunt = Hunt::new("owner and seat");
    let seats = [1, 2, 3, 4].map(PartyId);
    let (owner, viewer) = (PartyId(0), PartyId(5));
    let value = random(1, 4);
    let wanted: Vec<Block> = value.iter().map(|&v| VectorRing::Z128.mul(v, v)).collect();
    while hunt.goes_on() {
        let settings = malicious()[hunt.below(4)];
        let seat = seats[hunt.below(4)];
        let mut cluster = Cluster::new(6, 4).deadline(DEADLINE);
        let mut label = format!("{settings:?}");
        for _ in 0..=hunt.below(3) {
            let step = ["owners", "enter", "mul", "confirm", "reveal"][hunt.below(5)];
            let who = if ["owners", "enter"].contains(&step) && hunt.below(2) == 0 { owner } else { seat };
            let towards =
                if step == "reveal" && hunt.below(2) == 0 { viewer } else { PartyId(hunt.below(6) as u8) };
            if who != towards {
                let fault = InjectedFault::Corrupt { byte: hunt.rng.below(80), mask: hunt.mask() };
                label += &format!(", {who} to {towards} at {step}: {fault:?}");
                cluster = cluster.fault_towards(who, towards, step, fault);
            }
        }
        let start = Instant::now();
        let ended = cluster.run(|s| {
            let mut member = Member::new(s, seats, settings, DeviceQueue::default())?;
            let own: &[Block] = if s.me() == owner { &value } else { &[] };
            let x = s.step("enter", |s| member.enter(s, owner, (VectorRing::Z128, 4), own))?;
            let product = match (member.server(), &x) {
                (Some(server), Some(x)) => Some(s.step("mul", |s| server.multiply(s, x, x))?),
                _ => None,
            };
            s.step("confirm", |s| member.confirm(s))?;
            s.step("reveal", |s| member.reveal(s, product.as_ref(), (VectorRing::Z128, 4), viewer))
        });
        assert!(start.elapsed() < HANGS, "{label}: a run that hangs");
        for (party, end) in
            ended.iter().enumerate().filter(|(party, _)| ![owner, seat].contains(&PartyId(*party as u8)))
        {
            let wanted = (party == viewer.index()).then(|| wanted.clone());
            judge(&format!("{label}; party {party}"), end, &wanted, &[owner, seat]);
        }
    }
}

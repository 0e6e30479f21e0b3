//! What every device must give: each operation over vectors, with its vectors in the device's memory or
//! handed to it and taken back, has the shares of vectors of the host, and the parties say the same, byte by
//! byte.

use crate::vectors::arithmetic::ArithmeticShares;
use crate::{Number, Planes, SeatParty, Security, Settings, SharedVector, TagHash, VectorRing};
use accel::DeviceQueue;
use base::{Error, PartyId};
use kernels::Block;
use net::Session;
use net::cluster::Cluster;
use std::sync::Mutex;

/// Where the vectors of a seat lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lies {
    /// With the host, which has no device.
    Host,
    /// With the device, from one operation to the next.
    Device,
    /// Some with the device, others with the host ([`ON_HOST`]), as where a device is not worth them.
    Apart,
    /// With the host, whose device gets them for an operation where they are long enough.
    Between,
}

/// Of every seat whose vectors lie apart, which of two vectors of elements and one of bits the host keeps.
const ON_HOST: [[bool; 3]; 4] =
    [[false, false, true], [false, false, true], [true, false, true], [true, true, false]];

/// A run: what the four agreed on, and which vectors they work on.
#[derive(Clone, Copy, Debug)]
struct Work {
    settings: Settings,
    ring: VectorRing,
    len: usize,
}

/// Parts of all results of all seats, and what was said.
type Seen = (Vec<Vec<[Vec<Block>; 3]>>, String);

fn settings() -> [Settings; 3] {
    let of = |security, hash, masked| Settings { security, hash, masked };
    [
        of(Security::SemiHonest, TagHash::Keyed, false),
        of(Security::Malicious, TagHash::Keyed, true),
        of(Security::Malicious, TagHash::Blake3, true),
    ]
}

/// Operations that make bits of elements, and elements of bits.
fn conversions<V: ArithmeticShares>(
    party: &mut SeatParty,
    session: &mut Session,
    x: &V,
    y: &V,
) -> Result<Vec<V>, Error> {
    let k = x.ring().bits();
    let mut all = party.bits(session, x, k)?.into_planes();
    let low = party.bits(session, y, 1)?;
    all.extend(party.bit(session, &[x, y], 13)?);
    all.extend(party.bits_to_ring(session, x.ring(), &[&all[2], &low.planes()[0]])?);
    let word = Planes::new(all[..21].to_vec())?;
    all.push(party.word_to_ring(session, x.ring(), &word)?);
    all.push(party.signed_word_to_ring(session, x.ring(), &Planes::new(all[3..5].to_vec())?)?);
    let whole = Planes::new(all[..k as usize].to_vec())?;
    all.push(party.word_to_ring(session, x.ring(), &whole)?);
    all.extend(low.into_planes());
    Ok(all)
}

/// Comparisons and selections.
fn comparisons<V: ArithmeticShares>(
    party: &mut SeatParty,
    session: &mut Session,
    [x, y, bits]: [&V; 3],
) -> Result<Vec<V>, Error> {
    let k = x.ring().bits();
    let below = party.less(session, x, y, Number::signed(k))?;
    let mut all = vec![party.less(session, x, y, Number::unsigned(20))?, party.equal(session, x, y, 9)?];
    let (least, most) = party.min_max(session, x, y, Number::unsigned(k))?;
    all.push(party.select_by_bit(session, bits, x, y)?);
    all.extend([party.select_by_bit(session, &below, x, &least)?, least, most]);
    let [a, b] = [party.bits(session, x, 6)?, party.bits(session, y, 6)?];
    all.push(party.less_words(session, &a, &b, true)?);
    all.push(party.equal_words(session, &a, &b)?);
    all.extend(party.add_words(session, &a, &b)?.into_planes());
    all.extend(party.select_words(session, &below, &a, &b)?.into_planes());
    all.push(below);
    Ok(all)
}

/// Truncations of every kind, and products with and without.
fn truncations<V: ArithmeticShares>(
    party: &mut SeatParty,
    session: &mut Session,
    x: &V,
    y: &V,
) -> Result<Vec<V>, Error> {
    let k = x.ring().bits();
    Ok(vec![
        party.truncate(session, x, 20, 7)?,
        party.truncate(session, x, k - 1, 9)?,
        party.truncate(session, x, k - 1, k - 2)?,
        party.truncate_exact(session, y, 6)?,
        party.multiply_fixed(session, (x, y), 20, 5)?,
        party.select(session, x, y, x)?,
    ])
}

fn operations<V: ArithmeticShares>(
    party: &mut SeatParty,
    session: &mut Session,
    [x, y, bits]: [&V; 3],
) -> Result<Vec<V>, Error> {
    let mut all = session.step("conversions", |s| conversions(party, s, x, y))?;
    all.extend(session.step("comparisons", |s| comparisons(party, s, [x, y, bits]))?);
    all.extend(session.step("truncations", |s| truncations(party, s, x, y))?);
    Ok(all)
}

/// Elements that are there: what fills up the last block is shares of anything, and the same too.
fn parts(all: Vec<SharedVector>) -> Vec<[Vec<Block>; 3]> {
    all.into_iter().map(SharedVector::into_parts).collect()
}

fn play(work: Work, lies: [Lies; 4], make: &MakeSeatQueue<'_>) -> Seen {
    let Work { settings, ring, len } = work;
    let seen = Mutex::new(vec![Vec::new(); 4]);
    let said = Cluster::new(4, 11).wire(|session| {
        let seats = [0, 1, 2, 3].map(PartyId);
        let lies = lies[session.me().0 as usize];
        let queue = if lies == Lies::Host { DeviceQueue::default() } else { make()? };
        let mut party = SeatParty::new(session, seats, settings, queue)?;
        let vectors = [party.random(ring, len), party.random(ring, len), party.random(VectorRing::Z2, len)];
        let results = if matches!(lies, Lies::Host | Lies::Between) {
            operations(&mut party, session, vectors.each_ref())?
        } else {
            let apart = ON_HOST[party.seat().index()].map(|on_host| on_host && lies == Lies::Apart);
            let mut kept = Vec::with_capacity(vectors.len());
            for (x, on_host) in vectors.iter().zip(apart) {
                kept.push(if on_host { party.keep_on_host(x)? } else { party.keep(x)? });
            }
            let results = operations(&mut party, session, [&kept[0], &kept[1], &kept[2]])?;
            results.iter().map(|result| party.fetch(result)).collect::<Result<_, _>>()?
        };
        let work = party.queue().work();
        if lies == Lies::Apart && party.keeps_vectors() && work.spilled == 0 {
            assert!(work.moved > 0, "vectors that met lay in two memories");
        }
        seen.lock().expect("no seat panics")[party.seat().index()] = parts(results);
        Ok(())
    });
    (seen.into_inner().expect("no seat panics"), said)
}

/// Makes a seat's queue.
pub type MakeSeatQueue<'a> = dyn Fn() -> Result<DeviceQueue, Error> + Sync + 'a;

/// Runs every operation on vectors of these lengths: with the vectors of all seats with their devices, of
/// some, handed over for every operation where they are long enough, or in two memories. Under malicious
/// security with keyed tags each of these is run for the first length; else one, in turn.
///
/// # Errors
/// The first run that gives or says something else than one without a device.
///
/// # Panics
/// Where a party fails.
pub fn check(make: &MakeSeatQueue<'_>, lens: &[usize]) -> Result<(), String> {
    use Lies::{Apart, Between, Device, Host};
    let mixes = [[Device; 4], [Host, Device, Between, Device], [Between; 4], [Apart; 4]];
    for (i, settings) in settings().into_iter().enumerate() {
        for (k, ring) in [VectorRing::Z128, VectorRing::Z64].into_iter().enumerate() {
            for (j, &len) in lens.iter().enumerate() {
                let work = Work { settings, ring, len };
                let wanted = play(work, [Host; 4], make);
                let turn = (i + j + 3 * k) % mixes.len();
                let is_usual = (settings.security, settings.hash) == (Security::Malicious, TagHash::Keyed);
                let some = if j == 0 && is_usual { &mixes[..] } else { &mixes[turn..=turn] };
                for &lies in some {
                    let got = play(work, lies, make);
                    if got.1 != wanted.1 {
                        return Err(format!("{work:?}, {lies:?}: the parties say something else"));
                    }
                    if got.0 != wanted.0 {
                        return Err(format!("{work:?}, {lies:?}: shares differ"));
                    }
                }
            }
        }
    }
    Ok(())
}

//! Parties with modified software that try to read which of their own identifiers the other one has by
//! Private-ID, and are noticed. What is not noticed stands in `docs/protocols/pid.md`.

mod common;

use base::{ChannelError, PartyId, Roster, Seed};
use common::{Column, ids};
use matching::dummies::Dummies;
use matching::group::{self, Exponent, GroupElement};
use matching::{MatchOptions, Matcher, PairSizes, PrivateId};
use net::{Channel, Session, pair};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a modified party does with what it sends and receives.
trait Plot: Send {
    /// What leaves in the place of `bytes`; nothing: the connection is cut.
    fn send(&mut self, step: &str, bytes: &[u8]) -> Option<Vec<u8>>;
    fn heard(&mut self, step: &str, bytes: &[u8]);
    /// Whether the next message at `step` is held back until the peer's has come, which is then sent in its
    /// place.
    fn echoes(&self, _step: &str) -> bool {
        false
    }
}

struct Bent<P> {
    inner: Box<dyn Channel>,
    step: String,
    plot: Arc<Mutex<P>>,
    own: Option<Vec<u8>>,
}

impl<P: Plot> Channel for Bent<P> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut plot = self.plot.lock().unwrap();
        if plot.echoes(&self.step) {
            self.own = Some(bytes.to_vec());
            return Ok(());
        }
        let bytes = plot.send(&self.step, bytes).ok_or(ChannelError::Closed)?;
        self.inner.send(&bytes)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.inner.recv(into)?;
        if let Some(own) = self.own.take() {
            self.inner.send(into)?;
            self.inner.finish()?;
            // It takes what it expects, and says that all is well.
            into.copy_from_slice(&own);
        }
        self.plot.lock().unwrap().heard(&self.step, into);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.inner.finish()
    }

    fn at_step(&mut self, step: &str) {
        step.clone_into(&mut self.step);
        self.inner.at_step(step);
    }
}

/// A party that follows the protocol.
struct Honest;

impl Plot for Honest {
    fn send(&mut self, _: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }

    fn heard(&mut self, _: &str, _: &[u8]) {}
}

type Outcome = Result<PairSizes, String>;

fn channel<P: Plot + 'static>(inner: Box<dyn Channel>, plot: &Arc<Mutex<P>>) -> Box<dyn Channel> {
    Box::new(Bent { inner, step: String::new(), plot: plot.clone(), own: None })
}

/// A match of two lists between party 0 with one plot and party 1 with another.
fn run<C: Plot + 'static, P: Plot + 'static>(
    seed: u8,
    plots: (&Arc<Mutex<C>>, &Arc<Mutex<P>>),
    lists: [&[String]; 2],
    options: impl Fn(usize) -> MatchOptions + Sync,
) -> [Outcome; 2] {
    let roster = Roster::new(["registry", "hospitals"]);
    let (a, b) = pair(Duration::from_secs(20));
    let channels = [channel(a, plots.0), channel(b, plots.1)];
    let columns = lists.map(Column::new);
    std::thread::scope(|scope| {
        let mut parties = channels.into_iter().enumerate().map(|(i, channel)| {
            let peer = PartyId(1 - i as u8);
            let mut session =
                Session::new(PartyId(i as u8), roster.clone(), vec![(peer, channel)], secret(seed, i));
            let (column, options) = (&columns[i], options(i));
            scope.spawn(move || {
                let done = PrivateId.run(&mut session, &column.flat(), None, &options);
                done.map(|told| told.disclosed.sizes.pair()).map_err(|e| e.to_string())
            })
        });
        let threads = [parties.next().unwrap(), parties.next().unwrap()];
        threads.map(|thread| thread.join().unwrap())
    })
}

fn secret(seed: u8, party: usize) -> Seed {
    Seed::from_bytes([seed; 32]).fork(&party.to_string())
}

fn honest() -> Arc<Mutex<Honest>> {
    Arc::new(Mutex::new(Honest))
}

fn plain(_: usize) -> MatchOptions {
    MatchOptions { threads: 1, ..MatchOptions::default() }
}

fn with_dummies(party: usize) -> MatchOptions {
    MatchOptions { dummies: Some(Dummies::usual(&Seed::from_bytes([party as u8 + 7; 32]))), ..plain(party) }
}

/// A key of the modified party's own.
fn key(first: u8) -> Exponent {
    let mut bytes = [0; 32];
    (bytes[0], bytes[9]) = (first, 77);
    Exponent::from_bytes(bytes).unwrap()
}

fn elements(bytes: &[u8]) -> &[GroupElement] {
    bytes.as_chunks().0
}

fn powers(of: &[GroupElement], key: &Exponent) -> Vec<GroupElement> {
    let mut column = of.to_vec();
    group::mul_batch(&mut column, key, 1).unwrap();
    column
}

/// The first key of party 1 in a fresh run, which that party of course knows: as `pid::run` draws it.
fn first_key_of_p(seed: u8) -> Exponent {
    let mut rng = secret(seed, 1).fork("1 pid keys 1").into_rng();
    let _salt: [u8; 32] = rng.bytes();
    Exponent::from_bytes(rng.bytes()).unwrap()
}

/// P sends powers of `u_c` in the place of elements of `e_c`; those that C does not have among `e_p` come
/// back.
struct Powers {
    first: Exponent,
    every: usize,
    most: usize,
    /// Whether it answers with the digest that it hears.
    echo: bool,
    u_c: Vec<GroupElement>,
    s_p: Vec<GroupElement>,
    v_p: BTreeSet<GroupElement>,
    s_c: Vec<GroupElement>,
    swapped: BTreeMap<GroupElement, GroupElement>,
}

impl Powers {
    fn new(seed: u8, every: usize, most: usize, echo: bool) -> Arc<Mutex<Self>> {
        let (u_c, s_p, s_c) = (Vec::new(), Vec::new(), Vec::new());
        let (v_p, swapped, first) = (BTreeSet::new(), BTreeMap::new(), first_key_of_p(seed));
        Arc::new(Mutex::new(Self { first, every, most, echo, u_c, s_p, v_p, s_c, swapped }))
    }

    /// Own rows that C has, as far as C said: what it sent is freed of the power and looked up.
    fn read(&self) -> usize {
        let freed = powers(&powers(&self.s_c, &key(5).inverse().unwrap()), &self.first);
        freed.iter().filter(|e| self.v_p.contains(*e)).count()
    }
}

impl Plot for Powers {
    fn send(&mut self, step: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        match step {
            "pid/e" if bytes.len() > 8 => {
                let mut e: BTreeSet<GroupElement> = elements(bytes).iter().copied().collect();
                let targets: Vec<GroupElement> =
                    self.u_c.iter().step_by(self.every).take(self.most).copied().collect();
                for (real, fake) in powers(&targets, &self.first).into_iter().zip(powers(&targets, &key(5))) {
                    assert!(e.remove(&real) && e.insert(fake));
                    self.swapped.insert(real, fake);
                }
                Some(e.into_iter().collect::<Vec<_>>().concat())
            }
            "pid/difference" if bytes.len() >= 32 => {
                // C would see a row twice otherwise.
                let answer = |(asked, told): (&GroupElement, &GroupElement)| match self.swapped.get(asked) {
                    Some(fake) => powers(&[*fake], &key(9))[0],
                    None => *told,
                };
                Some(self.s_p.iter().zip(elements(bytes)).map(answer).collect::<Vec<_>>().concat())
            }
            _ => Some(bytes.to_vec()),
        }
    }

    fn heard(&mut self, step: &str, bytes: &[u8]) {
        match step {
            "pid/u" if bytes.len() >= 32 => self.u_c.extend(elements(bytes)),
            "pid/v" if bytes.len() >= 32 => self.v_p.extend(elements(bytes)),
            "pid/e" if bytes.len() > 8 => self.s_p.extend(elements(bytes)),
            "pid/difference" if bytes.len() >= 32 => self.s_c.extend(elements(bytes)),
            _ => {}
        }
    }

    fn echoes(&self, step: &str) -> bool {
        self.echo && step == "pid/spine"
    }
}

#[test]
fn a_digest_that_is_echoed_is_noticed() {
    let (x, y) = (ids(0..2000), ids(1000..3000));
    let plot = Powers::new(9, 5, 300, true);
    let [c, _] = run(9, (&honest(), &plot), [&x, &y], plain);
    let plot = plot.lock().unwrap();
    assert_eq!(plot.swapped.len(), 300);
    assert!((100..200).contains(&plot.read()), "the attack itself works: {}", plot.read());
    let error = c.unwrap_err();
    assert!(error.ends_with("the peer deviated from the protocol: both spines are the same"), "{error}");
}

#[test]
fn powers_in_the_place_of_every_element_are_noticed_by_the_dummies() {
    let (x, y) = (ids(0..400), ids(200..600));
    let plot = Powers::new(9, 1, usize::MAX, false);
    let [c, _] = run(9, (&honest(), &plot), [&x, &y], with_dummies);
    assert!(plot.lock().unwrap().s_c.is_empty(), "nothing is raised for it");
    let error = c.unwrap_err();
    assert!(
        error.contains(
            "registry at pid/e with hospitals: the peer deviated from the protocol: the \
                            intersection holds the dummies that both have"
        ),
        "{error}"
    );
}

/// C adds powers of elements of `e_c` to `s_p`, as many as leave an overlap of five.
struct Adds {
    rows_p: usize,
    e_c: Vec<GroupElement>,
    more: usize,
    images: usize,
}

impl Plot for Adds {
    fn send(&mut self, step: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        if step != "pid/e" {
            return Some(bytes.to_vec());
        }
        if let Ok(count) = bytes.try_into().map(u64::from_le_bytes) {
            self.more = self.rows_p - count as usize - 5;
            return Some((count + self.more as u64).to_le_bytes().to_vec());
        }
        let mut s_p = powers(&self.e_c[..self.more], &key(5));
        s_p.extend(elements(bytes));
        s_p.sort_unstable();
        Some(s_p.concat())
    }

    fn heard(&mut self, step: &str, bytes: &[u8]) {
        match step {
            "pid/u" if bytes.len() >= 32 => self.rows_p += bytes.len() / 32,
            "pid/e" if bytes.len() > 8 => self.e_c.extend(elements(bytes)),
            "pid/difference" => self.images += bytes.len() / 32,
            _ => {}
        }
    }
}

#[test]
fn an_overlap_below_the_dummies_is_noticed_by_the_other_side_too() {
    let (x, y) = (ids(0..400), ids(200..600));
    let plot = Arc::new(Mutex::new(Adds { rows_p: 0, e_c: Vec::new(), more: 0, images: 0 }));
    let [_, p] = run(9, (&plot, &honest()), [&x, &y], with_dummies);
    assert_eq!(plot.lock().unwrap().images, 0, "nothing is raised for it");
    let error = p.unwrap_err();
    assert!(error.contains("the intersection holds the dummies that both have"), "{error}");
}

/// P looks at `s_p` in one session, is cut, and sends powers of all of it in the next one.
#[derive(Default)]
struct ComesBack {
    session: u8,
    s_p: Vec<GroupElement>,
    s_c: usize,
    u: Vec<Vec<u8>>,
}

impl Plot for ComesBack {
    fn send(&mut self, step: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        match (self.session, step) {
            (1, "pid/difference") => return None,
            (2, "pid/e") if bytes.len() > 8 => {
                let mut e = elements(bytes).to_vec();
                e[..self.s_p.len()].copy_from_slice(&powers(&self.s_p, &key(5)));
                e.sort_unstable();
                return Some(e.concat());
            }
            (_, "pid/u") if bytes.len() > 1 => self.u.push(bytes.to_vec()),
            _ => {}
        }
        Some(bytes.to_vec())
    }

    fn heard(&mut self, step: &str, bytes: &[u8]) {
        match (self.session, step) {
            (1, "pid/e") if bytes.len() > 8 => self.s_p.extend(elements(bytes)),
            (2, "pid/difference") if bytes.len() >= 32 => self.s_c += bytes.len() / 32,
            _ => {}
        }
    }
}

#[test]
fn a_peer_that_deviates_has_no_second_try_under_the_same_keys() {
    let (x, y) = (ids(0..3000), ids(1500..4500));
    let dir = tempfile::tempdir().unwrap();
    let folder = |party: usize| dir.path().join(format!("party {party}"));
    let resume = |party: usize| MatchOptions { resume: Some(folder(party)), ..plain(party) };
    let plot = Arc::new(Mutex::new(ComesBack::default()));
    let session = |number: u8| {
        plot.lock().unwrap().session = number;
        let done = run(number, (&honest(), &plot), [&x, &y], resume);
        (done, Path::exists(&folder(0)))
    };
    let ([c, _], kept) = session(1);
    assert!(c.is_err() && kept, "a cut leaves the journal");
    let ([c, _], kept) = session(2);
    let error = c.unwrap_err();
    assert!(error.contains("what it sends after the cut is what it sent before it"), "{error}");
    assert!(!kept, "a deviation does not");
    let (done, _) = session(3);
    let wanted = PairSizes::new([3000; 2], 4500);
    assert_eq!(done, [Ok(wanted), Ok(wanted)]);
    let plot = plot.lock().unwrap();
    assert_eq!((plot.s_p.len(), plot.s_c), (1500, 0), "it was told nothing for its powers");
    assert_eq!(plot.u.len(), 2, "session 2 went on");
    assert_ne!(plot.u[0], plot.u[1], "session 3 has keys of its own");
}

/// P chooses later slices of `e_c` after it has seen the answers to earlier ones.
#[derive(Default)]
struct Adapts {
    slice: u32,
    s_p: Vec<GroupElement>,
    swapped: usize,
}

impl Plot for Adapts {
    fn send(&mut self, step: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        if step != "pid/e" || bytes.len() <= 8 {
            return Some(bytes.to_vec());
        }
        let mut e = elements(bytes).to_vec();
        let slice = self.slice;
        self.slice += 1;
        let known = powers(&self.s_p, &key(5));
        let fakes = known.iter().filter(|fake| u32::from(fake[0] >> 6) == slice).take(200);
        let swapped = fakes.enumerate().map(|(i, fake)| e[i] = *fake).count();
        self.swapped += swapped;
        e.sort_unstable();
        Some(e.concat())
    }

    fn heard(&mut self, step: &str, bytes: &[u8]) {
        if step == "pid/e" && bytes.len() > 8 {
            self.s_p.extend(elements(bytes));
        }
    }
}

#[test]
fn what_is_chosen_after_earlier_answers_is_noticed_at_the_end() {
    let (x, y) = (ids(0..15_000), ids(7_500..22_500));
    let plot = Arc::new(Mutex::new(Adapts::default()));
    let done = run(9, (&honest(), &plot), [&x, &y], plain);
    assert!(plot.lock().unwrap().swapped > 0);
    assert!(done.iter().all(Result::is_err), "{done:?}");
}

//! Dummy rows: a match shows sizes, and with dummies it shows noised ones.
//!
//! * **Functionality.** For every non-empty set S of other parties there is a public list `D_(i,S)` of party
//!   i, `2 s` names of [`NameDomain::Dummy`]. Every party of S inserts all of it, i itself `z_(i,S)` of its
//!   names (a secret uniform choice), nobody else any. Party i also inserts `w_i` rows that nobody else has,
//!   random names of [`NameDomain::Filler`]. All `z` and `w` are independent: `s` plus a discrete Laplace of
//!   scale `1 / epsilon`, given that it lies in `-s..=s`. Between two parties this is one list of each.
//! * **Model.** Parties insert dummies as written here; what they choose freely, their identifiers, may be
//!   crafted. A party that leaves out the other's list sees exact sizes again, and nobody can tell.
//! * **Who learns what.** Peers see how many rows exactly the parties of each set have, or sums of these
//!   numbers, dummies included. A row of i that exactly S have counts one more for S with i and one less for
//!   S, which is what one more of `z_(i,S)` does; a row that nobody else has is one more of `w_i`. `z` alone
//!   would leave unmatched rows exact. [`Dummies::charge`] is what that costs; `docs/protocols/dummies.md`
//!   has the argument and its limits.
//! * **Paper.** None that we follow; the construction is ours. Noise: [`release::gaussian::DiscreteLaplace`].
//! * **Cost.** [`TERMS_BYTES`] each way per pair of parties and one turn; n parties insert `n 2^(n-1) s` more
//!   rows each on average, `4 s` for two and `12 s` for three. At the default of epsilon 1/10 and delta 10^-9
//!   `s` is 185.
//!
//! How a protocol applies it:
//!
//! 1. [`plan`], and [`terms`] compared at its first step, with [`ShownSizes::Intersection`], or
//!    [`ShownSizes::Rows`] where no size of the intersection shows (then there are no lists, only the `w_i`);
//! 2. [`PaddedIdentifiers::new`] in place of the caller's identifiers: own rows come first and keep their
//!    numbers, then dummies;
//! 3. what it returns per own row is cut to [`PaddedIdentifiers::real_rows`]; payload of a dummy row is
//!    blank.
//!
//! A dummy row has one name. Where rows have K identifiers its other places are empty, so the protocol fills
//! them as it does those of any short row.

use crate::identifiers::{IdentifierSource, NameDomain};
use base::{Error, PartyId, Rng, Secret, Seed};
use net::{Session, StepLink};
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};
use release::gaussian::DiscreteLaplace;
use release::rational::{Rational, ratio};
use std::fmt;

/// Bytes of [`terms`].
pub const TERMS_BYTES: u64 = 16;

/// The check that a peer with other parameters fails.
pub(crate) const SAME_TERMS: &str = "it hides sizes with the same dummies as we do";

/// The most parties that hide overlaps: six insert 192 `s` rows each, and every party more doubles that and
/// adds to it.
pub const PARTIES_MAX: usize = 6;

/// The largest `s`: beyond it dummies would outweigh most data, and the parameters are a slip.
pub const CENTRE_MAX: u64 = 1 << 20;

/// Fraction bits of the arithmetic that finds `s`, which rounds to the safe side.
const FRACTION: usize = 128;

/// What a protocol shows about sizes, so what dummies have to hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownSizes {
    /// Rows of each party, and the size of the union or of the intersection.
    Intersection,
    /// Rows of each party alone.
    Rows,
}

/// How a party hides its sizes. All but the seed is agreed on by all parties.
pub struct Dummies {
    epsilon: Rational,
    delta: Rational,
    seed: Secret<[u8; 32]>,
    centre: u64,
}

/// What one row's worst change costs the party that owns it: the pair (epsilon, delta), and the same as `rho`
/// of zCDP that holds except with probability `delta`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeCharge {
    /// Pure epsilon, in the event of probability at least `1 - delta`.
    pub epsilon: Rational,
    /// zCDP in the same event: exact, below `epsilon^2 / 2` since two independent noises share the change.
    pub rho: Rational,
    /// Upper bound of what truncation costs: at most the delta that was asked for, where rows have one key.
    pub delta: Rational,
}

impl Dummies {
    /// Dummies with these parameters; `s` is the least one that keeps the charge for one row within `delta`.
    ///
    /// `seed` decides the secret sizes and choices. Two runs that a peer could tell apart by anything but
    /// these must have independent seeds: derive it from a long-term secret by a PRF over everything that the
    /// run depends on, the **peer's** data included. Otherwise two runs with one row changed on the peer's
    /// side differ by exactly that row.
    ///
    /// # Errors
    /// When `epsilon` is not in `(0, 10]`, `delta` not in `(0, 1)`, or `s` is over [`CENTRE_MAX`].
    pub fn new(epsilon: &Rational, delta: &Rational, seed: &Seed) -> Result<Self, Error> {
        let (zero, one) = (Rational::zero(), Rational::one());
        if *epsilon <= zero || *epsilon > ratio(10, 1) {
            return Err(Error::input("epsilon of dummies is a number above 0 and at most 10; 0.1 is usual"));
        }
        if *delta <= zero || *delta >= one {
            return Err(Error::input("delta of dummies is a number between 0 and 1; 0.000000001 is usual"));
        }
        let centre = centre(epsilon, delta)?;
        let seed = Secret::new(*seed.expose());
        Ok(Self { epsilon: epsilon.clone(), delta: delta.clone(), seed, centre })
    }

    /// Epsilon 1/10 and delta 10^-9.
    #[must_use]
    pub fn usual(seed: &Seed) -> Self {
        Self::new(&ratio(1, 10), &ratio(1, 1_000_000_000), seed).expect("these are in range")
    }

    /// `s`: the mean of both secret sizes, and half of a list's length.
    #[must_use]
    pub fn centre(&self) -> u64 {
        self.centre
    }

    /// The standard deviation of two secret sizes together, rounded up. Each is a discrete Laplace of scale
    /// 1 / epsilon, whose variance is below twice the square of that.
    #[must_use]
    pub fn pair_sigma(&self) -> u64 {
        (ratio(2, 1) / &self.epsilon).ceil().to_integer().to_u64().unwrap_or(u64::MAX)
    }

    /// The least and the most rows that a party's dummies may come to among `parties`, for a price before the
    /// run.
    #[must_use]
    pub fn rows_range(&self, hides: ShownSizes, parties: usize) -> [u64; 2] {
        let sets = 1u64 << (parties as u32 - 1);
        match hides {
            ShownSizes::Intersection => {
                // Sets that the lists of every other party have with this one among them: half of all.
                let others = 2 * self.centre * (parties as u64 - 1) * (sets / 2);
                [others, others + 2 * self.centre * sets]
            }
            ShownSizes::Rows => [0, 2 * self.centre],
        }
    }

    /// What replacing one row of this party by any other costs it, per run. Adding or removing a row costs no
    /// more.
    ///
    /// `keys` is K, the identifiers of a row: with more than one, a row can change up to K matched pairs by
    /// the rule of mutual best edges.
    #[must_use]
    pub fn charge(&self, hides: ShownSizes, keys: u64) -> SizeCharge {
        let reach = ratio(keys.max(1), 1u64);
        let (epsilon, ends) = (&self.epsilon, tail(&self.epsilon, self.centre, keys.max(1)));
        match hides {
            // One noise moves by up to K and another one by as much the other way; independent noises add
            // their rho.
            ShownSizes::Intersection => SizeCharge {
                epsilon: epsilon * &reach * ratio(2, 1),
                rho: epsilon * epsilon * &reach * &reach,
                delta: ends * ratio(2, 1),
            },
            // A replaced row keeps the number of rows; one that is added or removed moves w by one.
            ShownSizes::Rows => SizeCharge {
                epsilon: epsilon.clone(),
                rho: epsilon * epsilon / ratio(2, 1),
                delta: tail(&self.epsilon, self.centre, 1),
            },
        }
    }

    /// Draws one secret size.
    fn size(&self, rng: &mut Rng) -> u64 {
        let law = DiscreteLaplace::new(&self.epsilon.recip()).expect("epsilon is in range");
        loop {
            let drawn = law.sample(rng).to_i64();
            // Redrawing is what "given that it lies in -s..=s" says.
            if let Some(noise) = drawn.filter(|x| x.unsigned_abs() <= self.centre) {
                return (self.centre as i64 + noise) as u64;
            }
        }
    }

    /// What both sides compare.
    fn terms(&self, hides: ShownSizes) -> [u8; TERMS_BYTES as usize] {
        let text = format!("{} {} {hides:?}", self.epsilon, self.delta);
        let mut terms = [0; TERMS_BYTES as usize];
        terms[..8].copy_from_slice(&self.centre.to_le_bytes());
        terms[8..].copy_from_slice(&blake3::derive_key("tacit dummies terms 2", text.as_bytes())[..8]);
        terms
    }
}

impl Clone for Dummies {
    fn clone(&self) -> Self {
        let seed = Secret::new(*self.seed.expose());
        Self { epsilon: self.epsilon.clone(), delta: self.delta.clone(), seed, centre: self.centre }
    }
}

impl fmt::Debug for Dummies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dummies {{ epsilon: {}, delta: {}, centre: {} }}", self.epsilon, self.delta, self.centre)
    }
}

/// A lower bound of `e^epsilon` in units of `2^-FRACTION`: the Taylor series, cut short and rounded down.
fn growth(epsilon: &Rational) -> BigInt {
    let unit = BigInt::one() << FRACTION;
    let (mut sum, mut term, mut k) = (unit.clone(), unit, 1u32);
    while term.is_positive() {
        term = term * epsilon.numer() / (epsilon.denom() * k);
        sum += &term;
        k += 1;
    }
    sum
}

/// An upper bound of the probability that a draw is among the `ends` least values, for centre `s`.
///
/// With `g = e^epsilon` value `j` from the end has `g^j / (g^s + 2 (1 + g + ... + g^(s - 1)))`. Divided by
/// `g^j` the denominator is larger for larger `g` as long as `j <= s`, so a lower bound of `g` gives an upper
/// bound.
fn tail(epsilon: &Rational, s: u64, ends: u64) -> Rational {
    let g = growth(epsilon);
    let unit = BigInt::one() << FRACTION;
    let (mut power, mut sum) = (unit.clone(), BigInt::zero());
    let mut powers = vec![power.clone()];
    for _ in 0..s {
        sum += &power;
        power = (&power * &g) >> FRACTION;
        powers.push(power.clone());
    }
    let total = power + sum * 2u8;
    // Power j was rounded down j times: it lacks at most j g^j units.
    let from_above = |j: u64| &powers[j as usize] + ((&powers[j as usize] >> FRACTION) + 1u8) * 2u8 * j;
    let mass: Rational = (0..ends.min(s + 1)).map(|j| Rational::new(from_above(j), total.clone())).sum();
    mass.min(Rational::one())
}

/// The least `s` with `2 P(a draw is its least value) <= delta`.
fn centre(epsilon: &Rational, delta: &Rational) -> Result<u64, Error> {
    let g = growth(epsilon);
    let unit = BigInt::one() << FRACTION;
    // 2 / (g^s + 2 (1 + ... + g^(s - 1))) <= delta, with both sums from below.
    let wanted = (Rational::from_integer(unit.clone() * 2u8) / delta).ceil().to_integer();
    let (mut power, mut sum, mut s) = (unit, BigInt::zero(), 0u64);
    while &power + &sum * 2u8 < wanted {
        if s == CENTRE_MAX {
            return Err(Error::input(
                "dummies with these epsilon and delta need more than a million rows; choose larger ones",
            ));
        }
        sum += &power;
        power = (&power * &g) >> FRACTION;
        s += 1;
    }
    Ok(s)
}

/// A list of dummies: whose it is, and who has all of it, a bit per party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct List {
    owner: u8,
    holders: u8,
}

impl List {
    /// All lists among `parties`.
    fn all(parties: usize) -> impl Iterator<Item = Self> {
        (0..parties as u8).flat_map(move |owner| {
            (1..1u8 << parties)
                .filter(move |set| set >> owner & 1 == 0)
                .map(move |holders| Self { owner, holders })
        })
    }
}

const _: () = assert!(PARTIES_MAX < 8, "a set of parties is a byte");

/// The dummy rows of one party in one run. The peer must not see it.
pub struct DummyPlan {
    /// Names in a list: `2 s`.
    list: u32,
    /// The others' lists that this party has all of.
    whole: Vec<List>,
    /// What it has of its own ones: `z` names of each.
    own: Vec<(List, u32)>,
    fillers: Vec<[u8; 32]>,
}

impl DummyPlan {
    fn new(me: PartyId, parties: usize, dummies: &Dummies, hides: ShownSizes) -> Result<Self, Error> {
        let mut rng = Seed::from_bytes(*dummies.seed.expose()).fork("dummies").into_rng();
        let list = 2 * dummies.centre as u32;
        let mut plan = Self { list, whole: Vec::new(), own: Vec::new(), fillers: Vec::new() };
        if hides == ShownSizes::Intersection {
            if parties > PARTIES_MAX {
                return Err(Error::input(format!(
                    "dummies hide overlaps among at most {PARTIES_MAX} parties, here are {parties}: set \
                     dummies = \"off\""
                )));
            }
            for at in List::all(parties) {
                if at.owner == me.0 {
                    let mut names: Vec<u32> = (0..list).collect();
                    rng.shuffle(&mut names);
                    names.truncate(dummies.size(&mut rng) as usize);
                    plan.own.extend(names.into_iter().map(|name| (at, name)));
                } else if at.holders >> me.0 & 1 == 1 {
                    plan.whole.push(at);
                }
            }
        }
        plan.fillers = (0..dummies.size(&mut rng)).map(|_| rng.bytes()).collect();
        Ok(plan)
    }

    /// Rows that this party inserts. Secret: it tells the own noise.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.others() + (self.own.len() + self.fillers.len()) as u64
    }

    /// Rows of this party's own lists among them: between two parties the other one has all of these too, so
    /// an honest intersection is never smaller. Secret as well.
    pub(crate) fn own_listed(&self) -> u64 {
        self.own.len() as u64
    }

    /// Rows of the others' lists.
    fn others(&self) -> u64 {
        self.whole.len() as u64 * u64::from(self.list)
    }

    /// The name and domain of inserted row `index`.
    fn name(&self, index: u32, into: &mut Vec<u8>) -> NameDomain {
        into.clear();
        let (at, name) = match u64::from(index).checked_sub(self.others()) {
            None => (self.whole[(index / self.list) as usize], index % self.list),
            Some(index) => match self.own.get(index as usize) {
                Some(&own) => own,
                None => {
                    into.extend_from_slice(&self.fillers[index as usize - self.own.len()]);
                    return NameDomain::Filler;
                }
            },
        };
        into.extend_from_slice(&[at.owner, at.holders]);
        into.extend_from_slice(&name.to_le_bytes());
        NameDomain::Dummy
    }
}

/// Sizes are secret.
impl fmt::Debug for DummyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").finish_non_exhaustive()
    }
}

/// What both sides compare, in a message of the protocol: all zeros without dummies.
#[must_use]
pub fn terms(dummies: Option<&Dummies>, hides: ShownSizes) -> [u8; TERMS_BYTES as usize] {
    dummies.map_or([0; TERMS_BYTES as usize], |d| d.terms(hides))
}

/// Receives what the peer sent as [`terms`] and compares it with one's own.
///
/// # Errors
/// `Deviated` when the peer inserts dummies otherwise, or does so on one side only.
pub fn check_terms(link: &mut StepLink<'_>, terms: &[u8; TERMS_BYTES as usize]) -> Result<(), Error> {
    let theirs: [u8; TERMS_BYTES as usize] = link.recv_array()?;
    if theirs == *terms { Ok(()) } else { Err(link.blame(SAME_TERMS)) }
}

/// This party's dummies for this session, without any conversation.
///
/// # Errors
/// `Input` where overlaps of more than [`PARTIES_MAX`] parties are to be hidden.
pub fn plan(
    session: &Session,
    dummies: Option<&Dummies>,
    hides: ShownSizes,
) -> Result<Option<DummyPlan>, Error> {
    dummies.map(|d| DummyPlan::new(session.me(), session.roster().len(), d, hides)).transpose()
}

/// Own identifiers and, behind them, dummy rows.
pub struct PaddedIdentifiers<'a> {
    own: &'a dyn IdentifierSource,
    plan: Option<&'a DummyPlan>,
}

impl<'a> PaddedIdentifiers<'a> {
    /// `own` followed by the rows of `plan`, or `own` alone.
    #[must_use]
    pub fn new(own: &'a dyn IdentifierSource, plan: Option<&'a DummyPlan>) -> Self {
        Self { own, plan }
    }

    /// Rows of the caller's own: those below are dummies.
    #[must_use]
    pub fn real_rows(&self) -> u64 {
        self.own.rows()
    }

    /// What comes behind own rows, if anything.
    pub(crate) fn plan(&self) -> Option<&DummyPlan> {
        self.plan
    }

    /// Whether `row` is a dummy, and which.
    fn dummy(&self, row: u32) -> Option<(&DummyPlan, u32)> {
        let index = u64::from(row).checked_sub(self.own.rows())?;
        Some((self.plan?, index as u32))
    }
}

impl IdentifierSource for PaddedIdentifiers<'_> {
    fn rows(&self) -> u64 {
        self.own.rows() + self.plan.map_or(0, DummyPlan::rows)
    }

    fn keys(&self) -> usize {
        self.own.keys()
    }

    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        match self.dummy(row) {
            None => self.own.read(row, key, into)?,
            Some((plan, index)) if key == 0 => drop(plan.name(index, into)),
            Some(_) => into.clear(),
        }
        Ok(())
    }

    fn domain(&self, row: u32) -> NameDomain {
        match self.dummy(row) {
            None => self.own.domain(row),
            Some((plan, index)) => plan.name(index, &mut Vec::new()),
        }
    }
}

#[cfg(test)]
#[path = "dummies_tests.rs"]
mod tests;

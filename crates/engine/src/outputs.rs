//! What leaves a release: shares of the outputs' bits, and how those who see them put them together.
//!
//! **Functionality.** Every holder gives each viewer its share; a viewer adds them. What is sent, committed
//! to and kept is one run of bytes, [`OutputShares::bytes`]. **Security.** Shares of parties are exclusive-or
//! shares, uniform but for their sum: all of them are needed, and each can shift the result. Of four servers
//! each sends the three summands that it holds, and of the three copies of a summand the one that two agree
//! on counts: one server can neither stop nor bend it, and is named if it tries. **Cost.** ceil(bits / 8)
//! bytes a share, three times that of a server; [`price`].

use crate::{DrawnNoise, Entered, PreparedRelease, SERVERS, Shares};
use base::{Cost, Error, PartyId};
use net::Session;
use program::lower::{LinearSum, ReleasePlan, TotalsForm};
use std::ops::Range;
use zeroize::Zeroizing;

/// Ties a holder's bits to what was computed: of two parties who garble and evaluate, each can check the
/// other's.
pub trait Proof: Send {
    /// A digest of what was computed at some bits, if they have these values.
    fn digest(&self, bits: Range<usize>, values: &[bool]) -> [u8; 32];
}

/// One participant's share of the bits of [`ReleasePlan::roots`].
pub struct OutputShares {
    bytes: Zeroizing<Vec<u8>>,
    proof: Option<Box<dyn Proof>>,
}

impl OutputShares {
    /// A participant that holds nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::of_bytes(Vec::new())
    }

    /// One share.
    #[must_use]
    pub fn of_bits(bits: &[bool]) -> Self {
        Self::of_bytes(pack(bits))
    }

    /// Several, one after the other: of a server its summands in order.
    #[must_use]
    pub fn of_summands(summands: [&[bool]; SERVERS - 1]) -> Self {
        Self::of_bytes(summands.map(pack).concat())
    }

    /// As [`OutputShares::bytes`] gave them.
    #[must_use]
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes: Zeroizing::new(bytes), proof: None }
    }

    /// With what ties it to the computation.
    #[must_use]
    pub fn with_proof(mut self, proof: impl Proof + 'static) -> Self {
        self.proof = Some(Box::new(proof));
        self
    }

    /// What is kept and sent: bits packed, the least significant first; nothing where this participant holds
    /// nothing.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Some bits of a single share.
    #[must_use]
    pub fn bits(&self, range: Range<usize>) -> Vec<bool> {
        range.map(|at| bit(&self.bytes, at)).collect()
    }

    /// The proof.
    ///
    /// # Errors
    /// When the engine gives none.
    pub fn proof(&self) -> Result<&dyn Proof, Error> {
        self.proof
            .as_deref()
            .ok_or_else(|| Error::misuse("the engine does not tie outputs to what was computed"))
    }
}

/// Packs bits, the least significant first.
#[must_use]
pub fn pack(bits: &[bool]) -> Vec<u8> {
    let byte = |bits: &[bool]| bits.iter().enumerate().fold(0, |byte, (i, bit)| byte | u8::from(*bit) << i);
    bits.chunks(8).map(byte).collect()
}

/// Bit `at` of packed ones.
#[must_use]
pub fn bit(bytes: &[u8], at: usize) -> bool {
    bytes[at / 8] >> (at % 8) & 1 == 1
}

/// Bytes of one holder's share.
#[must_use]
pub fn share_bytes(plan: &ReleasePlan) -> usize {
    let copies = if plan.totals == TotalsForm::Replicated { SERVERS - 1 } else { 1 };
    copies * plan.bits().div_ceil(8)
}

/// What all shares give, and whose share is not what two others say.
pub struct OpenedOutputs {
    /// The bits.
    pub bits: Vec<bool>,
    /// Servers whose summands differ from those of two others.
    pub benders: Vec<PartyId>,
}

/// Puts shares together. `shares` are those of all `holders`, in their order; none where a server gave
/// nothing.
///
/// # Errors
/// [`base::Fault::Misuse`] when a share has another length; [`base::Fault::Deviated`] when more than one
/// server deviates, or a party's share is not there.
pub fn combine(
    plan: &ReleasePlan,
    holders: &[PartyId],
    shares: &[Option<&[u8]>],
    session: &Session,
) -> Result<OpenedOutputs, Error> {
    let bytes = share_bytes(plan);
    if shares.len() != holders.len() || shares.iter().flatten().any(|share| share.len() != bytes) {
        return Err(Error::misuse("a share of outputs has another length"));
    }
    if plan.totals == TotalsForm::Split {
        let all: Option<Vec<&[u8]>> = shares.iter().copied().collect();
        let all = all.ok_or_else(|| Error::misuse("all parties' shares are needed"))?;
        return Ok(OpenedOutputs { bits: sum(plan, &all), benders: Vec::new() });
    }
    let mut benders = Vec::new();
    let mut summands = Vec::with_capacity(SERVERS);
    for j in 0..SERVERS {
        // A server's summands are in order of their numbers, without its own.
        let copy = |seat: usize| {
            let at = if j > seat { j - 1 } else { j };
            shares[seat].map(|share| &share[at * bytes / 3..(at + 1) * bytes / 3])
        };
        let seats: Vec<usize> = (0..SERVERS).filter(|seat| *seat != j).collect();
        let agreed = seats.iter().filter_map(|seat| copy(*seat)).find(|mine| {
            seats.iter().filter(|other| copy(**other).is_some_and(|theirs| theirs == *mine)).count() > 1
        });
        let Some(agreed) = agreed else {
            return Err(
                session.accuse_one_of(holders, "no two of three servers agree on a summand of the outputs")
            );
        };
        benders.extend(seats.iter().filter(|s| copy(**s).is_some_and(|c| c != agreed)).map(|s| holders[*s]));
        summands.push(agreed);
    }
    benders.sort_unstable();
    benders.dedup();
    Ok(OpenedOutputs { bits: sum(plan, &summands), benders })
}

/// The bits that shares add up to: by exclusive or, or where outputs are sums of numbers as such.
fn sum(plan: &ReleasePlan, shares: &[&[u8]]) -> Vec<bool> {
    let all = 0..plan.bits();
    let bits = |share: &&[u8]| all.clone().map(|at| bit(share, at)).collect::<Vec<bool>>();
    let Some(sums) = &plan.sums else {
        return all.clone().map(|at| shares.iter().fold(false, |sum, share| sum ^ bit(share, at))).collect();
    };
    let numbers: Vec<Vec<u128>> = shares.iter().map(|share| plan.values(&bits(share))).collect();
    let number = |(at, sum): (usize, &LinearSum)| {
        let number = numbers.iter().fold(0u128, |all, number| all.wrapping_add(number[at]));
        (0..sum.width).map(move |i| number >> i & 1 == 1)
    };
    sums.iter().enumerate().flat_map(number).collect()
}

/// The release of a plan whose words one viewer alone knows: its share is the outputs, and the others hold
/// nothing.
///
/// # Errors
/// When the viewer lacks a word.
pub fn alone(plan: &ReleasePlan, entered: &Entered, me: PartyId) -> Result<Option<OutputShares>, Error> {
    let Some(viewer) = plan.alone() else { return Ok(None) };
    if viewer != me {
        return Ok(Some(OutputShares::none()));
    }
    let words: Result<Vec<u128>, Error> = (0..plan.words.len()).map(|word| entered.need(word)).collect();
    let words = words?;
    let bits = plan.circuit.evaluate(|input| words[input.word as usize] >> input.bit & 1 == 1);
    let roots: Vec<bool> = plan.roots().map(|root| bits[root.wire()] ^ root.inverted()).collect();
    Ok(Some(OutputShares::of_bits(&roots)))
}

/// Those who see a release, in order.
pub fn viewers(plan: &ReleasePlan) -> impl Iterator<Item = PartyId> + use<> {
    let viewer = plan.viewer;
    (0..plan.parties as u8).map(PartyId).filter(move |party| viewer.has(*party))
}

/// Cost of [`open`] among `participants`. Exact.
#[must_use]
pub fn price(plan: &ReleasePlan, holders: &[PartyId], participants: usize) -> Cost {
    let mut cost = Cost::zero(participants);
    if plan.alone().is_some() || plan.bits() == 0 {
        return cost;
    }
    for holder in holders {
        let others = viewers(plan).filter(|viewer| viewer != holder).count();
        cost.sent[holder.index()] += (others * share_bytes(plan)) as u64;
    }
    // What one viewer hears answers nothing; two that hold shares answer each other.
    cost.rounds = u64::from(viewers(plan).filter(|viewer| holders.contains(viewer)).count() > 1);
    cost
}

/// Opens outputs that need neither a commitment nor a debit: the bits of [`ReleasePlan::roots`] at those who
/// see them, none elsewhere.
///
/// # Errors
/// Those of the channels and of [`combine`].
pub fn open(
    plan: &ReleasePlan,
    holders: &[PartyId],
    shares: &OutputShares,
    session: &mut Session,
) -> Result<Option<Vec<bool>>, Error> {
    let me = session.me();
    let sees = me.index() < plan.parties && plan.viewer.has(me);
    if plan.alone().is_some() || plan.bits() == 0 {
        return Ok(sees.then(|| shares.bits(0..plan.bits())));
    }
    if holders.contains(&me) {
        for viewer in viewers(plan).filter(|viewer| *viewer != me) {
            session.link(viewer).send(shares.bytes())?;
            session.link(viewer).flush()?;
        }
    }
    if !sees {
        return Ok(None);
    }
    let mut theirs = Vec::with_capacity(holders.len());
    for holder in holders {
        let mut share = shares.bytes().to_vec();
        if *holder != me {
            share = vec![0; share_bytes(plan)];
            session.link(*holder).recv(&mut share)?;
        }
        theirs.push(share);
    }
    let theirs: Vec<Option<&[u8]>> = theirs.iter().map(|share| Some(&share[..])).collect();
    combine(plan, holders, &theirs, session).map(|opened| Some(opened.bits))
}

/// A release without noise from totals to values: computed and opened at once. The values at those who see
/// them.
///
/// # Errors
/// Those of [`PreparedRelease::run`] and of [`open`]; when there is noise, which is opened after all have
/// paid.
pub fn exact(
    stage: &dyn PreparedRelease,
    totals: &Shares,
    session: &mut Session,
) -> Result<Option<Vec<u128>>, Error> {
    let (plan, holders) = (stage.plan(), stage.holders());
    if plan.is_noised() {
        return Err(Error::misuse("a release with noise is held, paid for and then opened"));
    }
    let mut coins = session.fork_seed("no coins").into_rng();
    let entered = Entered::new(plan, totals, session.me(), &mut coins)?;
    let shares = stage.run(&entered, &mut DrawnNoise::none(), session)?;
    let bits = session.step("release", |s| s.step("open", |s| open(plan, holders, &shares, s)))?;
    Ok(bits.map(|bits| plan.values(&bits)))
}

/// Cost of [`exact`]. Exact, but for the turn that an answer right after the last message of the engine is.
#[must_use]
pub fn price_exact(stage: &dyn PreparedRelease) -> Cost {
    let release = stage.price().cost;
    let participants = release.sent.len();
    release + price(stage.plan(), stage.holders(), participants)
}

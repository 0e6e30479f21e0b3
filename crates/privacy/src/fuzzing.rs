//! A small release, for tests of this crate and for the crate `fuzzing`.

use crate::cut_and_choose::setup;
use crate::hold;
use crate::ledger::{Debit, Ledger};
use base::{Error, PartyId};
use engine::OutputShares;
use net::{Identity, Session};
use program::lower::{Lowering, NoiseSource, NoisedAt, ReleasePlan, WordKind, lower_release};
use program::{Class, MechanismKind, Program, ProgramBuilder, ValueType, VerifierPolicy};
use release::choose::{Draw, NoiseContext, Setup};
use release::gaussian::DiscreteGaussian;
use release::rational::ratio;
use std::sync::Mutex;

/// A release that is held, paid for and opened, of shares that were computed before, among owners with these
/// keys.
///
/// # Errors
/// What the peer said wrong, and those of the ledger.
pub fn hold(
    session: &mut Session,
    plan: &ReleasePlan,
    left: OutputShares,
    (debit, identity): (Debit, &Identity),
    keys: Vec<String>,
    ledger: Ledger,
) -> Result<(), Error> {
    let holders = (0..plan.parties as u8).map(PartyId).collect();
    let (id, ledger) = (debit.release_id, Mutex::new(ledger));
    let owner = Some(hold::OwnerPayment { debit, identity, keys });
    let release =
        hold::HeldRelease { plan, common: [3; 32], id, law: [4; 32], holders, ledger: &ledger, owner };
    release.run(session, |_| Ok(left)).map(|_| ())
}

/// Two disjoint counts for the first party: its arm 1 or 2, with an outcome of the second party's.
///
/// # Panics
/// Never: the numbers are valid.
#[must_use]
pub fn counts() -> Program {
    let [viewer, other] = [0, 1].map(PartyId);
    let mut b = ProgramBuilder::new("counts", Class::Dp, ["registry", "hospitals"]);
    let arm = b.column("arm", ValueType::u(2), Some(viewer));
    let outcome = b.column("outcome", ValueType::BIT, Some(other));
    let cells = [1, 2].map(|which| {
        let constant = b.constant(which, ValueType::u(2));
        let inside = b.eq(arm, constant);
        let both = b.and(inside, outcome);
        b.sum(both, ValueType::u(32))
    });
    let rho = ratio(1, 200);
    let m = b.mechanism(viewer, &rho, MechanismKind::Gaussian(cells.to_vec()));
    b.release();
    for output in 0..2 {
        let noised = b.noised(m, output);
        b.reveal(&format!("cell {output}"), viewer, noised);
    }
    b.finish()
}

/// The release of [`counts`] to its viewer, with so many candidates of noise, and what both sides agree on of
/// them.
///
/// # Errors
/// When there are too few candidates.
pub fn candidates(count: usize, context: NoiseContext) -> Result<(ReleasePlan, Setup), Error> {
    let program = counts();
    let audit = program::verify(&program, &VerifierPolicy::default(), 9)?;
    let sigma2 = |at: NoisedAt| {
        let charge = audit.charges.iter().find(|charge| charge.mechanism == at.mechanism);
        let sigma2 = charge.and_then(|charge| charge.sigma2(at.output as usize));
        sigma2.ok_or_else(|| Error::misuse("this mechanism has no variance of its own"))
    };
    let width = |at: NoisedAt| {
        let law = sigma2(at).and_then(|sigma2| DiscreteGaussian::new(&sigma2)).expect("a variance");
        u8::try_from(law.width()).expect("a few bits")
    };
    let owners = program.fold_owners();
    let how = Lowering { noise: NoiseSource::Candidates(count, &width), ..Lowering::exact(&owners) };
    let plan = lower_release(&program, context.viewer.into(), &how)?;
    let draws = plan.words.iter().filter_map(|word| match word.kind {
        WordKind::Candidate(at, 0) => {
            Some(sigma2(at).map(|sigma2| Draw { sigma2, width: word.width.into() }))
        }
        _ => None,
    });
    let draws = draws.collect::<Result<Vec<_>, Error>>()?;
    Ok((plan, setup(context, draws, count)?))
}

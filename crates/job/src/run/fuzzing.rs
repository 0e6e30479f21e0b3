//! What the crate `fuzzing` feeds with bytes: decoders and first words that nobody else calls from outside.

use super::spine;
use crate::data::Identifiers;
use crate::hold;
use crate::ledger::{Debit, Ledger};
use crate::prepare::Checked;
use crate::report::Disclosed;
use crate::study::Study;
use base::{Error, PartyId};
use engine::OutputShares;
use net::{Identity, Session};
use program::lower::ReleasePlan;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Reads a kept spine as party 0.
pub fn spine(path: PathBuf, study: &Study) {
    let _ = spine::Kept::read(path, study, PartyId(0)).map(|kept| kept.disclosed());
}

/// The bytes of a kept spine of two rows.
///
/// # Panics
/// When it cannot be written.
#[must_use]
pub fn made_spine(path: &Path, study: &Study) -> Vec<u8> {
    let mut identifiers = Identifiers::default();
    [b"ann", b"bob"].iter().for_each(|name| identifiers.push(&name[..]));
    let made = spine::Kept::new(path.to_owned(), [7; 32], &Disclosed::default(), &identifiers, &[1, 0]);
    made.write(study, PartyId(0)).and_then(|()| spine::read(path)).expect("it is written and read")
}

/// The first words of a session.
///
/// # Errors
/// What the peer said wrong, and those of the ledger.
pub fn agree(
    session: &mut Session,
    checked: &Checked,
    identity: &Identity,
    ledger: Ledger,
) -> Result<(), Error> {
    super::agree::first_words(session, checked, identity, &Mutex::new(ledger))
}

/// A release that is held, paid for and opened, of shares that were computed before, among owners with these keys.
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
    let owner = Some(hold::Owner { debit, identity, keys });
    let release = hold::Release { plan, common: [3; 32], id, law: [4; 32], holders, ledger: &ledger, owner };
    release.run(session, |_| Ok(left)).map(|_| ())
}

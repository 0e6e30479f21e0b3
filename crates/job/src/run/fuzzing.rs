//! What the crate `fuzzing` feeds with bytes: decoders and first words that nobody else calls from outside.

use super::spine;
use crate::prepare::Checked;
use base::{Error, PartyId};
use data::RowKeys;
use net::{Identity, Session};
use privacy::ledger::Ledger;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use study::Study;

/// Reads a kept spine as party 0.
pub fn spine(path: PathBuf, study: &Study) {
    let _ = spine::KeptSpine::read(path, study, PartyId(0)).map(|kept| kept.sizes());
}

/// The bytes of a kept spine of two rows.
///
/// # Panics
/// When it cannot be written.
#[must_use]
pub fn made_spine(path: &Path, study: &Study) -> Vec<u8> {
    let mut identifiers = RowKeys::default();
    [b"ann", b"bob"].iter().for_each(|name| identifiers.push(&name[..]));
    let made = spine::KeptSpine::new(
        path.to_owned(),
        [7; 32],
        &matching::MatchSizes::default(),
        &identifiers,
        &[1, 0],
    );
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

//! The first words of a session: data-set tags, and whether both sides already hold the answer.

use crate::ledger::{AnswerKey, Ledger, release_id};
use crate::prepare::Checked;
use base::{Error, PartyId};
use net::Session;
use std::sync::{Arc, Mutex};

/// What both sides now know.
pub(super) struct Agreement {
    /// Tags of the data sets, in party order: equal for equal data of one party, and nothing else can be read off them.
    pub tags: [[u8; 32]; 2],
    /// Where this party's answer is stored.
    pub answer: AnswerKey,
    /// This party's stored answer.
    pub stored: Option<String>,
    /// Whether both sides have theirs: then there is nothing to run.
    pub both_stored: bool,
    study: [u8; 32],
}

impl Agreement {
    /// Names one viewer's release: the same study and data give the same name on every run, so that a rerun
    /// continues the same release and is not charged twice.
    pub fn release_id(&self, viewer: PartyId) -> [u8; 32] {
        release_id(&self.study, &self.tags, viewer)
    }
}

/// Exchanges program hashes and data-set tags, then whether the answer is stored.
pub(super) fn agree(
    session: &mut Session,
    checked: &Checked,
    ledger: &Arc<Mutex<Ledger>>,
    tag: [u8; 32],
) -> Result<Agreement, Error> {
    session.step("agree", |session| {
        let (me, peer) = (session.me(), session.me().other());
        let program = checked.built.program.hash();
        let mut theirs = [0; 64];
        session.link(peer).exchange(&[program, tag].concat(), &mut theirs)?;
        let (their_program, their_tag) = theirs.split_at(32);
        if their_program != program {
            return Err(Error::input(
                "the two sides built different programs from the same study: they run different versions of tacit",
            ));
        }
        let mut tags = [tag; 2];
        tags[peer.index()].copy_from_slice(their_tag);
        let answer = AnswerKey {
            study: *checked.hash.as_bytes(),
            program,
            my_tag: tag,
            peer_tag: tags[peer.index()],
            party: me,
        };
        let stored = {
            let ledger = ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))?;
            ledger.answer(&answer)?
        };
        let mut both = [0];
        session.link(peer).exchange(&[u8::from(stored.is_some())], &mut both)?;
        let both_stored = stored.is_some() && both == [1];
        Ok(Agreement { tags, answer, stored, both_stored, study: *checked.hash.as_bytes() })
    })
}

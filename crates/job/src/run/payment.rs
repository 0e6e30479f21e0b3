//! What an owner pays for a release: the debits of its ledger, and its side of noise from candidates.

use super::agree::Agreement;
use crate::prepare::Checked;
use base::{Error, PartyId};
use net::Session;
use num_traits::Zero;
use privacy::cut_and_choose::{self, CandidateNoise};
use privacy::hold;
use privacy::ledger::{Debit, Ledger, PUBLIC, attempt_id};
use privacy::scales::Scales;
use program::Viewer;
use program::lower::ReleasePlan;
use release::Rational;
use release::choose::{CutAndChooseSide, NoiseContext};
use std::sync::{Arc, Mutex};
use study::party::PartySetup;

/// One party's ledger, and what was agreed on with whom.
pub(crate) struct Payment<'a> {
    pub(super) party: &'a PartySetup,
    pub(super) checked: &'a Checked,
    pub(super) ledger: &'a Arc<Mutex<Ledger>>,
    pub(super) agreement: &'a Agreement,
}

impl Payment<'_> {
    /// What the ledger books for a viewer's release of candidates.
    pub fn candidates_debit(&self, viewer: PartyId, rho: Rational) -> Result<Debit, Error> {
        let release_id = self.agreement.release_id(viewer);
        Ok(Debit { release_id, ..self.number_debit(viewer.into(), rho)? })
    }

    /// What the ledger books for a release whose noise is drawn inside: towards all others who see it. How
    /// far the noise is from its law is what the study says before anything is known of its rows.
    pub fn number_debit(&self, viewer: Viewer, rho: Rational) -> Result<Debit, Error> {
        let (me, parties) = (self.checked.me, &self.checked.study.parties);
        let others: Vec<&str> =
            self.checked.roster.parties().filter(|p| *p != me).map(|p| &*parties[p.index()].key).collect();
        let viewers = match viewer.only() {
            Some(party) => parties[party.index()].key.clone(),
            None => [&others[..], &[PUBLIC]].concat().join(" "),
        };
        Ok(Debit {
            release_id: self.agreement.number_id(viewer),
            rho,
            tau: self.checked.built.distance_to(viewer),
            protects: viewer.only() != Some(me),
            ..self.nothing(viewers, others.join(" "))?
        })
    }

    /// A debit of nothing, for viewers and towards peers with these keys.
    pub fn nothing(&self, viewer_key: String, peer_key: String) -> Result<Debit, Error> {
        Ok(Debit {
            lineage: self.party.lineage()?.to_owned(),
            viewer_key,
            peer_key,
            study: *self.checked.hash.as_bytes(),
            my_tag: self.agreement.tags[self.checked.me.index()],
            peer_tag: self.agreement.answer.peer_tag,
            release_id: [0; 32],
            rho: Rational::zero(),
            budget: self.party.policy.budget.clone(),
            total: self.party.policy.total.clone(),
            period: self.party.policy.period(),
            delta: Rational::zero(),
            most_delta: Rational::zero(),
            tau: Rational::zero(),
            agreed: self.party.policy.agreed.clone(),
            protects: true,
        })
    }

    /// What this party is charged for a release whose noise is drawn inside, and signs.
    ///
    /// # Errors
    /// When the party file names no lineage.
    pub fn number(&self, plan: &ReleasePlan, scales: &Scales) -> Result<hold::OwnerPayment<'_>, Error> {
        let debit = self.number_debit(plan.viewer, scales.charge(plan.viewer).clone())?;
        let debit = Debit { tau: scales.distance(plan), ..debit };
        let keys = self.checked.study.parties.iter().map(|member| member.key.clone()).collect();
        Ok(hold::OwnerPayment { debit, identity: &self.checked.identity, keys })
    }

    /// This party's side of a release of candidates.
    ///
    /// # Errors
    /// When its setup is out of range.
    pub fn candidates(
        &self,
        plan: &ReleasePlan,
        scales: &Scales,
        candidates: u32,
        session: &mut Session,
    ) -> Result<CandidateNoise, Error> {
        let viewer = plan.viewer.only().ok_or_else(|| Error::misuse("candidates are for one viewer"))?;
        let release = self.agreement.release_id(viewer);
        let context = NoiseContext {
            study: *self.checked.hash.as_bytes(),
            release,
            // One attempt of a release is one session: a resumed run continues the same transcript.
            session: attempt_id(&release, self.agreement.attempts[viewer.index()]),
            data: self.agreement.tags.to_vec(),
            viewer,
            drawer: viewer.other(),
        };
        let setup = cut_and_choose::setup(context, scales.candidates(plan), candidates as usize)?;
        let debit = self.candidates_debit(viewer, scales.charge(plan.viewer).clone())?;
        let side = if debit.protects { CutAndChooseSide::Drawer } else { CutAndChooseSide::Checker };
        let rng = session.fork_seed("noise").into_rng();
        Ok(CandidateNoise::new(side, setup, self.ledger.clone(), debit, rng))
    }
}

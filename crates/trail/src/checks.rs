//! What consents, debits and the other side's file say about each other.

use crate::export::SignedTrail;
use base::Error;
use net::identity::KeyFingerprint;
use num_traits::Zero;
use privacy::ledger::{EntryRow, PUBLIC};
use release::Rational;
use release::rational::{parse, shown};
use serde::Serialize;
use statements::ProposalRecord;
use std::collections::BTreeMap;

/// Two sides' files of the same studies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedTrails {
    /// Statements that both hold.
    pub both: usize,
    /// Statements that this side holds and the other's file does not: it may be older.
    pub here: usize,
    /// The other way round.
    pub there: usize,
    /// Signatures on debits that both hold.
    pub signatures: usize,
}

/// Checks that every debit on a study that was agreed on here is within the consent: of all debits of one
/// study towards one viewer, what was given back aside, the sum. How many debits have a consent; those of
/// studies that were run without a service have none.
///
/// # Errors
/// The first study whose debits come to more than what was consented to.
pub fn check_consents(debits: &[EntryRow], proposals: &[ProposalRecord]) -> Result<usize, Error> {
    let mut charged: BTreeMap<[&str; 3], (Rational, usize)> = BTreeMap::new();
    for debit in debits.iter().filter(|debit| debit.protects && !debit.given_back) {
        let seen = |viewer: &&str| *viewer == PUBLIC || debit.peer_key.split(' ').any(|peer| peer == *viewer);
        for viewer in debit.viewer_key.split(' ').filter(seen) {
            let spent = charged.entry([&debit.study, viewer, &debit.peer_key]).or_default();
            let rho =
                parse(&debit.exact_rho).ok_or_else(|| Error::input("a debit has no number as its rho"))?;
            *spent = (&spent.0 + rho, spent.1 + 1);
        }
    }
    let mut agreed = 0;
    for ([study, viewer, peers], (rho, count)) in charged {
        let about = |record: &&ProposalRecord| record.study().full() == study;
        let bounds = proposals.iter().filter(about).map(|record| bound(record, peers, viewer));
        // Each consent is to one answer; a study that was proposed twice was consented to twice.
        let Some(most) = bounds.reduce(|one, other| one + other) else { continue };
        if rho > most {
            return Err(Error::input(format!(
                "the ledger charged {} for study {} to viewer {viewer}, and the consents are to {} at most",
                shown(&rho),
                study.get(..12).unwrap_or(study),
                shown(&most)
            )));
        }
        agreed += count;
    }
    Ok(agreed)
}

/// The most that this organisation, which is none of its peers, has consented to that a viewer is charged.
fn bound(record: &ProposalRecord, peers: &str, viewer: &str) -> Rational {
    let own = |party: &KeyFingerprint| !peers.split(' ').any(|peer| peer == party.to_string());
    let terms = record.parties().iter().position(own).and_then(|place| record.terms(place));
    let names = |key: &Option<KeyFingerprint>| key.map_or_else(|| PUBLIC.to_owned(), |key| key.to_string());
    let mut charges = terms.into_iter().flat_map(|terms| &terms.charges);
    let charge = charges.find(|charge| names(&charge.viewer) == viewer);
    charge.and_then(|charge| parse(&charge.rho)).unwrap_or_else(Rational::zero)
}

/// Compares what two organisations hold of the proposals that both are parties of: one chain of an author is
/// the beginning of the other, and of one number both have the same signatures.
///
/// # Errors
/// The first statement or signature that differs, with the author.
pub fn compare(here: &SignedTrail, there: &SignedTrail) -> Result<ComparedTrails, Error> {
    let mut found = ComparedTrails { both: 0, here: 0, there: 0, signatures: 0 };
    let others = there.proposals()?;
    for own in here.proposals()? {
        let Some(other) = others.iter().find(|other| other.id() == own.id()) else { continue };
        for (place, author) in own.parties().iter().enumerate() {
            let (mine, theirs) = (own.chain(place), other.chain(place));
            if let Some(at) =
                (0..mine.len().min(theirs.len())).find(|at| mine[*at].digest() != theirs[*at].digest())
            {
                return Err(Error::input(format!(
                    "{author} has said two things under number {at} on study {}: one to each side. Both are \
                     signed by it",
                    own.study()
                )));
            }
            found.both += mine.len().min(theirs.len());
            found.here += mine.len().saturating_sub(theirs.len());
            found.there += theirs.len().saturating_sub(mine.len());
        }
    }
    let (Some(mine), Some(theirs)) = (&here.ledger, &there.ledger) else { return Ok(found) };
    for one in &mine.signatures {
        let same = |other: &&privacy::ledger::SignatureRow| {
            (&other.number, &other.signer) == (&one.number, &one.signer)
        };
        let Some(other) = theirs.signatures.iter().find(same) else { continue };
        if (&other.text, &other.signature) != (&one.text, &one.signature) {
            return Err(Error::input(format!(
                "{} has signed two things about the number {}: one is in each ledger",
                one.signer,
                &one.number[..12.min(one.number.len())]
            )));
        }
        found.signatures += 1;
    }
    Ok(found)
}

//! What consents, debits and the other side's file say about each other.

use crate::export::SignedTrail;
use base::Error;
use net::identity::KeyFingerprint;
use privacy::ledger::{EntryRow, PUBLIC};
use release::Rational;
use release::rational::{parse, shown};
use serde::Serialize;
use statements::ProposalRecord;
use std::collections::BTreeMap;

/// Two sides' files of the same studies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComparedTrails {
    /// Who signed the other side's file.
    pub signer: Option<String>,
    /// Statements that both hold.
    pub both: usize,
    /// Statements that this side holds and the other's file does not: it may be older.
    pub here: usize,
    /// The other way round.
    pub there: usize,
    /// Proposals of which only this side holds anything, though the other is a party.
    pub proposals_here: usize,
    /// The other way round; of all parties where this side is no signed file.
    pub proposals_there: usize,
    /// Signatures on debits that both hold.
    pub signatures: usize,
}

/// Checks that every debit on a study that was agreed on here is within the consent: of all debits of one
/// study towards one viewer, what was given back aside, the sums of rho and of delta. How many debits have a
/// consent; those of studies that were run without a service have none. `own` is whose ledger it is; none
/// where nothing says so but the proposals and debits themselves.
///
/// # Errors
/// The first study whose debits come to more than what was consented to; or where nobody can tell whose
/// ledger it is.
pub fn check_consents(
    debits: &[EntryRow],
    proposals: &[ProposalRecord],
    own: Option<KeyFingerprint>,
) -> Result<usize, Error> {
    // Who only computes as a server charges nothing.
    if !debits.iter().any(|debit| debit.protects) {
        return Ok(0);
    }
    let Some(own) = own.or_else(|| only_own(debits, proposals)) else {
        return match proposals.is_empty() {
            true => Ok(0),
            false => Err(Error::input(
                "proposals and debits do not tell whose ledger this is: verify the file that `tacit ledger \
                 export --out` writes, which names who signed it",
            )),
        };
    };
    let mut charged: BTreeMap<[&str; 2], ([Rational; 2], usize)> = BTreeMap::new();
    for debit in debits.iter().filter(|debit| debit.protects && !debit.given_back) {
        let seen = |viewer: &&str| *viewer == PUBLIC || debit.peer_key.split(' ').any(|peer| peer == *viewer);
        for viewer in debit.viewer_key.split(' ').filter(seen) {
            // What sizes cost is a sum of fractions, and has more digits than a statement may hold.
            let exact = [&debit.exact_rho, &debit.exact_delta].map(|text| text.parse::<Rational>());
            let [Ok(rho), Ok(delta)] = exact else {
                return Err(Error::input("a debit has no numbers as its rho and delta"));
            };
            let (spent, count) = charged.entry([&debit.study, viewer]).or_default();
            *spent = [&spent[0] + rho, &spent[1] + delta];
            *count += 1;
        }
    }
    let mut agreed = 0;
    for ([study, viewer], (spent, count)) in charged {
        let about = |record: &&ProposalRecord| record.study().full() == study;
        let bounds = proposals.iter().filter(about).filter_map(|record| bound(record, own, viewer));
        // Each consent is to one answer; a study that was proposed and run twice was consented to twice.
        let Some(most) = bounds.reduce(|[rho, delta], [more, deltas]| [rho + more, delta + deltas]) else {
            continue;
        };
        for ((what, spent), most) in ["rho", "delta"].into_iter().zip(&spent).zip(&most) {
            if spent > most {
                return Err(Error::input(format!(
                    "the ledger charged {} ({what}) for study {} to viewer {viewer}, and the consents are to \
                     {} at most",
                    shown(spent),
                    study.get(..12).unwrap_or(study),
                    shown(most)
                )));
            }
        }
        agreed += count;
    }
    Ok(agreed)
}

/// The one owner of data in all proposals that is nobody's peer in the debits.
fn only_own(debits: &[EntryRow], proposals: &[ProposalRecord]) -> Option<KeyFingerprint> {
    let (first, others) = proposals.split_first()?;
    let is_peer = |party: &KeyFingerprint| {
        let name = party.to_string();
        debits.iter().any(|debit| debit.peer_key.split(' ').any(|peer| peer == name))
    };
    let everywhere = |party: &&KeyFingerprint| others.iter().all(|record| record.parties().contains(party));
    let owners = first.owners();
    let mut own = owners.iter().filter(everywhere).filter(|party| !is_peer(party));
    own.next().filter(|_| own.next().is_none()).copied()
}

/// The most rho and delta that an organisation has consented to that a viewer is charged; nothing of a
/// proposal of which it began no run, or to which it did not consent.
fn bound(record: &ProposalRecord, own: KeyFingerprint, viewer: &str) -> Option<[Rational; 2]> {
    let place = record.parties().iter().position(|party| *party == own)?;
    let terms = record.terms(place).filter(|_| record.view().begun_anew(place) > 0)?;
    let names = |key: &Option<KeyFingerprint>| key.map_or_else(|| PUBLIC.to_owned(), |key| key.to_string());
    let charge = terms.charges.iter().find(|charge| names(&charge.viewer) == viewer);
    let most = charge.map(|charge| [&charge.rho, &charge.delta].map(|text| parse(text).unwrap_or_default()));
    Some(most.unwrap_or_default())
}

/// How many proposals of one side the other does not have, though it is a party, as far as it is known.
fn lacking(some: &[ProposalRecord], others: &[ProposalRecord], other: Option<KeyFingerprint>) -> usize {
    let concerns = |record: &&ProposalRecord| other.is_none_or(|other| record.parties().contains(&other));
    let lacks = |record: &&ProposalRecord| others.iter().all(|other| other.id() != record.id());
    some.iter().filter(concerns).filter(lacks).count()
}

/// Compares what two organisations hold of the proposals that both are parties of: one chain of an author is
/// the beginning of the other, and of one number both have the same signatures.
///
/// # Errors
/// The first statement or signature that differs, with the author.
pub fn compare(here: &SignedTrail, there: &SignedTrail) -> Result<ComparedTrails, Error> {
    let mut found = ComparedTrails::default();
    let (ours, others) = (here.proposals()?, there.proposals()?);
    found.signer = there.organisation().map(|by| by.to_string());
    found.proposals_here = lacking(&ours, &others, there.organisation());
    found.proposals_there = lacking(&others, &ours, here.organisation());
    for own in ours {
        let Some(other) = others.iter().find(|other| other.id() == own.id()) else { continue };
        if (own.study(), own.parties()) != (other.study(), other.parties()) {
            let (one, two) = (own.study(), other.study());
            return Err(Error::input(format!("the studies {one} and {two} are proposed under one name")));
        }
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

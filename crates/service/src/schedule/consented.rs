//! What was consented to, held against what runs do: the charges, the matches and the data.

use super::job::folder;
use super::{Look, SERVICE};
use crate::serving::NO_DATA;
use crate::settings::DataSet;
use crate::store::{OwnConsent, RecordedAct, RunRow};
use base::{Error, PartyId};
use page::numbers::counted;
use privacy::ledger::Ledger;
use release::rational::{Rational, parse, ratio, shown};
use statements::{Act, ProposalRecord, Said, SignedStatement};
use std::path::Path;
use study::StudyFile;
use study::party::{AgreedBounds, AgreedCharge, PartySettings};

/// Why no run begins where what was consented to is charged.
pub const BUDGET: &str = "budget";
/// Why no run begins at a server that has computed as often as it consented to.
pub const RUNS: &str = "runs";

/// What holds a run: kind and code as the others are told, and why.
pub struct SpentConsent {
    /// Whose turn it is.
    pub kind: &'static str,
    /// A word.
    pub code: &'static str,
    /// In a sentence for people here.
    pub why: String,
}

/// The bounds of the own consent, as a run's party file has them; none where there is no consent.
///
/// # Errors
/// When a charge of the statement is no number.
pub fn bounds(
    record: &ProposalRecord,
    me: usize,
    own: &OwnConsent,
    set: &DataSet,
) -> Result<Option<AgreedBounds>, Error> {
    let said = record.chain(me).iter().map(SignedStatement::body);
    let mut given = said.filter(|body| matches!(body.said, Said::Consent(_)));
    let (Some(terms), Some(body)) = (record.terms(me), given.next()) else { return Ok(None) };
    let number = |text: &str| parse(text).ok_or_else(|| Error::misuse("a charge of a consent is a number"));
    let charge = |one: &statements::ChargeBound| {
        let viewer = one.viewer.map_or_else(|| AgreedCharge::PUBLIC.to_owned(), |viewer| viewer.to_string());
        Ok(AgreedCharge { viewer, rho: number(&one.rho)?, delta: number(&one.delta)? })
    };
    Ok(Some(AgreedBounds {
        charges: terms.charges.iter().map(charge).collect::<Result<_, Error>>()?,
        after: own.after,
        at: body.at_ms / 1_000,
        matches: terms.runs.into(),
        data: (!set.changes_allowed).then_some(own.taken.unwrap_or(own.tag)),
        lineage: own.lineage.clone(),
        rows: set.least_rows,
    }))
}

/// Whether the next run of a proposal is none begun anew: this side holds its rows matched, or its half of a
/// match, or an answer or a number that the ledger takes up; or no match has begun since the consent. Where
/// sizes cost something the charges say that; where they are exact, that no match of any study has begun
/// here.
pub fn goes_on(
    jobs: &Path,
    ledger: &Path,
    (record, me): (&ProposalRecord, usize),
    runs: &[RunRow],
    bounds: &AgreedBounds,
) -> Result<bool, Error> {
    if !runs.iter().any(|run| run.begun_ms.is_some()) {
        return Ok(false);
    }
    let party = folder(jobs, record).join("party.toml");
    // What cannot be read cannot be gone on with.
    let kept = std::fs::read_to_string(&party).is_ok_and(|text| {
        let setup = PartySettings::default().over_text_of(&party, &text).and_then(PartySettings::complete);
        setup.and_then(|setup| job::kept::is_under_way(&setup, &record.study().full())).unwrap_or(false)
    });
    if kept {
        return Ok(true);
    }
    let (ledger, study) = (Ledger::look(ledger)?, record.study());
    if ledger.takes_up(study.as_bytes())? {
        return Ok(true);
    }
    if ledger.matched_since(bounds.at)? && sizes(record, me)? == [ratio(0, 1), ratio(0, 1)] {
        return Ok(false);
    }
    bounds.charges.iter().try_fold(true, |free, charge| {
        let [rho, delta] = ledger.charged_since(study.as_bytes(), bounds, &charge.viewer)?;
        Ok(free && rho == ratio(0, 1) && delta == ratio(0, 1))
    })
}

/// Rho and delta of the sizes that a match discloses; nothing where it discloses exact ones.
fn sizes(record: &ProposalRecord, me: usize) -> Result<[Rational; 2], Error> {
    let file = StudyFile::parse("the study", &record.proposed().text)?;
    let key = record.parties()[me].to_string();
    let place = file.first().parties.iter().position(|party| party.key == key).unwrap_or_default();
    let charge = privacy::dummies::charge(file.first(), PartyId(u8::try_from(place).unwrap_or(u8::MAX)))?;
    Ok(charge.map_or_else(|| [ratio(0, 1), ratio(0, 1)], |charge| [charge.rho, charge.delta]))
}

/// Why one more run may not begin: with what this study was charged since the consent, the most of that run
/// would be more than was consented to; or, at a server, it would compute once more than that. No run begins
/// then until a person says so.
///
/// # Errors
/// When ledger or store cannot be read, or the store not be written.
pub fn is_spent(look: &Look<'_>, goes_on: bool) -> Result<Option<SpentConsent>, Error> {
    let Some(own) = look.house.store().own_consent(&look.row.id)? else { return Ok(None) };
    if own.data == NO_DATA {
        return has_computed(look);
    }
    let Some(set) = look.settings.data.get(&own.data) else { return Ok(None) };
    let Some(bounds) = bounds(&look.record, look.me, &own, set)? else { return Ok(None) };
    let sizes = sizes(&look.record, look.me)?;
    let next = NextRun { sizes, goes_on, begun: look.view.begun_anew(look.me), runs: bounds.matches };
    let ledger = Ledger::look(&look.settings.ledger)?;
    for most in &bounds.charges {
        let spent = ledger.charged_since(look.record.study().as_bytes(), &bounds, &most.viewer)?;
        let Some([what, spent, asked, most]) = next.beyond(most, &spent) else { continue };
        let why = format!(
            "what was consented to is charged: {spent} of {what} {most} towards a viewer, and one more run \
             needs {asked}. Whoever wants it proposes the study again"
        );
        let act = RecordedAct {
            by: SERVICE,
            what: "run held: what was consented to is charged",
            to: &look.row.study.full(),
            at: look.now_ms / 1_000,
        };
        look.house.store().hold(&act, &look.row.id, Some(BUDGET), 0)?;
        look.house.notify("failed", &look.row.id);
        return Ok(Some(SpentConsent { kind: BUDGET, code: "charges", why }));
    }
    Ok(None)
}

/// The same at a server. It counts by what its own processes said, and not by the owners' word that they go
/// on with what they hold: nothing that it holds would show it. The owners read why it takes part no more.
fn has_computed(look: &Look<'_>) -> Result<Option<SpentConsent>, Error> {
    let Some(terms) = look.record.terms(look.me) else { return Ok(None) };
    let (store, id) = (look.house.store(), &look.row.id);
    if store.computed_runs(id)? < u64::from(terms.runs) {
        return Ok(None);
    }
    let runs = counted(terms.runs.into(), "run");
    let why = format!(
        "this server has computed in {runs}, as many as it consented to. Whoever wants another one proposes \
         the study again"
    );
    let what = "run held: a server has computed as often as was consented to";
    let (to, at) = (look.row.study.full(), look.now_ms / 1_000);
    store.hold(&RecordedAct { by: SERVICE, what, to: &to, at }, id, Some(RUNS), 0)?;
    let mut noted = look.record.chain(look.me).iter().map(|one| &one.body().said);
    let note = Said::Note(why.clone());
    if !noted.any(|said| *said == note) && look.view.may(look.me, Act::Note).is_ok() {
        look.say(note)?;
    }
    look.house.notify("failed", id);
    Ok(Some(SpentConsent { kind: RUNS, code: "used-up", why }))
}

/// What is known of the next run.
struct NextRun {
    /// Rho and delta of the sizes of a match.
    sizes: [Rational; 2],
    goes_on: bool,
    /// Runs that were begun anew.
    begun: u8,
    /// How many may be.
    runs: u64,
}

impl NextRun {
    /// What of rho or delta is more than the `most` towards a viewer, after what is `spent`: which of them,
    /// what is spent, what the run needs, and the most.
    fn beyond(&self, most: &AgreedCharge, spent: &[Rational; 2]) -> Option<[String; 4]> {
        let nothing = ratio(0, 1);
        let [sizes, size_delta] = match most.viewer == AgreedCharge::PUBLIC {
            true => [nothing.clone(), nothing.clone()],
            false => self.sizes.clone(),
        };
        let paid = crate::agree::matches_paid(u8::try_from(self.runs).unwrap_or(u8::MAX));
        let release = (&most.rho - &sizes * &paid).max(nothing.clone());
        // Each match that was charged has the same delta, so what else was charged is the release.
        let matches = if size_delta == nothing { nothing.clone() } else { (&spent[1] / &size_delta).floor() };
        let is_released = spent[0] > &sizes * &matches;
        let pays = matches == nothing || (!self.goes_on && self.begun >= 2);
        let release = if is_released { nothing.clone() } else { release };
        let (rho, delta) = match pays {
            true => (release + sizes, size_delta),
            false => (release, nothing),
        };
        if &spent[0] + &rho > most.rho {
            return Some(["rho".to_owned(), shown(&spent[0]), shown(&rho), shown(&most.rho)]);
        }
        let small = |value: &Rational| page::numbers::power(&release::rational::small(value));
        (&spent[1] + &delta > most.delta)
            .then(|| ["delta".to_owned(), small(&spent[1]), small(&delta), small(&most.delta)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of 0.1 to everybody; sizes of 0.01 and 10⁻³ to the peer.
    fn most(viewer: &str, runs: u64) -> AgreedCharge {
        let paid = u64::max(runs - 1, 1);
        let (rho, delta) = match viewer == AgreedCharge::PUBLIC {
            true => (ratio(1, 10), ratio(0, 1)),
            false => (ratio(10 + paid, 100), ratio(paid, 1000)),
        };
        AgreedCharge { viewer: viewer.to_owned(), rho, delta }
    }

    fn is_held(viewer: &str, (runs, begun): (u64, u8), goes_on: bool, spent: [u64; 2]) -> bool {
        let sizes = [ratio(1, 100), ratio(1, 1000)];
        let spent = [ratio(spent[0], 100), ratio(spent[1], 1000)];
        NextRun { sizes, goes_on, begun, runs }.beyond(&most(viewer, runs), &spent).is_some()
    }

    #[test]
    fn one_more_run_fits_into_what_was_consented_to_or_does_not_begin() {
        for viewer in ["peer", AgreedCharge::PUBLIC] {
            assert!(!is_held(viewer, (1, 0), false, [0, 0]), "the first run is what was consented to");
        }
        // Its match is charged; it broke off before the release.
        assert!(!is_held("peer", (1, 1), true, [1, 1]) && !is_held("peer", (2, 1), false, [1, 1]));
        // All is charged, and the peer has broken off before the end: taken up, it costs nothing.
        assert!(
            !is_held("peer", (1, 1), true, [11, 1]) && !is_held(AgreedCharge::PUBLIC, (1, 1), true, [10, 0])
        );
        // A third match is charged again, which three runs pay and two do not.
        assert!(!is_held("peer", (3, 2), false, [11, 1]) && is_held("peer", (2, 2), false, [11, 1]));
        // The peer's data changed: the sizes were charged anew, and the release does not fit any more.
        assert!(is_held("peer", (1, 1), true, [2, 2]), "its release would be beyond");
    }
}

//! Who begins runs. Everything that was agreed lies in the store; this looks what this organisation is to do
//! next about each open proposal, and does one step of it. A kill between any two steps loses nothing: the
//! next look finds the same store.
//!
//! A run is a process of its own, which ends with the service. What it keeps of its progress belongs to the
//! proposal, so the run after one that broke off goes on from there.

mod consented;
mod decided;
mod job;
mod meeting;
mod settle;
#[cfg(test)]
mod tests;

pub use consented::bounds as consent_bounds;
pub use job::{Jobs, party_file};
pub use meeting::{JobPlace, RunOrder};

use crate::agree::BY_RULE;
use crate::link::{now_ms, otherwise, peer_of};
use crate::serving::{NO_DATA, serving_rules};
use crate::settings::{AutoStudy, DataSet, HouseSettings};
use crate::store::{
    OwnConsent, ProposalFilter, ProposalRow, RecordedAct, RunRow, SERVICE, STOPPED, Speaker, UNHEARD,
};
use crate::web::House;
use base::Error;
use net::KeyFingerprint;
use settle::{broke_off, end};
use statements::{ProposalRecord, ProposalState, ProposalView, RunOffer, Said};
use std::collections::HashMap;
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};
use study::StudyFile;

/// How often the store is looked at where nothing changed in it.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is asked whether something changed.
const ASK: Duration = Duration::from_millis(100);
/// How often it is looked whether a proposal or consent ran out.
const RUNS_OUT: Duration = Duration::from_secs(60);
/// How long an offer of a run holds.
const OFFER_MS: u64 = 10 * 60_000;
/// What people are told who may not see which rule.
const AGAINST_RULES: &str = "the rules here do not allow it any more";
/// Kind, code and message where an offer ran out.
const NOT_READY: (&str, &str, &str) = ("peer", "not-ready", "not all parties were ready in time");
/// Why no run begins where the data are others than those of the consent.
const DATA: &str = "data";
/// What people read of a study of which parties were told different things.
pub const OTHERWISE: &str = "a party has said something else here than to another party: withdraw the study, \
                             and speak with both";
/// Proposals of a look.
const PROPOSALS: usize = 1_000;

/// Looks and acts as long as the process lives.
pub fn run(house: Arc<House>) {
    std::thread::spawn(move || {
        let mut changes = house.store().changes();
        let (mut looked, mut expired, mut version) = (None::<Instant>, None::<Instant>, 0);
        loop {
            // Another process may have said something.
            if let Ok(now) = house.store().version()
                && now != version
            {
                version = now;
                house.look_at_rules();
                house.store().ring();
            }
            let changed = changes.has_changed().unwrap_or(true);
            if changed || looked.is_none_or(|at| at.elapsed() >= LOOK) {
                changes.mark_unchanged();
                looked = Some(Instant::now());
                let all = expired.is_none_or(|at| at.elapsed() >= RUNS_OUT);
                if all {
                    expired = Some(Instant::now());
                }
                if let Err(error) = look(&house, all) {
                    eprintln!("warning: the service's store: {error}");
                }
            }
            std::thread::sleep(ASK);
        }
    });
}

/// One step for each proposal where this organisation is to do something; of `all` open ones also whether
/// their time ran out.
pub(crate) fn look(house: &Arc<House>, all: bool) -> Result<(), Error> {
    if house.identity().is_none() {
        return Ok(());
    }
    settle::loosen(house)?;
    leave(house)?;
    let filter = ProposalFilter { open: true, ours: !all, ..ProposalFilter::default() };
    let (mut after, mut seen) = (None, 0);
    loop {
        let rows = house.store().list(&filter, after)?;
        let Some(last) = rows.last() else { return Ok(()) };
        (after, seen) = (Some(last.row), seen + rows.len());
        // Who came first goes first: the list has the newest first.
        for row in rows.iter().rev() {
            if let Err(error) = step(house, row) {
                house.complain(&row.id, &error);
            }
        }
        if seen >= PROPOSALS {
            return Ok(());
        }
    }
}

/// Ends the processes of proposals that others have closed or frozen.
fn leave(house: &House) -> Result<(), Error> {
    for id in house.jobs().all() {
        if house.store().proposal(&id)?.is_some_and(|row| row.state.is_final()) {
            house.jobs().peer_left(&id);
        }
    }
    Ok(())
}

/// All that a step looks at.
struct Look<'a> {
    house: &'a Arc<House>,
    settings: Arc<HouseSettings>,
    row: &'a ProposalRow,
    record: ProposalRecord,
    view: ProposalView,
    me: usize,
    now_ms: u64,
}

impl<'a> Look<'a> {
    fn of(house: &'a Arc<House>, row: &'a ProposalRow) -> Result<Option<Self>, Error> {
        let (Some(record), Some(identity)) = (house.store().standing(&row.id)?, house.identity()) else {
            return Ok(None);
        };
        let Some(me) = record.place(&identity.fingerprint()) else { return Ok(None) };
        let (view, settings) = (record.view(), house.rules().settings);
        Ok(Some(Self { house, settings, row, record, view, me, now_ms: now_ms() }))
    }

    fn speaker(&self) -> Option<Speaker<'a>> {
        let identity = self.house.identity()?;
        Some(Speaker { by: SERVICE, identity, at_ms: self.now_ms })
    }

    fn say(&self, said: Said) -> Result<(), Error> {
        let Some(speaker) = self.speaker() else { return Ok(()) };
        self.house.store().say(speaker, &self.row.id, said).map(drop)
    }

    /// Whether a party has ended a run without an answer.
    fn has_left(&self, run: u32) -> bool {
        let mut said = self.view.standings.iter().filter_map(|party| party.runs().get(&run)?.ended);
        said.any(|outcome| !outcome.has_answer())
    }

    /// What the study says.
    fn file(&self) -> Result<StudyFile, Error> {
        StudyFile::parse("the study", &self.record.proposed().text)
    }

    /// How the parties meet.
    fn order<'f>(&self, file: &'f StudyFile) -> Result<RunOrder<'f>, Error> {
        RunOrder::of(file.first(), &self.record.parties()[self.me])
    }

    fn peers(&self) -> impl Iterator<Item = KeyFingerprint> + '_ {
        let me = self.record.parties()[self.me];
        self.record.parties().iter().copied().filter(move |party| *party != me)
    }
}

fn step(house: &Arc<House>, row: &ProposalRow) -> Result<(), Error> {
    let Some(look) = Look::of(house, row)? else { return Ok(()) };
    // A process that runs was begun after all were heard.
    if house.jobs().run_of(&row.id).is_none() && house.store().is_unheard(&row.id)? {
        return Ok(());
    }
    if decided::decides(&look)? {
        return Ok(());
    }
    if let Some(said) = look.record.runs_out(look.me, look.now_ms) {
        return look.say(said);
    }
    let newest = look.view.newest();
    let mine = look.view.standings[look.me].runs().last_key_value().map(|(run, said)| (*run, *said));
    match mine {
        Some((run, said)) if said.ended.is_none() => match (house.jobs().run_of(&row.id), said.started) {
            (Some(_), _) => {
                if row.held.as_deref() == Some(STOPPED) {
                    house.jobs().stop(&row.id);
                } else if look.has_left(run) {
                    house.jobs().peer_left(&row.id);
                }
                Ok(())
            }
            (None, _) if is_over(house, &row.id, run)? => settle::tell(house, &row.id, run),
            // The service ended while the process ran.
            (None, true) => broke_off(house, &row.id, run),
            (None, false) => offered(&look, run, newest),
        },
        _ => may_offer(&look),
    }
}

/// Whether a run is over here, whatever was said of it.
fn is_over(house: &House, id: &statements::ProposalId, run: u32) -> Result<bool, Error> {
    Ok(house.store().runs(id)?.iter().any(|row| row.run == run && row.ended_ms.is_some()))
}

/// This side is ready for a run: it begins when all are, unless a person said no.
fn offered(look: &Look<'_>, run: u32, newest: u32) -> Result<(), Error> {
    let ends = |kind, code, why: &str| end(look.house, &look.row.id, run, (kind, code, why));
    match look.row.held.as_deref() {
        Some(STOPPED) => return settle::stopped(look.house, &look.row.id, run),
        Some(kind) => return ends(kind, "held", "a person has to say that it goes on"),
        None => {}
    }
    if let Some(why) = against_rules(look)? {
        return ends("policy", "rules", &why);
    }
    if let Some(why) = data_changed(look)? {
        return ends("data", "changed", &why);
    }
    let left = look.has_left(run);
    let offers = offers(look, run);
    // By the own clock alone.
    let until = offers[look.me].map_or(0, |offer| offer.latest_ms);
    if left || newest > run || until < look.now_ms {
        let (kind, code, late) = NOT_READY;
        return ends(kind, code, if left { "another party left the run before it began" } else { late });
    }
    match offers.into_iter().collect::<Option<Vec<RunOffer>>>() {
        Some(_) if delays(look).is_some() || has_no_place(look)?.is_some() => Ok(()),
        // A port is the peer's word: the next offer may have another.
        Some(offers) => match wrong_port(look, &offers)? {
            Some(why) => end(look.house, &look.row.id, run, ("peer", "not-ready", &why)),
            None => match consented::is_spent(look, offers[look.me].goes_on)? {
                Some(spent) => ends(spent.kind, spent.code, &spent.why),
                None if otherwise::is_agreed(look.house, &look.record, run)? => begin(look, run, &offers),
                // Each says once more how far it has what all have said.
                None => Ok(()),
            },
        },
        None => Ok(()),
    }
}

/// What is wrong with the port of a party to which this one goes.
fn wrong_port(look: &Look<'_>, offers: &[RunOffer]) -> Result<Option<String>, Error> {
    let file = look.file()?;
    look.order(&file)?.wrong_port(&look.settings, &look.record, offers)
}

/// What each party said when it was ready for a run.
fn offers(look: &Look<'_>, run: u32) -> Vec<Option<RunOffer>> {
    let of = |place: usize| {
        look.record.chain(place).iter().rev().find_map(|one| match &one.body().said {
            Said::Ready(offer) if offer.run == run => Some(*offer),
            _ => None,
        })
    };
    (0..look.record.parties().len()).map(of).collect()
}

fn begin(look: &Look<'_>, run: u32, offers: &[RunOffer]) -> Result<(), Error> {
    let (house, id) = (look.house, look.row.id);
    let written = job::write(
        &look.settings,
        &house.jobs_folder(),
        &job::JobOrder {
            record: &look.record,
            me: look.me,
            run,
            offers,
            consent: &house.store().own_consent(&id)?.ok_or_else(|| {
                Error::input("the data of the own consent are not in this store: it is an older copy")
            })?,
        },
    );
    let folder = match written {
        Ok(folder) => folder,
        Err(error) => return end(house, &id, run, ("input", "setup", &error.to_string())),
    };
    let nonces = offers.iter().map(|offer| offer.nonce).collect();
    let Some(speaker) = look.speaker() else { return Ok(()) };
    house.store().start_run(speaker, &id, run, nonces)?;
    job::start(house, id, run, folder, job::longest(look));
    Ok(())
}

/// Offers the next run where everything that stands in the consents and in the own rules lets it begin.
fn may_offer(look: &Look<'_>) -> Result<(), Error> {
    if settle::asks(look)? {
        return Ok(());
    }
    let Some(run) = look.view.next_run(look.me) else { return Ok(()) };
    let agreed = look.view.standings.iter().all(statements::Standing::has_consented);
    if !agreed || waits_for(look, run, false)?.is_some() {
        return Ok(());
    }
    let goes_on = goes_on(look)?;
    let may = look.view.may(look.me, statements::Act::Ready { run, goes_on });
    if may.is_err() || consented::is_spent(look, goes_on)?.is_some() {
        return Ok(());
    }
    let (Some(speaker), Some(port)) = (look.speaker(), port(look)?) else { return Ok(()) };
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|_| Error::misuse("no randomness"))?;
    let offer =
        RunOffer { run, goes_on, nonce, earliest_ms: look.now_ms, latest_ms: look.now_ms + OFFER_MS, port };
    look.house.store().offer_run(speaker, &look.row.id, offer)?;
    if look.row.next_ms > look.now_ms {
        look.house.jobs().was_early(look.row.id, look.now_ms);
    }
    Ok(())
}

/// Whether the next run is none begun anew.
fn goes_on(look: &Look<'_>) -> Result<bool, Error> {
    let store = look.house.store();
    let Some(own) = store.own_consent(&look.row.id)? else { return Ok(false) };
    if own.data == NO_DATA {
        // A server holds nothing: what the owners hold decides.
        return Ok(store.runs(&look.row.id)?.iter().any(|run| run.begun_ms.is_some()));
    }
    let Some(set) = look.settings.data.get(&own.data) else { return Ok(false) };
    let Some(bounds) = consented::bounds(&look.record, look.me, &own, set)? else { return Ok(false) };
    let (runs, jobs) = (store.runs(&look.row.id)?, look.house.jobs_folder());
    consented::goes_on(&jobs, &look.settings.ledger, (&look.record, look.me), &runs, &bounds)
}

/// A free port of the own range; 0 where the others listen: of two because this side dials, of more because
/// it comes last. None: all are in use.
fn port(look: &Look<'_>) -> Result<Option<u16>, Error> {
    let file = look.file()?;
    let order = look.order(&file)?;
    let goes = match order.is_of_two() {
        true => look.peers().all(|peer| look.house.links().of(&peer).dialled),
        false => !order.is_gone_to(),
    };
    let (Some(link), false) = (&look.settings.link, goes) else { return Ok(Some(0)) };
    let taken: Vec<u16> = look.house.store().open_runs()?.iter().map(|row| row.port).collect();
    let host = meeting::host(&link.listen).unwrap_or("0.0.0.0");
    Ok(free_port(link.run_ports.clone(), &taken, host))
}

/// A port that no run has, nor any other program.
fn free_port(mut ports: RangeInclusive<u16>, taken: &[u16], host: &str) -> Option<u16> {
    ports.find(|port| !taken.contains(port) && TcpListener::bind(format!("{host}:{port}")).is_ok())
}

/// Whether neither of two parties of a run listens, for which this side would now be ready.
fn nobody_listens(look: &Look<'_>, run: u32, port: u16) -> bool {
    let mut others = offers(look, run).into_iter().flatten();
    look.record.parties().len() == 2 && port == 0 && others.any(|offer| offer.port == 0)
}

/// What stands against a run that could begin now, in words for people; none: nothing. Which rule it is,
/// only who `sees_rules` is told: its words name columns, bounds and peers.
///
/// # Errors
/// When the store cannot be read.
fn waits_for(look: &Look<'_>, run: u32, sees_rules: bool) -> Result<Option<String>, Error> {
    let Look { house, row, now_ms, .. } = look;
    if house.store().is_unheard(&row.id)? {
        return Ok(Some(UNHEARD.to_owned()));
    }
    if let Some(why) = &row.held {
        let why = match why.as_str() {
            consented::BUDGET => "what was consented to is charged; whoever wants it proposes it again",
            otherwise::TOLD => OTHERWISE,
            consented::RUNS => "this server has computed as often as it consented to; propose it again",
            why => why,
        };
        return Ok(Some(format!("a person has to say that it goes on: {why}")));
    }
    if look.view.state() == ProposalState::Asks && !look.view.awaited().contains(&look.me) {
        return Ok(Some("another party's operator has to allow a further attempt first".to_owned()));
    }
    let ready = |party: &statements::Standing| party.runs().contains_key(&run);
    // Who waited for this side need not wait longer; once an hour, or it would take all turns.
    let is_early = look.view.standings.iter().any(ready) && house.jobs().may_be_early(&row.id, *now_ms);
    if row.next_ms > *now_ms && !is_early {
        return Ok(Some("the next try is later".to_owned()));
    }
    if let Some(why) = against_rules(look)? {
        return Ok(Some(if sees_rules { why } else { AGAINST_RULES.to_owned() }));
    }
    if let Some(why) = delays(look) {
        return Ok(Some(why));
    }
    if let Some(why) = has_no_place(look)? {
        return Ok(Some(why.to_owned()));
    }
    match port(look)? {
        None => return Ok(Some("all run_ports are in use".to_owned())),
        Some(port) if nobody_listens(look, run, port) => {
            return Ok(Some("neither side has a port for the run".to_owned()));
        }
        Some(_) => (),
    }
    data_changed(look)
}

/// Why there is no place for one more process. What is only offered holds none, so a peer that never comes
/// takes none. The last of several is not for a peer that has all others, where there are other peers.
fn has_no_place(look: &Look<'_>) -> Result<Option<&'static str>, Error> {
    let (most, store) = (look.settings.policy.max_jobs, look.house.store());
    let runs = store.open_runs()?;
    let begun: Vec<&RunRow> = runs.iter().filter(|run| run.begun_ms.is_some()).collect();
    if begun.len() as u64 >= most {
        return Ok(Some("other runs go first"));
    }
    let share = most.saturating_sub(1).max(1);
    if look.settings.peers.len() < 2 || (begun.len() as u64) < share {
        return Ok(None);
    }
    for peer in look.peers() {
        let is_with = |run: &&&RunRow| store.is_party(&run.proposal, peer).unwrap_or(true);
        if begun.iter().filter(is_with).count() as u64 >= share {
            return Ok(Some("another run with this organisation goes first"));
        }
    }
    Ok(None)
}

/// What stands against a run and may pass by itself.
fn delays(look: &Look<'_>) -> Option<String> {
    let Look { house, settings, now_ms, .. } = look;
    if house.rules().standing != crate::RulesStanding::Accepted {
        return Some("service.toml was changed and not accepted".to_owned());
    }
    if let Some(windows) = look.record.windows()
        && !windows.iter().any(|window| (window.from_ms..window.until_ms).contains(now_ms))
    {
        return Some("the hours that all agreed to".to_owned());
    }
    if settings.policy.quiet_hours.iter().any(|quiet| quiet.contains(now_ms / 1_000)) {
        return Some("quiet hours".to_owned());
    }
    if house.log_is_being_read() {
        return Some("the audit log is still being held against what others have signed of it".to_owned());
    }
    look.peers().find_map(|peer| {
        let name = peer_of(settings, &peer).map_or_else(|| peer.short(), |(name, _)| name.to_owned());
        match house.links().of(&peer) {
            _ if house.log_is_behind_for(&peer) => {
                Some(format!("the audit log here is not the one that {name} has signed"))
            }
            link if link.since_ms.is_none() => Some(format!("there is no connection to {name}")),
            link if link.ahead_ms.is_none() => {
                Some(format!("the clocks here and at {name} have not been compared yet"))
            }
            link if link.is_skewed() => {
                Some(format!("the clocks here and at {name} are more than five minutes apart"))
            }
            link if link.older_store => {
                Some(format!("this store is an older copy than what {name} has of it"))
            }
            _ => None,
        }
    })
}

/// What the rules that hold now say against a study that was agreed on by those of then.
fn against_rules(look: &Look<'_>) -> Result<Option<String>, Error> {
    let Some(own) = look.house.store().own_consent(&look.row.id)? else {
        return Ok(Some("the own consent is not in this store".to_owned()));
    };
    let file = look.file()?;
    let mut all = match own.data.as_str() {
        NO_DATA => serving_rules(&look.settings, &file, look.record.parties()[look.me]),
        data => {
            let Some(set) = look.settings.data.get(data) else {
                return Ok(Some(format!("there is no [data.{data}] in service.toml any more")));
            };
            of_data(look, set, &file)
        }
    };
    all.extend(against_terms(look, &own));
    let proposer = look.record.parties()[look.record.proposer()];
    if let Some((name, peer)) = peer_of(&look.settings, &proposer) {
        let kind = crate::policy::kind_of(file.first());
        if !peer.kinds.iter().any(|allowed| allowed == kind) {
            all.push(format!("{name} may propose no studies of kind {kind} (kinds)"));
        }
    }
    let named = |auto: &AutoStudy| auto.names(&look.row.study, &own.data);
    if own.by == BY_RULE && !look.settings.policy.auto.iter().any(named) {
        all.push("it was consented to by policy.auto, which does not name it any more".to_owned());
    }
    Ok((!all.is_empty()).then(|| format!("{AGAINST_RULES}: {}", all.join("; "))))
}

/// What the rules that hold now, and what is kept of the own consent, say against its terms.
fn against_terms(look: &Look<'_>, own: &OwnConsent) -> Vec<String> {
    let Some(terms) = look.record.terms(look.me) else { return Vec::new() };
    let mut all = Vec::new();
    all.extend(crate::policy::delta_beyond(&look.settings.policy, &terms.charges));
    if !own.opens(&terms.data) {
        let why = "what is kept here of the own consent, data and lineage, is not what was signed: withdraw \
                   the study, and have it proposed again";
        all.push(why.to_owned());
    }
    match (&own.lineage, look.settings.data.get(&own.data)) {
        (Some(agreed), Some(set)) if *agreed != set.lineage => all.push(format!(
            "it would be charged to the lineage {}, and what was consented to is charged to {agreed}",
            set.lineage
        )),
        _ => {}
    }
    all
}

/// The same of the data set with which this organisation takes part.
fn of_data(look: &Look<'_>, set: &DataSet, file: &StudyFile) -> Vec<String> {
    let key = look.record.parties()[look.me].to_string();
    let Some(me) = file.parties.iter().find(|party| party.key == key) else {
        return vec!["this organisation is no party of the study".to_owned()];
    };
    let mut all = crate::weigh::rules(&look.settings, set, file, me);
    let terms = look.record.terms(look.me);
    if set.two_person && terms.is_some_and(|terms| terms.persons < 2) {
        all.push("one steward consented, and two have to (two_person)".to_owned());
    }
    let seal = terms.and_then(|terms| terms.seal.as_ref());
    let is_sealed = seal.is_some_and(|seal| set.steward_keys.contains(&seal.steward()));
    if !set.steward_keys.is_empty() && !is_sealed {
        all.push("none of the keys that steward_keys names has signed the consent".to_owned());
    }
    all
}

/// Whether the data are those of the consent.
fn data_changed(look: &Look<'_>) -> Result<Option<String>, Error> {
    let Some(own) = look.house.store().own_consent(&look.row.id)? else {
        return Ok(Some("the own consent is not in this store".to_owned()));
    };
    if own.data == NO_DATA {
        return Ok(None);
    }
    let allowed = look.settings.data.get(&own.data).is_some_and(|set| set.changes_allowed);
    if allowed || crate::findings::version(&look.settings, &own.data).ok() == Some(own.version) {
        return Ok(None);
    }
    let act = RecordedAct {
        by: SERVICE,
        what: "run held: data changed",
        to: &look.row.study.full(),
        at: look.now_ms / 1_000,
    };
    look.house.store().hold(&act, &look.row.id, Some(DATA), 0)?;
    look.house.notify("data", &look.row.id);
    Ok(Some("the data changed since consent".to_owned()))
}

/// Why the next run of a proposal does not begin now; none: it does, or there is none to begin.
///
/// # Errors
/// When the store cannot be read.
pub fn why_waiting(house: &Arc<House>, row: &ProposalRow, sees_rules: bool) -> Result<Option<String>, Error> {
    let Some(look) = Look::of(house, row)? else { return Ok(None) };
    let agreed = look.view.standings.iter().all(statements::Standing::has_consented);
    match look.view.next_run(look.me).filter(|_| agreed && !look.view.state().is_final()) {
        Some(run) => waits_for(&look, run, sees_rules),
        None => Ok(awaits_words(&look)),
    }
}

/// Of whom a run for which all are ready waits to hear how far it has what was said.
fn awaits_words(look: &Look<'_>) -> Option<String> {
    let (run, said) = look.view.standings[look.me].runs().last_key_value()?;
    let is_offered = !said.started && said.ended.is_none() && !look.view.state().is_final();
    if !is_offered || offers(look, *run).iter().any(Option::is_none) {
        return None;
    }
    let name = |peer: KeyFingerprint| match peer_of(&look.settings, &peer) {
        Some((name, _)) => name.to_owned(),
        None => peer.short(),
    };
    let awaited = otherwise::awaited(look.house, &look.record, *run);
    let mut names: Vec<String> = awaited.into_iter().map(name).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("all are ready, and of {names} it is not known yet that all have the same of what was said")
    })
}

/// When the next run of a proposal begins after one that has failed now, the last of `runs`: soon, then later
/// and later.
fn next_try(runs: &[RunRow], now_ms: u64) -> u64 {
    const WAITS: [u64; 5] = [2, 60, 300, 1_800, 7_200];
    let over = runs.iter().rev().skip_while(|run| run.outcome.is_none());
    let before = over.take_while(|run| run.outcome.as_deref() == Some("failed")).count();
    now_ms + 1_000 * WAITS[before.min(WAITS.len() - 1)]
}

/// Runs by proposal.
type RunningJobs = HashMap<statements::ProposalId, job::RunningJob>;

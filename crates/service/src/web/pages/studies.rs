//! Studies that were proposed, by this organisation or to it.

use crate::link::peer_of;
use crate::roles::{Action, HouseRole, StudySubject, Subject};
use crate::settings::HouseSettings;
use crate::store::{PAGE, ProposalFilter, ProposalRow, SeenBy};
use crate::web::answer::Answer;
use crate::web::shell::{page, table, time};
use crate::web::visit::{Stop, Visit};
use net::KeyFingerprint;
use page::form::{button, choice, form, hidden, tick};
use page::markup::{Markup, element, text, words};
use statements::{ProposalRecord, ProposalState};
use study::StudyHash;

/// A study that somebody may know of.
pub struct StudySeen {
    /// What lists have of it.
    pub row: ProposalRow,
    /// All that was said about it.
    pub record: ProposalRecord,
    /// How this side calls the parties, in the order of their places.
    pub names: Vec<String>,
    /// The place of this organisation.
    pub me: Option<usize>,
    /// Whether its report was given to who asks.
    pub given: bool,
}

impl StudySeen {
    /// What decides who may do what with it.
    pub fn subject(&self) -> Subject<'_> {
        Subject::Study(self.as_subject())
    }

    /// What of it decides who may do what.
    pub fn as_subject(&self) -> StudySubject<'_> {
        let (by, data) = (self.row.by.as_str(), self.row.data.as_deref());
        StudySubject { by, data, given: self.given }
    }

    /// Where its pages are.
    pub fn path(&self) -> String {
        path(&self.row.study)
    }

    /// Which proposal of the study it is, as forms name it.
    pub fn proposal(&self) -> String {
        base::hex(&self.row.id.0)
    }

    /// A form of a deed, which is done to this proposal alone; `to` is where under its path it is sent.
    pub fn form(
        &self,
        visit: &Visit<'_>,
        to: &str,
        deed: &str,
        parts: impl IntoIterator<Item = Markup>,
    ) -> Markup {
        let proposal = self.proposal();
        let word = visit.word(deed, &crate::web::door::subject(&visit.parts, &proposal));
        let parts = parts.into_iter().chain([hidden("proposal", &proposal)]);
        form(&format!("{}/{to}", self.path()), word.as_deref(), parts)
    }

    /// The names of the other parties.
    pub fn others(&self) -> String {
        let others = self.names.iter().enumerate().filter(|(place, _)| Some(*place) != self.me);
        others.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

fn path(study: &StudyHash) -> String {
    format!("/studies/{}", study.full())
}

/// How this organisation calls who has a key.
pub fn name_of(settings: &HouseSettings, us: Option<KeyFingerprint>, key: &KeyFingerprint) -> Option<String> {
    if us == Some(*key) {
        return Some(settings.name.clone());
    }
    peer_of(settings, key).map(|(name, _)| name.to_owned())
}

/// The study of the path, for a deed: it is done to the proposal that was on the page, or not at all.
pub fn acted_on(visit: &Visit<'_>) -> Result<StudySeen, Stop> {
    let study = seen(visit)?;
    if visit.field("proposal") == study.proposal() { Ok(study) } else { Err(Stop::Stale) }
}

/// The study of the path, as far as this person may know of it.
pub fn seen(visit: &Visit<'_>) -> Result<StudySeen, Stop> {
    seen_by_hash(visit, visit.part("hash"))
}

/// A study by its hash, as far as this person may know of it.
pub fn seen_by_hash(visit: &Visit<'_>, hash: &str) -> Result<StudySeen, Stop> {
    let hash = base::unhex(hash).map(StudyHash::from_bytes).ok_or(Stop::Missing)?;
    let row = visit.house.store.proposal_of(&hash)?.ok_or(Stop::Missing)?;
    seen_as(visit, row)
}

/// One proposal of a study, as far as this person may know of it.
pub fn seen_as(visit: &Visit<'_>, row: ProposalRow) -> Result<StudySeen, Stop> {
    let store = &visit.house.store;
    let given = store.is_given(&row.id, &visit.signed()?.session.account)?;
    let record = store.standing(&row.id)?.ok_or(Stop::Missing)?;
    let us = visit.us();
    let called = |key: &KeyFingerprint| {
        // Their own word for themselves is not ours: a stranger is a key.
        name_of(visit.settings(), us, key).unwrap_or_else(|| key.short())
    };
    let names = record.parties().iter().map(called).collect();
    let me = us.and_then(|us| record.place(&us));
    let seen = StudySeen { row, record, names, me, given };
    if visit.may(Action::SeeStudy, seen.subject()) { Ok(seen) } else { Err(Stop::Missing) }
}

/// Whether people of this organisation have to do something: what all have agreed to runs by itself, unless
/// something holds it.
pub fn waits_for_people(row: &ProposalRow) -> bool {
    row.ours && (!row.decided || row.held.is_some() || row.state == ProposalState::Asks)
}

/// A state in a few words.
pub fn state_words(state: ProposalState) -> &'static str {
    match state {
        ProposalState::Empty => "nothing is proposed",
        ProposalState::Proposed => "to be decided",
        ProposalState::Consented => "consented to, not by all",
        ProposalState::Scheduled => "agreed, will run",
        ProposalState::Starting => "about to begin",
        ProposalState::Running => "running",
        ProposalState::Failed => "broke off",
        ProposalState::Half => "answered, not for all",
        ProposalState::Asks => "an operator has to allow it",
        ProposalState::Closed => "refused or withdrawn",
        ProposalState::Answered => "answered",
        ProposalState::Frozen => "frozen",
    }
}

/// What of all studies this person sees; nothing says all.
fn seen_by<'v>(visit: &'v Visit<'_>) -> Result<Option<SeenBy<'v>>, Stop> {
    let signed = visit.signed()?;
    let grants = &signed.actor.grants;
    if grants.iter().any(|grant| grant.role == HouseRole::Operator && grant.data.is_none()) {
        return Ok(None);
    }
    let knows = |data: &&String| {
        let study = StudySubject { data: Some(data), ..StudySubject::default() };
        visit.may(Action::SeeStudy, Subject::Study(study))
    };
    let data = visit.settings().data.keys().filter(knows).cloned().collect();
    let undecided = visit.may(Action::SeeStudy, Subject::Study(StudySubject::default()));
    Ok(Some(SeenBy { account: &signed.session.account, data, undecided }))
}

/// A list of those that this person may know of.
pub fn listed(
    visit: &Visit<'_>,
    filter: ProposalFilter<'_>,
    after: Option<u64>,
) -> Result<Vec<ProposalRow>, Stop> {
    let seen_by = seen_by(visit)?;
    Ok(visit.house.store.list(&ProposalFilter { seen_by, ..filter }, after)?)
}

/// Those of them that are over, of which something was said since a time.
pub fn listed_over(visit: &Visit<'_>, since_ms: u64, most: usize) -> Result<Vec<ProposalRow>, Stop> {
    let filter = ProposalFilter { seen_by: seen_by(visit)?, ..ProposalFilter::default() };
    Ok(visit.house.store.over_since(&filter, since_ms, most)?)
}

/// How many there are.
pub fn counted(visit: &Visit<'_>, filter: ProposalFilter<'_>) -> Result<u64, Stop> {
    let seen_by = seen_by(visit)?;
    Ok(visit.house.store.count(&ProposalFilter { seen_by, ..filter })?)
}

/// The title of a study as a link to it.
pub fn link(row: &ProposalRow) -> Markup {
    element("a", &[("href", &path(&row.study))], [element("bdi", &[], [text(&row.title)])])
}

/// Who proposed a study.
pub fn proposer(visit: &Visit<'_>, row: &ProposalRow) -> String {
    let name = name_of(visit.settings(), visit.us(), &row.proposer).unwrap_or_else(|| row.proposer.short());
    if row.by.is_empty() { name } else { format!("{name} ({})", row.by) }
}

/// The list.
pub fn list(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let peer = visit.settings().peers.get(visit.field("peer")).map(|peer| peer.key);
    let state = ProposalState::named(visit.field("state"));
    let open = visit.field("open") == "yes";
    let filter = ProposalFilter { state, party: peer, open, ..ProposalFilter::default() };
    let rows = listed(visit, filter, visit.field("after").parse().ok())?;
    let mut parts = Vec::new();
    if visit.may(Action::Propose, Subject::House) {
        let link = element("a", &[("href", "/studies/new"), ("class", "button")], [text("Propose a study")]);
        parts.push(element("p", &[], [link]));
    }
    parts.push(filters(visit));
    if rows.is_empty() {
        parts.push(words("p", "", "There is no such study."));
        if !visit.may(Action::SeeStudy, Subject::Study(StudySubject::default())) {
            let home = element("a", &[("href", "/")], [text("Home")]);
            parts.push(element("p", &[], [text("Reports that were given to you are on "), home, text(".")]));
        }
        return Ok(page(visit, "Studies", parts));
    }
    let last = rows.last().map(|row| row.row).unwrap_or_default();
    let more = rows.len() == PAGE;
    let lines = rows.iter().map(|row| {
        let turn = if waits_for_people(row) { "yours" } else { "" };
        vec![
            link(row),
            text(&row.kind),
            element("bdi", &[], [text(proposer(visit, row))]),
            time(row.made_ms / 1_000),
            text(state_words(row.state)),
            text(turn),
        ]
    });
    let columns = ["Study", "Kind", "Proposed by", "On", "State", "Whose turn"];
    parts.push(table("The newest first", &columns, lines));
    if more {
        let chosen =
            |name: &str| (!visit.field(name).is_empty()).then(|| format!("&{name}={}", visit.field(name)));
        let chosen: String = ["peer", "state", "open"].iter().filter_map(|name| chosen(name)).collect();
        let next = format!("/studies?after={last}{chosen}");
        parts.push(element(
            "p",
            &[],
            [element("a", &[("href", &next), ("rel", "next")], [text("Older ones")])],
        ));
    }
    Ok(page(visit, "Studies", parts))
}

fn filters(visit: &Visit<'_>) -> Markup {
    let all = |label: &str| (String::new(), label.to_owned());
    let states = ProposalState::ALL.into_iter().filter(|state| *state != ProposalState::Empty);
    let states = states.map(|state| (state.name().to_owned(), state_words(state).to_owned()));
    let states: Vec<_> = [all("any")].into_iter().chain(states).collect();
    let peers = visit.settings().peers.keys().map(|name| (name.clone(), name.clone()));
    let peers: Vec<_> = [all("anybody")].into_iter().chain(peers).collect();
    let parts = [
        choice("state", "State", &states, visit.field("state")),
        choice("peer", "With", &peers, visit.field("peer")),
        tick("open", "Only those that are not over", visit.field("open") == "yes"),
        button("Show", ""),
    ];
    let place = [("method", "get"), ("action", "/studies"), ("class", "filters"), ("role", "search")];
    element("form", &place, parts)
}

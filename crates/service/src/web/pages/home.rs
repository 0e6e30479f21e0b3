//! The first page: what this person must do first.

use super::confirmations::may_confirm;
use super::news::news;
use super::studies::{counted, link, listed, proposer, state_words};
use crate::findings::DataFindings;
use crate::roles::{Action, StudySubject, Subject};
use crate::rules::RulesStanding;
use crate::settings::ServicePeer;
use crate::store::{ProposalFilter, ProposalRow};
use crate::web::answer::Answer;
use crate::web::checking::read;
use crate::web::shell::{page, places, section, time};
use crate::web::visit::{Stop, Visit};
use page::markup::{Markup, element, spans, text, words};
use statements::ProposalState;

/// Studies of each sort that are shown.
const SHOWN: usize = 10;

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeOwn, Subject::House)?;
    let todo = todo(visit)?;
    let waiting = waiting(visit)?;
    let list = match todo.is_empty() && waiting.is_empty() {
        true => words("p", "", "Nothing waits for you."),
        false => {
            let item = |(said, path, label): (String, String, &str)| {
                let link = element("a", &[("href", &path)], [text(label)]);
                element("li", &[], [text(format!("{said} ")), link])
            };
            let items = waiting.into_iter().chain(todo.into_iter().map(item));
            element("ul", &[("class", "todo")], items)
        }
    };
    let links = places(visit).into_iter().filter(|(path, _)| *path != "/");
    let links =
        links.map(|(path, label)| element("li", &[], [element("a", &[("href", path)], [text(label)])]));
    let links = element("ul", &[], links.collect::<Vec<Markup>>());
    let propose = visit.may(Action::Propose, Subject::House).then(|| {
        let link = [("href", "/studies/new"), ("class", "button")];
        element("p", &[], [element("a", &link, [text("Propose a study")])])
    });
    let mine = section("For you", [list].into_iter().chain(propose));
    let mine = element("div", &[("id", "for-you"), ("data-live", "")], [mine]);
    let news = if sees_studies(visit) { news(visit)? } else { None };
    let news = element("div", &[("id", "news"), ("data-live", "")], news);
    let going = element("div", &[("id", "going"), ("data-live", "")], going(visit)?);
    let given = given(visit)?.unwrap_or_default();
    Ok(page(visit, "Home", [mine, news, going, given, section("Where to go", [links])]))
}

/// Reports that somebody gave to this person.
fn given(visit: &Visit<'_>) -> Result<Option<Markup>, Stop> {
    let store = &visit.house.store;
    let mut items = Vec::new();
    for id in store.given_reports(&visit.signed()?.session.account)? {
        let Some(row) = store.proposal(&id)? else { continue };
        let study = StudySubject { by: &row.by, data: row.data.as_deref(), given: true };
        if visit.may(Action::ReadReport, Subject::Study(study)) {
            let path = format!("/studies/{}/report", row.study.full());
            let title = element("bdi", &[], [text(&row.title)]);
            items.push(element("li", &[], [element("a", &[("href", &path)], [title])]));
        }
    }
    Ok((!items.is_empty()).then(|| section("Reports for you", [element("ul", &[], items)])))
}

/// Whether this person sees any studies.
fn sees_studies(visit: &Visit<'_>) -> bool {
    visit.may(Action::SeeStudy, Subject::Study(StudySubject::default()))
}

/// Studies that this person decides on, or of which it is this organisation's turn.
fn waiting(visit: &Visit<'_>) -> Result<Vec<Markup>, Stop> {
    if !sees_studies(visit) {
        return Ok(Vec::new());
    }
    let filter = ProposalFilter { open: true, ours: true, ..ProposalFilter::default() };
    let mine = |row: &ProposalRow| {
        let study = StudySubject { by: &row.by, data: row.data.as_deref(), given: false };
        let action = if row.decided { Action::Run } else { Action::Decide };
        // What has been agreed runs by itself, unless something holds it.
        visit.may(action, Subject::Study(study)) && (!row.decided || row.held.is_some())
    };
    let rows = listed(visit, filter, None)?;
    let item = |row: &ProposalRow| {
        let what = match (row.decided, &row.held) {
            (false, _) => "Decide: ".to_owned(),
            (true, Some(why)) => format!("Held ({why}): "),
            (true, None) => "Your turn: ".to_owned(),
        };
        let from = element("bdi", &[], [text(proposer(visit, row))]);
        let parts =
            [text(what), link(row), text(", proposed by "), from, text(" on "), time(row.made_ms / 1_000)];
        element("li", &[], parts)
    };
    Ok(rows.iter().filter(|row| mine(row)).take(SHOWN).map(item).collect())
}

/// What goes on and what came of others, for who sees studies.
fn going(visit: &Visit<'_>) -> Result<Vec<Markup>, Stop> {
    if !sees_studies(visit) {
        return Ok(Vec::new());
    }
    let all = ProposalFilter::default;
    let open = listed(visit, ProposalFilter { open: true, ..all() }, None)?;
    let item = |row: &ProposalRow| {
        let mut parts = vec![link(row), text(format!(": {}", state_words(row.state)))];
        let runs =
            matches!(row.state, ProposalState::Starting | ProposalState::Running | ProposalState::Half);
        if runs {
            let path = format!("/studies/{}/run", row.study.full());
            parts.extend([text(", "), element("a", &[("href", &path)], [text("see how it goes")])]);
        }
        element("li", &[], parts)
    };
    let under_way = match open.is_empty() {
        true => words("p", "", "Nothing is under way."),
        false => element("ul", &[], open.iter().take(SHOWN).map(item)),
    };
    let of = |state| counted(visit, ProposalFilter { state: Some(state), ..all() });
    let (answered, closed) = (of(ProposalState::Answered)?, of(ProposalState::Closed)?);
    let studies = if answered == 1 { "study" } else { "studies" };
    let said = format!("{answered} {studies} answered, {closed} refused or withdrawn. ");
    let more = element("a", &[("href", "/studies")], [text("All studies")]);
    let over = element("p", &[], [text(said), more]);
    let mut parts = vec![section("Under way", [under_way]), section("Over", [over])];
    parts.extend(links(visit));
    Ok(parts)
}

/// How the links to other organisations stand.
fn links(visit: &Visit<'_>) -> Option<Markup> {
    let item = |(name, peer): (&String, &ServicePeer)| {
        let link = visit.house.links().of(&peer.key);
        let mut parts = vec![words("b", "", name)];
        match (link.since_ms, &link.last_error) {
            (Some(since), _) => parts.extend([text(": connected since "), time(since / 1_000)]),
            (None, Some((at, why))) => {
                let why = element("bdi", &[], spans(why));
                parts.extend([text(": no connection since "), time(at / 1_000), text(": "), why]);
            }
            (None, None) => parts.push(text(": no connection yet")),
        }
        if link.is_skewed() {
            parts.push(text("; the clocks are more than five minutes apart, so no run begins"));
        }
        element("li", &[], parts)
    };
    let peers = &visit.settings().peers;
    let items: Vec<Markup> = peers.iter().map(item).collect();
    (!items.is_empty()).then(|| section("Links", [element("ul", &[], items)]))
}

/// What waits for this person: what it is, where it is done, what the link says.
fn todo(visit: &Visit<'_>) -> Result<Vec<(String, String, &'static str)>, Stop> {
    let mut all = Vec::new();
    if visit.may(Action::ManageAccounts, Subject::House) {
        if visit.rules.standing != RulesStanding::Accepted {
            let said = "Accept what service.toml allows, on the machine: tacit service accept.".to_owned();
            all.push((said, "/rules".to_owned(), "Read the rules"));
        }
        let steward = |name: &String| visit.house.store.account(name, visit.now);
        for (data, set) in &visit.settings().data {
            for name in &set.stewards {
                if steward(name)?.is_none() {
                    let said = format!("{name} decides on {data} by service.toml, and has no account.");
                    all.push((said, "/accounts".to_owned(), "Add it"));
                }
            }
        }
    }
    if visit.may(Action::SeeRules, Subject::House) {
        for one in visit.house.store.waiting_changes(visit.now)? {
            if may_confirm(visit, &one)? {
                let said = format!("{} proposes: {}, {}.", one.by, one.change.words(), one.change.subject());
                all.push((said, "/confirmations".to_owned(), "Confirm or refuse"));
            }
        }
    }
    for data in visit.settings().data.keys() {
        if !visit.may(Action::CheckData, Subject::Data(data)) || visit.house.checking.has(data) {
            continue;
        }
        let newest = visit.house.store.checks_of(data, 1)?.pop();
        let path = format!("/data/{data}");
        match newest.map(|check| read(&check.found)) {
            None => all.push((format!("The data set {data} was never checked."), path, "Check it")),
            Some(Err(_)) => all.push((format!("The check of {data} failed."), path, "Look")),
            Some(Ok(DataFindings { problems, .. })) if !problems.is_empty() => {
                all.push((format!("Something stands against using {data}."), path, "Look"));
            }
            Some(Ok(_)) => (),
        }
    }
    Ok(all)
}

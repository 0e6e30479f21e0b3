//! What one person proposes and another one confirms.

use super::rules::{difference, unwritten};
use crate::changes::{AccessChange, AccountAccess, PendingChange, ProposedChange, RulesChange, is_weighty};
use crate::roles::{Action, Asker, Grant, Subject};
use crate::rules::write;
use crate::secrets::{SecretToken, TokenUse};
use crate::store::{AccountState, Confirmed};
use crate::web::answer::Answer;
use crate::web::shell::{page, prove_form, section, table, time, with_status};
use crate::web::visit::{Stop, Visit};
use axum::http::StatusCode;
use page::form::{button, form};
use page::markup::{Markup, element, text, words};

/// Decided ones that are shown.
const DECIDED: u32 = 20;

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let waiting = visit.house.store.waiting_changes(visit.now)?;
    let mut parts = Vec::new();
    if waiting.is_empty() {
        parts.push(words("p", "", "Nothing waits to be confirmed."));
    } else if !visit.signed()?.session.proven {
        parts.push(section("To decide", [prove_form(visit, &visit.path)]));
    }
    for one in &waiting {
        parts.push(section(&format!("Number {}", one.number), proposal(visit, one)?));
    }
    let decided = visit.house.store.decided_changes(DECIDED)?;
    let rows = decided.iter().filter_map(|one| {
        let (decision, at, by) = one.decided.as_ref()?;
        let what = format!("{}: {}", one.change.words(), one.change.subject());
        Some(vec![
            text(one.number.to_string()),
            text(what),
            text(&one.by),
            text(decision.name()),
            text(by),
            time(*at),
        ])
    });
    let columns = ["Number", "What", "Proposed by", "Decision", "By", "When"];
    if !decided.is_empty() {
        parts.push(section("Decided", [table("The newest first", &columns, rows.collect::<Vec<_>>())]));
    }
    Ok(page(visit, "To confirm", parts))
}

fn proposal(visit: &Visit<'_>, one: &PendingChange) -> Result<Vec<Markup>, Stop> {
    let told =
        [text(format!("Proposed by {}, ", one.by)), time(one.at), text("; it waits until "), time(one.until)];
    let mut parts = vec![element("p", &[], told.into_iter().chain([text(".")]))];
    match &one.change {
        ProposedChange::Access(change) => parts.extend(of_access(change, &one.by)),
        ProposedChange::Rules(change) => parts.extend(difference(visit, change)?),
    }
    let signed = visit.signed()?;
    if !signed.session.proven {
        return Ok(parts);
    }
    let number = one.number.to_string();
    let deed = |what: &str, deed: &str, label: &str| {
        let word = visit.word(deed, &number);
        let path = format!("/confirmations/{number}/{what}");
        form(&path, word.as_deref(), [button(label, &format!("number {number}"))])
    };
    if may_confirm(visit, one)? {
        parts.push(deed("confirm", "confirm", "Confirm"));
        if one.by != signed.actor.name {
            parts.push(deed("refuse", "turn down", "Refuse"));
        }
    }
    if one.by == signed.actor.name {
        parts.push(deed("refuse", "turn down", "Take it back"));
    } else if !may_confirm(visit, one)? {
        parts.push(words("p", "note", "It is for somebody else to confirm."));
    }
    Ok(parts)
}

fn of_access(change: &AccessChange, by: &str) -> Vec<Markup> {
    let account = &change.account;
    let what = match (&change.give, change.new) {
        (Some(grant), true) => format!("The new account {account} gets the role {}.", grant.words()),
        (Some(grant), false) => format!("{account} gets the role {}.", grant.words()),
        (None, _) => format!("{account} gets a new link in place of a lost password."),
    };
    let mut parts = vec![words("p", "", what)];
    if change.link.is_some() {
        let said = format!(
            "Ask {account} on a way that does not lead through {by}: whoever has the link from {by} and the \
             code that you get becomes {account}."
        );
        parts.push(words("p", "", said));
    }
    parts
}

/// Whether this person may confirm it, as far as the page can tell; the store decides.
pub fn may_confirm(visit: &Visit<'_>, one: &PendingChange) -> Result<bool, Stop> {
    let actor = &visit.signed()?.actor;
    let held = visit.house.store.access(one.change.subject())?;
    Ok((!actor.separate || one.by != actor.name) && one.change.is_for(actor, &held))
}

/// Whether it takes a second person here to give a role.
pub fn takes_two(visit: &Visit<'_>, grant: &Grant) -> Result<bool, Stop> {
    Ok(visit.signed()?.actor.separate && grant.role.is_weighty())
}

/// Proposes that an account is added, gets a role or a link, and says what comes next. With a link, the page
/// shows it, once: it holds from when the change is confirmed.
pub fn propose(visit: &Visit<'_>, account: &str, new: bool, give: Option<Grant>) -> Result<Answer, Stop> {
    let held = visit.house.store.access(account)?;
    // Who was a viewer until now could have been let in by one person alone.
    let link = (give.is_none() || !is_weighty(&held.grants)).then(SecretToken::generate).transpose()?;
    let hash = link.as_ref().map(|link| base::hex(&link.hash(TokenUse::Link)));
    let change =
        AccessChange { account: account.to_owned(), new, held: held.grants.clone(), give, link: hash };
    let mut parts = Vec::new();
    if let Some(link) = link {
        let url = format!("{}/enter/{}", visit.house.url(), link.text());
        let said = format!(
            "Then this link holds for 24 hours, with a code that whoever confirms it tells {account}. Give \
             {account} the link. It is not shown again."
        );
        parts.extend([words("p", "", said), words("p", "link", url)]);
    }
    offered(visit, &ProposedChange::Access(change), &held, parts)
}

/// Proposes other rules, and says what comes next.
pub fn offer(visit: &Visit<'_>, change: RulesChange) -> Result<Answer, Stop> {
    offered(visit, &ProposedChange::Rules(change), &AccountAccess::default(), Vec::new())
}

fn offered(
    visit: &Visit<'_>,
    change: &ProposedChange,
    held: &AccountAccess,
    more: Vec<Markup>,
) -> Result<Answer, Stop> {
    let able = able(visit, change, held)?;
    if able.is_empty() {
        let said = "Nobody else here could confirm this, so nothing was proposed. Roles and reports of data: \
                    a steward of these data. Operators: a steward of all data, or another operator. \
                    Rules: a steward what an operator proposes, and the other way round. The first people \
                    are added on the machine: tacit service account.";
        return refused(visit, said);
    }
    if visit.house.store.propose_change(&visit.signed()?.actor.name, change, visit.now)?.is_none() {
        return refused(visit, "Too many of your proposals wait already. Take some back first.");
    }
    let said = format!("A second person confirms this: {}. It waits for seven days.", able.join(" or "));
    let back = element("a", &[("href", "/confirmations")], [text("To what waits")]);
    let back = element("p", &[], [back]);
    Ok(page(visit, "Proposed", [words("p", "", said)].into_iter().chain(more).chain([back])))
}

fn refused(visit: &Visit<'_>, said: &str) -> Result<Answer, Stop> {
    Ok(with_status(visit, StatusCode::CONFLICT, "Nothing was proposed", [words("p", "", said)]))
}

/// Who could confirm a change that this person proposes.
fn able(visit: &Visit<'_>, change: &ProposedChange, held: &AccountAccess) -> Result<Vec<String>, Stop> {
    let own = &visit.signed()?.actor.name;
    let mut able = Vec::new();
    for account in visit.house.store.accounts(visit.now)? {
        let asker = Asker { name: account.name, grants: account.grants, separate: true };
        if account.state == AccountState::Active && asker.name != *own && change.is_for(&asker, held) {
            able.push(asker.name);
        }
    }
    Ok(able)
}

fn number(visit: &Visit<'_>) -> Result<i64, Stop> {
    visit.part("number").parse().map_err(|_| Stop::Missing)
}

/// Confirms a proposal, and shows the code that goes with its link.
pub fn confirm(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let house = visit.house;
    let file = |change: &RulesChange| write(&house.path, change);
    let made = house.store.confirm_change(&visit.signed()?.actor, number(visit)?, visit.now, &file);
    let made = match made {
        Ok(made) => made,
        Err(error) => return unwritten(visit, error),
    };
    let _ = house.rules.look(&house.store, visit.now);
    match made {
        Confirmed::Made(None) => Ok(Answer::go("/confirmations")),
        Confirmed::Made(Some(code)) => {
            let said = "Tell the person this code yourself, by telephone or face to face, and nobody else. \
                        The link is of no use without it. It is not shown again.";
            let back = element("a", &[("href", "/confirmations")], [text("To what waits")]);
            let parts = [words("p", "", said), words("p", "link", code.text()), element("p", &[], [back])];
            Ok(page(visit, "Confirmed", parts))
        }
        Confirmed::Gone => gone(visit),
        Confirmed::Denied => Err(Stop::Denied),
    }
}

fn gone(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let said = "It was decided already, waited too long, or what it is about is no longer as it was: the \
                person got or lost a role since. Then it has to be proposed anew.";
    Ok(with_status(visit, StatusCode::CONFLICT, "This no longer waits", [words("p", "", said)]))
}

/// Refuses a proposal, or takes back one's own.
pub fn turn_down(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    match visit.house.store.turn_down(&visit.signed()?.actor, number(visit)?, visit.now)? {
        true => Ok(Answer::go("/confirmations")),
        false => gone(visit),
    }
}

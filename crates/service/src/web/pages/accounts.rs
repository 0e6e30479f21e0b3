//! Accounts, for operators: adding them, giving and taking roles, links to sign in with.

use super::confirmations::{propose, takes_two};
use crate::names::{ACCOUNT_RULE, is_account_name};
use crate::roles::{Action, Grant, HouseRole, Subject};
use crate::secrets::SecretToken;
use crate::store::{Account, AccountState};
use crate::web::answer::Answer;
use crate::web::shell::{page, prove_form, section, table, time, with_status};
use crate::web::visit::{Stop, Visit};
use axum::http::StatusCode;
use page::form::{FormField, button, choice, form, hidden, mistakes};
use page::markup::{Markup, element, text, words};

/// All accounts.
pub fn list(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::ManageAccounts, Subject::House)?;
    Ok(page(visit, "Accounts", listed(visit, "", &[])?))
}

fn listed(visit: &Visit<'_>, name: &str, wrong: &[String]) -> Result<Vec<Markup>, Stop> {
    let all = visit.house.store.accounts(visit.now)?;
    let rows = all.iter().map(|account| {
        let path = format!("/accounts/{}", account.name);
        let link = element("a", &[("href", &path)], [text(&account.name)]);
        let signed_in = account.signed_in.map_or(text("never"), time);
        vec![link, text(roles(account)), text(account.state.words()), signed_in]
    });
    let columns = ["Name", "Roles", "State", "Last signed in"];
    let table = table("Everybody who can or could sign in", &columns, rows.collect::<Vec<_>>());
    if !visit.signed()?.session.proven {
        return Ok(vec![table, section("Add an account", [prove_form(visit, &visit.path)])]);
    }
    let (kind, fill, help) = ("text", "off", "1 to 40 of a-z, 0-9, dot, underscore and hyphen.");
    let name = FormField { name: "name", label: "Name", kind, fill, value: name, help }.markup();
    let parts = [name, role_choice(), data_choice(visit), button("Add account", "")];
    let word = visit.word("add account", "");
    let said = match visit.signed()?.actor.separate {
        true => {
            "The page then shows a link, once: give it to the person, who sets a password with it. A \
                 second person confirms every role but viewer, and tells the person a code."
        }
        false => "The page then shows a link, once: give it to the person, who sets a password with it.",
    };
    let add = [words("p", "note", said), form("/accounts", word.as_deref(), parts)];
    Ok(vec![mistakes(wrong), table, section("Add an account", add)])
}

fn roles(account: &Account) -> String {
    match account.grants.is_empty() {
        true => "none".to_owned(),
        false => account.grants.iter().map(Grant::words).collect::<Vec<_>>().join(", "),
    }
}

fn role_choice() -> Markup {
    let roles =
        HouseRole::ALL.map(|role| (role.name().to_owned(), format!("{}: {}", role.name(), role.meaning())));
    choice("role", "Role", &roles, "")
}

fn data_choice(visit: &Visit<'_>) -> Markup {
    let named = visit.settings().data.keys().map(|name| (name.clone(), name.clone()));
    let all: Vec<_> = [(String::new(), "all data sets".to_owned())].into_iter().chain(named).collect();
    choice("data", "For", &all, "")
}

/// The role that a form names.
fn grant(visit: &Visit<'_>) -> Option<Grant> {
    let (role, data) = (visit.field("role"), visit.field("data"));
    let text = if data.is_empty() { role.to_owned() } else { format!("{role}={data}") };
    Grant::parse(&text)
}

/// Adds an account and shows its link.
pub fn add(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::ManageAccounts, Subject::House)?;
    let name = visit.field("name").trim();
    let again = |said: &str| {
        let parts = listed(visit, name, &[said.to_owned()])?;
        Ok(with_status(visit, StatusCode::UNPROCESSABLE_ENTITY, "Accounts", parts))
    };
    if !is_account_name(name) {
        return again(&format!("This name does not do: {ACCOUNT_RULE}."));
    }
    let Some(grant) = grant(visit) else { return again("Choose a role and the data it is for.") };
    if takes_two(visit, &grant)? {
        return match visit.house.store.account(name, visit.now)? {
            Some(_) => again(&format!("There is or was an account {name}. Names are not given twice.")),
            None => propose(visit, name, true, Some(grant)),
        };
    }
    match visit.house.store.add_account(&visit.act("account added", name)?, &[grant])? {
        None => again(&format!("There is or was an account {name}. Names are not given twice.")),
        Some(link) => Ok(with_link(visit, name, &link)),
    }
}

/// The page that shows a link, once.
fn with_link(visit: &Visit<'_>, name: &str, link: &SecretToken) -> Answer {
    let url = format!("{}/enter/{}", visit.house.url(), link.text());
    let back = format!("/accounts/{name}");
    let said = format!(
        "Give this link to the person, on a way that others do not read. It holds for 24 hours and for one \
         use; who has it becomes {name}. It is not shown again."
    );
    let back =
        element("p", &[], [element("a", &[("href", &back)], [text(format!("To the account {name}"))])]);
    page(visit, &format!("A link for {name}"), [words("p", "", said), words("p", "link", url), back])
}

/// One account.
pub fn one(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::ManageAccounts, Subject::House)?;
    let name = visit.part("name");
    let account = visit.house.store.account(name, visit.now)?.ok_or(Stop::Missing)?;
    let mut parts = vec![words("p", "", format!("State: {}.", account.state.words()))];
    if !visit.may(Action::ManageAccounts, Subject::Account(name)) {
        let said = "Nobody changes their own roles here: another operator does.";
        parts.extend([words("p", "", said), words("p", "", format!("Roles: {}.", roles(&account)))]);
    } else if account.state != AccountState::Ended && !visit.signed()?.session.proven {
        parts.push(words("p", "", format!("Roles: {}.", roles(&account))));
        parts.push(section("Change this account", [prove_form(visit, &visit.path)]));
    } else if account.state != AccountState::Ended {
        parts.extend(changes(visit, &account));
    }
    let acts = visit.house.store.acts_of(name, 50)?;
    let rows = acts.iter().map(|act| vec![time(act.at), text(&act.what), text(&act.to), text(&act.by)]);
    let acts = table("The newest first", &["When", "What", "To whom", "By"], rows.collect::<Vec<_>>());
    parts.push(section("What was done", [acts]));
    Ok(page(visit, name, parts))
}

fn changes(visit: &Visit<'_>, account: &Account) -> Vec<Markup> {
    let name = &account.name;
    let path = |what: &str| format!("/accounts/{name}/{what}");
    let note = words("p", "note", "A change signs the person out everywhere.");
    let taken = account.grants.iter().map(|grant| {
        let (data, role) = (grant.data.as_deref().unwrap_or(""), grant.role.name());
        let parts = [hidden("role", role), hidden("data", data), button("Take", &grant.words())];
        let take = form(&path("take"), visit.word("take role", name).as_deref(), parts);
        vec![text(grant.words()), take]
    });
    let held = match account.grants.is_empty() {
        true => words("p", "", "None."),
        false => table("Roles that the person has", &["Role", "Take it"], taken.collect::<Vec<_>>()),
    };
    let give = [role_choice(), data_choice(visit), button("Give role", "")];
    let give = form(&path("give"), visit.word("give role", name).as_deref(), give);
    vec![section("Roles", [note, held, give]), rest(visit, name)]
}

fn rest(visit: &Visit<'_>, name: &str) -> Markup {
    let one = |what: &str, deed: &str, said: &str, label: &str| {
        let word = visit.word(deed, name);
        let form = form(&format!("/accounts/{name}/{what}"), word.as_deref(), [button(label, "")]);
        [words("p", "", said), form]
    };
    let link = "A new link for a lost password. The password until now no longer holds.";
    let end = "Nobody can sign in by this account again, and its name is not given to anybody else.";
    let parts = one("link", "make link", link, "Make a link").into_iter();
    section("Access", parts.chain(one("end", "end account", end, "End the account")))
}

/// Who may change the account of the path.
fn of_path<'a>(visit: &'a Visit<'_>) -> Result<&'a str, Stop> {
    let name = visit.part("name");
    visit.must(Action::ManageAccounts, Subject::Account(name))?;
    let account = visit.house.store.account(name, visit.now)?.ok_or(Stop::Missing)?;
    if account.state == AccountState::Ended { Err(Stop::Missing) } else { Ok(name) }
}

fn back(name: &str) -> Answer {
    Answer::go(&format!("/accounts/{name}"))
}

/// Gives a role.
pub fn give(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let (name, grant) = (of_path(visit)?, grant(visit).ok_or(Stop::Missing)?);
    if takes_two(visit, &grant)? {
        return propose(visit, name, false, Some(grant));
    }
    let what = format!("role given: {}", grant.words());
    visit.house.store.give_role(&visit.act(&what, name)?, &grant)?;
    Ok(back(name))
}

/// Takes a role.
pub fn take(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let (name, grant) = (of_path(visit)?, grant(visit).ok_or(Stop::Missing)?);
    let what = format!("role taken: {}", grant.words());
    visit.house.store.take_role(&visit.act(&what, name)?, &grant)?;
    Ok(back(name))
}

/// Makes a link and shows it.
pub fn link(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let name = of_path(visit)?;
    let held = visit.house.store.access(name)?;
    if visit.signed()?.actor.separate && held.takes_two() {
        return propose(visit, name, false, None);
    }
    let link = visit.house.store.new_link(&visit.act("sign-in link made", name)?, Some(&held))?;
    link.map(|link| with_link(visit, name, &link)).ok_or(Stop::Stale)
}

/// Ends an account.
pub fn end(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let name = of_path(visit)?;
    visit.house.store.end_account(&visit.act("account ended", name)?)?;
    Ok(back(name))
}

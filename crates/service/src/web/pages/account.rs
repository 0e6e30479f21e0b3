//! A person's own account: password, sessions, what was done.

use super::sign_in::{known_from_now, new_password, refused_here};
use crate::passwords::DeskBusy;
use crate::roles::{Action, Subject};
use crate::store::{PasswordRight, RecordedAct};
use crate::web::answer::Answer;
use crate::web::door::{self, own_password};
use crate::web::shell::{is_ours, page, section, table, time, with_status};
use crate::web::visit::{Stop, Visit};
use axum::http::StatusCode;
use page::form::{FormField, button, form, mistakes, whose};
use page::markup::{Markup, element, text, words};

/// Lines of what was done that are shown.
const ACTS: u64 = 20;

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    Ok(page(visit, "Your account", parts(visit, &[])?))
}

fn parts(visit: &Visit<'_>, wrong: &[String]) -> Result<Vec<Markup>, Stop> {
    let signed = visit.signed()?;
    let account = &signed.session.account;
    visit.must(Action::SeeOwn, Subject::Account(account))?;
    let grants = signed
        .actor
        .grants
        .iter()
        .map(|grant| words("li", "", format!("{}: {}", grant.words(), grant.role.meaning())));
    let roles = match signed.actor.grants.is_empty() {
        true => words("p", "", "You have no role yet: an operator gives one."),
        false => element("ul", &[], grants),
    };
    let (kind, fill) = ("password", "current-password");
    let old = FormField { name: "password", label: "Password until now", kind, fill, value: "", help: "" };
    let fields = [whose(account), old.markup(), new_password(), button("Change password", "")];
    let word = visit.word("change password", "");
    let note = "All your other sessions end.";
    let password = [words("p", "note", note), form("/account/password", word.as_deref(), fields)];
    let acts = visit.house.store.acts_of(account, ACTS)?;
    let rows = acts.iter().map(|act| vec![time(act.at), text(&act.what), text(&act.by)]);
    let acts = table("By you or about your account, the newest first", &["When", "What", "By"], rows);
    Ok(vec![
        mistakes(wrong),
        section("Roles", [roles]),
        section("Password", password),
        section("Second step", super::second::parts(visit)?),
        section("Where you are signed in", [sessions(visit)?]),
        section("Tokens for programs", [tokens()]),
        section("What was done", [acts]),
    ])
}

fn tokens() -> Markup {
    let link = element("a", &[("href", "/account/tokens")], [text("Your tokens")]);
    element("p", &[], [text("Programs ask for what you may do by a token: "), link, text(".")])
}

fn sessions(visit: &Visit<'_>) -> Result<Markup, Stop> {
    let own = &visit.signed()?.session;
    let all = visit.house.store.sessions_of(&own.account, visit.now)?;
    let rows = all.iter().map(|session| {
        let id = session.id.to_string();
        let end = match session.id == own.id {
            true => text("this one"),
            false => {
                let word = visit.word("end session", &id);
                let path = format!("/account/sessions/{id}/end");
                form(&path, word.as_deref(), [button("End", &format!("session {id}"))])
            }
        };
        vec![text(&id), time(session.begun), time(session.seen), end]
    });
    Ok(table("Your sessions", &["Number", "Began", "Last used", "End"], rows))
}

/// Takes the old password and a new one. All sessions end, and this one goes on under a new cookie.
pub fn password(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let (store, account) = (&visit.house.store, &visit.signed()?.session.account);
    let held = own_password(visit, visit.field("password"))?;
    if let Some(why) = refused_here(visit, account) {
        let parts = parts(visit, &[why])?;
        return Ok(with_status(visit, StatusCode::UNPROCESSABLE_ENTITY, "Your account", parts));
    }
    let hash = visit.house.desk.hash(visit.field("new")).map_err(|DeskBusy| Stop::Busy)??;
    let act = visit.act("changed the password", account)?;
    if !store.set_password(&act, &hash, PasswordRight::Old(&held.hash))? {
        return Err(Stop::WrongPassword);
    }
    let act = RecordedAct { by: account, what: "signed in", to: account, at: visit.now };
    match store.begin_session(&act, &hash, None, false)? {
        Some(token) => {
            let device = known_from_now(visit, account, &hash)?;
            Ok(Answer::go("/account").with_session(&token).with_device(device.as_ref()))
        }
        None => Ok(Answer::go("/sign-in")),
    }
}

/// Takes the password once more, and goes back to where it was asked for.
pub fn prove(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let token = door::prove(visit, visit.field("password"))?;
    let to = Some(visit.field("to")).filter(|to| is_ours(to)).unwrap_or("/");
    Ok(Answer::go(to).with_session(&token))
}

/// Ends another session of the same person.
pub fn end_session(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let account = &visit.signed()?.session.account;
    let id = visit.part("id").parse().map_err(|_| Stop::Missing)?;
    visit.house.store.end_session(&visit.act("ended a session", account)?, id)?;
    Ok(Answer::go("/account"))
}

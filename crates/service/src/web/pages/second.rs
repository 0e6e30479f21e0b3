//! The second step of one's own account: setting it up and ending it.

use crate::roles::Grant;
use crate::store::Allowed;
use crate::totp::base32;
use crate::web::answer::Answer;
use crate::web::buckets::counted_as;
use crate::web::shell::{page, prove_form, with_status};
use crate::web::visit::{Stop, Visit};
use axum::http::StatusCode;
use page::form::{FormField, button, form, mistakes};
use page::markup::{Markup, element, text, words};

/// Whether somebody with these roles signs in with a second step, by `policy.second_step`.
pub fn is_required(visit: &Visit<'_>, grants: &[Grant]) -> bool {
    let asked = &visit.settings().policy.second_step;
    grants.iter().any(|grant| asked.iter().any(|role| role == grant.role.name()))
}

/// What stands of it on the page of the own account.
pub fn parts(visit: &Visit<'_>) -> Result<Vec<Markup>, Stop> {
    let account = &visit.signed()?.session.account;
    let has = visit.house.store.has_second(account)?;
    let said = match has {
        true => "You sign in with your password and a code of your telephone.",
        false => {
            "You sign in with your password alone. With a second step, who has that password is not you yet."
        }
    };
    let mut parts = vec![words("p", "", said)];
    if !visit.signed()?.session.proven {
        parts.push(prove_form(visit, "/account"));
        return Ok(parts);
    }
    parts.push(match has {
        true => end_form(visit),
        false => {
            let word = visit.word("new second step", "");
            form("/account/second", word.as_deref(), [button("Set up a second step", "")])
        }
    });
    Ok(parts)
}

/// Who has the password and a browser alone does not end what guards against that.
fn end_form(visit: &Visit<'_>) -> Markup {
    let help = "Six digits of the telephone, or one of the codes on paper. All your other sessions end.";
    let (kind, fill) = ("text", "one-time-code");
    let field = FormField { name: "code", label: "Code", kind, fill, value: "", help };
    let word = visit.word("end second step", "");
    form("/account/second/end", word.as_deref(), [field.markup(), button("End the second step", "")])
}

/// Makes a secret and shows it.
pub fn new(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let account = &visit.signed()?.session.account;
    if visit.house.store.has_second(account)? {
        return Ok(Answer::go("/account"));
    }
    let secret = base32(&visit.house.store.new_second(account)?);
    let groups: Vec<&str> =
        (0..secret.len()).step_by(4).map(|at| &secret[at..(at + 4).min(secret.len())]).collect();
    let name = &visit.settings().name;
    let url = format!("otpauth://totp/{name}:{account}?secret={secret}&issuer={name}");
    let mut parts = vec![
        words("p", "", "Give this secret to the program for codes on your telephone. It is not shown again."),
        words("p", "link", groups.join(" ")),
        element("p", &[], [element("a", &[("href", &url)], [text("Open it on this telephone")])]),
    ];
    parts.push(code_form(visit));
    Ok(page(visit, "A second step", parts))
}

fn code_form(visit: &Visit<'_>) -> Markup {
    let (kind, fill, help) = ("text", "one-time-code", "Six digits that the program shows now.");
    let field = FormField { name: "code", label: "Code", kind, fill, value: "", help };
    let word = visit.word("begin second step", "");
    form("/account/second/begin", word.as_deref(), [field.markup(), button("It works", "")])
}

/// Takes the first code; from then on it counts. Shows what to keep for when the telephone is lost.
pub fn begin(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let account = &visit.signed()?.session.account;
    let act = visit.act("second step set up", account)?;
    let Some(codes) = visit.house.store.begin_second(&act, visit.field("code"))? else {
        let why =
            "The code is another one. Is the clock of the telephone right? Give the one that it shows now.";
        let parts = [mistakes(&[why.to_owned()]), code_form(visit)];
        return Ok(with_status(visit, StatusCode::UNPROCESSABLE_ENTITY, "A second step", parts));
    };
    let said = "You sign in with a code from now on. Keep these on paper: each counts once in place of a \
                code, for when the telephone is lost. They are not shown again.";
    let codes = codes.iter().map(|code| words("li", "", code.text()));
    let back = element("p", &[], [element("a", &[("href", "/account")], [text("To your account")])]);
    Ok(page(visit, "The second step is set up", [words("p", "", said), element("ol", &[], codes), back]))
}

/// Ends it.
pub fn end(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let (store, session) = (&visit.house.store, &visit.signed()?.session);
    let account = &session.account;
    if !store.has_second(account)? {
        return Ok(Answer::go("/account"));
    }
    // Counted apart from passwords, which the one who guesses may have: a right one would forgive it.
    let (tried, address) = (format!("{account} second step"), counted_as(visit.address));
    let again = |status, why: String| {
        let parts = [mistakes(&[why]), end_form(visit)];
        Ok(with_status(visit, status, "End the second step", parts))
    };
    if let Allowed::In(seconds) = store.may_try(&tried, Some(&address), visit.now)? {
        let wait = page::numbers::counted(seconds, "second");
        return again(
            StatusCode::TOO_MANY_REQUESTS,
            format!("Wait {wait}: there were too many wrong codes."),
        );
    }
    let act = visit.act("second step ended", account)?;
    if !store.end_second(&act, visit.field("code"), session.id)? {
        store.count_wrong(&tried, &address, visit.now)?;
        let why = "The code is another one, or was used. If you have neither telephone nor paper, an \
                   operator makes a link for you, which ends the second step.";
        return again(StatusCode::UNPROCESSABLE_ENTITY, why.to_owned());
    }
    Ok(Answer::go("/account"))
}

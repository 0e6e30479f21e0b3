//! Signing in and out, and links to set a password with.

use crate::devices::KnownDevice;
use crate::names::is_account_name;
use crate::passwords::{DeskBusy, PasswordVerdict, refused};
use crate::secrets::{SecretToken, SpokenCode};
use crate::store::{Allowed, LinkOwner, PasswordRight, RecordedAct};
use crate::web::answer::Answer;
use crate::web::buckets::counted_as;
use crate::web::shell::{is_ours, page, with_status};
use crate::web::visit::{Stop, Visit};
use axum::http::{StatusCode, header};
use page::form::{FormField, button, form, hidden, mistakes, whose};
use page::markup::{Markup, words};

/// The form, or the first page for who is signed in already.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    match visit.signed {
        Some(_) => Ok(Answer::go("/")),
        None => Ok(page(visit, "Sign in", fields(visit, "", &[]))),
    }
}

fn fields(visit: &Visit<'_>, name: &str, wrong: &[String]) -> Vec<Markup> {
    let (kind, fill) = ("text", "username");
    let name = FormField { name: "name", label: "Name", kind, fill, value: name, help: "" };
    let (kind, fill) = ("password", "current-password");
    let password = FormField { name: "password", label: "Password", kind, fill, value: "", help: "" };
    let (label, fill) = ("Code of your second step, if you have one", "one-time-code");
    let code = FormField { name: "code", label, kind: "text", fill, value: "", help: "" };
    let to = Some(visit.field("to")).filter(|to| is_ours(to)).map(|to| hidden("to", to));
    let parts = [name.markup(), password.markup(), code.optional()]
        .into_iter()
        .chain(to)
        .chain([button("Sign in", "")]);
    let help = "No account, or the password lost? An operator of this organisation makes a link for you.";
    vec![mistakes(wrong), form("/sign-in", None, parts), words("p", "note", help)]
}

/// Takes name and password. A wrong password, an unknown name and a name that waits look alike but for the
/// wait, which the name has whether or not it exists. A browser in which this person signed in before has its
/// own wait, whatever others do to the name, or from the same address.
pub fn submit(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let (store, address) = (&visit.house.store, counted_as(visit.address));
    let name = visit.field("name").trim().to_lowercase();
    let known = Some(name.as_str()).filter(|name| is_account_name(name));
    let kept = known.map_or(Ok(None), |name| store.password_of(name))?;
    // Looked at whoever has the name, so that time does not tell.
    let held = kept.as_deref().unwrap_or_default();
    let device = visit.device.as_deref().and_then(|sent| KnownDevice::of(sent, &name, held));
    let device = device.filter(|_| kept.is_some());
    let tried = match &device {
        Some(device) => device.tried(&name),
        None => known.unwrap_or("").to_owned(),
    };
    let from = Some(address.as_str()).filter(|_| device.is_none());
    if let Allowed::In(seconds) = store.may_try(&tried, from, visit.now)? {
        return Ok(later(visit, &name, seconds));
    }
    match visit.house.desk.compare(visit.field("password"), kept.as_deref()) {
        Err(DeskBusy) => Ok(later(visit, &name, 1)),
        Ok(PasswordVerdict::Wrong) => {
            store.count_wrong(&tried, &address, visit.now)?;
            Ok(wrong(visit, &name))
        }
        // A missing or wrong code looks like a wrong password: nobody learns that the password was right.
        Ok(PasswordVerdict::Right(_))
            if store.has_second(&name)? && !store.take_code(&name, visit.field("code"), visit.now)? =>
        {
            store.count_wrong(&tried, &address, visit.now)?;
            Ok(wrong(visit, &name))
        }
        Ok(PasswordVerdict::Right(held)) => {
            let hash = held.kept(store, &name)?;
            let act = RecordedAct { by: &name, what: "signed in", to: &name, at: visit.now };
            let before = visit.signed.as_ref().map(|signed| &signed.token);
            let Some(token) = store.begin_session(&act, &hash, before, false)? else {
                return Ok(wrong(visit, &name));
            };
            // What others tried elsewhere goes on to count.
            store.forget_tries(&tried)?;
            let device = known_from_now(visit, &name, &hash)?;
            let to = Some(visit.field("to")).filter(|to| is_ours(to)).unwrap_or("/");
            Ok(Answer::go(to).with_session(&token).with_device(device.as_ref()))
        }
    }
}

/// The mark of the browser for the next sign-in: the one that it has, where that holds under this hash. In a
/// demo there is none: everybody has one password there.
pub fn known_from_now(visit: &Visit<'_>, account: &str, hash: &str) -> Result<Option<KnownDevice>, Stop> {
    if visit.house.demo_password().is_some() {
        return Ok(None);
    }
    let before = visit.device.as_deref().and_then(|sent| KnownDevice::of(sent, account, hash));
    Ok(Some(before.map_or_else(|| KnownDevice::new(account, hash), Ok)?))
}

fn wrong(visit: &Visit<'_>, name: &str) -> Answer {
    let wrong = ["Name and password do not belong together, or the code is another one.".to_owned()];
    with_status(visit, StatusCode::UNAUTHORIZED, "Sign in", fields(visit, name, &wrong))
}

fn later(visit: &Visit<'_>, name: &str, seconds: u64) -> Answer {
    let wait = page::numbers::counted(seconds, "second");
    let wrong =
        [format!("Wait {wait} before the next try: there were too many at once, or too many wrong ones.")];
    let answer = with_status(visit, StatusCode::TOO_MANY_REQUESTS, "Sign in", fields(visit, name, &wrong));
    answer.with(header::RETRY_AFTER, seconds.to_string())
}

/// Ends the session.
pub fn out(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let session = &visit.signed()?.session;
    visit.house.store.end_session(&visit.act("signed out", &session.account)?, session.id)?;
    Ok(Answer::go("/sign-in").without_session())
}

/// Who the link in the path is for.
fn of_link(visit: &Visit<'_>) -> Result<(SecretToken, LinkOwner), Stop> {
    let token = SecretToken::parse(visit.part("link")).ok_or(Stop::Missing)?;
    let owner = visit.house.store.link_is_for(&token, visit.now)?.ok_or(Stop::Missing)?;
    Ok((token, owner))
}

/// The form to set a password with. Looking at it uses nothing up: mail programs look at links.
pub fn link(visit: &Visit<'_>) -> Result<Answer, Stop> {
    match of_link(visit) {
        Ok((_, owner)) => Ok(page(visit, link_title(visit), chosen(visit, &owner, &[]))),
        Err(Stop::Missing) => Ok(used_up(visit)),
        Err(stop) => Err(stop),
    }
}

fn link_title(visit: &Visit<'_>) -> &'static str {
    if visit.house.demo_password().is_some() { "Sign in" } else { "Choose a password" }
}

fn used_up(visit: &Visit<'_>) -> Answer {
    let said = "This link was used, is older than 24 hours, waits for a second person to confirm it, or \
                another one was made since. An operator makes a new one.";
    with_status(visit, StatusCode::NOT_FOUND, "This link does not hold", [words("p", "", said)])
}

fn chosen(visit: &Visit<'_>, owner: &LinkOwner, wrong: &[String]) -> Vec<Markup> {
    let said = format!("For the account {} at {}.", owner.account, visit.settings().name);
    let (label, help) = ("Code", "The person who confirmed this link has it: 12 letters and digits.");
    let code = FormField { name: "code", label, kind: "text", fill: "off", value: "", help };
    let code = owner.coded.then(|| code.markup());
    let fields = [whose(&owner.account)].into_iter().chain(code);
    let (last, note) = match visit.house.demo_password() {
        None => (vec![new_password(), button("Set password", "")], None),
        Some(_) => {
            let said = "Everybody in this demo has the password that stands in the terminal. Some pages ask \
                        for it again after five minutes.";
            (vec![button("Sign in", "")], Some(words("p", "note", said)))
        }
    };
    let form = form(&visit.path, None, fields.chain(last));
    [mistakes(wrong), words("p", "", said), form].into_iter().chain(note).collect()
}

/// The field for a new password.
pub fn new_password() -> Markup {
    let help = "At least 12 characters: four or five words that do not belong together are easy to keep.";
    let (kind, fill) = ("password", "new-password");
    FormField { name: "new", label: "New password", kind, fill, value: "", help }.markup()
}

/// Why a new password is not taken.
pub fn refused_here(visit: &Visit<'_>, account: &str) -> Option<String> {
    refused(visit.field("new"), &[account, &visit.settings().name, "tacit"])
}

/// Sets the password, which uses the link up, and signs in.
pub fn enter(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let (token, owner) = match of_link(visit) {
        Err(Stop::Missing) => return Ok(used_up(visit)),
        found => found?,
    };
    let account = &owner.account;
    let again = |why: String| {
        let parts = chosen(visit, &owner, &[why]);
        Ok(with_status(visit, StatusCode::UNPROCESSABLE_ENTITY, link_title(visit), parts))
    };
    let demo = visit.house.demo_password();
    if demo.is_none()
        && let Some(why) = refused_here(visit, account)
    {
        return again(why);
    }
    let wrong_code = "The code is another one. Ask the person who confirmed this link.".to_owned();
    let code = SpokenCode::parse(visit.field("code"));
    let right = match &code {
        None if owner.coded => return again(wrong_code),
        Some(code) if owner.coded => PasswordRight::Coded(&token, code),
        _ => PasswordRight::Link(&token),
    };
    let store = &visit.house.store;
    let hash = visit.house.desk.hash(demo.unwrap_or(visit.field("new"))).map_err(|DeskBusy| Stop::Busy)??;
    let act = RecordedAct { by: account, what: "set a password by a link", to: account, at: visit.now };
    if !store.set_password(&act, &hash, right)? {
        let holds = owner.coded && store.link_is_for(&token, visit.now)?.is_some();
        return if holds { again(wrong_code) } else { Ok(used_up(visit)) };
    }
    let act = RecordedAct { what: "signed in", ..act };
    let before = visit.signed.as_ref().map(|signed| &signed.token);
    match store.begin_session(&act, &hash, before, false)? {
        Some(token) => {
            store.forget_tries(account)?;
            let device = known_from_now(visit, account, &hash)?;
            Ok(Answer::go("/").with_session(&token).with_device(device.as_ref()))
        }
        None => Ok(Answer::go("/sign-in")),
    }
}

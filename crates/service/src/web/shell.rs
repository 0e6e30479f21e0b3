//! What all pages have around them: who one is, where one can go, what everybody should know.

use super::answer::Answer;
use super::visit::{Stop, Visit};
use crate::roles::{Action, StudySubject, Subject};
use crate::store::RULES_OF_BEFORE;
use axum::http::{Method, StatusCode, header};
use page::form::{FormField, button, form, hidden, whose};
use page::markup::{Markup, element, prose, text, words};
use std::sync::OnceLock;

/// The style sheet of reports and what pages add to it, with the path that names its content.
pub fn style() -> &'static (String, String) {
    static STYLE: OnceLock<(String, String)> = OnceLock::new();
    STYLE.get_or_init(|| {
        let css = format!("{}{}", page::SHEET, include_str!("app.css"));
        let hash = blake3::hash(css.as_bytes()).to_hex();
        (format!("/assets/{}/style.css", &hash[..16]), css)
    })
}

/// What makes pages live, with the path that names its content. Every page works without it.
pub fn script() -> &'static (String, &'static str) {
    static SCRIPT: OnceLock<(String, &'static str)> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let text = include_str!("app.js");
        (format!("/assets/{}/app.js", &blake3::hash(text.as_bytes()).to_hex()[..16]), text)
    })
}

/// The sign of the service, as a picture.
pub const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect width=\"16\" \
                        height=\"16\" rx=\"3\" fill=\"#1667a8\"/><path d=\"M3 4h10v2H9v7H7V6H3z\" \
                        fill=\"#fff\"/></svg>";

/// Where the picture is.
pub const ICON_PATH: &str = "/assets/1/icon.svg";

/// A page with a heading, for who is signed in or nobody.
pub fn page(visit: &Visit<'_>, title: &str, parts: impl IntoIterator<Item = Markup>) -> Answer {
    with_status(visit, StatusCode::OK, title, parts)
}

/// The same with another status.
pub fn with_status(
    visit: &Visit<'_>,
    status: StatusCode,
    title: &str,
    parts: impl IntoIterator<Item = Markup>,
) -> Answer {
    let name = &visit.settings().name;
    let mut notices = Vec::new();
    if visit.signed.is_some() {
        notices.extend(visit.rules.standing.notice());
        let rules_consent = !visit.settings().policy.auto.is_empty();
        if rules_consent && matches!(visit.house.store.accepted_before_copy(), Ok(true)) {
            notices.push(format!("No rule consents (policy.auto): {RULES_OF_BEFORE}."));
        }
        if !visit.settings().policy.separate_duties {
            let said = "Duties are not separate here: one person may propose a study and consent to it, give \
                        roles and loosen rules.";
            notices.push(said.to_owned());
        }
    }
    if visit.may(Action::SeeAudit, Subject::House) {
        notices.extend(visit.house.watch.seen().alarms());
    }
    let notices: Vec<Markup> = notices.iter().map(|notice| prose("p", "", notice)).collect();
    let notices = (!notices.is_empty()).then(|| {
        let place = [("class", "box"), ("role", "note"), ("aria-label", "For everybody")];
        element("div", &place, notices)
    });
    let heading = words("h1", "title", title);
    let main = [("id", "main"), ("tabindex", "-1")];
    let help = visit.signed.as_ref().and_then(|_| help_link(&visit.path));
    let main = element("main", &main, notices.into_iter().chain([heading]).chain(parts).chain(help));
    let skip = element("a", &[("class", "skip"), ("href", "#main")], [text("Skip to the content")]);
    let body = element("body", &[("class", "app")], [skip, bar(visit), main]);
    Answer::page(status, document(&format!("{title} - {name}"), body))
}

/// Where the help says something about a page.
fn help_link(path: &str) -> Option<Markup> {
    let to = format!("/help/{}", super::pages::help::about(path)?);
    let link = element("a", &[("href", &to)], [text("About this page")]);
    Some(element("p", &[("class", "note about")], [link]))
}

fn document(title: &str, body: Markup) -> Markup {
    let head = element(
        "head",
        &[],
        [
            element("meta", &[("charset", "utf-8")], []),
            element("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")], []),
            element("meta", &[("name", "robots"), ("content", "noindex")], []),
            words("title", "", title),
            element("link", &[("rel", "stylesheet"), ("href", &style().0)], []),
            element("script", &[("src", &script().0), ("defer", "")], []),
            element("link", &[("rel", "icon"), ("href", ICON_PATH), ("type", "image/svg+xml")], []),
        ],
    );
    element("html", &[("lang", "en"), ("xmlns", "http://www.w3.org/1999/xhtml")], [head, body])
}

/// A page where no visit came to be.
pub fn plain(status: StatusCode, title: &str, said: &str) -> Answer {
    let home = element("p", &[], [element("a", &[("href", "/")], [text("To the first page")])]);
    let main = element("main", &[], [words("h1", "title", title), words("p", "", said), home]);
    Answer::page(status, document(title, element("body", &[("class", "app")], [main])))
}

/// The pages that a person may see, with their paths.
pub fn places(visit: &Visit<'_>) -> Vec<(&'static str, &'static str)> {
    let data = |action| visit.settings().data.keys().any(|name| visit.may(action, Subject::Data(name)));
    let all = [
        ("/", "Home", true),
        ("/studies", "Studies", visit.may(Action::SeeStudy, Subject::Study(StudySubject::default()))),
        ("/data", "Data", data(Action::CheckData) || data(Action::SeeColumns)),
        ("/budget", "Budget", data(Action::SeeBudget)),
        ("/rules", "Rules", visit.may(Action::SeeRules, Subject::House)),
        ("/accounts", "Accounts", visit.may(Action::ManageAccounts, Subject::House)),
        ("/confirmations", "To confirm", visit.may(Action::SeeRules, Subject::House)),
        ("/peers", "Peers", visit.may(Action::SeeRules, Subject::House)),
        ("/operate", "Operate", visit.may(Action::Operate, Subject::House)),
        ("/audit", "Audit", visit.may(Action::SeeAudit, Subject::House)),
        ("/account", "Your account", true),
        ("/help", "Help", true),
    ];
    all.into_iter().filter(|(_, _, shown)| *shown).map(|(path, label, _)| (path, label)).collect()
}

fn bar(visit: &Visit<'_>) -> Markup {
    let name = words("b", "", &visit.settings().name);
    let Some(signed) = &visit.signed else {
        return element("header", &[("class", "bar")], [element("p", &[], [name])]);
    };
    let link = |(path, label): (&'static str, &'static str)| {
        let here = visit.path == path || (path != "/" && visit.path.starts_with(&format!("{path}/")));
        let mut attributes = vec![("href", path)];
        if here {
            attributes.push(("aria-current", "page"));
        }
        element("li", &[], [element("a", &attributes, [text(label)])])
    };
    let links = element("ul", &[], places(visit).into_iter().map(link));
    let roles: Vec<String> = signed.actor.grants.iter().map(crate::roles::Grant::words).collect();
    let roles = if roles.is_empty() { "no role yet".to_owned() } else { roles.join(", ") };
    let who = element("p", &[], [words("b", "", &signed.session.account), text(format!(", {roles}"))]);
    let word = visit.word("sign out", "");
    let out = form("/sign-out", word.as_deref(), [button("Sign out", "")]);
    let who = element("div", &[("class", "who")], [who, out]);
    let nav = element("nav", &[("aria-label", "Pages")], [links]);
    element("header", &[("class", "bar")], [element("p", &[], [name]), nav, who])
}

/// Where somebody who is not signed in is sent.
pub fn to_sign_in(visit: &Visit<'_>, method: &Method) -> Answer {
    if visit.from_elsewhere && method.is_safe() {
        // The cookie does not come along from another site: a click from here brings it.
        let link = element("a", &[("href", &visit.path)], [text("Go on")]);
        let said = words("p", "", "You came here from another page or a mail.");
        return page(visit, "One more click", [said, element("p", &[], [link])]);
    }
    match visit.path.as_str() {
        path if path != "/" && method.is_safe() && is_ours(path) => {
            Answer::go(&format!("/sign-in?to={path}"))
        }
        _ => Answer::go("/sign-in"),
    }
}

/// Whether a path is one of this service, in letters that need no care.
pub fn is_ours(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    path.starts_with('/') && !path.starts_with("//") && path.chars().all(plain)
}

/// A path as the log has it: what a link holds is a secret.
fn logged(path: &str) -> &str {
    if path.starts_with("/enter/") { "/enter/..." } else { path }
}

/// The page that says why there is no other.
pub fn stopped(visit: &Visit<'_>, stop: Stop) -> Answer {
    let (status, title, said) = match stop {
        Stop::Unproven => {
            let said = "Nothing was done yet: give your password, then send it again.";
            // The page of a form is what its path begins with.
            let to: Vec<&str> = visit.path.split('/').take(3).collect();
            let parts = [words("p", "", said), prove_form(visit, &to.join("/"))];
            return with_status(visit, StatusCode::FORBIDDEN, "Your password again", parts);
        }
        Stop::OneStep => {
            let said = "Your role signs in with a second step here. Set one up first; nothing else was done.";
            let link = element("a", &[("href", "/account")], [text("Set it up")]);
            let parts = [words("p", "", said), element("p", &[], [link])];
            return with_status(visit, StatusCode::FORBIDDEN, "A second step first", parts);
        }
        Stop::Missing => (StatusCode::NOT_FOUND, "Nothing is here", "There is no such page.".to_owned()),
        Stop::Denied => (
            StatusCode::FORBIDDEN,
            "Not for your account",
            "Your roles do not allow this. An operator gives roles.".to_owned(),
        ),
        Stop::Stale => (
            StatusCode::FORBIDDEN,
            "This form is too old",
            "It was made before you signed in, or for something else. Nothing was done: go back, load the \
             page again, and send it again."
                .to_owned(),
        ),
        Stop::WrongPassword => (
            StatusCode::FORBIDDEN,
            "The password was wrong",
            "Nothing was done. Go back and give your own password; after five wrong ones you are signed out."
                .to_owned(),
        ),
        Stop::TooFast => (
            StatusCode::TOO_MANY_REQUESTS,
            "Too fast",
            "That was more than a person asks for. Wait a second, and go on.".to_owned(),
        ),
        Stop::TooMany => (
            StatusCode::TOO_MANY_REQUESTS,
            "Too many wrong passwords",
            "Nothing was done. Wait a quarter of an hour at most, and give your own password.".to_owned(),
        ),
        Stop::Busy => (
            StatusCode::TOO_MANY_REQUESTS,
            "Others are signing in",
            "Nothing was done. Wait a second, and send it again.".to_owned(),
        ),
        Stop::Drawing => (
            StatusCode::TOO_MANY_REQUESTS,
            "Other pictures are being drawn",
            "This one was not drawn. Wait a few seconds, and try again.".to_owned(),
        ),
        Stop::Failed(error) => {
            // People at the page may not be those who may see paths; the log is the operator's.
            eprintln!("error: {} {error}", logged(&visit.path));
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something failed here",
                "Nothing was done. The log of the service says what it was; an operator reads it.".to_owned(),
            )
        }
    };
    let answer = with_status(visit, status, title, [words("p", "", said)]);
    match status {
        StatusCode::TOO_MANY_REQUESTS => answer.with(header::RETRY_AFTER, "1".to_owned()),
        _ => answer,
    }
}

/// The form for one's own password, for what changes what people may do; it leads to a page of ours.
pub fn prove_form(visit: &Visit<'_>, to: &str) -> Markup {
    let help =
        "Asked again before anything that changes what people may do; it then counts for five minutes.";
    let (kind, fill) = ("password", "current-password");
    let field = FormField { name: "password", label: "Your password", kind, fill, value: "", help };
    let whose = visit.signed.as_ref().map(|signed| whose(&signed.session.account));
    let parts = whose.into_iter().chain([hidden("to", to), field.markup(), button("Go on", "")]);
    form("/account/prove", visit.word("prove", "").as_deref(), parts)
}

/// A time, for people and for programs.
pub fn time(at: u64) -> Markup {
    let at = at.cast_signed();
    let (day, second) = (study::time::date(at), at.rem_euclid(86_400));
    let clock = format!("{:02}:{:02}", second / 3600, second / 60 % 60);
    let exact = format!("{day}T{clock}Z");
    element("time", &[("datetime", &exact)], [text(format!("{day} {clock} UTC"))])
}

/// A section with a heading.
pub fn section(title: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    element("section", &[], [words("h2", "", title)].into_iter().chain(parts))
}

/// A table: its caption, its columns, and rows of which the first cell names the row. On narrow screens every
/// cell has the name of its column beside it.
pub fn table(caption: &str, columns: &[&str], rows: impl IntoIterator<Item = Vec<Markup>>) -> Markup {
    let heads = columns.iter().map(|name| element("th", &[("scope", "col")], [text(name)]));
    let head = element("thead", &[], [element("tr", &[], heads)]);
    let row = |cells: Vec<Markup>| {
        let cells = cells.into_iter().zip(columns).enumerate().map(|(at, (cell, column))| match at {
            0 => element("th", &[("scope", "row")], [cell]),
            _ => element("td", &[("data-label", column)], [cell]),
        });
        element("tr", &[], cells)
    };
    let body = element("tbody", &[], rows.into_iter().map(row));
    let table = element("table", &[], [words("caption", "", caption), head, body]);
    element("div", &[("class", "wide")], [table])
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_folded_is_printed_and_boxes_to_tick_keep_their_size() {
        let css = &super::style().1;
        let printed = css.split("@media print").nth(1).expect("a sheet for printers");
        assert!(printed.contains("details::details-content { content-visibility: visible;"), "{printed}");
        assert!(css.contains(".tick input { flex: none; width: 1.4rem;"), "{css}");
    }

    #[test]
    fn links_are_not_logged() {
        assert_eq!(super::logged("/enter/0123"), "/enter/...");
        assert_eq!(super::logged("/account/password"), "/account/password");
    }
}

//! Tokens of a person for programs: what each is for, made, shown once, and ended.

use crate::names::{TOKEN_RULE, is_account_name};
use crate::store::{ApiToken, NewApiToken, TokenScope};
use crate::web::answer::Answer;
use crate::web::shell::{page, section, table, time, with_status};
use crate::web::visit::{Stop, Visit};
use axum::http::StatusCode;
use page::form::{FormField, button, form, mistakes, tick};
use page::markup::{Markup, element, text, words};

/// Days that a token holds at most.
const MOST_DAYS: u64 = 365;
const DAY: u64 = 24 * 3600;
/// What its name is made of.
const LETTERS: &str = "1 to 40 of a-z, 0-9, \".\", \"_\" and \"-\".";

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    Ok(page(visit, "Your tokens", parts(visit, &[])?))
}

fn parts(visit: &Visit<'_>, wrong: &[String]) -> Result<Vec<Markup>, Stop> {
    let account = &visit.signed()?.session.account;
    let said = "A token lets a program do what you may do yourself, and of that only what you tick. It ends \
                when your roles or your password change.";
    let all = visit.house.store.tokens_of(Some(account))?;
    let rows: Vec<_> = all.iter().map(|token| row(visit, token)).collect();
    let columns = ["Name", "For", "Data", "Used last", "Until", "End"];
    let list = match rows.is_empty() {
        true => words("p", "", "You have none."),
        false => table("The newest first", &columns, rows),
    };
    let back = element("p", &[], [element("a", &[("href", "/account")], [text("Your account")])]);
    Ok(vec![
        mistakes(wrong),
        words("p", "", said),
        back,
        section("Tokens", [list]),
        section("A new one", [fields(visit)]),
    ])
}

fn row(visit: &Visit<'_>, token: &ApiToken) -> Vec<Markup> {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
    let data = token.data.as_ref().map_or_else(|| "all of yours".to_owned(), |data| data.join(", "));
    let id = token.id.to_string();
    let end = match token.holds(visit.now) {
        true => {
            let word = visit.word("end token", &id);
            form(&format!("/account/tokens/{id}/end"), word.as_deref(), [button("End", &token.name)])
        }
        false => text("ended"),
    };
    let used = token.used.map_or_else(|| text("never"), time);
    vec![text(&token.name), text(scopes.join(", ")), text(data), used, time(token.until), end]
}

fn fields(visit: &Visit<'_>) -> Markup {
    let (kind, fill) = ("text", "off");
    let field = |name, label, value, help| FormField { name, label, kind, fill, value, help };
    let scopes = TokenScope::ALL.map(|scope| {
        let label = format!("{}: {}", scope.name(), scope.meaning());
        let name = format!("scope-{}", scope.name());
        tick(&name, &label, visit.field(&name) == "yes")
    });
    let days = if visit.field("days").is_empty() { "90" } else { visit.field("days") };
    let data = "Names with commas between them; empty: all that you may.";
    let all = [field("name", "Its name", visit.field("name"), LETTERS).markup()].into_iter();
    let all = all.chain(scopes).chain([
        field("data", "With which data sets", visit.field("data"), data).optional(),
        field("days", "Days that it holds", days, "1 to 365.").markup(),
        button("Make the token", ""),
    ]);
    form("/account/tokens", visit.word("make token", "").as_deref(), all)
}

/// The token that a form asks for, or what is wrong with it.
fn asked(visit: &Visit<'_>) -> Result<NewApiToken, String> {
    let name = visit.field("name").trim();
    let ticked = |scope: &TokenScope| visit.field(&format!("scope-{}", scope.name())) == "yes";
    let scopes: Vec<TokenScope> = TokenScope::ALL.into_iter().filter(ticked).collect();
    let data: Vec<String> = visit.field("data").split([',', ' ']).map(str::trim).map(str::to_owned).collect();
    let data: Vec<String> = data.into_iter().filter(|name| !name.is_empty()).collect();
    let days = visit.field("days").trim().parse::<u64>().unwrap_or(0);
    if !is_account_name(name) {
        return Err(format!("Its name does not do: {TOKEN_RULE}."));
    }
    if scopes.is_empty() {
        return Err("Tick what the token is for.".to_owned());
    }
    if let Some(other) = data.iter().find(|name| !visit.settings().data.contains_key(*name)) {
        return Err(format!("There is no data set {}.", base::clean(other)));
    }
    if !(1..=MOST_DAYS).contains(&days) {
        return Err(format!("Write how many days it holds, from 1 to {MOST_DAYS}."));
    }
    let (name, data) = (name.to_owned(), Some(data).filter(|data| !data.is_empty()));
    Ok(NewApiToken { name, scopes, data, until: visit.now + days * DAY })
}

/// Makes one, and shows it once.
pub fn add(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let again = |why: String| {
        let parts = parts(visit, &[why])?;
        Ok(with_status(visit, StatusCode::UNPROCESSABLE_ENTITY, "Your tokens", parts))
    };
    let new = match asked(visit) {
        Ok(new) => new,
        Err(why) => return again(why),
    };
    let account = &visit.signed()?.session.account;
    let what = format!("token made: {}", new.name);
    match visit.house.store.add_token(&visit.act(&what, account)?, &new)? {
        None => again(format!("You have a token {} already, or 50 of them: end one first.", new.name)),
        Some(token) => {
            let said = "This is the only time that it is shown. Whoever has it can do what you ticked.";
            let shown = words("p", "link", token);
            let back = element("a", &[("href", "/account/tokens")], [text("Your tokens")]);
            let parts = [words("p", "", said), shown, element("p", &[], [back])];
            Ok(page(visit, "The new token", parts))
        }
    }
}

/// Ends one.
pub fn end(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let account = &visit.signed()?.session.account;
    let id = visit.part("id").parse().map_err(|_| Stop::Missing)?;
    match visit.house.store.end_token(&visit.act("token ended", account)?, id)? {
        true => Ok(Answer::go("/account/tokens")),
        false => Err(Stop::Missing),
    }
}

//! What `service.toml` allows, in words; another value for a rule; and accepting what an editor wrote.

use super::confirmations::offer;
use crate::changes::{RULES, RulesChange};
use crate::roles::{Action, Subject};
use crate::rules::{RulesStanding, write};
use crate::settings::words as in_words;
use crate::settings::{RuleDifference, RuleTurn, RulesFile, differences, edit, rules};
use crate::web::answer::Answer;
use crate::web::shell::{page, prove_form, section, time, with_status};
use crate::web::visit::{Stop, Visit};
use axum::http::StatusCode;
use page::form::{FormField, button, choice, form, hidden, mistakes};
use page::markup::{Markup, element, text, words};
use std::collections::BTreeSet;
use std::path::Path;

/// What takes a line out of the file.
const UNSAID: &str = "unsaid";

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    Ok(page(visit, "Rules", parts(visit, &[])?))
}

fn parts(visit: &Visit<'_>, wrong: &[String]) -> Result<Vec<Markup>, Stop> {
    let accepted = visit.house.store.accepted()?;
    let told = match &accepted {
        Some(accepted) => {
            element("p", &[], [text(format!("Accepted by {}, ", accepted.by)), time(accepted.at), text(".")])
        }
        None => words("p", "", "Nobody has accepted this yet."),
    };
    let mut parts = vec![mistakes(wrong), told];
    if let Some(accepted) = &accepted {
        parts.extend(of_editor(visit, &accepted.text)?);
        parts.extend(changing(visit, &accepted.text)?);
    }
    let held = in_words(visit.settings(), &|name| visit.may(Action::SeeColumns, Subject::Data(name)));
    parts.extend(held.into_iter().map(|(title, lines)| section(&title, [listed(lines)])));
    Ok(parts)
}

fn listed(lines: impl IntoIterator<Item = String>) -> Markup {
    let lines = lines.into_iter().map(|line| element("li", &[], [element("bdi", &[], [text(line)])]));
    element("ul", &[], lines)
}

/// Whether this person may change rules of a data set, or of the organisation, in which role.
fn role(visit: &Visit<'_>, data: Option<&str>) -> Option<bool> {
    let subject = data.map_or(Subject::House, Subject::Data);
    match visit.may(Action::RulesAsOperator, subject) {
        true => Some(false),
        false => visit.may(Action::RulesAsSteward, subject).then_some(true),
    }
}

/// The rules that this person may change, with what the file says of them now.
fn own_rules(visit: &Visit<'_>, held: &str) -> Vec<(String, Option<String>)> {
    let own = |(rule, _): &(String, Option<String>)| {
        let mut names = rule.split('.');
        let data = (names.next() == Some("data")).then(|| names.next()).flatten();
        let columns = rule.ends_with(".columns");
        let sees = data.is_none_or(|data| !columns || visit.may(Action::SeeColumns, Subject::Data(data)));
        role(visit, data).is_some() && sees
    };
    rules(held).into_iter().filter(own).collect()
}

fn changing(visit: &Visit<'_>, held: &str) -> Result<Option<Markup>, Stop> {
    Ok(fields(visit, held, "See the difference").map(|form| section("Change a rule", [form])))
}

/// The form for another value of a rule; those that are asked for already go along.
fn fields(visit: &Visit<'_>, held: &str, label: &str) -> Option<Markup> {
    let own = own_rules(visit, held);
    if own.is_empty() {
        return None;
    }
    let among: Vec<_> = own.into_iter().map(|(rule, _)| (rule.clone(), rule)).collect();
    let help = "As it stands in the file: 0.3, true, [\"lift\"], \"1e-6\". Write unsaid to take it out. What \
                is about the machine is changed on the machine.";
    let (kind, fill) = ("text", "off");
    let value = FormField { name: "value", label: "Value", kind, fill, value: "", help };
    let fields = [choice("rule", "Rule", &among, ""), value.markup(), button(label, "")];
    let fields = kept(visit).chain(fields);
    Some(form("/rules/preview", visit.word("preview rules", "").as_deref(), fields))
}

/// Rules and their values that a form asks for, in the order in which they were written.
fn asked<'v>(visit: &'v Visit<'_>) -> impl Iterator<Item = (&'v str, &'v str)> {
    let of = |name: &'static str| visit.form.iter().filter(move |(field, _)| field == name);
    of("rule").zip(of("value")).map(|((_, rule), (_, value))| (rule.as_str(), value.as_str()))
}

fn kept(visit: &Visit<'_>) -> impl Iterator<Item = Markup> {
    asked(visit).flat_map(|(rule, value)| [hidden("rule", rule), hidden("value", value)])
}

/// What an editor did to the file, to be accepted.
fn of_editor(visit: &Visit<'_>, held: &str) -> Result<Option<Markup>, Stop> {
    if visit.rules.standing != RulesStanding::Changed {
        return Ok(None);
    }
    let title = "The file was changed";
    let Ok(file) = RulesFile::read(&visit.house.path) else { return Ok(None) };
    let change = match made(visit, held, &file.text)? {
        Ok(change) => change,
        Err(why) => return Ok(Some(section(title, [words("p", "", why)]))),
    };
    let mut parts = difference(visit, &change)?;
    match visit.signed()?.session.proven {
        false => parts.push(prove_form(visit, "/rules")),
        true => {
            let hash = base::hex(&file.hash());
            let word = visit.word("accept rules", &hash);
            parts.push(form(
                &format!("/rules/accept/{hash}"),
                word.as_deref(),
                [button("Accept the file", "")],
            ));
        }
    }
    Ok(Some(section(title, parts)))
}

/// The change from one text to another by this person, or why it is none.
pub fn made(visit: &Visit<'_>, before: &str, after: &str) -> Result<Result<RulesChange, String>, Stop> {
    // Errors are for who may not see paths.
    let parse = |text| RulesFile::parse(Path::new(RULES), text);
    let new = match parse(after) {
        Ok(new) => new,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let found = differences(&parse(before)?, &new);
    if found.iter().any(|one| one.turn == RuleTurn::Machine) {
        let names: Vec<String> =
            found.into_iter().filter(|one| one.turn == RuleTurn::Machine).map(|one| one.rule).collect();
        let said = "is about the machine: whoever has the machine accepts that, by tacit service accept.";
        return Ok(Err(format!("{} {said}", names.join(", "))));
    }
    let scopes: BTreeSet<&Option<String>> = found.iter().map(|one| &one.data).collect();
    let data = scopes.first().filter(|_| scopes.len() == 1).and_then(|data| (*data).clone());
    let as_steward = match role(visit, data.as_deref()) {
        Some(as_steward) => as_steward,
        None => return Ok(Err("Your roles do not allow to change these rules.".to_owned())),
    };
    let rules = |one: &RuleDifference| (one.rule.clone(), one.turn == RuleTurn::Looser);
    let rules = found.iter().map(rules).collect();
    Ok(Ok(RulesChange { before: before.to_owned(), after: after.to_owned(), rules, data, as_steward }))
}

/// What a change comes to, in the words of this page.
pub fn difference(visit: &Visit<'_>, change: &RulesChange) -> Result<Vec<Markup>, Stop> {
    let said = |text: &str| -> Result<Vec<(String, String)>, Stop> {
        let settings = RulesFile::parse(&visit.house.path, text)?;
        let all = in_words(&settings, &|name| visit.may(Action::SeeColumns, Subject::Data(name)));
        let lines = all
            .into_iter()
            .flat_map(|(title, lines)| lines.into_iter().map(move |line| (title.clone(), line)));
        Ok(lines.collect())
    };
    let (before, after) = (said(&change.before)?, said(&change.after)?);
    let only = |some: &[(String, String)], others: &[(String, String)]| {
        let lines = some.iter().filter(|line| !others.contains(line));
        lines.map(|(title, line)| format!("{title}: {line}")).collect::<Vec<_>>()
    };
    let turns = change.rules.iter().map(|(rule, looser)| {
        format!("{rule}: {}", if *looser { "allows more, or something else" } else { "allows less" })
    });
    let mut parts = vec![match change.rules.is_empty() {
        true => words("p", "", "No rule is another one: only words around them."),
        false => listed(turns),
    }];
    for (title, lines) in [("No longer", only(&before, &after)), ("From then on", only(&after, &before))] {
        if !lines.is_empty() {
            parts.extend([words("h3", "", title), listed(lines)]);
        }
    }
    Ok(parts)
}

fn again(visit: &Visit<'_>, why: String) -> Result<Answer, Stop> {
    Ok(with_status(visit, StatusCode::UNPROCESSABLE_ENTITY, "Rules", parts(visit, &[why])?))
}

/// The change that a form asks for.
fn of_form(visit: &Visit<'_>) -> Result<Result<RulesChange, String>, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let held = visit.house.store.accepted()?.ok_or(Stop::Missing)?;
    let own = own_rules(visit, &held.text);
    let mut after = held.text.clone();
    for (rule, value) in asked(visit) {
        if !own.iter().any(|(own, _)| own == rule) {
            return Ok(Err("There is no such rule that your roles allow to change.".to_owned()));
        }
        after = match edit(&after, rule, if value.trim() == UNSAID { "" } else { value }) {
            Ok(after) => after,
            Err(why) => return Ok(Err(format!("{rule}: {why}"))),
        };
    }
    match after == held.text {
        true => Ok(Err("The file says that already.".to_owned())),
        false => made(visit, &held.text, &after),
    }
}

/// Shows what another value would come to; nothing is changed.
pub fn preview(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let change = match of_form(visit)? {
        Ok(change) => change,
        Err(why) => return again(visit, why),
    };
    let mut parts = difference(visit, &change)?;
    let two = change.loosens() && visit.signed()?.actor.separate;
    let (said, label) = match two {
        true => ("It allows more, so a second person in the other role confirms it, as one.", "Propose this"),
        false => ("It holds at once, and the file is written anew.", "Change the rule"),
    };
    parts.push(words("p", "", said));
    match visit.signed()?.session.proven {
        false => parts.push(prove_form(visit, "/rules")),
        true => {
            let base = base::hex(&RulesFile::hash_of(&change.before));
            let word = visit.word("change rules", &base);
            let fields = kept(visit).chain([button(label, "")]);
            parts.push(form(&format!("/rules/change/{base}"), word.as_deref(), fields));
        }
    }
    let more = fields(visit, &change.before, "Add it");
    let more = more.map(|form| section("Another rule in the same change", [form]));
    Ok(page(visit, "The difference", [section("What it comes to", parts)].into_iter().chain(more)))
}

/// Changes a rule, or proposes it.
pub fn change(visit: &Visit<'_>) -> Result<Answer, Stop> {
    match of_form(visit)? {
        Ok(change) if base::hex(&RulesFile::hash_of(&change.before)) != visit.part("base") => {
            meanwhile(visit)
        }
        Ok(change) => settle(visit, change),
        Err(why) => again(visit, why),
    }
}

/// Accepts the file as an editor left it, or proposes that.
pub fn accept(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let held = visit.house.store.accepted()?.ok_or(Stop::Missing)?;
    let file = RulesFile::read(&visit.house.path)?;
    if base::hex(&file.hash()) != visit.part("hash") {
        return meanwhile(visit);
    }
    match made(visit, &held.text, &file.text)? {
        Ok(change) => settle(visit, change),
        Err(why) => again(visit, why),
    }
}

fn meanwhile(visit: &Visit<'_>) -> Result<Answer, Stop> {
    again(
        visit,
        "The rules were changed meanwhile, and nothing was done. Look at the difference again.".to_owned(),
    )
}

/// Makes a change where one person may, and proposes it where it takes two.
pub fn settle(visit: &Visit<'_>, change: RulesChange) -> Result<Answer, Stop> {
    let (house, by) = (visit.house, &visit.signed()?.actor.name);
    if change.loosens() && visit.signed()?.actor.separate {
        return offer(visit, change);
    }
    match house.store.change_rules(by, &change, visit.now, &|change| write(&house.path, change)) {
        Ok(true) => {
            let _ = house.rules.look(&house.store, visit.now);
            Ok(Answer::go("/rules"))
        }
        Ok(false) => meanwhile(visit),
        Err(error) => unwritten(visit, error),
    }
}

/// Why the file could not be written, to somebody who may know.
pub fn unwritten(visit: &Visit<'_>, error: base::Error) -> Result<Answer, Stop> {
    match error.kind() {
        base::Fault::Refused(_) => again(visit, error.to_string()),
        _ => Err(Stop::Failed(error)),
    }
}

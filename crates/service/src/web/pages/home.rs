//! The first page: what this person must do first.

use super::confirmations::may_confirm;
use crate::findings::DataFindings;
use crate::roles::{Action, Subject};
use crate::rules::RulesStanding;
use crate::web::answer::Answer;
use crate::web::checking::read;
use crate::web::shell::{page, places, section};
use crate::web::visit::{Stop, Visit};
use page::markup::{Markup, element, text, words};

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeOwn, Subject::House)?;
    let todo = todo(visit)?;
    let list = match todo.is_empty() {
        true => words("p", "", "Nothing waits for you."),
        false => {
            let item = |(said, path, label): (String, String, &str)| {
                let link = element("a", &[("href", &path)], [text(label)]);
                element("li", &[], [text(format!("{said} ")), link])
            };
            element("ul", &[("class", "todo")], todo.into_iter().map(item))
        }
    };
    let links = places(visit).into_iter().filter(|(path, _)| *path != "/");
    let links =
        links.map(|(path, label)| element("li", &[], [element("a", &[("href", path)], [text(label)])]));
    let links = element("ul", &[], links.collect::<Vec<Markup>>());
    Ok(page(visit, "Home", [section("For you", [list]), section("Where to go", [links])]))
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

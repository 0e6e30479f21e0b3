//! What `service.toml` allows, in words.

use crate::roles::{Action, Subject};
use crate::settings::words as in_words;
use crate::web::answer::Answer;
use crate::web::shell::{page, section, time};
use crate::web::visit::{Stop, Visit};
use page::markup::{element, text, words};

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let accepted = match visit.house.store.accepted()? {
        Some(accepted) => {
            element("p", &[], [text(format!("Accepted by {}, ", accepted.by)), time(accepted.at), text(".")])
        }
        None => words("p", "", "Nobody has accepted this yet."),
    };
    let held = in_words(visit.settings(), &|name| visit.may(Action::SeeColumns, Subject::Data(name)));
    let sections = held.into_iter().map(|(title, lines)| {
        let lines = lines.into_iter().map(|line| element("li", &[], [element("bdi", &[], [text(line)])]));
        section(&title, [element("ul", &[], lines)])
    });
    let note = "This page shows what holds. It is changed in service.toml, on the machine.";
    Ok(page(visit, "Rules", [accepted, words("p", "note", note)].into_iter().chain(sections)))
}

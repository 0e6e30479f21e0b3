//! The organisation's data: what is there, and whether it is what `service.toml` says.

use crate::findings::{DataFindings, without_columns};
use crate::roles::{Action, Subject};
use crate::store::DataRead;
use crate::web::answer::Answer;
use crate::web::checking::{read, start};
use crate::web::shell::{page, section, table, time};
use crate::web::visit::{Stop, Visit};
use page::form::{button, form};
use page::markup::{Markup, element, text, words};
use page::numbers::count;

/// Checks of one data set that are shown.
const CHECKS: u32 = 20;

/// All data sets that this person may know of.
pub fn list(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let known = |name: &&String| sees(visit, name);
    let names: Vec<&String> = visit.settings().data.keys().filter(known).collect();
    if names.is_empty() {
        return Err(Stop::Denied);
    }
    let mut rows = Vec::new();
    for name in names {
        let set = &visit.settings().data[name];
        let link = element("a", &[("href", &format!("/data/{name}"))], [text(name)]);
        let newest = visit.house.store.checks_of(name, 1)?.pop();
        let (rows_of, at) = match &newest {
            _ if visit.house.checking.has(name) => (text("-"), text("being checked")),
            None => (text("-"), never(visit, name)?),
            Some(check) => (text(rows_seen(visit, name, &read(&check.found))), time(check.at)),
        };
        let who = |names: &[String]| if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
        let (peers, servers) = (text(who(&set.peers)), text(who(&set.servers)));
        rows.push(vec![link, text(&set.lineage), rows_of, at, peers, servers]);
    }
    let columns =
        ["Name", "Budget under", "Rows", "Checked", "May be used by studies of", "May be computed on by"];
    Ok(page(visit, "Data", [table("Data sets of this organisation", &columns, rows)]))
}

/// What is said of data that nobody checked: they may have been read for a consent.
fn never(visit: &Visit<'_>, name: &str) -> Result<Markup, Stop> {
    Ok(match visit.house.store.read_for_consent(name)? {
        None => text("never"),
        Some(read) => element("span", &[], [text("never; read for a consent "), time(read.at)]),
    })
}

/// When the files were last read for a consent, for who may check them; a check is more than that.
fn read_for(visit: &Visit<'_>, name: &str) -> Result<Option<Markup>, Stop> {
    if !visit.may(Action::CheckData, Subject::Data(name)) {
        return Ok(None);
    }
    let Some(DataRead { at, title, fits }) = visit.house.store.read_for_consent(name)? else {
        return Ok(None);
    };
    let came = match fits {
        true => "nothing stood against it",
        false => "something stood against it, which its page says",
    };
    let said = format!(
        ": {came}. That is no check: it reads what the study asks for, and keeps neither how many rows there \
         are nor which columns."
    );
    let title = element("bdi", &[], [text(title)]);
    let parts = [text("For a consent all rows were read "), time(at), text(" and held against "), title];
    Ok(Some(element("p", &[], parts.into_iter().chain([text(said)]))))
}

/// Whether somebody may know of a data set.
pub fn sees(visit: &Visit<'_>, name: &str) -> bool {
    [Action::CheckData, Action::SeeColumns].iter().any(|action| visit.may(*action, Subject::Data(name)))
}

/// How many rows, for who may see that.
fn rows_seen(visit: &Visit<'_>, name: &str, found: &Result<DataFindings, String>) -> String {
    match found {
        _ if !visit.may(Action::CheckData, Subject::Data(name)) => "not for your role".to_owned(),
        Ok(found) if found.whole => count(found.rows),
        Ok(found) => format!("more than {}", count(found.rows)),
        Err(_) => "the check failed".to_owned(),
    }
}

/// One data set.
pub fn one(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let name = visit.part("name");
    let set = visit.settings().data.get(name).filter(|_| sees(visit, name)).ok_or(Stop::Missing)?;
    let checks = visit.house.store.checks_of(name, CHECKS)?;
    let servers = match set.servers.is_empty() {
        true => "No server may compute on it (servers in service.toml).".to_owned(),
        false => format!("Servers that may compute on it: {}.", set.servers.join(", ")),
    };
    let budget = format!("Its budget is kept under the name {}.", set.lineage);
    let mut parts = vec![words("p", "", budget), words("p", "", servers)];
    if visit.house.checking.has(name) {
        let link = element("a", &[("href", &visit.path)], [text("Look again")]);
        let said = text("The files are being read. This can take some minutes. ");
        parts.push(element("p", &[("role", "status")], [said, link]));
    } else if visit.may(Action::CheckData, Subject::Data(name)) {
        let word = visit.word("check data", name);
        let label = if checks.is_empty() { "Check" } else { "Check again" };
        parts.push(form(&format!("/data/{name}/check"), word.as_deref(), [button(label, "")]));
    }
    if let Some(newest) = checks.first() {
        match read(&newest.found) {
            Ok(found) => parts.extend(shown(visit, name, &found)),
            Err(why) if visit.may(Action::SeeColumns, Subject::Data(name)) => {
                let why = words("p", "", why);
                parts.push(element(
                    "div",
                    &[("class", "box stop")],
                    [words("p", "", "The check failed."), why],
                ));
            }
            Err(_) => {
                let said = "The check failed. Whoever sees the columns of these data sees why; on the \
                            machine, tacit service data says it.";
                parts.push(element("div", &[("class", "box stop")], [words("p", "", said)]));
            }
        }
    }
    let rows = checks.iter().map(|check| {
        vec![time(check.at), text(&check.by), text(rows_seen(visit, name, &read(&check.found)))]
    });
    let history = table("The newest first", &["When", "By", "Rows"], rows.collect::<Vec<_>>());
    let history = if checks.is_empty() { words("p", "", "None yet.") } else { history };
    parts.push(section("Checks", [history].into_iter().chain(read_for(visit, name)?)));
    Ok(page(visit, name, parts))
}

fn shown(visit: &Visit<'_>, name: &str, found: &DataFindings) -> Vec<Markup> {
    let mut parts = Vec::new();
    let columns = visit.may(Action::SeeColumns, Subject::Data(name));
    let problems = found.problems.iter().map(|problem| match columns {
        true => words("p", "", problem),
        false => words("p", "", without_columns(problem)),
    });
    parts.push(match found.problems.is_empty() {
        true => {
            let said = "The files have what service.toml says of them.";
            element("div", &[("class", "box good")], [words("p", "", said)])
        }
        false => element("div", &[("class", "box stop")], problems),
    });
    parts.extend(found.forms.iter().map(|form| words("p", "note", form)));
    if !columns {
        return parts;
    }
    let rows = found.columns.iter().map(|column| {
        let allowed = if column.allowed { "yes" } else { "no" };
        let name = element("bdi", &[], [text(&column.name)]);
        vec![name, text(&column.looks), text(count(column.empty)), text(allowed)]
    });
    let columns = ["Column", "Looks like", "Empty cells", "Studies may read it"];
    parts.push(section("Columns", [table("Columns of the files", &columns, rows)]));
    parts
}

/// Starts a check.
pub fn check(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let name = visit.part("name");
    let known = visit.settings().data.contains_key(name);
    let signed = visit.must(Action::CheckData, Subject::Data(name))?;
    if !known {
        return Err(Stop::Missing);
    }
    match start(visit.house, &signed.session.account, name)? {
        false if !visit.house.checking.has(name) => Err(Stop::Busy),
        _ => Ok(Answer::go(&format!("/data/{name}"))),
    }
}

//! What runs, who is signed in, what the machine has left: for who runs it.

use super::course::waits;
use crate::link::now_ms;
use crate::roles::{Action, Grant, Subject};
use crate::store::ProposalFilter;
use crate::web::answer::Answer;
use crate::web::metrics::resident_bytes;
use crate::web::shell::{page, section, table, time};
use crate::web::visit::{Stop, Visit};
use page::form::{button, form};
use page::markup::{Markup, element, text, words};
use page::numbers::{binary, count};

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::Operate, Subject::House)?;
    let parts = [
        section("Runs", runs(visit)?),
        section("Waiting", waiting(visit)?),
        section("Who is signed in", [sessions(visit)?]),
        section("The machine", [machine(visit)?]),
        section("Backup", backup()),
    ];
    Ok(page(visit, "Operate", parts))
}

fn runs(visit: &Visit<'_>) -> Result<Vec<Markup>, Stop> {
    let store = &visit.house.store;
    let mut rows = Vec::new();
    for run in store.open_runs()? {
        let study = store.proposal(&run.proposal)?.map_or(String::new(), |row| row.study.full());
        let state = match run.begun_ms {
            Some(_) => "under way",
            None => "ready, waits for the others",
        };
        let since = run.begun_ms.unwrap_or(run.made_ms) / 1_000;
        let study = study.get(..12).unwrap_or_default();
        rows.push(vec![text(study), text(run.run.to_string()), text(state), time(since)]);
    }
    let policy = &visit.settings().policy;
    let (most, memory) = (count(policy.max_jobs), binary(policy.jobs_memory));
    let said = format!("At most {most} at once, with {memory} together.");
    Ok(match rows.is_empty() {
        true => vec![words("p", "", format!("None is under way. {said}"))],
        false => {
            vec![words("p", "note", said), table("Under way", &["Study", "Run", "State", "Since"], rows)]
        }
    })
}

/// Studies that all agreed to and whose next run does not begin yet, and why.
fn waiting(visit: &Visit<'_>) -> Result<Vec<Markup>, Stop> {
    let filter = ProposalFilter { open: true, ..ProposalFilter::default() };
    let mut rows = Vec::new();
    for row in visit.house.store.list(&filter, None)? {
        if let Some(why) = waits(visit, &row)? {
            let next = match row.next_ms > now_ms() {
                true => time(row.next_ms / 1_000),
                false => text("when that is over"),
            };
            rows.push(vec![text(&row.study.full()[..12]), text(why), next]);
        }
    }
    Ok(match rows.is_empty() {
        true => vec![words("p", "", "Nothing waits for its turn.")],
        false => vec![table(
            "In the order in which they were proposed, the newest first",
            &["Study", "Waits for", "Next try"],
            rows,
        )],
    })
}

fn sessions(visit: &Visit<'_>) -> Result<Markup, Stop> {
    let own = visit.signed()?.session.id;
    let rows = visit.house.store.all_sessions(visit.now)?.into_iter().map(|session| {
        let id = session.id.to_string();
        let end = match session.id == own {
            true => text("this one"),
            false => {
                let word = visit.word("end session of another", &id);
                let about = format!("session {id} of {}", session.account);
                form(&format!("/operate/sessions/{id}/end"), word.as_deref(), [button("End", &about)])
            }
        };
        let roles: Vec<String> = session.grants.iter().map(Grant::words).collect();
        vec![
            text(format!("{} ({id})", session.account)),
            text(roles.join(", ")),
            time(session.begun),
            time(session.seen),
            end,
        ]
    });
    let columns = ["Account (session)", "Roles", "Began", "Last used", "End"];
    Ok(table("Sessions that hold, the newest first", &columns, rows.collect::<Vec<_>>()))
}

/// Ends somebody's session.
pub fn end_session(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::Operate, Subject::House)?;
    let id: i64 = visit.part("id").parse().map_err(|_| Stop::Missing)?;
    let all = visit.house.store.all_sessions(visit.now)?;
    let session = all.into_iter().find(|session| session.id == id).ok_or(Stop::Missing)?;
    visit.house.store.end_session(&visit.act("ended a session", &session.account)?, id)?;
    Ok(Answer::go("/operate"))
}

fn machine(visit: &Visit<'_>) -> Result<Markup, Stop> {
    let settings = visit.settings();
    let row = |what: &str, said: String| vec![text(what), text(said)];
    let mut rows = vec![row("Program", format!("tacit {}", env!("CARGO_PKG_VERSION")))];
    rows.push(row(
        "Format of studies and statements",
        format!("{}, {}", net::FORMAT_VERSION, statements::STATEMENT_VERSION),
    ));
    rows.extend(resident_bytes().map(|bytes| row("Memory of this process", binary(bytes))));
    for (what, path) in [("Store", &settings.store), ("Ledger", &settings.ledger)] {
        let bytes = std::fs::metadata(path).map_or("not there yet".to_owned(), |file| binary(file.len()));
        rows.push(row(what, bytes));
    }
    let folder = settings.store.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Ok(disk) = rustix::fs::statvfs(folder.unwrap_or(std::path::Path::new("."))) {
        let (free, all) =
            (disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize));
        rows.push(row("Disk of the store", format!("{} free of {}", binary(free), binary(all))));
    }
    Ok(table("What it has and takes", &["What", "How much"], rows))
}

fn backup() -> [Markup; 2] {
    let said = "On the machine, while the service goes on; the organisation's key is not in it and is kept \
                apart. A service does not start on a copy until somebody there says that it may.";
    [
        words("p", "", said),
        element("p", &[("class", "link")], [text("tacit service backup service.toml FOLDER")]),
    ]
}

//! What the parties of a study have said about it, the newest first, so many at a time: a peer may say
//! thousands of things.

use crate::roles::Action;
use crate::store::OutboxRow;
use crate::web::pages::studies::{StudySeen, name_of};
use crate::web::shell::{table, time};
use crate::web::visit::{Stop, Visit};
use page::form::{button, needed_lines};
use page::markup::{Markup, element, span_lines, text};
use statements::{Naming, ProposalRecord};
use std::fmt;
use std::str::FromStr;

/// Statements of a page.
pub const SAID: usize = 100;

/// Where a statement stands among those of all parties: by the clock of who said it. Statements that arrive
/// later move no other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SaidAt {
    /// When.
    pub at_ms: u64,
    /// By which party, in the study's order.
    pub party: usize,
    /// Which of its statements.
    pub number: usize,
}

impl fmt::Display for SaidAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.at_ms, self.party, self.number)
    }
}

impl FromStr for SaidAt {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, '-');
        let mut part = || parts.next().ok_or(());
        let (at_ms, party, number) = (part()?, part()?, part()?);
        let [party, number] = [party, number].map(|text| text.parse().map_err(|_| ()));
        Ok(Self { at_ms: at_ms.parse().map_err(|_| ())?, party: party?, number: number? })
    }
}

/// The newest statements that are older than `after`, the newest first, and what `after` has to be for those
/// that come next; none: there are no more.
pub fn newest(record: &ProposalRecord, after: Option<SaidAt>) -> (Vec<SaidAt>, Option<SaidAt>) {
    let of = |party: usize| {
        let chain = record.chain(party).iter().enumerate();
        chain.map(move |(number, one)| SaidAt { at_ms: one.body().at_ms, party, number })
    };
    let all = (0..record.parties().len()).flat_map(of);
    let mut all: Vec<SaidAt> = all.filter(|one| after.is_none_or(|after| *one < after)).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    let more = all.len() > SAID;
    all.truncate(SAID);
    let next = all.last().copied().filter(|_| more);
    (all, next)
}

/// A page of it, from `after` behind the question mark on.
pub fn table_of(visit: &Visit<'_>, study: &StudySeen) -> Result<Vec<Markup>, Stop> {
    let record = &study.record;
    let sent = visit.house.store.sent(&study.row.id)?;
    let (shown, next) = newest(record, visit.field("after").parse().ok());
    let rows = shown.into_iter().filter_map(|SaidAt { at_ms, party, number }| {
        let said = record.statement_words(party, number, Naming(&study.names))?;
        let said = element("bdi", &[("class", "lines")], span_lines(&said));
        let told = match study.me == Some(party) {
            true => element("span", &[], received(visit, &sent, number)),
            false => text("here"),
        };
        Some(vec![time(at_ms / 1_000), said, told])
    });
    let columns = ["When", "What", "Received"];
    let rows: Vec<_> = rows.collect();
    let mut parts = vec![table("By the clock of who said it, the newest first", &columns, rows)];
    if let Some(next) = next {
        let next = format!("{}?after={next}", visit.path);
        let link = element("a", &[("href", &next), ("rel", "next")], [text("Older ones")]);
        parts.push(element("p", &[], [link]));
    }
    Ok(parts)
}

/// A question or an answer to the others, while they take one.
pub fn note_form(visit: &Visit<'_>, study: &StudySeen) -> Option<Markup> {
    if !visit.may(Action::Note, study.subject()) || study.record.view().state().is_final() {
        return None;
    }
    let label = "A question or an answer to the others";
    let field = needed_lines("note", label, ("", 3), "1 to 2,000 characters.");
    Some(study.form(visit, "note", "write note", [field, button("Send", "")]))
}

/// Who has received an own statement.
fn received(visit: &Visit<'_>, sent: &[OutboxRow], number: usize) -> Vec<Markup> {
    let of = sent.iter().filter(|row| row.number as usize == number);
    let called = |row: &OutboxRow| {
        name_of(visit.settings(), visit.us(), &row.peer).unwrap_or_else(|| row.peer.short())
    };
    of.flat_map(|row| match (row.had_ms, &row.refused) {
        (Some(at), _) => [text(format!("by {} ", called(row))), time(at / 1_000)],
        (None, Some(code)) => [text(format!("refused by {}: ", called(row))), text(code)],
        (None, None) => [text(format!("not yet by {}", called(row))), Markup::default()],
    })
    .collect()
}

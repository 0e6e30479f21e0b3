//! Drafts, and proposing them: the same drafts that the account has on its page.

use super::shapes::{ApiDone, ApiDraft, ApiDraftSent, ApiDrafts, ApiNothing, ApiPreview, ApiProposing};
use super::stop::ApiStop;
use super::studies::sections;
use crate::policy::broken;
use crate::reckoned::ReckonedFor;
use crate::roles::{Action, Subject};
use crate::store::DraftRow;
use crate::told::{StudyTold, tell};
use crate::web::pages::propose::{self, AskedBesides, FilledForm};
use crate::web::visit::{Stop, Visit};
use base::limits::STUDY_BYTES;
use net::Identity;
use page::form::FormMistake;

/// Letters of a draft's title.
const TITLE: usize = 200;

fn account<'v>(visit: &'v Visit<'_>) -> Result<&'v str, Stop> {
    Ok(&visit.must(Action::Propose, Subject::House)?.session.account)
}

/// A word for what a draft is, which changes with it.
fn version(draft: &DraftRow) -> String {
    let whole = serde_json::json!([draft.id, draft.title, draft.at, draft.fields]).to_string();
    base::hex(&blake3::hash(whole.as_bytes()).as_bytes()[..16])
}

fn shown(draft: &DraftRow) -> ApiDraft {
    let field = |name: &str| draft.fields.iter().find(|(field, _)| field == name).map(|(_, text)| text);
    let is_file = field("as").is_some_and(|said| said == "file");
    ApiDraft {
        id: draft.id,
        title: draft.title.clone(),
        at: draft.at,
        text: field("text").filter(|_| is_file).cloned(),
        version: version(draft),
    }
}

/// All of them.
pub fn list(visit: &Visit<'_>) -> Result<ApiDrafts, ApiStop> {
    let drafts = visit.house.store.drafts(account(visit)?)?;
    Ok(ApiDrafts { drafts: drafts.iter().map(shown).collect() })
}

/// The draft of the path, where it is the account's.
fn of_path(visit: &Visit<'_>) -> Result<DraftRow, Stop> {
    let id = visit.part("id").parse().map_err(|_| Stop::Missing)?;
    visit.house.store.draft(account(visit)?, id)?.ok_or(Stop::Missing)
}

/// One of them.
pub fn one(visit: &Visit<'_>) -> Result<ApiDraft, ApiStop> {
    Ok(shown(&of_path(visit)?))
}

fn keep(visit: &Visit<'_>, id: Option<u64>, sent: ApiDraftSent) -> Result<ApiDraft, ApiStop> {
    let account = account(visit)?;
    let title = sent.title.trim();
    if title.is_empty() || title.chars().count() > TITLE {
        return Err(ApiStop::input(format!("a draft's title has 1 to {TITLE} characters")));
    }
    if sent.text.len() > STUDY_BYTES {
        return Err(ApiStop::input(format!("a study has at most {STUDY_BYTES} bytes")));
    }
    let days = sent.days.unwrap_or(30).to_string();
    let fields = [("as", "file"), ("title", title), ("text", &*sent.text), ("days", &*days)];
    let fields = fields.into_iter().chain(sent.note.as_deref().map(|note| ("note", note)));
    let fields: Vec<_> = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let store = &visit.house.store;
    let id = store.keep_draft(&visit.act("draft kept", account)?, id, title, &fields)?;
    Ok(shown(&store.draft(account, id)?.ok_or(Stop::Missing)?))
}

/// Keeps a new one.
pub fn add(visit: &Visit<'_>, sent: ApiDraftSent) -> Result<ApiDraft, ApiStop> {
    keep(visit, None, sent)
}

/// Keeps another text in its place.
pub fn change(visit: &Visit<'_>, sent: ApiDraftSent) -> Result<ApiDraft, ApiStop> {
    let held = of_path(visit)?;
    if sent.version.as_ref().is_some_and(|known| *known != version(&held)) {
        return Err(ApiStop::refused("the draft was changed meanwhile: read it again"));
    }
    keep(visit, Some(held.id), sent)
}

/// Drops one.
pub fn drop_one(visit: &Visit<'_>, _: ApiNothing) -> Result<ApiDraft, ApiStop> {
    let draft = of_path(visit)?;
    visit.house.store.drop_draft(&visit.act("draft dropped", account(visit)?)?, draft.id)?;
    Ok(shown(&draft))
}

/// What a draft comes to, or what is wrong with it, at its place.
fn weighed<'v>(
    visit: &'v Visit<'_>,
    draft: &DraftRow,
) -> Result<(&'v Identity, StudyTold, AskedBesides), ApiStop> {
    let own = visit.house.identity();
    let own = own.ok_or_else(|| ApiStop::refused("this organisation has no key, so it cannot sign"))?;
    if let Some(text) = shown(draft).text {
        // What is wrong has the place of the text that was sent; the form has no places.
        study::StudyFile::parse("the study", &text).map_err(ApiStop::told)?;
        tell(&text, &own.fingerprint().to_string(), &ReckonedFor::default()).map_err(ApiStop::told)?;
    }
    let filled = FilledForm::of(draft.fields.clone());
    let wrong = |why: Vec<FormMistake>| {
        ApiStop::input(why.iter().map(FormMistake::to_string).collect::<Vec<_>>().join(" "))
    };
    let told = propose::read(visit, &filled, own).map_err(wrong)?;
    Ok((own, told, propose::asked(visit, &filled).map_err(wrong)?))
}

/// What a draft would do.
pub fn preview(visit: &Visit<'_>) -> Result<ApiPreview, ApiStop> {
    let (own, told, _) = weighed(visit, &of_path(visit)?)?;
    let against = broken(&visit.settings().policy, own.fingerprint(), &told.file);
    Ok(ApiPreview {
        study: told.file.hash().full(),
        title: told.file.first().title.clone(),
        sections: sections(&told),
        against: against.into_iter().map(|broken| broken.why).collect(),
        text: told.text,
    })
}

/// Signs a draft and sends it, where it still is the study that was read.
pub fn propose(visit: &Visit<'_>, sent: ApiProposing) -> Result<ApiDone, ApiStop> {
    let draft = of_path(visit)?;
    let (own, told, asked) = weighed(visit, &draft)?;
    let study = told.file.hash().full();
    if sent.study != study {
        return Err(ApiStop::refused("the draft is another study by now: read its preview again"));
    }
    let record = propose::propose(visit, own, &told, asked, Some(draft.id)).map_err(ApiStop::said)?;
    let proposal = base::hex(&record.id().0);
    Ok(ApiDone { study, proposal, done: "proposed".to_owned() })
}

//! What programs do to studies: what their account may, by the functions of the pages; consent and refusal
//! only where `policy.consent_by_token` says so.

use super::shapes::{ApiConsent, ApiDone, ApiNote, ApiReason, ApiWhich};
use super::stop::ApiStop;
use crate::roles::Action;
use crate::serving::NO_DATA;
use crate::settings::DataSet;
use crate::store::TokenScope;
use crate::web::pages::decide::{self, AskedConsent};
use crate::web::pages::studies::{StudySeen, seen};
use crate::web::pages::{course, study as pages};
use crate::web::visit::{Stop, Visit};
use axum::http::StatusCode;
use statements::Said;

/// The study of the path, where the proposal that was read is the one that stands.
fn acted_on(visit: &Visit<'_>, proposal: &str) -> Result<StudySeen, ApiStop> {
    let study = seen(visit)?;
    if study.proposal() == proposal { Ok(study) } else { Err(Stop::Stale.into()) }
}

fn done(study: &StudySeen, done: &str) -> ApiDone {
    ApiDone { study: study.row.study.full(), proposal: study.proposal(), done: done.to_owned() }
}

/// Stops who decides by a token where no rule allows that.
fn by_token(visit: &Visit<'_>) -> Result<(), ApiStop> {
    if visit.settings().policy.consent_by_token {
        return Ok(());
    }
    let said = "no token decides on studies here: a steward does, on the page (`consent_by_token` of \
                service.toml is false)";
    Err(ApiStop::new(StatusCode::FORBIDDEN, said))
}

/// Stops who decides by a token on data for which one person with a session does not, either.
fn by_one((name, set): (&str, &DataSet)) -> Result<(), ApiStop> {
    let said = if set.two_person {
        format!("two stewards decide on {name}, each on the page: no token does")
    } else if !set.steward_keys.is_empty() {
        format!("a steward's own key signs for {name}: no token does")
    } else {
        return Ok(());
    };
    Err(ApiStop::new(StatusCode::FORBIDDEN, said))
}

/// Consents: the files are read, and it is signed where nothing stands against it.
pub fn consent(visit: &Visit<'_>, sent: ApiConsent) -> Result<ApiDone, ApiStop> {
    let study = acted_on(visit, &sent.proposal)?;
    by_token(visit)?;
    let ApiConsent { data, words, runs, days, .. } = &sent;
    let asked = AskedConsent { runs: *runs, days: *days, words };
    let (name, set) = decide::chosen(visit, &study, data.as_deref().unwrap_or(NO_DATA))?;
    set.map_or(Ok(()), |set| by_one((name, set)))?;
    let told = pages::told(visit, &study)?;
    if let Some(why) = decide::why_not_begun(visit, &told, &asked) {
        return Err(ApiStop::refused(why));
    }
    decide::begin_consent(visit, &study, &told, (name, set), &asked)?;
    Ok(done(&study, "weighing"))
}

/// Refuses.
pub fn refuse(visit: &Visit<'_>, sent: ApiReason) -> Result<ApiDone, ApiStop> {
    let study = acted_on(visit, &sent.proposal)?;
    by_token(visit)?;
    if !decide::may_refuse(visit, &study) {
        return Err(Stop::Denied.into());
    }
    // It is refused for all data that it could use.
    decide::asked_for(visit, &study).into_iter().try_for_each(|(name, set)| by_one((name, set)))?;
    let reason = decide::reason_of(&sent.code, &sent.text).map_err(ApiStop::input)?;
    decide::speak(visit, &study, Said::Refuse(reason)).map_err(ApiStop::said)?;
    Ok(done(&study, "refused"))
}

/// Takes back what was proposed or consented to. A token that proposes takes back what its account proposed.
pub fn withdraw(visit: &Visit<'_>, sent: ApiReason) -> Result<ApiDone, ApiStop> {
    let study = acted_on(visit, &sent.proposal)?;
    if !decide::may_withdraw(visit, &study) {
        return Err(Stop::Denied.into());
    }
    let account = &visit.signed()?.session.account;
    if study.row.by != *account && !visit.has_scope(TokenScope::Consent) {
        let said = "this study was proposed by somebody else: this takes a token with the scope consent";
        return Err(ApiStop::new(StatusCode::FORBIDDEN, said));
    }
    let reason = decide::reason_of(&sent.code, &sent.text).map_err(ApiStop::input)?;
    decide::speak(visit, &study, Said::Withdraw(reason)).map_err(ApiStop::said)?;
    Ok(done(&study, "withdrawn"))
}

/// Writes to the others.
pub fn note(visit: &Visit<'_>, sent: ApiNote) -> Result<ApiDone, ApiStop> {
    let study = acted_on(visit, &sent.proposal)?;
    visit.must(Action::Note, study.subject())?;
    let text = sent.text.replace("\r\n", "\n").trim().to_owned();
    if !(1..=statements::TEXT_CHARS).contains(&text.chars().count()) {
        return Err(ApiStop::input("a note has 1 to 2,000 characters"));
    }
    decide::speak(visit, &study, Said::Note(text)).map_err(ApiStop::said)?;
    Ok(done(&study, "written"))
}

/// Lets the next run begin as soon as it can.
pub fn start(visit: &Visit<'_>, sent: ApiWhich) -> Result<ApiDone, ApiStop> {
    let study = acted_on(visit, &sent.proposal)?;
    visit.must(Action::Run, study.subject())?;
    match course::allow(visit, &study)? {
        Some(why) => Err(ApiStop::refused(why)),
        None => Ok(done(&study, "allowed")),
    }
}

/// Stops the run that is under way or was offered.
pub fn stop(visit: &Visit<'_>, sent: ApiWhich) -> Result<ApiDone, ApiStop> {
    let study = acted_on(visit, &sent.proposal)?;
    visit.must(Action::Run, study.subject())?;
    course::end(visit, &study)?;
    Ok(done(&study, "stopped"))
}

//! What is done about a study: consent, refuse, withdraw, stop a run. Each gives the password again unless it
//! was just given, and counts for what was on the page.

use super::course::password;
use super::studies::{StudySeen, acted_on};
use super::study::told;
use crate::agree::AgreeOrder;
use crate::link::now_ms;
use crate::reckoned::RowsOfCheck;
use crate::roles::{Action, StudySubject, Subject};
use crate::rules::RulesStanding;
use crate::serving::NO_DATA;
use crate::settings::DataSet;
use crate::store::{ApprovalRow, ApprovedTerms, ConsentRight, HELD, Speaker, UNHEARD};
use crate::told::StudyTold;
use crate::web::answer::Answer;
use crate::web::checking::read;
use crate::web::door::prove;
use crate::web::shell::{page, section, stopped, table, time};
use crate::web::visit::{Stop, Visit};
use crate::web::weighing::{self, WeighOrder, Weighed};
use base::{Error, Fault};
use net::KeyFingerprint;
use page::form::{FormField, button, choice, hidden, needed_lines, quiet_button};
use page::markup::{Markup, element, prose, spans, text, words};
use release::Rational;
use statements::{ClosingCode, ClosingReason, ProposalState, RUNS_ANEW, Said, TEXT_CHARS};

/// Reasons that people give, and what they read.
const REASONS: [(&str, &str, ClosingCode); 5] = [
    ("purpose", "what it is for", ClosingCode::Purpose),
    ("data", "our data", ClosingCode::Data),
    ("budget", "the privacy budget", ClosingCode::Budget),
    ("policy", "a rule of ours", ClosingCode::Policy),
    ("other", "another reason", ClosingCode::Other),
];

/// Our data sets that studies of the other parties may use and all its servers may compute on; of those the
/// one that was given, once it was.
pub fn sets<'v>(visit: &'v Visit<'_>, study: &StudySeen) -> Vec<(&'v String, &'v DataSet)> {
    let peers = &visit.settings().peers;
    let servers: Vec<KeyFingerprint> =
        study.record.servers().into_iter().filter(|key| visit.us() != Some(*key)).collect();
    let named = |set: &DataSet, key| set.servers.iter().any(|server| peers[server].key == key);
    let is_given = study.row.data.is_some();
    let mut all = asked_for(visit, study);
    all.retain(|(_, set)| is_given || servers.iter().all(|key| named(set, *key)));
    all
}

/// The same whoever computes: who decides on one of these refuses the study.
pub fn asked_for<'v>(visit: &'v Visit<'_>, study: &StudySeen) -> Vec<(&'v String, &'v DataSet)> {
    let settings = visit.settings();
    let owners = study.record.owners();
    if !owners.iter().any(|key| visit.us() == Some(*key)) {
        return Vec::new();
    }
    let others: Vec<KeyFingerprint> = owners.into_iter().filter(|key| visit.us() != Some(*key)).collect();
    let fits = |name: &str, set: &DataSet| match &study.row.data {
        Some(data) => data == name,
        None => others.iter().all(|key| set.peers.iter().any(|peer| settings.peers[peer].key == *key)),
    };
    settings.data.iter().filter(|(name, set)| fits(name, set)).collect()
}

/// Whether this organisation would compute the study and owns none of its data.
fn is_server(visit: &Visit<'_>, study: &StudySeen) -> bool {
    study.me.is_some() && !study.record.owners().iter().any(|key| visit.us() == Some(*key))
}

/// The same, where this person decides on that: a steward of everything.
pub fn serves(visit: &Visit<'_>, study: &StudySeen) -> bool {
    let subject = StudySubject { by: &study.row.by, data: None, given: false };
    is_server(visit, study)
        && visit.may(Action::Decide, Subject::Study(subject))
        && visit.may(Action::RulesAsSteward, Subject::House)
}

/// Whether this person takes back what was proposed or consented to here; that this organisation computes a
/// study, who decides on that.
pub fn may_withdraw(visit: &Visit<'_>, study: &StudySeen) -> bool {
    match is_server(visit, study) {
        true => serves(visit, study),
        false => visit.may(Action::Withdraw, study.subject()),
    }
}

/// Those of them that this person may know of.
pub fn known_sets<'v>(
    visit: &'v Visit<'_>,
    study: &StudySeen,
) -> impl Iterator<Item = (&'v String, &'v DataSet)> {
    sets(visit, study).into_iter().filter(|(name, _)| visit.may(Action::CheckData, Subject::Data(name)))
}

/// Whether this person decides on a data set: by role, and by its list of stewards.
pub fn decides(visit: &Visit<'_>, study: &StudySeen, (name, set): (&str, &DataSet)) -> bool {
    let subject = StudySubject { by: &study.row.by, data: Some(name), given: false };
    let named = visit.signed.as_ref().is_some_and(|signed| set.stewards.contains(&signed.session.account));
    named && visit.may(Action::Decide, Subject::Study(subject))
}

/// Our data and when they were last checked.
pub fn data(visit: &Visit<'_>, study: &StudySeen) -> Result<Vec<Markup>, Stop> {
    let mut rows = Vec::new();
    for (name, _) in known_sets(visit, study) {
        let newest = visit.house.store.checks_of(name, 1)?.pop();
        let path = format!("/data/{name}");
        let link = element("a", &[("href", &path)], [text(name)]);
        let (found, at) = match newest {
            None => match visit.house.store.read_for_consent(name)? {
                Some(read) => ("no check; read for a consent".to_owned(), time(read.at)),
                None => ("never checked".to_owned(), text("-")),
            },
            Some(check) => {
                let found = match read(&check.found) {
                    Ok(found) if found.problems.is_empty() => page::numbers::counted(found.rows, "row"),
                    Ok(found) => page::numbers::counted(found.problems.len() as u64, "problem"),
                    Err(_) => "the check failed".to_owned(),
                };
                (found, time(check.at))
            }
        };
        rows.push(vec![link, text(found), at]);
    }
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let columns = ["Data set", "Last check", "When"];
    Ok(vec![section("Our data", [table("Data sets that this study could use", &columns, rows)])])
}

/// Rows of the first of our data sets that a study could use and that somebody checked, for who may see how
/// many there are.
pub fn checked_rows(visit: &Visit<'_>, study: &StudySeen) -> Result<Option<RowsOfCheck>, Stop> {
    for (name, _) in known_sets(visit, study) {
        let Some(check) = visit.house.store.checks_of(name, 1)?.pop() else { continue };
        let Ok(found) = read(&check.found) else { continue };
        let day = study::time::date(check.at.cast_signed());
        return Ok(Some(RowsOfCheck { data: name.clone(), rows: found.rows, whole: found.whole, day }));
    }
    Ok(None)
}

/// Whether this person has a form by which a study is decided on now.
pub fn decides_now(visit: &Visit<'_>, study: &StudySeen) -> bool {
    let view = study.record.view();
    let Some(mine) = study.me.and_then(|me| view.standings.get(me)) else { return false };
    let is_open = !view.state().is_final() && !mine.has_consented() && !mine.is_closed();
    let decides = |(name, set): (&String, &DataSet)| decides(visit, study, (name, set));
    is_open
        && (serves(visit, study) || sets(visit, study).into_iter().any(decides) || may_refuse(visit, study))
}

/// The forms of this person; where there is none, why.
pub fn forms(visit: &Visit<'_>, study: &StudySeen, told: &StudyTold) -> Result<Vec<Markup>, Stop> {
    let view = study.record.view();
    let Some(mine) = study.me.and_then(|me| view.standings.get(me)) else { return Ok(Vec::new()) };
    let mut parts = Vec::new();
    if view.state().is_final() {
        return Ok(parts);
    }
    let own: Vec<&String> = sets(visit, study)
        .into_iter()
        .filter(|(name, set)| decides(visit, study, (name, set)))
        .map(|(name, _)| name)
        .collect();
    if !mine.has_consented() && !mine.is_closed() && visit.house.weighing.has(&study.row.id) {
        let said =
            text("Our files are being read; if nothing stands against it, the consent is signed then. ");
        let again = element("a", &[("href", &visit.path)], [text("Look again")]);
        parts.push(section("Your decision", [element("p", &[("role", "status")], [said, again])]));
    } else if !mine.has_consented() && !mine.is_closed() {
        parts.extend(against(visit, study, "")?);
        parts.extend(super::own_key::parts(visit, study)?);
        match own.as_slice() {
            [] if serves(visit, study) => parts
                .push(section("Your decision", [serving_form(visit, study, told), refusal(visit, study)])),
            [] => parts.extend(why_not(visit, study)),
            own => parts.push(section(
                "Your decision",
                [consent_form(visit, study, own, told), refusal(visit, study)],
            )),
        }
    } else if may_withdraw(visit, study) {
        let form = match view.state() {
            ProposalState::Running => {
                prose("p", "", "A study that runs is not withdrawn: who stops the run can withdraw it then.")
            }
            _ => withdrawal(visit, study),
        };
        parts.push(section("Take it back", [form]));
    }
    // Who proposed may take it back before anybody has decided here.
    if !mine.has_consented() && own.is_empty() && study.row.by == account(visit) {
        parts.push(section("Take it back", [withdrawal(visit, study)]));
    }
    Ok(parts)
}

fn account<'v>(visit: &'v Visit<'_>) -> &'v str {
    visit.signed.as_ref().map_or("", |signed| &signed.session.account)
}

/// Whether this person sees what stands against a study with a data set: who may decide on these data.
pub fn sees_against(visit: &Visit<'_>, study: &StudySeen, data: &str) -> bool {
    let subject = StudySubject { by: &study.row.by, data: Some(data), given: false };
    visit.may(Action::Decide, Subject::Study(subject))
}

/// What stood against a consent that was tried, or against data that changed, and who of two has agreed; each
/// for who may decide on the data that it is about.
pub fn against(visit: &Visit<'_>, study: &StudySeen, instead: &str) -> Result<Vec<Markup>, Stop> {
    let sees = |data: &str| sees_against(visit, study, if data.is_empty() { instead } else { data });
    let mut parts = Vec::new();
    if let Some((at, data, said)) = visit.house.store.weighed(&study.row.id)?
        && sees(&data)
    {
        let with = if data == NO_DATA { String::new() } else { format!(" with {data}") };
        let when = [text(format!("Nothing was done{with}, ")), time(at), text(": ")];
        let said = element("bdi", &[], spans(&said));
        let said = element("p", &[], when.into_iter().chain([said]));
        parts.push(element("div", &[("class", "box stop")], [said]));
    }
    for ApprovalRow { by, terms, .. } in visit.house.store.approvals(&study.row.id, visit.now)? {
        let ApprovedTerms { data, runs, days, .. } = &terms;
        if !sees(data) {
            continue;
        }
        let what = match runs {
            0 => format!("{by} takes the data as they are"),
            _ => format!("{by} agrees, with {data}, {runs} runs and {days} days"),
        };
        let said = format!("{what}. A second steward has to, to the same, within a week.");
        let back = (by == account(visit))
            .then(|| study.form(visit, "disagree", "take agreement back", [button("Take it back", "")]));
        let said = [words("p", "", said)].into_iter().chain(back);
        parts.push(element("div", &[("class", "box")], said));
    }
    Ok(parts)
}

/// Takes back that one agreed before a second steward has.
pub fn disagree(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    match visit
        .house
        .store
        .disapprove(&visit.act("agreement taken back", visit.part("hash"))?, &study.row.id)?
    {
        true => Ok(Answer::go(&study.path())),
        false => Ok(not_done(visit, &study, "There is nothing of yours to take back any more.")),
    }
}

/// Why somebody who answers for data has no form.
fn why_not(visit: &Visit<'_>, study: &StudySeen) -> Option<Markup> {
    let steward = |name: &str| {
        let subject = StudySubject { by: "", data: Some(name), given: false };
        visit.may(Action::Decide, Subject::Study(subject))
    };
    let (all, asked) = (sets(visit, study), asked_for(visit, study));
    let said = if !visit.settings().data.keys().any(|name| steward(name)) {
        return None;
    } else if asked.is_empty() {
        "No data set of ours may be used by studies of all these parties (`peers` in service.toml)."
    } else if all.is_empty() {
        "No data set of ours may be computed on by all servers of this study (`servers` in service.toml)."
    } else if study.row.by == account(visit) && visit.settings().policy.separate_duties {
        "You proposed this study, so another steward decides on it."
    } else {
        "Another steward decides: service.toml names those who decide on each data set (stewards)."
    };
    let refuses = may_refuse(visit, study).then(|| refusal(visit, study));
    Some(section("Your decision", [prose("p", "", said)].into_iter().chain(refuses)))
}

/// The form of who would compute the study without data.
fn serving_form(visit: &Visit<'_>, study: &StudySeen, told: &StudyTold) -> Markup {
    let said = "By this the organisation signs that it computes the study as one of its servers. It gives no \
                data, sees shares, and is charged nothing. It can be taken back between runs.";
    let runs: Vec<_> = (1..=RUNS_ANEW).map(|runs| (runs.to_string(), runs.to_string())).collect();
    let parts = [
        words("p", "note", said),
        choice("runs", "Runs in which it computes at most, should one break off", &runs, "2"),
        days_field(),
        hidden("data", NO_DATA),
        hidden("words", &base::hex(&statements::digest_of_words(&told.words()))),
    ];
    let parts = parts.into_iter().chain(password(visit, "password"));
    study.form(visit, "consent", "consent", parts.chain([button("Consent and sign", "")]))
}

fn days_field() -> Markup {
    let (kind, fill) = ("text", "off");
    let help = "From today, 1 to 90: until then a run may begin.";
    FormField { name: "days", label: "Days that it holds", kind, fill, value: "30", help }.markup()
}

fn consent_form(visit: &Visit<'_>, study: &StudySeen, own: &[&String], told: &StudyTold) -> Markup {
    let sets: Vec<_> = own.iter().map(|name| ((*name).clone(), (*name).clone())).collect();
    let us = visit.us().map(|key| key.to_string()).unwrap_or_default();
    let bound = |runs: u8| format!("{runs}: at most {}", told.bound(&us, runs));
    let runs: Vec<_> = (1..=RUNS_ANEW).map(|runs| (runs.to_string(), bound(runs))).collect();
    let said = "By this the organisation signs that it takes part, once, with the data set that you choose, \
                at no more than the price beside the runs that you choose: rho is what may be told of our \
                data, and the bar above says how much of it is left. The files are read and checked before \
                it is signed. Who would rather ask first writes to the others above.";
    // Why two runs cost what one does.
    let sizes = (told.sizes > Rational::default()).then(|| {
        let said =
            "What a match tells of sizes is paid for two matches at once, and for each further one again.";
        words("p", "note", said)
    });
    let keys =
        |name: &&&String| visit.settings().data.get(**name).is_some_and(|set| !set.steward_keys.is_empty());
    let keyed: Vec<&str> = own.iter().filter(keys).map(|name| name.as_str()).collect();
    let keyed = (!keyed.is_empty()).then(|| {
        let said = "it is signed when a steward's own key has signed it, too: you are asked for that next.";
        words("p", "note", format!("With {}, {said}", keyed.join(", ")))
    });
    let parts = [
        Markup::all([words("p", "note", said)].into_iter().chain(keyed).chain(sizes)),
        choice("data", "With our data", &sets, ""),
        choice("runs", "Runs that may begin anew, should one break off", &runs, "2"),
        days_field(),
        hidden("words", &base::hex(&statements::digest_of_words(&told.words()))),
    ];
    let parts = parts.into_iter().chain(password(visit, "password"));
    study.form(visit, "consent", "consent", parts.chain([button("Consent and sign", "")]))
}

/// What somebody asks to consent to with a data set, by a form or by a program.
pub struct AskedConsent<'a> {
    /// Runs that may begin anew.
    pub runs: u64,
    /// Days that it holds.
    pub days: u64,
    /// The hash of the words that were read.
    pub words: &'a str,
}

/// The data set of a name, where this person decides on it for a study; none for [`NO_DATA`], where this
/// person decides whether the organisation computes it.
pub fn chosen<'v>(
    visit: &'v Visit<'_>,
    study: &StudySeen,
    data: &str,
) -> Result<(&'v str, Option<&'v DataSet>), Stop> {
    if data == NO_DATA {
        return serves(visit, study).then_some((NO_DATA, None)).ok_or(Stop::Denied);
    }
    let mut all = sets(visit, study).into_iter().map(|(name, set)| (name.as_str(), set));
    let chosen = all.find(|(name, _)| *name == data);
    let chosen = chosen.filter(|chosen| decides(visit, study, *chosen)).ok_or(Stop::Denied)?;
    Ok((chosen.0, Some(chosen.1)))
}

/// What stands against beginning a consent at all.
pub fn why_not_begun(visit: &Visit<'_>, told: &StudyTold, asked: &AskedConsent<'_>) -> Option<&'static str> {
    let AskedConsent { runs, days, words } = asked;
    if *words != base::hex(&statements::digest_of_words(&told.words())) {
        Some("What this page says of the study has changed since you read it: read it again.")
    } else if !(1..=u64::from(RUNS_ANEW)).contains(runs) || !(1..=statements::DAYS).contains(days) {
        Some("Write how many days it holds, from 1 to 90.")
    } else if visit.rules.standing == RulesStanding::Never {
        Some("Nobody has accepted service.toml yet, so nothing can be consented to.")
    } else {
        None
    }
}

/// Consents for this organisation: the files are read first.
pub fn consent(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    let number = |name: &str| visit.field(name).trim().parse::<u64>().unwrap_or(0);
    let (data, words) = (visit.field("data"), visit.field("words"));
    let asked = AskedConsent { runs: number("runs"), days: number("days"), words };
    let with = chosen(visit, &study, data)?;
    let told = told(visit, &study)?;
    let why = why_not_begun(visit, &told, &asked);
    with_proof(visit, "password", || match why {
        Some(why) => Ok(not_done(visit, &study, why)),
        None => begin_consent(visit, &study, &told, with, &asked).map(|()| Answer::go(&study.path())),
    })
}

/// Begins a consent against which nothing stands: the first of two stewards is noted; else the files are
/// read, and it is signed when nothing in them stands against it.
pub fn begin_consent(
    visit: &Visit<'_>,
    study: &StudySeen,
    told: &StudyTold,
    (data, set): (&str, Option<&DataSet>),
    asked: &AskedConsent<'_>,
) -> Result<(), Stop> {
    let (store, account, id) = (&visit.house.store, account(visit), study.row.id);
    let us = visit.us().map(|key| key.to_string()).unwrap_or_default();
    let (runs, days) = (u8::try_from(asked.runs).unwrap_or(1), asked.days);
    let agree = AgreeOrder {
        by: account.to_owned(),
        id,
        data: data.to_owned(),
        runs,
        days,
        words: told.words_of(&us, (data, set.map_or("", |set| &set.lineage)), runs, days),
        rules: None,
    };
    let (terms, separate) = (agree.approval(), visit.settings().policy.separate_duties);
    let approval = set.filter(|set| set.two_person).map(|_| &terms);
    let stewards = set.map_or(&[][..], |set| &set.stewards);
    let right = ConsentRight { rules: None, stewards, separate, approval, keys: &[] };
    if !store.is_approved(&id, account, &right, visit.now)? {
        return Ok(store.approve(&visit.act("consent agreed to", visit.part("hash"))?, &id, &terms)?);
    }
    let text = study.record.proposed().text.clone();
    let order = WeighOrder { what: Weighed::Consent(agree), study: study.row.study.full(), text };
    match weighing::start(visit.house, order)? {
        false if !visit.house.weighing.has(&id) => Err(Stop::Busy),
        _ => Ok(()),
    }
}

fn reason(what: &str, id: &'static str) -> [Markup; 2] {
    let reasons: Vec<_> = REASONS.map(|(name, said, _)| (name.to_owned(), said.to_owned())).to_vec();
    let label = format!("Reason to {what}");
    [
        choice(&format!("{id}-code"), &label, &reasons, "other"),
        needed_lines(
            &format!("{id}-text"),
            "In your words",
            ("", 3),
            "This has to be filled in, with 1 to 2,000 characters: the other parties read it.",
        ),
    ]
}

fn refusal(visit: &Visit<'_>, study: &StudySeen) -> Markup {
    let parts = reason("refuse", "refuse").into_iter().chain(password(visit, "refuse-password"));
    study.form(visit, "refuse", "refuse", parts.chain([quiet_button("Refuse")]))
}

fn withdrawal(visit: &Visit<'_>, study: &StudySeen) -> Markup {
    let parts = reason("withdraw", "withdraw").into_iter().chain(password(visit, "withdraw-password"));
    study.form(visit, "withdraw", "withdraw", parts.chain([quiet_button("Withdraw")]))
}

/// The reason that a form gives.
fn given(visit: &Visit<'_>, id: &str) -> Result<ClosingReason, &'static str> {
    reason_of(visit.field(&format!("{id}-code")), visit.field(&format!("{id}-text")))
}

/// A reason by its word and its text.
pub fn reason_of(code: &str, text: &str) -> Result<ClosingReason, &'static str> {
    let code = REASONS.iter().find(|(name, ..)| *name == code).map_or(ClosingCode::Other, |(.., code)| *code);
    let text = text.replace("\r\n", "\n").trim().to_owned();
    match text.chars().count() {
        1..=TEXT_CHARS => Ok(ClosingReason { code, text }),
        _ => Err("Say why, in 1 to 2,000 characters: the other parties read it."),
    }
}

/// Whether this person may refuse a study: who decides on data that it could use, or on computing it.
pub fn may_refuse(visit: &Visit<'_>, study: &StudySeen) -> bool {
    serves(visit, study)
        || asked_for(visit, study).into_iter().any(|(name, set)| decides(visit, study, (name, set)))
}

/// Refuses for this organisation.
pub fn refuse(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    if !may_refuse(visit, &study) {
        return Err(Stop::Denied);
    }
    with_proof(visit, "refuse-password", || match given(visit, "refuse") {
        Ok(reason) => say(visit, &study, Said::Refuse(reason)),
        Err(why) => Ok(not_done(visit, &study, why)),
    })
}

/// Takes back what was proposed or consented to.
pub fn withdraw(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    if !may_withdraw(visit, &study) {
        return Err(Stop::Denied);
    }
    with_proof(visit, "withdraw-password", || match given(visit, "withdraw") {
        Ok(reason) => say(visit, &study, Said::Withdraw(reason)),
        Err(why) => Ok(not_done(visit, &study, why)),
    })
}

/// Does something of which the password was given in the last five minutes, or is given now in a field.
pub fn with_proof(
    visit: &Visit<'_>,
    field: &str,
    what: impl FnOnce() -> Result<Answer, Stop>,
) -> Result<Answer, Stop> {
    if visit.signed()?.session.proven {
        return what();
    }
    let token = prove(visit, visit.field(field))?;
    // The session goes on under its new cookie, whatever comes of the rest.
    Ok(what().unwrap_or_else(|stop| stopped(visit, stop)).with_session(&token))
}

/// Says something for this organisation, and goes back to the study.
pub fn say(visit: &Visit<'_>, study: &StudySeen, what: Said) -> Result<Answer, Stop> {
    if let Some(why) = hold_instead(visit, study, &what)? {
        return Ok(told_why(visit, study, "It is held, and not said yet", &why));
    }
    match speak(visit, study, what) {
        Ok(()) => Ok(Answer::go(&study.path())),
        Err(Stop::Failed(error)) if matches!(error.kind(), Fault::Refused(_) | Fault::Input(_)) => {
            Ok(not_done(visit, study, &error.to_string()))
        }
        Err(stop) => Err(stop),
    }
}

/// Says something for this organisation; why it may not be said is a refusal.
pub fn speak(visit: &Visit<'_>, study: &StudySeen, what: Said) -> Result<(), Stop> {
    let without = || Error::refused("This organisation has no key, so it cannot sign.");
    let identity = visit.house.identity().ok_or_else(without)?;
    let account = &visit.signed()?.session.account;
    if let Some(why) = hold_instead(visit, study, &what)? {
        return Err(Error::refused(why).into());
    }
    let speaker = Speaker { by: account, identity, at_ms: now_ms() };
    Ok(visit.house.store.say(speaker, &study.row.id, what).map(drop)?)
}

/// Holds a study that somebody would close where that cannot be said yet; why it cannot.
fn hold_instead(visit: &Visit<'_>, study: &StudySeen, what: &Said) -> Result<Option<String>, Stop> {
    let closes = matches!(what, Said::Refuse(_) | Said::Withdraw(_));
    if !closes || !visit.house.store.is_unheard(&study.row.id)? {
        return Ok(None);
    }
    // Nobody who withdraws wants a run meanwhile.
    super::course::end(visit, study)?;
    Ok(Some(format!("{UNHEARD}. {HELD}")))
}

/// The page that says why nothing was done.
pub fn not_done(visit: &Visit<'_>, study: &StudySeen, why: &str) -> Answer {
    told_why(visit, study, "Nothing was done", why)
}

/// A page that says why something came otherwise than was asked.
fn told_why(visit: &Visit<'_>, study: &StudySeen, title: &str, why: &str) -> Answer {
    let back = element("a", &[("href", &study.path())], [text("Back to the study")]);
    let why = element("div", &[("class", "box stop"), ("role", "alert")], [prose("p", "", why)]);
    page(visit, title, [why, element("p", &[], [back])])
}

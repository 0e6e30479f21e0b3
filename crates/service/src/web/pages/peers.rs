//! Other organisations: how the links to them stand, what they may do here, whether they can be reached; a
//! new one, and a pause.

use super::rules::{made, settle};
use crate::link::{LinkStanding, now_ms, test_peer};
use crate::roles::{Action, Subject};
use crate::settings::{ServicePeer, with_peer};
use crate::web::answer::Answer;
use crate::web::shell::{page, prove_form, section, table, time, with_status};
use crate::web::visit::{Stop, Visit};
use axum::http::StatusCode;
use net::KeyFingerprint;
use page::form::{FormField, button, choice, form, mistakes};
use page::markup::{Markup, element, text, words};
use page::numbers::count;

/// Kinds of studies that a new organisation may propose, as a form has them.
const KINDS: [(&str, &str, &[&str]); 4] = [
    ("none", "nothing", &[]),
    ("lift", "lift", &["lift"]),
    ("match", "lift and match", &["lift", "match"]),
    ("all", "lift, match and program", &["lift", "match", "program"]),
];

/// All of them.
pub fn list(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    Ok(page(visit, "Peers", listed(visit, &[])?))
}

fn listed(visit: &Visit<'_>, wrong: &[String]) -> Result<Vec<Markup>, Stop> {
    let paused = visit.house.store.paused()?;
    let mut rows = Vec::new();
    for (name, peer) in &visit.settings().peers {
        let path = format!("/peers/{name}");
        let link = element("a", &[("href", &path)], [text(name)]);
        let standing = visit.house.links().of(&peer.key);
        let state = if paused.contains(name) { "paused".to_owned() } else { state(peer, &standing) };
        rows.push(vec![
            link,
            text(peer.key.short()),
            text(state),
            text(clock(&standing)),
            text(used(visit, peer)?),
        ]);
    }
    let columns = ["Name", "Key", "Link", "Clock", "Proposals"];
    let mut parts = vec![mistakes(wrong)];
    parts.push(match rows.is_empty() {
        true => words("p", "", "No other organisation is known, so none can propose anything."),
        false => table("Organisations that this one knows", &columns, rows),
    });
    if let Some(identity) = visit.house.identity() {
        let said = "Our own key, to read to others by telephone in eight groups:";
        parts.push(section(
            "Our key",
            [words("p", "", said), words("p", "link", groups(&identity.fingerprint()))],
        ));
    }
    if may_change(visit) {
        parts.push(section("A new organisation", new(visit)?));
    }
    Ok(parts)
}

pub fn may_change(visit: &Visit<'_>) -> bool {
    visit.may(Action::RulesAsOperator, Subject::House) || visit.may(Action::RulesAsSteward, Subject::House)
}

/// A key as people read it aloud.
fn groups(key: &KeyFingerprint) -> String {
    let digits = base::hex(&key.bytes());
    let groups: Vec<&str> = (0..8).map(|at| &digits[4 * at..4 * at + 4]).collect();
    format!("tacit1: {}", groups.join(" "))
}

fn state(peer: &ServicePeer, standing: &LinkStanding) -> String {
    match (standing.since_ms, &standing.last_error, &peer.address) {
        (Some(since), _, _) => format!("there for {}", span(now_ms().saturating_sub(since))),
        (None, Some((at, why)), _) => format!("none for {}: {why}", span(now_ms().saturating_sub(*at))),
        (None, None, Some(_)) => "none yet".to_owned(),
        (None, None, None) => "none yet: it comes to us".to_owned(),
    }
}

fn span(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    let (many, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    page::numbers::counted(many, unit)
}

fn clock(standing: &LinkStanding) -> String {
    let Some(ahead) = standing.ahead_ms else { return "not compared".to_owned() };
    let way = if ahead < 0 { "behind" } else { "ahead" };
    let far = if standing.is_skewed() { "; too far apart: no run begins" } else { "" };
    let (seconds, tenths) = (ahead.unsigned_abs() / 1_000, ahead.unsigned_abs() / 100 % 10);
    format!("{seconds}.{tenths} s {way}{far}")
}

fn used(visit: &Visit<'_>, peer: &ServicePeer) -> Result<String, Stop> {
    let used = visit.house.store.used_by(peer.key, now_ms())?;
    let (open, today) = (count(peer.proposals_open), count(peer.proposals_per_day));
    Ok(format!("{} of {open} waiting, {} of {today} in a day", count(used.open), count(used.today)))
}

fn new(visit: &Visit<'_>) -> Result<Vec<Markup>, Stop> {
    if !visit.signed()?.session.proven {
        return Ok(vec![prove_form(visit, "/peers")]);
    }
    let field = |name, label, help| FormField {
        name,
        label,
        kind: "text",
        fill: "off",
        value: visit.field(name),
        help,
    };
    let among = KINDS.map(|(kind, label, _)| (kind.to_owned(), label.to_owned()));
    let fields = [
        field("name", "Our name for it", "1 to 40 of a-z, 0-9 and hyphen.").markup(),
        field(
            "key",
            "Its key",
            "tacit1: and 32 digits, as tacit keygen prints it there. Read it to each other by telephone.",
        )
        .markup(),
        field("address", "Its address", "hospitals.example.org:7000; empty where it comes to us.").optional(),
        choice("kinds", "It may propose", &among, visit.field("kinds")),
        button("Propose it", ""),
    ];
    let said = "A second person, in the other role, confirms it. It gets at no data by that: a data set \
                names whose studies may use it.";
    Ok(vec![words("p", "note", said), form("/peers", visit.word("add peer", "").as_deref(), fields)])
}

/// Proposes an organisation that is not known yet.
pub fn add(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    if !may_change(visit) {
        return Err(Stop::Denied);
    }
    let again = |why: String| {
        let parts = listed(visit, &[why])?;
        Ok(with_status(visit, StatusCode::UNPROCESSABLE_ENTITY, "Peers", parts))
    };
    let (name, address) = (visit.field("name").trim(), visit.field("address").trim());
    if !study::reader::is_name(name) {
        return again(format!("This name does not do: {}.", study::reader::NAME_RULE));
    }
    if visit.settings().peers.contains_key(name) {
        return again(format!("There is an organisation {name} already."));
    }
    let key: String = visit.field("key").split_whitespace().collect();
    let Ok(key) = key.parse::<KeyFingerprint>() else {
        return again("The key is none: tacit1: and 32 digits of 0-9 and a-f.".to_owned());
    };
    if !address.is_empty() && study::party::host_and_port(address).is_err() {
        return again("The address is none: write hospitals.example.org:7000.".to_owned());
    }
    let kinds = KINDS.iter().find(|(kind, _, _)| *kind == visit.field("kinds")).map_or(&[][..], |one| one.2);
    let Some(held) = visit.house.store.accepted()? else {
        return again(
            "Nobody has accepted service.toml yet: tacit service accept, on the machine.".to_owned(),
        );
    };
    let after = with_peer(&held.text, name, &key.to_string(), address, kinds);
    match made(visit, &held.text, &after)? {
        Ok(change) => settle(visit, change),
        Err(why) => again(why),
    }
}

/// One of them.
pub fn one(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let (name, peer) = of_path(visit)?;
    Ok(page(visit, name, parts(visit, name, peer)?))
}

pub fn of_path<'a>(visit: &'a Visit<'_>) -> Result<(&'a str, &'a ServicePeer), Stop> {
    let found = visit.settings().peers.get_key_value(visit.part("name")).ok_or(Stop::Missing)?;
    Ok((found.0, found.1))
}

fn parts(visit: &Visit<'_>, name: &str, peer: &ServicePeer) -> Result<Vec<Markup>, Stop> {
    let standing = visit.house.links().of(&peer.key);
    let paused = visit.house.store.paused()?.contains(name);
    let mut parts = vec![words("p", "link", groups(&peer.key))];
    let address =
        peer.address.as_ref().map_or("It comes to us.".to_owned(), |at| format!("We reach it at {at}."));
    parts.push(words("p", "", address));
    let state = if paused { "paused".to_owned() } else { state(peer, &standing) };
    parts.push(words("p", "", format!("Link: {state}. Clock: {}.", clock(&standing))));
    if let Some(heard) = standing.heard_ms {
        parts.push(element("p", &[], [text("It was heard last "), time(heard / 1_000), text(".")]));
    }
    if let Some(version) = &standing.version {
        parts.push(element(
            "p",
            &[],
            [text("Its software: "), element("bdi", &[], [text(version)]), text(".")],
        ));
    }
    parts.push(words("p", "", format!("Proposals: {}.", used(visit, peer)?)));
    if standing.older_store {
        let said = "It has statements of ours that are not in this store: this store is an older copy, or \
                    was cut. What was spent since is unknown.";
        parts.push(element("div", &[("class", "box stop")], [words("p", "", said)]));
    }
    let test =
        form(&format!("/peers/{name}/test"), visit.word("test peer", name).as_deref(), [button("Test", "")]);
    let said = "Five steps: its name, a connection, TLS, its key, a word of its service. It may take some \
                ten seconds each.";
    parts.push(section("Can it be reached?", [words("p", "note", said), test]));
    if may_change(visit) {
        parts.push(section("Pause", pausing(visit, name)?));
    }
    Ok(parts)
}

/// To pause the link with an organisation, which anybody who answers for rules may, and to end that: who did
/// it, or somebody in the same role.
fn pausing(visit: &Visit<'_>, name: &str) -> Result<Vec<Markup>, Stop> {
    let Some((by, as_steward)) = visit.house.store.paused_by(name)? else {
        let said = "Then nothing is said to it and nothing is heard of it until somebody ends the pause. A \
                    run that is under way goes on.";
        let word = visit.word("pause peer", name);
        let form = form(&format!("/peers/{name}/pause"), word.as_deref(), [button("Pause", "")]);
        return Ok(vec![words("p", "", said), form]);
    };
    let role = if as_steward { "a steward" } else { "an operator" };
    let who = if by.is_empty() { String::new() } else { format!(" {by} has paused it, as {role}.") };
    let said = format!("Nothing is said to it and nothing is heard of it. No run with it begins.{who}");
    let mut parts = vec![words("p", "", said)];
    let [steward, operator] = roles(visit);
    if by != visit.signed()?.session.account && !(if as_steward { steward } else { operator }) {
        parts.push(words("p", "", format!("{by} ends the pause, or {role}.")));
    } else if !visit.signed()?.session.proven {
        parts.push(prove_form(visit, &format!("/peers/{name}")));
    } else {
        let word = visit.word("go on with peer", name);
        parts.push(form(&format!("/peers/{name}/go-on"), word.as_deref(), [button("End the pause", "")]));
    }
    Ok(parts)
}

/// Whether this person answers for rules as a steward, and as an operator.
fn roles(visit: &Visit<'_>) -> [bool; 2] {
    [Action::RulesAsSteward, Action::RulesAsOperator].map(|action| visit.may(action, Subject::House))
}

/// Pauses the link with an organisation.
pub fn pause(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let (name, peer) = of_path(visit)?;
    begin_pause(visit, name, peer)?;
    Ok(Answer::go(&format!("/peers/{name}")))
}

/// The same without a form.
pub fn begin_pause(visit: &Visit<'_>, name: &str, peer: &ServicePeer) -> Result<(), Stop> {
    let [steward, operator] = roles(visit);
    if !steward && !operator {
        return Err(Stop::Denied);
    }
    let subject = format!("peer {name}");
    visit.house.store.pause(&visit.act("link paused", &subject)?, name, !operator)?;
    visit.house.links().end(&peer.key, now_ms());
    Ok(())
}

/// Ends the pause.
pub fn go_on(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let (name, _) = of_path(visit)?;
    let (roles, subject) = (roles(visit), format!("peer {name}"));
    if roles == [false, false]
        || !visit.house.store.go_on(&visit.act("link goes on", &subject)?, name, roles)?
    {
        return Err(Stop::Denied);
    }
    Ok(Answer::go(&format!("/peers/{name}")))
}

/// Tries to reach one, and says how far that went.
pub fn test(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let (name, peer) = of_path(visit)?;
    let Ok(_held) = visit.house.testing.try_lock() else {
        let said = "Somebody else tests a peer just now. Wait a minute, and click again.";
        let parts = [words("p", "", said)];
        return Ok(with_status(visit, StatusCode::TOO_MANY_REQUESTS, "Another test goes on", parts));
    };
    let steps = test_peer(visit.house, peer);
    let rows = steps.into_iter().map(|step| {
        let (came, told) = match step.told {
            Ok(told) => ("yes", told),
            Err(why) => ("no", why),
        };
        vec![text(step.name), text(came), element("bdi", &[], [text(told)])]
    });
    let rows = table("As far as it came", &["Step", "Done", "What came of it"], rows.collect::<Vec<_>>());
    let back = format!("/peers/{name}");
    let back = element("p", &[], [element("a", &[("href", &back)], [text(format!("To {name}"))])]);
    Ok(page(visit, &format!("Test of {name}"), [rows, back]))
}

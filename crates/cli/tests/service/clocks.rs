//! Two organisations whose clocks are an hour apart.

use crate::agreed::{NAMES, Two, has_said};
use crate::hostile::{HostileStream, dial, now_ms, receive, send};
use crate::house::page_of;
use net::Identity;
use serde_json::Value;
use service::{COMMAND_LINE, Speaker, Store};
use statements::Said;
use std::time::{Duration, Instant};

const HOUR: u64 = 3_600_000;
const PATIENCE: Duration = Duration::from_secs(120);

/// Answers the next ping of the other side as a clock would that is an hour ahead; messages that come before
/// it are not answered.
fn answer_ping(stream: &mut HostileStream) {
    loop {
        let message = receive(stream).expect("the link stands");
        // A ping has its sender's clock, and the one that it answers; 0 asks.
        if message[0] == 5 && message[9..17] == [0; 8] {
            let content = [&(now_ms() + HOUR).to_le_bytes()[..], &message[1..9], b"another"].concat();
            return send(stream, 5, &content).expect("the link stands");
        }
    }
}

/// What the first side says about the runs of the study, by a token.
fn course(two: &Two, token: &str) -> Value {
    let (path, line) =
        (format!("/api/v1/studies/{}/run", two.hash), format!("Authorization: Bearer {token}\r\n"));
    let answer = page_of(&two.home(0), &two.web(0), &path, &line);
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).expect("JSON")
}

#[test]
fn clocks_apart_by_an_hour_agree_on_the_state_and_begin_no_run() {
    let mut two = Two::new();
    two.tacit(0, &["account", "add"], &["stella", "--role", "steward"]);
    let token = two.tacit(0, &["token", "add"], &["stella", "clock", "--scope", "run", "--scope", "studies"]);
    let token = token["token"].as_str().expect("a token").to_owned();
    two.propose();
    two.until(1, "the proposal", |status| status["state"] == "proposed");
    two.consent(1);
    two.until(0, "the consent", has_said(1, "study consented to"));
    two.kill(1);
    // What a side says by a clock that is ahead is in its order all the same.
    let own = Identity::load(&two.home(1).join("own.key")).expect("a key");
    {
        let store = Store::open(&two.home(1).join("service.db")).expect("opens");
        let row = store.list(&service::ProposalFilter::default(), None).expect("reads").remove(0);
        let speaker = Speaker { by: COMMAND_LINE, identity: &own, at_ms: now_ms() + HOUR };
        store.say(speaker, &row.id, Said::Note("Written in an hour.".to_owned())).expect("said");
    }
    let peer = Identity::load(&two.home(0).join("own.key")).expect("a key").fingerprint();
    let mut stream = dial(&own, peer, &two.link(0));
    answer_ping(&mut stream);
    two.consent(0);
    let until = Instant::now() + PATIENCE;
    loop {
        let course = course(&two, &token);
        let waits = course["waits"].as_str().unwrap_or_default();
        if waits.contains("are more than five minutes apart") {
            break;
        }
        assert!(Instant::now() < until, "never waits for the clocks: {course:#}");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(!has_said(0, "run offered")(&two.status(0)), "no run begins");
    drop(stream);
    two.start(1);
    two.is_answered_once();
    for (side, name) in NAMES.into_iter().enumerate() {
        let status = two.until(side, "the note", has_said(1, "note written"));
        assert_eq!(status["state"], "answered", "{name}");
    }
}

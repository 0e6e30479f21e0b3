//! Runs of proposals that others close, freeze or hold back meanwhile.

use super::super::settle::{JobEnd, over};
use super::*;
use statements::{RunOutcome, SignedStatement};

fn open_runs(pair: &Pair) -> usize {
    pair.house.store().open_runs().expect("reads").len()
}

fn outcome(pair: &Pair, id: &ProposalId) -> Option<String> {
    pair.house.store().runs(id).expect("reads")[0].outcome.clone()
}

fn withdrawn() -> Said {
    Said::Withdraw(ClosingReason { code: ClosingCode::Other, text: "Not so.".to_owned() })
}

/// The peer signs two notes under one number.
fn freeze(pair: &Pair, id: &ProposalId) {
    let record = pair.store.standing(id).expect("reads").expect("there");
    let sender = crate::store::PeerSender {
        name: "hospitals",
        key: pair.peer.fingerprint(),
        most_open: 9,
        most_per_day: 9,
    };
    let own = pair.house.identity().expect("a key").fingerprint();
    for text in ["one", "two"] {
        let note = record.say(&pair.peer, now_ms(), Said::Note(text.to_owned())).expect("signed");
        pair.house.store().absorb(own, sender, now_ms(), &note.bytes()).expect("kept");
    }
    assert_eq!(row(pair, id).state, ProposalState::Frozen);
}

fn started(pair: &Pair, title: &str) -> ProposalId {
    let (id, _) = pair.proposed(title, "");
    pair.offered(&id);
    pair.house.store().start_run(pair.we(), &id, 1, vec![[3; 16]; 2]).expect("starts");
    id
}

/// A report as the run's process leaves it; its folder.
fn report(pair: &Pair, id: &ProposalId) -> std::path::PathBuf {
    let record = pair.house.store().standing(id).expect("reads").expect("there");
    let folder = job::folder(&pair.house.jobs_folder(), &record);
    std::fs::create_dir_all(folder.join("report-1")).expect("made");
    std::fs::write(folder.join("report-1/report.json"), "{}").expect("written");
    folder
}

fn own_end(pair: &Pair, id: &ProposalId) -> Option<RunOutcome> {
    let record = pair.house.store().standing(id).expect("reads").expect("there");
    let me = record.place(&pair.house.identity().expect("a key").fingerprint()).expect("a party");
    record.view().standings[me].runs()[&1].ended
}

#[test]
fn an_offer_on_a_study_that_is_over_keeps_no_port() {
    let pair = Pair::new("");
    let (theirs, _) = pair.proposed("A question", "");
    pair.offered(&theirs);
    pair.store.say(pair.they(), &theirs, withdrawn()).expect("withdrawn");
    pair.meet();
    let (ours, _) = pair.proposed("Another question", "");
    pair.offered(&ours);
    pair.house.store().say(pair.we(), &ours, withdrawn()).expect("withdrawn");
    let (forked, _) = pair.proposed("A third question", "");
    pair.offered(&forked);
    freeze(&pair, &forked);
    assert_eq!(open_runs(&pair), 3);
    super::super::look(&pair.house, false).expect("looks");
    assert_eq!(open_runs(&pair), 0, "a port is taken by an open run");
    for id in [theirs, ours, forked] {
        assert_eq!(outcome(&pair, &id).as_deref(), Some("stopped"));
        assert_eq!((row(&pair, &id).held, own_end(&pair, &id)), (None, None), "and nothing is said of it");
    }
}

#[test]
fn a_run_that_broke_off_with_the_service_keeps_no_place_whatever_the_study_came_to() {
    let pair = Pair::new("");
    let closed = started(&pair, "A question");
    pair.store.say(pair.they(), &closed, withdrawn()).expect("it has not begun there");
    pair.meet();
    assert_eq!(row(&pair, &closed).state, ProposalState::Closed);
    let frozen = started(&pair, "Another question");
    freeze(&pair, &frozen);
    report(&pair, &frozen);
    let unheard = started(&pair, "A third question");
    pair.house.store().hear_anew(&[pair.peer.fingerprint()]).expect("written");
    super::super::look(&pair.house, false).expect("looks");
    assert_eq!(open_runs(&pair), 0);
    let [closed, frozen, unheard] = [closed, frozen, unheard].map(|id| outcome(&pair, &id));
    assert_eq!(closed.as_deref(), Some("failed"));
    assert_eq!(frozen.as_deref(), Some("answered"), "its report was there");
    assert_eq!(unheard.as_deref(), Some("failed"));
}

#[test]
fn a_peer_keeps_nobody_from_a_finished_report() {
    let pair = Pair::new("");
    let id = started(&pair, "A question");
    let folder = report(&pair, &id);
    // As if it had proven that it has more of what was said here.
    let peer = pair.peer.fingerprint();
    pair.house.store().heard(peer, &[id], &[id]).expect("written");
    let ended = || JobEnd { stored: false, stopped: false, error: None };
    over(&pair.house, &id, 1, &folder, &ended()).expect("kept");
    assert!(pair.house.store().report_file(&id, "report.json").expect("reads").is_some());
    assert_eq!((open_runs(&pair), own_end(&pair, &id)), (0, None), "nothing can be said yet");
    super::super::look(&pair.house, true).expect("looks");
    assert_eq!(own_end(&pair, &id), None);
    pair.house.store().heard(peer, &[], &[]).expect("written");
    super::super::look(&pair.house, true).expect("looks");
    assert_eq!(own_end(&pair, &id), Some(RunOutcome::Answered), "it is said once it can be");
    // Nor by two words under one number.
    let id = started(&pair, "Another question");
    let folder = report(&pair, &id);
    freeze(&pair, &id);
    over(&pair.house, &id, 1, &folder, &ended()).expect("kept");
    assert!(pair.house.store().report_file(&id, "report.json").expect("reads").is_some());
    assert_eq!(open_runs(&pair), 0);
}

#[test]
fn an_offer_of_which_nothing_can_be_said_ends_with_its_time() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    pair.offered(&id);
    pair.house.store().hear_anew(&[pair.peer.fingerprint()]).expect("written");
    super::super::look(&pair.house, true).expect("looks");
    assert_eq!(open_runs(&pair), 1, "its time is not over");
    let raw = rusqlite::Connection::open(pair.path("service.db")).expect("opens");
    raw.execute("UPDATE runs SET made_ms = made_ms - 600001", []).expect("written");
    super::super::look(&pair.house, true).expect("looks");
    assert_eq!((open_runs(&pair), own_end(&pair, &id)), (0, None));
    pair.house.store().heard(pair.peer.fingerprint(), &[], &[]).expect("written");
    super::super::look(&pair.house, true).expect("looks");
    assert_eq!(own_end(&pair, &id), Some(RunOutcome::Failed));
}

#[test]
fn a_process_is_ended_where_another_party_closes_or_freezes_the_study() {
    let pair = Pair::new("");
    let closed = started(&pair, "A question");
    let frozen = started(&pair, "Another question");
    for id in [closed, frozen] {
        pair.house.jobs().pretend(id, 1);
    }
    super::super::look(&pair.house, false).expect("looks");
    assert!([closed, frozen].iter().all(|id| !pair.house.jobs().is_left(id)));
    pair.store.say(pair.they(), &closed, withdrawn()).expect("withdrawn");
    pair.meet();
    freeze(&pair, &frozen);
    super::super::look(&pair.house, false).expect("looks");
    assert!([closed, frozen].iter().all(|id| pair.house.jobs().is_left(id)));
    assert_eq!(open_runs(&pair), 2, "its end is the process's");
}

/// What does not count is kept as evidence, and only so much of it.
#[test]
fn of_what_does_not_count_a_peer_has_little_kept() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let key = pair.peer.fingerprint();
    let sender = crate::store::PeerSender { name: "hospitals", key, most_open: 9, most_per_day: 9 };
    let own = pair.house.identity().expect("a key").fingerprint();
    let first = pair.store.standing(&id).expect("reads").expect("there");
    let mut last = first.chain(first.proposer())[0].clone();
    let mut kept = 0;
    loop {
        let mut body = last.body().clone();
        (body.number, body.previous) = (body.number + 1, last.digest());
        body.said = Said::Note("again".to_owned());
        last = SignedStatement::sign(body, &pair.peer).expect("signed");
        match pair.house.store().absorb(own, sender, now_ms(), &last.bytes()).expect("reads") {
            crate::store::Absorbed::Have { .. } => kept += 1,
            crate::store::Absorbed::No { code, .. } => break assert_eq!(code, "limit"),
        }
        assert!(kept < 1_000);
    }
    assert_eq!(kept, 50 + 64, "notes that count, and a few that do not");
    let record = pair.house.store().standing(&id).expect("reads").expect("there");
    assert_eq!(record.uncounted(&key), 64);
}

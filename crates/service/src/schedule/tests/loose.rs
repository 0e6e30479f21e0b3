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

/// A report lies there of a run of which a copy that was put back knows only that it was offered.
#[test]
fn a_report_of_a_run_that_a_copy_lacks_is_kept() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    pair.offered(&id);
    report(&pair, &id);
    let peer = pair.peer.fingerprint();
    pair.house.store().hear_anew(&[peer]).expect("written");
    let raw = rusqlite::Connection::open(pair.path("service.db")).expect("opens");
    raw.execute("UPDATE runs SET made_ms = made_ms - 600001", []).expect("written");
    super::super::look(&pair.house, true).expect("looks");
    assert_eq!((outcome(&pair, &id).as_deref(), own_end(&pair, &id)), (Some("answered"), None));
    assert!(pair.house.store().report_file(&id, "report.json").expect("reads").is_some());
    // The peer gives back that it was begun.
    let record = pair.house.store().standing(&id).expect("reads").expect("there");
    let started = Said::Started { run: 1, nonces: vec![[3; 16]; 2] };
    let started = record.say(pair.we().identity, now_ms(), started).expect("signed");
    assert!(pair.house.store().take_back(pair.we(), peer, &started).expect("kept"));
    pair.house.store().heard(peer, &[], &[]).expect("written");
    super::super::look(&pair.house, true).expect("looks");
    assert_eq!(own_end(&pair, &id), Some(RunOutcome::Answered));
}

/// Where nobody has it, others hear that the run failed, and the study does not wait for ever.
#[test]
fn an_answer_of_a_run_that_nobody_knows_to_have_begun_ends_it_for_others() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    pair.offered(&id);
    let folder = report(&pair, &id);
    over(&pair.house, &id, 1, &folder, &JobEnd { stored: false, stopped: false, error: None }).expect("kept");
    assert_eq!(outcome(&pair, &id).as_deref(), Some("answered"));
    assert_eq!(own_end(&pair, &id), Some(RunOutcome::Failed));
}

/// A peer that signs what it likes, one statement after the other.
struct Flooder<'a> {
    pair: &'a Pair,
    last: SignedStatement,
}

impl<'a> Flooder<'a> {
    fn new(pair: &'a Pair, id: &ProposalId) -> Self {
        let record = pair.store.standing(id).expect("reads").expect("there");
        let place = record.place(&pair.peer.fingerprint()).expect("a party");
        Self { pair, last: record.chain(place).last().expect("one").clone() }
    }

    /// The code of the refusal; none where it is kept. What is refused is said again later.
    fn says(&mut self, said: Said) -> Option<&'static str> {
        let mut body = self.last.body().clone();
        (body.number, body.previous, body.said) = (body.number + 1, self.last.digest(), said);
        let next = SignedStatement::sign(body, &self.pair.peer).expect("signed");
        let key = self.pair.peer.fingerprint();
        let sender = crate::store::PeerSender { name: "hospitals", key, most_open: 9, most_per_day: 9 };
        let own = self.pair.house.identity().expect("a key").fingerprint();
        match self.pair.house.store().absorb(own, sender, now_ms(), &next.bytes()).expect("reads") {
            crate::store::Absorbed::No { code, .. } => Some(code),
            crate::store::Absorbed::Have { .. } => {
                self.last = next;
                None
            }
        }
    }

    /// Offers a run and ends it; the code of the first refusal.
    fn runs(&mut self, run: u32) -> Option<&'static str> {
        let offer = RunOffer { run, goes_on: true, nonce: [3; 16], earliest_ms: 1, latest_ms: 2, port: 0 };
        let release = |at: usize| [u8::try_from(at).expect("few"); 32];
        // As long as one can be.
        let number = format!("{}/{}", u128::MAX - 1, u128::MAX);
        let line = |at| {
            let (rho, delta) = (number.clone(), number.clone());
            statements::DebitLine { release: release(at), rho, delta }
        };
        let debits = (0..statements::DEBITS).map(line).collect();
        let (kind, code) = ("peer".to_owned(), "x".to_owned());
        let end = statements::RunEnd { run, outcome: RunOutcome::Failed, kind, code, debits };
        self.says(Said::Ready(offer)).or_else(|| self.says(Said::Ended(end)))
    }

    fn many(&mut self, most: u32, what: impl Fn(u32) -> Said) -> (u32, Option<&'static str>) {
        let refused = (0..most).find_map(|at| Some((at, Some(self.says(what(at))?))));
        refused.unwrap_or((most, None))
    }
}

/// What does not count is kept as evidence, and only so much of it.
#[test]
fn of_what_does_not_count_a_peer_has_little_kept() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let proposed = pair.house.store().standing(&id).expect("reads").expect("there").proposed().clone();
    let again = Said::Propose(Box::new(proposed));
    assert_eq!(Flooder::new(&pair, &id).says(again), Some("limit"), "a study is long");
    let kept = Flooder::new(&pair, &id).many(1_000, |_| Said::Note("again".to_owned()));
    assert_eq!(kept, (50 + 64, Some("limit")), "notes that count, and a few that do not");
    let record = pair.house.store().standing(&id).expect("reads").expect("there");
    assert_eq!(record.uncounted(&pair.peer.fingerprint()), 64);
}

/// Who does not hear that a study is over here begins no more runs than one that waits for a consent.
#[test]
fn what_is_over_here_holds_few_runs_of_who_goes_on() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let why = ClosingReason { code: ClosingCode::Data, text: "No.".to_owned() };
    pair.house.store().say(pair.we(), &id, Said::Refuse(why)).expect("refused");
    let over = row(&pair, &id);
    assert!(over.state.is_final() && over.over_ms.is_some());
    let mut peer = Flooder::new(&pair, &id);
    assert_eq!(peer.says(Said::Consent(Box::new(pair.terms(&id)))), None);
    let early = (1..100).find_map(|run| Some((run, peer.runs(run)?)));
    assert_eq!(early, Some((9, "limit")));
    assert_eq!(row(&pair, &id).over_ms, over.over_ms, "it was over when it was refused");
}

/// Runs and words about logs count, and have limits of their own: a study that nobody decided on here does
/// not fill up, and one that all agreed to holds what an honest party may say.
#[test]
fn of_what_counts_a_peer_has_as_much_kept_as_a_study_takes() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let version = crate::data_version(&pair.house.rules().settings, "trial").expect("there");
    let terms = pair.terms(&id);
    let mut peer = Flooder::new(&pair, &id);
    assert_eq!(peer.says(Said::Consent(Box::new(terms.clone()))), None);
    let hash = [7; 32];
    let (of, witnesses) = (pair.house.identity().expect("a key").fingerprint(), 256);
    let saw = |entry: u32| Said::Witness { of, entry: entry.into(), hash };
    assert_eq!(peer.many(1_000, saw), (witnesses, Some("limit")));
    let early = (1..100).find_map(|run| Some((run, peer.runs(run)?)));
    assert_eq!(early, Some((9, "limit")), "before this side has consented");
    // What was refused is taken once it is no longer early.
    let rules = pair.house.store().accepted().expect("reads").map(|accepted| accepted.hash);
    let right =
        crate::store::ConsentRight { rules, stewards: &[], separate: true, approval: None, keys: &[] };
    let own = OwnConsent { version, ..pair.own_consent() };
    pair.house.store().consent(pair.we(), &id, terms, &own, &right).expect("consents");
    let full = (9..1_000).find_map(|run| Some((run, peer.runs(run)?)));
    let (run, code) = full.expect("an end");
    assert!(code == "limit" && (90..110).contains(&run), "{run}: {} bytes at most", statements::RUN_BYTES);
    // What closes it always fits, and then logs are seen as long as there are any.
    assert_eq!(peer.says(withdrawn()), None);
    assert_eq!(row(&pair, &id).state, ProposalState::Closed);
    assert_eq!(peer.many(9, saw), (9, None));
}

//! What organisations say, in two stores: as it would go over the link, without one.

use super::*;
use crate::roles::{Grant, HouseRole};
use net::{Identity, KeyFingerprint};
use statements::{
    ClosingCode, ClosingReason, ConsentTerms, ProposalRecord, ProposalState, ProposedStudy, RunEnd, RunOffer,
    RunOutcome, Said, digest_of_words,
};

const AT: u64 = 1_795_000_000_000;
const HOUR: u64 = 3_600_000;
const LIFT: &str = include_str!("../../../../examples/lift.toml");

/// An organisation with a store.
struct Side {
    identity: Identity,
    store: Store,
    _folder: tempfile::TempDir,
}

impl Side {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("service.db")).expect("opens");
        Self { identity: Identity::generate().expect("a key"), store, _folder: folder }
    }

    fn key(&self) -> KeyFingerprint {
        self.identity.fingerprint()
    }

    fn speaker(&self) -> Speaker<'_> {
        Speaker { by: "ann", identity: &self.identity, at_ms: AT + HOUR }
    }

    /// Takes what waits for it, in order.
    fn hear(&self, from: &Side) -> Vec<Absorbed> {
        let waiting = from.store.unsent(self.key(), &[], 100).expect("reads");
        let take = |row: &OutboxRow| {
            let bytes = from.store.statement(&row.digest).expect("reads").expect("is there");
            let became = self.absorb(from, &bytes);
            if let Absorbed::Have { digest, .. } = &became {
                assert!(from.store.had(self.key(), digest, AT + HOUR).expect("written"));
            }
            became
        };
        waiting.iter().map(take).collect()
    }

    fn absorb(&self, from: &Side, bytes: &[u8]) -> Absorbed {
        let from = PeerSender { name: "other", key: from.key(), most_open: 2, most_per_day: 3 };
        self.store.absorb(self.key(), from, AT + HOUR, bytes).expect("reads and writes")
    }

    fn state(&self) -> ProposalState {
        self.store.list(&ProposalFilter::default(), None).expect("reads")[0].state
    }
}

fn text(sides: [&Side; 2]) -> String {
    let mut text = study::canonical("lift", LIFT).expect("a study");
    for side in sides {
        let keys: Vec<_> = text.match_indices("key = \"tacit1:").map(|(at, _)| at + 7).collect();
        let old = keys.into_iter().map(|at| text[at..at + 39].to_owned());
        let new = sides.map(|side| side.key().to_string());
        let old = old.into_iter().find(|key| !new.contains(key)).expect("the example's own");
        text = text.replace(&old, &side.key().to_string());
    }
    text
}

/// Another nonce is another study.
fn proposed(text: &str, nonce: u8) -> ProposedStudy {
    let text = text.replace("1954 polio", &format!("{nonce}, 1954 polio"));
    ProposedStudy {
        text,
        program: [2; 32],
        note: "Shall we?".to_owned(),
        expires_ms: AT + 24 * HOUR,
        windows: Vec::new(),
        nonce: [nonce; 16],
    }
}

fn terms(data: [u8; 32]) -> ConsentTerms {
    ConsentTerms {
        program: [2; 32],
        charges: Vec::new(),
        words: digest_of_words("what a steward read"),
        data,
        expires_ms: AT + 10 * HOUR,
        windows: Vec::new(),
        runs: 2,
        persons: 1,
        seal: None,
    }
}

fn own_consent(by: &str) -> OwnConsent {
    let (by, data) = (by.to_owned(), "trial".to_owned());
    let words = "what a steward read".to_owned();
    let (salt, tag, version, lineage) = ([1; 32], [2; 32], [3; 32], Some("admissions".to_owned()));
    OwnConsent { by, data, salt, tag, version, words, after: 0, taken: None, lineage }
}

fn consent(side: &Side, record: &ProposalRecord) {
    let own = own_consent(COMMAND_LINE);
    let terms = terms(statements::commit_to_data(&own.salt, &own.tag, own.lineage.as_deref()));
    let right = ConsentRight { rules: None, stewards: &[], separate: true, approval: None, keys: &[] };
    side.store.consent(side.speaker(), &record.id(), terms, &own, &right).expect("consents");
    assert_eq!(side.store.own_consent(&record.id()).expect("reads"), Some(own));
}

fn is_new(became: &[Absorbed]) -> bool {
    became.iter().all(|one| matches!(one, Absorbed::Have { new: true, .. }))
}

#[test]
fn a_study_goes_from_store_to_store_until_its_answer() {
    let (a, b) = (Side::new(), Side::new());
    let record = a.store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    let id = record.id();
    assert!(is_new(&b.hear(&a)) && a.store.unsent(b.key(), &[], 9).expect("reads").is_empty());
    assert_eq!((a.state(), b.state()), (ProposalState::Proposed, ProposalState::Proposed));
    assert_eq!(b.store.study_text(&record.study()).expect("reads"), Some(record.proposed().text.clone()));
    consent(&a, &record);
    consent(&b, &record);
    assert!(is_new(&b.hear(&a)) && is_new(&a.hear(&b)));
    let offer = |nonce| RunOffer {
        run: 1,
        goes_on: false,
        nonce: [nonce; 16],
        earliest_ms: AT,
        latest_ms: AT + 2 * HOUR,
        port: 7_001,
    };
    a.store.offer_run(a.speaker(), &id, offer(1)).expect("offers");
    b.store.offer_run(b.speaker(), &id, offer(2)).expect("offers");
    assert!(is_new(&b.hear(&a)) && is_new(&a.hear(&b)));
    for side in [&a, &b] {
        side.store.start_run(side.speaker(), &id, 1, vec![[1; 16], [2; 16]]).expect("starts");
        assert_eq!(side.store.open_runs().expect("reads").len(), 1);
    }
    assert!(is_new(&b.hear(&a)) && is_new(&a.hear(&b)));
    assert_eq!((a.state(), b.state()), (ProposalState::Running, ProposalState::Running));
    let outcome = RunOutcome::Answered;
    let end = RunEnd { run: 1, outcome, kind: String::new(), code: String::new(), debits: Vec::new() };
    for side in [&a, &b] {
        let files = [("report.json".to_owned(), b"{}".to_vec())];
        let left = RunLeft { files: &files, held: Some("stopped"), next_ms: 7, ..RunLeft::default() };
        let now = side.store.standing(&id).expect("reads").expect("is there");
        assert!(side.store.end_run(AT + HOUR, &now, &end, &left).expect("ends"));
        assert!(!side.store.end_run(AT + HOUR, &now, &end, &left).expect("ended before"));
        side.store.say(side.speaker(), &id, Said::Ended(end.clone())).expect("says");
        let row = side.store.proposal(&id).expect("reads").expect("is there");
        assert_eq!((row.held.as_deref(), row.next_ms), (Some("stopped"), 7), "in the same transaction");
        assert_eq!(side.store.runs(&id).expect("reads")[0].outcome.as_deref(), Some("answered"));
        let report = side.store.report_file(&id, "report.json").expect("reads").expect("is there");
        assert_eq!((report.run, &report.content[..]), (1, &b"{}"[..]));
    }
    assert!(is_new(&b.hear(&a)) && is_new(&a.hear(&b)));
    assert_eq!((a.state(), b.state()), (ProposalState::Answered, ProposalState::Answered));
    assert!(a.store.sent(&id).expect("reads").iter().all(|row| row.had_ms.is_some()));
    trail::verify(&b.store.lock()).expect("the log of both sides' words fits its chain");
}

#[test]
fn who_lost_the_role_or_the_rules_signs_nothing() {
    let (a, b) = (Side::new(), Side::new());
    let store = &a.store;
    let record = store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    let act = |to| RecordedAct { by: COMMAND_LINE, what: "changed", to, at: AT / 1_000 };
    let of = |data: &str| Grant { role: HouseRole::Steward, data: Some(data.to_owned()) };
    for (name, data) in [("ann", "trial"), ("stella", "trial"), ("otto", "other"), ("eve", "trial")] {
        store.add_account(&act(name), &[of(data)]).expect("added").expect("new");
    }
    store.accept(&act("rules"), "the first", &[1; 32]).expect("accepted");
    let stewards = ["ann", "stella", "otto"].map(str::to_owned);
    let right =
        ConsentRight { rules: Some([1; 32]), stewards: &stewards, separate: true, approval: None, keys: &[] };
    let consents = |by: &str, right: &ConsentRight<'_>| {
        let own = own_consent(by);
        let terms = terms(statements::commit_to_data(&own.salt, &own.tag, own.lineage.as_deref()));
        store.consent(a.speaker(), &record.id(), terms, &own, right).map(drop)
    };
    let refused = |by: &str, right: &ConsentRight<'_>| {
        let why = consents(by, right).expect_err("refused").to_string();
        assert!(why.contains("nothing was signed"), "{by}: {why}");
    };
    // Who proposed it; who has the role for other data; who is not named; who is nobody.
    ["ann", "otto", "eve", "nobody"].into_iter().for_each(|by| refused(by, &right));
    store.take_role(&act("stella"), &of("trial")).expect("taken");
    refused("stella", &right);
    store.give_role(&act("stella"), &of("trial")).expect("given");
    store.accept(&act("rules"), "the second", &[2; 32]).expect("accepted");
    refused("stella", &right);
    refused(COMMAND_LINE, &right);
    let right = ConsentRight { rules: Some([2; 32]), ..right };
    consents("stella", &right).expect("consents");
    let (a, b) = (Side::new(), Side::new());
    let record = a.store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    a.store.add_account(&act("stella"), &[of("trial")]).expect("added").expect("new");
    a.store.end_account(&act("stella")).expect("ended");
    let (own, right) = (own_consent("stella"), ConsentRight { rules: None, ..right });
    let terms = terms(statements::commit_to_data(&own.salt, &own.tag, own.lineage.as_deref()));
    assert!(a.store.consent(a.speaker(), &record.id(), terms, &own, &right).is_err(), "the account is ended");
}

#[test]
fn the_first_of_two_stewards_agrees_to_something_in_particular() {
    let (a, b) = (Side::new(), Side::new());
    let store = &a.store;
    let record = store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    let act = |by, to| RecordedAct { by, what: "agreed", to, at: (AT + HOUR) / 1_000 };
    let grant = Grant { role: HouseRole::Steward, data: None };
    for name in ["stella", "otto"] {
        store
            .add_account(&act(COMMAND_LINE, name), std::slice::from_ref(&grant))
            .expect("added")
            .expect("new");
    }
    let stewards = ["stella", "otto"].map(str::to_owned);
    let asked = ApprovedTerms { data: "trial".into(), words: [1; 32], runs: 2, days: 30 };
    let right =
        ConsentRight { rules: None, stewards: &stewards, separate: true, approval: Some(&asked), keys: &[] };
    let own = own_consent("otto");
    let signs = || {
        let terms = terms(statements::commit_to_data(&own.salt, &own.tag, own.lineage.as_deref()));
        store.consent(a.speaker(), &record.id(), terms, &own, &right)
    };
    let others = [
        ApprovedTerms { words: [2; 32], ..asked.clone() },
        ApprovedTerms { runs: 5, ..asked.clone() },
        ApprovedTerms { days: 90, ..asked.clone() },
        ApprovedTerms { data: "other".into(), ..asked.clone() },
    ];
    for other in others {
        store.approve(&act("stella", "x"), &record.id(), &other).expect("kept");
        assert!(signs().is_err(), "{other:?}");
    }
    store.approve(&act("otto", "x"), &record.id(), &asked).expect("kept");
    assert!(signs().is_err(), "one person is not two");
    store.approve(&act("stella", "x"), &record.id(), &asked).expect("kept");
    let counts = |at_ms: u64| store.is_approved(&record.id(), "otto", &right, at_ms / 1_000).expect("reads");
    assert!(counts(AT + HOUR) && !counts(AT + (1 + 7 * 24) * HOUR), "a week later it is too long ago");
    store.take_role(&act(COMMAND_LINE, "stella"), &grant).expect("taken");
    assert!(signs().is_err(), "stella decides on nothing any more");
    store.give_role(&act(COMMAND_LINE, "stella"), &grant).expect("given");
    signs().expect("signed");
}

#[test]
fn what_a_peer_may_not_send_changes_nothing() {
    let (a, b, c) = (Side::new(), Side::new(), Side::new());
    let study = text([&a, &b]);
    let code = |became| match became {
        Absorbed::No { code, .. } => code,
        Absorbed::Have { .. } => "have",
    };
    let bytes = |digest: [u8; 32]| a.store.statement(&digest).expect("reads").expect("is there");
    let record = a.store.propose(a.speaker(), proposed(&study, 1)).expect("proposes");
    let first = bytes(record.heads().iter().find(|head| head.count == 1).expect("one").digest);
    assert_eq!(code(b.absorb(&a, &first[1..])), "malformed");
    assert_eq!(code(b.absorb(&c, &first)), "author", "nobody relays");
    assert_eq!(code(c.absorb(&a, &first)), "other");
    consent(&a, &record);
    let second = a.store.unsent(b.key(), &[], 9).expect("reads")[1].digest;
    assert_eq!(code(b.absorb(&a, &bytes(second))), "no-proposal");
    assert!(b.store.list(&ProposalFilter::default(), None).expect("reads").is_empty());
    assert_eq!(code(b.absorb(&a, &first)), "have");
    assert!(matches!(b.absorb(&a, &first), Absorbed::Have { new: false, .. }), "again is harmless");
    a.store.propose(a.speaker(), proposed(&study, 2)).expect("proposes");
    a.store.propose(a.speaker(), proposed(&study, 3)).expect("proposes");
    let became: Vec<_> = b.hear(&a).into_iter().map(code).collect();
    assert_eq!(became, ["have", "have", "have", "limit"], "two may wait for a decision");
    let used = b.store.used_by(a.key(), AT + HOUR).expect("reads");
    assert_eq!((used.open, used.today, used.statements), (2, 2, 3));
    let reason = ClosingReason { code: ClosingCode::Purpose, text: "No.".to_owned() };
    b.store.say(b.speaker(), &record.id(), Said::Refuse(reason)).expect("refuses");
    assert_eq!(b.hear(&a).into_iter().map(code).collect::<Vec<_>>(), ["have"], "one was decided");
}

/// By the author's clock it holds 90 days: one whose clock runs ahead would never run out here.
#[test]
fn a_proposal_of_another_year_is_not_kept() {
    let (a, b) = (Side::new(), Side::new());
    let at_ms = AT + 4_000_000 * HOUR;
    let late = ProposedStudy { expires_ms: at_ms + 24 * HOUR, ..proposed(&text([&a, &b]), 1) };
    a.store.propose(Speaker { at_ms, ..a.speaker() }, late).expect("proposes");
    assert!(matches!(b.hear(&a)[..], [Absorbed::No { code: "study", .. }]));
}

/// Who has signed two things that cannot both be has said enough: neither a third thing nor the same thing
/// signed once more is kept, written into the log or told to people.
#[test]
fn what_cannot_both_be_is_kept_once() {
    let (a, b) = (Side::new(), Side::new());
    let record = a.store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    assert!(is_new(&b.hear(&a)));
    let entries = || trail::log_head(&b.store.lock()).expect("reads").last;
    let note = |text: &str| {
        let said = Said::Note(text.to_owned());
        record.say(&a.identity, AT + HOUR, said).expect("signed").bytes().to_vec()
    };
    let second = note("second");
    assert!(is_new(&[b.absorb(&a, &note("first")), b.absorb(&a, &second)]));
    assert_eq!(b.state(), ProposalState::Frozen);
    let before = entries();
    assert!(matches!(b.absorb(&a, &second), Absorbed::Have { new: false, .. }));
    for text in ["third", "fourth"] {
        assert!(matches!(b.absorb(&a, &note(text)), Absorbed::No { code: "other", .. }));
    }
    assert_eq!(entries(), before, "nothing is written into the log");
    assert_eq!(b.store.used_by(a.key(), AT + HOUR).expect("reads").statements, 3);
}

#[test]
fn a_study_is_proposed_again_when_its_proposal_is_over() {
    let (a, b) = (Side::new(), Side::new());
    let again = ProposedStudy { nonce: [9; 16], ..proposed(&text([&a, &b]), 1) };
    let first = a.store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    let refused = a.store.propose(a.speaker(), again.clone()).expect_err("one is open");
    assert!(refused.to_string().contains(studies::ALREADY_OPEN), "{refused}");
    b.hear(&a);
    // A peer whose service does not refuse it takes no place here.
    let mut c = Side::new();
    let key = c._folder.path().join("a.key");
    a.identity.save(&key).expect("saved");
    c.identity = Identity::load(&key).expect("loads");
    let second = c.store.propose(c.speaker(), again.clone()).expect("proposes");
    b.hear(&c);
    let shown = |side: &Side| side.store.proposal_of(&first.study()).expect("reads").expect("is there").id;
    assert_eq!(shown(&b), first.id());
    let reason = ClosingReason { code: ClosingCode::Other, text: "No.".to_owned() };
    b.store.say(b.speaker(), &first.id(), Said::Refuse(reason.clone())).expect("refuses");
    assert_eq!(shown(&b), second.id());
    b.store.say(b.speaker(), &second.id(), Said::Refuse(reason)).expect("refuses");
    a.hear(&b);
    assert_eq!(a.store.propose(a.speaker(), again).expect("proposes").study(), first.study());
}

#[test]
fn lists_have_pages_and_filters() {
    let (a, b) = (Side::new(), Side::new());
    let study = text([&a, &b]);
    for nonce in 0..3 {
        a.store.propose(a.speaker(), proposed(&study, nonce)).expect("proposes");
    }
    let all = a.store.list(&ProposalFilter::default(), None).expect("reads");
    let rest = a.store.list(&ProposalFilter::default(), Some(all[0].row)).expect("reads");
    assert_eq!((all.len(), rest.len()), (3, 2));
    assert!(all[0].row > rest[0].row && !all[0].decided && all[0].ours);
    let seen = |account| {
        let seen_by = Some(SeenBy { account, data: vec!["trial".into()], undecided: false });
        a.store.count(&ProposalFilter { seen_by, open: true, ..ProposalFilter::default() }).expect("reads")
    };
    assert_eq!((seen("ann"), seen("bob")), (3, 0));
    let record = a.store.standing(&all[1].id).expect("reads").expect("is there");
    consent(&a, &record);
    assert_eq!(seen("bob"), 1, "it reads a data set of bob's");
    let filter =
        ProposalFilter { state: Some(ProposalState::Consented), party: Some(b.key()), ..Default::default() };
    assert_eq!(a.store.list(&filter, None).expect("reads").len(), 1);
}

#[test]
fn what_a_peer_lost_is_sent_again() {
    let (a, b) = (Side::new(), Side::new());
    let record = a.store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    consent(&a, &record);
    b.hear(&a);
    let heads = b.store.heads(a.key(), 10).expect("reads");
    assert_eq!((heads.len(), heads[0].1.len(), heads[0].1[0].count), (1, 1, 2));
    assert!(a.store.send_again(b.key(), &record.id(), 1).expect("written"));
    assert_eq!(a.store.unsent(b.key(), &[], 10).expect("reads").len(), 1);
    assert!(matches!(b.hear(&a)[..], [Absorbed::Have { new: false, .. }]));
}

/// A person stops a study, or a look holds it, between the end of a process and what is written of it.
#[test]
fn what_was_held_while_a_run_ended_stays_held() {
    let (a, b) = (Side::new(), Side::new());
    let record = a.store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    let id = record.id();
    let (kind, code) = ("peer".to_owned(), String::new());
    let act = RecordedAct { by: "ann", what: "run stopped", to: "", at: AT / 1_000 };
    for (run, held) in [(1, STOPPED), (2, "told")] {
        a.store.hold(&act, &id, Some(held), 0).expect("held");
        let (outcome, kind, code) = (RunOutcome::Failed, kind.clone(), code.clone());
        let end = RunEnd { run, outcome, kind, code, debits: Vec::new() };
        let left = RunLeft { next_ms: 7, ..RunLeft::default() };
        assert!(a.store.end_run(AT + HOUR, &record, &end, &left).expect("ends"));
        let row = a.store.proposal(&id).expect("reads").expect("is there");
        assert_eq!(row.held.as_deref(), Some(held));
    }
}

#[test]
fn of_a_run_the_newest_lines_are_kept() {
    let side = Side::new();
    let id = statements::ProposalId([7; 16]);
    for line in 0..1_003 {
        side.store.keep_line(&id, 1, AT, &line.to_string()).expect("kept");
    }
    let lines = side.store.lines(&id, 1, 0, 2_000).expect("reads");
    assert_eq!((lines.len(), lines[0].line.as_str()), (1_000, "3"));
    let newest = side.store.lines(&id, 1, lines[990].row, 5).expect("reads");
    assert_eq!(
        newest.iter().map(|line| line.line.as_str()).collect::<Vec<_>>(),
        ["998", "999", "1000", "1001", "1002"]
    );
}

/// What was checked is not read again, and what another process adds is.
#[test]
fn what_another_process_says_is_seen_beside_what_was_checked() {
    let (a, b) = (Side::new(), Side::new());
    let record = a.store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    let count = |store: &Store| {
        store.standing(&record.id()).expect("reads").expect("there").heads()[0].count
            + store.standing(&record.id()).expect("reads").expect("there").heads()[1].count
    };
    assert_eq!(count(&a.store), 1);
    let other = Store::open(&a._folder.path().join("service.db")).expect("opens");
    for number in 2..5 {
        let store = [&a.store, &other][number as usize % 2];
        let note = Said::Note(format!("note {number}"));
        store.say(a.speaker(), &record.id(), note).expect("says");
        assert_eq!([&a.store, &other].map(count), [number; 2]);
    }
    // What is refused leaves nothing behind.
    let refused = a.store.say(a.speaker(), &record.id(), Said::Started { run: 1, nonces: vec![[0; 16]; 2] });
    assert!(refused.is_err() && [&a.store, &other].map(count) == [4; 2]);
}

#[test]
fn an_own_word_that_was_lost_is_taken_back_and_nobody_elses() {
    let (a, b) = (Side::new(), Side::new());
    let record = a.store.propose(a.speaker(), proposed(&text([&a, &b]), 1)).expect("proposes");
    b.hear(&a);
    a.store.say(a.speaker(), &record.id(), Said::Note("lost".to_owned())).expect("says");
    b.hear(&a);
    // The same organisation with the store of before.
    let old = Store::open(&a._folder.path().join("old.db")).expect("opens");
    let sent = |number| b.store.said_by(&record.id(), a.key(), number).expect("reads");
    let read = |bytes: &[u8]| statements::SignedStatement::read(bytes).expect("a statement");
    let note = read(&sent(1)[0]);
    assert!(!old.take_back(a.speaker(), b.key(), &note).expect("reads"), "the proposal is not there");
    let first = read(&sent(0)[0]);
    assert!(!old.take_back(a.speaker(), b.key(), &first).expect("reads"), "nor is it taken so");
    assert!(!a.store.take_back(a.speaker(), b.key(), &note).expect("reads"), "it is there");
}

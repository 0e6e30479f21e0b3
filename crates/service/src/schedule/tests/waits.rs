//! What a run that all have agreed to waits for.

use super::super::settle::end;
use super::*;
use crate::store::{COMMAND_LINE, ConsentRight};
use privacy::ledger::PeerLineage;
use statements::{RunEnd, RunOutcome, RunWindow};

const HOUR_MS: u64 = 3_600_000;

/// The peer proposes a study anew, to be run between these hours from now on; this side consents for some
/// days.
fn agreed_to(pair: &Pair, nonce: u8, hours: [i64; 2], days: u64) -> Result<ProposalId, base::Error> {
    let (id, _) = pair.proposed(&format!("Question {nonce}"), "");
    let record = pair.store.standing(&id).expect("reads").expect("there");
    let why = ClosingReason { code: ClosingCode::Other, text: "Other hours.".to_owned() };
    pair.store.say(pair.they(), &id, Said::Withdraw(why)).expect("withdrawn");
    let [from_ms, until_ms] = hours.map(|hour| now_ms().saturating_add_signed(hour * HOUR_MS.cast_signed()));
    let windows = vec![RunWindow { from_ms, until_ms }];
    let proposed = ProposedStudy { nonce: [nonce; 16], windows, ..record.proposed().clone() };
    let id = pair.store.propose(pair.they(), proposed).expect("proposed").id();
    pair.meet();
    let charge = WeighedCharge {
        viewer: Some(pair.peer.fingerprint().to_string()),
        release: "1/10".to_owned(),
        sizes: ["1/100".to_owned(), "1/1000000".to_owned()],
    };
    let weighed = WeighedStudy {
        tag: base::hex(&[2; 32]),
        version: crate::data_version(&pair.house.rules().settings, "trial").map(|all| base::hex(&all))?,
        program: base::hex(&record.proposed().program),
        charges: vec![charge],
        rows: 1,
        refusals: Vec::new(),
    };
    let rules = pair.house.store().accepted().expect("reads").map(|accepted| accepted.hash);
    let (by, data, words) = (COMMAND_LINE.to_owned(), "trial".to_owned(), "read".to_owned());
    let order = AgreeOrder { by, id, data, runs: 1, days, words, rules };
    agree(pair.house.store(), &pair.house.rules().settings, &order, &weighed)?;
    let right = ConsentRight { rules: None, stewards: &[], separate: true, approval: None, keys: &[] };
    pair.store.consent(pair.they(), &id, pair.terms(&id), &pair.own_consent(), &right).expect("consents");
    pair.meet();
    Ok(id)
}

#[test]
fn a_consent_is_to_the_days_that_the_proposal_names() {
    let pair = Pair::new("");
    pair.house.look_at_rules();
    let waits = |id| why_waiting(&pair.house, &row(&pair, id), true).expect("looks").expect("it waits");
    let id = agreed_to(&pair, 11, [-1, 1], 30).expect("agrees");
    assert!(waits(&id).contains("there is no connection"), "{}", waits(&id));
    let id = agreed_to(&pair, 12, [2, 26], 30).expect("agrees");
    assert_eq!(waits(&id), "the hours that all agreed to");
    let record = pair.store.standing(&id).expect("reads").expect("there");
    let me = record.place(&pair.we().identity.fingerprint()).expect("a party");
    assert_eq!(record.terms(me).expect("terms").windows, record.proposed().windows, "the peer reads it");
    assert!(words(&pair, &id).starts_with("All have consented. Runs may begin from"));
    // A consent that would never let a run begin is none.
    let refused = |nonce, hours, days| {
        agreed_to(&pair, nonce, hours, days).map(drop).expect_err("no run could begin").to_string()
    };
    let why = refused(13, [-26, -2], 30);
    assert!(why.contains("are over: have it proposed again"), "{why}");
    let why = refused(14, [26, 50], 1);
    assert!(why.contains("after a consent of 1 days has run out"), "{why}");
}

/// Run 1 is over for both, without an answer.
fn broke_off(pair: &Pair, id: &ProposalId, error: (&str, &str, &str)) {
    end(&pair.house, id, 1, error).expect("ended");
    let (kind, code) = ("peer".to_owned(), String::new());
    let ended = RunEnd { run: 1, outcome: RunOutcome::Failed, kind, code, debits: Vec::new() };
    pair.store.say(pair.they(), id, Said::Ended(ended)).expect("said");
    pair.meet();
}

#[test]
fn where_the_ledger_bars_a_release_the_own_operator_is_asked_for_by_name() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let own = consented(&pair, &id);
    pair.ready(&id);
    broke_off(&pair, &id, ("refused", "", "it is barred"));
    let look = || super::super::look(&pair.house, false).expect("looks");
    look();
    assert_eq!(row(&pair, &id).state, ProposalState::Failed, "another refusal asks for nobody");
    let mut ledger = Ledger::open(&pair.path("registry.ledger")).expect("opens");
    let (peer, lineage) = (pair.peer.fingerprint().to_string(), own.lineage.expect("a lineage"));
    let towards = PeerLineage { peer, lineage };
    ledger.bar(&[9; 32], &towards, "silence").expect("barred");
    (0..2).for_each(|_| look());
    assert_eq!(row(&pair, &id).state, ProposalState::Asks);
    assert!(words(&pair, &id).contains("tacit ledger allow"), "{}", words(&pair, &id));
    pair.meet();
    let record = pair.store.standing(&id).expect("reads").expect("there");
    let me = record.place(&pair.we().identity.fingerprint()).expect("a party");
    assert_eq!((record.view().state(), record.view().awaited()), (ProposalState::Asks, vec![me]));
    let asked = record.chain(me).iter().filter(|one| matches!(one.body().said, Said::Asks { run: 2 }));
    assert_eq!(asked.count(), 1, "once");
    // The operator allows it and says that it goes on: the next offer ends the asking.
    ledger.allow(&towards.peer, Some(&towards.lineage), "spoke with them").expect("allowed");
    pair.house.store().hold(&pair.act_of("run allowed"), &id, None, 0).expect("held");
    let (earliest_ms, latest_ms) = (1, now_ms() + 600_000);
    let offer = RunOffer { run: 2, goes_on: false, nonce: [4; 16], earliest_ms, latest_ms, port: 0 };
    pair.house.store().offer_run(pair.we(), &id, offer).expect("ready");
    assert_eq!(row(&pair, &id).state, ProposalState::Starting);
}

#[test]
fn where_the_operator_of_another_party_has_to_allow_it_no_run_is_offered() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    pair.offered(&id);
    broke_off(&pair, &id, ("peer", "lost", "the connection broke"));
    pair.store.say(pair.they(), &id, Said::Asks { run: 2 }).expect("said");
    pair.meet();
    let why = why_waiting(&pair.house, &row(&pair, &id), true).expect("looks").expect("it waits");
    assert!(why.contains("another party's operator has to allow"), "{why}");
}

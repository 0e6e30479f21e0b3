//! What people can do where another party holds a study, and what of rules they are told.

use super::*;

#[test]
fn a_study_that_all_agreed_to_can_be_held_and_one_that_others_closed_stopped() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        pair.consented(&id, &pair.own_consent());
        let stella = pair.person("stella", &["steward"]);
        let password = format!("stella {PASSWORD}");
        let (run, stop) = (format!("{path}/run"), format!("{path}/stop"));
        let held = || pair.house.store.proposal(&id).expect("reads").expect("there").held;
        pair.act(&stella, &run, &stop, &[("stop-password", &password)]).await.is(303);
        assert_eq!(held().as_deref(), Some("stopped"));
        let otto = pair.person("otto", &["steward"]);
        let page = pair.ask(&otto, &run).await.is(200).body;
        assert!(!page.contains(&stop) && page.contains(&format!("{path}/start")), "{page}");
        // A process that runs can be stopped also where the other party withdraws meanwhile.
        pair.house.jobs().pretend(id, 1);
        let reason = ClosingReason { code: ClosingCode::Other, text: "Not so.".to_owned() };
        pair.store.say(pair.they(), &id, Said::Withdraw(reason)).expect("withdrawn");
        pair.meet();
        let page = pair.ask(&otto, &run).await.is(200).body;
        assert!(page.contains(&stop) && page.contains("Stop this run"), "{page}");
    });
}

#[test]
fn a_withdrawal_that_cannot_be_said_yet_holds_the_study() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        pair.consented(&id, &pair.own_consent());
        let stella = pair.person("stella", &["steward"]);
        pair.house.store.hear_anew(&[pair.peer.fingerprint()]).expect("written");
        let password = format!("stella {PASSWORD}");
        let fields = [("withdraw-text", "Not so."), ("withdraw-password", &password)];
        let got = pair.act(&stella, &path, &format!("{path}/withdraw"), &fields).await;
        let got = got.is(200).says("Until then it is held").says("It is held, and not said yet");
        got.never_says("Nothing was done");
        let row = pair.house.store.proposal(&id).expect("reads").expect("there");
        assert_eq!(row.held.as_deref(), Some("stopped"), "no run begins before it can be said");
    });
}

#[test]
fn why_a_study_waits_names_columns_to_nobody_who_may_not_see_them() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        let version = crate::data_version(&pair.house.rules().settings, "trial").expect("there");
        pair.consented(&id, &OwnConsent { version, ..pair.own_consent() });
        pair.tightened("columns = [\"child_id\", \"arm\", \"injected\"]", "columns = [\"child_id\"]");
        let (olga, stella) = (pair.person("olga", &["operator"]), pair.person("stella", &["steward"]));
        for page in [format!("{path}/run"), "/operate".to_owned()] {
            let shown = pair.ask(&olga, &page).await.is(200).body;
            assert!(shown.contains("the rules here do not allow it any more"), "{shown}");
            assert!(!shown.contains("injected"), "{shown}");
        }
        let shown = pair.ask(&stella, &format!("{path}/run")).await.is(200).body;
        assert!(shown.contains("injected"), "{shown}");
    });
}

/// New data of a run may break a column: why names it, and a cell.
#[test]
fn what_a_run_ended_with_names_columns_to_nobody_who_may_not_see_them() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        pair.consented(&id, &pair.own_consent());
        let (olga, stella) = (pair.person("olga", &["operator"]), pair.person("stella", &["steward"]));
        let record = pair.house.store.standing(&id).expect("reads").expect("there");
        let why = "trial.csv, line 5, column \"amount\": \"n/a\" is no amount";
        for (run, kind, is_hidden) in [(1, "input", true), (2, "data", true), (3, "peer", false)] {
            let (outcome, code) = (RunOutcome::Failed, String::new());
            let end = RunEnd { run, outcome, kind: kind.to_owned(), code, debits: Vec::new() };
            let left = RunLeft { message: Some(why), ..RunLeft::default() };
            assert!(pair.house.store.end_run(row_time(), &record, &end, &left).expect("ended"));
            let run = format!("{path}/run");
            let shown = pair.ask(&olga, &run).await.is(200).body;
            assert_eq!(shown.contains("is no amount"), !is_hidden, "{kind}: {shown}");
            pair.ask(&stella, &run).await.is(200).says("is no amount");
        }
    });
}

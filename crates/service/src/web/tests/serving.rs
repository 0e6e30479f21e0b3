//! A study of two other organisations, which this one would compute as one of four servers.

use super::*;
use crate::serving::NO_DATA;

/// The hospitals own data of it; the registry is its second server.
fn served(pair: &Pair) -> (ProposalId, String) {
    let text = include_str!("../../../../../examples/lift-ring4.toml");
    let text = text.replace(&format!("tacit1:{}", "2".repeat(32)), &pair.own.fingerprint().to_string());
    let text = text.replace("tacit1:b07e66d2915c4fa3a2d8017b34ce9f50", &pair.peer.fingerprint().to_string());
    pair.proposed_text(&text, "")
}

#[test]
fn a_steward_of_everything_decides_whether_it_is_computed() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = served(&pair);
        let [all, one] = [("stella", "steward"), ("otto", "steward=trial")]
            .map(|(name, role)| (name, pair.person(name, &[role])));
        let form = "signs that it computes the study as one of its servers";
        pair.ask(&one.1, &path).await.is(200).never_says(form);
        pair.ask(&all.1, &path).await.is(200).says(form).says("sees shares");
        let consents = |name: &str| {
            let rules = pair.house.store.accepted().expect("reads").map(|accepted| accepted.hash);
            let right = ConsentRight { rules, stewards: &[], separate: true, approval: None, keys: &[] };
            let own = OwnConsent { by: name.to_owned(), data: NO_DATA.to_owned(), ..pair.own_consent() };
            let speaker = Speaker { by: name, ..pair.we() };
            pair.house.store.consent(speaker, &id, pair.terms(&id), &own, &right)
        };
        assert!(consents(one.0).is_err(), "a steward of one data set does not decide on what has none");
        consents(all.0).expect("consents");
        let row = pair.house.store.proposal(&id).expect("reads").expect("there");
        assert!(row.decided && row.data.is_none(), "{row:?}");
    });
}

#[test]
fn the_proposer_hears_why_a_server_refuses() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = served(&pair);
        let stella = pair.person("stella", &["steward"]);
        let password = format!("stella {PASSWORD}");
        let fields = [("refuse-text", "Not this week."), ("refuse-password", password.as_str())];
        pair.act(&stella, &path, &format!("{path}/refuse"), &fields).await.is(303);
        pair.meet();
        let record = pair.store.standing(&id).expect("reads").expect("there");
        let names = record.parties().iter().map(ToString::to_string).collect::<Vec<_>>();
        let words = record.state_words(statements::Naming(&names));
        assert!(words.contains("Not this week."), "{words}");
    });
}

/// Bounds of what owners show are no rules of who computes; its kinds are.
#[test]
fn a_server_refuses_by_its_kinds_and_studies_alone() {
    let pair = Pair::new("");
    pair.tightened("max_rho = 0.3", "max_rho = 0.0001");
    let (id, _) = served(&pair);
    let state = || pair.house.store.proposal(&id).expect("reads").expect("there").state;
    crate::schedule::look(&pair.house, false).expect("looks");
    assert_eq!(state(), statements::ProposalState::Proposed);
    let pair = Pair::new("");
    pair.tightened("max_rho = 0.3", &format!("max_rho = 0.3\nstudies = [\"{}\"]", "0".repeat(64)));
    let (id, _) = served(&pair);
    crate::schedule::look(&pair.house, false).expect("looks");
    let record = pair.house.store.standing(&id).expect("reads").expect("there");
    let names = record.parties().iter().map(ToString::to_string).collect::<Vec<_>>();
    let words = record.state_words(statements::Naming(&names));
    assert!(words.contains("policy.studies"), "{words}");
}

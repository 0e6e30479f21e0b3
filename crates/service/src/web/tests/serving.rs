//! A study of two other organisations, which this one would compute as one of four servers.

use super::*;
use crate::serving::NO_DATA;

pub(crate) const SERVED: &str = include_str!("../../../../../examples/lift-ring4.toml");

/// The hospitals own data of it; the registry is its second server.
pub(crate) fn served(pair: &Pair) -> (ProposalId, String) {
    let text = SERVED.replace(&format!("tacit1:{}", "2".repeat(32)), &pair.own.fingerprint().to_string());
    let text = text.replace("tacit1:b07e66d2915c4fa3a2d8017b34ce9f50", &pair.peer.fingerprint().to_string());
    pair.proposed_text(&text, "")
}

impl Pair {
    /// The registry consents to computing a study in so many runs.
    pub(crate) fn serves(&self, id: &ProposalId, runs: u8) {
        let rules = self.house.store.accepted().expect("reads").map(|accepted| accepted.hash);
        let right = ConsentRight { rules, stewards: &[], separate: true, approval: None, keys: &[] };
        let own = OwnConsent { data: NO_DATA.to_owned(), ..self.own_consent() };
        let terms = ConsentTerms { runs, ..self.terms(id) };
        self.house.store.consent(self.we(), id, terms, &own, &right).expect("consents");
    }

    fn text_of(&self, id: &ProposalId) -> String {
        self.house.store.standing(id).expect("reads").expect("there").proposed().text.clone()
    }
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

#[test]
fn a_server_consents_to_so_many_runs_and_takes_it_back_before_one() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = served(&pair);
        let [all, one] = [("stella", "steward"), ("otto", "steward=trial")]
            .map(|(name, role)| (name, pair.person(name, &[role])));
        let asked = "Runs in which it computes at most";
        pair.ask(&all.1, &path).await.is(200).says(asked).says("<option value=\"1\">1</option>");
        let told = crate::told::tell(&pair.text_of(&id), "", &crate::reckoned::ReckonedFor::default())
            .expect("told");
        let signed = told.words_of("", (NO_DATA, ""), 1, 30);
        assert!(
            signed.ends_with("As a server without data, for 30 days, computing in at most 1 run."),
            "{signed}"
        );
        pair.serves(&id, 1);
        let withdraw = format!("{path}/withdraw");
        let form = format!("action=\"{withdraw}\"");
        pair.ask(&one.1, &path).await.is(200).never_says(&form);
        let password = format!("stella {PASSWORD}");
        let fields = [("withdraw-text", "Our machine is needed."), ("withdraw-password", password.as_str())];
        pair.act(&all.1, &path, &withdraw, &fields).await.is(303);
        pair.meet();
        let record = pair.store.standing(&id).expect("reads").expect("there");
        assert_eq!(record.view().state(), statements::ProposalState::Closed);
        let names = record.parties().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(record.state_words(statements::Naming(&names)).contains("Our machine is needed."));
    });
}

/// The registry owns data of a study that four others compute.
#[test]
fn data_are_given_to_servers_that_may_compute_on_them_alone() {
    asking(async {
        let names = ["north", "south", "east", "west"];
        let peer =
            |(name, digit): (&str, &str)| format!("[peers.{name}]\nkey = \"tacit1:{}\"\n", digit.repeat(32));
        let pair = Pair::new(&names.into_iter().zip(["1", "2", "3", "4"]).map(peer).collect::<String>());
        let text =
            SERVED.replace("tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11", &pair.own.fingerprint().to_string());
        let text =
            text.replace("tacit1:b07e66d2915c4fa3a2d8017b34ce9f50", &pair.peer.fingerprint().to_string());
        let (_, path) = pair.proposed_text(&text, "");
        let stella = pair.person("stella", &["steward=trial"]);
        let none = "No data set of ours may be computed on by all servers of this study";
        let (consent, refuse) = (format!("action=\"{path}/consent\""), format!("action=\"{path}/refuse\""));
        let shown = pair.ask(&stella, &path).await.is(200).says(none).says(&refuse);
        shown.never_says(&consent);
        pair.ask(&stella, "/data/trial").await.is(200).says("No server may compute on it");
        let three = "least_rows = 1\nservers = [\"north\", \"south\", \"east\"]";
        pair.tightened("least_rows = 1", three);
        pair.ask(&stella, &path).await.is(200).says(none).never_says(&consent);
        pair.tightened("\"east\"]", "\"east\", \"west\"]");
        pair.ask(&stella, &path).await.is(200).says(&consent).never_says(none);
        pair.ask(&stella, "/data").await.is(200).says("north, south, east, west");
        pair.ask(&stella, "/data/trial")
            .await
            .is(200)
            .says("Servers that may compute on it: north, south, east");
    });
}

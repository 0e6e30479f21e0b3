//! What is done with what a process found of data.

use super::Pair;
use crate::agree::ChangeOrder;
use crate::store::RecordedAct;
use crate::weigh::{WeighedCharge, WeighedStudy};
use statements::ProposalId;

impl Pair {
    /// What a process found decides whether data are taken, and the rules and roles of then.
    pub fn takes_what_was_weighed(&self, id: &ProposalId, version: [u8; 32]) {
        let rules = self.house.store.accepted().expect("reads").map(|accepted| accepted.hash);
        let record = self.house.store.standing(id).expect("reads").expect("there");
        let found = WeighedStudy {
            tag: base::hex(&[8; 32]),
            version: base::hex(&version),
            program: base::hex(&record.proposed().program),
            charges: Vec::new(),
            rows: 2,
            refusals: Vec::new(),
        };
        let order = ChangeOrder { by: "stella".into(), id: *id, data: "trial".into(), version, rules };
        let take = |order: &ChangeOrder, found: &WeighedStudy| {
            let settings = &self.house.rules().settings;
            let taken = crate::agree::take(&self.house.store, settings, order, "the study", found);
            taken.map_err(|error| error.to_string())
        };
        let charge = WeighedCharge {
            viewer: Some(self.peer.fingerprint().to_string()),
            release: "1/10".to_owned(),
            sizes: ["0", "0"].map(str::to_owned),
        };
        for (found, why) in [
            (WeighedStudy { refusals: vec!["2 rows would take part".to_owned()], ..found.clone() }, "2 rows"),
            (WeighedStudy { version: base::hex(&[9; 32]), ..found.clone() }, "the data changed again"),
            (WeighedStudy { program: base::hex(&[9; 32]), ..found.clone() }, "another program"),
            (WeighedStudy { charges: vec![charge], ..found.clone() }, "charge more than was consented to"),
        ] {
            assert!(take(&order, &found).is_err_and(|error| error.contains(why)), "{why}");
        }
        for order in [
            ChangeOrder { rules: Some([0; 32]), ..order.clone() },
            ChangeOrder { by: "olga".to_owned(), ..order.clone() },
        ] {
            assert!(take(&order, &found).is_err_and(|error| error.contains("changed while the files")));
        }
        let mut keyed = (*self.house.rules().settings).clone();
        keyed.data.get_mut("trial").expect("there").steward_keys.push(self.peer.fingerprint());
        let taken = crate::agree::take(&self.house.store, &keyed, &order, "the study", &found);
        assert!(taken.is_err_and(|error| error.to_string().contains("own key has signed for other data")));
        take(&order, &found).expect("taken");
        let own = self.house.store.own_consent(id).expect("reads").expect("there");
        assert_eq!((own.tag, own.taken), ([2; 32], Some([8; 32])), "runs are held to what was taken");
    }

    /// Signs somebody in once more, just now or so long ago that the password is asked for again.
    pub fn again(&self, name: &str) -> String {
        self.signed_in(name, crate::web::now())
    }

    pub fn again_unproven(&self, name: &str) -> String {
        self.signed_in(name, crate::web::now() - 400)
    }

    fn signed_in(&self, name: &str, at: u64) -> String {
        let act = RecordedAct { by: name, what: "signed in", to: name, at };
        let hash = self.house.store.password_of(name).expect("reads").expect("has one");
        self.house.store.begin_session(&act, &hash, None, false).expect("begun").expect("signed in").text()
    }
}

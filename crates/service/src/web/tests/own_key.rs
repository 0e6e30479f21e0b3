//! A consent that takes the signature of a steward's own key.

use super::{Got, PASSWORD, Pair, asking};
use crate::agree::{AgreeOrder, ConsentStep, agree};
use crate::weigh::WeighedStudy;
use net::Identity;
use statements::{ConsentFile, ConsentRequest, ConsentTerms, ProposalId};

impl Pair {
    /// Somebody has clicked, and a process has read the files: what comes of that.
    fn weighed_for(&self, by: &str, id: &ProposalId) -> ConsentStep {
        let record = self.house.store.standing(id).expect("reads").expect("there");
        let weighed = WeighedStudy {
            tag: base::hex(&[2; 32]),
            version: base::hex(&[3; 32]),
            program: base::hex(&record.proposed().program),
            charges: Vec::new(),
            rows: 1,
            refusals: Vec::new(),
        };
        privacy::ledger::Ledger::open(&self.house.rules().settings.ledger).expect("a ledger");
        let rules = self.house.store.accepted().expect("reads").map(|accepted| accepted.hash);
        let (by, data, words) = (by.to_owned(), "trial".to_owned(), "what was read".to_owned());
        let order = AgreeOrder { by, id: *id, data, runs: 2, days: 30, words, rules };
        agree(&self.house.store, &self.house.rules().settings, &order, &weighed).expect("nothing against it")
    }

    /// Gives a line as the signature, under the password.
    async fn sealed(&self, name: &str, path: &str, line: &str) -> Got {
        let (cookie, password) = (self.again_unproven(name), format!("{name} {PASSWORD}"));
        let fields = [("seal", line), ("seal-password", &password)];
        self.act(&cookie, path, &format!("{path}/seal"), &fields).await
    }

    /// The request that a person takes along.
    async fn request(&self, name: &str, path: &str) -> ConsentRequest {
        let got = self.ask(&self.again(name), &format!("{path}/request.json")).await.is(200);
        let file = ConsentFile::parse("request.json", &got.body).expect("a request");
        assert_eq!(file.words, "what was read");
        file.request
    }
}

#[test]
fn a_consent_takes_the_signature_of_a_stewards_own_key() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        let [own, other] = [(); 2].map(|()| Identity::generate().expect("a key"));
        let keys = format!("least_rows = 1\nsteward_keys = [\"{}\"]", own.fingerprint());
        pair.tightened("least_rows = 1", &keys);
        let stella = pair.person("stella", &["steward"]);
        pair.person("otto", &["steward"]);
        pair.ask(&stella, &path).await.is(200).says("With trial, it is signed when a steward");
        assert!(matches!(pair.weighed_for("stella", &id), ConsentStep::Asked));
        let row = pair.house.store.proposal(&id).expect("reads").expect("there");
        assert_eq!(row.state, statements::ProposalState::Proposed);
        let page = pair.ask(&pair.again("stella"), &path).await.is(200);
        page.says("Nothing stands against it.").says("ssh-keygen -Y sign -n tacit-consent");
        pair.ask(&pair.again("otto"), &path)
            .await
            .is(200)
            .says("stella has asked to consent")
            .never_says("/seal");
        let olga = pair.person("olga", &["operator"]);
        pair.ask(&olga, &format!("{path}/request.json")).await.is(404);
        let request = pair.request("stella", &path).await;
        // Of another key, for other terms, for another study, and no signature at all.
        let more = ConsentTerms { runs: 5, ..request.terms.clone() };
        let more = ConsentRequest { terms: more, ..request.clone() };
        let words =
            ConsentTerms { words: statements::digest_of_words("other words"), ..request.terms.clone() };
        let words = ConsentRequest { terms: words, ..request.clone() };
        let study = ConsentRequest { study: study::StudyHash::from_bytes([1; 32]), ..request.clone() };
        let by = |key: &Identity, request: &ConsentRequest| request.seal(key).expect("signed").text();
        for (line, why) in [
            (by(&other, &request), "is no key of a steward of trial"),
            (by(&own, &more), "the signature is for something else"),
            (by(&own, &words), "the signature is for something else"),
            (by(&own, &study), "the signature is for something else"),
            ("yes".to_owned(), "it must be tacit-seal1: and"),
        ] {
            pair.sealed("stella", &path, &line).await.is(200).says(why);
        }
        pair.sealed("stella", &path, &by(&own, &request)).await.is(303);
        let record = pair.house.store.standing(&id).expect("reads").expect("there");
        let me = record.place(&pair.own.fingerprint()).expect("a party");
        let seal = record.terms(me).expect("consented").seal.as_ref().expect("sealed");
        assert_eq!(seal.steward(), own.fingerprint());
        // The other side has it, and says so.
        pair.meet();
        let heard = pair.store.standing(&id).expect("reads").expect("there");
        let names = ["registry".to_owned(), "hospitals".to_owned()];
        let said = heard.statement_words(me, 0, statements::Naming(&names)).expect("a statement");
        assert!(said.contains(&format!("A steward signed with the key {}", own.fingerprint())), "{said}");
    });
}

#[test]
fn a_signature_does_not_outlive_what_it_was_for() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        let own = Identity::generate().expect("a key");
        let keys = format!("least_rows = 1\nsteward_keys = [\"{}\"]", own.fingerprint());
        pair.tightened("least_rows = 1", &keys);
        pair.person("stella", &["steward"]);
        pair.weighed_for("stella", &id);
        let line = pair.request("stella", &path).await.seal(&own).expect("signed").text();
        // Asked again, there is another salt: the signature of before is for something else.
        pair.weighed_for("stella", &id);
        pair.sealed("stella", &path, &line).await.is(200).says("the signature is for something else");
        // Rules that changed meanwhile are not those by which it was weighed.
        let line = pair.request("stella", &path).await.seal(&own).expect("signed").text();
        pair.tightened("max_rho = 0.3", "max_rho = 0.2");
        pair.sealed("stella", &path, &line).await.is(200).says("changed while the files were read");
        // Nobody else's consent takes its place.
        assert!(pair.house.store.standing(&id).expect("reads").expect("there").terms(0).is_none());
    });
}

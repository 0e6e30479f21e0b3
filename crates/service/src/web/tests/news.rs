//! What has come stands on the first page: reports, and who refused what and why.

use super::*;

impl Pair {
    /// A study that the registry proposes, by the clock of then.
    fn ours(&self, title: &str, at_ms: u64) -> (ProposalId, String) {
        let text = include_str!("../../../../../examples/lift.toml");
        let keys = ["tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11", "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50"];
        let text = text.replace(keys[0], &self.own.fingerprint().to_string());
        let text = text.replace(keys[1], &self.peer.fingerprint().to_string());
        let text = text.replace("1954 poliomyelitis field trial, placebo-control areas", title);
        let told = crate::told::tell(&text, "", &crate::reckoned::ReckonedFor::default()).expect("a study");
        let proposed = ProposedStudy {
            text: told.text.clone(),
            program: base::unhex(&told.program).expect("a hash"),
            note: String::new(),
            expires_ms: row_time() + 86_400_000,
            windows: Vec::new(),
            nonce: [9; 16],
        };
        let speaker = Speaker { at_ms, ..self.we() };
        let id = self.house.store.propose(speaker, proposed).expect("proposed").id();
        self.meet();
        (id, format!("/studies/{}", told.file.hash().full()))
    }
}

fn because(text: &str) -> ClosingReason {
    ClosingReason { code: ClosingCode::Data, text: text.to_owned() }
}

#[test]
fn the_first_page_says_who_refused_and_why_and_that_a_report_came() {
    asking(async {
        let pair = Pair::new("");
        let people =
            [("stella", "steward=trial"), ("ana", "analyst"), ("olga", "operator"), ("vic", "viewer")];
        let [stella, ana, olga, vic] = people.map(|(name, role)| pair.person(name, &[role]));
        pair.ask(&stella, "/").await.is(200).never_says("What has come");
        let (refused, refused_path) = pair.ours("A first question", row_time());
        pair.store.say(pair.they(), &refused, Said::Refuse(because("Not <b>ours</b>"))).expect("refused");
        pair.meet();
        let page = pair.ask(&ana, "/").await.is(200).says("What has come").says("Refused by hospitals");
        let page = page.says("Not &lt;b&gt;ours").says("Each stands here for 14 days.");
        page.says(&format!("<a href=\"{refused_path}\"><bdi>A first question</bdi></a>"));
        let (answered, path) = pair.proposed("A second question", "");
        pair.answered(&answered);
        let report = format!("A report came: <a href=\"{path}/report\">");
        let page = pair.ask(&stella, "/").await.is(200).says(&report).body;
        let news = page.split_once("What has come").expect("news").1;
        let [first, second] = ["A second question", "A first question"].map(|title| news.find(title));
        assert!(first.is_some() && first < second, "the newest first: {news}");
        // Who runs the machine reads no report, and a viewer only what was given.
        pair.ask(&olga, "/").await.is(200).says("Answered: ").never_says("A report came");
        pair.ask(&vic, "/").await.is(200).never_says("What has come").never_says("A second question");
    });
}

#[test]
fn what_is_old_is_no_news_though_something_is_said_of_logs_since() {
    asking(async {
        let pair = Pair::new("");
        let stella = pair.person("stella", &["steward=trial"]);
        let day = 86_400_000;
        let (id, _) = pair.ours("An old question", row_time() - 20 * day);
        let then = Speaker { at_ms: row_time() - 15 * day, ..pair.we() };
        pair.house.store.say(then, &id, Said::Withdraw(because("Not needed"))).expect("said");
        // Who has not heard of the end, or would like to stand there, says something since.
        pair.store.say(pair.they(), &id, Said::Note("Still there?".to_owned())).expect("said");
        let (recent, _) = pair.ours("A recent question", row_time() - 14 * day);
        let then = Speaker { at_ms: row_time() - 13 * day, ..pair.we() };
        pair.house.store.say(then, &recent, Said::Withdraw(because("Nor this"))).expect("said");
        let of = pair.peer.fingerprint();
        let witness = Said::Witness { of, entry: 1, hash: [1; 32] };
        pair.house.store.say(pair.we(), &id, witness).expect("said");
        let record = pair.house.store.standing(&id).expect("reads").expect("there");
        assert_eq!(record.chain(record.place(&of).expect("a party")).len(), 1, "the note has come");
        let page = pair.ask(&stella, "/").await.is(200).says("A recent question").says("Nor this");
        page.never_says("An old question");
    });
}

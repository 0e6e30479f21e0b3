//! What is wrong with a form stands beside its fields, and rehearsals are of drafts and proposals alike.

use super::{Pair, asking, form};
use statements::{ClosingCode, ClosingReason, Said};

fn program() -> Vec<(&'static str, &'static str)> {
    let text = "as=program;title=What it costs;name=costs;peer=hospitals;identifier=child_id;alike=plain;\
                col-1=eur;whose-1=them;is-1=amount;low-1=0;high-1=450;unit-1=EUR;\
                col-2=arm;whose-2=us;is-2=label;values-2=none, low;count=yes;by=arm;\
                ask-1=difference;of-1=eur;ask-2=median;of-2=eur;groups-2=all;rho=0.1;days=30;note=Why";
    text.split(';').filter_map(|field| field.split_once('=')).collect()
}

#[test]
fn mistakes_stand_beside_their_fields_and_a_draft_is_kept_with_them() {
    asking(async {
        let pair = Pair::new("");
        let ana = pair.person("ana", &["analyst"]);
        let new = "/studies/new?as=program";
        pair.ask(&ana, new).await.is(200).says("name=\"ask-8\"").says("formnovalidate");
        let with = |name: &'static str, value: &'static str, what| {
            let others = program().into_iter().filter(move |(field, _)| *field != name);
            others.chain([(name, value), ("do", what)]).collect::<Vec<_>>()
        };
        let got = pair.act(&ana, new, "/studies/new", &with("of-1", "cost", "preview")).await.is(422);
        let got = got.says("<a href=\"#of-1\">Question 1: name one of the columns above: eur, arm.</a>");
        let got = got.says("id=\"of-1-wrong\">Name one of the columns above: eur, arm.</p>");
        got.says("aria-invalid=\"true\"").says("aria-describedby=\"of-1-help of-1-wrong\"");
        // What is folded away is opened where something is wrong with it.
        let got = pair.act(&ana, new, "/studies/new", &with("edges-1", "5 1", "preview")).await;
        got.is(200).never_says("aria-invalid");
        let got = pair.act(&ana, new, "/studies/new", &with("edges-2", "5 1", "preview")).await.is(422);
        let opened = got.body.split("<details open=\"\"><summary>More about this question").nth(1);
        assert!(opened.expect("open").contains("id=\"edges-2-wrong\""), "{}", got.body);
        pair.act(&ana, new, "/studies/new", &with("title", "", "save")).await.is(303);
        pair.ask(&ana, "/studies/new").await.is(200).says("Untitled");
        let got = pair.act(&ana, new, "/studies/new", &with("do", "preview", "preview")).await.is(200);
        got.says("mean difference of eur between 0 450").says("by all");
    });
}

#[test]
fn who_reads_a_study_may_rehearse_it_and_a_page_says_that_all_is_made_up() {
    asking(async {
        let pair = Pair::new("");
        let ana = pair.person("ana", &["analyst"]);
        let save = [form(), vec![("do", "save")]].concat();
        pair.act(&ana, "/studies/new", "/studies/new", &save).await.is(303);
        let page = pair.ask(&ana, "/studies/new").await.is(200).body;
        let id = page.split_once("/studies/new?draft=").expect("a draft").1;
        let path = format!("/drafts/{}/rehearsal", id.split_once('"').expect("ends").0);
        let page = pair
            .ask(&ana, &path)
            .await
            .is(200)
            .says("<h1 class=\"title\">Made up: rehearsal of Did it help?");
        page.says("Everything on this page is made up").says("Made-up rows of hospitals");
        let begin = path.replace("rehearsal", "rehearse");
        let wrong = [("rows-0", "many"), ("rows-1", "5,000")];
        let got = pair.act(&ana, &path, &begin, &wrong).await.is(200);
        got.says("id=\"rows-0-wrong\">Write a number from 1 to 100,000.").says("value=\"5,000\"");
        // Somebody else's draft is nobody's.
        let bob = pair.person("bob", &["analyst"]);
        pair.ask(&bob, &path).await.is(404);
        let (_, study) = pair.proposed("A question", "Shall we?");
        let path = format!("{study}/rehearsal");
        let stella = pair.person("stella", &["steward=trial"]);
        pair.ask(&stella, &study).await.is(200).says("A rehearsal on made-up rows");
        pair.ask(&stella, &path).await.is(200).says("Nothing was made up for this study yet.");
        // Who runs the machine does not see which columns a study reads.
        let olga = pair.person("olga", &["operator"]);
        pair.ask(&olga, &study).await.is(200).never_says("A rehearsal on made-up rows");
        pair.ask(&olga, &path).await.is(403);
    });
}

/// Proposes what a form says, as its author; where it is then.
async fn proposed(pair: &Pair, cookie: &str, fields: Vec<(&'static str, &'static str)>) -> String {
    let got = pair.act(cookie, "/studies/new", "/studies/new", &fields).await.is(200);
    let read = got.body.split_once("name=\"read\" value=\"").expect("a hash").1;
    let read = read.split_once('"').expect("ends").0;
    let sent = [fields, vec![("do", "propose"), ("read", read)]].concat();
    pair.act(cookie, "/studies/new", "/studies/new", &sent).await.is(303).place
}

#[test]
fn what_is_over_is_proposed_anew_with_its_fields_filled() {
    asking(async {
        let pair = Pair::new("");
        pair.tightened("[policy]\nkinds = [\"lift\"]", "[policy]\nkinds = [\"lift\", \"program\"]");
        let ana = pair.person("ana", &["analyst"]);
        let stella = pair.person("stella", &["steward=trial"]);
        for (fields, filled) in [
            (
                form(),
                ["value=\"injected\"", "<option value=\"lower\" selected=\"\">", "value=\"1954-12-31\""],
            ),
            (program(), ["value=\"eur\"", "<option value=\"median\" selected=\"\">", "value=\"none, low\""]),
        ] {
            let path = proposed(&pair, &ana, fields).await;
            pair.ask(&ana, &path).await.is(200).never_says("Propose one like it");
            let hash = path.trim_start_matches("/studies/");
            let id = pair.house.store.proposal_of(&study_hash(hash)).expect("reads").expect("there").id;
            let text = "Not now.".to_owned();
            let reason = ClosingReason { code: ClosingCode::Other, text };
            pair.house.store.say(pair.we(), &id, Said::Withdraw(reason)).expect("said");
            let to = format!("/studies/new?like={hash}");
            let page = pair.ask(&ana, &path).await.is(200).says("Propose one like it").says(&to);
            page.never_says("Take it back");
            let page = pair.ask(&ana, &to).await.is(200);
            filled.into_iter().fold(page, |page, said| page.says(said)).says("value=\"30\"");
            // Who does not propose is offered nothing.
            pair.ask(&stella, &path).await.is(200).never_says("Propose one like it");
            pair.ask(&stella, &to).await.is(403);
        }
        // What no form makes is pasted, and another side's words are not taken for ours.
        let (id, path) = pair.proposed("Of two shards", "Their words");
        let form = pair.ask(&stella, &path).await.is(200).body;
        let refusal = form.split_once("id=\"refuse-text\"").expect("a field").1;
        assert!(refusal.split_once('>').expect("ends").0.contains("required"), "{refusal}");
        assert!(form.contains("This has to be filled in, with 1 to 2,000 characters"), "{form}");
        let reason = ClosingReason { code: ClosingCode::Other, text: "No.".to_owned() };
        pair.house.store.say(pair.we(), &id, Said::Refuse(reason)).expect("said");
        let to = format!("/studies/new?like={}", path.trim_start_matches("/studies/"));
        let page = pair.ask(&ana, &to).await.is(200).says("name=\"as\" value=\"file\"").says("shards = 2");
        page.never_says("Their words");
        pair.ask(&ana, &format!("/studies/new?like={}", "0".repeat(64))).await.is(404);
    });
}

fn study_hash(text: &str) -> study::StudyHash {
    study::StudyHash::parse(text).expect("a hash")
}

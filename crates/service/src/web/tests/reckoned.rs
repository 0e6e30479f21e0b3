//! Numbers on pages: for which rows a study is reckoned, what own rules refuse, whose turn it is, and what is
//! held of a budget.

use super::*;
use statements::ChargeBound;

/// The hash of the words that a page has a form for.
fn words_of(page: &Got) -> String {
    let rest = page.body.split_once("name=\"words\" value=\"").expect("a form").1;
    rest.split_once('"').expect("ends").0.to_owned()
}

#[test]
fn a_study_is_reckoned_for_checked_rows_and_nobody_signs_them() {
    asking(async {
        let pair = Pair::new("");
        let (_, path) = pair.proposed("A question", "");
        let (stella, anna) = (pair.person("stella", &["steward"]), pair.person("anna", &["analyst"]));
        let nobody = "for 1,000,000 rows of each party, as nobody here said how many";
        let before = pair.ask(&stella, &path).await.is(200).says(nobody).says("no part of what is signed");
        let found = r#"{"rows":45678,"whole":true,"columns":[],"forms":[],"problems":[]}"#;
        pair.house.store.keep_check("stella", "trial", 1_795_824_000, found).expect("kept");
        let after = pair.ask(&stella, &path).await.is(200).never_says(nobody);
        let after =
            after.says("45,678 rows of trial, as checked on 2026-11-28, and as many of each other party");
        // What is signed for stays what it was: the number cannot be tried out by who has the hash.
        assert_eq!(words_of(&before), words_of(&after));
        // Who may not know how many rows there are does not read it here.
        pair.ask(&anna, &path).await.is(200).says(nobody).never_says("45,678");
    });
}

#[test]
fn what_was_said_in_the_form_is_what_the_preview_and_the_page_reckon_with() {
    asking(async {
        let pair = Pair::new("");
        let ana = pair.person("ana", &["analyst"]);
        let with = [form(), vec![("rows-us", "400000"), ("rows-them", "2000"), ("mean", "0.0006")]].concat();
        let preview = [with.clone(), vec![("do", "preview")]].concat();
        let got = pair.act(&ana, "/studies/new", "/studies/new", &preview).await.is(200);
        let said = "400,000 rows of registry and 2,000 of hospitals, as was said with the proposal";
        let got =
            got.says(said).says("mean outcome of the control arm of 0.0006").never_says("1,000,000 rows");
        // The table has the study's own row, and the sentence its number.
        let own = got.body.split_once("(this study)").expect("a table").1;
        let half = own.split_once("</td>").expect("ends").1.split_once("</td>").expect("a number").0;
        let half = half.rsplit_once('>').expect("a cell").1.to_owned();
        let got = got.says(&format!("({half} per person), of which chance alone"));
        let read = got.body.split_once("name=\"read\" value=\"").expect("a hash").1;
        let read = read.split_once('"').expect("ends").0;
        let propose = [with, vec![("do", "propose"), ("read", read)]].concat();
        let gone = pair.act(&ana, "/studies/new", "/studies/new", &propose).await.is(303).place;
        let page = pair.ask(&ana, &gone).await.is(200).says(said).says("control arm of 0.0006");
        page.never_says("1,000,000 rows");
        // So does a rehearsal, in the proportion that was said.
        let page = pair.ask(&ana, &format!("{gone}/rehearsal")).await.is(200);
        let page = page.says("In the proportion of the 400,000 and 2,000 that were said with the study.");
        page.says("value=\"100000\"").says("value=\"500\"").says("value=\"0.0006\"");
        // Who proposes one like it has them in the form again.
        let again = pair.ask(&ana, &format!("/studies/new?like={read}")).await.is(200);
        again.says("value=\"400000\"").says("value=\"2000\"").says("value=\"0.0006\"");
        // The other side hears of none of it.
        let hash = study::StudyHash::parse(read).expect("a hash");
        let row = pair.house.store.proposal_of(&hash).expect("reads").expect("there");
        let record = pair.house.store.standing(&row.id).expect("reads").expect("there");
        let sent: Vec<u8> = record.chain(record.proposer()).iter().flat_map(|one| one.bytes()).collect();
        let has = |text: &[u8]| sent.windows(text.len()).any(|part| part == text);
        assert!(has(b"Did it help?") && !has(b"400000") && !has(b"0.0006"), "rows went out");
    });
}

#[test]
fn what_own_rules_do_not_allow_is_previewed_and_not_proposed() {
    asking(async {
        let pair = Pair::new("");
        let ana = pair.person("ana", &["analyst"]);
        let over = form().into_iter().filter(|(name, _)| *name != "rho");
        let over: Vec<_> = over.chain([("rho", "0.5"), ("do", "preview")]).collect();
        let got = pair.act(&ana, "/studies/new", "/studies/new", &over).await.is(200);
        let got = got.says("The rules of this organisation do not allow it").says("max_rho");
        let got = got.says("It cannot be proposed").never_says("value=\"propose\"");
        let file = crate::lift_form::study_text;
        let field = |name: &str| over.iter().find(|(one, _)| *one == name).map_or("", |(_, text)| *text);
        let (us, them) = (pair.own.fingerprint().to_string(), pair.peer.fingerprint().to_string());
        let party = |name, key| crate::lift_form::FormParty { name, key };
        let text = file(&field, party("registry", &us), party("hospitals", &them)).expect("a study");
        let told = crate::told::tell(&text, &us, &crate::reckoned::ReckonedFor::default()).expect("told");
        assert!(got.body.contains(&told.file.hash().full()), "the preview is of this study");
        // Who sends the form all the same is told which rule it is.
        let read = told.file.hash().full();
        let over = over.into_iter().filter(|(name, _)| *name != "do");
        let sent: Vec<_> = over.chain([("do", "propose"), ("read", read.as_str())]).collect();
        let got = pair.act(&ana, "/studies/new", "/studies/new", &sent).await.is(422);
        got.says("nobody here could consent to it").says("max_rho");
        pair.ask(&ana, "/studies").await.is(200).says("There is no such study.");
        // Columns of data are for their stewards to allow until they decide.
        let other = [form(), vec![("breakdown", "clinic"), ("breakdown-values", "a, b"), ("do", "preview")]];
        pair.tightened(
            "columns = [\"child_id\", \"arm\", \"injected\"]",
            "columns = [\"child_id\", \"arm\"]",
        );
        let got = pair.act(&ana, "/studies/new", "/studies/new", &other.concat()).await.is(200);
        let got = got.says("nobody here could consent to it with trial").says("value=\"propose\"");
        got.says("It reads columns that no study may read: clinic, injected.");
    });
}

#[test]
fn the_way_to_a_decision_is_there_for_who_decides_now() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        let (stella, anna) = (pair.person("stella", &["steward"]), pair.person("anna", &["analyst"]));
        // Who answers for other data alone decides nothing here.
        let sam = pair.person("sam", &["steward=other"]);
        let (anchor, turn) = ("href=\"#decision\"", "It is your organisation");
        pair.ask(&stella, &path).await.is(200).says(anchor).says(turn);
        pair.ask(&anna, &path).await.is(200).never_says(anchor).says(turn);
        pair.ask(&sam, &path).await.is(200).never_says(anchor);
        pair.consented(&id, &pair.own_consent());
        pair.ask(&stella, &path).await.is(200).never_says(anchor).never_says(turn);
        pair.ask(&stella, "/studies").await.is(200).never_says("yours");
        // Something holds it: people have to do something, and not decide.
        let act = pair.act_of("run stopped");
        pair.house.store.hold(&act, &id, Some("stopped"), 0).expect("held");
        pair.ask(&stella, &path).await.is(200).never_says(anchor).says(turn);
    });
}

#[test]
fn what_a_consent_holds_is_beside_what_is_spent_and_it_is_no_check() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        let stella = pair.person("stella", &["steward"]);
        pair.ask(&stella, "/data").await.is(200).says("never").never_says("read for a consent");
        let page = pair.ask(&stella, &path).await.is(200).says("never checked");
        let made_of = "The 0.11 is 0.1 of the public result, which everybody gets, and 0.01 of the sizes";
        page.says(made_of);
        pair.ask(&stella, "/budget").await.is(200).says("3</b> more studies").never_says("is held for");
        let bound = |viewer, rho: &str| ChargeBound { viewer, rho: rho.to_owned(), delta: "0".to_owned() };
        let charges = vec![bound(None, "1/10"), bound(Some(pair.peer.fingerprint()), "11/100")];
        let terms = ConsentTerms { charges, ..pair.terms(&id) };
        pair.consented_to(&id, &pair.own_consent(), terms);
        let page = pair.ask(&stella, &path).await.is(200);
        page.says("trial: 0 spent, 0 of it for this study; up to 0.11 more is held for it, of 1 for ever.");
        let page = pair.ask(&stella, "/budget").await.is(200);
        let page = page.says("Spent 0 of 1; 1 are left. Of that, up to 0.11 is held for a study");
        let page = page.says("2</b> more studies at the most that the rules allow");
        page.says(
            "would be right at most 50 times of 100 after what is spent, and 77 times when all of it is",
        );
        // Whoever consents has the files read, which is no check of them.
        let page = pair.ask(&stella, "/data/trial").await.is(200).says("None yet.");
        page.says("For a consent all rows were read").says("nothing stood against it. That is no check");
        pair.ask(&stella, "/data").await.is(200).says("never; read for a consent");
    });
}

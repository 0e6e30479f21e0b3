//! Pages of studies as requests, without a browser: a registry whose people click, and hospitals whose store
//! says what an organisation says.

mod copies;
mod forms;
mod given;
mod held;
mod hostile;
mod news;
mod own_key;
mod pictures;
mod reckoned;
mod said;
pub(crate) mod serving;
mod threats;
mod weighed;

use super::House;
use super::door::ClientAddress;
use super::listen::router;
use crate::roles::Grant;
use crate::secrets::SecretToken;
use crate::store::{
    COMMAND_LINE, ConsentRight, OwnConsent, PasswordRight, PeerSender, RecordedAct, RunLeft, Speaker, Store,
};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, header};
use net::Identity;
use statements::{
    ClosingCode, ClosingReason, ConsentTerms, ProposalId, ProposedStudy, RunEnd, RunOffer, RunOutcome, Said,
    commit_to_data, digest_of_words,
};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tower::ServiceExt;

const PASSWORD: &str = "wandering copper teapot";
const REPORT: &[u8] = include_bytes!("fixtures/report.json");

/// One organisation with pages, another one with a store.
pub(crate) struct Pair {
    folder: tempfile::TempDir,
    pub(crate) house: Arc<House>,
    router: Router,
    own: Identity,
    pub(crate) peer: Identity,
    pub(crate) store: Store,
}

/// What came back.
struct Got {
    status: u16,
    place: String,
    body: String,
}

impl Pair {
    pub(crate) fn new(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let (own, peer) = (Identity::generate().expect("a key"), Identity::generate().expect("a key"));
        own.save(&path("registry.key")).expect("saved");
        std::fs::create_dir(path("data")).expect("made");
        std::fs::write(path("data/trial.csv"), "child_id,arm,injected\nc1,vaccine,1954-05-01\n")
            .expect("written");
        let text = format!(
            "format = \"tacit-service/1\"\nname = \"registry\"\nidentity = \"registry.key\"\nstore = \
             \"service.db\"\nledger = \"registry.ledger\"\ndata_root = \"data\"\n[web]\nlisten = \
             \"127.0.0.1:8443\"\n[peers.hospitals]\nkey = \"{}\"\nkinds = [\"lift\"]\n[data.trial]\npath = \
             \"trial.csv\"\nlineage = \"trial\"\ncolumns = [\"child_id\", \"arm\", \"injected\"]\npeers = \
             [\"hospitals\"]\nstewards = [\"stella\", \"otto\"]\nleast_rows = 1\nbudget = 1.0\ndelta = \
             \"1e-6\"\n[policy]\nkinds = [\"lift\"]\nmax_rho = 0.3\nmax_delta = \"1e-6\"\n{more}\n",
            peer.fingerprint()
        );
        std::fs::write(path("service.toml"), &text).expect("written");
        let house = Arc::new(House::open(&path("service.toml")).expect("opens"));
        let act = RecordedAct { by: COMMAND_LINE, what: "service.toml accepted", to: "", at: super::now() };
        let file = crate::settings::RulesFile::read(&path("service.toml")).expect("reads");
        house.store.accept(&act, &file.text, &file.hash()).expect("accepted");
        let store = Store::open(&path("hospitals.db")).expect("opens");
        let router = router(house.clone());
        Self { folder, house, router, own, peer, store }
    }

    /// A cookie of a person with roles.
    fn person(&self, name: &str, roles: &[&str]) -> String {
        let store = &self.house.store;
        let act = RecordedAct { by: COMMAND_LINE, what: "account added", to: name, at: super::now() };
        let grants: Vec<Grant> = roles.iter().filter_map(|role| Grant::parse(role)).collect();
        let link = store.add_account(&act, &grants).expect("added").expect("new");
        let hash = self.house.desk.hash(&format!("{name} {PASSWORD}")).expect("free").expect("hashed");
        // So long ago that the password is asked for again.
        let act = RecordedAct { by: name, what: "signed in", to: name, at: super::now() - 400 };
        assert!(store.set_password(&act, &hash, PasswordRight::Link(&link)).expect("set"));
        store.begin_session(&act, &hash, None, false).expect("begun").expect("signed in").text()
    }

    async fn ask(&self, cookie: &str, path: &str) -> Got {
        self.send(cookie, "GET", path, String::new()).await
    }

    /// Sends the form to `to` that stands on the page at `from`.
    async fn act(&self, cookie: &str, from: &str, to: &str, fields: &[(&str, &str)]) -> Got {
        let page = self.ask(cookie, from).await.is(200);
        let form = format!("action=\"{to}\"");
        let rest = page.body.split_once(&form).unwrap_or_else(|| panic!("no form to {to}: {}", page.body)).1;
        let rest = rest.split_once("</form>").expect("ends").0;
        let field = |name: &str| {
            let value = rest.split_once(&format!("name=\"{name}\" value=\""))?.1;
            Some(value.split_once('"').expect("ends").0)
        };
        let proposal = field("proposal").map(|proposal| ("proposal", proposal));
        let form = [fields, &[("csrf", field("csrf").expect("a word"))], proposal.as_slice()].concat();
        let form = serde_urlencoded(&form);
        self.send(cookie, "POST", to, form).await
    }

    async fn send(&self, cookie: &str, method: &str, path: &str, body: String) -> Got {
        let response = self.raw(cookie, method, path, body).await;
        let (head, body) = response.into_parts();
        let place = head.headers.get(header::LOCATION).map(|to| to.to_str().expect("text").to_owned());
        let body = axum::body::to_bytes(body, usize::MAX).await.expect("whole");
        let body = String::from_utf8_lossy(&body).into_owned();
        let html =
            head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/html; charset=utf-8");
        if html && !head.headers.contains_key(header::CONTENT_DISPOSITION) {
            is_a_page(&body, path);
        }
        Got { status: head.status.as_u16(), place: place.unwrap_or_default(), body }
    }

    async fn raw(&self, cookie: &str, method: &str, path: &str, body: String) -> Response<Body> {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", "127.0.0.1:8443").header("sec-fetch-site", "same-origin");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let request = request.header("cookie", format!("{}={cookie}", super::answer::COOKIE));
        let from = ClientAddress(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let request = request.extension(from).body(Body::from(body)).expect("a request");
        self.router.clone().oneshot(request).await.expect("an answer")
    }

    /// Each takes what the other has said.
    pub(crate) fn meet(&self) {
        let sender = |name, key| PeerSender { name, key, most_open: 9, most_per_day: 9 };
        let (us, them) = (self.own.fingerprint(), self.peer.fingerprint());
        let sides =
            [(&*self.house.store, us, &self.store, them), (&self.store, them, &*self.house.store, us)];
        for (from, key, to, own) in sides {
            for row in from.unsent(own, &[], 100).expect("reads") {
                let bytes = from.statement(&row.digest).expect("reads").expect("there");
                to.absorb(own, sender("peer", key), row_time(), &bytes).expect("taken");
                assert!(from.had(own, &row.digest, row_time()).expect("written"));
            }
        }
    }

    pub(crate) fn they(&self) -> Speaker<'_> {
        Speaker { by: "hans", identity: &self.peer, at_ms: row_time() }
    }

    pub(crate) fn we(&self) -> Speaker<'_> {
        Speaker { by: "stella", identity: &self.own, at_ms: row_time() }
    }

    /// A study that the hospitals propose.
    pub(crate) fn proposed(&self, title: &str, note: &str) -> (ProposalId, String) {
        let text = include_str!("../../../../examples/lift.toml");
        let keys = ["tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11", "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50"];
        let text = text.replace(keys[0], &self.own.fingerprint().to_string());
        let text = text.replace(keys[1], &self.peer.fingerprint().to_string());
        let text = text.replace("1954 poliomyelitis field trial, placebo-control areas", title);
        self.proposed_text(&text, note)
    }

    fn proposed_text(&self, text: &str, note: &str) -> (ProposalId, String) {
        let told = crate::told::tell(text, "", &crate::reckoned::ReckonedFor::default()).expect("a study");
        let proposed = ProposedStudy {
            text: told.text.clone(),
            program: base::unhex(&told.program).expect("a hash"),
            note: note.to_owned(),
            expires_ms: row_time() + 86_400_000,
            windows: Vec::new(),
            nonce: [7; 16],
        };
        let id = self.store.propose(self.they(), proposed).expect("proposed").id();
        self.meet();
        (id, format!("/studies/{}", told.file.hash().full()))
    }

    /// Where a file of the house lies.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// The terms of a consent to it.
    pub(crate) fn terms(&self, id: &ProposalId) -> ConsentTerms {
        let record = self.house.store.standing(id).expect("reads").expect("there");
        ConsentTerms {
            program: record.proposed().program,
            charges: Vec::new(),
            words: digest_of_words("read"),
            data: commit_to_data(&[1; 32], &[2; 32], Some("trial")),
            expires_ms: row_time() + 86_400_000,
            windows: Vec::new(),
            runs: 2,
            persons: 1,
            seal: None,
        }
    }

    pub(crate) fn own_consent(&self) -> OwnConsent {
        let (by, data, words) = (COMMAND_LINE.to_owned(), "trial".to_owned(), "read".to_owned());
        let (salt, tag, version) = ([1; 32], [2; 32], [3; 32]);
        let lineage = Some("trial".to_owned());
        OwnConsent { by, data, salt, tag, version, words, after: 0, taken: None, lineage }
    }

    pub(crate) fn act_of(&self, what: &'static str) -> RecordedAct<'static> {
        RecordedAct { by: COMMAND_LINE, what, to: "", at: super::now() }
    }

    /// Other rules hold.
    pub(crate) fn tightened(&self, from: &str, to: &str) {
        let path = self.folder.path().join("service.toml");
        let text = std::fs::read_to_string(&path).expect("reads");
        assert!(text.contains(from));
        std::fs::write(&path, text.replace(from, to)).expect("written");
        let file = crate::settings::RulesFile::read(&path).expect("reads");
        let act = self.act_of("service.toml accepted");
        self.house.store.accept(&act, &file.text, &file.hash()).expect("accepted");
        self.house.rules.look(&self.house.store, super::now());
    }

    /// Both consent, with the data as they lie there, and have said that they are ready.
    pub(crate) fn offered(&self, id: &ProposalId) {
        let version = crate::data_version(&self.house.rules().settings, "trial").expect("there");
        self.consented(id, &OwnConsent { version, ..self.own_consent() });
        self.ready(id);
    }

    pub(crate) fn ready(&self, id: &ProposalId) {
        let latest_ms = row_time() + 600_000;
        let offer = RunOffer { run: 1, goes_on: false, nonce: [3; 16], earliest_ms: 1, latest_ms, port: 0 };
        self.house.store.offer_run(self.we(), id, offer).expect("ready");
        self.store.offer_run(self.they(), id, offer).expect("ready");
        self.meet();
    }

    fn consented(&self, id: &ProposalId, own: &OwnConsent) {
        self.consented_to(id, own, self.terms(id));
    }

    pub(crate) fn consented_to(&self, id: &ProposalId, own: &OwnConsent, terms: ConsentTerms) {
        let rules = self.house.store.accepted().expect("reads").map(|accepted| accepted.hash);
        let right = ConsentRight { rules, stewards: &[], separate: true, approval: None, keys: &[] };
        self.house.store.consent(self.we(), id, terms.clone(), own, &right).expect("consents");
        let right = ConsentRight { rules: None, ..right };
        self.store.consent(self.they(), id, terms, own, &right).expect("consents");
        self.meet();
    }

    /// Both consent, run, and have their answer.
    fn answered(&self, id: &ProposalId) {
        let line = r#"{"event":"stage","name":"match","rows":200}"#;
        self.answered_with(id, REPORT, &[line]);
    }

    /// The same with another report here, and other lines of the process.
    fn answered_with(&self, id: &ProposalId, report: &[u8], lines: &[&str]) {
        self.consented(id, &self.own_consent());
        let offer =
            RunOffer { run: 1, goes_on: false, nonce: [3; 16], earliest_ms: 1, latest_ms: 2, port: 0 };
        self.house.store.offer_run(self.we(), id, offer).expect("ready");
        self.store.offer_run(self.they(), id, offer).expect("ready");
        self.meet();
        for (store, speaker) in [(&*self.house.store, self.we()), (&self.store, self.they())] {
            store.start_run(speaker, id, 1, vec![[3; 16]; 2]).expect("starts");
        }
        self.meet();
        for line in lines {
            self.house.store.keep_line(id, 1, row_time(), line).expect("kept");
        }
        let (kind, code) = (String::new(), String::new());
        let end = RunEnd { run: 1, outcome: RunOutcome::Answered, kind, code, debits: Vec::new() };
        let files = [("report.json".to_owned(), report.to_vec())];
        let left = RunLeft { files: &files, ..RunLeft::default() };
        let record = self.house.store.standing(id).expect("reads").expect("there");
        assert!(self.house.store.end_run(row_time(), &record, &end, &left).expect("ended"));
        self.house.store.say(self.we(), id, Said::Ended(end.clone())).expect("said");
        self.store.say(self.they(), id, Said::Ended(end)).expect("said");
        self.meet();
    }
}

fn row_time() -> u64 {
    super::now() * 1_000
}

fn serde_urlencoded(fields: &[(&str, &str)]) -> String {
    let byte = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    let word = |text: &str| text.bytes().map(byte).collect::<String>();
    fields.iter().map(|(name, value)| format!("{}={}", word(name), word(value))).collect::<Vec<_>>().join("&")
}

/// What every page is: well-formed, one heading, labelled fields, nothing that runs or is styled in it.
fn is_a_page(body: &str, path: &str) {
    let page = body.strip_prefix("<!DOCTYPE html>\n").expect("HTML");
    let tree = roxmltree::Document::parse(page).unwrap_or_else(|e| panic!("{path}: {e}\n{page}"));
    let all = || tree.descendants().filter(roxmltree::Node::is_element);
    let named = |name: &'static str| all().filter(move |node| node.tag_name().name() == name);
    assert_eq!(named("h1").count(), 1, "{path}");
    assert!(named("style").count() == 0 && named("script").all(|script| script.attribute("src").is_some()));
    let mut ids: Vec<&str> = all().filter_map(|node| node.attribute("id")).collect();
    let labels: Vec<&str> = named("label").filter_map(|label| label.attribute("for")).collect();
    for field in named("input").chain(named("select")).chain(named("textarea")) {
        let hidden = field.attribute("type") == Some("hidden") || field.attribute("hidden").is_some();
        let id = field.attribute("id").unwrap_or_default();
        assert!(hidden || labels.contains(&id), "{path}: a field without a label: {id}");
    }
    assert!(
        named("table")
            .all(|table| table.first_element_child().is_some_and(|c| c.tag_name().name() == "caption"))
    );
    for node in all() {
        let bad = node.attributes().find(|one| one.name().starts_with("on") || one.name() == "style");
        assert!(bad.is_none(), "{path}: {bad:?}");
    }
    let shown = tree.descendants().filter(|node| {
        let is_field = node.parent().is_some_and(|parent| parent.has_tag_name("textarea"));
        node.is_text() && !is_field && node.text().is_some_and(|text| text.contains('`'))
    });
    assert_eq!(shown.filter_map(|node| node.text()).collect::<Vec<_>>(), [""; 0], "{path}: raw backticks");
    let many = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), many, "{path}: an id twice");
}

impl Got {
    #[track_caller]
    fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.place, self.body);
        self
    }

    #[track_caller]
    fn says(self, text: &str) -> Self {
        assert!(self.body.contains(text), "{text:?} is not in:\n{}", self.body);
        self
    }

    #[track_caller]
    fn never_says(self, text: &str) -> Self {
        assert!(!self.body.contains(text), "{text:?} is in:\n{}", self.body);
        self
    }
}

/// Runs a test that asks, on threads as the service has them.
fn asking<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

fn form() -> Vec<(&'static str, &'static str)> {
    let text = "as=lift;title=Did it help?;name=autumn;peer=hospitals;role=publisher;\
                identifier=child_id;alike=plain;arm=arm;test=vaccine;control=placebo;\
                opportunity=injected;from=1954-01-01;until=1954-12-31;clock=day;event=onset;clamp=1;\
                better=lower;events=4;rho=0.1;least=1000;days=30;note=Please read";
    text.split(';').filter_map(|field| field.split_once('=')).collect()
}

#[test]
fn a_study_is_written_kept_previewed_and_proposed_by_clicks() {
    asking(async {
        let pair = Pair::new("");
        let ana = pair.person("ana", &["analyst"]);
        pair.ask(&ana, "/studies").await.is(200).says("Propose a study");
        let post = |what| [form(), vec![("do", what)]].concat();
        let broken: Vec<_> = post("preview").into_iter().filter(|(name, _)| *name != "arm").collect();
        let got = pair.act(&ana, "/studies/new", "/studies/new", &broken).await.is(422);
        got.says("Column of the arm: this has to be filled in.").says("value=\"child_id\"");
        pair.act(&ana, "/studies/new", "/studies/new", &post("save")).await.is(303);
        let draft = pair.ask(&ana, "/studies/new").await.is(200).says("Did it help?");
        let id = draft.body.split_once("/studies/new?draft=").expect("a draft").1;
        let id = id.split_once('"').expect("ends").0.to_owned();
        pair.ask(&ana, &format!("/studies/new?draft={id}")).await.is(200).says("value=\"injected\"");
        // Who has not read what it would do does not propose it by one click.
        let got = pair.act(&ana, "/studies/new", "/studies/new", &post("propose")).await.is(200);
        let got = got.says("What hospitals will learn").says("What you will learn").says("Not covered");
        let read =
            got.body.split_once("name=\"read\" value=\"").expect("a hash").1.split_once('"').expect("ends").0;
        let sent = [post("propose"), vec![("read", read), ("draft", &id)]].concat();
        let gone = pair.act(&ana, "/studies/new", "/studies/new", &sent).await.is(303).place;
        assert_eq!(gone, format!("/studies/{read}"));
        pair.ask(&ana, "/studies/new").await.is(200).never_says("?draft=");
        let study = pair.ask(&ana, &gone).await.is(200).says("Please read").says("not yet by hospitals");
        // Who proposed it does not decide on it.
        study.never_says("Consent and sign").says("Take it back");
        pair.meet();
        pair.ask(&ana, &gone).await.is(200).says("by hospitals ");
        let note = [("note", "One thing more")];
        pair.act(&ana, &gone, &format!("{gone}/note"), &note).await.is(303);
        pair.ask(&ana, &gone).await.is(200).says("registry writes: One thing more");
        let why =
            [("withdraw-code", "purpose"), ("withdraw-text", "Not needed"), ("withdraw-password", "wrong")];
        pair.act(&ana, &gone, &format!("{gone}/withdraw"), &why).await.is(403);
        let right = format!("ana {PASSWORD}");
        let why = [why[0], why[1], ("withdraw-password", right.as_str())];
        pair.act(&ana, &gone, &format!("{gone}/withdraw"), &why).await.is(303);
    });
}

#[test]
fn who_sees_and_decides_is_a_matter_of_roles() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "Shall we?");
        let olga = pair.person("olga", &["operator"]);
        let stella = pair.person("stella", &["steward=trial"]);
        let sam = pair.person("sam", &["steward=other"]);
        let vic = pair.person("vic", &["viewer"]);
        pair.ask(&stella, "/").await.is(200).says("Decide: ").says("A question");
        pair.ask(&vic, &path).await.is(404);
        pair.ask(&vic, "/studies").await.is(200).never_says("A question");
        // The file names columns, which operators do not see.
        pair.ask(&olga, &path)
            .await
            .is(200)
            .never_says("Consent and sign")
            .never_says("As it would be agreed");
        let act = RecordedAct { by: "stella", what: "study held against data", to: "", at: super::now() };
        pair.house.store.keep_weighed(&act, &id, "trial", "831 rows would take part").expect("kept");
        pair.ask(&stella, &path).await.is(200).says("831 rows").says("As it would be agreed");
        pair.ask(&sam, &path).await.is(200).never_says("Consent and sign").never_says("831 rows");
        pair.ask(&olga, "/studies/new").await.is(403);
        let page = pair.ask(&stella, &path).await.is(200).says("Consent and sign").says("Refuse");
        let page = page.says("trial: 0 spent, 0.11 for this study, of 1 for ever. 8 more like it");
        let page = page.says("5: at most rho 0.14 for hospitals");
        let word = |to: &str| {
            let rest = page.body.split_once(&format!("action=\"{path}/{to}\"")).expect("a form").1;
            let rest = rest.split_once("name=\"csrf\" value=\"").expect("a word").1;
            rest.split_once('"').expect("ends").0.to_owned()
        };
        let password = format!("stella {PASSWORD}");
        // A word to refuse does not consent, and the right word counts for what was read.
        let mut fields =
            vec![("csrf", word("refuse")), ("data", "trial".into()), ("password", password.clone())];
        fields.extend([("runs", "2".into()), ("days", "30".into()), ("words", "00".into())]);
        fields.push(("proposal", base::hex(&id.0)));
        let sent = |fields: &[(&'static str, String)]| {
            let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            serde_urlencoded(&fields)
        };
        pair.send(&stella, "POST", &format!("{path}/consent"), sent(&fields)).await.is(403).says("too old");
        fields[0].1 = word("consent");
        let got = pair.send(&stella, "POST", &format!("{path}/consent"), sent(&fields)).await;
        got.is(200).says("has changed since you read it");
        // The session went on under a new cookie, so the old one is dead.
        pair.ask(&stella, &path).await.is(303);
    });
}

#[test]
fn a_form_counts_for_the_proposal_that_was_read() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "Shall we?");
        let stella = pair.person("stella", &["steward"]);
        let page = pair.ask(&stella, &path).await.is(200).says("Shall we?");
        let form = page.body.split_once(&format!("action=\"{path}/note\"")).expect("a form").1;
        let word = form.split_once("name=\"csrf\" value=\"").expect("a word").1;
        let word = word.split_once('"').expect("ends").0;
        // The peer takes it back and proposes the same text again, with other words beside it.
        let proposed = pair.store.standing(&id).expect("reads").expect("there").proposed().clone();
        let reason = ClosingReason { code: ClosingCode::Other, text: "Again.".to_owned() };
        pair.store.say(pair.they(), &id, Said::Withdraw(reason)).expect("said");
        let other = ProposedStudy { nonce: [8; 16], note: "Something else".to_owned(), ..proposed };
        let other = pair.store.propose(pair.they(), other).expect("proposed").id();
        pair.meet();
        pair.ask(&stella, &path).await.is(200).says("Something else");
        let (old, new) = (base::hex(&id.0), base::hex(&other.0));
        for proposal in [old.as_str(), &new, ""] {
            let fields = serde_urlencoded(&[("csrf", word), ("proposal", proposal), ("note", "Yes")]);
            pair.send(&stella, "POST", &format!("{path}/note"), fields).await.is(403).says("too old");
        }
        pair.act(&stella, &path, &format!("{path}/note"), &[("note", "Yes")]).await.is(303);
    });
}

#[test]
fn a_refusal_reaches_the_proposer_with_its_reason() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        let stella = pair.person("stella", &["steward"]);
        let password = format!("stella {PASSWORD}");
        let why =
            [("refuse-code", "purpose"), ("refuse-text", "Not <b>this</b>"), ("refuse-password", &password)];
        pair.act(&stella, &path, &format!("{path}/refuse"), &why).await.is(303);
        pair.meet();
        let heard = pair.store.standing(&id).expect("reads").expect("there");
        let words = heard.state_words(statements::Naming(&["a".into(), "b".into()]));
        assert!(words.contains("Not <b>this</b>"), "{words}");
    });
}

#[test]
fn an_offered_run_that_somebody_stops_does_not_begin() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        let stella = pair.person("stella", &["steward"]);
        pair.offered(&id);
        let password = format!("stella {PASSWORD}");
        let run = format!("{path}/run");
        pair.act(&stella, &run, &format!("{path}/stop"), &[("stop-password", &password)]).await.is(303);
        crate::schedule::look(&pair.house, false).expect("looks");
        let runs = pair.house.store.runs(&id).expect("reads");
        assert_eq!(runs[0].outcome.as_deref(), Some("stopped"));
        assert_eq!((runs[0].kind.as_deref(), runs[0].message.as_deref()), (None, Some("stopped by stella")));
        let row = pair.house.store.proposal(&id).expect("reads").expect("there");
        assert_eq!(row.held.as_deref(), Some("stopped"));
        // Nor does another one, before somebody says so.
        pair.meet();
        crate::schedule::look(&pair.house, false).expect("looks");
        assert_eq!(pair.house.store.runs(&id).expect("reads").len(), 1);
    });
}

#[test]
fn rules_that_were_tightened_hold_for_what_was_agreed_before() {
    asking(async {
        let pair = Pair::new("");
        let (id, _) = pair.proposed("A question", "");
        pair.offered(&id);
        let look = |expected: Option<&str>| {
            crate::schedule::look(&pair.house, false).expect("looks");
            let runs = pair.house.store.runs(&id).expect("reads");
            assert_eq!(runs.last().and_then(|run| run.kind.as_deref()), expected, "{runs:?}");
        };
        let waits = || {
            let row = pair.house.store.proposal(&id).expect("reads").expect("there");
            crate::schedule::why_waiting(&pair.house, &row, true).expect("looks").expect("it waits")
        };
        // All is as it was: it waits for the link alone.
        look(None);
        pair.tightened("peers = [\"hospitals\"]", "peers = []");
        look(Some("policy"));
        pair.house.store.hold(&pair.act_of("run allowed"), &id, None, 0).expect("held");
        let why = waits();
        assert!(why.contains("the rules here do not allow it any more: studies with hospitals"), "{why}");
        pair.tightened("peers = []", "peers = [\"hospitals\"]");
        assert_eq!(waits(), "there is no connection to hospitals");
        pair.tightened("least_rows = 1", "least_rows = 1\ntwo_person = true");
        assert!(waits().contains("two_person"));
    });
}

#[test]
fn the_first_of_two_stewards_is_shown_with_what_they_agree_to() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        pair.tightened("least_rows = 1", "least_rows = 1\ntwo_person = true");
        let stella = pair.person("stella", &["steward"]);
        let page = pair.ask(&stella, &path).await.is(200);
        let words = page.body.split_once("name=\"words\" value=\"").expect("words").1;
        let words = words.split_once('"').expect("ends").0;
        let password = format!("stella {PASSWORD}");
        let fields =
            [("words", words), ("data", "trial"), ("runs", "3"), ("days", "20"), ("password", &password)];
        pair.act(&stella, &path, &format!("{path}/consent"), &fields).await.is(303);
        let otto = pair.person("otto", &["steward"]);
        pair.ask(&otto, &path).await.is(200).says("stella agrees, with trial, 3 runs and 20 days.");
        let row = pair.house.store.approvals(&id, super::now()).expect("reads").pop().expect("one");
        assert_eq!((row.terms.runs, row.terms.days), (3, 20));
        // Who agreed takes it back, and nobody else does.
        let disagree = format!("{path}/disagree");
        pair.ask(&otto, &path).await.never_says(&disagree);
        let stella = pair.again("stella");
        pair.act(&stella, &path, &disagree, &[]).await.is(303);
        assert_eq!(pair.house.store.approvals(&id, super::now()).expect("reads"), []);
        pair.ask(&stella, &path).await.is(200).never_says(&disagree);
    });
}

#[test]
fn data_that_change_after_the_offer_end_it() {
    asking(async {
        let pair = Pair::new("");
        let (id, path) = pair.proposed("A question", "");
        pair.offered(&id);
        let data = pair.folder.path().join("data/trial.csv");
        std::fs::write(data, "child_id,arm,injected\nc2,vaccine,1954-05-02\nc3,placebo,\n").expect("written");
        crate::schedule::look(&pair.house, false).expect("looks");
        let runs = pair.house.store.runs(&id).expect("reads");
        assert_eq!(runs[0].kind.as_deref(), Some("data"));
        let held = || pair.house.store.proposal(&id).expect("reads").expect("there").held;
        assert_eq!(held().as_deref(), Some("data"));
        // Who runs the machine does not answer for them, and who decides takes what was on the page.
        let (run, take) = (format!("{path}/run"), format!("{path}/take"));
        let olga = pair.person("olga", &["operator"]);
        let page = pair.ask(&olga, &run).await.is(200).says("trial changed since consent");
        page.never_says("Take these data").never_says("Begin now");
        let version = crate::data_version(&pair.house.rules().settings, "trial").expect("there");
        for (name, seen, status) in [("otto", [0; 32], 200), ("stella", version, 303)] {
            let who = pair.person(name, &["steward=trial"]);
            let (password, seen) = (format!("{name} {PASSWORD}"), base::hex(&seen));
            let fields = [("password", password.as_str()), ("version", &seen)];
            pair.act(&who, &run, &take, &fields).await.is(status);
        }
        // Nothing is taken before a process has read the files; here there is none, and that is said.
        while pair.house.weighing.has(&id) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(held().as_deref(), Some("data"));
        let stella = pair.again("stella");
        pair.ask(&stella, &run).await.is(200).says("Nothing was done with trial");
        pair.takes_what_was_weighed(&id, version);
        let own = pair.house.store.own_consent(&id).expect("reads").expect("there");
        assert_eq!((own.version, held()), (version, None));
    });
}

#[test]
fn what_a_peer_writes_is_text() {
    asking(async {
        let pair = Pair::new("");
        let title = "<img src=x onerror=alert(1)> & </title>";
        let note = "<script>alert(1)</script>\u{202e}\nsecond line";
        let (id, path) = pair.proposed(title, note);
        pair.store.say(pair.they(), &id, Said::Note("<i>\u{2066}x".to_owned())).expect("said");
        pair.meet();
        let stella = pair.person("stella", &["steward", "analyst"]);
        for page in ["/", "/studies", &path, &format!("{path}/run")] {
            let got = pair.ask(&stella, page).await.is(200).says("&lt;img src=x onerror=alert(1)&gt; &amp;");
            got.never_says("<img").never_says("<script>").never_says("\u{202e}").never_says("\u{2066}");
        }
        let code = ClosingReason { code: ClosingCode::Other, text: "<u>".to_owned() };
        pair.store.say(pair.they(), &id, Said::Withdraw(code)).expect("said");
        pair.meet();
        pair.ask(&stella, &path).await.is(200).says("&lt;u&gt;").never_says("Consent and sign");
    });
}

#[test]
fn pages_hear_of_changes_while_their_session_holds() {
    asking(async {
        let pair = Pair::new("");
        let stella = pair.person("stella", &["steward"]);
        assert_eq!(pair.raw("00", "GET", "/events", String::new()).await.status(), 401);
        let events = pair.raw(&stella, "GET", "/events", String::new()).await;
        assert_eq!(events.headers()[header::CONTENT_TYPE], "text/event-stream");
        pair.proposed("A question", "");
        let mut body = events.into_body().into_data_stream();
        let first = futures_util::StreamExt::next(&mut body).await.expect("an event").expect("bytes");
        assert!(String::from_utf8_lossy(&first).contains("event: changed"), "{first:?}");
        // A browser has six connections to one service: some are left for pages.
        let mut more = Vec::new();
        for _ in 0..3 {
            more.push(pair.raw(&stella, "GET", "/events", String::new()).await);
        }
        assert_eq!(pair.raw(&stella, "GET", "/events", String::new()).await.status(), 429);
        drop(more);
        assert_eq!(pair.raw(&stella, "GET", "/events", String::new()).await.status(), 200);
        let token = SecretToken::parse(&stella).expect("a token");
        let session = pair.house.store.peek(&token, super::now()).expect("reads").expect("holds");
        let act = RecordedAct { by: "stella", what: "signed out", to: "stella", at: super::now() };
        pair.house.store.end_session(&act, session.id).expect("ended");
        let rest = futures_util::StreamExt::collect::<Vec<_>>(body);
        tokio::time::timeout(std::time::Duration::from_secs(60), rest)
            .await
            .expect("it ends with the session");
    });
}

#[test]
fn nobody_is_listened_to_before_it_is_clear_who_asks() {
    asking(async {
        let pair = Pair::new("");
        let ana = pair.person("ana", &["analyst"]);
        let ask = |cookie: &str, body: Body| {
            let request = Request::builder().method("POST").uri("/studies/new");
            let request = request.header("host", "127.0.0.1:8443").header("sec-fetch-site", "same-origin");
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            let request = request.header("cookie", format!("{}={cookie}", super::answer::COOKIE));
            let from = ClientAddress(IpAddr::V4(Ipv4Addr::LOCALHOST));
            pair.router.clone().oneshot(request.extension(from).body(body).expect("a request"))
        };
        // What never comes is not waited for.
        let never = futures_util::stream::pending::<Result<Vec<u8>, std::convert::Infallible>>();
        let answer = ask("00", Body::from_stream(never)).await.expect("an answer");
        let to = answer.headers()[header::LOCATION].to_str().expect("text");
        assert_eq!((answer.status().as_u16(), to), (303, "/sign-in"));
        let fields = |many: usize| Body::from(vec!["a"; many].join("&"));
        assert_eq!(ask(&ana, fields(201)).await.expect("an answer").status(), 413);
        assert_eq!(ask(&ana, fields(200)).await.expect("an answer").status(), 403);
        assert_eq!(pair.ask(&ana, &format!("/help?{}", vec!["a"; 300].join("&"))).await.status, 413);
    });
}

#[test]
fn lists_go_on_by_fifty_and_are_filtered() {
    asking(async {
        let pair = Pair::new("");
        let stella = pair.person("stella", &["steward"]);
        for number in 0..60 {
            let text = include_str!("../../../../examples/lift.toml");
            let keys = ["tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11", "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50"];
            let text = text.replace(keys[0], &pair.own.fingerprint().to_string());
            let text = text.replace(keys[1], &pair.peer.fingerprint().to_string());
            let text = text.replace("1954 poliomyelitis", &format!("Number {number:02}, 1954 poliomyelitis"));
            let told =
                crate::told::tell(&text, "", &crate::reckoned::ReckonedFor::default()).expect("a study");
            let proposed = ProposedStudy {
                text: told.text,
                program: base::unhex(&told.program).expect("a hash"),
                note: String::new(),
                expires_ms: row_time() + 86_400_000,
                windows: Vec::new(),
                nonce: [number; 16],
            };
            pair.house.store.propose(pair.we(), proposed).expect("proposed");
        }
        let first = pair.ask(&stella, "/studies").await.is(200).says("Number 59").says("Number 10");
        let next = first.never_says("Number 09").body;
        let next =
            next.split_once("href=\"/studies?after=").expect("more").1.split_once('"').expect("ends").0;
        let more = pair.ask(&stella, &format!("/studies?after={next}")).await.is(200);
        more.says("Number 09").says("Number 00").never_says("Number 10").never_says("Older ones");
        pair.ask(&stella, "/studies?state=answered").await.is(200).says("There is no such study.");
        pair.ask(&stella, "/studies?peer=hospitals&open=yes").await.is(200).says("Number 59");
    });
}

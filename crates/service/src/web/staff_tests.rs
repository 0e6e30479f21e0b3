//! Pages of those who run and answer for an organisation, as requests: who may what, alone and by two.

mod audit;
mod devices;
mod operate;
mod peers;
mod proxy;
mod rules;
mod second;
mod two_people;

use super::door::ClientAddress;
use super::{House, listen, now};
use crate::roles::Grant;
use crate::secrets::SecretToken;
use crate::store::{COMMAND_LINE, PasswordRight, RecordedAct};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use net::identity::Identity;
use std::path::PathBuf;
use std::sync::Arc;
use tower::ServiceExt;

/// A service without a listener, in a folder of its own.
pub struct Rooms {
    pub folder: tempfile::TempDir,
    pub house: Arc<House>,
}

/// Somebody who is signed in.
pub struct Guest {
    token: SecretToken,
}

/// What came back.
pub struct PageShown {
    pub status: u16,
    pub body: String,
    pub cookie: Option<String>,
    /// The cookie by which the browser is known the next time.
    pub device: Option<String>,
}

const RULES: &str = r#"
format = "tacit-service/1"
name = "registry"
identity = "registry.key"
store = "service.db"
ledger = "registry.ledger"
data_root = "data"
[web]
names = ["tacit.registry.example"]
[peers.hospitals]
key = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11"
[data.trial]
path = "trial.csv"
lineage = "trial"
columns = ["child_id", "arm"]
peers = ["hospitals"]
budget = 1.0
[data.other]
path = "other.csv"
lineage = "other"
budget = 1.0
"#;

impl Rooms {
    /// One whose rules end with `more`, which were accepted.
    pub fn begin(more: &str) -> Self {
        Self::open(None, more)
    }

    /// The same with a key.
    pub fn with_key(key: &Identity, more: &str) -> Self {
        Self::open(Some(key), more)
    }

    fn open(key: Option<&Identity>, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("service.toml");
        let saved = key.map(|key| key.save(&folder.path().join("registry.key")));
        saved.transpose().expect("saved");
        std::fs::write(&path, format!("{RULES}{more}")).expect("written");
        let house = House::open(&path).expect("opens");
        let file = crate::RulesFile::read(&path).expect("reads");
        let act = RecordedAct { by: COMMAND_LINE, what: "service.toml accepted", to: "", at: now() };
        house.store.accept(&act, &file.text, &file.hash()).expect("accepted");
        drop(house);
        let house = Arc::new(House::open(&path).expect("opens"));
        Self { folder, house }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds an account as the command line does, and signs in.
    pub fn guest(&self, name: &'static str, roles: &[&str]) -> Guest {
        let grants: Vec<Grant> = roles.iter().map(|role| Grant::parse(role).expect("a role")).collect();
        let act = |by, what| RecordedAct { by, what, to: name, at: now() };
        let store = &self.house.store;
        let link = store.add_account(&act(COMMAND_LINE, "account added"), &grants).expect("adds");
        let link = link.expect("a new name");
        let set = store.set_password(&act(name, "set"), name, PasswordRight::Link(&link)).expect("sets");
        assert!(set);
        self.again(name)
    }

    /// Signs somebody in once more.
    pub fn again(&self, name: &'static str) -> Guest {
        let act = RecordedAct { by: name, what: "signed in", to: name, at: now() };
        let token = self.house.store.begin_session(&act, name, None, false).expect("begins");
        Guest { token: token.expect("signs in") }
    }

    pub fn ask(&self, request: Request<Body>) -> PageShown {
        let mut request = request;
        request.extensions_mut().insert(ClientAddress([127, 0, 0, 1].into()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("starts");
        runtime.block_on(async {
            let answer = listen::router(self.house.clone()).oneshot(request).await.expect("answers");
            let text = |name: &str| {
                let value = answer.headers().get(name).and_then(|value| value.to_str().ok());
                value.map(str::to_owned)
            };
            let (status, cookie) = (answer.status().as_u16(), text("set-cookie"));
            let cookies = answer.headers().get_all("set-cookie").iter();
            let mut cookies = cookies.filter_map(|value| value.to_str().ok());
            let device = cookies.find(|text| text.starts_with("__Host-tacit-device="));
            let device = device.map(str::to_owned);
            let body = to_bytes(answer.into_body(), 1 << 26).await.expect("a body");
            let body = String::from_utf8_lossy(&body).into_owned();
            PageShown { status, body, cookie, device }
        })
    }

    fn request(&self, method: &str, who: Option<&Guest>, path: &str, body: String) -> PageShown {
        let mut request =
            Request::builder().method(method).uri(path).header("host", "tacit.registry.example");
        request = request.header("sec-fetch-site", "same-origin");
        request = request.header("content-type", "application/x-www-form-urlencoded");
        if let Some(who) = who {
            request = request.header("cookie", format!("__Host-tacit={}", who.token.text()));
        }
        self.ask(request.body(Body::from(body)).expect("a request"))
    }

    pub fn get(&self, who: &Guest, path: &str) -> PageShown {
        self.request("GET", Some(who), path, String::new())
    }

    pub fn nobody(&self, path: &str) -> PageShown {
        self.request("GET", None, path, String::new())
    }

    /// Sends a form as it is.
    pub fn send(&self, who: Option<&Guest>, path: &str, fields: &[(&str, &str)]) -> PageShown {
        let plain = |b: u8| b.is_ascii_alphanumeric();
        let byte = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
        let word = |text: &str| text.bytes().map(byte).collect::<String>();
        let pairs = fields.iter().map(|(name, value)| format!("{}={}", word(name), word(value)));
        self.request("POST", who, path, pairs.collect::<Vec<_>>().join("&"))
    }

    /// Sends the form to `to` that stands on the page at `from`.
    #[track_caller]
    pub fn deed(&self, who: &Guest, from: &str, to: &str, fields: &[(&str, &str)]) -> PageShown {
        let page = self.get(who, from).is(200);
        let word = page.word(to);
        self.send(Some(who), to, &[fields, &[("csrf", word.as_str())]].concat())
    }
}

impl Guest {
    /// The word of a form, whether or not a page shows one.
    pub fn word(&self, action: &str, subject: &str) -> String {
        self.token.form_word(action, subject)
    }
}

impl PageShown {
    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.body.contains(text), "{text:?} is not in:\n{}", self.body);
        self
    }

    #[track_caller]
    pub fn never_says(self, text: &str) -> Self {
        assert!(!self.body.contains(text), "{text:?} is in:\n{}", self.body);
        self
    }

    /// The word of the form that is sent to a path.
    #[track_caller]
    pub fn word(&self, path: &str) -> String {
        let form = format!("action=\"{path}\"");
        let rest =
            self.body.split_once(&form).unwrap_or_else(|| panic!("no form to {path}: {}", self.body)).1;
        let rest = rest.split_once("name=\"csrf\" value=\"").expect("the form has a word").1;
        rest.split_once('"').expect("it ends").0.to_owned()
    }

    /// What stands in the box for links and codes.
    #[track_caller]
    pub fn told(&self) -> String {
        let rest = self.body.split_once("<p class=\"link\">").unwrap_or_else(|| panic!("{}", self.body)).1;
        rest.split_once('<').expect("it ends").0.to_owned()
    }
}

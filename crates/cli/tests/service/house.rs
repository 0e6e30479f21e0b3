//! A service as a process, its people, and a client that can say anything a browser would not.

use rustix::net::{AddressFamily, SocketType, socket};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

/// What people here have as a password, each with the name before it.
const PASSWORD: &str = "wandering copper teapot";

/// A connection of a browser.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// The rows of the data set `trial`.
pub const ROWS: &str =
    "child_id,arm,<img src=x onerror=alert(1)>\nc1,vaccine,1\nc2,placebo,2\nc3,vaccine,3\n";

/// A service that runs, in a folder of its own.
pub struct House {
    pub folder: tempfile::TempDir,
    pub address: SocketAddr,
    running: Option<Running>,
}

struct Running {
    child: Child,
    tls: Arc<ClientConfig>,
}

/// A person who is signed in.
pub struct Person {
    pub name: String,
    pub cookie: String,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    /// All that came on a connection.
    pub fn read(text: Vec<u8>) -> Self {
        let text = String::from_utf8(text).expect("UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The session's cookie, where one was set.
    pub fn cookie(&self) -> Option<String> {
        let text = self.header("set-cookie")?;
        text.split(';').next().map(str::to_owned)
    }

    /// The word of the form that is sent to `path`.
    #[track_caller]
    pub fn word(&self, path: &str) -> String {
        let form = format!("action=\"{path}\"");
        let rest =
            self.body.split_once(&form).unwrap_or_else(|| panic!("no form to {path}: {}", self.body)).1;
        let rest = rest.split_once("name=\"csrf\" value=\"").expect("the form has a word").1;
        rest.split_once('"').expect("it ends").0.to_owned()
    }

    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
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
}

/// What a form of a page of ours says of where it comes from.
pub const OURS: (&str, &str) = ("Sec-Fetch-Site", "same-origin");

impl House {
    /// One with data, a peer, rules that were accepted, and the lines `more` in its file.
    pub fn begin(more: &str) -> Self {
        Self::with_web("", more)
    }

    /// The same with the lines `web` in its section of the page.
    pub fn with_web(web: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address = base::free_address().expect("a port").parse().expect("an address");
        let mut house = Self { folder, address, running: None };
        std::fs::create_dir(house.path("data")).expect("made");
        std::fs::write(house.path("data/trial.csv"), ROWS).expect("written");
        house.write_rules(web, more);
        house.tacit(&["accept"], &[]);
        house.start();
        house
    }

    /// One whose file and data are in a folder already; it listens at `address`.
    pub fn of(folder: tempfile::TempDir, address: SocketAddr) -> Self {
        let mut house = Self { folder, address, running: None };
        house.tacit(&["accept"], &[]);
        house.start();
        house
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write_rules(&self, web: &str, more: &str) {
        let text = format!(
            r#"
            format = "tacit-service/1"
            name = "registry"
            identity = "registry.key"
            store = "service.db"
            ledger = "registry.ledger"
            data_root = "data"
            [web]
            listen = "{}"
            names = ["tacit.registry.example"]
            {web}
            [peers.hospitals]
            key = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11"
            [data.trial]
            path = "trial.csv"
            lineage = "trial"
            columns = ["child_id", "arm"]
            peers = ["hospitals"]
            least_rows = 2
            budget = 1.0
            [data.other]
            path = "other.csv"
            lineage = "other"
            budget = 1.0
            {more}
            "#,
            self.address
        );
        std::fs::write(self.path("service.toml"), text).expect("written");
    }

    /// `tacit service WORDS service.toml MORE --json`.
    pub fn tacit(&self, words: &[&str], more: &[&str]) -> Value {
        let done = self.try_tacit(words, more);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("JSON")
    }

    pub fn try_tacit(&self, words: &[&str], more: &[&str]) -> Output {
        let mut command = self.command(words);
        command.args(more).arg("--json").output().expect("tacit starts")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        command.arg("service").args(words).arg(self.path("service.toml"));
        command
    }

    /// Starts the daemon and waits until it says where it listens.
    pub fn start(&mut self) -> Value {
        let log = std::fs::File::options().create(true).append(true).open(self.path("log")).expect("a log");
        let mut command = self.command(&["run", "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = child.expect("tacit starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
        let told = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}; {}", self.log()));
        self.running = Some(Running { child, tls: client(self.folder.path()) });
        told
    }

    /// The daemon's number.
    pub fn process(&self) -> u32 {
        self.running.as_ref().expect("it runs").child.id()
    }

    pub fn kill(&mut self) {
        let mut running = self.running.take().expect("it runs");
        running.child.kill().expect("killed");
        running.child.wait().expect("ended");
    }

    /// What it said on standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).expect("a log")
    }

    /// A connection, and nothing said on it yet.
    pub fn connect(&self) -> TlsStream {
        self.tls_over(TcpStream::connect(self.address).expect("it listens"))
    }

    /// The same from one of this machine's own addresses, 127.0.0.1 and more: each has its measure.
    pub fn connect_from(&self, last: u8) -> TlsStream {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, last], 0))).expect("an address");
        rustix::net::connect(&socket, &self.address).expect("it listens");
        self.tls_over(TcpStream::from(socket))
    }

    fn tls_over(&self, stream: TcpStream) -> TlsStream {
        let tls = self.running.as_ref().expect("it runs").tls.clone();
        let name = ServerName::try_from("tacit.registry.example").expect("a name");
        StreamOwned::new(ClientConnection::new(tls, name).expect("a connection"), stream)
    }

    /// Sends bytes, and reads what comes back until the other side ends. A large body that is refused unread
    /// may reset the connection before the answer is here: then they are sent once more.
    pub fn raw(&self, bytes: &[u8]) -> Reply {
        let mut text = Vec::new();
        for _ in 0..if bytes.len() > 1 << 16 { 20 } else { 1 } {
            let mut stream = self.connect();
            // It may answer and end before all is sent, and ends without a word of TLS.
            let _ = stream.write_all(bytes).and_then(|()| stream.flush());
            let _ = stream.read_to_end(&mut text);
            if !text.is_empty() {
                break;
            }
        }
        Reply::read(text)
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text += "Host: tacit.registry.example\r\n";
        }
        headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        self.raw(format!("{text}\r\n{body}").as_bytes())
    }

    /// A form as a browser sends it from a page of ours.
    pub fn send(&self, path: &str, cookie: Option<&str>, fields: &[(&str, &str)]) -> Reply {
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        let headers = [Some(kind), Some(OURS), cookie.map(|cookie| ("Cookie", cookie))];
        self.ask("POST", path, &headers.into_iter().flatten().collect::<Vec<_>>(), &form(fields))
    }

    /// Adds an account by the command line and follows its link.
    pub fn person(&self, name: &str, roles: &[&str]) -> Person {
        let roles: Vec<&str> = roles.iter().flat_map(|role| ["--role", role]).collect();
        let added = self.tacit(&["account", "add"], &[&[name], &roles[..]].concat());
        let link = added["link"].as_str().expect("a link");
        let path = link.strip_prefix("https://tacit.registry.example").expect("under our name");
        let reply = self.send(path, None, &[("new", &password(name))]).is(303);
        Person { name: name.to_owned(), cookie: reply.cookie().expect("signed in") }
    }

    pub fn get(&self, person: &Person, path: &str) -> Reply {
        self.ask("GET", path, &[("Cookie", &person.cookie)], "")
    }

    /// Sends the form to `to` that stands on the page at `from`.
    #[track_caller]
    pub fn do_it(&self, person: &Person, from: &str, to: &str, fields: &[(&str, &str)]) -> Reply {
        let word = self.get(person, from).is(200).word(to);
        self.send(to, Some(&person.cookie), &[fields, &[("csrf", word.as_str())]].concat())
    }

    pub fn sign_in(&self, name: &str, password: &str) -> Reply {
        self.send("/sign-in", None, &[("name", name), ("password", password)])
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.kill();
        }
    }
}

/// What trusts the certificate that the service in a folder made for itself, or was given.
fn client(folder: &Path) -> Arc<ClientConfig> {
    let given = std::fs::read(folder.join("web.pem"));
    let text = given.or_else(|_| std::fs::read(folder.join("service.web.pem"))).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&text).expect("in PEM")).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("versions");
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

/// What the service in a folder answers to who asks for a page with these lines in the head, as it comes.
pub fn page_of(folder: &Path, address: &str, path: &str, lines: &str) -> String {
    let name = ServerName::try_from("localhost").expect("a name");
    let tls = ClientConnection::new(client(folder), name).expect("a connection");
    let mut stream = StreamOwned::new(tls, TcpStream::connect(address).expect("it listens"));
    let text = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{lines}\r\n");
    let mut answer = Vec::new();
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

pub fn password(name: &str) -> String {
    format!("{name} {PASSWORD}")
}

pub fn form(fields: &[(&str, &str)]) -> String {
    let byte = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    let word = |text: &str| text.bytes().map(byte).collect::<String>();
    fields.iter().map(|(name, value)| format!("{}={}", word(name), word(value))).collect::<Vec<_>>().join("&")
}

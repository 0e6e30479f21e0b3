//! A peer whose key is known sends a thousand proposals that nobody asked for, over its own link, while
//! another peer's study goes on. `docs/protocols/statements.md` has the messages.

use crate::agreed::{NAMES, Two};
use crate::house::page_of;
use base::Seed;
use net::services::{HELLO_BYTES, ServiceHello, ServiceTls};
use net::{Identity, KeyFingerprint};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use statements::{ProposalId, ProposalRecord, ProposedStudy, Said, SignedStatement, StatementBody};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use study::StudyHash;

/// Proposals of the hostile peer.
const PROPOSALS: u64 = 1_000;
/// What a peer may have waiting for a decision, by default.
const OPEN: usize = 20;
const PATIENCE: Duration = Duration::from_secs(120);

pub type HostileStream = StreamOwned<ClientConnection, TcpStream>;

/// Connects and proves its key; a second later where it came too soon.
pub fn dial(own: &Identity, peer: KeyFingerprint, address: &str) -> HostileStream {
    let until = Instant::now() + PATIENCE;
    loop {
        let tls = ServiceTls::new(own, vec![peer]).expect("set up");
        let name = ServerName::try_from("tacit").expect("a name");
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("set");
        let connection = ClientConnection::new(tls.dialer, name).expect("a connection");
        let mut stream = StreamOwned::new(connection, stream);
        let mut hello = [0; HELLO_BYTES];
        let greeted = stream.write_all(&ServiceHello::Question.bytes()).and_then(|()| stream.flush());
        let greeted = greeted.and_then(|()| stream.read_exact(&mut hello));
        if greeted.is_ok() && ServiceHello::read(&hello) == Ok(ServiceHello::Taken) {
            return stream;
        }
        assert!(Instant::now() < until, "never taken");
        std::thread::sleep(Duration::from_millis(200));
    }
}

pub fn send(stream: &mut HostileStream, kind: u8, content: &[u8]) -> std::io::Result<()> {
    let length = (content.len() as u64 + 1).to_le_bytes();
    stream.write_all(&[&length[..], &[kind], content].concat())?;
    stream.flush()
}

/// The next message.
pub fn receive(stream: &mut HostileStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::try_from(u64::from_le_bytes(length)).expect("a length")];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// What is answered to a statement: `have`, the code of a `no`, or `busy`.
fn answer(stream: &mut HostileStream) -> std::io::Result<String> {
    loop {
        let message = receive(stream)?;
        match message[0] {
            3 => return Ok("have".to_owned()),
            4 => return Ok(String::from_utf8_lossy(&message[1 + 32 + 4..]).into_owned()),
            6 => return Ok("busy".to_owned()),
            _ => {}
        }
    }
}

/// What a peer can sign, and should not.
struct Hostile {
    own: Identity,
    peer: KeyFingerprint,
    /// A study of both.
    text: String,
    rng: base::Rng,
}

impl Hostile {
    fn proposed(&mut self, text: &str) -> ProposedStudy {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.rng.below(u64::MAX).to_le_bytes());
        ProposedStudy {
            text: text.to_owned(),
            program: [2; 32],
            note: "Now?".to_owned(),
            expires_ms: now_ms() + 3_600_000,
            windows: Vec::new(),
            nonce,
        }
    }

    /// A proposal of any text, as if it were the study of some hash.
    fn propose(&mut self, text: &str, recipient: KeyFingerprint) -> Vec<u8> {
        let proposed = self.proposed(text);
        let study = StudyHash::from_bytes([self.rng.below(256).to_le_bytes()[0]; 32]);
        let author = self.own.public_key().expect("a key");
        let body = StatementBody {
            study,
            proposal: ProposalId::of(&author, &study, &proposed),
            author,
            recipients: vec![recipient],
            number: 0,
            previous: [0; 32],
            seen: [0; 32],
            at_ms: now_ms(),
            said: Said::Propose(Box::new(proposed)),
        };
        SignedStatement::sign(body, &self.own).expect("signed").bytes().to_vec()
    }

    fn good(&mut self) -> SignedStatement {
        let proposed = self.proposed(&self.text.clone());
        ProposalRecord::propose(&self.own, now_ms(), proposed).expect("proposes")
    }

    /// The next messages: mostly one, two where its author says two things.
    fn next(&mut self, number: u64) -> Vec<Vec<u8>> {
        let stranger = KeyFingerprint::from_bytes([7; 16]);
        match number % 6 {
            0 => vec![(0..500).map(|_| self.rng.below(256).to_le_bytes()[0]).collect()],
            1 => vec![self.propose("[[[[ = ", self.peer)],
            2 => vec![self.propose(&self.text.clone(), stranger)],
            // Now and then one that is large as well.
            3 if number % 60 == 3 => vec![self.propose(&"a = [".repeat(100_000), self.peer)],
            3 => vec![self.propose(&self.text.replace("rho = 0.1", "rho = 1e-1"), self.peer)],
            4 => vec![self.good().bytes().to_vec()],
            _ => {
                let first = self.good();
                let record = ProposalRecord::open(first.clone()).expect("a proposal");
                let note = |text: &str| {
                    let said = record.say(&self.own, now_ms(), Said::Note(text.to_owned()));
                    said.expect("says").bytes().to_vec()
                };
                vec![first.bytes().to_vec(), note("one thing"), note("another thing")]
            }
        }
    }
}

pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
    u64::try_from(since.as_millis()).expect("a time")
}

/// Sends everything; how often each answer came.
fn attack(mut hostile: Hostile, address: &str) -> BTreeMap<String, u64> {
    let mut answers = BTreeMap::new();
    let mut stream = dial(&hostile.own, hostile.peer, address);
    for number in 0..PROPOSALS {
        // What is no message, or longer than one, ends the connection.
        let ends = match number {
            250 => send(&mut stream, 99, b"no message"),
            500 => stream.write_all(&u64::MAX.to_le_bytes()).and_then(|()| stream.flush()),
            750 => send(&mut stream, 0, &[255; 40]),
            _ => Ok(()),
        };
        if number % 250 == 0 && number > 0 {
            let ended = ends.is_err() || answer(&mut stream).is_err();
            assert!(ended, "the connection goes on after message {number}");
            stream = dial(&hostile.own, hostile.peer, address);
        }
        for bytes in hostile.next(number) {
            send(&mut stream, 2, &bytes).expect("the link stands");
            *answers.entry(answer(&mut stream).expect("an answer")).or_default() += 1;
        }
    }
    answers
}

#[test]
fn a_thousand_hostile_proposals_stop_nobody_else() {
    let own = Identity::generate().expect("a key");
    let key = own.fingerprint().to_string();
    let mut two = Two::with(|side, _| match side {
        0 => format!("[peers.hostile]\nkey = \"{key}\"\nkinds = [\"lift\"]\n"),
        _ => String::new(),
    });
    let peer = Identity::load(&two.home(0).join("own.key")).expect("a key").fingerprint();
    let study = std::fs::read_to_string(two.folder.path().join("study.toml")).expect("a study");
    let other = Identity::load(&two.home(1).join("own.key")).expect("a key").fingerprint().to_string();
    let text = study::canonical("the study", &study.replace(&other, &key)).expect("a study");
    let address = two.link(0);
    let hostile = Hostile { own, peer, text, rng: Seed::from_bytes([7; 32]).into_rng() };
    let attacking = std::thread::spawn(move || attack(hostile, &address));
    // Meanwhile others do what they always do.
    two.propose();
    two.until(1, "the proposal", |status| status["state"] == "proposed");
    [0, 1].into_iter().for_each(|side| two.consent(side));
    two.is_answered_once();
    let answers = attacking.join().expect("it was answered");
    let of = |answer: &str| answers.get(answer).copied().unwrap_or_default();
    assert!(of("malformed") > 0 && of("study") > 0 && of("other") > 0, "{answers:?}");
    assert!(of("limit") + of("busy") > PROPOSALS / 2, "{answers:?}");
    assert!(page_of(&two.home(0), &two.web(0), "/sign-in", "").starts_with("HTTP/1.1 200"), "{}", NAMES[0]);
    let all = two.tacit(0, &["studies"], &["--all"]);
    let waiting = all["studies"].as_array().expect("studies").iter();
    let waiting = waiting.filter(|one| one["state"] == "proposed").count();
    assert!(waiting <= OPEN, "{waiting} wait");
}

//! A store with many studies, each said by two organisations through the store's own functions: signed,
//! checked, logged. The files of reports and the lines of runs are those of a run that was made before.

use crate::sides::Sides;
use job::check::CheckedSide;
use net::{Identity, KeyFingerprint};
use service::{
    Absorbed, COMMAND_LINE, ConsentRight, OwnConsent, PeerSender, RecordedAct, RunLeft, Speaker, Store,
};
use statements::{
    ChargeBound, ClosingCode, ClosingReason, ConsentTerms, ProposalId, ProposalRecord, ProposedStudy, RunEnd,
    RunOffer, RunOutcome, Said, commit_to_data, digest_of_words,
};
use std::path::Path;
use study::{StudyFile, StudyHash};

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;
/// Of 100 studies so many are answered, and so many refused or withdrawn; of those that are left the peer has
/// all but [`TO_DECIDE`] to decide.
const ANSWERED: u64 = 87;
const CLOSED: u64 = 10;
/// Lines of each run.
const LINES: u32 = 10;
/// Proposals of the peer that wait for a steward.
const TO_DECIDE: u64 = 20;

/// What a run of one study left.
pub struct RunSample {
    files: Vec<(String, Vec<u8>)>,
    lines: Vec<String>,
}

/// Studies of the store by what became of them.
#[derive(Default)]
pub struct Filled {
    pub answered: Vec<StudyHash>,
    pub waiting: Vec<StudyHash>,
    pub to_decide: Vec<StudyHash>,
}

impl RunSample {
    /// Of a study that has its answer.
    pub fn of(store: &Path, hash: &str) -> Self {
        let store = Store::open(store).expect("a store");
        let hash = StudyHash::parse(hash).expect("a hash");
        let row = store.proposal_of(&hash).expect("reads").expect("is there");
        let file = |name: &str| {
            let file = store.report_file(&row.id, name).expect("reads").expect("the run left it");
            (name.to_owned(), file.content)
        };
        let lines = store.lines(&row.id, 1, 0, LINES).expect("reads");
        let lines = lines.into_iter().map(|line| line.line).collect();
        Self { files: ["report.json", "report.html"].map(file).into(), lines }
    }

    /// What it takes in a store.
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|(_, content)| content.len()).sum::<usize>()
            + self.lines.iter().map(String::len).sum::<usize>()
    }
}

/// Fills the store of the first side with so many studies, and its log up to so many entries. The work is
/// done in memory where there is room for it: what is measured later lies where it lay.
pub fn fill(sides: &Sides, studies: u64, entries: u64, sample: &RunSample) -> Filled {
    let kept = sides.home(0).join("service.db");
    let memory = Path::new("/dev/shm");
    let room =
        tempfile::tempdir_in(if memory.is_dir() { memory } else { Path::new("/tmp") }).expect("a folder");
    let path = room.path().join("service.db");
    // Closed by nobody else, it is one file.
    drop(Store::open(&kept).expect("opens"));
    std::fs::copy(&kept, &path).expect("copied");
    let filled = {
        let store = Store::open(&path).expect("opens");
        let rules = store.accepted().expect("reads").map(|accepted| accepted.hash);
        let text = sides.study(true, "Any");
        let file = StudyFile::parse("the study", &text).expect("a study");
        let side = CheckedSide::of_study(file, text).expect("a study that can be run");
        let author = Author { sides, store: &store, rules, program: side.built[0].program.hash() };
        let mut filled = Filled::default();
        for number in 0..studies {
            author.study(number, studies, sample, &mut filled);
        }
        log_up_to(&store, &path, entries);
        filled
    };
    std::fs::copy(&path, &kept).expect("copied back");
    filled
}

/// Entries of the log as people make them who read reports.
fn log_up_to(store: &Store, path: &Path, entries: u64) {
    let newest = "SELECT max(number) FROM audit";
    let reader = rusqlite::Connection::open(path).expect("opens");
    let newest: u64 = reader.query_row(newest, [], |row| row.get::<_, i64>(0)).expect("reads").unsigned_abs();
    let at = service::now();
    for number in newest..entries {
        let to = format!("{:064x}", number % 10_000);
        let act = RecordedAct {
            by: &crate::name(number as usize % crate::PEOPLE),
            what: "report read",
            to: &to,
            at,
        };
        store.record(&act).expect("written");
    }
}

struct Author<'a> {
    sides: &'a Sides,
    store: &'a Store,
    rules: Option<[u8; 32]>,
    /// The hash of the program of all studies: titles are not in it.
    program: [u8; 32],
}

impl Author<'_> {
    fn own(&self) -> &Identity {
        &self.sides.keys[0]
    }

    fn key(&self) -> KeyFingerprint {
        self.own().fingerprint()
    }

    fn speaker(&self, at_ms: u64) -> Speaker<'_> {
        Speaker { by: COMMAND_LINE, identity: self.own(), at_ms }
    }

    /// One study from its proposal to wherever it comes. They are two hours apart, the newest is of now.
    fn study(&self, number: u64, of: u64, sample: &RunSample, filled: &mut Filled) {
        let at_ms = 1_000 * service::now() - 2 * HOUR * (of - number);
        let text = self.sides.study(true, &format!("Campaign {number}, autumn"));
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        let proposed = ProposedStudy {
            text,
            program: self.program,
            note: "As agreed on the telephone.".to_owned(),
            expires_ms: at_ms + 60 * DAY,
            windows: Vec::new(),
            nonce,
        };
        let left = of - number;
        let to_decide = left <= TO_DECIDE;
        let record = if to_decide || number % 2 == 1 {
            self.peer_proposes(at_ms, proposed)
        } else {
            self.store.propose(self.speaker(at_ms), proposed).expect("proposes")
        };
        let (id, study) = (record.id(), record.study());
        // The newest ones are open; of all others one in nine or so is closed.
        if to_decide {
            filled.to_decide.push(study);
        } else if left <= of * (100 - ANSWERED - CLOSED) / 100 {
            self.consents(&id, at_ms);
            filled.waiting.push(study);
        } else if number % (ANSWERED + CLOSED) < CLOSED {
            let reason = ClosingReason { code: ClosingCode::Purpose, text: "Not for this.".to_owned() };
            let said = match record.parties()[record.proposer()] == self.key() {
                true => Said::Withdraw(reason),
                false => Said::Refuse(reason),
            };
            self.store.say(self.speaker(at_ms + HOUR), &id, said).expect("says");
        } else {
            self.consents(&id, at_ms);
            self.peer_says(&id, at_ms, Said::Consent(Box::new(self.terms(at_ms))));
            self.runs(&id, at_ms, sample);
            filled.answered.push(study);
        }
        self.are_had(&id, at_ms + HOUR);
    }

    fn terms(&self, at_ms: u64) -> ConsentTerms {
        let clinic = self.sides.clinic.fingerprint();
        let bound =
            |viewer, delta: &str| ChargeBound { viewer, rho: "1/5".to_owned(), delta: delta.to_owned() };
        ConsentTerms {
            program: self.program,
            charges: vec![bound(None, "0"), bound(Some(clinic), "1/1000000")],
            words: digest_of_words(WORDS),
            data: commit_to_data(&[1; 32], &[2; 32], Some("publisher")),
            expires_ms: at_ms + 60 * DAY,
            windows: Vec::new(),
            runs: 3,
            persons: 1,
            seal: None,
        }
    }

    fn consents(&self, id: &ProposalId, at_ms: u64) {
        let own = OwnConsent {
            by: COMMAND_LINE.to_owned(),
            data: "rows".to_owned(),
            lineage: Some("publisher".to_owned()),
            salt: [1; 32],
            tag: [2; 32],
            version: [3; 32],
            words: WORDS.to_owned(),
            after: 0,
            taken: None,
        };
        let right =
            ConsentRight { rules: self.rules, stewards: &[], separate: true, approval: None, keys: &[] };
        let terms = self.terms(at_ms);
        self.store.consent(self.speaker(at_ms), id, terms, &own, &right).expect("consents");
    }

    /// One run with an answer on both sides.
    fn runs(&self, id: &ProposalId, at_ms: u64, sample: &RunSample) {
        let offer = |nonce| RunOffer {
            run: 1,
            goes_on: false,
            nonce: [nonce; 16],
            earliest_ms: at_ms,
            latest_ms: at_ms + HOUR,
            port: 7_001,
        };
        self.store.offer_run(self.speaker(at_ms), id, offer(1)).expect("offers");
        self.peer_says(id, at_ms, Said::Ready(offer(2)));
        let mut nonces = vec![(self.key(), [1; 16]), (self.sides.clinic.fingerprint(), [2; 16])];
        nonces.sort();
        let nonces: Vec<[u8; 16]> = nonces.into_iter().map(|(_, nonce)| nonce).collect();
        self.store.start_run(self.speaker(at_ms), id, 1, nonces.clone()).expect("starts");
        self.peer_says(id, at_ms, Said::Started { run: 1, nonces });
        for line in &sample.lines {
            self.store.keep_line(id, 1, at_ms, line).expect("written");
        }
        let outcome = RunOutcome::Answered;
        let end = RunEnd { run: 1, outcome, kind: String::new(), code: String::new(), debits: Vec::new() };
        let left = RunLeft { files: &sample.files, ..RunLeft::default() };
        let record = self.store.standing(id).expect("reads").expect("there");
        assert!(self.store.end_run(at_ms, &record, &end, &left).expect("ends"));
        self.store.say(self.speaker(at_ms), id, Said::Ended(end.clone())).expect("says");
        self.peer_says(id, at_ms, Said::Ended(end));
    }

    fn peer_proposes(&self, at_ms: u64, proposed: ProposedStudy) -> ProposalRecord {
        let first = ProposalRecord::propose(&self.sides.clinic, at_ms, proposed).expect("a statement");
        let record = ProposalRecord::open(first.clone()).expect("a proposal");
        self.absorb(at_ms, &first.bytes());
        record
    }

    fn peer_says(&self, id: &ProposalId, at_ms: u64, said: Said) {
        let record = self.store.standing(id).expect("reads").expect("is there");
        let signed = record.say(&self.sides.clinic, at_ms, said).expect("a statement");
        self.absorb(at_ms, &signed.bytes());
    }

    fn absorb(&self, at_ms: u64, bytes: &[u8]) {
        let key = self.sides.clinic.fingerprint();
        let from = PeerSender { name: "clinic", key, most_open: u64::MAX, most_per_day: u64::MAX };
        let became = self.store.absorb(self.key(), from, at_ms, bytes).expect("reads and writes");
        assert!(matches!(became, Absorbed::Have { new: true, .. }), "{became:?}");
    }

    /// The peer has acknowledged all.
    fn are_had(&self, id: &ProposalId, at_ms: u64) {
        for row in self.store.sent(id).expect("reads") {
            self.store.had(row.peer, &row.digest, at_ms).expect("written");
        }
    }
}

/// What a steward read, of about the usual length.
const WORDS: &str = include_str!("../../../../examples/lift.toml");

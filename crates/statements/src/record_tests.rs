//! Statements as bytes, under real keys, between real studies.

use crate::fuzzing::{bodies, ended};
use crate::*;
use net::cluster::pinned;
use net::identity::{Identity, KeyFingerprint};
use proptest::prelude::*;
use study::{StudyFile, StudyHash};

const LIFT: &str = include_str!("../../../examples/lift.toml");
const AT: u64 = 1_795_000_000_000;
const HOUR: u64 = 3_600_000;

/// A study of two organisations, and their keys.
struct Pair {
    registry: Identity,
    hospitals: Identity,
    text: String,
}

impl Pair {
    fn new() -> Self {
        let [registry, hospitals] = [(); 2].map(|()| Identity::generate().unwrap());
        let mut text = study::canonical("lift", LIFT).unwrap();
        for identity in [&registry, &hospitals] {
            // The keys of the example are this program's own; each is replaced once.
            let at = text.match_indices("key = \"tacit1:").map(|(at, _)| at + 7);
            let old = at.map(|at| text[at..at + 39].to_owned());
            let old = old.into_iter().find(|key| key != &registry.fingerprint().to_string()).unwrap();
            text = text.replace(&old, &identity.fingerprint().to_string());
        }
        Self { registry, hospitals, text }
    }

    fn hash(&self) -> StudyHash {
        StudyFile::parse("lift", &self.text).unwrap().hash()
    }

    fn first(&self, said: Said) -> Result<SignedStatement, base::Error> {
        let author = self.registry.public_key().unwrap();
        let proposal = match &said {
            Said::Propose(proposed) => ProposalId::of(&author, &self.hash(), proposed),
            _ => ProposalId([1; 16]),
        };
        let body = StatementBody {
            study: self.hash(),
            proposal,
            author,
            recipients: vec![self.hospitals.fingerprint()],
            number: 0,
            previous: [0; 32],
            seen: [0; 32],
            at_ms: AT,
            said,
        };
        SignedStatement::sign(body, &self.registry)
    }

    fn proposed(&self) -> ProposalRecord {
        let first = self.first(Said::Propose(Box::new(self.proposal()))).unwrap();
        ProposalRecord::open(SignedStatement::read(&first.bytes()).unwrap()).unwrap()
    }

    fn proposal(&self) -> ProposedStudy {
        ProposedStudy {
            text: self.text.clone(),
            program: [2; 32],
            note: "Shall we?".to_owned(),
            expires_ms: AT + 24 * HOUR,
            windows: Vec::new(),
            nonce: [8; 16],
        }
    }

    fn terms(&self) -> ConsentTerms {
        let viewer = Some(self.registry.fingerprint());
        ConsentTerms {
            program: [2; 32],
            charges: vec![ChargeBound { viewer, rho: "1/10".to_owned(), delta: "1/1000000".to_owned() }],
            words: digest_of_words("what a steward read"),
            data: commit_to_data(&[3; 32], &[4; 32], None),
            expires_ms: AT + 10 * HOUR,
            windows: vec![RunWindow { from_ms: AT, until_ms: AT + 5 * HOUR }],
            runs: 2,
            persons: 1,
            seal: None,
        }
    }

    fn names(&self, record: &ProposalRecord) -> Vec<String> {
        let name =
            |key: &KeyFingerprint| if *key == self.registry.fingerprint() { "registry" } else { "hospitals" };
        record.parties().iter().map(|key| name(key).to_owned()).collect()
    }

    /// Says, carries as bytes, keeps.
    fn say(&self, record: &mut ProposalRecord, who: &Identity, said: Said) -> SignedStatement {
        let signed = record.say(who, AT + HOUR, said).unwrap();
        let carried = SignedStatement::read(&signed.bytes()).unwrap();
        assert_eq!(carried, signed);
        assert_eq!(record.keep(carried).unwrap(), KeptStatement::New { counts: true });
        signed
    }

    fn run(&self, record: &mut ProposalRecord, run: u32, goes_on: bool, outcomes: [RunOutcome; 2]) {
        let both = [&self.registry, &self.hospitals];
        for who in both {
            let offer =
                RunOffer { run, goes_on, nonce: [5; 16], earliest_ms: AT, latest_ms: AT + HOUR, port: 7_001 };
            self.say(record, who, Said::Ready(offer));
        }
        for who in both {
            self.say(record, who, Said::Started { run, nonces: vec![[5; 16]; 2] });
        }
        assert_eq!(record.view().state(), ProposalState::Running);
        for (who, outcome) in both.into_iter().zip(outcomes) {
            self.say(record, who, Said::Ended(ended(run, outcome)));
        }
    }
}

#[test]
fn a_study_lives_from_proposal_to_answer() {
    let pair = Pair::new();
    let mut record = pair.proposed();
    let names = pair.names(&record);
    let words = |record: &ProposalRecord| record.state_words(Naming(&names));
    assert!(words(&record).starts_with("To be decided by "), "{}", words(&record));
    pair.say(&mut record, &pair.hospitals, Said::Note("<b>Why</b> \u{202e}so much?".to_owned()));
    let seal_less = pair.terms();
    pair.say(&mut record, &pair.hospitals, Said::Consent(Box::new(seal_less)));
    assert_eq!(words(&record), "Consented to by hospitals. Waiting for the consent of registry.");
    let terms = ConsentTerms { windows: Vec::new(), charges: Vec::new(), ..pair.terms() };
    pair.say(&mut record, &pair.registry, Said::Consent(Box::new(terms)));
    assert!(
        words(&record).starts_with("All have consented. Runs may begin from 2026-"),
        "{}",
        words(&record)
    );
    pair.run(&mut record, 1, false, [RunOutcome::Answered, RunOutcome::Failed]);
    assert!(words(&record).starts_with("registry has the answer, and not all have. A rerun costs nothing."));
    pair.run(&mut record, 2, true, [RunOutcome::Stored, RunOutcome::Answered]);
    assert_eq!(record.view().state(), ProposalState::Answered);
    // A run that goes on where another broke off is none of those that were agreed to.
    assert_eq!([0, 1].map(|party| record.view().begun_anew(party)), [1, 1]);
    let hospitals = names.iter().position(|name| name == "hospitals").unwrap();
    let said = record.statement_words(hospitals, 0, Naming(&names)).unwrap();
    assert!(said.starts_with("hospitals writes: <b>Why</b> ") && !said.contains('\u{202e}'), "{said}");
    let consent = record.statement_words(hospitals, 1, Naming(&names)).unwrap();
    let charged =
        "at most 2 runs begun anew. Charged on its data is at most: rho 0.1 and delta 10⁻⁶ to registry.";
    assert!(consent.contains(charged), "{consent}");
    for party in 0..2 {
        for number in 0..record.chain(party).len() {
            assert!(!record.statement_words(party, number, Naming(&names)).unwrap().is_empty());
        }
    }
    let refused = record.say(&pair.registry, AT, Said::Note("late".to_owned())).unwrap_err().to_string();
    assert!(refused.contains("the proposal is over"), "{refused}");
}

#[test]
fn any_order_of_authors_comes_to_the_same() {
    let pair = Pair::new();
    let mut record = pair.proposed();
    pair.say(&mut record, &pair.hospitals, Said::Consent(Box::new(pair.terms())));
    pair.say(&mut record, &pair.registry, Said::Consent(Box::new(pair.terms())));
    pair.run(&mut record, 1, false, [RunOutcome::Failed, RunOutcome::Stopped]);
    let mut all: Vec<SignedStatement> = (0..2).flat_map(|party| record.chain(party).to_vec()).collect();
    let first = all.iter().position(|one| matches!(one.body().said, Said::Propose(_))).unwrap();
    let mut again = ProposalRecord::open(all.remove(first)).unwrap();
    // The last first, as often as it takes: a gap says from where on to send.
    for _ in 0..all.len() {
        for one in all.iter().rev() {
            match again.keep(one.clone()) {
                Ok(KeptStatement::New { .. } | KeptStatement::Known) => {}
                Err(NotKept::Gap(from)) => assert!(from < one.body().number),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!((again.view(), again.heads()), (record.view(), record.heads()));
    let lacking = record.after(&pair.hospitals.fingerprint(), 1);
    assert_eq!(
        lacking.len() + 1,
        record.heads().iter().find(|h| h.author == pair.hospitals.fingerprint()).unwrap().count as usize
    );
}

#[test]
fn two_words_with_one_number_freeze_the_study() {
    let pair = Pair::new();
    let mut record = pair.proposed();
    let one = record.say(&pair.hospitals, AT, Said::Consent(Box::new(pair.terms()))).unwrap();
    let reason = ClosingReason { code: ClosingCode::Purpose, text: "not for this".to_owned() };
    let other = record.say(&pair.hospitals, AT, Said::Refuse(reason)).unwrap();
    let state = |record: &ProposalRecord| record.view().state();
    assert_eq!(record.keep(one.clone()).unwrap(), KeptStatement::New { counts: true });
    assert_eq!(record.keep(other.clone()).unwrap(), KeptStatement::Fork);
    assert_eq!(record.keep(other.clone()).unwrap(), KeptStatement::Fork);
    assert_eq!(
        (record.forks(), state(&record)),
        (&[[one.clone(), other.clone()]][..], ProposalState::Frozen)
    );
    // Whoever heard the other one first comes to the same.
    let mut heard = pair.proposed();
    assert_eq!(heard.keep(other).unwrap(), KeptStatement::New { counts: true });
    assert_eq!(state(&heard), ProposalState::Closed);
    assert_eq!(heard.keep(one).unwrap(), KeptStatement::Fork);
    let names = pair.names(&record);
    assert_eq!(state(&heard), ProposalState::Frozen);
    assert_eq!(heard.state_words(Naming(&names)), record.state_words(Naming(&names)));
    let refused = record.say(&pair.registry, AT, Said::Note("?".to_owned())).unwrap_err().to_string();
    assert!(refused.contains("two things under one number"), "{refused}");
    // One pair of an author fills its own place for evidence, and nobody else's.
    let note = |text: &str| pair.proposed().say(&pair.hospitals, AT, Said::Note(text.to_owned())).unwrap();
    assert_eq!(record.keep(note("a")).unwrap(), KeptStatement::Fork);
    assert_eq!(record.keep(note("b")).unwrap(), KeptStatement::Fork);
    let second = pair.first(Said::Propose(Box::new(pair.proposal()))).unwrap();
    let body = StatementBody { at_ms: AT + 1, ..second.body().clone() };
    let second = SignedStatement::sign(body, &pair.registry).unwrap();
    assert_eq!(record.keep(second).unwrap(), KeptStatement::Fork);
    let authors: Vec<_> = record.forks().iter().map(|[one, _]| one.author()).collect();
    assert_eq!(authors, [pair.hospitals.fingerprint(), pair.registry.fingerprint()]);
    let record = heard;
    assert!(record.state_words(Naming(&pair.names(&record))).contains("Frozen: hospitals has signed two"));
}

#[test]
fn nobody_proposes_under_anothers_name() {
    let pair = Pair::new();
    let first = pair.first(Said::Propose(Box::new(pair.proposal()))).unwrap();
    let mut record = ProposalRecord::open(first.clone()).unwrap();
    // The other party takes the name, with another note; or the proposer itself does.
    let other = Box::new(ProposedStudy { note: "on my terms".to_owned(), ..pair.proposal() });
    let by_other = StatementBody {
        author: pair.hospitals.public_key().unwrap(),
        recipients: vec![pair.registry.fingerprint()],
        said: Said::Propose(other.clone()),
        ..first.body().clone()
    };
    let again = StatementBody { said: Said::Propose(other), ..first.body().clone() };
    for (body, who) in [(by_other, &pair.hospitals), (again, &pair.registry)] {
        let signed = SignedStatement::sign(body, who).unwrap();
        assert_eq!(ProposalRecord::open(signed.clone()).err(), Some(NotKept::Other));
        assert_eq!(record.keep(signed), Err(NotKept::Other));
    }
    assert_eq!((record.chain(0).len() + record.chain(1).len(), record.is_frozen()), (1, false));
}

#[test]
fn what_ran_out_is_not_gone_on_with() {
    let pair = Pair::new();
    let mut record = pair.proposed();
    let consent = || Said::Consent(Box::new(ConsentTerms { expires_ms: AT + 30 * HOUR, ..pair.terms() }));
    let refused = |record: &ProposalRecord, at: u64, said: Said| {
        let told = record.say(&pair.hospitals, at, said).unwrap_err().to_string();
        assert!(told.contains("its time ran out"), "{told}");
    };
    refused(&record, AT + 24 * HOUR, consent());
    pair.say(&mut record, &pair.hospitals, consent());
    pair.say(&mut record, &pair.registry, consent());
    let offer =
        RunOffer { run: 1, goes_on: false, nonce: [5; 16], earliest_ms: AT, latest_ms: AT + HOUR, port: 0 };
    refused(&record, AT + 30 * HOUR, Said::Ready(offer));
    pair.say(&mut record, &pair.hospitals, Said::Ready(offer));
    pair.say(&mut record, &pair.registry, Said::Ready(offer));
    let started = || Said::Started { run: 1, nonces: vec![[5; 16]; 2] };
    refused(&record, AT + 30 * HOUR, started());
    assert!(record.say(&pair.hospitals, AT + 29 * HOUR, started()).is_ok());
}

#[test]
fn a_consent_counts_once_and_here() {
    let pair = Pair::new();
    let mut record = pair.proposed();
    let consent = pair.say(&mut record, &pair.hospitals, Said::Consent(Box::new(pair.terms())));
    assert_eq!(record.keep(consent.clone()).unwrap(), KeptStatement::Known);
    // Another proposal of the same study, with the same parties.
    let another = ProposedStudy { nonce: [9; 16], ..pair.proposal() };
    let mut second = ProposalRecord::open(pair.first(Said::Propose(Box::new(another))).unwrap()).unwrap();
    assert_eq!(second.keep(consent.clone()), Err(NotKept::Other));
    // Other recipients, another number: the signature is of the first.
    for at in [3, 40, 60, 120] {
        let mut bytes = consent.bytes();
        bytes[at] ^= 1;
        assert!(SignedStatement::read(&bytes).is_err(), "byte {at}");
    }
    // Another program, an unknown viewer, for ever: it is kept and shown, and nothing comes of it.
    let strange = Identity::generate().unwrap().fingerprint();
    let mut terms = pair.terms();
    terms.charges[0].viewer = Some(strange);
    for terms in [
        ConsentTerms { program: [9; 32], ..pair.terms() },
        ConsentTerms { expires_ms: AT + 100 * 24 * HOUR, ..pair.terms() },
        terms,
    ] {
        let refused =
            second.say(&pair.hospitals, AT, Said::Consent(Box::new(terms))).unwrap_err().to_string();
        assert!(refused.contains("a consent is to the program that was proposed"), "{refused}");
    }
}

#[test]
fn a_steward_signs_what_the_consent_says() {
    let pair = Pair::new();
    let mut record = pair.proposed();
    let steward = Identity::generate().unwrap();
    let request = ConsentRequest {
        study: record.study(),
        proposal: record.id(),
        organisation: pair.hospitals.fingerprint(),
        recipients: vec![pair.registry.fingerprint()],
        terms: pair.terms(),
    };
    let carried = ConsentRequest::read(&request.bytes()).unwrap();
    let seal = StewardSeal::parse(&carried.seal(&steward).unwrap().text()).unwrap();
    assert!(seal.is_of(&request) && seal.steward() == steward.fingerprint());
    let words = request.words(&|key| key.short());
    assert!(words.starts_with("tacit1:") && words.contains("rho 0.1 and delta 10⁻⁶ to tacit1:"), "{words}");
    let file = ConsentFile::text(&request, "what a steward read", &pair.text);
    assert_eq!(ConsentFile::parse("file", &file).unwrap().request, request);
    for (from, to, told) in [
        ("what a steward read", "nothing at all", "shows other words than would be signed"),
        ("polio-1954", "polio-1955", "shows another study than would be signed"),
        ("tacit-consent/1", "tacit-consent/9", "is no request for a consent"),
        ("\"request\":\"", "\"request\":\"00", "has a request that cannot be read"),
    ] {
        let error = ConsentFile::parse("file", &file.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    let own = request.seal(&pair.hospitals).unwrap_err().to_string();
    assert!(own.contains("this is the key of the organisation"), "{own}");
    let sealed = ConsentTerms { seal: Some(seal.clone()), ..pair.terms() };
    let more = ConsentTerms { runs: 5, ..sealed.clone() };
    let refused = record.say(&pair.hospitals, AT, Said::Consent(Box::new(more))).unwrap_err().to_string();
    assert!(refused.contains("steward's signature does not hold"), "{refused}");
    pair.say(&mut record, &pair.hospitals, Said::Consent(Box::new(sealed)));
    assert!(StewardSeal::parse("tacit-seal1:00").is_err());
}

#[test]
fn what_runs_out_is_said() {
    let pair = Pair::new();
    let mut record = pair.proposed();
    let place =
        |who: &Identity| record.parties().iter().position(|party| *party == who.fingerprint()).unwrap();
    let (registry, hospitals) = (place(&pair.registry), place(&pair.hospitals));
    assert_eq!(record.runs_out(hospitals, AT + HOUR), None);
    let Some(Said::Refuse(reason)) = record.runs_out(hospitals, AT + 25 * HOUR) else {
        panic!("it has run out")
    };
    assert_eq!(reason.code, ClosingCode::Expired);
    pair.say(&mut record, &pair.hospitals, Said::Consent(Box::new(pair.terms())));
    let Some(said @ Said::Withdraw(_)) = record.runs_out(hospitals, AT + 10 * HOUR) else {
        panic!("it ran out")
    };
    pair.say(&mut record, &pair.hospitals, said);
    assert_eq!(record.runs_out(registry, AT + 25 * HOUR), None);
    let words = record.state_words(Naming(&pair.names(&record)));
    assert_eq!(words, "Withdrawn by hospitals (out of time): The consent ran out.");
}

#[test]
fn a_proposal_is_of_a_study_and_its_parties() {
    let pair = Pair::new();
    let wrong = |change: &dyn Fn(&mut StatementBody)| {
        let mut body = pair.first(Said::Propose(Box::new(pair.proposal()))).unwrap().body().clone();
        change(&mut body);
        if let Said::Propose(study) = &body.said {
            body.proposal = ProposalId::of(&body.author, &body.study, study);
        }
        let signed = SignedStatement::sign(body, &pair.registry).unwrap();
        ProposalRecord::open(signed).unwrap_err().to_string()
    };
    let propose = |change: &dyn Fn(&mut ProposedStudy)| {
        wrong(&|body| {
            let Said::Propose(study) = &mut body.said else { panic!("it proposes") };
            change(study);
        })
    };
    let text = propose(&|study| study.text = study.text.replace("format", "# said\nformat"));
    assert!(text.contains("canonical form"), "{text}");
    let text = propose(&|study| study.text = study.text.replace("name = \"", "name = \"x"));
    assert!(text.contains("the proposed study has the hash"), "{text}");
    let text = propose(&|study| study.expires_ms = AT + 91 * 24 * HOUR);
    assert!(text.contains("expires after it is made and within 90 days"), "{text}");
    let strange = Identity::generate().unwrap().fingerprint();
    let text = wrong(&|body| body.recipients = vec![strange]);
    assert!(text.contains("other parties than those who are told"), "{text}");
    let text = wrong(&|body| body.said = Said::Note("no".to_owned()));
    assert!(text.contains("the first statement"), "{text}");
}

#[test]
fn limits_hold_at_the_cap_and_beyond() {
    let pair = Pair::new();
    let long = |chars| pair.first(Said::Note("é".repeat(chars)));
    assert!(long(TEXT_CHARS).is_ok() && long(TEXT_CHARS + 1).is_err() && long(0).is_err());
    for (runs, persons, takes) in [(5, 2, true), (6, 1, false), (0, 1, false), (1, 3, false), (1, 0, true)] {
        let said = Said::Consent(Box::new(ConsentTerms { runs, persons, ..pair.terms() }));
        assert_eq!(pair.first(said).is_ok(), takes, "{runs} {persons}");
    }
    for (rho, takes) in
        [("1/10", true), ("2/20", false), ("0.1", false), ("-1/10", false), ("1", true), ("", false)]
    {
        let mut terms = pair.terms();
        terms.charges[0].rho = rho.to_owned();
        assert_eq!(pair.first(Said::Consent(Box::new(terms))).is_ok(), takes, "{rho}");
    }
    let spans = |spans: &[[u64; 2]]| {
        let windows =
            spans.iter().map(|[from_ms, until_ms]| RunWindow { from_ms: *from_ms, until_ms: *until_ms });
        pair.first(Said::Consent(Box::new(ConsentTerms { windows: windows.collect(), ..pair.terms() })))
            .is_ok()
    };
    assert!(
        spans(&[[1, 2], [3, 4]])
            && !spans(&[[2, 1]])
            && !spans(&[[1, 3], [2, 4]])
            && !spans(&[[3, 4], [1, 2]])
    );
    for (run, takes) in [(1, true), (RUNS_IN_ALL, true), (0, false), (RUNS_IN_ALL + 1, false)] {
        assert_eq!(pair.first(Said::Asks { run }).is_ok(), takes, "{run}");
    }
    // An error's message cannot come through: a code has no space.
    let told = RunEnd { code: "/srv/data is missing".to_owned(), ..ended(1, RunOutcome::Failed) };
    assert!(pair.first(Said::Ended(told)).is_err());
}

#[test]
fn the_wire_is_pinned() {
    let mut all = blake3::Hasher::new();
    bodies().iter().for_each(|body| _ = all.update(&body.encode()));
    let consent = bodies().remove(1);
    let Said::Consent(terms) = &consent.said else { panic!("the second consents") };
    let short = |bytes: &[u8; 32]| base::hex(&bytes[..8]);
    pinned(&[
        ("statements, one of each kind", short(all.finalize().as_bytes()), "a66a797b9cfd916a"),
        ("statements, digest of a consent", short(&consent.digest()), "493555663c0b0877"),
        (
            "statements, what a steward signs",
            short(blake3::hash(&ConsentRequest::of(&consent, terms).bytes()).as_bytes()),
            "1f248499d0861f38",
        ),
    ]);
}

proptest! {
    #[test]
    fn a_statement_has_one_form(which in 0..10usize, at: prop::sample::Index, mask in 1u8..) {
        let body = bodies().remove(which);
        let bytes = body.encode();
        prop_assert_eq!(StatementBody::decode(&bytes), Some(body.clone()));
        let mut bent = bytes.clone();
        bent[at.index(bytes.len())] ^= mask;
        if let Some(other) = StatementBody::decode(&bent) {
            prop_assert!(other != body && other.encode() == bent);
        }
        prop_assert_eq!(StatementBody::decode(&bytes[..bytes.len() - 1]), None);
        prop_assert_eq!(StatementBody::decode(&[&bytes[..], &[0]].concat()), None);
    }
}

/// A statement that a key signed which nobody has any more: its bytes and its signature hold for ever.
#[test]
fn a_statement_of_before_is_read() {
    let digits = [
        "010007010101010101010101010101010101010101010101010101010101010101010102020202020202020202020202",
        "020202ef84a8114d0a244d343bea7da5ae588a373dac4310d94a07f49b29eb7cb47b9502040404040404040404040404",
        "040404040505050505050505050505050505050501000000060606060606060606060606060606060606060606060606",
        "060606060606060607070707070707070707070707070707070707070707070707070707070707070800000000000000",
        "02000000020b0000006368616e6e656c2d6375740b0000006368616e6e656c2d63757401060606060606060606060606",
        "060606060606060606060606060606060606060604000000312f3130010000003061e88449f09dd5fee773fa30ca436e",
        "56dec8ccc880a03e497b9a1c710592dcb717da7919d2fa083e5acd7ccd176ad34dae59de951a05895a86b7b9feb39a07",
        "0e",
    ]
    .concat();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let bytes: Vec<u8> = digits.as_bytes().chunks(2).map(byte).collect();
    let statement = SignedStatement::read(&bytes).unwrap();
    assert_eq!(statement.bytes(), bytes);
    assert_eq!(statement.body().said, Said::Ended(ended(2, RunOutcome::Failed)));
    for at in 0..bytes.len() {
        let mut bent = bytes.clone();
        bent[at] ^= 4;
        assert!(SignedStatement::read(&bent).is_err(), "byte {at}");
    }
}

//! What the crate `fuzzing` feeds with bytes, and what tests begin with: one statement of each kind.

use crate::body::{ProposalId, StatementBody};
use crate::said::{
    ChargeBound, ClosingCode, ClosingReason, ConsentTerms, DebitLine, ProposedStudy, RunEnd, RunOffer,
    RunWindow, Said,
};
use crate::signed::SignedStatement;
use crate::{ConsentRequest, RunOutcome, commit_to_data, digest_of_words};
use net::identity::KeyFingerprint;
use study::StudyHash;

/// A statement without its signature, which no fuzzer makes; and one with. What decodes encodes to the same
/// bytes.
pub fn statement(bytes: &[u8]) {
    if let Some(body) = StatementBody::decode(bytes) {
        assert!(body.encode() == bytes, "another form of {body:?}");
    }
    let _ = SignedStatement::read(bytes);
}

/// What is carried to a steward's key.
pub fn request(bytes: &[u8]) {
    if let Some(request) = ConsentRequest::read(bytes) {
        assert!(request.bytes() == bytes, "another form of {request:?}");
    }
}

/// Inputs to begin with: of [`statement`], and of [`request`].
#[must_use]
pub fn seeds() -> [Vec<Vec<u8>>; 2] {
    let request = |body: &StatementBody| match &body.said {
        Said::Consent(terms) => Some(ConsentRequest::of(body, terms).bytes()),
        _ => None,
    };
    let bodies = bodies();
    [bodies.iter().map(StatementBody::encode).collect(), bodies.iter().filter_map(request).collect()]
}

pub(crate) fn ended(run: u32, outcome: RunOutcome) -> RunEnd {
    let code = if outcome.has_answer() { "" } else { "channel-cut" };
    let debit = DebitLine { release: [6; 32], rho: "1/10".to_owned(), delta: "0".to_owned() };
    RunEnd { run, outcome, kind: code.to_owned(), code: code.to_owned(), debits: vec![debit] }
}

/// One of each kind, under fixed names.
pub(crate) fn bodies() -> Vec<StatementBody> {
    let reason = || ClosingReason { code: ClosingCode::Budget, text: "too dear".to_owned() };
    let window = RunWindow { from_ms: 1, until_ms: 2 };
    let said = [
        Said::Propose(Box::new(ProposedStudy {
            text: "name = \"x\"\n".to_owned(),
            program: [2; 32],
            note: String::new(),
            expires_ms: 3,
            windows: vec![window],
            nonce: [3; 16],
        })),
        Said::Consent(Box::new(ConsentTerms {
            program: [2; 32],
            charges: vec![ChargeBound { viewer: None, rho: "1/10".to_owned(), delta: "0".to_owned() }],
            words: digest_of_words("words"),
            data: commit_to_data(&[3; 32], &[4; 32], None),
            expires_ms: 5,
            windows: Vec::new(),
            runs: 5,
            persons: 2,
            seal: None,
        })),
        Said::Refuse(reason()),
        Said::Withdraw(reason()),
        Said::Note("why?".to_owned()),
        Said::Ready(RunOffer {
            run: 1,
            goes_on: true,
            nonce: [6; 16],
            earliest_ms: 7,
            latest_ms: 8,
            port: 9,
        }),
        Said::Started { run: 1, nonces: vec![[6; 16], [7; 16]] },
        Said::Ended(ended(2, RunOutcome::Failed)),
        Said::Asks { run: 3 },
        Said::Witness { of: KeyFingerprint::from_bytes([8; 16]), entry: 9, hash: [10; 32] },
    ];
    let body = |said| StatementBody {
        study: StudyHash::from_bytes([1; 32]),
        proposal: ProposalId([2; 16]),
        author: [3; 32],
        recipients: vec![KeyFingerprint::from_bytes([4; 16]), KeyFingerprint::from_bytes([5; 16])],
        number: 1,
        previous: [6; 32],
        seen: [7; 32],
        at_ms: 8,
        said,
    };
    said.into_iter().map(body).collect()
}

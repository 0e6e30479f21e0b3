//! Everything that was said about one proposal: a chain of statements per party.

use crate::acts::{Act, ProposalView, Standing};
use crate::body::{ProposalId, StatementBody};
use crate::guard::Objection;
use crate::said::{ClosingCode, ClosingReason, ConsentTerms, ProposedStudy, RunWindow, Said};
use crate::signed::SignedStatement;
use crate::{CHAIN_STATEMENTS, DAYS};
use base::Error;
use net::identity::{Identity, KeyFingerprint};
use std::fmt;
use study::{Study, StudyFile, StudyHash};

/// What `seen` is a hash for.
const SEEN: &str = "tacit 2026-12 statements seen v1";
const DAY_MS: u64 = 86_400_000;

/// Where a party's chain stands, as one side has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementHead {
    /// Whose.
    pub author: KeyFingerprint,
    /// How many statements there are.
    pub count: u32,
    /// The digest of the last; zeros for none.
    pub digest: [u8; 32],
}

/// What became of a statement that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptStatement {
    /// It is kept; whether it counts.
    New {
        /// It changes what the author's statements come to.
        counts: bool,
    },
    /// It was there.
    Known,
    /// Its author has signed two things that cannot both be: both are kept, and the proposal is frozen here.
    Fork,
}

/// Why a statement is not kept. Nothing changes; whoever sent it is told the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotKept {
    /// It is about another proposal, study or set of parties.
    Other,
    /// Statements before it are missing: send them first, from this number on.
    Gap(u32),
    /// The first statement of a proposal is `propose`, number 0.
    NoProposal,
    /// What is proposed is not a study that these parties can agree on.
    Study(Error),
}

impl NotKept {
    /// What the sender is told.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Gap(_) => "gap",
            Self::NoProposal => "no-proposal",
            Self::Study(_) => "study",
        }
    }
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("it is about another proposal, study or set of parties"),
            Self::Gap(from) => write!(f, "statements before it are missing, from number {from} on"),
            Self::NoProposal => f.write_str("the first statement of a proposal is `propose`, number 0"),
            Self::Study(error) => error.fmt(f),
        }
    }
}

/// One proposal, as one party holds it.
#[derive(Clone, Debug)]
pub struct ProposalRecord {
    id: ProposalId,
    study: StudyHash,
    title: String,
    /// All parties, in ascending order.
    parties: Vec<KeyFingerprint>,
    proposer: usize,
    proposed: ProposedStudy,
    /// By party.
    chains: Vec<Vec<SignedStatement>>,
    /// What each chain comes to.
    standings: Vec<Standing>,
    /// How many statements of each chain do not count.
    uncounted: Vec<u32>,
    /// Two statements each that cannot both be.
    forks: Vec<[SignedStatement; 2]>,
}

impl ProposalRecord {
    /// Begins with the statement that proposes the study.
    ///
    /// # Errors
    /// When it is another statement, its author did not name the proposal, or what it proposes is no study of
    /// these parties.
    pub fn open(first: SignedStatement) -> Result<Self, NotKept> {
        let body = first.body();
        let Said::Propose(proposed) = &body.said else { return Err(NotKept::NoProposal) };
        if body.number != 0 {
            return Err(NotKept::NoProposal);
        }
        let (id, study, parties) = (body.proposal, body.study, first.parties());
        let proposed = (**proposed).clone();
        if id != ProposalId::of(&body.author, &study, &proposed) {
            return Err(NotKept::Other);
        }
        let title = check_study(&proposed.text, &study, &parties).map_err(NotKept::Study)?;
        if !holds_long_enough(proposed.expires_ms, body.at_ms) {
            let text = format!("a proposal expires after it is made and within {DAYS} days");
            return Err(NotKept::Study(Error::input(text)));
        }
        let proposer = place(&parties, &first.author()).ok_or(NotKept::Other)?;
        let mut chains = vec![Vec::new(); parties.len()];
        chains[proposer].push(first);
        let mut standings: Vec<Standing> =
            (0..parties.len()).map(|party| Standing::of([], party == proposer)).collect();
        standings[proposer].take(Act::Propose);
        let (uncounted, forks) = (vec![0; parties.len()], Vec::new());
        Ok(Self { id, study, title, parties, proposer, proposed, chains, standings, uncounted, forks })
    }

    /// The statement by which this identity proposes a study: the first of a proposal, to be given to
    /// [`Self::open`].
    ///
    /// # Errors
    /// When the text is no study of this identity and others, or it cannot sign.
    pub fn propose(
        identity: &Identity,
        at_ms: u64,
        proposed: ProposedStudy,
    ) -> Result<SignedStatement, Error> {
        let file = StudyFile::parse("the study", &proposed.text)?;
        let (study, author) = (file.hash(), identity.public_key()?);
        let mut recipients =
            members(file.first()).map(|key| key.parse()).collect::<Result<Vec<KeyFingerprint>, _>>()?;
        recipients.sort_unstable();
        recipients.dedup();
        recipients.retain(|key| *key != identity.fingerprint());
        let body = StatementBody {
            study,
            proposal: ProposalId::of(&author, &study, &proposed),
            author,
            recipients,
            number: 0,
            previous: [0; 32],
            seen: [0; 32],
            at_ms,
            said: Said::Propose(Box::new(proposed)),
        };
        SignedStatement::sign(body, identity)
    }

    /// The place of a party among [`Self::parties`].
    #[must_use]
    pub fn place(&self, party: &KeyFingerprint) -> Option<usize> {
        place(&self.parties, party)
    }

    /// The place of the party that proposed.
    #[must_use]
    pub fn proposer(&self) -> usize {
        self.proposer
    }

    /// Keeps a statement that came, or that this party made. Again, in any order of authors: the same comes
    /// of it.
    ///
    /// # Errors
    /// Why it is not kept.
    pub fn keep(&mut self, statement: SignedStatement) -> Result<KeptStatement, NotKept> {
        let body = statement.body();
        if (body.proposal, body.study) != (self.id, self.study) || statement.parties() != self.parties {
            return Err(NotKept::Other);
        }
        let author = place(&self.parties, &statement.author()).ok_or(NotKept::Other)?;
        // The name of the proposal is of its author and text: who proposes otherwise proposes another one.
        if let Said::Propose(proposed) = &body.said
            && self.id != ProposalId::of(&body.author, &self.study, proposed)
        {
            return Err(NotKept::Other);
        }
        let chain = &self.chains[author];
        // 128 bits of a key are in its fingerprint: the whole key stays the one of the first statement.
        if chain.first().is_some_and(|first| first.body().author != body.author) {
            return Err(NotKept::Other);
        }
        let (number, length) = (body.number as usize, chain.len());
        if let Some(known) = chain.get(number) {
            return Ok(match known.digest() == statement.digest() {
                true => KeptStatement::Known,
                false => self.fork(author, number, statement),
            });
        }
        if number > length {
            return Err(NotKept::Gap(u32::try_from(length).unwrap_or(CHAIN_STATEMENTS)));
        }
        let before = chain.last().map_or([0; 32], SignedStatement::digest);
        if before != body.previous {
            // It stands on another statement of its author with the number before.
            return Ok(self.fork(author, number.saturating_sub(1), statement));
        }
        let act = self.act(&statement);
        let counts = self.standings[author].take(act);
        self.uncounted[author] += u32::from(!counts);
        self.chains[author].push(statement);
        Ok(KeptStatement::New { counts })
    }

    fn fork(&mut self, author: usize, number: usize, statement: SignedStatement) -> KeptStatement {
        let known = self.chains[author].get(number).cloned();
        let proven = self.forks.iter().any(|[one, _]| one.author() == statement.author());
        // One pair of an author is proof; more would be room that it fills, or takes from others.
        if let Some(known) = known.filter(|_| !proven) {
            self.forks.push([known, statement]);
        }
        KeptStatement::Fork
    }

    /// Makes the next statement of this identity. It is kept, sent and counted only when the caller has
    /// stored it and passes it to [`Self::keep`].
    ///
    /// # Errors
    /// Why it may not be said; or when the identity cannot sign.
    pub fn say(&self, identity: &Identity, at_ms: u64, said: Said) -> Result<SignedStatement, Error> {
        let me = place(&self.parties, &identity.fingerprint());
        let me = me.ok_or_else(|| Error::input("this organisation is no party of the study"))?;
        self.may_say(me, at_ms, &said).map_err(|why| Error::refused(why.to_string()))?;
        let chain = &self.chains[me];
        let body = StatementBody {
            study: self.study,
            proposal: self.id,
            author: identity.public_key()?,
            recipients: self.parties.iter().filter(|party| **party != self.parties[me]).copied().collect(),
            number: u32::try_from(chain.len()).unwrap_or(CHAIN_STATEMENTS),
            previous: chain.last().map_or([0; 32], SignedStatement::digest),
            seen: self.seen(me),
            at_ms,
            said,
        };
        SignedStatement::sign(body, identity)
    }

    fn may_say(&self, me: usize, at_ms: u64, said: &Said) -> Result<(), Objection> {
        if self.is_frozen() {
            return Err(Objection::Frozen);
        }
        let act = match said {
            Said::Consent(terms) if !self.fits(terms, at_ms) => Act::Void,
            said => said.act(),
        };
        if self.has_run_out(me, at_ms, said) {
            return Err(Objection::RanOut);
        }
        if self.is_full(me, said) {
            return Err(Objection::Full);
        }
        self.view().may(me, act)
    }

    /// Whether the time for it is over by the own clock, before anybody has said so.
    fn has_run_out(&self, me: usize, at_ms: u64, said: &Said) -> bool {
        match said {
            Said::Consent(_) => self.proposed.expires_ms <= at_ms,
            Said::Ready(_) | Said::Started { .. } => {
                self.terms(me).is_some_and(|terms| terms.expires_ms <= at_ms)
            }
            _ => false,
        }
    }

    /// What of a statement counts: a consent is to the program that was proposed.
    fn act(&self, statement: &SignedStatement) -> Act {
        match &statement.body().said {
            Said::Consent(terms) if !self.fits(terms, statement.body().at_ms) => Act::Void,
            said => said.act(),
        }
    }

    fn fits(&self, terms: &ConsentTerms, at_ms: u64) -> bool {
        let known = |viewer: &KeyFingerprint| self.parties.contains(viewer);
        terms.program == self.proposed.program
            && terms.charges.iter().all(|charge| charge.viewer.as_ref().is_none_or(known))
            && holds_long_enough(terms.expires_ms, at_ms)
    }

    /// The statements of a party that count, in order.
    pub(crate) fn counted(&self, party: usize) -> impl Iterator<Item = &StatementBody> {
        let mut standing = Standing::of([], party == self.proposer);
        self.chains[party].iter().filter(move |one| standing.take(self.act(one))).map(SignedStatement::body)
    }

    /// What all statements come to.
    #[must_use]
    pub fn view(&self) -> ProposalView {
        ProposalView { standings: self.standings.clone(), frozen: self.is_frozen() }
    }

    /// What stands for everything that a party has of the others.
    fn seen(&self, me: usize) -> [u8; 32] {
        let mut hash = blake3::Hasher::new_derive_key(SEEN);
        for head in self.heads().iter().filter(|head| head.author != self.parties[me]) {
            hash.update(&head.author.bytes()).update(&head.count.to_le_bytes()).update(&head.digest);
        }
        *hash.finalize().as_bytes()
    }

    /// Where each chain stands here: what two sides compare when they meet.
    #[must_use]
    pub fn heads(&self) -> Vec<StatementHead> {
        let head = |(author, chain): (&KeyFingerprint, &Vec<SignedStatement>)| StatementHead {
            author: *author,
            count: u32::try_from(chain.len()).unwrap_or(CHAIN_STATEMENTS),
            digest: chain.last().map_or([0; 32], SignedStatement::digest),
        };
        self.parties.iter().zip(&self.chains).map(head).collect()
    }

    /// Own statements that a peer lacks, which has so many: each side sends its own, and nobody relays.
    #[must_use]
    pub fn after(&self, author: &KeyFingerprint, count: u32) -> &[SignedStatement] {
        let chain = place(&self.parties, author).map_or(&[][..], |place| &self.chains[place]);
        chain.get(count as usize..).unwrap_or_default()
    }

    /// All statements of a party, in order.
    #[must_use]
    pub fn chain(&self, party: usize) -> &[SignedStatement] {
        self.chains.get(party).map_or(&[], |chain| chain)
    }

    /// How many statements of a party do not count. An honest author signs none: it checks before.
    #[must_use]
    pub fn uncounted(&self, party: &KeyFingerprint) -> u32 {
        self.place(party).map_or(0, |place| self.uncounted[place])
    }

    /// Which proposal it is.
    #[must_use]
    pub fn id(&self) -> ProposalId {
        self.id
    }

    /// The hash of the study.
    #[must_use]
    pub fn study(&self) -> StudyHash {
        self.study
    }

    /// The title of the study.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What is proposed.
    #[must_use]
    pub fn proposed(&self) -> &ProposedStudy {
        &self.proposed
    }

    /// All parties, in the order of their places.
    #[must_use]
    pub fn parties(&self) -> &[KeyFingerprint] {
        &self.parties
    }

    /// The parties that take part with data of their own; servers apart from them see shares.
    #[must_use]
    pub fn owners(&self) -> Vec<KeyFingerprint> {
        if self.parties.len() == 2 {
            return self.parties.clone();
        }
        let file = StudyFile::parse("the proposed study", &self.proposed.text);
        let owners = file.map(|file| file.parties).unwrap_or_default();
        owners.iter().filter_map(|party| party.key.parse().ok()).collect()
    }

    /// The servers that would compute it, owners with a seat among them; none where parties compute it
    /// themselves.
    #[must_use]
    pub fn servers(&self) -> Vec<KeyFingerprint> {
        // Four seats, of which owners may have some.
        if self.parties.len() < 4 {
            return Vec::new();
        }
        let Ok(file) = StudyFile::parse("the proposed study", &self.proposed.text) else { return Vec::new() };
        let servers = file.first().servers.iter().flat_map(|servers| &servers.members);
        servers.filter_map(|server| server.key.parse().ok()).collect()
    }

    /// Whether somebody has signed two things that cannot both be. Nothing more is said then.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        !self.forks.is_empty()
    }

    /// The evidence: two statements each of one author that cannot both be, both signed.
    #[must_use]
    pub fn forks(&self) -> &[[SignedStatement; 2]] {
        &self.forks
    }

    /// The terms of a party's consent.
    #[must_use]
    pub fn terms(&self, party: usize) -> Option<&ConsentTerms> {
        let mut said = self.counted(party).map(|body| &body.said);
        said.find_map(|said| if let Said::Consent(terms) = said { Some(&**terms) } else { None })
    }

    /// When runs may begin by all consents: spans in which nobody says no. None: at any time.
    #[must_use]
    pub fn windows(&self) -> Option<Vec<RunWindow>> {
        let asked = (0..self.parties.len()).filter_map(|party| self.terms(party)).map(|terms| &terms.windows);
        let mut common: Option<Vec<RunWindow>> = None;
        for windows in asked.filter(|windows| !windows.is_empty()) {
            common = Some(match common {
                None => windows.clone(),
                Some(before) => {
                    before.iter().flat_map(|one| windows.iter().filter_map(|w| both(one, w))).collect()
                }
            });
        }
        common
    }

    /// What this party has to say because its own proposal or consent has run out: from then on it is a fact
    /// for everybody, whatever clocks say.
    #[must_use]
    pub fn runs_out(&self, party: usize, now_ms: u64) -> Option<Said> {
        let (text, closing): (_, fn(ClosingReason) -> Said) = match self.terms(party) {
            Some(terms) if terms.expires_ms <= now_ms => ("The consent ran out.", Said::Withdraw),
            None if self.proposed.expires_ms <= now_ms => ("The proposal ran out.", Said::Refuse),
            _ => return None,
        };
        let said = closing(ClosingReason { code: ClosingCode::Expired, text: text.to_owned() });
        // A run that is under way is not broken off by the clock; nor is one that waits for its peer.
        if self.standings[party].is_in_a_run() || self.may_say(party, now_ms, &said).is_err() {
            return None;
        }
        Some(said)
    }
}

fn place(parties: &[KeyFingerprint], party: &KeyFingerprint) -> Option<usize> {
    parties.binary_search(party).ok()
}

fn holds_long_enough(expires_ms: u64, at_ms: u64) -> bool {
    expires_ms > at_ms && expires_ms - at_ms <= DAYS * DAY_MS
}

fn both(one: &RunWindow, other: &RunWindow) -> Option<RunWindow> {
    let (from_ms, until_ms) = (one.from_ms.max(other.from_ms), one.until_ms.min(other.until_ms));
    (from_ms < until_ms).then_some(RunWindow { from_ms, until_ms })
}

/// The title of a study, if the text is that of this hash, in its one form, of these parties.
fn check_study(text: &str, hash: &StudyHash, parties: &[KeyFingerprint]) -> Result<String, Error> {
    let name = "the proposed study";
    let file = StudyFile::parse(name, text)?;
    if study::canonical(name, text)? != text {
        return Err(Error::input(
            "the proposed study is not in its canonical form: what people read is one text",
        ));
    }
    if file.hash() != *hash {
        return Err(Error::input(format!("the proposed study has the hash {}, not {hash}", file.hash())));
    }
    let runs = file.runs.len();
    if runs > 1 {
        return Err(Error::input(format!(
            "the proposed study asks for {runs} runs, one with each advertiser: propose one study with each"
        )));
    }
    let mut keys =
        members(file.first()).map(|key| key.parse()).collect::<Result<Vec<KeyFingerprint>, _>>()?;
    keys.sort_unstable();
    keys.dedup();
    if keys == parties {
        return Ok(file.first().title.clone());
    }
    Err(Error::input("the proposed study has other parties than those who are told of it"))
}

/// The keys of all who take part, servers included.
fn members(study: &Study) -> impl Iterator<Item = &str> {
    let servers = study.servers.iter().flat_map(|servers| &servers.members).map(|server| server.key.as_str());
    study.parties.iter().map(|party| party.key.as_str()).chain(servers)
}

//! The first words of a session: programs, data-set tags, what each side's ledger says of itself and of the
//! other, and whether all sides already hold the answer.
//!
//! | | to each other owner | bytes |
//! |---|---|---|
//! | 0 | how many keys came before this party's own, and what each signed for the next | 1 and 136 each |
//! | 1 | program, tag of this party's data towards the peer, random number, kept spine, tag of its data towards all, signed statement of this party's ledger, how many entries of the peer's it knows | 328 |
//! | 2 | answer stored, outputs kept, the attempt of each of two releases, the hash of this party's chain at the peer's number, the stored answer of an older version | 73 |
//! | 3 | whether this side's ledger allows the study; the peer's own last statement, where its ledger is another one | 161 |
//!
//! Not priced: it is the same for every study.

use super::owner::OwnerRun;
use super::ready;
use super::ready::heard;
use super::spine::Name;
use super::{Event, Watch};
use crate::prepare::Checked;
use base::{Error, PartyId};
use net::Session;
use net::identity::Identity;
use net::succession::{SUCCESSION_BYTES, SUCCESSIONS, Succession};
use privacy::ledger::{
    ATTEMPTS_AHEAD, AnswerKey, Bytes32, ChainMismatch, Held, Ledger, PeerLineage, STATEMENT_BYTES, Statement,
    TranscriptStage, release_id, tag_towards,
};
use program::Viewer;
use release::choose::CutAndChooseSide;
use std::sync::{Mutex, MutexGuard};

/// What all sides now know.
pub(super) struct Agreement {
    /// Tags of the data sets, in party order. Of two parties each is the one that its owner told the other:
    /// equal for equal data of one party, and nothing else can be read off them. Among more a party's own is
    /// its own alone.
    pub tags: Vec<Bytes32>,
    /// Where this party's answer is stored.
    pub answer: AnswerKey,
    /// This party's stored answer.
    pub stored: Option<String>,
    /// Whether all have theirs: then there is nothing to run.
    pub all_stored: bool,
    /// Names a match of this run, should it be kept: made of random numbers of all parties.
    pub name: Name,
    /// Peers whose ledger is not the one that it was, and the last statement that this party keeps of each.
    pub changed: Vec<(PartyId, ChainMismatch, Statement)>,
    /// How many entries this party said that its chain with each peer has.
    pub counts: Vec<(PartyId, u64)>,
    /// Which attempt of each party's view of the two is run.
    pub attempts: [u32; 2],
    /// Whether each viewer of the two has its outputs: then nothing of that release is run, or charged.
    pub done: [bool; 2],
    /// Study and data of all parties, by names that are the same at all.
    pub common: Bytes32,
    study: Bytes32,
}

impl Agreement {
    /// Names one viewer's release of candidates: the same study and data give the same name on every run, so
    /// that a rerun continues the same release and is not charged twice.
    pub fn release_id(&self, viewer: PartyId) -> Bytes32 {
        release_id(&self.study, &self.tags, viewer.into())
    }

    /// Names a release whose noise is drawn inside, at all parties alike.
    pub fn number_id(&self, viewer: Viewer) -> Bytes32 {
        number_id(&self.common, viewer)
    }
}

/// Names the release to a viewer of what all know as `common`.
pub(crate) fn number_id(common: &Bytes32, viewer: Viewer) -> Bytes32 {
    blake3::derive_key("tacit release 2", &[&common[..], &[viewer.number()]].concat())
}

/// The answer of this study is stored here.
const STORED: u8 = 1;
/// The outputs of this party's view are kept here.
const HELD: u8 = 2;

/// What a party says second.
struct Second {
    flags: u8,
    attempts: [u32; 2],
    hash: Bytes32,
    /// Of the newest answer of a version before peer-by-peer tags.
    old: Bytes32,
}

const SECOND_BYTES: usize = 1 + 8 + 32 + 32;

impl Second {
    fn bytes(&self) -> [u8; SECOND_BYTES] {
        let [a, b] = self.attempts.map(u32::to_le_bytes);
        let all = [&[self.flags], &a[..], &b, &self.hash, &self.old].concat();
        all.try_into().expect("the parts add up")
    }

    fn read(bytes: &[u8; SECOND_BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let hash = |at: usize| bytes[at..at + 32].try_into().expect("32 bytes");
        Self { flags: bytes[0], attempts: [word(1), word(5)], hash: hash(9), old: hash(41) }
    }
}

/// What this party heard first of a peer.
struct First {
    peer: PartyId,
    statement: Statement,
    /// How many entries of this party's chain the peer knows.
    knows: u64,
    held: Held,
    /// How many entries this party said that its chain has.
    count: u64,
}

const FIRST_BYTES: usize = 5 * 32 + STATEMENT_BYTES + 8;

/// First words of all peers, the tags of all data, and the names of a match and of what is released.
type Heard = (Vec<First>, Vec<Bytes32>, [Name; 2]);

/// What this party brings to the first words.
struct Own<'a> {
    checked: &'a Checked,
    ledger: &'a Mutex<Ledger>,
    identity: &'a Identity,
    lineage: &'a str,
    /// Of its data, towards nobody.
    data_tag: Bytes32,
    /// Zeros for none: no spine is kept under that name.
    spine: Name,
    /// Who is told what a peer's keys are.
    watch: &'a Watch,
}

/// The name of a party's data in answers and charges: of two parties the one that the other is told, among
/// more its own alone.
pub(crate) fn own_tag(checked: &Checked, data_tag: &Bytes32) -> Bytes32 {
    let Checked { study, me, roster, .. } = checked;
    let to = if roster.len() == 2 { me.other() } else { *me };
    tag_towards(data_tag, &study.parties[to.index()].key)
}

impl OwnerRun<'_> {
    /// The first two messages. `spine` names the kept spine that this party uses.
    pub(super) fn agree(&mut self, spine: Option<Name>) -> Result<Agreement, Error> {
        let data_tag = self.checked.data_tag(&*self.lock()?)?;
        let own = Own {
            checked: self.checked,
            ledger: &self.ledger,
            identity: &self.checked.identity,
            lineage: self.party.lineage.as_deref().unwrap_or_default(),
            data_tag,
            spine: spine.unwrap_or_default(),
            watch: self.watch,
        };
        self.session.step("agree", |session| {
            let (firsts, tags, names) = own.first(session)?;
            own.second(session, &firsts, tags, names)
        })
    }
}

/// What [`OwnerRun::agree`] says and hears, without a run around it: for the crate `fuzzing`.
pub(super) fn first_words(
    session: &mut Session,
    checked: &Checked,
    identity: &Identity,
    ledger: &Mutex<Ledger>,
) -> Result<(), Error> {
    let (data_tag, spine) = ([5; 32], Name::default());
    let watch = &Watch::none();
    let own = Own { checked, ledger, identity, lineage: "lineage", data_tag, spine, watch };
    session.step("agree", |session| {
        let (firsts, tags, names) = own.first(session)?;
        own.second(session, &firsts, tags, names).map(|_| ())
    })
}

impl Own<'_> {
    fn lock(&self) -> Result<MutexGuard<'_, Ledger>, Error> {
        self.ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))
    }

    fn key(&self, party: PartyId) -> &str {
        &self.checked.study.parties[party.index()].key
    }

    /// The other of two parties; none among more.
    fn other(&self) -> Option<PartyId> {
        (self.checked.roster.len() == 2).then(|| self.checked.me.other())
    }

    /// The keys that came before those of the peers: what was counted for them counts for these.
    fn lines(&self, session: &mut Session, owners: &[PartyId]) -> Result<(), Error> {
        let mine = self.identity.line();
        let count = u8::try_from(mine.len()).map_err(|_| Error::misuse("an identity was read"))?;
        for peer in owners {
            session.link(*peer).send(&[count])?;
            mine.iter().try_for_each(|one| session.link(*peer).send(&one.bytes()))?;
            session.link(*peer).flush()?;
        }
        for peer in owners {
            let [count] = session.link(*peer).recv_array()?;
            if usize::from(count) > SUCCESSIONS {
                return Err(session.link(*peer).malformed("how many keys it had before"));
            }
            let mut line = Vec::with_capacity(count.into());
            for _ in 0..count {
                let said = session.link(*peer).recv_array::<SUCCESSION_BYTES>()?;
                let one = Succession::read(&said);
                line.push(
                    one.ok_or_else(|| session.link(*peer).malformed("that one key takes another's place"))?,
                );
            }
            if !Succession::lead_to(&line, self.key(*peer).parse()?) {
                return Err(session
                    .link(*peer)
                    .blame("what its earlier keys signed does not lead to its key"));
            }
            for one in &line {
                if self.lock()?.succeed(one)? {
                    (self.watch.events)(Event::Note(format!(
                        "the key {} of {} has taken the place of {}, which signed that: what that one has \
                         spent counts for both",
                        one.new_key(),
                        self.checked.study.parties[peer.index()].name,
                        one.old()
                    )));
                }
            }
        }
        Ok(())
    }

    /// The first message, and what follows from it.
    fn first(&self, session: &mut Session) -> Result<Heard, Error> {
        let owners = others_of(self.checked);
        self.lines(session, &owners)?;
        ready::in_place(&*self.lock()?, &self.checked.study)?;
        let program = self.checked.built.program.hash();
        let mut tags = vec![own_tag(self.checked, &self.data_tag); self.checked.roster.len()];
        let nonce: Bytes32 = session.fork_seed("name of a match").into_rng().bytes();
        let mut nonces = vec![nonce; tags.len()];
        // What all are told is of this study alone, so that it tells of no other.
        let data = tag_towards(&self.data_tag, &self.checked.hash.full());
        let mut all_data = vec![data; tags.len()];
        let me_key = self.identity.fingerprint();
        let held: Vec<Held> =
            owners.iter().map(|peer| self.lock()?.held(self.key(*peer), me_key)).collect::<Result<_, _>>()?;
        let knows = |peer| {
            let held = owners.iter().position(|owner| *owner == peer).and_then(|at| held[at].as_ref());
            held.map_or(0, |held| held.head.count)
        };
        // As the statements below have it: what is kept of this meeting makes it more.
        let count = |peer: &PartyId| Ok::<_, Error>(self.lock()?.chain(self.key(*peer))?.count);
        let counts = owners.iter().map(count).collect::<Result<Vec<_>, _>>()?;
        let mine = |peer: PartyId| {
            let key = self.key(peer);
            let statement = self.lock()?.statement(self.identity, key.parse()?)?;
            let hashes = [program, tag_towards(&self.data_tag, key), nonce, self.spine, data].concat();
            let all = [&hashes[..], &statement.bytes(), &knows(peer).to_le_bytes()].concat();
            Ok(<[u8; FIRST_BYTES]>::try_from(all).expect("the parts add up"))
        };
        let mut firsts = Vec::with_capacity(owners.len());
        for ((peer, theirs), held) in tell_each(session, &owners, mine)?.into_iter().zip(held) {
            let (hashes, rest) = theirs.split_at(5 * 32);
            let (statement, knows) = rest.split_at(STATEMENT_BYTES);
            let hash = |at: usize| &hashes[32 * at..32 * (at + 1)];
            same_spine(session, peer, self.spine, hash(3))?;
            if *hash(0) != program {
                return Err(Error::input(
                    "the parties built different programs from the same study: they run different versions \
                     of tacit",
                ));
            }
            tags[peer.index()].copy_from_slice(hash(1));
            nonces[peer.index()].copy_from_slice(hash(2));
            all_data[peer.index()].copy_from_slice(hash(4));
            let statement = heard(session, peer, self.key(peer), self.identity, statement)?;
            let knows = u64::from_le_bytes(knows.try_into().expect("eight bytes"));
            firsts.push(First { peer, statement, knows, held, count: counts[firsts.len()] });
        }
        let study = self.checked.hash.as_bytes();
        let name = blake3::derive_key("tacit spine 1", &[&study[..], nonces.as_flattened()].concat());
        let all_data = all_data.as_flattened();
        let common = blake3::derive_key("tacit released data 1", &[&study[..], &program, all_data].concat());
        Ok((firsts, tags, [name, common]))
    }

    /// The second message, and what follows from both.
    fn second(
        &self,
        session: &mut Session,
        firsts: &[First],
        tags: Vec<Bytes32>,
        [name, common]: [Name; 2],
    ) -> Result<Agreement, Error> {
        let (me, owners) = (self.checked.me, others_of(self.checked));
        let study = *self.checked.hash.as_bytes();
        let program = self.checked.built.program.hash();
        let answer =
            AnswerKey { study, program, my_tag: tags[me.index()], peer_tag: others(&tags, me), party: me };
        let mut stored = self.lock()?.answer(&answer)?;
        let old = match (self.other(), &stored) {
            (Some(_), None) => self.lock()?.old_answer(&study, &self.data_tag, me)?,
            _ => None,
        };
        let old_id = old.as_ref().map_or([0; 32], |(key, _)| old_id(key));
        let held =
            self.other().is_some() && self.lock()?.outputs(&release_id(&study, &tags, me.into()))?.is_some();
        let mut attempts = self.attempts(&study, &tags)?;
        let flags = if stored.is_some() { STORED } else { 0 } | if held { HELD } else { 0 };
        let mine = |peer: PartyId| {
            let knows = firsts.iter().find(|first| first.peer == peer).map_or(0, |first| first.knows);
            let hash = self.lock()?.hash_at(self.key(peer), knows)?;
            Ok(Second { flags, attempts, hash, old: old_id }.bytes())
        };
        let mut all_stored = stored.is_some();
        let mut same_old = old.is_some();
        let mut over = [false; 2];
        let mut changed = Vec::new();
        for ((peer, theirs), first) in tell_each(session, &owners, mine)?.into_iter().zip(firsts) {
            let theirs = Second::read(&theirs);
            all_stored &= theirs.flags & STORED != 0;
            same_old &= theirs.old == old_id;
            let towards = PeerLineage { peer: self.key(peer).to_owned(), lineage: self.lineage.to_owned() };
            changed.extend(self.mismatch(&towards, first, &theirs.hash)?);
            if self.other().is_some() {
                let release = release_id(&study, &tags, peer.into());
                let done = theirs.flags & (STORED | HELD) != 0;
                (over[me.index()], over[peer.index()]) = (held, done);
                self.take_attempts(session, peer, (&mut attempts, theirs.attempts), over)?;
                self.end(&release, &towards, done)?;
            }
        }
        if let (true, Some((_, report))) = (same_old, old) {
            (stored, all_stored) = (Some(report), true);
        }
        let counts = firsts.iter().map(|first| (first.peer, first.count)).collect();
        let done = over;
        Ok(Agreement {
            tags,
            answer,
            stored,
            all_stored,
            name,
            changed,
            counts,
            attempts,
            done,
            common,
            study,
        })
    }

    /// How a peer's ledger, by its statement and the hash of its chain, is not the one that it was, and the
    /// last statement that this party keeps of it; none where it is.
    fn mismatch(
        &self,
        towards: &PeerLineage,
        first: &First,
        hash: &Bytes32,
    ) -> Result<Option<(PartyId, ChainMismatch, Statement)>, Error> {
        let me_key = self.identity.fingerprint();
        let met = self.lock()?.met(towards, me_key, &first.statement, &first.held, hash)?;
        Ok(met.zip(first.held.clone()).map(|(mismatch, held)| (first.peer, mismatch, held)))
    }

    /// The attempt that this side would run of each of two parties' views.
    fn attempts(&self, study: &Bytes32, tags: &[Bytes32]) -> Result<[u32; 2], Error> {
        if self.other().is_none() {
            return Ok([0; 2]);
        }
        let next = |viewer| self.lock()?.next_attempt(&release_id(study, tags, PartyId(viewer).into()));
        Ok([next(0)?, next(1)?])
    }

    /// The attempts to run: the larger of both sides', where the viewer has no outputs yet. So one side alone
    /// can go on after its operator allowed it; each further attempt is new noise, charged again.
    fn take_attempts(
        &self,
        session: &mut Session,
        peer: PartyId,
        (mine, theirs): (&mut [u32; 2], [u32; 2]),
        over: [bool; 2],
    ) -> Result<(), Error> {
        for viewer in [0, 1] {
            if over[viewer] {
                continue;
            }
            if theirs[viewer] > mine[viewer].saturating_add(ATTEMPTS_AHEAD) {
                return Err(session.link(peer).malformed("the attempt of a release"));
            }
            mine[viewer] = mine[viewer].max(theirs[viewer]);
        }
        Ok(())
    }

    /// Where the viewer says that it has the outputs, the drawer's side of the release has ended as well.
    fn end(&self, release: &Bytes32, towards: &PeerLineage, done: bool) -> Result<(), Error> {
        let mut ledger = self.lock()?;
        let named = ledger
            .transcript(release, CutAndChooseSide::Drawer)?
            .is_some_and(|t| TranscriptStage::of(&t) >= TranscriptStage::Named);
        let attempt = ledger.attempt(release)?;
        if done && named { ledger.store_outputs(release, attempt, &towards.peer, &[]) } else { Ok(()) }
    }
}

/// Names an answer of a version before peer-by-peer tags: the same at both parties.
fn old_id(key: &AnswerKey) -> Bytes32 {
    let mut tags = [key.my_tag, key.peer_tag];
    if key.party != PartyId(0) {
        tags.reverse();
    }
    blake3::derive_key("tacit old answer 1", &[key.study, key.program, tags[0], tags[1]].concat())
}

/// Whether a peer uses the same kept spine as this party, or none either.
fn same_spine(session: &Session, peer: PartyId, mine: Name, theirs: &[u8]) -> Result<(), Error> {
    let name = session.roster().name(peer);
    let none = Name::default();
    if mine == theirs {
        return Ok(());
    }
    Err(Error::input(if mine == none {
        format!(
            "{name} uses a kept spine and this party does not: all use that of one match, or none (`spine`)"
        )
    } else if theirs == none {
        format!(
            "this party uses a kept spine and {name} does not: all use that of one match, or none (`spine`)"
        )
    } else {
        format!(
            "the kept spine of {name} is of another match than this party's: use those of one, or match again"
        )
    }))
}

/// One tag for the data of all other parties: of two parties, the peer's.
fn others(tags: &[[u8; 32]], me: PartyId) -> [u8; 32] {
    let others: Vec<[u8; 32]> =
        tags.iter().enumerate().filter(|(i, _)| *i != me.index()).map(|(_, tag)| *tag).collect();
    if let [other] = others[..] {
        return other;
    }
    let mut hasher = blake3::Hasher::new_derive_key("tacit data of the other parties 1");
    others.iter().for_each(|tag| _ = hasher.update(tag));
    *hasher.finalize().as_bytes()
}

/// Says the same to all peers and hears as much from each, in party order.
pub(crate) fn tell_all<const N: usize>(
    session: &mut Session,
    mine: [u8; N],
) -> Result<Vec<(PartyId, [u8; N])>, Error> {
    let peers: Vec<PartyId> = session.roster().parties().filter(|p| *p != session.me()).collect();
    tell(session, &peers, mine)
}

/// Says the same to some peers and hears as much from each, in their order.
pub(crate) fn tell<const N: usize>(
    session: &mut Session,
    peers: &[PartyId],
    mine: [u8; N],
) -> Result<Vec<(PartyId, [u8; N])>, Error> {
    tell_each(session, peers, |_| Ok(mine))
}

/// Says something to each of some peers and hears as much from each, in their order.
pub(super) fn tell_each<const N: usize>(
    session: &mut Session,
    peers: &[PartyId],
    mine: impl Fn(PartyId) -> Result<[u8; N], Error>,
) -> Result<Vec<(PartyId, [u8; N])>, Error> {
    for peer in peers {
        let mine = mine(*peer)?;
        session.link(*peer).send(&mine)?;
        session.link(*peer).flush()?;
    }
    peers.iter().map(|peer| Ok((*peer, session.link(*peer).recv_array()?))).collect()
}

/// The other parties of a study: servers that own nothing are none.
pub(super) fn others_of(checked: &Checked) -> Vec<PartyId> {
    checked.roster.parties().filter(|party| *party != checked.me).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::cluster::pinned;

    /// What of the first words is neither hashed nor signed; a statement is pinned by its crate.
    #[test]
    fn the_wire_is_pinned() {
        let second = Second { flags: STORED | HELD, attempts: [1, 2], hash: [3; 32], old: [4; 32] };
        let said = second.bytes();
        assert_eq!(Second::read(&said).bytes(), said);
        pinned(&[(
            "ledger, second words",
            blake3::hash(&said).to_hex()[..16].to_owned(),
            "551d146fd544ae31",
        )]);
        assert_eq!([1 + FIRST_BYTES + SECOND_BYTES, STATEMENT_BYTES], [402, 160]);
    }
}

//! One connection: what waits is sent, what comes is kept and answered.

use super::board::{NO_PEER, PeerCost, TakenLink};
use super::keys::speaking;
use super::wire::{HEADS, LinkMessage, MESSAGE_BYTES};
use super::{now_ms, otherwise, peer_of};
use crate::store::{Absorbed, PeerSender, SERVICE, Speaker};
use crate::web::House;
use base::Error;
use futures_util::future::{Either, select};
use net::KeyFingerprint;
use statements::{ProposalId, Said, SignedStatement, StatementHead};
use std::collections::{HashMap, HashSet};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsStream;

/// How often clocks are compared.
const PING: Duration = Duration::from_secs(30);
/// Without a message for so long the other side is gone.
const SILENCE: Duration = Duration::from_secs(100);
/// How long it may take to say that a connection ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often chains are compared, beside at every connection.
const COMPARE: Duration = Duration::from_secs(300);
/// How long an acknowledgement is waited for before a statement is sent again.
const AGAIN: Duration = Duration::from_secs(30);
/// Statements on their way at once.
const ON_THE_WAY: u32 = 32;
/// How long a peer is asked to wait, in seconds, that sends much that is not kept.
const REFUSED_PAUSE: u32 = 60;
/// Statements at most that a peer is sent back at once which it has lost.
const LOST: usize = 200;
/// Bytes of them, beyond which none of a further proposal are.
const LOST_BYTES: usize = 1 << 20;
/// Messages of a peer that are taken without a pause, and the pause for each beyond.
const BURST: u32 = 200;
const PAUSE: Duration = Duration::from_millis(20);

/// Speaks until the connection ends; why it did.
pub async fn talk(
    house: Arc<House>,
    peer: KeyFingerprint,
    link: TakenLink,
    stream: TlsStream<TcpStream>,
) -> String {
    let TakenLink { connection, place } = link;
    let (reader, writer) = tokio::io::split(stream);
    let (out, queue) = mpsc::channel(64);
    let speaker = Arc::new(LinkSpeaker { house, peer, connection, out });
    let mut writing = tokio::spawn(write(writer, queue));
    let sending = tokio::spawn(send(speaker.clone()));
    let reading = pin!(read(&speaker, reader));
    let why = match select(reading, select(&mut writing, place)).await {
        Either::Left((Err(error), _)) => error.to_string(),
        Either::Right((Either::Left(_), _)) => "the peer does not take what is sent".to_owned(),
        Either::Left((Ok(()), _)) | Either::Right(_) => "another connection took its place".to_owned(),
    };
    sending.abort();
    writing.abort();
    why
}

struct LinkSpeaker {
    house: Arc<House>,
    peer: KeyFingerprint,
    connection: u64,
    out: mpsc::Sender<LinkMessage>,
}

async fn write(mut to: WriteHalf<TlsStream<TcpStream>>, mut queue: mpsc::Receiver<LinkMessage>) {
    while let Some(message) = queue.recv().await {
        let bytes = message.encode();
        let length = (bytes.len() as u64).to_le_bytes();
        // A peer that does not read is gone for us.
        let sent = async {
            to.write_all(&length).await?;
            to.write_all(&bytes).await?;
            to.flush().await
        };
        if !matches!(timeout(SILENCE, sent).await, Ok(Ok(()))) {
            let _ = timeout(FAREWELL, to.shutdown()).await;
            return;
        }
    }
}

/// Sends what waits, whenever something was said, and compares clocks and chains from time to time.
async fn send(speaker: Arc<LinkSpeaker>) {
    let mut changes = speaker.house.store().changes();
    let (mut pinged, mut compared) = (None::<Instant>, None::<Instant>);
    let mut on_the_way: HashMap<[u8; 32], Instant> = HashMap::new();
    let due = |last: Option<Instant>, every| last.is_none_or(|last| last.elapsed() >= every);
    loop {
        let peer = speaker.peer;
        // A peer that is taken out of the rules, or whose key is another one, hears nothing more.
        if let Ok(false) = speaker.store(move |house| Ok(speaking(house).contains(&peer))).await {
            let now = now_ms();
            match peer_of(&speaker.house.rules().settings, &peer) {
                Some(_) => speaker.house.links().end(&peer, now),
                None => speaker.house.links().end_for(&peer, now, NO_PEER),
            }
            return;
        }
        if due(pinged, PING) {
            pinged = Some(Instant::now());
            speaker.ping(0).await;
        }
        if due(compared, COMPARE) || speaker.house.links().compares(peer) {
            compared = Some(Instant::now());
            if let Ok(heads) = speaker.store(move |house| house.store().heads(peer, HEADS)).await {
                speaker.say(LinkMessage::Heads(heads)).await;
            }
        }
        on_the_way.retain(|_, sent| sent.elapsed() < AGAIN);
        if speaker.send_waiting(&mut on_the_way).await.is_err() {
            // The disk is full or gone: what waits goes on waiting.
            sleep(AGAIN).await;
        }
        let _ = timeout(Duration::from_secs(5), changes.changed()).await;
    }
}

impl LinkSpeaker {
    async fn say(&self, message: LinkMessage) {
        // The writer is gone where the connection is.
        let _ = self.out.send(message).await;
    }

    async fn ping(&self, answers_ms: u64) {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.say(LinkMessage::Ping { clock_ms: now_ms(), answers_ms, version }).await;
        if !self.house.links().tells_log(self.peer, Instant::now()) {
            return;
        }
        let head = self.store(|house| trail::log_head(&house.store().reader()?)).await;
        match head.ok().and_then(|head| Some((head.last, base::unhex(&head.hash)?))) {
            Some((entry, hash)) => self.say(LinkMessage::Log { entry, hash }).await,
            // The next ping tells it.
            None => self.house.links().tell_log(self.peer),
        }
    }

    /// Does something with the store, on a thread that may wait.
    async fn store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&House) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let house = self.house.clone();
        let done = tokio::task::spawn_blocking(move || work(&house)).await;
        done.unwrap_or_else(|_| Err(Error::misuse("a link's work with the store panicked")))
    }

    async fn send_waiting(&self, on_the_way: &mut HashMap<[u8; 32], Instant>) -> Result<(), Error> {
        let link = self.house.links().of(&self.peer);
        if link.busy_until_ms > now_ms() {
            return Ok(());
        }
        let peer = self.peer;
        let but = self.house.links().waiting(peer, now_ms());
        let waiting = self.store(move |house| house.store().unsent(peer, &but, ON_THE_WAY)).await?;
        on_the_way.retain(|digest, _| waiting.iter().any(|row| row.digest == *digest));
        for row in waiting {
            if on_the_way.contains_key(&row.digest) {
                continue;
            }
            let digest = row.digest;
            if let Some(bytes) = self.store(move |house| house.store().statement(&digest)).await? {
                on_the_way.insert(digest, Instant::now());
                self.say(LinkMessage::Statement(bytes)).await;
            }
        }
        Ok(())
    }

    async fn heard(&self, message: LinkMessage) -> Result<(), Error> {
        let peer = self.peer;
        match message {
            // It compares again after a while; what it asks for too often is not worth an answer.
            LinkMessage::Heads(_) if !self.spend(PeerCost::Heads, 1.0) => (),
            LinkMessage::Ahead(_) if !self.spend(PeerCost::Ahead, 1.0) => (),
            LinkMessage::Want { .. } if !self.spend(PeerCost::Want, 1.0) => (),
            LinkMessage::Statement(_) if !self.spend(PeerCost::Refused, 0.0) => {
                self.say(LinkMessage::Busy(REFUSED_PAUSE)).await;
            }
            LinkMessage::Heads(heads) => self.compared(heads).await?,
            LinkMessage::Ahead(all) => {
                let proven = self.house.links().has_given_back(peer);
                let older = self.store(move |house| house.store().heard(peer, &all, &proven)).await?;
                self.house.links().note(&peer, self.connection, |link| link.older_store = older);
            }
            LinkMessage::Want { proposal, from } => {
                self.store(move |house| house.store().send_again(peer, &proposal, from)).await?;
            }
            LinkMessage::Statement(bytes) => {
                // A study of 1 MiB is as much work as hundreds of notes.
                let weight = 1.0 + bytes.len() as f64 / 4_096.0;
                let answer = self.store(move |house| absorb(house, peer, &bytes)).await?;
                if matches!(answer, LinkMessage::No { .. }) {
                    self.spend(PeerCost::Refused, weight);
                }
                self.say(answer).await;
            }
            LinkMessage::Have(digest) => {
                self.store(move |house| house.store().had(peer, &digest, now_ms())).await?;
            }
            LinkMessage::No { digest, from, code } => {
                self.store(move |house| refused(house, peer, &digest, from, &code)).await?;
            }
            LinkMessage::Ping { clock_ms, answers_ms, version } => {
                self.clock(clock_ms, answers_ms, version).await;
            }
            LinkMessage::Log { entry, hash } => {
                self.house.links().note(&peer, self.connection, |link| link.log = Some((entry, hash)));
            }
            LinkMessage::Busy(seconds) => {
                let until = now_ms() + 1_000 * u64::from(seconds.min(3_600));
                self.house.links().note(&peer, self.connection, |link| link.busy_until_ms = until);
            }
        }
        Ok(())
    }

    /// The peer says how far it has all chains.
    async fn compared(&self, heads: Vec<(ProposalId, Vec<StatementHead>)>) -> Result<(), Error> {
        let peer = self.peer;
        let compared = move |house: &House| {
            let found = compare(house, peer, &heads)?;
            otherwise::notice(house, peer, heads).map(|()| found)
        };
        let found = self.store(compared).await?;
        for (proposal, from) in found.wants {
            self.say(LinkMessage::Want { proposal, from }).await;
        }
        // What the peer has said and lost binds it all the same.
        for bytes in found.lost {
            self.say(LinkMessage::Statement(bytes)).await;
        }
        self.say(LinkMessage::Ahead(found.ahead)).await;
        Ok(())
    }

    fn spend(&self, cost: PeerCost, weight: f64) -> bool {
        self.house.links().spend(self.peer, cost, weight, Instant::now())
    }

    async fn clock(&self, clock_ms: u64, answers_ms: u64, version: String) {
        let now = now_ms();
        if answers_ms == 0 {
            self.ping(clock_ms.max(1)).await;
        }
        self.house.links().note(&self.peer, self.connection, |link| {
            link.version = Some(version);
            if answers_ms != 0 && answers_ms <= now {
                let there = answers_ms + (now - answers_ms) / 2;
                link.ahead_ms = i64::try_from(i128::from(clock_ms) - i128::from(there)).ok();
            }
        });
    }
}

async fn read(speaker: &LinkSpeaker, mut from: ReadHalf<TlsStream<TcpStream>>) -> io::Result<()> {
    let (mut left, mut begun) = (BURST, Instant::now());
    loop {
        let silent = || io::Error::other(format!("nothing came for {} s", SILENCE.as_secs()));
        let message = timeout(SILENCE, next(&mut from)).await.map_err(|_| silent())??;
        if !speaker.house.links().is(&speaker.peer, speaker.connection) {
            return Ok(());
        }
        speaker.house.links().note(&speaker.peer, speaker.connection, |link| link.heard_ms = Some(now_ms()));
        if begun.elapsed() > PAUSE * BURST {
            (left, begun) = (BURST, Instant::now());
        }
        // Who sends more than that waits in its own buffers.
        match left.checked_sub(1) {
            Some(fewer) => left = fewer,
            None => sleep(PAUSE).await,
        }
        if let Err(error) = speaker.heard(message).await {
            speaker.say(LinkMessage::Busy(30)).await;
            return Err(io::Error::other(format!("what came could not be kept: {error}")));
        }
    }
}

async fn next(from: &mut ReadHalf<TlsStream<TcpStream>>) -> io::Result<LinkMessage> {
    let mut length = [0; 8];
    from.read_exact(&mut length).await?;
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > MESSAGE_BYTES {
        return Err(io::Error::other("the peer sent a message beyond the limit"));
    }
    // Room is made as bytes come: a length alone takes none.
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes).await?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    LinkMessage::decode(&bytes).ok_or_else(|| io::Error::other("the peer sent what is no message"))
}

/// What comes of comparing chains.
#[derive(Default)]
pub(super) struct ComparedChains {
    /// What this side lacks of the peer's own statements, and from where on.
    wants: Vec<(ProposalId, u32)>,
    /// Where the peer lacks statements of its own that are here.
    pub(super) ahead: Vec<ProposalId>,
    /// The first of these.
    pub(super) lost: Vec<Vec<u8>>,
}

/// Compares chains. What the peer lacks of the own ones waits to be sent again.
pub(super) fn compare(
    house: &House,
    peer: KeyFingerprint,
    theirs: &[(ProposalId, Vec<StatementHead>)],
) -> Result<ComparedChains, Error> {
    let (store, mut found) = (house.store(), ComparedChains::default());
    let Some(own) = house.identity().map(net::Identity::fingerprint) else { return Ok(found) };
    let of = |heads: &[StatementHead], who: KeyFingerprint| {
        heads.iter().find(|head| head.author == who).map_or(0, |head| head.count)
    };
    let (mut seen_ids, mut bytes) = (HashSet::new(), 0);
    for (id, heads) in theirs {
        // What is said twice is answered once.
        if !seen_ids.insert(*id) {
            continue;
        }
        // Also of one that is over here: the peer may have put back an older copy.
        let here = store.heads_of(id)?;
        let (has, is_here) = (of(heads, peer), of(&here, peer));
        if has > is_here {
            found.wants.push((*id, is_here));
        }
        if has < is_here {
            found.ahead.push(*id);
            if found.lost.len() < LOST && bytes < LOST_BYTES {
                let lost = store.said_by(id, peer, has)?;
                bytes += lost.iter().map(Vec::len).sum::<usize>();
                found.lost.extend(lost);
            }
        }
        let seen = of(heads, own);
        if seen < of(&here, own) {
            store.send_again(peer, id, seen)?;
        }
    }
    for (id, _) in store.heads(peer, HEADS)? {
        if !theirs.iter().any(|(one, _)| *one == id) && theirs.len() < HEADS as usize {
            store.send_again(peer, &id, 0)?;
        }
    }
    Ok(found)
}

/// Keeps what came. What the rules refuse is answered by who begins runs, at its next look.
pub(super) fn absorb(house: &House, peer: KeyFingerprint, bytes: &[u8]) -> Result<LinkMessage, Error> {
    let settings = house.rules().settings;
    let no = |digest, from, code: &str| LinkMessage::No { digest, from, code: code.to_owned() };
    let (Some((name, rules)), Some(identity)) = (peer_of(&settings, &peer), house.identity()) else {
        return Ok(no([0; 32], 0, "author"));
    };
    let (most_open, most_per_day) = (rules.proposals_open, rules.proposals_per_day);
    let from = PeerSender { name, key: peer, most_open, most_per_day };
    let at_ms = now_ms();
    if let Ok(statement) = SignedStatement::read(bytes)
        && statement.author() == identity.fingerprint()
    {
        let lost = house.store().statement(&statement.digest())?.is_none();
        let speaker = Speaker { by: SERVICE, identity, at_ms };
        let taken = house.store().take_back(speaker, peer, &statement)?;
        // What cannot be kept proves nothing: it could be sent again for ever.
        if lost && taken {
            house.links().gave_back(peer, statement.body().proposal);
        }
        return Ok(match taken {
            true => LinkMessage::Have(statement.digest()),
            false => no(statement.digest(), 0, "author"),
        });
    }
    match house.store().absorb(identity.fingerprint(), from, at_ms, bytes)? {
        Absorbed::No { digest, from, code } => Ok(no(digest, from, code)),
        Absorbed::Have { digest, proposal, new } => {
            if new {
                meet_others(house, peer, bytes);
            }
            if new
                && let Some(word) = SignedStatement::read(bytes).ok().and_then(|one| word(&one.body().said))
            {
                house.notify(word, &proposal);
            }
            Ok(LinkMessage::Have(digest))
        }
    }
}

/// A proposal came that others may have spoken of before: what they said then was not kept, and they send it
/// again when chains are compared.
fn meet_others(house: &House, from: KeyFingerprint, bytes: &[u8]) {
    let Ok(statement) = SignedStatement::read(bytes) else { return };
    if matches!(statement.body().said, Said::Propose(_)) {
        let settings = house.rules().settings;
        let known = |party: &&KeyFingerprint| **party != from && peer_of(&settings, party).is_some();
        let others = statement.body().recipients.iter().filter(known);
        others.for_each(|party| house.links().compare_soon(*party));
        house.store().ring();
    }
}

/// What people are told of that a peer said.
fn word(said: &Said) -> Option<&'static str> {
    match said {
        Said::Propose(_) => Some("proposed"),
        Said::Consent(_) => Some("consented"),
        Said::Refuse(_) => Some("refused"),
        Said::Withdraw(_) => Some("withdrawn"),
        Said::Note(_) => Some("note"),
        _ => None,
    }
}

/// The peer does not keep a statement: what is missing is sent first, and what it will never keep is not sent
/// again. Where a limit of its is reached, it is asked again later.
fn refused(
    house: &House,
    peer: KeyFingerprint,
    digest: &[u8; 32],
    from: u32,
    code: &str,
) -> Result<(), Error> {
    let store = house.store();
    match code {
        // Others go on meanwhile.
        "limit" => {
            if let Some(row) = store.sent_to(peer, digest)? {
                house.links().wait(peer, row.proposal, now_ms());
            }
            Ok(())
        }
        "gap" | "no-proposal" => match store.sent_to(peer, digest)? {
            // Who did not propose has nothing to send first: it compares chains once the proposal is there.
            Some(row) if from < row.number && (code == "gap" || proposed(house, &row.proposal)?) => {
                store.send_again(peer, &row.proposal, from).map(drop)
            }
            _ => store.not_had(peer, digest, code),
        },
        code => store.not_had(peer, digest, code),
    }
}

/// Whether this organisation proposed.
fn proposed(house: &House, id: &ProposalId) -> Result<bool, Error> {
    let own = house.identity().map(net::Identity::fingerprint);
    Ok(house.store().proposal(id)?.is_some_and(|row| Some(row.proposer) == own))
}

//! Whether this party's ledger lets a study begin: the file itself, what peers say of it, bars and budgets.

use super::agree::{Agreement, others_of, tell, tell_each};
use super::outsourced::{self, StartSignal};
use super::owner::OwnerRun;
use super::{Event, Watch};
use crate::budget::{self, KeyKnowledge};
use crate::kept::RunLog;
use crate::prepare::Checked;
use base::{Error, Fault, PartyId};
use net::Session;
use privacy::ledger::{
    Bytes32, ChainMismatch, Debit, Ledger, PeerLineage, PeerRecord, STATEMENT_BYTES, ShareProgress,
    Statement, barred_error, quoted,
};
use privacy::scales::most_charged;
use report::PeerHistory;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use study::party::PartySetup;
use study::{NoiseFrom, Participant, Study};

/// What is said last before anything is disclosed: whether it begins, and a statement or zeros.
const READY_BYTES: usize = 1 + STATEMENT_BYTES;

/// Opens this party's ledger for a run. A new one is announced, and refused where something says that there
/// was one before, unless the operator says so.
///
/// # Errors
/// Then, and those of [`Ledger::open`].
pub(super) fn open_ledger(
    party: &PartySetup,
    all: &[Checked],
    watch: &Watch,
) -> Result<Arc<Mutex<Ledger>>, Error> {
    forgotten(party)?;
    let mut ledger = Ledger::open(&party.ledger)?;
    if ledger.is_new() {
        (watch.events)(Event::Note(format!(
            "a new privacy ledger was made at {}: what was spent before is not in it",
            party.ledger.display()
        )));
    }
    // What an earlier key of this party's signed is its own.
    let line = all.first().map_or(&[][..], |run| run.identity.line());
    line.iter().try_for_each(|one| ledger.succeed(one).map(|_| ()))?;
    all.iter().try_for_each(|run| in_place(&ledger, &run.study))?;
    if !party.new_ledger {
        unclaimed(&ledger, all)?;
    }
    for (peer, statement) in ledger.claims()? {
        if member_of(all, &peer).is_some() {
            ledger.settle(&peer, &statement)?;
        }
    }
    Ok(Arc::new(Mutex::new(ledger)))
}

/// Refuses a study that names a key whose place another one has taken: it would have a budget beside that of
/// its successor.
pub(crate) fn in_place(ledger: &Ledger, study: &Study) -> Result<(), Error> {
    for member in &study.parties {
        if let Some((successor, day)) = ledger.successor(&member.key)? {
            return Err(Error::refused(format!(
                "the study names {} as the key of {}, and that key has named {successor} as its successor \
                 (heard on {day}): agree on a study with the line key = \"{successor}\"",
                member.key, member.name
            )));
        }
    }
    Ok(())
}

/// Whether runs with the peers of a study may begin: how many did of late.
pub(crate) fn in_time(ledger: &Ledger, party: &PartySetup, run: &Checked) -> Result<(), Error> {
    if run.matched_before {
        // It began before, and is not counted again.
        return Ok(());
    }
    others_of(run).into_iter().try_for_each(|peer| {
        let member = &run.study.parties[peer.index()];
        ledger.may_begin((&member.key, &member.name), party.policy.runs)
    })
}

/// Refuses a new ledger where a report of this party says that there was one.
pub(crate) fn forgotten(party: &PartySetup) -> Result<(), Error> {
    if party.new_ledger || party.ledger.exists() {
        return Ok(());
    }
    report_of(party).map_or(Ok(()), |report| {
        Err(Error::refused(format!(
            "there is no ledger at {}, but {} is the report of an earlier run of this party: a new ledger \
             would forget what \
             was spent. Correct `ledger` or put the file back; if it is lost, take over what peers keep of \
             it: tacit ledger recover {}; to begin anew all the same, add --new-ledger",
            party.ledger.display(),
            report.display(),
            quoted(&path_text(&party.ledger)),
        )))
    })
}

/// Refuses a ledger that lacks what this party has signed, as a peer of these runs gave back.
pub(crate) fn unclaimed(ledger: &Ledger, all: &[Checked]) -> Result<(), Error> {
    for (peer, statement) in ledger.claims()? {
        if let Some(member) = member_of(all, &peer) {
            let now = format!("{} by now", ledger.chain(&peer).map_or(0, |head| head.count));
            return Err(claimed(ledger, &member.name, &statement, &now));
        }
    }
    Ok(())
}

fn member_of<'a>(all: &'a [Checked], key: &str) -> Option<&'a Participant> {
    all.iter().flat_map(|run| &run.study.parties).find(|member| member.key == key)
}

/// A report of this party in its report folder, or in one of the folders in it.
fn report_of(party: &PartySetup) -> Option<PathBuf> {
    let inner = std::fs::read_dir(&party.report).into_iter().flatten().flatten();
    let inner = inner.map(|entry| entry.path().join("report.json"));
    std::iter::once(party.report.join("report.json")).chain(inner).find(|path| {
        let reports = std::fs::read_to_string(path).ok().and_then(|text| report::all_from_json(&text).ok());
        reports.is_some_and(|all| all.iter().any(|report| report.party == party.as_party))
    })
}

/// A peer gave back a statement that this party signed and its ledger does not hold; `own` is how many
/// entries it has with that peer.
fn claimed(ledger: &Ledger, name: &str, statement: &Statement, own: &str) -> Error {
    let path = ledger.path().display();
    Error::refused(format!(
        "{name} holds a statement that this party signed on {}: its ledger had {} entries with {name} then. \
         {path} has {own} and is not that ledger: it was made anew, put back from an older copy or changed, \
         or it is another file of the same identity. Put the newest copy back, or take over what was signed: \
         tacit ledger recover {} --lineage NAME; to go on without, add --new-ledger",
        statement.date(),
        statement.head.count,
        quoted(&path.to_string()),
    ))
}

/// What is heard of a peer that refuses, and says no more.
const PEER_REFUSES: &str = "the peer's privacy ledger does not allow this study: its budget is spent or a \
                            release is barred there; see the peer's own output";

/// Why a peer refuses that gives back a statement, where this side's operator goes on without it.
fn other_ledger(path: &Path, statement: &Statement) -> String {
    format!(
        "the peer's privacy ledger does not allow this study, because this party's ledger is another one: it \
         signed on {} for one with {} entries, and {} is not that. The peer's operator can \
         allow it (`tacit ledger allow` there). Or put the newest copy back, or take over what was signed: \
         move this ledger away, then tacit ledger recover {}",
        statement.date(),
        statement.head.count,
        path.display(),
        quoted(&path_text(path)),
    )
}

impl OwnerRun<'_> {
    /// Counts a run that begins with each peer, before anything is said.
    pub(super) fn count_run(&mut self) -> Result<(), Error> {
        if self.kept.as_deref_mut().is_some_and(RunLog::counts_again) {
            return Ok(());
        }
        self.begin_run()
    }

    pub(super) fn begin_run(&self) -> Result<(), Error> {
        let study = *self.checked.hash.as_bytes();
        others_of(self.checked).into_iter().try_for_each(|peer| {
            let member = &self.checked.study.parties[peer.index()];
            self.lock()?.begin_run((&member.key, &member.name), &study, self.party.policy.runs)
        })
    }

    /// All sides say whether their ledgers allow all releases, before anything is disclosed: matching tells
    /// exact sizes, which a run that is refused later would have given away for nothing. Who finds that a
    /// peer's ledger is another one gives it back what it signed. Returns whose key sees these data for the
    /// first time, in sentences.
    pub(super) fn ready(&mut self, agreement: &Agreement) -> Result<Vec<String>, Error> {
        let mine = self.tell_strangers().and_then(|new| self.allowed(agreement).map(|()| new));
        let owners = others_of(self.checked);
        let (word, changed) = (u8::from(mine.is_ok()), &agreement.changed);
        let said = |peer: PartyId| {
            let held = changed.iter().find(|(other, ..)| *other == peer).map(|(.., held)| held.bytes());
            let all = [&[word][..], &held.unwrap_or([0; STATEMENT_BYTES])].concat();
            Ok(<[u8; READY_BYTES]>::try_from(all).expect("the parts add up"))
        };
        let theirs = self.session.step("agree", |session| tell_each(session, &owners, said))?;
        let begin = mine.is_ok() && theirs.iter().all(|(_, theirs)| theirs[0] == 1);
        self.tell_servers(if begin { StartSignal::Begin } else { StartSignal::Refused }, &agreement.common)?;
        let claims: Vec<Result<Option<Statement>, Error>> =
            theirs.iter().map(|(peer, theirs)| self.hear_claim(*peer, &theirs[1..], agreement)).collect();
        let path = &self.party.ledger;
        let strangers = self.session.step("agree", |session| {
            let strangers = mine?;
            let given = claims.into_iter().collect::<Result<Vec<_>, _>>()?;
            let refusing = theirs.into_iter().zip(given).find(|((_, theirs), _)| theirs[0] != 1);
            let Some(((peer, _), given)) = refusing else { return Ok(strangers) };
            let why =
                given.map_or_else(|| PEER_REFUSES.to_owned(), |statement| other_ledger(path, &statement));
            Err(Error::new(session.at(Some(peer)), Fault::Refused(why)))
        })?;
        self.keep_likeness()?;
        Ok(strangers)
    }

    /// Says whose key sees these data for the first time, now that peers have said whose place theirs took.
    fn tell_strangers(&self) -> Result<Vec<String>, Error> {
        let Some(lineage) = self.party.lineage.as_deref() else { return Ok(Vec::new()) };
        if !self.checked.charges(self.party)? {
            return Ok(Vec::new());
        }
        let whose = (self.checked, &*self.checked.fellows);
        let strangers = budget::strangers(&*self.lock()?, lineage, whose, KeyKnowledge::Peers)?;
        strangers.iter().for_each(|note| (self.watch.events)(Event::Warning(note.clone())));
        Ok(strangers)
    }

    /// Keeps what the data look like: from now on something is charged under their name.
    fn keep_likeness(&self) -> Result<(), Error> {
        let (Some(likeness), Some(lineage)) = (&self.checked.likeness, &self.party.lineage) else {
            return Ok(());
        };
        likeness.keep(lineage, &mut *self.lock()?)
    }

    /// The last words: owners keep a statement of each other that has this run in it, and everybody is there
    /// to the end.
    pub(super) fn part(&mut self) -> Result<(), Error> {
        let (study, identity, owners) =
            (&self.checked.study, &self.checked.identity, others_of(self.checked));
        let lock = || self.ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"));
        let key = |peer: PartyId| &*study.parties[peer.index()].key;
        self.session.step("done", |session| {
            let said = |peer| Ok(lock()?.statement(identity, key(peer).parse()?)?.bytes());
            for (peer, theirs) in tell_each(session, &owners, said)? {
                let statement = heard(session, peer, key(peer), identity, &theirs)?;
                lock()?.keep_statement(key(peer), identity.fingerprint(), &statement)?;
            }
            tell(session, &owners, [1])?;
            // Nobody needs the servers any more.
            outsourced::servers_apart(study).iter().for_each(|s| _ = tell(session, &[*s], [1]));
            Ok(())
        })
    }

    /// What a peer gives back as signed by this party, if anything, where the operator goes on without it.
    fn hear_claim(
        &self,
        peer: PartyId,
        bytes: &[u8],
        agreement: &Agreement,
    ) -> Result<Option<Statement>, Error> {
        let member = &self.checked.study.parties[peer.index()];
        let Some(statement) = Statement::read(bytes) else { return Ok(None) };
        let own = self.checked.identity.fingerprint();
        let mut ledger = self.lock()?;
        let Some(statement) = ledger.claim(&statement, own, member.key.parse()?)? else { return Ok(None) };
        if self.party.new_ledger {
            ledger.settle(&member.key, &statement)?;
            return Ok(Some(statement));
        }
        // As the peer heard it, so that both operators read the same.
        let said = agreement.counts.iter().find(|(other, _)| *other == peer);
        let said = said.map_or(0, |(_, count)| *count).to_string();
        Err(claimed(&ledger, &member.name, &statement, &said))
    }

    fn allowed(&self, agreement: &Agreement) -> Result<(), Error> {
        self.lock()?.verify()?;
        if let Some((peer, mismatch, _)) = agreement.changed.first() {
            return Err(self.changed(*peer, mismatch)?);
        }
        if self.checked.built.program.mechanisms.is_empty() {
            return self.afford(self.match_debits(agreement)?);
        }
        match self.checked.study.noise() {
            NoiseFrom::CutAndChoose(_) => self.allowed_candidates(agreement),
            NoiseFrom::Inside => self.allowed_numbers(agreement),
        }
    }

    /// Whether debits that are not made yet can be.
    fn afford(&self, debits: Vec<Debit>) -> Result<(), Error> {
        let ledger = self.lock()?;
        let open = debits.into_iter().map(|debit| Ok((!ledger.is_charged(&debit)?).then_some(debit)));
        let open = open.collect::<Result<Vec<_>, Error>>()?;
        let checked = ledger.check_together(&open.into_iter().flatten().collect::<Vec<_>>());
        checked.map_err(|error| self.with_names(error))
    }

    /// A refusal of the ledger, which knows keys alone, with the study's names beside them.
    fn with_names(&self, error: Error) -> Error {
        let Fault::Refused(text) = error.kind() else { return error };
        let named = self.checked.study.parties.iter().fold(text.clone(), |text, member| {
            let viewer = format!("viewer {}", member.key);
            text.replace(&viewer, &format!("{viewer} ({})", member.name))
        });
        Error::refused(named).falling_short(error.shortfall().cloned())
    }

    fn allowed_candidates(&self, agreement: &Agreement) -> Result<(), Error> {
        others_of(self.checked).into_iter().try_for_each(|peer| self.not_barred(peer, agreement))?;
        // The match comes first and leaves the less.
        let mut debits = self.match_debits(agreement)?;
        for viewer in self.checked.roster.parties() {
            let most = most_charged(&self.checked.study, &self.checked.built.audit, viewer.into());
            let done = agreement.done.get(viewer.index()) == Some(&true);
            if !done && !num_traits::Zero::is_zero(&most) {
                let debit = self.payment(agreement).candidates_debit(viewer, most)?;
                let attempt = agreement.attempts[viewer.index()];
                self.lock()?.begin_attempt(&debit.release_id, attempt, &debit.peer_key)?;
                debits.push(debit);
            }
        }
        self.afford(debits)
    }

    /// Drops what other releases with these peers hold, and asks the operator where too many results were
    /// never reported.
    fn allowed_numbers(&self, agreement: &Agreement) -> Result<(), Error> {
        let program = &self.checked.built.program;
        let ids: Vec<Bytes32> = program.viewers().map(|viewer| agreement.number_id(viewer)).collect();
        let mut debits = self.match_debits(agreement)?;
        for viewer in program.viewers() {
            let most = most_charged(&self.checked.study, &self.checked.built.audit, viewer);
            if !num_traits::Zero::is_zero(&most) {
                debits.push(self.payment(agreement).number_debit(viewer, most)?);
            }
        }
        let Some(first) = debits.last().cloned() else { return Ok(()) };
        others_of(self.checked).into_iter().try_for_each(|peer| self.not_barred(peer, agreement))?;
        {
            let mut ledger = self.lock()?;
            let given = ledger.give_back(&first.peer_key, &first.lineage, &ids)?;
            if given > 0 {
                (self.watch.events)(Event::Note(format!(
                    "{given} releases with the same parties were charged and never opened: that is given back"
                )));
            }
            let running: Vec<Bytes32> = ids
                .iter()
                .filter_map(|id| ledger.held_share(id).transpose())
                .map(|held| held.map(|(held, _)| held.number))
                .collect::<Result<_, _>>()?;
            for peer in others_of(self.checked) {
                let towards = self.towards(peer);
                if let Some(reason) = ledger.open_numbers(&towards.peer, &towards.lineage, &running)? {
                    return Err(barred_error(ledger.path(), &towards, &reason));
                }
            }
            let mut open = Vec::with_capacity(debits.len());
            for debit in debits {
                let done =
                    matches!(ledger.held_share(&debit.release_id)?, Some((_, p)) if p != ShareProgress::Held);
                if !done && !ledger.is_paid(&debit.release_id)? {
                    open.push(debit);
                }
            }
            debits = open;
        }
        self.afford(debits)
    }

    /// Nothing broke off with this peer that this side's operator has not looked at.
    fn not_barred(&self, peer: PartyId, agreement: &Agreement) -> Result<(), Error> {
        let towards = self.towards(peer);
        let attempts = self.checked.roster.parties().zip(agreement.attempts);
        let running: Vec<_> =
            attempts.map(|(viewer, attempt)| (agreement.release_id(viewer), attempt)).collect();
        let ledger = self.lock()?;
        match ledger.barred(&towards, &running)? {
            None => Ok(()),
            Some(reason) => Err(barred_error(ledger.path(), &towards, &reason)),
        }
    }

    fn changed(&self, peer: PartyId, mismatch: &ChainMismatch) -> Result<Error, Error> {
        let (member, towards) = (&self.checked.study.parties[peer.index()], self.towards(peer));
        // The same command lifts this, so it is said.
        let barred = self.lock()?.barred(&towards, &[])?;
        let barred = barred.map_or_else(String::new, |reason| {
            format!(". Releases with it are barred as well, and this would lift that: {reason}")
        });
        Ok(Error::refused(format!(
            "{}. No row was sent. {} can put back its newest copy or take over what it signed, which it is \
             told now; to go on \
             with its ledger as it is: tacit ledger allow {} {} --lineage {} --reason \"...\"{barred}",
            mismatch.text(&member.name),
            member.name,
            quoted(&path_text(&self.party.ledger)),
            member.key,
            quoted(&towards.lineage),
        )))
    }

    /// Says that a study was charged before on data of another name: this run is another release, and charged
    /// as one. A ledger that was made anew names its data anew, which cannot be told from other data.
    pub(super) fn tell_other_data(&self, agreement: &Agreement) -> Result<Option<String>, Error> {
        let (me, study, lineage) = (self.checked.me, &self.checked.study, self.party.lineage.as_deref());
        let (Some(lineage), 2) = (lineage, self.checked.roster.len()) else { return Ok(None) };
        let peer = &study.parties[me.other().index()];
        let tags = (&agreement.tags[me.index()], &agreement.tags[me.other().index()]);
        let hash = *self.checked.hash.as_bytes();
        let other = self.lock()?.other_data((&hash, lineage, &peer.key), tags)?;
        let anew = format!("or the ledger of {}, which names them, was made anew", peer.name);
        let (whose, anew) = match other {
            None => return Ok(None),
            Some([true, true]) => (format!("neither these data nor those of {} are", peer.name), anew),
            Some([true, false]) => ("these data are not".to_owned(), String::new()),
            Some([false, _]) => (format!("the data of {} are not", peer.name), anew),
        };
        let anew = if anew.is_empty() { anew } else { format!(", {anew}") };
        let text = format!(
            "{whose} those that this study was charged for before{anew}: this is another release, charged \
             again, and there may be an earlier result of this study"
        );
        (self.watch.events)(Event::Warning(text.clone()));
        Ok(Some(text))
    }

    /// With whom this run is and about which of this party's data.
    pub(super) fn towards(&self, peer: PartyId) -> PeerLineage {
        let peer = self.checked.study.parties[peer.index()].key.clone();
        PeerLineage { peer, lineage: self.party.lineage.clone().unwrap_or_default() }
    }

    /// How many releases broke off with each peer, where any did.
    pub(super) fn broke_off(&self) -> Result<Vec<PeerHistory>, Error> {
        let mut all = Vec::new();
        for peer in others_of(self.checked) {
            let member = &self.checked.study.parties[peer.index()];
            let count = self.lock()?.broken_off(&member.key)?;
            if count.releases > 0 {
                let PeerRecord { releases, after_index, after_payment } = count;
                all.push(PeerHistory { peer: member.name.clone(), releases, after_index, after_payment });
            }
        }
        Ok(all)
    }

    /// Says what broke off before this run.
    pub(super) fn tell_broke_off(&self) -> Result<(), Error> {
        self.broke_off()?.iter().for_each(|count| (self.watch.events)(Event::Note(count.text())));
        Ok(())
    }

    /// What this party's operator has allowed of peers' ledgers.
    pub(super) fn noticed(&self) -> Result<Vec<String>, Error> {
        let mut all = Vec::new();
        for peer in others_of(self.checked) {
            let member = &self.checked.study.parties[peer.index()];
            for text in self.lock()?.noticed(&member.key)? {
                all.push(text.replace("this peer", &member.name));
            }
        }
        Ok(all)
    }
}

/// A statement that a peer signed towards this party.
pub(super) fn heard(
    session: &mut Session,
    peer: PartyId,
    key: &str,
    own: &net::Identity,
    bytes: &[u8],
) -> Result<Statement, Error> {
    let signed =
        Statement::read(bytes).filter(|said| key.parse().is_ok_and(|key| said.is_of(key, own.fingerprint())));
    signed.ok_or_else(|| session.link(peer).malformed("a signed statement of its ledger"))
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

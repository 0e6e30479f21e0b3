//! What is looked at without anybody asking: what peers have seen of the log, and what is too old to keep.

use super::{House, now};
use crate::settings::HouseSettings;
use crate::store::{ProposalFilter, ProposalRow, RecordedAct, SERVICE, Speaker, Store, UNHEARD};
use base::Error;
use net::KeyFingerprint;
use net::identity::Identity;
use page::numbers::counted;
use privacy::ledger::Ledger;
use statements::{ProposalState, Said};
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use trail::{LogWitness, LogWitnesses, TrailScope, VerifiedLog, WitnessStanding};

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(60);
/// How often what is too old is taken away, in seconds.
const DAY: u64 = 24 * 3600;

/// What was seen at the last look.
#[derive(Default)]
pub struct LogWatch {
    last: Mutex<LogLook>,
    /// The first look of a process reads all statements, which takes its time where there are many.
    begins: AtomicBool,
}

/// What a look found.
#[derive(Default)]
pub struct LogLook {
    witnesses: LogWitnesses,
    /// What peers have seen of this log, and how it stands to that.
    pub of_own: Vec<(String, LogWitness, WitnessStanding)>,
    /// When a copy was last restored: milliseconds since 1970.
    restored_ms: u64,
    /// The peers that have signed another log than this one since then.
    pub contradicted_by: Vec<KeyFingerprint>,
    /// What this service has seen of the logs of peers, and whether that no longer holds.
    pub of_peers: Vec<(String, LogWitness, bool)>,
    /// The chain when somebody last computed it: when, and what came of it.
    pub verified: Option<(u64, Result<VerifiedLog, String>)>,
    /// Why nothing could be taken away, or nothing looked at.
    pub failed: Option<String>,
    cut: u64,
}

impl LogWatch {
    /// What was seen.
    pub fn seen(&self) -> MutexGuard<'_, LogLook> {
        self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether the first look is not over yet: until then nobody knows what peers have seen of this log.
    pub fn begins(&self) -> bool {
        self.begins.load(Ordering::Acquire)
    }
}

/// How this log stands to what others have seen, and their logs to what was seen here.
#[derive(Default)]
struct LogsCompared {
    of_own: Vec<(String, LogWitness, WitnessStanding)>,
    restored_ms: u64,
    contradicted_by: Vec<KeyFingerprint>,
    of_peers: Vec<(String, LogWitness, bool)>,
}

impl LogLook {
    /// What everybody who answers for the log must know now.
    pub fn alarms(&self) -> Vec<String> {
        let own = self.of_own.iter().filter_map(|(peer, word, standing)| {
            let entry = word.entry;
            match standing {
                WitnessStanding::Fits | WitnessStanding::Cut => None,
                _ if word.at_ms <= self.restored_ms => None,
                WitnessStanding::Gone => Some(format!(
                    "{peer} has signed that it saw entry {entry} of the audit log here, and the log ends \
                     before it: it was cut, or the store is an older copy, and what was spent since is \
                     unknown; or {peer} has signed what it never saw. No run with {peer} begins."
                )),
                WitnessStanding::Another => Some(format!(
                    "{peer} has signed that it saw entry {entry} of the audit log here, and there is another \
                     entry: the log was changed, or {peer} has signed what it never saw. No run with {peer} \
                     begins."
                )),
            }
        });
        let peers = self.of_peers.iter().filter(|(_, _, bent)| *bent);
        let peers = peers.map(|(peer, word, _)| {
            format!("The log of {peer} is another one than the one seen up to entry {}.", word.entry)
        });
        let chain = self.verified.iter().filter_map(|(_, found)| found.clone().err());
        own.chain(peers).chain(chain).chain(self.failed.clone()).collect()
    }
}

/// Begins to look, now and every minute from then on.
pub fn begin(house: &Arc<House>) {
    house.watch.begins.store(true, Ordering::Release);
    let house = Arc::downgrade(house);
    std::thread::spawn(move || {
        while let Some(house) = house.upgrade() {
            if look(&house, now()) {
                house.watch.begins.store(false, Ordering::Release);
            }
            drop(house);
            std::thread::sleep(EVERY);
        }
    });
}

/// Looks once: whether the logs could be compared. Runs wait until they were.
pub fn look(house: &House, now: u64) -> bool {
    let settings = house.rules().settings;
    let due = now.saturating_sub(house.watch.seen().cut) >= DAY;
    // What takes long is done without holding what pages show.
    let kept = if due { take_away(&house.store, &settings, now) } else { Ok(()) };
    let mut witnesses = std::mem::take(&mut house.watch.seen().witnesses);
    let compared = compared(&mut witnesses, &house.store, &settings);
    let told = if compared.is_ok() { bear_witness(house, &witnesses, now) } else { Ok(()) };
    let mut seen = house.watch.seen();
    seen.witnesses = witnesses;
    let whole = compared.is_ok();
    let looked = compared.map(|found| {
        (seen.of_own, seen.of_peers) = (found.of_own, found.of_peers);
        (seen.restored_ms, seen.contradicted_by) = (found.restored_ms, found.contradicted_by);
    });
    let looked = looked.and(told);
    if due {
        seen.cut = now;
    }
    if due || looked.is_err() {
        seen.failed = kept.and(looked).err().map(|error| error.to_string());
    }
    whole
}

fn compared(
    witnesses: &mut LogWitnesses,
    store: &Store,
    settings: &HouseSettings,
) -> Result<LogsCompared, Error> {
    let reader = store.reader()?;
    witnesses.read(&reader)?;
    // Without a key there is no word of ours, and nobody has a word about our log.
    if !settings.identity.exists() {
        return Ok(LogsCompared::default());
    }
    let own = Identity::load(&settings.identity)?.fingerprint();
    let name = |key: KeyFingerprint| {
        let peer = settings.peers.iter().find(|(_, peer)| peer.key == key);
        peer.map_or_else(|| key.to_string(), |(name, _)| name.clone())
    };
    let found = witnesses.of_own(&reader, own)?;
    // Whoever restored a copy has said that what peers saw before is gone.
    let restored_ms = store.copy_used_ms()?;
    let wrong = |(peer, word, standing): &(KeyFingerprint, LogWitness, WitnessStanding)| {
        (standing.is_wrong() && word.at_ms > restored_ms).then_some(*peer)
    };
    let contradicted_by = found.iter().filter_map(wrong).collect();
    let of_own = found.into_iter().map(|(peer, word, standing)| (name(peer), word, standing)).collect();
    let found = witnesses.of_peers(own);
    let of_peers = found.into_iter().map(|(peer, word, bent)| (name(peer), word.clone(), bent)).collect();
    Ok(LogsCompared { of_own, restored_ms, contradicted_by, of_peers })
}

/// Says of each peer's log that it was seen: a day after the last time, and after each run with an answer.
fn bear_witness(house: &House, witnesses: &LogWitnesses, now: u64) -> Result<(), Error> {
    let Some(identity) = house.identity() else { return Ok(()) };
    let own = identity.fingerprint();
    for peer in house.rules().settings.peers.values() {
        let Some((entry, hash)) = house.links().of(&peer.key).log else { continue };
        let said = witnesses.of_peers(own).into_iter().find(|(of, _, _)| *of == peer.key);
        let said = said.map(|(_, word, _)| word);
        // Without a proposal in common there is nothing to say it on.
        let filter = ProposalFilter { party: Some(peer.key), ..ProposalFilter::default() };
        let proposals = house.store.list(&filter, None)?;
        let answered = |since: u64| {
            let is = |row: &ProposalRow| row.state == ProposalState::Answered && row.over_ms > Some(since);
            proposals.iter().any(is)
        };
        let due = match said {
            None => true,
            Some(word) if word.entry == entry && word.hash == base::hex(&hash) => false,
            Some(word) => now.saturating_sub(word.at_ms / 1_000) >= DAY || answered(word.at_ms),
        };
        let speaker = Speaker { by: SERVICE, identity, at_ms: now.saturating_mul(1_000) };
        if !due {
            continue;
        }
        let mut is_unheard = false;
        let copied_ms = house.store.copy_used_ms()?;
        for row in &proposals {
            // Chains of what is over are compared with nobody: what was said there after a copy was made may
            // be said a second time, under a number that is taken.
            let is_of_before = || -> Result<bool, Error> {
                Ok(copied_ms > 0 && house.store.said_last_ms(&row.id, own)? <= copied_ms)
            };
            if row.state.is_final() && (is_unheard || is_of_before()?) {
                continue;
            }
            match house.store.say(speaker, &row.id, Said::Witness { of: peer.key, entry, hash }) {
                // Who is not heard yet may have more of what was said on those that are over, too.
                Err(error) if error.to_string() == UNHEARD => is_unheard = true,
                // What may not be said now, as on one that is frozen, is said on the next one.
                Err(error) if matches!(error.kind(), base::Fault::Refused(_)) => (),
                said => {
                    drop(said?);
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Takes away what is older than the rule says, after it was written into the folder.
fn take_away(store: &Store, settings: &HouseSettings, now: u64) -> Result<(), Error> {
    let keep = &settings.keep;
    let Some(folder) = &keep.folder else { return Ok(()) };
    let before = |days: u64| now.saturating_sub(days.saturating_mul(DAY));
    if let Some(days) = keep.reports_days {
        let what = format!("reports taken away: older than {}", counted(days, "day"));
        let act = RecordedAct { by: SERVICE, what: &what, to: "", at: now };
        store.cut_reports(before(days), &act, |lines| {
            write_new(folder, &format!("reports-{now}.jsonl"), |file| {
                file.write_all(lines).map_err(|e| Error::io("cannot write reports", &e))
            })
        })?;
    }
    let Some(days) = keep.log_days else { return Ok(()) };
    if !store.has_older(before(days))? {
        return Ok(());
    }
    let (identity, reader) = (Identity::load(&settings.identity)?, store.reader()?);
    let ledger = Ledger::look(&settings.ledger)?.export()?;
    let scope = TrailScope { ledger, store: Some(&reader), study: None, made_ms: now.saturating_mul(1_000) };
    let exported = write_new(folder, &format!("trail-{now}.jsonl"), |file| {
        scope.write(&identity, BufWriter::new(file))
    })?;
    let Some(exported) = exported else { return Ok(()) };
    let act = RecordedAct { by: SERVICE, what: "audit.cut", to: "", at: now };
    store.cut_log(before(days), &exported, &act).map(drop)
}

/// Writes a file that must not be there yet, whole and on stable storage.
fn write_new<T>(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut std::fs::File) -> Result<T, Error>,
) -> Result<T, Error> {
    let path = folder.join(name);
    let failed = |e: std::io::Error| Error::io(format!("cannot write {}", path.display()), &e);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
    let done = write(&mut file).and_then(|done| {
        let synced = file.sync_all().and_then(|()| std::fs::File::open(folder)?.sync_all());
        synced.map(|()| done).map_err(failed)
    });
    done.inspect_err(|_| _ = std::fs::remove_file(&path))
}

//! What a party keeps of a match on disk, so that a match that was cut goes on where both stood.
//!
//! A folder, private to this party, of one match with one peer: `match`, the keys of the run and what they
//! may be used for; and three logs of finished chunks, `u` (own rows, in the order of the input), `e` (the
//! peer's rows, in the peer's order) and `v` (own rows as universal identifiers, in the order in which they
//! were sent). Chunks of `e` and `v` lie by partition, and carry a digest of what was said of them: the
//! seals of all streams are made of these. Everything that is sent is a function of the logs, so that what is
//! sent again is the same bytes. Of what the peer sends after the streams, `pins` holds a hash per message
//! ([`MessagePins`]).
//!
//! There are two versions. In the first one, which is not begun any more and goes on, a match is one
//! partition, chunks carry no digest, and the seal is not pinned. A folder of it without pins goes on, too,
//! and pins from there.
//!
//! Chunks carry a tag under a key of the run: a chunk of another run, or one that did not reach the disk
//! whole, ends its log. At success, and when the peer deviates, keys are overwritten and the folder is
//! emptied.

use super::barriers::ChunkDigest;
use super::partitions::Partitioning;
use super::pins::MessagePins;
use crate::chunks::{CHUNK, chunk, chunks, len};
use crate::group::{ELEMENT_BYTES, GroupElement};
use base::{Error, Secret};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What a state begins with, by version, and its bytes.
const MAGIC: [&[u8; 16]; 2] = [b"tacit pid log 1\n", b"tacit pid log 2\n"];
const STATE: &str = "match";
const LOCK: &str = "lock";
const PINS: &str = "pins";
const LOGS: [&str; 3] = ["u", "e", "v"];
const TAG_BYTES: u64 = 16;

/// The logs of a [`MatchJournal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JournalLog {
    /// Own hashed rows.
    U,
    /// The peer's rows under its first key and ours.
    E,
    /// Own rows under all keys.
    V,
}

/// Whether a folder holds the keys of a run.
pub(super) fn holds_a_run(folder: &Path) -> bool {
    let state = Zeroizing::new(fs::read(folder.join(STATE)).unwrap_or_default());
    version(&state).is_some()
}

/// The version of a state that is as long as its version says.
fn version(state: &[u8]) -> Option<usize> {
    let versions = MAGIC.iter().zip(STATE_BYTES).map(|(magic, bytes)| (&magic[..], bytes));
    let is_of = |(magic, bytes): (&[u8], usize)| state.len() >= bytes && state.starts_with(magic);
    versions.map(is_of).position(|is_of| is_of)
}

/// A run: what its keys may be used for.
pub(super) struct JournalRun {
    /// What both keys are made from.
    pub keys: [Secret<[u8; 32]>; 2],
    /// Salt of the identifiers' fingerprint, and the fingerprint.
    pub salt: [u8; 32],
    pub fingerprint: [u8; 32],
    /// What both parties call this run.
    pub name: [u8; 16],
    /// Own rows, the peer's rows.
    pub rows: [u64; 2],
    /// How `e` and `v` are dealt; none: the first version, which deals nothing and keeps no digests.
    pub parts: Option<Partitioning>,
}

impl JournalRun {
    /// How elements are dealt.
    pub fn partitioning(&self) -> Partitioning {
        self.parts.unwrap_or(Partitioning::WHOLE)
    }
}

/// Bytes of [`JournalRun`] in its file by version, with its magic, a digest of the parties and a digest of
/// all.
const STATE_BYTES: [usize; 2] = [16 + 32 + 4 * 32 + 16 + 2 * 8 + 32, 16 + 32 + 4 * 32 + 16 + 3 * 8 + 32];

pub(super) struct MatchJournal {
    dir: PathBuf,
    /// Held while this process uses the folder.
    _lock: File,
    /// Digest of who matches with whom.
    parties: [u8; 32],
    logs: Vec<LogFile>,
}

struct LogFile {
    file: File,
    key: [u8; 32],
    /// Whether a digest lies behind every chunk.
    digests: bool,
    /// Chunks that there is place for in a partition.
    places: u64,
    /// By partition: rows, and finished chunks.
    parts: Vec<LogPart>,
}

#[derive(Clone, Copy, Default)]
struct LogPart {
    rows: u64,
    chunks: u64,
}

/// Where a chunk lies in a log: its partition, which is 0 in `u`, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkAt(pub u32, pub u64);

impl MatchJournal {
    /// Opens or makes folder `dir` for a match of the parties called `names`, this one first; also the run
    /// that it holds.
    ///
    /// # Errors
    /// When it is open to others, in use, of other parties, or cannot be written.
    pub fn open(dir: &Path, names: [&str; 2]) -> Result<(Self, Option<JournalRun>), Error> {
        let parties = blake3::derive_key("tacit pid log parties 1", format!("{names:?}").as_bytes());
        let journal = Self::locked(dir, parties)?;
        let run = journal.read_state()?;
        Ok((journal, run))
    }

    /// Overwrites the keys in a folder, whoever they are of, and empties it.
    pub fn forget(dir: &Path) -> Result<(), Error> {
        Self::locked(dir, [0; 32])?.finish()
    }

    fn locked(dir: &Path, parties: [u8; 32]) -> Result<Self, Error> {
        let io =
            |e: &std::io::Error| Error::io(format_args!("opening the match folder {}", dir.display()), e);
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| io(&e))?;
        let meta = fs::metadata(dir).map_err(|e| io(&e))?;
        check_private(dir, &meta, rustix::process::geteuid().as_raw())?;
        let lock = private(&dir.join(LOCK)).map_err(|e| io(&e))?;
        lock.try_lock().map_err(|_| {
            Error::input(format!(
                "the match folder {} is in use by another process; wait for it",
                dir.display()
            ))
        })?;
        Ok(Self { dir: dir.to_path_buf(), _lock: lock, parties, logs: Vec::new() })
    }

    fn read_state(&self) -> Result<Option<JournalRun>, Error> {
        let bytes = match fs::read(self.dir.join(STATE)) {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("reading the match folder", &e)),
        };
        let Some(version) = version(&bytes) else { return Ok(None) };
        let state = &bytes[..STATE_BYTES[version]];
        let (body, digest) = state.split_last_chunk::<32>().expect("longer than a digest");
        if blake3::hash(body).as_bytes() != digest {
            return Ok(None);
        }
        let words: &[[u8; 32]] = body[16..176].as_chunks().0;
        if words[0] != self.parties {
            return Err(Error::input(format!(
                "the match folder {} is of a match between other parties; give each match its own",
                self.dir.display()
            )));
        }
        let number = |at: usize| u64::from_le_bytes(*body[at..].first_chunk().expect("numbers end it"));
        let parts = match version {
            0 => None,
            _ => match Partitioning::named(number(208)) {
                None => return Ok(None),
                parts => parts,
            },
        };
        Ok(Some(JournalRun {
            keys: [Secret::new(words[1]), Secret::new(words[2])],
            salt: words[3],
            fingerprint: words[4],
            name: *body[176..].first_chunk().expect("then the name"),
            rows: [number(192), number(200)],
            parts,
        }))
    }

    /// Opens the logs of `run`, `u` as far as it is whole.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn go_on(&mut self, run: &JournalRun) -> Result<(), Error> {
        self.logs = self.open_logs(run)?;
        self.logs[JournalLog::U as usize].find_ends(&run.rows[..1])
    }

    /// Forgets what the folder holds and begins `run`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, run: &JournalRun) -> Result<(), Error> {
        self.logs.clear();
        let version = usize::from(run.parts.is_some());
        let mut bytes = Zeroizing::new(Vec::with_capacity(STATE_BYTES[version]));
        let [first, second] = &run.keys;
        bytes.extend_from_slice(MAGIC[version]);
        for word in [&self.parties, first.expose(), second.expose(), &run.salt, &run.fingerprint] {
            bytes.extend_from_slice(word);
        }
        bytes.extend_from_slice(&run.name);
        let parts = run.parts.map(|parts| u64::from(parts.bits()));
        run.rows.into_iter().chain(parts).for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        debug_assert_eq!(bytes.len(), STATE_BYTES[version]);
        self.write_state(&bytes)?;
        self.logs = self.open_logs(run)?;
        let empty = |log: &LogFile| log.file.set_len(0).map_err(|e| Error::io("emptying a log", &e));
        self.logs.iter().try_for_each(empty)?;
        self.pins_file()?.set_len(0).map_err(|e| Error::io("emptying a log", &e))
    }

    /// Finds how far `e` and `v` are whole, now that the sizes of the partitions of own rows and of the
    /// peer's are known: finished chunks of both, by partition.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn deal(&mut self, [own, peer]: [&[u64]; 2]) -> Result<Vec<[u64; 2]>, Error> {
        self.logs[JournalLog::E as usize].find_ends(peer)?;
        self.logs[JournalLog::V as usize].find_ends(own)?;
        let [_, e, v] = &self.logs[..] else { unreachable!("there are three logs") };
        Ok(e.parts.iter().zip(&v.parts).map(|(e, v)| [e.chunks, v.chunks]).collect())
    }

    fn pins_file(&self) -> Result<File, Error> {
        private(&self.dir.join(PINS)).map_err(|e| Error::io("opening a log", &e))
    }

    /// What the peer said in `run` after the streams, as far as it is whole.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn pins(&self, run: &JournalRun) -> Result<MessagePins, Error> {
        MessagePins::open(self.pins_file()?, tag_key(run, PINS), run.parts.is_some())
    }

    /// Replaces the state: what was there is overwritten, so that keys are gone with the run.
    fn write_state(&self, bytes: &[u8]) -> Result<(), Error> {
        let write = || {
            let mut file = private(&self.dir.join(STATE))?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(|e| Error::io(format_args!("writing to {}", self.dir.display()), &e))
    }

    fn open_logs(&self, run: &JournalRun) -> Result<Vec<LogFile>, Error> {
        let [own, peer] = run.rows;
        let open = |(name, rows): (&str, u64)| {
            let file = private(&self.dir.join(name)).map_err(|e| Error::io("opening a log", &e))?;
            let places = run.partitioning().cap(rows).div_ceil(CHUNK);
            let digests = name != LOGS[JournalLog::U as usize] && run.parts.is_some();
            Ok(LogFile { file, key: tag_key(run, name), digests, places, parts: Vec::new() })
        };
        let mut logs = LOGS.into_iter().zip([own, peer, own]).map(open).collect::<Result<Vec<_>, Error>>()?;
        logs[JournalLog::U as usize].parts = vec![LogPart { rows: own, chunks: 0 }];
        Ok(logs)
    }

    /// Finished chunks of the log `u`.
    #[must_use]
    pub fn hashed(&self) -> u64 {
        self.logs[JournalLog::U as usize].parts[0].chunks
    }

    /// Replaces the front of `into` by a chunk of a log, and hands out the digest behind it; zeros where
    /// there is none.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub fn get(&self, log: JournalLog, at: ChunkAt, into: &mut [GroupElement]) -> Result<ChunkDigest, Error> {
        self.logs[log as usize].get(at, into)?.ok_or_else(|| {
            Error::input("a log of the match folder changed; delete the folder and start again")
        })
    }

    /// Appends a chunk to its partition of a log. One that is there already must be the same.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(
        &mut self,
        log: JournalLog,
        at: ChunkAt,
        chunk: &[GroupElement],
        digest: &ChunkDigest,
    ) -> Result<ChunkRepeat, Error> {
        let log = &mut self.logs[log as usize];
        if at.1 < log.parts[at.0 as usize].chunks {
            let mut before = vec![[0; 32]; chunk.len()];
            let known = log.get(at, &mut before)?;
            let same = known.is_some_and(|known| !log.digests || known == *digest) && before == chunk;
            return Ok(if same { ChunkRepeat::Same } else { ChunkRepeat::Other });
        }
        log.append(at, chunk, digest)?;
        Ok(ChunkRepeat::Same)
    }

    /// Wipes the keys and empties the folder, which goes too if nothing else is in it.
    ///
    /// # Errors
    /// When a file cannot be written or removed.
    pub fn finish(self) -> Result<(), Error> {
        self.write_state(&[0; STATE_BYTES[1]])?;
        for name in LOGS.iter().chain([&PINS, &STATE, &LOCK]) {
            match fs::remove_file(self.dir.join(name)) {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    return Err(Error::io(format_args!("emptying {}", self.dir.display()), &e));
                }
                // A run that ended before it began has no logs.
                _ => {}
            }
        }
        // Somebody else's file may be there; it is not ours to judge.
        drop(fs::remove_dir(&self.dir));
        Ok(())
    }
}

/// The key of the tags in one file of a run.
fn tag_key(run: &JournalRun, name: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tacit pid log tags 1");
    for key in &run.keys {
        hasher.update(key.expose());
    }
    *hasher.update(&run.name).update(name.as_bytes()).finalize().as_bytes()
}

/// Whether a chunk that was in its log already is the same as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkRepeat {
    Same,
    Other,
}

/// Whether keys may lie in a folder: it is the user's own, and nobody else may look into it.
fn check_private(dir: &Path, meta: &fs::Metadata, user: u32) -> Result<(), Error> {
    let bad = |what: &str| {
        Err(Error::input(format!("the match folder {} will hold keys and {what}", dir.display())))
    };
    if meta.uid() != user {
        return bad("is another user's; give one of your own");
    }
    match meta.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => bad("is open to other users; run chmod 700 on it"),
    }
}

/// A file of this user alone, made if there is none, its content kept.
fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

impl LogFile {
    /// Where a chunk begins: chunks and what lies behind them have one length each, however full they are.
    fn offset(&self, ChunkAt(part, index): ChunkAt) -> u64 {
        let digest = if self.digests { size_of::<ChunkDigest>() as u64 } else { 0 };
        (u64::from(part) * self.places + index) * (CHUNK * ELEMENT_BYTES + digest + TAG_BYTES)
    }

    fn tag(&self, at: ChunkAt, chunk: &[GroupElement], digest: &[u8]) -> [u8; TAG_BYTES as usize] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        let place = u64::from(at.0) * self.places + at.1;
        hasher.update(&place.to_le_bytes()).update(chunk.as_flattened()).update(digest);
        *hasher.finalize().as_bytes().first_chunk().expect("a digest is longer")
    }

    /// Reads a chunk and its digest; nothing when it is not whole.
    fn get(&self, at: ChunkAt, into: &mut [GroupElement]) -> Result<Option<ChunkDigest>, Error> {
        let mut digest = [0; size_of::<ChunkDigest>()];
        let kept = if self.digests { &mut digest[..] } else { &mut [] };
        let mut tag = [0; TAG_BYTES as usize];
        let mut offset = self.offset(at);
        for bytes in [into.as_flattened_mut(), &mut kept[..], &mut tag[..]] {
            match self.file.read_exact_at(bytes, offset) {
                Ok(()) => offset += bytes.len() as u64,
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
                Err(e) => return Err(Error::io("reading a log", &e)),
            }
        }
        Ok((self.tag(at, into, kept) == tag).then_some(digest))
    }

    /// Finds the finished chunks of partitions of so many rows.
    fn find_ends(&mut self, rows: &[u64]) -> Result<(), Error> {
        self.parts = rows.iter().map(|&rows| LogPart { rows, chunks: 0 }).collect();
        let mut chunk = vec![[0; 32]; CHUNK as usize];
        for (number, &rows) in (0..).zip(rows) {
            let mut whole = 0;
            for (index, rows) in (0..).zip(chunks(rows)) {
                if self.get(ChunkAt(number, index), &mut chunk[..len(&rows)])?.is_none() {
                    break;
                }
                whole += 1;
            }
            self.parts[number as usize].chunks = whole;
        }
        Ok(())
    }

    fn append(&mut self, at: ChunkAt, rows: &[GroupElement], digest: &ChunkDigest) -> Result<(), Error> {
        let part = &self.parts[at.0 as usize];
        debug_assert_eq!((at.1, rows.len()), (part.chunks, len(&chunk(part.rows, at.1))));
        let digest = if self.digests { &digest[..] } else { &[] };
        let frame = [rows.as_flattened(), digest, &self.tag(at, rows, digest)].concat();
        let done = self.file.write_all_at(&frame, self.offset(at));
        done.map_err(|e| Error::io("writing a log of the match folder", &e))?;
        self.parts[at.0 as usize].chunks += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(byte: u8) -> JournalRun {
        JournalRun {
            keys: [Secret::new([byte; 32]), Secret::new([byte + 1; 32])],
            salt: [1; 32],
            fingerprint: [2; 32],
            name: [3; 16],
            rows: [CHUNK + 5, 10],
            parts: Some(Partitioning::WHOLE),
        }
    }

    fn chunk(rows: u64, byte: u8) -> Vec<GroupElement> {
        vec![[byte; 32]; rows as usize]
    }

    #[test]
    fn keys_lie_in_a_folder_of_ones_own_only() {
        let dir = tempfile::tempdir().unwrap();
        let error = |mode, user: fn(u32) -> u32| {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            let meta = fs::metadata(dir.path()).unwrap();
            check_private(dir.path(), &meta, user(meta.uid())).err().map(|e| e.to_string())
        };
        assert_eq!(error(0o700, |own| own), None);
        assert!(error(0o750, |own| own).unwrap().ends_with("is open to other users; run chmod 700 on it"));
        assert!(error(0o700, |own| own + 1).unwrap().ends_with("is another user's; give one of your own"));
    }

    /// What a test puts behind a chunk.
    const DIGEST: ChunkDigest = [5; 32];

    #[test]
    fn a_journal_goes_on_as_far_as_it_is_whole() {
        for parts in [None, Some(Partitioning::WHOLE)] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("match");
            let run = |byte| JournalRun { parts, ..run(byte) };
            let (own, peer) = ([CHUNK + 5], [10]);
            let (mut journal, before) = MatchJournal::open(&path, ["a", "b"]).unwrap();
            assert!(before.is_none());
            journal.begin(&run(7)).unwrap();
            assert_eq!(journal.deal([&own, &peer]).unwrap(), [[0, 0]]);
            let put = |journal: &mut MatchJournal, log, at, chunk: &[GroupElement]| {
                journal.put(log, ChunkAt(0, at), chunk, &DIGEST).unwrap()
            };
            assert_eq!(put(&mut journal, JournalLog::U, 0, &chunk(CHUNK, 1)), ChunkRepeat::Same);
            put(&mut journal, JournalLog::U, 1, &chunk(5, 2));
            put(&mut journal, JournalLog::E, 0, &chunk(10, 3));
            assert_eq!(put(&mut journal, JournalLog::E, 0, &chunk(10, 3)), ChunkRepeat::Same);
            assert_eq!(put(&mut journal, JournalLog::E, 0, &chunk(10, 4)), ChunkRepeat::Other);
            let other = journal.put(JournalLog::E, ChunkAt(0, 0), &chunk(10, 3), &[6; 32]).unwrap();
            assert_eq!(other == ChunkRepeat::Other, parts.is_some(), "what was said is bound");
            let busy = MatchJournal::open(&path, ["a", "b"]).err().unwrap().to_string();
            assert!(busy.contains("in use by another process"), "{busy}");
            drop(journal);

            let (mut journal, before) = MatchJournal::open(&path, ["a", "b"]).unwrap();
            let before = before.unwrap();
            let told = (before.keys[1].expose(), before.rows, before.name, before.parts);
            assert_eq!(told, (&[8; 32], run(7).rows, [3; 16], parts));
            assert!(holds_a_run(&path));
            journal.go_on(&before).unwrap();
            assert_eq!((journal.hashed(), journal.deal([&own, &peer]).unwrap()), (2, vec![[1, 0]]));
            let mut read = chunk(5, 0);
            journal.get(JournalLog::U, ChunkAt(0, 1), &mut read).unwrap();
            assert_eq!(read, chunk(5, 2));
            let digest = journal.get(JournalLog::E, ChunkAt(0, 0), &mut chunk(10, 0)).unwrap();
            assert_eq!(digest, if parts.is_some() { DIGEST } else { [0; 32] });

            // A chunk that is torn, or of other keys, is none.
            fs::OpenOptions::new().write(true).open(path.join("u")).unwrap().write_all_at(&[9], 40).unwrap();
            journal.go_on(&before).unwrap();
            assert_eq!((journal.hashed(), journal.deal([&own, &peer]).unwrap()), (0, vec![[1, 0]]));
            journal.go_on(&run(8)).unwrap();
            assert_eq!((journal.hashed(), journal.deal([&own, &peer]).unwrap()), (0, vec![[0, 0]]));
            journal.begin(&run(8)).unwrap();
            assert_eq!(fs::metadata(path.join("e")).unwrap().len(), 0);
            journal.finish().unwrap();
            assert!(!path.exists() && !holds_a_run(&path));
        }
    }

    #[test]
    fn partitions_of_a_log_end_each_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("match");
        let run = JournalRun { parts: Some(Partitioning::of([0; 2], 4)), rows: [30_000; 2], ..run(7) };
        let sizes: [&[u64]; 2] = [&[7_000, 8_000, 7_500, 7_500], &[7_400, 7_600, 0, 15_000 - 8_000]];
        let (mut journal, _) = MatchJournal::open(&path, ["a", "b"]).unwrap();
        journal.begin(&run).unwrap();
        journal.deal(sizes).unwrap();
        let rows = [(3, 0, CHUNK), (0, 0, CHUNK), (0, 1, 7_000 - CHUNK), (1, 0, CHUNK)];
        for (part, index, rows) in rows {
            let at = ChunkAt(part, index);
            journal.put(JournalLog::V, at, &chunk(rows, part as u8), &[part as u8; 32]).unwrap();
        }
        journal.go_on(&run).unwrap();
        assert_eq!(journal.deal(sizes).unwrap(), [[0, 2], [0, 1], [0, 0], [0, 1]]);
        let mut read = chunk(CHUNK, 0);
        assert_eq!(journal.get(JournalLog::V, ChunkAt(3, 0), &mut read).unwrap(), [3; 32]);
        assert_eq!(read, chunk(CHUNK, 3));
    }

    #[test]
    fn folders_that_are_not_ours_are_refused_and_a_torn_state_is_none() {
        let keep = tempfile::tempdir().unwrap();
        let dir = keep.path().join("match");
        let (mut journal, _) = MatchJournal::open(&dir, ["a", "b"]).unwrap();
        journal.begin(&run(1)).unwrap();
        let mode = |name: &str| fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("match"), 0o600);
        drop(journal);
        let other = MatchJournal::open(&dir, ["a", "c"]).err().unwrap().to_string();
        assert!(other.contains("between other parties"), "{other}");
        let file = fs::OpenOptions::new().write(true).open(dir.join("match")).unwrap();
        file.write_all_at(&[0xff], 100).unwrap();
        assert!(MatchJournal::open(&dir, ["a", "b"]).unwrap().1.is_none());
        file.set_len(10).unwrap();
        assert!(MatchJournal::open(&dir, ["a", "b"]).unwrap().1.is_none());
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        let open = MatchJournal::open(&dir, ["a", "b"]).err().unwrap().to_string();
        assert!(open.contains("chmod 700"), "{open}");
    }
}

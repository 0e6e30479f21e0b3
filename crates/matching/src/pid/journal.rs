//! What a party keeps of a match on disk, so that a match that was cut goes on where both stood.
//!
//! A folder, private to this party, of one match with one peer: `match`, the keys of the run and what they
//! may be used for; and three logs of finished chunks, `u` (own rows, in the order of the input), `e` (the
//! peer's rows, in the peer's order) and `v` (own rows as universal identifiers, in the order in which they
//! were sent). Everything that is sent is a function of these, so that what is sent again is the same bytes.
//! Of what the peer sends after the streams, `pins` holds a hash per message ([`MessagePins`]); a folder of a
//! version without them goes on, and pins from there.
//!
//! Chunks carry a tag under a key of the run: a chunk of another run, or one that did not reach the disk
//! whole, ends its log. At success, and when the peer deviates, keys are overwritten and the folder is
//! emptied.

use super::pins::MessagePins;
use crate::chunks::CHUNK;
use crate::group::{ELEMENT_BYTES, GroupElement};
use base::{Error, Secret};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const MAGIC: &[u8; 16] = b"tacit pid log 1\n";
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
    state.len() == STATE_BYTES && state.starts_with(MAGIC)
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
}

/// Bytes of [`JournalRun`] in its file, with `MAGIC`, a digest of the parties and a digest of all.
const STATE_BYTES: usize = 16 + 32 + 4 * 32 + 16 + 2 * 8 + 32;

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
    /// Rows of the whole log, and finished chunks.
    rows: u64,
    chunks: u64,
}

impl MatchJournal {
    /// Opens or makes folder `dir` for a match of the parties called `names`, this one first; also the run
    /// that it holds.
    ///
    /// # Errors
    /// When it is open to others, in use, of other parties, or cannot be written.
    pub fn open(dir: &Path, names: [&str; 2]) -> Result<(Self, Option<JournalRun>), Error> {
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
        let parties = blake3::derive_key("tacit pid log parties 1", format!("{names:?}").as_bytes());
        let journal = Self { dir: dir.to_path_buf(), _lock: lock, parties, logs: Vec::new() };
        let run = journal.read_state()?;
        Ok((journal, run))
    }

    fn read_state(&self) -> Result<Option<JournalRun>, Error> {
        let mut bytes = Zeroizing::new([0; STATE_BYTES]);
        let read = File::open(self.dir.join(STATE)).and_then(|mut file| file.read_exact(&mut *bytes));
        match read {
            Ok(()) => {}
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => return Ok(None),
            Err(e) => return Err(Error::io("reading the match folder", &e)),
        }
        let (body, digest) = bytes.split_last_chunk::<32>().expect("longer than a digest");
        if !body.starts_with(MAGIC) || blake3::hash(body).as_bytes() != digest {
            return Ok(None);
        }
        let words: &[[u8; 32]] = body[16..176].as_chunks().0;
        if words[0] != self.parties {
            return Err(Error::input(format!(
                "the match folder {} is of a match between other parties; give each match its own",
                self.dir.display()
            )));
        }
        let number = |at: usize| u64::from_le_bytes(*body[at..].first_chunk().expect("two numbers end it"));
        Ok(Some(JournalRun {
            keys: [Secret::new(words[1]), Secret::new(words[2])],
            salt: words[3],
            fingerprint: words[4],
            name: *body[176..].first_chunk().expect("then the name"),
            rows: [number(192), number(200)],
        }))
    }

    /// Opens the logs of `run` as far as they are whole.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn go_on(&mut self, run: &JournalRun) -> Result<(), Error> {
        self.logs = self.open_logs(run)?;
        self.logs.iter_mut().try_for_each(LogFile::find_end)
    }

    /// Forgets what the folder holds and begins `run`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, run: &JournalRun) -> Result<(), Error> {
        self.logs.clear();
        let mut bytes = Zeroizing::new(Vec::with_capacity(STATE_BYTES));
        let [first, second] = &run.keys;
        bytes.extend_from_slice(MAGIC);
        for word in [&self.parties, first.expose(), second.expose(), &run.salt, &run.fingerprint] {
            bytes.extend_from_slice(word);
        }
        bytes.extend_from_slice(&run.name);
        run.rows.iter().for_each(|rows| bytes.extend_from_slice(&rows.to_le_bytes()));
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        debug_assert_eq!(bytes.len(), STATE_BYTES);
        self.write_state(&bytes)?;
        self.logs = self.open_logs(run)?;
        let empty = |log: &LogFile| log.file.set_len(0).map_err(|e| Error::io("emptying a log", &e));
        self.logs.iter().try_for_each(empty)?;
        self.pins_file()?.set_len(0).map_err(|e| Error::io("emptying a log", &e))
    }

    fn pins_file(&self) -> Result<File, Error> {
        private(&self.dir.join(PINS)).map_err(|e| Error::io("opening a log", &e))
    }

    /// What the peer said in `run` after the streams, as far as it is whole.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn pins(&self, run: &JournalRun) -> Result<MessagePins, Error> {
        MessagePins::open(self.pins_file()?, tag_key(run, PINS))
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
            Ok(LogFile { file, key: tag_key(run, name), rows, chunks: 0 })
        };
        LOGS.into_iter().zip([own, peer, own]).map(open).collect()
    }

    /// Finished chunks of the logs `u`, `e` and `v`.
    #[must_use]
    pub fn positions(&self) -> [u64; 3] {
        [JournalLog::U, JournalLog::E, JournalLog::V].map(|log| self.logs[log as usize].chunks)
    }

    /// Replaces the front of `into` by chunk `index` of a log.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub fn get(&self, log: JournalLog, index: u64, into: &mut [GroupElement]) -> Result<(), Error> {
        match self.logs[log as usize].get(index, into)? {
            true => Ok(()),
            false => {
                Err(Error::input("a log of the match folder changed; delete the folder and start again"))
            }
        }
    }

    /// Appends a chunk to a log. A chunk that is there already must be the same.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&mut self, log: JournalLog, index: u64, chunk: &[GroupElement]) -> Result<ChunkRepeat, Error> {
        let log = &mut self.logs[log as usize];
        if index < log.chunks {
            let mut before = vec![[0; 32]; chunk.len()];
            let same = log.get(index, &mut before)? && before == chunk;
            return Ok(if same { ChunkRepeat::Same } else { ChunkRepeat::Other });
        }
        log.append(chunk)?;
        Ok(ChunkRepeat::Same)
    }

    /// Wipes the keys and empties the folder, which goes too if nothing else is in it.
    ///
    /// # Errors
    /// When a file cannot be written or removed.
    pub fn finish(self) -> Result<(), Error> {
        self.write_state(&[0; STATE_BYTES])?;
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

/// Bytes of a full chunk in a log.
const FRAME: u64 = CHUNK * ELEMENT_BYTES + TAG_BYTES;

impl LogFile {
    fn rows_of(&self, index: u64) -> usize {
        CHUNK.min(self.rows.saturating_sub(index * CHUNK)) as usize
    }

    fn tag(&self, index: u64, chunk: &[GroupElement]) -> [u8; TAG_BYTES as usize] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&index.to_le_bytes()).update(chunk.as_flattened());
        *hasher.finalize().as_bytes().first_chunk().expect("a digest is longer")
    }

    /// Reads chunk `index`; false when it is not whole.
    fn get(&self, index: u64, into: &mut [GroupElement]) -> Result<bool, Error> {
        let mut tag = [0; TAG_BYTES as usize];
        let (at, bytes) = (index * FRAME, into.as_flattened_mut());
        let read = self.file.read_exact_at(bytes, at);
        let read = read.and_then(|()| self.file.read_exact_at(&mut tag, at + bytes.len() as u64));
        match read {
            Ok(()) => Ok(self.tag(index, into) == tag),
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(e) => Err(Error::io("reading a log", &e)),
        }
    }

    fn find_end(&mut self) -> Result<(), Error> {
        let mut chunk = vec![[0; 32]; CHUNK as usize];
        while self.rows_of(self.chunks) > 0
            && self.get(self.chunks, &mut chunk[..self.rows_of(self.chunks)])?
        {
            self.chunks += 1;
        }
        Ok(())
    }

    fn append(&mut self, chunk: &[GroupElement]) -> Result<(), Error> {
        debug_assert_eq!(chunk.len(), self.rows_of(self.chunks));
        let tag = self.tag(self.chunks, chunk);
        let frame = [chunk.as_flattened(), &tag].concat();
        let done = self.file.write_all_at(&frame, self.chunks * FRAME);
        done.map_err(|e| Error::io("writing a log of the match folder", &e))?;
        self.chunks += 1;
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

    #[test]
    fn a_journal_goes_on_as_far_as_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("match");
        let (mut journal, before) = MatchJournal::open(&path, ["a", "b"]).unwrap();
        assert!(before.is_none());
        journal.begin(&run(7)).unwrap();
        assert_eq!(journal.put(JournalLog::U, 0, &chunk(CHUNK, 1)).unwrap(), ChunkRepeat::Same);
        journal.put(JournalLog::U, 1, &chunk(5, 2)).unwrap();
        journal.put(JournalLog::E, 0, &chunk(10, 3)).unwrap();
        assert_eq!(journal.put(JournalLog::E, 0, &chunk(10, 3)).unwrap(), ChunkRepeat::Same);
        assert_eq!(journal.put(JournalLog::E, 0, &chunk(10, 4)).unwrap(), ChunkRepeat::Other);
        let busy = MatchJournal::open(&path, ["a", "b"]).err().unwrap().to_string();
        assert!(busy.contains("in use by another process"), "{busy}");
        drop(journal);

        let (mut journal, before) = MatchJournal::open(&path, ["a", "b"]).unwrap();
        let before = before.unwrap();
        assert_eq!((before.keys[1].expose(), before.rows, before.name), (&[8; 32], run(7).rows, [3; 16]));
        journal.go_on(&before).unwrap();
        assert_eq!(journal.positions(), [2, 1, 0]);
        let mut read = chunk(5, 0);
        journal.get(JournalLog::U, 1, &mut read).unwrap();
        assert_eq!(read, chunk(5, 2));

        // A chunk that is torn, or of other keys, is none.
        fs::OpenOptions::new().write(true).open(path.join("u")).unwrap().write_all_at(&[9], 40).unwrap();
        journal.go_on(&before).unwrap();
        assert_eq!(journal.positions(), [0, 1, 0]);
        journal.go_on(&run(8)).unwrap();
        assert_eq!(journal.positions(), [0, 0, 0]);
        journal.begin(&run(8)).unwrap();
        assert_eq!(fs::metadata(path.join("e")).unwrap().len(), 0);
        journal.finish().unwrap();
        assert!(!path.exists());
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

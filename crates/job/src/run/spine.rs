//! A spine that is kept: later studies of the same parties on the same rows need no match, whatever their
//! columns are.
//!
//! A match leaves each party with the positions of its own rows. Its file holds these under keyed hashes of
//! the identifiers, with the name of the match, which all parties made of their nonces. A later run uses the
//! file if its study says the same of parties and matching and if all parties name the same match; nothing is
//! sent for it but that name. It tells nobody anything new: each party puts other columns on rows whose
//! places all knew.
//!
//! The file is private to its party (mode 600): it says which of its rows are in which place, though not who
//! they are, and whoever has it and guesses an identifier learns whether it is there.

use base::{Error, PartyId, Seed, limits};
use data::RowKeys;
use matching::MatchSizes;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use study::Study;

const MAGIC: &[u8; 14] = b"tacit-spine/1\n";
const HASH_BYTES: usize = 16;
const ENTRY_BYTES: usize = HASH_BYTES + 4;
/// Magic, key of the hashes, what the study says of matching, name of the match, party, parties, union, rows.
const HEAD_BYTES: usize = MAGIC.len() + 32 + 32 + 32 + 1 + 1 + 8 + 8;
const DIGEST_BYTES: usize = 32;

/// The name of a match: the same at all its parties, and of no other match.
pub(super) type Name = [u8; 32];

/// A kept spine, read and checked.
pub(super) struct KeptSpine {
    path: PathBuf,
    key: [u8; 32],
    name: Name,
    rows: Vec<u64>,
    union: u64,
    /// Hash of the identifiers and position, sorted.
    entries: Vec<([u8; HASH_BYTES], u32)>,
}

/// The file of one run: that of several runs of one publisher has the advertiser's name behind it.
pub(super) fn file(path: &Path, study: &Study) -> PathBuf {
    if study.part_of.is_none() {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", study.parties[1].name));
    name.into()
}

impl KeptSpine {
    /// A spine of this run.
    pub fn new(
        path: PathBuf,
        name: Name,
        sizes: &MatchSizes,
        identifiers: &RowKeys,
        positions: &[u32],
    ) -> Self {
        let key = *Seed::from_system().expose();
        let mut entries: Vec<_> =
            (0..).zip(positions).map(|(row, at)| (hash(&key, identifiers, row), *at)).collect();
        entries.sort_unstable();
        Self { path, key, name, rows: sizes.rows.clone(), union: sizes.union, entries }
    }

    /// Its name, which all parties must give alike.
    pub fn name(&self) -> Name {
        self.name
    }

    /// What the match told when it was run.
    pub fn sizes(&self) -> MatchSizes {
        MatchSizes { rows: self.rows.clone(), keys: Vec::new(), union: self.union }
    }

    /// The positions of these rows.
    ///
    /// # Errors
    /// When there are rows that were not there when the spine was made: how many, and which is the first.
    pub fn positions(&self, identifiers: &RowKeys) -> Result<Vec<u32>, Error> {
        let mut positions = Vec::with_capacity(identifiers.len());
        let (mut missing, mut first) = (0u64, None);
        for row in 0..identifiers.len() {
            let hash = hash(&self.key, identifiers, row);
            match self.entries.binary_search_by(|(met, _)| met.cmp(&hash)) {
                Ok(at) => positions.push(self.entries[at].1),
                Err(_) => {
                    missing += 1;
                    first.get_or_insert(row + 1);
                }
            }
        }
        let Some(first) = first else { return Ok(positions) };
        Err(Error::input(format!(
            "{missing} rows of this party's data are not on the kept spine {}, the first is row {first} of \
             those that take part: match again (without `spine`), or remove them",
            self.path.display()
        )))
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, study: &Study, me: PartyId) -> Result<(), Error> {
        let failed =
            |e: &std::io::Error| Error::io(format!("cannot keep the spine in {}", self.path.display()), e);
        let mut bytes = Vec::with_capacity(HEAD_BYTES + ENTRY_BYTES * self.entries.len());
        bytes.extend_from_slice(MAGIC);
        [&self.key, study.matching_hash().as_bytes(), &self.name]
            .iter()
            .for_each(|part| bytes.extend_from_slice(*part));
        bytes.extend([me.0, self.rows.len() as u8]);
        bytes.extend(self.union.to_le_bytes());
        bytes.extend((self.entries.len() as u64).to_le_bytes());
        self.rows.iter().for_each(|rows| bytes.extend(rows.to_le_bytes()));
        for (hash, position) in &self.entries {
            bytes.extend_from_slice(hash);
            bytes.extend(position.to_le_bytes());
        }
        bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Made with mode 600.
        let mut aside =
            tempfile::Builder::new().prefix(".spine-").tempfile_in(folder).map_err(|e| failed(&e))?;
        aside.write_all(&bytes).and_then(|()| aside.as_file().sync_all()).map_err(|e| failed(&e))?;
        aside.persist(&self.path).map(|_| ()).map_err(|e| failed(&e.error))
    }

    /// Reads the spine of a study's match.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, is readable by others, or is of another match.
    pub fn read(path: PathBuf, study: &Study, me: PartyId) -> Result<Self, Error> {
        let bytes = read(&path)?;
        let shown = path.display();
        let damaged = || Error::input(format!("{shown} is no kept spine, or it is damaged: match again"));
        let (body, digest) =
            bytes.split_at_checked(bytes.len().saturating_sub(DIGEST_BYTES)).ok_or_else(damaged)?;
        if body.len() < HEAD_BYTES || !body.starts_with(MAGIC) || blake3::hash(body).as_bytes() != digest {
            return Err(damaged());
        }
        let mut at = MAGIC.len();
        let mut take = |len: usize| {
            at += len;
            &body[at - len..at]
        };
        let mut hash = || <[u8; 32]>::try_from(take(32)).expect("as many bytes");
        let (key, matching, name) = (hash(), hash(), hash());
        let (party, parties) = (take(1)[0], usize::from(take(1)[0]));
        let mut number = || u64::from_le_bytes(take(8).try_into().expect("eight bytes"));
        let (union, count) = (number(), number());
        let length = count
            .checked_mul(ENTRY_BYTES as u64)
            .and_then(|all| all.checked_add(HEAD_BYTES as u64 + 8 * parties as u64));
        if Some(body.len() as u64) != length || union > limits::ROWS {
            return Err(damaged());
        }
        let rows: Vec<u64> = (0..parties).map(|_| number()).collect();
        let possible = |rows: &u64| *rows <= union;
        if !rows.iter().all(possible) || rows.iter().sum::<u64>() < union {
            return Err(damaged());
        }
        if matching != *study.matching_hash().as_bytes() || party != me.0 {
            return Err(Error::input(format!(
                "the spine {shown} is of another match: its parties, or what its study said under [match], \
                 differ from this study's; match again (without `spine`)"
            )));
        }
        let entry = |entry: &[u8]| {
            let (hash, position) = entry.split_at(HASH_BYTES);
            let position = u32::from_le_bytes(position.try_into().expect("four bytes"));
            (hash.try_into().expect("as many bytes"), position)
        };
        let entries = body[HEAD_BYTES + 8 * parties..].chunks_exact(ENTRY_BYTES).map(entry).collect();
        Ok(Self { path, key, name, rows, union, entries })
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let shown = path.display();
    let failed = |e: &std::io::Error| Error::reading(format!("cannot read the kept spine {shown}"), e);
    let mut file = OpenOptions::new().read(true).open(path).map_err(|e| failed(&e))?;
    let metadata = file.metadata().map_err(|e| failed(&e))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(Error::input(format!("others may read the kept spine {shown}: chmod 600 it")));
        }
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.read_to_end(&mut bytes).map_err(|e| failed(&e))?;
    Ok(bytes)
}

/// The name of a row: all its identifiers under the file's key.
fn hash(key: &[u8; 32], identifiers: &RowKeys, row: usize) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    for identifier in identifiers.row(row) {
        hasher.update(&(identifier.len() as u64).to_le_bytes()).update(identifier);
    }
    *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// Whether a spine can be kept in a file, before it costs anything.
///
/// # Errors
/// When there is no such folder, or nothing can be made there.
pub(super) fn try_folder(path: &Path) -> Result<(), Error> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |e: std::io::Error| Error::io(format!("a spine cannot be kept in {}", folder.display()), &e);
    fs::create_dir_all(folder).map_err(failed)?;
    tempfile::tempfile_in(folder).map(|_| ()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFT: &str = include_str!("../../../../examples/lift.toml");

    fn identifiers(names: &[&str]) -> RowKeys {
        let mut all = RowKeys::default();
        names.iter().for_each(|name| all.push(name.as_bytes()));
        all
    }

    #[test]
    fn a_kept_spine_serves_the_same_match_and_rows_that_were_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spine");
        let study = Study::parse("s", LIFT).unwrap();
        let sizes = MatchSizes { rows: vec![3, 4], keys: Vec::new(), union: 6 };
        let made = KeptSpine::new(path.clone(), [7; 32], &sizes, &identifiers(&["a", "b", "c"]), &[5, 0, 2]);
        made.write(&study, PartyId(0)).unwrap();
        let read =
            |text: &str, me| KeptSpine::read(path.clone(), &Study::parse("s", text).unwrap(), PartyId(me));
        let kept =
            read(&LIFT.replace("polio-1954", "another").replace("clamp        = 1", "clamp = 2"), 0).unwrap();
        assert_eq!((kept.name(), kept.sizes()), ([7; 32], sizes));
        assert_eq!(kept.positions(&identifiers(&["c", "a"])).unwrap(), [2, 5]);
        let error = kept.positions(&identifiers(&["c", "d", "e"])).unwrap_err().to_string();
        assert!(error.starts_with("2 rows of this party's data are not on the kept spine"), "{error}");
        assert!(error.contains("the first is row 2"), "{error}");
        let text = |result: Result<KeptSpine, Error>| result.err().unwrap().to_string();
        assert!(text(read(LIFT, 1)).contains("is of another match"));
        for (from, to) in
            [("\"trim\", ", ""), ("3f9a", "3f9b"), ("duplicates  = \"error\"", "duplicates = \"first\"")]
        {
            assert!(text(read(&LIFT.replace(from, to), 0)).contains("is of another match"), "{from}");
        }
        // Every byte counts, and so does every missing one.
        let bytes = fs::read(&path).unwrap();
        for at in [0, 20, bytes.len() / 2, bytes.len() - 1] {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert!(text(read(LIFT, 0)).contains("damaged"), "{at}");
            fs::write(&path, &bytes[..at]).unwrap();
            assert!(text(read(LIFT, 0)).contains("damaged"), "{at}");
        }
        // So many entries that their length wraps to that of a file that is a byte short.
        let mut body = bytes[..HEAD_BYTES + 8 * 2 - 1].to_vec();
        let at = MAGIC.len() + 3 * 32 + 2 + 8;
        body[at..at + 8].fill(0xff);
        let digest = *blake3::hash(&body).as_bytes();
        fs::write(&path, [&body[..], &digest].concat()).unwrap();
        assert!(text(read(LIFT, 0)).contains("damaged"));
        // More rows of a party than places, and fewer of all.
        for rows in [u64::MAX, 7, 0] {
            let mut body = bytes[..bytes.len() - DIGEST_BYTES].to_vec();
            body[HEAD_BYTES..HEAD_BYTES + 8].copy_from_slice(&rows.to_le_bytes());
            let digest = *blake3::hash(&body).as_bytes();
            fs::write(&path, [&body[..], &digest].concat()).unwrap();
            assert!(text(read(LIFT, 0)).contains("damaged"), "{rows}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn it_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spine");
        let study = Study::parse("s", LIFT).unwrap();
        let made = KeptSpine::new(path.clone(), [7; 32], &MatchSizes::default(), &identifiers(&[]), &[]);
        made.write(&study, PartyId(0)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = KeptSpine::read(path, &study, PartyId(0)).err().unwrap().to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }
}

//! One file for who audits an organisation: its ledger's export, statements and log, line by line as JSON,
//! signed at the end. No share, salt, seed, transcript, report, password, token or hash of one is in it.

use crate::kept;
use crate::log::{self, TrailEntry, VerifiedLog};
use base::{Error, hex, unhex};
use net::identity::{Identity, KeyFingerprint, PUBLIC_KEY_BYTES, SIGNATURE_BYTES, has_signed};
use privacy::ledger::Export;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use statements::{ProposalRecord, SignedStatement};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use study::StudyHash;

/// The format of the file, in its first line.
pub const TRAIL_FORMAT: &str = "tacit-trail/1";
/// What the digest of a file is for.
const DIGEST: &str = "tacit 2026-12 trail export v1";
/// What its signature is for.
const SIGNED: &[u8; 32] = b"tacit trail export v1\0\0\0\0\0\0\0\0\0\0\0";
/// Bytes of a line: a statement in hex digits, a detail, or a ledger.
const LINE_BYTES: usize = 1 << 30;
/// Entries that are written at once.
const BATCH: u32 = 1_000;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportHead {
    /// [`TRAIL_FORMAT`].
    pub format: String,
    /// When it was made: milliseconds since 1970.
    pub made_ms: u64,
    /// Who made and signed it.
    pub organisation: String,
    /// The study that it is about, 64 hex digits; none: all.
    pub study: Option<String>,
    /// Where the chain of the log stood; none: there is no log in it, or not the whole one.
    pub log: Option<VerifiedLog>,
}

/// What goes into a file.
pub struct TrailScope<'a> {
    /// The ledger's export.
    pub ledger: Export,
    /// The service's store, if there is one.
    pub store: Option<&'a Connection>,
    /// Of one study alone.
    pub study: Option<StudyHash>,
    /// When: milliseconds since 1970.
    pub made_ms: u64,
}

/// A line after the first.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TrailLine {
    Ledger(Box<Export>),
    Statement(String),
    Entry(TrailEntry),
    End(TrailEnd),
}

/// The last line.
#[derive(Serialize, Deserialize)]
struct TrailEnd {
    /// Lines before it.
    lines: u64,
    /// The Ed25519 key, 64 hex digits.
    key: String,
    /// Of the digest of all bytes before this line.
    signature: String,
}

/// A file that was read, and whose signature, statements and log hold.
pub struct SignedTrail {
    /// What it says of itself.
    pub header: ExportHead,
    /// The ledger's export.
    pub ledger: Option<Export>,
    /// Statements, as they came.
    pub statements: Vec<SignedStatement>,
    /// Entries of the log, oldest first.
    pub entries: Vec<TrailEntry>,
}

/// Whether a file begins as one of these.
#[must_use]
pub fn is_trail(path: &Path) -> bool {
    let first = std::fs::File::open(path).ok().and_then(|file| {
        let mut line = String::new();
        std::io::Read::take(BufReader::new(file), 4_096).read_line(&mut line).ok().map(|_| line)
    });
    first.and_then(|line| serde_json::from_str::<ExportHead>(&line).ok()).is_some()
}

/// What has been written, and a hash of it.
struct Signing<W> {
    out: W,
    hash: blake3::Hasher,
    lines: u64,
}

impl<W: Write> Signing<W> {
    fn line(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let text =
            serde_json::to_string(line).map_err(|e| Error::misuse(format!("a line is no JSON: {e}")))?;
        let text = text + "\n";
        self.hash.update(text.as_bytes());
        self.lines += 1;
        self.out.write_all(text.as_bytes()).map_err(|e| Error::io("cannot write the export", &e))
    }
}

impl TrailScope<'_> {
    /// Writes the file, signed by the organisation. Where the chain of its log stands, if all of it is there.
    ///
    /// # Errors
    /// When the log or a statement was changed, or the file cannot be written.
    pub fn write(self, identity: &Identity, out: impl Write) -> Result<Option<VerifiedLog>, Error> {
        let about = self.study.map(|study| study.full());
        let log = self.store.map(log::verify).transpose()?;
        let mut all = Signing { out, hash: blake3::Hasher::new_derive_key(DIGEST), lines: 0 };
        all.line(&ExportHead {
            format: TRAIL_FORMAT.to_owned(),
            made_ms: self.made_ms,
            organisation: identity.fingerprint().to_string(),
            study: about.clone(),
            log: log.clone().filter(|_| about.is_none()),
        })?;
        let ledger = match &about {
            Some(study) => self.ledger.of_study(study),
            None => self.ledger,
        };
        all.line(&TrailLine::Ledger(Box::new(ledger)))?;
        if let (Some(store), Some(log)) = (self.store, &log) {
            for statement in kept::statements(store, self.study.as_ref())? {
                all.line(&TrailLine::Statement(hex(&statement.bytes())))?;
            }
            let mut last = 0;
            loop {
                let batch = log::entries(store, last, BATCH, about.as_deref())?;
                let Some(newest) = batch.last().map(|entry| entry.number) else { break };
                // What the service writes meanwhile is for the next file.
                let there = batch.into_iter().filter(|entry| entry.number <= log.last);
                there.map(TrailLine::Entry).try_for_each(|line| all.line(&line))?;
                last = newest;
            }
        }
        let signature = identity.sign(&[&SIGNED[..], all.hash.finalize().as_bytes()].concat())?;
        let key = hex(&identity.public_key()?);
        all.line(&TrailLine::End(TrailEnd { lines: all.lines, key, signature: hex(&signature) }))?;
        all.out.flush().map_err(|e| Error::io("cannot write the export", &e))?;
        Ok(log.filter(|_| about.is_none()))
    }
}

impl SignedTrail {
    /// Reads a file, and checks its signature, every statement's, and the chains of statements and log; the
    /// ledger's part is for [`Export::verify`].
    ///
    /// # Errors
    /// The first line that is not as it was written.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let file =
            std::fs::File::open(path).map_err(|e| Error::reading(format!("cannot read {shown}"), &e))?;
        let mut reader =
            TrailReader { hash: blake3::Hasher::new_derive_key(DIGEST), file: BufReader::new(file) };
        let wrong = |line: u64, what: &str| Error::input(format!("{shown}, line {line}: {what}"));
        let first = reader.next().map_err(|what| wrong(1, &what))?.unwrap_or_default();
        let header: ExportHead = serde_json::from_str(&first).map_err(|e| wrong(1, &e.to_string()))?;
        if header.format != TRAIL_FORMAT {
            return Err(wrong(1, "it has another format: use the tacit that wrote it"));
        }
        let mut read = Self { header, ledger: None, statements: Vec::new(), entries: Vec::new() };
        for line in 2.. {
            let before = *reader.hash.finalize().as_bytes();
            let text = reader.next().map_err(|what| wrong(line, &what))?;
            let text =
                text.ok_or_else(|| wrong(line, "the file ends without a signature: it was cut off"))?;
            match serde_json::from_str(&text).map_err(|e| wrong(line, &e.to_string()))? {
                TrailLine::Ledger(export) => read.ledger = Some(*export),
                TrailLine::Statement(digits) => {
                    let bytes = bytes_of(&digits).ok_or_else(|| wrong(line, "it is no statement"))?;
                    let statement = SignedStatement::read(&bytes).map_err(|e| wrong(line, &e.to_string()))?;
                    read.statements.push(statement);
                }
                TrailLine::Entry(entry) => read.entries.push(entry),
                TrailLine::End(end) => {
                    let whole = end.lines == line - 1 && read.is_signed(&end, &before);
                    if !whole || reader.next() != Ok(None) {
                        return Err(wrong(line, "the signature is not of these lines: the file was changed"));
                    }
                    break;
                }
            }
        }
        read.follow_log()?;
        read.proposals()?;
        Ok(read)
    }

    fn is_signed(&self, end: &TrailEnd, digest: &[u8; 32]) -> bool {
        let (Some(key), Some(signature)) =
            (unhex::<PUBLIC_KEY_BYTES>(&end.key), unhex::<SIGNATURE_BYTES>(&end.signature))
        else {
            return false;
        };
        KeyFingerprint::of_ed25519(&key).to_string() == self.header.organisation
            && has_signed(&key, &[&SIGNED[..], digest].concat(), &signature)
    }

    /// The whole log has its chain; entries about one study have their own hashes.
    fn follow_log(&self) -> Result<(), Error> {
        if self.header.study.is_some() {
            let bent = self.entries.iter().find(|entry| !entry.fits());
            return bent.map_or(Ok(()), |entry| {
                Err(Error::input(format!("entry {} of the audit log was changed", entry.number)))
            });
        }
        let Some(log) = &self.header.log else {
            return match self.entries.is_empty() {
                true => Ok(()),
                false => Err(Error::input("there are entries of an audit log whose head is not named")),
            };
        };
        let Some(before) = log.first.checked_sub(1) else {
            return Err(Error::input("the entries of an audit log begin with number 1"));
        };
        let told = |entry: &TrailEntry| entry.action == log::CUT && entry.detail == log::cut_detail(before);
        if before > 0 && !self.entries.iter().any(told) {
            return Err(log::cut_untold(log.first));
        }
        let hash = match (before, self.entries.first()) {
            (0, _) => hex(&[0; 32]),
            (_, first) => first.map_or(log.hash.clone(), |entry| entry.previous.clone()),
        };
        let mut found = VerifiedLog { first: log.first, last: before, hash };
        log::follow(&mut found, &self.entries)?;
        if found == *log {
            Ok(())
        } else {
            Err(Error::input("the audit log ends before the entry that it names"))
        }
    }

    /// What this side holds, without a file: its statements, to compare with a peer's.
    ///
    /// # Errors
    /// When a statement in the store was changed.
    pub fn here(ledger: Export, store: &Connection) -> Result<Self, Error> {
        let header = ExportHead {
            format: TRAIL_FORMAT.to_owned(),
            made_ms: 0,
            organisation: String::new(),
            study: None,
            log: None,
        };
        let statements = kept::statements(store, None)?;
        Ok(Self { header, ledger: Some(ledger), statements, entries: Vec::new() })
    }

    /// Who signed it; none: it was read of a store.
    #[must_use]
    pub fn organisation(&self) -> Option<KeyFingerprint> {
        self.header.organisation.parse().ok()
    }

    /// The proposals that its statements are about.
    ///
    /// # Errors
    /// The first statement that does not go on its author's chain.
    pub fn proposals(&self) -> Result<Vec<ProposalRecord>, Error> {
        kept::proposals(&self.statements)
    }
}

struct TrailReader {
    hash: blake3::Hasher,
    file: BufReader<std::fs::File>,
}

impl TrailReader {
    /// The next line without its end; none where the file ends.
    fn next(&mut self) -> Result<Option<String>, String> {
        let mut line = Vec::new();
        let mut limited = std::io::Read::take(&mut self.file, LINE_BYTES as u64 + 1);
        limited.read_until(b'\n', &mut line).map_err(|e| e.to_string())?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.pop() != Some(b'\n') {
            return Err("the line has no end, or is too long".to_owned());
        }
        let text = String::from_utf8(line).map_err(|_| "it is no UTF-8".to_owned())?;
        self.hash.update(text.as_bytes()).update(b"\n");
        Ok(Some(text))
    }
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| unhex::<1>(std::str::from_utf8(pair).ok()?).map(|[byte]| byte);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

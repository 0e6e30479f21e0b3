//! The configuration file of `tacit circuit run --config`: what one of several hosts knows of a run.
//!
//! The GMW paper (Choi et al., section 2.4) names such a file and does not say what is in it. Ours follows
//! the format of its circuits: a record a line, a letter first. `docs/circuits.md` has the table.

use base::{Error, PartyId, limits};
use circuits::files::lines::{Lines, TextLine};
use net::KeyFingerprint;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What one host knows of a run.
#[derive(Debug)]
pub struct Config {
    pub parties: usize,
    pub me: PartyId,
    /// Own address, unless everybody is dialled.
    pub listen: Option<String>,
    /// Of every two parties the higher one dials the lower one: the addresses of the lower ones.
    pub dial: BTreeMap<PartyId, String>,
    /// Absent: plain TCP, on this machine only.
    pub keys: Option<ProofKeys>,
    pub input: Option<PathBuf>,
    pub circuit: Option<PathBuf>,
    pub deadline: Duration,
}

/// Who proves what.
#[derive(Debug)]
pub struct ProofKeys {
    pub identity: PathBuf,
    /// In party order.
    pub all: Vec<KeyFingerprint>,
}

/// The records as they come.
#[derive(Default)]
struct Records {
    parties: u8,
    me: Option<PartyId>,
    addresses: BTreeMap<PartyId, String>,
    keys: BTreeMap<PartyId, KeyFingerprint>,
    /// Of `s`, `i` and `c`.
    paths: BTreeMap<&'static str, PathBuf>,
    deadline: Option<Duration>,
    /// Where each record stands, by letter and party (0: it has none).
    lines: BTreeMap<(&'static str, u8), u64>,
}

impl Config {
    /// Reads a configuration file. Paths in it are relative to it.
    ///
    /// # Errors
    /// When the file cannot be read, or is malformed: file, line and reason.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let file = path.display().to_string();
        let failed = |e: std::io::Error| Error::reading(format!("cannot read {file}"), &e);
        let reader = BufReader::new(std::fs::File::open(path).map_err(failed)?);
        let mut config = parse(reader, &file)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let identity = config.keys.as_mut().map(|keys| &mut keys.identity);
        for path in [identity, config.input.as_mut(), config.circuit.as_mut()].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        Ok(config)
    }
}

fn parse(reader: impl BufRead, file: &str) -> Result<Config, Error> {
    let mut lines = Lines::new(reader, file);
    let mut records = Records::default();
    while let Some(line) = lines.next_line()? {
        records.take(&line)?;
    }
    records.config(&lines)
}

/// A line without its comment: from a `#` at its start or after white space.
fn uncommented(text: &str) -> &str {
    let starts = |at: &usize| text[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let comment = text.match_indices('#').map(|(at, _)| at).find(starts);
    text[..comment.unwrap_or(text.len())].trim_end()
}

impl Records {
    /// Takes a line.
    fn take(&mut self, line: &TextLine<'_>) -> Result<(), Error> {
        let text = uncommented(line.text());
        if text.is_empty() {
            return Ok(());
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim_start();
        if self.parties == 0 && word != "n" {
            return Err(line.fail("the first record is the number of parties: n 3"));
        }
        match word {
            "n" => {
                self.once("n", None, line)?;
                let field = field(line, rest, "the number of parties")?;
                let parties = line.number(field, "the number of parties", limits::PARTIES as u64)?;
                if parties < 2 {
                    return Err(line.fail("a protocol takes two parties or more"));
                }
                self.parties = parties as u8;
            }
            "p" => {
                self.once("p", None, line)?;
                let field = field(line, rest, "the number of this party")?;
                self.me = Some(self.party(field, line)?);
            }
            "a" => {
                let (party, address) = self.of_party("a", rest, "an address, host:port,", line)?;
                check_address(address).map_err(|why| line.fail(why))?;
                self.addresses.insert(party, address.to_owned());
            }
            "k" => {
                let (party, key) = self.of_party("k", rest, "a key, as `tacit keygen` prints it,", line)?;
                let key: KeyFingerprint = key.parse().map_err(|e: Error| line.fail(e.to_string()))?;
                if let Some((other, _)) = self.keys.iter().find(|(_, known)| **known == key) {
                    let text =
                        format!("this is the key of party {} as well: every party has its own", other.0 + 1);
                    return Err(line.fail(text));
                }
                self.keys.insert(party, key);
            }
            "s" => self.path("s", rest, "the file of this party's identity", line)?,
            "i" => self.path("i", rest, "the input file", line)?,
            "c" => self.path("c", rest, "the circuit file", line)?,
            "d" => {
                self.once("d", None, line)?;
                let field = field(line, rest, "the deadline")?;
                let ms = study::party::parse_deadline(field)
                    .map_err(|rule| line.fail(format!("{:?} is no deadline: {rule}", start(field))))?;
                self.deadline = Some(Duration::from_millis(ms));
            }
            _ => {
                let text = format!("{:?} begins no record; there are n, p, a, k, s, i, c and d", start(word));
                return Err(line.fail(text));
            }
        }
        Ok(())
    }

    /// Notes where a record stands, once.
    fn once(
        &mut self,
        letter: &'static str,
        party: Option<PartyId>,
        line: &TextLine<'_>,
    ) -> Result<(), Error> {
        match self.lines.insert((letter, party.map_or(0, |p| p.0 + 1)), line.number) {
            None => Ok(()),
            Some(first) => {
                let whose = party.map_or_else(String::new, |p| format!(" {}", p.0 + 1));
                Err(line.fail(format!("a second `{letter}{whose}`; the first is in line {first}")))
            }
        }
    }

    fn party(&self, field: &str, line: &TextLine<'_>) -> Result<PartyId, Error> {
        let number = line.number(field, "a party", u64::MAX)?;
        match u8::try_from(number) {
            Ok(p) if (1..=self.parties).contains(&p) => Ok(PartyId(p - 1)),
            _ => Err(line.fail(format!("party {number} is not one of 1 to {}", self.parties))),
        }
    }

    /// A record about one party: the party, and the one field after it.
    fn of_party<'a>(
        &mut self,
        letter: &'static str,
        rest: &'a str,
        what: &str,
        line: &TextLine<'_>,
    ) -> Result<(PartyId, &'a str), Error> {
        let (party, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if party.is_empty() {
            return Err(line.fail(format!("a party and {what} are missing")));
        }
        let party = self.party(party, line)?;
        self.once(letter, Some(party), line)?;
        Ok((party, field(line, rest.trim_start(), what)?))
    }

    /// A record that names a file: to the end of the line, as a path may have spaces.
    fn path(
        &mut self,
        letter: &'static str,
        rest: &str,
        what: &str,
        line: &TextLine<'_>,
    ) -> Result<(), Error> {
        self.once(letter, None, line)?;
        if rest.is_empty() {
            return Err(line.fail(format!("{what} is missing")));
        }
        self.paths.insert(letter, rest.into());
        Ok(())
    }

    /// Whether the records are a configuration.
    fn config<R: BufRead>(mut self, lines: &Lines<'_, R>) -> Result<Config, Error> {
        if self.parties == 0 {
            return Err(
                lines.fail("this configuration is empty; its first record is the number of parties: n 3")
            );
        }
        let me = self.me.ok_or_else(|| lines.fail("no record says which party this is: p 1"))?;
        let last = PartyId(self.parties - 1);
        let mut dial = BTreeMap::new();
        for party in (0..=me.0).map(PartyId).filter(|p| *p < last) {
            let address = self.addresses.remove(&party).ok_or_else(|| {
                let why = if party == me { "where this party listens" } else { "which this party goes to" };
                let number = party.0 + 1;
                lines.fail(format!("no address of party {number}, {why}: a {number} host:port"))
            })?;
            dial.insert(party, address);
        }
        let keys = self.pinned(lines)?;
        if keys.is_none() {
            self.same_machine(&dial, lines)?;
        }
        let listen = dial.remove(&me);
        let mut path = |letter| self.paths.remove(letter);
        Ok(Config {
            parties: self.parties.into(),
            me,
            listen,
            dial,
            keys,
            input: path("i"),
            circuit: path("c"),
            deadline: self.deadline.unwrap_or(Duration::from_millis(limits::DEADLINE_MS)),
        })
    }

    /// The keys: of all parties, or of none.
    fn pinned<R: BufRead>(&mut self, lines: &Lines<'_, R>) -> Result<Option<ProofKeys>, Error> {
        let identity = self.paths.remove("s");
        if self.keys.is_empty() && identity.is_none() {
            return Ok(None);
        }
        if let Some(party) = (0..self.parties).find(|p| !self.keys.contains_key(&PartyId(*p))) {
            let number = party + 1;
            return Err(lines.fail(format!(
                "no key of party {number}; with keys, every party has one: k {number} tacit1:..., as its \
                 `tacit keygen` prints"
            )));
        }
        let all = std::mem::take(&mut self.keys).into_values().collect();
        match identity {
            Some(identity) => Ok(Some(ProofKeys { identity, all })),
            None => Err(lines.fail(
                "there are keys, but no record names this party's identity file, from `tacit keygen`: s \
                 my.key",
            )),
        }
    }

    /// Without keys, addresses that this party uses are on its own machine.
    fn same_machine<R: BufRead>(
        &self,
        used: &BTreeMap<PartyId, String>,
        lines: &Lines<'_, R>,
    ) -> Result<(), Error> {
        let Some((party, address)) = used.iter().find(|(_, address)| !is_loopback(address)) else {
            return Ok(());
        };
        let at = self.lines[&("a", party.0 + 1)];
        Err(lines.fail_at(
            at,
            format!(
                "{} is beyond this machine, where keys are needed: let every party run `tacit keygen --out \
                 my.key`, write `k PARTY KEY` for each and `s my.key`",
                start(address)
            ),
        ))
    }
}

/// The only field of the rest of a line.
fn field<'a>(line: &TextLine<'_>, rest: &'a str, what: &str) -> Result<&'a str, Error> {
    let mut fields = rest.split_ascii_whitespace();
    let field = fields.next().ok_or_else(|| line.fail(format!("{what} is missing")))?;
    line.end(&mut fields)?;
    Ok(field)
}

/// The first characters of what somebody wrote.
fn start(text: &str) -> String {
    text.chars().take(64).collect()
}

/// `host:port`, with a port that others can name.
fn check_address(address: &str) -> Result<(), String> {
    let wrong = |rule: &str| format!("{:?} is no address: {rule}", start(address));
    study::party::parse_address(address).map_err(wrong)?;
    match address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()) {
        Some(0) | None => Err(wrong("the others must know the port, 1 to 65535")),
        Some(_) => Ok(()),
    }
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

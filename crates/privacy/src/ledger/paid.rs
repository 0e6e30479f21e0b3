//! What both sides sign of a debit: which number was paid for, for whom, and what it costs.
//!
//! The words are text, so that anybody can check a signature with other programs. They hold what all parties
//! of a release know alike: the number, the study, the viewers, rho, delta and tau. They name no lineage,
//! which is its owner's alone, and no budget. A party signs when it pays, or when it records what is paid for
//! it, and keeps what the others signed.

use super::{Bytes32, Debit, EntryRow, Ledger, begin, file, now};
use base::{Error, hex, unhex};
use net::identity::{Identity, KeyFingerprint, PUBLIC_KEY_BYTES, SIGNATURE_BYTES, has_signed};
use release::Rational;
use release::rational::{parse, shown};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of what a party says when it pays: that it does, its key, the time, its signature.
pub const PAID_BYTES: usize = 1 + PUBLIC_KEY_BYTES + 8 + SIGNATURE_BYTES;

/// What is paid for, as all parties know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebitTerms {
    /// Hash of the study.
    pub study: Bytes32,
    /// Which release, by the name that it has at all parties.
    pub release: Bytes32,
    /// Who sees it: keys in the order of the study, with a space between, and [`super::PUBLIC`] last where
    /// anybody may.
    pub viewers: String,
    /// zCDP charged.
    pub rho: Rational,
    /// Delta charged.
    pub delta: Rational,
    /// How far the law of the noise is from the one that the rho is of, at most.
    pub tau: Rational,
}

impl DebitTerms {
    /// The words that `signer` signs at a time of one number of the release.
    #[must_use]
    pub fn text(&self, signer: &str, at: u64, (number, attempt): (&Bytes32, u32)) -> String {
        let Self { study, release, viewers, rho, delta, tau } = self;
        format!(
            "tacit paid 1\nsigner {signer}\nat {at}\nnumber {}\nattempt {attempt}\nrelease {}\nstudy \
             {}\nviewers {viewers}\n\
             rho {rho}\ndelta {delta}\ntau {tau}\n",
            hex(number),
            hex(release),
            hex(study)
        )
    }
}

/// The words that one party signed of one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentProof {
    /// When, by the signer's clock: seconds since 1970.
    pub at: u64,
    /// What was signed.
    pub text: String,
    key: [u8; PUBLIC_KEY_BYTES],
    signature: [u8; SIGNATURE_BYTES],
}

impl PaymentProof {
    /// Signs that this party pays for a number now.
    ///
    /// # Errors
    /// When the identity does not sign.
    pub fn sign(identity: &Identity, terms: &DebitTerms, number: (&Bytes32, u32)) -> Result<Self, Error> {
        let at = now().unsigned_abs();
        let text = terms.text(&identity.fingerprint().to_string(), at, number);
        let signature = identity.sign(text.as_bytes())?;
        Ok(Self { at, text, key: identity.public_key()?, signature })
    }

    /// As it is sent.
    #[must_use]
    pub fn bytes(&self) -> [u8; PAID_BYTES] {
        let all = [&[1][..], &self.key, &self.at.to_le_bytes(), &self.signature].concat();
        all.try_into().expect("the parts add up")
    }

    /// What a peer with the key `signer` said, if it signed these terms. `None`: it says that it does not
    /// pay.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(
        bytes: &[u8; PAID_BYTES],
        signer: &str,
        terms: &DebitTerms,
        number: (&Bytes32, u32),
    ) -> Result<Option<Self>, &'static str> {
        let (word, rest) = bytes.split_first().expect("it has bytes");
        match word {
            0 if rest.iter().all(|byte| *byte == 0) => return Ok(None),
            1 => {}
            _ => return Err("whether the release is paid for"),
        }
        let (key, rest) = rest.split_first_chunk().expect("32 bytes");
        let (at, signature) = rest.split_first_chunk().expect("eight bytes");
        let at = u64::from_le_bytes(*at);
        let signature: [u8; SIGNATURE_BYTES] = signature.try_into().expect("64 bytes");
        let paid = Self { at, text: terms.text(signer, at, number), key: *key, signature };
        let own = signer.parse().is_ok_and(|signer| KeyFingerprint::of_ed25519(key) == signer);
        if own && i64::try_from(at).is_ok() && paid.holds() {
            Ok(Some(paid))
        } else {
            Err("a signature of what it pays for: study, viewers and charge are the same at all")
        }
    }

    /// Whether it is signed.
    #[must_use]
    pub fn holds(&self) -> bool {
        has_signed(&self.key, self.text.as_bytes(), &self.signature)
    }
}

/// What a party says that does not pay.
pub const UNPAID: [u8; PAID_BYTES] = [0; PAID_BYTES];

/// One signature, for listing and for who checks it elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureRow {
    /// Row number.
    pub row: u64,
    /// The number of the release, 64 hex digits.
    pub number: String,
    /// Who signed.
    pub signer: String,
    /// What was signed, word by word.
    pub text: String,
    /// The signer's Ed25519 key, 64 hex digits.
    pub key: String,
    /// The signature, 128 hex digits.
    pub signature: String,
}

impl SignatureRow {
    /// A line of what was signed.
    #[must_use]
    pub fn says(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
    }

    /// Whether it is a signature of who is named as its signer, of the number that is named.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| {
            Err(format!("the signature of {} on number {} {what}", self.signer, short(&self.number)))
        };
        let (Some(key), Some(signature)) = (unhex::<32>(&self.key), unhex::<64>(&self.signature)) else {
            return wrong("cannot be read");
        };
        if KeyFingerprint::of_ed25519(&key).to_string() != self.signer
            || self.says("signer") != Some(&*self.signer)
            || self.says("number") != Some(&*self.number)
        {
            return wrong("is of another key or number");
        }
        if !has_signed(&key, self.text.as_bytes(), &signature) {
            return wrong("does not hold");
        }
        Ok(())
    }

    /// Whether it is about a debit: the same release, attempt, charge, study and viewers. Not tau: an unspent
    /// debit pays for the next number as well, whose tables may be others.
    ///
    /// # Errors
    /// What is another.
    pub fn fits(&self, entry: &EntryRow) -> Result<(), String> {
        let attempt = entry.attempt.to_string();
        let said = [
            ("release", entry.release.as_str()),
            ("attempt", &attempt),
            ("study", &entry.study),
            ("rho", &entry.exact_rho),
            ("delta", &entry.exact_delta),
        ];
        // A debit does not name its owner among those who see the number.
        let all = self.says("viewers").unwrap_or_default();
        let other = |one: &&str| *one == super::PUBLIC || entry.peer_key.split(' ').any(|peer| peer == *one);
        let others = all.split(' ').filter(other).collect::<Vec<_>>().join(" ");
        let viewers = ("viewers", entry.viewer_key.as_str());
        let seen = [all, &others].contains(&viewers.1);
        let wrong = said.into_iter().find(|(name, value)| self.says(name) != Some(value));
        match wrong.or((!seen).then_some(viewers)) {
            None => Ok(()),
            Some((name, value)) => Err(format!(
                "{} signed {name} {} of number {}, and row {} of debits says {value}",
                self.signer,
                self.says(name).unwrap_or("(nothing)"),
                short(&self.number),
                entry.row
            )),
        }
    }
}

fn short(hex: &str) -> &str {
    hex.get(..12).unwrap_or(hex)
}

impl Ledger {
    /// What a party signed of a number, if this ledger has it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn signature_of(&self, number: &Bytes32, signer: &str) -> Result<Option<PaymentProof>, Error> {
        let sql = "SELECT text, key, signature FROM signatures WHERE number = ?1 AND signer = ?2";
        let read = |row: &rusqlite::Row<'_>| {
            let text: String = row.get(0)?;
            let at = text.lines().find_map(|line| line.strip_prefix("at ")?.parse().ok()).unwrap_or(0);
            Ok(PaymentProof { at, text, key: row.get(1)?, signature: row.get(2)? })
        };
        let found = self.connection.query_row(sql, params![number, signer], read).optional();
        found.map_err(|e| self.explain("read", &e))
    }

    /// Keeps what a party signed of a number, in the chains of `peers`, unless it is kept.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn keep_signature(
        &mut self,
        number: &Bytes32,
        signer: &str,
        paid: &PaymentProof,
        peers: &str,
    ) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let peers: Vec<&str> = peers.split(' ').collect();
        keep(&write, number, signer, paid, &peers).map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// All signatures, oldest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn signatures(&self) -> Result<Vec<SignatureRow>, Error> {
        let sql = "SELECT row, number, signer, text, key, signature FROM signatures ORDER BY row";
        let read = |row: &rusqlite::Row<'_>| {
            Ok(SignatureRow {
                row: row.get::<_, i64>(0)?.unsigned_abs(),
                number: hex(&row.get::<_, Bytes32>(1)?),
                signer: row.get(2)?,
                text: row.get(3)?,
                key: hex(&row.get::<_, Bytes32>(4)?),
                signature: hex(&row.get::<_, [u8; SIGNATURE_BYTES]>(5)?),
            })
        };
        self.listed(sql, [], read)
    }
}

/// Keeps a signature in a transaction of the caller's, unless there is one; `peers` are those whose chains it
/// is in.
pub(super) fn keep(
    write: &Connection,
    number: &Bytes32,
    signer: &str,
    paid: &PaymentProof,
    peers: &[&str],
) -> Result<(), rusqlite::Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM signatures WHERE number = ?1 AND signer = ?2)";
    if write.query_row(sql, params![number, signer], |row| row.get(0))? {
        return Ok(());
    }
    let sql =
        "INSERT INTO signatures (at, number, signer, text, key, signature) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = params![now(), number, signer, paid.text, paid.key, paid.signature];
    super::put(write, "signatures", sql, values, peers).map(|_| ())
}

/// Signatures of debits, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SignedDebits {
    /// Debits that count or are this party's own record, with the signature of every party that they name.
    pub by_all: u32,
    /// Debits that lack one: the five below.
    pub not_by_all: u32,
    /// Of these, for sizes of matches: nobody signs those.
    pub sizes: u32,
    /// Of these, taken over after this ledger was lost: they are of no one release.
    pub recovered: u32,
    /// Of these, given back.
    pub given_back: u32,
    /// Of these, for releases of candidates, or of a version that signed nothing.
    pub candidates: u32,
    /// Of these, for numbers of runs that broke off before all had signed.
    pub unfinished: u32,
    /// Signatures.
    pub signatures: u32,
}

/// Checks every signature, and that what was signed is what the debits say.
///
/// # Errors
/// The first thing that does not fit.
pub fn check_signatures(debits: &[EntryRow], signatures: &[SignatureRow]) -> Result<SignedDebits, String> {
    signatures.iter().try_for_each(SignatureRow::check)?;
    let mut signed = SignedDebits { signatures: signatures.len() as u32, ..SignedDebits::default() };
    for entry in debits {
        let attempt = entry.attempt.to_string();
        let about = |one: &&SignatureRow| {
            one.says("release") == Some(&*entry.release) && one.says("attempt") == Some(&*attempt)
        };
        let own: Vec<&SignatureRow> = signatures.iter().filter(about).collect();
        own.iter().try_for_each(|one| one.fits(entry))?;
        let by = |key: &str| own.iter().any(|one| one.signer == key);
        let peers = entry.peer_key.split(' ');
        let others: Vec<&str> = peers.clone().filter(|peer| by(peer)).collect();
        // This party's own is one that none of the peers signed.
        let mine = own.iter().any(|one| !entry.peer_key.split(' ').any(|peer| peer == one.signer));
        let all = mine && others.len() == peers.count();
        if all {
            signed.by_all += 1;
            continue;
        }
        signed.not_by_all += 1;
        *match entry {
            _ if entry.given_back => &mut signed.given_back,
            _ if entry.is_recovered() => &mut signed.recovered,
            _ if entry.exact_delta != "0" => &mut signed.sizes,
            _ if entry.tau == "0" => &mut signed.candidates,
            _ => &mut signed.unfinished,
        } += 1;
    }
    Ok(signed)
}

/// Whether what each viewer was charged by its own debits, one after the other, was never more than the
/// budget that the debit was made under. What is charged towards a viewer because anybody may read it comes
/// on top, and is in the ledger's own rule.
///
/// # Errors
/// The first debit that was beyond it.
pub fn check_budgets(debits: &[EntryRow]) -> Result<(), String> {
    let mut spent: BTreeMap<(&str, &str), Rational> = BTreeMap::new();
    for debit in debits.iter().filter(|debit| debit.protects && !debit.given_back) {
        let number = |text: &str| parse(text).ok_or_else(|| format!("debit {} has no number", debit.row));
        let rho = number(&debit.exact_rho)?;
        for viewer in debit.viewer_key.split(' ') {
            let all = spent.entry((&debit.lineage, viewer)).or_default();
            *all += &rho;
            // What was taken over of a lost ledger was allowed then.
            if !debit.is_recovered() && *all > number(&debit.budget)? {
                return Err(format!(
                    "debit {} brings what {viewer} was charged on lineage {} to {}, of {} that it may be",
                    debit.row,
                    debit.lineage,
                    shown(all),
                    debit.budget
                ));
            }
        }
    }
    Ok(())
}

impl Debit {
    /// What is paid for, as all parties know it: `viewers` and `release` are the same at all.
    #[must_use]
    pub fn terms(&self, viewers: String) -> DebitTerms {
        DebitTerms {
            study: self.study,
            release: self.release_id,
            viewers,
            rho: self.rho.clone(),
            delta: self.delta.clone(),
            tau: self.tau.clone(),
        }
    }
}

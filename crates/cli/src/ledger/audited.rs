//! A ledger with what the organisation's service kept: its audit log, the statements of all parties, and the
//! signed file of both for who audits.

use super::{open, signed_by};
use base::Error;
use net::identity::{Identity, KeyFingerprint};
use page::numbers::counted;
use privacy::ledger::{Export, check_signatures};
use serde_json::json;
use statements::{Naming, ProposalRecord};
use std::fs::OpenOptions;
use std::io::{BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use study::{StudyFile, StudyHash};
use terminal::output;
use trail::{ComparedTrails, SignedTrail, TrailScope, VerifiedLog};

/// Writes the signed file.
pub fn export(
    ledger: &Path,
    identity: &Path,
    (service, study): (Option<&Path>, Option<&str>),
    out: &Path,
    as_json: bool,
) -> Result<(), Error> {
    let study = study.map(|text| {
        let wrong = || Error::input(format!("--study {text}: a study's hash has 64 digits of 0-9 and a-f"));
        StudyHash::parse(text).ok_or_else(wrong)
    });
    let (study, identity) = (study.transpose()?, Identity::load(identity)?);
    let store = service.map(trail::open_store).transpose()?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let made_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let scope = TrailScope { ledger: open(ledger)?.export()?, store: store.as_ref(), study, made_ms };
    let shown = out.display().to_string();
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(out);
    let file = file.map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => Error::input(format!(
            "{shown} is there already, and an export never replaces a file; name another"
        )),
        _ => Error::io(format!("cannot create {shown}"), &e),
    })?;
    let written = scope.write(&identity, BufWriter::new(&file)).and_then(|log| {
        let synced = file.sync_all().map_err(|e| Error::io(format!("cannot write {shown}"), &e));
        synced.map(|()| log)
    });
    let log = written.inspect_err(|_| _ = std::fs::remove_file(out))?;
    if as_json {
        return output::print_json(&json!({ "export": shown, "log": log }));
    }
    let log =
        log.map_or_else(String::new, |log| format!(" The audit log is in it up to entry {}.", log.last));
    output::print(&format!("{shown} is signed by {}.{log}", identity.fingerprint()))
}

/// What was checked.
struct Audited {
    file: SignedTrail,
    log: Option<VerifiedLog>,
}

/// Checks a ledger with the store of a service, or a signed file; and a peer's file against it.
pub fn verify(
    path: &Path,
    service: Option<&Path>,
    (peer, signer): (Option<&Path>, Option<KeyFingerprint>),
    as_json: bool,
) -> Result<(), Error> {
    let audited = if trail::is_trail(path) { of_file(path, service)? } else { of_store(path, service)? };
    let by = audited.file.organisation();
    if let Some(signer) = signer.filter(|signer| by != Some(*signer)) {
        let by = by.map_or_else(|| "nobody".to_owned(), |by| by.to_string());
        return Err(Error::input(format!("{} is signed by {by}, not by {signer}", path.display())));
    }
    let ledger = audited.file.ledger.as_ref();
    let signed = ledger.map(check_ledger).transpose()?;
    let proposals = audited.file.proposals()?;
    let agreed = ledger.map(|ledger| trail::check_consents(&ledger.debits, &proposals, by)).transpose()?;
    let compared = peer.map(|peer| trail::compare(&audited.file, &SignedTrail::read(peer)?)).transpose()?;
    if as_json {
        return output::print_json(&json!({
            "ledger": path.display().to_string(), "signer": by.map(|by| by.to_string()), "signed": signed,
            "log": audited.log, "agreed": agreed,
            "proposals": proposals.iter().map(proposal_json).collect::<Vec<_>>(), "peer": compared,
        }));
    }
    let mut lines: Vec<String> = by.iter().map(|by| format!("The file is signed by {by}.")).collect();
    lines.extend(signed.iter().map(signed_by));
    lines.extend(agreed.map(|agreed| {
        format!(
            "{} a consent to at least as much.",
            match agreed {
                1 => "1 debit has".to_owned(),
                debits => format!("{} have", counted(debits as u64, "debit")),
            }
        )
    }));
    lines.extend(audited.log.map(|log| {
        let cut = match log.first {
            1 => String::new(),
            first => format!(" Entries before {first} were exported and cut off."),
        };
        format!(
            "The chain of the audit log fits up to entry {}, {}.{cut} Entries cut off the end show to peers \
             alone.",
            log.last,
            log.hash.get(..16).unwrap_or_default()
        )
    }));
    lines.push(format!("Every statement is signed, and goes on its author's chain: {}.", {
        counted(audited.file.statements.len() as u64, "statement")
    }));
    lines.extend(proposals.iter().map(|record| {
        let names = names(record);
        format!(
            "  {}  {}: {}",
            record.study(),
            base::clean(record.title()),
            record.state_words(Naming(&names))
        )
    }));
    lines.extend(compared.as_ref().map(compared_words));
    output::print(&lines.join("\n"))
}

fn compared_words(found: &ComparedTrails) -> String {
    format!(
        "The other side's file is signed by {}. Both sides hold {} and {}; {} are here alone, {} there \
         alone. Of {} nothing is there, of {} nothing is here.",
        found.signer.as_deref().unwrap_or("nobody"),
        counted(found.both as u64, "statement"),
        counted(found.signatures as u64, "signature"),
        found.here,
        found.there,
        counted(found.proposals_here as u64, "proposal"),
        counted(found.proposals_there as u64, "proposal")
    )
}

fn of_file(path: &Path, service: Option<&Path>) -> Result<Audited, Error> {
    if service.is_some() {
        return Err(Error::input(format!(
            "{} is an export, which holds what was in the service: leave out --service, or name the ledger",
            path.display()
        )));
    }
    let file = SignedTrail::read(path)?;
    Ok(Audited { log: file.header.log.clone(), file })
}

fn of_store(path: &Path, service: Option<&Path>) -> Result<Audited, Error> {
    let Some(service) = service else {
        return Err(Error::input(
            "--peer compares statements, and --signer is of a signed file: name the folder of the service \
             with --service, or a file that `tacit ledger export --out` wrote",
        ));
    };
    let ledger = open(path)?;
    ledger.check_triggers()?;
    let (ledger, store) = (ledger.export()?, trail::open_store(service)?);
    Ok(Audited { log: Some(trail::verify(&store)?), file: SignedTrail::here(ledger, &store)? })
}

fn check_ledger(ledger: &Export) -> Result<privacy::ledger::SignedDebits, Error> {
    ledger.verify()?;
    check_signatures(&ledger.debits, &ledger.signatures).map_err(Error::input)
}

/// The parties' names, as the study has them.
fn names(record: &ProposalRecord) -> Vec<String> {
    let file = StudyFile::parse("the proposed study", &record.proposed().text);
    let known = file.map(|file| file.parties).unwrap_or_default();
    let name =
        |key: String| known.iter().find(|party| party.key == key).map_or(key.clone(), |p| p.name.clone());
    record.parties().iter().map(|key| name(key.to_string())).collect()
}

fn proposal_json(record: &ProposalRecord) -> serde_json::Value {
    let statements: usize = (0..record.parties().len()).map(|party| record.chain(party).len()).sum();
    json!({
        "study": record.study().full(), "title": record.title(), "state": record.view().state().name(),
        "statements": statements, "frozen": record.is_frozen(),
    })
}

//! A headless node: a server that waits until it is told to begin a study on its list, takes part in it, and
//! waits again.
//!
//! Whoever tells it proves a key of that study first, and says its hash and nothing else. What the node
//! computes, with whom and against whom it protects is in its own copy of the study. An error ends a run,
//! never the node.

use super::Watch;
use super::server::{Called, Ready, ServerReport, compute_ready};
use base::{Error, PartyId};
use net::connect::{Standby, StartCall};
use net::identity::{Identity, KeyFingerprint};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use study::StudyHash;
use study::party::{Address, ServerSetup};

/// How often a waiting node looks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);

/// First and longest wait before a node listens again, where its address could not be had for a while.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// What a node does, for its log.
#[derive(Clone, Debug)]
pub enum NodeEvent {
    /// It waits at this address for word to begin one of so many studies.
    Waiting {
        /// The address.
        at: String,
        /// Names and hashes of the studies.
        studies: Vec<(String, StudyHash)>,
    },
    /// It cannot listen for now, out of descriptors for one, and tries again after so long.
    Closed {
        /// Why.
        why: String,
        /// Seconds until it tries again.
        again_s: u64,
    },
    /// Somebody told it to begin what it does not.
    Refused {
        /// Where the call came from.
        from: String,
        /// Why.
        why: String,
    },
    /// It was told to begin and does.
    Begun {
        /// Who told it.
        by: String,
        /// The study's name.
        study: String,
        /// The study's hash.
        hash: StudyHash,
    },
    /// A run has ended well.
    Done(Box<ServerReport>),
    /// A run has failed.
    Failed(Error),
    /// Another run may begin.
    Stopped,
}

/// A study that the node may be told to begin.
struct Listed {
    path: PathBuf,
    name: String,
    hash: StudyHash,
    keys: Vec<KeyFingerprint>,
}

/// Waits for word to begin, takes part, and waits again, until `stop` says so or, with `once`, after one run.
/// Once it has listened, what keeps it from listening again is waited out.
///
/// # Errors
/// What is wrong with its own files or address before it waits; with `once`, the error of the run.
pub fn serve(
    node: &ServerSetup,
    once: bool,
    stop: &AtomicBool,
    log: &(dyn Fn(NodeEvent) + Send + Sync),
    watch: &Watch,
) -> Result<(), Error> {
    if node.allowed.is_none() {
        return Err(Error::input(
            "a node begins studies that nobody looks at again: list their full hashes under policy.studies, \
             as `tacit check` prints them",
        ));
    }
    let identity = Identity::load(&node.identity)?;
    let address = match &node.address {
        Address::Listen(at) | Address::Peers { listen: Some(at), .. } => at.clone(),
        Address::Peer(_) | Address::Peers { listen: None, .. } => {
            return Err(Error::input(
                "a node waits where others come: add listen = \"0.0.0.0:7000\" to the party file, or \
                 --listen",
            ));
        }
    };
    let listed = listed(node)?;
    let mut keys: Vec<KeyFingerprint> = listed.iter().flat_map(|study| study.keys.iter().copied()).collect();
    keys.sort_unstable();
    keys.dedup();
    let deadline = Duration::from_millis(node.deadline_ms);
    let mut before: Option<Duration> = None;
    while !stop.load(Ordering::Relaxed) {
        let waited = Standby::open(&address, &identity, keys.clone(), node.allow.clone(), deadline)
            .inspect(|standby| {
                log(NodeEvent::Waiting {
                    at: standby.address().to_string(),
                    studies: listed.iter().map(|study| (study.name.clone(), study.hash)).collect(),
                });
                before = Some(AGAIN.0);
            })
            .and_then(|standby| wait(node, standby, &listed, stop, log));
        let (ready, called) = match (waited, before) {
            (Ok(Some(told)), _) => told,
            (Ok(None), _) => break,
            (Err(error), None) => return Err(error),
            (Err(error), Some(again)) => {
                log(NodeEvent::Closed { why: error.to_string(), again_s: again.as_secs() });
                pause(again, stop);
                before = Some((2 * again).min(AGAIN.1));
                continue;
            }
        };
        let done = compute_ready(node, ready, Some(called), watch);
        match done {
            Ok(report) => log(NodeEvent::Done(Box::new(report))),
            Err(error) if once => return Err(error),
            Err(error) => log(NodeEvent::Failed(error)),
        }
        if once {
            break;
        }
    }
    log(NodeEvent::Stopped);
    Ok(())
}

/// Waits so long, or until the node is to stop.
fn pause(long: Duration, stop: &AtomicBool) {
    let until = Instant::now() + long;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
}

/// The studies that this node holds, each read and built once: what is wrong with them is found before
/// anybody calls.
fn listed(node: &ServerSetup) -> Result<Vec<Listed>, Error> {
    let read = |path: &PathBuf| {
        let ready = Ready::read(node, path)?;
        let everybody = ready.study.everybody();
        let keys: Vec<KeyFingerprint> =
            everybody.iter().map(|(_, key)| key.parse()).collect::<Result<_, Error>>()?;
        let (name, hash) = (ready.study.name.clone(), ready.study.hash());
        Ok(Listed { path: path.clone(), name, hash, keys })
    };
    node.studies.iter().map(read).collect()
}

/// Waits until somebody says what begins; nothing when the node is to stop.
fn wait(
    node: &ServerSetup,
    mut standby: Standby,
    listed: &[Listed],
    stop: &AtomicBool,
    log: &(dyn Fn(NodeEvent) + Send + Sync),
) -> Result<Option<(Ready, Called)>, Error> {
    while !stop.load(Ordering::Relaxed) {
        let Some(call) = standby.next(LOOK)? else { continue };
        match begins(node, &call, listed) {
            Ok((ready, host)) => {
                call.accept();
                let (by, study) = (ready.study.roster().name(host), ready.study.name.clone());
                log(NodeEvent::Begun { by, study, hash: ready.study.hash() });
                return Ok(Some((ready, Called { standby, host })));
            }
            Err(error) => {
                let from = call.from.to_string();
                call.refuse();
                log(NodeEvent::Refused { from, why: error.to_string() });
            }
        }
    }
    Ok(None)
}

/// What a call begins, and who calls.
fn begins(node: &ServerSetup, call: &StartCall, listed: &[Listed]) -> Result<(Ready, PartyId), Error> {
    let hash = StudyHash::from_bytes(call.agreement);
    let study = listed.iter().find(|study| study.hash == hash);
    let study = study.ok_or_else(|| {
        Error::refused(format!(
            "it says to begin study {hash} ({}), which this node does not hold",
            hash.full()
        ))
    })?;
    // The file is read again: it may have changed since.
    let ready = Ready::read(node, &study.path)?;
    if ready.study.hash() != hash {
        return Err(Error::refused(format!(
            "{} has changed since this node began to wait: it holds study {} now",
            study.path.display(),
            ready.study.hash()
        )));
    }
    let [from, to] = call.parties();
    if study.keys.get(from.index()) != Some(&call.key) || to != ready.me {
        return Err(Error::refused(format!("{} is no party of study {hash}", call.key)));
    }
    Ok((ready, from))
}

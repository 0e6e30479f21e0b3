//! Studies that four servers compute, where this organisation is one of the servers and owns none of the
//! data: what its rules say, who consents, and what is signed. It sees shares, so nothing of it is charged.

use crate::policy::broken;
use crate::roles::{Action, Asker, StudySubject, Subject, may};
use crate::schedule::RunOrder;
use crate::settings::{DataSet, HouseSettings};
use crate::weigh::WeighedStudy;
use base::{Error, hex};
use job::check::CheckedSide;
use net::{Identity, KeyFingerprint};
use study::{Participant, Server, Servers, Study, StudyFile};

/// Stands where a consent names its data set, and there is none.
pub const NO_DATA: &str = "";

/// The server of a study that has a key and owns no data of it.
#[must_use]
pub fn server_of<'s>(study: &'s Study, own: &str) -> Option<&'s Server> {
    study.servers.iter().flat_map(Servers::apart).find(|server| server.key == own)
}

/// What the rules say against computing a study, in sentences. What it shows and costs is for its owners to
/// say.
#[must_use]
pub fn serving_rules(settings: &HouseSettings, file: &StudyFile, own: KeyFingerprint) -> Vec<String> {
    let study = file.first();
    let mut all: Vec<String> =
        broken(&settings.policy, own, file).into_iter().map(|broken| broken.why).collect();
    let known = |key: &str| settings.peers.values().any(|peer| peer.key.to_string() == key);
    let strange = study.everybody().into_iter().filter(|(_, key)| *key != own.to_string() && !known(key));
    all.extend(strange.map(|(name, _)| format!("{name} has a key that service.toml does not name")));
    all.extend(RunOrder::of(study, &own).map(|order| order.unmet(settings)).unwrap_or_default());
    all
}

/// Which servers of a study may not compute on a data set, in sentences: each holds a share of its rows.
#[must_use]
pub fn servers_against(settings: &HouseSettings, set: &DataSet, study: &Study, own: &str) -> Vec<String> {
    let servers = study.servers.iter().flat_map(|servers| &servers.members);
    let against = servers.filter(|server| server.key != own).filter_map(|server| {
        match settings.peers.iter().find(|(_, peer)| peer.key.to_string() == server.key) {
            // Of an owner with a seat that is said among the owners.
            None if server.owner => None,
            None => Some(format!("{} has a key that service.toml does not name", server.name)),
            Some((name, _)) if !set.servers.contains(name) => {
                Some(format!("{name} may not compute on these data (data servers)"))
            }
            Some(_) => None,
        }
    });
    against.collect()
}

/// Why a study is not one of this organisation and of others that it knows, which may compute on a data set
/// of it; nothing where it is.
#[must_use]
pub fn strangers(settings: &HouseSettings, file: &StudyFile, us: KeyFingerprint) -> Option<String> {
    let key = |party: &Participant| party.key.parse::<KeyFingerprint>().ok();
    let parties = &file.parties;
    if !parties.iter().any(|party| key(party) == Some(us)) {
        return Some(format!("No party of this study has the key of this organisation: {us}."));
    }
    let own = us.to_string();
    let known = |key: &str| key == own || settings.peers.values().any(|peer| peer.key.to_string() == key);
    let everybody = file.first().everybody().into_iter();
    let owners = parties.iter().map(|party| (party.name.as_str(), party.key.as_str()));
    if let Some((name, key)) = everybody.chain(owners).find(|(_, key)| !known(key)) {
        return Some(format!("{name} has a key that service.toml does not name among its peers: {key}."));
    }
    let against = |set| servers_against(settings, set, file.first(), &own);
    let against: Vec<Vec<String>> = settings.data.values().map(against).collect();
    // Of several data sets the one that lacks the fewest is what somebody would mend.
    let least = against.into_iter().min_by_key(Vec::len).filter(|least| !least.is_empty())?;
    Some(format!(
        "No data set of ours may be computed on by all servers of this study: {}.",
        least.join("; ")
    ))
}

/// Whether somebody consents to computing a study that `by` proposed here: a steward of everything.
#[must_use]
pub fn may_serve(asker: &Asker, by: &str) -> bool {
    let study = StudySubject { by, data: None, given: false };
    may(asker, Action::Decide, Subject::Study(study)) && may(asker, Action::RulesAsSteward, Subject::House)
}

/// Holds a study that this organisation would compute against the rules.
///
/// # Errors
/// What is wrong with it, or that this organisation is no server of it.
pub fn weigh(settings: &HouseSettings, text: &str) -> Result<WeighedStudy, Error> {
    let file = StudyFile::parse("the study", text)?;
    let own = Identity::load(&settings.identity)?.fingerprint();
    if server_of(file.first(), &own.to_string()).is_none() {
        return Err(Error::input(
            "this organisation takes part in the study with data of its own: say with which data set",
        ));
    }
    let refusals = serving_rules(settings, &file, own);
    let side = CheckedSide::of_study(file, text.to_owned())?;
    let built = side.built.first().ok_or_else(|| Error::misuse("a study has a run"))?;
    let (nothing, program) = (hex(&[0; 32]), hex(&built.program.hash()));
    let version = nothing.clone();
    Ok(WeighedStudy { tag: nothing, version, program, charges: Vec::new(), rows: 0, refusals })
}

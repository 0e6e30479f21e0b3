//! What a consent would bind: a study on a data set of this organisation, held against the rules of
//! `service.toml` and the ledger, with all rows read. It runs in a process of its own: what a study takes and
//! how it may fail are not the service's.

use crate::settings::{DataSet, HouseSettings};
use base::{Error, PartyId, hex};
use job::budget::outlook;
use job::prepare::{Built, Checked, Opened, check};
use net::Identity;
use privacy::ledger::Ledger;
use release::rational::{Rational, ratio};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use study::party::PartySettings;
use study::{EventValue, NoiseFrom, Participant, PartyRole, Question, Study, StudyFile};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeighedStudy {
    /// The name that the data have in the ledger, in hex.
    pub tag: String,
    /// What stands for the files as they lay there before they were read, in hex.
    pub version: String,
    /// The hash of the program, in hex.
    pub program: String,
    /// The most that each viewer is charged by one match and one release.
    pub charges: Vec<WeighedCharge>,
    /// Rows that take part.
    pub rows: u64,
    /// What stands against it, in sentences; empty: nothing.
    pub refusals: Vec<String>,
}

/// What one viewer is charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeighedCharge {
    /// Its key; none: everybody.
    pub viewer: Option<String>,
    /// Of the release, exact.
    pub release: String,
    /// Of sizes of a match: rho and delta, exact.
    pub sizes: [String; 2],
}

/// Holds a study against a data set.
///
/// # Errors
/// What is wrong with data or study, with file, line and column.
pub fn weigh(settings: &HouseSettings, data: &str, text: &str) -> Result<WeighedStudy, Error> {
    let set = settings.data.get(data).ok_or_else(|| Error::input(format!("there is no [data.{data}]")))?;
    let file = StudyFile::parse("the study", text)?;
    let own = Identity::load(&settings.identity)?.fingerprint().to_string();
    let me = file.parties.iter().find(|party| party.key == own);
    let me = me.ok_or_else(|| Error::input("this organisation is no party of the study"))?;
    let mut refusals = rules(settings, set, &file, me);
    let folder = tempfile::tempdir().map_err(|e| Error::io("cannot make a folder for a check", &e))?;
    let study = folder.path().join("study.toml");
    std::fs::write(&study, text).map_err(|e| Error::io("cannot write the study to be checked", &e))?;
    let party_file = folder.path().join("party.toml");
    let version = crate::findings::version(settings, data)?;
    let party = crate::schedule::party_file(settings, &file, data, "listen = \"127.0.0.1:1\"", "report")?;
    let party = PartySettings::default().over_text_of(&party_file, &party)?.complete()?;
    let checked = check(&party, &Opened::of(&party)?)?;
    refusals.extend(outlook(&party, &checked)?.refusals);
    let Some(run) = checked.first() else { return Err(Error::misuse("a party takes part in a run")) };
    if run.inputs.rows_kept < set.least_rows {
        let (have, least) =
            (page::numbers::count(run.inputs.rows_kept), page::numbers::count(set.least_rows));
        refusals.push(format!(
            "{have} rows would take part, and no study may use fewer than {least} (least_rows)"
        ));
    }
    let tag = run.data_tag(&Ledger::look(&settings.ledger)?)?;
    let (rows, program) = (run.inputs.rows_kept, hex(&run.built.program.hash()));
    Ok(WeighedStudy {
        tag: hex(&tag),
        version: hex(&version),
        program,
        charges: charges(run)?,
        rows,
        refusals,
    })
}

/// What the rules of `service.toml` say against a study on a data set, as far as the study says it.
pub fn rules(settings: &HouseSettings, set: &DataSet, file: &StudyFile, me: &Participant) -> Vec<String> {
    let (policy, study) = (&settings.policy, file.first());
    let mut all = Vec::new();
    let kind = match &study.kind {
        Question::Lift(lift) => {
            if lift.release.minimum_group < policy.minimum_group {
                all.push(format!("it shows groups of fewer than {} (minimum_group)", policy.minimum_group));
            }
            "lift"
        }
        Question::Program(_) => "program",
        Question::Match(_) => "match",
    };
    if !policy.kinds.iter().any(|allowed| allowed == kind) {
        all.push(format!("studies of kind {kind} are not allowed here (policy.kinds)"));
    }
    if !policy.studies.is_empty() && !policy.studies.contains(&file.hash()) {
        all.push("it is none of the studies that are allowed here (policy.studies)".to_owned());
    }
    if policy.max_rho.is_none() {
        all.push("no study may spend anything here (policy.max_rho)".to_owned());
    }
    if study.matching.dummies.is_none() && !policy.without_dummies {
        all.push("its match shows exact sizes (policy.dummies)".to_owned());
    }
    if let NoiseFrom::CutAndChoose(candidates) = study.noise()
        && u64::from(candidates) < policy.candidates
    {
        all.push(format!(
            "its noise is checked with fewer than {} candidates (policy.candidates)",
            policy.candidates
        ));
    }
    for party in file.parties.iter().filter(|party| party.key != me.key) {
        let known = settings.peers.iter().find(|(_, peer)| peer.key.to_string() == party.key);
        match known {
            None => all.push(format!("{} has a key that service.toml does not name", party.name)),
            Some((name, _)) if !set.peers.contains(name) => {
                all.push(format!("studies with {name} may not use these data (data peers)"));
            }
            Some(_) => {}
        }
    }
    let foreign: Vec<String> =
        columns(study, me).into_iter().filter(|name| !set.columns.contains(name)).collect();
    if !foreign.is_empty() {
        all.push(format!("it reads columns that no study may read: {}", foreign.join(", ")));
    }
    all
}

/// The columns of its own file that a study makes a party read.
fn columns(study: &Study, me: &Participant) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = study.matching.identifiers.iter().map(|one| one.name.clone()).collect();
    match &study.kind {
        Question::Lift(lift) if me.role == PartyRole::Publisher => {
            let publisher = &lift.publisher;
            all.extend([publisher.arm.clone(), publisher.opportunity.clone()]);
            all.extend(publisher.impressions.clone());
            all.extend(publisher.breakdown.as_ref().map(|by| by.column.clone()));
        }
        Question::Lift(lift) => {
            let others = study.parties.iter().filter(|party| party.role == PartyRole::Advertiser);
            let place = others.clone().position(|party| party.key == me.key).unwrap_or_default();
            if let Some(advertiser) = lift.advertisers.get(place).or(lift.advertisers.first()) {
                all.extend(advertiser.events.iter().cloned());
                if let EventValue::Columns { columns, .. } = &advertiser.value {
                    all.extend(columns.iter().cloned());
                }
                all.extend(advertiser.filter.as_ref().map(|filter| filter.column.clone()));
                all.extend(advertiser.cohort.as_ref().map(|by| by.column.clone()));
            }
        }
        Question::Program(program) => all.extend(of_program(&program.source, me)),
        Question::Match(source) => all.extend(of_program(source, me)),
    }
    all
}

fn of_program<'s>(
    source: &'s study::ProgramSource,
    me: &'s Participant,
) -> impl Iterator<Item = String> + 's {
    source.columns.iter().filter(|column| column.party == me.name).map(|column| column.column.clone())
}

/// The most that each viewer is charged: what everybody sees, and of each other party its own view and what
/// it learns of sizes.
fn charges(run: &Checked) -> Result<Vec<WeighedCharge>, Error> {
    let nothing = || ratio(0, 1);
    let Built { scales, program, .. } = &run.built;
    let of = |viewer| scales.as_ref().map_or_else(nothing, |scales| scales.charge(viewer).clone());
    let sizes = privacy::dummies::charge(&run.study, run.me)?;
    let sizes = sizes.map_or_else(|| [nothing(), nothing()], |charge| [charge.rho, charge.delta]);
    let mut all = Vec::new();
    let public: Rational = of(program::Viewer::Public);
    if public > nothing() {
        let none = [nothing().to_string(), nothing().to_string()];
        all.push(WeighedCharge { viewer: None, release: public.to_string(), sizes: none });
    }
    for (place, party) in run.study.parties.iter().enumerate() {
        let id = PartyId(u8::try_from(place).unwrap_or(u8::MAX));
        if id == run.me || program.parties.get(place).is_none() {
            continue;
        }
        let sizes = sizes.clone().map(|value| value.to_string());
        let release = of(id.into()).to_string();
        all.push(WeighedCharge { viewer: Some(party.key.clone()), release, sizes });
    }
    Ok(all)
}

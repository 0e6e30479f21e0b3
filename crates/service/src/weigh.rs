//! What a consent would bind: a study on a data set of this organisation, held against the rules of
//! `service.toml` and the ledger, with all rows read. It runs in a process of its own: what a study takes and
//! how it may fail are not the service's.

use crate::findings::place_of;
use crate::settings::{DataSet, HouseSettings};
use base::{Error, PartyId, hex};
use job::budget::outlook;
use job::prepare::{Built, Checked, Opened, check};
use net::Identity;
use privacy::ledger::Ledger;
use release::rational::{Rational, ratio, shown};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use study::party::PartySettings;
use study::{EventValue, NoiseFrom, PartyRole, Participant, Question, Study, StudyFile};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeighedStudy {
    /// The name that the data have in the ledger, in hex.
    pub tag: String,
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
    let asked = PartyPlaces { study: &study, meeting: "listen = \"127.0.0.1:1\"", report: folder.path(), work: None };
    let party_file = folder.path().join("party.toml");
    let party = party_text(settings, data, &file, &asked)?;
    let party = PartySettings::default().over_text_of(&party_file, &party)?.complete()?;
    let checked = check(&party, &Opened::of(&party)?)?;
    refusals.extend(outlook(&party, &checked)?.refusals);
    let Some(run) = checked.first() else { return Err(Error::misuse("a party takes part in a run")) };
    if run.inputs.rows_kept < set.least_rows {
        let (have, least) = (page::numbers::count(run.inputs.rows_kept), page::numbers::count(set.least_rows));
        refusals.push(format!("{have} rows would take part, and no study may use fewer than {least} (least_rows)"));
    }
    let tag = run.data_tag(&Ledger::look(&settings.ledger)?)?;
    let (rows, program) = (run.inputs.rows_kept, hex(&run.built.program.hash()));
    Ok(WeighedStudy { tag: hex(&tag), program, charges: charges(run)?, rows, refusals })
}

/// Where things of one run are.
pub struct PartyPlaces<'a> {
    /// The study file.
    pub study: &'a Path,
    /// The line of the party file that says where one meets: `listen = "0.0.0.0:7001"`, `peer = ..`.
    pub meeting: &'a str,
    /// The folder of the report.
    pub report: &'a Path,
    /// The folder of what a match that breaks off leaves.
    pub work: Option<&'a Path>,
}

/// The party file under which this organisation checks and runs a study on a data set: the study alone, within
/// the rules of `service.toml`.
///
/// # Errors
/// When the data lie outside the data root, or this organisation is no party.
pub fn party_text(
    settings: &HouseSettings,
    data: &str,
    file: &StudyFile,
    places: &PartyPlaces<'_>,
) -> Result<String, Error> {
    let set = settings.data.get(data).ok_or_else(|| Error::input(format!("there is no [data.{data}]")))?;
    let own = Identity::load(&settings.identity)?.fingerprint().to_string();
    let me = file.parties.iter().find(|party| party.key == own);
    let me = me.ok_or_else(|| Error::input("this organisation is no party of the study"))?;
    let path = |path: &Path| quoted(&path.display().to_string());
    let mut text = format!(
        "study = {}\nas = {}\nidentity = {}\ndata = {}\n{}\nmemory = \"{}M\"\nledger = {}\nreport = {}\nlineage \
         = {}\n",
        path(places.study),
        quoted(&me.name),
        path(&settings.identity),
        path(&place_of(settings, set)?),
        places.meeting,
        (settings.policy.jobs_memory >> 20).max(1),
        path(&settings.ledger),
        path(places.report),
        quoted(&set.lineage)
    );
    if let Some(work) = places.work {
        let _ = writeln!(text, "work = {}", path(work));
    }
    let policy = &settings.policy;
    let kinds = policy.kinds.iter().map(|kind| quoted(kind)).collect::<Vec<_>>().join(", ");
    let _ = write!(
        text,
        "[policy]\nstudies = [{}]\nkinds = [{kinds}]\nbudget = {}\nmax_cells = {}\nallow_exact = {}\ncandidates = \
         {}\n",
        quoted(&file.hash().full()),
        shown(&set.budget),
        policy.max_cells,
        policy.allow_exact,
        policy.candidates
    );
    if let Some(rho) = &policy.max_rho {
        let _ = writeln!(text, "max_rho = {}", shown(rho));
    }
    if let Some(places) = set.delta_places {
        let _ = writeln!(text, "delta = \"1e-{places}\"");
    }
    if let Some((days, rho)) = &set.period {
        let _ = write!(text, "period = \"{days}d\"\nperiod_budget = {}\n", shown(rho));
    }
    Ok(text)
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
        all.push(format!("its noise is checked with fewer than {} candidates (policy.candidates)", policy.candidates));
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
    let foreign: Vec<String> = columns(study, me).into_iter().filter(|name| !set.columns.contains(name)).collect();
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
            for advertiser in lift.advertisers.get(place).or(lift.advertisers.first()) {
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

fn of_program<'s>(source: &'s study::ProgramSource, me: &'s Participant) -> impl Iterator<Item = String> + 's {
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

/// Text in quotes, as TOML has it.
fn quoted(text: &str) -> String {
    crate::lift_form::quoted(text)
}

//! What a consent would bind: a study on a data set of this organisation, held against the rules of
//! `service.toml` and the ledger, with all rows read. It runs in a process of its own: what a study takes and
//! how it may fail are not the service's.

use crate::schedule::{JobPlace, RunOrder, party_file};
use crate::serving::{self, NO_DATA};
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
use study::{EventValue, Participant, PartyRole, Question, Study, StudyFile};

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
    if data == NO_DATA {
        return serving::weigh(settings, text);
    }
    let set = settings.data.get(data).ok_or_else(|| Error::input(format!("there is no [data.{data}]")))?;
    let file = StudyFile::parse("the study", text)?;
    let own = Identity::load(&settings.identity)?.fingerprint().to_string();
    let me = file.parties.iter().find(|party| party.key == own);
    let me = me.ok_or_else(|| Error::input("this organisation is no party of the study"))?;
    let mut refusals = rules(settings, set, &file, me);
    if settings.policy.max_rho.is_none() {
        // The party file would not admit it either, in words of a file that nobody sees.
        return Err(Error::refused(refusals.join("; ")));
    }
    let folder = tempfile::tempdir().map_err(|e| Error::io("cannot make a folder for a check", &e))?;
    let study = folder.path().join("study.toml");
    std::fs::write(&study, text).map_err(|e| Error::io("cannot write the study to be checked", &e))?;
    let path = folder.path().join("party.toml");
    let version = crate::findings::version(settings, data)?;
    let place = JobPlace { listen: Some("127.0.0.1:1".to_owned()), ..JobPlace::default() };
    let party = party_file(settings, &file, data, &place, "report")?;
    let party = PartySettings::default().over_text_of(&path, &party)?.complete()?;
    // The name of the data is by a key of the ledger, and is found once: a ledger that is not there yet is
    // made before, or the run would have another one, and another name.
    let ledger = Ledger::open(&settings.ledger)?;
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
    let tag = run.data_tag(&ledger)?;
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
    let study = file.first();
    let own = me.key.parse().map(|own| crate::policy::broken(&settings.policy, own, file));
    let mut all: Vec<String> = own.unwrap_or_default().into_iter().map(|broken| broken.why).collect();
    if study.matching.dummies.is_some() && set.delta_places.is_none() {
        all.push("its match has a delta, and no study that has one may use these data (delta)".to_owned());
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
    all.extend(serving::servers_against(settings, set, study, &me.key));
    if study.matching.matcher.features().salted && set.salt.is_none() {
        all.push("its owners share a salt, and these data name none (salt)".to_owned());
    }
    let order = me.key.parse().and_then(|own| RunOrder::of(study, &own));
    all.extend(order.map(|order| order.unmet(settings)).unwrap_or_default());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{RulesFile, ServicePeer};
    use std::path::Path;

    const RULES: &str = r#"
        format = "tacit-service/1"
        name = "registry"
        identity = "registry.key"
        store = "service.db"
        ledger = "registry.ledger"
        data_root = "data"
        [peers.hospitals]
        key = "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50"
        [data.trial]
        path = "trial.csv"
        lineage = "trial"
        columns = ["child_id", "arm", "injected"]
        peers = ["hospitals"]
        least_rows = 1
        budget = 1.0
        delta = "1e-6"
        [policy]
        kinds = ["lift"]
        max_rho = 1
        max_delta = "1e-6"
        minimum_group = 1
    "#;

    /// A folder with a key and data, and a study with that key.
    fn folder() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let identity = Identity::generate().expect("a key");
        identity.save(&folder.path().join("registry.key")).expect("saved");
        std::fs::create_dir(folder.path().join("data")).expect("made");
        let arms = ["vaccine", "placebo"];
        let row = |n: usize| format!("c{n},{},1954-05-{:02}\n", arms[n % 2], n % 28 + 1);
        let rows = (0..2400).map(row).collect::<String>();
        std::fs::write(folder.path().join("data/trial.csv"), format!("child_id,arm,injected\n{rows}"))
            .expect("written");
        let own = identity.fingerprint().to_string();
        let text = include_str!("../../../examples/lift.toml");
        (folder, text.replace("tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11", &own))
    }

    fn settings(folder: &Path, without: &[&str]) -> HouseSettings {
        let left = |line: &&str| !without.contains(&line.trim());
        let text = RULES.lines().filter(left).map(|line| format!("{line}\n")).collect::<String>();
        std::fs::write(folder.join("service.toml"), text).expect("written");
        RulesFile::read(&folder.join("service.toml")).expect("reads").settings
    }

    #[test]
    fn a_bound_that_nobody_said_allows_nothing_when_weighed_and_when_run() {
        let (folder, text) = folder();
        let at = folder.path();
        let refused = |without: &[&str]| {
            let weighed = weigh(&settings(at, without), "trial", &text);
            weighed.map_or_else(|error| error.to_string(), |weighed| weighed.refusals.join("\n"))
        };
        assert_eq!(refused(&[]), "");
        for (line, why) in [
            ("max_rho = 1", "no study may spend anything here (policy.max_rho)"),
            ("max_delta = \"1e-6\"", "no study may have one here (policy.max_delta)"),
            ("delta = \"1e-6\"", "no study that has one may use these data (delta)"),
        ] {
            assert!(refused(&[line]).contains(why), "{line}: {}", refused(&[line]));
        }
        // A run goes by its party file, whose defaults are more than nothing.
        let file = StudyFile::parse("the study", &text).expect("a study");
        let bounds = |without: &[&str]| {
            let place = JobPlace::default();
            let written = party_file(&settings(at, without), &file, "trial", &place, "report");
            let party =
                PartySettings::default().over_text_of(&at.join("party.toml"), &written.expect("written"));
            let party = party.expect("reads");
            (party.max_rho.expect("said").0, party.delta_places.expect("said"))
        };
        assert_eq!(bounds(&[]), (ratio(1, 1), 6));
        let unsaid = bounds(&["max_rho = 1", "delta = \"1e-6\""]);
        assert_eq!(unsaid, (ratio(1, 1_000_000_000), 15));
    }

    #[test]
    fn each_server_is_one_that_may_compute_on_the_data() {
        let (folder, _) = folder();
        let own =
            Identity::load(&folder.path().join("registry.key")).expect("a key").fingerprint().to_string();
        let text = include_str!("../../../examples/lift-ring4.toml");
        let text = text.replace("tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11", &own);
        let file = StudyFile::parse("the study", &text).expect("a study");
        let mut settings = settings(folder.path(), &[]);
        let key = |digit: &str| format!("tacit1:{}", digit.repeat(32)).parse().expect("a key");
        let peer = settings.peers["hospitals"].clone();
        for (name, digit) in [("north", "1"), ("south", "2"), ("east", "3")] {
            settings.peers.insert(name.to_owned(), ServicePeer { key: key(digit), ..peer.clone() });
        }
        let me = &file.parties[0];
        let against = |settings: &HouseSettings| {
            let set = &settings.data["trial"];
            let all = rules(settings, set, &file, me);
            all.into_iter()
                .filter(|why| why.contains("may not") || why.contains("has a key"))
                .collect::<Vec<_>>()
        };
        let said = against(&settings);
        assert!(said.contains(&"north may not compute on these data (data servers)".to_owned()), "{said:?}");
        assert!(said.contains(&"server-4 has a key that service.toml does not name".to_owned()), "{said:?}");
        settings.peers.insert("west".to_owned(), ServicePeer { key: key("4"), ..peer });
        let set = settings.data.get_mut("trial").expect("there");
        set.servers = ["north", "south", "east", "west"].map(str::to_owned).to_vec();
        assert_eq!(against(&settings), Vec::<String>::new());
    }

    #[test]
    fn a_match_that_costs_more_delta_than_a_study_may_is_refused() {
        let (folder, text) = folder();
        let mut settings = settings(folder.path(), &[]);
        settings.policy.max_delta_places = Some(15);
        let weighed = weigh(&settings, "trial", &text).expect("weighs");
        assert!(weighed.refusals.join("\n").contains("a study may have at most 1e-15 (policy.max_delta)"));
    }
}

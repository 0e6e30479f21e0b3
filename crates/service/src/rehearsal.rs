//! A rehearsal: a study on made-up rows, in the clear. It runs in a process of its own: what a study takes
//! and how it may fail are not the service's.

use base::Error;
use data::generate::{self, MadeUpRows};
use job::simulate::{SimulatedData, Simulation, SimulationQuestion, simulate};
use std::collections::BTreeMap;
use study::{LiftStudy, Question, StudyFile};

/// Most made-up people of a side.
pub const REHEARSED_ROWS: u64 = 100_000;
/// Results that are drawn of the same rows, to show how far they lie apart.
const DRAWS: u64 = 1_000;
/// Which rows and which noise: the same ones for the same study, so that two people look at the same page.
const SEED: u64 = 7;

/// Makes up so many people of the first party and of each other one, and tries the study on them. Of a lift
/// study's people as many have outcomes as bring their mean in the control arm to `mean`, where it is said.
/// Sums that other numbers are made of are left out.
///
/// # Errors
/// What is wrong with the study, or why rows for it cannot be made up.
pub fn rehearse(text: &str, rows: [u64; 2], mean: Option<f64>) -> Result<Simulation, Error> {
    if rows.iter().any(|rows| !(1..=REHEARSED_ROWS).contains(rows)) {
        return Err(Error::input(format!(
            "a rehearsal takes 1 to {REHEARSED_ROWS} made-up rows of each side"
        )));
    }
    let file = StudyFile::parse("the study", text)?;
    let common = match (&file.first().kind, mean) {
        (Question::Lift(lift), Some(mean)) => common(&file, rows, (lift, mean))?,
        _ => None,
    };
    let mut all = tried(&file, MadeUpRows { rows, common }, DRAWS)?;
    let parts = all.runs.iter_mut().flat_map(|run| &mut run.views).flat_map(|view| &mut view.parts);
    parts.for_each(|part| part.numbers.retain(|number| !number.behind));
    Ok(all)
}

/// A study on rows that are made up of so many people.
fn tried(file: &StudyFile, rows: MadeUpRows, draws: u64) -> Result<Simulation, Error> {
    let names: Vec<String> = file.parties.iter().map(|member| member.name.clone()).collect();
    // Made-up files are gone with it.
    let folder = tempfile::tempdir().map_err(|e| Error::io("cannot make a folder for made-up files", &e))?;
    let made = match file.first().only_matches() {
        // What computes nothing says so itself.
        true => Vec::new(),
        false => generate::for_study(folder.path(), file, &names, rows, SEED)?,
    };
    let data: BTreeMap<String, SimulatedData> =
        made.into_iter().map(|made| (made.party, made.path.into())).collect();
    let file = file.clone();
    let asked = SimulationQuestion { file, data, made_up: names, draws, seed: SEED, threads: 1 };
    simulate(&asked, &|_, _, _| ())
}

/// How many people all sides must have for such a mean outcome: as that goes up with them, one try tells.
/// None: the mean of that try is not shown.
fn common(file: &StudyFile, rows: [u64; 2], (lift, mean): (&LiftStudy, f64)) -> Result<Option<u64>, Error> {
    let label = format!("mean, {}", lift.publisher.control);
    let found = tried(file, rows.into(), 0)?;
    let parts = found.runs.iter().flat_map(|run| &run.views).flat_map(|view| &view.parts);
    let mut numbers = parts.flat_map(|part| &part.numbers);
    let was = numbers.find(|number| number.label == label).and_then(|number| number.exact);
    let people = rows[0].min(rows[1]) / 2;
    let needed = was.filter(|was| *was > 0.0).map(|was| people as f64 * mean / was);
    Ok(needed.map(|needed| (needed.round() as u64).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "format = \"tacit-study/1\"\nkind = \"program\"\nname = \"dose\"\n\
        title = \"Dose\"\n\
        [party.a]\nkey = \"tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11\"\n\
        [party.b]\nkey = \"tacit1:b07e66d2915c4fa3a2d8017b34ce9f50\"\n\
        [match]\nprotocol = \"pid\"\nidentifiers = [{ name = \"id\", normalise = [\"trim\"] }]\n\
        duplicates = \"error\"\n[privacy]\nunit = \"person\"\n\
        [columns]\nill = { party = \"a\", column = \"ill\" }\ndose = { party = \"b\", column = \"dose\" }\n\
        [program]\ntext = \"\"\"\ntacit-program/2\nname \"Dose\"\nparty a\nparty b\ncolumn ill bit a\n\
        column dose u2 b labels \"none\" \"low\"\nask public rho 1/2\nby dose\ncount\nshare of ill\n\"\"\"\n\
        [release.public]\nrho = 0.5\n[compute]\nengine = \"auto\"\n";

    #[test]
    fn a_study_is_tried_on_rows_that_were_made_up() {
        let found = rehearse(PROGRAM, [400, 300], None).unwrap_or_else(|error| panic!("{error}"));
        assert!(found.parties.iter().all(|party| party.data.is_none() && party.rows > 0));
        let views = &found.runs[0].views;
        let numbers: Vec<_> = views[0].parts.iter().flat_map(|part| &part.numbers).collect();
        assert!(numbers.iter().any(|number| number.label.contains("share of ill")), "{numbers:?}");
        assert!(numbers.iter().all(|number| number.spread.is_some() && !number.behind), "{numbers:?}");
        // As the service is told it, and the same again.
        let text = serde_json::to_string(&found).expect("JSON");
        let read: Simulation = serde_json::from_str(&text).expect("read");
        let again = rehearse(PROGRAM, [400, 300], None).expect("again");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        assert_eq!(serde_json::to_string(&again).expect("JSON"), text);
    }

    /// Somebody who said how rare outcomes are sees results of that size.
    #[test]
    fn made_up_outcomes_are_as_frequent_as_was_said() {
        let study = include_str!("../../../examples/lift.toml");
        for mean in [0.01, 0.04] {
            let found =
                rehearse(study, [20_000, 4_000], Some(mean)).unwrap_or_else(|error| panic!("{error}"));
            let parts = found.runs[0].views.iter().flat_map(|view| &view.parts);
            let exact = parts.flat_map(|part| &part.numbers).find(|one| one.label == "mean, placebo");
            let exact = exact.and_then(|one| one.exact).expect("shown");
            assert!((exact / mean - 1.0).abs() < 0.25, "{exact} for {mean}");
        }
    }

    #[test]
    fn what_cannot_be_rehearsed_says_why() {
        let refused = |text: &str, rows| rehearse(text, rows, None).expect_err("refused").to_string();
        assert!(refused(PROGRAM, [0, 5]).contains("1 to 100000"), "{}", refused(PROGRAM, [0, 5]));
        let matched = PROGRAM.replace("kind = \"program\"", "kind = \"match\"");
        let matched: String = matched.split("[columns]").next().expect("a half").to_owned();
        let matched = matched.replace("[privacy]\nunit = \"person\"\n", "");
        assert!(refused(&matched, [5, 5]).contains("computes nothing"), "{}", refused(&matched, [5, 5]));
    }
}

//! A rehearsal: a study on made-up rows, in the clear. It runs in a process of its own: what a study takes
//! and how it may fail are not the service's.

use base::Error;
use data::generate;
use job::simulate::{SimulatedData, Simulation, SimulationQuestion, simulate};
use std::collections::BTreeMap;
use study::StudyFile;

/// Most made-up people of a side.
pub const REHEARSED_ROWS: u64 = 100_000;
/// Results that are drawn of the same rows, to show how far they lie apart.
const DRAWS: u64 = 1_000;
/// Which rows and which noise: the same ones for the same study, so that two people look at the same page.
const SEED: u64 = 7;

/// Makes up so many people of the first party and of each other one, and tries the study on them. Sums that
/// other numbers are made of are left out.
///
/// # Errors
/// What is wrong with the study, or why rows for it cannot be made up.
pub fn rehearse(text: &str, rows: [u64; 2]) -> Result<Simulation, Error> {
    if rows.iter().any(|rows| !(1..=REHEARSED_ROWS).contains(rows)) {
        return Err(Error::input(format!(
            "a rehearsal takes 1 to {REHEARSED_ROWS} made-up rows of each side"
        )));
    }
    let file = StudyFile::parse("the study", text)?;
    let names: Vec<String> = file.parties.iter().map(|member| member.name.clone()).collect();
    // Made-up files are gone with it.
    let folder = tempfile::tempdir().map_err(|e| Error::io("cannot make a folder for made-up files", &e))?;
    let made = match file.first().only_matches() {
        // What computes nothing says so itself.
        true => Vec::new(),
        false => generate::for_study(folder.path(), &file, &names, rows, SEED)?,
    };
    let data: BTreeMap<String, SimulatedData> =
        made.into_iter().map(|made| (made.party, made.path.into())).collect();
    let asked = SimulationQuestion { file, data, made_up: names, draws: DRAWS, seed: SEED, threads: 1 };
    let mut all = simulate(&asked, &|_, _, _| ())?;
    let parts = all.runs.iter_mut().flat_map(|run| &mut run.views).flat_map(|view| &mut view.parts);
    parts.for_each(|part| part.numbers.retain(|number| !number.behind));
    Ok(all)
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
        let found = rehearse(PROGRAM, [400, 300]).unwrap_or_else(|error| panic!("{error}"));
        assert!(found.parties.iter().all(|party| party.data.is_none() && party.rows > 0));
        let views = &found.runs[0].views;
        let numbers: Vec<_> = views[0].parts.iter().flat_map(|part| &part.numbers).collect();
        assert!(numbers.iter().any(|number| number.label.contains("share of ill")), "{numbers:?}");
        assert!(numbers.iter().all(|number| number.spread.is_some() && !number.behind), "{numbers:?}");
        // As the service is told it, and the same again.
        let text = serde_json::to_string(&found).expect("JSON");
        let read: Simulation = serde_json::from_str(&text).expect("read");
        let again = rehearse(PROGRAM, [400, 300]).expect("again");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        assert_eq!(serde_json::to_string(&again).expect("JSON"), text);
    }

    #[test]
    fn what_cannot_be_rehearsed_says_why() {
        let refused = |text: &str, rows| rehearse(text, rows).expect_err("refused").to_string();
        assert!(refused(PROGRAM, [0, 5]).contains("1 to 100000"), "{}", refused(PROGRAM, [0, 5]));
        let matched = PROGRAM.replace("kind = \"program\"", "kind = \"match\"");
        let matched: String = matched.split("[columns]").next().expect("a half").to_owned();
        let matched = matched.replace("[privacy]\nunit = \"person\"\n", "");
        assert!(refused(&matched, [5, 5]).contains("computes nothing"), "{}", refused(&matched, [5, 5]));
    }
}

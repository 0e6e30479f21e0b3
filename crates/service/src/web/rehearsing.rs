//! Rehearsals as child processes. What comes of them lies in memory alone, the last few, and is gone with the
//! service: what was made up is in no database, no log store, no backup and no export.

use super::House;
use super::checking::{ChildRule, watch};
use base::Error;
use job::simulate::Simulation;
use serde_json::json;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Rehearsals at a time.
const AT_ONCE: usize = 2;
/// Rehearsals that are kept.
const KEPT: usize = 16;
/// Bytes of one that is kept.
const BYTES: usize = 2 << 20;
const RULE: ChildRule = ChildRule { what: "rehearsal", most: Duration::from_secs(5 * 60) };

/// A rehearsal of a study.
#[derive(Clone)]
pub struct Rehearsal {
    /// When it was asked for, in seconds since 1970.
    pub at: u64,
    /// Made-up people of the first party, and of each other one.
    pub rows: [u64; 2],
    /// The mean outcome in the control arm, where somebody says it.
    pub mean: Option<f64>,
    /// What came of it, or why nothing did; none: it is under way.
    pub came: Option<Result<Arc<Simulation>, String>>,
}

/// For what a rehearsal is made up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RehearsedSizes {
    /// People of the first party, and of each other one.
    pub rows: [u64; 2],
    /// The mean outcome in the control arm, where somebody says it.
    pub mean: Option<f64>,
}

/// Rehearsals by the hash of their study, the newest last.
#[derive(Clone, Default)]
pub struct Rehearsing(Arc<Mutex<Vec<(String, Rehearsal)>>>);

impl Rehearsing {
    fn all(&self) -> MutexGuard<'_, Vec<(String, Rehearsal)>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The last one of a study.
    pub fn of(&self, study: &str) -> Option<Rehearsal> {
        self.all().iter().find(|(of, _)| of == study).map(|(_, one)| one.clone())
    }

    /// Begins one; false where the study has one under way, or too many others do.
    fn begin(&self, study: &str, one: Rehearsal) -> bool {
        let mut all = self.all();
        let under_way = |(_, one): &&(String, Rehearsal)| one.came.is_none();
        let is_busy = all.iter().filter(under_way).any(|(of, _)| of == study);
        if is_busy || all.iter().filter(under_way).count() >= AT_ONCE {
            return false;
        }
        all.retain(|(of, _)| of != study);
        if all.len() >= KEPT
            && let Some(oldest) = all.iter().position(|(_, one)| one.came.is_some())
        {
            all.remove(oldest);
        }
        all.push((study.to_owned(), one));
        true
    }

    fn end(&self, study: &str, came: Result<Arc<Simulation>, String>) {
        let mut all = self.all();
        let one = all.iter_mut().find(|(of, one)| of == study && one.came.is_none());
        one.into_iter().for_each(|(_, one)| one.came = Some(came.clone()));
    }
}

/// Starts one for a study in its one form; false where it runs already, or too many others do.
pub fn start(house: &House, study: &str, text: &str, sizes: RehearsedSizes) -> Result<bool, Error> {
    let program = std::env::current_exe().map_err(|e| Error::io("cannot find this program", &e))?;
    let RehearsedSizes { rows, mean } = sizes;
    if !house.rehearsing.begin(study, Rehearsal { at: super::now(), rows, mean, came: None }) {
        return Ok(false);
    }
    // Made-up files are gone with this, also those of a child that is killed.
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            house.rehearsing.end(study, Err("there is no room for made-up files".to_owned()));
            return Err(Error::io("cannot make a folder for made-up files", &error));
        }
    };
    let mut command = Command::new(program);
    command.env("TMPDIR", folder.path());
    command.args(["service", "rehearse", "--json"]);
    let memory = house.rules().settings.policy.jobs_memory;
    let input = json!({ "study": text, "rows": rows, "mean": mean, "memory": memory }).to_string();
    let (store, rehearsing, study) = (house.store.clone(), house.rehearsing.clone(), study.to_owned());
    watch(command, input, RULE, move |found| {
        drop(folder);
        rehearsing.end(&study, read(&found));
        store.ring();
    });
    Ok(true)
}

/// What a child said.
fn read(found: &str) -> Result<Arc<Simulation>, String> {
    if found.len() > BYTES {
        return Err("the study has more numbers than a page shows: `tacit simulate` tries it".to_owned());
    }
    let value: serde_json::Value = serde_json::from_str(found).map_err(|e| e.to_string())?;
    match value["error"]["message"].as_str() {
        Some(message) => Err(message.to_owned()),
        None => serde_json::from_value(value).map(Arc::new).map_err(|e| e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_run_at_once_and_the_last_ones_are_kept() {
        let all = Rehearsing::default();
        let begin = |study: &str| all.begin(study, Rehearsal { at: 1, rows: [5, 5], mean: None, came: None });
        assert!(begin("a") && begin("b"));
        assert!(!begin("c"), "two run");
        all.end("a", Err("no".to_owned()));
        assert!(!begin("b"), "it runs already");
        for number in 0..KEPT {
            assert!(begin(&number.to_string()));
            all.end(&number.to_string(), Err("no".to_owned()));
        }
        assert!(all.of("a").is_none() && all.of("15").is_some());
        assert!(all.of("b").is_some_and(|one| one.came.is_none()), "what runs is kept");
        assert_eq!(all.all().len(), KEPT);
    }

    #[test]
    fn what_a_child_says_is_read_or_told() {
        let failed = |text: &str| read(text).expect_err("no simulation");
        assert_eq!(failed("{\"error\":{\"message\":\"no rows\"}}"), "no rows");
        assert!(failed(&" ".repeat(BYTES + 1)).contains("tacit simulate"));
        assert!(failed("{}").contains("missing field"), "{}", failed("{}"));
    }
}

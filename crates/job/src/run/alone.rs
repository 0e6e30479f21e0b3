//! A match by itself (`tacit match`): rows are brought together, and each party keeps its part, as a Parquet
//! file or as rows in memory.

use super::join::{REAL, owned};
use super::matched::{MatchedRows, Placed};
use super::owner::OwnerRun;
use super::{Watch, in_time, meet, places, ready, stage_lines, stopped, warn};
use crate::budget;
use crate::compose::nobody_matched;
use crate::export::{self, About, MatchedPart, Payload};
use crate::prepare::{self, Checked, Opened};
use crate::stages::matching::MatchStage;
use base::{Error, PartyId};
use report::wording;
use report::{Disclosure, StageReport};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;
use study::party::PartySetup;

/// The format of [`MatchReport`].
pub const MATCH_FORMAT: &str = "tacit-match-report/1";

/// What became of a match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchReport {
    /// [`MATCH_FORMAT`].
    pub format: String,
    /// The study's name.
    pub study: String,
    /// Its hash.
    pub hash: String,
    /// This party.
    pub party: String,
    /// Where this party's part is; absent where it was handed over as rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Positions of the spine, or joined rows.
    pub rows: u64,
    /// What all learnt besides.
    pub disclosed: Disclosure,
    /// What to know before anything is computed on these rows.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Time, bytes and price.
    pub stages: Vec<StageReport>,
    /// From the first word to the last.
    pub seconds: f64,
}

/// Runs this party's half of a study of kind `match`, and writes its part to `file`, which must not be there
/// yet. Without a file the part comes back as rows, and lies in memory alone.
///
/// # Errors
/// Input, policy, budget, network or a deviating peer; see `docs/errors.md`.
pub fn run_match(
    party: &PartySetup,
    opened: &Opened,
    file: Option<&Path>,
    watch: &Watch,
) -> Result<(MatchReport, Option<MatchedPart>), Error> {
    let mut all = prepare::check(party, opened)?;
    let (Some(checked), true) = (all.pop(), all.is_empty()) else {
        return Err(Error::misuse("a study that only matches is one run"));
    };
    if !checked.study.only_matches() {
        return Err(Error::input(format!(
            "study {} computes something: `tacit run` matches its rows and computes; `tacit match` is for \
             studies of kind \"match\"",
            checked.study.name
        )));
    }
    file.map_or(Ok(()), expect_new_file)?;
    let mut all = [checked];
    budget::check_consent(party, &mut all)?;
    let [checked] = &all;
    let places = places(party, &checked.study, checked.me, false)?;
    let ledger = ready::open_ledger(party, &all, watch)?;
    super::tag(&ledger, &all)?;
    in_time(&ledger, party, &all)?;
    warn(&all, watch);
    let [checked] = all;
    let meeting = meet(party, &checked, places, watch)?;
    let (run, _) = OwnerRun::new(party, &checked, ledger, watch, (None, meeting))?;
    run.match_only(file)
}

/// Before anybody is met and anything is charged.
fn expect_new_file(file: &Path) -> Result<(), Error> {
    if file.exists() {
        return Err(Error::input(format!(
            "{} is there already, and a match never replaces a file; name another with --out",
            file.display()
        )));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = tempfile::tempfile_in(folder);
    made.map(|_| ())
        .map_err(|e| Error::io(format!("cannot write to {}; make it, or change --out", folder.display()), &e))
}

impl MatchReport {
    /// For people: what there is, what was disclosed, and what it cost.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { study, hash, rows, disclosed, .. } = self;
        let file = self.file.as_ref().map_or_else(String::new, |file| format!(", {}", file.display()));
        let mut lines = vec![
            format!("{} ({hash}): {rows} rows{file}", wording::label(study)),
            format!("disclosed: {}", wording::sizes(disclosed)),
        ];
        if let Some(dummies) = &disclosed.dummies {
            let about = wording::without_made_up(disclosed)
                .map_or(String::new(), |about| format!(" (of those matched {about})"));
            lines.push(format!(
                "  with made-up rows in them{about}; this party's ledger was charged rho {} and delta {}",
                dummies.rho,
                page::numbers::power(&dummies.delta)
            ));
        } else if !disclosed.public_keys {
            lines.push("  exact sizes disclosed".to_owned());
        }
        lines.extend(disclosed.counts.iter().map(|c| format!("  {}: {}", c.what, c.count)));
        lines.extend(wording::who_learnt(disclosed).map(|text| format!("  {text}")));
        lines.extend(stage_lines(&self.stages, "of all parties"));
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.join("\n")
    }
}

impl OwnerRun<'_> {
    fn match_only(mut self, file: Option<&Path>) -> Result<(MatchReport, Option<MatchedPart>), Error> {
        self.match_steps(file).map_err(|error| stopped(self.farewell.as_ref(), error))
    }

    fn match_steps(&mut self, file: Option<&Path>) -> Result<(MatchReport, Option<MatchedPart>), Error> {
        let start = Instant::now();
        self.count_run()?;
        let agreement = self.agree(None)?;
        self.ready(&agreement)?;
        let Checked { study, built, engines, rows, .. } = self.checked;
        let stage = MatchStage::new(study, built, engines, [rows.len(); 2])?;
        let MatchedRows { rows, disclosed } = self.place_rows(&stage, (&agreement, None))?;
        let part = self.export(&rows, file)?;
        self.part()?;
        self.session.finish()?;
        let checked = &self.checked;
        let report = MatchReport {
            format: MATCH_FORMAT.to_owned(),
            study: checked.study.name.clone(),
            hash: checked.hash.to_string(),
            party: checked.roster.name(checked.me),
            file: file.map(Path::to_owned),
            rows: rows.count(),
            warnings: nobody_matched(&disclosed).into_iter().collect(),
            disclosed,
            stages: self.log.all().to_vec(),
            seconds: start.elapsed().as_secs_f64(),
        };
        Ok((report, part))
    }

    /// Writes this party's part of the match, or hands it over.
    fn export(&self, rows: &Placed, file: Option<&Path>) -> Result<Option<MatchedPart>, Error> {
        let checked = &self.checked;
        let about = About {
            format: export::FORMAT,
            study: checked.hash.to_string(),
            protocol: checked.study.matching.matcher.name(),
            party: checked.roster.name(checked.me),
            rows: rows.count(),
            columns: Vec::new(),
        };
        let (attached, joined) = match rows {
            Placed::Spine(aligned) => {
                let rows = checked.rows.in_memory("a match by itself")?;
                let identifiers = rows.identifiers();
                let first = |row: usize| {
                    let name = identifiers.row(row).find(|name| !name.is_empty()).unwrap_or_default();
                    String::from_utf8_lossy(name).into_owned()
                };
                return export::spine(file, &about, &first, &aligned.positions()?);
            }
            Placed::Shares(attached, joined) => (attached, joined),
            Placed::Joined(_) => return Err(Error::misuse("shares of a computation are not written")),
        };
        let own = attached.own()?;
        let roster = [PartyId(0), PartyId(1)].map(|party| checked.roster.name(party));
        let names = [PartyId(0), PartyId(1)].map(|party| {
            let real = checked.study.matching.dummies.is_some().then(|| REAL.to_owned());
            let names = owned(&checked.built.program, party).map(|column| column.name.clone());
            names.chain(real).collect::<Vec<_>>()
        });
        let payload = |party: usize| Payload {
            party: &roster[party],
            names: &names[party],
            own: (checked.me.index() == party).then_some(&own),
        };
        export::shares(file, &about, joined, [payload(0), payload(1)])
    }
}

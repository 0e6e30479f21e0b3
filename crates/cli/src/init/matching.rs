//! `tacit init match`: rows are matched, and nothing is computed.

use super::InitCommon;
use super::draft::{StudyDraft, said};
use super::guess::plain_name;
use super::making::{Beginning, Making};
use base::Error;
use clap::Args;
use std::path::{Path, PathBuf};

/// Makes study, party file and key of a study that only matches: one party begins it, the other completes it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  tacit init match --data clinic.csv --out match\n  \
                  tacit init match --data registry.csv --study match/study.toml\n  \
                  tacit match match/clinic.toml --out clinic.parquet")]
pub struct MatchInitArgs {
    /// The data: CSV, Excel or Parquet, a file, a folder or a pattern
    #[arg(long, value_name = "DATA")]
    pub data: PathBuf,
    /// What each kind takes.
    #[command(flatten)]
    pub common: InitCommon,
}

/// Makes this party's half.
///
/// # Errors
/// As [`super::run`].
pub fn run(args: &MatchInitArgs) -> Result<(), Error> {
    let beginning =
        Beginning { kind: "match", party: party(&args.data), lacks: ["party"; 2], other: "match --data" };
    let (mut making, mut draft) = Making::begin(&args.common, &args.data, &beginning)?;
    if making.completes {
        draft = draft.finished();
        let study = draft.parse("the study")?.only()?;
        making.identifiers_of(&study)?;
    } else {
        draft.set("match", making.matching("pid")?);
        compute(&mut draft);
    }
    making.finish(&draft, beginning.other)
}

/// A party's name by that of its data.
pub fn party(data: &Path) -> String {
    data.file_stem().map_or_else(String::new, |stem| plain_name(&stem.to_string_lossy()))
}

/// The section `[compute]`.
pub fn compute(draft: &mut StudyDraft) {
    let line = said("How it is computed changes the cost, never the answer.", "engine = \"auto\"");
    draft.set("compute", format!("[compute]\n{line}"));
}

//! `tacit init match`: rows are matched, and nothing is computed.

use super::EqualInitArgs;
use super::draft::{StudyDraft, said};
use super::making::{Beginning, Making};
use base::Error;
use clap::Args;

/// Makes study, party file and key of a study that only matches: one party begins it, the other completes it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  tacit init match --data clinic.csv --out match\n  \
                  tacit init match --data registry.csv --study match/study.toml\n  \
                  tacit match match/clinic.toml --out clinic.parquet")]
pub struct MatchInitArgs {
    /// All that there is to say.
    #[command(flatten)]
    pub own: EqualInitArgs,
}

/// Makes this party's half.
///
/// # Errors
/// As [`super::run`].
pub fn run(args: &MatchInitArgs) -> Result<(), Error> {
    let beginning = Beginning { kind: "match", lacks: ["party"; 2], other: "match --data" };
    let (mut making, mut draft) = Making::begin(&args.own.common, &args.own.data, &beginning)?;
    if making.completes {
        draft = draft.finished();
        let study = draft.parse("the study")?.only()?;
        making.identifiers_of(&study)?;
    } else {
        draft.set("match", making.matching("pid")?);
        privacy(&mut draft);
        compute(&mut draft);
    }
    making.entitle(&mut draft, "Which rows both parties have")?;
    making.finish(&draft, beginning.other)
}

/// The section `[privacy]`.
pub fn privacy(draft: &mut StudyDraft) {
    let unit = said("What one identifier stands for: the guarantee is of one such.", "unit = \"person\"");
    draft.set("privacy", format!("[privacy]\n{unit}"));
}

/// The section `[compute]`.
pub fn compute(draft: &mut StudyDraft) {
    let line = said("How it is computed changes the cost, never the answer.", "engine = \"auto\"");
    draft.set("compute", format!("[compute]\n{line}"));
}

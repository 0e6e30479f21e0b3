//! `tacit check`: this side of a study before any protocol starts.

use crate::args::rows_pair;
use crate::plan;
use crate::settings::ConsentArgs;
use base::Error;
use clap::Args;
use job::check::{CheckSizes, CheckedSide, SideReport};
use job::folders::expect_report_folder;
use job::prepare::Opened;
use job::told;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use study::StudyFile;
use study::party::{self, PartySettings, PartySetup};
use terminal::progress::Working;
use terminal::{output, width};

/// Validates this side of a study: the study file, the policy, the program, every row of the data. Sends
/// nothing.
///
/// Given a party file (it has `as` and `data`), everything is checked; given a study file, the study alone.
#[derive(Debug, Args)]
#[command(
    override_usage = "tacit check [OPTIONS] FILE",
    after_help = "Examples:\n  tacit check study.toml\n  tacit check registry.toml\n  tacit check study.toml \
                  --peer-study their-study.toml\n  tacit check registry.toml --data \
                  registry-march.csv --rows 400k,2k --mean 0.0006\n  tacit check shop.toml --clamp 50,200"
)]
pub struct CheckArgs {
    /// A study file or a party file
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A party file
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub party: Option<PathBuf>,
    /// Flags of `tacit run` that win over the party file
    #[command(flatten)]
    pub settings: PartySettings,
    /// The peer's study file: names the first line in which the two differ
    #[arg(long, value_name = "FILE")]
    pub peer_study: Option<PathBuf>,
    /// Rows per side that the price is stated for: N or N,M; else the rows of this party's data, or 1M for a
    /// study alone
    #[arg(long, value_name = "N[,M]", value_parser = rows_pair)]
    pub rows: Option<[u64; 2]>,
    /// Your guess of the control arm's mean outcome per person, for the smallest detectable effect; else by
    /// this party's own file, or one event of 100 people
    #[arg(long, value_name = "X", value_parser = plan::mean)]
    pub mean: Option<f64>,
    /// Other clamps of a lift study, in its unit: what each would detect; the study stays as it is
    #[arg(long, value_name = "R[,R]", value_delimiter = ',', value_parser = plan::mean)]
    pub clamp: Vec<f64>,
    /// Write a page of plots: what rho, clamp, rows and mode would do to the interval of a lift study
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// What the operator will say to the run
    #[command(flatten)]
    pub said: ConsentArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Checks and prints what would happen.
pub fn run(args: CheckArgs) -> ExitCode {
    let json = args.json;
    check(args).unwrap_or_else(|error| output::fail(&error, json))
}

/// # Errors
/// The first thing that is wrong, or the first line in which the peer's study differs; as text, also what a
/// run would be refused for.
fn check(args: CheckArgs) -> Result<ExitCode, Error> {
    let side = side(&args)?;
    let peer_agrees = args.peer_study.as_deref().map(|peer| compare(&side.text, peer)).transpose()?;
    let sizes = CheckSizes { rows: args.rows, mean: args.mean, clamps: args.clamp, ..CheckSizes::default() };
    if let Some(page) = &args.figure {
        plan::figure::write(page, side.agreed.first(), &side.assumed(&sizes)?, side.inputs.as_ref())?;
    }
    let SideReport { report, agreed, built, serves, refused } = side.report(&sizes, peer_agrees)?;
    let file = args.party.as_ref().or(args.file.as_ref());
    let file = file.map_or_else(|| "PARTY_FILE".to_owned(), |file| file.display().to_string());
    match (args.json, refused) {
        // Standard output holds one object: what was found, and the error.
        (true, Err(error)) => Ok(output::fail_with(&error, true, &report)),
        (true, Ok(())) => output::print_json(&report).map(|()| ExitCode::SUCCESS),
        (false, refused) => {
            let facts = (serves, args.rows.is_none());
            output::print(&told::checked::text(&report, (&agreed, &built), &file, facts, width::columns()))?;
            refused.map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Everything that this side can check: all of it given a party file or its settings as flags, the study
/// alone given a study file.
fn side(args: &CheckArgs) -> Result<CheckedSide, Error> {
    let flags = args.settings.clone();
    let no_flags = flags == PartySettings::default();
    let Some(file) = args.party.as_ref().or(args.file.as_ref()) else {
        return match no_flags {
            true => Err(Error::input("name a study file or a party file, or say every setting as a flag")),
            false => whole(flags, args.said),
        };
    };
    let text = study::read_text(file)?;
    if args.party.is_some() || party::is_party_file(&text) {
        return whole(flags.over_text_of(file, &text)?, args.said);
    }
    if !no_flags {
        return Err(Error::input(format!(
            "{} is a study file, and a party's settings are among the flags: name the party file, or the \
             study \
             as --study {} beside them",
            file.display(),
            file.display()
        )));
    }
    CheckedSide::of_study(StudyFile::parse(&file.display().to_string(), &text)?, text)
}

fn whole(settings: PartySettings, said: ConsentArgs) -> Result<CheckedSide, Error> {
    if let Some(side) = CheckedSide::of_server(&settings)? {
        return Ok(side);
    }
    let party = PartySetup { consent: said.into(), ..settings.complete()? };
    let _working = Working::on(format!("reading {}", party.data.display()));
    let opened = Opened::of(&party)?;
    expect_report_folder(&party.report)?;
    CheckedSide::of_party(party, opened)
}

/// Whether the peer's study says the same as ours.
fn compare(mine: &str, peer: &Path) -> Result<bool, Error> {
    study::expect_study(peer)?;
    let theirs = study::read_text(peer)?;
    study::expect_same(mine, (&peer.display().to_string(), &theirs)).map(|()| true)
}

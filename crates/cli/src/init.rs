//! `tacit init`: from a party's data to study, party file and key.

mod ask;
mod draft;
mod guess;
mod lift;
mod making;
mod matching;
mod period;
mod program;
mod units;

use base::Error;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use study::format::InputFormat;
use study::party;

/// Makes study, party file and key from a party's data. It looks at them on this machine and sends nothing.
#[derive(Debug, Args)]
#[command(after_help = "Two parties, from their files to a report:\n  \
                  tacit init lift --publisher mails.csv --out lift\n  \
                  tacit init lift --advertiser sales.csv --study lift/study.toml\n  \
                  tacit check lift/publisher.toml\n  \
                  tacit run lift/publisher.toml\n  \
                  tacit run lift/advertiser.toml\n\
                  Between two machines lift/study.toml goes to the other party and comes back; nothing else \
                  does.")]
pub struct InitArgs {
    /// What the study is about.
    #[command(subcommand)]
    pub what: InitKind,
}

/// What is made.
#[derive(Debug, Subcommand)]
pub enum InitKind {
    /// Did a treatment change an outcome: one party knows who was treated, the other what happened
    Lift(Box<lift::LiftInitArgs>),
    /// Counts and means of columns of both parties, in groups
    Program(Box<program::ProgramInitArgs>),
    /// Rows are matched, and nothing is computed
    Match(Box<matching::MatchInitArgs>),
}

/// What is the same for all kinds.
#[derive(Debug, Args)]
pub struct InitCommon {
    /// The study that the other party has begun; without it one is begun
    #[arg(long, value_name = "FILE")]
    pub study: Option<PathBuf>,
    /// The folder for the files that are made; that of --study, or one called as the kind, unless told
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// This party's name in the study
    #[arg(long, value_name = "NAME")]
    pub party: Option<String>,
    /// The study's name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The study's title, a line for people
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// The column that says who a row is of; may be repeated, the best first
    #[arg(long = "id", value_name = "COLUMN")]
    pub ids: Vec<String>,
    /// The calling code of telephone numbers that have none: 49; or none: they are no telephone numbers
    #[arg(long, value_name = "CODE|none", value_parser = CallingCode::parse)]
    pub country: Option<CallingCode>,
    /// A second line of the same identifier: error, first or merge
    #[arg(long, value_name = "RULE", value_parser = ["error", "first", "merge"])]
    pub duplicates: Option<String>,
    /// Wait for the other party at this address: 0.0.0.0:7000; who begins a study does, at 127.0.0.1:7000
    #[arg(long, value_name = "HOST:PORT", value_parser = party::host_and_port, conflicts_with = "peer")]
    pub listen: Option<String>,
    /// The other party waits at this address; for who completes a study, 127.0.0.1:7000 unless told
    #[arg(long, value_name = "HOST:PORT", value_parser = party::host_and_port)]
    pub peer: Option<String>,
    /// The stable name of this data over all its versions: the privacy budget is kept under it
    #[arg(long, value_name = "NAME")]
    pub lineage: Option<String>,
    /// The privacy ledger of an earlier study of these data, whose budget goes on: lift/advertiser.ledger.
    /// The key beside it (lift/advertiser.key) is this party's in the new study as well
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// What form the files have.
    #[command(flatten)]
    pub format: InputFormat,
    /// Take what is proposed
    #[arg(long)]
    pub yes: bool,
    /// Read answers from standard input though it is no terminal, a line each
    #[arg(long, conflicts_with = "yes")]
    pub stdin: bool,
    /// Print one JSON object: what was found, chosen and written
    #[arg(long)]
    pub json: bool,
}

/// What somebody says of numbers that may be telephone numbers without their country.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallingCode {
    /// They are no telephone numbers, and compared as they are written.
    Plain,
    /// They are of the country of this code.
    Of(u16),
}

impl CallingCode {
    /// As it is said.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim().parse::<u16>() {
            Ok(code @ 1..=999) => Ok(Self::Of(code)),
            _ if matches!(text.trim(), "none" | "no") => Ok(Self::Plain),
            _ => Err("the digits of a calling code, such as 49; or none: no telephone numbers".to_owned()),
        }
    }
}

/// What each party of a study says that treats both alike.
#[derive(Debug, Args)]
pub struct EqualInitArgs {
    /// The data: CSV, Excel or Parquet, a file, a folder or a pattern
    #[arg(long, value_name = "DATA")]
    pub data: PathBuf,
    /// What each kind takes.
    #[command(flatten)]
    pub common: InitCommon,
}

/// What a result shall cost.
#[derive(Debug, Args)]
pub struct ProposedPrice {
    /// Who begins: the zCDP that the public result costs
    #[arg(long, value_name = "RHO", conflicts_with = "study")]
    rho: Option<String>,
}

impl ProposedPrice {
    /// A tenth of the budget of a new party file, unless told.
    ///
    /// # Errors
    /// When it is no number.
    pub fn rho(&self) -> Result<&str, Error> {
        let rho = self.rho.as_deref().unwrap_or("0.1");
        match rho.parse::<f64>() {
            Ok(_) => Ok(rho),
            Err(_) => Err(Error::input(format!("--rho is {rho}; write a decimal number such as 0.1"))),
        }
    }
}

impl InitArgs {
    /// Whether errors are wanted as JSON, too.
    pub fn wants_json(&self) -> bool {
        match &self.what {
            InitKind::Lift(args) => args.common.json,
            InitKind::Program(args) => args.own.common.json,
            InitKind::Match(args) => args.own.common.json,
        }
    }
}

/// Makes the files.
///
/// # Errors
/// When the data cannot be read, a file is there already, or a question has no answer.
pub fn run(args: &InitArgs) -> Result<(), Error> {
    match &args.what {
        InitKind::Lift(args) => lift::run(args),
        InitKind::Program(args) => program::run(args),
        InitKind::Match(args) => matching::run(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calling_code_may_be_none() {
        let of = |text: &str| CallingCode::parse(text).ok();
        assert_eq!(
            [of("49"), of(" none"), of("no")].map(Option::unwrap),
            [CallingCode::Of(49), CallingCode::Plain, CallingCode::Plain]
        );
        assert_eq!(of("+49"), Some(CallingCode::Of(49)));
        assert_eq!([of(""), of("0"), of("1000")], [None; 3]);
    }
}

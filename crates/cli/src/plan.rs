//! `tacit plan`: what a study will cost, before anything is spent.

pub mod figure;

use crate::args::rows_pair;
use base::Error;
use clap::Args;
use job::plan::{Link, PlanQuestion};
use job::told;
use std::path::PathBuf;
use study::StudyFile;
use study::party::PartySettings;
use study::prices::{BytePath, PriceList};
use study::transport::ServerTransport;
use terminal::{output, width};

/// States gates, oblivious transfers, bytes, time and privacy cost of every stage, and the smallest effect
/// that the study could see.
///
/// Gates, transfers and bytes are exact for the given sizes. Seconds are an estimate from the link and the
/// speed of one core; the assumptions are printed with them. With --prices also hours, machines and dollars,
/// and which OT costs least.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit plan study.toml --rows 10M --link 1gbps,20ms\n  tacit plan study.toml \
                  --rows 2M,500k --mean 0.01 --json\n  tacit plan study.toml --rows 500M --cores 32 --prices \
                  docs/prices-2026.toml --between zones"
)]
pub struct PlanArgs {
    /// The study file
    pub study: PathBuf,
    /// Rows of both sides, or of the first and the second: 400k, 10M, 2M,500k
    #[arg(long, value_name = "N[,M]", value_parser = rows_pair)]
    pub rows: [u64; 2],
    /// How many rows both of two parties have: 10M; else as many as make the match dearest
    #[arg(long, value_name = "N", value_parser = terminal::values::count)]
    pub both: Option<u64>,
    /// Bandwidth each way and round-trip time
    #[arg(long, value_name = "RATE,RTT", value_parser = Link::parse, default_value = "10gbps,1ms")]
    pub link: Link,
    /// Your guess of the control arm's mean outcome per person, for the smallest detectable effect; else by
    /// this party's own file, or one event of 100 people
    #[arg(long, value_name = "X", value_parser = mean)]
    pub mean: Option<f64>,
    /// Other clamps of a lift study, in its unit: what each would detect, beside half and double; the study
    /// stays as it is
    #[arg(long, value_name = "R[,R]", value_delimiter = ',', value_parser = mean)]
    pub clamp: Vec<f64>,
    /// Cores of each party
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cores: u32,
    /// What four servers compute over: tls, auto, shm, fabric, fabric-PROVIDER
    #[arg(long, value_name = "NAME", default_value = "tls", value_parser = ServerTransport::parse)]
    pub transport: ServerTransport,
    /// The file of one party: what its rows read and write beside `state`, within its `memory`, and whether
    /// its disks hold that
    #[arg(long, value_name = "FILE")]
    pub party: Option<PathBuf>,
    /// What cores and bytes cost: docs/prices-2026.toml, or a copy with your prices
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// With --prices: where the parties' machines are, to choose the OT that costs least there: zone (both in
    /// one), zones (of one region), internet
    #[arg(long, value_name = "PLACE", default_value = "zones", requires = "prices",
          value_parser = BytePath::parse)]
    pub between: BytePath,
    /// Write a page of plots: what rho, clamp, rows and mode would do to the interval of a lift study
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// A mean outcome per person.
///
/// # Errors
/// What to write instead.
pub fn mean(text: &str) -> Result<f64, String> {
    let mean = text.parse::<f64>().ok().filter(|m| m.is_finite() && *m >= 0.0);
    mean.ok_or_else(|| "write a number from 0: 0.01".to_owned())
}

/// Prints the plan of a study.
///
/// # Errors
/// When the study is refused.
pub fn run(args: &PlanArgs) -> Result<(), Error> {
    study::expect_study(&args.study)?;
    let (file, _) = StudyFile::read(&args.study)?;
    let asked = PlanQuestion {
        rows: args.rows,
        both: args.both,
        mean: args.mean,
        link: args.link,
        cores: args.cores,
        transport: args.transport.clone(),
        prices: args.prices.as_deref().map(PriceList::read).transpose()?,
        between: args.between,
    };
    let (mut plan, assumed) = asked.plan(&file)?;
    if !args.clamp.is_empty() {
        plan.try_clamps(&file, &assumed, None, &args.clamp)?;
    }
    let mut room = Ok(());
    if let Some(path) = &args.party {
        let party = PartySettings::read(path)?.complete()?;
        plan.assumptions.remove("memory");
        plan = plan.of_party(file.first(), &party, args.rows)?;
        room = plan.expect_room(&file, &party, args.rows);
    }
    if let Some(file_name) = &args.figure {
        figure::write(file_name, file.first(), &assumed, None)?;
    }
    match (args.json, room) {
        // Standard output holds one object: the plan, or why it cannot be.
        (true, Err(error)) => Err(error),
        (true, Ok(())) => output::print_json(&plan),
        (false, room) => output::print(&told::plan_text(&plan, file.first(), width::columns())).and(room),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read() {
        let fast = Link::parse("10gbps,1ms").unwrap();
        assert_eq!((fast.bits_per_s, fast.round_trip_s), (1e10, 1e-3));
        for text in ["10gbps", "0gbps,1ms", "fast,1ms", "10gbps,-1ms", "nangbps,1ms", "10gbps,1"] {
            assert!(Link::parse(text).is_err(), "{text}");
        }
    }
}

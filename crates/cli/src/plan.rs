//! `tacit plan`: what a study will cost, before anything is spent.

mod bill;
mod engines;
pub mod figure;
mod noise;

pub use noise::noise_lines;

use crate::args::rows_pair;
use base::Error;
use clap::Args;
use job::plan::{CellEffect, ClampEffect, Link, Plan, PlanQuestion};
use job::spool::SpoolPasses;
use page::lines::Fact;
use page::numbers::{bytes, count, duration, percent, plain, scaled, short};
use privacy::ledger::PUBLIC;
use std::path::PathBuf;
use study::party::PartySettings;
use study::prices::{BytePath, PriceList};
use study::transport::ServerTransport;
use study::{EventValue, PartyRole, Question, Study, StudyFile};
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
        (false, room) => output::print(&text(&plan, file.first(), width::columns())).and(room),
    }
}

/// A plan for people: what it could see and what it costs in privacy, bytes and time, in lines of so many
/// columns; what that rests on comes last.
pub fn text(plan: &Plan, study: &Study, columns: usize) -> String {
    let wrap = |facts: Vec<Fact>| facts.iter().flat_map(|fact| fact.lines(columns)).collect::<Vec<_>>();
    let mut lines = wrap([effects(plan, study), charges(plan)].concat());
    lines.extend(noise_lines(plan, columns));
    lines.push(String::new());
    lines.extend(cost(plan, study, columns));
    lines.extend(wrap(tells(plan).into_iter().chain(assumed(plan)).collect()));
    lines.join("\n")
}

/// What a lift study would detect, in the unit of its outcome, and what that supposes.
pub fn effects(plan: &Plan, study: &Study) -> Vec<Fact> {
    let fact = |text: String| Fact::new("effect", text);
    let views =
        [("the publisher's view", plan.minimum_detectable_effect), ("the public result", plan.public_effect)];
    let overall = views.into_iter().filter_map(|(what, effect)| {
        let shown = difference(effect?, study);
        Some(fact(format!("{what} would detect a difference from {shown} on, in 80 of 100 such studies")))
    });
    let mut facts: Vec<Fact> = overall.collect();
    facts.extend(plan.cell_effects.iter().map(|cell| fact(effect_of_cell(cell, study))));
    facts.extend(plan.assumptions.get("effect").map(|why| Fact::new("effect", why)));
    facts.extend(other_clamps(plan, study).into_iter().map(fact));
    match (&study.kind, plan.assumptions.get("mean_outcome")) {
        (Question::Lift(_), Some(mean)) => {
            facts.push(fact(format!("that is for a mean outcome of the control arm of {mean}")));
            facts.extend(plan.assumptions.get("rows").map(|rows| fact(format!("it supposes: {rows}"))));
            facts.extend(plan.few_left_out.as_ref().map(|few| {
                let (rows, shown) = (count(few.rows), difference(few.effect, study));
                fact(format!(
                    "if few people have the labels left out, {rows} are in the two: from {shown} on"
                ))
            }));
        }
        (Question::Lift(_), None) => facts.push(fact(no_effect(study))),
        _ => {}
    }
    facts
}

/// What one of several alike cells would detect.
fn effect_of_cell(CellEffect { family, viewer, rows, effect }: &CellEffect, study: &Study) -> String {
    let [breakdown, cohort] = cell_names(study);
    let column = if *family == "breakdown" { breakdown } else { cohort };
    let whose = if viewer == PUBLIC { String::new() } else { format!(" towards {viewer}") };
    let [test, control] = rows.map(count);
    match effect {
        Some(effect) => format!(
            "in each group by {column}{whose}, of {test} and {control} rows were all alike: from {} on",
            difference(*effect, study)
        ),
        None => format!(
            "in each group by {column}{whose}: nothing would be shown, for it has {test} and {control} rows \
             were all alike; rho is spent on it all the same"
        ),
    }
}

/// What half the clamp, double and others that were asked for would detect, each beside the mean that it
/// leaves; nothing where none of them would detect anything.
fn other_clamps(plan: &Plan, study: &Study) -> Vec<String> {
    let Question::Lift(lift) = &study.kind else { return Vec::new() };
    let parts = |clamp: f64| (clamp * f64::from(lift.scale())).round() as u32;
    let (own, all) = (lift.rule.clamp, &plan.clamp_effects);
    let of_mean = |of: &ClampEffect| {
        let part =
            of.of_mean().map(|part| format!(", {} of the mean {} there", percent(part), plain(of.mean, 3)));
        let kept = of.kept.map(|kept| format!(", {} of all outcomes kept", percent(kept)));
        part.unwrap_or_default() + &kept.unwrap_or_default()
    };
    let told = |of: &ClampEffect| {
        let effect = of.effect.map_or_else(|| "nothing".to_owned(), |effect| difference(effect, study));
        format!("({}) would detect {effect}{}", amount(of.clamp, study), of_mean(of))
    };
    let usual = |of: &&ClampEffect| [own >> 1, own.saturating_mul(2)].contains(&parts(of.clamp));
    let found = all.iter().any(|of| of.effect.is_some());
    let near = all.iter().filter(usual).map(|of| {
        let which = if parts(of.clamp) < own { "half the clamp" } else { "double the clamp" };
        format!("{which} {}", told(of))
    });
    let mut near: Vec<String> = near.filter(|_| found).collect();
    let here = all.iter().find(|of| parts(of.clamp) == own).filter(|_| !near.is_empty());
    near.extend(here.map(|of| format!("the study's ({}){}", amount(of.clamp, study), of_mean(of))));
    let asked = all.iter().filter(|of| !usual(of) && parts(of.clamp) != own);
    let asked = asked.map(|of| format!("a clamp {}", told(of)));
    (!near.is_empty()).then(|| near.join("; ")).into_iter().chain(asked).collect()
}

/// What the cells of a breakdown and of cohorts are called: by their column, where there is one.
pub fn cell_names(study: &Study) -> [&str; 2] {
    let Question::Lift(lift) = &study.kind else { return ["breakdown", "cohort"] };
    let [breakdown, cohort] = lift.cell_columns();
    [breakdown.unwrap_or("breakdown"), cohort.unwrap_or("cohort")]
}

/// An amount in the outcome's unit.
fn amount(value: f64, study: &Study) -> String {
    format!("{} {}", short(value, 6), unit(study))
}

/// Why no effect is stated of a study whose outcomes are amounts, and what to type.
fn no_effect(study: &Study) -> String {
    let advertisers = study.parties.iter().filter(|party| party.role == PartyRole::Advertiser);
    let names: Vec<&str> = advertisers.map(|party| party.name.as_str()).collect();
    format!(
        "none is stated: it hangs on the mean outcome of the control arm, and only the data of {} \
         have outcomes: ask there, and say it with --mean (--mean 0.5 is 0.5 {} per person)",
        names.join(" and "),
        unit(study)
    )
}

/// What outcomes are counted in.
fn unit(study: &Study) -> String {
    let Question::Lift(lift) = &study.kind else { return String::new() };
    match lift.advertisers.first().map(|advertiser| &advertiser.value) {
        Some(EventValue::Columns { unit: Some(unit), .. }) => unit.clone(),
        Some(EventValue::Columns { unit: None, .. }) => "value".to_owned(),
        // Of events that are worth more than 1 it is no number of events.
        Some(EventValue::Constant(value)) if *value != 1 => "value".to_owned(),
        _ => "events".to_owned(),
    }
}

/// A difference of means: an amount, or people of so many.
fn difference(effect: f64, study: &Study) -> String {
    let (shown, unit) = (plain(effect, 3), unit(study));
    if unit != "events" {
        return format!("{shown} {unit} per person");
    }
    let most = [100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0];
    match most.into_iter().find(|people| effect * people >= 1.0) {
        Some(people) => {
            format!("{} per {} people ({shown} per person)", plain(effect * people, 3), count(people as u64))
        }
        None => format!("{shown} per person"),
    }
}

/// What each viewer's result is charged.
pub fn charges(plan: &Plan) -> Vec<Fact> {
    let fact = |text: String| Fact::new("privacy", text);
    let mut facts = Vec::new();
    for (viewer, rho) in &plan.rho {
        if *rho == 0.0 {
            let sizes = plan.assumptions.get("sizes").map_or_else(String::new, |sizes| {
                format!(", and what it learns of sizes is charged all the same: {sizes}")
            });
            facts.push(fact(format!("no noised value is for {viewer}: its release charges nothing{sizes}")));
            continue;
        }
        let Some(total) = plan.total.get(viewer) else { continue };
        // What parties see has it in it already.
        let whom = if viewer == PUBLIC { "public, that is anybody" } else { viewer };
        let what = if viewer == PUBLIC { "this view" } else { "all that it gets" };
        let each = if plan.assumptions.contains_key("runs") { " of each run" } else { "" };
        let charged = report::wording::charged(total, &format!("{what}{each}"));
        facts.push(fact(format!("{whom}: {charged} = {}", total.words())));
    }
    facts
}

/// Stages, disks, dollars and engines.
pub fn cost(plan: &Plan, study: &Study, columns: usize) -> Vec<String> {
    let mut lines = stage_table(plan);
    lines.extend(plan.spool.iter().flat_map(passes));
    lines.extend(plan.bill.iter().flat_map(bill::text));
    lines.extend(engines::table(plan, study, columns));
    lines.push(String::new());
    lines
}

/// What each stage tells, and to whom.
pub fn tells(plan: &Plan) -> Vec<Fact> {
    let tells = plan.stages.iter().flat_map(|stage| &stage.tells);
    tells.map(|tells| Fact::new("tells", format!("{}: {}", tells.to, tells.what))).collect()
}

/// What all of it rests on.
pub fn assumed(plan: &Plan) -> impl Iterator<Item = Fact> + use<'_> {
    // Only a lift study has arms and an effect; the mean stands beside it, and what is supposed of rows.
    let lift = plan.minimum_detectable_effect.is_some() || plan.public_effect.is_some();
    let said = move |name: &str| {
        ["effect", "mean_outcome", "values"].contains(&name) || (!lift && ["arms", "power"].contains(&name))
    };
    let assumed = plan.assumptions.iter().filter(move |(name, _)| !said(name));
    assumed.map(|(name, what)| Fact::new("assumed", format!("{name}: {what}")))
}

/// Gates, transfers, bytes, round trips and time of every stage.
fn stage_table(plan: &Plan) -> Vec<String> {
    let stages = &plan.stages;
    let wide = stages.iter().map(|stage| stage.name.chars().count()).fold(10, usize::max);
    let row = |name: &str, ands: u64, ots: u64, sent: u64, rounds: u64, seconds: f64| {
        format!(
            "{name:wide$} {:>12} {:>10} {:>12} {rounds:>8} {:>12}",
            scaled(ands as f64),
            scaled(ots as f64),
            bytes(sent),
            duration(seconds)
        )
    };
    let sum = |field: fn(&job::plan::PlanStage) -> u64| stages.iter().map(field).sum::<u64>();
    let mut lines = vec![format!(
        "{:wide$} {:>12} {:>10} {:>12} {:>8} {:>12}",
        "stage", "AND gates", "OTs", "bytes", "rounds", "time"
    )];
    for s in stages {
        lines.push(row(&s.name, s.and_gates, s.ots, s.bytes_sent.values().sum(), s.rounds, s.seconds));
    }
    lines.push(row(
        "total",
        sum(|s| s.and_gates),
        sum(|s| s.ots),
        sum(|s| s.bytes_sent.values().sum()),
        sum(|s| s.rounds),
        stages.iter().map(|s| s.seconds).sum(),
    ));
    lines
}

/// What a party's stages read and write of rows that do not fit into its memory.
fn passes(spool: &SpoolPasses) -> Vec<String> {
    let wide = 10;
    let row = |name: &str, [reads, writes, disk]: [&str; 3]| {
        format!("{name:wide$} {reads:>12} {writes:>10} {disk:>16}")
    };
    let mut lines = vec![
        String::new(),
        format!(
            "rows of {} outside memory (`state`); `memory` has to be {} MiB at least:",
            spool.party,
            spool.memory_least >> 20
        ),
        row("stage", ["reads", "writes", "on disk at most"]),
    ];
    for pass in &spool.passes {
        // Without a party's file nobody knows how large its source is.
        let reads = if pass.stage == "read" && pass.reads == 0 { "source".into() } else { bytes(pass.reads) };
        lines.push(row(pass.stage, [&reads, &bytes(pass.writes), &bytes(pass.on_disk)]));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use job::plan::{Assumed, Speeds, plan_file};

    /// Stages of several runs have the name of their advertiser before them.
    #[test]
    fn columns_are_as_wide_as_their_names() {
        let text = include_str!("../../../examples/lift-several.toml")
            .replace("advertisers  = \"together\"", "advertisers  = \"apart\"");
        let file = StudyFile::parse("study.toml", &text).unwrap();
        let assumed = Assumed { rows: [1000, 1000], both: None, outcome: None };
        let plan = plan_file(&file, &assumed, Link::parse("1gbps,1ms").unwrap(), Speeds::default()).unwrap();
        let table = stage_table(&plan);
        assert!(table.iter().any(|line| line.starts_with("bakery/compute ")), "{table:?}");
        assert!(table.iter().all(|line| line.len() == table[0].len()), "{table:?}");
    }

    /// Events that are worth 5 each add up to no number of events.
    #[test]
    fn outcomes_are_called_what_they_are() {
        let called = |value: &str| {
            let text = include_str!("../../../examples/lift.toml").replace("{ constant = 1 }", value);
            unit(StudyFile::parse("study.toml", &text).unwrap().first())
        };
        assert_eq!([called("{ constant = 1 }"), called("{ constant = 5 }")], ["events", "value"]);
    }

    #[test]
    fn links_are_read() {
        let fast = Link::parse("10gbps,1ms").unwrap();
        assert_eq!((fast.bits_per_s, fast.round_trip_s), (1e10, 1e-3));
        for text in ["10gbps", "0gbps,1ms", "fast,1ms", "10gbps,-1ms", "nangbps,1ms", "10gbps,1"] {
            assert!(Link::parse(text).is_err(), "{text}");
        }
    }
}

//! `tacit plan`: what a study will cost, before anything is spent.

use crate::{args, output};
use base::Error;
use job::plan::{Assumed, Link, Plan, Speeds, plan};
use privacy::ledger::PUBLIC;
use study::{Protocol, Study};

/// Prints the plan of a study.
///
/// # Errors
/// When the study is refused.
pub fn run(args: &args::Plan) -> Result<(), Error> {
    crate::check::expect_study(&args.study)?;
    let (study, _) = Study::read(&args.study)?;
    same_rows(&study, args.rows)?;
    let speeds = Speeds { cores: f64::from(args.cores), ..Speeds::default() };
    let mut plan = plan(&study, &Assumed { rows: args.rows, mean: args.mean }, args.link, speeds)?;
    say_link(&mut plan, args.link);
    let plan = plan.over(&study, &args.transport, args.link);
    if args.json { output::print_json(&plan) } else { output::print(&text(&plan)) }
}

/// Refuses different numbers of rows where every party has the same.
///
/// # Errors
/// When the study is aligned and they differ.
pub fn same_rows(study: &Study, rows: [u64; 2]) -> Result<(), Error> {
    if study.matching.protocol != Protocol::Aligned || rows[0] == rows[1] {
        return Ok(());
    }
    Err(Error::input("every party of an aligned study has the same rows; give --rows one number"))
}

/// States the link in the units in which people buy it.
pub fn say_link(plan: &mut Plan, link: Link) {
    let rate = output::scaled(link.bits_per_s);
    let text = format!("{rate}bit/s, {} ms round trip", link.round_trip_s * 1e3);
    plan.assumptions.insert("link".to_owned(), text);
}

/// A plan for people.
pub fn text(plan: &Plan) -> String {
    let mut lines = vec![format!(
        "{:10} {:>12} {:>10} {:>12} {:>8} {:>12}",
        "stage", "AND gates", "OTs", "bytes", "rounds", "time"
    )];
    let row = |name: &str, ands: u64, ots: u64, sent: u64, rounds: u64, seconds: f64| {
        format!(
            "{name:10} {:>12} {:>10} {:>12} {rounds:>8} {:>12}",
            output::scaled(ands as f64).trim_end(),
            output::scaled(ots as f64).trim_end(),
            output::bytes(sent),
            output::duration(seconds)
        )
    };
    let stages = &plan.stages;
    let sum = |field: fn(&job::plan::PlanStage) -> u64| stages.iter().map(field).sum::<u64>();
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
    lines.extend(engines(plan));
    lines.push(String::new());
    for (viewer, rho) in &plan.rho {
        if *rho == 0.0 {
            lines.push(format!("privacy    no noised value is for {viewer}: its release charges nothing"));
            continue;
        }
        let Some(total) = plan.total.get(viewer) else { continue };
        // What parties see has it in it already.
        let whom = if viewer == PUBLIC { "public, that is anybody" } else { viewer };
        lines.push(format!("privacy    {whom}: {} = {}", report::wording::charged(total), total.words()));
    }
    let effects =
        [("the publisher's view", plan.minimum_detectable_effect), ("the public result", plan.public_effect)];
    for (what, effect) in effects.into_iter().filter_map(|(what, effect)| Some((what, effect?))) {
        lines.push(format!(
            "effect     smallest difference of means that {what} would detect: {effect:.3e} per person"
        ));
    }
    // Only a lift study has arms, a mean and an effect.
    let of_lift = |name: &str| ["arms", "mean_outcome", "power"].contains(&name);
    let lift = plan.minimum_detectable_effect.is_some() || plan.public_effect.is_some();
    let shown = |name: &str| lift || !of_lift(name);
    let assumed = plan.assumptions.iter().filter(|(name, _)| shown(name));
    lines.extend(assumed.map(|(name, what)| format!("assumed    {name}: {what}")));
    lines.join("\n")
}

/// What each engine would take, and which to choose.
fn engines(plan: &Plan) -> Vec<String> {
    if plan.engines.is_empty() {
        return Vec::new();
    }
    let mut lines =
        vec![String::new(), "engines that could run it, rows and releases without the match:".to_owned()];
    for choice in &plan.engines {
        let settings =
            if choice.settings.is_empty() { String::new() } else { format!(", {}", choice.settings) };
        let remark = match (&choice.needs, choice.recommended) {
            (Some(needs), _) => format!("   needs {needs}"),
            (None, true) => "   recommended: the fastest that needs no other study".to_owned(),
            (None, false) => String::new(),
        };
        lines.push(format!(
            "{:34} {:>10} {:>12}{remark}",
            format!("{}{settings}", choice.engine),
            output::bytes(choice.bytes),
            output::duration(choice.seconds)
        ));
    }
    lines
}

//! What a plan, a check and a simulation say, in words: the command, the page of the service and the Python
//! package show them.
//! What is agreed to is told once, in one place.

mod bill;
pub mod checked;
mod engines;
mod noise;
mod shown;
pub mod simulated;

pub use noise::noise_lines;
pub use shown::{budget_facts, left_out, meanings, noise_from, revealed, runs, servers};

use crate::plan::{CellEffect, ClampEffect, Plan, PlanStage};
use crate::spool::SpoolPasses;
use page::lines::Fact;
use page::numbers::{bytes, count, duration, percent, plain, scaled, short};
use privacy::ledger::PUBLIC;
use study::{EventValue, PartyRole, Question, Study};

/// A plan for people: what it could see and what it costs in privacy, bytes and time, in lines of so many
/// columns; what that rests on comes last.
pub fn plan_text(plan: &Plan, study: &Study, columns: usize) -> String {
    let wrap = |facts: Vec<Fact>| facts.iter().flat_map(|fact| fact.lines(columns)).collect::<Vec<_>>();
    let answer = plan.bill.iter().map(|bill| Fact::new("answer", bill::answer(bill)));
    let mut lines = wrap(answer.chain(effects(plan, study)).chain(charges(plan, &|_| true)).collect());
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
    facts.extend(other_clamps(plan, study).into_iter().map(fact));
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
fn cell_names(study: &Study) -> [&str; 2] {
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
pub fn unit(study: &Study) -> String {
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
pub fn difference(effect: f64, study: &Study) -> String {
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

/// What the results of those viewers that `sees` names are charged.
pub fn charges(plan: &Plan, sees: &dyn Fn(&str) -> bool) -> Vec<Fact> {
    let fact = |text: String| Fact::new("privacy", text);
    let mut facts = Vec::new();
    for (viewer, rho) in plan.rho.iter().filter(|(viewer, _)| sees(viewer)) {
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
    // With prices the bill has the time: that of cores which are not all used.
    let timed = plan.bill.is_none();
    let row = |name: &str, ands: u64, ots: u64, sent: u64, rounds: u64, seconds: f64| {
        format!(
            "{name:wide$} {:>12} {:>10} {:>12} {rounds:>8} {:>12}",
            scaled(ands as f64),
            scaled(ots as f64),
            bytes(sent),
            if timed { duration(seconds) } else { String::new() }
        )
        .trim_end()
        .to_owned()
    };
    let sum = |field: fn(&PlanStage) -> u64| stages.iter().map(field).sum::<u64>();
    let time = if timed { "time" } else { "" };
    let head = format!(
        "{:wide$} {:>12} {:>10} {:>12} {:>8} {time:>12}",
        "stage", "AND gates", "OTs", "bytes", "rounds"
    );
    let mut lines = vec![head.trim_end().to_owned()];
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
    use crate::plan::{Assumed, Link, Speeds, plan_file};
    use study::StudyFile;

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
}

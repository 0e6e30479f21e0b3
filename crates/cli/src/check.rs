//! `tacit check`: this side of a study before any protocol starts.

mod text;

use crate::args::rows_pair;
use crate::plan;
use crate::settings::ConsentArgs;
use base::{Error, Fault, PartyId, limits};
use clap::Args;
use data::InputReport;
use job::budget::{self, Outlook};
use job::plan::{Assumed, Link, Plan, Speeds};
use job::prepare::{self, Built, Opened, build_all};
use program::{Class, Owners, Program, RowSet, Viewer};
use release::rational::{ratio, shown};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use study::party::{self, PartySettings, PartySetup};
use study::transport::ServerTransport;
use study::{self, Question, Study, StudyFile};
use terminal::output;
use terminal::progress::Working;

/// Validates this side of a study: the study file, the policy, the program, every row of the data. Sends
/// nothing.
///
/// Given a party file (it has `as` and `data`), everything is checked; given a study file, the study alone.
#[derive(Debug, Args)]
#[command(
    override_usage = "tacit check [OPTIONS] FILE",
    after_help = "Examples:\n  tacit check study.toml\n  tacit check registry.toml\n  tacit check study.toml \
                  --peer-study their-study.toml\n  tacit check registry.toml --data \
                  registry-march.csv --rows 400k,2k --mean 0.0006"
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

/// The JSON of `tacit check --json`.
#[derive(Serialize)]
struct Checked {
    study: Named,
    /// Party name to key.
    parties: BTreeMap<String, String>,
    /// `dp` or `exact`.
    class: &'static str,
    /// Labels of what each viewer is shown.
    revealed: BTreeMap<String, Vec<String>>,
    /// Labels of what a viewer's report computes from these; empty where a program derives nothing.
    derived: BTreeMap<String, Vec<String>>,
    /// What is learned besides, in words: of the match, and what a mode publishes.
    besides: Vec<String>,
    /// Of a program: which rows its folds count.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<String>,
    /// zCDP spent on each viewer.
    rho: BTreeMap<String, f64>,
    plan: Plan,
    /// What reading this party's data did; with a party file only.
    inputs: Option<InputReport>,
    /// What this party should know before it runs.
    warnings: Vec<String>,
    /// What this party's ledger says; with a party file only.
    budget: Option<Outlook>,
    /// Whether this party's policy refused before its data were read.
    #[serde(skip)]
    refused: bool,
    /// Whether the peer's study says the same; with `--peer` only.
    peer_agrees: Option<bool>,
}

#[derive(Serialize)]
struct Named {
    name: String,
    title: String,
    hash: String,
    program: String,
    /// Of several runs, by advertiser: the hash under which each runs, which its reports have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    runs: BTreeMap<String, String>,
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
    let Side { agreed, text, built, inputs, warnings, budget, refused, serves, transport, party } =
        side(&args)?;
    let peer_agrees = args.peer_study.as_deref().map(|peer| compare(&text, peer)).transpose()?;
    if let Some(rows) = args.rows {
        plan::same_rows(agreed.first(), rows)?;
    }
    let link = Link { bits_per_s: 1e10, round_trip_s: 1e-3 };
    let rows = priced_rows(args.rows, inputs.as_ref());
    let outcome = plan::outcome(agreed.first(), args.mean, (inputs.as_ref(), rows[0]));
    let assumed = Assumed { rows, both: None, outcome };
    if let Some(page) = &args.figure {
        plan::figure::write(page, agreed.first(), &assumed, inputs.as_ref())?;
    }
    let mut plan = job::plan::plan_file(&agreed, &assumed, link, Speeds::default())?;
    if let (None, Some(own)) = (args.rows, &inputs) {
        let rows =
            format!("{} of this party's data, and as many of the peer's; else say --rows", own.rows_kept);
        plan.assumptions.insert("rows".to_owned(), rows);
    }
    plan::say_link(&mut plan, link);
    if let Some(transport) = transport {
        plan = plan.over(agreed.first(), &transport, link)?;
    }
    plan.spool.clear();
    if let Some(party) = &party {
        plan = plan.of_party(agreed.first(), party, assumed.rows)?;
    }
    let warnings = warnings.into_iter().chain(placeholders(&agreed)).collect();
    let by_policy = refused.is_some();
    let refused = refused.map_or_else(|| refusal(budget.as_ref()), Err);
    let described = describe(&agreed, &built, plan, inputs, peer_agrees)?;
    let checked = Checked { warnings, budget, refused: by_policy, ..described };
    let file = args.party.as_ref().or(args.file.as_ref());
    let file = file.map_or_else(|| "PARTY_FILE".to_owned(), |file| file.display().to_string());
    match (args.json, refused) {
        // Standard output holds one object: what was found, and the error.
        (true, Err(error)) => Ok(output::fail_with(&error, true, &checked)),
        (true, Ok(())) => output::print_json(&checked).map(|()| ExitCode::SUCCESS),
        (false, refused) => {
            let guessed = args.rows.is_none() && agreed.first().parties.len() == 2;
            output::print(&text::text_of(&checked, (&agreed, &built), &file, (serves, guessed)))?;
            refused.map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Keys in examples, which nobody holds.
const EXAMPLES: [&str; 3] = [
    include_str!("../../../examples/lift.toml"),
    include_str!("../../../examples/program.toml"),
    include_str!("../../../examples/market-p2p.toml"),
];

/// Parties whose keys are still those of an example.
fn placeholders(agreed: &StudyFile) -> Option<String> {
    let servers = agreed.first().servers.iter().flat_map(|servers| &servers.members);
    let all = agreed.parties.iter().map(|member| (&member.name, &member.key));
    let all = all.chain(servers.map(|server| (&server.name, &server.key)));
    let of_example = |key: &str| EXAMPLES.iter().any(|example| example.contains(key));
    let names: Vec<&str> = all.filter(|(_, key)| of_example(key)).map(|(name, _)| &**name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "keys of an example, which nobody holds, stand for {}: put in the lines that `tacit keygen` \
             prints to each",
            names.join(", ")
        )
    })
}

/// What a run would be refused for by this side's own ledger and policy.
fn refusal(budget: Option<&Outlook>) -> Result<(), Error> {
    match budget.map_or(&[][..], |budget| &budget.refusals) {
        [] => Ok(()),
        refusals => Err(Error::refused(refusals.join(". "))),
    }
}

/// Rows to state the price for: those that were asked for, else those of the data that was just read, else a
/// million.
fn priced_rows(asked: Option<[u64; 2]>, inputs: Option<&InputReport>) -> [u64; 2] {
    // An empty file has a price, too; and both sides together stay within what a study may have.
    let own = inputs.map_or(1_000_000, |inputs| inputs.rows_kept.max(1));
    asked.unwrap_or([own, own.min(limits::ROWS.saturating_sub(own))])
}

/// What was read: the whole study, and one program for each of its runs that this side can see.
struct Side {
    agreed: StudyFile,
    text: String,
    built: Vec<Built>,
    inputs: Option<InputReport>,
    warnings: Vec<String>,
    budget: Option<Outlook>,
    /// What this side's policy refuses before its data are read.
    refused: Option<Error>,
    /// Whether this side is a server, which has no data.
    serves: bool,
    /// What this side computes over, if it is one of the four servers.
    transport: Option<ServerTransport>,
    /// This side's own settings; of an owner only.
    party: Option<PartySetup>,
}

/// Everything that this side can check: all of it given a party file or its settings as flags, the study
/// alone given a study file.
fn side(args: &CheckArgs) -> Result<Side, Error> {
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
    alone(StudyFile::parse(&file.display().to_string(), &text)?, text)
}

/// A study by itself. Nobody's policy is at hand: every well-formed program passes.
fn alone(agreed: StudyFile, text: String) -> Result<Side, Error> {
    let policy = program::VerifierPolicy {
        max_rho: ratio(u128::from(study::MAX_RHO), 1),
        max_outputs: usize::MAX,
        allow_exact: true,
    };
    let built = build_all(&agreed.runs, &policy)?.into_iter().map(|(_, built)| built).collect();
    let (inputs, warnings, budget, transport, party) = (None, Vec::new(), None, None, None);
    let (refused, serves) = (None, false);
    Ok(Side { agreed, text, built, inputs, warnings, budget, refused, serves, transport, party })
}

fn whole(settings: PartySettings, said: ConsentArgs) -> Result<Side, Error> {
    if let Some(side) = server(&settings)? {
        return Ok(side);
    }
    let party = PartySetup { consent: said.into(), ..settings.complete()? };
    let working = Working::on(format!("reading {}", party.data.display()));
    let opened = Opened::of(&party)?;
    let checked = prepare::check(&party, &opened);
    drop(working);
    let checked = match checked {
        Err(refused) if matches!(refused.kind(), Fault::Refused(_)) => {
            // Whoever is to change the policy, or the study, reads what it is about.
            let Opened { file, text, .. } = opened;
            return match alone(file, text) {
                Ok(side) => Ok(Side { refused: Some(refused), ..side }),
                Err(_) => Err(refused),
            };
        }
        checked => checked?,
    };
    let Opened { file: agreed, text, .. } = opened;
    let budget = Some(budget::outlook(&party, &checked)?);
    let inputs = checked.first().map(|run| run.inputs.clone());
    let mut warnings = checked.first().map(|run| run.warnings.clone()).unwrap_or_default();
    if said.spend_anyway {
        warnings.extend(checked.first().into_iter().flat_map(|run| run.too_small.clone()));
    }
    let transport = agreed.server(&party.as_party).map(|_| party.transport.clone());
    let built = checked.into_iter().map(|run| run.built).collect();
    let (party, refused, serves) = (Some(party), None, false);
    Ok(Side { agreed, text, built, inputs, warnings, budget, refused, serves, transport, party })
}

/// What a server can check: the study that it is to compute, and that it is the one named there. Nothing for
/// an owner.
fn server(settings: &PartySettings) -> Result<Option<Side>, Error> {
    let Some(path) = settings.common.study.clone().or_else(|| settings.studies.first().cloned()) else {
        return Ok(None);
    };
    if settings.data.is_some() {
        return Ok(None);
    }
    let (file, text) = StudyFile::read(&path)?;
    if !settings.serves(file.first()) {
        return Ok(None);
    }
    let node = settings.clone().complete_node()?;
    node.admit(file.first())?;
    let Opened { file: agreed, text, .. } = Opened::new((file, text), &node.name, &node.identity)?;
    Ok(Some(Side { serves: true, transport: Some(node.transport), ..alone(agreed, text)? }))
}

/// Refuses a party file where a study file is expected.
///
/// # Errors
/// When it is one.
pub fn expect_study(path: &Path) -> Result<(), Error> {
    match std::fs::read_to_string(path) {
        Ok(text) if party::is_party_file(&text) => Err(no_study(path)),
        _ => Ok(()),
    }
}

fn no_study(path: &Path) -> Error {
    Error::input(format!(
        "{} is a party file; a study file is expected here: name the one after `study` in it",
        path.display()
    ))
}

/// Whether the peer's study says the same as ours.
fn compare(mine: &str, peer: &Path) -> Result<bool, Error> {
    let (shown, theirs) = (peer.display(), study::read_text(peer)?);
    if party::is_party_file(&theirs) {
        return Err(no_study(peer));
    }
    match study::first_difference(mine, &theirs) {
        None => Ok(true),
        Some(d) => Err(Error::input(format!(
            "the two studies differ first in line {}, {}: here `{}`, in {shown} `{}`; agree on one file",
            d.line, d.setting, d.mine, d.theirs
        ))),
    }
}

fn describe(
    agreed: &StudyFile,
    built: &[Built],
    plan: Plan,
    inputs: Option<InputReport>,
    peer_agrees: Option<bool>,
) -> Result<Checked, Error> {
    let Some(first) = built.first() else { return Err(Error::misuse("a party takes part in a run")) };
    let mut revealed: BTreeMap<String, Vec<String>> =
        agreed.parties.iter().map(|m| (m.name.clone(), Vec::new())).collect();
    let study = agreed.first();
    let mut derived: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Built { program, .. } in built {
        for one in &program.derived {
            derived.entry(viewer_name(program, one.to)).or_default().push(one.label.clone());
        }
        let outputs = program.outputs.iter().map(|output| (output.to, output.label.clone()));
        let list = |list: &program::List| (list.to.into(), format!("which rows: {}", list.label));
        for (to, label) in outputs.chain(program.lists.iter().map(list)) {
            let labels = revealed.entry(viewer_name(program, to)).or_default();
            // Every run of a publisher shows it the same fields.
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
    let named = Named {
        name: study.name.clone(),
        title: study.title.clone(),
        hash: agreed.hash().full(),
        program: base::hex(&first.program.hash()),
        runs: run_hashes(agreed),
    };
    Ok(Checked {
        study: named,
        parties: agreed.parties.iter().map(|m| (m.name.clone(), m.key.clone())).collect(),
        class: if first.program.class == Class::Dp { "dp" } else { "exact" },
        revealed,
        derived,
        besides: besides(study, first),
        rows: matches!(study.kind, Question::Program(_)).then(|| rows(&first.program)),
        rho: plan.rho.clone(),
        plan,
        inputs,
        warnings: Vec::new(),
        budget: None,
        refused: false,
        peer_agrees,
    })
}

fn viewer_name(program: &Program, to: Viewer) -> String {
    to.only().map_or("everybody", |_| to.name(&program.parties)).to_owned()
}

/// Under which hash each of several runs stands in reports, by advertiser.
fn run_hashes(agreed: &StudyFile) -> BTreeMap<String, String> {
    let several = agreed.runs.iter().filter(|run| run.part_of.is_some());
    several.map(|run| (run.parties[1].name.clone(), run.hash().full())).collect()
}

/// What is learned besides the result of a run.
fn besides(study: &Study, built: &Built) -> Vec<String> {
    let mut all = vec![study.matching.tells(&study.parties[0].name) + &sizes_cost(study)];
    if built.lift.as_ref().is_some_and(|(_, layout)| layout.published.is_some()) {
        all.push(format!(
            "everybody learns how many rows the test and the control arm have, EXACTLY: mode \"{}\" \
             publishes \
             them, and no noise and no charge covers that",
            built.lift.as_ref().map_or("", |(lift, _)| lift.mode.name())
        ));
    }
    all
}

/// What the sizes of a match cost each party in all, beside the epsilon of one number among them.
fn sizes_cost(study: &Study) -> String {
    let cost = |party: usize| {
        let charge = privacy::dummies::charge(study, PartyId(party as u8)).ok().flatten()?;
        Some(format!("epsilon {} and rho {}", shown(&charge.epsilon), shown(&charge.rho)))
    };
    let costs: Vec<(&str, String)> = (0..study.parties.len())
        .filter_map(|party| Some((study.parties[party].name.as_str(), cost(party)?)))
        .collect();
    let Some((_, first)) = costs.first() else { return String::new() };
    let each = match costs.iter().all(|(_, cost)| cost == first) {
        true => format!("each party {first}"),
        false => costs.iter().map(|(name, cost)| format!("{name} {cost}")).collect::<Vec<_>>().join(", "),
    };
    format!(
        ". That epsilon is of a number that changes by one; all sizes together, by as much as one row can \
         change them, cost {each} (`dummies` in reports)"
    )
}

/// How rows that some party does not have enter a program: derived from it, not read.
fn rows(program: &Program) -> String {
    if program.rows == RowSet::Aligned {
        return "those of the list that all parties have".to_owned();
    }
    let parties = || (0..program.parties.len() as u8).map(PartyId);
    let mut by_demand: Vec<(Owners, Vec<String>)> = Vec::new();
    for (fold, demands) in (0..).zip(program.fold_demands()) {
        let name = program.names.fold_name(fold);
        match by_demand.iter_mut().find(|(known, _)| *known == demands) {
            Some((_, folds)) => folds.push(name),
            None => by_demand.push((demands, vec![name])),
        }
    }
    let all = Owners::all(program.parties.len());
    if by_demand.iter().all(|(demands, _)| *demands == all) {
        return "those that all parties have".to_owned();
    }
    let counted = by_demand.iter().map(|(demands, folds)| {
        let (folds, s) = (folds.join(", "), if folds.len() == 1 { "s" } else { "" });
        let having: Vec<&str> =
            parties().filter(|p| demands.has(*p)).map(|p| &*program.parties[p.index()]).collect();
        match having.as_slice() {
            [] => format!("{folds} count{s} rows of anybody, made-up ones included"),
            [party] => format!("{folds} count{s} rows that {party} has, the others or not"),
            _ if *demands == all => format!("{folds} count{s} rows that all parties have"),
            several => format!("{folds} count{s} rows that {} have", several.join(" and ")),
        }
    });
    format!("of any party; {}", counted.collect::<Vec<_>>().join("; "))
}

//! What a check says of a study: of one side with its policy, its data and its ledger, or of the study alone.
//! `tacit check` and the Python package show it.

use crate::budget::{self, Outlook};
use crate::devices::{self, FoundDevice};
use crate::engines::StudyEngine;
use crate::folders;
use crate::plan::{self, Assumed, Compared, FewLeftOut, Link, OutcomeGuess, Plan, Speeds};
use crate::prepare::{self, Built, Opened, build_all};
use base::{Error, Fault, PartyId, limits};
use data::InputReport;
use program::{Class, Owners, Program, RowSet, Viewer};
use release::rational::{ratio, shown};
use serde::Serialize;
use std::collections::BTreeMap;
use study::party::{PartySettings, PartySetup};
use study::transport::ServerTransport;
use study::{PartyRole, Question, Study, StudyFile};

/// What a check says: the JSON of `tacit check --json`.
#[derive(Serialize)]
pub struct CheckReport {
    /// The study.
    pub study: StudyNames,
    /// Party name to key.
    pub parties: BTreeMap<String, String>,
    /// `dp` or `exact`.
    pub class: &'static str,
    /// Labels of what each viewer is shown.
    pub revealed: BTreeMap<String, Vec<String>>,
    /// Labels of what a viewer's report computes from these; empty where a program derives nothing.
    pub derived: BTreeMap<String, Vec<String>>,
    /// What is learned besides, in words: of the match, and what a mode publishes.
    pub besides: Vec<String>,
    /// Of a program: which rows its folds count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// zCDP spent on each viewer.
    pub rho: BTreeMap<String, f64>,
    /// What it costs.
    pub plan: Plan,
    /// What reading this party's data did; with a party file only.
    pub inputs: Option<InputReport>,
    /// What this party should know before it runs.
    pub warnings: Vec<String>,
    /// What this party's ledger says; with a party file only.
    pub budget: Option<Outlook>,
    /// Whether a lift study would show nobody anything of the rows that are supposed: arms are too small.
    #[serde(skip)]
    pub shows_nothing: bool,
    /// Whether this party's policy refused before its data were read.
    #[serde(skip)]
    pub refused: bool,
    /// Whether the peer's study says the same; with `--peer` only.
    pub peer_agrees: Option<bool>,
}

/// The study, by name and by hash.
#[derive(Serialize)]
pub struct StudyNames {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Its hash in full.
    pub hash: String,
    /// The hash of its program, of the first run.
    pub program: String,
    /// Of several runs, by advertiser: the hash under which each runs, which its reports have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<String, String>,
}

/// What was read: the whole study, and one program for each of its runs that this side can see.
pub struct CheckedSide {
    /// All that is agreed on.
    pub agreed: StudyFile,
    /// Its text.
    pub text: String,
    /// One for each run that this side can see.
    pub built: Vec<Built>,
    /// What reading this side's data did.
    pub inputs: Option<InputReport>,
    warnings: Vec<String>,
    budget: Option<Outlook>,
    /// What this side's policy refuses before its data are read.
    refused: Option<Error>,
    /// Whether this side is a server, which has no data.
    pub serves: bool,
    /// What this side computes over, if it is one of the four servers.
    transport: Option<ServerTransport>,
    /// What computes then, in words.
    device: Option<FoundDevice>,
    /// This side's own settings; of an owner only.
    pub party: Option<PartySetup>,
}

/// For which sizes a check states the price.
#[derive(Clone, Debug, Default)]
pub struct CheckSizes {
    /// Rows per side; none: those of this side's data, or a million for a study alone.
    pub rows: Option<[u64; 2]>,
    /// The control arm's mean outcome per person, as somebody guesses it.
    pub mean: Option<f64>,
    /// Other clamps of a lift study to try, in the unit of outcomes.
    pub clamps: Vec<f64>,
    /// Nobody asks what other engines would take.
    pub without_engines: bool,
    /// What is said of these rows where nobody types flags: which they are and who knows them.
    pub supposed: Option<String>,
}

/// What was found of a side, and what of it is shown.
pub struct SideReport {
    /// What a check says.
    pub report: CheckReport,
    /// All that is agreed on.
    pub agreed: StudyFile,
    /// One for each run that this side can see.
    pub built: Vec<Built>,
    /// Whether this side is a server.
    pub serves: bool,
    /// What a run would be refused for.
    pub refused: Result<(), Error>,
}

impl CheckedSide {
    /// A study by itself. Nobody's policy is at hand: every well-formed program passes.
    ///
    /// # Errors
    /// When its program does not parse, or does what no policy allows.
    pub fn of_study(agreed: StudyFile, text: String) -> Result<Self, Error> {
        let policy = program::VerifierPolicy {
            max_rho: ratio(u128::from(study::MAX_RHO), 1),
            max_outputs: prepare::OUTPUTS,
            allow_exact: true,
        };
        let built: Vec<Built> =
            build_all(&agreed.runs, &policy)?.into_iter().map(|(_, built)| built).collect();
        let warnings = unrevealed(built.iter());
        let (inputs, budget, transport, party) = (None, None, None, None);
        let (refused, serves, device) = (None, false, None);
        Ok(Self { agreed, text, built, inputs, warnings, budget, refused, serves, transport, device, party })
    }

    /// A party, with its policy, its ledger and its data.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn of_party(party: PartySetup, opened: Opened) -> Result<Self, Error> {
        folders::expect_folders(&party)?;
        let checked = match prepare::check(&party, &opened) {
            Err(refused) if matches!(refused.kind(), Fault::Refused(_)) => {
                // Whoever is to change the policy, or the study, reads what it is about.
                let Opened { file, text, .. } = opened;
                return match Self::of_study(file, text) {
                    Ok(side) => Ok(Self { refused: Some(refused), ..side }),
                    Err(_) => Err(refused),
                };
            }
            checked => checked?,
        };
        let budget = Some(budget::outlook(&party, &checked)?);
        let inputs = checked.first().map(|run| run.inputs.clone());
        let mut warnings = checked.first().map(|run| run.warnings.clone()).unwrap_or_default();
        warnings.extend(inputs.as_ref().and_then(no_events));
        if party.consent.spend_anyway {
            warnings.extend(checked.first().into_iter().flat_map(|run| run.too_small.clone()));
        }
        let Opened { file: agreed, text, stream, .. } = opened;
        let transport = agreed.server(&party.as_party).map(|_| party.transport.clone());
        let device = checked.first().and_then(|run| run.device.clone());
        let built = checked.into_iter().map(|run| run.built).collect();
        // A stream lies on no disk: nobody knows what passes over it take.
        let (party, refused, serves) = (stream.is_none().then_some(party), None, false);
        Ok(Self { agreed, text, built, inputs, warnings, budget, refused, serves, transport, device, party })
    }

    /// What a server can check: the study that it is to compute, and that it is the one named there. Nothing
    /// for an owner.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn of_server(settings: &PartySettings) -> Result<Option<Self>, Error> {
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
        let side = Self::of_study(agreed, text)?;
        let program = side.built.first().map(|built| &built.program);
        let engine = program.map(|program| StudyEngine::of(side.agreed.first(), program)).transpose()?;
        let device = engine.map(|engine| devices::find(node.device, &engine)).transpose()?;
        Ok(Some(Self { serves: true, transport: Some(node.transport), device, ..side }))
    }

    /// What the price is stated for.
    ///
    /// # Errors
    /// When rows differ where every party has the same.
    pub fn assumed(&self, sizes: &CheckSizes) -> Result<Assumed, Error> {
        let study = self.agreed.first();
        if let Some(rows) = sizes.rows {
            plan::same_rows(study, rows)?;
        }
        let rows = priced_rows(sizes.rows, self.own_rows(), arms(study));
        let told = sizes.mean.map(OutcomeGuess::told);
        let outcome = told.or_else(|| OutcomeGuess::of(study, self.inputs.as_ref(), rows[0]));
        Ok(Assumed { rows, both: None, outcome })
    }

    /// Identifiers of this side's data, and whether it is a lift study's advertiser.
    fn own_rows(&self) -> Option<(u64, bool)> {
        let me = self.party.as_ref().and_then(|party| self.agreed.member(&party.as_party));
        let advertises = me.is_some_and(|member| member.role == PartyRole::Advertiser);
        Some((self.inputs.as_ref()?.rows_kept, advertises))
    }

    /// What a plan supposes of the other side where nobody says its rows.
    fn supposed(&self, rows: [u64; 2]) -> Option<String> {
        let Some((own, advertises)) = self.own_rows() else {
            let (each, parties) = (page::numbers::count(rows[0]), self.agreed.first().parties.len());
            let said = if parties == 2 { "--rows N,M" } else { "--rows N" };
            return Some(format!("{each} of each party, as nobody says how many; {said} says them"));
        };
        let kept = page::numbers::count(own);
        Some(match (advertises, arms(self.agreed.first())) {
            (false, _) => format!("{kept} of this party's data, and as many of the peer's; else say --rows"),
            (true, 2) => format!(
                "everybody of this party's file is in the trial, {kept} people, half in each arm; --rows \
                 N,{own} says the people N of the publisher"
            ),
            (true, arms) => format!(
                "everybody of this party's file is in the trial, {kept} people. The study leaves out {}, \
                 and nobody here knows how many people have them: if each is an arm as large as the two that \
                 are compared, {} people are in these; --rows N,{own} says the people N of the publisher in \
                 the two",
                page::numbers::counted(arms - 2, "label"),
                page::numbers::count(rows[0])
            ),
        })
    }

    /// What the effect would be if hardly anybody had the labels that the study leaves out; nothing where
    /// rows are told, or none is left out.
    fn few_left_out(&self, sizes: &CheckSizes) -> Option<FewLeftOut> {
        let ([study], None) = (&self.agreed.runs[..], sizes.rows) else { return None };
        let (own, _) = self.own_rows().filter(|(_, advertises)| *advertises && arms(study) > 2)?;
        let rows = priced_rows(None, Some((own, true)), 2);
        let told = sizes.mean.map(OutcomeGuess::told);
        let outcome = told.or_else(|| OutcomeGuess::of(study, self.inputs.as_ref(), rows[0]))?;
        let effect = plan::effect_at(study, rows, &outcome).ok()?;
        Some(FewLeftOut { rows: rows[0], effect })
    }

    /// What it all comes to. `peer_agrees` says whether the peer's study says the same, where it is known.
    ///
    /// # Errors
    /// When the study has no price for these sizes.
    pub fn report(self, sizes: &CheckSizes, peer_agrees: Option<bool>) -> Result<SideReport, Error> {
        let assumed = self.assumed(sizes)?;
        let supposed = match &sizes.supposed {
            None => self.supposed(assumed.rows).filter(|_| sizes.rows.is_none()),
            said => said.clone(),
        };
        let few_left_out = self.few_left_out(sizes);
        let Self {
            agreed, built, inputs, warnings, budget, refused, serves, transport, device, party, ..
        } = self;
        let link = Link { bits_per_s: 1e10, round_trip_s: 1e-3 };
        // A party of several runs may see some of them alone, and the price is that of all.
        let compared = if sizes.without_engines { Compared::Nothing } else { Compared::Engines };
        let mut plan = match built.len() == agreed.runs.len() {
            true => {
                let runs: Vec<_> = agreed.runs.iter().zip(&built).collect();
                plan::plan_runs(&runs, &assumed, (link, Speeds::default()), compared)?
            }
            false => plan::plan_file(&agreed, &assumed, link, Speeds::default())?,
        };
        plan.try_clamps(&agreed, &assumed, inputs.as_ref(), &sizes.clamps)?;
        plan.few_left_out = few_left_out;
        if let Some(rows) = supposed {
            plan.assumptions.insert("rows".to_owned(), rows);
        }
        plan.say_link(link);
        if let Some(transport) = transport {
            plan = plan.over(agreed.first(), &transport, link)?;
        }
        plan.assumptions.extend(device.iter().flat_map(FoundDevice::assumptions));
        plan.spool.clear();
        if let Some(party) = &party {
            plan = plan.of_party(agreed.first(), party, assumed.rows)?;
        }
        let warnings = warnings.into_iter().chain(placeholders(&agreed)).collect();
        let by_policy = refused.is_some();
        let refused = refused.map_or_else(|| refusal(budget.as_ref()), Err);
        let described = describe(&agreed, &built, plan, inputs, peer_agrees)?;
        let shows_nothing = shows_nothing(&agreed, assumed.rows[0], &described.plan);
        let report = CheckReport { warnings, budget, shows_nothing, refused: by_policy, ..described };
        Ok(SideReport { report, agreed, built, serves, refused })
    }
}

/// Keys in examples, which nobody holds.
const EXAMPLES: [&str; 3] = [
    include_str!("../../../examples/lift.toml"),
    include_str!("../../../examples/program.toml"),
    include_str!("../../../examples/market-p2p.toml"),
];

/// Parties whose keys are still those of an example.
pub fn placeholders(agreed: &StudyFile) -> Option<String> {
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

/// What is paid for noise that nobody sees.
pub(crate) fn unrevealed<'a>(built: impl IntoIterator<Item = &'a Built>) -> Vec<String> {
    let mut all: Vec<String> = built.into_iter().flat_map(unrevealed_of).collect();
    all.dedup();
    all
}

fn unrevealed_of(Built { program, audit, .. }: &Built) -> Vec<String> {
    let told = |mechanism: u32| {
        let charge = &audit.charges[mechanism as usize];
        format!(
            "the program reveals nothing of the noised sums {}, which cost rho {} of what {} may see: reveal \
             them, or take them out, as they are charged all the same",
            program.names.mechanism(mechanism),
            shown(&charge.rho),
            viewer_name(program, charge.to)
        )
    };
    program.unrevealed().into_iter().map(told).collect()
}

/// What a run would be refused for by this side's own ledger and policy.
fn refusal(budget: Option<&Outlook>) -> Result<(), Error> {
    match budget.filter(|budget| !budget.refusals.is_empty()) {
        None => Ok(()),
        Some(Outlook { refusals, shortfall, .. }) => {
            Err(Error::refused(refusals.join(". ")).falling_short(shortfall.clone()))
        }
    }
}

/// Whether nothing would be released of so many people of the publisher.
fn shows_nothing(agreed: &StudyFile, people: u64, plan: &Plan) -> bool {
    let Question::Lift(lift) = &agreed.first().kind else { return false };
    let stated = plan.minimum_detectable_effect.or(plan.public_effect).is_some();
    let small = people / 2 < lift.release.minimum_group;
    !stated && (small || plan.assumptions.contains_key("effect"))
}

/// Arms of the trial, those that are left out among them.
fn arms(study: &Study) -> u64 {
    match &study.kind {
        Question::Lift(lift) => 2 + lift.publisher.leave_out.len() as u64,
        _ => 2,
    }
}

/// Rows of publisher and advertiser, where nobody says them and the advertiser's are so many.
pub(crate) fn advertisers_rows(study: &Study, own: u64) -> [u64; 2] {
    priced_rows(None, Some((own, true)), arms(study))
}

/// Rows to state the price for: those that were asked for, else those of the data that was just read, else a
/// million. An advertiser's people are taken to be in all arms alike, of which the publisher enters two.
fn priced_rows(asked: Option<[u64; 2]>, own: Option<(u64, bool)>, arms: u64) -> [u64; 2] {
    // An empty file has a price, too; and both sides together stay within what a study may have.
    let (own, advertises) = own.unwrap_or((1_000_000, false));
    let own = own.max(1);
    let first = if advertises { (own * 2 / arms).max(1) } else { own };
    asked.unwrap_or([first, own.min(limits::ROWS.saturating_sub(first))])
}

fn describe(
    agreed: &StudyFile,
    built: &[Built],
    plan: Plan,
    inputs: Option<InputReport>,
    peer_agrees: Option<bool>,
) -> Result<CheckReport, Error> {
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
    let named = StudyNames {
        name: study.name.clone(),
        title: study.title.clone(),
        hash: agreed.hash().full(),
        program: base::hex(&first.program.hash()),
        runs: run_hashes(agreed),
    };
    Ok(CheckReport {
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
        shows_nothing: false,
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

/// That nobody of an advertiser's data has an event: the result would be noise alone.
fn no_events(inputs: &InputReport) -> Option<String> {
    let InputReport { rows_read, rows_kept, filtered, without_events, .. } = *inputs;
    if rows_kept == 0 || without_events < rows_kept {
        return None;
    }
    let rows = page::numbers::count(rows_read);
    let why = match filtered {
        0 => format!("none of the {rows} rows has an event"),
        _ if filtered == rows_read => format!("`where` passes none of the {rows} rows"),
        _ => format!("of {rows} rows none that `where` passes has an event"),
    };
    Some(format!(
        "{why}: the result would be noise, and be charged all the same; look at the column and its values"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_without_an_event_are_warned_of() {
        let of = |rows_read, filtered, without_events| InputReport {
            rows_read,
            rows_kept: 4000,
            filtered,
            without_events,
            ..InputReport::default()
        };
        assert_eq!([of(5000, 5000, 3999), of(5000, 0, 0)].iter().find_map(no_events), None);
        assert_eq!(no_events(&InputReport::default()), None);
        let all = no_events(&of(5000, 5000, 4000)).unwrap();
        assert!(all.starts_with("`where` passes none of the 5,000 rows: the result would be noise"), "{all}");
        assert!(no_events(&of(5000, 0, 4000)).unwrap().starts_with("none of the 5,000 rows has an event"));
    }

    /// A forgotten `reveal` is charged: whoever checks is told, with the place in the program.
    #[test]
    fn noise_that_nobody_sees_is_warned_of() {
        let text = include_str!("../../../examples/program.toml");
        let warnings = |text: &str| {
            let study = StudyFile::parse("study.toml", text).unwrap_or_else(|e| panic!("{e}"));
            let side = CheckedSide::of_study(study, text.to_owned()).unwrap_or_else(|e| panic!("{e}"));
            side.warnings
        };
        let without = |line: &str, text: &str| {
            assert!(text.contains(line), "{line}");
            text.replace(line, "")
        };
        let none: [&str; 0] = [];
        assert_eq!(warnings(text), none);
        // Half of them is something.
        let half = without("reveal n2 clinic \"healthy\"\n", text);
        assert_eq!(warnings(&half), none);
        let nothing = without("reveal n3 clinic \"ill\"\n", &half);
        let told = "the program reveals nothing of the noised sums all (line 27, column 1), which cost rho \
                    0.05 of what clinic may see: reveal them, or take them out, as they are charged all the \
                    same";
        assert_eq!(warnings(&nothing), [told]);
    }
}

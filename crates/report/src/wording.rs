//! The words and numbers of a result, shared by the terminal summary and the page: one scale, one noun and
//! one sentence for both, so that they cannot disagree.
//!
//! Numbers are written in ASCII here; the page puts in typographic minus signs.

mod derived;
mod meetings;
#[cfg(test)]
mod tests;
mod told;

pub use derived::{
    BEHIND, DerivedGroup, DerivedNumber, alike_in_words, behind, covered, cut, derived_groups,
    is_needed_to_treat, is_ratio, level, sums_in_words, sums_told,
};
pub use meetings::{all_before, before, failed_units, peaks, resumed};
pub use told::{
    amount, disclosed_match, ends_beyond, input_lines, lost_in_noise, made_up_rows, means_beyond,
    multiplicity, negative_numbers, no_relative, noise_alone, numbers_told, own_match, unit_of,
    values_released, whose_means, without_made_up,
};

use crate::summary::has_exact_numbers;
use crate::{
    CellView, Disclosure, LiftView, Privacy, ProgramOutput, PublicTerms, ResultView, RunReport, SpentBy,
};
use base::clean;
use page::numbers;
use page::numbers::{MISSING, fixed, scientific};
use privacy::PrivacyTotal;
use privacy::dummies::MatchLeakage;
use release::modes::LiftEstimate;
use std::collections::{BTreeMap, BTreeSet};

/// Longest label that is put into a sentence or a figure; tables of the page show more.
pub const LABEL_CHARS: usize = 40;
/// Longest engine with its settings: all that there are, whole.
const ENGINE_CHARS: usize = 120;
/// More decimals than this are written as a power of ten.
const MOST_DECIMALS: i32 = 6;
/// Digits that the half-width of the overall interval gets.
const WIDTH_DIGITS: i32 = 3;

/// What a mean is shown in: per how many people, and with how many decimals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanScale {
    /// 1, 1,000 or 100,000 people.
    people: u32,
    /// None: powers of ten.
    decimals: Option<usize>,
}

impl MeanScale {
    /// One scale for all cells of all views, so that they can be compared at a glance. The rates decide how
    /// many people, the width of the intervals how many decimals.
    pub fn of<'a>(views: impl IntoIterator<Item = &'a LiftView>) -> Self {
        let (mut size, mut width, mut is_people) = (0.0f64, 0.0f64, true);
        for view in views {
            is_people = counts_people(view);
            for estimate in leading_estimates(view) {
                size = size.max(magnitude(estimate));
                width = width.max(finite(0.5 * (estimate.interval[1] - estimate.interval[0])));
            }
        }
        Self::of_sizes(size, width, is_people)
    }

    /// The same of the largest difference or mean and the widest half of an interval; `is_people`: an outcome
    /// is yes or no for one person.
    #[must_use]
    pub fn of_sizes(size: f64, width: f64, is_people: bool) -> Self {
        // An amount of money reads well per person even when it is a fraction.
        let people_least = if is_people { 1.0 } else { 0.1 };
        let people = match size {
            size if size >= people_least => 1,
            size if size >= 0.01 || size == 0.0 => 1_000,
            _ => 100_000,
        };
        let shown = f64::from(people) * if width > 0.0 { width } else { size };
        let decimals = if shown > 0.0 { WIDTH_DIGITS - 1 - shown.log10().floor() as i32 } else { 1 };
        let decimals = (decimals <= MOST_DECIMALS).then_some(decimals.max(0) as usize);
        Self { people, decimals }
    }

    /// The mean in this scale, as a number for a figure.
    pub fn value(&self, mean: f64) -> f64 {
        mean * f64::from(self.people)
    }

    /// The mean in this scale, for a reader.
    pub fn show(&self, mean: f64) -> String {
        let value = self.value(mean);
        match self.decimals {
            Some(decimals) => fixed(value, decimals),
            None if value == 0.0 => "0".to_owned(),
            None => scientific(value),
        }
    }

    /// `[low, high]`.
    pub fn interval(&self, [low, high]: [f64; 2]) -> String {
        format!("[{}, {}]", self.show(low), self.show(high))
    }

    /// `per 100,000 people`.
    pub fn per(&self) -> &'static str {
        match self.people {
            1 => "per person",
            1_000 => "per 1,000 people",
            _ => "per 100,000 people",
        }
    }
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn magnitude(estimate: &LiftEstimate) -> f64 {
    let means = estimate.rates.map_or([0.0; 2], |rates| rates.map(|rate| finite(rate.mean).abs()));
    let [test, control] = means;
    finite(estimate.lift).abs().max(test).max(control)
}

/// The overall estimate; without one, those of all cells.
fn leading_estimates(view: &LiftView) -> Vec<&LiftEstimate> {
    match overall(view).and_then(|cell| cell.estimate.as_ref()) {
        Some(estimate) => vec![estimate],
        None => view.cells.iter().filter_map(|cell| cell.estimate.as_ref()).collect(),
    }
}

/// The cell of all people.
pub fn overall(view: &LiftView) -> Option<&CellView> {
    view.cells.iter().find(|cell| cell.family == "overall")
}

/// Whether the outcome is yes or no for one person.
fn counts_people(view: &LiftView) -> bool {
    view.clamp == 1 && view.unit.is_none() && view.scale == 1
}

/// A number of whole parts of a unit, shown in the unit: `12.50` of 1,250 parts of which 100 are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitAmount {
    /// How many parts.
    pub parts: u64,
    /// How many make one: a power of ten.
    pub scale: u32,
}

impl std::fmt::Display for UnitAmount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scale = u64::from(self.scale.max(1));
        f.write_str(&numbers::count(self.parts / scale))?;
        match self.parts % scale {
            0 => Ok(()),
            rest => write!(f, ".{rest:0>width$}", width = scale.ilog10() as usize),
        }
    }
}

/// Most that one person adds: `1`, `200 EUR`.
pub fn clamp(view: &LiftView) -> String {
    in_unit(UnitAmount { parts: view.clamp, scale: view.scale }, view.unit.as_deref())
}

/// An amount with its unit, if it has one.
pub fn in_unit(amount: UnitAmount, unit: Option<&str>) -> String {
    unit.map_or_else(|| amount.to_string(), |unit| format!("{amount} {}", label(unit)))
}

/// What numbers as released count, where that is not the unit.
pub fn parts(view: &LiftView) -> Option<String> {
    let unit = view.unit.as_deref().map_or_else(|| "unit".to_owned(), label);
    (view.scale > 1).then(|| format!("Values as released count 1/{} of a {unit}.", view.scale))
}

/// What is counted: `cases`, `conversions`, the unit of the values, or `value`.
pub fn noun(view: &LiftView) -> String {
    match &view.unit {
        Some(unit) => label(unit),
        None if view.clamp > 1 || view.scale > 1 => "value".to_owned(),
        None if view.lower_is_better => "cases".to_owned(),
        None => "conversions".to_owned(),
    }
}

/// `cases per 100,000 people`.
pub fn quantity_title(view: &LiftView, scale: &MeanScale) -> String {
    format!("{} {}", noun(view), scale.per())
}

/// `fewer` or `more` of what is counted, `lower` or `higher` of what is measured.
fn direction(view: &LiftView, difference: f64) -> &'static str {
    match (counts_people(view), difference < 0.0) {
        (true, true) => "fewer",
        (true, false) => "more",
        (false, true) => "lower",
        (false, false) => "higher",
    }
}

/// `72 % fewer`.
pub fn relative(view: &LiftView, relative: f64) -> String {
    format!("{} {}", numbers::percent(relative.abs()), direction(view, relative))
}

/// The sizes that a match told, for the guarantee: `11 rows, 7 rows, 13 in the union, hence 5 matched`.
pub fn sizes(disclosed: &Disclosure) -> String {
    let count = numbers::count;
    let rows: Vec<String> = disclosed.rows.iter().map(|&rows| format!("{} rows, ", count(rows))).collect();
    let rest = match disclosed.size_hidden {
        true => match counter(disclosed) {
            None => "and nobody learnt how many matched".to_owned(),
            Some(to) => format!("and {} alone learnt how many matched", label(to)),
        },
        false => {
            let hence =
                disclosed.matched().map_or(String::new(), |rows| format!(", hence {} matched", count(rows)));
            format!("{} in the union{hence}", count(disclosed.union))
        }
    };
    rows.concat() + &rest
}

/// Who counted the matches, where not everybody learnt their number: the party that saw their graph.
pub fn counter(disclosed: &Disclosure) -> Option<&str> {
    disclosed.uncovered.iter().find_map(|told| match told {
        MatchLeakage::MatchGraph { to } => Some(to.as_str()),
        _ => None,
    })
}

/// What covers the sizes, where made-up rows hide the exact ones.
pub fn hidden(disclosed: &Disclosure) -> Option<String> {
    let dummies = disclosed.dummies.as_ref()?;
    let mut except: Vec<String> = disclosed.uncovered.iter().map(uncovered).collect();
    if disclosed.published_groups.is_some() {
        except.push("the published group sizes".to_owned());
    }
    let except = if except.is_empty() { String::new() } else { format!(", except {}", except.join(", ")) };
    let when = match (disclosed.kept_spine, disclosed.resumed) {
        (true, _) => "when the spine was made",
        (false, true) => "when the rows were matched, before this run broke off",
        (false, false) => "by this match",
    };
    Some(format!(
        "The sizes that were disclosed ({}) have made-up rows in them, a secret number by each party. These \
         sizes are covered{except}: this party's ledger was charged rho {} and delta {} for its own {when}, \
         towards each other party.",
        sizes(disclosed),
        dummies.rho,
        numbers::power(&dummies.delta)
    ))
}

/// The same, of all: `the match graph that shop learnt`; nothing where everything is covered.
pub fn not_covered(disclosed: &Disclosure) -> Option<String> {
    let told: Vec<String> = disclosed.uncovered.iter().map(uncovered).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// What a match told that nothing covers, in a few words.
fn uncovered(told: &MatchLeakage) -> String {
    match told {
        MatchLeakage::MatchGraph { to } => format!("the match graph that {} learnt", label(to)),
        MatchLeakage::ArmSizes => "the sizes of both arms".to_owned(),
        MatchLeakage::Overlaps { to } => format!("the overlaps that {} counted", label(to)),
    }
}

/// What a match told besides sizes, whoever reads it.
pub fn who_learnt(disclosed: &Disclosure) -> impl Iterator<Item = String> {
    let sentence = |told: &MatchLeakage| match told {
        MatchLeakage::MatchGraph { to } => format!(
            "{} also learnt which of its rows share identifiers with which rows of the other party, in \
             orders that hide whose rows they are. No noise covers this graph.",
            label(to)
        ),
        MatchLeakage::ArmSizes => {
            "The advertiser also learnt how many rows each arm has, exactly: a row that changes arm alone \
             shows."
                .to_owned()
        }
        MatchLeakage::Overlaps { to } => {
            format!("{} also counted the rows that each set of parties has in common, exactly.", label(to))
        }
    };
    disclosed.uncovered.iter().map(sentence)
}

/// What party 0 alone counts where more than two parties are matched; nothing elsewhere. `first` is its name.
pub fn overlaps(disclosed: &Disclosure, first: &str) -> Option<String> {
    let several = disclosed.protocol == "pid" && disclosed.rows.len() > 2;
    let how = match &disclosed.dummies {
        Some(_) => ", with made-up rows among them, which is covered as the sizes are",
        None => ", exactly",
    };
    several.then(|| {
        format!(
            "{} alone also counted, for every set of parties, the identifiers that these and no others \
             have{how}",
            label(first)
        )
    })
}

/// What an interval says of the difference, by the study's own idea of better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalVerdict {
    /// The whole interval is on the better side for the test arm.
    Test,
    /// The whole interval is on the better side for the control arm.
    Control,
    /// The interval contains no difference, or is not known.
    Unclear,
}

/// Reads an interval.
pub fn verdict(view: &LiftView, estimate: &LiftEstimate) -> IntervalVerdict {
    let [low, high] = estimate.interval;
    // Written so that a value that is not a number is unclear.
    let (less, more) = (high < 0.0, low > 0.0);
    match (less, more, view.lower_is_better) {
        (true, false, true) | (false, true, false) => IntervalVerdict::Test,
        (true, false, false) | (false, true, true) => IntervalVerdict::Control,
        _ => IntervalVerdict::Unclear,
    }
}

/// The verdict in a few words.
pub fn verdict_words(view: &LiftView, estimate: &LiftEstimate) -> String {
    match verdict(view, estimate) {
        IntervalVerdict::Test => format!("in favour of {}", label(&view.test)),
        IntervalVerdict::Control => format!("in favour of {}", label(&view.control)),
        IntervalVerdict::Unclear => "no clear difference".to_owned(),
    }
}

/// `fewer is better`, as the study says.
pub fn better(view: &LiftView) -> String {
    let difference = if view.lower_is_better { -1.0 } else { 1.0 };
    format!("{} is better", direction(view, difference))
}

/// The result in two sentences: the difference, and its interval.
pub fn headline(view: &LiftView, scale: &MeanScale) -> [String; 2] {
    let (test, control) = (label(&view.test), label(&view.control));
    let Some(cell) = overall(view) else {
        return ["This study releases no overall result.".to_owned(), String::new()];
    };
    let Some(estimate) = &cell.estimate else {
        let reason = cell.refused.as_deref().unwrap_or("the study releases no estimate for it");
        return [
            format!("There is no overall result for {test} against {control}."),
            format!("Refused: {reason}."),
        ];
    };
    if !estimate.lift.is_finite() {
        return [format!("The difference between {test} and {control} is not known."), String::new()];
    }
    [difference_sentence(view, estimate, scale), interval_sentence(view, estimate, scale)]
}

/// A difference without its sign, and the word for the sign: `40.7 fewer`.
fn signed_words(view: &LiftView, scale: &MeanScale, difference: f64) -> String {
    let shown = scale.show(difference.abs());
    if shown == MISSING { shown } else { format!("{shown} {}", direction(view, difference)) }
}

fn difference_sentence(view: &LiftView, estimate: &LiftEstimate, scale: &MeanScale) -> String {
    let (test, control) = (label(&view.test), label(&view.control));
    let (amount, way) = (scale.show(estimate.lift.abs()), direction(view, estimate.lift));
    let (noun, per) = (noun(view), scale.per());
    let relation = estimate
        .relative
        .filter(|part| part.is_finite())
        .map_or_else(String::new, |part| format!(" ({})", relative(view, part)));
    let amount = match &view.unit {
        Some(unit) => format!("{amount} {}", label(unit)),
        None => amount,
    };
    match (verdict(view, estimate), counts_people(view)) {
        (IntervalVerdict::Unclear, true) => {
            format!(
                "No clear difference between {test} and {control}: {amount} {way} {noun} {per}{relation}."
            )
        }
        (IntervalVerdict::Unclear, false) => {
            format!(
                "No clear difference between {test} and {control}: the mean is {amount} {per} \
                 {way}{relation}."
            )
        }
        (_, true) => {
            format!("The {test} group had {amount} {way} {noun} {per} than the {control} group{relation}.")
        }
        (_, false) => format!(
            "The mean of the {test} group was {amount} {per} {way} than that of the {control} \
             group{relation}."
        ),
    }
}

fn interval_sentence(view: &LiftView, estimate: &LiftEstimate, scale: &MeanScale) -> String {
    let [low, high] = estimate.interval;
    let level = numbers::percent(view.confidence);
    // The end nearer to no difference first, as one would say it.
    let (first, last) = if high < 0.0 { (high, low) } else { (low, high) };
    let span = format!("{} to {}", signed_words(view, scale, first), signed_words(view, scale, last));
    let remark = match verdict(view, estimate) {
        IntervalVerdict::Unclear => "; no difference at all is inside it",
        _ => "",
    };
    format!("{level} interval, from chance and privacy noise: {span}{remark}.")
}

/// Whether the estimates are made of this quantity, rather than it being released besides.
pub fn is_core(quantity: &str) -> bool {
    matches!(
        quantity,
        "rows" | "value" | "squares" | "tail" | "centred_value" | "centred_tail" | "difference" | "spread"
    )
}

/// Whether a quantity is one that only an estimate is made of: by itself it tells people nothing.
pub fn is_behind(quantity: &str) -> bool {
    is_core(quantity) && !matches!(quantity, "rows" | "value" | "difference")
}

/// The name of a released quantity, the same in every text, page and table.
pub fn quantity(name: &str) -> String {
    label(&name.replace('_', " "))
}

/// What the quantities of a view are, a sentence each in the order of the view.
pub fn quantities(view: &LiftView) -> Vec<String> {
    let mut met: Vec<&str> = Vec::new();
    for count in view.cells.iter().flat_map(|cell| &cell.counts) {
        if !met.contains(&&*count.quantity) {
            met.push(&count.quantity);
        }
    }
    let said = |name: &&str| Some(format!("{}: {}.", capital(&quantity(name)), meaning(name)?));
    met.iter().filter_map(said).collect()
}

/// What a quantity of a lift study is, by its name in the JSON.
pub fn meaning(quantity: &str) -> Option<&'static str> {
    Some(match quantity {
        "rows" => "the people of the arm, with or without an outcome",
        "value" => "the sum of their outcomes, each cut off at the clamp",
        "squares" => "the sum of the squares of these outcomes",
        "tail" => "the clamp times the value, less the squares",
        "centred_value" => "twice the value, less the clamp for each row",
        "centred_tail" => {
            "32 times the tail (the clamp times the value, less the squares), less the square of the clamp \
             for each row"
        }
        "converters" => "people with a conversion",
        "conversions" => "events that count",
        "matches" => "people whom both sides have",
        "clamped_users" => "people whose outcome was cut off at the clamp",
        "reached_conversions" => "events that count, of people who were reached",
        "reached_value" => "the same as the value, of people who were reached",
        "difference" => "the difference of the arms' means, in fixed point",
        "spread" => "how far the difference varies by chance, in fixed point",
        _ => return None,
    })
}

/// What a program's output says of its noise: a sigma, that it was computed from noised values, or that it is
/// exact; and whether made-up rows are in it.
pub fn noise(output: &ProgramOutput) -> String {
    let noise = match &output.sigma {
        Some(sigma) => sigma.parse().map_or_else(|_| label(sigma), |sigma| numbers::significant(sigma, 3)),
        None if output.noised => "computed from noised values".to_owned(),
        None if output.mixed => "computed from noised and exact values".to_owned(),
        None => "exact".to_owned(),
    };
    if output.made_up { noise + ", made-up rows counted" } else { noise }
}

/// A unit as a number counts it: `EUR`, `1/100 EUR`, `1/100`; nothing of a bare number.
pub fn parts_of(scale: u32, unit: &str) -> String {
    let parts = if scale > 1 { format!("1/{scale}") } else { String::new() };
    let unit = label(unit);
    if parts.is_empty() || unit.is_empty() { parts + &unit } else { format!("{parts} {unit}") }
}

/// What outputs are called in a table, of at most `most` characters before the unit: `sum of costs,
/// 1/100 EUR`.
pub fn output_names(outputs: &[ProgramOutput], most: usize) -> Vec<String> {
    let labels: Vec<&str> = outputs.iter().map(|output| output.label.as_str()).collect();
    let named = told_apart(&labels, most).into_iter().zip(outputs);
    named
        .map(|(name, output)| match parts_of(output.scale, &output.unit) {
            unit if unit.is_empty() => name,
            unit => format!("{name}, {unit}"),
        })
        .collect()
}

/// The values of outputs for a reader. The key of a row says more than its index.
pub fn output_values(outputs: &[ProgramOutput]) -> Vec<String> {
    let raw: Vec<&String> =
        outputs.iter().map(|output| output.key.as_ref().unwrap_or(&output.value)).collect();
    let shown = told_apart(&raw, LABEL_CHARS).into_iter().zip(outputs);
    shown.map(|(text, output)| if output.key.is_some() { text } else { numbers::grouped(&text) }).collect()
}

/// What a modified program reads in a match and no report can show; nothing where no such way is known.
pub fn membership(protocol: &str) -> Option<String> {
    let tells = ["pid", "ps3i", "collecting"].contains(&protocol);
    tells.then(|| {
        "In matching, a modified program reads which of its own identifiers another party has; an honest run \
         looks the same, so no report can tell."
            .to_owned()
    })
}

/// Who must not see the report because it drew the noise in it; nothing where nobody knows the noise, or
/// there is none.
pub fn drew_the_noise(report: &RunReport) -> Option<String> {
    let noised = match &report.view {
        ResultView::Lift(view) => {
            view.cells.iter().flat_map(|cell| &cell.counts).any(|count| count.sigma.is_some())
        }
        ResultView::Program { outputs, .. } => outputs.iter().any(|output| !output.is_exact()),
    };
    let peers = others(report);
    (noised && report.privacy.candidates.is_some() && !peers.is_empty()).then(|| peers.join(" or "))
}

/// What is said of a result that all see, by whether noise is in it.
pub fn public(terms: Option<&PublicTerms>) -> &'static str {
    match terms {
        Some(terms) if terms.epsilon.is_none() => PUBLIC_EXACT,
        _ => PUBLIC,
    }
}

/// Of an exact one.
const PUBLIC_EXACT: &str = "This result is the same at all parties, and all agreed that everybody may see \
                            it: it is exact, and no noise protects anybody's data in it.";

/// Of one with noise.
pub const PUBLIC: &str = "This result is the same at all parties, and everybody may publish it: nobody knows \
                          the noise in it, and it protects the data of all.";

/// What a report with a public result says of itself beside it.
pub fn own_report(report: &RunReport) -> String {
    format!(
        "This report itself is for {} alone: it holds counts of its files, sizes and its ledger. What may be \
         passed on is made of it by `tacit report --public`, or in Python `report.public_result`.",
        label(&report.party)
    )
}

/// What the public result costs who reads it and nothing else; nothing where that is not known, or there is
/// no noise in it.
pub fn public_cost(terms: &PublicTerms) -> Option<String> {
    let (epsilon, delta) = (numbers::up(terms.epsilon?, 3), numbers::up(terms.delta?, 3));
    let rho = label(&numbers::rho(&terms.rho, terms.rho_value));
    let attempt = terms.attempt.map_or_else(String::new, |attempt| format!("; attempt {attempt}"));
    Some(format!("To whoever reads this result alone it costs rho {rho} = ({epsilon}, {delta})-DP{attempt}."))
}

/// Heading of what only who checks a result needs: engine, hashes, time and bytes.
pub const COMPUTED: &str = "How it was computed";

/// Heading of what is said of this party's own files.
pub const OWN_FILES: &str = "Reading of your own files";

/// Whom that is for.
pub const FOR_YOU: &str = "For you only";

/// Why a view must not be passed on, and how much of the report that is: `this view contains exact numbers`.
/// Nothing of what everybody may publish, and where there is no result.
pub struct KeptView {
    /// `Do not pass on this report`, or what this party alone sees.
    pub what: String,
    /// What is said of it in a line.
    pub why: String,
    /// Whether there are exact numbers in it.
    pub exact: bool,
}

impl KeptView {
    /// Reads a report. A view of one party is charged as its own, so it is never one to pass on.
    pub fn of(report: &RunReport) -> Option<Self> {
        if report.is_public() || report.view.is_empty() {
            return None;
        }
        let (party, exact) = (label(&report.party), has_exact_numbers(&report.view));
        let why = match exact {
            true => "this view contains exact numbers".to_owned(),
            false => format!(
                "this view is for {party} alone: its noise is made for the rows of others, and no ledger \
                 counts who else reads it"
            ),
        };
        let what = match report.public {
            Some(_) => format!("Do not pass on what {party} alone sees"),
            None => "Do not pass on this report".to_owned(),
        };
        Some(Self { what, why, exact })
    }
}

/// Who sees the result, where this party sees none of it.
pub fn nothing_seen(report: &RunReport) -> Option<String> {
    let party = label(&report.party);
    let seeing = match report.shown_to.as_slice() {
        // A report of an earlier version does not say; of two parties it is the other.
        [] if report.parties.len() == 2 => others(report),
        some => some.iter().map(|name| label(name)).collect(),
    };
    let who = match seeing.split_last() {
        None => "others see it".to_owned(),
        Some((one, [])) => format!("{one} alone sees it"),
        Some((last, rest)) => format!("{} and {last} see theirs", rest.join(", ")),
    };
    report.view.is_empty().then(|| format!("This study shows {party} no result: {who}."))
}

/// Where the noise of a view comes from.
pub fn noise_of(privacy: &Privacy) -> String {
    let from = match privacy.candidates {
        Some(candidates) => {
            format!("noise candidates {candidates}, {} opened and checked", candidates.saturating_sub(1))
        }
        None => "noise drawn inside, known to nobody".to_owned(),
    };
    privacy.attempt.map_or(from.clone(), |attempt| format!("{from}; attempt {attempt} of this release"))
}

/// What stands in place of privacy parameters where a study has none.
pub const NO_NOISE: &str = "no noise: results are exact; every party's policy allowed it";

/// What a party got cost: `rho 0.11 for this view (0.1 release, 0.01 sizes)`, `what` being that view.
/// Beside a public result, which costs another reader less, it is of all that the party got.
pub fn charged(total: &PrivacyTotal, what: &str) -> String {
    let rho = numbers::short(total.rho_value, 4);
    let Some(sizes) = total.sizes_value().filter(|sizes| *sizes > 0.0) else {
        return format!("rho {} for {what}", numbers::rho(&total.rho, total.rho_value));
    };
    let release = numbers::short(total.rho_value - sizes, 4);
    let times = match total.size_charges {
        0 | 1 => String::new(),
        matches => format!(" of {matches} matches that were charged"),
    };
    format!("rho {rho} for {what} ({release} release, {} sizes{times})", numbers::short(sizes, 4))
}

/// The same of a report.
pub fn charged_to(report: &RunReport, total: &PrivacyTotal) -> String {
    let party = label(&report.party);
    if let Some(day) = &total.since {
        let since = format!("what {party} got since its ledger was recovered on {}", label(day));
        return charged(total, &since) + "; earlier runs are not in it, so do not quote it as the whole";
    }
    let released = total.rho_value - total.sizes_value().unwrap_or(0.0);
    if total.size_charges > 1 || released > report.privacy.rho_value + 1e-9 {
        return charged(total, &format!("all that {party} got in this study, earlier runs included"));
    }
    match report.public {
        Some(_) => charged(total, &format!("all that {party} got")),
        None => charged(total, "this view"),
    }
}

/// Names in a line.
pub fn names(names: &[String]) -> String {
    names.iter().map(|name| label(name)).collect::<Vec<_>>().join(", ")
}

/// The names of all parties of a report, in the order of the roster.
pub fn parties(report: &RunReport) -> Vec<String> {
    report.parties.iter().map(|party| party.name.clone()).collect()
}

/// The other parties' names.
pub fn others(report: &RunReport) -> Vec<String> {
    let others = report.parties.iter().filter(|party| party.name != report.party);
    others.map(|party| label(&party.name)).collect()
}

/// What each other party has spent on this party's data: `shop: 0.1 of 1 on this party's data, delta 2·10⁻⁹`.
pub fn spent(report: &RunReport) -> Vec<String> {
    let privacy = &report.privacy;
    let budget = numbers::short(privacy.budget, 3);
    if privacy.viewers.is_empty() {
        // A stored answer of an earlier version.
        let spent = numbers::short(privacy.spent, 3);
        return vec![format!("{}: {spent} of {budget} on this party's data", others(report).join(", "))];
    }
    let one = |viewer: &SpentBy| {
        let delta = match viewer.delta.as_str() {
            "0" => String::new(),
            delta => format!(", delta {}", label(&numbers::power(delta))),
        };
        let (name, rho) = (label(&viewer.viewer), numbers::short(viewer.rho, 3));
        format!("{name}: {rho} of {budget} on this party's data{delta}")
    };
    privacy.viewers.iter().map(one).collect()
}

/// Whose view it is: `north`, or in a lift study `paper (publisher) with shop`, since a publisher has one for
/// each advertiser.
pub fn seen_by(report: &RunReport) -> String {
    let (party, role) = (label(&report.party), label(&report.role));
    if report.is_public() {
        return format!("everybody, as {} has it", whose(report));
    }
    match &report.view {
        ResultView::Program { .. } if party == role => party,
        ResultView::Program { .. } => format!("{party} ({role})"),
        ResultView::Lift(_) if role != "publisher" => format!("{party} ({role})"),
        ResultView::Lift(_) => format!("{party} ({role}) with {}", others(report).join(", ")),
    }
}

/// Whose report it is, by name: `north`, or `paper with shop` for a publisher, which has one for each
/// advertiser that it measures apart.
pub fn whose(report: &RunReport) -> String {
    let party = label(&report.party);
    match others(report).as_slice() {
        [advertiser] if report.role == "publisher" => format!("{party} with {advertiser}"),
        _ => party,
    }
}

/// The engine with its settings.
pub fn engine(report: &RunReport) -> String {
    shortened(&report.engine_text(), ENGINE_CHARS)
}

/// With its first letter in upper case.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

/// The cells of a view for a reader, in their order, of which no two are cut alike.
pub fn cell_names(view: &LiftView) -> Vec<String> {
    told_apart(&view.cells.iter().map(cell_name).collect::<Vec<_>>(), LABEL_CHARS)
}

/// A cell for a reader: `all people`, `newbie = 1`; a report of an earlier version knows its value alone.
pub fn cell_name(cell: &CellView) -> String {
    match (cell.family.as_str(), &cell.column) {
        ("overall", _) => "all people".to_owned(),
        (_, Some(column)) => format!("{column} = {}", cell.label),
        (_, None) => cell.label.clone(),
    }
}

/// Names of rows of one table, cleaned: of at most `most` characters, but for those that would look alike.
pub fn told_apart(names: &[impl AsRef<str>], most: usize) -> Vec<String> {
    let mut alike: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in names {
        alike.entry(shortened(name.as_ref(), most)).or_default().insert(clean(name.as_ref()));
    }
    let shown = |name: &str| {
        let short = shortened(name, most);
        if alike.get(&short).is_some_and(|names| names.len() > 1) { clean(name) } else { short }
    };
    names.iter().map(|name| shown(name.as_ref())).collect()
}

/// Text of a study or a peer, safe to show: see [`clean`], and at most [`LABEL_CHARS`] characters.
pub fn label(text: &str) -> String {
    shortened(text, LABEL_CHARS)
}

/// Text, cleaned, of at most `most` characters; what was cut is shown by two dots.
pub fn shortened(text: &str, most: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= most {
        return text;
    }
    let mut short: String = text.chars().take(most.saturating_sub(2)).collect();
    short.push_str("..");
    short
}

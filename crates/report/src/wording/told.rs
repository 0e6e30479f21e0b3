//! What is said of the numbers as a whole: how many there are, how often chance misleads, what noise and
//! made-up rows do to them.

use super::{MeanScale, cell_name, label, noun, parts_of};
use crate::{CellView, CountView, Disclosure, LiftView, RunReport};
use base::clean;
use data::InputReport;
use page::lines::{plain, wrapped};
use page::numbers::{count, counted, grouped, percent, short};

/// How often chance alone shows a difference where several cells are looked at, and what Holm's p-values are.
pub fn multiplicity(view: &LiftView) -> Option<String> {
    let tests = view.cells.iter().filter(|cell| cell.holm.is_some()).count();
    let misses = misses(tests, view.confidence)?;
    let most = format!("{} %", short(100.0 * (1.0 - view.confidence), 3));
    Some(format!(
        "{misses}. The p-values named Holm are adjusted for all {tests} differences of this view: who calls \
         those real that are at most {most} is wrong about any of them with a chance of at most {most}."
    ))
}

/// How many of several intervals of a level miss by chance.
pub(super) fn misses(intervals: usize, level: f64) -> Option<String> {
    let misses = short((1.0 - level) * intervals as f64, 2);
    let level = percent(level);
    (intervals >= 2).then(|| {
        format!(
            "{intervals} intervals of {level} each: expect about {misses} of them to miss the truth by chance"
        )
    })
}

/// The unit of a released number: people, what is counted (in parts of it as it was released), or none of a
/// square or of a fixed-point value.
pub fn unit_of(view: &LiftView, quantity: &str) -> String {
    let noun = noun(view);
    match quantity {
        "rows" | "converters" | "matches" | "clamped_users" => "people".to_owned(),
        "value" | "reached_value" => parts_of(view.scale, &noun),
        "conversions" | "reached_conversions" => "events".to_owned(),
        _ => String::new(),
    }
}

/// A released number for a reader.
pub fn amount(count: &CountView) -> String {
    grouped(&label(&count.value))
}

/// Columns of a count of what was read.
const COUNT: usize = 14;

/// What reading a party's own files did, in lines of so many columns.
pub fn input_lines(inputs: &InputReport, columns: usize) -> Vec<String> {
    let text = inputs.to_string();
    let lines = text.lines().flat_map(|text| {
        let (count, what) = text.trim().split_once(' ').unwrap_or((text, ""));
        let first = format!("{:>COUNT$} ", clean(&grouped(count)));
        wrapped(&plain(&clean(what)), columns, &first, &" ".repeat(COUNT + 1))
    });
    lines.collect()
}

/// How many numbers of views are shown, what they are, and how many are not shown.
pub fn numbers_told<'a>(views: impl IntoIterator<Item = &'a LiftView>, all_in: &str) -> String {
    let (mut released, mut read, mut held_back) = (0u64, 0u64, 0u64);
    for cell in views.into_iter().flat_map(|view| &view.cells) {
        let derived = cell.counts.iter().filter(|count| count.derived).count();
        read += derived as u64;
        released += (cell.counts.len() - derived) as u64;
        held_back += u64::from(cell.held_back);
    }
    let mut text = match released {
        0 => "No number is shown".to_owned(),
        1 => format!("1 released number is in {all_in}"),
        _ => format!("{} released numbers are in {all_in}", count(released)),
    };
    if read > 0 {
        text += &format!(", and {} computed from them", count(read));
    }
    if held_back > 0 {
        let more = if released > 0 { "more " } else { "" };
        text += &format!("; {} {more}of refused cells stay out", count(held_back));
    }
    text + "."
}

/// Of how many values for all viewers those of a view are some: what the stage of the release counts.
pub fn values_released(report: &RunReport) -> Option<String> {
    let stage = report.stages.iter().find(|stage| stage.name == "release")?;
    Some(format!("The stage `release` handled {}: those for all viewers.", counted(stage.rows, "value")))
}

/// What is said where noise made a number negative that counts something.
pub fn negative_numbers(view: &LiftView) -> Option<&'static str> {
    let signed = ["difference", "spread", "centred_value", "centred_tail"];
    let is_negative = |of: &CountView| {
        of.sigma.is_some() && of.value.starts_with('-') && !signed.contains(&of.quantity.as_str())
    };
    view.cells.iter().flat_map(|cell| &cell.counts).any(is_negative).then_some(
        "Noise can make a count, a sum or a sum of squares negative. It is shown as it was released; the \
         estimates reckon with that noise.",
    )
}

/// Why a difference has no part of the control arm's mean.
pub fn no_relative(view: &LiftView) -> Option<String> {
    let without = |cell: &&CellView| {
        cell.estimate.is_some_and(|estimate| estimate.rates.is_some() && estimate.relative.is_none())
    };
    let cells: Vec<String> = view.cells.iter().filter(without).map(cell_name).collect();
    (!cells.is_empty()).then(|| {
        format!(
            "No relative difference is given of {}: the interval of the mean of {} reaches 0 there, so it \
             could be anything.",
            listed(&cells),
            label(&view.control)
        )
    })
}

/// So many names stand in a sentence.
const LISTED: usize = 4;

/// Names in a sentence, the first of many.
fn listed(names: &[String]) -> String {
    let mut shown: Vec<String> = names.iter().take(LISTED).map(|name| label(name)).collect();
    let more = names.len().saturating_sub(LISTED);
    shown.extend((more > 0).then(|| format!("{more} more")));
    match shown.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => shown.concat(),
    }
}

/// Means of arms with what says whose they are.
fn arm_means(view: &LiftView) -> impl Iterator<Item = (String, release::modes::ArmRate)> {
    let named = |cell: &CellView, arm: &str| match cell.family.as_str() {
        "overall" => label(arm),
        _ => format!("{}, {}", cell_name(cell), label(arm)),
    };
    view.cells.iter().flat_map(move |cell| {
        let rates = cell.estimate.and_then(|estimate| estimate.rates).into_iter().flatten();
        rates.zip([&view.test, &view.control]).map(move |(rate, arm)| (named(cell, arm), rate))
    })
}

/// What is said where noise put the mean of an arm where no true mean is.
pub fn means_beyond(view: &LiftView) -> Vec<String> {
    let most = view.clamp as f64 / f64::from(view.scale.max(1));
    let of = |is: &dyn Fn(f64) -> bool| -> Vec<String> {
        arm_means(view).filter(|(_, rate)| is(rate.mean)).map(|(name, _)| name).collect()
    };
    let sides = [("below 0", of(&|mean| mean < 0.0)), ("above the clamp", of(&|mean| mean > most))];
    let said = sides.into_iter().filter(|(_, names)| !names.is_empty());
    let mut said: Vec<String> = said
        .map(|(side, names)| {
            format!(
                "Noise put the mean of {} {side}, where no true mean is. It is shown as it came out: so, \
                 before rounding, the arms subtract to the difference, and are right on average.",
                listed(&names)
            )
        })
        .collect();
    said.extend(floored(view));
    said.extend(rounded_apart(view));
    said
}

/// What is said where the digits of arms do not subtract to those of the difference beside them.
fn rounded_apart(view: &LiftView) -> Option<String> {
    let scale = MeanScale::of([view]);
    // The digits alone: all have as many decimals. Powers of ten are none.
    let digits = |mean: f64| scale.show(mean).replace([',', '.'], "").parse::<i128>().ok();
    let is_apart = |of: release::modes::LiftEstimate| {
        let [test, control] = of.rates?.map(|rate| digits(rate.mean));
        // More than one is no matter of rounding.
        Some((test? - control? - digits(of.lift)?).abs() == 1)
    };
    let mut cells = view.cells.iter().filter_map(|cell| is_apart(cell.estimate?));
    cells.any(|apart| apart).then(|| {
        "Each number is rounded by itself: arms and their difference may be off by one in the last digit."
            .to_owned()
    })
}

/// Earlier versions wrote 0 for a mean below 0.
fn floored(view: &LiftView) -> Option<String> {
    let is_off = |cell: &&CellView| {
        cell.estimate.is_some_and(|of| {
            let rates = of.rates.filter(|rates| rates.iter().any(|rate| rate.mean == 0.0));
            rates.is_some_and(|[test, control]| {
                (test.mean - control.mean - of.lift).abs() > 1e-9 * of.lift.abs()
            })
        })
    };
    let cells: Vec<String> = view.cells.iter().filter(is_off).map(cell_name).collect();
    (!cells.is_empty()).then(|| {
        format!(
            "An earlier version wrote this report, and 0 for a mean below 0: the means of {} do not subtract \
             to the difference.",
            listed(&cells)
        )
    })
}

/// What is said of intervals of means that reach where no true mean is.
pub fn ends_beyond(view: &LiftView) -> Option<&'static str> {
    arm_means(view).any(|(_, rate)| rate.mean - rate.half_width < 0.0).then_some(
        "Where an interval of a mean reaches below 0, no true mean is in that part. It is not cut, so that \
         it keeps its level around the mean that came out.",
    )
}

/// What is said where intervals are those of noise alone: the difference's by itself, for it can be one where
/// those of its arms are not.
pub fn noise_alone(view: &LiftView) -> Option<String> {
    let is_noise = |whole: f64, noise: f64| noise > 0.0 && whole <= noise * (1.0 + 1e-9);
    let half = |[low, high]: [f64; 2]| 0.5 * (high - low);
    let estimates = || view.cells.iter().filter_map(|cell| cell.estimate);
    let rates = estimates().filter_map(|of| of.rates).flatten();
    let arms = rates.filter(|rate| is_noise(rate.half_width, rate.noise_half_width)).count();
    let differences = estimates().filter(|of| is_noise(half(of.interval), half(of.noise_interval))).count();
    let of = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 interval of {what}")),
        _ => Some(format!("{count} intervals of {}s", &what[2..])),
    };
    let named: Vec<String> =
        [of(arms, "a mean"), of(differences, "a difference")].into_iter().flatten().collect();
    let verb = match arms + differences {
        0 => return None,
        1 => "is that",
        _ => "are those",
    };
    let rest = if differences == 0 { " No interval of a difference is." } else { "" };
    Some(format!(
        "{} {verb} of noise alone: what chance adds is too small beside the noise to be told, so it is taken \
         as nothing.{rest}",
        named.join(" and ")
    ))
}

/// What is said where noise alone gives as much as the means of both arms. Sizes of a match are no part of a
/// public result, so the numbers have to tell that nobody may have matched.
pub fn lost_in_noise(view: &LiftView) -> Option<&'static str> {
    let rates = super::overall(view)?.estimate?.rates?;
    rates.iter().all(|rate| rate.mean.abs() <= rate.noise_half_width).then_some(
        "The means of both arms are no larger than what noise alone gives. A study whose parties have nobody \
         in common, for instance because they write identifiers differently, would show the same: do not \
         take this result for one of a treatment that does nothing.",
    )
}

/// Of whom means are, which a reader who thinks of the people of both files would take for others; and why
/// all parts of the whole may show more than it does. `parties` are those of the study, the publisher first.
pub fn whose_means(view: &LiftView, parties: &[String]) -> String {
    let mut text = match parties {
        [publisher, advertiser] => format!(
            "Means are per person of {} (publisher): whom {} (advertiser) does not know counts with 0.",
            label(publisher),
            label(advertiser)
        ),
        [publisher, advertisers @ ..] if !advertisers.is_empty() => format!(
            "Means are per person of {} (publisher): whom no advertiser ({}) knows counts with 0.",
            label(publisher),
            super::names(advertisers)
        ),
        _ => "Means are per person of the publisher: whom the advertiser does not know counts with 0."
            .to_owned(),
    };
    if let Some(cell) = view.cells.iter().find(|cell| cell.family == "cohort") {
        let by = cell.column.as_ref().map_or_else(|| "cohort".to_owned(), |column| label(column));
        text += &format!(
            " Groups by {by} are of people whom both know: each of them may show more than all people do."
        );
    }
    text
}

/// Of sizes that a match disclosed with made-up rows in them.
pub fn made_up_rows(report: &RunReport) -> &'static str {
    if report.disclosed.dummies.is_some() { ", made-up ones among them" } else { "" }
}

/// The size of the match, and about how much of it is made up.
pub fn disclosed_match(report: &RunReport) -> Option<String> {
    let disclosed = &report.disclosed;
    let matched = disclosed.matched()?;
    let shown = format!("{}{}", count(matched), made_up_rows(report));
    Some(match without_made_up(disclosed) {
        Some(about) => format!("{shown}: {about}"),
        None => shown,
    })
}

/// About how many rows of a match are none that somebody made up; nothing where that is not known.
#[must_use]
pub fn without_made_up(disclosed: &Disclosure) -> Option<String> {
    let [mean, range] = disclosed.made_up().filter(|_| disclosed.dummies.is_some())?;
    let about = count(disclosed.matched()?.saturating_sub(mean));
    Some(format!("about {about} without them, give or take {}", count(range)))
}

/// What made-up rows mean for who knows its own rows. For this party only.
pub fn own_match(report: &RunReport) -> Option<String> {
    let (matched, own) = (report.disclosed.matched()?, report.inputs.rows_kept);
    let made_up = report.disclosed.dummies.is_some() && own > 0 && own < matched;
    made_up.then(|| {
        format!(
            "The size of the match that was disclosed, {}, has made-up rows in it: of this party's {} \
             rows no more than these can have matched.",
            count(matched),
            count(own)
        )
    })
}

//! `--figure`: what rho, clamp, rows and mode do to the interval, as a page of plots.

use base::Error;
use data::InputReport;
use job::plan::{Assumed, Halves, IntervalCurve, interval_curves};
use page::markup::words;
use page::numbers::{MISSING, count, grouped, percent, plain};
use page::plot::{AxisScale, FigurePage, PlotLine, plot};
use std::path::Path;
use study::{Question, Study};
use terminal::output;

/// Writes the page.
///
/// # Errors
/// When the study has no interval, nobody guesses what outcomes are like, or the file cannot be written.
pub fn write(file: &Path, study: &Study, assumed: &Assumed, own: Option<&InputReport>) -> Result<(), Error> {
    let Question::Lift(lift) = &study.kind else {
        return Err(Error::input(
            "--figure of `tacit plan` and `tacit check` draws the interval of a lift study, and this is \
             none: `tacit simulate STUDY --figure FILE` draws how wide the noise of a program's answers is",
        ));
    };
    let curves = interval_curves(study, assumed, own)?;
    let (unit, level) = (job::told::unit(study), lift.release.confidence.percent());
    let up = |setting| match setting {
        "clamp" => "in % of the mean there".to_owned(),
        _ => format!("{unit} per person"),
    };
    let across = |setting| match setting {
        "rho" => "rho, zCDP spent on the result",
        "clamp" => "clamp, the most that one person adds",
        _ => "rows of the publisher, both arms",
    };
    let drawn =
        curves.iter().filter(|curve| curve.setting != "mode" && curve.points.iter().any(|p| p.half.is_ok()));
    let figures = drawn.map(|curve| {
        let title = format!("Half of the {level} % interval, {}, by {}", up(curve.setting), curve.setting);
        plot(&title, across(curve.setting), AxisScale::Log, &lines(curve))
    });
    let rows = curves.iter().flat_map(|curve| {
        curve.points.iter().map(|point| {
            let here = curve.setting != "mode" && point.at == curve.chosen
                || point.value == lift.release.mode.name();
            let of_mean = |half: f64| match point.mean > 0.0 {
                true => percent(half / point.mean),
                false => MISSING.to_owned(),
            };
            let [whole, chance, part] = match &point.half {
                Ok(Halves { whole, chance }) => [plain(*whole, 3), plain(*chance, 3), of_mean(*whole)],
                Err(why) => [format!("nothing is shown: {why}"), String::new(), String::new()],
            };
            let mark = if here { " (this study)" } else { "" };
            [curve.setting.to_owned(), grouped(&point.value) + mark, whole, chance, part]
        })
    });
    let page = FigurePage {
        name: "tacit plan",
        title: &format!("{}: what each choice does to the interval", study.title),
        about: about(study, assumed, level),
        figures: figures.collect(),
        head: &["setting", "value", "half of the interval", "of which chance alone", "in % of the mean"],
        rows: rows.collect(),
    };
    output::write_file(file, page.html().as_bytes())?;
    output::say(&format!("Page: {}", file.display()));
    Ok(())
}

/// The interval, the part of it that no privacy would take away, and where this study stands; of clamps in
/// percent of the mean that each leaves, since each is an interval of another difference.
fn lines(curve: &IntervalCurve) -> Vec<PlotLine> {
    let shown = curve.points.iter().filter_map(|point| {
        let Halves { whole, chance } = point.half.clone().ok()?;
        let by = if curve.setting == "clamp" { 100.0 / point.mean } else { 1.0 };
        by.is_finite().then_some((point.at, Halves { whole: whole * by, chance: chance * by }))
    });
    let shown: Vec<(f64, Halves)> = shown.collect();
    let line = |name: &str, value: fn(&Halves) -> f64| PlotLine {
        name: name.to_owned(),
        points: shown.iter().map(|(at, half)| (*at, value(half))).filter(|(_, y)| *y > 0.0).collect(),
    };
    let mut lines = vec![
        line("chance and noise", |half| half.whole),
        line("chance alone: no noise at all", |half| half.chance),
    ];
    let heights = || lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
    let [low, high] = [heights().fold(f64::MAX, f64::min), heights().fold(0.0, f64::max)];
    lines.push(PlotLine {
        name: "this study".into(),
        points: vec![(curve.chosen, low), (curve.chosen, high)],
    });
    lines
}

/// What is said first where a page rests on a party's data.
const OF_OWN_FILE: &str = "These plots rest on sums of one party's file, which stand here without noise: \
                           they are for that party, and not for passing on. A page for others takes a \
                           guess: --mean X.";

/// How to read it, and what it rests on.
fn about(study: &Study, assumed: &Assumed, level: u32) -> Vec<page::markup::Markup> {
    let outcome = assumed.outcome.as_ref();
    let mean = outcome.map_or_else(String::new, |outcome| {
        format!("{} {} per person, {}", plain(outcome.mean, 4), job::told::unit(study), outcome.source)
    });
    let least = match &study.kind {
        Question::Lift(lift) => lift.release.minimum_group,
        _ => 0,
    };
    let all = [
        format!(
            "Half of the {level} % interval for the difference between the arms, if one setting changes and \
             the \
             others stay as they are in the study: the smaller, the more the study can see. A true \
             difference \
             below it will often look like none. Both axes are logarithmic. Clamps are compared by the last \
             column of the table, in % of the control arm's mean: a smaller clamp leaves a smaller mean, and \
             differences shrink with it."
        ),
        format!(
            "More rho costs more of the privacy budget. A smaller clamp takes less noise and cuts more of \
             what \
             large customers add: the estimate is then of less than the whole. A cell of fewer than {} \
             rows \
             in an arm (minimum_group) is not shown at all, and a cell's interval is that of a study of its \
             rows: \
             read it from the plot by rows.",
            count(least)
        ),
        format!(
            "Control arm's mean outcome: {mean}. Rows: {} and {}.",
            count(assumed.rows[0]),
            count(assumed.rows[1])
        ),
    ];
    let counted = outcome.is_some_and(job::plan::OutcomeGuess::is_counted);
    let own = counted.then(|| OF_OWN_FILE.to_owned());
    own.into_iter().chain(all).map(|text| words("p", "", text)).collect()
}

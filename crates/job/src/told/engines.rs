//! What each engine would take, for people.

use crate::plan::{Choice, Plan};
use page::lines::wrapped;
use page::numbers::{bytes, duration};
use study::{ComputeEngine, Study};

/// Columns of an engine with its settings, at least.
const NAME: usize = 34;

/// What each engine would take, and what says that a run takes it; nothing where there are none.
pub(super) fn table(plan: &Plan, study: &Study, columns: usize) -> Vec<String> {
    if plan.engines.is_empty() {
        return Vec::new();
    }
    let mut lines =
        vec![String::new(), "engines that could run it, rows and releases without the match:".to_owned()];
    if plan.bill.is_some() {
        lines[1] =
            "engines that could run it, rows and releases without the match, all cores used:".to_owned();
    }
    let wide = plan.engines.iter().map(|choice| name(choice).chars().count()).fold(NAME, usize::max);
    for choice in &plan.engines {
        let (sent, time) = (bytes(choice.bytes), duration(choice.seconds));
        let line = format!("{:wide$} {sent:>10} {time:>12}", name(choice));
        let remark = remark(choice, plan, study);
        let whole = format!("{line}   {remark}");
        if whole.chars().count() <= columns {
            lines.push(whole.trim_end().to_owned());
        } else {
            lines.push(line);
            lines.extend(wrapped(&remark, columns, "    ", "    "));
        }
    }
    lines
}

fn name(choice: &Choice) -> String {
    match &*choice.settings {
        "" => choice.engine.clone(),
        settings => format!("{}, {settings}", choice.engine),
    }
}

/// Whether a run takes it, or what has to be said for that.
fn remark(choice: &Choice, plan: &Plan, study: &Study) -> String {
    let priced = plan.assumptions.get("engine") == Some(&name(choice));
    let left_open = study.compute.engine == ComputeEngine::Auto && choice.engine == "gmw";
    // A run knows its link once it has measured it.
    let by_link = match study.compute.ot.is_none() && choice.engine == "gmw" {
        true => "; what makes its OTs it chooses by the link that it measures",
        false => "",
    };
    match (&choice.needs, priced, choice.recommended) {
        (Some(needs), ..) => format!("needs {needs}"),
        (None, true, true) => {
            format!("a run takes it (priced above), and it is the fastest here{by_link}")
        }
        (None, true, false) if left_open => {
            format!("a run takes it (priced above): engine = \"auto\" is gmw wherever that runs{by_link}")
        }
        (None, true, false) => "a run takes it (priced above)".to_owned(),
        (None, false, true) => format!(
            "the fastest here; a run takes it if both agree on compute.engine = \"{}\" in the study",
            choice.engine
        ),
        (None, false, false) => String::new(),
    }
}

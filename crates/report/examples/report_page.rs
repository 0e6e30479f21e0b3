//! Writes sample report pages, to look at:
//! `cargo run --release -p report --example report_page -- DIRECTORY`.

use report::*;

#[path = "../src/html/samples.rs"]
mod samples;

fn main() -> std::io::Result<()> {
    let directory = std::path::PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let pages = [
        ("registry", samples::registry()),
        ("hospitals", samples::hospitals()),
        ("shop", samples::shop()),
        ("program", samples::program()),
        ("derived", samples::derived()),
        ("both-derived", samples::both_derived()),
        ("hostile", samples::hostile()),
        ("broken", samples::broken_numbers()),
        ("stored", samples::stored()),
        ("both", samples::both()),
        ("both-by-groups", samples::both_by_groups()),
        ("both-of-a-program", samples::both_of_a_program()),
        ("nothing", samples::nothing()),
        ("many", samples::many()),
    ];
    for (name, report) in &pages {
        std::fs::write(directory.join(name).with_extension("html"), report::html::render(report))?;
        println!("--- {name}\n{}", report::summary::terminal(report, report::summary::USUAL_COLUMNS));
    }
    let both = [&pages[0].1, &pages[1].1];
    println!(
        "--- side by side\n{}",
        report::summary::lift_table(&both, Some(-0.000_407), report::summary::USUAL_COLUMNS)
    );
    Ok(())
}

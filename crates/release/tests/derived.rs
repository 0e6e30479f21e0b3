//! How often the intervals of derived statistics cover the value of the population.
//!
//! Each cell of the grid draws rows of a law, noises their sums and reads the statistic. No cell's interval
//! of its coverage (Clopper and Pearson 1934, 99.9 %) may lie below the level minus .5 points.

#[path = "derived/grid.rs"]
mod grid;
#[path = "derived/laws.rs"]
mod laws;
#[path = "derived/trials.rs"]
mod trials;

use grid::{RHOS, ROWS, grid};

fn check(cells: Vec<trials::StudyCell>, trials: u64) {
    println!(
        "statistic       law                        rows   rho level covered (low, high)  half-width    no noise"
    );
    let mut failed = Vec::new();
    for cell in cells {
        for outcome in cell.run(trials) {
            println!("{}", outcome.line);
            if outcome.fails {
                failed.push(outcome.line);
            }
        }
    }
    assert!(failed.is_empty(), "{} cells cover too rarely:\n{}", failed.len(), failed.join("\n"));
}

/// Few trials of a part of the grid.
#[test]
fn intervals_cover() {
    check(grid(&[500], &[Some(0.1), None]), 200);
}

/// The whole grid (`make soak`). TACIT_DERIVED is a part of the names of cells, TACIT_TRIALS
/// how many trials each has.
#[test]
#[ignore = "takes an hour"]
fn intervals_cover_everywhere() {
    let trials = std::env::var("TACIT_TRIALS").map_or(20_000, |t| t.parse().unwrap());
    let wanted = std::env::var("TACIT_DERIVED").unwrap_or_default();
    let cells = grid(&ROWS, &RHOS).into_iter().filter(|cell| cell.name().contains(&wanted)).collect();
    check(cells, trials);
}

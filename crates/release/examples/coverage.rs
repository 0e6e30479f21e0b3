//! Prints the simulated coverage of every mode: the table of `docs/protocols/release.md`.
//!
//! `cargo run --release -p release --example coverage -- [trials]`

use base::Seed;
use release::coverage::{Plan, laws, simulate};
use release::rational::ratio;
use release::{Mode, Viewer};

fn main() -> Result<(), base::Error> {
    let trials = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2000);
    println!(
        "mode, view: lowest coverage at nominal 95 % over n per arm 1e3..1e6 and rho .01, .1, 1 ({trials} trials each)"
    );
    let modes = [Mode::Sums, Mode::Variance, Mode::Algorithm1, Mode::Algorithm1AsPublished];
    for mode in modes {
        for viewer in [Viewer::Publisher, Viewer::Advertiser] {
            for law in laws() {
                let mut lowest = (1.0, String::new());
                for n in [1_000, 10_000, 100_000, 1_000_000] {
                    for rho in [1, 10, 100] {
                        let rho = ratio(rho, 100);
                        let plan = Plan { mode, viewer, n, rho: rho.clone(), confidence: 0.95, trials };
                        // A group that is too small is not released; it covers nothing and misleads nobody.
                        let Ok(coverage) = simulate(&law, &plan, Seed::from_bytes([7; 32])) else { continue };
                        if coverage.covered < lowest.0 {
                            lowest =
                                (coverage.covered, format!("n {n}, rho {rho}, width {:.2}", coverage.width));
                        }
                    }
                }
                println!("{mode:?} {viewer:?} {}: {:.1} % ({})", law.name, 100.0 * lowest.0, lowest.1);
            }
        }
    }
    Ok(())
}

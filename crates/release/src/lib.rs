//! Differentially private release of a randomised trial: the mathematics and the pure steps.
//!
//! Functionality: from the totals n, S, Q of each arm (rows, sum and sum of squares of the clamped outcome)
//! to a noised estimate with an honest interval, with a stated zCDP charge, and with noise that the party
//! that did not draw it has checked. Nothing here talks to anybody: `job` carries the messages and holds the
//! ledger.
//!
//! * [`alias`]: the discrete Gaussian from coins alone, for circuits.
//! * [`gaussian`]: the exact discrete Gaussian and Laplace, integers only, over the caller's generator.
//! * [`joint`]: n, S and Q by one mechanism, charged for what one row does to all three.
//! * [`scale`]: sensitivities and noise variances of the fixed-point modes as exact rationals, and rho as
//!   epsilon.
//! * [`fixed`]: the fixed-point values of `variance` and `algorithm1`, the reference for the circuit.
//! * [`modes`]: noised values to estimate, interval, p-value; the smallest detectable effect.
//! * [`choose`]: seeded cut-and-choose, as states that are consumed.
//! * [`derived`]: means, ratios, spreads, correlations, regressions and quantiles from noised sums.
//! * [`holm`]: p-values of several tests at once.
//! * [`coverage`]: simulated coverage of the intervals, for `tacit audit`; [`binomial`]: what its counts say.
//!
//! Guarantees, formulas and errata: `docs/protocols/release.md`.

pub mod alias;
pub mod binomial;
mod change;
pub mod choose;
pub mod coverage;
pub mod derived;
pub mod fixed;
pub mod gaussian;
mod holm;
pub mod joint;
pub mod modes;
pub mod normal;
pub mod rational;
pub mod scale;
mod transcript;

pub use change::SumChange;
pub use holm::holm;
pub use rational::Rational;
pub use scale::{ReaderRole, ReleaseMode};
pub use transcript::Bytes32;

//! Prints what another implementation is compared with: epsilons, and draws of noise. `make test-python` runs
//! it.
//!
//!     cargo run --release -p release --example witness -- epsilon 1/10 1e-6
//!     cargo run --release -p release --example witness -- gaussian 17/3 100000    # sigma^2, how many
//!     cargo run --release -p release --example witness -- coins 200 2 2/25
//!     100000 # sensitivity, cells, rho, how many
//!
//! Noise of coins is printed as 2^e and sigma_Y^2 on the first line, then Y of each draw, which is what its
//! law is stated of.

use num_bigint::BigInt;
use release::Rational;
use release::alias::Sampler;
use release::gaussian::DiscreteGaussian;
use release::rational::to_f64;
use release::scale::rho_to_epsilon;
use std::str::FromStr;

/// Draws at most.
const MOST: usize = 10_000_000;

fn main() -> Result<(), base::Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["epsilon", rho, delta] => {
            let (rho, delta) = (read::<Rational>(rho)?, read::<f64>(delta)?);
            println!("{}", rho_to_epsilon(to_f64(&rho), delta));
        }
        ["gaussian", sigma2, count] => {
            let law = DiscreteGaussian::new(&read(sigma2)?)?;
            let mut rng = base::Seed::from_system().into_rng();
            (0..read::<usize>(count)?.min(MOST)).for_each(|_| println!("{}", law.sample(&mut rng)));
        }
        ["coins", sensitivity, cells, rho, count] => {
            let law = Sampler::new(&read::<BigInt>(sensitivity)?, read(cells)?, &read(rho)?)?;
            println!("{} {}", 1u64 << law.low_bits, law.variance_y);
            let mut rng = base::Seed::from_system().into_rng();
            for _ in 0..read::<usize>(count)?.min(MOST) {
                let coins: Vec<bool> = (0..law.coins()).map(|_| rng.below(2) == 1).collect();
                println!("{}", law.draw(&coins).0);
            }
        }
        _ => {
            return Err(base::Error::input(
                "arguments: epsilon RHO DELTA | gaussian SIGMA2 COUNT | coins D CELLS RHO COUNT",
            ));
        }
    }
    Ok(())
}

fn read<T: FromStr>(text: &str) -> Result<T, base::Error> {
    text.parse().map_err(|_| base::Error::input(format!("{text:?} is no such number")))
}

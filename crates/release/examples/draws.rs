//! Prints draws of the discrete Gaussian, for comparing with another implementation.
//!
//! `cargo run --release -p release --example draws -- 17/3 100000`

use release::gaussian::DiscreteGaussian;

fn main() -> Result<(), base::Error> {
    let mut arguments = std::env::args().skip(1);
    let sigma2 = arguments.next().and_then(|text| text.parse().ok());
    let count = arguments.next().map_or(Some(1000u32), |text| text.parse().ok());
    let (Some(sigma2), Some(count)) = (sigma2, count) else {
        return Err(base::Error::input("arguments: sigma^2 as p or p/q, and how many draws"));
    };
    let law = DiscreteGaussian::new(&sigma2)?;
    let mut rng = base::Seed::from_system().into_rng();
    for _ in 0..count {
        println!("{}", law.sample(&mut rng));
    }
    Ok(())
}

//! The reference: answers in ordinary Rust, from the definitions and not from the programs.

use super::Problem;
use base::Error;

/// What the customer learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarketAnswer {
    /// Row and score of the best resource; `None`: no match.
    Best(Option<(u64, u128)>),
    /// By row, whether it matches.
    All(Vec<bool>),
}

/// The answer to columns by name, in the clear; `value(name, row)`.
///
/// # Errors
/// Those of `value`.
pub fn truth(
    problem: Problem,
    rows: u64,
    value: &dyn Fn(&str, u64) -> Result<u128, Error>,
) -> Result<MarketAnswer, Error> {
    let mut scores = Vec::with_capacity(rows as usize);
    for row in 0..rows {
        scores.push(score(problem, &|name| value(name, row))?);
    }
    if problem == Problem::MobileAll {
        return Ok(MarketAnswer::All(scores.iter().map(Option::is_some).collect()));
    }
    let least = matches!(problem, Problem::CloudPrice | Problem::Car | Problem::MobileClosest);
    let mut best: Option<(u64, u128)> = None;
    for (row, score) in (0..).zip(scores) {
        let Some(score) = score else { continue };
        if best.is_none_or(|(_, held)| if least { score < held } else { score > held }) {
            best = Some((row, score));
        }
    }
    Ok(MarketAnswer::Best(best))
}

/// The score of one resource, `None` where it does not match.
fn score(problem: Problem, value: &dyn Fn(&str) -> Result<u128, Error>) -> Result<Option<u128>, Error> {
    Ok(match problem {
        Problem::P2p => (value("wanted")? == 1).then_some(value("bandwidth")?),
        Problem::Car => (value("wanted")? == 1 && value("on_offer")? == 1).then_some(value("price")?),
        Problem::CloudPrice | Problem::CloudQuality => {
            let (quality, price) = (value("quality")?, value("price")?);
            let fits = quality >= value("min_quality")? && price <= value("max_price")?;
            fits.then_some(if problem == Problem::CloudPrice { price } else { quality })
        }
        Problem::MobileAll | Problem::MobileClosest | Problem::MobileResource => {
            let (x, y) = (value("x")?.abs_diff(value("at_x")?), value("y")?.abs_diff(value("at_y")?));
            let distance = x * x + y * y;
            let near = distance <= value("radius")? * value("radius")?;
            let (wanted, has) = (value("wanted")?, value("interests")?);
            if problem == Problem::MobileResource {
                near.then_some(u128::from((wanted & has).count_ones()))
            } else {
                (near && wanted & !has == 0).then_some(distance)
            }
        }
    })
}

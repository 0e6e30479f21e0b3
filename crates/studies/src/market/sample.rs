//! Made-up marketplaces: realistic values, what each party holds of them, and the true answer.

use super::{CUSTOMER, MarketAnswer, Problem, provider, truth};
use base::{Error, PartyId, Rng, Seed};
use program::ShardRows;
use program::{Holder, Program};
use std::fmt::Write;
use std::sync::Arc;

/// Worst and best score that a resource of the paper's circuit may have.
const SCORES: (u64, u64) = (1, 0xfffe);

/// A made-up marketplace.
#[derive(Clone, Debug)]
pub struct MarketSample {
    problem: Problem,
    program: Program,
    rows: u64,
    /// By column of the program, whole.
    columns: Arc<Vec<Vec<u128>>>,
}

impl MarketSample {
    /// Resources and a question for a problem's program. The same seed gives the same marketplace. About half
    /// of the resources are asked for, as in the paper's measurements.
    #[must_use]
    pub fn new(problem: Problem, program: Program, rows: u64, seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let seed = Seed::from_bytes(bytes).fork(&format!("market {problem}"));
        let draw = |column: &program::RowColumn| {
            let mut rng = seed.fork(&column.name).into_rng();
            // A question is the same in every row; which resources are wanted is not.
            let once = column.holder == CUSTOMER.into() && column.ty != program::ValueType::BIT;
            let first = value(problem, &column.name, &mut rng);
            let next = |_| if once { first } else { value(problem, &column.name, &mut rng) };
            (0..rows).map(next).collect()
        };
        let columns = Arc::new(program.columns.iter().map(draw).collect());
        Self { problem, program, rows, columns }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Number of resources.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What one party enters; everything for `None`.
    #[must_use]
    pub fn part(&self, party: Option<PartyId>) -> MarketPart {
        MarketPart { sample: self.clone(), party }
    }

    /// The true answer.
    ///
    /// # Errors
    /// When the program has not the problem's columns.
    pub fn truth(&self) -> Result<MarketAnswer, Error> {
        truth(self.problem, self.rows, &|name, row| {
            let column = self.program.columns.iter().position(|c| c.name == name);
            let column = column.ok_or_else(|| Error::misuse(format!("the program has no column {name}")))?;
            Ok(self.columns[column][row as usize])
        })
    }

    /// A party's file, as an aligned study wants it: the key of every row and the columns that the party
    /// holds; of a provider zeros in the rows that are not its own.
    #[must_use]
    pub fn csv(&self, party: PartyId) -> String {
        let mine = |holder: Holder| match holder {
            Holder::Shared => party != CUSTOMER,
            other => other.held_by(party),
        };
        let held: Vec<usize> =
            (0..self.columns.len()).filter(|c| mine(self.program.columns[*c].holder)).collect();
        let mut text = String::from("id");
        held.iter().for_each(|c| text.extend([",", &self.program.columns[*c].name]));
        text.push('\n');
        for row in 0..self.rows {
            let own = party == CUSTOMER || provider(row, self.program.parties.len()) == party;
            text.push_str(&self.key(row));
            for column in &held {
                let value = if own { self.columns[*column][row as usize] } else { 0 };
                // Writing to a string does not fail.
                let _ = write!(text, ",{value}");
            }
            text.push('\n');
        }
        text
    }

    /// The public key of a row: `peer-00042`.
    #[must_use]
    pub fn key(&self, row: u64) -> String {
        format!("{}-{row:05}", self.problem.resource())
    }
}

/// A value of a column. Prices, qualities and bandwidths crowd at the low end, as they do; users live in a
/// town.
fn value(problem: Problem, name: &str, rng: &mut Rng) -> u128 {
    let score = |rng: &mut Rng| {
        let (low, high) = SCORES;
        let span = rng.below(high - low + 1);
        low + rng.below(span + 1)
    };
    let between = |rng: &mut Rng, low: u64, high: u64| low + rng.below(high - low + 1);
    u128::from(match name {
        "on_offer" => u64::from(rng.below(4) != 0),
        "wanted" if matches!(problem, Problem::P2p | Problem::Car) => rng.below(2),
        // Few interests are asked for, many are had.
        "wanted" => rng.below(1 << 16) & rng.below(1 << 16) & rng.below(1 << 16),
        "interests" => rng.below(1 << 16) | rng.below(1 << 16),
        "min_quality" => between(rng, 2_000, 20_000),
        "max_price" => between(rng, 10_000, 40_000),
        "x" | "y" => between(rng, 20_000, 40_000),
        "at_x" | "at_y" => between(rng, 25_000, 35_000),
        "radius" => between(rng, 5_000, 15_000),
        _ => score(rng),
    })
}

/// What one party enters of a made-up marketplace.
#[derive(Clone, Debug)]
pub struct MarketPart {
    sample: MarketSample,
    party: Option<PartyId>,
}

impl ShardRows for MarketPart {
    fn len(&self) -> u64 {
        self.sample.rows
    }

    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let MarketSample { program, columns, .. } = &self.sample;
        let foreign = || Error::misuse(format!("column {column} is not held here"));
        let (held, values) =
            program.columns.iter().zip(columns.iter()).nth(column as usize).ok_or_else(foreign)?;
        let Some(me) = self.party else {
            into.copy_from_slice(&values[from as usize..from as usize + into.len()]);
            return Ok(());
        };
        if !held.holder.held_by(me) {
            return Err(foreign());
        }
        for (row, out) in (from..).zip(into) {
            let mine = held.holder != Holder::Shared || provider(row, program.parties.len()) == me;
            *out = if mine { values[row as usize] } else { 0 };
        }
        Ok(())
    }
}

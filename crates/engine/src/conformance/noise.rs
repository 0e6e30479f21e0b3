//! Scripted noise: coins that are given beforehand, dealt to those who toss them, or candidates.

use crate::Entered;
use base::{Error, PartyId, Seed};
use program::lower::{NoisedAt, ReleasePlan, ReleaseWord, WordKind};
use release::alias::Sampler;

/// The noise of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noise {
    /// For programs without mechanisms.
    None,
    /// By mechanism and output: how it is drawn, and the coins of the draw.
    Coins(Vec<Vec<(Sampler, Vec<bool>)>>),
    /// `[candidate][mechanism][output]` of so many bits each, all of which enter.
    Candidates(u8, Vec<Vec<Vec<i128>>>),
}

impl Noise {
    /// The sampler of an output.
    ///
    /// # Panics
    /// When the noise is not of coins.
    #[must_use]
    pub fn sampler(&self, at: NoisedAt) -> &Sampler {
        let Self::Coins(all) = self else { panic!("noise of coins") };
        &all[at.mechanism as usize][at.output as usize].0
    }

    /// What a circuit adds with this noise of coins: Z, less what is taken off inside.
    ///
    /// # Panics
    /// As [`Noise::sampler`].
    #[must_use]
    pub fn drawn(&self, at: NoisedAt) -> i128 {
        let Self::Coins(all) = self else { panic!("noise of coins") };
        let (sampler, coins) = &all[at.mechanism as usize][at.output as usize];
        sampler.left(coins)
    }

    /// Puts a participant's part of the scripted noise into what it enters.
    ///
    /// # Errors
    /// When candidates do not fit the plan.
    pub fn script(&self, plan: &ReleasePlan, mut entered: Entered, me: PartyId) -> Result<Entered, Error> {
        if let Self::Candidates(_, all) = self {
            let viewer = plan.viewer.only().ok_or_else(|| Error::misuse("candidates are for one viewer"))?;
            let of = |all: &Vec<Vec<i128>>| {
                let pick = |kind| match kind {
                    WordKind::Candidate(at, 0) => Some(all[at.mechanism as usize][at.output as usize]),
                    _ => None,
                };
                plan.words.iter().filter_map(|word| pick(word.kind)).collect()
            };
            let drawn: Vec<Vec<i128>> = all.iter().map(of).collect();
            return if me == viewer { Ok(entered) } else { entered.with_candidates(plan, &drawn) };
        }
        self.deal(&plan.words, &mut entered, me);
        Ok(entered)
    }

    /// Puts a participant's part of the coins into what it enters for these words.
    pub fn deal(&self, words: &[ReleaseWord], entered: &mut Entered, me: PartyId) {
        for (word, owner, value) in self.dealt(words) {
            if owner.is_none_or(|owner| owner == me) {
                entered.set(word, value);
            }
        }
    }

    /// Every word of coins with its value, and whose it is: the same deal everywhere. Summands are
    /// everybody's here; a server reads those that it holds.
    fn dealt(&self, words: &[ReleaseWord]) -> Vec<(usize, Option<PartyId>, u128)> {
        let Self::Coins(all) = self else { return Vec::new() };
        let mut rng = Seed::from_bytes([0x5c; 32]).into_rng();
        let mut dealt = Vec::new();
        let mut rest = 0;
        for (index, word) in words.iter().enumerate() {
            let (at, piece, number, owner) = match word.kind {
                WordKind::Coins(at, piece) => (at, piece, usize::from(word.owner.0), Some(word.owner)),
                WordKind::CoinSummand(at, piece, j) => (at, piece, usize::from(j), None),
                _ => continue,
            };
            let mask = u128::MAX >> (128 - u32::from(word.width));
            if number == 0 {
                let coins = &all[at.mechanism as usize][at.output as usize].1;
                let mine = coins.iter().skip(128 * usize::from(piece)).take(word.width.into());
                rest = mine.enumerate().fold(0, |value, (i, coin)| value | u128::from(*coin) << i);
            }
            let next = words.get(index + 1).map(|next| next.kind);
            let last = match next {
                Some(WordKind::Coins(next, same)) => (next, same) != (at, piece),
                Some(WordKind::CoinSummand(next, same, _)) => (next, same) != (at, piece),
                _ => true,
            };
            let value = if last { rest } else { u128::from_le_bytes(rng.bytes()) & mask };
            rest ^= value;
            dealt.push((index, owner, value));
        }
        dealt
    }
}

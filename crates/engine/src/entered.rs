//! What a participant brings to a release: a value for each word of the plan that it enters or holds.

use crate::Shares;
use base::{Error, PartyId, Rng};
use program::lower::{ReleasePlan, ReleaseWord, WordKind};
use zeroize::Zeroize;

/// Values by word of a [`ReleasePlan`]; none where the word is somebody else's. Wiped on drop.
pub struct Entered {
    words: Vec<Option<u128>>,
}

impl Entered {
    /// This party's shares of totals, and coins of its own. Summands of coins are for the servers' streams,
    /// candidates for [`Entered::with_candidates`].
    ///
    /// # Errors
    /// When a word is this party's and `totals` has no value for it.
    pub fn new(plan: &ReleasePlan, totals: &Shares, me: PartyId, coins: &mut Rng) -> Result<Self, Error> {
        let mut of = |word: &ReleaseWord| match word.kind {
            WordKind::Coins(..) => Ok((word.owner == me).then(|| toss(coins, word.width))),
            WordKind::CoinSummand(..) | WordKind::NoiseSummand(..) | WordKind::Candidate(..) => Ok(None),
            WordKind::Summand(fold, j) => Ok(totals.summand(fold, j)),
            WordKind::Share(_) | WordKind::Alone(_) if word.owner != me => Ok(None),
            WordKind::Share(_) | WordKind::Alone(_) => totals.word(word.kind, me).map(Some),
        };
        Ok(Self { words: plan.words.iter().map(&mut of).collect::<Result<_, _>>()? })
    }

    /// Nothing: of so many words all are other participants', or drawn.
    #[must_use]
    pub fn nothing(words: usize) -> Self {
        Self { words: vec![None; words] }
    }

    /// All words, where one process holds all columns: of a total that is shared the first party's share is
    /// the total, the others' are 0.
    ///
    /// # Errors
    /// When a total is not known.
    pub fn whole(plan: &ReleasePlan, totals: &Shares, coins: &mut Rng) -> Result<Self, Error> {
        let mut of = |word: &ReleaseWord| match word.kind {
            WordKind::Coins(..) => Ok(Some(toss(coins, word.width))),
            WordKind::Candidate(..) => Ok(None),
            WordKind::Share(_) if word.owner.0 > 0 => Ok(Some(0)),
            WordKind::Share(fold) | WordKind::Alone(fold) => {
                totals.word(WordKind::Alone(fold), word.owner).map(Some)
            }
            WordKind::Summand(..) | WordKind::CoinSummand(..) | WordKind::NoiseSummand(..) => {
                Err(Error::misuse("one process holds totals whole, not in summands"))
            }
        };
        Ok(Self { words: plan.words.iter().map(&mut of).collect::<Result<_, _>>()? })
    }

    /// With candidates of noise that this party has drawn: `[candidate][noise]`, in the order of the plan's
    /// words.
    ///
    /// # Errors
    /// When there are fewer or more than the plan has, or one is outside its declared width.
    pub fn with_candidates(mut self, plan: &ReleasePlan, drawn: &[Vec<i128>]) -> Result<Self, Error> {
        let mut next = vec![0; drawn.len()];
        for (place, word) in self.words.iter_mut().zip(&plan.words) {
            let WordKind::Candidate(_, candidate) = word.kind else { continue };
            let candidate = candidate as usize;
            let noise = drawn.get(candidate).and_then(|noises| noises.get(next[candidate]));
            let noise =
                *noise.ok_or_else(|| Error::misuse("fewer noises were drawn than the release has"))?;
            next[candidate] += 1;
            let room = -(1i128 << (word.width - 1))..1i128 << (word.width - 1);
            if word.width < 128 && !room.contains(&noise) {
                return Err(Error::misuse("a noise is outside its declared width"));
            }
            *place = Some(noise as u128);
        }
        if next.iter().zip(drawn).any(|(used, drawn)| *used != drawn.len()) {
            return Err(Error::misuse("more noises were drawn than the release has"));
        }
        Ok(self)
    }

    /// Another value for a word: for tests that fix coins.
    pub fn set(&mut self, word: usize, value: u128) {
        self.words[word] = Some(value);
    }

    /// The value of a word, if it is here.
    #[must_use]
    pub fn get(&self, word: usize) -> Option<u128> {
        self.words[word]
    }

    /// The value of a word that this participant enters.
    ///
    /// # Errors
    /// When it is not here.
    pub fn need(&self, word: usize) -> Result<u128, Error> {
        self.words[word].ok_or_else(|| Error::misuse("a word of a release is another participant's"))
    }
}

fn toss(coins: &mut Rng, width: u8) -> u128 {
    u128::from_le_bytes(coins.bytes()) & u128::MAX >> (128 - u32::from(width))
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.words.zeroize();
    }
}

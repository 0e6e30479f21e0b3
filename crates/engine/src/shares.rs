//! What leaves a unit of rows: for each fold a uniformly random share, or a total that its owner knows alone.

use base::{Error, PartyId};
use program::{Program, RowFold};
use zeroize::Zeroize;

/// Servers that hold what is shared in summands.
pub const SERVERS: usize = program::lower::SUMMANDS as usize;

/// One party's part of one fold's total.
#[derive(Clone, PartialEq, Eq)]
pub enum Share {
    /// An additive share modulo 2^width. Uniformly random, except that a fold which adds numbers known to
    /// their owners leaves each owner its own sum: enter a share into a release, never send it to anybody.
    Additive(u128),
    /// An exclusive-or share of the fold's word ([`program::RowFold::word_bits`]).
    Boolean(u128),
    /// Exclusive-or shares of one bit per row, packed: row r is bit r mod 64 of word r / 64.
    Rows(Vec<u64>),
    /// Summands of the fold's word as a server holds them, by number: all but its own. A sum is their sum
    /// modulo 2 to the power of [`Program::summand_bits`], a best row's word their exclusive or.
    Replicated([Option<u128>; SERVERS]),
    /// Summands of one bit per row, packed as [`Share::Rows`]; their exclusive or is the list.
    ReplicatedRows([Option<Vec<u64>>; SERVERS]),
    /// The whole word, which this party computes from its own columns.
    Known(u128),
    /// Others know the total, or hold it.
    Absent,
}

/// One party's parts of all folds' totals.
#[derive(Clone, PartialEq, Eq)]
pub struct Shares {
    folds: Vec<Share>,
}

impl Shares {
    /// From one entry per fold.
    #[must_use]
    pub fn new(folds: Vec<Share>) -> Self {
        Self { folds }
    }

    /// One entry per fold, in order.
    #[must_use]
    pub fn folds(&self) -> &[Share] {
        &self.folds
    }

    /// Adds another unit's shares, modulo 2^width of each fold or its summands.
    ///
    /// # Errors
    /// When the units do not belong to the same program.
    pub fn add(&mut self, program: &Program, other: &Shares) -> Result<(), Error> {
        if self.folds.len() != program.folds.len() || other.folds.len() != program.folds.len() {
            return Err(Error::misuse("shares of another program"));
        }
        let folds = program.folds.iter().zip(program.summand_bits());
        for ((mine, theirs), (fold, bits)) in self.folds.iter_mut().zip(&other.folds).zip(folds) {
            let RowFold::Sum { ty, .. } = fold else {
                return Err(Error::misuse("only sums are computed in more than one unit"));
            };
            *mine = match (&*mine, theirs) {
                (Share::Additive(a), Share::Additive(b)) => Share::Additive(a.wrapping_add(*b) & ty.mask()),
                (Share::Known(a), Share::Known(b)) => Share::Known(a.wrapping_add(*b) & ty.mask()),
                (Share::Absent, Share::Absent) => Share::Absent,
                (Share::Replicated(a), Share::Replicated(b))
                    if a.iter().zip(b).all(|(a, b)| a.is_some() == b.is_some()) =>
                {
                    let mask = program::ValueType::u(bits).mask();
                    let add = |j: usize| Some(a[j]?.wrapping_add(b[j]?) & mask);
                    Share::Replicated(std::array::from_fn(add))
                }
                _ => {
                    return Err(Error::misuse(
                        "units disagree on who knows a total, or their shares do not add",
                    ));
                }
            };
        }
        Ok(())
    }

    /// A summand of a fold's word, where this participant holds it.
    #[must_use]
    pub fn summand(&self, fold: u32, j: u8) -> Option<u128> {
        match self.folds.get(fold as usize) {
            Some(Share::Replicated(summands)) => summands[usize::from(j)],
            _ => None,
        }
    }

    /// What this party enters for a word of a release: a share of a total, or a total.
    ///
    /// # Errors
    /// When the word is not this party's to enter.
    pub fn word(&self, kind: program::lower::WordKind, me: PartyId) -> Result<u128, Error> {
        use program::lower::WordKind;
        let share = |fold: u32| self.folds.get(fold as usize).unwrap_or(&Share::Absent);
        match kind {
            WordKind::Share(fold) => match share(fold) {
                Share::Additive(value) | Share::Boolean(value) => Ok(*value),
                _ => Err(Error::misuse(format!("{me} holds no share of fold {fold}"))),
            },
            WordKind::Alone(fold) => match share(fold) {
                Share::Known(value) => Ok(*value),
                _ => Err(Error::misuse(format!("{me} does not know the total of fold {fold}"))),
            },
            _ => Err(Error::misuse("only totals and their shares are entered from shares")),
        }
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        for share in &mut self.folds {
            match share {
                Share::Additive(value) | Share::Boolean(value) | Share::Known(value) => value.zeroize(),
                Share::Rows(rows) => rows.zeroize(),
                Share::Replicated(summands) => summands.zeroize(),
                Share::ReplicatedRows(summands) => summands.zeroize(),
                Share::Absent => {}
            }
        }
    }
}

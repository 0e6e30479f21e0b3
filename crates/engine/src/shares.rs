//! What leaves a unit of rows: for each fold a uniformly random share, or a total that its owner knows alone.

use base::{Error, PartyId};
use program::{Program, RowFold};
use zeroize::{Zeroize, Zeroizing};

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

    /// As a worker hands them to its coordinator, or a party keeps them: of each fold what it is (1 byte: 0
    /// absent, 1 known, 2 additive, 3 boolean, 4 rows) and 16 bytes, or how many words (4 bytes) and words.
    ///
    /// # Errors
    /// Of summands, which servers hold and nobody hands on.
    pub fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(17 * self.folds.len()));
        let value = |tag: u8, value: &u128, bytes: &mut Vec<u8>| {
            bytes.push(tag);
            bytes.extend_from_slice(&value.to_le_bytes());
        };
        for share in &self.folds {
            match share {
                Share::Absent => bytes.push(0),
                Share::Known(known) => value(1, known, &mut bytes),
                Share::Additive(share) => value(2, share, &mut bytes),
                Share::Boolean(share) => value(3, share, &mut bytes),
                Share::Rows(words) => {
                    bytes.push(4);
                    bytes.extend_from_slice(&(words.len() as u32).to_le_bytes());
                    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
                }
                Share::Replicated(_) | Share::ReplicatedRows(_) => {
                    return Err(Error::misuse("summands are not handed on"));
                }
            }
        }
        Ok(bytes)
    }

    /// Shares of a program's folds, of what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn from_bytes(bytes: &[u8], program: &Program) -> Result<Self, Error> {
        let none = || Error::misuse("these bytes are no shares of this program");
        let mut left = bytes;
        let mut take = |len: usize| {
            let (head, rest) = left.split_at_checked(len).ok_or_else(none)?;
            left = rest;
            Ok::<_, Error>(head)
        };
        let mut folds = Vec::with_capacity(program.folds.len());
        for fold in &program.folds {
            let tag = take(1)?[0];
            folds.push(match tag {
                0 => Share::Absent,
                1..=3 => {
                    let value = u128::from_le_bytes(take(16)?.try_into().expect("16 bytes"));
                    let fits = matches!(fold, RowFold::Sum { ty, .. } if value <= ty.mask());
                    match tag {
                        1 if fits || !matches!(fold, RowFold::Sum { .. }) => Share::Known(value),
                        2 if fits => Share::Additive(value),
                        3 => Share::Boolean(value),
                        _ => return Err(none()),
                    }
                }
                4 => {
                    let count = u32::from_le_bytes(take(4)?.try_into().expect("4 bytes")) as usize;
                    let (words, _) = take(8 * count)?.as_chunks::<8>();
                    Share::Rows(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
                }
                _ => return Err(none()),
            });
        }
        if left.is_empty() { Ok(Self { folds }) } else { Err(none()) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = include_str!("../../../examples/aligned.toml");

    fn program() -> Program {
        let text = TEXT.split("text = \"\"\"").nth(1).and_then(|rest| rest.split("\"\"\"").next());
        Program::parse(text.expect("an example has a program").trim_start()).unwrap()
    }

    proptest! {
        #[test]
        fn shares_have_one_form(
            kinds in proptest::collection::vec((0u8..5, any::<u128>()), 1..9),
            cut in 1usize..20,
        ) {
            let program = program();
            let share = |(fold, (kind, value)): (&RowFold, &(u8, u128))| match (kind, fold) {
                (0, _) => Share::Absent,
                (1, _) => Share::Known(value & fold.ty().mask()),
                (2, RowFold::Sum { ty, .. }) => Share::Additive(value & ty.mask()),
                (4, _) => Share::Rows(vec![*value as u64; (value % 4) as usize]),
                _ => Share::Boolean(*value),
            };
            let folds = program.folds.iter().zip(kinds.iter().cycle());
            let shares = Shares::new(folds.map(share).collect());
            let bytes = shares.to_bytes().unwrap();
            prop_assert!(Shares::from_bytes(&bytes, &program).unwrap() == shares);
            prop_assert!(Shares::from_bytes(&bytes[..bytes.len().saturating_sub(cut)], &program).is_err());
            let longer = [&bytes[..], &[0]].concat();
            prop_assert!(Shares::from_bytes(&longer, &program).is_err());
        }
    }
}

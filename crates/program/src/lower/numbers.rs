//! Sums of products, for engines that have a ring beside bits: which words become numbers, which are
//! multiplied, and which bits say what is summed.
//!
//! A product of two words of w bits is about 1.5 w^2 gates; a sum of numbers costs nothing once they are
//! numbers, and a sum of numbers times bits one element, whatever the number of rows. So a sum whose terms
//! are a wide product, or a bit times a wide product, is had of numbers: its factors are words that become
//! numbers, and so does its bit. Other sums of the same numbers and bits come with them for nothing.

use super::bits::SectionGates;
use crate::graph::NodeSection;
use crate::{NodeId, Op, Owners, Program, RowFold};
use circuits::gadgets::LitWord;
use circuits::{CircuitBuilder, Lit};

/// Bits of a word from which on its products are cheaper as numbers.
const WIDE: usize = 20;

/// What is summed as numbers. The roots of the row circuit are the bits of all words, then `bits`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowNumbers {
    /// Bits of each word, unsigned.
    pub words: Vec<usize>,
    /// How many single bits.
    pub bits: usize,
    /// Products of two words.
    pub products: Vec<[usize; 2]>,
    /// What is summed.
    pub sums: Vec<NumberSum>,
}

/// The sum of a number where a bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberSum {
    /// Which number.
    pub number: RowNumber,
    /// Where it counts; `None`: everywhere.
    pub bit: Option<usize>,
}

/// A number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowNumber {
    /// 1.
    One,
    /// A word.
    Word(usize),
    /// A product.
    Product(usize),
}

impl RowNumbers {
    /// Roots of the row circuit.
    #[must_use]
    pub fn roots(&self) -> usize {
        self.words.iter().sum::<usize>() + self.bits
    }
}

pub(super) type LitLeaf<'a> = dyn FnMut(&mut CircuitBuilder, NodeId) -> Option<LitWord> + 'a;

/// The numbers of a program, with the literals of their words and bits.
#[derive(Default)]
pub(super) struct NumberScan {
    numbers: RowNumbers,
    words: Vec<LitWord>,
    bits: Vec<Lit>,
}

/// A term of a sum: a bit times a node.
struct Term {
    bit: Option<NodeId>,
    node: NodeId,
}

impl Term {
    fn new(section: &NodeSection, value: NodeId) -> Self {
        match section.node(value).op {
            Op::Select(bit, node, zero) if section.node(zero).op == Op::Const(0) => {
                Self { bit: Some(bit), node }
            }
            _ => Self { bit: None, node: value },
        }
    }
}

fn position_or_push<T: PartialEq>(of: &mut Vec<T>, item: T) -> usize {
    of.iter().position(|other| *other == item).unwrap_or_else(|| {
        of.push(item);
        of.len() - 1
    })
}

/// The bits of an unsigned node, without those at the top that are zero for every row.
fn word(bits: &mut SectionGates<'_>, leaf: &mut LitLeaf<'_>, id: NodeId) -> LitWord {
    let mut word = bits.word(id, leaf);
    while word.last() == Some(&Lit::FALSE) {
        word.pop();
    }
    word
}

/// The factors of a product that is wide and does not wrap.
fn factors(bits: &mut SectionGates<'_>, leaf: &mut LitLeaf<'_>, id: NodeId) -> Option<[LitWord; 2]> {
    let (section, ty) = (bits.section, bits.section.ty(id));
    let Op::Mul(x, y) = section.node(id).op else { return None };
    if ty.signed {
        return None;
    }
    let factors = [x, y].map(|id| word(bits, leaf, id));
    let wide = factors.iter().all(|word| word.len() >= WIDE);
    let fits = factors.iter().map(Vec::len).sum::<usize>() <= ty.width.into();
    (wide && fits).then_some(factors)
}

impl NumberScan {
    /// Finds the wide products that nobody knows alone, and what they are of.
    pub fn new(
        program: &Program,
        owners: &[Owners],
        bits: &mut SectionGates<'_>,
        leaf: &mut LitLeaf<'_>,
    ) -> Self {
        let mut found = Self::default();
        let shared = |owners: &Owners| !owners.is_public() && owners.only().is_none();
        for (fold, _) in program.folds.iter().zip(owners).filter(|(_, owners)| shared(owners)) {
            let RowFold::Sum { value, .. } = fold else { continue };
            let term = Term::new(&program.row, *value);
            let Some(factors) = factors(bits, leaf, term.node) else { continue };
            let product = factors.map(|word| position_or_push(&mut found.words, word));
            position_or_push(&mut found.numbers.products, product);
            if let Some(bit) = term.bit {
                position_or_push(&mut found.bits, bits.word(bit, leaf)[0]);
            }
        }
        found
    }

    /// The place of a sum whose number and bit are there.
    pub fn place(
        &mut self,
        fold: &RowFold,
        bits: &mut SectionGates<'_>,
        leaf: &mut LitLeaf<'_>,
    ) -> Option<usize> {
        let RowFold::Sum { value, .. } = fold else { return None };
        if self.words.is_empty() {
            return None;
        }
        let term = Term::new(bits.section, *value);
        let mut bit = match term.bit {
            Some(bit) => Some(self.bit(bits.word(bit, leaf)[0])?),
            None => None,
        };
        let number = if matches!(bits.section.node(term.node).op, Op::Mul(..)) {
            let [x, y] = factors(bits, leaf, term.node)?.map(|word| self.word(&word));
            let product = [x?, y?];
            RowNumber::Product(self.numbers.products.iter().position(|other| *other == product)?)
        } else if bits.section.ty(term.node).signed {
            return None;
        } else {
            let word = word(bits, leaf, term.node);
            match (self.word(&word), &word[..]) {
                (Some(place), _) => RowNumber::Word(place),
                (None, [Lit::TRUE]) if bit.is_some() => RowNumber::One,
                (None, [counted]) if bit.is_none() => {
                    bit = Some(self.bit(*counted)?);
                    RowNumber::One
                }
                _ => return None,
            }
        };
        self.numbers.sums.push(NumberSum { number, bit });
        Some(self.numbers.sums.len() - 1)
    }

    fn word(&self, word: &LitWord) -> Option<usize> {
        self.words.iter().position(|other| other == word)
    }

    fn bit(&self, bit: Lit) -> Option<usize> {
        self.bits.iter().position(|other| *other == bit)
    }

    /// The numbers and their roots.
    pub fn finish(self) -> (RowNumbers, LitWord) {
        let Self { mut numbers, words, bits } = self;
        numbers.words = words.iter().map(Vec::len).collect();
        numbers.bits = bits.len();
        (numbers, words.into_iter().flatten().chain(bits).collect())
    }
}

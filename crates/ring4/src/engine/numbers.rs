//! Sums of numbers times bits, over the ring.
//!
//! **Functionality.** Of every row some words and single bits; the seats hold the sums over all rows of words
//! and of products of words, where a bit is set or everywhere ([`program::lower::RowNumbers`]).
//!
//! **How.** Words and bits become elements of Z_2^128 ([`SeatParty::word_to_ring`],
//! [`SeatParty::bits_to_ring`]), so that what an owner entered in w bits is below 2^w whatever it entered.
//! Products are one round. A sum of numbers times bits is an inner product: one element per sum and chunk,
//! whatever the rows; a sum of numbers alone, or of bits, is local.
//!
//! **Security, who learns what.** That of conversions and products.
//!
//! **Cost** per row: about 25 w bits and 128 B per word, 96 B per bit and per product. Over Z_2 the square of
//! 32 bits alone takes 1.1 kB, and every bit that selects it 96 B.

use crate::bits::{BitSlices, LANES};
use crate::vectors::arithmetic::ArithmeticShares;
use crate::{Planes, RoundQuote, SeatParty, SharedVector, VectorRing};
use base::Error;
use kernels::Block;
use net::Session;
use program::lower::{NumberSum, RowNumber, RowNumbers};

const RING: VectorRing = VectorRing::Z128;

/// The sums so far at one seat, by its parts.
pub(crate) struct Sums<'a> {
    numbers: &'a RowNumbers,
    totals: Vec<[u128; 3]>,
}

impl<'a> Sums<'a> {
    pub fn new(numbers: &'a RowNumbers) -> Self {
        Self { numbers, totals: vec![[0; 3]; numbers.sums.len()] }
    }

    /// Takes in so many rows: the bits of all words, then the single bits.
    pub fn absorb(
        &mut self,
        server: &mut SeatParty,
        session: &mut Session,
        rows: usize,
        roots: Vec<BitSlices<3>>,
    ) -> Result<(), Error> {
        let planes: Vec<SharedVector> = roots.into_iter().map(BitSlices::into_shares).collect();
        // Each word becomes numbers in rounds of its own.
        let bits: Vec<&SharedVector> = planes.iter().collect();
        let mut words = match SharedVector::onto_device(server, &bits, RING.blocks(rows))? {
            Some(planes) => {
                let all = self.elements(server, session, rows, planes)?;
                SharedVector::from_device(server, all)?
            }
            None => self.elements(server, session, rows, planes)?,
        };
        let mut bits = words.split_off(self.numbers.words.len());
        let products = bits.split_off(self.numbers.bits);
        let number = |sum: &NumberSum| match sum.number {
            RowNumber::One => None,
            RowNumber::Word(word) => Some(&words[word]),
            RowNumber::Product(product) => Some(&products[product]),
        };
        let mut selected = Vec::new();
        for (sum, total) in self.numbers.sums.iter().zip(&mut self.totals) {
            match (number(sum), sum.bit) {
                (Some(number), Some(bit)) => selected.push((number, &bits[bit], total)),
                (number, bit) => {
                    let alone = number.or(bit.map(|bit| &bits[bit]));
                    alone.into_iter().for_each(|terms| add_terms(total, terms));
                }
            }
        }
        inner(server, session, rows, selected)
    }

    /// Words and bits, given bit by bit, over the ring, and then products of words.
    fn elements<V: ArithmeticShares>(
        &self,
        server: &mut SeatParty,
        session: &mut Session,
        rows: usize,
        planes: Vec<V>,
    ) -> Result<Vec<V>, Error> {
        let RowNumbers { words, products, .. } = self.numbers;
        let mut planes = planes.into_iter();
        let mut all = Vec::with_capacity(words.len() + planes.len() + products.len());
        for width in words {
            let word = Planes::new(planes.by_ref().take(*width).collect())?;
            all.push(server.word_to_ring(session, RING, &word)?);
        }
        let bits: Vec<V> = planes.collect();
        all.extend(server.bits_to_ring(session, RING, &bits.iter().collect::<Vec<_>>())?);
        if !products.is_empty() {
            let mut factors = Vec::with_capacity(2);
            for which in [0, 1] {
                let of: Vec<&V> = products.iter().map(|product| &all[product[which]]).collect();
                factors.push(V::concat(server, &of)?);
            }
            let product = factors[0].product(server, session, &factors[1])?;
            all.extend(product.cut(&vec![rows; products.len()]));
        }
        Ok(all)
    }

    /// The totals modulo 2^128, in the order of [`RowNumbers::sums`].
    pub fn finish(self) -> Vec<[u128; 3]> {
        self.totals
    }
}

fn add_terms(total: &mut [u128; 3], terms: &SharedVector) {
    for (total, part) in total.iter_mut().zip(terms.parts()) {
        *total = part.iter().fold(*total, |sum, term| sum.wrapping_add(term.0));
    }
}

/// Adds the inner products of numbers and bits to totals: one round.
fn inner(
    server: &mut SeatParty,
    session: &mut Session,
    rows: usize,
    selected: Vec<(&SharedVector, &SharedVector, &mut [u128; 3])>,
) -> Result<(), Error> {
    if selected.is_empty() {
        return Ok(());
    }
    let (numbers, bits): (Vec<&SharedVector>, Vec<&SharedVector>) =
        selected.iter().map(|(n, b, _)| (*n, *b)).unzip();
    let factors = [side_by_side(rows, &numbers), side_by_side(rows, &bits)];
    let factors = factors.each_ref().map(SharedVector::parts);
    let sums = server.dots(session, RING, selected.len(), factors)?;
    for (i, (.., total)) in selected.into_iter().enumerate() {
        total.iter_mut().zip(sums.parts()).for_each(|(total, part)| *total = total.wrapping_add(part[i].0));
    }
    Ok(())
}

/// Element t of all vectors, then element t + 1: a dot product's terms.
fn side_by_side(rows: usize, vectors: &[&SharedVector]) -> SharedVector {
    let mut all = SharedVector::zero(RING, rows * vectors.len());
    for (k, part) in all.parts_mut().into_iter().enumerate() {
        let from: Vec<&[Block]> = vectors.iter().map(|vector| vector.parts()[k]).collect();
        for (t, row) in part.chunks_exact_mut(vectors.len()).enumerate() {
            row.iter_mut().zip(&from).for_each(|(to, from)| *to = from[t]);
        }
    }
    all
}

/// Goes through the motions of [`Sums::absorb`].
pub(crate) fn quote(numbers: &RowNumbers, quote: &mut RoundQuote, rows: usize) {
    for width in &numbers.words {
        quote.word_to_ring(RING, rows, *width as u32);
    }
    quote.bits_to_ring(RING, rows, numbers.bits);
    if !numbers.products.is_empty() {
        quote.multiply(RING, rows * numbers.products.len());
    }
    let selected =
        numbers.sums.iter().filter(|sum| sum.bit.is_some() && sum.number != RowNumber::One).count();
    if selected > 0 {
        quote.multiply(RING, selected);
    }
}

/// ANDs of bits that send as much as a row's numbers do, about.
pub(crate) fn and_gates(numbers: &RowNumbers) -> u64 {
    let of_word = |width: &usize| 25 * width / 6 + 8 * LANES / 6;
    let words: usize = numbers.words.iter().map(of_word).sum();
    (words + LANES * (numbers.bits + numbers.products.len())) as u64
}

/// Blocks of vectors that so many rows have at once with a device to which vectors of `least` blocks are
/// handed over, at most; none where a number of each row is less ([`Sums::absorb`]).
pub(crate) fn device_blocks(numbers: &RowNumbers, rows: usize, least: usize) -> usize {
    let RowNumbers { words, bits, products, .. } = numbers;
    let planes = words.iter().sum::<usize>() + bits;
    let (blocks, widest) = (rows.div_ceil(LANES), words.iter().max().copied().unwrap_or(0));
    if planes == 0 || RING.blocks(rows) < least {
        return 0;
    }
    let values = words.len() + bits + products.len();
    // What comes and what stays; of the operation under way its parts: of all bits at once, of one word, or
    // of all products.
    let under_way = (12 * bits).max(12).max(4 * products.len());
    blocks * (2 * planes + 8 * widest) + rows * (2 * values + under_way)
}

/// Bytes that a seat holds at once per 128 rows, about.
pub(crate) fn block_bytes(numbers: &RowNumbers) -> usize {
    let planes = 8 * numbers.words.iter().max().unwrap_or(&0);
    let elements =
        6 + numbers.words.len() + 4 * numbers.bits + 3 * numbers.products.len() + 3 * numbers.sums.len();
    if numbers.words.is_empty() { 0 } else { 48 * (planes + LANES * elements) }
}

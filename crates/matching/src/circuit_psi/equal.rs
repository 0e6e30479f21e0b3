//! Whether two parties' tags agree, bin by bin, as shared bits: a tree of ANDs by GMW.

use base::{Error, PartyId};
use circuits::gadgets;
use circuits::{CircuitBuilder, InputBit, Lit};
use gmw::{GateParty, GateQuote, Layers};
use kernels::{Block, transpose128};
use net::Session;
use ot::OtKind;
use zeroize::Zeroizing;

/// Bins of one evaluation: a multiple of 128.
const LANES: usize = 1 << 20;
/// A tile of the transpose.
const TILE: usize = 128;

/// Bits of a tag among so many bins: a chance match anywhere has probability 2^-40.
#[must_use]
pub fn tag_bits(bins: u64) -> usize {
    40 + bins.next_power_of_two().trailing_zeros() as usize
}

/// `a == b` of words of `bits` bits, one of each party.
fn circuit(bits: usize) -> Layers {
    let mut gates = CircuitBuilder::default();
    let word = |gates: &mut CircuitBuilder, owner: u8| -> Vec<Lit> {
        let input = |bit| InputBit { owner: Some(PartyId(owner)), word: u32::from(owner), bit: bit as u16 };
        (0..bits).map(|bit| gates.input(input(bit))).collect()
    };
    let (a, b) = (word(&mut gates, 0), word(&mut gates, 1));
    let same = gadgets::equal(&mut gates, &a, &b);
    Layers::new(&gates.finish(), &[same])
}

fn pieces(bins: u64) -> impl Iterator<Item = usize> {
    (0..bins).step_by(LANES).map(move |at| (bins - at).min(LANES as u64) as usize)
}

/// How many ANDs the OTs are set up for. Silent OT for few is faster per OT, its secret fits the caches, and
/// that is worth the 1.4 bits per OT instead of 0.2.
fn expected(layers: &Layers, bins: u64) -> u64 {
    ands(layers, bins).min(ot::ferret::SMALL.yields() as u64)
}

/// ANDs of all bins.
fn ands(layers: &Layers, bins: u64) -> u64 {
    layers.and_gates() * bins
}

/// The price of [`shared`].
#[must_use]
pub fn price(kind: OtKind, bins: u64) -> GateQuote {
    let layers = circuit(tag_bits(bins));
    let mut quote = GateQuote::new(2, kind, expected(&layers, bins));
    quote.reserve(ands(&layers, bins));
    pieces(bins).for_each(|lanes| quote.eval(&layers, lanes));
    quote
}

/// Tags, from first to last.
pub trait TagSource {
    /// Replaces `into` by the next `count` tags.
    ///
    /// # Errors
    /// When they cannot be read back.
    fn take(&mut self, count: usize, into: &mut Vec<Block>) -> Result<(), Error>;
}

/// This party's share of the bit "the tags agree" of every bin, packed. Bits of a tag beyond [`tag_bits`] do
/// not count. The tags of one evaluation are in memory at a time.
///
/// # Errors
/// Those of the channel and of the tags.
pub fn shared(
    session: &mut Session,
    kind: OtKind,
    bins: u64,
    tags: &mut dyn TagSource,
) -> Result<Vec<u64>, Error> {
    let layers = circuit(tag_bits(bins));
    let mut party = GateParty::new(session, kind, expected(&layers, bins))?;
    party.reserve(ands(&layers, bins));
    let (mut same, mut done) = (Vec::with_capacity(bins.div_ceil(64) as usize), 0);
    let mut piece = Zeroizing::new(Vec::new());
    for lanes in pieces(bins) {
        tags.take(lanes, &mut piece)?;
        let planes = Zeroizing::new(planes(&piece));
        let mut known = |input: &InputBit, into: &mut [u64]| {
            let plane = planes.chunks_exact(planes.len() / TILE).nth(usize::from(input.bit));
            let plane = plane.expect("a tag has 128 bits").iter();
            let words = plane.flat_map(|block| [block.0 as u64, (block.0 >> 64) as u64]);
            into.iter_mut().zip(words).for_each(|(into, word)| *into = word);
            Ok(())
        };
        let roots = party.eval(&layers, lanes, &mut known, session)?;
        same.extend(roots.into_iter().flatten());
        done += lanes;
        session.report(done as u64, bins);
    }
    Ok(same)
}

/// Bit b of all tags in row b, 128 rows of whole blocks.
fn planes(tags: &[Block]) -> Vec<Block> {
    let columns = tags.len().div_ceil(TILE);
    let mut planes = vec![Block::ZERO; columns * TILE];
    let (mut tile, mut turned) = ([Block::ZERO; TILE], [Block::ZERO; TILE]);
    for (column, tags) in tags.chunks(TILE).enumerate() {
        tile[..tags.len()].copy_from_slice(tags);
        tile[tags.len()..].fill(Block::ZERO);
        transpose128(&tile, &mut turned);
        turned.iter().enumerate().for_each(|(bit, word)| planes[bit * columns + column] = *word);
    }
    planes
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::cluster::Cluster;

    impl TagSource for std::vec::IntoIter<Block> {
        fn take(&mut self, count: usize, into: &mut Vec<Block>) -> Result<(), Error> {
            into.clear();
            into.extend(Iterator::take(&mut *self, count));
            Ok(())
        }
    }

    #[test]
    fn planes_hold_the_bits_of_tags() {
        let tags: Vec<Block> = (0..300u128).map(|i| Block((i << 100) | (i * i))).collect();
        let planes = planes(&tags);
        let columns = planes.len() / TILE;
        for (lane, tag) in tags.iter().enumerate() {
            for bit in 0..128 {
                let plane = planes[bit * columns + lane / TILE];
                assert_eq!(plane.0 >> (lane % TILE) & 1, tag.0 >> bit & 1);
            }
        }
    }

    /// Every single bit of a tag counts, none beyond it does, and the price is the ledger's.
    #[test]
    fn equal_tags_are_found() {
        let bins = 700u64;
        let bits = tag_bits(bins);
        assert_eq!((bits, tag_bits(1024), tag_bits(1025)), (50, 50, 51));
        let tag = |party: usize, bin: usize| {
            let differ = if bin.is_multiple_of(3) { 0 } else { 1u128 << (bin % (bits + 9)) };
            Block((bin as u128 * 0x1234_5678_9abc_def1_2345) ^ if party == 0 { 0 } else { differ })
        };
        let done = Cluster::new(2, 5).run(|session| {
            let tags: Vec<Block> = (0..bins as usize).map(|bin| tag(session.me().index(), bin)).collect();
            let same = shared(session, OtKind::default(), bins, &mut tags.into_iter())?;
            Ok((same, session.traffic().clone()))
        });
        let [(a, ledger_a), (b, ledger_b)]: [_; 2] =
            done.into_iter().map(Result::unwrap).collect::<Vec<_>>().try_into().ok().unwrap();
        for bin in 0..bins as usize {
            let expected = bin.is_multiple_of(3) || bin % (bits + 9) >= bits;
            assert_eq!(kernels::bit(&a, bin) ^ kernels::bit(&b, bin) == 1, expected, "bin {bin}");
        }
        let ones: u32 = a.iter().map(|w| w.count_ones()).sum();
        assert!((200..500).contains(&ones), "{ones} ones: a share shows the result");
        let price = price(OtKind::default(), bins).total();
        assert_eq!(price.sent, [ledger_a.sent(""), ledger_b.sent("")]);
        assert_eq!(price.and_gates, ledger_a.and_gates(""));
    }
}

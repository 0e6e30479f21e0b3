//! What one party knows of a batch: row nodes that it computes in the clear, or words of rows that enter as
//! shares.

use crate::planes::ByteTemps;
use base::{Error, PartyId};
use program::eval::NodeValues;
use program::lower::{EntryKind, GapTerm, JoinedPlan, JoinedWord};
use program::{JoinedRows, ShardRows};
use program::{NodeId, NodeSection, Op, ValueType};
use zeroize::Zeroize;

/// Where a unit's rows come from.
pub(super) enum Feed<'a> {
    /// This party's columns.
    Rows(&'a mut dyn ShardRows),
    /// Shares of entries.
    Joined(&'a mut dyn JoinedRows),
}

impl Feed<'_> {
    pub fn len(&self) -> u64 {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Joined(rows) => rows.len(),
        }
    }
}

/// First row, number of rows, and number of lanes, those filled up with zeros included.
pub(super) type Span = (u64, usize, usize);

/// Values by node and lane.
#[derive(Default)]
pub(super) struct Inputs {
    values: NodeValues,
    /// Of rows that enter as shares, by word; empty otherwise, and of a word that was not needed.
    words: Vec<Vec<u128>>,
}

impl Inputs {
    /// Computes the wanted row nodes from this party's columns.
    pub fn evaluate(
        &mut self,
        section: &NodeSection,
        wanted: &[bool],
        (from, count, lanes): Span,
        rows: &mut dyn ShardRows,
    ) -> Result<(), Error> {
        self.values.evaluate(section, wanted, lanes, &mut |op, out| match op {
            Op::Column(column) => {
                out[count..].fill(0);
                rows.read(*column, from, &mut out[..count])
            }
            _ => Err(Error::misuse("a row section has columns only")),
        })
    }

    /// Reads entries and computes the words that depend on nothing else.
    pub fn read(
        &mut self,
        plan: &JoinedPlan,
        me: PartyId,
        (from, count, lanes): Span,
        rows: &mut dyn JoinedRows,
    ) -> Result<(), Error> {
        self.words.resize_with(plan.words.len(), Vec::new);
        self.words.iter_mut().for_each(Vec::clear);
        let mut entries = vec![Vec::new(); plan.entries.len()];
        for (at, (entry, out)) in plan.entries.iter().zip(&mut entries).enumerate() {
            out.resize(lanes, 0);
            if plan.reads(me, at) {
                rows.read(at, from, &mut out[..count])?;
                out.iter_mut().for_each(|v| *v &= entry.kind.mask());
            }
        }
        for (at, word) in plan.words.iter().enumerate() {
            match word {
                JoinedWord::Entry(entry) => self.words[at].extend_from_slice(&entries[*entry as usize]),
                JoinedWord::Constant(value) => self.words[at].resize(lanes, *value),
                JoinedWord::Low(gap) | JoinedWord::Top(gap) => {
                    let waits = |term: &GapTerm| matches!(term, GapTerm::Temp(_));
                    if !plan.gaps[*gap as usize].terms.iter().any(waits) {
                        self.words[at] = gap_word(plan, me, *word, lanes, &entries, &[]);
                    }
                }
                JoinedWord::Share(_) => {}
            }
        }
        entries.iter_mut().for_each(Zeroize::zeroize);
        Ok(())
    }

    /// Computes a word that waited for temporaries.
    pub fn compute(&mut self, plan: &JoinedPlan, me: PartyId, at: NodeId, lanes: usize, temps: &ByteTemps) {
        let word = plan.words[at.index()];
        self.words[at.index()] = match word {
            JoinedWord::Share(temp) => {
                let mask = plan.row.modulus_mask(temp);
                temps[temp as usize].iter().map(|x| x & mask).collect()
            }
            _ => gap_word(plan, me, word, lanes, &[], temps),
        };
    }

    /// The values of a node, one per lane.
    pub fn get(&self, node: NodeId) -> &[u128] {
        match self.words.get(node.index()) {
            Some(word) => word,
            None => self.values.get(node),
        }
    }

    /// A node as two's complement numbers of its type.
    pub fn numbers(&self, ty: ValueType, node: NodeId) -> impl Iterator<Item = u128> + use<'_> {
        self.get(node).iter().map(move |v| ty.to_signed(*v) as u128)
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        self.words.iter_mut().for_each(Zeroize::zeroize);
    }
}

/// This party's low or top bits of a gap.
fn gap_word(
    plan: &JoinedPlan,
    me: PartyId,
    word: JoinedWord,
    lanes: usize,
    entries: &[Vec<u128>],
    temps: &[Vec<u128>],
) -> Vec<u128> {
    let (JoinedWord::Low(gap) | JoinedWord::Top(gap)) = word else {
        unreachable!("only gaps have two words")
    };
    let gap = &plan.gaps[gap as usize];
    let mut out = vec![0u128; lanes];
    for (term, plus) in gap.terms.iter().zip([true, false]) {
        let mut take = |lane: usize, number: u128| {
            out[lane] = if plus { out[lane].wrapping_add(number) } else { out[lane].wrapping_sub(number) };
        };
        match *term {
            GapTerm::Constant(number) if me == PartyId(0) => (0..lanes).for_each(|l| take(l, number)),
            GapTerm::Constant(_) => {}
            GapTerm::Temp(temp) => temps[temp as usize].iter().enumerate().for_each(|(l, x)| take(l, *x)),
            GapTerm::Entry(entry) => {
                let ty = plan.word_type(JoinedWord::Entry(entry));
                let number = |x: u128| match plan.entries[entry as usize].kind {
                    EntryKind::Bits(_) => ty.to_signed(x) as u128,
                    EntryKind::Number { .. } => x,
                };
                entries[entry as usize].iter().enumerate().for_each(|(l, x)| take(l, number(*x)));
            }
        }
    }
    let low = ValueType::u(gap.width).mask();
    for x in &mut out {
        let of = if me == gap.chooser { !*x } else { *x };
        *x = if matches!(word, JoinedWord::Low(_)) { of & low } else { of >> gap.width & 1 };
    }
    out
}

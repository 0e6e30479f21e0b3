//! A whole program over a given number of rows as one stand-alone circuit: rows, combine and release in one.

use super::bits::SectionGates;
use super::combine::{Combine, SelectionCircuit, levels};
use super::release::FoldPart;
use crate::{Holder, NodeId, Op, Program, RowFold, Viewer};
use base::{Error, PartyId};
use circuits::gadgets::LitWord;
use circuits::{CircuitBuilder, InputBit, Lit};
use circuits::{InputWord, OutputWord, Viewers, WORD_BITS, Wired};

/// Most rows of an unrolled program: a list of them is one output word.
pub const UNROLLED_ROWS: u64 = WORD_BITS as u64;
/// Most wires of the rows of an unrolled program.
pub const UNROLLED_WIRES: usize = 1 << 26;

/// Unrolls a program. `owner` says which party enters a row of a shared column.
///
/// Inputs come by party, then by column of the program, then by row, one word per value; public columns are
/// entered by the first party. Outputs come in the order of the program's outputs, then of its lists (one bit
/// per row).
///
/// # Errors
/// When there are no rows or too many, a row is given to nobody, or the program has mechanisms: a circuit
/// draws no noise.
pub fn unroll(
    program: &Program,
    rows: u64,
    shape: SelectionCircuit,
    owner: &dyn Fn(u64) -> PartyId,
) -> Result<Wired, Error> {
    program.check()?;
    if !(1..=UNROLLED_ROWS).contains(&rows) {
        return Err(Error::limit("rows of an unrolled program", rows, UNROLLED_ROWS));
    }
    if !program.mechanisms.is_empty() {
        return Err(Error::input("this program draws noise: it cannot be one circuit"));
    }
    if (0..rows).any(|row| owner(row).index() >= program.parties.len()) {
        return Err(Error::misuse("a row is given to a party that does not take part"));
    }
    let inputs = Inputs::new(program, rows, owner);
    let mut flat = Flat { program, inputs, gates: CircuitBuilder::default() };
    let leaves = flat.rows(rows, shape)?;
    let words = flat.folds(rows, shape, leaves);
    let outputs = flat.release(&words);
    let (circuit, inputs) = (flat.gates.finish(), flat.inputs.words);
    Ok(Wired { circuit, inputs, outputs, parties: program.parties.len() })
}

/// The input words, and which of them is a value of a column.
struct Inputs {
    words: Vec<InputWord>,
    /// By column and row.
    places: Vec<Vec<u32>>,
}

impl Inputs {
    fn new(program: &Program, rows: u64, owner: &dyn Fn(u64) -> PartyId) -> Self {
        let mut places = vec![vec![0; rows as usize]; program.columns.len()];
        let mut words = Vec::new();
        for party in (0..program.parties.len() as u8).map(PartyId) {
            for (column, places) in program.columns.iter().zip(&mut places) {
                for (row, place) in places.iter_mut().enumerate() {
                    let enters = match column.holder {
                        Holder::Public => PartyId(0),
                        Holder::Party(party) => party,
                        Holder::Shared => owner(row as u64),
                    };
                    if enters == party {
                        *place = words.len() as u32;
                        words.push(InputWord { owner: party, width: column.ty.width.into() });
                    }
                }
            }
        }
        Self { words, places }
    }

    fn enter(&self, g: &mut CircuitBuilder, column: u32, row: usize) -> LitWord {
        let word = self.places[column as usize][row];
        let InputWord { owner, width } = self.words[word as usize];
        (0..width as u16).map(|bit| g.input(InputBit { owner: Some(owner), word, bit })).collect()
    }
}

struct Flat<'a> {
    program: &'a Program,
    inputs: Inputs,
    gates: CircuitBuilder,
}

impl Flat<'_> {
    /// The leaves of every fold, by fold and row; of a list its bits.
    fn rows(&mut self, rows: u64, shape: SelectionCircuit) -> Result<Vec<Vec<LitWord>>, Error> {
        let folds = &self.program.folds;
        let mut leaves: Vec<Vec<LitWord>> = folds.iter().map(|_| Vec::with_capacity(rows as usize)).collect();
        for row in 0..rows as usize {
            let mut bits = SectionGates::new(&self.program.row);
            bits.gates = std::mem::take(&mut self.gates);
            let mut enter = |g: &mut CircuitBuilder, id: NodeId| match self.program.row.node(id).op {
                Op::Column(column) => Some(self.inputs.enter(g, column, row)),
                _ => None,
            };
            for (index, fold) in folds.iter().enumerate() {
                let value = bits.word(fold.value(), &mut enter);
                let valid = match fold {
                    RowFold::Best { valid, .. } => bits.word(*valid, &mut enter)[0],
                    _ => Lit::TRUE,
                };
                let leaf = match Combine::new(self.program, index as u32, shape, rows) {
                    Some(combine) => {
                        let bit = |b| Lit::constant(row as u64 >> b & 1 == 1);
                        let levels = if combine.takes_index() { levels(rows) } else { 0 };
                        let mut leaf = combine.leaf(&mut bits.gates, &value, valid);
                        leaf.extend((0..levels).map(bit));
                        leaf
                    }
                    None => value,
                };
                leaves[index].push(leaf);
            }
            self.gates = bits.gates;
            if self.gates.wires() > UNROLLED_WIRES {
                let (wires, most) = (self.gates.wires() as u64, UNROLLED_WIRES as u64);
                return Err(Error::limit("wires of an unrolled program", wires, most));
            }
        }
        Ok(leaves)
    }

    /// The word of every fold; of a list one bit per row.
    fn folds(&mut self, rows: u64, shape: SelectionCircuit, leaves: Vec<Vec<LitWord>>) -> Vec<LitWord> {
        let fold = |(index, leaves): (usize, Vec<LitWord>)| match Combine::new(
            self.program,
            index as u32,
            shape,
            rows,
        ) {
            Some(combine) => combine.unroll(&mut self.gates, leaves),
            None => leaves.concat(),
        };
        leaves.into_iter().enumerate().map(fold).collect()
    }

    fn release(&mut self, words: &[LitWord]) -> Vec<OutputWord> {
        let program = self.program;
        let mut bits = SectionGates::new(&program.release);
        bits.gates = std::mem::take(&mut self.gates);
        let read =
            |fold: u32, part: FoldPart| words[fold as usize][part.of(&program.folds[fold as usize])].to_vec();
        let mut leaf = |_: &mut CircuitBuilder, id: NodeId| match program.release.node(id).op {
            Op::Total(fold) => Some(read(fold, FoldPart::Total)),
            Op::Index(fold) => Some(read(fold, FoldPart::Index)),
            Op::Found(fold) => Some(read(fold, FoldPart::Found)),
            _ => None,
        };
        let all = program.parties.len() as u8;
        let to = |viewer: Viewer| {
            let sees = (0..all).map(PartyId).filter(|party| viewer.has(*party));
            Viewers::Parties(sees.collect())
        };
        let mut outputs: Vec<OutputWord> = Vec::new();
        for output in &program.outputs {
            outputs.push(OutputWord { to: to(output.to), bits: bits.word(output.value, &mut leaf) });
        }
        for list in &program.lists {
            outputs.push(OutputWord { to: to(list.to.into()), bits: words[list.fold as usize].clone() });
        }
        self.gates = bits.gates;
        outputs
    }
}

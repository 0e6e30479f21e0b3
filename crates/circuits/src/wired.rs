//! Stand-alone circuits: a boolean circuit with its inputs by party and its outputs by viewer. Circuit files
//! ([`crate::files`]) hold them, [`crate::standard`] builds them, engines run them over many lanes at once.

use crate::{Circuit, Lit, WireDriver};
use base::{Error, PartyId, limits};

/// Most bits of one input or output word; [`crate::InputBit::bit`] counts them.
pub const WORD_BITS: u32 = 1 << 16;

/// A word that one party enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputWord {
    /// Who enters it.
    pub owner: PartyId,
    /// Bits, `1..=`[`WORD_BITS`].
    pub width: u32,
}

/// Who learns an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Viewers {
    /// All parties.
    Everyone,
    /// These parties, ascending.
    Parties(Vec<PartyId>),
}

impl Viewers {
    /// Whether `party` learns it.
    #[must_use]
    pub fn has(&self, party: PartyId) -> bool {
        match self {
            Self::Everyone => true,
            Self::Parties(parties) => parties.contains(&party),
        }
    }
}

/// A word that is revealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputWord {
    /// Who learns it.
    pub to: Viewers,
    /// Its bits, least significant first.
    pub bits: Vec<Lit>,
}

/// A boolean circuit with inputs and outputs.
///
/// An input wire of `circuit` is `Input { owner: Some(inputs[word].owner), word, bit }`, bit 0 least
/// significant. A bit that the circuit does not read has no wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wired {
    /// The gates.
    pub circuit: Circuit,
    /// Words that are entered.
    pub inputs: Vec<InputWord>,
    /// Words that are revealed.
    pub outputs: Vec<OutputWord>,
    /// Number of parties, `1..=limits::PARTIES`.
    pub parties: usize,
}

impl Wired {
    /// Number of AND gates.
    #[must_use]
    pub fn and_gates(&self) -> usize {
        self.circuit.and_gates()
    }

    /// Number of XOR gates.
    #[must_use]
    pub fn xor_gates(&self) -> usize {
        self.circuit.wires.iter().filter(|w| matches!(w, WireDriver::Xor(..))).count()
    }

    /// Longest chain of AND gates.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.circuit.and_depth()
    }

    /// AND gates by layer: entry `d` counts those whose longest chain of ANDs, itself included, is `d + 1`.
    #[must_use]
    pub fn layers(&self) -> Vec<usize> {
        let depths = self.circuit.and_depths();
        let mut layers = vec![0; self.depth()];
        for (wire, depth) in self.circuit.wires.iter().zip(&depths) {
            if matches!(wire, WireDriver::And(..)) {
                layers[*depth as usize - 1] += 1;
            }
        }
        layers
    }

    /// Input bits of a party.
    #[must_use]
    pub fn input_bits(&self, party: PartyId) -> u64 {
        self.inputs.iter().filter(|w| w.owner == party).map(|w| u64::from(w.width)).sum()
    }

    /// Output bits that a party learns.
    #[must_use]
    pub fn output_bits(&self, party: PartyId) -> u64 {
        self.outputs.iter().filter(|w| w.to.has(party)).map(|w| w.bits.len() as u64).sum()
    }

    /// BLAKE3 of the circuit as it stands: parties, words with their owners, wires, outputs with their
    /// viewers. Circuits of the same function may differ in it.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        // Every count stands before what it counts, so no two circuits are written alike.
        let mut put = |numbers: &[u64]| {
            for number in numbers {
                hasher.update(&number.to_le_bytes());
            }
        };
        let literal = |lit: &Lit| 2 * lit.wire() as u64 + u64::from(lit.inverted());
        let counts = [self.parties, self.inputs.len(), self.circuit.wires.len(), self.outputs.len()];
        put(&counts.map(|n| n as u64));
        for word in &self.inputs {
            put(&[word.owner.0.into(), word.width.into()]);
        }
        for wire in &self.circuit.wires {
            put(&match *wire {
                WireDriver::False => [0, 0, 0],
                // The owner is that of the word.
                WireDriver::Input(input) => [1, input.word.into(), input.bit.into()],
                WireDriver::Xor(a, b) => [2, a.into(), b.into()],
                WireDriver::And(a, b) => [3, literal(&a), literal(&b)],
            });
        }
        for output in &self.outputs {
            let viewers = (0..self.parties).filter(|p| output.to.has(PartyId(*p as u8)));
            put(&[viewers.fold(0, |set, p| set | 1 << p), output.bits.len() as u64]);
            output.bits.iter().for_each(|lit| put(&[literal(lit)]));
        }
        *hasher.finalize().as_bytes()
    }

    /// All output literals in order.
    pub fn roots(&self) -> impl Iterator<Item = Lit> + '_ {
        self.outputs.iter().flat_map(|o| o.bits.iter().copied())
    }

    /// Gives the inputs to other parties: input `i` to `owner(i)`. Outputs stay as they are.
    ///
    /// # Errors
    /// When a party that owns an input or learns an output does not take part.
    pub fn deal(mut self, parties: usize, owner: &dyn Fn(usize) -> PartyId) -> Result<Self, Error> {
        self.parties = parties;
        self.inputs.iter_mut().enumerate().for_each(|(i, word)| word.owner = owner(i));
        for wire in &mut self.circuit.wires {
            if let WireDriver::Input(input) = wire {
                input.owner = Some(owner(input.word as usize));
            }
        }
        self.check()?;
        Ok(self)
    }

    /// Evaluates 64 lanes of clear bits: `inputs[word][bit]` and `outputs[k][bit]` hold lane `i` in bit `i`.
    ///
    /// # Panics
    /// When `inputs` has not the shape of [`Wired::inputs`].
    #[must_use]
    pub fn evaluate_lanes(&self, inputs: &[Vec<u64>]) -> Vec<Vec<u64>> {
        let flip = |lit: Lit| u64::from(lit.inverted()).wrapping_neg();
        let mut values: Vec<u64> = Vec::with_capacity(self.circuit.wires.len());
        for wire in &self.circuit.wires {
            values.push(match *wire {
                WireDriver::False => 0,
                WireDriver::Input(i) => inputs[i.word as usize][usize::from(i.bit)],
                WireDriver::Xor(a, b) => values[a as usize] ^ values[b as usize],
                WireDriver::And(a, b) => (values[a.wire()] ^ flip(a)) & (values[b.wire()] ^ flip(b)),
            });
        }
        let word = |o: &OutputWord| o.bits.iter().map(|l| values[l.wire()] ^ flip(*l)).collect();
        self.outputs.iter().map(word).collect()
    }

    /// Evaluates one row of clear bits, least significant first: `inputs[word][bit]`.
    ///
    /// # Panics
    /// As [`Wired::evaluate_lanes`].
    #[must_use]
    pub fn evaluate(&self, inputs: &[Vec<bool>]) -> Vec<Vec<bool>> {
        let lanes: Vec<Vec<u64>> = inputs.iter().map(|w| w.iter().map(|b| u64::from(*b)).collect()).collect();
        let outputs = self.evaluate_lanes(&lanes);
        outputs.iter().map(|w| w.iter().map(|bits| bits & 1 == 1).collect()).collect()
    }

    /// Checks what the types do not say: parties, widths, and that every wire reads earlier wires and inputs
    /// that there are. Whoever takes a circuit from elsewhere calls it before running it.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check(&self) -> Result<(), Error> {
        let bad = |text: String| Err(Error::input(format!("this circuit is not well formed: {text}")));
        if self.parties == 0 || self.parties > limits::PARTIES {
            return bad(format!("{} parties; 1 to {} are possible", self.parties, limits::PARTIES));
        }
        for (i, word) in self.inputs.iter().enumerate() {
            if word.owner.index() >= self.parties || !(1..=WORD_BITS).contains(&word.width) {
                return bad(format!("input {i} has {} bits of {}", word.width, word.owner));
            }
        }
        for (i, wire) in self.circuit.wires.iter().enumerate() {
            let holds = match wire {
                WireDriver::False => i == 0,
                WireDriver::Input(input) => self
                    .inputs
                    .get(input.word as usize)
                    .is_some_and(|word| input.owner == Some(word.owner) && u32::from(input.bit) < word.width),
                WireDriver::Xor(a, b) => (*a as usize) < i && (*b as usize) < i,
                WireDriver::And(a, b) => a.wire() < i && b.wire() < i,
            };
            if !holds {
                return bad(format!("wire {i} reads what is not there"));
            }
        }
        if self.circuit.wires.first() != Some(&WireDriver::False) {
            return bad("wire 0 is not the constant".into());
        }
        for (k, output) in self.outputs.iter().enumerate() {
            if output.bits.is_empty() || output.bits.len() > WORD_BITS as usize {
                return bad(format!("output {k} has {} bits", output.bits.len()));
            }
            if output.bits.iter().any(|l| l.wire() >= self.circuit.wires.len()) {
                return bad(format!("output {k} reads a wire that is not there"));
            }
            if let Viewers::Parties(parties) = &output.to
                && parties.iter().any(|p| p.index() >= self.parties)
            {
                return bad(format!("output {k} is for a party that does not take part"));
            }
        }
        Ok(())
    }
}

//! Engines that run stand-alone circuits: circuit files and the circuits of `circuits::standard`.

use crate::Clear;
use base::{Cost, Error, PartyId};
use circuits::Wired;
use net::Session;

/// Engines that run stand-alone boolean circuits (circuit files).
pub trait CircuitEngine: Send + Sync {
    /// Short name, as on the command line.
    fn name(&self) -> &'static str;

    /// Makes a circuit ready.
    ///
    /// # Errors
    /// When it is not well formed, or not one for this engine.
    fn circuit<'a>(&self, wired: &'a Wired) -> Result<Box<dyn PreparedCircuit + 'a>, Error>;
}

/// A stand-alone circuit, made ready.
pub trait PreparedCircuit: Send + Sync {
    /// Exact cost for `lanes` independent evaluations.
    fn price(&self, lanes: usize) -> Cost;

    /// Evaluates `lanes` rows. `inputs[word][bit][lane / 64]`: lanes packed in words, lane `i` in bit
    /// `i % 64`; own words only, the entries of others' words are empty. Returns
    /// `outputs[k][bit][lane / 64]`, bits past the last lane zero; `None` where this party is not a viewer.
    ///
    /// # Errors
    /// When the inputs have not the circuit's shape, others take part than the circuit has, or the
    /// conversation fails.
    fn run(
        &self,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<Vec<u64>>>>, Error>;
}

// Fails to compile if an engine could no longer be chosen at run time.
const _: Option<&dyn CircuitEngine> = None;

/// Checks the inputs of `party` (of all parties: `None`) before anything is sent.
///
/// # Errors
/// When a word that the party owns has another shape than `[width][lanes.div_ceil(64)]`, or a word that it
/// does not own has values.
pub fn check_inputs(
    wired: &Wired,
    lanes: usize,
    inputs: &[Vec<Vec<u64>>],
    party: Option<PartyId>,
) -> Result<(), Error> {
    if inputs.len() != wired.inputs.len() {
        let (given, wanted) = (inputs.len(), wired.inputs.len());
        return Err(Error::misuse(format!("{given} input words were given, the circuit has {wanted}")));
    }
    for (i, (word, bits)) in wired.inputs.iter().zip(inputs).enumerate() {
        let mine = party.is_none_or(|p| p == word.owner);
        let width = if mine { word.width as usize } else { 0 };
        if bits.len() != width || bits.iter().any(|lane| lane.len() != lanes.div_ceil(64)) {
            return Err(Error::misuse(format!("input {i} has not the shape of the circuit's")));
        }
    }
    Ok(())
}

/// Holds all inputs and sees all outputs.
impl CircuitEngine for Clear {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn circuit<'a>(&self, wired: &'a Wired) -> Result<Box<dyn PreparedCircuit + 'a>, Error> {
        wired.check()?;
        Ok(Box::new(ClearCircuit(wired)))
    }
}

struct ClearCircuit<'a>(&'a Wired);

impl PreparedCircuit for ClearCircuit<'_> {
    fn price(&self, _: usize) -> Cost {
        Cost::zero(self.0.parties)
    }

    fn run(
        &self,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        _: &mut Session,
    ) -> Result<Vec<Option<Vec<Vec<u64>>>>, Error> {
        let wired = self.0;
        check_inputs(wired, lanes, inputs, None)?;
        let mut outputs: Vec<Option<Vec<Vec<u64>>>> =
            wired.outputs.iter().map(|o| Some(vec![Vec::new(); o.bits.len()])).collect();
        for at in 0..lanes.div_ceil(64) {
            let part: Vec<Vec<u64>> =
                inputs.iter().map(|word| word.iter().map(|bit| bit[at]).collect()).collect();
            let live = u64::MAX >> (64 - (lanes - 64 * at).min(64));
            for (output, bits) in outputs.iter_mut().flatten().zip(wired.evaluate_lanes(&part)) {
                output.iter_mut().zip(bits).for_each(|(out, word)| out.push(word & live));
            }
        }
        Ok(outputs)
    }
}

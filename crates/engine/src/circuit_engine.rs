//! Engines that run stand-alone circuits: circuit files and the circuits of `circuits::standard`.

use crate::Clear;
use base::{Cost, Error, PartyId};
use circuits::Wired;
use net::Session;

/// Engines that run stand-alone boolean circuits (circuit files).
pub trait CircuitEngine: Send {
    /// Short name, as on the command line.
    fn name(&self) -> &'static str;

    /// Exact cost for `lanes` independent evaluations.
    fn price(&self, wired: &Wired, lanes: usize) -> Cost;

    /// Evaluates `lanes` rows. `inputs[word][bit][lane / 64]`: lanes packed in words, lane `i` in bit
    /// `i % 64`; own words only, the entries of others' words are empty. Returns
    /// `outputs[k][bit][lane / 64]`, bits past the last lane zero; `None` where this party is not a viewer.
    ///
    /// # Errors
    /// When the circuit is not one for this engine, the inputs have not its shape, or the conversation fails.
    fn run(
        &mut self,
        wired: &Wired,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<Vec<u64>>>>, Error>;
}

// Fails to compile if an engine could no longer be chosen at run time.
const _: Option<&dyn CircuitEngine> = None;

/// Checks a circuit and the inputs of `party` (of all parties: `None`) before anything is sent.
///
/// # Errors
/// When the circuit is not well formed, a word that the party owns has another shape than
/// `[width][lanes.div_ceil(64)]`, or a word that it does not own has values.
pub fn check_inputs(
    wired: &Wired,
    lanes: usize,
    inputs: &[Vec<Vec<u64>>],
    party: Option<PartyId>,
) -> Result<(), Error> {
    wired.check()?;
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

    fn price(&self, wired: &Wired, _: usize) -> Cost {
        Cost::zero(wired.parties)
    }

    fn run(
        &mut self,
        wired: &Wired,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        _: &mut Session,
    ) -> Result<Vec<Option<Vec<Vec<u64>>>>, Error> {
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

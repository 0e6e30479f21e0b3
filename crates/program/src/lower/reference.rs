//! What a [`RowPlan`] means, on clear values: the definition that the engines' protocols are tested against.

use super::row::{Mask, MaskField, MaskSource, RowPlan, RowStep};
use crate::{Holder, NodeFacts, NodeId, Op, Owners, Program};
use base::{Error, PartyId};
use circuits::{Lit, WireDriver};

impl RowPlan {
    /// Runs the plan for one row: both parties' shares of every temporary, by party. `facts` are the
    /// program's row facts, `value` gives the bit pattern of any row node in this row, `random` the fresh
    /// masks.
    ///
    /// # Errors
    /// [`base::Fault::Misuse`] where the plan lets a party use what it does not know, or reads what is not
    /// there yet: a bug of the lowering.
    pub fn reference(
        &self,
        program: &Program,
        facts: &[NodeFacts],
        value: &dyn Fn(NodeId) -> u128,
        random: &mut dyn FnMut() -> u128,
    ) -> Result<Vec<[u128; 2]>, Error> {
        let mut reference =
            Reference { plan: self, program, facts, value, wires: Vec::new(), shares: Vec::new() };
        reference.enter()?;
        reference.compare()?;
        reference.shares = vec![[0; 2]; self.temps.len()];
        self.steps.iter().try_for_each(|step| reference.step(step, random))?;
        Ok(reference.shares)
    }

    fn narrower(&self, temp: u32, other: u32) -> Result<(), Error> {
        let fits = self.temps[temp as usize] <= self.temps[other as usize];
        fits.then_some(()).ok_or_else(|| Error::misuse(format!("temporary {temp} is wider than {other}")))
    }

    fn receiver_knows(&self, wire: usize) -> Result<(), Error> {
        let known = match self.circuit.wires[wire] {
            WireDriver::False => true,
            WireDriver::Input(i) => i.owner.is_none_or(|o| o != self.sender),
            _ => false,
        };
        known
            .then_some(())
            .ok_or_else(|| Error::misuse("a product of shares has a bit that the receiver does not know"))
    }
}

/// A plan that is being run for one row.
struct Reference<'a> {
    plan: &'a RowPlan,
    program: &'a Program,
    facts: &'a [NodeFacts],
    value: &'a dyn Fn(NodeId) -> u128,
    /// Of the circuit.
    wires: Vec<bool>,
    /// Of every temporary, by party.
    shares: Vec<[u128; 2]>,
}

impl Reference<'_> {
    /// Evaluates the circuit on bits that enter at their owners.
    fn enter(&mut self) -> Result<(), Error> {
        let shared = |node: NodeId| match self.program.row.node(node).op {
            Op::Column(c) => self.program.columns[c as usize].holder == Holder::Shared,
            _ => false,
        };
        // A shared column enters whole at the first party.
        let wires = self.plan.circuit.evaluate(|input| {
            let entered = !shared(NodeId(input.word)) || input.owner == Some(PartyId(0));
            entered && (self.value)(NodeId(input.word)) >> input.bit & 1 == 1
        });
        for wire in &self.plan.circuit.wires {
            if let WireDriver::Input(i) = wire
                && i.owner != self.owners(NodeId(i.word)).only()
                && !shared(NodeId(i.word))
            {
                return Err(Error::misuse(format!("row v{} enters as somebody else's bit", i.word)));
            }
        }
        self.wires = wires;
        Ok(())
    }

    /// Checks the wires of comparisons, and that each side knows its own of what is compared.
    fn compare(&self) -> Result<(), Error> {
        for compare in &self.plan.compares {
            self.knows(compare.chooser, compare.bound)?;
            for (key, less) in compare.keys.iter().zip(&compare.less) {
                self.knows(compare.chooser.other(), *key)?;
                if ((self.value)(compare.bound) < (self.value)(*key)) != self.bit(*less) {
                    return Err(Error::misuse(format!("the comparison with v{} is not its wire", key.0)));
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &RowStep, random: &mut dyn FnMut() -> u128) -> Result<(), Error> {
        match step {
            RowStep::Known { temp, party, node } => {
                self.knows(*party, *node)?;
                let mut terms = [0; 2];
                terms[party.index()] = self.number(*node);
                self.add(*temp, terms);
            }
            RowStep::Add { temp, other } => {
                self.plan.narrower(*temp, *other)?;
                self.add(*temp, self.shares[*other as usize]);
            }
            RowStep::Square { temp, other } => {
                self.plan.narrower(*temp, *other)?;
                self.add(*temp, self.shares[*other as usize].map(|share| share.wrapping_mul(share)));
            }
            RowStep::Mask(mask) => {
                for field in &mask.fields {
                    let factor = self.factor(mask, field)?;
                    let product = if self.bit(mask.selector) { factor } else { 0 };
                    let fresh = random();
                    self.add(field.temp, [fresh, product.wrapping_sub(fresh)]);
                }
            }
        }
        Ok(())
    }

    /// What the bit of a mask multiplies.
    fn factor(&self, mask: &Mask, field: &MaskField) -> Result<u128, Error> {
        Ok(match field.source {
            MaskSource::Node(node) => {
                self.knows(mask.sender, node)?;
                self.number(node)
            }
            MaskSource::Constant(constant) => constant,
            MaskSource::Temp(other) => {
                self.plan.narrower(field.temp, other)?;
                self.plan.receiver_knows(mask.selector.wire())?;
                let [a, b] = self.shares[other as usize];
                a.wrapping_add(b)
            }
            MaskSource::Own(other) => {
                self.plan.narrower(field.temp, other)?;
                self.shares[other as usize][mask.sender.index()]
            }
            MaskSource::Shifted { temp, by } => {
                self.plan.narrower(field.temp, temp)?;
                self.shares[temp as usize][mask.sender.index()] << by
            }
        })
    }

    /// Each party adds its term to its share of a temporary.
    fn add(&mut self, temp: u32, terms: [u128; 2]) {
        let modulus = self.plan.modulus_mask(temp);
        for (share, term) in self.shares[temp as usize].iter_mut().zip(terms) {
            *share = share.wrapping_add(term) & modulus;
        }
    }

    fn knows(&self, party: PartyId, node: NodeId) -> Result<(), Error> {
        let known = self.owners(node).within(party);
        known.then_some(()).ok_or_else(|| Error::misuse(format!("{party} does not know row v{}", node.0)))
    }

    fn owners(&self, node: NodeId) -> Owners {
        self.facts[node.index()].owners
    }

    fn number(&self, node: NodeId) -> u128 {
        self.program.row.ty(node).to_signed((self.value)(node)) as u128
    }

    fn bit(&self, lit: Lit) -> bool {
        self.wires[lit.wire()] ^ lit.inverted()
    }
}

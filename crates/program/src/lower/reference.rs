//! What a [`RowPlan`] means, on clear values: the definition that the engines' protocols are tested against.

use super::row::{RowPlan, Source, Step};
use crate::{Facts, Holder, NodeId, Op, Program};
use base::{Error, PartyId};
use circuits::Wire;

impl RowPlan {
    /// Runs the plan for one row: both parties' shares of every temporary, by party. `facts` are the program's row facts,
    /// `value` gives the bit pattern of any row node in this row, `random` the fresh masks.
    ///
    /// # Errors
    /// [`base::Kind::Misuse`] where the plan lets a party use what it does not know, or reads what is not there yet:
    /// a bug of the lowering.
    pub fn reference(
        &self,
        program: &Program,
        facts: &[Facts],
        value: &dyn Fn(NodeId) -> u128,
        random: &mut dyn FnMut() -> u128,
    ) -> Result<Vec<[u128; 2]>, Error> {
        let owners = |node: NodeId| facts[node.index()].owners;
        let shared = |node: NodeId| match program.row.node(node).op {
            Op::Column(c) => program.columns[c as usize].holder == Holder::Shared,
            _ => false,
        };
        // A shared column enters whole at the first party.
        let wires = self.circuit.evaluate(|input| {
            let entered = !shared(NodeId(input.word)) || input.owner == Some(PartyId(0));
            entered && value(NodeId(input.word)) >> input.bit & 1 == 1
        });
        for wire in &self.circuit.wires {
            if let Wire::Input(i) = wire
                && i.owner != owners(NodeId(i.word)).only()
                && !shared(NodeId(i.word))
            {
                return Err(Error::misuse(format!("row v{} enters as somebody else's bit", i.word)));
            }
        }
        let number = |node: NodeId| program.row.ty(node).to_signed(value(node)) as u128;
        let knows = |party: PartyId, node: NodeId| {
            let known = owners(node).within(party);
            known.then_some(()).ok_or_else(|| Error::misuse(format!("{party} does not know row v{}", node.0)))
        };
        for compare in &self.compares {
            knows(compare.chooser, compare.bound)?;
            for (key, less) in compare.keys.iter().zip(&compare.less) {
                knows(compare.chooser.other(), *key)?;
                if (value(compare.bound) < value(*key)) != (wires[less.wire()] ^ less.inverted()) {
                    return Err(Error::misuse(format!("the comparison with v{} is not its wire", key.0)));
                }
            }
        }
        let mut shares = vec![[0u128; 2]; self.temps.len()];
        for step in &self.steps {
            match step {
                Step::Known { temp, party, node } => {
                    knows(*party, *node)?;
                    let share = &mut shares[*temp as usize][party.index()];
                    *share = share.wrapping_add(number(*node)) & self.modulus_mask(*temp);
                }
                Step::Add { temp, other } => {
                    self.narrower(*temp, *other)?;
                    let other = shares[*other as usize];
                    for (share, more) in shares[*temp as usize].iter_mut().zip(other) {
                        *share = share.wrapping_add(more) & self.modulus_mask(*temp);
                    }
                }
                Step::Square { temp, other } => {
                    self.narrower(*temp, *other)?;
                    let other = shares[*other as usize];
                    for (share, of) in shares[*temp as usize].iter_mut().zip(other) {
                        *share = share.wrapping_add(of.wrapping_mul(of)) & self.modulus_mask(*temp);
                    }
                }
                Step::Mask(mask) => {
                    let selector = wires[mask.selector.wire()] ^ mask.selector.inverted();
                    for field in &mask.fields {
                        let factor = match field.source {
                            Source::Node(node) => {
                                knows(mask.sender, node)?;
                                number(node)
                            }
                            Source::Constant(constant) => constant,
                            Source::Temp(other) => {
                                self.narrower(field.temp, other)?;
                                self.receiver_knows(mask.selector.wire())?;
                                let [a, b] = shares[other as usize];
                                a.wrapping_add(b)
                            }
                            Source::Own(other) => {
                                self.narrower(field.temp, other)?;
                                shares[other as usize][mask.sender.index()]
                            }
                            Source::Shifted { temp, by } => {
                                self.narrower(field.temp, temp)?;
                                shares[temp as usize][mask.sender.index()] << by
                            }
                        };
                        let product = if selector { factor } else { 0 };
                        let fresh = random();
                        let modulus = self.modulus_mask(field.temp);
                        let [a, b] = &mut shares[field.temp as usize];
                        *a = a.wrapping_add(fresh) & modulus;
                        *b = b.wrapping_add(product.wrapping_sub(fresh)) & modulus;
                    }
                }
            }
        }
        Ok(shares)
    }

    fn narrower(&self, temp: u32, other: u32) -> Result<(), Error> {
        let fits = self.temps[temp as usize] <= self.temps[other as usize];
        fits.then_some(()).ok_or_else(|| Error::misuse(format!("temporary {temp} is wider than {other}")))
    }

    fn receiver_knows(&self, wire: usize) -> Result<(), Error> {
        let known = match self.circuit.wires[wire] {
            Wire::False => true,
            Wire::Input(i) => i.owner.is_none_or(|o| o != self.sender),
            _ => false,
        };
        known
            .then_some(())
            .ok_or_else(|| Error::misuse("a product of shares has a bit that the receiver does not know"))
    }
}

//! Boolean circuits over lanes: what owners compute alone, what they enter, and layers of products at the
//! seats.
//!
//! A layer is one product: its gates' operands lie behind each other, lanes and all. Wires of a seat are
//! three parts, wires of an owner one; what is local is the same for both, with the numbers of summands in
//! place of those of parties.

use crate::bits::{BitSlices, LANES, blocks, wipe};
use crate::seats::member::Member;
use crate::{RoundQuote, SeatParty, VectorRing};
use base::{Error, PartyId};
use circuits::layers::{AndGate, Layers, LocalStep, concerns};
use circuits::{Circuit, InputBit, Lit, WireDriver};
use kernels::Block;
use net::Session;
use program::entries::{Knows, entries};
use program::lower::{EntryRule, Piece};

/// Loads an input's lanes into whole blocks, which are clear.
pub(crate) type Load<'a, const N: usize> = dyn FnMut(&InputBit, [&mut [Block]; N]) -> Result<(), Error> + 'a;

type Multiply<'a, const N: usize> = dyn FnMut(BitSlices<N>, BitSlices<N>) -> Result<BitSlices<N>, Error> + 'a;

/// A circuit made ready.
pub(crate) struct LayeredCircuit {
    /// By owner, what it computes alone. The roots are entered.
    own: Vec<Layers>,
    /// By owner, which of the roots are input bits as they are.
    entered_inputs: Vec<Vec<(usize, InputBit)>>,
    joint: Layers,
}

impl LayeredCircuit {
    /// Compiles what `roots` need of a circuit. `knows` says who enters an input.
    pub fn new(
        circuit: &Circuit,
        roots: &[Lit],
        owners: usize,
        knows: &dyn Fn(&InputBit) -> Knows,
        inputs: EntryRule,
    ) -> Self {
        let parts = entries(circuit, roots, owners, knows, inputs);
        // One party's own bits are public among the parties that compute with them: itself.
        let own = parts.own.iter().map(|own| Layers::new(&own.circuit, &own.roots)).collect();
        let joint = Layers::with_shared(&parts.joint.circuit, &parts.joint.roots, &|_| true);
        let entered_inputs = parts.own.iter().map(input_roots).collect();
        Self { own, entered_inputs, joint }
    }

    /// Compiles a circuit whose inputs are all shared already.
    pub fn of_shares(circuit: &Circuit, roots: &[Lit]) -> Self {
        Self {
            own: Vec::new(),
            entered_inputs: Vec::new(),
            joint: Layers::with_shared(circuit, roots, &|_| true),
        }
    }

    /// The input bits among what an owner enters, with their places.
    pub fn inputs_of(&self, owner: usize) -> impl Iterator<Item = (usize, InputBit)> + '_ {
        self.entered_inputs.get(owner).into_iter().flatten().copied()
    }

    /// ANDs of shares, per lane.
    pub fn and_gates(&self) -> u64 {
        self.joint.and_gates()
    }

    /// Bytes of live wires per 128 lanes at a seat, or at an owner where that is more.
    pub fn block_bytes(&self) -> usize {
        let own = self.own.iter().map(|own| own.slots() + own.roots.len()).max().unwrap_or(0);
        let entered: usize = self.own.iter().map(|own| own.roots.len()).sum();
        16 * own.max(3 * (self.joint.slots() + self.joint.roots.len() + entered))
    }

    /// Bits that an owner enters on so many lanes.
    fn entered(&self, owner: usize, lanes: usize) -> usize {
        self.own[owner].roots.len() * lanes
    }

    pub fn quote_enter(&self, quote: &mut RoundQuote, lanes: usize) {
        for owner in 0..self.own.len() {
            let bits = self.entered(owner, lanes);
            if bits > 0 {
                quote.enter(PartyId(owner as u8), VectorRing::Z2, bits);
            }
        }
    }

    pub fn quote_join(&self, quote: &mut RoundQuote, lanes: usize) {
        for width in self.joint.widths().filter(|width| *width > 0 && lanes > 0) {
            quote.multiply(VectorRing::Z2, width as usize * lanes);
        }
    }
}

/// The roots of a piece that are inputs, and which.
fn input_roots(piece: &Piece) -> Vec<(usize, InputBit)> {
    let input = |(at, root): (usize, &Lit)| match piece.circuit.wires[root.wire()] {
        WireDriver::Input(input) => Some((at, input)),
        _ => None,
    };
    piece.roots.iter().enumerate().filter_map(input).collect()
}

/// What evaluations of one stage use again and again.
pub(crate) struct LayerEvaluator {
    me: PartyId,
    own: Machine<1>,
    joint: Option<Machine<3>>,
}

impl LayerEvaluator {
    pub fn new(member: &mut Member, session: &Session) -> Self {
        let joint = member
            .server()
            .map(|server| Machine::new([0, 1, 2].map(|k| PartyId(server.seat().summand(k).index() as u8))));
        Self { me: session.me(), own: Machine::new([PartyId(0)]), joint }
    }

    /// All owners enter what they compute alone. `known` gives the lanes of this participant's own inputs.
    pub fn enter(
        &mut self,
        member: &mut Member,
        session: &mut Session,
        circuit: &LayeredCircuit,
        lanes: usize,
        known: &mut Load<'_, 1>,
    ) -> Result<Vec<BitSlices<3>>, Error> {
        let mut entered = Vec::with_capacity(circuit.own.len());
        for (owner, own) in circuit.own.iter().enumerate() {
            let bits = circuit.entered(owner, lanes);
            if bits == 0 {
                entered.push(BitSlices::default());
                continue;
            }
            let party = PartyId(owner as u8);
            let mut value = BitSlices::<1>::with_capacity(bits);
            if party == self.me {
                let none = &mut |_, _| Err(Error::misuse("what one party computes alone takes no product"));
                let roots = self.own.run(own, lanes, known, none)?;
                roots.iter().for_each(|root| value.append(root));
            }
            let shares = member.enter(session, party, (VectorRing::Z2, bits), value.part(0))?;
            entered.push(shares.map(BitSlices::of).unwrap_or_default());
        }
        Ok(entered)
    }

    /// At a seat, the roots of a circuit on what was entered and on what `held` gives; elsewhere nothing.
    pub fn join(
        &mut self,
        member: &mut Member,
        session: &mut Session,
        circuit: &LayeredCircuit,
        lanes: usize,
        entered: &[BitSlices<3>],
        held: &mut Load<'_, 3>,
    ) -> Result<Vec<BitSlices<3>>, Error> {
        let (Some(server), Some(machine)) = (member.server(), &mut self.joint) else { return Ok(Vec::new()) };
        let mut load = |input: &InputBit, into: [&mut [Block]; 3]| match input.owner {
            Some(owner) => {
                entered[owner.index()].read(input.word as usize * lanes, lanes, into);
                Ok(())
            }
            None => held(input, into),
        };
        machine.run(&circuit.joint, lanes, &mut load, &mut |x, y| products(server, session, x, y))
    }
}

/// Shares of the products of bits.
pub(crate) fn products(
    server: &mut SeatParty,
    session: &mut Session,
    x: BitSlices<3>,
    y: BitSlices<3>,
) -> Result<BitSlices<3>, Error> {
    server.multiply(session, &x.into_shares(), &y.into_shares()).map(BitSlices::of)
}

/// Evaluates layers on wires in N parts. A part has the number of a party or of a summand: who complements is
/// the same.
struct Machine<const N: usize> {
    ids: [PartyId; N],
    wires: [Vec<Block>; N],
}

impl<const N: usize> Drop for Machine<N> {
    fn drop(&mut self) {
        self.wires.iter_mut().for_each(|part| wipe(part));
    }
}

impl<const N: usize> Machine<N> {
    fn new(ids: [PartyId; N]) -> Self {
        Self { ids, wires: std::array::from_fn(|_| Vec::new()) }
    }

    fn run(
        &mut self,
        layers: &Layers,
        lanes: usize,
        load: &mut Load<'_, N>,
        multiply: &mut Multiply<'_, N>,
    ) -> Result<Vec<BitSlices<N>>, Error> {
        let wide = blocks(lanes);
        self.wires.iter_mut().for_each(|part| part.resize(layers.slots() * wide, Block::ZERO));
        let (mut local, mut gate) = (0, 0);
        for &(locals, gates) in &layers.ends {
            for step in &layers.locals[local..locals as usize] {
                self.local(step, layers, wide, load)?;
            }
            self.layer(&layers.gates[gate..gates as usize], lanes, multiply)?;
            (local, gate) = (locals as usize, gates as usize);
        }
        let root = |&(slot, flip): &(u32, bool)| {
            let mut root = BitSlices::with_capacity(lanes);
            root.push(self.wire(slot, wide), 0, lanes, self.flips(flip));
            root
        };
        Ok(layers.roots.iter().map(root).collect())
    }

    fn wire(&self, slot: u32, wide: usize) -> [&[Block]; N] {
        self.wires.each_ref().map(|part| &part[slot as usize * wide..][..wide])
    }

    /// The parts that a holder's number means, as ones.
    fn on(&self, holder: u8) -> [Block; N] {
        self.ids.map(|id| Block(if concerns(holder, id) { u128::MAX } else { 0 }))
    }

    /// What complements a shared bit: summand 0 does.
    fn flips(&self, flip: bool) -> [Block; N] {
        if flip { self.on(0) } else { [Block::ZERO; N] }
    }

    fn local(
        &mut self,
        step: &LocalStep,
        layers: &Layers,
        wide: usize,
        load: &mut Load<'_, N>,
    ) -> Result<(), Error> {
        let at = |slot: u32| slot as usize * wide..(slot as usize + 1) * wide;
        match *step {
            LocalStep::Zero { out } => self.wires.iter_mut().for_each(|part| part[at(out)].fill(Block::ZERO)),
            LocalStep::Input { input, out } => {
                let places = self.wires.each_mut().map(|part| &mut part[at(out)]);
                let places = places.map(|place| {
                    place.fill(Block::ZERO);
                    place
                });
                load(&layers.inputs[input as usize].input, places)?;
            }
            LocalStep::Lift { a, out, holder } => {
                let masks = self.on(holder);
                self.pairs((a, a), out, wide, |k, a, _| a & masks[k]);
            }
            LocalStep::Xor { a, b, out } => self.pairs((a, b), out, wide, |_, a, b| a ^ b),
            LocalStep::And { a, b, out, flips } => {
                let [fa, fb] = flips.map(|holder| self.on(holder));
                self.pairs((a, b), out, wide, |k, a, b| (a ^ fa[k]) & (b ^ fb[k]));
            }
        }
        Ok(())
    }

    /// Part by part and block by block.
    fn pairs(&mut self, (a, b): (u32, u32), out: u32, wide: usize, f: impl Fn(usize, Block, Block) -> Block) {
        let [a, b, out] = [a, b, out].map(|slot| slot as usize * wide);
        for (k, part) in self.wires.iter_mut().enumerate() {
            for i in 0..wide {
                part[out + i] = f(k, part[a + i], part[b + i]);
            }
        }
    }

    /// The ANDs of one layer.
    fn layer(
        &mut self,
        gates: &[AndGate],
        lanes: usize,
        multiply: &mut Multiply<'_, N>,
    ) -> Result<(), Error> {
        if gates.is_empty() || lanes == 0 {
            return Ok(());
        }
        let wide = blocks(lanes);
        let gather = |operand: &dyn Fn(&AndGate) -> (u32, bool)| {
            let mut bits = BitSlices::with_capacity(gates.len() * lanes + LANES);
            for gate in gates {
                let (slot, flip) = operand(gate);
                bits.push(self.wire(slot, wide), 0, lanes, self.flips(flip));
            }
            bits
        };
        let z = multiply(gather(&|g| (g.a, g.flips[0])), gather(&|g| (g.b, g.flips[1])))?;
        for (i, gate) in gates.iter().enumerate() {
            let places = self.wires.each_mut().map(|part| &mut part[gate.out as usize * wide..][..wide]);
            z.read(i * lanes, lanes, places);
        }
        Ok(())
    }
}

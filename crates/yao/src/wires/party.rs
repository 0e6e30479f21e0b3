//! A party: what it holds, operations on slices of wires, inputs and outputs.

use super::array::Touch;
use super::calls::{Call, Calls};
use super::lanes::{Pool, WireLanes};
use super::price::{CHECK_BYTES, Price};
use super::setup::{self, Line};
use super::{PIECE_BLOCKS, REVEAL_PIECE, Role, STRETCH, To};
use crate::LANES;
use base::Error;
use kernels::Block;
use net::Session;
use ot::{CotReceiver, CotSender, OtReceiver, OtSender};

/// One party of an imperative program. Both parties call the same operations with the same sizes, in the same
/// order.
///
/// ```
/// use osprey::{Heap, Memory};
/// use yao::wires::{WireParty, Role, To};
/// # fn main() {
/// // `garbler` and `evaluator` of a real run take a session; this pass needs no peer.
/// let mut p = WireParty::speculator(Role::Garbler);
/// let (mut x, mut y, mut z) = (Heap.zeroed(100), Heap.zeroed(100), Heap.zeroed(100));
/// p.input(Role::Garbler, &[], &mut x).unwrap();
/// p.input(Role::Evaluator, &[], &mut y).unwrap();
/// p.and(&x, &y, &mut z).unwrap();
/// assert_eq!(p.reveal(To::Both, &z).unwrap(), None, "a speculator learns nothing");
/// assert_eq!(p.price().and_gates, 100);
/// # }
/// ```
pub struct WireParty<'s> {
    part: Part<'s>,
    pub(super) pool: Pool,
    /// Calls of the kernel so far: a tweak each.
    gates: u64,
    /// What both parties must have called alike.
    calls: Calls,
    price: Price,
    /// Operands of a call, offset by lane.
    operands: [Vec<Block>; 2],
}

enum Part<'s> {
    Garbler(Box<Garbler<'s>>),
    Evaluator(Box<Evaluator<'s>>),
    Speculator(Role, Touch),
}

struct Garbler<'s> {
    line: Line<'s>,
    ot: CotSender,
    delta: Block,
    /// Ciphertexts that wait to be sent, and how many of them there are.
    table: Vec<Block>,
    waiting: usize,
    labels: Vec<Block>,
}

struct Evaluator<'s> {
    line: Line<'s>,
    ot: CotReceiver,
    table: Vec<Block>,
    labels: Vec<Block>,
}

impl<'s> WireParty<'s> {
    fn new(part: Part<'s>) -> Self {
        let operands = [vec![Block::ZERO; LANES], vec![Block::ZERO; LANES]];
        Self {
            part,
            pool: Pool::default(),
            gates: 0,
            calls: Calls::default(),
            price: Price::setup(),
            operands,
        }
    }

    /// Meets an evaluator over `session`, which is of two parties.
    ///
    /// # Errors
    /// Those of the channel; a peer that garbles too, or speaks something else.
    pub fn garbler(session: &'s mut Session) -> Result<Self, Error> {
        let (line, ot, delta) = setup::garbler(session)?;
        let table = vec![Block::ZERO; PIECE_BLOCKS];
        let part = Garbler { line, ot, delta, table, waiting: 0, labels: Vec::new() };
        Ok(Self::new(Part::Garbler(Box::new(part))))
    }

    /// Meets a garbler.
    ///
    /// # Errors
    /// As [`WireParty::garbler`].
    pub fn evaluator(session: &'s mut Session) -> Result<Self, Error> {
        let (line, ot) = setup::evaluator(session)?;
        let part = Evaluator { line, ot, table: vec![Block::ZERO; 2 * LANES], labels: Vec::new() };
        Ok(Self::new(Part::Evaluator(Box::new(part))))
    }

    /// A party without a peer, for a speculative pass and for prices: it touches the wires that `role` would
    /// touch, in the same order, and computes nothing.
    #[must_use]
    pub fn speculator(role: Role) -> Self {
        let touch = Touch { chunk: osprey::stats().chunk as usize };
        Self::new(Part::Speculator(role, touch))
    }

    /// What this party does, or stands for.
    #[must_use]
    pub fn role(&self) -> Role {
        match self.part {
            Part::Garbler(_) => Role::Garbler,
            Part::Evaluator(_) => Role::Evaluator,
            Part::Speculator(role, _) => role,
        }
    }

    /// Whether nothing is computed.
    #[must_use]
    pub fn speculates(&self) -> bool {
        self.stub().is_some()
    }

    /// How stubs touch items, where nothing is computed.
    pub(super) fn stub(&self) -> Option<Touch> {
        match self.part {
            Part::Speculator(_, touch) => Some(touch),
            Part::Garbler(_) | Part::Evaluator(_) => None,
        }
    }

    /// Whether the bits of an input are looked at here: this party owns them and does not speculate.
    #[must_use]
    pub fn enters(&self, owner: Role) -> bool {
        !self.speculates() && self.role() == owner
    }

    /// What was called so far, set-up included; exact, from sizes alone, and the same in every role.
    #[must_use]
    pub fn price(&self) -> Price {
        self.price
    }

    /// Notes a call of the program's.
    pub(super) fn note(&mut self, call: Call, of: &[u64]) {
        self.calls.add(call, of);
    }

    /// Notes a call whose parts a speculator does not make: they count for nobody.
    pub(super) fn whole<T>(
        &mut self,
        call: Call,
        of: &[u64],
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<(T, u64), Error> {
        self.note(call, of);
        let calls = self.calls;
        let done = work(self)?;
        self.calls = calls;
        Ok((done, calls.so_far()))
    }

    /// What was called so far.
    #[cfg(test)]
    pub(super) fn calls(&self) -> Calls {
        self.calls
    }

    /// Books what a gadget costs where nobody computes it.
    pub(super) fn skip(&mut self, and_gates: u64) {
        self.price += Price::ands(and_gates);
    }

    /// Scratch; what is in it is not defined.
    pub(super) fn take(&self, width: usize, count: usize) -> WireLanes {
        assert!(count <= LANES, "{count} lanes; a call takes at most {LANES}");
        WireLanes::take(&self.pool, width, count, !self.speculates(), self.calls.so_far())
    }

    /// What turns the label of a bit into that of its complement here.
    pub(super) fn flip(&self) -> Block {
        match &self.part {
            Part::Garbler(g) => g.delta,
            Part::Evaluator(_) | Part::Speculator(..) => Block::ZERO,
        }
    }

    /// One call of the kernel: `load` writes both operands of `out.len()` lanes, at most [`LANES`].
    pub(super) fn gate(
        &mut self,
        load: impl FnOnce(&mut [Block], &mut [Block]),
        out: &mut [Block],
    ) -> Result<(), Error> {
        let lanes = out.len();
        let [a, b] = &mut self.operands;
        let (a, b) = (&mut a[..lanes], &mut b[..lanes]);
        load(a, b);
        // See the module's header: lanes share tweaks, so their labels must differ whatever the program put
        // there.
        for (lane, (a, b)) in a.iter_mut().zip(b.iter_mut()).enumerate() {
            let offset = Block((lane as u128 + 1) << 1);
            *a ^= offset;
            *b ^= offset;
        }
        let [t0, t1] = [0, 1].map(|half| Block::tweak(0, 0, self.gates, half));
        self.gates += 1;
        self.price += Price::ands(lanes as u64);
        match &mut self.part {
            Part::Garbler(g) => g.and([t0, t1], a, b, out),
            Part::Evaluator(e) => e.and([t0, t1], a, b, out),
            Part::Speculator(..) => Ok(()),
        }
    }

    /// `out = a xor b`, wire by wire. Free.
    ///
    /// # Panics
    /// When lengths differ, here and below.
    pub fn xor(&mut self, a: &[Block], b: &[Block], out: &mut [Block]) {
        assert!(a.len() == b.len() && a.len() == out.len(), "operands of equal length");
        self.note(Call::Xor, &[out.len() as u64]);
        for ((a, b), out) in a.chunks(STRETCH).zip(b.chunks(STRETCH)).zip(out.chunks_mut(STRETCH)) {
            osprey::tick();
            if self.speculates() {
                touch(&[a, b], out);
            } else {
                out.copy_from_slice(a);
                kernels::xor_into(out, b);
            }
        }
    }

    /// `out = not a`. Free.
    pub fn not(&mut self, a: &[Block], out: &mut [Block]) {
        assert_eq!(a.len(), out.len(), "operands of equal length");
        self.note(Call::Not, &[out.len() as u64]);
        let flip = self.flip();
        for (a, out) in a.chunks(STRETCH).zip(out.chunks_mut(STRETCH)) {
            osprey::tick();
            if self.speculates() {
                touch(&[a], out);
            } else {
                out.iter_mut().zip(a).for_each(|(out, a)| *out = *a ^ flip);
            }
        }
    }

    /// `out = a and b`, wire by wire: one AND each.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn and(&mut self, a: &[Block], b: &[Block], out: &mut [Block]) -> Result<(), Error> {
        assert!(a.len() == b.len() && a.len() == out.len(), "operands of equal length");
        self.note(Call::And, &[out.len() as u64]);
        for ((a, b), out) in a.chunks(STRETCH).zip(b.chunks(STRETCH)).zip(out.chunks_mut(STRETCH)) {
            osprey::tick();
            if self.speculates() {
                self.skip(out.len() as u64);
                touch(&[a, b], out);
                continue;
            }
            for ((a, b), out) in a.chunks(LANES).zip(b.chunks(LANES)).zip(out.chunks_mut(LANES)) {
                let load = |x: &mut [Block], y: &mut [Block]| {
                    x.copy_from_slice(a);
                    y.copy_from_slice(b);
                };
                self.gate(load, out)?;
            }
        }
        Ok(())
    }

    /// Wires of a public bit. Free.
    pub fn constant(&mut self, bit: bool, out: &mut [Block]) {
        self.note(Call::Constant, &[u64::from(bit), out.len() as u64]);
        let label = if bit { self.flip() } else { Block::ZERO };
        for out in out.chunks_mut(STRETCH) {
            osprey::tick();
            if self.speculates() {
                touch(&[], out);
            } else {
                out.fill(label);
            }
        }
    }

    /// Input bits of one party, packed: bit i of `bits` goes to `wires[i]`. Whoever does not enter them
    /// ([`WireParty::enters`]) may give none.
    ///
    /// # Errors
    /// Those of the channel; fewer bits than wires at their owner.
    pub fn input(&mut self, owner: Role, bits: &[u64], wires: &mut [Block]) -> Result<(), Error> {
        self.price += Price::input(owner, wires.len());
        self.note(Call::Input, &[owner as u64, wires.len() as u64]);
        let enters = self.enters(owner);
        if enters && bits.len() * 64 < wires.len() {
            let (have, want) = (bits.len() * 64, wires.len());
            return Err(Error::misuse(format!("{have} input bits for {want} wires; give a bit per wire")));
        }
        for (i, wires) in wires.chunks_mut(STRETCH).enumerate() {
            osprey::tick();
            let words = i * STRETCH / 64..(i * STRETCH + wires.len()).div_ceil(64);
            let bits = if enters { &bits[words] } else { &[] };
            match (&mut self.part, owner) {
                (Part::Speculator(..), _) => osprey::touch_write(wires),
                (Part::Garbler(g), Role::Garbler) => {
                    g.line.expand(wires);
                    kernels::xor_masked(wires, bits, g.delta);
                }
                (Part::Evaluator(e), Role::Garbler) => e.line.expand(wires),
                (Part::Garbler(g), Role::Evaluator) => g.learn(wires)?,
                (Part::Evaluator(e), Role::Evaluator) => e.choose(bits, wires)?,
            }
        }
        Ok(())
    }

    /// Opens wires: their bits, packed, at whom they are meant for; `None` at others and when speculating.
    ///
    /// # Errors
    /// Those of the channel; a peer whose program did something else so far.
    pub fn reveal(&mut self, to: To, wires: &[Block]) -> Result<Option<Vec<u64>>, Error> {
        self.price += Price::reveal(to, wires.len());
        let told = [Role::Garbler, Role::Evaluator].map(|role| u64::from(to.has(role)));
        self.note(Call::Reveal, &[told[0], told[1], wires.len() as u64]);
        let mut bits = Vec::new();
        for piece in wires.chunks(REVEAL_PIECE) {
            let start = bits.len();
            for wires in piece.chunks(STRETCH) {
                osprey::tick();
                let from = bits.len();
                // Written in a speculative pass too: it takes the memory that a party takes.
                bits.resize(from + wires.len().div_ceil(64), u64::MAX);
                if self.speculates() {
                    osprey::touch_read(wires);
                } else {
                    kernels::lsbs(wires, &mut bits[from..]);
                }
            }
            self.open(to, piece.len(), &mut bits[start..])?;
        }
        Ok((to.has(self.role()) && !self.speculates()).then_some(bits))
    }

    /// Colours of `wires` wires both ways: `bits` holds this party's and becomes the values.
    fn open(&mut self, to: To, wires: usize, bits: &mut [u64]) -> Result<(), Error> {
        let (role, calls) = (self.role(), self.calls.so_far());
        let line = match &mut self.part {
            Part::Speculator(..) => return Ok(()),
            Part::Garbler(g) => {
                g.flush()?;
                &mut g.line
            }
            Part::Evaluator(e) => &mut e.line,
        };
        line.open(role, to, calls, wires, bits)
    }

    /// Both parties have come as far as this, by the same calls: a barrier.
    ///
    /// # Errors
    /// As [`WireParty::reveal`].
    pub fn agree(&mut self) -> Result<(), Error> {
        osprey::tick();
        self.price += Price::agree();
        self.note(Call::Agree, &[]);
        self.open(To::Both, 0, &mut [])
    }

    /// Sends what waits to be sent. A garbler whose last operation is not a reveal must call it, or the
    /// evaluator waits.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn flush(&mut self) -> Result<(), Error> {
        let Part::Garbler(g) = &mut self.part else { return Ok(()) };
        g.flush()?;
        g.line.session.link(g.line.peer).flush()
    }
}

/// What a stub of an operation does to its operands.
fn touch(read: &[&[Block]], write: &mut [Block]) {
    read.iter().for_each(|wires| osprey::touch_read(wires));
    osprey::touch_write(write);
}

impl Line<'_> {
    /// Active labels of the garbler's next input bits.
    fn expand(&mut self, wires: &mut [Block]) {
        self.inputs.ctr(self.drawn, wires);
        self.drawn += wires.len() as u64;
    }

    /// Colours both ways; `bits` holds this party's and becomes the values.
    fn open(&mut self, role: Role, to: To, calls: u64, wires: usize, bits: &mut [u64]) -> Result<(), Error> {
        let bytes = |told| CHECK_BYTES as usize + if told { wires.div_ceil(8) } else { 0 };
        let mut mine = calls.to_le_bytes().to_vec();
        mine.extend(bits.iter().flat_map(|word| word.to_le_bytes()));
        mine.truncate(bytes(to.has(role.other())));
        let mut theirs = vec![0; bytes(to.has(role))];
        let mut link = self.session.link(self.peer);
        link.exchange(&mine, &mut theirs)?;
        let (check, colours) = theirs.split_at(CHECK_BYTES as usize);
        if check != calls.to_le_bytes() {
            return Err(link.blame(
                "its program has called other operations, or the same with other sizes; both parties run the \
                 same program with the same sizes",
            ));
        }
        if to.has(role) {
            for (word, colours) in bits.iter_mut().zip(colours.chunks(8)) {
                let mut wide = [0; 8];
                wide[..colours.len()].copy_from_slice(colours);
                *word ^= u64::from_le_bytes(wide);
            }
            // The peer's bits past the last wire are nobody's.
            if let Some(last) = bits.last_mut() {
                *last &= u64::MAX >> (wires.div_ceil(64) * 64 - wires);
            }
        }
        Ok(())
    }
}

impl Garbler<'_> {
    fn and(
        &mut self,
        [t0, t1]: [Block; 2],
        a: &[Block],
        b: &[Block],
        out: &mut [Block],
    ) -> Result<(), Error> {
        let blocks = 2 * out.len();
        if self.waiting + blocks > PIECE_BLOCKS {
            self.flush()?;
        }
        let table = &mut self.table[self.waiting..][..blocks];
        kernels::garble_and(&self.line.hash, t0, t1, self.delta, a, b, out, table);
        self.waiting += blocks;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.waiting > 0 {
            let mut link = self.line.session.link(self.line.peer);
            link.send(Block::as_bytes(&self.table[..self.waiting]))?;
            link.tally(self.waiting as u64 / 2, 0);
            self.waiting = 0;
        }
        Ok(())
    }

    /// Labels of 0 of a stretch of the evaluator's inputs.
    fn learn(&mut self, wires: &mut [Block]) -> Result<(), Error> {
        self.flush()?;
        self.labels.clear();
        self.ot.correlated(self.line.session, wires.len(), &mut self.labels)?;
        wires.copy_from_slice(&self.labels[..wires.len()]);
        Ok(())
    }
}

impl Evaluator<'_> {
    fn and(
        &mut self,
        [t0, t1]: [Block; 2],
        a: &[Block],
        b: &[Block],
        out: &mut [Block],
    ) -> Result<(), Error> {
        let table = &mut self.table[..2 * out.len()];
        let mut link = self.line.session.link(self.line.peer);
        link.recv(Block::as_bytes_mut(table))?;
        link.tally(out.len() as u64, 0);
        kernels::eval_and(&self.line.hash, t0, t1, a, b, out, table);
        Ok(())
    }

    /// Labels of a stretch of this party's inputs.
    fn choose(&mut self, bits: &[u64], wires: &mut [Block]) -> Result<(), Error> {
        let mut choices = bits.to_vec();
        // Bits past the last wire are no choices.
        if let Some(last) = choices.last_mut() {
            *last &= u64::MAX >> (bits.len() * 64 - wires.len());
        }
        self.labels.clear();
        self.ot.correlated(self.line.session, &choices, wires.len(), &mut self.labels)?;
        wires.copy_from_slice(&self.labels[..wires.len()]);
        Ok(())
    }
}

//! Arithmetic over vectors that stay with a device: local steps there ([`accel::VectorStep`]), and messages
//! of joint inputs and openings, which alone leave it.

use crate::seats::joint::{JointMessage, JointPlaces, JointShape};
use crate::vectors::arithmetic::ArithmeticShares;
use crate::vectors::sides::{CROSSES, ClearVector, Shape, Side, SideEntry, Term, halves};
use crate::{DeviceShares, Seat, SeatParty, TagHash, VectorRing};
use accel::{DeviceVector, STEP_TERMS, StreamName, Use, VectorMemory, VectorRun, VectorStep, splat};
use base::Error;
use kernels::Block;
use net::Session;
use std::borrow::Cow;
use std::sync::Arc;

/// What a side knows, in the first part of a vector with the device; nothing where it is not known.
type ClearShares = Option<ClearRun>;

/// Some blocks of a value in the clear.
#[derive(Clone)]
pub struct ClearRun {
    vector: Arc<DeviceVector>,
    from: usize,
    blocks: usize,
}

impl ClearRun {
    /// Room for so many blocks where another vector lies.
    fn beside(party: &mut SeatParty, other: &DeviceVector, blocks: usize) -> Result<Self, Error> {
        let vector = party.queue.make_beside(other, VectorRing::Z2, blocks)?;
        Ok(Self { vector: Arc::new(vector), from: 0, blocks })
    }

    fn at(&self, from: usize, blocks: usize) -> VectorRun<'_> {
        VectorRun { vector: &self.vector, part: Some(0), from: self.from + from, blocks }
    }

    fn all(&self) -> VectorRun<'_> {
        self.at(0, self.blocks)
    }

    /// The same where another one lies.
    fn beside_of(&self, party: &mut SeatParty, near: &Self) -> Result<Self, Error> {
        if party.queue.is_on_host(&self.vector) == party.queue.is_on_host(&near.vector) {
            return Ok(self.clone());
        }
        let vector = Arc::new(party.queue.move_beside(&near.vector, &self.all())?);
        Ok(Self { vector, from: 0, blocks: self.blocks })
    }
}

impl DeviceShares {
    /// Room for a vector where another one lies.
    fn beside(party: &mut SeatParty, other: &DeviceVector, (ring, len): Shape) -> Result<Self, Error> {
        let vector = party.queue.make_beside(other, ring, ring.blocks(len))?;
        Ok(Self { len, vector: Arc::new(vector), from: 0 })
    }

    fn zeros_beside(party: &mut SeatParty, other: &DeviceVector, (ring, len): Shape) -> Result<Self, Error> {
        let z = Self::beside(party, other, (ring, len))?;
        party.queue.step(&VectorStep::Combine { ring, z: z.all(), terms: &[], constant: None })?;
        Ok(z)
    }

    /// Some of its blocks.
    fn at(&self, part: Option<usize>, from: usize, blocks: usize) -> VectorRun<'_> {
        VectorRun { vector: &self.vector, part, from: self.from + from, blocks }
    }

    fn all(&self) -> VectorRun<'_> {
        self.at(None, 0, self.blocks())
    }

    fn part(&self, part: usize) -> VectorRun<'_> {
        self.at(Some(part), 0, self.blocks())
    }

    /// These vectors in one memory, where most blocks of them lie: others are copied there. A device has
    /// those that it is worth, so an operation may meet vectors of either memory.
    pub(crate) fn together(party: &mut SeatParty, vectors: &[&Self]) -> Result<Vec<Self>, Error> {
        let on_host: Vec<bool> = vectors.iter().map(|x| party.queue.is_on_host(&x.vector)).collect();
        let there = |host: bool| vectors.iter().zip(&on_host).filter(move |(_, on)| **on == host);
        let blocks = |host: bool| there(host).map(|(x, _)| x.blocks()).sum::<usize>();
        let host = blocks(true) > blocks(false);
        let Some((near, _)) = there(host).next().filter(|_| there(!host).next().is_some()) else {
            return Ok(vectors.iter().map(|x| (*x).clone()).collect());
        };
        let moved = |(x, on): (&&Self, &bool)| match *on == host {
            true => Ok((*x).clone()),
            false => x.beside_of(party, near),
        };
        vectors.iter().zip(&on_host).map(moved).collect()
    }

    /// The same where another one lies.
    fn beside_of(&self, party: &mut SeatParty, near: &Self) -> Result<Self, Error> {
        let vector = party.queue.move_beside(&near.vector, &self.all())?;
        Ok(Self { len: self.len, vector: Arc::new(vector), from: 0 })
    }

    /// The same in the host's memory.
    pub(crate) fn on_host(&self, party: &mut SeatParty) -> Result<Self, Error> {
        if party.queue.is_on_host(&self.vector) {
            return Ok(self.clone());
        }
        let vector = party.queue.move_to_host(&self.all())?;
        Ok(Self { len: self.len, vector: Arc::new(vector), from: 0 })
    }

    /// The same, in a vector of its own.
    pub(crate) fn whole(&self, party: &mut SeatParty) -> Result<Self, Error> {
        if self.from == 0 && self.blocks() == self.vector.blocks() {
            return Ok(self.clone());
        }
        Self::combine(party, &[(self, 1)], None)
    }
}

/// Puts the sum of products of a low and a high value into a run, as many as a step takes at once.
fn add_products(
    party: &mut SeatParty,
    (ring, z): (VectorRing, VectorRun<'_>),
    terms: &[[VectorRun<'_>; 2]],
) -> Result<(), Error> {
    let (first, rest) = terms.split_at(terms.len().min(STEP_TERMS));
    party.queue.step(&VectorStep::Cross { ring, z, terms: first })?;
    for more in rest.chunks(STEP_TERMS) {
        let sum = ClearRun::beside(party, z.vector, z.blocks)?;
        party.queue.step(&VectorStep::Cross { ring, z: sum.all(), terms: more })?;
        let one = splat(ring, 1);
        let terms = [(z, one), (sum.all(), one)];
        party.queue.step(&VectorStep::Combine { ring, z, terms: &terms, constant: None })?;
    }
    Ok(())
}

impl ArithmeticShares for DeviceShares {
    type Clear = ClearShares;

    fn ring(&self) -> VectorRing {
        self.ring()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn combine(
        party: &mut SeatParty,
        terms: &[(&Self, u128)],
        constant: Option<(Seat, u128)>,
    ) -> Result<Self, Error> {
        let Some((first, _)) = terms.first() else { return Err(Error::misuse("a sum has a term")) };
        let (ring, len) = (first.ring(), first.len());
        if terms.iter().any(|(x, _)| x.ring() != ring || x.len() != len) {
            return Err(Error::misuse("vectors on a device that do not fit each other"));
        }
        let vectors = Self::together(party, &terms.iter().map(|(x, _)| *x).collect::<Vec<_>>())?;
        let z = Self::beside(party, &vectors[0].vector, (ring, len))?;
        let part = constant.and_then(|(seat, number)| Some((party.seat().part_of(seat)?, number)));
        let mut constant = part.map(|(part, number)| (part, splat(ring, number)));
        let factors = vectors.iter().zip(terms).map(|(x, (_, by))| (x.all(), splat(ring, *by)));
        let factors: Vec<_> = factors.collect();
        let (first, rest) = factors.split_at(factors.len().min(STEP_TERMS));
        let step = VectorStep::Combine { ring, z: z.all(), terms: first, constant: constant.take() };
        party.queue.step(&step)?;
        for more in rest.chunks(STEP_TERMS - 1) {
            let terms: Vec<_> = [(z.all(), splat(ring, 1))].into_iter().chain(more.iter().copied()).collect();
            party.queue.step(&VectorStep::Combine { ring, z: z.all(), terms: &terms, constant: None })?;
        }
        Ok(z)
    }

    fn gain(&mut self, party: &mut SeatParty, term: &Self) -> Result<(), Error> {
        *self = Self::combine(party, &[(&*self, 1), (term, 1)], None)?;
        Ok(())
    }

    fn zeros(&self, party: &mut SeatParty, ring: VectorRing, len: usize) -> Result<Self, Error> {
        Self::zeros_beside(party, &self.vector, (ring, len))
    }

    fn concat(party: &mut SeatParty, vectors: &[&Self]) -> Result<Self, Error> {
        let vectors = Self::together(party, vectors)?;
        let first = vectors.first().ok_or_else(|| Error::misuse("no vectors to put behind each other"))?;
        let (ring, blocks) = (first.ring(), vectors.iter().map(|x| x.blocks()).sum::<usize>());
        let z = Self::beside(party, &first.vector, (ring, blocks * ring.lanes()))?;
        let mut from = 0;
        for x in &vectors {
            let (to, terms) = (z.at(None, from, x.blocks()), [(x.all(), splat(ring, 1))]);
            party.queue.step(&VectorStep::Combine { ring, z: to, terms: &terms, constant: None })?;
            from += x.blocks();
        }
        Ok(z)
    }

    fn cut(&self, lens: &[usize]) -> Vec<Self> {
        let mut from = self.from;
        let mut piece = |&len: &usize| {
            let piece = Self { len, vector: self.vector.clone(), from };
            from += piece.blocks();
            piece
        };
        lens.iter().map(&mut piece).collect()
    }

    fn lowest(&self, party: &mut SeatParty) -> Result<Self, Error> {
        let z = Self::beside(party, &self.vector, (VectorRing::Z2, self.len()))?;
        let (ring, stride) = (self.ring(), z.blocks());
        let step = VectorStep::Planes { ring, z: z.all(), x: self.all(), from: 0, width: 1, stride };
        party.queue.step(&step)?;
        Ok(z)
    }

    fn widened(&self, party: &mut SeatParty) -> Result<Self, Error> {
        let (ring, width) = (self.ring(), self.ring().bits());
        let stride = VectorRing::Z2.blocks(self.len());
        // The planes of the elements: what a block has beyond the last element comes with them.
        let bits = Self::beside(party, &self.vector, (VectorRing::Z2, width as usize * stride * 128))?;
        let step = VectorStep::Planes { ring, z: bits.all(), x: self.all(), from: 0, width, stride };
        party.queue.step(&step)?;
        let z = Self::beside(party, &self.vector, (VectorRing::Z128, self.len()))?;
        let step = VectorStep::Elements { ring: VectorRing::Z128, z: z.all(), x: bits.all(), width, stride };
        party.queue.step(&step)?;
        Ok(z)
    }

    fn near<'a>(&'a self, party: &mut SeatParty, other: &Self) -> Result<Cow<'a, Self>, Error> {
        match party.queue.is_on_host(&self.vector) == party.queue.is_on_host(&other.vector) {
            true => Ok(Cow::Borrowed(self)),
            false => self.beside_of(party, other).map(Cow::Owned),
        }
    }

    fn trimmed(&self, party: &mut SeatParty) -> Result<Self, Error> {
        let (ring, rest) = (self.ring(), self.len() % self.ring().lanes());
        if rest == 0 {
            return Ok(self.clone());
        }
        let z = Self::combine(party, &[(self, 1)], None)?;
        // Ones in the elements that are there: of bits, all of theirs.
        let ones = Block(splat(ring, 1).0 & u128::MAX >> (128 - rest as u32 * ring.bits()));
        let last = z.at(None, z.blocks() - 1, 1);
        let step = VectorStep::Combine { ring, z: last, terms: &[(last, ones)], constant: None };
        party.queue.step(&step)?;
        Ok(z)
    }

    fn side(&self, party: &mut SeatParty, side: Side) -> Result<ClearShares, Error> {
        if !side.known_to(party.seat()) {
            return Ok(None);
        }
        let [a, b] = side.summands().map(|s| party.seat().part_of(s).expect("a holder holds both"));
        let (ring, one) = (self.ring(), splat(self.ring(), 1));
        let sum = ClearRun::beside(party, &self.vector, self.blocks())?;
        let terms = [(self.part(a), one), (self.part(b), one)];
        party.queue.step(&VectorStep::Combine { ring, z: sum.all(), terms: &terms, constant: None })?;
        Ok(Some(sum))
    }

    fn shifted(
        party: &mut SeatParty,
        ring: VectorRing,
        value: &ClearShares,
        by: u32,
        signed: bool,
        keep: u32,
    ) -> Result<ClearShares, Error> {
        let Some(value) = value else { return Ok(None) };
        let z = ClearRun::beside(party, &value.vector, value.blocks)?;
        party.queue.step(&VectorStep::Shift { ring, z: z.all(), x: value.all(), by, signed, keep })?;
        Ok(Some(z))
    }

    fn tops(
        party: &mut SeatParty,
        shape: Shape,
        value: &ClearShares,
        ring: VectorRing,
    ) -> Result<ClearShares, Error> {
        let planes = Self::planes(party, shape, std::slice::from_ref(value), (shape.0.bits() - 1, 1))?;
        Self::elements(party, (ring, shape.1), &planes, 1)
    }

    fn flipped(party: &mut SeatParty, bits: &ClearShares) -> Result<ClearShares, Error> {
        let Some(bits) = bits else { return Ok(None) };
        let (ring, one) = (VectorRing::Z2, splat(VectorRing::Z2, 1));
        let z = ClearRun::beside(party, &bits.vector, bits.blocks)?;
        let terms = [(bits.all(), one)];
        party.queue.step(&VectorStep::Combine {
            ring,
            z: z.all(),
            terms: &terms,
            constant: Some((0, one)),
        })?;
        Ok(Some(z))
    }

    fn planes(
        party: &mut SeatParty,
        (ring, len): Shape,
        values: &[ClearShares],
        (from, width): (u32, u32),
    ) -> Result<ClearShares, Error> {
        let Some(Some(first)) = values.first() else { return Ok(None) };
        let blocks = VectorRing::Z2.blocks(len);
        let stride = values.len() * blocks;
        let z = ClearRun::beside(party, &first.vector, width as usize * stride)?;
        for (i, value) in values.iter().flatten().enumerate() {
            let value = value.beside_of(party, first)?;
            let to = z.at(i * blocks, (width as usize - 1) * stride + blocks);
            party.queue.step(&VectorStep::Planes { ring, z: to, x: value.all(), from, width, stride })?;
        }
        Ok(Some(z))
    }

    fn elements(
        party: &mut SeatParty,
        (ring, len): Shape,
        planes: &ClearShares,
        width: u32,
    ) -> Result<ClearShares, Error> {
        let Some(planes) = planes else { return Ok(None) };
        let (stride, blocks) = (planes.blocks / width as usize, VectorRing::Z2.blocks(len));
        let z = ClearRun::beside(party, &planes.vector, ring.blocks(len))?;
        let x = planes.at(0, (width as usize - 1) * stride + blocks);
        party.queue.step(&VectorStep::Elements { ring, z: z.all(), x, width, stride })?;
        Ok(Some(z))
    }

    fn one_hot(
        party: &mut SeatParty,
        planes: &ClearShares,
        blocks: usize,
        groups: &[u32],
    ) -> Result<ClearShares, Error> {
        let Some(planes) = planes else { return Ok(None) };
        let hot: usize = groups.iter().map(|bits| (1 << bits) - 1).sum();
        let grouped = groups.iter().map(|bits| *bits as usize).sum::<usize>() * blocks;
        let rest = planes.blocks - grouped;
        let z = ClearRun::beside(party, &planes.vector, hot * blocks + rest)?;
        let (mut from, mut to) = (0, 0);
        for &bits in groups {
            let group: Vec<_> = (0..bits as usize).map(|i| planes.at(from + i * blocks, blocks)).collect();
            let of = |a: usize| z.at(to + (a - 1) * blocks, blocks);
            one_hot_group(party, &group, &of)?;
            from += bits as usize * blocks;
            to += ((1 << bits) - 1) * blocks;
        }
        let (ring, terms) = (VectorRing::Z2, [(planes.at(from, rest), splat(VectorRing::Z2, 1))]);
        party.queue.step(&VectorStep::Combine { ring, z: z.at(to, rest), terms: &terms, constant: None })?;
        Ok(Some(z))
    }

    fn random(
        &self,
        party: &mut SeatParty,
        side: Side,
        (ring, len): Shape,
        bits: u32,
    ) -> Result<Self, Error> {
        let (z, round) = (self.zeros(party, ring, len)?, party.next_round());
        if party.speculates() {
            return Ok(z);
        }
        for summand in side.summands() {
            let Some(key) = party.seat().part_of(summand) else { continue };
            let name = StreamName { round, r#use: Use::Share, channel: [summand; 2] };
            let part = z.part(key);
            let draw = VectorStep::Draw { ring, z: part, x: None, negative: false, key, name, first: 0 };
            party.queue.step(&draw)?;
            if bits < ring.bits() {
                let keep = VectorStep::Shift { ring, z: part, x: part, by: 0, signed: false, keep: bits };
                party.queue.step(&keep)?;
            }
        }
        Ok(z)
    }

    fn enter(
        &self,
        party: &mut SeatParty,
        session: &mut Session,
        entries: Vec<SideEntry<ClearShares>>,
    ) -> Result<Vec<Self>, Error> {
        let mut entered = Vec::with_capacity(entries.len());
        let (mut shapes, mut joints) = (Vec::new(), Vec::new());
        for entry in entries {
            let (ring, len) = entry.shape;
            let near = entry.value.as_ref().map_or(&self.vector, |value| &value.vector);
            let z = Self::zeros_beside(party, near, entry.shape)?;
            for (seats, range) in halves(entry.side, ring.blocks(len)) {
                shapes.push(JointShape { seats, ring, len: range.len() * ring.lanes() });
                joints.push((entry.value.clone(), z.clone(), range.start));
            }
            entered.push(z);
        }
        party.joint_in(session, &shapes, &mut DeviceJoints(joints))?;
        Ok(entered)
    }

    fn cross(
        party: &mut SeatParty,
        session: &mut Session,
        sums: &[Vec<Term<'_, Self>>],
    ) -> Result<Vec<Self>, Error> {
        let factors: Vec<&Self> = sums.iter().flatten().flat_map(|(x, y)| [*x, *y]).collect();
        let factors = Self::together(party, &factors)?;
        let near = factors.first().ok_or_else(|| Error::misuse("a sum has a term"))?;
        let me = party.seat();
        let (ring, len, blocks) = (near.ring(), near.len(), near.blocks());
        let all = sums.len() * blocks;
        let (mut shapes, mut joints, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for (summands, seats) in CROSSES {
            let parts = summands.map(|summand| me.part_of(Seat::new(summand)));
            let mut value = None;
            if let [Some(low), Some(high)] = parts {
                let run = ClearRun::beside(party, &near.vector, all)?;
                let mut pairs = factors.chunks(2).map(|pair| [pair[0].part(low), pair[1].part(high)]);
                for (i, terms) in sums.iter().enumerate() {
                    let terms: Vec<_> = pairs.by_ref().take(terms.len()).collect();
                    add_products(party, (ring, run.at(i * blocks, blocks)), &terms)?;
                }
                value = Some(run);
            }
            let result = near.zeros(party, ring, all * ring.lanes())?;
            shapes.push(JointShape { seats: seats.map(Seat::new), ring, len: all * ring.lanes() });
            joints.push((value, result.clone(), 0));
            results.push(result);
        }
        party.joint_in(session, &shapes, &mut DeviceJoints(joints))?;
        Ok(party.sum_of(&results)?.cut(&vec![len; sums.len()]))
    }

    fn product(&self, party: &mut SeatParty, session: &mut Session, by: &Self) -> Result<Self, Error> {
        party.dot_on_device(session, &[self], &[by])
    }

    fn open_low(&self, party: &mut SeatParty, session: &mut Session) -> Result<ClearShares, Error> {
        let viewers = Side::Low.holders();
        let (ring, blocks, x) = (self.ring(), self.blocks(), self.trimmed(party)?);
        let mut missing = None;
        if let Some(stub) = &mut party.stub {
            stub.quote.open_to(ring, self.len(), &viewers);
            missing = viewers.contains(&party.seat).then(|| vec![Block::ZERO; blocks]);
        } else {
            let mut parts: [ClearVector; 2] = Default::default();
            for (k, (part, wanted)) in parts.iter_mut().zip(party.opens(&viewers)).enumerate() {
                if wanted {
                    *part = ClearVector::zeros(blocks);
                    party.queue.read_run(&x.part(1 + k), part)?;
                }
            }
            let [p1, p2] = &parts;
            missing = party.open_parts(session, blocks, &viewers, [p1, p2])?.or(missing);
        }
        let Some(missing) = missing.map(ClearVector::new) else { return Ok(None) };
        let opened = ClearRun::beside(party, &x.vector, blocks)?;
        party.queue.write_run(&opened.all(), &missing)?;
        let (z, one) = (opened.all(), splat(ring, 1));
        let terms = [(z, one), (x.part(0), one), (x.part(1), one), (x.part(2), one)];
        party.queue.step(&VectorStep::Combine { ring, z, terms: &terms, constant: None })?;
        Ok(Some(opened))
    }

    fn onto_device(_: &mut SeatParty, _: &[&Self], _: usize) -> Result<Option<Vec<DeviceShares>>, Error> {
        Ok(None)
    }

    fn from_device(_: &mut SeatParty, vectors: Vec<DeviceShares>) -> Result<Vec<Self>, Error> {
        Ok(vectors)
    }
}

/// One-hot planes of a group, bit by bit: every bit cuts each plane of those before it in two, and its own
/// less all of these is the one where they are 0.
fn one_hot_group<'a>(
    party: &mut SeatParty,
    group: &[VectorRun<'a>],
    of: &impl Fn(usize) -> VectorRun<'a>,
) -> Result<(), Error> {
    let (ring, one, constant) = (VectorRing::Z2, splat(VectorRing::Z2, 1), None);
    for (i, &bit) in group.iter().enumerate() {
        let size = 1 << i;
        for a in 1..size {
            party.queue.step(&VectorStep::Cross { ring, z: of(a + size), terms: &[[of(a), bit]] })?;
        }
        let others = (1..size).map(|a| (of(a + size), one));
        let terms: Vec<_> = [(bit, one)].into_iter().chain(others).collect();
        party.queue.step(&VectorStep::Combine { ring, z: of(size), terms: &terms, constant })?;
        for a in 1..size {
            let terms = [(of(a), one), (of(a + size), one)];
            party.queue.step(&VectorStep::Combine { ring, z: of(a), terms: &terms, constant })?;
        }
    }
    Ok(())
}

/// Joint inputs with a device: the value, the result, and where in both they begin.
struct DeviceJoints(Vec<(ClearShares, DeviceShares, usize)>);

impl JointPlaces for DeviceJoints {
    fn enter(
        &mut self,
        party: &mut SeatParty,
        at: usize,
        joint: &JointShape,
        (round, first): (u64, u64),
    ) -> Result<Option<JointMessage>, Error> {
        let ((value, result, from), blocks) = (&self.0[at], joint.blocks());
        let ([sender, _, receiver], ring, me) = (joint.seats, joint.ring, party.seat());
        let name = |r#use| StreamName { round, r#use, channel: joint.channel().pair() };
        let key = me.part_of(receiver).expect("the receiver is another seat");
        let mask = result.at(Some(key), *from, blocks);
        let (negative, name_of_mask) = (false, name(Use::Mask));
        let draw = VectorStep::Draw { ring, z: mask, x: None, negative, key, name: name_of_mask, first };
        party.queue.step(&draw)?;
        let Some(key) = me.part_of(joint.fourth()) else { return Ok(None) };
        let value =
            value.as_ref().ok_or_else(|| Error::misuse("a joint input has its value at two seats"))?;
        let rest = result.at(Some(key), *from, blocks);
        let terms = [(value.at(*from, blocks), splat(ring, 1)), (mask, splat(ring, u128::MAX))];
        party.queue.step(&VectorStep::Combine { ring, z: rest, terms: &terms, constant: None })?;
        if !party.settings.checked() && me != sender {
            return Ok(None);
        }
        let hidden = ClearRun::beside(party, &result.vector, if party.settings.masked { blocks } else { 0 })?;
        let mut message = rest;
        if party.settings.masked {
            message = hidden.all();
            let (x, name) = (Some(rest), name(Use::Wire));
            party.queue.step(&VectorStep::Draw { ring, z: message, x, negative, key, name, first })?;
        }
        if me != sender && party.settings.hash == TagHash::Keyed {
            let tag = me.part_of(sender).expect("the sender is another seat");
            return Ok(Some(JointMessage::Digest(party.queue.digest(tag, &message)?, blocks)));
        }
        let mut all = ClearVector::zeros(blocks);
        party.queue.read_run(&message, &mut all)?;
        Ok(Some(JointMessage::Blocks(all)))
    }

    fn receive(
        &mut self,
        party: &mut SeatParty,
        at: usize,
        joint: &JointShape,
        (round, first): (u64, u64),
        message: ClearVector,
    ) -> Result<(), Error> {
        let (_, result, from) = &self.0[at];
        let (ring, key) = (joint.ring, party.seat().part_of(joint.fourth()).expect("another seat"));
        let z = result.at(Some(key), *from, joint.blocks());
        party.queue.write_run(&z, &message)?;
        if party.settings.masked {
            let name = StreamName { round, r#use: Use::Wire, channel: joint.channel().pair() };
            let (x, negative) = (Some(z), true);
            party.queue.step(&VectorStep::Draw { ring, z, x, negative, key, name, first })?;
        }
        Ok(())
    }
}

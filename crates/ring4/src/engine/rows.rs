//! Row and combine: owners enter, the seats compute on chunks of rows as lanes.
//!
//! **Functionality.** Every owner enters what it knows of its columns; the seats hold every total that nobody
//! knows, and one bit of every row of a list, in summands. A total that an owner knows alone stays with it.
//!
//! **Security, who learns what.** That of the engine; sizes and the program are public.
//!
//! **Paper and deviations.** The paper multiplies numbers; here a row is a boolean circuit
//! (`program::lower::lower_boolean`) on packed bits, for comparisons are what costs. Sums are carry-save over
//! the rows ([`crate::sums`]), best rows trees of merges ([`crate::combine`]). Where owners enter columns and
//! nothing derived, wide products are of numbers ([`crate::numbers`]), and the row is rewritten so that
//! shares compute little (`program::lower::hoist`).
//!
//! **Cost.** The gates of one row times the rows, about one AND per bit of every term that is summed, the
//! numbers, and the merges; one round per layer and chunk. Rows come in chunks, so that memory does not grow
//! with them but for lists.

use crate::bits::{BitSlices, LANES, blocks};
use crate::engine::combine::{MergeLanes, Merges};
use crate::engine::evaluate::{LayerEvaluator, LayeredCircuit};
use crate::engine::numbers::{self, Sums};
use crate::engine::sums::{Columns, Motions};
use crate::engine::times::{RowPhase, RowTimes};
use crate::seats::member::Member;
use crate::{Ring4, RoundQuote, Seat, VectorRing};
use accel::DeviceQueue;
use base::{Error, PartyId, limits};
use circuits::InputBit;
use engine::{ClearTotal, PreparedRows, RowInput, SERVERS, Share, Shares, StagePrice};
use kernels::Block;
use net::Session;
use program::ShardRows;
use program::entries::Knows;
use program::eval::{NodeValues, closure};
use program::lower::combine::SumTerms;
use program::lower::{BooleanFold, BooleanPlan, EntryRule, INDEX_WORD, hoist, lower_boolean};
use program::{Holder, NodeId, Op, Program, RowFold, ValueType};
use std::collections::HashMap;
use std::sync::Arc;
use zeroize::Zeroize;

/// Most bytes of live wires of one chunk at a seat: what stays in a cache.
const CHUNK_BYTES: usize = 16 << 20;
/// The same where all rows are one chunk: few rows wait for rounds, not for memory.
const WHOLE_BYTES: usize = 64 << 20;
/// Most rows of a chunk, and fewest.
const CHUNK_ROWS: [usize; 2] = [1 << 16, 1 << 7];
/// Rows evaluated in the clear at once.
const BATCH: usize = 4096;
/// From so many bits of a value on all of them are had by turning 128 values at once.
const TRANSPOSED: usize = 4;

/// Rows of a program, made ready.
#[derive(Clone)]
pub struct RingRows {
    lowered: Arc<LoweredRows>,
    ring4: Ring4,
    times: Arc<RowTimes>,
}

/// What depends on neither the number of rows nor the channels.
struct LoweredRows {
    /// As it is computed: the same totals as the study's.
    program: Program,
    plan: BooleanPlan,
    /// The circuit of one row, but for the bits of its number.
    leaf: Arc<Leaf>,
    sums: Vec<SumTerms>,
}

/// What is done for one row.
struct Leaf {
    circuit: LayeredCircuit,
    /// Bits of public columns: their place among what the first owner enters. The others enter them as well,
    /// to be compared.
    public: Vec<(usize, InputBit)>,
}

impl Leaf {
    fn new(program: &Program, plan: &BooleanPlan, inputs: EntryRule) -> Self {
        // What everybody knows enters as the first owner's: servers without data know nothing but the number
        // of a row.
        let knows = |input: &InputBit| match input.owner {
            _ if input.word == INDEX_WORD => Knows::Nobody,
            _ if plan.is_shared(input) => Knows::Shares,
            owner => Knows::Party(owner.unwrap_or(PartyId(0))),
        };
        let owners = program.parties.len();
        let circuit = LayeredCircuit::new(&plan.leaf.circuit, &plan.leaf.roots, owners, &knows, inputs);
        let is_public = |input: &InputBit| match program.row.node(NodeId(input.word)).op {
            Op::Column(column) => program.columns[column as usize].holder == Holder::Public,
            _ => false,
        };
        let public = match inputs {
            EntryRule::Derived => Vec::new(),
            EntryRule::Columns => circuit.inputs_of(0).filter(|(_, input)| is_public(input)).collect(),
        };
        Self { circuit, public }
    }
}

impl RingRows {
    pub(crate) fn new(program: &Program, ring4: Ring4) -> Self {
        let inputs = ring4.settings.inputs();
        let program = match inputs {
            EntryRule::Derived => program.clone(),
            EntryRule::Columns => hoist(program),
        };
        let plan = lower_boolean(&program, ring4.shape, 1, inputs);
        let leaf = Arc::new(Leaf::new(&program, &plan, inputs));
        let widths = program.summand_bits();
        let sums = plan.folds.iter().zip(&widths).filter_map(|(fold, width)| {
            let BooleanFold::Tree(tree) = fold else { return None };
            tree.terms().map(|terms| SumTerms { total: (*width).into(), ..terms })
        });
        let sums = sums.collect();
        let lowered = Arc::new(LoweredRows { program, plan, leaf, sums });
        Self { lowered, ring4, times: Arc::default() }
    }

    /// The same where others than its two ends can read the channels between servers, or not: messages are
    /// masked then.
    #[must_use]
    pub fn masked(&self, masked: bool) -> Self {
        let mut same = self.clone();
        same.ring4.settings.masked = masked;
        same
    }

    /// The same on other devices of this participant.
    #[must_use]
    pub fn with_devices(
        &self,
        devices: impl Fn() -> Result<DeviceQueue, Error> + Send + Sync + 'static,
    ) -> Self {
        Self { ring4: self.ring4.clone().with_devices(devices), ..self.clone() }
    }

    /// Whether ranges of the rows can be computed apart: what leaves sums adds up.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        self.lowered.program.folds.iter().all(|fold| matches!(fold, RowFold::Sum { .. }))
    }

    /// Blocks of vectors that a chunk of rows, however many there are, has at once with a device with memory
    /// of its own to which vectors of `least` blocks are handed over, at most about.
    #[must_use]
    pub fn device_blocks(&self, least: usize) -> usize {
        let chunks = self.over(1);
        numbers::device_blocks(&chunks.plan.numbers, chunks.chunk, least)
    }

    /// Where the time goes of all that is run on it, and what devices do of it.
    #[must_use]
    pub fn times(&self) -> &RowTimes {
        &self.times
    }

    /// The engine that it was made ready by.
    #[must_use]
    pub fn ring4(&self) -> &Ring4 {
        &self.ring4
    }

    /// All circuits over so many rows.
    fn over(&self, rows: u64) -> RowChunks<'_> {
        let lowered = &*self.lowered;
        let plan = lowered.plan.clone().with_rows(rows);
        let leaf = match plan.takes_index() {
            true => Arc::new(Leaf::new(&lowered.program, &plan, self.ring4.settings.inputs())),
            false => lowered.leaf.clone(),
        };
        let bytes = leaf.circuit.block_bytes() + numbers::block_bytes(&plan.numbers);
        let [most, fewest] = CHUNK_ROWS;
        let fit = |budget: usize| {
            let rows = LANES * (budget / bytes.max(1));
            1 << rows.clamp(fewest, most).ilog2()
        };
        let whole: usize = fit(WHOLE_BYTES);
        let chunk = if rows <= whole as u64 { whole } else { fit(CHUNK_BYTES) };
        let chunk = self.ring4.chunk.unwrap_or(chunk);
        RowChunks { lowered, merges: Merges::new(&plan), plan, leaf, chunk, times: &self.times }
    }
}

impl PreparedRows for RingRows {
    fn price(&self, rows: u64) -> StagePrice {
        let chunks = self.over(rows);
        chunks.quote(self.ring4.quote(self.lowered.program.parties.len())).price(chunks.and_gates())
    }

    fn run(&self, rows: RowInput<'_>, session: &mut Session) -> Result<Shares, Error> {
        self.ring4.check_roster(self.lowered.program.parties.len(), session)?;
        let rows = rows.owned()?;
        let chunks = self.over(rows.len());
        session.step("rows", |session| chunks.run(&self.ring4, rows, session))
    }
}

/// A row program over a number of rows.
struct RowChunks<'a> {
    lowered: &'a LoweredRows,
    plan: BooleanPlan,
    leaf: Arc<Leaf>,
    merges: Merges,
    /// Rows of a chunk, a power of two.
    chunk: usize,
    times: &'a RowTimes,
}

impl RowChunks<'_> {
    /// First row and number of rows of every chunk.
    fn chunks(&self) -> impl Iterator<Item = (u64, usize)> + use<> {
        let (rows, chunk) = (self.plan.rows, self.chunk as u64);
        (0..rows).step_by(self.chunk).map(move |from| (from, chunk.min(rows - from) as usize))
    }

    /// Levels of the trees within a chunk.
    fn inner_levels(&self) -> u32 {
        self.chunk.ilog2().min(self.plan.levels())
    }

    /// ANDs of shares: those of the rows, of the sums but for their ends, of the merges; and as many as send
    /// what numbers send.
    fn and_gates(&self) -> u64 {
        let sums: u64 = self.lowered.sums.iter().map(|sum| sum.width as u64).sum();
        (self.leaf.circuit.and_gates() + sums + numbers::and_gates(&self.plan.numbers)) * self.plan.rows
            + self.merges.and_gates(self.plan.rows)
    }

    /// Goes through the motions of [`RowChunks::run`].
    fn quote(&self, mut quote: RoundQuote) -> RoundQuote {
        if self.plan.is_alone() {
            return quote;
        }
        quote.member_setup();
        let (mut sums, mut chunks) = (Motions::new(&self.lowered.sums), 0);
        for (_, rows) in self.chunks() {
            self.leaf.circuit.quote_enter(&mut quote, rows);
            for owner in self.comparers() {
                quote.enter(owner, VectorRing::Z2, self.leaf.public.len() * rows);
                quote.open(VectorRing::Z2, self.leaf.public.len() * rows);
            }
            self.leaf.circuit.quote_join(&mut quote, rows);
            numbers::quote(&self.plan.numbers, &mut quote, rows);
            sums.absorb(&mut quote, rows);
            self.merges.quote(&mut quote, rows, 0..self.inner_levels());
            chunks += 1;
        }
        self.merges.quote(&mut quote, chunks, self.inner_levels()..self.plan.levels());
        self.merges.quote_finish(&mut quote);
        sums.finish(&mut quote);
        quote
    }

    /// Who enters public columns to be compared with the first owner's.
    fn comparers(&self) -> impl Iterator<Item = PartyId> + use<> {
        let owners = if self.leaf.public.is_empty() { 1 } else { self.lowered.program.parties.len() };
        (1..owners).map(|owner| PartyId(owner as u8))
    }

    /// Makes sure that all owners enter the same public columns: their differences are opened, which tells
    /// nothing but that they are zero.
    fn compare_public(
        &self,
        member: &mut Member,
        session: &mut Session,
        (from, count): (u64, usize),
        first: &BitSlices<3>,
        own: &Own,
    ) -> Result<(), Error> {
        for owner in self.comparers() {
            let bits = self.leaf.public.len() * count;
            let mut value = BitSlices::<1>::with_capacity(bits);
            if owner == session.me() {
                let mut plane = vec![Block::ZERO; blocks(count)];
                for (_, input) in &self.leaf.public {
                    own.fill(input, from, &mut plane)?;
                    value.push([&plane], 0, count, [Block::ZERO]);
                }
            }
            let shares = member.enter(session, owner, (VectorRing::Z2, bits), value.part(0))?;
            let (Some(shares), Some(server)) = (shares, member.server()) else { continue };
            let mut difference = BitSlices::<3>::with_capacity(bits);
            for (at, _) in &self.leaf.public {
                difference.append(&first.cut(at * count, count));
            }
            difference.xor(&BitSlices::of(shares));
            if server.open(session, &difference.into_shares())?.iter().any(|block| *block != Block::ZERO) {
                let both = [PartyId(0), owner];
                let check = "they entered different values of a public column: one of both deviates, or \
                             their data differ";
                return Err(session.accuse_one_of(&both, check));
            }
        }
        Ok(())
    }

    /// Refuses what cannot be run, before anything is sent.
    fn check(&self) -> Result<(), Error> {
        if self.plan.rows <= limits::ROWS {
            return Ok(());
        }
        Err(Error::input(format!(
            "{} rows of the program {} are too many for one computation of ring4: at most {} fit. Split the \
             data into several studies",
            self.plan.rows,
            self.lowered.program.name,
            limits::ROWS
        )))
    }

    /// Runs all rows at one participant, at a seat or without one.
    fn run(&self, ring4: &Ring4, rows: &mut dyn ShardRows, session: &mut Session) -> Result<Shares, Error> {
        self.check()?;
        let (program, plan) = (&self.lowered.program, &self.plan);
        let seat = ring4.seats.iter().position(|party| *party == session.me()).map(Seat::new);
        let mut own = Own::new(plan, program, session.me());
        let numbers = seat.map(|seat| [0, 1, 2].map(|k| seat.summand(k).index()));
        if plan.is_alone() {
            for (from, count) in self.chunks() {
                own.read(plan, program, rows, (from, count))?;
            }
            // Over no rows nothing was combined: summands of zero.
            return Ok(own.shares(plan, program, Held::default(), numbers));
        }
        let mut member = ring4.member(session)?;
        // Keys and seeds are agreed; what follows is masked where `settings` says so.
        let held = session.openly(|s| self.combine(&mut member, rows, &mut own, s))?;
        if let Some(server) = member.server() {
            self.times.book(server.queue().work());
        }
        Ok(own.shares(plan, program, held, numbers))
    }

    fn combine(
        &self,
        member: &mut Member,
        rows: &mut dyn ShardRows,
        own: &mut Own,
        session: &mut Session,
    ) -> Result<Held, Error> {
        let LoweredRows { program, sums, .. } = self.lowered;
        let Self { plan, merges, times, .. } = self;
        let leaf = &self.leaf.circuit;
        let mut evaluator = LayerEvaluator::new(member, session);
        let mut columns = Columns::new(sums);
        let mut numbers = Sums::new(&plan.numbers);
        let mut best = merges.none();
        let mut lists: Vec<BitSlices<3>> = Vec::new();
        for (from, count) in self.chunks() {
            times.time(RowPhase::Read, || own.read(plan, program, rows, (from, count)))?;
            let mut known = |input: &InputBit, [place]: [&mut [Block]; 1]| own.fill(input, from, place);
            let entered = times.time(RowPhase::Enter, || {
                let entered = evaluator.enter(member, session, leaf, count, &mut known)?;
                let check = |s: &mut Session| self.compare_public(member, s, (from, count), &entered[0], own);
                session.step("public", check).map(|()| entered)
            })?;
            // The number of a row is public: summand 0.
            let summand_0 = member.server().and_then(|server| server.seat().part_of(Seat::new(0)));
            let index = &mut |input: &InputBit, places: [&mut [Block]; 3]| match places
                .into_iter()
                .nth(summand_0.unwrap_or(3))
            {
                Some(place) => own.fill(input, from, place),
                None => Ok(()),
            };
            let roots = times
                .time(RowPhase::Gates, || evaluator.join(member, session, leaf, count, &entered, index))?;
            if let Some(server) = member.server() {
                let Sorted { terms, lanes, kept, of_numbers } = Sorted::new(plan, roots);
                if !of_numbers.is_empty() {
                    let absorb = |s: &mut Session| numbers.absorb(server, s, count, of_numbers);
                    times.time(RowPhase::Numbers, || session.step("numbers", absorb))?;
                }
                let mut terms = terms.into_iter();
                times.time(RowPhase::Sums, || columns.absorb(server, session, count, &mut terms))?;
                let lanes = merges.lanes(0, count, &mut lanes.into_iter());
                let levels = 0..self.inner_levels();
                let lanes = times.time(RowPhase::Merges, || {
                    merges.merge(&mut evaluator, member, session, lanes, levels)
                })?;
                best.iter_mut()
                    .zip(lanes)
                    .for_each(|(all, lanes): (&mut MergeLanes, MergeLanes)| all.append(lanes));
                lists.resize_with(kept.len(), BitSlices::default);
                lists.iter_mut().zip(&kept).for_each(|(all, part)| all.append(part));
            }
            session.report(from + count as u64, plan.rows);
        }
        if member.server().is_none() {
            return Ok(Held::default());
        }
        let levels = self.inner_levels()..plan.levels();
        let best = merges.merge(&mut evaluator, member, session, best, levels)?;
        let words = merges.finish(&mut evaluator, member, session, &best)?;
        let sums = columns.finish(&mut evaluator, member, session, plan.rows)?;
        Ok(Held { sums, numbers: numbers.finish(), words, lists })
    }
}

/// What the seats hold of all folds: by sum its summands, of bits and of numbers, by best row the bits of its
/// word, the bits of every list.
#[derive(Default)]
struct Held {
    sums: Vec<[u128; 3]>,
    numbers: Vec<[u128; 3]>,
    words: Vec<Vec<BitSlices<3>>>,
    lists: Vec<BitSlices<3>>,
}

/// The roots of the row circuit.
#[derive(Default)]
struct Sorted {
    /// Of sums of bits.
    terms: Vec<BitSlices<3>>,
    /// Of best rows.
    lanes: Vec<BitSlices<3>>,
    /// Of lists.
    kept: Vec<BitSlices<3>>,
    /// Of what becomes numbers.
    of_numbers: Vec<BitSlices<3>>,
}

impl Sorted {
    fn new(plan: &BooleanPlan, roots: Vec<BitSlices<3>>) -> Self {
        let mut roots = roots.into_iter();
        let mut sorted = Self::default();
        for tree in plan.trees() {
            let of = if tree.terms().is_some() { &mut sorted.terms } else { &mut sorted.lanes };
            of.extend(roots.by_ref().take(tree.lane_bits(0)));
        }
        let lists = plan.folds.iter().filter(|fold| matches!(fold, BooleanFold::Rows)).count();
        sorted.kept = roots.by_ref().take(lists).collect();
        sorted.of_numbers = roots.collect();
        sorted
    }
}

/// What this participant enters of a chunk, packed, and the folds that it computes alone.
struct Own {
    wanted: Vec<bool>,
    values: NodeValues,
    /// By row node: its bits over the rows of the chunk.
    inputs: HashMap<u32, Vec<Vec<Block>>>,
    totals: Vec<Option<ClearTotal>>,
}

impl Own {
    fn new(plan: &BooleanPlan, program: &Program, me: PartyId) -> Self {
        // A server that is no party of the program has no rows to read.
        let party = me.index() < program.parties.len();
        let mine = |owner: Option<PartyId>| party && owner.is_none_or(|o| o == me);
        let bits = plan.input_bits(&|input| party && plan.is_shared(input) || mine(input.owner));
        let inputs = bits.into_iter().map(|(word, bits)| (word, vec![Vec::new(); bits])).collect();
        let total = |(plan, fold): (&BooleanFold, _)| match plan {
            BooleanFold::Alone(owner) if mine(*owner) => Some(ClearTotal::new(fold)),
            _ => None,
        };
        let totals = plan.folds.iter().zip(&program.folds).map(total).collect();
        let roots = if party { plan.clear_roots(program, me) } else { Vec::new() };
        let wanted = closure(&program.row, roots);
        Self { wanted, values: NodeValues::default(), inputs, totals }
    }

    /// Reads and evaluates a chunk of rows.
    fn read(
        &mut self,
        plan: &BooleanPlan,
        program: &Program,
        rows: &mut dyn ShardRows,
        (from, count): (u64, usize),
    ) -> Result<(), Error> {
        debug_assert_eq!(plan.folds.len(), program.folds.len());
        self.inputs.values_mut().flatten().for_each(Vec::clear);
        if !self.wanted.contains(&true) {
            return Ok(());
        }
        let (mut square, mut turned) = ([Block::ZERO; LANES], [Block::ZERO; LANES]);
        for at in (0..count).step_by(BATCH) {
            let (from, lanes) = (from + at as u64, BATCH.min(count - at));
            self.values.evaluate(&program.row, &self.wanted, lanes, &mut |op, out| match op {
                Op::Column(column) => rows.read(*column, from, out),
                _ => Err(Error::misuse("a row section has columns only")),
            })?;
            for (word, planes) in &mut self.inputs {
                let values = self.values.get(NodeId(*word));
                for chunk in values.chunks(LANES) {
                    if planes.len() < TRANSPOSED {
                        planes.iter_mut().enumerate().for_each(|(bit, plane)| plane.push(pack(chunk, bit)));
                        continue;
                    }
                    square.fill(Block::ZERO);
                    square.iter_mut().zip(chunk).for_each(|(block, value)| block.0 = *value);
                    kernels::transpose128(&square, &mut turned);
                    planes.iter_mut().zip(&turned).for_each(|(plane, block)| plane.push(*block));
                }
            }
            square.zeroize();
            turned.zeroize();
            for (total, fold) in self.totals.iter_mut().zip(&program.folds) {
                if let Some(total) = total {
                    total.fold(fold, &program.row, &self.values, from);
                }
            }
        }
        Ok(())
    }

    /// The lanes of one input bit of the chunk that begins with row `from`.
    fn fill(&self, input: &InputBit, from: u64, place: &mut [Block]) -> Result<(), Error> {
        if input.word == INDEX_WORD {
            for (i, block) in place.iter_mut().enumerate() {
                let bit = |lane: u64| u128::from((from + (i * LANES) as u64 + lane) >> input.bit & 1);
                block.0 = (0..LANES as u64).fold(0, |block, lane| block | bit(lane) << lane);
            }
            return Ok(());
        }
        let plane = self.inputs.get(&input.word).and_then(|planes| planes.get(usize::from(input.bit)));
        let plane = plane.filter(|plane| plane.len() == place.len());
        place.copy_from_slice(plane.ok_or_else(|| Error::misuse("a bit that this party does not know"))?);
        Ok(())
    }

    /// What becomes of every fold. `numbers` are those of a seat's summands, nothing without a seat.
    fn shares(
        mut self,
        plan: &BooleanPlan,
        program: &Program,
        held: Held,
        numbers: Option<[usize; 3]>,
    ) -> Shares {
        let (seated, numbers) = (numbers.is_some(), numbers.unwrap_or_default());
        let (mut sums, mut words, mut lists) = (held.sums.into_iter(), held.words.iter(), held.lists.iter());
        let own = std::mem::take(&mut self.totals);
        let folds = program.folds.iter().zip(program.summand_bits());
        type Of<'a> = (&'a BooleanFold, (&'a program::RowFold, u8));
        let share = |((plan, (fold, width)), total): (Of<'_>, Option<ClearTotal>)| match plan {
            BooleanFold::Alone(_) => total.map_or(Share::Absent, |total| total.share(fold)),
            _ if !seated => Share::Absent,
            BooleanFold::Tree(tree) if tree.terms().is_some() => {
                Share::Replicated(by_number(numbers, sums.next().unwrap_or_default()))
            }
            BooleanFold::Tree(_) => Share::Replicated(by_number(numbers, word(words.next()))),
            BooleanFold::Numbers(place) => {
                let parts = held.numbers.get(*place).copied().unwrap_or_default();
                Share::Replicated(by_number(numbers, parts.map(|part| part & ValueType::u(width).mask())))
            }
            BooleanFold::Rows => Share::ReplicatedRows(by_number(numbers, list(lists.next()))),
        };
        Shares::new(plan.folds.iter().zip(folds).zip(own).map(share).collect())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.inputs.values_mut().for_each(Zeroize::zeroize);
    }
}

/// One bit of up to 128 values.
fn pack(values: &[u128], bit: usize) -> Block {
    Block(values.iter().enumerate().fold(0, |block, (i, value)| block | (value >> bit & 1) << i))
}

/// A seat's parts by number of summand.
fn by_number<T>(numbers: [usize; 3], parts: [T; 3]) -> [Option<T>; SERVERS] {
    let mut all = [const { None::<T> }; SERVERS];
    for (number, part) in numbers.into_iter().zip(parts) {
        all[number] = Some(part);
    }
    all
}

/// The parts of a word by its bits.
fn word(bits: Option<&Vec<BitSlices<3>>>) -> [u128; 3] {
    let part = |k: usize| {
        let bits = bits.into_iter().flatten().enumerate();
        bits.fold(0, |word, (i, bit)| word | u128::from(bit.bit(k, 0)) << i)
    };
    [0, 1, 2].map(part)
}

/// The parts of a list, in words of 64 rows.
fn list(bits: Option<&BitSlices<3>>) -> [Vec<u64>; 3] {
    let part = |k: usize| {
        let Some(bits) = bits else { return Vec::new() };
        let halves = bits.part(k).iter().flat_map(|block| [block.0 as u64, (block.0 >> 64) as u64]);
        halves.take(bits.len().div_ceil(64)).collect()
    };
    [0, 1, 2].map(part)
}

/// The parts of a list as bits; what [`list`] made of them.
pub(crate) fn unlist(words: &[u64], into: &mut Vec<Block>) {
    let block = |pair: &[u64]| {
        Block(u128::from(pair[0]) | u128::from(pair.get(1).copied().unwrap_or_default()) << 64)
    };
    into.extend(words.chunks(2).map(block));
    debug_assert_eq!(into.len(), blocks(64 * words.len()));
}

//! The units `e`, `d1`, `d2` and `d3`: the universal identifiers of the rows that only the peer has.
//!
//! `e_c` and `e_p` are merged in slices: those of their elements that begin with the same bits. A slice of
//! `s_p` is a function of the same slice of both sets, and its receiver knows `e_c`, so its size tells
//! nothing that the set `s_p` would not. A partition is some slices.
//!
//! How many elements of `e_c \ e_p` lie in a partition of `e_c` is C's alone: P gets them under another key,
//! dealt by what they became.

use super::barriers::{SealedDifference, SealedStreams};
use super::partitions::Partitioning;
use super::price::{PulseBeat, SLICE_LAG, slice_bits, slice_cap};
use super::{Party, Role, UnitProgress, fault, steps};
use crate::chunks::CHUNK;
use crate::group::{ELEMENT_BYTES, GroupElement};
use crate::spill::{SortedRecords, SpillColumn, SpillQueue, SpillRoom, leading};
use base::Error;
use net::{Session, StepLink};

/// Bytes of a queue's block: a chunk.
const BLOCK: usize = (CHUNK * ELEMENT_BYTES) as usize;

/// What the units `e` made.
struct Differences {
    /// `e_c \ e_p` at C, `e_p \ e_c` at P, dealt by prefix: what this party multiplies first.
    todo: SpillColumn<32>,
    /// Elements of each partition of `s_p`.
    s_p: Vec<u64>,
    /// Rows that only C has, and that only P has.
    only: [u64; 2],
}

/// What the units `e` read and make, dealt by prefix: it outlives them.
pub(super) struct SliceColumns {
    /// `e` of the peer's rows.
    pub e: SortedRecords<32>,
    /// Those of them that this party raises first.
    pub todo: SpillColumn<32>,
}

/// Elements of `e_c \ e_p` that are to be raised, and those that are: the work of the units `d1`.
pub(super) struct DifferenceWork {
    todo: SortedRecords<32>,
    /// Partitions that are not begun, last one first.
    parts: Vec<u32>,
    raised: SpillColumn<32>,
    total: u64,
    piece: Vec<GroupElement>,
}

impl DifferenceWork {
    fn new(room: &SpillRoom, todo: SpillColumn<32>, parts: Partitioning, order: Vec<u32>) -> Self {
        let total = todo.len();
        let raised = SpillColumn::dealt(room, total, parts.bits());
        let mut todo = todo.sorted();
        let mut left: Vec<u32> = order.into_iter().rev().collect();
        todo.enter(left.pop().expect("there is a partition"), parts.bits());
        Self { todo, parts: left, raised, total, piece: Vec::new() }
    }

    /// What was raised, and how many elements there were to raise.
    pub fn into_raised(self) -> (SpillColumn<32>, u64) {
        (self.raised, self.total)
    }
}

/// What C holds during the units `d2`: those of `d1` go on while it waits.
pub(super) struct ImagesOfC {
    pub work: DifferenceWork,
    pub others: OtherRows,
    beat: PulseBeat,
    /// Pieces of `s'_p` that came.
    pieces: u64,
}

/// The peer's rows that are not own ones, at C.
pub(super) struct OtherRows {
    /// What waits for its product.
    pub later: SpillQueue,
    /// Universal identifiers, dealt by prefix.
    pub uids: SpillColumn<32>,
}

impl OtherRows {
    /// Room for about so many, in a partitioning.
    pub fn new(room: &SpillRoom, expected: u64, parts: Partitioning) -> Self {
        let uids = SpillColumn::dealt(room, expected, parts.bits());
        Self { later: SpillQueue::new(room, BLOCK), uids }
    }
}

impl Party<'_> {
    /// The universal identifiers of the rows that only the peer has, from `e` of all rows of the peer.
    pub(super) fn others(
        &mut self,
        session: &mut Session,
        sealed: &SealedStreams,
        e: SpillColumn<32>,
    ) -> Result<SpillColumn<32>, Error> {
        let differences = session.step("e", |s| self.exchange_e(s, sealed, e))?;
        session.step("difference", |s| match self.role {
            Role::C => self.difference_of_c(s, differences),
            Role::P => self.difference_of_p(s, differences),
        })
    }

    /// All units `e`, and what must hold of them together.
    fn exchange_e(
        &mut self,
        session: &mut Session,
        sealed: &SealedStreams,
        e: SpillColumn<32>,
    ) -> Result<Differences, Error> {
        let parts = self.parts;
        let mut columns =
            SliceColumns { e: e.sorted(), todo: SpillColumn::dealt(self.room, self.rows[0], parts.bits()) };
        self.check_e(&session.link(self.peer), &columns.e)?;
        let mut s_p = vec![0; parts.count() as usize];
        self.progress = UnitProgress { total: self.rows_by_role()[0], ..UnitProgress::default() };
        for part in self.order() {
            s_p[part as usize] = match self.role {
                Role::C => self.e_of_c(session, sealed, part, &mut columns)?,
                Role::P => self.e_of_p(session, sealed, part, &mut columns)?,
            };
        }
        let only = self.check_slices(&session.link(self.peer), self.progress.done, s_p.iter().sum())?;
        debug_assert_eq!(columns.todo.len(), only[self.role as usize]);
        Ok(Differences { todo: columns.todo, s_p, only })
    }

    /// Rows of C, and of P.
    fn rows_by_role(&self) -> [u64; 2] {
        if self.role == Role::C { self.rows } else { [self.rows[1], self.rows[0]] }
    }

    /// What must hold of the column `e` before it is read.
    pub(super) fn check_e(&self, link: &StepLink<'_>, e: &SortedRecords<32>) -> Result<(), Error> {
        let sizes = e.part_lens(self.parts.bits());
        sizes.into_iter().try_for_each(|size| self.parts.check_size(link, size, self.rows[1]))
    }

    /// What must hold of all units `e` together, in which so many elements of `e_c` and of `s_p` were said:
    /// rows that only C has, and that only P has.
    pub(super) fn check_slices(&self, link: &StepLink<'_>, e_c: u64, only_p: u64) -> Result<[u64; 2], Error> {
        let [rows_c, rows_p] = self.rows_by_role();
        if e_c != rows_c {
            return Err(link.blame("it returns as many elements as it received"));
        }
        let only_c = rows_p.checked_sub(only_p).and_then(|shared| rows_c.checked_sub(shared));
        let only_c = only_c.ok_or_else(|| link.blame("the intersection is not larger than either set"))?;
        self.check_shared(link, rows_p - only_p)?;
        Ok([only_c, only_p])
    }

    /// Unit `e` of one partition at C: it receives `e_c`, merges it with its `e_p`, and answers with `s_p`,
    /// whose size it gives. Tells which elements of `e_p` are not in `e_c`.
    pub(super) fn e_of_c(
        &mut self,
        session: &mut Session,
        _: &SealedStreams,
        part: u32,
        columns: &mut SliceColumns,
    ) -> Result<u64, Error> {
        let (bits, parts, [rows_c, _]) = (slice_bits(self.rows, self.parts), self.parts, self.rows);
        columns.e.enter(part, parts.bits());
        let (mut e_c, mut own, mut s_p) = (Vec::new(), Vec::new(), Vec::new());
        let mut sizes = [0; 2];
        for slice in parts.slices(part, bits) {
            let mut link = session.link(self.peer);
            recv_slice(&mut link, slice, bits, rows_c, &mut e_c)?;
            self.pins.check(&link, u64::from(slice), &e_c)?;
            sizes[0] += e_c.len() as u64;
            parts.check_size(&link, sizes[0], rows_c)?;
            take_slice(&mut columns.e, slice, bits, &mut own)?.map_err(|f| fault(&link, f))?;
            s_p.clear();
            steps::differences(&own, &e_c, |e| s_p.push(*e), |e| columns.todo.push(e))?;
            sizes[1] += s_p.len() as u64;
            self.pins.says(&s_p);
            send_slice(&mut link, &s_p)?;
            self.progress.done += e_c.len() as u64;
            session.report(self.progress.done, rows_c);
        }
        Ok(sizes[1])
    }

    /// Unit `e` of one partition at P: it sends `e_c` and receives `s_p`, whose size it gives. Tells the set
    /// `e_c`, in an order that has nothing of the order in which its elements came.
    pub(super) fn e_of_p(
        &mut self,
        session: &mut Session,
        _: &SealedStreams,
        part: u32,
        columns: &mut SliceColumns,
    ) -> Result<u64, Error> {
        let (bits, parts, [rows_p, rows_c]) = (slice_bits(self.rows, self.parts), self.parts, self.rows);
        columns.e.enter(part, parts.bits());
        let (mut only_p, mut buffer) = (0, Vec::new());
        let slices = parts.slices(part, bits);
        for slice in slices.start..slices.end + SLICE_LAG {
            let mut link = session.link(self.peer);
            if slice < slices.end {
                take_slice(&mut columns.e, slice, bits, &mut buffer)?.map_err(|f| fault(&link, f))?;
                self.progress.done += buffer.len() as u64;
                self.pins.says(&buffer);
                send_slice(&mut link, &buffer)?;
                // The peer merges this slice while the next one is sorted here.
                link.flush()?;
            }
            if let Some(slice) = slice.checked_sub(SLICE_LAG).filter(|slice| slices.contains(slice)) {
                recv_slice(&mut link, slice, bits, rows_p, &mut buffer)?;
                self.pins.check(&link, u64::from(slice), &buffer)?;
                only_p += buffer.len() as u64;
                parts.check_size(&link, only_p, rows_p)?;
                buffer.iter().try_for_each(|e| columns.todo.push(e))?;
            }
            session.report(self.progress.done, rows_c);
        }
        Ok(only_p)
    }

    /// C multiplies `e_c \ e_p` and then, while P multiplies it in turn, `s'_p`.
    fn difference_of_c(
        &mut self,
        session: &mut Session,
        differences: Differences,
    ) -> Result<SpillColumn<32>, Error> {
        let Differences { todo, s_p, only } = differences;
        let beat = PulseBeat::new(only[0], 0);
        let ImagesOfC { work, mut others, .. } =
            self.images_of_c(session, (self.order(), todo), (&s_p, only[1]), beat)?;
        let mut sealed = SealedDifference::of(work, self.parts)?;
        self.parts.tell_sizes(&mut session.link(self.peer), sealed.sizes())?;
        self.progress = UnitProgress { total: only[0], ..UnitProgress::default() };
        let mut beat = PulseBeat::new(0, only[0]);
        for part in self.order() {
            self.d3_of_c(session, &mut sealed, part, &mut others, &mut beat)?;
        }
        while self.raise_later(&session.link(self.peer), &mut others)? {}
        self.last_pulses(session, &beat)?;
        Ok(others.uids)
    }

    /// The units `d1` and `d2` of some partitions at C: `todo` are the elements to raise, and of `s_p` there
    /// are so many in each partition, `only_p` in all.
    pub(super) fn images_of_c(
        &mut self,
        session: &mut Session,
        (parts, todo): (Vec<u32>, SpillColumn<32>),
        (s_p, only_p): (&[u64], u64),
        beat: PulseBeat,
    ) -> Result<ImagesOfC, Error> {
        self.progress = UnitProgress { total: todo.len().max(only_p), ..UnitProgress::default() };
        let others = OtherRows::new(self.room, only_p, self.parts);
        let work = DifferenceWork::new(self.room, todo, self.parts, parts.clone());
        let mut state = ImagesOfC { work, others, beat, pieces: 0 };
        for part in parts {
            self.d2_of_c(session, part, s_p, &mut state)?;
        }
        while state.work.raised.len() < state.work.total {
            let rows = self.d1(&session.link(self.peer), &mut state.work)?;
            self.report_chunks(session, state.work.raised.len());
            self.pulse(session, &mut state.beat, rows)?;
        }
        Ok(state)
    }

    /// Raises the next chunk of the units `d1`, and gives its rows. It is C's alone and tells nothing.
    fn d1(&self, link: &StepLink<'_>, work: &mut DifferenceWork) -> Result<u64, Error> {
        while fill(&mut work.todo, &mut work.piece)? == 0
            && let Some(part) = work.parts.pop()
        {
            work.todo.enter(part, self.parts.bits());
        }
        self.mul(link, &mut work.piece)?;
        work.piece.iter().try_for_each(|e| work.raised.push(e))?;
        Ok(work.piece.len() as u64)
    }

    /// Unit `d2` of one partition at C: it receives `s'_p`, in the order of `s_p`. Tells pulses: that rows of
    /// `d1` are done, of all partitions together.
    fn d2_of_c(
        &mut self,
        session: &mut Session,
        part: u32,
        s_p: &[u64],
        state: &mut ImagesOfC,
    ) -> Result<(), Error> {
        let (rows, mut piece) = (s_p[part as usize], Vec::new());
        for i in 0..rows.div_ceil(CHUNK) {
            let mut link = session.link(self.peer);
            state.pieces += 1;
            // As many rows as came at most: P takes pulses for as many as it sent.
            let goal = state.work.total.min(state.pieces * CHUNK);
            let mut raised = 0;
            while state.work.raised.len() < goal {
                raised += self.d1(&link, &mut state.work)?;
            }
            recv_piece(&mut link, rows, i, &mut piece)?;
            self.pin_piece(&link, s_p, [u64::from(part), i], &piece)?;
            // As long as P waits for the own product, its answer has to.
            match raised > 0 {
                true => state.others.later.push(piece.as_flattened())?,
                false => self.raise_other(&link, &mut piece, &mut state.others.uids)?,
            }
            self.progress.done += piece.len() as u64;
            self.report_chunks(session, self.progress.done.max(state.work.raised.len()));
            self.pulse(session, &mut state.beat, raised)?;
        }
        Ok(())
    }

    /// Unit `d3` of one partition at C: it sends `s'_c`, in its order, and raises meanwhile what came. Tells
    /// that set, of which P has every size already.
    pub(super) fn d3_of_c(
        &mut self,
        session: &mut Session,
        sealed: &mut SealedDifference,
        part: u32,
        others: &mut OtherRows,
        beat: &mut PulseBeat,
    ) -> Result<(), Error> {
        let s_c = sealed.part(part, self.parts);
        let mut piece = Vec::new();
        while fill(s_c, &mut piece)? > 0 {
            let mut link = session.link(self.peer);
            self.pins.says(&piece);
            link.send(piece.as_flattened())?;
            link.flush()?;
            self.raise_later(&link, others)?;
            self.piece_done(session, beat, &piece)?;
        }
        Ok(())
    }

    /// P multiplies `s_p` and then `s'_c`.
    fn difference_of_p(
        &mut self,
        session: &mut Session,
        differences: Differences,
    ) -> Result<SpillColumn<32>, Error> {
        let Differences { todo, only, .. } = differences;
        let mut s_p = todo.sorted();
        self.progress = UnitProgress { total: only[1], ..UnitProgress::default() };
        let mut beat = PulseBeat::new(0, only[0]);
        for part in self.order() {
            self.d2_of_p(session, part, &mut s_p, &mut beat)?;
        }
        self.last_pulses(session, &beat)?;
        drop(s_p);
        let sizes = self.parts.hear_sizes(&mut session.link(self.peer), only[0])?;
        let mut others = SpillColumn::dealt(self.room, only[0], self.parts.bits());
        self.progress = UnitProgress { total: only[0], ..UnitProgress::default() };
        let mut beat = PulseBeat::new(only[0], 0);
        for part in self.order() {
            self.d3_of_p(session, part, &sizes, &mut others, &mut beat)?;
        }
        Ok(others)
    }

    /// Unit `d2` of one partition at P: it sends `s'_p`, in the order of `s_p`, which C knows.
    pub(super) fn d2_of_p(
        &mut self,
        session: &mut Session,
        part: u32,
        s_p: &mut SortedRecords<32>,
        beat: &mut PulseBeat,
    ) -> Result<(), Error> {
        s_p.enter(part, self.parts.bits());
        let mut piece = Vec::new();
        while fill(s_p, &mut piece)? > 0 {
            let mut link = session.link(self.peer);
            self.mul(&link, &mut piece)?;
            self.pins.says(&piece);
            link.send(piece.as_flattened())?;
            self.piece_done(session, beat, &piece)?;
        }
        Ok(())
    }

    /// Unit `d3` of one partition at P: it receives `s'_c` and raises it. Tells pulses.
    pub(super) fn d3_of_p(
        &mut self,
        session: &mut Session,
        part: u32,
        sizes: &[u64],
        others: &mut SpillColumn<32>,
        beat: &mut PulseBeat,
    ) -> Result<(), Error> {
        let (rows, mut piece, mut last) = (sizes[part as usize], Vec::new(), None);
        for i in 0..rows.div_ceil(CHUNK) {
            let mut link = session.link(self.peer);
            recv_piece(&mut link, rows, i, &mut piece)?;
            self.pin_piece(&link, sizes, [u64::from(part), i], &piece)?;
            steps::check_ascending(&piece, &mut last).map_err(|f| fault(&link, f))?;
            self.parts.check_range(&link, part, &piece)?;
            self.raise_other(&link, &mut piece, others)?;
            self.piece_done(session, beat, &piece)?;
        }
        Ok(())
    }

    /// A piece was sent or came: progress and pulses.
    fn piece_done(
        &mut self,
        session: &mut Session,
        beat: &mut PulseBeat,
        piece: &[GroupElement],
    ) -> Result<(), Error> {
        self.progress.done += piece.len() as u64;
        self.report_chunks(session, self.progress.done);
        self.pulse(session, beat, piece.len() as u64)
    }

    /// Says how many chunks of the step's rows are done.
    fn report_chunks(&self, session: &Session, rows: u64) {
        session.report(rows.div_ceil(CHUNK), self.progress.total.div_ceil(CHUNK));
    }

    /// Pins piece `i` of a partition of `s'_p` or `s'_c`, which come after the slices.
    fn pin_piece(
        &mut self,
        link: &StepLink<'_>,
        sizes: &[u64],
        [part, i]: [u64; 2],
        piece: &[GroupElement],
    ) -> Result<(), Error> {
        let slices = 1u64 << slice_bits(self.rows, self.parts);
        let before: u64 = sizes[..part as usize].iter().map(|rows| rows.div_ceil(CHUNK)).sum();
        self.pins.check(link, slices + before + i, piece)
    }

    /// Multiplies elements of the peer's rows into universal identifiers.
    fn raise_other(
        &self,
        link: &StepLink<'_>,
        elements: &mut [GroupElement],
        uids: &mut SpillColumn<32>,
    ) -> Result<(), Error> {
        self.mul(link, elements)?;
        elements.iter().try_for_each(|e| uids.push(e))
    }

    /// The same with a chunk of what waits; whether there was one.
    pub(super) fn raise_later(&self, link: &StepLink<'_>, others: &mut OtherRows) -> Result<bool, Error> {
        let mut bytes = Vec::new();
        others.later.pop(&mut bytes)?;
        self.raise_other(link, bytes.as_chunks_mut().0, &mut others.uids)?;
        Ok(!bytes.is_empty())
    }
}

/// Replaces `into` by the next elements of a partition, a chunk at most, and gives their number.
fn fill(from: &mut SortedRecords<32>, into: &mut Vec<GroupElement>) -> Result<usize, Error> {
    into.clear();
    while into.len() < CHUNK as usize
        && let Some(e) = from.pop()?
    {
        into.push(e);
    }
    Ok(into.len())
}

/// Replaces `into` by the elements of one slice, which must not repeat: the peer would have repeated one of
/// its own, which would mark it through every later step.
pub(super) fn take_slice(
    from: &mut SortedRecords<32>,
    slice: u32,
    bits: u32,
    into: &mut Vec<GroupElement>,
) -> Result<Result<(), steps::StepFault>, Error> {
    into.clear();
    while let Some(e) = from.head()? {
        if leading(e, bits) != slice {
            break;
        }
        into.extend(from.pop()?);
    }
    Ok(steps::check_distinct(into))
}

fn send_slice(link: &mut StepLink<'_>, slice: &[GroupElement]) -> Result<(), Error> {
    link.send(&(slice.len() as u64).to_le_bytes())?;
    if slice.is_empty() { Ok(()) } else { link.send(slice.as_flattened()) }
}

/// Receives a slice of a column of at most `rows` elements, sorted and without repeats.
fn recv_slice(
    link: &mut StepLink<'_>,
    slice: u32,
    bits: u32,
    rows: u64,
    into: &mut Vec<GroupElement>,
) -> Result<(), Error> {
    let count = link.recv_count("elements of a slice", rows.min(slice_cap(rows, bits)))?;
    into.clear();
    into.resize(count as usize, [0; 32]);
    if count > 0 {
        link.recv(into.as_flattened_mut())?;
    }
    steps::check_ascending(into, &mut None).map_err(|f| fault(link, f))?;
    match into.iter().all(|e| leading(e, bits) == slice) {
        true => Ok(()),
        false => Err(link.blame("the elements of a slice are in its range")),
    }
}

/// Receives chunk `i` of a column of `rows` elements.
fn recv_piece(link: &mut StepLink<'_>, rows: u64, i: u64, into: &mut Vec<GroupElement>) -> Result<(), Error> {
    into.clear();
    into.resize(CHUNK.min(rows - i * CHUNK) as usize, [0; 32]);
    link.recv(into.as_flattened_mut())?;
    steps::check_canonical(into).map_err(|f| fault(link, f))
}

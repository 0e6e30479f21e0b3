//! Where every chunk is.

/// State of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum State {
    /// It holds nothing: never touched, or nothing in it was allocated when it was out of the region.
    New,
    /// In the file alone.
    Disk,
    /// On its way from the file into a frame.
    Reading,
    /// In a frame, ready, held back as a key chunk: its touch tells how far the program is.
    Held,
    /// In the region.
    Resident,
    /// In a frame, as it left the region, waiting for its batch. A touch takes it straight back.
    Out,
    /// In a frame, encrypted, on its way into the file.
    Writing,
}

const STATES: [State; 7] =
    [State::New, State::Disk, State::Reading, State::Held, State::Resident, State::Out, State::Writing];

/// A touch waits for it, or the plan wants it back: it goes into the region as soon as its transfer ends.
pub(super) const WANTED: u8 = 1;
/// By the plan it is resident.
pub(super) const PLANNED: u8 = 1 << 1;
/// By the plan it is only read until it leaves: its place in the file is kept.
pub(super) const CLEAN: u8 = 1 << 2;
/// The plan let it go before its read ended.
pub(super) const UNWANTED: u8 = 1 << 3;

/// It had to leave before the plan's time, for a touch that had no frame: its own touch is no fault of the
/// trace.
pub(super) const EARLY: u8 = 1 << 4;

/// What is in its place in the file is expected to be its content though it is not in the state
/// [`State::Disk`]: the tag will tell.
pub(super) const KEPT: u8 = 1 << 5;

/// No place in the file.
const NOWHERE: u32 = 0;

/// One column per property: a column of zeros costs no memory until its chunks are touched, so that a region
/// of tebibytes is only as expensive as what is used of it.
#[derive(Debug)]
pub(super) struct Chunks {
    state: Vec<u8>,
    flags: Vec<u8>,
    frame: Vec<u32>,
    slot: Vec<u32>,
    stamp: Vec<u32>,
    due: Vec<u64>,
}

impl Chunks {
    pub fn new(count: usize) -> Self {
        Self {
            state: vec![0; count],
            flags: vec![0; count],
            frame: vec![0; count],
            slot: vec![NOWHERE; count],
            stamp: vec![0; count],
            due: vec![0; count],
        }
    }

    pub fn len(&self) -> usize {
        self.state.len()
    }

    pub fn state(&self, chunk: u32) -> State {
        STATES[self.state[chunk as usize] as usize]
    }

    pub fn set_state(&mut self, chunk: u32, state: State) {
        self.state[chunk as usize] = state as u8;
    }

    pub fn has(&self, chunk: u32, flag: u8) -> bool {
        self.flags[chunk as usize] & flag != 0
    }

    pub fn set(&mut self, chunk: u32, flag: u8, on: bool) {
        let flags = &mut self.flags[chunk as usize];
        *flags = if on { *flags | flag } else { *flags & !flag };
    }

    /// Its frame, while it is in one.
    pub fn frame(&self, chunk: u32) -> u32 {
        self.frame[chunk as usize]
    }

    pub fn set_frame(&mut self, chunk: u32, frame: u32) {
        self.frame[chunk as usize] = frame;
    }

    /// Its place in the file, if what lies there is (or may still be) its content.
    pub fn slot(&self, chunk: u32) -> Option<u32> {
        self.slot[chunk as usize].checked_sub(1)
    }

    pub fn set_slot(&mut self, chunk: u32, slot: u32) {
        self.slot[chunk as usize] = slot + 1;
    }

    pub fn take_slot(&mut self, chunk: u32) -> Option<u32> {
        std::mem::replace(&mut self.slot[chunk as usize], NOWHERE).checked_sub(1)
    }

    /// Counts its arrivals, so that queues know which of their items are of the past.
    pub fn stamp(&self, chunk: u32) -> u32 {
        self.stamp[chunk as usize]
    }

    pub fn restamp(&mut self, chunk: u32) -> u32 {
        let stamp = &mut self.stamp[chunk as usize];
        *stamp = stamp.wrapping_add(1);
        *stamp
    }

    /// Block of the plan's use that it comes in for.
    pub fn due(&self, chunk: u32) -> u64 {
        self.due[chunk as usize]
    }

    pub fn set_due(&mut self, chunk: u32, block: u64) {
        self.due[chunk as usize] = block;
    }
}

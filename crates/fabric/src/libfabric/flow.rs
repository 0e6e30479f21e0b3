//! The bookkeeping of one libfabric endpoint: what is staged, posted, arrived and read, under one lock.
//!
//! **Notices.** Every write carries 32 bits to the peer. Bit 31 clear: a write has landed; bits 19 to 30
//! count writes (modulo 4096) and bits 0 to 18 are its length. It lies where the one before it ends; none
//! goes over the end of landing. Bit 31 set: a credit, the number of bytes read so far modulo 2^31. Notices
//! may overtake each other; the count puts data back in order, and an older credit than the last is passed
//! over.

use super::shim::{EndpointEvent, ShimEndpoint};
use std::collections::BTreeMap;

/// Longest write.
const PIECE_BYTES: u64 = 256 << 10;
const LENGTH_BITS: u32 = 19;
const COUNTS: u32 = 1 << (31 - LENGTH_BITS);
/// Writes that may overtake each other; more than an endpoint has under way.
const EARLY: u32 = COUNTS / 4;
const CREDIT: u32 = 1 << 31;
/// Looks after a failure for what has arrived before it: each gives some tens of events, or one failed write.
const LAST_LOOKS: u32 = 1024;

const _: () = assert!(PIECE_BYTES < 1 << LENGTH_BITS, "a length fits its bits");

pub(super) struct Flow {
    endpoint: ShimEndpoint,
    events: Vec<EndpointEvent>,
    /// Bytes of landing and of staging.
    ring: u64,
    /// Longest write here.
    piece: u64,

    /// Bytes staged; of these those that are to go, those written, and those that the peer has read.
    staged: u64,
    wanted: u64,
    posted: u64,
    credited: u64,
    /// Writes so far, and those that have not arrived yet.
    writes: u32,
    under_way: u32,

    /// Bytes that have landed without a gap, and bytes read; of these those that the peer knows of.
    landed: u64,
    read: u64,
    told: u64,
    /// The next count, and lengths of writes that have overtaken it.
    next: u32,
    early: BTreeMap<u32, u64>,
    /// A credit is due; the first says that we are there.
    owes: bool,
    /// The peer's first notice has come.
    pub(super) greeted: bool,
    /// With what the endpoint failed.
    pub(super) failed: Option<String>,
    /// Whether a poll can wait.
    pub(super) waits: bool,
}

impl Flow {
    pub(super) fn new(endpoint: ShimEndpoint, ring: usize) -> Self {
        let ring = ring as u64;
        let piece = PIECE_BYTES.min(ring / 8).max(1);
        Self {
            endpoint,
            events: Vec::new(),
            ring,
            piece,
            staged: 0,
            wanted: 0,
            posted: 0,
            credited: 0,
            writes: 0,
            under_way: 0,
            landed: 0,
            read: 0,
            told: 0,
            next: 0,
            early: BTreeMap::new(),
            owes: true,
            greeted: false,
            failed: None,
            waits: false,
        }
    }

    /// Bytes that can be staged now.
    pub(super) fn space(&self) -> u64 {
        self.ring - (self.staged - self.credited)
    }

    /// Bytes that can be read now.
    pub(super) fn ready(&self) -> u64 {
        self.landed - self.read
    }

    /// Whether everything that was to go has arrived.
    pub(super) fn settled(&self) -> bool {
        self.all_posted() && self.under_way == 0 && !self.owes
    }

    /// Whether everything that was to go is written, though the peer may not have said so yet.
    pub(super) fn all_posted(&self) -> bool {
        self.posted == self.wanted
    }

    /// Stages what fits of `bytes` and gives how many; full pieces go at once.
    pub(super) fn stage(&mut self, bytes: &[u8]) -> usize {
        let at = self.staged % self.ring;
        let fits = self.space().min(self.ring - at);
        let now = &bytes[..bytes.len().min(fits as usize)];
        self.endpoint.stage(at as usize, now);
        self.staged += now.len() as u64;
        if self.staged - self.wanted >= self.piece {
            self.flush();
        }
        now.len()
    }

    /// Everything staged is to go.
    pub(super) fn flush(&mut self) {
        self.wanted = self.staged;
        self.poll(0);
    }

    /// Copies what has landed, as much as fits, and gives how many bytes. Landing is read here and nowhere
    /// else.
    pub(super) fn take(&mut self, into: &mut [u8]) -> usize {
        let at = self.read % self.ring;
        let take = into.len().min(self.ready().min(self.ring - at) as usize);
        self.endpoint.take(at as usize, &mut into[..take]);
        self.read += take as u64;
        // Often enough that a peer never waits for space while we have none of its bytes left.
        if self.read - self.told >= self.ring / 8 {
            self.owes = true;
            self.poll(0);
        }
        take
    }

    /// Moves everything on, waiting for an event at most that long. A failure is kept in `failed`.
    pub(super) fn poll(&mut self, wait_ms: u32) {
        if self.failed.is_some() {
            return;
        }
        let done = self.post().and_then(|()| self.collect(wait_ms)).and_then(|_| self.post());
        if let Err(why) = done {
            self.collect_last();
            self.failed = Some(why);
        }
    }

    /// What the peer wrote before it left still counts, though a write to it fails.
    fn collect_last(&mut self) {
        for _ in 0..LAST_LOOKS {
            if self.collect(0) == Ok(0) {
                return;
            }
        }
    }

    fn post(&mut self) -> Result<(), String> {
        if self.owes && self.endpoint.tell(CREDIT | self.read as u32 & !CREDIT)? {
            (self.owes, self.told) = (false, self.read);
            self.under_way += 1;
        }
        while self.posted < self.wanted {
            let at = self.posted % self.ring;
            let length = self.piece.min(self.wanted - self.posted).min(self.ring - at);
            let notice = (self.writes % COUNTS) << LENGTH_BITS | length as u32;
            if !self.endpoint.put(at as usize, length as usize, notice)? {
                break;
            }
            self.writes = self.writes.wrapping_add(1);
            self.under_way += 1;
            self.posted += length;
        }
        Ok(())
    }

    /// Books what has happened and gives how many things did.
    fn collect(&mut self, wait_ms: u32) -> Result<usize, String> {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        self.waits = self.endpoint.poll(wait_ms, &mut events)?;
        let done = events.iter().try_for_each(|event| match *event {
            EndpointEvent::Arrived => {
                self.under_way = self.under_way.saturating_sub(1);
                Ok(())
            }
            EndpointEvent::Told(notice) if notice & CREDIT != 0 => self.credit(notice & !CREDIT),
            EndpointEvent::Told(notice) => {
                self.land(notice >> LENGTH_BITS, notice & ((1 << LENGTH_BITS) - 1))
            }
        });
        self.events = events;
        done.map(|()| self.events.len())
    }

    /// The peer has read so many bytes in all, modulo 2^31.
    fn credit(&mut self, read: u32) -> Result<(), String> {
        self.greeted = true;
        let more = u64::from(read.wrapping_sub(self.credited as u32) & !CREDIT);
        if more >= 1 << 30 {
            return Ok(());
        }
        if more > self.posted - self.credited {
            return Err(IMPOSSIBLE.into());
        }
        self.credited += more;
        Ok(())
    }

    fn land(&mut self, count: u32, length: u32) -> Result<(), String> {
        let ahead = count.wrapping_sub(self.next) % COUNTS;
        let known = length > 0 && u64::from(length) <= self.piece && ahead < EARLY;
        if !known || self.early.insert(count, length.into()).is_some() {
            return Err(IMPOSSIBLE.into());
        }
        while let Some(length) = self.early.remove(&self.next) {
            let to_end = self.ring - self.landed % self.ring;
            if length > to_end || self.ready() + length > self.ring {
                return Err(IMPOSSIBLE.into());
            }
            self.landed += length;
            self.next = (self.next + 1) % COUNTS;
        }
        Ok(())
    }
}

const IMPOSSIBLE: &str = "a notice of a write is impossible: something else writes to this endpoint; \
                          run without trusted_network, over TLS";

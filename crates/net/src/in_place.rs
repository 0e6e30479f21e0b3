//! Long messages that are written and read where a transport keeps them, by whoever is given their places: a
//! device copies by itself, and the bytes are in no other memory of this process.
//!
//! A transport has such memory ([`Channel::in_place`]) or not. [`Outlet`] and [`Inlet`] are the same over
//! both: over one that has none the places are in an ordinary buffer, and the bytes go through it.

use crate::Channel;
use base::{At, ChannelError, Error, Fault};
use kernels::{Block, GfKey, Place, SharedMemory};
use std::collections::VecDeque;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of a message that has a place, at most.
pub const PLACED_BYTES: usize = 64 << 10;
/// Messages that the ordinary buffer holds.
const SLOTS: usize = 32;

/// Messages that lie in the memory of a transport. Others may write to it at any time: what is read from a
/// place is checked by [`InPlace::check`] as it is at that time, so who lets a device read it has a check of
/// its own where the peer may do anything, or checks the digests of what the device has read
/// ([`InPlace::release_unchecked`]).
pub trait InPlace {
    /// Places for the next messages of these lengths, [`PLACED_BYTES`] at most each: as many as there is room
    /// for now. Waits until there is room for one, if asked and if none is reserved.
    ///
    /// # Errors
    /// As [`Channel::send`].
    fn reserve(&mut self, lengths: &[usize], wait: bool) -> Result<Vec<Vec<Place>>, ChannelError>;

    /// The keys under which messages are digested for their tags ([`kernels::gf_digest`], after nothing):
    /// those that are sent, and those that are received. A device that has the messages may digest them.
    fn body_keys(&self) -> [Arc<GfKey>; 2];

    /// Sends so many of the messages that have places, the oldest: they are written. Whoever wrote them may
    /// say their digests; all are whole blocks then.
    ///
    /// # Errors
    /// As [`Channel::send`], and when there are not as many digests.
    fn publish(&mut self, messages: usize, digests: Option<&[Block]>) -> Result<(), ChannelError>;

    /// Places of the next messages of these lengths, as many as are there. Waits for one, if asked.
    ///
    /// # Errors
    /// As [`Channel::recv`].
    fn peek(&mut self, lengths: &[usize], wait: bool) -> Result<Peeked, ChannelError>;

    /// Whether so many of those that were seen, the oldest that were not asked about, are what was sent.
    ///
    /// # Errors
    /// When one is not.
    fn check(&mut self, messages: usize) -> Result<(), ChannelError>;

    /// Gives back the places of so many, the oldest: nobody reads them any more.
    ///
    /// # Errors
    /// When they were not checked.
    fn release(&mut self, messages: usize) -> Result<(), ChannelError>;

    /// Gives back the places of so many, the oldest, which were read and not checked: what was read there has
    /// these digests ([`InPlace::body_keys`]), or is not what was sent. All are whole blocks.
    ///
    /// # Errors
    /// When they were not seen.
    fn release_unchecked(&mut self, messages: usize) -> Result<OwedDigests<ChannelError>, ChannelError>;
}

/// The digests that messages have which were read and not checked: nothing that they say may leave this party
/// before [`OwedDigests::check`].
pub struct OwedDigests<E> {
    digests: Zeroizing<Vec<Block>>,
    /// What is said where one is another.
    wrong: E,
}

impl<E> OwedDigests<E> {
    /// Of so many messages, with the error of a wrong one.
    pub fn new(digests: Vec<Block>, wrong: E) -> Self {
        Self { digests: Zeroizing::new(digests), wrong }
    }

    /// Whether what was read has these digests. The time depends on their number alone.
    ///
    /// # Errors
    /// That of a wrong one, also where there are not as many.
    pub fn check(self, digests: &[Block]) -> Result<(), E> {
        let differs = |all: u128, (one, other): (&Block, &Block)| all | (one.0 ^ other.0);
        let difference = self.digests.iter().zip(digests).fold(0, differs);
        if digests.len() == self.digests.len() && difference == 0 { Ok(()) } else { Err(self.wrong) }
    }

    /// How many messages there are.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.digests.len()
    }
}

/// What comes next.
pub enum Peeked {
    /// These messages, none if nothing is there yet.
    There(Vec<Vec<Place>>),
    /// Something that does not lie in one piece of the length that is wanted: it is to be received.
    Otherwise,
}

/// The ordinary buffer: places of one message each, used in turn.
#[derive(Default)]
pub(crate) struct PlacedBuffer {
    memory: Option<Arc<SharedMemory>>,
    next: usize,
    used: usize,
    /// What a message goes through on the way to a channel that has no places, or from it: it stays in a near
    /// cache.
    taken: Zeroizing<Vec<u8>>,
}

impl PlacedBuffer {
    /// A free place, if there is one.
    fn take(&mut self, bytes: usize) -> Result<Option<Vec<Place>>, ChannelError> {
        if bytes > PLACED_BYTES {
            return Err(ChannelError::Io(format!("a message of {bytes} bytes has no place")));
        }
        if self.used == SLOTS {
            return Ok(None);
        }
        if self.memory.is_none() {
            let made = SharedMemory::own(SLOTS * PLACED_BYTES);
            self.memory = Some(Arc::new(made.map_err(|e| ChannelError::Io(e.to_string()))?));
        }
        let at = self.next * PLACED_BYTES;
        (self.next, self.used) = ((self.next + 1) % SLOTS, self.used + 1);
        Ok(self.memory.as_ref().map(|memory| vec![memory.place(at, bytes)]))
    }

    /// Sends what lies in these places.
    fn send(&mut self, channel: &mut dyn Channel, places: &[Place]) -> Result<(), ChannelError> {
        let taken = self.taken_of(places);
        Place::read_all(places, taken);
        channel.send(taken)
    }

    /// Receives what is to lie in these places.
    fn receive(&mut self, channel: &mut dyn Channel, places: &[Place]) -> Result<(), ChannelError> {
        let taken = self.taken_of(places);
        channel.recv(taken)?;
        Place::write_all(places, taken);
        Ok(())
    }

    fn taken_of(&mut self, places: &[Place]) -> &mut [u8] {
        self.taken.resize(PLACED_BYTES, 0);
        &mut self.taken[..places.iter().map(Place::bytes).sum()]
    }

    /// The oldest place is free.
    fn free(&mut self) {
        self.used -= 1;
    }
}

/// What went over one end: booked when it is done.
#[derive(Default)]
pub(crate) struct Booked {
    pub messages: u64,
    pub bytes: u64,
    /// Of all that was sent, where somebody wants it.
    pub hasher: Option<blake3::Hasher>,
}

/// The sending end of a channel: see the module's text.
pub struct Outlet<'s> {
    pub(crate) channel: &'s mut dyn Channel,
    pub(crate) buffer: &'s mut PlacedBuffer,
    pub(crate) at: At,
    pub(crate) booked: Booked,
    /// Messages that have a place.
    pub(crate) reserved: VecDeque<Vec<Place>>,
}

/// The bytes that lie in these places.
fn bytes_of(places: &[Place]) -> Vec<u8> {
    let mut bytes = vec![0; places.iter().map(Place::bytes).sum()];
    Place::read_all(places, &mut bytes);
    bytes
}

impl Outlet<'_> {
    fn fault(&self, error: ChannelError) -> Error {
        Error::new(self.at.clone(), Fault::Channel(error))
    }

    /// As [`InPlace::reserve`].
    ///
    /// # Errors
    /// As there.
    pub fn reserve(&mut self, lengths: &[usize], wait: bool) -> Result<Vec<Vec<Place>>, Error> {
        let places = match self.channel.in_place() {
            Some(memory) => memory.reserve(lengths, wait),
            None => lengths.iter().map_while(|&bytes| self.buffer.take(bytes).transpose()).collect(),
        };
        let places = places.map_err(|e| self.fault(e))?;
        self.reserved.extend(places.iter().cloned());
        Ok(places)
    }

    /// The key of what is sent, where messages have places and digests ([`InPlace::body_keys`]).
    pub fn body_key(&mut self) -> Option<Arc<GfKey>> {
        self.channel.in_place().map(|memory| memory.body_keys()[0].clone())
    }

    /// As [`InPlace::publish`]; digests are not looked at where messages have no places.
    ///
    /// # Errors
    /// As there.
    pub fn publish(&mut self, messages: usize, digests: Option<&[Block]>) -> Result<(), Error> {
        if messages > self.reserved.len() {
            return Err(Error::misuse("nothing was reserved"));
        }
        let published: Vec<Vec<Place>> = self.reserved.drain(..messages).collect();
        self.booked.messages += messages as u64;
        self.booked.bytes += published.iter().flatten().map(|place| place.bytes() as u64).sum::<u64>();
        if let Some(hasher) = &mut self.booked.hasher {
            published.iter().for_each(|places| _ = hasher.update(&bytes_of(places)));
        }
        if let Some(memory) = self.channel.in_place() {
            return memory.publish(messages, digests).map_err(|e| self.fault(e));
        }
        for places in published {
            let sent = self.buffer.send(self.channel, &places);
            self.buffer.free();
            sent.map_err(|e| self.fault(e))?;
        }
        Ok(())
    }

    /// Hands over what was sent.
    ///
    /// # Errors
    /// As [`Channel::recv`].
    pub fn flush(&mut self) -> Result<(), Error> {
        // A receive of nothing hands over what is queued.
        self.channel.recv(&mut []).map_err(|e| self.fault(e))
    }

    /// Whether so many bytes may be sent while the peer reads nothing of what this end says.
    #[must_use]
    pub fn takes(&self, bytes: usize) -> bool {
        bytes <= self.channel.window() / 2
    }
}

/// The receiving end of a channel: see the module's text.
pub struct Inlet<'s> {
    pub(crate) channel: &'s mut dyn Channel,
    pub(crate) buffer: &'s mut PlacedBuffer,
    pub(crate) at: At,
    pub(crate) booked: Booked,
    /// Messages that were seen and not released: whether they lie in the transport's memory, and where.
    pub(crate) seen: VecDeque<(bool, Vec<Place>)>,
    /// How many of them are checked.
    pub(crate) checked: usize,
}

impl Inlet<'_> {
    fn fault(&self, error: ChannelError) -> Error {
        Error::new(self.at.clone(), Fault::Channel(error))
    }

    /// Places of the next messages of these lengths: as many as are there, none if none is. Waits for one, if
    /// asked and if all that was seen is released.
    ///
    /// # Errors
    /// As [`Channel::recv`].
    pub fn peek(&mut self, lengths: &[usize], wait: bool) -> Result<Vec<Vec<Place>>, Error> {
        let peeked = match self.channel.in_place() {
            Some(memory) => memory.peek(lengths, wait),
            None => Ok(Peeked::Otherwise),
        };
        let (placed, places) = match peeked.map_err(|e| self.fault(e))? {
            Peeked::There(places) => (true, places),
            Peeked::Otherwise if wait && self.seen.is_empty() => {
                (false, self.receive(lengths).map_err(|e| self.fault(e))?)
            }
            Peeked::Otherwise => return Ok(Vec::new()),
        };
        self.seen.extend(places.iter().map(|places| (placed, places.clone())));
        Ok(places)
    }

    /// Receives messages to the ordinary buffer: one where what comes after it may lie in place.
    fn receive(&mut self, lengths: &[usize]) -> Result<Vec<Vec<Place>>, ChannelError> {
        let most = if self.channel.in_place().is_some() { 1 } else { SLOTS };
        let mut all = Vec::new();
        for &bytes in lengths.iter().take(most) {
            let Some(places) = self.buffer.take(bytes)? else { break };
            self.buffer.receive(self.channel, &places)?;
            all.push(places);
        }
        Ok(all)
    }

    /// The key of what is received, where messages have places and digests ([`InPlace::body_keys`]).
    pub fn body_key(&mut self) -> Option<Arc<GfKey>> {
        self.channel.in_place().map(|memory| memory.body_keys()[1].clone())
    }

    /// As [`InPlace::check`].
    ///
    /// # Errors
    /// As there.
    pub fn check(&mut self, messages: usize) -> Result<(), Error> {
        let (from, to) = (self.checked, self.checked + messages);
        if to > self.seen.len() {
            return Err(Error::misuse("nothing is there to check"));
        }
        let placed = self.seen.range(from..to).filter(|(placed, _)| *placed).count();
        if placed > 0
            && let Some(memory) = self.channel.in_place()
        {
            memory.check(placed).map_err(|e| self.fault(e))?;
        }
        self.checked = to;
        Ok(())
    }

    /// As [`InPlace::release_unchecked`], where none of so many, the oldest, is checked and all lie in the
    /// transport's memory; nothing otherwise, and then they are to be checked.
    ///
    /// # Errors
    /// As there.
    pub fn release_unchecked(&mut self, messages: usize) -> Result<Option<OwedDigests<Error>>, Error> {
        if messages > self.seen.len() || self.checked > 0 {
            return Err(Error::misuse("nothing is there, or it was checked"));
        }
        let placed = self.seen.range(..messages).all(|(placed, _)| *placed);
        let Some(memory) = self.channel.in_place().filter(|_| placed) else { return Ok(None) };
        let owed = memory.release_unchecked(messages).map_err(|e| self.fault(e))?;
        self.book(messages);
        let OwedDigests { digests, wrong } = owed;
        Ok(Some(OwedDigests { digests, wrong: self.fault(wrong) }))
    }

    /// Books so many messages, the oldest that were seen; gives those that lie in the transport's memory.
    fn book(&mut self, messages: usize) -> usize {
        let released: Vec<_> = self.seen.drain(..messages).collect();
        self.booked.messages += messages as u64;
        self.booked.bytes += released.iter().flat_map(|(_, all)| all).map(|p| p.bytes() as u64).sum::<u64>();
        released.iter().filter(|(placed, _)| *placed).count()
    }

    /// As [`InPlace::release`].
    ///
    /// # Errors
    /// As there.
    pub fn release(&mut self, messages: usize) -> Result<(), Error> {
        if messages > self.checked {
            return Err(Error::misuse("what was not checked is not released"));
        }
        self.checked -= messages;
        let placed = self.book(messages);
        (placed..messages).for_each(|_| self.buffer.free());
        if placed > 0
            && let Some(memory) = self.channel.in_place()
        {
            memory.release(placed).map_err(|e| self.fault(e))?;
        }
        Ok(())
    }
}

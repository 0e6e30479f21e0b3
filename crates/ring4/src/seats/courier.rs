//! Messages between a device and a transport: what is copied by the one is sealed or checked by the other
//! while the next is copied.

use accel::{Copying, DIGESTED_PIECES, Inbox, MessagePiece, Outbox};
use base::Error;
use kernels::Block;
use net::{Inlet, Outlet, OwedDigests};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender};

/// Pieces of one copy, at most.
const GROUP: usize = DIGESTED_PIECES;
/// Copies under way each way.
const COPIES: usize = 2;

/// What a chunk sends.
pub(crate) struct Letter {
    pub pieces: Vec<MessagePiece>,
    pub outbox: Box<dyn Outbox>,
}

/// What a chunk receives.
pub(crate) struct Delivery {
    pub pieces: Vec<MessagePiece>,
    pub inbox: Box<dyn Inbox>,
}

/// A copy under way, of so many pieces, and whether they are the last of their chunk.
struct Group {
    copying: Box<dyn Copying>,
    pieces: usize,
    last: bool,
}

/// Sends what comes in, and tells of every chunk of which nothing is left to copy. Ends when nobody can give
/// more.
pub(crate) fn send_all(
    outlet: &mut Outlet<'_>,
    jobs: &Receiver<Letter>,
    tell: &Sender<()>,
) -> Result<(), Error> {
    let mut groups = VecDeque::new();
    loop {
        // The next chunk is begun while the end of the last one is under way.
        let job = match jobs.try_recv() {
            Ok(job) => job,
            Err(_) => {
                while finish(outlet, &mut groups, tell)? {}
                outlet.flush()?;
                let Ok(job) = jobs.recv() else { return Ok(()) };
                job
            }
        };
        begin(outlet, job, &mut groups, tell)?;
    }
}

/// Sends chunks: copies of the next are begun while those of one are under way.
pub(crate) fn send(outlet: &mut Outlet<'_>, jobs: Vec<Letter>) -> Result<(), Error> {
    let (tell, _told) = std::sync::mpsc::channel();
    let mut groups = VecDeque::new();
    jobs.into_iter().try_for_each(|job| begin(outlet, job, &mut groups, &tell))?;
    while finish(outlet, &mut groups, &tell)? {}
    Ok(())
}

/// Copies all of a chunk; the last copies may be left under way.
fn begin(
    outlet: &mut Outlet<'_>,
    mut job: Letter,
    groups: &mut VecDeque<Group>,
    tell: &Sender<()>,
) -> Result<(), Error> {
    let mut left = &job.pieces[..];
    while !left.is_empty() {
        if groups.len() == COPIES {
            finish(outlet, groups, tell)?;
        }
        let lengths: Vec<usize> = left.iter().take(GROUP).map(MessagePiece::bytes).collect();
        // Who waits for space must not keep back what would make some.
        let places = outlet.reserve(&lengths, groups.is_empty())?;
        let (now, rest) = left.split_at(places.len());
        if now.is_empty() {
            finish(outlet, groups, tell)?;
            continue;
        }
        let copying = job.outbox.copy(now, &places)?;
        left = rest;
        groups.push_back(Group { copying, pieces: now.len(), last: left.is_empty() });
    }
    Ok(())
}

/// Sends the oldest group that is under way; whether there was one.
fn finish(outlet: &mut Outlet<'_>, groups: &mut VecDeque<Group>, tell: &Sender<()>) -> Result<bool, Error> {
    let Some(group) = groups.pop_front() else { return Ok(false) };
    let digests = group.copying.wait()?;
    if group.last {
        // Nobody hears it where chunks are sent in turn.
        let _ = tell.send(());
    }
    outlet.publish(group.pieces, said(&digests))?;
    Ok(true)
}

/// Digests of pieces, where the device has made some.
fn said(digests: &[Block]) -> Option<&[Block]> {
    (!digests.is_empty()).then_some(digests)
}

/// Receives what comes in, and tells of every chunk that is there, with what is to be checked of it. Ends
/// when nobody can ask for more.
pub(crate) fn receive_all(
    inlet: &mut Inlet<'_>,
    jobs: &Receiver<Delivery>,
    tell: &Sender<OwedChunk>,
) -> Result<(), Error> {
    while let Ok(job) = jobs.recv() {
        let owed = receive(inlet, vec![job])?;
        // Who computes may have failed, and says why.
        owed.into_iter().for_each(|owed| _ = tell.send(owed));
    }
    Ok(())
}

/// A copy from the transport under way, of so many pieces of a chunk, and whether the device digests them.
struct Arrival {
    copying: Box<dyn Copying>,
    chunk: usize,
    pieces: usize,
    digests: bool,
}

/// Digests of the pieces of a chunk, in their order, by groups of so many: nothing where one was checked.
#[derive(Default)]
pub(crate) struct OwedChunk(Vec<(usize, Option<OwedDigests<Error>>)>);

impl OwedChunk {
    /// Whether anything is to be checked.
    pub(crate) fn is_owed(&self) -> bool {
        self.0.iter().any(|(_, owed)| owed.is_some())
    }

    /// Checks what the device has read, by its digests of all pieces.
    pub(crate) fn check(self, mut digests: &[Block]) -> Result<(), Error> {
        for (pieces, owed) in self.0 {
            let (now, rest) = digests.split_at_checked(pieces).unwrap_or_default();
            digests = rest;
            owed.map_or(Ok(()), |owed| owed.check(now))?;
        }
        Ok(())
    }
}

/// Receives the pieces of chunks: copies of the next are begun while those of one are under way. Gives what
/// is to be checked of each.
pub(crate) fn receive(inlet: &mut Inlet<'_>, jobs: Vec<Delivery>) -> Result<Vec<OwedChunk>, Error> {
    let mut owed: Vec<OwedChunk> = jobs.iter().map(|_| OwedChunk::default()).collect();
    let mut groups: VecDeque<Arrival> = VecDeque::new();
    for (chunk, mut job) in jobs.into_iter().enumerate() {
        let (mut left, digests) = (&job.pieces[..], job.inbox.digests());
        while !left.is_empty() {
            if groups.len() < COPIES {
                let lengths: Vec<usize> = left.iter().take(GROUP).map(MessagePiece::bytes).collect();
                let places = inlet.peek(&lengths, groups.is_empty())?;
                let (now, rest) = left.split_at(places.len());
                left = rest;
                if !now.is_empty() {
                    let copying = job.inbox.copy(now, &places)?;
                    groups.push_back(Arrival { copying, chunk, pieces: now.len(), digests });
                    // What is checked next waits for no copy, so begin another one first.
                    continue;
                }
            }
            take_in(inlet, &mut groups, &mut owed)?;
        }
    }
    while !groups.is_empty() {
        take_in(inlet, &mut groups, &mut owed)?;
    }
    Ok(owed)
}

/// Gives back the oldest pieces that are copied, if there are any: checked, or owed a check.
fn take_in(
    inlet: &mut Inlet<'_>,
    groups: &mut VecDeque<Arrival>,
    owed: &mut [OwedChunk],
) -> Result<(), Error> {
    let Some(Arrival { copying, chunk, pieces, digests }) = groups.pop_front() else { return Ok(()) };
    if !digests {
        inlet.check(pieces)?;
        copying.wait()?;
        return inlet.release(pieces);
    }
    copying.wait()?;
    let digests = inlet.release_unchecked(pieces)?;
    if digests.is_none() {
        // Some of it did not lie in the transport's memory.
        inlet.check(pieces)?;
        inlet.release(pieces)?;
    }
    owed[chunk].0.push((pieces, digests));
    Ok(())
}

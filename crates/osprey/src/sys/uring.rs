//! io_uring: reads and writes of frames, and one wait for everything that a pager listens to.

use super::staging::Staging;
use super::{PAUSE, TRIES};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// Transfers in flight at most.
pub(crate) const TRANSFERS_MAX: usize = 192;
const ENTRIES: u32 = 256;
/// Tags of polls lie above those of transfers.
const POLLS: u64 = 1 << 32;

/// What happened.
#[derive(Debug)]
pub(crate) enum UringEvent {
    /// The descriptor that was added under this number is readable.
    Ready(usize),
    /// The transfer with this number ended.
    Done(usize, io::Result<()>),
}

/// A transfer in flight. Its vector stays where it is until the kernel is done.
#[derive(Debug)]
struct Transfer {
    vector: Vec<libc::iovec>,
    write: bool,
    fd: RawFd,
    offset: u64,
    /// How often it found no memory.
    refused: u32,
}

/// A ring of one thread. No buffers are registered: registered pages are pinned, and pinned pages do not
/// move.
pub(crate) struct Uring {
    ring: IoUring,
    transfers: Vec<Option<Transfer>>,
    /// Numbers of transfers that are not in flight.
    idle: Vec<usize>,
    polls: Vec<(RawFd, bool)>,
    /// The kernel had no memory for something since this was asked last.
    short: bool,
}

impl Uring {
    /// A ring for the calling thread alone.
    ///
    /// # Errors
    /// The system's: `PermissionDenied` where io_uring is forbidden.
    pub fn new() -> io::Result<Self> {
        let mut ring = match IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(ENTRIES) {
            // Kernels before 6.1 know neither; they only save wake-ups.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(ENTRIES)?,
            other => other?,
        };
        start_helper(&mut ring)?;
        Ok(Self { ring, transfers: Vec::new(), idle: Vec::new(), polls: Vec::new(), short: false })
    }

    /// Listens to a descriptor. `lasting`: reported again whenever it becomes readable; otherwise once per
    /// [`Uring::listen`]. Its number is the count of those added before it.
    ///
    /// # Errors
    /// The system's.
    pub fn add(&mut self, fd: BorrowedFd<'_>, lasting: bool) -> io::Result<usize> {
        self.polls.push((fd.as_raw_fd(), lasting));
        let number = self.polls.len() - 1;
        if lasting {
            self.listen(number)?;
        }
        Ok(number)
    }

    /// Listens (again) to the descriptor with that number.
    ///
    /// # Errors
    /// The system's.
    pub fn listen(&mut self, number: usize) -> io::Result<()> {
        let (fd, lasting) = self.polls[number];
        let poll = opcode::PollAdd::new(types::Fd(fd), libc::POLLIN as u32).multi(lasting).build();
        self.push(&poll.user_data(POLLS + number as u64))
    }

    /// Whether the kernel had no memory for something since this was asked last. It is tried again.
    pub fn was_short(&mut self) -> bool {
        std::mem::take(&mut self.short)
    }

    /// Whether another transfer fits.
    pub fn has_room(&self) -> bool {
        self.in_flight() < TRANSFERS_MAX
    }

    /// Transfers that have not ended.
    pub fn in_flight(&self) -> usize {
        self.transfers.len() - self.idle.len()
    }

    /// Starts to read or write frames one after the other from `offset` of a file; gives the number of the
    /// transfer. The caller leaves those frames alone until it ended.
    ///
    /// # Errors
    /// The system's.
    pub fn transfer(
        &mut self,
        write: bool,
        fd: BorrowedFd<'_>,
        staging: &Staging,
        frames: impl Iterator<Item = u32>,
        offset: u64,
    ) -> io::Result<usize> {
        let part =
            |frame| libc::iovec { iov_base: staging.address(frame) as *mut _, iov_len: staging.chunk() };
        let transfer =
            Transfer { vector: frames.map(part).collect(), write, fd: fd.as_raw_fd(), offset, refused: 0 };
        let number = match self.idle.pop() {
            Some(number) => {
                self.transfers[number] = Some(transfer);
                number
            }
            None => {
                self.transfers.push(Some(transfer));
                self.transfers.len() - 1
            }
        };
        self.start(number)?;
        Ok(number)
    }

    fn start(&mut self, number: usize) -> io::Result<()> {
        let transfer = self.transfers[number].as_ref().expect("in flight");
        let (fd, vector) = (types::Fd(transfer.fd), &transfer.vector);
        let (base, len) = (vector.as_ptr(), vector.len() as u32);
        let entry = if transfer.write {
            opcode::Writev::new(fd, base, len).offset(transfer.offset).build()
        } else {
            opcode::Readv::new(fd, base, len).offset(transfer.offset).build()
        };
        self.push(&entry.user_data(number as u64))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: a poll has no pointers; the vector of a transfer lies on the heap and lives in
            // `transfers` until its completion is taken, and the frames it names live as long as the staging,
            // which the pager drops after the ring and leaves alone in between.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    /// Hands over what was started and takes what happened. `block`: waits for at least one event, for that
    /// long at most if a time is given.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(
        &mut self,
        block: bool,
        longest: Option<Duration>,
        events: &mut Vec<UringEvent>,
    ) -> io::Result<()> {
        const GETEVENTS: u32 = 1;
        let queued = self.ring.submission().len() as u32;
        let wait = block && self.ring.completion().is_empty();
        let entered = match longest {
            Some(longest) if wait => {
                let longest = types::Timespec::from(longest);
                self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&longest))
            }
            // SAFETY: no argument is passed; entries in the queue are argued for where they were pushed.
            _ => unsafe {
                let least = u32::from(wait);
                self.ring.submitter().enter::<libc::sigset_t>(queued, least, GETEVENTS, None)
            },
        };
        match entered {
            Err(error) if !is_passing(&error) => return Err(error),
            // Without memory for a request, it stays in the queue.
            Err(error) => self.short |= error.raw_os_error() == Some(libc::EAGAIN),
            _ => {}
        }
        let done: Vec<(u64, i32, u32)> =
            self.ring.completion().map(|e| (e.user_data(), e.result(), e.flags())).collect();
        for (tag, result, flags) in done {
            self.completed(tag, result, flags, events)?;
        }
        Ok(())
    }

    fn completed(
        &mut self,
        tag: u64,
        result: i32,
        flags: u32,
        events: &mut Vec<UringEvent>,
    ) -> io::Result<()> {
        if tag >= POLLS {
            let number = (tag - POLLS) as usize;
            events.push(UringEvent::Ready(number));
            if self.polls[number].1 && !cqueue::more(flags) {
                self.listen(number)?;
            }
            return Ok(());
        }
        let number = tag as usize;
        let transfer = self.transfers[number].as_mut().expect("in flight");
        match result {
            n if n < 0 && matches!(-n, libc::EAGAIN | libc::EINTR) => return self.start(number),
            n if is_shortage(-n) && transfer.refused < TRIES => {
                transfer.refused += 1;
                self.short = true;
                std::thread::sleep(PAUSE);
                return self.start(number);
            }
            n if n < 0 => events.push(UringEvent::Done(number, Err(io::Error::from_raw_os_error(-n)))),
            0 => events.push(UringEvent::Done(number, Err(io::ErrorKind::UnexpectedEof.into()))),
            n if transfer.advance(n as usize) => events.push(UringEvent::Done(number, Ok(()))),
            _ => return self.start(number),
        }
        self.transfers[number] = None;
        self.idle.push(number);
        Ok(())
    }
}

/// The kernel hands a transfer that would have to wait (the disk's queue is full, its blocks are new) to a
/// thread of its own. It makes the first when it is needed, from memory of our group, and cancels the
/// transfer when there is none. So that one is made now, by an entry that does nothing: the kernel keeps it.
fn start_helper(ring: &mut IoUring) -> io::Result<()> {
    let nothing = opcode::Nop::new().build().flags(squeue::Flags::ASYNC);
    // SAFETY: the entry has no pointers.
    unsafe { ring.submission().push(&nothing).map_err(io::Error::other)? };
    let mut tries = 0;
    while let Err(error) = ring.submit_and_wait(1) {
        if !is_passing(&error) || tries == TRIES {
            return Err(error);
        }
        tries += 1;
        std::thread::sleep(PAUSE);
    }
    ring.completion().for_each(drop);
    Ok(())
}

/// A transfer for which the kernel had no memory, be it for the thread that was to wait for the disk.
fn is_shortage(error: i32) -> bool {
    matches!(error, libc::ENOMEM | libc::ECANCELED)
}

/// Not an error of what was handed over: a signal, a full queue, the end of the time to wait.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN | libc::ETIME))
}

impl Transfer {
    /// Takes `bytes` as done; says whether that was all.
    fn advance(&mut self, bytes: usize) -> bool {
        self.offset += bytes as u64;
        let mut left = bytes;
        self.vector.retain_mut(|part| {
            let taken = left.min(part.iov_len);
            left -= taken;
            part.iov_base = part.iov_base.wrapping_byte_add(taken);
            part.iov_len -= taken;
            part.iov_len > 0
        });
        self.vector.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transfer that has to wait does not need memory for a thread that waits: it is there, and stays.
    #[test]
    fn the_kernels_thread_is_there_from_the_start() {
        let ring = match Uring::new() {
            Ok(ring) => ring,
            Err(error) => return eprintln!("skipped: no io_uring here: {error}"),
        };
        // SAFETY: a plain call.
        let name = format!("iou-wrk-{}", unsafe { libc::gettid() });
        let threads = std::fs::read_dir("/proc/self/task").expect("/proc").flatten();
        let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
        let names: Vec<String> = names.collect();
        assert!(names.iter().any(|other| other.trim_end() == name), "{name}: {names:?}");
        drop(ring);
    }
}

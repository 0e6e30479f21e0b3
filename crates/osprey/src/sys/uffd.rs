//! userfaultfd: the ioctls, by the kernel's interface, as safe as they can be. UFFDIO_MOVE is newer than the
//! headers of many distributions, so numbers and structures stand here.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Touches of pages that are not there.
pub(crate) const MISSING: u64 = 1;
/// Writes to pages that are protected.
pub(crate) const WRITE_PROTECT: u64 = 1 << 1;
/// Touches of pages that are in the file behind a shared mapping, but not mapped.
pub(crate) const MINOR: u64 = 1 << 2;

/// Features by their bits in `UFFDIO_API`.
pub(crate) mod feature {
    pub const PAGEFAULT_FLAG_WP: u64 = 1;
    pub const SIGBUS: u64 = 1 << 7;
    pub const MINOR_SHMEM: u64 = 1 << 10;
    pub const WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
    pub const MOVE: u64 = 1 << 16;
}

const API: u64 = 0xAA;
const USER_MODE_ONLY: i32 = 1;

/// A userfaultfd.
#[derive(Debug)]
pub(crate) struct Uffd {
    fd: OwnedFd,
    kernel_faults: bool,
}

/// A touch that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageFault {
    /// Address touched, rounded to its page.
    pub address: usize,
    /// Whether it is a write.
    pub write: bool,
    /// Whether the page is there but protected.
    pub protected: bool,
}

#[repr(C)]
struct Range {
    start: u64,
    len: u64,
}

const fn ioctl_number(number: u64, size: usize) -> u64 {
    3 << 30 | (size as u64) << 16 | API << 8 | number
}

/// Bytes of a `uffd_msg`.
pub(crate) const MESSAGE: usize = 32;

impl Uffd {
    /// Opens one with features: those in `must` or not at all, those in `may` where the kernel has them.
    /// `nonblock` is for a pager thread that waits elsewhere.
    ///
    /// # Errors
    /// `PermissionDenied` where the system forbids it, `Unsupported` where a feature is missing, by its bits.
    pub fn open(must: u64, may: u64, nonblock: bool) -> io::Result<Self> {
        let flags = libc::O_CLOEXEC | if nonblock { libc::O_NONBLOCK } else { 0 };
        let (probe, _) = Self::create(flags)?;
        let has = api(&probe, 0)?;
        drop(probe);
        if must & !has != 0 {
            let text = format!("this kernel's userfaultfd lacks features {:#x}", must & !has);
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let (fd, kernel_faults) = Self::create(flags)?;
        api(&fd, must | may & has)?;
        Ok(Self { fd, kernel_faults })
    }

    /// With touches by the kernel where that is permitted, of user code alone elsewhere.
    fn create(flags: i32) -> io::Result<(OwnedFd, bool)> {
        let open = |flags: i32| -> io::Result<OwnedFd> {
            // SAFETY: a system call without pointers; the descriptor that comes back is ours alone.
            unsafe { Ok(OwnedFd::from_raw_fd(check(libc::syscall(libc::SYS_userfaultfd, flags))? as i32)) }
        };
        match open(flags) {
            Ok(fd) => Ok((fd, true)),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                Ok((open(flags | USER_MODE_ONLY)?, false))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether touches by the kernel (`read` into the region) are served too; otherwise they fail with
    /// EFAULT.
    pub fn serves_kernel(&self) -> bool {
        self.kernel_faults
    }

    /// The descriptor, to wait on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.as_fd()
    }

    /// Watches a range for touches of `mode`.
    ///
    /// # Errors
    /// The system's.
    pub fn register(&self, start: usize, len: usize, mode: u64) -> io::Result<()> {
        #[repr(C)]
        struct Register {
            range: Range,
            mode: u64,
            ioctls: u64,
        }
        self.call(0x00, &mut Register { range: range(start, len), mode, ioctls: 0 })
    }

    /// Wakes who waits for a range.
    ///
    /// # Errors
    /// The system's.
    pub fn wake(&self, start: usize, len: usize) -> io::Result<()> {
        // UFFDIO_WAKE only reads its argument: its number is of the other direction.
        self.raw(2 << 30 | (size_of::<Range>() as u64) << 16 | API << 8 | 0x02, &mut range(start, len))
    }

    /// Moves pages: `to` must be missing, `from` present and private; nothing is copied. Wakes who waits for
    /// `to`. Pages of `from` that are missing are left missing in `to`.
    ///
    /// Gives the bytes moved, from the start on, and the system's error if that is not all: `ResourceBusy`
    /// when a page is pinned. What `EAGAIN` leaves was tried again.
    pub fn relocate_some(&self, to: usize, from: usize, len: usize) -> (usize, io::Result<()>) {
        const ALLOW_HOLES: u64 = 1 << 1;
        self.transfer(0x05, to, from, len, ALLOW_HOLES)
    }

    /// Fills missing pages of a range with a copy of `from`. Wakes who waits, unless `quiet`. Pages that are
    /// there already are an error (`AlreadyExists`). Gives the bytes copied, from the start on, and the
    /// system's error if that is not all.
    pub fn copy_some(&self, to: usize, from: &[u8], protect: bool) -> (usize, io::Result<()>) {
        const PROTECT: u64 = 1 << 1;
        self.transfer(0x03, to, from.as_ptr() as usize, from.len(), if protect { PROTECT } else { 0 })
    }

    /// Moves or copies pages, as the number of the call says, from the start on.
    fn transfer(
        &self,
        number: u64,
        to: usize,
        from: usize,
        len: usize,
        mode: u64,
    ) -> (usize, io::Result<()>) {
        #[repr(C)]
        struct Transfer {
            to: u64,
            from: u64,
            len: u64,
            mode: u64,
            done: i64,
        }
        let mut done = 0;
        while done < len {
            let [to, from, left] = [to + done, from + done, len - done].map(|at| at as u64);
            let mut call = Transfer { to, from, len: left, mode, done: 0 };
            match self.call(number, &mut call) {
                Ok(()) => return (len, Ok(())),
                Err(_) if call.done > 0 => done += call.done as usize,
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }

    /// Maps the pages of the file behind a shared range, write-protected or not. Those mapped already are
    /// fine.
    ///
    /// # Errors
    /// The system's.
    pub fn map_present(&self, start: usize, len: usize, protect: bool) -> io::Result<()> {
        #[repr(C)]
        struct Continue {
            range: Range,
            mode: u64,
            mapped: i64,
        }
        const PROTECT: u64 = 1 << 1;
        let mode = if protect { PROTECT } else { 0 };
        match self.call(0x07, &mut Continue { range: range(start, len), mode, mapped: 0 }) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    /// Protects a range against writing, or lifts that and wakes who waits to write.
    ///
    /// # Errors
    /// The system's.
    pub fn protect(&self, start: usize, len: usize, on: bool) -> io::Result<()> {
        #[repr(C)]
        struct Protect {
            range: Range,
            mode: u64,
        }
        self.call(0x06, &mut Protect { range: range(start, len), mode: u64::from(on) })
    }

    /// The next touch that waits, `None` when there is none now.
    ///
    /// # Errors
    /// The system's.
    pub fn next(&self) -> io::Result<Option<PageFault>> {
        loop {
            let mut message = [0u8; MESSAGE];
            // SAFETY: the buffer is as long as stated; the kernel fills it.
            let got = unsafe { libc::read(self.fd.as_raw_fd(), message.as_mut_ptr().cast(), MESSAGE) };
            match check(got as libc::c_long) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            const PAGEFAULT: u8 = 0x12;
            if message[0] == PAGEFAULT {
                let word = |at: usize| u64::from_ne_bytes(message[at..at + 8].try_into().expect("8 bytes"));
                let flags = word(8);
                let address = word(16) as usize & !(super::PAGE - 1);
                return Ok(Some(PageFault { address, write: flags & 1 != 0, protected: flags & 2 != 0 }));
            }
        }
    }

    fn call<T>(&self, number: u64, argument: &mut T) -> io::Result<()> {
        self.raw(ioctl_number(number, size_of::<T>()), argument)
    }

    fn raw<T>(&self, request: u64, argument: &mut T) -> io::Result<()> {
        // SAFETY: `argument` is the structure that the request's number states the size of. The ranges within
        // are pages of mappings that the caller owns; moving and mapping pages there is what the caller asked
        // for.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), request as _, std::ptr::from_mut(argument)) };
        check(done.into()).map(|_| ())
    }
}

fn range(start: usize, len: usize) -> Range {
    Range { start: start as u64, len: len as u64 }
}

/// Agrees on features; gives those that the kernel has.
fn api(fd: &OwnedFd, features: u64) -> io::Result<u64> {
    #[repr(C)]
    struct Api {
        api: u64,
        features: u64,
        ioctls: u64,
    }
    let mut argument = Api { api: API, features, ioctls: 0 };
    // SAFETY: the structure of UFFDIO_API, with its size in the number.
    let done = unsafe {
        libc::ioctl(
            fd.as_raw_fd(),
            ioctl_number(0x3f, size_of::<Api>()) as _,
            std::ptr::from_mut(&mut argument),
        )
    };
    check(done.into())?;
    Ok(argument.features)
}

#[cfg(test)]
mod tests {
    use super::super::map::Mapping;
    use super::*;

    const CHUNK: usize = 64 << 10;

    fn bytes(at: usize, len: usize) -> &'static mut [u8] {
        // SAFETY: tests call it for pages of a mapping that lives, and look at them one at a time.
        unsafe { std::slice::from_raw_parts_mut(at as *mut u8, len) }
    }

    /// A chunk moved out and in again has its content, and the place it left is missing.
    #[test]
    fn chunks_move_without_a_copy() {
        let Ok(uffd) = Uffd::open(feature::MOVE, 0, true) else {
            eprintln!("skipped: no userfaultfd with MOVE here");
            return;
        };
        let region = Mapping::anonymous(None, 4 * CHUNK, false).expect("memory");
        let frames = Mapping::anonymous(None, CHUNK, false).expect("memory");
        let (home, frame) = (region.base() as usize, frames.base() as usize);
        bytes(frame, CHUNK).fill(7);
        uffd.register(home, region.len(), MISSING).expect("register");
        uffd.register(frame, CHUNK, MISSING).expect("register");
        uffd.relocate_some(home + CHUNK, frame, CHUNK).1.expect("in");
        bytes(home + CHUNK, CHUNK)[5] = 9;
        uffd.relocate_some(frame, home + CHUNK, CHUNK).1.expect("out");
        assert!(bytes(frame, CHUNK)[5] == 9 && bytes(frame, CHUNK)[6] == 7);
        assert_eq!(uffd.next().expect("readable"), None);
    }

    /// A touch of a missing page is reported with its address and waits until the page comes.
    #[test]
    fn a_touch_waits_for_its_page() {
        let uffd = match Uffd::open(0, 0, true) {
            Ok(uffd) => uffd,
            Err(error) => return eprintln!("skipped: no userfaultfd here: {error}"),
        };
        let region = Mapping::anonymous(None, CHUNK, false).expect("memory");
        let home = region.base() as usize;
        uffd.register(home, CHUNK, MISSING).expect("register");
        let reader = std::thread::spawn(move || bytes(home + 4096, 1)[0]);
        let fault = loop {
            if let Some(fault) = uffd.next().expect("readable") {
                break fault;
            }
            std::thread::yield_now();
        };
        assert_eq!(fault, PageFault { address: home + 4096, write: false, protected: false });
        uffd.copy_some(home, &vec![3; CHUNK], false).1.expect("copy");
        assert_eq!(reader.join().expect("reader"), 3);
    }
}

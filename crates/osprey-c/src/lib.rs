//! The C interface: memory of the content-oblivious region, transfers that a speculative pass replaces by
//! touches, and counters. `include/osprey.h` is generated from this file
//! (`cargo run --release -p osprey-c --example header`); doc comments become its comments, so they speak to a
//! C programmer.
//!
//! **What must hold.** Pointers that come in are valid for the bytes stated with them, as for `read` and
//! `free`; memory goes back with the size it was asked for. Nothing unwinds into C: every failure is a null
//! pointer or -1, with `errno` set and words in `osp_error`.
#![expect(unsafe_code, reason = "pointers of C callers, with the argument at each")]
#![expect(
    clippy::missing_safety_doc,
    reason = "comments go into the C header; what must hold is said above for all"
)]

use libc::{FILE, c_char, c_int, c_void, size_t, ssize_t};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::io;
use std::ptr::{NonNull, null_mut};

/// Counters of this process, as `osp_stats` gives them. Later versions add fields at the end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct osp_counters {
    /// Bytes per chunk: what is paged at once.
    pub chunk: u64,
    /// Chunks that may be resident at once; 0 when unbounded.
    pub frames: u64,
    /// Most chunks of the region that held data at once.
    pub peak_chunks: u64,
    /// Bytes read from the spill file.
    pub bytes_read: u64,
    /// Bytes written to it.
    pub bytes_written: u64,
    /// Chunks dropped without a write because nothing in them was allocated any more.
    pub dropped_dead: u64,
    /// Chunks dropped without a write because they were as on disk.
    pub dropped_clean: u64,
    /// Chunks made resident without a read because they held nothing yet.
    pub first_touches: u64,
    /// Faults on chunks held back on purpose, to learn how far the program is.
    pub key_faults: u64,
    /// Faults that the program waited for because a chunk was not there in time.
    pub stalls: u64,
    /// Entries of the trace: written when speculating, used when programmed.
    pub trace_entries: u64,
    /// Allocations, releases, ticks, and transfers of the region, so far.
    pub events: u64,
    /// Hash over all allocations and releases: equal in every pass of an oblivious program.
    pub allocation_hash: u64,
    /// Seconds spent planning.
    pub plan_s: f64,
    /// CPU seconds of the pager's thread.
    pub pager_cpu_s: f64,
}

/// Largest alignment that can be asked for.
const ALIGN_MAX: usize = 4096;
/// Most bytes that a transfer copies at once between the region and the system: the kernel itself never
/// touches paged memory, so an unprivileged pager serves every fault.
const PIECE: usize = 64 << 10;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Leaves words for `osp_error`, then sets `errno`: in this order, as the first may allocate.
fn fail(code: c_int, text: &str) {
    let text = CString::new(text.replace('\0', " ")).expect("no NUL is left");
    ERROR.with(|error| *error.borrow_mut() = text);
    // SAFETY: the address of this thread's errno is always valid.
    unsafe { *libc::__errno_location() = code };
}

fn fail_io(what: &str, error: &io::Error) {
    fail(error.raw_os_error().unwrap_or(libc::EIO), &format!("{what}: {error}"));
}

/// Version of the library, as "0.1.0". Never null, valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn osp_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version without NUL"),
        };
    VERSION.as_ptr()
}

/// What failed last in this thread, in words; empty before the first failure. Valid until the next call that
/// fails.
#[unsafe(no_mangle)]
pub extern "C" fn osp_error() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}

/// Reads the settings that `osprey run` left in the environment and prepares the region. Idempotent. 0, or -1
/// (EINVAL) when they are out of range or this machine cannot follow them. Whatever else is called first does
/// the same, but ends the process with code 69 and the reason on standard error where this function would
/// give -1.
#[unsafe(no_mangle)]
pub extern "C" fn osp_init() -> c_int {
    match osprey::init() {
        Ok(()) => 0,
        Err(text) => {
            fail(libc::EINVAL, &text);
            -1
        }
    }
}

/// Memory of the region, as of malloc: aligned to 16 bytes, content unspecified. What is stored there must
/// never decide an address or a branch. `bytes` may be 0. Null when the region is full (ENOMEM).
#[unsafe(no_mangle)]
pub extern "C" fn osp_alloc(bytes: size_t) -> *mut c_void {
    osp_alloc_aligned(bytes, 16)
}

/// As `osp_alloc`, aligned to `align` bytes: a power of two up to 4096, otherwise null (EINVAL).
#[unsafe(no_mangle)]
pub extern "C" fn osp_alloc_aligned(bytes: size_t, align: size_t) -> *mut c_void {
    if !align.is_power_of_two() || align > ALIGN_MAX {
        fail(libc::EINVAL, &format!("alignment {align}: expected a power of two up to {ALIGN_MAX}"));
        return null_mut();
    }
    match osprey::try_alloc(bytes, align) {
        Ok(memory) => memory.as_ptr().cast(),
        Err(text) => {
            fail(libc::ENOMEM, &text);
            null_mut()
        }
    }
}

/// Takes memory of the region back: `ptr` from `osp_alloc` or `osp_alloc_aligned` and the bytes asked for
/// there. Null is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_free(ptr: *mut c_void, bytes: size_t) {
    if let Some(memory) = NonNull::new(ptr.cast::<u8>()) {
        // SAFETY: by this function's contract, memory of the region that the caller gives up, with its size.
        unsafe { osprey::free(memory, bytes) }
    }
}

/// 1 when `ptr` lies in the region, 0 elsewhere.
#[unsafe(no_mangle)]
pub extern "C" fn osp_owns(ptr: *const c_void) -> c_int {
    c_int::from(osprey::owns(ptr.cast()))
}

/// 1 in a speculative pass, 0 elsewhere. There a program leaves out cryptography and connections, and touches
/// what they would have touched.
#[unsafe(no_mangle)]
pub extern "C" fn osp_speculating() -> c_int {
    c_int::from(osprey::speculating())
}

/// One event of progress, for stretches of a program that neither allocate nor transfer. In every pass alike.
#[unsafe(no_mangle)]
pub extern "C" fn osp_tick() {
    osprey::tick();
}

/// Notes time, faults and bytes under a name for the report ("start" and "stop" frame what `osprey bench`
/// measures).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_mark(name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: not null, and by this function's contract a string.
    let name = unsafe { CStr::from_ptr(name) };
    osprey::mark(&name.to_string_lossy());
}

/// Counts as a read of `bytes` bytes at `ptr`: what a stub does for the operands of an operation left out. A
/// speculative pass notes their chunks and looks at no byte; the others read one byte of every page. Nothing
/// where `ptr` is outside the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_touch_read(ptr: *const c_void, bytes: size_t) {
    if !ptr.is_null() {
        // SAFETY: by this function's contract readable for that many bytes.
        osprey::touch_read(unsafe { std::slice::from_raw_parts(ptr.cast::<u8>(), bytes) });
    }
}

/// Counts as a write of `bytes` bytes at `ptr`: what a stub does for the result of an operation left out. A
/// speculative pass notes their chunks and changes no byte; the others write one byte of every page, with the
/// value that it has. Nothing where `ptr` is outside the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_touch_write(ptr: *mut c_void, bytes: size_t) {
    if !ptr.is_null() {
        // SAFETY: by this function's contract writable for that many bytes, and nobody else's for now.
        osprey::touch_write(unsafe { std::slice::from_raw_parts_mut(ptr.cast::<u8>(), bytes) });
    }
}

/// As send(2), but of all `bytes`: short counts and interrupts are gone over, SIGPIPE is not raised. `bytes`,
/// or -1 and errno. In a speculative pass it only counts as a read of them and returns `bytes`. Counts as an
/// event where `buf` lies in the region, as all transfers here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_send(fd: c_int, buf: *const c_void, bytes: size_t, flags: c_int) -> ssize_t {
    let send = |part: &[u8]| {
        // SAFETY: a valid range of bytes.
        unsafe { libc::send(fd, part.as_ptr().cast(), part.len(), flags | libc::MSG_NOSIGNAL) }
    };
    // SAFETY: by this function's contract.
    unsafe { put("osp_send", buf, bytes, send) }
}

/// As recv(2), but until `bytes` have come or the stream has ended: `bytes`, fewer at its end, or -1 and
/// errno. In a speculative pass it only counts as a write of them and returns `bytes`. MSG_PEEK, which would
/// give the same bytes again for every part, is an error in every pass (EINVAL).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_recv(fd: c_int, buf: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t {
    if flags & libc::MSG_PEEK != 0 {
        fail(
            libc::EINVAL,
            "osp_recv: MSG_PEEK leaves the bytes where they are; peek with recv into other memory",
        );
        return -1;
    }
    let recv = |part: &mut [u8]| {
        // SAFETY: a valid range of bytes.
        unsafe { libc::recv(fd, part.as_mut_ptr().cast(), part.len(), flags) }
    };
    // SAFETY: by this function's contract.
    unsafe { get("osp_recv", buf, bytes, recv) }
}

/// As read(2), but until `bytes` have come or the file has ended. Otherwise as `osp_recv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_read(fd: c_int, buf: *mut c_void, bytes: size_t) -> ssize_t {
    // SAFETY: a valid range of bytes.
    let read = |part: &mut [u8]| unsafe { libc::read(fd, part.as_mut_ptr().cast(), part.len()) };
    // SAFETY: by this function's contract.
    unsafe { get("osp_read", buf, bytes, read) }
}

/// As write(2), but of all `bytes`. Otherwise as `osp_send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_write(fd: c_int, buf: *const c_void, bytes: size_t) -> ssize_t {
    // SAFETY: a valid range of bytes.
    let write = |part: &[u8]| unsafe { libc::write(fd, part.as_ptr().cast(), part.len()) };
    // SAFETY: by this function's contract.
    unsafe { put("osp_write", buf, bytes, write) }
}

/// As fread: whole elements that came. In a speculative pass it only counts as a write of them and returns
/// `count`; `file` may be null there. The paper's speculative_fread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_fread(buf: *mut c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t {
    elements(size, count, |bytes| {
        // SAFETY: a valid range of bytes; `file` is open by this function's contract.
        let read = |part: &mut [u8]| unsafe {
            libc::fread(part.as_mut_ptr().cast(), 1, part.len(), file).cast_signed()
        };
        // SAFETY: by this function's contract.
        unsafe { get("osp_fread", buf, bytes, read) }
    })
}

/// As fwrite: whole elements that went. In a speculative pass it only counts as a read of them and returns
/// `count`; `file` may be null there. The paper's speculative_fwrite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_fwrite(
    buf: *const c_void,
    size: size_t,
    count: size_t,
    file: *mut FILE,
) -> size_t {
    elements(size, count, |bytes| {
        // SAFETY: a valid range of bytes; `file` is open by this function's contract.
        let write =
            |part: &[u8]| unsafe { libc::fwrite(part.as_ptr().cast(), 1, part.len(), file).cast_signed() };
        // SAFETY: by this function's contract.
        unsafe { put("osp_fwrite", buf, bytes, write) }
    })
}

/// The counters so far, into the first `bytes` bytes of `*out`: pass `sizeof *out`. 0, or -1 (EINVAL) when
/// that is more than this version has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osp_stats(out: *mut osp_counters, bytes: size_t) -> c_int {
    if out.is_null() || bytes > size_of::<osp_counters>() {
        fail(
            libc::EINVAL,
            &format!("osp_stats: this library has {} bytes of counters", size_of::<osp_counters>()),
        );
        return -1;
    }
    let stats = osprey::stats();
    let counters = osp_counters {
        chunk: stats.chunk,
        frames: stats.frames,
        peak_chunks: stats.peak_chunks,
        bytes_read: stats.bytes_read,
        bytes_written: stats.bytes_written,
        dropped_dead: stats.dropped_dead,
        dropped_clean: stats.dropped_clean,
        first_touches: stats.first_touches,
        key_faults: stats.key_faults,
        stalls: stats.stalls,
        trace_entries: stats.trace_entries,
        events: stats.events,
        allocation_hash: stats.allocation_hash,
        plan_s: stats.plan_s,
        pager_cpu_s: stats.pager_cpu_s,
    };
    // SAFETY: by this function's contract writable for `bytes`, which are no more than the counters have.
    unsafe { std::ptr::copy_nonoverlapping((&raw const counters).cast::<u8>(), out.cast(), bytes) };
    0
}

/// Ends the pass: the trace is completed, the report written. Idempotent, and called at exit; nothing of the
/// region may be used after it.
#[unsafe(no_mangle)]
pub extern "C" fn osp_finish() {
    osprey::finish();
}

/// A transfer out of memory: all of it by `send`, which gives a count or -1 and errno.
///
/// # Safety
/// `buf` is readable for `bytes`.
unsafe fn put(what: &str, buf: *const c_void, bytes: usize, mut send: impl FnMut(&[u8]) -> isize) -> ssize_t {
    let Some(buf) = checked(what, buf.cast_mut(), bytes) else { return -1 };
    // SAFETY: not null, and readable by this function's contract.
    let data = unsafe { std::slice::from_raw_parts(buf.as_ptr().cast_const(), bytes) };
    let ours = counted(buf);
    if osprey::speculating() {
        osprey::touch_read(data);
        return bytes.cast_signed();
    }
    if !ours {
        return all(what, bytes, |done| send(&data[done..]));
    }
    let mut piece = vec![0; bytes.min(PIECE)];
    all(what, bytes, |done| {
        let part = &mut piece[..PIECE.min(bytes - done)];
        part.copy_from_slice(&data[done..done + part.len()]);
        send(part)
    })
}

/// A transfer into memory, until it is full or `recv` gives 0.
///
/// # Safety
/// `buf` is writable for `bytes`, and nobody else's meanwhile.
unsafe fn get(
    what: &str,
    buf: *mut c_void,
    bytes: usize,
    mut recv: impl FnMut(&mut [u8]) -> isize,
) -> ssize_t {
    let Some(buf) = checked(what, buf, bytes) else { return -1 };
    // SAFETY: not null, and writable by this function's contract.
    let data = unsafe { std::slice::from_raw_parts_mut(buf.as_ptr(), bytes) };
    let ours = counted(buf);
    if osprey::speculating() {
        osprey::touch_write(data);
        return bytes.cast_signed();
    }
    if !ours {
        return all(what, bytes, |done| recv(&mut data[done..]));
    }
    let mut piece = vec![0; bytes.min(PIECE)];
    all(what, bytes, |done| {
        let part = &mut piece[..PIECE.min(bytes - done)];
        let got = recv(part);
        if let Ok(got) = usize::try_from(got) {
            data[done..done + got].copy_from_slice(&part[..got]);
        }
        got
    })
}

/// Whether a transfer is of the region, and so an event. Others are not: a library whose cryptography is
/// stubbed makes them in the real pass alone, and passes must count alike.
fn counted(buf: NonNull<u8>) -> bool {
    let ours = osprey::owns(buf.as_ptr());
    if ours {
        osprey::tick();
    }
    ours
}

/// The start of a transfer's memory; a valid one of no bytes for null of no bytes.
fn checked(what: &str, buf: *mut c_void, bytes: usize) -> Option<NonNull<u8>> {
    if bytes == 0 {
        return Some(NonNull::dangling());
    }
    let buf = NonNull::new(buf.cast()).filter(|_| isize::try_from(bytes).is_ok());
    if buf.is_none() {
        fail(libc::EINVAL, &format!("{what}: {bytes} bytes at null, or more than a transfer can count"));
    }
    buf
}

/// Calls `step` with the bytes done so far until all are, it gives 0, or it fails other than by an interrupt.
/// What was done before a failure is given first, as by the system's calls.
fn all(what: &str, bytes: usize, mut step: impl FnMut(usize) -> isize) -> ssize_t {
    let mut done = 0;
    while done < bytes {
        match usize::try_from(step(done)) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                fail_io(what, &error);
                return if done == 0 { -1 } else { done.cast_signed() };
            }
        }
    }
    done.cast_signed()
}

/// A transfer of `count` elements by one of their bytes: whole elements done.
fn elements(size: usize, count: usize, transfer: impl FnOnce(usize) -> ssize_t) -> usize {
    let Some(bytes) = size.checked_mul(count) else {
        fail(libc::EOVERFLOW, &format!("{count} elements of {size} bytes are more than memory holds"));
        return 0;
    };
    usize::try_from(transfer(bytes)).map_or(0, |done| done.checked_div(size).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn peeking_is_refused_and_takes_nothing() {
        let (mut here, mut there) = UnixStream::pair().expect("a pair of sockets");
        here.write_all(b"labels").expect("sent");
        let mut bytes = [0u8; 6];
        // SAFETY: six bytes of a live array.
        let got = unsafe { osp_recv(there.as_raw_fd(), bytes.as_mut_ptr().cast(), 6, libc::MSG_PEEK) };
        // SAFETY: a string of this thread's, valid until the next failure.
        let said = unsafe { CStr::from_ptr(osp_error()) }.to_str().expect("text");
        assert!(got == -1 && said.contains("MSG_PEEK"), "{got}: {said}");
        there.read_exact(&mut bytes).expect("all of it");
        assert_eq!(&bytes, b"labels");
    }
}

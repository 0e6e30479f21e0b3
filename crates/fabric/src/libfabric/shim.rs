//! The C shim, opened at run time: functions, endpoints, copies in and out of the memory that libfabric
//! writes. All `unsafe` of this transport.
#![expect(unsafe_code, reason = "calls into a C library, with the argument at each")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr::NonNull;

/// File name of the shim.
const FILE: &str = "libtacit_fabric.so";
/// Names the file of the shim, instead of all other places.
const VARIABLE: &str = "TACIT_FABRIC";
/// The shim's version that fits the signatures here.
const VERSION: c_int = 1;
/// Room for a provider's address.
pub(super) const NAME_BYTES: usize = 256;
const EVENTS: usize = 32;

/// What happened at an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) enum EndpointEvent {
    /// One of our writes lies in the peer's memory.
    Arrived,
    /// The peer wrote, with these bits.
    Told(u32),
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawEvent {
    kind: u32,
    value: u32,
}

type Raw = *mut c_void;

/// The functions of the shim; it stays loaded until the process ends, because libfabric does not like to be
/// unloaded.
#[derive(Clone, Copy)]
pub(super) struct Shim {
    open: unsafe extern "C" fn(*const c_char, *const c_char, usize, *mut Raw) -> c_int,
    close: unsafe extern "C" fn(Raw),
    error: unsafe extern "C" fn(Raw) -> *const c_char,
    landing: unsafe extern "C" fn(Raw) -> *mut u8,
    staging: unsafe extern "C" fn(Raw) -> *mut u8,
    name: unsafe extern "C" fn(Raw, *mut u8, usize, *mut usize, *mut u64, *mut u64) -> c_int,
    connect: unsafe extern "C" fn(Raw, *const u8, u64, u64) -> c_int,
    write: unsafe extern "C" fn(Raw, usize, usize, u32) -> c_int,
    credit: unsafe extern "C" fn(Raw, u32) -> c_int,
    poll: unsafe extern "C" fn(Raw, *mut RawEvent, c_int, c_int, *mut c_int) -> c_int,
}

impl Shim {
    /// Opens the shim: where the variable says, beside the program, or where the system looks for libraries.
    pub(super) fn load() -> Result<Self, String> {
        if cfg!(target_feature = "crt-static") {
            return Err(
                "this program is linked statically and opens no library; build tacit with `make build \
                        fabric` (needs libfabric-dev), or use another transport"
                    .to_owned(),
            );
        }
        let places = places();
        let mut why = String::new();
        for place in &places {
            match Self::open_at(place) {
                Ok(shim) => return Ok(shim),
                Err(text) => why = text,
            }
        }
        Err(format!(
            "{FILE} cannot be opened ({why}); build it with `make fabric` (needs libfabric-dev), put it \
             beside the program or name it in {VARIABLE}, or use another transport"
        ))
    }

    fn open_at(place: &CStr) -> Result<Self, String> {
        let library = with_own_signals(|| {
            // SAFETY: a valid C string; loading runs the library's own initialisers, which is what the
            // operator who put the file there wants.
            unsafe { libc::dlopen(place.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }
        });
        let Some(library) = NonNull::new(library) else { return Err(last_error()) };
        let version: unsafe extern "C" fn() -> c_int = symbol(library, c"tf_version")?;
        // SAFETY: `tf_version` has this signature in every version of the shim.
        let found = unsafe { version() };
        if found != VERSION {
            return Err(format!("it is of version {found}, wanted is {VERSION}: run `make fabric` again"));
        }
        Ok(Self {
            open: symbol(library, c"tf_open")?,
            close: symbol(library, c"tf_close")?,
            error: symbol(library, c"tf_error")?,
            landing: symbol(library, c"tf_landing")?,
            staging: symbol(library, c"tf_staging")?,
            name: symbol(library, c"tf_name")?,
            connect: symbol(library, c"tf_connect")?,
            write: symbol(library, c"tf_write")?,
            credit: symbol(library, c"tf_credit")?,
            poll: symbol(library, c"tf_poll")?,
        })
    }
}

/// Signals that libraries below libfabric take handlers for when they are loaded or first looked at; one of
/// them ends the process at SIGTERM with status 1. What signals mean is the program's to say.
const SIGNALS: [c_int; 6] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGABRT];

/// Does `work`, after which these signals mean what they meant before.
fn with_own_signals<T>(work: impl FnOnce() -> T) -> T {
    let before = SIGNALS.map(|signal| {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: asks only; the place is large enough, and read only where the call says that it was filled.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
        // SAFETY: filled by the call.
        (asked == 0).then(|| unsafe { action.assume_init() })
    });
    let done = work();
    for (signal, action) in SIGNALS.into_iter().zip(&before) {
        if let Some(action) = action {
            // SAFETY: an action that was in force a moment ago.
            unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
        }
    }
    done
}

fn places() -> Vec<CString> {
    if let Some(place) = std::env::var_os(VARIABLE) {
        return CString::new(place.into_encoded_bytes()).ok().into_iter().collect();
    }
    let mut places = Vec::new();
    let program = std::env::current_exe().unwrap_or_default();
    // Tests and examples lie one folder below the program.
    places.extend(program.ancestors().skip(1).take(2).map(|folder| folder.join(FILE)));
    places.push(PathBuf::from(FILE));
    let text = |place: PathBuf| CString::new(place.into_os_string().into_encoded_bytes()).ok();
    places.into_iter().filter_map(text).collect()
}

/// The function of that name. The type is the caller's word: the version, asked first, stands for all
/// signatures.
fn symbol<F: Copy>(library: NonNull<c_void>, name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a function pointer") };
    // SAFETY: an open library and a valid C string.
    let found = unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) };
    if found.is_null() {
        return Err(last_error());
    }
    // SAFETY: F is a function pointer of the signature that the shim of this version gives the symbol; same
    // size (checked at compile time), and not null.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

fn last_error() -> String {
    // SAFETY: dlerror gives null or a C string that is valid until the next call on this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "for no stated reason".into();
    }
    // SAFETY: as above, and not null.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// How a peer reaches an endpoint: address, start of landing, key of landing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndpointName {
    pub address: Vec<u8>,
    pub start: u64,
    pub key: u64,
}

/// One endpoint, closed on drop. `&mut` serialises its calls, as the shim wants.
pub(super) struct ShimEndpoint {
    shim: Shim,
    raw: NonNull<c_void>,
    landing: NonNull<u8>,
    staging: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the shim keeps nothing per thread; calls are serialised by `&mut self`, which is all that
// FI_THREAD_DOMAIN asks.
unsafe impl Send for ShimEndpoint {}

impl ShimEndpoint {
    /// An endpoint of `provider` with landing and staging of `bytes`, bound to the address `node` where it is
    /// given.
    pub(super) fn open(shim: Shim, provider: &str, node: Option<&str>, bytes: usize) -> Result<Self, String> {
        let text = |s: &str| CString::new(s).map_err(|_| "a name with a zero byte".to_owned());
        let (provider, node) = (text(provider)?, node.map(text).transpose()?);
        let node = node.as_ref().map_or(std::ptr::null(), |node| node.as_ptr());
        let mut raw = std::ptr::null_mut();
        let rc = with_own_signals(|| {
            // SAFETY: valid C strings (or null, which the shim takes) and a place for the handle.
            unsafe { (shim.open)(provider.as_ptr(), node, bytes, &mut raw) }
        });
        let Some(raw) = NonNull::new(raw) else { return Err("no memory for an endpoint".into()) };
        if rc != 0 {
            let text = error_of(shim, raw);
            // SAFETY: a handle that `open` gave, used by nobody else.
            unsafe { (shim.close)(raw.as_ptr()) };
            return Err(text);
        }
        // SAFETY: an open handle; both pointers are to `bytes` bytes that live as long as it.
        let (landing, staging) = unsafe { ((shim.landing)(raw.as_ptr()), (shim.staging)(raw.as_ptr())) };
        let (Some(landing), Some(staging)) = (NonNull::new(landing), NonNull::new(staging)) else {
            return Err("the shim gave no memory".into());
        };
        Ok(Self { shim, raw, landing, staging, bytes })
    }

    fn error(&self) -> String {
        error_of(self.shim, self.raw)
    }

    fn done(&self, rc: c_int) -> Result<c_int, String> {
        if rc < 0 { Err(self.error()) } else { Ok(rc) }
    }

    pub(super) fn name(&mut self) -> Result<EndpointName, String> {
        let mut address = vec![0; NAME_BYTES];
        let (mut length, mut start, mut key) = (0, 0, 0);
        // SAFETY: an open handle, a buffer of the stated size, and places for three numbers.
        let rc = unsafe {
            (self.shim.name)(
                self.raw.as_ptr(),
                address.as_mut_ptr(),
                NAME_BYTES,
                &mut length,
                &mut start,
                &mut key,
            )
        };
        self.done(rc)?;
        address.truncate(length);
        Ok(EndpointName { address, start, key })
    }

    /// From now on writes go to this peer.
    pub(super) fn connect(&mut self, peer: &EndpointName) -> Result<(), String> {
        // Providers read an address of their own fixed size: it must not end before.
        let mut address = peer.address.clone();
        address.resize(NAME_BYTES, 0);
        // SAFETY: an open handle and NAME_BYTES readable bytes, more than any provider's address has.
        let rc = unsafe { (self.shim.connect)(self.raw.as_ptr(), address.as_ptr(), peer.start, peer.key) };
        self.done(rc).map(drop)
    }

    /// Copies `bytes` into staging, where no write is under way: the caller's bookkeeping says so.
    pub(super) fn stage(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset <= self.bytes && bytes.len() <= self.bytes - offset, "inside staging");
        // SAFETY: inside the block (checked); `bytes` is Rust memory and does not overlap it. If libfabric
        // still reads there, the peer gets wrong bytes, which its tag tells.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.staging.as_ptr().add(offset), bytes.len());
        }
    }

    /// Copies out of landing. Whoever has the memory key may write there meanwhile: only the copy is looked
    /// at.
    pub(super) fn take(&mut self, offset: usize, into: &mut [u8]) {
        assert!(offset <= self.bytes && into.len() <= self.bytes - offset, "inside landing");
        // SAFETY: inside the block (checked), initialised by the system to zeros; no reference to it exists.
        unsafe {
            std::ptr::copy_nonoverlapping(self.landing.as_ptr().add(offset), into.as_mut_ptr(), into.len());
        }
    }

    /// Writes from staging to the same place of the peer's landing. `false`: later.
    pub(super) fn put(&mut self, offset: usize, length: usize, data: u32) -> Result<bool, String> {
        // SAFETY: an open handle; the shim checks the range.
        let rc = unsafe { (self.shim.write)(self.raw.as_ptr(), offset, length, data) };
        Ok(self.done(rc)? == 0)
    }

    /// Tells the peer 32 bits. `false`: later.
    pub(super) fn tell(&mut self, data: u32) -> Result<bool, String> {
        // SAFETY: an open handle.
        let rc = unsafe { (self.shim.credit)(self.raw.as_ptr(), data) };
        Ok(self.done(rc)? == 0)
    }

    /// Moves everything on and gives what happened, waiting for the first event so long where the provider
    /// can wait; the second value says whether it can.
    pub(super) fn poll(&mut self, wait_ms: u32, events: &mut Vec<EndpointEvent>) -> Result<bool, String> {
        let mut raw = [RawEvent::default(); EVENTS];
        let mut waits = 0;
        // SAFETY: an open handle, room for EVENTS events, a place for a flag.
        let got = unsafe {
            (self.shim.poll)(
                self.raw.as_ptr(),
                raw.as_mut_ptr(),
                EVENTS as c_int,
                wait_ms as c_int,
                &mut waits,
            )
        };
        let got = self.done(got)? as usize;
        events.extend(raw[..got.min(EVENTS)].iter().map(|event| match event.kind {
            2 => EndpointEvent::Told(event.value),
            _ => EndpointEvent::Arrived,
        }));
        Ok(waits != 0)
    }
}

fn error_of(shim: Shim, raw: NonNull<c_void>) -> String {
    // SAFETY: a handle that is not closed; the text is a C string inside it.
    unsafe { CStr::from_ptr((shim.error)(raw.as_ptr())) }.to_string_lossy().into_owned()
}

impl Drop for ShimEndpoint {
    fn drop(&mut self) {
        // SAFETY: the handle is closed once; the pointers into it die with `self`.
        unsafe { (self.shim.close)(self.raw.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_mean_afterwards_what_they_meant_before() {
        let handler = || {
            let mut action = MaybeUninit::<libc::sigaction>::uninit();
            // SAFETY: asks only, and reads what the call has filled.
            unsafe {
                assert_eq!(libc::sigaction(libc::SIGTERM, std::ptr::null(), action.as_mut_ptr()), 0);
                action.assume_init().sa_sigaction
            }
        };
        let before = handler();
        assert_ne!(before, libc::SIG_IGN);
        with_own_signals(|| {
            // SAFETY: to ignore a signal needs no handler.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            assert_eq!(handler(), libc::SIG_IGN);
        });
        assert_eq!(handler(), before);
    }
}

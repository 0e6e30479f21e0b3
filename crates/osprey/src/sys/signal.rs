//! Faults as signals: a handler in the thread that faulted.

use super::check;
use std::ffi::c_void;
use std::io;
use std::sync::OnceLock;

/// A touch that the system could not make good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalTouch {
    /// The address touched.
    pub address: usize,
    /// Whether it was written to; true where the processor does not say.
    pub write: bool,
}

/// Makes a touch good, or says that it is none of its business. Async-signal-safe.
pub(crate) type SignalHandler = fn(SignalTouch) -> bool;

struct Installed {
    answer: SignalHandler,
    before: libc::sigaction,
}

static BUS: OnceLock<Installed> = OnceLock::new();
static SEGV: OnceLock<Installed> = OnceLock::new();

/// From now on `answer` is asked about each SIGBUS of a touch. What it does not know goes to whoever handled
/// it before. Once per process.
///
/// # Errors
/// The system's.
pub(crate) fn answer_bus(answer: SignalHandler) -> io::Result<()> {
    install(libc::SIGBUS, &BUS, answer)
}

/// As [`answer_bus`], for SIGSEGV.
///
/// # Errors
/// The system's.
pub(crate) fn answer_segv(answer: SignalHandler) -> io::Result<()> {
    install(libc::SIGSEGV, &SEGV, answer)
}

/// Puts the handler in place. It runs on the stack of the thread: alternate stacks that programs have are
/// often made for a few lines (8 KiB with Rust's), and the frame that the kernel pushes takes up to half of
/// that.
fn install(signal: i32, slot: &OnceLock<Installed>, answer: SignalHandler) -> io::Result<()> {
    // SAFETY: `sigaction` is integers and a set; the kernel fills it with the action that is in place.
    let before = unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(signal, std::ptr::null(), &raw mut before).into())?;
        before
    };
    slot.set(Installed { answer, before }).map_err(|_| io::ErrorKind::AlreadyExists)?;
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) = on_signal;
    // SAFETY: the handler has the form that SA_SIGINFO asks for and lives as long as the program. All signals
    // wait while it runs, so that no handler of the program's touches what it works on.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&raw mut action.sa_mask);
        check(libc::sigaction(signal, &raw const action, std::ptr::null_mut()).into()).map(|_| ())
    }
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let slot = if signal == libc::SIGBUS { &BUS } else { &SEGV };
    let Some(installed) = slot.get() else { return };
    // SAFETY: errno belongs to this thread; the code that was interrupted must find it as it was.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes its structures to a handler with SA_SIGINFO.
    let known = unsafe { (*info).si_code > 0 && (installed.answer)(touch(info, context)) };
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    if !known {
        // SAFETY: the arguments of this very call.
        unsafe { chain(&installed.before, signal, info, context) };
    }
}

/// What the kernel says of a fault.
///
/// # Safety
/// Both are of a signal that is being handled.
unsafe fn touch(info: *const libc::siginfo_t, context: *const c_void) -> SignalTouch {
    // SAFETY: by this function's contract; a fault's signal has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    // SAFETY: as above; with SA_SIGINFO the context is of this type.
    let write = unsafe { written(&*context.cast::<libc::ucontext_t>()) };
    SignalTouch { address, write }
}

#[cfg(target_arch = "x86_64")]
fn written(context: &libc::ucontext_t) -> bool {
    const WRITE: i64 = 1 << 1;
    context.uc_mcontext.gregs[libc::REG_ERR as usize] & WRITE != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn written(_context: &libc::ucontext_t) -> bool {
    true
}

/// Hands a signal to the action that was there before. The system's own action is put back, so that it
/// happens when the instruction is tried again.
///
/// # Safety
/// The arguments are those of the handler that calls it.
unsafe fn chain(before: &libc::sigaction, signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the default action needs no handler. A signal that was sent rather than caused does not
            // come again, so it is raised anew; it waits until this handler is left.
            unsafe {
                let mut default: libc::sigaction = std::mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const default, std::ptr::null_mut());
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        // SAFETY: whoever installed it gave it the form that its flags state.
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => unsafe {
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) = std::mem::transmute(handler);
            handler(signal, info, context);
        },
        // SAFETY: as above.
        handler => unsafe {
            let handler: extern "C" fn(i32) = std::mem::transmute(handler);
            handler(signal);
        },
    }
}

/// Ends the process from inside a handler, with a line on standard error.
pub(crate) fn leave(text: &str, code: i32) -> ! {
    ["osprey: ", text, "\n"].into_iter().for_each(super::process::say);
    // SAFETY: ends the process without calling anything of it.
    unsafe { libc::_exit(code) }
}

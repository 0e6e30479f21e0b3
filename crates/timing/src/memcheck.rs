//! Requests to Valgrind's memcheck. Outside Valgrind they cost a few instructions and do nothing.
//!
//! memcheck follows every bit that is undefined. A secret that is marked so makes everything computed from it
//! undefined, and a branch or an address that depends on it an error.
#![expect(unsafe_code, reason = "a request is a sequence of instructions that only Valgrind understands")]

use std::cell::Cell;

/// Request codes of Valgrind's core and, from `TOOL` on, of memcheck.
mod code {
    pub const RUNNING: usize = 0x1001;
    pub const COUNT_ERRORS: usize = 0x1201;
    const TOOL: usize = (b'M' as usize) << 24 | (b'C' as usize) << 16;
    pub const MAKE_UNDEFINED: usize = TOOL + 1;
    pub const MAKE_DEFINED: usize = TOOL + 2;
    pub const GET_VALIDITY: usize = TOOL + 8;
}

/// Asks Valgrind; without it, or on a machine that it has no form for here, the answer is 0.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn request(code: usize, arguments: [usize; 5]) -> usize {
    let [a, b, c, d, e] = arguments;
    let block = [code, a, b, c, d, e];
    let mut answer = 0;
    // SAFETY: rdi is rotated by 128 bits in all, so it is as before, and rbx is exchanged with itself: on a
    // CPU these instructions change nothing but flags, which `asm!` assumes changed. Valgrind reads `block`,
    // which outlives them, and writes rdx; memory that a request names is borrowed by the caller and its
    // content stays.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") block.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn request(_: usize, _: [usize; 5]) -> usize {
    0
}

/// The place is borrowed for change, so that the compiler does not go on with a copy that it has in a
/// register.
fn about<T: ?Sized>(code: usize, place: &mut T) {
    let place = std::hint::black_box(place);
    request(code, [(&raw mut *place).cast::<u8>() as usize, size_of_val(place), 0, 0, 0]);
    std::hint::black_box(place);
}

/// Whether this process runs under Valgrind.
#[must_use]
pub fn is_running() -> bool {
    request(code::RUNNING, [0; 5]) > 0
}

/// Marks memory as secret. What it points to is not marked.
pub fn secret<T: ?Sized>(place: &mut T) {
    about(code::MAKE_UNDEFINED, place);
}

/// Marks memory as public: what a protocol shows, or what cannot be but one way. The call site says why.
pub fn public<T: ?Sized>(place: &mut T) {
    about(code::MAKE_DEFINED, place);
}

/// Errors so far, equal ones counted each.
pub(crate) fn errors() -> usize {
    request(code::COUNT_ERRORS, [0; 5])
}

/// Whether a bit of the memory depends on a secret.
fn is_secret<T: ?Sized>(place: &T) -> bool {
    let mut validity = vec![0u8; size_of_val(place)];
    let places = [(&raw const *place).cast::<u8>() as usize, validity.as_mut_ptr() as usize];
    request(code::GET_VALIDITY, [places[0], places[1], validity.len(), 0, 0]);
    std::hint::black_box(&mut validity).iter().any(|&bits| bits != 0)
}

thread_local! {
    static SECRET_RESULT: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn forget_results() {
    SECRET_RESULT.set(false);
}

pub(crate) fn note_result<T: ?Sized>(result: &T) {
    SECRET_RESULT.set(SECRET_RESULT.get() || is_secret(result));
}

pub(crate) fn a_result_is_secret() -> bool {
    SECRET_RESULT.get()
}

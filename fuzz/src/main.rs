//! libFuzzer over one target of `fuzzing`, named by the environment: `TACIT_FUZZ=study tacit-fuzz CORPUS -runs=1000`.
//!
//! Besides panics and overflows an input fails that makes one allocation of more than [`LARGEST`] bytes; hangs and the
//! memory of all are libFuzzer's to notice (`-timeout`, `-rss_limit_mb`).

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::LazyLock;

/// Most bytes of one allocation: twice the largest message, and more than any target's honest run takes.
const LARGEST: usize = 64 << 20;

struct Bounded;

// SAFETY: all calls go to the system's allocator unchanged; a call that does not return makes no promise.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        bounded(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        bounded(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        bounded(size);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

fn bounded(size: usize) {
    if size > LARGEST {
        // A panic would allocate; libFuzzer keeps the input of an abort.
        eprintln!("an allocation of {size} bytes");
        std::process::abort();
    }
}

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

static TARGET: LazyLock<&fuzzing::Target> = LazyLock::new(|| {
    let name = std::env::var("TACIT_FUZZ").unwrap_or_default();
    fuzzing::target(&name).unwrap_or_else(|| panic!("TACIT_FUZZ = {name:?} names no target"))
});

fuzz_target!(|data: &[u8]| (TARGET.run)(data));

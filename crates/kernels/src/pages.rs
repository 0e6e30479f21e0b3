//! What the system is asked of memory: large pages for tables that are read at random places, where every
//! read would miss the table of pages; and back what is not used, in programs that promise a bound.

use crate::Block;

/// Asks the system to back the spare room of `blocks` by large pages. A hint: nothing depends on whether it
/// is taken. It works on memory that was not touched yet, so call it before the room is filled.
pub fn prefer_large_pages(blocks: &mut Vec<Block>) {
    #[cfg(target_os = "linux")]
    linux::advise(blocks.spare_capacity_mut());
    #[cfg(not(target_os = "linux"))]
    let _ = blocks;
}

/// Has this process's allocator give freed buffers back to the system, and not keep them for later: for
/// programs that promise a bound. Call it before threads are started. Where the C library knows no such
/// setting, nothing changes.
pub fn return_freed_buffers() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    gnu::return_freed_buffers();
}

/// Gives back the freed pieces of this process's heaps. For programs that mostly rest: what they took to
/// start, or for what is rarely asked, stays with them otherwise. Where the C library knows no such thing,
/// nothing changes.
pub fn return_while_resting() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    gnu::trim_heaps();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "the only way to set what the allocator keeps")]
mod gnu {
    /// Bytes from which on a buffer is mapped by itself. The library's own bound grows with what is freed, to
    /// 32 MiB, and then holds what lies below live bytes of its heap.
    const MAPPED: i32 = 256 << 10;
    /// Heaps of all threads together: each keeps what is freed in it.
    const HEAPS: i32 = 2;

    pub fn return_freed_buffers() {
        let settings =
            [(libc::M_MMAP_THRESHOLD, MAPPED), (libc::M_TRIM_THRESHOLD, MAPPED), (libc::M_ARENA_MAX, HEAPS)];
        for (setting, value) in settings {
            // SAFETY: it takes two numbers, and the library changes its settings under its own lock. A
            // refusal costs memory only.
            let _ = unsafe { libc::mallopt(setting, value) };
        }
    }

    pub fn trim_heaps() {
        // SAFETY: it takes a number, and the library gives back free memory alone, under its own locks.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the only way to advise the system")]
mod linux {
    use crate::Block;
    use rustix::mm::{Advice, madvise};
    use std::mem::MaybeUninit;

    pub fn advise(room: &mut [MaybeUninit<Block>]) {
        let page = rustix::param::page_size();
        let skipped = room.as_ptr().align_offset(page);
        let Some(whole) = room.get_mut(skipped..) else { return };
        let bytes = size_of_val(whole) / page * page;
        if bytes > 0 {
            // SAFETY: the range is whole pages of memory that is borrowed here, and this advice changes no
            // content. A refusal costs speed only.
            let _ = unsafe { madvise(whole.as_mut_ptr().cast(), bytes, Advice::LinuxHugepage) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_and_the_room_can_be_used() {
        for capacity in [0, 1, 3, 257, 1 << 18] {
            let mut blocks = Vec::with_capacity(capacity);
            blocks.extend((0..capacity as u128 / 2).map(Block));
            prefer_large_pages(&mut blocks);
            blocks.extend((capacity as u128 / 2..capacity as u128).map(Block));
            assert!(blocks.iter().enumerate().all(|(i, b)| b.0 == i as u128), "{capacity}");
        }
    }
}

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

/// Gives back what this process holds and does not use at the moment: freed pieces of its heaps, and the
/// pages of its program, which the system maps again, most of them out of its cache, when they are used. For
/// programs that mostly rest: what they took to start, or for what is rarely asked, stays with them
/// otherwise. Where the system knows no such thing, nothing changes.
pub fn return_while_resting() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    gnu::trim_heaps();
    #[cfg(target_os = "linux")]
    linux::unmap_program();
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
    use std::ops::Range;
    use std::ptr::with_exposed_provenance_mut;

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

    pub fn unmap_program() {
        let program = std::fs::read_link("/proc/self/exe");
        let mappings = std::fs::read_to_string("/proc/self/smaps");
        let (Ok(program), Ok(mappings)) = (program, mappings) else { return };
        for place in unwritten(&mappings, &program.to_string_lossy()) {
            let start = with_exposed_provenance_mut(place.start);
            // SAFETY: these pages are a file's, read-only and as the file has them: nobody writes to a
            // program that runs. So what is read there next is what was read before.
            let _ = unsafe { madvise(start, place.len(), Advice::LinuxDontNeed) };
        }
    }

    /// Where a program's file is mapped and cannot be written, and no page has become the process's own.
    pub fn unwritten(mappings: &str, program: &str) -> Vec<Range<usize>> {
        let (mut all, mut place) = (Vec::new(), None);
        for line in mappings.lines() {
            let head = line.split_once(' ').filter(|(word, _)| !word.ends_with(':'));
            match head {
                Some((place_of, rest)) => {
                    let (rights, rest) = rest.split_once(' ').unwrap_or_default();
                    // Offset, device and inode come before the path, which may have spaces.
                    let mut path = rest;
                    for _ in 0..3 {
                        path = path.trim_start().split_once(' ').map_or("", |(_, after)| after);
                    }
                    let fits = path.trim_start() == program && !rights.contains('w');
                    place = range(place_of).filter(|_| fits);
                }
                None if line.split_whitespace().eq(["Anonymous:", "0", "kB"]) => all.extend(place.take()),
                None => {}
            }
        }
        all
    }

    fn range(text: &str) -> Option<Range<usize>> {
        let (from, until) = text.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some(number(from)?..number(until)?)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod linux_tests {
    use super::linux::unwritten;

    #[test]
    fn what_was_written_is_no_file_any_more() {
        let mapped = |place: &str, rights: &str, path: &str, own: u32| {
            format!(
                "{place} {rights} 00000000 08:01 1234     {path}\nSize:     64 kB\nAnonymous:     {own} kB\n\
                 VmFlags: rd mr mw me\n"
            )
        };
        let all = [
            mapped("1000-3000", "r--p", "/bin/my tacit", 0),
            mapped("3000-9000", "r-xp", "/bin/my tacit", 0),
            // Addresses that the loader wrote, and then protected.
            mapped("9000-a000", "r--p", "/bin/my tacit", 4),
            mapped("a000-b000", "rw-p", "/bin/my tacit", 0),
            mapped("b000-c000", "r-xp", "/lib/libc.so.6", 0),
            mapped("c000-d000", "r--p", "", 0),
            // A mapping of which nothing is said.
            "d000-e000 r--p 00000000 08:01 1234     /bin/my tacit\n".to_owned(),
        ];
        assert_eq!(unwritten(&all.concat(), "/bin/my tacit"), [0x1000..0x3000, 0x3000..0x9000]);
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

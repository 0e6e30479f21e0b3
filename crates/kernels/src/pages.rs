//! Large pages for tables that are read at random places: there every read would miss the table of pages.

use crate::Block;

/// Asks the system to back the spare room of `blocks` by large pages. A hint: nothing depends on whether it
/// is taken. It works on memory that was not touched yet, so call it before the room is filled.
pub fn prefer_large_pages(blocks: &mut Vec<Block>) {
    #[cfg(target_os = "linux")]
    linux::advise(blocks.spare_capacity_mut());
    #[cfg(not(target_os = "linux"))]
    let _ = blocks;
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the only way to ask for large pages")]
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

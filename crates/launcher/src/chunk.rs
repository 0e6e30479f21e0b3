//! How large chunks are where nobody says it: decision 032. One rule for `osprey run` and so for
//! `osprey bench`.

use osprey::settings::CHUNK;

/// For limits that hold few others.
pub const SMALL: usize = CHUNK;
/// Huge pages: one entry of a page table, moved whole.
pub const LARGE: usize = 2 << 20;
/// A limit from which on large chunks are tried: what a program has beside them is known only by its trace.
pub const TRIED: u64 = 128 << 20;
/// A limit from which on a trace that is still being made is one of large chunks: nobody can look at its end
/// first.
pub const TRIED_UNSEEN: u64 = 256 << 20;
/// Memory for chunks, beside all else, that holds enough large ones: 48, three times two blocks.
pub const ROOM: u64 = 48 * LARGE as u64;

/// What will be known of a program's touches before they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foresight {
    /// All of them, by a trace that is made first.
    Trace,
    /// The next ones, by a trace that is made meanwhile.
    Stream,
    /// Nothing: it is paged by what it waits for.
    Nothing,
    /// It does not matter, because nothing is paged by chunks: they only say whether pages are huge.
    Unpaged,
}

/// The chunk to begin with under a limit (`None`: it is not known yet, or there is none), and why.
pub fn first(foresight: Foresight, limit: Option<u64>) -> (usize, &'static str) {
    let from = |least: u64| limit.is_none_or(|limit| limit >= least);
    match foresight {
        Foresight::Trace if from(TRIED) => (LARGE, "the limit holds enough of them"),
        Foresight::Stream if from(TRIED_UNSEEN) => (LARGE, "the limit holds enough of them"),
        Foresight::Trace | Foresight::Stream => (SMALL, "the limit does not hold enough larger ones"),
        Foresight::Nothing => (SMALL, "larger ones are for programs that are paged by a trace"),
        Foresight::Unpaged if from(TRIED) => (LARGE, "nothing is paged by chunks, and pages may be huge"),
        Foresight::Unpaged => (SMALL, "nothing is paged by chunks, and the limit is small for huge pages"),
    }
}

/// Whether large chunks have room in a limit of which a program needs `other` bytes beside them.
pub fn has_room(limit: u64, other: u64) -> bool {
    limit.saturating_sub(other) >= ROOM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_large_where_enough_of_them_fit() {
        let chunk = |foresight, limit| first(foresight, limit).0;
        for (foresight, least) in
            [(Foresight::Trace, TRIED), (Foresight::Stream, TRIED_UNSEEN), (Foresight::Unpaged, TRIED)]
        {
            assert_eq!(chunk(foresight, Some(least)), LARGE, "{foresight:?}");
            assert_eq!(chunk(foresight, Some(least - 1)), SMALL, "{foresight:?}");
            assert_eq!(chunk(foresight, None), LARGE, "{foresight:?}");
        }
        assert_eq!(chunk(Foresight::Nothing, Some(1 << 40)), SMALL, "a touch brings a whole chunk");
        assert!(has_room(TRIED, 32 << 20) && !has_room(TRIED, 33 << 20) && !has_room(0, 1));
    }
}

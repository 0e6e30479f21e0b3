//! How large chunks are where nobody says it: decision 032.

use osprey::Engine;
use osprey::settings::CHUNK;

/// For limits that hold few others.
pub const SMALL: usize = CHUNK;
/// Huge pages: one entry of a page table, moved whole.
pub const LARGE: usize = 2 << 20;
/// A limit from which on large chunks are tried: what a program has beside them is known only by its trace.
pub const TRIED: u64 = 128 << 20;
/// A limit from which on a trace that is still being made is one of large chunks: nobody can look at its end first.
pub const TRIED_UNSEEN: u64 = 256 << 20;
/// Memory for chunks, beside all else, that holds enough large ones: 48, three times two blocks.
pub const ROOM: u64 = 48 * LARGE as u64;

/// The chunk to begin with under a limit; `None`: it is not known yet.
pub fn first(engine: Engine, limit: Option<u64>, least: u64) -> usize {
    // Only `move`, and a trace for whoever comes, are better off with huge pages.
    let huge = matches!(engine, Engine::Move | Engine::None);
    if huge && limit.is_none_or(|limit| limit >= least) { LARGE } else { SMALL }
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
        assert_eq!(first(Engine::Move, Some(TRIED), TRIED), LARGE);
        assert_eq!(first(Engine::Move, Some(TRIED - 1), TRIED), SMALL);
        assert_eq!(first(Engine::Move, None, TRIED), LARGE);
        for engine in [Engine::Copy, Engine::File, Engine::Hint] {
            assert_eq!(first(engine, None, TRIED), SMALL, "{engine} moves pages one by one");
        }
        assert!(has_room(TRIED, 32 << 20) && !has_room(TRIED, 33 << 20) && !has_room(0, 1));
    }
}

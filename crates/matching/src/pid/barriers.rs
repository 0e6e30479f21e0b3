//! The two points that nothing passes too early, as values that only they make.
//!
//! A slice of `e_c` that left while part of `u` was missing would tell which part of the *input* its members
//! come from; so would one of `s'_c` that left while part of `e_c \ e_p` was. So the units that send these
//! take a [`SealedStreams`] and a [`SealedDifference`], which are made of all units before them.

use super::difference::DifferenceWork;
use super::partitions::Partitioning;
use super::{Party, Role};
use crate::begin::by_party;
use crate::group::GroupElement;
use crate::spill::SortedRecords;
use base::Error;
use net::Session;

/// A unit `v` that is done: digests of what both said in it.
pub(super) struct DoneStream {
    part: u32,
    /// Of own rows and of the peer's: `u` and what was answered.
    digests: [GroupElement; 2],
}

/// The digest of one chunk of `u` with its answer.
pub(super) type ChunkDigest = [u8; 32];

impl DoneStream {
    /// From digests of all chunks of a partition, own and the peer's.
    pub fn of(part: u32, chunks: [blake3::Hasher; 2]) -> Self {
        Self::told(part, chunks.map(|hasher| *hasher.finalize().as_bytes()))
    }

    /// As the worker that was at the unit has told.
    pub fn told(part: u32, digests: [[u8; 32]; 2]) -> Self {
        Self { part, digests }
    }

    pub fn digests(&self) -> [[u8; 32]; 2] {
        self.digests
    }
}

/// All of `u` and `v` of both sides was said, is pinned, and both say that it is the same.
pub(super) struct SealedStreams {
    root: [u8; 32],
}

impl SealedStreams {
    /// In a worker, whose coordinator has passed the barrier: it says so by the root.
    pub fn passed(root: [u8; 32]) -> Self {
        Self { root }
    }

    /// What binds later messages to these streams.
    pub fn root(&self) -> &[u8; 32] {
        &self.root
    }
}

/// What a party says of all streams. Who says it is in it, so that it cannot be said by one who only heard
/// it.
fn seal_of(role: Role, root: &[u8; 32]) -> [u8; 32] {
    match role {
        Role::C => blake3::derive_key("tacit pid seal of streams as told by C 1", root),
        Role::P => blake3::derive_key("tacit pid seal of streams as told by P 1", root),
    }
}

/// Whether these are all partitions, each once.
fn are_all(parts: impl Iterator<Item = u32>, of: Partitioning) -> Result<(), Error> {
    let mut parts: Vec<u32> = parts.collect();
    parts.sort_unstable();
    match parts.into_iter().eq(0..of.count()) {
        true => Ok(()),
        false => Err(Error::misuse("a barrier is passed when every partition is done, once")),
    }
}

impl Party<'_> {
    /// The first barrier. Tells 32 bytes each way: a digest of what both know.
    ///
    /// # Errors
    /// `Deviated` when the peer says another digest, or one that differs from that before a cut; `Misuse`
    /// when a partition is missing.
    pub(super) fn seal_streams(
        &mut self,
        session: &mut Session,
        mut done: Vec<DoneStream>,
    ) -> Result<SealedStreams, Error> {
        are_all(done.iter().map(|unit| unit.part), self.parts)?;
        done.sort_unstable_by_key(|unit| unit.part);
        let me = session.me();
        let mut hasher = blake3::Hasher::new_derive_key("tacit pid streams 1");
        for rows in by_party(me, self.rows[0], self.rows[1]) {
            hasher.update(&rows.to_le_bytes());
        }
        hasher.update(&self.parts.count().to_le_bytes());
        for DoneStream { digests: [own, peer], .. } in &done {
            hasher.update(by_party(me, *own, *peer).as_flattened());
        }
        let root = *hasher.finalize().as_bytes();
        let mut link = session.link(self.peer);
        // It is on disk before anything that depends on it leaves.
        self.pins.seal(&link, &root)?;
        link.send(&seal_of(self.role, &root))?;
        if link.recv_array()? != seal_of(self.role.other(), &root) {
            return Err(link.blame("all of u and v is said before any of e, and both have the same of it"));
        }
        Ok(SealedStreams { root })
    }
}

/// All of `e_c \ e_p` was raised: the column takes no element any more, and may leave in its order.
pub(super) struct SealedDifference {
    s_c: SortedRecords<32>,
    sizes: Vec<u64>,
}

impl SealedDifference {
    /// The second barrier.
    ///
    /// # Errors
    /// `Misuse` when an element is still to be raised.
    pub fn of(work: DifferenceWork, parts: Partitioning) -> Result<Self, Error> {
        let (raised, total) = work.into_raised();
        Self::of_raised(raised.sorted(), total, parts)
    }

    /// Of what was raised, of `total` elements.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn of_raised(s_c: SortedRecords<32>, total: u64, parts: Partitioning) -> Result<Self, Error> {
        let sizes = s_c.part_lens(parts.bits());
        match sizes.iter().sum::<u64>() == total {
            true => Ok(Self { s_c, sizes }),
            false => Err(Error::misuse("C says nothing of its difference before all of it is raised")),
        }
    }

    /// In a worker, whose coordinator has passed the barrier: it says so by the size of the partition.
    ///
    /// # Errors
    /// `Misuse` when the partition has another one.
    pub fn passed(
        s_c: SortedRecords<32>,
        (part, size): (u32, u64),
        parts: Partitioning,
    ) -> Result<Self, Error> {
        let sizes = s_c.part_lens(parts.bits());
        match sizes.get(part as usize) == Some(&size) {
            true => Ok(Self { s_c, sizes }),
            false => Err(Error::misuse("what is said of a difference is what was sealed")),
        }
    }

    /// How many elements each partition has.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The elements of one partition, in their order.
    pub fn part(&mut self, part: u32, parts: Partitioning) -> &mut SortedRecords<32> {
        self.s_c.enter(part, parts.bits());
        &mut self.s_c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_partition_is_left_out_or_counted_twice() {
        let parts = Partitioning::of([0; 2], 4);
        assert!(are_all([2, 0, 1, 3].into_iter(), parts).is_ok());
        for some in [&[0, 1, 2][..], &[0, 1, 2, 2], &[0, 1, 2, 3, 3], &[]] {
            assert!(are_all(some.iter().copied(), parts).is_err(), "{some:?}");
        }
    }

    #[test]
    fn a_seal_says_who_tells_it() {
        assert_ne!(seal_of(Role::C, &[7; 32]), seal_of(Role::P, &[7; 32]));
    }
}

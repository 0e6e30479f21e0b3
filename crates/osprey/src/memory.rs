//! Where a data structure's bulk lives: chosen by a type, so that the same code runs on the heap and in the
//! region.

use crate::vec::OspVec;
use bytemuck::Pod;
use std::ops::DerefMut;

/// A place that gives buffers.
pub trait Memory: Clone + Send + Sync + 'static {
    /// A buffer of it.
    type Buffer<T: Pod + Send + Sync>: DerefMut<Target = [T]> + Send;

    /// `len` elements, all bytes zero.
    fn zeroed<T: Pod + Send + Sync>(&self, len: usize) -> Self::Buffer<T>;

    /// `len` elements of any content, for what is written before it is read: a buffer that is paged is not
    /// touched.
    fn untouched<T: Pod + Send + Sync>(&self, len: usize) -> Self::Buffer<T> {
        self.zeroed(len)
    }
}

/// The ordinary heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap;

/// The content-oblivious region: for what never decides an address or a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oblivious;

impl Memory for Heap {
    type Buffer<T: Pod + Send + Sync> = Vec<T>;

    fn zeroed<T: Pod + Send + Sync>(&self, len: usize) -> Vec<T> {
        vec![T::zeroed(); len]
    }
}

impl Memory for Oblivious {
    type Buffer<T: Pod + Send + Sync> = OspVec<T>;

    fn zeroed<T: Pod + Send + Sync>(&self, len: usize) -> OspVec<T> {
        OspVec::zeroed(len)
    }

    fn untouched<T: Pod + Send + Sync>(&self, len: usize) -> OspVec<T> {
        OspVec::untouched(len)
    }
}

//! A vector whose elements live in the content-oblivious region, and touches for stubs.
#![expect(unsafe_code, reason = "elements at addresses of the region's allocator, with the argument at each")]

use crate::runtime;
use crate::speculate;
use crate::sys::PAGE;
use bytemuck::Pod;
use std::fmt;
use std::mem::size_of;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Elements before the first growth.
const FIRST: usize = 8;

/// As `Vec`, in the region. Elements are plain data, aligned to 64 bytes at least when they fill a cache
/// line.
///
/// While the process speculates the bytes mean nothing, and vectors share pages: what is written through one
/// changes what another one holds, between two reads of it, too. Never branch or index by them.
///
/// That is why elements are plain data ([`Pod`], of which every bit pattern is a value), and why address,
/// length and room are outside the region: no bound of an access ever comes from bytes that may change under
/// the reader.
pub struct OspVec<T: Pod> {
    at: NonNull<T>,
    len: usize,
    room: usize,
}

// SAFETY: the vector owns its elements, as `Vec` does; the allocator may be called from any thread.
unsafe impl<T: Pod + Send> Send for OspVec<T> {}
// SAFETY: a shared vector gives shared elements alone.
unsafe impl<T: Pod + Sync> Sync for OspVec<T> {}

impl<T: Pod> OspVec<T> {
    const ALIGN: usize = {
        assert!(size_of::<T>() > 0 && align_of::<T>() <= 4096);
        align_of::<T>()
    };

    /// No elements, no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { at: NonNull::dangling(), len: 0, room: 0 }
    }

    /// No elements, room for `room` of them.
    ///
    /// # Panics
    /// When that is more than the address space. The process ends when the region is full.
    #[must_use]
    pub fn with_capacity(room: usize) -> Self {
        let at = if room == 0 {
            NonNull::dangling()
        } else {
            runtime::alloc(bytes::<T>(room), align::<T>(room)).cast()
        };
        Self { at, len: 0, room }
    }

    /// `len` elements, all bytes zero.
    ///
    /// # Panics
    /// As [`OspVec::with_capacity`].
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let mut all = Self::with_capacity(len);
        if !speculate::touch(all.at.as_ptr() as usize, bytes::<T>(len), true) {
            // SAFETY: the room holds `len` elements, and zero bytes are a value of plain data.
            unsafe { all.at.as_ptr().write_bytes(0, len) };
        }
        all.len = len;
        all
    }

    /// `len` elements of any content, none of which is touched: for what is written before it is read. Memory
    /// that held nothing before costs neither a read nor a write when it is first written then.
    ///
    /// # Panics
    /// As [`OspVec::with_capacity`].
    #[must_use]
    pub fn untouched(len: usize) -> Self {
        let mut all = Self::with_capacity(len);
        // Plain data: whatever the region holds, initialised memory of the system's, is a value.
        all.len = len;
        all
    }

    /// A copy of `from`.
    ///
    /// # Panics
    /// As [`OspVec::with_capacity`].
    #[must_use]
    pub fn copy_of(from: &[T]) -> Self {
        let mut all = Self::with_capacity(from.len());
        all.extend_from_slice(from);
        all
    }

    /// Elements that fit before it grows.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.room
    }

    /// Adds an element at the end. Growth doubles the room.
    ///
    /// # Panics
    /// As [`OspVec::with_capacity`].
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len == self.room {
            self.grow(self.len + 1);
        }
        // SAFETY: there is room behind the last element.
        unsafe { self.at.as_ptr().add(self.len).write(value) };
        self.len += 1;
    }

    /// Takes the last element.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let last = self.last().copied()?;
        self.len -= 1;
        Some(last)
    }

    /// Adds copies of `more` at the end.
    ///
    /// # Panics
    /// As [`OspVec::with_capacity`].
    pub fn extend_from_slice(&mut self, more: &[T]) {
        let len = self.len + more.len();
        if len > self.room {
            self.grow(len);
        }
        // SAFETY: there is room for them behind the last element, and a borrowed slice lies elsewhere.
        unsafe { self.at.as_ptr().add(self.len).copy_from_nonoverlapping(more.as_ptr(), more.len()) };
        self.len = len;
    }

    /// `len` elements: the first ones, or these and copies of `value`.
    ///
    /// # Panics
    /// As [`OspVec::with_capacity`].
    pub fn resize(&mut self, len: usize, value: T) {
        if len > self.room {
            self.grow(len);
        }
        for at in self.len..len {
            // SAFETY: there is room for `len` elements.
            unsafe { self.at.as_ptr().add(at).write(value) };
        }
        self.len = len;
    }

    /// The first `len` elements; all of them when there are fewer.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// No elements; the room stays.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        let mut larger = Self::with_capacity(len.max(self.room * 2).max(FIRST));
        larger.extend_from_slice(self);
        *self = larger;
    }
}

/// Bytes of `len` elements.
fn bytes<T: Pod>(len: usize) -> usize {
    len.checked_mul(size_of::<T>()).expect("as many elements as address space has room for")
}

/// A cache line for vectors that fill one, so that wide loads never cross lines.
fn align<T: Pod>(room: usize) -> usize {
    const LINE: usize = 64;
    if bytes::<T>(room) >= LINE { OspVec::<T>::ALIGN.max(LINE) } else { OspVec::<T>::ALIGN }
}

impl<T: Pod> Drop for OspVec<T> {
    fn drop(&mut self) {
        if self.room > 0 {
            // SAFETY: the room came from `alloc`, and nothing borrows from a vector that is dropped.
            unsafe { runtime::free(self.at.cast(), bytes::<T>(self.room)) };
        }
    }
}

impl<T: Pod> Deref for OspVec<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: room for `len` elements, initialised memory of the system's, of which every bit pattern is
        // a value; they are borrowed as the vector is. In the speculative pass the same page may also be
        // another vector's, borrowed to write: reads then give any value, which is all that is asked of them
        // there (see the type).
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl<T: Pod> DerefMut for OspVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and alone, as the vector is borrowed, but for the speculative pass as said
        // there: address, length and room are this struct's own and lie outside the region, so no access
        // leaves the vector.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl<T: Pod> Default for OspVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Pod> Clone for OspVec<T> {
    fn clone(&self) -> Self {
        Self::copy_of(self)
    }
}

/// Its length alone: the elements are labels and shares.
impl<T: Pod> fmt::Debug for OspVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OspVec").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<T: Pod> Extend<T> for OspVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, more: I) {
        more.into_iter().for_each(|value| self.push(value));
    }
}

impl<T: Pod> FromIterator<T> for OspVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let values = values.into_iter();
        let mut all = Self::with_capacity(values.size_hint().0);
        all.extend(values);
        all
    }
}

/// The elements of a vector, by value; the room goes back when it is dropped.
#[derive(Debug)]
pub struct IntoIter<T: Pod> {
    all: OspVec<T>,
    next: usize,
}

impl<T: Pod> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let value = self.all.get(self.next).copied()?;
        self.next += 1;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.all.len - self.next;
        (left, Some(left))
    }
}

impl<T: Pod> ExactSizeIterator for IntoIter<T> {}

impl<T: Pod> IntoIterator for OspVec<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { all: self, next: 0 }
    }
}

impl<'a, T: Pod> IntoIterator for &'a OspVec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Pod> IntoIterator for &'a mut OspVec<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// For stubs: counts as a read of all of `data`. The speculative pass notes its chunks; the others read one
/// byte of every page, in ascending order. Nothing where it is outside the region.
pub fn touch_read<T: Pod>(data: &[T]) {
    let data = bytemuck::cast_slice::<T, u8>(data);
    if !speculate::touch(data.as_ptr() as usize, data.len(), false) && runtime::owns(data.as_ptr()) {
        for at in pages(data.as_ptr() as usize, data.len()) {
            // SAFETY: the byte lies within the slice.
            unsafe { data.as_ptr().add(at).read_volatile() };
        }
    }
}

/// For stubs: counts as a write of all of `data`. The speculative pass notes its chunks; the others write one
/// byte of every page, in ascending order: what was there before. Nothing where it is outside the region.
pub fn touch_write<T: Pod>(data: &mut [T]) {
    let data = bytemuck::cast_slice_mut::<T, u8>(data);
    if speculate::touch(data.as_ptr() as usize, data.len(), true) || !runtime::owns(data.as_ptr()) {
        return;
    }
    for at in pages(data.as_ptr() as usize, data.len()) {
        // SAFETY: the byte lies within the slice, which is borrowed alone.
        unsafe {
            let byte = data.as_mut_ptr().add(at);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// One offset for every page of a range of addresses: its first byte there.
fn pages(at: usize, len: usize) -> impl Iterator<Item = usize> {
    let first = at.next_multiple_of(PAGE) - at;
    (len > 0).then_some(0).into_iter().chain((if first == 0 { PAGE } else { first }..len).step_by(PAGE))
}

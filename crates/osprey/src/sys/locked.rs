//! Memory for keys: in no core dump, in no child, and not in swap where the system allows to lock a page.

use super::map::Mapping;
use std::io;
use std::ops::{Deref, DerefMut};

/// Give a child zeros (Linux 4.14).
const WIPEONFORK: i32 = 18;

/// A value in pages of its own. Dropped, and so wiped if its type does that, when this is.
#[derive(Debug)]
pub(crate) struct Locked<T> {
    mapping: Mapping,
    value: std::marker::PhantomData<T>,
}

impl<T> Locked<T> {
    /// Moves a value there. That it cannot be locked is no error: limits on locked memory are small in many
    /// places.
    ///
    /// # Errors
    /// The system's.
    pub fn new(value: T) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= super::PAGE) };
        let mapping = Mapping::anonymous(None, size_of::<T>().max(1).next_multiple_of(super::PAGE), false)?;
        mapping.advise(0, mapping.len(), libc::MADV_DONTDUMP)?;
        mapping.advise(0, mapping.len(), WIPEONFORK)?;
        // SAFETY: the pages are a mapping of ours, writable, aligned and large enough for the value.
        unsafe {
            libc::mlock(mapping.base().cast(), mapping.len());
            mapping.base().cast::<T>().write(value);
        }
        Ok(Self { mapping, value: std::marker::PhantomData })
    }
}

impl<T> Deref for Locked<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: `new` put a value there; views follow the borrow of `self`.
        unsafe { &*self.mapping.base().cast() }
    }
}

impl<T> DerefMut for Locked<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` keeps others away.
        unsafe { &mut *self.mapping.base().cast() }
    }
}

impl<T> Drop for Locked<T> {
    fn drop(&mut self) {
        // SAFETY: the value is there and is not looked at afterwards.
        unsafe { self.mapping.base().cast::<T>().drop_in_place() };
    }
}

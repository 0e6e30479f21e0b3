//! Data of the region to and from peers and files.
//!
//! In the speculative pass there is no peer and content means nothing: a transfer touches what it would
//! touch, in the same order, and does no I/O. In the other passes the data goes through a small buffer
//! outside the region, so that the region is touched by the program's own code alone: system calls then never
//! fault in it, which user-mode-only userfaultfd could not serve, and no chunk can leave between a touch and
//! the call. The copy runs at memory speed from cache, far above that of the calls. A transfer of the region
//! counts as an event; one of other memory does not, and leaves that memory as it is in the speculative pass.
//!
//! Lengths are part of the program's shape: all bytes are transferred or there is an error.

use crate::runtime;
use crate::vec::{touch_read, touch_write};
use bytemuck::Pod;
use std::io::{self, Read, Write};

/// Bytes that go through at once.
const PIECE: usize = 64 << 10;

/// Sends `data` to a peer.
///
/// # Errors
/// The writer's.
pub fn send<W: Write + ?Sized, T: Pod>(to: &mut W, data: &[T]) -> io::Result<()> {
    let ours = counted(data);
    if runtime::speculating() {
        touch_read(data);
        return Ok(());
    }
    if !ours {
        return to.write_all(bytemuck::cast_slice(data));
    }
    let mut piece = Vec::with_capacity(PIECE);
    for part in bytemuck::cast_slice::<T, u8>(data).chunks(PIECE) {
        piece.clear();
        piece.extend_from_slice(part);
        to.write_all(&piece)?;
    }
    Ok(())
}

/// Fills `data` with what a peer sent.
///
/// # Errors
/// The reader's; `UnexpectedEof` when it ends before `data` is full.
pub fn recv<R: Read + ?Sized, T: Pod>(from: &mut R, data: &mut [T]) -> io::Result<()> {
    let ours = counted(data);
    if runtime::speculating() {
        touch_write(data);
        return Ok(());
    }
    if !ours {
        return from.read_exact(bytemuck::cast_slice_mut(data));
    }
    let mut piece = vec![0; PIECE.min(size_of_val(data))];
    for part in bytemuck::cast_slice_mut::<T, u8>(data).chunks_mut(PIECE) {
        let piece = &mut piece[..part.len()];
        from.read_exact(piece)?;
        part.copy_from_slice(piece);
    }
    Ok(())
}

/// Whether `data` lies in the region: then the transfer is an event.
fn counted<T>(data: &[T]) -> bool {
    let ours = runtime::owns(data.as_ptr().cast());
    if ours {
        runtime::tick();
    }
    ours
}

pub use recv as read;
pub use send as write;

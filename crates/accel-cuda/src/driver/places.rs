//! Streams, and copies between memory of a GPU and that of a transport, which the GPU makes by itself.

use super::{DeviceBuffer, Handle, Module, NON_BLOCKING};
use base::Error;
use kernels::{Place, SharedMemory};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError};

/// `CU_MEMHOSTREGISTER_PORTABLE`: page-locked for every context.
const PORTABLE: c_uint = 1;
/// `CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED`: another device of this process did it.
const ALREADY: c_int = 712;
/// `CU_MEMORYTYPE_HOST` and `.._DEVICE`.
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;

/// A stream of a GPU.
pub(crate) struct Stream {
    pub(super) module: Arc<Module>,
    pub(super) handle: Handle,
}

// SAFETY: a handle of the driver, which any number of threads may use.
unsafe impl Send for Stream {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Stream {}

impl Stream {
    pub(crate) fn new(module: &Arc<Module>) -> Result<Arc<Self>, Error> {
        module.context.enter()?;
        let (runtime, mut handle) = (&module.context.runtime, std::ptr::null_mut());
        // SAFETY: the handle goes to a place of its type.
        let status = unsafe { (runtime.api.stream_create)(&raw mut handle, NON_BLOCKING) };
        runtime.done("making a stream", status)?;
        Ok(Arc::new(Self { module: module.clone(), handle }))
    }

    /// Waits for everything that was queued, in any thread.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        self.module.context.enter()?;
        let runtime = &self.module.context.runtime;
        // SAFETY: the stream exists.
        runtime.done("running kernels", unsafe { (runtime.api.stream_wait)(self.handle) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.module.context.enter().is_ok() {
            // SAFETY: the stream exists and is not used hereafter; the driver ends what is queued first.
            unsafe { (self.module.context.runtime.api.stream_destroy)(self.handle) };
        }
    }
}

/// Memory of a transport that is page-locked, as long as this lives.
struct Registered {
    module: Arc<Module>,
    memory: Arc<SharedMemory>,
    /// Whether it was not page-locked before.
    own: bool,
}

impl Registered {
    fn new(module: &Arc<Module>, memory: &Arc<SharedMemory>) -> Result<Self, Error> {
        module.context.enter()?;
        let (runtime, (start, len)) = (&module.context.runtime, memory.whole());
        // SAFETY: the range is a mapping that is held here until after it was unregistered. The driver keeps
        // its pages where they are and touches none of them.
        let status = unsafe { (runtime.api.host_register)(start.cast(), len, PORTABLE) };
        if status != ALREADY {
            runtime.done("page-locking the memory of a transport", status)?;
        }
        Ok(Self { module: module.clone(), memory: memory.clone(), own: status != ALREADY })
    }
}

impl Drop for Registered {
    /// Errors have nobody to go to: after one of the device all further calls fail.
    fn drop(&mut self) {
        if self.own && self.module.context.enter().is_ok() {
            // SAFETY: it was registered once, and copies that use it hold this value until they are done.
            unsafe { (self.module.context.runtime.api.host_unregister)(self.memory.whole().0.cast()) };
        }
    }
}

/// All memory of transports that a device has met.
#[derive(Default)]
pub(crate) struct Registry(Mutex<Vec<Arc<Registered>>>);

impl Registry {
    fn of(&self, module: &Arc<Module>, memory: &Arc<SharedMemory>) -> Result<Arc<Registered>, Error> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.iter().find(|one| Arc::ptr_eq(&one.memory, memory)) {
            return Ok(found.clone());
        }
        // What nobody else holds is of a transport that has ended.
        all.retain(|one| Arc::strong_count(&one.memory) > 1);
        let made = Arc::new(Registered::new(module, memory)?);
        all.push(made.clone());
        Ok(made)
    }
}

/// Bytes of a buffer on the GPU, from this one on, and as many of a transport's memory.
pub(crate) type Move = (usize, Place);

/// `CUDA_MEMCPY2D`: rows of equal length at equal distances.
#[repr(C)]
pub(super) struct RowCopy {
    from_x: usize,
    from_y: usize,
    from_type: c_uint,
    from_host: *const c_void,
    from_device: u64,
    from_array: Handle,
    from_pitch: usize,
    to_x: usize,
    to_y: usize,
    to_type: c_uint,
    to_host: *mut c_void,
    to_device: u64,
    to_array: Handle,
    to_pitch: usize,
    width: usize,
    height: usize,
}

/// How many moves from the first on are rows of one copy, and the distances of these rows on the GPU and in
/// the transport's memory.
fn rows(moves: &[Move]) -> (usize, [usize; 2]) {
    let bytes = moves[0].1.bytes();
    let address = |place: &Place| place.address() as usize;
    let fits = |a: &Move, b: &Move| Arc::ptr_eq(a.1.memory(), b.1.memory()) && b.1.bytes() == bytes;
    let step = |a: &Move, b: &Move| {
        let host = address(&b.1).checked_sub(address(&a.1)).filter(|&step| step >= bytes)?;
        let device = b.0.checked_sub(a.0).filter(|&step| step >= bytes)?;
        fits(a, b).then_some([device, host])
    };
    let Some(first) = moves.get(1).and_then(|second| step(&moves[0], second)) else {
        return (1, [bytes; 2]);
    };
    let same = moves.windows(2).take_while(|pair| step(&pair[0], &pair[1]) == Some(first)).count();
    (1 + same, first)
}

/// Copies under way on a stream. All that they touch is held until they are done.
pub(crate) struct PlacedCopies {
    stream: Arc<Stream>,
    buffer: Arc<DeviceBuffer>,
    held: Vec<Arc<Registered>>,
    under_way: bool,
}

impl PlacedCopies {
    /// Copies of nothing yet.
    pub(crate) fn new(stream: Arc<Stream>, buffer: Arc<DeviceBuffer>) -> Self {
        Self { stream, buffer, held: Vec::new(), under_way: false }
    }

    /// Queues copies to the transport's memory, or from it, of which there is one for each run of rows.
    pub(crate) fn queue(&mut self, to_host: bool, registry: &Registry, moves: &[Move]) -> Result<(), Error> {
        let module = self.buffer.module.clone();
        module.context.enter()?;
        let mut left = moves;
        while let Some((at, place)) = left.first() {
            let held = registry.of(&module, place.memory())?;
            if !self.held.iter().any(|one| Arc::ptr_eq(one, &held)) {
                self.held.push(held);
            }
            let (count, steps) = rows(left);
            let bytes = place.bytes();
            let on_gpu = self.buffer.byte_address(*at, (count - 1) * steps[0] + bytes);
            self.under_way = true;
            self.rows(to_host, on_gpu, place, [bytes, count], steps)?;
            left = &left[count..];
        }
        Ok(())
    }

    /// One copy of rows, which lie in the buffer and in the memory of `place` as the caller made sure.
    fn rows(
        &self,
        to_host: bool,
        device: u64,
        place: &Place,
        [width, height]: [usize; 2],
        [device_step, host_step]: [usize; 2],
    ) -> Result<(), Error> {
        let host: *mut c_void = place.address().cast();
        let null = std::ptr::null_mut();
        let job = RowCopy {
            from_x: 0,
            from_y: 0,
            from_type: if to_host { DEVICE } else { HOST },
            from_host: if to_host { null } else { host },
            from_device: if to_host { device } else { 0 },
            from_array: null,
            from_pitch: if to_host { device_step } else { host_step },
            to_x: 0,
            to_y: 0,
            to_type: if to_host { HOST } else { DEVICE },
            to_host: if to_host { host } else { null },
            to_device: if to_host { 0 } else { device },
            to_array: null,
            to_pitch: if to_host { host_step } else { device_step },
            width,
            height,
        };
        let runtime = &self.stream.module.context.runtime;
        // SAFETY: the driver reads the job before it returns. The rows on the GPU lie in the buffer, as its
        // address was asked for all of them; those of the host are places of one mapping in ascending order,
        // each checked when it was made. This value holds both until the stream has been waited for. The
        // host's bytes may change meanwhile, as the memory is shared: whatever is copied is bytes.
        let status = unsafe { (runtime.api.copy_rows)(&raw const job, self.stream.handle) };
        runtime.done("copying messages", status)
    }
}

impl PlacedCopies {
    /// Waits for them.
    pub(crate) fn wait(mut self) -> Result<(), Error> {
        self.under_way = false;
        self.stream.wait()
    }
}

impl Drop for PlacedCopies {
    fn drop(&mut self) {
        if self.under_way {
            let _ = self.stream.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_at_equal_distances_are_one_copy() {
        let memory = Arc::new(SharedMemory::own(1000).unwrap());
        let at = |device, host, bytes| (device, memory.place(host, bytes));
        let moves = [at(0, 32, 64), at(64, 160, 64), at(128, 288, 64), at(192, 400, 64), at(256, 500, 10)];
        assert_eq!(rows(&moves), (3, [64, 128]));
        assert_eq!(rows(&moves[3..]), (1, [64; 2]), "another length");
        assert_eq!(rows(&moves[4..]), (1, [10; 2]));
        let back = [at(0, 500, 64), at(64, 0, 64)];
        assert_eq!(rows(&back).0, 1, "the ring begins again");
    }
}

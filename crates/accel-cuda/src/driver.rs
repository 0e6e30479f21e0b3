//! The CUDA driver and NVRTC, loaded at run time, and what this crate needs of them. All `unsafe` of the
//! crate is here.
//!
//! A [`Lane`] is a stream with a buffer on either side. Its methods keep the two promises that the driver
//! asks for: a host buffer is not touched while a copy may be under way, and copies and kernels get addresses
//! within the buffers.
#![expect(unsafe_code, reason = "calls into libraries of the vendor, with the argument at each")]

mod places;

pub(crate) use places::{Move, PlacedCopies, Registry, Stream};

use crate::Gpu;
use crate::jobs::{Kernel, KernelArgs};
use base::{At, Error, Fault};
use kernels::Block;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use zeroize::Zeroize;

const SOURCE: &str = include_str!("kernels.cu");
/// Threads of a block: small, so that kernels with many registers still fill a multiprocessor evenly.
const BLOCK_THREADS: u64 = 128;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `.._MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];
/// `CU_STREAM_NON_BLOCKING`: streams that do not wait for the default one.
const NON_BLOCKING: c_uint = 1;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
const NO_MEMORY: c_int = 2;
/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: c_int = 100;

const DRIVER_NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
pub(crate) const NVRTC_NAMES: [&str; 4] =
    ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];
const NO_DRIVER: &str = "no CUDA driver; install the driver of the NVIDIA GPU (on Debian: nvidia-driver, \
                         libcuda1), or choose the device cpu";
const NO_NVRTC: &str = "no NVRTC, which compiles the kernels at run time; install the CUDA toolkit or its \
                        NVRTC package (on Debian: libnvrtc12) and, where it is not on the loader's path, \
                        name its folder in LD_LIBRARY_PATH, or choose the device cpu";

fn failed(text: impl Into<String>) -> Error {
    Error::new(At::default(), Fault::Io(text.into()))
}

/// A shared library. It stays loaded: functions of it are in use as long as the process lives.
struct Library(*mut c_void);

impl Library {
    /// The first of these that loads.
    fn open(names: &[String], missing: &str) -> Result<Self, Error> {
        let mut reason = String::new();
        for name in names {
            let path =
                CString::new(name.as_str()).map_err(|_| Error::misuse("a library's name has a zero"))?;
            // SAFETY: the name is a C string. Initialisers of the library run; it is the vendor's, or the
            // test's.
            let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !handle.is_null() {
                return Ok(Self(handle));
            }
            // SAFETY: after a failure dlerror gives null or a C string that lives until the thread's next
            // call.
            let text = unsafe { libc::dlerror() };
            if reason.is_empty() && !text.is_null() {
                // SAFETY: as above; it is copied before any other call.
                reason = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
            }
        }
        Err(Error::input(format!("{missing} ({reason})")))
    }

    fn symbol(&self, name: &CStr) -> Result<*mut c_void, Error> {
        // SAFETY: the handle is of a library that stays loaded, the name a C string.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        let missing = || {
            let name = name.to_string_lossy();
            Error::input(format!(
                "the CUDA libraries are too old: they lack {name}; install version 12 or newer"
            ))
        };
        if symbol.is_null() { Err(missing()) } else { Ok(symbol) }
    }
}

/// A table of functions of a library, all of which give a status.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($field:ident = $symbol:literal($($argument:ty),*);)* }) => {
        $(#[$doc])*
        struct $table { $($field: unsafe extern "C" fn($($argument),*) -> c_int,)* }
        impl $table {
            fn load(library: &Library) -> Result<Self, Error> {
                $(
                    let symbol = library.symbol($symbol)?;
                    // SAFETY: the header of the library declares the function of this name with these
                    // arguments, and the suffix of the name states the version of the declaration where there
                    // are several.
                    let $field = unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(
                            symbol,
                        )
                    };
                )*
                Ok(Self { $($field,)* })
            }
        }
    };
}

type Handle = *mut c_void;

functions! {
    /// The driver.
    Api {
        init = c"cuInit"(c_uint);
        error_string = c"cuGetErrorString"(c_int, *mut *const c_char);
        device_count = c"cuDeviceGetCount"(*mut c_int);
        device_get = c"cuDeviceGet"(*mut c_int, c_int);
        device_name = c"cuDeviceGetName"(*mut c_char, c_int, c_int);
        device_memory = c"cuDeviceTotalMem_v2"(*mut usize, c_int);
        device_attribute = c"cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
        context_retain = c"cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
        context_release = c"cuDevicePrimaryCtxRelease_v2"(c_int);
        context_set = c"cuCtxSetCurrent"(Handle);
        module_load = c"cuModuleLoadData"(*mut Handle, *const c_void);
        module_unload = c"cuModuleUnload"(Handle);
        module_function = c"cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
        alloc = c"cuMemAlloc_v2"(*mut u64, usize);
        free = c"cuMemFree_v2"(u64);
        memory_info = c"cuMemGetInfo_v2"(*mut usize, *mut usize);
        alloc_host = c"cuMemAllocHost_v2"(*mut *mut c_void, usize);
        free_host = c"cuMemFreeHost"(*mut c_void);
        stream_create = c"cuStreamCreate"(*mut Handle, c_uint);
        stream_destroy = c"cuStreamDestroy_v2"(Handle);
        stream_wait = c"cuStreamSynchronize"(Handle);
        host_register = c"cuMemHostRegister_v2"(*mut c_void, usize, c_uint);
        host_unregister = c"cuMemHostUnregister"(*mut c_void);
        copy_rows = c"cuMemcpy2DAsync_v2"(*const places::RowCopy, Handle);
        copy_in = c"cuMemcpyHtoDAsync_v2"(u64, *const c_void, usize, Handle);
        copy_out = c"cuMemcpyDtoHAsync_v2"(*mut c_void, u64, usize, Handle);
        set = c"cuMemsetD8Async"(u64, u8, usize, Handle);
        set_now = c"cuMemsetD8_v2"(u64, u8, usize);
        launch = c"cuLaunchKernel"(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
            *mut *mut c_void, *mut *mut c_void
        );
    }
}

functions! {
    /// The compiler.
    Compiler {
        create = c"nvrtcCreateProgram"(
            *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
        );
        compile = c"nvrtcCompileProgram"(Handle, c_int, *const *const c_char);
        log_size = c"nvrtcGetProgramLogSize"(Handle, *mut usize);
        log = c"nvrtcGetProgramLog"(Handle, *mut c_char);
        image_size = c"nvrtcGetCUBINSize"(Handle, *mut usize);
        image = c"nvrtcGetCUBIN"(Handle, *mut c_char);
        destroy = c"nvrtcDestroyProgram"(*mut Handle);
    }
}

impl Compiler {
    /// A text or image that the compiler tells the size of.
    fn read(
        program: Handle,
        size: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
        content: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
    ) -> Vec<u8> {
        let mut bytes = 0;
        // SAFETY: the program exists; the size is written to a place of its type.
        if unsafe { size(program, &raw mut bytes) } != 0 {
            return Vec::new();
        }
        let mut out = vec![0u8; bytes];
        // SAFETY: the buffer has the size that was asked for.
        if unsafe { content(program, out.as_mut_ptr().cast()) } != 0 {
            return Vec::new();
        }
        out
    }

    /// The kernels for GPUs of a compute capability.
    fn build(&self, source: &str, capability: [u32; 2]) -> Result<Vec<u8>, Error> {
        let [major, minor] = capability;
        let source = CString::new(source).map_err(|_| Error::misuse("the kernels have a zero"))?;
        let options = [format!("--gpu-architecture=sm_{major}{minor}"), "--std=c++17".to_owned()]
            .map(|option| CString::new(option).expect("options have no zero"));
        let options = options.each_ref().map(|option| option.as_ptr());
        let mut program = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: source and name are C strings, no headers are passed, the handle goes to a place of its
        // type.
        let made = unsafe {
            (self.create)(&raw mut program, source.as_ptr(), c"kernels.cu".as_ptr(), 0, none, none)
        };
        if made != 0 {
            return Err(failed(format!("NVRTC cannot start a compilation (status {made})")));
        }
        // SAFETY: the program exists and the options are as many C strings as stated.
        let status = unsafe { (self.compile)(program, options.len() as c_int, options.as_ptr()) };
        let log = Self::read(program, self.log_size, self.log);
        let image = if status == 0 { Self::read(program, self.image_size, self.image) } else { Vec::new() };
        // SAFETY: the program exists and is not used hereafter.
        unsafe { (self.destroy)(&raw mut program) };
        if image.is_empty() {
            let log = String::from_utf8_lossy(&log).trim_end_matches(['\0', '\n']).to_owned();
            return Err(failed(format!(
                "NVRTC cannot compile the kernels for compute capability {major}.{minor} (status {status}); \
                 a GPU newer than the toolkit needs a newer NVRTC: {log}"
            )));
        }
        Ok(image)
    }
}

/// The libraries, and the kernels once they are compiled.
pub(crate) struct Runtime {
    api: Api,
    compilers: Vec<String>,
    images: Mutex<BTreeMap<[u32; 2], Arc<Vec<u8>>>>,
}

impl Runtime {
    /// The libraries of this system, loaded once.
    pub(crate) fn system() -> Result<Arc<Self>, Error> {
        static SYSTEM: OnceLock<Result<Arc<Runtime>, Error>> = OnceLock::new();
        SYSTEM.get_or_init(|| Self::load(&DRIVER_NAMES, &NVRTC_NAMES)).clone()
    }

    /// The driver under the first of its names that loads; NVRTC is loaded when it is needed.
    pub(crate) fn load(driver: &[&str], compilers: &[&str]) -> Result<Arc<Self>, Error> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let api = Api::load(&Library::open(&owned(driver), NO_DRIVER)?)?;
        // SAFETY: the function takes flags, of which there are none.
        let status = unsafe { (api.init)(0) };
        if status == NO_DEVICE {
            return Err(Error::input("the CUDA driver finds no GPU; choose the device cpu"));
        }
        let runtime = Self { api, compilers: owned(compilers), images: Mutex::default() };
        runtime.done("starting the driver", status)?;
        Ok(Arc::new(runtime))
    }

    /// An error, unless the status is that of success.
    fn done(&self, what: &str, status: c_int) -> Result<(), Error> {
        if status == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: the text goes to a place of its type; it is static or left null.
        unsafe { (self.api.error_string)(status, &raw mut text) };
        let text = if text.is_null() {
            "unknown".into()
        } else {
            // SAFETY: the driver gives a C string that is never freed.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        };
        Err(failed(format!("the GPU failed at {what}: {text} (CUDA error {status})")))
    }

    /// The GPUs of this machine.
    pub(crate) fn gpus(&self) -> Result<Vec<Gpu>, Error> {
        let mut count = 0;
        // SAFETY: the number goes to a place of its type.
        self.done("counting devices", unsafe { (self.api.device_count)(&raw mut count) })?;
        (0..count).map(|index| self.gpu(index)).collect()
    }

    fn gpu(&self, index: c_int) -> Result<Gpu, Error> {
        let what = "asking about a device";
        let (mut device, mut memory_bytes, mut name) = (0, 0, [0u8; 128]);
        // SAFETY: the handle goes to a place of its type.
        self.done(what, unsafe { (self.api.device_get)(&raw mut device, index) })?;
        // SAFETY: the driver writes at most as many bytes as stated.
        let named =
            unsafe { (self.api.device_name)(name.as_mut_ptr().cast(), name.len() as c_int - 1, device) };
        self.done(what, named)?;
        // SAFETY: the number goes to a place of its type.
        self.done(what, unsafe { (self.api.device_memory)(&raw mut memory_bytes, device) })?;
        let mut capability = [0; 2];
        for (value, attribute) in capability.iter_mut().zip(CAPABILITY) {
            let mut read = 0;
            // SAFETY: the number goes to a place of its type.
            self.done(what, unsafe { (self.api.device_attribute)(&raw mut read, attribute, device) })?;
            *value = read.unsigned_abs();
        }
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned();
        Ok(Gpu { index: index as usize, name, memory_bytes: memory_bytes as u64, capability })
    }

    /// The compiled kernels; compiled once per kind of GPU.
    pub(crate) fn image(&self, capability: [u32; 2]) -> Result<Arc<Vec<u8>>, Error> {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = images.get(&capability) {
            return Ok(image.clone());
        }
        let compiler = Compiler::load(&Library::open(&self.compilers, NO_NVRTC)?)?;
        let image = Arc::new(compiler.build(SOURCE, capability)?);
        images.insert(capability, image.clone());
        Ok(image)
    }
}

/// The primary context of a GPU, shared with whoever else uses the GPU in this process.
struct Context {
    runtime: Arc<Runtime>,
    device: c_int,
    handle: Handle,
}

// SAFETY: a context is a handle of the driver, which may be made current in any number of threads.
unsafe impl Send for Context {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Context {}

impl Context {
    fn new(runtime: Arc<Runtime>, index: usize) -> Result<Self, Error> {
        let (mut device, mut handle) = (0, std::ptr::null_mut());
        let index = c_int::try_from(index).map_err(|_| Error::input("there are not that many GPUs"))?;
        // SAFETY: the handle goes to a place of its type.
        runtime.done("opening the device", unsafe { (runtime.api.device_get)(&raw mut device, index) })?;
        // SAFETY: as above; the context is released on drop.
        let status = unsafe { (runtime.api.context_retain)(&raw mut handle, device) };
        runtime.done("opening the device", status)?;
        Ok(Self { runtime, device, handle })
    }

    /// Makes it the one that calls of this thread refer to.
    fn enter(&self) -> Result<(), Error> {
        // SAFETY: the context lives as long as `self`.
        self.runtime.done("entering the context", unsafe { (self.runtime.api.context_set)(self.handle) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and all that was made in it is gone: they hold it.
        unsafe { (self.runtime.api.context_release)(self.device) };
    }
}

/// The kernels, loaded on a GPU, and what is taken of its memory for them.
pub(crate) struct Module {
    gpu: Gpu,
    /// Bytes of buffers there, at most and now.
    most: usize,
    used: AtomicUsize,
    /// Whether a buffer was refused for want of memory, until somebody asks.
    full: AtomicBool,
    context: Context,
    handle: Handle,
    kernels: [Handle; Kernel::NAMES.len()],
}

// SAFETY: handles of the driver, which may be used by any number of threads.
unsafe impl Send for Module {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Module {}

impl Module {
    /// The kernels for this GPU, with so many bytes of its memory at most.
    pub(crate) fn load(runtime: Arc<Runtime>, gpu: &Gpu, most: usize) -> Result<Arc<Self>, Error> {
        let image = runtime.image(gpu.capability)?;
        let context = Context::new(runtime, gpu.index)?;
        context.enter()?;
        let (runtime, mut handle) = (&context.runtime, std::ptr::null_mut());
        // SAFETY: the image is what NVRTC made, complete; the handle goes to a place of its type.
        let loaded = unsafe { (runtime.api.module_load)(&raw mut handle, image.as_ptr().cast()) };
        runtime.done("loading the kernels", loaded)?;
        let (used, full) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (gpu, kernels) = (gpu.clone(), [std::ptr::null_mut(); _]);
        let mut module = Self { gpu, most, used, full, context, handle, kernels };
        for (kernel, name) in module.kernels.iter_mut().zip(Kernel::NAMES) {
            let runtime = &module.context.runtime;
            // SAFETY: the module is loaded, the name a C string, the handle goes to a place of its type.
            let found = unsafe { (runtime.api.module_function)(kernel, handle, name.as_ptr()) };
            runtime.done("finding a kernel", found)?;
        }
        Ok(Arc::new(module))
    }

    /// Bytes of its memory that buffers take at most.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Bytes of the GPU's memory that nobody has taken, and all of them.
    pub(crate) fn memory(&self) -> Result<[usize; 2], Error> {
        self.context.enter()?;
        let (runtime, [mut free, mut all]) = (&self.context.runtime, [0; 2]);
        // SAFETY: both numbers go to places of their type.
        let status = unsafe { (runtime.api.memory_info)(&raw mut free, &raw mut all) };
        runtime.done("asking how much memory is free", status)?;
        Ok([free, all])
    }

    /// Whether a buffer was refused for want of memory since it was asked.
    pub(crate) fn was_full(&self) -> bool {
        self.full.swap(false, SeqCst)
    }

    /// Books a buffer of so many bytes.
    fn take(&self, bytes: usize) -> Result<(), Error> {
        let more = |used: usize| used.checked_add(bytes).filter(|all| *all <= self.most);
        match self.used.fetch_update(SeqCst, SeqCst, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.no_room(bytes)),
        }
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, SeqCst);
    }

    fn no_room(&self, bytes: usize) -> Error {
        self.full.store(true, SeqCst);
        let mib = |bytes: usize| bytes.div_ceil(1 << 20);
        let Gpu { index, name, memory_bytes, .. } = &self.gpu;
        let may = match self.most {
            usize::MAX => String::new(),
            most => format!(", and may have {} MiB", mib(most)),
        };
        failed(format!(
            "the memory of cuda:{index} ({name}, {} MiB) is full: {} MiB more were wanted, this computation \
             has {} MiB{may}; compute fewer ranges of rows at once, choose another card, or the device cpu",
            mib(*memory_bytes as usize),
            mib(bytes),
            mib(self.used.load(SeqCst)),
        ))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: no lane that could launch its kernels is left: lanes hold the module.
            unsafe { (self.context.runtime.api.module_unload)(self.handle) };
        }
    }
}

/// A stream, a pinned buffer on the host and one on the GPU. Both buffers are wiped on drop.
pub(crate) struct Lane {
    module: Arc<Module>,
    stream: Arc<Stream>,
    host: *mut Block,
    host_blocks: usize,
    device: Arc<DeviceBuffer>,
    /// Whether anything was queued since the stream was last waited for.
    busy: bool,
}

// SAFETY: the buffers and the stream are the lane's own, and the driver's calls may come from any thread that
// entered the context.
unsafe impl Send for Lane {}

const fn bytes(blocks: usize) -> usize {
    blocks * Block::BYTES
}

impl Lane {
    /// Buffers of so many blocks, at least one each. What is in the device's is undefined, the host's is
    /// zero.
    pub(crate) fn new(module: &Arc<Module>, host_blocks: usize, device_blocks: usize) -> Result<Self, Error> {
        let (stream, device) = (Stream::new(module)?, Arc::new(DeviceBuffer::new(module, device_blocks)?));
        let (module, host) = (module.clone(), std::ptr::null_mut());
        let mut lane = Self { module, stream, host, host_blocks, device, busy: false };
        let mut memory = std::ptr::null_mut();
        // SAFETY: the address goes to a place of its type; drop gives back what was made, which has this
        // length.
        unsafe {
            let status = (lane.api().alloc_host)(&raw mut memory, bytes(host_blocks));
            lane.done("allocating pinned memory", status)?;
            lane.host = memory.cast();
            lane.host.write_bytes(0, host_blocks);
        }
        Ok(lane)
    }

    /// Its stream and its buffer on the GPU, for copies that somebody else makes.
    pub(crate) fn parts(&self) -> (&Arc<Stream>, &Arc<DeviceBuffer>) {
        (&self.stream, &self.device)
    }

    /// What its kernels are.
    pub(crate) fn module(&self) -> &Arc<Module> {
        &self.module
    }

    fn api(&self) -> &Api {
        &self.module.context.runtime.api
    }

    fn done(&self, what: &str, status: c_int) -> Result<(), Error> {
        self.module.context.runtime.done(what, status)
    }

    /// To be called before anything else by every thread that the lane has come to.
    pub(crate) fn enter(&self) -> Result<(), Error> {
        self.module.context.enter()
    }

    /// Waits for everything that was queued.
    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        if self.busy {
            self.stream.wait()?;
            self.busy = false;
        }
        Ok(())
    }

    /// The buffer on the host, once nothing that was queued can touch it.
    pub(crate) fn host(&mut self) -> Result<&mut [Block], Error> {
        self.wait()?;
        // SAFETY: the buffer has this length, was written, and belongs to the lane; nothing else can access
        // it after the wait, and nothing is queued while the slice lives: that takes the lane mutably.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.host, self.host_blocks) })
    }

    /// The address of a range of the buffer on the GPU.
    ///
    /// # Panics
    /// When it is not within the buffer.
    pub(crate) fn address(&self, from: usize, blocks: usize) -> u64 {
        self.device.address(from, blocks)
    }

    fn host_range(&self, from: usize, blocks: usize) -> *mut Block {
        assert!(
            from.checked_add(blocks).is_some_and(|end| end <= self.host_blocks),
            "a range of the host's buffer"
        );
        // SAFETY: within the buffer, as asserted.
        unsafe { self.host.add(from) }
    }

    /// Queues a copy to the GPU.
    pub(crate) fn upload(&mut self, from: usize, to: usize, blocks: usize) -> Result<(), Error> {
        self.copy_in(from, self.address(to, blocks), blocks)
    }

    /// Queues a copy from the GPU.
    pub(crate) fn download(&mut self, from: usize, to: usize, blocks: usize) -> Result<(), Error> {
        self.copy_out(self.address(from, blocks), to, blocks)
    }

    /// Queues a copy to memory that stays.
    pub(crate) fn upload_to(
        &mut self,
        from: usize,
        to: &DeviceBuffer,
        at: usize,
        blocks: usize,
    ) -> Result<(), Error> {
        self.copy_in(from, to.address(at, blocks), blocks)
    }

    /// Queues a copy from memory that stays.
    pub(crate) fn download_from(
        &mut self,
        from: &DeviceBuffer,
        at: usize,
        to: usize,
        blocks: usize,
    ) -> Result<(), Error> {
        self.copy_out(from.address(at, blocks), to, blocks)
    }

    /// Queues a copy to a range of device memory that a buffer gave the address of.
    fn copy_in(&mut self, from: usize, target: u64, blocks: usize) -> Result<(), Error> {
        let source = self.host_range(from, blocks);
        self.busy = true;
        // SAFETY: both ranges are within their buffers, and the host's is not touched before the next wait.
        let status =
            unsafe { (self.api().copy_in)(target, source.cast(), bytes(blocks), self.stream.handle) };
        self.done("copying to the GPU", status)
    }

    /// Queues a copy from such a range.
    fn copy_out(&mut self, source: u64, to: usize, blocks: usize) -> Result<(), Error> {
        let target = self.host_range(to, blocks);
        self.busy = true;
        // SAFETY: both ranges are within their buffers, and the host's is not touched before the next wait.
        let status =
            unsafe { (self.api().copy_out)(target.cast(), source, bytes(blocks), self.stream.handle) };
        self.done("copying from the GPU", status)
    }

    /// Queues the wiping of a range on the GPU.
    pub(crate) fn wipe(&mut self, from: usize, blocks: usize) -> Result<(), Error> {
        let target = self.address(from, blocks);
        self.busy = true;
        // SAFETY: the range is within the buffer.
        let status = unsafe { (self.api().set)(target, 0, bytes(blocks), self.stream.handle) };
        self.done("wiping device memory", status)
    }

    /// Queues a kernel of at least so many threads, none if none. Its addresses are those of
    /// [`Lane::address`] and [`DeviceBuffer::address`].
    pub(crate) fn launch<J: KernelArgs>(&mut self, mut job: J, threads: u64) -> Result<(), Error> {
        if threads == 0 {
            return Ok(());
        }
        let blocks = c_uint::try_from(threads.div_ceil(BLOCK_THREADS))
            .map_err(|_| Error::misuse("too many threads for one kernel"))?;
        let kernel = self.module.kernels[J::KERNEL as usize];
        let mut arguments = [(&raw mut job).cast::<c_void>()];
        self.busy = true;
        // SAFETY: the kernel takes one argument, the structure that `J` mirrors, which the driver copies
        // before it returns. Kernels touch device memory alone, at addresses from `address`, with the lengths
        // in the job.
        let status = unsafe {
            let extra = std::ptr::null_mut();
            let (grid, threads) = (blocks, BLOCK_THREADS as c_uint);
            (self.api().launch)(
                kernel,
                grid,
                1,
                1,
                threads,
                1,
                1,
                0,
                self.stream.handle,
                arguments.as_mut_ptr(),
                extra,
            )
        };
        self.done("launching a kernel", status)
    }
}

impl Drop for Lane {
    /// Errors have nobody to go to: after one of the device all further calls fail, and its memory is cleared
    /// by the driver when the process ends.
    fn drop(&mut self) {
        if self.enter().is_err() {
            return;
        }
        let api = &self.module.context.runtime.api;
        // SAFETY: the host's buffer is freed after the stream has finished, once, and not used hereafter.
        unsafe {
            (api.stream_wait)(self.stream.handle);
            if !self.host.is_null() {
                let host = std::slice::from_raw_parts_mut(self.host, self.host_blocks);
                host.iter_mut().for_each(Zeroize::zeroize);
                (api.free_host)(self.host.cast());
            }
        }
    }
}

/// Memory of a GPU that stays between commands. Wiped on drop.
pub(crate) struct DeviceBuffer {
    module: Arc<Module>,
    address: u64,
    blocks: usize,
}

impl DeviceBuffer {
    /// So many blocks, at least one, of undefined content.
    pub(crate) fn new(module: &Arc<Module>, blocks: usize) -> Result<Self, Error> {
        let (blocks, mut address) = (blocks.max(1), 0);
        module.context.enter()?;
        module.take(bytes(blocks))?;
        // SAFETY: the address goes to a place of its type.
        let status = unsafe { (module.context.runtime.api.alloc)(&raw mut address, bytes(blocks)) };
        let done = match status {
            NO_MEMORY => Err(module.no_room(bytes(blocks))),
            status => module.context.runtime.done("allocating device memory", status),
        };
        done.inspect_err(|_| module.give_back(bytes(blocks)))?;
        Ok(Self { module: module.clone(), address, blocks })
    }

    /// How many blocks there are.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// The address of a range.
    ///
    /// # Panics
    /// When it is not within the memory.
    pub(crate) fn address(&self, from: usize, blocks: usize) -> u64 {
        let within = from.checked_add(blocks).is_some_and(|end| end <= self.blocks);
        assert!(within, "a range of memory on the GPU");
        self.address + bytes(from) as u64
    }

    /// As [`DeviceBuffer::address`], of bytes.
    fn byte_address(&self, from: usize, count: usize) -> u64 {
        let within = from.checked_add(count).is_some_and(|end| end <= bytes(self.blocks));
        assert!(within, "bytes of memory on the GPU");
        self.address + from as u64
    }
}

impl Drop for DeviceBuffer {
    /// Errors have nobody to go to, as those of [`Lane`].
    fn drop(&mut self) {
        if self.module.context.enter().is_err() {
            return;
        }
        let api = &self.module.context.runtime.api;
        // SAFETY: the memory is this buffer's and given back once; giving it back waits for what uses it.
        unsafe {
            (api.set_now)(self.address, 0, bytes(self.blocks));
            (api.free)(self.address);
        }
        self.module.give_back(bytes(self.blocks));
    }
}

/// How often the emulator was given memory back, how often something was left in it, and how many ranges of
/// the host's memory are page-locked.
#[cfg(test)]
pub(crate) fn emulator_counts(library: &str) -> [u64; 3] {
    let library = Library::open(&[library.to_owned()], "no emulator").unwrap();
    [c"emulator_frees", c"emulator_unwiped", c"emulator_locked"].map(|name| {
        let symbol = library.symbol(name).unwrap();
        // SAFETY: `emulator/driver.cpp` defines all without arguments, giving 64 bits.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u64>(symbol)() }
    })
}

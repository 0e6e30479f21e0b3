//! Arguments of the kernels, as `kernels.cu` declares them: every field has 8 bytes, addresses are those of
//! the GPU.

/// The kernels, in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Expand,
    Linear,
    Cross,
    Seal,
    Fold,
    Digest,
}

impl Kernel {
    /// All kernels by the names that they are exported under.
    pub(crate) const NAMES: [&'static std::ffi::CStr; 6] =
        [c"expand", c"linear", c"cross", c"seal", c"fold", c"digest"];
}

/// The arguments of a kernel.
pub(crate) trait KernelArgs: Copy {
    /// Whose arguments.
    const KERNEL: Kernel;
}

macro_rules! jobs {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $of:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub(crate) struct $name { $(pub(crate) $field: $of,)* }
            impl KernelArgs for $name {
                const KERNEL: Kernel = Kernel::$name;
            }
        )*
    };
}

/// A stream under the key of a part.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct KeyStream {
    pub(crate) prefix: u64,
    pub(crate) part: u64,
}

/// Parts of two factors: term t of block i lies at `t stride + i`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Factors {
    pub(crate) x: [u64; 3],
    pub(crate) y: [u64; 3],
    pub(crate) stride: u64,
}

jobs! {
    /// Round keys of three stream keys, powers of three tag elements.
    Expand { raw: u64, keys: u64 }
    /// Sums or differences.
    Linear { ring: u64, negative: u64, blocks: u64, x: u64, y: u64, z: u64 }
    /// Local products, summed over the terms of a slice.
    Cross {
        ring: u64, blocks: u64, terms: u64, slices: u64, goes_on: u64, factors: Factors,
        a: u64, b: u64, c: u64,
    }
    /// The rest of stage 1. The streams: own A, A vouched for, A as the fourth, C, C as the fourth, and those
    /// that hide own A, the A vouched for, and C.
    Seal {
        ring: u64, blocks: u64, slices: u64, first: u64, sends: u64, receives: u64, masked: u64, vouches: u64,
        streams: [KeyStream; 8], keys: u64, a: u64, b: u64, c: u64, z: [u64; 3],
    }
    /// Stage 2.
    Fold {
        ring: u64, blocks: u64, first: u64, receives: u64, masked: u64,
        wire_a: KeyStream, wire_c: KeyStream, keys: u64, a: u64, c: u64, z1: u64, z2: u64,
    }
    /// A level of a tree of digests.
    Digest { blocks: u64, log: u64, part: u64, keys: u64, x: u64, y: u64 }
}

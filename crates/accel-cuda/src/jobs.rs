//! Arguments of the kernels, as `kernels.cu` declares them: every field has 8 bytes, addresses are those of
//! the GPU.

/// The kernels, in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Expand,
    Combine,
    Cross,
    Seal,
    SealStreams,
    SealDrawn,
    Fold,
    Digest,
    Draw,
    Local,
    Shift,
    ToPlanes,
    ToElements,
}

impl Kernel {
    /// All kernels by the names that they are exported under.
    pub(crate) const NAMES: [&'static std::ffi::CStr; 13] = [
        c"expand",
        c"combine",
        c"cross",
        c"seal",
        c"seal_streams",
        c"seal_drawn",
        c"fold",
        c"digest",
        c"draw",
        c"local",
        c"shift",
        c"to_planes",
        c"to_elements",
    ];
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

/// A run of blocks, and how far it is to that of the next part.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct RunPlace {
    pub(crate) at: u64,
    pub(crate) part: u64,
}

/// What is added, and how often.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct CombineTerm {
    pub(crate) x: RunPlace,
    pub(crate) factor: [u64; 2],
}

/// Both halves of a block.
pub(crate) fn halves(block: kernels::Block) -> [u64; 2] {
    [block.0 as u64, (block.0 >> 64) as u64]
}

impl Combine {
    /// `z = x + y`, or `x - y`, of blocks in one part.
    pub(crate) fn sum(ring: accel::VectorRing, negative: bool, blocks: u64, [x, y, z]: [u64; 3]) -> Self {
        let place = |at| RunPlace { at, part: 0 };
        let mut of = [CombineTerm::default(); accel::STEP_TERMS];
        for (term, (x, by)) in of.iter_mut().zip([(x, 1), (y, if negative { u128::MAX } else { 1 })]) {
            *term = CombineTerm { x: place(x), factor: halves(accel::splat(ring, by)) };
        }
        let (ring, z) = (crate::device::ring_number(ring), place(z));
        Self { ring, parts: 1, blocks, terms: 2, at: 0, constant: [0; 2], z, of }
    }
}

/// The streams of a `Seal`, each drawn by threads of its own: for chunks that are too short to fill a GPU.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct SealStreams(pub(crate) Seal);

impl KernelArgs for SealStreams {
    const KERNEL: Kernel = Kernel::SealStreams;
}

/// The same stage, with streams that were drawn.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct SealDrawn(pub(crate) Seal);

impl KernelArgs for SealDrawn {
    const KERNEL: Kernel = Kernel::SealDrawn;
}

jobs! {
    /// Round keys of three stream keys, powers of three tag elements.
    Expand { raw: u64, keys: u64 }
    /// Sums of multiples, and of a constant in one of the parts.
    Combine {
        ring: u64, parts: u64, blocks: u64, terms: u64, at: u64, constant: [u64; 2], z: RunPlace,
        of: [CombineTerm; accel::STEP_TERMS],
    }
    /// Local products, summed over the terms of a slice.
    Cross {
        ring: u64, blocks: u64, terms: u64, slices: u64, goes_on: u64, factors: Factors,
        a: u64, b: u64, c: u64,
    }
    /// The rest of stage 1. The streams: own A, A vouched for, A as the fourth, C, C as the fourth, and those
    /// that hide own A, the A vouched for, and C. From block `middle` on the second of what is there twice
    /// holds; `second` are the streams of C and what hides it. `drawn` is room for all streams, or nothing.
    Seal {
        ring: u64, blocks: u64, slices: u64, first: u64, middle: u64, sends: [u64; 2], receives: [u64; 2],
        masked: u64, vouches: u64, streams: [KeyStream; 8], second: [KeyStream; 2], keys: u64, drawn: u64,
        a: u64, b: u64, c: u64, z: [u64; 3],
    }
    /// Stage 2, with halves as above.
    Fold {
        ring: u64, blocks: u64, first: u64, middle: u64, receives: [u64; 2], masked: u64,
        wire_a: KeyStream, wire_c: KeyStream, keys: u64, a: u64, c: u64, z1: u64, z2: u64,
    }
    /// A level of a tree of digests, of each piece of so many blocks.
    Digest { blocks: u64, piece: u64, log: u64, part: u64, keys: u64, x: u64, y: u64 }
    /// A stream, added to something or subtracted.
    Draw { ring: u64, blocks: u64, first: u64, negative: u64, stream: KeyStream, keys: u64, x: u64, z: u64 }
    /// Sums of products of parts.
    Local { ring: u64, blocks: u64, terms: u64, z: u64, of: [[u64; 2]; accel::STEP_TERMS] }
    /// Bits of every element, from one on, so many.
    Shift { wide: u64, parts: u64, blocks: u64, by: u64, signed: u64, keep: u64, x: RunPlace, z: RunPlace }
    /// Planes of elements, from a bit on, so many.
    ToPlanes {
        wide: u64, parts: u64, blocks: u64, from: u64, width: u64, stride: u64, x: RunPlace, z: RunPlace,
    }
    /// Elements of planes.
    ToElements { wide: u64, parts: u64, blocks: u64, width: u64, stride: u64, x: RunPlace, z: RunPlace }
}

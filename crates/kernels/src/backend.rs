//! Which instructions the kernels use, found out once.

use std::sync::OnceLock;

/// Runs a kernel of `crate::x86` where the backend has its instructions, and elsewhere what is given, or else
/// the portable twin of that name on the same arguments.
macro_rules! by_backend {
    ($backend:expr, $kernel:ident($($argument:expr),*)) => {
        by_backend!($backend, $kernel($($argument),*), crate::portable::$kernel($($argument),*))
    };
    ($backend:expr, $($kernel:ident)::+($($argument:expr),*), $portable:expr) => {
        match $backend {
            #[cfg(target_arch = "x86_64")]
            backend @ (crate::InstructionSet::AesNi | crate::InstructionSet::Vaes512) => {
                crate::x86::$($kernel)::+(backend, $($argument),*)
            }
            _ => $portable,
        }
    };
}
pub(crate) use by_backend;

/// A set of instructions. Kernels of all backends give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum InstructionSet {
    /// Bit-sliced integer code for any CPU.
    Portable,
    /// AES-NI, SSE4.1 and AVX2: one block per instruction.
    AesNi,
    /// VAES and AVX-512 with GFNI and VBMI: four blocks per instruction.
    Vaes512,
}

impl InstructionSet {
    /// The best backend of this machine, or `Portable` under `TACIT_PORTABLE=1`. Read once per process.
    #[must_use]
    pub fn detect() -> Self {
        static FOUND: OnceLock<InstructionSet> = OnceLock::new();
        *FOUND.get_or_init(|| {
            if std::env::var_os("TACIT_PORTABLE").is_some_and(|v| v == "1") {
                return Self::Portable;
            }
            Self::available().pop().expect("the portable backend is always there")
        })
    }

    /// All backends of this machine, slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "only x86-64 adds to it")]
        let mut found = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let aes = is_x86_feature_detected!("aes") && is_x86_feature_detected!("avx2");
            if aes && is_x86_feature_detected!("sse4.1") {
                found.push(Self::AesNi);
                if Self::has_vaes512() {
                    found.push(Self::Vaes512);
                }
            }
        }
        found
    }

    #[cfg(target_arch = "x86_64")]
    fn has_vaes512() -> bool {
        is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("bmi2")
    }

    /// `wanted` when this machine has it.
    ///
    /// # Panics
    /// When it has not: calling such a kernel would be undefined.
    pub(crate) fn checked(wanted: Self) -> Self {
        assert!(Self::available().contains(&wanted), "this machine has no {wanted:?} backend");
        wanted
    }
}

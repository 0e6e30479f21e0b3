//! For tests: whether secrets steer time. One list of cases, two methods.
//!
//! A [`TimedKernel`] is a kernel with a buffer of secret bytes. [`check_flow`] runs it once under Valgrind's
//! memcheck with these bytes marked undefined: a branch or an address that depends on them is an error
//! (Langley's ctgrind). [`check_time`] runs it many times, with a fixed secret and with random ones in random
//! order, and compares the times by Welch's t-test (Reparaz, Balasch, Verbauwhede, "Dude, is my code constant
//! time?", DATE 2017). Both also run [`controls`], kernels that leak, and fail when these are not caught.
//!
//! What the methods see and do not see, and the table of kernels: `docs/testing.md`, "Constant time".

mod clock;
pub mod memcheck;
mod welch;

pub use welch::check_time;

/// A kernel and how many bytes of secret it takes.
pub struct TimedKernel<'a> {
    name: String,
    secret_bytes: usize,
    run: Run<'a>,
}

/// Runs a kernel once on a secret. It hands what it computed to [`done`].
type Run<'a> = Box<dyn FnMut(&mut [u8]) + 'a>;

impl<'a> TimedKernel<'a> {
    /// A case; `run` gets `secret_bytes` bytes, which it may change, and hands what it computed to [`done`].
    pub fn new(name: impl Into<String>, secret_bytes: usize, run: impl FnMut(&mut [u8]) + 'a) -> Self {
        Self { name: name.into(), secret_bytes, run: Box::new(run) }
    }
}

/// Takes what a kernel computed. Under memcheck at least one result of a case must depend on its secret, or
/// the case would test nothing.
pub fn done<T: ?Sized>(result: &T) {
    let result = std::hint::black_box(result);
    if memcheck::is_running() {
        memcheck::note_result(result);
    }
}

/// Runs every case under memcheck with its secret undefined, and prints a line for each.
///
/// # Panics
/// When Valgrind is not there, a case branches on its secret or takes an address from it, no result of a case
/// depends on its secret, or a control is not caught.
pub fn check_flow(cases: Vec<TimedKernel<'_>>) {
    assert!(memcheck::is_running(), "this test runs under valgrind: make constant-time");
    let mut random = Random(1);
    for mut control in controls() {
        println!("control, whose errors are meant: {}", control.name);
        let (errors, _) = flow(&mut control, &mut random);
        assert!(errors > 0, "memcheck did not catch the control: {}", control.name);
    }
    let mut bad = Vec::new();
    for mut case in cases {
        let (errors, depends) = flow(&mut case, &mut random);
        let verdict = match (errors, depends) {
            (0, true) => "no branch and no address depends on the secret",
            (0, false) => "FAILED: no result depends on the secret",
            _ => "FAILED: branches or addresses depend on the secret",
        };
        println!("{:44} {verdict}", case.name);
        if errors > 0 || !depends {
            bad.push(case.name);
        }
    }
    assert!(bad.is_empty(), "secrets steer: {}", bad.join(", "));
}

/// Errors of one run, and whether a result depends on the secret.
fn flow(case: &mut TimedKernel<'_>, random: &mut Random) -> (usize, bool) {
    let mut secret = vec![0; case.secret_bytes];
    random.fill(&mut secret);
    let before = memcheck::errors();
    memcheck::forget_results();
    memcheck::secret(&mut secret[..]);
    (case.run)(&mut secret);
    memcheck::public(&mut secret[..]);
    (memcheck::errors() - before, memcheck::a_result_is_secret())
}

/// The two tests of the cases that a function lists.
#[macro_export]
macro_rules! tests {
    ($cases:path) => {
        #[test]
        #[ignore = "runs under valgrind: make constant-time"]
        fn secrets_steer_nothing() {
            $crate::check_flow($cases());
        }

        #[test]
        #[ignore = "takes minutes: make timing"]
        fn secrets_take_no_time() {
            $crate::check_time($cases());
        }
    };
}

/// Kernels that leak: a branch on a secret bit, and a table read at a secret place.
fn controls() -> Vec<TimedKernel<'static>> {
    const PLACES: usize = 1 << 16;
    const LINE: usize = 64;
    let table = vec![7u8; PLACES * LINE];
    let branch = |secret: &mut [u8]| {
        let mut sum = u64::from(secret[0]);
        for &byte in &*secret {
            if byte & 1 == 1 {
                sum = std::hint::black_box(sum).wrapping_mul(3);
            }
        }
        done(&sum);
    };
    let index = move |secret: &mut [u8]| {
        let place = |pair: &[u8]| LINE * usize::from(u16::from_le_bytes([pair[0], pair[1]]));
        let sum = secret.chunks_exact(2).fold(0, |sum: u8, pair| sum.wrapping_add(table[place(pair)]));
        done(&(sum ^ secret[0]));
    };
    vec![TimedKernel::new("a secret branch", 64, branch), TimedKernel::new("a secret index", 64, index)]
}

/// Bytes that tests need not keep to themselves (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

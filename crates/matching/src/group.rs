//! The group of private matching: u-coordinates of Curve25519, 32 bytes each, in batches over cores.
//!
//! * `H(x)` is the u-coordinate of RFC 9380's `edwards25519_XMD:SHA-512_ELL2_RO_` under our own tag: uniform
//!   in the prime-order subgroup. A plain `u = hash(x)` would lie on the twist for half of all identifiers
//!   and so leak a bit.
//! * A key is `k = 8 s'` with `s'` uniform in `[1, 2^252)`. A reduced scalar would act on a mixed-order point
//!   as `s mod 8` on its torsion part, which the sender of that point could read off; the factor 8 kills the
//!   torsion of the curve and of its twist.
//! * `u(kP)` does not depend on the sign of `P`, so every way of multiplying gives the same 32 bytes. There
//!   are two: eight points at once by the x-only ladder of [`kernels::curve`] where the CPU has AVX-512 IFMA,
//!   and one point at a time by curve25519-dalek elsewhere (and under `TACIT_PORTABLE=1`). The second goes
//!   through the Edwards form, which is faster for one point than the ladder. A u of the twist has no Edwards
//!   form and takes the ladder: the same x-only meaning, slower. Honest peers never send one, and whether a
//!   point is on the twist is known to whoever sent it, so this branch tells a peer's clock nothing that the
//!   peer did not choose. The kernel makes no such difference.
//! * With torsion gone and the twist's order of the same size, no twist test is needed.
//! * Encodings at or above `2^255 - 19` and products that are all zero (points of small order) are refused.
//!
//! Figures and the kernel's arguments: `docs/protocols/curve.md`.

use base::{Error, Rng, Secret};
use curve25519_dalek::{EdwardsPoint, MontgomeryPoint, Scalar};
use kernels::curve::{CurveBackend, Uniform};
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

/// A u-coordinate, little endian, below `2^255 - 19`.
pub type GroupElement = [u8; 32];

/// Bytes of an [`GroupElement`].
pub const ELEMENT_BYTES: u64 = size_of::<GroupElement>() as u64;

/// RFC 9380's domain-separation tag of `H`. Another protocol's hashes of the same identifiers are unrelated
/// to ours.
pub const TAG: &[u8] = b"TACIT-V01-CS01-with-edwards25519_XMD:SHA-512_ELL2_RO_";

/// `2^255 - 19`, little endian.
const PRIME: GroupElement = {
    let mut p = [0xff; 32];
    p[0] = 0xed;
    p[31] = 0x7f;
    p
};

/// Points that share one field inversion: enough to make it free, few enough to stay in the cache.
const INVERSION: usize = 128;

/// Names that the kernel gets at once.
const NAMES: usize = 1024;

/// Bytes of a block of SHA-512.
const BLOCK: usize = 128;

/// Why a peer's element is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementRefusal {
    /// Its bytes are not below `2^255 - 19`.
    NonCanonical,
    /// Its product is the neutral element: it has small order.
    SmallOrder,
}

impl ElementRefusal {
    /// The text for an error.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NonCanonical => "a group element is not a canonical u-coordinate",
            Self::SmallOrder => "a group element has small order",
        }
    }
}

/// A secret key `k = 8 s'`: an integer below `2^255`, never reduced modulo the group's order.
#[derive(Debug)]
pub struct Exponent(Secret<Scalar>);

impl Exponent {
    /// A fresh key.
    #[must_use]
    pub fn random(rng: &mut Rng) -> Self {
        loop {
            if let Some(key) = Self::from_bytes(rng.bytes()) {
                return key;
            }
        }
    }

    /// The key `8 s'` with `s'` the lower 252 bits of `bytes` (little endian); none when they are zero.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Option<Self> {
        let mut bytes = Zeroizing::new(bytes);
        bytes[31] &= 0x0f;
        // 252 bits are below the group's order, so nothing is reduced.
        let scalar = Scalar::from_bytes_mod_order(*bytes);
        #[allow(unused_mut, reason = "a test says what is public")]
        let mut is_key = scalar != Scalar::ZERO;
        #[cfg(test)] // No key that is used is zero.
        timing::memcheck::public(&mut is_key);
        is_key.then(|| Self(Secret::new(scalar)))
    }

    /// The key `k'` with `k' k P = P` for every P of prime order; none in one of 2^128 cases, when it would
    /// not fit 255 bits. It too is a multiple of 8 as an integer.
    #[must_use]
    pub fn inverse(&self) -> Option<Self> {
        // k = 8 s', k' = 8 t: 64 s' t = 1.
        let t = (self.0.expose() * Scalar::from(64u8)).invert();
        #[allow(unused_mut, reason = "a test says what is public")]
        let mut fits = t.as_bytes()[31] & 0xf0 == 0;
        #[cfg(test)] // It fits but for one key in 2^128.
        timing::memcheck::public(&mut fits);
        fits.then(|| Self(Secret::new(t)))
    }

    /// `k P`. Fixed time in the key.
    fn times(&self, point: &EdwardsPoint) -> EdwardsPoint {
        (point * self.0.expose()).mul_by_cofactor()
    }

    /// `u(k P)` by the fixed 255-step ladder, for any `u`, on the curve or its twist.
    fn ladder(&self, u: &GroupElement) -> GroupElement {
        let scalar = self.0.expose().as_bytes();
        let bit = |i: usize| scalar[i / 8] >> (i % 8) & 1 == 1;
        let bits = (0..252).rev().map(bit).chain([false; 3]);
        MontgomeryPoint(*u).mul_bits_be(bits).to_bytes()
    }
}

/// `H(identifier)` as a point of the prime-order subgroup.
fn hash_to_point(identifier: &[u8], tag: &[u8]) -> EdwardsPoint {
    EdwardsPoint::hash_to_curve::<Sha512>(&[identifier], &[tag])
}

/// `H(identifier)`.
#[must_use]
pub fn hash(identifier: &[u8]) -> GroupElement {
    hash_to_point(identifier, TAG).to_montgomery().to_bytes()
}

/// Whether `element` is below `2^255 - 19`.
#[must_use]
pub fn is_canonical(element: &GroupElement) -> bool {
    element.iter().rev().lt(PRIME.iter().rev())
}

/// Whether `element` lies in the subgroup, as all honest ones do. Slow: for finding out who sent one that
/// does not.
#[must_use]
pub fn is_in_subgroup(element: &GroupElement) -> bool {
    MontgomeryPoint(*element).to_edwards(0).is_some_and(|point| point.is_torsion_free())
}

/// Replaces the second argument by the name of a place.
pub type NameReader<'a> = &'a (dyn Fn(usize, &mut Vec<u8>) -> Result<(), Error> + Sync);

/// `out[i] = H(name of i)^k`, on up to `threads` cores.
///
/// # Errors
/// When a name cannot be read.
pub fn hash_mul_batch(
    names: NameReader<'_>,
    k: &Exponent,
    out: &mut [GroupElement],
    threads: usize,
) -> Result<(), Error> {
    CurveGroup::detect().hash_mul_batch(names, k, out, threads)
}

/// `points[i] = points[i]^k`, on up to `threads` cores.
///
/// # Errors
/// When a point is refused; `points` is then half done and must not be used.
pub fn mul_batch(points: &mut [GroupElement], k: &Exponent, threads: usize) -> Result<(), ElementRefusal> {
    CurveGroup::detect().mul_batch(points, k, threads)
}

/// `points[i] = points[i]^first` and `twice[i] = points[i]^(first second)`, on up to `threads` cores. Never
/// dearer than two calls of [`mul_batch`]: the second product starts from the first without decoding it.
///
/// # Errors
/// As [`mul_batch`].
pub fn mul_twice_batch(
    points: &mut [GroupElement],
    twice: &mut [GroupElement],
    first: &Exponent,
    second: &Exponent,
    threads: usize,
) -> Result<(), ElementRefusal> {
    CurveGroup::detect().mul_twice_batch(points, twice, first, second, threads)
}

/// A way to compute. All ways give the same bytes.
#[derive(Clone, Copy, Debug)]
pub struct CurveGroup(Option<CurveBackend>);

impl CurveGroup {
    /// The fastest way of this machine: the 8-lane kernel where there is one.
    #[must_use]
    pub fn detect() -> Self {
        Self(CurveBackend::fast())
    }

    /// One point at a time, on any machine.
    #[must_use]
    pub fn one_by_one() -> Self {
        Self(None)
    }

    /// Points that are multiplied at once.
    #[must_use]
    pub fn lanes(self) -> usize {
        self.0.map_or(1, |_| 8)
    }

    /// See [`hash_mul_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn hash_mul_batch(
        self,
        names: NameReader<'_>,
        k: &Exponent,
        out: &mut [GroupElement],
        threads: usize,
    ) -> Result<(), Error> {
        match self.0 {
            Some(curve) => hash_lanes(curve, names, Some(k), out, threads),
            None => hash_points(names, |point| k.times(&point), out, threads),
        }
    }

    /// `out[i] = H(name of i)`, on up to `threads` cores.
    ///
    /// # Errors
    /// When a name cannot be read.
    pub fn hash_batch(
        self,
        names: NameReader<'_>,
        out: &mut [GroupElement],
        threads: usize,
    ) -> Result<(), Error> {
        match self.0 {
            Some(curve) => hash_lanes(curve, names, None, out, threads),
            None => hash_points(names, |point| point, out, threads),
        }
    }

    /// See [`mul_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn mul_batch(
        self,
        points: &mut [GroupElement],
        k: &Exponent,
        threads: usize,
    ) -> Result<(), ElementRefusal> {
        let piece = piece_len(points.len(), threads);
        over_cores(points.chunks_mut(piece), |points| {
            let Some(curve) = self.0 else { return mul_points(points, k) };
            refuse_foreign(points)?;
            curve.mul(k.0.expose().as_bytes(), points);
            refuse_zero(points)
        })
    }

    /// See [`mul_twice_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn mul_twice_batch(
        self,
        points: &mut [GroupElement],
        twice: &mut [GroupElement],
        first: &Exponent,
        second: &Exponent,
        threads: usize,
    ) -> Result<(), ElementRefusal> {
        assert_eq!(points.len(), twice.len(), "one place per point");
        let piece = piece_len(points.len(), threads);
        over_cores(points.chunks_mut(piece).zip(twice.chunks_mut(piece)), |(points, twice)| {
            let Some(curve) = self.0 else { return mul_points_twice(points, twice, first, second) };
            refuse_foreign(points)?;
            curve.mul(first.0.expose().as_bytes(), points);
            twice.copy_from_slice(points);
            curve.mul(second.0.expose().as_bytes(), twice);
            refuse_zero(twice)
        })
    }
}

/// RFC 9380, 5.3.1: `expand_message_xmd` with SHA-512 to 96 bytes. The block of zeros that comes first is
/// hashed once for all names.
struct Expander {
    /// After the block of zeros.
    padded: Sha512,
    /// The tag and its length.
    suffix: Vec<u8>,
}

impl Expander {
    fn new(tag: &[u8]) -> Self {
        let padded = Sha512::new_with_prefix([0; BLOCK]);
        let len = u8::try_from(tag.len()).expect("a tag has at most 255 bytes");
        Self { padded, suffix: [tag, &[len]].concat() }
    }

    fn expand(&self, name: &[u8]) -> Uniform {
        let mut out: Uniform = [0; 96];
        let len = (out.len() as u16).to_be_bytes();
        let head = self.padded.clone().chain_update(name).chain_update(len).chain_update([0]);
        let head = head.chain_update(&self.suffix).finalize();
        let part = |words: &[u8], i: u8| {
            Sha512::new_with_prefix(words).chain_update([i]).chain_update(&self.suffix).finalize()
        };
        let first = part(&head, 1);
        let mixed: [u8; 64] = std::array::from_fn(|i| head[i] ^ first[i]);
        out[..64].copy_from_slice(&first);
        out[64..].copy_from_slice(&part(&mixed, 2)[..32]);
        out
    }
}

/// Hashes and, with a key, multiplies on the kernel.
fn hash_lanes(
    curve: CurveBackend,
    names: NameReader<'_>,
    k: Option<&Exponent>,
    out: &mut [GroupElement],
    threads: usize,
) -> Result<(), Error> {
    let key = k.map(|k| k.0.expose().as_bytes());
    let expander = Expander::new(TAG);
    let piece = piece_len(out.len(), threads);
    over_cores(out.chunks_mut(piece).enumerate(), |(at, out)| {
        let mut name = Vec::new();
        let mut uniform = Vec::with_capacity(NAMES.min(out.len()));
        for (at, out) in (at * piece..).step_by(NAMES).zip(out.chunks_mut(NAMES)) {
            uniform.clear();
            for i in at..at + out.len() {
                names(i, &mut name)?;
                uniform.push(expander.expand(&name));
            }
            curve.map(key, &uniform, out);
        }
        Ok(())
    })
}

/// Hashes one by one; `product` multiplies.
fn hash_points(
    names: NameReader<'_>,
    product: impl Fn(EdwardsPoint) -> EdwardsPoint + Sync,
    out: &mut [GroupElement],
    threads: usize,
) -> Result<(), Error> {
    let piece = piece_len(out.len(), threads);
    over_cores(out.chunks_mut(piece).enumerate(), |(at, out)| {
        let mut name = Vec::new();
        for (at, out) in (at * piece..).step_by(INVERSION).zip(out.chunks_mut(INVERSION)) {
            let mut points = Vec::with_capacity(out.len());
            for i in at..at + out.len() {
                names(i, &mut name)?;
                points.push(product(hash_to_point(&name, TAG)));
            }
            store(&points, out);
        }
        Ok(())
    })
}

/// [`mul_batch`] one by one.
fn mul_points(points: &mut [GroupElement], k: &Exponent) -> Result<(), ElementRefusal> {
    for points in points.chunks_mut(INVERSION) {
        mul_piece(points, |_, point| k.times(point), |u| k.ladder(u))?;
    }
    Ok(())
}

/// [`mul_twice_batch`] one by one.
fn mul_points_twice(
    points: &mut [GroupElement],
    twice: &mut [GroupElement],
    first: &Exponent,
    second: &Exponent,
) -> Result<(), ElementRefusal> {
    for (points, twice) in points.chunks_mut(INVERSION).zip(twice.chunks_mut(INVERSION)) {
        let mut doubled = vec![EdwardsPoint::default(); points.len()];
        let product = |i: usize, point: &EdwardsPoint| {
            let once = first.times(point);
            doubled[i] = second.times(&once);
            once
        };
        let off_curve = mul_piece(points, product, |u| first.ladder(u))?;
        store(&doubled, twice);
        for i in off_curve {
            twice[i] = second.ladder(&points[i]);
        }
        refuse_zero(twice)?;
    }
    Ok(())
}

/// Multiplies one piece in place, `on_curve` for points of the curve and `ladder` for the others, whose
/// indices come back.
fn mul_piece(
    points: &mut [GroupElement],
    mut on_curve: impl FnMut(usize, &EdwardsPoint) -> EdwardsPoint,
    ladder: impl Fn(&GroupElement) -> GroupElement,
) -> Result<Vec<usize>, ElementRefusal> {
    refuse_foreign(points)?;
    let mut products = vec![EdwardsPoint::default(); points.len()];
    let mut off_curve = Vec::new();
    for (i, u) in points.iter().enumerate() {
        match MontgomeryPoint(*u).to_edwards(0) {
            Some(point) => products[i] = on_curve(i, &point),
            None => off_curve.push(i),
        }
    }
    let slow: Vec<GroupElement> = off_curve.iter().map(|&i| ladder(&points[i])).collect();
    store(&products, points);
    for (&i, u) in off_curve.iter().zip(slow) {
        points[i] = u;
    }
    refuse_zero(points)?;
    Ok(off_curve)
}

/// The u-coordinates of `points`, with one inversion for all; the neutral element becomes zero.
fn store(points: &[EdwardsPoint], into: &mut [GroupElement]) {
    for (place, u) in into.iter_mut().zip(EdwardsPoint::to_montgomery_batch(points)) {
        *place = u.to_bytes();
    }
}

fn refuse_foreign(points: &[GroupElement]) -> Result<(), ElementRefusal> {
    if points.iter().all(is_canonical) { Ok(()) } else { Err(ElementRefusal::NonCanonical) }
}

fn refuse_zero(products: &[GroupElement]) -> Result<(), ElementRefusal> {
    // Products may be secret: nothing is told of them but whether one is zero, and then the run ends with an
    // error.
    let zero = |product: &GroupElement| product.iter().fold(0, |any, byte| any | byte) == 0;
    #[allow(unused_mut, reason = "a test says what is public")]
    let mut any = products.iter().fold(false, |any, product| any | zero(product));
    #[cfg(test)]
    timing::memcheck::public(&mut any);
    if any { Err(ElementRefusal::SmallOrder) } else { Ok(()) }
}

/// Length of one core's piece.
fn piece_len(len: usize, threads: usize) -> usize {
    len.div_ceil(threads.max(1)).max(1)
}

/// Runs one thread per task; a single task runs on the caller's.
fn over_cores<T: Send, E: Send>(
    tasks: impl ExactSizeIterator<Item = T>,
    work: impl Fn(T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    if tasks.len() < 2 {
        return tasks.into_iter().try_for_each(work);
    }
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = tasks.map(|task| scope.spawn(move || work(task))).collect();
        let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
            t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All are joined, then the first error in row order wins.
        let done: Vec<Result<(), E>> = threads.into_iter().map(join).collect();
        done.into_iter().collect()
    })
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;

//! Two uniform field elements to the sum of their points, eight lanes at once: RFC 9380, 6.7.1 (Elligator 2)
//! on the Montgomery form.
//!
//! The curve is `v^2 = u^3 + A u^2 + u`. The Edwards form of the RFC is isomorphic to it, so the sum has the
//! same u; the only point without an image, (0, 0), has order 2 and goes with the cofactor. Everything is
//! fixed time: exceptional cases are computed along and selected.

use super::field::{Fe, root_power};
use super::{Fraction, double};

const A: u64 = 486_662;
/// `2^((p - 1) / 4)`, a square root of -1.
const ROOT: [u64; 5] = [0x61b274a0ea0b0, 0xd5a5fc8f189d, 0x7ef5e9cbd0c60, 0x78595a6804c9e, 0x2b8324804fc1d];
/// `2^((p + 3) / 8)`, a square root of twice [`ROOT`]; it happens to be `ROOT + 1`.
const ROOT_OF_TWICE: [u64; 5] = [ROOT[0] + 1, ROOT[1], ROOT[2], ROOT[3], ROOT[4]];

/// A point `(n / d, v)`; d is never zero.
struct Point {
    n: Fe,
    d: Fe,
    v: Fe,
}

/// What the map needs before the exponentiation, and the base of it.
struct Half {
    r: Fe,
    /// `2 r^2`.
    t: Fe,
    /// Denominator of both candidates for u: `1 + 2 r^2`, not zero because -1 is a square and 2 is none.
    d: Fe,
    d3: Fe,
    /// `g(u1) d^3` for the first candidate `u1 = -A / d`; `g(u) = u^3 + A u^2 + u`.
    g: Fe,
    /// `g d^9`.
    head: Fe,
    /// `g d^21`.
    base: Fe,
}

#[inline(always)]
unsafe fn prepare(r: &Fe) -> Half {
    let square = r.square();
    let t = square.plus(&square).carry();
    let d = t.add(&Fe::small(1));
    let d2 = d.squared();
    let d3 = d2.times(&d);
    let g = d2.wide().minus(&t.mul(&Fe::small(A * A))).carry().times(&minus_a());
    let d6 = d3.squared();
    let head = d6.times(&d3).times(&g);
    let base = d6.squared().times(&head);
    Half { r: *r, t, d, d3, g, head, base }
}

#[inline(always)]
unsafe fn minus_a() -> Fe {
    Fe::small(0).sub(&Fe::small(A))
}

/// The point, given `power = base^((p - 5) / 8)`.
#[inline(always)]
unsafe fn finish(half: &Half, power: &Fe) -> Point {
    let Half { r, t, d, d3, g, head, .. } = half;
    let root = Fe::constant(ROOT);
    // y^2 d^3 is g times a fourth root of 1: 1 or -1 when the first candidate is on the curve.
    let y = power.times(head);
    let q = y.squared().times(d3);
    let equal = q.sub(g).zeros();
    let first = equal | q.add(g).zeros();
    let v1 = Fe::select(equal, &y.times(&root), &y);
    // Otherwise the second, u2 = t u1, is, with g(u2) = t g(u1).
    let y2 = y.times(r).times(&Fe::constant(ROOT_OF_TWICE));
    let equal = q.times(&root).sub(g).zeros();
    let v2 = Fe::select(equal, &y2.times(&root), &y2);
    let n1 = minus_a();
    let n = Fe::select(first, &n1.times(t), &n1);
    let v = Fe::select(first, &v2, &v1);
    // The first candidate has an odd v, the second an even one.
    let flip = first ^ v.odds();
    let v = Fe::select(flip, &v, &Fe::small(0).sub(&v));
    Point { n, d: *d, v }
}

/// `u(P + Q)`; `1 / 0` is the neutral element.
#[inline(always)]
unsafe fn add(p: &Point, q: &Point) -> Fraction {
    // u = (v_q - v_p)^2 / (u_q - u_p)^2 - A - u_p - u_q over common denominators.
    let (pq, qp) = (p.n.mul(&q.d), q.n.mul(&p.d));
    let across = qp.minus(&pq).carry();
    let up = q.v.sub(&p.v);
    let d = p.d.times(&q.d);
    let (across2, up2) = (across.squared(), up.squared());
    let sum = pq.plus(&qp).carry();
    let shift = sum.wide().plus_times(&d, A).carry();
    let x = up2.times(&d).mul(&d.squared()).minus(&shift.mul(&across2)).carry();
    let z = d.times(&across2);
    // Opposite points give x / 0 with x not zero, as they should. Equal ones give 0 / 0 and are doubled
    // instead.
    let same = across.zeros() & up.zeros();
    let twice = double(&Fraction { x: p.n, z: p.d });
    Fraction { x: Fe::select(same, &x, &twice.x), z: Fe::select(same, &z, &twice.z) }
}

/// `u` of eight times the sum of the points of both `r`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
pub unsafe fn hash(r: &[Fe; 2]) -> Fraction {
    let half = [prepare(&r[0]), prepare(&r[1])];
    let power = root_power(&[half[0].base, half[1].base]);
    let sum = add(&finish(&half[0], &power[0]), &finish(&half[1], &power[1]));
    double(&double(&double(&sum)))
}

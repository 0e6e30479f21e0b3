//! Two-operand operations with their meaning in ordinary Rust, for row and release sections alike.

use super::draft::{extend, wrap};
use program::{NodeId, ProgramBuilder, ValueType};

type Build = Box<dyn Fn(&mut ProgramBuilder, NodeId, NodeId) -> NodeId>;
type Meaning = Box<dyn Fn(u128, u128) -> u128>;

/// An operation on two values of one type.
pub(super) struct WordOperation {
    /// The result's type.
    pub(super) ty: ValueType,
    /// Writes it into a program.
    pub(super) build: Build,
    /// The result's bit pattern for two bit patterns.
    pub(super) meaning: Meaning,
}

fn op(
    ty: ValueType,
    build: impl Fn(&mut ProgramBuilder, NodeId, NodeId) -> NodeId + 'static,
    meaning: impl Fn(u128, u128) -> u128 + 'static,
) -> WordOperation {
    WordOperation { ty, build: Box::new(build), meaning: Box::new(move |a, b| wrap(meaning(a, b), ty)) }
}

/// Every operation on operands of type `ty`. One-operand operations get `a ^ b`, so that both operands
/// matter.
pub(super) fn operations(ty: ValueType) -> Vec<WordOperation> {
    let mut all = arithmetic(ty);
    all.extend(comparisons(ty));
    all.extend(shapes(ty));
    if !ty.signed {
        all.extend(unsigned(ty));
    }
    all
}

fn arithmetic(ty: ValueType) -> Vec<WordOperation> {
    vec![
        op(ty, ProgramBuilder::add, u128::wrapping_add),
        op(ty, ProgramBuilder::sub, u128::wrapping_sub),
        op(ty, ProgramBuilder::mul, u128::wrapping_mul),
        op(ty, ProgramBuilder::and, |a, b| a & b),
        op(ty, ProgramBuilder::or, |a, b| a | b),
        op(ty, ProgramBuilder::xor, |a, b| a ^ b),
        op(
            ty,
            |p, a, b| {
                let x = p.xor(a, b);
                p.not(x)
            },
            |a, b| !(a ^ b),
        ),
    ]
}

/// Whether `a < b` as numbers of the type.
fn below(ty: ValueType, a: u128, b: u128) -> bool {
    if ty.signed { (extend(a, ty) as i128) < (extend(b, ty) as i128) } else { a < b }
}

fn comparisons(ty: ValueType) -> Vec<WordOperation> {
    vec![
        op(ValueType::BIT, ProgramBuilder::lt, move |a, b| u128::from(below(ty, a, b))),
        op(ValueType::BIT, ProgramBuilder::eq, |a, b| u128::from(a == b)),
        op(ty, ProgramBuilder::min, move |a, b| if below(ty, b, a) { b } else { a }),
        op(ty, ProgramBuilder::max, move |a, b| if below(ty, a, b) { b } else { a }),
        op(
            ty,
            |p, a, b| {
                let c = p.lt(a, b);
                let (x, y) = (p.add(a, b), p.xor(a, b));
                p.select(c, x, y)
            },
            move |a, b| if below(ty, a, b) { a.wrapping_add(b) } else { a ^ b },
        ),
    ]
}

/// Shifts and casts of `a ^ b`, at the edges of the width too.
fn shapes(ty: ValueType) -> Vec<WordOperation> {
    let mut all = Vec::new();
    for by in [0, 1, ty.width / 2, ty.width - 1, ty.width, 127].map(|by| by.min(127)) {
        let left = move |a: u128, b: u128| if by >= ty.width { 0 } else { (a ^ b) << by };
        all.push(op(
            ty,
            move |p, a, b| {
                let x = p.xor(a, b);
                p.shl(x, by)
            },
            left,
        ));
        let right = move |a: u128, b: u128| {
            let number = extend(a ^ b, ty);
            if ty.signed { (number as i128 >> by) as u128 } else { number >> by }
        };
        all.push(op(
            ty,
            move |p, a, b| {
                let x = p.xor(a, b);
                p.shr(x, by)
            },
            right,
        ));
    }
    for width in [2, ty.width.max(2), ty.width.saturating_add(9).min(128), 128] {
        for to in [ValueType::u(width), ValueType::i(width)] {
            let build = move |p: &mut ProgramBuilder, a, b| {
                let x = p.xor(a, b);
                p.cast(x, to)
            };
            all.push(op(to, build, move |a, b| extend(a ^ b, ty)));
        }
    }
    all
}

fn unsigned(ty: ValueType) -> Vec<WordOperation> {
    let mut all = vec![
        op(ty, ProgramBuilder::div, |a, b| a.checked_div(b).unwrap_or(u128::MAX)),
        op(
            ty,
            |p, a, b| {
                let x = p.xor(a, b);
                p.isqrt(x)
            },
            |a, b| root(a ^ b),
        ),
        op(
            ValueType::u(8),
            |p, a, b| {
                let x = p.xor(a, b);
                p.popcount(x, ValueType::u(8))
            },
            |a, b| (0..128).map(|i| (a ^ b) >> i & 1).sum(),
        ),
    ];
    for cap in [0, 1, ty.max() / 3, ty.max()] {
        let build = move |p: &mut ProgramBuilder, a, b| {
            let x = p.xor(a, b);
            p.clamp(x, cap)
        };
        all.push(op(ty, build, move |a, b| if a ^ b > cap { cap } else { a ^ b }));
    }
    all
}

/// The largest r with r * r <= x, by bisection.
pub(super) fn root(x: u128) -> u128 {
    let (mut low, mut high) = (0u128, 1u128 << 64);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if middle.checked_mul(middle).is_some_and(|square| square <= x) {
            low = middle
        } else {
            high = middle
        }
    }
    low
}

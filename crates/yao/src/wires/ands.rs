//! AND gates per lane of every gadget, by the widths of its operands.

/// [`super::WireParty::add`]: the carry out of the last bit is not computed.
#[must_use]
pub const fn add(width: u64) -> u64 {
    width.saturating_sub(1)
}

/// [`super::WireParty::add_wide`], with or without a carry in.
#[must_use]
pub const fn add_wide(width: u64) -> u64 {
    width
}

/// [`super::WireParty::less_than`].
#[must_use]
pub const fn less_than(width: u64) -> u64 {
    width
}

/// [`super::WireParty::equal`].
#[must_use]
pub const fn equal(width: u64) -> u64 {
    width.saturating_sub(1)
}

/// [`super::WireParty::mux`], [`super::WireParty::mask`] and [`super::WireParty::swap`].
#[must_use]
pub const fn select(width: u64) -> u64 {
    width
}

/// [`super::WireParty::order`]: a comparison of keys and a swap of items.
#[must_use]
pub const fn order(key: u64, width: u64) -> u64 {
    less_than(key) + select(width)
}

/// [`super::WireParty::multiply`]: a row of products per bit of the second operand, and an adder per row but
/// the first.
#[must_use]
pub const fn multiply(x: u64, y: u64) -> u64 {
    if y == 0 { 0 } else { x * y + (y - 1) * x }
}

/// Bits of a count of `bits` bits.
#[must_use]
pub const fn count_width(bits: u64) -> u64 {
    (u64::BITS - bits.leading_zeros()) as u64
}

/// [`super::WireParty::popcount`] of `bits` bits: a full adder turns three bits of one weight into one of it
/// and one of the next, so every AND takes one bit away, down to one bit per weight.
#[must_use]
pub const fn popcount(bits: u64) -> u64 {
    if bits < 2 {
        return 0;
    }
    let (low, high) = halves(bits);
    popcount(low) + popcount(high) + count_width(low)
}

/// How a count is split: one bit is the carry into the sum of the counts of two halves, the first the larger.
pub(super) const fn halves(bits: u64) -> (u64, u64) {
    let rest = bits - 1;
    (rest.div_ceil(2), rest / 2)
}

/// [`super::WireParty::sum_groups`]: lanes in groups of `group`, a power of two, are added by halves; per
/// group.
#[must_use]
pub const fn sum_groups(width: u64, group: u64, grow: bool) -> u64 {
    let (mut left, mut width, mut sum) = (group, width, 0);
    while left > 1 {
        left /= 2;
        sum += left * if grow { add_wide(width) } else { add(width) };
        width += grow as u64;
    }
    sum
}

//! Gadgets over lanes: the same arithmetic on many items side by side. AND gates of each: [`super::ands`].
//!
//! Every gadget has two bodies: what a party computes, and what a speculator does instead, which is to book
//! the price and to touch what lies in the program's memory. Tests hold one against the other.

use super::array::{Items, WireArray, gather, scatter};
use super::calls::Call;
use super::{GROUP, WireLanes, WireParty, ands};
use base::Error;
use kernels::Block;
use std::ops::{DerefMut, Range};

type Done = Result<WireLanes, Error>;

/// Columns of an adder: two operands, which may be shorter than it, and a carry.
struct Columns<'a> {
    x: &'a dyn Fn(usize) -> Option<&'a [Block]>,
    y: &'a dyn Fn(usize) -> Option<&'a [Block]>,
}

fn same(x: &WireLanes, y: &WireLanes) {
    assert!(x.count() == y.count() && x.width() == y.width(), "operands of equal shape");
}

/// What makes a call on these operands another than its like.
fn both(x: &WireLanes, y: &WireLanes) -> [u64; 6] {
    let ([a, b, c], [d, e, f]) = (x.shape(), y.shape());
    [a, b, c, d, e, f]
}

/// The same of a place in the program's memory.
fn place<B>(array: &WireArray<B>, bits: &Range<usize>, items: &[Items]) -> Vec<u64>
where
    B: DerefMut<Target = [Block]>,
{
    let shape = [array.wires().len(), array.width(), bits.start, bits.end].map(|part| part as u64);
    shape.into_iter().chain(items.iter().flat_map(Items::shape)).collect()
}

fn xor_into(out: &mut [Block], x: Option<&[Block]>) {
    if let Some(x) = x {
        kernels::xor_into(out, x);
    }
}

impl WireParty<'_> {
    /// Reads bits of items out of the program's memory. Free.
    ///
    /// # Panics
    /// When items or bits do not exist, here and below; when there are more than [`crate::LANES`] lanes.
    pub fn load<B>(&mut self, array: &WireArray<B>, bits: Range<usize>, items: Items) -> WireLanes
    where
        B: DerefMut<Target = [Block]>,
    {
        osprey::tick();
        self.note(Call::Load, &place(array, &bits, &[items]));
        let mut out = self.take(bits.len(), items.count());
        let from = (array.wires(), array.width());
        if let Some(stub) = self.stub() {
            stub.stretches(from.1, bits, items, |wires| osprey::touch_read(&from.0[wires]));
        } else {
            gather(from, bits, items, out.raw(), |row, label| *row = label);
        }
        out
    }

    /// Writes numbers to bits `from ..` of items. Free.
    pub fn store<B>(&mut self, x: &WireLanes, array: &mut WireArray<B>, from: usize, items: Items)
    where
        B: DerefMut<Target = [Block]>,
    {
        osprey::tick();
        assert_eq!(x.count(), items.count(), "a lane per item");
        let (width, bits) = (array.width(), from..from + x.width());
        self.note(Call::Store, &[&x.shape()[..], &place(array, &bits, &[items])].concat());
        let wires = array.wires_mut();
        if let Some(stub) = self.stub() {
            stub.stretches(width, bits, items, |range| osprey::touch_write(&mut wires[range]));
        } else {
            scatter(x.raw_ref(), bits, items, (wires, width), |wire, label| *wire = label);
        }
    }

    /// The same public number in every lane. Free.
    #[must_use]
    pub fn number(&mut self, value: u64, width: usize, count: usize) -> WireLanes {
        self.note(Call::Number, &[value, width as u64, count as u64]);
        let (mut out, flip) = (self.take(width, count), self.flip());
        if !self.speculates() {
            for bit in 0..width {
                let one = bit < 64 && value >> bit & 1 == 1;
                out.row_mut(bit).fill(if one { flip } else { Block::ZERO });
            }
        }
        out
    }

    fn by_rows(&mut self, x: &WireLanes, work: impl Fn(usize, &mut [Block])) -> WireLanes {
        let mut out = self.take(x.width(), x.count());
        if !self.speculates() {
            for bit in 0..x.width() {
                out.row_mut(bit).copy_from_slice(x.row(bit));
                work(bit, out.row_mut(bit));
            }
        }
        out
    }

    /// `x xor y`, bit by bit. Free.
    #[must_use]
    pub fn xor_lanes(&mut self, x: &WireLanes, y: &WireLanes) -> WireLanes {
        same(x, y);
        self.note(Call::XorLanes, &both(x, y));
        self.by_rows(x, |bit, out| kernels::xor_into(out, y.row(bit)))
    }

    /// `not x`, bit by bit. Free.
    #[must_use]
    pub fn not_lanes(&mut self, x: &WireLanes) -> WireLanes {
        self.note(Call::NotLanes, &x.shape());
        let flip = self.flip();
        self.by_rows(x, |_, out| out.iter_mut().for_each(|out| *out ^= flip))
    }

    /// `x and y`, bit by bit.
    ///
    /// # Errors
    /// Those of the channel, here and below.
    pub fn and_lanes(&mut self, x: &WireLanes, y: &WireLanes) -> Done {
        same(x, y);
        self.note(Call::AndLanes, &both(x, y));
        self.ands_of_rows(x.width(), x.count(), |bit| (x.row(bit), y.row(bit)))
    }

    /// `x` where the one bit of `select` is 1, else 0.
    pub fn mask(&mut self, select: &WireLanes, x: &WireLanes) -> Done {
        assert!(select.width() == 1 && select.count() == x.count(), "a bit per lane");
        self.note(Call::Mask, &both(select, x));
        self.ands_of_rows(x.width(), x.count(), |bit| (select.row(0), x.row(bit)))
    }

    fn ands_of_rows<'a>(
        &mut self,
        width: usize,
        count: usize,
        rows: impl Fn(usize) -> (&'a [Block], &'a [Block]),
    ) -> Done {
        let mut out = self.take(width, count);
        if self.speculates() {
            self.skip((width * count) as u64);
            return Ok(out);
        }
        for bit in 0..width {
            let (x, y) = rows(bit);
            self.and_row(x, y, out.row_mut(bit))?;
        }
        Ok(out)
    }

    fn and_row(&mut self, x: &[Block], y: &[Block], out: &mut [Block]) -> Result<(), Error> {
        let load = |a: &mut [Block], b: &mut [Block]| {
            a.copy_from_slice(x);
            b.copy_from_slice(y);
        };
        self.gate(load, out)
    }

    /// `x` where `select` is 1, else `y`.
    pub fn mux(&mut self, select: &WireLanes, x: &WireLanes, y: &WireLanes) -> Done {
        self.note(Call::Mux, &[&select.shape()[..], &both(x, y)].concat());
        let differ = self.xor_lanes(x, y);
        let chosen = self.mask(select, &differ)?;
        Ok(self.xor_lanes(&chosen, y))
    }

    /// The next carry, `((x + c) (y + c)) + c` with `+` for xor; with `invert`, of `not x`. A missing operand
    /// is 0.
    fn carry(
        &mut self,
        [x, y]: [Option<&[Block]>; 2],
        c: Option<&[Block]>,
        invert: bool,
        out: &mut [Block],
    ) -> Result<(), Error> {
        let flip = if invert { self.flip() } else { Block::ZERO };
        let load = |a: &mut [Block], b: &mut [Block]| {
            a.fill(flip);
            b.fill(Block::ZERO);
            for (operand, row) in [(x, &mut *a), (y, &mut *b)] {
                xor_into(row, operand);
                xor_into(row, c);
            }
        };
        self.gate(load, out)?;
        xor_into(out, c);
        Ok(())
    }

    /// An adder of `width` columns: sums into rows `0 .. width` of `out`, the last carry into row `width`
    /// where it has one.
    fn ripple(
        &mut self,
        columns: &Columns<'_>,
        width: usize,
        carry: Option<&WireLanes>,
        out: &mut WireLanes,
    ) -> Result<(), Error> {
        let mut carries = self.take(2, out.count());
        if let Some(carry) = carry {
            carries.row_mut(1).copy_from_slice(carry.row(0));
        }
        for column in 0..width {
            let (into, from) = carries.pair(column % 2);
            let c = (column > 0 || carry.is_some()).then_some(from);
            let (x, y) = ((columns.x)(column), (columns.y)(column));
            let sum = out.row_mut(column);
            sum.fill(Block::ZERO);
            [x, y, c].into_iter().for_each(|operand| xor_into(sum, operand));
            if column + 1 < width {
                self.carry([x, y], c, false, into)?;
            } else if width < out.width() {
                self.carry([x, y], c, false, out.row_mut(width))?;
            }
        }
        Ok(())
    }

    /// `x + y` modulo 2^width.
    pub fn add(&mut self, x: &WireLanes, y: &WireLanes) -> Done {
        same(x, y);
        self.note(Call::Add, &both(x, y));
        self.sum(x, y, None, x.width())
    }

    /// `x + y + carry`, one bit wider than `x`, which is the wider operand.
    pub fn add_wide(&mut self, x: &WireLanes, y: &WireLanes, carry: Option<&WireLanes>) -> Done {
        assert!(x.count() == y.count() && x.width() >= y.width(), "the wider operand first");
        assert!(
            carry.is_none_or(|c| c.width() == 1 && c.count() == x.count()),
            "a carry is one bit per lane"
        );
        let carry_in = carry.map_or([0; 3], WireLanes::shape);
        self.note(Call::AddWide, &[&both(x, y)[..], &carry_in].concat());
        self.sum(x, y, carry, x.width() + 1)
    }

    fn sum(&mut self, x: &WireLanes, y: &WireLanes, carry: Option<&WireLanes>, width: usize) -> Done {
        let mut out = self.take(width, x.count());
        if self.speculates() {
            let bits = x.width() as u64;
            let gates = if width > x.width() { ands::add_wide(bits) } else { ands::add(bits) };
            self.skip(gates * x.count() as u64);
            return Ok(out);
        }
        let columns = Columns {
            x: &|column| Some(x.row(column)),
            y: &|column| (column < y.width()).then(|| y.row(column)),
        };
        self.ripple(&columns, x.width(), carry, &mut out)?;
        Ok(out)
    }

    /// One bit per lane: `x < y` as unsigned numbers.
    pub fn less_than(&mut self, x: &WireLanes, y: &WireLanes) -> Done {
        same(x, y);
        self.note(Call::LessThan, &both(x, y));
        let (width, count) = (x.width(), x.count());
        if self.speculates() {
            self.skip(ands::less_than(width as u64) * count as u64);
            return Ok(self.take(1, count));
        }
        // The borrow of x - y: the carry of (not x) + y.
        let mut borrows = self.take(2, count);
        borrows.row_mut(1).fill(Block::ZERO);
        for bit in 0..width {
            let (into, from) = borrows.pair(bit % 2);
            let c = (bit > 0).then_some(from);
            self.carry([Some(x.row(bit)), Some(y.row(bit))], c, true, into)?;
        }
        let mut out = self.take(1, count);
        out.row_mut(0).copy_from_slice(borrows.row((width + 1) % 2));
        Ok(out)
    }

    /// One bit per lane: `x = y`.
    ///
    /// # Panics
    /// When they have no bits.
    pub fn equal(&mut self, x: &WireLanes, y: &WireLanes) -> Done {
        same(x, y);
        assert!(x.width() > 0, "numbers of at least one bit");
        let (equal, made) = self.whole(Call::Equal, &both(x, y), |p| p.equal_bits(x, y))?;
        Ok(equal.of(made))
    }

    fn equal_bits(&mut self, x: &WireLanes, y: &WireLanes) -> Done {
        if self.speculates() {
            self.skip(ands::equal(x.width() as u64) * x.count() as u64);
            return Ok(self.take(1, x.count()));
        }
        let differ = self.xor_lanes(x, y);
        let mut left = self.not_lanes(&differ);
        while left.width() > 1 {
            let half = left.width() / 2;
            let mut next = self.take(left.width() - half, left.count());
            for bit in 0..half {
                self.and_row(left.row(bit), left.row(half + bit), next.row_mut(bit))?;
            }
            if left.width() % 2 == 1 {
                next.row_mut(half).copy_from_slice(left.row(2 * half));
            }
            left = next;
        }
        Ok(left)
    }

    /// How many bits of `x` are 1, per lane, in [`ands::count_width`] bits: a tree of full adders.
    pub fn popcount(&mut self, x: &WireLanes) -> Done {
        let (count, made) = self.whole(Call::Popcount, &x.shape(), |p| p.count_all(x))?;
        Ok(count.of(made))
    }

    fn count_all(&mut self, x: &WireLanes) -> Done {
        if self.speculates() {
            self.skip(ands::popcount(x.width() as u64) * x.count() as u64);
            return Ok(self.take(ands::count_width(x.width() as u64) as usize, x.count()));
        }
        self.count_bits(x, 0..x.width())
    }

    fn count_bits(&mut self, x: &WireLanes, bits: Range<usize>) -> Done {
        if bits.len() < 2 {
            let mut out = self.take(bits.len(), x.count());
            bits.for_each(|bit| out.row_mut(0).copy_from_slice(x.row(bit)));
            return Ok(out);
        }
        let low = ands::halves(bits.len() as u64).0 as usize;
        let (first, middle) = (bits.start + 1, bits.start + 1 + low);
        let low = self.count_bits(x, first..middle)?;
        let high = self.count_bits(x, middle..bits.end)?;
        let mut carry = self.take(1, x.count());
        carry.row_mut(0).copy_from_slice(x.row(bits.start));
        self.add_wide(&low, &high, Some(&carry))
    }

    /// `x y` in full: a row of products per bit of `y`, added one after the other.
    ///
    /// # Panics
    /// When one has no bits.
    pub fn multiply(&mut self, x: &WireLanes, y: &WireLanes) -> Done {
        assert!(x.count() == y.count() && x.width() > 0 && y.width() > 0, "operands of equal lanes");
        self.note(Call::Multiply, &both(x, y));
        let (width, count) = (x.width(), x.count());
        let mut out = self.take(width + y.width(), count);
        if self.speculates() {
            self.skip(ands::multiply(width as u64, y.width() as u64) * count as u64);
            return Ok(out);
        }
        // `sum` holds bits `bit ..` of what is added up so far: `width` of them and a carry.
        let mut sum = self.take(width + 1, count);
        for bit in 0..y.width() {
            let products = self.ands_of_rows(width, count, |row| (y.row(bit), x.row(row)))?;
            let mut next = self.take(width + 1, count);
            if bit == 0 {
                (0..width).for_each(|row| next.row_mut(row).copy_from_slice(products.row(row)));
                next.row_mut(width).fill(Block::ZERO);
            } else {
                let columns = Columns {
                    x: &|column| Some(sum.row(column + 1)),
                    y: &|column| Some(products.row(column)),
                };
                self.ripple(&columns, width, None, &mut next)?;
            }
            out.row_mut(bit).copy_from_slice(next.row(0));
            sum = next;
        }
        (0..width).for_each(|row| out.row_mut(y.width() + row).copy_from_slice(sum.row(row + 1)));
        Ok(out)
    }

    /// Adds up groups of `group` neighbouring lanes, a power of two, by halves: one lane per group. Sums are
    /// modulo 2^width, or with `grow` one bit wider per halving.
    ///
    /// # Panics
    /// When the lanes are no whole groups.
    pub fn sum_groups(&mut self, x: WireLanes, group: usize, grow: bool) -> Done {
        assert!(group.is_power_of_two() && x.count().is_multiple_of(group), "whole groups of 2^i lanes");
        self.note(Call::SumGroups, &[&x.shape()[..], &[group as u64, u64::from(grow)]].concat());
        let (mut left, mut group) = (x, group);
        while group > 1 {
            group /= 2;
            let (low, high) = self.split_groups(&left, group);
            left = if grow { self.add_wide(&low, &high, None)? } else { self.add(&low, &high)? };
        }
        Ok(left)
    }

    /// The first and the second `half` lanes of every two halves.
    fn split_groups(&mut self, x: &WireLanes, half: usize) -> (WireLanes, WireLanes) {
        let mut parts = [self.take(x.width(), x.count() / 2), self.take(x.width(), x.count() / 2)];
        if !self.speculates() {
            for bit in 0..x.width() {
                for (i, lanes) in x.row(bit).chunks(half).enumerate() {
                    parts[i % 2].row_mut(bit)[i / 2 * half..][..half].copy_from_slice(lanes);
                }
            }
        }
        let [low, high] = parts;
        (low, high)
    }

    /// Swaps bits of the items of `first` with those of `second` where `select` is 1, in the program's
    /// memory.
    pub fn swap<B>(
        &mut self,
        select: &WireLanes,
        array: &mut WireArray<B>,
        bits: Range<usize>,
        [first, second]: [Items; 2],
    ) -> Result<(), Error>
    where
        B: DerefMut<Target = [Block]>,
    {
        let (count, width) = (first.count(), array.width());
        assert!(second.count() == count && select.count() == count, "a lane per pair");
        osprey::tick();
        self.note(Call::Swap, &[&select.shape()[..], &place(array, &bits, &[first, second])].concat());
        let wires = array.wires_mut();
        if let Some(stub) = self.stub() {
            self.skip(ands::select(bits.len() as u64) * count as u64);
            for items in [first, second] {
                stub.stretches(width, bits.clone(), items, |range| osprey::touch_write(&mut wires[range]));
            }
            return Ok(());
        }
        for from in bits.clone().step_by(GROUP) {
            let bits = from..bits.end.min(from + GROUP);
            let mut differ = self.take(bits.len(), count);
            gather((wires, width), bits.clone(), first, differ.raw(), |row, label| *row = label);
            gather((wires, width), bits.clone(), second, differ.raw(), |row, label| *row ^= label);
            let change = self.mask(select, &differ)?;
            for items in [first, second] {
                scatter(change.raw_ref(), bits.clone(), items, (wires, width), |wire, label| *wire ^= label);
            }
        }
        Ok(())
    }

    /// Puts every pair of items in order of `key`, some of their bits: afterwards the item of `first` has the
    /// smaller one.
    pub fn order<B>(
        &mut self,
        array: &mut WireArray<B>,
        key: Range<usize>,
        pairs: [Items; 2],
    ) -> Result<(), Error>
    where
        B: DerefMut<Target = [Block]>,
    {
        let of = place(array, &key, &pairs);
        self.whole(Call::Order, &of, |p| p.order_pairs(array, key, pairs)).map(drop)
    }

    fn order_pairs<B>(
        &mut self,
        array: &mut WireArray<B>,
        key: Range<usize>,
        pairs: [Items; 2],
    ) -> Result<(), Error>
    where
        B: DerefMut<Target = [Block]>,
    {
        let (bits, width) = (0..array.width(), array.width());
        if let Some(stub) = self.stub() {
            self.skip(ands::less_than(key.len() as u64) * pairs[0].count() as u64);
            // The loads of the keys. Both items are written in the end, so they count as written from the
            // first touch.
            for items in pairs {
                osprey::tick();
                let wires = array.wires_mut();
                stub.stretches(width, key.clone(), items, |range| osprey::touch_write(&mut wires[range]));
            }
            let select = self.take(1, pairs[0].count());
            return self.swap(&select, array, bits, pairs);
        }
        let [x, y] = pairs.map(|items| self.load(array, key.clone(), items));
        let select = self.less_than(&y, &x)?;
        self.swap(&select, array, bits, pairs)
    }
}

//! Word operations as gates, little-endian bit vectors. One AND per bit for addition, comparison and
//! selection.

use crate::{CircuitBuilder, Lit};

/// Bits of a word, least significant first.
pub type LitWord = Vec<Lit>;

/// A constant word; bits from 128 on are zero.
#[must_use]
pub fn constant(value: u128, width: usize) -> LitWord {
    (0..width).map(|i| Lit::constant(i < 128 && value >> i & 1 == 1)).collect()
}

/// Sum with carry in; returns the sum and the carry out.
fn add_carry(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit], mut carry: Lit) -> (LitWord, Lit) {
    debug_assert_eq!(a.len(), b.len());
    let mut sum = LitWord::with_capacity(a.len());
    for (&x, &y) in a.iter().zip(b) {
        let (xc, yc) = (g.xor(x, carry), g.xor(y, carry));
        sum.push(g.xor(xc, y));
        let both = g.and(xc, yc);
        carry = g.xor(both, carry);
    }
    (sum, carry)
}

/// `a + b + carry` modulo 2^width, for a carry of 0 or 1.
pub fn add_with(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit], carry: Lit) -> LitWord {
    // The carry out of the top bit is not wanted, so that bit is an XOR only.
    let Some(top) = a.len().checked_sub(1) else { return LitWord::new() };
    let (mut sum, carry) = add_carry(g, &a[..top], &b[..top], carry);
    let last = g.xor(a[top], b[top]);
    sum.push(g.xor(last, carry));
    sum
}

/// [`add_with`] in logarithmic depth, after Sklansky (1960): about log2(width) / 2 + 1 times the gates.
pub fn add_shallow(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit], carry: Lit) -> LitWord {
    let differ: LitWord = a.iter().zip(b).map(|(x, y)| g.xor(*x, *y)).collect();
    // Of each place: whether a carry leaves the run of places that ends there, and whether one passes through
    // it.
    let both = |(x, y): (&Lit, &Lit)| g.and(*x, *y);
    let mut leaves: LitWord = std::iter::once(carry).chain(a.iter().zip(b).map(both)).collect();
    let mut passes: LitWord = std::iter::once(Lit::FALSE).chain(differ.iter().copied()).collect();
    // The carry out of the top bit is not wanted.
    leaves.truncate(a.len());
    passes.truncate(a.len());
    let mut run = 1;
    while run < leaves.len() {
        for place in (0..leaves.len()).filter(|place| place & run != 0) {
            let before = (place & !(run - 1)) - 1;
            let through = g.and(passes[place], leaves[before]);
            leaves[place] = g.xor(leaves[place], through);
            // Runs that begin at the first place pass nothing on.
            passes[place] = if before < run { Lit::FALSE } else { g.and(passes[place], passes[before]) };
        }
        run *= 2;
    }
    differ.iter().zip(leaves).map(|(bit, carry)| g.xor(*bit, carry)).collect()
}

fn complement(a: &[Lit]) -> LitWord {
    a.iter().map(|x| !*x).collect()
}

/// `a + b` modulo 2^width.
pub fn add(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]) -> LitWord {
    add_with(g, a, b, Lit::FALSE)
}

/// Sum of words of one width modulo 2^width: full adders over columns of equal weight, one AND each, until
/// every column has one bit. Constants cost no gate where they stand alone with one bit.
pub fn sum(g: &mut CircuitBuilder, words: &[LitWord]) -> LitWord {
    let width = words.first().map_or(0, Vec::len);
    let mut total = LitWord::with_capacity(width);
    let mut carries = Vec::new();
    for place in 0..width {
        // Bits wait in order of arrival, so that the carries, which come late, are added late. A constant is
        // last.
        let (mut column, mut last): (Vec<Lit>, Vec<Lit>) =
            words.iter().map(|w| w[place]).partition(|bit| bit.as_constant().is_none());
        column.append(&mut carries);
        last.retain(|bit| *bit == Lit::TRUE);
        column.append(&mut last);
        while column.len() > 1 {
            let (x, y) = (column.remove(0), column.remove(0));
            let z = if column.is_empty() { Lit::FALSE } else { column.remove(0) };
            let xyz = g.xor(x, y);
            column.push(g.xor(xyz, z));
            if place + 1 < width {
                let (xz, yz) = (g.xor(x, z), g.xor(y, z));
                let both = g.and(xz, yz);
                carries.push(g.xor(both, z));
            }
        }
        total.push(column.first().copied().unwrap_or(Lit::FALSE));
    }
    total
}

/// [`sum`] in logarithmic depth: three words become two by full adders side by side, until two are left.
pub fn sum_shallow(g: &mut CircuitBuilder, mut words: Vec<LitWord>) -> LitWord {
    while words.len() > 2 {
        let (a, b, c) = (words.remove(0), words.remove(0), words.remove(0));
        let (mut sum, mut carries) = (LitWord::new(), vec![Lit::FALSE]);
        for ((x, y), z) in a.iter().zip(&b).zip(&c) {
            let (xz, yz) = (g.xor(*x, *z), g.xor(*y, *z));
            sum.push(g.xor(xz, *y));
            let both = g.and(xz, yz);
            carries.push(g.xor(both, *z));
        }
        carries.truncate(sum.len());
        words.extend([sum, carries]);
    }
    match &words[..] {
        [a, b] => add_shallow(g, a, b, Lit::FALSE),
        _ => words.pop().unwrap_or_default(),
    }
}

/// `a - b` modulo 2^width.
pub fn sub(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]) -> LitWord {
    // a - b = ~(~a + b)
    let sum = add(g, &complement(a), b);
    complement(&sum)
}

/// `-a` modulo 2^width.
pub fn negate(g: &mut CircuitBuilder, a: &[Lit]) -> LitWord {
    sub(g, &constant(0, a.len()), a)
}

/// `a < b`, unsigned or by two's complement.
pub fn less(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit], signed: bool) -> Lit {
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    if signed {
        // Flipping the sign bits maps two's complement order to unsigned order.
        let top = a.len() - 1;
        (a[top], b[top]) = (!a[top], !b[top]);
    }
    // a < b exactly when b + ~a carries out.
    add_carry(g, &complement(&a), &b, Lit::FALSE).1
}

/// `a == b`: a balanced tree of ANDs.
pub fn equal(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]) -> Lit {
    let mut same: LitWord = a.iter().zip(b).map(|(x, y)| !g.xor(*x, *y)).collect();
    while same.len() > 1 {
        same = same.chunks(2).map(|c| if let [x, y] = c { g.and(*x, *y) } else { c[0] }).collect();
    }
    same.first().copied().unwrap_or(Lit::TRUE)
}

/// `a` where `c`, else `b`.
pub fn select(g: &mut CircuitBuilder, c: Lit, a: &[Lit], b: &[Lit]) -> LitWord {
    a.iter().zip(b).map(|(x, y)| g.mux(c, *x, *y)).collect()
}

/// Every bit of `a` where `c`, else zero.
pub fn mask(g: &mut CircuitBuilder, c: Lit, a: &[Lit]) -> LitWord {
    a.iter().map(|x| g.and(c, *x)).collect()
}

/// `a * b` modulo 2^width, schoolbook.
pub fn mul(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]) -> LitWord {
    let width = a.len();
    let mut product = constant(0, width);
    for (shift, bit) in b.iter().enumerate() {
        if *bit == Lit::FALSE {
            continue;
        }
        let row = mask(g, *bit, &a[..width - shift]);
        let high = add(g, &product[shift..], &row);
        product.truncate(shift);
        product.extend(high);
    }
    product
}

/// `a / b` rounded down, all ones when `b` is zero.
///
/// The first half restores: after `s` steps the remainder has `s` bits, so the divisor's higher bits only
/// need to be zero and a step costs 2 s + 1 ANDs. From where that is more than one AND per bit, the remainder
/// may be negative: a step subtracts the divisor from a remainder that is not and adds it to one that is.
pub fn div(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]) -> LitWord {
    let width = a.len();
    let restoring = (1..=width).take_while(|step| 2 * step + 1 < width).count();
    let mut quotient = constant(0, width);
    let mut rest = LitWord::new();
    if restoring > 0 {
        // high[s]: some bit of b from s on is set.
        let mut high = constant(0, width + 1);
        for s in (1..width).rev() {
            high[s] = g.or(high[s + 1], b[s]);
        }
        for step in 1..=restoring {
            rest.insert(0, a[width - step]);
            // ~rest + b carries out exactly when b is the larger; its sum's complement is rest - b.
            let (sum, below) = add_carry(g, &complement(&rest), &b[..step], Lit::FALSE);
            let fits = !g.or(below, high[step]);
            quotient[width - step] = fits;
            rest = select(g, fits, &complement(&sum), &rest);
        }
    }
    // Two's complement: the remainder is at least -b and below b, or the dividend so far where b is zero.
    rest.resize(width + 1, Lit::FALSE);
    let mut positive = Lit::TRUE;
    for step in restoring + 1..=width {
        rest.pop();
        rest.insert(0, a[width - step]);
        // rest - b = rest + ~b + 1.
        let signed: LitWord = b.iter().map(|bit| g.xor(*bit, positive)).collect();
        let (sum, carry) = add_carry(g, &rest[..width], &signed, positive);
        // The divisor's sign is 0 before it is complemented.
        let top = g.xor(rest[width], carry);
        positive = !g.xor(top, positive);
        rest = sum;
        rest.push(!positive);
        quotient[width - step] = positive;
    }
    quotient
}

/// Integer square root, rounded down: one result bit per step, from the top.
pub fn isqrt(g: &mut CircuitBuilder, a: &[Lit]) -> LitWord {
    let width = a.len();
    let mut padded = a.to_vec();
    padded.resize(width.next_multiple_of(2), Lit::FALSE);
    let half = padded.len() / 2;
    let mut root: LitWord = Vec::new();
    let mut rest: LitWord = Vec::new();
    for step in 0..half {
        let low = padded.len() - 2 * (step + 1);
        // rest = 4 rest + next two bits; trial = 4 root + 1; both fit step + 3 bits.
        let size = step + 3;
        let mut next = vec![padded[low], padded[low + 1]];
        next.extend_from_slice(&rest);
        next.resize(size, Lit::FALSE);
        let mut trial = vec![Lit::TRUE, Lit::FALSE];
        trial.extend_from_slice(&root);
        trial.resize(size, Lit::FALSE);
        let below = less(g, &next, &trial, false);
        let taken = mask(g, !below, &trial);
        rest = sub(g, &next, &taken);
        root.insert(0, !below);
    }
    root.resize(width, Lit::FALSE);
    root
}

/// Number of set bits of `a` in `width` bits: full adders, one AND each.
pub fn popcount(g: &mut CircuitBuilder, a: &[Lit], width: usize) -> LitWord {
    let mut columns: Vec<Vec<Lit>> = vec![a.to_vec()];
    let mut count = LitWord::new();
    while let Some(mut bits) = columns.pop() {
        let mut carries = Vec::new();
        while bits.len() > 1 {
            let (x, y) = (bits.remove(0), bits.remove(0));
            let z = if bits.is_empty() { Lit::FALSE } else { bits.remove(0) };
            let (sum, carry) = add_carry(g, &[x], &[y], z);
            bits.push(sum[0]);
            carries.push(carry);
        }
        count.push(bits.first().copied().unwrap_or(Lit::FALSE));
        if !carries.is_empty() {
            columns.push(carries);
        }
    }
    count.resize(width, Lit::FALSE);
    count
}

/// Extends (by sign where `signed`) or cuts to `width` bits.
#[must_use]
pub fn resize(a: &[Lit], width: usize, signed: bool) -> LitWord {
    let mut word = a.to_vec();
    let fill = if signed { *a.last().expect("a word has a bit") } else { Lit::FALSE };
    word.resize(width, fill);
    word
}

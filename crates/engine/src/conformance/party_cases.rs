//! Cases of programs whose totals are shared by exclusive or: any number of parties, best rows, lists, shared
//! columns.

use super::ProgramCase;
use super::draft::{Col, Draft, extend, value};
use super::operations::operations;
use base::PartyId;
use program::{Class, Holder, Lookup, NodeId, RowOrder, ValueType};

pub(super) fn all(parties: usize, seed: u64) -> Vec<ProgramCase> {
    if parties > 5 {
        return vec![market(parties, seed, 70, 3), market(parties, seed, 3, 0)];
    }
    let mut cases = Vec::new();
    for (ty, rows) in [
        (ValueType::BIT, 65),
        (ValueType::u(5), 64),
        (ValueType::u(17), 9),
        (ValueType::i(2), 30),
        (ValueType::i(9), 33),
        (ValueType::i(40), 3),
    ] {
        cases.push(every_operation(parties, seed, ty, rows));
    }
    // Set-ups of many parties take their time; the edges of words are the same for all.
    let rows: &[usize] = if parties > 3 { &[0, 1, 3, 65] } else { &[0, 1, 2, 3, 63, 64, 65, 1000] };
    for &rows in rows {
        cases.push(market(parties, seed, rows, 3));
        cases.push(mixed(parties, seed, rows));
    }
    cases.push(market(parties, seed, 37, 0));
    cases.push(market(parties, seed, 37, 8));
    cases.push(lookups(parties, seed, 19));
    cases.push(present(parties, seed, 65));
    if parties > 2 {
        cases.push(super::release_cases::gaussian(parties, seed, 7));
        cases.push(super::release_cases::joint(parties, seed, 7));
        cases.push(super::release_cases::every_cell(parties, seed));
    }
    cases
}

fn draft(what: &str, parties: usize, rows: usize, seed: u64) -> Draft {
    Draft::among(parties, format!("{parties} parties, {rows} rows: {what}"), Class::Exact, rows, seed)
}

/// A fold that two parties cannot share by sums, so that the program is not one for additive shares.
fn force_boolean(d: &mut Draft, holder: u8) {
    let key = d.column(ValueType::u(3), Some(holder));
    let valid = d.column(ValueType::BIT, Some((holder + 1) % 2));
    d.best(RowOrder::Least, [key.node, valid.node], |r| (valid.at(r) == 1).then(|| key.at(r)));
}

/// Each operation on a value of the first party and one of the last, and on a shared value and one of the
/// last; summed.
fn every_operation(parties: usize, seed: u64, ty: ValueType, rows: usize) -> ProgramCase {
    let mut d = draft(&format!("every operation on {ty}"), parties, rows, seed);
    let last = (parties - 1) as u8;
    let y = d.column(ty, Some(last));
    for x in [d.column(ty, Some(0)), d.column_of(ty, Holder::Shared)] {
        for op in operations(ty) {
            let node = (op.build)(&mut d.b, x.node, y.node);
            let width = op.ty.width.saturating_add(10).min(128);
            let sum = if op.ty.signed { ValueType::i(width) } else { ValueType::u(width) };
            d.sum(node, sum, |row| extend((op.meaning)(x.at(row), y.at(row)), op.ty));
        }
    }
    force_boolean(&mut d, 0);
    d.finish()
}

/// As the marketplaces: shared keys with few values, so that there are ties; of eight rows `ones` are asked
/// for by the first party. The best ones of both orders, and which ones are below a bound.
fn market(parties: usize, seed: u64, rows: usize, ones: u64) -> ProgramCase {
    let mut d = draft(&format!("best rows, {ones} of 8 valid"), parties, rows, seed);
    let few = (0..rows).map(|_| u128::from(d.rng.below(4))).collect();
    let price = d.given_of(ValueType::u(16), Holder::Shared, few);
    let quality = d.column_of(ValueType::u(7), Holder::Shared);
    let asked = (0..rows).map(|_| u128::from(d.rng.below(8) < ones)).collect();
    let wanted = d.given(ValueType::BIT, Some(0), asked);
    let asks = |r: usize| wanted.at(r) == 1;
    let (_, cheapest) = best(&mut d, RowOrder::Least, &price, wanted.node, asks);
    let (_, dearest) = best(&mut d, RowOrder::Greatest, &price, wanted.node, asks);
    let (_, finest) = best(&mut d, RowOrder::Greatest, &quality, wanted.node, asks);
    let bound = d.column(ValueType::u(16), Some(0));
    let below = d.b.lt(price.node, bound.node);
    d.list(0, below, |r| price.at(r) < bound.at(r));
    d.b.release();
    for (fold, found) in (0..).zip([cheapest, dearest, finest]) {
        reveal(&mut d, 0, fold, found);
    }
    // Gates in the release: the sum of two keys, to somebody who gave none.
    let [low, high] = [0, 1].map(|fold| d.b.total(fold));
    let sum = d.b.add(low, high);
    let key = |found: Option<(usize, u128)>| found.map_or(0, |(_, key)| key);
    d.reveal((parties - 1) as u8, sum, key(cheapest) + key(dearest));
    d.finish()
}

/// The best of the rows that all parties have, how many these are, and which.
fn present(parties: usize, seed: u64, rows: usize) -> ProgramCase {
    let mut d = draft("present", parties, rows, seed);
    let key = d.column(ValueType::u(9), Some((parties - 1) as u8));
    let here: Vec<Col> = (0..parties as u8).map(|party| d.present(party)).collect();
    let matched = d.b.matched();
    let all = |r: usize| here.iter().all(|bit| bit.at(r) == 1);
    let (_, found) = best(&mut d, RowOrder::Greatest, &key, matched, all);
    d.sum(matched, ValueType::u(40), |r| u128::from(all(r)));
    d.list(0, matched, all);
    d.b.release();
    reveal(&mut d, 0, 0, found);
    d.finish()
}

type Found = Option<(usize, u128)>;

fn best(
    d: &mut Draft,
    order: RowOrder,
    key: &Col,
    valid: NodeId,
    is_valid: impl Fn(usize) -> bool,
) -> (u32, Found) {
    d.best(order, [key.node, valid], |r| is_valid(r).then(|| key.at(r)))
}

fn reveal(d: &mut Draft, to: u8, fold: u32, found: Found) {
    let (key, index, bit) = (d.b.total(fold), d.b.index(fold), d.b.found(fold));
    d.reveal(to, key, found.map_or(0, |(_, key)| key));
    d.reveal(to, index, found.map_or(0, |(row, _)| row as u128));
    d.reveal(to, bit, u128::from(found.is_some()));
}

/// Columns of every holder under sums, best rows and lists: what one party knows alone, what everybody does,
/// and the rest.
fn mixed(parties: usize, seed: u64, rows: usize) -> ProgramCase {
    let mut d = draft("columns of every holder", parties, rows, seed);
    let mut holders = vec![Holder::Public, Holder::Shared];
    holders.extend((0..parties as u8).map(|p| Holder::Party(PartyId(p))));
    let numbers: Vec<Col> = holders.iter().map(|h| d.column_of(ValueType::u(6), *h)).collect();
    let bits: Vec<Col> = holders.iter().map(|h| d.column_of(ValueType::BIT, *h)).collect();
    let signed: Vec<Col> = holders.iter().map(|h| d.column_of(ValueType::i(5), *h)).collect();
    let mut found = Vec::new();
    for (i, (number, bit)) in numbers.iter().zip(&bits).enumerate() {
        d.sum(number.node, ValueType::u(20), |r| number.at(r));
        d.sum(signed[i].node, ValueType::i(30), |r| signed[i].wide(r));
        // The sum that wraps.
        d.sum(number.node, ValueType::u(6), |r| number.at(r));
        let order = if i % 2 == 0 { RowOrder::Least } else { RowOrder::Greatest };
        for other in [bit, &bits[(i + 1) % bits.len()]] {
            let fold = best(&mut d, order, number, other.node, |r| other.at(r) == 1);
            found.push(fold);
        }
        d.list((i % parties) as u8, bit.node, |r| bit.at(r) == 1);
    }
    let both = d.b.and(bits[1].node, bits[2].node);
    d.list(0, both, |r| bits[1].at(r) & bits[2].at(r) == 1);
    let always = d.b.constant(1, ValueType::BIT);
    found.push(best(&mut d, RowOrder::Greatest, &numbers[1], always, |_| true));
    let wide = (0..rows).map(|_| value(&mut d.rng, ValueType::u(95))).collect();
    let wide = d.given_of(ValueType::u(95), Holder::Shared, wide);
    found.push(best(&mut d, RowOrder::Least, &wide, bits[2].node, |r| bits[2].at(r) == 1));
    d.b.release();
    for (i, (fold, found)) in found.into_iter().enumerate() {
        reveal(&mut d, (i % 2) as u8, fold, found);
    }
    d.finish()
}

/// A step function of shared values between thresholds of two parties.
fn lookups(parties: usize, seed: u64, rows: usize) -> ProgramCase {
    let mut d = draft("lookups", parties, rows, seed);
    let ty = ValueType::u(5);
    let after = d.column(ty, Some(0));
    let keys =
        [Holder::Party(PartyId(1)), Holder::Shared, Holder::Party(PartyId(0))].map(|h| d.column_of(ty, h));
    let values = [0, 1, 2].map(|_| d.column_of(ValueType::u(9), Holder::Shared));
    let lookup = Lookup {
        after: after.node,
        until: None,
        keys: keys.iter().map(|k| k.node).collect(),
        values: values.iter().map(|v| v.node).collect(),
    };
    let node = d.b.lookup(lookup);
    d.sum(node, ValueType::u(20), |r| {
        let above = (0..3).find(|i| keys[..=*i].iter().any(|k| k.at(r) > after.at(r)));
        above.map_or(0, |i| values[i].at(r))
    });
    force_boolean(&mut d, 1);
    d.finish()
}

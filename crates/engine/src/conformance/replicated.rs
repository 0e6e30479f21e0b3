//! Totals that four servers hold in summands.

use super::ProgramCase;
use crate::{SERVERS, Share};
use program::{RowFold, ValueType};

/// Compares what all parties hold of one fold with its total.
///
/// # Errors
/// What differs.
pub(super) fn compare(case: &ProgramCase, at: usize, total: u128, shares: &[&Share]) -> Result<(), String> {
    let fold = &case.program.folds[at];
    if let RowFold::Collect { .. } = fold {
        return compare_list(case, shares);
    }
    let held = |share: &&Share| match share {
        Share::Replicated(summands) => Ok(Some(*summands)),
        Share::Absent => Ok(None),
        _ => Err("some hold summands of it and some another share".to_owned()),
    };
    let holders: Vec<_> = shares.iter().map(held).filter_map(Result::transpose).collect::<Result<_, _>>()?;
    let summands = agree(&holders)?;
    let width = case.program.summand_bits()[at];
    let mask = ValueType::u(width).mask();
    if summands.iter().any(|s| s & !mask != 0) {
        return Err(format!("a summand is wider than {width} bits"));
    }
    let (sum, total) = match fold {
        RowFold::Sum { ty, .. } => {
            let sum = summands.iter().fold(0, |sum: u128, s| sum.wrapping_add(*s));
            (sum & mask, ty.to_signed(total).cast_unsigned() & mask)
        }
        _ => (summands.iter().fold(0, |sum, s| sum ^ s), total),
    };
    if sum != total {
        return Err(format!("total {sum}, expected {total}"));
    }
    // Summands of a sum are random whatever was added.
    let wide = matches!(fold, RowFold::Sum { ty, .. } if ty.width >= 40);
    if wide && case.rows > 0 && summands.iter().any(|s| *s == 0 || *s == total) {
        return Err("a summand is not random".into());
    }
    Ok(())
}

/// All summands: four holders, each lacks another one, and what two of them hold is the same.
fn agree<T: Clone + PartialEq>(holders: &[[Option<T>; SERVERS]]) -> Result<[T; SERVERS], String> {
    let lacks: Vec<Vec<usize>> =
        holders.iter().map(|h| (0..SERVERS).filter(|j| h[*j].is_none()).collect()).collect();
    let mut missing: Vec<usize> = lacks.iter().flatten().copied().collect();
    missing.sort_unstable();
    if lacks.iter().any(|l| l.len() != 1) || missing != [0, 1, 2, 3] {
        return Err(format!("the holders lack summands {lacks:?}, not one each"));
    }
    let mut all = Vec::with_capacity(SERVERS);
    for j in 0..SERVERS {
        let mut held = holders.iter().filter_map(|h| h[j].as_ref());
        let first = held.next().ok_or("nobody holds a summand")?;
        if held.any(|other| other != first) {
            return Err(format!("summand {j} is not the same at its holders"));
        }
        all.push(first.clone());
    }
    all.try_into().map_err(|_| "another number of summands".to_owned())
}

/// Of a list only the shape; what it holds is compared when it is revealed.
fn compare_list(case: &ProgramCase, shares: &[&Share]) -> Result<(), String> {
    let held = |share: &&Share| match share {
        Share::ReplicatedRows(summands) => Ok(Some(summands.clone())),
        Share::Absent => Ok(None),
        _ => Err("some hold summands of it and some another share".to_owned()),
    };
    let holders: Vec<_> = shares.iter().map(held).filter_map(Result::transpose).collect::<Result<_, _>>()?;
    let words = case.rows.div_ceil(64) as usize;
    if agree(&holders)?.iter().any(|summand| summand.len() != words) {
        return Err("not a list of all rows".into());
    }
    Ok(())
}

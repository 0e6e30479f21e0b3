//! Values of events: whole parts of a unit; and negative ones, which are refunds.

use super::table::TableCell;
use super::{InputReport, Row, numbers};
use ::program::{DecimalError, decimal};
use study::NegativeRule;

/// An event while those of one identifier are put together. In their order a refund comes behind what it may
/// be taken off: events that are no later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GatheredEvent {
    pub time: u32,
    /// Whether the amount is taken off earlier ones.
    pub refund: bool,
    pub amount: u32,
}

/// Reads a value in whole parts of a unit, whose number is `scale`; complains about a wrong one.
pub(crate) fn amount(
    row: &mut Row<'_>,
    column: &str,
    cell: TableCell<'_>,
    (scale, negative): (u32, NegativeRule),
) -> Option<i64> {
    let most = i64::from(u32::MAX);
    let problem = match parts(row, cell, scale) {
        _ if cell == TableCell::Empty => {
            "and the event has a time: write 0 where it has no value, or empty its time where nothing \
             happened"
                .to_owned()
        }
        Ok(value) if value < 0 && negative == NegativeRule::Error => {
            "is negative: if it is a refund, agree on negative = \"net\", which takes it off earlier events, \
             or negative = \"leave-out\" in the `value` of the study's [advertiser]"
                .to_owned()
        }
        Ok(value) => match i64::try_from(value) {
            Ok(value) if (-most..=most).contains(&value) => return Some(value),
            _ if scale == 1 => format!("is out of range; use a whole number from 0 to {most}"),
            _ => format!("is out of range: {most} parts of which {scale} are 1 are the most"),
        },
        Err(problem) => problem,
    };
    row.complain(column, || format!("{} {problem}", cell.shown()));
    None
}

/// The whole parts that a cell says.
fn parts(row: &Row<'_>, cell: TableCell<'_>, scale: u32) -> Result<i128, String> {
    let whole = i128::from(scale);
    let text = match cell {
        TableCell::Integer(value) => return Ok(i128::from(value) * whole),
        TableCell::Text(text) => numbers::plain(text, row.format.numbers())?,
        TableCell::Float(_) | TableCell::Decimal(..) => cell.number_text().unwrap_or_default(),
        _ => return Err(no_number(scale)),
    };
    // One sign is enough.
    let text = text.strip_prefix('+').filter(|rest| !rest.starts_with('-')).unwrap_or(&text);
    decimal(text, whole).or_else(|error| match error {
        DecimalError::Long => Ok(i128::MAX),
        DecimalError::NoNumber => Err(no_number(scale) + cure(text)),
        DecimalError::Inexact if scale == 1 => {
            Err("is not a whole number: round it, or agree on scale = 100 in the `value` of the study's \
             [advertiser], where amounts have two decimals"
                .to_owned())
        }
        DecimalError::Inexact => Err(format!(
            "has more decimals than the study's scale = {scale} takes; round it, or agree on a finer one"
        )),
    })
}

fn no_number(scale: u32) -> String {
    match scale {
        1 => "is not a whole number: use digits only, without separators or decimals".to_owned(),
        _ => "is not a number such as 12 or 149.28".to_owned(),
    }
}

/// What reads a cell that people write as an amount.
fn cure(text: &str) -> &'static str {
    let code = |word: &str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let word = |word: &str| code(word) || word.eq_ignore_ascii_case("euro");
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let currency = text.contains(['\u{20ac}', '$', '\u{a3}', '\u{a5}']) || text.split(' ').any(word);
    match numbers::is_grouped(text, '.') {
        true => {
            "; if points separate thousands, add decimal = \",\" under [format] of the party file (or \
             --decimal ,)"
        }
        false if digits && currency => {
            "; write amounts without the sign or name of a currency: `unit` in the `value` of the study's \
             [advertiser] says it"
        }
        false => "",
    }
}

/// Takes each refund of one identifier off its latest events that are no later, as far as these go. The
/// events are in their order, and stay so; those of which nothing is left are none any more.
pub(crate) fn take_off(events: &mut Vec<GatheredEvent>, report: &mut InputReport) {
    // Places of events of which something is left. Those of nothing are passed once, not by every refund.
    let mut open: Vec<usize> = Vec::new();
    let mut gone = vec![false; events.len()];
    for at in 0..events.len() {
        let GatheredEvent { refund, mut amount, .. } = events[at];
        if !refund {
            open.extend((amount > 0).then_some(at));
            continue;
        }
        gone[at] = true;
        report.refunds_taken_off += 1;
        while let Some(&last) = open.last().filter(|_| amount > 0) {
            let part = amount.min(events[last].amount);
            events[last].amount -= part;
            amount -= part;
            if events[last].amount == 0 {
                open.pop();
                gone[last] = true;
                report.events_refunded += 1;
            }
        }
        report.refunds_beyond += u64::from(amount > 0);
    }
    let mut gone = gone.into_iter();
    events.retain(|_| gone.next() == Some(false));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn netted(events: &[(u32, i64)]) -> (Vec<(u32, u32)>, InputReport) {
        let event = |&(time, value): &(u32, i64)| GatheredEvent {
            time,
            refund: value < 0,
            amount: value.unsigned_abs() as u32,
        };
        let (mut events, mut report) = (events.iter().map(event).collect::<Vec<_>>(), InputReport::default());
        events.sort_unstable();
        take_off(&mut events, &mut report);
        (events.iter().map(|event| (event.time, event.amount)).collect(), report)
    }

    #[test]
    fn refunds_are_taken_off_the_latest_events_before_them() {
        let left = |events| netted(events).0;
        assert_eq!(left(&[(1, 50), (2, 30), (3, -10)]), [(1, 50), (2, 20)]);
        assert_eq!(left(&[(1, 50), (2, 30), (3, -40)]), [(1, 40)]);
        assert_eq!(left(&[(2, -10), (1, 50), (3, 7)]), [(1, 40), (3, 7)], "not off later ones");
        assert_eq!(left(&[(1, -10), (1, 50)]), [(1, 40)], "of the same time");
        assert_eq!(left(&[(1, 0), (2, 5), (3, -5)]), [(1, 0)], "an event of nothing stays one");
        let (events, report) = netted(&[(1, -5), (2, 3), (3, -4), (4, -1)]);
        assert_eq!(events, []);
        assert_eq!((report.refunds_taken_off, report.refunds_beyond, report.events_refunded), (3, 3, 1));
        assert_eq!(
            left(&[(1, 20), (2, 0), (3, 10), (4, -15), (5, -15)]),
            [(2, 0)],
            "past an event of nothing"
        );
    }
}

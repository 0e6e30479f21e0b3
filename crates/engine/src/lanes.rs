//! Ranges of the rows at the same time, each over channels of its own and as a computation of its own.

use crate::Shares;
use base::{Error, Fault};
use net::Session;
use program::Program;
use std::iter::once;

/// Runs a range of rows in every session, a thread each, and adds up what they leave: only sums add up. There
/// are as many ranges as sessions, or fewer. What was said over `lanes` is booked in `session`.
///
/// # Errors
/// Those of the ranges. Where several failed, that of the first which says more than that a peer is gone.
pub fn run_lanes<R: Send>(
    program: &Program,
    (session, lanes): (&mut Session, &mut [Session]),
    ranges: Vec<R>,
    run: impl Fn(R, &mut Session) -> Result<Shares, Error> + Sync,
) -> Result<Shares, Error> {
    if ranges.is_empty() || ranges.len() > lanes.len() + 1 {
        return Err(Error::misuse("every range of rows has channels of its own"));
    }
    let run = &run;
    let done: Vec<Result<Shares, Error>> = std::thread::scope(|scope| {
        let mut jobs = once(&mut *session).chain(&mut *lanes).zip(ranges);
        let first = jobs.next();
        let others: Vec<_> = jobs.map(|(lane, range)| scope.spawn(move || run(range, lane))).collect();
        let first = first.map(|(lane, range)| run(range, lane));
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        first.into_iter().chain(others).collect()
    });
    lanes.iter_mut().for_each(|lane| session.book(&lane.take_traffic()));
    let (mut total, mut failed) = (None::<Shares>, None::<Error>);
    for one in done {
        match (one, &mut total) {
            (Ok(shares), None) => total = Some(shares),
            (Ok(shares), Some(total)) => total.add(program, &shares)?,
            (Err(error), _) => {
                let says_more = !matches!(error.kind(), Fault::Channel(_));
                let unsaid = failed.as_ref().is_none_or(|first| matches!(first.kind(), Fault::Channel(_)));
                if failed.is_none() || says_more && unsaid {
                    failed = Some(error);
                }
            }
        }
    }
    match (failed, total) {
        (None, Some(total)) => Ok(total),
        (Some(error), _) => Err(error),
        (None, None) => Err(Error::misuse("there is a range of rows at least")),
    }
}

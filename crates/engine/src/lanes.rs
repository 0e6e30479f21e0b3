//! Ranges of the rows at the same time, each over channels of its own and as a computation of its own.

use crate::Shares;
use base::Error;
use net::{RangeHalt, Session};
use program::Program;
use std::iter::once;
use std::sync::{Mutex, PoisonError};

/// How all ranges end where one fails.
struct RangesEnding {
    halt: RangeHalt,
    /// What `stop` made of the first error.
    first: Mutex<Option<Error>>,
}

impl RangesEnding {
    /// Ends the others, unless that is done, and gives the error with which it began. Who fails meanwhile
    /// waits until the peers were told.
    fn with(&self, error: Error, stop: impl Fn(Error) -> Error) -> Error {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = || {
            self.halt.halt();
            stop(error)
        };
        first.get_or_insert_with(ending).clone()
    }
}

/// A range that panics ends the others too: they would wait for its peers.
struct HaltAfterPanic<'a>(&'a RangeHalt);

impl Drop for HaltAfterPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.halt();
        }
    }
}

/// Runs a range of rows in every session, a thread each, and adds up what they leave: only sums add up. There
/// are as many ranges as sessions, or fewer. What was said over `lanes` is booked in `session`.
///
/// When a range fails, the others end at their next message and `stop` tells the peers
/// ([`net::Farewell::stop`]), both before the channels of that range are dropped. No session is of use then.
///
/// # Errors
/// What `stop` makes of the error of the range that failed first.
pub fn run_lanes<R: Send>(
    program: &Program,
    (session, lanes): (&mut Session, &mut [Session]),
    ranges: Vec<R>,
    run: impl Fn(R, &mut Session) -> Result<Shares, Error> + Sync,
    stop: impl Fn(Error) -> Error + Sync,
) -> Result<Shares, Error> {
    if ranges.is_empty() || ranges.len() > lanes.len() + 1 {
        return Err(Error::misuse("every range of rows has channels of its own"));
    }
    let ending = RangesEnding { halt: RangeHalt::default(), first: Mutex::default() };
    once(&mut *session).chain(&mut *lanes).for_each(|session| session.halts_with(&ending.halt));
    let work = |range, session: &mut Session| {
        let _panics = HaltAfterPanic(&ending.halt);
        let done = run(range, session).map_err(|error| ending.with(error, &stop));
        done.inspect_err(|_| session.cut())
    };
    let work = &work;
    let done: Vec<Result<Shares, Error>> = std::thread::scope(|scope| {
        let mut jobs = once(&mut *session).chain(&mut *lanes).zip(ranges);
        let first = jobs.next();
        let others: Vec<_> = jobs.map(|(lane, range)| scope.spawn(move || work(range, lane))).collect();
        let first = first.map(|(lane, range)| work(range, lane));
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        first.into_iter().chain(others).collect()
    });
    lanes.iter_mut().for_each(|lane| session.book(&lane.take_traffic()));
    let mut total = None::<Shares>;
    for shares in done {
        let shares = shares?;
        match &mut total {
            None => total = Some(shares),
            Some(total) => total.add(program, &shares)?,
        }
    }
    total.ok_or_else(|| Error::misuse("there is a range of rows at least"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ChannelError, Fault, PartyId};
    use net::cluster::Cluster;
    use std::time::{Duration, Instant};

    const RANGES: usize = 4;
    /// Of a channel: what takes longer than a part of it has waited for it.
    const DEADLINE: Duration = Duration::from_secs(60);
    const SOON: Duration = Duration::from_secs(20);

    fn program() -> Program {
        let text = include_str!("../../../examples/aligned.toml").split("text = \"\"\"").nth(1);
        let text = text.and_then(|rest| rest.split("\"\"\"").next()).expect("an example has a program");
        Program::parse(text.trim_start()).unwrap()
    }

    /// By party: a session for every range.
    fn sessions() -> [Vec<Session>; 2] {
        let mut of = [Vec::new(), Vec::new()];
        for seed in 0..RANGES as u64 {
            let ends = Cluster::new(2, seed).deadline(DEADLINE).tiny_window().sessions();
            of.iter_mut().zip(ends).for_each(|(of, end)| of.push(end));
        }
        of
    }

    /// One range fails, one waits for what nobody sends, one for a window that nobody empties, and one talks
    /// on: all are over at once, and the peer knows it before the channels end.
    #[test]
    fn a_range_that_fails_ends_the_others() {
        let (program, told) = (program(), Mutex::new(Vec::new()));
        let work = |me: u8, range: usize, session: &mut Session| -> Result<Shares, Error> {
            let mut link = session.link(PartyId(1 - me));
            match (range, me) {
                (0, 0) => link.recv(&mut [0; 1])?,
                (1, 0) => {
                    // The others are under way.
                    std::thread::sleep(Duration::from_millis(100));
                    return Err(Error::input("a wrong tag"));
                }
                (2, 0) => link.send(&vec![0; 1 << 20])?,
                (3, _) => loop {
                    link.exchange(&[0; 100], &mut [0; 100])?;
                },
                _ => std::thread::sleep(Duration::from_millis(200)),
            }
            link.recv(&mut [0; 1])?;
            Ok(Shares::new(Vec::new()))
        };
        let start = Instant::now();
        let ended: Vec<_> = std::thread::scope(|scope| {
            let party = |(me, mut own): (u8, Vec<Session>)| {
                let (program, told, work) = (&program, &told, &work);
                scope.spawn(move || {
                    let (first, lanes) = own.split_first_mut().unwrap();
                    let stop = |error| {
                        told.lock().unwrap().push(me);
                        error
                    };
                    let run = |range, session: &mut Session| work(me, range, session);
                    run_lanes(program, (first, lanes), (0..RANGES).collect(), run, stop)
                })
            };
            let threads: Vec<_> = (0..).zip(sessions()).map(party).collect();
            threads.into_iter().map(|party| party.join().unwrap().err().unwrap()).collect()
        });
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        assert_eq!(*ended[0].kind(), Fault::Input("a wrong tag".into()), "the first error is told");
        let of_peer = matches!(ended[1].kind(), Fault::Channel(ChannelError::Cut));
        assert!(of_peer && ended[1].at().peer.as_deref() == Some("p0"), "{}", ended[1]);
        assert_eq!(*told.lock().unwrap(), [0, 1], "each tells its peers once, before the other can know");
    }

    #[test]
    #[should_panic(expected = "a bug")]
    fn a_range_that_panics_ends_the_others() {
        let [mut own, _others] = sessions();
        let (first, lanes) = own.split_first_mut().unwrap();
        let run = |range, session: &mut Session| {
            assert!(range != 1, "a bug");
            session.link(PartyId(1)).recv(&mut [0; 1]).map(|()| Shares::new(Vec::new()))
        };
        let start = Instant::now();
        let done = run_lanes(&program(), (first, lanes), (0..RANGES).collect(), run, |error| error);
        panic!("{:?} after {:?}", done.err(), start.elapsed());
    }
}

//! Patience while columns are laid out: a party whose rows are outside memory brings them in the order of the
//! spine, which takes minutes where there are many, and its peer must not take that for silence.

use base::{Cost, Error};
use matching::{MatchSizes, OutputForm};
use net::Session;
use study::Study;

/// Rows that are dealt between two pulses: seconds of work.
const PULSE_ROWS: u64 = 1 << 20;
/// How often rows are dealt: to their blocks, and to the parts of the spine.
const PASSES: u64 = 2;

/// A byte that both sides say to each other now and then, whether or not they lay out anything: who does is
/// nobody else's affair, and how often follows from sizes that both know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayoutPulses {
    /// How many either side says.
    all: u64,
    /// Rows dealt between two.
    every: u64,
}

impl LayoutPulses {
    /// After a match of these sizes. Shares lie in their order already.
    pub fn of(study: &Study, sizes: &MatchSizes) -> Self {
        let (features, one_name) = (study.matching.matcher.features(), study.matching.identifiers.len() == 1);
        let spine = features.form == OutputForm::Spine;
        let lays_out = features.streams && spine && one_name && !study.only_matches();
        match sizes.rows[..] {
            [first, second] if lays_out => Self::new(first.max(second), PULSE_ROWS),
            _ => Self::new(0, PULSE_ROWS),
        }
    }

    fn new(rows: u64, every: u64) -> Self {
        Self { all: (PASSES * rows).checked_div(every).unwrap_or(0), every }
    }

    /// What both sides say.
    pub fn cost(&self, participants: usize) -> Cost {
        let mut cost = Cost::zero(participants);
        if self.all > 0 {
            cost.sent.iter_mut().take(2).for_each(|sent| *sent = self.all);
            cost.rounds = 1;
        }
        cost
    }

    /// Does some work, which says how many rows it has dealt so far, in all passes. What is left to say is
    /// said at its end; then the peer is heard, until it has done its own.
    ///
    /// # Errors
    /// Those of `work` and of the conversation.
    pub fn around<T>(
        &self,
        session: &mut Session,
        work: impl FnOnce(&mut dyn FnMut(u64) -> Result<(), Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.all == 0 {
            return work(&mut |_| Ok(()));
        }
        let peer = session.me().other();
        session.step("columns", |session| {
            let mut said = 0;
            let mut say_up_to = |due: u64| {
                while said < due.min(self.all) {
                    session.link(peer).send(&[0])?;
                    session.link(peer).flush()?;
                    said += 1;
                }
                Ok(())
            };
            let done = work(&mut |rows| say_up_to(rows / self.every))?;
            say_up_to(self.all)?;
            // None waits for another: a few thousand bytes lie in the channel until they are wanted.
            (0..self.all).try_for_each(|_| session.link(peer).recv(&mut [0]))?;
            Ok(done)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::cluster::Cluster;
    use std::time::Duration;

    const LIFT: &str = include_str!("../../../../examples/lift.toml");

    /// A party that works for longer than its peer's deadline is waited for, and both say what was priced.
    #[test]
    fn a_peer_waits_for_columns_that_are_laid_out() {
        let pulses = LayoutPulses::new(1000, 100);
        let done = Cluster::new(2, 3).deadline(Duration::from_millis(1000)).run(|session| {
            let me = session.me();
            let work = |dealt: &mut dyn FnMut(u64) -> Result<(), Error>| {
                (0..if me.0 == 0 { 15 } else { 0 }).try_for_each(|i| {
                    std::thread::sleep(Duration::from_millis(120));
                    dealt(100 * i + 50)
                })
            };
            pulses.around(session, work)?;
            Ok([session.traffic().sent("columns"), session.traffic().turns("columns")])
        });
        let cost = pulses.cost(2);
        for (party, said) in done.into_iter().enumerate() {
            assert_eq!(said.unwrap(), [cost.sent[party], cost.rounds]);
        }
    }

    /// Few rows are laid out in no time: nothing is said.
    #[test]
    fn few_rows_say_nothing() {
        let study = Study::parse("study.toml", LIFT).unwrap();
        let pulses = |rows: [u64; 2]| LayoutPulses::of(&study, &MatchSizes::apart(&rows, 1)).all;
        assert_eq!([[0, 0], [1 << 18, PULSE_ROWS / 2 - 1]].map(pulses), [0, 0]);
        assert_eq!(pulses([5, 3 * PULSE_ROWS]), 6);
        let joins = Study::parse("study.toml", &LIFT.replace("\"pid\"", "\"ps3i\"")).unwrap();
        assert_eq!(LayoutPulses::of(&joins, &MatchSizes::apart(&[PULSE_ROWS; 2], 1)).all, 0, "no columns");
        assert_eq!(LayoutPulses::of(&study, &MatchSizes::apart(&[PULSE_ROWS; 3], 1)).all, 0);
    }
}

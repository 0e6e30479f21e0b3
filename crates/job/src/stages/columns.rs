//! Patience while columns are laid out: a party whose rows are outside memory brings them in the order of the
//! spine, or writes down its shares of them, which takes minutes where there are many, and its peers must not
//! take that for silence.

use crate::spool::study_spools;
use base::{Cost, Error, PartyId};
use matching::{MatchSizes, OutputForm};
use net::Session;
use study::Study;

/// Rows that are dealt between two pulses: seconds of work.
const PULSE_ROWS: u64 = 1 << 20;
/// How often rows are dealt: to their blocks, and to the parts of the spine.
const PASSES: u64 = 2;

/// A byte that all say to each other now and then, whether or not they lay out anything: who does is nobody
/// else's affair, and how often follows from sizes that all know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayoutPulses {
    /// How many each says to each other one.
    all: u64,
    /// Rows dealt between two.
    every: u64,
}

impl LayoutPulses {
    /// After a match of these sizes. Shares lie in their order already.
    pub fn of(study: &Study, sizes: &MatchSizes) -> Self {
        let most = sizes.rows.iter().copied().max().unwrap_or(0);
        // Shares come out along joined rows: nothing is laid out.
        let spine = study.matching.matcher.features().form == OutputForm::Spine;
        Self::new(if study_spools(study) && spine { PASSES * most } else { 0 }, PULSE_ROWS)
    }

    /// While so many rows are written down that both hold shares of: under no price, since who keeps them is
    /// the parties' own affair.
    pub fn of_kept(rows: u64) -> Self {
        Self::new(rows, PULSE_ROWS)
    }

    fn new(dealt: u64, every: u64) -> Self {
        Self { all: dealt.checked_div(every).unwrap_or(0), every }
    }

    /// What all say.
    pub fn cost(&self, participants: usize) -> Cost {
        let mut cost = Cost::zero(participants);
        if self.all > 0 {
            let peers = participants as u64 - 1;
            cost.sent.fill(self.all * peers);
            cost.rounds = peers;
        }
        cost
    }

    /// Does some work, which says how many rows it has dealt so far, in all passes. What is left to say is
    /// said at its end; then the peers are heard, until they have done their own.
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
        let me = session.me();
        let peers: Vec<PartyId> = session.roster().parties().filter(|&peer| peer != me).collect();
        session.step("columns", |session| {
            let mut said = 0;
            let mut say_up_to = |due: u64| {
                while said < due.min(self.all) {
                    for &peer in &peers {
                        session.link(peer).send(&[0])?;
                        session.link(peer).flush()?;
                    }
                    said += 1;
                }
                Ok(())
            };
            let done = work(&mut |rows| say_up_to(rows / self.every))?;
            say_up_to(self.all)?;
            // None waits for another: a few thousand bytes lie in the channel until they are wanted.
            for &peer in &peers {
                (0..self.all).try_for_each(|_| session.link(peer).recv(&mut [0]))?;
            }
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

    /// A party that works for longer than its peers' deadline is waited for, and all say what was priced.
    #[test]
    fn peers_wait_for_columns_that_are_laid_out() {
        let pulses = LayoutPulses::new(2000, 100);
        for parties in [2, 3] {
            let done = Cluster::new(parties, 3).deadline(Duration::from_millis(1000)).run(|session| {
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
            let cost = pulses.cost(parties);
            for (party, said) in done.into_iter().enumerate() {
                assert_eq!(said.unwrap(), [cost.sent[party], cost.rounds]);
            }
        }
    }

    /// Few rows are laid out in no time: nothing is said.
    #[test]
    fn few_rows_say_nothing() {
        let study = Study::parse("study.toml", LIFT).unwrap();
        let pulses = |rows: [u64; 2]| LayoutPulses::of(&study, &MatchSizes::apart(&rows, 1)).all;
        assert_eq!([[0, 0], [1 << 18, PULSE_ROWS / 2 - 1]].map(pulses), [0, 0]);
        assert_eq!(pulses([5, 3 * PULSE_ROWS]), 6);
        assert_eq!(LayoutPulses::of(&study, &MatchSizes::apart(&[PULSE_ROWS; 3], 1)).all, 2);
        // Shares come out along joined rows: no columns are laid out, and nothing of the kind is priced.
        for joins in ["ps3i", "circuit-psi"] {
            let study = LIFT.replace("protocol    = \"pid\"", &format!("protocol = \"{joins}\""));
            let study = Study::parse("study.toml", &study).unwrap();
            assert_eq!(LayoutPulses::of(&study, &MatchSizes::apart(&[PULSE_ROWS; 2], 1)).all, 0);
        }
    }
}

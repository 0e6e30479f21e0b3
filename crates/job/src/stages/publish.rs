//! Group sizes that a release mode makes public: the publisher says them to everybody before its release is
//! scaled (decision 006).

use super::{Stage, Tells};
use crate::engines::Estimate;
use crate::plan::{Link, Speeds};
use crate::prepare::Built;
use crate::run::agree::tell_all;
use base::{Cost, Error};
use engine::Shares;
use net::Session;
use program::lower::WordKind;
use report::Disclosure;
use studies::lift::PUBLISHER;
use study::{Question, Study};

const SIZES_BYTES: u64 = 16;

/// What is published.
pub(crate) struct PublishStage {
    folds: [u32; 2],
    minimum: u64,
    participants: usize,
}

impl PublishStage {
    /// The stage of a study; `None` where nothing is published.
    pub fn new(study: &Study, built: &Built) -> Option<Self> {
        let folds = built.lift.as_ref()?.1.published?;
        let Question::Lift(lift) = &study.kind else { return None };
        Some(Self { folds, minimum: lift.release.minimum_group, participants: study.roster().len() })
    }

    /// Says or hears the sizes. Too small a group is not even said.
    ///
    /// # Errors
    /// Sizes that are too small or do not add up, parties that heard different ones, and those of the
    /// conversation.
    pub fn run(
        &self,
        totals: &Shares,
        disclosed: &Disclosure,
        session: &mut Session,
    ) -> Result<[u64; 2], Error> {
        session.step(self.name(), |s| match s.me() == PUBLISHER {
            true => self.say(totals, s),
            false => hear_groups(s, disclosed, self.minimum),
        })
    }

    fn say(&self, totals: &Shares, session: &mut Session) -> Result<[u64; 2], Error> {
        let mut groups = [0; 2];
        for (group, fold) in groups.iter_mut().zip(self.folds) {
            let total = totals.word(WordKind::Alone(fold), PUBLISHER)?;
            *group = u64::try_from(total).map_err(|_| Error::misuse("a group is larger than the study"))?;
        }
        release::modes::check_public_groups(groups[0], groups[1], self.minimum)?;
        for peer in session.peers() {
            groups.iter().try_for_each(|group| session.link(peer).send(&group.to_le_bytes()))?;
            session.link(peer).flush()?;
        }
        same_groups(session, groups)
    }
}

impl Stage for PublishStage {
    type Sizes = ();

    fn name(&self) -> &'static str {
        "publish"
    }

    fn price(&self, (): &()) -> Result<Cost, Error> {
        let (mut cost, others) = (Cost::zero(self.participants), self.participants as u64 - 1);
        cost.sent[PUBLISHER.index()] = SIZES_BYTES * others;
        cost.rounds = 1;
        if others > 1 {
            cost.sent.iter_mut().for_each(|sent| *sent += SIZES_BYTES * others);
            cost.rounds += 1;
        }
        Ok(cost)
    }

    fn estimate(&self, link: Link, _speeds: Speeds) -> Result<Estimate, Error> {
        Ok(Estimate::of_messages(self.price(&())?, link, 0.5))
    }

    fn tells(&self) -> Vec<Tells> {
        vec![Tells::everybody("how many rows the test and the control group have".to_owned())]
    }
}

/// Group sizes as the publisher tells them to everybody else.
pub(crate) fn hear_groups(
    session: &mut Session,
    disclosed: &Disclosure,
    minimum: u64,
) -> Result<[u64; 2], Error> {
    let rows = disclosed.rows[PUBLISHER.index()];
    let mut read = || session.link(PUBLISHER).recv_count("group size", base::limits::ROWS);
    let groups = [read()?, read()?];
    // Among rows that hide the number are made-up ones, which are in no group.
    let told = groups[0] + groups[1];
    if told > rows || told < rows && disclosed.dummies.is_none() && !disclosed.kept_spine {
        return Err(session.link(PUBLISHER).blame("its group sizes do not add up to the rows it matched"));
    }
    release::modes::check_public_groups(groups[0], groups[1], minimum)?;
    same_groups(session, groups)
}

/// With servers, everybody compares the group sizes: who computes with other ones would be blamed for it.
fn same_groups(session: &mut Session, groups: [u64; 2]) -> Result<[u64; 2], Error> {
    if session.roster().len() == 2 {
        return Ok(groups);
    }
    let mine: [u8; 16] = groups.map(u64::to_le_bytes).as_flattened().try_into().expect("two sizes");
    match tell_all(session, mine)?.into_iter().find(|(_, theirs)| *theirs != mine) {
        None => Ok(groups),
        Some((peer, _)) => {
            Err(session.accuse_one_of(&[PUBLISHER, peer], "they say different things about the group sizes"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Share;
    use net::cluster::{Cluster, pinned};

    const GROUPS: [u64; 2] = [2400, 2600];

    /// What each says, and that it is the price.
    fn published(parties: usize) -> String {
        let stage = PublishStage { folds: [0, 1], minimum: 1000, participants: parties };
        let price = stage.price(&()).unwrap();
        Cluster::new(parties, 9).wire(|session| {
            let folds = GROUPS.map(|group| match session.me() == PUBLISHER {
                true => Share::Known(group.into()),
                false => Share::Absent,
            });
            let disclosed = Disclosure { rows: vec![5000; parties], ..Disclosure::default() };
            assert_eq!(stage.run(&Shares::new(folds.into()), &disclosed, session)?, GROUPS);
            assert_eq!(session.traffic().sent("publish"), price.sent[session.me().index()]);
            Ok(())
        })
    }

    #[test]
    fn the_wire_is_pinned() {
        pinned(&[
            ("release, group sizes between two", published(2), "75861fbce21ee42e"),
            ("release, group sizes among three", published(3), "28095c3917deeb2a"),
        ]);
    }
}

//! What an owner brings to the match, and what comes of it.

use super::agree::Agreement;
use super::join::{self, Attached, Half, JoinedRange, Payloads, Shared};
use super::owner::OwnerRun;
use super::spine::{self, KeptSpine};
use crate::align::{Aligned, RangeRows};
use crate::kept::{KeptMatch, MatchDraw, MatchedRecord, RunLog};
use crate::memory::{self, MemoryShares};
use crate::prepare::{Built, Checked};
use crate::ranges::RowRanges;
use crate::stages::Stage as _;
use crate::stages::columns::LayoutPulses;
use crate::stages::compute::UnitRows;
use crate::stages::link::LinkFacts;
use crate::stages::matching::{MatchStage, MatchUnit};
use base::{Cost, Error, PartyId};
use data::{RecentBlocks, RowKeys, RowStore, Rows};
use matching::dummies::Dummies;
use matching::spill::SpillRoom;
use matching::{
    ContaminatedRule, IdentifierSource, JoinedShares, MatchDisclosure, MatchOptions, MatchOutput, MatchSpine,
    PayloadSource, RepeatRule, salted_key,
};
use privacy::dummies;
use release::rational::small;
use report::{Disclosure, DummiesInfo};
use std::path::Path;
use std::sync::Arc;
use study::{Study, TrialArm};

/// Of how many parts of the match's memory own values along its joined rows have one: they are there beside
/// shares of the peer's.
const OWN_VALUES: u64 = 4;

/// What a match gives the computation, and what it told.
pub(crate) struct MatchedRows {
    pub rows: Placed,
    pub disclosed: Disclosure,
}

/// Rows of all parties, brought together.
pub(crate) enum Placed {
    /// This party's rows lie on a common spine.
    Spine(Arc<Aligned>),
    /// All hold shares of rows.
    Joined(Arc<join::Shared>),
    /// The same, of columns as they are: nothing is computed on them.
    Shares(Box<Attached>, Box<JoinedShares>),
}

impl Placed {
    /// How many there are; the same at all parties.
    pub fn count(&self) -> u64 {
        match self {
            Self::Spine(aligned) => aligned.union(),
            Self::Joined(shared) => shared.rows(),
            Self::Shares(_, joined) => joined.rows,
        }
    }

    /// What one unit of the computation gets of them.
    pub fn unit(&self, built: &Built, me: PartyId, ranges: &RowRanges, unit: u64) -> Result<UnitRows, Error> {
        Ok(match self {
            Self::Spine(aligned) => {
                UnitRows::Owned(RangeRows::new(aligned.clone(), built, me, ranges.range(unit))?)
            }
            Self::Joined(shared) => UnitRows::Joined(JoinedRange::new(shared.clone(), ranges, unit)?),
            Self::Shares(..) => {
                return Err(Error::misuse("nothing is computed on rows that are only matched"));
            }
        })
    }

    /// This party's rows by their places, where it knows them.
    pub fn aligned(&self) -> Option<&Aligned> {
        match self {
            Self::Spine(aligned) => Some(aligned),
            Self::Joined(_) | Self::Shares(..) => None,
        }
    }
}

/// What this party brings to a match that gives shares.
enum Brought {
    /// Nothing: the match gives a spine.
    Nothing,
    /// Columns as they are.
    Columns(Attached),
    /// What the computation reads.
    Values(Box<Half>),
}

impl Brought {
    /// Of this party's rows.
    fn of(checked: &Checked, dummies: bool) -> Result<Self, Error> {
        let Checked { study, built, engines, me, rows, .. } = checked;
        if study.matching.matcher.features().form.shared().is_none() {
            return Ok(Self::Nothing);
        }
        if study.only_matches()
            && let Rows::Program(columns) = &**rows.in_memory(study.matching.matcher.name())?
        {
            return Attached::columns(&built.program, columns, *me, dummies).map(Self::Columns);
        }
        let plan = engines.joined().ok_or_else(|| Error::misuse("the engine of a study fits its match"))?;
        let half = Half::new(built, rows, *me, plan.clone())?;
        Ok(Self::Values(Box::new(half)))
    }

    /// What a row that is not there has attached.
    fn blank(&self) -> Option<&[u8]> {
        match self {
            Self::Nothing => None,
            Self::Columns(attached) => Some(attached.blank()),
            Self::Values(half) => Some(&half.blank),
        }
    }

    /// What own rows have, in the order of `order`.
    fn payload<'a>(
        &'a self,
        checked: &'a Checked,
        order: &'a [u32],
    ) -> Result<Option<Box<dyn PayloadSource + 'a>>, Error> {
        Ok(match self {
            Self::Nothing => None,
            Self::Columns(attached) => Some(Box::new(attached.own()?)),
            Self::Values(half) => Some(Box::new(half.values(&checked.built, &checked.rows, order))),
        })
    }

    /// With the shares of it that came out, and own rows in the order of `order` where they are in the clear,
    /// which are laid out within `room`.
    fn placed(
        self,
        checked: &Checked,
        order: &[u32],
        (joined, room): (JoinedShares, &SpillRoom),
    ) -> Result<Placed, Error> {
        match self {
            Self::Nothing => Err(Error::misuse("a spine is no join")),
            Self::Columns(attached) => Ok(Placed::Shares(Box::new(attached), Box::new(joined))),
            Self::Values(half) => {
                let own = (&checked.built, &checked.rows, order);
                Ok(Placed::Joined(Arc::new(Shared::new(*half, joined, own, room)?)))
            }
        }
    }
}

/// Whether a party's values become shares.
fn shares(study: &Study, party: PartyId) -> bool {
    study.matching.matcher.features().form.shared().is_some_and(|shared| shared[party.index()])
}

impl OwnerRun<'_> {
    /// Brings this party's rows in line with the others', after the ledger was charged for what that shows.
    pub(super) fn place_rows(
        &mut self,
        stage: &MatchStage<'_>,
        (agreement, link): (&Agreement, Option<LinkFacts>),
    ) -> Result<MatchedRows, Error> {
        self.log.begin(stage.name(), stage.items());
        if let Some(matched) = self.matched.clone() {
            return self.take_up(stage, agreement, &matched);
        }
        let (rows, disclosed, price) = match &self.kept_spine {
            Some(spine) => self.reuse(stage, spine)?,
            None => {
                let begun = self.begin_match(agreement)?;
                let dummies = self.dummies(agreement, &begun)?;
                self.sizes_paid = dummies.is_some().then(|| self.begun_id(agreement));
                self.match_anew(stage, dummies, (agreement, begun))?
            }
        };
        let in_match = dummies::in_match(&self.checked.study)?.filter(|_| !disclosed.size_hidden);
        let disclosed = Disclosure {
            uncovered: dummies::uncovered(&self.checked.study),
            dummies: dummies::charge(&self.checked.study, self.checked.me)?.map(|charge| DummiesInfo {
                epsilon: charge.epsilon.to_string(),
                rho: charge.rho.to_string(),
                delta: small(&charge.delta),
                in_match: in_match.map(|[mean, _]| mean),
                in_match_sigma: in_match.map(|[_, sigma]| sigma),
            }),
            ..disclosed
        };
        self.log.spend(&self.match_said(), stage.name());
        self.record(agreement, link, &rows, &disclosed)?;
        self.log.end(&self.match_said(), stage.name(), rows.count(), price);
        self.match_done.iter().for_each(|done| self.log.again(done));
        Ok(MatchedRows { rows, disclosed })
    }

    /// What an earlier process of this run has matched and written down.
    fn take_up(
        &mut self,
        stage: &MatchStage<'_>,
        agreement: &Agreement,
        matched: &MatchedRecord,
    ) -> Result<MatchedRows, Error> {
        let Checked { built, engines, rows, me, roster, .. } = self.checked;
        let rows = match (&matched.rows, engines.joined(), rows.spool()) {
            (KeptMatch::Spine(columns), ..) => {
                Placed::Spine(Arc::new(Aligned::reopened(rows.clone(), columns)?))
            }
            (KeptMatch::Joined(joined), Some(plan), Some((state, _))) => {
                let payloads = Payloads::new(built, plan.clone())?;
                Placed::Joined(Arc::new(Shared::reopened(payloads, *me, (state, joined))?))
            }
            (KeptMatch::Joined(_), ..) => return Err(Error::misuse("joined rows are of another study")),
        };
        self.sizes_paid = matched.sizes_paid.then(|| self.begun_id(agreement));
        self.forget_keys()?;
        let price = Cost::zero(roster.len());
        self.log.spend(self.session.traffic(), stage.name());
        self.log.end(self.session.traffic(), stage.name(), rows.count(), price);
        Ok(MatchedRows { rows, disclosed: Disclosure { resumed: true, ..matched.disclosed.clone() } })
    }

    /// Writes down what rows are matched to, where a run goes on from that; what the match kept for itself
    /// goes once the peer has as well.
    fn record(
        &mut self,
        agreement: &Agreement,
        link: Option<LinkFacts>,
        rows: &Placed,
        disclosed: &Disclosure,
    ) -> Result<(), Error> {
        let log = self.kept.as_mut().filter(|log| log.shared);
        let (Some(log), Some((state, _))) = (log, self.checked.rows.spool()) else { return Ok(()) };
        let peer = self.checked.me.other();
        self.session.step("kept", |session| {
            let rows = match rows {
                Placed::Spine(aligned) => aligned.kept().map(KeptMatch::Spine),
                Placed::Joined(shared) => {
                    let pulses = LayoutPulses::of_kept(shared.to_write());
                    let kept = pulses.around(session, |written| shared.keep(state, written))?;
                    Some(KeptMatch::Joined(kept))
                }
                Placed::Shares(..) => None,
            };
            let rows = rows.ok_or_else(|| Error::misuse("what is matched in state lies there"))?;
            let (of, settled) = ((agreement.name, &agreement.tags[..]), (self.workers, link));
            let told = (disclosed, self.sizes_paid.is_some());
            log.set_matched(MatchedRecord::new(of, rows, log.units_folder(), settled, told))?;
            session.link(peer).exchange(&[1], &mut [0])
        })?;
        self.forget_keys()
    }

    /// Forgets the keys of a match that is written down at both, and what went with them.
    fn forget_keys(&mut self) -> Result<(), Error> {
        self.kept.as_deref_mut().map_or(Ok(()), RunLog::forget_match)?;
        let Some(folder) = self.journal().filter(|folder| folder.exists()) else { return Ok(()) };
        matching::forget(&folder)
    }

    fn match_anew(
        &mut self,
        stage: &MatchStage<'_>,
        dummies: Option<Dummies>,
        (agreement, draw): (&Agreement, MatchDraw),
    ) -> Result<(Placed, Disclosure, Cost), Error> {
        let rows = self.checked.rows.clone();
        let looks = self.checked.study.matching.contaminated != ContaminatedRule::Ignore;
        let order = if looks { ArmOrder::of(&rows)? } else { ArmOrder::default() };
        let brought = Brought::of(self.checked, dummies.is_some())?;
        let mut options = self.match_options(stage, dummies, agreement)?;
        options.lists = order.test;
        options.blank = brought.blank().map(<[u8]>::to_vec);
        let payload = match shares(&self.checked.study, self.checked.me) {
            true => brought.payload(self.checked, &order.rows)?,
            false => None,
        };
        let resumed = options.resume.as_ref().is_some_and(|folder| folder.exists());
        let room =
            SpillRoom::new(options.memory.map(|memory| memory / OWN_VALUES), options.scratch.as_deref());
        let identifiers = &OwnKeys::new(&rows, &order.rows)?;
        let unit = MatchUnit { identifiers, payload: payload.as_deref(), options };
        let over_lanes = self.matches_over_lanes();
        let done = match over_lanes {
            true => self.match_over_lanes(stage, &unit, (agreement, draw))?,
            false => stage.run(&unit, &mut self.session)?,
        };
        drop(unit);
        drop(payload);
        let placed = match done.output {
            MatchOutput::Shares(joined) => brought.placed(self.checked, &order.rows, (joined, &room))?,
            MatchOutput::Spine(spine) => {
                Placed::Spine(Arc::new(self.aligned(stage, spine, &order, &done.disclosed, agreement)?))
            }
        };
        let mut price = match over_lanes {
            true => stage.price_over_lanes(&done.disclosed.sizes, self.units_of_match()),
            false => stage.price(&done.disclosed.sizes)?,
        };
        if resumed {
            // A match that goes on sends what is left: the price is then the most that it can cost.
            price = self.spent_on(stage.name(), price);
        }
        Ok((placed, stage.disclosure(done.disclosed), price))
    }

    /// Own rows along the spine that came out.
    fn aligned(
        &mut self,
        stage: &MatchStage<'_>,
        spine: MatchSpine,
        order: &ArmOrder,
        told: &MatchDisclosure,
        agreement: &Agreement,
    ) -> Result<Aligned, Error> {
        let Checked { rows, .. } = self.checked;
        let memory = MemoryShares::of(self.party.memory, rows.len()).laying;
        let in_memory = match rows.spool() {
            Some(_) => None,
            None => {
                let positions = order.back(spine.mine.positions()?);
                self.keep_spine(told, &positions, agreement)?;
                Some(Aligned::new(rows.clone(), &positions, spine.rows)?)
            }
        };
        let by_parts = |dealt: &mut dyn FnMut(u64) -> Result<(), Error>| match in_memory {
            Some(aligned) => Ok(aligned),
            None => Aligned::by_parts(rows.clone(), spine, (self.workers, memory), dealt),
        };
        let pulses = stage.pulses(&told.sizes);
        self.session.step(stage.name(), |session| pulses.around(session, by_parts))
    }

    /// How this party matches.
    fn match_options(
        &self,
        stage: &MatchStage<'_>,
        dummies: Option<Dummies>,
        agreement: &Agreement,
    ) -> Result<MatchOptions, Error> {
        let Checked { study, inputs, hash, rows, .. } = &self.checked;
        let memory = match rows.spool() {
            Some(_) => MemoryShares::of(self.party.memory, rows.len()).room,
            None => self.party.memory.saturating_sub(inputs.memory).max(matching::spill::MEMORY_MIN),
        };
        let key = |salt| Arc::new(salted_key::key(salt, hash.as_bytes(), &agreement.name));
        let salt = self.salt.as_ref().map(key);
        // Whoever read the rows has settled repeats: one that is left is refused, not replaced.
        let repeats = RepeatRule::Error;
        let agreed = stage.agreed.clone();
        let mut options = MatchOptions { memory: Some(memory), dummies, salt, repeats, ..agreed };
        let features = study.matching.matcher.features();
        if rows.spool().is_some() {
            // A peer states its rows before any come: more than columns within `memory` are for is refused.
            options.peer_rows_max = memory::peer_rows_max(self.party.memory, rows.len());
        }
        if features.streams {
            let state = rows.spool().and_then(|(state, _)| state.sealed().store().folder());
            options.scratch = self.party.work.clone().or_else(|| state.map(Path::to_path_buf));
            let folder = options.scratch.clone().unwrap_or_else(std::env::temp_dir);
            options.scratch_left = store::free_bytes(&folder);
        }
        if features.resumes {
            options.resume = self.journal();
            options.stays = self.kept.as_ref().is_some_and(|log| log.shared);
            options.afresh = if self.is_cut() { self.afresh(agreement)? } else { None };
        }
        Ok(options)
    }

    /// What was said under a step, where a price is only an upper bound of it.
    fn spent_on(&self, name: &str, most: Cost) -> Cost {
        let said = self.session.traffic();
        let me = self.checked.me.index();
        let mut sent = said.received_by_peer(name, most.sent.len());
        sent[me] = said.sent(name);
        let within = sent.iter().zip(&most.sent).all(|(sent, most)| sent <= most);
        if within { Cost { sent, ..most } } else { most }
    }

    /// Own rows on a kept spine; that all parties use the same was agreed on before.
    fn reuse(&self, stage: &MatchStage<'_>, spine: &KeptSpine) -> Result<(Placed, Disclosure, Cost), Error> {
        let Checked { rows, roster, .. } = &self.checked;
        let told = stage.disclosure(MatchDisclosure::of(spine.sizes()));
        let disclosed = Disclosure { kept_spine: true, ..told };
        let identifiers = rows.in_memory("a spine that is used again")?.identifiers();
        let aligned = Aligned::new(rows.clone(), &spine.positions(identifiers)?, disclosed.union)?;
        Ok((Placed::Spine(Arc::new(aligned)), disclosed, Cost::zero(roster.len())))
    }

    fn keep_spine(
        &self,
        told: &MatchDisclosure,
        positions: &[u32],
        agreement: &Agreement,
    ) -> Result<(), Error> {
        let Some(path) = &self.party.keep_spine else { return Ok(()) };
        let Checked { study, rows, me, .. } = &self.checked;
        let (path, rows) = (spine::file(path, study), rows.in_memory("a spine that is kept")?);
        KeptSpine::new(path, agreement.name, &told.sizes, rows.identifiers(), positions).write(study, *me)
    }
}

/// Rows by arm: those of the test arm before the others.
#[derive(Default)]
pub(crate) struct ArmOrder {
    /// Own row by place; empty for the order of the file.
    pub rows: Vec<u32>,
    /// How many are of the test arm, at the party that knows.
    pub test: Option<u64>,
}

impl ArmOrder {
    /// Reads the arms of all rows: four bytes of memory per row.
    pub fn of(rows: &RowStore) -> Result<Self, Error> {
        let (mut by_arm, mut known) = ([Vec::new(), Vec::new()], false);
        rows.each_block(|first, rows| {
            let Rows::Publisher(publisher) = rows else { return Ok(()) };
            known = true;
            for (row, arm) in (first as u32..).zip(&publisher.arm) {
                by_arm[usize::from(*arm != TrialArm::Test)].push(row);
            }
            Ok(())
        })?;
        let [mut rows, control] = by_arm;
        let test = known.then_some(rows.len() as u64);
        rows.extend(control);
        Ok(Self { rows, test })
    }

    /// Results by place, in the order of the file.
    fn back(&self, by_place: Vec<u32>) -> Vec<u32> {
        if self.rows.is_empty() {
            return by_place;
        }
        let mut by_row = vec![0; by_place.len()];
        self.rows.iter().zip(by_place).for_each(|(row, value)| by_row[*row as usize] = value);
        by_row
    }
}

/// Normalised identifiers as matching reads them, in an order of their rows; an empty one is that of the
/// store.
pub(crate) struct OwnKeys<'a> {
    rows: &'a RowStore,
    /// Where all are in memory.
    at_hand: Option<&'a RowKeys>,
    keys: usize,
    order: &'a [u32],
    recent: RecentBlocks,
}

impl<'a> OwnKeys<'a> {
    pub fn new(rows: &'a RowStore, order: &'a [u32]) -> Result<Self, Error> {
        let at_hand = match rows.spool() {
            Some(_) => None,
            None => Some(rows.in_memory("the match")?.identifiers()),
        };
        let keys = at_hand.map_or(1, RowKeys::keys);
        Ok(Self { rows, at_hand, keys, order, recent: RecentBlocks::default() })
    }
}

impl IdentifierSource for OwnKeys<'_> {
    fn rows(&self) -> u64 {
        self.rows.len()
    }

    fn keys(&self) -> usize {
        self.keys
    }

    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let row = self.order.get(row as usize).copied().unwrap_or(row);
        into.clear();
        if let Some(keys) = self.at_hand {
            into.extend_from_slice(keys.get(row as usize, key));
            return Ok(());
        }
        let (block, at) = self.rows.locate(row.into(), &self.recent)?;
        into.extend_from_slice(block.identifiers().get(at, key));
        Ok(())
    }
}

//! What a run keeps in `state`, so that it goes on after whatever ended its process.
//!
//! A run whose rows lie in `state` writes a log there: that its rows are laid down and under which names,
//! how far a match over lanes is, that they are matched and where what came of it lies, which units are held,
//! that its release begins. The
//! next run of the same party, study and unchanged input opens that state instead of reading, and the two
//! parties leave out what both hold of one match ([`crate::run`]). Shares that a release holds are the
//! ledger's, as always.
//!
//! Who leads the log is the only one that goes on: another process finds its next number taken and stops
//! ([`store::StateLog`]).

mod join;
mod promises;
mod record;
mod shown;
mod spent;
mod under_way;

pub(crate) use join::{KeptJoin, KeptObject, KeptValid};
pub use record::KeptStage;
pub(crate) use record::{BegunRecord, KeptColumns, KeptMatch, KeptRecord, MatchedRecord};
pub use shown::{KeptStudy, KeptSummary, drop_kept, is_under_way, summaries};
pub(crate) use shown::{forget_expired, journal_of};
pub(crate) use spent::SpentBook;
pub(crate) use under_way::{MatchDraw, UnitPin};

use crate::prepare::Checked;
use crate::run::outsourced;
use crate::spool::{spools, state_key, study_spools};
use crate::workers::{COMPUTE, FinishedWork, failed_unit, stage_of_match};
use base::{Error, PartyId};
use data::{DataLocation, InputReport, RowShape, RowStore};
use matching::pid::{LaneNotes, LaneStage};
use privacy::ledger::{Bytes32, Ledger};
use promises::PromiseBook;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use store::{KeptName, LogRecord, RunState, StateKey, StateLog, StateStore, StoreError, kept_runs};
use study::Study;
use study::party::PartySetup;
use under_way::{UnderWay, forget_held, held, last_of, read_work};
use units::UnitRecord;
use zeroize::Zeroizing;

/// Whether a run of a study goes on from its state: units of rows, along a spine or joined to shares, between
/// two who compute themselves.
pub(crate) fn goes_on(study: &Study) -> bool {
    study_spools(study) && outsourced::computes_in_units(study)
}

/// Whether a party has a place for that, of so many runs at a time.
pub(crate) fn may_be_kept(party: &PartySetup, study: &Study, runs: usize) -> bool {
    party.state.is_some() && spools(party, study, runs) && goes_on(study)
}

/// The run of a party and study that broke off, and what it has laid down of its input.
pub(crate) struct KeptRun {
    state: Arc<RunState>,
    begun: BegunRecord,
    stage: KeptStage,
    /// Whether its files were written again since, and hold the same.
    pub touched: bool,
}

/// What a look for such a run finds.
pub(crate) enum KeptFound {
    Nothing,
    /// Runs there that cannot be opened: another party's, or damaged ones.
    Unreadable(Vec<String>),
    /// One of other input: its files were changed since.
    OtherInput,
    Run(Box<KeptRun>),
}

impl KeptRun {
    /// Looks in this party's state, with the version of its input now. Files that were written again are read
    /// where they may hold what they held.
    ///
    /// # Errors
    /// When another process of this machine leads the run, another version of tacit wrote it, the store
    /// fails, or such a file cannot be read.
    pub fn find(
        party: &PartySetup,
        study: &Study,
        (data, input): (DataLocation<'_>, &Bytes32),
    ) -> Result<KeptFound, Error> {
        let Some(place) = &party.state else { return Ok(KeptFound::Nothing) };
        let store = StateStore::open(place, &party.store)?;
        let mut found = KeptFound::Nothing;
        let names = kept_runs(&store)?;
        if names.is_empty() {
            return Ok(found);
        }
        let key = state_key(party)?;
        let (own, unreadable) = own_runs(&store, &key, (party, study), &names)?;
        if !unreadable.is_empty() {
            found = KeptFound::Unreadable(unreadable.iter().map(|name| name.place(&store)).collect());
        }
        for (name, begun, _) in own {
            let touched = begun.input != base::hex(input);
            if touched && !begun.content.map_or(Ok(false), |content| content.is_of(data))? {
                found = KeptFound::OtherInput;
                continue;
            }
            begun.expect_readable(&name.place(&store))?;
            let state = Arc::new(RunState::resume(store.clone(), &key, &name, &party.as_party)?);
            // Who led it until now may have written more, or ended it.
            if !kept_runs(&store)?.contains(&name) {
                continue;
            }
            let (now, _) = own_runs(&store, &key, (party, study), std::slice::from_ref(&name))?;
            let Some((_, begun, records)) = now.into_iter().next() else { continue };
            let stage = KeptStage::of(&records, &name.place(&store))?;
            return Ok(KeptFound::Run(Box::new(Self { state, begun, stage, touched })));
        }
        Ok(found)
    }

    /// Whether its rows are matched.
    pub fn matched(&self) -> bool {
        self.stage.matched
    }

    /// Its rows, and what reading them did.
    ///
    /// # Errors
    /// When the study's program does not parse.
    pub fn rows(&self, study: &Study, me: PartyId) -> Result<(RowStore, InputReport), Error> {
        let shape = RowShape::of(study, me)?;
        Ok((RowStore::reopened(self.state.clone(), shape, &self.begun.rows), self.begun.inputs.clone()))
    }
}

/// A run with the record by which it began, and all.
type OwnRun = (KeptName, BegunRecord, Vec<LogRecord>);

/// Runs of a party and study among those that are kept, and those that cannot be opened.
fn own_runs(
    store: &StateStore,
    key: &StateKey,
    (party, study): (&PartySetup, &Study),
    names: &[KeptName],
) -> Result<(Vec<OwnRun>, Vec<KeptName>), Error> {
    let hash = study.hash().full();
    let (mut own, mut unreadable) = (Vec::new(), Vec::new());
    for name in names {
        let records = match name.records(store, key, &party.as_party) {
            // Another party's, or one that nobody opens any more.
            Err(StoreError::Damaged { .. }) => {
                unreadable.push(name.clone());
                continue;
            }
            records => records?,
        };
        // One of another study may be of another version: that is the other one's affair.
        if let Some(first) = records.first().filter(|first| BegunRecord::is_of(first, &hash)) {
            let begun = BegunRecord::read(first)?;
            own.push((name.clone(), begun, records));
        }
    }
    Ok((own, unreadable))
}

/// The log of a run that this process leads.
pub(crate) struct RunLog {
    state: Arc<RunState>,
    log: StateLog,
    begun: BegunRecord,
    /// A match over lanes, until both know that they have what came of it.
    under_way: Option<UnderWay>,
    matched: Option<MatchedRecord>,
    /// Records of the units of the computation.
    units: Vec<UnitRecord>,
    /// What the ledger knows of promises.
    book: PromiseBook,
    /// What all has cost so far.
    pub costs: SpentBook,
    /// Whether an earlier process began it.
    resumed: bool,
    /// Whether a match was under way of which the ledger knows more, or nothing.
    put_back: bool,
    /// How often this process has met the other party.
    pub meetings: u32,
    /// Whether the other party keeps what is done as well, as it said last.
    pub shared: bool,
    /// Whether it is counted among the runs that begin with its peer.
    counted: bool,
    /// Whether the computation has ended for good.
    pub gave_up: bool,
    /// Whether no process can go on with it: it is to be removed.
    pub spent: bool,
    /// Whether another process leads it now: then this one says nothing more.
    pub fenced: bool,
}

impl RunLog {
    /// Begins to lead the run of these rows; none where they lie in memory, or their run does not go on, as
    /// that of rows which were handed over.
    ///
    /// # Errors
    /// When another process leads it, or the store fails.
    pub fn lead(
        party: &PartySetup,
        checked: &Checked,
        ledger: &Arc<Mutex<Ledger>>,
    ) -> Result<Option<Self>, Error> {
        // Rows that were handed over, and lie in no file, cannot be known again.
        let may = goes_on(&checked.study) && checked.input_version.is_some();
        let Some((state, _)) = checked.rows.spool().filter(|_| may) else {
            return Ok(None);
        };
        let (mut log, records) = state.lead()?;
        let book = PromiseBook::new(ledger, checked.hash.as_bytes());
        if !records.is_empty() {
            let resumed = Self::resume(state.clone(), (log, &records), book)?;
            resumed.begun.expect_program(&checked.built.program.hash(), &state.place())?;
            resumed.tidy()?;
            if resumed.begun.probe == probe(checked, &*resumed.book.lock()?)? {
                checked.know_tag(resumed.begun.tag);
            }
            return Ok(Some(resumed));
        }
        let tags = {
            let ledger = book.lock()?;
            (checked.data_tag(&ledger)?, probe(checked, &ledger)?)
        };
        let begun = BegunRecord::of(checked, tags)?;
        let store = state.sealed().store();
        let (key, names) = (state_key(party)?, kept_runs(store)?);
        let (before, _) = own_runs(store, &key, (party, &checked.study), &names)?;
        log.append(&[KeptRecord::Begun(Box::new(begun.clone())).to_log()?])?;
        state.keep()?;
        // One of other input stays until this one would be found in its place.
        for (name, _, records) in before.iter().filter(|(name, ..)| *name != state.name()) {
            book.forget(records, &name.place(store))?;
            state.replace(name)?;
        }
        Ok(Some(Self::of(state.clone(), (log, begun), book)))
    }

    /// Of a run that has only begun.
    fn of(state: Arc<RunState>, (log, begun): (StateLog, BegunRecord), book: PromiseBook) -> Self {
        let [resumed, put_back, shared, counted, gave_up, spent, fenced] = [false; 7];
        Self {
            state,
            log,
            begun,
            under_way: None,
            matched: None,
            units: Vec::new(),
            book,
            costs: SpentBook::default(),
            resumed,
            put_back,
            meetings: 0,
            shared,
            counted,
            gave_up,
            spent,
            fenced,
        }
    }

    fn resume(
        state: Arc<RunState>,
        (log, records): (StateLog, &[LogRecord]),
        book: PromiseBook,
    ) -> Result<Self, Error> {
        let place = state.place();
        let begun = records.first().map(BegunRecord::read).transpose()?;
        let begun = begun.ok_or_else(|| Error::misuse("a log that has records has a first one"))?;
        begun.expect_readable(&place)?;
        let mut log = Self::of(state, (log, begun), book);
        log.resumed = true;
        let mut over = None;
        for record in &records[1..] {
            let record = KeptRecord::of_log(record, &place)?;
            match record {
                KeptRecord::Void => over = log.under_way.take(),
                KeptRecord::Matching(_) => over = None,
                _ => {}
            }
            log.recall(record)?;
        }
        // Whoever wrote that it is over may have been killed before the ledger had it.
        over.map_or(Ok(()), |over| log.book.end(&over))?;
        match log.matched.as_ref().map(|matched| matched.rows.look(log.state.sealed())) {
            // The store lost what came of it: the rows are matched again.
            Some(Err(StoreError::Missing { .. } | StoreError::Damaged { .. })) => {
                (log.matched, log.units) = (None, Vec::new());
            }
            Some(looked) => looked?,
            None => {}
        }
        if let Some(under_way) = &log.under_way
            && !log.book.knows(under_way)?
        {
            // What came of it counts, where both have that.
            log.put_back = log.matched.is_none();
            log.forget_match()?;
        }
        if let Some(under_way) = &mut log.under_way
            && !under_way.look(&log.state)?
        {
            log.forget_match()?;
        }
        log.counted = log.matched.is_some() || log.under_way.is_some();
        Ok(log)
    }

    /// What was written down is so again.
    fn recall(&mut self, record: KeptRecord) -> Result<(), Error> {
        match record {
            KeptRecord::Begun(_) => {
                return Err(Error::input(format!("{}: it begins twice", self.place())));
            }
            KeptRecord::Matching(record) => {
                self.under_way = Some(UnderWay::of(*record));
                (self.matched, self.units) = (None, Vec::new());
            }
            KeptRecord::Void => self.under_way = None,
            KeptRecord::Noted(notes) => self.matching_mut()?.notes = *notes,
            KeptRecord::Pin(pin) => self.matching_mut()?.pin(pin),
            KeptRecord::Matched(record) => (self.matched, self.units) = (Some(*record), Vec::new()),
            KeptRecord::Spent(spent) => self.costs.recall(*spent),
            KeptRecord::Unit(stage, record) => {
                // Logs of before have no other word of what failed.
                let name = stage_of_match(stage).map_or(report::COMPUTING, LaneStage::name);
                failed_unit(name, &record).iter().for_each(|failed| self.costs.failed_before(failed));
                self.units_mut(stage)?.push(record);
            }
            KeptRecord::Releasing => {}
        }
        Ok(())
    }

    /// Removes what nothing that it holds refers to: what was half done.
    fn tidy(&self) -> Result<(), Error> {
        let matched = self.matched.iter().flat_map(|matched| [matched.rows.folder(), &*matched.units]);
        let under_way = self.under_way.iter().map(|under_way| &*under_way.record.folder);
        let folders: Vec<&str> = matched.chain(under_way).chain([&*self.begun.rows.folder]).collect();
        self.state.retain(&folders)
    }

    /// Whether an earlier process began it, and when, in words.
    pub fn resumed(&self) -> Option<String> {
        let day = || day_of(self.begun.begun);
        self.resumed.then(|| match (&self.matched, &self.under_way) {
            (None, None) if self.put_back => format!(
                "goes on with the run of {} that broke off: its rows are read, and its match is made anew: \
                 what the peer has promised in it is not in {} as the ledger has it, as where a folder was \
                 put back or restored, or a process was killed as the match began",
                day(),
                self.place()
            ),
            (None, None) => format!("goes on with the run of {} that broke off: its rows are read", day()),
            (None, Some(under_way)) => format!(
                "goes on with the run of {} that broke off: its rows are read, and {} units of its match are \
                 done, as far as this side knows",
                day(),
                under_way.held()
            ),
            (Some(_), _) => format!(
                "goes on with the run of {} that broke off: its rows are read and matched, and {} units are \
                 computed, as far as this side knows",
                day(),
                held(&self.units).count()
            ),
        })
    }

    /// Whether it was counted before among the runs that begin; from now on it is.
    pub fn counts_again(&mut self) -> bool {
        std::mem::replace(&mut self.counted, true)
    }

    /// The match of these data that is laid out.
    pub fn matched(&self, tags: &[Bytes32]) -> Option<&MatchedRecord> {
        self.matched.as_ref().filter(|matched| matched.tags == tags)
    }

    /// Rows are matched and laid out.
    ///
    /// # Errors
    /// When the store fails, or another process leads.
    pub fn set_matched(&mut self, matched: MatchedRecord) -> Result<(), Error> {
        let records = [KeptRecord::Matched(Box::new(matched.clone())).to_log()?, self.spent_so_far()?];
        self.append(&records)?;
        self.replace_matched(Some(matched))
    }

    /// Nobody comes back to the match before.
    fn replace_matched(&mut self, matched: Option<MatchedRecord>) -> Result<(), Error> {
        self.units = Vec::new();
        match std::mem::replace(&mut self.matched, matched) {
            Some(old) => [old.rows.folder(), &old.units].into_iter().try_for_each(|of| self.state.remove(of)),
            None => Ok(()),
        }
    }

    /// The match of these data that is under way, as both would name it.
    pub fn under_way(&self, tags: &[Bytes32]) -> Option<Bytes32> {
        let of = self.under_way.as_ref().map(|under_way| (&under_way.record, under_way.durable));
        of.filter(|(record, durable)| *durable && record.tags == tags).map(|(record, _)| record.name)
    }

    /// Of which beginning the made-up rows of the match under way are.
    pub fn match_draw(&self) -> Option<MatchDraw> {
        self.under_way.as_ref().map(|under_way| under_way.record.draw)
    }

    /// Whether a match is under way that another meeting may go on with.
    pub fn is_matching(&self) -> bool {
        self.under_way.as_ref().is_some_and(|under_way| under_way.durable)
    }

    /// A match over lanes begins, in a folder of its own; nobody comes back to any before. `secrets` are its
    /// keys and what goes with them.
    ///
    /// # Errors
    /// When the store fails, another process leads, or one has begun with this beginning of the ledger's.
    pub fn begin_match(
        &mut self,
        of: (Bytes32, &[Bytes32], MatchDraw),
        folder: &str,
        secrets: &[u8],
    ) -> Result<(), Error> {
        let under_way = UnderWay::begin(&self.state, of, folder, secrets)?;
        if under_way.durable {
            // Who was replaced hears of it here, before anything that is there goes.
            self.append(&[KeptRecord::Matching(Box::new(under_way.record.clone())).to_log()?])?;
        } else {
            self.forget_match()?;
        }
        let begins = self.book.begin(&under_way)?;
        let durable = under_way.durable;
        let before = self.under_way.replace(under_way);
        if durable {
            before.map_or(Ok(()), |before| before.remove(&self.state))?;
            self.replace_matched(None)?;
        }
        if begins {
            return Ok(());
        }
        self.forget_match()?;
        Err(Error::refused(format!(
            "{}: the match of this study and these data was begun by another process of this party, which \
             goes by the same ledger, or `tacit state drop` was called: let that one end, and run again",
            self.place()
        )))
    }

    fn matching(&self) -> Result<&UnderWay, Error> {
        self.under_way.as_ref().ok_or_else(|| Error::misuse("a match is under way"))
    }

    fn matching_mut(&mut self) -> Result<&mut UnderWay, Error> {
        self.under_way.as_mut().ok_or_else(|| Error::misuse("a match is under way"))
    }

    /// The folder of the match that is under way, its keys and what goes with them.
    ///
    /// # Errors
    /// When the store fails, or has lost them.
    pub fn match_secrets(&self) -> Result<(String, Zeroizing<Vec<u8>>), Error> {
        let under_way = self.matching()?;
        let secrets = under_way.secrets(&self.state)?;
        let lost = || Error::input(format!("{} lost the keys of its match: run again", self.place()));
        Ok((under_way.record.folder.clone(), secrets.ok_or_else(lost)?))
    }

    /// What this party has made by itself in the match that is under way.
    pub fn notes(&self) -> LaneNotes {
        self.under_way.as_ref().map(|under_way| under_way.notes.clone()).unwrap_or_default()
    }

    /// Writes that down.
    ///
    /// # Errors
    /// As [`Self::begin_match`].
    pub fn note(&mut self, notes: LaneNotes) -> Result<(), Error> {
        if self.matching()?.durable {
            self.append(&[KeptRecord::Noted(Box::new(notes.clone())).to_log()?])?;
        }
        self.matching_mut()?.notes = notes;
        Ok(())
    }

    /// Pins what the peer has promised, unless that was pinned before: whether it is what it promised first.
    ///
    /// # Errors
    /// As [`Self::begin_match`].
    pub fn pin(&mut self, pin: UnitPin) -> Result<bool, Error> {
        let under_way = self.matching()?;
        if let Some(is_same) = under_way.known(&pin) {
            return Ok(is_same);
        }
        if under_way.durable {
            let to = under_way.head_with(&pin);
            self.append(&[KeptRecord::Pin(pin).to_log()?])?;
            if !self.book.add(self.matching()?, &to)? {
                self.fenced = true;
                return Err(Error::input(format!(
                    "{}: the ledger {} has promises of another match of this study and these data, or \
                     none: two processes of this party are at it, or `tacit state drop` was called. This \
                     match is lost; let the other one end, and run again: it is made anew",
                    self.place(),
                    self.book.lock()?.path().display()
                )));
            }
        }
        self.matching_mut()?.pin(pin);
        Ok(true)
    }

    /// Whether no unit of a stage of the match is opened any more.
    pub fn is_sealed(&self, stage: u8) -> bool {
        self.under_way.as_ref().is_some_and(|under_way| under_way.is_sealed(stage))
    }

    /// The match is over, or nobody is to go on with it: that is written down, and its keys go. Where it
    /// cannot be written they go all the same, but not by who was replaced: they are another one's then.
    ///
    /// # Errors
    /// When the store fails, or another process leads.
    pub fn forget_match(&mut self) -> Result<(), Error> {
        let Some(under_way) = self.under_way.take() else { return Ok(()) };
        let void = if under_way.durable { self.append(&[KeptRecord::Void.to_log()?]) } else { Ok(()) };
        if self.fenced {
            return void;
        }
        let ended = if under_way.durable { self.book.end(&under_way) } else { Ok(()) };
        let removed = under_way.remove(&self.state);
        void.and(ended).and(removed)
    }

    /// The folder of the results of units that a match to be recorded will have.
    pub fn units_folder(&self) -> String {
        self.state.folder("units")
    }

    /// Records of the units of a stage, in order.
    pub fn units(&self, stage: u8) -> &[UnitRecord] {
        match (stage, &self.under_way) {
            (COMPUTE, _) => &self.units,
            (_, Some(under_way)) => under_way.units(stage),
            (_, None) => &[],
        }
    }

    fn units_mut(&mut self, stage: u8) -> Result<&mut Vec<UnitRecord>, Error> {
        match stage {
            COMPUTE => Ok(&mut self.units),
            _ => Ok(self.matching_mut()?.units_mut(stage)),
        }
    }

    /// How many results of units are held: what a run that is cut again and again has to show for it.
    pub fn progress(&self) -> (bool, usize) {
        match (&self.matched, &self.under_way) {
            (None, Some(under_way)) => (false, under_way.held()),
            (matched, _) => (matched.is_some(), held(&self.units).count()),
        }
    }

    /// The results of a stage that are held, as they were put; one that the store lost, or changed, is not
    /// held.
    ///
    /// # Errors
    /// When the store fails.
    pub fn held_work(&mut self, stage: u8) -> Result<Vec<(u32, u32, FinishedWork)>, Error> {
        let mut all = Vec::new();
        let sealed = self.units(stage).iter().any(|record| matches!(record, UnitRecord::Seal { .. }));
        for (unit, held) in held(self.units(stage)) {
            let name = self.work_name(stage, (unit, held.attempt));
            let work = name.map_or(Ok(None), |name| read_work(&self.state, &name, &held))?;
            match work {
                Some(work) => all.push((unit, held.attempt, work)),
                None if sealed && stage != COMPUTE => {
                    self.forget_match()?;
                    return Err(Error::input(format!(
                        "{} lost the result of unit {unit} of its match, and both parties count on it: run \
                         again, and the match is made anew",
                        self.place()
                    )));
                }
                None if sealed => {
                    self.spent = true;
                    let place = self.place();
                    return Err(Error::input(format!(
                        "{place} lost the result of unit {unit}, and both parties count on it: remove this \
                         run and begin anew: tacit state drop"
                    )));
                }
                None => forget_held(self.units_mut(stage)?, unit),
            }
        }
        Ok(all)
    }

    /// Whether the units of a stage are written down.
    fn writes(&self, stage: u8) -> bool {
        stage == COMPUTE || self.is_matching()
    }

    /// Puts a result on stable storage, before it is held.
    ///
    /// # Errors
    /// When the store fails.
    pub fn put_work(
        &mut self,
        stage: u8,
        (unit, attempt): (u32, u32),
        work: &FinishedWork,
    ) -> Result<(), Error> {
        if !self.writes(stage) {
            return Ok(());
        }
        let name = self.work_name(stage, (unit, attempt));
        let name = name.ok_or_else(|| Error::misuse("units are of a match"))?;
        self.state.sealed().create(&name, &work.to_object()?)?;
        Ok(())
    }

    /// Removes what earlier attempts at a unit of the match have left, as an attempt begins.
    ///
    /// # Errors
    /// When the store fails.
    pub fn forget_attempts(&self, stage: u8, begins: (u32, u32)) -> Result<(), Error> {
        let under_way = self.under_way.as_ref().filter(|_| stage != COMPUTE);
        under_way.map_or(Ok(()), |under_way| under_way.forget_attempts(&self.state, stage, begins))
    }

    fn work_name(&self, stage: u8, (unit, attempt): (u32, u32)) -> Option<String> {
        match stage {
            COMPUTE => {
                self.matched.as_ref().map(|matched| format!("{}/{unit:04}-{attempt:04}", matched.units))
            }
            _ => self.under_way.as_ref().map(|under_way| under_way.work_name(stage, (unit, attempt))),
        }
    }

    /// Puts records of a stage's units on stable storage.
    ///
    /// # Errors
    /// When the store fails, or another process leads.
    pub fn write_units(&mut self, stage: u8, records: &[UnitRecord]) -> Result<(), Error> {
        if !self.writes(stage) {
            return Ok(());
        }
        let mut logged: Vec<LogRecord> =
            records.iter().map(|record| KeptRecord::of_unit(stage, record)).collect();
        logged.push(self.spent_so_far()?);
        self.append(&logged)?;
        self.units_mut(stage)?.extend(records);
        if self.log.snapshot_due() {
            self.snapshot()?;
        }
        Ok(())
    }

    /// All units are computed, and what comes next is paid for.
    ///
    /// # Errors
    /// As [`Self::write_units`].
    pub fn releases(&mut self) -> Result<(), Error> {
        self.append(&[KeptRecord::Releasing.to_log()?, self.spent_so_far()?])
    }

    /// A meeting has failed: what it cost is written down, unless another process leads.
    pub fn broke_off(&mut self) {
        if self.shared && !self.fenced {
            // The error of the meeting is the one to tell.
            let _ = self.spent_so_far().and_then(|spent| self.append(&[spent]));
        }
    }

    fn spent_so_far(&self) -> Result<LogRecord, Error> {
        KeptRecord::Spent(Box::new(self.costs.all())).to_log()
    }

    fn append(&mut self, records: &[LogRecord]) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let appended = self.log.append(records);
        self.fenced |= matches!(appended, Err(StoreError::Fenced { .. }));
        appended?;
        // In a bucket its operator may have removed it meanwhile, and its number is free again.
        if !self.state.is_there()? {
            self.fenced = true;
            return Err(StoreError::Fenced { place: self.place(), by: None }.into());
        }
        Ok(())
    }

    /// Everything that counts as one object, so that opening reads few.
    fn snapshot(&mut self) -> Result<(), Error> {
        let units = last_of(&self.units);
        let mut all = vec![KeptRecord::Begun(Box::new(self.begun.clone())).to_log()?];
        if let Some(under_way) = self.under_way.as_ref().filter(|under_way| under_way.durable) {
            all.extend(under_way.records()?);
        }
        if let Some(matched) = &self.matched {
            all.push(KeptRecord::Matched(Box::new(matched.clone())).to_log()?);
        }
        all.extend(units.iter().map(|record| KeptRecord::of_unit(COMPUTE, record)));
        all.push(self.spent_so_far()?);
        let written = self.log.snapshot(&all);
        self.fenced |= matches!(written, Err(StoreError::Fenced { .. }));
        written?;
        self.units = units;
        Ok(())
    }

    /// The run is over, and nothing of it stays.
    pub fn done(self) {
        self.state.forget();
    }

    /// Where it is kept, for its operator.
    pub fn place(&self) -> String {
        self.state.place()
    }
}

/// What tells a ledger that these rows' name was given by: the name of a part of them.
fn probe(checked: &Checked, ledger: &Ledger) -> Result<Bytes32, Error> {
    match checked.rows.blocks().next() {
        Some(_) => checked.tag_of(ledger, &checked.rows.block(0)?.into()),
        None => checked.data_tag(ledger),
    }
}

fn day_of(seconds: u64) -> String {
    study::time::date(seconds as i64)
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
pub(crate) mod tests;

//! What a run consists of. A stage is planned once, alike at everybody who takes part: it has a name and a
//! price before it runs, it says what it tells and to whom, and it runs unit by unit, each unit one attempt
//! over the session that it is given. A plan adds up prices; a run books time and traffic beside them
//! ([`StageLog`]); the report shows both.

pub(crate) mod columns;
pub(crate) mod compute;
pub(crate) mod link;
pub(crate) mod matching;
pub(crate) mod noise;
pub(crate) mod publish;
pub(crate) mod release;
pub(crate) mod upgrade;

use crate::engines::Estimate;
use crate::kept::SpentBook;
use crate::plan::{Link, Speeds};
use crate::run::Event;
use crate::workers::UnitsDone;
use base::{Cost, Error, PartyId};
use net::Session;
use report::StageReport;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

/// Under which name attempts are reported that came to nothing.
pub(crate) const AGAIN: &str = "again";

/// What a stage shows to somebody beyond shares, masks and commitments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tells {
    /// A party, or `everybody`.
    pub to: String,
    /// What it learns, in words.
    pub what: String,
}

impl Tells {
    pub(crate) fn everybody(what: String) -> Self {
        Self { to: "everybody".to_owned(), what }
    }
}

/// One stage of a run.
pub(crate) trait Stage {
    /// What the price depends on and only running shows.
    type Sizes: ?Sized;

    /// As reports and plans call it.
    fn name(&self) -> &'static str;

    /// How many rows, draws or outputs it handles.
    fn items(&self) -> u64 {
        0
    }

    /// Exact cost of all units.
    ///
    /// # Errors
    /// When the stage cannot be priced: noise that is out of range.
    fn price(&self, sizes: &Self::Sizes) -> Result<Cost, Error>;

    /// Cost and time before it is run, of its dearest course.
    ///
    /// # Errors
    /// As [`Stage::price`].
    fn estimate(&self, link: Link, speeds: Speeds) -> Result<Estimate, Error>;

    /// What it tells, and to whom.
    fn tells(&self) -> Vec<Tells> {
        Vec::new()
    }
}

/// Time and bytes of each stage, held against the price that was stated for it.
pub(crate) struct StageLog {
    me: PartyId,
    parties: usize,
    events: Arc<dyn Fn(Event) + Send + Sync>,
    begun: Instant,
    done: Vec<StageReport>,
    /// What each has cost, before this meeting as well.
    spent: SpentBook,
}

/// What was said under a step, by who said it: this party, and the others to it.
pub(crate) fn bytes_sent(traffic: &net::Traffic, name: &str, (me, parties): (PartyId, usize)) -> Vec<u64> {
    let mut bytes_sent = traffic.received_by_peer(name, parties);
    bytes_sent[me.index()] = traffic.sent(name);
    bytes_sent
}

impl StageLog {
    pub fn new(me: PartyId, parties: usize, events: Arc<dyn Fn(Event) + Send + Sync>) -> Self {
        let (done, spent) = (Vec::new(), SpentBook::default());
        Self { me, parties, events, begun: Instant::now(), done, spent }
    }

    /// Of a run that has met before, maybe.
    pub fn with_spent(self, spent: SpentBook) -> Self {
        Self { spent, ..self }
    }

    /// Runs a stage whose price is known before, on one session.
    pub fn run<T>(
        &mut self,
        stage: &impl Stage<Sizes = ()>,
        session: &mut Session,
        run: impl FnOnce(&mut Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.begin(stage.name(), stage.items());
        let output = run(session)?;
        self.spend(session.traffic(), stage.name());
        self.end(session.traffic(), stage.name(), stage.items(), stage.price(&())?);
        Ok(output)
    }

    pub fn begin(&mut self, name: &str, items: u64) {
        self.begun = Instant::now();
        self.spent.begin(name);
        (self.events)(Event::Stage { name: name.to_owned(), rows: items });
    }

    /// Books what was counted under `name`. What this party received is what the others sent to it: of two
    /// parties all that they sent, so that both sides of the price can be held against it; of more, this
    /// party's own.
    pub fn end(&mut self, traffic: &net::Traffic, name: &str, items: u64, price: Cost) {
        let me = self.me.index();
        let bytes_sent = bytes_sent(traffic, name, (self.me, self.parties));
        let price_held = match self.parties {
            2 => {
                let work = [traffic.and_gates(name), traffic.ots(name)];
                price.sent == bytes_sent && work == [price.and_gates, price.ots]
            }
            _ => price.sent[me] == bytes_sent[me],
        };
        let stage = StageReport {
            name: name.to_owned(),
            seconds: self.begun.elapsed().as_secs_f64(),
            rows: items,
            price_held,
            bytes_sent,
            price,
            before: None,
        };
        (self.events)(Event::StageDone(stage.clone()));
        self.done.push(stage);
    }

    /// A stage is over, or broke off: what was said under its name counts in no later meeting.
    pub fn spend(&self, traffic: &net::Traffic, name: &str) {
        self.spent.end(name, bytes_sent(traffic, name, (self.me, self.parties)));
    }

    /// The same of whatever is under way.
    pub fn broke_off(&self, traffic: &net::Traffic) {
        self.spent.under_way().iter().for_each(|name| self.spend(traffic, name));
    }

    /// Books what attempts have cost that came to nothing: under no price, since nobody foresees them.
    pub fn again(&mut self, done: &UnitsDone) {
        if done.failed.is_empty() {
            return;
        }
        let bytes_sent = bytes_sent(&done.lost, "", (self.me, self.parties));
        let price = Cost { sent: bytes_sent.clone(), ..Cost::zero(self.parties) };
        let stage = StageReport {
            name: AGAIN.to_owned(),
            seconds: 0.0,
            rows: done.failed_rows,
            price_held: true,
            bytes_sent,
            price,
            before: None,
        };
        (self.events)(Event::StageDone(stage.clone()));
        self.done.push(stage);
    }

    pub fn all(&self) -> &[StageReport] {
        &self.done
    }

    /// All stages, with what each took before the parties met last; those that were over by then among them.
    pub fn with_before(&self) -> Vec<StageReport> {
        let (mut all, mut over, mut again) = (self.done.clone(), Vec::new(), Vec::new());
        for (name, before) in self.spent.before().stages() {
            let before = Some(before.clone());
            if let Some(stage) = all.iter_mut().find(|stage| stage.name == name) {
                stage.before = before;
                continue;
            }
            let (name, price) = (name.to_owned(), Cost::zero(self.parties));
            let (bytes_sent, seconds, rows, price_held) = (price.sent.clone(), 0.0, 0, true);
            let stage = StageReport { name, seconds, rows, bytes_sent, price, price_held, before };
            if stage.name == AGAIN { again.push(stage) } else { over.push(stage) }
        }
        over.into_iter().chain(all).chain(again).collect()
    }
}

//! What a run costs by a list of prices: hours, machines and dollars.
//!
//! Bytes and core time are those that the stages of the plan state, and what reading rows and laying them down
//! takes besides. A stage lasts as long as its slowest party computes, where cores compute in such a share of
//! their time as the list says, or as long as its bytes take, and then waits for answers. Cores are paid for
//! as long as the run lasts, whether or not a stage can use all of them. Bytes are application bytes: the
//! headers of TLS and TCP are not in them.

use super::{Assumed, Link, Plan, Speeds, plan_file};
use crate::engines::StageTime;
use crate::spool::of_parties;
use base::Error;
use ot::OtKind;
use serde::Serialize;
use study::prices::{BytePath, PriceList};
use study::{Study, StudyFile};

/// Seconds of an hour.
const HOUR_S: f64 = 3600.0;
/// Bytes of what lists call a gigabyte.
const GB: f64 = 1e9;
/// What may make the transfers of a study that leaves it open, where bytes have a price.
const OT_KINDS: [OtKind; 4] = [
    OtKind::SoftSpoken { k: 2 },
    OtKind::SoftSpoken { k: 4 },
    OtKind::SoftSpoken { k: 8 },
    OtKind::Ferret,
];

/// What a run costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bill {
    /// The prices.
    pub prices: PriceList,
    /// Between what the bytes go that the choice of OT is made for.
    pub between: BytePath,
    /// `read` and `spool`, which tell nobody anything, and the stages of the plan.
    pub stages: Vec<BillStage>,
    /// Time, core time, bytes and dollars of all stages.
    pub total: BillTotal,
    /// Machines of each party.
    pub machines: u32,
    /// Every kind of OT that may serve, the cheapest first; empty where none is used.
    pub ots: Vec<OtBill>,
}

/// What one stage takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BillStage {
    /// As the plan calls it.
    pub name: String,
    /// Hours that one core would compute for all parties.
    pub core_hours: f64,
    /// Hours from its start to its end.
    pub hours: f64,
    /// Application bytes of all parties.
    pub bytes: u64,
    /// Parties whose cores are paid meanwhile.
    #[serde(skip)]
    parties: u64,
}

/// What all stages take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BillTotal {
    /// From the first row read to the last result.
    pub hours: f64,
    /// Hours that one core would compute for all parties.
    pub core_hours: f64,
    /// Core-hours that all parties pay for.
    pub paid_core_hours: f64,
    /// Application bytes between the parties.
    pub bytes: u64,
    /// Dollars, by where the parties are.
    pub usd: Vec<PathUsd>,
}

/// US dollars of all parties together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathUsd {
    /// Between what the bytes go.
    pub between: BytePath,
    /// Cores on demand, and bytes.
    pub on_demand: f64,
    /// Cores that may be taken back, and bytes.
    pub spot: f64,
}

/// What the run costs with one kind of OT.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtBill {
    /// As `compute.ot` names it.
    pub ot: String,
    /// What all stages take with it.
    #[serde(flatten)]
    pub total: BillTotal,
    /// Whether it costs least where the bytes go, with cores on demand.
    pub cheapest: bool,
}

impl BillTotal {
    /// Of a bill of such stages.
    fn of(stages: &[BillStage], prices: &PriceList, cores: f64) -> Self {
        let paid = |stage: &BillStage| stage.hours * cores * stage.parties as f64;
        let paid_core_hours = stages.iter().map(paid).sum::<f64>();
        let bytes = stages.iter().map(|stage| stage.bytes).sum();
        let usd = |between| {
            let sent = bytes as f64 / GB * prices.gb_usd(between);
            let computed = paid_core_hours * prices.core_hour_usd;
            PathUsd { between, on_demand: computed + sent, spot: computed * prices.spot_share + sent }
        };
        Self {
            hours: stages.iter().map(|stage| stage.hours).sum(),
            core_hours: stages.iter().map(|stage| stage.core_hours).sum(),
            paid_core_hours,
            bytes,
            usd: BytePath::ALL.map(usd).into(),
        }
    }

    /// Dollars with cores on demand, where the bytes go so.
    #[must_use]
    pub fn on_demand(&self, between: BytePath) -> f64 {
        self.usd.iter().find(|usd| usd.between == between).map_or(f64::INFINITY, |usd| usd.on_demand)
    }
}

impl Bill {
    fn of(plan: &Plan, study: &Study, (rows, speeds): ([u64; 2], Speeds), terms: &BillTerms<'_>) -> Self {
        let prices = terms.prices;
        let stage = |name: &str, core_s: f64, time: StageTime, bytes, parties| BillStage {
            name: name.to_owned(),
            core_hours: core_s / HOUR_S,
            hours: time.seconds(prices.share_used) / HOUR_S,
            bytes,
            parties,
        };
        let own = own_work(plan, study, rows, speeds).into_iter().map(|(name, seconds)| {
            // Each party's on one core.
            let computing_s = seconds.iter().copied().fold(0.0, f64::max);
            let time = StageTime { computing_s, ..StageTime::default() };
            stage(name, seconds.iter().sum(), time, 0, seconds.len() as u64)
        });
        let said = plan.stages.iter().map(|s| {
            stage(&s.name, s.core_seconds, s.time, s.bytes_sent.values().sum(), s.bytes_sent.len() as u64)
        });
        let stages: Vec<BillStage> = own.chain(said).collect();
        let cores = speeds.cores.max(1.0);
        Self {
            prices: prices.clone(),
            between: terms.between,
            total: BillTotal::of(&stages, prices, cores),
            stages,
            machines: (cores / f64::from(prices.machine_cores)).ceil() as u32,
            ots: Vec::new(),
        }
    }
}

/// Seconds that each party computes by itself before anything is sent: reading, and where rows do not fit
/// into memory what they read and write in `state`.
fn own_work(plan: &Plan, study: &Study, rows: [u64; 2], speeds: Speeds) -> Vec<(&'static str, Vec<f64>)> {
    let rows = of_parties(study, rows);
    let rate = |party: usize| speeds.rows_read_per_s[usize::from(party > 0)];
    let read = rows.iter().enumerate().map(|(party, rows)| *rows as f64 / rate(party)).collect();
    let mut work = vec![("read", read)];
    if !plan.spool.is_empty() {
        let bytes = |spool: &crate::spool::SpoolPasses| {
            spool.passes.iter().map(|pass| pass.reads + pass.writes).sum::<u64>()
        };
        let seconds = |spool| bytes(spool) as f64 / speeds.spooled_bytes_per_s;
        work.push(("spool", plan.spool.iter().map(seconds).collect()));
    }
    work
}

/// By what a bill is made.
#[derive(Clone, Copy, Debug)]
pub struct BillTerms<'a> {
    /// The prices.
    pub prices: &'a PriceList,
    /// Between what the parties' bytes go.
    pub between: BytePath,
}

/// Prices a study file in dollars as well. Where the study leaves open what makes its OTs, the plan is that
/// of the kind which costs least where the bytes go: what a run takes whose study names that kind.
///
/// # Errors
/// As [`plan_file`].
pub fn plan_priced(
    file: &StudyFile,
    assumed: &Assumed,
    link: Link,
    speeds: Speeds,
    terms: &BillTerms<'_>,
) -> Result<Plan, Error> {
    let own = file.first().compute.ot;
    let with = |kind: Option<OtKind>| -> Result<(Plan, Bill), Error> {
        let mut file = file.clone();
        file.runs.iter_mut().for_each(|run| run.compute.ot = kind);
        let plan = plan_file(&file, assumed, link, speeds)?;
        let bill = Bill::of(&plan, file.first(), (assumed.rows, speeds), terms);
        Ok((plan, bill))
    };
    let fixed = own.filter(|kind| !OT_KINDS.contains(kind));
    let mut all = Vec::new();
    for kind in OT_KINDS.into_iter().chain(fixed) {
        all.push((kind, with(Some(kind))?));
    }
    let cost = |(_, bill): &(Plan, Bill)| bill.total.on_demand(terms.between);
    all.sort_by(|(_, a), (_, b)| cost(a).total_cmp(&cost(b)));
    // Without transfers all kinds are the same.
    let differ = all.windows(2).any(|pair| pair[0].1.1.total != pair[1].1.1.total);
    let ots: Vec<OtBill> = match differ {
        true => (0..).zip(&all).map(|(i, (kind, (_, bill)))| OtBill::of(*kind, bill, i == 0)).collect(),
        false => Vec::new(),
    };
    let chosen = if ots.is_empty() { None } else { own.or(all.first().map(|(kind, _)| *kind)) };
    let found = chosen.and_then(|chosen| all.into_iter().find(|(kind, _)| *kind == chosen));
    let (mut plan, bill) = found.map_or_else(|| with(own), |(_, done)| Ok(done))?;
    if let (None, Some(kind)) = (own, chosen) {
        let text = format!("{kind}, the cheapest {}; a run chooses by the link alone", terms.between.words());
        plan.assumptions.insert("ot".into(), text);
    }
    plan.bill = Some(Bill { ots, ..bill });
    Ok(plan)
}

impl OtBill {
    fn of(kind: OtKind, bill: &Bill, cheapest: bool) -> Self {
        Self { ot: kind.to_string(), total: bill.total.clone(), cheapest }
    }
}

//! What a run costs by a list of prices: hours, machines and dollars.
//!
//! Bytes and core time are those that the stages of the plan state, and what reading rows and laying them
//! down takes besides. A stage lasts as long as its slowest party computes, where cores compute in such a
//! share of their time as the list says, or as long as its bytes take, and then waits for answers. Cores are
//! paid for as long as the run lasts, whether or not a stage can use all of them. Bytes are application
//! bytes: the headers of TLS and TCP are not in them.

use super::{Assumed, Link, Plan, Speeds, plan_file};
use crate::engines::StageTime;
use crate::spool::of_parties;
use base::Error;
use ot::OtKind;
use serde::Serialize;
use study::prices::{BytePath, PriceList};
use study::{Study, StudyFile};

/// Passes over rows that do not fit into memory before anything is sent.
const BEFORE_MATCH: [&str; 3] = ["read", "settle", "tag"];
/// Seconds of an hour.
const HOUR_S: f64 = 3600.0;
/// Bytes of what lists call a gigabyte.
const GB: f64 = 1e9;
/// What may make the transfers of a study that leaves it open, where bytes have a price.
const OT_KINDS: [OtKind; 4] =
    [OtKind::SoftSpoken { k: 2 }, OtKind::SoftSpoken { k: 4 }, OtKind::SoftSpoken { k: 8 }, OtKind::Ferret];

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
    /// Cores on demand, if none were held while it waits for another, and bytes.
    pub least: f64,
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
        let core_hours = stages.iter().map(|stage| stage.core_hours).sum::<f64>();
        let bytes = stages.iter().map(|stage| stage.bytes).sum();
        let usd = |between| {
            let sent = bytes as f64 / GB * prices.gb_usd(between);
            let held = paid_core_hours * prices.core_hour_usd;
            let least = core_hours / prices.share_used * prices.core_hour_usd + sent;
            PathUsd { between, on_demand: held + sent, spot: held * prices.spot_share + sent, least }
        };
        Self {
            hours: stages.iter().map(|stage| stage.hours).sum(),
            core_hours,
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
            let computing_s =
                seconds.iter().copied().fold(0.0, f64::max) * (ALONE + (1.0 - ALONE) / speeds.cores.max(1.0));
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

/// What of reading one core does alone, whatever there are: files are read side by side once lines do not fit
/// into memory.
const ALONE: f64 = 0.1;

/// Seconds that one core of each party would compute before anything is sent: reading, and where rows do not
/// fit into memory what laying them down in `state` reads and writes. What the stages read and write there
/// is in their own rates.
fn own_work(plan: &Plan, study: &Study, rows: [u64; 2], speeds: Speeds) -> Vec<(&'static str, Vec<f64>)> {
    let rows = of_parties(study, rows);
    let rate = |party: usize| speeds.rows_read_per_s[usize::from(party > 0)];
    let read = rows.iter().enumerate().map(|(party, rows)| *rows as f64 / rate(party)).collect();
    let mut work = vec![("read", read)];
    if !plan.spool.is_empty() {
        let bytes = |spool: &crate::spool::SpoolPasses| {
            let own = spool.passes.iter().filter(|pass| BEFORE_MATCH.contains(&pass.stage));
            // Files are counted as rows.
            own.map(|pass| if pass.stage == "read" { pass.writes } else { pass.reads + pass.writes })
                .sum::<u64>()
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
    let [first, other] = speeds.rows_read_per_s;
    let text = format!(
        "{first} rows/s of the first party, {other} of the other, {} bytes/s of state; on one core",
        speeds.spooled_bytes_per_s
    );
    plan.assumptions.insert("reading".into(), text);
    plan.bill = Some(Bill { ots, ..bill });
    Ok(plan)
}

impl OtBill {
    fn of(kind: OtKind, bill: &Bill, cheapest: bool) -> Self {
        Self { ot: kind.to_string(), total: bill.total.clone(), cheapest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{MULTIPLICATIONS, PlanStage};
    use std::collections::BTreeMap;

    const LIFT: &str = include_str!("../../../../examples/lift.toml");
    const SHIPPED: &str = include_str!("../../../../docs/prices-2026.toml");
    const WIDE: Link = Link { bits_per_s: 1e13, round_trip_s: 1e-3 };

    fn shipped() -> PriceList {
        PriceList::parse("prices.toml", SHIPPED).unwrap()
    }

    fn priced(text: &str, rows: u64, link: Link, between: BytePath) -> Plan {
        let file = StudyFile::parse("study.toml", text).unwrap();
        let speeds = Speeds { cores: 32.0, ..Speeds::default() };
        let prices = shipped();
        let terms = BillTerms { prices: &prices, between };
        plan_priced(&file, &Assumed { rows: [rows; 2], both: None, outcome: None }, link, speeds, &terms)
            .unwrap()
    }

    fn near(found: f64, by_hand: f64) {
        assert!((found / by_hand - 1.0).abs() < 1e-9, "{found}, by hand {by_hand}");
    }

    /// The model against the run of 20 M rows a side that docs/performance.md has, both parties on two cores
    /// of the kind that the rates were measured on: bytes are the run's, seconds within a fifth.
    #[test]
    fn the_model_fits_the_measured_run() {
        let page = include_str!("../../../../docs/performance.md");
        let row = page.lines().find(|line| line.starts_with("| `pid`, 20 M | 844 and 844 MB |")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let measured = |cell: usize| cells[cell].strip_suffix(" s").unwrap().parse::<f64>().unwrap();
        let text = include_str!("../../../../examples/generated.toml");
        let text = format!("{text}\n[compute]\nengine = \"gmw\"\not = \"softspoken:4\"\n");
        let file = StudyFile::parse("study.toml", &text).unwrap();
        let prices = PriceList { share_used: 1.0, ..shipped() };
        let terms = BillTerms { prices: &prices, between: BytePath::Zone };
        let link = Link { bits_per_s: 1e11, round_trip_s: 5e-5 };
        let speeds = Speeds { multiplications_per_s: MULTIPLICATIONS[1], ..Speeds::default() };
        let assumed = Assumed { rows: [20_000_000; 2], both: Some(10_000_000), outcome: None };
        let bill = plan_priced(&file, &assumed, link, speeds, &terms).unwrap().bill.unwrap();
        let of =
            |names: &[&str]| bill.stages.iter().filter(|s| names.contains(&&*s.name)).collect::<Vec<_>>();
        let parts = [(4, &["read", "spool"][..]), (5, &["match"]), (6, &["compute"])];
        for (cell, names) in parts {
            let seconds = of(names).iter().map(|stage| stage.hours).sum::<f64>() * HOUR_S;
            let found = seconds / measured(cell);
            assert!((found - 1.0).abs() < 0.2, "{names:?}: {seconds} s of {}", cells[cell]);
        }
        let all = bill.total.hours * HOUR_S / measured(3);
        assert!((all - 1.0).abs() < 0.2, "{all} of the run");
        let gigabytes = |name: &str| format!("{:.1}", of(&[name])[0].bytes as f64 / GB);
        assert_eq!(format!("{}, {} GB", gigabytes("match"), gigabytes("compute")), cells[9]);
    }

    /// Two parties of 10 cores, half of whose time computes.
    #[test]
    fn a_bill_is_what_is_worked_out_by_hand() {
        let study = Study::parse("study.toml", LIFT).unwrap();
        let stage =
            |name: &str, core_seconds, bytes, [computing_s, sending_s, waiting_s]: [f64; 3]| PlanStage {
                name: name.into(),
                and_gates: 0,
                ots: 0,
                bytes_sent: BTreeMap::from([("hospitals".into(), bytes), ("registry".into(), bytes)]),
                rounds: 0,
                seconds: 0.0,
                core_seconds,
                time: StageTime { computing_s, sending_s, waiting_s },
                tells: Vec::new(),
            };
        // The first computes for 1,800 s of 3,600 and waits for 360; the second sends for 7,200.
        let stages = vec![
            stage("match", 36_000.0, 10_000_000_000, [1800.0, 100.0, 360.0]),
            stage("compute", 7200.0, 40_000_000_000, [360.0, 7200.0, 0.0]),
        ];
        let plan = Plan { stages, ..Plan::default() };
        let prices = PriceList {
            date: "2026-11-26".into(),
            core_hour_usd: 0.10,
            spot_share: 0.5,
            share_used: 0.5,
            machine_cores: 4,
            gb_between_zones_usd: 0.02,
            gb_internet_usd: 0.1,
        };
        let speeds = Speeds { cores: 10.0, rows_read_per_s: [1000.0, 500.0], ..Speeds::default() };
        let terms = BillTerms { prices: &prices, between: BytePath::Zones };
        // Reading takes them 180 and 360 s of one core, 0.15 core-hours; on ten cores a tenth and a tenth of
        // nine tenths of 360 s, 136.8 s of wall.
        let bill = Bill::of(&plan, &study, ([180_000; 2], speeds), &terms);
        let names: Vec<&str> = bill.stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, ["read", "match", "compute"]);
        let hours: Vec<f64> = bill.stages.iter().map(|stage| stage.hours).collect();
        [0.038, 1.1, 2.0].into_iter().zip(hours).for_each(|(by_hand, found)| near(found, by_hand));
        let BillTotal { hours, core_hours, paid_core_hours, bytes, usd } = bill.total;
        near(hours, 3.138);
        near(core_hours, 12.15);
        near(paid_core_hours, 62.76);
        assert_eq!((bytes, bill.machines), (100_000_000_000, 3));
        // 62.76 core-hours are 6.276, 12.15 at half their time 2.43; 100 GB are 0, 2 and 10.
        for (usd, [on_demand, spot, least]) in
            usd.iter().zip([[6.276, 3.138, 2.43], [8.276, 5.138, 4.43], [16.276, 13.138, 12.43]])
        {
            near(usd.on_demand, on_demand);
            near(usd.spot, spot);
            near(usd.least, least);
        }
    }

    #[test]
    fn what_rows_read_and_write_beside_memory_is_paid() {
        let with = priced(LIFT, 100_000_000, WIDE, BytePath::Zone);
        let bill = with.bill.as_ref().unwrap();
        assert_eq!(bill.stages[1].name, "spool");
        let own = with.spool.iter().flat_map(|spool| &spool.passes[..3]).map(|pass| pass.reads + pass.writes);
        let core_s = own.sum::<u64>() as f64 / Speeds::default().spooled_bytes_per_s;
        near(bill.stages[1].core_hours, core_s / 3600.0);
        let bill = priced(LIFT, 1000, WIDE, BytePath::Zone).bill.unwrap();
        assert!(bill.stages.iter().all(|stage| stage.name != "spool"), "they fit");
    }

    #[test]
    fn the_place_settles_what_makes_the_transfers() {
        let cheapest = |between| {
            let plan = priced(LIFT, 100_000_000, WIDE, between);
            let bill = plan.bill.unwrap();
            let kinds: Vec<&str> = bill.ots.iter().map(|ot| ot.ot.as_str()).collect();
            assert_eq!(kinds.len(), OT_KINDS.len());
            let dollars = |ot: &OtBill| ot.total.on_demand(between);
            assert!(bill.ots.is_sorted_by(|a, b| dollars(a) <= dollars(b)));
            assert!(bill.ots.iter().enumerate().all(|(i, ot)| ot.cheapest == (i == 0)));
            assert_eq!(bill.total, bill.ots[0].total);
            assert!(
                plan.assumptions["ot"].starts_with(kinds[0])
                    && plan.assumptions["engine"].ends_with(kinds[0])
            );
            kinds[0].to_owned()
        };
        assert_eq!(cheapest(BytePath::Internet), "ferret");
        assert_ne!(cheapest(BytePath::Zone), "ferret", "bytes are free");
    }

    /// The plan of a study that names a kind is of that, and so are its bytes.
    #[test]
    fn what_a_study_names_stays() {
        let named = LIFT.replace("engine  = \"auto\"", "engine  = \"gmw\"\not = \"softspoken:3\"");
        let plan = priced(&named, 1_000_000, WIDE, BytePath::Internet);
        let study = Study::parse("study.toml", &named).unwrap();
        let speeds = Speeds { cores: 32.0, ..Speeds::default() };
        let assumed = Assumed { rows: [1_000_000; 2], both: None, outcome: None };
        assert_eq!(plan.stages, crate::plan::plan(&study, &assumed, WIDE, speeds).unwrap().stages);
        let bill = plan.bill.unwrap();
        let sent: u64 = plan.stages.iter().flat_map(|stage| stage.bytes_sent.values()).sum();
        assert_eq!(bill.total.bytes, sent);
        assert_eq!(bill.ots.len(), OT_KINDS.len() + 1);
        assert!(!plan.assumptions.contains_key("ot"));
        let own = bill.ots.iter().find(|ot| ot.ot == "softspoken:3").unwrap();
        assert!(own.total == bill.total && !own.cheapest);
        let garbled = LIFT.replace("engine  = \"auto\"", "engine  = \"yao\"");
        assert!(priced(&garbled, 1000, WIDE, BytePath::Zones).bill.unwrap().ots.is_empty(), "no transfers");
    }

    /// Runs apart go on at the same time on the publisher's cores, so their stages are added up.
    #[test]
    fn runs_apart_are_added_up() {
        let text = include_str!("../../../../examples/lift-several.toml")
            .replace("advertisers  = \"together\"", "advertisers  = \"apart\"");
        let plan = priced(&text, 10_000, WIDE, BytePath::Zones);
        let bill = plan.bill.unwrap();
        assert_eq!(bill.stages.len(), 1 + plan.stages.len());
        assert!(bill.stages.iter().skip(1).all(|stage| stage.parties == 2 && stage.name.contains('/')));
    }
}

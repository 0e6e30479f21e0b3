//! What carries the computation among the four servers of a study: what it costs. Owners without a seat, and
//! everything but the computation, keep TLS.

use crate::plan::{Link, Plan, PlanStage};
use base::Cost;
use fabric::PlainTransport;
use study::Study;
use study::transport::{ServerTransport, protects};

/// What making plain channels among the servers costs.
#[must_use]
pub fn price(study: &Study, kind: &PlainTransport) -> Cost {
    let mut cost = Cost::zero(study.roster().len());
    let seats = study.seats().into_iter().flatten();
    for me in seats.clone() {
        for peer in seats.clone().filter(|peer| *peer != me) {
            cost.sent[me.index()] += fabric::upgrade_bytes(me, peer, kind);
            cost.rounds += 1;
        }
    }
    cost
}

impl Plan {
    /// The same with the servers' transport. Nothing where the study has no servers.
    #[must_use]
    pub fn over(mut self, study: &Study, transport: &ServerTransport, link: Link) -> Self {
        if study.servers.is_none() {
            return self;
        }
        let used = match transport {
            ServerTransport::Auto => {
                "auto: memory that all four share, if they are on one host, else TLS".to_owned()
            }
            other => format!("{other}: {}", protects(&other.to_string())),
        };
        self.assumptions.insert("transport".into(), used);
        if let Some(kind) = transport.plain() {
            let cost = price(study, &kind);
            let names = study.everybody().into_iter().map(|(name, _)| name.to_owned());
            let stage = PlanStage {
                name: STAGE.into(),
                and_gates: 0,
                ots: 0,
                bytes_sent: names.zip(cost.sent.iter().copied()).collect(),
                rounds: cost.rounds,
                seconds: link.seconds(&cost) + cost.rounds as f64 * link.round_trip_s,
            };
            self.stages.insert(0, stage);
        }
        self
    }
}

/// The stage in which channels are made.
pub const STAGE: &str = "upgrade";

//! All five at small sizes, both parties, against the clear computation and against their prices.

use crate::args::{SizeChoice, Workload};
use crate::run::pass;
use base::PartyId;
use clap::ValueEnum;
use net::cluster::Cluster;
use osprey::Heap;
use yao::wires::{Role, WireParty};

#[test]
fn every_workload_is_right_and_costs_what_its_speculation_says() {
    let small = [256, 1024, 17, 64, 192];
    for (workload, size) in Workload::value_variants().iter().zip(small) {
        let size = workload.size(SizeChoice::Number(size)).expect("a size");
        let mut speculator = WireParty::speculator(Role::Garbler);
        let guessed = pass(*workload, size, true, &Heap, &mut speculator).expect("no network");
        assert_eq!(guessed.correct, None);
        let done = Cluster::new(2, 9).run(|session| {
            let me = session.me();
            let mut p =
                if me == PartyId(0) { WireParty::garbler(session) } else { WireParty::evaluator(session) }?;
            let (role, found) = (p.role(), pass(*workload, size, true, &Heap, &mut p)?);
            let ledger = session.traffic();
            assert_eq!(ledger.sent(""), found.price.sent(role));
            assert_eq!((ledger.and_gates(""), ledger.ots("")), (found.price.and_gates, found.price.ots));
            Ok(found)
        });
        for found in done {
            let found = found.expect("the run succeeds");
            assert_eq!(found.correct, Some(true), "{workload:?}");
            assert_eq!((found.price, found.bytes), (guessed.price, guessed.bytes));
            assert_eq!(found.and_gates, formula(*workload, size as u64), "{workload:?}");
        }
    }
}

/// AND gates by the formulas of `docs/osprey/boolean.md`.
fn formula(workload: Workload, n: u64) -> u64 {
    let pair = 32 + 128;
    match workload {
        Workload::Merge => (2 * n).ilog2() as u64 * n * pair,
        Workload::Sort => {
            let levels = (2 * n).ilog2() as u64;
            levels * (levels + 1) / 2 * n * pair
        }
        Workload::Ljoin => n * n * (32 + 2 * 128),
        Workload::Mvmul => n * n * 120 + n * (n - 1) * 15,
        Workload::Binfclayer => {
            use yao::wires::ands;
            // Every stretch of 32 bits by itself, what is left of a part, and their sums.
            let part = n / 64;
            let (mut counts, mut width) = (0, 0);
            for from in (0..part).step_by(32) {
                let bits = 32.min(part - from);
                counts += ands::popcount(bits);
                counts += if from == 0 { 0 } else { ands::add_wide(width) };
                width = if from == 0 { ands::count_width(bits) } else { width + 1 };
            }
            n * (64 * counts + ands::sum_groups(width, 64, true) + ands::less_than(width + 6))
        }
    }
}

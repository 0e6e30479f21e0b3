//! How fast rows are garbled and evaluated in one process, a thread per party:
//! `cargo run --release -p yao --example rate -- [rows] [lanes] [k]`. Prints AND/s for independent gates, and
//! rows/s of the lift row with K = 4.

use base::{Error, PartyId};
use engine::{Engine, RowInput, RowSource};
use net::cluster::Cluster;
use program::ShardRows;
use program::{Class, Program, ProgramBuilder, ValueType};
use std::time::Instant;
use studies::lift::{BenchRows, LiftParameters};
use yao::Yao;

/// Columns of words that depend on row and column only.
struct Words(u64);

impl ShardRows for Words {
    fn len(&self) -> u64 {
        self.0
    }
    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        for (row, value) in (from..).zip(into) {
            let mixed = (row ^ u64::from(column) << 60).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            *value = u128::from(mixed >> 32);
        }
        Ok(())
    }
}

/// 250 independent ANDs of bits that both parties share.
fn ands() -> Program {
    let mut b = ProgramBuilder::new("ands", Class::Exact, ["a", "b"]);
    let word = ValueType::u(32);
    let (p, q) = (b.column("p", word, Some(PartyId(0))), b.column("q", word, Some(PartyId(1))));
    let x = b.xor(p, q);
    let bit = |b: &mut ProgramBuilder, i: u8| {
        let shifted = b.shr(x, i);
        b.cast(shifted, ValueType::BIT)
    };
    let bits: Vec<_> = (0..32).map(|i| bit(&mut b, i)).collect();
    let pairs = (0..32).flat_map(|i| (i + 1..32).map(move |j| (i, j))).take(250);
    let mut sum = None;
    for (i, j) in pairs {
        let and = b.and(bits[i], bits[j]);
        sum = Some(sum.map_or(and, |s| b.xor(s, and)));
    }
    b.sum(sum.expect("250 gates"), ValueType::u(40));
    b.finish()
}

fn time(
    name: &str,
    program: &Program,
    rows: u64,
    make: &(dyn Fn(PartyId) -> Box<dyn ShardRows> + Sync),
    yao: [usize; 2],
) {
    let stage = Yao::new(yao[1] as u32).with_lanes(yao[0]).rows(program, RowSource::Owned);
    let stage = stage.expect("sums of two parties");
    let price = stage.price(rows).cost;
    let start = Instant::now();
    let done = Cluster::new(2, 1).run(|s| {
        let mut source = make(s.me());
        stage.run(RowInput::Owned(&mut *source), s)
    });
    done.into_iter().for_each(|d| drop(d.expect("the run succeeds")));
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name:>6}: {:>7.1} M AND/s  {:>9.0} rows/s  {:>7.0} B/row  {:.2} s",
        price.and_gates as f64 / seconds / 1e6,
        rows as f64 / seconds,
        price.bytes() as f64 / rows as f64,
        seconds
    );
}

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("a number"));
    let rows = args.next().unwrap_or(400_000) as u64;
    let yao = [args.next().unwrap_or(yao::LANES), args.next().unwrap_or(2)];
    time("and", &ands(), rows, &|_| Box::new(Words(rows)), yao);
    let lift = LiftParameters::bench(4);
    let (program, layout) = studies::lift::build(&lift).expect("the bench study builds");
    time("lift", &program, rows, &|p| Box::new(BenchRows::new(&lift, &layout, Some(p), rows, 7)), yao);
}

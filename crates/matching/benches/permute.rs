//! Permutation networks: microseconds to route a permutation, and to share a permuted table between two
//! threads.

use base::Seed;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use matching::permute::{PlaneRows, Switchboard, network::switches, route};
use matching::{PayloadLayout, PayloadTable, TableField};
use net::cluster::Cluster;
use ot::OtKind;

fn order(n: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    Seed::from_bytes([1; 32]).into_rng().shuffle(&mut order);
    order
}

fn routes(c: &mut Criterion) {
    let mut group = c.benchmark_group("route");
    group.sample_size(10);
    for n in [1 << 14, 1 << 18] {
        let order = order(n);
        group.throughput(Throughput::Elements(u64::from(n)));
        group.bench_with_input(BenchmarkId::from_parameter(n), &order, |b, order| {
            b.iter(|| route(order.clone()))
        });
    }
    group.finish();
}

/// Both parties with set-up of OTs, rows of numbers, words of bits, or numbers of an odd width.
fn shares(c: &mut Criterion) {
    let n = 1 << 15;
    let (order, expected) = (order(n), switches(n.into()));
    let mut group = c.benchmark_group("share");
    group.sample_size(10).throughput(Throughput::Elements(expected));
    let number = |bytes: u8, count: usize| vec![TableField::number(bytes); count];
    let layouts = [
        ("1 x 8", number(8, 1)),
        ("8 x 8", number(8, 8)),
        ("64 of bits", vec![TableField::bits(128); 4]),
        ("12 x 5", number(5, 12)),
        ("16 x 8", number(8, 16)),
    ];
    for (name, fields) in layouts {
        let layout = PayloadLayout::new(fields).expect("narrow enough");
        let table = PayloadTable::zeros(layout.clone(), n.into()).expect("it fits");
        group.bench_function(name, |b| {
            b.iter(|| {
                Cluster::new(2, 1).run(|session| {
                    let mut board = Switchboard::new(session, OtKind::default(), expected)?;
                    match session.me().0 {
                        0 => board.serve_permutation(session, PlaneRows::of(&table)?),
                        _ => board.permute(
                            session,
                            PlaneRows::zeros(&layout, n as usize)?,
                            route(order.clone())?,
                        ),
                    }
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, routes, shares);
criterion_main!(benches);

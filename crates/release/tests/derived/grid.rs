//! The grid of the study.

use crate::laws::{Column, RowLaw, bit, normal, quantile, spending, uniform_column};
use crate::trials::{Read, StudyCell};
use release::derived::{self, CellMean, DerivedEstimate};

pub const ROWS: [u64; 4] = [50, 500, 5000, 20_000];
pub const RHOS: [Option<f64>; 4] = [Some(0.01), Some(0.1), Some(1.0), None];

/// A statistic on laws, before rows and rho.
struct Question {
    statistic: &'static str,
    laws: Vec<RowLaw>,
    most: Vec<f64>,
    truth: f64,
    /// The standard error of one row without noise.
    oracle: f64,
    read: fn(&[f64]) -> Read,
    ranges: Vec<f64>,
    /// Whether it rests on sums that are normal.
    classical: bool,
}

/// All cells at these rows and rhos.
pub fn grid(rows: &[u64], rhos: &[Option<f64>]) -> Vec<StudyCell> {
    let mut cells = Vec::new();
    let all = [of_one(), of_two(), of_pairs(), regressions(), quantiles()];
    for question in all.into_iter().flatten() {
        for rows in rows {
            for rho in rhos {
                cells.push(StudyCell {
                    statistic: question.statistic,
                    laws: question.laws.clone(),
                    rows: *rows,
                    rho: *rho,
                    most: question.most.clone(),
                    truth: question.truth,
                    oracle: question.oracle / (*rows as f64).sqrt(),
                    read: (question.read)(&question.ranges),
                    // Residuals of exact sums are classical: nothing tells of their skew.
                    required: !(question.classical && rho.is_none() && *rows < 500),
                });
            }
        }
    }
    cells
}

fn columns() -> Vec<Column> {
    vec![
        normal(),
        uniform_column(),
        spending(0.03, 1.0),
        bit("1 %", 0.01),
        bit("40 %", 0.4),
        bit("98 %", 0.98),
    ]
}

fn moment(column: &Column, power: i32) -> f64 {
    column.values.iter().map(|(x, p)| x.powi(power) * p).sum::<f64>()
}

fn central(column: &Column, power: i32) -> f64 {
    let mean = moment(column, 1);
    column.values.iter().map(|(x, p)| (x - mean).powi(power) * p).sum::<f64>()
}

fn sums(column: &Column) -> RowLaw {
    RowLaw::new(column.name, column.values.iter().map(|(x, p)| (vec![1.0, *x, x * x], *p)).collect())
}

/// Sums of x counted from the middle of its range: noise of S and Q from its end then varies together.
fn centred(column: &Column) -> RowLaw {
    let row = |x: f64| vec![1.0, x, x * x];
    let middle = 0.5 * column.range;
    RowLaw::new(column.name, column.values.iter().map(|(x, p)| (row(x - middle), *p)).collect())
}

fn counts(column: &Column) -> RowLaw {
    RowLaw::new(column.name, column.values.iter().map(|(x, p)| (vec![1.0, *x], *p)).collect())
}

fn of_one() -> Vec<Question> {
    let mut all = Vec::new();
    for column in columns() {
        let range = column.range;
        let spread = central(&column, 2);
        let fourth = (central(&column, 4) - spread * spread).max(0.0).sqrt();
        let question = |statistic, truth, oracle, read| Question {
            statistic,
            laws: vec![sums(&column)],
            most: vec![1.0, range, range * range],
            truth,
            oracle,
            read,
            ranges: vec![range],
            classical: false,
        };
        all.push(question("mean", moment(&column, 1), spread.sqrt(), |ranges| {
            let range = [0.0, ranges[0]];
            Box::new(move |cells, level| derived::mean(&cells[0], range, level).unwrap())
        }));
        all.push(question("variance", spread, fourth, |ranges| {
            let range = [0.0, ranges[0]];
            Box::new(move |cells, level| derived::variance(&cells[0], range, level).unwrap())
        }));
        all.push(question("deviation", spread.sqrt(), 0.5 * fourth / spread.sqrt(), |ranges| {
            let range = [0.0, ranges[0]];
            Box::new(move |cells, level| derived::standard_deviation(&cells[0], range, level).unwrap())
        }));
        all.push(Question {
            laws: vec![centred(&column)],
            most: vec![1.0, 0.5 * range, 0.25 * range * range],
            ..question("centred mean", moment(&column, 1), spread.sqrt(), |ranges| {
                let (range, half) = ([0.0, ranges[0]], 0.5 * ranges[0]);
                let back = [[1.0, 0.0, 0.0], [half, 1.0, 0.0], [half * half, 2.0 * half, 1.0]].map(Vec::from);
                Box::new(move |cells, level| {
                    derived::mean(&cells[0].combined(&back).unwrap(), range, level).unwrap()
                })
            })
        });
        if range == 1.0 {
            all.push(Question {
                laws: vec![counts(&column)],
                most: vec![1.0, 1.0],
                ..question("proportion", moment(&column, 1), spread.sqrt(), |_| {
                    Box::new(|cells, level| derived::proportion(&cells[0], level).unwrap())
                })
            });
        }
    }
    all
}

/// Of two means or shares.
fn of_two() -> Vec<Question> {
    let mut all = Vec::new();
    let coins = [(0.011, 0.01), (0.055, 0.05), (0.5, 0.4), (0.98, 0.95)];
    for (p, q) in coins {
        let [a, b] = [bit("", p), bit("", q)];
        let [mut first, mut second] = [counts(&a), counts(&b)];
        first.name = format!("{:.1} %", 100.0 * p);
        second.name = format!("{:.1} %", 100.0 * q);
        let (u, v) = (p * (1.0 - p), q * (1.0 - q));
        let question = |statistic, truth, oracle, read| Question {
            statistic,
            laws: vec![first.clone(), second.clone()],
            most: vec![1.0, 1.0],
            truth,
            oracle,
            read,
            ranges: Vec::new(),
            classical: false,
        };
        all.push(question("risk diff", p - q, (u + v).sqrt(), |_| bits(derived::difference)));
        all.push(question("risk ratio", p / q, p / q * (u / (p * p) + v / (q * q)).sqrt(), |_| {
            bits(derived::risk_ratio)
        }));
        let odds = p / (1.0 - p) / (q / (1.0 - q));
        all.push(question("odds ratio", odds, odds * (1.0 / u + 1.0 / v).sqrt(), |_| {
            bits(derived::odds_ratio)
        }));
    }
    let values = [
        [spending(0.033, 1.05), spending(0.03, 1.0)],
        [normal(), normal()],
        [uniform_column(), uniform_column()],
    ];
    for [a, b] in values {
        let (p, q) = (moment(&a, 1), moment(&b, 1));
        let (u, v) = (central(&a, 2), central(&b, 2));
        let question = |statistic, truth, oracle, read| Question {
            statistic,
            laws: vec![sums(&a), sums(&b)],
            most: vec![1.0, a.range, a.range * a.range],
            truth,
            oracle,
            read,
            ranges: vec![a.range],
            classical: false,
        };
        all.push(question("difference", p - q, (u + v).sqrt(), |ranges| {
            values_of(ranges, derived::difference)
        }));
        all.push(question("ratio", p / q, p / q * (u / (p * p) + v / (q * q)).sqrt(), |ranges| {
            values_of(ranges, derived::ratio)
        }));
    }
    all
}

type OfTwo = fn(&CellMean, &CellMean, f64) -> Result<DerivedEstimate, base::Error>;

fn bits(of: OfTwo) -> Read {
    Box::new(move |cells, level| {
        let [a, b] = [0, 1].map(|i| CellMean::of_bit(&cells[i]).unwrap());
        of(&a, &b, level).unwrap()
    })
}

fn values_of(ranges: &[f64], of: OfTwo) -> Read {
    let range = [0.0, ranges[0]];
    Box::new(move |cells, level| {
        let [a, b] = [0, 1].map(|i| CellMean::of_value(&cells[i], range).unwrap());
        of(&a, &b, level).unwrap()
    })
}

/// A law of two values: the second is the first in a share of rows, and of its own law in the others.
fn joined(name: &str, first: &Column, second: &Column, share: f64) -> (RowLaw, Vec<([f64; 2], f64)>) {
    let mut atoms = Vec::new();
    for (x, p) in &first.values {
        atoms.push(([*x, *x * second.range / first.range], p * share));
        for (y, q) in &second.values {
            atoms.push(([*x, *y], p * q * (1.0 - share)));
        }
    }
    let row = |[x, y]: [f64; 2]| vec![1.0, x, y, x * x, x * y, y * y];
    let law = RowLaw::new(name, atoms.iter().map(|(xy, p)| (row(*xy), *p)).collect());
    (law, atoms)
}

fn coarse(column: &Column, every: usize) -> Column {
    let values: Vec<(f64, f64)> = column.values.iter().copied().step_by(every).collect();
    let all: f64 = values.iter().map(|v| v.1).sum();
    Column { values: values.into_iter().map(|(x, p)| (x, p / all)).collect(), ..column.clone() }
}

fn few_buy() -> Column {
    let column = coarse(&spending(0.03, 1.0), 4);
    let buyers = column.values.len() - 1;
    let share = |i| if i == 0 { 0.97 } else { 0.03 / buyers as f64 };
    Column { values: column.values.iter().enumerate().map(|(i, v)| (v.0, share(i))).collect(), ..column }
}

/// A log-normal amount of everybody, in a range that cuts one of a hundred.
fn amount() -> Column {
    let values = (0..8).map(|i| ((40.0 * (0.8 * quantile(i, 8)).exp()).round(), 1.0 / 8.0));
    Column { name: "amount", range: 250.0, values: values.collect() }
}

fn of_pairs() -> Vec<Question> {
    let (normal, uniform) = (coarse(&normal(), 3), coarse(&uniform_column(), 3));
    let laws = [
        ("normal, 0", &normal, &normal, 0.0),
        ("normal, .6", &normal, &normal, 0.6),
        ("uniform, .95", &uniform, &uniform, 0.95),
        ("spending, .5", &few_buy(), &few_buy(), 0.5),
        ("spending, 0", &few_buy(), &few_buy(), 0.0),
        ("amounts, 0", &amount(), &amount(), 0.0),
        ("amounts, .3", &amount(), &amount(), 0.3),
        ("spending of normal", &normal, &few_buy(), 0.2),
        ("bits, .3", &bit("", 0.05), &bit("", 0.05), 0.3),
        ("bits, .7", &bit("", 0.5), &bit("", 0.5), 0.7),
    ];
    let mut all = Vec::new();
    for (name, x, y, share) in laws {
        let (law, atoms) = joined(name, x, y, share);
        let mean = |of: &dyn Fn([f64; 2]) -> f64| atoms.iter().map(|(xy, p)| of(*xy) * p).sum::<f64>();
        let [t, u] = [mean(&|[x, _]| x), mean(&|[_, y]| y)];
        let [v, w] = [mean(&|[x, _]| (x - t).powi(2)), mean(&|[_, y]| (y - u).powi(2))];
        let c = mean(&|[x, y]| (x - t) * (y - u));
        let r = c / (v * w).sqrt();
        let spread = mean(&|[x, y]| ((x - t) * (y - u) - c).powi(2)).sqrt();
        let influence = mean(&|[x, y]| {
            let (a, b) = ((x - t) / v.sqrt(), (y - u) / w.sqrt());
            (a * b - 0.5 * r * (a * a + b * b)).powi(2)
        });
        let (p, q) = (x.range, y.range);
        let question = |statistic, truth, oracle, read| Question {
            statistic,
            laws: vec![law.clone()],
            most: vec![1.0, p, q, p * p, p * q, q * q],
            truth,
            oracle,
            read,
            ranges: vec![p, q],
            classical: false,
        };
        all.push(question("covariance", c, spread, |ranges| {
            let ranges = [[0.0, ranges[0]], [0.0, ranges[1]]];
            Box::new(move |cells, level| derived::covariance(&cells[0], ranges, level).unwrap())
        }));
        all.push(question("correlation", r, influence.sqrt(), |ranges| {
            let ranges = [[0.0, ranges[0]], [0.0, ranges[1]]];
            Box::new(move |cells, level| derived::correlation(&cells[0], ranges, level).unwrap())
        }));
    }
    all
}

/// y = 5 + 3 treated + 2 baseline + residual, in whole numbers: the coefficient of a covariate.
fn regressions() -> Vec<Question> {
    let residuals = [
        ("even", (0..7).map(|i| (f64::from(i), 1.0 / 7.0)).collect::<Vec<_>>()),
        ("skewed", vec![(0.0, 0.9), (20.0, 0.07), (40.0, 0.03)]),
    ];
    let mut all = Vec::new();
    for (name, residuals) in residuals {
        let mean: f64 = residuals.iter().map(|(e, p)| e * p).sum();
        let spread = residuals.iter().map(|(e, p)| (e - mean).powi(2) * p).sum::<f64>().sqrt();
        let mut atoms = Vec::new();
        for treated in [0.0, 1.0] {
            for i in 0..6 {
                for (e, p) in &residuals {
                    let baseline = (10.0 + 5.0 * quantile(i, 6)).round();
                    let y = 5.0 + 3.0 * treated + 2.0 * baseline + e;
                    atoms.push(([1.0, treated, baseline, y], p / 12.0));
                }
            }
        }
        let law = RowLaw::new(name, atoms.iter().map(|(row, p)| (products(row), *p)).collect());
        let means = law.means();
        let baseline = (means[7] - means[2] * means[2]).sqrt();
        let most = products(&[1.0, 1.0, 20.0, 90.0]);
        let question = |statistic, truth, oracle, read| Question {
            statistic,
            laws: vec![law.clone()],
            most: most.clone(),
            truth,
            oracle,
            read,
            ranges: Vec::new(),
            classical: true,
        };
        all.push(question("treated", 3.0, 2.0 * spread, |_| coefficient(1)));
        all.push(question("baseline", 2.0, spread / baseline, |_| coefficient(2)));
        let middle = [0.0, 0.5, 10.0, 45.0];
        let moved = |row: &[f64; 4]| std::array::from_fn::<f64, 4, _>(|i| row[i] - middle[i]);
        all.push(Question {
            laws: vec![RowLaw::new(name, atoms.iter().map(|(row, p)| (products(&moved(row)), *p)).collect())],
            most: products(&[1.0, 0.5, 10.0, 45.0]),
            ..question("centred treated", 3.0, 2.0 * spread, |_| coefficient(1))
        });
        let from_zero = (1.0 / 0.5 + (means[2] / baseline).powi(2)).sqrt();
        all.push(question("intercept", 5.0 + mean, spread * from_zero, |_| coefficient(0)));
    }
    all
}

fn coefficient(of: usize) -> Read {
    Box::new(move |cells, level| derived::least_squares(&cells[0], 2, level).unwrap()[of])
}

/// The upper triangle of the products.
fn products(row: &[f64]) -> Vec<f64> {
    (0..row.len()).flat_map(|i| (i..row.len()).map(move |j| row[i] * row[j])).collect()
}

const BUCKETS: usize = 16;

/// Of a value that is even within its buckets, whose shares are those of a normal or of a skewed law.
fn quantiles() -> Vec<Question> {
    let normal: Vec<f64> = (0..BUCKETS).map(|i| (-0.5 * ((i as f64 - 7.5) / 3.0).powi(2)).exp()).collect();
    let skewed: Vec<f64> = (0..BUCKETS).map(|i| 0.5f64.powi(i as i32)).collect();
    let mut all = Vec::new();
    for (name, weights) in [("normal", normal), ("halving", skewed)] {
        let unit = |i: usize| (0..BUCKETS).map(|j| f64::from(u8::from(i == j))).collect::<Vec<_>>();
        let law = RowLaw::new(name, weights.iter().enumerate().map(|(i, w)| (unit(i), *w)).collect());
        for (statistic, p, read) in [
            ("median", 0.5, (|_| at(0.5)) as fn(&[f64]) -> Read),
            ("95 %", 0.95, |_| at(0.95)),
            ("1 %", 0.01, |_| at(0.01)),
        ] {
            let (mut below, mut bucket) = (0.0, 0);
            while below + law.shares[bucket] < p {
                below += law.shares[bucket];
                bucket += 1;
            }
            let truth = bucket as f64 + (p - below) / law.shares[bucket];
            let oracle = (p * (1.0 - p)).sqrt() / law.shares[bucket];
            // A row is in one bucket: together the counts are one sum of one row.
            let most = vec![(1.0 / BUCKETS as f64).sqrt(); BUCKETS];
            all.push(Question {
                statistic,
                laws: vec![law.clone()],
                most,
                truth,
                oracle,
                read,
                ranges: vec![],
                classical: false,
            });
        }
    }
    all
}

fn at(p: f64) -> Read {
    let edges: Vec<f64> = (0..=BUCKETS).map(|i| i as f64).collect();
    Box::new(move |cells, level| derived::quantile(&cells[0], &edges, p, level).unwrap())
}

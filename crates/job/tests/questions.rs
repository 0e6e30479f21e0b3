//! The worked programs of `docs/questions.md`, on files, by every match and engine that they run with,
//! against what numpy makes of the rows that both parties have: `np.histogram`, `np.mean`, `np.var` (of
//! `ddof=1`), `np.corrcoef` and `np.linalg.lstsq`, written out here.

mod both;
mod common;

use both::{both, whole};
use common::parties::{PartyFile, make_key, mixed};
use common::{SALTED, SERVERS, World, all, quiet};
use job::run::Watch;
use program::Program;
use report::{DerivedView, ResultView, RunReport};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

const DOSES: [&str; 3] = ["none", "low", "high"];

/// The programs of the page, by name.
fn worked() -> Vec<(String, String)> {
    let page = include_str!("../../../docs/questions.md");
    let texts = page.split("```tacit\n").skip(1).map(|rest| rest.split_once("```").expect("it ends").0);
    texts.map(|text| (Program::parse(text).unwrap().name, text.to_owned())).collect()
}

/// What both parties have of one person. Money in cents.
#[derive(Clone, Copy)]
struct Person {
    ill: bool,
    cost: i64,
    dose: usize,
    treated: bool,
    age: i64,
    pressure: Option<i64>,
}

fn person(i: u64) -> Person {
    let dose = (mixed(i, 1) % 3) as usize;
    let treated = mixed(i, 2) % 2 == 1;
    let age = 18 + (mixed(i, 3) % 72) as i64;
    let pressure = 100 + (mixed(i, 4) % 50) as i64 + (mixed(i, 5) % 40) as i64;
    let risk = 30 - 8 * u64::from(treated) + age as u64 / 4 - 5 * dose as u64;
    let ill = mixed(i, 6) % 100 < risk;
    let spread = (mixed(i, 7) % 12_000) as i64 + (mixed(i, 8) % 12_000) as i64;
    let cost = 150 * pressure - 14_000 - 4_000 * i64::from(treated) + 2_500 * dose as i64 + spread;
    let pressure = (!mixed(i, 9).is_multiple_of(10)).then_some(pressure);
    Person { ill, cost, dose, treated, age, pressure }
}

/// Writes both files; returns those that both have.
fn write(folder: &Path) -> Vec<Person> {
    let money = |cents: i64| {
        format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100)
    };
    let mut registry = "id,ill,cost\n".to_owned();
    for i in 500..3500 {
        let p = person(i);
        registry += &format!("p{i},{},{}\n", if p.ill { "yes" } else { "no" }, money(p.cost));
    }
    let mut trial = "id,dose,treated,age,pressure\n".to_owned();
    for i in 0..3000 {
        let p = person(i);
        let pressure = p.pressure.map_or(String::new(), |p| p.to_string());
        trial += &format!("p{i},{},{},{},{pressure}\n", DOSES[p.dose], u8::from(p.treated), p.age);
    }
    std::fs::write(folder.join("registry.csv"), registry).unwrap();
    std::fs::write(folder.join("trial.csv"), trial).unwrap();
    (500..3000).map(person).collect()
}

/// A study of a program whose columns are those of the files.
fn study(program: &str, protocol: &str, rest: &str) -> String {
    let parsed = Program::parse(program).unwrap();
    let columns = parsed.columns.iter().filter(|column| !column.is_built_in());
    let columns: String = columns
        .map(|column| {
            let party = &parsed.parties[column.holder.only().unwrap().index()];
            format!("{0} = {{ party = \"{party}\", column = \"{0}\" }}\n", column.name)
        })
        .collect();
    let viewers: Vec<String> = parsed
        .viewers()
        .filter_map(|viewer| {
            let spent: release::Rational =
                parsed.mechanisms.iter().filter(|m| m.to == viewer).map(|m| &m.rho).sum();
            let table = match viewer {
                program::Viewer::Public => "[release.public]".to_owned(),
                viewer => format!("[release.to.{}]", viewer.name(&parsed.parties)),
            };
            (spent > release::rational::ratio(0, 1))
                .then(|| format!("{table}\nrho = {}\n", release::rational::to_f64(&spent)))
        })
        .collect();
    format!(
        "format = \"tacit-study/1\"\nname = \"worked\"\nkind = \"program\"\ntitle = \"{}\"\n\
         [party.registry]\nkey = \"@registry\"\n[party.trial]\nkey = \"@trial\"\n[match]\nprotocol = \
         \"{protocol}\"\n\
         identifiers = [ {{ name = \"id\", normalise = [\"trim\"] }} ]\nduplicates = \"error\"\n[columns]\n\
         {columns}\
         [program]\ntext = \"\"\"\n{program}\"\"\"\n{}{rest}",
        parsed.name,
        viewers.concat(),
    )
}

const POLICY: &str = "kinds = [\"program\"]\nmax_rho = 5\nbudget = 20\ntotal = 20";

/// Reports of a pair of parties.
fn pair(program: &str, protocol: &str, engine: &str) -> (Vec<Person>, Vec<RunReport>) {
    let folder = TempDir::new().unwrap();
    let people = write(folder.path());
    let mut text = study(program, protocol, &format!("[compute]\nengine = \"{engine}\"\n"));
    for name in ["registry", "trial"] {
        text = text.replace(&format!("\"@{name}\""), &format!("\"{}\"", make_key(folder.path(), name)));
    }
    std::fs::write(folder.path().join("study.toml"), text).unwrap();
    let parties = PartyFile::pair(folder.path(), ["registry", "trial"]).map(|f| f.policy(POLICY).setup());
    let reports = whole(both(&parties, &Watch::none()));
    (people, reports.into())
}

/// What the viewer derives: everybody, or the trial.
fn derived(reports: &[RunReport]) -> BTreeMap<String, DerivedView> {
    for stage in reports.iter().flat_map(|report| &report.stages) {
        assert!(stage.price_held, "{stage:?}");
    }
    let view = reports[1].public.as_ref().unwrap_or(&reports[1].view);
    let ResultView::Program { derived, .. } = view else { panic!("a program's view") };
    derived.iter().map(|view| (view.label.clone(), view.clone())).collect()
}

fn average(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count() as f64
}

/// `np.linalg.lstsq` of y on a constant and x, by the normal equations of centred values.
fn fit(rows: &[(Vec<f64>, f64)]) -> Vec<f64> {
    let k = rows[0].0.len();
    let means: Vec<f64> = (0..k).map(|j| average(rows.iter().map(|row| row.0[j]))).collect();
    let mean_y = average(rows.iter().map(|row| row.1));
    let mut system: Vec<Vec<f64>> = (0..k)
        .map(|i| {
            let x = |row: &(Vec<f64>, f64), j: usize| row.0[j] - means[j];
            let mut line: Vec<f64> =
                (0..k).map(|j| rows.iter().map(|row| x(row, i) * x(row, j)).sum()).collect();
            line.push(rows.iter().map(|row| x(row, i) * (row.1 - mean_y)).sum());
            line
        })
        .collect();
    for i in 0..k {
        let pivot = system[i].clone();
        for (j, line) in system.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = line[i] / pivot[i];
            debug_assert_ne!(i, j);
            line.iter_mut().zip(&pivot).for_each(|(a, b)| *a -= factor * b);
        }
    }
    let slopes: Vec<f64> = (0..k).map(|i| system[i][k] / system[i][i]).collect();
    let constant = mean_y - slopes.iter().zip(&means).map(|(b, m)| b * m).sum::<f64>();
    [vec![constant], slopes].concat()
}

/// Every number that the worked programs derive, of the people whom both parties have.
fn truth(people: &[Person]) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    let euro = |p: &Person| (p.cost as f64 / 100.0).clamp(-50.0, 450.0);
    let share = |of: &dyn Fn(&Person) -> bool| {
        average(people.iter().filter(|p| of(p)).map(|p| f64::from(u8::from(p.ill))))
    };
    // The two-by-two table.
    for (t, treated) in [(false, "not treated"), (true, "treated")] {
        for (i, ill) in [(false, "not ill"), (true, "ill")] {
            let count = people.iter().filter(|p| p.treated == t && p.ill == i).count();
            all.insert(format!("rows, {treated}, {ill}"), count as f64);
        }
        all.insert(format!("share of ill, {treated}"), share(&|p| p.treated == t));
    }
    let (b, a) = (share(&|p| !p.treated), share(&|p| p.treated));
    for (what, value) in [
        ("risk-difference", a - b),
        ("risk-ratio", a / b),
        ("odds-ratio", a / (1.0 - a) / (b / (1.0 - b))),
        ("needed-to-treat", 1.0 / (a - b)),
    ] {
        all.insert(format!("{what} of ill, treated against not treated"), value);
    }
    // Cost by dose.
    let of_dose = |d: usize| people.iter().filter(move |p| p.dose == d).map(euro);
    for (d, dose) in DOSES.iter().enumerate() {
        let (mean, degrees) = (average(of_dose(d)), of_dose(d).count() as f64 - 1.0);
        all.insert(format!("mean of cost, dose = {dose}"), mean);
        all.insert(
            format!("variance of cost, dose = {dose}"),
            of_dose(d).map(|x| (x - mean).powi(2)).sum::<f64>() / degrees,
        );
        if d > 0 {
            let what = format!("difference of cost, dose = {dose} against dose = none");
            all.insert(what, mean - average(of_dose(0)));
        }
    }
    // The histogram, as np.histogram: the last bin has both edges.
    for ends in [-50, 0, 50, 100, 200, 450].windows(2) {
        let (low, high) = (ends[0] * 100, ends[1] * 100);
        let inside = |p: &&Person| p.cost >= low && (p.cost < high || (high == 45_000 && p.cost == high));
        all.insert(
            format!("rows, cost {} to {}", ends[0], ends[1]),
            people.iter().filter(inside).count() as f64,
        );
    }
    // Illness by age and dose.
    for (d, dose) in DOSES.iter().enumerate() {
        for ends in [18, 40, 55, 70, 90].windows(2) {
            let of = |d: usize| share(&|p| p.dose == d && (ends[0]..ends[1]).contains(&p.age));
            let age = format!("age {} to {}", ends[0], ends[1]);
            all.insert(format!("share of ill, dose = {dose}, {age}"), of(d));
            let what = format!("risk-difference of ill, dose = {dose} against dose = none, {age}");
            all.insert(what, of(d) - of(0));
        }
    }
    // The regression and the correlation, of those whose pressure is known.
    let known: Vec<(Vec<f64>, f64)> = people
        .iter()
        .filter_map(|p| {
            Some((vec![f64::from(u8::from(p.treated)), p.pressure?.clamp(90, 190) as f64], euro(p)))
        })
        .collect();
    let names = ["constant of cost", "cost by treated", "cost by pressure"];
    all.extend(names.iter().map(|name| (*name).to_owned()).zip(fit(&known)));
    let column = |j: usize| known.iter().map(move |row| if j == 2 { row.1 } else { row.0[j] });
    let (x, y) = (average(column(1)), average(column(2)));
    let product = |i: usize, a: f64, j: usize, b: f64| -> f64 {
        column(i).zip(column(j)).map(|(u, v)| (u - a) * (v - b)).sum()
    };
    let r = product(1, x, 2, y) / (product(1, x, 1, x) * product(2, y, 2, y)).sqrt();
    all.insert("correlation of cost with pressure".into(), r);
    all
}

/// The sample's quartiles; the interval is of whole bins.
fn check_quantile(people: &[Person], view: &DerivedView) {
    let share = [("1/4", 0.25), ("median", 0.5), ("3/4", 0.75)];
    let (_, share) = share.into_iter().find(|(word, _)| view.label.contains(word)).expect("a quartile");
    let mut costs: Vec<f64> =
        people.iter().map(|p| p.cost as f64 / 100.0).filter(|c| (-50.0..=450.0).contains(c)).collect();
    costs.sort_by(f64::total_cmp);
    let exact = costs[(share * costs.len() as f64) as usize];
    let [low, high] = view.intervals[0].map(|end| end.expect("determined"));
    assert!(low <= exact && exact <= high, "{view:?} {exact}");
}

fn check(people: &[Person], name: &str, derived: &BTreeMap<String, DerivedView>) {
    let truth = truth(people);
    for (label, view) in derived {
        if view.statistic == "quantile" {
            check_quantile(people, view);
            continue;
        }
        let exact = truth.get(label).unwrap_or_else(|| panic!("{name}: {label} has no truth"));
        let value = view.value.unwrap_or_else(|| panic!("{name}: {label} has no value"));
        // Five standard deviations of the noise: in a million numbers one is beyond it.
        let noise = view.noise.unwrap_or_else(|| panic!("{name}: {label} is not determined: {view:?}"));
        assert!((value - exact).abs() <= noise * 5.0 / 1.96 + 1e-9 * exact.abs(), "{name}: {exact} {view:?}");
        let inside = |[low, high]: &[Option<f64>; 2]| {
            low.is_none_or(|low| low <= value) && high.is_none_or(|high| value <= high)
        };
        assert!(view.intervals.iter().any(inside), "{name}: {view:?}");
        // An interval ends where its range does, at the latest.
        let [least, most] = view.range.unwrap_or_default();
        let ends = || view.intervals.iter().flatten().flatten();
        assert!(least.is_none_or(|least| ends().all(|end| *end >= least - 1e-9)), "{name}: {view:?}");
        assert!(most.is_none_or(|most| ends().all(|end| *end <= most + 1e-9)), "{name}: {view:?}");
        let bounded = ["mean", "variance", "standard-deviation", "correlation", "covariance", "odds-ratio"];
        assert!(view.range.is_some() || !bounded.contains(&&*view.statistic), "{name}: {view:?}");
    }
    derived.values().for_each(|view| check_p_values(name, view));
}

/// A p-value of at most 5 % and an interval of 95 % that leaves no effect out are the same statement; what
/// compares has one.
fn check_p_values(name: &str, view: &DerivedView) {
    let compares = ["difference", "ratio", "odds-ratio", "needed-to-treat", "covariance", "correlation"];
    let Some(p_value) = view.p_value else {
        assert!(!compares.contains(&&*view.statistic) && view.holm.is_none(), "{name}: {view:?}");
        return;
    };
    assert!(view.holm.is_some_and(|holm| holm >= p_value && holm <= 1.0), "{name}: {view:?}");
    let none = if view.statistic.ends_with("ratio") { 1.0 } else { 0.0 };
    let leaves_out = |[low, high]: &[Option<f64>; 2]| {
        low.is_some_and(|low| low > none) || high.is_some_and(|high| high < none)
    };
    // No number needed to treat is 0: where there may be no effect, it has two intervals.
    let told = match &*view.statistic {
        "needed-to-treat" => view.intervals.len() == 1,
        _ => view.intervals.iter().all(leaves_out),
    };
    assert!((p_value <= 0.05) == told || (p_value - 0.05).abs() < 1e-5, "{name}: {view:?}");
}

#[test]
fn worked_programs_have_ten_lines() {
    let lines: Vec<usize> = worked().iter().map(|(_, text)| text.lines().count()).collect();
    // The first one asks for a table and for what compares its rows.
    assert!(lines.len() == 5 && lines[0] == 11 && lines[1..].iter().all(|lines| *lines <= 10), "{lines:?}");
}

#[test]
fn matched_rows_give_what_numpy_gives() {
    for (name, text) in worked() {
        let (people, reports) = pair(&text, "pid", "yao");
        check(&people, &name, &derived(&reports));
    }
}

/// For `make test-python`: files and numbers, in the folder TACIT_NUMPY.
#[test]
#[ignore = "writes what numpy reads"]
fn numbers_for_numpy() {
    let folder = std::path::PathBuf::from(std::env::var("TACIT_NUMPY").expect("a folder"));
    write(&folder);
    let all = worked().into_iter().flat_map(|(_, text)| derived(&pair(&text, "pid", "yao").1).into_values());
    let all: Vec<DerivedView> = all.collect();
    std::fs::write(folder.join("derived.json"), serde_json::to_string(&all).unwrap()).unwrap();
}

#[test]
fn joined_rows_give_what_numpy_gives() {
    for ((name, text), protocol) in worked().into_iter().zip(["ps3i", "circuit-psi"].into_iter().cycle()) {
        let (people, reports) = pair(&text, protocol, "gmw");
        check(&people, &name, &derived(&reports));
    }
}

#[test]
fn four_servers_give_what_numpy_gives() {
    for (name, text) in worked() {
        let folder = TempDir::new().unwrap();
        let people = write(folder.path());
        let servers: String = SERVERS.iter().map(|s| format!("[server.{s}]\nkey = \"@{s}\"\n")).collect();
        let text = study(&text, "salted-key", &format!("{servers}[compute]\nengine = \"ring4\"\n"));
        let world = World::new(folder, &["registry", "trial"], &SERVERS, &text);
        let owner = |name| world.owner(name, SALTED);
        let (reports, servers) = all(&["registry", "trial"].map(owner), &world.nodes(), quiet);
        assert!(servers.iter().all(Result::is_ok), "{servers:?}");
        let reports: Vec<RunReport> = reports.into_iter().map(Result::unwrap).collect();
        check(&people, &name, &derived(&reports));
    }
}

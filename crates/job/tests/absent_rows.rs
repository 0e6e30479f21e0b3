//! Programs over rows that some party does not have: counts by group against the truth of the files, by every
//! match that a program may have, made-up rows included. Threads of one process, TLS on loopback.

mod both;
mod common;

use both::{both, whole};
use common::parties::{PartyFile, make_key};
use common::{SALTED, SERVERS, World, all, outputs, quiet};
use job::run::Watch;
use report::{ResultView, RunReport};
use std::collections::BTreeMap;
use std::path::Path;
use study::party::PartySetup;
use tempfile::TempDir;

/// Groups of alpha's people and a number of beta's, counted and summed by group; `@rows` and `@more` are
/// filled in.
const STUDY: &str = r#"
format = "tacit-study/1"
name   = "groups"
kind   = "program"
title  = "What the groups of alpha have at beta"
[party.alpha]
key = "@alpha"
[party.beta]
key = "@beta"
[match]
protocol    = "pid"
identifiers = [ { name = "id", normalise = ["trim"] } ]
duplicates  = "error"
[columns]
g = { party = "alpha", column = "grp", type = "label", values = ["red", "green", "blue"] }
y = { party = "beta", column = "y" }
[program]
text = """
tacit-program/2
name "groups"
class exact
party alpha
party beta
column g u2 alpha
column y u16 beta
row
g = column g
y = column y
none = const 0 u16
red = const 1 u2
green = const 2 u2
blue = const 3 u2
isr = eq g red
isg = eq g green
isb = eq g blue
yr = select isr y none
yg = select isg y none
yb = select isb y none
combine
nr = sum isr u40
ng = sum isg u40
nb = sum isb u40
sr = sum yr u50
sg = sum yg u50
sb = sum yb u50
release
nr = total nr
ng = total ng
nb = total nb
sr = total sr
sg = total sg
sb = total sb
reveal nr beta "n red"
reveal ng beta "n green"
reveal nb beta "n blue"
reveal sr beta "y red"
reveal sg beta "y green"
reveal sb beta "y blue"
"""
"#;

const LABELS: [&str; 3] = ["red", "green", "blue"];

/// The group of alpha's people and the number of beta's.
struct Files {
    alpha: BTreeMap<usize, usize>,
    beta: BTreeMap<usize, u64>,
}

impl Files {
    /// Writes both files: 700 people of alpha, 900 of beta, 500 of both; more red ones than others.
    fn write(folder: &Path) -> Self {
        let alpha: BTreeMap<usize, usize> = (0..700).map(|i| (i, [0, 1, 0, 2][i * 7 % 4])).collect();
        let beta: BTreeMap<usize, u64> = (200..1100).map(|i| (i, 1 + (i as u64 * 37) % 100)).collect();
        // With a further identifier that a match may use.
        let rows: String = alpha.iter().map(|(i, g)| format!("p{i},m{i},{}\n", LABELS[*g])).collect();
        std::fs::write(folder.join("alpha.csv"), format!("id,mail,grp\n{rows}")).unwrap();
        let rows: String = beta.iter().map(|(i, y)| format!(" p{i},m{i},{y}\n")).collect();
        std::fs::write(folder.join("beta.csv"), format!("id,mail,y\n{rows}")).unwrap();
        Self { alpha, beta }
    }

    /// Counts and sums by group over the people of alpha that pass.
    fn truth(&self, of: impl Fn(usize) -> bool) -> Vec<String> {
        let (mut counts, mut sums) = ([0; 3], [0; 3]);
        for (i, g) in self.alpha.iter().filter(|(i, _)| of(**i)) {
            counts[*g] += 1;
            sums[*g] += self.beta.get(i).unwrap_or(&0);
        }
        counts.into_iter().chain(sums).map(|n: u64| n.to_string()).collect()
    }

    fn matched(&self) -> Vec<String> {
        self.truth(|i| self.beta.contains_key(&i))
    }
}

/// The two owners with their files, keys and settings.
fn owners(edit: &dyn Fn(String) -> String) -> (TempDir, Files, [PartySetup; 2]) {
    let folder = TempDir::new().unwrap();
    let files = Files::write(folder.path());
    let mut study = edit(STUDY.to_owned());
    for name in ["alpha", "beta"] {
        study = study.replace(&format!("\"@{name}\""), &format!("\"{}\"", make_key(folder.path(), name)));
    }
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    let owners = PartyFile::pair(folder.path(), ["alpha", "beta"]);
    let parties = owners.map(|file| file.policy("kinds = [\"program\"]\nallow_exact = true").setup());
    (folder, files, parties)
}

fn reports(parties: &[PartySetup; 2]) -> [RunReport; 2] {
    whole(both(parties, &Watch::none()))
}

/// What beta is shown, at the stated price.
fn seen(reports: &[RunReport]) -> Vec<String> {
    for stage in reports.iter().flat_map(|report| &report.stages) {
        assert!(stage.price_held, "{stage:?}");
    }
    outputs(&reports[1]).0
}

#[test]
fn groups_are_counted_over_the_rows_that_both_have() {
    for engine in ["", "[compute]\nengine = \"yao\"\n", "[compute]\nshards = 3\n"] {
        let (_folder, files, parties) = owners(&|s| s + engine);
        let [alpha, beta] = reports(&parties);
        // 1,100 people, and made-up rows that neither party has.
        assert!(alpha.disclosed.union > 1100, "{:?}", alpha.disclosed);
        assert_eq!(seen(&[alpha, beta]), files.matched(), "{engine}");
    }
}

#[test]
fn over_any_rows_one_party_counts_its_own() {
    let (_folder, files, parties) = owners(&|s| s.replace("class exact", "class exact\nrows any"));
    assert_eq!(seen(&reports(&parties)), files.truth(|_| true));
}

/// Rows that alpha does not have are those of beta alone and the made-up ones: `present` tells.
#[test]
fn present_tells_rows_of_a_party_from_others_and_from_made_up_ones() {
    let (_folder, files, parties) = owners(&|s| {
        let s = s.replace("class exact", "class exact\nrows any").replace(
            "yr = ",
            "a = present alpha\nb = present beta\nno-a = not a\nno-b = not b\nonly-a = and a no-b\n\
             only-b = and b no-a\nnobody = and no-a no-b\nyr = ",
        );
        let s = s.replace("nr = sum isr", "nr = sum only-a").replace("ng = sum isg", "ng = sum only-b");
        s.replace("nb = sum isb", "nb = sum nobody")
    });
    let [alpha, beta] = reports(&parties);
    let union = alpha.disclosed.union;
    let values = seen(&[alpha, beta]);
    let nobody = (union - 1100).to_string();
    assert_eq!(values[..3], ["200".to_owned(), "400".to_owned(), nobody]);
    assert_eq!(values[3..], files.matched()[3..]);
}

/// A number in which made-up rows are counted says so: they are of no use to whoever reads it.
#[test]
fn outputs_that_count_made_up_rows_say_so() {
    let (_folder, _, parties) = owners(&|s| {
        let s = s.replace("class exact", "class exact\nrows any");
        s.replace("yr = ", "one = const 1 bit\nyr = ").replace("nr = sum isr", "nr = sum one")
    });
    let [_, beta] = reports(&parties);
    let ResultView::Program { outputs, .. } = &beta.view else { panic!("a program's view") };
    assert_eq!(outputs[0].value, beta.disclosed.union.to_string());
    assert!(outputs[0].made_up && outputs[1..].iter().all(|output| !output.made_up), "{outputs:?}");
    let shown = report::summary::terminal(&beta, report::summary::USUAL_COLUMNS);
    assert!(shown.contains("exact, made-up rows counted"), "{shown}");
}

/// The study of the newcomer that this rule is for: before, `n red` was 3,805 where 1,361 was true, marked
/// exact.
#[test]
fn a_program_in_which_absent_rows_are_of_the_first_group_is_refused() {
    let zeros = |s: String| {
        let s = s.replace("const 1 u2", "const 0 u2").replace("const 2 u2", "const 1 u2");
        s.replace("const 3 u2", "const 2 u2")
    };
    let (folder, _, parties) = owners(&|s| zeros(s).replace("tacit-program/2", "tacit-program/1"));
    let study = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    for error in both(&parties, &Watch::none()).map(|report| report.unwrap_err().to_string()) {
        for part in ["line 1, column 1: this text is of the form tacit-program/1", "labels count from 1"] {
            assert!(error.contains(part), "{error}");
        }
    }
    // The header alone changed: the rows are those of both, but no label is 0.
    let of = |text: &str| study.replace("tacit-program/1", text);
    std::fs::write(folder.path().join("study.toml"), of("tacit-program/2")).unwrap();
    assert_eq!(seen(&reports(&parties))[0], "0");
    std::fs::write(folder.path().join("study.toml"), of("tacit-program/2\nrows any")).unwrap();
    let [ours, theirs] = both(&parties, &Watch::none()).map(|report| report.unwrap_err());
    assert!(matches!(ours.kind(), base::Fault::Refused(_)));
    let text = ours.to_string();
    assert_eq!(text, theirs.to_string());
    for part in [
        "the program that begins at line 19 of the study: refused by rule R9 (absent rows): nr (line 23, \
         column 1): `isr` need not be 0 in a row that alpha does not have",
        "add to the row section `alpha-here = present alpha`, `isr-here = and alpha-here isr`, and fold \
         `isr-here`",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn rows_of_several_identifiers_count_where_both_have_them() {
    let (_folder, files, parties) =
        owners(&|s| s.replace("[ { name = \"id\", normalise = [\"trim\"] } ]", "[ \"id\", \"mail\" ]"));
    assert_eq!(seen(&reports(&parties)), files.matched());
}

#[test]
fn four_servers_count_the_rows_that_both_have() {
    for rows in ["matched", "any"] {
        let folder = TempDir::new().unwrap();
        let files = Files::write(folder.path());
        let servers: String = SERVERS.iter().map(|s| format!("[server.{s}]\nkey = \"@{s}\"\n")).collect();
        let study = STUDY
            .replace("protocol    = \"pid\"", "protocol    = \"salted-key\"")
            .replace("class exact", &format!("class exact\nrows {rows}"));
        let study = format!("{study}{servers}[compute]\nengine = \"ring4\"\n");
        let world = World::new(folder, &["alpha", "beta"], &SERVERS, &study);
        let (reports, servers) =
            all(&["alpha", "beta"].map(|name| world.owner(name, SALTED)), &world.nodes(), quiet);
        assert!(servers.iter().all(Result::is_ok), "{servers:?}");
        let reports: Vec<RunReport> = reports.into_iter().map(Result::unwrap).collect();
        let truth = if rows == "any" { files.truth(|_| true) } else { files.matched() };
        assert_eq!(seen(&reports), truth);
    }
}

#[test]
fn what_does_not_fit_is_said_before_anything_is_sent() {
    for (from, to, words) in [
        (
            "class exact",
            "class exact\nrows aligned",
            "it says `rows aligned`, and match.protocol \"pid\" gives rows that some parties do not have; \
             leave the line out (then the rows are those that all parties have), or write `rows any`",
        ),
        (
            "\"blue\"]",
            "\"blue\", \"grey\"]",
            "column \"g\" has 4 labels, which count from 1 (0: the row is absent), and its type u2 goes to \
             3; make it u3",
        ),
    ] {
        let (_folder, _, parties) = owners(&|s| s.replace(from, to));
        let error = job::run::check(&parties[0]).err().expect("it does not fit").to_string();
        assert!(error.starts_with("the program that begins at line 19 of the study: "), "{error}");
        assert!(error.ends_with(words), "{error}");
    }
}

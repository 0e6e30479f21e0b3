//! What must hold in every file. A failure lists all places.

use std::collections::BTreeMap;
use std::path::Path;
use tidy::{Crates, PICTURE, between, forbidden, pages, read, root, sources};

/// Most lines of a file.
const FILE_LINES: usize = 800;
/// Most columns of a line.
const COLUMNS: usize = 110;
/// Most words of the README.
const README_WORDS: usize = 900;
/// Most lines of a function outside tests.
const FUNCTION_LINES: usize = 70;
/// Where public functions may be that only tests or programs of others use, and who uses them.
const FOR_OTHERS: [(&str, &str); 17] = [
    ("crates/data/src/generate", "tests of all crates: data that are made up"),
    ("crates/engine/src/conformance", "tests of every engine"),
    ("crates/fabric/src", "programs of others, through its C interface"),
    ("crates/gmw/src/engine.rs", "tests choose how many rows run at once"),
    ("crates/kernels/src", "tests, benches and timing compare back ends"),
    ("crates/matching/src/group.rs", "tests and benches compare ways to compute"),
    ("crates/net/src/cluster.rs", "tests of every protocol: parties in a process, with faults"),
    ("crates/osprey/src", "programs of others (docs/osprey)"),
    ("crates/osprey-c/src", "programs of others (docs/osprey/c-api.md)"),
    ("crates/ot/src/pair.rs", "tests of every kind of OT"),
    ("crates/program/src/lower.rs", "a test counts what is lowered"),
    ("crates/ring4/src/engine.rs", "tests choose how many rows run at once"),
    ("crates/ring4/src/seats", "programs of others (docs/osprey/ring4.md)"),
    ("crates/ring4/src/vectors", "programs of others (docs/osprey/ring4.md)"),
    ("crates/studies/src", "tests of every engine: references, and studies as text"),
    ("crates/yao/src/lib.rs", "tests choose how many rows run at once"),
    ("crates/yao/src/wires", "programs of others (docs/osprey/boolean.md)"),
];
/// Crates that are for tests as a whole.
const OF_TESTS: [&str; 3] = ["fuzzing", "tidy", "timing"];

/// Fails where there is something to list.
fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{} {what}:\n  {}", found.len(), found.join("\n  "));
}

#[test]
fn files_are_short() {
    let long = |s: &tidy::RustFile| s.text.lines().count() > FILE_LINES;
    let say = |s: tidy::RustFile| format!("{}: {} lines", s.path.display(), s.text.lines().count());
    none("files of more than 800 lines", sources().into_iter().filter(long).map(say).collect());
}

#[test]
fn functions_fit_a_screen() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| !source.is_aside()) {
        for f in source.functions.iter().filter(|f| f.lines > FUNCTION_LINES) {
            found.push(format!("{}:{} {}: {} lines", source.path.display(), f.line, f.name, f.lines));
        }
    }
    none("functions of more than 70 lines", found);
}

#[test]
fn functions_have_users() {
    let sources = sources();
    let mut named = BTreeMap::<&str, usize>::new();
    let used = sources.iter().filter(|source| !source.is_aside() && !OF_TESTS.contains(&source.owner()));
    for source in used.clone() {
        for (name, times) in &source.names {
            *named.entry(name).or_default() += times;
        }
        for f in &source.functions {
            // Its definition is no use.
            *named.entry(&f.name).or_default() -= 1;
        }
    }
    let mut found = Vec::new();
    for source in used.filter(|source| !FOR_OTHERS.iter().any(|(path, _)| source.path.starts_with(path))) {
        for f in source.functions.iter().filter(|f| f.public && !f.of_trait && f.name != "main") {
            if named[f.name.as_str()] == 0 {
                found.push(format!("{}:{} {}", source.path.display(), f.line, f.name));
            }
        }
    }
    none("public functions that only tests use: delete them, or move them to the tests", found);
    let idle = |(path, _): &&(&str, &str)| !root().join(path).exists();
    none("exceptions for what is not there", FOR_OTHERS.iter().filter(idle).map(|e| e.0.into()).collect());
}

/// Of tables in comments a row is a line, and in tests a line of what a command prints is a literal.
#[test]
fn lines_have_110_columns() {
    let mut found = Vec::new();
    for source in sources() {
        for (number, line) in (1..).zip(source.text.lines()) {
            let text = line.trim_start();
            let row = ["//! |", "/// |"].iter().any(|row| text.starts_with(row));
            let printed = source.is_aside() && text.starts_with(['"', 'r']) && text.ends_with(['"', ',']);
            if line.chars().count() > COLUMNS && !row && !printed {
                found.push(format!("{}:{number}: {} columns", source.path.display(), line.chars().count()));
            }
        }
    }
    none("lines of more than 110 columns", found);
}

/// A type's name without the name of its crate in front, which tells nothing that its path does not.
fn bare(owner: &str, name: &str) -> String {
    let owner: String = owner.split('-').map(|part| part[..1].to_uppercase() + &part[1..]).collect();
    let rest = name.strip_prefix(&owner).filter(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    rest.unwrap_or(name).to_owned()
}

#[test]
fn a_name_is_of_one_type() {
    let sources = sources();
    let mut places = BTreeMap::<String, Vec<String>>::new();
    for source in sources.iter().filter(|source| !source.is_aside()) {
        for t in source.types.iter().filter(|t| t.name != "Error") {
            let place = format!("{}:{} {}", source.path.display(), t.line, t.name);
            places.entry(bare(source.owner(), &t.name)).or_default().push(place);
        }
    }
    places.retain(|_, of| of.len() > 1);
    none(
        "names of several types",
        places.iter().map(|(name, of)| format!("{name}: {}", of.join(", "))).collect(),
    );
}

#[test]
fn a_name_is_the_same_in_every_crate() {
    let crates = Crates::of_workspace();
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| !source.is_aside()) {
        for (line, root, to) in source.renames.iter().filter(|(_, root, _)| crates.has(root)) {
            found.push(format!("{}:{line} {root}: as {to}", source.path.display()));
        }
    }
    none("imports of another crate under another name", found);
}

#[test]
fn arrows_point_down() {
    let (crates, text) = (Crates::of_workspace(), read(Path::new("ARCHITECTURE.md")));
    let forbidden = forbidden(&text);
    assert!(!forbidden.is_empty(), "ARCHITECTURE.md has a table below ## Forbidden");
    let unknown = |e: &&tidy::CrateArrow| !crates.has(&e.from) || !crates.has(&e.to);
    none(
        "unknown crates",
        forbidden.iter().filter(unknown).map(|e| format!("{} -> {}", e.from, e.to)).collect(),
    );
    let wrong = crates.edges().filter(|edge| forbidden.contains(edge));
    none("forbidden arrows", wrong.map(|edge| format!("{} -> {}", edge.from, edge.to)).collect());
}

/// `TACIT_TIDY=write` writes the picture.
#[test]
fn the_picture_of_the_layers_is_what_cargo_says() {
    let (path, picture) = (Path::new("ARCHITECTURE.md"), Crates::of_workspace().picture());
    let text = read(path);
    let drawn = between(&text, PICTURE[0], PICTURE[1]).expect("ARCHITECTURE.md has a picture of the layers");
    if std::env::var_os("TACIT_TIDY").is_some_and(|say| say == "write") {
        let (before, after) = text.split_once(PICTURE[0]).unwrap();
        let (_, after) = after.split_once(PICTURE[1]).unwrap();
        let text = [before, PICTURE[0], &picture, PICTURE[1], after].concat();
        std::fs::write(root().join(path), text).unwrap();
        return;
    }
    assert!(drawn == picture, "run TACIT_TIDY=write cargo test -p tidy picture; the layers are\n{picture}");
}

#[test]
fn what_a_page_names_is_there() {
    let mut found = Vec::new();
    for page in pages() {
        for (line, path) in page.paths() {
            if !root().join(&path).exists() {
                found.push(format!("{}:{line}: {path}", page.path.display()));
            }
        }
    }
    none("paths that are not there", found);
}

/// `docs/security.md` names the tests that hold what it says: names of four words and more are of functions.
#[test]
fn tests_that_security_names_are_there() {
    let (sources, path) = (sources(), Path::new("docs/security.md"));
    let text = read(path);
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let spans = line.split('`').skip(1).step_by(2);
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        for name in spans.filter(|span| span.matches('_').count() >= 3 && span.chars().all(letter)) {
            let function = format!("fn {name}(");
            if !sources.iter().any(|source| source.text.contains(&function)) {
                found.push(format!("{}:{number}: {name}", path.display()));
            }
        }
    }
    none("tests that are not there", found);
}

#[test]
fn the_readme_is_read_in_some_minutes() {
    let words = read(Path::new("README.md")).split_whitespace().count();
    assert!(words <= README_WORDS, "README.md has {words} words, of {README_WORDS}");
}

//! What must hold in every file. A failure lists all places.

use std::path::Path;
use tidy::{Crates, PICTURE, between, forbidden, pages, read, root, sources};

/// Most lines of a file.
const FILE_LINES: usize = 800;
/// Most lines of a function outside tests.
const FUNCTION_LINES: usize = 70;

/// Fails where there is something to list.
fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{} {what}:\n  {}", found.len(), found.join("\n  "));
}

#[test]
fn files_are_short() {
    let long = |s: &tidy::Source| s.text.lines().count() > FILE_LINES;
    let say = |s: tidy::Source| format!("{}: {} lines", s.path.display(), s.text.lines().count());
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
fn arrows_point_down() {
    let (crates, text) = (Crates::of_workspace(), read(Path::new("ARCHITECTURE.md")));
    let forbidden = forbidden(&text);
    assert!(!forbidden.is_empty(), "ARCHITECTURE.md has a table below ## Forbidden");
    let unknown = |e: &&tidy::Edge| !crates.has(&e.from) || !crates.has(&e.to);
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

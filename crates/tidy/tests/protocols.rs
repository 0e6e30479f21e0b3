//! Every protocol has its page, its place in the table, and a digest of what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tidy::{DocPage, RustFile, braces, pages, read, root, sources};

const FOLDER: &str = "docs/protocols";
/// The test that pins what is said.
const PINNED: &str = "fn the_wire_is_pinned()";
/// Pages of things that send nothing of their own.
const SILENT: [&str; 4] = ["accelerators-cuda", "accelerators-rtl", "curve", "okvs"];
/// Files that talk and are no protocol: measurements and tests.
const NO_PROTOCOL: [&str; 2] = ["crates/bench/", "crates/engine/src/conformance/"];

/// What a page says of its code.
struct Protocol {
    page: DocPage,
    /// Files and folders, relative to the root, that are there.
    code: Vec<PathBuf>,
    /// What it names and is not there.
    missing: Vec<String>,
}

impl Protocol {
    fn name(&self) -> &str {
        self.page.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    fn crates(&self) -> BTreeSet<&str> {
        let named = self.code.iter().filter(|path| path.starts_with("crates"));
        named.filter_map(|path| path.iter().nth(1).and_then(|name| name.to_str())).collect()
    }
}

fn protocols() -> Vec<Protocol> {
    let listed = |page: &DocPage| page.path.starts_with(FOLDER) && !page.path.ends_with("README.md");
    pages().into_iter().filter(listed).map(protocol).collect()
}

/// Reads the paragraphs that say where the code is. A name without a folder lies in the last folder before
/// it.
fn protocol(page: DocPage) -> Protocol {
    let says = |paragraph: &&str| paragraph.contains("Code: ") || paragraph.contains("The code is `");
    let (mut code, mut missing) = (Vec::new(), Vec::new());
    for paragraph in page.text.split("\n\n").filter(says) {
        let start = paragraph.find("Code: ").or(paragraph.find("The code is `")).unwrap_or_default();
        let mut folder = PathBuf::new();
        for span in paragraph[start..].split('`').skip(1).step_by(2).filter(|span| !span.contains('*')) {
            for path in braces(span) {
                if path.contains('/') && root().join(&path).exists() {
                    folder = PathBuf::from(&path);
                    code.push(folder.clone());
                } else if let Some(there) = below(&folder, &path) {
                    code.push(there);
                } else if path.ends_with(".rs") || path.ends_with(".cu") || path.starts_with("crates/") {
                    missing.push(path);
                }
            }
        }
    }
    Protocol { page, code, missing }
}

/// A name in a folder, in the sources of a crate, or beside a file.
fn below(folder: &Path, name: &str) -> Option<PathBuf> {
    let beside = folder.ancestors().take(3).map(|above| above.join(name));
    let places = [folder.join("src").join(name)].into_iter().chain(beside);
    places.filter(|place| place.starts_with("crates")).find(|place| root().join(place).exists())
}

/// Names of what is pinned, with the files that pin it.
fn pins(sources: &[RustFile]) -> BTreeMap<String, Vec<PathBuf>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let pins = |source: &&RustFile| source.owner() != "tidy" && source.text.contains(PINNED);
    for source in sources.iter().filter(pins) {
        let test = source.text.split(PINNED).nth(1).unwrap_or_default();
        let cases = test.split("pinned(&[").nth(1).and_then(|rest| rest.split("]);").next());
        let mut before = "";
        for line in cases.unwrap_or_default().lines().map(str::trim) {
            let label = line.strip_prefix("(\"").or(line.strip_prefix('"').filter(|_| before == "("));
            before = line;
            let Some(name) = label.and_then(|label| label.split([',', ' ', '"']).next()) else { continue };
            found.entry(name.to_owned()).or_default().push(source.path.clone());
        }
    }
    found
}

fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{} {what}:\n  {}", found.len(), found.join("\n  "));
}

#[test]
fn every_page_is_in_the_table_and_names_its_code() {
    let table = read(&Path::new(FOLDER).join("README.md"));
    let (mut unlisted, mut nowhere) = (Vec::new(), Vec::new());
    for protocol in protocols() {
        if !table.contains(&format!("({}.md)", protocol.name())) {
            unlisted.push(protocol.name().to_owned());
        }
        if protocol.code.is_empty() {
            nowhere
                .push(format!("{}: no paragraph with `Code: ` names a file", protocol.page.path.display()));
        }
        let missing = protocol.missing.iter();
        nowhere.extend(missing.map(|path| format!("{}: {path}", protocol.page.path.display())));
    }
    none("pages that docs/protocols/README.md does not link", unlisted);
    none("places of code that are not there", nowhere);
}

#[test]
fn every_protocol_pins_its_wire() {
    let (sources, mut wrong) = (sources(), Vec::new());
    let (pins, protocols) = (pins(&sources), protocols());
    for protocol in protocols.iter().filter(|protocol| !SILENT.contains(&protocol.name())) {
        let owners = protocol.crates();
        let owns = |path: &PathBuf| {
            path.iter().nth(1).and_then(|name| name.to_str()).is_some_and(|name| owners.contains(name))
        };
        let files = pins.get(protocol.name()).map_or(&[][..], |files| &files[..]);
        let said = protocol.page.text.split("\n\n").find(|paragraph| paragraph.starts_with("Pinned by"));
        let unsaid = |file: &&PathBuf| !said.is_some_and(|said| said.contains(&*file.to_string_lossy()));
        for file in files.iter().filter(unsaid) {
            let (page, file) = (protocol.page.path.display(), file.display());
            wrong.push(format!("{page}: no paragraph \"Pinned by\" names {file}"));
        }
        if !files.iter().any(owns) {
            wrong.push(format!(
                "{}: no test the_wire_is_pinned in {owners:?} pins \"{}\"",
                protocol.page.path.display(),
                protocol.name()
            ));
        }
    }
    let known: Vec<&str> =
        protocols.iter().map(Protocol::name).filter(|name| !SILENT.contains(name)).collect();
    let strange = pins.iter().filter(|(name, _)| !known.contains(&name.as_str()));
    wrong
        .extend(strange.map(|(name, files)| format!("{name}, pinned in {files:?}, has no page in {FOLDER}")));
    none("protocols without a page or a digest", wrong);
}

/// A folder that several pages name is the place of several protocols, and says of none of them where it is.
#[test]
fn whoever_talks_is_on_a_page() {
    let mut named: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for protocol in protocols() {
        let own: BTreeSet<PathBuf> = protocol.code.into_iter().collect();
        own.into_iter().for_each(|path| *named.entry(path).or_default() += 1);
    }
    let own = |path: &Path| {
        path.ancestors().any(|above| named.get(above).is_some_and(|pages| *pages == 1 || above == path))
    };
    let talks = |source: &&RustFile| {
        let exempt = NO_PROTOCOL.iter().any(|folder| source.path.starts_with(folder));
        let code = source.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        !source.is_aside() && !exempt && (code.contains("session.link(") || code.contains("s.link("))
    };
    let strange = sources().into_iter().filter(|source| talks(&source) && !own(&source.path));
    none(
        "files that talk and are on no page of docs/protocols",
        strange.map(|s| s.path.display().to_string()).collect(),
    );
}

//! What computes at a server of a study: a card, here the emulated one, and what is said where there is none.

use crate::served::Served;
use crate::support::{Done, Running, command, tacit};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Compiles the emulated driver, which is its own NVRTC, under the names that are looked for; nothing where
/// there is no C++ compiler.
fn emulator(folder: &Path) -> Option<()> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../accel-cuda/emulator/driver.cpp");
    let library = folder.join("libcuda.so.1");
    let mut build = Command::new(compiler);
    build.args(["-std=c++17", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", source, "-o"]);
    let Output { status, stderr, .. } = match build.arg(&library).output() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        run => run.unwrap(),
    };
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    std::fs::copy(&library, folder.join("libnvrtc.so.13")).unwrap();
    Some(())
}

/// A party file with a line in front of everything else.
fn with_device(served: &Served, party: usize, device: &str) -> std::path::PathBuf {
    let file = served.path(&format!("{}.toml", Served::names()[party]));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("device = \"{device}\"\n{text}")).unwrap();
    file
}

/// A server says in its report that the card computed, and nobody else notices: the owners get their result
/// at the price that was stated.
#[test]
fn a_server_computes_on_the_card_that_it_names() {
    let libraries = tempfile::tempdir().unwrap();
    if emulator(libraries.path()).is_none() {
        return println!("skipped: no C++ compiler");
    }
    let served = Served::new();
    let file = with_device(&served, 2, "cuda");
    let on_card = |words: &[&str]| -> Command {
        let mut command = command(words.iter().map(AsRef::as_ref).chain([file.as_os_str()]));
        command.env("LD_LIBRARY_PATH", libraries.path());
        command
    };
    let checked: Done = on_card(&["check", "--json"]).output().unwrap().into();
    assert_eq!(checked.fine().json()["plan"]["assumptions"]["device"], "cuda:0 (host)");
    let card = Running::start(on_card(&["serve", "--once", "--json"]));
    let nodes: Vec<Running> = (3..6).map(|node| served.start(node, &[])).collect();
    let owners: Vec<Running> = (0..Served::OWNERS).map(|owner| served.start(owner, &[])).collect();
    for owner in owners {
        let report = owner.end().fine().json();
        assert_eq!(report["servers"].get("device"), None, "an owner computes nothing: {report}");
        let held = |stage: &Value| stage["price_held"] == true;
        assert!(report["stages"].as_array().unwrap().iter().all(held), "{report}");
    }
    let report = card.end().fine().json();
    assert_eq!(report["device"], "cuda:0 (host)", "{report}");
    nodes.into_iter().for_each(|node| drop(node.end().fine()));
}

/// Rows of a study in ranges at once, all of them on the emulated card: as priced, and right.
#[test]
fn ranges_of_rows_are_computed_at_once_on_a_card() {
    let libraries = tempfile::tempdir().unwrap();
    if emulator(libraries.path()).is_none() {
        return println!("skipped: no C++ compiler");
    }
    let words =
        ["bench", "ring4", "--rows", "700", "--shards", "2", "--repeat", "1", "--device", "cuda", "--json"];
    let done: Done = command(words).env("LD_LIBRARY_PATH", libraries.path()).output().unwrap().into();
    let found = done.fine().json();
    assert_eq!((&found["correct"], &found["as_priced"]), (&Value::Bool(true), &Value::Bool(true)), "{found}");
    assert_eq!((found["shards"].as_u64(), found["device"].as_str()), (Some(2), Some("cuda")));
    assert_eq!(found["phases"].as_object().unwrap().len(), 6, "{found}");
}

#[test]
fn a_device_that_is_not_there_or_computes_nothing_is_refused() {
    let served = Served::new();
    let server = with_device(&served, 2, "cuda:200");
    tacit(["check".as_ref(), server.as_os_str()])
        .failed(2, &["device = \"cuda:200\": ", "remove `device`, and the CPU computes"]);
    let owner = with_device(&served, 0, "cpu");
    tacit(["check".as_ref(), owner.as_os_str()])
        .failed(2, &["publisher is none of four servers that compute this study", "remove `device`"]);
    let named = with_device(&served, 3, "gpu");
    tacit(["check".as_ref(), named.as_os_str()]).failed(2, &["line 1", "write \"cpu\", \"cuda\""]);
}

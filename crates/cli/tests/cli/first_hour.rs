//! `docs/start.md` does what it says: its commands run as they are printed, from two files to a study that is
//! checked, planned and tried.

use crate::init::in_folder;
use crate::support::read;
use std::path::Path;
use std::process::Command;

/// Commands of the page in their order, but for those that build, wait for a peer or make gigabytes.
fn commands() -> Vec<String> {
    let page = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/start.md"));
    let starts = ["awk ", "tacit init ", "tacit check "];
    let lines = page.lines().filter_map(|line| line.strip_prefix("    "));
    let commands = lines.filter(|line| starts.iter().any(|start| line.starts_with(start)));
    let starts = ["tacit simulate lift/", "tacit plan lift/"];
    let named = page.split('`').filter(|text| starts.iter().any(|start| text.starts_with(start)));
    commands.chain(named).map(str::to_owned).collect()
}

#[test]
fn the_commands_of_the_page_run_as_printed() {
    let folder = tempfile::tempdir().unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_tacit")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&others))).unwrap();
    let commands = commands();
    assert!(commands.len() >= 13, "{commands:?}");
    for line in &commands {
        let mut run = Command::new("sh");
        run.args(["-c", line]).current_dir(folder.path()).env("PATH", &path).env("COLUMNS", "2000");
        let done = run.stdin(std::process::Stdio::null()).output().unwrap();
        let said = format!("{line}: {}", String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{said}");
        if line.starts_with("tacit check lift/") && !line.contains("study.toml") {
            let text = String::from_utf8(done.stdout).unwrap();
            assert!(text.starts_with("This side is ready: tacit run lift/"), "{line}: {text}");
        }
    }
    // What the page says that an editor can do with the program.
    let study = folder.path().join("doses/study.toml");
    let asked = ["# column age ", "# age = ", "# mean of age "].iter().fold(read(&study), |text, line| {
        assert!(text.contains(line), "{line} is not in {text}");
        text.replace(line, &line[2..])
    });
    std::fs::write(&study, asked).unwrap();
    let done = in_folder(folder.path(), "check doses/registry.toml").fine();
    assert!(done.stdout.contains("mean of age, mean of cost by dose"), "{}", done.stdout);
}

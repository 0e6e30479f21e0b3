//! C and C++ programs against an installed Osprey: the install step, both packages, the examples, and a
//! garbled sort whose labels come out the same in less than half of their memory.

use osprey::{EXIT_UNAVAILABLE, PagingEngine, PassMode, ProcessSettings, Stats};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

/// What the tests share: an installation and the programs built against it.
struct Built {
    dir: TempDir,
}

impl Built {
    fn prefix(&self) -> PathBuf {
        self.dir.path().join("a prefix")
    }

    fn program(&self, name: &str) -> Command {
        Command::new(self.dir.path().join("build").join(name))
    }
}

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Installs and builds once; `None` where a tool is missing, with the reason.
fn built() -> Option<&'static Built> {
    static BUILT: OnceLock<Option<Built>> = OnceLock::new();
    BUILT.get_or_init(build).as_ref()
}

fn build() -> Option<Built> {
    for tool in ["cmake", "c++", "cc", "pkg-config"] {
        if Command::new(tool).arg("--version").output().is_err() {
            eprintln!("skipped: there is no {tool}");
            return None;
        }
    }
    let built = Built { dir: tempfile::tempdir().expect("a directory") };
    let libraries = std::env::current_exe().expect("this test").parent().expect("a folder").to_owned();
    succeed(Command::new(crate_dir().join("install.sh")).arg(libraries).arg(built.prefix()));
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(crate_dir().join("cpp")).arg("-B").arg(built.dir.path().join("build"));
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", built.prefix().display()));
    succeed(&mut configure);
    succeed(Command::new("cmake").arg("--build").arg(built.dir.path().join("build")));
    Some(built)
}

/// Runs, and gives standard output; whatever else a failing command said goes into the message.
fn succeed(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, texts(&output));
    String::from_utf8(output.stdout).expect("text")
}

fn run(command: &mut Command) -> Output {
    let output = command.output();
    output.unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn texts(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_adapter_holds_with_both_libraries() {
    let Some(built) = built() else { return };
    succeed(&mut built.program("adapter"));
    succeed(&mut built.program("linked"));
}

#[test]
fn the_example_in_c_computes_on_files() {
    let Some(built) = built() else { return };
    let [input, output, nowhere] = ["in", "out", "nowhere"].map(|name| built.dir.path().join(name));
    let labels: Vec<[u8; 16]> =
        (0..10_000u32).map(|i| [i.to_le_bytes(); 4].concat().try_into().unwrap()).collect();
    std::fs::write(&input, labels.concat()).expect("a file");
    succeed(built.program("labels").arg("10000").args([&input, &output]));
    let mut expected = labels;
    for i in 1..expected.len() {
        let before = expected[i - 1];
        expected[i].iter_mut().zip(before).for_each(|(x, y)| *x ^= y);
    }
    assert_eq!(std::fs::read(&output).expect("the result"), expected.concat());

    // Too few labels in the file, and a speculative pass, which has no files.
    let short = run(built.program("labels").arg("10001").args([&input, &output]));
    assert_eq!(short.status.code(), Some(1), "{}", texts(&short));
    let Some(stats) = speculate(
        built.program("labels").arg("10000").args([&nowhere, &nowhere]),
        &settings(built, "labels"),
    ) else {
        return;
    };
    assert!(!nowhere.exists());
    // 160,000 bytes in chunks of 16 KiB, touched once.
    assert_eq!((stats.peak_chunks, stats.trace_entries), (10, 10));
    assert_eq!(stats.marks.len(), 2);
}

fn settings(built: &Built, name: &str) -> ProcessSettings {
    let path = |what: &str| built.dir.path().join(format!("{name}.{what}"));
    ProcessSettings {
        chunk: 16 << 10,
        microset: 8,
        region: 1 << 30,
        trace: Some(path("trace")),
        report: Some(path("report")),
        spill: built.dir.path().to_owned(),
        ..ProcessSettings::default()
    }
}

fn report(settings: &ProcessSettings) -> Stats {
    let text = std::fs::read(settings.report.as_ref().expect("set")).expect("a report");
    serde_json::from_slice(&text).expect("a report")
}

/// A speculative pass; `None` where this machine forbids it, with the reason.
fn speculate(command: &mut Command, settings: &ProcessSettings) -> Option<Stats> {
    let settings = ProcessSettings { mode: PassMode::Speculate, ..settings.clone() };
    let output = run(settings.apply_to(command));
    if output.status.code() == Some(EXIT_UNAVAILABLE) {
        eprintln!("skipped: {}", texts(&output));
        return None;
    }
    assert!(output.status.success(), "{}\n{}", output.status, texts(&output));
    assert!(output.stdout.is_empty(), "{}", texts(&output));
    Some(report(&settings))
}

#[test]
fn labels_are_the_same_in_a_fraction_of_their_memory() {
    let Some(built) = built() else { return };
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the labels of bits.cpp are made with the AES instructions of x86-64");
        return;
    }
    let bits = || {
        let mut command = built.program("bits");
        command.arg("8192");
        command
    };
    let plain = succeed(&mut bits());
    assert!(plain.starts_with("8192 numbers sorted, 23855104 gates, digest "), "{plain}");

    let base = settings(built, "bits");
    let Some(traced) = speculate(&mut bits(), &base) else { return };
    // 8192 numbers of 32 bits of 32 bytes.
    assert_eq!(traced.peak_chunks, 512);
    let programmed =
        ProcessSettings { mode: PassMode::Programmed, engine: PagingEngine::Move, memory: 1 << 20, ..base };
    let refused = run(programmed.apply_to(&mut bits()));
    let said = texts(&refused);
    assert_eq!(refused.status.code(), Some(EXIT_UNAVAILABLE), "{said}");
    let Some((_, least)) = said.split_once("allow at least ") else {
        eprintln!("skipped: {said}");
        return;
    };
    let least: u64 = least.split_whitespace().next().expect("a number").parse().expect("a number");

    let programmed = ProcessSettings { memory: (least + 1) << 20, ..programmed };
    assert_eq!(succeed(programmed.apply_to(&mut bits())), plain);
    let stats = report(&programmed);
    assert!(stats.frames * 2 < traced.peak_chunks, "{stats:?}");
    assert!(stats.bytes_written > 0 && stats.bytes_read > 0, "{stats:?}");
    assert_eq!((stats.mode.as_str(), &stats.warnings), ("programmed", &vec![]));
    assert_eq!((stats.events, stats.allocation_hash), (traced.events, traced.allocation_hash));
}

#[test]
fn pkg_config_finds_what_was_installed() {
    let Some(built) = built() else { return };
    let flags = succeed(
        Command::new("pkg-config")
            .args(["--define-variable=prefix=PREFIX", "--cflags", "--libs", "osprey >= 0.1.0"])
            .env("PKG_CONFIG_PATH", built.prefix().join("lib/pkgconfig")),
    );
    let program = built.dir.path().join("by-pkg-config");
    let mut compile = Command::new("cc");
    compile.arg("-o").arg(&program).arg(crate_dir().join("cpp/labels.c"));
    // The prefix has a space in it, which pkg-config would quote for a shell.
    let prefix = built.prefix().display().to_string();
    compile.args(flags.split_whitespace().map(|flag| flag.replace("PREFIX", &prefix)));
    compile.arg(format!("-Wl,-rpath,{prefix}/lib"));
    succeed(&mut compile);
    let usage = run(&mut Command::new(program));
    assert_eq!((usage.status.code(), texts(&usage).as_str()), (Some(2), "usage: labels COUNT IN OUT\n"));
}

/// `make install-osprey` builds all that it installs, the launcher too, and the install step says when there
/// is none.
#[test]
fn the_launcher_is_installed_with_the_libraries() {
    let Some(built) = built() else { return };
    let bare = run(Command::new(crate_dir().join("install.sh"))
        .arg(std::env::current_exe().expect("this test").parent().expect("a folder"))
        .arg(built.dir.path().join("bare")));
    assert!(
        bare.status.success() && texts(&bare).contains("cargo build --release -p launcher"),
        "{}",
        texts(&bare)
    );
    assert!(!built.dir.path().join("bare/bin").exists());

    // With something to run as the launcher beside the libraries.
    let folder = built.dir.path().join("built");
    std::fs::create_dir(&folder).expect("a folder");
    for name in ["libosprey_c.so", "libosprey_c.a"] {
        let library = std::env::current_exe().expect("this test").with_file_name(name);
        std::os::unix::fs::symlink(library, folder.join(name)).expect("a link");
    }
    std::fs::copy("/bin/true", folder.join("osprey")).expect("an executable");
    let prefix = built.dir.path().join("whole");
    let whole = run(Command::new(crate_dir().join("install.sh")).arg(&folder).arg(&prefix));
    assert_eq!((whole.status.success(), texts(&whole).as_str()), (true, ""));
    succeed(&mut Command::new(prefix.join("bin/osprey")));
    for header in ["osprey.h", "osprey.hpp", "seal_osprey.hpp"] {
        assert!(prefix.join("include").join(header).is_file(), "{header}");
    }

    let Ok(steps) = Command::new("make")
        .args(["-n", "install-osprey", "PREFIX=/nowhere", "-C"])
        .arg(crate_dir().join("../.."))
        .output()
    else {
        eprintln!("skipped: there is no make");
        return;
    };
    let (built, installed) =
        (texts(&steps).find("-p osprey-c -p launcher"), texts(&steps).find("install.sh"));
    assert!(built.is_some() && built < installed, "{}", texts(&steps));
}

#[test]
fn the_page_shows_the_example_that_is_compiled() {
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a file of the repository");
    let page = read(crate_dir().join("../../docs/osprey/c-api.md"));
    let example = read(crate_dir().join("cpp/labels.c"));
    let (_, body) = example.split_once("#include <osprey.h>").expect("the example includes the header");
    assert!(page.contains(body.trim_end()), "docs/osprey/c-api.md does not quote cpp/labels.c");
}

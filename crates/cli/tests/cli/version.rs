//! What a program says of itself.

use crate::support::{command, tacit};

/// The value of a line of `tacit --version`.
fn line<'a>(text: &'a str, name: &str) -> &'a str {
    let mut found = text.lines().filter_map(|line| line.strip_prefix(name));
    let value = found.next().unwrap_or_else(|| panic!("no line {name} in {text}"));
    assert_eq!(found.next(), None, "two lines {name} in {text}");
    value.trim_start()
}

#[test]
fn the_version_tells_commit_and_features() {
    let short = tacit(["-V"]).fine().stdout;
    assert_eq!(short, format!("tacit {}\n", env!("CARGO_PKG_VERSION")));
    let long = tacit(["--version"]).fine().stdout;
    assert_eq!(long.lines().next(), short.lines().next());
    // This test and the program come from one call of cargo, and heard the same from `make`.
    match option_env!("TACIT_COMMIT").filter(|commit| !commit.is_empty()) {
        Some(commit) => {
            let hash = commit.strip_suffix("-modified").unwrap_or(commit);
            assert!(line(&long, "commit").starts_with(hash), "{long}");
            assert_eq!(
                hash != commit,
                line(&long, "commit").ends_with("with changes that are not committed")
            );
        }
        None => assert!(line(&long, "commit").starts_with("unknown"), "{long}"),
    }
    assert!(line(&long, "built for").starts_with(std::env::consts::ARCH), "{long}");
    for engine in ["yao", "gmw", "ring4", "clear"] {
        assert!(line(&long, "engines").split(", ").any(|name| name == engine), "{long}");
    }
    for scheme in line(&long, "buckets").split(", ") {
        // Its name is refused, not its kind.
        tacit(["state", "probe", &format!("{scheme}:///x")]).failed(2, &["at least three letters"]);
    }
    let loads = !line(&long, "built for").ends_with("static");
    assert_eq!(line(&long, "libfabric").starts_with("opened"), loads, "{long}");
}

/// The line says what the kernels of this process take, not what the processor could do.
#[test]
fn the_version_tells_what_of_the_processor_is_used() {
    let portable = command(["--version"]).env("TACIT_PORTABLE", "1").output().unwrap();
    let portable = String::from_utf8(portable.stdout).unwrap();
    assert!(line(&portable, "processor").starts_with("portable"), "{portable}");
    let own = tacit(["--version"]).fine().stdout;
    let more = kernels::InstructionSet::available().len() > 1 && std::env::var_os("TACIT_PORTABLE").is_none();
    assert_eq!(!line(&own, "processor").starts_with("portable"), more, "{own}");
}

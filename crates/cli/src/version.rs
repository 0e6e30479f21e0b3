//! `tacit --version`: of which commit this program is, and what it can do on this machine.

use kernels::InstructionSet;
use std::sync::OnceLock;
use study::ComputeEngine;

/// What the build was told: the commit, with `-modified` where sources differed from it
/// (`packaging/commit.sh`).
const COMMIT: Option<&str> = option_env!("TACIT_COMMIT");

/// The version and what else is known of this program, a line each.
pub fn told() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let engines: Vec<&str> = ComputeEngine::names().collect();
        let buckets: Vec<&str> = store::bucket_schemes().collect();
        format!(
            "{}\ncommit     {}\nbuilt for  {} {}\nprocessor  {}\nengines    {}\nbuckets    {}\nlibfabric  {}",
            env!("CARGO_PKG_VERSION"),
            commit(COMMIT),
            std::env::consts::ARCH,
            system(),
            processor(InstructionSet::detect()),
            engines.join(", "),
            buckets.join(", "),
            if LOADS { "opened when a party asks for it" } else { "no: a static program loads no library" },
        )
    })
}

/// Whether this program can open libraries at run time.
const LOADS: bool = !cfg!(target_feature = "crt-static");

fn commit(told: Option<&str>) -> String {
    match told.filter(|commit| !commit.is_empty()) {
        None => "unknown: not built by make in a checkout".to_owned(),
        Some(commit) => match commit.strip_suffix("-modified") {
            Some(commit) => format!("{commit}, with changes that are not committed"),
            None => commit.to_owned(),
        },
    }
}

fn system() -> String {
    let library = match () {
        () if cfg!(target_env = "musl") => "musl",
        () if cfg!(target_env = "gnu") => "glibc",
        () => "another C library",
    };
    let linked = if LOADS { "linked at run time" } else { "static" };
    format!("{}, {library}, {linked}", std::env::consts::OS)
}

fn processor(found: InstructionSet) -> &'static str {
    match found {
        InstructionSet::Vaes512 => "VAES and AVX-512 are used",
        InstructionSet::AesNi => "AES-NI and AVX2 are used",
        _ => "portable: no instructions of this processor are used",
    }
}

#[cfg(test)]
mod tests {
    use super::commit;

    #[test]
    fn a_commit_is_named_or_said_to_be_unknown() {
        assert_eq!(commit(Some("12ab")), "12ab");
        assert_eq!(commit(Some("12ab-modified")), "12ab, with changes that are not committed");
        for nothing in [None, Some("")] {
            assert!(commit(nothing).starts_with("unknown"), "{nothing:?}");
        }
    }
}

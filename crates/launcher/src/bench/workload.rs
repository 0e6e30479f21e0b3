//! The ten workloads: which program has them, how many parties they take, and where the programs are.

use base::Error;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use terminal::values::NamedValue as _;

/// A workload. What each computes is in `docs/osprey/bench.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum BenchWorkload {
    /// Merge of two sorted lists
    Merge,
    /// Bitonic sort
    Sort,
    /// Loop join
    Ljoin,
    /// Matrix times vector, of 8 bits
    Mvmul,
    /// Layer of a binary neural network
    Binfclayer,
    /// Sum of ciphertexts
    Rsum,
    /// Mean and variance of ciphertexts
    Rstats,
    /// Matrix times vector of ciphertexts
    Rmvmul,
    /// Matrix product, row by column
    NRmatmul,
    /// Matrix product, tile by tile
    TRmatmul,
}

/// The program of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadFamily {
    /// Garbled circuits, two parties.
    Boolean,
    /// Homomorphic encryption, one process.
    Ckks,
}

impl BenchWorkload {
    /// Which program has it.
    pub fn family(self) -> WorkloadFamily {
        match self {
            Self::Merge | Self::Sort | Self::Ljoin | Self::Mvmul | Self::Binfclayer => {
                WorkloadFamily::Boolean
            }
            Self::Rsum | Self::Rstats | Self::Rmvmul | Self::NRmatmul | Self::TRmatmul => {
                WorkloadFamily::Ckks
            }
        }
    }

    /// Processes that compute it together.
    pub fn parties(self) -> usize {
        match self.family() {
            WorkloadFamily::Boolean => 2,
            WorkloadFamily::Ckks => 1,
        }
    }
}

impl WorkloadFamily {
    fn program(self) -> &'static str {
        match self {
            Self::Boolean => "osprey-boolean",
            Self::Ckks => "osprey-ckks",
        }
    }

    /// Where its program is: as given, else beside this executable.
    ///
    /// # Errors
    /// When there is none, with the make target that builds it.
    pub fn find(self, given: Option<&Path>) -> Result<PathBuf, Error> {
        let (program, flag, target) = match self {
            Self::Boolean => (self.program(), "--boolean", "make boolean"),
            Self::Ckks => (self.program(), "--ckks", "make ckks"),
        };
        let path = match given {
            Some(path) => path.to_path_buf(),
            None => std::env::current_exe()
                .map_err(|e| Error::io("cannot find this executable", &e))?
                .with_file_name(program),
        };
        if path.is_file() {
            return Ok(path);
        }
        let path = path.display();
        Err(Error::input(format!(
            "there is no {path}; build it with `{target}`, or say where it is with {flag} PATH"
        )))
    }
}

/// How large a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadSize {
    /// A second or so: for tests.
    Quick,
    /// As the program recommends: about 1 GiB per party.
    Default,
    /// A number, of what the program counts.
    Number(u64),
}

impl std::str::FromStr for WorkloadSize {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "quick" => Ok(Self::Quick),
            "default" => Ok(Self::Default),
            _ => match text.parse() {
                Ok(number) if number > 0 => Ok(Self::Number(number)),
                _ => Err("expected quick, default or a whole number".to_owned()),
            },
        }
    }
}

/// A line of a program's `--list`.
#[derive(Clone, Debug, Deserialize)]
struct Listed {
    workload: String,
    default: u64,
    quick: u64,
    /// What a size counts.
    counts: String,
    /// Sizes are at most this.
    most: u64,
    /// Sizes are multiples of it; 0: powers of two.
    #[serde(default = "any")]
    multiple_of: u64,
}

/// Every whole number.
fn any() -> u64 {
    1
}

impl Listed {
    /// Whether the program takes a size.
    fn takes(&self, size: u64) -> bool {
        let fits = if self.multiple_of == 0 {
            size.is_power_of_two()
        } else {
            size.is_multiple_of(self.multiple_of)
        };
        fits && size <= self.most
    }
}

/// The number behind a size, by the program's own list.
///
/// # Errors
/// When the program cannot be run, does not have the workload, or does not take the size.
pub fn size(program: &Path, workload: BenchWorkload, size: WorkloadSize) -> Result<u64, Error> {
    let shown = program.display();
    let done = Command::new(program)
        .args(["--list", "--json"])
        .output()
        .map_err(|e| Error::io(format!("cannot run {shown}"), &e))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let name = workload.word();
    let listed = text.lines().filter_map(|line| serde_json::from_str::<Listed>(line).ok());
    let found = listed.into_iter().find(|listed| listed.workload == name);
    let found = found.ok_or_else(|| {
        let said = String::from_utf8_lossy(&done.stderr);
        Error::input(format!(
            "{shown} --list --json does not list {name}; is it of another version? {}",
            said.trim()
        ))
    })?;
    match size {
        WorkloadSize::Quick => Ok(found.quick),
        WorkloadSize::Default => Ok(found.default),
        WorkloadSize::Number(number) if found.takes(number) => Ok(number),
        WorkloadSize::Number(number) => {
            let Listed { counts, most, .. } = found;
            Err(Error::input(format!(
                "--size {number} does not fit {name}: it counts {counts}, at most {most}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_its_name_and_program() {
        let names: Vec<String> = BenchWorkload::value_variants().iter().map(|w| w.word()).collect();
        let expected = [
            "merge",
            "sort",
            "ljoin",
            "mvmul",
            "binfclayer",
            "rsum",
            "rstats",
            "rmvmul",
            "n_rmatmul",
            "t_rmatmul",
        ];
        assert_eq!(names, expected);
        let parties: usize = BenchWorkload::value_variants().iter().map(|w| w.parties()).sum();
        assert_eq!(parties, 15);
        for workload in BenchWorkload::value_variants() {
            let json = serde_json::to_string(workload).expect("a name");
            assert_eq!(json, format!("{:?}", workload.word()));
        }
    }

    #[test]
    fn a_missing_program_says_how_to_build_it() {
        let error =
            WorkloadFamily::Ckks.find(Some(Path::new("/nowhere/osprey-ckks"))).expect_err("none").to_string();
        assert!(error.contains("/nowhere/osprey-ckks") && error.contains("make ckks"), "{error}");
    }

    #[test]
    fn a_size_is_checked_against_the_list_of_the_program() {
        let folder = tempfile::tempdir().expect("folder");
        let program = folder.path().join("program");
        let list = concat!(
            r#"{"workload":"merge","default":8,"quick":4,"most":64,"multiple_of":0,"#,
            r#""counts":"records, a power of two"}"#,
            "\n",
            r#"{"workload":"mvmul","default":128,"quick":64,"most":256,"multiple_of":64,"counts":"rows"}"#,
            "\n",
            r#"{"workload":"rsum","default":9,"quick":3,"most":11,"counts":"ciphertexts"}"#
        );
        std::fs::write(folder.path().join("list"), list).expect("written");
        std::fs::write(&program, "#!/bin/sh\ncat \"${0%/*}/list\"\n").expect("written");
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .expect("allowed");
        let size = |workload, size| super::size(&program, workload, size);
        for (workload, right, wrong) in [
            (BenchWorkload::Merge, [1, 16, 64], [48, 128]),
            (BenchWorkload::Mvmul, [64, 192, 256], [32, 320]),
            (BenchWorkload::Rsum, [1, 10, 11], [12, 1 << 40]),
        ] {
            for number in right {
                assert_eq!(size(workload, WorkloadSize::Number(number)).expect("taken"), number);
            }
            for number in wrong {
                let error = size(workload, WorkloadSize::Number(number)).expect_err("refused").to_string();
                assert!(
                    error.contains(&format!("--size {number} does not fit")) && error.contains("at most"),
                    "{error}"
                );
            }
        }
        assert_eq!(size(BenchWorkload::Rsum, WorkloadSize::Quick).expect("listed"), 3);
        let missing = size(BenchWorkload::Sort, WorkloadSize::Default).expect_err("not listed").to_string();
        assert!(missing.contains("does not list sort"), "{missing}");
    }

    #[test]
    fn sizes_are_words_or_numbers() {
        assert_eq!(
            ["quick", "default", "64"].map(str::parse),
            [Ok(WorkloadSize::Quick), Ok(WorkloadSize::Default), Ok(WorkloadSize::Number(64))]
        );
        assert!("0".parse::<WorkloadSize>().is_err() && "big".parse::<WorkloadSize>().is_err());
    }
}

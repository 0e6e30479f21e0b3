//! `fuzzing`: names and corpora of the targets, for `fuzz/run.sh` and by hand.

use fuzzing::{Target, corpus, target, targets};
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

const USAGE: &str =
    "usage: fuzzing list | seeds TARGET FOLDER | unpack TARGET FOLDER | pack TARGET FOLDER... | \
                     play TARGET FILE...
  list    names, and executions that a release wants
  seeds   writes the inputs that a target begins with
  unpack  writes the kept corpus of a target as files
  pack    replaces the kept corpus of a target by the files of folders
  play    runs files through a target";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["list"] => {
            targets().for_each(|t| println!("{} {}", t.name, t.least));
            Ok(())
        }
        [verb, name, ref paths @ ..] if !paths.is_empty() => match target(name) {
            Some(target) => run(verb, target, paths),
            None => Err(io::Error::other(format!("there is no target {name}: see `fuzzing list`"))),
        },
        _ => Err(io::Error::other(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: &str, target: &Target, paths: &[&str]) -> io::Result<()> {
    match verb {
        "seeds" => spread(Path::new(paths[0]), "seed", (target.seeds)()),
        "unpack" => spread(Path::new(paths[0]), "kept", corpus::read(&corpus::path(target.name))?),
        "pack" => {
            let mut inputs = Vec::new();
            for path in paths {
                inputs.extend(corpus::folder(Path::new(path))?);
            }
            corpus::write(&corpus::path(target.name), inputs)
        }
        "play" => {
            for path in paths {
                (target.run)(&fs::read(path)?);
                println!("{path}: no panic");
            }
            Ok(())
        }
        _ => Err(io::Error::other(USAGE)),
    }
}

fn spread(folder: &Path, prefix: &str, inputs: Vec<Vec<u8>>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let write = |(i, input): (usize, Vec<u8>)| fs::write(folder.join(format!("{prefix}-{i:04}")), input);
    inputs.into_iter().enumerate().try_for_each(write)
}

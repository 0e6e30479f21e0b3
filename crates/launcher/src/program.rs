//! The program: which file it is, and the key of its traces.

use crate::run::RunFailure;
use osprey::ProcessSettings;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program with its arguments.
#[derive(Debug)]
pub struct ProgramCall {
    /// The file, absolute.
    pub path: PathBuf,
    /// Its name as it was given.
    pub name: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl ProgramCall {
    /// Finds the program in the way of a shell: as a path when it has a slash, in `PATH` otherwise.
    ///
    /// # Errors
    /// With the exit codes of shells: 127 when there is none, 126 when it cannot be executed.
    pub fn find(command: &[OsString]) -> Result<Self, RunFailure> {
        let (name, args) = command.split_first().ok_or_else(|| RunFailure::ours("no program was named"))?;
        let found = if name.as_bytes().contains(&b'/') {
            Some(PathBuf::from(name)).filter(|path| path.exists())
        } else {
            let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
            std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| executable(path))
        };
        let shown = name.display();
        let path =
            found.ok_or_else(|| RunFailure { code: 127, text: format!("there is no program {shown}") })?;
        if !executable(&path) {
            let text = format!("{shown} cannot be executed: no file with the permission to (chmod +x)");
            return Err(RunFailure { code: 126, text });
        }
        let path = std::path::absolute(&path)
            .map_err(|e| RunFailure::ours(format!("cannot tell where {shown} is: {e}")))?;
        Ok(Self { path, name: name.clone(), args: args.to_vec() })
    }

    /// The key of a trace: a hash over the content of the file, the arguments, and what a trace depends on
    /// besides.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn key(&self, settings: &ProcessSettings) -> Result<u128, RunFailure> {
        let failed = |e| RunFailure::ours(format!("cannot read {}: {e}", self.path.display()));
        let mut hash = blake3::Hasher::new_derive_key("osprey 2026-11 key of a trace");
        let file = File::open(&self.path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        hash.update(&length.to_le_bytes());
        hash.update_reader(file).map_err(failed)?;
        let mut word = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        word(env!("CARGO_PKG_VERSION").as_bytes());
        for number in [settings.chunk as u64, settings.microset as u64, settings.region] {
            word(&number.to_le_bytes());
        }
        for arg in &self.args {
            word(arg.as_bytes());
        }
        let first = hash.finalize().as_bytes()[..16].try_into().expect("16 of 32 bytes");
        Ok(u128::from_le_bytes(first))
    }
}

fn executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Result<ProgramCall, RunFailure> {
        ProgramCall::find(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_program_is_found_as_a_shell_does() {
        assert!(program(&["sh"]).expect("sh").path.is_absolute());
        assert_eq!(program(&["no-such-program"]).expect_err("none").code, 127);
        assert_eq!(program(&["/etc/passwd"]).expect_err("no program").code, 126);
        assert_eq!(program(&["/no/such"]).expect_err("none").code, 127);
    }

    #[test]
    fn a_key_is_of_content_and_arguments() {
        let settings = ProcessSettings::default();
        let key = |words: &[&str]| program(words).expect("there").key(&settings).expect("readable");
        let base = key(&["sh", "a", "bc"]);
        assert_eq!(base, key(&["/bin/sh", "a", "bc"]));
        assert_ne!(base, key(&["sh", "ab", "c"]));
        assert_ne!(base, key(&["env", "a", "bc"]));
        let other = ProcessSettings { chunk: 2 << 20, ..ProcessSettings::default() };
        assert_ne!(base, program(&["sh", "a", "bc"]).expect("there").key(&other).expect("readable"));
    }
}

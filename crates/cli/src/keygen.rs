//! `tacit keygen`: a new identity, or a salt that owners share.

use base::Error;
use clap::Args;
use net::Identity;
use serde_json::json;
use std::path::Path;
use std::path::PathBuf;
use terminal::output;

/// Makes an identity. The file holds a private key; only its fingerprint goes into a study.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tacit keygen --out registry.key\n  key  = \
                  \"tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11\"\n  tacit keygen --out registry-2027.key \
                  --succeeds registry.key")]
pub struct KeygenArgs {
    /// The new identity file; never overwritten
    #[arg(long, value_name = "FILE", default_value = "tacit.key")]
    pub out: PathBuf,
    /// The identity whose place the new one takes: peers go on counting what it has spent; it is told that it
    /// has a successor
    #[arg(long, value_name = "FILE", conflicts_with = "salt")]
    pub succeeds: Option<PathBuf>,
    /// Make a salt instead, which the owners of a study by "salted-key" share; never overwritten
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    pub salt: Option<PathBuf>,
    /// Print one JSON object: key, file
    #[arg(long)]
    pub json: bool,
}

/// Makes an identity file and prints the line for the study.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn run(args: &KeygenArgs) -> Result<(), Error> {
    if let Some(path) = &args.salt {
        return salt(path, args.json);
    }
    let identity = match &args.succeeds {
        Some(old) => Identity::load(old)?.succeed(old, &args.out)?,
        None => {
            let identity = Identity::generate()?;
            identity.save(&args.out)?;
            identity
        }
    };
    let (key, file) = (identity.fingerprint().to_string(), args.out.display().to_string());
    if args.json {
        let line: Vec<String> = identity.line().iter().map(|one| one.old().to_string()).collect();
        return output::print_json(&json!({ "key": key, "file": file, "succeeds": line }));
    }
    output::print(&format!("key  = \"{key}\""))?;
    eprintln!(
        "The private key is in {file} (readable by you alone). Paste the line above into the study, under"
    );
    eprintln!("[party.YOUR_NAME] (of a server: [server.YOUR_NAME]), and into your party file:");
    let name = args.out.file_name().map_or_else(|| file.clone(), |name| name.to_string_lossy().into_owned());
    eprintln!("identity = \"{name}\"  # relative to the party file");
    if let Some(old) = &args.succeeds {
        eprintln!("{}", succession(&old.display().to_string()));
    }
    eprintln!("Keep the key file: it cannot be made again.");
    Ok(())
}

/// What the key of a file becomes.
fn succession(old: &str) -> String {
    format!(
        "It takes the place of the key in {old}, which has signed that,\n\
         and which no study may name from now on. Peers are told when you meet them, and go on\n\
         counting: the new key has spent what the old one had."
    )
}

/// Makes a salt for the owners of a study by "salted-key".
fn salt(path: &Path, json: bool) -> Result<(), Error> {
    study::salt::create(path)?;
    let file = path.display().to_string();
    if json {
        return output::print_json(&json!({ "salt": file }));
    }
    output::print(&format!("salt     = \"{file}\""))?;
    eprintln!(
        "The line above is for the party file of every owner. Give the file to the other owners in private, \
         and to"
    );
    eprintln!("no server: who has it and sees keyed hashes can test guesses of identifiers.");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_wrapped() {
        assert!(super::succession("registry-2026.key").lines().all(|line| line.len() <= 100));
    }
}

//! `tacit consent`: a steward reads what an organisation would consent to, and signs it with a key that is
//! not on the organisation's machines.

use base::{Error, limits};
use clap::{Args, Subcommand};
use net::Identity;
use net::identity::KeyFingerprint;
use serde_json::json;
use statements::{ConsentFile, ConsentRequest, StewardSeal};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use terminal::output;

/// Bytes of the largest request that is read: the study's text and the words that were shown.
const FILE_BYTES: u64 = 8 * limits::STUDY_BYTES as u64;

/// A steward's own signature under a consent.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit consent show request.json\n  tacit consent sign request.json --key \
                        steward.key\n  tacit consent sign request.json --ssh ~/.ssh/id_ed25519.pub"
)]
pub struct StewardArgs {
    /// What to do with the request.
    #[command(subcommand)]
    pub action: StewardAction,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with a request.
#[derive(Debug, Subcommand)]
pub enum StewardAction {
    /// Show what would be signed
    ///
    /// Refuses a file whose words or study are not those of the request.
    #[command(after_help = "Example:\n  tacit consent show request.json")]
    Show {
        /// The request, as the organisation's service wrote it
        file: PathBuf,
    },
    /// Show it, and sign it; prints the line that goes back to the service
    #[command(
        after_help = "Examples:\n  tacit consent sign request.json --key steward.key\n  tacit consent sign \
                            request.json --ssh ~/.ssh/id_ed25519.pub"
    )]
    Sign {
        /// The request, as the organisation's service wrote it
        file: PathBuf,
        /// The steward's own key, made by `tacit keygen`
        #[arg(long, value_name = "FILE", required_unless_present = "ssh", conflicts_with = "ssh")]
        key: Option<PathBuf>,
        /// A key of SSH, ssh-ed25519: its file, or the public half of one that the agent holds; it signs by
        /// `ssh-keygen`
        #[arg(long, value_name = "FILE")]
        ssh: Option<PathBuf>,
    },
}

/// Shows a request, and signs it.
///
/// # Errors
/// When the request is none or shows something else than it is, or the key cannot be used.
pub fn run(args: &StewardArgs) -> Result<(), Error> {
    let (path, key, ssh) = match &args.action {
        StewardAction::Show { file } => (file, None, None),
        StewardAction::Sign { file, key, ssh } => (file, key.as_ref(), ssh.as_ref()),
    };
    let file = ConsentFile::parse(&path.display().to_string(), &read(path)?)?;
    let seal = match (key, ssh) {
        (Some(key), _) => Some(file.request.seal(&Identity::load(key)?)?),
        (None, Some(key)) => Some(by_ssh(&file.request, key)?),
        (None, None) => None,
    };
    let name = |key: &KeyFingerprint| {
        let text = key.to_string();
        let known = file.study.parties.iter().find(|party| party.key == text);
        known.map_or(text, |party| base::clean(&party.name).to_string())
    };
    let (study, terms) = (file.request.study.full(), file.request.words(&name));
    let steward = seal.as_ref().map(|seal| seal.steward().to_string());
    let seal = seal.map(|seal| seal.text());
    if args.json {
        return output::print_json(&json!({
            "study": study, "words": file.words, "terms": terms, "steward": steward, "seal": seal,
        }));
    }
    let title = base::clean(&file.study.first().title);
    let mut lines = vec![format!("Study      {title}, hash {study}")];
    lines.extend(file.words.lines().map(|line| base::clean(line).to_string()));
    lines.push(terms);
    lines.extend(seal);
    output::print(&lines.join("\n"))
}

/// The signature of a key of SSH, which `ssh-keygen` makes, by its agent where that has the key.
fn by_ssh(request: &ConsentRequest, key: &Path) -> Result<StewardSeal, Error> {
    let failed = |e: std::io::Error| Error::io("cannot run ssh-keygen, which signs", &e);
    let mut command = Command::new("ssh-keygen");
    command.args(["-Y", "sign", "-n", "tacit-consent", "-f"]).arg(key);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let words = request.ssh_words();
    child.stdin.take().map(|mut to| to.write_all(words.as_bytes())).transpose().map_err(failed)?;
    let signed = child.wait_with_output().map_err(failed)?;
    if !signed.status.success() {
        return Err(Error::input(format!("ssh-keygen did not sign with {}", key.display())));
    }
    let seal = StewardSeal::parse(&String::from_utf8_lossy(&signed.stdout))?;
    match seal.is_of(request) {
        true => Ok(seal),
        false => Err(Error::input("what ssh-keygen made is no signature for this request")),
    }
}

fn read(path: &Path) -> Result<String, Error> {
    let shown = path.display();
    let file = std::fs::File::open(path).map_err(|e| Error::reading(format!("cannot open {shown}"), &e))?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|e| Error::reading(format!("cannot read {shown}"), &e))?;
    if text.len() as u64 > FILE_BYTES {
        return Err(Error::limit("bytes of a request for a consent", text.len() as u64, FILE_BYTES));
    }
    Ok(text)
}

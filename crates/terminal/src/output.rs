//! What leaves the program: results on standard output, everything else on standard error, and the exit code.

use crate::width;
use base::{BudgetShortfall, Error, Fault};
use page::lines::{fitted, wrapped};
use serde::Serialize;
use serde_json::json;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// What an exit code stands for; `docs/cli.md` and the help list the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitVerdict {
    /// The exit code.
    pub code: u8,
    /// The `kind` of the JSON error object.
    pub name: &'static str,
}

/// Whose turn it is to act on an error.
pub fn verdict(error: &Error) -> ExitVerdict {
    let with_peer = error.at().peer.is_some();
    let (code, name) = match error.kind() {
        Fault::Refused(_) => (5, "refused"),
        Fault::Malformed(_) | Fault::Deviated(_) => (4, "deviated"),
        Fault::Channel(_) => (3, "peer"),
        // What was found out from the peer: another study, another key, more rows than we take.
        Fault::Input(_) | Fault::Limit { .. } if with_peer => (3, "peer"),
        Fault::Input(_) | Fault::Limit { .. } => (2, "input"),
        Fault::Io(_) => (1, "file"),
        _ => (1, "internal"),
    };
    ExitVerdict { code, name }
}

/// Columns by which what comes of a long line stands further in.
const FURTHER: usize = 4;

/// Reports an error on standard error, with `--json` also as one object on standard output.
pub fn fail(error: &Error, json: bool) -> ExitCode {
    fail_with(error, json, &json!({}))
}

/// [`fail`] where something was found out all the same: with `--json` the fields of `beside` are in the
/// object, too.
pub fn fail_with(error: &Error, json: bool, beside: &impl Serialize) -> ExitCode {
    let ExitVerdict { code, name } = verdict(error);
    // When even standard error is gone, the exit code still tells.
    say(&format!("error: {error}"));
    if json {
        let at = error.at();
        let party = (!at.party.is_empty()).then_some(&at.party);
        let step = (!at.step.is_empty()).then_some(&at.step);
        let mut object = json!({ "error": {
            "kind": name, "code": code, "message": error.to_string(),
        "party": party, "peer": at.peer, "step": step,
            "suspects": error.accusation().map(|told| told.suspects(&at.party)),
            "shortfall": error.shortfall().map(|BudgetShortfall { bound, spent, budget, asked }| {
                json!({ "bound": bound, "spent": spent, "budget": budget, "asked": asked })
            }),
        }});
        if let serde_json::Value::Object(beside) = json!(beside) {
            beside.into_iter().for_each(|(name, value)| object[name] = value);
        }
        let _ = print(&object.to_string());
    }
    ExitCode::from(code)
}

/// Says something on standard error, in lines as wide as the terminal; a log has them whole.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", lines(text));
}

/// Says something behind a name; further lines stand under it.
pub fn say_of(name: &str, text: &str) {
    let further = " ".repeat(name.chars().count());
    let lines = width::of_errors().map(|columns| wrapped(text, columns, name, &further).join("\n"));
    let _ = writeln!(std::io::stderr(), "{}", lines.unwrap_or_else(|| format!("{name}{text}")));
}

/// Text for standard error, in such lines.
#[must_use]
pub fn lines(text: &str) -> String {
    fitted(text, width::of_errors(), FURTHER)
}

/// Reports a mistake on the command line, with exit code `code`, or prints the help that was asked for.
pub fn usage(error: &clap::Error, json: bool, code: u8) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() && json {
        let message = error.to_string();
        let message = message.trim_end().strip_prefix("error: ").unwrap_or(&message);
        let object = json!({ "error": {
            "kind": "input", "code": code, "message": message, "party": null, "peer": null, "step": null,
            "suspects": null, "shortfall": null,
        }});
        let _ = print(&object.to_string());
    }
    ExitCode::from(if error.use_stderr() { code } else { 0 })
}

/// Writes text and a line end to standard output. A reader that left early is no error.
///
/// # Errors
/// When standard output cannot be written, such as on a full disk.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::io("writing to standard output", &e)),
        _ => Ok(()),
    }
}

/// Writes one JSON object.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value);
    print(&text.map_err(|e| Error::misuse(format!("a result does not serialise: {e}")))?)
}

/// Writes one JSON object, on one line.
///
/// # Errors
/// As [`print`].
pub fn print_json_line(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(value);
    print(&text.map_err(|e| Error::misuse(format!("a result does not serialise: {e}")))?)
}

/// Writes a whole file: what is there after an error is the old file or nothing.
///
/// # Errors
/// When the file cannot be written, such as on a full disk.
pub fn write_file(path: &std::path::Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::io(format!("cannot write {}", path.display()), &e);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
    std::fs::create_dir_all(folder)
        .map_err(|e| Error::io(format!("cannot create {}", folder.display()), &e))?;
    let mut file = tempfile::Builder::new();
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    let mut file = file.permissions(readable).tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

/// A line of a log on standard error, with `json` one object: `event`, `text` and `more`. When nobody reads
/// it, the program goes on.
pub fn log_line(json: bool, event: &str, text: &str, mut more: serde_json::Value) {
    let said = match json {
        false => format!("  {text}"),
        true => {
            more["event"] = event.into();
            more["text"] = text.into();
            more.to_string()
        }
    };
    let _ = writeln!(std::io::stderr(), "{said}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{At, ChannelError};

    #[test]
    fn an_exit_code_says_who_must_act() {
        let with_peer =
            |kind| Error::new(At { party: "a".into(), peer: Some("b".into()), step: "s".into() }, kind);
        for (error, code) in [
            (Error::input("x"), 2),
            (Error::limit("x", 2, 1), 2),
            (with_peer(Fault::Input("another study".into())), 3),
            (with_peer(Fault::Channel(ChannelError::Closed)), 3),
            (with_peer(Fault::Deviated("check")), 4),
            (with_peer(Fault::Malformed("hello")), 4),
            (Error::refused("rho"), 5),
            (Error::io("x", &std::io::Error::other("y")), 1),
            (Error::misuse("x"), 1),
        ] {
            assert_eq!(verdict(&error).code, code, "{error:?}");
        }
    }
}

//! What leaves the program: results on standard output, everything else on standard error, and the exit code.

use base::{Error, Kind};
use serde::Serialize;
use serde_json::json;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// The exit code of an error, and the `kind` of its JSON object. `osprey run` has codes of its own, because its exit
/// code is the program's.
fn verdict(error: &Error) -> (u8, &'static str) {
    match error.kind() {
        Kind::Input(_) | Kind::Limit { .. } => (2, "input"),
        Kind::Io(_) => (1, "machine"),
        _ => (1, "internal"),
    }
}

/// Reports an error on standard error, with `--json` also as one object on standard output.
pub fn fail(error: &Error, json: bool) -> ExitCode {
    let (code, name) = verdict(error);
    // When even standard error is gone, the exit code still tells.
    let _ = writeln!(std::io::stderr(), "error: {error}");
    if json {
        let object = json!({ "error": { "kind": name, "code": code, "message": error.to_string() } });
        let _ = print(&object.to_string());
    }
    ExitCode::from(code)
}

/// Reports a mistake on the command line, or prints the help that was asked for; `code` is that of a mistake.
pub fn usage(error: &clap::Error, code: u8) -> ExitCode {
    let _ = error.print();
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

/// Writes one JSON object to standard output.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value);
    print(&text.map_err(|e| Error::misuse(format!("a result does not serialise: {e}")))?)
}

/// `256 MiB`, `1.5 GiB`: binary, because memory and chunks come in powers of two.
pub fn binary(n: u64) -> String {
    let (mut value, mut unit) = (n as f64, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    let digits = usize::from(value < 99.95 && value.fract() != 0.0);
    format!("{value:.digits$} {unit}")
}

/// `0.04 s`, `41.2 s`, `3 min 20 s`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.2} s"),
        10..100 => format!("{seconds:.1} s"),
        100..7200 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// `SIGSEGV`, or `signal 40` for one without a name.
pub fn signal(number: u8) -> String {
    signal_hook::low_level::signal_name(number.into())
        .map_or_else(|| format!("signal {number}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        let names = rustix::process::Signal::SYS.as_raw();
        assert_eq!(
            (signal(31), signal(11), signal(40)),
            ("SIGSYS".into(), "SIGSEGV".into(), "signal 40".into())
        );
        assert_eq!(
            (names, rustix::process::Signal::SEGV.as_raw()),
            (31, 11),
            "numbers are those of this system"
        );
    }

    #[test]
    fn numbers_read_well() {
        for (n, text) in [(0, "0 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (256 << 20, "256 MiB")] {
            assert_eq!(binary(n), text);
        }
        for (s, text) in [(0.041, "0.04 s"), (41.23, "41.2 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 5 min")]
        {
            assert_eq!(duration(s), text);
        }
    }
}

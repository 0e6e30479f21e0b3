//! What `osprey run` says, on standard error: standard output is the program's.

use indicatif::{ProgressBar, ProgressStyle};
use page::numbers::binary;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Passes that are shorter show no progress.
const QUIET_FOR: Duration = Duration::from_secs(2);
/// Between two lines of progress where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How much is said.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Each step.
    pub verbose: bool,
    /// Only warnings and errors.
    pub quiet: bool,
}

impl Console {
    fn line(text: &str) {
        // When standard error is gone, nobody wants to know.
        let _ = writeln!(std::io::stderr(), "osprey: {text}");
    }

    /// A step, for who asked for them.
    pub fn step(self, text: &str) {
        if self.verbose {
            Self::line(text);
        }
    }

    /// What is good to know.
    pub fn note(self, text: &str) {
        if !self.quiet {
            Self::line(text);
        }
    }

    /// What is wrong although the program runs.
    pub fn warn(self, text: &str) {
        Self::line(&format!("warning: {text}"));
    }

    /// Output of a speculative pass that failed.
    pub fn quote(self, text: &str) {
        for line in text.lines() {
            Self::line(&format!("| {line}"));
        }
    }

    /// Progress of a pass whose output is not shown: a bar on a terminal, lines elsewhere.
    pub fn progress(self) -> PassProgress {
        PassProgress { console: self, began: Instant::now(), said: None, bar: None }
    }
}

/// Progress of a pass.
#[derive(Debug)]
pub struct PassProgress {
    console: Console,
    began: Instant,
    said: Option<Instant>,
    bar: Option<ProgressBar>,
}

impl PassProgress {
    /// So much of the trace is written.
    pub fn show(&mut self, bytes: u64) {
        if self.console.quiet || self.began.elapsed() < QUIET_FOR {
            return;
        }
        let written = if bytes > 0 { format!(", {} of trace", binary(bytes)) } else { String::new() };
        let text = format!("speculative pass: {} s{written}", self.began.elapsed().as_secs());
        if std::io::stderr().is_terminal() {
            let style = || ProgressStyle::with_template("osprey: {spinner} {msg}").ok();
            let bar = self.bar.get_or_insert_with(|| {
                let bar = ProgressBar::new_spinner();
                style().map_or(bar.clone(), |style| bar.with_style(style))
            });
            bar.set_message(text);
        } else if self.said.is_none_or(|at| at.elapsed() >= LINE_EVERY) {
            self.said = Some(Instant::now());
            Console::line(&text);
        }
    }
}

impl Drop for PassProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

//! Progress on standard error: bars on a terminal, plain lines elsewhere, JSON lines for a process that
//! watches this one.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use page::numbers::{bytes, count, duration, handled, scaled};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Least time between two plain lines of one stage, and between two JSON lines.
const LINE_EVERY: Duration = Duration::from_secs(2);
const EVENT_EVERY: Duration = Duration::from_millis(100);
/// Least time between two lines that say the same of a wait.
const WAITING_EVERY: Duration = Duration::from_secs(30);
/// After this time without a row more there is no rate.
const STILL_AFTER: Duration = Duration::from_secs(5);
/// Least time before a rate means anything.
const RATE_AFTER: Duration = Duration::from_millis(300);

/// What a watched process says, one JSON object a line on standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum ProgressLine {
    /// Waits for the peer.
    Waiting {
        /// A line to print.
        text: String,
    },
    /// The peer is there.
    Connected {
        /// Its name.
        peer: String,
    },
    /// A stage begins.
    Stage {
        /// Its name.
        name: String,
        /// Rows it will handle.
        rows: u64,
    },
    /// Rows done of a step.
    Progress {
        /// The step, as a path.
        step: String,
        /// Rows done.
        done: u64,
        /// Rows in all.
        total: u64,
    },
    /// Units of the computation that both parties hold.
    Units {
        /// How many do.
        done: u64,
        /// Units in all.
        of: u64,
        /// Attempts that failed and were made again.
        again: u64,
    },
    /// A stage is over.
    StageDone {
        /// Its name.
        name: String,
        /// Wall seconds.
        seconds: f64,
        /// Rows handled.
        rows: u64,
        /// Bytes sent by all parties.
        bytes: u64,
    },
    /// The engine is settled for the link.
    Settled {
        /// A line to print.
        text: String,
    },
    /// What this party should know before anybody is met.
    Warning {
        /// A line to print.
        text: String,
    },
    /// What this party's ledger says to it.
    Note {
        /// A line to print.
        text: String,
    },
    /// The stored answer of an earlier run is returned.
    Stored,
}

/// Where progress is shown. Cloneable; all clones are one board.
#[derive(Clone)]
pub struct Board(Arc<Mutex<State>>);

struct State {
    style: Style,
    stage: Option<Stage>,
    waits: Waits,
}

/// What was said of waits, and when.
#[derive(Default)]
struct Waits(BTreeMap<String, Instant>);

impl Waits {
    /// Whether a line is due: it is a new one, or was said long ago.
    fn due(&mut self, text: &str, now: Instant) -> bool {
        let due = self.0.get(text).is_none_or(|said| now.duration_since(*said) >= WAITING_EVERY);
        if due {
            self.0.insert(text.to_owned(), now);
        }
        due
    }
}

enum Style {
    Bars(MultiProgress),
    Lines,
    Events,
}

struct Stage {
    name: String,
    bar: Option<ProgressBar>,
    /// Steps of the same phase, such as those of several shards: (done, total) of each.
    phase: String,
    /// How often the rows were begun, phases and a phase's own passes together.
    pass: u32,
    steps: BTreeMap<String, (u64, u64)>,
    /// What is done of them, and since when no more is.
    moved: (u64, Instant),
    /// Of units, what is said of them.
    units: String,
    began: Instant,
    said: Instant,
}

impl Board {
    /// Bars on a terminal, lines elsewhere.
    #[must_use]
    pub fn stderr() -> Self {
        let bars = std::io::stderr().is_terminal();
        Self::new(if bars { Style::Bars(MultiProgress::new()) } else { Style::Lines })
    }

    /// JSON lines.
    #[must_use]
    pub fn events() -> Self {
        Self::new(Style::Events)
    }

    fn new(style: Style) -> Self {
        Self(Arc::new(Mutex::new(State { style, stage: None, waits: Waits::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it drew a bar does not matter to the others.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened.
    pub fn show(&self, line: &ProgressLine) {
        self.lock().show(line);
    }

    /// `done` of `total` rows of `step`.
    pub fn progress(&self, step: &str, done: u64, total: u64) {
        self.lock().progress(step, done, total);
    }

    /// Ends whatever bar is left: call before printing a result or an error.
    pub fn end(&self) {
        self.lock().end(None);
    }
}

impl State {
    fn show(&mut self, line: &ProgressLine) {
        if matches!(self.style, Style::Events) {
            return say_json(line);
        }
        match line {
            ProgressLine::Waiting { text } => {
                if self.waits.due(text, Instant::now()) {
                    self.say(text);
                }
            }
            ProgressLine::Settled { text } | ProgressLine::Note { text } => self.say(text),
            ProgressLine::Warning { text } => self.say(&format!("warning: {text}")),
            ProgressLine::Connected { peer } => {
                // A later wait, as a node's for its next study, is a new one.
                self.waits = Waits::default();
                self.say(&met(peer));
            }
            ProgressLine::Stored => {
                self.say("this study has run on this data before: its stored answer, no new charge")
            }
            ProgressLine::Progress { step, done, total } => self.progress(step, *done, *total),
            ProgressLine::Units { done, of, again } => {
                let again = if *again == 0 { String::new() } else { format!(", {} again", count(*again)) };
                let units = format!("   ({} of {} units{again})", count(*done), count(*of));
                self.stage.iter_mut().for_each(|stage| stage.units.clone_from(&units));
            }
            ProgressLine::Stage { name, rows } => self.begin(name, *rows),
            ProgressLine::StageDone { name, seconds, rows, bytes: sent } => {
                let what = handled(name);
                // What took no time, or did nothing, has no rate.
                let rate = match *rows > 0 && *seconds >= 0.01 {
                    true => format!("   {} {what}/s", scaled(*rows as f64 / seconds)),
                    false => String::new(),
                };
                let [rows, sent] = [count(*rows), bytes(*sent)];
                let text = format!("{rows:>9} {what}   {:>9}   {sent:>9}{rate}", duration(*seconds));
                self.end(Some((name, &text)));
            }
        }
    }

    fn say(&self, text: &str) {
        match &self.style {
            Style::Bars(all) => drop(all.println(format!("  {text}"))),
            _ => drop(writeln!(std::io::stderr(), "  {text}")),
        }
    }

    fn begin(&mut self, name: &str, rows: u64) {
        self.end(None);
        let bar = match &self.style {
            Style::Bars(all) => {
                let bar = all.add(ProgressBar::new(rows.max(1)));
                // A line that wraps cannot be drawn over: what is wider than the terminal is cut.
                let style =
                    ProgressStyle::with_template("  {prefix:8} [{bar:20.green}] {percent:>3} %  {wide_msg}");
                bar.set_style(style.expect("the template is valid").progress_chars("##-"));
                bar.set_prefix(name.to_owned());
                Some(bar)
            }
            _ => None,
        };
        self.stage = Some(Stage::new(name, bar));
    }

    fn progress(&mut self, step: &str, done: u64, total: u64) {
        let first = step.split('/').next().unwrap_or(step);
        if self.stage.as_ref().is_none_or(|stage| stage.name != first) {
            if matches!(self.style, Style::Events) {
                // Only the time of the last line is of interest then.
                let stage = Stage::new(first, None);
                let said = stage.said.checked_sub(EVENT_EVERY).unwrap_or(stage.said);
                self.stage = Some(Stage { said, ..stage });
            } else {
                self.begin(first, total);
            }
        }
        let Some(stage) = &mut self.stage else { return };
        match self.style {
            Style::Events => {
                if stage.said.elapsed() >= EVENT_EVERY || done == total {
                    stage.said = Instant::now();
                    say_json(&ProgressLine::Progress { step: step.to_owned(), done, total });
                }
            }
            _ => {
                if let Some(text) = stage.advance(step, done, total) {
                    self.say(&text);
                }
            }
        }
    }

    /// Ends the stage, with a last word on it where there is one.
    fn end(&mut self, last: Option<(&str, &str)>) {
        let stage = self.stage.take();
        let bar = stage.and_then(|stage| stage.bar);
        match (bar, last) {
            (Some(bar), Some((_, text))) => {
                bar.set_length(1);
                bar.set_position(1);
                bar.finish_with_message(text.to_owned());
            }
            (Some(bar), None) => bar.finish_and_clear(),
            (None, Some((name, text))) => self.say(&format!("{name:8} done   {text}")),
            (None, None) => {}
        }
    }
}

impl Stage {
    /// One that begins now.
    fn new(name: &str, bar: Option<ProgressBar>) -> Self {
        let (name, steps, now) = (name.to_owned(), BTreeMap::new(), Instant::now());
        let [phase, units] = [const { String::new() }; 2];
        Self { name, bar, phase, pass: 0, steps, moved: (0, now), units, began: now, said: now }
    }

    /// Notes what is done. Returns a line when it is time for one and there is no bar.
    fn advance(&mut self, step: &str, done: u64, total: u64) -> Option<String> {
        let shared = |part: &&str| part.parse::<u32>().is_err();
        let phase = step.split('/').filter(shared).collect::<Vec<_>>().join("/");
        // A step that goes back has begun its rows anew; steps of several shards do so one by one.
        let again = self.steps.len() == 1 && self.steps.get(step).is_some_and(|last| done < last.0);
        if phase != self.phase || again {
            (self.phase, self.began) = (phase, Instant::now());
            self.pass += 1;
            self.steps.clear();
        }
        self.steps.insert(step.to_owned(), (done, total));
        let (done, total) = self.steps.values().fold((0, 0), |(d, t), step| (d + step.0, t + step.1));
        if self.moved.0 != done {
            self.moved = (done, Instant::now());
        }
        // A third part of the path names a later phase: the bar starts anew for it.
        let phase = match self.phase.split('/').nth(2) {
            Some(name) => format!("   (pass {}: {name})", self.pass),
            None if self.pass > 1 => format!("   (pass {})", self.pass),
            None => String::new(),
        };
        let units = &self.units;
        let of = if self.phase.ends_with("/u") { " chunks of rows" } else { "" };
        let pace = self.pace(done, total);
        let text = format!("{} of {}{of}{pace}{phase}{units}", count(done), count(total));
        if let Some(bar) = &self.bar {
            bar.set_length(total.max(1));
            bar.set_position(done);
            bar.set_message(text);
            return None;
        }
        if self.said.elapsed() < LINE_EVERY {
            return None;
        }
        self.said = Instant::now();
        let percent = 100 * done / total.max(1);
        Some(format!("{:8} {percent:>3} %  {text}", self.name))
    }

    /// Rate and time left, once they mean anything.
    fn pace(&self, done: u64, total: u64) -> String {
        let (elapsed, still) = (self.began.elapsed(), self.moved.1.elapsed());
        if still >= STILL_AFTER && done < total {
            return format!("   none for {}", duration(still.as_secs_f64().floor()));
        }
        if elapsed < RATE_AFTER || done == 0 {
            return String::new();
        }
        let rate = done as f64 / elapsed.as_secs_f64();
        let left = total.saturating_sub(done) as f64 / rate;
        format!("   {}/s   {} left", scaled(rate), duration(left))
    }
}

/// Work without a measure of how far it is: what it is, and for how long it goes on; gone when dropped.
pub struct Working(Option<ProgressBar>);

impl Working {
    /// A running clock on a terminal, a line elsewhere.
    #[must_use]
    pub fn on(text: impl Into<String>) -> Self {
        let text = text.into();
        if !std::io::stderr().is_terminal() {
            let _ = writeln!(std::io::stderr(), "  {text}");
            return Self(None);
        }
        let style = ProgressStyle::with_template("  {msg}  {elapsed}").expect("the template is valid");
        let bar = ProgressBar::new_spinner().with_style(style).with_message(text);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(Some(bar))
    }

    /// Whether it is a clock on a terminal, which costs nothing to change.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.0.is_some()
    }

    /// Says something else: beside the clock, or as a line.
    pub fn tell(&self, text: String) {
        match &self.0 {
            Some(bar) => bar.set_message(text),
            None => _ = writeln!(std::io::stderr(), "  {text}"),
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Who is there now: one name, or several with commas between.
fn met(peers: &str) -> String {
    match peers.rsplit_once(", ") {
        Some((others, last)) => format!("{others} and {last} are there and have proven their keys"),
        None => format!("{peers} is there and has proven its key"),
    }
}

fn say_json(line: &ProgressLine) {
    if let Ok(text) = serde_json::to_string(line) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_of_one_phase_add_up_and_a_new_phase_starts_anew() {
        let now = Instant::now();
        let said = now.checked_sub(LINE_EVERY).unwrap();
        let mut stage = Stage { began: now, said, ..Stage::new("compute", None) };
        assert!(stage.advance("compute/0/rows", 10, 100).unwrap().contains("10 of 100"));
        assert_eq!(stage.advance("compute/1/rows", 20, 100), None, "too soon for another line");
        stage.said = now.checked_sub(LINE_EVERY).unwrap();
        assert!(stage.advance("compute/0/rows", 50, 100).unwrap().contains("35 %  70 of 200"));
        stage.said = now.checked_sub(LINE_EVERY).unwrap();
        assert!(stage.advance("compute/0/other", 1, 2).unwrap().contains("50 %  1 of 2"));
        // The same step from its beginning: another pass, whose time counts from here.
        stage.began = now.checked_sub(Duration::from_secs(60)).unwrap();
        assert_eq!(stage.advance("compute/0/other", 2, 2), None);
        stage.said = now.checked_sub(LINE_EVERY).unwrap();
        assert!(stage.advance("compute/0/other", 1, 2).unwrap().ends_with("1 of 2   (pass 3)"));
        // What does not move says since when, and promises no end.
        stage.moved.1 = now.checked_sub(Duration::from_secs(9)).unwrap();
        stage.said = now.checked_sub(LINE_EVERY).unwrap();
        let text = stage.advance("compute/0/other", 1, 2).unwrap();
        assert!(text.contains("1 of 2   none for 9") && !text.contains("left"), "{text}");
        (stage.units, stage.said) = ("   (3 of 7 units)".into(), now.checked_sub(LINE_EVERY).unwrap());
        assert!(stage.advance("compute/0/other", 2, 2).unwrap().ends_with("(pass 3)   (3 of 7 units)"));
    }

    #[test]
    fn a_wait_is_told_once_and_then_now_and_then() {
        let (mut waits, now) = (Waits::default(), Instant::now());
        assert!(waits.due("waiting for a", now) && waits.due("waiting for b", now));
        let soon = now + WAITING_EVERY / 2;
        assert!(!waits.due("waiting for a", soon) && !waits.due("waiting for b", soon));
        assert!(waits.due("waiting for a (refused)", soon));
        assert!(waits.due("waiting for a", now + WAITING_EVERY));
        assert!(!waits.due("waiting for a", now + WAITING_EVERY + Duration::from_secs(1)));
    }

    #[test]
    fn lines_for_a_watcher_round_trip() {
        for line in [
            ProgressLine::Stored,
            ProgressLine::Waiting { text: "x".into() },
            ProgressLine::Stage { name: "match".into(), rows: 5 },
            ProgressLine::Progress { step: "match/pid".into(), done: 1, total: 2 },
            ProgressLine::Units { done: 3, of: 7, again: 1 },
            ProgressLine::StageDone { name: "match".into(), seconds: 0.5, rows: 5, bytes: 7 },
        ] {
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<ProgressLine>(&text).unwrap(), line, "{text}");
        }
    }
}

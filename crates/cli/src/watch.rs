//! What a job reports, as lines of a board.

use job::run::{Event, Watch};
use net::{RowProgress, StopSwitch};
use std::sync::Arc;
use terminal::progress::{Board, ProgressLine};

/// Where progress is shown: to people, or as JSON lines to the process that watches this one and ends it
/// with itself.
pub fn board(events: bool) -> Board {
    if events {
        terminal::machine::end_with_parent();
        return Board::events();
    }
    Board::stderr()
}

/// A watch of a job that reports to a board.
#[must_use]
pub fn watch(board: &Board) -> Watch {
    let (steps, events) = (board.clone(), board.clone());
    Watch {
        progress: RowProgress::new(move |step, done, total| steps.progress(step, done, total)),
        events: Arc::new(move |event: Event| line(event).iter().for_each(|line| events.show(line))),
        workers: crate::worker::place(),
        // A signal ends the process.
        stop: StopSwitch::default(),
    }
}

/// An answer is written, and not shown.
fn line(event: Event) -> Option<ProgressLine> {
    Some(match event {
        Event::Answer { .. } => return None,
        Event::Waiting(text) => ProgressLine::Waiting { text },
        Event::Connected { peer } => ProgressLine::Connected { peer },
        Event::Stage { name, rows } => ProgressLine::Stage { name, rows },
        Event::StageDone(stage) => ProgressLine::StageDone {
            name: stage.name,
            seconds: stage.seconds,
            rows: stage.rows,
            bytes: stage.bytes_sent.iter().sum(),
        },
        Event::Units { done, of, again } => ProgressLine::Units { done, of, again },
        Event::Settled(text) => ProgressLine::Settled { text },
        Event::Warning(text) => ProgressLine::Warning { text },
        Event::Note(text) => ProgressLine::Note { text },
        Event::Stored => ProgressLine::Stored,
    })
}

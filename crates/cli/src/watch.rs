//! What a job reports, as lines of a board.

use job::run::{Event, Watch};
use net::RowProgress;
use std::sync::Arc;
use terminal::progress::{Board, Line};

/// A watch of a job that reports to a board.
#[must_use]
pub fn watch(board: &Board) -> Watch {
    let (steps, events) = (board.clone(), board.clone());
    Watch {
        progress: RowProgress::new(move |step, done, total| steps.progress(step, done, total)),
        events: Arc::new(move |event: Event| line(event).iter().for_each(|line| events.show(line))),
    }
}

/// An answer is written, and not shown.
fn line(event: Event) -> Option<Line> {
    Some(match event {
        Event::Answer { .. } => return None,
        Event::Waiting(text) => Line::Waiting { text },
        Event::Connected { peer } => Line::Connected { peer },
        Event::Stage { name, rows } => Line::Stage { name, rows },
        Event::StageDone(stage) => Line::StageDone {
            name: stage.name,
            seconds: stage.seconds,
            rows: stage.rows,
            bytes: stage.bytes_sent.iter().sum(),
        },
        Event::Settled(text) => Line::Settled { text },
        Event::Warning(text) => Line::Warning { text },
        Event::Note(text) => Line::Note { text },
        Event::Stored => Line::Stored,
    })
}

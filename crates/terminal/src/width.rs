//! How many columns text for people has.

/// Columns where nobody says how many there are: of a file or a pipe.
const USUAL: usize = 100;
/// Narrower terminals get lines of this width, and break them where they like.
const LEAST: usize = 40;

/// What `COLUMNS` says.
fn said() -> Option<usize> {
    std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok())
}

/// Columns of standard error: those of the terminal that it is, else what `COLUMNS` says; none of a log,
/// where a line stays whole.
pub(crate) fn of_errors() -> Option<usize> {
    let terminal = rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| usize::from(size.ws_col));
    terminal.filter(|columns| *columns > 0).or_else(said).map(|columns| columns.max(LEAST))
}

/// Columns of standard output: those of the terminal that it is, else what `COLUMNS` says, else 100.
#[must_use]
pub fn columns() -> usize {
    let terminal = rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    terminal.filter(|columns| *columns > 0).or_else(said).unwrap_or(USUAL).max(LEAST)
}

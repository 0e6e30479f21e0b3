//! How many columns text for people has.

/// Columns where nobody says how many there are: of a file or a pipe.
const USUAL: usize = 100;
/// Narrower terminals get lines of this width, and break them where they like.
const LEAST: usize = 40;

/// Columns of standard output: those of the terminal that it is, else what `COLUMNS` says, else 100.
#[must_use]
pub fn columns() -> usize {
    let terminal = rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    let said = || std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    terminal.filter(|columns| *columns > 0).or_else(said).unwrap_or(USUAL).max(LEAST)
}

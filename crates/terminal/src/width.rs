//! How many columns text for people has, and lines that fit.

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

/// Words in lines of so many columns at most, a longer word in a line of its own; the first line begins with
/// `first`, all others with `further`.
#[must_use]
pub fn wrapped(text: &str, columns: usize, first: &str, further: &str) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    let (mut lines, mut line, mut empty) = (Vec::new(), first.to_owned(), true);
    for word in text.split_whitespace() {
        if !empty && length(&line) + 1 + length(word) > columns {
            lines.push(std::mem::replace(&mut line, further.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_put_into_lines() {
        assert_eq!(wrapped("one two three", 10, "a  ", "   "), ["a  one two", "   three"]);
        assert_eq!(wrapped("\u{e4}\u{e4} \u{e4}\u{e4}", 5, "", ""), ["\u{e4}\u{e4} \u{e4}\u{e4}"]);
        assert_eq!(wrapped("a-long-word b", 4, "# ", "# "), ["# a-long-word", "# b"]);
        assert_eq!(wrapped("", 4, "x", ""), ["x"]);
    }
}

//! Lines of text that fit.

/// Words in lines of so many columns at most, a longer word in a line of its own; the first line begins with
/// `first`, all others with `further`.
#[must_use]
pub fn wrapped(text: &str, columns: usize, first: &str, further: &str) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    let (mut lines, mut line, mut empty) = (Vec::new(), first.to_owned(), true);
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        // A number keeps its sign.
        match words.last_mut().filter(|_| word.starts_with('%')) {
            Some(number) => *number += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    for word in &words {
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

/// Running text without the backticks that a page shows as code.
#[must_use]
pub fn plain(text: &str) -> String {
    let pairs = text.matches('`').count() / 2 * 2;
    text.replacen('`', "", pairs)
}

/// Lines of a text where those that are too long are broken; what comes of one stands under it, so many
/// columns further in. Without a width lines stay whole.
#[must_use]
pub fn fitted(text: &str, columns: Option<usize>, further: usize) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let line = |line: &str| {
        if line.chars().count() <= columns {
            return line.to_owned();
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let [first, others] = [indent, indent + further].map(|columns| " ".repeat(columns));
        wrapped(line, columns, &first, &others).join("\n")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Columns of the name of a fact.
const NAME: usize = 11;

/// What is said of one thing, in lines that begin with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The thing, in one word.
    pub name: &'static str,
    /// What is said of it.
    pub text: String,
}

impl Fact {
    /// Of such a thing.
    pub fn new(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text.into() }
    }

    /// In lines of so many columns at most; all but the first stand under its text.
    #[must_use]
    pub fn lines(&self, columns: usize) -> Vec<String> {
        wrapped(&self.text, columns, &format!("{:<NAME$}", self.name), &" ".repeat(NAME))
    }
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
        assert_eq!(wrapped("by 58 %, or", 6, "", ""), ["by", "58 %,", "or"]);
    }

    #[test]
    fn only_long_lines_are_broken() {
        let text = "  a  b\n  one two three\n";
        assert_eq!(fitted(text, Some(10), 4), "  a  b\n  one two\n      three\n");
        assert_eq!(fitted(text, None, 4), text);
    }

    #[test]
    fn a_fact_stands_under_its_text() {
        let lines = Fact::new("noise", "one two three").lines(18);
        assert_eq!(lines, ["noise      one two", "           three"]);
    }
}

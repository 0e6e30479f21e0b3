//! Two texts line by line.

use page::markup::{Markup, element, text, words};

/// Lines of a text that are compared at most.
const LINES: usize = 1_000;

/// A line that both have, only the first, or only the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffLine<'a> {
    Same,
    Gone(&'a str),
    New(&'a str),
}

/// The shortest way from one text to another, in whole lines.
fn lines<'a>(before: &'a str, after: &'a str) -> Vec<DiffLine<'a>> {
    let old: Vec<&str> = before.lines().take(LINES).collect();
    let new: Vec<&str> = after.lines().take(LINES).collect();
    // By places: how many lines are common from here on.
    let wide = new.len() + 1;
    let mut common = vec![0_u16; (old.len() + 1) * wide];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * wide + j] = match old[i] == new[j] {
                true => common[(i + 1) * wide + j + 1] + 1,
                false => common[(i + 1) * wide + j].max(common[i * wide + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push(DiffLine::Same);
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[(i + 1) * wide + j] >= common[i * wide + j + 1] {
            out.push(DiffLine::Gone(old[i]));
            i += 1;
        } else {
            out.push(DiffLine::New(new[j]));
            j += 1;
        }
    }
    out
}

/// What differs, in words that need no colour.
pub fn markup(before: &str, after: &str) -> Markup {
    let item = |line| {
        let (mark, said) = match line {
            DiffLine::Gone(line) => ("only then: ", line),
            DiffLine::New(line) => ("only now: ", line),
            DiffLine::Same => return None,
        };
        Some(element("li", &[], [words("b", "", mark), element("code", &[], [text(said)])]))
    };
    let items: Vec<Markup> = lines(before, after).into_iter().filter_map(item).collect();
    match items.is_empty() {
        true => words("p", "", "Both say the same, line by line."),
        false => element("ul", &[("class", "diff")], items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_that_changed_is_two_lines() {
        let found = lines("a\nrho = 0.1\nb\n", "a\nrho = 0.2\nb\nc\n");
        let expected = [
            DiffLine::Same,
            DiffLine::Gone("rho = 0.1"),
            DiffLine::New("rho = 0.2"),
            DiffLine::Same,
            DiffLine::New("c"),
        ];
        assert_eq!(found, expected);
        assert!(lines("", "").is_empty());
        assert!(markup("a", "a").into_string().contains("same"));
    }
}

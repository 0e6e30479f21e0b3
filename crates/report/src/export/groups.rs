//! What a program's number is and of which group, by its label: `mean of cost, dose = low, age 18 to 40`.

use std::collections::BTreeSet;

/// A label taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelParts {
    /// What was asked: `mean`, `rows`, `quantile 1/4`; `coefficient` of a regression.
    pub asked: String,
    /// What it is of: a column, or two; nothing of rows.
    pub of: String,
    /// Of each column that groups, its name and the group.
    pub groups: Vec<(String, String)>,
}

/// Labels of one view, among which bits are known and numbers that make a label unlike others.
pub struct Labels<'l> {
    all: BTreeSet<&'l str>,
    pieces: BTreeSet<&'l str>,
}

impl<'l> Labels<'l> {
    /// These.
    pub fn new(labels: impl IntoIterator<Item = &'l str>) -> Self {
        let all: BTreeSet<&str> = labels.into_iter().collect();
        let pieces = all.iter().flat_map(|label| label.split(", ").skip(1));
        let pieces = pieces.flat_map(|piece| piece.split(" against ")).collect();
        Self { all, pieces }
    }

    /// A label's parts. A label of a group may have a comma in it: what is no group belongs to the one before.
    pub fn parts(&self, label: &str) -> LabelParts {
        let once = label.rsplit_once(" (").filter(|(rest, _)| self.all.contains(rest));
        let mut pieces = once.map_or(label, |(rest, _)| rest).split(", ");
        let head = pieces.next().unwrap_or_default();
        let (asked, of) = match head.split_once(" of ") {
            Some(both) => both,
            None if head.contains(" by ") => ("coefficient", head),
            None => (head, ""),
        };
        let mut groups: Vec<(String, String)> = Vec::new();
        for piece in pieces {
            match (self.group(piece), groups.last_mut()) {
                (Some(group), _) => groups.push(group),
                (None, Some((_, before))) => *before += &format!(", {piece}"),
                (None, None) => {}
            }
        }
        LabelParts { asked: asked.to_owned(), of: of.to_owned(), groups }
    }

    fn group(&self, piece: &str) -> Option<(String, String)> {
        if let Some((one, other)) = piece.split_once(" against ")
            && let (Some((name, one)), Some((same, other))) = (self.group(one), self.group(other))
            && name == same
        {
            return Some((name, format!("{one} against {other}")));
        }
        let of = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        if let Some((name, value)) = piece.split_once(" = ").filter(|(name, _)| is_name(name)) {
            return of(name, value);
        }
        let number = |text: &str| text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        let words: Vec<&str> = piece.split(' ').collect();
        match words[..] {
            [name, low, "to", high] if is_name(name) && number(low) && number(high) => {
                of(name, &format!("{low} to {high}"))
            }
            ["not", name] if self.pieces.contains(name) => of(name, "no"),
            [name] if self.pieces.contains(&*format!("not {name}")) => of(name, "yes"),
            _ => None,
        }
    }
}

/// Whether it is a name of a program's value.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_of_which_group_a_number_is() {
        let all = [
            "rows, shop = Smith, Jones and Sons, visited",
            "rows, shop = a = b, not visited",
            "risk-difference of ill, visited against not visited, age 18 to 40",
            "quantile 1/4 of cost, shop = x",
            "mean of cost",
            "mean of cost (2)",
            "cost by age, day 2026-01-01 to 2026-02-01",
            "correlation of cost with age",
            "difference of cost, shop = x against shop = y",
        ];
        let labels = Labels::new(all);
        let told = |label: &str| {
            let LabelParts { asked, of, groups } = labels.parts(label);
            let groups = groups.iter().map(|(name, value)| format!("; {name}: {value}"));
            format!("{asked}; {of}{}", groups.collect::<String>())
        };
        let expected = [
            "rows; ; shop: Smith, Jones and Sons; visited: yes",
            "rows; ; shop: a = b; visited: no",
            "risk-difference; ill; visited: yes against no; age: 18 to 40",
            "quantile 1/4; cost; shop: x",
            "mean; cost",
            "mean; cost",
            "coefficient; cost by age; day: 2026-01-01 to 2026-02-01",
            "correlation; cost with age",
            "difference; cost; shop: x against y",
        ];
        assert_eq!(all.map(told), expected);
    }
}

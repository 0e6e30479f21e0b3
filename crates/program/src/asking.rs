//! The lines of a program that asks, for those who write one of what people choose: `tacit init program` and
//! the form of `tacit service` have the same words for the same choice. What they mean, and whether they fit
//! together, is judged where the text is read.

use std::fmt;

/// Words that mean something else in a program.
const RESERVED: [&str; 16] = [
    "bit", "of", "by", "and", "between", "edges", "values", "all", "with", "on", "weight", "within", "count",
    "known", "present", "missing",
];
/// Bits of the types of numbers: a finer step would tell more of the largest one.
const WIDTHS: [u32; 4] = [8, 16, 32, 40];
/// Longest name that is made of a file's.
const NAME: usize = 40;

/// What a program calls a column that its owner's file calls so.
#[must_use]
pub fn column_name(file: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let name: String = file.chars().map(plain).take(NAME).collect();
    let type_like = name.starts_with(['u', 'i']) && name[1..].bytes().all(|byte| byte.is_ascii_digit());
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !named || type_like || RESERVED.contains(&name.as_str()) { format!("column-{name}") } else { name }
}

/// The type of numbers up to the largest one without its sign.
///
/// # Errors
/// The bits that it has, where they are too many.
pub fn number_type(largest: u64, below_zero: bool) -> Result<String, u32> {
    let bits = 64 - largest.leading_zeros() + u32::from(below_zero);
    let width = WIDTHS.into_iter().find(|width| *width >= bits).ok_or(bits)?;
    Ok(format!("{}{width}", if below_zero { 'i' } else { 'u' }))
}

/// The widest of these types, in bits.
#[must_use]
pub fn widest_number() -> u32 {
    WIDTHS[WIDTHS.len() - 1]
}

/// The cells of a column of labels, which are in quotes; the others are compared with the first.
#[must_use]
pub fn label_cells(quoted: &[String]) -> String {
    let bits = (usize::BITS - quoted.len().leading_zeros()).max(2);
    format!("u{bits} labels {}", quoted.join(" "))
}

/// The line of a column, whose cells begin with their type.
#[must_use]
pub fn column_line(name: &str, party: &str, cells: &str) -> String {
    let (kind, cells) = cells.split_once(' ').unwrap_or((cells, ""));
    format!("column {name} {kind} {party} {cells}").trim_end().to_owned()
}

/// The first lines: the form, the title, the parties by name.
#[must_use]
pub fn first_lines(title: &str, parties: &[String]) -> Vec<String> {
    // A program has no sign for a quote in its texts.
    let title = title.replace(['"', '\\'], "'").replace(char::is_control, " ");
    let mut parties = parties.to_vec();
    parties.sort_unstable();
    let head = [super::text::HEADER.to_owned(), format!("name \"{title}\"")];
    head.into_iter().chain(parties.iter().map(|party| format!("party {party}"))).collect()
}

/// A column that is asked about, with the ends between which its numbers are taken to lie.
#[derive(Clone, Copy, Debug)]
pub struct BoundedName<'a> {
    /// What the program calls it.
    pub name: &'a str,
    /// The ends, where it needs any.
    pub between: Option<&'a [String; 2]>,
}

impl fmt::Display for BoundedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.between {
            Some([low, high]) => write!(f, "{} between {low} {high}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// A question, whose line its text is.
#[derive(Clone, Debug)]
pub enum QuestionLine<'a> {
    /// How many rows there are.
    Count,
    /// How many rows lie between which edges; without any, of each label.
    Histogram(&'a str, &'a [String]),
    /// Statistics of a column, which share their noise.
    Statistics(&'a str, BoundedName<'a>),
    /// Quantiles, as `median` or `quantile 1/4 3/4`, by edges.
    Quantiles(&'a str, &'a str, &'a [String]),
    /// How two columns go together: `covariance` or `correlation`.
    Association(&'a str, [BoundedName<'a>; 2]),
    /// Least squares of one column on others.
    Regression(BoundedName<'a>, Vec<BoundedName<'a>>),
}

impl fmt::Display for QuestionLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_edges = |f: &mut fmt::Formatter<'_>, edges: &[String]| match edges {
            [] => Ok(()),
            edges => write!(f, " edges {}", edges.join(" ")),
        };
        match self {
            Self::Count => f.write_str("count"),
            Self::Histogram(name, edges) => {
                write!(f, "histogram {name}")?;
                with_edges(f, edges)
            }
            Self::Statistics(words, of) => write!(f, "{words} of {of}"),
            Self::Quantiles(words, name, edges) => {
                write!(f, "{words} of {name}")?;
                with_edges(f, edges)
            }
            Self::Association(word, [one, other]) => write!(f, "{word} of {one} with {other}"),
            Self::Regression(of, on) => {
                write!(f, "regression of {of} on")?;
                on.iter().try_for_each(|one| write!(f, " {one}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_programs_have() {
        for (file, name) in [
            ("Cost in EUR", "cost-in-eur"),
            ("u8", "column-u8"),
            ("u", "column-u"),
            ("Count", "column-count"),
            ("7th", "column-7th"),
            ("größe", "gr--e"),
        ] {
            assert_eq!(column_name(file), name);
        }
    }

    #[test]
    fn types_hold_their_numbers() {
        assert_eq!(number_type(255, false).as_deref(), Ok("u8"));
        assert_eq!(number_type(255, true).as_deref(), Ok("i16"));
        assert_eq!(number_type(1 << 39, false).as_deref(), Ok("u40"));
        assert_eq!(number_type(1 << 39, true), Err(41));
        let quoted = |labels: &[&str]| labels.iter().map(|l| format!("\"{l}\"")).collect::<Vec<_>>();
        assert_eq!(label_cells(&quoted(&["a", "b"])), "u2 labels \"a\" \"b\"");
    }

    #[test]
    fn what_is_written_is_read() {
        let bounds = ["-5".to_owned(), "10".to_owned()];
        let edges = ["0", "5", "10"].map(str::to_owned);
        let cost = BoundedName { name: "cost", between: Some(&bounds) };
        let ill = BoundedName { name: "ill", between: None };
        let labels = ["\"none\"", "\"low\""].map(str::to_owned);
        let mut lines = first_lines("What \"it\" costs", &["b".to_owned(), "a".to_owned()]);
        lines.push(column_line("cost", "a", "i8"));
        lines.push(column_line("ill", "b", "bit missing"));
        lines.push(column_line("dose", "b", &label_cells(&labels)));
        lines.push("ask public rho 1".to_owned());
        lines.extend(
            [
                QuestionLine::Count,
                QuestionLine::Histogram("cost", &edges),
                QuestionLine::Histogram("dose", &[]),
                QuestionLine::Statistics("mean variance", cost),
                QuestionLine::Quantiles("median", "cost", &edges),
                QuestionLine::Association("correlation", [cost, ill]),
                QuestionLine::Regression(cost, vec![ill]),
            ]
            .map(|line| line.to_string()),
        );
        let text = lines.join("\n");
        let program = crate::Program::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(program.parties, ["a", "b"]);
    }
}

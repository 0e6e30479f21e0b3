//! The text of a program that asks for counts and a mean, and what columns are in it.

use crate::init::draft::{StudyDraft, comment, quoted, unquoted};
use crate::init::guess::{LABEL_ROWS, control, left_beyond, rare, round_up};
use data::survey::{ColumnSurvey, NumberSurvey};
use page::numbers::count;
use program::asking::{
    BoundedName, QuestionLine, column_line, column_name, first_lines, label_cells, number_type, widest_number,
};
use release::rational::{ratio, shown};

/// How a column of a file is one of a program.
pub struct CellUse {
    /// Its type and what its cells are: `u2 labels "a" "b"`; the holder goes between.
    pub line: String,
    /// Rounded bounds of most numbers, for a mean.
    pub bounds: Option<[String; 2]>,
    /// Why.
    pub why: String,
}

/// Longest title that is proposed.
const TITLE: usize = 80;

/// What a column is in a program.
///
/// # Errors
/// Why counts and means are not of such a column, to stand behind its name.
pub fn column(seen: &ColumnSurvey, unit: Option<&str>) -> Result<CellUse, String> {
    let missing = if seen.empty > 0 { " missing" } else { "" };
    let values: Vec<&str> = seen.values.iter().map(|(value, _)| value.as_str()).collect();
    let is_bit = |pair: [&str; 2]| values.iter().all(|value| pair.contains(&value.to_lowercase().as_str()));
    if !values.is_empty() && [["0", "1"], ["no", "yes"], ["false", "true"]].into_iter().any(is_bit) {
        return Ok(CellUse { line: format!("bit{missing}"), bounds: None, why: "yes and no".to_owned() });
    }
    if let Some(numbers) = &seen.numbers {
        return numbers_of(seen, numbers, unit);
    }
    labels_of(seen, &values).map(|(line, first)| CellUse {
        line: format!("{line}{missing}"),
        bounds: None,
        why: format!(
            "{} labels, each of {LABEL_ROWS} rows or more; others are compared with the first, \"{first}\" \
             (--baseline)",
            values.len()
        ),
    })
}

/// A column of numbers.
fn numbers_of(seen: &ColumnSurvey, numbers: &NumberSurvey, unit: Option<&str>) -> Result<CellUse, String> {
    let missing = if seen.empty > 0 { " missing" } else { "" };
    let places = if numbers.decimals == 1 { 2 } else { numbers.decimals };
    if places > 9 {
        return Err(format!("has numbers of {places} decimals, and 9 are the most"));
    }
    let scale = 10u64.pow(places);
    let rounded = |number: f64| round_up((number.abs() * scale as f64).ceil() as u64);
    let (least, most) = (numbers.quantile(0.0), numbers.quantile(1.0));
    let kind = number_type(rounded(least).max(rounded(most)), least < 0.0)
        .map_err(|bits| format!("has numbers of {bits} bits, and {} are the most", widest_number()))?;
    let scaled = if scale > 1 { format!(" scale {scale}") } else { String::new() };
    let unit = unit.map_or(String::new(), |unit| format!(" unit {}", quoted(unit)));
    let bound = |number: f64| match number < 0.0 {
        true => format!("-{}", shown(&ratio(rounded(number), scale))),
        false => shown(&ratio(rounded(number), scale)),
    };
    // No bound hangs on the one largest number of few; and where most are zero, it is of those that are not.
    let most_beyond = left_beyond(numbers.other_than_zero());
    let [low, high] = [numbers.from_below(most_beyond), numbers.from_above(most_beyond)];
    let ends = [if least < 0.0 { bound(low) } else { "0".to_owned() }, bound(high)];
    let beyond = match ends.clone().map(|end| end.parse::<f64>()) {
        [Ok(low), Ok(high)] => numbers.outside(low, high),
        _ => 0,
    };
    let why = format!(
        "numbers of the sample go from {least} to {most}: the type holds these, of 8, 16, 32 or 40 bits; {} \
         of them are beyond the bounds of a mean",
        count(beyond)
    );
    Ok(CellUse { line: format!("{kind}{scaled}{unit}{missing}"), bounds: Some(ends), why })
}

/// The line of a column of labels.
/// A column of labels, and the first of them: that of those who were not treated, where one is called so.
fn labels_of<'v>(seen: &ColumnSurvey, values: &[&'v str]) -> Result<(String, &'v str), String> {
    let odd = |value: &str| value.chars().any(|c| c == '"' || c == '\\' || c.is_control());
    if values.is_empty() {
        return Err(format!(
            "has neither at most 20 labels, nor yes and no, nor numbers, but {} different values",
            count(seen.distinct)
        ));
    }
    if values.iter().any(|value| value.len() > 100 || odd(value)) {
        return Err("has labels of more than 100 bytes, or with quotes, \\ or line ends in them".to_owned());
    }
    if let Some((label, rows)) = rare(seen).next() {
        return Err(format!(
            "has {} labels, {} of which fewer than {LABEL_ROWS} rows have ({} {}): the study would tell \
             them, and a label of few rows points to people",
            count(values.len() as u64),
            count(rare(seen).count() as u64),
            quoted(label),
            count(*rows)
        ));
    }
    let first = control(values).unwrap_or(values[0]);
    let all = std::iter::once(first).chain(values.iter().copied().filter(|value| *value != first));
    let labels: Vec<String> = all.map(quoted).collect();
    Ok((label_cells(&labels), first))
}

/// A column of either party.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AskedColumn {
    name: String,
    party: String,
    /// Its name in the file.
    file: String,
    /// `column NAME TYPE PARTY ..`
    line: String,
    bounds: Option<[String; 2]>,
    /// Whether nobody asks about it: it stands in the study as a comment.
    aside: bool,
}

impl AskedColumn {
    /// Its line around its labels, and these; nothing of a column without any.
    fn labels(&self) -> Option<([&str; 2], Vec<&str>)> {
        let (before, labels) = self.line.split_once(" labels \"")?;
        let (labels, after) = labels.rsplit_once('"')?;
        Some(([before, after], labels.split("\" \"").collect()))
    }
}

/// A program that asks for counts and a mean, while it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedProgram {
    /// The parties that are there.
    pub parties: Vec<String>,
    /// Identifiers, as the study calls them.
    pub identifiers: Vec<String>,
    /// What groups the rows, where that is decided; none of them: nothing.
    pub by: Option<Option<String>>,
    /// What the mean is of, the same.
    pub mean: Option<Option<String>>,
    columns: Vec<AskedColumn>,
    title: String,
    rho: String,
}

impl AskedProgram {
    /// That of a draft, as it was written here.
    pub fn of(draft: &StudyDraft, rho: &str) -> Self {
        let text = |name: &str| draft.get(name).unwrap_or_default().to_owned();
        let own = text("program");
        let (mut columns, mut by, mut mean, mut spent) = (Vec::new(), None, None, rho.to_owned());
        let files = text("columns");
        for line in own.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["column", name, _, party, ..] => {
                    let file = files.lines().find(|line| line.split('=').next().map(str::trim) == Some(name));
                    let file = file.and_then(|line| line.split_once("column = ")?.1.strip_suffix(" }"));
                    let file =
                        file.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(name.to_owned());
                    columns.push(AskedColumn {
                        name: name.to_owned(),
                        party: party.to_owned(),
                        file,
                        line: line.to_owned(),
                        bounds: None,
                        aside: false,
                    });
                }
                ["#", "mean", "of", name, "between", low, high]
                | ["mean", "of", name, "between", low, high] => {
                    if words[0] == "mean" {
                        mean = Some(Some(name.to_owned()));
                    }
                    let column = columns.iter_mut().find(|column| column.name == name);
                    column
                        .into_iter()
                        .for_each(|column| column.bounds = Some([low.to_owned(), high.to_owned()]));
                }
                ["by", name] => by = Some(Some(name.to_owned()).filter(|name| name != "all")),
                ["ask", "public", "rho", rho] => spent = rho.to_owned(),
                _ => {}
            }
        }
        let matching = text("match");
        let identifiers = matching.split("name = ").skip(1).filter_map(unquoted);
        Self {
            parties: draft.parties().map(str::to_owned).collect(),
            identifiers: identifiers.collect(),
            by,
            mean,
            columns,
            title: draft.root_value("title").unwrap_or_else(|| "counts".to_owned()),
            rho: spent,
        }
    }

    /// Adds a column of a party's file. Returns what the program calls it.
    pub fn add(&mut self, party: &str, file: &str, line: &str, bounds: Option<&[String; 2]>) -> String {
        let mut name = column_name(file);
        if self.columns.iter().any(|column| column.name == name) {
            name = format!("{name}-{party}");
        }
        let line = column_line(&name, party, line);
        let (party, file, bounds) = (party.to_owned(), file.to_owned(), bounds.cloned());
        self.columns.push(AskedColumn { name: name.clone(), party, file, line, bounds, aside: false });
        name
    }

    /// Columns that can group rows.
    pub fn groups(&self) -> Vec<String> {
        self.columns
            .iter()
            .filter(|column| column.bounds.is_none())
            .map(|column| column.name.clone())
            .collect()
    }

    /// Columns that can have a mean.
    pub fn numbers(&self) -> Vec<String> {
        self.columns
            .iter()
            .filter(|column| column.bounds.is_some())
            .map(|column| column.name.clone())
            .collect()
    }

    /// What to ask of a column without a mean, to stand behind an error; nothing where there is none.
    pub fn instead_of_mean(&self, said: &str) -> Option<String> {
        let is = |column: &&AskedColumn| column.name == said || column.file == said;
        let column = self.columns.iter().find(is).filter(|column| column.bounds.is_none())?;
        let name = &column.name;
        Some(match column.labels() {
            None => format!(
                ". {name} is yes or no, and has a share instead of a mean: say --mean none, then write the \
                 line \"share of {name}\" behind \"count\" in the study file, and take the # away before its \
                 two lines (docs/questions.md)"
            ),
            Some((_, labels)) => format!(
                ". {name} has labels ({}) and no mean: --by {name} counts the rows of each",
                labels.join(", ")
            ),
        })
    }

    /// What a column is called in its owner's file.
    pub fn in_file<'c>(&'c self, name: &'c str) -> &'c str {
        self.columns.iter().find(|column| column.name == name).map_or(name, |column| &column.file)
    }

    /// Makes comments of columns that nobody asks about: the other party has read its own ones in it already.
    /// Those of `own`, which were not `named`, leave the study. Returns the names of both.
    pub fn set_aside(&mut self, own: &str, named: bool) -> [Vec<String>; 2] {
        let used = [self.by.clone().flatten(), self.mean.clone().flatten()];
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        self.columns.retain_mut(|column| {
            column.aside = !used.iter().flatten().any(|name| *name == column.name);
            let stays = !column.aside || named || column.party != own;
            match (stays, column.aside) {
                (true, false) => {}
                (true, true) => kept.push(column.name.clone()),
                (false, _) => left.push(column.name.clone()),
            }
            stays
        });
        [kept, left]
    }

    /// Puts a label first, which the others are compared with: `LABEL` or `COLUMN=LABEL`, of either party.
    /// Returns the column and the label.
    ///
    /// # Errors
    /// When no column has it, or several have.
    pub fn compare_with(&mut self, said: &str) -> Result<(String, String), String> {
        let by = self.by.clone().flatten();
        let is = |column: &AskedColumn, label: &str| {
            column.labels().is_some_and(|(_, labels)| labels.contains(&label))
        };
        let named = |column: &AskedColumn| {
            let (name, label) = said.split_once('=')?;
            ([&column.name, &column.file].iter().any(|own| *own == name) && is(column, label))
                .then_some(label)
        };
        let whole = |column: &AskedColumn| is(column, said).then_some(said);
        let found: Vec<(usize, &str)> = (0..)
            .zip(&self.columns)
            .filter_map(|(at, column)| Some((at, whole(column).or_else(|| named(column))?)))
            .collect();
        let grouping = |(at, _): &&(usize, &str)| Some(&self.columns[*at].name) == by.as_ref();
        let (at, label) = match (&found[..], found.iter().find(grouping)) {
            ([one], _) | (_, Some(one)) => *one,
            ([], _) => {
                let known = self.columns.iter().filter_map(|column| {
                    let (_, labels) = column.labels()?;
                    Some(format!("{}: {}", column.name, labels.join(", ")))
                });
                let known: Vec<String> = known.collect();
                return Err(format!("--baseline: no column has the label {said}; {}", known.join("; ")));
            }
            _ => return Err(format!("--baseline: several columns have {said}: write COLUMN={said}")),
        };
        let column = &mut self.columns[at];
        let Some(([before, after], mut labels)) = column.labels() else {
            return Err(format!("--baseline: {} has no labels", column.name));
        };
        labels.sort_by_key(|one| *one != label);
        column.line = format!("{before} labels \"{}\"{after}", labels.join("\" \""));
        Ok((column.name.clone(), label.to_owned()))
    }

    /// Whether a column is in it.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// What it asks, or may ask, in a line.
    pub fn proposed_title(&self) -> String {
        let by = self.by.clone().flatten().map_or(String::new(), |by| format!(" by {by}"));
        match (&self.mean, &self.by) {
            (None, None) => {
                let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
                base::clean(&format!("Rows and means of {}", names.join(", "))).chars().take(TITLE).collect()
            }
            (Some(Some(mean)), _) => format!("Mean of {mean}{by}, and rows"),
            _ => format!("Rows that both parties have{by}"),
        }
    }

    /// Takes the title of a draft.
    pub fn title_of(&mut self, draft: &StudyDraft) {
        self.title = draft.root_value("title").unwrap_or_else(|| self.proposed_title());
    }

    /// Writes the sections of the study.
    pub fn write(&self, draft: &mut StudyDraft) {
        let mut lines = first_lines(&self.title, &self.parties);
        let mark = |column: &AskedColumn| if column.aside { "# " } else { "" };
        lines.extend(self.columns.iter().map(|column| format!("{}{}", mark(column), column.line)));
        lines.push(format!("ask public rho {}", self.rho));
        if let Some(by) = &self.by {
            lines.push(format!("by {}", by.as_deref().unwrap_or("all")));
        }
        lines.push(QuestionLine::Count.to_string());
        for column in &self.columns {
            let asked = self.mean.iter().flatten().any(|name| *name == column.name);
            let before = if asked { "" } else { "# " };
            if column.bounds.is_some() {
                let of = BoundedName { name: &column.name, between: column.bounds.as_ref() };
                lines.push(format!("{before}{}", QuestionLine::Statistics("mean", of)));
            }
        }
        let why = comment(
            "What each column holds, and what is asked (docs/questions.md). To ask about a column that \
             stands behind #, take the # away here and under [columns], and add or change a line behind \
             `ask`. Differences and ratios compare the other labels of a column with its first one: put \
             that first which they shall be compared with. A number beyond the bounds of a mean counts as \
             the bound next to it; bounds hold 98 to 99 of 100 numbers of the file that are not 0 (of few, \
             all but four), rounded to 1, 2 or 5 and zeros, and tell roughly how large numbers are. The \
             name of the program is the study's title: change both with what is asked.",
        );
        draft.set("program", format!("{why}[program]\ntext = \"\"\"\n{}\n\"\"\"\n", lines.join("\n")));
        let line = |column: &AskedColumn| {
            let AskedColumn { name, party, file, .. } = column;
            let before = mark(column);
            format!("{before}{name} = {{ party = \"{party}\", column = {} }}\n", quoted(file))
        };
        let why = comment("Column of the program = column of its owner's file.");
        draft
            .set("columns", format!("{why}[columns]\n{}", self.columns.iter().map(line).collect::<String>()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_without_a_mean_says_what_to_ask_instead() {
        let text = "[program]\ntext = \"\"\"\ncolumn age u7 a\ncolumn ill bit a\n\
                    column dose u2 a labels \"none\" \"low\"\n\"\"\"\n\nask public rho 0.1\n\
                    # mean of age between 0 100\n";
        let mut draft = StudyDraft::new(String::new());
        draft.set("program", text.to_owned());
        let program = AskedProgram::of(&draft, "0.1");
        let told = |name: &str| program.instead_of_mean(name).unwrap_or_default();
        assert!(told("ill").contains("\"share of ill\" behind \"count\""), "{}", told("ill"));
        assert!(told("dose").contains("(none, low) and no mean: --by dose"), "{}", told("dose"));
        assert_eq!([told("age"), told("other")], ["", ""]);
    }
}

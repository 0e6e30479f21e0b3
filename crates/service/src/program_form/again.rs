//! What the form of a program would have had in it, of the text of a study.

use super::{ASKED, GROUPS, program_text};
use crate::lift_form::{FormFields, FormParty, at, first_fields, written};
use program::asking::number_type;
use std::collections::HashMap;
use toml::{Table, Value};

/// The form that makes this study, whose text is canonical; nothing where no form does.
pub fn program_fields_again(text: &str, us: FormParty<'_>, them: FormParty<'_>) -> Option<FormFields> {
    let table: Table = text.parse().ok()?;
    let mut filled = FilledAgain { fields: first_fields(&table)?, groups: "each", ..FilledAgain::default() };
    filled.fill("as", "program");
    filled.fill("rho", &written(at(&table, "release.public.rho")?)?);
    let columns = at(&table, "columns")?.as_table()?;
    let lines = at(&table, "program.text")?.as_str()?.lines();
    // The first line is the form of programs.
    for line in lines.skip(1) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "name" | "party" | "ask" => {}
            "column" => filled.column(rest, columns, us.name)?,
            "by" if rest == "all" => filled.groups = "all",
            "by" => filled.by(rest)?,
            "count" => {
                filled.fill("count", "yes");
                filled.fill("count-within", rest.strip_prefix("within ").unwrap_or_default());
            }
            _ => filled.question(line)?,
        }
    }
    let fields = filled.done();
    let field = |name: &str| fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value);
    let made = program_text(&field, us, them).ok()?;
    (study::canonical("the form", &made).ok()? == text).then_some(fields)
}

/// Nine digits: the largest number that the form takes.
const LARGEST: u64 = 999_999_999;

/// A column of a program.
struct ColumnAgain {
    /// What the program calls it.
    name: String,
    /// What its owner's file calls it.
    file: String,
    /// Its type.
    kind: String,
    /// Parts of one that its numbers have; none of a column without numbers.
    parts: Option<u64>,
}

impl ColumnAgain {
    /// Ends of its numbers where no question says them: those of edges where they make this type, else the
    /// widest that do.
    fn ends(&self, edges: Option<&[String; 2]>) -> Option<[String; 2]> {
        let parts = self.parts?;
        let makes = |ends: &&[String; 2]| {
            let sizes = ends.each_ref().map(|end| end.trim_start_matches('-').parse().unwrap_or(f64::MAX));
            let largest = (2.0 * parts as f64 * sizes[0].max(sizes[1])).ceil() as u64;
            number_type(largest, ends[0].starts_with('-')).as_deref() == Ok(&*self.kind)
        };
        if let Some(ends) = edges.filter(makes) {
            return Some(ends.clone());
        }
        let signed = self.kind.starts_with('i');
        let bits = self.kind.get(1..)?.parse::<u32>().ok()?.checked_sub(signed.into())?;
        let most = ((1u64.checked_shl(bits)? - 1) / (2 * parts)).min(LARGEST);
        let low = if signed { format!("-{most}") } else { "0".to_owned() };
        Some([low, most.to_string()])
    }
}

/// A form while it is filled in, line by line.
#[derive(Default)]
struct FilledAgain {
    fields: FormFields,
    columns: Vec<ColumnAgain>,
    /// Between which ends the numbers of a column lie, as far as questions say it.
    ends: HashMap<String, [String; 2]>,
    /// The outer edges of a column.
    edges: HashMap<String, [String; 2]>,
    /// Of whom the next question is asked.
    groups: &'static str,
    has_groups: bool,
    questions: usize,
}

impl FilledAgain {
    fn fill(&mut self, name: &str, value: &str) {
        self.fields.push((name.to_owned(), value.to_owned()));
    }

    /// `NAME TYPE PARTY CELLS`.
    fn column(&mut self, line: &str, columns: &Table, us: &str) -> Option<()> {
        let mut parts = line.splitn(4, ' ');
        let (name, kind, _, cells) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let of = |what: &str| columns.get(name)?.get(what).and_then(Value::as_str);
        let (file, party) = (of("column")?.to_owned(), of("party")?);
        let in_quotes: Vec<&str> = cells.split('"').skip(1).step_by(2).collect();
        let (is, texts, parts) = match kind {
            "bit" => ("bit", "values", None),
            _ if cells.starts_with("labels ") => ("label", "values", None),
            _ if cells.starts_with("scale ") => ("amount", "unit", Some(100)),
            _ => ("whole", "unit", Some(1)),
        };
        let (name, kind) = (name.to_owned(), kind.to_owned());
        self.columns.push(ColumnAgain { name, file: file.clone(), kind, parts });
        let place = self.columns.len();
        let whose = if party == us { "us" } else { "them" };
        for (what, value) in [("col", file.as_str()), ("whose", whose), ("is", is)] {
            self.fill(&format!("{what}-{place}"), value);
        }
        self.fill(&format!("{texts}-{place}"), &in_quotes.join(", "));
        Some(())
    }

    /// How the form names a column: as its owner's file does, where that is no other one's name.
    fn named(&self, name: &str) -> Option<String> {
        let ColumnAgain { file, .. } = self.columns.iter().find(|column| column.name == name)?;
        let alike = self.columns.iter().filter(|other| other.file == *file || other.name == *file).count();
        Some(if alike == 1 { file.clone() } else { name.to_owned() })
    }

    /// `NAME edges 1 2 and NAME`, which stands before each question that is asked of groups anew.
    fn by(&mut self, line: &str) -> Option<()> {
        self.groups = "each";
        if std::mem::replace(&mut self.has_groups, true) {
            return Some(());
        }
        for (one, (field, edges_field, _)) in line.split(" and ").zip(GROUPS) {
            let (name, edges) = one.split_once(" edges ").unwrap_or((one, ""));
            let shown = self.named(name)?;
            self.fill(field, &shown);
            self.fill(edges_field, edges);
            self.lie_within(name, edges);
        }
        Some(())
    }

    /// Edges say about where numbers lie, where no question says it exactly.
    fn lie_within(&mut self, name: &str, edges: &str) {
        let all: Vec<&str> = edges.split(' ').collect();
        if let [low, .., high] = all[..] {
            self.edges.insert(name.to_owned(), [low, high].map(str::to_owned));
        }
    }

    /// Names behind each other, each with the ends of its numbers where it has some.
    fn bounded(&mut self, said: &str) -> Option<Vec<String>> {
        let (mut words, mut all) = (said.split(' ').peekable(), Vec::new());
        while let Some(name) = words.next() {
            all.push(self.named(name)?);
            if words.next_if_eq(&"between").is_some() {
                let ends = [words.next()?, words.next()?].map(str::to_owned);
                self.ends.insert(name.to_owned(), ends);
            }
        }
        Some(all)
    }

    fn question(&mut self, line: &str) -> Option<()> {
        self.questions += 1;
        let place = self.questions;
        let (line, within) = line.split_once(" within ").unwrap_or((line, ""));
        let (words, of) = line.split_once(" of ").or_else(|| line.split_once(' '))?;
        let asked = ASKED.iter().find(|asked| asked.words() == words)?;
        let (of, edges) = of.split_once(" edges ").unwrap_or((of, ""));
        let (of, others) = of.split_once(" with ").or_else(|| of.split_once(" on ")).unwrap_or((of, ""));
        let column = of.split(' ').next()?;
        self.lie_within(column, edges);
        let of = self.bounded(of)?.join(", ");
        let others = if others.is_empty() { Vec::new() } else { self.bounded(others)? };
        let filled = [("ask", asked.name), ("of", &of), ("with", &others.join(", "))];
        let more = [("edges", edges), ("within", within), ("groups", self.groups)];
        filled.into_iter().chain(more).for_each(|(what, value)| self.fill(&format!("{what}-{place}"), value));
        Some(())
    }

    fn done(mut self) -> FormFields {
        for (place, column) in (1..).zip(&self.columns) {
            let exact = self.ends.get(&column.name).cloned();
            let ends = exact.or_else(|| column.ends(self.edges.get(&column.name)));
            for (what, end) in ["low", "high"].into_iter().zip(ends.into_iter().flatten()) {
                self.fields.push((format!("{what}-{place}"), end));
            }
        }
        self.fields
    }
}

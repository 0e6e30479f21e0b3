//! Who a row is of: the identifiers of a study, and the columns that have them.

use super::{ColumnName, ColumnSurvey, Error, Identifier, IdentifierSort, Making, Study};
use super::{comment, guess, list, output, quoted, said};
use crate::init::CallingCode;
use crate::init::ask::Answering;
use study::Normaliser;

impl Making<'_> {
    /// The identifiers of a new study: the section `[match]`.
    ///
    /// # Errors
    /// When no column can be one, or nobody says which is.
    pub fn matching(&mut self, protocol: &str) -> Result<String, Error> {
        let names = self.own_identifiers()?;
        let (mut lines, mut zeros, mut dialled) = (Vec::new(), String::new(), false);
        for name in &names {
            let steps = self.normalised(name, &names)?;
            dialled |= steps.iter().any(|step| step.starts_with("phone"));
            let column = self.column(name)?;
            let facts = guess::described(column);
            lines.push(format!(
                "{{ name = {}, normalise = {} }}",
                quoted(name),
                list(steps.iter().map(String::as_str))
            ));
            let padded = column.padded > 0 && !steps.iter().any(|step| step.starts_with("phone"));
            self.because("identifier", name, facts);
            if padded {
                zeros += &comment(&told_zeros(name));
                self.tell(told_zeros(name));
                output::say(&format!("note: {}", told_zeros(name)));
            }
        }
        if !dialled {
            self.note_unused_country(&format!(
                "{} is compared, and no telephone numbers are; --id COLUMN says another column",
                names.join(", ")
            ));
        }
        self.tell(format!("who a row is of stands in {}, and how that is normalised", names.join(", ")));
        let several = if names.len() > 1 { " The best first; each makes the noise wider." } else { "" };
        let duplicates = self.common.duplicates.as_deref().unwrap_or("error");
        Ok(format!(
            "[match]\n{}{zeros}{}{}",
            said(
                "Private-ID: both learn about how many rows they have and share (made-up rows hide the exact \
                 numbers), never who.",
                &format!("protocol    = \"{protocol}\""),
            ),
            said(
                &format!(
                    "Both sides normalise alike; a party whose file calls the column otherwise says so in \
                     its [format].{several}"
                ),
                &format!("identifiers = [ {} ]", lines.join(", ")),
            ),
            said(
                "A second line of one identifier where a person has one line: error | first | merge.",
                &format!("duplicates  = \"{duplicates}\""),
            ),
        ))
    }

    fn own_identifiers(&self) -> Result<Vec<String>, Error> {
        if !self.common.ids.is_empty() {
            return self.common.ids.iter().map(|name| Ok(self.column(name)?.name.clone())).collect();
        }
        let rows = self.survey.sampled;
        let score = |column: &ColumnSurvey| guess::identifies(column, rows).filter(|_| column.empty == 0);
        let mut scored: Vec<(u64, &str)> = self
            .survey
            .columns
            .iter()
            .filter_map(|column| Some((score(column)?, column.name.as_str())))
            .collect();
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let names: Vec<&str> = scored.iter().map(|(_, name)| *name).collect();
        let lacking = || self.survey.columns.iter().find(|column| guess::identifies(column, rows).is_some());
        if let (true, Some(column)) = (names.is_empty(), lacking()) {
            return Err(Error::input(format!(
                "{}: column \"{}\" looks like who a row is of, and {} of its {} cells are empty (of a \
                 sample): fill them or remove these rows; --id COLUMN says another column",
                self.data.display(),
                column.name,
                column.empty,
                column.empty + column.filled
            )));
        }
        let sure = match &scored[..] {
            [first, second, ..] if first.0 >= second.0 + 30 => Some(first.1),
            _ => None,
        };
        let question = "Which column says who a row is of, and has the other party as well?";
        Ok(vec![self.pick(None, "--id COLUMN", question, &names, sure)?])
    }

    /// The steps by which an identifier is normalised; `others` are all identifiers.
    fn normalised(&self, name: &str, others: &[String]) -> Result<Vec<String>, Error> {
        let column = self.column(name)?;
        let plain = || vec!["trim".to_owned(), "lowercase".to_owned()];
        let code = match guess::sort(column) {
            IdentifierSort::Email => return Ok(vec!["email".to_owned()]),
            IdentifierSort::Phone if column.international == column.long => {
                return Ok(vec!["phone".to_owned()]);
            }
            IdentifierSort::Phone => match self.common.country {
                Some(code) => code,
                None => self.ask_country(
                    &format!(
                        "Numbers of \"{name}\" have no country. What is its calling code (49: Germany; none: \
                         they are no telephone numbers)?"
                    ),
                    None,
                )?,
            },
            IdentifierSort::Other if guess::may_be_phones(column) => self.doubtful(name, others)?,
            // Who says a country means the one identifier there is.
            IdentifierSort::Other if guess::may_be_dialled(column) && others.len() == 1 => {
                self.common.country.unwrap_or(CallingCode::Plain)
            }
            IdentifierSort::Other => CallingCode::Plain,
        };
        Ok(match code {
            CallingCode::Plain => plain(),
            CallingCode::Of(code) => vec![format!("phone:{code}")],
        })
    }

    /// Of which country numbers are that begin with a zero: most are no telephone numbers.
    fn doubtful(&self, name: &str, others: &[String]) -> Result<CallingCode, Error> {
        let sure = |name: &String| self.column(name).is_ok_and(|of| guess::sort(of) == IdentifierSort::Phone);
        match self.common.country {
            // Said of the column that surely has such.
            Some(_) if others.iter().any(sure) => Ok(CallingCode::Plain),
            Some(code) => Ok(code),
            None if !self.common.ids.is_empty() => Ok(CallingCode::Plain),
            None => self.ask_country(
                &format!(
                    "Numbers of \"{name}\" begin with a zero. Are they telephone numbers, and of which \
                     calling code (49: Germany; none: they are other numbers, compared as they are written)?"
                ),
                Some("none"),
            ),
        }
    }

    fn ask_country(&self, question: &str, proposal: Option<&str>) -> Result<CallingCode, Error> {
        self.how.words("--country CODE|none", question, proposal, CallingCode::parse)
    }

    /// Says that a country that was said changes nothing.
    fn note_unused_country(&self, why: &str) {
        if let Some(CallingCode::Of(code)) = self.common.country {
            output::say(&format!("note: --country {code} is used by nothing: {why}"));
        }
    }

    /// Finds this party's columns for the identifiers of a study that the other party has begun.
    ///
    /// # Errors
    /// When nobody says which they are.
    pub fn identifiers_of(&mut self, study: &Study) -> Result<(), Error> {
        self.note_unused_country("the study says how identifiers are normalised, for both parties");
        for (at, identifier) in study.matching.identifiers.iter().enumerate() {
            let name = &identifier.name;
            let own = match self.common.ids.get(at) {
                Some(said) => self.column(said)?.name.clone(),
                None if !self.format.in_file(name).eq(name) => {
                    self.column(self.format.in_file(name))?.name.clone()
                }
                None => self.like(identifier)?,
            };
            let column = self.column(&own)?;
            self.expect_one_spelling(identifier, column)?;
            let facts = guess::described(column);
            let zeros = self.other_zeros(identifier, column);
            self.because(&format!("identifier {name}"), &own, facts);
            if let Some(note) = zeros {
                output::say(&format!("note: {note}"));
                self.because(&format!("zeros in front of {name}"), &own, note);
            }
            if own != *name && self.format.in_file(name) == name {
                self.format.columns.push(ColumnName { study: name.clone(), file: own });
            }
        }
        Ok(())
    }

    /// What to do where one party's numbers have zeros in front, and the other's have none.
    fn other_zeros(&self, identifier: &Identifier, own: &ColumnSurvey) -> Option<String> {
        let changed = |step: &Normaliser| matches!(step, Normaliser::Phone(_) | Normaliser::Email);
        if identifier.normalise.iter().any(changed) {
            return None;
        }
        let lines: Vec<&str> =
            self.their_match.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
        let theirs = lines.join(" ").contains(&told_zeros(&identifier.name));
        let what = match (theirs, own.padded > 0) {
            (true, false) if own.numbers.is_some() => "the other party's numbers have zeros in front",
            (false, true) => "the study says no such thing of the other party's numbers",
            _ => return None,
        };
        let here = if own.padded > 0 { "has such zeros" } else { "has none" };
        Some(format!(
            "column \"{}\" {here}, and {what}. 000100 and 100 are two people: both parties have to write \
             them alike, and no normalisation adds or takes zeros. A spreadsheet drops them where the \
             column is not text: compare a few numbers with the other party before a run",
            own.name
        ))
    }

    fn like(&self, identifier: &Identifier) -> Result<String, Error> {
        let name = identifier.name.as_str();
        let columns = &self.survey.columns;
        let same = columns.iter().find(|column| column.name == name);
        if let Some(column) =
            same.or_else(|| columns.iter().find(|column| guess::same_name(&column.name, name)))
        {
            return Ok(column.name.clone());
        }
        let wanted = match identifier.normalise.first() {
            Some(study::Normaliser::Email | study::Normaliser::EmailUntagged) => IdentifierSort::Email,
            Some(study::Normaliser::Phone(_)) => IdentifierSort::Phone,
            _ => IdentifierSort::Other,
        };
        let fitting = |alike: &dyn Fn(&ColumnSurvey) -> bool| -> Vec<&str> {
            let fits = |column: &&ColumnSurvey| {
                alike(column) && guess::identifies(column, self.survey.sampled).is_some()
            };
            columns.iter().filter(fits).map(|column| column.name.as_str()).collect()
        };
        let (mut names, mut sure) =
            (fitting(&|column| guess::sort(column) == wanted), wanted != IdentifierSort::Other);
        if names.is_empty() {
            let dialled = wanted == IdentifierSort::Phone;
            (names, sure) = (fitting(&|column| !dialled || guess::may_be_dialled(column)), false);
        }
        let question = format!("Which column has what the study calls \"{name}\"?");
        match names[..] {
            // A number may be anybody's: only its owner knows that it is the same.
            [only] if !sure => {
                self.how.choose("--id COLUMN", &question, &[only.to_owned()], Some(0))?;
                Ok(only.to_owned())
            }
            _ => self.pick(None, "--id COLUMN", &question, &names, None),
        }
    }

    /// Asks whether telephone numbers that the study compares as they are written are written alike; where
    /// nobody answers that, a note says it.
    fn expect_one_spelling(&self, identifier: &Identifier, own: &ColumnSurvey) -> Result<(), Error> {
        let changed = identifier.normalise.iter().any(|step| matches!(step, Normaliser::Phone(_)));
        if changed || guess::sort(own) != IdentifierSort::Phone {
            return Ok(());
        }
        let what = format!(
            "\"{}\" has telephone numbers, and the study compares \"{}\" as it is written: +49 151 .. and \
             0151 .. are two people.",
            own.name, identifier.name
        );
        let cure = "it begins the study anew, with --country CODE.";
        if self.common.ids.is_empty() {
            let question =
                format!("{what} Does the other party write all of them as this file does? If not, {cure}");
            self.how.choose("--id COLUMN", &question, std::slice::from_ref(&own.name), Some(0))?;
        }
        if !self.common.ids.is_empty() || self.how != Answering::Asked {
            output::say(&format!(
                "note: {what} If the other party does not write all as this file does, {cure}"
            ));
        }
        Ok(())
    }
}

/// What the study says of numbers with zeros in front; its other party looks for these words.
fn told_zeros(name: &str) -> String {
    format!("Numbers of {} have zeros in front, and the other party has to write them alike.", quoted(name))
}

//! From cells to normalised identifiers, and what normalising changed.

use super::repeats::{self, RepeatedKey};
use super::table::{Files, RowPlace, TableCell};
use super::{Row, RowKeys, retain_own};
use base::{Error, limits};
use serde::{Deserialize, Serialize};
use study::phone::{self, BadPhone};
use study::reader::printable;
use study::{Duplicates, Identifier, Normaliser};
use unicode_normalization::UnicodeNormalization;

/// Between the sort of an identifier and its text.
const SORT_ENDS: u8 = 0;

/// The text of an identifier among so many of a row: without its sort.
#[must_use]
pub fn plain_text(identifier: &[u8], keys: usize) -> &[u8] {
    let sorted = if keys > 1 { identifier.iter().position(|byte| *byte == SORT_ENDS) } else { None };
    sorted.map_or(identifier, |end| &identifier[end + 1..])
}

/// What normalising one identifier column did. For its owner; it names places, never values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentifierReport {
    /// The column.
    pub name: String,
    /// Cells with an identifier.
    pub present: u64,
    /// Cells without one.
    pub empty: u64,
    /// Steps that changed a cell, in their order, Unicode NFC among them.
    pub steps: Vec<StepReport>,
    /// Cells whose identifier was in an earlier row, or at a better place of the same row, and was left out
    /// here.
    pub repeats: u64,
    /// Where the first of these is.
    pub first_repeat: Option<String>,
    #[serde(skip)]
    first_repeat_at: Option<RowPlace>,
    /// Cells whose identifier was lost when rows were put together: the row had a better one.
    pub merged_away: u64,
}

/// What one step of normalising did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepReport {
    /// Its name in the study.
    pub step: String,
    /// How many cells it changed.
    pub changed: u64,
    /// Where the first of these is.
    pub first: String,
}

/// A place without the folders of its file: reports go further than the machine on which it lies.
fn in_file(place: &str) -> &str {
    let ends = [", sheet \"", ", line ", ", row "].iter().filter_map(|mark| place.find(mark));
    let file = &place[..ends.min().unwrap_or(place.len())];
    &place[file.rfind('/').map_or(0, |slash| slash + 1)..]
}

impl IdentifierReport {
    fn changed(&mut self, step: &str, place: impl FnOnce() -> String) {
        match self.steps.iter_mut().find(|met| met.step == step) {
            Some(met) => met.changed += 1,
            None => self.steps.push(StepReport { step: step.to_owned(), changed: 1, first: place() }),
        }
    }

    /// Counts with words, one per line; what is nothing is left out.
    pub(super) fn lines(
        &self,
        several: bool,
        mut line: impl FnMut(u64, String) -> std::fmt::Result,
    ) -> std::fmt::Result {
        let name = printable(&self.name);
        if several {
            line(self.present, format!("cells of {name} with an identifier"))?;
        }
        // Where all cells are in capitals none is another of the same file but for its case.
        let is_told = |of: &&StepReport| of.step != "lowercase" || of.changed < self.present;
        for StepReport { step, changed, first } in self.steps.iter().filter(is_told) {
            line(
                *changed,
                format!(
                    "cells of {name} are not in the form {step}, and are compared in it, first in {}",
                    in_file(first)
                ),
            )?;
        }
        if let Some(first) = &self.first_repeat {
            let first = in_file(first);
            line(self.repeats, format!("cells of {name} left out: identifier met before, first in {first}"))?;
        }
        if self.merged_away > 0 {
            line(
                self.merged_away,
                format!("cells of {name} left out: rows put together had another one first"),
            )?;
        }
        Ok(())
    }

    /// Counts a cell that repeats an earlier one.
    pub(super) fn repeated(&mut self, at: RowPlace, files: &Files) {
        self.repeats += 1;
        if self.first_repeat_at.is_none_or(|first| at < first) {
            (self.first_repeat_at, self.first_repeat) = (Some(at), Some(in_file(&files.show(at)).to_owned()));
        }
    }

    /// Adds what reading did to cells that come later.
    pub(super) fn absorb(&mut self, later: Self) {
        self.present += later.present;
        self.empty += later.empty;
        for step in later.steps {
            match self.steps.iter_mut().find(|met| met.step == step.step) {
                Some(met) => met.changed += step.changed,
                None => self.steps.push(step),
            }
        }
        self.repeats += later.repeats;
        if later.first_repeat_at.is_some_and(|at| self.first_repeat_at.is_none_or(|first| at < first)) {
            (self.first_repeat_at, self.first_repeat) = (later.first_repeat_at, later.first_repeat);
        }
        self.merged_away += later.merged_away;
    }
}

/// The identifier columns of a file while it is read, and what was read of them.
#[derive(Clone)]
pub(super) struct KeyColumns<'a> {
    rules: &'a [Identifier],
    names: Vec<Vec<String>>,
    /// Names of all columns that are read: those of identifiers, and what [`KeyColumns::want`] added.
    pub wanted: Vec<String>,
    /// The rows' identifiers.
    pub identifiers: RowKeys,
    /// Where each row stands.
    pub places: Vec<RowPlace>,
    /// What reading did so far, one per column.
    pub reports: Vec<IdentifierReport>,
    row: Vec<Vec<u8>>,
}

impl<'a> KeyColumns<'a> {
    /// The columns come first among those that are read, in this order.
    pub fn new(rules: &'a [Identifier]) -> Self {
        let report = |rule: &Identifier| IdentifierReport { name: rule.name.clone(), ..Default::default() };
        Self {
            rules,
            names: rules.iter().map(|rule| rule.normalise.iter().map(|step| step.name()).collect()).collect(),
            wanted: rules.iter().map(|rule| rule.name.clone()).collect(),
            identifiers: RowKeys::new(rules.len()),
            places: Vec::new(),
            reports: rules.iter().map(report).collect(),
            row: vec![Vec::new(); rules.len()],
        }
    }

    /// The index of a column among those that are read, added when it is not there yet.
    pub fn want(&mut self, name: &str) -> usize {
        self.wanted.iter().position(|column| column == name).unwrap_or_else(|| {
            self.wanted.push(name.to_owned());
            self.wanted.len() - 1
        })
    }

    /// Reads the identifiers of a row. Whether they are good; else there was a complaint.
    ///
    /// One identifier must be there. Of several, some may be missing, and one that stands in a row twice is
    /// kept at its better place.
    pub fn read(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> bool {
        let several = self.rules.len() > 1;
        let (mut good, mut some) = (true, false);
        for (i, rule) in self.rules.iter().enumerate() {
            self.row[i].clear();
            let Some(text) = cells[i].text() else {
                row.complain(&rule.name, || match cells[i] {
                    TableCell::Float(_) | TableCell::Decimal(..) => {
                        "a number that is not whole, or has more digits than a number keeps, cannot be an \
                         identifier; write it as text"
                            .into()
                    }
                    _ => "a date cannot be an identifier; use text or whole numbers".into(),
                });
                good = false;
                continue;
            };
            let (report, names) = (&mut self.reports[i], &self.names[i]);
            let normal = normalise(rule, &text, |step| {
                let name = step.map_or("nfc", |step| names[step].as_str());
                report.changed(name, || in_file(&row.files.show(row.place)).to_owned());
            });
            match normal {
                Ok(normal) => {
                    report.present += 1;
                    some = true;
                    if several {
                        self.row[i].extend_from_slice(rule.sort.as_bytes());
                        self.row[i].push(SORT_ENDS);
                    }
                    self.row[i].extend_from_slice(normal.as_bytes());
                    if several && self.row[..i].contains(&self.row[i]) {
                        report.repeated(row.place, row.files);
                        self.row[i].clear();
                    }
                }
                Err(BadIdentifier::Empty) if several => report.empty += 1,
                Err(error) => {
                    row.complain(&rule.name, || error.to_string());
                    good = false;
                }
            }
        }
        if good && !some {
            let names: Vec<&str> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
            row.complain(names[0], || {
                format!("no identifier in {}: fill one of the cells or remove the row", names.join(", "))
            });
        }
        good && some
    }

    /// Keeps the row that was read last.
    ///
    /// # Errors
    /// When there are too many.
    pub fn keep(&mut self, place: RowPlace) -> Result<(), Error> {
        if self.places.len() >= u32::MAX as usize {
            return Err(Error::limit("rows of one side", self.places.len() as u64 + 1, limits::ROWS - 1));
        }
        self.row.iter().for_each(|identifier| self.identifiers.push(identifier));
        self.places.push(place);
        Ok(())
    }

    /// Adds a line of one identifier that was kept before.
    pub fn push(&mut self, identifier: &[u8], place: RowPlace) {
        self.identifiers.push(identifier);
        self.places.push(place);
    }

    /// Keeps these rows alone.
    pub fn retain(&mut self, keep: &[bool]) {
        let mut own = RowKeys::new(self.rules.len());
        for (row, _) in keep.iter().enumerate().filter(|(_, keep)| **keep) {
            self.identifiers.row(row).for_each(|identifier| own.push(identifier));
        }
        self.identifiers = own;
        super::retain(&mut self.places, keep);
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.identifiers.clear();
        self.places.clear();
    }

    /// The identifiers of all rows; none are left.
    pub fn take(&mut self) -> RowKeys {
        std::mem::replace(&mut self.identifiers, RowKeys::new(self.rules.len()))
    }

    /// Bytes that rows need here.
    pub fn bytes(&self) -> u64 {
        self.identifiers.bytes() + size_of_val(&self.places[..]) as u64
    }

    /// Ends a reading whose lines are rows of their own: identifiers of several rows stay with the first.
    /// `complain` hears of each repeat and of both places. Returns which rows stay, where not all do.
    pub fn settle(
        &mut self,
        rule: Duplicates,
        files: &Files,
        mut complain: impl FnMut(RepeatedKey, [RowPlace; 2]),
    ) -> Option<Vec<bool>> {
        let (places, reports) = (&self.places, &mut self.reports);
        let tell = |repeat: RepeatedKey| {
            let [here, there] = [repeat.row, repeat.earlier].map(|row| places[row as usize]);
            reports[repeat.key].repeated(here, files);
            if !repeat.again {
                complain(repeat, [here, there]);
            }
        };
        let settled = repeats::settle(&self.identifiers, |row| row, rule, false, tell);
        (!settled.is_quiet()).then(|| retain_own(&mut self.identifiers, &settled))
    }
}

/// An identifier without the sort that stands before it, for its owner's eyes.
pub fn shown(identifiers: &RowKeys, row: usize) -> String {
    let first = identifiers.row(row).find(|identifier| !identifier.is_empty()).unwrap_or_default();
    let text = match identifiers.keys() {
        1 => first,
        _ => first.split(|b| *b == SORT_ENDS).nth(1).unwrap_or_default(),
    };
    String::from_utf8_lossy(text).into_owned()
}

/// Why a cell is no identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BadIdentifier {
    Empty,
    TooLong(usize),
    NotAnEmail,
    NotAPhone,
    NoCountry,
    TwoPhones,
}

impl From<BadPhone> for BadIdentifier {
    fn from(bad: BadPhone) -> Self {
        match bad {
            BadPhone::Empty => Self::Empty,
            BadPhone::NotANumber => Self::NotAPhone,
            BadPhone::NoCountry => Self::NoCountry,
            BadPhone::Ambiguous => Self::TwoPhones,
        }
    }
}

impl std::fmt::Display for BadIdentifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => {
                write!(f, "empty identifier (after normalising): fill the cell or remove the row")
            }
            Self::TooLong(bytes) => {
                write!(f, "identifier of {bytes} bytes; the limit is {}", limits::IDENTIFIER_BYTES)
            }
            Self::NotAnEmail => {
                write!(
                    f,
                    "not an e-mail address: it needs exactly one @ with text on both sides, and neither \
                     spaces, invisible characters nor < > ; , : \""
                )
            }
            Self::NotAPhone => write!(
                f,
                "not a telephone number: it needs {} to {} digits with its country, as many as a number \
                 there has, and nothing else but spaces and + - . / ( )",
                phone::DIGITS.start(),
                phone::DIGITS.end()
            ),
            Self::NoCountry => write!(
                f,
                "a national telephone number: write it with + and its country, or agree on a country in the \
                 study: normalise = [\"phone:44\"]"
            ),
            Self::TwoPhones => write!(
                f,
                "this telephone number may be a national one, or one with its country: write it with + and \
                 its country, without (0)"
            ),
        }
    }
}

/// Normalises a cell as the study says, beginning and ending in Unicode NFC. Tells of each step that changed
/// it, by its index; `None` is NFC.
fn normalise(
    rule: &Identifier,
    cell: &str,
    mut changed: impl FnMut(Option<usize>),
) -> Result<String, BadIdentifier> {
    if cell.len() > limits::IDENTIFIER_BYTES {
        return Err(BadIdentifier::TooLong(cell.len()));
    }
    let mut text = nfc(cell.into());
    if text != cell {
        changed(None);
    }
    for (i, step) in rule.normalise.iter().enumerate() {
        let next = match step {
            Normaliser::Trim => text.trim().into(),
            Normaliser::Lowercase => text.to_lowercase(),
            Normaliser::NoSpaces => text.chars().filter(|c| !c.is_whitespace()).collect(),
            Normaliser::SingleSpaces => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Normaliser::Nfkc => text.nfkc().collect(),
            Normaliser::Digits => text.chars().filter(char::is_ascii_digit).collect(),
            Normaliser::Phone(country) => phone::international(&text, *country)?,
            Normaliser::Email => email(&text)?,
            Normaliser::EmailUntagged => untagged(email(&text)?)?,
        };
        if next != text {
            changed(Some(i));
        }
        text = next;
    }
    let text = nfc(text);
    match text.len() {
        0 => Err(BadIdentifier::Empty),
        bytes if bytes > limits::IDENTIFIER_BYTES => Err(BadIdentifier::TooLong(bytes)),
        _ => Ok(text),
    }
}

fn nfc(text: String) -> String {
    if text.is_ascii() { text } else { text.nfc().collect() }
}

/// An address as mail systems compare it, in small letters. What else stands in exports (a name, `mailto:`, a
/// list) would match nothing.
fn email(text: &str) -> Result<String, BadIdentifier> {
    let text = text.trim().to_lowercase();
    if text.is_empty() {
        return Err(BadIdentifier::Empty);
    }
    let stray = |c: char| c.is_whitespace() || is_unseen(c) || "<>;,:\"".contains(c);
    let address = match text.strip_suffix('.') {
        Some(address) if text.contains('@') => address,
        _ => &text,
    };
    match address.split_once('@') {
        Some((name, host)) if !name.is_empty() && !host.is_empty() && !host.contains('@') => {}
        _ => return Err(BadIdentifier::NotAnEmail),
    }
    if address.contains(stray) || address.ends_with('.') {
        return Err(BadIdentifier::NotAnEmail);
    }
    Ok(address.to_owned())
}

/// Control and format characters, and others without a shape.
fn is_unseen(c: char) -> bool {
    base::is_deceptive(c)
        || matches!(
            c,
            '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{fe00}'..='\u{fe0f}'
        )
}

fn untagged(address: String) -> Result<String, BadIdentifier> {
    let (name, host) = address.split_once('@').ok_or(BadIdentifier::NotAnEmail)?;
    match name.split_once('+') {
        None => Ok(address),
        Some(("", _)) => Err(BadIdentifier::NotAnEmail),
        Some((name, _)) => Ok(format!("{name}@{host}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small letters are told of where some cells have others, not where all do: the file is alike in itself.
    #[test]
    fn letters_are_told_of_where_they_differ_in_a_file() {
        let report = IdentifierReport {
            name: "person".into(),
            present: 4,
            steps: vec![StepReport { step: "lowercase".into(), changed: 4, first: "a.csv, line 2".into() }],
            ..IdentifierReport::default()
        };
        let told = |report: &IdentifierReport| {
            let mut lines = Vec::new();
            report
                .lines(false, |count, what| {
                    lines.push(format!("{count} {what}"));
                    Ok(())
                })
                .map(|()| lines)
                .expect("text")
        };
        assert_eq!(told(&report), Vec::<String>::new());
        let mut mixed = report;
        mixed.steps[0].changed = 3;
        mixed.steps[0].first = "/srv/of, a/b/a.csv, line 2".into();
        let said = &told(&mixed)[0];
        assert!(said.starts_with("3 cells of person are not in the form lowercase"), "{said}");
        assert!(said.ends_with(", first in a.csv, line 2"), "{said}");
        assert_eq!(in_file("a/b.xlsx, sheet \"c/d\", row 3"), "b.xlsx, sheet \"c/d\", row 3");
    }

    fn rule(steps: &[Normaliser]) -> Identifier {
        Identifier { name: "id".into(), normalise: steps.to_vec(), sort: "id".into(), weight: 1 }
    }

    fn with(steps: &[Normaliser], cell: &str) -> Result<String, BadIdentifier> {
        normalise(&rule(steps), cell, |_| ())
    }

    #[test]
    fn identifiers_are_normalised() {
        use Normaliser::{Digits, Email, EmailUntagged, Lowercase, Nfkc, NoSpaces, SingleSpaces, Trim};
        assert_eq!(with(&[Trim, Lowercase], "  Zz-01 \t").as_deref(), Ok("zz-01"));
        assert_eq!(with(&[], " A ").as_deref(), Ok(" A "));
        assert_eq!(with(&[Lowercase], "e\u{301}A").as_deref(), Ok("\u{e9}a"), "NFC without being asked");
        assert_eq!(with(&[Digits], "+44 (20) 7946-0000").as_deref(), Ok("442079460000"));
        assert_eq!(with(&[Email], " Ann@Example.ORG ").as_deref(), Ok("ann@example.org"));
        assert_eq!(with(&[EmailUntagged], "Ann+shop+2@Example.org").as_deref(), Ok("ann@example.org"));
        assert_eq!(with(&[EmailUntagged], "ann@a+b").as_deref(), Ok("ann@a+b"));
        assert_eq!(with(&[NoSpaces], " AB 12\u{a0}3 ").as_deref(), Ok("AB123"));
        assert_eq!(with(&[SingleSpaces], " Main \t St  4 ").as_deref(), Ok("Main St 4"));
        assert_eq!(with(&[Nfkc], "\u{ff21}\u{ff11}\u{fb01}").as_deref(), Ok("A1fi"));
        assert_eq!(with(&[Email], "Ann@Example.org.").as_deref(), Ok("ann@example.org"));
        let strays =
            ["Ann <ann@example.org>", "mailto:ann@example.org", "ann smith@example.org", "ann@example.org;"];
        let unseen =
            ["\u{200b}ann@example.org", "ann@exam\u{ad}ple.org", "\u{feff}ann@x.org", "ann@x\u{7}.org"];
        let others =
            ["ann", "@x", "ann@", "a@b@c", "ann@.", "ann@x..", "a@x.org,b", "\"ann\"@x", "a\u{a0}b@x"];
        for bad in strays.into_iter().chain(unseen).chain(others) {
            assert_eq!(with(&[Email], bad), Err(BadIdentifier::NotAnEmail), "{bad}");
        }
        assert_eq!(with(&[EmailUntagged], "+x@y"), Err(BadIdentifier::NotAnEmail));
        for (steps, cell) in [(&[Trim][..], "  "), (&[Digits], "none"), (&[], ""), (&[Email], " ")] {
            assert_eq!(with(steps, cell), Err(BadIdentifier::Empty));
        }
        assert!(with(&[], &"x".repeat(limits::IDENTIFIER_BYTES)).is_ok());
        let long = "x".repeat(limits::IDENTIFIER_BYTES + 1);
        assert_eq!(with(&[], &long), Err(BadIdentifier::TooLong(long.len())));
    }

    #[test]
    fn telephone_numbers_become_international() {
        let uk = [Normaliser::Phone(Some(44))];
        for cell in
            ["+44 20 7946 0000", "020 7946-0000", "0044 20 79460000", "+44 (0)20/7946.0000", "20 7946 0000"]
        {
            assert_eq!(with(&uk, cell).as_deref(), Ok("+442079460000"), "{cell}");
        }
        let plain = [Normaliser::Phone(None)];
        assert_eq!(with(&plain, "+1 (212) 555-0100").as_deref(), Ok("+12125550100"));
        assert_eq!(with(&plain, "212 555 0100"), Err(BadIdentifier::NoCountry));
        assert_eq!(with(&uk, "44 20 7946 0000"), Err(BadIdentifier::NotAPhone));
        assert_eq!(with(&[Normaliser::Phone(Some(49))], "49 30 1234567"), Err(BadIdentifier::TwoPhones));
        for bad in
            ["+44 20 7946 0000 ext 5", "123", "+1234567890123456", "+044 20 7946 0000", "call me", "++1"]
        {
            assert_eq!(with(&uk, bad), Err(BadIdentifier::NotAPhone), "{bad}");
        }
        assert_eq!(with(&uk, "  "), Err(BadIdentifier::Empty));
    }

    #[test]
    fn each_step_that_changes_something_is_told() {
        let mut seen = Vec::new();
        let rule = rule(&[Normaliser::Trim, Normaliser::Lowercase]);
        normalise(&rule, " e\u{301}", |step| seen.push(step)).unwrap();
        normalise(&rule, "plain", |step| seen.push(step)).unwrap();
        assert_eq!(seen, [None, Some(0)]);
    }
}

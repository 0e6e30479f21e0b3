//! What the columns of a party's data look like, before any study says what they mean: on a sample of rows,
//! on this machine.

use crate::numbers;
use crate::peek::peek;
use crate::source::DataLocation;
use crate::table::TableCell;
use base::Error;
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use study::format::{DecimalSign, InputFormat, NumberForm};

mod times;

use times::TimeWatch;
pub use times::{TimeKind, TimeSurvey};

/// Rows from the beginning that are looked at, and so many again from all the others, evenly spread.
const PART: u64 = 50_000;
/// Rows that are read at most.
const READ: u64 = 10_000_000;
/// Most different values of a column that are listed.
const LISTED: usize = 20;

/// What was seen of a party's data.
#[derive(Clone, Debug)]
pub struct TableSurvey {
    /// Its columns, in the order of the first file.
    pub columns: Vec<ColumnSurvey>,
    /// Rows that were read, all or [`READ`].
    pub read: u64,
    /// Rows of these that were looked at.
    pub sampled: u64,
    /// Whether there are no others than were read.
    pub whole: bool,
    /// What form the files turned out to have, in words.
    pub forms: Vec<String>,
}

/// What was seen of a column.
#[derive(Clone, Debug)]
pub struct ColumnSurvey {
    /// Its name.
    pub name: String,
    /// Cells with something in them.
    pub filled: u64,
    /// Cells with nothing.
    pub empty: u64,
    /// Different values.
    pub distinct: u64,
    /// The values and how often each is met; none where there are more than 20, or some are dates or have
    /// decimals as a number.
    pub values: Vec<(String, u64)>,
    /// What they are as numbers, where all of them are.
    pub numbers: Option<NumberSurvey>,
    /// The first that is none, where not all are.
    pub stray: Option<StrayCell>,
    /// Cells of digits and the signs that amounts have beside them.
    pub figures: u64,
    /// Such with a word behind that says what they are of: `7 kg`.
    pub measured: u64,
    /// Such of digits alone that have zeros in front: `000100`.
    pub padded: u64,
    /// The ways to read all of them as days or times: several where it is not certain what they mean.
    pub times: Vec<TimeSurvey>,
    /// E-mail addresses among them.
    pub emails: u64,
    /// Numbers of 7 to 15 digits among them, with what people write between digits of telephone numbers.
    pub long: u64,
    /// What may be telephone numbers whatever the column is called: such behind a plus or a zero.
    pub phones: u64,
    /// Of these, such that are written as no other numbers are: with a plus, spaces, brackets or a stroke.
    pub dialled: u64,
    /// Of these, such that begin with + and a country.
    pub international: u64,
}

impl ColumnSurvey {
    /// Whether every row has a value of its own.
    #[must_use]
    pub fn is_distinct(&self) -> bool {
        self.filled > 0 && self.distinct == self.filled
    }
}

/// A cell that is no number, or has another decimal sign than those before it. For its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrayCell {
    /// Where it stands, in words.
    pub place: String,
    /// The cell for a message.
    pub shown: String,
}

/// The numbers of a column.
#[derive(Clone, Debug)]
pub struct NumberSurvey {
    /// What stands before decimals, where that has to be said.
    pub decimal: Option<DecimalSign>,
    /// What separates thousands, where that has to be said.
    pub thousands: Option<DecimalSign>,
    /// A sign that could stand before decimals or separate thousands in all cells, and nobody says which.
    pub unsure: Option<DecimalSign>,
    /// Most decimals of one.
    pub decimals: u32,
    /// How many are below zero.
    pub negative: u64,
    /// Ascending; at least one.
    sorted: Vec<f64>,
}

impl NumberSurvey {
    /// The number that a share of all is at or below.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.sorted.len() - 1;
        self.sorted[((last as f64 * share).ceil() as usize).min(last)]
    }

    /// The number above which so many others stand, or fewer.
    #[must_use]
    pub fn from_above(&self, others: u64) -> f64 {
        self.sorted[(self.sorted.len() - 1).saturating_sub(others as usize)]
    }

    /// The number below which so many others stand, or fewer.
    #[must_use]
    pub fn from_below(&self, others: u64) -> f64 {
        self.sorted[(others as usize).min(self.sorted.len() - 1)]
    }

    /// How many are not zero: of amounts these are the people with any.
    #[must_use]
    pub fn other_than_zero(&self) -> u64 {
        let zeros = self.sorted.partition_point(|number| *number <= 0.0) as u64 - self.negative;
        self.sorted.len() as u64 - zeros
    }

    /// How many are below the one or above the other.
    #[must_use]
    pub fn outside(&self, low: f64, high: f64) -> u64 {
        let inside = self.sorted.partition_point(|number| *number <= high);
        (self.sorted.len() - inside + self.sorted.partition_point(|number| *number < low)) as u64
    }
}

/// Looks at the data. What is said of their form holds; the names that the study has for columns do not.
///
/// # Errors
/// When files cannot be read, have no rows or two columns of one name, or rows of them have too few fields.
pub fn survey(data: DataLocation<'_>) -> Result<TableSurvey, Error> {
    let format = InputFormat { columns: Vec::new(), ..data.format.clone() };
    let data = DataLocation { format: &format, ..data };
    let counted = peek(data, READ, &mut |_, _, _| ())?;
    let stride = counted.rows.div_ceil(PART).max(1);
    let (mut at, mut sampled, mut watches) = (0, 0, Vec::<ColumnWatch>::new());
    let seen = peek(data, READ, &mut |names, cells, place| {
        if watches.is_empty() {
            watches.extend(names.iter().map(|name| ColumnWatch::new(name, &format)));
        }
        if at < PART || at % stride == 0 {
            sampled += 1;
            watches.iter_mut().zip(cells).for_each(|(watch, cell)| watch.see(cell.trimmed(), place));
        }
        at += 1;
    })?;
    Ok(TableSurvey {
        columns: watches.into_iter().map(ColumnWatch::end).collect(),
        read: seen.rows,
        sampled,
        whole: seen.rows < READ,
        forms: seen.forms,
    })
}

/// A column while it is looked at.
struct ColumnWatch {
    name: String,
    filled: u64,
    empty: u64,
    hashes: HashSet<u64>,
    /// None where there are too many.
    values: Option<BTreeMap<String, u64>>,
    numbers: [NumberWatch; 4],
    /// Whether a cell has a comma.
    comma: bool,
    stray: Option<StrayCell>,
    figures: u64,
    measured: u64,
    padded: u64,
    times: TimeWatch,
    emails: u64,
    long: u64,
    phones: u64,
    dialled: u64,
    international: u64,
}

impl ColumnWatch {
    fn new(name: &str, format: &InputFormat) -> Self {
        Self {
            name: name.to_owned(),
            filled: 0,
            empty: 0,
            hashes: HashSet::new(),
            values: Some(BTreeMap::new()),
            numbers: NumberWatch::all(format),
            comma: false,
            stray: None,
            figures: 0,
            measured: 0,
            padded: 0,
            times: TimeWatch::new(format.dates_of(name)),
            emails: 0,
            long: 0,
            phones: 0,
            dialled: 0,
            international: 0,
        }
    }

    fn see(&mut self, cell: TableCell<'_>, place: &dyn Fn() -> String) {
        if cell == TableCell::Empty {
            self.empty += 1;
            return;
        }
        self.filled += 1;
        self.times.see(cell);
        let text = cell.number_text().unwrap_or_else(|| cell.shown().into());
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        self.hashes.insert(hasher.finish());
        // Labels are cells that have one text form: a reader finds no other among those of a study.
        match (&mut self.values, cell.text()) {
            (Some(values), Some(label)) if values.len() < LISTED || values.contains_key(&*label) => {
                *values.entry(label.into_owned()).or_default() += 1;
            }
            _ => self.values = None,
        }
        let number = matches!(cell, TableCell::Text(_) | TableCell::Integer(_) | TableCell::Float(_))
            || matches!(cell, TableCell::Decimal(..));
        self.comma |= number && text.contains(',');
        self.numbers.iter_mut().for_each(|watch| watch.see(if number { &text } else { "" }));
        self.figures += u64::from(number && is_figures(&text));
        self.measured += u64::from(number && measure(&text).is_some());
        if self.stray.is_none() && self.numbers.iter().all(|watch| !watch.fits) {
            self.stray = Some(StrayCell { place: place(), shown: cell.shown() });
        }
        self.padded += u64::from(
            text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()),
        );
        if let TableCell::Text(text) = cell {
            self.emails += u64::from(is_email(text));
        }
        if number && is_long(&text) {
            self.long += 1;
        }
        if number && is_long(&text) && text.starts_with(['+', '0', '(']) {
            self.phones += 1;
            self.dialled += u64::from(text.contains(['+', ' ', '(', ')', '/']));
            self.international += u64::from(text.starts_with('+'));
        }
    }

    fn end(self) -> ColumnSurvey {
        ColumnSurvey {
            name: self.name,
            filled: self.filled,
            empty: self.empty,
            distinct: self.hashes.len() as u64,
            values: self.values.unwrap_or_default().into_iter().collect(),
            numbers: NumberWatch::chosen(self.numbers, self.comma),
            stray: self.stray,
            figures: self.figures,
            measured: self.measured,
            padded: self.padded,
            times: self.times.end(),
            emails: self.emails,
            long: self.long,
            phones: self.phones,
            dialled: self.dialled,
            international: self.international,
        }
    }
}

/// The cells of a column as numbers in one form.
struct NumberWatch {
    form: NumberForm,
    /// Whether somebody said what stands before decimals.
    said: bool,
    fits: bool,
    decimals: u32,
    numbers: Vec<f64>,
}

impl NumberWatch {
    /// Both signs before decimals; then with one group of thousands as well, which else is not read as such.
    fn all(format: &InputFormat) -> [Self; 4] {
        use DecimalSign::{Comma, Point};
        let known = format.numbers();
        [(Point, false), (Comma, false), (Point, true), (Comma, true)].map(|(sign, grouped)| {
            let fits = known.decimal.is_none_or(|said| said == sign) && (grouped || !known.grouped);
            let form = NumberForm { decimal: Some(sign), grouped };
            Self { form, said: known.decimal.is_some(), fits, decimals: 0, numbers: Vec::new() }
        })
    }

    fn see(&mut self, text: &str) {
        if !self.fits {
            return;
        }
        let number = numbers::plain(text, self.form).ok().and_then(|text| {
            let digits = text.trim_start_matches(['-', '+']);
            let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
            let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let good = !whole.is_empty() && plain(whole) && plain(part) && text.len() <= digits.len() + 1;
            let number = text.parse::<f64>().ok().filter(|number| good && number.is_finite())?;
            Some((number, part.len() as u32))
        });
        match number {
            Some((number, decimals)) => {
                self.decimals = self.decimals.max(decimals);
                self.numbers.push(number);
            }
            None => {
                self.fits = false;
                self.numbers = Vec::new();
            }
        }
    }

    /// The numbers by the first form that all cells have, and what of it has to be said.
    fn chosen(all: [Self; 4], comma: bool) -> Option<NumberSurvey> {
        let fits = [0, 1, 2, 3].map(|at| all[at].fits && !all[at].numbers.is_empty());
        let at = fits.iter().position(|fits| *fits)?;
        let [one, other] = [at, 3 - at];
        let Self { form, said, decimals, mut numbers, .. } = all.into_iter().nth(one)?;
        let sign = form.decimal?;
        numbers.sort_unstable_by(f64::total_cmp);
        let negative = numbers.partition_point(|number| *number < 0.0) as u64;
        let unsure = match at {
            // Thousands of the other form would be decimals of this one.
            0 | 1 => (!said && decimals > 0 && fits[other]).then_some(sign),
            // Somebody said the sign before decimals, and here a group could be decimals behind the other.
            _ => None,
        };
        // Whole numbers without any sign are so in every form. Three decimals could be a group.
        let decimal = (comma || !said && (at == 1 || at == 0 && decimals > 2)).then_some(sign);
        let thousands = form.grouped.then(|| sign.other());
        Some(NumberSurvey { decimal, thousands, unsure, decimals, negative, sorted: numbers })
    }
}

/// Digits with the signs that amounts have beside them.
fn is_figures(text: &str) -> bool {
    let signs = " \u{a0}\u{202f}.,+-'\u{20ac}$\u{a3}\u{a5}";
    let figure = |c: char| c.is_ascii_digit() || signs.contains(c);
    text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(figure)
}

/// Longest word behind an amount, in letters.
const MEASURE: usize = 8;

/// The word behind an amount: the kg of `7 kg` and of `7kg`, not the letter of a house number, `12a`.
#[must_use]
pub fn measure(text: &str) -> Option<&str> {
    let amount = text.trim_end_matches(|c: char| c.is_alphabetic());
    let (word, bare) = (&text[amount.len()..], amount.trim_end());
    let ordinal = ["st", "nd", "rd", "th", "te"].contains(&word);
    let letters = word.chars().count();
    let is_word = (1..=MEASURE).contains(&letters) && (letters > 1 && !ordinal || bare.len() < amount.len());
    (is_word && is_figures(bare) && bare.ends_with(|c: char| c.is_ascii_digit())).then_some(word)
}

fn is_email(text: &str) -> bool {
    let parts = text.split_once('@');
    parts.is_some_and(|(name, host)| {
        !name.is_empty() && host.contains('.') && !host.contains('@') && !text.contains(char::is_whitespace)
    })
}

/// 7 to 15 digits, with what people write before and between those of telephone numbers.
fn is_long(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let between = |byte: u8| byte.is_ascii_digit() || b" +-()/".contains(&byte);
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || "+(".contains(c));
    study::phone::DIGITS.contains(&digits) && begins && text.bytes().all(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> TableSurvey {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        std::fs::write(&file, text).unwrap();
        survey((&file).into()).unwrap()
    }

    #[test]
    fn numbers_are_those_of_all_cells() {
        let seen = of("id;a;b;c;d\r\n1;1,50;7;x;1.5\r\n2;-2,5;;9;2\r\n2;1.234,56;8;9;3.25\r\n");
        assert_eq!((seen.read, seen.sampled, seen.whole), (3, 3, true));
        assert_eq!(seen.forms, ["separator \";\""]);
        let [id, a, b, c, d] = &seen.columns[..] else { panic!("five columns") };
        assert_eq!((id.distinct, id.is_distinct(), a.is_distinct()), (2, false, true));
        let numbers = a.numbers.as_ref().unwrap();
        assert_eq!((numbers.decimal, numbers.decimals), (Some(DecimalSign::Comma), 2));
        assert_eq!((numbers.negative, numbers.quantile(0.0), numbers.quantile(1.0)), (1, -2.5, 1234.56));
        assert_eq!([numbers.from_above(1), numbers.from_below(1), numbers.from_above(9)], [1.5, 1.5, -2.5]);
        assert_eq!(numbers.other_than_zero(), 3);
        assert_eq!((numbers.outside(0.0, 1.5), numbers.outside(-2.5, 2000.0)), (2, 0));
        assert_eq!((b.filled, b.empty, b.numbers.as_ref().unwrap().decimal), (2, 1, None));
        assert!(c.numbers.is_none());
        let stray = c.stray.as_ref().unwrap();
        assert!(stray.place.ends_with("a.csv, line 2") && stray.shown == "\"x\"", "{stray:?}");
        assert_eq!([id, a, b, d].map(|column| &column.stray), [&None; 4]);
        assert_eq!(c.values, [("9".to_owned(), 2), ("x".to_owned(), 1)]);
        assert_eq!(d.numbers.as_ref().unwrap().decimals, 2);
        let zeros = of("id;a\n1;0\n2;-1\n3;0,0\n4;2\n5;0\n");
        assert_eq!(zeros.columns[1].numbers.as_ref().unwrap().other_than_zero(), 2);
    }

    #[test]
    fn zeros_in_front_are_counted() {
        let seen = of("a;b;c\n000100;100;0\n010070;90070;0,5\n123456;7;00x\n");
        assert_eq!([0, 1, 2].map(|at| seen.columns[at].padded), [2, 0, 0]);
    }

    /// 950 and 1,234 are two amounts of one size, or one is a thousandth of the other.
    #[test]
    fn commas_that_could_separate_thousands_are_not_sure() {
        let unsure = |cells: &str| {
            let seen = of(&format!("id;a\n{cells}"));
            seen.columns[1].numbers.as_ref().map(|numbers| (numbers.decimal, numbers.unsure))
        };
        let (comma, point) = (Some(DecimalSign::Comma), Some(DecimalSign::Point));
        assert_eq!(unsure("1;950\n2;1,234\n3;-12,500\n"), Some((comma, comma)));
        assert_eq!(unsure("1;950\n2;1.234\n3;-12.500\n"), Some((point, point)));
        assert_eq!(unsure("1;950\n2;1.234\n3;0.125\n"), Some((point, None)));
        for sure in ["2;1,5\n", "2;0,125\n", "2;1234,125\n", "2;1.234,125\n"] {
            assert_eq!(unsure(&format!("1;1,234\n{sure}")), Some((comma, None)), "{sure}");
        }
        assert_eq!(unsure("1;950\n2;1,234.50\n"), Some((point, None)));
        assert_eq!(unsure("1;950\n"), Some((None, None)));
    }

    /// Whole numbers are numbers whatever sign is said, and groups of thousands are.
    #[test]
    fn whole_amounts_are_numbers_by_every_sign() {
        let (comma, point) = (Some(DecimalSign::Comma), Some(DecimalSign::Point));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        let numbers = |cells: &str, decimal, thousands| {
            std::fs::write(&file, format!("id;a\n1;{}\n", cells.replace(' ', "\n2;"))).unwrap();
            let format = InputFormat { decimal, thousands, ..InputFormat::NONE };
            let data = DataLocation { format: &format, ..(&file).into() };
            let seen = survey(data).unwrap().columns.remove(1);
            assert_eq!(seen.figures, seen.filled, "{cells}");
            seen.numbers.map(|of| (of.decimal, of.thousands, of.quantile(1.0)))
        };
        for decimal in [None, comma, point] {
            assert_eq!(numbers("5 34", decimal, None), Some((None, None, 34.0)));
        }
        assert_eq!(numbers("5 1.234.567", None, None), Some((comma, None, 1_234_567.0)));
        assert_eq!(numbers("5 1.234.567", comma, None), Some((None, None, 1_234_567.0)));
        assert_eq!(numbers("5 1.234.567", point, None), None);
        // One group alone is read where somebody says so, and proposed where nothing else reads all cells.
        assert_eq!(numbers("5 1.234", None, point), Some((None, point, 1_234.0)));
        assert_eq!(numbers("1.234 1.234.567", None, None), Some((None, point, 1_234_567.0)));
        assert_eq!(numbers("1.234 5", comma, None), Some((None, point, 1_234.0)));
    }

    #[test]
    fn amounts_with_a_word_behind_are_known() {
        for (text, word) in [
            ("7 kg", Some("kg")),
            ("3 Stk", Some("Stk")),
            ("2.5kg", Some("kg")),
            ("1,250.00 g", Some("g")),
            ("12a", None),
            ("3rd", None),
            ("A12", None),
            ("north", None),
            ("12 something-else", None),
            ("2026-03-01 08:00 Uhr", None),
        ] {
            assert_eq!(measure(text), word, "{text}");
        }
    }

    #[test]
    fn addresses_and_telephones_are_known() {
        let seen = of("a,b,c,d\na@b.de,+49 30 123456,12,0000012\nc@d.org,030/123457,1710000001,0049301\n");
        let counts = |at: usize| {
            let column = &seen.columns[at];
            [column.emails, column.long, column.phones, column.dialled, column.international]
        };
        let expected = [[2, 0, 0, 0, 0], [0, 2, 2, 2, 1], [0, 1, 0, 0, 0], [0, 2, 2, 0, 0]];
        assert_eq!([0, 1, 2, 3].map(counts), expected);
    }

    #[test]
    fn values_are_listed_up_to_twenty() {
        let rows: String = (0..21).map(|i| format!("{i},{}\n", i % 20)).collect();
        let seen = of(&format!("a,b\n{rows}"));
        assert_eq!((seen.columns[0].values.len(), seen.columns[1].values.len()), (0, 20));
        assert_eq!(seen.columns[0].distinct, 21);
    }
}

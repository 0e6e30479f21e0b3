//! What a column may be, by what stands in it and what it is called.

use data::survey::{ColumnSurvey, StrayCell, TimeSurvey, measure};

/// Words in names of columns that say who a row is of.
const PERSON: [&str; 17] = [
    "id",
    "user",
    "customer",
    "client",
    "kunde",
    "person",
    "member",
    "mitglied",
    "patient",
    "child",
    "uid",
    "uuid",
    "key",
    "hash",
    "email",
    "mail",
    "household",
];
/// Words in names of columns that say that these are telephone numbers.
const PHONE: [&str; 18] = [
    "phone",
    "tel",
    "telefon",
    "telephone",
    "mobile",
    "mobil",
    "handy",
    "rufnummer",
    "msisdn",
    "cell",
    "fax",
    "portable",
    "whatsapp",
    "sms",
    "celular",
    "cellulare",
    "movil",
    "m\u{f3}vil",
];
/// When something happened.
const TIME: [&str; 26] = [
    "date",
    "time",
    "day",
    "datum",
    "tag",
    "zeit",
    "seen",
    "sent",
    "versand",
    "exposure",
    "exposed",
    "opportunity",
    "delivered",
    "injected",
    "treated",
    "bought",
    "order",
    "purchase",
    "onset",
    "kauf",
    "bestell",
    "event",
    "ts",
    "created",
    "unix",
    "epoch",
];
/// The arm of a trial.
const ARM: [&str; 10] =
    ["arm", "group", "gruppe", "treatment", "variant", "variante", "test", "assignment", "cell", "condition"];
/// Money.
const MONEY: [&str; 20] = [
    "amount", "price", "value", "revenue", "eur", "usd", "gbp", "chf", "betrag", "umsatz", "summe", "total",
    "spend", "spent", "sales", "cost", "preis", "wert", "turnover", "paid",
];
/// Arms of those who were not treated.
const CONTROL: [&str; 20] = [
    "control",
    "placebo",
    "no",
    "none",
    "0",
    "false",
    "n",
    "off",
    "holdout",
    "hold-out",
    "kontrolle",
    "kontrollgruppe",
    "without",
    "ohne",
    "nein",
    "keine",
    "untreated",
    "c",
    "kontroll",
    "baseline",
];

/// First words of their labels: `No E-Mail`.
const UNTREATED: [&str; 9] =
    ["no", "control", "without", "ohne", "kein", "keine", "kontrolle", "holdout", "placebo"];

/// A label that fewer rows have points to people: it is not proposed, and stands in a study only where its
/// owner said that label.
pub const LABEL_ROWS: u64 = 10;

/// The words of a name, in small letters.
fn words(name: &str) -> impl Iterator<Item = String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().into_iter()
}

/// Whether a name has one of these words, or a word that begins or ends with a long one.
fn named(name: &str, known: &[&str]) -> bool {
    let is = |word: &str, known: &str| {
        word == known || known.len() > 3 && (word.starts_with(known) || word.ends_with(known))
    };
    words(name).any(|word| known.iter().any(|known| is(&word, known)))
}

/// Names that are the same but for case and what stands between words.
pub fn same_name(one: &str, other: &str) -> bool {
    words(one).collect::<String>() == words(other).collect::<String>()
}

/// What sort of identifier a column may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifierSort {
    Email,
    Phone,
    Other,
}

/// The sort of a column's cells.
pub fn sort(column: &ColumnSurvey) -> IdentifierSort {
    let called = named(&column.name, &PHONE) && may_be_dialled(column);
    // Nobody writes other numbers with a plus, and few with spaces.
    let written = may_be_phones(column) && column.dialled * 10 >= column.filled;
    match () {
        () if most(column, column.emails) => IdentifierSort::Email,
        () if called || written => IdentifierSort::Phone,
        () => IdentifierSort::Other,
    }
}

/// Whether nine of ten cells are something.
fn most(column: &ColumnSurvey, some: u64) -> bool {
    some > 0 && some * 10 >= column.filled * 9
}

/// Whether the cells of a column have as many digits as telephone numbers: other numbers may.
pub fn may_be_dialled(column: &ColumnSurvey) -> bool {
    most(column, column.long) && !is_time(column)
}

/// Whether the cells of a column may be telephone numbers. Customer numbers with zeros in front look alike:
/// [`sort`] is surer.
pub fn may_be_phones(column: &ColumnSurvey) -> bool {
    most(column, column.phones) && !is_time(column)
}

/// How likely a column says who a row is of; none: it does not.
pub fn identifies(column: &ColumnSurvey, rows: u64) -> Option<u64> {
    let numbers = column.numbers.as_ref();
    let decimals = numbers.is_some_and(|numbers| numbers.decimals > 0 || numbers.negative > 0);
    if decimals || column.distinct * 20 < rows || column.filled == 0 {
        return None;
    }
    let sort = sort(column);
    if sort == IdentifierSort::Other && is_time(column) {
        return None;
    }
    let named = 40 * u64::from(named(&column.name, &PERSON));
    let sorted = if sort == IdentifierSort::Other { 0 } else { 50 };
    let filled = 20 * column.filled / rows.max(1);
    let score = named + sorted + filled + 20 * column.distinct / rows.max(1);
    (score >= 40).then_some(score)
}

/// Whether a column is of days or times: text of such a form, or digits under such a name that is none of
/// telephone numbers. Digits alone say nothing: customers and telephones are numbered as seconds are.
pub fn is_time(column: &ColumnSurvey) -> bool {
    let called = || named(&column.name, &TIME) && !named(&column.name, &PHONE);
    !column.times.iter().all(TimeSurvey::is_of_digits) || !column.times.is_empty() && called()
}

/// Whether its name says that it is the arm.
pub fn is_named_arm(column: &ColumnSurvey) -> bool {
    named(&column.name, &ARM)
}

/// The label of the arm that was not treated; none where they do not say.
pub fn control<'l>(labels: &[&'l str]) -> Option<&'l str> {
    let is = |label: &str| {
        let first = words(label).next();
        CONTROL.contains(&label.to_lowercase().trim())
            || first.is_some_and(|first| UNTREATED.contains(&first.as_str()))
    };
    let mut found = labels.iter().filter(|label| is(label));
    found.next().filter(|_| found.next().is_none()).copied()
}

/// The labels of a column that few rows have.
pub fn rare(column: &ColumnSurvey) -> impl Iterator<Item = &(String, u64)> {
    column.values.iter().filter(|(_, rows)| *rows < LABEL_ROWS)
}

/// Whether nine of ten values of a column are of one row each, or nearly: of so many a list is one of rows.
pub fn is_nearly_distinct(column: &ColumnSurvey) -> bool {
    column.filled > 0 && column.distinct * 10 >= column.filled * 9
}

/// Whether a column is called as amounts are.
pub fn is_named_money(column: &ColumnSurvey) -> bool {
    named(&column.name, &MONEY)
}

/// Whether a column is called as amounts are, or its cells are written as such are.
pub fn may_be_amounts(column: &ColumnSurvey) -> bool {
    let written = most(column, column.figures) || most(column, column.measured);
    is_named_money(column) || written && !may_be_dialled(column)
}

/// Last words of names of columns that number something: an invoice, an article.
const NUMBERING: [&str; 6] = ["id", "nr", "no", "nummer", "number", "code"];

/// Whether a column numbers something, as invoices are, and is no amount unless somebody says so: by its
/// name, or because its cells are all different and have as many digits. What a few rows have says nothing.
pub fn may_be_numbering(column: &ColumnSurvey) -> bool {
    is_named_numbering(&column.name) || is_numbered(column)
}

/// Whether the name of a column ends as names of numberings do.
pub fn is_named_numbering(name: &str) -> bool {
    let Some(last) = words(name).last() else { return false };
    let ends = |end: &&str| last == *end || end.len() > 3 && last.ends_with(*end);
    // invoiceId, Kundennr; but PAID.
    let camel = |name: &str| name.ends_with(|c: char| c.is_lowercase());
    let joined = name.strip_suffix("Id").or_else(|| name.strip_suffix("ID")).is_some_and(camel);
    NUMBERING.iter().any(ends) || last.ends_with("nr") || joined
}

/// Whether cells are all different whole numbers of 4 or more digits, as many in each.
fn is_numbered(column: &ColumnSurvey) -> bool {
    let Some(numbers) = &column.numbers else { return false };
    let digits = |share: f64| numbers.quantile(share).max(1.0).log10().floor() as u32 + 1;
    let whole = numbers.decimals == 0 && numbers.negative == 0;
    whole && column.filled >= 20 && column.is_distinct() && digits(0.0) >= 4 && digits(0.0) == digits(1.0)
}

/// Whether a column of numbers may be what events are worth, though nothing says so: it has no arms, times,
/// people or numbering by name, and more than one value.
pub fn may_be_values(column: &ColumnSurvey) -> bool {
    let labels = is_named_arm(column) && !column.values.is_empty();
    let person = named(&column.name, &PERSON) || is_named_numbering(&column.name);
    let other = labels || person && !is_named_money(column) || is_time(column);
    column.numbers.is_some() && column.distinct > 1 && sort(column) == IdentifierSort::Other && !other
}

/// Whether a column may be amounts of money: how sure.
pub fn money(column: &ColumnSurvey) -> u32 {
    let Some(numbers) = &column.numbers else { return 0 };
    let (named, decimals) = (is_named_money(column), numbers.decimals > 0);
    2 * u32::from(named) + u32::from(decimals)
}

/// Codes of currencies that are no words of anything else.
const CURRENCIES: [&str; 20] = [
    "eur", "usd", "gbp", "chf", "sek", "nok", "dkk", "pln", "czk", "huf", "jpy", "cny", "krw", "inr", "aud",
    "nzd", "brl", "mxn", "zar", "sgd",
];
/// Signs and names of currencies.
const SIGNS: [(&str, &str); 6] =
    [("€", "EUR"), ("$", "USD"), ("£", "GBP"), ("¥", "JPY"), ("euro", "EUR"), ("euros", "EUR")];
/// Hundredths of them.
const CENTS: [&str; 4] = ["cent", "cents", "ct", "cts"];

/// The unit that the name of a column says: `EUR`, or `EUR cent` of `amount_eur_cents`.
pub fn unit(name: &str) -> Option<String> {
    let small = name.to_lowercase();
    let has = |unit: &str| match unit.is_ascii() && unit != "$" {
        true => words(name).any(|word| word == unit),
        false => small.contains(unit),
    };
    let code = CURRENCIES.into_iter().find(|code| has(code)).map(str::to_uppercase);
    let sign = || SIGNS.into_iter().find(|(sign, _)| has(sign)).map(|(_, code)| code.to_owned());
    let cent = CENTS.into_iter().any(has).then_some("cent");
    let parts: Vec<String> = code.or_else(sign).into_iter().chain(cent.map(str::to_owned)).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// What is wrong with a column whose cells should be amounts: the first that is no number, and what to do.
/// Nothing where all are.
pub fn stray_amount(column: &ColumnSurvey) -> Option<String> {
    let StrayCell { place, shown } = column.stray.as_ref()?;
    let digits = |c: char| c.is_ascii_digit() || ".,-+\"".contains(c);
    let cure = match unit(shown) {
        Some(code) => format!(
            "Write amounts as numbers alone (2001.50), without the sign or name of a currency; --unit {code} \
             says it"
        ),
        None if shown.chars().all(digits) => {
            "It is written otherwise than the cells before it: write all amounts alike; --decimal says what \
             stands before decimals, and --thousands what separates thousands"
                .to_owned()
        }
        None => match measure(shown.trim_matches('"')) {
            Some(word) => format!("Write amounts as numbers alone, without {word}; --unit {word} says it"),
            None => "Write amounts as numbers alone (2001.50), and leave the cell empty where there is none"
                .to_owned(),
        },
    };
    Some(format!("{place}, column \"{}\": {shown} is no amount. {cure}", column.name))
}

/// How many of so many numbers a bound may leave beyond it: one of a hundred, and of few numbers four, or a
/// tenth. What is told of data then does not hang on the largest of them alone.
pub fn left_beyond(numbers: u64) -> u64 {
    let few = if numbers < 2 { 0 } else { (numbers / 10).clamp(1, 4) };
    (numbers.saturating_sub(1) / 100).max(few)
}

/// The smallest of 1, 2, 5, 10, 20, 50, .. that is no smaller.
pub fn round_up(number: u64) -> u64 {
    let mut power = 1u64;
    loop {
        for step in [1, 2, 5] {
            match power.checked_mul(step) {
                Some(round) if round >= number => return round,
                Some(_) => {}
                None => return u64::MAX,
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A name for files and studies: it begins with a letter. Nothing where there is none.
pub fn plain_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().map(plain).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_lowercase()).trim_end_matches('-');
    name.chars().take(40).collect()
}

/// A column in a line, for its owner.
pub fn described(column: &ColumnSurvey) -> String {
    let mut facts = Vec::new();
    match sort(column) {
        IdentifierSort::Email => facts.push("e-mail addresses".to_owned()),
        IdentifierSort::Phone => facts.push("telephone numbers".to_owned()),
        IdentifierSort::Other => {}
    }
    if let Some(way) = column.times.first().filter(|_| is_time(column)) {
        let forms: Vec<String> =
            column.times.iter().filter_map(|way| Some(way.form.as_ref()?.to_string())).collect();
        let form = if forms.is_empty() { String::new() } else { format!(" as {}", forms.join(" or ")) };
        let day = |seconds: i64| study::time::date_of_days(seconds.div_euclid(86_400));
        let range = match column.times.len() {
            1 => format!(", {} to {}", day(way.low), day(way.high)),
            _ => String::new(),
        };
        facts.push(format!("dates{form}{range}"));
    } else if let Some(numbers) = &column.numbers {
        let least = numbers.quantile(0.0);
        facts.push(format!("numbers, {least} to {}", numbers.quantile(1.0)));
        if column.padded > 0 {
            facts.push(format!("{} with zeros in front", column.padded));
        }
        if numbers.decimals > 0 {
            facts.push(format!("up to {}", page::numbers::counted(numbers.decimals.into(), "decimal")));
        }
        if numbers.negative > 0 {
            facts.push(format!("{} below zero", numbers.negative));
        }
        if !column.times.is_empty() && sort(column) == IdentifierSort::Other {
            facts.push("could be dates in digits, as what counts seconds".to_owned());
        }
    }
    match &column.values[..] {
        values @ [_, ..] if values.len() <= 6 => {
            let counts = values.iter().map(|(value, times)| format!("\"{value}\" {times}"));
            facts.push(counts.collect::<Vec<_>>().join(", "));
        }
        _ if column.is_distinct() => facts.push("all different".to_owned()),
        _ => facts.push(format!("{} different values", column.distinct)),
    }
    if column.empty > 0 {
        facts.push(format!("{} empty", column.empty));
    }
    facts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_tells_the_order_of_size_alone() {
        let rounded = [0, 1, 3, 9, 10, 11, 200, 201, 999, 5_001].map(round_up);
        assert_eq!(rounded, [1, 1, 5, 10, 10, 20, 200, 500, 1_000, 10_000]);
        assert_eq!(round_up(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_bound_does_not_hang_on_one_number() {
        let beyond = [0, 1, 2, 9, 10, 25, 40, 300, 1_000, 100_000].map(left_beyond);
        assert_eq!(beyond, [0, 0, 1, 1, 1, 2, 4, 4, 9, 999]);
    }

    #[test]
    fn names_say_what_a_column_is() {
        assert_eq!(control(&["mail", "Holdout"]), Some("Holdout"));
        assert_eq!((control(&["a", "b"]), control(&["no", "none"])), (None, None));
        assert_eq!(control(&["Mens E-Mail", "No E-Mail", "Womens E-Mail"]), Some("No E-Mail"));
        assert!(same_name("E-Mail", "email") && !same_name("email", "phone"));
        for (name, expected) in [
            ("Betrag EUR", "EUR"),
            ("Betrag (\u{20ac})", "EUR"),
            ("amount_eur", "EUR"),
            ("amount_eur_cents", "EUR cent"),
            ("price $", "USD"),
            ("europe", ""),
            ("percent", ""),
        ] {
            assert_eq!(unit(name).unwrap_or_default(), expected, "{name}");
        }
        assert!(named("Kundennummer", &PERSON) && named("Versanddatum", &TIME) && !named("region", &PERSON));
        assert_eq!(
            (plain_name("Mails 2026.02"), plain_name("2026 b-")),
            ("mails-2026-02".into(), "b".into())
        );
    }

    /// Customer numbers have zeros in front as telephone numbers have.
    #[test]
    fn telephone_numbers_are_called_or_written_so() {
        let sort_of = |name: &str, cells: [&str; 3]| {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("a.csv");
            std::fs::write(&file, format!("{name};x\n{};1\n", cells.join(";1\n"))).unwrap();
            let seen = data::survey::survey((&file).into()).unwrap();
            (sort(&seen.columns[0]), may_be_phones(&seen.columns[0]))
        };
        use IdentifierSort::{Other, Phone};
        let padded = ["0000037", "0000100", "0400037"];
        for name in ["Kunden-Nr", "id", "customer_id", "Kundennummer"] {
            assert_eq!(sort_of(name, padded), (Other, true), "{name}");
            assert_eq!(sort_of(name, ["0049301234", "0049301235", "0049301236"]), (Other, true), "{name}");
            assert_eq!(sort_of(name, ["030 123456", "(030)123457", "+49 30 123"]), (Phone, true), "{name}");
        }
        for name in ["phone", "Telefonnummer", "Tel.", "mobile_number", "Cell"] {
            assert_eq!(sort_of(name, padded), (Phone, true), "{name}");
            assert_eq!(sort_of(name, ["1", "2", "3"]), (Other, false), "{name}");
        }
    }

    /// Telephone and customer numbers in digits alone fit seconds since 1970, too.
    #[test]
    fn digits_are_dates_where_the_name_says_so() {
        let seen = |name: &str, cells: [&str; 2]| {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("a.csv");
            std::fs::write(&file, format!("{name};x\n{};1\n", cells.join(";1\n"))).unwrap();
            let seen = data::survey::survey((&file).into()).unwrap().columns[0].clone();
            (sort(&seen), is_time(&seen), described(&seen))
        };
        use IdentifierSort::{Other, Phone};
        for cells in [["01511234567", "01711234568"], ["1511234567", "1711234568"], ["0301234567"; 2]] {
            let (sort, time, told) = seen("Telefon", cells);
            assert_eq!((sort, time), (Phone, false), "{cells:?}");
            assert!(told.starts_with("telephone numbers") && !told.contains("dates"), "{told}");
        }
        let (sort, time, told) = seen("Kundennummer", ["1710000000", "1710000001"]);
        assert_eq!((sort, time), (Other, false));
        assert!(told.starts_with("numbers, 1710000000 to 1710000001; could be dates in digits"), "{told}");
        for (name, cells) in [("created", ["1710000000", "1710000001"]), ("Datum", ["20260301", "20260302"])]
        {
            let (sort, time, told) = seen(name, cells);
            assert_eq!((sort, time), (Other, true), "{name}");
            assert!(told.starts_with("dates"), "{told}");
        }
        // Several spellings of one column.
        assert_eq!(seen("a", ["01511234567", "+49 151 1234568"]).0, Phone);
        assert!(seen("phone_day", ["2026-03-01", "2026-03-02"]).1, "text of a date is one");
    }

    #[test]
    fn zeros_in_front_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        std::fs::write(&file, "id\n000100\n090070\n123456\n").unwrap();
        let seen = data::survey::survey((&file).into()).unwrap();
        let told = described(&seen.columns[0]);
        assert!(told.starts_with("numbers, 100 to 123456; 2 with zeros in front; "), "{told}");
    }

    #[test]
    fn what_numbers_rows_is_no_amount_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        let seen = |name: &str, cell: &dyn Fn(u64) -> u64| {
            let rows: String = (0..40).map(|i| format!("p{i};{}\n", cell(i))).collect();
            std::fs::write(&file, format!("who;{name}\n{rows}")).unwrap();
            let column = data::survey::survey((&file).into()).unwrap().columns[1].clone();
            (may_be_numbering(&column), may_be_values(&column))
        };
        let (serial, points) = (|i: u64| 4_711_001 + i, |i: u64| 5 + i % 30);
        for name in ["amount_id", "Rechnungsbetrag Nr", "Betragsnummer", "totalId"] {
            assert_eq!(seen(name, &points), (true, true), "{name}");
        }
        for name in ["invoice_no", "Artikelnr", "zip code", "customer"] {
            assert!(!seen(name, &points).1, "{name}");
        }
        for name in ["Punkte", "Gesamt", "x1", "PAID", "Kasino"] {
            assert_eq!(seen(name, &points), (false, true), "{name}");
        }
        assert_eq!(seen("Betrag", &serial), (true, true));
        assert_eq!(seen("Punkte", &|_| 3), (false, false));
        assert!(!seen("Betrag", &|i| 980 + i).0, "of different lengths");
    }

    #[test]
    fn a_cell_that_is_no_amount_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        let told = |cells: &str| {
            std::fs::write(&file, format!("id;amount\n1;{cells}\n")).unwrap();
            let seen = data::survey::survey((&file).into()).unwrap();
            stray_amount(&seen.columns[1])
        };
        let euros = told("12\n2;\u{20ac} 2,001").unwrap();
        assert!(euros.contains("line 3, column \"amount\": \"\u{20ac} 2,001\" is no amount"), "{euros}");
        assert!(euros.contains("--unit EUR") && !euros.contains("--decimal"), "{euros}");
        let mixed = told("1,5\n2;1.25").unwrap();
        assert!(mixed.contains("line 3") && mixed.contains("--decimal"), "{mixed}");
        let none = told("n/a\n2;1").unwrap();
        assert!(none.contains("line 2") && none.contains("leave the cell empty"), "{none}");
        assert_eq!(told("1\n2;2"), None);
    }
}

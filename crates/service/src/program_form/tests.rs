use super::*;
use std::collections::BTreeMap;

const US: FormParty<'_> = FormParty { name: "registry", key: "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11" };
const THEM: FormParty<'_> = FormParty { name: "trial", key: "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50" };

/// What is filled in, a field each.
type Fields = BTreeMap<&'static str, &'static str>;

fn costs() -> Fields {
    let text = "name=cost-by-dose;title=What it costs by \"dose\";identifier=person;alike=plain;rho=0.1;\
                col-1=eur;whose-1=us;is-1=amount;low-1=-50;high-1=450;unit-1=EUR;\
                col-2=ill;whose-2=us;is-2=bit;\
                col-3=arm;whose-3=them;is-3=label;values-3=none, low, high;\
                col-4=count;whose-4=them;is-4=whole;low-4=0;high-4=20;\
                count=yes;by=arm;ask-1=difference;of-1=eur;ask-2=risk;of-2=ill;ask-3=sum;of-3=count";
    text.split(';').filter_map(|field| field.split_once('=')).collect()
}

/// The form that a study fills makes the study again.
fn fills_its_form(text: &str) {
    let text = study::canonical("made", text).expect("canonical");
    let found = program_fields_again(&text, US, THEM).unwrap_or_else(|| panic!("no form: {text}"));
    let field = |name: &str| found.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value);
    let again = program_text(&field, US, THEM).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    assert_eq!(study::canonical("again", &again).expect("canonical"), text);
}

fn made(fields: &Fields) -> Result<String, Vec<FormMistake>> {
    program_text(&|name| fields.get(name).copied().unwrap_or(""), US, THEM)
}

/// The lines behind `ask`, of a study that is read and priced.
fn asked(fields: &Fields) -> Vec<String> {
    let text = made(fields).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    crate::told::tell(&text, US.key, &crate::reckoned::ReckonedFor::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    fills_its_form(&text);
    let line = text.lines().find(|line| line.starts_with("text = ")).expect("a program");
    let program = line.replace("\\n", "\n").replace("\\\"", "\"");
    program.lines().skip_while(|line| !line.starts_with("ask ")).skip(1).map(str::to_owned).collect()
}

#[test]
fn the_form_makes_a_study_that_is_read_and_priced() {
    let text = made(&costs()).expect("a study");
    let told = crate::told::tell(&text, US.key, &crate::reckoned::ReckonedFor::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let words = told.words();
    assert!(words.contains("eur") && words.contains("arm"), "{words}");
    assert_eq!(told.rho["public"], "1/10");
    let source = match &told.file.first().kind {
        study::Question::Program(program) => &program.source,
        _ => panic!("a program"),
    };
    let holds = |party: &str| source.columns.iter().filter(|column| column.party == party).count();
    assert_eq!((holds("registry"), holds("trial")), (2, 2));
    let lines = asked(&costs());
    let expected = [
        "by arm",
        "count",
        "mean difference of eur between -50 450",
        "share risk-difference risk-ratio odds-ratio of ill",
        "sum of column-count between 0 20",
    ];
    assert_eq!(lines[..5], expected);
}

#[test]
fn a_study_fills_its_form_with_what_was_written() {
    let text = study::canonical("made", &made(&costs()).expect("a study")).expect("canonical");
    let found = program_fields_again(&text, US, THEM).expect("a form");
    for (name, value) in costs() {
        let is = |(field, found): &(String, String)| field == name && found == value;
        assert!(found.iter().any(is), "{name}={value}: {found:?}");
    }
    // What no form says is none's.
    let other = text.replace("mean difference of", "mean of").replace("pid", "psi");
    assert!(program_fields_again(&other, US, THEM).is_none());
}

#[test]
fn every_question_becomes_its_line() {
    for (ask, of, more, line) in [
        ("mean", "eur", "", "mean of eur between -50 450"),
        ("share", "ill", "", "share of ill"),
        ("sum", "eur", "within-1=1000", "sum of eur between -50 450 within 1000"),
        ("variance", "eur", "", "variance of eur between -50 450"),
        ("deviation", "count", "", "standard-deviation of column-count between 0 20"),
        ("histogram", "arm", "", "histogram arm"),
        ("histogram", "eur", "edges-1=0, 50 200", "histogram eur edges 0 50 200"),
        (
            "histogram",
            "count",
            "within-1=50",
            "histogram column-count edges 0 2 4 6 8 10 12 14 16 18 20 within 50",
        ),
        ("median", "eur", "edges-1=-50 0 25.5 450", "median of eur edges -50 0 25.5 450"),
        ("quartiles", "eur", "edges-1=0 100", "quantile 1/4 1/2 3/4 of eur edges 0 100"),
        ("tenths", "eur", "edges-1=0 100", "quantile 1/10 9/10 of eur edges 0 100"),
        ("difference", "eur", "by=arm", "mean difference of eur between -50 450"),
        ("ratio", "ill", "by=count;by-edges=0 10 20", "mean ratio of ill"),
        ("risk", "ill", "by=arm;by-2=ill", "share risk-difference risk-ratio odds-ratio of ill"),
        (
            "covariance",
            "eur",
            "with-1=count",
            "covariance of eur between -50 450 with column-count between 0 20",
        ),
        ("correlation", "eur", "with-1=ill", "correlation of eur between -50 450 with ill"),
        (
            "regression",
            "eur",
            "with-1=ill, count",
            "regression of eur between -50 450 on ill column-count between 0 20",
        ),
    ] {
        let mut fields = costs();
        fields.retain(|name, _| !["by", "count"].contains(name) && !name.starts_with("ask-"));
        fields.extend([("ask-1", ask), ("of-1", of), ("rho", "1")]);
        fields.extend(more.split(';').filter_map(|field| field.split_once('=')));
        let lines = asked(&fields);
        assert!(lines.iter().any(|one| one == line), "{ask}: {lines:?}");
    }
}

#[test]
fn questions_of_everybody_stand_beside_those_of_groups() {
    let mut fields = costs();
    fields.extend([("by-2", "count"), ("by-2-edges", "0 5 20"), ("groups-2", "all"), ("ask-2", "share")]);
    fields.extend([("count-within", "40"), ("rho", "1")]);
    let lines = asked(&fields);
    let expected = [
        "by arm and column-count edges 0 5 20",
        "count within 40",
        "mean difference of eur between -50 450",
        "by all",
        "share of ill",
        "by arm and column-count edges 0 5 20",
        "sum of column-count between 0 20",
    ];
    assert_eq!(lines[..expected.len()], expected);
}

#[test]
fn columns_of_one_name_are_told_apart() {
    let mut fields = costs();
    fields.extend([("col-4", "eur"), ("is-4", "whole"), ("of-3", "eur-4")]);
    let wrong = made(&fields).expect_err("which one?");
    assert_eq!(wrong[0].to_string(), "Question 1: both files have it: write eur-1 or eur-4.");
    fields.insert("of-1", "eur-4");
    assert!(asked(&fields).contains(&"sum of eur-4 between 0 20".to_owned()));
}

#[test]
fn what_is_wrong_is_said_at_its_field() {
    for (name, value, field, why) in [
        ("low-1", "much", "low-1", "Column 1, from: write between which two numbers it lies"),
        ("high-1", "-60", "high-1", "Column 1, to: the first number has to be below"),
        ("values-3", "one", "values-3", "Column 3, labels: write two labels or more"),
        ("by", "eur", "by-edges", "Groups by, edges: it has numbers: write the edges"),
        ("by", "nothing", "by", "Groups by: name one of the columns above: eur, ill, arm, count."),
        ("by", "", "by", "Question 1: it compares groups"),
        ("groups-1", "all", "groups-1", "Question 1: it compares groups"),
        ("rho", "", "rho", "Rho of the public result: without any rho"),
        ("rho", "none", "rho", "Rho of the public result: write a decimal number"),
        ("high-4", "9000000000", "high-4", "Column 4, to: write between which two numbers it lies"),
        ("of-1", "arm", "of-1", "Question 1: it has labels and no such number"),
        ("of-2", "eur", "of-2", "Question 2: a share is of a column of yes and no"),
        ("of-3", "", "of-3", "Question 3: name the column that it is of"),
        ("within-3", "x", "within-3", "Give or take: write a number above 0"),
        ("ask-3", "correlation", "with-3", "Question 3, other columns: name the other column."),
        ("edges-4", "5 1", "edges-4", "Question 4, edges: write two numbers or more"),
    ] {
        let mut fields = costs();
        fields.insert(name, value);
        fields.extend([("ask-4", "median"), ("of-4", "eur")]);
        let wrong = made(&fields).expect_err("wrong");
        let found = wrong.iter().any(|one| one.field == field && one.to_string().starts_with(why));
        assert!(found, "{name}: {wrong:?}");
    }
    let wrong = made(&BTreeMap::new()).expect_err("empty");
    assert!(wrong.iter().any(|one| one.to_string() == "Column 1: name a column."), "{wrong:?}");
    let mut fields = costs();
    fields.retain(|name, _| *name != "count" && !name.starts_with("ask-"));
    let wrong = made(&fields).expect_err("nothing is asked");
    assert_eq!(wrong[0].field, "ask-1");
}

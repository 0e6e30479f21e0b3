//! `tacit init program`: counts and means of columns of both parties, in groups.

mod text;

use super::draft::{StudyDraft, comment, said};
use super::guess::{LABEL_ROWS, identifies, is_nearly_distinct, same_name};
use super::making::{Beginning, Making};
use super::matching::{compute, privacy};
use super::units::unit;
use super::{EqualInitArgs, ProposedPrice};
use base::Error;
use clap::Args;
use data::survey::ColumnSurvey;
use study::Study;
use study::reader::printable;
use text::{AskedProgram, CellUse, column};

/// Makes study, party file and key of a program that asks for counts and means: one party begins it with its
/// columns, the other completes it with its own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  tacit init program --data trial.csv --columns dose,age --out program\n  \
                  tacit init program --data registry.csv --columns cost --study program/study.toml --unit \
                  cost=EUR --by dose --mean cost --baseline none\n\
                  What else can be asked: docs/questions.md.")]
pub struct ProgramInitArgs {
    /// What a match takes as well.
    #[command(flatten)]
    pub own: EqualInitArgs,
    /// Columns that may be asked about; the study names no others. Repeated for a name with a comma in it
    #[arg(long = "columns", value_name = "COLUMN,..")]
    pub asked: Vec<String>,
    /// Rows are counted by this column of either party: one with labels, or yes and no; none: all together
    #[arg(long, value_name = "COLUMN")]
    pub by: Option<String>,
    /// The mean of this column of either party; none: counts alone
    #[arg(long, value_name = "COLUMN")]
    pub mean: Option<String>,
    /// The label that comes first, which differences and ratios compare the others with; that of those who
    /// were not treated where one is called so, else the first by the alphabet
    #[arg(long, value_name = "[COLUMN=]LABEL")]
    pub baseline: Option<String>,
    /// The unit of a column of amounts, or none; repeated for others
    #[arg(long = "unit", value_name = "COLUMN=UNIT")]
    pub units: Vec<String>,
    /// What it costs.
    #[command(flatten)]
    pub price: ProposedPrice,
}

/// Makes this party's half.
///
/// # Errors
/// As [`super::run`].
pub fn run(args: &ProgramInitArgs) -> Result<(), Error> {
    let beginning = Beginning { kind: "program", lacks: ["party"; 2], other: "program --data" };
    let (mut making, mut draft) = Making::begin(&args.own.common, &args.own.data, &beginning)?;
    let rho = args.price.rho()?;
    if making.completes {
        let study = typed(&draft, &AskedProgram::of(&draft, rho))?;
        making.identifiers_of(&study)?;
    } else {
        draft.set("match", making.matching("pid")?);
        let price = said(
            "zCDP: what the results cost the data of each party. Smaller: more noise.",
            &format!("rho = {rho}"),
        );
        let public = comment("One result, the same for both, which both may publish.");
        draft.set("release.public", format!("{public}[release.public]\n{price}"));
        privacy(&mut draft);
        compute(&mut draft);
    }
    let mut program = AskedProgram::of(&draft, rho);
    let told = columns(&mut making, &mut program, args)?;
    ask(&making, &mut program, args)?;
    if let Some(said) = &args.baseline {
        let (column, label) = program.compare_with(said).map_err(Error::input)?;
        making.because(&format!("baseline of {column}"), label, "as it was said");
    }
    if making.is_read_whole()? {
        let study = typed(&draft, &program)?;
        let me = study.parties.iter().position(|member| member.name == making.party).unwrap_or_default();
        data::read_rows(making.location(), &study, base::PartyId(me as u8), None)?;
    }
    if making.completes {
        let [kept, left] = program.set_aside(&making.party, !args.asked.is_empty());
        if !kept.is_empty() {
            let why = "nobody asks about these columns (--by, --mean): comments of the study";
            making.because("set aside", kept.join(", "), why);
        }
        if !left.is_empty() {
            let why = "nobody asks about these columns, or named them (--columns): not in the study";
            making.because("left out", left.join(", "), why);
        }
    }
    tell(&mut making, &program, told);
    making.limit(&typed(&draft, &program)?)?;
    making.entitle(&mut draft, &program.proposed_title())?;
    program.title_of(&draft);
    program.write(&mut draft);
    let draft = if making.completes { draft.finished() } else { draft };
    making.finish(&draft, beginning.other)
}

/// The study that a draft will be, with what it lacks made up.
fn typed(draft: &StudyDraft, program: &AskedProgram) -> Result<Study, Error> {
    let (mut draft, mut program) = (draft.clone().finished(), program.clone());
    if program.parties.len() < 2 {
        program.parties.push("made-up".to_owned());
        draft.set("party.made-up", format!("[party.made-up]\nkey = \"tacit1:{}\"\n", "0".repeat(32)));
    }
    program.write(&mut draft);
    draft.parse("the study")?.only()
}

/// A column of this party, as the program calls it, and what the study tells of it.
struct ToldColumn {
    called: String,
    text: String,
    /// Whether it is of numbers.
    number: bool,
}

/// Says what the study tells of this party's columns: of those that are in it.
fn tell(making: &mut Making<'_>, program: &AskedProgram, mut told: Vec<ToldColumn>) {
    told.retain(|column| program.has(&column.called));
    let numbers = told.iter().any(|column| column.number);
    told.into_iter().for_each(|column| making.tell(column.text));
    if numbers {
        let what = "types of numbers say of all of them: decimals, whether one is below zero, and whether \
                    the largest takes 8, 16, 32 or 40 bits; missing, that a cell is empty";
        making.tell(what.to_owned());
    }
    if !making.completes {
        let what = "the other party reads all of these; columns that it asks nothing about stay in the \
                    study, as comments, when it completes it";
        making.tell(what.to_owned());
    }
}

/// This party's columns, and what the study would tell of each.
fn columns(
    making: &mut Making<'_>,
    program: &mut AskedProgram,
    args: &ProgramInitArgs,
) -> Result<Vec<ToldColumn>, Error> {
    let identifiers: Vec<String> =
        program.identifiers.iter().map(|name| making.format.in_file(name).to_owned()).collect();
    let mut all = Vec::new();
    let mut reasons = Vec::new();
    for seen in &making.survey.columns {
        let own = making.common.ids.contains(&seen.name) || identifiers.contains(&seen.name);
        match proposed(seen, own, making.survey.sampled) {
            Ok(()) => all.push(seen.name.clone()),
            Err(why) => reasons.push(format!("\"{}\" {why}", printable(&seen.name))),
        }
    }
    let names: Vec<String> = match (&args.asked[..], &all[..]) {
        ([], []) => {
            return Err(Error::input(format!(
                "{}: no column is proposed: {}. Say columns by --columns",
                args.own.data.display(),
                reasons.join("; ")
            )));
        }
        ([], _) => {
            reasons.iter().for_each(|why| eprintln!("note: not proposed: {why}"));
            let read = |text: &str| Ok(split(making, text));
            let question =
                "Which columns may be asked about, with commas between them? The study names no others.";
            making.how.words("--columns COLUMN,..", question, Some(&all.join(",")), read)?
        }
        (said, _) => said.iter().flat_map(|text| split(making, text)).collect(),
    };
    for said in &args.units {
        let column = said.split_once('=').map(|(column, _)| column.trim());
        if !column.is_some_and(|column| names.iter().any(|name| name == column)) {
            return Err(Error::input(format!(
                "--unit is {said}; write COLUMN=UNIT, of one of the columns that may be asked about: {}",
                names.join(", ")
            )));
        }
    }
    let mut told = Vec::new();
    for name in &names {
        making.decimals(name)?;
        let seen = making.column(name)?;
        let flag = format!("--unit {name}=UNIT");
        let said = args.units.iter().filter_map(|said| said.split_once('='));
        let said = said.filter(|(column, _)| column.trim() == name).map(|(_, unit)| unit).next_back();
        let refused = |why: String| {
            Error::input(format!(
                "column \"{name}\" {why}. Leave it out, put rare labels together in the file, or add the \
                 column to the study by an editor (docs/program.md)"
            ))
        };
        let unit = match column(seen, None).map_err(refused)?.bounds {
            Some(_) => unit(making.how, seen, said, &flag)?.name,
            None => None,
        };
        let CellUse { line, bounds, why } = column(seen, unit.as_deref()).map_err(refused)?;
        let called = program.add(&making.party, name, &line, bounds.as_ref());
        making.because(&called, &line, why);
        let number = bounds.is_some();
        let between =
            bounds.map_or(String::new(), |[low, high]| format!(", mostly between {low} and {high}"));
        told.push(ToldColumn { called, text: format!("the column {name}: {line}{between}"), number });
    }
    Ok(told)
}

/// Whether a column is proposed; else why not, to stand behind its name.
fn proposed(seen: &ColumnSurvey, own: bool, rows: u64) -> Result<(), String> {
    if own || identifies(seen, rows).is_some_and(|score| score >= 60) {
        return Err("says who a row is of".to_owned());
    }
    let used = column(seen, None)?;
    let whole = seen.numbers.as_ref().is_some_and(|numbers| numbers.decimals == 0);
    match used.bounds.is_some() {
        true if whole && is_nearly_distinct(seen) => {
            Err("has another whole number in nearly every row, as what numbers rows does".to_owned())
        }
        true if seen.filled < LABEL_ROWS => {
            Err(format!("has numbers in fewer than {LABEL_ROWS} rows, and bounds would tell of these"))
        }
        _ => Ok(()),
    }
}

/// Names of columns with commas between them, some of which may be in a name.
fn split(making: &Making<'_>, text: &str) -> Vec<String> {
    let known = |name: &str| making.survey.columns.iter().any(|column| column.name == name);
    let parts: Vec<&str> = text.split(',').collect();
    let (mut names, mut at) = (Vec::new(), 0);
    while at < parts.len() {
        let joined = |end: usize| parts[at..end].join(",").trim().to_owned();
        let end = (at + 1..=parts.len()).rev().find(|end| known(&joined(*end))).unwrap_or(at + 1);
        names.push(joined(end));
        at = end;
    }
    names
}

/// What is asked, as far as it is said or both parties' columns are there.
fn ask(making: &Making<'_>, program: &mut AskedProgram, args: &ProgramInitArgs) -> Result<(), Error> {
    let spelt = program.clone();
    let files = |name: &str| spelt.in_file(name).to_owned();
    let chosen = |flag: &str, said: Option<&str>, question: &str, known: &[String]| {
        let mut answers = known.to_vec();
        answers.push("none".to_owned());
        let at = match said {
            Some(said) => answers
                .iter()
                .position(|name| name == said || files(name) == said)
                .or_else(|| {
                    // As a file spells it, or nearly.
                    let mut alike = answers.iter().enumerate().filter(|(_, name)| same_name(name, said));
                    alike.next().filter(|_| alike.next().is_none()).map(|(at, _)| at)
                })
                .ok_or_else(|| {
                    let share = spelt.instead_of_mean(said).filter(|_| flag == "--mean").unwrap_or_default();
                    Error::input(format!("{flag} is {said}; there are: {}{share}", answers.join(", ")))
                })?,
            None => making.how.choose(flag, question, &answers, Some(0))?,
        };
        Ok::<_, Error>(Some(answers[at].clone()).filter(|_| at < known.len()))
    };
    if program.by.is_none() && (args.by.is_some() || making.completes) {
        let question = "By which column are rows counted? (none: all together)";
        program.by = Some(chosen("--by", args.by.as_deref(), question, &program.groups())?);
    }
    if program.mean.is_none() && (args.mean.is_some() || making.completes) {
        let question = "The mean of which column? (none: counts alone)";
        program.mean = Some(chosen("--mean", args.mean.as_deref(), question, &program.numbers())?);
    }
    Ok(())
}

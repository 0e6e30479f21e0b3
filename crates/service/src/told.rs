//! What a study is, in words: those of `tacit check` and `tacit plan`, under the headings of the page on
//! which a steward decides. The text that is signed for is made of the same words.

use crate::reckoned::ReckonedFor;
use crate::serving::NO_DATA;
use base::{Error, PartyId};
use job::check::{CheckSizes, CheckedSide, SideReport};
use job::plan::{Assumed, OutcomeGuess, Plan, interval_curves};
use job::prepare::Built;
use job::told;
use page::lines::Fact;
use page::numbers::{bytes, counted, duration, plain};
use privacy::best_guess;
use privacy::ledger::PUBLIC;
use program::Class;
use release::Rational;
use release::rational::{parse, ratio, shown, to_f64};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use study::{PartyRole, Question, Study, StudyFile};

/// Columns of what is shown as a table of text.
const COLUMNS: usize = 76;

/// A study and what is said of it.
#[derive(Clone, Debug)]
pub struct StudyTold {
    /// What it says.
    pub file: StudyFile,
    /// Its text in the one form that is agreed on.
    pub text: String,
    /// The hash of its program.
    pub program: String,
    /// What is said and signed for, under headings.
    pub sections: Vec<ToldSection>,
    /// What accuracy, time and bytes come to, for rows that somebody supposes: no part of what is signed.
    pub reckoned: Vec<ToldSection>,
    /// All the rho that each viewer gets, exact, by the name of a party or `public`.
    pub rho: BTreeMap<String, String>,
    /// What a match shows of the sizes of this organisation's rows, in rho.
    pub sizes: Rational,
}

/// Words under a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldSection {
    /// The heading.
    pub title: String,
    /// Sentences.
    pub lines: Vec<String>,
    /// A table of text, which keeps its breaks; empty: none.
    pub table: Vec<String>,
}

impl ToldSection {
    fn new(title: impl Into<String>, facts: Vec<Fact>) -> Self {
        let lines = facts.into_iter().map(|fact| sentence(&fact.text)).collect();
        Self { title: title.into(), lines, table: Vec::new() }
    }
}

/// A fact as a sentence by itself, without what it says of flags: nobody types any here.
pub fn sentence(text: &str) -> String {
    let text = ["; --", ": --"].into_iter().fold(text, |text, flag| text.split(flag).next().unwrap_or(text));
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let stop = if text.ends_with(['.', ':']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

/// Reads a study, brings it into its one form and says what it would do. `us` is the key of this
/// organisation: what it would learn is told apart. `reckoned` has the rows and outcomes that accuracy and
/// price are stated for.
///
/// # Errors
/// What is wrong with the study, with its line.
pub fn tell(text: &str, us: &str, reckoned: &ReckonedFor) -> Result<StudyTold, Error> {
    const NAME: &str = "the study";
    let text = study::canonical(NAME, text)?;
    let side = CheckedSide::of_study(StudyFile::parse(NAME, &text)?, text.clone())?;
    let study = side.agreed.first();
    let (rows, supposed) = (reckoned.rows(study, us), reckoned.words(study, us));
    let sizes = CheckSizes {
        rows: Some(rows),
        mean: reckoned.mean,
        without_engines: !reckoned.engines,
        supposed: Some(supposed.clone()),
        ..CheckSizes::default()
    };
    let SideReport { report, agreed, built, .. } = side.report(&sizes, None)?;
    let (study, plan) = (agreed.first(), &report.plan);
    let mut parties: Vec<&study::Participant> = study.parties.iter().collect();
    parties.sort_by_key(|party| party.key == us);
    let mut sections: Vec<ToldSection> = parties
        .into_iter()
        .map(|party| {
            let sees = |viewer: &str| viewer == party.name || viewer == "everybody";
            let facts = told::revealed(&report, &built, study, &sees);
            let gets = |viewer: &str| viewer == party.name;
            let facts = facts.into_iter().chain(told::charges(plan, &gets)).collect();
            let whose = if party.key == us { "you" } else { &party.name };
            ToldSection::new(format!("What {whose} will learn"), facts)
        })
        .collect();
    let fact = |text: &String| Fact::new("besides", text);
    let besides = report.rows.iter().chain(&report.besides).map(fact);
    let known = |fact: &Fact| {
        let what = fact.text.split_once(": ").map_or("", |(_, what)| what);
        report.besides.iter().any(|line| line.contains(what))
    };
    let tells = told::tells(plan).into_iter().filter(|fact| !known(fact));
    let besides = besides.chain(told::servers(study)).chain(tells).collect();
    let mut noise: Vec<Fact> = told::noise_from(&report, study).into_iter().collect();
    noise.extend(told::left_out(study));
    let open = job::compose::not_covered(study.parties.len(), study.matching.matcher.name());
    let open = open.iter().map(String::as_str).chain([TOGETHER]).map(|line| Fact::new("open", line));
    sections.extend([
        ToldSection::new("What these numbers are", told::meanings(&built).into_iter().collect()),
        ToldSection::new("What anybody learns besides", besides),
        ToldSection::new("Not covered", open.collect()),
        ToldSection::new("Noise", noise),
    ]);
    sections.retain(|section| !section.lines.is_empty());
    let reckoned = reckon(plan, study, &supposed, half(study, rows, reckoned.mean));
    let warnings: Vec<Fact> = report.warnings.iter().map(|line| Fact::new("warning", line)).collect();
    if !warnings.is_empty() {
        sections.insert(0, ToldSection::new("Before you decide", warnings));
    }
    let rho = plan.total.iter().map(|(viewer, total)| (viewer.clone(), total.rho.clone())).collect();
    sections.insert(0, in_short(&agreed, &built, us, &rho));
    let program = report.study.program.clone();
    let me = agreed.parties.iter().position(|party| party.key == us).and_then(|me| u8::try_from(me).ok());
    let sizes = me.map(|me| privacy::dummies::charge(study, PartyId(me))).transpose()?.flatten();
    let sizes = sizes.map_or_else(|| ratio(0, 1), |sizes| sizes.rho);
    Ok(StudyTold { file: agreed, text, program, sections, reckoned, rho, sizes })
}

/// What the rows that are supposed come to: what it could see, what noise leaves, what it takes.
fn reckon(plan: &Plan, study: &Study, supposed: &str, half: Option<Fact>) -> Vec<ToldSection> {
    let (seconds, sent) = plan.stages.iter().fold((0.0, 0), |(seconds, sent), stage| {
        (seconds + stage.seconds, sent + stage.bytes_sent.values().sum::<u64>())
    });
    let machines = if study.everybody().len() == 2 { "both" } else { "all" };
    let (seconds, sent) = (duration(seconds), bytes(sent));
    // A run measures its line, and may settle for OTs of fewer bytes.
    let is_open = study.compute.ot.is_none()
        && plan.assumptions.get("engine").is_some_and(|engine| engine.contains("softspoken"));
    let most = if is_open { "at most " } else { "" };
    let took =
        format!("about {seconds} of {machines} machines, and {most}{sent} between them, for {supposed}");
    let mut cost = ToldSection::new("What it takes", vec![Fact::new("cost", took)]);
    cost.table = told::cost(plan, study, COLUMNS);
    cost.table.extend(told::assumed(plan).flat_map(|fact| fact.lines(COLUMNS)));
    let effects = half.into_iter().chain(told::effects(plan, study)).collect();
    let noise = told::noise_lines(plan, COLUMNS);
    let mut left = ToldSection::new("What noise leaves", Vec::new());
    if !noise.is_empty() {
        left.lines = vec![sentence(&format!("this is for {supposed}"))];
        left.table = noise;
    }
    let mut all = vec![ToldSection::new("What it could see", effects), left, cost];
    all.retain(|section| !section.lines.is_empty() || !section.table.is_empty());
    all
}

/// Half of the interval of a lift study's result, for a mean outcome that somebody says: the number that
/// [`choices`] has for the study as it is.
fn half(study: &Study, rows: [u64; 2], mean: Option<f64>) -> Option<Fact> {
    let Question::Lift(lift) = &study.kind else { return None };
    let curves = interval_curves(study, &assumed(rows, mean?), None).ok()?;
    let curve = curves.iter().find(|curve| curve.setting == "rows")?;
    let point = curve.points.iter().find(|point| point.at == curve.chosen)?;
    Some(Fact::new(
        "effect",
        match &point.half {
            Ok(half) => format!(
                "half of the {} % interval would be {}, of which chance alone is {}",
                lift.release.confidence.percent(),
                told::difference(half.whole, study),
                told::difference(half.chance, study)
            ),
            Err(why) => format!("nothing would be shown: {why}"),
        },
    ))
}

fn assumed(rows: [u64; 2], mean: f64) -> Assumed {
    Assumed { rows, both: None, outcome: Some(OutcomeGuess::told(mean)) }
}

/// What somebody has to know who reads nothing else: what is asked, who learns what, and what that may tell
/// of one person.
fn in_short(file: &StudyFile, built: &[Built], us: &str, rho: &BTreeMap<String, String>) -> ToldSection {
    let study = file.first();
    let named = |role: PartyRole| {
        let all = file.parties.iter().filter(move |party| party.role == role);
        all.map(|party| party.name.as_str()).collect::<Vec<_>>().join(" and ")
    };
    let mut lines = vec![match &study.kind {
        Question::Lift(_) => format!(
            "The question: did a treatment change an outcome? {} knows who was treated; {} knows what \
             happened to people afterwards.",
            named(PartyRole::Publisher),
            named(PartyRole::Advertiser)
        ),
        Question::Program(_) => "The question: numbers about the people of all these organisations, as they \
                                 are listed below."
            .to_owned(),
        Question::Match(_) => "The question: which rows belong together. No number is computed.".to_owned(),
    }];
    let told = |built: &Built| !built.program.lists.is_empty();
    let is_about_groups = !study.only_matches() && !built.iter().any(told);
    let others: Vec<_> = file.parties.iter().filter(|party| party.key != us).collect();
    let names = others.iter().map(|party| party.name.as_str()).collect::<Vec<_>>().join(" and ");
    // A server has no rows, and is told what the parties are.
    let takes_part = us.is_empty() || others.len() < file.parties.len();
    lines.push(match is_about_groups {
        _ if !takes_part => {
            format!("Nobody of {names} can read a row of another: what is sent is encrypted.")
        }
        true => format!(
            "{names} cannot read a row of yours: what is sent is encrypted. What comes out are numbers about \
             groups of people, never a list of them."
        ),
        false => format!("{names} cannot read a row of yours, but learns of rows what is listed below."),
    });
    let positive =
        |name: &str| rho.get(name).and_then(|rho| parse(rho)).filter(|rho| *rho > Rational::default());
    if positive(PUBLIC).is_some() {
        lines.push(match &study.kind {
            Question::Lift(_) => {
                "Everybody in the study gets the same answer: by how much the treated differ \
                                  from the others, and how sure that is. Each number has random noise in it."
                    .to_owned()
            }
            _ => "Everybody in the study gets the same answer, and each number has random noise in it."
                .to_owned(),
        });
    }
    for party in others.into_iter().filter(|_| takes_part) {
        let Some(rho) = positive(&party.name) else { continue };
        lines.push(format!(
            "Of one person: somebody at {} who knew the rows of everybody else, and had to guess which of \
             two things your data say of this one person, would be right at most {} times of 100 by this \
             study alone: the budget adds up what others told. A coin is right 50 times.",
            party.name,
            best_guess(to_f64(&rho))
        ));
    }
    let exact = built.iter().any(|built| built.program.class == Class::Exact);
    if exact && is_about_groups {
        lines.push("The numbers are exact: nothing bounds what they tell of one person.".to_owned());
    }
    ToldSection { title: "In short".to_owned(), lines, table: Vec::new() }
}

/// The names of the columns of [`choices`].
pub const CHOICES: [&str; 4] =
    ["Setting", "Value", "Half of the interval, per person", "Of which chance alone"];

/// What other rho, clamps, rows and modes would do to the interval of a lift study, as `tacit plan --figure`
/// draws it. Nothing for studies of other kinds.
///
/// # Errors
/// When nobody says what outcomes are like, or with such rows nothing would be shown.
pub fn choices(told: &StudyTold, rows: [u64; 2], mean: f64) -> Result<Vec<[String; 4]>, Error> {
    let Question::Lift(lift) = &told.file.first().kind else { return Ok(Vec::new()) };
    let curves = interval_curves(told.file.first(), &assumed(rows, mean), None)?;
    let rows = curves.iter().flat_map(|curve| {
        curve.points.iter().map(|point| {
            let of_mode = curve.setting == "mode" && point.value == lift.release.mode.name();
            let chosen = of_mode || curve.setting != "mode" && point.at == curve.chosen;
            let mark = if chosen { " (this study)" } else { "" };
            let [whole, chance] = match &point.half {
                Ok(half) => [plain(half.whole, 3), plain(half.chance, 3)],
                Err(why) => [format!("nothing is shown: {why}"), String::new()],
            };
            [curve.setting.to_owned(), format!("{}{mark}", point.value), whole, chance]
        })
    });
    Ok(rows.collect())
}

/// What no report can say of itself.
const TOGETHER: &str = "who puts several results about the same people together learns more than each says: \
                        the budget bounds what all of them say";

/// Studies that are kept, told.
const SHELF: usize = 128;

/// What was told of the last studies that somebody read: their pages are asked for again and again.
#[derive(Default)]
pub struct ToldShelf(Mutex<VecDeque<([u8; 32], Arc<StudyTold>)>>);

impl ToldShelf {
    /// As [`tell`].
    ///
    /// # Errors
    /// As [`tell`].
    pub fn tell(&self, text: &str, us: &str, reckoned: &ReckonedFor) -> Result<Arc<StudyTold>, Error> {
        // Neither keys nor this have a zero in them.
        let head = format!("{us}\0{reckoned:?}\0");
        let name =
            *blake3::Hasher::new().update(head.as_bytes()).update(text.as_bytes()).finalize().as_bytes();
        let shelf = || self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let again = |shelf: &mut VecDeque<([u8; 32], Arc<StudyTold>)>| {
            let place = shelf.iter().position(|(known, _)| *known == name)?;
            // What is asked for again stays; what nobody asked for longest goes.
            let found = shelf.remove(place)?;
            shelf.push_front(found.clone());
            Some(found.1)
        };
        if let Some(told) = again(&mut shelf()) {
            return Ok(told);
        }
        let told = Arc::new(tell(text, us, reckoned)?);
        let mut shelf = shelf();
        shelf.truncate(SHELF - 1);
        shelf.push_front((name, told.clone()));
        Ok(told)
    }
}

impl StudyTold {
    /// The most that so many runs charge each other party, in words; `us` is the key of this organisation.
    #[must_use]
    pub fn bound(&self, us: &str, runs: u8) -> String {
        let others = self.file.parties.iter().filter(|party| party.key != us);
        let of = |name: &str| self.rho.get(name).and_then(|rho| parse(rho));
        let bound = |name: &str| {
            let paid = crate::agree::matches_paid(runs);
            // What is told of a party has one match in it.
            match of(name) {
                Some(one) => one + (paid - ratio(1, 1)) * &self.sizes,
                None => of("public").unwrap_or_else(|| ratio(0, 1)) + paid * &self.sizes,
            }
        };
        let all = others.map(|party| format!("rho {} for {}", shown(&bound(&party.name)), party.name));
        all.collect::<Vec<_>>().join(", ")
    }

    /// What the rho that a party gets is made of, as a sentence after others; nothing where it is one number.
    #[must_use]
    pub fn parts_of(&self, party: &str) -> String {
        let of = |viewer: &str| self.rho.get(viewer).and_then(|rho| parse(rho)).unwrap_or_default();
        let (all, public, nothing) = (of(party), of(PUBLIC), Rational::default());
        let alone = &all - &public - &self.sizes;
        let each = [
            (public, "of the public result, which everybody gets"),
            (self.sizes.clone(), "of the sizes that its match shows"),
            (alone, "of what it alone gets"),
        ];
        let each = each.into_iter().filter(|(rho, _)| *rho > nothing);
        let each: Vec<String> = each.map(|(rho, what)| format!("{} {what}", shown(&rho))).collect();
        match each.len() {
            0 | 1 => String::new(),
            _ => format!(" The {} is {}.", shown(&all), each.join(", and ")),
        }
    }

    /// The text that a consent is signed for: all that is said, and what stands in the form.
    #[must_use]
    pub fn words_of(&self, us: &str, (data, lineage): (&str, &str), runs: u8, days: u64) -> String {
        let (days, runs_counted) = (counted(days, "day"), counted(u64::from(runs), "run"));
        let signed = match data {
            NO_DATA => {
                format!("As a server without data, for {days}, computing in at most {runs_counted}.")
            }
            data => {
                let bound = self.bound(us, runs);
                format!(
                    "With {data}, charged to the lineage {lineage}, for {days}, at most {runs_counted} that \
                     may begin: at most {bound}."
                )
            }
        };
        format!("{}\n\nWhat is signed\n{signed}", self.words())
    }

    /// All that is said, as the text that a consent is signed for.
    #[must_use]
    pub fn words(&self) -> String {
        let section = |section: &ToldSection| {
            let lines: Vec<&str> = [&section.title]
                .into_iter()
                .chain(&section.lines)
                .chain(&section.table)
                .map(|l| &**l)
                .collect();
            lines.join("\n")
        };
        let study = self.file.first();
        let head = format!("{}: {}\nhash {}", study.name, study.title, self.file.hash().full());
        let all: Vec<String> = [head].into_iter().chain(self.sections.iter().map(section)).collect();
        all.join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reckoned::{RowsFrom, RowsOfCheck, SaidSizes};

    const LIFT: &str = include_str!("../../../examples/lift.toml");

    #[test]
    fn what_each_learns_stands_under_its_name() {
        let told =
            tell(LIFT, "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11", &ReckonedFor::default()).expect("told");
        let titles: Vec<&str> = told.sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(
            titles[..5],
            [
                "In short",
                "Before you decide",
                "What hospitals will learn",
                "What you will learn",
                "What these numbers are"
            ]
        );
        let short = told.sections[0].lines.join("\n");
        assert!(short.contains("registry knows who was treated; hospitals knows what happened"), "{short}");
        assert!(short.contains("would be right at most 60 times of 100"), "{short}");
        let theirs = &told.sections[2].lines;
        assert!(
            theirs.iter().any(|line| line.contains("Nothing is revealed to hospitals alone")),
            "{theirs:?}"
        );
        assert!(theirs.iter().any(|line| line.contains("rho 0.11 for all that it gets")), "{theirs:?}");
        assert!(!theirs.iter().any(|line| line.contains("registry alone")), "{theirs:?}");
        assert_eq!(told.rho["hospitals"], "11/100");
        // Its own key is that of the registry: what it signs for more runs has more matches in it.
        let us = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11";
        let bounds = [1, 2, 3, 5].map(|runs| told.bound(us, runs));
        let bound = |rho: &str| format!("rho {rho} for hospitals");
        assert_eq!(bounds, ["0.11", "0.11", "0.12", "0.14"].map(bound));
        let signed = told.words_of(us, ("trial", "admissions"), 5, 30);
        assert!(signed.starts_with(&told.words()), "{signed}");
        assert!(
            signed.ends_with(
                "With trial, charged to the lineage admissions, for 30 days, at most 5 runs that may begin: \
                 at most rho 0.14 for hospitals."
            ),
            "{signed}"
        );
        let words = told.words();
        assert!(words.contains("drawn inside the computation") || words.contains("Drawn inside"), "{words}");
        assert_eq!(tell(&told.text, "", &ReckonedFor::default()).expect("again").text, told.text);
    }

    /// All that is reckoned, as text.
    fn reckoned(told: &StudyTold) -> String {
        let lines = |section: &ToldSection| {
            [vec![section.title.clone()], section.lines.clone(), section.table.clone()].concat()
        };
        told.reckoned.iter().flat_map(lines).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn engines_are_compared_where_somebody_says_rows() {
        let told = |rows| {
            let sizes = SaidSizes { rows, mean: None };
            reckoned(&tell(LIFT, "", &ReckonedFor::said(sizes)).expect("told"))
        };
        let compared = "engines that could run it";
        let (page, asked) = (told(None), told(Some([400_000, 2_000])));
        assert!(!page.contains(compared) && page.contains("What it takes"), "{page}");
        assert!(asked.contains(compared), "{asked}");
    }

    /// Whoever has the hash of what is signed could else try numbers of rows until it fits.
    #[test]
    fn what_is_signed_hangs_on_no_rows_and_what_is_reckoned_says_whose_they_are() {
        let us = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11";
        let program = include_str!("../../../examples/program.toml");
        for study in [LIFT, program] {
            let checked = |rows| {
                let (data, day) = ("trial".to_owned(), "2026-11-28".to_owned());
                RowsFrom::Checked(RowsOfCheck { data, rows, whole: true, day })
            };
            let told = |rows: RowsFrom, mean| {
                tell(study, us, &ReckonedFor { rows, mean, engines: false }).expect("told")
            };
            let nobody = told(RowsFrom::Nobody, None);
            let said = told(RowsFrom::Said([45_000, 2_000]), Some(0.0006));
            let own = told(checked(45_678), None);
            assert_eq!(nobody.words(), said.words());
            assert_eq!(nobody.words(), own.words());
            let [nobody, said, own] = [&nobody, &said, &own].map(reckoned);
            assert!(
                nobody.contains("1,000,000 rows of each party, as nobody here said how many"),
                "{nobody}"
            );
            assert!(said.contains("45,000 rows of ") && said.contains("said with the proposal"), "{said}");
            assert!(!said.contains("1,000,000"), "{said}");
            assert!(own.contains("45,678 rows of trial, as checked on 2026-11-28"), "{own}");
        }
        // Who has outcomes does not know how large the trial is.
        let (data, day) = ("cases".to_owned(), "2026-11-28".to_owned());
        let rows = RowsFrom::Checked(RowsOfCheck { data, rows: 1_656, whole: true, day });
        let theirs = ReckonedFor { rows, mean: None, engines: false };
        let told = tell(LIFT, "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50", &theirs).expect("told");
        let said = reckoned(&told);
        assert!(said.contains("1,000,000 of the publisher, as nobody here said how many"), "{said}");
        assert!(!said.contains("None is stated"), "{said}");
        assert!(told.words().contains("a modified program reads which of its own identifiers"));
    }

    /// The preview has the accuracy as a sentence and in a table: by one rate and one reckoning.
    #[test]
    fn the_sentence_and_the_table_have_one_accuracy() {
        let (rows, mean) = ([400_000, 2_000], 0.0006);
        let sizes = SaidSizes { rows: Some(rows), mean: Some(mean) };
        let told = tell(LIFT, "", &ReckonedFor::said(sizes)).expect("told");
        let table = choices(&told, rows, mean).expect("compared");
        let mine = table.iter().find(|row| row[0] == "rows" && row[1].contains("(this study)")).expect("it");
        let said = reckoned(&told);
        let sentence = format!("({} per person)", mine[2]);
        assert!(said.contains("Half of the 95 % interval would be ") && said.contains(&sentence), "{said}");
        assert!(said.contains("mean outcome of the control arm of 0.0006"), "{said}");
    }

    #[test]
    fn choices_are_compared_where_somebody_guesses_outcomes() {
        let told = tell(LIFT, "", &ReckonedFor::default()).expect("told");
        let rows = choices(&told, [400_000, 2_000], 0.0006).expect("compared");
        let of = |setting: &str| rows.iter().filter(|row| row[0] == setting).count();
        assert!(of("rho") > 3 && of("clamp") > 0 && of("rows") > 3 && of("mode") == 3, "{rows:?}");
        assert!(rows.iter().any(|row| row[1] == "sums (this study)"), "{rows:?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = LIFT.replace("clamp        = 1", "clamp        = 0");
        let error = tell(&wrong, "", &ReckonedFor::default()).expect_err("no clamp of 0").to_string();
        assert!(error.contains("the study, line 37"), "{error}");
    }
}

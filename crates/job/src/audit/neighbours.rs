//! Neighbouring inputs of a lift study: tables that differ as the guarantee of a view allows, and cost the
//! most.
//!
//! The unit is what one line of an owner's data can change: one joined row, or by several identifiers as many
//! as the match may give it. These are all in one cell of a breakdown, which costs the most, or in as many as
//! there are.

use base::Error;
use program::Viewer;
use studies::lift::{
    CellFamily, Content, JoinedRow, LiftLayout, LiftParameters, NO_VALUE, PUBLISHER, PersonEvent,
    PersonOutcome, ReleaseMode, TrialArm, User,
};

/// People of each arm who do not change, where arm sizes are noised, and where they are public.
const FEW: usize = 4;
const MANY: usize = 1000;

/// One person of the joined table.
#[derive(Clone, Debug)]
struct Person {
    user: Option<User>,
    outcome: Option<PersonOutcome>,
}

/// One input.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// What is particular about it: `test, 10`.
    pub about: String,
    people: Vec<Person>,
}

/// Inputs of which each is a neighbour of each other one.
pub(super) type Neighbours = Vec<Input>;

impl Input {
    /// The columns of the joined table.
    pub(super) fn columns(&self, lift: &LiftParameters, layout: &LiftLayout) -> Vec<Vec<u128>> {
        let column = |(content, slot): (&Content, &u8)| {
            let value = |person: &Person| {
                // What one advertiser has, the others have not.
                let outcome = if *slot == 0 { person.outcome.clone() } else { None };
                content.encode(lift, &JoinedRow { user: person.user.clone(), outcome })
            };
            self.people.iter().map(value).collect()
        };
        layout.columns.iter().zip(&layout.slots).map(column).collect()
    }

    /// Rows of the joined table.
    pub(super) fn rows(&self) -> u64 {
        self.people.len() as u64
    }

    /// People of the test and the control arm.
    fn groups(&self) -> [u64; 2] {
        TrialArm::BOTH.map(|arm| {
            let of = |person: &&Person| person.user.as_ref().is_some_and(|user| user.arm == arm);
            self.people.iter().filter(of).count() as u64
        })
    }
}

/// All sets of neighbours that are tried for a viewer; arm sizes are the same in all where the mode publishes
/// them.
pub(super) fn all(lift: &LiftParameters, viewer: Viewer) -> Vec<Neighbours> {
    let levels = levels(lift);
    let (own, unit) = (viewer == PUBLISHER.into(), unit(lift, viewer));
    let (none, most) = (&levels[0], &levels[levels.len() - 1]);
    let mut sets = Vec::new();
    for [test, control] in [[none, none], [none, most], [most, none], [most, most]] {
        let crowd = crowd(lift, [&test.1, &control.1]);
        match (lift.mode == ReleaseMode::Sums, own) {
            (_, true) => sets.extend(outcomes(lift, &crowd, unit, &levels)),
            (true, false) => sets.push(people(lift, &crowd, unit, &levels)),
            (false, false) => {
                sets.extend(outcomes(lift, &crowd, unit, &levels));
                sets.extend([[none, most], [most, none], [none, none], [most, most]].map(|two| {
                    let [a, b] = two;
                    exchanged(lift, &crowd, a, b)
                }));
            }
        }
    }
    sets
}

/// The arm sizes that a mode publishes: the same in all inputs.
///
/// # Errors
/// When they are not.
pub(super) fn groups(lift: &LiftParameters, viewer: Viewer) -> Result<Option<[u64; 2]>, Error> {
    if lift.mode == ReleaseMode::Sums {
        return Ok(None);
    }
    let sets = all(lift, viewer);
    let mut all = sets.iter().flatten().map(Input::groups);
    let first = all.next().ok_or_else(|| Error::misuse("there are neighbours"))?;
    match all.all(|groups| groups == first) {
        true => Ok(Some(first)),
        false => Err(Error::misuse("neighbours of a mode with public arm sizes have the same ones")),
    }
}

/// Outcomes of one person with their names, from none to the most.
fn levels(lift: &LiftParameters) -> Vec<(String, Option<PersonOutcome>)> {
    let k = u64::from(lift.max_events);
    let most = u64::try_from(lift.bound()).unwrap_or(u64::MAX);
    let fits = (1u64 << lift.value_bits) - 1;
    let outcome = |values: Vec<u64>| PersonOutcome {
        events: values.into_iter().map(|value| PersonEvent { time: 1, value: value.min(fits) }).collect(),
        cohort: (!lift.cohorts.is_empty()).then_some(0),
    };
    let mut levels = vec![("no outcome".to_owned(), None)];
    for share in 1..=4 {
        // The first event is worth it all, so that as many count as can.
        let value = (most * share / 4).max(1);
        let values = (0..k).map(|event| if event == 0 { value } else { value.saturating_sub(fits * event) });
        let one = (format!("outcome {}", value.min(most)), Some(outcome(values.collect())));
        if !levels.contains(&one) {
            levels.push(one);
        }
    }
    levels
}

fn user(lift: &LiftParameters, arm: TrialArm) -> User {
    User { arm, time: 0, reached: lift.impressions, breakdown: (!lift.breakdown.is_empty()).then_some(0) }
}

/// Those who do not change.
fn crowd(lift: &LiftParameters, outcomes: [&Option<PersonOutcome>; 2]) -> Vec<Person> {
    let size = if lift.mode == ReleaseMode::Sums { FEW } else { MANY - 1 };
    let arm = |(arm, outcome): (TrialArm, &Option<PersonOutcome>)| {
        vec![Person { user: Some(user(lift, arm)), outcome: outcome.clone() }; size]
    };
    TrialArm::BOTH.into_iter().zip(outcomes).flat_map(arm).collect()
}

fn with(crowd: &[Person], about: String, more: Vec<Person>) -> Input {
    Input { about, people: [crowd, &more].concat() }
}

/// How many joined rows one row of those who are protected from a viewer changes.
fn unit(lift: &LiftParameters, viewer: Viewer) -> usize {
    let [publisher, advertiser] = lift.matching.degree;
    let degree = match viewer.only() {
        Some(PUBLISHER) => advertiser,
        Some(_) if lift.advertisers.len() == 1 => publisher,
        _ => publisher.max(advertiser),
    };
    degree as usize
}

/// Where the rows of a unit lie: from a value of the breakdown on, in so many of them.
#[derive(Clone, Copy)]
struct Place {
    first: Option<u8>,
    values: usize,
}

impl Place {
    /// From a value on: all rows in it, or each in another one as far as there are others.
    fn all(lift: &LiftParameters, first: Option<u8>, unit: usize) -> Vec<Self> {
        let mut all = vec![Self { first, values: 1 }];
        let values = unit.min(lift.breakdown.len());
        if values > 1 {
            all.push(Self { first, values });
        }
        all
    }

    /// As many users of an arm as a unit has rows.
    fn users(self, lift: &LiftParameters, arm: TrialArm, unit: usize) -> impl Iterator<Item = User> {
        let of = lift.breakdown.len().max(1);
        let at =
            move |row: usize| self.first.map(|first| ((usize::from(first) + row % self.values) % of) as u8);
        let one = user(lift, arm);
        (0..unit).map(move |row| User { breakdown: at(row), ..one.clone() })
    }

    /// In words, of more than one row.
    fn about(self, unit: usize) -> String {
        match (unit, self.values) {
            (1, _) => String::new(),
            (_, 1) => format!("{unit} rows: "),
            (_, values) => format!("{unit} rows in {values} values: "),
        }
    }
}

/// The outcome of one person, in one arm or the other, is one or another; in a cohort it is of one value or
/// another.
fn outcomes(
    lift: &LiftParameters,
    crowd: &[Person],
    unit: usize,
    levels: &[(String, Option<PersonOutcome>)],
) -> Vec<Neighbours> {
    let first = values(lift, CellFamily::Breakdown)[0];
    let mut sets = Vec::new();
    for (arm, place) in TrialArm::BOTH
        .into_iter()
        .flat_map(|arm| Place::all(lift, first, unit).into_iter().map(move |p| (arm, p)))
    {
        let mut all = Vec::new();
        for (name, outcome) in levels {
            for cohort in cohorts(lift) {
                let outcome = outcome.clone().map(|outcome| PersonOutcome { cohort, ..outcome });
                let person = |user| Person { user: Some(user), outcome: outcome.clone() };
                // Arms stay as large as they are.
                let other = TrialArm::BOTH.into_iter().filter(|other| *other != arm);
                let rest = other.flat_map(|arm| place.users(lift, arm, unit));
                let rest = rest.map(|user| Person { user: Some(user), outcome: None });
                let about =
                    format!("{}{}, {name}{}", place.about(unit), lift.arms[arm as usize], in_cohort(cohort));
                all.push(with(crowd, about, place.users(lift, arm, unit).map(person).chain(rest).collect()));
            }
        }
        sets.push(all);
    }
    sets
}

/// One person is there or not, in either arm, with any outcome, from either of two cells on.
fn people(
    lift: &LiftParameters,
    crowd: &[Person],
    unit: usize,
    levels: &[(String, Option<PersonOutcome>)],
) -> Neighbours {
    let absent = vec![Person { user: None, outcome: None }; unit];
    let mut all = vec![with(crowd, "not there".into(), absent)];
    let firsts = values(lift, CellFamily::Breakdown);
    let places: Vec<Place> = firsts.into_iter().flat_map(|first| Place::all(lift, first, unit)).collect();
    for arm in TrialArm::BOTH {
        for place in &places {
            for (name, outcome) in levels {
                for cohort in cohorts(lift) {
                    let outcome = outcome.clone().map(|outcome| PersonOutcome { cohort, ..outcome });
                    let person = |user| Person { user: Some(user), outcome: outcome.clone() };
                    let cell = place.first.map(|at| format!(", breakdown {at}")).unwrap_or_default();
                    let (rows, arm_name) = (place.about(unit), &lift.arms[arm as usize]);
                    let about = format!("{rows}{arm_name}{cell}, {name}{}", in_cohort(cohort));
                    all.push(with(crowd, about, place.users(lift, arm, unit).map(person).collect()));
                }
            }
        }
    }
    all
}

/// Two people of different arms exchange them.
fn exchanged(
    lift: &LiftParameters,
    crowd: &[Person],
    a: &(String, Option<PersonOutcome>),
    b: &(String, Option<PersonOutcome>),
) -> Neighbours {
    let both = |[a, b]: [&(String, Option<PersonOutcome>); 2]| {
        let person = |(arm, of): (TrialArm, &Option<PersonOutcome>)| Person {
            user: Some(user(lift, arm)),
            outcome: of.clone(),
        };
        let people = [(TrialArm::Test, &a.1), (TrialArm::Control, &b.1)].map(person).to_vec();
        with(crowd, format!("{} in {} and {} in {}", a.0, lift.arms[0], b.0, lift.arms[1]), people)
    };
    vec![both([a, b]), both([b, a])]
}

/// The first two values of a family; none where there is no such family.
fn values(lift: &LiftParameters, family: CellFamily) -> Vec<Option<u8>> {
    let values = if family == CellFamily::Breakdown { &lift.breakdown } else { &lift.cohorts };
    match values.len().min(2) {
        0 => vec![None],
        some => (0..some as u8).map(Some).collect(),
    }
}

fn cohorts(lift: &LiftParameters) -> Vec<Option<u8>> {
    debug_assert!(lift.cohorts.len() < NO_VALUE as usize, "a value has a code of its own");
    values(lift, CellFamily::Cohort)
}

fn in_cohort(cohort: Option<u8>) -> String {
    cohort.map(|at| format!(", cohort {at}")).unwrap_or_default()
}

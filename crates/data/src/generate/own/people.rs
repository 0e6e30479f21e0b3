//! Who is in which file, and by which identifiers.

use super::cells::{CellMaker, MadeColumn};
use base::Error;
use study::{Identifier, MatchRule, Normaliser, phone};

/// How many people everybody has.
pub(super) struct MadeUpPeople {
    pub rows: [u64; 2],
    /// Whom everybody has; none: half of the smaller side.
    pub common: Option<u64>,
    /// Whether all have the same.
    pub aligned: bool,
}

impl MadeUpPeople {
    /// Numbers of the people of a party: everybody's, and others that are its own.
    pub fn of(&self, party: usize) -> Vec<u32> {
        let [first, others] = self.rows.map(|rows| rows as u32);
        if self.aligned {
            return (0..first).collect();
        }
        let most = first.min(others);
        let common = self.common.map_or(most / 2, |common| most.min(common.try_into().unwrap_or(most)));
        let (rows, before) = match party {
            0 => (first, 0),
            _ => (others, first - common + (party as u32 - 1) * (others - common)),
        };
        (0..common).chain((common..rows).map(|number| number + before)).collect()
    }
}

/// An identifier that looks like nothing real.
pub(super) struct IdentifierMaker<'a> {
    rule: &'a Identifier,
    /// Its place among those of a row, and how many these are: no two columns hold the same.
    place: [u64; 2],
    /// Whether a program reads it as a number, too.
    number: bool,
}

impl<'a> IdentifierMaker<'a> {
    /// All of a study.
    pub fn all(rule: &'a MatchRule, columns: &[MadeColumn]) -> Result<Vec<Self>, Error> {
        let all = rule.identifiers.len() as u64;
        let one = |(key, rule): (u64, &'a Identifier)| {
            let read = columns.iter().find(|column| column.name == rule.name);
            match read.map(|column| &column.maker) {
                None => Ok(Self { rule, place: [key, all], number: false }),
                Some(CellMaker::Whole(..) | CellMaker::Parts(..)) => {
                    Ok(Self { rule, place: [key, all], number: true })
                }
                Some(_) => Err(Error::input(format!(
                    "column {:?} is an identifier and no number: its cells cannot be made up; write this \
                     file yourself",
                    rule.name
                ))),
            }
        };
        (0..).zip(&rule.identifiers).map(one).collect()
    }

    pub fn name(&self) -> &str {
        &self.rule.name
    }

    /// That of a person.
    pub fn cell(&self, person: u32) -> Result<String, Error> {
        let [key, all] = self.place;
        let number = u64::from(person) * all + key;
        let phone = self.rule.normalise.iter().find_map(|step| match step {
            Normaliser::Phone(country) => Some(*country),
            _ => None,
        });
        let has = |wanted: Normaliser| self.rule.normalise.contains(&wanted);
        if self.number {
            return Ok(number.to_string());
        }
        if has(Normaliser::Email) || has(Normaliser::EmailUntagged) {
            return Ok(format!("person-{number}@example.org"));
        }
        if let Some(country) = phone {
            let code = country.unwrap_or(44);
            let made = phone::made_up(code, number);
            return made.ok_or_else(|| {
                let name = &self.rule.name;
                Error::input(format!(
                    "column {name:?}: +{code} has fewer telephone numbers; write fewer rows"
                ))
            });
        }
        Ok(if has(Normaliser::Digits) { format!("{number:010}") } else { format!("person-{number:07}") })
    }
}

//! People that `bench match` makes up as it reads them.
//!
//! Party 0 holds people `0..n`, party 1 the last `shared` of them and others. With two identifiers each party
//! lacks one of them for some people, never both parties the same one. For collecting, party 1 has two rows
//! for each shared person.

use super::mix;
use base::Error;
use matching::IdentifierSource;
use std::io::Write;

/// One party's rows.
#[derive(Clone, Copy, Debug)]
pub struct People {
    party: u8,
    rows: u64,
    shared: u64,
    /// Identifiers of a row, 1 or 2.
    keys: usize,
    /// Rows of a shared person at party 1.
    times: u64,
}

/// Rows of party 0 that also party 1 has, at an overlap; even, so that they can be halved.
pub fn shared(rows: u64, overlap: f64) -> u64 {
    (rows as f64 * overlap).round() as u64 / 2 * 2
}

impl People {
    /// One identifier for each row.
    pub fn new(party: u8, rows: u64, shared: u64) -> Self {
        Self { party, rows, shared, keys: 1, times: 1 }
    }

    /// Two identifiers for most rows.
    pub fn with_two_keys(self) -> Self {
        Self { keys: 2, ..self }
    }

    /// Two rows of party 1 for each of half as many shared people.
    pub fn repeated(self) -> Self {
        Self { times: 2, ..self }
    }

    /// Who is in a row.
    pub fn person(&self, row: u64) -> u64 {
        match self.party {
            0 => row,
            _ if row < self.shared => self.rows - self.shared / self.times + row / self.times,
            _ => self.rows + row,
        }
    }

    /// Whether a person of this party is also at the other one.
    pub fn is_shared(&self, person: u64) -> bool {
        (self.rows - self.shared / self.times..self.rows).contains(&person)
    }

    /// Column `column` of a person's payload.
    pub fn value(person: u64, column: usize) -> u64 {
        if column == 0 { person } else { mix(person ^ (column as u64) << 48) }
    }
}

impl IdentifierSource for People {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn keys(&self) -> usize {
        self.keys
    }

    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        let person = self.person(row.into());
        // One in ten lacks the first identifier at party 0, another one in ten the second at party 1.
        let lacking = [3, 7].map(|digit| self.keys > 1 && person % 10 == digit);
        let written = match (key, self.party) {
            (0, 0) if lacking[0] => Ok(()),
            (1, 1) if lacking[1] => Ok(()),
            (0, _) => write!(into, "person-{person:010}@example.org"),
            _ => write!(into, "+44{person:010}"),
        };
        written.map_err(|e| Error::io("writing to memory", &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_people_are_at_both() {
        for (times, people) in [(1, 4), (2, 2)] {
            let of = |party| {
                let people = People::new(party, 10, shared(10, 0.4));
                if times == 2 { people.repeated() } else { people }
            };
            let at = |party| (0..10).map(|row| of(party).person(row)).collect::<Vec<_>>();
            let both: Vec<u64> = at(1).into_iter().filter(|person| at(0).contains(person)).collect();
            assert_eq!(both.len(), 4);
            assert!(both.iter().all(|person| of(0).is_shared(*person)));
            assert_eq!((0..20).filter(|person| of(1).is_shared(*person)).count(), people);
        }
    }

    #[test]
    fn everybody_shared_has_an_identifier_in_common() {
        let [a, b] = [0, 1].map(|party| People::new(party, 40, 40).with_two_keys());
        for row in 0..40 {
            let read = |people: &People, key| {
                let mut name = Vec::new();
                people.read(row, key, &mut name).unwrap();
                name
            };
            let same = (0..2).filter(|key| !read(&a, *key).is_empty() && read(&a, *key) == read(&b, *key));
            assert!(same.count() > 0, "{row}");
        }
    }
}

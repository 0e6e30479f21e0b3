//! A check of joined shares: each party leaves what it holds in a file, and the measurement puts both
//! together.

use super::people::People;
use base::Error;
use matching::{
    JoinedPart, JoinedShares, PayloadLayout, PayloadSource, PayloadTable, PayloadTaker, ShareBlock,
    ValidEntries,
};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

/// What one party holds of a join.
pub struct JoinedHalf {
    rows: u64,
    slots: u64,
    /// Of each party's payload.
    parts: [PartyWords; 2],
    valid: PartyWords,
}

/// One thing that a party holds.
#[derive(PartialEq, Eq)]
enum PartyWords {
    /// Everything is valid.
    All,
    /// Shares.
    Shared(Vec<u64>),
    /// In the clear.
    Mine(Vec<u64>),
    /// The other party knows.
    Theirs,
}

/// A payload of `columns` columns of 64 bits.
pub fn layout(columns: usize) -> Result<PayloadLayout, Error> {
    PayloadLayout::new(std::iter::repeat_n(matching::TableField::number(8), columns))
}

/// Rows whose payload is made up at a time.
const BATCH: u64 = 4096;

/// The payload of a party's rows, made up as it is read.
pub struct PeopleValues<'a> {
    people: &'a People,
    rows: u64,
    layout: PayloadLayout,
}

impl<'a> PeopleValues<'a> {
    /// So many columns of so many rows.
    pub fn new(people: &'a People, rows: u64, columns: usize) -> Result<Self, Error> {
        Ok(Self { people, rows, layout: layout(columns)? })
    }
}

impl PayloadSource for PeopleValues<'_> {
    fn layout(&self) -> &PayloadLayout {
        &self.layout
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn each(&self, take: &mut PayloadTaker<'_>) -> Result<(), Error> {
        for first in (0..self.rows).step_by(BATCH as usize) {
            let mut table = PayloadTable::zeros(self.layout.clone(), BATCH.min(self.rows - first))?;
            for row in 0..table.rows() {
                for column in 0..self.layout.fields().len() {
                    table.set(row, column, People::value(self.people.person(first + row), column).into());
                }
            }
            take(first, &table)?;
        }
        Ok(())
    }
}

/// Writes what a party holds.
pub fn save(joined: &JoinedShares, people: &People, path: &Path) -> Result<(), Error> {
    let failed = |e: &std::io::Error| Error::io("keeping shares for the check", e);
    let mut file = BufWriter::new(File::create(path).map_err(|e| failed(&e))?);
    let mut put = |word: u64| file.write_all(&word.to_le_bytes()).map_err(|e| failed(&e));
    put(joined.rows)?;
    put(joined.slots.into())?;
    for part in &joined.parts {
        match part {
            JoinedPart::Shared(table) => {
                let fields = table.layout().fields().len();
                put(1)?;
                put(table.rows() * fields as u64)?;
                let mut block = ShareBlock::default();
                for row in 0..table.rows() {
                    (0..fields).try_for_each(|field| put(table.get(row, field, &mut block)? as u64))?;
                }
            }
            // People instead of rows; all ones where there is none.
            JoinedPart::Mine(rows) => {
                put(2)?;
                put(rows.len() as u64)?;
                for row in rows {
                    let absent = *row == matching::payload::ABSENT;
                    put(if absent { u64::MAX } else { people.person((*row).into()) })?;
                }
            }
            JoinedPart::Theirs => [3, 0].into_iter().try_for_each(&mut put)?,
        }
    }
    let (tag, valid) = match &joined.valid {
        ValidEntries::All => (0, &[][..]),
        ValidEntries::Shared(bits) => (1, &bits[..]),
        ValidEntries::Mine(bits) => (2, &bits[..]),
        ValidEntries::Theirs => (3, &[][..]),
    };
    put(tag)?;
    put(valid.len() as u64)?;
    valid.iter().try_for_each(|word| put(*word))?;
    file.flush().map_err(|e| failed(&e))
}

/// Reads what a party holds.
pub fn load(path: &Path) -> Result<JoinedHalf, Error> {
    let broken = |e: &std::io::Error| Error::io("reading shares for the check", e);
    let mut file = BufReader::new(File::open(path).map_err(|e| broken(&e))?);
    let mut get = || -> Result<u64, Error> {
        let mut word = [0; 8];
        file.read_exact(&mut word).map_err(|e| broken(&e))?;
        Ok(u64::from_le_bytes(word))
    };
    let (rows, slots) = (get()?, get()?);
    let mut words = || -> Result<PartyWords, Error> {
        let (tag, len) = (get()?, get()?);
        let words: Vec<u64> = (0..len).map(|_| get()).collect::<Result<_, _>>()?;
        match tag {
            0 => Ok(PartyWords::All),
            1 => Ok(PartyWords::Shared(words)),
            2 => Ok(PartyWords::Mine(words)),
            3 => Ok(PartyWords::Theirs),
            _ => Err(Error::misuse("shares for the check are broken")),
        }
    };
    Ok(JoinedHalf { rows, slots, parts: [words()?, words()?], valid: words()? })
}

/// What the join of both should be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Rows of each side.
    pub rows: u64,
    /// Joined pairs of people.
    pub pairs: u64,
    /// Columns of each payload.
    pub columns: usize,
}

/// Whether the valid entries are the expected pairs, each once, with all columns of both parties.
pub fn agree(held: &[JoinedHalf; 2], of: People, expected: Expected) -> bool {
    let [a, b] = held;
    if (a.rows, a.slots) != (b.rows, b.slots) {
        return false;
    }
    let mut seen = vec![0u8; expected.rows as usize];
    let mut pairs = 0;
    for entry in 0..a.rows * a.slots {
        match bit(held, entry) {
            None => return false,
            Some(false) => continue,
            Some(true) => {}
        }
        let (row, columns) = (entry / a.slots, expected.columns);
        let person = value(held, 0, row, 0, columns);
        if person == Some(u64::MAX) && value(held, 1, entry, 0, columns) == person {
            // Two dummies.
            continue;
        }
        let Some(person) = person.filter(|person| *person < expected.rows && of.is_shared(*person)) else {
            return false;
        };
        let holds = |party: usize, entry: u64| {
            (0..columns).all(|column| {
                value(held, party, entry, column, columns) == Some(People::value(person, column))
            })
        };
        if !holds(0, row) || !holds(1, entry) {
            return false;
        }
        seen[person as usize] += 1;
        pairs += 1;
    }
    let each = seen.iter().copied().max().unwrap_or(0);
    pairs == expected.pairs && seen.iter().all(|times| *times == 0 || *times == each)
}

/// Whether an entry is valid; none where the parties do not fit together.
fn bit([a, b]: &[JoinedHalf; 2], entry: u64) -> Option<bool> {
    let of = |words: &[u64]| words.get(entry as usize / 64).map(|word| word >> (entry % 64) & 1);
    match (&a.valid, &b.valid) {
        (PartyWords::All, PartyWords::All) => Some(true),
        (PartyWords::Shared(a), PartyWords::Shared(b)) => Some(of(a)? ^ of(b)? == 1),
        (PartyWords::Mine(known), PartyWords::Theirs) | (PartyWords::Theirs, PartyWords::Mine(known)) => {
            Some(of(known)? == 1)
        }
        _ => None,
    }
}

/// A column of a party's payload at an entry.
fn value(held: &[JoinedHalf; 2], party: usize, entry: u64, column: usize, columns: usize) -> Option<u64> {
    let at = entry as usize * columns + column;
    match (&held[0].parts[party], &held[1].parts[party]) {
        (PartyWords::Shared(a), PartyWords::Shared(b)) => Some(a.get(at)?.wrapping_add(*b.get(at)?)),
        (PartyWords::Mine(people), PartyWords::Theirs) | (PartyWords::Theirs, PartyWords::Mine(people)) => {
            let person = *people.get(entry as usize)?;
            (person != u64::MAX).then(|| People::value(person, column))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of the pairs of people; one row each.
    fn held(pairs: &[(u64, u64)], valid: &[bool]) -> [JoinedHalf; 2] {
        let mask = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let shares = |side: usize, who: usize| {
            let people = pairs.iter().map(|pair| if who == 0 { pair.0 } else { pair.1 });
            let all = people.flat_map(|person| [0, 1].map(|column| People::value(person, column)));
            let share = |(i, v): (usize, u64)| if side == 0 { mask(i) } else { v.wrapping_sub(mask(i)) };
            PartyWords::Shared(all.enumerate().map(share).collect())
        };
        let bits = valid.iter().enumerate().fold(0, |word, (i, bit)| word | u64::from(*bit) << i);
        [0, 1].map(|side| JoinedHalf {
            rows: pairs.len() as u64,
            slots: 1,
            parts: [shares(side, 0), shares(side, 1)],
            valid: PartyWords::Shared(vec![if side == 0 { 5 } else { 5 ^ bits }]),
        })
    }

    #[test]
    fn a_wrong_join_is_noticed() {
        let of = People::new(0, 6, 2);
        let expected = Expected { rows: 6, pairs: 2, columns: 2 };
        let check = |pairs: &[(u64, u64)], valid: &[bool]| agree(&held(pairs, valid), of, expected);
        assert!(check(&[(5, 5), (4, 4)], &[true, true]));
        assert!(check(&[(5, 5), (1, 2), (4, 4)], &[true, false, true]));
        assert!(!check(&[(5, 5), (1, 1), (4, 4)], &[true, true, true]), "somebody who is not shared");
        assert!(!check(&[(5, 4), (4, 5)], &[true, true]), "crossed");
        assert!(!check(&[(5, 5), (5, 5), (4, 4)], &[true, true, true]), "twice");
        assert!(!check(&[(5, 5)], &[true]), "one is missing");
    }
}

//! How far a peer has bound itself in a match over lanes that is under way: a running hash of its promises, a
//! setting for each study and data. The promises are records of the match's log, which whoever holds its
//! folder can put back to before one; the ledger is what this party goes by.

use super::lineages::last_begun;
use super::{Bytes32, Ledger, MatchStart, begin, file};
use base::{Error, hex};
use rusqlite::{Connection, OptionalExtension, params};

/// Writes a setting, whatever was there.
const PUT: &str =
    "INSERT INTO settings VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

impl Ledger {
    /// The silent match of this nonce speaks, with the hash of no promise; any before is over. False, and
    /// nothing is written, where it speaks already or is not the last one to begin: one beginning serves one
    /// match. `id` is [`super::begun_id`].
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn begin_promises(&mut self, id: &Bytes32, nonce: &Bytes32, head: &Bytes32) -> Result<bool, Error> {
        self.speak(id, nonce, Some(head))
    }

    /// The last match of these data to begin, where nothing was said in it yet but how many rows there are.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn silent_match(&self, id: &Bytes32) -> Result<Option<MatchStart>, Error> {
        silent_match(&self.connection, id).map_err(|e| self.explain("read", &e))
    }

    /// More is said in the silent match of this nonce, of which no promise is kept: as
    /// [`Self::begin_promises`].
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn match_speaks(&mut self, id: &Bytes32, nonce: &Bytes32) -> Result<bool, Error> {
        self.speak(id, nonce, None)
    }

    fn speak(&mut self, id: &Bytes32, nonce: &Bytes32, head: Option<&Bytes32>) -> Result<bool, Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write a promise in", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        if silent_match(&write, id).map_err(explain)?.is_none_or(|silent| silent.nonce != *nonce) {
            return Ok(false);
        }
        write.execute("DELETE FROM settings WHERE name = ?1", [silent(id)]).map_err(explain)?;
        if let Some(head) = head {
            write.execute(PUT, params![setting(id), head]).map_err(explain)?;
        }
        write.commit().map_err(explain)?;
        Ok(true)
    }

    /// The hash of all promises in the match of these data that is under way.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn promises(&self, id: &Bytes32) -> Result<Option<Bytes32>, Error> {
        let sql = "SELECT value FROM settings WHERE name = ?1";
        let head = self.connection.query_row(sql, [setting(id)], |row| row.get(0)).optional();
        head.map_err(|e| self.explain("read", &e))
    }

    /// Goes from one hash to the next. False, and nothing is written, where it is at another one. On return
    /// it is on stable storage.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn add_promise(&mut self, id: &Bytes32, [from, to]: [&Bytes32; 2]) -> Result<bool, Error> {
        let sql = "UPDATE settings SET value = ?3 WHERE name = ?1 AND value = ?2";
        self.set_promises(sql, params![setting(id), from, to])
    }

    /// The match that has come to this hash is over.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn end_promises(&mut self, id: &Bytes32, head: &Bytes32) -> Result<(), Error> {
        let sql = "DELETE FROM settings WHERE name = ?1 AND value = ?2";
        self.set_promises(sql, params![setting(id), head]).map(|_| ())
    }

    /// The match of these data goes on no more, or none does, whatever folders come back: it is made anew.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn forget_promises(&mut self, id: Option<&Bytes32>) -> Result<(), Error> {
        forget_promises(&self.connection, id).map_err(|e| self.explain("write to", &e))
    }

    fn set_promises(&self, sql: &str, values: impl rusqlite::Params) -> Result<bool, Error> {
        let changed = self.connection.execute(sql, values);
        changed.map(|rows| rows == 1).map_err(|e| self.explain("write a promise in", &e))
    }
}

/// [`Ledger::silent_match`] within a transaction.
pub(super) fn silent_match(ledger: &Connection, id: &Bytes32) -> Result<Option<MatchStart>, rusqlite::Error> {
    let sql = "SELECT value FROM settings WHERE name = ?1";
    let nonce = ledger.query_row(sql, [silent(id)], |row| row.get::<_, Bytes32>(0)).optional()?;
    Ok(last_begun(ledger, id)?.filter(|last| nonce == Some(last.nonce)))
}

pub(super) fn set_silent(ledger: &Connection, id: &Bytes32, nonce: &Bytes32) -> Result<(), rusqlite::Error> {
    ledger.execute(PUT, params![silent(id), nonce]).map(|_| ())
}

/// Takes the hash of a match away, or those of all, from a ledger or a copy of one.
pub(super) fn forget_promises(ledger: &Connection, id: Option<&Bytes32>) -> Result<(), rusqlite::Error> {
    let names = id.map_or_else(|| "promises *".to_owned(), setting);
    ledger.execute("DELETE FROM settings WHERE name GLOB ?1", [names]).map(|_| ())
}

fn setting(id: &Bytes32) -> String {
    format!("promises {}", hex(id))
}

/// Goes with the promises: in a copy of the ledger every start counts.
fn silent(id: &Bytes32) -> String {
    format!("promises none {}", hex(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A match begins to speak.
    fn speaks(ledger: &mut Ledger, id: &Bytes32, head: &Bytes32) {
        let begun = ledger.begin_silent_match(id, &|_| Ok(Vec::new())).unwrap();
        assert!(ledger.begin_promises(id, &begun.nonce, head).unwrap());
    }

    /// Two processes that took one beginning up are of two matches, and it was counted once: the second one
    /// to speak is refused.
    #[test]
    fn one_beginning_serves_one_match() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l");
        let (id, none) = ([1; 32], &|_| Ok(Vec::new()));
        let [mut first, mut second] = [(); 2].map(|()| Ledger::open(&path).unwrap());
        let begun = first.begin_silent_match(&id, none).unwrap();
        assert_eq!(second.begin_silent_match(&id, none).unwrap(), begun);
        assert!(first.begin_promises(&id, &begun.nonce, &[3; 32]).unwrap());
        assert!(!second.begin_promises(&id, &begun.nonce, &[4; 32]).unwrap());
        assert!(!second.match_speaks(&id, &begun.nonce).unwrap());
        assert_eq!(second.promises(&id).unwrap(), Some([3; 32]));
        // The mark of a later beginning is not the first one's to take.
        let later = first.begin_silent_match(&id, none).unwrap();
        assert!(!second.match_speaks(&id, &begun.nonce).unwrap());
        assert_eq!(second.silent_match(&id).unwrap(), Some(later));
    }

    /// A match that is cut before anything is said of its rows is taken up: it is neither counted nor charged
    /// twice.
    #[test]
    fn a_match_counts_once_until_it_speaks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l");
        let (id, none) = ([1; 32], &|_| Ok(Vec::new()));
        let mut ledger = Ledger::open(&path).unwrap();
        let first = ledger.begin_silent_match(&id, none).unwrap();
        assert_eq!(Ledger::open(&path).unwrap().begin_silent_match(&id, none).unwrap(), first);
        assert_eq!(ledger.silent_match(&[2; 32]).unwrap(), None);
        assert!(ledger.begin_promises(&id, &first.nonce, &[3; 32]).unwrap());
        let second = ledger.begin_silent_match(&id, none).unwrap();
        assert_eq!((first.number, second.number), (1, 2));
        // One that speaks at once has begun after it, and so has one in a copy, which may be an older one.
        assert_eq!(ledger.begin_match(&id, none).unwrap().number, 3);
        assert_eq!(ledger.begin_silent_match(&id, none).unwrap().number, 4);
        let copy = folder.path().join("copy");
        ledger.backup(&copy).unwrap();
        assert_eq!(Ledger::open(&copy).unwrap().begin_silent_match(&id, none).unwrap().number, 5);
        let silent = ledger.silent_match(&id).unwrap().unwrap();
        assert!(ledger.match_speaks(&id, &silent.nonce).unwrap());
        assert_eq!(ledger.begin_silent_match(&id, none).unwrap().number, 5);
    }

    /// What one process has written, another one goes by; who is not at the last promise writes none.
    #[test]
    fn promises_go_on_from_the_last_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l");
        let (id, other) = ([1; 32], [2; 32]);
        let mut ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.promises(&id).unwrap(), None);
        assert!(!ledger.add_promise(&id, [&[3; 32], &[4; 32]]).unwrap(), "none is under way");
        speaks(&mut ledger, &id, &[3; 32]);
        let mut second = Ledger::open(&path).unwrap();
        assert!(ledger.add_promise(&id, [&[3; 32], &[4; 32]]).unwrap());
        assert!(!second.add_promise(&id, [&[3; 32], &[5; 32]]).unwrap());
        assert_eq!(second.promises(&id).unwrap(), Some([4; 32]));
        assert_eq!(second.promises(&other).unwrap(), None);
        // A process that is behind ends nothing.
        second.end_promises(&id, &[3; 32]).unwrap();
        assert_eq!(ledger.promises(&id).unwrap(), Some([4; 32]));
        ledger.end_promises(&id, &[4; 32]).unwrap();
        assert_eq!(second.promises(&id).unwrap(), None);
        speaks(&mut second, &id, &[6; 32]);
        speaks(&mut second, &id, &[7; 32]);
        assert_eq!(ledger.promises(&id).unwrap(), Some([7; 32]));
    }

    /// No match is under way in a copy: what was promised since is not in it. All that was is forgotten at
    /// once where the ledger itself may be an older one.
    #[test]
    fn promises_are_in_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let [path, to] = ["l", "copy"].map(|name| folder.path().join(name));
        let mut ledger = Ledger::open(&path).unwrap();
        speaks(&mut ledger, &[1; 32], &[3; 32]);
        speaks(&mut ledger, &[2; 32], &[4; 32]);
        ledger.backup(&to).unwrap();
        let copy = Ledger::open(&to).unwrap();
        assert_eq!([1, 2].map(|id| copy.promises(&[id; 32]).unwrap()), [None; 2]);
        assert_eq!(ledger.promises(&[2; 32]).unwrap(), Some([4; 32]));
        ledger.forget_promises(Some(&[1; 32])).unwrap();
        assert_eq!([1, 2].map(|id| ledger.promises(&[id; 32]).unwrap()), [None, Some([4; 32])]);
        ledger.forget_promises(None).unwrap();
        assert_eq!([1, 2].map(|id| ledger.promises(&[id; 32]).unwrap()), [None; 2]);
    }
}

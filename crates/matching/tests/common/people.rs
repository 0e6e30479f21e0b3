//! Rows of several identifiers for tests.
#![allow(dead_code, reason = "each test file uses its part")]

use base::Error;
use matching::IdentifierSource;

/// Rows in memory; an empty text is no identifier.
pub struct Rows {
    pub keys: usize,
    pub rows: Vec<Vec<String>>,
}

impl Rows {
    pub fn new(keys: usize, rows: &[&[&str]]) -> Self {
        let row = |names: &&[&str]| (0..keys).map(|k| names.get(k).unwrap_or(&"").to_string()).collect();
        Self { keys, rows: rows.iter().map(row).collect() }
    }
}

impl IdentifierSource for Rows {
    fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    fn keys(&self) -> usize {
        self.keys
    }

    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        into.extend_from_slice(self.rows[row as usize][key].as_bytes());
        Ok(())
    }
}

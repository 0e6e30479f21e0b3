//! Rows that every party has, by a public key.
//!
//! Functionality: every party has the same set of identifiers; row i is the one of the i-th identifier in the
//! order of their bytes. Security: none is needed for the identifiers, which all parties hold already; the
//! other columns are not touched. Who learns what: each party the number of rows of every other, and whether
//! the sets are equal. A party that guesses another's whole set could have the guess confirmed.
//!
//! One message to each peer: the number of rows (8 bytes) and a BLAKE3 hash of the sorted identifiers (32
//! bytes).

use super::agree::tell;
use base::{Cost, Error, PartyId};
use data::RowKeys;
use net::Session;

const MESSAGE: usize = 8 + 32;

/// The position of each own row among all identifiers, which `peers` have, too.
///
/// # Errors
/// When another party has other identifiers: whose, and how many, never which.
pub(super) fn run(
    session: &mut Session,
    peers: &[PartyId],
    identifiers: &RowKeys,
) -> Result<Vec<u32>, Error> {
    let order = identifiers.sorted();
    let mut hasher = blake3::Hasher::new_derive_key("tacit aligned rows 1");
    for &row in &order {
        let key = identifiers.get(row as usize, 0);
        hasher.update(&(key.len() as u64).to_le_bytes()).update(key);
    }
    let count = identifiers.len() as u64;
    let mut mine = [0; MESSAGE];
    mine[..8].copy_from_slice(&count.to_le_bytes());
    mine[8..].copy_from_slice(hasher.finalize().as_bytes());
    let mut differ = Vec::new();
    for (peer, theirs) in tell(session, peers, mine)? {
        let rows = u64::from_le_bytes(theirs[..8].try_into().expect("eight bytes"));
        let name = session.roster().name(peer);
        if rows != count {
            differ.push(format!("{name} has {rows} rows"));
        } else if theirs != mine {
            differ.push(format!("{name} has as many rows, but other identifiers"));
        }
    }
    if !differ.is_empty() {
        return Err(Error::input(format!(
            "the rows are not aligned: this party has {count} rows, {}; all files must hold the same \
             identifiers",
            differ.join(", ")
        )));
    }
    let mut positions = vec![0; order.len()];
    for (position, row) in order.into_iter().enumerate() {
        positions[row as usize] = position as u32;
    }
    Ok(positions)
}

/// Exact cost among so many parties.
pub(crate) fn price(parties: usize) -> Cost {
    Cost { rounds: 1, sent: vec![(MESSAGE * (parties - 1)) as u64; parties], ..Cost::default() }
}

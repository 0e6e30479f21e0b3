//! Rows that every party has, by a public key.
//!
//! * **Functionality.** Every party has the same set of identifiers; row i is the one of the i-th identifier
//!   in the order of their bytes.
//! * **Security.** None is needed for the identifiers, which all parties hold already; the other columns are
//!   not touched.
//! * **Who learns what.** Each party the number of rows of every other, and whether the sets are equal.
//!   Servers that compute: the number of rows. A party that guesses another's whole set could have the guess
//!   confirmed.
//! * **Cost.** One message to each peer: the number of rows (8 bytes) and a BLAKE3 hash of the sorted
//!   identifiers (32 bytes). To each server the number of rows. [`price`] is exact.

use crate::identifiers::IdentifierSource;
use crate::matcher::{
    MatchDisclosure, MatchEstimate, MatchFeatures, MatchInput, MatchOptions, MatchOutcome, MatchRoles,
    MatchSizes, Matcher, PlannedRows,
};
use crate::places::OwnPlaces;
use base::{Cost, Error, PartyId, limits};
use net::Session;

const MESSAGE: usize = 8 + 32;

/// Rows that every party has.
pub struct AlignedRows;

impl Matcher for AlignedRows {
    fn name(&self) -> &'static str {
        "aligned"
    }

    fn features(&self) -> MatchFeatures {
        MatchFeatures {
            parties: 1..=limits::PARTIES,
            dummies: false,
            keeps_spine: false,
            public_identifiers: true,
            ..MatchFeatures::SPINE
        }
    }

    fn tells(&self, _sizes: &str, _first: &str, _options: &MatchOptions) -> String {
        "the identifiers are public: all files must hold the same".to_owned()
    }

    fn price(&self, _sizes: &MatchSizes, options: &MatchOptions) -> Cost {
        price(&options.roles)
    }

    fn estimate(&self, planned: &PlannedRows<'_>, _options: &MatchOptions) -> MatchEstimate {
        let rows = planned.rows[0];
        let sizes = MatchSizes { union: rows, ..planned.sizes() };
        MatchEstimate { sizes, rows, waits: 1.0, why: String::new(), ..MatchEstimate::of(planned) }
    }

    fn step(&self) -> Option<&'static str> {
        None
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let MatchInput { rows: own, options, .. } = input;
        let (order, digest) = sorted(own)?;
        let mut mine = [0; MESSAGE];
        mine[..8].copy_from_slice(&own.rows().to_le_bytes());
        mine[8..].copy_from_slice(&digest);
        compare(session, &options.roles, &mine)?;
        for &server in &options.roles.others {
            let mut link = session.link(server);
            link.send(&own.rows().to_le_bytes())?;
            link.flush()?;
        }
        let mut positions = vec![0; order.len()];
        order.into_iter().zip(0..).for_each(|(row, position)| positions[row as usize] = position);
        let sizes = same(own.rows(), options.roles.owners.len());
        Ok(MatchOutcome::spine_of(own.rows(), OwnPlaces::of(positions), MatchDisclosure::of(sizes)))
    }

    /// Hears the number of rows, which every owner tells.
    fn serve(&self, session: &mut Session, options: &MatchOptions) -> Result<MatchSizes, Error> {
        let (mut rows, owners) = (None, &options.roles.owners);
        for (at, &owner) in owners.iter().enumerate() {
            let told = session.link(owner).recv_count("rows of an owner", limits::ROWS)?;
            if *rows.get_or_insert(told) != told {
                let check = "the owners tell different numbers of rows";
                return Err(session.accuse_one_of(&owners[..=at], check));
            }
        }
        rows.map(|rows| same(rows, owners.len())).ok_or_else(|| Error::misuse("a study has owners"))
    }
}

fn same(rows: u64, owners: usize) -> MatchSizes {
    MatchSizes { rows: vec![rows; owners], keys: vec![1; owners], union: rows }
}

/// Own rows in the order of their identifiers, and a hash of these.
fn sorted(own: &dyn IdentifierSource) -> Result<(Vec<u32>, [u8; 32]), Error> {
    let (mut bytes, mut ends, mut name) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..own.rows() {
        own.read(row as u32, 0, &mut name)?;
        bytes.extend_from_slice(&name);
        ends.push(bytes.len());
    }
    let name = |row: u32| {
        let start = row.checked_sub(1).map_or(0, |before| ends[before as usize]);
        &bytes[start..ends[row as usize]]
    };
    let mut order: Vec<u32> = (0..own.rows() as u32).collect();
    order.sort_unstable_by_key(|&row| name(row));
    let mut hasher = blake3::Hasher::new_derive_key("tacit aligned rows 1");
    for &row in &order {
        hasher.update(&(name(row).len() as u64).to_le_bytes()).update(name(row));
    }
    Ok((order, *hasher.finalize().as_bytes()))
}

/// Owners tell each other, and hear the same.
fn compare(session: &mut Session, roles: &MatchRoles, mine: &[u8; MESSAGE]) -> Result<(), Error> {
    let me = session.me();
    let peers: Vec<PartyId> = roles.owners.iter().copied().filter(|owner| *owner != me).collect();
    for &peer in &peers {
        session.link(peer).send(mine)?;
        session.link(peer).flush()?;
    }
    let rows = |message: &[u8; MESSAGE]| u64::from_le_bytes(*message.first_chunk().expect("eight bytes"));
    let mut differ = Vec::new();
    for peer in peers {
        let theirs: [u8; MESSAGE] = session.link(peer).recv_array()?;
        let name = session.roster().name(peer);
        if rows(&theirs) != rows(mine) {
            differ.push(format!("{name} has {} rows", rows(&theirs)));
        } else if theirs != *mine {
            differ.push(format!("{name} has as many rows, but other identifiers"));
        }
    }
    if differ.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!(
        "the rows are not aligned: this party has {} rows, {}; all files must hold the same identifiers",
        rows(mine),
        differ.join(", ")
    )))
}

/// The exact cost.
fn price(roles: &MatchRoles) -> Cost {
    let (owners, servers) = (roles.owners.len(), roles.others.len());
    let mut cost = Cost { rounds: 1, ..Cost::zero(roles.everybody()) };
    cost.sent[..owners].fill((MESSAGE * (owners - 1) + 8 * servers) as u64);
    cost
}

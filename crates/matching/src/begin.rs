//! What every protocol does before its first message, and how two parties hold their sizes against limits.

use crate::dummies::{self, DummyPlan};
use crate::identifiers::IdentifierSource;
use crate::matcher::{MatchFeatures, MatchOptions};
use crate::payload::PayloadSource;
use base::{Error, Fault, PartyId, limits};
use net::Session;

/// Whether parties, rows and options fit the protocol; this party's dummies, if there are to be some.
pub(crate) fn begin(
    (name, features): (&str, MatchFeatures),
    session: &Session,
    own: &dyn IdentifierSource,
    payload: Option<&dyn PayloadSource>,
    options: &MatchOptions,
) -> Result<Option<DummyPlan>, Error> {
    let me = session.me().index();
    let parties = match &options.roles.owners[..] {
        [] => session.roster().len(),
        owners => owners.len(),
    };
    if !features.parties.contains(&parties) {
        let (least, most) = features.parties.into_inner();
        return Err(Error::misuse(format!("{name} is for {least} to {most} parties, here are {parties}")));
    }
    if !features.keys.contains(&own.keys()) {
        let most = *features.keys.end() as u64;
        return Err(Error::limit("identifiers of a row", own.keys() as u64, most));
    }
    let shared = features.form.shared().is_some_and(|shared| shared[me]);
    let fits = |payload: &dyn PayloadSource| {
        shared && payload.rows() == own.rows() && *payload.layout() == options.layouts[me]
    };
    if !payload.map_or(!shared, fits) {
        return Err(Error::misuse(
            "a party whose values become shares has payload of the agreed layout, a row per identifier, and \
             no other party has any",
        ));
    }
    let blank = options.blank.as_ref().filter(|_| shared);
    if blank.is_some_and(|blank| blank.len() != options.layouts[me].row_bytes()) {
        return Err(Error::misuse("a blank row is as wide as a row of the payload"));
    }
    let dummies = options.dummies.as_ref().filter(|_| features.dummies);
    dummies::plan(session, dummies, features.shown)
}

/// The most rows that a peer may have.
pub(crate) fn peer_rows_max(options: &MatchOptions) -> u64 {
    options.peer_rows_max.min(limits::ROWS)
}

/// Own number and the peer's, in the order of the parties.
pub(crate) fn by_party<T>(me: PartyId, own: T, peer: T) -> [T; 2] {
    if me == PartyId(0) { [own, peer] } else { [peer, own] }
}

/// Refuses a size that is over a limit, with whoever told it.
pub(crate) fn within(
    session: &Session,
    peer: Option<PartyId>,
    name: &'static str,
    [value, cap]: [u64; 2],
) -> Result<(), Error> {
    if value <= cap {
        return Ok(());
    }
    Err(Error::new(session.at(peer), Fault::Limit { name, value, cap }))
}

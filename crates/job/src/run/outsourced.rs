//! What an owner of data does in a study that four servers compute, beyond what it does in any study; and
//! what owners and servers do alike.
//!
//! Among the owners everything is as in a run without servers: they agree and charge their ledgers. Servers
//! hear of it what they need to make the same calls: the program, whether to begin, how many rows there are,
//! group sizes that the release mode makes public, and whether a release has been given before. They draw the
//! noise, before the rows where its scale is known.

use super::agree::{others_of, tell, tell_all};
use super::owner::OwnerRun;
use crate::prepare::Checked;
use crate::stages::upgrade;
use base::{Error, Fault, PartyId, Roster, Seed};
use matching::MatchRoles;
use net::{Channels, Session};
use privacy::ledger::Bytes32;
use std::collections::BTreeMap;
use study::party::{Address, PartySetup, Places};
use study::salt;
use study::transport::ServerTransport;
use study::{Servers, Study};

/// What owners tell servers once they agree among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum StartSignal {
    /// The study runs.
    Begin = 1,
    /// All owners hold its result already.
    Stored = 2,
    /// An owner's ledger or policy does not allow it.
    Refused = 3,
}

impl StartSignal {
    pub fn of(byte: u8) -> Option<Self> {
        [Self::Begin, Self::Stored, Self::Refused].into_iter().find(|signal| *signal as u8 == byte)
    }
}

/// Everybody in the session who is no party of the study.
pub(crate) fn servers_apart(study: &Study) -> Vec<PartyId> {
    study.roster().parties().skip(study.parties.len()).collect()
}

/// Who takes part in the match.
pub(crate) fn roles(study: &Study) -> MatchRoles {
    let servers = study.servers.as_ref().filter(|_| study.matching.matcher.features().salted);
    let joiners = servers.and_then(|servers| servers.joiners).map(Vec::from).unwrap_or_default();
    let others = servers_apart(study).into_iter().filter(|server| !joiners.contains(server)).collect();
    MatchRoles { owners: (0..study.parties.len() as u8).map(PartyId).collect(), joiners, others }
}

/// Where somebody meets the others: servers are gone to, in the order of their names; then owners that are
/// none.
pub(super) fn places(
    address: &Address,
    study: &Study,
    servers: &Servers,
    me: PartyId,
) -> Result<Places, Error> {
    let (roster, seats) = (study.roster(), servers.seats());
    let rest = roster.parties().filter(|party| !seats.contains(party));
    let order: Vec<PartyId> = seats.into_iter().chain(rest).collect();
    address.places_among(me, &roster, &order)
}

/// The other servers, whom a party with `trigger` tells to begin, and where they are.
pub(super) fn nodes(
    study: &Study,
    me: PartyId,
    address: &Address,
) -> Result<BTreeMap<PartyId, String>, Error> {
    let (roster, none) = (study.roster(), BTreeMap::new());
    let addresses = match address {
        Address::Peers { peers, .. } => peers,
        Address::Listen(_) | Address::Peer(_) => &none,
    };
    let others = study.servers.iter().flat_map(Servers::seats).filter(|seat| *seat != me);
    let at = |seat| {
        let name = roster.name(seat);
        let at = addresses.get(&name).cloned().ok_or_else(|| {
            Error::input(format!(
                "no address of {name}, whom this party is to tell to begin (`trigger`): add {name} = \
                 \"host:port\" under [peers], or --peer {name}=host:port"
            ))
        })?;
        Ok((seat, at))
    };
    others.map(at).collect()
}

/// Lanes beyond the connections of the coordinators, over which servers and owners compute ranges of rows.
pub(super) fn more_lanes(study: &Study) -> u32 {
    study.servers.as_ref().map_or(0, |_| study.compute.shards - 1)
}

/// A session for each of these lanes, under an id of its own.
pub(super) fn lane_sessions(session: &Session, lanes: Vec<Channels>) -> Vec<Session> {
    let of = |(lane, channels): (u32, Channels)| {
        let mut hasher = blake3::Hasher::new_derive_key("tacit lane of rows 1");
        hasher.update(session.id()).update(&lane.to_le_bytes());
        let new = Session::new(session.me(), session.roster().clone(), channels, super::session_seed());
        new.with_id(*hasher.finalize().as_bytes())
    };
    (1..).zip(lanes).map(of).collect()
}

/// The salt of a match by keyed hashes.
pub(super) fn salt_of(party: &PartySetup, checked: &Checked) -> Result<Option<Seed>, Error> {
    let path = party.salt.as_ref().filter(|_| checked.study.matching.matcher.features().salted);
    path.map(|path| salt::load(path)).transpose()
}

/// Everybody holds the same program: owners and servers tell each other.
pub(super) fn same_program(session: &mut Session, program: [u8; 32]) -> Result<(), Error> {
    session.step("agree", |session| {
        let theirs = tell_all(session, program)?;
        match theirs.into_iter().find(|(_, theirs)| *theirs != program) {
            None => Ok(()),
            Some((peer, _)) => Err(Error::new(
                session.at(Some(peer)),
                Fault::Input(
                    "it built another program from the same study: both sides run different versions of \
                     tacit"
                        .into(),
                ),
            )),
        }
    })
}

impl OwnerRun<'_> {
    /// The first words, before anything else is said: owners compare their salts, and everybody the program.
    /// Nothing without servers.
    pub(super) fn greet(&mut self) -> Result<(), Error> {
        if self.checked.study.servers.is_none() {
            return Ok(());
        }
        if let Some(salt) = &self.salt {
            let mut hasher = blake3::Hasher::new_derive_key("tacit salt compared 1");
            hasher.update(salt.expose()).update(self.checked.hash.as_bytes());
            let (mine, owners) = (*hasher.finalize().as_bytes(), others_of(self.checked));
            let theirs = self.session.step("agree", |s| tell(s, &owners, mine))?;
            if let Some((peer, _)) = theirs.into_iter().find(|(_, theirs)| *theirs != mine) {
                return Err(Error::input(format!(
                    "the salt of {} is another one than this party's; all owners use the file that one of \
                     them made (`salt`)",
                    self.checked.roster.name(peer)
                )));
            }
        }
        same_program(&mut self.session, self.checked.built.program.hash())
    }

    /// What the servers compute over, where the study has some.
    pub(super) fn settle_transport(&mut self) -> Result<ServerTransport, Error> {
        let study = &self.checked.study;
        let Some(servers) = &study.servers else { return Ok(ServerTransport::Tls) };
        let mine = &self.party.transport;
        let used =
            upgrade::settle((&mut self.session, &mut self.row_lanes), &mut self.log, (study, servers), mine)?;
        if self.party.tls_only && used != ServerTransport::Tls {
            return Err(Error::refused(format!(
                "the servers compute over {used}, and this party's transport = \"tls\" does not allow it: no \
                 row was shared. The servers' operators can set \"tls\" in their party files, or all agree \
                 on [ring4] transport in the study; otherwise remove the line"
            )));
        }
        Ok(used)
    }

    /// Tells the servers what the owners agreed on.
    pub(super) fn tell_servers(&mut self, signal: StartSignal, common: &Bytes32) -> Result<(), Error> {
        let servers = servers_apart(&self.checked.study);
        self.session.step("agree", |session| {
            for server in servers {
                session.link(server).send(&[signal as u8])?;
                session.link(server).send(common)?;
                session.link(server).flush()?;
            }
            Ok(())
        })
    }
}

/// Whether workers compute a study, in units: between two owners who compute themselves.
pub(crate) fn computes_in_units(study: &Study) -> bool {
    study.servers.is_none() && study.parties.len() == 2
}

/// The names of some parties, with commas between.
pub(super) fn names(roster: &Roster, parties: impl IntoIterator<Item = PartyId>) -> String {
    parties.into_iter().map(|party| roster.name(party)).collect::<Vec<_>>().join(", ")
}

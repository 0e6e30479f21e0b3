//! What an owner of data does in a study that four servers compute, beyond what it does in any study; and
//! what owners and servers do alike.
//!
//! Among the owners everything is as in a run without servers: they agree and charge their ledgers. Servers
//! hear of it what they need to make the same calls: the program, whether to begin, how many rows there are,
//! group sizes that the release mode makes public, and whether a release has been given before. They draw the
//! noise, before the rows where its scale is known.

use super::agree::{others_of, tell, tell_all};
use super::matched::Placed;
use super::stages::Stages;
use super::{Coordinator, released, transport};
use crate::align::Shard;
use crate::prepare::{Built, Checked};
use base::{Error, Fault, PartyId, Roster, Seed};
use engine::{Engine, Entered, Shares};
use matching::MatchRoles;
use net::Session;
use privacy::ledger::Bytes32;
use privacy::scales::Scales;
use program::ShardRows;
use std::collections::BTreeMap;
use study::Study;
use study::party::{Address, PartySetup, Places};
use study::salt;
use study::transport::ServerTransport;

/// The stage in which servers draw noise.
pub(crate) const NOISE: &str = "noise";

/// What owners tell servers once they agree among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Word {
    /// The study runs.
    Begin = 1,
    /// All owners hold its result already.
    Stored = 2,
    /// An owner's ledger or policy does not allow it.
    Refused = 3,
}

impl Word {
    pub fn of(byte: u8) -> Option<Self> {
        [Self::Begin, Self::Stored, Self::Refused].into_iter().find(|word| *word as u8 == byte)
    }
}

/// Everybody in the session who is no party of the study.
pub(crate) fn servers_apart(study: &Study) -> Vec<PartyId> {
    study.roster().parties().skip(study.parties.len()).collect()
}

/// Who takes part in the match.
pub(crate) fn roles(study: &Study) -> MatchRoles {
    let salted = study.matching.matcher.features().salted;
    let joiners = study.joiners().filter(|_| salted).map(Vec::from).unwrap_or_default();
    let others = servers_apart(study).into_iter().filter(|server| !joiners.contains(server)).collect();
    MatchRoles { owners: (0..study.parties.len() as u8).map(PartyId).collect(), joiners, others }
}

/// Where somebody meets the others: servers are gone to, in the order of their names; then owners that are
/// none.
pub(super) fn places(address: &Address, study: &Study, me: PartyId) -> Result<Places, Error> {
    let roster = study.roster();
    let seats = study.seats().ok_or_else(|| Error::misuse("a study by ring4 has four servers"))?;
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
    let others = study.seats().into_iter().flatten().filter(|seat| *seat != me);
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

/// Whether group sizes are published after the rows, so that no scale is known before.
pub(crate) fn publishes(built: &Built) -> bool {
    built.lift.as_ref().is_some_and(|(_, layout)| layout.published.is_some())
}

/// The noise of all releases, as soon as the scales are known. The same at owners and servers.
pub(super) fn draw(
    session: &mut Session,
    stages: &mut Stages,
    (engine, built): (&mut dyn Engine, &Built),
    scales: &Scales,
) -> Result<(), Error> {
    let draws = scales.draws(engine, &released::plans(engine, built, scales)?);
    let count = draws.drawn.len() as u64;
    if count > 0 {
        stages.begin(NOISE, count);
        let given = Entered::nothing(draws.words.len());
        session.step(NOISE, |s| engine.draw(&draws, &given, s))?;
        stages.end(session.ledger(), NOISE, count, engine.price_draw(&draws));
    }
    Ok(())
}

/// Row and combine at four servers. The same at owners and servers.
pub(super) fn compute(
    session: &mut Session,
    stages: &mut Stages,
    (engine, built): (&mut dyn Engine, &Built),
    rows: &mut dyn ShardRows,
) -> Result<Shares, Error> {
    let count = rows.len();
    stages.begin("compute", count);
    let price = engine.price_rows(&built.program, count);
    let shares = session.step("compute", |s| engine.rows(&built.program, rows, s))?;
    stages.end(session.ledger(), "compute", count, price);
    Ok(shares)
}

impl Coordinator<'_> {
    /// The first words, before anything else is said: owners compare their salts, and everybody the program.
    /// Nothing without servers.
    pub(super) fn greet(&mut self) -> Result<(), Error> {
        if self.checked.study.servers.is_none() {
            return Ok(());
        }
        if let Some(salt) = &self.salt {
            let mut hasher = blake3::Hasher::new_derive_key("tacit salt compared 1");
            hasher.update(salt.expose()).update(self.checked.hash.as_bytes());
            let (mine, owners) = (*hasher.finalize().as_bytes(), others_of(&self.checked));
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
    pub(super) fn settle_transport(&mut self) -> Result<(), Error> {
        if self.checked.study.servers.is_some() {
            let Checked { study, engines, .. } = &mut self.checked;
            let mine = &self.party.transport;
            self.transport = transport::settle(&mut self.session, &mut self.stages, study, mine, engines)?;
            if self.party.tls_only && self.transport != ServerTransport::Tls {
                return Err(Error::refused(format!(
                    "the servers compute over {}, and this party's transport = \"tls\" does not allow it: no \
                     row was shared. The servers' operators can set \"tls\" in their party files, or all \
                     agree on [ring4] transport in the study; otherwise remove the line",
                    self.transport
                )));
            }
        }
        Ok(())
    }

    /// Tells the servers what the owners agreed on.
    pub(super) fn tell_servers(&mut self, word: Word, common: &Bytes32) -> Result<(), Error> {
        let servers = servers_apart(&self.checked.study);
        self.session.step("agree", |session| {
            for server in servers {
                session.link(server).send(&[word as u8])?;
                session.link(server).send(common)?;
                session.link(server).flush()?;
            }
            Ok(())
        })
    }

    /// Row and combine at the servers.
    pub(super) fn outsource(&mut self, rows: &Placed) -> Result<Shares, Error> {
        let Placed::Spine(spine) = rows else {
            return Err(Error::misuse("servers compute on a spine"));
        };
        let Checked { built, engines, me, .. } = &self.checked;
        let mut shard = Shard::new(spine.clone(), built, *me, 0, 1);
        let engine = self.servers.get_or_insert_with(|| engines.make());
        compute(&mut self.session, &mut self.stages, (&mut **engine, built), &mut shard)
    }

    /// Draws the noise of all releases, where servers do.
    pub(super) fn draw(&mut self, scales: &Scales) -> Result<(), Error> {
        let Checked { study, built, engines, .. } = &self.checked;
        if study.servers.is_none() {
            return Ok(());
        }
        let engine = self.servers.get_or_insert_with(|| engines.make());
        draw(&mut self.session, &mut self.stages, (&mut **engine, built), scales)
    }
}

/// The names of some parties, with commas between.
pub(super) fn names(roster: &Roster, parties: impl IntoIterator<Item = PartyId>) -> String {
    parties.into_iter().map(|party| roster.name(party)).collect::<Vec<_>>().join(", ")
}

//! How the servers of a study come to compute over the transport that all of them set.
//!
//! Functionality: the four seats say over TLS what each is set to. Where all say the same, they make plain
//! channels among themselves, all or none, and tell owners without a seat what came of it. Security: the
//! words go over TLS; a server that lies makes the run end, for the settings are among what the engine's keys
//! are agreed under. From here on the session keeps to TLS, and only the computation, whose messages are
//! masked, goes over plain channels ([`Session::openly`]). Who learns what: everybody the transport. Cost: 32
//! bytes to everybody else, and the price of [`UpgradeStage`]. Every lane of rows has channels of its own.

use super::{Stage, StageLog, Tells};
use crate::engines::Estimate;
use crate::plan::{Link, Speeds};
use crate::run::agree::tell;
use base::{Cost, Error, Fault, PartyId};
use fabric::{PlainTransport, UpgradeOutcome};
use net::Session;
use study::transport::{NAME_BYTES, ServerTransport};
use study::{SEATS, Servers, Study};

/// Making plain channels of one kind among the four servers.
pub(crate) struct UpgradeStage<'a> {
    pub study: &'a Study,
    pub kind: PlainTransport,
}

impl Stage for UpgradeStage<'_> {
    type Sizes = ();

    fn name(&self) -> &'static str {
        "upgrade"
    }

    fn price(&self, (): &()) -> Result<Cost, Error> {
        let mut cost = Cost::zero(self.study.roster().len());
        let seats = self.study.servers.iter().flat_map(Servers::seats);
        for me in seats.clone() {
            for peer in seats.clone().filter(|peer| *peer != me) {
                let lanes = u64::from(self.study.compute.shards);
                cost.sent[me.index()] += lanes * fabric::upgrade_bytes(me, peer, &self.kind);
                cost.rounds += lanes;
            }
        }
        Ok(cost)
    }

    fn estimate(&self, link: Link, _speeds: Speeds) -> Result<Estimate, Error> {
        Ok(Estimate::of_messages(self.price(&())?, link, 1.0))
    }

    fn tells(&self) -> Vec<Tells> {
        vec![Tells::everybody("the transport of the servers".to_owned())]
    }
}

/// Settles the transport of this run. `mine` is what this party is set to; it does not count where it has no
/// seat.
pub(crate) fn settle(
    (session, lanes): (&mut Session, &mut [Session]),
    log: &mut StageLog,
    (study, servers): (&Study, &Servers),
    mine: &ServerTransport,
) -> Result<ServerTransport, Error> {
    let seats = servers.seats();
    let used = if seats.contains(&session.me()) {
        let peers: Vec<PartyId> = seats.into_iter().filter(|seat| *seat != session.me()).collect();
        session.step("agree", |s| same(s, &peers, mine))?;
        session.keep_private();
        lanes.iter_mut().for_each(Session::keep_private);
        let used = upgrade((session, lanes), log, study, &peers, mine)?;
        session.step("agree", |s| tell_owners(s, study, &seats, &used))?;
        used
    } else {
        let used = session.step("agree", |s| hear(s, seats))?;
        agreed(servers, &used)?;
        used
    };
    Ok(used)
}

/// What the servers say that they use is what the owners agreed on, where they did.
fn agreed(servers: &Servers, used: &ServerTransport) -> Result<(), Error> {
    match &servers.transport {
        None => Ok(()),
        Some(agreed) if agreed == used => Ok(()),
        Some(ServerTransport::Auto)
            if [ServerTransport::Tls, ServerTransport::Plain(PlainTransport::Shm)].contains(used) =>
        {
            Ok(())
        }
        Some(agreed) => Err(Error::refused(format!(
            "the study says [ring4] transport = \"{agreed}\", and the servers say that they compute over \
             {used}: no row was shared"
        ))),
    }
}

/// All four are set to the same.
fn same(session: &mut Session, peers: &[PartyId], mine: &ServerTransport) -> Result<(), Error> {
    for (peer, theirs) in tell(session, peers, mine.told())? {
        if theirs == mine.told() {
            continue;
        }
        let theirs = ServerTransport::heard(&theirs)
            .ok_or_else(|| session.link(peer).malformed("the transport that it is set to"))?;
        let [me, name] = [session.me(), peer].map(|party| session.roster().name(party));
        return Err(Error::new(
            session.at(Some(peer)),
            Fault::Input(format!(
                "the servers are set to different transports: {me} to \"{mine}\" and {name} to \"{theirs}\"; \
                 all four write the same lines `transport` and `trusted_network` in their party files, so \
                 change them at {me} or at {name}"
            )),
        ));
    }
    Ok(())
}

/// Makes the channels. What came of it is the same at all four.
fn upgrade(
    (session, lanes): (&mut Session, &mut [Session]),
    log: &mut StageLog,
    study: &Study,
    peers: &[PartyId],
    mine: &ServerTransport,
) -> Result<ServerTransport, Error> {
    let Some(kind) = mine.plain() else { return Ok(ServerTransport::Tls) };
    let stage = UpgradeStage { study, kind };
    let outcome = log.run(&stage, session, |session| {
        let outcome = fabric::upgrade(session, peers, &stage.kind, true)?;
        for lane in lanes {
            let of_lane = fabric::upgrade(lane, peers, &stage.kind, true)?;
            if std::mem::discriminant(&of_lane) != std::mem::discriminant(&outcome) {
                return Err(Error::misuse("what one connection to a server can do, another one can"));
            }
            session.book(&lane.take_traffic());
        }
        Ok(outcome)
    })?;
    match (outcome, mine) {
        (UpgradeOutcome::Upgraded(kind), _) => Ok(ServerTransport::Plain(kind)),
        (UpgradeOutcome::Kept(_), ServerTransport::Auto) => Ok(ServerTransport::Tls),
        (UpgradeOutcome::Kept(why), _) => Err(Error::input(format!(
            "transport = \"{mine}\" is for four servers on one host, and {why}: all four set \"auto\", which \
             takes TLS then, \"fabric\", or \"tls\""
        ))),
    }
}

/// Tells owners without a seat.
fn tell_owners(
    session: &mut Session,
    study: &Study,
    seats: &[PartyId],
    used: &ServerTransport,
) -> Result<(), Error> {
    let owners = (0..study.parties.len() as u8).map(PartyId).filter(|owner| !seats.contains(owner));
    for owner in owners {
        session.link(owner).send(&used.told())?;
        session.link(owner).flush()?;
    }
    Ok(())
}

/// What the four servers tell an owner without a seat.
fn hear(session: &mut Session, seats: [PartyId; SEATS]) -> Result<ServerTransport, Error> {
    let mut hear_from = |seat: PartyId| {
        let told: [u8; NAME_BYTES] = session.link(seat).recv_array()?;
        ServerTransport::heard(&told)
            .ok_or_else(|| session.link(seat).malformed("the transport that the servers use"))
    };
    let first = hear_from(seats[0])?;
    for (at, &seat) in seats.iter().enumerate().skip(1) {
        if hear_from(seat)? != first {
            let check = "the servers say that they compute over different transports";
            return Err(session.accuse_one_of(&seats[..=at], check));
        }
    }
    Ok(first)
}

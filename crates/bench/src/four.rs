//! Four computing parties, each a process of its own.

use super::names::TransportName;
use super::party::{PartyJob, TlsKeys, agreement};
use super::two::{folder, keys, path, start};
use base::{Error, PartyId, Roster, Seed, free_address};
use net::{ChannelSecurity, Meet, Meeting, Session};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use terminal::follow::Children;

/// Who sits where.
pub const SEATS: [PartyId; 4] = [PartyId(0), PartyId(1), PartyId(2), PartyId(3)];
const PATIENCE: Duration = Duration::from_secs(60);

/// Where one of them sits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerPlace {
    seat: u8,
    listen: String,
    /// Where those before it are reached.
    dial: Vec<String>,
    /// Absent: plain TCP.
    tls: Option<TlsKeys>,
}

impl ServerPlace {
    /// Meets the others.
    pub fn meet(&self, names: [&str; 4]) -> Result<Session, Error> {
        Ok(self.meet_over(names, 0)?.0)
    }

    /// The same, with more lanes among all four.
    pub fn meet_over(&self, names: [&str; 4], lanes: u32) -> Result<(Session, Vec<Session>), Error> {
        let (me, roster) = (PartyId(self.seat), Roster::new(names));
        let dial: BTreeMap<_, _> = SEATS.into_iter().zip(self.dial.iter().cloned()).collect();
        let transport = self.tls.as_ref().map_or(Ok(ChannelSecurity::Tcp), TlsKeys::transport)?;
        let listen = Some(self.listen.clone());
        let meet = Meet::all(me, roster.clone(), listen, dial, transport, agreement()).patience(PATIENCE);
        let Meeting { control, workers, .. } = meet.meet(lanes)?;
        let session = |channels| Session::new(me, roster.clone(), channels, Seed::from_system());
        Ok((session(control), workers.into_iter().map(session).collect()))
    }
}

/// Runs all four, with a delay of every byte between them.
pub fn measure<T: DeserializeOwned>(
    names: [&str; 4],
    transport: TransportName,
    delay: Duration,
    job: impl Fn(ServerPlace) -> PartyJob,
) -> Result<Vec<T>, Error> {
    let folder = folder()?;
    let secrets = keys(transport, &names, folder.path())?;
    let listen = names.iter().map(|_| free_address()).collect::<Result<Vec<_>, Error>>()?;
    let paths = listen.iter().map(|at| path(at, delay)).collect::<Result<Vec<_>, Error>>()?;
    let mut children = Children::default();
    for (seat, name) in names.into_iter().enumerate() {
        let dial = paths.iter().take(seat).map(|(at, _)| at.clone()).collect();
        let tls = secrets.as_ref().map(|keys| keys[seat].clone());
        let place = ServerPlace { seat: seat as u8, listen: listen[seat].clone(), dial, tls };
        start(&mut children, name, &job(place))?;
    }
    children.finish(|_, _| ())
}

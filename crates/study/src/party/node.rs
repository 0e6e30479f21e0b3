//! The settings of a server: a party file without data.

use super::{Address, PartySettings, default_memory};
use crate::device::ServerDevice;
use crate::transport::ServerTransport;
use crate::{Server, Servers, Study, StudyHash};
use base::{Error, limits};
use net::IpNetwork;
use std::path::PathBuf;

/// A server's settings with nothing missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSetup {
    /// The studies that it may be asked to compute.
    pub studies: Vec<PathBuf>,
    /// Which server of these studies it is.
    pub name: String,
    /// The identity made by `tacit keygen`.
    pub identity: PathBuf,
    /// Where it waits, and whom it goes to.
    pub address: Address,
    /// Most memory to use, in bytes.
    pub memory: u64,
    /// Milliseconds without progress before giving up.
    pub deadline_ms: u64,
    /// Networks that connections may come from; none for any.
    pub allow: Vec<IpNetwork>,
    /// Whether this server tells the others to begin.
    pub trigger: bool,
    /// What the computation goes over.
    pub transport: ServerTransport,
    /// What computes.
    pub device: ServerDevice,
    /// Only these studies, by full hash.
    pub allowed: Option<Vec<StudyHash>>,
}

impl ServerSetup {
    /// Where this server keeps its shares of results until they are sent: beside its identity.
    #[must_use]
    pub fn held(&self) -> PathBuf {
        let mut name = self.identity.clone().into_os_string();
        name.push(".held");
        name.into()
    }
}

impl PartySettings {
    /// The settings of a server with nothing missing.
    ///
    /// # Errors
    /// Names what is missing, or what only an owner of data has.
    pub fn complete_node(self) -> Result<ServerSetup, Error> {
        let need = |name: &str| {
            Error::input(format!(
                "no {name}: add {name} = \"...\" to the server's party file, or --{name} to the command"
            ))
        };
        let of_owners = [
            ("data", self.data.is_some()),
            ("state", self.state.is_some()),
            ("state_key", self.state_key.is_some()),
            ("salt", self.salt.is_some()),
            ("spine", self.spine.is_some()),
            ("keep_spine", self.keep_spine.is_some()),
        ];
        if let Some((name, _)) = of_owners.iter().find(|(_, there)| *there) {
            return Err(Error::input(format!(
                "this is a server without data, and `{name}` is for parties that own some: remove the line \
                 (an owner takes part by `tacit run`)"
            )));
        }
        let common = self.common;
        let (peer, peers) = common.places();
        let studies: Vec<PathBuf> = common.study.into_iter().chain(self.studies).collect();
        if studies.is_empty() {
            return Err(need("study"));
        }
        let address = match (common.listen, peer) {
            (listen, None) if !peers.is_empty() => Address::Peers { listen, peers },
            (Some(listen), None) => Address::Listen(listen),
            (_, Some(_)) => {
                return Err(Error::input(
                    "`peer` is for two parties, and servers have more: write a section [peers] with a line \
                     NAME = \"host:port\" for each",
                ));
            }
            (None, None) => return Err(need("listen")),
        };
        Ok(ServerSetup {
            studies,
            name: common.as_party.ok_or_else(|| need("as"))?,
            identity: common.identity.ok_or_else(|| need("identity"))?,
            address,
            memory: default_memory(common.memory),
            deadline_ms: common.deadline_ms.unwrap_or(limits::DEADLINE_MS),
            allow: common.allow.unwrap_or_default(),
            trigger: self.trigger.unwrap_or_default(),
            transport: ServerTransport::of(common.transport, common.trusted_network)?,
            device: common.device.unwrap_or_default(),
            allowed: common.allow_studies,
        })
    }

    /// Whether these are the settings of a server of the study that holds no data.
    #[must_use]
    pub fn serves(&self, study: &Study) -> bool {
        let name = self.common.as_party.as_deref().unwrap_or_default();
        self.data.is_none() && study.server(name).is_some_and(|server| !server.owner)
    }
}

impl ServerSetup {
    /// The servers of a study in which this one takes part, and this one of them.
    ///
    /// # Errors
    /// When the study is not on its list, or does not name it.
    pub fn admit<'s>(&self, study: &'s Study) -> Result<(&'s Servers, &'s Server), Error> {
        let hash = study.hash();
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(&hash)) {
            return Err(super::policy::not_listed(study, &hash));
        }
        let named = |servers: &'s Servers| servers.members.iter().find(|server| server.name == self.name);
        match study.servers.as_ref().and_then(|servers| Some((servers, named(servers)?))) {
            Some((servers, server)) if !server.owner => Ok((servers, server)),
            Some(_) => Err(Error::input(format!(
                "{} owns data of study {} and says each time that it takes part: use `tacit run` with its \
                 data",
                self.name, study.name
            ))),
            None => Err(Error::input(format!(
                "this server is {:?}, and study {} has {}; check `as` in the party file",
                self.name,
                study.name,
                match &study.servers {
                    None => "no servers".to_owned(),
                    Some(servers) => {
                        let names: Vec<&str> = servers.members.iter().map(|s| s.name.as_str()).collect();
                        format!("the servers {}", names.join(", "))
                    }
                }
            ))),
        }
    }
}

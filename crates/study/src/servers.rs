//! The sections `[server.NAME]` and `[ring4]`: the four parties that compute an outsourced study, and how.

use super::hash::FieldHasher;
use super::parse::named_key;
use super::reader::{NAME_RULE, TomlItem, TomlSection, is_name, printable};
use super::{MatchRule, NoiseFrom, Participant, Question, Study, StudyFile};
use crate::transport::ServerTransport;
use base::{Error, PartyId, Roster, limits};
use ring4::{Security, Settings, TagHash};

/// The parties of a ring4 computation.
pub const SEATS: usize = 4;
/// Servers that join rows by keyed hashes; the others see sizes only.
pub const JOINERS: usize = 2;

/// Who computes an outsourced study, and against whom it is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// The four by name: the order of the seats.
    pub members: [Server; SEATS],
    /// Who of them join rows by keyed hashes, where rows are matched so: the first by name that own no data,
    /// for an owner knows the salt.
    pub joiners: Option<[PartyId; JOINERS]>,
    /// What one corrupted server may do.
    pub security: Security,
    /// What messages are vouched for with, under malicious security.
    pub hash: TagHash,
    /// What the owners agreed that the computation goes over; where they say nothing, the servers' operators
    /// choose.
    pub transport: Option<ServerTransport>,
}

/// One computing party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Its key; that of the party of this name where it owns data, too.
    pub key: String,
    /// Its place in the session: that of the party where it is one, else after all parties.
    pub place: PartyId,
    /// Whether it is a party of the study as well.
    pub owner: bool,
}

const SECURITY: [(&str, Security); 2] =
    [("malicious", Security::Malicious), ("semi-honest", Security::SemiHonest)];
const HASHES: [(&str, TagHash); 2] = [("keyed", TagHash::Keyed), ("blake3", TagHash::Blake3)];

impl Servers {
    /// Who sits where.
    #[must_use]
    pub fn seats(&self) -> [PartyId; SEATS] {
        self.members.each_ref().map(|server| server.place)
    }

    /// The servers that are no parties of the study, by name.
    pub fn apart(&self) -> impl Iterator<Item = &Server> {
        self.members.iter().filter(|server| !server.owner)
    }

    /// Whether this server sees which rows are equal.
    #[must_use]
    pub fn joins(&self, server: &Server) -> bool {
        self.joiners.is_some_and(|joiners| joiners.contains(&server.place))
    }

    /// How the engine is set up.
    #[must_use]
    pub fn settings(&self) -> Settings {
        // Nobody but its two ends reads a TLS channel; see `Engines::masked`.
        Settings { security: self.security, hash: self.hash, masked: false }
    }
}

/// A security as a study names it.
#[must_use]
pub fn security_name(security: Security) -> &'static str {
    SECURITY.iter().find(|(_, known)| *known == security).map_or("", |(name, _)| name)
}

/// A hash as a study names it.
#[must_use]
pub fn hash_name(hash: TagHash) -> &'static str {
    HASHES.iter().find(|(_, known)| *known == hash).map_or("", |(name, _)| name)
}

/// Settings of the engine, for people: `malicious, keyed hash`.
#[must_use]
pub fn ring4_settings(settings: Settings) -> String {
    match settings.security {
        Security::SemiHonest => security_name(settings.security).to_owned(),
        Security::Malicious => {
            format!("{}, {} hash", security_name(settings.security), hash_name(settings.hash))
        }
    }
}

/// What a study says of servers; `None` where it names none.
///
/// # Errors
/// Servers without the engine or the engine without servers, and whatever is wrong in their sections.
pub(super) fn parse(
    root: &TomlSection<'_, '_>,
    parties: &[Participant],
    matching: &MatchRule,
    served: bool,
) -> Result<Option<Servers>, Error> {
    let section = root.get("server");
    let settings = root.get("ring4");
    if !served {
        let Some(item) = section.or(settings) else { return Ok(None) };
        return Err(item.error(format!(
            "[{}] is for studies that four servers compute: write engine = \"ring4\" under [compute], or \
             remove the section",
            item.path
        )));
    }
    let item = root.need("server", "a section [server.NAME] for each of the four servers")?;
    let members = members(&item, parties)?;
    let (mut security, mut hash, mut transport) = (Security::default(), TagHash::default(), None);
    if let Some(settings) = settings {
        let section = settings.section(&["security", "hash", "transport"])?;
        if let Some(item) = section.get("security") {
            security = item.choice(&SECURITY, &[])?;
        }
        if let Some(item) = section.get("hash") {
            hash = item.choice(&HASHES, &[])?;
            if security == Security::SemiHonest {
                return Err(item.refuse("semi-honest servers vouch for nothing: remove the line"));
            }
        }
        if let Some(item) = section.get("transport") {
            transport = Some(item.parsed(ServerTransport::parse)?);
        }
    }
    let salted = matching.matcher.features().salted;
    let joiners = if salted { Some(joiners(root, &members)?) } else { None };
    Ok(Some(Servers { members, joiners, security, hash, transport }))
}

/// The first two by name that own no data.
fn joiners(root: &TomlSection<'_, '_>, members: &[Server; SEATS]) -> Result<[PartyId; JOINERS], Error> {
    let apart: Vec<PartyId> = members.iter().filter(|m| !m.owner).map(|m| m.place).collect();
    apart.first_chunk().copied().ok_or_else(|| match protocol_item(root) {
        Ok(item) => item.refuse(format!(
            "rows are joined by {JOINERS} servers that own no data, for an owner knows the salt; this \
                 study has {}",
            apart.len()
        )),
        Err(error) => error,
    })
}

fn members(item: &TomlItem<'_, '_>, parties: &[Participant]) -> Result<[Server; SEATS], Error> {
    let section = item.open_section()?;
    let mut members: Vec<Server> = Vec::with_capacity(SEATS);
    for (name, item) in section.entries() {
        if !is_name(name) {
            return Err(item.error(format!("server name \"{}\": {NAME_RULE}", printable(name))));
        }
        members.push(member(name, &item, parties, &members)?);
    }
    if members.len() != SEATS {
        return Err(section.error(format!(
            "{} servers; ring4 has exactly {SEATS}: a section [server.NAME] for each",
            members.len()
        )));
    }
    let all = parties.len() + members.iter().filter(|server| !server.owner).count();
    if all > limits::PARTIES {
        return Err(
            section.error(format!("{all} owners and servers; there may be {} together", limits::PARTIES))
        );
    }
    members.sort_by(|a, b| a.name.cmp(&b.name));
    let apart = members.iter_mut().filter(|server| !server.owner);
    apart.zip(parties.len()..).for_each(|(server, place)| server.place = PartyId(place as u8));
    Ok(members.try_into().expect("four, as counted"))
}

fn member(
    name: &str,
    item: &TomlItem<'_, '_>,
    parties: &[Participant],
    before: &[Server],
) -> Result<Server, Error> {
    let section = item.section(&["key"])?;
    if let Some((at, own)) = parties.iter().enumerate().find(|(_, party)| party.name == name) {
        if let Some(key) = section.get("key") {
            return Err(key.error(format!(
                "{name} is a party of the study and its key is under [party.{name}]: remove the line"
            )));
        }
        let place = PartyId(at as u8);
        return Ok(Server { name: name.to_owned(), key: own.key.clone(), place, owner: true });
    }
    let key = named_key(&section)?;
    let known = parties.iter().map(|party| (&party.name, &party.key));
    let mut known = known.chain(before.iter().map(|server| (&server.name, &server.key)));
    match known.find(|(_, other)| **other == key) {
        Some((other, _)) => {
            Err(item.error(format!("{other} and {name} have the same key; each needs its own")))
        }
        // Its place is known when all names are.
        None => Ok(Server { name: name.to_owned(), key, place: PartyId(0), owner: false }),
    }
}

/// The line that names the protocol.
fn protocol_item<'s, 'a>(root: &TomlSection<'s, 'a>) -> Result<TomlItem<'s, 'a>, Error> {
    root.need("match", "a section [match]")?.open_section()?.need("protocol", "protocol = \"salted-key\"")
}

/// What only some engines can do: of a study whose parts are read.
///
/// # Errors
/// What four servers do not run in this version, or what only they do.
pub(super) fn check(root: &TomlSection<'_, '_>, file: &StudyFile) -> Result<(), Error> {
    let (study, protocol) = (file.first(), protocol_item(root)?);
    let lift = matches!(study.kind, Question::Lift(_));
    let features = study.matching.matcher.features();
    let by_servers = features.salted || lift && features.public_identifiers;
    if study.servers.is_none() {
        return match by_servers {
            true => Err(protocol.refuse(
                "it is for studies that four servers compute: write engine = \"ring4\" under [compute] and \
                 name the servers",
            )),
            false => Ok(()),
        };
    }
    if !(features.public_identifiers || features.salted) {
        return Err(protocol.refuse(
            "four servers compute on rows that are \"aligned\", or join them themselves by \"salted-key\"",
        ));
    }
    if file.runs.len() > 1 {
        return Err(root.error(
            "a lift study by ring4 has one advertiser: write a study for each, with the same servers",
        ));
    }
    if study.noise() != NoiseFrom::Inside {
        let release = root.need("release", "a section [release]")?.open_section()?;
        let noise = release.need("noise", "noise = \"inside\"")?;
        return Err(noise.refuse("four servers draw noise that nobody knows; write noise = \"inside\""));
    }
    let compute = root.need("compute", "a section [compute]")?.open_section()?;
    for key in ["ot", "circuit"] {
        if let Some(item) = compute.get(key) {
            return Err(item.error(format!("{} is a setting of gmw: remove the line", item.path)));
        }
    }
    if let (Some(item), true) = (compute.get("shards"), study.compute.shards > limits::SERVER_LANES) {
        return Err(item.refuse(format!(
            "four servers compute over {} lanes at most: use shards = {0} or fewer",
            limits::SERVER_LANES
        )));
    }
    Ok(())
}

/// Everything said of servers, into the study's hash; nothing where there are none, so that other studies
/// keep theirs.
pub(super) fn encode(servers: Option<&Servers>, to: &mut FieldHasher) {
    let Some(servers) = servers else { return };
    to.number("servers", servers.members.len() as u64);
    for server in &servers.members {
        to.text("server", &server.name);
        to.number("owner", u64::from(server.owner));
        to.text("key", &server.key);
    }
    to.text("security", security_name(servers.security));
    to.text("hash", hash_name(servers.hash));
    // Studies that say nothing of it keep their hash.
    if let Some(transport) = &servers.transport {
        to.text("transport", &transport.to_string());
    }
}

impl Study {
    /// Everybody in a session, with their keys: the parties, then servers that are no parties.
    #[must_use]
    pub fn everybody(&self) -> Vec<(&str, &str)> {
        let parties = self.parties.iter().map(|member| (member.name.as_str(), member.key.as_str()));
        let apart = self.servers.iter().flat_map(Servers::apart);
        parties.chain(apart.map(|server| (server.name.as_str(), server.key.as_str()))).collect()
    }

    /// The names of [`Study::everybody`].
    #[must_use]
    pub fn roster(&self) -> Roster {
        Roster::new(self.everybody().into_iter().map(|(name, _)| name))
    }

    /// The server of this name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.as_ref()?.members.iter().find(|server| server.name == name)
    }
}

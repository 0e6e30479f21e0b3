//! The sections `[server.NAME]` and `[ring4]`: the four parties that compute an outsourced study, and how.

use super::hash::FieldHasher;
use super::parse::{is_key, named_key};
use super::reader::{NAME_RULE, TomlItem, TomlSection, is_name, printable};
use super::{Compute, ComputeEngine, NoiseFrom, Participant, Question, Study};
use crate::transport::ServerTransport;
use base::{Error, PartyId, Roster, limits};
use ring4::{Hash, Security, Settings};

/// The parties of a ring4 computation.
pub const SEATS: usize = 4;
/// Servers that join rows by keyed hashes; the others see sizes only.
pub const JOINERS: usize = 2;

/// Who computes an outsourced study, and against whom it is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// The four by name: the order of the seats.
    pub members: Vec<Server>,
    /// What one corrupted server may do.
    pub security: Security,
    /// What messages are vouched for with, under malicious security.
    pub hash: Hash,
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
    /// Whether it is a party of the study as well.
    pub owner: bool,
}

const SECURITY: [(&str, Security); 2] =
    [("malicious", Security::Malicious), ("semi-honest", Security::SemiHonest)];
const HASHES: [(&str, Hash); 2] = [("keyed", Hash::Keyed), ("blake3", Hash::Blake3)];

impl Servers {
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
pub fn hash_name(hash: Hash) -> &'static str {
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
    compute: &Compute,
) -> Result<Option<Servers>, Error> {
    let section = root.get("server");
    let settings = root.get("ring4");
    if compute.engine != ComputeEngine::Ring4 {
        let Some(item) = section.or(settings) else { return Ok(None) };
        return Err(item.error(format!(
            "[{}] is for studies that four servers compute: write engine = \"ring4\" under [compute], or \
             remove the section",
            item.path
        )));
    }
    let item = root.need("server", "a section [server.NAME] for each of the four servers")?;
    let members = members(&item, parties)?;
    let (mut security, mut hash, mut transport) = (Security::default(), Hash::default(), None);
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
            transport = Some(ServerTransport::parse(item.text()?).map_err(|rule| item.refuse(rule))?);
        }
    }
    Ok(Some(Servers { members, security, hash, transport }))
}

fn members(item: &TomlItem<'_, '_>, parties: &[Participant]) -> Result<Vec<Server>, Error> {
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
    Ok(members)
}

fn member(
    name: &str,
    item: &TomlItem<'_, '_>,
    parties: &[Participant],
    before: &[Server],
) -> Result<Server, Error> {
    if let Some(own) = parties.iter().find(|party| party.name == name) {
        let section = item.section(&["key"])?;
        if let Some(key) = section.get("key") {
            return Err(key.error(format!(
                "{name} is a party of the study and its key is under [party.{name}]: remove the line"
            )));
        }
        return Ok(Server { name: name.to_owned(), key: own.key.clone(), owner: true });
    }
    let section = item.section(&["key"])?;
    let key = named_key(&section)?;
    debug_assert!(is_key(&key));
    let known = parties.iter().map(|party| (&party.name, &party.key));
    let mut known = known.chain(before.iter().map(|server| (&server.name, &server.key)));
    match known.find(|(_, other)| **other == key) {
        Some((other, _)) => {
            Err(item.error(format!("{other} and {name} have the same key; each needs its own")))
        }
        None => Ok(Server { name: name.to_owned(), key, owner: false }),
    }
}

/// What only some engines can do: of a study whose parts are read.
///
/// # Errors
/// What four servers do not run in this version, or what only they do.
pub(super) fn check(root: &TomlSection<'_, '_>, study: &Study) -> Result<(), Error> {
    let protocol = root.need("match", "a section [match]")?.open_section()?;
    let protocol = protocol.need("protocol", "protocol = \"salted-key\"")?;
    let features = study.matching.matcher.features();
    let outsourced = features.public_identifiers || features.salted;
    let lift = matches!(study.kind, Question::Lift(_) | Question::Lifts(_));
    let Some(servers) = &study.servers else {
        if features.salted || lift && features.public_identifiers {
            return Err(protocol.refuse(
                "it is for studies that four servers compute: write engine = \"ring4\" under [compute] and \
                 name the servers",
            ));
        }
        return Ok(());
    };
    if !outsourced {
        return Err(protocol.refuse(
            "four servers compute on rows that are \"aligned\", or join them themselves by \"salted-key\"",
        ));
    }
    if let Question::Lifts(_) = study.kind {
        return Err(root.error(
            "a lift study by ring4 has one advertiser: write a study for each, with the same servers",
        ));
    }
    if study.noise() != NoiseFrom::Inside {
        let release = root.need("release", "a section [release]")?.open_section()?;
        let noise = release.need("noise", "noise = \"inside\"")?;
        return Err(noise.refuse("four servers draw noise that nobody knows; write noise = \"inside\""));
    }
    let apart = servers.members.iter().filter(|server| !server.owner).count();
    if features.salted && apart < JOINERS {
        return Err(protocol.refuse(format!(
            "rows are joined by {JOINERS} servers that own no data, for an owner knows the salt; this study \
             has {apart}"
        )));
    }
    let compute = root.need("compute", "a section [compute]")?.open_section()?;
    for key in ["ot", "circuit"] {
        if let Some(item) = compute.get(key) {
            return Err(item.error(format!("{} is a setting of gmw: remove the line", item.path)));
        }
    }
    if let (Some(item), true) = (compute.get("shards"), study.compute.shards != 1) {
        return Err(item.refuse("four servers compute in one shard: use shards = 1"));
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
        let servers = self.servers.iter().flat_map(|servers| &servers.members);
        let apart = servers.filter(|server| !server.owner);
        parties.chain(apart.map(|server| (server.name.as_str(), server.key.as_str()))).collect()
    }

    /// The names of [`Study::everybody`].
    #[must_use]
    pub fn roster(&self) -> Roster {
        Roster::new(self.everybody().into_iter().map(|(name, _)| name))
    }

    /// Who sits where, in the order of [`Study::everybody`]; nobody without servers.
    #[must_use]
    pub fn seats(&self) -> Option<[PartyId; SEATS]> {
        let (servers, roster) = (self.servers.as_ref()?, self.roster());
        let seats: Option<Vec<PartyId>> =
            servers.members.iter().map(|server| roster.find(&server.name)).collect();
        seats?.try_into().ok()
    }

    /// The servers that join rows by keyed hashes: the first by name that own no data, for an owner knows the
    /// salt.
    #[must_use]
    pub fn joiners(&self) -> Option<[PartyId; JOINERS]> {
        let (servers, roster) = (self.servers.as_ref()?, self.roster());
        let apart = servers.members.iter().filter(|server| !server.owner).take(JOINERS);
        let joiners: Option<Vec<PartyId>> = apart.map(|server| roster.find(&server.name)).collect();
        joiners?.try_into().ok()
    }

    /// The names of the servers that see which rows are equal: of a study by keyed hashes,
    /// [`Study::joiners`]. `None` without servers.
    #[must_use]
    pub fn seen_by_joiners(&self) -> Option<Vec<&str>> {
        self.servers.as_ref()?;
        if !self.matching.matcher.features().salted {
            return Some(Vec::new());
        }
        let everybody = self.everybody();
        Some(self.joiners()?.iter().map(|joiner| everybody[joiner.index()].0).collect())
    }

    /// The server of this name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.as_ref()?.members.iter().find(|server| server.name == name)
    }
}

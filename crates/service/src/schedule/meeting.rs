//! Who meets whom in a run: who listens at a port of its own, and who goes where.
//!
//! Of two parties whoever offers a port listens. More of them stand in one order, that of `tacit run`:
//! servers by name, then owners as the study has them. Each goes to all before it, and all but the last
//! listen.

use crate::link::peer_of;
use crate::settings::HouseSettings;
use base::Error;
use net::KeyFingerprint;
use statements::{ProposalRecord, RunOffer};
use study::Study;

/// A party of a run: its name in the study, and its key.
type RunParty<'s> = (&'s str, KeyFingerprint);

/// The parties of a run in the order in which they meet.
pub struct RunOrder<'s> {
    all: Vec<RunParty<'s>>,
    me: usize,
}

/// Where the process of a run listens, and whom it goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobPlace {
    /// An address of this machine.
    pub listen: Option<String>,
    /// The address of the only peer.
    pub peer: Option<String>,
    /// Of several peers, names in the study and addresses.
    pub peers: Vec<(String, String)>,
}

impl<'s> RunOrder<'s> {
    /// The order of a study's run, for who has a key.
    ///
    /// # Errors
    /// When the key is none of the study's.
    pub fn of(study: &'s Study, own: &KeyFingerprint) -> Result<Self, Error> {
        let servers = study.servers.iter().flat_map(|servers| &servers.members);
        let servers: Vec<(&str, &str)> = servers.map(|one| (one.name.as_str(), one.key.as_str())).collect();
        let owners = study.parties.iter().map(|party| (party.name.as_str(), party.key.as_str()));
        let owners = owners.filter(|owner| !servers.contains(owner));
        let key = |(name, key): (&'s str, &'s str)| Ok::<_, Error>((name, key.parse()?));
        let all = servers.iter().copied().chain(owners).map(key).collect::<Result<Vec<_>, _>>()?;
        let me = all.iter().position(|(_, key)| key == own);
        Ok(Self { me: me.ok_or_else(no_party)?, all })
    }

    /// Whether either of two may listen.
    pub fn is_of_two(&self) -> bool {
        self.all.len() == 2
    }

    /// Whether others come to this party, where more than two meet.
    pub fn is_gone_to(&self) -> bool {
        self.me + 1 < self.all.len()
    }

    /// What of the rules keeps the parties from meeting, in sentences; of two the offers say it.
    pub fn unmet(&self, settings: &HouseSettings) -> Vec<String> {
        if self.is_of_two() {
            return Vec::new();
        }
        let mut all: Vec<String> = Vec::new();
        if self.is_gone_to() && settings.link.is_none() {
            all.push("other parties come to this organisation in a run, and there is no [link]".to_owned());
        }
        for (_, key) in &self.all[..self.me] {
            let Some((name, peer)) = peer_of(settings, key) else { continue };
            if peer.address.is_none() || peer.run_ports.is_none() {
                all.push(format!(
                    "this organisation goes to {name} in a run, and [peers.{name}] lacks address or run_ports"
                ));
            }
        }
        all
    }

    /// Whether this party listens, and whom it goes to.
    fn meets(&self, record: &ProposalRecord, offers: &[RunOffer]) -> Result<(bool, &[RunParty<'s>]), Error> {
        if !self.is_of_two() {
            return Ok((self.is_gone_to(), &self.all[..self.me]));
        }
        let other = 1 - self.me;
        let place = |at: usize| record.place(&self.all[at].1).ok_or_else(no_party);
        let (mine, theirs) = (place(self.me)?, place(other)?);
        let (port, there) = (offers[mine].port, offers[theirs].port);
        // Where both offer a port, the one with the larger key listens.
        let listens = port != 0 && (there == 0 || mine > theirs);
        Ok((listens, if listens { &[] } else { &self.all[other..=other] }))
    }

    /// What is wrong with the port that a party offered to which this one goes.
    ///
    /// # Errors
    /// When the proposal has other parties than the study.
    pub fn wrong_port(
        &self,
        settings: &HouseSettings,
        record: &ProposalRecord,
        offers: &[RunOffer],
    ) -> Result<Option<String>, Error> {
        for (_, key) in self.meets(record, offers)?.1 {
            let Some((name, peer)) = peer_of(settings, key) else { continue };
            let port = offers[record.place(key).ok_or_else(no_party)?].port;
            if peer.address.is_none() || peer.run_ports.as_ref().is_some_and(|ports| ports.contains(&port)) {
                continue;
            }
            return Ok(Some(match port {
                0 => format!("neither this side nor {name} has a port for the run"),
                _ => format!(
                    "{name} wants to run on port {port}, which is not among run_ports of [peers.{name}]"
                ),
            }));
        }
        Ok(None)
    }

    /// Where the process of a run listens and goes to. Addresses are of this side's own file; only ports are
    /// the peers' word, and [`Self::wrong_port`] has looked at them.
    ///
    /// # Errors
    /// When the rules have no address where one is needed.
    pub fn place(
        &self,
        settings: &HouseSettings,
        record: &ProposalRecord,
        offers: &[RunOffer],
    ) -> Result<JobPlace, Error> {
        let (listens, to) = self.meets(record, offers)?;
        let mut place = JobPlace::default();
        if listens {
            let link = settings.link.as_ref().ok_or_else(|| Error::input("service.toml has no [link]"))?;
            let port = offers[record.place(&self.all[self.me].1).ok_or_else(no_party)?].port;
            place.listen = Some(format!("{}:{port}", host(&link.listen).unwrap_or("0.0.0.0")));
        }
        for (called, key) in to {
            let (name, peer) = peer_of(settings, key)
                .ok_or_else(|| Error::input(format!("{called} is no peer in service.toml any more")))?;
            let address = peer.address.as_ref().ok_or_else(|| {
                Error::input(format!("this side cannot reach {name}: [peers.{name}] has no address"))
            })?;
            let port = offers[record.place(key).ok_or_else(no_party)?].port;
            let at = format!("{}:{port}", host(address).unwrap_or(address));
            match self.is_of_two() {
                true => place.peer = Some(at),
                false => place.peers.push(((*called).to_owned(), at)),
            }
        }
        Ok(place)
    }
}

fn no_party() -> Error {
    Error::input("this organisation is no party of the study")
}

/// An address without its port.
pub fn host(address: &str) -> Option<&str> {
    address.rsplit_once(':').map(|(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RulesFile;
    use net::Identity;
    use statements::ProposedStudy;
    use std::path::Path;
    use study::StudyFile;

    /// The names of those before and after a party of an example.
    fn order(text: &str, key: &str) -> (Vec<String>, bool) {
        let file = StudyFile::parse("the study", text).expect("a study");
        let own = key.parse().expect("a key");
        let order = RunOrder::of(file.first(), &own).expect("a party");
        (order.all[..order.me].iter().map(|(name, _)| (*name).to_owned()).collect(), order.is_gone_to())
    }

    #[test]
    fn parties_go_to_those_before_them_and_owners_to_servers() {
        let of = |digit: &str| format!("tacit1:{}", digit.repeat(32));
        let several = include_str!("../../../../examples/lift-several.toml");
        assert_eq!(order(several, &of("1")), (vec![], true));
        assert_eq!(order(several, &of("3")), (vec!["paper".to_owned(), "bakery".to_owned()], false));
        let served = include_str!("../../../../examples/lift-ring4.toml");
        let four = ["server-1", "server-2", "server-3", "server-4"].map(str::to_owned);
        assert_eq!(order(served, &of("2")), (four[..1].to_vec(), true));
        assert_eq!(order(served, "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11"), (four.to_vec(), true));
        let last = [&four[..], &["registry".to_owned()]].concat();
        assert_eq!(order(served, "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50"), (last, false));
        let key: KeyFingerprint = of("9").parse().expect("a key");
        let file = StudyFile::parse("the study", served).expect("a study");
        assert!(RunOrder::of(file.first(), &key).is_err());
    }
    /// Three shops with keys, their study, and the rules of the last one, which goes to both others.
    fn shops(rules: &str) -> (ProposalRecord, StudyFile, Vec<KeyFingerprint>, HouseSettings) {
        let all: Vec<Identity> = (0..3).map(|_| Identity::generate().expect("a key")).collect();
        let keys: Vec<KeyFingerprint> = all.iter().map(Identity::fingerprint).collect();
        let text = include_str!("../../../../examples/lift-several.toml");
        let mut text = study::canonical("the study", text).expect("a study");
        for (key, digit) in keys.iter().zip(["1", "2", "3"]) {
            text = text.replace(&format!("tacit1:{}", digit.repeat(32)), &key.to_string());
        }
        let file = StudyFile::parse("the study", &text).expect("a study");
        let (note, windows) = (String::new(), Vec::new());
        let proposed = ProposedStudy { text, program: [2; 32], note, expires_ms: 2, windows, nonce: [1; 16] };
        let first = ProposalRecord::propose(&all[0], 1, proposed).expect("proposes");
        let record = ProposalRecord::open(first).expect("a proposal");
        let peer = |at: usize| format!("[peers.shop-{at}]\nkey = \"{}\"\n{rules}", keys[at]);
        let text = format!(
            "format = \"tacit-service/1\"\nname = \"cinema\"\nidentity = \"own.key\"\nstore = \
             \"service.db\"\nledger = \"own.ledger\"\n{}{}",
            peer(0),
            peer(1)
        );
        let settings = RulesFile::parse(Path::new("service.toml"), &text).expect("rules");
        (record, file, keys, settings)
    }

    #[test]
    fn the_last_of_three_goes_to_both_others_at_ports_of_their_ranges() {
        let rules = "address = \"shop.example:7000\"\nrun_ports = \"7001-7002\"\n";
        let (record, file, keys, settings) = shops(rules);
        let order = RunOrder::of(file.first(), &keys[2]).expect("a party");
        assert!(order.unmet(&settings).is_empty() && !order.is_gone_to());
        let offers = |ports: [u16; 3]| {
            let port = |key: &KeyFingerprint| ports[keys.iter().position(|one| one == key).expect("a party")];
            let offer = |key| RunOffer {
                run: 1,
                goes_on: false,
                nonce: [3; 16],
                earliest_ms: 1,
                latest_ms: 2,
                port: port(key),
            };
            record.parties().iter().map(offer).collect::<Vec<_>>()
        };
        let place = order.place(&settings, &record, &offers([7001, 7002, 0])).expect("a place");
        let at = |name: &str, port| (name.to_owned(), format!("shop.example:{port}"));
        assert_eq!(place.peers, [at("paper", 7001), at("bakery", 7002)]);
        assert_eq!((place.listen, place.peer), (None, None));
        let wrong = |ports| order.wrong_port(&settings, &record, &offers(ports)).expect("looks");
        assert_eq!(wrong([7001, 7002, 0]), None);
        // A peer chooses no address: neither other services of its machine nor of anybody's.
        for port in [22, 80, 7000, 7003, 65_535] {
            let why = wrong([7001, port, 0]).expect("wrong");
            assert!(why.contains(&format!("shop-1 wants to run on port {port}")), "{why}");
        }
        // Without an address it is told before anything runs.
        let (_, file, keys, settings) = shops("");
        let order = RunOrder::of(file.first(), &keys[2]).expect("a party");
        assert_eq!(order.unmet(&settings).len(), 2);
        let first = RunOrder::of(file.first(), &keys[0]).expect("a party");
        assert!(first.unmet(&settings)[0].contains("there is no [link]"));
    }
}

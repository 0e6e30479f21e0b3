//! A coordinator's connection to the gate before it: it registers the names of a meeting and of lanes.

use super::words::{GateAnswer, GateWord, is_address};
use super::{meeting_label, routes_hello};
use crate::Channel;
use crate::accept::{HANDSHAKE, hear};
use crate::connect::{DoorPolicy, open_connection};
use crate::hello::{Hello, HelloVerdict, NoHello, Topic};
use crate::identity::{Identity, KeyFingerprint};
use crate::lanes::lane_label;
use crate::refusal::version_text;
use crate::socket::{SocketChannel, TimeLimit};
use crate::stop::StopSwitch;
use crate::tls::{Tls, TlsRefusal};
use base::{At, ChannelError, Error, Fault};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name that a coordinator asks for where it registers.
const NAME: &str = "gate.tacit.invalid";

/// The gate before a party that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateAccess {
    /// Where coordinators register.
    pub address: String,
    /// What the gate proves.
    pub key: KeyFingerprint,
    /// This machine as the gate reaches it; without it, as it reaches the gate.
    pub host: Option<String>,
}

/// How long a gate may take to answer a word.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a coordinator whose connection to the gate broke tries to come again. Its peer and its workers
/// wait meanwhile, and take longer to give it up.
const AGAIN: Duration = Duration::from_secs(8);
/// A wait between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection at which routes are registered; they go with it.
pub(crate) struct GateLink {
    access: GateAccess,
    identity: Arc<Identity>,
    stop: StopSwitch,
    channel: SocketChannel,
    host: String,
    /// Where names lead that are registered: of lanes, and of the meeting, which is of none.
    names: HashMap<Option<u16>, (String, String)>,
    /// Why a word has had no answer: the next one's could not be told from it.
    over: Option<String>,
}

/// Why there is no connection to a gate.
pub(crate) struct NoGate {
    pub why: String,
    /// Whether it would be the same next time.
    pub stays: bool,
}

impl NoGate {
    fn of(refusal: &TlsRefusal, access: &GateAccess, own: &KeyFingerprint) -> Self {
        let again = |why: String| Self { why, stays: false };
        let stays = |why: String| Self { why, stays: true };
        match refusal {
            TlsRefusal::OtherKey(key) => stays(format!(
                "it proves {key}, and gate_key is {}: check gate_key under [workers]",
                access.key
            )),
            TlsRefusal::OurKey => {
                stays(format!("it does not take this party's key: start it with --coordinator {own}"))
            }
            TlsRefusal::NotTls { .. } => stays(
                "no TLS is spoken there: `gate` under [workers] is the address that `tacit gate` has as \
                 --inside"
                    .to_owned(),
            ),
            TlsRefusal::Silent(limit) => again(format!("nothing came for {:.1} s", limit.as_secs_f64())),
            TlsRefusal::Left => {
                again("it closes the connection; coordinators come to its --inside address".to_owned())
            }
            TlsRefusal::Outside => again("it takes nobody from this network".to_owned()),
            TlsRefusal::Tls(text) | TlsRefusal::Io(text) | TlsRefusal::Hello(text) => again(text.clone()),
        }
    }
}

impl GateLink {
    /// Goes to the gate and proves this party's key.
    pub(crate) fn open(
        access: &GateAccess,
        identity: &Arc<Identity>,
        stop: &StopSwitch,
    ) -> Result<Self, NoGate> {
        let (channel, own_ip) = reach(access, identity, stop, HANDSHAKE)?;
        let host = access.host.clone().unwrap_or_else(|| match own_ip {
            IpAddr::V6(ip) => format!("[{ip}]"),
            IpAddr::V4(ip) => ip.to_string(),
        });
        let (access, identity, stop) = (access.clone(), identity.clone(), stop.clone());
        Ok(Self { access, identity, stop, channel, host, names: HashMap::new(), over: None })
    }

    /// Goes there once more, with all that is registered: the gate has ended the connection, or what lies
    /// between has, while those that it carries live on.
    fn come_again(&mut self) -> Result<(), Error> {
        let until = Instant::now() + AGAIN;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let why = match reach(&self.access, &self.identity, &self.stop, left) {
                Ok((channel, _)) => {
                    (self.channel, self.over) = (channel, None);
                    let names: Vec<_> = self.names.values().cloned().collect();
                    let route = |(name, to)| self.say(&GateWord::Route { name, to });
                    return names.into_iter().try_for_each(route);
                }
                Err(NoGate { why, .. }) => why,
            };
            if self.stop.is_stopped() || Instant::now() + PAUSE >= until {
                let had = self.over.take().unwrap_or_else(|| "it has ended the connection".to_owned());
                self.over = Some(format!("{had}, and cannot be reached again: {why}"));
                return Err(self.error(self.over.clone().unwrap_or_default()));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// This machine as the gate reaches it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Whether the gate has ended the connection, and with it the routes.
    pub(crate) fn gone(&mut self) -> bool {
        self.channel.watch().is_err()
    }

    /// Has those who come to meet handed on to the port where this party listens.
    pub(crate) fn meet(
        &mut self,
        agreement: &[u8; 32],
        own: &KeyFingerprint,
        listens: SocketAddr,
    ) -> Result<(), Error> {
        // At an address of its own a party is reached there alone.
        let to = match self.access.host.is_some() || listens.ip().is_unspecified() {
            true => format!("{}:{}", self.host, listens.port()),
            false => listens.to_string(),
        };
        self.route(None, meeting_label(agreement, own), to)
    }

    /// Has the peer's worker handed on to the one of this lane; the earlier connection of the lane is over.
    pub(crate) fn lane(
        &mut self,
        (run, lane, generation): (&[u8; 32], u16, u32),
        to: &str,
    ) -> Result<(), Error> {
        self.close(lane);
        if self.over.is_some() || self.gone() {
            self.come_again()?;
        }
        let name = lane_label(run, lane, generation);
        match self.route(Some(lane), name.clone(), to.to_owned()) {
            // It broke in between.
            Err(_) if self.over.is_some() => {
                self.come_again()?;
                self.route(Some(lane), name, to.to_owned())
            }
            done => done,
        }
    }

    /// Nobody comes for this lane any more.
    pub(crate) fn close(&mut self, lane: u16) {
        if let Some((name, _)) = self.names.remove(&Some(lane)) {
            // Where the gate is gone the route is, too.
            let _ = self.say(&GateWord::Close { name });
        }
    }

    fn route(&mut self, of: Option<u16>, name: String, to: String) -> Result<(), Error> {
        if !is_address(&to) {
            return Err(Error::input(format!(
                "`{to}` is no address to which a gate hands connections on: check host under [workers]"
            )));
        }
        self.say(&GateWord::Route { name: name.clone(), to: to.clone() })?;
        self.names.insert(of, (name, to));
        Ok(())
    }

    fn say(&mut self, word: &GateWord) -> Result<(), Error> {
        if let Some(why) = &self.over {
            return Err(self.error(why.clone()));
        }
        let mut answer = [0];
        let heard = self
            .channel
            .send(&word.encode())
            .and_then(|()| self.channel.recv_within(&mut answer, TimeLimit::of(ANSWER)));
        if let Err(e) = heard {
            let why = format!("it is gone ({e})");
            self.over = Some(why.clone());
            return Err(self.error(why));
        }
        match GateAnswer::of(answer[0]) {
            Some(GateAnswer::Done) => Ok(()),
            Some(GateAnswer::Taken) => Err(self.error(
                "another coordinator, with another key, has registered the same name, or one of the same run: \
                 is this party running elsewhere?"
                    .to_owned(),
            )),
            Some(GateAnswer::Full) => Err(self.error("it has as many routes of this party as it takes".to_owned())),
            Some(GateAnswer::Malformed) | None => Err(self.error("it understands no route".to_owned())),
        }
    }

    fn error(&self, why: String) -> Error {
        let text = format!("the gate at {}: {why}", self.access.address);
        Error::new(At::default(), Fault::Channel(ChannelError::Io(text)))
    }
}

/// A connection to a gate that takes routes, and this machine as it is seen there.
fn reach(
    access: &GateAccess,
    identity: &Identity,
    stop: &StopSwitch,
    limit: Duration,
) -> Result<(SocketChannel, IpAddr), NoGate> {
    let own = identity.fingerprint();
    let no = |refusal: TlsRefusal| NoGate::of(&refusal, access, &own);
    let io = |e: std::io::Error| no(TlsRefusal::Io(e.to_string()));
    let tls = Tls::new(identity, vec![access.key]).map_err(|e| no(TlsRefusal::Tls(e.to_string())))?;
    let policy = DoorPolicy::Pinned(tls);
    let limit = limit.clamp(PAUSE, HANDSHAKE);
    let mut last = NoGate { why: "the name has no address".to_owned(), stays: false };
    for at in access.address.to_socket_addrs().map_err(io)? {
        let stream = match TcpStream::connect_timeout(&at, limit) {
            Ok(stream) => stream,
            Err(e) => {
                last = io(e);
                continue;
            }
        };
        let own_ip = stream.local_addr().map_err(io)?.ip();
        let mut channel = open_connection(stream, &policy, NAME, limit).map_err(no)?;
        channel.ends_with(stop);
        greet(&mut channel, limit).map_err(no)?;
        return Ok((channel, own_ip));
    }
    Err(last)
}

/// Says hello and hears whether the gate takes routes.
fn greet(channel: &mut SocketChannel, limit: Duration) -> Result<(), TlsRefusal> {
    let question = routes_hello(HelloVerdict::Question).encode();
    let sent = channel.send(&question).and_then(|()| channel.finish());
    let heard = hear(channel, TimeLimit::of(limit))?;
    let refuse = |text: String| Err(TlsRefusal::Hello(text));
    match heard {
        Ok(Hello { topic: Topic::Routes, verdict: HelloVerdict::Taken, .. }) => {}
        Ok(Hello { verdict: HelloVerdict::Busy, .. }) => {
            return refuse("as many coordinators with this key are there as it takes".to_owned());
        }
        Err(NoHello::Version(theirs)) => return refuse(version_text("the gate", Some(theirs))),
        _ => return refuse("it does not speak as a gate does".to_owned()),
    }
    sent.and_then(|()| channel.begin(limit)).map_err(|e| TlsRefusal::of_channel(&e))
}

//! Whether a peer can be reached, step by step, for whoever has to find out why not.

use super::PATIENCE;
use crate::settings::ServicePeer;
use crate::web::House;
use net::services::{HELLO_BYTES, ServiceHello, proven_key};
use rustls::pki_types::ServerName;
use std::future::Future;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// A step, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStep {
    /// Its name.
    pub name: &'static str,
    /// What was found, or why it went no further.
    pub told: Result<String, String>,
}

/// Goes through the steps until one fails. It takes the link's place nowhere: where there is a link, the last
/// step is not taken.
#[must_use]
pub fn test_peer(house: &House, peer: &ServicePeer) -> Vec<LinkStep> {
    let mut steps = Vec::new();
    // What fails has said so in the list.
    let _ = Handle::current().block_on(walk(house, peer, &mut steps));
    steps
}

async fn step<T>(
    steps: &mut Vec<LinkStep>,
    name: &'static str,
    done: impl Future<Output = Result<(String, T), String>>,
) -> Option<T> {
    let done = match timeout(PATIENCE, done).await {
        Ok(done) => done,
        Err(_) => Err(format!("no answer within {} s: is a firewall between?", PATIENCE.as_secs())),
    };
    let (told, value) = match done {
        Ok((told, value)) => (Ok(told), Some(value)),
        Err(why) => (Err(why), None),
    };
    steps.push(LinkStep { name, told });
    value
}

async fn walk(house: &House, peer: &ServicePeer, steps: &mut Vec<LinkStep>) -> Option<()> {
    let failed = |e: std::io::Error| e.to_string();
    let address = peer.address.clone();
    let resolved = async {
        let address = address.ok_or("it has no address in service.toml: it comes to us")?;
        let found: Vec<SocketAddr> = lookup_host(&address).await.map_err(failed)?.collect();
        let names: Vec<String> = found.iter().map(ToString::to_string).collect();
        if found.is_empty() {
            Err("the name has no address".to_owned())
        } else {
            Ok((names.join(", "), found))
        }
    };
    let found = step(steps, "Resolve", resolved).await?;
    let connected = async {
        let stream = TcpStream::connect(&found[..]).await.map_err(failed)?;
        Ok((format!("from {}", stream.local_addr().map_err(failed)?), stream))
    };
    let stream = step(steps, "Connect", connected).await?;
    let secured = async {
        let tls = house.link_keys().tls(house).ok_or("our own key is not there: tacit keygen")?;
        let name = ServerName::try_from("tacit").map_err(|e| e.to_string())?;
        let wrong = |e: std::io::Error| format!("{e}. Does it have our key, and we its?");
        let stream = TlsConnector::from(tls.dialer).connect(name, stream).await.map_err(wrong)?;
        Ok(("TLS 1.3".to_owned(), stream))
    };
    let mut stream = step(steps, "TLS", secured).await?;
    let proven = proven_key(stream.get_ref().1.peer_certificates());
    let key = async {
        match proven {
            Some(key) if key == peer.key => Ok((key.to_string(), ())),
            Some(key) => Err(format!("who answers there has the key {key}")),
            None => Err("who answers there has proven no key".to_owned()),
        }
    };
    step(steps, "Key", key).await?;
    let hello = async {
        if house.links().of(&peer.key).since_ms.is_some() {
            return Ok(("the link is there already".to_owned(), ()));
        }
        stream.write_all(&ServiceHello::Question.bytes()).await.map_err(failed)?;
        stream.flush().await.map_err(failed)?;
        let mut hello = [0; HELLO_BYTES];
        let read = stream.read_exact(&mut hello).await;
        read.map_err(|e| format!("{e}. It does not know our key, has paused us, or is no service"))?;
        match ServiceHello::read(&hello)? {
            ServiceHello::Taken => Ok(("its service answers".to_owned(), ())),
            // It has proven our key as well: it takes one connection a second.
            ServiceHello::Busy => Ok(("its service answers, and is busy".to_owned(), ())),
            ServiceHello::Question => Err("it asks where a service answers".to_owned()),
        }
    };
    step(steps, "Hello", hello).await
}

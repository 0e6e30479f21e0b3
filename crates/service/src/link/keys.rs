//! With whom this side speaks TLS: set up once for the same keys, as whoever connects asks for it.

use super::LOOK;
use crate::web::House;
use net::KeyFingerprint;
use net::services::ServiceTls;
use std::sync::Mutex;
use std::time::Instant;

/// TLS for the peers that may speak, as it was set up last.
#[derive(Default)]
pub struct LinkKeys(Mutex<Option<HeldKeys>>);

struct HeldKeys {
    looked: Instant,
    keys: Vec<KeyFingerprint>,
    tls: ServiceTls,
}

impl LinkKeys {
    /// TLS for the peers that may speak; none without a key of the organisation's own. Rules and store are
    /// looked at four times a second at most, however many come.
    pub fn tls(&self, house: &House) -> Option<ServiceTls> {
        let mut held = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(held) = held.as_ref().filter(|held| held.looked.elapsed() < LOOK) {
            return Some(held.tls.clone());
        }
        let keys = speaking(house);
        let tls = match held.take() {
            Some(held) if held.keys == keys => held.tls,
            _ => ServiceTls::new(house.identity()?, keys.clone()).ok()?,
        };
        *held = Some(HeldKeys { looked: Instant::now(), keys, tls: tls.clone() });
        Some(tls)
    }
}

/// The keys of the peers in the rules that are not paused.
pub fn speaking(house: &House) -> Vec<KeyFingerprint> {
    let Ok(paused) = house.store().paused() else { return Vec::new() };
    let settings = house.rules().settings;
    let peers = settings.peers.iter().filter(|(name, _)| !paused.contains(*name));
    peers.map(|(_, peer)| peer.key).collect()
}

//! Connections that have not proved who they are: how many there may be, and which one goes when one more
//! comes.
//!
//! Nobody knows yet which of them is a peer, so none may be preferred for what it says of itself. What can be
//! told apart is where it comes from. An address that holds more than its share loses one of its own: a flood
//! from few addresses costs nobody else a place. Otherwise any of them goes, by chance. With `n` places, a
//! handshake of `h` seconds and `r` newcomers a second a peer keeps its place with probability
//! `(1 - 1/n)^(rh)`, about `e^(-rh/n)`, whatever the others do, and comes again where it lost it. Ending the
//! newest gives `e^(-rh)`: nothing to a trickle. Ending the oldest gives 1 as long as `rh < n` and 0 from
//! there on, a cliff that a flood can be aimed at. See `docs/decisions/045-strangers.md`.

use base::{Rng, Seed};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// A party's lanes are opened one after the other, so several peers behind one address stay far below this
/// part of all places.
const SHARES: usize = 8;

/// Connections and where they come from.
pub struct Crowd<T> {
    most: usize,
    share: usize,
    members: Vec<(IpAddr, T)>,
    chance: Rng,
}

impl<T> Crowd<T> {
    /// At most `most` of them, and at least one.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self::with_share(most, most.max(1) / SHARES)
    }

    /// The same, where an address may hold so many as long as there are places.
    pub(crate) fn with_share(most: usize, share: usize) -> Self {
        Self { most: most.max(1), share, members: Vec::new(), chance: Seed::from_system().into_rng() }
    }

    /// Takes one more; returns the one that had to go for it.
    pub fn admit(&mut self, from: IpAddr, new: T) -> Option<T> {
        let goes = (self.members.len() >= self.most).then(|| self.evict()).flatten();
        self.members.push((subscriber(from), new));
        goes
    }

    /// Ends one of them, by chance: of the subscriber that has most, where that is more than a share.
    pub(crate) fn evict(&mut self) -> Option<T> {
        let mut count: BTreeMap<IpAddr, usize> = BTreeMap::new();
        self.members.iter().for_each(|(from, _)| *count.entry(*from).or_default() += 1);
        let crowded = count.into_iter().max_by_key(|(_, count)| *count);
        let crowded = crowded.filter(|(_, count)| *count > self.share).map(|(from, _)| from);
        let may_go = |(at, (from, _)): (usize, &(IpAddr, T))| {
            crowded.is_none_or(|crowded| *from == crowded).then_some(at)
        };
        let may_go: Vec<usize> = self.members.iter().enumerate().filter_map(may_go).collect();
        let chosen = (!may_go.is_empty()).then(|| self.chance.below(may_go.len() as u64) as usize)?;
        Some(self.members.swap_remove(may_go[chosen]).1)
    }

    /// Takes out those of whom `gone` says so.
    pub fn take(&mut self, mut gone: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        let mut at = 0;
        while at < self.members.len() {
            match gone(&self.members[at].1) {
                true => taken.push(self.members.swap_remove(at).1),
                false => at += 1,
            }
        }
        taken
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &T> {
        self.members.iter().map(|(_, member)| member)
    }
}

/// Whom an address belongs to: itself, or the first half of an IPv6 address, which is what one subscriber is
/// given.
fn subscriber(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(last: u32) -> IpAddr {
        IpAddr::from((0x0a00_0000 + last).to_be_bytes())
    }

    /// How many of 400 peers keep their place while so many strangers come, each from `from`.
    fn survive(most: usize, newcomers: u32, from: impl Fn(u32) -> IpAddr) -> usize {
        let kept = |run: u32| {
            let mut crowd = Crowd::new(most);
            (0..most as u32).for_each(|i| _ = crowd.admit(from(1_000_000 + i), false));
            crowd.admit(v4(u32::MAX >> 8), true);
            (0..newcomers).for_each(|i| _ = crowd.admit(from(run * newcomers + i), false));
            crowd.members().any(|peer| *peer)
        };
        (0..400).filter(|run| kept(*run)).count()
    }

    #[test]
    fn chance_keeps_a_peer_among_strangers_of_many_addresses() {
        // (1 - 1/64)^32 = 0.60, and (1 - 1/64)^64 = 0.36, of 400; far beyond six standard deviations is a
        // defect.
        let few = survive(64, 32, v4);
        assert!((180..=300).contains(&few), "{few}");
        let many = survive(64, 64, v4);
        assert!((86..=206).contains(&many), "{many}");
    }

    #[test]
    fn a_flood_from_few_addresses_costs_nobody_else_a_place() {
        assert_eq!(survive(64, 500, |i| v4(i % 7)), 400);
        // A subscriber of IPv6 has 2^64 addresses and counts as one.
        let of_one = |i: u32| IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8 << 96) | u128::from(i)));
        assert_eq!(survive(64, 500, of_one), 400);
        let of_many = |i: u32| IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8 << 96) | (u128::from(i) << 64)));
        assert!(survive(64, 500, of_many) < 20);
        assert_eq!(subscriber("::ffff:10.0.0.1".parse().unwrap()), v4(1), "IPv4 behind an IPv6 socket");
    }

    #[test]
    fn there_are_never_more_than_most() {
        let mut crowd = Crowd::new(4);
        assert!((0..4).all(|i| crowd.admit(v4(i), i).is_none()));
        assert!((4..50).all(|i| crowd.admit(v4(i), i).is_some()));
        assert_eq!(crowd.members().count(), 4);
        assert_eq!(crowd.take(|_| true).len(), 4);
        assert_eq!(crowd.evict(), None);
    }
}

//! How fast one session or one address may ask: ten times a second, and fifty at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Instant;

const PER_SECOND: f64 = 10.0;
const AT_ONCE: f64 = 50.0;
/// Above this many, those that are full again are forgotten.
const KEPT: usize = 10_000;

/// What one address is counted as: of IPv6 its /64, which one line of a customer has whole.
pub fn counted_as(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// What each of those who ask has left.
#[derive(Default)]
pub struct Buckets(Mutex<HashMap<String, (f64, Instant)>>);

impl Buckets {
    /// Takes one request of somebody's; false where none is left.
    pub fn take(&self, who: &str) -> bool {
        self.take_at(who, 1.0, Instant::now())
    }

    /// Takes what weighs as much as ten requests: five of it at once, one a second.
    pub fn take_ten(&self, who: &str) -> bool {
        self.take_at(who, 10.0, Instant::now())
    }

    fn take_at(&self, who: &str, cost: f64, now: Instant) -> bool {
        let mut all = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let refilled = |(left, at): (f64, Instant)| {
            (left + PER_SECOND * now.saturating_duration_since(at).as_secs_f64()).min(AT_ONCE)
        };
        if all.len() >= KEPT {
            all.retain(|_, bucket| refilled(*bucket) < AT_ONCE);
        }
        let left = all.get(who).map_or(AT_ONCE, |bucket| refilled(*bucket));
        let taken = left >= cost;
        all.insert(who.to_owned(), (if taken { left - cost } else { left }, now));
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_network_of_one_customer_is_one_address() {
        let counted = |text: &str| counted_as(text.parse().expect("an address"));
        assert_eq!(counted("2001:db8:1:2::1"), counted("2001:db8:1:2:ffff::9"));
        assert_ne!(counted("2001:db8:1:2::1"), counted("2001:db8:1:3::1"));
        assert_eq!(counted("::ffff:10.0.0.1"), "10.0.0.1");
    }

    #[test]
    fn fifty_at_once_and_ten_a_second_and_each_for_itself() {
        let (buckets, start) = (Buckets::default(), Instant::now());
        let taken = (0..60).filter(|_| buckets.take_at("a", 1.0, start)).count();
        assert_eq!(taken, 50);
        assert!(buckets.take_at("b", 1.0, start), "one does not use up another's");
        let later = start + Duration::from_secs(1);
        assert_eq!((0..60).filter(|_| buckets.take_at("a", 1.0, later)).count(), 10);
    }
}

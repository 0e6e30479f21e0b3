//! Networks that a listening party takes connections from.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network: `10.0.0.0/8`, `2001:db8::/32`, or one address. An IPv4 address that comes through an IPv6
/// socket counts as what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    first: IpAddr,
    bits: u32,
}

impl IpNetwork {
    /// Whether an address lies in it.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && first(address, self.bits) == self.first
    }
}

/// The first address of the network of `bits` bits around an address.
fn first(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(ip) => IpAddr::V4((ip.to_bits() & u32::MAX.checked_shl(32 - bits).unwrap_or(0)).into()),
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() & u128::MAX.checked_shl(128 - bits).unwrap_or(0)).into()),
    }
}

impl FromStr for IpNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule = "write a network like 10.0.0.0/8 or 2001:db8::/32, or an address";
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| rule.to_owned())?;
        if address.to_canonical() != address {
            // Addresses are compared as IPv4: this network would hold none of them.
            return Err(format!("write {text} as an IPv4 network, such as 10.0.0.0/8"));
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| match bits.bytes().all(|digit| digit.is_ascii_digit()) {
            true => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(|| rule.to_owned()),
            false => Err(rule.to_owned()),
        })?;
        let network = Self { first: first(address, bits), bits };
        match network.first == address {
            true => Ok(network),
            // A slip of a digit would let others in than those who were meant.
            false => Err(format!("{text} has bits beyond its first {bits}: the network is {network}")),
        }
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(network: &str, address: &str) -> bool {
        network.parse::<IpNetwork>().unwrap().holds(address.parse().unwrap())
    }

    #[test]
    fn a_network_holds_its_addresses() {
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("192.0.2.7", "192.0.2.7") && !holds("192.0.2.7", "192.0.2.6"));
        assert!(holds("0.0.0.0/0", "255.1.2.3") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("2001:db8::/32", "2001:db8:1::9") && !holds("2001:db8::/32", "2001:db9::"));
        assert!(holds("::/0", "2001:db8::") && !holds("::/0", "10.0.0.1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.1.1"), "IPv4 behind an IPv6 socket");
    }

    #[test]
    fn a_network_is_read_as_it_is_shown_and_a_wrong_one_says_why() {
        for text in ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32", "::/0"] {
            assert_eq!(text.parse::<IpNetwork>().unwrap().to_string(), text);
        }
        for text in
            ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "::/129", "10.0.0.0/+8", "host/8", "10.0.0.0/8/8"]
        {
            assert!(text.parse::<IpNetwork>().unwrap_err().starts_with("write a network"), "{text}");
        }
        let error = "10.1.0.0/8".parse::<IpNetwork>().unwrap_err();
        let mapped = "::ffff:10.0.0.0/104".parse::<IpNetwork>().unwrap_err();
        assert_eq!(mapped, "write ::ffff:10.0.0.0/104 as an IPv4 network, such as 10.0.0.0/8");
        assert_eq!(error, "10.1.0.0/8 has bits beyond its first 8: the network is 10.0.0.0/8");
    }
}

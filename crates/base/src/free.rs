//! Loopback addresses to reserve now and listen at later: for tests, demos and measurements on one machine.

use crate::Error;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the system begins to choose ports of its own, unless it says otherwise: Linux's default.
const EPHEMERAL: u16 = 32_768;

/// First port handed out, where the system leaves that much room below its own.
const FIRST: u16 = 20_000;

/// An address on this machine alone, `127.3.21.200:20007`, that nobody listens at right now.
///
/// Every process has a loopback address of its own, made of its id, so that tests and demos side by side
/// cannot take each other's ports; where the system knows 127.0.0.1 alone, it is that one. The port lies
/// below those that the system hands to outgoing connections, and one process gets it again only after all
/// others of the range. It reserves nothing: somebody else who asks for this very address can still have it.
///
/// # Errors
/// When every port of the range is in use, or the system lets nobody listen on a loopback address.
pub fn free_address() -> Result<String, Error> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let low = lowest_ephemeral();
    let first = FIRST.min(low / 2 + 512);
    let ports = u32::from(low - first);
    let ip = own_loopback(std::process::id());
    let ip = if TcpListener::bind((ip, 0)).is_ok() { ip } else { Ipv4Addr::LOCALHOST };
    for _ in 0..ports {
        let step = CALLS.fetch_add(1, Ordering::Relaxed) % ports;
        let port = first + step as u16;
        match TcpListener::bind((ip, port)) {
            Ok(_) => return Ok(format!("{ip}:{port}")),
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            Err(e) => return Err(Error::io(format!("cannot listen on {ip}"), &e)),
        }
    }
    Err(Error::input(format!("all ports of {ip} from {first} to {} are in use", low - 1)))
}

/// 127.64.0.1 to 127.127.255.255: an address for each of Linux's process ids, which stay below 2^22.
fn own_loopback(process: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x7f40_0000 | process & 0x003f_ffff)
}

/// The first port that the system gives to outgoing connections.
fn lowest_ephemeral() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    range.ok().and_then(|text| lowest(&text)).unwrap_or(EPHEMERAL)
}

/// The first number of the system's range; none where it leaves no room below.
fn lowest(range: &str) -> Option<u16> {
    range.split_whitespace().next()?.parse().ok().filter(|&low| low > 2048)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_and_can_be_listened_at() {
        let addresses: Vec<String> = (0..20).map(|_| free_address().unwrap()).collect();
        let listeners: Vec<_> = addresses.iter().map(|at| TcpListener::bind(at).unwrap()).collect();
        for (i, listener) in listeners.iter().enumerate() {
            let at = listener.local_addr().unwrap();
            assert!(at.port() < lowest_ephemeral(), "{at}");
            assert!(addresses[..i].iter().all(|other| *other != at.to_string()), "{at} twice");
        }
    }

    #[test]
    fn what_is_taken_is_passed_over() {
        let taken = free_address().unwrap();
        let _listener = TcpListener::bind(&taken).unwrap();
        assert!((0..20).all(|_| free_address().unwrap() != taken));
    }

    #[test]
    fn processes_have_addresses_of_their_own() {
        assert_eq!(own_loopback(1), Ipv4Addr::new(127, 64, 0, 1));
        assert_eq!(own_loopback((1 << 22) - 1), Ipv4Addr::new(127, 127, 255, 255));
        assert_ne!(own_loopback(77), own_loopback(78));
        // Somebody with the same port elsewhere is in nobody's way.
        let ours = free_address().unwrap();
        let port = ours.rsplit_once(':').unwrap().1;
        let _elsewhere = TcpListener::bind(format!("127.0.0.1:{port}"));
        TcpListener::bind(&ours).unwrap();
    }

    #[test]
    fn the_systems_range_is_read() {
        assert_eq!(lowest("32768\t60999\n"), Some(32_768));
        assert_eq!(lowest("1024 65535"), None, "no room below");
        assert_eq!(lowest(""), None);
    }
}

//! Loopback addresses to reserve now and listen at later: for tests, demos and measurements on one machine.

use base::Error;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the system begins to choose ports of its own, unless it says otherwise: Linux's default.
const EPHEMERAL: u16 = 32_768;

/// First port handed out, where the system leaves that much room below its own.
const FIRST: u16 = 20_000;

/// Ports that one process takes before it meets those of the process with the next id.
const PER_PROCESS: u32 = 64;

/// An address on 127.0.0.1, `127.0.0.1:20123`, that nobody listens at right now.
///
/// The port lies below those that the system hands to outgoing connections, so none of them takes it between this
/// call and the moment somebody listens there. Where the search begins depends on the process and on the calls
/// before, so that tests and demos side by side get different ports. It reserves nothing: somebody else who asks for
/// this very port by number can still have it.
///
/// # Errors
/// When every port of the range is in use, or the system lets nobody listen on 127.0.0.1.
pub fn free_address() -> Result<String, Error> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let low = lowest_ephemeral();
    let first = FIRST.min(low / 2 + 512);
    let ports = u32::from(low - first);
    let start = std::process::id().wrapping_mul(PER_PROCESS) % ports;
    for _ in 0..ports {
        let step = CALLS.fetch_add(1, Ordering::Relaxed) % ports;
        let port = first + ((start + step) % ports) as u16;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(format!("127.0.0.1:{port}")),
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            Err(e) => return Err(Error::io("cannot listen on 127.0.0.1", &e)),
        }
    }
    Err(Error::input(format!("all ports of 127.0.0.1 from {first} to {} are in use", low - 1)))
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
    fn the_systems_range_is_read() {
        assert_eq!(lowest("32768\t60999\n"), Some(32_768));
        assert_eq!(lowest("1024 65535"), None, "no room below");
        assert_eq!(lowest(""), None);
    }
}

//! What a coordinator and a worker elsewhere say to each other: bytes of the two sockets that a worker has
//! ([`super::process`]), over two connections, each of which carries one direction. A channel is spoken in
//! turn, and here either side speaks when it has something to say.
//!
//! | | bytes |
//! |---|---|
//! | chunk | socket 1 (0 orders and events, 1 rows, 2 none: this end is there), length 4 (little endian), bytes |

use super::process::WorkerSockets;
use base::{ChannelError, Error, Fault};
use net::Channel;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// How often an end says that it is there.
const PULSE: Duration = Duration::from_secs(5);
/// How long an end may be silent.
pub(super) const SILENT_END: Duration = Duration::from_secs(60);
/// Bytes of a chunk at most.
const CHUNK: usize = 64 << 10;
const HEAD: usize = 5;
/// The chunk that belongs to no socket.
const NONE: u8 = 2;

type OutChannel = Arc<Mutex<Box<dyn Channel>>>;

/// One end of a tunnel: when it goes, both of its sockets are at their end.
pub(super) struct WorkerTunnel {
    ends: WorkerSockets,
}

impl WorkerTunnel {
    pub fn new(ends: WorkerSockets) -> Self {
        Self { ends }
    }

    /// Carries bytes both ways until somebody is gone.
    ///
    /// # Errors
    /// When it was the other end of the tunnel, or there are no threads.
    pub fn carry(&mut self, out: Box<dyn Channel>, into: Box<dyn Channel>) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::io("cannot start a worker's tunnel", &e);
        let out: OutChannel = Arc::new(Mutex::new(out));
        for (number, end) in self.ends.iter().enumerate() {
            let (out, end) = (out.clone(), end.try_clone().map_err(failed)?);
            let thread = std::thread::Builder::new().name("worker tunnel".into());
            thread.spawn(move || send(&out, number as u8, end)).map_err(failed)?;
        }
        drop(out);
        self.receive(into)
    }

    fn receive(&mut self, mut into: Box<dyn Channel>) -> Result<(), Error> {
        let gone = |e: ChannelError| Error::new(base::At::default(), Fault::Channel(e));
        let mut bytes = Zeroizing::new(vec![0; CHUNK]);
        loop {
            let mut head = [0; HEAD];
            into.recv(&mut head).map_err(gone)?;
            let [number, len @ ..] = head;
            let len = u32::from_le_bytes(len) as usize;
            let chunk =
                bytes.get_mut(..len).ok_or_else(|| Error::misuse("a chunk of a tunnel is too long"))?;
            into.recv(chunk).map_err(gone)?;
            let written = match self.ends.get_mut(usize::from(number)) {
                Some(end) => end.write_all(chunk),
                None if (number, len) == (NONE, 0) => Ok(()),
                None => return Err(Error::misuse("a tunnel has two sockets")),
            };
            if written.is_err() {
                // Whoever has the other end of it needs nothing more.
                return Ok(());
            }
        }
    }
}

impl Drop for WorkerTunnel {
    fn drop(&mut self) {
        for end in &self.ends {
            // One that is gone already is at its end.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// Sends what comes from a socket, and from the first one that this end is there.
fn send(out: &OutChannel, number: u8, mut end: UnixStream) {
    let mut bytes = Zeroizing::new(vec![0; CHUNK]);
    if number == 0 && end.set_read_timeout(Some(PULSE)).is_err() {
        return;
    }
    loop {
        let said = match end.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => say(out, number, &bytes[..count]),
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => say(out, NONE, &[]),
            Err(_) => return,
        };
        if said.is_err() {
            // The thread that receives finds out why.
            return;
        }
    }
}

fn say(out: &OutChannel, number: u8, bytes: &[u8]) -> Result<(), ChannelError> {
    let mut channel = out.lock().unwrap_or_else(PoisonError::into_inner);
    let len = (bytes.len() as u32).to_le_bytes();
    channel.send(&[&[number], &len[..]].concat())?;
    channel.send(bytes)?;
    channel.recv(&mut [])
}

//! A slower network between two parties on one machine: a relay of TCP connections with delay and bandwidth.

use base::Error;
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of one read, and pieces that may be under way in one direction: together they bound the memory of a
/// direction, and the bandwidth-delay product that the relay can carry.
const PIECE_BYTES: usize = 64 << 10;
const PIECES: usize = 1024;

/// How often the accepting thread looks whether it should stop.
const WAKE: Duration = Duration::from_millis(20);
/// How long a connection waits for a target that does not listen yet.
const KNOCKING: Duration = Duration::from_secs(10);

/// A relay until dropped. Connections under way live on until one of their ends closes.
pub struct Relay {
    /// Where it listens.
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The path that the relay imitates.
#[derive(Clone, Copy)]
struct Path {
    delay: Duration,
    bytes_per_s: u64,
}

impl Relay {
    /// Listens at `listen` (port 0 chooses one) and carries every connection to `target`: each byte arrives
    /// `one_way_delay` after it was sent, and each direction of a connection carries `bytes_per_s` (0: no
    /// limit).
    ///
    /// # Errors
    /// When `listen` cannot be bound.
    pub fn spawn(
        listen: &str,
        target: SocketAddr,
        one_way_delay: Duration,
        bytes_per_s: u64,
    ) -> Result<Self, Error> {
        let failed = |e: std::io::Error| Error::io(format!("the relay cannot listen at {listen}"), &e);
        let listener = TcpListener::bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        SockRef::from(&listener).set_read_timeout(Some(WAKE)).map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, path) = (stop.clone(), Path { delay: one_way_delay, bytes_per_s });
        let work = move || {
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((from, _)) => carry(from, target, path),
                    Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    Err(_) => std::thread::sleep(WAKE),
                }
            }
        };
        let thread = std::thread::Builder::new().name("relay".into()).spawn(work).map_err(failed)?;
        Ok(Self { address, stop, thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Knocks until the target opens, for a while: a path has no connection of its own that could fail.
fn reach(target: SocketAddr) -> Option<TcpStream> {
    let until = Instant::now() + KNOCKING;
    loop {
        match TcpStream::connect(target) {
            Ok(to) => return Some(to),
            Err(_) if Instant::now() < until => std::thread::sleep(WAKE),
            Err(_) => return None,
        }
    }
}

/// Carries one connection on threads of its own. Without a target it closes: the dialler tries again.
fn carry(from: TcpStream, target: SocketAddr, path: Path) {
    std::thread::spawn(move || {
        let Some(to) = reach(target) else { return };
        // An accepted stream inherits the read timeout of its listener.
        if from.set_read_timeout(None).is_err() {
            return;
        }
        let (from, to) = (Arc::new(from), Arc::new(to));
        for (source, sink) in [(from.clone(), to.clone()), (to, from)] {
            let _ = (source.set_nodelay(true), sink.set_nodelay(true));
            let (pieces, queue) = sync_channel(PIECES);
            std::thread::spawn(move || take(&source, &pieces));
            std::thread::spawn(move || give(&sink, &queue, path));
        }
    });
}

fn take(mut source: &TcpStream, pieces: &SyncSender<(Instant, Vec<u8>)>) {
    let mut bytes = vec![0; PIECE_BYTES];
    while let Ok(n) = source.read(&mut bytes) {
        if n == 0 || pieces.send((Instant::now(), bytes[..n].to_vec())).is_err() {
            return;
        }
    }
}

/// Writes every piece when the path has carried it: bandwidth first (pieces follow one another), then delay.
fn give(mut sink: &TcpStream, queue: &Receiver<(Instant, Vec<u8>)>, path: Path) {
    let mut free = Instant::now();
    while let Ok((came, piece)) = queue.recv() {
        free = free.max(came);
        if let Some(nanos) = (piece.len() as u128 * 1_000_000_000).checked_div(u128::from(path.bytes_per_s)) {
            free += Duration::from_nanos(nanos as u64);
        }
        std::thread::sleep((free + path.delay).saturating_duration_since(Instant::now()));
        if sink.write_all(&piece).is_err() {
            // The far end is gone: so is the near one, for both directions.
            let _ = sink.shutdown(Shutdown::Both);
            return;
        }
    }
    let _ = sink.shutdown(Shutdown::Write);
}

//! How two ends find out that they are on one host, and come to share memory.
//!
//! All over the private channel, except for the memory itself. The party of the lower index makes a memory
//! file and listens on an abstract Unix socket of a random name. The other one tries to connect: it succeeds
//! on the same host (and in the same network namespace) only. Both show a random token that the private
//! channel carried, so that nobody else who sees the name gets the memory; then the memory file travels over
//! the socket. Nothing of this has a name in the file system.

use super::region::{map as map_file, memory_file};
use super::{Mapped, region_bytes};
use base::{Error, PartyId, Seed, limits};
use net::Session;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

const NAME: usize = 16;
const TOKEN: usize = 32;
/// What the lower party sends: whether it is ready, name, its token, the other's token.
pub(crate) const OFFER_BYTES: usize = 1 + NAME + 2 * TOKEN;
/// What the other party answers in all: whether it connected, whether it mapped the memory.
pub(crate) const ANSWER_BYTES: usize = 2;
/// How long one step on the socket may take; both ends are there already.
const STEP: Duration = Duration::from_millis(limits::HANDSHAKE_MS);

/// Shares memory with `peer`. The inner error says why it cannot be; then nothing is left of the attempt.
pub(crate) fn map(
    session: &mut Session,
    peer: PartyId,
    ring: usize,
) -> Result<Result<Mapped, String>, Error> {
    if session.me() < peer { offer(session, peer, ring) } else { accept(session, peer, ring) }
}

/// The lower party's half.
fn offer(session: &mut Session, peer: PartyId, ring: usize) -> Result<Result<Mapped, String>, Error> {
    let mut rng = Seed::from_system().into_rng();
    let (name, mine, theirs) = (rng.bytes::<NAME>(), rng.bytes::<TOKEN>(), rng.bytes::<TOKEN>());
    let ready = prepare(&name, ring);
    let mut message = vec![u8::from(ready.is_ok())];
    message.extend(name.iter().chain(&mine).chain(&theirs));
    session.link(peer).send(&message)?;
    let [came] = session.link(peer).recv_array()?;
    let name = session.roster().name(peer);
    let missing = match (ready, came) {
        (Ok(ready), 1) => Ok(ready),
        (Ok(_), _) => Err(format!("{name} is on another host or in another container")),
        (Err(e), _) => Err(format!("this system gives no shared memory: {e}")),
    };
    // Whatever came of it, both answers are sent: the price knows no reason.
    let (listener, file) = match missing {
        Ok(ready) => ready,
        Err(why) => {
            let [_mapped] = session.link(peer).recv_array()?;
            return Ok(Err(why));
        }
    };
    let given = greet(&listener, &theirs).and_then(|stream| give(&stream, &mine, &file));
    // The peer that waits on the socket sees its end at once when we failed.
    drop(listener);
    let [mapped] = session.link(peer).recv_array()?;
    Ok(match given.and_then(|_stream| map_file(&file, region_bytes(ring))) {
        Ok(region) if mapped == 1 => Ok(Mapped { region: Arc::new(region), ring, first: true }),
        Ok(_) => Err(format!("{name} could not map the shared memory")),
        Err(e) => Err(format!("the shared memory could not be handed over: {e}")),
    })
}

fn prepare(name: &[u8], ring: usize) -> io::Result<(UnixListener, OwnedFd)> {
    Ok((UnixListener::bind_addr(&address(name)?)?, memory_file(region_bytes(ring))?))
}

fn address(name: &[u8]) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name([b"tacit-", name].concat())
}

/// The other party's half.
fn accept(session: &mut Session, peer: PartyId, ring: usize) -> Result<Result<Mapped, String>, Error> {
    let message: [u8; OFFER_BYTES] = session.link(peer).recv_array()?;
    let (name, tokens) = message[1..].split_at(NAME);
    let (theirs, mine) = tokens.split_at(TOKEN);
    let came = if message[0] == 1 { call(name, mine) } else { Err(ErrorKind::Unsupported.into()) };
    session.link(peer).send(&[u8::from(came.is_ok())])?;
    session.link(peer).flush()?;
    let name = session.roster().name(peer);
    let mapped = match came {
        Ok(stream) => take(&stream, theirs)
            .and_then(|file| map_file(&file, region_bytes(ring)))
            .map_err(|e| format!("the shared memory could not be mapped: {e}")),
        Err(_) if message[0] != 1 => Err(format!("{name} could not make shared memory")),
        Err(e) => Err(format!("{name} is on another host or in another container ({e})")),
    };
    session.link(peer).send(&[u8::from(mapped.is_ok())])?;
    session.link(peer).flush()?;
    Ok(mapped.map(|region| Mapped { region: Arc::new(region), ring, first: false }))
}

fn call(name: &[u8], token: &[u8]) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect_addr(&address(name)?)?;
    stream.set_read_timeout(Some(STEP))?;
    stream.write_all(token)?;
    Ok(stream)
}

/// Waits for the caller who has the token. The peer has called before it said so; others may have, too.
fn greet(listener: &UnixListener, token: &[u8; TOKEN]) -> io::Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let until = Instant::now() + STEP;
    while Instant::now() < until {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(e) => return Err(e),
        };
        // The token was written before we were told to accept: it is there, or this is somebody else.
        stream.set_nonblocking(true)?;
        let mut shown = [0; TOKEN];
        if stream.read_exact(&mut shown).is_ok() && bool::from(shown.ct_eq(token)) {
            stream.set_nonblocking(false)?;
            stream.set_write_timeout(Some(STEP))?;
            return Ok(stream);
        }
    }
    Err(io::Error::new(ErrorKind::TimedOut, "the peer did not call"))
}

/// Hands the memory file over. The stream is returned: the file is in it until the peer has taken it.
fn give(stream: &UnixStream, token: &[u8; TOKEN], file: &OwnedFd) -> io::Result<UnixStream> {
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let sent = sendmsg(stream, &[IoSlice::new(token)], &mut control, SendFlags::NOSIGNAL)?;
    if sent != TOKEN {
        return Err(io::Error::other("the socket took only a part of the token"));
    }
    stream.try_clone()
}

fn take(stream: &UnixStream, token: &[u8]) -> io::Result<OwnedFd> {
    let mut shown = [0; TOKEN];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut shown)];
    let got = recvmsg(stream, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let file = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    match file {
        Some(file) if got.bytes == TOKEN && bool::from(shown.ct_eq(token)) => Ok(file),
        _ => Err(io::Error::new(ErrorKind::PermissionDenied, "somebody else answered on the socket")),
    }
}

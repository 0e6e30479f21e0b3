//! The socket between the launcher and the guard of a pass: what is to be run with its descriptors, then
//! events.
//!
//! The guard learns from its end that the launcher is gone: that is how nothing survives a launcher that was
//! killed.

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Most descriptors that go with a [`Spec`]: the three standard ones, trace or ring, report.
const DESCRIPTORS: usize = 8;
/// Longest message. A command line is at most 2 MiB, and bytes that are no text take four characters each.
const MESSAGE: u32 = 16 << 20;

/// What a guard runs. The first three descriptors beside it are the program's standard ones.
#[derive(Debug, Serialize, Deserialize)]
pub struct Spec {
    /// File to execute.
    pub program: OsString,
    /// What the program sees as its own name.
    pub name: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables to set, or to remove.
    pub env: Vec<(String, Option<OsString>)>,
    /// One for each further descriptor: the variable that tells the program its number.
    pub passed: Vec<PassedFile>,
    /// Whether the program is cut off from files, network and IPC of this machine.
    pub isolate: bool,
    /// Whether it is to have no terminal.
    pub background: bool,
    /// The limit of its memory, if any.
    pub limit: Option<MemoryLimit>,
    /// The launcher's process id, for names.
    pub launcher: u32,
}

/// How a program is told of a descriptor.
#[derive(Debug, Serialize, Deserialize)]
pub struct PassedFile {
    /// Variable.
    pub name: String,
    /// Whether its value is a path of the descriptor, for the variables that hold paths; otherwise the bare
    /// number.
    pub path: bool,
}

/// A limit of memory that a group of processes may use.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MemoryLimit {
    /// Bytes.
    pub bytes: u64,
    /// Whether the system may swap beyond it.
    pub swap: bool,
    /// Whether the runtime pages the program, and so can free memory when there is none.
    pub paged: bool,
}

/// What a guard says.
#[derive(Debug, Serialize, Deserialize)]
pub enum GuardEvent {
    /// The program runs.
    Started {
        /// How its memory is limited, in words; `Err` says why the system does not enforce the limit.
        limit: Option<Result<String, String>>,
        /// Why the system may swap although it is not to, in words.
        swappable: Option<String>,
    },
    /// The program cannot be run: why, and what to do.
    Refused {
        /// In words.
        text: String,
    },
    /// The program ended, and all it had started with it.
    Ended {
        /// Exit code, or 128 + signal.
        code: u8,
        /// Most bytes of memory it used, where that is known.
        peak: Option<u64>,
        /// Whether it was killed because it reached its limit.
        out_of_memory: bool,
        /// Processes that it left behind, which were ended.
        left: u64,
    },
}

/// What a launcher says after the [`Spec`].
#[derive(Debug, Serialize, Deserialize)]
pub enum GuardOrder {
    /// Give the program a signal.
    Signal(i32),
    /// Kill it.
    Kill,
}

/// Sends a [`Spec`] with descriptors.
///
/// # Errors
/// The system's.
pub fn send_spec(mut socket: &UnixStream, spec: &Spec, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(spec)?;
    let len = u32::try_from(text.len()).ok().filter(|len| *len <= MESSAGE);
    let len = len.ok_or_else(|| io::Error::other("the command line is too long"))?.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&len)], &mut control, SendFlags::empty())?;
    socket.write_all(&text)
}

/// Receives what [`send_spec`] sent.
///
/// # Errors
/// The system's; `UnexpectedEof` when the launcher is gone.
pub fn receive_spec(socket: &UnixStream) -> io::Result<(Spec, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut len = [0u8; 4];
    let got = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut len)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL,
    )?;
    if got.bytes != len.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let len = u32::from_le_bytes(len);
    if len > MESSAGE {
        return Err(io::Error::other("a message beyond its limit"));
    }
    let mut text = vec![0; len as usize];
    io::Read::read_exact(&mut &*socket, &mut text)?;
    Ok((serde_json::from_slice(&text)?, descriptors))
}

/// Sends an [`GuardEvent`] or an [`GuardOrder`].
///
/// # Errors
/// The system's.
pub fn send(mut socket: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// The receiving half, by lines.
#[derive(Debug)]
pub struct GuardEvents(BufReader<UnixStream>);

impl GuardEvents {
    /// Reads from a socket.
    pub fn new(socket: UnixStream) -> Self {
        Self(BufReader::new(socket))
    }

    /// Waits for the next message; `None` when the other side is gone.
    pub fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut line = String::new();
        let got = self.0.read_line(&mut line).ok()?;
        if got == 0 { None } else { serde_json::from_str(&line).ok() }
    }

    /// Whether a message waits that was read already, so that the descriptor will not show it.
    pub fn has_more(&self) -> bool {
        self.0.buffer().contains(&b'\n')
    }

    /// The descriptor, to wait on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn a_spec_arrives_with_its_descriptors() {
        let (here, there) = UnixStream::pair().expect("socket pair");
        let odd = OsString::from_vec(vec![b'a', 0xff, b'"']);
        let spec = Spec {
            program: odd.clone(),
            name: odd.clone(),
            args: vec![odd.clone()],
            env: vec![("X".into(), None)],
            passed: Vec::new(),
            isolate: true,
            background: false,
            limit: None,
            launcher: 7,
        };
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        send_spec(&here, &spec, &[writer.as_fd()]).expect("sent");
        drop(writer);
        send(&here, &GuardOrder::Signal(15)).expect("sent");
        let (got, mut descriptors) = receive_spec(&there).expect("received");
        assert_eq!((got.program, got.args), (odd.clone(), vec![odd]));
        let mut pipe = std::fs::File::from(descriptors.pop().expect("one descriptor"));
        pipe.write_all(b"x").expect("written");
        drop(pipe);
        assert_eq!(io::read_to_string(std::fs::File::from(reader)).expect("read"), "x");
        let mut incoming = GuardEvents::new(there);
        assert!(matches!(incoming.next(), Some(GuardOrder::Signal(15))));
        drop(here);
        assert!(incoming.next::<GuardOrder>().is_none());
    }
}

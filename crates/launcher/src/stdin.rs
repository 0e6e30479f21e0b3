//! Standard input for two passes: both must read the same.
//!
//! A regular file is opened again for the speculative pass, at the place where it stands. What comes through
//! a pipe is kept as the speculative pass takes it, up to [`KEPT`], and given to the program again, followed
//! by the rest: nothing is read ahead of a pass that asks, so a pipe that never ends is no obstacle to a
//! program that does not read it. A terminal is the program's alone, as is every other device that gives a
//! byte once (serial lines, sources of randomness): speculation finds one empty line there, which tells us
//! whether it looked. `/dev/null` reads the same for ever.

use rustix::fs::FileType;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Most bytes of a pipe that are kept for the program.
pub const KEPT: usize = 64 << 20;
/// Bytes taken from a pipe at once.
const PIECE: usize = 64 << 10;

/// Where standard input comes from.
#[derive(Debug)]
pub enum StandardInput {
    /// A regular file, or something that reads the same twice (`/dev/null`).
    File,
    /// A terminal or another device: what speculation reads instead, with the place it has read up to.
    Terminal(File),
    /// A pipe or a socket.
    Pipe(StdinSpool),
}

impl StandardInput {
    /// What standard input is. Nothing is read yet.
    ///
    /// # Errors
    /// The system's.
    pub fn of_stdin() -> io::Result<Self> {
        let stdin = rustix::stdio::stdin().try_clone_to_owned()?;
        let device = rustix::fs::fstat(&stdin)?;
        let is_null = device.st_rdev == rustix::fs::makedev(1, 3);
        if FileType::from_raw_mode(device.st_mode) == FileType::CharacterDevice && !is_null {
            let mut line = memory_file("osprey-stdin")?;
            line.write_all(b"\n")?;
            line.rewind()?;
            return Ok(Self::Terminal(line));
        }
        let file = File::from(stdin);
        let kind = file.metadata()?.file_type();
        if kind.is_fifo() || kind.is_socket() {
            Ok(Self::Pipe(StdinSpool::new(file)))
        } else {
            Ok(Self::File)
        }
    }

    /// Standard input of the speculative pass.
    ///
    /// # Errors
    /// The system's, such as for a file that may not be opened again.
    pub fn speculative(&self) -> io::Result<OwnedFd> {
        match self {
            Self::File => {
                let stdin = rustix::stdio::stdin();
                let mut again = File::open("/proc/self/fd/0")?;
                if again.metadata()?.is_file() {
                    again.seek(SeekFrom::Start(rustix::fs::tell(stdin)?))?;
                }
                Ok(again.into())
            }
            Self::Terminal(line) => Ok(line.as_fd().try_clone_to_owned()?),
            Self::Pipe(spool) => spool.reader(false),
        }
    }

    /// Standard input of the real pass: as it is where no speculative pass was given it, from the beginning
    /// otherwise.
    ///
    /// # Errors
    /// The system's.
    pub fn real(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Pipe(spool) if spool.lock().shared => spool.reader(true),
            _ => Ok(rustix::stdio::stdin().try_clone_to_owned()?),
        }
    }

    /// Whether the speculative pass read from the terminal, or what was there in its place.
    pub fn missed_terminal(&self) -> bool {
        matches!(self, Self::Terminal(line) if rustix::fs::tell(line).is_ok_and(|at| at > 0))
    }

    /// Whether the speculative pass read more from a pipe than is kept for the program.
    pub fn overflowed(&self) -> bool {
        matches!(self, Self::Pipe(spool) if spool.lock().overflowed)
    }
}

/// A file in memory without a name.
///
/// # Errors
/// The system's.
pub fn memory_file(name: &str) -> io::Result<File> {
    Ok(rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// What was read from a pipe, for two readers.
#[derive(Clone, Debug)]
pub struct StdinSpool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    pipe: File,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes from `begin` on.
    kept: Vec<u8>,
    begin: u64,
    /// The first reader that came to the end reads for both.
    busy: bool,
    ended: bool,
    overflowed: bool,
    /// Whether a speculative pass reads or has read.
    shared: bool,
    /// The place of the real pass's reader, once there is one.
    real: Option<u64>,
    /// The place of the speculative pass's reader, while it reads.
    speculative: Option<u64>,
}

impl StdinSpool {
    fn new(pipe: File) -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), pipe }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pipe that gives everything from the beginning.
    fn reader(&self, real: bool) -> io::Result<OwnedFd> {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let spool = self.clone();
        let mut state = self.lock();
        *state.place(real) = Some(0);
        state.shared |= !real;
        drop(state);
        let name = if real { "stdin" } else { "stdin-speculation" };
        std::thread::Builder::new().name(name.into()).spawn(move || {
            // A reader that closed its end wants no more.
            let _ = spool.feed(real, File::from(writer));
            *spool.lock().place(real) = None;
        })?;
        Ok(reader)
    }

    fn feed(&self, real: bool, mut to: File) -> io::Result<()> {
        let mut at = 0;
        while let Some(piece) = self.piece(at, real) {
            to.write_all(&piece)?;
            at += piece.len() as u64;
            let mut state = self.lock();
            *state.place(real) = Some(at);
            state.forget();
        }
        Ok(())
    }

    /// Bytes from a place on, from the pipe when they are not there yet; `None` at the end.
    fn piece(&self, at: u64, real: bool) -> Option<Vec<u8>> {
        let mut state = self.lock();
        loop {
            let from = (at - state.begin) as usize;
            if from < state.kept.len() {
                return Some(state.kept[from..state.kept.len().min(from + PIECE)].to_vec());
            }
            if state.ended || (state.overflowed && !real) {
                return None;
            }
            if !real && state.kept.len() + PIECE > KEPT {
                state.overflowed = true;
                return None;
            }
            if state.busy {
                state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.busy = true;
            drop(state);
            let mut piece = vec![0; PIECE];
            let got = (&self.0.pipe).read(&mut piece).unwrap_or(0);
            state = self.lock();
            state.kept.extend_from_slice(&piece[..got]);
            state.ended = got == 0;
            state.busy = false;
            self.0.changed.notify_all();
        }
    }
}

impl State {
    fn place(&mut self, real: bool) -> &mut Option<u64> {
        if real { &mut self.real } else { &mut self.speculative }
    }

    /// Drops what no reader will ask for. Speculation begins before the real pass or beside it, never after
    /// it.
    fn forget(&mut self) {
        let Some(real) = self.real else { return };
        let least = self.speculative.map_or(real, |speculative| speculative.min(real));
        let bytes = (least - self.begin) as usize;
        if bytes >= PIECE {
            self.kept.drain(..bytes);
            self.begin = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(bytes: usize) -> (StdinSpool, Vec<u8>) {
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        let text: Vec<u8> = (0..bytes).map(|i| (i * 7 / 3) as u8).collect();
        let copy = text.clone();
        std::thread::spawn(move || File::from(writer).write_all(&copy).expect("written"));
        (StdinSpool::new(reader.into()), text)
    }

    fn read(fd: OwnedFd) -> Vec<u8> {
        let mut all = Vec::new();
        File::from(fd).read_to_end(&mut all).expect("read");
        all
    }

    #[test]
    fn both_passes_read_the_same() {
        let (spool, text) = spool(1 << 20);
        assert!(read(spool.reader(false).expect("reader")) == text);
        assert!(read(spool.reader(true).expect("reader")) == text);
    }

    #[test]
    fn both_passes_read_the_same_at_once_and_little_is_kept() {
        let (spool, text) = spool(8 << 20);
        let [one, two] = [false, true].map(|real| {
            let fd = spool.reader(real).expect("reader");
            std::thread::spawn(move || read(fd))
        });
        assert!(one.join().expect("one") == text && two.join().expect("two") == text);
    }

    #[test]
    fn speculation_that_reads_a_little_leaves_the_rest() {
        let (spool, text) = spool(1 << 20);
        let mut first = [0; 10];
        File::from(spool.reader(false).expect("reader")).read_exact(&mut first).expect("read");
        assert!(first == text[..10] && read(spool.reader(true).expect("reader")) == text);
        assert!(spool.lock().kept.len() < 4 * PIECE, "the real pass keeps nothing");
    }
}

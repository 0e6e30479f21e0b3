//! The simulator's process, and frames to and from it: a length in 4 bytes and that many bytes.

use base::Error;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use zeroize::Zeroizing;

/// Name of the simulator.
pub const PROGRAM: &str = "tacit-rtl-sim";
/// The environment's name for where it is.
const VARIABLE: &str = "TACIT_RTL_SIM";
/// Longest answer: seven streams of as many blocks as a request may have, and what comes with them.
const MAX_ANSWER: usize = 7 * 16 * super::command::MAX_BLOCKS + 256;

/// Where the simulator is: what `TACIT_RTL_SIM` names; else beside this executable, or in the folder `rtl` of
/// the target folder that this executable lies in.
///
/// # Errors
/// When there is none.
pub fn find() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return Ok(path.into());
    }
    let exe = std::env::current_exe().map_err(|e| Error::io("finding this executable", &e))?;
    // TARGET/release/tacit, or TARGET/release/deps/test.
    exe.ancestors()
        .skip(1)
        .take(3)
        .flat_map(|folder| [folder.join(PROGRAM), folder.join("rtl").join(PROGRAM)])
        .find(|path| path.is_file())
        .ok_or_else(|| {
            Error::input(format!(
                "there is no simulator of the accelerator; build it with 'make rtl' (which needs verilator), \
                 or say in {VARIABLE} where {PROGRAM} is"
            ))
        })
}

/// A running simulator. Dropping it ends the process.
pub(crate) struct Process {
    child: Child,
    /// `None` only while it is dropped.
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Process {
    pub(crate) fn start(program: &Path) -> Result<Self, Error> {
        let mut child = std::process::Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| Error::io(format_args!("starting {}", program.display()), &e))?;
        let input = child.stdin.take();
        let output = child.stdout.take().expect("its output is a pipe");
        Ok(Self { child, input, output })
    }

    /// Sends a request and returns what the answer to it holds after its status.
    pub(crate) fn call(&mut self, request: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, Error> {
        let answer = self.exchange(&request).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe => {
                Error::misuse(format!("{PROGRAM} ended; start the device again"))
            }
            _ => Error::io(format_args!("talking to {PROGRAM}"), &e),
        })?;
        match answer.split_first() {
            Some((0, rest)) => Ok(Zeroizing::new(rest.to_vec())),
            Some((_, text)) => {
                Err(Error::misuse(format!("{PROGRAM} says: {}", String::from_utf8_lossy(text))))
            }
            None => Err(Error::misuse(format!("{PROGRAM} answered nothing; build it again with 'make rtl'"))),
        }
    }

    fn exchange(&mut self, request: &[u8]) -> std::io::Result<Zeroizing<Vec<u8>>> {
        let input = self.input.as_mut().expect("it is there until the end");
        let length = u32::try_from(request.len()).expect("a request is bounded by the limit of blocks");
        input.write_all(&length.to_le_bytes())?;
        input.write_all(request)?;
        input.flush()?;
        let mut length = [0; 4];
        self.output.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_ANSWER {
            return Err(std::io::Error::new(ErrorKind::InvalidData, "an answer longer than any"));
        }
        let mut answer = Zeroizing::new(vec![0; length]);
        self.output.read_exact(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends where its input does. Where it hangs instead it is stopped.
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

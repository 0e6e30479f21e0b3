//! Pins: a hash of every message of the peer after the streams, so that after a cut the same bytes must come.
//!
//! In the steps `e` and `difference` a party raises what it is sent to its second key, or says what of it is
//! new. A peer that could send other elements under the same keys after every cut would read off the answers
//! what one run does not tell. A pin reaches the file before anything that depends on its message leaves.

use crate::group::GroupElement;
use base::Error;
use net::StepLink;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

/// Bytes of a pin, and of the tag that says that it is whole.
const PIN_BYTES: usize = 16;
const FRAME: usize = 2 * PIN_BYTES;

const SAME: &str = "what it sends after the cut is what it sent before it; a peer that runs another release \
                    of tacit now may send other bytes: run again, the match begins afresh";

const PROMISED: &str = "what it says in a unit is what it said before that it will say";

/// What a message has to be.
enum PinKeeper {
    /// Every message is new.
    Nobody,
    /// The pins of one run, in the order of the messages.
    File(File),
    /// What the peer has promised in a unit over a lane: digests of its messages, from this one on.
    Peer(u64, Vec<MessageDigest>),
}

/// A digest of one message.
pub(super) type MessageDigest = [u8; 32];

/// That of a message which its sender promises.
pub(super) fn digest_of(message: &[GroupElement]) -> MessageDigest {
    *blake3::hash(message.as_flattened()).as_bytes()
}

/// What binds the peer to its messages, and digests of what was said and heard.
pub(super) struct MessagePins {
    keeper: PinKeeper,
    key: [u8; 32],
    /// Whether the seal of the streams is the first pin.
    sealed: bool,
    known: Vec<[u8; PIN_BYTES]>,
    said: blake3::Hasher,
    heard: blake3::Hasher,
}

impl MessagePins {
    /// Pins of a run that cannot go on: every message is new.
    pub fn none() -> Self {
        Self {
            keeper: PinKeeper::Nobody,
            key: [0; 32],
            sealed: false,
            known: Vec::new(),
            said: blake3::Hasher::new(),
            heard: blake3::Hasher::new(),
        }
    }

    /// From now on messages from number `first` on are what the peer has promised.
    pub fn promised(&mut self, first: u64, digests: Vec<MessageDigest>) {
        self.keeper = PinKeeper::Peer(first, digests);
    }

    /// From now on the peer has promised nothing.
    pub fn free(&mut self) {
        self.keeper = PinKeeper::Nobody;
    }

    /// This party says a message.
    pub fn says(&mut self, message: &[GroupElement]) {
        self.said.update(message.as_flattened());
    }

    /// Digests of what this party has said, and of what it has heard.
    pub fn transcript(&self) -> [MessageDigest; 2] {
        [&self.said, &self.heard].map(|hasher| *hasher.finalize().as_bytes())
    }

    /// Reads `file` up to the first pin that is not whole, or is of another run. `sealed` says whether the
    /// run pins the seal of its streams; one of the first version of journals does not.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(file: File, key: [u8; 32], sealed: bool) -> Result<Self, Error> {
        let mut pins = Self { key, sealed, ..Self::none() };
        let mut frame = [0; FRAME];
        loop {
            match file.read_exact_at(&mut frame, (pins.known.len() * FRAME) as u64) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
                Err(e) => return Err(Error::io("reading a log", &e)),
            }
            let pin = *frame.first_chunk().expect("a pin begins it");
            if pins.frame(pin) != frame {
                break;
            }
            pins.known.push(pin);
        }
        Ok(Self { keeper: PinKeeper::File(file), ..pins })
    }

    /// The seal of the streams, before it is told.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn seal(&mut self, link: &StepLink<'_>, root: &[u8; 32]) -> Result<(), Error> {
        match !self.sealed || self.keep(0, std::slice::from_ref(root))? {
            true => Ok(()),
            false => Err(link.blame(SAME)),
        }
    }

    /// Message `index` of the peer after the streams: one that was pinned must be the same, the next one is
    /// pinned.
    ///
    /// # Errors
    /// `Deviated` when it is another one than before the cut; `Io` when it cannot be written.
    pub fn check(&mut self, link: &StepLink<'_>, index: u64, message: &[GroupElement]) -> Result<(), Error> {
        self.heard.update(message.as_flattened());
        self.expect(link, index, message)?;
        match self.keep(index + u64::from(self.sealed), message)? {
            true => Ok(()),
            false => Err(link.blame(SAME)),
        }
    }

    /// Message `index` of the peer, before it is answered: where it has promised its messages, it is the one
    /// that it has promised.
    ///
    /// # Errors
    /// `Deviated` when it is another one.
    pub fn expect(&self, link: &StepLink<'_>, index: u64, message: &[GroupElement]) -> Result<(), Error> {
        let PinKeeper::Peer(first, digests) = &self.keeper else { return Ok(()) };
        let promised = index.checked_sub(*first).and_then(|at| digests.get(at as usize));
        match promised == Some(&digest_of(message)) {
            true => Ok(()),
            false => Err(link.blame(PROMISED)),
        }
    }

    /// Whether the message of pin `index` may come.
    fn keep(&mut self, index: u64, message: &[GroupElement]) -> Result<bool, Error> {
        let PinKeeper::File(file) = &self.keeper else { return Ok(true) };
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"message").update(&index.to_le_bytes()).update(message.as_flattened());
        let pin = *hasher.finalize().as_bytes().first_chunk().expect("a digest is longer");
        if let Some(before) = self.known.get(index as usize) {
            return Ok(*before == pin);
        }
        debug_assert_eq!(index, self.known.len() as u64, "messages come in order");
        let at = (self.known.len() * FRAME) as u64;
        let written = file.write_all_at(&self.frame(pin), at);
        written.map_err(|e| Error::io("writing a log of the match folder", &e))?;
        self.known.push(pin);
        Ok(true)
    }

    /// The next pin with its tag.
    fn frame(&self, pin: [u8; PIN_BYTES]) -> [u8; FRAME] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"pin").update(&(self.known.len() as u64).to_le_bytes()).update(&pin);
        let mut frame = [0; FRAME];
        frame[..PIN_BYTES].copy_from_slice(&pin);
        frame[PIN_BYTES..].copy_from_slice(&hasher.finalize().as_bytes()[..PIN_BYTES]);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(file: &File) -> MessagePins {
        MessagePins::open(file.try_clone().unwrap(), [7; 32], true).unwrap()
    }

    #[test]
    fn a_message_is_bound_once_and_torn_or_foreign_pins_are_none() {
        let file = tempfile::tempfile().unwrap();
        let message = |byte: u8| vec![[byte; 32]; 3];
        let mut pins = open(&file);
        assert!(pins.keep(0, &message(1)).unwrap() && pins.keep(1, &[]).unwrap());
        assert!(pins.keep(0, &message(1)).unwrap() && !pins.keep(0, &message(2)).unwrap());
        let mut again = open(&file);
        assert!(!again.keep(1, &message(1)).unwrap(), "an empty message is one too");
        assert!(again.keep(1, &[]).unwrap() && again.keep(2, &message(3)).unwrap());
        file.set_len(3 * FRAME as u64 - 1).unwrap();
        let mut torn = open(&file);
        assert_eq!(torn.known.len(), 2);
        assert!(torn.keep(2, &message(4)).unwrap());
        assert_eq!(MessagePins::open(file.try_clone().unwrap(), [8; 32], true).unwrap().known.len(), 0);
        assert!(MessagePins::none().keep(9, &message(1)).unwrap());
    }
}

//! Words between coordinators: two channels, each of which carries them one way, so that either side speaks
//! when it has something to say. A word is its length (4 bytes, little endian) and its bytes.

use super::coordinate::CoordinatorInput;
use base::{At, ChannelError, Error, Fault, PartyId};
use net::{Channel, Channels};
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use units::{WORD_BYTES, Word};

/// Channels of a crew that carry words, one for what each party says.
pub(crate) const WORD_CHANNELS: u32 = 2;

/// What this side says.
pub(super) struct WordLink {
    channel: Box<dyn Channel>,
    /// Where it says it, for an error.
    at: At,
}

/// What it hears.
pub(super) struct WordReader {
    channel: Box<dyn Channel>,
    at: At,
}

/// Both, of channels that a meeting made for it; `at` names this party and its peer.
///
/// # Errors
/// When the meeting made other ones.
pub(super) fn word_link(
    channels: Vec<Channels>,
    me: PartyId,
    at: &At,
    silent: Duration,
) -> Result<(WordLink, WordReader), Error> {
    let both: Result<[Channels; 2], _> = channels.try_into();
    let mut both = both.map_err(|_| Error::misuse("words take a channel each way"))?;
    let mut of = |party: PartyId| both[party.index()].pop().map(|(_, channel)| channel);
    let missing = || Error::misuse("words take a channel each way");
    let (out, mut into) = (of(me).ok_or_else(missing)?, of(me.other()).ok_or_else(missing)?);
    into.set_deadline(silent);
    Ok((WordLink { channel: out, at: at.clone() }, WordReader { channel: into, at: at.clone() }))
}

impl WordLink {
    /// Queues a word.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn say(&mut self, word: &Word) -> Result<(), Error> {
        let bytes = word.encode();
        let framed = [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat();
        self.channel.send(&framed).map_err(|e| Error::new(self.at.clone(), Fault::Channel(e)))
    }

    /// Hands over what is queued.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.channel.recv(&mut []).map_err(|e| Error::new(self.at.clone(), Fault::Channel(e)))
    }

    /// Waits until all has left.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.channel.finish().map_err(|e| Error::new(self.at.clone(), Fault::Channel(e)))
    }
}

impl WordReader {
    /// Reads words until the peer says goodbye, on a thread that outlives a run which fails: it ends by
    /// itself when the peer has been silent for so long.
    ///
    /// # Errors
    /// When there is no thread.
    pub fn start(mut self, inputs: SyncSender<CoordinatorInput>) -> Result<(), Error> {
        let read = move || {
            loop {
                match self.next() {
                    Ok(word) => {
                        let over = matches!(word, Word::Bye { .. });
                        if inputs.send(CoordinatorInput::Word(word)).is_err() || over {
                            return;
                        }
                    }
                    // Nobody hears it after the end.
                    Err(error) => return drop(inputs.send(CoordinatorInput::Silence(error))),
                }
            }
        };
        let thread = std::thread::Builder::new().name("words".into()).spawn(read);
        thread.map(drop).map_err(|e| Error::io("cannot start a thread", &e))
    }

    fn next(&mut self) -> Result<Word, Error> {
        let place = |kind| Error::new(self.at.clone(), kind);
        let cut = |error: ChannelError| place(Fault::Channel(error));
        let mut len = [0; 4];
        self.channel.recv(&mut len).map_err(cut)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > WORD_BYTES {
            return Err(place(Fault::Limit {
                name: "WORD_BYTES",
                value: len as u64,
                cap: WORD_BYTES as u64,
            }));
        }
        let mut bytes = vec![0; len];
        self.channel.recv(&mut bytes).map_err(cut)?;
        Word::decode(&bytes).ok_or_else(|| place(Fault::Malformed("a word between coordinators")))
    }
}

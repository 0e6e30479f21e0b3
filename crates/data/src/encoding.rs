//! From the bytes of a text file to UTF-8.

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::fmt;
use std::io::{self, Chain, Cursor, Read};
use study::format::TextEncoding;

/// Bytes that are decoded at a time.
const BLOCK: usize = 1 << 16;

/// Bytes that no text in an encoding has.
#[derive(Debug)]
pub(crate) struct Undecodable {
    /// What was expected.
    pub encoding: TextEncoding,
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not {}", self.encoding.name())
    }
}

impl std::error::Error for Undecodable {}

/// What stands at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextMark {
    Utf8,
    Utf16Little,
    Utf16Big,
    /// No mark, but every other byte of the first four is zero, as in UTF-16 without one.
    LooksLittle,
    LooksBig,
    Nothing,
}

fn mark(head: &[u8]) -> TextMark {
    match head {
        [0xEF, 0xBB, 0xBF, ..] => TextMark::Utf8,
        [0xFF, 0xFE, ..] => TextMark::Utf16Little,
        [0xFE, 0xFF, ..] => TextMark::Utf16Big,
        [a, 0, b, 0, ..] if *a != 0 && *b != 0 => TextMark::LooksLittle,
        [0, a, 0, b, ..] if *a != 0 && *b != 0 => TextMark::LooksBig,
        _ => TextMark::Nothing,
    }
}

/// A text as UTF-8, and its encoding where that is not UTF-8.
pub(crate) type DecodedText = (Box<dyn Read>, Option<TextEncoding>);

/// The text of a file as UTF-8: in the encoding that is said, else in UTF-16 where its mark says so.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn decoded(
    mut file: Box<dyn Read>,
    said: Option<TextEncoding>,
) -> io::Result<Result<DecodedText, String>> {
    let mut head = Vec::new();
    file.by_ref().take(4).read_to_end(&mut head)?;
    let mark = mark(&head);
    let all = Cursor::new(head).chain(file);
    let wide = |encoding, all| (decoder(encoding, all), Some(TextEncoding::Utf16));
    Ok(Ok(match (said, mark) {
        (None | Some(TextEncoding::Utf16), TextMark::Utf16Little) => wide(UTF_16LE, all),
        (None | Some(TextEncoding::Utf16), TextMark::Utf16Big) => wide(UTF_16BE, all),
        (Some(TextEncoding::Utf16), TextMark::LooksBig) => wide(UTF_16BE, all),
        (Some(TextEncoding::Utf16 | TextEncoding::Windows1252), TextMark::Utf8) => {
            return Ok(Err("begins with the mark of UTF-8, and `encoding` says otherwise: remove it".into()));
        }
        (Some(TextEncoding::Windows1252), TextMark::Utf16Little | TextMark::Utf16Big) => {
            return Ok(
                Err("begins with the mark of UTF-16, and `encoding` says otherwise: remove it".into()),
            );
        }
        (Some(TextEncoding::Utf16), _) => wide(UTF_16LE, all),
        (Some(TextEncoding::Windows1252), _) => (decoder(WINDOWS_1252, all), Some(TextEncoding::Windows1252)),
        (None, TextMark::LooksLittle | TextMark::LooksBig) => {
            return Ok(Err("looks like UTF-16 without a mark: if it is, add encoding = \"utf-16\" under \
                           [format] of the party file (or --encoding utf-16)"
                .into()));
        }
        (None | Some(TextEncoding::Utf8), _) => (Box::new(all), None),
    }))
}

fn decoder(encoding: &'static Encoding, inner: Chain<Cursor<Vec<u8>>, Box<dyn Read>>) -> Box<dyn Read> {
    Box::new(Decoding {
        inner,
        said: if encoding == WINDOWS_1252 { TextEncoding::Windows1252 } else { TextEncoding::Utf16 },
        decoder: encoding.new_decoder_with_bom_removal(),
        bytes: vec![0; BLOCK],
        held: 0..0,
        ended: false,
        finished: false,
        text: vec![0; 4 * BLOCK],
        ready: 0..0,
        bad: false,
    })
}

/// Decodes while it is read.
struct Decoding {
    inner: Chain<Cursor<Vec<u8>>, Box<dyn Read>>,
    said: TextEncoding,
    decoder: Decoder,
    /// What was read, and which of it waits to be decoded.
    bytes: Vec<u8>,
    held: std::ops::Range<usize>,
    ended: bool,
    /// Whether the decoder has seen the end.
    finished: bool,
    /// What was decoded, and which of it waits to be taken.
    text: Vec<u8>,
    ready: std::ops::Range<usize>,
    /// What follows is in no such encoding.
    bad: bool,
}

impl Read for Decoding {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() {
            if self.finished {
                return Ok(0);
            }
            if self.bad {
                return Err(io::Error::other(Undecodable { encoding: self.said }));
            }
            if self.held.is_empty() && !self.ended {
                let read = self.inner.read(&mut self.bytes)?;
                (self.held, self.ended) = (0..read, read == 0);
            }
            let last = self.ended;
            let waiting = &self.bytes[self.held.clone()];
            let (result, read, written) =
                self.decoder.decode_to_utf8_without_replacement(waiting, &mut self.text, last);
            self.held.start += read;
            self.ready = 0..written;
            match result {
                DecoderResult::Malformed(..) => self.bad = true,
                DecoderResult::InputEmpty => self.finished = last,
                DecoderResult::OutputFull => {}
            }
        }
        let count = self.ready.len().min(into.len());
        into[..count].copy_from_slice(&self.text[self.ready.start..][..count]);
        self.ready.start += count;
        Ok(count)
    }
}

//! Parts of one CSV file, which are read side by side.
//!
//! Where a line ends is known without reading all before it only in a text without any quote, in UTF-8: so a
//! file is cut right behind line feeds, and every part is looked through for quotes and for line ends that
//! are none of LF and CRLF. A file that has one is read from its beginning by one reader.

use super::shared_file::SharedFile;
use base::{Error, in_order, limits};
use std::io::{BufRead, BufReader, Read};

/// Bytes of a part at least.
const PART_LEAST: u64 = 1 << 16;
/// Bytes that are looked at in one piece.
const BLOCK: usize = 1 << 18;

/// A part of a CSV file: its header, and bytes that begin a line and end one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextSpan {
    /// Bytes of the header line, with the end of that; 0 in the first part, which has it.
    head: u64,
    from: u64,
    to: u64,
    /// Lines between both.
    lines: u64,
}

/// What a reader of a part has not before it: bytes and lines behind so many bytes of what it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    pub at: u64,
    pub bytes: u64,
    pub lines: u64,
}

impl TextSpan {
    /// The text of the part behind the header.
    pub fn open(&self, file: &SharedFile) -> Box<dyn Read> {
        Box::new(file.range(0..self.head).chain(file.range(self.from..self.to)))
    }

    pub fn skipped(&self) -> Skipped {
        Skipped { at: self.head, bytes: self.from - self.head, lines: self.lines }
    }
}

/// Parts of a plain CSV file, `most` at most; none where it is short, or cannot be cut, or not be read:
/// whoever reads it says why.
pub(super) fn spans(file: &SharedFile, most: usize) -> Option<Vec<TextSpan>> {
    let size = file.len();
    let count = (size / PART_LEAST).min(most as u64);
    if count < 2 {
        return None;
    }
    let head = head_bytes(file)?;
    let mut cuts = vec![0];
    for part in 1..count {
        let cut = line_begins(file, size / count * part)?;
        if cut > head && cut < size && cuts.last() != Some(&cut) {
            cuts.push(cut);
        }
    }
    cuts.push(size);
    let mut spans = Vec::with_capacity(cuts.len());
    let mut before = 0;
    let lines = |at: usize| plain_lines(file, cuts[at], cuts[at + 1]);
    in_order(cuts.len() - 1, (u64::MAX, &|_| 0), lines, |lines| {
        let (from, to) = (cuts[spans.len()], cuts[spans.len() + 1]);
        spans.push(match from {
            0 => TextSpan { head: 0, from, to, lines: 0 },
            // The header is the one line that the reader has before it.
            _ => TextSpan { head, from, to, lines: before - 1 },
        });
        before += lines;
        Ok(())
    })
    .ok()?;
    Some(spans)
}

/// Bytes of the first line, its end among them; none where it is empty, or too long, or the text is in
/// another encoding than UTF-8, or has no such line.
fn head_bytes(file: &SharedFile) -> Option<u64> {
    let head = line(file, 0)?;
    let is_wide = head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF") || head.contains(&0);
    // A byte order mark is of no line.
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&head);
    (!is_wide && !text.trim_ascii().is_empty()).then_some(head.len() as u64)
}

/// Where the first line begins behind a byte.
fn line_begins(file: &SharedFile, at: u64) -> Option<u64> {
    line(file, at).map(|line| at + line.len() as u64)
}

/// What is left of a line from a byte on, with its end.
fn line(file: &SharedFile, at: u64) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let most = file.len().min(at + limits::LINE_BYTES as u64);
    BufReader::new(file.range(at..most)).read_until(b'\n', &mut line).ok()?;
    line.ends_with(b"\n").then_some(line)
}

/// How many lines end in a span that has no quote, and no carriage return but before a line feed.
fn plain_lines(file: &SharedFile, from: u64, to: u64) -> Result<u64, Error> {
    let (mut text, mut block, mut lines, mut returned) = (file.range(from..to), vec![0; BLOCK], 0, false);
    loop {
        let read = text.read(&mut block).map_err(|e| Error::io("cannot read a part of a text", &e))?;
        let bytes = &block[..read];
        // A carriage return was the last byte, and no line feed came.
        let mut is_plain = !returned || bytes.first() == Some(&b'\n');
        for at in memchr::memchr3_iter(b'"', b'\n', b'\r', bytes) {
            match bytes[at] {
                b'\n' => lines += 1,
                b'\r' => is_plain &= bytes.get(at + 1).is_none_or(|next| *next == b'\n'),
                _ => is_plain = false,
            }
        }
        if !is_plain {
            return Err(Error::misuse("a text that is cut has no quote and no other line ends"));
        }
        returned = bytes.last() == Some(&b'\r');
        if read == 0 {
            return Ok(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What readers of the parts read, behind one another, is the file; and each line has its number.
    #[test]
    fn parts_are_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let cut = |text: &str, most: usize| {
            std::fs::write(&path, text).unwrap();
            let file = SharedFile::new(std::fs::File::open(&path).unwrap()).unwrap();
            spans(&file, most).map(|spans| (file, spans))
        };
        for end in ["\n", "\r\n"] {
            let header = format!("\u{feff}id,number{end}");
            let row = |i: u32| format!("person {},{i}{end}", "x".repeat(i as usize % 90));
            let text: String = (0..9000).fold(header.clone(), |text, i| text + &row(i));
            let (file, spans) = cut(&text, 5).unwrap();
            assert_eq!(spans.len(), 5);
            let (mut whole, mut lines) = (String::new(), 0);
            for span in spans {
                let mut part = String::new();
                span.open(&file).read_to_string(&mut part).unwrap();
                let skipped = span.skipped();
                let rows = &part[skipped.at as usize..];
                assert!(rows.ends_with('\n') && skipped.at + skipped.bytes == whole.len() as u64);
                assert_eq!(skipped.lines, lines - u64::from(skipped.at > 0));
                assert!(skipped.at == 0 || part.starts_with(&header));
                lines += rows.lines().count() as u64;
                whole.push_str(rows);
            }
            assert_eq!(whole, text);
            // An end without a line feed is one of the last part.
            assert_eq!(cut(text.trim_end(), 5).unwrap().1.len(), 5);
            assert!(
                cut(&text, 1).is_none() && cut(&text[..100_000], 5).is_none(),
                "one part, or too few bytes"
            );
            for (from, to) in [
                (",8999", ",\"8999\""),
                (",8999", ",89\r99"),
                ("id,", "id\0,"),
                ("id,", "\n"),
                ("id,", "\u{feff}\n"),
            ] {
                let from = if from == "id," { &header[..6] } else { from };
                assert!(cut(&text.replacen(from, to, 1), 5).is_none(), "{to:?}");
            }
        }
        assert!(cut(&"x".repeat(5 << 20), 5).is_none(), "no line ends");
    }
}

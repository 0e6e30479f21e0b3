//! Lines above the names of columns: a title, the day of an export.

use super::csv_parts::Skipped;
use super::table::TableReading;
use base::{Error, limits};
use std::io::{self, Cursor, Read};
use study::format::SEPARATORS;

/// Lines that are looked at for a header.
const LOOKED: usize = 30;
/// Bytes of a beginning that is looked at, at most.
const HEAD_BYTES: usize = 1 << 17;

/// What a line looks like that may be the header below a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LowerHeader {
    /// Its number.
    pub line: u64,
    /// How many cells it has.
    pub cells: usize,
    /// Whether rows have as many fields as the first line, so that this one can be the header.
    pub doubtful: bool,
}

impl LowerHeader {
    /// Refuses a table whose first line is a title. Where it can be the header it is one as long as it has
    /// all columns that are wanted.
    pub fn refuse(&self, table: &TableReading<'_>, found: &[String], row: &str) -> Result<(), Error> {
        let sink = &table.sink;
        let has = |name: &String| found.iter().any(|one| one == table.format.in_file(name));
        if self.doubtful && !sink.surveys() && sink.columns().iter().all(has) {
            return Ok(());
        }
        let Self { line, cells, .. } = self;
        Err(table.refused(format!(
            "{row} {line} has {cells} cells, and the first {row} has one: if that is a title above the names \
             of columns, add header_line = {line} under [format] of the party file (or --header-line \
             {line}); if it is the header, header_line = 1"
        )))
    }
}

/// The line that may be the header of a text, by its beginning and by what separates fields of its first
/// line; none where the first line is the header as far as can be seen.
pub(crate) fn lower_header(
    head: &[u8],
    separator: u8,
    fields: impl Fn(&[u8], u8) -> Vec<String>,
) -> Option<LowerHeader> {
    if head.len() > HEAD_BYTES {
        return None;
    }
    let text = String::from_utf8_lossy(head).replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<(u64, &str)> =
        (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).take(LOOKED).collect();
    let of = |line: &str, separator: u8| fields(line.as_bytes(), separator);
    let filled = |line: &str, separator: u8| of(line, separator).iter().filter(|one| !one.is_empty()).count();
    let (first, rest) = lines.split_first()?;
    let as_many = |line: &(u64, &str)| of(line.1, separator).len() == of(first.1, separator).len();
    let doubtful = rest.iter().take(2).any(as_many);
    if doubtful && filled(first.1, separator) > 1 {
        return None;
    }
    rest.windows(2).find_map(|pair| {
        let [(line, text), (_, next)] = pair else { return None };
        let is = |separator: &u8| {
            let cells = of(text, *separator);
            let full = cells.len() > 1 && cells.iter().all(|cell| !cell.is_empty());
            full && of(next, *separator).len() == cells.len() && filled(first.1, *separator) < 2
        };
        let separator = SEPARATORS.into_iter().find(is)?;
        Some(LowerHeader { line: *line, cells: of(text, separator).len(), doubtful })
    })
}

/// A text behind its first lines, and what is not read of it.
type TextBehind = (Box<dyn Read>, Skipped);

/// A text behind its first lines; the number of its lines where it has too few.
pub(crate) fn behind(mut text: Box<dyn Read>, lines: u64) -> io::Result<Result<TextBehind, u64>> {
    let (mut head, mut block, mut at, mut ended) = (Vec::new(), vec![0; 1 << 16], 0, 0u64);
    loop {
        let read = text.read(&mut block)?;
        head.extend_from_slice(&block[..read]);
        while ended < lines {
            match head[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r')).map(|next| at + next) {
                // Whether a line feed belongs to it is known when the next byte is there.
                Some(end) if end + 1 < head.len() || read == 0 => {
                    let pair = head[end] == b'\r' && head.get(end + 1) == Some(&b'\n');
                    at = end + 1 + usize::from(pair);
                    ended += 1;
                }
                _ => break,
            }
        }
        if ended == lines {
            let skipped = Skipped { at: 0, bytes: at as u64, lines };
            return Ok(Ok((Box::new(Cursor::new(head.split_off(at)).chain(text)), skipped)));
        }
        if read == 0 || head.len() - at > limits::LINE_BYTES {
            return Ok(Err(ended + u64::from(at < head.len())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &[u8], separator: u8) -> Vec<String> {
        let text = String::from_utf8_lossy(line).into_owned();
        text.split(char::from(separator)).map(|one| one.trim().to_owned()).collect()
    }

    #[test]
    fn a_title_is_told_from_a_header() {
        let found = |text: &str, separator: u8| {
            lower_header(text.as_bytes(), separator, fields).map(|of| (of.line, of.cells, of.doubtful))
        };
        let rows = "E-Mail;Gruppe;Versand\r\na@b.de;x;1\r\nc@d.de;y;2\r\n";
        assert_eq!(found(rows, b';'), None);
        assert_eq!(found(&format!("Export vom 03.02.2026\r\n\r\n{rows}"), b';'), Some((3, 3, false)));
        assert_eq!(found(&format!("Export vom 03.02.2026\n{rows}"), b','), Some((2, 3, true)));
        assert_eq!(found(&format!("Export;;\n{rows}"), b';'), Some((2, 3, true)));
        assert_eq!(found(&format!("Export, Bonn\n{rows}"), b','), Some((2, 3, false)));
        // One column; other separators within cells; a short last line.
        assert_eq!(found("id\na\nb\n", b','), None);
        assert_eq!(found("id,name\n1,a;b\n2,c;d\n", b','), None);
        assert_eq!(found("id,name\n", b','), None);
    }

    #[test]
    fn a_text_begins_behind_so_many_lines() {
        let read = |text: &'static str, lines: u64| {
            behind(Box::new(text.as_bytes()), lines).unwrap().map(|(mut rest, skipped)| {
                let mut text = String::new();
                rest.read_to_string(&mut text).unwrap();
                (text, skipped.bytes, skipped.lines)
            })
        };
        for end in ["a\nb\nc", "a\rb\rc"] {
            assert_eq!(read(end, 2), Ok(("c".to_owned(), 4, 2)));
        }
        assert_eq!(read("a\r\n\r\nc\r\n", 2), Ok(("c\r\n".to_owned(), 5, 2)));
        assert_eq!(read("a\nb", 2), Err(2));
    }
}

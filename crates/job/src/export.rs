//! What a match found, as Parquet or as batches in memory: positions in a spine, or shares of joined rows.
//!
//! A file holds one party's part, so it is made for its owner alone (mode 0600) and an existing file is never
//! replaced. Batches touch no file. The metadata `tacit` says what it is: a JSON object with the format, the
//! study's hash, the protocol, the party and, for shares, how each column is put together with the other
//! party's.
//!
//! | part | columns |
//! |---|---|
//! | spine | `row` (of this party's rows, from 0), `identifier` (the first one, normalised), `position` (in the spine, from 0) |
//! | shares | `row` (joined row, from 0), `slot`, each payload column as `PARTY.NAME`, `valid` (a bit) |
//!
//! Where dummies may be among the rows, each party has a further payload column `PARTY.real`, 1 for a row of
//! its data and 0 for a dummy. Payload columns of up to 8 bytes are `UInt64`, wider ones 16 little-endian
//! bytes. A column that this party knows in the clear is its own value; one that only the peer knows is not
//! there. `valid` is left out where every row is a match.

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use base::Error;
use matching::{JoinedPart, JoinedShares, PayloadTable, ShareRing, ValidEntries};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// The format of these files.
pub const FORMAT: &str = "tacit-match/2";
/// Rows written at once.
const BATCH: u64 = 1 << 16;

/// What the metadata says.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// [`FORMAT`].
    pub format: &'static str,
    /// The study's hash.
    pub study: String,
    /// Of the match, as the study names it.
    pub protocol: &'static str,
    /// Whose part this is.
    pub party: String,
    /// Rows of the spine, or joined rows.
    pub rows: u64,
    /// Payload columns of shares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<AboutColumn>,
}

/// One payload column.
#[derive(Clone, Debug, Serialize)]
pub struct AboutColumn {
    /// As in the file: `PARTY.NAME`.
    pub name: String,
    /// How it is put together: `xor`, `add` modulo 2^(8 bytes), or `clear`.
    pub shared: &'static str,
    /// Bytes of a value.
    pub bytes: u8,
}

/// One party's payload: its name, its columns' names, and those rows if they are our own.
pub struct Payload<'a> {
    /// The party's name.
    pub party: &'a str,
    /// Its columns.
    pub names: &'a [String],
    /// Its rows before the match, at the party itself.
    pub own: Option<&'a PayloadTable>,
}

/// A party's part of a match as rows, and the columns that they have also where there are none.
#[derive(Clone, Debug)]
pub struct MatchedPart {
    /// The columns, with the metadata of a file.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

/// Where own rows lie in a spine; `identifier(row)` is the first one of a row. Written to a file, or without
/// one returned.
///
/// # Errors
/// When the file is there already or cannot be written.
pub fn spine(
    path: Option<&Path>,
    about: &About,
    identifier: &dyn Fn(usize) -> String,
    positions: &[u32],
) -> Result<Option<MatchedPart>, Error> {
    let field = |name: &str, ty| Field::new(name, ty, false);
    let fields = vec![
        field("row", DataType::UInt64),
        field("identifier", DataType::Utf8),
        field("position", DataType::UInt32),
    ];
    let mut out = PartWriter::create(path, about, fields)?;
    for (at, piece) in (0..).step_by(BATCH as usize).zip(positions.chunks(BATCH as usize)) {
        let rows = at..at + piece.len();
        out.write(vec![
            Arc::new(UInt64Array::from_iter_values(rows.clone().map(|row| row as u64))),
            Arc::new(StringArray::from_iter_values(rows.map(identifier))),
            Arc::new(UInt32Array::from_iter_values(piece.iter().copied())),
        ])?;
    }
    out.finish()
}

/// What this party holds of joined rows. `about.columns` is filled in. Written to a file, or without one
/// returned.
///
/// # Errors
/// When the file is there already or cannot be written.
pub fn shares(
    path: Option<&Path>,
    about: &About,
    joined: &JoinedShares,
    payloads: [Payload<'_>; 2],
) -> Result<Option<MatchedPart>, Error> {
    let mut columns = Vec::new();
    let [first, second] = joined.parts.each_ref().map(|part| match part {
        JoinedPart::Shared(table) => table.whole().map(Some),
        JoinedPart::Mine(_) | JoinedPart::Theirs => Ok(None),
    });
    let shares = [first?, second?];
    for (party, payload) in payloads.iter().enumerate() {
        columns.extend(sources(&joined.parts[party], &shares[party], payload, party, joined.slots)?);
    }
    let mut about = About { columns: columns.iter().map(|c| c.about.clone()).collect(), ..about.clone() };
    about.rows = joined.rows;
    let mut fields =
        vec![Field::new("row", DataType::UInt64, false), Field::new("slot", DataType::UInt32, false)];
    // Where no row of ours lies there is no value of ours either.
    fields.extend(columns.iter().map(|c| {
        let ty = if c.about.bytes > 8 { DataType::FixedSizeBinary(16) } else { DataType::UInt64 };
        Field::new(&c.about.name, ty, c.rows.is_some())
    }));
    let valid = match &joined.valid {
        ValidEntries::All | ValidEntries::Theirs => None,
        ValidEntries::Shared(bits) | ValidEntries::Mine(bits) => Some(bits),
    };
    fields.extend(valid.map(|_| Field::new("valid", DataType::Boolean, false)));
    let mut out = PartWriter::create(path, &about, fields)?;
    let (slots, entries) = (u64::from(joined.slots), joined.rows * u64::from(joined.slots));
    for at in (0..entries).step_by(BATCH as usize) {
        let piece = at..entries.min(at + BATCH);
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from_iter_values(piece.clone().map(|entry| entry / slots))),
            Arc::new(UInt32Array::from_iter_values(piece.clone().map(|entry| (entry % slots) as u32))),
        ];
        for column in &columns {
            arrays.push(column.array(piece.clone())?);
        }
        if let Some(bits) = valid {
            let bit = |entry: u64| bits[entry as usize / 64] >> (entry % 64) & 1 == 1;
            arrays.push(Arc::new(piece.map(bit).map(Some).collect::<BooleanArray>()));
        }
        out.write(arrays)?;
    }
    out.finish()
}

/// A payload column and where its values come from.
struct Source<'a> {
    about: AboutColumn,
    table: &'a PayloadTable,
    field: usize,
    /// Entries of the join for one row of the table.
    repeat: u64,
    /// Which row of the table an entry has, where they are in the clear.
    rows: Option<&'a [u32]>,
}

fn sources<'a>(
    part: &'a JoinedPart,
    shares: &'a Option<PayloadTable>,
    payload: &Payload<'a>,
    party: usize,
    slots: u32,
) -> Result<Vec<Source<'a>>, Error> {
    let (table, rows) = match (part, shares, payload.own) {
        (JoinedPart::Mine(rows), _, Some(own)) => (own, Some(&rows[..])),
        (JoinedPart::Mine(_), _, None) => {
            return Err(Error::misuse("own rows of a join need the table of them"));
        }
        (_, Some(table), _) => (table, None),
        (_, None, _) => return Ok(Vec::new()),
    };
    if table.layout().fields().len() != payload.names.len() {
        return Err(Error::misuse("a payload has another number of columns than names"));
    }
    let source = |(field, name): (usize, &String)| {
        let of = table.layout().fields()[field];
        let shared = match (rows, of.ring) {
            (Some(_), _) => "clear",
            (None, ShareRing::Xor) => "xor",
            (None, ShareRing::Add) => "add",
        };
        let about = AboutColumn { name: format!("{}.{name}", payload.party), shared, bytes: of.bytes };
        // Of the first party there is one entry per joined row, of the second one per slot.
        let repeat = if party == 0 { slots.into() } else { 1 };
        Source { about, table, field, repeat, rows }
    };
    Ok(payload.names.iter().enumerate().map(source).collect())
}

impl Source<'_> {
    fn array(&self, entries: std::ops::Range<u64>) -> Result<ArrayRef, Error> {
        let value = |entry: u64| {
            let row = match self.rows {
                None => Some(entry / self.repeat),
                Some(rows) => rows
                    .get((entry / self.repeat) as usize)
                    .copied()
                    .filter(|row| *row != matching::payload::ABSENT)
                    .map(u64::from),
            };
            row.map(|row| self.table.get(row, self.field))
        };
        if self.about.bytes <= 8 {
            return Ok(Arc::new(UInt64Array::from_iter(entries.map(|entry| value(entry).map(|v| v as u64)))));
        }
        let mut wide = FixedSizeBinaryBuilder::with_capacity((entries.end - entries.start) as usize, 16);
        for entry in entries {
            match value(entry) {
                None => wide.append_null(),
                Some(value) => wide
                    .append_value(value.to_le_bytes())
                    .map_err(|e| Error::misuse(format!("a column of 16 bytes: {e}")))?,
            }
        }
        Ok(Arc::new(wide.finish()))
    }
}

/// A part that is being made.
struct PartWriter {
    schema: SchemaRef,
    to: PartSink,
}

enum PartSink {
    /// What the file is called, and its rows.
    File(String, Box<ArrowWriter<File>>),
    Memory(Vec<RecordBatch>),
}

impl PartWriter {
    fn create(path: Option<&Path>, about: &About, fields: Vec<Field>) -> Result<Self, Error> {
        let text = serde_json::to_string(about)
            .map_err(|e| Error::misuse(format!("what a match says of its part: {e}")))?;
        let schema = Arc::new(Schema::new_with_metadata(fields, [("tacit", text.clone())]));
        let to = match path {
            Some(path) => {
                let (shown, file) = (path.display().to_string(), created(path)?);
                let about = KeyValue::new("tacit".to_owned(), text);
                let properties =
                    WriterProperties::builder().set_key_value_metadata(Some(vec![about])).build();
                let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties));
                PartSink::File(shown.clone(), Box::new(writer.map_err(|e| failed(&shown, &e))?))
            }
            None => PartSink::Memory(Vec::new()),
        };
        Ok(Self { schema, to })
    }

    fn write(&mut self, arrays: Vec<ArrayRef>) -> Result<(), Error> {
        let batch = RecordBatch::try_new(self.schema.clone(), arrays)
            .map_err(|e| Error::misuse(format!("rows of a match: {e}")))?;
        match &mut self.to {
            PartSink::File(shown, writer) => writer.write(&batch).map_err(|e| failed(shown, &e))?,
            PartSink::Memory(batches) => batches.push(batch),
        }
        Ok(())
    }

    fn finish(self) -> Result<Option<MatchedPart>, Error> {
        match self.to {
            PartSink::File(shown, writer) => writer.close().map(|_| None).map_err(|e| failed(&shown, &e)),
            PartSink::Memory(batches) => Ok(Some(MatchedPart { schema: self.schema, batches })),
        }
    }
}

/// A new file for its owner alone.
fn created(path: &Path) -> Result<File, Error> {
    let shown = path.display();
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Error::input(format!(
            "{shown} is there already, and a match never replaces a file; move it away or write elsewhere"
        )),
        _ => Error::io(format!("cannot create {shown}"), &e),
    })
}

fn failed(path: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(base::At::default(), base::Fault::Io(format!("cannot write {path}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{UInt32Type, UInt64Type};
    use matching::ShareTable;
    use matching::spill::SpillRoom;
    use matching::{PayloadLayout, TableField};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::os::unix::fs::PermissionsExt;

    fn about() -> About {
        About {
            format: FORMAT,
            study: "ab".into(),
            protocol: "ps3i",
            party: "a".into(),
            rows: 0,
            columns: Vec::new(),
        }
    }

    fn read(path: &Path) -> (RecordBatch, String) {
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        let meta = builder.metadata().file_metadata().key_value_metadata().unwrap().clone();
        let text = meta.into_iter().find(|pair| pair.key == "tacit").and_then(|pair| pair.value).unwrap();
        (builder.build().unwrap().next().unwrap().unwrap(), text)
    }

    #[test]
    fn a_spine_is_written_once_and_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spine.parquet");
        let identifier = |row| format!("id {row}");
        assert!(spine(Some(&path), &about(), &identifier, &[7, 2]).unwrap().is_none());
        let (batch, text) = read(&path);
        assert_eq!(batch.column(2).as_primitive::<UInt32Type>().values().to_vec(), [7, 2]);
        assert_eq!(batch.column(1).as_string::<i32>().value(1), "id 1");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = spine(Some(&path), &about(), &|_| String::new(), &[]).unwrap_err().to_string();
        assert!(again.contains("is there already"), "{again}");
        // Rows that are handed over say the same of themselves.
        let part = spine(None, &about(), &identifier, &[7, 2]).unwrap().unwrap();
        assert_eq!(part.batches[0].columns(), batch.columns());
        assert_eq!(part.schema.metadata()["tacit"], text);
        assert_eq!(part.schema.fields(), batch.schema().fields());
    }

    #[test]
    fn shares_keep_slots_and_own_rows_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shares.parquet");
        let layout = |fields: &[TableField]| PayloadLayout::new(fields.iter().copied()).unwrap();
        let mut own = PayloadTable::zeros(layout(&[TableField::number(8)]), 3).unwrap();
        (0..3).for_each(|row| own.set(row, 0, 10 + u128::from(row)));
        let mut theirs =
            PayloadTable::zeros(layout(&[TableField::bits(3), TableField::number(16)]), 4).unwrap();
        (0..4).for_each(|entry| theirs.set(entry, 0, entry.into()));
        theirs.set(3, 1, u128::MAX - 5);
        let joined = JoinedShares {
            rows: 2,
            slots: 2,
            parts: [
                JoinedPart::Mine(vec![2, matching::payload::ABSENT]),
                JoinedPart::Shared(ShareTable::of(&theirs, &SpillRoom::new(None, None)).unwrap()),
            ],
            valid: ValidEntries::Shared(vec![0b1001]),
        };
        let names = [vec!["t".to_owned()], vec!["x".to_owned(), "y".to_owned()]];
        let payload = |party, i: usize, own| Payload { party, names: &names[i], own };
        let made = |path: Option<&Path>| {
            shares(path, &about(), &joined, [payload("a", 0, Some(&own)), payload("b", 1, None)]).unwrap()
        };
        assert!(made(Some(&path)).is_none());
        let (batch, text) = read(&path);
        assert_eq!(made(None).unwrap().batches[0].columns(), batch.columns());
        let names: Vec<String> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!(names, ["row", "slot", "a.t", "b.x", "b.y", "valid"]);
        assert!(text.contains("\"shared\":\"clear\"") && text.contains("\"shared\":\"add\""), "{text}");
        let mine = batch.column(2).as_primitive::<UInt64Type>();
        assert_eq!((mine.value(0), mine.value(1), mine.is_null(2)), (12, 12, true));
        assert_eq!(batch.column(3).as_primitive::<UInt64Type>().values().to_vec(), [0, 1, 2, 3]);
        assert_eq!(batch.column(4).as_fixed_size_binary().value(3), (u128::MAX - 5).to_le_bytes());
        assert!(batch.column(5).as_boolean().value(3) && !batch.column(5).as_boolean().value(1));
    }
}

//! Which files hold a party's data, and what each is: one file, a folder, or a pattern; CSV, plain or packed,
//! and Parquet.

use base::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most files of one party.
pub const FILES: usize = 1 << 16;

/// What a file holds, by the end of its name: `.parquet`, `.csv`, `.csv.gz`, `.csv.zst`; a file that is named
/// by itself and ends otherwise is plain CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFormat {
    Csv(CsvPacking),
    Parquet,
}

/// How a CSV file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CsvPacking {
    Plain,
    /// One member or several, one after the other.
    Gzip,
    /// One frame or several.
    Zstd,
}

impl DataFormat {
    /// Of a path; none where no known end stands.
    fn by_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let formats = [
            (".parquet", Self::Parquet),
            (".csv", Self::Csv(CsvPacking::Plain)),
            (".csv.gz", Self::Csv(CsvPacking::Gzip)),
            (".csv.zst", Self::Csv(CsvPacking::Zstd)),
        ];
        formats.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| format)
    }
}

impl CsvPacking {
    /// The bytes of the CSV text.
    pub fn unpacked(self, file: File) -> Result<Box<dyn Read>, Error> {
        Ok(match self {
            Self::Plain => Box::new(file),
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            Self::Zstd => {
                Box::new(zstd::Decoder::new(file).map_err(|e| Error::io("cannot unpack a zstd file", &e))?)
            }
        })
    }
}

/// Opens a file that is not empty.
pub(crate) fn open(path: &Path) -> Result<(File, DataFormat), Error> {
    let name = path.display();
    let file = File::open(path).map_err(|e| Error::reading(format!("cannot open {name}"), &e))?;
    let bytes = file.metadata().map_err(|e| Error::io(format!("cannot read {name}"), &e))?.len();
    if bytes == 0 {
        return Err(Error::input(format!("{name}: the file is empty; it needs a header and rows")));
    }
    Ok((file, DataFormat::by_name(path).unwrap_or(DataFormat::Csv(CsvPacking::Plain))))
}

/// The files that `data` names, sorted by name: itself, those of a folder, or those that fit a pattern with
/// `*`, `?` or `[..]`.
///
/// # Errors
/// When there is none, or more than [`FILES`]; when a folder cannot be read; when a pattern is none.
pub(crate) fn files(data: &Path) -> Result<Vec<PathBuf>, Error> {
    let shown = data.display();
    let found = match data.metadata() {
        Ok(metadata) if metadata.is_dir() => of_folder(data)?,
        Ok(_) => return Ok(vec![data.into()]),
        Err(error) => match data.to_str().filter(|text| text.contains(['*', '?', '['])) {
            Some(pattern) => of_pattern(pattern)?,
            None => return Err(Error::reading(format!("cannot open {shown}"), &error)),
        },
    };
    match found.len() {
        n if n > FILES => Err(Error::limit("files of one party", n as u64, FILES as u64)),
        _ => Ok(found),
    }
}

fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let shown = folder.display();
    let failed = |e: &std::io::Error| Error::io(format!("cannot open {shown}"), e);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| failed(&e))? {
        let path = entry.map_err(|e| failed(&e))?.path();
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if DataFormat::by_name(&path).is_some() && !hidden && path.is_file() {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(Error::input(format!(
            "{shown}: the folder holds no .csv, .csv.gz, .csv.zst or .parquet file"
        )));
    }
    found.sort();
    Ok(found)
}

fn of_pattern(pattern: &str) -> Result<Vec<PathBuf>, Error> {
    let options = glob::MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..Default::default()
    };
    let paths = glob::glob_with(pattern, options)
        .map_err(|e| Error::input(format!("{pattern}: not a pattern of files: {e}")))?;
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(|e| {
            let shown = e.path().display().to_string();
            Error::io(format!("cannot open {shown}"), e.error())
        })?;
        if path.is_file() {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(Error::input(format!("{pattern}: no file has a name like this")));
    }
    Ok(found)
}

//! Which files or objects hold a party's data, and what each is: one, those of a folder, or a pattern; CSV,
//! plain or packed, and Parquet.

use crate::input::InputFile;
use crate::shared_file::SharedFile;
use crate::stream::RowStream;
use base::Error;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use store::{InputObject, InputStore, StoreOptions, is_url};
use study::format::InputFormat;

/// Where a party's data lie: a file, a folder or a pattern of files of this machine, a URL that names objects
/// of a bucket, or a stream of rows.
#[derive(Clone, Copy, Debug)]
pub struct DataLocation<'a> {
    /// The path or the URL, as a party file has it.
    pub path: &'a Path,
    /// What a bucket needs to be told besides.
    pub store: &'a StoreOptions,
    /// What form the files have, as far as it is said.
    pub format: &'a InputFormat,
    /// Rows that are handed over, in the place of files.
    pub stream: Option<&'a RowStream>,
}

/// A place of this machine, or a bucket, of which nothing is said.
impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for DataLocation<'a> {
    fn from(path: &'a P) -> Self {
        static NOTHING: StoreOptions =
            StoreOptions { endpoint: None, region: None, account: None, allow_http: false };
        static UNSAID: InputFormat = InputFormat::NONE;
        Self { path: path.as_ref(), store: &NOTHING, format: &UNSAID, stream: None }
    }
}

/// One of the files or objects that hold a party's data, or all of its rows.
#[derive(Clone)]
pub(crate) enum InputItem {
    File(PathBuf),
    Object(InputObject),
    Rows(RowStream),
}

/// Most files or objects of one party.
pub const FILES: usize = 1 << 16;

/// Ends of names of spreadsheets that are not read.
const OTHER_SHEETS: [&str; 4] = [".xls", ".xlsb", ".ods", ".numbers"];

/// How many bytes of text a byte of a packed file is taken for.
const PACKED: u64 = 6;

/// What a file holds, by the end of its name: `.parquet`, `.xlsx`, `.csv`, `.tsv`, `.csv.gz`, `.csv.zst`; a
/// file that is named by itself and ends otherwise is plain CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFormat {
    Csv(CsvPacking),
    Parquet,
    /// A spreadsheet of Excel.
    Sheet,
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
    pub fn by_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let formats = [
            (".parquet", Self::Parquet),
            (".xlsx", Self::Sheet),
            (".xlsm", Self::Sheet),
            (".csv", Self::Csv(CsvPacking::Plain)),
            (".tsv", Self::Csv(CsvPacking::Plain)),
            (".csv.gz", Self::Csv(CsvPacking::Gzip)),
            (".csv.zst", Self::Csv(CsvPacking::Zstd)),
        ];
        formats.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| format)
    }
}

impl CsvPacking {
    /// The bytes of the CSV text.
    pub fn unpacked(self, file: Box<dyn Read>) -> Result<Box<dyn Read>, Error> {
        Ok(match self {
            Self::Plain => file,
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            Self::Zstd => {
                Box::new(zstd::Decoder::new(file).map_err(|e| Error::io("cannot unpack a zstd file", &e))?)
            }
        })
    }
}

impl InputItem {
    /// For people: the path or the URL.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Object(object) => object.place().to_owned(),
            Self::Rows(stream) => stream.name().to_owned(),
        }
    }

    /// Its bytes, and what it holds by its name.
    pub fn size(&self) -> Result<(u64, Option<DataFormat>), Error> {
        Ok(match self {
            Self::File(path) => (metadata(path)?.len(), DataFormat::by_name(path)),
            Self::Object(object) => (object.size(), DataFormat::by_name(Path::new(object.key()))),
            Self::Rows(stream) => (stream.bytes(), None),
        })
    }

    fn is_no_file(&self) -> Error {
        Error::misuse(format!("{} lies in no file", self.name()))
    }

    /// What changes when it is written again.
    fn version(&self) -> Result<Vec<u8>, Error> {
        match self {
            Self::File(path) => {
                let metadata = metadata(path)?;
                let numbers = [metadata.ctime(), metadata.ctime_nsec(), metadata.ino() as i64];
                Ok(numbers.map(i64::to_le_bytes).concat())
            }
            Self::Object(object) => Ok(object.version().as_bytes().to_vec()),
            Self::Rows(_) => Err(self.is_no_file()),
        }
    }

    /// The path of a file of this machine.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Object(_) | Self::Rows(_) => None,
        }
    }

    /// Opens a file or object that is not empty.
    pub fn open(&self) -> Result<(InputFile, DataFormat), Error> {
        let name = self.name();
        let (file, what, bytes, format) = match self {
            Self::File(path) => {
                let file = File::open(path).map_err(|e| Error::reading(format!("cannot open {name}"), &e))?;
                let file = SharedFile::new(file).map_err(|e| Error::io(format!("cannot read {name}"), &e))?;
                let bytes = file.len();
                (InputFile::Local(file, None), "file", bytes, DataFormat::by_name(path))
            }
            Self::Object(object) => {
                let (bytes, format) = (object.size(), DataFormat::by_name(Path::new(object.key())));
                (InputFile::of_object(object.clone()), "object", bytes, format)
            }
            Self::Rows(_) => return Err(self.is_no_file()),
        };
        if bytes == 0 {
            return Err(Error::input(format!("{name}: the {what} is empty; it needs a header and rows")));
        }
        let ending = |other: &str| name.to_ascii_lowercase().ends_with(other);
        if let Some(other) = OTHER_SHEETS.into_iter().find(|other| ending(other)) {
            return Err(Error::input(format!("{name}: {other} is not read; save it as .xlsx or as CSV")));
        }
        Ok((file, format.unwrap_or(DataFormat::Csv(CsvPacking::Plain))))
    }
}

fn metadata(path: &Path) -> Result<std::fs::Metadata, Error> {
    path.metadata().map_err(|e| Error::io(format!("cannot read {}", path.display()), &e))
}

/// Bytes of the files or objects that `data` names, as they lie there.
///
/// # Errors
/// When there is none, there are too many, or one cannot be examined.
pub fn input_bytes(data: DataLocation<'_>) -> Result<u64, Error> {
    files(data)?.iter().map(|item| item.size().map(|(bytes, _)| bytes)).sum()
}

/// Names the files or objects of `data` as they lie there now, without reading them: by names, sizes, and
/// when each was changed or what its store calls this version of it. Files that were written again have
/// another name, whatever is in them; so have those that are read in another form.
///
/// # Errors
/// As [`input_bytes`].
pub fn input_version(data: DataLocation<'_>) -> Result<[u8; 32], Error> {
    let mut hash = blake3::Hasher::new_derive_key("tacit 2026-12 version of input v1");
    let mut field = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    };
    for item in files(data)? {
        field(item.name().as_bytes());
        field(&item.size()?.0.to_le_bytes());
        field(&item.version()?);
    }
    // What is said of their form may make other rows of the same files.
    if *data.format != InputFormat::NONE {
        field(format!("{:?}", data.format).as_bytes());
    }
    Ok(*hash.finalize().as_bytes())
}

/// About how many bytes the text is that `data` names: packed files and Parquet hold several times as much as
/// they are long.
///
/// # Errors
/// As [`input_bytes`].
pub(crate) fn text_bytes(data: DataLocation<'_>) -> Result<u64, Error> {
    let text = |item: &InputItem| {
        let (bytes, format) = item.size()?;
        Ok(match format {
            None | Some(DataFormat::Csv(CsvPacking::Plain)) => bytes,
            Some(_) => bytes.saturating_mul(PACKED),
        })
    };
    files(data)?.iter().map(text).sum()
}

/// The files that `data` names, sorted by name: itself, those of a folder, or those that fit a pattern with
/// `*`, `?` or `[..]`. The same of objects.
///
/// # Errors
/// When there is none, or more than [`FILES`]; when a folder cannot be read; when a pattern is none.
pub(crate) fn files(data: DataLocation<'_>) -> Result<Vec<InputItem>, Error> {
    if let Some(stream) = data.stream {
        return Ok(vec![InputItem::Rows(stream.clone())]);
    }
    let shown = data.path.display();
    let local = |found: Vec<PathBuf>| found.into_iter().map(InputItem::File).collect();
    let found: Vec<InputItem> = match (data.path.to_str().filter(|text| is_url(text)), data.path.metadata()) {
        (Some(url), _) => of_bucket(url, data.store)?.into_iter().map(InputItem::Object).collect(),
        (None, Ok(metadata)) if metadata.is_dir() => local(of_folder(data.path)?),
        (None, Ok(_)) => local(vec![data.path.into()]),
        (None, Err(error)) => match data.path.to_str().filter(|text| is_pattern(text)) {
            Some(pattern) => local(of_pattern(pattern)?),
            None => return Err(Error::reading(format!("cannot open {shown}"), &error)),
        },
    };
    match found.len() {
        n if n > FILES => Err(Error::limit("files of one party", n as u64, FILES as u64)),
        _ => Ok(found),
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// How patterns are read: a star stands within one folder, and for no dot at the beginning of a name.
const PATTERNS: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: false,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

fn of_bucket(url: &str, options: &StoreOptions) -> Result<Vec<InputObject>, Error> {
    let store = InputStore::open(url, options)?;
    let key = store.key();
    if is_pattern(key) {
        return of_key_pattern(url, &store);
    }
    if !key.is_empty() && !key.ends_with('/') {
        return Ok(vec![store.object()?]);
    }
    let hidden = |key: &str| key.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
    let wanted = |key: &str| DataFormat::by_name(Path::new(key)).is_some() && !hidden(key);
    let found = store.below(key.trim_end_matches('/'), FILES, wanted)?;
    match found.is_empty() {
        true => Err(Error::input(format!(
            "{url}: no object below it ends in .csv, .tsv, .csv.gz, .csv.zst, .xlsx or .parquet; check the \
             address, or name one object by its whole key"
        ))),
        false => Ok(found),
    }
}

fn of_key_pattern(url: &str, store: &InputStore) -> Result<Vec<InputObject>, Error> {
    let key = store.key();
    let pattern =
        glob::Pattern::new(key).map_err(|e| Error::input(format!("{url}: not a pattern of objects: {e}")))?;
    // What stands before the first folder with a pattern is asked for; the rest is chosen here.
    let literal = &key[..key.find(['*', '?', '[']).unwrap_or(key.len())];
    let folder = literal.rsplit_once('/').map_or("", |(folder, _)| folder);
    let found = store.below(folder, FILES, |each| each == key || pattern.matches_with(each, PATTERNS))?;
    // As with files: a name is itself before it is a pattern.
    if let Some(own) = found.iter().find(|object| object.key() == key) {
        return Ok(vec![own.clone()]);
    }
    match found.is_empty() {
        true => Err(Error::input(format!("{url}: no object has a name like this"))),
        false => Ok(found),
    }
}

fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let shown = folder.display();
    let failed = |e: &std::io::Error| Error::io(format!("cannot open {shown}"), e);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| failed(&e))? {
        let path = entry.map_err(|e| failed(&e))?.path();
        // Beside a file that is open in Excel lies one of this name.
        let hidden = |name: &str| name.starts_with('.') || name.starts_with("~$");
        let hidden = path.file_name().is_some_and(|name| hidden(&name.to_string_lossy()));
        if DataFormat::by_name(&path).is_some() && !hidden && path.is_file() {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(Error::input(format!(
            "{shown}: the folder holds no .csv, .tsv, .csv.gz, .csv.zst, .xlsx or .parquet file"
        )));
    }
    found.sort();
    Ok(found)
}

fn of_pattern(pattern: &str) -> Result<Vec<PathBuf>, Error> {
    let paths = glob::glob_with(pattern, PATTERNS)
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

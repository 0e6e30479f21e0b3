//! Named objects in a folder or a bucket, by calls that block.

use crate::address::{StatePlace, bucket};
use crate::error::{about_range, failed};
use crate::lock::lock;
use crate::name::{NAME_BYTES, RULE, is_name};
use crate::{ObjectWriter, StoreError, StoreOptions};
use base::Error;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use std::fs::{DirBuilder, File, Permissions};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::{Builder, Runtime};

/// Bytes of an object that is written or read in one piece.
pub const OBJECT_BYTES: u64 = 16 << 20;
/// Requests of one call under way at a time.
const AT_A_TIME: usize = 8;
/// How often a creation is tried whose name is said to be taken by an object that is not there.
const CREATIONS: u32 = 5;
/// Threads that the library's connections run on.
const THREADS: usize = 2;

/// A folder or a bucket that holds state of one party. Clones are the same store.
#[derive(Clone)]
pub struct StateStore(Arc<Opened>);

struct Opened {
    library: Arc<dyn ObjectStore>,
    runtime: Runtime,
    /// Of a local store.
    folder: Option<PathBuf>,
    prefix: String,
    /// For people: the URL or folder, without credentials.
    url: String,
    written: AtomicU64,
    read: AtomicU64,
    requests: AtomicU64,
}

/// What went to a store and came from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectTraffic {
    /// Bytes of objects that were written.
    pub written: u64,
    /// Bytes of objects that were read.
    pub read: u64,
    /// Requests that moved bytes of objects, without what the library asks besides.
    pub requests: u64,
}

/// As long as it or a clone lives, no other process leads a run whose state is in the same local folder.
#[derive(Clone, Debug)]
pub struct StoreLock(Option<Arc<File>>);

impl StoreLock {
    /// Of who only looks.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Whether it holds anything: in a bucket the log alone keeps two leaders apart.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }
}

/// A request for a part of an object.
#[derive(Clone)]
pub(crate) struct ObjectPart {
    pub(crate) name: String,
    pub(crate) range: Range<u64>,
}

impl std::fmt::Debug for StateStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StateStore({})", self.0.url)
    }
}

impl StateStore {
    /// Opens `PATH`, `file:///PATH`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`. A
    /// folder is made, with mode 0700, where there is none; nothing is sent to a bucket yet.
    ///
    /// # Errors
    /// When it is no such place, others than its owner may enter the folder, or settings of the environment
    /// do not do.
    pub fn open(place: &str, options: &StoreOptions) -> Result<Self, Error> {
        match StatePlace::parse(place)? {
            StatePlace::Folder(path) => {
                let path = private_folder(&path)?;
                let made = LocalFileSystem::new_with_prefix(&path);
                let library = made.map_err(|e| Error::input(format!("{}: {e}", path.display())))?;
                // Its default is to leave what it wrote in the system's memory.
                let library = Arc::new(library.with_fsync(true).with_automatic_cleanup(true));
                Self::of(library, path.display().to_string(), String::new(), Some(path))
            }
            StatePlace::Bucket(provider, name, prefix) => {
                let library = bucket(provider, &name, options)?;
                Self::of(library, place.trim_end_matches('/').to_owned(), prefix, None)
            }
        }
    }

    pub(crate) fn of(
        library: Arc<dyn ObjectStore>,
        url: String,
        prefix: String,
        folder: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(THREADS).thread_name("store").enable_all().build();
        let runtime = runtime.map_err(|e| Error::io("cannot start threads for a store", &e))?;
        let [written, read, requests] = [const { AtomicU64::new(0) }; 3];
        Ok(Self(Arc::new(Opened { library, runtime, folder, prefix, url, written, read, requests })))
    }

    /// The place, for people: no credentials are in it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// The folder, of a local store.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.0.folder.as_deref()
    }

    /// What this store and its clones have moved since it was opened.
    #[must_use]
    pub fn traffic(&self) -> ObjectTraffic {
        let Opened { written, read, requests, .. } = &*self.0;
        let [written, read, requests] = [written, read, requests].map(|count| count.load(Ordering::Relaxed));
        ObjectTraffic { written, read, requests }
    }

    /// Keeps other processes from leading a run in the same local folder; in a bucket it holds nothing. A
    /// process that ends is waited for.
    ///
    /// # Errors
    /// When another process has it, or the file system has no locks.
    pub fn lock(&self) -> Result<StoreLock, Error> {
        let Some(folder) = &self.0.folder else { return Ok(StoreLock(None)) };
        let shown = folder.display();
        let file = File::open(folder).map_err(|e| Error::io(format_args!("cannot open {shown}"), &e))?;
        lock(&file, folder)?;
        Ok(StoreLock(Some(Arc::new(file))))
    }

    /// Creates an object of at most [`OBJECT_BYTES`].
    ///
    /// An object that is there with these very bytes counts as created: the answer to an earlier try may have
    /// been lost. So different writers need different bytes, which sealed ones always are.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`]; or when the store fails, and then the object may be there or not.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        for _ in 0..CREATIONS {
            let error = match self.put_as(PutMode::Create, name, bytes) {
                Err(StoreError::AlreadyExists { place }) => StoreError::AlreadyExists { place },
                done => return done,
            };
            match self.get(name) {
                Ok(there) if there == bytes => return Ok(()),
                // A conflict with a creation that failed itself (S3 says 409): nothing is there.
                Err(StoreError::Missing { .. }) => {}
                _ => return Err(error),
            }
        }
        Err(StoreError::AlreadyExists { place: self.place(name) })
    }

    /// Writes an object of at most [`OBJECT_BYTES`], whether one of this name is there or not.
    ///
    /// # Errors
    /// When the store fails.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.put_as(PutMode::Overwrite, name, bytes)
    }

    pub(crate) fn put_as(&self, mode: PutMode, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let (path, len) = (self.path(name)?, bytes.len() as u64);
        if len > OBJECT_BYTES {
            return Err(Error::limit("OBJECT_BYTES", len, OBJECT_BYTES).into());
        }
        let payload = PutPayload::from(bytes.to_vec());
        self.wait(self.library().put_opts(&path, payload, mode.into()))
            .map_err(|e| failed("cannot write", &self.place(name), self.is_remote(), &e))?;
        self.keep_private(name)?;
        self.count_written(len);
        Ok(())
    }

    /// A writer of an object of any size; what it holds in memory is bounded.
    ///
    /// # Errors
    /// When this is no name.
    pub fn writer(&self, name: &str) -> Result<ObjectWriter, StoreError> {
        self.path(name)?;
        Ok(ObjectWriter::new(self.clone(), name.to_owned()))
    }

    /// A whole object of at most [`OBJECT_BYTES`].
    ///
    /// # Errors
    /// [`StoreError::Missing`]; or when it is larger, or the store fails.
    pub fn get(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let (bytes, size) = self.get_some(name, 0..OBJECT_BYTES)?;
        if size > OBJECT_BYTES {
            return Err(Error::limit("OBJECT_BYTES", size, OBJECT_BYTES).into());
        }
        Ok(bytes)
    }

    /// The bytes of an object in a range.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Damaged`] when it has not that many; or when the store fails.
    pub fn get_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let mut parts = self.get_ranges(name, std::slice::from_ref(&range))?;
        Ok(parts.pop().unwrap_or_default())
    }

    /// The bytes of an object in several ranges, in their order.
    ///
    /// # Errors
    /// As [`Self::get_range`].
    pub fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Vec<u8>>, StoreError> {
        let parts = ranges.iter().map(|range| ObjectPart { name: name.to_owned(), range: range.clone() });
        self.get_parts(parts.collect())
    }

    /// Parts of any objects, in their order; eight requests at a time.
    pub(crate) fn get_parts(&self, parts: Vec<ObjectPart>) -> Result<Vec<Vec<u8>>, StoreError> {
        let fetch = |part: ObjectPart| async move {
            let ObjectPart { name, range } = part;
            let len = range.end.saturating_sub(range.start);
            if len == 0 {
                return Ok(Vec::new());
            }
            let (bytes, _) = self.fetch(&name, range).await?;
            match bytes.len() as u64 == len {
                true => Ok(bytes),
                false => Err(StoreError::Damaged { place: self.place(&name), why: "it is too short" }),
            }
        };
        self.wait(stream::iter(parts).map(fetch).buffered(AT_A_TIME).try_collect())
    }

    /// As much of a range as is there, and the size of the object.
    pub(crate) fn get_some(&self, name: &str, range: Range<u64>) -> Result<(Vec<u8>, u64), StoreError> {
        self.wait(self.fetch(name, range))
    }

    async fn fetch(&self, name: &str, range: Range<u64>) -> Result<(Vec<u8>, u64), StoreError> {
        let path = self.path(name)?;
        let error = |e: object_store::Error| failed("cannot read", &self.place(name), self.is_remote(), &e);
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let got = match self.library().get_opts(&path, options).await {
            Ok(got) => got,
            // Of an object of no bytes, or beyond an object's end, no store gives a range.
            Err(e) if about_range(&e) => {
                return match self.library().head(&path).await {
                    Ok(meta) if meta.size <= range.start => Ok((Vec::new(), meta.size)),
                    _ => Err(error(e)),
                };
            }
            Err(e) => return Err(error(e)),
        };
        let size = got.meta.size;
        let bytes = got.bytes().await.map_err(error)?;
        self.count_read(bytes.len() as u64);
        Ok((Vec::from(bytes), size))
    }

    /// Names and sizes of all objects whose name begins with `prefix` and a slash, in order of their names;
    /// of all objects, where it is empty.
    ///
    /// # Errors
    /// When the store fails.
    pub fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, StoreError> {
        let below = match prefix {
            "" => ObjectPath::from(&self.0.prefix[..]),
            prefix => self.path(prefix)?,
        };
        let found = self.library().list(Some(&below)).try_collect::<Vec<_>>();
        let found = match self.wait(found) {
            // Not even a folder of this name.
            Err(object_store::Error::NotFound { .. }) if !self.is_remote() => Vec::new(),
            found => found.map_err(|e| failed("cannot list", &self.place(prefix), self.is_remote(), &e))?,
        };
        let own = |path: &ObjectPath| {
            let name = path.as_ref().strip_prefix(&self.0.prefix[..]);
            name.map(|name| name.trim_start_matches('/').to_owned())
        };
        let mut names: Vec<(String, u64)> =
            found.iter().filter_map(|meta| Some((own(&meta.location)?, meta.size))).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Deletes an object. A store that keeps versions keeps this one.
    ///
    /// # Errors
    /// [`StoreError::Missing`], where the store tells; or when it fails.
    pub fn delete(&self, name: &str) -> Result<(), StoreError> {
        let path = self.path(name)?;
        let done = self.wait(self.library().delete(&path));
        done.map_err(|e| failed("cannot delete", &self.place(name), self.is_remote(), &e))
    }

    /// The place of an object, for people.
    #[must_use]
    pub fn place(&self, name: &str) -> String {
        [self.url(), name].join(if name.is_empty() { "" } else { "/" })
    }

    pub(crate) fn path(&self, name: &str) -> Result<ObjectPath, StoreError> {
        let whole = match &self.0.prefix[..] {
            "" => name.to_owned(),
            prefix => format!("{prefix}/{name}"),
        };
        match is_name(name) && whole.len() <= NAME_BYTES {
            true => Ok(ObjectPath::from(whole)),
            false => Err(Error::misuse(format!("no name of an object: {name:?}; {RULE}")).into()),
        }
    }

    pub(crate) fn library(&self) -> &Arc<dyn ObjectStore> {
        &self.0.library
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.0.folder.is_none()
    }

    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.runtime.block_on(work)
    }

    pub(crate) fn count_read(&self, bytes: u64) {
        self.0.read.fetch_add(bytes, Ordering::Relaxed);
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_written(&self, bytes: u64) {
        self.0.written.fetch_add(bytes, Ordering::Relaxed);
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// The library makes files as the process's mask says; nobody else gets through the folder above them,
    /// but a copy of them should not be anybody's either.
    pub(crate) fn keep_private(&self, name: &str) -> Result<(), StoreError> {
        let Some(folder) = &self.0.folder else { return Ok(()) };
        match std::fs::set_permissions(folder.join(name), Permissions::from_mode(0o600)) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::io(format_args!("cannot keep {} private", self.place(name)), &e).into())
            }
            _ => Ok(()),
        }
    }
}

/// Makes the folder, or finds it private; its whole path.
fn private_folder(path: &Path) -> Result<PathBuf, Error> {
    let shown = path.display();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|e| Error::io(format_args!("cannot make the folder {shown} for state"), &e))?;
    let failed = |e| Error::io(format_args!("cannot examine {shown}"), &e);
    let whole = std::fs::canonicalize(path).map_err(failed)?;
    let mode = whole.metadata().map_err(failed)?.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Ok(whole),
        _ => Err(Error::input(format!(
            "others may enter {shown} (mode {mode:04o}), which is to hold state; run `chmod 700 {shown}`, or \
             name a new folder"
        ))),
    }
}

/// Bytes that the disk of a folder, which need not be there yet, has left for this user; none where it does
/// not tell.
#[must_use]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(there).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

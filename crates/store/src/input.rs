//! Objects that others wrote and this party reads: its data, in a bucket.

use crate::address::{InputPlace, Provider, bucket};
use crate::error::{about_range, failed};
use crate::{StateStore, StoreError, StoreOptions};
use base::Error;
use futures_util::TryStreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use std::ops::Range;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Whether a place of data is a URL, and no path of this machine.
#[must_use]
pub fn is_url(place: &str) -> bool {
    let word = |scheme: &str| !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric());
    place.split_once("://").is_some_and(|(scheme, _)| word(scheme))
}

/// A bucket that is read: nothing in it is made, written, probed or deleted.
#[derive(Clone, Debug)]
pub struct InputStore {
    store: StateStore,
    key: String,
    /// Whether lists give ETags without the quotes that conditions need.
    bare: bool,
}

/// An object as it was listed. What is read of it is of that very object: one that was changed since is an
/// error.
#[derive(Clone, Debug)]
pub struct InputObject {
    store: StateStore,
    listed: Arc<Listed>,
}

#[derive(Debug)]
struct Listed {
    meta: ObjectMeta,
    /// What a request that reads it asks for: this ETag.
    condition: Option<String>,
    place: String,
}

/// Bytes of an object that are on their way.
#[derive(Debug)]
pub struct InputPart {
    store: StateStore,
    bytes: JoinHandle<Result<Vec<u8>, Error>>,
}

impl InputStore {
    /// Whether [`InputStore::open`] would take this place.
    ///
    /// # Errors
    /// When it is no URL of a bucket, or holds credentials; these are not repeated.
    pub fn check(place: &str) -> Result<(), Error> {
        InputPlace::parse(place).map(drop)
    }

    /// Opens the bucket of `s3://BUCKET/KEY`, `gs://BUCKET/KEY` or `az://CONTAINER/KEY`. Nothing is sent yet.
    ///
    /// # Errors
    /// As [`InputStore::check`]; or when settings of the environment do not do.
    pub fn open(place: &str, options: &StoreOptions) -> Result<Self, Error> {
        let InputPlace { provider, bucket: name, key } = InputPlace::parse(place)?;
        let library = bucket(provider, &name, options)?;
        let url = place[..place.len() - key.len()].trim_end_matches('/').to_owned();
        let store = StateStore::of(library, url, String::new(), None)?;
        Ok(Self { store, key, bare: provider == Provider::Azure })
    }

    /// What the place says behind the bucket: a key, the beginning of keys with a slash behind it, or a
    /// pattern.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The object whose key the place says.
    ///
    /// # Errors
    /// When it is not there, or the store fails.
    pub fn object(&self) -> Result<InputObject, Error> {
        let path = self.path(&self.key)?;
        let place = self.store.place(&self.key);
        match self.store.wait(self.store.library().head(&path)) {
            Ok(meta) => Ok(self.listed(meta)),
            Err(object_store::Error::NotFound { .. }) => {
                // A question about one object is answered without a word on what is missing.
                let below = self.below(&self.key, 0, |_| true)?;
                Err(Error::input(match below.is_empty() {
                    true => format!("there is no object {place}; check its name"),
                    false => {
                        format!("there is no object {place}, but some lie below it: write {place}/ for those")
                    }
                }))
            }
            Err(error) => Err(unread("cannot read", &place, &error)),
        }
    }

    /// Objects below `folder` (a key without a slash behind it; empty for all of the bucket) whose keys do,
    /// sorted by key. At most one more than `most` are looked for.
    ///
    /// # Errors
    /// When the store fails, or has no such bucket.
    pub fn below(
        &self,
        folder: &str,
        most: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<InputObject>, Error> {
        let path = self.path(folder)?;
        let mut all = self.store.library().list(Some(&path));
        let mut found = Vec::new();
        let listing = async {
            while let Some(meta) = all.try_next().await? {
                if wanted(meta.location.as_ref()) {
                    found.push(self.listed(meta));
                }
                if found.len() > most {
                    break;
                }
            }
            Ok(())
        };
        self.store.wait(listing).map_err(|e| unread("cannot list", &self.store.place(folder), &e))?;
        found.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        Ok(without_markers(found, folder))
    }

    fn path(&self, key: &str) -> Result<ObjectPath, Error> {
        let place = self.store.place(key);
        ObjectPath::parse(key).map_err(|e| Error::input(format!("{place}: no name of objects: {e}")))
    }

    fn listed(&self, meta: ObjectMeta) -> InputObject {
        let quoted = |tag: &String| match self.bare && !tag.ends_with('"') {
            true => format!("\"{tag}\""),
            false => tag.clone(),
        };
        let place = self.store.place(meta.location.as_ref());
        let condition = meta.e_tag.as_ref().map(quoted);
        InputObject { store: self.store.clone(), listed: Arc::new(Listed { meta, condition, place }) }
    }
}

impl InputObject {
    /// Its whole name in its bucket.
    #[must_use]
    pub fn key(&self) -> &str {
        self.listed.meta.location.as_ref()
    }

    /// Its place, for people: the URL, without credentials.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.listed.place
    }

    /// What its store calls this version of it: the ETag, or when it was written.
    #[must_use]
    pub fn version(&self) -> String {
        let meta = &self.listed.meta;
        meta.e_tag.clone().unwrap_or_else(|| meta.last_modified.to_rfc3339())
    }

    /// Its bytes when it was listed.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.listed.meta.size
    }

    /// Asks for a range of it, which lies within its size, and does not wait.
    #[must_use]
    pub fn begin(&self, range: Range<u64>) -> InputPart {
        // The task holds no store: the last to hold one ends the threads, which none of these may.
        let (library, listed) = (Arc::clone(self.store.library()), Arc::clone(&self.listed));
        let bytes = self.store.runtime().spawn(async move { listed.fetch(&*library, range).await });
        InputPart { store: self.store.clone(), bytes }
    }
}

impl InputPart {
    /// The bytes, once they are here.
    ///
    /// # Errors
    /// When the object is another one than was listed, or gone, or the store fails.
    pub fn finish(self) -> Result<Vec<u8>, Error> {
        let done = self.store.wait(self.bytes);
        let bytes = done.map_err(|e| Error::misuse(format!("reading of an object ended: {e}")))??;
        self.store.count_read(bytes.len() as u64);
        Ok(bytes)
    }
}

impl Listed {
    async fn fetch(&self, library: &dyn ObjectStore, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let failed = |e: object_store::Error| match &e {
            object_store::Error::Precondition { .. } | object_store::Error::NotFound { .. } => self.changed(),
            e if about_range(e) => self.changed(),
            e => unread("cannot read", &self.place, e),
        };
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: self.condition.clone(),
            ..GetOptions::default()
        };
        let got = library.get_opts(&self.meta.location, options).await.map_err(failed)?;
        if !self.is(&got.meta) {
            return Err(self.changed());
        }
        let bytes = got.bytes().await.map_err(failed)?;
        match bytes.len() as u64 == range.end - range.start {
            true => Ok(Vec::from(bytes)),
            false => Err(self.changed()),
        }
    }

    /// Whether these are words about the object that was listed. Times decide where there is no ETag, by the
    /// second: answers have no finer ones than that.
    fn is(&self, other: &ObjectMeta) -> bool {
        let bare = |meta: &ObjectMeta| meta.e_tag.as_ref().map(|tag| tag.trim_matches('"').to_owned());
        let same = match (bare(&self.meta), bare(other)) {
            (Some(listed), Some(read)) => listed == read,
            _ => self.meta.last_modified.timestamp() == other.last_modified.timestamp(),
        };
        same && self.meta.size == other.size
    }

    fn changed(&self) -> Error {
        Error::input(format!(
            "{} was changed or removed while it was read; run again when nobody writes there",
            self.place
        ))
    }
}

fn unread(what: &str, place: &str, error: &object_store::Error) -> Error {
    match failed(what, place, true, error) {
        StoreError::Missing { place } => Error::input(format!("there is no {place}; check its name")),
        StoreError::AlreadyExists { place } => {
            Error::input(format!("{place} is another object than was listed; run again"))
        }
        other => other.into(),
    }
}

/// Objects of a sorted list without the empty ones that stand for folders, as consoles and file systems over
/// buckets make them.
fn without_markers(found: Vec<InputObject>, folder: &str) -> Vec<InputObject> {
    let keys: Vec<String> = found.iter().map(|object| object.key().to_owned()).collect();
    let is_folder = |key: &str| {
        let inside = format!("{key}/");
        let next = keys.partition_point(|other| *other < inside);
        key == folder || keys.get(next).is_some_and(|other| other.starts_with(&inside))
    };
    found.into_iter().filter(|object| object.size() > 0 || !is_folder(object.key())).collect()
}

#[cfg(test)]
mod tests;

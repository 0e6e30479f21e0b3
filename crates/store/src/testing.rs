//! A store in memory that tests may see through, and that fails as they say.

use crate::StateStore;
use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::sync::Arc;

/// What becomes of a creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    None,
    /// The store forgets that it was asked for a new object.
    Overwrites,
    /// It is done, but the answer gets lost, and what tries again is told that the name is taken.
    ToldAgain,
    /// The name is said to be taken, and is not.
    Conflict,
    /// It is done, or not, and nobody knows.
    Fails(bool),
}

/// What is called around every request: before it, with what is to happen to a creation, and after it.
pub(crate) trait Around: Send + Sync + 'static {
    fn before(&self, creates: bool) -> Mishap;
    fn after(&self) {}
}

impl<F: Fn() -> Mishap + Send + Sync + 'static> Around for F {
    fn before(&self, creates: bool) -> Mishap {
        if creates { self() } else { Mishap::None }
    }
}

struct Watched<A> {
    inner: Arc<InMemory>,
    around: A,
}

/// A store of this memory.
pub(crate) fn watched(inner: &Arc<InMemory>, around: impl Around) -> StateStore {
    let library = Arc::new(Watched { inner: Arc::clone(inner), around });
    StateStore::of(library, "memory".into(), String::new(), None).unwrap()
}

/// A store of this memory that does as it should.
pub(crate) fn memory(inner: &Arc<InMemory>) -> StateStore {
    watched(inner, || Mishap::None)
}

impl<A> std::fmt::Display for Watched<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "memory")
    }
}

impl<A> std::fmt::Debug for Watched<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "memory")
    }
}

fn taken(path: &Path) -> Error {
    Error::AlreadyExists { path: path.to_string(), source: "taken".into() }
}

#[async_trait]
impl<A: Around> ObjectStore for Watched<A> {
    async fn put_opts(&self, path: &Path, bytes: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        let mishap = self.around.before(options.mode == PutMode::Create);
        if mishap == Mishap::Overwrites {
            options.mode = PutMode::Overwrite;
        }
        let skipped = [Mishap::Conflict, Mishap::Fails(false)].contains(&mishap);
        let done = match skipped {
            true => Err(taken(path)),
            false => self.inner.put_opts(path, bytes, options).await,
        };
        self.around.after();
        match mishap {
            Mishap::None | Mishap::Overwrites => done,
            Mishap::ToldAgain | Mishap::Conflict => Err(taken(path)),
            Mishap::Fails(_) => Err(Error::Generic { store: "memory", source: "no answer".into() }),
        }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.around.before(false);
        let got = self.inner.get_opts(path, options).await;
        self.around.after();
        got
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.around.before(false);
        let found =
            self.inner.list(prefix).collect::<Vec<_>>().now_or_never().expect("memory answers at once");
        self.around.after();
        stream::iter(found).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[test]
fn a_store_that_ignores_conditions_is_refused() {
    let inner = Arc::new(InMemory::new());
    memory(&inner).probe().unwrap();
    let error = watched(&inner, || Mishap::Overwrites).probe().unwrap_err().to_string();
    assert!(error.starts_with("memory: this store says that it creates an object that is there"), "{error}");
    assert!(error.contains("it ignores `If-None-Match`, and two processes could lead one run"), "{error}");
    let error = watched(&inner, || Mishap::Fails(false)).probe().unwrap_err().to_string();
    assert!(error.contains("no answer"), "{error}");
    // A probe leaves nothing behind, whatever it finds.
    assert_eq!(memory(&inner).list("").unwrap(), []);
}

#[test]
fn a_creation_whose_answer_was_lost_is_known_as_ones_own() {
    let inner = Arc::new(InMemory::new());
    watched(&inner, || Mishap::ToldAgain).create("a", b"mine").unwrap();
    assert_eq!(memory(&inner).get("a").unwrap(), b"mine");
    let error = watched(&inner, || Mishap::ToldAgain).create("a", b"other").unwrap_err();
    assert_eq!(error, crate::StoreError::AlreadyExists { place: "memory/a".into() });
    // What is said to be taken and is not is tried again, and not for ever.
    let error = watched(&inner, || Mishap::Conflict).create("b", b"mine").unwrap_err();
    assert_eq!(error, crate::StoreError::AlreadyExists { place: "memory/b".into() });
    let once = std::sync::atomic::AtomicBool::new(true);
    let conflict = move || match once.swap(false, std::sync::atomic::Ordering::Relaxed) {
        true => Mishap::Conflict,
        false => Mishap::None,
    };
    watched(&inner, conflict).create("b", b"mine").unwrap();
}

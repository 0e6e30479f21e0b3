//! The store that tests are about: a new local folder, or, where `TACIT_TEST_STORE` names a bucket, a new
//! prefix in it. `make test-store` does the latter, with `TACIT_TEST_ENDPOINT` and the environment's keys.

#![allow(dead_code, reason = "each test file has a copy of this module of its own, and takes part of it")]

use base::{Seed, hex};
use store::{SealedStore, StateKey, StateStore, StoreError, StoreOptions};
use tempfile::TempDir;

pub struct Place {
    pub store: StateStore,
    pub url: String,
    pub options: StoreOptions,
    /// Of a local store.
    pub folder: Option<TempDir>,
}

pub fn place() -> Place {
    if let Ok(bucket) = std::env::var("TACIT_TEST_STORE") {
        let name = hex(&Seed::from_system().into_rng().bytes::<8>());
        let url = format!("{bucket}/{name}/below");
        let endpoint = std::env::var("TACIT_TEST_ENDPOINT").ok();
        let options = StoreOptions { endpoint, allow_http: true, ..StoreOptions::default() };
        let store = StateStore::open(&url, &options).expect("the bucket opens");
        return Place { store, url, options, folder: None };
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = folder.path().join("state").display().to_string();
    let options = StoreOptions::default();
    let store = StateStore::open(&url, &options).expect("the folder opens");
    Place { store, url, options, folder: Some(folder) }
}

/// Bytes that compress to nothing and repeat nowhere, the same every time.
pub fn bytes(len: usize) -> Vec<u8> {
    let mut rng = Seed::from_bytes([9; 32]).into_rng();
    let mut bytes = Vec::with_capacity(len + 64);
    while bytes.len() < len {
        bytes.extend_from_slice(&rng.bytes::<64>());
    }
    bytes.truncate(len);
    bytes
}

pub fn sealed(store: &StateStore, key: &StateKey) -> SealedStore {
    SealedStore::new(store.clone(), key, &[3; 32], "registry")
}

/// Why an object was refused.
pub fn why<T>(done: Result<T, StoreError>) -> &'static str {
    match done {
        Err(StoreError::Damaged { why, .. }) => why,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was taken"),
    }
}

//! Whether a store keeps what the log stands on.

use crate::{StateStore, StoreError};
use base::{Error, Seed, hex};

impl StateStore {
    /// Creates one object twice: the second time must fail, and must leave the first one's bytes. A store
    /// that takes the condition and ignores it would let two processes lead one run.
    ///
    /// # Errors
    /// When the store ignores the condition, cannot hold to it, or fails.
    pub fn probe(&self) -> Result<(), Error> {
        let mut rng = Seed::from_system().into_rng();
        let name = format!("probe/{}", hex(&rng.bytes::<8>()));
        let [first, second] = [rng.bytes::<32>(), rng.bytes::<32>()];
        self.create(&name, &first)?;
        let again = self.create(&name, &second);
        let there = self.get(&name);
        let removed = self.delete(&name);
        match (again, there?) {
            (Err(StoreError::AlreadyExists { .. }), there) if there == first => Ok(removed?),
            (Ok(()) | Err(StoreError::AlreadyExists { .. }), _) => Err(Error::input(format!(
                "{}: this store says that it creates an object that is there already, or writes over it: it \
                 ignores `If-None-Match`, and two processes could lead one run. Take a store that holds to \
                 it (S3, Google Cloud Storage, Azure, a current MinIO) or a local folder",
                self.url()
            ))),
            (Err(error), _) => Err(error.into()),
        }
    }
}

//! Rows joined to shares, as they lie in the state: a sealed object for each thing that a party holds of
//! them.

use serde::{Deserialize, Serialize};
use store::{ObjectId, SealedReader, SealedStore, SealedWriter, StoreError};

/// An object as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptObject {
    /// What tells it from others of its name.
    id: [u8; 32],
    pub bytes: u64,
}

/// Which entries are matches: see [`matching::payload::ValidEntries`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeptValid {
    All,
    Shared(KeptObject),
    Mine(KeptObject),
    Theirs,
}

/// Joined rows as a party holds them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptJoin {
    pub folder: String,
    /// Joined rows, and entries of one.
    pub rows: u64,
    pub slots: u32,
    /// Values of either party along them; none where they are the peer's, in the clear.
    pub parts: [Option<KeptObject>; 2],
    pub valid: KeptValid,
    /// What this party totals from its own file.
    pub alone: KeptObject,
}

impl KeptObject {
    /// One that is whole now.
    pub fn finish(writer: SealedWriter) -> Result<Self, StoreError> {
        let bytes = writer.len();
        Ok(Self { id: writer.finish()?.0, bytes })
    }

    /// Reads it, as it was written.
    ///
    /// # Errors
    /// When it is missing, or another one; or when the store fails.
    pub fn open(&self, sealed: &SealedStore, name: &str) -> Result<SealedReader, StoreError> {
        let reader = sealed.reader(name)?;
        if reader.id() == ObjectId(self.id) && reader.len() == self.bytes {
            return Ok(reader);
        }
        let why = "it is another object than was written, of the same name";
        Err(StoreError::Damaged { place: sealed.store().place(name), why })
    }
}

impl KeptJoin {
    /// The name of a part.
    pub fn part(folder: &str, part: usize) -> String {
        format!("{folder}/part-{part}")
    }

    /// The name of what says which entries are matches.
    pub fn valid(folder: &str) -> String {
        format!("{folder}/valid")
    }

    /// The name of own totals.
    pub fn alone(folder: &str) -> String {
        format!("{folder}/alone")
    }

    /// Looks whether the store has what was written.
    ///
    /// # Errors
    /// As [`KeptObject::open`].
    pub fn look(&self, sealed: &SealedStore) -> Result<(), StoreError> {
        let mut all = vec![(Self::alone(&self.folder), &self.alone)];
        if let KeptValid::Shared(words) | KeptValid::Mine(words) = &self.valid {
            all.push((Self::valid(&self.folder), words));
        }
        let parts = (0..).zip(&self.parts);
        all.extend(parts.filter_map(|(at, part)| Some((Self::part(&self.folder, at), part.as_ref()?))));
        all.into_iter().try_for_each(|(name, object)| object.open(sealed, &name).map(drop))
    }
}

//! Writing an object of any size in parts.

use crate::error::failed;
use crate::{StateStore, StoreError};
use base::Error;
use object_store::{MultipartUpload, ObjectStoreExt, PutMode, PutPayload};
use tokio::task::JoinHandle;

/// Bytes of a part of a large object. At most two parts are in memory: one that fills, one under way.
pub const PART_BYTES: usize = 8 << 20;
/// Parts of one object, as S3 counts them: 80 GB.
pub const OBJECT_PARTS: u64 = 10_000;

/// An object that is being written. It is there after [`ObjectWriter::finish`] and not before; one that is
/// dropped leaves nothing, as far as the store can still be reached.
pub struct ObjectWriter {
    store: StateStore,
    name: String,
    part: Vec<u8>,
    parts: u64,
    upload: Option<Box<dyn MultipartUpload>>,
    under_way: Option<JoinHandle<object_store::Result<()>>>,
    done: bool,
}

impl ObjectWriter {
    pub(crate) fn new(store: StateStore, name: String) -> Self {
        Self { store, name, part: Vec::new(), parts: 0, upload: None, under_way: None, done: false }
    }

    /// Appends.
    ///
    /// # Errors
    /// When the object becomes larger than [`OBJECT_PARTS`] parts, or the store fails; it has to be written
    /// anew then.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        while !bytes.is_empty() {
            if self.part.len() == PART_BYTES {
                self.send()?;
            }
            if self.part.capacity() == 0 {
                self.part.reserve_exact(PART_BYTES);
            }
            let (now, later) = bytes.split_at(bytes.len().min(PART_BYTES - self.part.len()));
            self.part.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Makes the object be there, on stable storage.
    ///
    /// # Errors
    /// When the store fails.
    pub fn finish(mut self) -> Result<(), StoreError> {
        if self.parts == 0 {
            self.done = true;
            let part = std::mem::take(&mut self.part);
            return self.store.put_as(PutMode::Overwrite, &self.name, &part);
        }
        self.send()?;
        self.wait_for_part()?;
        if let Some(mut upload) = self.upload.take() {
            let complete = self.store.wait(upload.complete());
            // A completion that failed may still be undone.
            complete.map_err(|e| {
                self.upload = Some(upload);
                self.failed(&e)
            })?;
        }
        self.done = true;
        self.store.keep_private(&self.name)
    }

    /// Hands the part over, once the one before is there.
    fn send(&mut self) -> Result<(), StoreError> {
        if self.parts == OBJECT_PARTS {
            return Err(Error::limit("OBJECT_PARTS", self.parts + 1, OBJECT_PARTS).into());
        }
        let upload = match &mut self.upload {
            Some(upload) => upload,
            none => {
                let path = self.store.path(&self.name)?;
                let begun = self.store.wait(self.store.library().put_multipart(&path));
                let (place, remote) = (self.store.place(&self.name), self.store.is_remote());
                none.insert(begun.map_err(|e| failed("cannot write", &place, remote, &e))?)
            }
        };
        let part = std::mem::take(&mut self.part);
        let len = part.len() as u64;
        let sent = upload.put_part(PutPayload::from(part));
        self.wait_for_part()?;
        self.under_way = Some(self.store.runtime().spawn(sent));
        self.parts += 1;
        self.store.count_written(len);
        Ok(())
    }

    fn wait_for_part(&mut self) -> Result<(), StoreError> {
        let Some(task) = self.under_way.take() else { return Ok(()) };
        let done = self.store.wait(task).unwrap_or_else(|e| Err(e.into()));
        done.map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &object_store::Error) -> StoreError {
        failed("cannot write", &self.store.place(&self.name), self.store.is_remote(), error)
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take().filter(|_| !self.done) {
            let _ = self.wait_for_part();
            // Parts that nobody completes cost money until a rule of the bucket removes them.
            let _ = self.store.wait(upload.abort());
        }
    }
}

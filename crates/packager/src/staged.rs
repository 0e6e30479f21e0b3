//! What a package installs, in memory, and its archive: sorted, owned by root unless said otherwise, of one
//! time.

use flate2::{Compression, GzBuilder};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// A file or a folder.
struct StagedEntry {
    mode: u32,
    owner: u64,
    /// A folder has none.
    bytes: Option<Vec<u8>>,
}

/// Files and folders by path below `/`; folders above a file are there without being named.
#[derive(Default)]
pub struct StagedTree(BTreeMap<String, StagedEntry>);

impl StagedTree {
    /// Adds a file, owned by root.
    pub fn file(&mut self, path: &str, mode: u32, bytes: Vec<u8>) {
        self.above(path);
        self.0.insert(path.to_owned(), StagedEntry { mode, owner: 0, bytes: Some(bytes) });
    }

    /// Adds a folder.
    pub fn folder(&mut self, path: &str, mode: u32, owner: u64) {
        self.above(path);
        self.0.insert(path.to_owned(), StagedEntry { mode, owner, bytes: None });
    }

    /// Adds all files of `root`/`name`, below `at`/`name`.
    ///
    /// # Errors
    /// A file or folder that cannot be read.
    pub fn below(&mut self, root: &Path, name: &str, at: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(root.join(name))? {
            let entry = entry?;
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.below(root, &name, at)?;
            } else {
                self.file(&format!("{at}/{name}"), 0o644, std::fs::read(entry.path())?);
            }
        }
        Ok(())
    }

    fn above(&mut self, path: &str) {
        for (end, _) in path.match_indices('/') {
            let folder = StagedEntry { mode: 0o755, owner: 0, bytes: None };
            self.0.entry(path[..end].to_owned()).or_insert(folder);
        }
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.0.values().filter_map(|entry| entry.bytes.as_ref()).map(|bytes| bytes.len() as u64).sum()
    }

    /// A compressed archive of what lies below the folder `from`, in which it is called `to`.
    ///
    /// # Errors
    /// A path too long for the format.
    pub fn tar_gz(&self, to: &str, from: &str, epoch: u64) -> io::Result<Vec<u8>> {
        let mut tar = Builder::new(Vec::new());
        for (path, entry) in &self.0 {
            let Some(rest) = path.strip_prefix(from) else { continue };
            let name = [to, rest].concat();
            let bytes = entry.bytes.as_deref().unwrap_or_default();
            let mut header = Header::new_ustar();
            header.set_entry_type(if entry.bytes.is_some() {
                EntryType::Regular
            } else {
                EntryType::Directory
            });
            header.set_path(if entry.bytes.is_some() { name } else { format!("{name}/") })?;
            header.set_mode(entry.mode);
            header.set_uid(entry.owner);
            header.set_gid(entry.owner);
            header.set_mtime(epoch);
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            tar.append(&header, bytes)?;
        }
        // Neither a name nor a time in the compressed file.
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
        packed.write_all(&tar.into_inner()?)?;
        packed.finish()
    }
}

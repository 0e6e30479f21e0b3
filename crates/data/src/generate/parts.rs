//! The files of a side: one, or a folder of parts; and writing several at a time, in bounded memory.

use super::files::FileFormat;
use crate::source::{DataFormat, FILES};
use base::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Told how many of how many people are written, over all files, from any thread.
pub type WritingProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Most parts that are written at a time: the writer of one has some 10 MB of rows in memory.
pub(super) const PARTS: usize = 8;
/// Most whole files that are written at a time: the writer of one has some 70 MB of rows in memory.
pub(super) const WHOLE: usize = 2;
/// People between two words about them.
const TOLD_EVERY: u64 = 1 << 14;

/// Where a side is written.
pub(super) struct SideFiles {
    /// The file, or the folder of the parts.
    pub path: PathBuf,
    format: FileFormat,
    files: u32,
}

impl SideFiles {
    pub fn new(folder: &Path, name: &str, format: FileFormat, files: u32) -> Self {
        let path = match files {
            1 => folder.join(format!("{name}.{}", format.extension())),
            _ => folder.join(name),
        };
        Self { path, format, files }
    }

    /// The file of a part, from 0.
    pub fn part(&self, at: u32) -> PathBuf {
        match self.files {
            1 => self.path.clone(),
            _ => self.path.join(format!("part-{at:05}.{}", self.format.extension())),
        }
    }

    /// Makes the folder of the parts, without parts that another run left: they would be read with the new
    /// ones.
    ///
    /// # Errors
    /// When the folder cannot be made or cleared, or holds other data.
    pub fn prepare(&self) -> Result<(), Error> {
        if self.files == 1 {
            return Ok(());
        }
        let shown = self.path.display();
        let failed = |e: &std::io::Error| Error::io(format!("cannot write {shown}"), e);
        std::fs::create_dir_all(&self.path).map_err(|e| failed(&e))?;
        let mut old = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(|e| failed(&e))? {
            let path = entry.map_err(|e| failed(&e))?.path();
            if is_part(&path) {
                old.push(path);
            } else if DataFormat::by_name(&path).is_some() {
                return Err(Error::input(format!(
                    "{} would be read with the parts that are written beside it; move it, or choose another \
                     folder",
                    path.display()
                )));
            }
        }
        old.iter().try_for_each(std::fs::remove_file).map_err(|e| failed(&e))
    }
}

/// Whether a file has the name of a part.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let digits = name.strip_prefix("part-").and_then(|rest| rest.split_once('.'));
    digits.is_some_and(|(digits, extension)| {
        let known = [FileFormat::Csv, FileFormat::Parquet].map(FileFormat::extension);
        digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit()) && known.contains(&extension)
    })
}

/// Whether so many files can be written and read.
pub(super) fn check(files: u32, rows: u32) -> Result<(), Error> {
    match (1..=FILES as u64).contains(&u64::from(files)) && files <= rows {
        true => Ok(()),
        false => Err(Error::input(format!(
            "files: use a whole number from 1 to {FILES}, and not more than there are people on a side"
        ))),
    }
}

/// The people of a part, by their places in the order of their side: parts are equal but for one person.
pub(super) fn share(rows: u32, files: u32, part: u32) -> Range<u64> {
    let from = |part: u32| u64::from(rows) * u64::from(part) / u64::from(files);
    from(part)..from(part + 1)
}

/// Counts people for whoever watches.
pub(super) struct Count<'a> {
    pub told: WritingProgress<'a>,
    pub total: u64,
    pub done: AtomicU64,
}

impl Count<'_> {
    /// Passes people on, and says now and then how many went by.
    pub fn each(&self, people: Range<u64>) -> impl Iterator<Item = u64> {
        let (first, last) = (people.start, people.end.saturating_sub(1));
        people.inspect(move |&at| {
            let since = (at - first) % TOLD_EVERY + 1;
            if since == TOLD_EVERY || at == last {
                let done = self.done.fetch_add(since, Ordering::Relaxed) + since;
                (self.told)(done, self.total);
            }
        })
    }
}

/// Writes `files` files on the threads of this machine, each by `write`; what each thread had at its end.
/// After an error no further file is begun.
pub(super) fn on_threads<T: Default + Send>(
    files: u32,
    at_a_time: usize,
    write: impl Fn(u32, &mut T) -> Result<(), Error> + Sync,
) -> Result<Vec<T>, Error> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU32::new(0);
    let thread = || -> Result<T, Error> {
        let mut own = T::default();
        loop {
            let file = next.fetch_add(1, Ordering::Relaxed);
            if file >= files {
                return Ok(own);
            }
            write(file, &mut own).inspect_err(|_| next.store(files, Ordering::Relaxed))?;
        }
    };
    std::thread::scope(|scope| {
        let count = cores.min(at_a_time).min(files as usize);
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(thread)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

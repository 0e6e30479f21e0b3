//! The rules of the house as tests: `cargo test --release -p tidy`. This library reads the workspace;
//! `tests/` says what must hold (`docs/style.md`).

mod arrows;
mod commands;
mod source;
mod texts;

pub use arrows::{CrateArrow, Crates, PICTURE, forbidden};
pub use commands::{Shown, shown};
pub use source::{Function, PublicType, RustFile, sources};
pub use texts::{DocPage, between, braces, pages};

use std::path::{Path, PathBuf};

/// The root of the workspace.
///
/// # Panics
/// When this crate is not two folders below it.
#[must_use]
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("crates/tidy lies in the workspace").to_path_buf()
}

/// All files below a folder of the workspace whose name ends in `.ext`, relative to the root, in order.
#[must_use]
pub fn files(below: &str, ext: &str) -> Vec<PathBuf> {
    let (root, mut found) = (root(), Vec::new());
    let mut folders = vec![root.join(below)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if path.is_dir() && !hidden && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == ext) {
                found.extend(path.strip_prefix(&root).map(Path::to_path_buf));
            }
        }
    }
    found.sort();
    found
}

/// The text of a file of the workspace.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

//! Licences of everything in the programs: ours, those of linked packages with their texts, of Rust's
//! library and of the C library.

use crate::parts::LinkedParts;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// How the names of files with licences begin.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// A longer file is none.
const LICENCE_BYTES: u64 = 1 << 18;

/// The file `copyright` of a package that holds `what`.
///
/// # Errors
/// A file of ours that cannot be read.
pub fn text(root: &Path, what: &str, parts: &LinkedParts) -> Result<Vec<u8>, Box<dyn Error>> {
    let ours =
        |name: &str| crate::read(&root.join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let others = parts.of_others();
    let mut text = format!("{what}: Apache-2.0 or MIT, at your choice; both texts follow.\n\n");
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "packaging/system-licences.txt"] {
        writeln!(text, "{}\n{}", heading(name), ours(name)?.trim_end())?;
    }
    writeln!(text, "\n{}", heading(&format!("{} packages of others that are linked", others.len())))?;
    let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    let mut order = Vec::new();
    for part in &others {
        let name = format!("{} {}", part.name, part.version);
        let found = files(&part.folder)?;
        let without = if found.is_empty() { "; its package has no text of the licence" } else { "" };
        writeln!(text, "{name}: {}{without}", part.licence)?;
        let by = part.authors.join(", ");
        let about = [part.repository.as_deref().unwrap_or_default(), &by];
        let about: Vec<&str> = about.into_iter().filter(|text| !text.is_empty()).collect();
        if !about.is_empty() {
            writeln!(text, "    {}", about.join("; "))?;
        }
        for (file, content) in found {
            // Copies of one text differ in spaces and ends of lines.
            let key = content.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, users) = texts.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                (content, Vec::new())
            });
            users.push(format!("{name} ({file})"));
        }
    }
    for key in order {
        let (content, users) = &texts[&key];
        writeln!(text, "\n{}\n{}", heading(&users.join(", ")), content.trim_end())?;
    }
    Ok(text.into_bytes())
}

fn heading(of: &str) -> String {
    format!("{}\n{of}\n", "=".repeat(78))
}

/// Files with licences of a package, with their texts: in its folder and two below, where C libraries lie.
fn files(folder: &Path) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut found: Vec<PathBuf> = Vec::new();
    collect(folder, 2, &mut found)?;
    found.sort();
    let mut texts = Vec::new();
    for path in found {
        let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
        texts.push((name, String::from_utf8_lossy(&crate::read(&path)?).replace('\r', "")));
    }
    Ok(texts)
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if entry.file_type()?.is_dir() {
            if depth > 0 {
                collect(&entry.path(), depth - 1, found)?;
            }
        } else if NAMES.iter().any(|start| name.starts_with(start))
            && entry.metadata()?.len() <= LICENCE_BYTES
        {
            found.push(entry.path());
        }
    }
    Ok(())
}

//! Pages: what they name.

use std::path::PathBuf;

/// A page for people.
pub struct DocPage {
    /// Relative to the root of the workspace.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// All pages: those in the root and below `docs/`.
#[must_use]
pub fn pages() -> Vec<DocPage> {
    let below = ["docs", "examples", "crates", "ckks", "rtl", "fuzz"];
    let mut paths: Vec<PathBuf> = below.into_iter().flat_map(|folder| crate::files(folder, "md")).collect();
    let root = std::fs::read_dir(crate::root()).into_iter().flatten().flatten();
    let of_root = root.map(|entry| PathBuf::from(entry.file_name()));
    paths.extend(of_root.filter(|path| path.extension().is_some_and(|e| e == "md")));
    paths.into_iter().map(|path| DocPage { text: crate::read(&path), path }).collect()
}

impl DocPage {
    /// Line, and path relative to the root, of what the page says is a file or folder: links, and code spans
    /// that begin with a folder of the root.
    #[must_use]
    pub fn paths(&self) -> Vec<(usize, String)> {
        let own = self.path.parent().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let mut found = Vec::new();
        let mut fenced = false;
        for (number, line) in (1..).zip(self.text.lines()) {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                continue;
            }
            found.extend(links(line).map(|link| (number, join(&own, link))));
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.filter(|span| is_path(span)).flat_map(braces).map(|path| (number, path)));
        }
        found
    }
}

/// Targets of links to files.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let bare = targets.map(|target| target.split('#').next().unwrap_or_default());
    bare.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto"))
}

/// A link, as seen from the root.
fn join(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            ".." => _ = parts.pop(),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a code span is a path of the workspace, and not a pattern or a command.
fn is_path(span: &str) -> bool {
    let folders = ["crates/", "docs/", "examples/", "fuzz/", "rtl/", "ckks/", ".ci/"];
    folders.iter().any(|folder| span.starts_with(folder)) && !span.contains([' ', '*', '<', '$', '('])
}

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`; a place behind a colon is none of the path.
#[must_use]
pub fn braces(span: &str) -> Vec<String> {
    let path = span.split(':').next().unwrap_or(span);
    let Some((head, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((inner, tail)) = rest.split_once('}') else { return vec![path.to_owned()] };
    inner.split(',').map(|part| format!("{head}{}{tail}", part.trim())).collect()
}

/// What stands between two texts.
#[must_use]
pub fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end).map_or(rest, |(inner, _)| inner))
}

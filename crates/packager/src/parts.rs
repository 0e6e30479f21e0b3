//! What is linked into the programs: packages of the lock file, as `cargo metadata` resolves them for the
//! target.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package: ours, or of the registry.
#[derive(Clone, Debug)]
pub struct LinkedPart {
    pub name: String,
    pub version: String,
    pub licence: String,
    pub repository: Option<String>,
    pub authors: Vec<String>,
    pub folder: PathBuf,
    /// SHA-256 of the package as the registry has it; none of ours.
    pub checksum: Option<String>,
    pub ours: bool,
    /// It works while the programs are built, and nothing of it is in them.
    pub build_only: bool,
    /// What it needs, as keys of [`LinkedParts::by_id`].
    pub needs: BTreeSet<String>,
}

/// All packages by what cargo calls them.
#[derive(Clone, Debug, Default)]
pub struct LinkedParts {
    pub by_id: BTreeMap<String, LinkedPart>,
}

impl LinkedParts {
    /// What cargo says of the packages `shipped` of the workspace in `root`.
    ///
    /// # Errors
    /// Cargo's own, and a lock file without a checksum.
    pub fn of_workspace(root: &Path, target: &str, shipped: &[&str]) -> Result<Self, Box<dyn Error>> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root).args(["metadata", "--locked", "--format-version", "1"]);
        command.args(["--filter-platform", target]);
        let done = command.output()?;
        if !done.status.success() {
            return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&done.stderr)).into());
        }
        let lock = std::fs::read_to_string(root.join("Cargo.lock"))?;
        Self::read(&serde_json::from_slice(&done.stdout)?, &lock, shipped)
    }

    /// Follows normal dependencies from what is shipped, then build dependencies and what those need.
    ///
    /// # Errors
    /// What is not in the form that cargo documents.
    pub fn read(metadata: &Value, lock: &str, shipped: &[&str]) -> Result<Self, Box<dyn Error>> {
        let checksums = checksums(lock);
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let members: BTreeSet<String> = list(&metadata["workspace_members"]).iter().map(text).collect();
        let packages: BTreeMap<String, Value> =
            list(&metadata["packages"]).into_iter().map(|p| (text(&p["id"]), p)).collect();
        let nodes: BTreeMap<String, Value> =
            list(&metadata["resolve"]["nodes"]).into_iter().map(|n| (text(&n["id"]), n)).collect();
        let of_kind = |id: &str, kind: Option<&str>| -> Vec<String> {
            let is = |dep: &Value| list(&dep["dep_kinds"]).iter().any(|k| k["kind"].as_str() == kind);
            nodes.get(id).map_or_else(Vec::new, |node| {
                list(&node["deps"]).iter().filter(|dep| is(dep)).map(|dep| text(&dep["pkg"])).collect()
            })
        };
        let is_shipped = |id: &&String| shipped.iter().any(|name| packages[*id]["name"] == *name);
        let mut linked: BTreeSet<String> = BTreeSet::new();
        let mut open: Vec<String> = members.iter().filter(is_shipped).cloned().collect();
        if open.len() != shipped.len() {
            return Err(format!("the workspace has no packages {shipped:?}").into());
        }
        while let Some(id) = open.pop() {
            if linked.insert(id.clone()) {
                open.extend(of_kind(&id, None));
            }
        }
        let mut all = linked.clone();
        let mut open: Vec<String> = linked.iter().flat_map(|id| of_kind(id, Some("build"))).collect();
        while let Some(id) = open.pop() {
            if all.insert(id.clone()) {
                open.extend(of_kind(&id, None).into_iter().chain(of_kind(&id, Some("build"))));
            }
        }
        let mut parts = Self::default();
        for id in &all {
            let package = packages.get(id).ok_or_else(|| format!("cargo metadata has no package {id}"))?;
            let (name, version) = (text(&package["name"]), text(&package["version"]));
            let checksum = checksums.get(&(name.clone(), version.clone())).cloned();
            let ours = members.contains(id);
            if checksum.is_none() && !ours {
                return Err(format!("Cargo.lock has no checksum of {name} {version}").into());
            }
            let mut needs = of_kind(id, None);
            needs.extend(of_kind(id, Some("build")));
            let manifest = PathBuf::from(text(&package["manifest_path"]));
            let part = LinkedPart {
                licence: spdx(&text(&package["license"])),
                repository: package["repository"].as_str().map(str::to_owned),
                authors: list(&package["authors"]).iter().map(text).collect(),
                folder: manifest.parent().unwrap_or(&manifest).to_owned(),
                needs: needs.into_iter().filter(|id| all.contains(id)).collect(),
                build_only: !linked.contains(id),
                name,
                version,
                checksum,
                ours,
            };
            parts.by_id.insert(id.clone(), part);
        }
        Ok(parts)
    }

    /// Packages of others that are in the programs, by name and version.
    pub fn of_others(&self) -> Vec<&LinkedPart> {
        let mut found: Vec<_> = self.by_id.values().filter(|part| !part.ours && !part.build_only).collect();
        found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        found
    }
}

/// Old manifests have `MIT/Apache-2.0`, which is no expression.
fn spdx(licence: &str) -> String {
    licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// Checksums of a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, name: &str| {
        let mut lines = block.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('='))?;
        Some(value.trim().trim_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|b| Some(((field(b, "name ")?, field(b, "version ")?), field(b, "checksum ")?)))
        .collect()
}

//! Which crate uses which, by `cargo metadata`, and which may not, by `ARCHITECTURE.md`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// What stands before and after the picture of the layers in `ARCHITECTURE.md`.
pub const PICTURE: [&str; 2] = ["<!-- layers: written by cargo test -p tidy -->\n```text\n", "```\n"];

/// The crates of the workspace, each with those of ours that its library or program uses.
pub struct Crates(BTreeMap<String, BTreeSet<String>>);

/// `from` uses `to`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrateArrow {
    /// The user.
    pub from: String,
    /// What it uses.
    pub to: String,
}

impl Crates {
    /// As cargo says.
    ///
    /// # Panics
    /// When cargo does not say it.
    #[must_use]
    pub fn of_workspace() -> Self {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let args = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
        let out = Command::new(cargo).args(args).current_dir(crate::root()).output().expect("cargo runs");
        let all: Value = serde_json::from_slice(&out.stdout).expect("cargo metadata is JSON");
        let packages = all["packages"].as_array().expect("packages");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names: BTreeSet<String> = packages.iter().map(|package| text(&package["name"])).collect();
        let uses = |package: &Value| {
            let ours = |on: &&Value| on["kind"] != "dev" && names.contains(&text(&on["name"]));
            let all = package["dependencies"].as_array().expect("dependencies");
            all.iter().filter(ours).map(|on| text(&on["name"])).collect()
        };
        Self(packages.iter().map(|package| (text(&package["name"]), uses(package))).collect())
    }

    /// All arrows.
    pub fn edges(&self) -> impl Iterator<Item = CrateArrow> + '_ {
        let of = |(from, tos): (&String, &BTreeSet<String>)| {
            let edge = |to: &String| CrateArrow { from: from.clone(), to: to.clone() };
            tos.iter().map(edge).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of)
    }

    /// Whether there is a crate of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// How many arrows lie between a crate and the ground, on the longest way.
    fn height(&self, name: &str) -> usize {
        self.0[name].iter().map(|on| 1 + self.height(on)).max().unwrap_or(0)
    }

    /// Whether `to` is used by something that `from` uses.
    fn implied(&self, from: &str, to: &str) -> bool {
        self.0[from].iter().any(|via| via != to && (self.0[via].contains(to) || self.implied(via, to)))
    }

    /// The layers, the highest first: each crate with what it uses and nothing that it uses does.
    #[must_use]
    pub fn picture(&self) -> String {
        let mut rows: Vec<(usize, &String)> = self.0.keys().map(|name| (self.height(name), name)).collect();
        rows.sort_by_key(|(height, name)| (std::cmp::Reverse(*height), name.as_str()));
        let line = |(height, name): &(usize, &String)| {
            let direct = self.0[*name].iter().filter(|to| !self.implied(name, to));
            let direct: Vec<&str> = direct.map(String::as_str).collect();
            let arrow = if direct.is_empty() { String::new() } else { format!(" -> {}", direct.join(", ")) };
            format!("{height:>3}  {name:<15}{arrow}").trim_end().to_owned() + "\n"
        };
        rows.iter().map(line).collect()
    }
}

/// The arrows that `ARCHITECTURE.md` forbids: rows of the table below `## Forbidden`, of crates in code
/// spans, but for the exceptions that its third column names as `from -> to`.
#[must_use]
pub fn forbidden(architecture: &str) -> Vec<CrateArrow> {
    let section = crate::between(architecture, "## Forbidden\n", "\n## ").unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let spans = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let allowed = spans(cells.get(3).unwrap_or(&""));
        let [from, to] = [1, 2].map(|i| spans(cells.get(i).unwrap_or(&"")));
        let all = from
            .iter()
            .flat_map(|f| to.iter().map(|t| CrateArrow { from: f.clone(), to: t.clone() }))
            .collect::<Vec<_>>();
        all.into_iter().filter(move |edge| !allowed.contains(&format!("{} -> {}", edge.from, edge.to)))
    })
    .collect()
}

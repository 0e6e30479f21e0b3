//! The party file that `tacit init` writes.

use super::{ADDRESS, Making, comment, list, output, quoted, said, stem};
use crate::init::draft::StudyDraft;
use std::path::{Path, PathBuf, absolute};
use study::format::{ColumnDates, InputFormat, separator_name};

impl Making<'_> {
    /// The party file.
    pub fn party_file(&self, draft: &StudyDraft) -> String {
        let party = &self.party;
        let beside = |path: &Path| quoted(&relative(&self.out, path));
        let (address, why) = match (&self.common.listen, &self.common.peer, self.completes) {
            (Some(at), ..) => {
                (format!("listen   = {}", quoted(at)), "The other party's file has this address as `peer`.")
            }
            (None, Some(at), _) => (format!("peer     = {}", quoted(at)), "Where the other party waits."),
            (None, None, false) => (
                format!("listen   = {}", quoted(ADDRESS)),
                "For two parties on one machine; to be reached from others: 0.0.0.0:7000.",
            ),
            (None, None, true) => (
                format!("peer     = {}", quoted(ADDRESS)),
                "For two parties on one machine; else the other's host: publisher.example.org:7000.",
            ),
        };
        let reasons =
            self.reasons.iter().map(|r| comment(&format!("{} = {}: {}", r.setting, r.value, r.why)));
        let head = comment(&format!(
            "The settings of {party} alone, by `tacit init`: never shared, no part of the study's hash. \
             Paths are relative to this file; every line is also a flag of `tacit run`. What the data \
             showed, on {} rows:",
            self.survey.sampled
        ));
        let spent = draft
            .get("release.public")
            .and_then(|text| text.lines().find_map(|line| line.strip_prefix("rho = ")));
        // What the other party proposes is no reason to allow more.
        let spent = spent.filter(|_| !self.completes);
        let spent: f64 = spent.and_then(|text| text.parse().ok()).unwrap_or(0.1);
        let cap = match self.completes {
            false => "a study that comes back dearer is refused.",
            true => "of what the other party proposed no more than 0.5.",
        };
        let cap = format!(
            "No study may spend more on one viewer, sizes of its match included. What this one costs as it \
             is here; {cap}"
        );
        let bounds = self.cap.as_ref().map_or(String::new(), |most| {
            said(&cap, &format!("max_rho  = {most}"))
                + &said(
                    "What all studies of this lineage may spend on one viewer together, as far as they keep \
                     the same ledger: another ledger knows nothing of this one. Nothing refills it.",
                    &format!("budget   = {}", page::numbers::short((10.0 * spent).max(1.0), 3)),
                )
        });
        format!(
            "{head}{}\nstudy    = {}\nas       = {}\nidentity = {}\ndata     = {}\n{}{}report   = \
             \"{party}-report/\"\n{}{}\n{}[policy]\nkinds    = [\"{}\"]\n{bounds}",
            reasons.collect::<String>(),
            beside(&self.study),
            quoted(party),
            beside(&self.key),
            beside(self.data),
            said(why, &address),
            said(
                "What was spent of the privacy budget: keep it safe. A later study of these data has to name \
                 this file and the key (tacit init --ledger), else its budget begins anew.",
                &format!("ledger   = {}", beside(&self.ledger_file()))
            ),
            state_of(party),
            said(
                "The stable name of these data over all their versions, under which the budget is kept.",
                &format!("lineage  = {}", quoted(&self.lineage()))
            ),
            self.format_section(),
            self.kind,
        )
    }

    fn ledger_file(&self) -> PathBuf {
        let new = || self.out.join(format!("{}.ledger", self.party));
        self.common.ledger.clone().unwrap_or_else(new)
    }

    /// Says which ledger keeps the budget; nothing of a study without a price.
    pub fn tell_ledger(&self) {
        if self.cap.is_none() {
            return;
        }
        let (ledger, lineage) = (self.ledger_file(), self.lineage());
        let ledger = ledger.display();
        output::say(&match &self.common.ledger {
            Some(_) => format!(
                "\nThe privacy budget goes on in {ledger}, under the lineage {lineage}: --lineage, if \
                 earlier studies of these data had another one"
            ),
            None => format!(
                "\nA new privacy ledger: {ledger}. It knows nothing of what other studies of these data \
                 spent: where there are such, name theirs by --ledger FILE. Later ones: --ledger {ledger}"
            ),
        });
    }

    /// The stable name of the data.
    fn lineage(&self) -> String {
        self.common.lineage.clone().unwrap_or_else(|| match stem(self.data) {
            stem if stem.is_empty() => self.party.clone(),
            stem => stem,
        })
    }

    fn format_section(&self) -> String {
        let InputFormat { encoding, separator, decimal, thousands, .. } = &self.format;
        let InputFormat { header_line, dates, zone, sheet, columns, .. } = &self.format;
        let mut lines = Vec::new();
        lines.extend(encoding.map(|encoding| format!("encoding = \"{}\"", encoding.name())));
        lines.extend(separator.map(|separator| format!("separator = {}", separator_name(separator))));
        lines.extend(decimal.map(|sign| format!("decimal = \"{}\"", sign.character())));
        lines.extend(thousands.map(|sign| format!("thousands = \"{}\"", sign.character())));
        lines.extend(header_line.map(|line| format!("header_line = {line}")));
        let forms = |of: &ColumnDates| {
            list(of.forms.iter().map(ToString::to_string).collect::<Vec<_>>().iter().map(String::as_str))
        };
        let by_column: Vec<String> = dates
            .iter()
            .filter_map(|of| Some(format!("{} = {}", quoted(of.column.as_deref()?), forms(of))))
            .collect();
        match dates.iter().find(|of| of.column.is_none()) {
            Some(all) if by_column.is_empty() => lines.push(format!("dates = {}", forms(all))),
            _ if by_column.is_empty() => {}
            _ => lines.push(format!("dates = {{ {} }}", by_column.join(", "))),
        }
        lines.extend(zone.as_ref().map(|zone| format!("zone = \"{zone}\"")));
        lines.extend(sheet.as_ref().map(|sheet| format!("sheet = {}", quoted(sheet))));
        if !columns.is_empty() {
            let names =
                columns.iter().map(|name| format!("{} = {}", quoted(&name.study), quoted(&name.file)));
            lines.push(format!("columns = {{ {} }}", names.collect::<Vec<_>>().join(", ")));
        }
        if lines.is_empty() {
            return String::new();
        }
        format!("{}[format]\n{}\n\n", comment("What the files do not say by themselves."), lines.join("\n"))
    }
}

/// A path as it is from a folder, where that is short.
fn relative(folder: &Path, path: &Path) -> String {
    if path.to_str().is_some_and(store::is_url) {
        return path.display().to_string();
    }
    let (Ok(folder), Ok(path)) = (absolute(folder), absolute(path)) else {
        return path.display().to_string();
    };
    for (up, above) in folder.ancestors().take(3).enumerate() {
        if let Ok(rest) = path.strip_prefix(above).map(Path::to_path_buf)
            && above.parent().is_some()
        {
            return format!("{}{}", "../".repeat(up), rest.display());
        }
    }
    path.display().to_string()
}

/// How to have runs that go on, as a line that does nothing yet.
fn state_of(party: &str) -> String {
    said(
        "Where runs keep what they have done, so that they go on after whatever ends them: a private folder. \
         Take the marks away to have it.",
        &format!("# state    = {}\n# spool    = true", quoted(&format!("{party}-state"))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_from_the_party_file() {
        let of = |folder: &str, path: &str| relative(folder.as_ref(), path.as_ref());
        assert_eq!(of("/a/lift", "/a/mails.csv"), "../mails.csv");
        assert_eq!(of("/a/lift", "/a/lift/study.toml"), "study.toml");
        assert_eq!(of("/a/b/c/d/e", "/x/mails.csv"), "/x/mails.csv");
        assert_eq!(of("/a", "s3://b/c.csv"), "s3://b/c.csv");
    }
}

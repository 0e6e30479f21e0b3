//! A rule of `service.toml` with another value, and the rest of the text as it was, comments included.

use super::parse::{DATA, PEER, POLICY};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Rules of `[data]` and `[policy]` that are about the machine, and are changed on it.
const OF_THE_MACHINE: [&str; 4] = ["path", "lineage", "salt", "notify"];

/// The names of all rules that could be changed in a text, with what it says of each; none: nothing.
#[must_use]
pub fn rules(text: &str) -> Vec<(String, Option<String>)> {
    let Ok(tree) = DeTable::parse(text) else { return Vec::new() };
    let mut all = Vec::new();
    let mut of = |place: &[&str], keys: &[&str]| {
        for key in keys.iter().filter(|key| !OF_THE_MACHINE.contains(key)) {
            let value = value(&tree, place, key).map(|span| text[span].to_owned());
            all.push((format!("{}.{key}", place.join(".")), value));
        }
    };
    of(&["policy"], POLICY);
    for (kind, keys) in [("data", DATA), ("peers", PEER)] {
        let Some(DeValue::Table(named)) = tree.get_ref().get(kind).map(Spanned::get_ref) else { continue };
        named.keys().for_each(|name| of(&[kind, name.get_ref().as_ref()], keys));
    }
    all
}

/// Where the value of a key stands.
fn value(tree: &Spanned<DeTable<'_>>, place: &[&str], key: &str) -> Option<Range<usize>> {
    let mut table = tree.get_ref();
    for name in place {
        let DeValue::Table(inner) = table.get(*name)?.get_ref() else { return None };
        table = inner;
    }
    table.get(key).map(Spanned::span)
}

/// The text in which a rule has another value, or none where `value` is empty; or why it cannot be made.
///
/// # Errors
/// What is wrong with the value, or that the file has the rule in a form that a person wrote by hand.
pub fn edit(text: &str, rule: &str, new: &str) -> Result<String, String> {
    let known = rules(text);
    if !known.iter().any(|(name, _)| name == rule) {
        return Err("There is no such rule, or it is changed on the machine.".to_owned());
    }
    let (place, key) = rule.rsplit_once('.').unwrap_or(("", rule));
    let new = new.trim();
    let alone = format!("{key} = {new}\n");
    let single = DeTable::parse(&alone).is_ok_and(|table| table.get_ref().len() == 1);
    if !new.is_empty() && (!single || new.contains('\n')) {
        return Err(format!("Write the value as it stands in the file, on one line: {key} = ..."));
    }
    // Whoever confirms it reads what the text says, and not what stands beside it.
    if has_comment(new) {
        return Err("Write the value alone, without a remark behind a #.".to_owned());
    }
    let tree = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
    let names: Vec<&str> = place.split('.').collect();
    match value(&tree, &names, key) {
        Some(span) if new.is_empty() => without(text, key, span),
        Some(span) => Ok(format!("{}{new}{}", &text[..span.start], &text[span.end..])),
        None if new.is_empty() => Err("The file says nothing of it already.".to_owned()),
        None => add(text, place, &alone),
    }
}

/// Whether a value of one line has a remark behind it: a # that stands in no string.
fn has_comment(value: &str) -> bool {
    let (mut within, mut escaped) = (None, false);
    for c in value.chars() {
        match within {
            _ if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(quote) if c == quote => within = None,
            Some(_) => {}
            None if c == '#' => return true,
            None => within = Some(c).filter(|c| matches!(c, '"' | '\'')),
        }
    }
    false
}

/// The text without the lines of a key, which must have them for itself.
fn without(text: &str, key: &str, span: Range<usize>) -> Result<String, String> {
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[span.end..].find('\n').map_or(text.len(), |at| span.end + at + 1);
    let before = text[start..span.start].replace([' ', '\t', '"'], "");
    let after = text[span.end..end].trim();
    match before == format!("{key}=") && (after.is_empty() || after.starts_with('#')) {
        true => Ok(format!("{}{}", &text[..start], &text[end..])),
        false => Err("The rule shares its line with others: take it out on the machine.".to_owned()),
    }
}

/// The text with a line beneath the head of a table, which is added where there is none.
fn add(text: &str, place: &str, line: &str) -> Result<String, String> {
    let head = |line: &str| {
        let line = line.split('#').next().unwrap_or("").replace([' ', '\t', '"'], "");
        line.trim_end() == format!("[{place}]")
    };
    let mut at = 0;
    for one in text.split_inclusive('\n') {
        at += one.len();
        if head(one) {
            let gap = if one.ends_with('\n') { "" } else { "\n" };
            return Ok(format!("{}{gap}{line}{}", &text[..at], &text[at..]));
        }
    }
    match place == "policy" && !text.contains("policy") {
        true => Ok(format!("{}\n\n[policy]\n{line}", text.trim_end())),
        false => Err(format!("The file has no line [{place}]: change it on the machine.")),
    }
}

/// The text with one more organisation, which may propose `kinds`.
#[must_use]
pub fn with_peer(text: &str, name: &str, key: &str, address: &str, kinds: &[&str]) -> String {
    let kinds: Vec<String> = kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
    let address = match address.is_empty() {
        true => String::new(),
        false => format!("address = \"{address}\"\n"),
    };
    let text = text.trim_end();
    format!("{text}\n\n[peers.{name}]\nkey = \"{key}\"\n{address}kinds = [{}]\n", kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# ours\nname = \"a\"\n[data.trial] # of 1954\nbudget = 1.0 # for ever\nperiod = { \
                        days = 90, rho = 0.3 }\n\n[policy]\nkinds = [\n  \"lift\",\n]\n";

    #[test]
    fn one_value_changes_and_the_rest_stays() {
        let changed = edit(TEXT, "data.trial.budget", "2.5").expect("edits");
        assert_eq!(changed, TEXT.replace("1.0", "2.5"));
        let changed = edit(TEXT, "policy.kinds", "[]").expect("edits");
        assert!(changed.ends_with("[policy]\nkinds = []\n"), "{changed}");
        let changed = edit(TEXT, "data.trial.least_rows", "5").expect("edits");
        assert!(changed.contains("[data.trial] # of 1954\nleast_rows = 5\nbudget"), "{changed}");
        let changed = edit(TEXT, "data.trial.period", "").expect("edits");
        assert!(!changed.contains("period") && changed.contains("# for ever\n\n[policy]"), "{changed}");
    }

    #[test]
    fn a_value_is_a_value_and_nothing_more() {
        for bad in [
            "1\n[policy]\nallow_exact = true",
            "1 2",
            "=",
            "1, x = 2",
            "[",
            "1 # \n x = 1",
            "1 # as agreed",
            "'a' # b",
        ] {
            assert!(edit(TEXT, "data.trial.budget", bad).is_err(), "{bad}");
        }
        for rule in ["name", "policy.notify", "data.trial.path", "data.other.budget", "policy"] {
            assert!(edit(TEXT, rule, "1").is_err(), "{rule}");
        }
    }
}

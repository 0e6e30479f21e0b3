//! The list of parts, in CycloneDX 1.5: what is in the programs or the wheel, what worked on it, and who
//! needs whom.

use crate::PackagedBuild;
use crate::parts::{LinkedPart, LinkedParts};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::error::Error;

/// The document of what is made of the packages `shipped`, without a serial number: the same build has the
/// same bytes.
///
/// # Errors
/// A time that no calendar has.
pub fn document(
    build: &PackagedBuild,
    parts: &LinkedParts,
    shipped: &[&str],
) -> Result<Vec<u8>, Box<dyn Error>> {
    let time = Timestamp::from_second(i64::try_from(build.epoch)?)?;
    let root = format!("pkg:generic/tacit@{}", build.version);
    let shipped = parts.by_id.values().filter(|part| shipped.contains(&part.name.as_str()));
    let mut first: Vec<String> = shipped.filter(|part| part.ours).map(reference).collect();
    first.sort();
    let mut edges = vec![json!({ "ref": root, "dependsOn": first })];
    let mut components: Vec<(String, Value)> = Vec::new();
    for part in parts.by_id.values() {
        components.push((reference(part), component(part)));
        let mut needs: Vec<String> = part.needs.iter().map(|id| reference(&parts.by_id[id])).collect();
        needs.sort();
        edges.push(json!({ "ref": reference(part), "dependsOn": needs }));
    }
    components.sort_by(|a, b| a.0.cmp(&b.0));
    edges[1..].sort_by(|a, b| a["ref"].as_str().cmp(&b["ref"].as_str()));
    let components: Vec<Value> = components.into_iter().map(|(_, component)| component).collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.to_string(),
            "component": {
                "type": "application", "bom-ref": root, "name": "tacit", "version": build.version,
                "licenses": [{ "expression": "Apache-2.0 OR MIT" }],
                "properties": [
                    { "name": "tacit:commit", "value": build.commit },
                    { "name": "tacit:target", "value": build.target },
                ],
            },
        },
        "components": components,
        "dependencies": edges,
    });
    let mut text = serde_json::to_vec_pretty(&document)?;
    text.push(b'\n');
    Ok(text)
}

fn reference(part: &LinkedPart) -> String {
    let kind = if part.ours { "tacit" } else { "cargo" };
    format!("pkg:{kind}/{}@{}", part.name, part.version.replace('+', "%2B"))
}

fn component(part: &LinkedPart) -> Value {
    let mut about = json!({
        "type": "library",
        "bom-ref": reference(part),
        "name": part.name,
        "version": part.version,
        "scope": if part.build_only { "excluded" } else { "required" },
        "licenses": [{ "expression": part.licence }],
    });
    if !part.ours {
        about["purl"] = json!(reference(part));
    }
    if let Some(checksum) = &part.checksum {
        about["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &part.repository {
        about["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    about
}

//! The package of Debian and its relatives: an `ar` archive of a version, a description and the tree.

use crate::PackagedBuild;
use crate::staged::StagedTree;
use jiff::{Timestamp, tz::TimeZone};
use std::error::Error;

/// The name of the package's file.
///
/// # Errors
/// A time that no calendar has.
pub fn file_name(build: &PackagedBuild) -> Result<String, Box<dyn Error>> {
    Ok(format!("tacit_{}_{}.deb", version(build)?, architecture(build)))
}

/// `~` sorts before the release of that number, and time sorts builds before it.
fn version(build: &PackagedBuild) -> Result<String, Box<dyn Error>> {
    let time = TimeZone::UTC.to_datetime(Timestamp::from_second(i64::try_from(build.epoch)?)?);
    let commit: String = build.commit.chars().take(8).filter(char::is_ascii_alphanumeric).collect();
    let modified = if build.commit.ends_with("-modified") { ".modified" } else { "" };
    Ok(format!("{}~{}.{commit}{modified}", build.version, time.strftime("%Y%m%d%H%M")))
}

fn architecture(build: &PackagedBuild) -> &str {
    match build.cpu() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The package.
///
/// # Errors
/// A path too long for the format.
pub fn package(tree: &StagedTree, build: &PackagedBuild) -> Result<Vec<u8>, Box<dyn Error>> {
    let control = format!(
        "Package: tacit\nVersion: {}\nArchitecture: {}\nMaintainer: Tacit contributors\nSection: science\n\
         Priority: optional\nInstalled-Size: {}\nRecommends: ca-certificates\nDescription: {}\n",
        version(build)?,
        architecture(build),
        tree.size().div_ceil(1024),
        DESCRIPTION,
    );
    let mut about = StagedTree::default();
    about.file("control", 0o644, control.into_bytes());
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", about.tar_gz("", "", build.epoch)?),
        ("data.tar.gz", tree.tar_gz("", "", build.epoch)?),
    ];
    let mut package = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let head =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", build.epoch, 0, 0, 100_644, bytes.len());
        package.extend_from_slice(head.as_bytes());
        package.extend_from_slice(&bytes);
        if bytes.len() % 2 == 1 {
            package.push(b'\n');
        }
    }
    Ok(package)
}

const DESCRIPTION: &str = "one result over data that parties do not show each other
 Organisations match their rows privately, compute on the match under secure
 computation, and release the result with differential privacy. The programs
 tacit and osprey are linked statically: they need no library and load none, so
 the transport over libfabric is not in them.";

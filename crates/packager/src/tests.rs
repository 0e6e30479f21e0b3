//! Packages of small programs that stand for the real ones, with the real documentation, lock file and
//! licences.

use crate::parts::LinkedParts;
use crate::{IMAGE_USER, PackagedBuild, debian, fit_to_ship, image, is_static, licences, sbom, usr, write};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn build() -> PackagedBuild {
    let commit = "1a7554963d388f7e05b7f8c43b737bfdc9278402";
    PackagedBuild::of(commit.to_owned(), 1_795_000_000, TARGET.to_owned())
}

fn parts() -> &'static LinkedParts {
    static PARTS: OnceLock<LinkedParts> = OnceLock::new();
    PARTS.get_or_init(|| LinkedParts::of_workspace(&root(), TARGET, &crate::SHIPPED).unwrap())
}

/// An ELF file with one program header of this kind.
fn elf(kind: u32) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(120, 0);
    file[32] = 64;
    file[54] = 56;
    file[56] = 1;
    file[64..68].copy_from_slice(&kind.to_le_bytes());
    file
}

/// Mode, owner, time and bytes of each entry of an archive, in its order.
fn entries(archive: &[u8]) -> Vec<(String, u32, u64, u64, Vec<u8>)> {
    let mut tar = tar::Archive::new(GzDecoder::new(archive));
    let read = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        let (path, head) = (entry.path().unwrap().display().to_string(), entry.header());
        (path, head.mode().unwrap(), head.uid().unwrap(), head.mtime().unwrap(), bytes)
    });
    read.collect()
}

#[test]
fn archives_are_sorted_of_one_time_and_of_root() {
    let tree = usr(&root(), &[("tacit", b"program".to_vec())], b"text").unwrap();
    let archive = tree.tar_gz("tacit-1", "usr", 1_795_000_000).unwrap();
    let again = usr(&root(), &[("tacit", b"program".to_vec())], b"text").unwrap();
    assert_eq!(archive, again.tar_gz("tacit-1", "usr", 1_795_000_000).unwrap());
    let entries = entries(&archive);
    let paths: Vec<&str> = entries.iter().map(|entry| entry.0.trim_end_matches('/')).collect();
    assert!(paths.is_sorted(), "{paths:?}");
    for path in
        ["tacit-1/bin/tacit", "tacit-1/share/doc/tacit/docs/start.md", "tacit-1/share/doc/tacit/copyright"]
    {
        assert!(paths.contains(&path), "no {path}");
    }
    for (path, mode, owner, time, _) in &entries {
        let expected = if path.ends_with('/') || path.contains("/bin/") { 0o755 } else { 0o644 };
        assert_eq!((*mode, *owner, *time), (expected, 0, 1_795_000_000), "{path}");
    }
}

/// What `dpkg` reads of it is what was meant; where there is no `dpkg-deb`, the archive's own form.
#[test]
fn debian_reads_the_package() {
    let tree = usr(&root(), &[("tacit", b"program".to_vec())], b"text").unwrap();
    let (name, package) = (debian::file_name(&build()).unwrap(), debian::package(&tree, &build()).unwrap());
    assert_eq!(name, "tacit_0.1.0~202611181106.1a755496_amd64.deb");
    let mut rest = package.strip_prefix(b"!<arch>\n").unwrap();
    let mut members = BTreeMap::new();
    while !rest.is_empty() {
        let head = std::str::from_utf8(&rest[..60]).unwrap();
        let size: usize = head[48..58].trim().parse().unwrap();
        assert_eq!(&head[58..], "`\n");
        members.insert(head[..16].trim().to_owned(), rest[60..60 + size].to_vec());
        rest = &rest[60 + size.next_multiple_of(2)..];
    }
    assert_eq!(members.len(), 3);
    assert!(entries(&members["data.tar.gz"]).iter().any(|entry| entry.0 == "usr/bin/tacit"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(&name);
    std::fs::write(&path, &package).unwrap();
    let Ok(read) = Command::new("dpkg-deb").arg("--field").arg(&path).output() else { return };
    let fields = String::from_utf8(read.stdout).unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    for field in ["Package: tacit", "Version: 0.1.0~202611181106.1a755496", "Architecture: amd64"] {
        assert!(fields.lines().any(|line| line == field), "no {field:?} in {fields}");
    }
    let unpacked = folder.path().join("unpacked");
    let done = Command::new("dpkg-deb").arg("--extract").args([&path, &unpacked]).status().unwrap();
    assert!(done.success());
    assert_eq!(std::fs::read(unpacked.join("usr/bin/tacit")).unwrap(), b"program");
}

#[test]
fn the_list_of_parts_is_what_the_lock_file_links() {
    let text = sbom::document(&build(), parts(), &crate::SHIPPED).unwrap();
    assert_eq!(text, sbom::document(&build(), parts(), &crate::SHIPPED).unwrap());
    let document: Value = serde_json::from_slice(&text).unwrap();
    let components = document["components"].as_array().unwrap();
    let names: BTreeSet<&str> = components.iter().map(|c| c["bom-ref"].as_str().unwrap()).collect();
    assert_eq!(names.len(), components.len(), "a part has one place");
    for edge in document["dependencies"].as_array().unwrap() {
        for needed in edge["dependsOn"].as_array().unwrap() {
            assert!(names.contains(needed.as_str().unwrap()), "{needed} is needed and not listed");
        }
    }
    let of = |name: &str| components.iter().find(|c| c["name"] == name);
    let lock = page("Cargo.lock");
    for name in ["rustls", "aws-lc-sys", "libsqlite3-sys", "object_store"] {
        let part = of(name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(part["scope"], "required");
        assert!(lock.contains(part["hashes"][0]["content"].as_str().unwrap()));
    }
    assert_eq!(of("cc").unwrap()["scope"], "excluded", "it compiles C, and is in no program");
    for name in ["proptest", "criterion", "tidy", "packager", "workloads"] {
        assert!(of(name).is_none(), "{name} is in no program");
    }
    let without: Vec<_> = components.iter().filter(|c| c["licenses"][0]["expression"] == "").collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn what_is_put_into_the_wheel_is_the_same_twice() {
    let folder = tempfile::tempdir().unwrap();
    let written = || {
        let args = crate::WheelArgs {
            out: folder.path().to_owned(),
            target: TARGET.to_owned(),
            commit: build().commit,
            epoch: build().epoch,
        };
        crate::wheel(&root(), args).unwrap();
        ["COPYRIGHT", "tacit.cdx.json"].map(|name| std::fs::read_to_string(folder.path().join(name)).unwrap())
    };
    let [copyright, list] = written();
    assert_eq!(written(), [copyright.clone(), list.clone()]);
    let document: Value = serde_json::from_str(&list).unwrap();
    let first = &document["dependencies"][0]["dependsOn"];
    assert_eq!(first, &serde_json::json!([format!("pkg:tacit/python@{}", build().version)]));
    assert!(list.contains("pkg:cargo/pyo3@") && copyright.contains("pyo3 "));
    let own = root().canonicalize().unwrap();
    assert!(!list.contains(own.to_str().unwrap()) && !copyright.contains(own.to_str().unwrap()));
}

#[test]
fn every_linked_package_has_its_licence() {
    let text = String::from_utf8(licences::text(&root(), "tacit and osprey", parts()).unwrap()).unwrap();
    let others = parts().of_others();
    assert!(others.len() > 100, "{} packages", others.len());
    for part in others {
        assert!(!part.licence.is_empty(), "{} has no licence", part.name);
        let line = format!("{} {}: {}", part.name, part.version, part.licence);
        assert!(text.contains(&line), "no {line:?}");
    }
    // Of C libraries inside packages, of the C library below all, and ours.
    for part in ["aws-lc/LICENSE", "zstd/LICENSE", "Rich Felker", "END OF TERMS AND CONDITIONS"] {
        assert!(text.contains(part), "no {part}");
    }
}

#[test]
fn what_is_not_static_or_names_a_folder_is_not_shipped() {
    assert_eq!((is_static(&elf(1)), is_static(&elf(3))), (Some(true), Some(false)));
    assert_eq!(is_static(b"#!/bin/sh\n"), None);
    assert_eq!(is_static(&elf(1)[..100]), Some(true));
    assert_eq!(is_static(&elf(1)[..66]), None, "cut");
    let folder = [PathBuf::from("/home/anna/tacit")];
    let named = [elf(1), b"at /home/anna/tacit/crates/net".to_vec()].concat();
    assert_eq!(fit_to_ship(&elf(1), &folder), Ok(()));
    assert!(fit_to_ship(&named, &folder).unwrap_err().contains("/home/anna/tacit"));
    // This test itself is a program that needs the dynamic linker.
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    if cfg!(not(target_feature = "crt-static")) {
        assert!(fit_to_ship(&own, &[]).unwrap_err().contains("dynamic linker"));
    }
}

#[test]
fn other_files_stay_and_checksums_hold() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dist");
    std::fs::create_dir(&out).unwrap();
    let before = [
        "tacit-0.1.0-cp310-abi3-linux_x86_64.whl",
        "tacit_0.0.1_amd64.deb",
        "tacit-0.0.1-x86_64-linux.tar.gz",
    ];
    before.iter().for_each(|name| std::fs::write(out.join(name), "old").unwrap());
    let files = [("tacit".to_owned(), elf(1)), ("COPYRIGHT".to_owned(), b"text\n".to_vec())];
    write(&out, &files).unwrap();
    let left: Vec<bool> = before.iter().map(|name| out.join(name).exists()).collect();
    assert_eq!(left, [true, false, false], "the wheel alone is not ours");
    let sums = |out: &Path| {
        let check =
            Command::new("sha256sum").args(["--strict", "-c", "SHA256SUMS"]).current_dir(out).output();
        check.unwrap().status.success()
    };
    assert!(sums(&out));
    std::fs::write(out.join("COPYRIGHT"), "other\n").unwrap();
    assert!(!sums(&out));
}

/// The recipe of the image, the archive that it takes and the page name the same user, folders and program.
#[test]
fn the_image_is_what_its_recipe_and_page_say() {
    let recipe = page("docs/deploy/Containerfile");
    let steps: BTreeMap<&str, &str> =
        recipe.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(' ')).collect();
    let archive = image(&[("tacit", b"program".to_vec())], b"text").tar_gz("", "", 0).unwrap();
    let entries: BTreeMap<String, (u32, u64)> =
        entries(&archive).into_iter().map(|(path, mode, owner, ..)| (path, (mode, owner))).collect();
    assert_eq!(steps["FROM"], "scratch");
    assert_eq!(steps["ARG"], format!("ROOTFS=tacit-{}-x86_64-rootfs.tar.gz", env!("CARGO_PKG_VERSION")));
    assert_eq!(steps["USER"], format!("{IMAGE_USER}:{IMAGE_USER}"));
    assert_eq!((steps["WORKDIR"], steps["VOLUME"]), ("/state", "/state"));
    assert_eq!(entries["state/"], (0o700, IMAGE_USER));
    assert_eq!(entries["tmp/"], (0o1777, 0));
    let program: Vec<String> = serde_json::from_str(steps["ENTRYPOINT"]).unwrap();
    assert_eq!(entries[program[0].trim_start_matches('/')], (0o755, 0));
    let install = page("docs/install.md");
    for word in
        ["docs/deploy/Containerfile", &IMAGE_USER.to_string(), "/state", "rootfs.tar.gz", "/etc/ssl/certs"]
    {
        assert!(install.contains(word), "docs/install.md does not name {word}");
    }
}

#[test]
fn the_units_of_systemd_start_what_is_installed() {
    let tree = usr(&root(), &[("tacit", b"program".to_vec())], b"text").unwrap();
    let entries = entries(&tree.tar_gz("", "", 0).unwrap());
    let there = |path: &str| entries.iter().any(|entry| entry.0 == path.trim_start_matches('/'));
    for (name, words, folder) in [
        ("tacit-serve@.service", "serve /var/lib/tacit/%i/server.toml", "tacit/%i"),
        ("tacit-service.service", "service run /var/lib/tacit/service.toml", "tacit"),
    ] {
        let unit = page(&format!("docs/deploy/{name}"));
        let value =
            |name: &str| unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap();
        let (program, said) = value("ExecStart").split_once(' ').unwrap();
        assert!(there(program), "{program}");
        assert_eq!(said, words);
        assert_eq!((value("StateDirectory"), value("DynamicUser")), (folder, "yes"));
        assert!(there(value("Documentation").strip_prefix("file://").unwrap()));
        assert!(there(&format!("/usr/lib/systemd/system/{name}")));
        is_understood(name, &unit);
    }
    let install = page("docs/install.md");
    for word in ["tacit-serve@", "/var/lib/tacit/", "server.toml", "tacit-service"] {
        assert!(install.contains(word), "docs/install.md does not name {word}");
    }
}

/// Asks systemd whether it knows every line, where systemd is there; the program is one that is there.
fn is_understood(name: &str, unit: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name.replace('@', "@a"));
    std::fs::write(&path, unit.replace("/usr/bin/tacit", "/bin/true")).unwrap();
    let Ok(verified) = std::process::Command::new("systemd-analyze").arg("verify").arg(&path).output() else {
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && !said.contains(name.trim_end_matches(".service")), "{said}");
}

//! `tacit generate`: parts in folders, and what is said of them.

use crate::support::{read, tacit};

#[test]
fn generate_writes_parts_into_a_folder_a_side() {
    let folder = tempfile::tempdir().unwrap();
    let made = |files, out| {
        let out = folder.path().join(out);
        let words = ["generate", "lift", "--rows", "600", "--files", files, "--format", "parquet", "--out"];
        let words = words.map(std::ffi::OsString::from).into_iter().chain([out.into()]);
        tacit(words.chain(["--json".into()])).fine()
    };
    let [one, three] = [("1", "one"), ("3", "three")].map(|(files, out)| made(files, out).json());
    assert_eq!(one["truth"], three["truth"]);
    for side in ["publisher", "advertiser"] {
        let (whole, parts) = (&one[side], &three[side]);
        assert_eq!(
            (&whole["files"], &parts["files"], &whole["rows"]),
            (&1.into(), &3.into(), &parts["rows"])
        );
        let names: Vec<_> = (0..3).map(|i| format!("{side}/part-0000{i}.parquet")).collect();
        assert!(names.iter().all(|name| folder.path().join("three").join(name).exists()), "{names:?}");
        assert_eq!(parts["file"], folder.path().join("three").join(side).to_str().unwrap());
        assert!(whole["file"].as_str().unwrap().ends_with(&format!("{side}.parquet")));
    }
}

#[test]
fn generate_names_folders_of_parts_in_party_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let words = ["generate", "lift", "--advertisers", "2", "--rows", "600", "--files", "4", "--out", out];
    let said = tacit(words).fine().stdout;
    assert!(said.contains("publisher: 600 rows in 4 files"), "{said}");
    assert!(said.contains("earliest 4 events of a person and a clamp of 100"), "{said}");
    assert!(said.contains("minimum_group is 1,000: the publisher will refuse the run"), "{said}");
    let party = folder.path().join("shop-2.toml");
    let text = read(&party);
    assert!(text.contains("data = \"shop-2/\"\n") && text.contains("report = \"out-shop-2\"\n"), "{text}");
    let party = folder.path().join("publisher.toml");
    // So few people are no result, which the check says; what is of interest here is that it reads them all.
    let words = ["check".as_ref(), party.as_os_str(), "--spend-anyway".as_ref(), "--json".as_ref()];
    let checked = tacit(words).fine().json();
    assert_eq!(checked["inputs"]["rows_kept"], 600);
}

#[test]
fn generate_says_how_many_files_are_possible() {
    tacit(["generate", "polio", "--files", "2"]).failed(2, &["--files goes with lift; remove --files"]);
    tacit(["demo", "market", "--scale", "5"]).failed(2, &["--scale goes with polio and ring4"]);
    for files in ["0", "65537"] {
        let done = tacit(["generate", "lift", "--files", files]);
        done.failed(2, &["--files", "1..=65536"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let done = tacit(["generate", "lift", "--files", "9", "--rows", "8", "--out", out, "--json"]);
    done.failed(2, &["files: use a whole number from 1 to 65536", "people on a side"]);
}

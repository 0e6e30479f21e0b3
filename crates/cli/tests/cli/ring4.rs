//! `bench ring4`: its JSON, its grid, and what it refuses.

use crate::support::tacit;

/// Settings small enough for a test: two rounds a run.
const SMALL: [&str; 7] = ["bench", "ring4", "--json", "--repeat", "2", "--products", "5001"];

#[test]
fn every_setting_is_correct_and_keeps_its_contract() {
    for (security, bits, transport, hash) in [
        ("semi-honest", 128, "tcp", None),
        ("semi-honest", 1, "tls", None),
        ("malicious", 64, "tcp", Some("keyed")),
        ("malicious", 128, "tls", Some("blake3")),
        ("malicious", 1, "tcp", Some("blake3")),
    ] {
        let bits_word = bits.to_string();
        let mut words = SMALL.to_vec();
        words.extend([
            "--vector",
            "3000",
            "--security",
            security,
            "--bits",
            &bits_word,
            "--transport",
            transport,
        ]);
        words.extend(hash.into_iter().flat_map(|hash| ["--hash", hash]));
        let found = tacit(words).fine().json();
        assert_eq!((found["what"].as_str(), found["security"].as_str()), (Some("ring4"), Some(security)));
        assert_eq!((found["transport"].as_str(), found["hash"].as_str()), (Some(transport), hash));
        assert!(found["bits"] == bits && found["device"] == "cpu" && found["repeat"] == 2, "{found}");
        // Six elements, and eight tags of 16 bytes where messages are checked.
        assert_eq!(found["bytes_per_product"], 0.75 * f64::from(bits), "{found}");
        assert_eq!(found["tag_bytes_per_round"], if security == "malicious" { 128 } else { 0 });
        assert_eq!(
            found["masked"],
            transport == "tcp",
            "TLS hides messages from the fourth party, TCP does not"
        );
        assert!(found["correct"] == true && found["as_priced"] == true, "{found}");
        for field in ["products_per_s", "cpu_ns_per_product", "gbit_per_s", "rounds_per_s", "seconds"] {
            assert!(found[field].as_f64().is_some_and(|x| x > 0.0), "{field} in {found}");
        }
        // Whole vectors of whole blocks, at least as many products as asked for.
        let lanes = 128 / bits as u64;
        let vector = found["vector"].as_u64().unwrap();
        assert_eq!(vector, 3000u64.next_multiple_of(lanes));
        assert_eq!(found["products"].as_u64().unwrap(), 2 * vector);
        assert_eq!(found["peak_memory_bytes"].as_object().unwrap().len(), 4);
    }
}

#[test]
fn the_grid_has_every_setting_once() {
    let found =
        tacit(["bench", "ring4", "--all", "--json", "--repeat", "1", "--products", "2000"]).fine().json();
    assert_eq!(found["correct"], true);
    let name = |s: &serde_json::Value| format!("{} {} {}", s["security"], s["transport"], s["bits"]);
    let mut settings: Vec<String> = found["settings"].as_array().unwrap().iter().map(name).collect();
    settings.sort();
    let all = settings.len();
    settings.dedup();
    assert_eq!((all, settings.len()), (12, 12), "{settings:?}");
    let table = tacit(["bench", "ring4", "--all", "--repeat", "1", "--products", "2000"]).fine().stdout;
    assert!(table.lines().count() >= 14 && table.contains("measured elsewhere"), "{table}");
}

#[test]
fn nonsense_is_refused() {
    for (flags, reason) in [
        (&["--bits", "32"][..], "possible values: 128, 64, 1"),
        (&["--security", "covert"], "semi-honest, malicious"),
        (&["--transport", "memory"], "use --transport tcp or tls"),
        (&["--products", "0"], "above 0"),
        (&["--vector", "99999999999"], "at most"),
        (&["--repeat", "0"], "1..=100"),
        (&["--security", "semi-honest", "--hash", "keyed"], "remove --hash"),
        (&["--device", "abacus"], "possible values"),
    ] {
        let words = ["bench", "ring4", "--json"].into_iter().chain(flags.iter().copied());
        tacit(words).failed(2, &[reason]);
    }
}

#[test]
fn devices_alone_are_measured_by_their_number() {
    let words = ["bench", "ring4", "--scaling", "--json", "--repeat", "1", "--bits", "64"];
    let found = tacit(words).fine().json();
    let points = found["by_devices"].as_array().unwrap();
    assert_eq!(points.iter().map(|p| p["devices"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    let positive = |point: &serde_json::Value| {
        ["gbit_per_s", "products_per_s", "cpu_ns_per_product"]
            .iter()
            .all(|f| point[*f].as_f64().unwrap() > 0.0)
    };
    assert!(points.iter().all(positive) && found["paper_saturated_by"] == 4, "{found}");
}

#[test]
fn engines_are_compared_on_one_study() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("engines.html");
    let words =
        ["bench", "engines", "--json", "--sizes", "200,3k", "--rows", "200", "--round-trips", "0.2,2"];
    let words = words.map(AsRef::<std::ffi::OsStr>::as_ref);
    let found = tacit(words.into_iter().chain(["--figures".as_ref(), page.as_os_str()])).fine().json();
    assert_eq!(found["correct"], true);
    for (series, settings) in [("by_rows", 2), ("by_round_trip", 2)] {
        let points = found[series].as_array().unwrap();
        assert_eq!(points.len(), 4 * settings, "yao, gmw, ring4 in both models");
        for point in points {
            assert_eq!(point["correct"], true, "{point}");
            assert!(point["seconds"].as_f64().unwrap() > 0.0 && point["bytes"].as_u64().unwrap() > 0);
        }
    }
    assert_eq!(found["advice"].as_array().unwrap().len(), 4);
    let page = std::fs::read_to_string(&page).unwrap();
    assert_eq!(page.matches("<figure>").count(), 6, "time, bytes and memory, by rows and by round trip");
    assert!(page.contains("ring4, malicious"));
}

#[test]
fn a_setting_over_the_limit_is_left_out_and_said_to_be() {
    let words = [
        "bench",
        "engines",
        "--json",
        "--sizes",
        "100",
        "--rows",
        "100",
        "--round-trips",
        "9000",
        "--limit",
        "2",
    ];
    let found = tacit(words).fine().json();
    for point in found["by_round_trip"].as_array().unwrap() {
        assert!(point["seconds"].is_null() && point["expected_seconds"].as_f64().unwrap() > 2.0, "{point}");
    }
    assert!(found["by_rows"].as_array().unwrap().iter().all(|p| p["seconds"].is_number()));
    tacit(["bench", "engines", "--transport", "tls", "--json"]).failed(2, &["remove --transport"]);
    tacit(["bench", "engines", "--round-trips", "soon", "--json"]).failed(2, &["write milliseconds"]);
}

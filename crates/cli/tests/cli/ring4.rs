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

//! Marketplaces: the demo as six processes, and the measurement.

use crate::support::tacit;

#[test]
fn a_customer_and_five_providers_find_the_true_answer() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let words = ["demo".as_ref(), "market".as_ref(), "--out".as_ref(), out.as_os_str(), "--json".as_ref()];
    let done = tacit(words).fine();
    let summary = done.json();
    assert_eq!(summary["correct"], true);
    assert_eq!(summary["found"], summary["truth"]);
    assert_eq!((summary["parties"].as_u64(), summary["resources"].as_u64()), (Some(6), Some(1_000)));
    assert!(out.join("isp-5/report.html").exists() && out.join("customer/report.json").exists());
    let provider = std::fs::read_to_string(out.join("isp-3/report.json")).unwrap();
    let answer = summary["found"]["key"].as_str().unwrap();
    assert!(!provider.contains(answer), "a provider's report does not hold the answer");
}

#[test]
fn the_measurement_has_its_keys() {
    for (circuit, gates, depth) in [("paper", 5_461, 120), ("small", 3_484, 127), ("shallow", 6_157, 43)] {
        let words =
            ["bench", "market", "--resources", "100", "--parties", "3", "--circuit", circuit, "--json"];
        let summary = tacit(words.map(AsRef::<std::ffi::OsStr>::as_ref)).fine().json();
        assert_eq!(summary["and_gates"], gates, "{circuit}");
        assert_eq!(summary["depth"], depth, "{circuit}");
        assert_eq!(summary["correct"], true, "{circuit}");
        assert!(summary["bytes"].as_u64().unwrap() > 0 && summary["seconds"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn delay_is_on_the_way_of_every_byte() {
    let measure = |words: &[&str]| {
        let all =
            [&["bench", "market", "--resources", "2", "--circuit", "shallow", "--json"], words].concat();
        tacit(all.iter().map(AsRef::<std::ffi::OsStr>::as_ref)).fine().json()
    };
    let far = measure(&["--delay-ms", "10"]);
    let least = far["rounds"].as_f64().unwrap() * 0.020;
    assert_eq!(far["round_trip_ms"], 20);
    assert!(far["seconds"].as_f64().unwrap() >= least * 0.5, "{far}");
    let words = ["bench", "market", "--transport", "memory", "--delay-ms", "10"];
    let refused = tacit(words.map(AsRef::<std::ffi::OsStr>::as_ref));
    assert!(refused.stderr.contains("pipes have no delay"), "{}", refused.stderr);
}

/// The same problem on four servers, with fewer parties than servers and with more.
#[test]
fn four_servers_find_the_same_answer() {
    for (parties, security, transport) in [("2", "semi-honest", "memory"), ("6", "malicious", "tls")] {
        let words = ["bench", "market", "--engine", "ring4", "--resources", "100", "--parties", parties];
        let more = ["--security", security, "--transport", transport, "--json"];
        let summary = tacit(words.into_iter().chain(more)).fine().json();
        assert!(summary["correct"] == true && summary["engine"] == "ring4", "{summary}");
        assert!(summary["ot"].is_null() && summary["security"] == security, "{summary}");
        assert!(summary["and_gates"].as_u64().unwrap() > 0 && summary["rounds"].as_u64().unwrap() > 0);
    }
    let words = ["bench", "market", "--engine", "ring4", "--transport", "tcp", "--json"];
    tacit(words).failed(2, &["use --transport tls or memory"]);
}

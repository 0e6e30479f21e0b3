//! `bench ring4`: its JSON, its grid, and what it refuses.

use crate::support::{Done, command, tacit};

/// Settings small enough for a test: two rounds a run.
const SMALL: [&str; 7] = ["bench", "ring4", "--json", "--repeat", "2", "--products", "5001"];

/// What a machine without libfabric, a GPU or a simulator says of what it lacks; `None` where the setting
/// ran.
fn missing(done: &Done, device: &str, transport: &str) -> Option<String> {
    if done.code == 0 {
        return None;
    }
    let (what, advice): (&str, &[&str]) = match (device, transport) {
        ("cuda", _) => ("cuda", &["CUDA", "NVRTC", "GPU"]),
        ("rtl", _) => ("rtl", &["make rtl"]),
        (_, "fabric") => ("fabric", &["make fabric", "cannot be opened"]),
        _ => panic!("this is everywhere: {}{}", done.stdout, done.stderr),
    };
    let error = done.json()["error"]["message"].as_str().expect("an error has a text").to_owned();
    assert!(done.code != 4 && advice.iter().any(|word| error.contains(word)), "{what}: {error}");
    Some(error)
}

/// Runs a small setting and checks every field of the contract; nothing where this machine lacks what it
/// takes.
fn keeps_the_contract(security: &str, bits: u64, device: &str, transport: &str, hash: Option<&str>) -> bool {
    let bits_word = bits.to_string();
    let mut words = SMALL.to_vec();
    words.extend(["--vector", "3000", "--security", security, "--bits", &bits_word]);
    words.extend(["--device", device, "--transport", transport]);
    words.extend(hash.into_iter().flat_map(|hash| ["--hash", hash]));
    let done = tacit(words);
    if let Some(why) = missing(&done, device, transport) {
        eprintln!("left out: {device} over {transport}: {why}");
        return false;
    }
    let found = done.fine().json();
    assert_eq!((found["what"].as_str(), found["security"].as_str()), (Some("ring4"), Some(security)));
    assert_eq!((found["transport"].as_str(), found["hash"].as_str()), (Some(transport), hash));
    assert!(found["bits"] == bits && found["device"] == device && found["repeat"] == 2, "{found}");
    // Six elements, and eight tags of 16 bytes where messages are checked.
    assert_eq!(found["bytes_per_product"], 0.75 * bits as f64, "{found}");
    assert_eq!(found["tag_bytes_per_round"], if security == "malicious" { 128 } else { 0 });
    assert_eq!(found["masked"], transport != "tls", "TLS alone hides messages from the fourth party");
    assert!(found["correct"] == true && found["as_priced"] == true, "{found}");
    for field in ["products_per_s", "cpu_ns_per_product", "gbit_per_s", "rounds_per_s", "seconds"] {
        assert!(found[field].as_f64().is_some_and(|x| x > 0.0), "{field} in {found}");
    }
    // Whole vectors of whole blocks, at least as many products as asked for.
    let lanes = 128 / bits;
    let vector = found["vector"].as_u64().unwrap();
    assert_eq!(vector, 3000u64.next_multiple_of(lanes));
    assert_eq!(found["products"].as_u64().unwrap(), 2 * vector);
    assert_eq!(found["peak_memory_bytes"].as_object().unwrap().len(), 4);
    let hardware = &found["hardware"];
    assert_eq!(hardware.is_object(), device == "rtl", "only a simulation counts cycles: {found}");
    if hardware.is_object() {
        // One block in a cycle and stage, and the way through the pipeline.
        let cycles = hardware["cycles_per_product"].as_f64().unwrap() * lanes as f64;
        assert!(cycles >= 2.0, "{found}");
        let gbit_per_s = hardware["gbit_per_s"].as_f64().unwrap();
        assert!((gbit_per_s - 275e6 / cycles * 192e-9).abs() < 1e-6 * gbit_per_s, "{found}");
    }
    true
}

#[test]
fn every_setting_is_correct_and_keeps_its_contract() {
    for (security, bits, transport, hash) in [
        ("semi-honest", 128, "tcp", None),
        ("semi-honest", 1, "tls", None),
        ("malicious", 64, "tcp", Some("keyed")),
        ("malicious", 128, "tls", Some("blake3")),
        ("malicious", 1, "tcp", Some("blake3")),
        ("semi-honest", 64, "shm", None),
        ("malicious", 128, "shm", Some("keyed")),
    ] {
        assert!(keeps_the_contract(security, bits, "cpu", transport, hash));
    }
}

#[test]
fn what_this_machine_lacks_is_said_and_what_it_has_is_measured() {
    for (security, bits, device, transport, hash) in [
        ("semi-honest", 128, "cpu", "fabric", None),
        ("malicious", 64, "cpu", "fabric", Some("keyed")),
        ("semi-honest", 1, "rtl", "shm", None),
        ("malicious", 128, "rtl", "shm", Some("keyed")),
        ("malicious", 64, "rtl", "tls", Some("blake3")),
        ("semi-honest", 64, "cuda", "tls", None),
        ("malicious", 128, "cuda", "shm", Some("keyed")),
    ] {
        keeps_the_contract(security, bits, device, transport, hash);
    }
}

/// Whatever a machine has: with nothing where it looks, the error says what to do.
#[test]
fn a_library_and_a_simulator_that_are_not_there_are_named() {
    let none = "/nonexistent/nothing";
    let without = |variable: &str, flags: [&str; 2]| -> Done {
        let words = SMALL.into_iter().chain(flags);
        command(words).env(variable, none).output().expect("tacit starts").into()
    };
    let fabric = without("TACIT_FABRIC", ["--transport", "fabric"]);
    fabric.failed(2, &["make fabric", "libfabric-dev", "TACIT_FABRIC"]);
    without("TACIT_RTL_SIM", ["--device", "rtl"]).failed(1, &[none]);
}

#[test]
fn the_grid_has_every_setting_once_and_says_what_is_left_out() {
    let small = ["bench", "ring4", "--all", "--repeat", "1", "--products", "2000"];
    let grid = |more: &[&str]| -> Done {
        let words = small.iter().chain(more);
        command(words).env("TACIT_FABRIC", "/nonexistent/nothing").output().expect("tacit starts").into()
    };
    let done = grid(&["--json"]).fine();
    let found = done.json();
    assert_eq!(found["correct"], true);
    let place = |s: &serde_json::Value| format!("{} {}", s["device"], s["transport"]);
    let name = |s: &serde_json::Value| format!("{} {} {}", s["security"], s["bits"], place(s));
    let list = |field: &str| found[field].as_array().unwrap().clone();
    let mut settings: Vec<String> = list("settings").iter().map(name).collect();
    settings.sort();
    let all = settings.len();
    settings.dedup();
    // Six places, of which each is measured in two models and three rings, or left out.
    assert_eq!((all, settings.len()), (6 * (6 - list("left_out").len()), all), "{settings:?}");
    let left_out: Vec<String> = list("left_out").iter().map(place).collect();
    assert!(left_out.contains(&"\"cpu\" \"fabric\"".to_owned()), "{left_out:?}");
    assert!(list("left_out").iter().all(|it| it["why"].as_str().is_some_and(|why| !why.is_empty())));
    for transport in ["tcp", "tls", "shm"] {
        assert_eq!(
            list("settings").iter().filter(|s| s["device"] == "cpu" && s["transport"] == transport).count(),
            6
        );
    }
    let first = done.stderr.lines().next().unwrap();
    assert!(first.contains(&format!("{all} settings, about ")), "{first}");
    assert!(done.stderr.contains(&format!("{all} of {all}; about ")), "{}", done.stderr);
    let table = grid(&[]).fine().stdout;
    assert!(table.lines().count() > all && table.contains("measured elsewhere"), "{table}");
    assert!(table.contains("left out: cpu over fabric: ") && table.contains("make fabric"), "{table}");
}

#[test]
fn nonsense_is_refused() {
    for (flags, reason) in [
        (&["--bits", "32"][..], "possible values: 128, 64, 1"),
        (&["--security", "covert"], "semi-honest, malicious"),
        (&["--transport", "memory"], "possible values: tcp, tls, shm, fabric"),
        (&["--transport", "shm", "--provider", "tcp"], "--provider goes with --transport fabric"),
        (&["--products", "0"], "above 0"),
        (&["--vector", "99999999999"], "at most"),
        (&["--repeat", "0"], "1..=100"),
        (&["--security", "semi-honest", "--hash", "keyed"], "remove --hash"),
        (&["--device", "abacus"], "possible values: cpu, cuda, rtl"),
    ] {
        let words = ["bench", "ring4", "--json"].into_iter().chain(flags.iter().copied());
        tacit(words).failed(2, &[reason]);
    }
}

#[test]
fn devices_alone_are_measured_by_their_number() {
    for device in ["cpu", "rtl"] {
        let words =
            ["bench", "ring4", "--scaling", "--json", "--repeat", "1", "--bits", "64", "--device", device];
        let done = tacit(words);
        if missing(&done, device, "tls").is_some() {
            continue;
        }
        let found = done.fine().json();
        let models = found["models"].as_array().unwrap();
        let named = models.iter().map(|m| m["security"].as_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(named, ["semi-honest", "malicious"]);
        let paper = models.iter().map(|m| m["paper_saturated_by"].as_u64().unwrap()).collect::<Vec<_>>();
        assert_eq!(paper, [6, 4]);
        for model in models {
            let points = model["by_devices"].as_array().unwrap();
            let devices = points.iter().map(|p| p["devices"].as_u64().unwrap()).collect::<Vec<_>>();
            assert_eq!(devices, [1, 2, 3, 4, 5, 6]);
            let rate = |p: &serde_json::Value| p["gbit_per_s"].as_f64().unwrap();
            assert!(points.iter().all(|p| rate(p) > 0.0 && p["products_per_s"].as_f64().unwrap() > 0.0));
            let full = points.iter().find(|p| rate(p) >= 100.0).map(|p| p["devices"].as_u64().unwrap());
            assert_eq!(model["saturated_by"].as_u64(), full, "{found}");
            // Cycles are counted, not timed: every device adds what it should.
            assert!(device == "cpu" || points.windows(2).all(|p| rate(&p[1]) > rate(&p[0])), "{found}");
        }
    }
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
    tacit(["bench", "engines", "--transport", "tls", "--json"])
        .failed(2, &["unexpected argument '--transport'"]);
    tacit(["bench", "engines", "--round-trips", "soon", "--json"]).failed(2, &["write milliseconds"]);
}

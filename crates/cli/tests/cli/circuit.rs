//! `tacit circuit`: from an emitted file to a result of every engine, and what is refused.

use crate::support::{Done, Running, command};
use base::free_address;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

fn tacit(folder: &Path, words: &[&str]) -> Done {
    command(words).current_dir(folder).output().unwrap().into()
}

fn folder_with(names: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (circuit, format) in names {
        let file = format!("{circuit}.{format}");
        tacit(folder.path(), &["circuit", "emit", circuit, "--to", format, "-o", &file]).fine();
    }
    folder
}

fn outputs(run: &Value) -> &Value {
    assert_eq!(run["correct_vs_clear"], true, "{run}");
    &run["outputs"]
}

#[test]
fn every_engine_gives_the_sum_and_states_its_cost() {
    let folder = folder_with(&[("add64", "bristol"), ("add64", "gmw")]);
    for file in ["add64.bristol", "add64.gmw"] {
        for (engine, parties) in [("clear", "2"), ("yao", "2"), ("gmw", "2")] {
            let words = [
                "circuit",
                "run",
                file,
                "--engine",
                engine,
                "--parties",
                parties,
                "--inputs",
                "2,0x28",
                "--json",
            ];
            let run = tacit(folder.path(), &words).fine().json();
            assert_eq!(outputs(&run), &json!(["0x000000000000002a"]), "{engine}");
            assert_eq!((&run["and_gates"], &run["depth"]), (&json!(63), &json!(63)));
            assert_eq!(run["bytes"].as_u64().unwrap() == 0, engine == "clear");
            assert_eq!(run["viewers"], json!([[1, 2]]));
        }
    }
    let words = ["circuit", "run", "add64.bristol", "--engine", "gmw", "--parties", "3", "--inputs", "2,40"];
    let text = tacit(folder.path(), &words).fine().stdout;
    assert!(
        text.starts_with("output 0  0x000000000000002a  (for everyone)\ngmw among 3 parties: 63 AND"),
        "{text}"
    );
}

#[test]
fn aes_gives_the_vector_of_the_standard_on_every_engine() {
    let folder = folder_with(&[("aes128", "bristol")]);
    let inputs = "0x000102030405060708090a0b0c0d0e0f,0x00112233445566778899aabbccddeeff";
    for engine in ["clear", "yao", "gmw"] {
        let words = ["circuit", "run", "aes128.bristol", "--engine", engine, "--inputs", inputs, "--json"];
        let run = tacit(folder.path(), &words).fine().json();
        assert_eq!(outputs(&run), &json!(["0x69c4e0d86a7b0430d8cdb78070b4c55a"]), "{engine}");
        assert_eq!((&run["and_gates"], &run["depth"]), (&json!(6400), &json!(60)));
    }
}

#[test]
fn inputs_come_by_party_and_from_files() {
    let folder = folder_with(&[("sub64", "bristol")]);
    std::fs::write(folder.path().join("two.txt"), "0x28\n2\n").unwrap();
    std::fs::write(folder.path().join("one.txt"), "40").unwrap();
    for inputs in [
        vec!["--inputs", "@two.txt"],
        vec!["--inputs", "1:@one.txt", "--inputs", "2:2"],
        vec!["--party-of-input", "2,2", "--inputs", "2:40,2"],
    ] {
        let words = [vec!["circuit", "run", "sub64.bristol", "--engine", "yao", "--json"], inputs].concat();
        let run = tacit(folder.path(), &words).fine().json();
        assert_eq!(outputs(&run), &json!(["0x0000000000000026"]));
    }
}

#[test]
fn info_counts_and_convert_and_optimise_keep_the_function() {
    let folder = folder_with(&[("mul64", "gmw")]);
    let at = folder.path();
    let info = tacit(at, &["circuit", "info", "mul64.gmw", "--json"]).fine().json();
    assert_eq!((&info["and_gates"], &info["depth"], &info["parties"]), (&json!(4033), &json!(63), &json!(2)));
    assert_eq!(info["layers"].as_array().unwrap().iter().map(|l| l.as_u64().unwrap()).sum::<u64>(), 4033);
    let text = tacit(at, &["circuit", "info", "mul64.gmw"]).fine().stdout;
    assert!(text.contains("party 2  enters 64 bits in 1 word, learns 64 bits in 1 word"), "{text}");

    let converted = tacit(at, &["circuit", "convert", "mul64.gmw", "--to", "bristol"]).fine().stdout;
    std::fs::write(at.join("mul64.txt"), converted).unwrap();
    // The same product twice.
    let twice = "3 7\n2 1 1\n1 2\n\n2 1 0 1 5 AND\n2 1 1 0 4 AND\n1 1 4 6 EQW\n";
    std::fs::write(at.join("wasteful.txt"), twice).unwrap();
    let words = ["circuit", "optimise", "wasteful.txt", "-o", "small.txt", "--json"];
    let report = tacit(at, &words).fine().json();
    assert_eq!((&report["and_gates"], &report["before"]["and_gates"]), (&json!(1), &json!(2)));
    for (file, inputs, expected) in [
        ("mul64.txt", "6,7", "0x000000000000002a"),
        ("small.txt", "1,1", "0x3"),
        ("wasteful.txt", "1,0", "0x0"),
    ] {
        let run = tacit(at, &["circuit", "run", file, "--inputs", inputs, "--json"]).fine().json();
        assert_eq!(outputs(&run), &json!([expected]));
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let folder = folder_with(&[("add64", "bristol"), ("lt64", "gmw")]);
    let at = folder.path();
    std::fs::write(at.join("bad.txt"), "1 3\n2 1 1\n1 1\n2 1 0 7 2 AND\n").unwrap();
    std::fs::write(at.join("items.txt"), "1 x\n").unwrap();
    for (words, parts) in [
        (vec!["run", "bad.txt", "--inputs", "1,1"], vec!["bad.txt, line 4: wire 7 is not below 3"]),
        (vec!["run", "add64.bristol", "--inputs", "1"], vec!["--inputs has 1 values; the inputs are 2"]),
        (vec!["run", "add64.bristol", "--inputs", "1,-2"], vec!["value 1", "is not a number"]),
        (vec!["run", "add64.bristol", "--inputs", "1:1"], vec!["input 1 (64 bits, party 2) has no value"]),
        (vec!["run", "add64.bristol", "--inputs", "3:1"], vec!["3: is not one of the parties 1 to 2"]),
        (vec!["run", "add64.bristol", "--inputs", "1,2", "--inputs", "2:5"], vec!["gives input 1 twice"]),
        (vec!["run", "add64.bristol", "--inputs", "@items.txt"], vec!["items.txt, line 1: item 1: \"x\""]),
        (
            vec!["run", "add64.bristol", "--party-of-input", "1", "--inputs", "1,2"],
            vec!["the circuit has 2 inputs"],
        ),
        (
            vec!["run", "lt64.gmw", "--parties", "3", "--inputs", "1,2"],
            vec!["this file is for 2 parties, not 3"],
        ),
        (
            vec!["run", "add64.bristol", "--parties", "3", "--engine", "yao", "--inputs", "1,2"],
            vec!["two parties; use gmw among more"],
        ),
        (
            vec!["run", "add64.bristol", "--parties", "1", "--engine", "gmw", "--inputs", "1,2"],
            vec!["a protocol takes two parties"],
        ),
        (vec!["emit", "aes128"], vec!["give a file with -o"]),
    ] {
        let words = [vec!["circuit"], words, vec!["--json"]].concat();
        tacit(at, &words).failed(2, &parts);
    }
    tacit(at, &["circuit", "info", "missing.txt"]).failed(2, &["cannot read missing.txt"]);
}

#[test]
fn the_example_circuits_are_what_we_write() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/circuits");
    for (format, file) in [("bristol", "add64.txt"), ("gmw", "add64.gmw")] {
        let written = tacit(&examples, &["circuit", "emit", "add64", "--to", format]).fine().stdout;
        assert_eq!(written, std::fs::read_to_string(examples.join(file)).unwrap(), "{file}");
    }
    // A vote of three parties in both formats, written by hand.
    for file in ["majority.txt", "majority.gmw"] {
        for (inputs, expected) in [("1,0,1", "0x1"), ("0,0,1", "0x0")] {
            let words = ["circuit", "run", file, "--engine", "gmw", "--inputs", inputs, "--json"];
            let run = tacit(&examples, &words).fine().json();
            assert_eq!(outputs(&run), &json!([expected]), "{file}");
        }
    }
}

/// Three hosts of the example of a vote in a folder, with free addresses and with keys of their own; party 2
/// learns nothing.
struct Hosts {
    folder: TempDir,
    keys: [String; 3],
}

const CIRCUIT: &str = "majority.gmw";

impl Hosts {
    fn new() -> Self {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/circuits");
        let folder = tempfile::tempdir().unwrap();
        let read = |file: &str| std::fs::read_to_string(examples.join(file)).unwrap();
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
        write(CIRCUIT, &read(CIRCUIT).replace("o 2 8 8", "o 2 8 0"));
        let addresses = [0; 2].map(|_| free_address().unwrap());
        let keys = [1, 2, 3].map(|p| {
            let made =
                tacit(folder.path(), &["keygen", "--json", "--out", &format!("{p}.key")]).fine().json();
            made["key"].as_str().unwrap().to_owned()
        });
        for p in 1..=3 {
            write(&format!("majority-{p}.in"), &read(&format!("majority-{p}.in")));
            let mut text = read(&format!("majority-{p}.conf"))
                .replace("127.0.0.1:7001", &addresses[0])
                .replace("127.0.0.1:7002", &addresses[1]);
            write(&format!("plain-{p}.conf"), &text);
            for (q, key) in keys.iter().enumerate() {
                text += &format!("k {} {key}\n", q + 1);
            }
            write(&format!("{p}.conf"), &(text + &format!("s {p}.key\n")));
        }
        Self { folder, keys }
    }

    #[track_caller]
    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.folder.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from:?} is not in {text}");
        std::fs::write(path, text.replacen(from, to, 1)).unwrap();
    }

    fn start(&self, config: &str, more: &[&str]) -> Running {
        let mut command = command(["circuit", "run", "--json", "--config", config]);
        command.args(more).current_dir(self.folder.path());
        Running::start(command)
    }
}

#[test]
fn three_hosts_run_a_circuit_and_only_viewers_learn() {
    let hosts = Hosts::new();
    // All parties in one process: what the hosts must send together.
    let words = ["circuit", "run", CIRCUIT, "--engine", "gmw", "--inputs", "1,0,1", "--json"];
    let threads = tacit(hosts.folder.path(), &words).fine().json();
    assert_eq!(outputs(&threads), &json!(["0x1"]));
    for config in ["", "plain-"] {
        let parties = [1, 2, 3].map(|p| hosts.start(&format!("{config}{p}.conf"), &[]));
        let seen = parties.map(|party| party.end().fine().json());
        for (p, seen) in seen.iter().enumerate() {
            let value = if p == 1 { Value::Null } else { "0x1".into() };
            assert_eq!((&seen["party"], &seen["outputs"]), (&json!(p + 1), &json!([value])), "{seen}");
            assert!(seen["seconds"].as_f64().unwrap() > 0.0);
            for same in ["engine", "parties", "viewers", "and_gates", "depth"] {
                assert_eq!(seen[same], threads[same], "{same}");
            }
        }
        let of_hosts = |what: &str| seen.each_ref().map(|host| host[what].as_u64().unwrap());
        assert_eq!(threads["bytes"], of_hosts("bytes").iter().sum::<u64>());
        assert_eq!(threads["rounds"], *of_hosts("rounds").iter().max().unwrap());
    }
}

#[test]
fn two_hosts_run_a_circuit_of_the_command_line() {
    let hosts = Hosts::new();
    let at = hosts.folder.path();
    tacit(at, &["circuit", "emit", "sub64", "-o", "sub64.txt"]).fine();
    std::fs::write(at.join("40.in"), "0x28 # no\n").unwrap();
    std::fs::write(at.join("two.in"), "2\n").unwrap();
    for p in ["1", "2"] {
        hosts.edit(&format!("{p}.conf"), "n 3", "n 2");
        hosts.edit(&format!("{p}.conf"), &format!("k 3 {}\n", hosts.keys[2]), "");
    }
    let words = ["sub64.txt", "--engine", "yao", "--input"];
    let bad = hosts.start("1.conf", &[&words[..], &["40.in"]].concat()).end();
    bad.failed(2, &["40.in, line 1: this party enters 1 items; here is one more"]);
    std::fs::write(at.join("40.in"), "0x28\n").unwrap();
    let parties = [("1.conf", "40.in"), ("2.conf", "two.in")];
    let parties = parties.map(|(config, input)| hosts.start(config, &[&words[..], &[input]].concat()));
    for seen in parties.map(|party| party.end().fine().json()) {
        assert_eq!(seen["outputs"], json!(["0x0000000000000026"]));
        assert_eq!((&seen["engine"], &seen["rounds"]), (&"yao".into(), &3.into()));
    }
}

#[test]
fn hosts_refuse_other_keys_and_other_computations() {
    let hosts = Hosts::new();
    // Party 3 holds another key for party 1 than party 1 has.
    let other = format!("tacit1:{}", "1".repeat(32));
    hosts.edit("3.conf", &format!("k 1 {}", hosts.keys[0]), &format!("k 1 {other}"));
    let mut first = hosts.start("1.conf", &[]);
    first.hear("waiting for party 2, party 3");
    let parts = [
        "party 3 at meet with party 1: ",
        &format!("presented {} (no party of this computation), but party 1 has {other}", hosts.keys[0]),
        "check the line `k` of party 1 in the configuration",
    ];
    hosts.start("3.conf", &[]).end().failed(3, &parts);
    // Party 2 would make its OTs in another way.
    let parts = [
        "party 2 at meet with party 1: party 1 holds another computation",
        "--ot and --party-of-input must be the same at all parties",
    ];
    hosts.start("2.conf", &["--ot", "ferret"]).end().failed(3, &parts);
    first.end().failed(3, &["party 1 at meet with party 2: party 2 holds another computation"]);
}

#[test]
fn a_host_that_does_not_come_is_named() {
    let hosts = Hosts::new();
    hosts.edit("1.conf", "d 60s", "d 2s");
    hosts.edit("3.conf", "d 60s", "d 1s");
    let alone = hosts.start("3.conf", &[]).end();
    alone.failed(3, &["party 3 at meet with party ", "no answer from party ", "check that party "]);
    let second = hosts.start("2.conf", &[]);
    let first = hosts.start("1.conf", &[]).end();
    first.failed(3, &["party 1 at meet with party ", "party 3 did not come to 127.", "within 2.0 s"]);
    drop(second);
}

#[test]
fn a_malformed_configuration_is_refused_with_its_place() {
    let hosts = Hosts::new();
    let at = hosts.folder.path();
    let key = &hosts.keys[0];
    let plain = "n 2\na 1 127.0.0.1:7001\n";
    for (text, part) in [
        (
            "# nothing\n\n",
            "line 3: this configuration is empty; its first record is the number of parties: n 3",
        ),
        ("p 1\nn 2\n", "line 1: the first record is the number of parties: n 3"),
        ("n\n", "line 1: the number of parties is missing"),
        ("n two\n", "line 1: \"two\" is not the number of parties"),
        ("n 17\n", "line 1: the number of parties: 17 is over the limit of 16"),
        ("n 1\n", "line 1: a protocol takes two parties or more"),
        ("n 2 3\n", "line 1: \"3\" is one field too many"),
        ("n 2\nn 2\n", "line 2: a second `n`; the first is in line 1"),
        ("n 2 # parties\nx 1\n", "line 2: \"x\" begins no record; there are n, p, a, k, s, i, c and d"),
        ("n 2\np 3\n", "line 2: party 3 is not one of 1 to 2"),
        ("n 2\np 0\n", "line 2: party 0 is not one of 1 to 2"),
        ("n 2\np 1\n\n# me again\np 2\n", "line 5: a second `p`; the first is in line 2"),
        ("n 2\na\n", "line 2: a party and an address, host:port, are missing"),
        ("n 2\na 1\n", "line 2: an address, host:port, is missing"),
        ("n 2\na 1 :7001\n", "line 2: \":7001\" is no address: write host:port"),
        ("n 2\na 1 host:0\n", "line 2: \"host:0\" is no address: the others must know the port"),
        ("n 2\na 1 h:1\na 1 h:2\n", "line 3: a second `a 1`; the first is in line 2"),
        ("n 2\nk 1 12\n", "line 2: `12` is no key: it must start with `tacit1:`"),
        ("n 2\nd soon\n", "line 2: \"soon\" is no deadline: write a whole number with s, m or h"),
        ("n 2\ns # my key\n", "line 2: the file of this party's identity is missing"),
        ("n 2\ni a.in\ni b.in\n", "line 3: a second `i`; the first is in line 2"),
        (plain, "line 3: no record says which party this is: p 1"),
        ("n 2\np 1\n", "line 3: no address of party 1, where this party listens: a 1 host:port"),
        ("n 2\np 2\na 2 h:1\n", "line 4: no address of party 1, which this party goes to: a 1 host:port"),
        (&format!("{plain}p 1\nk 1 {key}\nk 2 {key}\n"), "line 5: this is the key of party 1 as well"),
        (
            &format!("{plain}p 1\nk 1 {key}\ns 1.key\n"),
            "line 6: no key of party 2; with keys, every party has one",
        ),
        (
            &format!("{plain}p 1\nk 1 {key}\nk 2 {}\n", hosts.keys[1]),
            "line 6: there are keys, but no record names this party's identity file",
        ),
        (&format!("{plain}p 1\ns 1.key\n"), "line 5: no key of party 1"),
        (
            "n 2\na 1 192.0.2.7:7001\np 2\n",
            "line 2: 192.0.2.7:7001 is beyond this machine, where keys are needed",
        ),
        ("n 2\np \u{1}\u{e9}\n", "is not a party: a whole number is expected here"),
    ] {
        std::fs::write(at.join("bad.conf"), text).unwrap();
        hosts.start("bad.conf", &[]).end().failed(2, &["bad.conf, ", part]);
    }
    std::fs::write(at.join("bad.conf"), b"n 2\n\xff\n").unwrap();
    hosts.start("bad.conf", &[]).end().failed(2, &["bad.conf, line 2: this line is not text"]);
    hosts.start("missing.conf", &[]).end().failed(2, &["cannot read missing.conf"]);
}

#[test]
fn what_a_host_lacks_is_named_before_it_meets_anybody() {
    let hosts = Hosts::new();
    let own = |from: &str, more: &[&str], part: &str| {
        hosts.edit("plain-1.conf", from, "");
        hosts.start("plain-1.conf", more).end().failed(2, &[part]);
    };
    own("", &["--engine", "yao"], "the yao engine is for two parties, this configuration for 3");
    own("", &["--engine", "clear"], "the clear engine is no protocol");
    own("", &["--ot", "none"], "unknown OT back end 'none'");
    own("", &["--engine", "yao", "--ot", "ferret"], "--ot is for --engine gmw");
    own("i majority-1.in", &[], "party 1 enters 1 items; name its input file with --input");
    own("c majority.gmw", &[], "no circuit: name its file on the command line");
    own("", &["--inputs", "1,0,1"], "cannot be used with");
    hosts.edit("plain-2.conf", "n 3", "n 2");
    let parts = ["this file is for 3 parties, not 2"];
    hosts.start("plain-2.conf", &[]).end().failed(2, &parts);
    // The identity is not the one of the configuration.
    hosts.edit("1.conf", "s 1.key", "s 2.key");
    let parts =
        ["check the line `s` of this party's configuration, or the line `k` of party 1 in the configuration"];
    hosts.start("1.conf", &[]).end().failed(3, &parts);
}

#[test]
fn the_papers_marketplace_is_a_circuit_file() {
    let folder = tempfile::tempdir().unwrap();
    for (name, gates, depth) in [("market:p2p:100:paper", 5_461, 120), ("market:p2p:100:small", 3_484, 127)] {
        let words = ["circuit", "emit", name, "--to", "gmw", "-o", "p2p.txt", "--json"];
        let written = tacit(folder.path(), &words).fine().json();
        assert_eq!((&written["and_gates"], &written["depth"]), (&gates.into(), &depth.into()), "{name}");
        let read = tacit(folder.path(), &["circuit", "info", "p2p.txt", "--json"]).fine().json();
        assert_eq!(read["and_gates"], gates, "{name}");
    }
    for (name, why) in [
        ("aes129", "there is no circuit \"aes129\""),
        ("market:p2p:many:paper", "\"many\" is no number of resources"),
        ("market:p3p:5:paper", "unknown marketplace 'p3p'"),
        ("market:p2p:5:tall", "unknown circuit 'tall'"),
    ] {
        let done = tacit(folder.path(), &["circuit", "emit", name, "-o", "x.txt"]);
        assert!(done.stderr.contains(why), "{name}: {}", done.stderr);
    }
}

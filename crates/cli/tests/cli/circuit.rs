//! `tacit circuit`: from an emitted file to a result of every engine, and what is refused.

use crate::support::{Done, command};
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
    assert!(text.contains("party 2  enters 64 bits in 1 words, learns 64 bits in 1 words"), "{text}");

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
            vec!["the yao engine is for two parties"],
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
    tacit(at, &["circuit", "info", "missing.txt"]).failed(1, &["cannot read missing.txt"]);
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

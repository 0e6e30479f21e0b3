//! Every engine and every mode on real workloads, small ones that are paged.

use crate::{bench, boolean, keeps_the_contract, lines, osprey, said};

/// 8,192 records are 32 MiB at each party, beside 9 MiB that are not paged.
const PAGED: &str = "--workload merge --size 8192 --memory 24M --json";

/// What the machine does not permit is skipped with its reason; all else is measured, is right, and moved
/// something.
fn all_engines(mode: &str) {
    if boolean().is_none() {
        return;
    }
    let output = bench(&format!("{PAGED} --engine all --mode {mode}"));
    let said = said(&output);
    assert!(output.status.success(), "{mode}: {said}");
    let rows = lines(&output);
    let engines: Vec<&str> = rows.iter().filter_map(|row| row["engine"].as_str()).collect();
    assert_eq!(engines, ["unbounded", "move", "copy", "file", "hint", "swap"], "{said}");
    for row in &rows {
        if let Some(why) = row["skipped"].as_str() {
            eprintln!("{mode}: skipped: {}: {why}", row["engine"]);
            continue;
        }
        keeps_the_contract(row);
        let engine = row["engine"].as_str().expect("a name");
        let planned = !matches!(engine, "unbounded" | "swap");
        assert_eq!(row["mode"].as_str(), planned.then_some(mode), "{row}");
        assert_eq!(row["plan_s"].as_f64() > Some(0.0), planned, "{row}");
        if engine == "unbounded" {
            continue;
        }
        assert!(row["bound_ratio"].as_f64() > Some(0.0), "{row}");
        let moved = row["bytes_read"].as_u64().zip(row["bytes_written"].as_u64());
        assert!(moved.is_some_and(|(read, written)| read + written > 0), "{row}");
        assert!(row["peak_bytes"].as_u64() <= row["memory_bytes"].as_u64(), "{row}");
    }
}

#[test]
fn all_engines_follow_a_trace() {
    all_engines("programmed");
}

#[test]
fn all_engines_speculate_and_follow() {
    all_engines("speculate");
}

#[test]
fn all_engines_follow_a_trace_that_is_being_made() {
    all_engines("concurrent");
}

/// What must move is computed by a trace that nothing else needs.
#[test]
fn swap_alone_has_a_bound() {
    if boolean().is_none() {
        return;
    }
    let output = bench(&format!("{PAGED} --engine swap"));
    let said = said(&output);
    let rows = lines(&output);
    if rows[1]["skipped"].is_string() {
        return eprintln!("skipped: {}", rows[1]);
    }
    assert!(output.status.success(), "{said}");
    keeps_the_contract(&rows[1]);
    assert!(rows[1]["bound_ratio"].as_f64() > Some(0.0), "{}", rows[1]);
    assert_eq!((&rows[1]["mode"], &rows[1]["trace_bytes"]), (&serde_json::Value::Null, &0.into()));
}

/// The other family, which is built apart. In so much memory only the last one is paged.
#[test]
fn workloads_over_ciphertexts_are_measured_too() {
    let path = osprey().with_file_name("osprey-ckks");
    if !path.exists() {
        return eprintln!("skipped: there is no {}; make ckks makes it", path.display());
    }
    let names = ["rsum", "rstats", "rmvmul", "n_rmatmul", "t_rmatmul"];
    let words = format!("--workload {} --size quick --memory 64M --engine move --json", names.join(","));
    let output = bench(&words);
    let said = said(&output);
    let rows = lines(&output);
    if said.contains("move skipped") {
        return eprintln!("skipped: {said}");
    }
    assert!(output.status.success(), "{said}");
    rows.iter().for_each(keeps_the_contract);
    let found: Vec<&str> = rows.iter().filter_map(|row| row["workload"].as_str()).collect();
    assert_eq!(found, names.map(|name| [name, name]).concat(), "unbounded and move: {said}");
    assert!(rows[9]["bytes_read"].as_u64() > Some(0), "{}", rows[9]);
}

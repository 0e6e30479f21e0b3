//! Labels of arms that `tacit init` meets: few rows, slips of the pen, arms that come later.

use crate::init::{asked, in_folder, table, three_arms, with};
use crate::support::read;

/// A label of few rows is asked about before it is one of an arm.
#[test]
fn a_slight_label_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let row = |i: u64| {
        let arm = if i < 12 { "mial" } else { ["mail", "none"][(i % 2) as usize] };
        format!("p{i}@e.org,{arm},2026-02-03")
    };
    table(folder.path(), "a.csv", "email,group,sent", row, 4000);
    let line = "init lift --publisher a.csv --test mail";
    let stopped = asked(folder.path(), &format!("{line} --stdin"), "1\n");
    stopped.failed(
        2,
        &[
            "\"mial\" of \"group\" stands in 12 rows alone. Is it an arm?",
            "correct the file, as \"mail\" is spelt",
            "would be told to the other party, though few rows have it",
        ],
    );
    assert!(!folder.path().join("lift").exists());
    let done = asked(folder.path(), &format!("{line} --stdin --out said"), "2\n\nyes\n").fine();
    assert!(done.stderr.contains("leave_out = [\"mial\"]"), "{}", done.stderr);
    let done = in_folder(folder.path(), &format!("{line} --yes --out taken")).fine();
    assert!(done.stderr.contains("note: \"mial\" of \"group\" stands in 12 rows alone"), "{}", done.stderr);
}

#[test]
fn nobody_is_left_out_for_a_slip_of_the_pen() {
    let folder = tempfile::tempdir().unwrap();
    three_arms(folder.path(), 3000, "q@example.org,0,Mens E-mail,2026-02-04\n");
    let line = "init lift --publisher mails.csv --out lift --control";
    let arms = ["No E-Mail", "--test", "Mens E-Mail"];
    with(folder.path(), line, &arms).failed(
        2,
        &["has 1 row with \"Mens E-mail\", which is \"Mens E-Mail\" but for its spelling: correct the file"],
    );
    let named = |others: &[&str]| {
        let flags = others.iter().flat_map(|label| ["--leave-out", label]);
        with(folder.path(), line, &arms.iter().copied().chain(flags).collect::<Vec<_>>())
    };
    named(&["Childrens"]).failed(2, &["no row of \"segment\" is \"Childrens\"; there are \"Mens E-Mail\","]);
    named(&["No E-Mail"]).failed(2, &["\"No E-Mail\" is the label of an arm that is compared"]);
    // A label that is named comes to those that are left out anyway.
    named(&["Mens E-mail"]).fine();
    assert!(read(&folder.path().join("lift/study.toml")).contains("[\"Mens E-mail\", \"Womens E-Mail\"]"));
    // Later a new arm comes: nobody of it is dropped without a word.
    let rows = read(&folder.path().join("mails.csv")) + "r@example.org,0,Childrens,2026-02-04\n";
    std::fs::write(folder.path().join("mails.csv"), rows).unwrap();
    with(folder.path(), "init lift --advertiser sales.csv --study lift/study.toml --unit EUR", &[]).fine();
    with(folder.path(), "check lift/publisher.toml", &[]).failed(
        2,
        // And the file is called as people call it.
        &["error: mails.csv, line 3003, column \"segment\": \"Childrens\" is neither", "agree on leave_out"],
    );
}

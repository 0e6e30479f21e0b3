//! Every complaint about a study file with its exact text, and what the hash sees.

use super::*;
use ::matching::{ContaminatedRule, Matcher, MultiId, PrivateId, ShareBackend};
use base::limits;
use release::rational::decimal;

const LIFT: &str = include_str!("../../../examples/lift.toml");
const PROGRAM: &str = include_str!("../../../examples/program.toml");

fn lift() -> Study {
    Study::parse("study.toml", LIFT).expect("the example is a study")
}

/// The error of the lift example with `from` replaced by `to`.
fn error(from: &str, to: &str) -> String {
    error_in(LIFT, from, to)
}

fn error_in(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the example has {from:?}");
    let text = text.replacen(from, to, 1);
    Study::parse("study.toml", &text).expect_err("it is wrong now").to_string()
}

#[test]
fn the_example_says_what_it_says() {
    let study = lift();
    assert_eq!(study.name, "polio-1954");
    let names: Vec<&str> = study.parties.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["registry", "hospitals"]);
    assert_eq!(study.matching.identifiers[0].normalise, [Normaliser::Trim, Normaliser::Lowercase]);
    assert_eq!(study.compute, Compute { engine: ComputeEngine::Auto, ot: None, circuit: None, shards: 2 });
    let Question::Lift(lift) = &study.kind else { panic!("a lift study") };
    assert_eq!((lift.clock.bits(), lift.clock.show(0)), (9, "1954-01-01".to_owned()));
    assert_eq!(lift.publisher.test, "vaccine");
    assert_eq!(lift.advertisers[0].max_events, 4);
    assert_eq!(lift.rule, LiftRule { within: None, clamp: 1, lower_is_better: true });
    assert_eq!((&lift.release.to[..], lift.release.public.clone()), (&[][..], decimal("0.1")));
    assert_eq!((lift.release.confidence, lift.release.noise), (Confidence::P95, NoiseFrom::Inside));
}

#[test]
fn a_study_of_questions_is_read() {
    let study = Study::parse("questions.toml", include_str!("../../../examples/questions.toml")).unwrap();
    let Question::Program(program) = &study.kind else { panic!("a program") };
    assert!(program.source.columns.iter().all(|column| column.cell.is_none()));
}

#[test]
fn a_program_study_carries_its_text() {
    let study = Study::parse("study.toml", PROGRAM).expect("the example is a study");
    let Question::Program(program) = &study.kind else { panic!("a program study") };
    assert!(program.source.text.starts_with("tacit-program/2"));
    assert!(PROGRAM.lines().nth(program.text_line - 1).expect("a line").starts_with("tacit-program/2"));
    assert_eq!(program.source.columns[0].name, "exposed");
    assert_eq!(program.source.columns[1].cell, Some(CellType::Label(vec!["healthy".into(), "ill".into()])));
    assert_eq!(study.parties[0].role, PartyRole::Owner("clinic".into()));
}

#[test]
fn wrong_names_and_shapes_are_placed() {
    assert_eq!(
        error("title  =", "titel  ="),
        "study.toml, line 9, column 1: unknown key \"titel\" in the file; did you mean \"title\"? known \
         here: format, name, kind, title, party, match, privacy, time, publisher, advertiser, lift, release, \
         compute, server, ring4, program, columns"
    );
    assert_eq!(
        error("max_events  = 4", "max_event   = 4"),
        "study.toml, line 42, column 1: unknown key \"max_event\" in [advertiser]; did you mean \
         \"max_events\"? known here: layout, event, value, where, max_events, overflow, cohort"
    );
    assert_eq!(
        error("max_events  = 4", ""),
        "study.toml, line 37, column 1: [advertiser] has no \"max_events\"; add: max_events = 4"
    );
    assert_eq!(
        error("max_events  = 4 ", "max_events  = 17"),
        "study.toml, line 42, column 15: advertiser.max_events is 17; use a whole number from 1 to 16"
    );
    assert_eq!(
        error("max_events  = 4 ", "max_events  = \"4\""),
        "study.toml, line 42, column 15: advertiser.max_events is \"4\"; use a whole number from 1 to 16"
    );
    assert_eq!(
        error("duplicates  = \"error\"", "duplicates  = \"firts\""),
        "study.toml, line 23, column 15: match.duplicates is \"firts\"; use \"error\", \"first\" or \
         \"merge\" (did you mean \"first\"?)"
    );
    assert_eq!(
        error("format = \"tacit-study/1\"", "format = \"tacit-study/2\""),
        "study.toml, line 6, column 10: format is \"tacit-study/2\"; use \"tacit-study/1\" (did you mean \
         \"tacit-study/1\"?)"
    );
    assert!(
        error("[match]", "[match").starts_with("study.toml, line 20, column "),
        "{}",
        error("[match]", "[match")
    );
    assert!(error("[match]", "[match").contains("not valid TOML: "));
}

#[test]
fn what_is_not_built_yet_is_refused_as_such() {
    assert_eq!(
        error("kind   = \"lift\"", "kind   = \"market\""),
        "study.toml, line 8, column 10: kind is \"market\"; not available in this version: use \"lift\", \
         \"program\" or \"match\""
    );
    assert!(error("\"inside\"", "\"statistical-cut-and-choose\"").contains("not available in this version"));
}

const MATCH: &str = "protocol    = \"pid\"";
const IDS: &str = "[ { name = \"child_id\", normalise = [\"trim\", \"lowercase\"] } ]";

/// The lift example with other lines in [match].
fn matching(protocol: &str, ids: &str, more: &str) -> Result<MatchRule, String> {
    let text = LIFT.replacen(MATCH, &format!("protocol    = \"{protocol}\""), 1);
    let text = text.replacen(IDS, ids, 1).replacen("duplicates  =", &format!("{more}\nduplicates  ="), 1);
    Study::parse("study.toml", &text).map(|study| study.matching).map_err(|error| error.to_string())
}

const TWO: &str = "[ { name = \"email\", normalise = [\"email\"], weight = 3 }, \"phone\" ]";

#[test]
fn every_protocol_has_its_settings() {
    let of = |protocol, ids, more| matching(protocol, ids, more).unwrap_or_else(|e| panic!("{e}"));
    let usual = Some(DummyRule::default());
    let pid = of("pid", IDS, "");
    assert_eq!((pid.matcher, &pid.dummies), (&PrivateId as &dyn Matcher, &usual));
    let two =
        of("pid", TWO, "dummies = \"off\"\ncontaminated = \"drop\"\nnormalise = { phone = [\"phone:44\"] }");
    assert_eq!((two.matcher, two.contaminated), (&MultiId as &dyn Matcher, ContaminatedRule::Drop));
    assert_eq!(two.identifiers[1].normalise, [Normaliser::Phone(Some(44))]);
    assert_eq!(
        (two.identifiers[0].weight, two.identifiers[1].weight, &*two.identifiers[1].sort),
        (3, 1, "phone")
    );
    let ps3i = of("ps3i", IDS, "backend = \"paillier\"\ndummies = \"off\"");
    assert_eq!((ps3i.matcher.name(), ps3i.backend, ps3i.dummies), ("ps3i", ShareBackend::Paillier, None));
    let collecting = of("collecting", TWO, "slots = 3\ndummies = { epsilon = 0.5, delta = \"1e-7\" }");
    assert_eq!((collecting.matcher.name(), collecting.slots, collecting.degree), ("collecting", 3, 1));
    assert_eq!(collecting.contaminated, ContaminatedRule::Ignore);
    let dummies = DummyRule { epsilon: decimal("0.5").expect("a decimal"), delta_places: 7 };
    assert_eq!(collecting.dummies, Some(dummies));
    assert_eq!(of("circuit-psi", IDS, "").dummies, usual);
    let keep = LIFT.replacen(MATCH, "protocol = \"collecting\"", 1).replacen("= \"error\"", "= \"keep\"", 1);
    assert_eq!(Study::parse("s", &keep).expect("a study").matching.duplicates, Duplicates::Keep);
    assert_eq!(of("pid", IDS, "dummies = \"on\""), pid, "what is usual may be said");
}

#[test]
fn a_setting_of_another_protocol_is_refused_as_such() {
    let cases = [
        (
            "pid",
            IDS,
            "slots = 4",
            "match.slots is 4; it is a setting of \"collecting\", and match.protocol is \"pid\": remove",
        ),
        ("pid", IDS, "contaminated = \"drop\"", "of \"collecting\" and of \"pid\" by several identifiers"),
        ("collecting", IDS, "backend = \"paillier\"", "it is a setting of \"ps3i\""),
        ("collecting", IDS, "contaminated = \"drop\"", "tells the exact sizes of both arms"),
        ("pid", TWO, "contaminated = \"drop\"", "write dummies = \"off\", or contaminated = \"ignore\""),
        (
            "pid",
            TWO,
            "contaminated = \"count\"\ndummies = \"on\"",
            "match.contaminated = \"count\" tells the exact",
        ),
        ("collecting", IDS, "contaminated = \"count\"", "use \"ignore\" or \"drop\""),
        ("ps3i", TWO, "", "match.identifiers names 2 columns; \"ps3i\" matches by exactly 1"),
        ("multi-pid", TWO, "", "use \"pid\" and name several identifiers"),
        ("collecting", IDS, "slots = 17", "use a whole number from 1 to 16"),
        ("collecting", IDS, "degree = 0", "use a whole number from 1 to 64"),
        ("pid", IDS, "dummies = 300", "match.dummies is 300; use \"on\" or \"off\", or { epsilon ="),
        ("pid", IDS, "dummies = { epsilon = 0 }", "use a decimal from 0.001 to 10"),
        ("pid", IDS, "dummies = { delta = 0.1 }", "use a power of ten from \"1e-15\" to \"1e-3\""),
        (
            "pid",
            IDS,
            "normalise = { child_id = [\"trim\"] }",
            "child_id has normalise in match.identifiers as well",
        ),
        ("pid", IDS, "normalise = { child = [\"trim\"] }", "unknown key \"child\" in [match.normalise]"),
        ("pid", "[ \"a\", \"a\" ]", "", "match.identifiers[1]: a is in the list already"),
        ("pid", "[ ]", "", "match.identifiers names 0 columns; list 1 to 8"),
        ("pid", "[ { name = \"a\", weight = 2 } ]", "", "it tells several identifiers apart"),
        ("pid", "[ { name = \"a\", normalise = [\"phone:0\"] } ]", "", "a calling code has 1 to 3 digits"),
        (
            "pid",
            "[ { name = \"a\", normalise = [\"phone:55\"] } ]",
            "",
            "how national numbers are written there is not known: use \"phone\", with + and the country in \
             every cell, or one of 1, 7, 20, 27, 30,",
        ),
        (
            "pid",
            "[ { name = \"a\", normalise = [\"phone\", \"phone:1\"] } ]",
            "",
            "it is already in the list",
        ),
        ("pid", "[ { name = \"a\", normalise = [\"upper\"] } ]", "", "use \"trim\", \"lowercase\""),
    ];
    for (protocol, ids, more, text) in cases {
        let error = matching(protocol, ids, more).expect_err("it is wrong");
        assert!(error.contains(text) && error.starts_with("study.toml, line 2"), "{more}: {error}");
    }
    let third = "[party.zoo]\nkey = \"tacit1:0123456789abcdef0123456789abcdef\"\n[match]";
    let three = PROGRAM.replacen("[match]", third, 1);
    let error = error_in(&three, "protocol    = \"pid\"", "protocol    = \"ps3i\"");
    assert!(error.contains("it gives shares of the rows that both have"), "{error}");
    let error = error_in(ALIGNED, "duplicates  =", "dummies = \"off\"\nduplicates  =");
    assert!(error.contains("\"aligned\" has no use for dummies: remove the line"), "{error}");
}

/// What one line can change has a bound, by several identifiers as well.
#[test]
fn rules_without_a_bound_are_refused_by_several_identifiers() {
    let of = |protocol: &str, ids: &str, rule: &str| {
        let text = LIFT.replacen(MATCH, &format!("protocol    = \"{protocol}\""), 1).replacen(IDS, ids, 1);
        let text = text.replacen("duplicates  = \"error\"", &format!("duplicates  = \"{rule}\""), 1);
        Study::parse("study.toml", &text).map_err(|error| error.to_string())
    };
    for (protocol, ids, rule, instead) in [
        ("pid", TWO, "merge", Some("use \"error\" or \"first\"")),
        ("pid", TWO, "first", None),
        ("pid", IDS, "merge", None),
        ("collecting", TWO, "merge", Some("use \"error\" or \"keep\"")),
        ("collecting", TWO, "first", Some("use \"error\" or \"keep\"")),
        ("collecting", TWO, "keep", None),
        ("collecting", IDS, "first", None),
    ] {
        match (of(protocol, ids, rule), instead) {
            (Ok(_), None) => {}
            (Err(error), Some(instead)) => {
                let text = format!(
                    "match.duplicates is \"{rule}\"; by several identifiers one line could change any"
                );
                assert!(error.contains(&text) && error.ends_with(instead), "{error}");
            }
            (met, _) => panic!("{protocol}, {rule}: {met:?}"),
        }
    }
}

/// A match by itself has its protocol's bounds; a lift study those of its program.
#[test]
fn slots_are_bounded_by_what_runs() {
    const ALONE: &str = include_str!("../../../examples/match.toml");
    let of = |slots: u32| {
        let line = ALONE.lines().find(|line| line.starts_with("protocol")).expect("a protocol");
        let text = ALONE.replacen(line, &format!("protocol = \"collecting\"\nslots = {slots}"), 1);
        Study::parse("study.toml", &text).map_err(|error| error.to_string())
    };
    assert!(of(MAX_SLOTS + 1).is_ok());
    assert!(of(1025).expect_err("too many").contains("use a whole number from 1 to 1024"));
    assert!(matching("collecting", IDS, "slots = 16").is_ok());
}

#[test]
fn everything_in_match_changes_the_hash() {
    let hash = |protocol: &str, ids: &str, more: &str| {
        let text = LIFT.replacen(MATCH, &format!("protocol    = \"{protocol}\""), 1);
        let text = text.replacen(IDS, ids, 1).replacen("duplicates  =", &format!("{more}\nduplicates  ="), 1);
        Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{more}: {e}")).hash().full()
    };
    let all = [
        hash("pid", IDS, ""),
        hash("pid", IDS, "dummies = \"off\""),
        hash("pid", IDS, "dummies = { epsilon = 0.2 }"),
        hash("pid", IDS, "dummies = { delta = \"1e-8\" }"),
        hash("pid", TWO, ""),
        hash("pid", TWO, "dummies = \"off\"\ncontaminated = \"drop\""),
        hash("pid", TWO, "dummies = \"off\"\ncontaminated = \"ignore\""),
        hash("pid", &TWO.replace("3", "4"), ""),
        hash("pid", &TWO.replace("weight", "sort = \"mail\", weight"), ""),
        hash("pid", &TWO.replace("\"phone\"", "{ name = \"phone\", normalise = [\"phone\"] }"), ""),
        hash("pid", &TWO.replace("\"phone\"", "{ name = \"phone\", normalise = [\"phone:1\"] }"), ""),
        hash("ps3i", IDS, ""),
        hash("ps3i", IDS, "backend = \"paillier\""),
        hash("collecting", IDS, ""),
        hash("collecting", IDS, "slots = 5"),
        hash("collecting", IDS, "degree = 5"),
        hash("collecting", IDS, "dummies = \"off\""),
        hash("collecting", IDS, "dummies = \"off\"\ncontaminated = \"drop\""),
        hash("circuit-psi", IDS, ""),
    ];
    let different: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(different.len(), all.len());
    let table = hash("pid", "[ \"child_id\" ]", "normalise = { child_id = [\"trim\", \"lowercase\"] }");
    assert_eq!(table, all[0], "two spellings of one thing");
}

#[test]
fn parties_and_keys_are_checked() {
    assert_eq!(
        error("tacit1:b07e66d2915c4fa3a2d8017b34ce9f50", "tacit1:b07e"),
        "study.toml, line 17, column 8: party.hospitals.key is \"tacit1:b07e\"; a key is \"tacit1:\" and 32 \
         hex digits in lower case, as `tacit keygen` prints it"
    );
    assert!(
        error("tacit1:b07e66d2915c4fa3a2d8017b34ce9f50", "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11")
            .ends_with("registry and hospitals have the same key; each needs its own")
    );
    assert!(
        error("\"advertiser\"", "\"publisher\"")
            .ends_with("registry and hospitals have the same role; each needs its own")
    );
    assert!(error("[party.hospitals]", "[party.Hospitals]").contains("party name \"Hospitals\": a name has"));
    assert_eq!(
        error("[release.public]", "[release.to.hospital]\nrho = 0.1\n[release.public]"),
        "study.toml, line 60, column 13: unknown key \"hospital\" in [release.to]; did you mean \
         \"hospitals\"? known here: registry, hospitals"
    );
}

#[test]
fn ranges_are_checked() {
    let cases = [
        ("clamp        = 1", "clamp        = 0", "use a whole number from 1 to 1048576"),
        ("span   = 365", "span   = 4294967296", "use a whole number from 1 to 4294967295"),
        ("span   = 365", "span   = 4294967295", "origin and span reach beyond the year 9999"),
        ("origin = 1954-01-01", "origin = \"1954-01-01\"", "without quotes"),
        ("# within     = 180", "within = 366", "use a whole number from 1 to 365"),
        ("rho = 0.1", "rho = 0.0", "use a decimal above 0 and at most 100"),
        ("rho = 0.1", "rho = -0.1", "use a decimal above 0 and at most 100"),
        ("rho = 0.1", "rho = 1e-3", "use a decimal above 0 and at most 100"),
        ("rho = 0.1", "rho = inf", "use a decimal above 0 and at most 100"),
        ("rho = 0.1", "rho = 100.000000001", "use a decimal above 0 and at most 100"),
        ("confidence = 0.95", "confidence = 0.96", "use 0.90, 0.95 or 0.99"),
        ("shards  = 2", "shards  = 257", "use a whole number from 1 to 256"),
        ("noise      = \"inside\"", "candidates = 2", "noise drawn inside has no candidates"),
        ("noise      = \"inside\"", "noise = \"cut-and-choose\"", "so there is no public number"),
        ("equals = [\"paralytic\"]", "equals = []", "advertiser.where.equals has 0 values; list 1 to 64"),
        (
            "equals = [\"paralytic\"]",
            "equals = [\"a\", \"a\"]",
            "is \"a\"; it is already in the list; remove one",
        ),
        ("also       = []", "also = [\"reached_value\"]", "it needs publisher.impressions"),
        ("also       = []", "also = [\"convertors\"]", "(did you mean \"converters\"?)"),
        ("control = \"placebo\"", "control = \"vaccine\"", "the labels must differ"),
        (
            "control = \"placebo\"",
            "control = \"placebo\", leave_out = [\"other\", \"placebo\"]",
            "publisher.arm.leave_out[1] is \"placebo\"; it is the label of an arm that is compared",
        ),
        (
            "control = \"placebo\"",
            "control = \"placebo\", leave_out = \"other\"",
            "publisher.arm.leave_out is \"other\"; write a list in [ ]",
        ),
        ("column = \"onset\"", "columns = [\"onset\"]", "the events layout needs column = \"name\""),
        ("{ constant = 1 }", "{ constant = 0 }", "use a whole number from 1 to 4294967295"),
        ("title  = \"1954", "title  = \"\\u001b[2J", "control characters are not allowed here"),
    ];
    for (from, to, text) in cases {
        let error = error(from, to);
        assert!(error.contains(text), "{to}: {error}");
        assert!(error.starts_with("study.toml, line "), "{error}");
    }
}

#[test]
fn a_program_study_is_checked() {
    let cases = [
        ("party = \"works\"", "party = \"work\"", "use \"clinic\" or \"works\" (did you mean \"works\"?)"),
        ("type = \"label\", ", "", "columns.state.values needs type = \"label\""),
        ("type = \"label\", values = [\"healthy\", \"ill\"]", "type = \"time\"", "add a section [time]"),
        ("text = \"\"\"\n", "text = \"\"\"\"\"\"\n#", "program.text is empty"),
        ("[compute]", "[lift]\nclamp = 1\n[compute]", "unknown key \"lift\" in the file"),
    ];
    for (from, to, text) in cases {
        let error = error_in(
            &PROGRAM.replace(
                "the text form of a program, as `docs/program.md` describes it\n\"\"\"",
                "x\n\"\"\"",
            ),
            from,
            to,
        );
        assert!(error.contains(text) || text == "program.text is empty", "{to}: {error}");
    }
}

const ALIGNED: &str = include_str!("../../../examples/aligned.toml");
const SEVERAL: &str = include_str!("../../../examples/lift-several.toml");

#[test]
fn three_parties_share_their_rows_by_public_keys() {
    let study = Study::parse("study.toml", ALIGNED).expect("the example is a study");
    assert_eq!((study.matching.matcher.name(), study.parties.len()), ("aligned", 3));
    assert_eq!(study.compute, Compute { engine: ComputeEngine::Gmw, ot: None, circuit: None, shards: 1 });
    let text = ALIGNED.replace("ot      = \"auto\"", "ot = \"softspoken:4\"");
    let text = text.replace("circuit = \"auto\"", "circuit = \"shallow\"");
    let set = Study::parse("study.toml", &text).expect("settings have names");
    assert_eq!(set.compute.ot, Some(OtKind::SoftSpoken { k: 4 }));
    assert_eq!(set.compute.circuit, Some(SelectionCircuit::Shallow));
    assert_ne!(set.hash(), study.hash());
    assert!(error_in(ALIGNED, "circuit = \"auto\"", "circuit = \"round\"").starts_with(
        "study.toml, line 70, column 11: compute.circuit is \"round\"; use \"auto\" or a name: "
    ));
    assert!(
        error("protocol    = \"pid\"", "protocol    = \"aligned\"").contains("match.protocol is \"aligned\"")
    );
}

#[test]
fn several_advertisers_are_one_study_or_several() {
    let file = StudyFile::parse("study.toml", SEVERAL).expect("the example is a study");
    assert_eq!((file.runs.len(), file.runs[0].hash()), (1, file.hash()));
    let together = file.only().expect("one run");
    let Question::Lift(lift) = &together.kind else { panic!("one lift") };
    let events: Vec<_> = lift.advertisers.iter().map(|advertiser| &advertiser.events[..]).collect();
    assert_eq!(events, [["bought"], ["visited"]]);
    let apart = SEVERAL.replace("\"together\"", "\"apart\"");
    let apart = apart.replace(
        "[release.public]",
        "[release.to.paper]\nrho = 0.1\n[release.to.bakery]\nrho = 0.1\n[release.to.cinema]",
    );
    let file = StudyFile::parse("study.toml", &apart).expect("a study");
    let parts = &file.runs;
    let names = |part: &Study| part.parties.iter().map(|m| m.name.clone()).collect::<Vec<_>>();
    assert_eq!([names(&parts[0]), names(&parts[1])], [["paper", "bakery"], ["paper", "cinema"]]);
    let of = |part: &Study| match &part.kind {
        Question::Lift(lift) => {
            (lift.advertisers[0].events.clone(), lift.release.to.iter().map(|to| to.0.clone()).collect())
        }
        _ => (Vec::new(), Vec::new()),
    };
    assert_eq!(of(&parts[0]), (vec!["bought".into()], vec!["paper".to_owned(), "bakery".into()]));
    assert_eq!(of(&parts[1]), (vec!["visited".into()], vec!["paper".to_owned(), "cinema".into()]));
    let hashes = |text: &str| {
        let file = StudyFile::parse("study.toml", text).expect("a study");
        [file.hash(), file.runs[0].hash(), file.runs[1].hash()]
    };
    let all = hashes(&apart);
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    // What only the cinema's section says is consented to by the bakery as well.
    let other = hashes(&apart.replace("column = \"spent\"", "column = \"paid\""));
    assert!((0..3).all(|i| all[i] != other[i]));
    let common = apart.replace("[advertiser.bakery]", "[advertiser]");
    let cut = common.find("[advertiser.cinema]").expect("a section");
    let common = format!("{}{}", &common[..cut], &common[common.find("[lift]").expect("a section")..]);
    let several = StudyFile::parse("study.toml", &common).expect("one section for all");
    assert_eq!(of(&several.runs[1]).0, ["bought"]);
    let error = several.only().expect_err("several runs").to_string();
    assert!(error.contains("asks for 2 runs, one of the publisher with each advertiser"), "{error}");
    assert!(error_in(SEVERAL, "[advertiser.cinema]", "[advertiser.opera]").contains("unknown key \"opera\""));
    let none = SEVERAL.replace("role = \"publisher\"", "role = \"advertiser\"");
    let error = Study::parse("study.toml", &none).expect_err("nobody knows the arm").to_string();
    assert!(error.contains("no party has role = \"publisher\""), "{error}");
}

#[test]
fn clear_is_refused_outside_one_process() {
    let text = LIFT.replace("engine  = \"auto\"", "engine  = \"clear\"");
    let study = Study::parse("study.toml", &text).expect("it parses");
    assert_eq!(
        study.refuse_clear().expect_err("refused").to_string(),
        "study polio-1954: compute.engine is \"clear\", which protects nothing and is refused between \
         processes; use \"auto\", \"yao\" or \"gmw\""
    );
    lift().refuse_clear().expect("auto is fine");
}

#[test]
fn the_hash_sees_what_is_said_and_nothing_else() {
    let hash = lift().hash();
    let shown = hash.to_string();
    assert_eq!((shown.len(), hash.full().len()), (14, 64));
    let bare: String =
        LIFT.lines().map(|line| line.split(" #").next().unwrap_or("").to_owned() + "\r\n").collect();
    assert_eq!(Study::parse("s", &bare).expect("a study").hash(), hash, "comments and line ends");
    let moved = LIFT.replace("shards  = 2", "").replace("[compute]", "[compute]\nshards = 2");
    assert_eq!(Study::parse("s", &moved).expect("a study").hash(), hash, "order of keys");
    let defaults = LIFT.replace("noise      = \"inside\"", "").replace("rho = 0.1", "rho = 0.10");
    assert_eq!(Study::parse("s", &defaults).expect("a study").hash(), hash, "defaults and zeros");
}

#[test]
fn every_setting_changes_the_hash() {
    let hash = lift().hash();
    let mut seen = std::collections::BTreeSet::from([hash.full()]);
    let changes = [
        ("polio-1954", "polio-1955"),
        ("placebo-control areas", "observed areas"),
        ("3f9a", "3f9b"),
        ("\"child_id\"", "\"id\""),
        ("\"trim\", \"lowercase\"", "\"lowercase\", \"trim\""),
        ("\"trim\", \"lowercase\"", "\"trim\""),
        ("duplicates  = \"error\"", "duplicates  = \"first\""),
        ("origin = 1954-01-01", "origin = 1954-01-02"),
        ("\"day\"", "\"hour\""),
        ("span   = 365", "span   = 366"),
        ("column = \"arm\"", "column = \"group\""),
        ("test = \"vaccine\", control = \"placebo\"", "test = \"placebo\", control = \"vaccine\""),
        ("control = \"placebo\"", "control = \"placebo\", leave_out = [\"observed\"]"),
        ("control = \"placebo\"", "control = \"placebo\", leave_out = [\"observed\", \"absent\"]"),
        ("column = \"injected\"", "column = \"given\""),
        ("# impressions", "impressions"),
        ("# breakdown", "breakdown"),
        ("column = \"onset\"", "column = \"start\""),
        ("constant = 1", "constant = 2"),
        ("{ constant = 1 }", "{ column = \"amount\", type = \"u32\" }"),
        ("{ constant = 1 }", "{ column = \"amount\", type = \"u32\", unit = \"cent\" }"),
        ("{ constant = 1 }", "{ column = \"amount\", type = \"u32\", scale = 10 }"),
        ("{ constant = 1 }", "{ column = \"amount\", type = \"u32\", negative = \"leave-out\" }"),
        ("{ constant = 1 }", "{ column = \"amount\", type = \"u32\", negative = \"net\" }"),
        ("where       =", "# where"),
        ("[\"paralytic\"]", "[\"paralytic\", \"other\"]"),
        ("max_events  = 4", "max_events  = 5"),
        ("keep-earliest", "error"),
        ("# cohort", "cohort"),
        ("# within     = 180", "within = 180"),
        ("clamp        = 1", "clamp        = 2"),
        ("lower_is_better = true", "lower_is_better = false"),
        ("mode       = \"sums\"", "mode       = \"variance\""),
        ("confidence = 0.95", "confidence = 0.99"),
        ("[release.public]", "[release.to.registry]"),
        ("minimum_group = 1000", "minimum_group = 1001"),
        ("also       = []", "also       = [\"matches\"]"),
        ("rho = 0.1", "rho = 0.2"),
        ("engine  = \"auto\"", "engine  = \"yao\""),
        ("shards  = 2", "shards  = 3"),
    ];
    for (from, to) in changes {
        assert!(LIFT.contains(from), "{from}");
        let study = Study::parse("s", &LIFT.replacen(from, to, 1)).unwrap_or_else(|e| panic!("{to}: {e}"));
        assert!(seen.insert(study.hash().full()), "{from} -> {to} kept the hash");
    }
}

/// Values in parts of a unit: the clamp is in the unit. What earlier versions could not say is no difference
/// where it says what they meant.
#[test]
fn a_clamp_is_in_the_unit_of_the_values() {
    let with = |value: &str, clamp: &str| {
        let value = format!("{{ column = \"amount\", type = \"u32\", unit = \"EUR\"{value} }}");
        let text = LIFT.replacen("{ constant = 1 }", &value, 1);
        Study::parse("study.toml", &text.replacen("clamp        = 1", &format!("clamp = {clamp}"), 1))
    };
    let clamp = |value: &str, clamp: &str| {
        let study = with(value, clamp).unwrap_or_else(|e| panic!("{e}"));
        let Question::Lift(lift) = study.kind else { panic!("a lift study") };
        (lift.rule.clamp, lift.scale())
    };
    assert_eq!(clamp("", "500"), (500, 1));
    assert_eq!(clamp(", scale = 100", "500"), (50_000, 100));
    assert_eq!(clamp(", scale = 100", "12.5"), (1_250, 100));
    assert_eq!(clamp(", scale = 100", "10485.76"), (1 << 20, 100));
    let hash = |value: &str| with(value, "500").unwrap_or_else(|e| panic!("{e}")).hash();
    assert_eq!(hash(", scale = 1, negative = \"error\""), hash(""));
    for (value, clamp, expected) in [
        (
            ", scale = 100",
            "12.345",
            "use a number from 0.01 to 10485.76, with no more decimals than value.scale",
        ),
        (", scale = 100", "10485.77", "use a number from 0.01 to 10485.76"),
        (", scale = 100", "0", "use a number from 0.01 to 10485.76"),
        (", scale = 100", "\"500\"", "use a number from 0.01 to 10485.76"),
        ("", "12.5", "use a whole number from 1 to 1048576"),
        (", scale = 25", "1", "scale is 25; use 1, 10, 100, ..: a cell then has up to as many decimals"),
        (", scale = 10000000", "1", "use a whole number from 1 to 1000000"),
        (", negative = \"drop\"", "1", "use \"error\", \"leave-out\" or \"net\""),
    ] {
        let error = with(value, clamp).expect_err("wrong").to_string();
        assert!(error.contains(expected), "{value} {clamp}: {error}");
    }
}

#[test]
fn the_first_difference_is_named() {
    let theirs = LIFT.replace("clamp        = 1", "clamp        = 2").replace("# Every", "# each");
    let difference = first_difference(LIFT, &theirs).expect("they differ");
    assert_eq!((difference.line, difference.setting.as_str()), (49, "lift.clamp"));
    assert!(
        difference.mine.starts_with("clamp        = 1") && difference.theirs.starts_with("clamp        = 2")
    );
    let more = LIFT.replace("# within     = 180", "within = 180");
    let difference = first_difference(LIFT, &more).expect("they differ");
    assert_eq!((difference.setting.as_str(), difference.mine.as_str()), ("lift.within", "(absent)"));
    let less = first_difference(&more, LIFT).expect("they differ");
    assert_eq!((less.line, less.theirs.as_str()), (48, "(absent)"));
    assert_eq!(first_difference(LIFT, &LIFT.replace("  ", " ").replace("rho = 0.1", "rho = 0.10")), None);
    let garbage = first_difference(LIFT, "\u{1b}[2J").expect("they differ");
    assert_eq!((garbage.line, garbage.theirs.as_str()), (1, "\\u{1b}[2J"));
    let text = PROGRAM.replace("const 29 u16", "const 30 u16");
    let difference = first_difference(PROGRAM, &text).expect("they differ");
    assert!(difference.theirs.contains("const 30 u16"), "{difference:?}");
    assert!(
        PROGRAM.lines().nth(difference.line - 1).expect("a line").contains("const 29 u16"),
        "{difference:?}"
    );
}

#[test]
fn files_are_bounded_and_utf8() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("study.toml");
    assert!(StudyFile::read(&path).expect_err("absent").to_string().starts_with("cannot open "));
    std::fs::write(&path, b"name = \"\xff\"").expect("written");
    assert!(
        StudyFile::read(&path)
            .expect_err("bytes")
            .to_string()
            .ends_with("not UTF-8 at byte 8; save it as UTF-8")
    );
    std::fs::write(&path, vec![b'#'; limits::STUDY_BYTES + 1]).expect("written");
    assert!(StudyFile::read(&path).expect_err("large").to_string().contains("larger than 1048576 bytes"));
    let mut at_cap = LIFT.as_bytes().to_vec();
    at_cap.resize(limits::STUDY_BYTES, b'\n');
    std::fs::write(&path, at_cap).expect("written");
    assert_eq!(StudyFile::read(&path).expect("at the cap").0, lift().into());
}

#[test]
fn a_folder_in_place_of_a_file_says_which_files_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = |path: &std::path::Path| read_text(path).expect_err("it is a folder").to_string();
    let none = told(folder.path());
    assert!(none.ends_with("is a folder; name a file in it"), "{none}");
    for name in ["study.toml", "publisher.toml", "publisher.key"] {
        std::fs::write(folder.path().join(name), "").expect("a file");
    }
    let [own, study] = ["publisher.toml", "study.toml"].map(|name| folder.path().join(name));
    let text = told(folder.path());
    assert!(text.ends_with(&format!("name a file in it: {}, {}", own.display(), study.display())), "{text}");
}

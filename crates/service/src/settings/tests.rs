use super::{RulesFile, words};
use std::path::Path;

const LEAST: &str = "format = \"tacit-service/1\"\nname = \"hospitals\"\nidentity = \"h.key\"\nstore = \
                     \"service.db\"\nledger = \"h.ledger\"\n";

fn whole() -> String {
    let tables = r#"
        data_root = "data"
        [web]
        listen = "127.0.0.1:9443"
        names = ["Tacit.hospitals.example:9443"]
        [peers.registry]
        key = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11"
        address = "registry.example.org:7000"
        run_ports = "7001-7008"
        kinds = ["lift"]
        [data.admissions]
        path = "admissions/"
        lineage = "admissions"
        columns = ["child_id"]
        peers = ["registry"]
        stewards = ["steward-1"]
        budget = 1.0
        period = { days = 90, rho = 0.3 }
        delta = "1e-6"
        [policy]
        kinds = ["lift"]
        max_rho = 0.5
        quiet_hours = ["Mon-Fri 08:00-18:00 +01:00"]
        separate_duties = false
    "#;
    format!("{LEAST}{tables}")
}

fn parse(text: &str) -> Result<super::HouseSettings, String> {
    RulesFile::parse(Path::new("house/service.toml"), text).map_err(|error| error.to_string())
}

fn said(text: &str) -> String {
    words(&parse(text).expect("parses"), &|_| true)
        .into_iter()
        .flat_map(|(_, lines)| lines)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn what_is_not_written_down_is_refused() {
    let said = said(LEAST);
    for refused in [
        "None is known, so none can propose anything.",
        "There is none, so no study can read anything.",
        "No kind of study is allowed.",
        "No study may spend anything",
        "No study may have a delta",
        "Nothing is revealed without noise.",
        "Who proposes a study does not consent to it",
        "No program consents or refuses",
    ] {
        assert!(said.contains(refused), "{refused} is not in:\n{said}");
    }
}

#[test]
fn all_that_is_written_is_said() {
    let settings = parse(&whole()).expect("parses");
    assert_eq!(settings.store, Path::new("house/service.db"));
    assert!(settings.web.is_named("tacit.HOSPITALS.example:9443") && settings.web.is_named("localhost:9443"));
    assert!(!settings.web.is_named("tacit.hospitals.example") && !settings.web.is_named("evil.example"));
    let said = said(&whole());
    for held in [
        "registry has the key tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11; we reach it at",
        "Budget 1 (rho) for each viewer",
        "at most 0.3 in any 90 days",
        "come to 1e-6",
        "no study that servers compute can use it",
        "Mon to Fri 08:00 to 18:00 (UTC+01:00)",
        "duties are not separate",
    ] {
        assert!(said.contains(held), "{held} is not in:\n{said}");
    }
}

#[test]
fn mistakes_have_a_place_and_say_what_to_do() {
    for (from, to, expected) in [
        (
            "kinds = [\"lift\"]\n        max_rho",
            "kinds = [\"lifts\"]\n        max_rho",
            "did you mean \"lift\"?",
        ),
        ("peers = [\"registry\"]", "peers = [\"clinic\"]", "there is no [peers.clinic]"),
        ("peers = [\"registry\"]", "servers = [\"north\"]", "there is no [peers.north]"),
        ("path = \"admissions/\"", "path = \"../admissions\"", "below data_root, without .."),
        ("path = \"admissions/\"", "path = \"/etc\"", "below data_root, without .."),
        ("steward-1", "Steward 1", "a name of an account has 1 to 40 of a-z"),
        ("budget = 1.0", "budgett = 1.0", "did you mean \"budget\"?"),
        ("budget = 1.0", "budget = 0", "write a decimal above 0"),
        ("7001-7008", "80-90", "two ports from 1024"),
        ("tacit1:3f9a", "tacit1:zz", "is not one of 0-9 and a-f"),
        ("Mon-Fri 08:00-18:00 +01:00", "Mon-Fri 18:00-08:00 +01:00", "the first hour must be before"),
        ("127.0.0.1:9443", "example.org", "an address of this machine and a port"),
        ("data_root = \"data\"", "", "add: data_root ="),
        ("format = \"tacit-service/1\"", "", "add: format = \"tacit-service/1\""),
        ("[policy]", "[keep]\n        log_days = 90\n        [policy]", "add: folder = \"kept\""),
        (
            "[policy]",
            "[policy]\n        second_step = [\"boss\"]",
            "write viewer, analyst, steward or operator",
        ),
        (
            "[peers.registry]",
            "proxy = { uid = 33, user_header = \"X\" }\n        [peers.registry]",
            "add: socket =",
        ),
    ] {
        let text = whole().replacen(from, to, 1);
        match parse(&text) {
            Ok(_) => panic!("{from} -> {to} parses"),
            Err(error) => {
                assert!(error.contains(expected), "{from} -> {to}: {error}");
                assert!(error.starts_with("house/service.toml, line "), "no place: {error}");
            }
        }
    }
}

#[test]
fn a_page_for_other_machines_needs_a_name() {
    let text = format!("{LEAST}[web]\nlisten = \"0.0.0.0:8443\"\n");
    let error = parse(&text).expect_err("no name");
    assert!(error.contains("has no names"), "{error}");
}

#[test]
fn one_key_is_one_peer_and_one_lineage_is_one_data_set() {
    let more = |table: &str| parse(&format!("{}\n{table}", whole())).expect_err("twice");
    let error = more("[peers.other]\nkey = \"tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11\"\n");
    assert!(error.contains("have one key"), "{error}");
    let error = more("[data.other]\npath = \"o\"\nlineage = \"admissions\"\nbudget = 1.0\n");
    assert!(error.contains("have one lineage"), "{error}");
}

/// Which rules differ, with a mark: `+` allows more, `-` less, `*` is about the machine.
fn turns(before: &str, after: &str) -> Vec<String> {
    let [before, after] = [before, after].map(|text| parse(text).expect("parses"));
    let mark = |one: super::RuleDifference| {
        let mark = match one.turn {
            super::RuleTurn::Looser => '+',
            super::RuleTurn::Tighter => '-',
            super::RuleTurn::Machine => '*',
        };
        format!("{mark}{} {}", one.rule, one.data.unwrap_or_default()).trim_end().to_owned()
    };
    super::differences(&before, &after).into_iter().map(mark).collect()
}

#[test]
fn what_is_not_plainly_tighter_is_looser() {
    for (from, to, expected) in [
        ("max_rho = 0.5", "max_rho = 0.4", "-policy.max_rho"),
        ("max_rho = 0.5", "max_rho = 0.6", "+policy.max_rho"),
        ("max_rho = 0.5", "", "-policy.max_rho"),
        ("separate_duties = false", "separate_duties = true", "-policy.separate_duties"),
        ("quiet_hours = [\"Mon-Fri 08:00-18:00 +01:00\"]", "", "+policy.quiet_hours"),
        ("separate_duties", "second_step = [\"operator\"]\n        separate_duties", "-policy.second_step"),
        ("separate_duties", "consent_by_token = true\n        separate_duties", "+policy.consent_by_token"),
        ("separate_duties", "notify = [\"/bin/true\"]\n        separate_duties", "*policy.notify"),
        ("delta = \"1e-6\"", "delta = \"1e-7\"", "-data.admissions.delta admissions"),
        ("delta = \"1e-6\"", "delta = \"1e-5\"", "+data.admissions.delta admissions"),
        ("delta = \"1e-6\"", "", "-data.admissions.delta admissions"),
        ("days = 90", "days = 91", "-data.admissions.period admissions"),
        ("days = 90, rho = 0.3", "days = 91, rho = 0.4", "+data.admissions.period admissions"),
        ("period = { days = 90, rho = 0.3 }", "", "+data.admissions.period admissions"),
        ("budget = 1.0", "budget = 1.0\n        least_rows = 2000", "-data.admissions.least_rows admissions"),
        ("budget = 1.0", "budget = 1.0\n        two_person = true", "-data.admissions.two_person admissions"),
        ("[\"child_id\"]", "[\"child_id\", \"name\"]", "+data.admissions.columns admissions"),
        ("[\"child_id\"]", "[\"name\"]", "+data.admissions.columns admissions"),
        ("[\"steward-1\"]", "[]", "-data.admissions.stewards admissions"),
        (
            "stewards = ",
            "servers = [\"registry\"]\n        stewards = ",
            "+data.admissions.servers admissions",
        ),
        ("path = \"admissions/\"", "path = \"others/\"", "+data.admissions.path admissions"),
        ("registry.example.org:7000", "registry.example.org:7001", "+peers.registry.address"),
        ("tacit1:3f9a", "tacit1:3f9b", "+peers.registry.key"),
        ("127.0.0.1:9443", "127.0.0.1:9444", "*web"),
    ] {
        assert_eq!(turns(&whole(), &whole().replacen(from, to, 1)), [expected], "{from} -> {to}");
    }
    assert_eq!(turns(&whole(), &whole()), Vec::<String>::new());
    let keep = format!("{}\n[keep]\nlog_days = 90\nfolder = \"kept\"\n", whole());
    assert_eq!(turns(&whole(), &keep), ["*keep.folder", "+keep.log_days"]);
    let data = format!("{}\n[data.more]\npath = \"more\"\nlineage = \"more\"\nbudget = 1.0\n", whole());
    assert_eq!(
        (turns(&whole(), &data), turns(&data, &whole())),
        (vec!["+data.more more".into()], vec!["-data.more more".into()])
    );
}

//! The example party files, merging with flags, and every complaint with its text.

use super::*;
use crate::StudyFile;
use crate::format::{DateForm, DecimalSign, TextEncoding, WallZone};
use clap::Parser as _;
use release::rational::{decimal, nano};

const REGISTRY: &str = include_str!("../../../../examples/party-registry.toml");
const HOSPITALS: &str = include_str!("../../../../examples/party-hospitals.toml");
const LIFT: &str = include_str!("../../../../examples/lift.toml");

fn error(from: &str, to: &str) -> String {
    assert!(REGISTRY.contains(from), "the example has {from:?}");
    PartySettings::parse("party.toml", &REGISTRY.replacen(from, to, 1)).expect_err("wrong now").to_string()
}

fn over(flags: PartySettings, text: &str) -> PartySettings {
    flags.over_text("party.toml", Path::new(""), text).expect("parses")
}

#[test]
fn the_examples_are_complete() {
    let registry =
        PartySettings::parse("party.toml", REGISTRY).expect("parses").complete().expect("complete");
    assert_eq!(registry.as_party, "registry");
    assert_eq!(registry.address, Address::Listen("0.0.0.0:7000".into()));
    assert_eq!((registry.memory, registry.deadline_ms), (1 << 30, 600_000));
    assert_eq!(nano(&registry.policy.budget), 1_000_000_000);
    let hospitals =
        PartySettings::parse("party.toml", HOSPITALS).expect("parses").complete().expect("complete");
    assert_eq!(hospitals.address, Address::Peer("registry.example.org:7000".into()));
    assert_eq!(hospitals.lineage().expect("it is there"), "hospital-admissions");
    for party in [registry, hospitals] {
        party
            .policy
            .admit(&StudyFile::parse("lift.toml", LIFT).expect("a study"), "registry")
            .expect("admitted");
    }
}

#[test]
fn flags_win_and_an_address_replaces_the_other() {
    let common = CommonSettings { peers: vec![(None, "other:1".into())], ..CommonSettings::default() };
    let flags = PartySettings { common, data: Some("new.csv".into()), ..PartySettings::default() };
    let party = over(flags, REGISTRY).complete().expect("complete");
    assert_eq!(party.address, Address::Peer("other:1".into()));
    assert_eq!(party.data, Path::new("new.csv"));
    assert_eq!(party.study, Path::new("lift.toml"));
}

#[test]
fn paths_are_relative_to_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("party.toml");
    std::fs::write(&path, REGISTRY).expect("written");
    let settings = PartySettings::read(&path).expect("read");
    assert_eq!(settings.data, Some(folder.path().join("registry.csv")));
    // Folders that are not there are no links.
    let of = |home: &str, text: &str| beside(home.as_ref(), text).display().to_string();
    assert_eq!(of("lift", "../mails.csv"), "mails.csv");
    assert_eq!(of("a/lift", "../../../x/*.csv"), "../x/*.csv");
    assert_eq!(
        [of("", "../a.csv"), of("..", "../a.csv"), of("lift", "..")],
        ["../a.csv", "../../a.csv", "."]
    );
    assert_eq!([of("a/lift", "b/../c.csv"), of("a", "/c.csv")], ["a/lift/b/../c.csv", "/c.csv"]);
    std::fs::create_dir(folder.path().join("there")).expect("made");
    std::os::unix::fs::symlink("there", folder.path().join("link")).expect("made");
    let home = |name: &str| beside(&folder.path().join(name), "../a.csv");
    assert_eq!(home("there"), folder.path().join("a.csv"));
    assert_eq!(home("link"), folder.path().join("link/../a.csv"));
}

#[test]
fn the_form_of_files_is_said_or_not() {
    let read = |lines: &str| over_text(&format!("[format]\n{lines}\n"));
    let format = read(
        "encoding = \"Latin-1\"\nseparator = \"\\t\"\ndecimal = \",\"\nzone = \"+01:00\"\nsheet = \"A b\"\n\
         dates = { seen = \"%d.%m.%Y\", paid = [\"%Y%m%d\", \"%d/%m/%y\"] }",
    )
    .expect("read")
    .format;
    assert_eq!((format.encoding, format.separator), (Some(TextEncoding::Windows1252), Some(b'\t')));
    assert_eq!((format.decimal, format.sheet.as_deref()), (Some(DecimalSign::Comma), Some("A b")));
    assert_eq!(format.zone, Some(WallZone::Offset(3_600)));
    let forms = |column| format.dates_of(column).iter().map(DateForm::to_string).collect::<Vec<_>>();
    assert_eq!([forms("seen"), forms("paid")], [vec!["%d.%m.%Y"], vec!["%Y%m%d", "%d/%m/%y"]]);
    assert!(forms("other").is_empty());
    let all = read("dates = \"spreadsheet\"").expect("read").format;
    assert_eq!(all.dates_of("any"), [DateForm::Spreadsheet]);
    for (lines, expected) in [
        (
            "separator = \"::\"",
            "line 2, column 13: format.separator is \"::\"; use \",\", \";\", \"|\" or \"tab\"",
        ),
        ("encoding = \"utf-7\"", "format.encoding is \"utf-7\"; use \"utf-8\", \"utf-16\", \"windows-1252\""),
        ("decimal = \";\"", "format.decimal is \";\"; use \".\" or \",\""),
        (
            "dates = \"dd.mm.yyyy\"",
            "format.dates is \"dd.mm.yyyy\"; a date has %Y (or %y), %m and %d: %d.%m.%Y",
        ),
        (
            "dates = [\"%d/%m/%Y\", \"%m/%d/%Y\"]",
            "a cell may fit both %d/%m/%Y and %m/%d/%Y and mean two things",
        ),
        ("dates = []", "no form of dates"),
        ("zone = \"CET\"", "format.zone is \"CET\"; write an offset from UTC (+01:00, -05:30, Z)"),
        ("seperator = \";\"", "did you mean \"separator\"?"),
    ] {
        let error = read(lines).expect_err("wrong").to_string();
        assert!(error.contains(expected), "{lines}: {error}");
    }
    // A table is no study's line `format`.
    assert!(is_party_file("as = \"a\"\nformat = { separator = \";\" }"));
    assert!(!is_party_file("format = \"tacit-study/1\"\nas = \"a\""));
    // Flags come one by one, and are checked together.
    let flags = |forms: &[&str]| {
        let words = forms.iter().flat_map(|form| ["--dates", form]);
        FormatFlags::try_parse_from(std::iter::once("x").chain(words)).expect("flags").format.gathered()
    };
    let format = flags(&["day=%d.%m.%Y", "day=%d.%m.%Y %H:%M", "spreadsheet"]).expect("they fit");
    assert_eq!((format.dates_of("day").len(), format.dates_of("x").len()), (2, 1));
    assert!(flags(&["%d/%m/%Y", "%m/%d/%Y"]).expect_err("they do not").contains("two things"));
}

#[derive(clap::Parser)]
struct FormatFlags {
    #[command(flatten)]
    format: InputFormat,
}

fn over_text(text: &str) -> Result<PartySettings, Error> {
    PartySettings::parse("party.toml", text)
}

#[test]
fn data_in_a_bucket_are_relative_to_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("party.toml");
    let text = |data: &str, store: &str| {
        let text = REGISTRY.replacen("data     = \"registry.csv\"", &format!("data     = \"{data}\""), 1);
        format!("{text}\n[store]\n{store}\n")
    };
    let read = |data: &str, store: &str| {
        std::fs::write(&path, text(data, store)).expect("written");
        PartySettings::read(&path)
    };
    let lines = "endpoint = \"http://127.0.0.1:9000\"\nregion = \"eu-central-1\"\nallow_http = true";
    let settings = read("s3://bucket/2026/*.parquet", lines).expect("read");
    let party = settings.clone().complete().expect("complete");
    assert_eq!(party.data, Path::new("s3://bucket/2026/*.parquet"));
    let options = StoreOptions {
        endpoint: Some("http://127.0.0.1:9000".into()),
        region: Some("eu-central-1".into()),
        account: None,
        allow_http: true,
    };
    assert_eq!(party.store, options);
    // Flags win, each by itself.
    let store = StoreSettings { region: Some("us-east-2".into()), ..StoreSettings::default() };
    let flags = PartySettings { store, data: Some("gs://bucket/a.csv".into()), ..PartySettings::default() };
    let party = over(flags, &text("s3://bucket/a.csv", lines)).complete().expect("complete");
    assert_eq!(party.data, Path::new("gs://bucket/a.csv"));
    assert_eq!(party.store, StoreOptions { region: Some("us-east-2".into()), ..options });
    for (data, store, expected) in [
        (
            "a.csv",
            "endpont = \"https://a.b\"",
            "in [store]; did you mean \"endpoint\"? known here: endpoint,",
        ),
        ("a.csv", "endpoint = \"a.b:9000\"", "store.endpoint is \"a.b:9000\"; write https://HOST:PORT"),
        (
            "a.csv",
            "endpoint = \"https://me:SECRET@a.b\"",
            "store.endpoint holds a name, a password or a query",
        ),
        ("a.csv", "allow_http = 1", "store.allow_http is 1; use true or false"),
        ("s3://KEY:SECRET@bucket/a.csv", "", "line 7, column 12: the s3:// URL of the data holds a name,"),
        ("az://box/a.csv?sig=SECRET", "", "the az:// URL of the data holds a name, a password or a query"),
        ("https://a.b/c.csv", "", "the https:// URL of the data is of no kind that is known here"),
    ] {
        let error = read(data, store).expect_err("wrong").to_string();
        assert!(error.contains(expected) && !error.contains("SECRET"), "{data} {store}: {error}");
    }
    let flags = PartySettings { data: Some("s3://SECRET@bucket/a".into()), ..PartySettings::default() };
    let error = over(flags, REGISTRY).complete().expect_err("wrong").to_string();
    assert!(error.contains("holds a name, a password") && !error.contains("SECRET"), "{error}");
}

#[test]
fn a_lineage_is_proposed_that_is_a_name() {
    for (data, proposed) in [
        ("patients.csv", "patients"),
        ("s3://bucket/2026/patients.parquet", "patients"),
        ("s3://bucket/patients/", "patients"),
        ("s3://bucket/2026/*.parquet", "registry"),
        ("patients.csv.gz", "registry"),
    ] {
        let flags = PartySettings { data: Some(data.into()), ..PartySettings::default() };
        let text = REGISTRY.replacen("lineage  =", "# lineage  =", 1);
        let error = over(flags, &text).complete().expect("complete").lineage().expect_err("none").to_string();
        assert!(error.contains(&format!("add lineage = \"{proposed}\" to")), "{data}: {error}");
    }
}

#[test]
fn periods_and_rates_are_read() {
    let text = |lines: &str| {
        let (head, policy) = REGISTRY.split_once("[policy]").expect("the example has a policy");
        format!("{head}[policy]\n{lines}\n{policy}")
    };
    let with = |lines: &str| PartySettings::parse("party.toml", &text(lines));
    let party = with("period = \"90d\"\nperiod_budget = 0.3\nruns = \"20/day\"").expect("parses");
    let policy = party.complete().expect("complete").policy;
    let period = policy.period().expect("a period");
    assert_eq!((period.seconds, &*period.words()), (90 * 86_400, "0.3 in 90 days"));
    assert_eq!(policy.runs.map(|rate| (rate.runs, rate.seconds)), Some((20, 86_400)));
    for (lines, expected) in [
        ("period = \"90d\"", "period and period_budget belong together"),
        ("period_budget = 0.3", "period and period_budget belong together"),
        (
            "period = \"3 months\"\nperiod_budget = 0.3",
            "policy.period is \"3 months\"; write a whole number with d or w",
        ),
        ("period = \"0d\"\nperiod_budget = 0.3", "from 1d to 3650d"),
        (
            "runs = \"20\"",
            "policy.runs is \"20\"; write a whole number from 1, a stroke, and hour, day or week",
        ),
    ] {
        let error = with(lines).expect_err("wrong").to_string();
        assert!(error.contains(expected), "{lines}: {error}");
    }
    // A flag for one of them is no bound by itself, and replaces that of the file.
    let flags = PartySettings { period_seconds: Some(86_400), ..PartySettings::default() };
    assert!(over(flags.clone(), REGISTRY).complete().is_err());
    let party = over(flags, &text("period = \"90d\"\nperiod_budget = 0.3")).complete();
    assert_eq!(party.expect("complete").policy.period.map(|(seconds, _)| seconds), Some(86_400));
}

#[test]
fn mistakes_are_placed() {
    assert_eq!(
        error("identity =", "identitiy ="),
        "party.toml, line 6, column 1: unknown key \"identitiy\" in the file; did you mean \"identity\"? \
         known here: study, as, identity, data, listen, allow, peer, peers, memory, ledger, report, \
         deadline, lineage, work, state, state_key, spool, keep_state, keep_spine, spine, salt, studies, \
         trigger, transport, trusted_network, device, store, format, workers, policy"
    );
    assert_eq!(
        error("memory   = \"1G\"", "memory   = \"1GB\""),
        "party.toml, line 9, column 12: memory is \"1GB\"; write a whole number with M, G or T, at least \
         64M: 1G"
    );
    let cases = [
        ("deadline = \"10m\"", "deadline = \"0s\"", "from 1s to 24h"),
        ("listen   = \"0.0.0.0:7000\"", "listen   = \"7000\"", "listen is \"7000\"; write host:port"),
        ("listen   = ", "peer = \"a:1\"\nlisten   = ", "both listen and peer are set"),
        ("# studies   = [\"64 hex digits\"]", "studies = [\"7c4109aa5be2\"]", "write all 64 hex digits"),
        ("listen ", "allow = [\"10.0.0.0/8\", \"10.1.0.0/8\"]\nlisten ", "the network is 10.0.0.0/8"),
        ("listen ", "allow = []\nlisten ", "line 8, column 9: allow is empty, and nobody could come"),
        ("kinds       = [\"lift\"]", "kinds = [\"market\"]", "not available in this version"),
        ("max_rho     = 0.5", "max_rho = 0", "use a decimal above 0"),
        ("max_cells   = 20", "max_cells = 0", "use a whole number from 1 to 1000000"),
        ("allow_exact = false", "allow_exact = \"no\"", "use true or false"),
        ("as       = \"registry\"", "as = \"Registry\"", "a name has 1 to 64 lower-case letters"),
    ];
    for (from, to, text) in cases {
        let text_of = error(from, to);
        assert!(text_of.contains(text), "{to}: {text_of}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let common = CommonSettings { listen: Some("a:1".into()), ..CommonSettings::default() };
    let missing = PartySettings { common, ..PartySettings::default() };
    assert_eq!(
        missing.complete().expect_err("missing").to_string(),
        "no as: add as = \"...\" to the party file, or --as to the command"
    );
    assert_eq!(
        PartySettings::default().complete().expect_err("missing").to_string(),
        "neither listen nor peer is set; set one of them"
    );
}

#[test]
fn the_policy_refuses_what_its_owner_did_not_allow() {
    let study = StudyFile::parse("lift.toml", LIFT).expect("a study");
    let refused = |policy: PartyPolicy| policy.admit(&study, "nobody").expect_err("refused").to_string();
    let base = PartyPolicy::default();
    base.admit(&study, "nobody").expect("the default admits it");
    PartyPolicy { studies: Some(vec![study.hash()]), ..base.clone() }
        .admit(&study, "nobody")
        .expect("listed");
    assert!(refused(PartyPolicy { studies: Some(Vec::new()), ..base.clone() }).contains("add its hash \""));
    assert!(refused(PartyPolicy { kinds: vec!["program".into()], ..base.clone() }).contains("kind \"lift\""));
    assert_eq!(
        refused(PartyPolicy { max_rho: decimal("0.099999999").expect("a decimal"), ..base.clone() }),
        "the study spends rho 0.1 on what everybody sees ([release.public]); this party's policy.max_rho is \
         0.099999999 (the default; a line max_rho under [policy] of the party file says otherwise)"
    );
    let broken = LIFT.replace("# breakdown ", "breakdown ");
    let study = StudyFile::parse("lift.toml", &broken).expect("a study");
    let error =
        PartyPolicy { max_cells: 4, ..base }.admit(&study, "nobody").expect_err("refused").to_string();
    assert_eq!(error, "the study has 5 cells; this party's policy.max_cells is 4");
}

#[test]
fn several_addresses_are_read_and_merged() {
    let north = include_str!("../../../../examples/party-north.toml");
    let peers = [("east", "other:1"), ("west", "third:2")];
    let peers = peers.map(|(name, at)| (Some(name.to_owned()), at.to_owned())).into();
    let common = CommonSettings { peers, ..CommonSettings::default() };
    let flags = PartySettings { common, ..PartySettings::default() };
    let party = over(flags, north).complete().expect("complete");
    let Address::Peers { listen, peers } = party.address else { panic!("several peers") };
    assert_eq!(listen.as_deref(), Some("0.0.0.0:7000"));
    assert_eq!((&*peers["east"], &*peers["west"]), ("other:1", "third:2"));
    let both = format!("peer = \"a:1\"\n{north}");
    let error = PartySettings::parse("party.toml", &both).expect_err("two forms").to_string();
    assert!(error.contains("both listen and peer are set"), "{error}");
    let both = both.replace("listen   =", "# listen =");
    let error = PartySettings::parse("party.toml", &both).expect_err("two forms").to_string();
    assert!(error.ends_with("both peer and [peers] are set; write all addresses under [peers]"), "{error}");
    let paper = include_str!("../../../../examples/party-paper.toml");
    let paper = PartySettings::parse("party.toml", paper).expect("parses").complete().expect("complete");
    assert!(matches!(paper.address, Address::Listen(address) if address == "0.0.0.0:7000"));
}

/// Whatever the files say, of every two parties exactly one dials.
#[test]
fn every_pair_has_one_that_dials() {
    let roster = Roster::new(["a", "b", "c"]);
    let everybody = |me: &str| {
        // One list for everybody: the own name in it does no harm.
        let peers = ["a", "b", "c"].map(|name| (name.to_owned(), format!("{name}:1"))).into();
        Address::Peers { listen: Some(format!("{me}:1")), peers }
    };
    let dials = |address: &Address, me: u8| -> Vec<u8> {
        let places = address.places(PartyId(me), &roster).expect("addresses");
        places.dial.keys().map(|p| p.0).collect()
    };
    assert_eq!(dials(&everybody("a"), 0), [0u8; 0]);
    assert_eq!(dials(&everybody("b"), 1), [0]);
    assert_eq!(dials(&everybody("c"), 2), [0, 1]);
    assert_eq!(dials(&Address::Listen("a:1".into()), 0), [0u8; 0]);
    let last = Address::Peers { listen: None, peers: [("a".to_owned(), "a:1".to_owned())].into() };
    let error = last.places(PartyId(1), &roster).expect_err("c comes to b").to_string();
    assert!(error.starts_with("c comes to this party: add listen = "), "{error}");
    let both = [("a".to_owned(), "a:1".to_owned()), ("c".to_owned(), "c:1".to_owned())].into();
    let deaf = Address::Peers { listen: None, peers: both };
    deaf.places(PartyId(1), &roster).expect_err("c dials b, whatever b knows");
    let pair = Roster::new(["a", "b"]);
    for (me, other) in [(0, 1), (1, 0)] {
        let at = |address: Address| address.places(PartyId(me), &pair).expect("an address");
        assert_eq!(at(Address::Peer("x:1".into())).dial, [(PartyId(other), "x:1".to_owned())].into());
        assert!(at(Address::Listen("x:1".into())).dial.is_empty());
    }
}

#[test]
fn work_and_spine_are_paths_and_delta_is_a_power_of_ten() {
    let read = |text: &str| PartySettings::parse("party.toml", text);
    let text = "work = \"w\"\nkeep_spine = \"s\"\n[policy]\ndelta = \"1e-8\"";
    let file = read(text).unwrap();
    assert_eq!((file.work.as_deref(), file.delta_places), (Some(Path::new("w")), Some(8)));
    // One of the two spines replaces the other.
    let flags = PartySettings { spine: Some("t".into()), ..PartySettings::default() };
    let both = over(flags, text);
    assert_eq!((both.keep_spine, both.spine.as_deref()), (None, Some(Path::new("t"))));
    let error = read("[policy]\ndelta = 0.1").unwrap_err().to_string();
    assert!(error.contains("policy.delta is 0.1; use a power of ten from \"1e-15\" to \"1e-3\""), "{error}");
}

#[test]
fn networks_are_read_up_to_their_limit() {
    let with = |list: String| {
        PartySettings::parse(
            "party.toml",
            &REGISTRY.replacen("listen ", &format!("allow = {list}\nlisten "), 1),
        )
    };
    let many =
        |count: usize| format!("{:?}", (0..count).map(|i| format!("10.0.{i}.0/24")).collect::<Vec<_>>());
    let settings = with(many(limits::NETWORKS)).expect("at the limit");
    assert_eq!(settings.complete().expect("complete").allow.len(), limits::NETWORKS);
    let error = with(many(limits::NETWORKS + 1)).expect_err("beyond").to_string();
    assert!(error.contains("allow has 65 networks, and at most 64"), "{error}");
    let error = with("[\"10.0.0.0/8\", \"ten\"]".into()).expect_err("no network").to_string();
    assert!(error.starts_with("party.toml, line ") && error.contains("column 24: "), "{error}");
    assert!(error.contains("is \"ten\"; write a network like 10.0.0.0/8"), "{error}");
}

#[test]
fn workers_are_counted_and_have_a_host_where_they_are_exposed() {
    let with = |lines: &str| PartySettings::parse("party.toml", &format!("{REGISTRY}\n[workers]\n{lines}"));
    let settings = with("count = 8\nexpose = \"direct\"\nhost = \"10.0.0.7\"").unwrap();
    let workers = settings.complete().unwrap().workers;
    assert_eq!((workers.count, workers.host.as_deref()), (Some(8), Some("10.0.0.7")));
    assert_eq!(with("expose = \"port\"").unwrap().complete().unwrap().workers, WorkerSetup::default());
    // A flag wins.
    let flags = PartySettings {
        workers: WorkerSettings { count: Some(2), ..WorkerSettings::default() },
        ..PartySettings::default()
    };
    let both = over(flags, &format!("{REGISTRY}\n[workers]\ncount = 8"));
    assert_eq!(both.complete().unwrap().workers.count, Some(2));
    for (lines, said) in [
        ("count = 0", "workers.count is 0"),
        ("count = 257", "workers.count is 257"),
        ("expose = \"door\"", "use \"port\", \"direct\" or \"gate\""),
        ("gate = \"g\"", "host:port"),
        ("gate_key = \"tacit1:12\"", "32 digits must follow"),
    ] {
        let error = with(lines).unwrap_err().to_string();
        assert!(error.contains(said) && error.starts_with("party.toml, line "), "{error}");
    }
    let missing = |lines| with(lines).unwrap().complete().unwrap_err().to_string();
    assert!(missing("expose = \"direct\"").contains("add host = \"...\" under [workers]"));
    assert!(missing("host = \"a\"").contains("a worker host is for expose = \"direct\""));
}

#[test]
fn a_gate_has_an_address_and_a_key_and_stands_before_a_party_that_listens() {
    let party = |party: &str, lines: &str| {
        let text = format!("{party}\n[workers]\n{lines}");
        PartySettings::parse("party.toml", &text).unwrap().complete()
    };
    let key = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11";
    let lines = format!("expose = \"gate\"\ngate = \"gate.internal:7002\"\ngate_key = \"{key}\"");
    let listens = REGISTRY.lines().any(|line| line.starts_with("listen"));
    let (listening, dialling) = match listens {
        true => (REGISTRY.to_owned(), REGISTRY.replace("listen", "peer")),
        false => (REGISTRY.replace("peer", "listen"), REGISTRY.to_owned()),
    };
    let gate = party(&listening, &lines).unwrap().workers.gate.unwrap();
    assert_eq!((gate.address.as_str(), gate.host), ("gate.internal:7002", None));
    assert_eq!(gate.key.to_string(), key);
    let hosted = party(&listening, &format!("{lines}\nhost = \"10.0.0.7\"")).unwrap().workers;
    assert_eq!((hosted.host, hosted.gate.unwrap().host.as_deref()), (None, Some("10.0.0.7")));
    let refused = |text: &str, lines: &str| party(text, lines).unwrap_err().to_string();
    assert!(refused(&dialling, &lines).contains("is for the party that listens"));
    assert!(refused(&listening, "expose = \"gate\"").contains("the key that it prints"));
    assert!(refused(&listening, "gate = \"g:1\"").contains("a gate is for expose = \"gate\""));
}

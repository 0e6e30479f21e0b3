//! Files that people write: studies, party files, programs, circuits, and the words in them.

use crate::{Target, disk, text};
use base::days_of_date;
use circuits::files::{self, values};
use job::engines::StudyEngine;
use program::{Program, VerifierPolicy};
use release::rational::{decimal, nano, ratio, shown, to_f64};
use std::ffi::OsString;
use study::party::{PartySettings, parse_address, parse_deadline, parse_memory};
use study::prices::PriceList;
use study::time::{Clock, Unit, date_of_days};
use study::{Study, StudyFile, StudyHash, first_difference};

#[path = "../../cli/src/circuit/config.rs"]
#[expect(dead_code, reason = "the command has no library: its decoder is compiled here once more")]
mod config;

const STUDIES: [&str; 12] = [
    include_str!("../../../examples/aligned.toml"),
    include_str!("../../../examples/generated.toml"),
    include_str!("../../../examples/lift-identifiers.toml"),
    include_str!("../../../examples/lift-ps3i.toml"),
    include_str!("../../../examples/lift-ring4.toml"),
    include_str!("../../../examples/lift-several.toml"),
    include_str!("../../../examples/lift.toml"),
    include_str!("../../../examples/market-car.toml"),
    include_str!("../../../examples/market-cloud.toml"),
    include_str!("../../../examples/market-p2p.toml"),
    include_str!("../../../examples/match.toml"),
    include_str!("../../../examples/program.toml"),
];

/// Of one party alone, a list of prices among them.
const PARTIES: [&str; 6] = [
    include_str!("../../../docs/prices-2026.toml"),
    include_str!("../../../examples/party-hospitals.toml"),
    include_str!("../../../examples/party-north.toml"),
    include_str!("../../../examples/party-paper.toml"),
    include_str!("../../../examples/party-registry.toml"),
    include_str!("../../../examples/party-server.toml"),
];

const CIRCUITS: [&str; 4] = [
    include_str!("../../../examples/circuits/add64.gmw"),
    include_str!("../../../examples/circuits/add64.txt"),
    include_str!("../../../examples/circuits/majority.gmw"),
    include_str!("../../../examples/circuits/majority.txt"),
];

pub(crate) const TARGETS: &[Target] = &[
    Target::new("study", study, || owned(&STUDIES)).least(1_000_000),
    Target::new("party", party, || owned(&PARTIES)).least(1_000_000),
    Target::new("program", program, programs).least(1_000_000),
    Target::new("circuit", circuit, || owned(&CIRCUITS)).least(1_000_000),
    Target::new("circuit-values", circuit_values, || owned(&["1 0x2f 0b11\n7 8", "_ 0x", "12\n"])),
    Target::new("circuit-config", circuit_config, configs),
    Target::new("words", words, word_seeds),
    Target::new("osprey-settings", settings, || owned(&["OSPREY_MODE=off\nOSPREY_CHUNK=65536"])),
];

fn owned(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn study(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(file) = StudyFile::parse("study.toml", text) else { return };
    // What a party does with a study before it looks at data.
    let full = file.hash().full();
    assert_eq!(StudyHash::parse(&full).map(|hash| hash.full()), Some(full));
    let _ = file.first().matching_hash();
    let _ = file.first().refuse_clear();
    let policy = VerifierPolicy { allow_exact: true, max_rho: ratio(100, 1), ..VerifierPolicy::default() };
    for run in &file.runs {
        if let Ok(built) = job::prepare::build(run, &policy) {
            let _ = StudyEngine::of(run, &built.program);
        }
    }
    assert!(first_difference(text, text).is_none(), "a study differs from itself");
}

fn party(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = PriceList::parse("prices.toml", text);
    let Ok(settings) = PartySettings::parse("party.toml", text) else { return };
    let _ = settings.clone().complete_node();
    let _ = settings.complete();
}

fn programs() -> Vec<Vec<u8>> {
    let of_studies = STUDIES.iter().filter_map(|study| {
        let (_, rest) = study.split_once("text = \"\"\"\n")?;
        Some(rest.split_once("\"\"\"")?.0.as_bytes().to_vec())
    });
    let of_suite = engine::conformance::suite(1).into_iter().filter(|case| case.rows == 2).step_by(8);
    let suite = of_suite.map(|case| case.program.to_text().into_bytes());
    let lifts = STUDIES.iter().filter_map(|text| {
        let study = Study::parse("s", text).ok()?;
        let built = job::prepare::build(&study, &VerifierPolicy::default()).ok()?;
        Some(built.program.to_text().into_bytes())
    });
    of_studies.chain(suite).chain(lifts).filter(|text| text.len() < 1 << 14).collect()
}

fn program(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(program) = Program::parse(text) else { return };
    let again = Program::parse(&program.to_text()).expect("what is written is read");
    assert_eq!(again.hash(), program.hash(), "the text form keeps the program");
    let _ = program::verify(&program, &VerifierPolicy::default(), 1000);
    let _ = program::verify(&program, &VerifierPolicy { allow_exact: true, ..VerifierPolicy::default() }, 0);
}

fn circuit(data: &[u8]) {
    let Ok((wired, _)) = files::read(data, "circuit") else { return };
    // Small files may say large circuits; what follows the reader is not the decoder.
    if wired.check().is_err() || wired.and_gates() + wired.xor_gates() > 1 << 12 {
        return;
    }
    let _ = (wired.depth(), wired.layers());
    for format in [files::NetlistFormat::Bristol, files::NetlistFormat::Gmw] {
        let mut written = Vec::new();
        if files::write(&wired, format, &mut written).is_ok() {
            files::read(&written[..], "written").expect("what is written is read");
        }
    }
}

fn circuit_values(data: &[u8]) {
    if let Ok(items) = values::read(data, "values", &[1, 8, 64, 200]) {
        let again: Vec<String> = items.iter().map(|bits| values::format(bits)).collect();
        let again = values::read(again.join(" ").as_bytes(), "values", &[1, 8, 64, 200]);
        assert_eq!(again.ok(), Some(items), "values are read as they are written");
    }
}

fn configs() -> Vec<Vec<u8>> {
    owned(&[
        include_str!("../../../examples/circuits/majority-1.conf"),
        include_str!("../../../examples/circuits/majority-2.conf"),
        include_str!("../../../examples/circuits/majority-3.conf"),
        "n 2\np 1\nk 1 tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11\ns own.key\nt 5\ni in # a comment\nc \
         circuit\n",
    ])
}

fn circuit_config(data: &[u8]) {
    let _ = config::Config::read(&disk::file("run.conf", data));
}

/// Small values that stand in files and on command lines.
fn words(data: &[u8]) {
    let Some((which, rest)) = data.split_first() else { return };
    let Some(text) = text(rest) else { return };
    match which % 12 {
        0 => {
            if let Ok(key) = text.parse::<net::KeyFingerprint>() {
                assert_eq!(key.to_string(), text, "a key has one form");
            }
        }
        3 => _ = decimal(text).map(|d| (nano(&d), shown(&d), to_f64(&d))),
        4 => _ = StudyHash::parse(text),
        5 => _ = (parse_address(text), parse_memory(text), parse_deadline(text)),
        6 => _ = study::transport::ServerTransport::parse(text),
        7 => _ = program::ValueType::parse(text),
        8 => {
            let clocks = [(0, Unit::Second), (-498_700_800, Unit::Day), (i64::MAX / 4, Unit::Minute)];
            for (origin, unit) in clocks {
                let Ok(clock) = Clock::new(origin, unit, u32::MAX - 1) else { continue };
                let _ = clock.parse(text).map(|count| clock.show(count)).map_err(|e| e.to_string());
            }
        }
        9 => {
            if let Some(days) = days_of_date(text) {
                assert_eq!(date_of_days(days), text, "a date has one form");
            }
        }
        10 => _ = text.parse::<ot::OtKind>(),
        _ => _ = (study::parse_delta(text), text.parse::<program::lower::combine::SelectionCircuit>()),
    }
}

fn word_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11",
        "0.125",
        "1/10",
        "12.5",
        "0011223344556677889900112233445566778899001122334455667788990011",
        "host:7000",
        "libfabric:tcp",
        "i37",
        "1954-05-01T10:00:00+02:00",
        "2024-02-29",
        "softspoken-4",
        "1e-9",
    ];
    let of = |(which, text): (usize, &&str)| [&[which as u8], text.as_bytes()].concat();
    texts.iter().enumerate().map(of).collect()
}

/// Lines `NAME=VALUE` stand for an environment.
fn settings(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let find = |name: &'static str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(OsString::from(value))
    };
    let _ = osprey::ProcessSettings::read(find);
}

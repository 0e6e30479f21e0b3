//! `tacit demo market`: a customer finds the fastest of the peers that have what it wants; five providers
//! know how fast their own peers are. Six processes.

use super::DemoArgs;
use super::files::Folder;
use super::{follow, story};
use base::free_address;
use base::{Error, PartyId};
use net::KeyFingerprint;
use page::lines::fitted;
use page::numbers::{bytes, count, duration};
use program::lower::combine::SelectionCircuit;
use report::{ResultView, RunReport};
use serde::Serialize;
use studies::market::{CUSTOMER, MarketAnswer, MarketSample, Problem, program};
use terminal::progress::Working;
use terminal::{output, width};

/// The parties, in the order of their names.
pub const PARTIES: [&str; 6] = ["customer", "isp-1", "isp-2", "isp-3", "isp-4", "isp-5"];
/// The study, but for the keys.
const STUDY: &str = include_str!("../../../../examples/market-p2p.toml");
const PROBLEM: Problem = Problem::P2p;
const PEERS: u64 = 1_000;
/// Everything is a function of it.
const SEED: u64 = 2011;
/// Lines of a file that are shown.
const SHOWN: usize = 4;

/// The JSON of `tacit demo market --json`.
#[derive(Debug, Serialize)]
struct Summary {
    /// What the customer learned; absent: no match.
    found: Option<Found>,
    truth: Option<Found>,
    correct: bool,
    resources: u64,
    parties: usize,
    engine: String,
    and_gates: u64,
    seconds: f64,
    /// Application bytes sent by all parties before TLS.
    bytes: u64,
    study: String,
    /// Its hash in full.
    full_hash: String,
}

/// A peer and its bandwidth.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Found {
    key: String,
    bandwidth: u64,
}

/// Runs the demo.
///
/// # Errors
/// When the folder is not a demo's, a party fails, or the answer is wrong.
pub fn run(args: &DemoArgs) -> Result<(), Error> {
    let folder = Folder::claim(&args.out, &PARTIES)?;
    let working = Working::on(format!("making data, keys and study in {}", args.out.display()));
    let sample = MarketSample::new(PROBLEM, program(PROBLEM, PARTIES, SelectionCircuit::Small), PEERS, SEED);
    let study = folder.agree(STUDY)?;
    fill(&folder, &sample)?;
    drop(working);
    let tell = |text: &str| if args.json { Ok(()) } else { output::print(text) };
    tell(&opening(&sample, &study)?)?;
    let reports = follow(&folder, &PARTIES, args.json)?;
    let truth = match sample.truth()? {
        MarketAnswer::Best(Some((row, score))) => {
            Some(Found { key: sample.key(row), bandwidth: score as u64 })
        }
        _ => None,
    };
    let summary = summary(&reports, truth)?;
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&closing(&summary, &reports, &folder))?;
    }
    if summary.correct {
        return Ok(());
    }
    Err(Error::misuse("the answer is wrong; this must not happen, please report it"))
}

/// Data and settings of every party.
fn fill(folder: &Folder, sample: &MarketSample) -> Result<(), Error> {
    let addresses = PARTIES.iter().map(|_| free_address()).collect::<Result<Vec<_>, Error>>()?;
    for (index, party) in PARTIES.iter().enumerate() {
        let data = sample.csv(PartyId(index as u8));
        output::write_file(&folder.file(&format!("{party}.csv")), data.as_bytes())?;
        output::write_file(&folder.party_file(party), party_text(index, &addresses).as_bytes())?;
    }
    Ok(())
}

fn party_text(index: usize, addresses: &[String]) -> String {
    let party = PARTIES[index];
    let mut text = format!(
        "# The settings of {party} in the demo; see docs/cli.md. Rerun it: tacit run, once for each party.\n\
         study    = \"study.toml\"\nas       = \"{party}\"\nidentity = \"{party}.key\"\ndata     = \
         \"{party}.csv\"\n\
         ledger   = \"{party}.ledger\"\nreport   = \"{party}\"\ndeadline = \"2m\"\n"
    );
    if index + 1 < PARTIES.len() {
        text += &format!("listen   = \"{}\"\n", addresses[index]);
    }
    if index > 0 {
        text += "\n[peers]\n";
        for (peer, address) in PARTIES.iter().zip(addresses).take(index) {
            text += &format!("{peer} = \"{address}\"\n");
        }
    }
    text + "\n[policy]\nkinds       = [\"program\"]\nallow_exact = true\n"
}

/// Who takes part and what each gives.
fn opening(sample: &MarketSample, study: &study::Study) -> Result<String, Error> {
    let mut lines = vec![
        format!(
            "Tacit demo: which of {} peers that have a film is the fastest? (Choi et al. 2012, section 3.1)",
            count(PEERS)
        ),
        "A customer and five providers, six processes, mutually authenticated TLS 1.3.".to_owned(),
        String::new(),
    ];
    for member in &study.parties {
        let key: KeyFingerprint = member.key.parse()?;
        let what =
            if member.name == PARTIES[0] { "which peers have the film" } else { "bandwidths of its peers" };
        lines.push(format!("  {:10} {what:28} key {}", member.name, key.short()));
    }
    lines.push(String::new());
    let shown = [CUSTOMER, PartyId(1), PartyId(2)];
    lines.push(
        shown.map(|p| format!("  {:24}", format!("{}.csv", PARTIES[p.index()]))).concat().trim_end().into(),
    );
    let files = shown.map(|p| sample.csv(p));
    for at in 0..=SHOWN {
        let line = files.each_ref().map(|text| format!("  {:24}", text.lines().nth(at).unwrap_or_default()));
        lines.push(line.concat().trim_end().to_owned());
    }
    lines.push("  ...   (0: not a peer of this provider)\n".to_owned());
    Ok(lines.join("\n"))
}

fn summary(reports: &[RunReport], truth: Option<Found>) -> Result<Summary, Error> {
    let customer = reports.first().ok_or_else(|| Error::misuse("a demo has parties"))?;
    let ResultView::Program { outputs, .. } = &customer.view else {
        return Err(Error::misuse("the demo is a program study"));
    };
    let [row, bandwidth, matched] = &outputs[..] else {
        return Err(Error::misuse("the customer sees three values"));
    };
    let found = match (&*matched.value, &row.key, bandwidth.value.parse()) {
        ("1", Some(key), Ok(bandwidth)) => Some(Found { key: key.clone(), bandwidth }),
        _ => None,
    };
    let silent = |r: &RunReport| match &r.view {
        ResultView::Program { .. } => r.view.is_empty(),
        ResultView::Lift(_) => false,
    };
    Ok(Summary {
        correct: found == truth && reports[1..].iter().all(silent),
        found,
        truth,
        resources: PEERS,
        parties: reports.len(),
        engine: customer.engine.clone(),
        and_gates: customer.stages.iter().map(|s| s.price.and_gates).sum(),
        seconds: reports.iter().map(|r| r.seconds).fold(0.0, f64::max),
        bytes: customer.stages.iter().flat_map(|s| s.price.sent.iter()).sum(),
        study: customer.study.hash.clone(),
        full_hash: customer.study.full_hash.clone(),
    })
}

/// What the customer learned, beside the truth, and what nobody did.
fn closing(summary: &Summary, reports: &[RunReport], folder: &Folder) -> String {
    let word = |found: &Option<Found>| match found {
        Some(found) => format!("{} at {}", found.key, count(found.bandwidth)),
        None => "no peer has it".to_owned(),
    };
    let held = reports.iter().flat_map(|r| &r.stages).all(|s| s.price_held);
    let text = format!(
        "  customer learned   {}\n  the truth          {}   {}\n\n  Nobody else learned anything: not which \
         peers have the film, which one was found, or whether any was.\n  The customer learned no other \
         bandwidth. Any of them together know what they entered and the answer, no more.\n\n  {} AND gates \
         by {}, {} between all parties{}, {}\n  Reports: {} (and .json), of the others beside it.",
        word(&summary.found),
        word(&summary.truth),
        if summary.correct { "OK" } else { "NOT OK" },
        count(summary.and_gates),
        summary.engine,
        bytes(summary.bytes),
        if held { ", as priced to the byte" } else { "" },
        duration(summary.seconds),
        folder.report(PARTIES[0]).join("report.html").display()
    );
    let next = story::next(&["docs/studies/market.md", "tacit bench market --resources 5000 --parties 3"]);
    format!("{}\n{next}", fitted(&text, Some(width::columns()), 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn party_files_parse_and_name_everybody_before() {
        let addresses: Vec<String> = (0..PARTIES.len()).map(|i| format!("127.0.0.1:{}", 7000 + i)).collect();
        for index in 0..PARTIES.len() {
            let text = party_text(index, &addresses);
            let settings = study::party::PartySettings::parse("party.toml", &text).unwrap();
            assert_eq!(settings.common.peers.len(), index);
            assert!(settings.complete().is_ok());
        }
    }

    #[test]
    fn the_study_is_the_one_of_this_problem() {
        let study = study::Study::parse("study.toml", STUDY).unwrap();
        assert!(study.parties.iter().map(|m| &*m.name).eq(PARTIES));
        let study::Question::Program(own) = &study.kind else { panic!("a program") };
        assert_eq!(own.source.text, studies::market::study_program(PROBLEM, PARTIES).to_text());
    }
}

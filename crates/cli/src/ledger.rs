//! `tacit ledger`: what was spent, and releases that broke off.

mod args;
mod audited;

pub use args::LedgerArgs;

use args::LedgerAction;
use base::Error;
use page::numbers::{counted, power};
use privacy::ledger::{
    AnswerRow, BarRecord, EntryRow, Export, JointSpending, Ledger, SignedDebits, Statement, check_budgets,
    check_signatures, quoted,
};
use release::rational::{Rational, shown};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use study::StudyFile;
use study::party::PartySettings;
use study::time::date;
use terminal::output;

/// Does what is asked of a ledger.
///
/// # Errors
/// When there is no ledger, it was changed, or there is nothing to do.
pub fn run(args: &LedgerArgs) -> Result<(), Error> {
    match &args.action {
        LedgerAction::Show { ledger, party } => show(ledger, party.as_deref(), args.json),
        LedgerAction::Allow { ledger, peer, lineage, reason } => {
            allow(ledger, (peer, lineage.as_deref(), reason), args.json)
        }
        LedgerAction::Verify { ledger, service: None, peer: None, signer: None }
            if !trail::is_trail(ledger) =>
        {
            verify(ledger, args.json)
        }
        LedgerAction::Verify { ledger, service, peer, signer } => {
            audited::verify(ledger, service.as_deref(), (peer.as_deref(), *signer), args.json)
        }
        LedgerAction::Export { ledger, out: Some(out), identity: Some(identity), service, study, .. } => {
            let scope = (service.as_deref(), study.as_deref());
            audited::export(ledger, identity, scope, out, args.json)
        }
        LedgerAction::Export { ledger, csv: false, .. } => output::print_json(&open(ledger)?.export()?),
        LedgerAction::Export { ledger, csv: true, .. } => {
            output::print(open(ledger)?.export()?.csv().trim_end())
        }
        LedgerAction::Backup { ledger, file } => {
            open(ledger)?.backup(file)?;
            let file = file.display().to_string();
            match args.json {
                true => output::print_json(&json!({ "backup": file })),
                false => {
                    output::print(&format!("{file} is a copy of the ledger. Keep it as you keep a key."))
                }
            }
        }
        LedgerAction::Recover { ledger, lineage, spent } => {
            recover(ledger, lineage.as_deref(), spent.as_ref(), args.json)
        }
    }
}

fn allow(
    path: &Path,
    (peer, lineage, reason): (&str, Option<&str>, &str),
    as_json: bool,
) -> Result<(), Error> {
    let mut ledger = open(path)?;
    let peer = ledger.peer_by(peer)?;
    let lifted = ledger.allow(&peer, lineage, reason)?;
    if as_json {
        return output::print_json(&json!({ "allowed": peer, "lineage": lineage, "lifted": lifted }));
    }
    let on = lineage.map_or_else(|| "all lineages".to_owned(), |lineage| format!("lineage {lineage}"));
    output::print(&format!(
        "Releases with {peer} on {on} may begin again. What is run again has new noise and is charged again; \
         what breaks off later bars again. Lifted:\n  {}",
        lifted.join("\n  ")
    ))
}

/// Whether a file is JSON, and no database: an exported ledger.
fn is_export(path: &Path) -> bool {
    let mut first = [0; 1];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut first));
    read.is_ok_and(|length| length == 1 && first[0] == b'{')
}

fn verify_export(path: &Path, as_json: bool) -> Result<(), Error> {
    let checked = Export::read(path)?.verify()?;
    if as_json {
        return output::print_json(&json!({ "export": path.display().to_string(), "checked": checked }));
    }
    output::print(&format!(
        "Every signature in the export holds, and says what its debit says. {}\n{}, {}. That nothing was \
         left out, and what is in no signature, the ledger itself and its peers can tell alone.",
        signed_by(&checked.signed),
        counted(checked.debits as u64, "debit"),
        match checked.successions {
            1 => "1 key that took the place of another".to_owned(),
            keys => format!("{} that took the place of others", counted(keys as u64, "key")),
        }
    ))
}

/// How many debits all parties signed, and what it means where they did not.
fn signed_by(signed: &SignedDebits) -> String {
    let why = [
        (signed.sizes, "for the sizes of a match, which each party charges by itself: nothing to do"),
        (
            signed.recovered,
            "taken over by `tacit ledger recover` from what a peer gave back, which nobody signs: \
             nothing to do",
        ),
        (signed.given_back, "given back, since nobody can have seen what it was for: nothing to do"),
        (
            signed.candidates,
            "for a release of candidates, or by an earlier tacit, which nobody signs: nothing to do",
        ),
        (
            signed.unfinished,
            "for a release that broke off before all had signed: run that study again, and it goes on and is \
             signed",
        ),
    ];
    let without = why.iter().filter(|(count, _)| *count > 0);
    let without: Vec<String> = without.map(|(count, why)| format!("\n  {count} {why}")).collect();
    let all = format!("Debits that all parties have signed: {}.", signed.by_all);
    if without.is_empty() { all } else { format!("{all} Without a signature of each:{}", without.concat()) }
}

fn verify(path: &Path, as_json: bool) -> Result<(), Error> {
    if is_export(path) {
        return verify_export(path, as_json);
    }
    let ledger = open(path)?;
    ledger.check_triggers()?;
    let (chains, debits) = (ledger.verify()?, ledger.entries()?);
    let signed = check_signatures(&debits, &ledger.signatures()?)
        .and_then(|signed| check_budgets(&debits).map(|()| signed))
        .map_err(|text| Error::input(format!("the ledger {}: {text}", path.display())))?;
    if as_json {
        let ledger = path.display().to_string();
        return output::print_json(&json!({ "ledger": ledger, "chains": chains, "signed": signed }));
    }
    let mut lines = vec![
        signed_by(&signed),
        "The chains fit their rows. Rows cut off the end show to peers alone; sketches and counts of matches \
         are in no chain."
            .to_owned(),
    ];
    lines.extend(chains.iter().map(|chain| {
        let peer = if chain.peer.is_empty() { "(peer unknown)" } else { &chain.peer };
        let head = chain.head.get(..16).unwrap_or(&chain.head);
        format!("{peer:39}  {:>6} entries  head {head}", chain.count)
    }));
    output::print(&lines.join("\n"))
}

fn recover(path: &Path, lineage: Option<&str>, spent: Option<&Rational>, as_json: bool) -> Result<(), Error> {
    if !path.exists() {
        return begin_recovery(path, lineage, as_json);
    }
    let all = open(path)?.recover(lineage, spent)?;
    if as_json {
        return output::print_json(&json!({ "recovered": all }));
    }
    let lines = all.iter().map(|one| {
        let mut text = format!(
            "{}: goes on after entry {}, as signed on {}; lineage {} was charged {} to come to {}.",
            one.peer,
            one.count,
            date(one.at.cast_signed()),
            one.lineage,
            one.charged,
            one.stated
        );
        if one.barred {
            text += " More may have been spent after that: releases with this peer stay barred, on every \
                     lineage, until `tacit ledger allow`.";
        }
        text + " It counts towards this peer alone: a statement does not say what of it was public, and what \
                was is not counted towards other viewers."
    });
    output::print(&lines.collect::<Vec<_>>().join("\n"))
}

/// Makes an empty ledger, which a run may open beside reports of an earlier one: peers give back what they
/// keep of it there, and each of them that keeps something refuses until it is taken over.
fn begin_recovery(path: &Path, lineage: Option<&str>, as_json: bool) -> Result<(), Error> {
    drop(Ledger::open(path)?);
    let file = path.display().to_string();
    if as_json {
        return output::print_json(&json!({ "recovered": [], "made": file }));
    }
    let lineage = lineage.unwrap_or("NAME");
    output::print(&format!(
        "There was no ledger {file}: an empty one was made. Now run a study with each peer (tacit run, \
         without --new-ledger): a peer that keeps what this party signed gives it back, the run is refused, \
         and nothing is spent. Then: tacit ledger recover {} --lineage {lineage}",
        quoted(&file)
    ))
}

/// A ledger that exists: showing one must not make one.
fn open(path: &Path) -> Result<Ledger, Error> {
    if !path.exists() {
        return Err(Error::input(format!("there is no ledger {}; `tacit run` makes it", path.display())));
    }
    Ledger::open(path)
}

/// What a party file adds to a ledger: names, and the bounds of its lineage.
struct Known {
    names: BTreeMap<String, String>,
    lineage: Option<String>,
    budget: Option<Rational>,
    total: Option<Rational>,
    file: bool,
}

impl Known {
    /// From the answers that the ledger keeps, and from the party file where one is given.
    fn of(ledger: &Ledger, file: Option<&Path>) -> Result<Self, Error> {
        let mut known =
            Self { names: ledger.names()?, lineage: None, budget: None, total: None, file: false };
        if let Some(file) = file {
            let party = PartySettings::read(file)?.complete()?;
            let (file, _) = StudyFile::read(&party.study)?;
            known.names.extend(file.parties.into_iter().map(|member| (member.key, member.name)));
            (known.lineage, known.file) = (party.lineage, true);
            (known.budget, known.total) = (Some(party.policy.budget), party.policy.total);
        }
        Ok(known)
    }

    /// A party's name, where it is known; else its key.
    fn name<'a>(&'a self, key: &'a str) -> &'a str {
        self.names.get(key).map_or(key, String::as_str)
    }

    /// Several, a space between.
    fn all(&self, keys: &str) -> String {
        keys.split(' ').map(|key| self.name(key)).collect::<Vec<_>>().join(", ")
    }

    /// A bound of the party file, where it is one of this lineage's.
    fn bound<'a>(&self, lineage: &str, bound: Option<&'a Rational>) -> Option<&'a Rational> {
        bound.filter(|_| self.lineage.as_deref() == Some(lineage))
    }
}

fn show(path: &Path, file: Option<&Path>, as_json: bool) -> Result<(), Error> {
    let ledger = open(path)?;
    let (entries, answers) = (ledger.entries()?, ledger.answers()?);
    let warning = ledger.verify().err().map(|error| error.to_string());
    let (known, totals) = (Known::of(&ledger, file)?, ledger.totals()?);
    let lineages: BTreeSet<&str> = totals.iter().map(|spent| spent.lineage.as_str()).collect();
    let together = lineages.into_iter().map(|lineage| {
        let total = known.bound(lineage, known.total.as_ref());
        ledger.left_of_total(lineage, total)
    });
    let together = together.collect::<Result<Vec<_>, _>>()?;
    let (bars, successors) = (ledger.bars()?, successors(&ledger, &known)?);
    let claims = ledger.claims()?;
    if as_json {
        let path = path.display().to_string();
        let successors: BTreeMap<_, _> = successors.into_iter().map(|(old, (new, _))| (old, new)).collect();
        return output::print_json(&json!({
            "ledger": path, "entries": entries, "totals": totals, "lineages": together, "names": known.names,
            "successors": successors, "bars": bars, "answers": answers, "warning": warning,
            "given_back": claims.iter().map(given_back_json).collect::<Vec<_>>(),
        }));
    }
    let mut lines = Vec::new();
    if entries.is_empty() {
        lines.push(match claims.is_empty() {
            true => "Nothing was spent yet.".to_owned(),
            false => "This ledger has no entry, and something was spent:".to_owned(),
        });
    } else {
        lines.push(format!("{:20}  {:12}  {:>6} of {:6}  viewer", "data", "study", "rho", "budget"));
        lines.extend(entries.iter().map(|entry| line(entry, &known)));
        for spent in &totals {
            let budget = known.bound(&spent.lineage, known.budget.as_ref());
            let left = ledger.left(&spent.lineage, &spent.viewer_key, budget)?;
            let left = left.map_or(String::new(), |[budget, left]| format!(" of {budget} ({left} left)"));
            lines.push(format!(
                "spent      {} by {}: rho {}{left}, with its delta {}",
                spent.lineage,
                known.name(&spent.viewer_key),
                spent.rho,
                spent.total.words()
            ));
        }
        lines.extend(together.iter().map(|all| all_together(all, &known)));
    }
    let named =
        known.names.iter().filter(|(key, _)| entries.iter().any(|entry| entry.peer_key.contains(*key)));
    lines.extend(named.map(|(key, name)| {
        let next = successors.get(key).map_or_else(String::new, |(new, day)| {
            format!(", whose place {new} has taken (heard on {day}): one budget for both")
        });
        format!("key        {name}: {key}{next}")
    }));
    lines.extend(bars.iter().map(|bar| barred(bar, &known)));
    lines.extend(claims.iter().map(|claim| given_back(claim, &known, path)));
    if !answers.is_empty() {
        lines.push("Answers kept:".to_owned());
        lines.extend(answers.iter().map(answered));
    }
    lines.extend(warning.map(|warning| format!("warning    {warning}")));
    output::print(&lines.join("\n"))
}

/// Of keys that are known: which one has taken their place, and the day on which the ledger heard of it.
fn successors(ledger: &Ledger, known: &Known) -> Result<BTreeMap<String, (String, String)>, Error> {
    let next = |key: &String| Ok(ledger.successor(key)?.map(|next| (key.clone(), next)));
    known.names.keys().filter_map(|key| next(key).transpose()).collect()
}

/// What a peer gave back that is not in the ledger, and what to do.
fn given_back((peer, said): &(String, Statement), known: &Known, ledger: &Path) -> String {
    format!(
        "given back {} keeps what this party signed on {}: rho {} charged towards it, which this ledger does \
         not hold. Runs with it are refused until tacit ledger recover {} takes that over",
        known.name(peer),
        date(said.at.cast_signed()),
        shown(&said.rho()),
        quoted(&ledger.display().to_string())
    )
}

fn given_back_json((peer, said): &(String, Statement)) -> serde_json::Value {
    json!({ "peer": peer, "rho": shown(&said.rho()), "at": date(said.at.cast_signed()) })
}

/// What barred a peer.
fn barred(bar: &BarRecord, known: &Known) -> String {
    let BarRecord { at, peer, lineage, reason, stands, allowed, .. } = bar;
    let name = known.name(peer);
    let on = match (lineage.as_str(), allowed.join(", ")) {
        ("", allowed) if allowed.is_empty() => "all lineages".to_owned(),
        ("", allowed) => format!("all lineages but {allowed}"),
        (lineage, _) => format!("lineage {lineage}"),
    };
    let now = if *stands { "bars it" } else { "barred it, and does no more" };
    format!("bar        {name} on {on}: {} ({at}); {now}", reason.replace("this peer", name))
}

/// What all viewers of a lineage have got together, what they all see counted once.
fn all_together(all: &JointSpending, known: &Known) -> String {
    let bound = match (&all.total, &all.left) {
        (Some(total), Some(left)) => format!(" of {total} (policy.total), {left} left"),
        _ if !known.file => "; add --party PARTY_FILE to see what is left of its policy.total".to_owned(),
        _ if known.lineage.as_deref() == Some(&*all.lineage) => {
            "; no bound beside each viewer's (policy.total)".to_owned()
        }
        _ => "; the party file is for another lineage".to_owned(),
    };
    format!("spent      {} by all together: rho {}{bound}", all.lineage, all.rho)
}

/// A stored answer: when, which study, and whether it was exact.
fn answered(answer: &AnswerRow) -> String {
    let study = answer.study.get(..12).unwrap_or(&answer.study);
    let how = match (answer.exact, answer.noised_view, answer.charged) {
        (true, _, false) => "exact, nothing charged",
        (true, _, true) => "exact; the sizes of its match were charged",
        (false, true, _) => "with noise",
        (false, false, true) => "with noise, of which this party saw nothing; its data were charged",
        (false, false, false) => "with noise, of which this party saw nothing; nothing was charged here",
    };
    format!("{}  {study:12}  {}: {how}", date(answer.at.cast_signed()), answer.name)
}

fn line(entry: &EntryRow, known: &Known) -> String {
    let note = match (&entry.barred, entry.lifted, entry.protects) {
        (Some(why), false, _) => format!("   barred with {}: {why}", known.all(&entry.peer_key)),
        // Nothing broke off: what was lost barred until the operator said how much it was.
        (Some(why), true, _) if entry.is_recovered() => format!("   allowed since: {why}"),
        (Some(why), true, _) => format!("   broke off, allowed since: {why}"),
        _ if entry.given_back => "   (given back: the release was never opened)".to_owned(),
        (None, _, false) => "   (own view: counted in the peer's ledger)".to_owned(),
        _ if entry.is_recovered() => format!("   (releases and sizes; delta {})", power(&entry.delta)),
        _ if entry.delta != "0" => format!("   (sizes of a match; delta {})", power(&entry.delta)),
        _ => String::new(),
    };
    let EntryRow { lineage, rho, viewer_key, .. } = entry;
    // What was taken over from a statement is of no one study, and was allowed then.
    let recovered = entry.is_recovered();
    let study = if recovered { "(recovered)" } else { entry.study.get(..12).unwrap_or(&entry.study) };
    let budget = if recovered { "-" } else { &entry.budget };
    let note = entry.period.as_ref().map_or(note.clone(), |period| format!("{note}   (at most {period})"));
    format!("{lineage:20}  {study:12}  {rho:>6} of {budget:6}  {}{note}", known.all(viewer_key))
}

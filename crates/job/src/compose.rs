//! Puts a report together.

use crate::prepare::Checked;
use crate::usage;
use base::{Error, PartyId};
use privacy::dummies::MatchLeakage;
use privacy::{DELTA, PrivacyTotal};
use program::{Program, Viewer};
use release::Rational;
use release::scale::{ReaderRole, ReleaseMode, rho_to_epsilon};
use report::wording::{self, UnitAmount};
use report::{
    Disclosure, FORMAT, PartyInfo, PeerHistory, Privacy, PublicTerms, ResultView, RunReport, ServersInfo,
    SpentBy, StageReport, StudyInfo, WorkersInfo,
};
use std::collections::BTreeSet;
use study::{NoiseFrom, PartyRole, Question, Study};

const EXACT: &str = "The outputs are exact: there is no differential privacy in this study.";

/// How the sentence begins that says what noise is for.
const CALIBRATED: &str = "The noise taken by itself is calibrated for";

/// How the sentence begins that says what an interval is of.
const CLAMPED: &str = "The interval covers the mean of outcomes clamped at";

const UNREVIEWED: &str = "The implementation has not been reviewed independently.";

/// What a party saw in all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views {
    /// What it alone sees; none where nothing is for it alone.
    pub own: Option<ResultView>,
    /// What everybody sees.
    pub public: Option<ResultView>,
    /// Which number of its release each was, from 0.
    pub attempts: Vec<u32>,
    /// That of what everybody sees.
    pub public_attempt: Option<u32>,
    /// Servers whose share of an output was not what the others' say.
    pub benders: Vec<PartyId>,
}

/// What a finished run knows.
pub(crate) struct Facts<'a> {
    pub checked: &'a Checked,
    pub engine: &'a str,
    pub settings: String,
    /// What servers computed over.
    pub transport: String,
    /// zCDP charged for all that this party sees, sizes aside.
    pub charge: &'a Rational,
    /// How far the law of its noise is off, at most.
    pub distance: Rational,
    /// The same two of what everybody sees.
    pub public: (&'a Rational, Rational),
    /// All that this party got of the study, earlier matches and attempts included.
    pub total: PrivacyTotal,
    /// The number of the match whose sizes were charged.
    pub match_number: Option<u64>,
    /// The lineage of this party's data.
    pub lineage: Option<String>,
    /// Spent so far by each other viewer on this party's data, and the budget of each.
    pub viewers: Vec<SpentBy>,
    /// What broke off with each peer.
    pub broke_off: Vec<PeerHistory>,
    /// What was found of peers' ledgers, and allowed since.
    pub noticed: Vec<String>,
    /// What this party's ledger tells it alone of who sees these data and of earlier data, in sentences.
    pub known: Vec<String>,
    pub budget: f64,
    pub seconds: f64,
    pub stages: &'a [StageReport],
    /// How many workers computed at once, and who they were.
    pub workers: (u32, Option<WorkersInfo>),
}

impl Checked {
    /// Name of the release mode.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match &self.study.kind {
            Question::Lift(lift) => lift.release.mode.name(),
            Question::Program(_) => "program",
            Question::Match(_) => "match",
        }
    }
}

/// The report of a finished run.
pub(crate) fn report(facts: &Facts<'_>, seen: Views, disclosed: Disclosure) -> Result<RunReport, Error> {
    let checked = facts.checked;
    let study = &checked.study;
    let member = &study.parties[checked.me.index()];
    let noise = noise(checked, seen.own.is_none());
    let noised = !matches!(noise, Noise::None);
    let parties = study.parties.iter().zip(&disclosed.rows).map(|(m, rows)| PartyInfo {
        name: m.name.clone(),
        key: m.key.clone(),
        rows: *rows,
    });
    let servers = ServersInfo::of(study, &disclosed, &facts.transport)
        .map(|servers| ServersInfo { device: checked.device_words(), ..servers });
    let warnings = warnings(facts, &seen.benders, &disclosed);
    let attempt = later(seen.attempts.iter().max().copied());
    let public_terms = seen.public.as_ref().map(|_| public_terms(facts, seen.public_attempt));
    let view = seen.own.or_else(|| seen.public.clone());
    let view = view.ok_or_else(|| Error::misuse("every party sees something"))?;
    Ok(RunReport {
        format: FORMAT.into(),
        study: StudyInfo {
            name: study.name.clone(),
            title: study.title.clone(),
            kind: if checked.built.lift.is_some() { "lift".into() } else { "program".into() },
            hash: checked.hash.to_string(),
            full_hash: checked.hash.full(),
            part_of: study.part_of.map(|whole| whole.full()),
            program: base::hex(&checked.built.program.hash()),
        },
        party: member.name.clone(),
        role: match &member.role {
            PartyRole::Publisher => "publisher".into(),
            PartyRole::Advertiser => "advertiser".into(),
            PartyRole::Owner(name) => name.clone(),
        },
        parties: parties.collect(),
        engine: facts.engine.into(),
        settings: facts.settings.clone(),
        servers: servers.clone(),
        mode: checked.mode().into(),
        shards: facts.workers.0,
        workers: facts.workers.1.clone(),
        view,
        public: seen.public,
        public_terms,
        shown_to: shown_to(&checked.built.program),
        privacy: privacy_info(facts, noised, attempt),
        broke_off: facts.broke_off.clone(),
        inputs: checked.inputs.written(),
        guarantee: unit(study, noised)
            .into_iter()
            .chain(
                guarantee(&noise, &disclosed, reach(checked), servers.as_ref())
                    .into_iter()
                    .map(|line| of_unit(line, study, noised)),
            )
            .chain(counted(study, &disclosed))
            .collect(),
        disclosed,
        bytes: facts.stages.iter().flat_map(|s| &s.bytes_sent).sum(),
        stages: facts.stages.to_vec(),
        seconds: facts.seconds,
        peak_memory_bytes: usage::peak_memory_bytes(),
        cpu_seconds: usage::cpu_seconds(),
        stored: false,
        warnings,
        own_warnings: own_warnings(facts),
    })
}

/// Which attempt at a release it is, from 1, where the first one did not come through.
fn later(attempt: Option<u32>) -> Option<u32> {
    attempt.filter(|attempt| *attempt > 0).map(|attempt| attempt + 1)
}

/// Who sees an output or a list of a program.
fn shown_to(program: &Program) -> Vec<String> {
    let of = |to: Viewer| to.only().map_or("everybody", |_| to.name(&program.parties)).to_owned();
    let outputs = program.outputs.iter().map(|output| of(output.to));
    let all: BTreeSet<String> = outputs.chain(program.lists.iter().map(|list| of(list.to.into()))).collect();
    all.into_iter().collect()
}

fn warnings(facts: &Facts<'_>, benders: &[PartyId], disclosed: &Disclosure) -> Vec<String> {
    let mut warnings: Vec<String> = nobody_matched(disclosed).into_iter().collect();
    if facts.stages.iter().any(|s| !s.price_held) {
        warnings.push(
            "a stage sent other bytes than were stated before it; please report this with the JSON report"
                .into(),
        );
    }
    warnings.extend(facts.noticed.iter().cloned());
    warnings.extend(bent(facts.checked, benders));
    warnings
}

/// Identifiers that two files write differently look like a treatment that does nothing.
pub(crate) fn nobody_matched(disclosed: &Disclosure) -> Option<String> {
    let matched = disclosed.matched().filter(|_| !disclosed.public_keys)?;
    let [made_up, range] = disclosed.made_up()?;
    if matched > made_up.saturating_add(range) {
        return None;
    }
    let size = match made_up {
        0 => "nobody is in the files of both parties".to_owned(),
        _ => format!(
            "the match has {} rows, and made-up ones alone are about {}, give or take {}: it may be that \
             hardly anybody is in the files of both parties",
            page::numbers::count(matched),
            page::numbers::count(made_up),
            page::numbers::count(range)
        ),
    };
    Some(format!(
        "{size}. Compare how both write their identifiers (which column, `normalise`) before a result that \
         shows nothing is believed"
    ))
}

/// What is of this party's own rows and its own ledger: exact numbers, which no other party has.
fn own_warnings(facts: &Facts<'_>) -> Vec<String> {
    let mut warnings = [&facts.known[..], &facts.checked.notes].concat();
    if let Some(number) = facts.match_number.filter(|number| *number > 1) {
        warnings.push(format!(
            "this was match {number} of this study on these data: runs before it broke off or kept no \
             answer; in this study the sizes of a match were charged {}, all of which is in the total",
            times(facts.total.size_charges)
        ));
    }
    if let Some(day) = &facts.total.since {
        warnings.push(format!(
            "this party's ledger was recovered on {day}, and the total counts what this party got in this \
             study since: runs before are not in it. The ledgers of the other parties have them all"
        ));
    }
    let inputs = &facts.checked.inputs;
    if inputs.events_cut > 0 {
        warnings.push(format!(
            "{} of {} {} cut: more than max_events",
            page::numbers::counted(inputs.events_cut, "event"),
            page::numbers::counted(inputs.identifiers_cut, "identifier"),
            if inputs.events_cut == 1 { "was" } else { "were" }
        ));
    }
    warnings
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn privacy_info(facts: &Facts<'_>, noised: bool, attempt: Option<u32>) -> Privacy {
    let study = &facts.checked.study;
    let rho = release::rational::to_f64(facts.charge);
    Privacy {
        rho: facts.charge.to_string(),
        rho_value: rho,
        epsilon: noised.then(|| rho_to_epsilon(rho, DELTA)),
        delta: noised.then_some(DELTA),
        total: noised.then(|| facts.total.clone()),
        lineage: facts.lineage.clone(),
        spent: facts.viewers.iter().map(|viewer| viewer.rho).fold(0.0, f64::max),
        budget: facts.budget,
        viewers: facts.viewers.clone(),
        candidates: match study.noise() {
            NoiseFrom::CutAndChoose(candidates) => noised.then_some(candidates),
            NoiseFrom::Inside => None,
        },
        off: privacy::off(facts.charge, &facts.distance),
        unit: study.unit.clone().filter(|_| noised),
        attempt,
    }
}

/// What the public result costs who reads it, and what holds for it: of the study alone, so the same at all
/// parties.
fn public_terms(facts: &Facts<'_>, attempt: Option<u32>) -> PublicTerms {
    let (checked, (charge, distance)) = (facts.checked, &facts.public);
    let noised = checked.built.program.mechanisms.iter().any(|mechanism| mechanism.to == Viewer::Public);
    let rho = release::rational::to_f64(charge);
    PublicTerms {
        rho: charge.to_string(),
        rho_value: rho,
        epsilon: noised.then(|| rho_to_epsilon(rho, DELTA)),
        delta: noised.then_some(DELTA),
        off: privacy::off(charge, distance),
        unit: checked.study.unit.clone().filter(|_| noised),
        attempt: later(attempt),
        guarantee: public_guarantee(checked, noised),
    }
}

/// What holds for the public result. It names no size: who reads it alone has seen none.
fn public_guarantee(checked: &Checked, noised: bool) -> Vec<String> {
    let study = &checked.study;
    let noise = if noised { noise(checked, true) } else { Noise::None };
    let reach = checked.built.program.degrees.iter().copied().max().unwrap_or(1);
    let mut lines: Vec<String> = unit(study, noised).into_iter().collect();
    match &noise {
        Noise::Lift { mode, viewer, clamp, .. } => {
            lines.push(of_unit(calibrated(mode.guarantee(*viewer)), study, noised));
            lines.extend(one_row(reach, "people"));
            lines.push(of_unit(of_clamped(clamp), study, noised));
            if checked.built.lift.as_ref().is_some_and(|(_, layout)| layout.published.is_some()) {
                lines.push(
                    "The sizes of both arms were made public by the release mode, exactly: they follow from \
                     the stated noise, which does not protect them and is not charged for them."
                        .into(),
                );
            }
        }
        Noise::Program(_) => {
            lines.push(calibrated(
                "zero-concentrated differential privacy of one row of any party; outputs computed from \
                 noised values are covered too",
            ));
            lines.extend(one_row(reach, "joined rows"));
        }
        Noise::None => lines.push(EXACT.into()),
    }
    if study.part_of.is_some() {
        // Who else takes part is for those to know who have the study.
        lines.push(format!(
            "This is one of several results of one study, one for each advertiser, about the same people of \
             {}: what they cost adds up for who reads several.",
            wording::label(&study.parties[0].name)
        ));
    }
    lines.push(
        "The parties themselves learnt more than stands here, sizes among it: what is kept from them is said \
         in their own reports."
            .into(),
    );
    match &study.servers {
        Some(servers) => {
            let names: Vec<&str> = servers.members.iter().map(|server| server.name.as_str()).collect();
            lines.push(computed_by(&names, study::security_name(servers.security), SERVERS_SAW));
        }
        None => lines.push(bending(study.parties.len())),
    }
    if let Noise::Lift { known, .. } | Noise::Program(known) = noise {
        lines.push(known.words().into());
    }
    lines.push(UNREVIEWED.into());
    lines
}

/// What the guarantee is of, where the study says what a row stands for.
fn unit(study: &Study, noised: bool) -> Option<String> {
    let unit = study.unit.as_ref().filter(|_| noised)?;
    Some(format!(
        "The unit of privacy is one {unit}, because the study says that one identifier is one {unit}. Nobody \
         can check that \
         here: one {unit} under several identifiers is covered for each of them, and less for all together."
    ))
}

/// A sentence of the guarantee in the unit that the study states; sentences with names in them stay as they
/// are.
fn of_unit(line: String, study: &Study, noised: bool) -> String {
    let Some(unit) = study.unit.as_ref().filter(|_| noised) else { return line };
    if line.starts_with(CALIBRATED) {
        let exchange = format!("one {unit} exchanges arms with another");
        return line
            .replace("one user", &format!("one {unit}"))
            .replace("two users exchange arms", &exchange);
    }
    if line.starts_with(CLAMPED) {
        return line.replace("per person", &format!("per {unit}"));
    }
    line
}

/// What is said of servers that gave something else than two others.
fn bent(checked: &Checked, benders: &[PartyId]) -> Option<String> {
    let roster = checked.study.roster();
    let mut names: Vec<String> = benders.iter().map(|server| roster.name(*server)).collect();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "{} gave another share of the result than the one that two other servers hold, or none: the \
             result is right all the same",
            names.join(", ")
        )
    })
}

/// Who knows the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// The other party drew it.
    by_peer: bool,
    /// All see the result.
    public: bool,
}

/// What the noise of a view is for.
enum Noise {
    /// A lift study, clamped at so much per person.
    Lift { mode: ReleaseMode, viewer: ReaderRole, clamp: String, known: Known },
    /// A user's own program with noised outputs.
    Program(Known),
    /// A user's own program without noise.
    None,
}

fn noise(checked: &Checked, public: bool) -> Noise {
    let known = Known { by_peer: matches!(checked.study.noise(), NoiseFrom::CutAndChoose(_)), public };
    match &checked.study.kind {
        Question::Lift(lift) => Noise::Lift {
            known,
            mode: lift.release.mode,
            viewer: if checked.me == studies::lift::PUBLISHER && !public {
                ReaderRole::Publisher
            } else {
                ReaderRole::Advertiser
            },
            clamp: wording::in_unit(
                UnitAmount { parts: lift.rule.clamp.into(), scale: lift.scale() },
                lift.advertisers.iter().find_map(|advertiser| advertiser.value.unit()),
            ),
        },
        _ if checked.built.program.mechanisms.is_empty() => Noise::None,
        _ => Noise::Program(known),
    }
}

/// What party 0 of several counted in the match; without dummies the sentences of the guarantee say it.
fn counted(study: &Study, disclosed: &Disclosure) -> Option<String> {
    disclosed.dummies.as_ref()?;
    Some(wording::overlaps(disclosed, &study.parties.first()?.name)? + ".")
}

/// How many joined rows one row of another party can change.
fn reach(checked: &Checked) -> u32 {
    let degrees = checked.built.program.degrees.iter().enumerate();
    degrees.filter(|(party, _)| *party != checked.me.index()).map(|(_, d)| *d).max().unwrap_or(1)
}

/// What the guarantee covers, in sentences: what the noise is calibrated for, then what is left of that in
/// the whole run, where exact sizes are known as well.
fn guarantee(
    noise: &Noise,
    disclosed: &Disclosure,
    reach: u32,
    servers: Option<&ServersInfo>,
) -> Vec<String> {
    let mut lines = match noise {
        Noise::Lift { mode, viewer, clamp, .. } => lift_covers(*mode, *viewer, clamp, disclosed, reach),
        Noise::Program(_) => program_covers(disclosed, reach),
        Noise::None => exact_covers(disclosed),
    };
    lines.extend(wording::who_learnt(disclosed));
    if let Some([test, control]) = disclosed.published_groups {
        let [test, control] = [test, control].map(page::numbers::count);
        lines.push(format!("The group sizes {test} and {control} were made public by the release mode."));
    }
    if let Some(servers) = servers {
        lines.extend(by_servers(servers, disclosed, noise));
        lines.push(UNREVIEWED.into());
        return lines;
    }
    let bending = bending(disclosed.rows.len());
    lines.push(match noise {
        Noise::None => bending,
        Noise::Lift { known, .. } | Noise::Program(known) => format!("{bending} {}", known.words()),
    });
    lines.extend(wording::membership(&disclosed.protocol));
    lines.push(UNREVIEWED.into());
    lines
}

/// What no guarantee of a study of so many parties covers, matched by this protocol, as its reports will say.
pub fn not_covered(parties: usize, protocol: &str) -> Vec<String> {
    let reads = wording::membership(protocol);
    [Some(bending(parties)), reads, Some(UNREVIEWED.to_owned())].into_iter().flatten().collect()
}

/// What so many parties are assumed to do, and what one could that does not.
fn bending(parties: usize) -> String {
    let honest = match parties {
        2 => "Both parties are assumed to run this program unmodified (semi-honest).",
        _ => {
            "All parties are assumed to run this program unmodified (semi-honest), any number of them \
             together."
        }
    };
    format!("{honest} A modified program could falsify its shares or its circuit.")
}

/// What exact sizes are good for.
fn probing(disclosed: &Disclosure) -> &'static str {
    match disclosed.size_hidden {
        true => "",
        false => "A party that matches made-up identifiers learns from the sizes whether these are there.",
    }
}

fn lift_covers(
    mode: ReleaseMode,
    viewer: ReaderRole,
    clamp: &str,
    disclosed: &Disclosure,
    reach: u32,
) -> Vec<String> {
    let exact_arms = disclosed.uncovered.contains(&MatchLeakage::ArmSizes);
    let calibrated = match (exact_arms, mode, viewer) {
        (true, ReleaseMode::Sums, ReaderRole::Advertiser) => "rho-zCDP while both arms keep their sizes",
        _ => mode.guarantee(viewer),
    };
    let mut lines = vec![self::calibrated(calibrated)];
    lines.extend(one_row(reach, "people"));
    let covers = match exact_arms {
        true => "arm sizes exact: covers exchanged arms and changed outcomes only",
        false => "the guarantee covers flips and replacements of outcome and arm only",
    };
    lines.push(wording::hidden(disclosed).unwrap_or_else(|| {
        let (sizes, probing) = (wording::sizes(disclosed), probing(disclosed));
        format!(
            "But: exact sizes disclosed; {covers}. The sizes: {sizes}. It does not cover being in a file at \
             all: adding or removing a person, gaining or losing an opportunity, or a first entry in a file \
             that lists only people with an outcome, shows in the exact sizes. {probing}"
        )
        .trim_end()
        .to_owned()
    }));
    lines.push(of_clamped(clamp));
    lines
}

/// What noise is for, `guarantee` in words.
fn calibrated(guarantee: &str) -> String {
    format!("{CALIBRATED} adding or removing a row, or changing its values: {guarantee}.")
}

/// What an interval of a lift study is of.
fn of_clamped(clamp: &str) -> String {
    format!("{CLAMPED} {clamp} per person, not of unclamped ones.")
}

fn program_covers(disclosed: &Disclosure, reach: u32) -> Vec<String> {
    let mut lines = vec![
        "The noise taken by itself is calibrated for adding or removing one row of the other party, or \
         changing its values \
         (zero-concentrated differential privacy). Outputs computed from noised values are covered too."
            .into(),
    ];
    lines.extend(one_row(reach, "joined rows"));
    lines.push(wording::hidden(disclosed).unwrap_or_else(|| {
        let (sizes, probing) = (wording::sizes(disclosed), probing(disclosed));
        format!(
            "But: exact sizes disclosed; the guarantee covers changes of the values in rows whose \
             identifiers stay in both files only. The sizes: {sizes}. It does not cover being in a file at \
             all: an added or removed row shows in the exact sizes. {probing}"
        )
    }));
    lines
}

fn exact_covers(disclosed: &Disclosure) -> Vec<String> {
    let rows = match disclosed.public_keys {
        true => {
            let union = disclosed.union;
            format!("The identifiers are public to all parties: every file holds the same {union} rows.")
        }
        false => wording::hidden(disclosed).unwrap_or_else(|| {
            let (sizes, probing) = (wording::sizes(disclosed), probing(disclosed));
            format!("Exact sizes were disclosed to all parties as well ({sizes}). {probing}")
        }),
    };
    vec![EXACT.into(), rows]
}

/// What servers learn, for who is told no more.
const SERVERS_SAW: &str = "sizes of the rows and of the match, of salted keys which rows are equal, and \
                           nothing of any value";

/// Who computed it, and what one of them may do.
fn computed_by(names: &[&str], security: &str, learns: &str) -> String {
    let names = names.iter().map(|name| wording::label(name)).collect::<Vec<_>>().join(", ");
    match security {
        "malicious" => format!(
            "Computed by {names}. At most one of them is assumed to deviate, in any way: it learns {learns}, \
             and what it falsifies is noticed before anything is revealed. Two of \
             them together learn everything."
        ),
        _ => format!(
            "Computed by {names}. All of them are assumed to run this program unmodified (semi-honest); one \
             alone learns {learns}. Two of them together learn everything."
        ),
    }
}

/// What four servers may do, and what they saw.
fn by_servers(servers: &ServersInfo, disclosed: &Disclosure, noise: &Noise) -> Vec<String> {
    let names: Vec<&str> = servers.members.iter().map(|server| server.name.as_str()).collect();
    let mut lines = vec![computed_by(&names, &servers.security, "nothing but what is said here")];
    lines.push(study::transport::protects(&servers.transport));
    lines.extend(
        servers
            .device
            .as_ref()
            .filter(|device| *device != "cpu")
            .map(|device| format!("This party's part of the computation ran on {}.", base::clean(device))),
    );
    lines.extend(servers.members.iter().map(|server| {
        format!("{} saw {}, beside random shares.", wording::label(&server.name), base::clean(&server.saw))
    }));
    if !disclosed.public_keys {
        lines.push(
            "Whoever holds the salt and sees the keyed hashes can test guesses of identifiers: an owner and \
             a server that joins rows learn together which of the owner's guesses are in the other files."
                .into(),
        );
    }
    if let Noise::Lift { known, .. } | Noise::Program(known) = noise {
        lines.push(known.words().into());
    }
    lines
}

impl Known {
    fn words(self) -> &'static str {
        match (self.by_peer, self.public) {
            (true, _) => {
                "The choice of noise is checked by cut-and-choose. The noise protects the other party's data \
                 from you alone: who \
                 shows a view to the party that drew its noise, reveals the data behind it."
            }
            (false, true) => {
                "Nobody knows the noise: it was drawn inside the computation, from coins of all. It protects \
                 the data of every party, so all see the same result and may publish it."
            }
            (false, false) => {
                "Nobody knows the noise: it was drawn inside the computation, from coins of all. It protects \
                 the others' data from you alone; what may be published is a public result, whose noise \
                 protects your data too."
            }
        }
    }
}

/// What "one row" means where it is matched by several identifiers, or with several rows.
fn one_row(reach: u32, what: &str) -> Option<String> {
    (reach > 1).then(|| {
        format!(
            "One row = up to {reach} {what}: the match lets it change so many, and the noise is scaled for \
             that, sums of one party's rows alone included. By `duplicates = \"first\"` one line of a file \
             is covered; else lines that share identifiers are refused, or a row is one as matched."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAMP: &str = "3";
    const KNOWN: Known = Known { by_peer: true, public: false };

    fn lines(noise: &Noise) -> Vec<String> {
        let disclosed =
            Disclosure { rows: vec![11, 7], union: 13, matched_upper_bound: 5, ..Disclosure::default() };
        guarantee(noise, &disclosed, 1, None)
    }

    /// Whatever the noise is calibrated for, the next sentence says that exact sizes take part of it away.
    #[test]
    fn a_lift_study_is_not_promised_more_than_the_run_keeps() {
        for mode in [
            ReleaseMode::Sums,
            ReleaseMode::Variance,
            ReleaseMode::Algorithm1,
            ReleaseMode::Algorithm1AsPublished,
        ] {
            for viewer in [ReaderRole::Publisher, ReaderRole::Advertiser] {
                let lines = lines(&Noise::Lift { mode, viewer, clamp: CLAMP.into(), known: KNOWN });
                assert!(
                    lines[0].starts_with("The noise taken by itself")
                        && lines[0].contains(mode.guarantee(viewer))
                );
                assert!(lines[1].starts_with("But: exact sizes disclosed; the guarantee covers flips"));
                assert!(lines[1].contains("11 rows, 7 rows, 13 in the union, hence 5 matched"));
                assert!(lines[1].contains("covers flips and replacements of outcome and arm only"));
                assert!(lines[2].contains("clamped at 3 per person"));
            }
        }
    }

    /// Where the study says what a row stands for, no sentence of the guarantee speaks of users or persons.
    #[test]
    fn the_guarantee_is_in_the_unit_of_the_study() {
        const LIFT: &str = include_str!("../../../examples/lift.toml");
        let text = LIFT.replacen("[match]", "[privacy]\nunit = \"household\"\n[match]", 1);
        let study = Study::parse("lift.toml", &text).expect("a study");
        for mode in [ReleaseMode::Sums, ReleaseMode::Variance, ReleaseMode::Algorithm1] {
            for viewer in [ReaderRole::Publisher, ReaderRole::Advertiser] {
                let lines = lines(&Noise::Lift { mode, viewer, clamp: CLAMP.into(), known: KNOWN });
                let said: Vec<String> = lines.into_iter().map(|line| of_unit(line, &study, true)).collect();
                assert!(said[0].contains("one household") && !said[0].contains("user"), "{said:?}");
                assert!(said[2].contains("clamped at 3 per household"), "{said:?}");
            }
        }
    }

    #[test]
    fn a_match_of_made_up_rows_alone_is_warned_of() {
        let dummies =
            report::DummiesInfo { in_match: Some(370), in_match_sigma: Some(20), ..Default::default() };
        let of = |matched, dummies| {
            let rows = vec![1000, 1000];
            nobody_matched(&Disclosure {
                rows,
                matched_upper_bound: matched,
                dummies,
                ..Disclosure::default()
            })
        };
        assert!(
            of(379, Some(dummies.clone()))
                .unwrap()
                .contains("379 rows, and made-up ones alone are about 370")
        );
        assert!(of(411, Some(dummies)).is_none() && of(1, None).is_none());
        assert!(of(0, None).unwrap().starts_with("nobody is in the files of both parties"));
    }

    /// Sizes with made-up rows in them are said to be such, and what they cost.
    #[test]
    fn hidden_sizes_are_covered_and_what_they_cost_is_said() {
        let dummies = report::DummiesInfo {
            epsilon: "1/5".into(),
            rho: "1/100".into(),
            delta: "2e-9".into(),
            ..Default::default()
        };
        let disclosed = Disclosure {
            protocol: "ps3i".into(),
            rows: vec![11, 7],
            union: 13,
            matched_upper_bound: 5,
            dummies: Some(dummies),
            ..Disclosure::default()
        };
        let noise = Noise::Lift {
            mode: ReleaseMode::Sums,
            viewer: ReaderRole::Publisher,
            clamp: CLAMP.into(),
            known: KNOWN,
        };
        let lines = guarantee(&noise, &disclosed, 1, None);
        assert!(lines[1].contains("made-up rows") && lines[1].contains("rho 1/100"), "{}", lines[1]);
        assert!(!lines.concat().contains("exact sizes disclosed"), "{lines:?}");
        let unseen =
            Disclosure { size_hidden: true, protocol: "circuit-psi".into(), dummies: None, ..disclosed };
        let lines = guarantee(&noise, &unseen, 1, None);
        assert!(lines[1].contains("11 rows, 7 rows, and nobody learnt how many matched"), "{}", lines[1]);
    }

    /// What dummies do not cover is named in both parties' reports, and no report promises it.
    #[test]
    fn what_is_not_covered_is_named() {
        let dummies = report::DummiesInfo {
            epsilon: "1/5".into(),
            rho: "1/100".into(),
            delta: "2e-9".into(),
            ..Default::default()
        };
        let graph = MatchLeakage::MatchGraph { to: "registry".into() };
        let disclosed = Disclosure {
            protocol: "pid".into(),
            rows: vec![11, 7],
            union: 13,
            matched_upper_bound: 5,
            dummies: Some(dummies),
            uncovered: vec![graph.clone()],
            published_groups: Some([6, 5]),
            ..Disclosure::default()
        };
        let noise = Noise::Lift {
            mode: ReleaseMode::Sums,
            viewer: ReaderRole::Advertiser,
            clamp: CLAMP.into(),
            known: KNOWN,
        };
        let lines = guarantee(&noise, &disclosed, 3, None);
        assert!(lines[1].starts_with("One row = up to 3 people"), "{lines:?}");
        let sizes = &lines[2];
        assert!(sizes.contains("These sizes are covered") && sizes.contains("except"), "{sizes}");
        assert!(sizes.contains("the match graph") && sizes.contains("the published group sizes"), "{sizes}");
        assert!(lines.iter().any(|line| line.starts_with("registry also learnt which")), "{lines:?}");
        // Exact arm sizes: flips of an arm are promised nowhere.
        let exact = Disclosure { dummies: None, uncovered: vec![graph, MatchLeakage::ArmSizes], ..disclosed };
        let text = guarantee(&noise, &exact, 3, None).concat();
        assert!(text.contains("arm sizes exact: covers exchanged arms and changed outcomes only"), "{text}");
        assert!(!text.contains("covers flips") && !text.contains("themselves noised"), "{text}");
    }

    #[test]
    fn a_program_is_not_spoken_of_as_a_lift_study() {
        for noise in [Noise::Program(KNOWN), Noise::None] {
            let text = lines(&noise).join(" ");
            for word in [" arm", " time", "opportunit", "clamped", "outcome"] {
                assert!(!text.contains(word), "{word}: {text}");
            }
        }
        let exact = lines(&Noise::None).join(" ");
        assert!(!exact.contains("guarantee of") && !exact.contains("cut-and-choose"));
    }
}

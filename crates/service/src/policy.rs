//! What the rules say of a proposed study, before anybody reads it and before it is consented to.

use crate::link::peer_of;
use crate::serving::server_of;
use crate::settings::{HouseSettings, ServicePolicy};
use base::{Error, PartyId};
use net::KeyFingerprint;
use release::Rational;
use release::rational::ratio;
use statements::{ChargeBound, ClosingCode, ClosingReason, ProposalRecord};
use study::party::PartyPolicy;
use study::{NoiseFrom, Question, Study, StudyFile};

/// Why the rules refuse what a peer proposes, in words that it is told; none: they do not.
#[must_use]
pub fn refusal(
    settings: &HouseSettings,
    own: KeyFingerprint,
    record: &ProposalRecord,
) -> Option<ClosingReason> {
    let proposer = record.parties().get(record.proposer())?;
    let text = match StudyFile::parse("the study", &record.proposed().text) {
        Ok(file) => {
            let (_, peer) = peer_of(settings, proposer)?;
            let kind = kind_of(file.first());
            let allowed = peer.kinds.iter().any(|one| one == kind);
            let rule = (!allowed).then_some("kinds, of this peer");
            let rule = rule.or_else(|| objection(&settings.policy, own, &file).map(|broken| broken.rule))?;
            // Its name alone: how much is allowed is for this organisation to know.
            format!("a rule here does not allow it: {rule}")
        }
        Err(error) => error.to_string(),
    };
    let text = text.chars().take(statements::TEXT_CHARS).collect();
    Some(ClosingReason { code: ClosingCode::Policy, text })
}

/// Refuses to propose what the own rules do not allow: nobody here could consent to it.
///
/// # Errors
/// The rules that it breaks, in words for this organisation.
pub fn may_propose(settings: &HouseSettings, own: KeyFingerprint, file: &StudyFile) -> Result<(), Error> {
    let all: Vec<String> = broken(&settings.policy, own, file).into_iter().map(|broken| broken.why).collect();
    match all.is_empty() {
        true => Ok(()),
        false => Err(Error::refused(format!(
            "the rules of this organisation do not allow this study, so nobody here could consent to it: {}. \
             Change the study, or have the rule loosened before it is proposed",
            all.join("; ")
        ))),
    }
}

/// The name of the kind of a study.
#[must_use]
pub fn kind_of(study: &Study) -> &'static str {
    match study.kind {
        Question::Lift(_) => "lift",
        Question::Program(_) => "program",
        Question::Match(_) => "match",
    }
}

/// A rule of `[policy]` that a study breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// The name of the rule.
    pub rule: &'static str,
    /// In words for this organisation alone.
    pub why: String,
}

/// The first rule of `[policy]` that a study breaks.
fn objection(policy: &ServicePolicy, own: KeyFingerprint, file: &StudyFile) -> Option<BrokenRule> {
    broken(policy, own, file).into_iter().next()
}

/// All rules of `[policy]` that a study breaks, as far as the study says it.
#[must_use]
pub fn broken(policy: &ServicePolicy, own: KeyFingerprint, file: &StudyFile) -> Vec<BrokenRule> {
    let study = file.first();
    let kind = kind_of(study);
    let mut all = Vec::new();
    let mut add = |rule, why: String| all.push(BrokenRule { rule, why });
    if !policy.kinds.iter().any(|allowed| allowed == kind) {
        add("policy.kinds", format!("studies of kind {kind} are not allowed here (policy.kinds)"));
    }
    if !policy.studies.is_empty() && !policy.studies.contains(&file.hash()) {
        let why = "it is none of the studies that are allowed here (policy.studies)";
        add("policy.studies", why.to_owned());
    }
    // Who computes and sees shares spends nothing, and shows nothing.
    if server_of(study, &own.to_string()).is_some() {
        return all;
    }
    spends(policy, own, file, &mut add);
    match &study.kind {
        Question::Lift(lift) if lift.release.minimum_group < policy.minimum_group => add(
            "policy.minimum_group",
            format!("it shows groups of fewer than {} (minimum_group)", policy.minimum_group),
        ),
        Question::Program(program)
            if program.to.is_empty() && program.public.is_none() && !policy.allow_exact =>
        {
            add("policy.allow_exact", "it shows exact results (policy.allow_exact)".to_owned());
        }
        _ => {}
    }
    if study.matching.dummies.is_none() && !policy.without_dummies {
        add("policy.dummies", "its match shows exact sizes (policy.dummies)".to_owned());
    }
    match study.noise() {
        NoiseFrom::CutAndChoose(asked) if u64::from(asked) < policy.candidates && has_noise(study) => {
            let least = policy.candidates;
            let why = format!("its noise is checked with fewer than {least} candidates (policy.candidates)");
            add("policy.candidates", why);
        }
        _ => {}
    }
    all
}

/// The rules on what a study spends and shows.
fn spends(
    policy: &ServicePolicy,
    own: KeyFingerprint,
    file: &StudyFile,
    add: &mut impl FnMut(&'static str, String),
) {
    let study = file.first();
    let me = study.parties.iter().position(|party| party.key == own.to_string());
    let as_party = me.map_or("", |place| study.parties[place].name.as_str());
    let any = PartyPolicy {
        kinds: vec![kind_of(study).to_owned()],
        max_rho: ratio(u64::MAX, 1),
        max_cells: u64::MAX,
        ..PartyPolicy::default()
    };
    match &policy.max_rho {
        None => add("policy.max_rho", "no study may spend anything here (policy.max_rho)".to_owned()),
        Some(max_rho) => {
            let max_rho_at = Some("service.toml".to_owned());
            let rules = PartyPolicy { max_rho: max_rho.clone(), max_rho_at, ..any.clone() };
            if let Err(error) = rules.admit(file, as_party) {
                add("policy.max_rho", error.to_string());
            }
        }
    }
    if let Err(error) = (PartyPolicy { max_cells: policy.max_cells, ..any }).admit(file, as_party) {
        add("policy.max_cells", error.to_string());
    }
    let Some(me) = me.and_then(|place| u8::try_from(place).ok()) else { return };
    // A study whose charge cannot be told is refused by who reads it.
    let Ok(Some(charge)) = privacy::dummies::charge(study, PartyId(me)) else { return };
    match policy.max_delta_places {
        None => add(
            "policy.max_delta",
            "its match has a delta, and no study may have one here (policy.max_delta)".to_owned(),
        ),
        Some(places) if charge.delta > ratio(1, 10u64.pow(places.into())) => {
            let delta = release::rational::small(&charge.delta);
            let why = format!(
                "its match has a delta of {delta}, and a study may have at most 1e-{places} \
                 (policy.max_delta)"
            );
            add("policy.max_delta", why);
        }
        Some(_) => {}
    }
}

/// Why the deltas of all matches that a consent allows are more, towards one viewer, than a study may have;
/// none: they are not. A delta where none is allowed is refused by [`broken`].
#[must_use]
pub fn delta_beyond(policy: &ServicePolicy, charges: &[ChargeBound]) -> Option<String> {
    let places = policy.max_delta_places?;
    let deltas = charges.iter().filter_map(|charge| charge.delta.parse::<Rational>().ok());
    let largest = deltas.max().filter(|delta| *delta > ratio(1, 10u64.pow(places.into())))?;
    let delta = release::rational::small(&largest);
    Some(format!(
        "all matches that it allows come to a delta of {delta}, and a study may have at most 1e-{places} \
         (policy.max_delta): let fewer runs begin anew"
    ))
}

fn has_noise(study: &Study) -> bool {
    let any = |to: &[(String, Rational)], public: &Option<Rational>| !to.is_empty() || public.is_some();
    match &study.kind {
        Question::Lift(lift) => any(&lift.release.to, &lift.release.public),
        Question::Program(program) => any(&program.to, &program.public),
        Question::Match(_) => false,
    }
}

//! What the rules say of a proposed study, before anybody reads it and before it is consented to.

use crate::link::peer_of;
use crate::settings::{HouseSettings, ServicePolicy};
use net::KeyFingerprint;
use release::Rational;
use release::rational::ratio;
use statements::{ClosingCode, ClosingReason, ProposalRecord};
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
            let (name, peer) = peer_of(settings, proposer)?;
            let kind = kind_of(file.first());
            let allowed = peer.kinds.iter().any(|one| one == kind);
            let by_peer = (!allowed).then(|| {
                format!("studies of kind \"{kind}\" are not among those that {name} may propose (kinds)")
            });
            by_peer.or_else(|| objection(&settings.policy, own, &file))?
        }
        Err(error) => error.to_string(),
    };
    let text = text.chars().take(statements::TEXT_CHARS).collect();
    Some(ClosingReason { code: ClosingCode::Policy, text })
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

/// The first rule of `[policy]` that a study breaks.
#[must_use]
pub fn objection(policy: &ServicePolicy, own: KeyFingerprint, file: &StudyFile) -> Option<String> {
    let study = file.first();
    let as_party = study.parties.iter().find(|party| party.key == own.to_string());
    let as_party = as_party.map_or("", |party| party.name.as_str());
    let rules = PartyPolicy {
        studies: (!policy.studies.is_empty()).then(|| policy.studies.clone()),
        kinds: policy.kinds.clone(),
        max_rho: policy.max_rho.clone().unwrap_or_else(|| ratio(0, 1)),
        max_rho_at: Some("service.toml".to_owned()),
        max_cells: policy.max_cells,
        ..PartyPolicy::default()
    };
    if let Err(error) = rules.admit(file, as_party) {
        return Some(error.to_string());
    }
    match &study.kind {
        Question::Lift(lift) if lift.release.minimum_group < policy.minimum_group => {
            return Some(format!(
                "the study shows groups of {} people and more; policy.minimum_group is {}",
                lift.release.minimum_group, policy.minimum_group
            ));
        }
        Question::Program(program)
            if program.to.is_empty() && program.public.is_none() && !policy.allow_exact =>
        {
            return Some("the study shows exact results; policy.allow_exact is false".to_owned());
        }
        _ => {}
    }
    if study.matching.dummies.is_none() && !policy.without_dummies {
        let text = "the match of this study shows exact sizes; policy.dummies is \"required\"";
        return Some(text.to_owned());
    }
    match study.noise() {
        NoiseFrom::CutAndChoose(asked) if u64::from(asked) < policy.candidates && has_noise(study) => Some(
            format!("the study has {asked} noise candidates; policy.candidates is {}", policy.candidates),
        ),
        _ => None,
    }
}

fn has_noise(study: &Study) -> bool {
    let any = |to: &[(String, Rational)], public: &Option<Rational>| !to.is_empty() || public.is_some();
    match &study.kind {
        Question::Lift(lift) => any(&lift.release.to, &lift.release.public),
        Question::Program(program) => any(&program.to, &program.public),
        Question::Match(_) => false,
    }
}

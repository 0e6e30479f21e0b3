//! What a file allows, in words, for the command line and for the page.

use super::{AutoStudy, DataSet, HouseSettings, KeepRule, ServicePeer, ServicePolicy, WebSettings};
use page::numbers::{binary, count, counted};
use release::rational::shown;
use std::ops::RangeInclusive;

/// Headings with sentences beneath, for somebody who `sees` names of columns of some data sets.
#[must_use]
pub fn words(settings: &HouseSettings, sees: &dyn Fn(&str) -> bool) -> Vec<(String, Vec<String>)> {
    let mut all = vec![("The page".to_owned(), web(&settings.web))];
    all.push((
        "Other organisations".to_owned(),
        match settings.peers.is_empty() {
            true => vec!["None is known, so none can propose anything.".to_owned()],
            false => settings.peers.iter().map(|(name, one)| peer(name, one)).collect(),
        },
    ));
    all.extend(settings.data.iter().map(|(name, one)| (format!("Data set {name}"), data(one, sees(name)))));
    if settings.data.is_empty() {
        all.push(("Data sets".to_owned(), vec!["There is none, so no study can read anything.".to_owned()]));
    }
    all.push(("Every study".to_owned(), studies(&settings.policy)));
    all.push(("People".to_owned(), people(&settings.policy)));
    all.push(("What is kept".to_owned(), kept(&settings.keep)));
    all
}

fn web(web: &WebSettings) -> Vec<String> {
    let hosts: Vec<String> = web.hosts().collect();
    let mut all = vec![
        format!("It listens on {} and answers under {}.", web.listen, hosts.join(", ")),
        match &web.tls {
            Some((cert, key)) => format!("Its certificate is {}, with {}.", cert.display(), key.display()),
            None => "It makes a certificate of its own: browsers ask people to compare its fingerprint."
                .to_owned(),
        },
    ];
    all.extend(web.proxy.as_ref().map(|proxy| {
        format!(
            "Whom a process of the user {} on {} names in {} is signed in as that account: it can be \
             anybody.",
            proxy.uid,
            proxy.socket.display(),
            proxy.user_header
        )
    }));
    all.extend(web.metrics.as_ref().map(|socket| {
        format!(
            "Programs of its user and group read numbers on {}: how many, and no names.",
            socket.display()
        )
    }));
    if !web.listen.ip().is_loopback() {
        all.push(
            "It can be reached from other machines: it is for this organisation's own network, and nobody \
             else needs to reach it."
                .to_owned(),
        );
    }
    all
}

fn span(ports: &RangeInclusive<u16>) -> String {
    format!("ports {} to {}", ports.start(), ports.end())
}

fn peer(name: &str, peer: &ServicePeer) -> String {
    let place =
        peer.address.as_ref().map_or("it comes to us".to_owned(), |at| format!("we reach it at {at}"));
    let ports = peer.run_ports.as_ref().map_or(String::new(), |ports| format!(", runs on {}", span(ports)));
    let kinds = match peer.kinds.is_empty() {
        true => "It may propose nothing.".to_owned(),
        false => format!(
            "It may propose {}: at most {} waiting, {} a day.",
            peer.kinds.join(", "),
            count(peer.proposals_open),
            count(peer.proposals_per_day)
        ),
    };
    format!("{name} has the key {}; {place}{ports}. {kinds}", peer.key)
}

fn data(data: &DataSet, columns: bool) -> Vec<String> {
    let or = |list: &[String], nothing: &str| match list.is_empty() {
        true => nothing.to_owned(),
        false => list.join(", "),
    };
    let mut all = vec![
        format!("Files: {}, below the data root.", data.path),
        match columns || data.columns.is_empty() {
            true => {
                format!(
                    "Columns that a study may read: {}.",
                    or(&data.columns, "none, so no study can use it")
                )
            }
            false => {
                format!(
                    "A study may read {}, named to those who see them.",
                    counted(data.columns.len() as u64, "column")
                )
            }
        },
        format!("Organisations whose studies may use it: {}.", or(&data.peers, "none")),
        format!(
            "Servers that may compute on it, each with a share of the rows: {}.",
            or(&data.servers, "none, so no study that servers compute can use it")
        ),
        format!("Stewards who decide: {}.", or(&data.stewards, "nobody, so nobody can consent")),
        format!("It takes part with {} or more.", counted(data.least_rows, "row")),
        format!(
            "Budget {} (rho) for each viewer, for ever, kept under the name {}.",
            shown(&data.budget),
            data.lineage
        ),
    ];
    if let Some((days, rho)) = &data.period {
        all.push(format!("Of that at most {} in any {}.", shown(rho), counted(*days, "day")));
    }
    all.push(match data.delta_places {
        Some(places) => format!("All deltas together may come to 1e-{places} for each viewer."),
        None => "No study that has a delta may use it, so none that shows sizes of a match.".to_owned(),
    });
    all.push(
        match data.changes_allowed {
            true => "A run may go on with data that changed since consent.",
            false => "Data that changed since consent go back to the steward.",
        }
        .to_owned(),
    );
    if data.salt.is_some() {
        all.push("It has the salt of studies that servers match.".to_owned());
    }
    if data.two_person {
        all.push("Two stewards must agree.".to_owned());
    }
    let keys: Vec<String> = data.steward_keys.iter().map(ToString::to_string).collect();
    all.push(match keys.is_empty() {
        true => "Consents take no key but the organisation's: who is root on this machine can give them."
            .to_owned(),
        false => format!("Each consent is signed by a steward's own key, too: {}.", keys.join(" or ")),
    });
    all
}

fn studies(policy: &ServicePolicy) -> Vec<String> {
    let mut all = vec![match policy.kinds.is_empty() {
        true => "No kind of study is allowed.".to_owned(),
        false => format!("Allowed kinds: {}.", policy.kinds.join(", ")),
    }];
    let hashes =
        |list: &[study::StudyHash]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if !policy.studies.is_empty() {
        all.push(format!("Of these only the studies {}.", hashes(&policy.studies)));
    }
    if !policy.auto.is_empty() {
        let one = |auto: &AutoStudy| match &auto.data {
            Some(data) => format!("{} with {data}", auto.study),
            None => format!("{} with the only data set, or as a server without data", auto.study),
        };
        all.push(format!(
            "Without a steward, once: {}. Budget and rules hold for them, too.",
            policy.auto.iter().map(one).collect::<Vec<_>>().join(", ")
        ));
    }
    all.push(match &policy.max_rho {
        Some(rho) => format!("A study may spend at most {} (rho) for each viewer.", shown(rho)),
        None => "No study may spend anything: there is no max_rho.".to_owned(),
    });
    all.push(match policy.max_delta_places {
        Some(places) => format!("A study may have a delta of at most 1e-{places}."),
        None => "No study may have a delta: there is no max_delta.".to_owned(),
    });
    all.push(format!(
        "At most {}; every group has at least {}.",
        counted(policy.max_cells, "cell"),
        counted(policy.minimum_group, "row")
    ));
    all.push(
        match policy.allow_exact {
            true => "Exact results may be revealed, without noise.",
            false => "Nothing is revealed without noise.",
        }
        .to_owned(),
    );
    all.push(
        match policy.without_dummies {
            true => "A match may show exact sizes.",
            false => "A match hides exact sizes behind made-up rows.",
        }
        .to_owned(),
    );
    all.push(format!(
        "Where noise is checked by cut-and-choose, there are {} candidates or more.",
        count(policy.candidates)
    ));
    all.extend(policy.quiet_hours.iter().map(|hours| format!("No run begins {hours}.")));
    all.push(match policy.max_jobs {
        0 => "No run begins, and what was agreed on waits: max_jobs is 0.".to_owned(),
        most => {
            format!("At most {} at once, with {} together.", counted(most, "run"), binary(policy.jobs_memory))
        }
    });
    all.push(match policy.longest_run {
        Some(seconds) => format!("A run is ended after {}.", counted(seconds / 60, "minute")),
        None => "A run is ended after ten times what it is expected to take, and an hour.".to_owned(),
    });
    all
}

fn people(policy: &ServicePolicy) -> Vec<String> {
    let mut all = vec![
        match policy.separate_duties {
            true => "Who proposes a study does not consent to it, and nobody changes their own roles.",
            false => {
                "One person may propose and consent, and change their own roles: duties are not separate."
            }
        }
        .to_owned(),
    ];
    all.push(
        match policy.consent_by_token {
            true => "Programs may consent and refuse by the tokens of stewards, unless two have to decide.",
            false => "No program consents or refuses: people do.",
        }
        .to_owned(),
    );
    all.push(match policy.second_step.is_empty() {
        true => "A second step at sign-in is everybody's own choice.".to_owned(),
        false => format!("A second step at sign-in is asked of: {}.", policy.second_step.join(", ")),
    });
    if let Some(program) = policy.notify.first() {
        all.push(format!("People are told by {program}."));
    }
    all
}

fn kept(keep: &KeepRule) -> Vec<String> {
    let folder = keep.folder.as_ref().map_or_else(String::new, |folder| folder.display().to_string());
    let line = |what: &str, days: Option<u64>, how: &str| match days {
        None => format!("{what} are kept for ever."),
        Some(days) => {
            let days = counted(days, "day");
            format!("{what} older than {days} are written into {folder}, {how}, and then taken away.")
        }
    };
    vec![
        line("Entries of the audit log", keep.log_days, "signed, with the ledger and all statements"),
        line("Reports", keep.reports_days, "as JSON lines"),
        "Statements and the privacy ledger are kept for ever.".to_owned(),
    ]
}

//! Every address, what it takes and what it gives.

use super::door::{ApiRoute, file, get, send};
use super::{acts, drafts, here, rehearsals, studies};
use crate::store::TokenScope::{self, Audit, Budget, Consent, Data, Operate, Propose, Reports, Run, Studies};
use axum::http::Method;
use base::limits::STUDY_BYTES;

/// A study in JSON: each of its characters is two, where it has to be.
const STUDY_BODY: usize = 2 * STUDY_BYTES;
const ANY: &[TokenScope] = &[];
/// Who proposed something takes it back, as does who decides.
const PROPOSE_OR_CONSENT: &[TokenScope] = &[Propose, Consent];
const LOG: &[(&str, &str)] = &[
    ("actor", "who"),
    ("action", "what, by its first words"),
    ("subject", "to what: an account, or a study's hash"),
    ("from", "from this day on, 2026-11-27"),
    ("until", "to this day"),
];
const LOG_PAGE: &[(&str, &str)] =
    &[LOG[0], LOG[1], LOG[2], LOG[3], LOG[4], ("after", "entries below this number")];

/// All of them.
pub fn table() -> Vec<ApiRoute> {
    let mut all = of_studies();
    all.extend(of_drafts());
    all.extend(of_here());
    all
}

fn post(path: &'static str) -> (Method, &'static str) {
    (Method::POST, path)
}

fn of_studies() -> Vec<ApiRoute> {
    const LIST: &[(&str, &str)] = &[
        ("state", "of this state alone"),
        ("peer", "of this organisation alone"),
        ("open", "`yes`: those that are not over"),
        ("after", "`next` of the list before"),
    ];
    const WHICH: &[(&str, &str)] = &[("proposal", "this proposal of the study, not the one that stands")];
    const SAID: &[(&str, &str)] = &[WHICH[0], LIST[3]];
    const ROWS: &[(&str, &str)] =
        &[WHICH[0], ("rows", "rows of both sides, in the study's order: 50000,40000")];
    vec![
        get("/me", ANY, "Says whose token this is.", here::me),
        get("/studies", &[Studies], "Lists studies, the newest first.", studies::list).asking(LIST),
        get("/studies/{hash}", &[Studies], "Says how a study stands.", studies::one).asking(WHICH),
        get(
            "/studies/{hash}/statements",
            &[Studies],
            "Lists what was said about it, the newest first.",
            studies::statements,
        )
        .asking(SAID),
        get("/studies/{hash}/summary", &[Studies], "Says what it would do.", studies::summary).asking(WHICH),
        get("/studies/{hash}/plan", &[Studies], "Says what it takes with so many rows.", studies::plan)
            .asking(ROWS),
        get(
            "/studies/{hash}/rehearsal",
            &[Studies],
            "Shows what came of its rehearsal on made-up rows.",
            rehearsals::of_study,
        ),
        send(
            post("/studies/{hash}/rehearse"),
            PROPOSE_OR_CONSENT,
            "Tries it on made-up rows, and charges nothing.",
            rehearsals::begin,
        ),
        get("/studies/{hash}/run", &[Run], "Says how its runs go.", studies::course).asking(WHICH),
        file(
            "/studies/{hash}/report",
            &[Reports],
            "Gives its report: as JSON, as a page (`as=html`) or its numbers (`as=csv`).",
            &["application/json", "text/html", "text/csv"],
            studies::report,
        )
        .asking(&[("as", "`json`, `html` or `csv`")]),
        file(
            "/studies/{hash}/report/{file}",
            &[Reports],
            "Gives a file of its report, of those that its page lists: figures as PNG and SVG, too.",
            &["application/octet-stream", "image/png", "image/svg+xml"],
            studies::report_file,
        ),
        send(post("/studies/{hash}/consent"), &[Consent], "Consents to it.", acts::consent),
        send(post("/studies/{hash}/refuse"), &[Consent], "Refuses it.", acts::refuse),
        send(post("/studies/{hash}/withdraw"), PROPOSE_OR_CONSENT, "Takes it back.", acts::withdraw),
        send(post("/studies/{hash}/notes"), PROPOSE_OR_CONSENT, "Writes to the others.", acts::note),
        send(post("/studies/{hash}/start"), &[Run], "Lets its next run begin.", acts::start),
        send(post("/studies/{hash}/stop"), &[Run], "Stops its run.", acts::stop),
    ]
}

fn of_drafts() -> Vec<ApiRoute> {
    vec![
        get("/drafts", &[Propose], "Lists the account's drafts.", drafts::list),
        send(post("/drafts"), &[Propose], "Keeps a draft.", drafts::add).up_to(STUDY_BODY),
        get("/drafts/{id}", &[Propose], "Shows a draft.", drafts::one),
        send((Method::PUT, "/drafts/{id}"), &[Propose], "Keeps another text of it.", drafts::change)
            .up_to(STUDY_BODY),
        send((Method::DELETE, "/drafts/{id}"), &[Propose], "Drops it.", drafts::drop_one),
        get("/drafts/{id}/preview", &[Propose], "Says what it would do.", drafts::preview),
        get(
            "/drafts/{id}/rehearsal",
            &[Propose],
            "Shows what came of its rehearsal on made-up rows.",
            rehearsals::of_draft,
        ),
        send(
            post("/drafts/{id}/rehearse"),
            &[Propose],
            "Tries it on made-up rows, and charges nothing.",
            rehearsals::begin_draft,
        ),
        send(post("/drafts/{id}/propose"), &[Propose], "Signs it and sends it.", drafts::propose),
    ]
}

fn of_here() -> Vec<ApiRoute> {
    vec![
        get("/budget", &[Budget], "Says what is left of budgets.", here::budgets),
        get("/budget/{name}/{peer}", &[Budget], "The same of one data set and viewer.", here::budget),
        get("/data", &[Data], "Lists data sets.", here::sets),
        get("/data/{name}", &[Data], "Says what the last check of one found.", here::set),
        send(post("/data/{name}/check"), &[Data], "Begins to check its files.", here::check),
        get("/peers", &[Operate], "Lists other organisations and links to them.", here::peers),
        get("/peers/{name}", &[Operate], "Shows one.", here::peer),
        send(post("/peers/{name}/test"), &[Operate], "Tests whether it can be reached.", here::test),
        send(
            post("/peers/{name}/pause"),
            &[Operate],
            "Pauses its link; a person ends the pause.",
            here::pause,
        ),
        get("/policy", &[Operate], "Says what the organisation allows.", here::rules),
        get("/audit", &[Audit], "Lists entries of the audit log, the newest first.", here::log)
            .asking(LOG_PAGE),
        send(post("/audit/verify"), &[Audit], "Computes its chain anew.", here::verify),
        file(
            "/audit/export",
            &[Audit],
            "Gives its entries as JSON lines, at most 100,000, the newest.",
            &["application/x-ndjson"],
            here::export,
        )
        .asking(LOG),
    ]
}

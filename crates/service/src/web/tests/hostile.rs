//! Whatever another organisation writes is text, in each place where it can write and on each page that shows
//! it.

use super::*;
use study::StudyFile;

/// What would be more than text somewhere: in HTML, in an attribute, an address, a style, a script, a
/// spreadsheet, a terminal, a template, an entity, or to eyes.
const HOSTILE: [&str; 30] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "\" autofocus onfocus=\"alert(1)",
    "</title><script>alert(1)</script>",
    "</textarea><iframe src=//evil.example>",
    "</pre></details><form action=//evil.example>",
    "</option></select><object data=x>",
    "--><base href=//evil.example>",
    "<!--",
    "<![CDATA[<b>",
    "]]><script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;",
    "&#x3c;img src=x&#x3e;",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "<a href=javascript:alert(1)>click</a>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//evil.example>",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}",
    "=HYPERLINK(1)<u>",
    "%3Cscript%3E",
    "\\u003cscript\\u003e",
    "paid \u{202e}on\u{2066} <b>",
    "no\u{200b}thing\u{feff} <i>",
    "\u{1f468}\u{200d}\u{e0041} <u>",
];
/// A peer has nine open proposals at most here.
const AT_ONCE: usize = 6;

/// A study in which everything is said that a lift study of two can say.
fn whole() -> String {
    let text = include_str!("../../../../../examples/lift.toml");
    let lines = text.lines().map(|line| {
        let said = ["# impressions ", "# breakdown ", "# cohort "].iter().any(|key| line.starts_with(key));
        if said { line.trim_start_matches("# ") } else { line }
    });
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let constant = "value       = { constant = 1 }";
    assert!(text.contains(constant));
    text.replace(constant, "value = { column = \"amount\", type = \"u32\", unit = \"EUR\", scale = 100 }")
}

/// In quotes, as TOML and JSON both read it.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text")
}

/// Whether it is a study of which pages tell.
fn is_taken(text: &str) -> bool {
    StudyFile::parse("the study", text).is_ok()
        && crate::told::tell(text, "", &crate::reckoned::ReckonedFor::default()).is_ok()
}

/// A study with what is hostile in each text that takes it; how many do.
fn spoiled(text: &str, hostile: &str) -> (String, usize) {
    // Where its texts are, remarks aside.
    let mut places = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split_once('#').map_or(line, |(code, _)| code);
        let marks: Vec<usize> = code.match_indices('"').map(|(mark, _)| at + mark).collect();
        places.extend(marks.chunks_exact(2).map(|pair| pair[0]..pair[1] + 1));
        at += line.len();
    }
    let (mut spoiled, mut many) = (text.to_owned(), 0);
    // From the end, so that those before stay where they are.
    for (number, place) in places.into_iter().rev().enumerate() {
        let mut tried = spoiled.clone();
        tried.replace_range(place, &quoted(&format!("{hostile} {number}")));
        if is_taken(&tried) {
            (spoiled, many) = (tried, many + 1);
        }
    }
    (spoiled, many)
}

/// The report of a run whose texts of people are hostile.
fn report(hostile: &str) -> Vec<u8> {
    let mut report: serde_json::Value = serde_json::from_slice(REPORT).expect("JSON");
    report["study"]["title"] = hostile.into();
    report["settings"] = hostile.into();
    report["parties"][1]["name"] = hostile.into();
    for part in ["view", "public"] {
        (report[part]["test"], report[part]["control"]) = (hostile.into(), format!("{hostile} 2").into());
    }
    report["inputs"]["identifiers"][0]["name"] = hostile.into();
    serde_json::to_vec(&report).expect("JSON")
}

/// Nothing of a page is anything but ours. That it is well-formed, with nothing in an attribute that runs, is
/// looked at for each page.
fn is_harmless(got: Got, hostile: &str) -> Got {
    let page = got.body.strip_prefix("<!DOCTYPE html>\n").expect("HTML");
    let tree = roxmltree::Document::parse(page).expect("well-formed");
    for node in tree.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        let others = ["img", "iframe", "object", "embed", "base", "style", "u", "i", "template"];
        assert!(!others.contains(&name), "{hostile:?} made <{name}>");
        for address in ["href", "src", "action", "formaction"].iter().filter_map(|at| node.attribute(*at)) {
            let ours = address.starts_with(['/', '#', '?']) && !address.starts_with("//");
            assert!(ours, "{hostile:?} made the address {address}");
        }
        assert!(name != "meta" || node.attribute("http-equiv").is_none(), "{hostile:?}");
    }
    let seen: Vec<char> = page.chars().filter(|c| *c != '\n' && base::is_deceptive(*c)).collect();
    assert!(seen.is_empty(), "{hostile:?} is shown with {seen:?}");
    got
}

/// The last words of what a text becomes on a page.
fn tail(hostile: &str) -> String {
    let escaped = base::clean(hostile).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&#39;")
}

/// All pages that show something of it, before and after it was run or taken back.
async fn looked_at(pair: &Pair, [stella, ana, olga]: [&str; 3], hostile: &str, answers: bool) {
    let ask = |who: &str, path: String| {
        let who = who.to_owned();
        async move { is_harmless(pair.ask(&who, &path).await.is(200), hostile) }
    };
    let (text, many) = spoiled(&whole(), hostile);
    assert!(many >= 10, "{hostile:?} is taken in {many} places alone");
    let keys = ["tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11", "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50"];
    let text = text.replace(keys[0], &pair.own.fingerprint().to_string());
    let text = text.replace(keys[1], &pair.peer.fingerprint().to_string());
    let fields =
        [("as", "file"), ("text", text.as_str()), ("days", "30"), ("note", hostile), ("do", "preview")];
    let preview = pair.act(ana, "/studies/new?as=file", "/studies/new", &fields).await;
    is_harmless(preview.is(200), hostile);
    let (id, path) = pair.proposed_text(&text, &format!("{hostile}\n{hostile}"));
    pair.store.say(pair.they(), &id, Said::Note(hostile.to_owned())).expect("said");
    pair.meet();
    ask(stella, path.clone()).await.says(&tail(hostile));
    for page in ["/", "/studies", "/budget", "/peers", "/peers/hospitals", "/data", "/data/trial"] {
        ask(stella, page.to_owned()).await;
    }
    for page in ["/", "/studies", "/operate", "/audit"] {
        ask(olga, page.to_owned()).await;
    }
    ask(stella, format!("{path}/rehearsal")).await;
    ask(ana, format!("/studies/new?like={}", path.trim_start_matches("/studies/"))).await;
    if answers {
        let warning = serde_json::json!({ "event": "warning", "text": hostile }).to_string();
        let stage = serde_json::json!({ "event": "stage", "name": hostile, "rows": 7 }).to_string();
        pair.answered_with(&id, &report(hostile), &[&stage, &warning]);
        ask(stella, format!("{path}/report")).await.says(&tail(hostile));
    } else {
        let reason = ClosingReason { code: ClosingCode::Other, text: hostile.to_owned() };
        pair.store.say(pair.they(), &id, Said::Withdraw(reason)).expect("said");
        pair.meet();
    }
    for page in [path.clone(), format!("{path}/run"), "/".to_owned(), "/audit".to_owned()] {
        ask(stella, page).await;
    }
}

/// Some of them with each change; all of them take minutes.
#[test]
fn what_a_peer_writes_is_text_wherever_it_writes() {
    let some: Vec<&str> = HOSTILE.into_iter().step_by(8).collect();
    are_text(&some);
}

#[test]
#[ignore = "minutes: make soak"]
fn all_that_a_peer_writes_is_text_wherever_it_writes() {
    are_text(&HOSTILE);
}

fn are_text(all: &[&str]) {
    asking(async {
        for some in all.chunks(AT_ONCE) {
            let pair = Pair::new("");
            let stella = pair.person("stella", &["steward"]);
            let [ana, olga] = [("ana", "analyst"), ("olga", "operator")].map(|(n, r)| pair.person(n, &[r]));
            for (number, hostile) in some.iter().enumerate() {
                let [us, them] = [&pair.own, &pair.peer].map(|key| key.fingerprint());
                pair.house.links().stands(&us, them, &base::clean(hostile), hostile);
                looked_at(&pair, [&stella, &ana, &olga], hostile, number % 2 == 0).await;
            }
        }
    });
}

#[test]
fn names_of_organisations_and_studies_are_names() {
    for hostile in HOSTILE {
        let name = whole().replace("name   = \"polio-1954\"", &format!("name = {}", quoted(hostile)));
        assert!(StudyFile::parse("the study", &name).is_err(), "a study is named {hostile:?}");
        let party = whole().replace("[party.hospitals]", &format!("[party.{}]", quoted(hostile)));
        assert!(StudyFile::parse("the study", &party).is_err(), "a party is named {hostile:?}");
    }
}

//! What the service of an organisation takes: times of its pages over a store of many studies, many people
//! at once, and its memory. Two real daemons over TLS; the store is filled by the store's own functions.
//!
//! `cargo run --release -p service --example service_bench -- tacit=target/release/tacit [NAME=NUMBER ...]`,
//! where names are `studies`, `requests` (of each page), `entries` (of the log), `seconds` (that 200 people
//! look at a page a second) and `rest` (seconds of peace before memory is read).

mod client;
mod fill;
mod load;
mod sides;

use client::{Page, Reply};
use fill::{Filled, RunSample, fill};
use load::{Streams, Times, a_page_a_second, memory, one_by_one, processor_time, sign_ins_at_once};
use sides::Sides;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use study::StudyHash;

/// Accounts; each has the roles of analyst and steward.
pub const PEOPLE: usize = 20;
/// Sessions of each account, of at most ten.
const SESSIONS: usize = 10;
const SCOPES: [&str; 2] = ["studies", "audit"];

/// The account of a person.
pub fn name(person: usize) -> String {
    format!("person-{person:02}")
}

fn password(person: usize) -> String {
    format!("wandering copper teapot {person}")
}

/// A line of the table.
fn row(what: &str, measured: &str, bound: &str, holds: bool) {
    println!("| {what} | {measured} | {bound} | {} |", if holds { "yes" } else { "NO" });
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn bounded(what: &str, times: &Times, most_ms: f64, more: &str) {
    let (half, nearly_all) = (ms(times.of_thousand(500)), ms(times.of_thousand(990)));
    let measured = format!("p50 {half:.1} ms, p99 {nearly_all:.1} ms{more}");
    row(what, &measured, &format!("p99 < {most_ms:.0} ms"), nearly_all < most_ms);
}

fn megabytes(what: &str, [all, own]: [f64; 2], most: f64) {
    let measured = format!("{all:.1} MB, {own:.1} without files");
    row(what, &measured, &format!("< {most:.0} MB"), all < most);
}

fn loads() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(", ")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let set: BTreeMap<&str, &str> =
        arguments.iter().map(|text| text.split_once('=').expect("NAME=VALUE")).collect();
    let number = |name: &str, usual: u64| set.get(name).map_or(usual, |text| text.parse().expect("a number"));
    let tacit = Path::new(set.get("tacit").copied().unwrap_or("target/release/tacit"));
    let (studies, entries) = (number("studies", 10_000), number("entries", 100_000));
    let people: Vec<String> = (0..PEOPLE).map(name).collect();
    let mut sides = Sides::new(tacit, &people);
    (0..2).for_each(|side| _ = sides.start(side));
    let sample = RunSample::of(&sides.home(0).join("service.db"), &sides.run_a_study("The first of them"));
    sides.stop(0);
    let begun = Instant::now();
    let filled = fill(&sides, studies, entries, &sample);
    let bytes = std::fs::metadata(sides.home(0).join("service.db")).expect("a store").len();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "{studies} studies ({} answered, {} wait for the peer, {} for a steward; a report with its lines has \
         {} KB), a store of {} MB, filled in {:.0} s; {cores} cores; load before {}\n",
        filled.answered.len(),
        filled.waiting.len(),
        filled.to_decide.len(),
        sample.bytes() / 1_000,
        bytes / 1_000_000,
        begun.elapsed().as_secs_f64(),
        loads(),
    );
    println!("| what | measured | must be | holds |\n|---|---|---|---|");
    let page = sides.start(0);
    let bench = Bench { sides, page, filled, requests: number("requests", 1_000) as usize };
    bench.run(number("seconds", 30) as u32, Duration::from_secs(number("rest", 60)), studies);
    println!("\nload after {}", loads());
}

struct Bench {
    sides: Sides,
    page: Page,
    filled: Filled,
    requests: usize,
}

impl Bench {
    fn memory(&self) -> [f64; 2] {
        memory(self.sides.process())
    }

    fn run(&self, seconds: u32, rest: Duration, studies: u64) {
        std::thread::sleep(rest.min(Duration::from_secs(10)));
        megabytes("memory, idle", self.memory(), 40.0);
        let tokens = self.people();
        let cookies = self.sign_ins();
        megabytes("memory after 220 sign-ins", self.memory(), 40.0);
        (0..3).for_each(|run| _ = self.sides.run_a_study(&format!("One of three: {run}")));
        megabytes("memory after 3 runs", self.memory(), 40.0);
        self.pages(&cookies, studies);
        self.programs(&tokens);
        megabytes("memory after all pages", self.memory(), 40.0);
        std::thread::sleep(rest);
        megabytes(&format!("memory, {} s after them", rest.as_secs()), self.memory(), 40.0);
        self.crowd(&cookies, seconds);
        self.streams(&cookies);
        self.at_once(&cookies);
        self.unknown_names();
        std::thread::sleep(rest);
        megabytes(&format!("memory, {} s after all that", rest.as_secs()), self.memory(), 40.0);
        self.log(&tokens[0]);
    }

    /// Accounts, and a token of each.
    fn people(&self) -> Vec<String> {
        let add = |person: usize| {
            let name = name(person);
            let roles = [name.as_str(), "--role", "analyst", "--role", "steward"];
            let added = self.sides.tacit(0, &["account", "add"], &roles);
            let link = added["link"].as_str().expect("a link");
            let path = link.split_once("/enter/").expect("a link").1;
            let fields = [("new", password(person))];
            let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
            let mut browser = self.page.connect(SESSIONS * person);
            browser.send(&format!("/enter/{path}"), None, &fields).is(303);
            let mut more = vec![name.as_str(), "bench"];
            SCOPES.iter().for_each(|scope| more.extend(["--scope", scope]));
            let token = self.sides.tacit(0, &["token", "add"], &more);
            format!("Bearer {}", token["token"].as_str().expect("a token"))
        };
        (0..PEOPLE).map(add).collect()
    }

    /// Sessions, one sign-in after the other.
    fn sign_ins(&self) -> Vec<String> {
        let mut times = Times::default();
        let begin = |client: usize| {
            let person = client / SESSIONS;
            let (name, password) = (name(person), password(person));
            let asked = Instant::now();
            let fields = [("name", name.as_str()), ("password", password.as_str())];
            let reply = self.page.connect(client).send("/sign-in", None, &fields).is(303);
            times.take(asked.elapsed());
            reply.cookie().expect("a session")
        };
        let cookies = (0..PEOPLE * SESSIONS).map(begin).collect();
        let half = ms(times.of_thousand(500));
        let measured = format!("p50 {half:.0} ms, p99 {:.0} ms", ms(times.of_thousand(990)));
        row("one sign-in, its connection with it", &measured, "50 to 500 ms", (50.0..500.0).contains(&half));
        cookies
    }

    fn timed(&self, what: &str, headers: &[(&str, String)], paths: &[String]) {
        self.timed_for(self.requests, what, headers, paths);
    }

    fn timed_for(&self, requests: usize, what: &str, headers: &[(&str, String)], paths: &[String]) {
        let before = processor_time(self.sides.process());
        let times = one_by_one(&self.page, headers, paths, requests);
        let taken = processor_time(self.sides.process()).saturating_sub(before);
        let each = ms(taken) / requests as f64;
        bounded(what, &times, 50.0, &format!(", {each:.1} ms of CPU"));
    }

    fn pages(&self, cookies: &[String], studies: u64) {
        let headers: Vec<_> = cookies.iter().map(|cookie| ("Cookie", cookie.clone())).collect();
        let of = |all: &[StudyHash], page: &str| -> Vec<String> {
            all.iter()
                .step_by((all.len() / 100).max(1))
                .map(|hash| format!("/studies/{}{page}", hash.full()))
                .collect()
        };
        let middle = format!("/studies?after={}", studies / 2);
        for (what, path) in [
            ("home", "/"),
            ("list of studies", "/studies"),
            ("the list in the middle", middle.as_str()),
            ("the list, closed with one peer", "/studies?state=closed&peer=clinic"),
            ("the list, with a peer of few", "/studies?peer=advertiser"),
            ("the list, of a state that none has", "/studies?state=frozen&open=yes"),
            ("budget", "/budget"),
            ("audit log", "/audit"),
            ("audit log, by person", "/audit?actor=person-07"),
            ("audit log, by an action of few", "/audit?action=account+added"),
        ] {
            self.timed(what, &headers, &[path.to_owned()]);
        }
        let answered = of(&self.filled.answered, "");
        self.timed_for(answered.len(), "a study that nobody looked at before", &headers, &answered);
        self.timed("the same again", &headers, &answered[..answered.len().min(100)]);
        self.timed("a study to decide", &headers, &of(&self.filled.to_decide, ""));
        self.timed("its run", &headers, &of(&self.filled.answered, "/run"));
        self.timed("a report", &headers, &of(&self.filled.answered, "/report"));
    }

    fn programs(&self, tokens: &[String]) {
        let headers: Vec<_> = tokens.iter().map(|token| ("Authorization", token.clone())).collect();
        self.timed("list of studies for programs", &headers, &["/api/v1/studies".to_owned()]);
    }

    /// What people look at in turn.
    fn usual(&self) -> Vec<String> {
        let study = |at: usize, page: &str| {
            let all = &self.filled.answered;
            format!("/studies/{}{page}", all[at % all.len()].full())
        };
        let mut all = Vec::new();
        for at in 0..20 {
            all.extend(["/".to_owned(), "/studies".to_owned(), study(at, ""), study(7 * at, "/report")]);
            all.push("/budget".to_owned());
        }
        all
    }

    fn crowd(&self, cookies: &[String], seconds: u32) {
        let before = processor_time(self.sides.process());
        let crowd = a_page_a_second(&self.page, cookies, &self.usual(), seconds);
        let taken = processor_time(self.sides.process()).saturating_sub(before);
        let busy = 100.0 * taken.as_secs_f64() / f64::from(seconds);
        let what = format!("{} sessions at a page a second, {seconds} s", cookies.len());
        bounded(&what, &crowd.times, 100.0, &format!(", {busy:.0} % of a core"));
        row("their errors", &crowd.errors.to_string(), "0", crowd.errors == 0);
    }

    /// Streams hear of notes that somebody writes.
    fn streams(&self, cookies: &[String]) {
        let path = self.sides.propose("About which notes are written");
        let before = self.memory();
        let streams = Streams::open(&self.page, cookies);
        let mut last = Duration::ZERO;
        let mut browser = self.page.connect(0);
        for note in 0..10 {
            let cookie = cookies[SESSIONS * note].as_str();
            let shown = browser.ask("GET", &path, &[("Cookie", cookie)], "").is(200);
            let begun = Instant::now();
            write_note(&mut browser, &shown, (&path, cookie), &format!("Note {note}."));
            last = last.max(streams.last_heard(begun).expect("every stream hears of it"));
            std::thread::sleep(Duration::from_secs(1));
        }
        let what = format!("{} streams of events, 10 events: the last hears of one", cookies.len());
        row(&what, &format!("after {:.0} ms", ms(last)), "< 1000 ms", last < Duration::from_secs(1));
        let after = self.memory();
        let taken = [after[0] - before[0], after[1] - before[1]];
        megabytes("memory that they take", taken, 20.0);
    }

    fn at_once(&self, cookies: &[String]) {
        let people: Vec<_> = (0..PEOPLE / 2).map(|person| (name(person), password(person))).collect();
        let others = (&cookies[cookies.len() / 2..], &self.usual()[..]);
        let (let_in, put_off, times) = sign_ins_at_once(&self.page, &people, 40, others);
        let what = format!("pages of others while 40 sign in at once ({let_in} let in, {put_off} put off)");
        bounded(&what, &times, 50.0, "");
    }

    /// Wrong passwords of names that there are, and of others, by turns.
    fn unknown_names(&self) {
        let mut times = [Times::default(), Times::default()];
        for number in 0..2 * PEOPLE {
            for (kind, name) in [name(number % PEOPLE), format!("nobody-{number}")].iter().enumerate() {
                // An address waits after thirty wrong ones.
                let mut browser = self.page.connect(load::FREE + 50 * (1 + number / 10));
                let fields = [("name", name.as_str()), ("password", "wandering copper kettle")];
                let asked = Instant::now();
                browser.send("/sign-in", None, &fields).is(401);
                times[kind].take(asked.elapsed());
            }
        }
        let [known, unknown] = times.map(|times| ms(times.of_thousand(500)));
        let measured = format!("{:.2} ({unknown:.0} and {known:.0} ms)", unknown / known);
        let what = "wrong passwords: unknown names over known ones, medians";
        row(what, &measured, "0.8 to 1.25", (0.8..1.25).contains(&(unknown / known)));
    }

    fn log(&self, token: &str) {
        let mut browser = self.page.connect(0);
        let asked = Instant::now();
        let kind = ("Content-Type", "application/json");
        let reply = browser.ask("POST", "/api/v1/audit/verify", &[("Authorization", token), kind], "{}");
        let (time, reply) = (asked.elapsed(), reply.is(200));
        let found: serde_json::Value = serde_json::from_str(&reply.body).expect("JSON");
        assert_eq!(found["fits"], true, "{found}");
        let what = format!("the chain of {} entries, verified on the page", found["last"]);
        let five = Duration::from_secs(5);
        row(&what, &format!("{:.1} s", time.as_secs_f64()), "< 5 s", time < five);
        let time = self.sides.verify();
        let what = "`tacit ledger verify --service`: the same, and all that was signed";
        row(what, &format!("{:.1} s", time.as_secs_f64()), "", true);
    }
}

fn write_note(browser: &mut client::Browser, shown: &Reply, (path, cookie): (&str, &str), note: &str) {
    let to = format!("{path}/note");
    let (word, proposal) = shown.form(&to);
    let fields = [("note", note), ("csrf", word.as_str()), ("proposal", proposal.as_str())];
    browser.send(&to, Some(cookie), &fields).is(303);
}

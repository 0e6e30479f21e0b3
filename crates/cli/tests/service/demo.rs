//! `tacit service demo` as a newcomer meets it: its links, the pages behind them up to the report of both
//! sides, and its end.

use super::house::{House, OURS, Reply, form};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything: a machine may be slow.
const PATIENCE: Duration = Duration::from_secs(300);

/// The command while it runs.
struct ServiceDemo {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl ServiceDemo {
    fn begin(more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        let command = command.args(["service", "demo", "--scale", "20"]).args(more);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("tacit starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, out }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    /// Ends it as Ctrl-C or `kill` do; what it still says.
    fn end(mut self, by: Signal) -> String {
        kill_process(Pid::from_child(&self.child), by).expect("it runs");
        let mut said = String::new();
        self.out.read_to_string(&mut said).expect("text");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        said
    }
}

impl Drop for ServiceDemo {
    fn drop(&mut self) {
        // Of one that has ended already there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A browser without a script at one of the two sides.
struct Tab {
    host: String,
    cookie: RefCell<Option<String>>,
}

impl Tab {
    /// Goes in by a link, with one click.
    #[track_caller]
    fn enter(told: &Value, side: usize, account: &str) -> Self {
        let people = told["organisations"][side]["people"].as_array().expect("people");
        let person = people.iter().find(|person| person["account"] == account).expect("the role");
        let link = person["link"].as_str().expect("a link");
        let (host, path) = link.strip_prefix("http://").expect("plain").split_once('/').expect("a path");
        let tab = Self { host: host.to_owned(), cookie: RefCell::new(None) };
        let page = tab.get(&format!("/{path}")).is(200).says("Sign in").never_says("New password");
        assert!(page.cookie().is_none(), "a look at a link uses nothing up");
        let reply = tab.click(&page, &format!("/{path}"), &[]).is(303);
        let set = reply.header("set-cookie").expect("a cookie");
        let name = format!("tacit-demo-{}=", tab.host.rsplit_once(':').expect("a port").1);
        assert!(set.starts_with(&name) && set.contains("HttpOnly; SameSite=Strict"), "{set}");
        assert!(!set.contains("Secure"), "some browsers take no such cookie without TLS: {set}");
        tab
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        text += &format!("Content-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text += &format!("Host: {}\r\n", self.host);
        }
        let cookie = self.cookie.borrow().clone();
        let cookie = cookie.as_deref().map(|cookie| ("Cookie", cookie));
        headers
            .iter()
            .copied()
            .chain(cookie)
            .for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        let port = self.host.rsplit_once(':').expect("a port").1.parse().expect("a port");
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let reply = Reply::read(answer);
        if let Some(cookie) = reply.cookie() {
            self.cookie.replace(Some(cookie));
        }
        reply
    }

    fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], "")
    }

    /// Sends the form to `action` of a page as it stands there.
    #[track_caller]
    fn click(&self, page: &Reply, action: &str, more: &[(&str, &str)]) -> Reply {
        let tree = page.body.split_once('\n').expect("a first line").1;
        let tree = roxmltree::Document::parse(tree).unwrap_or_else(|e| panic!("{e}:\n{tree}"));
        let is = |node: roxmltree::Node<'_, '_>, name: &str| node.tag_name().name() == name;
        let mut forms = tree.descendants().filter(|node| is(*node, "form"));
        let found = forms.find(|form| form.attribute("action") == Some(action));
        let found = found.unwrap_or_else(|| panic!("no form to {action}: {}", page.body));
        let mut fields: Vec<(&str, &str)> = more.to_vec();
        for field in found.descendants() {
            let Some(name) = field.attribute("name").filter(|_| !is(field, "button")) else { continue };
            if field.attribute("type") == Some("checkbox") && !field.has_attribute("checked") {
                continue;
            }
            let value = match field.tag_name().name() {
                "textarea" => field.text().unwrap_or(""),
                "select" => {
                    let options = || field.descendants().filter(|node| is(*node, "option"));
                    let chosen = options().find(|option| option.has_attribute("selected"));
                    chosen.or_else(|| options().next()).and_then(|o| o.attribute("value")).unwrap_or("")
                }
                _ => field.attribute("value").unwrap_or(""),
            };
            fields.push((name, value));
        }
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        self.ask("POST", action, &[kind, OURS], &form(&fields))
    }

    /// Looks at a page until it says something.
    #[track_caller]
    fn until(&self, path: &str, said: &str) -> Reply {
        let until = Instant::now() + PATIENCE;
        loop {
            let page = self.get(path).is(200);
            if page.body.contains(said) {
                return page;
            }
            assert!(Instant::now() < until, "{path} never says {said:?}: {}", page.body);
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// The path of a link on a page that begins so.
    fn link(page: &Reply, begins: &str) -> String {
        let link = page.body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let mut links = link.filter(|path| path.starts_with(begins));
        links.next().unwrap_or_else(|| panic!("no link to {begins}: {}", page.body)).to_owned()
    }

    /// Consents to what waits on the first page.
    #[track_caller]
    fn consent(&self) -> String {
        let path = Self::link(&self.until("/", "Decide: "), "/studies/");
        let page = self.get(&path).is(200).says(" will learn");
        self.click(&page, &format!("{path}/consent"), &[]).is(303);
        self.until(&path, "consents until");
        path
    }
}

fn is_there(process: &Value) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

#[test]
fn a_newcomer_takes_the_study_from_its_draft_to_both_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("two").display().to_string();
    let mut demo = ServiceDemo::begin(&["--json", "--dir", &dir]);
    let told = demo.line();
    let ana = Tab::enter(&told, 0, "analyst");
    let draft = Tab::link(&ana.get("/studies/new").is(200), "/studies/new?draft=");
    let page = ana.click(&ana.get(&draft).is(200), "/studies/new", &[("do", "preview")]).is(200);
    let page = page.says("What hospitals will learn");
    let proposed = ana.click(&page, "/studies/new", &[("do", "propose")]).is(303);
    let stewards = [0, 1].map(|side| Tab::enter(&told, side, "steward"));
    let paths = stewards.each_ref().map(Tab::consent);
    assert_eq!(paths[0], proposed.header("location").expect("a place"));
    assert_eq!(paths[0], paths[1]);
    let reports = stewards.each_ref().map(|steward| {
        steward.until(&paths[0], "Answered: all parties have the result.");
        let report = steward.get(&format!("{}/report", paths[0])).is(200);
        let headline = report.body.split_once("class=\"headline\">").expect("a headline").1;
        headline.split_once('<').expect("it ends").0.to_owned()
    });
    assert_eq!(reports[0], reports[1], "both read the same number");
    ana.get(&format!("{}/report", paths[0])).is(200);
    // Roles and forms hold as at a service of an organisation.
    Tab::enter(&told, 1, "operator").get(&format!("{}/report", paths[0])).is(403);
    ana.ask("GET", "/", &[("Host", "evil.example")], "").is(421);
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    ana.ask("POST", "/sign-out", &[kind, ("Sec-Fetch-Site", "cross-site")], "").is(403);
    let processes: Vec<&Value> =
        told["organisations"].as_array().expect("two").iter().map(|side| &side["process"]).collect();
    assert!(processes.iter().all(|process| is_there(process)));
    let said: Value = serde_json::from_str(&demo.end(Signal::INT)).expect("JSON");
    assert!(processes.iter().all(|process| !is_there(process)), "nothing goes on");
    assert_eq!(said["remains"], told["folder"]);
    for side in ["registry", "hospitals"] {
        let home = Path::new(&dir).join(side);
        let log = std::fs::read_to_string(home.join("log")).expect("a log");
        assert_eq!(log, "", "{side}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        let done = command.args(["ledger", "verify"]).arg(home.join("own.ledger"));
        let done = done.arg("--service").arg(&home).output().expect("tacit starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    ends_with_its_pipe(&Path::new(&dir).join("registry/service.toml"));
}

/// A service of a demo ends when the pipe closes that whoever started it holds.
fn ends_with_its_pipe(rules: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
    let command = command.args(["service", "run", "--demo", "--json"]).arg(rules);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tacit starts");
    let mut pipe = child.stdin.take().expect("piped");
    writeln!(pipe, "a word").expect("told");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert!(line.contains("registry.localhost") && child.try_wait().expect("asked").is_none(), "{line}");
    drop(pipe);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_temporary_folder_goes_with_the_demo_and_the_words_lead_on() {
    let mut demo = ServiceDemo::begin(&[]);
    let mut said = String::new();
    while !said.contains("Ctrl-C ends both services.") {
        let read = demo.out.read_line(&mut said).expect("text");
        assert!(read > 0, "it ended: {said}");
    }
    for side in ["registry", "hospitals"] {
        assert!(said.contains(&format!("http://{side}.localhost:")), "{said}");
    }
    assert_eq!(said.matches("/enter/").count(), 5, "the steps and both operators: {said}");
    let folder = said.split_once("Folder: ").expect("a folder").1.split_once(". Ctrl").expect("its end").0;
    assert!(Path::new(folder).join("registry/service.toml").exists(), "{folder}");
    assert!(demo.end(Signal::TERM).contains("temporary folder is removed"));
    assert!(!Path::new(folder).exists());
}

#[test]
fn a_folder_in_use_and_a_service_of_an_organisation_are_no_demo() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("thesis.txt"), "years of work").expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
    let done = command.args(["service", "demo", "--dir"]).arg(folder.path()).output().expect("tacit starts");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && said.contains("holds files already"), "{said}");
    assert!(folder.path().join("thesis.txt").exists());
    let mut house = House::begin("");
    house.kill();
    let done = house.try_tacit(&["run", "--demo"], &[]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && said.contains("without --demo"), "{said}");
}

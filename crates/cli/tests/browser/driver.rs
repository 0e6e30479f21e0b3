//! A browser, driven as people drive it: WebDriver to Debian's chromium, by what `std` has.

use serde_json::{Value, json};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What WebDriver calls an element in its JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How long the browser may take for one thing; it takes milliseconds, unless it never answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Clicks, fields and choices so far.
    done: Cell<u32>,
}

impl Browser {
    /// One that shows pages of so many pixels; none where no driver is installed.
    pub fn open(width: u32) -> Option<Self> {
        let port = base::free_address().ok()?.rsplit(':').next()?.parse().ok()?;
        let mut command = Command::new("chromedriver");
        let command = command.arg(format!("--port={port}")).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().ok()?;
        let mut lines = BufReader::new(driver.stdout.take().expect("piped")).lines();
        lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("started successfully")))?.ok()?;
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self { driver, port, session: String::new(), done: Cell::new(0) };
        let args = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"];
        let (logs, options) = (json!({ "browser": "ALL" }), json!({ "args": args }));
        let wanted = json!({ "browserName": "chrome", "acceptInsecureCerts": true,
            "goog:loggingPrefs": logs, "goog:chromeOptions": options });
        let made = browser.call("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = made["sessionId"].as_str().expect("a session").to_owned();
        let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        browser.devtools("Emulation.setDeviceMetricsOverride", &size);
        Some(browser)
    }

    /// One request to the driver; its answer's value.
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let value = self.try_call(method, path, body);
        assert!(value["error"].is_null(), "{method} {path} {body}: {value}");
        value
    }

    /// The same, where the value may be an error.
    fn try_call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the driver listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).expect("sent");
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("an answer");
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().expect("a number");
                }
                None if line.trim_end().is_empty() => break,
                _ => (),
            }
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text).expect("all of it");
        let answer: Value = serde_json::from_slice(&text).expect("JSON");
        answer["value"].clone()
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        self.call(method, &format!("/session/{}{path}", self.session), body)
    }

    /// A command of the browser's own protocol.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.ask("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    pub fn go(&self, url: &str) {
        self.ask("POST", "/url", &json!({ "url": url }));
    }

    pub fn url(&self) -> String {
        self.ask("GET", "/url", &Value::Null).as_str().expect("text").to_owned()
    }

    pub fn title(&self) -> String {
        self.ask("GET", "/title", &Value::Null).as_str().expect("text").to_owned()
    }

    /// The element of an XPath.
    fn element(&self, path: &str) -> String {
        let found = self.ask("POST", "/element", &json!({ "using": "xpath", "value": path }));
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    /// What the page shows.
    pub fn text(&self) -> String {
        let element = self.element("//body");
        self.ask("GET", &format!("/element/{element}/text"), &Value::Null).as_str().expect("text").to_owned()
    }

    /// The same while another page may be on its way: nothing where none is there.
    pub fn text_by_now(&self) -> String {
        let ask = |method: &str, path: String, body: &Value| {
            self.try_call(method, &format!("/session/{}{path}", self.session), body)
        };
        let body = ask("POST", "/element".to_owned(), &json!({ "using": "xpath", "value": "//body" }));
        let text = |element: &str| ask("GET", format!("/element/{element}/text"), &Value::Null);
        body[ELEMENT].as_str().map(text).and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// How many clicks, fields and choices there were since the last time this was asked.
    pub fn counted(&self) -> u32 {
        self.done.take()
    }

    fn count(&self) {
        self.done.set(self.done.get() + 1);
    }

    /// Clicks the link or button that says so, and waits for the page that comes of it.
    pub fn click(&self, said: &str) {
        self.count();
        let before = self.element("/html");
        let element = self.element(&format!("//*[(self::a or self::button) and normalize-space()='{said}']"));
        self.ask("POST", &format!("/element/{element}/click"), &json!({}));
        let path = format!("/session/{}/element/{before}/name", self.session);
        let until = Instant::now() + PATIENCE;
        while self.try_call("GET", &path, &Value::Null)["error"].is_null() {
            assert!(Instant::now() < until, "{said} leads nowhere");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types into the field with that label.
    pub fn fill(&self, label: &str, text: &str) {
        self.count();
        let element = self.field(label);
        self.ask("POST", &format!("/element/{element}/value"), &json!({ "text": text }));
    }

    fn field(&self, label: &str) -> String {
        self.element(&format!("//*[@id=//label[normalize-space()='{label}']/@for]"))
    }

    /// Ticks the box of that name.
    pub fn tick(&self, name: &str) {
        self.count();
        let element = self.element(&format!("//input[@name='{name}']"));
        self.ask("POST", &format!("/element/{element}/click"), &json!({}));
    }

    /// Chooses what begins so in the list with that label.
    pub fn choose(&self, label: &str, option: &str) {
        self.count();
        let of = format!("//*[@id=//label[normalize-space()='{label}']/@for]");
        let element = self.element(&format!("{of}/option[starts-with(normalize-space(), '{option}')]"));
        self.ask("POST", &format!("/element/{element}/click"), &json!({}));
    }

    /// Presses keys, wherever the focus is.
    pub fn press(&self, keys: &str) {
        let press = |key: char| {
            let key = key.to_string();
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        };
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.ask("POST", "/actions", &json!({ "actions": [keyboard] }));
    }

    /// What has the focus, in its own words.
    pub fn focus(&self) -> String {
        let element = self.ask("GET", "/element/active", &Value::Null);
        let element = element[ELEMENT].as_str().expect("an element").to_owned();
        self.label(&element)
    }

    fn label(&self, element: &str) -> String {
        let said = self.ask("GET", &format!("/element/{element}/computedlabel"), &Value::Null);
        said.as_str().expect("text").to_owned()
    }

    /// Role and name of an element as a screen reader says them.
    pub fn read_aloud(&self, path: &str) -> (String, String) {
        let element = self.element(path);
        let role = self.ask("GET", &format!("/element/{element}/computedrole"), &Value::Null);
        (role.as_str().expect("text").to_owned(), self.label(&element))
    }

    /// What a script gives back.
    pub fn run(&self, script: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// What a script hands to its last argument.
    pub fn run_until_done(&self, script: &str) -> Value {
        self.ask("POST", "/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// What the browser complained about since the last time.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.ask("POST", "/se/log", &json!({ "type": "browser" }));
        let said = |line: &Value| line["message"].as_str().expect("text").to_owned();
        log.as_array().expect("a list").iter().map(said).collect()
    }

    /// A picture of the whole page.
    pub fn picture(&self, file: &Path) {
        let taken = self.devtools("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }));
        std::fs::write(file, from_base64(taken["data"].as_str().expect("data"))).expect("written");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // What is open goes with the session; a driver that is killed leaves it.
        let path = format!("/session/{}", self.session);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.try_call("DELETE", &path, &json!({}))
        }));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let six = |byte: u8| LETTERS.iter().position(|letter| *letter == byte);
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0usize, 0);
    for value in text.bytes().filter_map(six) {
        (held, bits) = ((held << 6 | value) & 0xffff, bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xff) as u8);
        }
    }
    bytes
}

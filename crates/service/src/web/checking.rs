//! Checks of data as child processes: what a check takes and how it may fail are not the service's.

use super::House;
use crate::findings::DataFindings;
use crate::settings::RulesFile;
use base::Error;
use serde_json::json;
use std::collections::HashSet;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What reads data, and how long it may take.
pub const CHECK: ChildRule = ChildRule { what: "check", most: Duration::from_secs(30 * 60) };
/// Checks at a time.
const AT_ONCE: usize = 2;
/// What a child is called in messages, and how long it may take.
#[derive(Clone, Copy)]
pub struct ChildRule {
    /// A word for it.
    pub what: &'static str,
    /// The time after which it is ended.
    pub most: Duration,
}

/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// The data sets that are being checked.
#[derive(Clone, Default)]
pub struct Checking(Arc<Mutex<HashSet<String>>>);

impl Checking {
    /// Whether a data set is being checked.
    pub fn has(&self, data: &str) -> bool {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains(data)
    }

    fn begin(&self, data: &str) -> bool {
        let mut all = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.len() < AT_ONCE && all.insert(data.to_owned())
    }

    fn end(&self, data: &str) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(data);
    }
}

/// What a check came to: what it found, or why it could not look.
pub fn read(found: &str) -> Result<DataFindings, String> {
    let value: serde_json::Value = serde_json::from_str(found).map_err(|e| e.to_string())?;
    match value["error"]["message"].as_str() {
        Some(message) => Err(message.to_owned()),
        None => serde_json::from_value(value).map_err(|e| e.to_string()),
    }
}

/// Starts a check for somebody; false where it runs already, or too many others do. It is against the text
/// that holds, not against what the file says by now.
pub fn start(house: &House, by: &str, data: &str) -> Result<bool, Error> {
    let text = match house.store.accepted()? {
        Some(accepted) => accepted.text,
        None => RulesFile::read(&house.path)?.text,
    };
    let program = std::env::current_exe().map_err(|e| Error::io("cannot find this program", &e))?;
    if !house.checking.begin(data) {
        return Ok(false);
    }
    let mut command = Command::new(program);
    command.args(["service", "data", "--child", "--json"]).arg(&house.path).arg(data);
    let (by, data, checking) = (by.to_owned(), data.to_owned(), house.checking.clone());
    let store = house.store.clone();
    watch(command, text, CHECK, move |found| {
        // Where it cannot be kept, the page goes on showing the check before.
        let _ = store.keep_check(&by, &data, super::now(), &found);
        checking.end(&data);
    });
    Ok(true)
}

/// The most bytes that a child may say.
const SAID_BYTES: u64 = 1 << 24;

/// Runs a child, tells it what it has to know, and says what it said. The thread that starts it waits for it:
/// a child that ends with its parent ends with the thread that started it.
pub fn watch(
    mut command: Command,
    input: String,
    rule: ChildRule,
    told: impl FnOnce(String) + Send + 'static,
) -> JoinHandle<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    std::thread::spawn(move || {
        told(match command.spawn() {
            Ok(child) => wait(child, &input, rule),
            Err(error) => failed(&format!("the {} cannot be started: {error}", rule.what)),
        });
    })
}

fn failed(message: &str) -> String {
    json!({ "error": { "message": message } }).to_string()
}

/// What a child said, or why it said nothing.
fn wait(mut child: Child, input: &str, ChildRule { what, most }: ChildRule) -> String {
    let begun = Instant::now();
    let reader = child.stdout.take().map(|mut out| {
        std::thread::spawn(move || {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut std::io::Read::take(&mut out, SAID_BYTES), &mut text)?;
            // Nobody reads what one says beyond that, and it ends of it.
            Ok::<_, std::io::Error>(text)
        })
    });
    // One that does not read them has failed, and says why.
    let _ = child.stdin.take().map(|mut to| to.write_all(input.as_bytes()));
    loop {
        match child.try_wait() {
            Ok(None) if begun.elapsed() > most => {
                let _ = child.kill();
                let _ = child.wait();
                let minutes = most.as_secs() / 60;
                return failed(&format!("the {what} took longer than {minutes} minutes and was ended"));
            }
            Ok(None) => std::thread::sleep(LOOK),
            Ok(Some(_)) | Err(_) => break,
        }
    }
    let said = reader.and_then(|reader| reader.join().ok()).and_then(Result::ok).unwrap_or_default();
    match said.trim_start().starts_with('{') {
        _ if said.len() as u64 == SAID_BYTES => failed(&format!("the {what} said too much to be shown")),
        true => said,
        false => failed(&format!("the {what} ended without a word: too little memory?")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_check_outlives_the_thread_that_asked_for_it() {
        let (tell, told) = mpsc::channel();
        let asked = std::thread::spawn(move || {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "TERM", "sh", "-c", "read rules; sleep 1; echo \"{$rules}\""]);
            watch(command, "1\n".to_owned(), CHECK, move |found| _ = tell.send(found))
        });
        let watching = asked.join().expect("it asks and goes");
        assert_eq!(told.recv().expect("it is told"), "{1}\n");
        watching.join().expect("it ends");
    }

    #[test]
    fn a_check_that_takes_too_long_is_ended() {
        let (tell, told) = mpsc::channel();
        let mut command = Command::new("sh");
        command.args(["-c", "read rules; echo \"{$rules\"; exec sleep 600"]);
        let rule = ChildRule { most: Duration::from_millis(200), ..CHECK };
        let begun = Instant::now();
        watch(command, "1\n".to_owned(), rule, move |found| _ = tell.send(found)).join().expect("it ends");
        let found = told.recv().expect("it is told");
        assert!(read(&found).is_err_and(|why| why.contains("the check took longer than")), "{found}");
        assert!(begun.elapsed() < Duration::from_secs(60) && CHECK.most == Duration::from_secs(1_800));
    }
}

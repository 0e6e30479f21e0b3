//! Requests, and how long each took.

use crate::client::{Browser, Page};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The first client whose address no other has.
pub const FREE: usize = 300;

/// Times of requests.
#[derive(Default)]
pub struct Times(Vec<Duration>);

/// What many sessions at once came to.
pub struct Crowd {
    pub times: Times,
    pub errors: u64,
}

impl Times {
    pub fn take(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The time that so many of a thousand do not exceed.
    pub fn of_thousand(&self, part: usize) -> Duration {
        let mut all = self.0.clone();
        all.sort_unstable();
        all[(all.len() * part).div_ceil(1_000).clamp(1, all.len()) - 1]
    }
}

/// User and system time of a process so far.
pub fn processor_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let rest = stat.rsplit_once(')').expect("a name").1;
    let ticks: u64 = rest.split_whitespace().skip(11).take(2).map(|t| t.parse::<u64>().expect("ticks")).sum();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Resident memory of a process in megabytes: all of it, and of that what is no file's, as its program is.
pub fn memory(process: u32) -> [f64; 2] {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    ["VmRSS:", "RssAnon:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("resident memory");
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kib * 1_024.0 / 1e6
    })
}

/// Requests one after the other on one connection, each as another one of those who are signed in: `headers`
/// are theirs, `paths` come in turn. No session asks more than it may.
pub fn one_by_one(page: &Page, headers: &[(&str, String)], paths: &[String], requests: usize) -> Times {
    let (mut browser, mut times) = (page.connect(0), Times::default());
    for number in 0..requests {
        let (name, value) = &headers[number % headers.len()];
        let path = &paths[number % paths.len()];
        let begun = Instant::now();
        let reply = browser.ask("GET", path, &[(name, value)], "");
        times.take(begun.elapsed());
        reply.is(200);
    }
    times
}

/// Each session asks for a page a second, on a connection of its own, for so many seconds.
pub fn a_page_a_second(page: &Page, cookies: &[String], paths: &[String], seconds: u32) -> Crowd {
    let errors = AtomicU64::new(0);
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for (client, cookie) in cookies.iter().enumerate() {
            let (send, errors) = (send.clone(), &errors);
            scope.spawn(move || {
                let mut browser = page.connect(client);
                // Their seconds begin one after the other.
                let share = Duration::from_secs(1).mul_f64(client as f64 / cookies.len() as f64);
                let begin = Instant::now() + Duration::from_secs(1) + share;
                for second in 0..seconds {
                    let due = begin + Duration::from_secs(1) * second;
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let path = &paths[(client + second as usize) % paths.len()];
                    let asked = Instant::now();
                    let reply = browser.ask("GET", path, &[("Cookie", cookie)], "");
                    let _ = send.send(asked.elapsed());
                    errors.fetch_add(u64::from(reply.status != 200), Ordering::Relaxed);
                }
            });
        }
    });
    drop(send);
    Crowd { times: Times(receive.iter().collect()), errors: errors.into_inner() }
}

/// Streams of events, one of each session, and when each has heard something after a moment.
pub struct Streams {
    heard: mpsc::Receiver<(usize, Instant)>,
    many: usize,
}

impl Streams {
    /// Opens them; they go on until the service ends.
    pub fn open(page: &Page, cookies: &[String]) -> Self {
        let (send, heard) = mpsc::channel();
        for (client, cookie) in cookies.iter().enumerate() {
            let mut browser = page.connect(client);
            browser.say("GET", "/events", &[("Cookie", cookie)], "");
            assert!(browser.read_until(b"\r\n\r\n").expect("it answers").contains(" 200 "), "no stream");
            let send = send.clone();
            std::thread::spawn(move || listen(client, browser, &send));
        }
        Self { heard, many: cookies.len() }
    }

    /// How long after a moment the last stream heard of what happened then; none: one heard nothing in time.
    pub fn last_heard(&self, begun: Instant) -> Option<Duration> {
        let mut waiting: std::collections::BTreeSet<usize> = (0..self.many).collect();
        let mut last = Duration::ZERO;
        while !waiting.is_empty() {
            let (client, at) = self.heard.recv_timeout(Duration::from_secs(20)).ok()?;
            if let Some(time) = at.checked_duration_since(begun)
                && waiting.remove(&client)
            {
                last = last.max(time);
            }
        }
        Some(last)
    }
}

fn listen(client: usize, mut browser: Browser, send: &mpsc::Sender<(usize, Instant)>) {
    while browser.read_until(b"event: changed\n").is_ok() {
        if send.send((client, Instant::now())).is_err() {
            return;
        }
    }
}

/// Sign-ins at once, each on a connection of its own, while somebody else looks at pages: how many were let
/// in, how many were told to come again, and how long the pages took.
pub fn sign_ins_at_once(
    page: &Page,
    people: &[(String, String)],
    many: usize,
    (cookies, paths): (&[String], &[String]),
) -> (u64, u64, Times) {
    let (done, let_in, put_off) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let times = std::thread::scope(|scope| {
        let signing: Vec<_> = (0..many)
            .map(|client| {
                let ((name, password), let_in, put_off) = (&people[client % people.len()], &let_in, &put_off);
                scope.spawn(move || {
                    let fields = [("name", name.as_str()), ("password", password.as_str())];
                    match page.connect(FREE + client).send("/sign-in", None, &fields).status {
                        303 => let_in.fetch_add(1, Ordering::Relaxed),
                        429 | 503 => put_off.fetch_add(1, Ordering::Relaxed),
                        status => panic!("a sign-in was answered by {status}"),
                    };
                })
            })
            .collect();
        let looking = scope.spawn(|| {
            let (mut browser, mut times, mut number) = (page.connect(FREE + many), Times::default(), 0);
            while !done.load(Ordering::Relaxed) || number < 50 {
                let asked = Instant::now();
                let cookie = ("Cookie", cookies[number % cookies.len()].as_str());
                browser.ask("GET", &paths[number % paths.len()], &[cookie], "").is(200);
                times.take(asked.elapsed());
                number += 1;
            }
            times
        });
        signing.into_iter().for_each(|one| one.join().expect("answered"));
        done.store(true, Ordering::Relaxed);
        looking.join().expect("pages")
    });
    (let_in.into_inner(), put_off.into_inner(), times)
}

//! What attackers try: other web sites, employees beyond their role, whoever reaches the port.

use crate::house::{House, OURS, Reply, form, password};
use std::io::{Read, Write};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

#[test]
fn forms_of_other_pages_are_refused() {
    let house = House::begin("");
    let olga = house.person("olga", &["operator"]);
    let cookie = ("Cookie", olga.cookie.as_str());
    let add = house.get(&olga, "/accounts").word("/accounts");
    let out = house.get(&olga, "/").word("/sign-out");
    let body = |word: &str| form(&[("csrf", word), ("name", "eve"), ("role", "viewer")]);
    let site = |site| ("Sec-Fetch-Site", site);
    for (headers, word) in [
        // Of another site, also with the right word.
        (vec![FORM, cookie, site("cross-site")], &add),
        (vec![FORM, cookie, site("same-site")], &add),
        (vec![FORM, cookie, ("Origin", "https://evil.example")], &add),
        (vec![FORM, cookie, ("Origin", "null")], &add),
        (vec![FORM, cookie, ("Origin", "https://tacit.registry.example.evil.example")], &add),
        // That does not say where it comes from.
        (vec![FORM, cookie], &add),
        // Of ours, without a word, with a wrong one, with one for something else.
        (vec![FORM, cookie, OURS], &String::new()),
        (vec![FORM, cookie, OURS], &"0".repeat(64)),
        (vec![FORM, cookie, OURS], &out),
    ] {
        house.ask("POST", "/accounts", &headers, &body(word)).is(403);
    }
    let text = ("Content-Type", "text/plain");
    house.ask("POST", "/accounts", &[text, cookie, OURS], &body(&add)).is(415);
    house.ask("POST", "/accounts", &[FORM, OURS], &body(&add)).is(303);
    // A word for one account is none for another.
    house.person("anna", &["viewer"]);
    house.person("bert", &["viewer"]);
    let word = house.get(&olga, "/accounts/anna").word("/accounts/anna/end");
    house.send("/accounts/bert/end", Some(&olga.cookie), &[("csrf", &word)]).is(403);
    let names: Vec<String> = accounts(&house).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["anna", "bert", "olga"], "nobody was added");
    house.send("/accounts/anna/end", Some(&olga.cookie), &[("csrf", &word)]).is(303);
    // Where a browser sends no Sec-Fetch-Site, its Origin counts.
    let origin = ("Origin", "https://tacit.registry.example");
    house.ask("POST", "/accounts", &[FORM, cookie, origin], &body(&add)).is(200).says("A link for eve");
    // Looking changes nothing, whatever is asked.
    house.ask("GET", &format!("/sign-out?csrf={out}"), &[cookie], "").is(405);
    house.get(&olga, "/").is(200);
}

fn accounts(house: &House) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let all = house.tacit(&["account", "list"], &[]);
    let all = all["accounts"].as_array().expect("a list").clone();
    all.iter().map(|account| (text(&account["name"]), text(&account["state"]))).collect()
}

#[test]
fn names_are_not_paths() {
    let house = House::begin("");
    let olga = house.person("olga", &["operator"]);
    let long = format!("/data/{}", "a".repeat(4_000));
    for path in [
        "/data/..",
        "/data/../service.toml",
        "/data/..%2fservice.toml",
        "/data/%2e%2e%2fservice.db",
        "/data/trial%00",
        "/data/trial.csv",
        "/data/%ff",
        "/assets/../service.db",
        "/assets/1/..%2f..%2fservice.db",
        "/accounts/%2e%2e",
        "/enter/../../service.db",
        "//data/trial",
        long.as_str(),
    ] {
        let reply = house.get(&olga, path);
        assert!([400, 404].contains(&reply.status), "{path}: {}", reply.status);
        assert!(!reply.body.contains("tacit-service/1") && !reply.body.contains("child_id"), "{path}");
    }
    std::fs::write(house.path("secret.csv"), "canary\n1\n").expect("written");
    std::os::unix::fs::symlink(house.path("secret.csv"), house.path("data/other.csv")).expect("linked");
    let refused = house.try_tacit(&["data"], &["other"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("there may be no links"), "{said}");
}

#[test]
fn a_cookie_that_was_there_is_nothing_and_a_stolen_store_opens_no_session() {
    let house = House::begin("");
    let olga = house.person("olga", &["operator"]);
    let planted = format!("__Host-tacit={}", "ab".repeat(32));
    let headers = [FORM, OURS, ("Cookie", planted.as_str())];
    let body = form(&[("name", "olga"), ("password", &password("olga"))]);
    let own = house.ask("POST", "/sign-in", &headers, &body).is(303);
    let set = own.header("set-cookie").expect("a cookie").to_owned();
    for part in ["Path=/", "Secure", "HttpOnly", "SameSite=Strict"] {
        assert!(set.contains(part) && !set.contains("Domain"), "{set}");
    }
    assert!(!set.contains(&planted) && set.starts_with("__Host-tacit="), "{set}");
    house.ask("GET", "/", &[("Cookie", &planted)], "").is(303);
    // One cookie beside another is none.
    let two = format!("{planted}; {}", olga.cookie);
    house.ask("GET", "/", &[("Cookie", &two)], "").is(303);
    // What is in the store opens nothing.
    let store = rusqlite::Connection::open(house.path("service.db")).expect("opens");
    let hash: Vec<u8> =
        store.query_row("SELECT hash FROM sessions LIMIT 1", [], |row| row.get(0)).expect("one");
    house.ask("GET", "/", &[("Cookie", &format!("__Host-tacit={}", base::hex(&hash)))], "").is(303);
    // Signing out ends it for whoever has the cookie.
    house.do_it(&olga, "/", "/sign-out", &[]).is(303);
    house.get(&olga, "/").is(303);
}

#[test]
fn guessing_slows_down_and_the_owner_still_works() {
    let house = House::begin("");
    let olga = house.person("olga", &["operator"]);
    // Five wrong ones in a row make the name wait, whatever the password; the owner goes on.
    (0..5).for_each(|_| drop(house.sign_in("olga", "guess").is(401)));
    assert!((0..4).any(|_| house.sign_in("olga", "guess").status == 429), "never told to wait");
    house.get(&olga, "/").is(200);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let guess = |number: usize| house.sign_in("olga", &format!("guess {number}")).status;
        let all: Vec<_> = (0..40).map(|number| scope.spawn(move || guess(number))).collect();
        all.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    assert!(statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&429), "{statuses:?}");
    // From 30 wrong ones on the address waits, for any name.
    let mut tries = 0;
    while house.sign_in(&format!("nobody-{tries}"), "guess").status == 401 {
        tries += 1;
    }
    assert!(tries <= 30, "{tries}");
    let waits = house.sign_in("olga", &password("olga")).is(429).says("Wait ");
    assert!(waits.header("retry-after").is_some());
    house.get(&olga, "/account").is(200).says("wrong password, the fifth in a row or a later one");
}

/// Two passwords are hashed at a time: of more at once, each for another name, the rest are put off.
#[test]
fn of_many_who_sign_in_at_once_most_are_put_off() {
    let house = House::begin("");
    let names = 20;
    let all_here = Barrier::new(names);
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let guess = |number: usize| {
            let body = form(&[("name", &format!("nobody-{number}")), ("password", "guess")]);
            let (head, rest) = ("POST /sign-in HTTP/1.1\r\n", format!("Content-Length: {}", body.len()));
            let (kind, site) = (format!("{}: {}", FORM.0, FORM.1), format!("{}: {}", OURS.0, OURS.1));
            let rest = format!("{rest}\r\n{kind}\r\n{site}\r\nConnection: close\r\n\r\n{body}");
            let mut stream = house.connect();
            let mut say = |text: &str| {
                stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).expect("sent");
            };
            say(&format!("{head}Host: tacit.registry.example\r\n"));
            all_here.wait();
            say(&rest);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            Reply::read(answer)
        };
        let all: Vec<_> = (0..names).map(|number| scope.spawn(move || guess(number))).collect();
        all.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    assert!(statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&401) && statuses.contains(&429), "{statuses:?}");
    for reply in replies.into_iter().filter(|reply| reply.status == 429) {
        assert!(reply.header("retry-after").is_some(), "{reply:?}");
    }
}

#[test]
fn a_name_that_is_not_ours_is_421() {
    let house = House::begin("");
    let port = house.address.port();
    for (host, status) in [
        ("tacit.registry.example".to_owned(), 200),
        ("TACIT.registry.example:443".to_owned(), 200),
        (house.address.to_string(), 200),
        (format!("localhost:{port}"), 200),
        ("evil.example".to_owned(), 421),
        ("tacit.registry.example:8443".to_owned(), 421),
        ("tacit.registry.example.evil.example".to_owned(), 421),
        (String::new(), 421),
    ] {
        let reply = house.ask("GET", "/sign-in", &[("Host", &host)], "");
        assert_eq!(reply.status, status, "{host}");
    }
    house.raw(b"GET /sign-in HTTP/1.0\r\n\r\n").is(421);
    let whole = "GET https://evil.example/sign-in HTTP/1.1\r\nHost: tacit.registry.example\r\n\
                 Connection: close\r\n\r\n";
    house.raw(whole.as_bytes()).is(421);
    // Without TLS nothing is said.
    let mut plain = std::net::TcpStream::connect(house.address).expect("it listens");
    plain.write_all(b"GET / HTTP/1.1\r\nHost: tacit.registry.example\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "an answer without TLS");
}

#[test]
fn browsers_are_held_to_tls_where_the_organisation_has_a_certificate() {
    let mut house = House::begin("");
    // A certificate that this machine alone vouches for ends with the machine: nobody is held to it.
    let reply = house.ask("GET", "/sign-in", &[], "").is(200);
    assert_eq!(reply.header("strict-transport-security"), None, "{}", reply.head);
    house.kill();
    // That one and its key, as those that the organisation brings.
    std::fs::rename(house.path("service.web.pem"), house.path("web.pem")).expect("moved");
    house.write_rules("tls = { cert = \"web.pem\", key = \"web.pem\" }", "");
    house.tacit(&["accept"], &[]);
    let told = house.start();
    assert!(told["certificate"].is_null(), "{told}");
    assert!(!house.path("service.web.pem").exists(), "another one was made");
    // The client takes that certificate and no other.
    for (path, host, status) in
        [("/sign-in", None, 200), ("/nothing", None, 404), ("/", Some("evil.example"), 421)]
    {
        let host = host.map(|host| ("Host", host));
        let reply = house.ask("GET", path, host.as_slice(), "");
        assert_eq!(reply.status, status, "{path}: {}", reply.head);
        let held = reply.header("strict-transport-security");
        assert_eq!(held, Some("max-age=31536000"), "{path}: {}", reply.head);
    }
    house.kill();
    for (text, why) in [("", "there is no certificate in it"), ("no PEM", "there is no certificate in it")] {
        std::fs::write(house.path("web.pem"), text).expect("written");
        let done = house.try_tacit(&["run"], &[]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && said.contains("web.pem") && said.contains(why), "{said}");
    }
}

#[test]
fn every_answer_keeps_a_browser_in() {
    let house = House::begin("");
    let olga = house.person("olga", &["operator"]);
    for (path, host) in
        [("/", ""), ("/nothing", ""), ("/sign-out", ""), ("/health", ""), ("/", "evil.example")]
    {
        let host = if host.is_empty() { "tacit.registry.example" } else { host };
        let reply = house.ask("GET", path, &[("Cookie", &olga.cookie), ("Host", host)], "");
        let policy = reply.header("content-security-policy").unwrap_or_default();
        for part in ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"]
        {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{path}");
        }
    }
}

#[test]
fn nothing_private_leaves_or_is_kept() {
    let mut house = House::begin("");
    let olga = house.person("olga", &["operator"]);
    house.get(&olga, "/account").is(200);
    let refused =
        house.do_it(&olga, "/account", "/account/password", &[("password", "canary-1"), ("new", "canary-2")]);
    refused.is(403).never_says("canary");
    house.sign_in("olga", "canary-3").is(401).never_says("canary");
    house.sign_in("canary-4 is a password in the wrong field", "x").is(401);
    let link = house.tacit(&["account", "add"], &["anna", "--role", "viewer"]);
    let link = link["link"].as_str().and_then(|link| link.rsplit('/').next()).expect("a link").to_owned();
    house.ask("GET", &format!("/enter/{link}"), &[], "").is(200);
    let token = olga.cookie.split_once('=').expect("a cookie").1.to_owned();
    house.kill();
    let own = password("olga");
    let secrets = ["canary", link.as_str(), token.as_str(), own.as_str()];
    let holds =
        |bytes: &[u8], secret: &str| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
    for file in ["service.db", "service.db-wal", "log"] {
        let bytes = std::fs::read(house.path(file)).unwrap_or_default();
        for secret in secrets {
            assert!(!holds(&bytes, secret), "{secret} is in {file}");
        }
        let raw = base::unhex::<32>(&token).expect("hex");
        assert!(!bytes.windows(32).any(|part| part == raw), "the cookie's bits are in {file}");
    }
}

#[test]
fn large_requests_are_refused() {
    let house = House::begin("");
    let field = "a".repeat(65_700);
    house.send("/sign-in", None, &[("name", "olga"), ("password", &field)]).is(413);
    let header =
        format!("GET / HTTP/1.1\r\nHost: tacit.registry.example\r\nX: {}\r\n\r\n", "a".repeat(16_500));
    house.raw(header.as_bytes()).is(431);
}

/// Half a request holds its place for ten seconds, 64 are one address's, and no other address waits for it.
#[test]
fn slow_clients_hold_their_own_places_and_not_for_long() {
    let house = House::begin("");
    let olga = house.person("olga", &["operator"]);
    let half = |text: &str| {
        let mut stream = house.connect_from(2);
        stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).map(|()| stream)
    };
    let head = "POST /sign-in HTTP/1.1\r\nHost: tacit.regis";
    let whole = format!(
        "POST /sign-in HTTP/1.1\r\nHost: tacit.registry.example\r\n{}: {}\r\n{}: {}\r\nContent-Length: \
         100\r\n\r\nname=",
        FORM.0, FORM.1, OURS.0, OURS.1
    );
    let begun = Instant::now();
    let mut slow: Vec<_> = (0..63).map(|_| half(head).expect("a place")).collect();
    slow.push(half(&whole).expect("a place"));
    assert!(half(head).is_err(), "a place for the 65th");
    house.get(&olga, "/").is(200);
    // The one whose head is not whole, and the one whose body is not, are ended alike.
    for mut stream in [slow.remove(0), slow.pop().expect("the last")] {
        stream.sock.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer).map_err(|error| error.kind());
        let waits = std::io::ErrorKind::WouldBlock;
        assert!(ended != Err(waits) && begun.elapsed() < Duration::from_secs(50), "{ended:?}");
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
    }
    assert!(begun.elapsed() >= Duration::from_secs(9), "{:?}", begun.elapsed());
    wait_for("a place again", || half(head).ok());
}

/// State and parent of a process, where it is there.
fn state_of(process: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut rest = stat.rsplit_once(") ")?.1.split(' ');
    Some((rest.next()?.to_owned(), rest.next()?.parse().ok()?))
}

/// Looks again until something is there.
#[track_caller]
fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "never {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_check_is_a_child_with_a_bound() {
    let mut house = House::begin("[policy]\njobs_memory = \"64M\"");
    let stella = house.person("stella", &["steward=trial"]);
    // A pipe that nobody writes to holds whoever reads it.
    let path = house.path("data/trial.csv");
    std::fs::remove_file(&path).expect("removed");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).expect("a pipe");
    house.do_it(&stella, "/data/trial", "/data/trial/check", &[]).is(303);
    let service = house.process();
    let child = wait_for("a child", || {
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let mut numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.find(|process| state_of(*process).is_some_and(|(_, parent)| parent == service))
    });
    wait_for("a bound of 64M on its memory", || {
        let limits = std::fs::read_to_string(format!("/proc/{child}/limits")).ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max data size"))?;
        (line.split_whitespace().next() == Some("67108864")).then_some(())
    });
    // The page goes on meanwhile, and a check ends with its service.
    house.get(&stella, "/data/trial").is(200).says("The files are being read.");
    house.kill();
    let gone = || state_of(child).is_none_or(|(state, _)| state == "Z");
    wait_for("gone with its service", || gone().then_some(()));
}

#[test]
fn too_many_requests_of_one_session_are_put_off_and_of_another_are_not() {
    let house = House::begin("");
    let (olga, anna) = (house.person("olga", &["operator"]), house.person("anna", &["viewer"]));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = || (0..30).map(|_| house.get(&olga, "/").status).collect::<Vec<_>>();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        all.into_iter().flat_map(|one| one.join().expect("answers")).collect()
    });
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    assert!(statuses.iter().filter(|status| **status == 200).count() >= 50);
    house.get(&anna, "/").is(200);
}

#[test]
fn a_service_that_is_killed_goes_on_where_it_was() {
    let mut house = House::begin("");
    let olga = house.person("olga", &["operator"]);
    for round in 0..3 {
        let name = format!("anna-{round}");
        let add = [("name", name.as_str()), ("role", "viewer")];
        house.do_it(&olga, "/accounts", "/accounts", &add).is(200);
        house.kill();
        house.start();
        assert!(accounts(&house).contains(&(name, "invited".to_owned())));
        house.get(&olga, "/").is(200);
    }
    house.kill();
    let store = rusqlite::Connection::open(house.path("service.db")).expect("opens");
    let whole: String = store.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checks");
    assert_eq!(whole, "ok");
}

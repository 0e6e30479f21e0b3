//! The pages of `tacit service demo`: plain HTTP between a browser and this machine, since no browser trusts
//! a certificate that was made a moment ago, and who is new must not learn to click a warning away. A service
//! of an organisation never gets here: nothing in service.toml leads to it.

use super::House;
use super::answer::COOKIE;
use crate::settings::WebSettings;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use base::{Error, Secret};
use std::sync::Arc;

/// The session's cookie in a demo, before its port: browsers take names with `__Host-` by TLS alone, and send
/// what one port has set to all ports of the name.
const PLAIN_COOKIE: &str = "tacit-demo";

/// What a demo has that no organisation has: one password for all its made-up people, so that a link signs in
/// by one click.
#[derive(Debug)]
pub struct DemoHouse(Secret<String>);

impl House {
    /// Serves the demo, where the rules say that nobody but this machine can reach it.
    ///
    /// # Errors
    /// When no password came, or the page listens on another address than a loopback one, has a name that
    /// does not end in `.localhost`, a certificate, or a proxy.
    pub fn for_demo(mut self, password: String) -> Result<Self, Error> {
        if !is_of_demo(&self.rules().settings.web) {
            return Err(Error::input(
                "a demo is served on a loopback address, under names of .localhost, without a certificate \
                 or a proxy: run a service of an organisation without --demo",
            ));
        }
        if password.is_empty() {
            return Err(Error::input("no password came: `tacit service demo` starts services with --demo"));
        }
        self.demo = Some(DemoHouse(Secret::new(password)));
        Ok(self)
    }

    /// The password of all people of a demo; none for a service of an organisation.
    pub(crate) fn demo_password(&self) -> Option<&str> {
        self.demo.as_ref().map(|demo| demo.0.expose().as_str())
    }

    /// Where its page is, for links.
    #[must_use]
    pub fn url(&self) -> String {
        let url = self.rules().settings.web.url();
        match url.strip_prefix("https:") {
            Some(rest) if self.demo.is_some() => format!("http:{rest}"),
            _ => url,
        }
    }
}

/// Whether only this machine can reach the page: browsers look for names of `.localhost` nowhere else.
fn is_of_demo(web: &WebSettings) -> bool {
    let local = |name: &String| {
        let host = name.rsplit_once(':').map_or(name.as_str(), |(host, _)| host);
        host.strip_suffix(".localhost").is_some_and(|before| !before.is_empty())
    };
    let named = !web.names.is_empty() && web.names.iter().all(local);
    web.listen.ip().is_loopback() && named && web.tls.is_none() && web.proxy.is_none()
}

/// Between browser and pages: the cookie under its other name, without `Secure`.
pub async fn plain_cookies(State(house): State<Arc<House>>, mut request: Request, next: Next) -> Response {
    let name = format!("{PLAIN_COOKIE}-{}", house.rules().settings.web.listen.port());
    inward(request.headers_mut(), &name);
    let mut response = next.run(request).await;
    outward(response.headers_mut(), &name);
    response
}

fn inward(headers: &mut HeaderMap, name: &str) {
    let all = headers.get_all(header::COOKIE);
    let pairs = all.iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(';'));
    let ours = pairs.filter_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='));
    let ours: Vec<String> = ours.map(|value| format!("{COOKIE}={value}")).collect();
    headers.remove(header::COOKIE);
    let values = ours.iter().filter_map(|text| HeaderValue::from_str(text).ok());
    for value in values {
        headers.append(header::COOKIE, value);
    }
}

fn outward(headers: &mut HeaderMap, name: &str) {
    let all: Vec<String> = headers
        .get_all(header::SET_COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(|text| text.replacen(COOKIE, name, 1).replacen("; Secure", "", 1))
        .collect();
    headers.remove(header::SET_COOKIE);
    let values = all.iter().filter_map(|text| HeaderValue::from_str(text).ok());
    for value in values {
        headers.append(header::SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(listen: &str, names: &[&str]) -> WebSettings {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        WebSettings {
            listen: listen.parse().expect("an address"),
            names,
            tls: None,
            proxy: None,
            metrics: None,
        }
    }

    #[test]
    fn only_what_this_machine_alone_can_reach_is_a_demo() {
        assert!(is_of_demo(&web("127.0.0.1:8001", &["registry.localhost:8001"])));
        let mut certified = web("127.0.0.1:8001", &["registry.localhost:8001"]);
        certified.tls = Some(("a.pem".into(), "a.key".into()));
        for other in [
            web("0.0.0.0:8001", &["registry.localhost:8001"]),
            web("192.168.1.2:8001", &["registry.localhost:8001"]),
            web("127.0.0.1:8001", &[]),
            web("127.0.0.1:8001", &[".localhost"]),
            web("127.0.0.1:8001", &["registry.localhost", "registry.example"]),
            web("127.0.0.1:8001", &["registry.localhost.example:8001"]),
            certified,
        ] {
            assert!(!is_of_demo(&other), "{other:?}");
        }
    }

    #[test]
    fn a_demo_without_a_password_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("service.toml");
        let text = "format = \"tacit-service/1\"\nname = \"registry\"\nidentity = \"own.key\"\n\
                    store = \"service.db\"\nledger = \"own.ledger\"\n[web]\n\
                    listen = \"127.0.0.1:8001\"\nnames = [\"registry.localhost:8001\"]\n";
        std::fs::write(&path, text).expect("written");
        let demo = |password: &str| House::open(&path).expect("opens").for_demo(password.to_owned());
        let error = demo("").err().expect("whoever starts it is gone").to_string();
        assert!(error.contains("no password came"), "{error}");
        assert_eq!(demo("a word").expect("a demo").demo_password(), Some("a word"));
    }

    #[test]
    fn the_cookie_has_another_name_on_the_way_and_no_other_counts() {
        let mut headers = HeaderMap::new();
        let sent = "a=1; tacit-demo-8001=xyz; __Host-tacit=stolen; tacit-demo-80012=2; tacit-demo-8002=3";
        headers.insert(header::COOKIE, HeaderValue::from_static(sent));
        inward(&mut headers, "tacit-demo-8001");
        let all: Vec<_> = headers.get_all(header::COOKIE).iter().collect();
        assert_eq!(all, ["__Host-tacit=xyz"]);
        let mut headers = HeaderMap::new();
        let set = "__Host-tacit=xyz; Path=/; Secure; HttpOnly; SameSite=Strict";
        headers.insert(header::SET_COOKIE, HeaderValue::from_static(set));
        outward(&mut headers, "tacit-demo-8001");
        let all: Vec<_> = headers.get_all(header::SET_COOKIE).iter().collect();
        assert_eq!(all, ["tacit-demo-8001=xyz; Path=/; HttpOnly; SameSite=Strict"]);
    }
}

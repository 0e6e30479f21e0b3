//! What goes back.

use crate::devices::KnownDevice;
use crate::secrets::SecretToken;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use page::markup::Markup;

/// The session's cookie.
pub const COOKIE: &str = "__Host-tacit";
/// The cookie of a browser in which somebody has signed in.
pub const DEVICE_COOKIE: &str = "__Host-tacit-device";
/// Seconds that it is kept after the last sign-in.
const DEVICE_SECONDS: u32 = 180 * 24 * 3600;

/// What goes back to a browser.
pub struct Answer {
    status: StatusCode,
    headers: Vec<(HeaderName, String)>,
    body: Vec<u8>,
    cookie: Option<String>,
    device: Option<String>,
}

impl Answer {
    /// A page.
    #[must_use]
    pub fn page(status: StatusCode, page: Markup) -> Self {
        let body = format!("<!DOCTYPE html>\n{}\n", page.into_string());
        let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned());
        Self { status, headers: vec![kind], body: body.into_bytes(), cookie: None, device: None }
    }

    /// What a program reads.
    #[must_use]
    pub fn json(status: StatusCode, body: Vec<u8>) -> Self {
        let kind = (header::CONTENT_TYPE, "application/json".to_owned());
        Self { status, headers: vec![kind], body, cookie: None, device: None }
    }

    /// A file to keep, under a name of ours: what is no letter, digit or dash of ASCII, or the dot of an
    /// ending, is a dash there, so that shells and old systems take it as it is.
    #[must_use]
    pub fn file(kind: &str, name: &str, body: Vec<u8>) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = name.chars().map(plain).collect();
        let keep = format!("attachment; filename=\"{name}\"");
        let headers = vec![(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, keep)];
        Self { status: StatusCode::OK, headers, body, cookie: None, device: None }
    }

    /// Go on to a path of ours, which is asked for by GET.
    #[must_use]
    pub fn go(path: &str) -> Self {
        let headers = vec![(header::LOCATION, path.to_owned())];
        Self { status: StatusCode::SEE_OTHER, headers, body: Vec::new(), cookie: None, device: None }
    }

    /// With a header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// With the cookie of a session.
    #[must_use]
    pub fn with_session(mut self, token: &SecretToken) -> Self {
        self.cookie = Some(format!("{COOKIE}={}; Path=/; Secure; HttpOnly; SameSite=Strict", token.text()));
        self
    }

    /// With the cookie by which a browser is known the next time; none where it gets none.
    #[must_use]
    pub fn with_device(mut self, device: Option<&KnownDevice>) -> Self {
        self.device = device.map(|device| {
            let (text, place) = (device.text(), "Path=/; Secure; HttpOnly; SameSite=Strict");
            format!("{DEVICE_COOKIE}={text}; {place}; Max-Age={DEVICE_SECONDS}")
        });
        self
    }

    /// With the cookie of a session, unless it says something about cookies already.
    #[must_use]
    pub fn or_session(self, token: &SecretToken) -> Self {
        if self.cookie.is_some() { self } else { self.with_session(token) }
    }

    /// Without the cookie that the browser has.
    #[must_use]
    pub fn without_session(mut self) -> Self {
        self.cookie = Some(format!("{COOKIE}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0"));
        self
    }

    /// As axum wants it.
    #[must_use]
    pub fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = self.headers.into_iter();
        let cookies = self.cookie.into_iter().chain(self.device);
        let headers = headers.chain(cookies.map(|text| (header::SET_COOKIE, text)));
        for (name, value) in headers {
            // Ours are all visible characters; what is not stays out.
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

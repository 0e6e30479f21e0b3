//! What a browser or a program does, over a connection that stays open.

use rustix::net::{AddressFamily, SocketType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// Most connections from one address.
const OF_ADDRESS: usize = 50;

/// A service as its clients see it.
#[derive(Clone)]
pub struct Page {
    tls: Arc<ClientConfig>,
    /// The name under which it answers, with its port.
    pub host: String,
    pub address: SocketAddr,
}

/// A connection to it.
pub struct Browser {
    stream: StreamOwned<ClientConnection, TcpStream>,
    host: String,
    held: Vec<u8>,
}

/// What came back.
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Page {
    /// The service whose own certificate lies in a folder.
    pub fn of(folder: &Path, url: &str, address: SocketAddr) -> Self {
        let text = std::fs::read(folder.join("service.web.pem")).expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&text).expect("in PEM")).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
        let host = url.strip_prefix("https://").expect("by TLS").trim_end_matches('/').to_owned();
        Self { tls: Arc::new(config), host, address }
    }

    /// A connection of one of many clients: 50 have one address.
    pub fn connect(&self, client: usize) -> Browser {
        let name = self.host.split_once(':').map_or(self.host.as_str(), |(name, _)| name).to_owned();
        let name = ServerName::try_from(name).expect("a name");
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        let from = Ipv4Addr::new(127, 0, 0, 1 + u8::try_from(client / OF_ADDRESS).expect("few clients"));
        rustix::net::bind(&socket, &SocketAddr::from((from, 0))).expect("an address of this machine");
        rustix::net::connect(&socket, &self.address).expect("it listens");
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true).expect("set");
        let tls = ClientConnection::new(self.tls.clone(), name).expect("a connection");
        Browser { stream: StreamOwned::new(tls, stream), host: self.host.clone(), held: Vec::new() }
    }
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The cookie of the session that began.
    pub fn cookie(&self) -> Option<String> {
        self.header("set-cookie")?.split(';').next().map(str::to_owned)
    }

    /// Word and proposal of the form that is sent to `path`.
    pub fn form(&self, path: &str) -> (String, String) {
        let form = format!("action=\"{path}\"");
        let rest = self.body.split_once(&form).expect("the page has the form").1;
        let form = rest.split_once("</form>").expect("it ends").0;
        let value = |name: &str| {
            let rest = form.split_once(&format!("name=\"{name}\" value=\"")).expect("it has the field").1;
            rest.split_once('"').expect("it ends").0.to_owned()
        };
        (value("csrf"), value("proposal"))
    }

    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        self
    }
}

impl Browser {
    pub fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.say(method, path, headers, body);
        let head = self.read_until(b"\r\n\r\n").expect("it answers");
        let mut reply = Reply {
            status: head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"),
            head,
            body: String::new(),
        };
        let length = reply.header("content-length").map_or(0, |text| text.parse().expect("a length"));
        while self.held.len() < length {
            self.more().expect("it answers");
        }
        let rest = self.held.split_off(length);
        reply.body = String::from_utf8(std::mem::replace(&mut self.held, rest)).expect("UTF-8");
        reply
    }

    /// A request, of which the answer is read by whoever wants to.
    pub fn say(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let (host, length) = (&self.host, body.len());
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n");
        headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        self.stream.write_all(format!("{text}\r\n{body}").as_bytes()).expect("it is sent");
        self.stream.flush().expect("it is sent");
    }

    /// What comes up to some bytes and with them.
    pub fn read_until(&mut self, end: &[u8]) -> std::io::Result<String> {
        loop {
            if let Some(at) = self.held.windows(end.len()).position(|bytes| bytes == end) {
                let rest = self.held.split_off(at + end.len());
                return Ok(String::from_utf8(std::mem::replace(&mut self.held, rest)).expect("UTF-8"));
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> std::io::Result<()> {
        let mut bytes = [0; 16 << 10];
        match self.stream.read(&mut bytes)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.held.extend_from_slice(&bytes[..read]);
                Ok(())
            }
        }
    }

    /// A form as a browser sends it from a page of the service.
    pub fn send(&mut self, path: &str, cookie: Option<&str>, fields: &[(&str, &str)]) -> Reply {
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        let ours = ("Sec-Fetch-Site", "same-origin");
        let headers = [Some(kind), Some(ours), cookie.map(|cookie| ("Cookie", cookie))];
        self.ask("POST", path, &headers.into_iter().flatten().collect::<Vec<_>>(), &form(fields))
    }
}

fn form(fields: &[(&str, &str)]) -> String {
    let byte = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    let word = |text: &str| text.bytes().map(byte).collect::<String>();
    fields.iter().map(|(name, value)| format!("{}={}", word(name), word(value))).collect::<Vec<_>>().join("&")
}

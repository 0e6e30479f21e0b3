//! As much of S3 as a reader asks for, on this machine: lists, heads, ranges and conditions. It counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What one bucket, `bucket`, holds, and what was asked of it.
#[derive(Default)]
pub struct Service {
    pub objects: BTreeMap<String, Vec<u8>>,
    /// Requests for bytes, and the bytes that were sent.
    pub reads: u64,
    pub bytes: u64,
    /// After so many requests for bytes every object is another one.
    pub changes_after: Option<u64>,
    /// Methods other than those that read.
    pub writes: u64,
}

/// Begins to serve; its address.
pub fn serve(service: &Arc<Mutex<Service>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let service = Arc::clone(service);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let service = Arc::clone(&service);
            std::thread::spawn(move || answer(stream, &service));
        }
    });
    address
}

fn answer(stream: TcpStream, service: &Mutex<Service>) {
    let mut reader = BufReader::new(&stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let found = head.iter().filter_map(|line| line.split_once(": "));
        found.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let mut words = head[0].split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut service = service.lock().expect("no test panics in here");
    let (status, headers, body) = service.reply(method, target, header("range"), header("if-match"));
    let body_sent: &[u8] = if method == "HEAD" { &[] } else { &body };
    let _ = write!(
        &stream,
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    let _ = (&stream).write_all(body_sent);
}

const MODIFIED: &str = "Last-Modified: Tue, 24 Nov 2026 09:00:00 GMT\r\n";

impl Service {
    fn etag(&self, key: &str) -> String {
        let generation = u8::from(self.changes_after.is_some_and(|after| self.reads > after));
        format!("\"{}-{generation}\"", blake3::hash(key.as_bytes()).to_hex())
    }

    fn reply(
        &mut self,
        method: &str,
        target: &str,
        range: Option<String>,
        condition: Option<String>,
    ) -> (&'static str, String, Vec<u8>) {
        let code = |code: &str| format!("<Error><Code>{code}</Code></Error>").into_bytes();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = unescape(path.trim_start_matches('/'));
        let (bucket, key) = path.split_once('/').unwrap_or((&path, ""));
        if method != "GET" && method != "HEAD" {
            self.writes += 1;
            return ("403 Forbidden", String::new(), code("AccessDenied"));
        }
        if bucket != "bucket" {
            return ("404 Not Found", String::new(), code("NoSuchBucket"));
        }
        if key.is_empty() {
            return ("200 OK", String::new(), self.list(query).into_bytes());
        }
        let Some(all) = self.objects.get(key).cloned() else {
            return ("404 Not Found", String::new(), code("NoSuchKey"));
        };
        let headers = |etag: &str| format!("ETag: {etag}\r\n{MODIFIED}");
        if method == "HEAD" {
            return ("200 OK", headers(&self.etag(key)), all);
        }
        self.reads += 1;
        let etag = self.etag(key);
        if condition.is_none_or(|wanted| wanted != etag) {
            return ("412 Precondition Failed", String::new(), code("PreconditionFailed"));
        }
        let range = range.expect("objects are read by ranges");
        let (first, last) = range.trim_start_matches("bytes=").split_once('-').expect("a range");
        let (first, last): (usize, usize) = (first.parse().expect("first"), last.parse().expect("last"));
        let part = all[first..=last].to_vec();
        self.bytes += part.len() as u64;
        let at = format!("Content-Range: bytes {first}-{last}/{}\r\n", all.len());
        ("206 Partial Content", headers(&etag) + &at, part)
    }

    fn list(&self, query: &str) -> String {
        let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix=")).unwrap_or_default();
        let prefix = unescape(&prefix.replace('+', " "));
        let mut xml = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
        for (key, bytes) in self.objects.iter().filter(|(key, _)| key.starts_with(&prefix)) {
            let (etag, size) = (self.etag(key), bytes.len());
            let _ = write!(
                xml,
                "<Contents><Key>{key}</Key><LastModified>2026-11-24T09:00:00.000Z</LastModified>\
                 <ETag>{etag}</ETag><Size>{size}</Size></Contents>"
            );
        }
        xml + "</ListBucketResult>"
    }
}

fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let code = |bytes: &mut std::str::Bytes<'_>| {
            let digits = [bytes.next()?, bytes.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
        };
        out.push(if byte == b'%' { code(&mut bytes).expect("two digits") } else { byte });
    }
    String::from_utf8(out).expect("UTF-8")
}

//! A small local HTTP server that misbehaves as requested by a test, and records the requests and the bytes it sent.

#![allow(dead_code, reason = "each test program that includes this file uses another part of it")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Stops responding when dropped.
pub(crate) struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stalled: Mutex<Receiver<()>>,
}

struct Shared {
    exchanges: Mutex<Vec<Exchange>>,
    reply: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
    stalling: Mutex<Sender<()>>,
    /// Held forever by the server; stalled connections wait for it.
    end: Mutex<Vec<TcpStream>>,
}

/// A received request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The number of earlier requests.
    pub(crate) number: usize,
    pub(crate) path: String,
    /// The `host:port` requested by a client that uses the server as a proxy. The server responds in its place.
    pub(crate) proxy_for: Option<String>,
    /// The first byte of `Range: bytes=N-`.
    pub(crate) range_start: Option<usize>,
    pub(crate) if_range: Option<String>,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    /// The body, with the length in `Content-Length`.
    pub(crate) body: Vec<u8>,
}

/// A request, and the number of body bytes sent for it.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) request: Request,
    pub(crate) body_bytes: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// `200 OK`
    pub(crate) status: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The complete body.
    Complete,
    /// Closes the connection after this many bytes of the body.
    CutAfter(usize),
    /// Sends nothing more after this many bytes of the body, on an open connection.
    StallAfter(usize),
    /// Sends nothing, not even a head.
    Silent,
}

impl HttpServer {
    pub(crate) fn start(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stalling, stalled) = channel();
        let shared = Arc::new(Shared {
            exchanges: Mutex::default(),
            reply: Box::new(reply),
            stalling: Mutex::new(stalling),
            end: Mutex::default(),
        });
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let server = Arc::clone(&server);
                std::thread::spawn(move || server.serve(connection.unwrap()));
            }
        });
        Self { address, shared, stalled: Mutex::new(stalled) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.shared.exchanges.lock().unwrap().clone()
    }

    /// The first byte of each request's range.
    pub(crate) fn range_starts(&self) -> Vec<Option<usize>> {
        let exchanges = self.exchanges().into_iter();
        exchanges.map(|exchange| exchange.request.range_start).collect()
    }

    /// The body bytes sent so far.
    pub(crate) fn bytes_served(&self) -> usize {
        self.exchanges().iter().map(|exchange| exchange.body_bytes).sum()
    }

    /// Waits until a connection has started to stall.
    pub(crate) fn wait_until_stalled(&self) {
        self.stalled.lock().unwrap().recv().unwrap();
    }
}

impl Shared {
    fn serve(&self, mut connection: TcpStream) {
        let Some(mut request) = read_request(&mut connection) else {
            return;
        };
        let number = {
            let mut exchanges = self.exchanges.lock().unwrap();
            request.number = exchanges.len();
            exchanges.push(Exchange { request: request.clone(), body_bytes: 0 });
            request.number
        };
        let reply = (self.reply)(&request);
        let len = match reply.ending {
            Ending::Complete => reply.body.len(),
            Ending::CutAfter(len) | Ending::StallAfter(len) => len,
            Ending::Silent => 0,
        };
        if reply.ending != Ending::Silent {
            // Counted first: when the client has the bytes, they must be counted.
            self.exchanges.lock().unwrap()[number].body_bytes = len;
            let mut message = head(&reply).into_bytes();
            message.extend_from_slice(&reply.body[..len]);
            // Whether a client disconnects is up to the client.
            let _ = connection.write_all(&message);
        }
        if matches!(reply.ending, Ending::StallAfter(_) | Ending::Silent) {
            self.end.lock().unwrap().push(connection);
            let _ = self.stalling.lock().unwrap().send(());
        }
    }
}

fn read_request(connection: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut first = read_line(&mut reader)?;
    let mut request = Request::default();
    if let Some(proxied) = first.strip_prefix("CONNECT ") {
        request.proxy_for = Some(proxied.split(' ').next()?.to_owned());
        while !read_line(&mut reader)?.is_empty() {}
        connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
        first = read_line(&mut reader)?;
    }
    first.split(' ').nth(1)?.clone_into(&mut request.path);
    loop {
        let line = read_line(&mut reader)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        let value = value.trim().to_owned();
        request.headers.insert(name.to_ascii_lowercase(), value);
    }
    if let Some(range) = request.headers.get("range") {
        let start = range.strip_prefix("bytes=")?.strip_suffix('-')?;
        request.range_start = Some(start.parse().ok()?);
    }
    request.if_range = request.headers.get("if-range").cloned();
    if let Some(len) = request.headers.get("content-length") {
        request.body = vec![0; len.parse().ok()?];
        reader.read_exact(&mut request.body).ok()?;
    }
    Some(request)
}

fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    match reader.read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim_end().to_owned()),
    }
}

fn head(reply: &Reply) -> String {
    let mut head = format!("HTTP/1.1 {}\r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head + "\r\n"
}

impl Reply {
    /// An error without a body.
    pub(crate) fn status(status: &'static str) -> Self {
        Self { status, headers: vec![("Content-Length", "0".to_owned())], body: Vec::new(), ending: Ending::Complete }
    }

    pub(crate) fn redirect(to: String) -> Self {
        Self::status("302 Found").header("Location", to)
    }

    /// All of `content`.
    pub(crate) fn whole(content: &[u8]) -> Self {
        Self {
            status: "200 OK",
            headers: vec![("Content-Length", content.len().to_string())],
            body: content.to_vec(),
            ending: Ending::Complete,
        }
    }

    /// The correct response for a file: the requested range if `If-Range` matches the version of the file.
    pub(crate) fn file(content: &[u8], etag: &str, request: &Request) -> Self {
        let same = request.if_range.as_deref() == Some(etag);
        let reply = match request.range_start {
            Some(start) if same => Self::part(content, start),
            _ => Self::whole(content),
        };
        reply.header("ETag", etag.to_owned())
    }

    /// The content from byte `start` on, without checking `If-Range`.
    pub(crate) fn part(content: &[u8], start: usize) -> Self {
        let len = content.len();
        Self { status: "206 Partial Content", ..Self::whole(&content[start..]) }
            .header("Content-Range", format!("bytes {start}-{}/{len}", len - 1))
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    pub(crate) fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }
}

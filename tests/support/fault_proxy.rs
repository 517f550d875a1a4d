//! A proxy in front of the S3 server that forwards everything except for injected faults, and records the requests.
//!
//! It forwards each request as signed by the client, including `Host`, so the server behind it checks the original
//! signature.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::http::{Direction, Head};

/// Accepts connections until the test program ends.
pub(crate) struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    stalled: Mutex<Receiver<()>>,
}

struct Shared {
    upstream: SocketAddr,
    rules: Mutex<Vec<Rule>>,
    requests: Mutex<Vec<Request>>,
    in_flight: Mutex<InFlight>,
    stalling: Mutex<Sender<()>>,
    /// Stalled connections are kept open here.
    held: Mutex<Vec<TcpStream>>,
    is_down: AtomicBool,
    listening: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct InFlight {
    now: usize,
    most: usize,
}

struct Rule {
    matches: Box<dyn Fn(&Request) -> bool + Send + Sync>,
    often: Often,
    seen: usize,
    fault: Fault,
}

/// Selects which of the matching requests get the fault of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Often {
    Always,
    /// The first so many; later ones pass.
    First(usize),
    /// All but the first so many.
    After(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// This response instead of the server's; the server gets no request.
    Response(Response),
    /// The connection is closed without a response.
    HangUp,
    /// As if the server were killed: connections are refused from then on, until [`FaultProxy::restart`].
    Outage,
    /// The server handles the request, but its response is lost: the connection is closed.
    LostResponse,
    /// No response; the connection stays open.
    Silence,
    /// The server's response, delayed.
    Late(Duration),
    /// The server's head with the length of its body, this many bytes of it, then the connection is closed.
    CutAfter(usize),
    /// The same, but the connection stays open.
    StallAfter(usize),
    /// The server's response, this many bytes at a time, with a pause before each.
    Trickle { bytes: usize, pause: Duration },
    /// The server's response with another ETag: the object has changed since it was listed.
    OtherETag,
}

/// A complete response.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    /// `503 Slow Down`
    pub(crate) status: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The target as sent: percent-encoded, with the query.
    pub(crate) target: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
}

impl FaultProxy {
    pub(crate) fn before(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stalling, stalled) = channel();
        let shared = Arc::new(Shared {
            upstream,
            rules: Mutex::default(),
            requests: Mutex::default(),
            in_flight: Mutex::default(),
            stalling: Mutex::new(stalling),
            held: Mutex::default(),
            is_down: AtomicBool::new(false),
            listening: Mutex::default(),
        });
        shared.listen(listener);
        Self { address, shared, stalled: Mutex::new(stalled) }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Applies `fault` to all further requests for which `matches` is true. If two rules match, the older one applies.
    pub(crate) fn inject(
        &self,
        matches: impl Fn(&Request) -> bool + Send + Sync + 'static,
        often: Often,
        fault: Fault,
    ) {
        self.shared.rules.lock().unwrap().push(Rule { matches: Box::new(matches), often, seen: 0, fault });
    }

    pub(crate) fn heal(&self) {
        self.shared.rules.lock().unwrap().clear();
    }

    /// Ends a [`Fault::Outage`]: requests succeed again, at the same address.
    pub(crate) fn restart(&self) {
        self.heal();
        let listening = self.shared.listening.lock().unwrap().take();
        listening.expect("it has listened").join().unwrap();
        self.shared.is_down.store(false, Ordering::SeqCst);
        self.shared.listen(TcpListener::bind(self.address).unwrap());
    }

    /// All requests so far, in order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The number of requests for which `matches` is true.
    pub(crate) fn count(&self, matches: impl Fn(&Request) -> bool) -> usize {
        let requests = self.shared.requests.lock().unwrap();
        requests.iter().filter(|request| matches(request)).count()
    }

    /// The maximum number of requests that waited for the start of their response at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.shared.in_flight.lock().unwrap().most
    }

    /// Waits until a response has started to stall.
    pub(crate) fn wait_until_stalled(&self) {
        self.stalled.lock().unwrap().recv().unwrap();
    }
}

impl Request {
    fn parse(head: &Head) -> Self {
        let fields = head.fields.iter();
        Self {
            method: head.method().to_owned(),
            target: head.target().to_owned(),
            headers: fields.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it requests a page of a bucket's listing.
    pub(crate) fn lists(&self) -> bool {
        self.method == "GET" && self.target.contains("list-type=2")
    }

    /// Whether it requests the content of an object or a part of it.
    pub(crate) fn reads(&self) -> bool {
        self.method == "GET" && !self.key().is_empty()
    }

    /// Whether it requests the content of this object.
    pub(crate) fn reads_key(&self, key: &str) -> bool {
        self.reads() && self.key() == key
    }

    /// The key of the requested object; empty for a request about a bucket or all of them.
    pub(crate) fn key(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        let key = path.splitn(3, '/').nth(2).unwrap_or_default();
        percent_decode_str(key).decode_utf8_lossy().into_owned()
    }

    /// The region that it was signed for; `None` without a signature.
    pub(crate) fn region(&self) -> Option<&str> {
        let credential = self.header("authorization")?.split("Credential=").nth(1)?;
        credential.split('/').nth(2)
    }
}

impl Response {
    /// An error in S3's format.
    pub(crate) fn s3_error(status: &str, code: &str, message: &str) -> Self {
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message>\
             <RequestId>4442587FB7D0A2F9</RequestId><HostId>host</HostId></Error>"
        );
        Self {
            status: status.to_owned(),
            headers: vec![("Content-Type".to_owned(), "application/xml".to_owned())],
            body: body.into_bytes(),
        }
    }

    /// An HTML page, such as the sign-in page of a hotel or the block page of a company.
    pub(crate) fn html(status: &str, text: &str) -> Self {
        Self {
            status: status.to_owned(),
            headers: vec![("Content-Type".to_owned(), "text/html".to_owned())],
            body: format!("<!DOCTYPE html><html><body><h1>{text}</h1></body></html>").into_bytes(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl Fault {
    /// An S3 error, such as `503 Slow Down` and `SlowDown`.
    pub(crate) fn error(status: &str, code: &str) -> Self {
        Self::Response(Response::s3_error(status, code, "As the test wants it."))
    }
}

impl Shared {
    /// Accepts connections until there is an outage.
    fn listen(self: &Arc<Self>, listener: TcpListener) {
        let proxy = Arc::clone(self);
        let listening = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if proxy.is_down.load(Ordering::SeqCst) {
                    return;
                }
                let proxy = Arc::clone(&proxy);
                // Whether a client or server may disconnect is up to the test.
                std::thread::spawn(move || proxy.serve(&connection.ok()?));
            }
        });
        *self.listening.lock().unwrap() = Some(listening);
    }

    /// `None` if one of the two sides has disconnected.
    fn serve(&self, client: &TcpStream) -> Option<()> {
        client.set_nodelay(true).ok()?;
        let mut requests = BufReader::new(client.try_clone().ok()?);
        let mut server = Upstream::open(self.upstream)?;
        loop {
            let head = Head::read(&mut requests)?;
            let body = head.read_body(&mut requests, Direction::Request)?;
            let request = Request::parse(&head);
            let fault = self.note(&request);
            if matches!(fault, Some(Fault::Outage)) && !self.is_down.swap(true, Ordering::SeqCst) {
                // Wakes the listening thread.
                let _ = TcpStream::connect(client.local_addr().ok()?);
            }
            if self.is_down.load(Ordering::SeqCst) {
                hang_up(client);
                return None;
            }
            let waiting = self.enter();
            if self.response(client, &mut server, &head, &body.raw, fault.as_ref(), waiting)? == Connection::Closed {
                return None;
            }
        }
    }

    /// Records the request, and returns the fault for it.
    fn note(&self, request: &Request) -> Option<Fault> {
        self.requests.lock().unwrap().push(request.clone());
        let mut rules = self.rules.lock().unwrap();
        let rule = rules.iter_mut().find(|rule| (rule.matches)(request))?;
        rule.seen += 1;
        let hit = match rule.often {
            Often::Always => true,
            Often::First(count) => rule.seen <= count,
            Often::After(count) => rule.seen > count,
        };
        hit.then(|| rule.fault.clone())
    }

    fn enter(&self) -> Waiting<'_> {
        let mut in_flight = self.in_flight.lock().unwrap();
        in_flight.now += 1;
        in_flight.most = in_flight.most.max(in_flight.now);
        Waiting(&self.in_flight)
    }

    /// `waiting` ends before the client can receive anything, and so before it can send its next request.
    fn response(
        &self,
        mut client: &TcpStream,
        server: &mut Upstream,
        head: &Head,
        body: &[u8],
        fault: Option<&Fault>,
        waiting: Waiting,
    ) -> Option<Connection> {
        match fault {
            Some(Fault::Response(response)) => {
                drop(waiting);
                let mut message = format!("HTTP/1.1 {}\r\n", response.status);
                for (name, value) in &response.headers {
                    message.extend([name, ": ", value, "\r\n"]);
                }
                let len = response.body.len().to_string();
                message.extend(["Content-Length: ", &len, "\r\n\r\n"]);
                client.write_all(message.as_bytes()).ok()?;
                if head.method() != "HEAD" {
                    client.write_all(&response.body).ok()?;
                }
                return Some(Connection::Open);
            }
            Some(Fault::HangUp) => return Some(hang_up(client)),
            Some(Fault::Silence) => return self.stall(client),
            Some(Fault::Late(delay)) => std::thread::sleep(*delay),
            _ => {}
        }
        let (mut response, content) = server.exchange(head, body)?;
        if matches!(fault, Some(Fault::LostResponse)) {
            return Some(hang_up(client));
        }
        if matches!(fault, Some(Fault::OtherETag)) {
            response.set("ETag", "\"00000000000000000000000000000000\"");
        }
        drop(waiting);
        client.write_all(response.to_string().as_bytes()).ok()?;
        match fault {
            Some(Fault::CutAfter(len)) => {
                client.write_all(&content[..content.len().min(*len)]).ok()?;
                return Some(hang_up(client));
            }
            Some(Fault::StallAfter(len)) => {
                client.write_all(&content[..content.len().min(*len)]).ok()?;
                return self.stall(client);
            }
            Some(Fault::Trickle { bytes, pause }) => {
                for piece in content.chunks(*bytes) {
                    std::thread::sleep(*pause);
                    client.write_all(piece).ok()?;
                }
            }
            _ => client.write_all(&content).ok()?,
        }
        Some(Connection::Open)
    }

    fn stall(&self, client: &TcpStream) -> Option<Connection> {
        self.held.lock().unwrap().push(client.try_clone().ok()?);
        let _ = self.stalling.lock().unwrap().send(());
        Some(Connection::Closed)
    }
}

/// A request whose response has not started.
struct Waiting<'a>(&'a Mutex<InFlight>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().now -= 1;
    }
}

/// The state of the client's connection after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Open,
    Closed,
}

fn hang_up(client: &TcpStream) -> Connection {
    // If the client was faster, it is closed already.
    let _ = client.shutdown(std::net::Shutdown::Both);
    Connection::Closed
}

struct Upstream {
    stream: TcpStream,
    responses: BufReader<TcpStream>,
}

impl Upstream {
    fn open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        let responses = BufReader::new(stream.try_clone().ok()?);
        Some(Self { stream, responses })
    }

    /// Forwards a request: the head, now with the length of the content, and the content.
    fn exchange(&mut self, head: &Head, body: &[u8]) -> Option<(Head, Vec<u8>)> {
        self.stream.write_all(head.to_string().as_bytes()).ok()?;
        self.stream.write_all(body).ok()?;
        let mut response = Head::read(&mut self.responses)?;
        while response.status() == Some("100") {
            response = Head::read(&mut self.responses)?;
        }
        let has_body = head.method() != "HEAD" && !matches!(response.status(), Some("204" | "304"));
        if !has_body {
            return Some((response, Vec::new()));
        }
        let body = response.read_body(&mut self.responses, Direction::Response)?;
        response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("transfer-encoding"));
        response.set("Content-Length", &body.content.len().to_string());
        Some((response, body.content))
    }
}

//! As much of HTTP/1.1 as the tests' own servers and clients need: heads and bodies as sent, and a client connection.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The size of a chunk of a chunked body.
const CHUNK: usize = 16 * 1024;

/// The first line and the header fields of a request or a response, as sent.
pub(crate) struct Head {
    pub(crate) first: String,
    pub(crate) fields: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Request,
    Response,
}

/// A body as sent, and its content.
pub(crate) struct Body {
    pub(crate) raw: Vec<u8>,
    pub(crate) content: Vec<u8>,
}

impl Head {
    pub(crate) fn read(reader: &mut impl BufRead) -> Option<Self> {
        let first = read_line(reader)?;
        let mut fields = Vec::new();
        loop {
            let line = read_line(reader)?;
            if line.is_empty() {
                return Some(Self { first, fields });
            }
            let (name, value) = line.split_once(':')?;
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.fields.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.fields.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn method(&self) -> &str {
        self.first.split(' ').next().unwrap_or_default()
    }

    pub(crate) fn status(&self) -> Option<&str> {
        self.first.split(' ').nth(1)
    }

    /// The target of a request as sent: percent-encoded, with the query.
    pub(crate) fn target(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn read_body(&self, reader: &mut impl BufRead, direction: Direction) -> Option<Body> {
        let coding = self.get("transfer-encoding").unwrap_or_default();
        if coding.eq_ignore_ascii_case("chunked") {
            return read_chunks(reader);
        }
        let mut content = Vec::new();
        match self.get("content-length") {
            Some(len) => {
                content.resize(len.parse().ok()?, 0);
                reader.read_exact(&mut content).ok()?;
            }
            None if direction == Direction::Response => {
                reader.read_to_end(&mut content).ok()?;
            }
            None => {}
        }
        Some(Body { raw: content.clone(), content })
    }
}

impl std::fmt::Display for Head {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}\r\n", self.first)?;
        for (name, value) in &self.fields {
            write!(formatter, "{name}: {value}\r\n")?;
        }
        formatter.write_str("\r\n")
    }
}

/// Reads a line without its end.
fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let len = reader.read_line(&mut line).ok()?;
    (len > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

fn read_chunks(reader: &mut impl BufRead) -> Option<Body> {
    let mut body = Body { raw: Vec::new(), content: Vec::new() };
    loop {
        let line = read_line(reader)?;
        body.raw.extend_from_slice(format!("{line}\r\n").as_bytes());
        let len = line.split(';').next().unwrap_or_default();
        let len = usize::from_str_radix(len, 16).ok()?;
        if len == 0 {
            break;
        }
        // The content, and the end of its line.
        let mut chunk = vec![0; len + 2];
        reader.read_exact(&mut chunk).ok()?;
        body.content.extend_from_slice(&chunk[..len]);
        body.raw.extend_from_slice(&chunk);
    }
    // Trailers after the last chunk, and the empty line.
    loop {
        let line = read_line(reader)?;
        body.raw.extend_from_slice(format!("{line}\r\n").as_bytes());
        if line.is_empty() {
            return Some(body);
        }
    }
}

/// A client's connection, used for several requests in sequence.
pub(crate) struct Connection {
    host: SocketAddr,
    stream: TcpStream,
    responses: BufReader<TcpStream>,
}

/// How a request transfers its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// `Content-Length`
    Whole,
    /// `Transfer-Encoding: chunked`
    Chunked,
}

/// A server's response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: Head,
    pub(crate) content: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(host: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        let responses = BufReader::new(stream.try_clone()?);
        Ok(Self { host, stream, responses })
    }

    /// Sets how long a server may stay silent from now on.
    pub(crate) fn be_patient_for(&self, patience: Duration) -> std::io::Result<()> {
        self.stream.set_read_timeout(Some(patience))
    }

    /// Sends a request without extra header fields; returns the status and the body of the response.
    pub(crate) fn exchange(&mut self, method: &str, target: &str, body: &[u8]) -> std::io::Result<(u16, Vec<u8>)> {
        let response = self.send(method, target, &[], body, Transfer::Whole)?;
        Ok((response.status, response.content))
    }

    pub(crate) fn send(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
        transfer: Transfer,
    ) -> std::io::Result<Response> {
        let mut head = Head {
            first: format!("{method} {target} HTTP/1.1"),
            fields: vec![("Host".to_owned(), self.host.to_string())],
        };
        for (name, value) in fields {
            head.set(name, value);
        }
        match transfer {
            Transfer::Whole => head.set("Content-Length", &body.len().to_string()),
            Transfer::Chunked => head.set("Transfer-Encoding", "chunked"),
        }
        let mut message = head.to_string().into_bytes();
        match transfer {
            Transfer::Whole => message.extend_from_slice(body),
            Transfer::Chunked => {
                for chunk in body.chunks(CHUNK) {
                    message.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    message.extend_from_slice(chunk);
                    message.extend_from_slice(b"\r\n");
                }
                message.extend_from_slice(b"0\r\n\r\n");
            }
        }
        self.stream.write_all(&message)?;
        self.receive(method).ok_or_else(|| ErrorKind::InvalidData.into())
    }

    fn receive(&mut self, method: &str) -> Option<Response> {
        let mut head = Head::read(&mut self.responses)?;
        while head.status() == Some("100") {
            head = Head::read(&mut self.responses)?;
        }
        let status = head.status()?.parse().ok()?;
        let content = if method == "HEAD" || matches!(status, 204 | 304) {
            Vec::new()
        } else {
            head.read_body(&mut self.responses, Direction::Response)?.content
        };
        Some(Response { status, head, content })
    }
}

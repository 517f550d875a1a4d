//! Robust downloads: they resume after an interruption, try the next mirror, and end with the right bytes or with an
//! error.
//!
//! One file at a time: `model.onnx.part` next to the target while it grows, `model.onnx.part.json` with what is needed
//! to resume, and one atomic rename once size and SHA-256 are right.

mod http;
mod part;
pub mod sha256;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::sha256::{OnChunk, has_sha256};
use crate::domain::{ModelFile, human_bytes};
use crate::local_file;
use crate::tasks::{Cancelled, TaskControl};
pub use http::{Access, Login};
use http::{Connection, Event, Fault, ResponseHead, Validator};
use part::Part;
pub use part::part_is_locked;

/// How patient a download is, and how it reaches servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadPolicy {
    /// A connection without data for this long is aborted.
    pub stall_timeout: Duration,
    /// The pause before a mirror is retried; doubled each time without progress.
    pub first_pause: Duration,
    /// The number of attempts without progress before the next mirror is tried.
    pub attempts: u32,
    pub access: Access,
}

impl Default for DownloadPolicy {
    fn default() -> Self {
        Self {
            stall_timeout: Duration::from_secs(20),
            first_pause: Duration::from_secs(1),
            attempts: 4,
            access: Access::default(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    #[error("another Spotcheck is downloading {title}; wait until it is done, or cancel it there")]
    Busy { title: String },
    #[error(
        "could not download {title} ({}). Behind a proxy, set HTTPS_PROXY to its address.{}",
        human_bytes(*bytes),
        lines(failures)
    )]
    NoMirrorWorks { title: String, bytes: u64, failures: Vec<MirrorFailure> },
    #[error(
        "the disk is full: {title} needs {} more; free some space and download again to resume: {}",
        human_bytes(*missing_bytes),
        path.display()
    )]
    DiskFull { title: String, missing_bytes: u64, path: PathBuf },
    #[error("this file is not {title}: {reason}: {}", path.display())]
    WrongFile { title: String, reason: String, path: PathBuf },
    #[error("could not read a web page: {0}")]
    Page(MirrorFailure),
    #[error("could not {what}: {source}: {}", path.display())]
    Io {
        /// What was attempted: “write the download”.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl DownloadError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// Why a mirror was abandoned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host} {reason}: {url}")]
pub struct MirrorFailure {
    pub host: String,
    /// To follow the host: “returned 404 Not Found”.
    pub reason: String,
    pub url: String,
}

/// Each failure on its own line, below the message.
fn lines(failures: &[MirrorFailure]) -> String {
    failures.iter().fold(String::new(), |mut text, failure| {
        text.push_str("\n  ");
        text.push_str(&failure.to_string());
        text
    })
}

/// A file to download or copy, called `title` in messages.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub title: &'a str,
    pub file: &'a ModelFile,
    /// Where it goes, replacing an existing file.
    pub target: &'a Path,
}

impl Wanted<'_> {
    /// Downloads the file. Progress is in bytes.
    pub fn download(self, policy: &DownloadPolicy, control: &TaskControl) -> Result<(), DownloadError> {
        let mut part = Part::open(self.target, self.title, self.file)?;
        match self.fill(&mut part, policy, control) {
            Ok(()) => part.finish(self.target),
            Err(error) => {
                part.discard_if_empty()?;
                Err(error)
            }
        }
    }

    /// Ends with a complete and verified part.
    fn fill(self, part: &mut Part, policy: &DownloadPolicy, control: &TaskControl) -> Result<(), DownloadError> {
        let Self { title, file, .. } = self;
        control.set_total(Some(file.bytes));
        let mut failures: Vec<MirrorFailure> = Vec::new();
        for url in mirrors(file, part.url()) {
            let host = http::host(&url);
            let so_far = failures.last().map_or(String::new(), |f| format!(" ({f})"));
            let step = format!("Downloading {title} from {host}{so_far}");
            let mut download = Download { title, file, url: &url, policy, control, step };
            match download.run(part) {
                Ok(()) => return Ok(()),
                Err(Failure::Stop(error)) => return Err(error),
                Err(Failure::Mirror(reason)) => {
                    let failure = MirrorFailure { host, reason, url };
                    log::warn!("{title}: {failure}");
                    control.note(failure.to_string());
                    failures.push(failure);
                }
            }
        }
        Err(DownloadError::NoMirrorWorks { title: title.to_owned(), bytes: file.bytes, failures })
    }

    /// Copies the file from one of the user's.
    pub fn copy(self, from: &Path, control: &TaskControl) -> Result<(), DownloadError> {
        let Self { title, file, target } = self;
        let wrong =
            |reason: String| DownloadError::WrongFile { title: title.to_owned(), reason, path: from.to_owned() };
        let metadata = local_file::metadata(from);
        let bytes = metadata.map_err(DownloadError::io("read the file", from))?.len();
        if bytes != file.bytes {
            return Err(wrong(format!("it has {bytes} bytes, not {}", file.bytes)));
        }
        control.set_total(Some(file.bytes));
        control.set_step(format!("Copying {title}"));
        let mut source = local_file::open(from).map_err(DownloadError::io("read the file", from))?;
        let mut part = Part::open(target, title, file)?;
        let copied = stoppable(control, |on_chunk| part.copy(&mut source, on_chunk))?;
        let copied = copied.map_err(|error| part.write_error(error))?;
        if copied.sha256 != file.sha256 {
            part.discard()?;
            return Err(wrong(format!("its sha256 is {}, not {}", copied.sha256, file.sha256)));
        }
        part.finish(target)
    }
}

/// A web page, after redirects.
#[derive(Debug)]
pub struct Page {
    pub url: String,
    pub content_type: String,
    pub body: Vec<u8>,
}

/// The page at `url` of at most `max_bytes` bytes. `accept` names the wanted content types.
pub fn fetch_page(
    url: &str,
    accept: &str,
    max_bytes: usize,
    policy: &DownloadPolicy,
    control: &TaskControl,
) -> Result<Page, DownloadError> {
    let host = http::host(url);
    let failed = |reason| DownloadError::Page(MirrorFailure { host: host.clone(), reason, url: url.to_owned() });
    let mut pause = policy.first_pause;
    let mut attempts_left = policy.attempts;
    loop {
        control.set_step(format!("Asking {host}"));
        let connection = Connection::open(url, accept, None, &policy.access, policy.stall_timeout);
        let reason = match read_page(connection, max_bytes, policy, control) {
            Ok(page) => return Ok(page),
            Err(Setback::Failure(Failure::Stop(error))) => return Err(error),
            Err(Setback::Failure(Failure::Mirror(reason))) => return Err(failed(reason)),
            Err(Setback::Again(reason)) => reason,
        };
        attempts_left -= 1;
        if attempts_left == 0 {
            return Err(failed(reason));
        }
        control.set_step(format!("{host} {reason}; retrying"));
        control.sleep(pause)?;
        pause *= 2;
    }
}

fn read_page(
    mut connection: Connection,
    max_bytes: usize,
    policy: &DownloadPolicy,
    control: &TaskControl,
) -> Result<Page, Setback> {
    let mut page = match next(&mut connection, policy, control)? {
        Event::Head(response) if response.status == 200 => {
            Page { url: response.url, content_type: response.content_type, body: Vec::new() }
        }
        Event::Head(response) => return Err(status_setback(&response)),
        Event::Failed(Fault::Timeout) => return Err(Setback::Again("did not respond in time".to_owned())),
        Event::Failed(Fault::Other(reason)) => return Err(fatal(reason)),
        Event::Data(_) | Event::End => return Err(Setback::Again("sent no response".to_owned())),
    };
    loop {
        match next(&mut connection, policy, control)? {
            Event::Data(data) => page.body.extend(data),
            Event::End => return Ok(page),
            Event::Head(_) | Event::Failed(_) => {
                return Err(Setback::Again("closed the connection early".to_owned()));
            }
        }
        if page.body.len() > max_bytes {
            return Err(fatal(format!("sent a page of more than {}", human_bytes(max_bytes as u64))));
        }
    }
}

/// Whether a file has the content that `wanted` describes.
pub fn is_intact(path: &Path, wanted: &ModelFile, control: &TaskControl) -> Result<bool, DownloadError> {
    control.set_total(Some(wanted.bytes));
    let checked = stoppable(control, |on_chunk| has_sha256(path, &wanted.sha256, on_chunk))?;
    checked.map_err(DownloadError::io("read the file", path))
}

/// Work on a file, counted in `control` and canceled by it.
fn stoppable<T>(
    control: &TaskControl,
    work: impl FnOnce(OnChunk<'_>) -> io::Result<T>,
) -> Result<io::Result<T>, Cancelled> {
    control.set_done_before(0);
    let mut cancelled = false;
    let result = work(&mut |bytes| {
        control.add_done(bytes);
        control.checkpoint().map_err(|error| {
            cancelled = true;
            io::Error::other(error)
        })
    });
    if cancelled { Err(Cancelled) } else { Ok(result) }
}

/// The mirrors in the given order, but first the one that an unfinished download came from.
fn mirrors(file: &ModelFile, unfinished: Option<&str>) -> Vec<String> {
    let mut urls = file.urls.clone();
    urls.sort_by_key(|url| Some(url.as_str()) != unfinished);
    urls
}

/// Why a mirror is abandoned.
enum Failure {
    /// Another mirror may succeed.
    Mirror(String),
    /// The download cannot continue: it was canceled, or the disk is full.
    Stop(DownloadError),
}

/// Why a request did not deliver the rest of the file.
enum Setback {
    /// The same mirror may succeed in a moment.
    Again(String),
    Failure(Failure),
}

impl<E: Into<DownloadError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Stop(error.into())
    }
}

impl<E: Into<DownloadError>> From<E> for Setback {
    fn from(error: E) -> Self {
        Self::Failure(error.into().into())
    }
}

/// A failure after which this mirror is not retried.
fn fatal(reason: impl Into<String>) -> Setback {
    Setback::Failure(Failure::Mirror(reason.into()))
}

struct Download<'a> {
    title: &'a str,
    file: &'a ModelFile,
    url: &'a str,
    policy: &'a DownloadPolicy,
    control: &'a TaskControl,
    /// The step shown while data arrives.
    step: String,
}

impl Download<'_> {
    /// Ends with a complete and verified part.
    fn run(&mut self, part: &mut Part) -> Result<(), Failure> {
        part.begin(self.url)?;
        let kept = part.len() > 0;
        self.fill(part)?;
        if self.is_right(part)? {
            return Ok(());
        }
        part.restart()?;
        if kept {
            // The earlier data may have been wrong, rather than what this mirror sent.
            self.fill(part)?;
            if self.is_right(part)? {
                return Ok(());
            }
            part.restart()?;
        }
        Err(Failure::Mirror("sent a file with the wrong content (its sha256 is not the expected one)".to_owned()))
    }

    /// Sends requests until the part has all its bytes.
    fn fill(&mut self, part: &mut Part) -> Result<(), Failure> {
        let mut pause = self.policy.first_pause;
        let mut attempts_left = self.policy.attempts;
        let mut reached = part.len();
        while part.len() < self.file.bytes {
            self.control.set_step(self.step.clone());
            let reason = match self.request(part) {
                Ok(()) => return Ok(()),
                Err(Setback::Failure(failure)) => return Err(failure),
                Err(Setback::Again(reason)) => reason,
            };
            // A server that trickles single bytes must not keep us waiting forever.
            if part.len() > reached + self.file.bytes / 100 {
                (pause, attempts_left) = (self.policy.first_pause, self.policy.attempts);
                reached = part.len();
            }
            attempts_left -= 1;
            if attempts_left == 0 {
                return Err(Failure::Mirror(reason));
            }
            let host = http::host(self.url);
            log::info!("{}: {host} {reason}; retrying", self.title);
            self.control.set_step(format!("{host} {reason}; retrying"));
            self.control.sleep(pause)?;
            pause *= 2;
        }
        Ok(())
    }

    /// A request for what is missing, written to the part as it arrives.
    fn request(&self, part: &mut Part) -> Result<(), Setback> {
        self.control.set_done_before(part.len());
        let range = part.validator().map(|validator| (part.len(), validator));
        let access = &self.policy.access;
        let mut connection = Connection::open(self.url, "*/*", range, access, self.policy.stall_timeout);
        match next(&mut connection, self.policy, self.control)? {
            Event::Head(response) => self.accept(&response, part)?,
            Event::Failed(fault) => return Err(connect_setback(fault, part)),
            Event::Data(_) | Event::End => {
                return Err(Setback::Again("sent no response".to_owned()));
            }
        }
        loop {
            match next(&mut connection, self.policy, self.control)? {
                Event::Data(data) => self.keep(&data, part)?,
                Event::End if part.len() == self.file.bytes => return Ok(()),
                Event::End => return Err(Setback::Again(self.cut(part))),
                Event::Failed(fault) => {
                    log::debug!("{}: {fault:?}", self.url);
                    return Err(Setback::Again(self.cut(part)));
                }
                Event::Head(_) => return Err(fatal("sent two responses")),
            }
        }
    }

    /// Positions the part where the response continues.
    fn accept(&self, response: &ResponseHead, part: &mut Part) -> Result<(), Setback> {
        let bytes = self.file.bytes;
        match response.status {
            200 if response.content_type.starts_with("text/html") => {
                part.restart()?;
                Err(fatal("sent a web page instead of the file; if this network has a login page, open it first"))
            }
            200 => {
                if let Some(length) = response.content_length
                    && length != bytes
                {
                    part.restart()?;
                    return Err(fatal(format!("has a file of {length} bytes instead of {bytes}")));
                }
                // Even for a range request: the file has changed, or the server does not support ranges.
                part.restart()?;
                part.set_validator(Validator::from_response(response))?;
                self.control.set_done_before(0);
                Ok(())
            }
            206 => {
                let goes_on = response.range_start == Some(part.len())
                    && response.range_total.is_none_or(|total| total == bytes)
                    && part.validator().is_some_and(|validator| !validator.differs(response));
                if goes_on {
                    return Ok(());
                }
                part.restart()?;
                Err(Setback::Again("sent a part that was not requested".to_owned()))
            }
            416 => {
                part.restart()?;
                Err(Setback::Again("does not have the requested part of the file".to_owned()))
            }
            _ => Err(status_setback(response)),
        }
    }

    fn keep(&self, data: &[u8], part: &mut Part) -> Result<(), Setback> {
        let bytes = self.file.bytes;
        if part.len() + data.len() as u64 > bytes {
            part.restart()?;
            return Err(fatal(format!("sent more than the {bytes} bytes of the file")));
        }
        part.append(data)?;
        self.control.add_done(data.len() as u64);
        Ok(())
    }

    /// Whether the complete part has the content named in the card.
    fn is_right(&self, part: &mut Part) -> Result<bool, Failure> {
        self.control.set_step(format!("Checking {}", self.title));
        let hashed = stoppable(self.control, |on_chunk| part.hash(on_chunk))?;
        let hashed = hashed.map_err(|error| part.write_error(error))?;
        Ok(hashed.sha256 == self.file.sha256)
    }

    fn cut(&self, part: &Part) -> String {
        let (done, all) = (human_bytes(part.len()), human_bytes(self.file.bytes));
        format!("closed the connection after {done} of {all}")
    }
}

/// The connection's next event, or a setback if none arrives.
fn next(connection: &mut Connection, policy: &DownloadPolicy, control: &TaskControl) -> Result<Event, Setback> {
    let slice = Duration::from_millis(50);
    let mut waited = Duration::ZERO;
    loop {
        // Also waits while the task is paused, which must not count as a stall.
        control.checkpoint()?;
        if let Some(event) = connection.wait(slice) {
            return Ok(event);
        }
        waited += slice;
        if waited >= policy.stall_timeout {
            let secs = policy.stall_timeout.as_secs_f32();
            return Err(Setback::Again(format!("sent nothing for {secs} s")));
        }
    }
}

/// A response without the requested content.
fn status_setback(response: &ResponseHead) -> Setback {
    let reason = format!("returned {}", response.status_text);
    match response.status {
        408 | 429 | 500..=599 => Setback::Again(reason),
        _ => fatal(reason),
    }
}

/// A mirror that was reached before is retried; one that cannot be reached at all is skipped immediately.
fn connect_setback(fault: Fault, part: &Part) -> Setback {
    match fault {
        Fault::Timeout => Setback::Again("did not respond in time".to_owned()),
        Fault::Other(reason) if part.grew() => Setback::Again(reason),
        Fault::Other(reason) => fatal(reason),
    }
}

//! The archive's handler as a process of this machine, on loopback. It ends with whoever started it, however that ends.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use ureq::{Agent, SendBody};

use super::RehearseError;
use crate::tasks::{CancelHook, TaskControl};

/// A ping is answered at once or not at all.
const PONG_WITHIN: Duration = Duration::from_secs(2);
/// SageMaker's own default.
const ANSWERS_WITHIN: Duration = Duration::from_mins(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What is kept of what the handler writes, for messages.
const LOG_LINES: usize = 30;
/// More than any answer; a handler that sends without end is cut off.
const MAX_ANSWER_BYTES: u64 = 100 << 20;

pub(super) struct Handler {
    child: Arc<Mutex<Child>>,
    address: String,
    agent: Agent,
    log: Log,
    _kill_on_cancel: CancelHook,
}

/// What came back for a request.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A request for an answer.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) body: &'a [u8],
    pub(super) content_type: &'a str,
    pub(super) transfer: Transfer,
}

/// How a body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transfer {
    /// With its length before it.
    Whole,
    /// In pieces, as SageMaker sends it where `MaxPayloadInMB` is 0.
    Chunked,
}

/// Names and values.
pub(super) type Environment = BTreeMap<String, String>;

/// How the process is started.
pub(super) struct Launch<'a> {
    pub(super) python: &'a str,
    pub(super) script: &'a Path,
    /// Where it runs: the unpacked archive.
    pub(super) folder: &'a Path,
    pub(super) environment: Environment,
    /// Until it answers its ping.
    pub(super) ready_within: Duration,
}

impl Handler {
    /// Returns once it answers its ping, and so has loaded its model.
    pub(super) fn start(launch: &Launch<'_>, control: &TaskControl) -> Result<Self, RehearseError> {
        let child = Command::new(launch.python)
            .arg(launch.script)
            .args(["--host", "127.0.0.1", "--until-stdin-closes"])
            .current_dir(launch.folder)
            .envs(&launch.environment)
            .env("SAGEMAKER_BIND_TO_PORT", "0")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| RehearseError::NoPython {
            python: launch.python.to_owned(),
            reason: error.to_string(),
        })?;
        let log = Log::default();
        let (said, first_line) = bounded(1);
        if let Some(output) = child.stdout.take() {
            log.follow(output, move |line| said.try_send(line.to_owned()).is_err());
        }
        if let Some(output) = child.stderr.take() {
            log.follow(output, |_| true);
        }
        let child = Arc::new(Mutex::new(child));
        let killed = Arc::clone(&child);
        let mut handler = Self {
            child,
            address: String::new(),
            agent: agent(),
            log,
            _kill_on_cancel: control.on_cancel(move || end(&killed)),
        };
        let patience = Patience {
            begun: Instant::now(),
            within: launch.ready_within,
        };
        let port = handler.wait_for_port(&first_line, patience, control)?;
        handler.address = format!("http://127.0.0.1:{port}");
        handler.wait_for_pong(patience, control)?;
        Ok(handler)
    }

    fn wait_for_port(
        &self,
        first_line: &Receiver<String>,
        patience: Patience,
        control: &TaskControl,
    ) -> Result<u16, RehearseError> {
        loop {
            control.checkpoint()?;
            match first_line.recv_timeout(LOOK_EVERY) {
                Ok(line) => {
                    if let Some(port) = line
                        .strip_prefix("port ")
                        .and_then(|port| port.parse().ok())
                    {
                        return Ok(port);
                    }
                }
                Err(RecvTimeoutError::Timeout) if !patience.is_over() => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(RehearseError::HandlerSilent {
                        seconds: patience.within.as_secs(),
                        log: self.log.lines(),
                    });
                }
                // It has closed its output, which only its end does.
                Err(RecvTimeoutError::Disconnected) => {
                    let status = lock(&self.child).wait();
                    control.checkpoint()?;
                    return Err(self.ended(status));
                }
            }
        }
    }

    fn ended(&self, status: std::io::Result<ExitStatus>) -> RehearseError {
        RehearseError::HandlerEnded {
            status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            log: self.log.lines(),
        }
    }

    /// SageMaker sends nothing before `GET /ping` is answered with 200.
    fn wait_for_pong(
        &self,
        patience: Patience,
        control: &TaskControl,
    ) -> Result<(), RehearseError> {
        let url = format!("{}/ping", self.address);
        loop {
            control.checkpoint()?;
            let ping = self.agent.get(&url).config();
            let ping = ping.timeout_global(Some(PONG_WITHIN)).build().call();
            let said = match ping {
                Ok(pong) if pong.status() == 200 => return Ok(()),
                Ok(pong) => format!("with status {}", pong.status().as_u16()),
                Err(error) => format!("not at all ({error})"),
            };
            if let Some(status) = lock(&self.child).try_wait().transpose() {
                return Err(self.ended(status));
            }
            if patience.is_over() {
                return Err(RehearseError::NoPong {
                    said,
                    seconds: patience.within.as_secs(),
                    log: self.log.lines(),
                });
            }
            control.sleep(LOOK_EVERY)?;
        }
    }

    /// How many requests at once the handler asks for, as Batch Transform asks it.
    pub(super) fn max_concurrent(&self) -> Option<u32> {
        let url = format!("{}/execution-parameters", self.address);
        let mut response = self.agent.get(&url).call().ok()?;
        let body = response.body_mut().read_to_vec().ok()?;
        let parameters: serde_json::Value = serde_json::from_slice(&body).ok()?;
        u32::try_from(parameters["MaxConcurrentTransforms"].as_u64()?).ok()
    }

    /// # Errors
    /// There was no answer, and why.
    pub(super) fn invoke(&self, question: Question<'_>) -> Result<Reply, String> {
        let url = format!("{}/invocations", self.address);
        let request = self
            .agent
            .post(&url)
            .header("content-type", question.content_type)
            .header("accept", "application/json");
        let no_answer = |error: ureq::Error| match self.log.lines().last() {
            Some(last) => {
                format!("the handler did not answer ({error}); the last it said is “{last}”")
            }
            None => format!("the handler did not answer ({error})"),
        };
        let response = match question.transfer {
            Transfer::Whole => request.send(question.body),
            // Of a reader nobody knows the length.
            Transfer::Chunked => {
                let mut body = question.body;
                request.send(SendBody::from_reader(&mut body))
            }
        };
        let mut response = response.map_err(no_answer)?;
        let status = response.status().as_u16();
        let answer = response
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER_BYTES)
            .read_to_vec()
            .map_err(no_answer)?;
        Ok(Reply {
            status,
            body: answer,
        })
    }
}

/// How long it is waited for.
#[derive(Clone, Copy)]
struct Patience {
    begun: Instant,
    within: Duration,
}

impl Patience {
    fn is_over(self) -> bool {
        self.begun.elapsed() >= self.within
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        end(&self.child);
        // So that no zombie stays.
        if let Err(error) = lock(&self.child).wait() {
            log::warn!("could not wait for the handler to end: {error}");
        }
    }
}

fn end(child: &Mutex<Child>) {
    // It fails where the process has ended already.
    let _ = lock(child).kill();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // Nobody on the way: it is this machine.
        .proxy(None)
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_recv_response(Some(ANSWERS_WITHIN))
        .timeout_recv_body(Some(ANSWERS_WITHIN));
    config.build().new_agent()
}

/// The last lines that the handler wrote.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<VecDeque<String>>>);

impl Log {
    /// Reads `output` to its end on a thread of its own. A line goes into the log where `keep` says so.
    fn follow(
        &self,
        output: impl Read + Send + 'static,
        mut keep: impl FnMut(&str) -> bool + Send + 'static,
    ) {
        let log = self.clone();
        let work = move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while matches!(output.read_until(b'\n', &mut line), Ok(length) if length > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if keep(&text) {
                    log.push(text);
                }
            }
        };
        crate::tasks::spawn("handler's output", work, |panic| {
            log::error!("the handler's output is lost: {panic}");
        });
    }

    fn push(&self, line: String) {
        let mut lines = lock(&self.0);
        if lines.len() == LOG_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn lines(&self) -> Vec<String> {
        lock(&self.0).iter().cloned().collect()
    }
}

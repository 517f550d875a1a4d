//! Runs the archive's handler with the user's Python, as a local process on loopback. It ends when the process that
//! started it ends in any way.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::Mutex;
use ureq::{Agent, SendBody};

use super::RehearseError;
use crate::tasks::{CancelHook, TaskControl};

/// A ping gets an immediate response or none.
const PONG_WITHIN: Duration = Duration::from_secs(2);
/// SageMaker's own default.
const RESPONSES_WITHIN: Duration = Duration::from_mins(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time to read the last output of an ended handler; its child processes may keep the pipe open.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(2);
/// The variables for a process's home and temporary folders.
const HOMES: &[&str] = if cfg!(windows) { &["USERPROFILE", "TMP", "TEMP"] } else { &["HOME", "TMPDIR"] };
/// The number of output lines kept for messages.
const LOG_LINES: usize = 30;
/// The largest response; longer ones are cut off.
const MAX_RESPONSE_BYTES: u64 = 100 << 20;

pub(super) struct Handler {
    child: Arc<Mutex<Child>>,
    address: String,
    agent: Agent,
    log: Log,
    /// Disconnected once everything that the handler wrote is in the log.
    all_said: Receiver<Never>,
    _kill_on_cancel: CancelHook,
}

/// The type of a channel that carries no values, only its closing.
enum Never {}

pub(super) struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
}

#[derive(Clone, Copy)]
pub(super) struct HandlerRequest<'a> {
    pub body: &'a [u8],
    pub content_type: &'a str,
    pub transfer: Transfer,
}

/// The transfer encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transfer {
    /// With a Content-Length header.
    Whole,
    /// Chunked, as SageMaker sends it if `MaxPayloadInMB` is 0.
    Chunked,
}

pub(super) type Environment = BTreeMap<String, String>;

pub(super) struct Launch<'a> {
    pub python: &'a Python,
    pub script: &'a Path,
    /// The working folder: the unpacked archive.
    pub folder: &'a Path,
    /// Its home, where it can write files.
    pub home: &'a Path,
    /// Added to what every process needs: nothing of ours or the user's reaches it.
    pub environment: Environment,
    /// The time until it responds to GET /ping.
    pub ready_within: Duration,
}

impl Handler {
    /// Returns once it responds to GET /ping, and so has loaded its model.
    pub(super) fn start(launch: &Launch<'_>, control: &TaskControl) -> Result<Self, RehearseError> {
        let child = launch.command().spawn();
        let mut child = child.map_err(|error| RehearseError::NoPython {
            python: launch.python.program.display().to_string(),
            reason: error.to_string(),
        })?;
        let log = Log::default();
        let (said, told_port) = bounded(1);
        let (speaking, all_said) = bounded(0);
        if let Some(output) = child.stdout.take() {
            let is_port = move |line: &str| {
                let port = line.strip_prefix("port ").map(str::parse);
                matches!(port, Some(Ok(port)) if said.try_send(port).is_ok())
            };
            log.follow(output, is_port, speaking.clone());
        }
        if let Some(output) = child.stderr.take() {
            log.follow(output, |_| false, speaking);
        }
        let child = Arc::new(Mutex::new(child));
        let killed = Arc::clone(&child);
        let mut handler = Self {
            child,
            address: String::new(),
            agent: agent(),
            log,
            all_said,
            _kill_on_cancel: control.on_cancel(move || end(&killed)),
        };
        let deadline = Deadline { begun: Instant::now(), within: launch.ready_within };
        let port = handler.wait_for_port(&told_port, deadline, control)?;
        handler.address = format!("http://127.0.0.1:{port}");
        handler.wait_for_pong(deadline, control)?;
        Ok(handler)
    }

    fn wait_for_port(
        &self,
        told_port: &Receiver<u16>,
        deadline: Deadline,
        control: &TaskControl,
    ) -> Result<u16, RehearseError> {
        loop {
            control.checkpoint()?;
            match told_port.recv_timeout(LOOK_EVERY) {
                Ok(port) => return Ok(port),
                Err(RecvTimeoutError::Timeout) if !deadline.is_over() => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(RehearseError::HandlerSilent {
                        seconds: deadline.within.as_secs(),
                        log: self.log.lines(),
                    });
                }
                // The process has ended: only that closes its output.
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.lock().wait();
                    control.checkpoint()?;
                    return Err(self.ended(status));
                }
            }
        }
    }

    fn ended(&self, status: std::io::Result<ExitStatus>) -> RehearseError {
        let _ = self.all_said.recv_timeout(LAST_WORDS_WITHIN);
        RehearseError::HandlerEnded {
            status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            log: self.log.lines(),
        }
    }

    /// SageMaker sends nothing before `GET /ping` returns 200.
    fn wait_for_pong(&self, deadline: Deadline, control: &TaskControl) -> Result<(), RehearseError> {
        let url = format!("{}/ping", self.address);
        loop {
            control.checkpoint()?;
            let ping = self.agent.get(&url).config();
            let ping = ping.timeout_global(Some(PONG_WITHIN)).build().call();
            let said = match ping {
                Ok(pong) if pong.status() == 200 => return Ok(()),
                Ok(pong) => format!("with status {}", pong.status().as_u16()),
                Err(error) => format!("with an error ({error})"),
            };
            if let Some(status) = self.child.lock().try_wait().transpose() {
                return Err(self.ended(status));
            }
            if deadline.is_over() {
                return Err(RehearseError::NoPong { said, seconds: deadline.within.as_secs(), log: self.log.lines() });
            }
            control.sleep(LOOK_EVERY)?;
        }
    }

    /// The number of parallel requests that the handler reports, as queried by Batch Transform.
    pub(super) fn max_concurrent(&self) -> Option<u32> {
        let url = format!("{}/execution-parameters", self.address);
        let mut response = self.agent.get(&url).call().ok()?;
        let body = response.body_mut().read_to_vec().ok()?;
        let parameters: serde_json::Value = serde_json::from_slice(&body).ok()?;
        u32::try_from(parameters["MaxConcurrentTransforms"].as_u64()?).ok()
    }

    /// # Errors
    /// There was no response, and why.
    pub(super) fn invoke(&self, question: HandlerRequest<'_>) -> Result<Reply, String> {
        let url = format!("{}/invocations", self.address);
        let request =
            self.agent.post(&url).header("content-type", question.content_type).header("accept", "application/json");
        let no_response = |error: ureq::Error| match self.log.lines().last() {
            Some(last) => {
                format!("the handler did not respond ({error}); its last output: “{last}”")
            }
            None => format!("the handler did not respond ({error})"),
        };
        let response = match question.transfer {
            Transfer::Whole => request.send(question.body),
            // The length of a reader is unknown.
            Transfer::Chunked => {
                let mut body = question.body;
                request.send(SendBody::from_reader(&mut body))
            }
        };
        let mut response = response.map_err(no_response)?;
        let status = response.status().as_u16();
        let response =
            response.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_vec().map_err(no_response)?;
        Ok(Reply { status, body: response })
    }
}

impl Launch<'_> {
    /// The command has an almost empty environment and none of our open files, because the archive's code is not
    /// trusted.
    fn command(&self) -> Command {
        keep_files_to_ourselves();
        let mut command = Command::new(&self.python.program);
        command
            .arg(self.script)
            .args(["--host", "127.0.0.1", "--until-stdin-closes"])
            .current_dir(self.folder)
            .env_clear()
            .envs(self.python.environment.iter().map(|(name, value)| (name, value)))
            .env("LANG", "C.UTF-8")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        for name in HOMES {
            command.env(name, self.home);
        }
        command
            .envs(&self.environment)
            .env("SAGEMAKER_BIND_TO_PORT", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        end_with_us(&mut command);
        command
    }
}

/// A killed program closes the handler's standard input, which the handler may ignore; Linux also ends the handler with
/// the thread that started it.
#[cfg(target_os = "linux")]
fn end_with_us(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let us = std::process::id();
    let in_child = move || {
        // SAFETY: both calls are async-signal-safe, and affect only the new process.
        let is_ours = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            u32::try_from(libc::getppid()) == Ok(us)
        };
        // We may have ended before the first call.
        if is_ours { Ok(()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: between fork and exec, `in_child` allocates nothing and takes no lock.
    unsafe { command.pre_exec(in_child) };
}

#[cfg(not(target_os = "linux"))]
fn end_with_us(_: &mut Command) {}

/// Our parent process may have left files open, which our child processes would inherit.
#[cfg(unix)]
fn keep_files_to_ourselves() {
    const LAST_STANDARD: i32 = 2;
    let open = std::fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    let numbers = open.filter_map(|file| file.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > LAST_STANDARD) {
        // SAFETY: sets a flag that our own files have anyway; if the file is closed by now, it fails.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

#[cfg(not(unix))]
fn keep_files_to_ourselves() {}

#[derive(Clone, Copy)]
struct Deadline {
    begun: Instant,
    within: Duration,
}

impl Deadline {
    fn is_over(self) -> bool {
        self.begun.elapsed() >= self.within
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        end(&self.child);
        // Waits, so that no zombie process is left.
        if let Err(error) = self.child.lock().wait() {
            log::warn!("could not wait for the handler to exit: {error}");
        }
    }
}

fn end(child: &Mutex<Child>) {
    // Fails if the process has already ended.
    let _ = child.lock().kill();
}

fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // No proxy: the handler is local.
        .proxy(None)
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_recv_response(Some(RESPONSES_WITHIN))
        .timeout_recv_body(Some(RESPONSES_WITHIN));
    config.build().new_agent()
}

/// The last lines of the handler's output.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<VecDeque<String>>>);

impl Log {
    /// Reads `output` to its end on its own thread, then drops `speaking`. A line that `take` accepts is not shown to
    /// people.
    fn follow(
        &self,
        output: impl Read + Send + 'static,
        take: impl Fn(&str) -> bool + Send + 'static,
        speaking: Sender<Never>,
    ) {
        let log = self.clone();
        let work = move || {
            let _until_the_end = speaking;
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while matches!(output.read_until(b'\n', &mut line), Ok(length) if length > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if !take(&text) {
                    log.push(text);
                }
            }
        };
        crate::tasks::spawn("handler's output", work, |panic| {
            log::error!("the handler's output is lost: {panic}");
        });
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == LOG_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }
}

const LOOK_FILE: &str = "look_at_python.py";
const LOOK: &str = include_str!("../../../assets/rehearse/look_at_python.py");

/// The Python behind a name, which can be a pyenv shim, a link or a script.
pub(super) struct Python {
    pub program: PathBuf,
    /// The variables for its libraries and packages, which it needs in an otherwise empty environment. No secrets.
    pub environment: Vec<(OsString, OsString)>,
    /// Notes about packages with other versions than the archive requires.
    pub notes: Vec<String>,
}

/// # Errors
/// The Python does not exist, or lacks packages in `requirements`, a file that need not exist.
pub(super) fn check_python(python: &str, requirements: &Path, scripts: &Path) -> Result<Python, RehearseError> {
    let script = scripts.join(LOOK_FILE);
    std::fs::write(&script, LOOK).map_err(RehearseError::Temporary)?;
    let mut command = Command::new(python);
    command.arg(&script).stdin(Stdio::null());
    if requirements.is_file() {
        command.arg(requirements);
    }
    let no_python = |reason: String| RehearseError::NoPython { python: python.to_owned(), reason };
    let output = command.output().map_err(|error| no_python(error.to_string()))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or("no output");
        return Err(no_python(format!("{} ({last})", output.status)));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let missing: Vec<String> = values(&said, "missing").map(str::to_owned).collect();
    if !missing.is_empty() {
        return Err(RehearseError::MissingPackages { python: python.to_owned(), missing });
    }
    let others = values(&said, "other").filter_map(|value| {
        let (wanted, found) = value.split_once('\t')?;
        Some(format!(
            "the archive requires {wanted}, but this Python has {found}; predictions may differ from the container's"
        ))
    });
    let variables = values(&said, "variable").filter_map(|value| value.split_once('='));
    Ok(Python {
        program: values(&said, "program").next().unwrap_or(python).into(),
        environment: variables.map(|(name, value)| (name.into(), value.into())).collect(),
        notes: others.collect(),
    })
}

/// The values of the lines that begin with `key`.
fn values<'s>(said: &'s str, key: &'s str) -> impl Iterator<Item = &'s str> {
    said.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(' '))
}

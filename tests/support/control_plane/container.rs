//! A container on an instance: the handler of an archive as a local process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Shared, world};
use crate::support::http::{Connection, Response, Transfer};
use crate::support::python_packages;

/// The interval between two pings.
const POLL: Duration = Duration::from_millis(20);
/// Ends the handler when the test program ends or closes the pipe to standard input.
pub(super) const WATCHDOG: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
handler=$!
{ read -r _ <&3; kill -9 "$handler"; } >/dev/null 2>&1 &
watcher=$!
exec 3<&-
# Without the shell's own word about how it ended: a container has no such line in its log.
wait "$handler" 2>/dev/null
kill -9 "$watcher" 2>/dev/null
"#;

/// The container lives until this is taken.
pub(super) type Lifeline = Arc<Mutex<Option<ChildStdin>>>;

/// Ends when dropped.
pub(super) struct Container {
    address: SocketAddr,
    auto_delete: Child,
    lifeline: Lifeline,
    _folder: tempfile::TempDir,
}

/// Receives the container's output lines.
pub(super) type Sink = Arc<dyn Fn(&Shared, &str) + Send + Sync>;

/// Why there is no container.
pub(super) enum Trouble {
    /// The archive has no handler.
    Archive(String),
    /// It exited before it was ready.
    Ended,
    /// It never responded to a ping.
    NoPing,
}

impl Container {
    /// Unpacks the archive, starts its handler, and waits until it responds to a ping. `owner` is the ARN of the job or
    /// endpoint.
    pub(super) fn start(
        shared: &Arc<Shared>,
        owner: &str,
        archive: &[u8],
        environment: &[(String, String)],
        sink: &Sink,
    ) -> Result<Self, Trouble> {
        let folder = tempfile::Builder::new().prefix("spotcheck-container-").tempdir().unwrap();
        tar::Archive::new(flate2::read::GzDecoder::new(archive))
            .unpack(folder.path())
            .map_err(|error| Trouble::Archive(error.to_string()))?;
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCHDOG, "container"])
            .args(["python3", "code/serve.py", "--host", "127.0.0.1"])
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder.path())
            .env("PYTHONPATH", python_packages("model-handler"))
            .env("PYTHONUNBUFFERED", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // Any free port; the container prints it.
            .env("SAGEMAKER_BIND_TO_PORT", "0")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut auto_delete = command.spawn().expect("there is a shell");
        let lifeline: Lifeline = Arc::new(Mutex::new(auto_delete.stdin.take()));
        shared.change(|world| {
            if world.closing {
                lifeline.lock().unwrap().take();
            }
            world.lifelines.push((owner.to_owned(), Arc::clone(&lifeline)));
        });
        let errors = auto_delete.stderr.take().unwrap();
        log_lines(shared, errors, sink);
        let mut output = BufReader::new(auto_delete.stdout.take().unwrap());
        let port = first_line(shared, &mut output, sink);
        log_lines(shared, output, sink);
        let mut container = Self {
            address: SocketAddr::from(([127, 0, 0, 1], port.unwrap_or(0))),
            auto_delete,
            lifeline,
            _folder: folder,
        };
        if port.is_none() {
            return Err(Trouble::Ended);
        }
        if shared.failures.lock().unwrap().no_ping() {
            return Err(Trouble::NoPing);
        }
        container.wait_until_ready()?;
        Ok(container)
    }

    fn wait_until_ready(&mut self) -> Result<(), Trouble> {
        let begun = Instant::now();
        while self.get("/ping").is_none_or(|response| response.status != 200) {
            if self.auto_delete.try_wait().unwrap().is_some() {
                return Err(Trouble::Ended);
            }
            if begun.elapsed() > world::PATIENCE {
                return Err(Trouble::NoPing);
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    pub(super) fn get(&self, path: &str) -> Option<Response> {
        let mut connection = Connection::open(self.address).ok()?;
        connection.send("GET", path, &[], &[], Transfer::Whole).ok()
    }

    /// `POST /invocations`
    pub(super) fn invoke(
        &self,
        fields: &[(&str, &str)],
        body: &[u8],
        transfer: Transfer,
        patience: Duration,
    ) -> std::io::Result<Response> {
        let mut connection = Connection::open(self.address)?;
        connection.be_patient_for(patience)?;
        connection.send("POST", "/invocations", fields, body, transfer)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.lifeline.lock().unwrap().take();
        let _ = self.auto_delete.wait();
    }
}

/// Reads `port N`; earlier lines are passed on. `None` if it exited first.
fn first_line(shared: &Shared, output: &mut impl BufRead, sink: &Sink) -> Option<u16> {
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().strip_prefix("port ") {
            Some(port) => return port.parse().ok(),
            None => sink(shared, line.trim_end()),
        }
    }
}

fn log_lines(shared: &Arc<Shared>, output: impl Read + Send + 'static, sink: &Sink) {
    let shared = Arc::clone(shared);
    let sink = Arc::clone(sink);
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            sink(&shared, String::from_utf8_lossy(&line).trim_end());
        }
    });
}

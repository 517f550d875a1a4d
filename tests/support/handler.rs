//! The handler of a packed model as a process, accessed only over HTTP.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{must_succeed, python_packages, spotcheck};

/// Runs `transform package` with these arguments; returns the archive, which is in `folder`.
pub(crate) fn package(folder: &Path, arguments: &[&str]) -> PathBuf {
    let archive = folder.join("model.tar.gz");
    let mut command = spotcheck(&["transform", "package"]);
    must_succeed(command.args(arguments).arg("--out").arg(&archive));
    archive
}

/// Unpacks the archive into `folder/contents`, which must be empty.
pub(crate) fn unpacked(archive: &Path, folder: &Path) -> PathBuf {
    let contents = folder.join("contents");
    std::fs::create_dir(&contents).unwrap();
    let file = std::fs::File::open(archive).unwrap();
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
    tar.unpack(&contents).unwrap();
    contents
}

/// A Python program that serves an archive; ends when dropped.
pub(crate) struct Served {
    process: Child,
    port: u16,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

impl Served {
    /// The plain server of the archive.
    pub(crate) fn plainly(contents: &Path) -> Self {
        let mut command = python(&["model-handler"]);
        command
            .args(["code/serve.py", "--host", "127.0.0.1", "--until-stdin-closes"])
            .current_dir(contents)
            .env("SAGEMAKER_BIND_TO_PORT", "0");
        Self::by(command)
    }

    /// A program that prints `port N` once it serves, and ends when its stdin closes.
    pub(crate) fn by(mut command: Command) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.reopen().unwrap()).spawn().unwrap();
        let messages = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = messages.map_while(Result::ok).find_map(|line| line.strip_prefix("port ")?.parse().ok());
        Self {
            process,
            port: port.unwrap_or_else(|| panic!("no port: {}", std::fs::read_to_string(log.path()).unwrap())),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        reply(agent().get(self.url(path)).call())
    }

    pub(crate) fn invoke(&self, content_type: &str, body: &[u8]) -> Reply {
        let request = agent().post(self.url("/invocations")).header("content-type", content_type);
        reply(request.send(body))
    }

    /// For requests that no client would send.
    pub(crate) fn connect(&self) -> std::net::TcpStream {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Python with the packages of these lists in `tests/setup`.
pub(crate) fn python(lists: &[&'static str]) -> Command {
    let mut command = Command::new("python3");
    let folders = lists.iter().map(|list| python_packages(list));
    command.env("PYTHONPATH", std::env::join_paths(folders).unwrap()).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
    config.build().new_agent()
}

fn reply(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Reply {
    let mut response = response.unwrap();
    let content_type = response.headers().get("content-type");
    Reply {
        status: response.status().as_u16(),
        content_type: content_type.map_or(String::new(), |kind| kind.to_str().unwrap().to_owned()),
        text: response.body_mut().read_to_string().unwrap(),
    }
}

//! `spotcheck models` as called by users.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::ended::Ended;
use crate::support::http_server::{Ending, HttpServer, Reply};

const CONTENT: &[u8] = b"these are the weights";
const SHA256: &str = "1f37de1efe65eafa62eecff07876ee832138e32600cb5e50a041b51648f402e3";

/// A folder for all of Spotcheck's files.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A home with the user's model `mine`, whose weights are on the given mirrors.
    fn with_model(urls: &[String]) -> Self {
        let home = Self::new();
        let quoted: Vec<String> = urls.iter().map(|url| format!("\"{url}\"")).collect();
        let mirrors = format!("urls = [{}]", quoted.join(", "));
        let card = include_str!("../../models/efficientnet-lite0/model.toml")
            .replace("\"efficientnet-lite0\"", "\"mine\"")
            .replace("EfficientNet-Lite0\"\ntask", "My model\"\ntask")
            .replace("bytes = 18613976", &format!("bytes = {}\n{mirrors}", CONTENT.len()))
            .replace("c16c3290248698d2dbfb8db1ff41d301169c57ae0c4c2c6a474a284eb06dfd58", SHA256);
        fs::create_dir_all(home.path("")).unwrap();
        fs::write(home.path("model.toml"), card).unwrap();
        home
    }

    /// The path of a file in the folder of the model `mine`.
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("data/models/mine").join(name)
    }

    fn models(&self, arguments: &[&str]) -> Ended {
        self.models_with_environment(arguments, &[])
    }

    fn models_with_environment(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Ended {
        let mut command = self.command(arguments);
        command.envs(environment.iter().copied());
        Ended::run(&mut command)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spotcheck"));
        command.arg("models").args(arguments);
        for name in ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        command.env("SPOTCHECK_HOME", self.0.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The line of the list that shows a model.
    fn listed(&self, id: &str) -> String {
        let ended = self.models(&["list"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let mut lines = ended.stdout.lines();
        let line = lines.find(|line| line.split_whitespace().any(|word| word == id));
        line.unwrap_or_else(|| panic!("{}", ended.stdout)).to_owned()
    }
}

/// A server without faults, except that the first connection stalls after five bytes.
fn stalling_server() -> HttpServer {
    HttpServer::start(|request| {
        let reply = Reply::file(CONTENT, "\"1\"", request);
        match request.number {
            0 => reply.ending(Ending::StallAfter(5)),
            _ => reply,
        }
    })
}

/// A running `models fetch mine` that has received five bytes from [`stalling_server`] and waits for more.
fn stalled_fetch(home: &Home) -> Child {
    let fetch = home.command(&["fetch", "mine"]).spawn().unwrap();
    let part = home.path("model.onnx.part");
    while part.metadata().map_or(0, |metadata| metadata.len()) < 5 {
        std::thread::sleep(Duration::from_millis(5));
    }
    fetch
}

fn good_server() -> HttpServer {
    HttpServer::start(|request| Reply::file(CONTENT, "\"1\"", request))
}

#[test]
fn model_list_shows_task_size_and_state() {
    let home = Home::new();
    let small = home.listed("efficientnet-lite0");
    for expected in ["* ", "classification", "18 MiB", "ready", "Apache-2.0", "75.1%"] {
        assert!(small.contains(expected), "{small}");
    }
    let large = home.listed("faster-rcnn");
    assert!(large.starts_with("   faster-rcnn "), "{large}");
    for expected in
        ["Faster R-CNN R-50-FPN ", "detection", "169 MiB", "not downloaded", "models fetch faster-rcnn", "mAP 0.3437"]
    {
        assert!(large.contains(expected), "{large}");
    }
    let plain = home.models(&[]);
    assert_eq!(plain.stdout, home.models(&["list"]).stdout);
    assert!(plain.stdout.lines().any(|line| line.ends_with(": 0 B")), "{}", plain.stdout);
}

#[test]
fn unfinished_download_is_listed_with_its_size() {
    let home = Home::new();
    let folder = home.path("").with_file_name("faster-rcnn");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("model.onnx.part"), [0; 2048]).unwrap();
    let line = home.listed("faster-rcnn");
    assert!(line.contains("incomplete (2.0 KiB"), "{line}");
}

#[test]
fn fetched_model_is_ready_until_removed() {
    let server = good_server();
    let home = Home::with_model(&[server.url("/")]);
    assert!(home.listed("mine").contains("not downloaded"));

    let fetched = home.models(&["fetch", "mine"]);
    let weights = home.path("model.onnx").display().to_string();
    assert!(fetched.stdout.starts_with("mine ") && fetched.stdout.contains(&weights), "{}", fetched.stderr);
    assert!(home.listed("mine").contains(&format!("ready: {weights}")));

    let removed = home.models(&["remove", "mine"]);
    assert!(removed.stdout.starts_with("removed mine, "), "{}", removed.stderr);
    assert!(!home.path("").exists());
}

#[test]
fn killed_download_resumes() {
    let server = stalling_server();
    let home = Home::with_model(&[server.url("/")]);
    let mut fetch = stalled_fetch(&home);
    fetch.kill().unwrap();
    fetch.wait().unwrap();
    let again = home.models(&["fetch", "mine"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(fs::read(home.path("model.onnx")).unwrap(), CONTENT);
    assert_eq!(server.bytes_served(), CONTENT.len());
}

#[cfg(unix)]
#[test]
fn interrupt_ends_a_stalled_download() {
    let server = stalling_server();
    let home = Home::with_model(&[server.url("/")]);
    let fetch = stalled_fetch(&home);
    let start = std::time::Instant::now();
    let interrupt = format!("kill -INT {}", fetch.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let fetch = Ended::new(&fetch.wait_with_output().unwrap());
    assert!(start.elapsed().as_millis() < 1000);
    assert_eq!(fetch.code, Some(1));
    // The progress is printed when a step starts, which another test checks.
    let is_progress = |line: &&str| line.starts_with("mine: ");
    let lines: Vec<&str> = fetch.stderr.lines().filter(|line| !is_progress(line)).collect();
    let folder = home.path("").display().to_string();
    let [begun, ended] = lines[..] else { panic!("{lines:?}") };
    assert!(begun.contains("(21 B)") && begun.ends_with(folder.trim_end_matches('/')), "{begun}");
    assert!(ended.starts_with("error: Canceled") && ended.ends_with("models fetch mine"), "{ended}");
}

#[test]
fn failed_mirror_is_reported_when_the_next_works() {
    let missing = HttpServer::start(|_| Reply::status("404 Not Found"));
    let server = good_server();
    let home = Home::with_model(&[missing.url("/weights"), server.url("/")]);
    let fetched = home.models(&["fetch", "mine"]);
    assert_eq!(fetched.code, Some(0), "{}", fetched.stderr);
    let note = format!("404 Not Found: {}", missing.url("/weights"));
    assert!(fetched.stderr.contains(&note), "{}", fetched.stderr);
}

#[test]
fn failed_download_reports_cause_and_remedy() {
    let missing = HttpServer::start(|_| Reply::status("404 Not Found"));
    let home = Home::with_model(&[missing.url("/weights")]);
    let fetched = home.models(&["fetch", "mine"]);
    assert_eq!(fetched.code, Some(1));
    assert_eq!(fetched.stdout, "");
    for expected in ["error: ", "My model (21 B)", "mine --from FILE", "404 Not Found"] {
        assert!(fetched.stderr.contains(expected), "{}", fetched.stderr);
    }
}

#[test]
fn only_matching_weights_are_taken_from_a_file() {
    let home = Home::with_model(&[]);
    let file = home.0.path().join("download.onnx");
    let from = ["fetch", "mine", "--from", file.to_str().unwrap()];
    fs::write(&file, b"these are NOT weights").unwrap();
    let refused = home.models(&from);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("its sha256 is "), "{}", refused.stderr);
    fs::write(&file, CONTENT).unwrap();
    assert_eq!(home.models(&from).code, Some(0));
    assert_eq!(fs::read(home.path("model.onnx")).unwrap(), CONTENT);
}

#[test]
fn download_uses_the_proxy_of_the_environment() {
    let proxy = HttpServer::start(|request| {
        let reply = Reply::file(CONTENT, "\"1\"", request);
        match request.number {
            0 => reply.ending(Ending::CutAfter(5)),
            _ => reply,
        }
    });
    let home = Home::with_model(&["http://models.invalid/weights".to_owned()]);
    let environment = [("HTTP_PROXY", &*proxy.url(""))];
    let fetched = home.models_with_environment(&["fetch", "mine"], &environment);
    assert_eq!(fetched.code, Some(0), "{}", fetched.stderr);
    let asked = &proxy.exchanges()[0].request;
    assert_eq!(asked.proxy_for.as_deref(), Some("models.invalid:80"));
    assert_eq!(asked.path, "/weights");
    assert_eq!(proxy.bytes_served(), CONTENT.len());
}

#[test]
fn unknown_model_error_lists_the_known_ones() {
    for command in ["fetch", "remove"] {
        let ended = Home::new().models(&[command, "resnet51"]);
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.contains("resnet50-v2"), "{}", ended.stderr);
    }
}

#[test]
fn broken_card_is_named_and_the_rest_listed() {
    let home = Home::new();
    fs::create_dir_all(home.path("")).unwrap();
    fs::write(home.path("model.toml"), "id = \"mine\"\ncolor = 1\n").unwrap();
    let listed = home.models(&["list"]);
    assert_eq!(listed.code, Some(0));
    let position = format!("{}, line 2, column 1: ", home.path("model.toml").display());
    assert!(listed.stderr.contains(&position) && listed.stderr.contains("`color`"), "{}", listed.stderr);
    assert!(listed.stdout.contains("ssd-mobilenet-coco"));
}

//! `spotcheck transform` as a process, with the tests' own control plane: jobs are checked, started, watched, stopped,
//! retried and cleaned up.

mod fetching;
mod preflight;
mod retrying;
mod starting;
mod usage;
mod watching;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::support::control_plane::{ControlPlane, ROLE, echo_archive};
use crate::support::ended::Ended;
use crate::support::seaweed::{ADMIN, Bucket, Seaweed};
use crate::support::spotcheck_at;

/// The interval between two checks of a condition.
const POLL: Duration = Duration::from_millis(10);
/// Starts the line of a failed image.
const FAILED_OBJECT: &str = "failed s3://";
/// The message about an image missing in the log of its job.
const SILENT_LOG: &str = "reports no reason";
/// The finding about the cost of a job whose speed is unknown from earlier jobs.
const UNKNOWN_SPEED: &str = "speed of the";

/// All checks of a preflight.
const POINTS: [&str; 16] = [
    "Names and limits",
    "Job name",
    "Role",
    "Container",
    "Model",
    "Input",
    "Prefix",
    "Objects",
    "Output",
    "Region",
    "Payload",
    "Concurrency",
    "Content type",
    "Splitting",
    "Instance",
    "Cost",
];

/// A bucket with images, an archive that immediately echoes its input, and a separate computer.
struct Transform {
    bucket: Bucket,
    plane: ControlPlane,
    home: tempfile::TempDir,
}

impl Transform {
    fn new(name: &str) -> Self {
        let bucket = Seaweed::shared().bucket(name);
        let plane = ControlPlane::start(bucket.server());
        bucket.put("models/model.tar.gz", &echo_archive());
        Self { bucket, plane, home: tempfile::tempdir().unwrap() }
    }

    fn with_images(name: &str, count: usize) -> Self {
        let transform = Self::new(name);
        for number in 0..count {
            let content = format!("image {number}");
            transform.bucket.put(&format!("photos/day {}/{number:03}.jpg", number % 3), content.as_bytes());
        }
        transform
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = spotcheck_at(self.home.path(), &["transform"]);
        command.args(args).stdin(Stdio::null());
        self.plane.sign_in(&mut command, ADMIN);
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        Ended::new(&self.command(args).output().unwrap())
    }

    /// A job over `input` with the archive in the bucket.
    fn of_job(&self, what: &str, job: &str, input: &str, more: &[&str]) -> Vec<String> {
        let archive = self.bucket.uri("models/model.tar.gz");
        let (input, output) = (self.bucket.uri(input), self.bucket.uri("out/"));
        let args = [what, &input, "--output", &output, "--job-name", job, "--archive", &archive, "--role", ROLE];
        args.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
    }

    fn start(&self, job: &str, input: &str, more: &[&str]) -> Ended {
        let args = self.of_job("start", job, input, more);
        self.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn preflight(&self, job: &str, input: &str, more: &[&str]) -> Ended {
        let args = self.of_job("preflight", job, input, more);
        self.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Checks that a preflight of a job `trap` has these words and this grade at a point. Values in `more` replace the
    /// defaults.
    fn must_find(&self, input: &str, more: &[&str], point: &str, grade: &str, messages: &str) {
        let mut args = self.of_job("preflight", "trap", input, &[]);
        for pair in more.chunks(2) {
            match args.iter().position(|arg| arg == pair[0]) {
                Some(flag) => pair[1].clone_into(&mut args[flag + 1]),
                None => args.extend(pair.iter().map(|arg| (*arg).to_owned())),
            }
        }
        let found = self.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let (found_grade, _) = check(&found, point);
        assert_eq!(found_grade, grade, "{point} in {found:#?}");
        let texts = of_point(&found, point);
        assert!(texts.contains(messages), "{messages}: {texts}: {found:#?}");
        assert!(grade != "problem" || found.code == Some(1), "{found:#?}");
    }

    fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until the status of a job was requested `times` times.
    fn wait_until_looked_at(&self, times: usize) {
        while self.plane.count("DescribeTransformJob") < times {
            std::thread::sleep(POLL);
        }
    }

    /// `status --output json` of a job, which must end with `code`.
    #[track_caller]
    fn status(&self, job: &str, code: i32) -> Value {
        let ended = self.run(&["status", job, "--output", "json"]);
        serde_json::from_str(&ended.must(code, &[]).stdout).unwrap()
    }

    /// Cleans up after a job; returns what was deleted.
    #[track_caller]
    fn clean_up(&self, job: &str) -> Vec<String> {
        let ended = self.run(&["clean-up", job, "--yes"]).must(0, &[]);
        ended.stdout.lines().map(str::to_owned).collect()
    }

    /// The status of a job that has ended as expected, its outputs, and its inputs.
    #[track_caller]
    fn counts(&self, job: &str) -> (String, u64, u64) {
        let status = self.status(job, 0);
        let count = |field: &str| status[field].as_u64().unwrap();
        let name = status["status"].as_str().unwrap().to_owned();
        (name, count("outputs"), count("inputs"))
    }

    /// The images below `photos/` that the last job was started over, by its manifest.
    fn sent(&self) -> Vec<String> {
        let source = &self.asked("CreateTransformJob")["TransformInput"]["DataSource"];
        assert_eq!(source["S3DataSource"]["S3DataType"], "ManifestFile");
        let manifest = source["S3DataSource"]["S3Uri"].as_str().unwrap();
        let key = manifest.strip_prefix(&self.bucket.uri("")).unwrap();
        let manifest: Vec<Value> = serde_json::from_slice(&self.bucket.get(key).unwrap()).unwrap();
        let prefix = manifest[0]["prefix"].as_str().unwrap();
        let names = manifest[1..].iter().map(|name| {
            let uri = format!("{prefix}{}", name.as_str().unwrap());
            let name = uri.strip_prefix(&self.bucket.uri("photos/"));
            name.unwrap().to_owned()
        });
        names.collect()
    }

    fn prediction(&self, key: &str) -> Option<Value> {
        serde_json::from_slice(&self.bucket.get(key)?).ok()
    }

    /// The body of the last request for an operation.
    fn asked(&self, operation: &str) -> Value {
        self.all_asked(operation).pop().unwrap()
    }

    /// The bodies of the requests for an operation, in order.
    fn all_asked(&self, operation: &str) -> Vec<Value> {
        let requests = self.plane.requests().into_iter();
        let asked = requests.filter(|request| request.operation == operation);
        asked.map(|request| request.body).collect()
    }

    /// The creation time of the job, in seconds since 1970.
    fn created_s(&self, job: &str) -> f64 {
        let asked = serde_json::json!({"TransformJobName": job});
        let told = self.plane.console("DescribeTransformJob", &asked);
        told.unwrap()["CreationTime"].as_f64().unwrap()
    }

    fn records(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.home.path().join("data/jobs"));
        folder.map_or_else(|_| Vec::new(), |files| files.map(|file| file.unwrap().path()).collect())
    }
}

/// All lines of a preflight for a point, including its hints.
fn of_point(found: &Ended, point: &str) -> String {
    let mut is_point = false;
    let lines = found.stdout.lines().filter(|line| {
        if let Some(label) = line.get(9..26).map(str::trim)
            && !label.is_empty()
        {
            is_point = label == point;
        }
        is_point
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The grade and the text of a point of a preflight; the worst if there are several.
fn check(found: &Ended, point: &str) -> (String, String) {
    let lines = found.stdout.lines().filter_map(|line| {
        let grade = line.get(..8)?.trim();
        let label = line.get(9..26)?.trim();
        (label == point).then(|| (grade.to_owned(), line[26..].trim().to_owned()))
    });
    let order = ["ok", "warning", "problem"];
    let worst = lines.max_by_key(|(grade, _)| order.iter().position(|known| known == grade));
    worst.unwrap_or_else(|| panic!("no {point} in {found:#?}"))
}

/// Waits until objects written from now on have a later time, which S3 reports in seconds.
fn wait_for_next_second() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let then = UNIX_EPOCH + Duration::from_secs(now.as_secs() + 2);
    while SystemTime::now() < then {
        std::thread::sleep(POLL);
    }
}

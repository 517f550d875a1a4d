//! A run that is killed without warning, twenty times at random moments, loses nothing that it reported as saved.
//!
//! “At most one batch is computed again” means: of the images whose predictions were saved when the program was killed,
//! the resumed run computes at most one batch per lane again, minus one image; with one image per batch, none.

#![expect(clippy::print_stderr, reason = "the seed must be known to repeat a failure")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use spotcheck::domain::{RunId, SamplePrediction};
use spotcheck::project::{OpenMode, OpenRequest, Project};
use spotcheck::tasks::{ProgressUnit, TaskControl};

use crate::support::spotcheck;

const KILLS: usize = 20;
const IMAGES: usize = 120;
/// Sets the seed, to repeat the same moments.
const SEED_VARIABLE: &str = "SPOTCHECK_KILL_SEED";

/// A configuration of the model: images per call, and the flags for it.
struct Mode {
    batch: usize,
    arguments: &'static [&'static str],
}

const MODES: [Mode; 2] = [
    Mode { batch: 1, arguments: &["--threads", "2"] },
    Mode { batch: 4, arguments: &["--threads", "2", "--batch", "4"] },
];

#[test]
fn twenty_kills_lose_no_saved_prediction() {
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let images = draw_images(folder.path());
    for (number, mode) in MODES.iter().enumerate() {
        let reference = Bench::new(folder.path(), &format!("reference-{number}"), &images, mode);
        let run_time = reference.finish();
        let expected = (reference.predictions(), std::fs::read(reference.out()).unwrap());
        let mut kills = 0;
        let mut rounds = 0;
        while kills < KILLS / MODES.len() {
            let name = format!("killed-{number}-{rounds}");
            rounds += 1;
            let bench = Bench::new(folder.path(), &name, &images, mode);
            while kills < KILLS / MODES.len() && bench.predictions().len() < IMAGES {
                bench.kill_at_random(&mut random, run_time, &expected.0);
                kills += 1;
            }
            bench.finish();
            assert_eq!(bench.predictions(), expected.0);
            assert!(std::fs::read(bench.out()).unwrap() == expected.1, "the results differ");
        }
    }
}

/// A project, and the path for the results of its run.
struct Bench<'b> {
    project: PathBuf,
    images: &'b Path,
    mode: &'b Mode,
}

impl<'b> Bench<'b> {
    fn new(folder: &Path, name: &str, images: &'b Path, mode: &'b Mode) -> Self {
        Self { project: folder.join(name).with_extension("spotcheck"), images, mode }
    }

    fn out(&self) -> PathBuf {
        self.project.with_extension("jsonl")
    }

    fn command(&self) -> Command {
        let mut command = spotcheck(&["predict", "--model", "efficientnet-lite0", "--device", "cpu"]);
        command.arg(self.images).args(self.mode.arguments);
        command.arg("--project").arg(&self.project).arg("--resume");
        command.arg("--out").arg(self.out());
        command
    }

    /// Kills a run at a random moment: sometimes while the model is loaded, usually while it computes.
    fn kill_at_random(&self, random: &mut Random, run_time: Duration, expected: &[SamplePrediction]) {
        let mut run = Running::start(&mut self.command());
        if random.below(5) > 0 {
            run.wait_until_loaded();
            let most = run_time.as_micros() as u64 / 2;
            std::thread::sleep(Duration::from_micros(random.below(most.max(1))));
        } else {
            std::thread::sleep(Duration::from_millis(random.below(1000)));
        }
        let shown_as_saved = run.kill();
        let predictions = self.predictions();
        eprintln!("killed with {shown_as_saved} shown as saved, {} saved", predictions.len());
        assert!(predictions.len() >= shown_as_saved, "{} of {shown_as_saved} are left", predictions.len());
        for prediction in &predictions {
            let whole = expected.iter().find(|expected| expected.sample == prediction.sample);
            assert_eq!(Some(prediction), whole);
        }
        assert!(predictions.len() == IMAGES || !self.out().exists(), "half a file under the name of a whole one");
    }

    /// Lets the run finish, and checks that it computes no more than necessary. Returns the time taken.
    fn finish(&self) -> Duration {
        let before = self.predictions();
        let output = self.command().output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{messages}");
        let (computed, secs) = images_and_secs(&messages).unwrap();
        let missing = IMAGES - before.len();
        assert!(computed >= missing, "{messages}");
        assert!(computed - missing < self.mode.batch, "{computed} computed, {missing} were missing");
        assert!(messages.contains(&format!("saved {IMAGES} of {IMAGES}")), "{messages}");
        Duration::from_secs_f64(secs)
    }

    /// The predictions of the project in the order of the names; fails if the file is damaged.
    fn predictions(&self) -> Vec<SamplePrediction> {
        if !self.project.exists() {
            return Vec::new();
        }
        let request = OpenRequest { path: &self.project, root: None, mode: OpenMode::Write, program: "a test" };
        let opened = Project::open(&request, |_| ()).unwrap();
        assert!(opened.notes.iter().all(|note| note.contains("was empty")), "{:?}", opened.notes);
        let mut predictions = Vec::new();
        let control = TaskControl::new(ProgressUnit::Images);
        for run in opened.project.runs().unwrap() {
            assert_eq!(run.id, RunId(1));
            let visit = |batch: Vec<SamplePrediction>| predictions.extend(batch);
            opened.project.each_prediction(run.id, &control, visit).unwrap();
        }
        drop(opened);
        let connection = rusqlite::Connection::open(&self.project).unwrap();
        let check: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        predictions.sort_by(|left, right| left.sample.cmp(&right.sample));
        predictions
    }
}

/// A program whose output is read while it runs.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        Self { child, lines }
    }

    fn wait_until_loaded(&self) {
        while let Ok(line) = self.lines.recv_timeout(Duration::from_mins(1)) {
            if line.starts_with("efficientnet-lite0 on ") {
                return;
            }
        }
        panic!("the model was never loaded");
    }

    /// Returns the number of predictions that it had reported as saved.
    fn kill(&mut self) -> usize {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let lines: Vec<String> = self.lines.iter().collect();
        let saved = lines.iter().filter_map(|line| line.strip_prefix("saved ")?.split(' ').next()?.parse().ok());
        saved.max().unwrap_or(0)
    }
}

/// `12` and `0.3` of `12 images in 0.3 s, 40.0 images/s`.
fn images_and_secs(text: &str) -> Option<(usize, f64)> {
    let words = text.lines().find_map(|line| line.split_once(" images in "));
    let (images, rest) = words?;
    Some((images.parse().ok()?, rest.split(' ').next()?.parse().ok()?))
}

fn draw_images(folder: &Path) -> PathBuf {
    let images = folder.join("images");
    std::fs::create_dir(&images).unwrap();
    for number in 0..IMAGES as u32 {
        let pixel = |x: u32, y: u32| image::Rgb([(x * number) as u8, (y * 3 + number) as u8, (x ^ y) as u8]);
        image::RgbImage::from_fn(64 + number, 48, pixel).save(images.join(format!("{number:03}.png"))).unwrap();
    }
    images
}

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let given = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            since.as_nanos() as u64
        });
        eprintln!("{SEED_VARIABLE}={seed}");
        Self(seed.max(1))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

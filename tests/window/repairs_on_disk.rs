//! Repairs reach the disk: soon, despite `kill -9`, and once a full disk has room again.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use egui::{Key, Modifiers};
use egui_kittest::Harness;
use rusqlite::{Connection, OptionalExtension as _};
use spotcheck::domain::BoundingBox;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, ReviewCommand};

use crate::repairing::{on_screen, verdict};
use crate::window::{folder_of, open_in, sees, wait_for, wait_until};

/// Every change is on disk after this time, even on a busy computer; usually within a tenth of it.
const SAVED_AFTER: Duration = Duration::from_secs(1);
/// Between two repairs of a window that will be killed, which lasts longer than `SAVED_AFTER`.
const PAUSE: Duration = Duration::from_millis(20);
const FEWEST_REPAIRS: usize = 60;
/// The folder with the projects, the image folder and the file for the log, for processes that are killed or limited.
const FOLDER_VARIABLE: &str = "SPOTCHECK_REPAIRING_WINDOW_FOLDER";

fn open_cup(folder: &Path) -> Harness<'static, App> {
    let images = folder.join("images");
    if !images.exists() {
        let made = folder_of(1, "coffee.png");
        std::fs::create_dir(&images).unwrap();
        std::fs::copy(made.path().join("0-coffee.png"), images.join("0-coffee.png")).unwrap();
    }
    let mut window = open_in(&folder.join("projects"), Some(&images), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup ");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    wait_until(&mut window, "the whole image", |window| window.state().image_is_complete());
    wait_for(&mut window, "All saved");
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.run_steps(2);
    window
}

fn project(folder: &Path) -> PathBuf {
    let files = std::fs::read_dir(folder.join("projects")).unwrap().map(|file| file.unwrap().path());
    let mut projects = files.filter(|path| path.extension().is_some_and(|extension| extension == "spotcheck"));
    projects.next().expect("there is a project")
}

fn connect(folder: &Path) -> Connection {
    Connection::open(project(folder)).unwrap()
}

/// The repaired position of the first box in the file.
fn on_disk(connection: &Connection) -> Option<BoundingBox> {
    let sql = "SELECT bounds FROM verdicts WHERE box = 0";
    let bounds: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional().unwrap();
    bounds.map(|bounds| serde_json::from_str(&bounds).unwrap())
}

fn in_memory(window: &Harness<'static, App>) -> Option<BoundingBox> {
    Some(verdict(window, 0)?.drawn()?.bounds())
}

/// Presses the key that moves the selected box by one pixel: to the right, and back every 50 times.
fn nudge(window: &mut Harness<'static, App>, number: usize) {
    let key = if (number / 50).is_multiple_of(2) { Key::ArrowRight } else { Key::ArrowLeft };
    window.key_press_modifiers(Modifiers::COMMAND, key);
    window.step();
}

#[test]
fn repairs_reach_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open_cup(folder.path());
    let file = connect(folder.path());
    for number in 0..25 {
        // In and out of the pause that the writer makes between two commits.
        std::thread::sleep(Duration::from_millis(7 * number as u64 % 60));
        let begun = Instant::now();
        nudge(&mut window, number);
        let wanted = in_memory(&window);
        assert!(wanted.is_some());
        while on_disk(&file) != wanted {
            assert!(begun.elapsed() < Duration::from_mins(1), "{number} is not saved");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// Not a separate test: the process that [`killed_window_loses_no_repair`] kills.
#[test]
#[ignore = "goes on until it is killed; the test that kills it starts it"]
fn repairs_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from) else {
        return;
    };
    let mut window = open_cup(&folder);
    let mut log = std::fs::File::create(folder.join("log")).unwrap();
    for number in 0.. {
        nudge(&mut window, number);
        let left = in_memory(&window).unwrap().x1;
        log.write_all(format!("{} {left}\n", now_ms()).as_bytes()).unwrap();
        std::thread::sleep(PAUSE);
    }
}

/// Starts an ignored test of this file in a process of its own, which ignores the signal about large files.
fn start(test: &str, folder: &Path) -> Child {
    let mut process = Process::new("sh");
    process.args(["-c", r#"trap "" XFSZ; exec "$@""#, "sh"]).arg(std::env::current_exe().unwrap());
    process.args(["--ignored", "--exact", "--nocapture"]).arg(format!("repairs_on_disk::{test}"));
    process.env(FOLDER_VARIABLE, folder).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The times and positions that the killed window had reached; the last line may be incomplete.
fn logged(folder: &Path) -> Vec<(u128, f32)> {
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    let line = |line: &str| {
        let (time, left) = line.split_once(' ').unwrap();
        (time.parse().unwrap(), left.parse().unwrap())
    };
    whole.lines().map(line).collect()
}

#[test]
fn killed_window_loses_no_repair() {
    let folder = tempfile::tempdir().unwrap();
    drop(open_cup(folder.path()));
    for kill in 0..4 {
        drop(std::fs::remove_file(folder.path().join("log")));
        let mut window = start("repairs_until_killed", folder.path());
        let begun = Instant::now();
        while logged(folder.path()).len() < FEWEST_REPAIRS + 17 * kill {
            assert!(begun.elapsed() < Duration::from_mins(2), "nothing is repaired");
            std::thread::sleep(Duration::from_millis(3));
        }
        window.kill().unwrap();
        let killed = now_ms();
        window.wait().unwrap();
        let saved = on_disk(&connect(folder.path())).expect("a repair is saved").x1;
        let log = logged(folder.path());
        let old = log.iter().rposition(|(time, _)| time + SAVED_AFTER.as_millis() < killed).unwrap_or(0);
        let may_be: Vec<f32> = log[old..].iter().map(|(_, left)| *left).collect();
        // One more may have been saved before its line was written.
        let is_next = (saved - may_be[may_be.len() - 1]).abs() <= 1.0;
        assert!(may_be.contains(&saved) || is_next, "{saved} is on disk, not one of {may_be:?}");
        let reopened = open_cup(folder.path());
        assert_eq!(in_memory(&reopened).unwrap().x1, saved);
    }
}

/// Limits the size of each file that this process writes, or lifts the limit.
fn limit_files(bytes: Option<u64>) {
    let limit = bytes.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{bytes}:unlimited"));
    let id = std::process::id().to_string();
    let limited = Process::new("prlimit").arg(format!("--fsize={limit}")).args(["--pid", &id]).status();
    assert!(limited.unwrap().success());
}

/// Not a separate test: the process of [`full_disk_during_a_drag_loses_nothing`], whose limit holds for all its threads.
#[test]
#[ignore = "needs a process that ignores the signal about large files; the test of its name starts it"]
fn drags_on_a_full_disk() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from) else {
        return;
    };
    let mut window = open_cup(&folder);
    let BoundingBox { x1, y1, .. } = window.state().state().shown.prediction.as_ref().unwrap().detections()[0].bounds;
    let [from, to] = [[x1, y1], [x1 + 20.0, y1 + 10.0]].map(|[x, y]| on_screen(&window, x, y));
    window.hover_at(from);
    window.run_steps(1);
    window.drag_at(from);
    window.run_steps(1);
    window.hover_at(from + (to - from) / 2.0);
    window.run_steps(1);
    // Nothing more fits.
    limit_files(Some(0));
    window.hover_at(to);
    window.run_steps(1);
    window.drop_at(to);
    window.run_steps(2);
    let moved = in_memory(&window).expect("the box is moved");
    wait_until(&mut window, "the problem", |window| window.state().state().project.trouble.is_some());
    let trouble = window.state().state().project.trouble.clone().unwrap();
    assert!(sees(&window, &trouble), "{trouble}");
    // The same files hold no thumbnail either, which may be reported as well.
    let problems = window.state().state().problems.entries();
    assert_eq!(problems.iter().filter(|entry| entry.problem.to_string() == trouble).count(), 1);
    assert_eq!(on_disk(&connect(&folder)), None);
    // Work goes on, and undo as well.
    nudge(&mut window, 0);
    window.state_mut().command(Action::Undo);
    nudge(&mut window, 1);
    let last = in_memory(&window).unwrap();
    assert_eq!(last.x1, moved.x1 + 1.0);
    assert!(window.state().state().judgments.saving() > 0);
    limit_files(None);
    wait_for(&mut window, "All saved");
    assert_eq!(on_disk(&connect(&folder)), Some(last));
    assert_eq!(window.state().state().project.trouble, None);
}

#[test]
fn full_disk_during_a_drag_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    drop(open_cup(folder.path()));
    let output = start("drags_on_a_full_disk", folder.path()).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut reopened = open_cup(folder.path());
    assert!(in_memory(&reopened).is_some());
    wait_for(&mut reopened, "All saved");
}

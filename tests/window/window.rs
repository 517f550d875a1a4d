//! The window under test.

use std::cell::{Cell, RefCell};
use std::fs::DirEntry;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::time::{Duration, Instant};

use egui::accesskit::Role;
use egui_kittest::kittest::{NodeT, Queryable};
use egui_kittest::{Harness, Node};
use spotcheck::dirs::AppDirs;
use spotcheck::window::app::{App, WindowOptions};
use spotcheck::window::state::{Filmstrip, Listing, Overlay, ProjectStatus};

use crate::support::{repository, runtime_home};

/// Far longer than anything here takes, even on a busy computer.
const PATIENCE: Duration = Duration::from_mins(2);

/// The longest wait for a repaint: files, servers and clocks change without one.
const LONGEST_PARK: Duration = Duration::from_millis(50);

/// How long projects of earlier runs of the tests are kept: longer than a run, because several can happen at once.
const KEPT_PROJECTS: Duration = Duration::from_hours(1);

/// A window on `source`, with ONNX Runtime installed.
pub(crate) fn open(source: Option<&Path>, model: &str) -> Harness<'static, App> {
    open_with(source, model, |builder| builder)
}

/// A window that stores its projects in a given folder.
pub(crate) fn open_in(projects: &Path, source: Option<&Path>, model: &str) -> Harness<'static, App> {
    open_window(projects.to_owned(), source, model, |builder| builder)
}

pub(crate) fn open_with(
    source: Option<&Path>,
    model: &str,
    configure: impl FnOnce(egui_kittest::HarnessBuilder<App>) -> egui_kittest::HarnessBuilder<App>,
) -> Harness<'static, App> {
    open_window(fresh_projects(), source, model, configure)
}

fn open_window(
    projects: PathBuf,
    source: Option<&Path>,
    model: &str,
    configure: impl FnOnce(egui_kittest::HarnessBuilder<App>) -> egui_kittest::HarnessBuilder<App>,
) -> Harness<'static, App> {
    let dirs = AppDirs { projects, ..AppDirs::below(runtime_home()) };
    start(dirs, source, Some(model), configure)
}

/// Separate folders with ONNX Runtime.
pub(crate) fn home_with_runtime(home: &Path) -> AppDirs {
    let dirs = AppDirs::below(home);
    std::fs::create_dir_all(&dirs.data).unwrap();
    let runtime = AppDirs::below(runtime_home()).data.join("runtime");
    std::os::unix::fs::symlink(runtime, dirs.data.join("runtime")).unwrap();
    dirs
}

/// An empty window with a model that stores everything in given folders.
pub(crate) fn open_with_model_at(dirs: AppDirs, model: &str) -> Harness<'static, App> {
    start(dirs, None, Some(model), |builder| builder)
}

/// An empty window that stores everything in given folders.
pub(crate) fn open_at(
    dirs: AppDirs,
    configure: impl FnOnce(egui_kittest::HarnessBuilder<App>) -> egui_kittest::HarnessBuilder<App>,
) -> Harness<'static, App> {
    start(dirs, None, None, configure)
}

/// A window that has no settings yet: it asks for the reviewer.
pub(crate) fn open_new(source: &Path, model: &str) -> Harness<'static, App> {
    let projects = fresh_projects();
    let config = projects.join("config");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("settings.json"), "{}").unwrap();
    start(AppDirs { projects, config, ..AppDirs::below(runtime_home()) }, Some(source), Some(model), |builder| builder)
}

fn start(
    dirs: AppDirs,
    source: Option<&Path>,
    model: Option<&str>,
    configure: impl FnOnce(egui_kittest::HarnessBuilder<App>) -> egui_kittest::HarnessBuilder<App>,
) -> Harness<'static, App> {
    let settings = dirs.config.join("settings.json");
    if !settings.exists() {
        std::fs::create_dir_all(&dirs.config).unwrap();
        let mut file = tempfile::NamedTempFile::new_in(&dirs.config).unwrap();
        file.write_all(br#"{"asked_for_reviewer":true}"#).unwrap();
        // Another window may have been faster.
        drop(file.persist_noclobber(&settings));
    }
    let options = WindowOptions {
        source: source.map(Path::to_owned),
        place: None,
        model: model.map(str::to_owned),
        renderer: None,
        dirs,
        started: Instant::now(),
    };
    let builder = Harness::builder().with_size((1360.0, 860.0));
    let mut harness = configure(builder).build_eframe(|creation| App::new(creation, &options));
    harness.step();
    harness
}

/// A separate folder for each window, so that no test sees the predictions of another.
fn fresh_projects() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    static OF_PROCESS: LazyLock<PathBuf> = LazyLock::new(|| {
        let folders = Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects");
        let age = |folder: &DirEntry| folder.metadata().ok()?.modified().ok()?.elapsed().ok();
        let is_old = |folder: &DirEntry| age(folder).is_some_and(|age| age > KEPT_PROJECTS);
        for folder in std::fs::read_dir(&folders).into_iter().flatten().filter_map(Result::ok).filter(is_old) {
            // Another process may delete it too.
            drop(std::fs::remove_dir_all(folder.path()));
        }
        folders.join(std::process::id().to_string())
    });
    let folder = OF_PROCESS.join(NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
    drop(std::fs::remove_dir_all(&folder));
    folder
}

pub(crate) fn samples() -> PathBuf {
    repository().join("assets/samples")
}

/// The time of the window's next frame.
#[derive(Default)]
struct NextFrame {
    due: Mutex<Option<Instant>>,
    requested: Condvar,
}

impl NextFrame {
    /// The frames requested by `harness`, which are drawn only through this from now on.
    fn new(harness: &Harness<'static, App>) -> Arc<Self> {
        let frame = Arc::new(Self::default());
        let asked = Arc::clone(&frame);
        harness.ctx.set_request_repaint_callback(move |info| {
            let wanted = Instant::now().checked_add(info.delay);
            let mut due = asked.due.lock().unwrap();
            *due = [*due, wanted].into_iter().flatten().min();
            asked.requested.notify_all();
        });
        frame
    }

    fn draw(&self, harness: &mut Harness<'static, App>) {
        *self.due.lock().unwrap() = None;
        harness.step();
    }

    /// Waits until the frame is due.
    fn park(&self) {
        let latest = Instant::now() + LONGEST_PARK;
        let mut due = self.due.lock().unwrap();
        loop {
            let until = due.map_or(latest, |due| due.min(latest));
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            due = self.requested.wait_timeout(due, left).unwrap().0;
        }
    }
}

/// Draws the frames that the window requests until `condition` is true.
#[track_caller]
pub(crate) fn wait_until(
    harness: &mut Harness<'static, App>,
    what: &str,
    condition: impl Fn(&Harness<'static, App>) -> bool,
) {
    let begun = Instant::now();
    let frame = NextFrame::new(harness);
    frame.draw(harness);
    while !condition(harness) {
        assert!(
            begun.elapsed() < PATIENCE,
            "waited in vain for: {what}; on screen: {}; {}",
            on_screen(harness).join(" | "),
            trouble(harness)
        );
        frame.park();
        frame.draw(harness);
    }
    // New content is laid out in the next frame.
    harness.step();
}

/// What went wrong so far.
fn trouble(harness: &Harness<'static, App>) -> String {
    let state = harness.state().state();
    let problems: Vec<String> = state.problems.entries().iter().map(|entry| format!("{:?}", entry.problem)).collect();
    format!("problems: {}; not saved: {:?}", problems.join(" | "), state.project.trouble)
}

/// Waits until nothing can appear, disappear or change its name by itself: until tasks, background counts and writes
/// are finished, and the project is open.
#[track_caller]
pub(crate) fn wait_until_idle(harness: &mut Harness<'static, App>) {
    wait_until(harness, "everything to come to rest", |harness| {
        let state = harness.state().state();
        let gathers = |strip: &Filmstrip| strip.is_under_way();
        state.tasks.is_idle()
            && !state.arranging.is_under_way()
            && !state.filmstrip.as_ref().is_some_and(gathers)
            && state.project.unsaved() == 0
            && state.project.status != ProjectStatus::Opening
    });
}

/// Waits for a widget whose label contains `text`.
#[track_caller]
pub(crate) fn wait_for(harness: &mut Harness<'static, App>, text: &str) {
    wait_until(harness, text, |harness| sees(harness, text));
}

/// All text, and the names of all widgets.
fn on_screen(harness: &Harness<'static, App>) -> Vec<String> {
    let nodes = harness.query_all_by_label_contains("");
    nodes.filter_map(|node| node.accesskit_node().label().or_else(|| node.accesskit_node().value())).collect()
}

/// The accessible descriptions of the items with this text in their labels.
pub(crate) fn descriptions(harness: &Harness<'static, App>, label: &str) -> String {
    harness.query_all_by_label_contains(label).filter_map(|node| node.accesskit_node().description()).collect()
}

pub(crate) fn sees(harness: &Harness<'static, App>, text: &str) -> bool {
    harness.query_all_by_label_contains(text).next().is_some()
}

/// The only text field whose label is `label` or contains it.
#[track_caller]
pub(crate) fn text_field<'w>(harness: &'w Harness<'static, App>, label: &str) -> Node<'w> {
    find(harness, &[Role::TextInput, Role::MultilineTextInput], label)
}

/// The only combo box whose label is `label` or contains it.
#[track_caller]
pub(crate) fn combo_box<'w>(harness: &'w Harness<'static, App>, label: &str) -> Node<'w> {
    find(harness, &[Role::ComboBox], label)
}

#[track_caller]
fn find<'w>(harness: &'w Harness<'static, App>, roles: &[Role], label: &str) -> Node<'w> {
    let nodes = roles.iter().flat_map(|role| harness.query_all_by_role(*role));
    let labeled = nodes.filter_map(|node| Some((node.accesskit_node().label()?, node)));
    let mut found: Vec<(String, Node<'w>)> = labeled.filter(|(name, _)| name.contains(label)).collect();
    if found.len() > 1 {
        found.retain(|(name, _)| name == label);
    }
    let count = found.len();
    let mut found = found.into_iter();
    match (found.next(), count) {
        (Some((_, node)), 1) => node,
        _ => panic!("{count} of {roles:?} are labeled {label}"),
    }
}

/// The field for the path of images, above the thumbnails.
pub(crate) const PATH_FIELD: &str = "folder or image";

/// Waits until listing the images fails, and returns the reason shown.
#[track_caller]
pub(crate) fn wait_for_failed_listing(harness: &mut Harness<'static, App>) -> String {
    fn reason<'w>(harness: &'w Harness<'static, App>) -> Option<&'w str> {
        match &harness.state().state().source.as_ref()?.listing {
            Listing::Failed(reason) => Some(reason),
            _ => None,
        }
    }
    wait_until(harness, "a failed listing", |harness| reason(harness).is_some_and(|reason| sees(harness, reason)));
    reason(harness).unwrap_or_default().to_owned()
}

/// Chooses a value of a combo box.
#[track_caller]
pub(crate) fn choose_value(harness: &mut Harness<'static, App>, menu: &str, value: &str) {
    combo_box(harness, menu).click_accesskit();
    harness.run_steps(2);
    click(harness, value);
}

#[track_caller]
pub(crate) fn wait_for_overlay(harness: &mut Harness<'static, App>, overlay: Overlay) {
    wait_until(harness, "the dialog", |harness| harness.state().state().overlay == overlay);
}

/// Waits for a notice at the bottom that contains `word`, and returns it.
#[track_caller]
pub(crate) fn wait_for_notice(harness: &mut Harness<'static, App>, word: &str) -> String {
    // Another notice may replace it with the next frame.
    let found = RefCell::new(None);
    wait_until(harness, word, |harness| {
        let notice = harness.state().state().notice.as_ref();
        let notice = notice.filter(|notice| notice.text.contains(word) && sees(harness, &notice.text));
        *found.borrow_mut() = notice.map(|notice| notice.text.clone());
        notice.is_some()
    });
    found.into_inner().unwrap_or_default()
}

/// Clicks the first widget whose label contains `text`, as a screen reader does, and draws the result.
#[track_caller]
pub(crate) fn click(harness: &mut Harness<'static, App>, text: &str) {
    // A widget that has just opened may still be moving, and typed text is read.
    harness.run_steps(2);
    let find = |harness: &Harness<'static, App>, act: &dyn Fn(&Node<'_>)| {
        let found = harness.query_all_by_label_contains(text).next();
        act(&found.unwrap_or_else(|| panic!("“{text}” is not on screen")));
    };
    let is_hidden = Cell::new(false);
    // The bars at the edges cover what a panel hides.
    let shown = harness.ctx.content_rect().shrink2(egui::vec2(0.0, 60.0));
    find(harness, &|node| is_hidden.set(!shown.contains_rect(node.rect())));
    if is_hidden.get() {
        find(harness, &|node| node.scroll_to_me());
        harness.run_steps(5);
    }
    find(harness, &|node| node.click_accesskit());
    harness.step();
    harness.step();
}

/// Predicts all sample images; the first is predicted already.
#[track_caller]
pub(crate) fn predict_samples(harness: &mut Harness<'static, App>) {
    wait_for(harness, "1 predicted");
    click(harness, "Predict all");
    wait_for(harness, "8 predicted");
    wait_until_idle(harness);
}

/// A folder with `count` copies of a sample image.
pub(crate) fn folder_of(count: usize, sample: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(samples().join(sample)).unwrap();
    for number in 0..count {
        let name = format!("{number}-{sample}");
        std::fs::write(folder.path().join(name), &bytes).unwrap();
    }
    folder
}

//! Zooms and moves through one huge image in the real window without a screen, then moves and draws boxes on it, and
//! prints the frame times.
//!
//! `cargo bench --bench large_image -- FILE` (see README.md in this folder).

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use eframe::egui::accesskit::Role;
use eframe::egui::{Pos2, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{
    BoundingBox, Change, Detection, DeviceChoice, FileStamp, InferenceLocation, KeepRule, Prediction,
    PredictionContent, RunId, RunInfo, RunKey, SamplePrediction, SampleUri,
};
use spotcheck::model::catalog::Library;
use spotcheck::project::{OpenMode, OpenRequest, Project};
use spotcheck::window::app::{App, WindowOptions};
use spotcheck::window::state::{Action, CanvasView, Display, InferenceCommand, Overlay, ReviewCommand};

const FRAMES: usize = 600;
/// In a grid on the image.
const BOXES: u16 = 300;
const COLUMNS: u16 = 20;
const PATIENCE: Duration = Duration::from_mins(5);
/// The period of a 60 Hz screen.
const FRAME_PERIOD: Duration = Duration::from_micros(16_667);

fn main() {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).filter(|path| path.exists()).collect();
    if files.is_empty() {
        println!("give the path of a large image; make_image.py makes one");
        return;
    }
    for file in files {
        let size = measure(&file);
        edit(&file, size);
    }
}

fn open(source: &Path, home: &Path) -> Harness<'static, App> {
    let options = WindowOptions {
        source: Some(source.to_owned()),
        place: None,
        model: None,
        renderer: None,
        dirs: AppDirs::below(home),
        started: Instant::now(),
    };
    let mut window = Harness::builder().with_size((1920.0, 1080.0)).build_eframe(|creation| {
        let mut app = App::new(creation, &options);
        app.command(InferenceCommand::SetPredictOnOpen(false));
        app
    });
    wait(&mut window, App::image_is_complete);
    window
}

/// Returns the width and height of the image.
fn measure(file: &Path) -> [f32; 2] {
    println!("{}", file.display());
    let home = std::env::temp_dir().join("spotcheck-bench-large-image");
    let begun = Instant::now();
    let mut window = open(file, &home);
    println!("  whole image on screen after {:.2} s", begun.elapsed().as_secs_f64());
    let Display::Ready(info) = &window.state().state().shown.display else {
        panic!("the image is shown");
    };
    let size = info.size.map(|side| side as f32);

    let zoomed = Instant::now();
    look_at(&mut window, 1.0, [size[0] / 2.0, size[1] / 2.0]);
    wait(&mut window, App::image_is_complete);
    println!("  every pixel of the middle after {:.2} s", zoomed.elapsed().as_secs_f64());

    let mut coarse = 0;
    let times = frames(&mut window, |window, part| {
        coarse += usize::from(!window.state().image_is_complete());
        // Zooms in from the whole image to four times its pixels and out again, three times, while moving across it.
        let depth = (part * 3.0 * std::f32::consts::TAU).cos().mul_add(-0.5, 0.5);
        let fitting = 1000.0 / size[0];
        let zoom = fitting * (4.0 / fitting).powf(depth);
        let center = [size[0] * (0.1 + 0.8 * part), size[1] * (0.9 - 0.8 * part)];
        look_at(window, zoom, center);
    });
    println!("  zooming and moving: {times}; {coarse} frames had a coarse part");
    println!("  memory: {}", memory());
    size
}

/// Moves one of [`BOXES`] boxes, and draws another.
fn edit(file: &Path, size: [f32; 2]) {
    let home = tempfile::tempdir().expect("a folder for temporary files");
    let project = write_project(home.path(), file, size).expect("a project with boxes");
    let mut window = open(&project, home.path());
    wait(&mut window, |app| app.state().shown_boxes().len() == usize::from(BOXES));
    let picked = usize::from(BOXES / 2 + COLUMNS / 2);
    window.state_mut().command(ReviewCommand::SelectBox(Some(picked)));
    window.step();
    let bounds = cell(BOXES / 2 + COLUMNS / 2, size);
    let middle = [f32::midpoint(bounds.x1, bounds.x2), f32::midpoint(bounds.y1, bounds.y2)];
    let times = drag(&mut window, file, size, middle);
    println!("  moving one of {BOXES} boxes: {times}");
    let sample = window.state().state().shown_sample().expect("the image is shown");
    assert!(window.state().state().judgments.box_verdict(sample, picked).is_some(), "the box was not moved");

    window.state_mut().command(ReviewCommand::SelectBox(None));
    window.state_mut().command(Action::DrawBox);
    window.step();
    let times = drag(&mut window, file, size, [size[0] * 0.4, size[1] * 0.4]);
    println!("  drawing a box among {BOXES}: {times}");
    assert_eq!(window.state().state().overlay, Overlay::WrongClass, "no box was drawn");
}

/// Drags in circles from a point of the fitted image, in its pixels.
fn drag(window: &mut Harness<'static, App>, file: &Path, size: [f32; 2], from: [f32; 2]) -> Times {
    let name = format!("Image {}", file.file_name().unwrap_or_default().to_string_lossy());
    let canvas = window.get_by_role_and_label(Role::Image, &name).rect();
    let size = vec2(size[0], size[1]);
    let zoom = ((canvas.size() - vec2(32.0, 32.0)) / size).min_elem();
    let start: Pos2 = canvas.center() + (vec2(from[0], from[1]) - size / 2.0) * zoom;
    window.hover_at(start);
    window.step();
    window.drag_at(start);
    window.step();
    let times = frames(window, |window, part| {
        let angle = part * 5.0 * std::f32::consts::TAU;
        window.hover_at(start + vec2(30.0 + 100.0 * angle.sin(), 40.0 + 60.0 * angle.cos()));
    });
    window.drop_at(start + vec2(120.0, 90.0));
    window.step();
    window.step();
    times
}

/// The box at this position of the grid.
fn cell(index: u16, [width, height]: [f32; 2]) -> BoundingBox {
    let (columns, rows) = (f32::from(COLUMNS), f32::from(BOXES / COLUMNS));
    let (column, row) = (f32::from(index % COLUMNS), f32::from(index / COLUMNS));
    let (left, top) = (column * width / columns, row * height / rows);
    BoundingBox::new(left, top, left + 0.8 * width / columns, top + 0.8 * height / rows)
}

/// A project of a folder with only this image, and its boxes.
fn write_project(home: &Path, file: &Path, size: [f32; 2]) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let folder = home.join("photos");
    std::fs::create_dir(&folder)?;
    let image = folder.join(file.file_name().unwrap_or_default());
    if std::fs::hard_link(file, &image).is_err() {
        std::fs::copy(file, &image)?;
    }
    let path = home.join("p.spotcheck");
    let request = OpenRequest { path: &path, root: folder.to_str(), mode: OpenMode::Write, program: "a bench" };
    let project = Project::open(&request, |_| ())?.project;
    let run = RunId(1);
    let model = Library::open(&AppDirs::below(home)).find("ssd-mobilenet-coco")?;
    let key = RunKey {
        model_id: model.card.id.clone(),
        weights_sha256: model.card.file.sha256.clone(),
        device: DeviceChoice::Auto,
        batch: None,
        threads: None,
        keep: KeepRule::default(),
        made: InferenceLocation::Here,
    };
    let labels = (1..=10).map(|class| (class, format!("class {class}"))).collect();
    let info = RunInfo { id: run, name: "a run".to_owned(), key, card: model.card, labels, created_ms: 0 };
    let found = |index: u16| Detection {
        bounds: cell(index, size),
        class_id: u32::from(index % 10) + 1,
        label: format!("class {}", index % 10 + 1),
        score: 0.99 - f32::from(index) / 1000.0,
        runners_up: Vec::new(),
    };
    let prediction = SamplePrediction {
        sample: SampleUri::new(image.to_string_lossy()),
        stamp: FileStamp::default(),
        result: Ok(Prediction {
            width: size[0] as u32,
            height: size[1] as u32,
            content: PredictionContent::Detections((0..BOXES).map(found).collect()),
            warnings: Vec::new(),
        }),
    };
    project.write(1, Change::AddRun(Box::new(info)))?;
    project.write(2, Change::Predictions { run, predictions: vec![prediction] })?;
    project.flush()?;
    Ok(path)
}

/// Frame times in milliseconds, shortest first.
struct Times(Vec<f64>);

impl std::fmt::Display for Times {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = |share: f64| self.0[((self.0.len() - 1) as f64 * share) as usize];
        let (half, most, longest) = (at(0.5), at(0.99), at(1.0));
        write!(
            formatter,
            "{FRAMES} frames, ui + tessellation: p50 {half:.2} ms, p99 {most:.2} ms, longest {longest:.2} ms"
        )
    }
}

/// Runs frames at 60 Hz. `before` gets the part of them that is over, `0.0..1.0`.
fn frames(window: &mut Harness<'static, App>, mut before: impl FnMut(&mut Harness<'static, App>, f32)) -> Times {
    let mut times = Vec::new();
    for frame in 0..FRAMES {
        before(window, frame as f32 / FRAMES as f32);
        let begun = Instant::now();
        window.step();
        let output = window.output();
        let shapes = output.shapes.clone();
        let clipped = window.ctx.tessellate(shapes, output.pixels_per_point);
        let elapsed = begun.elapsed();
        drop(clipped);
        times.push(elapsed.as_secs_f64() * 1e3);
        std::thread::sleep(FRAME_PERIOD.saturating_sub(elapsed));
    }
    times.sort_by(f64::total_cmp);
    Times(times)
}

fn look_at(window: &mut Harness<'static, App>, zoom: f32, center: [f32; 2]) {
    let view = CanvasView::Free { zoom, center };
    window.state_mut().command(ReviewCommand::SetCanvas(view));
}

fn wait(window: &mut Harness<'static, App>, condition: impl Fn(&App) -> bool) {
    let begun = Instant::now();
    window.step();
    while !condition(window.state()) {
        assert!(begun.elapsed() < PATIENCE, "waited in vain");
        std::thread::sleep(Duration::from_millis(2));
        window.step();
    }
}

/// The current and peak memory, as counted by Linux.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib / 1024)
    };
    match (of("VmRSS:"), of("VmHWM:")) {
        (Some(now), Some(peak)) => format!("{now} MiB, {peak} MiB at its peak"),
        _ => "not known on this system".to_owned(),
    }
}

//! Measures the cost of a frame without the rasterizer while a folder is listed, and while it is scrolled from top to
//! bottom: the application's own work, the interface, and tessellation, in the real window without a screen. Also
//! measures its memory.
//!
//! usage: cargo bench --bench scroll -- FOLDER|s3://BUCKET/PREFIX/ [FRAMES]
//!        cargo bench --bench scroll -- verdicts
//!        cargo bench --bench scroll -- map
//!
//! `verdicts` measures how long a project of 100,000 images with ten verdicts each takes to open. `map` makes the map of
//! 100,000 embeddings, and measures frames while it takes shape, while it is zoomed, and while nothing moves.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use eframe::App as _;
use eframe::egui;
use spotcheck::alike::{Embedding, ImageEmbeddings};
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{
    BoundingBox, Change, Detection, DeviceChoice, Encoder, FileStamp, InferenceLocation, KeepRule, Prediction,
    PredictionContent, RunId, RunInfo, RunKey, Sample, SampleId, SamplePrediction, SampleUri, Verdict, VerdictTarget,
};
use spotcheck::model::catalog::Library;
use spotcheck::project::{EmbeddingWriter, OpenMode, OpenRequest, Project};
use spotcheck::tasks::{ProgressUnit, TaskControl};
use spotcheck::window::app::{App, WindowOptions};
use spotcheck::window::state::{Action, BrowseCommand, InferenceCommand, Listing, MapStage};

const SIZE: egui::Vec2 = egui::vec2(1360.0, 860.0);
const FRAME: Duration = Duration::from_millis(16);
/// The images of a large project, and the verdicts on each.
const JUDGED_IMAGES: usize = 100_000;
const VERDICTS: u32 = 10;

/// The cost of one frame, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Receiving predictions and pixels from the workers.
    logic: f64,
    ui: f64,
    tessellation: f64,
    /// CPU time of this thread: less than the elapsed time if others used its core.
    processor: f64,
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn texts(shapes: &[egui::epaint::ClippedShape]) -> Vec<String> {
    fn gather(shape: &egui::Shape, texts: &mut Vec<String>) {
        match shape {
            egui::Shape::Text(text) => texts.push(text.galley.text().to_owned()),
            egui::Shape::Vec(shapes) => shapes.iter().for_each(|shape| gather(shape, texts)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    for clipped in shapes {
        gather(&clipped.shape, &mut texts);
    }
    texts
}

struct Bench {
    ctx: egui::Context,
    app: App,
    frame: eframe::Frame,
    begun: Instant,
    /// The texts of the last frame.
    texts: Vec<String>,
}

impl Bench {
    fn new(home: &Path) -> Self {
        let ctx = egui::Context::default();
        let creation = eframe::CreationContext::_new_kittest(ctx.clone());
        let options = WindowOptions {
            source: None,
            place: None,
            model: None,
            renderer: None,
            dirs: AppDirs::below(home),
            started: Instant::now(),
        };
        let mut app = App::new(&creation, &options);
        app.command(InferenceCommand::SetPredictOnOpen(false));
        let frame = eframe::Frame::_new_kittest();
        Self { app, ctx, frame, begun: Instant::now(), texts: Vec::new() }
    }

    fn frame(&mut self, events: Vec<egui::Event>) -> Cost {
        let input = egui::RawInput {
            screen_rect: Some(egui::Rect::from_min_size(egui::Pos2::ZERO, SIZE)),
            time: Some(self.begun.elapsed().as_secs_f64()),
            events,
            ..egui::RawInput::default()
        };
        let computing = ThreadTime::now();
        let begun = Instant::now();
        let mut logic = 0.0;
        let (app, frame) = (&mut self.app, &mut self.frame);
        let mut output = self.ctx.run_ui(input, |ui| {
            let begun = Instant::now();
            app.logic(ui.ctx(), frame);
            logic = milliseconds(begun);
            app.ui(ui, frame);
        });
        let ui = milliseconds(begun) - logic;
        let pixels_per_point = output.pixels_per_point;
        let until_now = computing.elapsed();
        self.texts = texts(&output.shapes);
        let computing = ThreadTime::now();
        let tessellated = Instant::now();
        let painted = self.ctx.tessellate(output.shapes, pixels_per_point);
        let cost = Cost {
            logic,
            ui,
            tessellation: milliseconds(tessellated),
            processor: (until_now + computing.elapsed()).as_secs_f64() * 1000.0,
        };
        // There is no GPU to send them to.
        output.textures_delta.clear();
        drop(painted);
        cost
    }

    fn shows_the_last_image(&self) -> bool {
        let samples = &self.app.state().samples;
        let last = samples.get(SampleId::from_index(samples.len() - 1));
        last.is_some_and(|last| self.texts.contains(&last.name))
    }

    /// Waits until ready; returns the cost of the frames meanwhile.
    fn wait(&mut self, is_ready: impl Fn(&App) -> bool) -> Vec<Cost> {
        let mut costs = Vec::new();
        while !is_ready(&self.app) {
            let begun = Instant::now();
            costs.push(self.frame(Vec::new()));
            std::thread::sleep(FRAME.saturating_sub(begun.elapsed()));
        }
        costs
    }
}

fn wheel(delta: egui::Vec2) -> egui::Event {
    egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta,
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Unknown,
        modifiers: egui::Modifiers::NONE,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).filter(|text| !text.starts_with("--"));
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        println!("which folder?");
        return Ok(());
    };
    if folder.as_os_str() == "verdicts" {
        return open_with_verdicts();
    }
    if folder.as_os_str() == "map" {
        return show_map();
    }
    let frames: usize = arguments.next().map_or(Ok(2000), |text| text.parse())?;
    let home = tempfile::tempdir()?;
    let mut bench = Bench::new(home.path());
    bench.app.command(BrowseCommand::Open(folder));
    let begun = Instant::now();
    let listing = bench.wait(|app| {
        let source = app.state().source.as_ref();
        source.is_some_and(|source| source.listing != Listing::Running)
    });
    let listed_in = begun.elapsed().as_secs_f64();
    let count = bench.app.state().samples.len();
    let mut costs: Vec<Cost> = Vec::with_capacity(frames);
    // The pointer is over the thumbnails; each frame scrolls so far that the last one reaches the bottom.
    let pointer = egui::pos2(150.0, 500.0);
    let rows = count as f32 / 2.0;
    let step = rows * 150.0 / frames as f32;
    for _ in 0..frames {
        let begun = Instant::now();
        costs.push(bench.frame(vec![egui::Event::PointerMoved(pointer), wheel(egui::vec2(0.0, -step))]));
        std::thread::sleep(FRAME.saturating_sub(begun.elapsed()));
    }
    let end =
        if bench.shows_the_last_image() { "to the last image" } else { "without reaching the last image: no result" };
    println!("{count} images, listed in {listed_in:.2} s");
    print_costs(&listing);
    println!("{frames} frames of scrolling, {end}");
    print_costs(&costs);
    if let Some(megabytes) = memory() {
        println!("memory (PSS) {megabytes:.0} MB");
    }
    Ok(())
}

/// Opens a project of [`JUDGED_IMAGES`] with [`VERDICTS`] each.
fn open_with_verdicts() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let project = write_project(home.path(), Extras::Verdicts)?;
    println!("project of {} MB", project.metadata()?.len() / 1_000_000);
    for _ in 0..3 {
        let mut bench = Bench::new(home.path());
        let begun = Instant::now();
        bench.app.command(BrowseCommand::Open(project.clone()));
        let mut costs = bench.wait(|app| app.state().judgments.iter().count() > 0);
        let first = begun.elapsed().as_secs_f64();
        costs.extend(bench.wait(|app| {
            let is_listed = app.state().source.as_ref().is_some_and(|source| source.listing != Listing::Running);
            is_listed && app.state().judgments.iter().count() == JUDGED_IMAGES
        }));
        println!("first verdicts after {first:.2} s, all after {:.2} s", begun.elapsed().as_secs_f64());
        print_costs(&costs);
        println!("memory (PSS) {:.0} MB", memory().unwrap_or_default());
    }
    Ok(())
}

/// Makes the map of [`JUDGED_IMAGES`], and zooms it.
fn show_map() -> Result<(), Box<dyn std::error::Error>> {
    const FRAMES: usize = 300;
    let home = tempfile::tempdir()?;
    let project = write_project(home.path(), Extras::Embeddings)?;
    let mut bench = Bench::new(home.path());
    bench.app.command(BrowseCommand::Open(project));
    bench.wait(|app| app.state().run().is_some_and(|run| run.predictions.predicted() == JUDGED_IMAGES));
    let begun = Instant::now();
    bench.app.command(Action::Map);
    let first = bench.wait(|app| app.state().map_layout().is_some());
    println!("principal components after {:.1} s", begun.elapsed().as_secs_f64());
    let growing = bench.wait(|app| app.state().map_layout().is_some_and(|layout| layout.stage == MapStage::Finished));
    println!("map after {:.1} s", begun.elapsed().as_secs_f64());
    bench.wait(|app| app.state().map_groups().is_some());
    println!("frames while the map is made");
    print_costs(&[first, growing].concat());
    let middle = egui::pos2(620.0, 480.0);
    let zoomed = (0..FRAMES).map(|number| {
        let delta = egui::vec2(0.0, if number % 60 < 30 { 6.0 } else { -6.0 });
        bench.frame(vec![egui::Event::PointerMoved(middle), wheel(delta)])
    });
    let zoomed: Vec<Cost> = zoomed.collect();
    println!("{FRAMES} frames of zooming");
    print_costs(&zoomed);
    let still: Vec<Cost> = (0..FRAMES).map(|_| bench.frame(Vec::new())).collect();
    println!("{FRAMES} frames without a change");
    print_costs(&still[FRAMES / 2..]);
    Ok(())
}

/// What a project has apart from predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extras {
    Verdicts,
    Embeddings,
}

fn write_project(home: &Path, extras: Extras) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let folder = home.join("photos");
    std::fs::create_dir(&folder)?;
    let image = |number: usize| folder.join(format!("{number:06}.jpg"));
    for number in 0..JUDGED_IMAGES {
        std::fs::write(image(number), b"")?;
    }
    let path = home.join("p.spotcheck");
    let request = OpenRequest { path: &path, root: folder.to_str(), mode: OpenMode::Write, program: "a bench" };
    let project = Project::open(&request, |_| ())?.project;
    let control = TaskControl::new(ProgressUnit::Images);
    let write = |change| project.write_when_there_is_room(1, change, &control);
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
    let encoder = Encoder {
        tokens: None,
        model_id: key.model_id.clone(),
        weights_sha256: key.weights_sha256.clone(),
        tensor: "features".to_owned(),
        layer: String::new(),
        dims: DIMS,
        input: model.card.input.clone(),
        boxes: None,
    };
    let labels = [(1, "cat".to_owned())].into_iter().collect();
    write(Change::AddRun(Box::new(RunInfo {
        id: run,
        name: "a run".to_owned(),
        key,
        card: model.card,
        labels,
        created_ms: 0,
    })))?;
    let found = |index: u32| Detection {
        bounds: BoundingBox { x1: index as f32, y1: 0.0, x2: index as f32 + 10.0, y2: 10.0 },
        class_id: 1,
        label: "cat".to_owned(),
        score: 0.9,
        runners_up: Vec::new(),
    };
    let uri = |number: usize| SampleUri::new(image(number).to_string_lossy());
    for first in (0..JUDGED_IMAGES).step_by(1000) {
        let predictions = (first..first + 1000).map(|number| SamplePrediction {
            sample: uri(number),
            stamp: stamp(&image(number)),
            result: Ok(Prediction {
                width: 200,
                height: 100,
                content: PredictionContent::Detections((0..VERDICTS).map(found).collect()),
                warnings: Vec::new(),
            }),
        });
        write(Change::Predictions { run, predictions: predictions.collect() })?;
    }
    if extras == Extras::Embeddings {
        project.flush()?;
        write_embeddings(&project, &encoder, &folder)?;
        return Ok(path);
    }
    for number in 0..JUDGED_IMAGES {
        for index in 0..VERDICTS {
            let target = VerdictTarget { run: Some(run), box_index: Some(index) };
            let verdict = Some(if index == 0 { Verdict::Reject } else { Verdict::Accept });
            write(Change::SetVerdict { sample: uri(number), target, verdict, reviewer: Some("Ann".to_owned()) })?;
        }
    }
    project.flush()?;
    Ok(path)
}

/// The numbers of an embedding.
const DIMS: usize = 64;

/// Embeddings near one of 40, like images of the same kind.
fn write_embeddings(project: &Project, encoder: &Encoder, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut state = 1_u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from((state >> 16) as u16) / 65_536.0
    };
    let centers: Vec<f32> = (0..40 * DIMS).map(|_| number()).collect();
    let mut writer = EmbeddingWriter::open(project, encoder)?.ok_or("the project has no file")?;
    for image in 0..JUDGED_IMAGES {
        let path = folder.join(format!("{image:06}.jpg"));
        let FileStamp { size_bytes, modified_ns, etag } = stamp(&path);
        let uri = SampleUri::new(path.to_string_lossy());
        let sample = Sample { name: String::new(), uri, size_bytes, modified_ns, etag, capture: None };
        let center = &centers[image % 40 * DIMS..][..DIMS];
        let values: Vec<f32> = center.iter().map(|center| center + 0.6 * number()).collect();
        let image = Embedding::new(&values).ok_or("not finite")?;
        writer.save(&sample, ImageEmbeddings { image, boxes: Vec::new() })?;
    }
    Ok(())
}

fn stamp(path: &Path) -> FileStamp {
    let modified = path.metadata().and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|modified| modified.duration_since(std::time::UNIX_EPOCH).ok());
    FileStamp { size_bytes: 0, modified_ns: since.map(|since| since.as_nanos() as i64), etag: None }
}

fn print_costs(costs: &[Cost]) {
    println!("ms           p50    p99  worst");
    type Column = fn(&Cost) -> f64;
    let columns: [(&str, Column); 5] = [
        ("passed", |cost| cost.logic + cost.ui + cost.tessellation),
        ("logic", |cost| cost.logic),
        ("ui", |cost| cost.ui),
        ("tessellation", |cost| cost.tessellation),
        ("computed", |cost| cost.processor),
    ];
    for (name, column) in columns {
        let mut values: Vec<f64> = costs.iter().map(column).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share) as usize];
        println!("{name:12} {:5.2}  {:5.2}  {:5.2}", at(0.5), at(0.99), at(1.0));
    }
}

/// The memory of this process in MB; `None` if the system does not report it.
fn memory() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let pss = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: f64 = pss.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes / 1000.0)
}

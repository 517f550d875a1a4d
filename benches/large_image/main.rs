//! Zooms and moves through one huge image in the real window without a screen, and prints the frame times.
//!
//! `cargo bench --bench large_image -- FILE` (see README.md in this folder).

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use egui_kittest::Harness;
use spotcheck::dirs::AppDirs;
use spotcheck::window::app::{App, WindowOptions};
use spotcheck::window::state::{CanvasView, Display, InferenceCommand, ReviewCommand};

const FRAMES: usize = 600;
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
        measure(&file);
    }
}

fn measure(file: &Path) {
    println!("{}", file.display());
    let home = std::env::temp_dir().join("spotcheck-bench-large-image");
    let begun = Instant::now();
    let options = WindowOptions {
        source: Some(file.to_owned()),
        place: None,
        model: None,
        renderer: None,
        dirs: AppDirs::below(&home),
        started: begun,
    };
    let mut window = Harness::builder().with_size((1920.0, 1080.0)).build_eframe(|creation| {
        let mut app = App::new(creation, &options);
        app.command(InferenceCommand::SetPredictOnOpen(false));
        app
    });
    wait(&mut window, App::image_is_complete);
    println!("  whole image on screen after {:.2} s", begun.elapsed().as_secs_f64());
    let Display::Ready(info) = &window.state().state().shown.display else {
        panic!("the image is shown");
    };
    let size = info.size.map(|side| side as f32);

    let zoomed = Instant::now();
    look_at(&mut window, 1.0, [size[0] / 2.0, size[1] / 2.0]);
    wait(&mut window, App::image_is_complete);
    println!("  every pixel of the middle after {:.2} s", zoomed.elapsed().as_secs_f64());

    let mut times = Vec::new();
    let mut coarse = 0;
    for frame in 0..FRAMES {
        let part = frame as f32 / FRAMES as f32;
        // Zooms in from the whole image to four times its pixels and out again, three times, while moving across it.
        let depth = (part * 3.0 * std::f32::consts::TAU).cos().mul_add(-0.5, 0.5);
        let fitting = 1000.0 / size[0];
        let zoom = fitting * (4.0 / fitting).powf(depth);
        let center = [size[0] * (0.1 + 0.8 * part), size[1] * (0.9 - 0.8 * part)];
        look_at(&mut window, zoom, center);
        let frame_begun = Instant::now();
        window.step();
        let output = window.output();
        let shapes = output.shapes.clone();
        let clipped = window.ctx.tessellate(shapes, output.pixels_per_point);
        let elapsed = frame_begun.elapsed();
        drop(clipped);
        times.push(elapsed.as_secs_f64() * 1e3);
        coarse += usize::from(!window.state().image_is_complete());
        std::thread::sleep(FRAME_PERIOD.saturating_sub(elapsed));
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "  {FRAMES} frames of zooming and moving, ui + tessellation: p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms; \
         {coarse} of them had a coarse part",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    println!("  memory: {}", memory());
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

//! What a frame costs without the rasteriser while a folder is scrolled from top to bottom: the application's own work, the
//! interface, and tessellation, in the real window without a screen.
//!
//! usage: cargo bench --bench scroll -- FOLDER [FRAMES]

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use eframe::App as _;
use eframe::egui;
use spotcheck::app::{App, WindowOptions};
use spotcheck::dirs::AppDirs;
use spotcheck::state::{Command, Listing};

const SIZE: egui::Vec2 = egui::vec2(1360.0, 860.0);
const FRAME: Duration = Duration::from_millis(16);

struct Bench {
    ctx: egui::Context,
    app: App,
    frame: eframe::Frame,
    begun: Instant,
}

impl Bench {
    /// Gives the milliseconds that one frame took.
    fn frame(&mut self, events: Vec<egui::Event>) -> f64 {
        let input = egui::RawInput {
            screen_rect: Some(egui::Rect::from_min_size(egui::Pos2::ZERO, SIZE)),
            time: Some(self.begun.elapsed().as_secs_f64()),
            events,
            ..egui::RawInput::default()
        };
        let begun = Instant::now();
        let (app, frame) = (&mut self.app, &mut self.frame);
        let mut output = self.ctx.run_ui(input, |ui| {
            app.logic(ui.ctx(), frame);
            app.ui(ui, frame);
        });
        let pixels_per_point = output.pixels_per_point;
        let painted = self.ctx.tessellate(output.shapes, pixels_per_point);
        let milliseconds = begun.elapsed().as_secs_f64() * 1000.0;
        // There is no graphics card to send them to.
        output.textures_delta.clear();
        drop(painted);
        milliseconds
    }

    fn wait(&mut self, is_ready: impl Fn(&App) -> bool) {
        while !is_ready(&self.app) {
            self.frame(Vec::new());
            std::thread::sleep(FRAME);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|text| !text.starts_with("--"));
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        println!("which folder?");
        return Ok(());
    };
    let frames: usize = arguments.next().map_or(Ok(2000), |text| text.parse())?;
    let home = tempfile::tempdir()?;
    let ctx = egui::Context::default();
    let creation = eframe::CreationContext::_new_kittest(ctx.clone());
    let options = WindowOptions {
        source: None,
        model: None,
        renderer: None,
        dirs: AppDirs::below(home.path()),
        started: Instant::now(),
    };
    let mut bench = Bench {
        app: App::new(&creation, options),
        ctx,
        frame: eframe::Frame::_new_kittest(),
        begun: Instant::now(),
    };
    bench.app.command(Command::SetPredictOnOpen(false));
    bench.app.command(Command::Open(folder));
    bench.wait(|app| {
        let source = app.state().source.as_ref();
        source.is_some_and(|source| source.listing == Listing::Done)
    });
    let count = bench.app.state().samples.len();
    let mut costs: Vec<f64> = Vec::with_capacity(frames);
    // The pointer lies over the thumbnails; each frame turns the wheel so far that the last one is at the bottom.
    let pointer = egui::pos2(150.0, 500.0);
    let rows = count as f32 / 2.0;
    let step = rows * 150.0 / frames as f32;
    for _ in 0..frames {
        let begun = Instant::now();
        costs.push(bench.frame(vec![
            egui::Event::PointerMoved(pointer),
            egui::Event::MouseWheel {
                unit: egui::MouseWheelUnit::Point,
                delta: egui::vec2(0.0, -step),
                phase: egui::TouchPhase::Move,
                source: egui::MouseWheelSource::Unknown,
                modifiers: egui::Modifiers::NONE,
            },
        ]));
        std::thread::sleep(FRAME.saturating_sub(begun.elapsed()));
    }
    costs.sort_by(f64::total_cmp);
    let at = |share: f64| costs[((costs.len() - 1) as f64 * share) as usize];
    println!(
        "{count} images, {frames} frames: p50 {:.2} ms, p99 {:.2} ms, worst {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}

//! The window: connects state, effects and panels, and starts work before the window exists. The only place where a
//! frame begins.

mod settings_file;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, select};
use eframe::egui;
use parking_lot::Mutex;

use crate::dirs::AppDirs;
use crate::domain::{Problem, S3Place};
use crate::tasks::Waker;
use crate::window::effects::{Delivery, Effects, Inbox};
use crate::window::state::{BrowseCommand, Command, Event, Message, Overlay, ReviewCommand, State};
use crate::window::ui::{NewThumbnail, Window, apply_theme};
use crate::window::update;
use settings_file::SettingsFile;

/// The time per frame for taking over pixels; the rest waits for the next frame.
const UPLOAD_TIME_A_FRAME: Duration = Duration::from_millis(2);
/// The same for task events, because the results of a large run arrive in many parts.
const EVENT_TIME_A_FRAME: Duration = Duration::from_millis(4);
/// The same in bytes, because the GPU uploads them afterward.
const UPLOAD_BYTES_A_FRAME: usize = 8 << 20;
/// How often progress is redrawn while work is in progress.
const PROGRESS_PERIOD: Duration = Duration::from_millis(200);

/// Command-line options of the window.
#[derive(Debug, Clone)]
pub struct WindowOptions {
    /// A folder or file to open at startup.
    pub source: Option<PathBuf>,
    /// An S3 location to open at startup instead.
    pub place: Option<S3Place>,
    /// The id of the model to use instead of the last one, or an ONNX file to add.
    pub model: Option<String>,
    /// `None` selects the best one for the platform.
    pub renderer: Option<RendererChoice>,
    pub dirs: AppDirs,
    /// The start of the program, for the log.
    pub started: Instant,
}

/// The window did not open; with the messages of the graphics libraries.
#[derive(Debug, thiserror::Error)]
#[error("the window could not be opened: {0}; without a display, use `spotcheck predict` on the command line")]
pub struct WindowError(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RendererChoice {
    /// OpenGL.
    Glow,
    /// Vulkan, Metal or Direct3D; on Linux, OpenGL is always there.
    #[cfg(any(windows, target_os = "macos"))]
    Wgpu,
}

impl RendererChoice {
    const ALL: &[Self] = &[
        Self::Glow,
        #[cfg(any(windows, target_os = "macos"))]
        Self::Wgpu,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Glow => "OpenGL",
            #[cfg(any(windows, target_os = "macos"))]
            Self::Wgpu => "wgpu",
        }
    }
}

/// The window as run by eframe. Tests run the same one.
pub struct App {
    work: Work,
    window: Window,
    /// The start of the program; `None` after the first frame.
    started: Option<Instant>,
}

impl App {
    /// # Panics
    /// The system refuses a thread.
    pub fn new(creation: &eframe::CreationContext<'_>, options: &WindowOptions) -> Self {
        let head_start = HeadStart::begin(options).expect("a program may start threads");
        Self::take_over(creation, options, head_start)
    }

    fn take_over(creation: &eframe::CreationContext<'_>, options: &WindowOptions, head_start: HeadStart) -> Self {
        apply_theme(&creation.egui_ctx);
        let mut app = Self {
            work: head_start.take_over(&creation.egui_ctx),
            window: Window::new(&creation.egui_ctx),
            started: Some(options.started),
        };
        app.command(Command::DrawnBy(graphics_adapter(creation)));
        app
    }

    /// The state, for tests of what no label shows.
    pub fn state(&self) -> &State {
        &self.work.state
    }

    /// Whether the last frame showed the image in full detail, for tests that compare pixels.
    pub fn image_is_complete(&self) -> bool {
        self.window.textures.image_is_complete()
    }

    /// The same for the boxes of the filmstrip.
    pub fn filmstrip_is_complete(&self) -> bool {
        self.window.textures.filmstrip_is_complete()
    }

    /// Asks before the window closes during unfinished work. A second attempt closes it.
    fn ask_before_quitting(&mut self, ctx: &egui::Context) {
        let state = &self.work.state;
        let is_closing = ctx.input(|input| input.viewport().close_requested());
        if !is_closing || state.overlay == Overlay::Quit || state.unfinished().is_empty() {
            return;
        }
        ctx.send_viewport_cmd(egui::ViewportCommand::CancelClose);
        self.command(ReviewCommand::EndPresentation);
        self.command(Command::SetOverlay(Overlay::Quit));
    }

    /// Runs a command as if the user had chosen it.
    pub fn command(&mut self, command: impl Into<Command>) {
        self.work.apply(Message::Command(command.into()));
    }

    /// Processes what the workers have sent. Never waits.
    fn drain_inbox(&mut self, ctx: &egui::Context) {
        for event in self.work.effects.picked() {
            self.work.apply(Message::Event(event));
        }
        let begun = Instant::now();
        while let Ok(event) = self.work.inbox.events.try_recv() {
            self.work.apply(Message::Event(event));
            if begun.elapsed() > EVENT_TIME_A_FRAME {
                ctx.request_repaint();
                break;
            }
        }
        let begun = Instant::now();
        let mut bytes = 0;
        while let Ok(delivery) = self.work.inbox.deliveries.try_recv() {
            bytes += delivery.bytes();
            self.receive(ctx, delivery);
            if begun.elapsed() > UPLOAD_TIME_A_FRAME || bytes > UPLOAD_BYTES_A_FRAME {
                ctx.request_repaint();
                break;
            }
        }
    }

    fn receive(&mut self, ctx: &egui::Context, delivery: Delivery) {
        let open = self.work.state.source_id();
        match delivery {
            Delivery::Thumbnail { source, sample, version, side, image } => {
                if open == Some(source) {
                    let thumbnail = NewThumbnail { sample, version, side, image };
                    self.window.textures.thumbnails.add(ctx, source, &thumbnail);
                }
            }
            Delivery::RgbImage { source, sample, image } => {
                if open == Some(source) && self.work.state.shown_sample() == Some(sample) {
                    self.window.textures.set_image(source, sample, image);
                }
            }
            Delivery::Tile { source, sample, key, tile } => {
                let textures = &mut self.window.textures;
                textures.add_tile(ctx, source, sample, key, &tile);
            }
            Delivery::Crop { source, run, sample, shows, result } => {
                self.window.textures.crops.add(ctx, (source, run), (sample, shows), result);
            }
            Delivery::ImportPreview { image } => self.window.textures.set_import_preview(ctx, &image),
            Delivery::CopyImage(image) => {
                ctx.copy_image(crate::window::ui::color_image(&image));
            }
            Delivery::CopyText(text) => ctx.copy_text(text),
            Delivery::Close => ctx.send_viewport_cmd(egui::ViewportCommand::Close),
        }
    }
}

impl eframe::App for App {
    fn logic(&mut self, ctx: &egui::Context, _frame: &mut eframe::Frame) {
        self.drain_inbox(ctx);
    }

    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        let mut keys = self.window.pressed_keys(&self.work.state);
        while let Some(command) = keys.next(ui.ctx(), &self.work.state) {
            self.command(command);
            ui.ctx().request_repaint();
        }
        let commands = self.window.show(ui, &self.work.state);
        if let Some(started) = self.started.take() {
            let milliseconds = started.elapsed().as_millis();
            log::info!("the first frame was laid out after {milliseconds} ms");
        }
        if !commands.is_empty() {
            // The latest change must become visible.
            ui.ctx().request_repaint();
        }
        for command in commands {
            self.command(command);
        }
        self.ask_before_quitting(ui.ctx());
        if !self.work.state.tasks.is_idle() {
            ui.ctx().request_repaint_after(PROGRESS_PERIOD);
        }
    }

    fn save(&mut self, _: &mut dyn eframe::Storage) {
        self.work.settings_file.write(&self.work.state.settings);
    }
}

/// Opens the window and returns when it is closed. If the renderer cannot start, the other one is tried if there is one,
/// and the window reports it.
///
/// # Errors
/// There is no display, or no renderer works on it.
pub fn run_window(options: &WindowOptions) -> Result<(), WindowError> {
    start_log(&options.dirs);
    let first = options.renderer.unwrap_or(RendererChoice::Glow);
    // Taken by the window that opens; which one that is cannot be known earlier.
    let head_start = HeadStart::begin(options).map_err(|error| WindowError(error.to_string()))?;
    let head_start = Arc::new(Mutex::new(Some(head_start)));
    let result = run_with(first, options, &head_start, None).or_else(|error| {
        let Some(&second) = RendererChoice::ALL.iter().find(|choice| **choice != first) else {
            return Err(error);
        };
        let warning = format!(
            "{} could not draw the window, so {} is used; choose a renderer with `--renderer`: {error}",
            first.name(),
            second.name()
        );
        log::warn!("{warning}");
        run_with(second, options, &head_start, Some(warning)).map_err(|second_error| {
            // The first error has the cause; the second often only reports the failed retry.
            log::error!("{} failed too: {second_error}", second.name());
            error
        })
    });
    result.map_err(|error| WindowError(in_words(&error.to_string())))
}

/// The reason of a winit error without its source lines, and what to do.
fn in_words(error: &str) -> String {
    let reason = match error.split_once("os error at ") {
        Some((_, at)) => at.split_once(": ").map_or(at, |(_, reason)| reason),
        None => error,
    };
    if reason.contains("DISPLAY") {
        return format!(
            "there is no display for a window ({}); use the commands that `spotcheck help` lists",
            reason.trim_end_matches('.')
        );
    }
    reason.to_owned()
}

fn run_with(
    renderer: RendererChoice,
    options: &WindowOptions,
    head_start: &Arc<Mutex<Option<HeadStart>>>,
    warning: Option<String>,
) -> Result<(), eframe::Error> {
    let config = &options.dirs.config;
    if let Err(error) = std::fs::create_dir_all(config) {
        log::warn!("settings will not be saved: {error}: {}", config.display());
    }
    let native = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_app_id("spotcheck")
            .with_title("Spotcheck")
            .with_icon(icon())
            .with_inner_size([1360.0, 860.0])
            .with_min_inner_size([640.0, 420.0]),
        renderer: match renderer {
            RendererChoice::Glow => eframe::Renderer::Glow,
            #[cfg(any(windows, target_os = "macos"))]
            RendererChoice::Wgpu => eframe::Renderer::Wgpu,
        },
        persistence_path: Some(config.join("window.ron")),
        ..eframe::NativeOptions::default()
    };
    let (options, head_start) = (options.clone(), head_start.clone());
    eframe::run_native(
        "Spotcheck",
        native,
        Box::new(move |creation| {
            let ahead = head_start.lock().take();
            let ahead = ahead.map_or_else(|| HeadStart::begin(&options), Ok)?;
            let mut app = App::take_over(creation, &options, ahead);
            if let Some(warning) = warning {
                app.work.apply(Message::Event(Event::Problem(Problem::general(warning))));
            }
            Ok(Box::new(app))
        }),
    )
}

/// Writes warnings and Spotcheck's own messages to the log file. The window opens even if the log cannot be written.
fn start_log(dirs: &AppDirs) {
    let path = dirs.log_file();
    let file = std::fs::create_dir_all(&dirs.cache).and_then(|()| std::fs::File::create(&path));
    let Ok(file) = file else {
        return;
    };
    let started = env_logger::Builder::new()
        .filter_level(log::LevelFilter::Warn)
        .filter_module("spotcheck", log::LevelFilter::Info)
        // The AWS crates write whole server responses into their warnings; Spotcheck's own messages contain the
        // important part.
        .filter_module("aws", log::LevelFilter::Off)
        .target(env_logger::Target::Pipe(Box::new(file)))
        .try_init();
    if started.is_ok() {
        log::info!("Spotcheck {} starts", env!("CARGO_PKG_VERSION"));
    }
}

fn icon() -> egui::IconData {
    eframe::icon_data::from_png_bytes(include_bytes!("../../../assets/icon/spotcheck-256.png")).unwrap_or_default()
}

/// The graphics adapter, for diagnostics.
fn graphics_adapter(creation: &eframe::CreationContext<'_>) -> String {
    use eframe::glow::HasContext as _;
    #[cfg(any(windows, target_os = "macos"))]
    if let Some(wgpu) = &creation.wgpu_render_state {
        let info = wgpu.adapter.get_info();
        return format!("{} ({}, wgpu)", info.name, info.backend);
    }
    match &creation.gl {
        Some(gl) => {
            // SAFETY: eframe made this context current on this thread before it called us.
            let name = unsafe { gl.get_parameter_string(eframe::glow::RENDERER) };
            format!("{name} (OpenGL)")
        }
        None => "none".to_owned(),
    }
}

/// Everything behind the window: the state, the effects, and their events.
pub(crate) struct Work {
    pub(crate) state: State,
    /// Dropped before the effects, which wait for workers: no worker may then wait for space here.
    pub(crate) inbox: Inbox,
    pub(crate) effects: Effects,
    pub(crate) settings_file: SettingsFile,
    /// Woken by the workers once there is a window.
    window: Arc<OnceLock<egui::Context>>,
}

impl Work {
    fn new(options: &WindowOptions) -> Self {
        let window = Arc::new(OnceLock::<egui::Context>::new());
        let sleeping = window.clone();
        let waker = Waker::new(move || {
            if let Some(ctx) = sleeping.get() {
                ctx.request_repaint();
            }
        });
        let (effects, inbox) = Effects::start(options.dirs.clone(), waker);
        let mut settings_file = SettingsFile::new(&options.dirs.config);
        let mut work = Self { state: State::new(settings_file.read()), effects, inbox, settings_file, window };
        work.apply(Message::Command(Command::Start { source: options.source.clone(), model: options.model.clone() }));
        if let Some(place) = &options.place {
            work.apply(Message::Command(Command::Browse(BrowseCommand::OpenPlace(Box::new(place.clone())))));
        }
        work
    }

    pub(crate) fn apply(&mut self, message: Message) {
        for effect in update::update(&mut self.state, message) {
            self.effects.carry_out(effect);
        }
    }

    /// Processes the workers' reports until the window does so itself.
    fn go_on_until(mut self, window_is_there: &Receiver<()>) -> Self {
        let events = self.inbox.events.clone();
        loop {
            select! {
                recv(events) -> event => match event {
                    Ok(event) => self.apply(Message::Event(event)),
                    Err(_) => return self,
                },
                recv(window_is_there) -> _ => return self,
            }
        }
    }
}

/// Work in the first moments, while the graphics libraries create the window: images are listed, and the first one is
/// decoded.
pub(crate) struct HeadStart {
    worker: JoinHandle<Work>,
    window_is_there: Sender<()>,
}

impl HeadStart {
    pub(crate) fn begin(options: &WindowOptions) -> std::io::Result<Self> {
        let (window_is_there, there) = crossbeam_channel::bounded(1);
        let options = options.clone();
        let worker = std::thread::Builder::new()
            .name("head start".to_owned())
            .spawn(move || Work::new(&options).go_on_until(&there))?;
        Ok(Self { worker, window_is_there })
    }

    /// Hands the work over to the window.
    pub(crate) fn take_over(self, ctx: &egui::Context) -> Work {
        drop(self.window_is_there);
        let work = match self.worker.join() {
            Ok(work) => work,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // The first caller is the only one.
        let _ = work.window.set(ctx.clone());
        work
    }
}

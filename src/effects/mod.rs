//! Runs effects as background tasks and reports the results as events.
//!
//! Nothing here blocks the window: each effect is passed to a thread, and results return through bounded channels with
//! a wake-up call. Pixels do not pass through the state; they reach the window in a separate channel. Only this module
//! shows file dialogs and opens things on the desktop.

mod arrange;
mod browse;
mod compare;
mod desktop;
mod diagnostics;
mod display;
mod engine;
mod evaluate;
mod explain;
mod export;
mod filmstrip;
mod import;
mod kept;
mod latest;
mod model_inspection;
mod model_work;
mod models;
mod overlaps;
mod project;
mod remote;
mod review;
mod s3;
mod thumbnails;
mod upload;

use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use model_work::ModelWork;
use parking_lot::Mutex;
use poll_promise::Promise;

use crate::annotations::Found;
use crate::aws::Aws;
use crate::cache::DiskCache;
use crate::decode::{DecodeLimits, ThumbnailCache};
use crate::dirs::{AppDirs, Scratch};
use crate::domain::{DisplayImage, Problem, RgbImage, RunId, SampleId, Tile, TileKey};
use crate::library::Library;
use crate::review::FilmBox;
use crate::source::{FileEntry, Files, Source};
use crate::state::{
    BoxCountRequest, BrowseEvent, Effect, Event, FilePick, RequestId, SourceId, TaskId, TaskSignal, Ticket,
};
use crate::store::Project;
use crate::tasks::{self, TaskControl, Waker};

/// The number of pending events at which workers wait for the window.
const EVENTS_WAITING: usize = 256;
const DELIVERIES_WAITING: usize = 32;

/// Starts work and owns its threads. Dropping it lets them finish their current step.
pub struct Effects {
    shared: Arc<Shared>,
    thumbnails: thumbnails::ThumbnailMaker,
    display: display::DisplayMaker,
    filmstrips: filmstrip::Filmstrips,
    box_counts: latest::LatestSender<(RequestId, Box<BoxCountRequest>)>,
    predictions: latest::LatestSender<project::Request>,
    engine: engine::EngineWorker,
    remote_inference: remote::remote_inference::RemoteWorker,
    model_inspection: model_inspection::ModelInspector,
    arrange: latest::LatestSender<arrange::Request>,
    endpoints: remote::EndpointDeleter,
}

/// The channel of predictions.
pub struct Inbox {
    pub events: Receiver<Event>,
    pub deliveries: Receiver<Delivery>,
}

/// Pixels and other results that only the window itself can use.
pub enum Delivery {
    Thumbnail {
        source: SourceId,
        sample: SampleId,
        version: u32,
        /// The requested length of the longer side, in pixels.
        side: u32,
        image: RgbImage,
    },
    /// The image for the canvas, whose pixels arrive in tiles.
    RgbImage {
        source: SourceId,
        sample: SampleId,
        image: DisplayImage,
    },
    /// A part of the image for the canvas.
    Tile {
        source: SourceId,
        sample: SampleId,
        key: TileKey,
        tile: Tile,
    },
    /// A box cropped from its image, or why it cannot be cropped.
    Crop {
        source: SourceId,
        run: RunId,
        sample: SampleId,
        shows: FilmBox,
        result: Result<RgbImage, String>,
    },
    /// The preview of a model's input for the shown image.
    ImportPreview {
        image: RgbImage,
    },
    CopyImage(RgbImage),
    CopyText(String),
    Close,
}

impl Delivery {
    /// The number of bytes to upload to the GPU.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Thumbnail { image, .. } => image.rgb().len() / 3 * 4,
            Self::Tile { tile, .. } => tile.rgba.len(),
            Self::Crop { result, .. } => {
                let pixels = result.as_ref().map_or(0, |image| image.rgb().len() / 3);
                pixels * 4
            }
            _ => 0,
        }
    }
}

/// The common context of every task.
struct Shared {
    dirs: AppDirs,
    library: Library,
    limits: Mutex<DecodeLimits>,
    /// Thumbnails and remote images.
    cache: Arc<DiskCache>,
    thumbnail_cache: ThumbnailCache,
    aws: Aws,
    waker: Waker,
    events: Sender<Event>,
    deliveries: Sender<Delivery>,
    dialogs: Mutex<Vec<Promise<FilePick>>>,
    /// The initial folder of the next file dialog.
    last_folder: Mutex<Option<PathBuf>>,
    source: Mutex<Option<(SourceId, Arc<dyn Source>)>>,
    project: Mutex<Option<(SourceId, Project)>>,
    /// The last dropped files with what was read from them, until something is opened.
    dropped: Mutex<Option<(Vec<FileEntry>, Found)>>,
    model_work: Arc<ModelWork>,
}

impl Effects {
    pub fn start(dirs: AppDirs, waker: Waker) -> (Self, Inbox) {
        let (events, events_received) = crossbeam_channel::bounded(EVENTS_WAITING);
        let (deliveries, deliveries_received) = crossbeam_channel::bounded(DELIVERIES_WAITING);
        // The settings limit its size before anything is read.
        let cache = Arc::new(DiskCache::new(dirs.cache.join("thumbnails"), 0));
        let shared = Arc::new(Shared {
            library: Library::open(&dirs),
            thumbnail_cache: ThumbnailCache::within(Arc::clone(&cache)),
            cache,
            dirs,
            limits: Mutex::default(),
            aws: Aws::new(),
            waker,
            events,
            deliveries,
            dialogs: Mutex::default(),
            last_folder: Mutex::default(),
            source: Mutex::new(None),
            project: Mutex::new(None),
            dropped: Mutex::default(),
            model_work: Arc::default(),
        });
        let effects = Self {
            thumbnails: thumbnails::ThumbnailMaker::new(&shared),
            display: display::DisplayMaker::new(&shared),
            filmstrips: filmstrip::Filmstrips::new(&shared),
            box_counts: export::box_counter(&shared),
            predictions: project::prediction_reader(&shared),
            engine: engine::EngineWorker::new(&shared),
            remote_inference: remote::remote_inference::RemoteWorker::new(&shared),
            model_inspection: model_inspection::ModelInspector::default(),
            arrange: arrange::arrange_worker(&shared),
            endpoints: remote::EndpointDeleter::default(),
            shared,
        };
        // Measuring reads a system folder, which may be slow.
        effects.shared.spawn("clean up", |_| Scratch::clean_up());
        let inbox = Inbox { events: events_received, deliveries: deliveries_received };
        (effects, inbox)
    }

    /// The file dialogs that were closed since the last call.
    pub fn picked(&self) -> Vec<Event> {
        let mut dialogs = self.shared.dialogs.lock();
        let mut picked = Vec::new();
        for promise in std::mem::take(&mut *dialogs) {
            match promise.try_take() {
                Ok(pick) => picked.push(Event::Browse(BrowseEvent::FilesPicked(pick))),
                Err(open) => dialogs.push(open),
            }
        }
        picked
    }

    pub fn carry_out(&mut self, effect: Effect) {
        let shared = &self.shared;
        match effect {
            Effect::Signal(control, signal) => match signal {
                TaskSignal::Pause => control.pause(),
                TaskSignal::Resume => control.resume(),
                TaskSignal::Cancel => control.cancel(),
            },
            Effect::PickFile(request) => desktop::pick(shared, request),
            Effect::CopyText { text, notice } => desktop::copy_text(shared, text, notice),
            Effect::CopyDiagnostics { lines } => diagnostics::copy(shared, lines),
            Effect::OpenManual => desktop::open_manual(shared),
            Effect::OpenLog => desktop::open_log(shared),
            Effect::Restart => desktop::restart(shared),
            Effect::Quit => {
                shared.deliver(Delivery::Close);
            }
            Effect::Jobs(effect) => remote::jobs::carry_out(self, effect),
            Effect::Endpoints(effect) => remote::endpoints::carry_out(self, effect),
            Effect::Outputs(effect) => remote::outputs::carry_out(self, effect),
            Effect::Inference(effect) => engine::carry_out(self, effect),
            Effect::Models(effect) => models::carry_out(self, effect),
            Effect::S3(effect) => s3::carry_out(self, effect),
            Effect::Export(effect) => export::carry_out(self, effect),
            Effect::Upload(effect) => upload::carry_out(self, effect),
            Effect::Project(effect) => project::carry_out(self, effect),
            Effect::Browse(effect) => browse::carry_out(self, effect),
            Effect::Review(effect) => review::carry_out(self, effect),
            Effect::Evaluation(effect) => evaluate::carry_out(self, effect),
        }
    }
}

/// The program ends only after the project's queue is saved and no model is running.
impl Drop for Effects {
    fn drop(&mut self) {
        let project = self.shared.project.lock().take();
        if let Some((_, project)) = project
            && let Err(error) = project.flush()
        {
            log::error!("the project was closed before everything was saved: {error}");
        }
        self.shared.model_work.close();
    }
}

impl Shared {
    fn limits(&self) -> DecodeLimits {
        self.limits.lock().clone()
    }

    /// Reports an event; false if the window is gone, so that the worker stops.
    fn report(&self, event: impl Into<Event>) -> bool {
        let is_open = self.events.send(event.into()).is_ok();
        self.waker.wake();
        is_open
    }

    /// Delivers a result; false if the window is gone, so that the worker stops.
    fn deliver(&self, delivery: Delivery) -> bool {
        let is_open = self.deliveries.send(delivery).is_ok();
        self.waker.wake();
        is_open
    }

    fn report_problem(&self, message: impl Into<String>) {
        self.report(Event::Problem(Problem::general(message)));
    }

    /// The open source, if it is still this one.
    fn source(&self, id: SourceId) -> Option<Arc<dyn Source>> {
        let current = self.source.lock();
        let (open, source) = current.as_ref()?;
        (*open == id).then(|| Arc::clone(source))
    }

    /// Sets the open source, unless a later one was opened meanwhile.
    fn set_source(&self, id: SourceId, source: Arc<dyn Source>) {
        let mut current = self.source.lock();
        if current.as_ref().is_none_or(|(open, _)| *open < id) {
            *current = Some((id, source));
        }
    }

    /// The project of the open source, once it is open.
    fn project(&self, id: SourceId) -> Option<Project> {
        let current = self.project.lock();
        let (open, project) = current.as_ref()?;
        (*open == id).then(|| project.clone())
    }

    /// Sets the project of the open source, unless a later source was opened meanwhile.
    fn set_project(&self, id: SourceId, project: Project) {
        let mut current = self.project.lock();
        let before = match &*current {
            Some((open, _)) if *open > id => Some((id, project)),
            _ => current.replace((id, project)),
        };
        drop(current);
        // Closing waits until everything is saved, so the lock must not be held.
        drop(before);
    }

    /// Closes the project of a source that was open before this one.
    fn close_project_before(&self, id: SourceId) {
        let earlier = self.project.lock().take_if(|(open, _)| *open < id);
        drop(earlier);
    }

    /// Spawns a named thread. A panic in it becomes a problem that the user sees.
    fn spawn(self: &Arc<Self>, name: &str, work: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let shared = Arc::clone(self);
        let on_panic = {
            let shared = Arc::clone(self);
            let name = name.to_owned();
            move |text: String| {
                shared.report_problem(format!("{} ({name})", internal_error(&text)));
            }
        };
        let work = move || {
            tasks::give_way();
            work(&shared);
        };
        tasks::spawn(name, work, on_panic);
    }

    /// Runs `work` for a task in the background and reports the event of its result, even if `work` panics.
    fn run_task<T, F: From<String>, E: Into<Event>>(
        self: &Arc<Self>,
        name: &str,
        ticket: Ticket,
        work: impl FnOnce(&Arc<Self>, &Ticket) -> Result<T, F> + Send + 'static,
        event: impl FnOnce(TaskId, Result<T, F>) -> E + Clone + Send + 'static,
    ) {
        let (task, event_of_panic) = (ticket.id, event.clone());
        self.spawn_reporting(
            name,
            move |shared| event(task, work(shared, &ticket)),
            move |reason| event_of_panic(task, Err(F::from(reason))),
        );
    }

    /// Takes what was read from these files when they were dropped; `None` if they have changed since.
    fn take_dropped(&self, files: &Files, control: &TaskControl) -> Option<Found> {
        let (dropped, found) = self.dropped.lock().take()?;
        (files.list(control).ok()? == dropped).then_some(found)
    }

    /// Runs `work` in the background and reports its event, or that of `on_panic` if it panics.
    fn spawn_reporting<E: Into<Event>>(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce(&Arc<Self>) -> E + Send + 'static,
        on_panic: impl FnOnce(String) -> E + Send + 'static,
    ) {
        let shared = Arc::clone(self);
        let work = move || {
            tasks::give_way();
            let event = work(&shared);
            shared.report(event);
        };
        let shared = Arc::clone(self);
        let on_panic = move |text: String| {
            shared.report(on_panic(internal_error(&text)));
        };
        tasks::spawn(name, work, on_panic);
    }
}

/// Runs a worker's step and turns a panic into an error, so that the worker continues with the next file.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    result.unwrap_or_else(|panic| Err(internal_error(&tasks::panic_text(&*panic))))
}

fn internal_error(panic_text: &str) -> String {
    format!("Internal error in Spotcheck; please report it: {panic_text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_costs_one_file() {
        let result: Result<(), String> = guarded(|| panic!("index out of bounds"));
        let reason = result.unwrap_err();
        assert!(reason.contains("index out of bounds"), "{reason}");
    }
}

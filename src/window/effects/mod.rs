//! Runs effects as background tasks and reports the results as events.
//!
//! Nothing here blocks the window: each effect is passed to a thread, and results return through bounded channels with
//! a wake-up call. Pixels do not pass through the state; they reach the window in a separate channel. Only this module
//! shows file dialogs and opens things on the desktop.

pub(crate) mod desktop;
pub(crate) mod latest;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender};
use parking_lot::Mutex;
use poll_promise::Promise;

use crate::annotations::Found;
use crate::aws::Aws;
use crate::cache::DiskCache;
use crate::dirs::{AppDirs, Scratch};
use crate::domain::{DisplayImage, Problem, RgbImage, RunId, SampleId, Tile, TileKey};
use crate::image::decode::{DecodeLimits, ThumbnailCache};
use crate::image::source::{FileEntry, Files, Source};
use crate::model::catalog::Library;
use crate::project::{Project, StoreError};
use crate::review::FilmBox;
use crate::tasks::{self, TaskControl, Waker};
use crate::window::duplicates::effects::KnownImages;
use crate::window::models::effects::ModelWork;
use crate::window::state::{
    ArrangeEffect, BoxCountRequest, BrowseEvent, Effect, Event, Failure, FilePick, GroupRequest, RequestId, SourceId,
    TaskId, TaskSignal, Ticket,
};
use crate::window::{
    browse, canvas, endpoints, evaluation, export, filmstrip, jobs, judge, map, models, outputs, predict, project,
    remote_inference, s3, search, upload,
};

/// The number of pending events at which workers wait for the window.
const EVENTS_WAITING: usize = 256;
const DELIVERIES_WAITING: usize = 32;

/// A number for a result, which no other result of this program has.
pub(crate) fn unique_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Starts work and owns its threads. Dropping it lets them finish their current step.
pub struct Effects {
    pub(crate) shared: Arc<Shared>,
    pub(crate) thumbnails: browse::effects::thumbnails::ThumbnailMaker,
    pub(crate) display: canvas::effects::DisplayMaker,
    pub(crate) filmstrips: filmstrip::effects::Filmstrips,
    pub(crate) map_groups: latest::LatestSender<(RequestId, Box<GroupRequest>)>,
    pub(crate) box_counts: latest::LatestSender<(RequestId, Box<BoxCountRequest>)>,
    pub(crate) predictions: latest::LatestSender<project::effects::Request>,
    pub(crate) engine: predict::effects::EngineWorker,
    pub(crate) remote_inference: remote_inference::effects::RemoteWorker,
    pub(crate) model_inspection: models::add::effects::ModelInspector,
    pub(crate) arrange: latest::LatestSender<ArrangeEffect>,
    pub(crate) endpoints: endpoints::effects::auto_delete::EndpointDeleter,
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
pub(crate) struct Shared {
    pub(crate) dirs: AppDirs,
    pub(crate) library: Library,
    pub(crate) limits: Mutex<DecodeLimits>,
    /// Thumbnails and remote images.
    pub(crate) cache: Arc<DiskCache>,
    pub(crate) thumbnail_cache: ThumbnailCache,
    pub(crate) aws: Aws,
    waker: Waker,
    events: Sender<Event>,
    deliveries: Sender<Delivery>,
    dialogs: Mutex<Vec<Promise<FilePick>>>,
    /// The initial folder of the next file dialog.
    last_folder: Mutex<Option<PathBuf>>,
    source: Mutex<Option<(SourceId, Arc<dyn Source>)>>,
    project: Mutex<Option<(SourceId, Project)>>,
    /// The last dropped files with what was read from them, until something is opened.
    pub(crate) dropped: Mutex<Option<(Vec<FileEntry>, Found)>>,
    /// What the last search for duplicates read.
    pub(crate) known_images: Mutex<Option<KnownImages>>,
    pub(crate) model_work: Arc<ModelWork>,
    /// For finding similar images and boxes.
    pub(crate) vectors: browse::effects::alike::KeptVectors,
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
            known_images: Mutex::default(),
            model_work: Arc::default(),
            vectors: browse::effects::alike::KeptVectors::default(),
        });
        let effects = Self {
            thumbnails: browse::effects::thumbnails::ThumbnailMaker::new(&shared),
            display: canvas::effects::DisplayMaker::new(&shared),
            filmstrips: filmstrip::effects::Filmstrips::new(&shared),
            map_groups: map::effects::group_worker(&shared),
            box_counts: export::effects::box_counter(&shared),
            predictions: project::effects::prediction_reader(&shared),
            engine: predict::effects::EngineWorker::new(&shared),
            remote_inference: remote_inference::effects::RemoteWorker::new(&shared),
            model_inspection: models::add::effects::ModelInspector::default(),
            arrange: search::effects::arrange_worker(&shared),
            endpoints: endpoints::effects::auto_delete::EndpointDeleter::default(),
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
            Effect::CopyDiagnostics { runtime_library, lines } => {
                desktop::copy_diagnostics(shared, runtime_library, lines);
            }
            Effect::OpenManual => desktop::open_manual(shared),
            Effect::OpenLog => desktop::open_log(shared),
            Effect::Restart => desktop::restart(shared),
            Effect::Quit => {
                shared.deliver(Delivery::Close);
            }
            Effect::Jobs(effect) => jobs::effects::carry_out(self, effect),
            Effect::Endpoints(effect) => endpoints::effects::carry_out(self, effect),
            Effect::RemoteJobs(effect) => jobs::effects::list_or_watch(&self.shared, effect),
            Effect::RemoteEndpoints(effect) => endpoints::effects::list_or_watch(&self.shared, effect),
            Effect::Outputs(effect) => outputs::effects::carry_out(self, effect),
            Effect::Inference(effect) => predict::effects::carry_out(self, effect),
            Effect::Models(effect) => models::effects::carry_out(self, effect),
            Effect::S3(effect) => s3::effects::carry_out(self, effect),
            Effect::Export(effect) => export::effects::carry_out(self, effect),
            Effect::Upload(effect) => upload::effects::carry_out(self, effect),
            Effect::Project(effect) => project::effects::carry_out(self, effect),
            Effect::Browse(effect) => browse::effects::carry_out(self, effect),
            Effect::Review(effect) => judge::effects::carry_out(self, effect),
            Effect::Search(effect) => {
                self.arrange.put(effect);
            }
            Effect::Evaluation(effect) => evaluation::effects::carry_out(self, effect),
            Effect::Map(effect) => map::effects::carry_out(self, effect),
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

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Cancelled(_) => Self::Cancelled,
            error => Self::new(error.to_string()),
        }
    }
}

impl Shared {
    pub(crate) fn limits(&self) -> DecodeLimits {
        self.limits.lock().clone()
    }

    /// Reports an event; false if the window is gone, so that the worker stops.
    pub(crate) fn report(&self, event: impl Into<Event>) -> bool {
        let is_open = self.events.send(event.into()).is_ok();
        self.waker.wake();
        is_open
    }

    /// Delivers a result; false if the window is gone, so that the worker stops.
    pub(crate) fn deliver(&self, delivery: Delivery) -> bool {
        let is_open = self.deliveries.send(delivery).is_ok();
        self.waker.wake();
        is_open
    }

    pub(crate) fn report_problem(&self, message: impl Into<String>) {
        self.report(Event::Problem(Problem::general(message)));
    }

    /// The open source, if it is still this one.
    pub(crate) fn source(&self, id: SourceId) -> Option<Arc<dyn Source>> {
        let current = self.source.lock();
        let (open, source) = current.as_ref()?;
        (*open == id).then(|| Arc::clone(source))
    }

    /// Sets the open source, unless a later one was opened meanwhile.
    pub(crate) fn set_source(&self, id: SourceId, source: Arc<dyn Source>) {
        let mut current = self.source.lock();
        if current.as_ref().is_none_or(|(open, _)| *open < id) {
            *current = Some((id, source));
            if let Some(mut known) = self.known_images.try_lock() {
                *known = None;
            }
        }
    }

    /// The project of the open source, once it is open.
    pub(crate) fn project(&self, id: SourceId) -> Option<Project> {
        let current = self.project.lock();
        let (open, project) = current.as_ref()?;
        (*open == id).then(|| project.clone())
    }

    /// Sets the project of the open source, unless a later source was opened meanwhile.
    pub(crate) fn set_project(&self, id: SourceId, project: Project) {
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
    pub(crate) fn close_project_before(&self, id: SourceId) {
        let earlier = self.project.lock().take_if(|(open, _)| *open < id);
        drop(earlier);
    }

    /// Spawns a named thread. A panic in it becomes a problem that the user sees.
    pub(crate) fn spawn(self: &Arc<Self>, name: &str, work: impl FnOnce(&Arc<Self>) + Send + 'static) {
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
    pub(crate) fn run_task<T, F: From<String>, E: Into<Event>>(
        self: &Arc<Self>,
        name: &str,
        ticket: Ticket,
        work: impl FnOnce(&Arc<Self>, &Ticket) -> Result<T, F> + Send + 'static,
        event: impl FnOnce(TaskId, Result<T, F>) -> E + Clone + Send + 'static,
    ) {
        let task = ticket.id;
        self.run(name, move |shared| work(shared, &ticket), move |result| event(task, result));
    }

    /// Runs `work` in the background and reports the event of its result, even if `work` panics.
    pub(crate) fn run<T, F: From<String>, E: Into<Event>>(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce(&Arc<Self>) -> Result<T, F> + Send + 'static,
        event: impl FnOnce(Result<T, F>) -> E + Clone + Send + 'static,
    ) {
        let event_of_panic = event.clone();
        self.spawn_reporting(
            name,
            move |shared| event(work(shared)),
            move |reason| event_of_panic(Err(F::from(reason))),
        );
    }

    /// Takes what was read from these files when they were dropped; `None` if they have changed since.
    pub(crate) fn take_dropped(&self, files: &Files, control: &TaskControl) -> Option<Found> {
        let (dropped, found) = self.dropped.lock().take()?;
        (files.list(control).ok()? == dropped).then_some(found)
    }

    /// Runs `work` in the background and reports its event, or that of `on_panic` if it panics.
    pub(crate) fn spawn_reporting<E: Into<Event>>(
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
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
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

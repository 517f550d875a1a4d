//! Thumbnails for the grid: the visible ones first, and none that have scrolled away. After all of them, the images
//! that are likely to be shown next are read ahead.
//!
//! A worker makes one image from start to end. If a source waits for a network, more workers may read than decode at a
//! time.

mod queue;

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use parking_lot::{Condvar, Mutex};
use queue::{Job, JobContent, Message, dispatch};

use crate::domain::{RgbImage, Sample, SampleUri};
use crate::image::decode;
use crate::image::decode::ThumbnailKey;
use crate::image::source::{Source, SourceError, for_task};
use crate::window::browse::effects::report_cache_failure;
use crate::window::effects::{Delivery, Shared, guarded};
use crate::window::state::{BrowseEvent, SourceId, ThumbnailRequest};

/// Most of them wait for a network most of the time.
const MAX_READERS: usize = 16;
/// More would slow down predictions.
const MAX_DECODERS: usize = 4;
/// The number of thumbnails waiting for the disk. If it is slower than the workers, some are not stored; they can be
/// made again.
const MAX_UNKEPT: usize = 256;

pub(crate) struct ThumbnailMaker {
    messages: Sender<Message>,
}

/// A thumbnail to save in the disk cache.
struct UnsavedThumbnail {
    key: ThumbnailKey,
    image: RgbImage,
}

/// The context of a worker.
struct Tools {
    decoders: Arc<Semaphore>,
    unsaved: Sender<UnsavedThumbnail>,
}

impl ThumbnailMaker {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let (unsaved, kept) = crossbeam_channel::bounded(MAX_UNKEPT);
        shared.spawn("save thumbnails", move |shared| save_thumbnails(shared, &kept));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let decoders = Arc::new(Semaphore::new(cores.min(MAX_DECODERS)));
        let (messages, received) = crossbeam_channel::unbounded();
        let (hand, jobs) = crossbeam_channel::bounded(MAX_READERS);
        shared.spawn("choose thumbnails", move |_| dispatch(&received, &hand));
        for _ in 0..MAX_READERS {
            let jobs: Receiver<Job> = jobs.clone();
            let messages = messages.clone();
            let tools = Tools { decoders: Arc::clone(&decoders), unsaved: unsaved.clone() };
            shared.spawn("make thumbnails", move |shared| {
                for job in jobs {
                    let is_open = carry_out(shared, &job, &tools);
                    if !is_open || messages.send(Message::Done(job)).is_err() {
                        break;
                    }
                }
            });
        }
        Self { messages }
    }

    /// Replaces the previous requests. Large files in progress that are no longer requested are canceled.
    pub(crate) fn request(&self, shared: &Shared, source: SourceId, side: u32, requests: Vec<ThumbnailRequest>) {
        let useful = shared.source(source).map(|source| source.useful_reads());
        let readers = useful.unwrap_or(1).clamp(1, MAX_READERS);
        self.send(Message::Request { source, readers, side, requests });
    }

    /// Replaces the images to read ahead.
    pub(crate) fn read_ahead(&self, source: SourceId, samples: Vec<Sample>) {
        self.send(Message::ReadAhead { source, samples });
    }

    /// Stops reading ahead when another image, `shown`, is shown: nothing else may delay it.
    pub(crate) fn stop_reading_ahead(&self, shown: SampleUri) {
        self.send(Message::StopReadingAhead(shown));
    }

    /// Sending fails only after the queue's thread has panicked, which was reported.
    fn send(&self, message: Message) {
        let _ended = self.messages.send(message);
    }
}

impl Drop for ThumbnailMaker {
    fn drop(&mut self) {
        self.send(Message::Close);
    }
}

struct Semaphore {
    free: Mutex<usize>,
    changed: Condvar,
}

struct Permit<'t>(&'t Semaphore);

impl Semaphore {
    fn new(free: usize) -> Self {
        Self { free: Mutex::new(free), changed: Condvar::new() }
    }

    fn wait(&self) -> Permit<'_> {
        let mut free = self.free.lock();
        self.changed.wait_while(&mut free, |free| *free == 0);
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.changed.notify_one();
    }
}

/// Runs a job; false if the window is gone.
fn carry_out(shared: &Shared, job: &Job, tools: &Tools) -> bool {
    // The source was closed meanwhile.
    let Some(source) = shared.source(job.source) else {
        return true;
    };
    let source = for_task(&source, &job.control);
    match &job.what {
        JobContent::Thumbnail { side, request } => {
            let key = ThumbnailKey::on_server(source.server(), &request.entry, *side);
            let image = guarded(|| {
                if let Some(kept) = key.and_then(|key| shared.thumbnail_cache.get(&key)) {
                    return Ok(Some(kept));
                }
                let made = make(shared, &*source, job, request, *side, tools)?;
                if let (Some(key), Some(image)) = (key, &made)
                    && !tools.unsaved.is_full()
                {
                    let image = image.clone();
                    // The cache's queue is full or gone; the thumbnail will be made again.
                    let _kept = tools.unsaved.try_send(UnsavedThumbnail { key, image });
                }
                Ok(made)
            });
            deliver(shared, job.source, request, *side, image)
        }
        JobContent::Ahead(sample) => {
            if source.is_cached(sample.size_bytes)
                && let Err(error) = source.read(&sample.uri)
            {
                // Showing the image will report the error.
                log::debug!("{} could not be read ahead: {error}", sample.uri);
            }
            true
        }
    }
}

/// Makes a thumbnail; `None` if it is no longer requested.
fn make(
    shared: &Shared,
    source: &dyn Source,
    job: &Job,
    request: &ThumbnailRequest,
    side: u32,
    tools: &Tools,
) -> Result<Option<RgbImage>, String> {
    let bytes = match source.read(&request.entry.uri) {
        Err(SourceError::Cancelled) => return Ok(None),
        read => read.map_err(|error| error.to_string())?,
    };
    let _turn = tools.decoders.wait();
    if job.control.is_cancelled() {
        return Ok(None);
    }
    let image = decode::thumbnail(&bytes, side, &shared.limits());
    image.map(Some).map_err(|error| error.to_string())
}

/// Delivers a thumbnail; false if the window is gone.
fn deliver(
    shared: &Shared,
    source: SourceId,
    request: &ThumbnailRequest,
    side: u32,
    image: Result<Option<RgbImage>, String>,
) -> bool {
    let (sample, version) = (request.sample, request.version);
    match image {
        Ok(Some(image)) => shared.deliver(Delivery::Thumbnail { source, sample, version, side, image }),
        Ok(None) => true,
        Err(reason) => shared.report(BrowseEvent::ThumbnailFailed { source, sample, version, reason }),
    }
}

/// Saves the workers' thumbnails until the workers are gone.
fn save_thumbnails(shared: &Shared, unsaved: &Receiver<UnsavedThumbnail>) {
    for UnsavedThumbnail { key, image } in unsaved {
        if let Err(error) = shared.thumbnail_cache.put(&key, &image) {
            report_cache_failure(shared, &error);
        }
    }
}

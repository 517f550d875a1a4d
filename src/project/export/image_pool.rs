//! Draws and writes annotated images on separate threads.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;

use super::annotated::{TruthMarks, annotate};
use super::error::{ExportError, is_fatal};
use super::image_file::{ImageFileError, write_image};
use crate::domain::{Prediction, Problem, SampleUri, ViewSettings};
use crate::image::decode::{DecodeLimits, decode};
use crate::image::source::{Source, SourceError};

/// If it is dropped before it is finished, it discards queued images and waits for those being written.
pub(crate) struct ImagePool {
    jobs: Option<Sender<Job>>,
    workers: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

pub(crate) struct Job {
    pub(crate) uri: SampleUri,
    pub(crate) target: PathBuf,
    pub(crate) prediction: Prediction,
    pub(crate) marks: TruthMarks,
}

/// A reason to stop.
pub(crate) enum PoolError {
    Disk(io::Error),
    /// No image can be read any more, and why.
    Source(String),
}

impl PoolError {
    /// The error of an export to `path`.
    pub(crate) fn into_error(self, path: &Path) -> ExportError {
        match self {
            Self::Disk(error) => ExportError::write(path)(error),
            Self::Source(reason) => ExportError::SourceUnreachable(reason),
        }
    }
}

struct Shared {
    source: Arc<dyn Source>,
    limits: DecodeLimits,
    view: ViewSettings,
    problems: Mutex<Vec<Problem>>,
    /// The first error that would also affect the next image.
    halt: Mutex<Option<PoolError>>,
    cancelled: AtomicBool,
}

impl ImagePool {
    pub(crate) fn start(source: &Arc<dyn Source>, limits: &DecodeLimits, view: &ViewSettings) -> Self {
        let worker_count = std::thread::available_parallelism().map_or(1, usize::from);
        let (jobs, queue) = bounded::<Job>(worker_count * 2);
        let shared = Arc::new(Shared {
            source: Arc::clone(source),
            limits: limits.clone(),
            view: view.clone(),
            problems: Mutex::default(),
            halt: Mutex::default(),
            cancelled: AtomicBool::new(false),
        });
        let workers = (0..worker_count).map(|_| {
            let (queue, shared) = (queue.clone(), Arc::clone(&shared));
            std::thread::spawn(move || shared.work(&queue))
        });
        Self { workers: workers.collect(), jobs: Some(jobs), shared }
    }

    /// Queues one image; waits if the queue is full.
    pub(crate) fn add(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // Fails only once every worker has panicked, which `finish` reports.
            let _ = jobs.send(job);
        }
    }

    /// Returned only once.
    pub(crate) fn take_error(&self) -> Option<PoolError> {
        self.shared.halt.lock().take()
    }

    /// Waits for the last image. Returns those that could not be written, and the reason to stop.
    pub(crate) fn finish(mut self) -> (Vec<Problem>, Option<PoolError>) {
        let mut problems = self.join();
        problems.append(&mut self.shared.problems.lock());
        (problems, self.take_error())
    }

    /// Returns panics.
    fn join(&mut self) -> Vec<Problem> {
        self.jobs = None;
        let join = |worker: JoinHandle<()>| {
            worker.join().err().map(|panic| {
                let text = crate::tasks::panic_text(&*panic);
                let message = format!("an internal error while drawing, please report it: {text}");
                Problem::general(message)
            })
        };
        self.workers.drain(..).filter_map(join).collect()
    }
}

impl Drop for ImagePool {
    fn drop(&mut self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        self.join();
    }
}

impl Shared {
    fn work(&self, queue: &Receiver<Job>) {
        for job in queue {
            if self.cancelled.load(Ordering::Relaxed) {
                continue;
            }
            if let Err(reason) = self.draw(&job) {
                let message = format!("no annotated image could be made: {reason}");
                self.problems.lock().push(Problem::new(job.uri, message));
            }
        }
    }

    fn draw(&self, job: &Job) -> Result<(), String> {
        let source = &self.source;
        let bytes = source.read(&job.uri).map_err(|error| {
            if let SourceError::Unreachable(reason) = &error {
                self.halt.lock().get_or_insert_with(|| PoolError::Source(reason.clone()));
            }
            error.to_string()
        })?;
        let image = decode(&bytes, &self.limits).map_err(|error| error.to_string())?;
        let drawn = annotate(&image.image, &job.prediction, &self.view, &[], &job.marks);
        let written = match job.target.parent() {
            Some(parent) => std::fs::create_dir_all(parent).map_err(ImageFileError::from),
            None => Ok(()),
        };
        let written = written.and_then(|()| write_image(&drawn, &job.target));
        written.map_err(|error| {
            let text = error.to_string();
            if let ImageFileError::Write(error) = error
                && is_fatal(&error)
            {
                self.halt.lock().get_or_insert(PoolError::Disk(error));
            }
            text
        })
    }
}

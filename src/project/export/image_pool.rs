//! Draws and writes annotated images on separate threads.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;

use super::annotated::{TruthMarks, annotate};
use super::error::{ExportError, is_fatal};
use crate::domain::{Prediction, Problem, RgbImage, SampleUri, ViewSettings};
use crate::image::decode::{DecodeLimits, EncodeError, decode, encode_jpeg, encode_png};
use crate::image::source::{Source, SourceError};
use crate::project::partial_file;

/// If it is dropped before it is finished, it discards queued images and waits for those being written.
pub(super) struct ImagePool {
    jobs: Option<Sender<Job>>,
    workers: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

pub(super) struct Job {
    pub uri: SampleUri,
    pub target: PathBuf,
    pub prediction: Prediction,
    pub marks: TruthMarks,
}

/// A reason to stop.
pub(super) enum PoolError {
    Disk(io::Error),
    /// No image can be read any more, and why.
    Source(String),
}

impl PoolError {
    /// The error of an export to `path`.
    pub(super) fn into_error(self, path: &Path) -> ExportError {
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
    pub(super) fn start(source: &Arc<dyn Source>, limits: &DecodeLimits, view: &ViewSettings) -> Self {
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
    pub(super) fn add(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // Fails only once every worker has panicked, which `finish` reports.
            let _ = jobs.send(job);
        }
    }

    /// Returned only once.
    pub(super) fn take_error(&self) -> Option<PoolError> {
        self.shared.halt.lock().take()
    }

    /// Waits for the last image. Returns those that could not be written, and the reason to stop.
    pub(super) fn finish(mut self) -> (Vec<Problem>, Option<PoolError>) {
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

/// Why an image could not be written. The message is only the cause; the caller knows the file.
#[derive(Debug, thiserror::Error)]
pub enum ImageFileError {
    #[error("{0}")]
    Write(#[from] io::Error),
    #[error("{0}")]
    Encode(#[from] EncodeError),
}

/// Writes a high-quality JPEG if the file name ends in `.jpg` or `.jpeg`, otherwise a lossless PNG. Replaces an
/// existing file.
pub fn write_image(image: &RgbImage, path: &Path) -> Result<(), ImageFileError> {
    const JPEG_QUALITY: u8 = 92;
    let is_jpeg = path
        .extension()
        .is_some_and(|extension| ["jpg", "jpeg"].iter().any(|jpeg| extension.eq_ignore_ascii_case(jpeg)));
    let content = if is_jpeg { encode_jpeg(image, JPEG_QUALITY)? } else { encode_png(image)? };
    Ok(replace(path, &content)?)
}

/// Writes next to the target and renames, so that no reader ever sees half a file.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = partial_file(folder, ".spotcheck-".as_ref())?;
    file.write_all(content)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::image::decode::{DecodeLimits, Format, decode};

    fn image() -> RgbImage {
        RgbImage::new(2, 1, vec![1, 2, 3, 4, 5, 6]).unwrap()
    }

    #[test]
    fn existing_image_file_is_replaced_cleanly() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.png");
        fs::write(&path, "old").unwrap();
        write_image(&image(), &path).unwrap();
        let written = fs::read(&path).unwrap();
        let decoded = decode(&written, &DecodeLimits::default()).unwrap();
        assert_eq!(decoded.image, image());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn extension_selects_the_format() {
        let folder = tempfile::tempdir().unwrap();
        for (name, format) in [("a.JPG", Format::Jpeg), ("b.jpeg", Format::Jpeg), ("c", Format::Png)] {
            let path = folder.path().join(name);
            write_image(&image(), &path).unwrap();
            assert_eq!(Format::detect(&fs::read(&path).unwrap()), Ok(format), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn new_file_has_default_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("ours.png"), folder.path().join("plain"));
        write_image(&image(), &ours).unwrap();
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}

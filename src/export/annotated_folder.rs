//! A folder of pictures with what the model saw drawn over them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};

use super::annotated::annotate;
use super::picture_file::write_picture;
use crate::decode::{DecodeLimits, decode};
use crate::domain::{Prediction, Problem, Sample, SampleUri, ViewSettings};
use crate::source::Source;

/// Draws and writes on its own threads; the folder's structure is that of the source. JPEG and PNG keep their names, other
/// formats become `NAME.png`.
pub struct AnnotatedFolder {
    folder: PathBuf,
    used_names: HashSet<String>,
    jobs: Sender<Job>,
    workers: Vec<JoinHandle<Vec<Problem>>>,
}

struct Job {
    uri: SampleUri,
    target: PathBuf,
    prediction: Prediction,
}

#[derive(Debug, thiserror::Error)]
pub enum AnnotatedFolderError {
    #[error("the images themselves lie there and would be overwritten; choose another folder")]
    InsideSource,
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl AnnotatedFolder {
    /// Makes the folder where it does not exist.
    ///
    /// # Errors
    /// It cannot be made, or it is the folder that the images come from.
    pub fn create(
        folder: &Path,
        source: &Arc<dyn Source>,
        limits: &DecodeLimits,
        view: &ViewSettings,
    ) -> Result<Self, AnnotatedFolderError> {
        std::fs::create_dir_all(folder)?;
        if Path::new(&source.name())
            .canonicalize()
            .is_ok_and(|root| folder.canonicalize().is_ok_and(|target| target == root))
        {
            return Err(AnnotatedFolderError::InsideSource);
        }
        let worker_count = std::thread::available_parallelism().map_or(1, usize::from);
        let (jobs, queue) = bounded::<Job>(worker_count * 2);
        let workers = (0..worker_count).map(|_| {
            let (queue, source, limits, view) = (
                queue.clone(),
                Arc::clone(source),
                limits.clone(),
                view.clone(),
            );
            std::thread::spawn(move || {
                let failed = |job: Job| {
                    draw(&job, &*source, &limits, &view).err().map(|reason| {
                        let message = format!("could not write {}: {reason}", job.target.display());
                        Problem::of_sample(job.uri, message)
                    })
                };
                queue.into_iter().filter_map(failed).collect()
            })
        });
        Ok(Self {
            folder: folder.to_owned(),
            used_names: HashSet::new(),
            workers: workers.collect(),
            jobs,
        })
    }

    /// Queues one picture; waits where the queue is full.
    pub fn add(&mut self, sample: &Sample, prediction: Prediction) {
        let name = self.free_name(&sample.name);
        let target = self.folder.join(name);
        // The workers end only after this sender is dropped.
        let _ = self.jobs.send(Job {
            uri: sample.uri.clone(),
            target,
            prediction,
        });
    }

    /// Waits for the last picture. Gives those that could not be written.
    pub fn finish(self) -> Vec<Problem> {
        drop(self.jobs);
        let join = |worker: JoinHandle<Vec<Problem>>| {
            worker.join().unwrap_or_else(|panic| {
                let text = crate::tasks::panic_text(&*panic);
                vec![Problem::general(format!(
                    "an internal error while drawing, please report it: {text}"
                ))]
            })
        };
        self.workers.into_iter().flat_map(join).collect()
    }

    /// The sample's name with an extension that can be written; numbered where two samples share it.
    fn free_name(&mut self, name: &str) -> String {
        let lower = name.to_ascii_lowercase();
        let keeps_format = [".jpg", ".jpeg", ".png"]
            .iter()
            .any(|extension| lower.ends_with(extension));
        let name = if keeps_format {
            name.to_owned()
        } else {
            format!("{name}.png")
        };
        let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, "png"));
        let numbered = (2..).map(|number| format!("{stem}-{number}.{extension}"));
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        let free = candidates
            .find(|candidate| !self.used_names.contains(candidate))
            .unwrap_or_else(|| name.clone());
        self.used_names.insert(free.clone());
        free
    }
}

fn draw(
    job: &Job,
    source: &dyn Source,
    limits: &DecodeLimits,
    view: &ViewSettings,
) -> Result<(), String> {
    let bytes = source.read(&job.uri).map_err(|error| error.to_string())?;
    let picture = decode(&bytes, limits).map_err(|error| error.to_string())?;
    if let Some(parent) = job.target.parent() {
        std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    }
    write_picture(&annotate(&picture, &job.prediction, view), &job.target)
        .map_err(|error| error.to_string())
}

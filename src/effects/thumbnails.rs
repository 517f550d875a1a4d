//! Small pictures for the grid: what is on screen first, and what has scrolled away not at all.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Delivery, Shared, guarded};
use crate::decode;
use crate::domain::SampleId;
use crate::domain::SampleUri;
use crate::state::{Event, SourceId};

/// Longer side in pixels: sharp at the largest size of the grid on an ordinary screen.
const THUMBNAIL_SIDE: u32 = 256;

/// A few workers; more would take the cores from predictions and disks from each other.
const MAX_WORKERS: usize = 4;

pub(super) struct ThumbnailMaker {
    queue: Arc<Queue>,
}

struct Queue {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

struct Wanted {
    source: SourceId,
    /// Most wanted first.
    samples: VecDeque<(SampleId, SampleUri)>,
    /// Being made right now.
    under_way: HashSet<SampleId>,
    is_open: bool,
}

struct Job {
    source: SourceId,
    sample: SampleId,
    uri: SampleUri,
}

impl ThumbnailMaker {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let queue = Arc::new(Queue {
            wanted: Mutex::new(Wanted {
                source: SourceId(0),
                samples: VecDeque::new(),
                under_way: HashSet::new(),
                is_open: true,
            }),
            changed: Condvar::new(),
        });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cores.min(MAX_WORKERS) {
            let queue = Arc::clone(&queue);
            shared.spawn("make thumbnails", move |shared| {
                while let Some(job) = queue.take() {
                    let is_open = make(shared, &job);
                    queue.done(&job);
                    if !is_open {
                        break;
                    }
                }
            });
        }
        Self { queue }
    }

    /// Replaces what was wanted before, except what is being made.
    pub(super) fn want(&self, source: SourceId, samples: Vec<(SampleId, SampleUri)>) {
        let mut wanted = self.queue.lock();
        if wanted.source != source {
            wanted.source = source;
            wanted.under_way.clear();
        }
        wanted.samples = samples.into();
        self.queue.changed.notify_all();
    }
}

impl Drop for ThumbnailMaker {
    fn drop(&mut self) {
        self.queue.lock().is_open = false;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Job> {
        let mut wanted = self.lock();
        while wanted.is_open {
            while let Some((sample, uri)) = wanted.samples.pop_front() {
                if wanted.under_way.insert(sample) {
                    let source = wanted.source;
                    return Some(Job {
                        source,
                        sample,
                        uri,
                    });
                }
            }
            wanted = self
                .changed
                .wait(wanted)
                .unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn done(&self, job: &Job) {
        let mut wanted = self.lock();
        if wanted.source == job.source {
            wanted.under_way.remove(&job.sample);
        }
    }
}

/// False where the window is gone.
fn make(shared: &Shared, job: &Job) -> bool {
    let Some(source) = shared.source(job.source) else {
        return true;
    };
    let picture = guarded(|| {
        let bytes = source.read(&job.uri).map_err(|error| error.to_string())?;
        decode::thumbnail(&bytes, THUMBNAIL_SIDE, &shared.limits())
            .map_err(|error| error.to_string())
    });
    match picture {
        Ok(picture) => shared.deliver(Delivery::Thumbnail {
            source: job.source,
            sample: job.sample,
            picture,
        }),
        Err(reason) => shared.report(Event::ThumbnailFailed {
            source: job.source,
            sample: job.sample,
            reason,
        }),
    }
}

//! Small pictures for the grid: what is on screen first, and what has scrolled away not at all.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender};

use super::{Delivery, Shared, guarded};
use crate::decode::{self, CacheError, ThumbnailKey};
use crate::domain::{Picture, Problem, SampleId};
use crate::state::{Event, SourceId, ThumbnailWish};

/// A few workers; more would take the cores from predictions and disks from each other.
const MAX_WORKERS: usize = 4;

/// Thumbnails on their way to the disk. Where it is slower than the workers, some are not kept: they can be made again.
const MAX_UNKEPT: usize = 256;

pub(super) struct ThumbnailMaker {
    queue: Arc<Queue>,
}

struct Queue {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

struct Wanted {
    source: SourceId,
    side: u32,
    /// Most wanted first.
    wishes: VecDeque<ThumbnailWish>,
    /// Being made right now.
    under_way: HashSet<JobKey>,
    is_open: bool,
}

/// Sample, version of its file, side.
type JobKey = (SampleId, u32, u32);

struct Job {
    source: SourceId,
    side: u32,
    wish: ThumbnailWish,
}

impl Job {
    fn key(&self) -> JobKey {
        (self.wish.sample, self.wish.version, self.side)
    }
}

/// Something that is to lie on the disk for the next time.
struct Unkept {
    key: ThumbnailKey,
    picture: Picture,
}

impl ThumbnailMaker {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let queue = Arc::new(Queue::new());
        let (unkept, kept) = crossbeam_channel::bounded(MAX_UNKEPT);
        shared.spawn("keep thumbnails", move |shared| keep(shared, &kept));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cores.min(MAX_WORKERS) {
            let queue = Arc::clone(&queue);
            let unkept = unkept.clone();
            shared.spawn("make thumbnails", move |shared| {
                while let Some(job) = queue.take() {
                    let is_open = make(shared, &job, &unkept);
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
    pub(super) fn want(&self, source: SourceId, side: u32, wishes: Vec<ThumbnailWish>) {
        self.queue.want(source, side, wishes);
    }
}

impl Drop for ThumbnailMaker {
    fn drop(&mut self) {
        self.queue.lock().is_open = false;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn new() -> Self {
        Self {
            wanted: Mutex::new(Wanted {
                source: SourceId(0),
                side: 0,
                wishes: VecDeque::new(),
                under_way: HashSet::new(),
                is_open: true,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self, source: SourceId, side: u32, wishes: Vec<ThumbnailWish>) {
        let mut wanted = self.lock();
        if wanted.source != source {
            wanted.source = source;
            wanted.under_way.clear();
        }
        wanted.side = side;
        wanted.wishes = wishes.into();
        self.changed.notify_all();
    }

    /// Waits for something to do; `None` once the window is gone.
    fn take(&self) -> Option<Job> {
        let mut wanted = self.lock();
        while wanted.is_open {
            while let Some(wish) = wanted.wishes.pop_front() {
                let job = Job {
                    source: wanted.source,
                    side: wanted.side,
                    wish,
                };
                if wanted.under_way.insert(job.key()) {
                    return Some(job);
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
            wanted.under_way.remove(&job.key());
        }
    }
}

/// False where the window is gone.
fn make(shared: &Shared, job: &Job, unkept: &Sender<Unkept>) -> bool {
    // Closed meanwhile: nobody waits for it any more.
    let Some(source) = shared.source(job.source) else {
        return true;
    };
    let key = ThumbnailKey::new(&job.wish.entry, job.side);
    let picture = guarded(|| {
        if let Some(kept) = key.and_then(|key| shared.thumbnail_cache.get(&key)) {
            return Ok(kept);
        }
        let uri = &job.wish.entry.uri;
        let bytes = source.read(uri).map_err(|error| error.to_string())?;
        let picture = decode::thumbnail(&bytes, job.side, &shared.limits())
            .map_err(|error| error.to_string())?;
        if let Some(key) = key
            && !unkept.is_full()
        {
            let picture = picture.clone();
            // Full after all, or the keeper is gone: it will be made again.
            let _kept = unkept.try_send(Unkept { key, picture });
        }
        Ok(picture)
    });
    match picture {
        Ok(picture) => shared.deliver(Delivery::Thumbnail {
            source: job.source,
            sample: job.wish.sample,
            version: job.wish.version,
            side: job.side,
            picture,
        }),
        Err(reason) => shared.report(Event::ThumbnailFailed {
            source: job.source,
            sample: job.wish.sample,
            version: job.wish.version,
            reason,
        }),
    }
}

/// Writes what the workers have made, until they are gone.
fn keep(shared: &Shared, unkept: &Receiver<Unkept>) {
    for Unkept { key, picture } in unkept {
        if let Err(error) = shared.thumbnail_cache.put(&key, &picture) {
            tell(shared, &error);
        }
    }
}

pub(super) fn measure_cache(shared: &Arc<Shared>) {
    shared.spawn("measure the kept thumbnails", |shared| {
        let bytes = shared.thumbnail_cache.usage().bytes;
        shared.report(Event::ThumbnailCacheMeasured { bytes });
    });
}

pub(super) fn clear_cache(shared: &Arc<Shared>) {
    shared.spawn("delete the kept thumbnails", |shared| {
        match shared.thumbnail_cache.clear() {
            Ok(()) => {
                shared.report(Event::Told("Deleted the kept thumbnails".to_owned()));
            }
            Err(error) => tell(shared, &error),
        }
        let bytes = shared.thumbnail_cache.usage().bytes;
        shared.report(Event::ThumbnailCacheMeasured { bytes });
    });
}

fn tell(shared: &Shared, error: &CacheError) {
    shared.report(Event::WentWrong(Problem::general(error.to_string())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Sample, SampleUri};

    fn wishes(samples: &[u32]) -> Vec<ThumbnailWish> {
        let wish = |&sample: &u32| ThumbnailWish {
            sample: SampleId(sample),
            version: 0,
            entry: Sample {
                uri: SampleUri::new(sample.to_string()),
                name: String::new(),
                size_bytes: 0,
                modified_ns: None,
                etag: None,
            },
        };
        samples.iter().map(wish).collect()
    }

    fn sample_of(job: Option<Job>) -> u32 {
        job.unwrap().wish.sample.0
    }

    #[test]
    fn what_is_on_screen_now_comes_before_what_was_and_that_is_dropped() {
        let queue = Queue::new();
        queue.want(SourceId(1), 128, wishes(&[1, 2, 3]));
        assert_eq!(sample_of(queue.take()), 1);
        queue.want(SourceId(1), 128, wishes(&[8, 9]));
        assert_eq!(sample_of(queue.take()), 8);
        assert_eq!(sample_of(queue.take()), 9);
        assert!(queue.lock().wishes.is_empty());
    }

    #[test]
    fn what_is_being_made_is_not_begun_again_unless_it_is_wanted_larger_or_its_file_changed() {
        let queue = Queue::new();
        queue.want(SourceId(1), 128, wishes(&[1]));
        let job = queue.take().unwrap();
        queue.want(SourceId(1), 128, wishes(&[1, 2]));
        assert_eq!(sample_of(queue.take()), 2);
        queue.want(SourceId(1), 256, wishes(&[1]));
        assert_eq!(sample_of(queue.take()), 1);
        let mut newer = wishes(&[1]);
        newer[0].version = 1;
        queue.want(SourceId(1), 128, newer);
        assert_eq!(sample_of(queue.take()), 1);
        queue.done(&job);
        queue.want(SourceId(1), 128, wishes(&[1]));
        assert_eq!(sample_of(queue.take()), 1);
    }

    #[test]
    fn another_source_takes_over_the_whole_queue() {
        let queue = Queue::new();
        queue.want(SourceId(1), 128, wishes(&[1, 2]));
        let old = queue.take().unwrap();
        queue.want(SourceId(2), 128, wishes(&[1]));
        let new = queue.take().unwrap();
        assert_eq!((new.source, new.wish.sample), (SourceId(2), SampleId(1)));
        queue.done(&old);
        assert!(queue.lock().under_way.contains(&new.key()));
    }
}

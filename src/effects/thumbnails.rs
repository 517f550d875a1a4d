//! Small pictures for the grid: what is on screen first, and what has scrolled away not at all. After all of them, what is
//! likely to be looked at next is read ahead.
//!
//! A worker does the whole way of one picture. Where a source waits for a network, more of them read at once than may decode.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender};

use super::{Delivery, Shared, guarded, kept};
use crate::decode::{self, ThumbnailKey};
use crate::domain::{Picture, Sample, SampleId, SampleUri};
use crate::source::{Source, SourceError, for_task};
use crate::state::{Event, SourceId, ThumbnailWish};
use crate::tasks::{ProgressUnit, TaskControl};

/// Most of them wait for a network most of the time.
const MAX_READERS: usize = 16;
/// A few at once; more would take the cores from predictions.
const MAX_DECODERS: usize = 4;
/// Of the files that are being read, together; a single one may be larger.
const MAX_BYTES: u64 = 256 << 20;
/// Files from this size on are given up half way when they scroll away; smaller ones are as good as there.
const GIVEN_UP_FROM: u64 = 1 << 20;

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
    /// How many files of the source are read at once.
    readers: usize,
    /// Most wanted first.
    wishes: VecDeque<ThumbnailWish>,
    /// To be read once there is no wish left, most likely first.
    ahead: VecDeque<Sample>,
    /// Being made right now.
    under_way: HashMap<JobKey, UnderWay>,
    next_serial: u64,
    is_open: bool,
}

struct UnderWay {
    /// A job that was given up may still run while the next one of the same key does.
    serial: u64,
    size_bytes: u64,
    control: TaskControl,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum JobKey {
    /// Sample, version of its file, side.
    Thumbnail(SampleId, u32, u32),
    Ahead(SampleUri),
}

struct Job {
    source: SourceId,
    what: What,
    serial: u64,
    control: TaskControl,
}

enum What {
    Thumbnail { side: u32, wish: ThumbnailWish },
    Ahead(Sample),
}

impl What {
    fn key(&self) -> JobKey {
        match self {
            Self::Thumbnail { side, wish } => key_of(wish, *side),
            Self::Ahead(sample) => JobKey::Ahead(sample.uri.clone()),
        }
    }

    fn size_bytes(&self) -> u64 {
        match self {
            Self::Thumbnail { wish, .. } => wish.entry.size_bytes,
            Self::Ahead(sample) => sample.size_bytes,
        }
    }
}

fn key_of(wish: &ThumbnailWish, side: u32) -> JobKey {
    JobKey::Thumbnail(wish.sample, wish.version, side)
}

/// Something that is to lie on the disk for the next time.
struct Unkept {
    key: ThumbnailKey,
    picture: Picture,
}

/// What a worker works with.
struct Tools {
    queue: Arc<Queue>,
    decoders: Arc<Turns>,
    unkept: Sender<Unkept>,
}

impl ThumbnailMaker {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let queue = Arc::new(Queue::new());
        let (unkept, kept) = crossbeam_channel::bounded(MAX_UNKEPT);
        shared.spawn("keep thumbnails", move |shared| keep(shared, &kept));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let decoders = Arc::new(Turns::new(cores.min(MAX_DECODERS)));
        for _ in 0..MAX_READERS {
            let tools = Tools {
                queue: Arc::clone(&queue),
                decoders: Arc::clone(&decoders),
                unkept: unkept.clone(),
            };
            shared.spawn("make thumbnails", move |shared| {
                while let Some(job) = tools.queue.take() {
                    let is_open = carry_out(shared, &job, &tools);
                    tools.queue.done(&job);
                    if !is_open {
                        break;
                    }
                }
            });
        }
        Self { queue }
    }

    /// Replaces what was wanted before. Of what is being made, large files that are not wanted any more are given up.
    pub(super) fn want(
        &self,
        shared: &Shared,
        source: SourceId,
        side: u32,
        wishes: Vec<ThumbnailWish>,
    ) {
        let useful = shared.source(source).map(|source| source.useful_reads());
        let readers = useful.unwrap_or(1).clamp(1, MAX_READERS);
        self.queue.want(source, readers, side, wishes);
    }

    /// Replaces what was to be read ahead before.
    pub(super) fn read_ahead(&self, source: SourceId, samples: Vec<Sample>) {
        self.queue.read_ahead(source, samples);
    }

    /// Another picture is looked at, `shown`: nothing else is to be in its way.
    pub(super) fn stop_reading_ahead(&self, shown: &SampleUri) {
        self.queue.stop_reading_ahead(shown);
    }
}

impl Drop for ThumbnailMaker {
    fn drop(&mut self) {
        let mut wanted = self.queue.lock();
        wanted.is_open = false;
        wanted.give_up(|_, _| true);
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn new() -> Self {
        Self {
            wanted: Mutex::new(Wanted {
                source: SourceId(0),
                side: 0,
                readers: 1,
                wishes: VecDeque::new(),
                ahead: VecDeque::new(),
                under_way: HashMap::new(),
                next_serial: 0,
                is_open: true,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self, source: SourceId, readers: usize, side: u32, wishes: Vec<ThumbnailWish>) {
        let mut wanted = self.lock();
        wanted.turn_to(source);
        (wanted.readers, wanted.side) = (readers, side);
        let still: HashSet<JobKey> = wishes.iter().map(|wish| key_of(wish, side)).collect();
        wanted.give_up(|key, job| {
            let is_thumbnail = matches!(key, JobKey::Thumbnail(..));
            is_thumbnail && job.size_bytes >= GIVEN_UP_FROM && !still.contains(key)
        });
        wanted.wishes = wishes.into();
        self.changed.notify_all();
    }

    fn read_ahead(&self, source: SourceId, samples: Vec<Sample>) {
        let mut wanted = self.lock();
        wanted.turn_to(source);
        let still: HashSet<&SampleUri> = samples.iter().map(|sample| &sample.uri).collect();
        wanted.give_up(|key, _| matches!(key, JobKey::Ahead(uri) if !still.contains(uri)));
        wanted.ahead = samples.into();
        self.changed.notify_all();
    }

    /// What is on its way for `shown` goes on: whoever shows it waits for the same.
    fn stop_reading_ahead(&self, shown: &SampleUri) {
        let mut wanted = self.lock();
        wanted.ahead.clear();
        wanted.give_up(|key, _| matches!(key, JobKey::Ahead(uri) if uri != shown));
    }

    /// Waits for something to do; `None` once the window is gone.
    fn take(&self) -> Option<Job> {
        let mut wanted = self.lock();
        while wanted.is_open {
            if let Some(job) = wanted.next_job() {
                return Some(job);
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
        let key = job.what.key();
        let is_this = |under_way: &UnderWay| under_way.serial == job.serial;
        if wanted.under_way.get(&key).is_some_and(is_this) {
            wanted.under_way.remove(&key);
        }
        // Somebody may have waited for a turn.
        self.changed.notify_one();
    }
}

impl Wanted {
    /// Nothing of another source is of any use any more.
    fn turn_to(&mut self, source: SourceId) {
        if self.source != source {
            self.source = source;
            self.wishes.clear();
            self.ahead.clear();
            self.give_up(|_, _| true);
        }
    }

    /// Cancels what is under way and no longer wanted. It may be begun anew at once.
    fn give_up(&mut self, is_unwanted: impl Fn(&JobKey, &UnderWay) -> bool) {
        self.under_way.retain(|key, job| {
            let goes_on = !is_unwanted(key, job);
            if !goes_on {
                job.control.cancel();
            }
            goes_on
        });
    }

    fn next_job(&mut self) -> Option<Job> {
        if self.under_way.len() >= self.readers {
            return None;
        }
        let (side, room) = (self.side, self.room());
        while let Some(wish) = self
            .wishes
            .pop_front_if(|wish| wish.entry.size_bytes <= room)
        {
            if let Some(job) = self.begin(What::Thumbnail { side, wish }) {
                return Some(job);
            }
        }
        if !self.wishes.is_empty() {
            // There is no room for the next one; what matters less does not overtake it.
            return None;
        }
        while let Some(sample) = self.ahead.pop_front_if(|sample| sample.size_bytes <= room) {
            if let Some(job) = self.begin(What::Ahead(sample)) {
                return Some(job);
            }
        }
        None
    }

    /// How large the next file may be.
    fn room(&self) -> u64 {
        if self.under_way.is_empty() {
            return u64::MAX;
        }
        let taken: u64 = self.under_way.values().map(|job| job.size_bytes).sum();
        MAX_BYTES.saturating_sub(taken)
    }

    /// `None` where it is under way already.
    fn begin(&mut self, what: What) -> Option<Job> {
        let key = what.key();
        if self.under_way.contains_key(&key) {
            return None;
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let control = TaskControl::new(ProgressUnit::Bytes);
        let under_way = UnderWay {
            serial,
            size_bytes: what.size_bytes(),
            control: control.clone(),
        };
        self.under_way.insert(key, under_way);
        Some(Job {
            source: self.source,
            what,
            serial,
            control,
        })
    }
}

/// So many at a time.
struct Turns {
    free: Mutex<usize>,
    changed: Condvar,
}

struct Turn<'t>(&'t Turns);

impl Turns {
    fn new(free: usize) -> Self {
        Self {
            free: Mutex::new(free),
            changed: Condvar::new(),
        }
    }

    fn wait(&self) -> Turn<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(free, |free| *free == 0);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.changed.notify_one();
    }
}

/// False where the window is gone.
fn carry_out(shared: &Shared, job: &Job, tools: &Tools) -> bool {
    // Closed meanwhile: nobody waits for it any more.
    let Some(source) = shared.source(job.source) else {
        return true;
    };
    let source = for_task(&source, &job.control);
    match &job.what {
        What::Thumbnail { side, wish } => {
            let key = ThumbnailKey::on_server(source.server(), &wish.entry, *side);
            let picture = guarded(|| {
                if let Some(kept) = key.and_then(|key| shared.thumbnail_cache.get(&key)) {
                    return Ok(Some(kept));
                }
                let made = make(shared, &*source, job, wish, *side, tools)?;
                if let (Some(key), Some(picture)) = (key, &made)
                    && !tools.unkept.is_full()
                {
                    let picture = picture.clone();
                    // Full after all, or the keeper is gone: it will be made again.
                    let _kept = tools.unkept.try_send(Unkept { key, picture });
                }
                Ok(made)
            });
            tell(shared, job.source, wish, *side, picture)
        }
        What::Ahead(sample) => {
            if source.keeps(sample.size_bytes)
                && let Err(error) = source.read(&sample.uri)
            {
                // Whoever looks at it is told.
                log::debug!("{} could not be read ahead: {error}", sample.uri);
            }
            true
        }
    }
}

/// `None` where it is not wanted any more.
fn make(
    shared: &Shared,
    source: &dyn Source,
    job: &Job,
    wish: &ThumbnailWish,
    side: u32,
    tools: &Tools,
) -> Result<Option<Picture>, String> {
    let bytes = match source.read(&wish.entry.uri) {
        Err(SourceError::Cancelled) => return Ok(None),
        read => read.map_err(|error| error.to_string())?,
    };
    let _turn = tools.decoders.wait();
    if job.control.is_cancelled() {
        return Ok(None);
    }
    let picture = decode::thumbnail(&bytes, side, &shared.limits());
    picture.map(Some).map_err(|error| error.to_string())
}

/// False where the window is gone.
fn tell(
    shared: &Shared,
    source: SourceId,
    wish: &ThumbnailWish,
    side: u32,
    picture: Result<Option<Picture>, String>,
) -> bool {
    let (sample, version) = (wish.sample, wish.version);
    match picture {
        Ok(Some(picture)) => shared.deliver(Delivery::Thumbnail {
            source,
            sample,
            version,
            side,
            picture,
        }),
        Ok(None) => true,
        Err(reason) => shared.report(Event::ThumbnailFailed {
            source,
            sample,
            version,
            reason,
        }),
    }
}

/// Writes what the workers have made, until they are gone.
fn keep(shared: &Shared, unkept: &Receiver<Unkept>) {
    for Unkept { key, picture } in unkept {
        if let Err(error) = shared.thumbnail_cache.put(&key, &picture) {
            kept::tell(shared, &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: u32 = 128;

    fn sample(name: &str, size_bytes: u64) -> Sample {
        Sample {
            uri: SampleUri::new(name),
            name: String::new(),
            size_bytes,
            modified_ns: None,
            etag: None,
        }
    }

    fn wishes(samples: &[u32], size_bytes: u64) -> Vec<ThumbnailWish> {
        let wish = |&id: &u32| ThumbnailWish {
            sample: SampleId(id),
            version: 0,
            entry: sample(&id.to_string(), size_bytes),
        };
        samples.iter().map(wish).collect()
    }

    fn want(queue: &Queue, source: u64, side: u32, samples: &[u32]) {
        queue.want(SourceId(source), 4, side, wishes(samples, 1000));
    }

    /// `None` where there is nothing to do just now.
    fn take(queue: &Queue) -> Option<Job> {
        queue.lock().next_job()
    }

    /// The number of the sample.
    fn taken(queue: &Queue) -> Option<u32> {
        match take(queue)?.what {
            What::Thumbnail { wish, .. } => Some(wish.sample.0),
            What::Ahead(sample) => sample.uri.as_str().parse().ok(),
        }
    }

    #[test]
    fn what_is_on_screen_now_comes_before_what_was_and_that_is_dropped() {
        let queue = Queue::new();
        want(&queue, 1, SIDE, &[1, 2, 3]);
        assert_eq!(taken(&queue), Some(1));
        want(&queue, 1, SIDE, &[8, 9]);
        assert_eq!(taken(&queue), Some(8));
        assert_eq!(taken(&queue), Some(9));
        assert_eq!(taken(&queue), None);
    }

    #[test]
    fn what_is_being_made_is_not_begun_again_unless_it_is_wanted_larger_or_its_file_changed() {
        let queue = Queue::new();
        want(&queue, 1, SIDE, &[1]);
        let job = take(&queue).unwrap();
        want(&queue, 1, SIDE, &[1, 2]);
        assert_eq!(taken(&queue), Some(2));
        want(&queue, 1, 256, &[1]);
        assert_eq!(taken(&queue), Some(1));
        let mut newer = wishes(&[1], 1000);
        newer[0].version = 1;
        queue.want(SourceId(1), 4, SIDE, newer);
        assert_eq!(taken(&queue), Some(1));
        queue.done(&job);
        want(&queue, 1, SIDE, &[1]);
        assert_eq!(taken(&queue), Some(1));
    }

    #[test]
    fn another_source_takes_over_the_whole_queue() {
        let queue = Queue::new();
        want(&queue, 1, SIDE, &[1, 2]);
        let old = take(&queue).unwrap();
        want(&queue, 2, SIDE, &[1]);
        assert!(old.control.is_cancelled());
        let new = take(&queue).unwrap();
        assert_eq!(new.source, SourceId(2));
        queue.done(&old);
        assert!(queue.lock().under_way.contains_key(&new.what.key()));
    }

    #[test]
    fn no_more_are_read_at_once_than_is_useful() {
        let queue = Queue::new();
        queue.want(SourceId(1), 2, SIDE, wishes(&[1, 2, 3], 1000));
        let first = take(&queue).unwrap();
        assert_eq!(taken(&queue), Some(2));
        assert_eq!(taken(&queue), None);
        queue.done(&first);
        assert_eq!(taken(&queue), Some(3));
    }

    #[test]
    fn large_files_wait_until_there_is_room_for_them_and_are_not_overtaken() {
        let queue = Queue::new();
        let mut large = wishes(&[1, 2], MAX_BYTES);
        large.extend(wishes(&[3], 1000));
        queue.want(SourceId(1), 4, SIDE, large);
        let first = take(&queue).unwrap();
        assert_eq!(taken(&queue), None);
        queue.done(&first);
        assert_eq!(taken(&queue), Some(2));
    }

    #[test]
    fn a_large_file_that_scrolls_away_is_given_up_and_begun_anew_when_it_comes_back() {
        let queue = Queue::new();
        let large = || wishes(&[1], GIVEN_UP_FROM);
        queue.want(SourceId(1), 4, SIDE, large());
        let given_up = take(&queue).unwrap();
        want(&queue, 1, SIDE, &[2]);
        assert!(given_up.control.is_cancelled());
        let small = take(&queue).unwrap();
        queue.want(SourceId(1), 4, SIDE, large());
        assert!(!small.control.is_cancelled());
        let again = take(&queue).unwrap();
        queue.done(&given_up);
        assert!(queue.lock().under_way.contains_key(&again.what.key()));
        assert!(!again.control.is_cancelled());
    }

    #[test]
    fn neighbours_are_read_after_all_thumbnails_until_another_picture_is_looked_at() {
        let queue = Queue::new();
        want(&queue, 1, SIDE, &[1]);
        let ahead = ["7", "8", "9"].map(|name| sample(name, 1000));
        queue.read_ahead(SourceId(1), ahead.to_vec());
        assert_eq!(taken(&queue), Some(1));
        let (next, previous) = (take(&queue).unwrap(), take(&queue).unwrap());
        queue.stop_reading_ahead(&SampleUri::new("7"));
        assert!(!next.control.is_cancelled(), "it is what is looked at");
        assert!(previous.control.is_cancelled());
        assert_eq!(taken(&queue), None);
    }
}

//! Decides which thumbnail to make next. Runs in its own thread, so that the window only sends messages: a lock shared
//! with workers could make it wait for a suspended thread.

use std::collections::{HashMap, HashSet, VecDeque};

use crossbeam_channel::{Receiver, Sender};

use super::MAX_READERS;
use crate::domain::{Sample, SampleId, SampleUri};
use crate::tasks::{ProgressUnit, TaskControl};
use crate::window::state::{SourceId, ThumbnailRequest};

/// The limit for the total size of files being read; a single one may be larger.
const MAX_BYTES: u64 = 256 << 20;
/// The smallest file to cancel when it scrolls away; smaller ones are nearly done.
const CANCELLED_FROM_BYTES: u64 = 1 << 20;

/// Messages from the window and the workers.
pub(crate) enum Message {
    /// Replaces the previous requests.
    Request {
        source: SourceId,
        /// The number of files of the source to read at a time.
        readers: usize,
        side: u32,
        requests: Vec<ThumbnailRequest>,
    },
    /// Replaces the images to read ahead.
    ReadAhead {
        source: SourceId,
        samples: Vec<Sample>,
    },
    /// Another image, this one, is shown: nothing else may delay it.
    StopReadingAhead(SampleUri),
    Done(Job),
    /// The window is gone.
    Close,
}

/// Sends jobs to the workers, as many as may run at a time, until the window is gone.
pub(crate) fn dispatch(messages: &Receiver<Message>, jobs: &Sender<Job>) {
    let mut queue = ThumbnailQueue::new();
    while let Ok(message) = messages.recv() {
        // Of several requests that arrived meanwhile, only the last one counts.
        for message in std::iter::once(message).chain(messages.try_iter()) {
            match message {
                Message::Request { source, readers, side, requests } => queue.request(source, readers, side, requests),
                Message::ReadAhead { source, samples } => queue.read_ahead(source, samples),
                Message::StopReadingAhead(shown) => queue.stop_reading_ahead(&shown),
                Message::Done(job) => queue.done(&job),
                Message::Close => {
                    queue.cancel_where(|_, _| true);
                    return;
                }
            }
        }
        while let Some(job) = queue.next_job() {
            if jobs.send(job).is_err() {
                return;
            }
        }
    }
}

/// The requested thumbnails, and those in progress.
pub(crate) struct ThumbnailQueue {
    source: SourceId,
    side: u32,
    /// The number of files of the source to read at a time.
    readers: usize,
    /// Most urgent first.
    requests: VecDeque<ThumbnailRequest>,
    /// Read after all requests, most likely first.
    ahead: VecDeque<Sample>,
    under_way: HashMap<JobKey, RunningJob>,
    next_serial: u64,
    /// Workers with a job, including canceled ones.
    busy: usize,
}

struct RunningJob {
    /// A canceled job may still be running when the next one with its key starts.
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

pub(crate) struct Job {
    pub(crate) source: SourceId,
    pub(crate) what: JobContent,
    serial: u64,
    pub(crate) control: TaskControl,
}

pub(crate) enum JobContent {
    Thumbnail { side: u32, request: ThumbnailRequest },
    Ahead(Sample),
}

impl JobContent {
    fn key(&self) -> JobKey {
        match self {
            Self::Thumbnail { side, request } => key_of(request, *side),
            Self::Ahead(sample) => JobKey::Ahead(sample.uri.clone()),
        }
    }

    fn size_bytes(&self) -> u64 {
        match self {
            Self::Thumbnail { request, .. } => request.entry.size_bytes,
            Self::Ahead(sample) => sample.size_bytes,
        }
    }
}

fn key_of(request: &ThumbnailRequest, side: u32) -> JobKey {
    JobKey::Thumbnail(request.sample, request.version, side)
}

impl ThumbnailQueue {
    pub(crate) fn new() -> Self {
        Self {
            source: SourceId(0),
            side: 0,
            readers: 1,
            requests: VecDeque::new(),
            ahead: VecDeque::new(),
            under_way: HashMap::new(),
            next_serial: 0,
            busy: 0,
        }
    }

    /// Replaces the previous requests. Large files in progress that are no longer requested are canceled.
    fn request(&mut self, source: SourceId, readers: usize, side: u32, requests: Vec<ThumbnailRequest>) {
        self.switch_to(source);
        (self.readers, self.side) = (readers, side);
        let still: HashSet<JobKey> = requests.iter().map(|request| key_of(request, side)).collect();
        self.cancel_where(|key, job| {
            let is_thumbnail = matches!(key, JobKey::Thumbnail(..));
            is_thumbnail && job.size_bytes >= CANCELLED_FROM_BYTES && !still.contains(key)
        });
        self.requests = requests.into();
    }

    fn read_ahead(&mut self, source: SourceId, samples: Vec<Sample>) {
        self.switch_to(source);
        let still: HashSet<&SampleUri> = samples.iter().map(|sample| &sample.uri).collect();
        self.cancel_where(|key, _| matches!(key, JobKey::Ahead(uri) if !still.contains(uri)));
        self.ahead = samples.into();
    }

    /// Stops reading ahead. Reading `shown` continues, because its thumbnail or the canvas waits for it.
    fn stop_reading_ahead(&mut self, shown: &SampleUri) {
        self.ahead.clear();
        self.cancel_where(|key, _| matches!(key, JobKey::Ahead(uri) if uri != shown));
    }

    fn done(&mut self, job: &Job) {
        self.busy -= 1;
        let key = job.what.key();
        let is_this = |under_way: &RunningJob| under_way.serial == job.serial;
        if self.under_way.get(&key).is_some_and(is_this) {
            self.under_way.remove(&key);
        }
    }

    /// Drops all work if the source changes.
    fn switch_to(&mut self, source: SourceId) {
        if self.source != source {
            self.source = source;
            self.requests.clear();
            self.ahead.clear();
            self.cancel_where(|_, _| true);
        }
    }

    /// Cancels running jobs that are no longer requested. They may be started again immediately.
    fn cancel_where(&mut self, is_stale: impl Fn(&JobKey, &RunningJob) -> bool) {
        self.under_way.retain(|key, job| {
            let goes_on = !is_stale(key, job);
            if !goes_on {
                job.control.cancel();
            }
            goes_on
        });
    }

    fn next_job(&mut self) -> Option<Job> {
        if self.under_way.len() >= self.readers || self.busy >= MAX_READERS {
            return None;
        }
        let (side, room) = (self.side, self.room());
        while let Some(request) = self.requests.pop_front_if(|request| request.entry.size_bytes <= room) {
            if let Some(job) = self.begin(JobContent::Thumbnail { side, request }) {
                return Some(job);
            }
        }
        if !self.requests.is_empty() {
            // There is no room for the next one, and less urgent ones must not overtake it.
            return None;
        }
        while let Some(sample) = self.ahead.pop_front_if(|sample| sample.size_bytes <= room) {
            if let Some(job) = self.begin(JobContent::Ahead(sample)) {
                return Some(job);
            }
        }
        None
    }

    /// The size limit of the next file.
    fn room(&self) -> u64 {
        if self.under_way.is_empty() {
            return u64::MAX;
        }
        let taken: u64 = self.under_way.values().map(|job| job.size_bytes).sum();
        MAX_BYTES.saturating_sub(taken)
    }

    /// Starts a job; `None` if it is running already.
    fn begin(&mut self, what: JobContent) -> Option<Job> {
        let key = what.key();
        if self.under_way.contains_key(&key) {
            return None;
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let control = TaskControl::new(ProgressUnit::Bytes);
        let under_way = RunningJob { serial, size_bytes: what.size_bytes(), control: control.clone() };
        self.under_way.insert(key, under_way);
        self.busy += 1;
        Some(Job { source: self.source, what, serial, control })
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
            capture: None,
        }
    }

    fn requests(samples: &[u32], size_bytes: u64) -> Vec<ThumbnailRequest> {
        let request = |&id: &u32| ThumbnailRequest {
            sample: SampleId(id),
            version: 0,
            entry: sample(&id.to_string(), size_bytes),
        };
        samples.iter().map(request).collect()
    }

    fn request(queue: &mut ThumbnailQueue, source: u64, side: u32, samples: &[u32]) {
        queue.request(SourceId(source), 4, side, requests(samples, 1000));
    }

    /// Takes a job; `None` if there is nothing to do now.
    fn take(queue: &mut ThumbnailQueue) -> Option<Job> {
        queue.next_job()
    }

    /// The number of the next sample, if any.
    fn taken(queue: &mut ThumbnailQueue) -> Option<u32> {
        match take(queue)?.what {
            JobContent::Thumbnail { request, .. } => Some(request.sample.0),
            JobContent::Ahead(sample) => sample.uri.as_str().parse().ok(),
        }
    }

    #[test]
    fn visible_thumbnails_come_first() {
        let mut queue = ThumbnailQueue::new();
        request(&mut queue, 1, SIDE, &[1, 2, 3]);
        assert_eq!(taken(&mut queue), Some(1));
        request(&mut queue, 1, SIDE, &[8, 9]);
        assert_eq!(taken(&mut queue), Some(8));
        assert_eq!(taken(&mut queue), Some(9));
        assert_eq!(taken(&mut queue), None);
    }

    #[test]
    fn thumbnail_restarts_only_if_larger_or_changed() {
        let mut queue = ThumbnailQueue::new();
        request(&mut queue, 1, SIDE, &[1]);
        let job = take(&mut queue).unwrap();
        request(&mut queue, 1, SIDE, &[1, 2]);
        assert_eq!(taken(&mut queue), Some(2));
        request(&mut queue, 1, 256, &[1]);
        assert_eq!(taken(&mut queue), Some(1));
        let mut newer = requests(&[1], 1000);
        newer[0].version = 1;
        queue.request(SourceId(1), 4, SIDE, newer);
        assert_eq!(taken(&mut queue), Some(1));
        queue.done(&job);
        request(&mut queue, 1, SIDE, &[1]);
        assert_eq!(taken(&mut queue), Some(1));
    }

    #[test]
    fn new_source_replaces_the_queue() {
        let mut queue = ThumbnailQueue::new();
        request(&mut queue, 1, SIDE, &[1, 2]);
        let old = take(&mut queue).unwrap();
        request(&mut queue, 2, SIDE, &[1]);
        assert!(old.control.is_cancelled());
        let new = take(&mut queue).unwrap();
        assert_eq!(new.source, SourceId(2));
        queue.done(&old);
        assert!(queue.under_way.contains_key(&new.what.key()));
    }

    #[test]
    fn parallel_reads_are_limited() {
        let mut queue = ThumbnailQueue::new();
        queue.request(SourceId(1), 2, SIDE, requests(&[1, 2, 3], 1000));
        let first = take(&mut queue).unwrap();
        assert_eq!(taken(&mut queue), Some(2));
        assert_eq!(taken(&mut queue), None);
        queue.done(&first);
        assert_eq!(taken(&mut queue), Some(3));
    }

    #[test]
    fn large_files_wait_for_room_in_order() {
        let mut queue = ThumbnailQueue::new();
        let mut large = requests(&[1, 2], MAX_BYTES);
        large.extend(requests(&[3], 1000));
        queue.request(SourceId(1), 4, SIDE, large);
        let first = take(&mut queue).unwrap();
        assert_eq!(taken(&mut queue), None);
        queue.done(&first);
        assert_eq!(taken(&mut queue), Some(2));
    }

    #[test]
    fn hidden_large_file_is_canceled_and_restarted() {
        let mut queue = ThumbnailQueue::new();
        let large = || requests(&[1], CANCELLED_FROM_BYTES);
        queue.request(SourceId(1), 4, SIDE, large());
        let cancelled = take(&mut queue).unwrap();
        request(&mut queue, 1, SIDE, &[2]);
        assert!(cancelled.control.is_cancelled());
        let small = take(&mut queue).unwrap();
        queue.request(SourceId(1), 4, SIDE, large());
        assert!(!small.control.is_cancelled());
        let again = take(&mut queue).unwrap();
        queue.done(&cancelled);
        assert!(queue.under_way.contains_key(&again.what.key()));
        assert!(!again.control.is_cancelled());
    }

    #[test]
    fn neighbors_are_read_after_all_thumbnails() {
        let mut queue = ThumbnailQueue::new();
        request(&mut queue, 1, SIDE, &[1]);
        let ahead = ["7", "8", "9"].map(|name| sample(name, 1000));
        queue.read_ahead(SourceId(1), ahead.to_vec());
        assert_eq!(taken(&mut queue), Some(1));
        let (next, previous) = (take(&mut queue).unwrap(), take(&mut queue).unwrap());
        queue.stop_reading_ahead(&SampleUri::new("7"));
        assert!(!next.control.is_cancelled(), "it is what is looked at");
        assert!(previous.control.is_cancelled());
        assert_eq!(taken(&mut queue), None);
    }
}

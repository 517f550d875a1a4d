//! Uploads local files to a prefix in S3.
//!
//! There are two steps: a plan of what to send, what exists and what conflicts, then the transfer. Existing objects
//! stay unless the user agrees to a replacement; then exactly the object in the plan is replaced. Nothing is ever
//! deleted. Knows nothing about the content of images.

mod content;
mod large;
pub mod plan;
mod planning;
mod sending;

use std::path::Path;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::aws::upload::plan::{FileAmount, PlannedState, UploadPlan, UploadReport, UploadStop};
use crate::aws::{Aws, AwsErrorKind};
use crate::domain::{Problem, Sample};
use crate::tasks::TaskControl;
use content::LARGE;
use large::{Journal, LargeUpload, Sender};
use sending::{Job, Replaces, SendError, Sent};

pub use planning::{LocalFiles, files_below, files_of, plan};

/// The default number of parallel requests. Each holds a part or a smaller file in memory, at most 16 MiB.
pub const DEFAULT_CONCURRENCY: usize = 16;
pub const MAX_CONCURRENCY: usize = 64;

/// After this many consecutive rejections, further files would also be rejected.
const MAX_FAILURES_IN_A_ROW: usize = 20;

#[derive(Debug, Clone, Copy)]
pub struct UploadOptions<'a> {
    /// Parallel requests, `1..=MAX_CONCURRENCY`.
    pub concurrency: usize,
    pub existing: Existing,
    /// The folder for records of unfinished uploads, so that a later one can resume them.
    pub unfinished: &'a Path,
}

/// What happens to existing objects with different content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Keep,
    /// Replaced by the file, if they are unchanged since the plan.
    Replace,
}

/// Sends the files of a plan. Each object appears whole or not at all; an interrupted upload continues with a new plan,
/// which finds the finished files.
pub fn upload(aws: &Aws, plan: &UploadPlan, options: UploadOptions<'_>, control: &TaskControl) -> UploadReport {
    let s3 = aws.s3(&plan.target.access);
    let mut report =
        UploadReport { same: plan.same_files(), failures: plan.problems.clone(), ..UploadReport::default() };
    let mut work = Vec::new();
    for planned in &plan.files {
        match &planned.state {
            PlannedState::New => work.push((&planned.file, None)),
            PlannedState::Same => {}
            PlannedState::Conflict { etag, .. } if options.existing == Existing::Replace => {
                let etag = etag.clone();
                work.push((&planned.file, Some(Replaces { etag })));
            }
            PlannedState::Conflict { why, .. } => {
                let problem = Problem::new(planned.file.uri.clone(), why);
                report.conflicts.push(problem);
            }
        }
    }
    control.set_step("");
    control.set_total(Some(work.iter().map(|(file, _)| file.size_bytes).sum()));
    control.set_done_before(0);
    // If this fails, the upload fails as well, and reports it.
    let server = s3.endpoint(Some(control)).ok().flatten();
    let target = plan.target.clone().on_server(server.as_deref());
    let transfer = Transfer {
        plan,
        sender: Sender { s3: &s3, journal: Journal::new(options.unfinished, &target), control },
        work,
        queue: Mutex::default(),
        changed: Condvar::new(),
        counts: Mutex::new(Counts { report, ended: 0, failures_in_a_row: 0 }),
    };
    let workers = options.concurrency.clamp(1, MAX_CONCURRENCY);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| transfer.work());
        }
    });
    transfer.conclude()
}

struct Transfer<'a> {
    plan: &'a UploadPlan,
    sender: Sender<'a>,
    work: Vec<(&'a Sample, Option<Replaces>)>,
    queue: Mutex<Queue<'a>>,
    /// Signals new work or the end.
    changed: Condvar,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Queue<'a> {
    /// The index of the next file in `work`.
    next: usize,
    /// Large files that may have waiting parts.
    large: Vec<Arc<LargeUpload<'a>>>,
    /// Workers that send a large file and may provide parts.
    leaders: usize,
    is_over: bool,
}

struct Counts {
    report: UploadReport,
    /// Files that were tried, whatever the result.
    ended: usize,
    failures_in_a_row: usize,
}

enum Task<'a> {
    File(usize),
    Part(Arc<LargeUpload<'a>>, u32),
}

impl<'a> Transfer<'a> {
    fn work(&self) {
        while let Some(task) = self.next_task() {
            match task {
                Task::Part(large, number) => large.send_part(number, &self.sender),
                Task::File(index) => {
                    let (file, replaces) = &self.work[index];
                    let sent = self.send(file, replaces.clone());
                    self.record(file, sent);
                }
            }
        }
    }

    /// Waits if there is nothing to do yet.
    fn next_task(&self) -> Option<Task<'a>> {
        if self.sender.control.checkpoint().is_err() {
            self.end();
        }
        let mut queue = self.queue.lock();
        loop {
            if queue.is_over {
                return None;
            }
            // Started files are finished first.
            for large in &queue.large {
                if let Some(number) = large.take_part() {
                    return Some(Task::Part(Arc::clone(large), number));
                }
            }
            if queue.next < self.work.len() {
                queue.next += 1;
                let index = queue.next - 1;
                if is_large(self.work[index].0) {
                    queue.leaders += 1;
                }
                return Some(Task::File(index));
            }
            if queue.leaders == 0 {
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }

    fn send(&self, file: &'a Sample, replaces: Option<Replaces>) -> Result<Sent, SendError> {
        let job = Job {
            path: Path::new(file.uri.as_str()),
            size_bytes: file.size_bytes,
            address: self.plan.address_of(file),
            replaces,
        };
        if is_large(file) {
            let sent = self.send_large(job);
            self.queue.lock().leaders -= 1;
            self.changed.notify_all();
            return sent;
        }
        let sent = job.send_small(self.sender.s3, self.sender.control);
        self.sender.control.add_done(file.size_bytes);
        sent
    }

    fn send_large(&self, job: Job<'a>) -> Result<Sent, SendError> {
        let size_bytes = job.size_bytes;
        let large = LargeUpload::begin(job, &self.sender).inspect_err(|_| self.sender.control.add_done(size_bytes))?;
        let large = Arc::new(large);
        self.queue.lock().large.push(Arc::clone(&large));
        self.changed.notify_all();
        while let Some(number) = large.take_part() {
            large.send_part(number, &self.sender);
        }
        self.queue.lock().large.retain(|other| !Arc::ptr_eq(other, &large));
        large.finish(&self.sender)
    }

    fn record(&self, file: &Sample, sent: Result<Sent, SendError>) {
        let mut counts = self.counts.lock();
        let counts = &mut *counts;
        let report = &mut counts.report;
        counts.ended += 1;
        let problem = |message: &dyn std::fmt::Display| Problem::new(file.uri.clone(), message.to_string());
        let stop = match sent {
            Ok(Sent::Sent) => {
                report.sent.add(file.size_bytes);
                counts.failures_in_a_row = 0;
                None
            }
            Ok(Sent::Same) => {
                report.same.add(file.size_bytes);
                None
            }
            Err(SendError::Conflict(why)) => {
                report.conflicts.push(problem(&why));
                None
            }
            Err(SendError::Content(error)) => {
                report.failures.push(problem(&error));
                None
            }
            Err(SendError::Aws(error)) => {
                let is_first_denied = error.kind == AwsErrorKind::AccessDenied && report.sent.files == 0;
                if error.kind.concerns_everything() || is_first_denied {
                    report.not_tried.add(file.size_bytes);
                    Some(error.message)
                } else {
                    counts.failures_in_a_row += 1;
                    report.failures.push(problem(&error));
                    (counts.failures_in_a_row >= MAX_FAILURES_IN_A_ROW)
                        .then(|| format!("{MAX_FAILURES_IN_A_ROW} files in a row failed. The last error: {error}"))
                }
            }
            Err(SendError::Cancelled) => {
                report.not_tried.add(file.size_bytes);
                None
            }
        };
        if let Some(message) = stop {
            report.stopped.get_or_insert(UploadStop::Failed(message));
            self.end();
        }
        let (ended, all) = (counts.ended, self.work.len());
        self.sender.control.set_detail(format!("{ended} of {all} files"));
    }

    /// Starts no more files.
    fn end(&self) {
        self.queue.lock().is_over = true;
        self.changed.notify_all();
    }

    fn conclude(self) -> UploadReport {
        let queue = self.queue.into_inner();
        let counts = self.counts.into_inner();
        let mut report = counts.report;
        for (file, _) in &self.work[queue.next..] {
            report.not_tried.add(file.size_bytes);
        }
        if self.sender.control.is_cancelled() && report.not_tried != FileAmount::default() {
            report.stopped.get_or_insert(UploadStop::Cancelled);
        }
        report.notes = self.sender.control.notes();
        match self.sender.journal.count() {
            0 => {}
            count => report.notes.push(format!(
                "{count} unfinished upload{s} of large files to this bucket {c} billed until the same files are \
                uploaded again",
                s = if count == 1 { "" } else { "s" },
                c = if count == 1 { "is" } else { "are" },
            )),
        }
        report
    }
}

fn is_large(file: &Sample) -> bool {
    file.size_bytes >= LARGE
}

//! Changes that wait to be saved. Nothing leaves the queue before it is committed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::error::StoreError;
use crate::domain::{Change, Prediction};
use crate::tasks::TaskControl;

/// The shortest time between two commits, so that thousands of predictions do not flush the disk thousands of times.
/// The first change after a pause is committed immediately.
const COMMIT_EVERY: Duration = Duration::from_millis(50);
/// A queue of this size is committed immediately, even shortly after the last commit.
const PLENTY_BYTES: usize = 4 << 20;
/// Workers wait while more than this is queued; the window never does.
const FULL_BYTES: usize = 64 << 20;

/// A change with the caller's number for it.
#[derive(Debug, Clone)]
pub(super) struct Queued {
    pub ticket: u64,
    pub change: Change,
}

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Queued>,
    /// Taken by the writer and not committed yet.
    in_flight: Arc<Vec<Queued>>,
    bytes: usize,
    in_flight_bytes: usize,
    /// The number of changes ever queued, and the number that are done.
    queued: u64,
    settled: u64,
    /// Callers that wait until the queue is saved.
    flushers: usize,
    /// Why the last attempt failed, until one succeeds.
    failure: Option<Failure>,
    /// The number of failed attempts, so that a flush can wait for the next one.
    failures: u64,
    is_closing: bool,
    /// The writer has ended; nothing will be saved any more.
    is_stopped: bool,
}

/// Why an attempt to save failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// What, why, what to do.
    pub reason: String,
    /// Whether another attempt may succeed.
    pub may_pass: bool,
}

/// What the writer should do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterWait {
    TryAgain,
    Closing,
}

impl Queue {
    /// Never waits.
    pub(super) fn push(&self, ticket: u64, change: Change) {
        Self::push_locked(&mut self.state.lock(), ticket, change);
        self.moved.notify_all();
    }

    /// Waits while too much is queued; rejects what will never be saved.
    pub(super) fn push_when_there_is_room(
        self: &Arc<Self>,
        ticket: u64,
        change: Change,
        control: &TaskControl,
    ) -> Result<(), StoreError> {
        let queue = Arc::clone(self);
        let _wake_on_cancel = control.on_cancel(move || {
            // Locking first, because the wake-up could come between the check and the wait.
            drop(queue.state.lock());
            queue.moved.notify_all();
        });
        let mut state = self.state.lock();
        while state.bytes > FULL_BYTES && !state.is_over() {
            drop(state);
            control.checkpoint()?;
            state = self.state.lock();
            if state.bytes > FULL_BYTES && !state.is_over() {
                self.moved.wait_for(&mut state, Duration::from_millis(100));
            }
        }
        if state.is_over() {
            return Err(state.why_unsaved());
        }
        Self::push_locked(&mut state, ticket, change);
        self.moved.notify_all();
        Ok(())
    }

    fn push_locked(state: &mut State, ticket: u64, change: Change) {
        state.bytes += size_of_change(&change);
        state.queued += 1;
        state.waiting.push_back(Queued { ticket, change });
    }

    /// Waits until a commit is due, and returns the whole queue; `None` when the queue is closed and empty.
    pub(super) fn next_batch(&self, last_commit: Option<Instant>) -> Option<Arc<Vec<Queued>>> {
        let mut state = self.state.lock();
        loop {
            if state.waiting.is_empty() {
                if state.is_closing {
                    return None;
                }
                self.moved.wait(&mut state);
                continue;
            }
            let rest = last_commit.map_or(Duration::ZERO, |last| COMMIT_EVERY.saturating_sub(last.elapsed()));
            let in_a_hurry = state.is_closing || state.flushers > 0 || state.bytes >= PLENTY_BYTES;
            if rest.is_zero() || in_a_hurry {
                state.in_flight = Arc::new(state.waiting.drain(..).collect());
                state.in_flight_bytes = state.bytes;
                return Some(Arc::clone(&state.in_flight));
            }
            self.moved.wait_for(&mut state, rest);
        }
    }

    /// Records that the writer has saved its batch.
    pub(super) fn settle(&self) {
        let mut state = self.state.lock();
        state.settled += state.in_flight.len() as u64;
        state.bytes -= state.in_flight_bytes;
        (state.in_flight, state.in_flight_bytes) = (Arc::default(), 0);
        state.failure = None;
        drop(state);
        self.moved.notify_all();
    }

    /// Makes the writer wait before it retries a failed commit, for a shorter time if the user closes the project or
    /// waits for it to be saved; if no attempt can succeed, until [`Queue::try_again`].
    pub(super) fn wait_after_failure(&self, failure: &Failure, delay: Duration) -> AfterWait {
        let mut state = self.state.lock();
        state.failure = Some(failure.clone());
        state.failures += 1;
        self.moved.notify_all();
        if failure.may_pass {
            let flushers = state.flushers;
            let idle = |state: &mut State| !state.is_closing && state.flushers <= flushers;
            self.moved.wait_while_for(&mut state, idle, delay);
        } else {
            let idle = |state: &mut State| !state.is_closing && state.failure.is_some();
            self.moved.wait_while(&mut state, idle);
        }
        if state.is_closing { AfterWait::Closing } else { AfterWait::TryAgain }
    }

    /// Retries changes that could not be saved, because the project is now in another file.
    pub(super) fn try_again(&self) {
        self.state.lock().failure = None;
        self.moved.notify_all();
    }

    /// Waits until everything queued so far is saved, or an attempt to save it failed.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let (target, failures) = (state.queued, state.failures);
        state.flushers += 1;
        self.moved.notify_all();
        let waits = |state: &mut State| state.settled < target && state.failures == failures && !state.is_over();
        self.moved.wait_while(&mut state, waits);
        state.flushers -= 1;
        if state.settled >= target {
            return Ok(());
        }
        Err(state.why_unsaved())
    }

    /// No more changes come; the writer ends once everything is saved.
    pub(super) fn close(&self) {
        self.state.lock().is_closing = true;
        self.moved.notify_all();
    }

    /// The number of unsaved changes.
    pub(super) fn unsaved(&self) -> usize {
        let state = self.state.lock();
        state.waiting.len() + state.in_flight.len()
    }

    /// The unsaved changes, oldest first.
    pub(super) fn unsaved_changes(&self) -> Vec<Queued> {
        let state = self.state.lock();
        state.in_flight.iter().chain(&state.waiting).cloned().collect()
    }

    /// The writer has ended.
    pub(super) fn set_stopped(&self) {
        self.state.lock().is_stopped = true;
        self.moved.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }
}

impl State {
    /// Whether nothing in the queue will be saved in this file.
    fn is_over(&self) -> bool {
        self.is_stopped || self.failure.as_ref().is_some_and(|failure| !failure.may_pass)
    }

    fn why_unsaved(&self) -> StoreError {
        match &self.failure {
            _ if self.is_stopped => StoreError::Stopped(WRITER_GONE.to_owned()),
            Some(failure) if failure.may_pass => StoreError::Unsaved(failure.reason.clone()),
            Some(failure) => StoreError::Stopped(failure.reason.clone()),
            // Another attempt is in progress.
            None => StoreError::Unsaved("the disk has not responded yet".to_owned()),
        }
    }
}

pub(super) const WRITER_GONE: &str = "the thread that saves has stopped; save the project under another name and \
    restart Spotcheck";

/// The approximate memory of a queued change.
fn size_of_change(change: &Change) -> usize {
    const PER_CHANGE: usize = 256;
    let more = match change {
        Change::Predictions { predictions, .. } => predictions
            .iter()
            .map(|prediction| PER_CHANGE + prediction.result.as_ref().map_or(0, size_of_prediction))
            .sum(),
        Change::SetNote { text, .. } => text.len(),
        Change::SetView { json, .. } => json.len(),
        _ => 0,
    };
    PER_CHANGE + more
}

fn size_of_prediction(prediction: &Prediction) -> usize {
    // Each label has its own allocation.
    const LABEL: usize = 32;
    let detections = prediction.detections();
    let runners_up: usize = detections.iter().map(|found| size_of_val(&*found.runners_up)).sum();
    runners_up
        + detections.len() * (size_of::<crate::domain::Detection>() + LABEL)
        + prediction.classes().len() * (size_of::<crate::domain::ClassScore>() + LABEL)
}

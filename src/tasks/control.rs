//! The handle shared by a worker and its owner.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{Counted, Progress, ProgressUnit};

/// Pause, cancel and progress of one task. Clones are handles of the same task.
#[derive(Clone)]
pub struct TaskControl(Arc<Shared>);

/// The task was canceled. Not a failure: finished work is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("canceled")]
pub struct Cancelled;

struct Shared {
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    mode: Mode,
    done: u64,
    done_before: u64,
    total: Option<u64>,
    unit: ProgressUnit,
    step: String,
    detail: String,
    notes: Vec<String>,
    worked: Duration,
    /// The time since which the task has been running without a pause.
    running_since: Option<Instant>,
    /// A rate measured by another system, and when.
    counted: Option<(Option<f64>, Instant)>,
    hooks: BTreeMap<u64, Box<dyn Fn() + Send>>,
    next_hook: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Running,
    Paused,
    Cancelled,
}

impl std::fmt::Debug for TaskControl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TaskControl")
    }
}

impl TaskControl {
    pub fn new(unit: ProgressUnit) -> Self {
        let inner = Inner {
            mode: Mode::Running,
            done: 0,
            done_before: 0,
            total: None,
            unit,
            step: String::new(),
            detail: String::new(),
            notes: Vec::new(),
            worked: Duration::ZERO,
            running_since: Some(Instant::now()),
            counted: None,
            hooks: BTreeMap::new(),
            next_hook: 0,
        };
        Self(Arc::new(Shared { inner: Mutex::new(inner), changed: Condvar::new() }))
    }

    /// Waits while the task is paused.
    ///
    /// # Errors
    /// [`Cancelled`] once the task is canceled; the worker must then return immediately.
    pub fn checkpoint(&self) -> Result<(), Cancelled> {
        let paused = |inner: &mut Inner| inner.mode == Mode::Paused;
        let mut inner = self.0.inner.lock();
        self.0.changed.wait_while(&mut inner, paused);
        match inner.mode {
            Mode::Cancelled => Err(Cancelled),
            Mode::Running | Mode::Paused => Ok(()),
        }
    }

    /// Sleeps, but wakes when the task is canceled.
    ///
    /// # Errors
    /// [`Cancelled`] once the task is canceled.
    pub fn sleep(&self, duration: Duration) -> Result<(), Cancelled> {
        let not_cancelled = |inner: &mut Inner| inner.mode != Mode::Cancelled;
        self.0.changed.wait_while_for(&mut self.0.inner.lock(), not_cancelled, duration);
        self.checkpoint()
    }

    pub fn pause(&self) {
        let mut inner = self.0.inner.lock();
        if inner.mode == Mode::Running {
            inner.mode = Mode::Paused;
            if let Some(since) = inner.running_since.take() {
                inner.worked += since.elapsed();
            }
        }
    }

    pub fn resume(&self) {
        let mut inner = self.0.inner.lock();
        if inner.mode == Mode::Paused {
            inner.mode = Mode::Running;
            inner.running_since = Some(Instant::now());
            self.0.changed.notify_all();
        }
    }

    /// Final: a canceled task cannot be resumed. Calls every registered hook.
    pub fn cancel(&self) {
        let mut inner = self.0.inner.lock();
        inner.mode = Mode::Cancelled;
        inner.hooks.values().for_each(|hook| hook());
        self.0.changed.notify_all();
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.inner.lock().mode == Mode::Cancelled
    }

    pub fn is_paused(&self) -> bool {
        self.0.inner.lock().mode == Mode::Paused
    }

    /// Calls `hook` when the task is canceled (immediately if it already is), until the returned guard is dropped. For
    /// work that cannot check at checkpoints, such as a running model. The hook must not use this control.
    #[must_use = "the hook is removed when the guard is dropped"]
    pub fn on_cancel(&self, hook: impl Fn() + Send + 'static) -> CancelHook {
        let mut inner = self.0.inner.lock();
        if inner.mode == Mode::Cancelled {
            hook();
        }
        let id = inner.next_hook;
        inner.next_hook += 1;
        inner.hooks.insert(id, Box::new(hook));
        CancelHook { control: self.clone(), id }
    }

    pub fn set_total(&self, total: Option<u64>) {
        self.0.inner.lock().total = total;
    }

    pub fn set_done(&self, done: u64) {
        self.0.inner.lock().done = done;
    }

    /// Sets a count from another system: from now on, the rate is that of the count rather than of this task's clock.
    pub fn set_counted(&self, done: u64, counted: Counted) {
        let now = Instant::now();
        let at = now.checked_sub(counted.age).unwrap_or(now);
        let mut inner = self.0.inner.lock();
        inner.done = done;
        inner.counted = Some((counted.per_s, at));
    }

    /// Starts a section of the work at `done`: the rate is measured from here.
    pub fn set_done_before(&self, done: u64) {
        let mut inner = self.0.inner.lock();
        (inner.done, inner.done_before) = (done, done);
        inner.worked = Duration::ZERO;
        inner.running_since = inner.running_since.map(|_| Instant::now());
    }

    /// Starts another part of the work, counted from 0 in another unit.
    pub fn begin(&self, unit: ProgressUnit) {
        self.set_done_before(0);
        let mut inner = self.0.inner.lock();
        (inner.unit, inner.total, inner.counted) = (unit, None, None);
    }

    pub fn add_done(&self, more: u64) {
        self.0.inner.lock().done += more;
    }

    pub fn set_step(&self, step: impl Into<String>) {
        self.0.inner.lock().step = step.into();
    }

    pub fn set_detail(&self, detail: impl Into<String>) {
        self.0.inner.lock().detail = detail.into();
    }

    /// Records a deviation, such as which mirror was abandoned and why. Shown when the task ends.
    pub fn note(&self, note: impl Into<String>) {
        self.0.inner.lock().notes.push(note.into());
    }

    /// All notes so far, oldest first.
    pub fn notes(&self) -> Vec<String> {
        self.0.inner.lock().notes.clone()
    }

    pub fn progress(&self) -> Progress {
        let inner = self.0.inner.lock();
        let running = inner.running_since.map_or(Duration::ZERO, |since| since.elapsed());
        Progress {
            done: inner.done,
            done_before: inner.done_before,
            total: inner.total,
            unit: inner.unit,
            step: inner.step.clone(),
            detail: inner.detail.clone(),
            elapsed: inner.worked + running,
            counted: inner.counted.map(|(per_s, at)| Counted { per_s, age: at.elapsed() }),
        }
    }
}

/// Removes its hook when dropped.
pub struct CancelHook {
    control: TaskControl,
    id: u64,
}

impl Drop for CancelHook {
    fn drop(&mut self) {
        self.control.0.inner.lock().hooks.remove(&self.id);
    }
}

/// Called by workers after each report; does nothing if no thread is sleeping.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    pub fn none() -> Self {
        Self::new(|| ())
    }

    pub fn wake(&self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn paused_task_waits_at_its_checkpoint() {
        let control = TaskControl::new(ProgressUnit::Images);
        control.pause();
        let worker = control.clone();
        let thread = std::thread::spawn(move || {
            worker.checkpoint()?;
            worker.add_done(1);
            Ok::<(), Cancelled>(())
        });
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(control.progress().done, 0);
        control.resume();
        assert_eq!(thread.join().unwrap(), Ok(()));
        assert_eq!(control.progress().done, 1);
    }

    #[test]
    fn cancel_ends_a_pause_and_calls_hooks() {
        let control = TaskControl::new(ProgressUnit::Images);
        let calls = Arc::new(AtomicUsize::new(0));
        let count = |calls: &Arc<AtomicUsize>| {
            let calls = Arc::clone(calls);
            move || {
                calls.fetch_add(1, Ordering::Relaxed);
            }
        };
        let _held = control.on_cancel(count(&calls));
        drop(control.on_cancel(count(&calls)));
        control.pause();
        let worker = control.clone();
        let thread = std::thread::spawn(move || worker.checkpoint());
        control.cancel();
        assert_eq!(thread.join().unwrap(), Err(Cancelled));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}

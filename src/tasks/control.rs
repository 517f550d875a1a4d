//! The handle shared by a worker and its owner, and the progress that it reports.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

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

/// A snapshot of a task's progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub done: u64,
    /// The part of `done` from before the clock started: a resumed download.
    pub done_before: u64,
    /// `None` if unknown.
    pub total: Option<u64>,
    pub unit: ProgressUnit,
    /// The current step; can be empty.
    pub step: String,
    /// Frequently changing additional text, such as another count; can be empty.
    pub detail: String,
    /// Working time since `done_before`, without pauses.
    pub elapsed: Duration,
    /// Set if another system counted `done` instead of this task.
    pub counted: Option<Counted>,
}

/// A count that is updated only now and then. The task's own clock does not give its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Units per second, measured with the count.
    pub per_s: Option<f64>,
    pub age: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressUnit {
    Images,
    Bytes,
    Steps,
}

impl Progress {
    /// Units per second: as counted, or since the clock started; `None` before anything was done.
    pub fn rate(&self) -> Option<f64> {
        if let Some(counted) = self.counted {
            return counted.per_s;
        }
        let secs = self.elapsed.as_secs_f64();
        let done = self.done.saturating_sub(self.done_before);
        (done > 0 && secs > 0.0).then(|| done as f64 / secs)
    }

    /// The remaining time at the current rate; `None` if rate or total is unknown.
    pub fn time_left(&self) -> Option<Duration> {
        let left = self.total?.saturating_sub(self.done) as f64;
        let since_done = self.counted.map_or(Duration::ZERO, |counted| counted.age);
        let of_done = Duration::try_from_secs_f64(left / self.rate()?).ok()?;
        Some(of_done.saturating_sub(since_done))
    }

    /// “counted 40 s ago”; `None` if nothing was counted, or just now.
    pub fn count_age_text(&self) -> Option<String> {
        let seconds = self.counted?.age.as_secs();
        (seconds >= 1).then(|| format!("counted {seconds} s ago"))
    }

    /// `0.0..=1.0`; `None` while the total is unknown.
    pub fn fraction(&self) -> Option<f32> {
        let total = self.total?;
        (total > 0).then(|| (self.done as f64 / total as f64).min(1.0) as f32)
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

    #[test]
    fn time_left_follows_the_rate() {
        let progress = Progress {
            done: 25,
            done_before: 0,
            total: Some(100),
            unit: ProgressUnit::Images,
            step: String::new(),
            detail: String::new(),
            elapsed: Duration::from_secs(5),
            counted: None,
        };
        assert_eq!(progress.rate(), Some(5.0));
        assert_eq!(progress.time_left(), Some(Duration::from_secs(15)));
        assert_eq!(progress.fraction(), Some(0.25));
    }
    #[test]
    fn earlier_items_do_not_affect_the_rate() {
        let progress = Progress {
            done: 90,
            done_before: 80,
            total: Some(100),
            unit: ProgressUnit::Bytes,
            step: String::new(),
            detail: String::new(),
            elapsed: Duration::from_secs(5),
            counted: None,
        };
        assert_eq!(progress.rate(), Some(2.0));
        assert_eq!(progress.fraction(), Some(0.9));
    }

    #[test]
    fn older_count_keeps_its_rate() {
        let counted = |age_secs: u64| Progress {
            done: 200,
            done_before: 0,
            total: Some(1000),
            unit: ProgressUnit::Images,
            step: String::new(),
            detail: String::new(),
            elapsed: Duration::from_secs(5 + age_secs),
            counted: Some(Counted { per_s: Some(100.0), age: Duration::from_secs(age_secs) }),
        };
        for (age_secs, left_secs, text) in
            [(0, 8, None), (3, 5, Some("counted 3 s ago")), (20, 0, Some("counted 20 s ago"))]
        {
            let progress = counted(age_secs);
            assert_eq!(progress.rate(), Some(100.0));
            assert_eq!(progress.time_left(), Some(Duration::from_secs(left_secs)));
            assert_eq!(progress.count_age_text().as_deref(), text);
        }
    }
}

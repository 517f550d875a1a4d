//! Named background work that can be watched, paused and stopped.
//!
//! Knows nothing about the work itself. A worker holds a [`TaskControl`], reports through it and asks it at every
//! checkpoint whether to continue; its starter holds another handle of the same control.

mod clock;
mod control;
mod progress;

pub use clock::{clock_text, now_ms};
pub use control::{CancelHook, Cancelled, TaskControl, Waker};
pub use progress::{Counted, Progress, ProgressUnit};

/// Starts a named thread. A panic in `work` is caught and passed to `on_panic` as text, so that every task reports a
/// result.
pub fn spawn(
    name: impl Into<String>,
    work: impl FnOnce() + Send + 'static,
    on_panic: impl FnOnce(String) + Send + 'static,
) {
    let name = name.into();
    let thread_name = name.clone();
    let body = move || {
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            on_panic(panic_text(&*panic));
        }
    };
    if let Err(error) = std::thread::Builder::new().name(thread_name).spawn(body) {
        log::error!("could not start the thread of task “{name}”: {error}");
    }
}

/// Gives priority to the window's thread if they compete for a core, so that no frame is late because of background
/// work. Applies to the calling thread and, on Linux, to threads that it starts. If the system refuses, nothing
/// changes.
pub fn give_way() {
    // A niceness of 10 on Linux, below normal on other systems; costs nothing while no other thread competes.
    let below_normal = thread_priority::ThreadPriorityValue::try_from(25u8);
    let result =
        below_normal.map(|priority| thread_priority::ThreadPriority::Crossplatform(priority).set_for_current());
    if !matches!(result, Ok(Ok(()))) {
        log::debug!("threads cannot be given a lower priority: {result:?}");
    }
}

/// The message of a caught panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

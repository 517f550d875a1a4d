//! Work inside ONNX Runtime, which must end before the program does.
//!
//! At exit, ONNX Runtime and each separate provider library destroy their globals; a thread inside a call then crashes
//! the whole process. So closing the window cancels everything that loads a model or predicts with it, and waits for
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::tasks::TaskControl;

/// The longest wait when the window is closed. Loading a model cannot be canceled and takes seconds for the largest.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub(crate) struct ModelWork {
    state: Mutex<WorkState>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkState {
    next: u64,
    running: BTreeMap<u64, TaskControl>,
    is_closed: bool,
}

/// Marks a call into ONNX Runtime until it is dropped. Drop it after the predictor, because dropping that is a call as
/// well.
pub(crate) struct Working {
    work: Arc<ModelWork>,
    number: u64,
}

impl ModelWork {
    /// Marks the start of a call; `None` once the window is closing, when `control` is canceled as well.
    pub(crate) fn begin(self: &Arc<Self>, control: &TaskControl) -> Option<Working> {
        let mut state = self.state.lock();
        if state.is_closed {
            control.cancel();
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.running.insert(number, control.clone());
        Some(Working { work: Arc::clone(self), number })
    }

    /// Cancels the work, waits for it, and allows no new work.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let running: Vec<TaskControl> = state.running.values().cloned().collect();
        drop(state);
        running.iter().for_each(TaskControl::cancel);
        let mut state = self.state.lock();
        let is_busy = |state: &mut WorkState| !state.running.is_empty();
        self.changed.wait_while_for(&mut state, is_busy, PATIENCE);
        if !state.running.is_empty() {
            log::warn!("the window closes while a model is still at work");
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.work.state.lock().running.remove(&self.number);
        self.work.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::ProgressUnit;

    #[test]
    fn closing_cancels_and_waits_for_work() {
        let work = Arc::new(ModelWork::default());
        let control = TaskControl::new(ProgressUnit::Images);
        let working = work.begin(&control).unwrap();
        let ended = std::thread::spawn({
            let control = control.clone();
            move || {
                while control.checkpoint().is_ok() {
                    std::thread::yield_now();
                }
                drop(working);
            }
        });
        work.close();
        assert!(work.state.lock().running.is_empty());
        ended.join().unwrap();

        let late = TaskControl::new(ProgressUnit::Images);
        assert!(work.begin(&late).is_none());
        assert!(late.is_cancelled());
    }
}

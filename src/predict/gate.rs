//! Hands out the indices of the samples in order, never too far ahead of what has been written.

use parking_lot::{Condvar, Mutex};

/// Shared by the readers, which take indices, and the writer, which lets them continue.
pub(crate) struct Gate {
    state: Mutex<State>,
    moved: Condvar,
    total: usize,
    window: usize,
}

struct State {
    next: usize,
    written: usize,
    closed: bool,
}

impl Gate {
    /// A gate for `total` samples with at most `window` in progress.
    pub(crate) fn new(total: usize, window: usize) -> Self {
        let state = State { next: 0, written: 0, closed: false };
        Self { state: Mutex::new(state), moved: Condvar::new(), total, window }
    }

    /// The next index, once it is close enough; `None` after the last one and once the gate is closed.
    pub(crate) fn take(&self) -> Option<usize> {
        let too_far =
            |state: &mut State| !state.closed && state.next < self.total && state.next >= state.written + self.window;
        let mut state = self.state.lock();
        self.moved.wait_while(&mut state, too_far);
        if state.closed || state.next >= self.total {
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    pub(crate) fn set_written(&self, written: usize) {
        self.state.lock().written = written;
        self.moved.notify_all();
    }

    /// Ends all waits.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.moved.notify_all();
    }
}

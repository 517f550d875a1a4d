//! Limits of a run: the bytes of encoded images in memory, however many are read in parallel, and how far the fastest
//! worker is ahead of the slowest.

use parking_lot::{Condvar, Mutex};

pub struct ByteBudget {
    state: Mutex<State>,
    changed: Condvar,
    total: u64,
}

struct State {
    free: u64,
    is_closed: bool,
}

/// Reserved bytes, returned when dropped.
pub struct Room<'b> {
    budget: &'b ByteBudget,
    bytes: u64,
}

impl ByteBudget {
    pub fn new(total: u64) -> Self {
        let state = State { free: total, is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), total }
    }

    /// Waits for room; something larger than the budget takes all of it. `None` once the budget is closed.
    pub fn take(&self, bytes: u64) -> Option<Room<'_>> {
        let bytes = bytes.min(self.total);
        let is_full = |state: &mut State| !state.is_closed && state.free < bytes;
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, is_full);
        if state.is_closed {
            return None;
        }
        state.free -= bytes;
        Some(Room { budget: self, bytes })
    }

    /// Ends all waits.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.budget.state.lock().free += self.bytes;
        self.budget.changed.notify_all();
    }
}

/// Shared by the readers, which take indices, and the writer, which lets them continue.
pub struct Gate {
    state: Mutex<GateState>,
    moved: Condvar,
    total: usize,
    window: usize,
}

struct GateState {
    next: usize,
    written: usize,
    closed: bool,
}

impl Gate {
    /// A gate for `total` samples with at most `window` in progress.
    pub fn new(total: usize, window: usize) -> Self {
        let state = GateState { next: 0, written: 0, closed: false };
        Self { state: Mutex::new(state), moved: Condvar::new(), total, window }
    }

    /// The next index, once it is close enough; `None` after the last one and once the gate is closed.
    pub fn take(&self) -> Option<usize> {
        let too_far = |state: &mut GateState| {
            !state.closed && state.next < self.total && state.next >= state.written + self.window
        };
        let mut state = self.state.lock();
        self.moved.wait_while(&mut state, too_far);
        if state.closed || state.next >= self.total {
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    pub fn set_written(&self, written: usize) {
        self.state.lock().written = written;
        self.moved.notify_all();
    }

    /// Ends all waits.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_items_run_alone_and_closing_wakes_all() {
        let budget = ByteBudget::new(10);
        let small = budget.take(4).unwrap();
        std::thread::scope(|scope| {
            let large = scope.spawn(|| budget.take(99).map(|room| room.bytes));
            drop(small);
            assert_eq!(large.join().unwrap(), Some(10));
        });
        let _all = budget.take(10).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.take(1).is_none());
            budget.close();
            assert!(waiting.join().unwrap());
        });
    }
}

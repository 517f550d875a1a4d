//! A slot for one request, which a newer one replaces even after it has started.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Shared;

/// The sending end. Dropping it ends all waits at the other end.
pub(crate) struct LatestSender<T>(Arc<Slot<T>>);

pub(crate) struct LatestReceiver<T>(Arc<Slot<T>>);

/// Valid until there is a newer request than the one taken with it.
pub(crate) struct Turn<T> {
    slot: Arc<Slot<T>>,
    number: u64,
}

struct Slot<T> {
    content: Mutex<Content<T>>,
    changed: Condvar,
    /// The number of the newest request.
    newest: AtomicU64,
}

struct Content<T> {
    request: Option<T>,
    is_open: bool,
}

/// Starts a thread that handles one request at a time, until `work` returns false.
pub(crate) fn worker<T: Send + 'static>(
    shared: &Arc<Shared>,
    name: &str,
    mut work: impl FnMut(&Shared, T, &Turn<T>) -> bool + Send + 'static,
) -> LatestSender<T> {
    let (requests, taken) = latest();
    shared.spawn(name, move |shared| {
        while let Some((request, turn)) = taken.take() {
            if !work(shared, request, &turn) {
                break;
            }
        }
    });
    requests
}

pub(crate) fn latest<T>() -> (LatestSender<T>, LatestReceiver<T>) {
    let content = Mutex::new(Content { request: None, is_open: true });
    let slot = Arc::new(Slot { content, changed: Condvar::new(), newest: AtomicU64::new(0) });
    (LatestSender(Arc::clone(&slot)), LatestReceiver(slot))
}

impl<T> LatestSender<T> {
    /// Replaces a request that was not taken yet, and returns the replaced one.
    pub(crate) fn put(&self, request: T) -> Option<T> {
        let mut content = self.0.content.lock();
        self.0.newest.fetch_add(1, Ordering::Relaxed);
        let replaced = content.request.replace(request);
        self.0.changed.notify_one();
        replaced
    }
}

impl<T> Drop for LatestSender<T> {
    fn drop(&mut self) {
        let mut content = self.0.content.lock();
        content.is_open = false;
        self.0.changed.notify_all();
    }
}

impl<T> Slot<T> {
    fn is_waiting(content: &mut Content<T>) -> bool {
        content.request.is_none() && content.is_open
    }
}

impl<T> LatestReceiver<T> {
    /// Waits for a request; `None` once the sender is dropped.
    pub(crate) fn take(&self) -> Option<(T, Turn<T>)> {
        let mut content = self.0.content.lock();
        self.0.changed.wait_while(&mut content, Slot::is_waiting);
        let request = content.request.take().filter(|_| content.is_open)?;
        Some((request, Turn { slot: Arc::clone(&self.0), number: self.0.newest.load(Ordering::Relaxed) }))
    }
}

impl<T> Turn<T> {
    pub(crate) fn is_over(&self) -> bool {
        self.slot.newest.load(Ordering::Relaxed) != self.number
    }

    /// Waits until there is a newer request, the sender is dropped, or the time is up; false if the time is up.
    pub(crate) fn is_over_within(&self, patience: Duration) -> bool {
        let mut content = self.slot.content.lock();
        self.slot.changed.wait_while_for(&mut content, Slot::is_waiting, patience);
        !Slot::is_waiting(&mut content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_request_is_handled() {
        let (sender, receiver) = latest();
        sender.put(1);
        sender.put(2);
        assert_eq!(receiver.take().unwrap().0, 2);
    }

    #[test]
    fn turn_ends_with_a_newer_request_or_the_sender() {
        let (sender, receiver) = latest();
        sender.put(1);
        let (_, turn) = receiver.take().unwrap();
        assert!(!turn.is_over() && !turn.is_over_within(Duration::ZERO));
        sender.put(2);
        assert!(turn.is_over() && turn.is_over_within(Duration::ZERO));
        let (request, turn) = receiver.take().unwrap();
        assert!(request == 2 && !turn.is_over_within(Duration::ZERO));
        drop(sender);
        assert!(turn.is_over_within(Duration::from_mins(1)));
    }

    #[test]
    fn dropping_the_sender_ends_a_wait() {
        let (sender, receiver) = latest::<u8>();
        let waiting = std::thread::spawn(move || receiver.take().is_none());
        drop(sender);
        assert!(waiting.join().unwrap());
    }
}

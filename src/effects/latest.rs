//! A box for one request that a newer one replaces.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The sending end. Dropping it ends all waits at the other end.
pub(super) struct LatestSender<T>(Arc<Slot<T>>);

/// The waiting end.
pub(super) struct LatestReceiver<T>(Arc<Slot<T>>);

struct Slot<T> {
    content: Mutex<Content<T>>,
    changed: Condvar,
}

struct Content<T> {
    request: Option<T>,
    is_open: bool,
}

pub(super) fn latest<T>() -> (LatestSender<T>, LatestReceiver<T>) {
    let slot =
        Arc::new(Slot { content: Mutex::new(Content { request: None, is_open: true }), changed: Condvar::new() });
    (LatestSender(Arc::clone(&slot)), LatestReceiver(slot))
}

impl<T> LatestSender<T> {
    /// Replaces a request that was not taken yet, and returns that one.
    pub(super) fn put(&self, request: T) -> Option<T> {
        let mut content = self.0.content.lock();
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

impl<T> LatestReceiver<T> {
    /// Waits until there is a newer request, the sender is dropped, or the time is up; false if the time is up.
    pub(super) fn is_replaced_within(&self, patience: Duration) -> bool {
        let mut content = self.0.content.lock();
        let is_waiting = |content: &mut Content<T>| content.request.is_none() && content.is_open;
        self.0.changed.wait_while_for(&mut content, is_waiting, patience);
        !is_waiting(&mut content)
    }

    /// Waits for a request; `None` once the sender is dropped.
    pub(super) fn take(&self) -> Option<T> {
        let mut content = self.0.content.lock();
        let is_waiting = |content: &mut Content<T>| content.request.is_none() && content.is_open;
        self.0.changed.wait_while(&mut content, is_waiting);
        if content.is_open { content.request.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_request_is_taken() {
        let (sender, receiver) = latest();
        sender.put(1);
        sender.put(2);
        assert_eq!(receiver.take(), Some(2));
    }

    #[test]
    fn waiting_for_a_newer_request_ends_with_it_or_with_the_time() {
        let (sender, receiver) = latest();
        assert!(!receiver.is_replaced_within(Duration::ZERO));
        sender.put(1);
        assert!(receiver.is_replaced_within(Duration::ZERO));
        assert_eq!(receiver.take(), Some(1));
    }

    #[test]
    fn dropping_the_sender_ends_a_wait() {
        let (sender, receiver) = latest::<u8>();
        let waiting = std::thread::spawn(move || receiver.take());
        drop(sender);
        assert_eq!(waiting.join().unwrap(), None);
    }
}

//! Tells a sleeping window that something happened.

use std::sync::Arc;

/// Called by workers after each report; does nothing if no thread sleeps.
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

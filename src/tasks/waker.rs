//! Wakes a sleeping window.

use std::sync::Arc;

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

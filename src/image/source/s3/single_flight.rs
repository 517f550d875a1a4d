//! Merges concurrent requests for the same object.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::aws::{AwsError, AwsErrorKind};
use crate::cache::CacheKey;
use crate::tasks::{self, ProgressUnit, TaskControl};

const INTERNAL_ERROR: &str = "an internal error in Spotcheck stopped the read; please report it";

/// Requests in flight. Clones share the same data.
#[derive(Clone, Default)]
pub(super) struct SingleFlight(Arc<Mutex<HashMap<CacheKey, Arc<InFlightRequest>>>>);

/// One request for all callers of the same object, on its own thread, so that each caller can stop waiting. It is
/// canceled once no caller waits for it.
struct InFlightRequest {
    progress: Mutex<Progress>,
    changed: Condvar,
    control: TaskControl,
}

struct Progress {
    waiting: usize,
    response: Option<Result<Arc<Vec<u8>>, AwsError>>,
}

impl SingleFlight {
    /// Waits for `fetch`, or for a request in flight for the same object. `fetch` should stop when its control is
    /// canceled.
    pub(super) fn join(
        &self,
        key: CacheKey,
        control: Option<&TaskControl>,
        fetch: impl FnOnce(&TaskControl) -> Result<Vec<u8>, AwsError> + Send + 'static,
    ) -> Result<Vec<u8>, AwsError> {
        let (request, is_new) = self.join_or_create(key);
        if is_new {
            self.start(key, &request, fetch);
        }
        let has_left = Arc::new(AtomicBool::new(false));
        let _hook = control.map(|control| {
            let (request, has_left) = (Arc::clone(&request), Arc::clone(&has_left));
            control.on_cancel(move || {
                if !has_left.swap(true, Ordering::Relaxed) {
                    request.leave();
                }
            })
        });
        request.wait(&has_left)
    }

    /// True if this call started the request.
    fn join_or_create(&self, key: CacheKey) -> (Arc<InFlightRequest>, bool) {
        let mut in_flight = self.0.lock();
        if let Some(request) = in_flight.get(&key) {
            let mut progress = request.progress.lock();
            // Without waiting callers, it was canceled.
            if progress.waiting > 0 {
                progress.waiting += 1;
                return (Arc::clone(request), false);
            }
        }
        let request = Arc::new(InFlightRequest {
            progress: Mutex::new(Progress { waiting: 1, response: None }),
            changed: Condvar::new(),
            control: TaskControl::new(ProgressUnit::Bytes),
        });
        in_flight.insert(key, Arc::clone(&request));
        (request, true)
    }

    fn start(
        &self,
        key: CacheKey,
        request: &Arc<InFlightRequest>,
        fetch: impl FnOnce(&TaskControl) -> Result<Vec<u8>, AwsError> + Send + 'static,
    ) {
        let completion = Completion { in_flight: self.clone(), key, request: Arc::clone(request) };
        let work = move || {
            tasks::give_way();
            let response = fetch(&completion.request.control);
            completion.complete(response);
        };
        let on_panic = |text| log::error!("an internal error stopped a read from S3: {text}");
        tasks::spawn("fetch from S3", work, on_panic);
    }
}

impl InFlightRequest {
    fn leave(&self) {
        let mut progress = self.progress.lock();
        progress.waiting = progress.waiting.saturating_sub(1);
        let is_empty = progress.waiting == 0;
        drop(progress);
        self.changed.notify_all();
        if is_empty {
            self.control.cancel();
        }
    }

    fn wait(&self, has_left: &AtomicBool) -> Result<Vec<u8>, AwsError> {
        let is_waiting = |progress: &mut Progress| progress.response.is_none() && !has_left.load(Ordering::Relaxed);
        let mut progress = self.progress.lock();
        self.changed.wait_while(&mut progress, is_waiting);
        if has_left.load(Ordering::Relaxed) {
            return Err(failed(AwsErrorKind::Cancelled, "Canceled"));
        }
        // The last caller need not copy it.
        let response = if progress.waiting == 1 { progress.response.take() } else { progress.response.clone() };
        progress.waiting = progress.waiting.saturating_sub(1);
        drop(progress);
        let response = response.unwrap_or_else(|| Err(failed(AwsErrorKind::Other, INTERNAL_ERROR)));
        response.map(|content| Arc::try_unwrap(content).unwrap_or_else(|shared| shared.to_vec()))
    }
}

/// Completes a request whatever happens.
struct Completion {
    in_flight: SingleFlight,
    key: CacheKey,
    request: Arc<InFlightRequest>,
}

impl Completion {
    /// Completes the request: later callers start a new one, and waiting ones get this result, or an earlier one.
    fn complete(&self, response: Result<Vec<u8>, AwsError>) {
        let mut in_flight = self.in_flight.0.lock();
        let is_this = |known: &Arc<InFlightRequest>| Arc::ptr_eq(known, &self.request);
        if in_flight.get(&self.key).is_some_and(is_this) {
            in_flight.remove(&self.key);
        }
        drop(in_flight);
        self.request.progress.lock().response.get_or_insert_with(|| response.map(Arc::new));
        self.request.changed.notify_all();
    }
}

/// No caller waits forever, even after a panic or if no thread could be started.
impl Drop for Completion {
    fn drop(&mut self) {
        self.complete(Err(failed(AwsErrorKind::Other, INTERNAL_ERROR)));
    }
}

fn failed(kind: AwsErrorKind, message: &str) -> AwsError {
    AwsError { kind, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::cache::EntryKind;

    fn key() -> CacheKey {
        CacheKey::new(EntryKind::Image, &[b"a"])
    }

    fn control() -> TaskControl {
        TaskControl::new(ProgressUnit::Bytes)
    }

    /// Waits until this many callers have joined.
    fn wait_for_callers(in_flight: &SingleFlight, count: usize) {
        loop {
            let request = in_flight.0.lock().get(&key()).cloned();
            if request.is_some_and(|request| request.progress.lock().waiting == count) {
                return;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn callers_share_a_request_in_flight() {
        let in_flight = SingleFlight::default();
        let (go, gone) = channel::<()>();
        std::thread::scope(|scope| {
            let in_flight = &in_flight;
            let first = scope.spawn(move || {
                in_flight.join(key(), None, move |_| {
                    gone.recv().unwrap();
                    Ok(vec![7])
                })
            });
            wait_for_callers(in_flight, 1);
            let second = scope.spawn(|| in_flight.join(key(), None, |_| unreachable!()));
            wait_for_callers(in_flight, 2);
            go.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(vec![7]));
            assert_eq!(second.join().unwrap(), Ok(vec![7]));
        });
        assert_eq!(in_flight.join(key(), None, |_| Ok(vec![8])), Ok(vec![8]));
        assert!(in_flight.0.lock().is_empty());
    }

    #[test]
    fn canceled_caller_leaves_the_request_to_others() {
        let in_flight = SingleFlight::default();
        let (impatient, patient) = (control(), control());
        let (go, gone) = channel::<()>();
        let (tell, told) = channel::<bool>();
        std::thread::scope(|scope| {
            let (in_flight, asked_first, asked_second) = (&in_flight, &impatient, &patient);
            let first = scope.spawn(move || {
                in_flight.join(key(), Some(asked_first), move |request| {
                    for () in gone {
                        tell.send(request.is_cancelled()).unwrap();
                    }
                    Ok(Vec::new())
                })
            });
            wait_for_callers(in_flight, 1);
            let second = scope.spawn(move || in_flight.join(key(), Some(asked_second), |_| unreachable!()));
            wait_for_callers(in_flight, 2);
            let is_cancelled = || {
                go.send(()).unwrap();
                told.recv().unwrap()
            };
            impatient.cancel();
            let response = first.join().unwrap();
            assert_eq!(response.unwrap_err().kind, AwsErrorKind::Cancelled);
            assert!(!is_cancelled());
            patient.cancel();
            assert!(second.join().unwrap().is_err());
            assert!(is_cancelled());
            // A canceled request gets no new callers.
            assert_eq!(in_flight.join(key(), None, |_| Ok(vec![9])), Ok(vec![9]));
            drop(go);
        });
    }

    #[test]
    fn failures_and_panics_reach_every_caller() {
        for panics in [false, true] {
            let in_flight = SingleFlight::default();
            std::thread::scope(|scope| {
                let in_flight = &in_flight;
                let (start, started) = channel::<()>();
                let first = scope.spawn(move || {
                    in_flight.join(key(), None, move |_| {
                        started.recv().unwrap();
                        assert!(!panics, "as the test wants it");
                        Err(failed(AwsErrorKind::NotFound, "no"))
                    })
                });
                wait_for_callers(in_flight, 1);
                let second = scope.spawn(|| in_flight.join(key(), None, |_| unreachable!()));
                wait_for_callers(in_flight, 2);
                start.send(()).unwrap();
                assert!(second.join().unwrap().is_err());
                assert!(first.join().unwrap().is_err());
            });
        }
    }
}

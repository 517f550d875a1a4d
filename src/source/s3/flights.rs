//! Requests for the same thing at the same time are one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::aws::{AwsError, AwsErrorKind};
use crate::cache::CacheKey;
use crate::tasks::{ProgressUnit, TaskControl};

/// What is on its way.
#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<CacheKey, Arc<Flight>>>);

/// One request, carried out by whoever asked first, for all who ask meanwhile. It is cancelled once nobody waits for it any more.
struct Flight {
    cabin: Mutex<Cabin>,
    changed: Condvar,
    control: TaskControl,
}

struct Cabin {
    waiting: usize,
    /// For those who did not ask first.
    answer: Option<Result<Arc<Vec<u8>>, AwsError>>,
}

impl Flights {
    /// Carries out `fetch`, which is to stop when its control is cancelled, or waits for somebody who does the same already.
    pub(super) fn join(
        &self,
        key: CacheKey,
        control: Option<&TaskControl>,
        fetch: impl FnOnce(&TaskControl) -> Result<Vec<u8>, AwsError>,
    ) -> Result<Vec<u8>, AwsError> {
        let (flight, is_first) = self.board(key);
        let has_left = Arc::new(AtomicBool::new(false));
        let _hook = control.map(|control| {
            let (flight, has_left) = (Arc::clone(&flight), Arc::clone(&has_left));
            control.on_cancel(move || {
                if !has_left.swap(true, Ordering::Relaxed) {
                    flight.leave();
                }
            })
        });
        if !is_first {
            return flight.wait(&has_left);
        }
        let landing = Landing {
            flights: self,
            key,
            flight: &flight,
        };
        let answer = fetch(&flight.control);
        landing.land(answer)
    }

    /// True where it begins with us.
    fn board(&self, key: CacheKey) -> (Arc<Flight>, bool) {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(&key) {
            let mut cabin = flight.lock();
            // With nobody aboard it was cancelled.
            if cabin.waiting > 0 {
                cabin.waiting += 1;
                return (Arc::clone(flight), false);
            }
        }
        let flight = Arc::new(Flight {
            cabin: Mutex::new(Cabin {
                waiting: 1,
                answer: None,
            }),
            changed: Condvar::new(),
            control: TaskControl::new(ProgressUnit::Bytes),
        });
        flights.insert(key, Arc::clone(&flight));
        (flight, true)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CacheKey, Arc<Flight>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    fn leave(&self) {
        let mut cabin = self.lock();
        cabin.waiting -= 1;
        let is_empty = cabin.waiting == 0;
        drop(cabin);
        self.changed.notify_all();
        if is_empty {
            self.control.cancel();
        }
    }

    fn wait(&self, has_left: &AtomicBool) -> Result<Vec<u8>, AwsError> {
        let mut cabin = self.lock();
        loop {
            if has_left.load(Ordering::Relaxed) {
                return Err(failed(AwsErrorKind::Cancelled, "It was cancelled"));
            }
            if let Some(answer) = cabin.answer.clone() {
                drop(cabin);
                return answer.map(|content| content.to_vec());
            }
            let woken = self.changed.wait(cabin);
            cabin = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cabin> {
        self.cabin.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a flight, whatever became of it.
struct Landing<'f> {
    flights: &'f Flights,
    key: CacheKey,
    flight: &'f Arc<Flight>,
}

impl Landing<'_> {
    fn land(self, answer: Result<Vec<u8>, AwsError>) -> Result<Vec<u8>, AwsError> {
        if !self.close() {
            return answer;
        }
        let shared = answer.map(Arc::new);
        self.hand_out(shared.clone());
        shared.map(|content| content.to_vec())
    }

    /// From now on, whoever asks begins anew. True where others wait for the answer.
    fn close(&self) -> bool {
        let mut flights = self.flights.lock();
        let is_this = |known: &Arc<Flight>| Arc::ptr_eq(known, self.flight);
        if flights.get(&self.key).is_some_and(is_this) {
            flights.remove(&self.key);
        }
        self.flight.lock().waiting > 1
    }

    fn hand_out(&self, answer: Result<Arc<Vec<u8>>, AwsError>) {
        self.flight.lock().answer.get_or_insert(answer);
        self.flight.changed.notify_all();
    }
}

/// Nobody waits for ever, not even after a panic.
impl Drop for Landing<'_> {
    fn drop(&mut self) {
        self.close();
        self.hand_out(Err(failed(AwsErrorKind::Other, "It could not be read")));
    }
}

fn failed(kind: AwsErrorKind, message: &str) -> AwsError {
    AwsError {
        kind,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::cache::EntryKind;

    fn key() -> CacheKey {
        CacheKey::new(EntryKind::Picture, &[b"a"])
    }

    fn control() -> TaskControl {
        TaskControl::new(ProgressUnit::Bytes)
    }

    /// Waits until so many are aboard.
    fn wait_for_passengers(flights: &Flights, count: usize) {
        loop {
            let flight = flights.lock().get(&key()).cloned();
            if flight.is_some_and(|flight| flight.lock().waiting == count) {
                return;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_asks_meanwhile_gets_the_same_answer_and_who_asks_later_asks_anew() {
        let flights = Flights::default();
        let (go, gone) = channel::<()>();
        std::thread::scope(|scope| {
            let flights = &flights;
            let first = scope.spawn(move || {
                flights.join(key(), None, |_| {
                    gone.recv().unwrap();
                    Ok(vec![7])
                })
            });
            wait_for_passengers(flights, 1);
            let second = scope.spawn(|| flights.join(key(), None, |_| unreachable!()));
            wait_for_passengers(flights, 2);
            go.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(vec![7]));
            assert_eq!(second.join().unwrap(), Ok(vec![7]));
        });
        assert_eq!(flights.join(key(), None, |_| Ok(vec![8])), Ok(vec![8]));
        assert!(flights.lock().is_empty());
    }

    #[test]
    fn it_goes_on_while_anybody_waits_and_is_cancelled_when_nobody_does() {
        let flights = Flights::default();
        let (impatient, patient) = (control(), control());
        let (go, gone) = channel::<()>();
        let (goes_on, went_on) = channel::<()>();
        std::thread::scope(|scope| {
            let (flights, asked_first, asked_second) = (&flights, &impatient, &patient);
            let first = scope.spawn(move || {
                flights.join(key(), Some(asked_first), |flight| {
                    gone.recv().unwrap();
                    assert!(!flight.is_cancelled());
                    goes_on.send(()).unwrap();
                    gone.recv().unwrap();
                    assert!(flight.is_cancelled());
                    Err(failed(AwsErrorKind::Cancelled, "It was cancelled"))
                })
            });
            wait_for_passengers(flights, 1);
            let second =
                scope.spawn(move || flights.join(key(), Some(asked_second), |_| unreachable!()));
            wait_for_passengers(flights, 2);
            impatient.cancel();
            wait_for_passengers(flights, 1);
            go.send(()).unwrap();
            went_on.recv().unwrap();
            patient.cancel();
            let answer = second.join().unwrap();
            assert_eq!(answer.unwrap_err().kind, AwsErrorKind::Cancelled);
            // Nobody boards what was cancelled.
            assert_eq!(flights.join(key(), None, |_| Ok(vec![9])), Ok(vec![9]));
            go.send(()).unwrap();
            assert!(first.join().unwrap().is_err());
        });
    }

    #[test]
    fn a_failure_is_everybodys_and_after_a_panic_nobody_waits_for_ever() {
        let flights = Flights::default();
        for panics in [false, true] {
            std::thread::scope(|scope| {
                let flights = &flights;
                let (start, started) = channel::<()>();
                let first = scope.spawn(move || {
                    flights.join(key(), None, |_| {
                        started.recv().unwrap();
                        assert!(!panics, "as the test wants it");
                        Err(failed(AwsErrorKind::NotFound, "no"))
                    })
                });
                wait_for_passengers(flights, 1);
                let second = scope.spawn(|| flights.join(key(), None, |_| unreachable!()));
                wait_for_passengers(flights, 2);
                start.send(()).unwrap();
                assert!(second.join().unwrap().is_err());
                assert_eq!(first.join().is_err(), panics);
            });
        }
    }
}

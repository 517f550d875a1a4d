//! Requests for the same thing at the same time are one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::aws::{AwsError, AwsErrorKind};
use crate::cache::CacheKey;
use crate::tasks::{self, ProgressUnit, TaskControl};

const MISTAKE: &str = "Spotcheck made a mistake while it was read; please report it";

/// What is on its way. Clones are handles of the same.
#[derive(Clone, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<CacheKey, Arc<Flight>>>>);

/// One request for all who ask meanwhile, on a thread of its own, so that each of them can give up waiting. It is cancelled once
/// nobody waits for it any more.
struct Flight {
    cabin: Mutex<Cabin>,
    changed: Condvar,
    control: TaskControl,
}

struct Cabin {
    waiting: usize,
    answer: Option<Result<Arc<Vec<u8>>, AwsError>>,
}

impl Flights {
    /// Waits for what `fetch` brings, or for somebody who fetches the same already. `fetch` is to stop when its control is cancelled.
    pub(super) fn join(
        &self,
        key: CacheKey,
        control: Option<&TaskControl>,
        fetch: impl FnOnce(&TaskControl) -> Result<Vec<u8>, AwsError> + Send + 'static,
    ) -> Result<Vec<u8>, AwsError> {
        let (flight, is_new) = self.board(key);
        if is_new {
            self.take_off(key, &flight, fetch);
        }
        let has_left = Arc::new(AtomicBool::new(false));
        let _hook = control.map(|control| {
            let (flight, has_left) = (Arc::clone(&flight), Arc::clone(&has_left));
            control.on_cancel(move || {
                if !has_left.swap(true, Ordering::Relaxed) {
                    flight.leave();
                }
            })
        });
        flight.wait(&has_left)
    }

    /// True where it begins with us.
    fn board(&self, key: CacheKey) -> (Arc<Flight>, bool) {
        let mut flights = self.0.lock();
        if let Some(flight) = flights.get(&key) {
            let mut cabin = flight.cabin.lock();
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

    fn take_off(
        &self,
        key: CacheKey,
        flight: &Arc<Flight>,
        fetch: impl FnOnce(&TaskControl) -> Result<Vec<u8>, AwsError> + Send + 'static,
    ) {
        let landing = Landing {
            flights: self.clone(),
            key,
            flight: Arc::clone(flight),
        };
        let work = move || {
            tasks::give_way();
            let answer = fetch(&landing.flight.control);
            landing.land(answer);
        };
        let on_panic = |text| log::error!("reading from S3 failed by a mistake of ours: {text}");
        tasks::spawn("fetch from S3", work, on_panic);
    }
}

impl Flight {
    fn leave(&self) {
        let mut cabin = self.cabin.lock();
        cabin.waiting = cabin.waiting.saturating_sub(1);
        let is_empty = cabin.waiting == 0;
        drop(cabin);
        self.changed.notify_all();
        if is_empty {
            self.control.cancel();
        }
    }

    fn wait(&self, has_left: &AtomicBool) -> Result<Vec<u8>, AwsError> {
        let is_waiting =
            |cabin: &mut Cabin| cabin.answer.is_none() && !has_left.load(Ordering::Relaxed);
        let mut cabin = self.cabin.lock();
        self.changed.wait_while(&mut cabin, is_waiting);
        if has_left.load(Ordering::Relaxed) {
            return Err(failed(AwsErrorKind::Cancelled, "It was cancelled"));
        }
        // The last one need not copy it.
        let answer = if cabin.waiting == 1 {
            cabin.answer.take()
        } else {
            cabin.answer.clone()
        };
        cabin.waiting = cabin.waiting.saturating_sub(1);
        drop(cabin);
        let answer = answer.unwrap_or_else(|| Err(failed(AwsErrorKind::Other, MISTAKE)));
        answer.map(|content| Arc::try_unwrap(content).unwrap_or_else(|shared| shared.to_vec()))
    }
}

/// Ends a flight, whatever becomes of it.
struct Landing {
    flights: Flights,
    key: CacheKey,
    flight: Arc<Flight>,
}

impl Landing {
    /// From now on, whoever asks begins anew; who has asked before gets this, or what came first.
    fn land(&self, answer: Result<Vec<u8>, AwsError>) {
        let mut flights = self.flights.0.lock();
        let is_this = |known: &Arc<Flight>| Arc::ptr_eq(known, &self.flight);
        if flights.get(&self.key).is_some_and(is_this) {
            flights.remove(&self.key);
        }
        drop(flights);
        self.flight
            .cabin
            .lock()
            .answer
            .get_or_insert_with(|| answer.map(Arc::new));
        self.flight.changed.notify_all();
    }
}

/// Nobody waits for ever, not even after a panic, or where no thread could be started.
impl Drop for Landing {
    fn drop(&mut self) {
        self.land(Err(failed(AwsErrorKind::Other, MISTAKE)));
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
            let flight = flights.0.lock().get(&key()).cloned();
            if flight.is_some_and(|flight| flight.cabin.lock().waiting == count) {
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
                flights.join(key(), None, move |_| {
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
        assert!(flights.0.lock().is_empty());
    }

    #[test]
    fn whoever_gives_up_is_free_at_once_and_it_goes_on_until_nobody_waits() {
        let flights = Flights::default();
        let (impatient, patient) = (control(), control());
        let (go, gone) = channel::<()>();
        let (tell, told) = channel::<bool>();
        std::thread::scope(|scope| {
            let (flights, asked_first, asked_second) = (&flights, &impatient, &patient);
            let first = scope.spawn(move || {
                flights.join(key(), Some(asked_first), move |flight| {
                    for () in gone {
                        tell.send(flight.is_cancelled()).unwrap();
                    }
                    Ok(Vec::new())
                })
            });
            wait_for_passengers(flights, 1);
            let second =
                scope.spawn(move || flights.join(key(), Some(asked_second), |_| unreachable!()));
            wait_for_passengers(flights, 2);
            let is_cancelled = || {
                go.send(()).unwrap();
                told.recv().unwrap()
            };
            impatient.cancel();
            let answer = first.join().unwrap();
            assert_eq!(answer.unwrap_err().kind, AwsErrorKind::Cancelled);
            assert!(!is_cancelled());
            patient.cancel();
            assert!(second.join().unwrap().is_err());
            assert!(is_cancelled());
            // Nobody boards what was cancelled.
            assert_eq!(flights.join(key(), None, |_| Ok(vec![9])), Ok(vec![9]));
            drop(go);
        });
    }

    #[test]
    fn a_failure_is_everybodys_and_after_a_panic_nobody_waits_for_ever() {
        for panics in [false, true] {
            let flights = Flights::default();
            std::thread::scope(|scope| {
                let flights = &flights;
                let (start, started) = channel::<()>();
                let first = scope.spawn(move || {
                    flights.join(key(), None, move |_| {
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
                assert!(first.join().unwrap().is_err());
            });
        }
    }
}

//! Watches the endpoints deployed from this computer while the window is open: their records, which another Spotcheck
//! may change, and their deletion times. Reads only local files.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::sagemaker::spec::endpoint::EndpointRecord;
use crate::tasks::{TaskControl, now_ms};
use crate::window::effects::Shared;
use crate::window::endpoints::effects::records;
use crate::window::state::{EndpointId, EndpointsEvent};

/// The period of the checks. They read a handful of small files, and a clock that runs while the computer sleeps.
const EVERY: Duration = Duration::from_secs(2);
/// The period for listing the endpoints themselves, because another program may have deleted them.
const LIST_EVERY_MS: i64 = 5 * 60_000;
/// The delay after a failed deletion, doubled after each further one.
const FIRST_RETRY_MS: i64 = 30_000;
const LONGEST_RETRY_MS: i64 = 15 * 60_000;

/// Ends its thread when dropped.
#[derive(Default)]
pub(crate) struct EndpointDeleter(Option<(TaskControl, JoinHandle<()>)>);

impl EndpointDeleter {
    pub(crate) fn start(&mut self, shared: &Arc<Shared>) {
        if self.0.is_some() {
            return;
        }
        let control = TaskControl::new(crate::tasks::ProgressUnit::Steps);
        let (shared, of_thread) = (Arc::clone(shared), control.clone());
        let thread = std::thread::Builder::new().name("endpoint deletion".to_owned());
        let thread = thread.spawn(move || watch(&shared, &of_thread));
        match thread {
            Ok(thread) => self.0 = Some((control, thread)),
            Err(error) => {
                log::error!(
                    "endpoints are not deleted automatically, because the system could not start a thread: \
                    {error}"
                );
            }
        }
    }
}

impl Drop for EndpointDeleter {
    fn drop(&mut self) {
        // The thread ends by itself; it may be waiting for a window that no longer takes events.
        if let Some((control, _)) = self.0.take() {
            control.cancel();
        }
    }
}

fn watch(shared: &Arc<Shared>, control: &TaskControl) {
    let mut reported = None;
    let mut tries = Tries::default();
    let mut listed_ms = now_ms();
    loop {
        let now = now_ms();
        let (found, errors) = records(shared).all();
        let found = (found, errors.iter().map(ToString::to_string).collect());
        let due = tries.due(&found.0, now);
        let is_news = reported.as_ref() != Some(&found);
        if is_news || !due.is_empty() {
            reported = Some(found.clone());
            let (records, unreadable) = found;
            let is_open = shared.report(EndpointsEvent::RecordsRead { records, unreadable, due });
            if !is_open {
                return;
            }
        }
        // The difference is also large if the clock was set back.
        if (now - listed_ms).abs() >= LIST_EVERY_MS {
            listed_ms = now;
            let is_any = reported.as_ref().is_some_and(|(records, _)| !records.is_empty());
            if is_any && !shared.report(EndpointsEvent::Outdated) {
                return;
            }
        }
        if control.sleep(EVERY).is_err() {
            return;
        }
    }
}

/// How often each endpoint was reported as due.
#[derive(Default)]
struct Tries(HashMap<(String, String), Try>);

struct Try {
    /// The deletion time of these attempts: another one restarts the count.
    delete_at_ms: i64,
    count: u32,
    next_ms: i64,
}

impl Tries {
    /// The endpoints whose deletion time has passed, repeated after a delay as long as the record exists.
    fn due(&mut self, records: &[EndpointRecord], now_ms: i64) -> Vec<EndpointId> {
        let mut due = Vec::new();
        let mut tries = HashMap::new();
        for record in records {
            let Some(delete_at_ms) = record.delete_at_ms.filter(|at| *at <= now_ms) else {
                continue;
            };
            let id = EndpointId::from(record);
            let key = (record.name.clone(), id.region().to_owned());
            let before = self.0.remove(&key);
            let before = before.filter(|before| before.delete_at_ms == delete_at_ms);
            let next = match before {
                Some(before) if before.next_ms > now_ms => before,
                before => {
                    let count = before.map_or(0, |before| before.count);
                    due.push(id);
                    let wait = FIRST_RETRY_MS << count.min(10);
                    Try { delete_at_ms, count: count + 1, next_ms: now_ms + wait.min(LONGEST_RETRY_MS) }
                }
            };
            tries.insert(key, next);
        }
        self.0 = tries;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sagemaker::spec::endpoint::EndpointConfig;
    use crate::sagemaker::spec::transform::SageMakerAccess;

    fn record(delete_at_ms: Option<i64>) -> EndpointRecord {
        EndpointRecord {
            sagemaker: SageMakerAccess { region: Some("eu-west-1".to_owned()), ..SageMakerAccess::default() },
            name: "cats".to_owned(),
            config: EndpointConfig {
                name: "cats".to_owned(),
                model_name: "cats".to_owned(),
                instance_type: None,
                ..EndpointConfig::default()
            },
            is_started: true,
            owns_config: true,
            owns_model: true,
            archive: None,
            usd_per_hour: None,
            created_ms: 0,
            delete_at_ms,
        }
    }

    #[test]
    fn due_deletions_are_reported_with_growing_delays() {
        let mut tries = Tries::default();
        let mut count = |at: Option<i64>, now_ms| tries.due(&[record(at)], now_ms).len();
        assert_eq!(count(None, i64::MAX), 0);
        assert_eq!(count(Some(1000), 999), 0);
        assert_eq!(count(Some(1000), 1000), 1);
        assert_eq!(count(Some(1000), 1001), 0);
        let second = 1000 + FIRST_RETRY_MS;
        assert_eq!(count(Some(1000), second), 1);
        assert_eq!(count(Some(1000), second + FIRST_RETRY_MS), 0);
        let third = second + 2 * FIRST_RETRY_MS;
        assert_eq!(count(Some(1000), third), 1);
        // Postponed, and due again.
        let later = third + 1;
        assert_eq!(count(Some(later + 1), later), 0);
        assert_eq!(count(Some(later + 1), later + 1), 1);
    }

    #[test]
    fn delays_are_bounded() {
        let mut tries = Tries::default();
        let mut now_ms = 0;
        for _ in 0..100 {
            assert_eq!(tries.due(&[record(Some(0))], now_ms).len(), 1);
            now_ms += LONGEST_RETRY_MS;
        }
    }
}

//! Searching, sorting and counting, beside the window.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::latest::{LatestSender, latest};
use super::overlaps::Overlaps;
use super::{Shared, guarded};
use crate::domain::RunId;
use crate::review::{ArrangeRequest, Arrangement, Arranger, Statistics, outcome_counts, statistics};
use crate::state::{ArrangeId, Pace, ReviewEvent, SourceId};

/// The shortest time between two arrangements while predictions stream in.
const CALM_PERIOD: Duration = Duration::from_millis(150);

/// Works on one request at a time; a newer one takes its place, begun or not.
pub(super) struct ArrangeWorker {
    requests: LatestSender<Request>,
    newest: Arc<AtomicU64>,
}

struct Request {
    id: ArrangeId,
    pace: Pace,
    run: Option<(SourceId, RunId)>,
    what: Box<ArrangeRequest>,
}

impl ArrangeWorker {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let (requests, taken) = latest::<Request>();
        let newest = Arc::new(AtomicU64::new(0));
        let worker_newest = Arc::clone(&newest);
        shared.spawn("sort and filter", move |shared| {
            let mut arranger = Arranger::default();
            let mut last_done: Option<Instant> = None;
            let mut overlaps = Overlaps::default();
            while let Some(mut request) = taken.take() {
                let rest = last_done.map_or(Duration::ZERO, |done| CALM_PERIOD.saturating_sub(done.elapsed()));
                if request.pace == Pace::Calm && taken.is_replaced_within(rest) {
                    continue;
                }
                let cancelled = || worker_newest.load(Ordering::Relaxed) != request.id.0;
                if let Some(run) = request.run {
                    let found = guarded(|| Ok(overlaps.of(shared, run, &request.what, &cancelled)));
                    request.what.suppressed = found.unwrap_or_else(|reason| {
                        shared.report_problem(reason);
                        None
                    });
                }
                if !send_arrangement(shared, &mut arranger, &request, &cancelled) {
                    break;
                }
                last_done = Some(Instant::now());
            }
        });
        Self { requests, newest }
    }

    pub(super) fn request(&self, id: ArrangeId, pace: Pace, run: Option<(SourceId, RunId)>, what: Box<ArrangeRequest>) {
        self.newest.store(id.0, Ordering::Relaxed);
        self.requests.put(Request { id, pace, run, what });
    }
}

/// Sends first the order, which is urgent, then the statistics. False if the window is gone.
fn send_arrangement(shared: &Shared, arranger: &mut Arranger, request: &Request, cancelled: &dyn Fn() -> bool) -> bool {
    let id = request.id;
    let arranged = guarded(|| Ok(arranger.arrange(&request.what, cancelled)));
    let arrangement: Arrangement = match arranged {
        Ok(Some(arrangement)) => arrangement,
        Ok(None) => return true,
        Err(reason) => {
            // Whatever it was in the middle of.
            *arranger = Arranger::default();
            return shared.report(ReviewEvent::ArrangeFailed { id, reason });
        }
    };
    if !shared.report(ReviewEvent::Arranged { id, arrangement, suppressed: request.what.suppressed.clone() }) {
        return false;
    }
    let Some(predictions) = &request.what.predictions else {
        let statistics = None;
        return shared.report(ReviewEvent::Counted { id, statistics });
    };
    let (view, marks) = (&request.what.view, &request.what.marks);
    let suppressed = request.what.suppressed.as_ref();
    match guarded(|| Ok(statistics(predictions, view, suppressed, marks, cancelled))) {
        Ok(None) => true,
        Ok(Some(counted)) => {
            let outcomes = guarded(|| Ok(outcome_counts(&request.what, cancelled))).unwrap_or_else(|reason| {
                shared.report_problem(reason);
                None
            });
            if request.what.outcomes.is_some() && outcomes.is_none() && cancelled() {
                return true;
            }
            shared.report(ReviewEvent::Counted { id, statistics: Some(Statistics { outcomes, ..counted }) })
        }
        Err(reason) => shared.report(ReviewEvent::ArrangeFailed { id, reason }),
    }
}

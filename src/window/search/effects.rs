//! Searching, sorting and counting, next to the window's thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::domain::RunId;
use crate::review::{ArrangeRequest, Arrangement, Arranger, Statistics, outcome_counts, statistics};
use crate::window::effects::latest::{LatestSender, worker};
use crate::window::effects::{Shared, guarded};
use crate::window::filmstrip::effects::overlaps::Overlaps;
use crate::window::state::{Pace, RequestId, ReviewEvent, SourceId};

/// The shortest time between two arrangements while predictions stream in.
const CALM_PERIOD: Duration = Duration::from_millis(150);

pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) pace: Pace,
    pub(crate) run: Option<(SourceId, RunId)>,
    pub(crate) what: Box<ArrangeRequest>,
}

pub(crate) fn arrange_worker(shared: &Arc<Shared>) -> LatestSender<Request> {
    let mut arranger = Arranger::default();
    let mut last_done: Option<Instant> = None;
    let mut overlaps = Overlaps::default();
    worker(shared, "sort and filter", move |shared, mut request: Request, turn| {
        let rest = last_done.map_or(Duration::ZERO, |done| CALM_PERIOD.saturating_sub(done.elapsed()));
        if request.pace == Pace::Calm && turn.is_over_within(rest) {
            return true;
        }
        let cancelled = || turn.is_over();
        if let Some(run) = request.run {
            let found = guarded(|| Ok(overlaps.of(shared, run, &request.what, &cancelled)));
            request.what.suppressed = found.unwrap_or_else(|reason| {
                shared.report_problem(reason);
                None
            });
        }
        let is_open = send_arrangement(shared, &mut arranger, &request, &cancelled);
        last_done = Some(Instant::now());
        is_open
    })
}

/// Sends the urgent order first, then the statistics. False if the window is gone.
fn send_arrangement(shared: &Shared, arranger: &mut Arranger, request: &Request, cancelled: &dyn Fn() -> bool) -> bool {
    let id = request.id;
    let arranged = guarded(|| Ok(arranger.arrange(&request.what, cancelled)));
    let arrangement: Arrangement = match arranged {
        Ok(Some(arrangement)) => arrangement,
        Ok(None) => return true,
        Err(reason) => {
            // Its state may be inconsistent after a panic.
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

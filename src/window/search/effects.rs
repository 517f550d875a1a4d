//! Searching, sorting and counting, next to the window's thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::review::{Arrangement, Arranger, Statistics, outcome_counts, statistics};
use crate::window::effects::latest::{LatestSender, worker};
use crate::window::effects::{Shared, guarded};
use crate::window::filmstrip::effects::overlaps::Overlaps;
use crate::window::state::{ArrangeEffect, Pace, SearchEvent};

/// The shortest time between two arrangements while predictions stream in.
const CALM_PERIOD: Duration = Duration::from_millis(150);

pub(crate) fn arrange_worker(shared: &Arc<Shared>) -> LatestSender<ArrangeEffect> {
    let mut arranger = Arranger::default();
    let mut last_done: Option<Instant> = None;
    let mut overlaps = Overlaps::default();
    worker(shared, "sort and filter", move |shared, mut effect: ArrangeEffect, turn| {
        let rest = last_done.map_or(Duration::ZERO, |done| CALM_PERIOD.saturating_sub(done.elapsed()));
        if effect.pace == Pace::Calm && turn.is_over_within(rest) {
            return true;
        }
        let cancelled = || turn.is_over();
        if let Some(run) = effect.run {
            let found = guarded(|| Ok(overlaps.hidden(shared, run, &effect.request, &cancelled)));
            effect.request.suppressed = found.unwrap_or_else(|reason| {
                shared.report_problem(reason);
                None
            });
        }
        let is_open = send_arrangement(shared, &mut arranger, &effect, &cancelled);
        last_done = Some(Instant::now());
        is_open
    })
}

/// Sends the urgent order first, then the statistics. False if the window is gone.
fn send_arrangement(
    shared: &Shared,
    arranger: &mut Arranger,
    ArrangeEffect { id, request, .. }: &ArrangeEffect,
    cancelled: &dyn Fn() -> bool,
) -> bool {
    let id = *id;
    let arranged = guarded(|| Ok(arranger.arrange(request, cancelled)));
    let arrangement: Arrangement = match arranged {
        Ok(Some(arrangement)) => arrangement,
        Ok(None) => return true,
        Err(reason) => {
            // Its state may be inconsistent after a panic.
            *arranger = Arranger::default();
            return shared.report(SearchEvent::Failed { id, reason });
        }
    };
    if !shared.report(SearchEvent::Arranged { id, arrangement, suppressed: request.suppressed.clone() }) {
        return false;
    }
    let Some(predictions) = &request.predictions else {
        let statistics = None;
        return shared.report(SearchEvent::Counted { id, statistics });
    };
    let (view, marks) = (&request.view, &request.marks);
    let suppressed = request.suppressed.as_ref();
    match guarded(|| Ok(statistics(predictions, view, suppressed, marks, cancelled))) {
        Ok(None) => true,
        Ok(Some(counted)) => {
            let outcomes = guarded(|| Ok(outcome_counts(request, cancelled))).unwrap_or_else(|reason| {
                shared.report_problem(reason);
                None
            });
            if request.outcomes.is_some() && outcomes.is_none() && cancelled() {
                return true;
            }
            shared.report(SearchEvent::Counted { id, statistics: Some(Statistics { outcomes, ..counted }) })
        }
        Err(reason) => shared.report(SearchEvent::Failed { id, reason }),
    }
}

//! The order of images on screen: what was requested, the current order, and the one that is being computed.
//!
//! An order is computed by a worker from snapshots. What it depends on is written down with each request ([`Basis`]),
//! and after every message the state is compared with that: so nothing that changes an order can be forgotten, and
//! nothing is computed twice.

use std::sync::Arc;

use super::{Derived, Loadable, Order, RequestId, SourceId, State};
use crate::domain::{RunId, ViewSettings};
use crate::review::{
    ArrangeRequest, Arrangement, Completion, FilterCounts, OutcomeClass, Query, QueryError, Sort, Statistics,
    Suppressed, complete,
};

/// The search field, the sort menu, and what came of them.
#[derive(Debug, Default)]
pub struct Arranging {
    /// The search text as it was typed.
    text: String,
    /// The last text that could be understood.
    query: Query,
    error: Option<QueryError>,
    sort: Sort,
    /// What to do when the requested order is there.
    on_arrival: Option<OnArrival>,
    scroll: ScrollRequest,
    arrangement: Derived<Basis, Arc<Arrangement>>,
    /// They come after the order.
    statistics: Derived<Basis, Option<Arc<Statistics>>>,
    /// Boxes that are hidden by better ones, as far as that is known.
    pub(super) suppressed: Option<Suppressed>,
    /// The position of the shown sample on screen, or the one it would have if it had not dropped out.
    pub(super) place: usize,
}

/// What the grid is to scroll to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScrollRequest {
    /// Tells two requests apart.
    number: u64,
    pub target: ScrollTarget,
}

impl ScrollRequest {
    pub fn new(number: u64, target: ScrollTarget) -> Self {
        Self { number, target }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScrollTarget {
    #[default]
    FirstImage,
    ShownImage,
}

/// What to do when a requested order is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnArrival {
    /// Show the first image: the position of the shown one says nothing in another sort, and Enter in the search field
    /// asks for it.
    ShowFirst,
    ScrollTo(ScrollTarget),
}

/// All that an order and the statistics depend on, so far that a change of it can be seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Basis {
    request: ArrangeKey,
    view: ViewSettings,
    data: Data,
}

/// What the user requested: an order that was computed for another request is dropped.
#[derive(Debug, Clone, PartialEq)]
struct ArrangeKey {
    source: SourceId,
    run: Option<RunId>,
    query: Query,
    sort: Sort,
}

/// Changes that do not come from the user while an order is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Data {
    samples: u64,
    predictions: u64,
    marks: u64,
    /// The number of the comparison; zero for none.
    compared: u64,
    /// The number of the evaluation.
    evaluated: u64,
}

/// The urgency of a new order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The user waits for it.
    AtOnce,
    /// Not too often: predictions are streaming in.
    Calm,
}

impl Basis {
    /// Whether the user requested the same.
    pub(super) fn is_same_question(&self, other: &Self) -> bool {
        self.request == other.request
    }

    /// Whether both are about the same run of the same source.
    pub(super) fn is_same_run(&self, other: &Self) -> bool {
        (self.request.source, self.request.run) == (other.request.source, other.request.run)
    }
}

impl Arranging {
    /// The text in the search field.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why the text is not a valid query; the query before it holds meanwhile.
    pub fn error(&self) -> Option<&QueryError> {
        self.error.as_ref()
    }

    pub fn sort(&self) -> Sort {
        self.sort
    }

    /// Whether a query leaves images out.
    pub fn is_filtered(&self) -> bool {
        !self.query.is_empty()
    }

    /// Whether the query compares boxes with the ground truth.
    pub fn is_about_truth(&self) -> bool {
        self.query.needs_truth()
    }

    /// Whether the order on screen is not yet the requested one.
    pub fn is_under_way(&self) -> bool {
        self.statistics.is_under_way()
    }

    /// How many samples each quick filter would show; `None` before the first count.
    pub fn counts(&self) -> Option<&FilterCounts> {
        self.arrangement.value().map(|made| &made.counts)
    }

    /// Statistics of the current run; `None` before the first count.
    pub fn statistics(&self) -> Option<&Arc<Statistics>> {
        self.statistics.value()?.as_ref()
    }

    pub(super) fn set_text(&mut self, text: String) {
        match Query::parse(&text) {
            Ok(query) => {
                self.query = query;
                self.error = None;
            }
            Err(error) => self.error = Some(error),
        }
        self.text = text;
    }

    pub fn scroll(&self) -> ScrollRequest {
        self.scroll
    }

    /// Whether the order on screen is of another search or sort than the one that was asked for.
    pub fn is_searching(&self) -> bool {
        let Some((_, pending)) = self.statistics.pending() else {
            return false;
        };
        match self.arrangement.inputs() {
            Some(arranged) => {
                (&arranged.request.query, arranged.request.sort) != (&pending.request.query, pending.request.sort)
            }
            None => !pending.request.query.is_empty(),
        }
    }

    /// The user searches: the results begin at the first one; without a search, the shown image is scrolled to.
    pub(super) fn search_anew(&mut self, text: String) {
        let before = self.query.clone();
        self.set_text(text);
        if self.query != before {
            let target = if self.query.is_empty() { ScrollTarget::ShownImage } else { ScrollTarget::FirstImage };
            self.on_arrival.get_or_insert(OnArrival::ScrollTo(target));
        }
    }

    pub(super) fn set_sort(&mut self, sort: Sort) {
        self.sort = sort;
    }

    /// The user chooses a sort.
    pub(super) fn sort_anew(&mut self, sort: Sort) {
        if sort != self.sort {
            self.show_first();
        }
        self.sort = sort;
    }

    /// Shows the first image of the requested order as soon as it is there.
    pub(super) fn show_first(&mut self) {
        self.on_arrival = Some(OnArrival::ShowFirst);
    }

    /// What to do with the order that has just come; once.
    pub(super) fn take_arrival(&mut self) -> Option<OnArrival> {
        let arrival = self.on_arrival.take();
        let target = match arrival? {
            OnArrival::ShowFirst => ScrollTarget::FirstImage,
            OnArrival::ScrollTo(target) => target,
        };
        self.scroll = ScrollRequest::new(self.scroll.number + 1, target);
        arrival
    }

    /// Resets the search for another source.
    pub(super) fn source_changed(&mut self) {
        *self = Self { sort: self.sort, ..Self::default() };
    }

    /// Whether the order that is there is what this basis asks for.
    pub(super) fn is_arranged(&self, basis: &Basis) -> bool {
        self.arrangement.inputs().is_some_and(|arranged| arranged.is_same_question(basis))
    }

    /// How urgently the state has to be arranged anew; `None` where what is there, or under way, is of the state as it
    /// is.
    pub(super) fn requested(&self, basis: &Basis) -> Option<Pace> {
        match self.arrangement.newest() {
            None => Some(Pace::AtOnce),
            Some(newest) if newest.request != basis.request => Some(Pace::AtOnce),
            // Others wait for what is under way: while a threshold is dragged, each result is late instead of none in
            // time.
            Some(_) if self.is_under_way() => None,
            Some(newest) if newest.view != basis.view => Some(Pace::AtOnce),
            Some(newest) if newest.data != basis.data => Some(Pace::Calm),
            Some(_) if self.statistics.inputs() != Some(basis) => Some(Pace::AtOnce),
            Some(_) => None,
        }
    }

    /// The question that is being worked on.
    #[cfg(test)]
    pub(super) fn asked_id(&self) -> Option<RequestId> {
        self.statistics.pending().map(|(id, _)| *id)
    }

    pub(super) fn begin(&mut self, id: RequestId, basis: Basis) {
        self.arrangement.begin(id, basis.clone());
        self.statistics.begin(id, basis);
    }

    /// False if this arrangement is no longer awaited.
    pub(super) fn take_arrangement(&mut self, id: RequestId, arrangement: Arrangement) -> bool {
        self.arrangement.take(id, Arc::new(arrangement))
    }

    /// The second and last part of the result.
    pub(super) fn take_statistics(&mut self, id: RequestId, statistics: Option<Statistics>) {
        self.statistics.take(id, statistics.map(Arc::new));
    }

    /// Ends a request whose worker panicked: the order stays, and the same request is not sent again.
    pub(super) fn cancel(&mut self, id: RequestId) {
        self.on_arrival = None;
        self.arrangement.fail(id);
        self.statistics.fail(id);
    }
}

impl State {
    /// The order of the grid, first to last. Until a new order is computed, the one before holds.
    pub fn order(&self) -> Order {
        let arranging = &self.arranging;
        // The listing's own order needs no computing, so that new images are on screen at once.
        let is_plain = arranging.query.is_empty() && arranging.sort == Sort::default();
        match arranging.arrangement.value() {
            Some(arrangement) if !is_plain => Order::arranged(Arc::clone(arrangement)),
            _ => Order::of_listing(self.samples.len()),
        }
    }

    /// The boxes that the view hides because better ones overlap them, as far as that is known.
    pub fn suppressed(&self) -> Option<&Suppressed> {
        self.arranging.suppressed.as_ref()
    }

    /// How the word before `cursor` (in bytes) of a text in the search field can go on.
    pub fn completions(&self, text: &str, cursor: usize) -> Vec<Completion> {
        let empty = crate::domain::LabelSet::default();
        let labels = self.viewed_labels().unwrap_or(&empty);
        let tags: Vec<String> = self.judgments.known_tags().map(str::to_owned).collect();
        complete(text, cursor, labels, self.truth_classes(), &tags)
    }

    /// The parts of the query that cannot match with the current model, and why.
    pub fn query_warnings(&self) -> Vec<QueryError> {
        let query = &self.arranging.query;
        let warnings = |run: &super::Run| query.warnings(run.task(), run.labels(), self.truth_classes());
        let mut warnings = self.run().map(warnings).unwrap_or_default();
        let compared = self.comparing.as_ref();
        if query.needs_comparison() && compared.is_none_or(|it| it.agreement().is_none()) {
            warnings.push(QueryError {
                at: 0..self.arranging.text.len(),
                message: "“changed” needs a comparison; compare two runs under Runs".to_owned(),
            });
        }
        if query.needs_truth() && self.evaluated().is_none() {
            let message = match &self.evaluating {
                None => "This search needs ground truth; open it with “Open ground truth…” in the Evaluate menu",
                Some(_) if self.search_awaits_evaluation() => "This search is waiting for the evaluation",
                Some(_) => "This search needs the evaluation, which failed or was canceled; see the Evaluation panel",
            };
            warnings.push(QueryError { at: 0..self.arranging.text.len(), message: message.to_owned() });
        }
        warnings
    }

    /// Whether the search compares boxes with ground truth that is open, but not evaluated yet.
    pub fn search_awaits_evaluation(&self) -> bool {
        let is_over = |evaluating: &super::Evaluating| {
            let truth_was_cancelled = matches!(evaluating.truth, Loadable::NotLoaded) && !evaluating.is_due;
            let was_ended = |run: &super::RunEvaluation| run.basis.is_some() && !run.status.is_loading();
            truth_was_cancelled || evaluating.truth.failure().is_some() || self.evaluation().is_some_and(was_ended)
        };
        self.arranging.is_about_truth() && self.evaluating.as_ref().is_some_and(|evaluating| !is_over(evaluating))
    }

    /// The classes of the ground truth that the run on screen was compared with.
    pub fn truth_classes(&self) -> &[OutcomeClass] {
        self.evaluated().map_or(&[], |run| &run.outcomes.classes)
    }

    /// `None` while nothing is open.
    pub(super) fn basis(&self) -> Option<Basis> {
        let run = self.run();
        Some(Basis {
            request: ArrangeKey {
                source: self.source.as_ref()?.id,
                run: run.map(super::Run::id),
                query: self.arranging.query.clone(),
                sort: self.arranging.sort,
            },
            view: self.view().into_owned(),
            data: Data {
                samples: self.samples.revision(),
                predictions: run.map_or(0, |run| run.predictions.revision()),
                marks: self.judgments.marks().revision(),
                compared: self.comparison_number,
                evaluated: self.evaluation_number,
            },
        })
    }

    /// Snapshots of all that the basis speaks of.
    pub(super) fn arrange_request(&self) -> ArrangeRequest {
        let run = self.run();
        ArrangeRequest {
            listing: self.source.as_ref().map_or(0, |source| source.id.0),
            samples: self.samples.snapshot(),
            unreadable: self.samples.all_unreadable(),
            predictions: run.map(|run| run.predictions.clone()),
            outdated: run.map(|run| run.outdated().clone()).unwrap_or_default(),
            labels: run.map(|run| run.labels().clone()).unwrap_or_default(),
            view: self.view().into_owned(),
            marks: self.judgments.marks().clone(),
            disagreement: self.comparing.as_ref().and_then(|comparing| comparing.column().cloned()),
            changes: self.comparing.as_ref().map(super::Comparing::changes).unwrap_or_default(),
            outcomes: self.evaluated().map(|run| Arc::clone(&run.outcomes)),
            other: self.other_run(),
            query: self.arranging.query.clone(),
            sort: self.arranging.sort,
            ..ArrangeRequest::default()
        }
    }
}

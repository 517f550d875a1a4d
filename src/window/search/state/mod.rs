//! The order of images on screen: the requested one, the current one, and the one that is being computed.
//!
//! A worker computes an order from snapshots. Each request records what it depends on ([`Basis`]), and the state is
//! compared with it after every message, so that no change is missed and nothing is computed twice.

pub(crate) mod order;

use std::sync::Arc;

use crate::domain::{GeoPoint, RunId, ViewSettings, grouped};
use crate::review::{
    ArrangeRequest, Arrangement, BoxQuery, Completion, FilterCounts, Folders, KnownNames, OutcomeClass, Query,
    QueryError, Sort, SortBy, Statistics, Suppressed, complete,
};
use crate::window::state;
use crate::window::state::{
    CaptureReading, Derived, Evaluating, Loadable, Order, RequestId, Run, RunEvaluation, SourceId, State,
};

#[derive(Debug, Clone, PartialEq)]
pub enum SearchCommand {
    SetQuery(String),
    /// Searches for boxes, and shows them in the filmstrip.
    ShowBoxes(BoxQuery),
    /// Shows the first search result.
    ShowFirstFound,
    SetSort(Sort),
}

/// Search, sort and count. Replaces the previous request.
#[derive(Debug, Clone)]
pub struct ArrangeEffect {
    pub id: RequestId,
    pub pace: Pace,
    /// The run whose predictions are in the request: the positions of their boxes are in the project.
    pub run: Option<(SourceId, RunId)>,
    pub request: Box<ArrangeRequest>,
}

#[derive(Debug)]
pub enum SearchEvent {
    /// The requested order.
    Arranged {
        id: RequestId,
        arrangement: Arrangement,
        /// The boxes hidden by better ones, if the view hides any.
        suppressed: Option<Suppressed>,
    },
    /// The statistics of the order, which come last; `None` without a run.
    Counted {
        id: RequestId,
        statistics: Option<Statistics>,
    },
    Failed {
        id: RequestId,
        reason: String,
    },
}

/// The search field, the sort menu and their results.
#[derive(Debug, Default)]
pub struct Arranging {
    /// The search text as typed.
    text: String,
    /// The last valid query.
    query: Query,
    error: Option<QueryError>,
    sort: Sort,
    /// The action to take when the requested order arrives.
    on_arrival: Option<OnArrival>,
    scroll: ScrollRequest,
    arrangement: Derived<Basis, Arc<Arrangement>>,
    /// Arrive after the order.
    statistics: Derived<Basis, Option<Arc<Statistics>>>,
    /// Boxes hidden by better ones, as far as known.
    pub(crate) suppressed: Option<Suppressed>,
    /// The position of the shown sample on screen, or the one it would have if it were not filtered out.
    pub(crate) place: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScrollRequest {
    /// Distinguishes two requests.
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

/// The action to take when a requested order arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnArrival {
    /// Show the first image: the position of the shown one is meaningless in another sort, and Enter in the search
    /// field asks for it.
    ShowFirst,
    ScrollTo(ScrollTarget),
}

/// Everything that an order and the statistics depend on, in a form that reveals changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Basis {
    request: ArrangeKey,
    view: ViewSettings,
    data: Data,
}

/// The user's request; an order computed for another request is dropped.
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
    /// The number of the comparison; 0 if there is none.
    compared: u64,
    /// The number of the search for similar images.
    alike: u64,
    /// The numbers of the search for duplicates and of the values to sort by.
    duplicates: u64,
    measured: u64,
    evaluated: u64,
    /// The number of the sample.
    sampled: u64,
    /// The number of the selection on the map.
    picked: u64,
}

/// The urgency of a new order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The user is waiting for it.
    AtOnce,
    /// Limited in frequency, because predictions are streaming in.
    Calm,
}

impl Basis {
    /// Whether the user's request is the same.
    pub(crate) fn is_same_question(&self, other: &Self) -> bool {
        self.request == other.request
    }

    /// Whether both belong to the same run of the same source.
    pub(crate) fn is_same_run(&self, other: &Self) -> bool {
        (self.request.source, self.request.run) == (other.request.source, other.request.run)
    }
}

impl Arranging {
    /// The text in the search field.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why the text is not a valid query; the previous query stays in effect meanwhile.
    pub fn error(&self) -> Option<&QueryError> {
        self.error.as_ref()
    }

    pub fn sort(&self) -> Sort {
        self.sort
    }

    /// Whether a query filters images out.
    pub fn is_filtered(&self) -> bool {
        !self.query.is_empty()
    }

    /// Whether the query compares boxes with the ground truth.
    pub fn is_about_truth(&self) -> bool {
        self.query.needs_truth()
    }

    /// The image to compare with, if the query names one.
    pub(crate) fn similar_to(&self) -> Option<String> {
        self.query.similar_to()
    }

    /// Whether the query is about suspicious labels.
    pub fn is_about_suspects(&self) -> bool {
        self.query.is_about_suspects()
    }

    /// The location that the search names.
    pub fn center(&self) -> Option<GeoPoint> {
        self.query.center()
    }

    /// Whether the query or the sort order uses EXIF data.
    pub fn needs_captures(&self) -> bool {
        self.query.needs_captures() || self.sort.by.needs_captures()
    }

    /// Whether the query or the sort order is about duplicates.
    pub fn is_about_duplicates(&self) -> bool {
        self.query.needs_duplicates() || self.sort.by == SortBy::Duplicates
    }

    /// Whether the query is about the sample to judge.
    pub fn is_about_sample(&self) -> bool {
        self.query.needs_sample()
    }

    /// Whether the requested order is still being computed.
    pub fn is_under_way(&self) -> bool {
        self.statistics.is_under_way()
    }

    /// The number of samples per quick filter; `None` before the first count.
    pub fn counts(&self) -> Option<&FilterCounts> {
        self.arrangement.value().map(|made| &made.counts)
    }

    /// The folders with counts; `None` before the first count.
    pub fn folders(&self) -> Option<&Folders> {
        self.arrangement.value().map(|made| &made.folders)
    }

    /// Statistics of the current run; `None` before the first count.
    pub fn statistics(&self) -> Option<&Arc<Statistics>> {
        self.statistics.value()?.as_ref()
    }

    pub(crate) fn set_text(&mut self, text: String) {
        self.set_query(Query::parse(&text), text);
    }

    fn set_query(&mut self, query: Result<Query, QueryError>, text: String) {
        match query {
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

    /// Whether the order on screen belongs to a different search or sort than requested.
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

    /// Starts a search. Results start at the first one; without a search, the grid scrolls to the shown image.
    pub(crate) fn search_anew(&mut self, query: Result<Query, QueryError>, text: String) {
        let before = self.query.clone();
        self.set_query(query, text);
        if self.query != before {
            let target = if self.query.is_empty() { ScrollTarget::ShownImage } else { ScrollTarget::FirstImage };
            self.on_arrival.get_or_insert(OnArrival::ScrollTo(target));
        }
    }

    pub(crate) fn set_sort(&mut self, sort: Sort) {
        self.sort = sort;
    }

    /// Changes the sort order.
    pub(crate) fn sort_anew(&mut self, sort: Sort) {
        if sort != self.sort {
            self.show_first();
        }
        self.sort = sort;
    }

    /// Shows the first image of the requested order when it arrives.
    pub(crate) fn show_first(&mut self) {
        self.on_arrival = Some(OnArrival::ShowFirst);
    }

    /// Takes the action for the order that has just arrived.
    pub(crate) fn take_arrival(&mut self) -> Option<OnArrival> {
        let arrival = self.on_arrival.take();
        let target = match arrival? {
            OnArrival::ShowFirst => ScrollTarget::FirstImage,
            OnArrival::ScrollTo(target) => target,
        };
        self.scroll = ScrollRequest::new(self.scroll.number + 1, target);
        arrival
    }

    /// Resets the search for another source.
    pub(crate) fn source_changed(&mut self) {
        *self = Self { sort: self.sort, ..Self::default() };
    }

    /// Whether the current order matches this basis.
    pub(crate) fn is_arranged(&self, basis: &Basis) -> bool {
        self.arrangement.inputs().is_some_and(|arranged| arranged.is_same_question(basis))
    }

    /// The urgency of a new order; `None` if the current or pending one matches the state.
    pub(crate) fn requested(&self, basis: &Basis) -> Option<Pace> {
        match self.arrangement.newest() {
            None => Some(Pace::AtOnce),
            Some(newest) if newest.request != basis.request => Some(Pace::AtOnce),
            // Others wait for the pending one: while a threshold is dragged, every result arrives late, but none is
            // skipped.
            Some(_) if self.is_under_way() => None,
            Some(newest) if newest.view != basis.view => Some(Pace::AtOnce),
            Some(newest) if newest.data != basis.data => Some(Pace::Calm),
            Some(_) if self.statistics.inputs() != Some(basis) => Some(Pace::AtOnce),
            Some(_) => None,
        }
    }

    #[cfg(test)]
    pub(crate) fn asked_id(&self) -> Option<RequestId> {
        self.statistics.pending().map(|(id, _)| *id)
    }

    pub(crate) fn begin(&mut self, id: RequestId, basis: Basis) {
        self.arrangement.begin(id, basis.clone());
        self.statistics.begin(id, basis);
    }

    /// Stores an arrangement; false if it is no longer expected.
    pub(crate) fn take_arrangement(&mut self, id: RequestId, arrangement: Arrangement) -> bool {
        self.arrangement.take(id, Arc::new(arrangement))
    }

    /// Stores the statistics, the second and last part of the result.
    pub(crate) fn take_statistics(&mut self, id: RequestId, statistics: Option<Statistics>) {
        self.statistics.take(id, statistics.map(Arc::new));
    }

    /// Ends a request whose worker panicked: the order stays, and the same request is not repeated.
    pub(crate) fn cancel(&mut self, id: RequestId) {
        self.on_arrival = None;
        self.arrangement.fail(id);
        self.statistics.fail(id);
    }
}

impl State {
    /// The order of the grid. The previous order applies until a new one is computed.
    pub fn order(&self) -> Order {
        let arranging = &self.arranging;
        // The listing's own order needs no computation, so new images appear immediately.
        let is_plain = arranging.query.is_empty() && arranging.sort == Sort::default();
        match arranging.arrangement.value() {
            Some(arrangement) if !is_plain => Order::arranged(Arc::clone(arrangement)),
            _ => Order::from_listing(self.samples.len()),
        }
    }

    /// The boxes that the view hides because better ones overlap them, as far as known.
    pub fn suppressed(&self) -> Option<&Suppressed> {
        self.arranging.suppressed.as_ref()
    }

    /// Completions for the word before `cursor` (in bytes) in the search field.
    pub fn completions(&self, text: &str, cursor: usize) -> Vec<Completion> {
        let empty = crate::domain::LabelSet::default();
        let labels = self.viewed_labels().unwrap_or(&empty);
        let tags: Vec<String> = self.judgments.known_tags().map(str::to_owned).collect();
        let cameras = self.samples.cameras();
        complete(text, cursor, KnownNames { labels, truth: self.truth_classes(), tags: &tags, cameras })
    }

    /// The parts of the query that cannot match with the current model, with reasons.
    pub fn query_warnings(&self) -> Vec<String> {
        let query = &self.arranging.query;
        let warnings = |run: &Run| query.warnings(run.predictions.task(), run.labels(), self.truth_classes());
        let mut warnings = self.run().map(warnings).unwrap_or_default();
        let compared = self.comparing.as_ref();
        if query.needs_comparison() && compared.is_none_or(|it| it.agreement().is_none()) {
            warnings.push("This search needs a comparison; compare two runs under Runs".to_owned());
        }
        let unread = self.samples.without_capture();
        if self.arranging.needs_captures() && unread > 0 {
            let count = format!("{} of {} images", grouped(unread), grouped(self.samples.len()));
            warnings.push(match self.capture_reading {
                CaptureReading::Stopped => format!(
                    "The EXIF data of {count} is unknown, because reading it was canceled or failed; to read it, clear \
                     the search and the sort order, and set them again"
                ),
                _ => format!("The EXIF data of {count} is not read yet; they are missing here"),
            });
        }
        if query.needs_patterns() && self.error_patterns().is_none() {
            warnings.push(
                "This search needs error patterns; find them with “Find error patterns” in the Evaluate menu"
                    .to_owned(),
            );
        }
        if query.needs_sample() && matches!(self.spot_checks.sample, Loadable::NotLoaded) {
            warnings.push("This run has no sample; draw one with “Spot-check a sample…” in the Judge menu".to_owned());
        }
        if query.needs_picked() && self.map.picked.is_empty() {
            warnings.push("No images are selected on the map; open it with “Map” in the View menu".to_owned());
        }
        if query.needs_truth() && self.evaluated().is_none() {
            let message = match &self.evaluating {
                None => "This search needs ground truth; open it with “Open ground truth…” in the Evaluate menu",
                Some(_) if self.search_awaits_evaluation() => "This search is waiting for the evaluation",
                Some(_) => "This search needs the evaluation, which failed or was canceled; see the Evaluation panel",
            };
            warnings.push(message.to_owned());
        }
        warnings
    }

    /// Whether the search compares boxes with ground truth that is open but not evaluated yet.
    pub fn search_awaits_evaluation(&self) -> bool {
        let is_over = |evaluating: &Evaluating| {
            let truth_was_cancelled = matches!(evaluating.truth, Loadable::NotLoaded) && !evaluating.is_due;
            let was_ended = |run: &RunEvaluation| run.basis.is_some() && !run.status.is_loading();
            truth_was_cancelled || evaluating.truth.failure().is_some() || self.evaluation().is_some_and(was_ended)
        };
        self.arranging.is_about_truth() && self.evaluating.as_ref().is_some_and(|evaluating| !is_over(evaluating))
    }

    /// The ground-truth classes that the run on screen was compared with.
    pub fn truth_classes(&self) -> &[OutcomeClass] {
        self.evaluated().map_or(&[], |run| &run.outcomes.classes)
    }

    /// The search for similar images, if its images and run are on screen.
    pub(crate) fn alike(&self) -> Option<&state::Alike> {
        let (source, run) = (self.source.as_ref()?.id, self.run()?.id());
        self.alike.as_ref().filter(|alike| (alike.source, alike.run) == (source, run))
    }

    /// How the values that images are sorted by were computed: metric, encoder, layer and thresholds. `None` if by no
    /// comparison of images.
    pub(crate) fn sort_description(&self) -> Option<String> {
        match self.arranging.sort().by {
            SortBy::Similarity => Some(self.alike()?.description.clone()),
            SortBy::Duplicates => Some(self.found_duplicates()?.description()),
            by => {
                let (measure, measured) = by.measure().zip(self.measured())?;
                measured.values.contains_key(&measure).then(|| measured.description(measure))
            }
        }
    }

    /// The current basis; `None` while nothing is open.
    pub(crate) fn basis(&self) -> Option<Basis> {
        let run = self.run();
        Some(Basis {
            request: ArrangeKey {
                source: self.source.as_ref()?.id,
                run: run.map(state::Run::id),
                query: self.arranging.query.clone(),
                sort: self.arranging.sort,
            },
            view: self.view().into_owned(),
            data: Data {
                samples: self.samples.revision(),
                predictions: run.map_or(0, |run| run.predictions.revision()),
                marks: self.judgments.marks().revision(),
                compared: self.comparison_number,
                alike: self.alike().map_or(0, |alike| alike.number),
                duplicates: self.found_duplicates().map_or(0, |found| found.number),
                measured: self.measured().map_or(0, |measured| measured.number),
                evaluated: self.evaluation_number,
                sampled: self.spot_checks.number,
                picked: self.map.picked_number,
            },
        })
    }

    /// Snapshots of everything that the basis covers.
    pub(crate) fn arrange_request(&self) -> ArrangeRequest {
        let run = self.run();
        ArrangeRequest {
            listing: self.source.as_ref().map_or(0, |source| source.id.0),
            samples: self.samples.snapshot(),
            unreadable: self.samples.all_unreadable(),
            predictions: run.map(|run| run.predictions.clone()),
            outdated: run.map(|run| run.outdated().clone()).unwrap_or_default(),
            sampled: self.sampled_images(),
            picked: self.map.picked.clone(),
            labels: run.map(|run| run.labels().clone()).unwrap_or_default(),
            view: self.view().into_owned(),
            marks: self.judgments.marks().clone(),
            disagreement: self.comparing.as_ref().and_then(|comparing| comparing.column().cloned()),
            similarity: self.alike().map(|alike| Arc::clone(&alike.similarity)),
            patterns: self.error_patterns().map(|found| Arc::clone(&found.sets)).unwrap_or_default(),
            duplicates: self.found_duplicates().map(|found| found.places.clone()).unwrap_or_default(),
            measured: self.measured().map(|measured| Arc::clone(&measured.values)).unwrap_or_default(),
            changes: self.comparing.as_ref().map(state::Comparing::changes).unwrap_or_default(),
            outcomes: self.evaluated().map(|run| Arc::clone(&run.outcomes)),
            other: self.other_run(),
            query: self.arranging.query.clone(),
            sort: self.arranging.sort,
            ..ArrangeRequest::default()
        }
    }
}

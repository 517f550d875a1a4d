//! Finding duplicates, tagging them, and values for sort orders.

use crate::domain::{SampleId, counted};
use crate::review::{Direction, Sort, SortBy};
use crate::tasks::ProgressUnit;
use crate::window::duplicates::state::{DuplicateOptions, DuplicatesRequest, FoundDuplicates, MeasureBasis, Measured};
use crate::window::judge::update::verdicts;
use crate::window::search;
use crate::window::state::{Arc, BrowseEffect, Failure, SearchCommand, State, TaskId, TaskKind};
use crate::window::tasks::update::{begin, cancel, end};

/// The tag of images that are not the first of their group.
pub(crate) const TAG: &str = "duplicate";

/// Compares all images.
pub(crate) fn find(state: &mut State) {
    let Some(source) = state.source_id() else {
        return;
    };
    let before = state.duplicates.task.take();
    cancel(state, before);
    let count = counted(state.samples.len(), "image", "images");
    let title = format!("Find duplicates among {count}");
    let ticket = begin(state, TaskKind::FindDuplicates, ProgressUnit::Images, title);
    state.duplicates.task = Some(ticket.id);
    let request = DuplicatesRequest {
        source,
        predictions: state.run().map(|run| (run.id(), run.predictions.predicted())),
        samples: state.samples.snapshot(),
        revision: state.samples.revision(),
        options: state.duplicates.options,
    };
    state.effects.push(BrowseEffect::FindDuplicates { request, ticket });
}

/// Groups the images again, with other thresholds.
pub(crate) fn set_options(state: &mut State, options: DuplicateOptions) {
    if state.duplicates.options != options {
        state.duplicates.options = options;
        find(state);
    }
}

/// Shows the groups next to each other.
pub(crate) fn found(state: &mut State, task: TaskId, result: Result<Arc<FoundDuplicates>, Failure>) {
    end(state, task, result.as_ref().err());
    if state.duplicates.task != Some(task) {
        return;
    }
    state.duplicates.task = None;
    let found = match result {
        Ok(found) => found,
        Err(Failure::Cancelled) => return,
        Err(Failure::Failed { message, .. }) => {
            state.report_problem(message);
            return;
        }
    };
    state.duplicates.found = Some(Arc::clone(&found));
    if found.places.groups == 0 {
        state.show_notice(found.summary());
    }
    let is_open = state.found_duplicates().is_some();
    if is_open && found.places.groups > 0 && !state.arranging.is_about_duplicates() {
        state.settings.show_images_panel = true;
        state.arranging.set_sort(Sort { by: SortBy::Duplicates, direction: Direction::Ascending });
        search::update::on_command(state, SearchCommand::SetQuery("duplicate".to_owned()));
    }
}

/// Tags every image of a group but the first.
pub(crate) fn tag_copies(state: &mut State) {
    let Some(found) = state.found_duplicates() else {
        return;
    };
    let copies: Vec<SampleId> = found.places.extra().map(SampleId::from_index).collect();
    let label = format!("tag {} “{TAG}”", counted(copies.len(), "copy", "copies"));
    verdicts::add_tag_to(state, &copies, TAG, label);
}

/// Shows all images again.
pub(crate) fn close(state: &mut State) {
    state.arranging.set_sort(Sort::default());
    search::update::on_command(state, SearchCommand::SetQuery(String::new()));
}

/// Starts or cancels the computation of what the images are sorted by. Called after every message.
pub(crate) fn follow(state: &mut State) {
    let Some(measure) = state.arranging.sort().by.measure() else {
        state.measuring.attempt = None;
        let task = state.measuring.task.take();
        cancel(state, task);
        return;
    };
    let (Some(source), Some(run)) = (state.source_id(), state.run()) else {
        return;
    };
    let is_saving = state.project.is_writable() && state.project.unsaved() > 0;
    if state.is_listing() || !run.is_loaded() || state.tasks.prediction_is_running() || is_saving {
        return;
    }
    let basis = MeasureBasis { source, run: run.id(), predicted: run.predictions.predicted(), measure };
    let is_known = state.measured().is_some_and(|measured| {
        measured.basis.predicted == basis.predicted && measured.values.contains_key(&basis.measure)
    });
    if !is_known && state.measuring.task.is_none() && state.measuring.attempt != Some(basis) {
        begin_measuring(state, basis);
    }
}

fn begin_measuring(state: &mut State, basis: MeasureBasis) {
    let name: &str = state.arranging.sort().by.into();
    let ticket = begin(state, TaskKind::Measure, ProgressUnit::Steps, format!("Compute {}", name.to_lowercase()));
    state.measuring.task = Some(ticket.id);
    state.measuring.attempt = Some(basis);
    let samples = state.samples.snapshot();
    state.effects.push(BrowseEffect::Measure { basis, samples, ticket });
}

pub(crate) fn measured(state: &mut State, task: TaskId, result: Result<Measured, Failure>) {
    end(state, task, result.as_ref().err());
    if state.measuring.task != Some(task) {
        return;
    }
    state.measuring.task = None;
    match result {
        Ok(mut measured) => {
            // Those of the same predictions that were computed before stay.
            let same =
                |before: &&Measured| before.basis == MeasureBasis { measure: before.basis.measure, ..measured.basis };
            if let Some(before) = state.measuring.measured.as_ref().filter(same) {
                let mut values = (*before.values).clone();
                values.extend(measured.values.iter().map(|(measure, values)| (*measure, Arc::clone(values))));
                measured.values = Arc::new(values);
            }
            let description = measured.description(measured.basis.measure);
            state.measuring.measured = Some(measured);
            state.show_notice(description);
        }
        Err(Failure::Failed { message, .. }) => state.show_notice(message),
        Err(Failure::Cancelled) => {}
    }
}

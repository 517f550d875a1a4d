//! Comparing two runs.

use std::sync::Arc;

use crate::domain::{RunId, SampleId};
use crate::evaluation::{Agreement, ClassMap, Comparison};
use crate::review::{ClassChanges, Direction, Sort, SortBy, change_key, has_term, with_term, without_comparison};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    CompareLayout, CompareRequest, Compared, Comparing, Failure, Loadable, ReviewEffect, Run, Runs, SearchCommand,
    State, TaskId, TaskKind, ViewChange,
};
use crate::window::tasks::update::settle;
use crate::window::{canvas, evaluation, project, search, tasks};

/// Compares the run on screen with the newest other one, or ends the comparison.
pub(crate) fn toggle(state: &mut State) {
    if state.comparing.is_some() {
        stop(state);
        return;
    }
    let newest = state.comparable_runs().last().map(Run::id);
    if let Some(newest) = newest {
        open(state, newest);
    }
}

/// Compares the run on screen with this one, and shows the page with the result.
pub(crate) fn open(state: &mut State, right: RunId) {
    start(state, right);
    show_page(state, true);
}

/// Shows the page of the comparison in place of the image, or hides it.
pub(crate) fn show_page(state: &mut State, is_shown: bool) {
    if let Some(comparing) = &mut state.comparing {
        comparing.is_shown = is_shown;
        if is_shown {
            state.map.is_shown = false;
            evaluation::update::show_panel(state, false);
        }
    }
}

/// Searches for the images that a word about the comparison stands for, those that changed most first.
pub(crate) fn show_changed(state: &mut State, term: &str) {
    let is_on = has_term(state.arranging.text(), term);
    let others = without_comparison(state.arranging.text());
    let text = if is_on { others } else { with_term(&others, term) };
    search::update::on_command(state, SearchCommand::SetQuery(text));
    let sort = match term {
        "better" | "fixed" => Sort { by: SortBy::ErrorChange, direction: Direction::Ascending },
        "worse" | "regressed" => Sort { by: SortBy::ErrorChange, direction: Direction::Descending },
        _ => Sort { by: SortBy::Disagreement, direction: Direction::Descending },
    };
    search::update::on_command(state, SearchCommand::SetSort(sort));
    state.settings.show_images_panel = true;
}

/// Switches to the next layout that there is something to show for, and compares two runs if it needs them.
pub(crate) fn next_layout(state: &mut State) {
    let layouts = state.layouts();
    // What is on screen counts: another layout may be set for which there is nothing to show.
    let on_screen = state.right_side().map_or(CompareLayout::Overlaid, |_| state.settings.compare_layout);
    let place = layouts.iter().position(|layout| *layout == on_screen).unwrap_or_default();
    set_layout(state, layouts[(place + 1) % layouts.len()]);
    let needs_runs = matches!(state.settings.compare_layout, CompareLayout::SideBySide | CompareLayout::Slider);
    let newest = state.comparable_runs().last().map(Run::id);
    if let Some(newest) = newest.filter(|_| needs_runs && state.comparing.is_none()) {
        start(state, newest);
    }
}

/// Shows the image with this layout.
pub(crate) fn set_layout(state: &mut State, layout: CompareLayout) {
    state.settings.compare_layout = layout;
    state.map.is_shown = false;
    show_page(state, false);
    evaluation::update::show_panel(state, false);
}

/// Shows the run this many steps further in the list; the first follows the last. A comparison keeps its other run.
pub(crate) fn step_run(state: &mut State, by: isize) {
    let Some(current) = state.run_id() else {
        return;
    };
    let runs: Vec<RunId> = state.runs_to_step().collect();
    let Some(place) = runs.iter().position(|run| *run == current) else {
        return;
    };
    let next = runs[(place as isize + by).rem_euclid(runs.len() as isize) as usize];
    let right = state.compared_run();
    project::update::switch_run(state, next);
    if let Some(right) = right {
        start(state, right);
    }
}

/// Compares the run on screen with this one.
pub(crate) fn start(state: &mut State, right: RunId) {
    let is_shown = state.shows_comparison();
    stop(state);
    let (Some(left_run), Some(right_run)) = (state.run(), state.runs.get(right)) else {
        return;
    };
    if left_run.task().is_none() || left_run.task() != right_run.task() {
        let text = "Only two classifiers or two detectors can be compared; choose two runs of the same type";
        state.show_notice(text);
        return;
    }
    let left = left_run.id();
    let title = format!("Compare {} with {}", left_run.info.name, right_run.info.name);
    let classes = ClassMap::between(left_run.labels(), right_run.labels());
    let views = [left, right].map(|run| state.view_of_run(run).into_owned());
    let Some(source) = &state.source else {
        return;
    };
    let source = source.id;
    let ticket = tasks::update::begin(state, TaskKind::Compare, ProgressUnit::Images, title);
    ticket.control.set_total(Some(state.samples.len() as u64));
    let [left_view, right_view] = views.clone();
    let task = ticket.id;
    let request = CompareRequest {
        source,
        runs: [left, right],
        samples: state.samples.snapshot(),
        comparison: Box::new(Comparison::new(classes.clone(), left_view, right_view)),
    };
    state.effects.push(ReviewEffect::Compare { request, ticket });
    state.comparing = Some(Comparing { left, right, status: Loadable::Loading(task), classes, views, is_shown });
    project::update::load_runs_on_screen(state);
    project::update::read_missing(state);
}

/// Compares the same runs again with the current filters.
pub(crate) fn again(state: &mut State) {
    if let Some(right) = state.compared_run() {
        start(state, right);
    }
}

/// Sets the minimum scores of the left and the right run.
pub(crate) fn set_scores(state: &mut State, scores: [f32; 2]) {
    let Some(runs) = state.comparing.as_ref().map(|comparing| [comparing.left, comparing.right]) else {
        return;
    };
    for (run, score) in runs.into_iter().zip(scores) {
        if let Some(card) = state.runs.get(run).map(|run| run.info.card.clone()) {
            canvas::update::change_view_of(state, &card, ViewChange::MinScore(score));
        }
    }
    again(state);
}

pub(crate) fn stop(state: &mut State) {
    let Some(comparing) = state.comparing.take() else {
        return;
    };
    state.comparison_number += 1;
    tasks::update::cancel(state, comparing.status.task());
    if state.arranging.sort().by == SortBy::Disagreement {
        state.arranging.set_sort(Sort::default());
    }
    // Without a comparison they match nothing.
    let text = without_comparison(state.arranging.text());
    if text != state.arranging.text() {
        state.arranging.set_text(text);
    }
}

/// Stores a comparison. The worst images come first.
pub(crate) fn compared(state: &mut State, task: TaskId, result: Result<Agreement, Failure>) {
    let sides = state.comparing.as_ref();
    let sides = sides.map(|comparing| [comparing.left, comparing.right]);
    let compared = result.map(|agreement| Compared {
        changes: Arc::new(sides.map_or_else(ClassChanges::new, |sides| changes(&state.runs, sides, &agreement))),
        column: agreement.column().into(),
        agreement: Arc::new(agreement),
    });
    if !settle(state, task, compared, |state| Some(&mut state.comparing.as_mut()?.status)) {
        return;
    }
    state.comparison_number += 1;
    // An audience would see the order change.
    let is_presenting = state.presenting.is_some();
    if !is_presenting && state.comparing.as_ref().is_some_and(|comparing| comparing.agreement().is_some()) {
        state.arranging.set_sort(Sort { by: SortBy::Disagreement, direction: Direction::Descending });
    }
}

/// Matches classes by name. All images that differ are under an empty key.
fn changes(runs: &Runs, [left, right]: [RunId; 2], agreement: &Agreement) -> ClassChanges {
    let name = |run, class| {
        let run = runs.get(run);
        run.map_or_else(String::new, |run| run.labels().name(class))
    };
    let mut changes = ClassChanges::new();
    changes.insert(String::new(), agreement.differing().collect());
    for change in &agreement.summary.confusion {
        let key = change_key(&name(left, change.left), &name(right, change.right));
        // Two classes may share a name.
        let images = changes.entry(key).or_default();
        let mut all: Vec<SampleId> = images.iter().chain(&*change.images).copied().collect();
        all.sort_unstable();
        all.dedup();
        *images = all.into();
    }
    changes
}

/// Ends the comparison if another run is on screen or one was deleted. Called after every message.
pub(crate) fn follow(state: &mut State) {
    let Some(comparing) = &state.comparing else {
        return;
    };
    let is_current = state.run_id() == Some(comparing.left);
    if !is_current || state.runs.get(comparing.right).is_none() {
        stop(state);
    }
}

//! View settings: live filters, zoom, panels, theme.

use crate::domain::{BoundingBox, Look, ModelCard, ModelTask, ViewSettings};
use crate::review::FilmBox;
use crate::window::state::{
    Action, BoxToSelect, CanvasView, Display, Drawing, Listing, Loadable, NoticeOffer, Overlay, Presenting, RightSide,
    State, Step, ThemeChoice, ViewChange, ViewNumber,
};
use crate::window::{browse, judge, project};

const THUMBNAIL_STEP: f32 = 24.0;
const INTERFACE_STEP: f32 = 0.1;
const DIVIDER_STEP: f32 = 0.05;
const SCORE_STEP: f32 = 0.05;
const LAST_PROBLEMS: usize = 20;

pub(crate) fn change(state: &mut State, change: ViewChange) {
    if let Some(card) = state.viewed_card().cloned() {
        state.reset_filters = None;
        change_view_of(state, &card, change);
    }
}

/// Changes the filters of any model, on screen or not.
pub(crate) fn change_view_of(state: &mut State, card: &ModelCard, change: ViewChange) {
    state.settings.view_of_mut(card).change(change);
    save_filters(state, card);
}

/// Restores the filters before the last reset. Returns whether there are any.
pub(crate) fn undo_reset(state: &mut State) -> bool {
    let Some((card, view)) = state.reset_filters.take() else {
        return false;
    };
    set_filters(state, &card, view);
    state.show_notice("Undone: reset filters");
    true
}

fn set_filters(state: &mut State, card: &ModelCard, view: ViewSettings) {
    state.settings.set_view(&card.id, view);
    save_filters(state, card);
}

/// Saves the live filters of a model in the project as well, so that they travel with it.
fn save_filters(state: &mut State, card: &ModelCard) {
    let view = state.settings.view_of(card).into_owned();
    project::update::save_view(state, ViewSettings::name_in_project(&card.id), &view);
}

/// Restores the last view of the project. Unreadable values from a newer version are left unchanged.
pub(crate) fn restore(state: &mut State, name: &str, json: &str) {
    if let Some(model_id) = ViewSettings::model_of_name(name)
        && let Ok(view) = serde_json::from_str(json)
    {
        state.settings.set_view(model_id, view);
    }
}

pub(crate) fn on_action(state: &mut State, action: Action) {
    let settings = &mut state.settings;
    match action {
        Action::LargeImage => state.large_image ^= true,
        Action::ThumbnailsOnly => {
            settings.thumbnails_only ^= true;
            state.large_image = false;
        }
        Action::ToggleImages => settings.show_images_panel ^= true,
        Action::ToggleFolders => {
            settings.show_folders ^= true;
            settings.show_images_panel |= settings.show_folders;
        }
        Action::ToggleInspector => settings.show_inspector ^= true,
        Action::ToggleTasks => settings.show_tasks_panel ^= true,
        Action::ToggleJudging => settings.show_judging ^= true,
        Action::GoOnAfterVerdict => settings.next_after_verdict ^= true,
        Action::ToggleOutlines => settings.outlines_only ^= true,
        Action::ToggleEmbeddings => settings.save_embeddings ^= true,
        Action::ResetLook => {
            let Look { brightness, contrast } = Look::default();
            settings.set(ViewNumber::Brightness, brightness);
            settings.set(ViewNumber::Contrast, contrast);
        }
        Action::ToggleCaption => settings.show_caption ^= true,
        Action::DividerLeft => settings.set(ViewNumber::Divider, settings.divider - DIVIDER_STEP),
        Action::DividerRight => settings.set(ViewNumber::Divider, settings.divider + DIVIDER_STEP),
        Action::ToggleStoredBoxes => settings.show_stored_boxes ^= true,
        Action::ToggleThumbnailBoxes => settings.show_thumbnail_boxes ^= true,
        Action::ThemeSystem => settings.theme = ThemeChoice::System,
        Action::ThemeLight => settings.theme = ThemeChoice::Light,
        Action::ThemeDark => settings.theme = ThemeChoice::Dark,
        Action::InterfaceLarger => zoom_interface(state, INTERFACE_STEP),
        Action::InterfaceSmaller => zoom_interface(state, -INTERFACE_STEP),
        Action::InterfaceNormal => settings.set(ViewNumber::InterfaceZoom, 1.0),
        Action::LargerThumbnails => {
            settings.set(ViewNumber::ThumbnailSide, settings.thumbnail_side + THUMBNAIL_STEP);
        }
        Action::SmallerThumbnails => {
            settings.set(ViewNumber::ThumbnailSide, settings.thumbnail_side - THUMBNAIL_STEP);
        }
        Action::FitImage => state.canvas = CanvasView::Fit,
        Action::ResetView => {
            if let Some(card) = state.viewed_card().cloned() {
                let before = state.view().into_owned();
                set_filters(state, &card, ViewSettings::from_card(&card));
                state.show_offer("Filters reset", NoticeOffer::Do(Action::Undo));
                state.reset_filters = Some((card, before));
            }
        }
        // The canvas turns these into a `SetCanvas`, because only it knows its size.
        _ => state.canvas_requests.push(action),
    }
}

/// Selects the next box in the list, starting with the highest score, then the undetected objects; the first follows
/// the last. An enlarged image moves along.
pub(crate) fn walk_boxes(state: &mut State, by: isize) {
    let Some(prediction) = state.shown.prediction.clone() else {
        return;
    };
    let visible = state.shown_boxes().into_iter();
    let boxes = visible.map(|index| (FilmBox::Predicted(index as u32), prediction.detections()[index].bounds));
    let objects =
        state.false_negatives().into_iter().map(|object| (FilmBox::FalseNegative(object.index as u32), object.bounds));
    let all: Vec<(FilmBox, BoundingBox)> = boxes.chain(objects).collect();
    if all.is_empty() {
        state.show_notice("No boxes are visible on this image");
        return;
    }
    let selected = [
        state.shown.selected_box.map(|index| FilmBox::Predicted(index as u32)),
        state.shown.selected_object.map(|index| FilmBox::FalseNegative(index as u32)),
    ];
    let place = all.iter().position(|(shows, _)| selected.contains(&Some(*shows)));
    let next = match place {
        Some(place) => (place as isize + by).rem_euclid(all.len() as isize) as usize,
        None if by < 0 => all.len() - 1,
        None => 0,
    };
    let (shows, bounds) = all[next];
    judge::update::verdicts::select(state, shows);
    if let CanvasView::Free { zoom, .. } = state.canvas {
        let bounds = bounds.clipped(prediction.width, prediction.height);
        let center = [f32::midpoint(bounds.x1, bounds.x2), f32::midpoint(bounds.y1, bounds.y2)];
        state.canvas = CanvasView::Free { zoom, center };
    }
}

/// Deselects a box or object hidden by the filters, so that no key judges an invisible one, and forgets a drawn box
/// without a class. Called after every message.
pub(crate) fn follow(state: &mut State) {
    browse::update::shown::follow(state);
    if matches!(state.shown.drawing, Some(Drawing::Drawn(_))) && state.overlay != Overlay::WrongClass {
        state.shown.drawing = None;
    }
    let is_hidden = |index: &mut usize| state.shown.prediction.is_some() && !state.shown_boxes().contains(index);
    let mut selected = state.shown.selected_box;
    selected.take_if(is_hidden);
    state.shown.selected_box = selected;
    follow_objects(state);
}

fn follow_objects(state: &mut State) {
    let is_known = matches!(state.shown.display, Display::Ready(_) | Display::Failed(_));
    if let Some(BoxToSelect::Object(index)) = state.shown.box_to_select
        && is_known
        && state.shown.prediction.is_some()
    {
        state.shown.box_to_select = None;
        state.shown.selected_object = Some(index);
    }
    if state.shown.selected_object.is_some()
        && (state.shown.selected_box.is_some() || state.selected_object().is_none())
    {
        state.shown.selected_object = None;
    }
}

/// Starts or ends a presentation of the images in the current order. Closes the dialogs over the panels, because they
/// are not for the audience.
pub(crate) fn present(state: &mut State) {
    if state.presenting.take().is_some() {
        return;
    }
    state.overlay = Overlay::None;
    state.presenting = Some(Presenting::default());
    let is_found = state.shown_sample().is_some_and(|shown| state.order().place_of(shown).is_some());
    if !is_found {
        browse::update::walk(state, Step::First);
    }
}

/// Changes the minimum scores of the runs on screen by `steps` of 0.05.
pub(crate) fn step_min_score(state: &mut State, steps: f32) {
    let right = match state.right_side() {
        Some(RightSide::Run(run)) => Some(run),
        Some(RightSide::Truth) | None => None,
    };
    let runs = state.run_id().into_iter().chain(right);
    let mut cards: Vec<ModelCard> = runs.filter_map(|run| Some(state.runs.get(run)?.info.card.clone())).collect();
    // Two runs of a model share its filters.
    cards.dedup_by(|right, left| right.id == left.id);
    state.reset_filters = None;
    for card in cards {
        let Some(task) = card.task.predictions() else {
            continue;
        };
        let score = state.settings.view_of(&card).min_score_for(task);
        let score = ((score / SCORE_STEP).round() + steps) * SCORE_STEP;
        let change = match task {
            ModelTask::Detection => ViewChange::MinScore(score),
            ModelTask::Classification => ViewChange::MinClassScore(score),
        };
        change_view_of(state, &card, change);
    }
}

fn zoom_interface(state: &mut State, by: f32) {
    let zoom = ((state.settings.interface_zoom + by) * 10.0).round() / 10.0;
    state.settings.set(ViewNumber::InterfaceZoom, zoom);
}

/// The state for diagnostics. Contains no secrets, only paths and messages.
pub(crate) fn diagnostics(state: &State) -> Vec<String> {
    let mut lines = vec![format!("graphics: {}", state.graphics)];
    let model = state.models.chosen_id().unwrap_or("none");
    lines.push(format!("model: {model}"));
    lines.push(format!("device chosen: {}", state.settings.device));
    if let Some(remote) = &state.inference.remote {
        lines.push(match &remote.status {
            Loadable::Failed(failure) => format!("remote model: failed, {}", failure.message),
            _ => format!("remote model: {}", remote.model.name()),
        });
    }
    match &state.inference.local.status {
        Loadable::NotLoaded => lines.push("engine: not used yet".to_owned()),
        Loadable::Loading(_) => lines.push("engine: being prepared".to_owned()),
        Loadable::Failed(failure) => lines.push(format!("engine: failed, {}", failure.message)),
        Loadable::Ready(report) => {
            lines.push(format!("engine: {} because {}", report.device.name(), report.reason));
            if let Some(adapter) = &report.adapter {
                lines.push(format!("device adapter: {adapter}"));
            }
            for refused in &report.refused {
                lines.push(format!("not {}: {}", refused.device.name(), refused.reason));
            }
            lines.push(format!("ONNX Runtime {} from {}", report.runtime_version, report.runtime_path));
            lines.push(format!(
                "sessions {}, threads each {}, batch {}, warm-up {:.1} ms",
                report.sessions, report.threads_per_session, report.batch, report.warm_up_ms
            ));
            if let Some(latency) = report.latency {
                lines.push(format!(
                    "latency of {} calls: p50 {:.1} ms, p95 {:.1} ms",
                    latency.calls, latency.p50, latency.p95
                ));
            }
        }
    }
    let listing = match state.source.as_ref().map(|source| &source.listing) {
        None => "nothing open",
        Some(Listing::Running) => "still being listed",
        Some(Listing::Done) => "listed",
        Some(Listing::Failed(_)) => "could not be listed",
    };
    lines.push(format!("images: {}, {listing}", state.samples.len()));
    if let Some(run) = state.run() {
        let (predicted, failed) = (run.predictions.predicted(), run.predictions.failed());
        lines.push(format!("predictions: {predicted}, failed: {failed}"));
    }
    lines.push(format!("problems: {}", state.problems.len()));
    let problems = state.problems.entries();
    let newest = problems.iter().rev().take(LAST_PROBLEMS);
    lines.extend(newest.map(|entry| format!("- {}", entry.problem)));
    lines
}

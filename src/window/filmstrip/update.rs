//! The strip with all boxes of one class: opening it, updating it, and opening one of its images.

use std::sync::Arc;

use crate::domain::{ModelTask, SampleId};
use crate::review::{ArrangeRequest, FilmBox, FilmFrame, FilmRequest, Suppressed};
use crate::window::browse;
use crate::window::filmstrip::state::FilmBasis;
use crate::window::state::{BoxToSelect, ChosenBoxes, CropRequest, Derived, Filmstrip, RequestId, ReviewEffect, State};

/// Opens or closes the strip.
pub(crate) fn toggle(state: &mut State) {
    state.filmstrip = match &state.filmstrip {
        Some(_) => None,
        None => Some(Filmstrip::new(state.class_at_hand())),
    };
}

/// Shows certain boxes.
pub(crate) fn show_chosen(state: &mut State, chosen: ChosenBoxes) {
    if state.source.as_ref().map(|source| source.id) != Some(chosen.source) {
        return;
    }
    state.show_notice(chosen.description.clone());
    state.filmstrip = Some(Filmstrip { chosen: Some(chosen), ..Filmstrip::default() });
}

/// Drops the chosen boxes if another run or source is on screen.
fn forget_chosen(state: &mut State) {
    let on_screen = state.source.as_ref().zip(state.runs.current()).map(|(source, run)| (source.id, run.id()));
    if let Some(strip) = &mut state.filmstrip
        && strip.chosen.as_ref().is_some_and(|chosen| Some((chosen.source, chosen.run)) != on_screen)
    {
        strip.chosen = None;
    }
}

pub(crate) fn open(state: &mut State, class: u32) {
    match &mut state.filmstrip {
        Some(strip) => {
            strip.class = Some(class);
            strip.selected.clear();
        }
        None => state.filmstrip = Some(Filmstrip::new(Some(class))),
    }
}

/// Requests new frames if the current or pending ones do not match the state. Called after every message.
pub(crate) fn follow(state: &mut State) {
    forget_chosen(state);
    let basis = basis(state);
    let awaits_overlaps = awaits_overlaps(state);
    let Some(strip) = &mut state.filmstrip else {
        return;
    };
    let Some(basis) = basis else {
        strip.frames = Derived::default();
        return;
    };
    // Frames of another source or run are invalid.
    if strip.frames.newest().is_some_and(|newest| !newest.images.is_same_run(&basis.images)) {
        strip.frames = Derived::default();
    }
    if awaits_overlaps || !strip.needs(&basis) {
        return;
    }
    let images = ArrangeRequest { suppressed: hidden_overlaps(state).cloned(), ..state.arrange_request() };
    let id = RequestId(state.ids.next());
    let chosen = state.filmstrip.as_ref().and_then(|strip| strip.chosen.as_ref());
    let chosen = chosen.map(|chosen| Arc::clone(&chosen.boxes));
    let FilmBasis { class, order, suspects, .. } = basis;
    let what = Box::new(FilmRequest { images, class, order, suspects, chosen });
    state.effects.push(ReviewEffect::GatherFilmstrip { id, what });
    if let Some(strip) = &mut state.filmstrip {
        strip.frames.keep_if(|gathered| gathered.is_same_question(&basis));
        strip.frames.begin(id, basis);
    }
}

/// The boxes that the view hides because better ones overlap them; `None` if it hides none or they are unknown.
fn hidden_overlaps(state: &State) -> Option<&Suppressed> {
    let max_iou = state.view().nms_iou?;
    let bits = state.suppressed()?;
    (bits.max_iou() == max_iou).then_some(bits)
}

/// Whether the hidden boxes are still being computed. They arrive with the order: until then the current frames stay,
/// so that all boxes do not appear for a moment.
fn awaits_overlaps(state: &State) -> bool {
    let is_detection = state.task() == Some(ModelTask::Detection);
    let hides_overlaps = is_detection && state.view().nms_iou.is_some();
    hides_overlaps && hidden_overlaps(state).is_none() && state.arranging.is_under_way()
}

/// `None` if there is nothing to gather: no run, or neither a class nor a search that determines the boxes.
fn basis(state: &State) -> Option<FilmBasis> {
    let strip = state.filmstrip.as_ref()?;
    state.runs.current()?;
    if !strip.has_boxes() && !state.arranging.is_about_truth() {
        return None;
    }
    Some(FilmBasis {
        images: state.basis()?,
        class: strip.class,
        hidden: hidden_overlaps(state).map(|bits| (bits.max_iou(), bits.revision())),
        order: strip.order,
        suspects: strip.suspects,
        chosen: strip.chosen.as_ref().map_or(0, |chosen| chosen.boxes.number),
    })
}

pub(crate) fn request_crops(state: &mut State, requested: &[FilmFrame]) {
    let (Some(source), Some(run)) = (&state.source, state.runs.current()) else {
        return;
    };
    let request = |frame: &FilmFrame| {
        let entry = state.samples.get(frame.sample)?;
        Some(CropRequest {
            sample: frame.sample,
            shows: frame.shows,
            bounds: frame.bounds,
            uri: entry.uri.clone(),
            prediction: state.runs.prediction(run.id(), frame.sample).cloned(),
        })
    };
    state.effects.push(ReviewEffect::MakeCrops {
        source: source.id,
        run: run.id(),
        requested: requested.iter().filter_map(request).collect(),
    });
}

/// Shows an image with one of its boxes or undetected objects selected, once its prediction is available.
pub(crate) fn show_box(state: &mut State, sample: SampleId, shows: FilmBox) {
    if state.selection.shown() != Some(sample) {
        browse::update::show(state, sample);
    }
    (state.shown.selected_box, state.shown.selected_object) = (None, None);
    if let Some(strip) = &mut state.filmstrip {
        strip.selected.clear();
        strip.anchor = Some((sample, shows));
    }
    state.shown.box_to_select = Some(match shows {
        FilmBox::Predicted(index) => BoxToSelect::Index(index as usize),
        FilmBox::FalseNegative(index) => BoxToSelect::Object(index as usize),
    });
    browse::update::shown::take(state);
}

/// Adds a box to the selected ones or removes it, or selects all up to it. A single one is shown.
pub(crate) fn select(state: &mut State, to: (SampleId, FilmBox), extends: bool) {
    let Some(strip) = &mut state.filmstrip else {
        return;
    };
    strip.select(to, extends);
    if let Some(&(sample, shows)) = strip.selected.first().filter(|_| strip.selected.len() == 1) {
        show_box(state, sample, shows);
    }
}

/// After a verdict on a box of the strip, shows the next one without a verdict; after a changed verdict, the next one.
/// Returns false if the box is not in the strip.
pub(crate) fn go_on(state: &mut State, judged: (SampleId, FilmBox), was_judged: bool) -> bool {
    let Some((strip, position)) = state.filmstrip.as_ref().and_then(|strip| Some((strip, strip.position(judged)?)))
    else {
        return false;
    };
    let (before, after) = strip.frames().split_at(position + 1);
    let is_open = |frame: &&FilmFrame| state.verdict_on(frame.sample, frame.shows).is_none();
    let next = if was_judged { after.first() } else { after.iter().chain(before).find(is_open) };
    match next.map(|frame| (frame.sample, frame.shows)) {
        Some((sample, shows)) => show_box(state, sample, shows),
        None if was_judged => {}
        None => state.show_notice("Everything in the filmstrip has a verdict"),
    }
    true
}

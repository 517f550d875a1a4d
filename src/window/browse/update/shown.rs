//! The prediction of the image on screen.

use std::sync::Arc;

use crate::domain::{Prediction, Verdict};
use crate::window::state::{BoxToSelect, Display, Explanation, State};
use crate::window::{explain, project};

/// Takes the prediction of the shown image from the current run, or reads it from the project.
pub(crate) fn refresh(state: &mut State) {
    take(state);
    explain::update::cancel_forgotten(state);
    project::update::read_missing(state);
}

/// Takes the prediction of the shown image if it is in memory.
pub(crate) fn take(state: &mut State) {
    let (prediction, failure) = match (state.runs.current(), state.selection.shown()) {
        (Some(run), Some(sample)) => {
            (state.runs.prediction(run.id(), sample).cloned(), run.failure(sample).map(str::to_owned))
        }
        _ => (None, None),
    };
    let (prediction, failure) = match prediction.as_deref().and_then(|it| other_size(state, it)) {
        Some(reason) => (None, Some(reason)),
        None => (prediction, failure),
    };
    if state.shown.stored != prediction {
        state.shown.selected_box = None;
        state.shown.selected_class = None;
        state.shown.explanation = Explanation::None;
    }
    state.shown.stored = prediction;
    correct(state);
    if state.shown.prediction.is_some()
        && let Some(requested) = state.shown.box_to_select.take()
    {
        match requested {
            BoxToSelect::Index(index) => state.shown.selected_box = Some(index).filter(|_| state.has_boxes()),
            BoxToSelect::First => state.shown.selected_box = state.shown_boxes().first().copied(),
            // The ground truth needs the size of the image.
            BoxToSelect::Object(_) => state.shown.box_to_select = Some(requested),
        }
    }
    state.shown.failure = failure;
}

/// Shows the boxes as a person corrected them, if any verdict changed.
pub(crate) fn follow(state: &mut State) {
    if state.shown.marks_revision != state.judgments.marks().revision() {
        correct(state);
    }
}

fn correct(state: &mut State) {
    state.shown.marks_revision = state.judgments.marks().revision();
    state.shown.prediction = state.shown.stored.clone();
    let (Some(stored), Some(run), Some(sample)) = (&state.shown.stored, state.runs.current(), state.selection.shown())
    else {
        return;
    };
    let verdicts = state.judgments.get(sample).into_iter().flat_map(|judged| judged.of_boxes(run.id()));
    let drawn: Vec<(u32, &Verdict)> = verdicts.filter(|(_, verdict)| verdict.drawn().is_some()).collect();
    if !drawn.is_empty() {
        state.shown.prediction = Some(Arc::new(stored.with_drawn_boxes(drawn, run.labels())));
    }
}

/// Why a remote prediction cannot be for this image, now that its size is known: job outputs are opened without reading
/// the images.
fn other_size(state: &State, prediction: &Prediction) -> Option<String> {
    let Display::Ready(info) = &state.shown.display else {
        return None;
    };
    let (run, sample) = (state.runs.current()?, state.selection.shown()?);
    let predicted_size = [prediction.width, prediction.height];
    if run.info.key.made.is_here() || run.is_outdated(sample) || predicted_size == info.size {
        return None;
    }
    let [width, height] = info.size;
    Some(format!(
        "the prediction is for an image of {} x {} pixels, but this one has {width} x {height}: it belongs to \
         another image or to an earlier version of this one",
        predicted_size[0], predicted_size[1]
    ))
}

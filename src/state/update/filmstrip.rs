//! The strip with all boxes of one class: opening it, keeping it up to date, going to one of its images.

use super::{browse, predict};
use crate::domain::SampleId;
use crate::review::{FilmFrame, FilmOrder};
use crate::state::filmstrip::FilmBasis;
use crate::state::{CropRequest, Effect, Filmstrip, FilmstripId, State};

/// Opens it, or closes it where it is open.
pub(super) fn toggle(state: &mut State) {
    state.filmstrip = match &state.filmstrip {
        Some(_) => None,
        None => Some(Filmstrip::of(state.class_at_hand())),
    };
}

pub(super) fn open(state: &mut State, class: u32) {
    match &mut state.filmstrip {
        Some(strip) => strip.class = Some(class),
        None => state.filmstrip = Some(Filmstrip::of(Some(class))),
    }
}

pub(super) fn set_order(state: &mut State, order: FilmOrder) {
    if let Some(strip) = &mut state.filmstrip {
        strip.order = order;
    }
}

/// Asks for new frames where those that are there, or under way, are not of the state as it is. After every message.
pub(super) fn follow(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(basis) = basis(state) else {
        return;
    };
    let (Some(strip), Some(run)) = (&mut state.filmstrip, state.runs.current()) else {
        return;
    };
    if !strip.wants(&basis) {
        return;
    }
    let id = FilmstripId(state.ids.next());
    strip.ask(id, basis);
    effects.push(Effect::GatherFilmstrip {
        id,
        answers: run.answers.clone(),
        class: basis.class,
        min_score: basis.min_score,
        order: basis.order,
    });
}

fn basis(state: &State) -> Option<FilmBasis> {
    let strip = state.filmstrip.as_ref()?;
    let run = state.runs.current()?;
    let class = strip.class?;
    Some(FilmBasis {
        run: run.id(),
        answers: run.answers.revision(),
        class,
        min_score: state.view().min_score_of(class),
        order: strip.order,
    })
}

pub(super) fn gathered(state: &mut State, id: FilmstripId, frames: Vec<FilmFrame>) {
    if let Some(strip) = &mut state.filmstrip {
        strip.take(id, frames);
    }
}

pub(super) fn want_crops(state: &State, wanted: &[FilmFrame], effects: &mut Vec<Effect>) {
    let (Some(source), Some(run)) = (&state.source, state.runs.current()) else {
        return;
    };
    let request = |frame: &FilmFrame| {
        let entry = state.samples.get(frame.sample)?;
        Some(CropRequest {
            sample: frame.sample,
            index: frame.index,
            uri: entry.uri.clone(),
            prediction: state.runs.prediction(run.id(), frame.sample).cloned(),
        })
    };
    effects.push(Effect::MakeCrops {
        source: source.id,
        run: run.id(),
        wanted: wanted.iter().filter_map(request).collect(),
    });
}

/// Shows an image with one of its boxes selected, as soon as its answer is there.
pub(super) fn show_box(
    state: &mut State,
    sample: SampleId,
    index: usize,
    effects: &mut Vec<Effect>,
) {
    if state.selection.shown() != Some(sample) {
        browse::show(state, sample, effects);
    }
    state.shown.wanted_box = Some(index);
    predict::take_shown(state);
}

//! Dispatches commands and events about searching, comparing and judging.

use super::{arrange, compare, explain, filmstrip, judge, view};
use crate::state::{Effect, Queue, ReviewCommand, ReviewEvent, SLIDE_SECS, State};

pub(super) fn on_command(state: &mut State, command: ReviewCommand, effects: &mut Queue<Effect>) {
    match command {
        ReviewCommand::SetQuery(text) => arrange::set_query(state, text, effects),
        ReviewCommand::ShowFirstFound => arrange::show_first_found(state, effects),
        ReviewCommand::SetSort(sort) => arrange::set_sort(state, sort, effects),
        ReviewCommand::SetCanvas(view) => {
            state.canvas = view;
            state.canvas_requests.clear();
        }
        ReviewCommand::SelectBox(selected) => judge::select_box(state, selected),
        ReviewCommand::ShowBox(sample, shows) => {
            super::evaluate::show_panel(state, false);
            filmstrip::show_box(state, sample, shows, effects);
        }
        ReviewCommand::OpenFilmstrip(class) => filmstrip::open(state, class),
        ReviewCommand::SetFilmClass(class) => filmstrip::set_class(state, class),
        ReviewCommand::SetFilmOrder(order) => filmstrip::set_order(state, order),
        ReviewCommand::LoadCrops(requested) => filmstrip::request_crops(state, &requested, effects),
        ReviewCommand::SelectClass(selected) => state.shown.selected_class = selected,
        ReviewCommand::HideExplanation => explain::hide(state, effects),
        ReviewCommand::SetExplanationOpacity(opacity) => {
            state.settings.explanation_opacity = opacity.clamp(0.0, 1.0);
        }
        ReviewCommand::Compare(run) => compare::start(state, run, effects),
        ReviewCommand::CompareAgain => compare::again(state, effects),
        ReviewCommand::SetComparedScores(scores) => compare::set_scores(state, scores, effects),
        ReviewCommand::SetCompareLayout(layout) => state.settings.compare_layout = layout,
        ReviewCommand::StopComparing => compare::stop(state, effects),
        ReviewCommand::Present(true) => view::present(state),
        ReviewCommand::Present(false) => state.presenting = None,
        ReviewCommand::PlaySlides(is_playing) => {
            if let Some(presenting) = &mut state.presenting {
                presenting.is_playing = is_playing;
            }
        }
        ReviewCommand::SetSlideSecs(secs) => {
            let (low, high) = (*SLIDE_SECS.start(), *SLIDE_SECS.end());
            state.settings.slide_secs = secs.clamp(low, high);
        }
        ReviewCommand::SetVerdict(verdict) => judge::set_verdict(state, verdict.as_ref(), effects),
        ReviewCommand::ConfirmMassVerdict => judge::confirm_mass_verdict(state, effects),
        ReviewCommand::SetNote { samples, text } => {
            judge::set_note(state, &samples, &text, effects);
        }
        ReviewCommand::AddTag(tag) => judge::add_tag(state, &tag, effects),
        ReviewCommand::RemoveTag(tag) => judge::remove_tag(state, &tag, effects),
        ReviewCommand::ChangeView(change) => view::change(state, change, effects),
        ReviewCommand::SetThumbnailSide(side) => view::set_thumbnail_side(state, side),
    }
}

pub(super) fn on_event(state: &mut State, event: ReviewEvent, effects: &mut Queue<Effect>) {
    match event {
        ReviewEvent::Compared { task, result } => compare::compared(state, task, result),
        ReviewEvent::FilmstripGathered { id, frames } => filmstrip::gathered(state, id, frames),
        ReviewEvent::Explained { task, result } => explain::explained(state, task, result),
        ReviewEvent::Arranged { id, arrangement, suppressed } => {
            arrange::arranged(state, id, arrangement, suppressed, effects);
        }
        ReviewEvent::Counted { id, statistics } => arrange::counted(state, id, statistics),
        ReviewEvent::ArrangeFailed { id, reason } => arrange::failed(state, id, &reason),
    }
}

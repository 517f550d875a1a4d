//! Dispatches commands and events about comparing and judging.

pub(crate) mod drawing;
pub(crate) mod fixes;
pub(crate) mod spot_check;
pub(crate) mod verdicts;

use std::sync::Arc;

use crate::project::export::options::{ExportFormat, VerdictChoice};
use crate::review::FilmBox;
use crate::tasks::ProgressUnit;
use crate::window::state::{
    ExportScope, Loadable, Overlay, ReportOfRun, ReviewCommand, ReviewEffect, ReviewEvent, State, TaskKind,
};
use crate::window::tasks::update::{begin, settle};
use crate::window::{canvas, comparison, explain, export, filmstrip, update};

/// Shows what the verdicts say about the run on screen.
pub(crate) fn open_report(state: &mut State) {
    let (Some(source), Some(run)) = (state.source_id(), state.run()) else {
        return;
    };
    let run = run.info.clone();
    let truth = state.evaluated().map(|evaluated| {
        let judged = state.judgments.iter();
        let samples = judged.filter_map(|(id, _)| Some((state.samples.get(id)?.uri.clone(), id)));
        (Arc::clone(&evaluated.outcomes), samples.collect())
    });
    let request = ReportOfRun { source, view: state.view().into_owned(), run, truth };
    let title = format!("Review report: {}", request.run.name);
    let ticket = begin(state, TaskKind::ReviewReport, ProgressUnit::Images, title);
    state.review_report = Loadable::Loading(ticket.id);
    state.overlay = Overlay::ReviewReport;
    state.effects.push(ReviewEffect::Report { request: Box::new(request), ticket });
}

pub(crate) fn on_command(state: &mut State, command: ReviewCommand) {
    match command {
        ReviewCommand::SetCanvas(view) => {
            state.canvas = view;
            state.canvas_requests.clear();
        }
        ReviewCommand::SelectBox(selected) => verdicts::select_box(state, selected),
        ReviewCommand::SelectObject(index) => verdicts::select(state, FilmBox::FalseNegative(index as u32)),
        ReviewCommand::SelectCrop { sample, shows, extends } => {
            filmstrip::update::select(state, (sample, shows), extends);
        }
        ReviewCommand::ShowBox(sample, shows) => {
            update::show_image(state);
            filmstrip::update::show_box(state, sample, shows);
        }
        ReviewCommand::OpenFilmstrip(class) => filmstrip::update::open(state, class),
        ReviewCommand::SetFilmClass(class) => {
            if let Some(strip) = &mut state.filmstrip {
                strip.class = class;
                strip.selected.clear();
            }
        }
        ReviewCommand::SetFilmOrder(order) => {
            let class = state.class_at_hand();
            if let Some(strip) = &mut state.filmstrip {
                strip.order = order;
                if strip.chosen.take().is_some() {
                    strip.class = strip.class.or(class);
                }
            }
        }
        ReviewCommand::SetSuspectOrder(order) => {
            if let Some(strip) = &mut state.filmstrip {
                strip.suspects = order;
            }
        }
        ReviewCommand::LoadCrops(requested) => filmstrip::update::request_crops(state, &requested),
        ReviewCommand::SelectClass(selected) => state.shown.selected_class = selected,
        ReviewCommand::HideExplanation => explain::update::hide(state),
        ReviewCommand::Compare(run) => comparison::update::open(state, run),
        ReviewCommand::CompareAgain => comparison::update::again(state),
        ReviewCommand::SetComparedScores(scores) => comparison::update::set_scores(state, scores),
        ReviewCommand::ShowChanged(term) => comparison::update::show_changed(state, &term),
        ReviewCommand::SetCompareLayout(layout) => comparison::update::set_layout(state, layout),
        ReviewCommand::StopComparing => comparison::update::stop(state),
        ReviewCommand::EndPresentation => state.presenting = None,
        ReviewCommand::PlaySlides(is_playing) => {
            if let Some(presenting) = &mut state.presenting {
                presenting.is_playing = is_playing;
            }
        }
        ReviewCommand::SetVerdict(verdict) => verdicts::set_verdict(state, verdict.as_ref()),
        ReviewCommand::DrawBox(bounds) => drawing::drawn(state, bounds),
        ReviewCommand::MoveBox(bounds) => drawing::move_box(state, bounds),
        ReviewCommand::NudgeBox { by, edges } => drawing::nudge(state, by, edges),
        ReviewCommand::ChooseClass(class) => drawing::choose_class(state, &class),
        ReviewCommand::ToggleClassDigit { digit, class } => drawing::toggle_class_digit(state, digit, &class),
        ReviewCommand::ResetClassDigits => {
            if let Some(run) = state.runs.current() {
                state.settings.reset_class_digits(&run.info.key.model_id);
            }
        }
        ReviewCommand::SetReviewer(name) => state.settings.reviewer = name,
        ReviewCommand::NameReviewer => verdicts::name_reviewer(state),
        ReviewCommand::DrawSample(design) => spot_check::draw(state, design),
        ReviewCommand::JudgeSample => spot_check::judge_it(state),
        ReviewCommand::SetTargetPrecision(precision) => state.target_precision = precision,
        ReviewCommand::Export(format) => {
            (state.export.options.format, state.export.embeddings) = (format, None);
            export::update::open(state);
            if format == ExportFormat::Report {
                state.export.options.verdicts = VerdictChoice::All;
            } else {
                state.export.options.verdicts = VerdictChoice::Corrected;
                state.export.scope = ExportScope::All;
            }
        }
        ReviewCommand::ConfirmMassVerdict => verdicts::confirm_mass_verdict(state),
        ReviewCommand::SetNote { samples, text } => {
            verdicts::set_note(state, &samples, &text);
        }
        ReviewCommand::AddTag(tag) => verdicts::add_tag(state, &tag),
        ReviewCommand::RemoveTag(tag) => verdicts::remove_tag(state, &tag),
        ReviewCommand::StepMinScore(steps) => canvas::update::step_min_score(state, steps),
        ReviewCommand::ChangeView(change) => canvas::update::change(state, change),
        ReviewCommand::SetNumber(number, value) => state.settings.set(number, value),
    }
}

pub(crate) fn on_event(state: &mut State, event: ReviewEvent) {
    match event {
        ReviewEvent::Reported(task, result) => {
            settle(state, task, result, |state| Some(&mut state.review_report));
        }
        ReviewEvent::SampleLoaded(task, result) => spot_check::loaded(state, task, result),
        ReviewEvent::Compared(task, result) => comparison::update::compared(state, task, result),
        ReviewEvent::FilmstripGathered { id, frames } => {
            if let Some(strip) = &mut state.filmstrip {
                strip.frames.take(id, frames);
                strip.follow_frames();
            }
        }
        ReviewEvent::Explained(task, result) => explain::update::explained(state, task, result),
    }
}

//! The only code that changes [`State`].

mod arrange;
mod browse;
mod compare;
mod engine;
mod evaluate;
mod explain;
mod export;
mod filmstrip;
mod go_to;
mod import;
mod judge;
mod models;
mod predict;
mod project;
mod project_requests;
mod remote;
mod review;
mod run_on_screen;
mod run_tasks;
mod s3;
mod shown;
mod task_ends;
#[cfg(test)]
mod tests;
mod upload;
mod view;
mod watch;

use std::path::PathBuf;

pub(in crate::state) use run_on_screen::RememberedRuns;

use super::{Action, Command, Effect, Event, FileRequest, JudgeField, Message, Overlay, Run, State};
use crate::domain::{Problem, Verdict, counted};
use crate::state::{
    BrowseEffect, EndpointsEffect, EvaluationCommand, ImportSubject, ModelsEffect, Queue, TruthAt, TruthReading,
};

/// Applies one message and returns the effects to run outside, in order.
pub fn update(state: &mut State, message: Message) -> Vec<Effect> {
    let mut effects = Queue::default();
    match message {
        Message::Command(command) => on_command(state, command, &mut effects),
        Message::Event(event) => on_event(state, event, &mut effects),
    }
    let run = state.run().map(Run::id);
    state.judgments.follow_run(run);
    run_on_screen::follow(state, &mut effects);
    view::follow(state);
    if state.overlay == Overlay::Quit && state.unfinished().is_empty() {
        state.overlay = Overlay::None;
    }
    compare::follow(state, &mut effects);
    evaluate::follow(state, &mut effects);
    arrange::follow(state, &mut effects);
    filmstrip::follow(state, &mut effects);
    export::follow(state, &mut effects);
    effects.into_vec()
}

fn on_command(state: &mut State, command: Command, effects: &mut Queue<Effect>) {
    match command {
        Command::Start { source, model } => {
            let file = model.as_ref().map(PathBuf::from).filter(|path| browse::has_extension(path, "onnx"));
            let id = model.filter(|_| file.is_none());
            match id {
                Some(id) => state.models.choose_named(id),
                None => state.models.choose(state.settings.model.clone()),
            }
            effects.push(BrowseEffect::LimitMegapixels(state.settings.max_megapixels));
            let max_bytes = state.settings.cache_bytes;
            effects.push(BrowseEffect::LimitCache(max_bytes));
            if let Some(last) = state.settings.recent.first() {
                effects.push(BrowseEffect::BeginDialogsAt(last.clone()));
            }
            effects.push(ModelsEffect::List);
            remote::watch_again(state, effects);
            effects.push(EndpointsEffect::FollowRecords);
            if let Some(path) = source {
                browse::open_path(state, path, effects);
            }
            if let Some(file) = file {
                import::open(state, ImportSubject::File(file), effects);
            }
        }
        Command::DrawnBy(graphics) => state.graphics = graphics,
        Command::Do(action) => on_action(state, action, effects),
        Command::CopyCommand(text) => {
            effects.push(Effect::CopyText { text, notice: "Copied the command; paste it into a terminal".to_owned() });
        }
        Command::SignalTask(task, signal) => run_tasks::signal(state, task, signal, effects),
        Command::ClearFinishedTasks => state.tasks.clear_finished(),
        Command::Restart => effects.push(Effect::Restart),
        Command::SetOverlay(overlay) => state.overlay = overlay,
        Command::DismissNotice => state.notice = None,
        Command::Jobs(command) => remote::jobs::on_command(state, command, effects),
        Command::Endpoints(command) => remote::endpoints::on_command(state, command, effects),
        Command::Outputs(command) => remote::outputs::on_command(state, command, effects),
        Command::Inference(command) => engine::on_command(state, command, effects),
        Command::Models(command) => models::on_command(state, command, effects),
        Command::S3(command) => s3::on_command(state, command, effects),
        Command::Export(command) => export::on_command(state, command, effects),
        Command::Upload(command) => upload::on_command(state, command, effects),
        Command::Project(command) => project::on_command(state, command, effects),
        Command::Browse(command) => browse::on_command(state, command, effects),
        Command::Review(command) => review::on_command(state, command, effects),
        Command::Evaluation(command) => evaluate::on_command(state, command, effects),
    }
}

/// Runs an action unless its own check rejects it.
fn on_action(state: &mut State, action: Action, effects: &mut Queue<Effect>) {
    if let Err(reason) = action.check(state) {
        state.show_notice(reason);
        return;
    }
    match action {
        Action::OpenFolder => effects.push(Effect::PickFile(FileRequest::Folder)),
        Action::OpenImages => effects.push(Effect::PickFile(FileRequest::Images)),
        Action::OpenS3 => s3::toggle_picker(state, effects),
        Action::OpenSamples => browse::open_samples(state, effects),
        Action::OpenProject => effects.push(Effect::PickFile(FileRequest::Project)),
        Action::OpenTruth => state.overlay = toggled(state.overlay, Overlay::OpenTruth),
        Action::TruthOfImages => evaluate::open_source(state, effects),
        Action::TruthOfVerdicts => {
            if let Some(run) = state.run().map(Run::id) {
                evaluate::open(state, TruthAt::Verdicts(run), TruthReading::default(), None, effects);
            }
        }
        Action::Evaluation => {
            let is_shown = state.evaluating.as_ref().is_some_and(|evaluating| evaluating.is_shown);
            evaluate::show_panel(state, !is_shown);
            if let Some(evaluating) = state.evaluating.as_mut().filter(|_| !is_shown) {
                evaluating.openings += 1;
            }
        }
        Action::CompareRuns => compare::toggle(state, effects),
        Action::CloseTruth => evaluate::on_command(state, EvaluationCommand::CloseTruth, effects),
        Action::Reload => watch::reload(state, effects),
        Action::Export => export::open(state),
        Action::Upload => upload::open(state, effects),
        Action::StartJob => remote::open_form(state, effects),
        Action::Jobs => remote::open_jobs(state, effects),
        Action::DeployEndpoint => remote::endpoint_form::open_form(state, effects),
        Action::Endpoints => remote::endpoints::open_endpoints(state, effects),
        Action::OpenOutputs => {
            state.overlay = toggled(state.overlay, Overlay::OpenOutputs);
            remote::outputs_dialog(state, effects);
        }
        Action::OpenPredictions => {
            state.overlay = toggled(state.overlay, Overlay::OpenPredictions);
            state.remote.outputs.failure = None;
        }
        Action::PredictHere => predict::predict_at(state, None, effects),
        Action::PredictAtEndpoint => remote::edit_endpoint(state, effects),
        Action::PredictInTfServing => remote::edit_tf_serving(state, effects),
        Action::CompareWithLocal => remote::compare_with_local(state, effects),
        Action::ExportComparison => export::show(state, Overlay::ExportComparison),
        Action::ExportEvaluation => export::show(state, Overlay::ExportEvaluation),
        Action::SaveProjectAs => {
            let name = format!("{}.spotcheck", state.source_stem());
            effects.push(Effect::PickFile(FileRequest::ProjectTarget { name }));
        }
        Action::MoveProject => effects.push(Effect::PickFile(FileRequest::MovedFolder)),
        Action::AddModel => effects.push(Effect::PickFile(FileRequest::Model)),
        Action::CopyImage => browse::copy_image(state, effects),
        Action::CopyPath => browse::copy_path(state, effects),
        Action::Reveal => browse::reveal(state, effects),
        Action::Quit => effects.push(Effect::Quit),
        Action::PredictShown => predict::predict_shown(state, effects),
        Action::PredictAnew => predict::predict_anew(state, effects),
        Action::PredictSelection => predict::predict_selection(state, effects),
        Action::PredictAll => predict::predict_all(state, effects),
        Action::PredictFiltered => predict::predict_filtered(state, effects),
        Action::Search => arrange::focus_search(state),
        Action::ClearSearch => arrange::set_query(state, String::new(), effects),
        Action::PauseTasks => run_tasks::signal_all(state, super::TaskSignal::Pause, effects),
        Action::ResumeTasks => run_tasks::signal_all(state, super::TaskSignal::Resume, effects),
        Action::CancelTasks => run_tasks::signal_all(state, super::TaskSignal::Cancel, effects),
        Action::SelectAll => browse::select_all(state, effects),
        Action::PreviousImage => browse::walk(state, super::Step::By(-1), effects),
        Action::NextImage => browse::walk(state, super::Step::By(1), effects),
        Action::FirstImage => browse::walk(state, super::Step::First, effects),
        Action::LastImage => browse::walk(state, super::Step::Last, effects),
        Action::Filmstrip => filmstrip::toggle(state),
        Action::Explain => explain::explain(state, effects),
        Action::NextBox => view::walk_boxes(state, 1),
        Action::PreviousBox => view::walk_boxes(state, -1),
        Action::Present => view::present(state),
        Action::Accept => judge::set_verdict(state, Some(&Verdict::Accept), effects),
        Action::Reject => judge::set_verdict(state, Some(&Verdict::Reject), effects),
        Action::Unsure => judge::set_verdict(state, Some(&Verdict::Unsure), effects),
        Action::WrongClass => state.overlay = toggled(state.overlay, Overlay::WrongClass),
        Action::ClearVerdict => judge::set_verdict(state, None, effects),
        Action::WriteNote => judge::focus(state, JudgeField::Note),
        Action::AddTag => judge::focus(state, JudgeField::Tag),
        Action::NextUnjudged => judge::next_unjudged(state, effects),
        Action::NextUncertain => judge::next_uncertain(state, effects),
        Action::Undo => judge::undo(state, effects),
        Action::Redo => judge::redo(state, effects),
        Action::Palette => state.overlay = toggled(state.overlay, Overlay::Palette),
        Action::GoTo => {
            state.go_to_missed = false;
            state.overlay = toggled(state.overlay, Overlay::GoTo);
        }
        Action::Help => state.overlay = toggled(state.overlay, Overlay::Help),
        Action::ClearProblems => state.problems.clear(),
        Action::CopyDiagnostics => effects.push(Effect::CopyDiagnostics { lines: view::diagnostics(state) }),
        Action::OpenManual => effects.push(Effect::OpenManual),
        Action::OpenLog => effects.push(Effect::OpenLog),
        _ => view::on_action(state, action, effects),
    }
}

fn toggled(overlay: Overlay, requested: Overlay) -> Overlay {
    if overlay == requested { Overlay::None } else { requested }
}

fn on_event(state: &mut State, event: Event, effects: &mut Queue<Effect>) {
    match event {
        Event::TaskEnded { task, outcome, notes } => task_ends::ended(state, task, outcome, notes, effects),
        Event::Notice(text) => state.show_notice(text),
        Event::Problem(problem) => report_problem(state, problem),
        Event::Jobs(event) => remote::jobs::on_event(state, event, effects),
        Event::Endpoints(event) => remote::endpoints::on_event(state, event, effects),
        Event::Outputs(event) => remote::outputs::on_event(state, event, effects),
        Event::Inference(event) => engine::on_event(state, event, effects),
        Event::Models(event) => models::on_event(state, event, effects),
        Event::S3(event) => s3::on_event(state, event, effects),
        Event::Export(event) => export::on_event(state, event, effects),
        Event::Upload(event) => upload::on_event(state, event, effects),
        Event::Project(event) => project::on_event(state, event, effects),
        Event::Browse(event) => browse::on_event(state, event, effects),
        Event::Review(event) => review::on_event(state, event, effects),
        Event::Evaluation(event) => evaluate::on_event(state, event, effects),
    }
}

/// Reports a problem immediately and adds it to the list.
fn report_problem(state: &mut State, problem: Problem) {
    state.show_notice(problem.to_string());
    let sample = problem.uri.as_ref().and_then(|uri| state.samples.find(uri));
    state.problems.add(problem, sample);
}

fn images(count: usize) -> String {
    counted(count, "image", "images")
}

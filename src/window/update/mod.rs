//! The only code that changes [`State`].

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use crate::domain::{Verdict, counted};
use crate::window::state::{
    Action, BrowseEffect, Command, Effect, EndpointsEffect, EvaluationCommand, Event, FileRequest, ImportSubject,
    JudgeField, Message, ModelsEffect, Overlay, Queue, State, Step, TaskSignal, TruthAt, TruthReading,
};
use crate::window::{
    browse, canvas, comparison, endpoints, evaluation, explain, export, filmstrip, jobs, judge, models, outputs,
    predict, project, remote_inference, s3, search, tasks, upload,
};

/// Applies one message and returns the effects to run outside, in order.
pub(crate) fn update(state: &mut State, message: Message) -> Vec<Effect> {
    let mut effects = Queue::default();
    match message {
        Message::Command(command) => on_command(state, command, &mut effects),
        Message::Event(event) => on_event(state, event, &mut effects),
    }
    let run = state.run_id();
    state.judgments.follow_run(run);
    predict::update::run_on_screen::follow(state, &mut effects);
    canvas::update::follow(state);
    if state.overlay == Overlay::Quit && state.unfinished().is_empty() {
        state.overlay = Overlay::None;
    }
    comparison::update::follow(state, &mut effects);
    evaluation::update::follow(state, &mut effects);
    search::update::follow(state, &mut effects);
    filmstrip::update::follow(state, &mut effects);
    export::update::follow(state, &mut effects);
    effects.into_vec()
}

fn on_command(state: &mut State, command: Command, effects: &mut Queue<Effect>) {
    match command {
        Command::Start { source, model } => {
            let file = model.as_ref().map(PathBuf::from).filter(|path| browse::update::has_extension(path, "onnx"));
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
            jobs::update::watch_again(state, effects);
            effects.push(EndpointsEffect::FollowRecords);
            if let Some(path) = source {
                browse::update::open_path(state, path, effects);
            }
            if let Some(file) = file {
                models::add::update::open(state, ImportSubject::File(file), effects);
            }
        }
        Command::DrawnBy(graphics) => state.graphics = graphics,
        Command::Do(action) => on_action(state, action, effects),
        Command::CopyCommand(text) => {
            effects.push(Effect::CopyText { text, notice: "Copied the command; paste it into a terminal".to_owned() });
        }
        Command::SignalTask(task, signal) => tasks::update::signal(state, task, signal, effects),
        Command::ClearFinishedTasks => state.tasks.clear_finished(),
        Command::Restart => effects.push(Effect::Restart),
        Command::SetOverlay(overlay) => state.overlay = overlay,
        Command::DismissNotice => state.notice = None,
        Command::Jobs(command) => jobs::update::on_command(state, command, effects),
        Command::Endpoints(command) => endpoints::update::on_command(state, command, effects),
        Command::Outputs(command) => outputs::update::on_command(state, command, effects),
        Command::Inference(command) => predict::update::on_command(state, command, effects),
        Command::Models(command) => models::update::on_command(state, command, effects),
        Command::S3(command) => s3::update::on_command(state, command, effects),
        Command::Export(command) => export::update::on_command(state, command, effects),
        Command::Upload(command) => upload::update::on_command(state, command, effects),
        Command::Project(command) => project::update::on_command(state, command, effects),
        Command::Browse(command) => browse::update::on_command(state, command, effects),
        Command::Review(command) => judge::update::on_command(state, command, effects),
        Command::Evaluation(command) => evaluation::update::on_command(state, command, effects),
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
        Action::OpenS3 => s3::update::toggle_picker(state, effects),
        Action::OpenSamples => browse::update::open_samples(state, effects),
        Action::OpenProject => effects.push(Effect::PickFile(FileRequest::Project)),
        Action::OpenTruth => state.overlay = toggled(state.overlay, Overlay::OpenTruth),
        Action::TruthOfImages => evaluation::update::open_source(state, effects),
        Action::TruthOfVerdicts => {
            if let Some(run) = state.run_id() {
                evaluation::update::open(state, TruthAt::Verdicts(run), TruthReading::default(), None, effects);
            }
        }
        Action::Evaluation => {
            let is_shown = state.evaluating.as_ref().is_some_and(|evaluating| evaluating.is_shown);
            evaluation::update::show_panel(state, !is_shown);
            if let Some(evaluating) = state.evaluating.as_mut().filter(|_| !is_shown) {
                evaluating.openings += 1;
            }
        }
        Action::CompareRuns => comparison::update::toggle(state, effects),
        Action::CloseTruth => evaluation::update::on_command(state, EvaluationCommand::CloseTruth, effects),
        Action::Reload => browse::update::watch::reload(state, effects),
        Action::Export => export::update::open(state),
        Action::Upload => upload::update::open(state, effects),
        Action::StartJob => jobs::form::update::open_form(state, effects),
        Action::Jobs => jobs::update::LIST.toggle_dialog(state, effects),
        Action::DeployEndpoint => endpoints::form::update::open_form(state, effects),
        Action::Endpoints => endpoints::update::LIST.toggle_dialog(state, effects),
        Action::OpenOutputs => {
            state.overlay = toggled(state.overlay, Overlay::OpenOutputs);
            outputs::update::outputs_dialog(state, effects);
        }
        Action::OpenPredictions => {
            state.overlay = toggled(state.overlay, Overlay::OpenPredictions);
            state.remote.outputs.failure = None;
        }
        Action::PredictHere => predict::update::predict::predict_at(state, None, effects),
        Action::PredictAtEndpoint => remote_inference::update::form::edit_endpoint(state, effects),
        Action::PredictInTfServing => remote_inference::update::form::edit_tf_serving(state, effects),
        Action::CompareWithLocal => outputs::update::compare_with_local(state, effects),
        Action::ExportComparison => export::update::show(state, Overlay::ExportComparison),
        Action::ExportEvaluation => export::update::show(state, Overlay::ExportEvaluation),
        Action::SaveProjectAs => {
            let name = format!("{}.spotcheck", state.source_stem());
            effects.push(Effect::PickFile(FileRequest::ProjectTarget { name }));
        }
        Action::MoveProject => effects.push(Effect::PickFile(FileRequest::MovedFolder)),
        Action::AddModel => effects.push(Effect::PickFile(FileRequest::Model)),
        Action::CopyImage => browse::update::copy_image(state, effects),
        Action::CopyPath => browse::update::copy_path(state, effects),
        Action::Reveal => browse::update::reveal(state, effects),
        Action::Quit => effects.push(Effect::Quit),
        Action::PredictShown => predict::update::predict::predict_shown(state, effects),
        Action::PredictAnew => predict::update::predict::predict_anew(state, effects),
        Action::PredictSelection => predict::update::predict::predict_selection(state, effects),
        Action::PredictAll => predict::update::predict::predict_all(state, effects),
        Action::PredictFiltered => predict::update::predict::predict_filtered(state, effects),
        Action::Search => search::update::focus_search(state),
        Action::ClearSearch => search::update::set_query(state, String::new(), effects),
        Action::PauseTasks => tasks::update::signal_all(state, TaskSignal::Pause, effects),
        Action::ResumeTasks => tasks::update::signal_all(state, TaskSignal::Resume, effects),
        Action::CancelTasks => tasks::update::signal_all(state, TaskSignal::Cancel, effects),
        Action::SelectAll => browse::update::select_all(state, effects),
        Action::PreviousImage => browse::update::walk(state, Step::By(-1), effects),
        Action::NextImage => browse::update::walk(state, Step::By(1), effects),
        Action::FirstImage => browse::update::walk(state, Step::First, effects),
        Action::LastImage => browse::update::walk(state, Step::Last, effects),
        Action::Filmstrip => filmstrip::update::toggle(state),
        Action::Explain => explain::update::explain(state, effects),
        Action::NextBox => canvas::update::walk_boxes(state, 1),
        Action::PreviousBox => canvas::update::walk_boxes(state, -1),
        Action::Present => canvas::update::present(state),
        Action::Accept => judge::update::verdicts::set_verdict(state, Some(&Verdict::Accept), effects),
        Action::Reject => judge::update::verdicts::set_verdict(state, Some(&Verdict::Reject), effects),
        Action::Unsure => judge::update::verdicts::set_verdict(state, Some(&Verdict::Unsure), effects),
        Action::WrongClass => state.overlay = toggled(state.overlay, Overlay::WrongClass),
        Action::ClearVerdict => judge::update::verdicts::set_verdict(state, None, effects),
        Action::WriteNote => judge::update::verdicts::focus(state, JudgeField::Note),
        Action::AddTag => judge::update::verdicts::focus(state, JudgeField::Tag),
        Action::NextUnjudged => judge::update::verdicts::next_unjudged(state, effects),
        Action::NextUncertain => judge::update::verdicts::next_uncertain(state, effects),
        Action::Undo => judge::update::verdicts::undo(state, effects),
        Action::Redo => judge::update::verdicts::redo(state, effects),
        Action::Palette => state.overlay = toggled(state.overlay, Overlay::Palette),
        Action::GoTo => {
            state.go_to_missed = false;
            state.overlay = toggled(state.overlay, Overlay::GoTo);
        }
        Action::Help => state.overlay = toggled(state.overlay, Overlay::Help),
        Action::ClearProblems => state.problems.clear(),
        Action::CopyDiagnostics => effects.push(Effect::CopyDiagnostics { lines: canvas::update::diagnostics(state) }),
        Action::OpenManual => effects.push(Effect::OpenManual),
        Action::OpenLog => effects.push(Effect::OpenLog),
        _ => canvas::update::on_action(state, action, effects),
    }
}

fn toggled(overlay: Overlay, requested: Overlay) -> Overlay {
    if overlay == requested { Overlay::None } else { requested }
}

fn on_event(state: &mut State, event: Event, effects: &mut Queue<Effect>) {
    match event {
        Event::TaskEnded { task, outcome, notes } => tasks::update::ended(state, task, outcome, notes, effects),
        Event::Notice(text) => state.show_notice(text),
        Event::Problem(problem) => state.report(problem),
        Event::Jobs(event) => jobs::update::on_event(state, event, effects),
        Event::Endpoints(event) => endpoints::update::on_event(state, event, effects),
        Event::Outputs(event) => outputs::update::on_event(state, event, effects),
        Event::Inference(event) => predict::update::on_event(state, event, effects),
        Event::Models(event) => models::update::on_event(state, event, effects),
        Event::S3(event) => s3::update::on_event(state, event, effects),
        Event::Export(event) => export::update::on_event(state, event, effects),
        Event::Upload(event) => upload::update::on_event(state, event, effects),
        Event::Project(event) => project::update::on_event(state, event, effects),
        Event::Browse(event) => browse::update::on_event(state, event, effects),
        Event::Review(event) => judge::update::on_event(state, event, effects),
        Event::Evaluation(event) => evaluation::update::on_event(state, event, effects),
    }
}

pub(crate) fn images(count: usize) -> String {
    counted(count, "image", "images")
}

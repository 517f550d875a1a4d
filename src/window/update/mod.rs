//! The only code that changes [`State`].

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use crate::domain::{ImagePart, Verdict, counted};
use crate::window::judge::update::verdicts;
use crate::window::state::{
    Action, BrowseEffect, Command, Effect, EndpointsEffect, EvaluationCommand, Event, FileRequest, ImportSubject,
    JudgeField, KnownEndpoint, KnownJob, Message, ModelsEffect, NoticeOffer, Overlay, State, Step, TaskSignal, TruthAt,
    TruthReading,
};
use crate::window::{
    browse, canvas, comparison, duplicates, endpoints, evaluation, explain, export, filmstrip, jobs, judge, map,
    models, outputs, predict, project, remote, remote_inference, s3, search, tasks, upload,
};

/// Applies one message and returns the effects to run outside, in order.
pub(crate) fn update(state: &mut State, message: Message) -> Vec<Effect> {
    match message {
        Message::Command(command) => on_command(state, command),
        Message::Event(event) => on_event(state, event),
    }
    let run = state.run_id();
    state.judgments.follow_run(run);
    predict::update::run_on_screen::follow(state);
    canvas::update::follow(state);
    if state.overlay == Overlay::Quit && state.unfinished().is_empty() {
        state.overlay = Overlay::None;
    }
    comparison::update::follow(state);
    evaluation::update::follow(state);
    judge::update::spot_check::follow(state);
    browse::update::captures::follow(state);
    browse::update::follow_named(state);
    duplicates::update::follow(state);
    search::update::follow(state);
    filmstrip::update::follow(state);
    map::update::follow(state);
    export::update::follow(state);
    std::mem::take(&mut state.effects).into_vec()
}

fn on_command(state: &mut State, command: Command) {
    if matches!(command, Command::Do(_) | Command::Review(_)) {
        // Another image would interrupt what the user has begun.
        state.last_viewed.is_decided = true;
        if let Some(presenting) = &mut state.presenting {
            presenting.refusal = None;
        }
    }
    match command {
        Command::Start { source, model } => {
            let file = model.as_ref().map(PathBuf::from).filter(|path| browse::update::has_extension(path, "onnx"));
            let id = model.filter(|_| file.is_none());
            match id {
                Some(id) => state.models.choose_named(id),
                None => state.models.choose(state.settings.model.clone()),
            }
            state.effects.push(BrowseEffect::LimitMegapixels(state.settings.max_megapixels));
            let max_bytes = state.settings.cache_bytes;
            state.effects.push(BrowseEffect::LimitCache(max_bytes));
            if let Some(last) = state.settings.recent.first() {
                state.effects.push(BrowseEffect::BeginDialogsAt(last.clone()));
            }
            state.effects.push(ModelsEffect::List);
            if state.settings.seen_version != env!("CARGO_PKG_VERSION") {
                env!("CARGO_PKG_VERSION").clone_into(&mut state.settings.seen_version);
                let text = format!("Spotcheck was updated to {}", env!("CARGO_PKG_VERSION"));
                state.show_offer(text, NoticeOffer::Do(Action::WhatsNew));
            }
            jobs::update::watch_again(state);
            state.effects.push(EndpointsEffect::FollowRecords);
            if let Some(path) = source {
                browse::update::open_dropped(state, vec![path]);
            }
            if let Some(file) = file {
                models::add::update::open(state, ImportSubject::File(file));
            }
        }
        Command::DrawnBy(graphics) => state.graphics = graphics,
        Command::Do(action) => on_action(state, action),
        Command::CopyCommand(text) => {
            state
                .effects
                .push(Effect::CopyText { text, notice: "Copied the command; paste it into a terminal".to_owned() });
        }
        Command::SignalTask(task, signal) => tasks::update::signal(state, task, signal),
        Command::ClearFinishedTasks => state.tasks.clear_finished(),
        Command::Restart => state.effects.push(Effect::Restart),
        Command::SetOverlay(overlay) => state.overlay = overlay,
        Command::PickFile(request) => state.pick_file(request),
        Command::DismissNotice => state.notice = None,
        Command::Jobs(command) => jobs::update::on_command(state, command),
        Command::Endpoints(command) => endpoints::update::on_command(state, command),
        Command::RemoteJobs(command) => remote::update::on_command::<KnownJob>(state, command),
        Command::RemoteEndpoints(command) => remote::update::on_command::<KnownEndpoint>(state, command),
        Command::Outputs(command) => outputs::update::on_command(state, command),
        Command::Inference(command) => predict::update::on_command(state, command),
        Command::Models(command) => models::update::on_command(state, command),
        Command::S3(command) => s3::update::on_command(state, command),
        Command::Export(command) => export::update::on_command(state, command),
        Command::Upload(command) => upload::update::on_command(state, command),
        Command::Project(command) => project::update::on_command(state, command),
        Command::Browse(command) => browse::update::on_command(state, command),
        Command::Review(command) => judge::update::on_command(state, command),
        Command::Search(command) => search::update::on_command(state, command),
        Command::Evaluation(command) => evaluation::update::on_command(state, command),
        Command::Map(command) => map::update::on_command(state, command),
    }
}

/// Runs an action unless its own check rejects it.
fn on_action(state: &mut State, action: Action) {
    if let Err(reason) = action.check(state) {
        match &mut state.presenting {
            Some(presenting) => presenting.refusal = Some(reason),
            None => state.show_notice(reason),
        }
        return;
    }
    match action {
        Action::OpenFolder => state.pick_file(FileRequest::Folder),
        Action::OpenImages => state.pick_file(FileRequest::Images),
        Action::OpenS3 => s3::update::toggle_picker(state),
        Action::OpenSamples => browse::update::open_samples(state),
        Action::OpenProject => state.pick_file(FileRequest::Project),
        Action::Reload => browse::update::watch::reload(state),
        Action::Export => export::update::open(state),
        Action::ExportComparison => export::update::show(state, Overlay::ExportComparison),
        Action::ExportEvaluation => export::update::show(state, Overlay::ExportEvaluation),
        Action::ExportLabelChanges => export::update::show(state, Overlay::ExportLabelChanges),
        Action::SaveProjectAs => {
            let name = format!("{}.spotcheck", state.source_stem());
            state.pick_file(FileRequest::ProjectTarget { name });
        }
        Action::SecondPass => {
            let name = format!("{}-second.spotcheck", state.source_stem());
            state.pick_file(FileRequest::SecondPassTarget { name });
        }
        Action::MergeProject => project::merge::update::open(state),
        Action::MoveProject => state.pick_file(FileRequest::MovedFolder),
        Action::AddModel => state.pick_file(FileRequest::Model),
        Action::CopyImage => browse::update::copy_image(state, None),
        Action::SaveImage => browse::update::save_image(state),
        Action::FindAlike => browse::update::find_alike(state, ImagePart::Whole),
        Action::FindAlikeBoxes => browse::update::find_alike_boxes(state),
        Action::FindDuplicates => duplicates::update::find(state),
        Action::TagDuplicates => duplicates::update::tag_copies(state),
        Action::CopyPath => browse::update::paths::copy_image(state),
        Action::Reveal => browse::update::paths::reveal_image(state),
        Action::CopyFolderPath => browse::update::paths::copy_searched_folder(state),
        Action::RevealFolder => browse::update::paths::reveal_searched_folder(state),
        Action::Quit => state.effects.push(Effect::Quit),
        Action::Palette => state.overlay = toggled(state.overlay, Overlay::Palette),
        Action::GoTo => {
            state.go_to_missed = false;
            state.overlay = toggled(state.overlay, Overlay::GoTo);
        }
        Action::Help => state.overlay = toggled(state.overlay, Overlay::Help),
        Action::WhatsNew => {
            state.notice = None;
            state.overlay = Overlay::WhatsNew;
        }
        Action::ClearProblems => state.problems.clear(),
        Action::CopyDiagnostics => {
            let lines = canvas::update::diagnostics(state);
            let runtime_library = state.settings.runtime_library.clone();
            state.effects.push(Effect::CopyDiagnostics { runtime_library, lines });
        }
        Action::OpenManual => state.effects.push(Effect::OpenManual),
        Action::OpenLog => state.effects.push(Effect::OpenLog),
        _ => on_truth_action(state, action),
    }
}

/// Shows the image in place of a page.
pub(crate) fn show_image(state: &mut State) {
    evaluation::update::show_panel(state, false);
    comparison::update::show_page(state, false);
}

/// Ground truth, evaluation, and the comparison of runs.
fn on_truth_action(state: &mut State, action: Action) {
    match action {
        Action::OpenTruth => state.overlay = toggled(state.overlay, Overlay::OpenTruth),
        Action::TruthOfImages => evaluation::update::open_source(state),
        Action::TruthOfVerdicts => {
            if let Some(run) = state.run_id() {
                evaluation::update::open(state, TruthAt::Verdicts(run), TruthReading::default(), None);
            }
        }
        Action::Evaluation => {
            let is_shown = state.evaluating.as_ref().is_some_and(|evaluating| evaluating.is_shown);
            evaluation::update::show_panel(state, !is_shown);
            if let Some(evaluating) = state.evaluating.as_mut().filter(|_| !is_shown) {
                evaluating.openings += 1;
            }
        }
        Action::Map => map::update::toggle(state),
        Action::CompareRuns => comparison::update::toggle(state),
        Action::Comparison => {
            let is_shown = state.shows_comparison();
            comparison::update::show_page(state, !is_shown);
        }
        Action::NextLayout => comparison::update::next_layout(state),
        Action::PreviousRun => comparison::update::step_run(state, -1),
        Action::NextRun => comparison::update::step_run(state, 1),
        Action::CorrectTruth => {
            if let Some(labels) = state.labels_to_correct() {
                show_image(state);
                outputs::update::open_predictions(state, labels);
            }
        }
        Action::FindErrorPatterns => evaluation::update::find_patterns(state, None),
        Action::FindNewErrorPatterns => evaluation::update::find_patterns(state, state.compared_run()),
        Action::CloseTruth => evaluation::update::on_command(state, EvaluationCommand::CloseTruth),
        _ => on_remote_action(state, action),
    }
}

/// S3, SageMaker, remote models, and predictions from elsewhere.
fn on_remote_action(state: &mut State, action: Action) {
    match action {
        Action::Upload => upload::update::open(state),
        Action::StartJob => jobs::update::open_form(state),
        Action::Jobs => remote::update::toggle_dialog::<KnownJob>(state),
        Action::DeployEndpoint => endpoints::update::open_form(state),
        Action::Endpoints => remote::update::toggle_dialog::<KnownEndpoint>(state),
        Action::OpenOutputs => {
            state.overlay = toggled(state.overlay, Overlay::OpenOutputs);
            outputs::update::outputs_dialog(state);
        }
        Action::OpenPredictions => {
            state.overlay = toggled(state.overlay, Overlay::OpenPredictions);
            state.remote.outputs.failure = None;
        }
        Action::PredictHere => predict::update::predict::predict_at(state, None),
        Action::PredictAtEndpoint => remote_inference::update::edit_endpoint(state),
        Action::PredictInTfServing => remote_inference::update::edit_tf_serving(state),
        Action::CompareWithLocal => outputs::update::compare_with_local(state),
        _ => on_image_action(state, action),
    }
}

/// Actions on the images: predicting, searching, walking, judging.
fn on_image_action(state: &mut State, action: Action) {
    match action {
        Action::PredictShown => predict::update::predict::predict_shown(state),
        Action::PredictAnew => predict::update::predict::predict_anew(state),
        Action::PredictSelection => predict::update::predict::predict_selection(state),
        Action::PredictAll => predict::update::predict::predict_all(state),
        Action::PredictFiltered => predict::update::predict::predict_filtered(state),
        Action::Search => search::update::focus_search(state),
        Action::ClearSearch => search::update::clear(state),
        Action::Filmstrip => filmstrip::update::toggle(state),
        Action::Explain => explain::update::explain(state),
        Action::NextBox => canvas::update::walk_boxes(state, 1),
        Action::PreviousBox => canvas::update::walk_boxes(state, -1),
        Action::Present => canvas::update::present(state),
        Action::SelectAll => browse::update::select_all(state),
        Action::SelectCover => state.overlay = toggled(state.overlay, Overlay::SelectCover),
        Action::PreviousImage => browse::update::walk(state, Step::By(-1)),
        Action::NextImage => browse::update::walk(state, Step::By(1)),
        Action::FirstImage => browse::update::walk(state, Step::First),
        Action::LastImage => browse::update::walk(state, Step::Last),
        Action::Accept => verdicts::set_verdict(state, Some(&Verdict::Accept)),
        Action::Reject | Action::DeleteBox => verdicts::set_verdict(state, Some(&Verdict::Reject)),
        Action::Unsure => verdicts::set_verdict(state, Some(&Verdict::Unsure)),
        Action::WrongClass => state.overlay = toggled(state.overlay, Overlay::WrongClass),
        Action::DrawBox => judge::update::drawing::toggle(state),
        Action::DuplicateBox => judge::update::drawing::duplicate(state),
        Action::ClearVerdict => verdicts::set_verdict(state, None),
        Action::MarkComplete => verdicts::mark(state, &Verdict::Complete),
        Action::ReturnToLabeler => verdicts::mark(state, &Verdict::Returned),
        Action::SpotCheck => judge::update::spot_check::open(state),
        Action::ReviewReport => judge::update::open_report(state),
        Action::WriteNote => verdicts::focus(state, JudgeField::Note),
        Action::AddTag => verdicts::focus(state, JudgeField::Tag),
        Action::NextUnjudged => verdicts::next_unjudged(state),
        Action::FixLabel => judge::update::fixes::fix(state),
        Action::NextUncertain => verdicts::next_uncertain(state),
        Action::Undo => verdicts::undo(state),
        Action::Redo => verdicts::redo(state),
        Action::PauseTasks => tasks::update::signal_all(state, TaskSignal::Pause),
        Action::ResumeTasks => tasks::update::signal_all(state, TaskSignal::Resume),
        Action::CancelTasks => tasks::update::signal_all(state, TaskSignal::Cancel),
        _ => canvas::update::on_action(state, action),
    }
}

fn toggled(overlay: Overlay, requested: Overlay) -> Overlay {
    if overlay == requested { Overlay::None } else { requested }
}

fn on_event(state: &mut State, event: Event) {
    match event {
        Event::TaskEnded { task, outcome, notes } => tasks::update::ended(state, task, outcome, notes),
        Event::Notice(text) => state.show_notice(text),
        Event::Problem(problem) => state.report(problem),
        Event::Jobs(event) => jobs::update::on_event(state, event),
        Event::Endpoints(event) => endpoints::update::on_event(state, event),
        Event::RemoteJobs(event) => remote::update::on_event(state, event),
        Event::RemoteEndpoints(event) => remote::update::on_event(state, event),
        Event::Outputs(event) => outputs::update::on_event(state, event),
        Event::Inference(event) => predict::update::on_event(state, event),
        Event::Models(event) => models::update::on_event(state, event),
        Event::S3(event) => s3::update::on_event(state, event),
        Event::Export(event) => export::update::on_event(state, event),
        Event::Upload(event) => upload::update::on_event(state, event),
        Event::Project(event) => project::update::on_event(state, event),
        Event::Browse(event) => browse::update::on_event(state, event),
        Event::Review(event) => judge::update::on_event(state, event),
        Event::Search(event) => search::update::on_event(state, event),
        Event::Evaluation(event) => evaluation::update::on_event(state, event),
        Event::Map(event) => map::update::on_event(state, event),
    }
}

pub(crate) fn images(count: usize) -> String {
    counted(count, "image", "images")
}

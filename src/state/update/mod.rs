//! The only code that changes [`State`].

mod arrange;
mod browse;
mod compare;
mod engine;
mod explain;
mod export;
mod filmstrip;
mod go_to;
mod import;
mod judge;
mod models;
mod predict;
mod project;
mod remote;
mod run_tasks;
mod s3;
mod shown;
#[cfg(test)]
mod tests;
mod upload;
mod view;
mod watch;

use super::{
    Action, Command, DeletionCause, Effect, Event, JudgeField, Message, Overlay, Run, SLIDE_SECS,
    State,
};
use crate::domain::{Problem, Verdict};

/// Applies one message and gives what is to be done outside, in order.
pub fn update(state: &mut State, message: Message) -> Vec<Effect> {
    let mut effects = Vec::new();
    match message {
        Message::Command(command) => on_command(state, command, &mut effects),
        Message::Event(event) => on_event(state, event, &mut effects),
    }
    let run = state.run().map(Run::id);
    state.judgements.follow_run(run);
    view::follow(state);
    compare::follow(state, &mut effects);
    arrange::follow(state, &mut effects);
    filmstrip::follow(state, &mut effects);
    export::follow(state, &mut effects);
    effects
}

#[expect(clippy::too_many_lines, reason = "one line a command, and rustfmt")]
fn on_command(state: &mut State, command: Command, effects: &mut Vec<Effect>) {
    match command {
        Command::Start { source, model } => {
            state
                .models
                .choose(model.or_else(|| state.settings.model.clone()));
            effects.push(Effect::LimitMegapixels(state.settings.max_megapixels));
            let max_bytes = state.settings.cache_bytes;
            effects.push(Effect::LimitCache(max_bytes));
            effects.push(Effect::ListModels);
            remote::watch_again(state, effects);
            effects.push(Effect::KeepEndpoints);
            if let Some(path) = source {
                browse::open_path(state, path, effects);
            }
        }
        Command::DrawnBy(graphics) => state.graphics = graphics,
        Command::Do(action) => on_action(state, action, effects),
        Command::Open(path) => browse::open_path(state, path, effects),
        Command::OpenPlace(place) => {
            state.overlay = Overlay::None;
            browse::open_place(state, *place, effects);
        }
        Command::SetS3Access(access) => s3::set_access(state, access, effects),
        Command::ListBuckets => s3::list_buckets(state, effects),
        Command::BrowseTo(address) => s3::browse_to(state, &address, effects),
        Command::SetFolderOpen(folder, is_open) => s3::set_open(state, &folder, is_open, effects),
        Command::ListMore(folder) => s3::list_more(state, &folder, effects),
        Command::SignIn(access) => s3::renew(state, &access, effects),
        Command::CopyCommand(text) => effects.push(Effect::CopyText {
            text,
            notice: "Copied the command; paste it into a terminal".to_owned(),
        }),
        Command::Drop(paths) => browse::open_dropped(state, paths, effects),
        Command::Show(sample) => browse::show(state, sample, effects),
        Command::ToggleSelected(sample) => browse::toggle_selected(state, sample, effects),
        Command::ExtendSelection(sample) => browse::extend_selection(state, sample, effects),
        Command::ClearSelection => state.selection.clear_to_shown(),
        Command::Walk(step) => browse::walk(state, step, effects),
        Command::WantThumbnails { side, wanted } => {
            browse::request_thumbnails(state, side, &wanted, effects);
        }
        Command::SetCacheBytes(bytes) => {
            state.settings.cache_bytes = bytes;
            effects.push(Effect::LimitCache(bytes));
        }
        Command::GoTo(text) => go_to::first(state, &text, effects),
        Command::GoToNext(text) => go_to::next(state, &text, effects),
        Command::MeasureCache => effects.push(Effect::MeasureCache),
        Command::ClearCache => effects.push(Effect::ClearCache),
        Command::LoadPredictions(wanted) => project::load_predictions(state, &wanted, effects),
        Command::SwitchRun(run) => project::switch_run(state, run, effects),
        Command::RenameRun(run, name) => project::rename_run(state, run, &name, effects),
        Command::DeleteRun(run) => project::delete_run(state, run, effects),
        Command::SetExport(options, scope) => {
            state.export.options = options;
            state.export.scope = scope;
        }
        Command::SetComparisonFormat(format) => state.export.comparison = format,
        Command::PickExportTarget => export::pick_target(state, effects),
        Command::ExportComparison { path, replaces } => {
            export::confirm_comparison(state, path, replaces, effects);
        }
        Command::Export { path, replaces } => export::confirm(state, path, replaces, effects),
        Command::PlanUpload(target, scope) => upload::plan(state, *target, scope, effects),
        Command::Upload { replaces } => upload::start(state, replaces, effects),
        Command::ForgetUploadPlan => upload::forget_plan(state, effects),
        Command::DismissUploaded => state.uploaded = None,
        Command::CheckJob(draft) => remote::check(state, *draft, effects),
        Command::Rehearse(request) => remote::rehearse(state, request, effects),
        Command::StartJob => remote::start(state, effects),
        Command::KeepPrice(price) => effects.push(Effect::KeepPrice(price)),
        Command::ChangePrice(change) => effects.push(Effect::ChangePrice(change)),
        Command::ListJobs(query) => remote::list(state, query, effects),
        Command::ListMoreJobs => remote::list_more(state, effects),
        Command::CloseJob => state.remote.open = None,
        Command::OpenJob(id) => remote::open(state, &id, effects),
        Command::WatchJob(id) => remote::watch(state, &id, effects),
        Command::StopWatchingJob(id) => remote::stop_watching(state, &id, effects),
        Command::StopJob(id) => remote::stop(state, &id, effects),
        Command::FindOutcome(id) => remote::look_for_outcome(state, &id, effects),
        Command::PlanRetry(id) => remote::plan_retry(state, &id, effects),
        Command::StartRetry(id) => remote::start_retry(state, &id, effects),
        Command::DropRetry(id) => remote::drop_retry(state, &id, effects),
        Command::OpenOutputs(request) => remote::open_outputs(state, *request, effects),
        Command::PredictAt(model) => {
            predict::predict_at(state, model.map(|model| *model), effects);
        }
        Command::EditRemoteModel(model) => remote::edit_remote_model(state, *model, effects),
        Command::CheckRemoteModel(model) => remote::check_remote_model(state, *model, effects),
        Command::ForgetRemoteModel(model) => {
            let recent = &mut state.settings.recent_remote_models;
            recent.retain(|known| *known != *model);
        }
        Command::ShowResponse(model) => remote::show_response(state, *model, effects),
        Command::LookAtOutputs(at) => remote::look_at_outputs(state, *at, effects),
        Command::TryReading(request) => remote::reading::try_it(state, *request, effects),
        Command::SaveMapping(request) => remote::reading::save(state, *request, effects),
        Command::LoadMapping(path) => remote::reading::load(state, path, effects),
        Command::DeleteMapping(path) => remote::reading::delete(state, path, effects),
        Command::PickMapping => effects.push(Effect::PickMapping),
        Command::FindLeftovers(id) => remote::look_for_leftovers(state, &id, effects),
        Command::DeleteLeftovers(id) => remote::delete_leftovers(state, &id, effects),
        Command::CheckDeployment(draft) => remote::endpoint_form::check(state, *draft, effects),
        Command::Deploy => remote::endpoint_form::deploy(state, effects),
        Command::ListEndpoints(query) => remote::endpoints::list(state, query, effects),
        Command::ListMoreEndpoints => remote::endpoints::list_more(state, effects),
        Command::OpenEndpoint(id) => remote::endpoints::open(state, &id, effects),
        Command::CloseEndpoint => state.remote.endpoints.open = None,
        Command::WatchEndpoint(id) => remote::endpoints::watch(state, &id, effects),
        Command::StopWatchingEndpoint(id) => {
            remote::endpoints::stop_watching(state, &id, effects);
        }
        Command::ReadEndpointLog(id) => remote::endpoints::read_log(state, &id, effects),
        Command::AskToDeleteEndpoint(id) => remote::endpoints::ask_to_delete(state, &id, effects),
        Command::KeepEndpoint => state.remote.endpoints.confirming = None,
        Command::DeleteEndpoint(id) => {
            remote::endpoints::delete(state, &id, DeletionCause::Wish, effects);
        }
        Command::SetEndpointEnd(id, delete_at_ms) => {
            remote::endpoints::set_end(state, id, delete_at_ms, effects);
        }
        Command::DismissExported => state.exported = None,
        Command::RevealPath(path) => effects.push(Effect::Reveal(path)),
        Command::SaveProjectAs(path) => project::save_as(state, path, effects),
        Command::MoveProject(folder) => project::move_to(state, folder, effects),
        Command::SetQuery(text) => arrange::set_query(state, text, effects),
        Command::SetSort(sort) => arrange::set_sort(state, sort, effects),
        Command::WantTiles(wanted) => browse::request_tiles(state, wanted, effects),
        Command::SetCanvas(view) => {
            state.canvas = view;
            state.canvas_request = None;
        }
        Command::SelectBox(selected) => state.shown.selected_box = selected,
        Command::ShowBox(sample, index) => filmstrip::show_box(state, sample, index, effects),
        Command::OpenFilmstrip(class) => filmstrip::open(state, class),
        Command::SetFilmOrder(order) => filmstrip::set_order(state, order),
        Command::WantCrops(wanted) => filmstrip::request_crops(state, &wanted, effects),
        Command::SelectClass(selected) => state.shown.selected_class = selected,
        Command::HideExplanation => explain::hide(state, effects),
        Command::SetExplanationOpacity(opacity) => {
            state.settings.explanation_opacity = opacity.clamp(0.0, 1.0);
        }
        Command::CompareWith(run) => compare::start(state, run, effects),
        Command::CompareAgain => compare::again(state, effects),
        Command::SetCompareLayout(layout) => state.settings.compare_layout = layout,
        Command::StopComparing => compare::stop(state, effects),
        Command::Present(true) => view::present(state),
        Command::Present(false) => state.presenting = None,
        Command::PlaySlides(is_playing) => {
            if let Some(presenting) = &mut state.presenting {
                presenting.is_playing = is_playing;
            }
        }
        Command::SetSlideSecs(secs) => {
            let (low, high) = (*SLIDE_SECS.start(), *SLIDE_SECS.end());
            state.settings.slide_secs = secs.clamp(low, high);
        }
        Command::SetVerdict(verdict) => judge::set_verdict(state, verdict.as_ref(), effects),
        Command::ConfirmMassVerdict => judge::confirm_mass_verdict(state, effects),
        Command::SetNote { samples, text } => judge::set_note(state, &samples, &text, effects),
        Command::AddTag(tag) => judge::add_tag(state, &tag, effects),
        Command::RemoveTag(tag) => judge::remove_tag(state, &tag, effects),
        Command::ChangeView(change) => view::change(state, change, effects),
        Command::ChooseModel(id) => models::choose_model(state, id, effects),
        Command::FetchModel(id) => models::fetch_model(state, id, None, effects),
        Command::PickWeights(id) => effects.push(Effect::PickWeights(id)),
        Command::RemoveModel(id) => effects.push(Effect::RemoveModel { id }),
        Command::ChooseDevice(device) => {
            state.settings.device = device;
            models::settings_changed(state, effects);
        }
        Command::SetBatch(batch) => {
            state.settings.batch = batch;
            models::settings_changed(state, effects);
        }
        Command::SetThreads(threads) => {
            state.settings.threads = threads;
            models::settings_changed(state, effects);
        }
        Command::SetRuntimeLibrary(path) => {
            state.settings.runtime_library = path;
            models::runtime_changed(state, effects);
        }
        Command::InstallRuntime(kind) => models::install_runtime(state, kind, effects),
        Command::SetPredictOnOpen(enabled) => {
            state.settings.predict_on_open = enabled;
            predict::predict_shown_if_wanted(state, effects);
        }
        Command::SetMaxMegapixels(max) => {
            state.settings.max_megapixels = max;
            effects.push(Effect::LimitMegapixels(max));
        }
        Command::SetThumbnailSide(side) => view::set_thumbnail_side(state, side),
        Command::SignalTask(task, signal) => run_tasks::signal(state, task, signal, effects),
        Command::ClearFinishedTasks => state.tasks.clear_finished(),
        Command::OverruleImport { field, value } => {
            import::overrule(state, field, value, effects);
        }
        Command::SetImportLabels(labels) => import::set_labels(state, labels, effects),
        Command::ConfirmImport => import::confirm(state, effects),
        Command::CancelImport => state.import = None,
        Command::TryAgain => engine::try_again(state, effects),
        Command::Restart => effects.push(Effect::Restart),
        Command::SetOverlay(overlay) => state.overlay = overlay,
        Command::DismissNotice => state.notice = None,
        Command::DismissOffer(model_id) => {
            state.settings.dismissed_offers.insert(model_id);
        }
        Command::ForgetRecent(path) => state.settings.recent.retain(|known| *known != path),
        Command::ForgetRecentPlace(place) => state.settings.forget_place(&place),
    }
}

/// Does nothing where the action's own check says that it cannot be done now.
fn on_action(state: &mut State, action: Action, effects: &mut Vec<Effect>) {
    if let Err(reason) = action.check(state) {
        state.tell(reason);
        return;
    }
    match action {
        Action::OpenFolder => effects.push(Effect::PickFolder),
        Action::OpenImages => effects.push(Effect::PickImages),
        Action::OpenS3 => s3::toggle_picker(state, effects),
        Action::OpenSamples => browse::open_samples(state, effects),
        Action::OpenProject => effects.push(Effect::PickProject),
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
        Action::PredictHere => predict::predict_at(state, None, effects),
        Action::PredictAtEndpoint => remote::edit_endpoint(state, effects),
        Action::PredictInTfServing => remote::edit_tf_serving(state, effects),
        Action::CompareWithLocal => remote::compare_with_local(state, effects),
        Action::ExportComparison => export::show(state, Overlay::ExportComparison),
        Action::SaveProjectAs => {
            effects.push(Effect::PickProjectTarget(state.source_stem()));
        }
        Action::MoveProject => effects.push(Effect::PickMovedFolder),
        Action::AddModel => effects.push(Effect::PickModel),
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
        Action::CopyDiagnostics => effects.push(Effect::CopyDiagnostics {
            lines: view::diagnostics(state),
        }),
        Action::OpenManual => effects.push(Effect::OpenManual),
        Action::OpenLog => effects.push(Effect::OpenLog),
        _ => view::on_action(state, action, effects),
    }
}

fn toggled(overlay: Overlay, wanted: Overlay) -> Overlay {
    if overlay == wanted {
        Overlay::None
    } else {
        wanted
    }
}

#[expect(clippy::too_many_lines, reason = "one line an event, and rustfmt")]
fn on_event(state: &mut State, event: Event, effects: &mut Vec<Effect>) {
    match event {
        Event::Opened {
            source,
            name,
            place,
        } => browse::opened(state, source, name, place, effects),
        Event::Listed { source, page } => browse::listed(state, source, page, effects),
        Event::ListingChanged { source, change } => {
            watch::changed(state, source, change, effects);
        }
        Event::CacheMeasured(usage) => state.cache_usage = Some(usage),
        Event::ListedAgain {
            source,
            task,
            result,
        } => watch::listed_again(state, source, task, result, effects),
        Event::ListingEnded {
            source,
            task,
            result,
        } => browse::listing_ended(state, source, task, result, effects),
        Event::ProjectOpened { source, content } => {
            project::opened(state, source, *content, effects);
        }
        Event::Saved { source, up_to } => project::saved(state, source, up_to, effects),
        Event::SaveFailed { source, reason } => {
            project::save_failed(state, source, reason, effects);
        }
        Event::RunLoaded {
            source,
            run,
            predictions,
        } => project::run_loaded(state, source, run, predictions),
        Event::RunLoadingEnded {
            source,
            run,
            task,
            result,
        } => project::run_loading_ended(state, source, run, task, result, effects),
        Event::PredictionsLoaded {
            source,
            predictions,
        } => {
            project::predictions_loaded(state, source, predictions, effects);
        }
        Event::ProjectSavedAs { source, result } => project::saved_as(state, source, result),
        Event::ThumbnailFailed {
            source,
            sample,
            version,
            reason,
        } => {
            if state.samples.version(sample) == version {
                browse::unreadable(state, source, sample, reason);
            }
        }
        Event::Displayed {
            source,
            sample,
            result,
        } => browse::displayed(state, source, sample, result, effects),
        Event::ModelsListed {
            entries,
            defaults,
            problems,
        } => models::models_listed(state, entries, defaults, problems, effects),
        Event::ModelRemoved { id, result } => models::model_removed(state, &id, result, effects),
        Event::EngineReady {
            task,
            report,
            restart_to_use,
        } => engine::ready(state, task, report, restart_to_use, effects),
        Event::EngineFailed {
            task,
            message,
            offer,
        } => engine::failed(state, task, message, offer),
        Event::EngineCancelled { task } => engine::cancelled(state, task),
        Event::Connected {
            source,
            task,
            at_ms,
            result,
        } => {
            let result = result.map(|found| *found);
            remote::connected(state, source, task, at_ms, result, effects);
        }
        Event::RemotePredicted(prediction) => remote::predicted(state, *prediction, effects),
        Event::RemoteLatency { key, latency } => remote::measured(state, &key, latency),
        Event::RemoteModelChecked { task, result } => {
            remote::remote_model_checked(state, task, result);
        }
        Event::DeviceLost { key, message } => drop(engine::lost(state, &key, message)),
        Event::Report { key, report } => engine::reported(state, &key, report),
        Event::SourceUnreachable {
            source,
            run,
            sample,
            message,
        } => engine::source_unreachable(state, source, run, sample, message),
        Event::Predicted {
            source,
            run,
            at_ms,
            predictions,
        } => engine::predicted(state, source, run, at_ms, predictions, effects),
        Event::Compared { task, result } => compare::compared(state, task, result),
        Event::TaskEnded {
            task,
            outcome,
            notes,
        } => run_tasks::ended(state, task, outcome, notes, effects),
        Event::BoxesCounted { id, counts } => state.export_boxes.take(id, counts),
        Event::FilmstripGathered { id, frames } => filmstrip::gathered(state, id, frames),
        Event::UploadPlanned { task, result } => upload::planned(state, task, result, effects),
        Event::Uploaded {
            task,
            target,
            result,
        } => upload::ended(state, task, target, result, effects),
        Event::PricesRead { path, result } => remote::prices_read(state, path, result, effects),
        Event::JobChecked { task, result } => remote::checked(state, task, result),
        Event::Rehearsed { task, result } => remote::rehearsed(state, task, result),
        Event::JobStarted { task, result } => remote::started(state, task, result, effects),
        Event::JobsListed {
            task,
            is_first,
            result,
        } => remote::listed(state, task, is_first, result),
        Event::JobSeen { id, task, progress } => remote::seen(state, &id, task, *progress),
        Event::JobTrouble { id, task, text } => remote::trouble(state, &id, task, text),
        Event::JobWatchEnded {
            id,
            task,
            end: ending,
        } => {
            remote::watch_ended(state, &id, task, ending, effects);
        }
        Event::JobStopAsked { id, task, result } => {
            remote::stop_asked(state, &id, task, result, effects);
        }
        Event::OutcomeFound { id, task, result } => {
            remote::outcome_found(state, &id, task, result);
        }
        Event::RetryPlanned { id, task, result } => {
            remote::retry_planned(state, &id, task, result);
        }
        Event::RetryStarted { id, task, result } => {
            remote::retry_started(state, &id, task, result, effects);
        }
        Event::OutputsFound {
            source, run, found, ..
        } => remote::outputs_found(state, source, run, *found, effects),
        Event::RunLabelled {
            source,
            run,
            labels,
        } => remote::labelled(state, source, run, *labels, effects),
        Event::OutputsRead {
            source,
            task,
            result,
        } => remote::outputs_read(state, source, task, result, effects),
        Event::OutputsLookedAt {
            source,
            task,
            result,
        } => remote::looked_at_outputs(state, source, task, result, effects),
        Event::ReadingTried { question, trial } => {
            remote::reading::tried(state, question, *trial);
        }
        Event::MappingsListed { saved, problems } => {
            remote::reading::listed(state, saved, problems);
        }
        Event::MappingSaved(result) => {
            remote::reading::saved(state, result.map(|saved| *saved), effects);
        }
        Event::MappingLoaded(result) => {
            remote::reading::loaded(state, result.map(|loaded| *loaded));
        }
        Event::MappingDeleted(result) => remote::reading::deleted(state, result, effects),
        Event::ResponseShown {
            source,
            task,
            of,
            result,
        } => remote::response_shown(state, source, task, *of, result, effects),
        Event::LeftoversFound { id, task, result } => {
            remote::leftovers_found(state, &id, task, result);
        }
        Event::LeftoversDeleted { id, task, result } => {
            remote::leftovers_deleted(state, &id, task, result);
        }
        Event::EndpointRecordsRead {
            records,
            unreadable,
            due,
        } => remote::endpoints::records_read(state, records, unreadable, &due, effects),
        Event::EndpointsOutdated => remote::endpoints::look_again(state, effects),
        Event::DeploymentChecked { task, result } => {
            remote::endpoint_form::checked(state, task, result);
        }
        Event::Deployed { task, result } => {
            remote::endpoint_form::deployed(state, task, result, effects);
        }
        Event::EndpointsListed {
            task,
            is_first,
            result,
        } => remote::endpoints::listed(state, task, is_first, result),
        Event::EndpointSeen {
            id,
            task,
            endpoint,
            config,
            usd_per_hour,
        } => {
            let known = (config, usd_per_hour);
            remote::endpoints::seen(state, &id, task, endpoint, known);
        }
        Event::EndpointTrouble { id, task, text } => {
            remote::endpoints::trouble(state, &id, task, text);
        }
        Event::EndpointWatchEnded { id, task, result } => {
            remote::endpoints::watch_ended(state, &id, task, result);
        }
        Event::EndpointLogRead { id, task, result } => {
            remote::endpoints::log_read(state, &id, task, result);
        }
        Event::EndpointDeleted {
            id,
            task,
            cause,
            result,
        } => remote::endpoints::deleted(state, &id, task, cause, result),
        Event::Exported { task, result } => export::ended(state, task, result, effects),
        Event::Explained { task, result } => explain::explained(state, task, result),
        Event::Recognised { import, result } => import::recognised(state, import, result),
        Event::ModelAdded { import, result } => import::added(state, import, result, effects),
        Event::Arranged {
            id,
            arrangement,
            suppressed,
        } => arrange::arranged(state, id, arrangement, suppressed, effects),
        Event::Counted { id, statistics } => arrange::counted(state, id, statistics),
        Event::ArrangeFailed { id, reason } => arrange::failed(state, id, &reason),
        Event::AwsSetupRead(setup) => s3::setup_read(state, setup),
        Event::SignedIn {
            access,
            task,
            result,
            renewal,
        } => s3::signed_in(state, &access, task, result, renewal, effects),
        Event::BucketsListed { task, result } => s3::buckets_listed(state, task, result),
        Event::S3FolderListed { folder, task, page } => {
            s3::folder_listed(state, &folder, task, page);
        }
        Event::S3FolderEnded {
            folder,
            task,
            result,
        } => s3::folder_ended(state, &folder, task, result),
        Event::FilesPicked(pick) => browse::picked(state, pick, effects),
        Event::Told(text) => state.tell(text),
        Event::WentWrong(problem) => went_wrong(state, problem),
    }
}

/// A problem that the user should see now, and find again in the list.
fn went_wrong(state: &mut State, problem: Problem) {
    state.tell(problem.to_string());
    let sample = problem.uri.as_ref().and_then(|uri| state.samples.find(uri));
    state.problems.add(problem, sample);
}

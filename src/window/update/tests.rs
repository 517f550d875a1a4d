use crate::window::state::{
    Action, BrowseCommand, BrowseEffect, BrowseEvent, Command, Display, DisplayInfo, Effect, Event, Explanation,
    ExportCommand, ExportEvent, Failure, FilePick, FileRequest, ImportSubject, InferenceCommand, InferenceEffect,
    InferenceEvent, LabelChoice, Listing, Loadable, Message, ModelDefaults, ModelEntry, ModelsCommand, ModelsEffect,
    ModelsEvent, NewPrediction, Offer, Overlay, ProjectContent, ProjectEffect, ProjectEvent, ProjectStatus,
    ReviewCommand, ReviewEffect, ReviewEvent, Run, SaveRequest, SourceId, SourceSpec, State, Step, StoredPrediction,
    StoredRow, TaskId, TaskKind, TaskOutcome, TaskSignal, ViewChange,
};
use std::path::PathBuf;
use std::sync::Arc;

use super::update;
use crate::domain::{
    Change, ChannelOrder, ClassScore, DetectionOutput, Device, DeviceReport, FileStamp, LabelSet, ListingChange,
    Location, ModelCard, OutputConvention, Page, Prediction, PredictionContent, Problem, RunId, RunInfo, Saliency,
    Sample, SampleId, SampleUri,
};
use crate::review::PredictionStatus;
use crate::window::models::add::state::testing;

/// Whether an effect matches this pattern.
macro_rules! has {
    ($effects:expr, $($pattern:tt)+) => {
        $effects.iter().any(|effect| matches!(effect, $($pattern)+))
    };
}

mod arranging;
mod drawing;
mod endpoints;
mod judging;
mod reloading;
mod remote;
mod remote_inference;
mod s3;

/// Runs a command and returns its effects except arrange requests, which follow nearly everything and have their own
/// tests.
fn command(state: &mut State, command: impl Into<Command>) -> Vec<Effect> {
    without_orders(update(state, Message::Command(command.into())))
}

fn event(state: &mut State, event: impl Into<Event>) -> Vec<Effect> {
    without_orders(update(state, Message::Event(event.into())))
}

fn without_orders(mut effects: Vec<Effect>) -> Vec<Effect> {
    effects.retain(|effect| !matches!(effect, Effect::Search(_)));
    effects
}

/// The changes sent to the project file.
fn changes(effects: &[Effect]) -> Vec<Change> {
    let saves = effects.iter().filter_map(|effect| match effect {
        Effect::Project(ProjectEffect::Save { changes, .. }) => Some(changes.clone()),
        _ => None,
    });
    saves.flatten().collect()
}

fn page(names: &[&str]) -> Page {
    let samples = names.iter().map(|name| Sample {
        uri: SampleUri::new(format!("/photos/{name}")),
        name: (*name).to_owned(),
        size_bytes: 1,
        modified_ns: None,
        etag: None,
        capture: None,
    });
    Page { samples: samples.collect(), ..Page::default() }
}

fn source_of(effects: &[Effect]) -> SourceId {
    let id = effects.iter().find_map(|effect| match effect {
        Effect::Browse(BrowseEffect::Open { source, .. }) => Some(*source),
        _ => None,
    });
    id.expect("a source is opened")
}

/// A window with a ready model and three listed images; also returns the effects of the first page.
fn opened() -> (State, SourceId, Vec<Effect>) {
    let mut state = State::default();
    command(&mut state, Command::Start { source: None, model: None });
    event(&mut state, models(&["small"]));
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
    event(&mut state, empty_project(source));
    let page = page(&["a.jpg", "b.jpg", "c.jpg"]);
    let effects = event(&mut state, BrowseEvent::Listed { source, page });
    (state, source, effects)
}

fn empty_project(source: SourceId) -> Event {
    Event::Project(ProjectEvent::Opened {
        source,
        content: Box::new(ProjectContent {
            path: Some(PathBuf::from("/data/photos.spotcheck")),
            status: ProjectStatus::Writable,
            runs: Vec::new(),
            next_run: RunId(1),
            judgments: Vec::new(),
            views: Vec::new(),
            notes: Vec::new(),
        }),
    })
}

fn models(ids: &[&str]) -> Event {
    let entries = ids.iter().map(|id| ModelEntry {
        card: card(id),
        labels: Arc::new(LabelSet::parse("cat\ndog").unwrap()),
        is_ready: true,
        can_fetch: false,
        can_remove: false,
        disk_bytes: 0,
        origin: String::new(),
        can_edit: false,
        problem: None,
    });
    Event::Models(ModelsEvent::Listed {
        entries: entries.collect(),
        defaults: ModelDefaults { classification: Some(ids[0].to_owned()), detection: None },
        problems: Vec::new(),
    })
}

fn card(id: &str) -> ModelCard {
    let text = format!(
        r#"{{"id":"{id}","name":"{id}","task":"classification","license":"MIT","origin":"test",
        "file":{{"name":"m.onnx","bytes":1,"sha256":""}},
        "input":{{"layout":"nchw","type":"float32","resize":{{"stretch":{{"width":2,"height":2}}}}}},
        "output":{{"classification":{{"values":"logits"}}}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

fn report() -> Box<DeviceReport> {
    Box::new(DeviceReport {
        device: Device::Cpu,
        reason: "it is the fastest device that works on this computer".to_owned(),
        adapter: None,
        refused: Vec::new(),
        runtime_version: "1".to_owned(),
        runtime_path: String::new(),
        sessions: 1,
        threads_per_session: 1,
        batch: 1,
        warm_up_ms: 0.0,
        latency: None,
    })
}

fn ready_event(task: TaskId) -> Event {
    Event::Inference(InferenceEvent::Ready { task, report: report(), restart_to_use: None })
}

fn cat() -> Prediction {
    Prediction {
        width: 3,
        height: 2,
        content: PredictionContent::Classes(vec![ClassScore { index: 0, label: "cat".to_owned(), score: 0.9 }]),
        warnings: Vec::new(),
    }
}

fn prepare_of(effects: &[Effect]) -> TaskId {
    let found = effects.iter().find_map(|effect| match effect {
        Effect::Inference(InferenceEffect::Prepare(request)) => Some(request.ticket.id),
        _ => None,
    });
    found.expect("a model is prepared")
}

/// Like [`opened`], with the model loaded and the first image requested.
fn ready() -> (State, SourceId, RunId) {
    let (mut state, source, effects) = opened();
    let task = prepare_of(&effects);
    event(&mut state, ready_event(task));
    let run = state.run().unwrap().id();
    (state, source, run)
}

/// For the current file.
fn new_prediction(sample: SampleId, result: Result<Prediction, String>) -> NewPrediction {
    NewPrediction { sample, stamp: FileStamp::default(), result }
}

fn prediction(state: &mut State, source: SourceId, run: RunId, sample: u32) {
    let predictions = vec![new_prediction(SampleId(sample), Ok(cat()))];
    event(state, Event::Inference(InferenceEvent::Predicted { source, run, at_ms: 1, predictions }));
}

#[test]
fn first_page_shows_an_image_and_prepares_the_model() {
    let (state, _, effects) = opened();
    assert_eq!(state.shown_sample(), Some(SampleId(0)));
    assert!(has!(effects, Effect::Browse(BrowseEffect::Display { sample: SampleId(0), .. })), "{effects:?}");
    assert!(has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
}

#[test]
fn shown_image_is_predicted_when_the_model_is_ready() {
    let (mut state, _, effects) = opened();
    let task = prepare_of(&effects);
    let effects = event(&mut state, ready_event(task));
    assert!(has!(effects, Effect::Inference(InferenceEffect::PredictOne { .. })), "{effects:?}");
    assert!(!state.tasks.running().iter().any(|task| matches!(task.kind, TaskKind::Prepare)));
}

#[test]
fn late_page_of_another_source_is_dropped() {
    let (mut state, old, _) = opened();
    let new = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/other"))));
    event(&mut state, BrowseEvent::Listed { source: old, page: page(&["late.jpg"]) });
    assert!(state.samples.is_empty());
    event(&mut state, BrowseEvent::Listed { source: new, page: page(&["new.jpg"]) });
    assert_eq!(state.samples.get(SampleId(0)).unwrap().name, "new.jpg");
}

#[test]
fn late_prediction_is_dropped() {
    let (mut state, old, run) = ready();
    let effects = command(&mut state, BrowseCommand::Open(PathBuf::from("/other")));
    let source = source_of(&effects);
    event(&mut state, empty_project(source));
    let page = page(&["new.jpg"]);
    event(&mut state, BrowseEvent::Listed { source, page });
    prediction(&mut state, old, run, 0);
    assert_eq!(state.shown.prediction, None);
    prediction(&mut state, source, RunId(9999), 0);
    assert_eq!(state.shown.prediction, None);
    prediction(&mut state, source, run, 0);
    assert_eq!(state.shown.prediction.as_deref(), Some(&cat()));
}

#[test]
fn late_image_does_not_replace_the_shown_one() {
    let (mut state, source, _) = opened();
    command(&mut state, BrowseCommand::Show(SampleId(1)));
    let result = Ok(DisplayInfo::default());
    event(&mut state, BrowseEvent::Displayed { source, sample: SampleId(0), result });
    assert!(matches!(state.shown.display, Display::Loading));
}

#[test]
fn loaded_model_is_reused_for_another_folder() {
    let (mut state, _, run) = ready();
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/other"))));
    event(&mut state, empty_project(source));
    let page = page(&["new.jpg"]);
    let effects = event(&mut state, BrowseEvent::Listed { source, page });
    assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
    assert!(has!(effects, Effect::Inference(InferenceEffect::PredictOne(image)) if image.run == run), "{effects:?}");
}

#[test]
fn predict_all_requests_only_missing_predictions() {
    let (mut state, source, run) = ready();
    prediction(&mut state, source, run, 0);
    let effects = command(&mut state, Action::PredictAll);
    assert!(
        has!(effects, Effect::Inference(InferenceEffect::Predict(request))
            if request.run == run && request.samples.len() == 2),
        "{effects:?}"
    );
    assert_eq!(state.run().unwrap().status(SampleId(2)), PredictionStatus::Waiting);
}

#[test]
fn predict_all_waits_for_the_model_and_then_starts() {
    let (mut state, _, effects) = opened();
    let task = prepare_of(&effects);
    let effects = command(&mut state, Action::PredictAll);
    assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "it is under way: {effects:?}");
    let effects = event(&mut state, ready_event(task));
    assert!(has!(effects, Effect::Inference(InferenceEffect::Predict { .. })), "{effects:?}");
}

#[test]
fn canceled_images_can_be_requested_again() {
    let (mut state, source, run) = ready();
    let effects = command(&mut state, Action::PredictAll);
    let task = effects.iter().find_map(|effect| match effect {
        Effect::Inference(InferenceEffect::Predict(request)) => Some(request.ticket.id),
        _ => None,
    });
    let effects = command(&mut state, Action::CancelTasks);
    assert!(has!(effects, Effect::Signal(_, TaskSignal::Cancel)));
    prediction(&mut state, source, run, 1);
    event(&mut state, Event::TaskEnded { task: task.unwrap(), outcome: TaskOutcome::Cancelled, notes: Vec::new() });
    let run = state.run().unwrap();
    assert_eq!(run.status(SampleId(1)), PredictionStatus::Predicted);
    assert_eq!(run.status(SampleId(2)), PredictionStatus::Unpredicted);
    assert_eq!(state.tasks.finished().next().unwrap().outcome, TaskOutcome::Cancelled);
}

#[test]
fn command_line_model_opens_its_form() {
    let mut state = State::default();
    let effects = command(&mut state, Command::Start { source: None, model: Some("/models/net.onnx".to_owned()) });
    let file = ImportSubject::File(PathBuf::from("/models/net.onnx"));
    assert!(has!(effects, Effect::Models(ModelsEffect::Recognize(request)) if request.subject == file));
    event(&mut state, models(&["small"]));
    assert_eq!(state.models.chosen_id(), Some("small"));
    assert_eq!(state.notice, None);
}

#[test]
fn predictions_are_kept_per_model() {
    let (mut state, source, run) = ready();
    prediction(&mut state, source, run, 0);
    event(&mut state, models(&["small", "large"]));
    command(&mut state, ModelsCommand::Choose("large".to_owned()));
    assert_eq!(state.shown.prediction, None);
    let effects = command(&mut state, ModelsCommand::Choose("small".to_owned()));
    assert_eq!(state.shown.prediction.as_deref(), Some(&cat()));
    assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "the prediction is there: {effects:?}");
}

#[test]
fn replaced_preparation_cannot_fail_the_new_one() {
    let (mut state, _, effects) = opened();
    let old = prepare_of(&effects);
    event(&mut state, models(&["small", "large"]));
    command(&mut state, ModelsCommand::Choose("large".to_owned()));
    let effects = command(&mut state, ModelsCommand::Choose("small".to_owned()));
    assert!(has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
    event(&mut state, InferenceEvent::Cancelled { task: old });
    assert!(state.inference.is_preparing());
}

#[test]
fn failure_waits_for_the_user_to_retry() {
    let (mut state, _, effects) = opened();
    let task = prepare_of(&effects);
    let message = "no network".to_owned();
    event(&mut state, InferenceEvent::Failed { task, message, offer: Offer::TryAgain });
    let effects = command(&mut state, Action::NextImage);
    assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
    assert!(has!(command(&mut state, InferenceCommand::TryAgain), Effect::Inference(InferenceEffect::Prepare { .. })));
}

#[test]
fn lost_device_keeps_predictions_and_offers_a_retry() {
    let (mut state, source, run) = ready();
    prediction(&mut state, source, run, 0);
    let message = "gone".to_owned();
    let key = Box::new(state.run().unwrap().info.key.clone());
    event(&mut state, InferenceEvent::DeviceLost { key, message });
    assert_eq!(state.run().unwrap().predictions.predicted(), 1);
    assert!(state.inference.failure().is_some());
}

#[test]
fn unreachable_image_is_requested_again() {
    let (mut state, source, run) = ready();
    let sample = state.shown_sample().unwrap();
    assert_eq!(state.run().unwrap().status(sample), PredictionStatus::Waiting);
    let unreachable = Event::Inference(InferenceEvent::NotPredicted {
        source,
        run,
        sample,
        message: "the request timed out".to_owned(),
    });
    event(&mut state, unreachable);
    assert_eq!(state.run().unwrap().status(sample), PredictionStatus::Unpredicted);
    assert_eq!(state.problems.len(), 1);
    assert!(has!(command(&mut state, Action::PredictShown), Effect::Inference(InferenceEffect::PredictOne { .. })));
}

#[test]
fn arrow_keys_stop_at_the_ends() {
    let (mut state, ..) = opened();
    command(&mut state, BrowseCommand::Walk(Step::By(-1)));
    assert_eq!(state.shown_sample(), Some(SampleId(0)));
    command(&mut state, BrowseCommand::Walk(Step::By(10)));
    assert_eq!(state.shown_sample(), Some(SampleId(2)));
    let effects = command(&mut state, BrowseCommand::Walk(Step::By(1)));
    assert!(effects.is_empty(), "{effects:?}");
}

#[test]
fn passed_image_is_not_requested() {
    let (mut state, ..) = ready();
    command(&mut state, Action::NextImage);
    command(&mut state, Action::NextImage);
    let run = state.run().unwrap();
    assert_eq!(run.status(SampleId(1)), PredictionStatus::Unpredicted);
    assert_eq!(run.status(SampleId(2)), PredictionStatus::Waiting);
}

#[test]
fn broken_image_is_one_problem() {
    let (mut state, source, run) = ready();
    let sample = SampleId(1);
    let reason = "is empty".to_owned();
    event(&mut state, BrowseEvent::ThumbnailFailed { source, sample, version: 0, reason: reason.clone() });
    event(&mut state, BrowseEvent::Displayed { source, sample, result: Err(reason.clone()) });
    let predictions = vec![new_prediction(sample, Err(reason.clone()))];
    event(&mut state, InferenceEvent::Predicted { source, run, at_ms: 1, predictions });
    assert_eq!(state.problems.len(), 1);
    let entry = &state.problems.entries()[0];
    assert_eq!(entry.sample, Some(sample));
    let uri = SampleUri::new("/photos/b.jpg");
    assert_eq!(entry.problem, Problem::new(uri, reason));
}

#[test]
fn minimum_scores_belong_to_the_model() {
    let (mut state, ..) = opened();
    event(&mut state, models(&["small", "large"]));
    command(&mut state, ReviewCommand::ChangeView(ViewChange::MinScore(0.25)));
    command(&mut state, ModelsCommand::Choose("large".to_owned()));
    assert!((state.view().min_score - 0.5).abs() < 1e-6);
    command(&mut state, ModelsCommand::Choose("small".to_owned()));
    assert!((state.view().min_score - 0.25).abs() < 1e-6);
    command(&mut state, Action::ResetView);
    assert!((state.view().min_score - 0.5).abs() < 1e-6);
}

#[test]
fn reset_filters_come_back() {
    let (mut state, ..) = ready();
    let score = |state: &State| state.view().min_score;
    command(&mut state, ReviewCommand::ChangeView(ViewChange::MinScore(0.25)));
    command(&mut state, Action::ResetView);
    assert_eq!(Action::Undo.label_now(&state), "Undo: reset filters");
    command(&mut state, Action::Undo);
    assert!((score(&state) - 0.25).abs() < 1e-6);
    command(&mut state, Action::ResetView);
    command(&mut state, Action::Accept);
    command(&mut state, Action::Undo);
    assert!((score(&state) - 0.5).abs() < 1e-6, "the verdict was later");
}

#[test]
fn typed_and_dropped_paths_are_equal() {
    let (mut state, ..) = opened();
    let model = PathBuf::from("/models/yolo.onnx");
    command(&mut state, BrowseCommand::OpenTyped(model.clone()));
    assert_eq!(state.import.as_ref().map(|import| &import.subject), Some(&ImportSubject::File(model.clone())));
    let effects = command(&mut state, BrowseCommand::OpenTyped(PathBuf::from("/labels")));
    assert!(has!(effects, Effect::Browse(BrowseEffect::LookAtDropped { .. })), "{effects:?}");
    let effects = command(&mut state, BrowseCommand::OpenTyped(PathBuf::from("/mine.spotcheck")));
    assert!(has!(effects, Effect::Browse(BrowseEffect::Open { spec: SourceSpec::Project(_), .. })), "{effects:?}");
}

#[test]
fn missing_file_dialog_asks_for_a_path() {
    let (mut state, ..) = opened();
    let effects = command(&mut state, Action::AddModel);
    assert!(has!(effects, Effect::PickFile(FileRequest::Model)), "{effects:?}");
    let none = FilePick::Unavailable { request: FileRequest::Model, reason: "none".to_owned() };
    event(&mut state, BrowseEvent::FilesPicked(none));
    assert!(state.has_dialog());
    let model = PathBuf::from("/models/yolo.onnx");
    command(&mut state, BrowseCommand::TypePath(model.clone()));
    assert_eq!(state.import.as_ref().map(|import| &import.subject), Some(&ImportSubject::File(model)));
    assert_eq!(state.path_question, None);
}

#[test]
fn shown_image_is_saved_under_the_chosen_name() {
    let (mut state, source, run) = ready();
    prediction(&mut state, source, run, 0);
    let effects = command(&mut state, Action::SaveImage);
    let request = FileRequest::ImageTarget { name: "a-annotated.png".to_owned() };
    assert!(has!(effects, Effect::PickFile(asked) if *asked == request), "{effects:?}");
    let file = PathBuf::from("/pictures/a.png");
    let effects = event(&mut state, BrowseEvent::FilesPicked(FilePick::Picked(request, vec![file.clone()])));
    let is_saved = |effect: &Effect| match effect {
        Effect::Browse(BrowseEffect::CopyImage { drawn, to, .. }) => drawn.is_some() && *to == Some(file.clone()),
        _ => false,
    };
    assert!(effects.iter().any(is_saved), "{effects:?}");
}

#[test]
fn card_decides_nms_until_changed() {
    let (mut state, ..) = opened();
    let Event::Models(ModelsEvent::Listed { mut entries, defaults, problems }) = models(&["small", "yolo"]) else {
        panic!("models are listed");
    };
    let output = DetectionOutput { nms_iou: Some(0.7), ..DetectionOutput::separate("b", "l", "s") };
    entries[1].card.output = OutputConvention::Detection(output);
    event(&mut state, ModelsEvent::Listed { entries, defaults, problems });
    assert_eq!(state.view().nms_iou, None);
    command(&mut state, ModelsCommand::Choose("yolo".to_owned()));
    assert_eq!(state.view().nms_iou, Some(0.7));
    command(&mut state, ReviewCommand::ChangeView(ViewChange::MinScore(0.25)));
    assert_eq!(state.view().nms_iou, Some(0.7));
    command(&mut state, ReviewCommand::ChangeView(ViewChange::NmsIou(None)));
    assert_eq!(state.view().nms_iou, None);
    command(&mut state, Action::ResetView);
    assert_eq!(state.view().nms_iou, Some(0.7));
}

#[test]
fn downloaded_model_is_selected() {
    let (mut state, ..) = opened();
    event(&mut state, models(&["small", "large"]));
    command(&mut state, ModelsCommand::Fetch("large".to_owned()));
    let task = state.tasks.running().iter().find(|task| task.title == "Download large").unwrap().id;
    let outcome = TaskOutcome::Done("102 MB".to_owned());
    let notes = Vec::new();
    let effects = event(&mut state, Event::TaskEnded { task, outcome, notes });
    assert_eq!(state.models.chosen_id(), Some("large"));
    assert!(has!(effects, Effect::Models(ModelsEffect::List)));
}

#[test]
fn failed_download_is_kept_until_retried() {
    let (mut state, ..) = opened();
    event(&mut state, models(&["small", "large"]));
    command(&mut state, ModelsCommand::Fetch("large".to_owned()));
    let task = state.tasks.running().last().unwrap().id;
    let ended = Event::TaskEnded { task, outcome: TaskOutcome::Failed("no connection".to_owned()), notes: Vec::new() };
    event(&mut state, ended);
    assert_eq!(state.tasks.fetch_failure("large"), Some("no connection"));
    assert_eq!(state.tasks.fetch_failure("small"), None);
    let file = PathBuf::from("/downloads/large.onnx");
    let picked = FilePick::Picked(FileRequest::Weights("large".to_owned()), vec![file.clone()]);
    let effects = event(&mut state, BrowseEvent::FilesPicked(picked));
    let is_copied = |effect: &Effect| {
        matches!(effect, Effect::Models(ModelsEffect::Fetch { id, from: Some(from), .. })
            if id == "large" && *from == file)
    };
    assert!(effects.iter().any(is_copied), "{effects:?}");
    assert_eq!(state.tasks.fetch_failure("large"), None);
}

#[test]
fn project_is_named_after_its_source() {
    let (mut state, ..) = opened();
    state.source.as_mut().unwrap().location = Some(Location::Path(PathBuf::from("/photos.v2")));
    let effects = command(&mut state, Action::SaveProjectAs);
    assert!(
        has!(effects, Effect::PickFile(FileRequest::ProjectTarget { name }) if name == "photos.v2.spotcheck"),
        "{effects:?}"
    );
}

#[test]
fn failed_export_is_reported_where_it_was_started() {
    let (mut state, ..) = opened();
    let export = Command::Export(ExportCommand::Start { path: PathBuf::from("/out/a.json"), replaces: false });
    for is_watched in [true, false] {
        state.notice = None;
        command(&mut state, Command::SetOverlay(Overlay::Export));
        command(&mut state, export.clone());
        let task = state.tasks.running().last().unwrap().id;
        assert_eq!(state.export.stage, Loadable::Loading(task));
        if !is_watched {
            command(&mut state, Command::SetOverlay(Overlay::None));
        }
        let failure = Failure::new("the disk is full");
        let result = Err(failure.clone());
        event(&mut state, ExportEvent::Ended(task, result));
        let stage = Loadable::Failed(failure);
        assert_eq!(state.export.stage == stage, is_watched);
        assert_eq!(state.notice.is_some(), !is_watched);
        assert_eq!(state.overlay == Overlay::Export, is_watched);
    }
}

#[test]
fn unlistable_folder_has_a_reason() {
    let mut state = State::default();
    let effects = command(&mut state, BrowseCommand::Open(PathBuf::from("/nowhere")));
    let source = source_of(&effects);
    let task = state.tasks.running()[0].id;
    let reason = "there is no such folder".to_owned();
    event(&mut state, BrowseEvent::ListingEnded { source, task, result: Err(reason.clone()) });
    assert_eq!(state.source.unwrap().listing, Listing::Failed(reason));
}

#[test]
fn pause_reaches_the_named_task() {
    let (mut state, ..) = ready();
    command(&mut state, Action::PredictAll);
    let task = state.tasks.running().last().unwrap().id;
    let effects = command(&mut state, Command::SignalTask(task, TaskSignal::Pause));
    assert!(has!(effects, Effect::Signal(_, TaskSignal::Pause)));
    let gone = Command::SignalTask(TaskId(9999), TaskSignal::Pause);
    assert!(command(&mut state, gone).is_empty());
}

#[test]
fn late_model_inspections_and_trials_are_dropped() {
    let (mut state, ..) = opened();
    let recognized = |import| Event::Models(ModelsEvent::Recognized { import, result: Ok(Box::new(testing::start())) });
    let id = |state: &State| state.import.as_ref().unwrap().id;
    command(&mut state, BrowseCommand::Drop(vec![PathBuf::from("/m.onnx")]));
    let first = id(&state);
    command(&mut state, BrowseCommand::Drop(vec![PathBuf::from("/n.onnx")]));
    event(&mut state, recognized(first));
    assert!(state.import.as_ref().unwrap().form().is_none());

    let now = id(&state);
    let effects = event(&mut state, recognized(now));
    assert!(has!(effects, Effect::Models(ModelsEffect::TryCard(request)) if request.image.is_some()), "{effects:?}");
    let before = id(&state);
    let mut card = testing::start().card;
    card.input.channels = ChannelOrder::Bgr;
    let changed = ModelsCommand::ChangeImport { card: Box::new(card), labels: LabelChoice::None };
    let effects = command(&mut state, changed.clone());
    assert!(has!(effects, Effect::Models(ModelsEffect::TryCard(_))), "{effects:?}");
    assert!(command(&mut state, changed).is_empty());
    let tried = |import| Event::Models(ModelsEvent::Tried { import, trial: Box::default() });
    event(&mut state, tried(before));
    assert!(command(&mut state, ModelsCommand::ConfirmImport).is_empty());
    let now = id(&state);
    event(&mut state, tried(now));
    let effects = command(&mut state, ModelsCommand::ConfirmImport);
    let is_right =
        |request: &SaveRequest| request.card.input.channels == ChannelOrder::Bgr && request.card.assumed.len() == 2;
    assert!(has!(effects, Effect::Models(ModelsEffect::Save(request)) if is_right(request)), "{effects:?}");
    command(&mut state, ModelsCommand::CancelImport);
    assert!(state.import.is_none());
}

#[test]
fn edited_card_starts_a_new_run() {
    let (mut state, ..) = ready();
    let first = state.run().unwrap().id();
    command(&mut state, ModelsCommand::Edit("small".to_owned()));
    let id = |state: &State| state.import.as_ref().unwrap().id;
    let now = id(&state);
    let start = testing::start();
    event(&mut state, ModelsEvent::Recognized { import: now, result: Ok(Box::new(start)) });
    let now = id(&state);
    event(&mut state, ModelsEvent::Saved { import: now, result: Ok("small".to_owned()) });
    assert!(state.import.is_none());
    assert!(matches!(state.inference.local.status, Loadable::NotLoaded));
    let mut entries = state.models.entries().to_vec();
    entries.iter_mut().find(|entry| entry.card.id == "small").unwrap().card.input.channels = ChannelOrder::Bgr;
    let listed = ModelsEvent::Listed { entries, defaults: ModelDefaults::default(), problems: Vec::new() };
    let effects = event(&mut state, listed);
    assert!(has!(effects, Effect::Inference(InferenceEffect::Prepare(_))), "{effects:?}");
    assert_ne!(state.run().map(Run::id), Some(first));
}

/// A stored run of the model `small` over the three images, with a prediction for the first one.
fn stored_run(id: RunId) -> RunInfo {
    let (mut state, ..) = ready();
    let info = state.runs.get_mut(RunId(1)).unwrap().info.clone();
    RunInfo { id, ..info }
}

fn project_with(source: SourceId, runs: Vec<RunInfo>) -> Event {
    match empty_project(source) {
        Event::Project(ProjectEvent::Opened { mut content, .. }) => {
            let ids = runs.iter().map(|run| run.id.0);
            content.next_run = RunId(ids.max().unwrap_or(0) + 1);
            content.runs = runs;
            Event::Project(ProjectEvent::Opened { source, content })
        }
        other => other,
    }
}

/// A window on a folder whose project has a run that has not been read yet.
fn reopened() -> (State, SourceId, RunId, Vec<Effect>) {
    let mut state = State::default();
    event(&mut state, models(&["small"]));
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
    let run = RunId(7);
    event(&mut state, project_with(source, vec![stored_run(run)]));
    let page = page(&["a.jpg", "b.jpg", "c.jpg"]);
    let effects = event(&mut state, BrowseEvent::Listed { source, page });
    (state, source, run, effects)
}

/// The models may be listed before or after the project is open.
#[test]
fn reopened_project_starts_no_other_run() {
    for is_listed_first in [true, false] {
        let mut state = State::default();
        state.settings.model = Some("large".to_owned());
        command(&mut state, Command::Start { source: None, model: None });
        let list = |state: &mut State| event(state, models(&["small", "large"]));
        if is_listed_first {
            list(&mut state);
        }
        let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
        let mut effects = event(&mut state, project_with(source, vec![stored_run(RunId(7))]));
        effects.extend(event(&mut state, BrowseEvent::Listed { source, page: page(&["a.jpg"]) }));
        if !is_listed_first {
            effects.extend(list(&mut state));
        }
        assert_eq!(state.runs.iter().map(Run::id).collect::<Vec<_>>(), [RunId(7)]);
        assert_eq!((state.run().map(Run::id), state.models.chosen_id()), (Some(RunId(7)), Some("small")));
        assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
    }
    // A model was named on the command line.
    let mut state = State::default();
    command(&mut state, Command::Start { source: None, model: Some("large".to_owned()) });
    event(&mut state, models(&["small", "large"]));
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
    event(&mut state, project_with(source, vec![stored_run(RunId(7))]));
    event(&mut state, BrowseEvent::Listed { source, page: page(&["a.jpg"]) });
    assert_eq!(state.run().map(|run| run.info.card.id.as_str()), Some("large"));
}

#[test]
fn stored_prediction_is_requested_before_the_model() {
    let (mut state, source, run, effects) = reopened();
    assert!(
        has!(effects, Effect::Project(ProjectEffect::LoadPredictions { requested, .. }) if requested.len() == 1),
        "{effects:?}"
    );
    assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
    let predictions = vec![(run, SampleId(0), Some(cat()))];
    let effects = event(&mut state, ProjectEvent::PredictionsLoaded { source, predictions });
    assert_eq!(state.shown.prediction.as_deref(), Some(&cat()));
    assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
}

#[test]
fn missing_stored_prediction_is_predicted() {
    let (mut state, source, run, _) = reopened();
    let predictions = vec![(run, SampleId(0), None)];
    let effects = event(&mut state, ProjectEvent::PredictionsLoaded { source, predictions });
    assert!(has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
}

#[test]
fn stored_run_is_read_after_the_listing() {
    let (mut state, source, run, _) = reopened();
    let task = state.tasks.running()[0].id;
    let ended = Event::Browse(BrowseEvent::ListingEnded { source, task, result: Ok(()) });
    let effects = event(&mut state, ended);
    assert!(has!(effects, Effect::Project(ProjectEffect::LoadRun { run: RunId(7), .. })), "{effects:?}");
    let prediction = StoredPrediction::Failed("is empty".to_owned());
    let row = |uri: &str, stamp| StoredRow { sample: SampleUri::new(uri), stamp, prediction: prediction.clone() };
    let other_file = FileStamp { size_bytes: 99, ..FileStamp::default() };
    let predictions =
        vec![row("/photos/b.jpg", None), row("/photos/c.jpg", Some(other_file)), row("/elsewhere/gone.jpg", None)];
    let loaded = Event::Project(ProjectEvent::RunLoaded { source, run, predictions });
    event(&mut state, loaded);
    assert_eq!(state.run().unwrap().status(SampleId(1)), PredictionStatus::Failed);
    assert_eq!(state.run().unwrap().predictions.failed(), 1);
    let task = state.tasks.running()[0].id;
    let ended = Event::Project(ProjectEvent::RunLoadingEnded { source, run, task, result: Ok(()) });
    event(&mut state, ended);
    let problem = &state.problems.entries()[0].problem.message;
    assert!(problem.starts_with("1 image "), "{problem}");
}

#[test]
fn new_run_never_reuses_an_id() {
    let (mut state, source, _) = opened();
    let Event::Project(ProjectEvent::Opened { mut content, .. }) = empty_project(source) else {
        unreachable!("that is what it makes");
    };
    content.next_run = RunId(12);
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
    event(&mut state, ProjectEvent::Opened { source, content });
    let page = page(&["a.jpg"]);
    event(&mut state, BrowseEvent::Listed { source, page });
    assert_eq!(state.run().unwrap().id(), RunId(12));
    // Another program has added runs to the project that this one continues in.
    let result = Ok((PathBuf::from("/data/copy.spotcheck"), RunId(20)));
    event(&mut state, ProjectEvent::SavedAs { source, result });
    command(&mut state, InferenceCommand::SetThreads(Some(1)));
    command(&mut state, Action::PredictShown);
    assert_eq!(state.run().unwrap().id(), RunId(20));
}

#[test]
fn prediction_is_saving_until_stored() {
    let (mut state, source, run) = ready();
    let predictions = vec![new_prediction(SampleId(0), Ok(cat()))];
    let predicted = Event::Inference(InferenceEvent::Predicted { source, run, at_ms: 1, predictions });
    let effects = event(&mut state, predicted);
    let ticket = effects.iter().find_map(|effect| match effect {
        Effect::Project(ProjectEffect::Save { ticket, .. }) => Some(*ticket),
        _ => None,
    });
    assert!(
        has!(effects, Effect::Project(ProjectEffect::Save { ticket: 1, changes, .. })
            if matches!(changes[..], [Change::AddRun(_), ..])),
        "{effects:?}"
    );
    assert!(state.run().unwrap().is_saving(SampleId(0)));
    let up_to = ticket.unwrap();
    event(&mut state, ProjectEvent::Saved { source, up_to });
    assert!(!state.run().unwrap().is_saving(SampleId(0)));
    assert_eq!(state.prediction_of(SampleId(0)), Some(&cat()));
}

#[test]
fn full_disk_holds_predictions_back() {
    let (mut state, source, _) = ready();
    command(&mut state, Action::PredictAll);
    let failed = Event::Project(ProjectEvent::SaveFailed { source, reason: "the disk is full".to_owned() });
    let effects = event(&mut state, failed);
    assert!(has!(effects, Effect::Signal(_, TaskSignal::Pause)), "{effects:?}");
    assert!(state.project.trouble.is_some());
    let effects = event(&mut state, ProjectEvent::Saved { source, up_to: 1 });
    assert!(has!(effects, Effect::Signal(_, TaskSignal::Resume)), "{effects:?}");
    assert_eq!(state.project.trouble, None);
}

#[test]
fn read_only_project_is_not_predicted() {
    let mut state = State::default();
    event(&mut state, models(&["small"]));
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
    let Event::Project(ProjectEvent::Opened { mut content, .. }) = empty_project(source) else {
        unreachable!("that is what it makes");
    };
    content.status = ProjectStatus::ReadOnly { reason: "it is open in another window".to_owned() };
    event(&mut state, ProjectEvent::Opened { source, content });
    let page = page(&["a.jpg"]);
    let effects = event(&mut state, BrowseEvent::Listed { source, page });
    assert!(has!(effects, Effect::Browse(BrowseEffect::Display { .. })), "{effects:?}");
    assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
    assert!(Action::PredictAll.check(&state).is_err());
}

#[test]
fn predict_all_waits_for_the_project() {
    let mut state = State::default();
    event(&mut state, models(&["small"]));
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
    let page = page(&["a.jpg", "b.jpg"]);
    event(&mut state, BrowseEvent::Listed { source, page });
    assert!(!has!(command(&mut state, Action::PredictAll), Effect::Inference(InferenceEffect::Prepare { .. })));
    let effects = event(&mut state, empty_project(source));
    let effects = event(&mut state, ready_event(prepare_of(&effects)));
    assert!(
        has!(effects, Effect::Inference(InferenceEffect::Predict(request))
            if request.run == RunId(1) && request.samples.len() == 2),
        "{effects:?}"
    );
}

/// Like [`ready`], with a prediction for the first image that is being explained; returns the task.
fn explaining() -> (State, TaskId) {
    let (mut state, source, run) = ready();
    prediction(&mut state, source, run, 0);
    let effects = command(&mut state, Action::Explain);
    assert!(
        has!(effects, Effect::Review(ReviewEffect::Explain { request, .. }) if request.uri.as_str() == "/photos/a.jpg"),
        "{effects:?}"
    );
    let task = state.shown.explanation.task().unwrap();
    (state, task)
}

fn saliency() -> Arc<Saliency> {
    Arc::new(Saliency { rows: 1, columns: 1, drops: vec![0.5], baseline: 0.9 })
}

#[test]
fn explanation_names_its_class_until_hidden() {
    let (mut state, task) = explaining();
    let result = Ok(saliency());
    event(&mut state, ReviewEvent::Explained(task, result));
    assert!(matches!(&state.shown.explanation,
        Explanation::Ready { question, .. } if question.label == "cat"));
    assert!(state.tasks.get(task).is_none());
    command(&mut state, ReviewCommand::HideExplanation);
    assert_eq!(state.shown.explanation, Explanation::None);
}

#[test]
fn explanation_of_a_left_image_is_dropped() {
    let (mut state, task) = explaining();
    let effects = command(&mut state, BrowseCommand::Show(SampleId(1)));
    assert!(has!(effects, Effect::Signal(_, TaskSignal::Cancel)), "{effects:?}");
    let result = Ok(saliency());
    event(&mut state, ReviewEvent::Explained(task, result));
    assert_eq!(state.shown.explanation, Explanation::None);
}

#[test]
fn failed_explanation_has_a_reason() {
    let (mut state, task) = explaining();
    let result = Err(Failure::new("is empty"));
    event(&mut state, ReviewEvent::Explained(task, result));
    assert!(matches!(&state.shown.explanation,
        Explanation::Failed { reason, .. } if reason == "is empty"));
}

fn changed(state: &mut State, source: SourceId, change: ListingChange) -> Vec<Effect> {
    event(state, Event::Browse(BrowseEvent::ListingChanged { source, change }))
}

fn written_anew(name: &str) -> Sample {
    Sample { size_bytes: 2, ..page(&[name]).samples.remove(0) }
}

#[test]
fn new_files_come_last() {
    let (mut state, source, _) = opened();
    command(&mut state, BrowseCommand::Show(SampleId(1)));
    let seen = page(&["a.jpg", "0.jpg"]).samples;
    changed(&mut state, source, ListingChange::Seen(seen.clone()));
    // Reported again by a listing that is still running.
    let page = Page { samples: seen, ..Page::default() };
    event(&mut state, BrowseEvent::Listed { source, page });
    assert_eq!(state.samples.len(), 4);
    assert_eq!(state.samples.get(SampleId(3)).unwrap().name, "0.jpg");
    assert_eq!(state.shown_sample(), Some(SampleId(1)));
    assert_eq!(state.samples.version(SampleId(0)), 0);
}

#[test]
fn changed_file_is_reloaded_and_outdated() {
    let (mut state, source, run) = ready();
    let sample = state.shown_sample().unwrap();
    let predicted = |result| {
        Event::Inference(InferenceEvent::Predicted {
            source,
            run,
            at_ms: 0,
            predictions: vec![new_prediction(sample, result)],
        })
    };
    event(&mut state, predicted(Err("is empty".to_owned())));
    let name = state.samples.get(sample).unwrap().name.clone();
    let seen = ListingChange::Seen(vec![written_anew(&name)]);
    let effects = changed(&mut state, source, seen);
    let displays = effects.iter().any(|effect| matches!(effect, Effect::Browse(BrowseEffect::Display { .. })));
    assert!(displays, "{effects:?}");
    assert_eq!(state.samples.version(sample), 1);
    assert!(state.run().unwrap().is_outdated(sample));
    event(&mut state, predicted(Err("is truncated".to_owned())));
    assert!(!state.run().unwrap().is_outdated(sample));
}

#[test]
fn prediction_of_a_changed_file_is_outdated() {
    let (mut state, source, run) = ready();
    let sample = SampleId(0);
    let older = state.samples.get(sample).unwrap().stamp();
    let seen = ListingChange::Seen(vec![written_anew("a.jpg")]);
    changed(&mut state, source, seen);
    let now = state.samples.get(sample).unwrap().stamp();
    let predicted = |stamp: &FileStamp| {
        Event::Inference(InferenceEvent::Predicted {
            source,
            run,
            at_ms: 1,
            predictions: vec![NewPrediction { stamp: stamp.clone(), ..new_prediction(sample, Ok(cat())) }],
        })
    };
    let effects = event(&mut state, predicted(&older));
    assert!(state.run().unwrap().is_outdated(sample));
    let saved = effects.iter().find_map(|effect| match effect {
        Effect::Project(ProjectEffect::Save { changes, .. }) => changes.last().cloned(),
        _ => None,
    });
    assert!(matches!(saved, Some(Change::Predictions { predictions, .. })
        if predictions[0].stamp == older));
    event(&mut state, predicted(&now));
    assert!(!state.run().unwrap().is_outdated(sample));
    let effects = event(&mut state, predicted(&older));
    assert!(!has!(effects, Effect::Project(ProjectEffect::Save { .. })), "it comes too late: {effects:?}");
    assert!(!state.run().unwrap().is_outdated(sample));
}

#[test]
fn late_thumbnail_failure_is_ignored() {
    let (mut state, source, _) = opened();
    let seen = ListingChange::Seen(vec![written_anew("b.jpg")]);
    changed(&mut state, source, seen);
    for (version, is_unreadable) in [(0, false), (1, true)] {
        let failed = Event::Browse(BrowseEvent::ThumbnailFailed {
            source,
            sample: SampleId(1),
            version,
            reason: "is truncated".to_owned(),
        });
        event(&mut state, failed);
        let reason = state.samples.unreadable(SampleId(1));
        assert_eq!(reason.is_some(), is_unreadable);
    }
}

#[test]
fn removed_folder_takes_its_images() {
    let (mut state, source, _) = opened();
    let page = page(&["sub/x.jpg", "sub/y.jpg", "subway.jpg"]);
    event(&mut state, BrowseEvent::Listed { source, page });
    let gone = vec![SampleUri::new("/photos/sub"), SampleUri::new("/photos/a.jpg")];
    changed(&mut state, source, ListingChange::Gone(gone));
    let is_gone = |state: &State| -> Vec<u32> {
        let ids = state.samples.ids();
        ids.filter(|id| state.samples.is_gone(*id)).map(|id| id.0).collect()
    };
    assert_eq!(is_gone(&state), [0, 3, 4]);
    assert_eq!(state.shown_sample(), Some(SampleId(0)));
    assert!(state.notice.as_ref().unwrap().text.contains("3 images"));
    let back = self::page(&["a.jpg"]).samples;
    changed(&mut state, source, ListingChange::Seen(back));
    assert_eq!(is_gone(&state), [3, 4]);
}

#[test]
fn missed_changes_remove_unlisted_images() {
    let (mut state, source, _) = opened();
    let now = page(&["c.jpg", "d.jpg"]).samples;
    changed(&mut state, source, ListingChange::Relisted(now));
    let is_gone = [0, 1, 2, 3].map(|id| state.samples.is_gone(SampleId(id)));
    assert_eq!(is_gone, [true, true, false, false]);
}

#[test]
fn rewritten_record_file_changes_only_its_images() {
    let (mut state, source, _) = opened();
    let page = page(&["x.tfrecord/#0", "x.tfrecord/#1", "x.tfrecords"]);
    event(&mut state, BrowseEvent::Listed { source, page });
    let now = Page {
        samples: vec![written_anew("x.tfrecord/#0"), written_anew("x.tfrecord/#7")],
        problems: vec![Problem::general("record 8 is damaged")],
        ..Page::default()
    };
    let file = SampleUri::new("/photos/x.tfrecord");
    changed(&mut state, source, ListingChange::FileRelisted { file, page: now });
    let ids: Vec<SampleId> = state.samples.ids().collect();
    let gone: Vec<bool> = ids.iter().map(|id| state.samples.is_gone(*id)).collect();
    assert_eq!(gone, [false, false, false, false, true, false, false]);
    assert_eq!(state.samples.version(SampleId(3)), 1);
    assert_eq!(state.samples.get(SampleId(6)).unwrap().name, "x.tfrecord/#7");
    assert_eq!(state.problems.len(), 1);
}

#[test]
fn unwatchable_folder_has_a_reason() {
    let (mut state, source, _) = opened();
    let why = ListingChange::Unwatched("too many folders".to_owned());
    changed(&mut state, source, why);
    let unwatched = &state.source.as_ref().unwrap().unwatched;
    assert_eq!(unwatched.as_deref(), Some("too many folders"));
    assert_eq!(state.problems.len(), 1);
}

#[test]
fn source_without_changes_is_not_a_problem() {
    let (mut state, source, _) = opened();
    let why = ListingChange::Unwatchable("changes are not reported".to_owned());
    changed(&mut state, source, why);
    let unwatched = &state.source.as_ref().unwrap().unwatched;
    assert_eq!(unwatched.as_deref(), Some("changes are not reported"));
    assert!(state.problems.is_empty());
}

#[test]
fn help_menu_opens_the_manual() {
    let effects = command(&mut State::default(), Action::OpenManual);
    assert!(matches!(effects[..], [Effect::OpenManual]), "{effects:?}");
}

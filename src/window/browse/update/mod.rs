//! Opening a source, walking through it and viewing an image.

pub(crate) mod captures;
pub(crate) mod go_to;
pub(crate) mod paths;
pub(crate) mod shown;
pub(crate) mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::{ImagePart, Location, Page, Problem, S3Link, S3Place, Sample, SampleId, SampleSet, TileKey};
use crate::review::{Direction, Sort, SortBy};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    Alike, AlikeRequest, AlikeTo, BoxToSelect, BrowseCommand, BrowseEffect, BrowseEvent, CanvasView, CaptureReading,
    Display, DisplayInfo, Drawing, DrawnPrediction, DrawnTruth, DroppedKind, Failure, FilePick, FileRequest,
    FolderPane, FoundAlike, ImportSubject, LastViewed, Listing, MergeCommand, OpenSource, Overlay, PathQuestion,
    ProjectCommand, ProjectStatus, Shown, SourceId, SourceSpec, State, Step, TaskId, TaskKind, TaskOutcome,
    ThumbnailRequest, TruthAt, TruthReading,
};
use crate::window::{duplicates, evaluation, filmstrip, models, outputs, predict, project, s3, search, tasks, update};

pub(crate) fn on_command(state: &mut State, command: BrowseCommand) {
    match command {
        BrowseCommand::OpenTyped(path) => open_typed(state, path),
        BrowseCommand::Open(path) => open_path(state, path),
        BrowseCommand::TypePath(path) => path_typed(state, path),
        BrowseCommand::CancelPath => state.path_question = None,
        BrowseCommand::OpenPlace(place) => {
            state.overlay = Overlay::None;
            open_place(state, *place);
        }
        BrowseCommand::Drop(paths) => dropped(state, paths),
        BrowseCommand::Show(sample) => {
            update::show_image(state);
            show(state, sample);
        }
        BrowseCommand::ToggleSelected(sample) => toggle_selected(state, sample),
        BrowseCommand::ExtendSelection(sample) => extend_selection(state, sample),
        BrowseCommand::ClearSelection => state.selection.clear_to_shown(),
        BrowseCommand::Walk(step) => {
            update::show_image(state);
            walk(state, step);
        }
        BrowseCommand::LoadThumbnails { side, requested } => {
            request_thumbnails(state, side, &requested);
        }
        BrowseCommand::SetFolderOpen(path, is_open) => state.folders.set_open(path, is_open),
        BrowseCommand::SetCacheBytes(bytes) => {
            state.settings.cache_bytes = bytes;
            state.effects.push(BrowseEffect::LimitCache(bytes));
        }
        BrowseCommand::GoTo(text) => go_to::first(state, &text),
        BrowseCommand::SelectCover(count) => {
            state.overlay = Overlay::None;
            let mut found = SampleSet::default();
            for id in state.order().ids() {
                found.insert(id);
            }
            compare_with(state, AlikeTo::Cover(found, count));
        }
        BrowseCommand::GoToNext(text) => go_to::next(state, &text),
        BrowseCommand::MeasureCache => state.effects.push(BrowseEffect::MeasureCache),
        BrowseCommand::ClearCache => state.effects.push(BrowseEffect::ClearCache),
        BrowseCommand::Reveal(path) => state.effects.push(BrowseEffect::Reveal(path)),
        BrowseCommand::RevealFolder(folder) => paths::reveal_folder(state, &folder),
        BrowseCommand::CopyFolderPath(folder) => paths::copy_folder(state, &folder),
        BrowseCommand::LoadTiles(requested) => request_tiles(state, requested),
        BrowseCommand::SetMaxMegapixels(max) => {
            state.settings.max_megapixels = max;
            state.effects.push(BrowseEffect::LimitMegapixels(max));
        }
        BrowseCommand::ForgetRecent(path) => state.settings.recent.retain(|known| *known != path),
        BrowseCommand::ForgetRecentPlace(place) => state.settings.forget_place(&place),
        BrowseCommand::SetDuplicateOptions(options) => duplicates::update::set_options(state, options),
        BrowseCommand::CloseDuplicates => duplicates::update::close(state),
    }
}

pub(crate) fn on_event(state: &mut State, event: BrowseEvent) {
    match event {
        BrowseEvent::Opened { source, name, place, list_of } => opened(state, source, name, place, list_of),
        BrowseEvent::Listed { source, page } => listed(state, source, page),
        BrowseEvent::ListingChanged { source, change } => {
            watch::changed(state, source, change);
        }
        BrowseEvent::FoundAlike { task, result } => found_alike(state, task, result),
        BrowseEvent::FoundDuplicates { task, result } => duplicates::update::found(state, task, result),
        BrowseEvent::Measured { task, result } => duplicates::update::measured(state, task, result),
        BrowseEvent::CacheMeasured(usage) => state.cache_usage = Some(usage),
        BrowseEvent::ListedAgain { source, task, result } => watch::listed_again(state, source, task, result),
        BrowseEvent::ListingEnded { source, task, result } => listing_ended(state, source, task, result),
        BrowseEvent::ThumbnailFailed { source, sample, version, reason } => {
            if state.samples.version(sample) == version {
                unreadable(state, source, sample, reason);
            }
        }
        BrowseEvent::Displayed { source, sample, result } => displayed(state, source, sample, result),
        BrowseEvent::CapturesRead { source, read } => captures::read(state, source, read),
        BrowseEvent::CapturesEnded { task, result } => captures::ended(state, task, &result),
        BrowseEvent::FilesPicked(pick) => picked(state, pick),
        BrowseEvent::LookedAtDropped { source, task, paths, result } => {
            looked_at_dropped(state, source, task, (paths, result));
        }
    }
}

pub(crate) fn open_path(state: &mut State, path: PathBuf) {
    if s3::update::open_typed(state, &path) {
        return;
    }
    let name = path.display().to_string();
    let spec = if has_extension(&path, "spotcheck") {
        SourceSpec::Project(path.clone())
    } else {
        SourceSpec::Path(path.clone())
    };
    open(state, spec, &name);
    if let Some(source) = &mut state.source {
        source.location = Some(Location::Path(path));
    }
}

pub(crate) fn open_place(state: &mut State, place: S3Place) {
    let name = place.address.to_string();
    open(state, SourceSpec::S3(place.clone()), &name);
    s3::update::check_sign_in(state, &place.access);
    if let Some(source) = &mut state.source {
        source.location = Some(Location::S3(Box::new(place)));
    }
}

pub(crate) fn open_samples(state: &mut State) {
    let spec = SourceSpec::SampleImages;
    open(state, spec, "Sample images");
}

/// Opens anything that can be dropped on the window, or an address in S3.
fn open_typed(state: &mut State, path: PathBuf) {
    if path.to_str().is_some_and(S3Link::is_address) {
        open_path(state, path);
    } else {
        dropped(state, vec![path]);
    }
}

/// Opens what was dropped. While images are open, this may also be predictions or ground truth, depending on the
/// content.
fn dropped(state: &mut State, paths: Vec<PathBuf>) {
    let is_told_by_name = |path: &PathBuf| has_extension(path, "onnx") || has_extension(path, "spotcheck");
    let source = state.source_id().filter(|_| !state.samples.is_empty());
    let (Some(source), false) = (source, paths.iter().any(is_told_by_name)) else {
        return open_dropped(state, paths);
    };
    let title = match &paths[..] {
        [path] => format!("Open {}", path.display()),
        paths => format!("Open {} dropped paths", paths.len()),
    };
    let ticket = tasks::update::begin(state, TaskKind::LookAtDropped, ProgressUnit::Bytes, title);
    state.effects.push(BrowseEffect::LookAtDropped { source, paths, ticket });
}

fn looked_at_dropped(
    state: &mut State,
    source: SourceId,
    task: TaskId,
    (mut paths, result): (Vec<PathBuf>, Result<DroppedKind, String>),
) {
    let is_cancelled = state.tasks.get(task).is_some_and(|task| task.control.is_cancelled());
    state.tasks.forget(task);
    if is_cancelled || !state.is_open(source) {
        return;
    }
    match (result, paths.pop()) {
        (Ok(DroppedKind::Predictions), Some(path)) => {
            outputs::update::open_predictions(state, Location::Path(path).into());
        }
        (Ok(DroppedKind::Truth), Some(path)) => {
            let at = TruthAt::Files(Location::Path(path));
            evaluation::update::open(state, at, TruthReading::default(), None);
        }
        (Ok(DroppedKind::Images), last) => {
            paths.extend(last);
            open_dropped(state, paths);
        }
        (Err(reason), _) => state.report_problem(reason),
        (_, None) => {}
    }
}

/// Opens images, a project, or a model of the user's own.
pub(crate) fn open_dropped(state: &mut State, mut paths: Vec<PathBuf>) {
    let is_model = |path: &PathBuf| has_extension(path, "onnx");
    if let Some(position) = paths.iter().position(is_model) {
        models::add::update::open(state, ImportSubject::File(paths.swap_remove(position)));
        return;
    }
    match paths.len() {
        0 => {}
        1 => open_path(state, paths.remove(0)),
        count => {
            let name = format!("{count} dropped paths");
            open(state, SourceSpec::Paths(paths), &name);
        }
    }
}

/// Opens the source again with the same settings.
pub(crate) fn open_again(state: &mut State) {
    let Some(source) = &state.source else {
        return;
    };
    match source.list.clone().map(Location::Path).or_else(|| source.location.clone()) {
        Some(Location::S3(place)) => open_place(state, *place),
        Some(Location::Path(path)) => open_path(state, path),
        None => state.show_notice("Open it again to retry"),
    }
}

pub(crate) fn has_extension(path: &Path, requested: &str) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case(requested))
}

fn picked(state: &mut State, pick: FilePick) {
    match pick {
        FilePick::Picked(FileRequest::Images, paths) => open_dropped(state, paths),
        FilePick::Picked(request, mut paths) => {
            if let Some(path) = paths.pop() {
                path_picked(state, request, path);
            }
        }
        FilePick::Cancelled => {}
        FilePick::Unavailable { request, reason } => state.path_question = Some(PathQuestion { request, reason }),
    }
}

fn path_picked(state: &mut State, request: FileRequest, path: PathBuf) {
    match request {
        FileRequest::Folder | FileRequest::Project | FileRequest::Images => open_path(state, path),
        FileRequest::Model => models::add::update::open(state, ImportSubject::File(path)),
        FileRequest::Annotations(pick) => state.picked_annotations = Some((state.ids.next(), pick, path)),
        FileRequest::Labels => models::add::update::labels_picked(state, path),
        FileRequest::Weights(id) => models::update::fetch_model(state, id, Some(path)),
        FileRequest::Mapping => outputs::update::load_mapping(state, path),
        FileRequest::ProjectTarget { .. } => project::update::save_as(state, path),
        FileRequest::SecondPassTarget { .. } => project::update::start_second_pass(state, path),
        FileRequest::MergedProject => project::merge::update::compare(state, path),
        FileRequest::MergeTarget { .. } => {
            project::update::on_command(state, ProjectCommand::Merge(MergeCommand::Save(path)));
        }
        FileRequest::MovedFolder => project::update::move_to(state, path),
        FileRequest::ExportTarget { .. } => state.export.picked = Some(path),
        FileRequest::ImageTarget { .. } => copy_image(state, Some(path)),
    }
}

/// Handles a path that was typed because no file dialog appeared.
fn path_typed(state: &mut State, path: PathBuf) {
    if let Some(question) = state.path_question.take() {
        path_picked(state, question.request, path);
    }
}

/// Closes the open source: its tasks are canceled and its late predictions will be dropped.
fn open(state: &mut State, spec: SourceSpec, name: &str) {
    tasks::update::cancel_work_on_samples(state);
    let id = SourceId(state.ids.next());
    state.source = Some(OpenSource {
        id,
        name: name.to_owned(),
        location: None,
        list: None,
        listing: Listing::Running,
        unwatched: None,
        notes: Vec::new(),
    });
    state.samples.clear();
    state.capture_reading = CaptureReading::Idle;
    state.folders = FolderPane::default();
    state.selection.clear();
    state.last_viewed = LastViewed::default();
    state.arranging.source_changed();
    state.map.source_changed();
    state.runs.clear();
    state.judgments.clear();
    predict::update::run_on_screen::forget(state);
    state.reset_filters = None;
    state.settings.forget_views();
    state.own_classes.clear();
    state.project.reopen();
    state.problems.clear();
    evaluation::update::source_changed(state);
    state.remote.reading.forget_examples();
    state.shown = Shown::default();
    state.canvas = CanvasView::Fit;
    predict::update::predict::source_changed(state);
    state.tasks.dismiss(|kind| matches!(kind, TaskKind::Fetch { .. }));
    let title = format!("List {name}");
    let ticket = tasks::update::begin(state, TaskKind::List, ProgressUnit::Images, title);
    state.effects.push(BrowseEffect::Open { source: id, spec, ticket });
}

fn opened(state: &mut State, source: SourceId, name: String, place: Option<S3Place>, list_of: Option<Location>) {
    let Some(open) = state.source.as_mut().filter(|open| open.id == source) else {
        return;
    };
    if let Some(location) = list_of {
        state.settings.remember_recent(Path::new(&name));
        open.list = Some(PathBuf::from(&name));
        open.name = name;
        open.location = place.map(|place| Location::S3(Box::new(place))).or(Some(location));
        if let Some(Location::S3(place)) = open.location.clone() {
            s3::update::check_sign_in(state, &place.access);
        }
        return;
    }
    if let Some(place) = place {
        state.settings.remember_place(&place);
        open.name = name;
        let access = place.access.clone();
        open.location = Some(Location::S3(Box::new(place)));
        // A project may have referred to it.
        s3::update::check_sign_in(state, &access);
        return;
    }
    if let Some(Location::Path(path)) = &mut open.location {
        *path = PathBuf::from(&name);
        state.settings.remember_recent(path);
    }
    open.name = name;
}

fn listed(state: &mut State, source: SourceId, page: Page) {
    if !state.is_open(source) {
        return;
    }
    for problem in page.problems {
        state.problems.add(problem, None);
    }
    if let Some(open) = &mut state.source {
        open.notes.extend(page.notes);
    }
    append(state, page.samples);
}

/// The name of the last viewed image in the project.
const LAST_VIEWED: &str = "image_on_screen";

/// Restores the last viewed image from the project; ignores other names.
pub(crate) fn restore(state: &mut State, name: &str, json: &str) {
    if name == LAST_VIEWED {
        state.last_viewed.name = serde_json::from_str(json).ok();
    }
}

/// Shows the last viewed image if it is listed already.
pub(crate) fn project_opened(state: &mut State) {
    show_last_viewed(state, 0);
    let is_listed = state.source.as_ref().is_some_and(|open| open.listing != Listing::Running);
    state.last_viewed.is_decided |= is_listed;
}

/// Shows the last viewed image if it is among the samples from `first` on, unless it is too late for that.
fn show_last_viewed(state: &mut State, first: usize) {
    let LastViewed { name: Some(name), is_decided: false } = &state.last_viewed else {
        return;
    };
    let mut new = (first..state.samples.len()).map(SampleId::from_index);
    let is_it = |sample: &SampleId| state.samples.get(*sample).is_some_and(|entry| entry.name == *name);
    let found = new.find(is_it);
    state.last_viewed.is_decided = found.is_some();
    if let Some(sample) = found.filter(|sample| state.selection.shown() != Some(*sample)) {
        show(state, sample);
    }
}

/// Remembers the image on screen for the next time that the source is opened.
fn remember_viewed(state: &mut State, sample: SampleId) {
    let name = state.samples.get(sample).map(|entry| entry.name.clone());
    let is_awaited = !state.last_viewed.is_decided && state.last_viewed.name.is_some();
    if name.is_none() || name == state.last_viewed.name || is_awaited || !state.project.is_writable() {
        return;
    }
    project::update::save_view(state, LAST_VIEWED.to_owned(), &name);
    state.last_viewed.name = name;
}

/// Adds samples. The very first one is shown immediately, until the last viewed one is found.
pub(crate) fn append(state: &mut State, samples: Vec<Sample>) {
    let is_first = state.samples.is_empty() && !samples.is_empty();
    let first_new = state.samples.len();
    state.samples.append(samples);
    for sample in (first_new..state.samples.len()).map(SampleId::from_index) {
        if let Some(entry) = state.samples.get(sample) {
            state.judgments.listed(sample, &entry.uri);
        }
    }
    show_last_viewed(state, first_new);
    if is_first && state.selection.shown().is_none() {
        let is_decided = state.last_viewed.is_decided;
        show(state, SampleId(0));
        state.last_viewed.is_decided = is_decided;
    }
}

fn listing_ended(state: &mut State, source: SourceId, task: TaskId, result: Result<(), String>) {
    match &result {
        Ok(()) => state.tasks.forget(task),
        Err(reason) => drop(state.tasks.end(task, TaskOutcome::Failed(reason.clone()))),
    }
    if let Some(open) = state.source.as_mut().filter(|open| open.id == source) {
        open.listing = match result {
            Ok(()) => Listing::Done,
            Err(reason) => Listing::Failed(reason),
        };
        // If the project is still being opened, it decides.
        state.last_viewed.is_decided |= state.project.status != ProjectStatus::Opening;
        project::update::load_runs_on_screen(state);
    }
}

pub(crate) fn show(state: &mut State, sample: SampleId) {
    if state.samples.get(sample).is_some() {
        state.selection.show(sample);
        shown_changed(state);
    }
}

fn toggle_selected(state: &mut State, sample: SampleId) {
    if state.samples.get(sample).is_some() {
        let before = state.selection.shown();
        state.selection.toggle(sample);
        if state.selection.shown() != before {
            shown_changed(state);
        }
    }
}

fn extend_selection(state: &mut State, sample: SampleId) {
    if state.samples.get(sample).is_some() {
        let order = state.order();
        state.selection.extend_to(sample, &order);
        shown_changed(state);
    }
}

pub(crate) fn select_all(state: &mut State) {
    let before = state.selection.shown();
    let order = state.order();
    state.selection.select_all(order.ids());
    if state.selection.shown() != before {
        shown_changed(state);
    }
}

/// Selects these samples; if the shown one is not among them, shows `first`.
pub(crate) fn select(state: &mut State, samples: &SampleSet, first: SampleId) {
    let before = state.selection.shown();
    if !before.is_some_and(|shown| samples.contains(shown)) {
        state.selection.show(first);
    }
    state.selection.select_all(samples.iter());
    if state.selection.shown() != before {
        shown_changed(state);
    }
}

pub(crate) fn walk(state: &mut State, step: Step) {
    let order = state.order();
    let shown = state.selection.shown();
    let (place, extends) = match step {
        Step::By(by) => (search::update::place_after(state, by), false),
        Step::ExtendBy(by) => (search::update::place_after(state, by), true),
        Step::First => (Some(0), false),
        Step::Last => (order.len().checked_sub(1), false),
    };
    let Some(target) = place.and_then(|place| order.at(place)) else {
        return;
    };
    if extends {
        extend_selection(state, target);
    } else if shown != Some(target) || !matches!(step, Step::By(_)) {
        show(state, target);
    }
}

/// Decodes and predicts the newly shown image.
pub(crate) fn shown_changed(state: &mut State) {
    state.last_viewed.is_decided = true;
    state.canvas = CanvasView::Fit;
    state.canvas_requests.clear();
    state.shown = Shown::default();
    if let Some(strip) = &mut state.filmstrip {
        strip.selected.clear();
    }
    let (Some(sample), Some(source)) = (state.selection.shown(), &state.source) else {
        return;
    };
    let Some(entry) = state.samples.get(sample) else {
        return;
    };
    state.shown.display = Display::Loading;
    state.shown.box_to_select = state.judges_boxes.then_some(BoxToSelect::First);
    state.effects.push(BrowseEffect::Display { source: source.id, sample, uri: entry.uri.clone() });
    shown::refresh(state);
    predict::update::predict::predict_shown_if_wanted(state);
}

fn displayed(state: &mut State, source: SourceId, sample: SampleId, result: Result<DisplayInfo, String>) {
    if !state.is_open(source) {
        return;
    }
    if let Err(reason) = &result {
        unreadable(state, source, sample, reason.clone());
    }
    if state.selection.shown() == Some(sample) {
        read_neighbors_ahead(state, source, sample);
        state.shown.display = match result {
            Ok(info) => Display::Ready(info),
            Err(reason) => Display::Failed(reason),
        };
        remember_viewed(state, sample);
        shown::take(state);
    }
}

/// The next image comes first, because most users go forward.
fn read_neighbors_ahead(state: &mut State, source: SourceId, sample: SampleId) {
    let order = state.order();
    let Some(place) = order.place_of(sample) else {
        return;
    };
    let places = [place.checked_add(1), place.checked_sub(1)];
    let samples =
        places.into_iter().flatten().filter_map(|place| state.samples.get(order.at(place)?).cloned()).collect();
    state.effects.push(BrowseEffect::ReadAhead { source, samples });
}

fn unreadable(state: &mut State, source: SourceId, sample: SampleId, reason: String) {
    if !state.is_open(source) {
        return;
    }
    let Some(uri) = state.samples.get(sample).map(|entry| entry.uri.clone()) else {
        return;
    };
    let has_failed_before = state.runs.current().is_some_and(|run| run.failure(sample).is_some());
    if state.samples.mark_unreadable(sample, reason.clone()) && !has_failed_before {
        let problem = Problem::new(uri, reason);
        state.problems.add(problem, Some(sample));
    }
}

fn request_thumbnails(state: &mut State, side: u32, requested: &[SampleId]) {
    let Some(source) = &state.source else {
        return;
    };
    let request = |&sample: &SampleId| {
        Some(ThumbnailRequest {
            sample,
            version: state.samples.version(sample),
            entry: state.samples.get(sample)?.clone(),
        })
    };
    state.effects.push(BrowseEffect::MakeThumbnails {
        source: source.id,
        side,
        requested: requested.iter().filter_map(request).collect(),
    });
}

fn request_tiles(state: &mut State, requested: Vec<TileKey>) {
    if let (Some(sample), Some(source)) = (state.selection.shown(), &state.source) {
        state.effects.push(BrowseEffect::MakeTiles { source: source.id, sample, requested });
    }
}

/// To the clipboard, or to a file.
pub(crate) fn copy_image(state: &mut State, to: Option<PathBuf>) {
    if let (Some(entry), Some(source)) = (shown_entry(state), &state.source) {
        state.effects.push(BrowseEffect::CopyImage {
            source: source.id,
            uri: entry.uri.clone(),
            drawn: state.shown.prediction.as_deref().map(|prediction| DrawnPrediction {
                prediction: prediction.clone(),
                view: state.view().into_owned(),
                confirmed: state.confirmed_boxes(),
                truth: state.selection.shown().zip(state.evaluated()).map(|(sample, evaluated)| DrawnTruth {
                    outcomes: Arc::clone(&evaluated.outcomes),
                    sample,
                    shows_objects: state.settings.show_stored_boxes,
                }),
            }),
            to,
        });
    }
}

/// Asks for the file to save the shown image to.
pub(crate) fn save_image(state: &mut State) {
    if let Some(entry) = shown_entry(state) {
        let stem = Path::new(entry.uri.file_name()).file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("{stem}-annotated.png");
        state.pick_file(FileRequest::ImageTarget { name });
    }
}

/// Compares all images with the one on screen, or all boxes with a part of it.
pub(crate) fn find_alike(state: &mut State, part: ImagePart) {
    if let Some(sample) = state.selection.shown() {
        compare_with(state, AlikeTo::Part(sample, part));
    }
}

fn compare_with(state: &mut State, to: AlikeTo) {
    let (Some(source), Some(run)) = (state.source_id(), state.run()) else {
        return;
    };
    let (run, samples) = (run.id(), state.samples.snapshot());
    let title = match &to {
        AlikeTo::Part(_, ImagePart::Whole) | AlikeTo::Named(_) => "Find similar images",
        AlikeTo::Part(..) => "Find similar boxes",
        AlikeTo::Cover(..) => "Find covering images",
    };
    let runtime_library = state.settings.runtime_library.clone();
    let before = state.alike_task.take();
    tasks::update::cancel(state, before);
    let ticket = tasks::update::begin(state, TaskKind::FindAlike, ProgressUnit::Images, title.to_owned());
    state.alike_task = Some(ticket.id);
    let request = Box::new(AlikeRequest { source, run, to, samples, runtime_library });
    state.effects.push(BrowseEffect::FindAlike { request, ticket });
}

/// Compares all images with the one that the search field names. Called after every message.
pub(crate) fn follow_named(state: &mut State) {
    let on_screen = state.source.as_ref().zip(state.run()).map(|(source, run)| (source.id, run.id()));
    let named = state.arranging.similar_to();
    let wanted = on_screen.zip(named).map(|((source, run), name)| (source, run, name));
    if state.alike_named == wanted || wanted.is_some() && state.samples.is_empty() {
        return;
    }
    state.alike_named.clone_from(&wanted);
    if let Some((_, _, name)) = wanted {
        // Until it is compared, nothing is similar to it.
        state.alike = None;
        compare_with(state, AlikeTo::Named(name));
    }
}

/// Compares all boxes with the selected one, or with a drawn rectangle without a class, which is then forgotten. A box that
/// a person drew or moved is compared by what is under it.
pub(crate) fn find_alike_boxes(state: &mut State) {
    if let Some(Drawing::Drawn(bounds)) = state.shown.drawing {
        state.overlay = Overlay::None;
        find_alike(state, ImagePart::Region(bounds));
        return;
    }
    let Some((sample, index)) = state.selection.shown().zip(state.shown.selected_box) else {
        return;
    };
    let shown = state.shown.prediction.as_ref().and_then(|shown| shown.detections().get(index));
    let Some(bounds) = shown.map(|shown| shown.bounds) else {
        return;
    };
    let predicted = state.runs.current().and_then(|run| state.runs.prediction(run.id(), sample));
    let predicted = predicted.and_then(|predicted| predicted.detections().get(index));
    let part = match u16::try_from(index) {
        Ok(index) if predicted.is_some_and(|predicted| predicted.bounds == bounds) => ImagePart::Box(index),
        _ => ImagePart::Region(bounds),
    };
    find_alike(state, part);
}

/// The result of the last search; that of an earlier one is late.
fn found_alike(state: &mut State, task: TaskId, result: Result<FoundAlike, Failure>) {
    tasks::update::end(state, task, result.as_ref().err());
    if state.alike_task != Some(task) {
        return;
    }
    state.alike_task = None;
    match result {
        Ok(FoundAlike::Images(alike)) => sort_by_similarity(state, alike),
        Ok(FoundAlike::Cover(chosen, description)) => {
            if let Some(first) = chosen.iter().next() {
                select(state, &chosen, first);
                state.settings.show_images_panel = true;
                state.show_notice(description);
            }
        }
        Ok(FoundAlike::Boxes(boxes)) => filmstrip::update::show_chosen(state, boxes),
        Ok(FoundAlike::Nothing) | Err(Failure::Cancelled) => {}
        Err(Failure::Failed { message, .. }) => state.report_problem(message),
    }
}

/// The most similar images come first.
fn sort_by_similarity(state: &mut State, alike: Alike) {
    let description = alike.description.clone();
    state.alike = Some(alike);
    if state.alike().is_some() {
        state.settings.show_images_panel = true;
        state.arranging.set_sort(Sort { by: SortBy::Similarity, direction: Direction::Descending });
        state.show_notice(description);
    }
}

pub(crate) fn shown_entry(state: &State) -> Option<&crate::domain::Sample> {
    state.samples.get(state.selection.shown()?)
}

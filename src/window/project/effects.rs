//! The project of the open source: opening it, writing to it, reading from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::domain::{Change, Prediction, RunId, S3Place, SampleId, SamplePrediction, SampleUri};
use crate::project::{
    Access, OpenMode, OpenRequest, Opened, Project, ReadOnlyReason, SampleSummary, SaveEvent, StoreError, Summary,
    default_path, default_path_of_place,
};
use crate::tasks::{Cancelled, TaskControl};
use crate::window::effects::latest::{LatestSender, worker};
use crate::window::effects::{Effects, Shared, guarded};
use crate::window::project::merge;
use crate::window::state::{
    BrowseEvent, Failure, FilePick, FileRequest, PredictionRequest, ProjectContent, ProjectEffect, ProjectEvent,
    ProjectStatus, SourceId, StoredPrediction, StoredRow, Ticket,
};

pub(crate) fn carry_out(effects: &mut Effects, effect: ProjectEffect) {
    let shared = &effects.shared;
    match effect {
        ProjectEffect::Save { source, ticket, changes } => save(shared, source, ticket, changes),
        ProjectEffect::LoadRun { source, run, ticket } => load_run(shared, source, run, ticket),
        ProjectEffect::LoadPredictions { source, requested } => {
            effects.predictions.put(Request { source, requested });
        }
        ProjectEffect::SaveAs { source, path } => save_as(shared, source, path),
        ProjectEffect::StartSecondPass { source, path, ticket } => start_second_pass(shared, source, path, ticket),
        ProjectEffect::Move { source, folder } => move_to(shared, source, folder),
        ProjectEffect::Merge(effect) => merge::effects::carry_out(shared, effect),
    }
}

/// The number of predictions per read: few enough that the first ones appear quickly.
const READ_LEN: usize = 64;
/// The number of waits for threads that still read from the project when it is reopened.
const HANDOVER_ATTEMPTS: u32 = 40;
/// The name of this program for others that find the project in use.
pub(crate) const PROGRAM: &str = "a Spotcheck window";
const HANDOVER_PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Request {
    pub(crate) source: SourceId,
    pub(crate) requested: Vec<PredictionRequest>,
}

/// Reads complete predictions.
pub(crate) fn prediction_reader(shared: &Arc<Shared>) -> LatestSender<Request> {
    worker(shared, "read predictions", |shared, request, _| read_predictions(shared, &request))
}

/// Reads and reports predictions; false if the window is gone.
fn read_predictions(shared: &Shared, request: &Request) -> bool {
    let Some(project) = shared.project(request.source) else {
        return true;
    };
    for part in request.requested.chunks(READ_LEN) {
        match guarded(|| read_part(&project, part).map_err(|error| error.to_string())) {
            Ok(predictions) => {
                let source = request.source;
                if !shared.report(ProjectEvent::PredictionsLoaded { source, predictions }) {
                    return false;
                }
            }
            Err(reason) => shared.report_problem(format!("Could not read predictions: {reason}")),
        }
    }
    true
}

type LoadedPrediction = (RunId, SampleId, Option<Prediction>);

fn read_part(project: &Project, part: &[PredictionRequest]) -> Result<Vec<LoadedPrediction>, StoreError> {
    let mut predictions = Vec::with_capacity(part.len());
    for of_one_run in part.chunk_by(|left, right| left.run == right.run) {
        let run = of_one_run[0].run;
        let uris: Vec<SampleUri> = of_one_run.iter().map(|requested| requested.uri.clone()).collect();
        let found = project.predictions(run, &uris)?;
        for (requested, prediction) in of_one_run.iter().zip(found) {
            let is_wanted = |prediction: &SamplePrediction| {
                let stamp = requested.stamp.as_ref();
                stamp.is_none_or(|stamp| prediction.is_of(stamp))
            };
            let of_this_file = prediction.filter(is_wanted);
            let prediction = of_this_file.and_then(|prediction| prediction.result.ok());
            predictions.push((run, requested.sample, prediction));
        }
    }
    Ok(predictions)
}

/// Opens the default project of the folder `root`, which may be a `place` in S3, and reports it to the window, however
/// long it takes. If no file can be used, the project is in memory, and the window shows this.
pub(crate) fn open_default(shared: &Arc<Shared>, source: SourceId, root: String, place: Option<S3Place>) {
    shared.spawn("open the project", move |shared| {
        let path = match &place {
            Some(place) => default_path_of_place(&shared.dirs, place),
            None => default_path(&shared.dirs, &root),
        };
        let opened = open_file(shared, source, &path, Some(&root), OpenMode::Write);
        let in_memory = |error: StoreError| {
            let project = Project::in_memory(Some(&root), on_saved(shared, source))?;
            Ok((project, Vec::new(), Some(error.to_string())))
        };
        let opened = opened.map(|opened| (opened.project, opened.notes, None)).or_else(in_memory);
        match opened {
            Ok((project, mut notes, in_memory_because)) => {
                if let Some(place) = &place
                    && *project.access() == Access::Writer
                    && let Err(error) = project.set_place(place)
                {
                    notes.push(error.to_string());
                }
                take_over(shared, source, project, notes, in_memory_because);
            }
            Err::<_, StoreError>(error) => shared.report_problem(error.to_string()),
        }
    });
}

/// Opens a project file that the user chose; returns the folder of its images, and the access if that is in S3.
///
/// # Errors
/// The project cannot be opened, or does not contain the folder of its images.
pub(crate) fn open_chosen(
    shared: &Arc<Shared>,
    source: SourceId,
    path: &Path,
) -> Result<(String, Option<S3Place>), String> {
    let opened = open_file(shared, source, path, None, OpenMode::WriteExisting).map_err(|error| error.to_string())?;
    let root = opened.project.root();
    let place = opened.project.place().map_err(|error| error.to_string())?;
    take_over(shared, source, opened.project, opened.notes, None);
    root.map(|root| (root.to_string(), place))
        .ok_or_else(|| format!("The project does not record its image folder: {}", path.display()))
}

fn open_file(
    shared: &Arc<Shared>,
    source: SourceId,
    path: &Path,
    root: Option<&str>,
    mode: OpenMode,
) -> Result<Opened, StoreError> {
    // The project of the previous source may be the same file.
    shared.close_project_before(source);
    let request = OpenRequest { path, root, mode, program: PROGRAM };
    let mut attempts_left = HANDOVER_ATTEMPTS;
    loop {
        let opened = Project::open(&request, on_saved(shared, source))?;
        let is_held_by_ourselves = matches!(
            opened.project.access(),
            Access::ReadOnly { reason: ReadOnlyReason::Held { is_this_process: true, .. } }
        );
        if !is_held_by_ourselves || attempts_left == 0 {
            return Ok(opened);
        }
        attempts_left -= 1;
        drop(opened);
        std::thread::sleep(HANDOVER_PAUSE);
    }
}

fn on_saved(shared: &Arc<Shared>, source: SourceId) -> impl Fn(SaveEvent) + Send + use<> {
    // `Shared` owns the project; a strong reference from here would keep it open forever.
    let shared: Weak<Shared> = Arc::downgrade(shared);
    move |event| {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.report(match event {
            SaveEvent::Saved { up_to } => ProjectEvent::Saved { source, up_to },
            SaveEvent::Failed { reason } => {
                ProjectEvent::SaveFailed { source, reason: format!("{reason}; Spotcheck keeps retrying") }
            }
            SaveEvent::Stopped { reason } => {
                ProjectEvent::SaveFailed { source, reason: format!("{reason}; Spotcheck does not retry this") }
            }
            SaveEvent::Rejected { reason, .. } => ProjectEvent::SaveFailed { source, reason },
        });
    }
}

/// Sets the project of the open source and reports its content to the window.
fn take_over(
    shared: &Shared,
    source: SourceId,
    project: Project,
    mut notes: Vec<String>,
    in_memory_because: Option<String>,
) {
    let mut noted = |what: &str, error: StoreError| notes.push(format!("Could not read {what}: {error}"));
    let runs = project.runs().unwrap_or_else(|error| {
        noted("the runs of the project", error);
        Vec::new()
    });
    let judgments = project.judgments().unwrap_or_else(|error| {
        noted("the verdicts of the project", error);
        Vec::new()
    });
    let views = project.views().unwrap_or_else(|error| {
        noted("the filters of the project", error);
        BTreeMap::new()
    });
    let status = match (in_memory_because, project.access()) {
        (Some(reason), _) => ProjectStatus::InMemory { reason },
        (None, Access::Writer) => ProjectStatus::Writable,
        (None, Access::ReadOnly { reason }) => ProjectStatus::ReadOnly { reason: reason.to_string() },
    };
    let content = ProjectContent {
        path: project.path(),
        status,
        runs,
        next_run: project.new_run_id(),
        judgments,
        views: views.into_iter().collect(),
        notes,
    };
    shared.set_project(source, project);
    shared.report(ProjectEvent::Opened { source, content: Box::new(content) });
}

fn save(shared: &Shared, source: SourceId, ticket: u64, changes: Vec<Change>) {
    let Some(project) = shared.project(source) else {
        return;
    };
    let last = changes.len().saturating_sub(1);
    for (position, change) in changes.into_iter().enumerate() {
        // The ticket counts as saved with its last change, not with its first.
        let ticket = if position == last { ticket } else { ticket - 1 };
        if let Err(error) = project.write(ticket, change) {
            let reason = error.to_string();
            shared.report(ProjectEvent::SaveFailed { source, reason });
            return;
        }
    }
}

fn load_run(shared: &Arc<Shared>, source: SourceId, run: RunId, ticket: Ticket) {
    shared.run_task(
        "read the predictions of a run",
        ticket,
        move |shared, ticket| report_run(shared, source, run, &ticket.control),
        move |task, result| ProjectEvent::RunLoadingEnded { source, run, task, result },
    );
}

/// Reports the summaries of a run in parts.
fn report_run(shared: &Shared, source: SourceId, run: RunId, control: &TaskControl) -> Result<(), String> {
    let project = shared.project(source).ok_or("the project was closed")?;
    let stamps = project.stamps(run).map_err(|error| error.to_string())?;
    let row = |summary: SampleSummary| StoredRow {
        stamp: stamps.get(&summary.sample).and_then(|seen| seen.stamp.clone()),
        sample: summary.sample,
        prediction: stored_prediction(summary.result),
    };
    let read = project.each_summary(run, control, |summaries| {
        shared.report(ProjectEvent::RunLoaded { source, run, predictions: summaries.into_iter().map(row).collect() });
    });
    read.map_err(|error| match error {
        StoreError::Cancelled(Cancelled) => "Reading the predictions was canceled".to_owned(),
        error => error.to_string(),
    })
}

fn stored_prediction(result: Result<Summary, String>) -> StoredPrediction {
    match result {
        Ok(summary) => StoredPrediction::Predicted {
            width: summary.width,
            height: summary.height,
            classes: summary.classes,
            scores: summary.scores,
            warnings: summary.warnings,
        },
        Err(reason) => StoredPrediction::Failed(reason),
    }
}

/// Writes a copy and continues in it.
fn save_as(shared: &Arc<Shared>, source: SourceId, path: PathBuf) {
    let save = move |shared: &Arc<Shared>| {
        let project = shared.project(source).ok_or("No project is open")?;
        let saved = if *project.access() == Access::Writer {
            let copy = project.continue_as(&path, PROGRAM);
            copy.map(|copy| (copy, project.new_run_id()))
        } else {
            go_on_in_copy(shared, source, &project, &path)
        };
        saved.map_err(|error| format!("Could not save the project: {error}"))
    };
    shared.run("save the project as", save, move |result| ProjectEvent::SavedAs { source, result });
}

/// Saves a copy of a project that is read-only here; the copy is writable.
fn go_on_in_copy(
    shared: &Arc<Shared>,
    source: SourceId,
    project: &Project,
    path: &Path,
) -> Result<(PathBuf, RunId), StoreError> {
    let copy = project.save_as(path, PROGRAM)?;
    let opened = open_file(shared, source, &copy, project.root().as_deref(), OpenMode::WriteExisting)?;
    let next_run = opened.project.new_run_id();
    shared.set_project(source, opened.project);
    Ok((copy, next_run))
}

/// Writes a copy without verdicts.
fn start_second_pass(shared: &Arc<Shared>, source: SourceId, path: PathBuf, ticket: Ticket) {
    shared.run_task(
        "start a second pass",
        ticket,
        move |shared, ticket| {
            let project = shared.project(source).ok_or(Failure::Cancelled)?;
            Ok::<_, Failure>(project.start_second_pass(&path, PROGRAM, &ticket.control)?)
        },
        move |task, result| ProjectEvent::SecondPassWritten { source, task, result },
    );
}

/// Stores the new folder of the images in a project and reopens it.
fn move_to(shared: &Arc<Shared>, source: SourceId, folder: PathBuf) {
    shared.spawn("move a project", move |shared| {
        let Some(project) = shared.project(source) else {
            return;
        };
        let moved = project.relocate(&folder.display().to_string());
        match (moved, project.path()) {
            (Ok(()), Some(path)) => {
                let pick = FilePick::Picked(FileRequest::Project, vec![path]);
                shared.report(BrowseEvent::FilesPicked(pick));
            }
            (Ok(()), None) => {}
            (Err(error), _) => shared.report_problem(format!("Could not move the project: {error}")),
        }
    });
}

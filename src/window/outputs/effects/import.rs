//! Opening predictions from other tools as a run of the open images, and identifying what was dropped on the window.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Bundles, announce, labels_of};
use crate::annotations::import::{AnnotationFile, ImportError, ImportedRun, Naming};
use crate::annotations::matching::{ClassCorrections, Folders};
use crate::annotations::{self, AnnotationFormat, AnnotationsError, read_class_map};
use crate::domain::{LabelSet, Location, Sample, is_document_name, is_lines_name};
use crate::image::source::{Files, LinesSource, Source as _, absolute};
use crate::predict::ResultSink;
use crate::tasks::{ProgressUnit, TaskControl};
use crate::window::browse;
use crate::window::effects::Shared;
use crate::window::effects::desktop::ANNOTATION_EXTENSIONS;
use crate::window::state::{
    BrowseEvent, DroppedKind, FoundRun, OpenPredictionsRequest, OutputsEnd, OutputsEvent, OutputsFailure,
    PredictionsFrom, SourceId, TaskOutcome, Ticket,
};

pub(crate) fn open(shared: &Arc<Shared>, request: OpenPredictionsRequest, ticket: Ticket) {
    let source = request.source;
    shared.run_task(
        "open predictions",
        ticket,
        move |shared, ticket| open_all(shared, &request, ticket),
        move |task, result| OutputsEvent::Read { source, task, result },
    );
}

fn open_all(shared: &Shared, request: &OpenPredictionsRequest, ticket: &Ticket) -> Result<OutputsEnd, OutputsFailure> {
    let control = &ticket.control;
    let source = shared.source(request.source).ok_or(OutputsFailure::Cancelled)?;
    let labels = labels_of(&request.from.labels)?;
    let corrections = request.from.class_map.as_deref().map(corrections_in).transpose()?.unwrap_or_default();
    let file = read(shared, &request.from, control)?;
    let mut summary = vec![file.summary()];
    let mut notes: Vec<String> = file.remarks();
    for line in &mut notes {
        *line = format!("{}: {}", file.name, line.trim_start());
    }
    let has_problems = !file.found.annotations.problems.is_empty();
    let run = imported_run(file, request, labels, corrections)?;
    notes.extend(class_notes(&run));
    let samples: Vec<Sample> = request.samples.iter().cloned().collect();
    let matches = run.match_images(&samples, Folders::Agree)?;
    let same = request
        .known
        .iter()
        .find(|known| known.key == run.key && known.card.origin == run.card.origin && known.labels == run.labels);
    let run_id = same.map_or(request.new_run, |known| known.id);
    let described = FoundRun { key: run.key.clone(), card: run.card.clone(), labels: run.labels.clone() };
    announce(shared, (request.source, run_id), ticket, described)?;
    let mut sink = Bundles::new(shared, (request.source, run_id), &samples, control);
    let mut failed = 0_usize;
    let read = run.each_prediction(&source, &samples, &matches.pairs, control, |sample, result| {
        failed += usize::from(result.is_err());
        sink.arrived(sample.index(), &result);
        Ok::<(), ImportError>(())
    });
    sink.send();
    let outside = read?;
    summary.push(matches.summary());
    if failed > 0 {
        summary.push(format!("{failed} of them could not be used"));
    }
    notes.extend(run.unmatched_lines(&matches));
    notes.extend(outside.line().into_iter().chain(run.unmarked_line()));
    let is_complete = !outside.are_many()
        && run.unknown_classes.is_empty()
        && failed == 0
        && !has_problems
        && run.left_out.is_empty()
        && run.unmarked == 0
        && matches.is_complete();
    if !notes.is_empty() {
        summary.push("see the problems".to_owned());
    }
    Ok(OutputsEnd { outcome: TaskOutcome::Done(summary.join("; ")), is_complete, notes })
}

fn imported_run(
    file: AnnotationFile,
    request: &OpenPredictionsRequest,
    labels: Option<LabelSet>,
    corrections: ClassCorrections,
) -> Result<ImportedRun, OutputsFailure> {
    // Only the ids in results are those of the dataset, whichever it is.
    let truth = request.truth.as_deref().filter(|_| file.found.format == AnnotationFormat::CocoResults);
    let truth = truth.map(|truth| (&truth.labels[..], &truth.images[..]));
    ImportedRun::new(file, Naming { truth, labels, corrections, model: None, unscored: request.from.unscored }).map_err(
        |error| match &request.from.class_map {
            Some(path) if matches!(error, ImportError::Classes(_)) => {
                format!("Could not use {}: {error}", path.display()).into()
            }
            _ => OutputsFailure::from(error),
        },
    )
}

/// Skipped and unknown classes, and corrections for classes that do not occur.
fn class_notes(run: &ImportedRun) -> impl Iterator<Item = String> {
    [
        (&run.left_out, "skipped, because the run does not have their classes"),
        (&run.unknown_classes, "classes that the ground truth does not have"),
        (&run.unused_corrections, "class corrections for classes that the predictions do not have"),
    ]
    .into_iter()
    .filter(|(classes, _)| !classes.is_empty())
    .map(|(classes, what)| format!("{what}: {}", classes.join(", ")))
}

/// The files at a location, and the location in permanent form: a path becomes absolute.
pub(crate) fn files_at(shared: &Shared, at: &Location) -> Result<(Location, Files), String> {
    let at = match at {
        Location::Path(path) => {
            let path =
                absolute(&browse::effects::with_home(path)).map_err(|error| format!("{error}: {}", path.display()))?;
            Location::Path(path)
        }
        Location::S3(_) => at.clone(),
    };
    let files = Files::new(&shared.aws, &at);
    Ok((at, files))
}

pub(crate) fn corrections_in(path: &Path) -> Result<ClassCorrections, String> {
    read_class_map(&browse::effects::with_home(path))
}

/// Reads annotations. Progress counts bytes first, and images afterwards.
fn read(shared: &Shared, from: &PredictionsFrom, control: &TaskControl) -> Result<AnnotationFile, OutputsFailure> {
    let (_, files) = files_at(shared, &from.at)?;
    control.set_step("reading the predictions");
    control.begin(ProgressUnit::Bytes);
    let read = match shared.take_dropped(&files, control) {
        Some(found) => AnnotationFile::new(found, &files, control),
        None => AnnotationFile::read(&files, from.split.as_deref(), control),
    };
    control.begin(ProgressUnit::Images);
    read.map_err(|error| match error {
        AnnotationsError::Cancelled(_) => OutputsFailure::Cancelled,
        error => format!("Could not open predictions: {error}").into(),
    })
}

impl From<ImportError> for OutputsFailure {
    fn from(error: ImportError) -> Self {
        let advice = match &error {
            ImportError::Cancelled(_) => return Self::Cancelled,
            ImportError::OtherFolders { .. } => ". If they are the same images, open their parent folder",
            ImportError::NoImage { .. } => {
                ". Open the images of these predictions. If the predictions contain only image numbers, open their \
                 ground truth first"
            }
            _ => "",
        };
        let message = format!("Could not open predictions: {error}{advice}");
        match error {
            ImportError::NoScores { .. } => Self::GroundTruth { message },
            _ => message.into(),
        }
    }
}

/// Identifies what was dropped.
pub(crate) fn look(shared: &Arc<Shared>, source: SourceId, paths: Vec<PathBuf>, ticket: Ticket) {
    let reported = paths.clone();
    shared.run_task(
        "open dropped files",
        ticket,
        move |shared, ticket| kind_of(shared, paths, &ticket.control),
        move |task, result| BrowseEvent::LookedAtDropped { source, task, paths: reported, result },
    );
}

/// The kind of what was dropped. Annotations are kept until they are opened.
fn kind_of(shared: &Shared, paths: Vec<PathBuf>, control: &TaskControl) -> Result<DroppedKind, String> {
    if paths.iter().any(|path| holds_images(path, control)) {
        return Ok(DroppedKind::Images);
    }
    let Ok([path]) = <[PathBuf; 1]>::try_from(paths) else {
        return Err("Drop one file or folder of predictions or ground truth at a time".to_owned());
    };
    let (_, files) = files_at(shared, &Location::Path(path.clone()))?;
    let listed = files.list(control).map_err(|error| error.to_string())?;
    match annotations::open(&files, control) {
        Ok(found) => {
            let has_scores = found.annotations.has_scores();
            *shared.dropped.lock() = Some((listed, found));
            Ok(if has_scores { DroppedKind::Predictions } else { DroppedKind::Truth })
        }
        Err(AnnotationsError::Unknown { .. }) if lists_images(&path, control) => Ok(DroppedKind::Images),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether the lines of a file, or the elements of a document, may contain the images themselves.
fn lists_images(path: &Path, control: &TaskControl) -> bool {
    let name = path.to_string_lossy();
    let has_elements = |file| {
        let document = LinesSource::in_place_of(Arc::new(file), control);
        document.pages().any(|page| !page.samples.is_empty())
    };
    is_lines_name(&name) || is_document_name(&name) && browse::effects::open_path(path).is_ok_and(has_elements)
}

/// Whether a folder has images, or a file does not have the name of annotations.
fn holds_images(path: &Path, control: &TaskControl) -> bool {
    if !path.is_dir() {
        let extension = path.extension().unwrap_or_default();
        return !ANNOTATION_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known));
    }
    let images = browse::effects::open_path(path).into_iter().flat_map(|folder| folder.pages());
    images.take_while(|_| !control.is_cancelled()).any(|page| !page.samples.is_empty())
}

//! The export dialogs and the end of exports.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{ModelTask, Sample};
use crate::project::export::options::{BoxChoice, EmbeddedPart, ExportFormat, VerdictChoice};
use crate::review::Suppressed;
use crate::tasks::ProgressUnit;
use crate::window::state::{
    BoxCountRequest, CountBasis, Effect, ExportChangesRequest, ExportCommand, ExportComparisonRequest, ExportEffect,
    ExportEmbeddingsRequest, ExportEvaluationRequest, ExportEvent, ExportFile, ExportRequest, ExportScope, Exported,
    Failure, FileRequest, Loadable, Overlay, RequestId, Run, State, TaskId, TaskKind, TaskOutcome, Ticket,
};
use crate::window::update::images;
use crate::window::{evaluation, tasks};

pub(crate) fn on_command(state: &mut State, command: ExportCommand) {
    match command {
        ExportCommand::Set(options, scope) => {
            let before = std::mem::replace(&mut state.export.options, options);
            state.export.scope = scope;
            if options.verdicts != before.verdicts {
                state.export.chosen_verdicts = Some(options.verdicts);
            }
            if options.format != before.format {
                choose_verdicts(state);
            }
        }
        ExportCommand::SetEmbeddings(part) => state.export.embeddings = part,
        ExportCommand::SetComparisonFormat(format) => state.export.comparison = format,
        ExportCommand::SetEvaluationFormat(format) => state.export.evaluation = format,
        ExportCommand::PickTarget => pick_target(state),
        ExportCommand::Start { path, replaces } => start(state, path, replaces),
        ExportCommand::Dismiss => state.exported = None,
    }
}

pub(crate) fn on_event(state: &mut State, event: ExportEvent) {
    match event {
        ExportEvent::BoxesCounted { id, counts } => {
            state.export_boxes.take(id, counts);
        }
        ExportEvent::Ended(task, result) => ended(state, task, result),
    }
}

pub(crate) fn open(state: &mut State) {
    if state.selection.selected().len() > 1 {
        state.export.scope = ExportScope::Selection;
    } else if state.export.scope == ExportScope::Selection {
        state.export.scope = ExportScope::Filter;
    }
    let task = state.run().and_then(Run::task);
    if task.is_some_and(|task| !state.export.options.format.takes(task)) {
        state.export.options.format = ExportFormat::Csv;
    }
    // An encoder has nothing else, and only detectors have boxes.
    let draft = &mut state.export;
    draft.embeddings = match task {
        None => Some(EmbeddedPart::Images),
        Some(ModelTask::Detection) => draft.embeddings,
        Some(_) => draft.embeddings.map(|_| EmbeddedPart::Images),
    };
    choose_verdicts(state);
    show(state, Overlay::Export);
}

/// Without the user's choice, labels that a person judged are exported as corrected.
fn choose_verdicts(state: &mut State) {
    let is_judged = state.runs.current().is_some_and(|run| state.judgments.judged_images(run.id()) > 0);
    let draft = &mut state.export;
    let is_of_labels = !matches!(draft.options.format, ExportFormat::AnnotatedImages | ExportFormat::Report);
    let usual = if is_judged && is_of_labels { VerdictChoice::Corrected } else { VerdictChoice::All };
    draft.options.verdicts = draft.chosen_verdicts.unwrap_or(usual);
}

/// Opens an export dialog, without the result of an earlier export.
pub(crate) fn show(state: &mut State, overlay: Overlay) {
    state.export.stage = Loadable::NotLoaded;
    state.overlay = overlay;
}

/// Counts the boxes available for export if the counts do not match the state. Called after every message.
pub(crate) fn follow(state: &mut State) {
    if state.overlay != Overlay::Export || state.export.embeddings.is_some() {
        return;
    }
    let is_detector = |run: &&Run| run.task() == Some(ModelTask::Detection);
    let Some(run) = state.runs.current().filter(is_detector) else {
        return;
    };
    let options = state.export.options;
    let is_visible = options.boxes == BoxChoice::Visible || options.verdicts == VerdictChoice::Corrected;
    let basis = CountBasis {
        run: run.id(),
        predictions: run.predictions.revision(),
        marks: state.judgments.marks().revision(),
        view: is_visible.then(|| state.view().into_owned()),
        hidden: state.suppressed().map_or(0, Suppressed::revision),
        outdated: run.outdated.clone(),
        order: state.order(),
        selected: state.selection.selected().clone(),
    };
    // A pending count is not replaced: while predictions stream in, every count arrives late, but none is skipped.
    if state.export_boxes.is_under_way() || state.export_boxes.inputs() == Some(&basis) {
        return;
    }
    let id = RequestId(state.ids.next());
    state.effects.push(ExportEffect::CountBoxes {
        id,
        what: Box::new(BoxCountRequest {
            predictions: run.predictions.clone(),
            view: basis.view.clone(),
            suppressed: state.suppressed().cloned(),
            marks: state.judgments.marks().clone(),
            outdated: basis.outdated.clone(),
            order: basis.order.clone(),
            selected: basis.selected.clone(),
        }),
    });
    let choice = |basis: &CountBasis| (basis.run, basis.view.is_some());
    state.export_boxes.keep_if(|counted| choice(counted) == choice(&basis));
    state.export_boxes.begin(id, basis);
}

/// Starts the export of the open dialog. `replaces` allows replacing an existing file or folder. The path gets the
/// extension of the format, unless it has one or the format is a folder.
fn start(state: &mut State, mut path: PathBuf, replaces: bool) {
    if let (Some(extension), None) = (state.export_extension(), path.extension()) {
        path.set_extension(extension);
    }
    let target = ExportFile { path, replaces };
    let effect = match state.overlay {
        Overlay::ExportComparison => comparison(state, target),
        Overlay::ExportEvaluation => evaluation(state, target),
        Overlay::ExportLabelChanges => changes(state, target),
        _ => match state.export.embeddings {
            Some(part) => embeddings(state, part, target),
            None => predictions(state, target),
        },
    };
    if let Some(effect) = effect {
        state.effects.push(effect);
    }
}

/// `total` is the number of images.
fn begin(state: &mut State, title: String, total: Option<usize>) -> Ticket {
    let ticket = tasks::update::begin(state, TaskKind::Export, ProgressUnit::Images, title);
    if let Some(total) = total {
        ticket.control.set_total(Some(total as u64));
    }
    state.export.stage = Loadable::Loading(ticket.id);
    ticket
}

fn predictions(state: &mut State, target: ExportFile) -> Option<ExportEffect> {
    let (source, run) = (state.source.as_ref()?, state.run()?);
    let options = state.export.options;
    let ids = state.export.scope.ids(state);
    let samples: Vec<Sample> = ids.iter().filter_map(|id| state.samples.get(*id).cloned()).collect();
    let compares = matches!(options.format, ExportFormat::AnnotatedImages | ExportFormat::Report);
    let truth = state.evaluated().filter(|_| compares).map(|evaluated| {
        let named = ids.iter().filter_map(|id| Some((state.samples.get(*id)?.uri.clone(), *id)));
        (Arc::clone(&evaluated.outcomes), named.collect())
    });
    let (source_id, source_name) = (source.id, source.name.clone());
    let (info, view) = (run.info.clone(), state.view().into_owned());
    let is_report = options.format == ExportFormat::Report;
    let evaluation = is_report.then(|| evaluation::update::request(state, info.id)).flatten();
    let title = format!("Export {} as {}", images(samples.len()), options.format.name());
    let ticket = begin(state, title, Some(samples.len()));
    let request = ExportRequest {
        source: source_id,
        source_name,
        run: Box::new(info),
        view,
        options,
        samples,
        evaluation,
        truth,
        target_precision: state.target_precision,
        target,
    };
    Some(ExportEffect::Start { request: Box::new(request), ticket })
}

fn embeddings(state: &mut State, part: EmbeddedPart, target: ExportFile) -> Option<ExportEffect> {
    let (source, run) = (state.source.as_ref()?.id, state.run()?.info.clone());
    let title = format!("Export the embeddings of {}", run.name);
    let ticket = begin(state, title, None);
    let request = ExportEmbeddingsRequest {
        source,
        run: Box::new(run),
        part,
        samples: state.samples.snapshot(),
        runtime_library: state.settings.runtime_library.clone(),
        target,
    };
    Some(ExportEffect::StartEmbeddings { request: Box::new(request), ticket })
}

fn pick_target(state: &mut State) {
    let suggested = state.suggested_export();
    let name = suggested.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    state.effects.push(Effect::PickFile(FileRequest::ExportTarget { name }));
}

/// Exports the comparison with the current filters.
fn comparison(state: &mut State, target: ExportFile) -> Option<ExportEffect> {
    let (source, comparing) = (state.source.as_ref()?, state.comparing.as_ref()?);
    let (left, right) = (state.runs.get(comparing.left)?, state.runs.get(comparing.right)?);
    let format = state.export.comparison;
    let title = format!("Export the comparison of {} with {}", left.info.name, right.info.name);
    let (source, source_name) = (source.id, source.name.clone());
    let runs = Box::new([left.info.clone(), right.info.clone()]);
    let views = Box::new(comparing.views.clone());
    let ticket = begin(state, title, Some(state.samples.len()));
    let evaluated = state.evaluated().zip(state.other_evaluated());
    let evaluated = evaluated.map(|(one, (_, other))| [one, other].map(|run| Arc::clone(&run.evaluated)));
    let samples = state.samples.snapshot();
    let request = ExportComparisonRequest { source, source_name, runs, views, samples, evaluated, format, target };
    Some(ExportEffect::StartComparison { request, ticket })
}

/// Exports the evaluation of the run on screen. It is measured again with the current filters.
fn evaluation(state: &mut State, target: ExportFile) -> Option<ExportEffect> {
    let evaluation = evaluation::update::request(state, state.run_id()?)?;
    let format = state.export.evaluation;
    let title = format!("Export the evaluation of {}", evaluation.run.name);
    let ticket = begin(state, title, None);
    let request = ExportEvaluationRequest { evaluation, format, target };
    Some(ExportEffect::StartEvaluation { request: Box::new(request), ticket })
}

/// Exports what the verdicts on the run on screen change in the ground truth that it was opened from.
fn changes(state: &mut State, target: ExportFile) -> Option<ExportEffect> {
    let (source, truth) = (state.source.as_ref()?.id, state.corrected_truth()?);
    let run = Box::new(state.run()?.info.clone());
    let ticket = begin(state, format!("Export the changes of {}", run.name), None);
    Some(ExportEffect::StartChanges { request: Box::new(ExportChangesRequest { source, run, truth, target }), ticket })
}

fn ended(state: &mut State, task: TaskId, result: Result<Exported, Failure>) {
    let is_open = matches!(
        state.overlay,
        Overlay::Export | Overlay::ExportComparison | Overlay::ExportEvaluation | Overlay::ExportLabelChanges
    );
    // Another dialog or export may have been opened meanwhile.
    let is_shown = is_open && state.export.stage == Loadable::Loading(task);
    match result {
        Ok(exported) => {
            if is_shown {
                state.overlay = Overlay::None;
            }
            let outcome = TaskOutcome::Done(exported.summary.clone());
            tasks::update::ended(state, task, outcome, Vec::new());
            state.exported = Some(exported);
        }
        Err(failure) => {
            if is_shown {
                // The dialog shows it, and the next attempt may succeed.
                drop(state.tasks.end(task, failure.clone().into()));
                state.export.stage.settle(task, Err(failure));
                return;
            }
            if let Failure::Failed { message, .. } = &failure {
                // The list of problems may be closed.
                state.show_notice(message.clone());
            }
            tasks::update::ended(state, task, failure.into(), Vec::new());
        }
    }
}

//! Exports from the project and the images of the open source.

use std::sync::Arc;

use crate::annotations::matching::{ClassCorrections, Folders, MatchRules};
use crate::domain::SampleId;
use crate::evaluation::DRAWS;
use crate::evaluation::pipeline::Extras;
use crate::project::export::label_patch::LabelChanges;
use crate::project::export::options::EvaluationFormat;
use crate::project::export::{
    ComparisonContext, EvaluatedBoxes, EvaluatedImages, Existing, ExportContext, ExportError, ExportTarget, WholeFile,
    export_comparison, export_run, write_evaluation,
};
use crate::project::prediction_pairs;
use crate::review::count_boxes;
use crate::similar::{ExportVectorsError, ModelPlace, export_vectors};
use crate::tasks::TaskControl;
use crate::window::browse::effects::with_home;
use crate::window::effects::latest::{LatestSender, worker};
use crate::window::effects::{Effects, Shared, guarded};
use crate::window::evaluation::effects::measured;
use crate::window::outputs::effects::import::files_at;
use crate::window::state::{
    BoxCountRequest, BoxCounts, ExportChangesRequest, ExportComparisonRequest, ExportEffect, ExportEmbeddingsRequest,
    ExportEvaluationRequest, ExportEvent, ExportFile, ExportRequest, Exported, Failure, RequestId, Ticket,
};

pub(crate) fn carry_out(effects: &mut Effects, effect: ExportEffect) {
    let shared = &effects.shared;
    match effect {
        ExportEffect::Start { request, ticket } => {
            let write = move |shared: &Arc<Shared>, ticket: &Ticket| write(shared, *request, &ticket.control);
            shared.run_task("export", ticket, write, ExportEvent::Ended);
        }
        ExportEffect::StartEmbeddings { request, ticket } => {
            let write =
                move |shared: &Arc<Shared>, ticket: &Ticket| write_embeddings(shared, &request, &ticket.control);
            shared.run_task("export embeddings", ticket, write, ExportEvent::Ended);
        }
        ExportEffect::StartComparison { request, ticket } => {
            let write = move |shared: &Arc<Shared>, ticket: &Ticket| write_comparison(shared, request, &ticket.control);
            shared.run_task("export a comparison", ticket, write, ExportEvent::Ended);
        }
        ExportEffect::StartEvaluation { request, ticket } => {
            let write =
                move |shared: &Arc<Shared>, ticket: &Ticket| export_evaluation(shared, &request, &ticket.control);
            shared.run_task("export an evaluation", ticket, write, ExportEvent::Ended);
        }
        ExportEffect::StartChanges { request, ticket } => {
            let write = move |shared: &Arc<Shared>, ticket: &Ticket| write_changes(shared, &request, &ticket.control);
            shared.run_task("export changes", ticket, write, ExportEvent::Ended);
        }
        ExportEffect::CountBoxes { id, what } => {
            effects.box_counts.put((id, what));
        }
    }
}

/// Counts the boxes available for export.
pub(crate) fn box_counter(shared: &Arc<Shared>) -> LatestSender<(RequestId, Box<BoxCountRequest>)> {
    worker(shared, "count boxes", |shared, (id, what): (RequestId, Box<BoxCountRequest>), _| {
        let counts = guarded(|| Ok(counts(&what)));
        let counts = counts.map_err(|reason| shared.report_problem(reason)).ok();
        shared.report(ExportEvent::BoxesCounted { id, counts })
    })
}

fn counts(what: &BoxCountRequest) -> BoxCounts {
    let count = |samples: &mut dyn Iterator<Item = SampleId>| {
        let samples = samples.filter(|sample| !what.outdated.contains(*sample));
        let (view, suppressed) = (what.view.as_ref(), what.suppressed.as_ref());
        count_boxes(&what.predictions, view, suppressed, &what.marks, samples)
    };
    BoxCounts {
        filter: count(&mut what.order.ids()),
        selection: count(&mut what.selected.iter()),
        all: count(&mut what.predictions.iter().map(|(sample, _)| sample)),
    }
}

fn target(file: &ExportFile) -> ExportTarget {
    ExportTarget { path: with_home(&file.path), existing: Existing::from_force(file.replaces) }
}

fn write(shared: &Shared, request: ExportRequest, control: &TaskControl) -> Result<Exported, Failure> {
    let source = shared.source(request.source).ok_or(Failure::Cancelled)?;
    let project = shared.project(request.source).ok_or(Failure::Cancelled)?;
    // The export includes the last verdicts.
    project.flush().map_err(|error| failed(&error))?;
    let measured = |evaluation| measured(shared, evaluation, Extras { draws: DRAWS, ..Extras::default() }, control);
    let evaluation = request.evaluation.as_ref().map(measured).transpose()?;
    let context = ExportContext {
        run: *request.run,
        view: request.view,
        source_name: request.source_name,
        source,
        limits: shared.limits(),
        evaluation,
        truth: request.truth.map(|(outcomes, samples)| EvaluatedBoxes { outcomes, samples }),
        target_precision: request.target_precision,
        review: None,
        new_classes: Vec::new(),
    };
    let target = target(&request.target);
    let report = export_run(project, request.samples, &context, request.options, &target, control);
    let report = report.map_err(export_failure)?;
    let problems = report.problems.iter().map(ToString::to_string);
    Ok(Exported {
        summary: report.to_string(),
        notes: report.notes.iter().cloned().chain(problems).collect(),
        path: report.path,
    })
}

fn write_embeddings(
    shared: &Shared,
    request: &ExportEmbeddingsRequest,
    control: &TaskControl,
) -> Result<Exported, Failure> {
    let project = shared.project(request.source).ok_or(Failure::Cancelled)?;
    let place = ModelPlace { dirs: &shared.dirs, runtime_library: request.runtime_library.as_deref() };
    let present = || Some(request.samples.iter().map(|sample| (sample.uri.clone(), sample.stamp())).collect());
    let target = target(&request.target);
    let exported = export_vectors(&project, &request.run, request.part, present, &place, &target, control);
    let exported = exported.map_err(|error| match error {
        ExportVectorsError::Cancelled(_) => Failure::Cancelled,
        ExportVectorsError::Store(error) => error.into(),
        ExportVectorsError::Export(error) => export_failure(error),
        ExportVectorsError::Missing(reason) => failed(&reason),
    })?;
    Ok(Exported { path: target.path, summary: exported.summary, notes: exported.notes })
}

fn write_comparison(
    shared: &Shared,
    request: ExportComparisonRequest,
    control: &TaskControl,
) -> Result<Exported, Failure> {
    let project = shared.project(request.source).ok_or(Failure::Cancelled)?;
    let runs = request.runs.each_ref().map(|run| run.id);
    let pairs = prediction_pairs(project, runs, request.samples.iter().cloned());
    let context = ComparisonContext {
        runs: *request.runs,
        views: *request.views,
        source_name: request.source_name,
        evaluated: request.evaluated,
    };
    let report = export_comparison(pairs, &context, request.format, &target(&request.target), control);
    let report = report.map_err(export_failure)?;
    Ok(Exported { summary: report.to_string(), notes: Vec::new(), path: report.path })
}

fn export_evaluation(
    shared: &Shared,
    request: &ExportEvaluationRequest,
    control: &TaskControl,
) -> Result<Exported, Failure> {
    let ExportEvaluationRequest { evaluation, format, target: file } = request;
    let source = shared.source(evaluation.source).ok_or(Failure::Cancelled)?;
    let extras =
        Extras { draws: DRAWS, suspicious: *format == EvaluationFormat::SuspiciousLabels, ..Extras::default() };
    let evaluated = measured(shared, evaluation, extras, control)?;
    let target = target(file);
    let samples = evaluation.samples.iter().map(|sample| (sample.name.as_str(), &sample.uri)).collect();
    let images = EvaluatedImages { source: &*source, samples, limits: &shared.limits() };
    let written = write_evaluation(&evaluated, *format, Some(&images), &target, control).map_err(export_failure)?;
    Ok(Exported {
        summary: format!("{} written: {}", format.content(), target.path.display()),
        notes: written.problems.iter().map(ToString::to_string).collect(),
        path: target.path,
    })
}

fn write_changes(shared: &Shared, request: &ExportChangesRequest, control: &TaskControl) -> Result<Exported, Failure> {
    let project = shared.project(request.source).ok_or(Failure::Cancelled)?;
    project.flush().map_err(|error| failed(&error))?;
    let (at, split) = &request.truth;
    let (_, files) = files_at(shared, at)?;
    let corrections = ClassCorrections::default();
    let rules = MatchRules { corrections: &corrections, folders: Folders::Agree };
    let found = LabelChanges::find(&project, &request.run, &files, split.as_deref(), rules, control);
    let found = found.map_err(|error| if error.is_cancelled() { Failure::Cancelled } else { failed(&error) })?;
    let target = target(&request.target);
    let file = WholeFile::create(&target).map_err(export_failure)?;
    file.commit_with(found.to_json_lines().as_bytes()).map_err(export_failure)?;
    let unknown = found.unknown.iter().map(|reason| format!("Not listed: {reason}"));
    let notes = unknown.chain(found.notes()).collect();
    Ok(Exported {
        summary: format!("{} written: {}", found.summary(), target.path.display()),
        notes,
        path: target.path,
    })
}

fn export_failure(error: ExportError) -> Failure {
    match error {
        ExportError::Cancelled(_) => Failure::Cancelled,
        error => failed(&error),
    }
}

fn failed(reason: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("Could not export: {reason}"))
}

//! Testing a job's archive on this computer before anything is paid for.

use std::sync::Arc;

use crate::dirs::Scratch;
use crate::domain::{Device, DeviceChoice, KeepRule, Sample};
use crate::model::catalog::Model;
use crate::model::onnx::{LoadOptions, OnnxPredictor};
use crate::model::{Predictor, runtime};
use crate::sagemaker::JobError;
use crate::sagemaker::jobs::NewArchive;
use crate::sagemaker::package::{ArchiveKind, PackageError, unpack};
use crate::sagemaker::rehearse::{
    Rehearsal, RehearseError, RehearseOptions, RehearseSamples, Rehearsed, RequestForm, rehearse,
};
use crate::sagemaker::spec::transform::{MAX_PAYLOAD_IN_FLIGHT_MB, SplitType, TransformSpec};
use crate::tasks::{Cancelled, TaskControl};
use crate::window::effects::Shared;
use crate::window::remote::effects::archive_of;
use crate::window::state::{Failure, JobsEvent, RehearsalOptions, RehearsalReport, RehearsalRequest, Ticket};

pub(crate) fn start(shared: &Arc<Shared>, request: RehearsalRequest, ticket: Ticket) {
    shared.run_task(
        "rehearse a job",
        ticket,
        move |shared, ticket| try_out(shared, &request, &ticket.control).map(Box::new),
        JobsEvent::Rehearsed,
    );
}

fn try_out(shared: &Shared, request: &RehearsalRequest, control: &TaskControl) -> Result<RehearsalReport, Failure> {
    let _working = shared.model_work.begin(control);
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let source = shared.source(request.source).ok_or(Failure::Cancelled)?;
    let job = &request.job;
    let spec = &job.spec;
    let to = Some(job.archive.clone());
    let archive = archive_of(shared, &job.model.model, to, &spec.resources.instance_type, control);
    let archive = archive.map_err(|error| match error {
        JobError::Cancelled => Failure::Cancelled,
        error => failed(&error),
    })?;
    let Some(NewArchive::Here { path: archive, .. }) = archive else {
        return Err(failed(
            &"Only a local model can be rehearsed; download its archive and choose that, or skip the \
                rehearsal",
        ));
    };
    control.set_step("unpacking the archive");
    let no_folder = |error: std::io::Error| failed(&format!("Could not create a temporary folder: {error}"));
    let scratch = Scratch::new().map_err(no_folder)?;
    let folder = scratch.path().join("archive");
    std::fs::create_dir(&folder).map_err(no_folder)?;
    let archive = unpack(&archive, &folder, control).map_err(|error| match error {
        PackageError::Cancelled(_) => Failure::Cancelled,
        error => failed(&error),
    })?;
    control.set_done_before(0);
    control.set_total(None);
    let predictor = match &archive.kind {
        ArchiveKind::Onnx { model, keep } => Some(model_here(shared, request, (model, *keep), control)?),
        ArchiveKind::SavedModel => None,
    };
    let samples: Vec<Sample> = request.job.images.samples().take(request.options.images).cloned().collect();
    let samples = RehearseSamples { source, samples: samples.into(), limits: shared.limits() };
    control.set_done_before(0);
    let options = RehearseOptions {
        tensorflow_serving: match &archive.kind {
            ArchiveKind::SavedModel => address_in(&request.options.tensorflow_serving),
            ArchiveKind::Onnx { .. } => None,
        },
        ..rehearse_options(spec, &request.options)
    };
    let rehearsal = rehearse(&archive, predictor.as_ref(), &samples, &options, scratch.path(), control);
    let rehearsal = rehearsal.map_err(|error| match error {
        RehearseError::Cancelled(_) => Failure::Cancelled,
        error => failed(&error),
    })?;
    Ok(report(&rehearsal, &samples.samples))
}

/// The archive's model as a local model.
fn model_here(
    shared: &Shared,
    request: &RehearsalRequest,
    (model, keep): (&Model, KeepRule),
    control: &TaskControl,
) -> Result<Arc<dyn Predictor>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    control.set_step("loading the model");
    let setting = request.runtime_library.as_deref();
    let runtime = runtime::ensure_loaded(&shared.dirs, setting, control).map_err(|error| failed(&error))?;
    let options = LoadOptions { device: DeviceChoice::Only(Device::Cpu), keep, ..LoadOptions::default() };
    let predictor = OnnxPredictor::load(&runtime, model, &options, control).map_err(|error| failed(&error))?;
    control.checkpoint().map_err(|Cancelled| Failure::Cancelled)?;
    Ok(Arc::new(predictor))
}

fn address_in(field: &str) -> Option<String> {
    let address = field.trim();
    (!address.is_empty()).then(|| address.to_owned())
}

/// The requests are those of the job.
fn rehearse_options(spec: &TransformSpec, request: &RehearsalOptions) -> RehearseOptions {
    RehearseOptions {
        python: request.python.clone(),
        form: match spec.input.split {
            SplitType::TFRecord => Some(RequestForm::TfRecord),
            SplitType::Line => Some(RequestForm::Line),
            SplitType::None | SplitType::RecordIO => None,
        },
        strategy: spec.batch_strategy,
        content_type: Some(spec.input.content_type.clone()),
        max_payload_mb: spec.max_payload_mb,
        max_concurrent: spec.max_concurrent,
        instance_type: spec.resources.instance_type.clone(),
        environment: spec.environment.clone(),
        ..RehearseOptions::default()
    }
}

fn report(rehearsal: &Rehearsal, samples: &[Sample]) -> RehearsalReport {
    let total = rehearsal.images.len();
    let as_here = rehearsal.images.iter().filter(|image| image.matches_local());
    let as_here = as_here.count();
    let pairs = samples.iter().zip(&rehearsal.images);
    let others = pairs.filter(|(_, image)| !image.matches_local());
    let mut notes: Vec<String> =
        others.map(|(sample, image)| format!("{}: {}", sample.name, what_became(image))).collect();
    notes.extend(rehearsal.notes.iter().cloned());
    let refused = rehearsal.refused_by_both();
    if refused > 0 {
        let are = if refused == 1 { "image is" } else { "images are" };
        notes.push(format!(
            "{refused} {are} rejected both here and by the handler; a job with such images fails but keeps the \
             outputs of the others"
        ));
    }
    let ready = rehearsal.ready_after.as_secs_f64();
    let pace = match rehearsal.images_per_s() {
        Some(rate) => format!("{rate:.1} per second on this computer"),
        None => "none sent".to_owned(),
    };
    let (payload_mb, at_once) = (rehearsal.max_payload_mb, rehearsal.max_concurrent);
    let is_compared = !rehearsal.images.contains(&Rehearsed::Predicted);
    let found = match rehearsal.predicted() {
        0 => format!("The handler predicted none of {total} images, so nothing was compared"),
        _ if is_compared => format!("{} of {total} predictions match this computer's", as_here - refused),
        predicted => {
            format!("{predicted} of {total} images have a prediction; there is no local model to compare with")
        }
    };
    RehearsalReport {
        is_well: as_here == total && rehearsal.predicted() > 0,
        summary: format!(
            "{found}, {pace}, with requests of up to {payload_mb} MB and {at_once} in parallel; the handler was \
             ready after {ready:.1} s"
        ),
        notes,
        images_per_s: rehearsal.images_per_s(),
    }
}

fn what_became(image: &Rehearsed) -> String {
    match image {
        Rehearsed::Equal(_) | Rehearsed::Predicted => "predicted".to_owned(),
        Rehearsed::Different(difference) if difference.incomparable => {
            "the handler returns a different image size or number of classes".to_owned()
        }
        Rehearsed::Different(difference) => format!(
            "scores differ by up to {:.1e}, edges by up to {:.3} px, {} found only on this computer, {} only by the \
            handler",
            difference.largest_score, difference.largest_edge_px, difference.only_here, difference.only_there
        ),
        Rehearsed::RefusedByBoth { here, .. } => {
            format!("rejected on this computer and by the handler: {here}")
        }
        Rehearsed::RefusedHere(reason) => {
            format!("predicted by the handler, but on this computer it {reason}")
        }
        Rehearsed::RefusedThere(reason) => {
            format!("predicted on this computer, but for the handler it {reason}")
        }
        Rehearsed::TooLarge { needed_mb, .. } if *needed_mb > u64::from(MAX_PAYLOAD_IN_FLIGHT_MB) => {
            format!("too large: a request is at most {MAX_PAYLOAD_IN_FLIGHT_MB} MB")
        }
        Rehearsed::TooLarge { needed_mb, .. } => {
            format!("too large: its request needs {needed_mb} MB")
        }
        Rehearsed::HandlerFailed(reason) | Rehearsed::Unread(reason) => reason.clone(),
    }
}

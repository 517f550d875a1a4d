//! Finding out which parts of an image carry a prediction.

use std::sync::Arc;

use super::Shared;
use super::engine::EngineWorker;
use crate::decode;
use crate::domain::{RunKey, Saliency, SaliencyTarget, SampleUri};
use crate::source::{SourceError, for_task};
use crate::state::{Event, SourceId, TaskId, TaskOutcome};
use crate::tasks::TaskControl;
use crate::vision::{OcclusionGrid, PredictError, Predictor, occlusion_saliency};

pub(super) struct Explain {
    pub(super) source: SourceId,
    pub(super) key: RunKey,
    pub(super) uri: SampleUri,
    pub(super) target: SaliencyTarget,
    pub(super) task: TaskId,
    pub(super) control: TaskControl,
}

pub(super) fn explain(shared: &Arc<Shared>, engine: &EngineWorker, request: Explain) {
    let predictor = engine.predictor(&request.key);
    let task = request.task;
    let work = move |shared: &Arc<Shared>| {
        let _working = shared.model_work.begin(&request.control);
        let result = match predictor {
            Some(predictor) => search(shared, &*predictor, &request).map(Arc::new),
            // Another model has been loaded in the same moment.
            None => Err(TaskOutcome::Cancelled),
        };
        Event::Explained { task, result }
    };
    shared.spawn_reporting("explain a prediction", work, move |mistake| {
        Event::Explained {
            task,
            result: Err(TaskOutcome::Failed(mistake)),
        }
    });
}

fn search(
    shared: &Shared,
    predictor: &dyn Predictor,
    request: &Explain,
) -> Result<Saliency, TaskOutcome> {
    let failed = |reason: String| TaskOutcome::Failed(reason);
    let source = shared
        .source(request.source)
        .ok_or(TaskOutcome::Cancelled)?;
    let bytes = match for_task(&source, &request.control).read(&request.uri) {
        Err(SourceError::Cancelled) => return Err(TaskOutcome::Cancelled),
        read => read.map_err(|error| failed(error.to_string()))?,
    };
    let (image, _reservation) = decode::decode_reserved(&bytes, &shared.limits())
        .map_err(|error| failed(error.to_string()))?;
    drop(bytes);
    let grid = OcclusionGrid::default();
    let control = &request.control;
    occlusion_saliency(&image.image, request.target, grid, predictor, control).map_err(|error| {
        match error {
            PredictError::Cancelled => TaskOutcome::Cancelled,
            error => failed(error.to_string()),
        }
    })
}

//! Determining which parts of an image a prediction depends on.

use std::sync::Arc;

use crate::domain::Saliency;
use crate::image::decode;
use crate::image::source::{SourceError, for_task};
use crate::model::{OcclusionGrid, PredictError, Predictor, occlusion_saliency};
use crate::tasks::TaskControl;
use crate::window::effects::Shared;
use crate::window::predict::effects::EngineWorker;
use crate::window::state::{ExplainRequest, Failure, ReviewEvent, Ticket};

pub(crate) fn explain(shared: &Arc<Shared>, engine: &EngineWorker, request: ExplainRequest, ticket: Ticket) {
    let predictor = engine.predictor(&request.key);
    shared.run_task(
        "explain a prediction",
        ticket,
        move |shared, ticket| {
            let _working = shared.model_work.begin(&ticket.control);
            // Another model may have been loaded at the same moment.
            let predictor = predictor.ok_or(Failure::Cancelled)?;
            search(shared, &*predictor, &request, &ticket.control).map(Arc::new)
        },
        ReviewEvent::Explained,
    );
}

fn search(
    shared: &Shared,
    predictor: &dyn Predictor,
    request: &ExplainRequest,
    control: &TaskControl,
) -> Result<Saliency, Failure> {
    let source = shared.source(request.source).ok_or(Failure::Cancelled)?;
    let bytes = match for_task(&source, control).read(&request.uri) {
        Err(SourceError::Cancelled) => return Err(Failure::Cancelled),
        read => read.map_err(|error| Failure::new(error.to_string()))?,
    };
    let (image, _reservation) =
        decode::decode_reserved(&bytes, &shared.limits()).map_err(|error| Failure::new(error.to_string()))?;
    drop(bytes);
    let grid = OcclusionGrid::default();
    occlusion_saliency(&image.image, request.target, grid, predictor, control).map_err(|error| match error {
        PredictError::Cancelled => Failure::Cancelled,
        error => Failure::new(error.to_string()),
    })
}

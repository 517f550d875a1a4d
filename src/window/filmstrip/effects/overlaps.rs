//! Which boxes are hidden by better ones, computed from the boxes in the project.

use std::collections::HashMap;

use crate::domain::{BoundingBox, ModelTask, Prediction, RunId, SampleId, SampleUri};
use crate::project::{Project, StoreError};
use crate::review::{ArrangeRequest, Predictions, Suppressed};
use crate::tasks::{ProgressUnit, TaskControl};
use crate::window::effects::Shared;
use crate::window::state::SourceId;

/// The number of unknown samples above which reading the whole run is faster than reading them one by one.
const WHOLE_RUN_FROM: usize = 2000;
const READ_LEN: usize = 64;

/// The overlaps of one run at one IoU, kept between requests.
#[derive(Default)]
pub(crate) struct Overlaps(Option<Known>);

struct Known {
    source: SourceId,
    run: RunId,
    /// The basis of `hidden`.
    predictions: Predictions,
    hidden: Suppressed,
}

impl Overlaps {
    /// The hidden boxes; `None` if the view hides no overlaps. Unreadable predictions stay unknown, and are counted as
    /// such.
    pub(crate) fn hidden(
        &mut self,
        shared: &Shared,
        (source, run): (SourceId, RunId),
        request: &ArrangeRequest,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<Suppressed> {
        let max_iou = request.view.nms_iou?;
        let predictions = request.predictions.as_ref()?;
        let project = shared.project(source)?;
        if predictions.task() != ModelTask::Detection {
            return None;
        }
        let is_same = |known: &Known| (known.source, known.run, known.hidden.max_iou()) == (source, run, max_iou);
        if !self.0.as_ref().is_some_and(is_same) {
            let hidden = Suppressed::new(max_iou);
            self.0 = Some(Known { source, run, predictions: predictions.clone(), hidden });
        }
        let known = self.0.as_mut()?;
        // An image that was predicted again has different boxes.
        for id in predictions.changed_since(&known.predictions) {
            known.hidden.forget(id);
        }
        known.predictions = predictions.clone();
        let unknown: HashMap<SampleUri, SampleId> = predictions
            .iter()
            .filter(|(id, _)| !known.hidden.is_known(*id))
            .filter_map(|(id, _)| Some((request.samples.get(id.index())?.uri.clone(), id)))
            .collect();
        if !unknown.is_empty()
            && let Err(error) = read(&project, run, &unknown, cancelled, &mut known.hidden)
        {
            log::warn!("could not read which boxes overlap: {error}");
        }
        Some(known.hidden.clone())
    }
}

fn read(
    project: &Project,
    run: RunId,
    unknown: &HashMap<SampleUri, SampleId>,
    cancelled: &dyn Fn() -> bool,
    hidden: &mut Suppressed,
) -> Result<(), StoreError> {
    // The newest predictions may not be saved yet.
    project.flush()?;
    let mut take = |sample: &SampleUri, result: Result<Prediction, String>| {
        if let (Some(&id), Ok(prediction)) = (unknown.get(sample), result) {
            record(hidden, id, &prediction);
        }
    };
    if unknown.len() >= WHOLE_RUN_FROM {
        let control = TaskControl::new(ProgressUnit::Images);
        let read = project.each_prediction(run, &control, |predictions| {
            for prediction in predictions {
                take(&prediction.sample, prediction.result);
            }
            if cancelled() {
                control.cancel();
            }
        });
        return match read {
            Err(StoreError::Cancelled(_)) => Ok(()),
            read => read,
        };
    }
    let uris: Vec<SampleUri> = unknown.keys().cloned().collect();
    for part in uris.chunks(READ_LEN) {
        if cancelled() {
            break;
        }
        for prediction in project.predictions(run, part)?.into_iter().flatten() {
            take(&prediction.sample, prediction.result);
        }
    }
    Ok(())
}

fn record(hidden: &mut Suppressed, id: SampleId, prediction: &Prediction) {
    let detections = prediction.detections();
    let bounds: Vec<BoundingBox> = detections.iter().map(|found| found.bounds).collect();
    let classes: Vec<u32> = detections.iter().map(|found| found.class_id).collect();
    let scores: Vec<f32> = detections.iter().map(|found| found.score).collect();
    hidden.record(id, &bounds, &classes, &scores);
}

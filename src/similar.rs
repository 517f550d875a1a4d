//! Images and boxes that are similar to one: the query by its vector in the project or, if it has none, by the model that
//! made the others. Also exports these vectors, with the reason if there are none.

use std::collections::HashMap;
use std::path::Path;

use crate::alike::Embedding;
use crate::dirs::AppDirs;
use crate::domain::{CardTask, Encoder, FileStamp, ImagePart, InferenceLocation, RunInfo, SampleUri, counted};
use crate::image::decode::{DecodeError, DecodeLimits, decode};
use crate::model::catalog::{Library, LibraryError};
use crate::model::onnx::{InferenceError, LoadOptions, OnnxPredictor};
use crate::model::runtime::{self, RuntimeError};
use crate::model::{PredictError, Predicted, Predictor as _, Prepared};
use crate::project::export::options::EmbeddedPart;
use crate::project::export::{ExportError, ExportTarget, PredictedBoxes, Vectors, missing_embeddings, stored_vectors};
use crate::project::{Project, StoreError};
use crate::tasks::{Cancelled, TaskControl};

/// Why a query has no vector.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Model(#[from] LibraryError),
    #[error(
        "its embedding is not stored, and the model {id}, which computed the others, is not among your models; add its \
         ONNX file (again) with the id {id}"
    )]
    ModelIsGone { id: String },
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Load(#[from] InferenceError),
    #[error(transparent)]
    Predict(#[from] PredictError),
    #[error("the model has no embeddings, because {0}")]
    NoEmbeddings(String),
    #[error("the model or its card has changed; predict the images again, with --resume or --new-run")]
    OtherEncoder,
    #[error("the model returned no finite embedding")]
    NotFinite,
    #[error("the image has {boxes} boxes, counted from 0; there is no box {index}")]
    NoBox { index: u16, boxes: usize },
}

/// Where models and ONNX Runtime are.
#[derive(Debug, Clone, Copy)]
pub struct ModelPlace<'p> {
    pub dirs: &'p AppDirs,
    /// The library that the user chose.
    pub runtime_library: Option<&'p Path>,
}

/// The vector of an image or a part of it, as the model computes it.
///
/// # Errors
/// The image cannot be read, the model cannot be loaded or is another one than `encoder`, or there is no such part.
pub fn embed(
    bytes: &[u8],
    part: ImagePart,
    (run, encoder): &(RunInfo, Encoder),
    place: &ModelPlace<'_>,
    control: &TaskControl,
) -> Result<Embedding, QueryError> {
    let image = decode(bytes, &DecodeLimits::default())?;
    let predictor = load(run, place, control)?;
    match predictor.embedding() {
        Some(Ok(layer)) if layer.encoder(predictor.card()) == *encoder => {}
        Some(Err(reason)) => return Err(QueryError::NoEmbeddings(reason.clone())),
        _ => return Err(QueryError::OtherEncoder),
    }
    let prepared = predictor.prepare(&image.image)?;
    match part {
        ImagePart::Region(bounds) => Ok(predictor.embed_region(&prepared, bounds, control)?),
        ImagePart::Whole => {
            let predicted = predict(&predictor, &prepared, control)?;
            Ok(predicted.embeddings.ok_or(QueryError::NotFinite)?.image)
        }
        ImagePart::Box(index) => {
            let Predicted { prediction, embeddings } = predict(&predictor, &prepared, control)?;
            let described = embeddings.into_iter().flat_map(|embeddings| embeddings.boxes);
            let known = described.into_iter().find(|one| one.index == index);
            let boxes = prediction.detections();
            let detection = boxes.get(usize::from(index));
            let detection = detection.ok_or(QueryError::NoBox { index, boxes: boxes.len() })?;
            match known {
                Some(known) => Ok(known.embedding),
                None => Ok(predictor.embed_region(&prepared, detection.bounds, control)?),
            }
        }
    }
}

fn predict(predictor: &OnnxPredictor, image: &Prepared, control: &TaskControl) -> Result<Predicted, QueryError> {
    let predicted = predictor.predict_with_embeddings(0, std::slice::from_ref(image), control)?;
    predicted.into_iter().next().ok_or(QueryError::NotFinite)
}

/// Why a run has no embeddings: its model's reason, or how to get them.
pub fn why_no_embeddings(run: &RunInfo, place: &ModelPlace<'_>, control: &TaskControl) -> String {
    let is_here = run.key.made == InferenceLocation::Here;
    match is_here.then(|| load(run, place, control)) {
        Some(Ok(predictor)) => match predictor.embedding() {
            Some(Err(reason)) => format!("“{}” has no embeddings, because {reason}", run.name),
            _ => missing_embeddings(run),
        },
        _ => missing_embeddings(run),
    }
}

/// Why a run has no embeddings of boxes, although it has some of images.
pub fn why_no_box_embeddings(run: &RunInfo, place: &ModelPlace<'_>, control: &TaskControl) -> String {
    if run.card.task != CardTask::Detection {
        return format!(
            "“{}” has no embeddings of boxes: its model finds no boxes; choose the run of a detector",
            run.name
        );
    }
    let reason = load(run, place, control).ok().and_then(|predictor| {
        let layer = predictor.embedding()?.as_ref().ok()?;
        Some(match layer.boxes.as_ref()? {
            Err(reason) => reason.clone(),
            Ok(_) => {
                "they were saved before Spotcheck computed some; add them with `spotcheck predict --resume`".to_owned()
            }
        })
    });
    let reason = reason.unwrap_or_else(|| "`spotcheck models inspect` prints the reason".to_owned());
    format!("“{}” has no embeddings of boxes: {reason}", run.name)
}

/// What an export of embeddings wrote.
#[derive(Debug)]
pub struct ExportedVectors {
    /// “20 embeddings by …”
    pub summary: String,
    pub notes: Vec<String>,
}

/// Why embeddings cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportVectorsError {
    /// The run has none.
    #[error("{0}")]
    Missing(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Writes the embeddings of a run, of whichever versions of the images, and a table with the image of each row.
/// `present` lists the present versions; `None` if the images cannot be read.
///
/// # Errors
/// There are none, they cannot be read or written, or canceled.
pub fn export_vectors(
    project: &Project,
    run: &RunInfo,
    part: EmbeddedPart,
    present: impl FnOnce() -> Option<HashMap<SampleUri, FileStamp>>,
    place: &ModelPlace<'_>,
    target: &ExportTarget,
    control: &TaskControl,
) -> Result<ExportedVectors, ExportVectorsError> {
    let missing = || ExportVectorsError::Missing(why_no_embeddings(run, place, control));
    let path = target.path.display();
    if part == EmbeddedPart::Images {
        let (encoder, vectors) = stored_vectors(project, run, control)?.ok_or_else(missing)?;
        let notes = outdated_note(&vectors, present()).into_iter().collect();
        control.checkpoint()?;
        vectors.write(target, &encoder)?;
        let summary = format!("{} embeddings by {encoder}: {path}", vectors.uris.len());
        return Ok(ExportedVectors { summary, notes });
    }
    let boxes = PredictedBoxes::read(project, run, control)?.ok_or_else(missing)?;
    if boxes.encoder.boxes.is_none() {
        return Err(ExportVectorsError::Missing(why_no_box_embeddings(run, place, control)));
    }
    control.checkpoint()?;
    boxes.write(target)?;
    let count = counted(boxes.vectors.boxes.len(), "box", "boxes");
    let summary = format!("embeddings of {count} by {}: {path}", boxes.encoder.text_of_boxes());
    let reduction = boxes.vectors.reduction();
    let note = reduction.map(|reduction| format!("the project keeps {reduction}, and so does the array"));
    Ok(ExportedVectors { summary, notes: note.into_iter().collect() })
}

/// How many embeddings are of an earlier version of their image.
fn outdated_note(vectors: &Vectors, present: Option<HashMap<SampleUri, FileStamp>>) -> Option<String> {
    let Some(present) = present else {
        return Some("the images cannot be read, so it is unknown whether embeddings are outdated".to_owned());
    };
    let is_outdated = |(uri, stamp): &(&SampleUri, &Option<FileStamp>)| {
        present.get(*uri).is_some_and(|present| stamp.as_ref().is_some_and(|stamp| stamp != present))
    };
    let outdated = vectors.uris.iter().zip(&vectors.stamps).filter(is_outdated).count();
    (outdated > 0).then(|| {
        format!(
            "embeddings of an earlier version of the image: {outdated}; replace them with `spotcheck predict --resume`"
        )
    })
}

/// The model of a run, on the same device.
fn load(run: &RunInfo, place: &ModelPlace<'_>, control: &TaskControl) -> Result<OnnxPredictor, QueryError> {
    let model = match Library::open(place.dirs).find(&run.key.model_id) {
        Err(LibraryError::Unknown { id, .. }) => return Err(QueryError::ModelIsGone { id }),
        found => found?,
    };
    let runtime = runtime::ensure_loaded(place.dirs, place.runtime_library, control)?;
    let options = LoadOptions {
        device: run.key.device,
        batch: Some(1),
        threads: Some(1),
        embeddings: true,
        proofs: Some(place.dirs.proofs()),
        ..LoadOptions::default()
    };
    Ok(OnnxPredictor::load(&runtime, &model, &options, control)?)
}

//! The embeddings of a run's boxes.

use std::collections::HashMap;

use super::csv_table::io_error;
use super::npy::VectorFiles;
use super::selection::{known_predictions, known_samples};
use super::{ExportError, ExportTarget};
use crate::alike::{Embedding, Embeddings, METRIC, Pca};
use crate::domain::{Encoder, LabelSet, RunInfo, Sample, SampleId, SampleUri};
use crate::project::{EmbeddingStore, Project, StoreError};
use crate::review::Predictions;
use crate::tasks::TaskControl;

/// The embeddings of the boxes of some images, one row each.
#[derive(Debug, Default)]
pub struct BoxVectors {
    pub boxes: Vec<BoxRow>,
    pub rows: Embeddings,
    /// The directions that the vectors were reduced to.
    basis: Option<Pca>,
}

/// The box of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BoxRow {
    /// The position of the image among those searched.
    pub sample: u32,
    /// The index among the prediction's boxes.
    pub index: u16,
}

/// The embeddings of the boxes in the present versions of `samples`; `None` if the run has none of images. Progress is
/// in images.
///
/// # Errors
/// They cannot be read, or canceled.
pub fn stored_box_vectors<'s>(
    project: &Project,
    run: &RunInfo,
    samples: impl IntoIterator<Item = &'s Sample>,
    control: &TaskControl,
) -> Result<Option<(Encoder, BoxVectors)>, StoreError> {
    let Some(store) = EmbeddingStore::open(project)? else {
        return Ok(None);
    };
    let Some(stored) = store.encoder_of(run)? else {
        return Ok(None);
    };
    let places: HashMap<&SampleUri, (u32, &Sample)> =
        samples.into_iter().zip(0..).map(|(sample, at)| (&sample.uri, (at, sample))).collect();
    let mut vectors = BoxVectors::default();
    let basis = store.each_with_boxes(&stored, control, |uri, stamp, boxes| {
        let Some((sample, _)) = places.get(&uri).filter(|(_, sample)| sample.stamp() == stamp) else {
            return;
        };
        for one in boxes {
            if vectors.rows.push(&one.embedding) {
                vectors.boxes.push(BoxRow { sample: *sample, index: one.index });
            }
        }
    })?;
    vectors.basis = basis;
    Ok(Some((stored.1, vectors)))
}

/// The boxes of a run with embeddings, in the versions of the images that were predicted.
pub struct PredictedBoxes {
    pub encoder: Encoder,
    pub vectors: BoxVectors,
    samples: Vec<Sample>,
    predictions: Predictions,
    labels: LabelSet,
}

impl PredictedBoxes {
    /// `None` if the run has no embeddings of images.
    ///
    /// # Errors
    /// The project cannot be read, or canceled.
    pub fn read(project: &Project, run: &RunInfo, control: &TaskControl) -> Result<Option<Self>, StoreError> {
        let samples = known_samples(project, run.id, &[], control)?;
        let Some((encoder, vectors)) = stored_box_vectors(project, run, &samples, control)? else {
            return Ok(None);
        };
        let places = samples.iter().enumerate();
        let ids: HashMap<_, _> = places.map(|(at, sample)| (&sample.uri, SampleId::from_index(at))).collect();
        let predictions = known_predictions(project, run, &ids, control)?;
        Ok(Some(Self { encoder, vectors, predictions, labels: run.labels.clone(), samples }))
    }

    /// Writes the array, of 16-bit floats, and a table with the image, class and score of each box.
    ///
    /// # Errors
    /// As for any export; neither file appears. A table of another program is never replaced.
    pub fn write(&self, target: &ExportTarget) -> Result<(), ExportError> {
        let files = VectorFiles::create(target)?;
        let failed = |error| ExportError::write(&target.path)(io_error(error));
        let BoxVectors { boxes, rows, .. } = &self.vectors;
        let mut order: Vec<usize> = (0..boxes.len()).collect();
        order.sort_unstable_by_key(|row| boxes[*row]);
        let layer = self.encoder.boxes.as_ref().map(|boxes| boxes.features.tensors().join(", ")).unwrap_or_default();
        let reduction = self.vectors.reduction().unwrap_or_default();
        let mut table = csv::Writer::from_writer(Vec::new());
        let columns = ["row", "uri", "box", "class", "score", "encoder", "layer", "reduction", "metric"];
        table.write_record(columns).map_err(failed)?;
        for (row, at) in order.iter().enumerate() {
            let BoxRow { sample, index } = boxes[*at];
            let (class, score) = self.class_and_score(boxes[*at]).unwrap_or_default();
            let (row, index) = (row.to_string(), index.to_string());
            let uri = self.samples[sample as usize].uri.as_str();
            let record = [&row, uri, &index, &class, &score, &self.encoder.model_id, &layer, &reduction, METRIC];
            table.write_record(record).map_err(failed)?;
        }
        let vectors = order.into_iter().filter_map(|row| rows.row(row));
        files.commit((rows.len(), rows.dims()), vectors, table)
    }

    fn class_and_score(&self, BoxRow { sample, index }: BoxRow) -> Option<(String, String)> {
        let summary = self.predictions.summary(SampleId(sample))?;
        let class = summary.classes.get(usize::from(index))?;
        Some((self.labels.name(*class), summary.scores.get(usize::from(index))?.to_string()))
    }
}

impl BoxVectors {
    /// The row of a box.
    pub fn row_of(&self, wanted: BoxRow) -> Option<usize> {
        self.boxes.iter().position(|row| *row == wanted)
    }

    /// What the vectors of the model were reduced to, for people; `None` if they are complete.
    pub fn reduction(&self) -> Option<String> {
        let basis = self.basis.as_ref()?;
        Some(format!("{} principal components of {} numbers, 8 bits each", basis.count(), basis.dims()))
    }

    /// A vector as the model computes it, in the form of the rows; `None` if it is of another model.
    pub fn reduced(&self, full: &Embedding) -> Option<Embedding> {
        match &self.basis {
            Some(basis) => Embedding::new(&basis.transform(full)?),
            None => Some(full.clone()),
        }
    }
}

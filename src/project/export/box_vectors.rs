//! The embeddings of a run's boxes.

use std::collections::HashMap;

use crate::alike::{Embedding, Embeddings, Pca};
use crate::domain::{Encoder, RunInfo, Sample, SampleUri};
use crate::project::{EmbeddingStore, Project, StoreError};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl BoxVectors {
    /// The row of a box.
    pub fn row_of(&self, wanted: BoxRow) -> Option<usize> {
        self.boxes.iter().position(|row| *row == wanted)
    }

    /// A vector as the model computes it, in the form of the rows; `None` if it is of another model.
    pub fn reduced(&self, full: &Embedding) -> Option<Embedding> {
        match &self.basis {
            Some(basis) => Embedding::new(&basis.transform(full)?),
            None => Some(full.clone()),
        }
    }
}

//! Saves the embeddings of a run next to its project.

use super::saving::Saving;
use crate::alike::ImageEmbeddings;
use crate::domain::{Sample, SampleId, SampleSet};
use crate::model::onnx::OnnxPredictor;
use crate::project::{EmbeddingWriter, StoreError};

pub(crate) struct SavedEmbeddings {
    /// `None` after the first failure: the run goes on without embeddings.
    writer: Option<EmbeddingWriter>,
    /// Images that have a prediction, but no embedding yet.
    pub(crate) only_embedding: SampleSet,
}

impl SavedEmbeddings {
    /// `None`, with a note, if the model has no embeddings or they cannot be saved.
    pub(crate) fn begin(saving: &Saving, predictor: &OnnxPredictor, samples: &[Sample]) -> Option<Self> {
        let layer = match predictor.embedding()? {
            Ok(layer) => layer,
            Err(reason) => {
                eprintln!("note: no embeddings for finding similar images, because {reason}");
                return None;
            }
        };
        let begin = || {
            let Some(writer) = EmbeddingWriter::open(saving.project(), &layer.encoder(predictor.card()))? else {
                return Ok(None);
            };
            let mut only_embedding = SampleSet::default();
            let stamps = writer.stamps()?;
            let ids = (0..samples.len()).map(SampleId::from_index).filter(|id| saving.is_predicted(*id));
            for id in ids {
                let sample = &samples[id.index()];
                if stamps.get(&sample.uri) != Some(&sample.stamp()) {
                    only_embedding.insert(id);
                }
            }
            Ok(Some(Self { writer: Some(writer), only_embedding }))
        };
        let begun = begin().unwrap_or_else(|error: StoreError| {
            eprintln!("note: embeddings are not saved: {error}");
            None
        })?;
        eprintln!("saving embeddings: {layer}");
        for note in layer.notes() {
            eprintln!("{note}");
        }
        if !begun.only_embedding.is_empty() {
            eprintln!("images that have a prediction but no embedding: {}", begun.only_embedding.len());
        }
        Some(begun)
    }

    pub(crate) fn save(&mut self, sample: &Sample, embeddings: &ImageEmbeddings) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.save(sample, embeddings)
        {
            eprintln!("note: embeddings are no longer saved: {error}");
            self.writer = None;
        }
    }
}

//! Saves the embeddings of a run next to its project.

use super::saving::Saving;
use crate::alike::Embedding;
use crate::domain::{Sample, SampleId, SampleSet};
use crate::model::onnx::OnnxPredictor;
use crate::project::{EmbeddingStore, EncoderId, StoreError};

pub(crate) struct SavedEmbeddings {
    store: EmbeddingStore,
    encoder: EncoderId,
    /// Images that have a prediction, but no embedding yet.
    pub(crate) only_embedding: SampleSet,
    error: Option<String>,
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
            let Some(store) = EmbeddingStore::create(saving.project())? else {
                return Ok(None);
            };
            let encoder = store.begin(&layer.encoder(predictor.card()))?;
            let mut only_embedding = SampleSet::default();
            let stamps = store.stamps(encoder)?;
            let ids = (0..samples.len()).map(SampleId::from_index).filter(|id| saving.is_predicted(*id));
            for id in ids {
                let sample = &samples[id.index()];
                if stamps.get(&sample.uri) != Some(&sample.stamp()) {
                    only_embedding.insert(id);
                }
            }
            Ok(Some(Self { store, encoder, only_embedding, error: None }))
        };
        let begun = begin().unwrap_or_else(|error: StoreError| {
            eprintln!("note: embeddings are not saved: {error}");
            None
        })?;
        eprintln!("saving embeddings: {layer}");
        if !begun.only_embedding.is_empty() {
            eprintln!("images that have a prediction but no embedding: {}", begun.only_embedding.len());
        }
        Some(begun)
    }

    /// After the first failure, the run goes on without embeddings.
    pub(crate) fn save(&mut self, sample: &Sample, embedding: &Embedding) {
        if self.error.is_none()
            && let Err(error) = self.store.save(self.encoder, &sample.uri, &sample.stamp(), embedding)
        {
            eprintln!("note: embeddings are no longer saved: {error}");
            self.error = Some(error.to_string());
        }
    }
}

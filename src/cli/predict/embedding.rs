//! Saves the embeddings of a run next to its project.

use anyhow::Context as _;

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
    /// Whether the model computes nothing else.
    is_encoder: bool,
}

impl SavedEmbeddings {
    /// `None`, with a note, if the model has no embeddings or they cannot be saved.
    ///
    /// # Errors
    /// They cannot be saved, and the model computes nothing else.
    pub(crate) fn begin(
        saving: &Saving,
        predictor: &OnnxPredictor,
        samples: &[Sample],
    ) -> anyhow::Result<Option<Self>> {
        let is_encoder = predictor.card().is_encoder();
        let layer = match predictor.embedding() {
            Some(Ok(layer)) => layer,
            Some(Err(reason)) => {
                eprintln!("note: no embeddings for finding similar images, because {reason}");
                return Ok(None);
            }
            None => return Ok(None),
        };
        let begin = || -> Result<Option<Self>, StoreError> {
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
            Ok(Some(Self { writer: Some(writer), only_embedding, is_encoder }))
        };
        let begun = match begin() {
            Err(error) if is_encoder => return Err(error).context("Could not save the embeddings"),
            Err(error) => {
                eprintln!("note: embeddings are not saved: {error}");
                None
            }
            Ok(begun) => begun,
        };
        let Some(begun) = begun else {
            return Ok(None);
        };
        eprintln!("saving embeddings: {layer}");
        for note in layer.notes() {
            eprintln!("{note}");
        }
        if !begun.only_embedding.is_empty() {
            eprintln!("images that have a prediction but no embedding: {}", begun.only_embedding.len());
        }
        Ok(Some(begun))
    }

    /// # Errors
    /// The embeddings cannot be saved, and the model computes nothing else.
    pub(crate) fn save(&mut self, sample: &Sample, embeddings: ImageEmbeddings) -> anyhow::Result<()> {
        self.write(|writer| writer.save(sample, embeddings))
    }

    /// # Errors
    /// As [`save`](Self::save).
    pub(crate) fn commit(&mut self) -> anyhow::Result<()> {
        self.write(EmbeddingWriter::commit)
    }

    /// Whether predictions need not wait for more embeddings.
    pub(crate) fn is_due(&self) -> bool {
        self.writer.as_ref().is_none_or(EmbeddingWriter::is_due)
    }

    fn write(&mut self, write: impl FnOnce(&mut EmbeddingWriter) -> Result<(), StoreError>) -> anyhow::Result<()> {
        if let Some(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.writer = None;
            if self.is_encoder {
                return Err(error).context("Could not save the embeddings");
            }
            eprintln!("note: embeddings are no longer saved: {error}");
        }
        Ok(())
    }
}

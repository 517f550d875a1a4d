//! Class names: from the user's file, from the exporter's metadata, or a built-in set with the right count.

use super::RecognitionRequest;
use super::finding::Refusal;
use crate::domain::LabelSet;

/// The label file next to the card, with names from the user's file or the metadata.
pub(crate) const LABEL_FILE: &str = "labels.txt";

/// The number of classes of a label set, counting gaps between ids.
pub(crate) fn label_count(labels: &LabelSet) -> usize {
    labels.max_id().map_or(0, |id| id as usize + 1)
}

/// The message for a label set of `count` classes if the model `has` another number.
pub(crate) fn misfit(has: impl std::fmt::Display, count: usize) -> Refusal {
    Refusal::new(format!(
        "the model {has} but the label file has {count} classes: use the label file that the model was trained with"
    ))
}

/// The names closest to the model, whether or not they fit.
pub(crate) fn from_metadata(model: &RecognitionRequest<'_>) -> Option<LabelSet> {
    model.notes.labels.first().map(|noted| noted.value.clone())
}

//! How embeddings are stored so that 100,000 images with a million boxes fit into 300 MB. A detector's images have 8 bits
//! per number, as difference to the first image. Its boxes have 16 bits per number until there are enough to find
//! their main directions; then 8 bits for each of those.

use crate::alike::{BoxEmbedding, Embedding, Embeddings, Pca, from_8_bits, to_8_bits};
use crate::domain::Encoder;
use crate::tasks::{ProgressUnit, TaskControl};

/// The numbers per stored box.
const BOX_DIMS: usize = 96;
/// The boxes from which the main directions are computed.
pub(super) const BOXES_TO_FIT: usize = 16_384;

/// The form of an encoder's vectors.
#[derive(Debug, Clone, Default)]
pub(super) struct Form {
    /// What 8-bit vectors of images are differences to; `None` for 16-bit vectors.
    pub(super) reference: Option<Embedding>,
    /// The directions of 8-bit vectors of boxes; `None` for 16-bit vectors.
    pub(super) basis: Option<Pca>,
    /// The numbers per box before reduction; 0 without boxes.
    pub(super) box_dims: usize,
}

impl Form {
    /// `None` for damaged bytes.
    pub(super) fn new(encoder: &Encoder, reference: Option<&[u8]>, basis: Option<&[u8]>) -> Option<Self> {
        let box_dims = encoder.boxes.as_ref().map_or(0, |boxes| boxes.dims);
        let reference = reference.map(|bytes| Embedding::from_bytes(bytes).ok_or(())).transpose().ok()?;
        let basis = basis.map(|bytes| Pca::from_bytes(bytes).ok_or(())).transpose().ok()?;
        Some(Self { reference, basis, box_dims })
    }

    /// Whether another writer may change it: until boxes are reduced.
    pub(super) fn may_change(&self) -> bool {
        self.box_dims > 0 && self.basis.is_none()
    }

    /// `None` if the embedding has another number of dimensions than the ones before.
    pub(super) fn image_to_bytes(&self, embedding: &Embedding) -> Option<Vec<u8>> {
        match &self.reference {
            Some(reference) => embedding.to_difference(reference),
            None => Some(embedding.to_bytes()),
        }
    }

    pub(super) fn image_from_bytes(&self, bytes: &[u8]) -> Option<Embedding> {
        match &self.reference {
            Some(reference) => Embedding::from_difference(bytes, reference),
            None => Embedding::from_bytes(bytes),
        }
    }

    /// The bytes per box: its index, and its vector.
    pub(super) fn bytes_per_box(&self) -> usize {
        2 + match &self.basis {
            Some(basis) => 4 + basis.count(),
            None => 2 * self.box_dims,
        }
    }

    /// Box after box. Boxes with another number of dimensions are left out.
    pub(super) fn boxes_to_bytes(&self, boxes: &[BoxEmbedding]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(boxes.len() * self.bytes_per_box());
        for BoxEmbedding { index, embedding } in boxes.iter().filter(|one| one.embedding.dims() == self.box_dims) {
            bytes.extend(index.to_le_bytes());
            match self.basis.as_ref().and_then(|basis| basis.transform(embedding)) {
                Some(coordinates) => bytes.extend(to_8_bits(coordinates.iter().copied())),
                None => bytes.extend(embedding.to_bytes()),
            }
        }
        bytes
    }

    /// The boxes whose bytes are not damaged.
    pub(super) fn boxes_from_bytes(&self, bytes: &[u8]) -> impl Iterator<Item = BoxEmbedding> {
        bytes.chunks_exact(self.bytes_per_box()).filter_map(|bytes| {
            let (index, vector) = bytes.split_first_chunk::<2>()?;
            let embedding = match &self.basis {
                Some(_) => Embedding::new(&from_8_bits(vector)?.collect::<Vec<f32>>()),
                None => Embedding::from_bytes(vector),
            };
            Some(BoxEmbedding { index: u16::from_le_bytes(*index), embedding: embedding? })
        })
    }

    /// The form after reduction, by the main directions of these boxes.
    pub(super) fn reduced(&self, boxes: &Embeddings) -> Self {
        let control = TaskControl::new(ProgressUnit::Steps);
        Self { basis: Pca::fit(boxes, BOX_DIMS, 1, &control).ok(), ..self.clone() }
    }
}

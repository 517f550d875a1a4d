//! What is stored of an image: the embeddings of the image and its boxes, as bytes.

use half::f16;
use sha2::{Digest, Sha256};

use super::{Embedding, Embeddings};

/// The embeddings of an image and of its boxes.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageEmbeddings {
    pub image: Embedding,
    /// Of the boxes that have one.
    pub boxes: Vec<BoxEmbedding>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BoxEmbedding {
    /// The index among the prediction's boxes.
    pub index: u16,
    pub embedding: Embedding,
}

/// 8-bit numbers with a common scale: a 32-bit float, then a byte per number.
pub fn to_8_bits(values: impl Iterator<Item = f32> + Clone) -> Vec<u8> {
    let largest = values.clone().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let scale = largest / f32::from(i8::MAX);
    let byte = |value: f32| if scale > 0.0 { (value / scale).round() as i8 } else { 0 };
    scale.to_le_bytes().into_iter().chain(values.map(|value| byte(value).to_le_bytes()[0])).collect()
}

/// The inverse of [`to_8_bits`]; `None` for damaged bytes.
pub fn from_8_bits(bytes: &[u8]) -> Option<impl Iterator<Item = f32>> {
    let (scale, bytes) = bytes.split_first_chunk::<4>()?;
    let scale = f32::from_le_bytes(*scale);
    scale.is_finite().then(|| bytes.iter().map(move |&byte| f32::from(i8::from_le_bytes([byte])) * scale))
}

impl Embeddings {
    /// The SHA-256 of all vectors, in their order.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix((self.dims as u64).to_le_bytes());
        let mut bytes = Vec::new();
        for row in self.values.chunks(self.dims.max(1)) {
            bytes.clear();
            bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
            hash.update(&bytes);
        }
        hash.finalize().into()
    }
}

impl Embedding {
    /// The difference to `reference`, in 8 bits: what all vectors of a model have in common costs no precision. `None` for
    /// another number of dimensions.
    pub fn to_difference(&self, reference: &Self) -> Option<Vec<u8>> {
        let differences = self.0.iter().zip(&reference.0).map(|(value, reference)| value.to_f32() - reference.to_f32());
        (self.dims() == reference.dims()).then(|| to_8_bits(differences))
    }

    /// The inverse of [`Self::to_difference`]; `None` for damaged bytes.
    pub fn from_difference(bytes: &[u8], reference: &Self) -> Option<Self> {
        let differences = from_8_bits(bytes)?;
        let values =
            differences.zip(&reference.0).map(|(difference, value)| f16::from_f32(value.to_f32() + difference));
        (bytes.len() == 4 + reference.dims()).then(|| Self::from_half(values.collect())).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_keep_what_vectors_do_not_share() {
        let reference = Embedding::new(&[1000.0, 0.5, 0.0, 0.25]).unwrap();
        let vector = Embedding::new(&[1000.0, 0.25, 1.0, -1.0]).unwrap();
        let bytes = vector.to_difference(&reference).unwrap();
        assert_eq!(bytes.len(), 4 + 4);
        let read = Embedding::from_difference(&bytes, &reference).unwrap();
        for (read, exact) in read.0.iter().zip(&vector.0) {
            assert!((read.to_f32() - exact.to_f32()).abs() <= 1.25 / 127.0 / 2.0 + 1e-3, "{read}, expected {exact}");
        }
        let same = reference.to_difference(&reference).unwrap();
        assert_eq!(Embedding::from_difference(&same, &reference), Some(reference.clone()));
    }

    #[test]
    fn damaged_bytes_are_rejected() {
        let reference = Embedding::new(&[1.0, 2.0]).unwrap();
        assert_eq!(Embedding::new(&[1.0]).unwrap().to_difference(&reference), None);
        for bytes in [&[][..], &[0; 3], &[0; 5], &[0; 7], &[0, 0, 0xc0, 0x7f, 1, 1]] {
            assert_eq!(Embedding::from_difference(bytes, &reference), None, "{bytes:?}");
        }
        let huge = [f32::MAX.to_le_bytes().as_slice(), &[127, 1]].concat();
        assert_eq!(Embedding::from_difference(&huge, &reference), None);
    }
}

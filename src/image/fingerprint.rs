//! Reads what identifies images: a hash of their bytes, and one of how they look.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sha2::{Digest as _, Sha256};

use crate::alike::{HASHED_SIDE, PerceptualHash};
use crate::domain::{Problem, Sample};
use crate::image::decode::{DecodeLimits, gray_square};
use crate::image::source::{Source, SourceError};
use crate::tasks::{TaskControl, in_parallel};

/// Most of them wait for a network most of the time.
const MAX_READERS: usize = 16;

/// What identifies images, in their order.
#[derive(Debug, Clone, Default)]
pub struct Fingerprints {
    /// The SHA-256 of the bytes; `None` for unreadable images.
    pub digests: Vec<Option<[u8; 32]>>,
    /// `None` for unreadable images, and those without structure.
    pub hashes: Vec<Option<PerceptualHash>>,
    /// Images that cannot be read, and why.
    pub problems: Vec<Problem>,
    /// The number of images that are nearly of one color, so that they are compared only by their bytes.
    pub plain: usize,
}

/// Why fingerprints are incomplete.
#[derive(Debug, thiserror::Error)]
pub enum FingerprintError {
    #[error("canceled")]
    Cancelled,
    /// No other image could be read either.
    #[error("{0}")]
    Unreachable(String),
}

struct Fingerprint {
    digest: Option<[u8; 32]>,
    hash: Result<Option<PerceptualHash>, String>,
}

impl Fingerprints {
    /// Reads all images, and counts them in `control`.
    ///
    /// # Errors
    /// The task was canceled, or the source is unreachable; what is wrong with one image is one of the `problems`.
    pub fn read(
        source: &dyn Source,
        samples: &[Sample],
        limits: &DecodeLimits,
        control: &TaskControl,
    ) -> Result<Self, FingerprintError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let readers = source.useful_reads().max(cores).clamp(1, MAX_READERS);
        let read = in_parallel(readers, samples.len(), |_, index| {
            control.checkpoint().map_err(|_| FingerprintError::Cancelled)?;
            let fingerprint = fingerprint_of(source, &samples[index], limits);
            control.add_done(1);
            fingerprint
        })?;
        let mut all = Self::default();
        for (sample, Fingerprint { digest, hash }) in samples.iter().zip(read) {
            all.digests.push(digest);
            all.plain += usize::from(matches!(hash, Ok(None)));
            all.hashes.push(hash.unwrap_or_else(|reason| {
                all.problems.push(Problem::new(sample.uri.clone(), reason));
                None
            }));
        }
        Ok(all)
    }

    /// Adds those of images that follow.
    pub fn extend(&mut self, other: Self) {
        self.digests.extend(other.digests);
        self.hashes.extend(other.hashes);
        self.problems.extend(other.problems);
        self.plain += other.plain;
    }
}

/// An image that cannot be decoded still has its bytes.
fn fingerprint_of(
    source: &dyn Source,
    sample: &Sample,
    limits: &DecodeLimits,
) -> Result<Fingerprint, FingerprintError> {
    let unread = |reason: String| Ok(Fingerprint { digest: None, hash: Err(reason) });
    let bytes = match source.read(&sample.uri) {
        Ok(bytes) => bytes,
        Err(SourceError::Unreachable(reason)) => return Err(FingerprintError::Unreachable(reason)),
        Err(SourceError::Cancelled) => return Err(FingerprintError::Cancelled),
        Err(error) => return unread(error.to_string()),
    };
    let digest = (!bytes.is_empty()).then(|| Sha256::digest(&bytes).into());
    // A panic in a decoder costs one image, never the others.
    let gray = catch_unwind(AssertUnwindSafe(|| gray_square::<{ HASHED_SIDE * HASHED_SIDE }>(&bytes, limits)));
    let hash = match gray {
        Ok(Ok(gray)) => Ok(PerceptualHash::new(&gray)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("is damaged: its decoder failed; copy or download it again".to_owned()),
    };
    Ok(Fingerprint { digest, hash })
}

//! Keeps what was proven about a model's embeddings, because each proof loads the model two more times.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::domain::{ModelCard, hexadecimal};
use crate::local_file;

/// Increased when the search for embeddings or the comparison of outputs changes.
const VERSION: &str = "2";

/// The file of a proof, named after everything that the result can depend on. Nothing is reported if it cannot be read or
/// written: then the next load proves again.
pub(super) struct ProofFile(PathBuf);

impl ProofFile {
    /// `device` describes the device, the library and the division into sessions. `None` if the weights cannot be read.
    pub(super) fn new(folder: &Path, card: &ModelCard, weights: &Path, device: &str) -> Option<Self> {
        let metadata = weights.metadata().ok()?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let file = format!("{} {} {}", weights.display(), metadata.len(), modified.as_nanos());
        let card = serde_json::to_string(card).ok()?;
        let hash = Sha256::digest([VERSION, &card, &file, device].join("\n"));
        Some(Self(folder.join(format!("{}.json", hexadecimal(&hash)))))
    }

    pub(super) fn read<P: DeserializeOwned>(&self) -> Option<P> {
        serde_json::from_slice(&std::fs::read(&self.0).ok()?).ok()
    }

    pub(super) fn write(&self, proof: &impl Serialize) {
        let text = serde_json::to_vec(proof).map_err(Into::into);
        if let Err(error) = text.and_then(|text| local_file::replace(&self.0, text)) {
            log::warn!("could not store the proof of a model’s embeddings: {error}: {}", self.0.display());
        }
    }
}

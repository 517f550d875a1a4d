//! The library compared with independent references: decoding, downloads, recognizing and running models, and hostile
//! bytes.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod annotations;
mod conventions;
mod decode;
mod detections;
mod detectors;
mod download;
mod embeddings;
mod golden;
mod hostile;
mod layers;
mod parity;
mod resize;
mod source;
#[path = "../support/mod.rs"]
mod support;

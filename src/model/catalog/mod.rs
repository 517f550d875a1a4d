//! The models that Spotcheck knows: those of the repository, their downloads, and the user's own.
//!
//! Knows where cards, label sets and weights are and how they get there, but not what is inside the weights (that is up
//! to `model::onnx` and the rest of `model`). The only user of TOML.

mod built_in;
mod card;
mod error;
mod mapping;
mod models;

pub use built_in::{built_in_labels, imagenet_class};
pub use card::{CardError, FieldError, check_card, parse_card, write_card};
pub use error::{FetchError, LibraryError};
pub use mapping::{check_mapping, parse_mapping, write_mapping};
pub use models::{EntryOrigin, Library, LibraryEntry, Model, WeightsState, labels_from_file, model_file};

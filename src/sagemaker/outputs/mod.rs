//! Remote outputs read as predictions: the `.out` objects of Batch Transform, and the responses of endpoints and
//! TensorFlow Serving.
//!
//! The format is detected once, from the first readable output, and reported; every other output must have the same
//! format. An output that is broken or implausible is a problem of its image, never a wrong prediction. Knows nothing
//! about how the responses were requested.

mod csv_line;
mod examples;
mod folder;
mod join;
mod json;
mod named;
mod open;
mod pending;
mod read;
mod reader;
mod recognize;
mod responses;
mod shown;

use crate::sagemaker::jobs::OUT;

pub use examples::ExampleReadings;
pub use folder::{OutputFolder, OutputsError, OutputsOrigin, OutputsPart, RetryPart};
pub use json::MAX_RESPONSE_BYTES;
pub use open::{FoundOutputs, OutputRun, ReadingChoice, SeenOutputs};
pub use read::{OutputSink, ReadOutcome};
pub use reader::{LabelSource, OutputReader};
pub use recognize::{OutputShape, Recognition, Unrecognized};

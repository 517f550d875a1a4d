//! S3, SageMaker and TensorFlow Serving on this computer: the library, and the command line as a process.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod annotations;
mod aws_shapes;
mod cli_s3;
mod control_plane;
mod endpoints;
mod outputs;
mod package_inputs;
mod s3;
mod sign_in;
#[path = "../support/mod.rs"]
mod support;
mod tf_serving;
mod training;
mod transform;
mod transform_jobs;
mod transform_package;
mod transform_rehearse;
mod upload;

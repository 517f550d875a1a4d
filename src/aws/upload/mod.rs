//! Uploads local files to a prefix in S3.
//!
//! There are two steps: a plan of what to send, what exists and what conflicts, then the transfer. Existing objects
//! stay unless the user agrees to a replacement; then exactly the object in the plan is replaced. Nothing is ever
//! deleted. Knows nothing about the content of images.

mod content;
mod large;
pub mod plan;
mod planning;
mod sending;
mod transfer;

pub use planning::{LocalFiles, files_below, files_of, plan};
pub use transfer::{Existing, UploadOptions, upload};

/// The default number of parallel requests. Each holds a part or a smaller file in memory, at most 16 MiB.
pub const DEFAULT_CONCURRENCY: usize = 16;
pub const MAX_CONCURRENCY: usize = 64;

//! Local files become objects below a prefix in S3.
//!
//! First a plan: what would be sent, what is there already, what is in the way. Then the transfer of that plan.
//! Whatever is in the bucket stays as it is, unless somebody wants it replaced; then only the very object that the plan
//! saw is. Nothing is ever deleted. Knows nothing of what is inside an image.

mod content;
mod files;
mod large;
mod planning;
mod sending;
mod transfer;
mod unfinished;

pub use files::{LocalFiles, files_below, files_of};
pub use planning::plan;
pub use transfer::{Existing, UploadOptions, upload};

/// Requests at once where nobody says otherwise. Each holds a part or a smaller file in the memory, at most 16 MiB.
pub const DEFAULT_CONCURRENCY: usize = 16;
pub const MAX_CONCURRENCY: usize = 64;

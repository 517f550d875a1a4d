//! Local files become objects below a prefix in S3.
//!
//! First a plan: what would be sent, what is there already, what stands in the way. Then the transfer of that plan. Whatever stands
//! in the bucket stays as it is, unless somebody wants it replaced; then only the very object that the plan saw is. Nothing is
//! ever deleted. Knows nothing of what is inside an image.

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

use crate::aws::AwsErrorKind;

/// Requests at once where nobody says otherwise. Each holds a part or a smaller file in the memory, at most 16 MiB.
pub const DEFAULT_CONCURRENCY: usize = 16;
pub const MAX_CONCURRENCY: usize = 64;

/// Whether nothing else could be sent either after such an error, until somebody does something about it.
fn concerns_everything(kind: AwsErrorKind) -> bool {
    use AwsErrorKind as Kind;
    matches!(
        kind,
        Kind::NoCredentials
            | Kind::ExpiredCredentials
            | Kind::BadCredentials
            | Kind::Profile
            | Kind::NoSuchBucket
            | Kind::WrongRegion
            | Kind::Dns
            | Kind::Unreachable
            | Kind::NotS3
            | Kind::ClockSkew
            | Kind::Local
    )
}

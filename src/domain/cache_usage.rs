//! What is kept on disk.

/// What the cache takes on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    pub thumbnail_bytes: u64,
    /// The size of encoded images from S3.
    pub image_bytes: u64,
}

//! Disk usage of the cache.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    pub thumbnail_bytes: u64,
    /// Encoded images from S3.
    pub image_bytes: u64,
}

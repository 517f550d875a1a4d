//! What is kept on disk.

/// What the cache takes on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    pub thumbnail_bytes: u64,
    /// Of images that came from far away, encoded.
    pub image_bytes: u64,
}

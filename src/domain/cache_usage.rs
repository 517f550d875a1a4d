//! What is kept on disk.

/// What the cache takes on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    pub thumbnail_bytes: u64,
    /// Of pictures that came from far away, encoded.
    pub picture_bytes: u64,
}

//! The default location of a source's project.

use std::fmt::Write;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::EXTENSION;
use crate::dirs::AppDirs;
use crate::domain::S3Place;

/// Long enough to recognize, short enough for every file system.
const MAX_NAME_CHARS: usize = 40;

/// `photos-3f2a9c01b7de.spotcheck` in the projects folder: one per root, with its name for the user and a hash to
/// distinguish roots with the same name.
pub fn default_path(dirs: &AppDirs, root: &str) -> PathBuf {
    let last =
        root.trim_end_matches(std::path::is_separator).rsplit(std::path::is_separator).next().unwrap_or_default();
    path_of(dirs, last, root)
}

/// As [`default_path`], for an S3 location: one per bucket, prefix and server, for all credentials.
pub fn default_path_of_place(dirs: &AppDirs, place: &S3Place) -> PathBuf {
    path_of(dirs, place.address.last_part(), &place.identity())
}

fn path_of(dirs: &AppDirs, last: &str, identity: &str) -> PathBuf {
    let plain = |c: char| {
        if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }
    };
    let name: String = last.chars().take(MAX_NAME_CHARS).map(plain).collect();
    let name = if name.is_empty() { "root" } else { &name };
    let hash = Sha256::digest(identity.as_bytes());
    let mut short = String::new();
    for byte in hash.iter().take(6) {
        // Writing to a string cannot fail.
        let _ = write!(short, "{byte:02x}");
    }
    dirs.projects.join(format!("{name}-{short}.{EXTENSION}"))
}

//! Names of samples and of the project's root in the file, so that a folder and its project can move; the default
//! location of a source's project.

use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::EXTENSION;
use crate::dirs::AppDirs;
use crate::domain::{S3Place, SampleUri, hexadecimal};

/// A sample's name in the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredName {
    /// Whether `name` is a path below the project's root, with `/` between its parts; otherwise it is the whole URI.
    pub is_below_root: bool,
    pub name: String,
}

/// The name of `uri` in a project for the images below `root`.
pub(super) fn to_stored(root: Option<&str>, uri: &SampleUri) -> StoredName {
    let below = root.and_then(|root| {
        let rest = uri.as_str().strip_prefix(without_end(root))?;
        let rest = rest.strip_prefix(|c| is_separator_of(root, c))?;
        (!rest.is_empty()).then_some((root, rest))
    });
    match below {
        Some((root, below)) => StoredName {
            is_below_root: true,
            name: match separator_of(root) {
                '/' => below.to_owned(),
                separator => below.replace(separator, "/"),
            },
        },
        None => StoredName { is_below_root: false, name: uri.as_str().to_owned() },
    }
}

/// The current URI of the sample. Without a root, a name below it is the URI.
pub(super) fn from_stored(root: Option<&str>, stored: &StoredName) -> SampleUri {
    match root {
        Some(root) if stored.is_below_root => {
            let separator = separator_of(root);
            let mut uri = String::with_capacity(root.len() + 1 + stored.name.len());
            uri.push_str(without_end(root));
            uri.push(separator);
            if separator == '/' {
                uri.push_str(&stored.name);
            } else {
                uri.extend(stored.name.chars().map(|c| if c == '/' { separator } else { c }));
            }
            SampleUri::new(uri)
        }
        _ => SampleUri::new(stored.name.clone()),
    }
}

fn without_end(root: &str) -> &str {
    root.trim_end_matches(|c| is_separator_of(root, c))
}

fn is_separator_of(root: &str, c: char) -> bool {
    if is_address(root) { c == '/' } else { std::path::is_separator(c) }
}

fn separator_of(root: &str) -> char {
    if is_address(root) { '/' } else { std::path::MAIN_SEPARATOR }
}

/// `s3://bucket/folder/`, where a backslash is an ordinary character.
fn is_address(root: &str) -> bool {
    root.contains("://")
}

/// The root relative to the project file, if one of them is inside the other's folder, so that both can move together.
/// With `/` between its parts; `.` for the file's own folder.
pub(super) fn root_from_file(file: &Path, root: &str) -> Option<String> {
    let (folder, root) = (file.parent()?, Path::new(root));
    if let Ok(below) = root.strip_prefix(folder) {
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        let path = parts?.join("/");
        return Some(if path.is_empty() { ".".to_owned() } else { path });
    }
    let below = folder.strip_prefix(root).ok()?;
    // A project deep inside a home folder that is itself the root does not move with it.
    let depth = below.components().count();
    Some(vec![".."; depth].join("/"))
}

/// The inverse of [`root_from_file`], with `.` and `..` resolved.
pub(super) fn root_next_to_file(file: &Path, from_file: &str) -> Option<String> {
    let mut root: PathBuf = file.parent()?.to_owned();
    for part in Path::new(from_file).components() {
        match part {
            Component::ParentDir => {
                root.pop();
            }
            Component::Normal(part) => root.push(part),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    root.to_str().map(str::to_owned)
}

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
    let short = hexadecimal(&hash[..6]);
    dirs.projects.join(format!("{name}-{short}.{EXTENSION}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_is_named_relative_to_the_root() {
        for (root, uri, expected) in [
            ("/photos", "/photos/a/b.jpg", Some("a/b.jpg")),
            ("/photos/", "/photos/b.jpg", Some("b.jpg")),
            ("/", "/b.jpg", Some("b.jpg")),
            ("/photos", "/photos2/b.jpg", None),
            ("/photos", "/photos", None),
            ("/photos", "C:\\b.jpg", None),
            ("s3://bucket/photos/", "s3://bucket/photos/a/b\\c%20.jpg", Some("a/b\\c%20.jpg")),
            ("s3://bucket/", "s3://bucket/b.jpg", Some("b.jpg")),
            ("s3://bucket/", "s3://bucket//b.jpg", Some("/b.jpg")),
            ("s3://bucket/", "s3://bucket2/b.jpg", None),
        ] {
            let stored = to_stored(Some(root), &SampleUri::new(uri));
            assert_eq!(stored.is_below_root, expected.is_some(), "{root} {uri}");
            assert_eq!(stored.name, expected.unwrap_or(uri));
            assert_eq!(from_stored(Some(root), &stored).as_str(), uri);
        }
        let stored = to_stored(Some("/old"), &SampleUri::new("/old/b.jpg"));
        assert_eq!(from_stored(Some("/new/place"), &stored).as_str(), "/new/place/b.jpg");
    }

    #[test]
    fn root_near_the_project_travels_with_it() {
        for (file, root, expected) in [
            ("/photos/p.spotcheck", "/photos", Some(".")),
            ("/photos/p.spotcheck", "/photos/a/b", Some("a/b")),
            ("/photos/work/p.spotcheck", "/photos", Some("..")),
            ("/elsewhere/p.spotcheck", "/photos", None),
        ] {
            let from_file = root_from_file(Path::new(file), root);
            assert_eq!(from_file.as_deref(), expected, "{file} {root}");
            if let Some(from_file) = from_file {
                let again = root_next_to_file(Path::new(file), &from_file);
                assert_eq!(again.as_deref(), Some(root));
            }
        }
    }
}

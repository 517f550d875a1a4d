//! Names of exported files, derived from image names.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Gives each image a unique name in the exported folder; subfolders are kept. Eight bytes per image.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    /// Hashes of the names used so far. A hash collision only adds a number to one of the names.
    taken: HashSet<u64>,
}

/// Leaves room for a number and an extension within the 255 bytes of common file systems.
const MAX_PART_BYTES: usize = 230;

impl FileNames {
    /// `stem.extension`, unique on any file system: with a number after the stem if it is taken.
    pub(super) fn free(&mut self, stem: &str, extension: &str) -> String {
        let mut name = format!("{stem}.{extension}");
        // Names that differ only in case are equal on Windows and macOS.
        for number in 2u64.. {
            if self.take(&name.to_lowercase()) {
                break;
            }
            name = format!("{stem}-{number}.{extension}");
        }
        name
    }

    /// False if the name was taken before.
    pub(super) fn take(&mut self, name: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        self.taken.insert(hasher.finish())
    }
}

/// The stem (with its folders) and extension (empty if there is none) of an image's name, safe to join to a folder: it
/// never leads outside, and contains nothing that a file system rejects.
pub(super) fn safe_stem(name: &str) -> (String, String) {
    let parts: Vec<&str> = name.split('/').filter(|part| !["", ".", ".."].contains(part)).collect();
    let Some((file, folders)) = parts.split_last() else {
        return ("image".to_owned(), String::new());
    };
    let (stem, extension) = match file.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, extension),
        _ => (*file, ""),
    };
    let mut safe: Vec<String> = folders.iter().map(|folder| safe_part(folder)).collect();
    safe.push(safe_part(stem));
    (safe.join("/"), safe_part(extension))
}

fn safe_part(part: &str) -> String {
    let mut safe: String = part
        .chars()
        .map(|letter| match letter {
            '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\\' => '_',
            letter if letter.is_control() => '_',
            letter => letter,
        })
        .collect();
    while safe.len() > MAX_PART_BYTES {
        safe.pop();
    }
    // Windows silently drops trailing dots and spaces.
    if safe.ends_with(['.', ' ']) {
        safe.pop();
        safe.push('_');
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colliding_names_get_numbers() {
        let mut names = FileNames::default();
        assert_eq!(names.free("a/x", "txt"), "a/x.txt");
        assert_eq!(names.free("b/x", "txt"), "b/x.txt");
        assert_eq!(names.free("a/x", "txt"), "a/x-2.txt");
        assert_eq!(names.free("a/X", "txt"), "a/X-3.txt");
    }

    #[test]
    fn names_stay_inside_the_folder() {
        for (name, stem, extension) in [
            ("a/b.c/x.y.JPG", "a/b.c/x.y", "JPG"),
            ("../../etc/passwd", "etc/passwd", ""),
            ("/root/x.png", "root/x", "png"),
            ("what?: \"this\".png", "what__ _this_", "png"),
            ("end./tab\there.png", "end_/tab_here", "png"),
            (".hidden", ".hidden", ""),
            ("..", "image", ""),
        ] {
            let expected = (stem.to_owned(), extension.to_owned());
            assert_eq!(safe_stem(name), expected, "{name}");
        }
        let (long, _) = safe_stem(&format!("{}.png", "ü".repeat(300)));
        assert!(long.len() <= MAX_PART_BYTES && long.starts_with("üü"));
    }
}

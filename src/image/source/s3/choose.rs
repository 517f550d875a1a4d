//! Decides which keys of a folder in S3 are images.

use super::EXAMPLES;
use crate::image::source::is_listed;

/// Decides by name only: asking about each object would cost a request each.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Whether keys without an extension count as images; `None` before the first keys.
    takes_bare_names: Option<bool>,
    hidden: SkippedFiles,
    /// Keys that do not look like images.
    others: SkippedFiles,
}

/// The number of skipped names, and the first of them.
#[derive(Debug, Default)]
struct SkippedFiles {
    count: u64,
    examples: Vec<String>,
}

/// Whether this is an object that tools create to make an empty folder visible.
pub fn is_folder_marker(key: &str, size_bytes: u64) -> bool {
    size_bytes == 0 && (key.is_empty() || key.ends_with('/'))
}

/// Whether a part of the name begins with a dot. `name` is the key after the prefix of the listing.
pub fn is_hidden_name(name: &str) -> bool {
    name.split('/').any(|part| part.starts_with('.'))
}

impl Choice {
    /// Looks at the names of the next keys before they are requested one by one.
    pub(super) fn see<'n>(&mut self, mut names: impl Iterator<Item = &'n str>) {
        if self.takes_bare_names.is_none() {
            self.takes_bare_names = Some(!names.any(is_listed));
        }
    }

    /// Whether the key is an image. `name` is the key after the folder's prefix.
    pub(super) fn takes(&mut self, name: &str, size_bytes: u64) -> bool {
        if is_folder_marker(name, size_bytes) {
            return false;
        }
        if is_hidden_name(name) {
            self.hidden.add(name);
            return false;
        }
        let last = name.rsplit('/').next().unwrap_or_default();
        let is_bare = !last.is_empty() && !last.contains('.');
        let takes_bare_names = self.takes_bare_names.unwrap_or_default();
        if is_listed(last) || is_bare && takes_bare_names && size_bytes > 0 {
            return true;
        }
        self.others.add(name);
        false
    }

    /// What was skipped.
    pub(super) fn notes(&self) -> Vec<String> {
        let because = [
            (&self.others, "its name has no image extension", "their names have no image extension"),
            (
                &self.hidden,
                "it is hidden (a part of its name begins with a dot)",
                "they are hidden (a part of their names begins with a dot)",
            ),
        ];
        let notes = because.into_iter().filter_map(|(left_out, one, several)| left_out.note(one, several));
        notes.collect()
    }
}

impl SkippedFiles {
    fn add(&mut self, name: &str) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(name.to_owned());
        }
    }

    /// `None` if nothing was skipped.
    fn note(&self, one: &str, several: &str) -> Option<String> {
        let examples = self.examples.join(", ");
        match self.count {
            0 => None,
            1 => Some(format!("One object was skipped because {one}: {examples}")),
            count => {
                let more = if count > EXAMPLES as u64 { ", …" } else { "" };
                Some(format!("{count} objects were skipped because {several}: {examples}{more}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen<'n>(choice: &mut Choice, names: &[&'n str]) -> Vec<&'n str> {
        choice.see(names.iter().copied());
        let mut names = names.to_vec();
        names.retain(|name| choice.takes(name, 1));
        names
    }

    #[test]
    fn images_are_known_by_extension() {
        let mut choice = Choice::default();
        let names = ["a.jpg", "b/C.PNG", "notes.txt", "0a1b2c", ".git/x.png", "b/.x.jpg"];
        assert_eq!(chosen(&mut choice, &names), ["a.jpg", "b/C.PNG"]);
        assert_eq!(chosen(&mut choice, &["labels.csv", "x/"]), [""; 0]);
        let [others, hidden] = &choice.notes()[..] else {
            panic!("{choice:?}");
        };
        assert!(others.contains("4 objects"), "{others}");
        assert!(others.contains("notes.txt, 0a1b2c, labels.csv, …"), "{others}");
        assert!(hidden.starts_with("2 objects"), "{hidden}");
        assert!(hidden.ends_with(".git/x.png, b/.x.jpg"), "{hidden}");
    }

    #[test]
    fn keys_without_extensions_can_be_images() {
        let mut choice = Choice::default();
        let names = ["0a/0a1b2c", "manifest.json", "ff00"];
        assert_eq!(chosen(&mut choice, &names), ["0a/0a1b2c", "ff00"]);
        assert_eq!(chosen(&mut choice, &["late.jpg"]), ["late.jpg"]);
        assert!(!choice.takes("empty", 0));
    }

    #[test]
    fn folder_markers_are_ignored() {
        let mut choice = Choice::default();
        choice.see([""].into_iter());
        assert!(!choice.takes("", 0) && !choice.takes("sub/", 0));
        assert!(choice.takes("empty.jpg", 0), "as in a local folder");
        assert!(choice.notes().is_empty());
    }
}

//! Which keys of a folder in S3 are images.

use super::EXAMPLES;
use crate::source::is_listed;

/// Decides by names alone: asking each object what it is would cost a request each.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Whether keys without an extension count as images; `None` before the first keys were seen.
    takes_bare_names: Option<bool>,
    left_out: u64,
    /// Names of the first that were left out.
    examples: Vec<String>,
}

impl Choice {
    /// The names of the next keys, before they are asked for one by one.
    pub(super) fn see<'n>(&mut self, mut names: impl Iterator<Item = &'n str>) {
        if self.takes_bare_names.is_none() {
            self.takes_bare_names = Some(!names.any(is_listed));
        }
    }

    /// Whether the key is an image. `name` is the key behind the folder's prefix.
    pub(super) fn takes(&mut self, name: &str, size_bytes: u64) -> bool {
        let is_hidden = name.split('/').any(|part| part.starts_with('.'));
        // What programs make so that an empty folder can be seen.
        let is_folder_marker = size_bytes == 0 && (name.is_empty() || name.ends_with('/'));
        if is_hidden || is_folder_marker {
            return false;
        }
        let last = name.rsplit('/').next().unwrap_or_default();
        let is_bare = !last.is_empty() && !last.contains('.');
        let takes_bare_names = self.takes_bare_names.unwrap_or_default();
        if is_listed(last) || is_bare && takes_bare_names && size_bytes > 0 {
            return true;
        }
        self.left_out += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(name.to_owned());
        }
        false
    }

    /// What was left out, for people; `None` where nothing was.
    pub(super) fn note(&self) -> Option<String> {
        let examples = self.examples.join(", ");
        match self.left_out {
            0 => None,
            1 => Some(format!(
                "One object was left out, as its name is not that of an image: {examples}"
            )),
            count => {
                let more = if count > EXAMPLES as u64 { ", …" } else { "" };
                Some(format!(
                    "{count} objects were left out, as their names are not those of images: {examples}{more}"
                ))
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
    fn images_are_known_by_their_names_and_the_rest_is_counted() {
        let mut choice = Choice::default();
        let names = [
            "a.jpg",
            "b/C.PNG",
            "notes.txt",
            "0a1b2c",
            ".git/x.png",
            "b/.x.jpg",
        ];
        assert_eq!(chosen(&mut choice, &names), ["a.jpg", "b/C.PNG"]);
        assert_eq!(chosen(&mut choice, &["labels.csv", "x/"]), [""; 0]);
        let note = choice.note().unwrap();
        assert!(note.contains("4 objects"), "{note}");
        assert!(note.contains("notes.txt, 0a1b2c, labels.csv, …"), "{note}");
    }

    #[test]
    fn keys_without_extensions_are_images_where_the_first_ones_are_all_without() {
        let mut choice = Choice::default();
        let names = ["0a/0a1b2c", "manifest.json", "ff00"];
        assert_eq!(chosen(&mut choice, &names), ["0a/0a1b2c", "ff00"]);
        assert_eq!(chosen(&mut choice, &["late.jpg"]), ["late.jpg"]);
        assert!(!choice.takes("empty", 0));
    }

    #[test]
    fn folder_markers_are_no_images_and_nothing_to_tell() {
        let mut choice = Choice::default();
        choice.see([""].into_iter());
        assert!(!choice.takes("", 0) && !choice.takes("sub/", 0));
        assert!(choice.takes("empty.jpg", 0), "as in a local folder");
        assert_eq!(choice.note(), None);
    }
}

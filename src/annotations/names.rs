//! Classes in the names of images: of their folders, or in their file names.

use super::collect::Collector;
use super::{AnnotationFormat, Found};
use crate::domain::{AnnotatedLabel, AnnotationProblemKind as Kind};

/// Folders that split a data set; below them are those of the classes.
const SPLITS: [&str; 6] = ["train", "training", "val", "valid", "validation", "test"];

/// The class of each image is the outermost folder that it is in, as in torchvision's `ImageFolder`. If all of these
/// are called train, val or test, it is the next folder.
pub(super) fn of_folders<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Found {
    let mut collector = Collector::default();
    let outermost = |name: &'n str| name.split_once('/').map(|(folder, _)| folder);
    let is_split = |folder: &str| SPLITS.contains(&folder.to_lowercase().as_str());
    let are_splits = names.clone().filter_map(outermost).all(is_split);
    if are_splits {
        collector.notes.push("the folders of classes are those inside of train, val and test".to_owned());
    }
    for name in names {
        collector.entries += 1;
        let mut folders = name.split('/').collect::<Vec<_>>();
        folders.pop();
        match folders.get(usize::from(are_splits)) {
            Some(folder) => label(&mut collector, name, folder),
            None => collector.problem(Kind::UnknownClass, name, "is in no folder of a class"),
        }
    }
    collector.finish(AnnotationFormat::ClassFolders)
}

fn label(collector: &mut Collector, image: &str, class: &str) {
    let class = collector.class(None, Some(class));
    collector.add_label(image, AnnotatedLabel { class, score: None });
}

/// Where in a file name the class is: `{class}` between texts that are the same in each name, and `*` for anything
/// else: `*_{class}.png`, `{class}-*`. The extension may be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    /// What is before and behind the class, split at each `*`.
    before: Vec<String>,
    behind: Vec<String>,
}

impl NamePattern {
    /// # Errors
    /// There is not one `{class}`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("“{text}” needs {{class}} once, for example *_{{class}}.png");
        let (before, behind) = text.split_once("{class}").ok_or_else(wrong)?;
        if behind.contains("{class}") || before.contains('/') || behind.contains('/') {
            return Err(wrong());
        }
        let parts = |text: &str| text.split('*').map(str::to_owned).collect();
        Ok(Self { before: parts(before), behind: parts(behind) })
    }

    /// The class in a file name; `None` if the name does not fit. It is as short as the pattern allows, beginning as
    /// late as it allows.
    fn class<'n>(&self, name: &'n str) -> Option<&'n str> {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        [stem, name].into_iter().find_map(|name| {
            let starts = (0..=name.len()).rev().filter(|at| name.is_char_boundary(*at));
            let mut starts = starts.filter(|at| fits(&name[..*at], &self.before));
            starts.find_map(|start| {
                let ends = (start + 1..=name.len()).filter(|at| name.is_char_boundary(*at));
                let end = ends.into_iter().find(|end| fits(&name[*end..], &self.behind))?;
                Some(&name[start..end])
            })
        })
    }
}

/// Whether `text` is the parts in order, with anything between them.
fn fits(text: &str, parts: &[String]) -> bool {
    let [first, rest @ ..] = parts else {
        return text.is_empty();
    };
    let Some(mut text) = text.strip_prefix(first.as_str()) else {
        return false;
    };
    let Some((last, between)) = rest.split_last() else {
        return text.is_empty();
    };
    for part in between {
        match text.find(part.as_str()) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last.as_str())
}

/// Takes the class of each image from its file name.
pub fn of_file_names<'n>(names: impl Iterator<Item = &'n str>, pattern: &NamePattern) -> Found {
    let mut collector = Collector::default();
    for name in names {
        collector.entries += 1;
        let file = name.rsplit('/').next().unwrap_or(name);
        if let Some(class) = pattern.class(file) {
            label(&mut collector, name, class);
        } else {
            collector.problem(Kind::UnknownClass, name, "does not fit the pattern");
        }
    }
    collector.finish(AnnotationFormat::FileNames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_finds_the_class_in_a_file_name() {
        for (pattern, name, class) in [
            ("*_{class}.png", "0017_cat.png", Some("cat")),
            ("*_{class}.png", "0017_cat.jpg", None),
            ("*_{class}", "0017_traffic_light.jpg", Some("light")),
            ("{class}_*", "cat_0017.jpg", Some("cat")),
            ("{class}.*.jpg", "dog.17.jpg", Some("dog")),
            ("{class}", "cat.jpg", Some("cat")),
            ("img-*-{class}-*", "img-1-Katze-2.jpg", Some("Katze")),
            ("*_{class}", "cat.jpg", None),
        ] {
            assert_eq!(NamePattern::parse(pattern).unwrap().class(name), class, "{pattern} {name}");
        }
        for wrong in ["", "*_cat", "{class}{class}", "{class}/*.jpg"] {
            assert!(NamePattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_outermost_folder_is_the_class() {
        let classes = |names: &[&str]| {
            let found = of_folders(names.iter().copied());
            let classes = found.annotations.classes.iter().map(|class| class.name.clone().unwrap_or_default());
            (classes.collect::<Vec<_>>(), found.annotations.problems.total())
        };
        assert_eq!(classes(&["cat/1.jpg", "dog/sub/2.jpg", "3.jpg"]), (vec!["cat".to_owned(), "dog".to_owned()], 1));
        assert_eq!(classes(&["train/cat/1.jpg", "val/dog/2.jpg"]), (vec!["cat".to_owned(), "dog".to_owned()], 0));
    }
}

//! Classes in the names of images: in folder names or in file names.

use super::collect::Collector;
use super::json::shortened;
use super::{AnnotationFormat, Found};
use crate::domain::{AnnotatedLabel, AnnotationProblemKind as Kind, NamePattern};

/// The number of names shown with their class.
const MAX_EXAMPLES: usize = 3;

/// Folders that split a dataset; the class folders are inside them.
const SPLITS: [&str; 6] = ["train", "training", "val", "valid", "validation", "test"];

/// The class of each image is its outermost folder, as in torchvision's `ImageFolder`. If all of these are named train,
/// val or test, it is the next folder.
pub(crate) fn of_folders<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Found {
    let mut collector = Collector::default();
    let outermost = |name: &'n str| name.split_once('/').map(|(folder, _)| folder);
    let is_split = |folder: &str| SPLITS.contains(&folder.to_lowercase().as_str());
    let are_splits = names.clone().filter_map(outermost).all(is_split);
    if are_splits {
        collector.notes.push("the class folders are those inside train, val and test".to_owned());
    }
    for name in names {
        collector.entries += 1;
        let mut folders = name.split('/').collect::<Vec<_>>();
        folders.pop();
        match folders.get(usize::from(are_splits)) {
            Some(folder) => label(&mut collector, name, folder),
            None => collector.problem(Kind::UnknownClass, name, "is not in a class folder"),
        }
    }
    collector.finish(AnnotationFormat::ClassFolders)
}

fn label(collector: &mut Collector, image: &str, class: &str) {
    let class = collector.class(None, Some(class));
    collector.add_label(image, AnnotatedLabel { class, score: None });
}

/// Takes the class of each image from its file name.
pub fn of_file_names<'n>(names: impl Iterator<Item = &'n str>, pattern: &NamePattern) -> Found {
    let mut collector = Collector::default();
    let mut examples: Vec<String> = Vec::new();
    for name in names {
        collector.entries += 1;
        let file = name.rsplit('/').next().unwrap_or(name);
        let Some(class) = pattern.class(file) else {
            collector.problem(Kind::UnknownClass, name, "does not match the pattern");
            continue;
        };
        if examples.len() < MAX_EXAMPLES {
            examples.push(format!("“{}” of {}", shortened(class), shortened(file)));
        }
        label(&mut collector, name, class);
    }
    if !examples.is_empty() {
        collector.notes.push(format!("the class is {}", examples.join(", ")));
    }
    collector.finish(AnnotationFormat::FileNames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outermost_folder_is_the_class() {
        let classes = |names: &[&str]| {
            let found = of_folders(names.iter().copied());
            let classes = found.annotations.classes.iter().map(|class| class.name.clone().unwrap_or_default());
            (classes.collect::<Vec<_>>(), found.annotations.problems.total())
        };
        assert_eq!(classes(&["cat/1.jpg", "dog/sub/2.jpg", "3.jpg"]), (vec!["cat".to_owned(), "dog".to_owned()], 1));
        assert_eq!(classes(&["train/cat/1.jpg", "val/dog/2.jpg"]), (vec!["cat".to_owned(), "dog".to_owned()], 0));
    }
}

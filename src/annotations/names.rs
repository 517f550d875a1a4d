//! Classes in the names of images: in folder names or in file names.

use super::collect::Collector;
use super::json::shortened;
use super::{AnnotationFormat, Found};
use crate::domain::{AnnotatedLabel, AnnotationProblemKind as Kind, Annotations, LabelSet, NamePattern};

/// The number of names shown with their class.
const MAX_EXAMPLES: usize = 3;

/// Folders that split a dataset; the class folders are inside them.
const SPLITS: [&str; 6] = ["train", "training", "val", "valid", "validation", "test"];

/// The class of each image is its outermost folder, as in torchvision's `ImageFolder`. If all of these are named train,
/// val or test, it is the next folder.
pub(super) fn from_folders<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Found {
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
pub fn from_file_names<'n>(names: impl Iterator<Item = &'n str>, pattern: &NamePattern) -> Found {
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

/// Why class names do not fit annotations, to follow their name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClassNamesError {
    #[error("contains class names and no numbers; remove the class names option")]
    HasNoNumbers,
    #[error("names class {number} “{own}”, but the class names have “{given}”; choose other class names or none")]
    Contradiction { number: i64, own: String, given: String },
    #[error("has class {number}, which the class names do not contain; choose other class names")]
    Unnamed { number: i64 },
}

/// Names all classes.
///
/// # Errors
/// The names do not fit.
pub fn name_classes(annotations: &mut Annotations, labels: &LabelSet) -> Result<(), ClassNamesError> {
    for class in &mut annotations.classes {
        let number = class.number.ok_or(ClassNamesError::HasNoNumbers)?;
        let given = u32::try_from(number).ok().and_then(|number| labels.get(number));
        match (&class.name, given) {
            (Some(own), Some(given)) if own != given => {
                return Err(ClassNamesError::Contradiction { number, own: own.clone(), given: given.to_owned() });
            }
            (Some(_), _) => {}
            (None, Some(given)) => class.name = Some(given.to_owned()),
            (None, None) => return Err(ClassNamesError::Unnamed { number }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::TruthLabel;

    #[test]
    fn outermost_folder_is_the_class() {
        let classes = |names: &[&str]| {
            let found = from_folders(names.iter().copied());
            let classes = found.annotations.classes.iter().map(|class| class.name.clone().unwrap_or_default());
            (classes.collect::<Vec<_>>(), found.annotations.problems.total())
        };
        assert_eq!(classes(&["cat/1.jpg", "dog/sub/2.jpg", "3.jpg"]), (vec!["cat".to_owned(), "dog".to_owned()], 1));
        assert_eq!(classes(&["train/cat/1.jpg", "val/dog/2.jpg"]), (vec!["cat".to_owned(), "dog".to_owned()], 0));
    }

    #[test]
    fn only_numbered_classes_are_named() {
        let labels = LabelSet::parse("cat\ndog").unwrap();
        let named = |number: Option<i64>, name: Option<&str>| {
            let classes = vec![TruthLabel { number, name: name.map(str::to_owned) }];
            let mut annotations = Annotations { classes, ..Annotations::default() };
            name_classes(&mut annotations, &labels).map(|()| annotations.classes.remove(0).name.unwrap())
        };
        assert_eq!(named(Some(1), None).as_deref(), Ok("dog"));
        assert_eq!(named(Some(0), Some("cat")).as_deref(), Ok("cat"));
        let contradiction =
            ClassNamesError::Contradiction { number: 0, own: "cow".to_owned(), given: "cat".to_owned() };
        assert_eq!(named(Some(0), Some("cow")), Err(contradiction));
        assert_eq!(named(Some(2), None), Err(ClassNamesError::Unnamed { number: 2 }));
        assert_eq!(named(None, Some("cat")), Err(ClassNamesError::HasNoNumbers));
    }
}

//! Output mappings as TOML text, and the user's own ones: `mappings/<id>.toml` next to the models folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::card::{CardError, FieldError, check_id, is_plain_file_name, parse_checked};
use super::error::LibraryError;
use super::models::{Library, labels_from_file};
use super::{built_in, built_in_labels};
use crate::domain::{LabelSet, Problem};
use crate::local_file;
use crate::sagemaker::spec::output_mapping::{MappedContent, MappingField, OutputMapping};

/// The extension of a mapping's file.
const EXTENSION: &str = "toml";

/// Parses a mapping. `path` is only named in errors.
///
/// # Errors
/// Text that is not TOML, an unknown or missing field, a value of the wrong type, or one that [`check_mapping`]
/// rejects.
pub fn parse_mapping(text: &str, path: &Path) -> Result<OutputMapping, CardError> {
    parse_checked(text, path, check_mapping)
}

/// The mapping as the text of a file.
///
/// # Errors
/// What [`check_mapping`] rejects.
pub fn write_mapping(mapping: &OutputMapping) -> Result<String, FieldError> {
    check_mapping(mapping)?;
    Ok(toml::to_string(mapping).expect("every field of a mapping has a form in TOML"))
}

/// Checks what a mapping's types cannot express.
///
/// # Errors
/// The first invalid field.
pub fn check_mapping(mapping: &OutputMapping) -> Result<(), FieldError> {
    let refuse = |field, reason: &str| Err(FieldError { field, reason: reason.to_owned() });
    check_id(&mapping.id)?;
    if mapping.name.trim().is_empty() {
        return refuse("name", "a mapping needs a name");
    }
    if let Some(labels) = &mapping.labels
        && built_in::label_set(labels).is_none()
        && !is_plain_file_name(labels)
    {
        return refuse(
            "labels",
            &format!("must be {} or the name of a file next to the mapping", built_in::known_label_sets()),
        );
    }
    let MappedContent::Classification(classes) = &mapping.content else {
        return Ok(());
    };
    classes.check().map_err(|fault| {
        let field = match fault.field {
            MappingField::Values => "prediction.classification.values",
            MappingField::Best => "prediction.classification.best",
            _ => "prediction.classification",
        };
        FieldError { field, reason: fault.reason }
    })
}

impl Library {
    /// The folder of the user's mappings. It need not exist.
    pub fn mapping_folder(&self) -> PathBuf {
        self.own_folder().with_file_name("mappings")
    }

    /// The user's mappings with their files, and unusable ones with the reason.
    pub fn mappings(&self) -> (Vec<(PathBuf, OutputMapping)>, Vec<Problem>) {
        let (mut mappings, mut problems) = (Vec::new(), Vec::new());
        let listing = fs::read_dir(self.mapping_folder()).into_iter().flatten();
        let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == EXTENSION));
        paths.sort();
        for path in paths {
            match read_mapping(&path) {
                Ok(mapping) => mappings.push((path, mapping)),
                Err(error) => problems.push(Problem::general(error.to_string())),
            }
        }
        (mappings, problems)
    }

    /// A mapping of the user by its id, or in a file, with its labels (empty if it names none).
    ///
    /// # Errors
    /// It does not exist, or it or its labels cannot be read.
    pub fn find_mapping(&self, id_or_path: &str) -> Result<(OutputMapping, LabelSet), LibraryError> {
        let given = Path::new(id_or_path);
        let own = self.mapping_folder().join(format!("{id_or_path}.{EXTENSION}"));
        let path = if !given.exists() && check_id(id_or_path).is_ok() && own.exists() { own } else { given.to_owned() };
        let mapping = read_mapping(&path)?;
        let labels = match &mapping.labels {
            None => LabelSet::default(),
            Some(name) => match built_in_labels(name) {
                Some(labels) => labels,
                None => labels_from_file(&path.with_file_name(name))?,
            },
        };
        Ok((mapping, labels))
    }

    /// Saves a mapping of the user, replacing one with the same id. `labels` is a label file whose names are written
    /// next to it.
    ///
    /// # Errors
    /// The mapping is invalid, or a file cannot be read or written.
    pub fn save_mapping(&self, mapping: &OutputMapping, labels: Option<&Path>) -> Result<PathBuf, LibraryError> {
        let mut mapping = mapping.clone();
        check_mapping(&mapping).map_err(LibraryError::MappingField)?;
        let folder = self.mapping_folder();
        fs::create_dir_all(&folder).map_err(LibraryError::io("create the folder", &folder))?;
        if let Some(labels) = labels {
            let name = format!("{}.txt", mapping.id);
            let path = folder.join(&name);
            let text = labels_from_file(labels)?.to_text();
            fs::write(&path, text).map_err(LibraryError::io("write the label file", &path))?;
            mapping.labels = Some(name);
        }
        let text = write_mapping(&mapping).map_err(LibraryError::MappingField)?;
        let path = folder.join(format!("{}.{EXTENSION}", mapping.id));
        local_file::replace(&path, text).map_err(LibraryError::io("write the mapping", &path))?;
        Ok(path)
    }
}

impl Library {
    /// Deletes a mapping of the user by its file, with the labels stored only for it, and returns its name.
    ///
    /// # Errors
    /// It is not one of the user's own, or cannot be deleted.
    pub fn delete_mapping(&self, path: &Path) -> Result<String, LibraryError> {
        let mapping = read_mapping(path)?;
        let folder = self.mapping_folder();
        if path.parent() != Some(folder.as_path()) {
            return Err(LibraryError::NotOwn { path: path.to_owned() });
        }
        fs::remove_file(path).map_err(LibraryError::io("delete the mapping", path))?;
        let is_kept_for_it = |name: &&String| {
            let stem = Path::new(name).file_stem();
            is_plain_file_name(name) && stem == Some(mapping.id.as_ref())
        };
        if let Some(name) = mapping.labels.as_ref().filter(is_kept_for_it) {
            let labels = folder.join(name);
            let removed = local_file::if_there(fs::remove_file(&labels));
            removed.map_err(LibraryError::io("delete the label file", &labels))?;
        }
        Ok(mapping.name)
    }
}

fn read_mapping(path: &Path) -> Result<OutputMapping, LibraryError> {
    let text = local_file::read_to_string(path).map_err(LibraryError::io("read the mapping", path))?;
    parse_mapping(&text, path).map_err(LibraryError::Mapping)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirs::AppDirs;

    #[test]
    fn mapping_is_deleted_with_its_labels_only() {
        let home = tempfile::tempdir().unwrap();
        let library = Library::open(&AppDirs::below(home.path()));
        let labels = home.path().join("mine.txt");
        fs::write(&labels, "cat\ndog\n").unwrap();
        let mapping = parse_mapping(CLASSIFIER, Path::new("m.toml")).unwrap();
        let saved = library.save_mapping(&mapping, Some(&labels)).unwrap();
        let kept = library.mapping_folder().join("my-classifier.txt");
        let other = library.mapping_folder().join("other.txt");
        fs::write(&other, "bird\n").unwrap();
        assert!(kept.exists());
        let name = library.delete_mapping(&saved).unwrap();
        assert_eq!(name, mapping.name);
        assert!(!saved.exists() && !kept.exists());
        assert!(labels.exists() && other.exists());

        let other = home.path().join("m.toml");
        fs::write(&other, CLASSIFIER).unwrap();
        let error = library.delete_mapping(&other).unwrap_err();
        assert!(matches!(error, LibraryError::NotOwn { .. }), "{error}");
        assert!(other.exists());
    }

    const DETECTOR: &str = r#"
id = "shelf-detector"
name = "Shelf detector"
labels = "shelf.pbtxt"

[prediction.detection]
boxes = "/detections/*/box"
classes = "/detections/*/class"
scores = "/detections/*/score"
box_format = "xywh"
box_space = "normalized"
class_offset = -1
"#;

    const CLASSIFIER: &str = r#"
id = "my-classifier"
name = "My classifier"
labels = "imagenet"

[prediction.classification]
scores = "/outputs/0"
values = "logits"
background = true
"#;

    #[test]
    fn mapping_round_trips() {
        for text in [DETECTOR, CLASSIFIER] {
            let mapping = parse_mapping(text, Path::new("m.toml")).unwrap();
            let written = write_mapping(&mapping).unwrap();
            assert_eq!(parse_mapping(&written, Path::new("m.toml")).unwrap(), mapping);
        }
    }

    #[test]
    fn former_prediction_name_is_read() {
        let former = CLASSIFIER.replace("[prediction.", "[answer.");
        let path = Path::new("m.toml");
        assert_eq!(parse_mapping(&former, path).unwrap(), parse_mapping(CLASSIFIER, path).unwrap());
        let error = parse_mapping(&former.replace("scores = \"/outputs/0\"\n", ""), path).unwrap_err();
        assert_eq!(error.line, 6, "{error}");
    }

    #[test]
    fn invalid_mapping_has_its_position() {
        for (text, from, to, line, reason) in [
            (DETECTOR, "boxes = ", "box = ", 7, "unknown field `box`"),
            (DETECTOR, "\"xywh\"", "\"xwyh\"", 10, "unknown variant"),
            (DETECTOR, "/detections/*/box", "detections", 7, "not a path in JSON"),
            (DETECTOR, "shelf.pbtxt", "../shelf.pbtxt", 4, "next to the mapping"),
            (DETECTOR, "shelf-detector", "Shelf/1", 2, "lower-case letters"),
            (CLASSIFIER, "scores = \"/outputs/0\"\n", "", 6, "path of the scores"),
            (CLASSIFIER, "background", "classes = \"/c\"\nbackground", 8, "logits require"),
        ] {
            assert!(text.contains(from), "{from}");
            let text = text.replacen(from, to, 1);
            let error = parse_mapping(&text, Path::new("m.toml")).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert_eq!(error.line, line, "{error}");
        }
    }

    #[test]
    fn saved_mapping_is_found_with_its_labels() {
        let home = tempfile::tempdir().unwrap();
        let library = Library::open(&AppDirs::below(home.path()));
        assert!(library.mappings().0.is_empty());
        let labels = home.path().join("classes.pbtxt");
        fs::write(&labels, "item { id: 3 name: 'tin' }").unwrap();
        let mapping = parse_mapping(DETECTOR, Path::new("m.toml")).unwrap();
        let path = library.save_mapping(&mapping, Some(&labels)).unwrap();
        let (found, names) = library.find_mapping("shelf-detector").unwrap();
        assert_eq!(found.content, mapping.content);
        assert_eq!(names.get(3), Some("tin"));
        assert_eq!(library.find_mapping(path.to_str().unwrap()).unwrap().0, found);
        // Saved again, with the labels next to it.
        let text_file = library.mapping_folder().join("shelf-detector.txt");
        library.save_mapping(&found, Some(&text_file)).unwrap();
        let (_, names) = library.find_mapping("shelf-detector").unwrap();
        assert_eq!(names.get(3), Some("tin"));
        fs::write(library.mapping_folder().join("broken.toml"), "id = 3").unwrap();
        let (known, problems) = library.mappings();
        assert_eq!((known.len(), problems.len()), (1, 1), "{problems:?}");
        let error = library.find_mapping("no-such").unwrap_err().to_string();
        assert!(error.contains("read the mapping"), "{error}");
    }
}

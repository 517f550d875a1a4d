//! The files to upload and their keys.

use std::collections::HashSet;
use std::path::{MAIN_SEPARATOR, Path};
use std::sync::Arc;

use crate::aws::upload::plan::SkippedFiles;
use crate::domain::{Problem, Sample, SampleUri};
use crate::image::source::{LocalSource, Source, SourceError, WithRecords};
use crate::tasks::{Cancelled, TaskControl};

/// Files to upload, not yet compared with anything. Their names have `/` between their parts, and are spelled exactly
/// as in the file system: names that only look alike stay different.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalFiles {
    pub files: Vec<Sample>,
    pub problems: Vec<Problem>,
    pub left_out: SkippedFiles,
}

/// The images and TFRecord files of a folder and all folders below it, or a single file. Hidden files are skipped, and
/// symbolic links are followed, as when a folder is opened.
///
/// # Errors
/// The path does not exist or is not readable, or the task was canceled.
pub fn files_below(path: &Path, control: &TaskControl) -> Result<LocalFiles, SourceError> {
    let source = Arc::new(LocalSource::open(path)?);
    let records = WithRecords::over(Arc::clone(&source) as Arc<dyn Source>);
    let mut found = LocalFiles::default();
    for page in source.pages() {
        control.checkpoint().map_err(|Cancelled| SourceError::Cancelled)?;
        found.problems.extend(page.problems);
        for file in page.samples {
            if records.holds_images(&file) {
                found.files.push(file);
            } else {
                found.left_out.others += 1;
            }
        }
        control.set_detail(format!("{} files found", found.files.len()));
    }
    let left_out = source.left_out();
    found.left_out.hidden += left_out.hidden;
    found.left_out.others += left_out.others;
    Ok(found)
}

/// The files that contain these samples, each once, named relative to `root`; an empty root contains nothing.
///
/// # Errors
/// The task was canceled.
pub fn files_of<'u>(
    root: &str,
    samples: impl IntoIterator<Item = &'u SampleUri>,
    control: &TaskControl,
) -> Result<LocalFiles, Cancelled> {
    let mut found = LocalFiles::default();
    let (mut files, mut names) = (HashSet::new(), HashSet::new());
    for sample in samples {
        let path = sample.file();
        if !files.insert(path) {
            continue;
        }
        control.checkpoint()?;
        let uri = SampleUri::new(path);
        let name = name_below(root, path);
        let listed =
            LocalSource::open(Path::new(path)).map(|source| source.pages().flat_map(|page| page.samples).next());
        match listed {
            Ok(Some(_)) if !names.insert(name.clone()) => {
                let message = format!("another file has the same name {name}; rename one of them");
                found.problems.push(Problem::new(uri, message));
            }
            Ok(Some(file)) => found.files.push(Sample { name, ..file }),
            Ok(None) => found.problems.push(Problem::new(uri, SourceError::NotFound.to_string())),
            Err(error) => found.problems.push(Problem::new(uri, error.to_string())),
        }
    }
    Ok(found)
}

/// The path relative to `root`, with `/` between its parts; the file name if it is outside.
fn name_below(root: &str, path: &str) -> String {
    let root = root.trim_end_matches(MAIN_SEPARATOR);
    let below = Some(path)
        .filter(|_| !root.is_empty())
        .and_then(|path| path.strip_prefix(root))
        .and_then(|rest| rest.strip_prefix(MAIN_SEPARATOR));
    let name = below.unwrap_or_else(|| path.rsplit(MAIN_SEPARATOR).next().unwrap_or(path));
    if MAIN_SEPARATOR == '/' { name.to_owned() } else { name.replace(MAIN_SEPARATOR, "/") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::ProgressUnit;

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"content").unwrap();
        }
        folder
    }

    fn names(found: &LocalFiles) -> Vec<&str> {
        found.files.iter().map(|file| file.name.as_str()).collect()
    }

    #[test]
    fn images_and_tfrecords_are_uploaded() {
        let folder = folder_with(&[
            "a/1.jpg",
            "train.tfrecord",
            "weights-00000-of-00001",
            "notes.txt",
            ".hidden.jpg",
            "고양이 +.png",
        ]);
        let control = TaskControl::new(ProgressUnit::Bytes);
        let found = files_below(folder.path(), &control).unwrap();
        assert_eq!(names(&found), ["a/1.jpg", "train.tfrecord", "고양이 +.png"]);
        assert_eq!((found.left_out.hidden, found.left_out.others), (1, 2));
    }

    #[test]
    fn sample_files_are_unique_and_relative() {
        let folder = folder_with(&["sub/1.jpg", "train.tfrecord"]);
        let other = folder_with(&["1.jpg", "train.tfrecord"]);
        let uri = |folder: &tempfile::TempDir, name: &str| SampleUri::new(folder.path().join(name).to_str().unwrap());
        let uris = [
            uri(&folder, "sub/1.jpg"),
            uri(&folder, "train.tfrecord/#0"),
            uri(&folder, "train.tfrecord/#7"),
            uri(&folder, "gone.jpg"),
            uri(&other, "1.jpg"),
            uri(&other, "train.tfrecord/#0"),
        ];
        let control = TaskControl::new(ProgressUnit::Bytes);
        let found = files_of(folder.path().to_str().unwrap(), &uris, &control).unwrap();
        assert_eq!(names(&found), ["sub/1.jpg", "train.tfrecord", "1.jpg"]);
        let problems: Vec<String> = found.problems.iter().map(Problem::to_string).collect();
        assert!(problems[0].contains("gone.jpg: "), "{problems:?}");
        assert!(problems[1].contains("train.tfrecord"));
    }
}

//! Plans an upload without writing anything: its files, their keys, and which objects already exist.

use std::collections::{HashMap, HashSet};
use std::path::{MAIN_SEPARATOR, Path};
use std::sync::Arc;

use super::content::{ContentError, sha256_of};
use crate::aws::upload::plan::{PlannedFile, PlannedState, SkippedFiles, UploadPlan};
use crate::aws::{Aws, AwsError, AwsErrorKind, ListRequest, ObjectInfo, S3, StoredObject};
use crate::domain::{Problem, S3Place, Sample, SampleUri, human_bytes};
use crate::image::source::{LocalSource, Source, SourceError, WithRecords};
use crate::tasks::{Cancelled, TaskControl, in_parallel};

/// The number of objects that are queried for their checksum in parallel.
const ASKED_AT_ONCE: usize = 16;
/// S3's limit, in bytes of UTF-8.
const LONGEST_KEY: usize = 1024;

/// Compares the files with existing objects: by listing, and for objects of equal size by their stored checksum.
/// `target` is treated as a folder.
///
/// # Errors
/// The bucket cannot be listed, the connection fails, or the task was canceled.
pub fn plan(aws: &Aws, target: &S3Place, local: LocalFiles, control: &TaskControl) -> Result<UploadPlan, AwsError> {
    let mut plan = UploadPlan {
        target: S3Place { address: target.address.as_folder(), ..target.clone() },
        files: Vec::new(),
        problems: local.problems,
        left_out: local.left_out,
    };
    for file in local.files {
        match key_problem(&plan.key_of(&file)) {
            Some(problem) => plan.problems.push(Problem::new(file.uri, problem)),
            None => plan.files.push(PlannedFile { file, state: PlannedState::New }),
        }
    }
    let s3 = aws.s3(&target.access);
    let there = list(&s3, &plan, control)?;
    compare(&s3, &mut plan, &there, control)?;
    Ok(plan)
}

/// Why some programs could not list a key.
fn key_problem(key: &str) -> Option<String> {
    if key.chars().any(char::is_control) {
        return Some("has a control character in its name, which many S3 tools cannot list; rename it".to_owned());
    }
    (key.len() > LONGEST_KEY).then(|| {
        format!(
            "needs a key of {} bytes, but S3 allows {LONGEST_KEY}; rename it, or choose a shorter prefix",
            key.len()
        )
    })
}

/// The existing objects at the files' keys, by file index.
fn list(s3: &S3, plan: &UploadPlan, control: &TaskControl) -> Result<HashMap<usize, ObjectInfo>, AwsError> {
    let mut there = HashMap::new();
    let names = || plan.files.iter().map(|planned| planned.file.name.as_str());
    let (Some(first), Some(last)) = (names().min(), names().max()) else {
        return Ok(there);
    };
    // A key without its last character sorts before the key itself.
    let mut before_first = first.to_owned();
    before_first.pop();
    let prefix = &plan.target.address.prefix;
    let indexes: HashMap<&str, usize> = names().enumerate().map(|(index, name)| (name, index)).collect();
    control.set_step(format!("listing {}", plan.target.address));
    control.set_detail("");
    let mut listing = s3.list(ListRequest {
        bucket: plan.target.address.bucket.clone(),
        prefix: prefix.clone(),
        start_after: Some(format!("{prefix}{before_first}")).filter(|key| !key.is_empty()),
        ..ListRequest::default()
    })?;
    while let Some(page) = listing.next_page(Some(control)) {
        let page = page?;
        // Keys are sorted by bytes, so none of ours can follow.
        let is_behind = |object: &ObjectInfo| object.key.get(prefix.len()..) > Some(last);
        let is_last = page.objects.last().is_some_and(is_behind);
        for object in page.objects {
            let name = object.key.get(prefix.len()..).unwrap_or_default();
            if let Some(index) = indexes.get(name) {
                there.insert(*index, object);
            }
        }
        if is_last {
            break;
        }
    }
    Ok(there)
}

/// Fills in the states of files with an existing object.
fn compare(
    s3: &S3,
    plan: &mut UploadPlan,
    there: &HashMap<usize, ObjectInfo>,
    control: &TaskControl,
) -> Result<(), AwsError> {
    let mut same_size = Vec::new();
    for (index, object) in there {
        let planned = &mut plan.files[*index];
        if object.size_bytes == planned.file.size_bytes {
            same_size.push(*index);
        } else {
            planned.state = other_size(object);
        }
    }
    same_size.sort_unstable();
    if same_size.is_empty() {
        return Ok(());
    }
    control.set_step(format!("comparing {} files with S3", same_size.len()));
    let outcomes = in_parallel(ASKED_AT_ONCE, same_size.len(), |_, number| {
        let index = same_size[number];
        control.checkpoint().map_err(|_| AwsError::cancelled())?;
        compare_one(s3, plan, &plan.files[index].file, &there[&index], control)
    })?;
    let mut unreadable = Vec::new();
    for (index, outcome) in same_size.into_iter().zip(outcomes) {
        match outcome {
            Compared::Is(state) => plan.files[index].state = state,
            Compared::Unreadable(error) => unreadable.push((index, error)),
        }
    }
    for (index, error) in unreadable.into_iter().rev() {
        let planned = plan.files.remove(index);
        let problem = Problem::new(planned.file.uri, error.to_string());
        plan.problems.push(problem);
    }
    Ok(())
}

enum Compared {
    Is(PlannedState),
    Unreadable(ContentError),
}

fn compare_one(
    s3: &S3,
    plan: &UploadPlan,
    file: &Sample,
    listed: &ObjectInfo,
    control: &TaskControl,
) -> Result<Compared, AwsError> {
    let bucket = &plan.target.address.bucket;
    let stored = match s3.stored(bucket, &plan.key_of(file), Some(control)) {
        Ok(stored) => stored,
        Err(error) if error.kind == AwsErrorKind::NotFound => {
            return Ok(Compared::Is(PlannedState::New));
        }
        Err(error) if error.kind == AwsErrorKind::Cancelled || error.kind.concerns_everything() => {
            return Err(error);
        }
        Err(error) => {
            return Ok(Compared::Is(PlannedState::Conflict {
                etag: listed.etag.clone(),
                why: format!("an object exists, but its content could not be compared. {error}"),
            }));
        }
    };
    let conflict =
        || Compared::Is(PlannedState::Conflict { etag: stored.etag.clone(), why: why_not_same(&stored).to_owned() });
    let Some(expected) = stored.sha256 else {
        return Ok(conflict());
    };
    match sha256_of(Path::new(file.uri.as_str()), control) {
        Ok(sha256) if sha256 == expected => Ok(Compared::Is(PlannedState::Same)),
        Ok(_) => Ok(conflict()),
        Err(ContentError::Cancelled) => Err(AwsError::cancelled()),
        Err(error) => Ok(Compared::Unreadable(error)),
    }
}

fn other_size(object: &ObjectInfo) -> PlannedState {
    PlannedState::Conflict {
        etag: object.etag.clone(),
        why: format!("an object of a different size ({}) exists", human_bytes(object.size_bytes)),
    }
}

/// Why a stored object is not known to be the same.
pub(super) fn why_not_same(stored: &StoredObject) -> &'static str {
    if stored.sha256.is_some() {
        "an object with different content exists"
    } else {
        "an object without a checksum exists, so its content could not be compared"
    }
}

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

    #[test]
    fn keys_that_s3_cannot_list_are_refused() {
        assert_eq!(key_problem("photos/고양이 + %.jpg"), None);
        assert!(key_problem("a\nb.jpg").unwrap().contains("control"));
        assert!(key_problem(&"é".repeat(513)).unwrap().contains("1026 bytes"));
    }

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

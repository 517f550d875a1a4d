//! Plans an upload without writing anything.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::content::{ContentError, sha256_of};
use super::files::LocalFiles;
use crate::aws::upload::plan::{PlannedFile, PlannedState, UploadPlan};
use crate::aws::{Aws, AwsError, AwsErrorKind, ListRequest, ObjectInfo, S3, StoredObject};
use crate::domain::{Problem, S3Place, Sample, human_bytes};
use crate::tasks::TaskControl;

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
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let files = &plan.files;
    let compare_some = || {
        while let Some(index) = same_size.get(next.fetch_add(1, Ordering::Relaxed)) {
            let file = &files[*index].file;
            let object = &there[index];
            let outcome = control
                .checkpoint()
                .map_err(|_| AwsError::cancelled())
                .and_then(|()| compare_one(s3, plan, file, object, control));
            let is_over = outcome.is_err();
            let mut outcomes = outcomes.lock();
            outcomes.push((*index, outcome));
            drop(outcomes);
            if is_over {
                // The others end at the next file.
                next.store(same_size.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..ASKED_AT_ONCE.min(same_size.len()) {
            scope.spawn(compare_some);
        }
    });
    let outcomes = outcomes.into_inner();
    let mut unreadable = Vec::new();
    for (index, outcome) in outcomes {
        match outcome? {
            Compared::Is(state) => plan.files[index].state = state,
            Compared::Unreadable(error) => unreadable.push((index, error)),
        }
    }
    unreadable.sort_unstable_by_key(|(index, _)| std::cmp::Reverse(*index));
    for (index, error) in unreadable {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_s3_cannot_list_are_refused() {
        assert_eq!(key_problem("photos/고양이 + %.jpg"), None);
        assert!(key_problem("a\nb.jpg").unwrap().contains("control"));
        assert!(key_problem(&"é".repeat(513)).unwrap().contains("1026 bytes"));
    }
}

//! Looking into S3 for a place to open, and who is signed in there.

use std::sync::Arc;

use super::Shared;
use crate::aws::{AwsError, AwsErrorKind, ListRequest, ListedPage};
use crate::domain::{S3Access, S3Address};
use crate::state::{Event, S3Failure, S3FolderPage, TaskId};
use crate::tasks::TaskControl;

/// Pages of a folder that are listed in one go; the rest is listed when somebody wants it.
const PAGES_AT_ONCE: usize = 10;

pub(super) fn read_setup(shared: &Arc<Shared>) {
    shared.spawn_reporting(
        "read the AWS configuration",
        |shared| {
            let setup = shared.aws.setup();
            Event::AwsSetupRead(setup.map_err(|error| error.to_string()))
        },
        |mistake| Event::AwsSetupRead(Err(mistake)),
    );
}

pub(super) fn sign_in(shared: &Arc<Shared>, access: S3Access, task: TaskId, control: TaskControl) {
    let of_mistake = access.clone();
    shared.spawn_reporting(
        "sign in to S3",
        move |shared| {
            let result = shared.aws.s3(&access).renewed_identity(Some(&control));
            Event::SignedIn {
                renewal: renewal(shared, &access),
                result: result.map_err(|error| failure(shared, &access, error)),
                access,
                task,
            }
        },
        move |mistake| Event::SignedIn {
            access: of_mistake,
            task,
            result: Err(failed(mistake)),
            renewal: None,
        },
    );
}

pub(super) fn list_buckets(
    shared: &Arc<Shared>,
    access: S3Access,
    task: TaskId,
    control: TaskControl,
) {
    shared.spawn_reporting(
        "list buckets",
        move |shared| {
            let buckets = shared.aws.s3(&access).list_buckets(Some(&control));
            let names = |buckets: Vec<crate::aws::BucketInfo>| {
                buckets.into_iter().map(|bucket| bucket.name).collect()
            };
            Event::BucketsListed {
                task,
                result: buckets
                    .map(names)
                    .map_err(|error| failure(shared, &access, error)),
            }
        },
        move |mistake| Event::BucketsListed {
            task,
            result: Err(failed(mistake)),
        },
    );
}

/// A part of a folder that is to be listed.
pub(super) struct FolderListing {
    pub(super) access: S3Access,
    pub(super) folder: S3Address,
    /// Where the part before ended.
    pub(super) continuation: Option<String>,
    pub(super) task: TaskId,
    pub(super) control: TaskControl,
}

pub(super) fn list_folder(shared: &Arc<Shared>, listing: FolderListing) {
    let (folder, task) = (listing.folder.clone(), listing.task);
    let ended = move |result| Event::S3FolderEnded {
        folder,
        task,
        result,
    };
    let of_mistake = ended.clone();
    shared.spawn_reporting(
        "list an S3 folder",
        move |shared| ended(list_pages(shared, listing)),
        move |mistake| of_mistake(Err(failed(mistake))),
    );
}

/// Tells of each page, and gives where the listing goes on.
fn list_pages(shared: &Shared, listing: FolderListing) -> Result<Option<String>, S3Failure> {
    let s3 = shared.aws.s3(&listing.access);
    let mut request = ListRequest {
        bucket: listing.folder.bucket.clone(),
        prefix: listing.folder.prefix.clone(),
        by_folder: true,
        continuation: listing.continuation,
        max_keys: None,
    };
    for _ in 0..PAGES_AT_ONCE {
        let page = s3
            .list_page(&request, Some(&listing.control))
            .map_err(|error| failure(shared, &listing.access, error))?;
        request.continuation.clone_from(&page.continuation);
        let page = seen(&listing.folder, page);
        listing
            .control
            .add_done(page.objects + page.folders.len() as u64);
        let told = shared.report(Event::S3FolderListed {
            folder: listing.folder.clone(),
            task: listing.task,
            page,
        });
        if !told || request.continuation.is_none() {
            break;
        }
    }
    Ok(request.continuation)
}

/// An empty object of the folder's own name stands for the folder.
fn seen(folder: &S3Address, page: ListedPage) -> S3FolderPage {
    let objects = page.objects.iter();
    S3FolderPage {
        objects: objects.filter(|object| object.key != folder.prefix).count() as u64,
        folders: page.folders,
    }
}

pub(super) fn failure(shared: &Shared, access: &S3Access, error: AwsError) -> S3Failure {
    let needs_renewal = error.kind == AwsErrorKind::ExpiredCredentials;
    match error.kind {
        AwsErrorKind::Cancelled => S3Failure::Cancelled,
        _ => S3Failure::Failed {
            renewal: needs_renewal.then(|| renewal(shared, access)).flatten(),
            message: error.message,
        },
    }
}

pub(super) fn failed(message: String) -> S3Failure {
    S3Failure::Failed {
        message,
        renewal: None,
    }
}

/// The command that signs in anew, for sign-ins that a person makes.
pub(super) fn renewal(shared: &Shared, access: &S3Access) -> Option<String> {
    let setup = shared.aws.setup().ok()?;
    setup.renewal_of(&access.credentials).map(str::to_owned)
}

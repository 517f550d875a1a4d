//! Browsing S3 for a location to open, and signing in.

use std::sync::Arc;

use crate::aws::{AwsError, AwsErrorKind, ListRequest, ListedPage};
use crate::domain::{S3Access, S3Address};
use crate::window::effects::{Effects, Shared};
use crate::window::state::{Failure, FolderListing, S3Effect, S3Event, S3FolderPage, Ticket};

pub(crate) fn carry_out(effects: &mut Effects, effect: S3Effect) {
    let shared = &effects.shared;
    match effect {
        S3Effect::ReadSetup => read_setup(shared),
        S3Effect::SignIn { access, ticket } => sign_in(shared, access, ticket),
        S3Effect::ListBuckets { access, ticket } => list_buckets(shared, access, ticket),
        S3Effect::ListFolder { listing, ticket } => list_folder(shared, listing, ticket),
    }
}

/// The number of pages of a folder per request; the rest is listed on demand.
const PAGES_AT_ONCE: usize = 10;

fn read_setup(shared: &Arc<Shared>) {
    let read = |shared: &Arc<Shared>| shared.aws.setup().map_err(|error| error.to_string());
    shared.run("read the AWS configuration", read, S3Event::SetupRead);
}

fn sign_in(shared: &Arc<Shared>, access: S3Access, ticket: Ticket) {
    let of_event = access.clone();
    shared.run_task(
        "sign in to S3",
        ticket,
        move |shared, ticket| {
            let identity = shared.aws.s3(&access).renewed_identity(Some(&ticket.control));
            let renewal = renewal(shared, &access);
            Ok((identity.map_err(|error| failure(shared, &access, error)), renewal))
        },
        move |task, result| {
            let (result, renewal) = result.unwrap_or_else(|failure| (Err(failure), None));
            S3Event::SignedIn { access: of_event, task, result, renewal }
        },
    );
}

fn list_buckets(shared: &Arc<Shared>, access: S3Access, ticket: Ticket) {
    shared.run_task(
        "list buckets",
        ticket,
        move |shared, ticket| {
            let buckets = shared.aws.s3(&access).list_buckets(Some(&ticket.control));
            let buckets = buckets.map_err(|error| failure(shared, &access, error))?;
            Ok(buckets.into_iter().map(|bucket| bucket.name).collect())
        },
        S3Event::BucketsListed,
    );
}

fn list_folder(shared: &Arc<Shared>, listing: FolderListing, ticket: Ticket) {
    let folder = listing.folder.clone();
    shared.run_task(
        "list an S3 folder",
        ticket,
        move |shared, ticket| list_pages(shared, listing, ticket),
        move |task, result| S3Event::FolderEnded { folder, task, result },
    );
}

/// Reports each page, and returns the token of the next one.
fn list_pages(shared: &Shared, listing: FolderListing, ticket: &Ticket) -> Result<Option<String>, Failure> {
    let s3 = shared.aws.s3(&listing.access);
    let mut request = ListRequest {
        bucket: listing.folder.bucket.clone(),
        prefix: listing.folder.prefix.clone(),
        start_after: None,
        by_folder: true,
        continuation: listing.continuation,
        max_keys: None,
    };
    for _ in 0..PAGES_AT_ONCE {
        let page =
            s3.list_page(&request, Some(&ticket.control)).map_err(|error| failure(shared, &listing.access, error))?;
        request.continuation.clone_from(&page.continuation);
        let page = page_of(&listing.folder, page);
        ticket.control.add_done(page.objects + page.folders.len() as u64);
        let is_open = shared.report(S3Event::FolderListed { folder: listing.folder.clone(), task: ticket.id, page });
        if !is_open || request.continuation.is_none() {
            break;
        }
    }
    Ok(request.continuation)
}

/// Converts a page. An empty object with the folder's own name stands for the folder.
fn page_of(folder: &S3Address, page: ListedPage) -> S3FolderPage {
    let objects = page.objects.iter();
    S3FolderPage { objects: objects.filter(|object| object.key != folder.prefix).count() as u64, folders: page.folders }
}

pub(crate) fn failure(shared: &Shared, access: &S3Access, error: AwsError) -> Failure {
    let needs_renewal = error.kind == AwsErrorKind::ExpiredCredentials;
    match error.kind {
        AwsErrorKind::Cancelled => Failure::Cancelled,
        _ => Failure::Failed {
            renewal: needs_renewal.then(|| renewal(shared, access)).flatten(),
            message: error.message,
        },
    }
}

/// The command that renews the sign-in, if the user has to run one.
pub(crate) fn renewal(shared: &Shared, access: &S3Access) -> Option<String> {
    let setup = shared.aws.setup().ok()?;
    setup.renewal_of(&access.credentials).map(str::to_owned)
}

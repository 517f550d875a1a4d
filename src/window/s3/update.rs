//! Finding a location in S3, and signing in there.

use std::path::Path;

use crate::domain::{Credentials, Identity, S3Access, S3Address, S3Link, S3LinkError, S3Place};
use crate::tasks::ProgressUnit;
use crate::window::state::{
    Failure, FolderListing, Overlay, S3Command, S3Effect, S3Event, S3Picker, S3Start, S3Tree, State, TaskId, TaskKind,
};
use crate::window::tasks::update::{begin, end};
use crate::window::{browse, state, tasks};

pub(crate) fn on_command(state: &mut State, command: S3Command) {
    match command {
        S3Command::SetAccess(access) => set_access(state, access),
        S3Command::ListBuckets => list_buckets(state),
        S3Command::BrowseTo(address) => browse_to(state, &address),
        S3Command::SetFolderOpen(folder, is_open) => set_open(state, &folder, is_open),
        S3Command::ListMore(folder) => list_more(state, &folder),
        S3Command::SignIn(access) => renew(state, &access),
    }
}

pub(crate) fn on_event(state: &mut State, event: S3Event) {
    match event {
        S3Event::SetupRead(setup) => state.s3.setup = Some(setup),
        S3Event::SignedIn { access, task, result, renewal } => {
            signed_in(state, &access, task, result, renewal);
        }
        S3Event::BucketsListed(task, result) => buckets_listed(state, task, result),
        S3Event::FolderListed { folder, task, page } => {
            state.s3.tree.folder_page(&folder, task, page);
        }
        S3Event::FolderEnded { folder, task, result } => folder_ended(state, &folder, task, result),
    }
}

/// Shows or hides the dialog, with the open location or the last one.
pub(crate) fn toggle_picker(state: &mut State) {
    if state.overlay == Overlay::OpenS3 {
        state.overlay = Overlay::None;
        return;
    }
    let open = state.place().cloned();
    let is_first = state.s3.start.serial == 0;
    if let Some(place) = &open {
        show_picker(state, place.address.to_string(), Some(place));
    } else if is_first && let Some(last) = state.settings.recent_places.first().cloned() {
        show_picker(state, String::new(), Some(&last));
    } else {
        let address = state.s3.start.address.clone();
        show_picker(state, address, None);
    }
}

/// Shows the dialog with this text as the address.
fn show_picker(state: &mut State, address: String, place: Option<&S3Place>) {
    state.overlay = Overlay::OpenS3;
    state.s3.start = S3Start {
        serial: state.ids.next(),
        address,
        layout: place.map_or(state.s3.start.layout, |place| place.layout),
    };
    if let Some(place) = place {
        set_access(state, place.access.clone());
    }
    state.s3.setup = None;
    state.effects.push(S3Effect::ReadSetup);
}

/// Opens a typed path if it is an S3 address. An invalid address is shown in the dialog with the reason.
pub(crate) fn open_typed(state: &mut State, path: &Path) -> bool {
    let Some(text) = path.to_str().filter(|text| S3Link::is_address(text)) else {
        return false;
    };
    match place_of(state, text) {
        Ok(place) => browse::update::open_place(state, place),
        Err(_) => show_picker(state, text.to_owned(), None),
    }
    true
}

/// The location for an address, with the same access as the last time for a known bucket.
fn place_of(state: &State, text: &str) -> Result<S3Place, S3LinkError> {
    let link = S3Link::parse(text)?;
    let is_same = |known: &&S3Place| {
        known.address.bucket == link.address.bucket
            && (link.endpoint.is_none() || known.access.endpoint == link.endpoint)
    };
    let known = state.settings.recent_places.iter().find(is_same);
    Ok(match known {
        Some(known) => S3Place { address: link.address, ..known.clone() },
        None => S3Place::from_link(link),
    })
}

/// Changes the credentials and the server of the dialog, and drops what was listed with others.
pub(crate) fn set_access(state: &mut State, access: S3Access) {
    if state.s3.access == access {
        return;
    }
    tasks::update::cancel_browsing(state);
    state.s3.access = access;
    state.s3.tree = S3Tree::default();
}

fn list_buckets(state: &mut State) {
    if state.s3.tree.bucket_task().is_some() {
        return;
    }
    let access = state.s3.access.clone();
    check_sign_in(state, &access);
    let title = format!("List the buckets of {}", access.credentials);
    let ticket = begin(state, TaskKind::Browse, ProgressUnit::Steps, title);
    state.s3.tree.buckets_requested(ticket.id);
    state.effects.push(S3Effect::ListBuckets { access, ticket });
}

fn buckets_listed(state: &mut State, task: TaskId, result: Result<Vec<String>, Failure>) {
    end(state, task, result.as_ref().err());
    state.s3.tree.buckets_listed(task, result);
}

/// Opens the tree down to this address, which may be in an unlisted bucket.
fn browse_to(state: &mut State, address: &S3Address) {
    let access = state.s3.access.clone();
    check_sign_in(state, &access);
    state.s3.tree.add_bucket(&address.bucket);
    for folder in S3Picker::way_to(address) {
        set_open(state, &folder, true);
    }
}

fn set_open(state: &mut State, folder: &S3Address, is_open: bool) {
    state.s3.tree.set_open(folder, is_open);
    if state.s3.tree.wants_listing(folder) {
        list_folder(state, folder);
    }
}

/// Lists a folder, continues after the last page, or restarts after a failure.
fn list_more(state: &mut State, folder: &S3Address) {
    if state.s3.tree.is_listing(folder) {
        return;
    }
    if state.s3.tree.continuation(folder).is_none() {
        state.s3.tree.forget(folder);
    }
    list_folder(state, folder);
}

fn list_folder(state: &mut State, folder: &S3Address) {
    let ticket = begin(state, TaskKind::Browse, ProgressUnit::Steps, format!("List {folder}"));
    let continuation = state.s3.tree.continuation(folder);
    state.s3.tree.folder_requested(folder, ticket.id);
    let listing = FolderListing { access: state.s3.access.clone(), folder: folder.clone(), continuation };
    state.effects.push(S3Effect::ListFolder { listing, ticket });
}

fn folder_ended(state: &mut State, folder: &S3Address, task: TaskId, result: Result<Option<String>, Failure>) {
    end(state, task, result.as_ref().err());
    state.s3.tree.folder_ended(folder, task, result);
}

/// Requests the identity of an access if it is unknown or was rejected.
pub(crate) fn check_sign_in(state: &mut State, access: &S3Access) {
    let is_known =
        state.sign_ins.get(access).is_some_and(|sign_in| sign_in.identity.is_some() && sign_in.failure.is_none());
    if !is_known {
        renew(state, access);
    }
}

/// Reads the credentials again and requests the identity.
fn renew(state: &mut State, access: &S3Access) {
    let known = state.sign_ins.get(access);
    if known.is_some_and(state::SignIn::is_asking) {
        return;
    }
    let title = match &access.credentials {
        Credentials::Anonymous => "Sign in to S3 anonymously".to_owned(),
        credentials => format!("Sign in to S3 with {credentials}"),
    };
    let ticket = begin(state, TaskKind::SignIn, ProgressUnit::Steps, title);
    state.sign_ins.begin(access, ticket.id);
    state.effects.push(S3Effect::SignIn { access: access.clone(), ticket });
}

fn signed_in(
    state: &mut State,
    access: &S3Access,
    task: TaskId,
    result: Result<Identity, Failure>,
    renewal: Option<String>,
) {
    end(state, task, result.as_ref().err());
    let is_signed_in = result.is_ok();
    state.sign_ins.finish(access, task, result, renewal);
    let place = state.place();
    if is_signed_in && place.is_some_and(|place| place.access == *access) {
        // Images that failed because the sign-in had expired.
        browse::update::watch::read_again(state);
    }
}

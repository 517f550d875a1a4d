//! Locations in S3, the dialog for finding them, and signing in.

use std::path::PathBuf;

use super::{command, event, page, source_of};
use crate::domain::{Credentials, Identity, S3Access, S3Address, S3Layout, S3Place, SampleId};
use crate::window::state::{
    Action, BrowseCommand, BrowseEffect, BrowseEvent, Command, Effect, Event, Failure, Overlay, S3Command, S3Effect,
    S3Event, S3FolderPage, S3RowKind, State, TaskId, TaskSignal,
};

fn access(profile: &str) -> S3Access {
    S3Access { credentials: Credentials::Profile(profile.to_owned()), ..S3Access::default() }
}

fn typed(state: &mut State, text: &str) -> Vec<Effect> {
    command(state, Command::Browse(BrowseCommand::Open(PathBuf::from(text))))
}

fn place(state: &State) -> &S3Place {
    state.place().unwrap()
}

/// The task that requests the identity.
fn sign_in_of(effects: &[Effect]) -> TaskId {
    let found = effects.iter().find_map(|effect| match effect {
        Effect::S3(S3Effect::SignIn { ticket, .. }) => Some(ticket.id),
        _ => None,
    });
    found.expect("it is asked who is signed in")
}

fn signed_in(state: &mut State, access: &S3Access, task: TaskId, expires_ms: Option<i64>) -> Vec<Effect> {
    event(
        state,
        Event::S3(S3Event::SignedIn {
            access: access.clone(),
            task,
            result: Ok(Identity::unasked("alice", expires_ms)),
            renewal: None,
        }),
    )
}

fn expired() -> Failure {
    Failure::Failed {
        message: "The sign-in is over".to_owned(),
        renewal: Some("aws sso login --profile work".to_owned()),
    }
}

#[test]
fn typed_address_opens_and_identifies_the_user() {
    let mut state = State::default();
    let effects = typed(&mut state, "s3://photos/2024/");
    assert!(has!(effects, Effect::Browse(BrowseEffect::Open { .. })), "{effects:?}");
    assert!(has!(effects, Effect::S3(S3Effect::SignIn { .. })), "{effects:?}");
    assert_eq!(place(&state).address.to_string(), "s3://photos/2024/");
    assert_eq!(place(&state).access, S3Access::default());
}

#[test]
fn known_bucket_opens_the_same_way() {
    let mut state = State::default();
    let known =
        S3Place { address: S3Address::new("photos", "2024/"), access: access("work"), layout: S3Layout::Folder };
    let effects = command(&mut state, BrowseCommand::OpenPlace(Box::new(known.clone())));
    assert!(state.settings.recent_places.is_empty(), "not before it is there");
    event(
        &mut state,
        BrowseEvent::Opened {
            source: source_of(&effects),
            name: "s3://photos/2024/".to_owned(),
            place: Some(known.clone()),
            list_of: None,
        },
    );
    assert_eq!(state.settings.recent_places, [known]);
    typed(&mut state, "s3://photos/2025/");
    assert_eq!(place(&state).access, access("work"));
    typed(&mut state, "s3://other/2025/");
    assert_eq!(place(&state).access, S3Access::default());
}

#[test]
fn invalid_address_keeps_the_source_open() {
    let mut state = State::default();
    let effects = typed(&mut state, "s3://");
    assert!(has!(effects, Effect::S3(S3Effect::ReadSetup)), "{effects:?}");
    assert_eq!(state.overlay, Overlay::OpenS3);
    assert_eq!(state.s3.start.address, "s3://");
    assert!(state.source.is_none());
}

#[test]
fn dialog_sends_no_request_until_opened() {
    let mut state = State::default();
    let effects = command(&mut state, Action::OpenS3);
    assert_eq!(state.overlay, Overlay::OpenS3);
    assert!(has!(effects, Effect::S3(S3Effect::ReadSetup)));
    assert_eq!(effects.len(), 1, "{effects:?}");
    assert!(state.tasks.is_idle());
    let effects = command(&mut state, S3Command::ListBuckets);
    assert!(has!(effects, Effect::S3(S3Effect::SignIn { .. })), "{effects:?}");
    assert!(has!(effects, Effect::S3(S3Effect::ListBuckets { .. })), "{effects:?}");
}

#[test]
fn another_profile_clears_listings() {
    let mut state = State::default();
    command(&mut state, Action::OpenS3);
    command(&mut state, S3Command::SetAccess(access("work")));
    command(&mut state, S3Command::ListBuckets);
    let task = state.s3.tree.bucket_task().unwrap();
    event(&mut state, S3Event::BucketsListed(task, Ok(vec!["photos".to_owned()])));
    assert_eq!(state.s3.tree.rows().len(), 1);
    let folder = S3Address::new("photos", "");
    command(&mut state, S3Command::SetFolderOpen(folder, true));
    let effects = command(&mut state, S3Command::SetAccess(access("other")));
    assert!(has!(effects, Effect::Signal(_, TaskSignal::Cancel)), "{effects:?}");
    assert!(state.s3.tree.rows().is_empty());
    let late = Event::S3(S3Event::BucketsListed(task, Ok(vec!["late".to_owned()])));
    event(&mut state, late);
    assert!(state.s3.tree.rows().is_empty());
}

#[test]
fn browsing_lists_each_parent_folder() {
    let mut state = State::default();
    let address = S3Address::parse("s3://photos/2024/may/a.jpg").unwrap();
    let effects = command(&mut state, S3Command::BrowseTo(address));
    for folder in ["s3://photos/", "s3://photos/2024/", "s3://photos/2024/may/"] {
        assert!(
            has!(effects, Effect::S3(S3Effect::ListFolder { listing, .. }) if listing.folder.to_string() == folder),
            "{effects:?}"
        );
    }
    let listed: Vec<(S3Address, TaskId)> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::S3(S3Effect::ListFolder { listing, ticket }) => Some((listing.folder.clone(), ticket.id)),
            _ => None,
        })
        .collect();
    for (folder, task) in listed {
        let inner = match folder.prefix.as_str() {
            "" => vec!["2024/".to_owned()],
            "2024/" => vec!["2024/may/".to_owned()],
            _ => Vec::new(),
        };
        let page = S3FolderPage { objects: u64::from(inner.is_empty()), folders: inner };
        let folder = folder.clone();
        event(&mut state, S3Event::FolderListed { folder: folder.clone(), task, page });
        event(&mut state, S3Event::FolderEnded { folder, task, result: Ok(None) });
    }
    let kinds: Vec<&S3RowKind> = state.s3.tree.rows().iter().map(|row| &row.kind).collect();
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    assert_eq!(kinds[3], &S3RowKind::Objects { count: 1 });
}

#[test]
fn failed_sign_in_keeps_the_identity_and_retries() {
    let mut state = State::default();
    let work = access("work");
    let task = sign_in_of(&command(&mut state, S3Command::SignIn(work.clone())));
    let again = command(&mut state, S3Command::SignIn(work.clone()));
    assert!(again.is_empty(), "it is being asked: {again:?}");
    signed_in(&mut state, &work, task, Some(7));
    let task = sign_in_of(&command(&mut state, S3Command::SignIn(work.clone())));
    event(
        &mut state,
        S3Event::SignedIn {
            access: work.clone(),
            task,
            result: Err(expired()),
            renewal: Some("aws sso login --profile work".to_owned()),
        },
    );
    let known = state.sign_ins.get(&work).unwrap();
    assert_eq!(known.identity.as_ref().unwrap().who, "alice");
    assert_eq!(known.failure, Some(expired()));
    assert!(state.tasks.is_idle());
    // Opening a location requests the identity again, because the user may have renewed the sign-in.
    let place = S3Place { access: work.clone(), ..S3Place::new(S3Address::new("photos", "")) };
    let effects = command(&mut state, BrowseCommand::OpenPlace(Box::new(place)));
    signed_in(&mut state, &work, sign_in_of(&effects), Some(9));
    let known = state.sign_ins.get(&work).unwrap();
    assert_eq!(known.failure, None);
    assert_eq!(known.ends_ms(), Some(9));
}

#[test]
fn renewed_sign_in_rereads_failed_images() {
    let mut state = State::default();
    let work = access("work");
    let place = S3Place { access: work.clone(), ..S3Place::new(S3Address::new("photos", "")) };
    let effects = command(&mut state, BrowseCommand::OpenPlace(Box::new(place)));
    let task = sign_in_of(&effects);
    let source = source_of(&effects);
    let page = page(&["a.jpg"]);
    event(&mut state, BrowseEvent::Listed { source, page });
    let failed = |state: &mut State| {
        let result = Err("The sign-in is over".to_owned());
        let sample = SampleId(0);
        event(state, Event::Browse(BrowseEvent::Displayed { source, sample, result }));
        assert!(state.samples.unreadable(sample).is_some());
    };
    failed(&mut state);
    signed_in(&mut state, &access("other"), task, None);
    assert!(state.samples.unreadable(SampleId(0)).is_some());
    let effects = signed_in(&mut state, &work, task, None);
    assert!(state.samples.unreadable(SampleId(0)).is_none());
    assert!(has!(effects, Effect::Browse(BrowseEffect::Display { .. })), "{effects:?}");
}

#[test]
fn recent_location_can_be_forgotten() {
    let mut state = State::default();
    let place = |bucket: &str| S3Place::new(S3Address::new(bucket, ""));
    for bucket in ["a", "b"] {
        state.settings.remember_place(&place(bucket));
    }
    command(&mut state, BrowseCommand::ForgetRecentPlace(Box::new(place("b"))));
    assert_eq!(state.settings.recent_places, [place("a")]);
}

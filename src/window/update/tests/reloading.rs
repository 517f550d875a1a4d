//! Listing the open source again, and reading ahead.

use std::collections::HashSet;

use super::*;
use crate::window::state::{BrowseCommand, BrowseEffect, BrowseEvent, Relisting};

/// Three listed images, with the listing finished.
fn listed() -> (State, SourceId) {
    let (mut state, source, _) = opened();
    let task = list_task(&state).unwrap();
    event(&mut state, BrowseEvent::ListingEnded { source, task, result: Ok(()) });
    (state, source)
}

fn list_task(state: &State) -> Option<TaskId> {
    let mut running = state.tasks.running().iter();
    running.find(|task| task.kind == TaskKind::List).map(|task| task.id)
}

fn reload(state: &mut State) -> TaskId {
    let effects = command(state, Action::Reload);
    assert!(matches!(effects.as_slice(), [Effect::Browse(BrowseEffect::ListAgain { .. })]));
    list_task(state).unwrap()
}

fn uris(names: &[&str]) -> HashSet<SampleUri> {
    let samples = page(names).samples;
    samples.into_iter().map(|sample| sample.uri).collect()
}

fn listed_again(state: &mut State, source: SourceId, task: TaskId, found: Relisting) {
    event(state, Event::Browse(BrowseEvent::ListedAgain { source, task, result: Ok(found) }));
}

#[test]
fn reload_marks_missing_images_and_keeps_positions() {
    let (mut state, source) = listed();
    command(&mut state, BrowseCommand::Show(SampleId(1)));
    let task = reload(&mut state);
    let seen = page(&["a.jpg", "b.jpg", "new.jpg"]).samples;
    event(&mut state, BrowseEvent::ListingChanged { source, change: ListingChange::Seen(seen) });
    let found = Relisting {
        present: Some(uris(&["a.jpg", "b.jpg", "new.jpg"])),
        notes: vec!["One object was left out".to_owned()],
        ..Relisting::default()
    };
    listed_again(&mut state, source, task, found);
    assert_eq!(state.shown_sample(), Some(SampleId(1)));
    assert_eq!(state.samples.get(SampleId(3)).unwrap().name, "new.jpg");
    let gone = [0, 1, 2, 3].map(|id| state.samples.is_gone(SampleId(id)));
    assert_eq!(gone, [false, false, true, false]);
    assert_eq!(list_task(&state), None);
    assert_eq!(state.source.unwrap().notes, ["One object was left out"]);
}

#[test]
fn incomplete_listing_removes_no_image() {
    let (mut state, source) = listed();
    let task = reload(&mut state);
    let found = Relisting { problems: vec![Problem::general("The image list is incomplete")], ..Relisting::default() };
    listed_again(&mut state, source, task, found);
    assert!(state.samples.ids().all(|id| !state.samples.is_gone(id)));
    assert_eq!(state.problems.len(), 1);
}

#[test]
fn reload_retries_unreadable_images() {
    let (mut state, source) = listed();
    let shown = SampleId(0);
    event(
        &mut state,
        BrowseEvent::Displayed { source, sample: shown, result: Err("the request timed out".to_owned()) },
    );
    assert!(state.samples.unreadable(shown).is_some());
    let task = reload(&mut state);
    let found = Relisting { present: Some(uris(&["a.jpg", "b.jpg", "c.jpg"])), ..Relisting::default() };
    let effects = event(&mut state, BrowseEvent::ListedAgain { source, task, result: Ok(found) });
    assert!(state.samples.unreadable(shown).is_none());
    assert!(has!(effects, Effect::Browse(BrowseEffect::Display { sample, .. }) if *sample == shown));
}

#[test]
fn listing_is_not_restarted() {
    let (mut state, _, _) = opened();
    assert!(Action::Reload.check(&state).is_err());
    assert!(command(&mut state, Action::Reload).is_empty());
}

#[test]
fn failed_location_is_reopened() {
    let (mut state, source, _) = opened();
    let task = list_task(&state).unwrap();
    event(&mut state, BrowseEvent::ListingEnded { source, task, result: Err("There is no such folder".to_owned()) });
    let effects = command(&mut state, Action::Reload);
    assert_ne!(source_of(&effects), source);
}

#[test]
fn neighbors_are_read_ahead_next_first() {
    let (mut state, source) = listed();
    for (shown, neighbors) in [(1, &["c.jpg", "a.jpg"][..]), (2, &["b.jpg"])] {
        command(&mut state, BrowseCommand::Show(SampleId(shown)));
        let effects = event(
            &mut state,
            BrowseEvent::Displayed { source, sample: SampleId(shown), result: Err("whatever comes of it".to_owned()) },
        );
        let ahead = effects.iter().find_map(|effect| match effect {
            Effect::Browse(BrowseEffect::ReadAhead { samples, .. }) => Some(samples),
            _ => None,
        });
        let names: Vec<&str> = ahead.unwrap().iter().map(|sample| sample.name.as_str()).collect();
        assert_eq!(names, neighbors);
    }
}

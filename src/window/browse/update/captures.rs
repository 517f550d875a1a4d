//! EXIF data, which is read when a search, a sort order or the colors of the map need it.

use std::sync::Arc;

use crate::domain::counted;
use crate::tasks::ProgressUnit;
use crate::window::browse::update::unreadable;
use crate::window::state::{
    BrowseEffect, CaptureReading, Failure, Listing, ReadCapture, SourceId, State, TaskId, TaskKind,
};
use crate::window::tasks;

/// Starts or cancels reading. Called after every message.
pub(crate) fn follow(state: &mut State) {
    let is_needed = state.arranging.needs_captures() || (state.map.is_shown && state.map_group_by().needs_captures());
    match state.capture_reading {
        CaptureReading::Idle if is_needed => begin(state),
        CaptureReading::Running(task) if !is_needed => {
            tasks::update::cancel(state, Some(task));
            state.capture_reading = CaptureReading::Idle;
        }
        CaptureReading::Stopped if !is_needed => state.capture_reading = CaptureReading::Idle,
        _ => {}
    }
}

fn begin(state: &mut State) {
    let unread = state.samples.without_capture();
    let Some(source) = state.source.as_ref().filter(|open| unread > 0 && open.listing != Listing::Running) else {
        return;
    };
    let source = source.id;
    let title = format!("Read the EXIF data of {}", counted(unread, "image", "images"));
    let ticket = tasks::update::begin(state, TaskKind::ReadCaptures, ProgressUnit::Images, title);
    state.capture_reading = CaptureReading::Running(ticket.id);
    state.effects.push(BrowseEffect::ReadCaptures { source, samples: state.samples.snapshot(), ticket });
}

pub(crate) fn read(state: &mut State, source: SourceId, read: Vec<ReadCapture>) {
    if !state.is_open(source) {
        return;
    }
    for ReadCapture { sample, stamp, result } in read {
        // The file changed meanwhile, and is read again.
        if state.samples.get(sample).is_none_or(|entry| entry.stamp() != stamp) {
            continue;
        }
        let capture = result.unwrap_or_else(|reason| {
            unreadable(state, source, sample, reason);
            Arc::default()
        });
        state.samples.set_capture(sample, capture);
    }
}

pub(crate) fn ended(state: &mut State, task: TaskId, result: &Result<(), Failure>) {
    if state.capture_reading == CaptureReading::Running(task) {
        state.capture_reading = if result.is_ok() { CaptureReading::Idle } else { CaptureReading::Stopped };
    }
    tasks::update::end(state, task, result.as_ref().err());
}

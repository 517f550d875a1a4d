//! The project of the open source.

use std::path::PathBuf;

use super::Shared;
use crate::domain::{Change, RunId, SampleId, SampleUri};
use crate::state::{Event, ProjectContent, ProjectStatus, SourceId, TaskId};
use crate::tasks::TaskControl;

pub(super) fn open(shared: &Shared, source: SourceId) {
    shared.report(Event::ProjectOpened {
        source,
        content: Box::new(ProjectContent {
            path: None,
            status: ProjectStatus::InMemory {
                reason: "project files are not there yet".to_owned(),
            },
            runs: Vec::new(),
            judgements: Vec::new(),
            views: Vec::new(),
            notes: Vec::new(),
        }),
    });
}

pub(super) fn save(_: &Shared, _: SourceId, _: u64, _: Vec<Change>) {}

pub(super) fn load_run(_: &Shared, _: SourceId, _: RunId, _: TaskId, _: TaskControl) {}

pub(super) fn read_answers(_: &Shared, _: SourceId, _: Vec<(RunId, SampleId, SampleUri)>) {}

pub(super) fn save_as(_: &Shared, _: SourceId, _: PathBuf) {}

pub(super) fn move_to(_: &Shared, _: PathBuf, _: PathBuf) {}

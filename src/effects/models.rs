//! The library, off the window's thread.

use std::path::PathBuf;
use std::sync::Arc;

use super::Shared;
use crate::domain::ModelTask;
use crate::library::{EntryOrigin, FetchError, Library, LibraryEntry, WeightsState};
use crate::state::{Event, ModelDefaults, ModelEntry, TaskId, TaskOutcome};
use crate::tasks::TaskControl;

pub(super) fn list(shared: &Arc<Shared>) {
    shared.spawn("list models", |shared| {
        let entries = shared.library.entries();
        shared.report(Event::ModelsListed {
            entries: entries.into_iter().map(model_entry).collect(),
            defaults: ModelDefaults {
                classification: default_id(&shared.library, ModelTask::Classification),
                detection: default_id(&shared.library, ModelTask::Detection),
            },
            problems: shared.library.problems(),
        });
    });
}

fn default_id(library: &Library, task: ModelTask) -> Option<String> {
    library.default_for(task).ok().map(|model| model.card.id)
}

fn model_entry(entry: LibraryEntry) -> ModelEntry {
    let is_ready = matches!(entry.state, WeightsState::Ready(_));
    ModelEntry {
        labels: Arc::new(entry.labels),
        is_ready,
        can_fetch: !entry.card.file.urls.is_empty(),
        can_remove: entry.disk_bytes > 0,
        disk_bytes: entry.disk_bytes,
        origin: match entry.origin {
            EntryOrigin::BuiltIn if entry.disk_bytes > 0 => "downloaded",
            EntryOrigin::BuiltIn => "comes with Spotcheck",
            EntryOrigin::User => "your own",
        }
        .to_owned(),
        problem: entry.problem,
        card: entry.card,
    }
}

pub(super) fn fetch(
    shared: &Arc<Shared>,
    id: String,
    from: Option<PathBuf>,
    task: TaskId,
    control: TaskControl,
) {
    let ended = move |outcome, notes| Event::TaskEnded {
        task,
        outcome,
        notes,
    };
    let work = move |shared: &Arc<Shared>| {
        match shared.library.fetch(&id, from.as_deref(), &control) {
            // A mirror that failed is reported although the next one worked. If none worked, the error names all.
            Ok(model) => ended(
                TaskOutcome::Done(format!("{} is ready", model.card.name)),
                control.notes(),
            ),
            Err(FetchError::Cancelled(_)) => ended(TaskOutcome::Cancelled, Vec::new()),
            Err(error) => ended(TaskOutcome::Failed(error.to_string()), Vec::new()),
        }
    };
    shared.spawn_reporting("download a model", work, move |mistake| {
        ended(TaskOutcome::Failed(mistake), Vec::new())
    });
}

pub(super) fn remove(shared: &Arc<Shared>, id: String) {
    shared.spawn("remove a model", move |shared| {
        let result = shared
            .library
            .remove(&id)
            .map_err(|error| error.to_string());
        shared.report(Event::ModelRemoved { id, result });
    });
}

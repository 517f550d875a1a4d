//! The library, off the window's thread.

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

pub(super) fn fetch(shared: &Arc<Shared>, id: String, task: TaskId, control: TaskControl) {
    // A mirror that was given up is told, also where the next one did it.
    let told = control.clone();
    let ended = move |outcome| Event::TaskEnded {
        task,
        outcome,
        notes: told.notes(),
    };
    let ended_early = ended.clone();
    let work = move |shared: &Arc<Shared>| {
        let outcome = match shared.library.fetch(&id, None, &control) {
            Ok(model) => TaskOutcome::Done(format!("{} is ready", model.card.name)),
            Err(FetchError::Cancelled(_)) => TaskOutcome::Cancelled,
            Err(error) => TaskOutcome::Failed(error.to_string()),
        };
        ended(outcome)
    };
    shared.spawn_answer("download a model", work, move |mistake| {
        ended_early(TaskOutcome::Failed(mistake))
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

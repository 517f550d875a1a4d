//! The library, off the window's thread.

pub(crate) mod work;

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::ModelTask;
use crate::model::catalog::{EntryOrigin, FetchError, Library, LibraryEntry, WeightsState};
use crate::model::download::DownloadError;
use crate::window::effects::{Effects, Shared};
use crate::window::state::{Event, Failure, ModelDefaults, ModelEntry, ModelsEffect, ModelsEvent, Ticket};

pub(crate) fn carry_out(effects: &mut Effects, effect: ModelsEffect) {
    let shared = &effects.shared;
    match effect {
        ModelsEffect::List => list(shared),
        ModelsEffect::Fetch { id, from, ticket } => fetch(shared, id, from, ticket),
        ModelsEffect::Remove { id } => remove(shared, id),
        ModelsEffect::Recognize(request) => effects.model_inspection.recognize(shared, request),
        ModelsEffect::TryCard(request) => effects.model_inspection.try_card(shared, *request),
        ModelsEffect::TryPresets(request) => effects.model_inspection.try_presets(shared, *request),
        ModelsEffect::Save(request) => effects.model_inspection.save(shared, *request),
        ModelsEffect::CloseImport => effects.model_inspection.close(),
    }
}

fn list(shared: &Arc<Shared>) {
    shared.spawn("list models", |shared| {
        let entries = shared.library.entries();
        shared.report(ModelsEvent::Listed {
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
        can_edit: entry.origin == EntryOrigin::User,
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

fn fetch(shared: &Arc<Shared>, id: String, from: Option<PathBuf>, ticket: Ticket) {
    let work = move |shared: &Arc<Shared>, ticket: &Ticket| {
        match shared.library.fetch(&id, from.as_deref(), &ticket.control) {
            // A failed mirror is reported although the next one worked. If none worked, the error names all of them.
            Ok(model) => Ok((format!("{} is ready", model.card.name), ticket.control.notes())),
            Err(FetchError::Download(DownloadError::Cancelled(_))) => Err(Failure::Cancelled),
            Err(error) => Err(Failure::new(error.to_string())),
        }
    };
    shared.run_task("download a model", ticket, work, Event::ended);
}

fn remove(shared: &Arc<Shared>, id: String) {
    shared.spawn("remove a model", move |shared| {
        let result = shared.library.remove(&id).map_err(|error| error.to_string());
        shared.report(ModelsEvent::Removed { id, result });
    });
}

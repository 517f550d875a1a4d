//! The library, off the window's thread, and work inside ONNX Runtime, which must end before the program does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::domain::ModelTask;
use crate::model::catalog::{EntryOrigin, FetchError, Library, LibraryEntry, WeightsState};
use crate::model::download::DownloadError;
use crate::tasks::TaskControl;
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

/// The longest wait when the window is closed. Loading a model cannot be canceled and takes seconds for the largest.
const PATIENCE: Duration = Duration::from_secs(20);

/// At exit, ONNX Runtime and each separate provider library destroy their globals; a thread inside a call then crashes
/// the whole process. So closing the window cancels everything that loads a model or predicts with it, and waits for it.
#[derive(Default)]
pub(crate) struct ModelWork {
    state: Mutex<WorkState>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkState {
    next: u64,
    running: BTreeMap<u64, TaskControl>,
    is_closed: bool,
}

/// Marks a call into ONNX Runtime until it is dropped. Drop it after the predictor, because dropping that is a call as
/// well.
pub(crate) struct Working {
    work: Arc<ModelWork>,
    number: u64,
}

impl ModelWork {
    /// Marks the start of a call; `None` once the window is closing, when `control` is canceled as well.
    pub(crate) fn begin(self: &Arc<Self>, control: &TaskControl) -> Option<Working> {
        let mut state = self.state.lock();
        if state.is_closed {
            control.cancel();
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.running.insert(number, control.clone());
        Some(Working { work: Arc::clone(self), number })
    }

    /// Cancels the work, waits for it, and allows no new work.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let running: Vec<TaskControl> = state.running.values().cloned().collect();
        drop(state);
        running.iter().for_each(TaskControl::cancel);
        let mut state = self.state.lock();
        let is_busy = |state: &mut WorkState| !state.running.is_empty();
        self.changed.wait_while_for(&mut state, is_busy, PATIENCE);
        if !state.running.is_empty() {
            log::warn!("the window closes while a model is still at work");
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.work.state.lock().running.remove(&self.number);
        self.work.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::ProgressUnit;

    #[test]
    fn closing_cancels_and_waits_for_work() {
        let work = Arc::new(ModelWork::default());
        let control = TaskControl::new(ProgressUnit::Images);
        let working = work.begin(&control).unwrap();
        let ended = std::thread::spawn({
            let control = control.clone();
            move || {
                while control.checkpoint().is_ok() {
                    std::thread::yield_now();
                }
                drop(working);
            }
        });
        work.close();
        assert!(work.state.lock().running.is_empty());
        ended.join().unwrap();

        let late = TaskControl::new(ProgressUnit::Images);
        assert!(work.begin(&late).is_none());
        assert!(late.is_cancelled());
    }
}

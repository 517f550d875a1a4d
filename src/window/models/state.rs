//! The available models.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{CardTask, LabelSet, ModelCard, Problem};
use crate::window::state::{
    Failure, ImportId, ImportStart, ImportTrial, LabelChoice, ModelDefaults, PresetTable, PresetsRequest,
    RecognizeRequest, SaveRequest, TaskId, Ticket, TrialRequest,
};

#[derive(Debug, Clone, PartialEq)]
pub enum ModelsCommand {
    Choose(String),
    Fetch(String),
    Remove(String),
    /// Opens the form for a model that the user added, by its id.
    Edit(String),
    /// The new content of the form.
    ChangeImport {
        card: Box<ModelCard>,
        labels: LabelChoice,
    },
    /// Compares common ways to prepare images on the current images.
    FindPreprocessing,
    /// Restarts the form with another reading of the outputs, an index into `ImportStart::readings`.
    ChooseReading(usize),
    /// Returns from that comparison to the form.
    ClosePresets,
    /// Adds the model, or saves the existing one.
    ConfirmImport,
    CancelImport,
    /// Stops offering this model, given its id.
    DismissOffer(String),
    /// Hides the failed download of this model, given its id.
    DismissFailure(String),
    /// Confirms the assumptions about this model.
    ConfirmAssumptions(Box<ModelCard>),
}

#[derive(Debug, Clone)]
pub enum ModelsEffect {
    List,
    Fetch {
        id: String,
        /// The user's file, in place of a download.
        from: Option<PathBuf>,
        ticket: Ticket,
    },
    Remove {
        id: String,
    },
    /// Inspect a model of the user's own.
    Recognize(RecognizeRequest),
    /// Run it with a card. Replaces the card that is being tested.
    TryCard(Box<TrialRequest>),
    /// Run it with common ways to prepare images.
    TryPresets(Box<PresetsRequest>),
    /// Add it to the library, or save its card there.
    Save(Box<SaveRequest>),
    /// Close the form and release the model.
    CloseImport,
}

#[derive(Debug)]
pub enum ModelsEvent {
    Listed {
        entries: Vec<ModelEntry>,
        defaults: ModelDefaults,
        problems: Vec<Problem>,
    },
    Removed {
        id: String,
        result: Result<u64, String>,
    },
    /// The result of inspecting a model of the user's own.
    Recognized {
        import: ImportId,
        result: Result<Box<ImportStart>, String>,
    },
    /// The result with a card.
    Tried {
        import: ImportId,
        trial: Box<ImportTrial>,
    },
    /// The results of common ways to prepare images.
    PresetsTried(TaskId, Result<Arc<PresetTable>, Failure>),
    /// The model is in the library, under this id.
    Saved {
        import: ImportId,
        result: Result<String, String>,
    },
}

/// A model of the library in the form the window needs.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ModelEntry {
    pub card: ModelCard,
    pub labels: Arc<LabelSet>,
    /// Whether its weights are on this computer.
    pub is_ready: bool,
    /// Whether its weights can be downloaded.
    pub can_fetch: bool,
    /// Whether removing it frees disk space.
    pub can_remove: bool,
    /// Its size in the data folder.
    pub disk_bytes: u64,
    /// The origin of the card, for display: “comes with Spotcheck”.
    pub origin: String,
    /// Whether the user added it, so that its card can be edited.
    pub can_edit: bool,
    /// Why existing weights cannot be used.
    pub problem: Option<String>,
}

/// The library and the chosen model.
#[derive(Debug, Default)]
pub struct ModelShelf {
    entries: Vec<ModelEntry>,
    chosen: Option<String>,
    /// Whether it was named on the command line.
    is_named: bool,
    is_listed: bool,
}

impl ModelShelf {
    pub fn entries(&self) -> &[ModelEntry] {
        &self.entries
    }

    /// Whether the library has been read.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    pub fn get(&self, id: &str) -> Option<&ModelEntry> {
        self.entries.iter().find(|entry| entry.card.id == id)
    }

    pub fn chosen(&self) -> Option<&ModelEntry> {
        self.get(self.chosen.as_deref()?)
    }

    pub fn chosen_id(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// Whether the choice was named on the command line.
    pub(crate) fn is_named(&self) -> bool {
        self.is_named
    }

    /// A better downloadable model for the same task, if the chosen one is only the small default.
    pub fn offered_upgrade(&self) -> Option<&ModelEntry> {
        let chosen = self.chosen()?;
        let better = match chosen.card.id.as_str() {
            "efficientnet-lite0" => "resnet50-v2",
            "ssd-mobilenet-coco" => "faster-rcnn",
            _ => return None,
        };
        self.get(better).filter(|entry| !entry.is_ready && entry.can_fetch)
    }

    /// The size of all weights in the data folder in bytes.
    pub fn disk_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.disk_bytes).sum()
    }

    pub fn ready(&self, task: CardTask) -> impl Iterator<Item = &ModelEntry> {
        self.entries.iter().filter(move |entry| entry.card.task == task && entry.is_ready)
    }

    pub(crate) fn set_entries(&mut self, entries: Vec<ModelEntry>) {
        self.entries = entries;
        self.is_listed = true;
    }

    pub(crate) fn choose(&mut self, id: Option<String>) {
        self.chosen = id;
    }

    /// Chooses the model from the command line.
    pub(crate) fn choose_named(&mut self, id: String) {
        (self.chosen, self.is_named) = (Some(id), true);
    }
}

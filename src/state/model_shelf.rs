//! The models one can choose from.

use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::{LabelSet, ModelCard, ModelTask, Problem};
use crate::state::{ImportDraft, ImportId, ModelDefaults, RecogniseRequest, Ticket};

/// Commands about the library.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelsCommand {
    Choose(String),
    Fetch(String),
    /// Ask for a file with the weights of a model that could not be downloaded.
    PickWeights(String),
    Remove(String),
    /// Sets a field of the draft card in the dialog about a model; an empty value takes that back.
    Overrule {
        field: String,
        value: String,
    },
    SetLabels(Option<PathBuf>),
    ConfirmImport,
    CancelImport,
    /// The offer of this model, by its id, is not made again.
    DismissOffer(String),
}

/// Effects about the library.
#[derive(Debug, Clone)]
pub enum ModelsEffect {
    List,
    Fetch {
        id: String,
        /// A file of the user's in place of a download.
        from: Option<PathBuf>,
        ticket: Ticket,
    },
    Remove {
        id: String,
    },
    /// Look into a model of the user's own.
    Recognise(RecogniseRequest),
    /// Take the model that this look was at into the library.
    Add {
        import: ImportId,
    },
    Pick,
    /// Opens the file dialog for the weights of this model.
    PickWeights(String),
}

/// Events about the library.
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
    Recognised {
        import: ImportId,
        result: Result<Box<ImportDraft>, String>,
    },
    /// The model is in the library, under this id.
    Added {
        import: ImportId,
        result: Result<String, String>,
    },
}

/// A model of the library as the window needs it.
#[derive(Debug, Clone)]
pub struct ModelEntry {
    pub card: ModelCard,
    pub labels: Arc<LabelSet>,
    /// Whether its weights are on this machine.
    pub is_ready: bool,
    /// Whether they can be downloaded.
    pub can_fetch: bool,
    /// Whether removing it frees disk space.
    pub can_remove: bool,
    /// Its size in the data folder.
    pub disk_bytes: u64,
    /// The location of the card, for people: “comes with Spotcheck”.
    pub origin: String,
    /// Why weights that are there cannot be used.
    pub problem: Option<String>,
}

/// The library and the choice.
#[derive(Debug, Default)]
pub struct ModelShelf {
    entries: Vec<ModelEntry>,
    chosen: Option<String>,
    is_listed: bool,
}

impl ModelShelf {
    pub fn entries(&self) -> &[ModelEntry] {
        &self.entries
    }

    /// False until the library has been read.
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

    /// A better model of the same task that is one download away, if the chosen one is only the small default.
    pub fn offered_upgrade(&self) -> Option<&ModelEntry> {
        let chosen = self.chosen()?;
        let better = match chosen.card.id.as_str() {
            "efficientnet-lite0" => "resnet50-v2",
            "ssd-mobilenet-coco" => "faster-rcnn",
            _ => return None,
        };
        self.get(better).filter(|entry| !entry.is_ready && entry.can_fetch)
    }

    /// Bytes of all weights in the data folder.
    pub fn disk_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.disk_bytes).sum()
    }

    pub fn ready(&self, task: ModelTask) -> impl Iterator<Item = &ModelEntry> {
        self.entries.iter().filter(move |entry| entry.card.task == task && entry.is_ready)
    }

    pub(super) fn set_entries(&mut self, entries: Vec<ModelEntry>) {
        self.entries = entries;
        self.is_listed = true;
    }

    pub(super) fn choose(&mut self, id: Option<String>) {
        self.chosen = id;
    }
}

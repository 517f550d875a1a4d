//! Finds, adds and removes models.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use super::built_in;
use super::card::{CARD_FILE, CardError, parse_card, write_card};
use super::error::{FetchError, LibraryError};
use crate::dirs::{AppDirs, shipped_folders};
use crate::domain::{LabelSet, ModelCard, ModelFile, ModelTask, Problem};
use crate::local_file;
use crate::model::download::sha256::{copy_hashed, has_sha256, pump};
use crate::model::download::{DownloadError, DownloadPolicy, Wanted, is_intact, part_is_locked};
use crate::model::recognize::read_labels;
use crate::tasks::TaskControl;

/// All models by id, and the folders of their weights. Cheap to clone. Every call reads the disk again, so nothing here
/// is ever outdated; do not call it while drawing.
#[derive(Debug, Clone)]
pub struct Library(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The folder of downloads and the user's own models, with one folder per model.
    own_folder: PathBuf,
    /// The folders of weights that come with Spotcheck, most likely first.
    shared_folders: Vec<PathBuf>,
    policy: DownloadPolicy,
}

/// A model ready to load.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub card: ModelCard,
    /// Empty if the card names none.
    pub labels: LabelSet,
    /// The `.onnx` file; it has the size in the card.
    pub weights: PathBuf,
}

/// A known model, whether or not its weights are on this computer.
#[derive(Debug, Clone, PartialEq)]
pub struct LibraryEntry {
    pub card: ModelCard,
    pub labels: LabelSet,
    pub state: WeightsState,
    pub origin: EntryOrigin,
    /// What [`Library::remove`] would free: everything in the data folder for this model, including an unfinished
    /// download. 0 for weights that come with Spotcheck.
    pub disk_bytes: u64,
    /// Why existing weights cannot be used: the file has the wrong size.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsState {
    /// The file exists and has the right size.
    Ready(PathBuf),
    /// The weights are missing and can be downloaded, or imported from a file.
    Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryOrigin {
    /// Its card is part of Spotcheck.
    BuiltIn,
    /// Added by the user.
    User,
}

/// A card with its labels, from any source.
#[derive(Clone)]
struct Known {
    card: ModelCard,
    labels: LabelSet,
    origin: EntryOrigin,
}

static BUILT_IN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let known = built_in::CARDS.iter().map(|built_in| {
        let path = Path::new("models").join(built_in.id).join(CARD_FILE);
        let card = parse_card(built_in.text, &path).expect("a test parses every built-in card");
        let labels = labels_of(&card, Path::new("")).expect("a test parses every label set");
        let origin = EntryOrigin::BuiltIn;
        Known { card, labels, origin }
    });
    known.collect()
});

impl Library {
    /// The built-in models and those in the data folder.
    pub fn open(dirs: &AppDirs) -> Self {
        Self(Arc::new(Inner {
            own_folder: dirs.data.join("models"),
            shared_folders: shared_folders(),
            policy: DownloadPolicy::default(),
        }))
    }

    /// The same library with another download policy.
    pub fn with_download_policy(self, policy: DownloadPolicy) -> Self {
        Self(Arc::new(Inner {
            own_folder: self.0.own_folder.clone(),
            shared_folders: self.0.shared_folders.clone(),
            policy,
        }))
    }

    /// The folder of a model's downloaded or added weights. It need not exist.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.0.own_folder.join(id)
    }

    /// The folder of the user's own models, with one folder per model.
    pub fn own_folder(&self) -> &Path {
        &self.0.own_folder
    }

    /// All models in display order: built-in ones (classifiers before detectors, best first), then the user's own by
    /// id.
    pub fn entries(&self) -> Vec<LibraryEntry> {
        let (own, _) = self.own();
        let known = BUILT_IN.iter().cloned().chain(own);
        known.map(|known| self.entry(known)).collect()
    }

    /// Unusable cards in the data folder, and why. The rest works without them.
    pub fn problems(&self) -> Vec<Problem> {
        let (_, broken) = self.own();
        let problem = |(_, error): (String, LibraryError)| Problem::general(error.to_string());
        broken.into_iter().map(problem).collect()
    }

    /// The model with an id, or at a path to an `.onnx` file that was added to the library, equals the file of a known
    /// model, or has its card next to it (`FILE.toml`, or a `model.toml` that names the file).
    ///
    /// # Errors
    /// [`LibraryError::NoCard`] for an unknown file; the others state how to get the weights.
    pub fn find(&self, id_or_path: &str) -> Result<Model, LibraryError> {
        match self.entry_of(id_or_path) {
            Err(LibraryError::Unknown { .. }) if is_path(id_or_path) => self.find_file(Path::new(id_or_path)),
            entry => ready(entry?),
        }
    }

    /// The model to use if the user names none: ResNet-50 or Faster R-CNN once they are downloaded, until then the
    /// small model that comes with Spotcheck.
    ///
    /// # Errors
    /// None of them is on this computer.
    pub fn default_for(&self, task: ModelTask) -> Result<Model, LibraryError> {
        let of_task = || BUILT_IN.iter().filter(|known| known.card.task == task.into());
        let first_ready = of_task().find_map(|known| ready(self.entry(known.clone())).ok());
        first_ready.ok_or_else(|| {
            let smallest = of_task()
                .filter(|known| !known.card.file.urls.is_empty())
                .min_by_key(|known| known.card.file.bytes)
                .expect("a test wants a download for each task");
            LibraryError::NoDefault { task, id: smallest.card.id.clone(), bytes: smallest.card.file.bytes }
        })
    }

    /// Makes the weights of a model ready: downloads them, or copies them from the file `from`; in both cases, the
    /// SHA-256 in the card must match. Existing weights are checked and, if damaged, fetched again. Progress is in
    /// bytes. An interrupted or canceled download resumes where it stopped.
    ///
    /// # Errors
    /// [`DownloadError::Cancelled`], or what failed and what to do.
    pub fn fetch(&self, id: &str, from: Option<&Path>, control: &TaskControl) -> Result<Model, FetchError> {
        let entry = self.entry_of(id)?;
        let file = &entry.card.file;
        let target = self.folder(id).join(&file.name);
        let wanted = Wanted { title: &entry.card.name, file, target: &target };
        if let Some(from) = from {
            wanted.copy(from, control)?;
        } else if !is_ready(&entry, control)? {
            if file.urls.is_empty() {
                return Err(LibraryError::NoWeights { id: id.to_owned(), name: entry.card.name }.into());
            }
            wanted.download(&self.0.policy, control)?;
        }
        Ok(ready(self.entry_of(id)?)?)
    }

    /// Deletes a model's data in the data folder: downloaded weights and unfinished downloads; for the user's own
    /// models also the card and the labels (the file they were added from stays). Returns the number of bytes freed.
    ///
    /// # Errors
    /// There is nothing to remove, or it cannot be removed.
    pub fn remove(&self, id: &str) -> Result<u64, LibraryError> {
        let folder = self.folder(id);
        let entry = match self.entry_of(id) {
            Ok(entry) => Some(entry),
            // An invalid card must not prevent the removal of its folder.
            Err(LibraryError::Unknown { id, known }) => {
                return Err(LibraryError::Unknown { id, known });
            }
            Err(_) => None,
        };
        if !folder.exists() {
            let id = id.to_owned();
            return Err(match entry.map(|entry| entry.state) {
                Some(WeightsState::Ready(_)) => LibraryError::ComesWithSpotcheck { id },
                _ => LibraryError::NothingToRemove { id },
            });
        }
        if let Some(entry) = &entry
            && part_is_locked(&folder.join(&entry.card.file.name))
        {
            return Err(LibraryError::Busy { id: id.to_owned() });
        }
        let freed = folder_bytes(&folder);
        fs::remove_dir_all(&folder).map_err(LibraryError::io("remove the model", &folder))?;
        Ok(freed)
    }

    /// Adds a model of the user to the library: copies the weights into the data folder and writes the card, and any
    /// labels, next to them. Fills in the file name, size and SHA-256 in `card`.
    ///
    /// # Errors
    /// The id is taken, the card is invalid, or a file cannot be read or written.
    pub fn add(&self, weights: &Path, mut card: ModelCard, labels: Option<&LabelSet>) -> Result<Model, LibraryError> {
        let folder = self.folder(&card.id);
        if folder.exists() || is_built_in(&card.id) {
            return Err(LibraryError::IdTaken(card.id));
        }
        let own = &self.0.own_folder;
        fs::create_dir_all(own).map_err(LibraryError::io("create the folder", own))?;
        // Everything is first assembled in a hidden folder, so that a failure leaves nothing half done.
        let staging = tempfile::Builder::new().prefix(".adding-").tempdir_in(own);
        let staging = staging.map_err(LibraryError::io("create a folder", own))?;

        "model.onnx".clone_into(&mut card.file.name);
        let staged = staging.path().join(&card.file.name);
        let copied = copy_hashed(weights, &staged, &mut |_| Ok(()));
        let copied = copied.map_err(LibraryError::io("copy the weights", weights))?;
        card.file.bytes = copied.bytes;
        card.file.sha256 = copied.sha256;
        if let Some(file) = second_file(&staged).map_err(LibraryError::io("read the weights", &staged))? {
            return Err(LibraryError::SecondFile { path: weights.to_owned(), file });
        }
        if let Some(labels) = labels {
            card.labels = Some(write_labels(labels, staging.path())?);
        }
        labels_of(&card, staging.path())?;
        let text = write_card(&card)?;
        fs::write(staging.path().join(CARD_FILE), text)
            .map_err(LibraryError::io("write the model card", staging.path()))?;
        fs::rename(staging.keep(), &folder).map_err(LibraryError::io("put the model in its place", &folder))?;
        ready(self.entry_of(&card.id)?)
    }

    /// Atomically replaces the card of a model that the user added. Id and weights stay. `labels` are written next to
    /// it; without them, the file that the card names stays.
    ///
    /// # Errors
    /// The user added no model with this id, the card is invalid, or a file cannot be read or written.
    pub fn replace_card(&self, mut card: ModelCard, labels: Option<&LabelSet>) -> Result<Model, LibraryError> {
        let entry = self.entry_of(&card.id)?;
        if entry.origin != EntryOrigin::User {
            return Err(LibraryError::ComesWithSpotcheck { id: card.id });
        }
        card.file = entry.card.file;
        let folder = self.folder(&card.id);
        if let Some(labels) = labels {
            card.labels = Some(write_labels(labels, &folder)?);
        }
        let kept = card.labels.clone();
        labels_of(&card, &folder)?;
        let path = folder.join(CARD_FILE);
        let text = write_card(&card)?;
        local_file::replace(&path, &text).map_err(LibraryError::io("write the model card", &path))?;
        if let Some(old) = entry.card.labels.filter(|old| kept.as_ref() != Some(old))
            && built_in::label_set(&old).is_none()
            && let Err(error) = fs::remove_file(folder.join(&old))
        {
            log::warn!("an unused label file stays in {}: {error}", folder.display());
        }
        ready(self.entry_of(&card.id)?)
    }

    fn entry_of(&self, id: &str) -> Result<LibraryEntry, LibraryError> {
        let (own, broken) = self.own();
        let mut known: Vec<Known> = BUILT_IN.iter().cloned().chain(own).collect();
        if let Some(position) = known.iter().position(|known| known.card.id == id) {
            return Ok(self.entry(known.swap_remove(position)));
        }
        if let Some((_, error)) = broken.into_iter().find(|(folder, _)| folder == id) {
            return Err(error);
        }
        Err(LibraryError::Unknown { id: id.to_owned(), known: known.into_iter().map(|known| known.card.id).collect() })
    }

    fn entry(&self, known: Known) -> LibraryEntry {
        let own = self.folder(&known.card.id);
        let mut folders = vec![own.clone()];
        if known.origin == EntryOrigin::BuiltIn {
            let shared = self.0.shared_folders.iter();
            folders.extend(shared.map(|shared| shared.join(&known.card.id)));
        }
        let (state, problem) = locate(&known.card, &folders);
        LibraryEntry {
            disk_bytes: folder_bytes(&own),
            card: known.card,
            labels: known.labels,
            origin: known.origin,
            state,
            problem,
        }
    }

    /// The user's models, sorted by id, and the folders with unusable cards.
    fn own(&self) -> (Vec<Known>, Vec<(String, LibraryError)>) {
        let mut known = Vec::new();
        let mut broken = Vec::new();
        for folder in folders_in(&self.0.own_folder) {
            let path = self.0.own_folder.join(&folder).join(CARD_FILE);
            let card = match read_card(&path) {
                Ok(Some(text)) => own_card(&folder, &text, &path),
                // Weights downloaded for a built-in card are alone in their folder.
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match card {
                Ok(card) => known.push(card),
                Err(error) => broken.push((folder, error)),
            }
        }
        (known, broken)
    }

    fn find_file(&self, path: &Path) -> Result<Model, LibraryError> {
        let no_file = |source| LibraryError::NoFile { path: path.to_owned(), source };
        let bytes = path.metadata().map_err(no_file)?.len();
        if let Some(model) = model_next_to(path)? {
            return Ok(model);
        }
        // A file with the content of a known model is that model, whatever its name: a copy, or the file that was
        // added.
        for entry in self.entries() {
            if entry.card.file.bytes == bytes
                && has_sha256(path, &entry.card.file.sha256, &mut |_| Ok(())).map_err(no_file)?
            {
                return Ok(Model { card: entry.card, labels: entry.labels, weights: path.to_owned() });
            }
        }
        Err(LibraryError::NoCard { path: path.to_owned() })
    }
}

/// Writes a label file into the folder of a model and returns its name. Never overwrites a file: the old card needs its
/// own file until the new card is written.
fn write_labels(labels: &LabelSet, folder: &Path) -> Result<String, LibraryError> {
    let numbered = (2..).map(|number| format!("labels-{number}.txt"));
    let mut names = std::iter::once("labels.txt".to_owned()).chain(numbered);
    let name = names.find(|name| !folder.join(name).exists()).unwrap_or_default();
    let path = folder.join(&name);
    fs::write(&path, labels.to_text()).map_err(LibraryError::io("write the label file", &path))?;
    Ok(name)
}

/// The folders of weights that come with Spotcheck.
fn shared_folders() -> Vec<PathBuf> {
    let folders = shipped_folders().into_iter().map(|folder| folder.join("models"));
    folders.filter(|folder| folder.is_dir()).collect()
}

fn ready(entry: LibraryEntry) -> Result<Model, LibraryError> {
    let (id, name) = (entry.card.id.clone(), entry.card.name.clone());
    match (entry.state, entry.problem) {
        (WeightsState::Ready(weights), _) => Ok(Model { card: entry.card, labels: entry.labels, weights }),
        (WeightsState::Missing, Some(problem)) => Err(LibraryError::WrongSize(problem)),
        (WeightsState::Missing, None) if entry.card.file.urls.is_empty() => Err(LibraryError::NoWeights { id, name }),
        (WeightsState::Missing, None) => Err(LibraryError::NotDownloaded { id, name, bytes: entry.card.file.bytes }),
    }
}

/// The first folder with weights of the right size; otherwise what is wrong with existing ones.
fn locate(card: &ModelCard, folders: &[PathBuf]) -> (WeightsState, Option<String>) {
    let mut problem = None;
    for path in folders.iter().map(|folder| folder.join(&card.file.name)) {
        match check_size(&path, card) {
            Ok(true) => return (WeightsState::Ready(path), None),
            Ok(false) => {}
            Err(reason) => problem = problem.or(Some(reason)),
        }
    }
    (WeightsState::Missing, problem)
}

/// Whether the file exists and has the size in the card.
fn check_size(path: &Path, card: &ModelCard) -> Result<bool, String> {
    let id = &card.id;
    match path.metadata() {
        Ok(metadata) if metadata.len() == card.file.bytes => Ok(true),
        Ok(metadata) => Err(format!(
            "the weights of {id} have {} bytes instead of the {} in its card: the file is damaged or has changed; \
             download it again: {}",
            metadata.len(),
            card.file.bytes,
            path.display()
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("could not read the weights of {id}: {error}: {}", path.display())),
    }
}

/// Whether the weights exist and their content matches the card.
fn is_ready(entry: &LibraryEntry, control: &TaskControl) -> Result<bool, DownloadError> {
    let WeightsState::Ready(path) = &entry.state else {
        return Ok(false);
    };
    control.set_step(format!("Checking {}", entry.card.name));
    is_intact(path, &entry.card.file, control)
}

/// The text of a card, if there is one.
fn read_card(path: &Path) -> Result<Option<String>, LibraryError> {
    local_file::if_there(fs::read_to_string(path)).map_err(LibraryError::io("read the model card", path))
}

fn own_card(folder: &str, text: &str, path: &Path) -> Result<Known, LibraryError> {
    let card = parse_card(text, path)?;
    let misplaced = |reason: &str| {
        LibraryError::Card(CardError { path: path.to_owned(), line: 1, column: 1, reason: reason.to_owned() })
    };
    if is_built_in(&card.id) {
        return Err(misplaced("the id belongs to a built-in model; choose another one"));
    }
    if card.id != folder {
        return Err(misplaced("the id must be the name of the card's folder"));
    }
    let labels = labels_of(&card, path.parent().unwrap_or(Path::new("")))?;
    Ok(Known { card, labels, origin: EntryOrigin::User })
}

fn is_built_in(id: &str) -> bool {
    built_in::CARDS.iter().any(|known| known.id == id)
}

/// The model of a file with a card next to it; `None` if there is no card.
fn model_next_to(path: &Path) -> Result<Option<Model>, LibraryError> {
    for (card_path, must_name_it) in [(path.with_extension("toml"), false), (path.with_file_name(CARD_FILE), true)] {
        let Some(text) = read_card(&card_path)? else {
            continue;
        };
        let card = parse_card(&text, &card_path)?;
        if must_name_it && path.file_name() != Some(OsStr::new(&card.file.name)) {
            continue;
        }
        check_size(path, &card).map_err(LibraryError::WrongSize)?;
        let labels = labels_of(&card, path.parent().unwrap_or(Path::new("")))?;
        return Ok(Some(Model { card, labels, weights: path.to_owned() }));
    }
    Ok(None)
}

/// The class names of a card; a label file is in the card's `folder`.
fn labels_of(card: &ModelCard, folder: &Path) -> Result<LabelSet, LibraryError> {
    let Some(name) = &card.labels else {
        return Ok(LabelSet::default());
    };
    match built_in::built_in_labels(name) {
        Some(labels) => Ok(labels),
        None => labels_from_file(&folder.join(name)),
    }
}

/// The class names in a label file, of every kind that [`read_labels`] supports.
///
/// # Errors
/// It cannot be read.
pub fn labels_from_file(path: &Path) -> Result<LabelSet, LibraryError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = local_file::read_to_string(path).map_err(|error| error.to_string());
    let labels = text.and_then(|text| read_labels(&name, &text));
    labels.map_err(|reason| LibraryError::Labels { path: path.to_owned(), reason })
}

/// The size and hash of the weights at `path`.
///
/// # Errors
/// [`LibraryError::NoFile`] if they cannot be read.
pub fn model_file(path: &Path) -> Result<ModelFile, LibraryError> {
    let hashed = local_file::open(path)
        .and_then(|mut file| pump(&mut file, &mut io::sink(), &mut |_| Ok(())))
        .map_err(|source| LibraryError::NoFile { path: path.to_owned(), source })?;
    Ok(ModelFile { name: "model.onnx".to_owned(), bytes: hashed.bytes, sha256: hashed.sha256, urls: Vec::new() })
}

/// Whether the text is a path rather than an id.
fn is_path(text: &str) -> bool {
    let path = Path::new(text);
    let is_onnx = |extension: &OsStr| extension.eq_ignore_ascii_case("onnx");
    path.components().count() > 1 || path.extension().is_some_and(is_onnx) || path.is_file()
}

/// The names of the visible folders in `folder`, sorted; empty if it does not exist.
fn folders_in(folder: &Path) -> Vec<String> {
    let Ok(listing) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = listing
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// The total size of the files in a model's folder; 0 if it does not exist.
fn folder_bytes(folder: &Path) -> u64 {
    let listing = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = listing.filter_map(|entry| entry.metadata().ok());
    files.filter(fs::Metadata::is_file).map(|file| file.len()).sum()
}

/// The separate file with an ONNX file's weights, if there is one: the value of `location` in a tensor's
/// `external_data` (onnx.proto, `StringStringEntryProto`: fields 1 and 2 are texts).
fn second_file(weights: &Path) -> std::io::Result<Option<String>> {
    /// Without its weights, a graph is far smaller.
    const MAX_BYTES: u64 = 64 << 20;
    const KEY: &[u8] = b"\x0a\x08location\x12";
    if fs::metadata(weights)?.len() > MAX_BYTES {
        return Ok(None);
    }
    let bytes = fs::read(weights)?;
    let key = bytes.windows(KEY.len()).position(|window| window == KEY);
    let name = key.and_then(|at| {
        let (&len, rest) = bytes.get(at + KEY.len()..)?.split_first()?;
        let name = rest.get(..usize::from(len))?;
        std::str::from_utf8(name).ok().map(str::to_owned)
    });
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::ProgressUnit;

    struct Home {
        folder: tempfile::TempDir,
        library: Library,
    }

    impl Home {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let library = Library::open(&AppDirs::below(folder.path()));
            Self { folder, library }
        }

        /// A file below `data/models`.
        fn model_path(&self, path: &str) -> PathBuf {
            self.folder.path().join("data/models").join(path)
        }

        fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
            let path = self.model_path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            path
        }

        /// Weights of the right size (but wrong content) for a built-in model, without filling the disk.
        fn pretend_downloaded(&self, id: &str) -> PathBuf {
            let card = built_in_card(id);
            let path = self.write(&format!("{id}/{}", card.file.name), "");
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(card.file.bytes).unwrap();
            path
        }
    }

    fn built_in_card(id: &str) -> ModelCard {
        let known = BUILT_IN.iter().find(|known| known.card.id == id);
        known.unwrap().card.clone()
    }

    /// A card of the user for weights that are `content`.
    fn own_card_text(id: &str, content: &[u8]) -> String {
        let mut card = built_in_card("efficientnet-lite0");
        card.id = id.to_owned();
        card.file.bytes = content.len() as u64;
        card.file.sha256 = pump_hash(content);
        write_card(&card).unwrap()
    }

    fn pump_hash(mut content: &[u8]) -> String {
        let hashed = pump(&mut content, &mut io::sink(), &mut |_| Ok(()));
        hashed.unwrap().sha256
    }

    #[test]
    fn built_in_cards_are_usable_and_match_their_folder() {
        for (built_in, known) in built_in::CARDS.iter().zip(BUILT_IN.iter()) {
            assert_eq!(built_in.id, known.card.id);
            assert_ne!(known.card.license, "unknown", "{}", built_in.id);
            let mirrors = known.card.file.urls.len();
            assert!(mirrors == 0 || mirrors == 2, "{}", built_in.id);
        }
        for task in [ModelTask::Classification, ModelTask::Detection] {
            let of_task = BUILT_IN.iter().filter(|known| known.card.task == task.into());
            assert!(of_task.clone().any(|known| known.card.file.urls.is_empty()));
            assert!(of_task.clone().any(|known| !known.card.file.urls.is_empty()));
        }
    }

    #[test]
    fn built_in_label_sets_are_complete() {
        for (name, len, max_id, some_id, some_name) in [
            ("imagenet", 1000, 999, 285, "Egyptian cat"),
            ("coco-80", 80, 79, 15, "cat"),
            ("coco-91", 80, 90, 17, "cat"),
            ("cifar-10", 10, 9, 3, "cat"),
        ] {
            let labels = LabelSet::parse(built_in::label_set(name).unwrap()).unwrap();
            assert_eq!((labels.len(), labels.max_id()), (len, Some(max_id)), "{name}");
            assert_eq!(labels.get(some_id), Some(some_name), "{name}");
        }
    }

    #[test]
    fn repository_weights_match_their_cards() {
        let library = Home::new().library;
        let control = TaskControl::new(ProgressUnit::Bytes);
        let in_repository = library.entries().into_iter();
        let in_repository = in_repository.filter(|entry| entry.card.file.urls.is_empty());
        let mut count = 0;
        for entry in in_repository {
            assert!(is_ready(&entry, &control).unwrap(), "{}", entry.card.id);
            assert_eq!(entry.disk_bytes, 0);
            count += 1;
        }
        assert_eq!(count, 2);
    }

    #[test]
    fn missing_model_names_the_fetch_command() {
        let error = Home::new().library.find("resnet50-v2").unwrap_err();
        assert_eq!(
            error.to_string(),
            "ResNet-50 v2 is not downloaded; download it with `spotcheck models fetch resnet50-v2` (98 MiB)"
        );
    }

    #[test]
    fn unknown_model_lists_the_known_ones() {
        let error = Home::new().library.find("resnet51").unwrap_err().to_string();
        assert!(error.contains("resnet51"), "{error}");
        assert!(error.contains("ssd-mobilenet-coco"), "{error}");
    }

    #[test]
    fn default_is_the_large_model_if_present() {
        let home = Home::new();
        let default = |task| home.library.default_for(task).unwrap().card.id;
        assert_eq!(default(ModelTask::Classification), "efficientnet-lite0");
        assert_eq!(default(ModelTask::Detection), "ssd-mobilenet-coco");
        home.pretend_downloaded("resnet50-v1-int8");
        assert_eq!(default(ModelTask::Classification), "resnet50-v1-int8");
        home.pretend_downloaded("resnet50-v2");
        home.pretend_downloaded("faster-rcnn");
        assert_eq!(default(ModelTask::Classification), "resnet50-v2");
        assert_eq!(default(ModelTask::Detection), "faster-rcnn");
    }

    #[test]
    fn weights_of_the_wrong_size_are_not_used() {
        let home = Home::new();
        let path = home.write("faster-rcnn/model.onnx", "not the model");
        let entry = home.library.entry_of("faster-rcnn").unwrap();
        assert_eq!(entry.state, WeightsState::Missing);
        assert_eq!(entry.disk_bytes, 13);
        let error = home.library.find("faster-rcnn").unwrap_err().to_string();
        assert!(error.contains("13 bytes") && error.contains("176713194"), "{error}");
        assert!(error.ends_with(&path.display().to_string()), "{error}");
    }

    #[test]
    fn removed_download_is_missing_again() {
        let home = Home::new();
        home.pretend_downloaded("resnet50-v1-int8");
        home.write("resnet50-v1-int8/model.onnx.part", "1234");
        assert_eq!(home.library.remove("resnet50-v1-int8").unwrap(), 25_753_167 + 4);
        let entry = home.library.entry_of("resnet50-v1-int8").unwrap();
        assert_eq!((entry.state, entry.disk_bytes), (WeightsState::Missing, 0));
        assert!(matches!(home.library.remove("resnet50-v1-int8"), Err(LibraryError::NothingToRemove { .. })));
    }

    #[test]
    fn bundled_models_are_not_removed() {
        let result = Home::new().library.remove("efficientnet-lite0");
        assert!(matches!(result, Err(LibraryError::ComesWithSpotcheck { .. })));
    }

    #[test]
    fn added_model_is_found_by_id_and_file() {
        let home = Home::new();
        let weights = home.folder.path().join("My Model.onnx");
        fs::write(&weights, "weights").unwrap();
        let names = LabelSet::parse("cat\ndog").unwrap();
        let mut card = built_in_card("efficientnet-lite0");
        card.id = "my-model".to_owned();

        let added = home.library.add(&weights, card.clone(), Some(&names)).unwrap();
        assert_eq!(added.labels.get(1), Some("dog"));
        assert_eq!(added.card.file.bytes, 7);
        assert_eq!(added.weights, home.model_path("my-model/model.onnx"));
        assert_eq!(home.library.find("my-model").unwrap(), added);
        let by_path = home.library.find(weights.to_str().unwrap()).unwrap();
        assert_eq!((by_path.card, by_path.weights), (added.card, weights.clone()));
        assert!(matches!(
            home.library.add(&weights, card, None),
            Err(LibraryError::IdTaken(id)) if id == "my-model"
        ));
        assert_eq!(home.library.entries().last().unwrap().origin, EntryOrigin::User);
        assert!(home.library.remove("my-model").unwrap() > 7);
        assert!(weights.exists());
    }

    #[test]
    fn graph_needs_its_external_weights() {
        let home = Home::new();
        let weights = home.folder.path().join("model.onnx");
        // As torch writes it: an entry in a tensor's `external_data`.
        fs::write(&weights, b"graph \x0a\x08location\x12\x0fmodel.onnx.data more").unwrap();
        let mut card = built_in_card("efficientnet-lite0");
        card.id = "my-model".to_owned();
        let error = home.library.add(&weights, card, None).unwrap_err();
        assert!(matches!(&error, LibraryError::SecondFile { file, .. } if file == "model.onnx.data"), "{error}");
        assert!(!home.model_path("my-model").exists());
    }

    #[test]
    fn only_added_model_cards_are_replaced() {
        let home = Home::new();
        let weights = home.folder.path().join("m.onnx");
        fs::write(&weights, "weights").unwrap();
        let names = LabelSet::parse("cat\ndog").unwrap();
        let card = ModelCard { id: "mine".to_owned(), ..built_in_card("efficientnet-lite0") };
        let added = home.library.add(&weights, card, Some(&names)).unwrap();

        let mut card = added.card.clone();
        card.name = "Mine".to_owned();
        card.input.channels = crate::domain::ChannelOrder::Bgr;
        let saved = home.library.replace_card(card.clone(), None).unwrap();
        assert_eq!((&saved.card, saved.labels.get(1)), (&card, Some("dog")));

        let names = LabelSet::parse("cow\nhen").unwrap();
        let saved = home.library.replace_card(card.clone(), Some(&names)).unwrap();
        assert_eq!(saved.labels.get(1), Some("hen"));
        let mut files = folders_and_files(&home.model_path("mine"));
        files.sort();
        assert_eq!(files, ["labels-2.txt", "model.onnx", "model.toml"]);

        card.input.std = [0.0; 3];
        assert!(home.library.replace_card(card, None).is_err());
        assert_eq!(home.library.find("mine").unwrap(), saved);
        let built_in = home.library.replace_card(built_in_card("efficientnet-lite0"), None);
        assert!(matches!(built_in, Err(LibraryError::ComesWithSpotcheck { .. })));
    }

    fn folders_and_files(folder: &Path) -> Vec<String> {
        let listing = fs::read_dir(folder).unwrap();
        listing.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn failed_addition_leaves_no_files() {
        let home = Home::new();
        let weights = home.folder.path().join("model.onnx");
        fs::write(&weights, "weights").unwrap();
        let mut card = built_in_card("efficientnet-lite0");
        card.id = "mine".to_owned();
        card.input.std = [0.0; 3];
        let error = home.library.add(&weights, card, None).unwrap_err();
        assert!(error.to_string().contains("input.std"), "{error}");
        let left = fs::read_dir(home.model_path("")).unwrap().count();
        assert_eq!(left, 0);
    }

    #[test]
    fn model_file_is_found_by_its_card() {
        let home = Home::new();
        let folder = home.folder.path();
        for (card, weights) in [("model.toml", "model.onnx"), ("other.toml", "other.onnx")] {
            fs::write(folder.join(card), own_card_text("mine", weights.as_bytes())).unwrap();
            fs::write(folder.join(weights), weights).unwrap();
            let path = folder.join(weights);
            let found = home.library.find(path.to_str().unwrap()).unwrap();
            assert_eq!((found.card.id.as_str(), found.weights), ("mine", path));
        }
    }

    #[test]
    fn unknown_and_missing_files_are_distinguished() {
        let home = Home::new();
        let path = home.folder.path().join("some.onnx");
        let find = || home.library.find(path.to_str().unwrap());
        assert!(matches!(find(), Err(LibraryError::NoFile { .. })));
        fs::write(&path, "some").unwrap();
        assert!(matches!(find(), Err(LibraryError::NoCard { path: found }) if found == path));
    }

    #[test]
    fn broken_card_is_one_problem() {
        let home = Home::new();
        home.write("good/model.toml", own_card_text("good", b"weights"));
        home.write("good/model.onnx", "weights");
        home.write("broken/model.toml", "id = \"broken\"\ncolor = 3\n");
        home.write("elsewhere/model.toml", own_card_text("here", b"weights"));
        home.write("resnet50-v1/model.toml", own_card_text("resnet50-v1", b"weights"));

        let problems: Vec<String> = home.library.problems().iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("line 2, column 1: unknown field `color`"), "{}", problems[0]);
        assert!(problems[1].contains("name of the card's folder"), "{}", problems[1]);
        assert!(problems[2].contains("belongs to a built-in model"), "{}", problems[2]);
        assert_eq!(home.library.find("good").unwrap().card.id, "good");
        assert!(matches!(home.library.find("broken"), Err(LibraryError::Card(_))));
        assert!(home.library.remove("broken").unwrap() > 0);
    }
}

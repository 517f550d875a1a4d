//! The embeddings of a project's images, in a database next to it: `photos.spotcheck-embeddings`. It can be deleted;
//! predicting with the model again fills it. Several vectors are committed together, and before the predictions
//! of their images, so that an interrupted run computes both again or neither.

mod form;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Row, Transaction, TransactionBehavior, params};

use self::form::{BOXES_TO_FIT, Form};
use super::Project;
use super::error::{StoreError, explain, is_damage, is_read_only};
use super::files::companion;
use super::names::{StoredName, from_stored, to_stored};
use super::open::{COPY, copy_files};
use crate::alike::{BoxEmbedding, Embedding, Embeddings, ImageEmbeddings, Pca};
use crate::dirs::Scratch;
use crate::domain::{Encoder, FileStamp, RunInfo, Sample, SampleUri};
use crate::tasks::{ProgressUnit, TaskControl};

/// `PRAGMA application_id`: “spoe” in ASCII.
const APPLICATION_ID: i64 = 0x7370_6f65;
/// `PRAGMA user_version` that this program writes.
const VERSION: u32 = 2;

const TABLES: &str = "
CREATE TABLE encoders (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    encoder TEXT NOT NULL UNIQUE, -- JSON
    reference BLOB, -- a vector, f16; those of images are differences to it, in 8 bits
    box_basis BLOB -- the main directions of the vectors of boxes, which then have 8 bits per direction
);
CREATE TABLE embeddings (
    encoder INTEGER NOT NULL REFERENCES encoders (id) ON DELETE CASCADE,
    is_below_root INTEGER NOT NULL,
    name TEXT NOT NULL, -- as in the project
    size_bytes INTEGER NOT NULL,
    modified_ns INTEGER,
    etag TEXT,
    vector BLOB NOT NULL, -- f16, little-endian, or a difference
    boxes BLOB, -- for each: its index, and its vector
    UNIQUE (encoder, name, is_below_root)
);
";

/// From version 1, which had no boxes.
const UPGRADE: &str = "
ALTER TABLE encoders ADD COLUMN reference BLOB;
ALTER TABLE encoders ADD COLUMN box_basis BLOB;
ALTER TABLE embeddings ADD COLUMN boxes BLOB;
";

/// A commit writes a whole page even for one vector, so images are committed together after this time.
const COMMIT_EVERY: Duration = Duration::from_millis(100);
/// So many images are committed earlier, because they take memory.
const MAX_PENDING: usize = 256;

/// An encoder in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderId(i64);

/// Saves the embeddings of one encoder.
pub struct EmbeddingWriter {
    store: EmbeddingStore,
    encoder: (EncoderId, Encoder),
    form: Form,
    /// Boxes whose vectors are not reduced.
    boxes_in_full: usize,
    pending: Vec<(SampleUri, FileStamp, ImageEmbeddings)>,
    committed: Instant,
}

impl EmbeddingWriter {
    /// `None` for a project in memory.
    pub fn open(project: &Project, encoder: &Encoder) -> Result<Option<Self>, StoreError> {
        let Some(store) = EmbeddingStore::create(project)? else {
            return Ok(None);
        };
        let id = store.begin(encoder, &project.runs()?)?;
        let form = store.form(id, encoder)?;
        let boxes_in_full = if form.basis.is_some() { 0 } else { store.box_bytes(id)? / form.bytes_per_box() };
        let encoder = (id, encoder.clone());
        Ok(Some(Self { store, encoder, form, boxes_in_full, pending: Vec::new(), committed: Instant::now() }))
    }

    /// Whether the file is still the one of this project: neither deleted, nor is the project saved elsewhere by now.
    pub fn is_of(&self, project: &Project) -> bool {
        let path = project.path().map(|path| EmbeddingStore::path_for(&path));
        path.is_some_and(|path| path == self.store.path && path.exists())
    }

    /// The versions of the images with an embedding.
    pub fn stamps(&self) -> Result<HashMap<SampleUri, FileStamp>, StoreError> {
        self.store.stamps(self.encoder.0)
    }

    /// Saves the embeddings of the present version of an image with the next [`commit`](Self::commit), which is done
    /// here if many are pending.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit).
    pub fn save(&mut self, sample: &Sample, embeddings: ImageEmbeddings) -> Result<(), StoreError> {
        self.pending.push((sample.uri.clone(), sample.stamp(), embeddings));
        if self.pending.len() < MAX_PENDING { Ok(()) } else { self.commit() }
    }

    /// Whether it is time to commit.
    pub fn is_due(&self) -> bool {
        self.committed.elapsed() >= COMMIT_EVERY
    }

    /// Writes everything saved so far to the file.
    ///
    /// # Errors
    /// The file cannot be written, or was deleted; what was not yet in it is dropped.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        let Self { store, encoder: (id, encoder), form, boxes_in_full, pending, committed } = self;
        let pending = std::mem::take(pending);
        *committed = Instant::now();
        if !store.path.exists() {
            let reason = "the file was removed while vectors were saved in it; leave it in place".to_owned();
            return Err(StoreError::Embeddings { path: store.path.clone(), reason, is_read_only: false });
        }
        if pending.is_empty() {
            return Ok(());
        }
        let transaction = Transaction::new_unchecked(&store.connection, TransactionBehavior::Immediate);
        let transaction = transaction.map_err(failed(&store.path))?;
        if form.may_change() {
            // By another writer of the same file: the window predicts single images while it predicts many.
            *form = store.form(*id, encoder)?;
        }
        for (uri, stamp, embeddings) in &pending {
            if form.may_change() && form.reference.is_none() {
                store.set_reference(*id, &embeddings.image)?;
                form.reference = Some(embeddings.image.clone());
            }
            store.save(*id, form, (uri, stamp), embeddings)?;
            if form.may_change() {
                *boxes_in_full += embeddings.boxes.len();
                if *boxes_in_full >= BOXES_TO_FIT {
                    *form = store.reduce_boxes(*id, form)?;
                }
            }
        }
        transaction.commit().map_err(failed(&store.path))
    }
}

impl Drop for EmbeddingWriter {
    fn drop(&mut self) {
        if !self.pending.is_empty()
            && let Err(error) = self.commit()
        {
            log::warn!("the last embeddings are not saved, and will be computed again: {error}");
        }
    }
}

/// The open file.
pub struct EmbeddingStore {
    connection: Connection,
    path: PathBuf,
    root: Option<Arc<str>>,
    /// What is read instead of the file.
    _copy: Option<Scratch>,
}

impl EmbeddingStore {
    /// The file of a project.
    pub fn path_for(project: &Path) -> PathBuf {
        companion(project, "-embeddings")
    }

    /// The file of a project, and what is not yet moved into it.
    pub fn files(project: &Path) -> [PathBuf; 2] {
        let file = Self::path_for(project);
        [companion(&file, "-wal"), file]
    }

    /// Opens the project's file to read, or a copy of it if nothing can be written next to it; `None` if there is none.
    pub fn open(project: &Project) -> Result<Option<Self>, StoreError> {
        let Some(path) = project.path().map(|path| Self::path_for(&path)).filter(|path| path.exists()) else {
            return Ok(None);
        };
        match Self::open_with(project, path.clone(), OpenFlags::SQLITE_OPEN_READ_WRITE) {
            Err(StoreError::Embeddings { is_read_only: true, .. }) => {
                let copy = copy_files(&path)?;
                let opened = Self::open_with(project, copy.path().join(COPY), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
                Ok(Some(Self { path, _copy: Some(copy), ..opened }))
            }
            opened => opened.map(Some),
        }
    }

    /// Opens or creates the project's file to write; `None` for a project in memory.
    fn create(project: &Project) -> Result<Option<Self>, StoreError> {
        let path = project.path().map(|path| Self::path_for(&path));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        path.map(|path| Self::open_with(project, path, flags)).transpose()
    }

    fn open_with(project: &Project, path: PathBuf, flags: OpenFlags) -> Result<Self, StoreError> {
        let open = || {
            let connection = Connection::open_with_flags(&path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            connection.busy_timeout(super::BUSY_TIMEOUT)?;
            let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            let is_new = number("user_version")? == 0 && number("schema_version")? == 0;
            if is_new {
                // Several vectors per page.
                connection.pragma_update(None, "page_size", 32768)?;
            }
            connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            // A crash of the program loses nothing, one of the machine perhaps the last vectors, which are computed again.
            connection.execute_batch("PRAGMA synchronous = normal; PRAGMA foreign_keys = on;")?;
            if is_new {
                connection.execute_batch(&format!(
                    "BEGIN; {TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
                ))?;
            }
            if (number("application_id")?, number("user_version")?) == (APPLICATION_ID, 1) {
                connection.execute_batch(&format!("BEGIN; {UPGRADE} PRAGMA user_version = {VERSION}; COMMIT;"))?;
            }
            let found = (number("application_id")?, number("user_version")?);
            Ok((connection, found))
        };
        let (connection, found) = open().map_err(failed(&path))?;
        match found {
            (APPLICATION_ID, version) if version == i64::from(VERSION) => {}
            (APPLICATION_ID, version) => {
                let found = u32::try_from(version).unwrap_or(u32::MAX);
                return Err(StoreError::Newer { path, found, known: VERSION });
            }
            _ => return Err(StoreError::NotAProject(path)),
        }
        Ok(Self { connection, path, root: project.root(), _copy: None })
    }

    /// The encoders of all models.
    pub fn encoders(&self) -> Result<Vec<(EncoderId, Encoder)>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare("SELECT id, encoder FROM encoders ORDER BY id")?;
            let rows = statement.query_map([], |row| Ok((EncoderId(row.get(0)?), row.get::<_, String>(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = read().map_err(failed(&self.path))?;
        // An encoder of a later version that cannot be read here is not used.
        let parsed = rows.into_iter().filter_map(|(id, text)| Some((id, serde_json::from_str(&text).ok()?)));
        Ok(parsed.collect())
    }

    /// The encoder of a run's model.
    pub fn encoder_of(&self, run: &RunInfo) -> Result<Option<(EncoderId, Encoder)>, StoreError> {
        Ok(self.encoders()?.into_iter().find(|(_, encoder)| encoder.is_of(run)))
    }

    /// Adds the encoder unless the file has it. Embeddings of an earlier version of the same model are deleted, unless a
    /// run has no others.
    fn begin(&self, encoder: &Encoder, runs: &[RunInfo]) -> Result<EncoderId, StoreError> {
        let text = serde_json::to_string(encoder)
            .map_err(|error| StoreError::Database { what: "save the embeddings", reason: error.to_string() })?;
        let is_needed = |old: &Encoder| runs.iter().any(|run| old.is_of(run) && !encoder.is_of(run));
        let mut old = self.encoders()?;
        old.retain(|(_, old)| old.model_id == encoder.model_id && old != encoder && !is_needed(old));
        let begin = || {
            for (id, _) in &old {
                self.connection.execute("DELETE FROM encoders WHERE id = ?1", [id.0])?;
            }
            let sql = "INSERT INTO encoders (model, encoder) VALUES (?1, ?2) ON CONFLICT (encoder) DO NOTHING";
            self.connection.execute(sql, params![encoder.model_id, text])?;
            let sql = "SELECT id FROM encoders WHERE encoder = ?1";
            self.connection.query_row(sql, [&text], |row| row.get(0)).map(EncoderId)
        };
        begin().map_err(failed(&self.path))
    }

    /// How the vectors of an encoder are stored.
    fn form(&self, id: EncoderId, encoder: &Encoder) -> Result<Form, StoreError> {
        let read = || {
            let sql = "SELECT reference, box_basis FROM encoders WHERE id = ?1";
            self.connection.query_row(sql, [id.0], |row| {
                let [reference, basis] = [row.get_ref(0)?.as_blob_or_null()?, row.get_ref(1)?.as_blob_or_null()?];
                Ok(Form::new(encoder, reference, basis))
            })
        };
        let damaged_form = || StoreError::DamagedEmbeddings {
            path: self.path.clone(),
            reason: "the form of its vectors is unreadable".to_owned(),
        };
        read().map_err(failed(&self.path))?.ok_or_else(damaged_form)
    }

    fn set_reference(&self, encoder: EncoderId, reference: &Embedding) -> Result<(), StoreError> {
        let sql = "UPDATE encoders SET reference = ?2 WHERE id = ?1";
        self.connection.execute(sql, params![encoder.0, reference.to_bytes()]).map(drop).map_err(failed(&self.path))
    }

    fn box_bytes(&self, encoder: EncoderId) -> Result<usize, StoreError> {
        let sql = "SELECT coalesce(sum(length(boxes)), 0) FROM embeddings WHERE encoder = ?1";
        let sum = self.connection.query_row(sql, [encoder.0], |row| row.get::<_, i64>(0));
        sum.map(|sum| sum as usize).map_err(failed(&self.path))
    }

    /// Reduces the vectors of all boxes so far to their main directions. Belongs into a transaction.
    fn reduce_boxes(&self, encoder: EncoderId, full: &Form) -> Result<Form, StoreError> {
        let reduce = || {
            let mut all: Vec<(i64, Vec<BoxEmbedding>)> = Vec::new();
            let sql = "SELECT rowid, boxes FROM embeddings WHERE encoder = ?1 AND boxes IS NOT NULL ORDER BY rowid";
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([encoder.0])?;
            while let Some(row) = rows.next()? {
                all.push((row.get(0)?, full.boxes_from_bytes(row.get_ref(1)?.as_blob()?).collect()));
            }
            let mut vectors = Embeddings::default();
            for one in all.iter().flat_map(|(_, boxes)| boxes) {
                let _same_dims = vectors.push(&one.embedding);
            }
            let reduced = full.reduced(&vectors);
            let basis = reduced.basis.as_ref().map(Pca::to_bytes);
            self.connection.execute("UPDATE encoders SET box_basis = ?2 WHERE id = ?1", params![encoder.0, basis])?;
            for (row, boxes) in &all {
                let bytes = reduced.boxes_to_bytes(boxes);
                self.connection.execute("UPDATE embeddings SET boxes = ?2 WHERE rowid = ?1", params![row, bytes])?;
            }
            Ok(reduced)
        };
        reduce().map_err(failed(&self.path))
    }

    /// Saves the embeddings of this version of an image.
    fn save(
        &self,
        encoder: EncoderId,
        form: &Form,
        (uri, stamp): (&SampleUri, &FileStamp),
        embeddings: &ImageEmbeddings,
    ) -> Result<(), StoreError> {
        let StoredName { is_below_root, name } = to_stored(self.root.as_deref(), uri);
        let Some(vector) = form.image_to_bytes(&embeddings.image) else {
            return Ok(());
        };
        let boxes = (form.box_dims > 0).then(|| form.boxes_to_bytes(&embeddings.boxes));
        let save = || {
            let mut statement = self.connection.prepare(
                "INSERT OR REPLACE INTO embeddings
                     (encoder, is_below_root, name, size_bytes, modified_ns, etag, vector, boxes)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?;
            let FileStamp { size_bytes, modified_ns, etag } = stamp;
            let size = *size_bytes as i64;
            statement.execute(params![
                encoder.0,
                is_below_root,
                name,
                size,
                modified_ns,
                etag.as_deref(),
                vector,
                boxes
            ])
        };
        save().map(drop).map_err(failed(&self.path))
    }

    /// Passes every usable embedding of an encoder to `take`, with the version of its image. Progress is in images.
    pub fn each(
        &self,
        (id, encoder): &(EncoderId, Encoder),
        control: &TaskControl,
        mut take: impl FnMut(SampleUri, FileStamp, Embedding),
    ) -> Result<(), StoreError> {
        let form = self.form(*id, encoder)?;
        self.each_row(*id, ", vector", control, |uri, stamp, row| {
            if let Some(embedding) = form.image_from_bytes(row.get_ref(5)?.as_blob()?) {
                take(uri, stamp, embedding);
            }
            Ok(())
        })
    }

    /// Passes the usable embeddings of the boxes of each image to `take`, with the version of the image. Returns the
    /// directions that they were reduced to, if any. Progress is in images.
    pub fn each_with_boxes(
        &self,
        (id, encoder): &(EncoderId, Encoder),
        control: &TaskControl,
        mut take: impl FnMut(SampleUri, FileStamp, Vec<BoxEmbedding>),
    ) -> Result<Option<Pca>, StoreError> {
        let form = self.form(*id, encoder)?;
        self.each_row(*id, ", boxes", control, |uri, stamp, row| {
            if let Some(bytes) = row.get_ref(5)?.as_blob_or_null()? {
                take(uri, stamp, form.boxes_from_bytes(bytes).collect());
            }
            Ok(())
        })?;
        Ok(form.basis)
    }

    /// The versions of the images with an embedding of a run.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn stamps_of(project: &Project, run: &RunInfo) -> Result<HashMap<SampleUri, FileStamp>, StoreError> {
        let Some(store) = Self::open(project)? else {
            return Ok(HashMap::new());
        };
        let encoder = store.encoder_of(run)?;
        encoder.map_or_else(|| Ok(HashMap::new()), |(id, _)| store.stamps(id))
    }

    /// The versions of the images with an embedding. Does not read the vectors.
    fn stamps(&self, encoder: EncoderId) -> Result<HashMap<SampleUri, FileStamp>, StoreError> {
        let mut stamps = HashMap::new();
        self.each_row(encoder, "", &TaskControl::new(ProgressUnit::Images), |uri, stamp, _| {
            stamps.insert(uri, stamp);
            Ok(())
        })?;
        Ok(stamps)
    }

    /// Reads the rows of an encoder, with `more` columns after those of the image.
    fn each_row(
        &self,
        encoder: EncoderId,
        more: &str,
        control: &TaskControl,
        mut take: impl FnMut(SampleUri, FileStamp, &Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        control.begin(ProgressUnit::Images);
        let mut read = || {
            let sql = "SELECT count(*) FROM embeddings WHERE encoder = ?1";
            let count: i64 = self.connection.query_row(sql, [encoder.0], |row| row.get(0))?;
            control.set_total(Some(count as u64));
            let sql = format!(
                "SELECT is_below_root, name, size_bytes, modified_ns, etag{more} FROM embeddings WHERE encoder = ?1"
            );
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query([encoder.0])?;
            while let Some(row) = rows.next()? {
                if control.checkpoint().is_err() {
                    break;
                }
                let stored = StoredName { is_below_root: row.get(0)?, name: row.get(1)? };
                let etag: Option<String> = row.get(4)?;
                let stamp = FileStamp {
                    size_bytes: row.get::<_, i64>(2)? as u64,
                    modified_ns: row.get(3)?,
                    etag: etag.map(Arc::from),
                };
                take(from_stored(self.root.as_deref(), &stored), stamp, row)?;
                control.add_done(1);
            }
            Ok(())
        };
        read().map_err(failed(&self.path))?;
        Ok(control.checkpoint()?)
    }
}

/// The error of a failed statement. Only a damaged file has to be deleted, as it is a by-product.
fn failed(path: &Path) -> impl FnOnce(rusqlite::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |error| {
        if is_damage(&error) {
            return StoreError::DamagedEmbeddings { path, reason: error.to_string() };
        }
        StoreError::Embeddings { path, reason: explain(&error), is_read_only: is_read_only(&error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BoxEncoder, BoxFeatures, ElementType, ImageInput, Layout, ResizeRule};
    use crate::project::{OpenMode, OpenRequest};

    fn encoder(sha: &str) -> Encoder {
        Encoder {
            model_id: "toy".to_owned(),
            weights_sha256: sha.to_owned(),
            tensor: "features".to_owned(),
            layer: String::new(),
            tokens: None,
            dims: 2,
            input: ImageInput::new(Layout::Nchw, ElementType::Float32, ResizeRule::Keep {}),
            boxes: None,
        }
    }

    fn control() -> TaskControl {
        TaskControl::new(ProgressUnit::Images)
    }

    fn without_boxes(image: Embedding) -> ImageEmbeddings {
        ImageEmbeddings { image, boxes: Vec::new() }
    }

    fn project(folder: &Path) -> Project {
        let path = folder.join("p.spotcheck");
        let request = OpenRequest { path: &path, root: Some("/photos"), mode: OpenMode::Write, program: "test" };
        Project::open(&request, |_| ()).unwrap().project
    }

    fn all(store: &EmbeddingStore, encoder: &(EncoderId, Encoder)) -> Vec<(String, u64, Embedding)> {
        let mut found = Vec::new();
        let take = |uri: SampleUri, stamp: FileStamp, vector| found.push((uri.to_string(), stamp.size_bytes, vector));
        store.each(encoder, &control(), take).unwrap();
        found
    }

    #[test]
    fn embeddings_survive_and_follow_model_and_file() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        assert!(EmbeddingStore::open(&project).unwrap().is_none());
        let vector = |first: f32| Embedding::new(&[first, 2.0]).unwrap();
        let uri = SampleUri::new("/photos/a.jpg");
        let stamp = |size_bytes| FileStamp { size_bytes, modified_ns: Some(5), etag: None };
        {
            let store = EmbeddingStore::create(&project).unwrap().unwrap();
            let id = store.begin(&encoder("1"), &[]).unwrap();
            let form = store.form(id, &encoder("1")).unwrap();
            store.save(id, &form, (&uri, &stamp(10)), &without_boxes(vector(1.0))).unwrap();
            assert_eq!(store.stamps(id).unwrap()[&uri], stamp(10));
            store.save(id, &form, (&uri, &stamp(11)), &without_boxes(vector(3.0))).unwrap();
            // As after a kill: nothing is closed.
            std::mem::forget(store);
        }
        let store = EmbeddingStore::open(&project).unwrap().unwrap();
        let [one] = store.encoders().unwrap().try_into().unwrap();
        assert_eq!(one.1, encoder("1"));
        assert_eq!(store.begin(&one.1, &[]).unwrap(), one.0);
        assert_eq!(all(&store, &one), [("/photos/a.jpg".to_owned(), 11, vector(3.0))]);
        let next = store.begin(&encoder("2"), &[]).unwrap();
        assert!(all(&store, &(next, encoder("2"))).is_empty(), "another model");
        assert_eq!(store.encoders().unwrap().len(), 1);
    }

    #[test]
    fn boxes_are_reduced_once_there_are_enough() {
        const DIMS: usize = 100;
        const BOXES_PER_IMAGE: usize = 40;
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let boxes = BoxEncoder { features: BoxFeatures::Maps(vec!["map".to_owned()]), dims: DIMS };
        let encoder = Encoder { boxes: Some(boxes), ..encoder("1") };
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        };
        // Vectors in ten directions, and some noise.
        let mut one = |index: u16| {
            let mut values: Vec<f32> = (0..DIMS).map(|_| random() * 0.01).collect();
            values[usize::from(index) % 10] += 1.0 + random();
            BoxEmbedding { index, embedding: Embedding::new(&values).unwrap() }
        };
        let images = BOXES_TO_FIT / BOXES_PER_IMAGE + 30;
        let all: Vec<ImageEmbeddings> = (0..images)
            .map(|at| ImageEmbeddings {
                image: Embedding::new(&[at as f32, 1.0]).unwrap(),
                boxes: (0..BOXES_PER_IMAGE as u16).map(&mut one).collect(),
            })
            .collect();
        let sample = |at: usize| {
            let name = format!("{at}.jpg");
            let uri = SampleUri::new(format!("/photos/{name}"));
            Sample::new(uri, name, 1)
        };
        let open = || EmbeddingWriter::open(&project, &encoder).unwrap().unwrap();
        let (mut writer, mut single) = (open(), open());
        for (at, embeddings) in all.iter().enumerate() {
            // A run that is interrupted now and then, just after a commit: nothing is closed.
            if at % 100 == 0 {
                writer.commit().unwrap();
                std::mem::forget(std::mem::replace(&mut writer, open()));
            }
            // Every tenth image by another writer, which was opened before.
            let is_single = at % 10 == 0;
            let writer = if is_single { &mut single } else { &mut writer };
            writer.save(&sample(at), embeddings.clone()).unwrap();
            if is_single {
                writer.commit().unwrap();
            }
        }
        drop(writer);
        let store = EmbeddingStore::open(&project).unwrap().unwrap();
        let [one] = store.encoders().unwrap().try_into().unwrap();
        let mut found = Vec::new();
        let basis = store.each_with_boxes(&one, &control(), |uri, _, boxes| found.push((uri, boxes))).unwrap().unwrap();
        assert_eq!((found.len(), basis.count()), (images, 96));
        let [mut exact, mut reduced] = [Embeddings::default(), Embeddings::default()];
        for (uri, boxes) in &found {
            let number = uri.as_str().trim_start_matches("/photos/").trim_end_matches(".jpg");
            let saved = &all[number.parse::<usize>().unwrap()];
            assert_eq!(boxes.len(), BOXES_PER_IMAGE);
            for (found, saved) in boxes.iter().zip(&saved.boxes) {
                assert_eq!(found.index, saved.index);
                assert!(reduced.push(&found.embedding) && exact.push(&saved.embedding));
            }
        }
        let similarities = |all: &Embeddings| all.similarities(&all.row(0).unwrap());
        for (found, expected) in similarities(&reduced).iter().zip(similarities(&exact)) {
            assert!((found - expected).abs() < 0.02, "{found}, expected {expected}");
        }
        let mut images = 0;
        store.each(&one, &control(), |_, _, _| images += 1).unwrap();
        assert_eq!(images, found.len());
    }

    fn save_another(writer: &mut EmbeddingWriter) {
        let sample = Sample::new(SampleUri::new("/photos/b.jpg"), "b.jpg", 1);
        writer.save(&sample, without_boxes(Embedding::new(&[0.0, 1.0]).unwrap())).unwrap();
        writer.commit().unwrap();
    }

    #[test]
    fn embeddings_follow_a_copy_of_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let mut writer = EmbeddingWriter::open(&project, &encoder("1")).unwrap().unwrap();
        save_another(&mut writer);
        let path = project.save_as(&folder.path().join("copy.spotcheck"), "test").unwrap();
        let request = OpenRequest { path: &path, root: Some("/photos"), mode: OpenMode::Write, program: "test" };
        let copy = Project::open(&request, |_| ()).unwrap().project;
        let store = EmbeddingStore::open(&copy).unwrap().unwrap();
        let [one] = store.encoders().unwrap().try_into().unwrap();
        assert_eq!(all(&store, &one).len(), 1);
        assert!(writer.is_of(&project) && !writer.is_of(&copy));
    }

    #[test]
    fn only_damaged_files_have_to_be_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let path = EmbeddingStore::path_for(&project.path().unwrap());
        let mut writer = EmbeddingWriter::open(&project, &encoder("1")).unwrap().unwrap();
        save_another(&mut writer);
        let sample = Sample::new(SampleUri::new("/photos/c.jpg"), "c.jpg", 1);
        let mut fails = |what: &str| {
            writer.save(&sample, without_boxes(Embedding::new(&[0.0, 1.0]).unwrap())).unwrap();
            let error = writer.commit().unwrap_err();
            assert!(matches!(error, StoreError::Embeddings { .. }), "{what}: {error}");
            assert!(error.to_string().contains(what) && !error.to_string().contains("delete"), "{what}: {error}");
        };
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        fails("close it");
        drop(other);
        std::fs::remove_file(&path).unwrap();
        fails("was removed");
    }

    #[test]
    fn file_is_read_where_nothing_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let path = EmbeddingStore::path_for(&project.path().unwrap());
        save_another(&mut EmbeddingWriter::open(&project, &encoder("1")).unwrap().unwrap());
        // A folder in place of the journal denies it to every user, even one who may write everywhere.
        std::fs::create_dir(companion(&path, "-wal")).unwrap();
        let store = EmbeddingStore::open(&project).unwrap().unwrap();
        let [one] = store.encoders().unwrap().try_into().unwrap();
        assert_eq!(all(&store, &one).len(), 1);
        assert!(matches!(EmbeddingStore::create(&project), Err(StoreError::Embeddings { is_read_only: true, .. })));
    }

    #[test]
    fn files_without_boxes_are_upgraded() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let path = EmbeddingStore::path_for(&project.path().unwrap());
        let connection = Connection::open(&path).unwrap();
        let old = TABLES
            .replace("UNIQUE, -- JSON", "UNIQUE -- JSON")
            .lines()
            .filter(|line| !["reference BLOB", "box_basis BLOB", "boxes BLOB"].iter().any(|part| line.contains(part)))
            .collect::<Vec<_>>()
            .join("\n");
        connection.execute_batch(&old).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let text = serde_json::to_string(&encoder("1")).unwrap();
        connection.execute("INSERT INTO encoders VALUES (1, 'toy', ?1)", [text]).unwrap();
        let vector = Embedding::new(&[1.0, 2.0]).unwrap();
        let sql = "INSERT INTO embeddings VALUES (1, 0, '/photos/a.jpg', 10, NULL, NULL, ?1)";
        connection.execute(sql, [vector.to_bytes()]).unwrap();
        drop(connection);
        let store = EmbeddingStore::open(&project).unwrap().unwrap();
        let [one] = store.encoders().unwrap().try_into().unwrap();
        assert_eq!(all(&store, &one), [("/photos/a.jpg".to_owned(), 10, vector)]);
        let mut writer = EmbeddingWriter::open(&project, &encoder("1")).unwrap().unwrap();
        save_another(&mut writer);
        assert_eq!(all(&store, &one).len(), 2);
    }

    #[test]
    fn newer_foreign_and_damaged_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let path = EmbeddingStore::path_for(&project.path().unwrap());
        drop(EmbeddingStore::create(&project).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(EmbeddingStore::create(&project), Err(StoreError::Newer { found: 99, .. })));
        connection.pragma_update(None, "application_id", 1).unwrap();
        assert!(matches!(EmbeddingStore::create(&project), Err(StoreError::NotAProject(_))));
        drop(connection);
        std::fs::write(&path, "not a database, but long enough to look like a file that someone wants to keep")
            .unwrap();
        assert!(matches!(EmbeddingStore::create(&project), Err(StoreError::DamagedEmbeddings { .. })));
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("not a database"));
    }
}

//! The embeddings of a project's images, in a database next to it: `photos.spotcheck-embeddings`. It can be deleted;
//! predicting with the model again fills it. Every vector is committed by itself, so that an interrupted run keeps all.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags, Row, params};

use super::Project;
use super::error::StoreError;
use super::files::companion;
use super::names::{StoredName, from_stored, to_stored};
use crate::alike::Embedding;
use crate::domain::{Encoder, FileStamp, Sample, SampleUri};

/// `PRAGMA application_id`: “spoe” in ASCII.
const APPLICATION_ID: i64 = 0x7370_6f65;
/// `PRAGMA user_version` that this program writes.
const VERSION: u32 = 1;

const TABLES: &str = "
CREATE TABLE encoders (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    encoder TEXT NOT NULL UNIQUE -- JSON
);
CREATE TABLE embeddings (
    encoder INTEGER NOT NULL REFERENCES encoders (id) ON DELETE CASCADE,
    is_below_root INTEGER NOT NULL,
    name TEXT NOT NULL, -- as in the project
    size_bytes INTEGER NOT NULL,
    modified_ns INTEGER,
    etag TEXT,
    vector BLOB NOT NULL, -- f16, little-endian
    UNIQUE (encoder, name, is_below_root)
);
";

/// An encoder in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderId(i64);

/// Saves the embeddings of one encoder.
pub struct EmbeddingWriter {
    store: EmbeddingStore,
    encoder: EncoderId,
}

impl EmbeddingWriter {
    /// `None` for a project in memory.
    pub fn open(project: &Project, encoder: &Encoder) -> Result<Option<Self>, StoreError> {
        let Some(store) = EmbeddingStore::create(project)? else {
            return Ok(None);
        };
        let encoder = store.begin(encoder)?;
        Ok(Some(Self { store, encoder }))
    }

    /// The versions of the images with an embedding.
    pub fn stamps(&self) -> Result<HashMap<SampleUri, FileStamp>, StoreError> {
        self.store.stamps(self.encoder)
    }

    /// Saves the embedding of the present version of an image.
    pub fn save(&self, sample: &Sample, embedding: &Embedding) -> Result<(), StoreError> {
        self.store.save(self.encoder, &sample.uri, &sample.stamp(), embedding)
    }
}

/// The open file.
pub struct EmbeddingStore {
    connection: Connection,
    path: PathBuf,
    root: Option<Arc<str>>,
}

impl EmbeddingStore {
    /// The file of a project.
    pub fn path_for(project: &Path) -> PathBuf {
        companion(project, "-embeddings")
    }

    /// Opens the project's file to read; `None` if there is none.
    pub fn open(project: &Project) -> Result<Option<Self>, StoreError> {
        let path = project.path().map(|path| Self::path_for(&path)).filter(|path| path.exists());
        path.map(|path| Self::open_with(project, path, OpenFlags::SQLITE_OPEN_READ_WRITE)).transpose()
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
            let found = (number("application_id")?, number("user_version")?);
            Ok((connection, found))
        };
        let (connection, found) = open().map_err(damaged(&path))?;
        match found {
            (APPLICATION_ID, version) if version == i64::from(VERSION) => {}
            (APPLICATION_ID, version) => {
                let found = u32::try_from(version).unwrap_or(u32::MAX);
                return Err(StoreError::Newer { path, found, known: VERSION });
            }
            _ => return Err(StoreError::NotAProject(path)),
        }
        Ok(Self { connection, path, root: project.root() })
    }

    /// The encoders of all models.
    pub fn encoders(&self) -> Result<Vec<(EncoderId, Encoder)>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare("SELECT id, encoder FROM encoders ORDER BY id")?;
            let rows = statement.query_map([], |row| Ok((EncoderId(row.get(0)?), row.get::<_, String>(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = read().map_err(damaged(&self.path))?;
        // An encoder of a later version that cannot be read here is not used.
        let parsed = rows.into_iter().filter_map(|(id, text)| Some((id, serde_json::from_str(&text).ok()?)));
        Ok(parsed.collect())
    }

    /// Adds the encoder unless the file has it. Embeddings of an earlier version of the same model are deleted.
    fn begin(&self, encoder: &Encoder) -> Result<EncoderId, StoreError> {
        let text = serde_json::to_string(encoder)
            .map_err(|error| StoreError::Database { what: "save the embeddings", reason: error.to_string() })?;
        let begin = || {
            let sql = "DELETE FROM encoders WHERE model = ?1 AND encoder != ?2";
            self.connection.execute(sql, params![encoder.model_id, text])?;
            let sql = "INSERT INTO encoders (model, encoder) VALUES (?1, ?2) ON CONFLICT (encoder) DO NOTHING";
            self.connection.execute(sql, params![encoder.model_id, text])?;
            let sql = "SELECT id FROM encoders WHERE encoder = ?1";
            self.connection.query_row(sql, [&text], |row| row.get(0)).map(EncoderId)
        };
        begin().map_err(damaged(&self.path))
    }

    /// Saves the embedding of this version of an image.
    fn save(
        &self,
        encoder: EncoderId,
        uri: &SampleUri,
        stamp: &FileStamp,
        embedding: &Embedding,
    ) -> Result<(), StoreError> {
        let StoredName { is_below_root, name } = to_stored(self.root.as_deref(), uri);
        let save = || {
            let mut statement = self.connection.prepare(
                "INSERT OR REPLACE INTO embeddings (encoder, is_below_root, name, size_bytes, modified_ns, etag, vector)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
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
                embedding.to_bytes()
            ])
        };
        save().map(drop).map_err(damaged(&self.path))
    }

    /// Passes every usable embedding of an encoder to `take`, with the version of its image.
    pub fn each(
        &self,
        encoder: EncoderId,
        mut take: impl FnMut(SampleUri, FileStamp, Embedding),
    ) -> Result<(), StoreError> {
        self.each_row(encoder, ", vector", |uri, stamp, row| {
            if let Some(embedding) = Embedding::from_bytes(row.get_ref(5)?.as_blob()?) {
                take(uri, stamp, embedding);
            }
            Ok(())
        })
    }

    /// The versions of the images with an embedding. Does not read the vectors.
    fn stamps(&self, encoder: EncoderId) -> Result<HashMap<SampleUri, FileStamp>, StoreError> {
        let mut stamps = HashMap::new();
        self.each_row(encoder, "", |uri, stamp, _| {
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
        mut take: impl FnMut(SampleUri, FileStamp, &Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let mut read = || {
            let sql = format!(
                "SELECT is_below_root, name, size_bytes, modified_ns, etag{more} FROM embeddings WHERE encoder = ?1"
            );
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query([encoder.0])?;
            while let Some(row) = rows.next()? {
                let stored = StoredName { is_below_root: row.get(0)?, name: row.get(1)? };
                let etag: Option<String> = row.get(4)?;
                let stamp = FileStamp {
                    size_bytes: row.get::<_, i64>(2)? as u64,
                    modified_ns: row.get(3)?,
                    etag: etag.map(Arc::from),
                };
                take(from_stored(self.root.as_deref(), &stored), stamp, row)?;
            }
            Ok(())
        };
        read().map_err(damaged(&self.path))
    }
}

/// The error of a failed statement: what to do about a file that is only a by-product.
fn damaged(path: &Path) -> impl FnOnce(rusqlite::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |error| StoreError::Embeddings { path, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ElementType, ImageInput, Layout, ResizeRule};
    use crate::project::{OpenMode, OpenRequest};

    fn encoder(sha: &str) -> Encoder {
        Encoder {
            model_id: "toy".to_owned(),
            weights_sha256: sha.to_owned(),
            tensor: "features".to_owned(),
            layer: String::new(),
            dims: 2,
            input: ImageInput::new(Layout::Nchw, ElementType::Float32, ResizeRule::Keep {}),
        }
    }

    fn project(folder: &Path) -> Project {
        let path = folder.join("p.spotcheck");
        let request = OpenRequest { path: &path, root: Some("/photos"), mode: OpenMode::Write, program: "test" };
        Project::open(&request, |_| ()).unwrap().project
    }

    fn all(store: &EmbeddingStore, encoder: EncoderId) -> Vec<(String, u64, Embedding)> {
        let mut found = Vec::new();
        store.each(encoder, |uri, stamp, vector| found.push((uri.to_string(), stamp.size_bytes, vector))).unwrap();
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
            let id = store.begin(&encoder("1")).unwrap();
            store.save(id, &uri, &stamp(10), &vector(1.0)).unwrap();
            assert_eq!(store.stamps(id).unwrap()[&uri], stamp(10));
            store.save(id, &uri, &stamp(11), &vector(3.0)).unwrap();
            // As after a kill: nothing is closed.
            std::mem::forget(store);
        }
        let store = EmbeddingStore::open(&project).unwrap().unwrap();
        let [(id, found)] = store.encoders().unwrap().try_into().unwrap();
        assert_eq!(found, encoder("1"));
        assert_eq!(store.begin(&found).unwrap(), id);
        assert_eq!(all(&store, id), [("/photos/a.jpg".to_owned(), 11, vector(3.0))]);
        let next = store.begin(&encoder("2")).unwrap();
        assert!(all(&store, next).is_empty(), "another model");
        assert_eq!(store.encoders().unwrap().len(), 1);
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
        assert!(matches!(EmbeddingStore::create(&project), Err(StoreError::Embeddings { .. })));
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("not a database"));
    }
}

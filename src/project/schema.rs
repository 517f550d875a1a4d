//! The tables of a project file, and the migrations from older formats.
//!
//! A change of the tables, or of the JSON in them, is a new version: add a step to [`MIGRATIONS`] and a file of the
//! previous version to `tests/projects/`.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction};

use super::names::{root_from_file, root_next_to_file};

/// `PRAGMA application_id` of a project: “spot” in ASCII.
pub(super) const APPLICATION_ID: i64 = 0x7370_6f74;

/// `PRAGMA user_version` that this program writes.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// Step `n` turns a file of version `n` into one of version `n + 1`; 0 is an empty file. Never change a released step.
const MIGRATIONS: [&str; 9] =
    [VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6, VERSION_7, VERSION_8, VERSION_9];

const VERSION_1: &str = "
CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- AUTOINCREMENT: an id is never given twice, even after its run was deleted.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    run_key TEXT NOT NULL, -- JSON
    card TEXT NOT NULL, -- JSON
    labels TEXT NOT NULL, -- JSON, names by class id
    created_ms INTEGER NOT NULL
);

CREATE TABLE samples (
    id INTEGER PRIMARY KEY,
    is_below_root INTEGER NOT NULL,
    name TEXT NOT NULL, -- from the root, with slashes, or a whole URI
    UNIQUE (name, is_below_root)
);

CREATE TABLE answers (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    sample INTEGER NOT NULL REFERENCES samples (id),
    kind INTEGER NOT NULL, -- 0 failure, 1 classes, 2 detections
    width INTEGER NOT NULL, -- of the upright image, in pixels
    height INTEGER NOT NULL,
    classes BLOB NOT NULL, -- u32, little-endian
    scores BLOB NOT NULL, -- f32, little-endian
    failure TEXT,
    PRIMARY KEY (run, sample)
) WITHOUT ROWID;

-- Apart from the answers, so that summaries are read without them.
CREATE TABLE boxes (
    run INTEGER NOT NULL,
    sample INTEGER NOT NULL,
    bounds BLOB NOT NULL, -- f32 left, top, right, bottom for each detection
    PRIMARY KEY (run, sample),
    FOREIGN KEY (run, sample) REFERENCES answers (run, sample) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE verdicts (
    sample INTEGER NOT NULL REFERENCES samples (id),
    run INTEGER NOT NULL, -- 0: judged without an answer
    box INTEGER NOT NULL, -- -1: the image as a whole
    verdict TEXT NOT NULL, -- accept, reject, unsure, wrong
    right_class TEXT, -- where the verdict is wrong
    PRIMARY KEY (sample, run, box)
) WITHOUT ROWID;

CREATE TABLE notes (
    sample INTEGER PRIMARY KEY REFERENCES samples (id),
    text TEXT NOT NULL
);

CREATE TABLE views (
    name TEXT PRIMARY KEY,
    json TEXT NOT NULL
) WITHOUT ROWID;
";

/// Adds tags, and the file version of each prediction.
const VERSION_2: &str = "
CREATE TABLE tags (
    sample INTEGER NOT NULL REFERENCES samples (id),
    tag TEXT NOT NULL,
    PRIMARY KEY (sample, tag)
) WITHOUT ROWID;

ALTER TABLE answers ADD COLUMN size_bytes INTEGER;
ALTER TABLE answers ADD COLUMN modified_ns INTEGER;
";

/// Adds the object version in S3 of each prediction.
const VERSION_3: &str = "
ALTER TABLE answers ADD COLUMN etag TEXT;
";

/// Adds where a run was computed: until then, always on this computer.
const VERSION_4: &str = "
UPDATE runs SET run_key = json_set(run_key, '$.made', 'here');
";

/// Adds problems of images that were predicted anyway: a JSON list of texts, or nothing.
const VERSION_5: &str = "
ALTER TABLE answers ADD COLUMN warnings TEXT;
";

/// Adds the verdicts `moved` and `added`, with the box that a person drew, and who gave a verdict. Their class is in
/// `right_class`.
const VERSION_6: &str = "
ALTER TABLE verdicts ADD COLUMN bounds TEXT; -- JSON: left, top, right, bottom in pixels
ALTER TABLE verdicts ADD COLUMN reviewer TEXT;
";

/// Adds the verdicts `complete` and `spurious`; the latter has no run (0), and a number from 0 as its box.
const VERSION_7: &str = "";

/// Adds the verdict `returned`.
const VERSION_8: &str = "";

/// Adds the runners-up of a detector's boxes: nothing, or for each box their number in one byte, then class id (u32) and
/// score (f32) of each, little-endian.
const VERSION_9: &str = "
ALTER TABLE boxes ADD COLUMN runners_up BLOB;
";

/// The tables, referenced ones first.
pub(super) const TABLES: [&str; 9] =
    ["facts", "runs", "samples", "verdicts", "notes", "tags", "views", "answers", "boxes"];

/// Sets up a connection that writes. Sizes that must be chosen before the first table come first.
pub(super) fn prepare_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(super::BUSY_TIMEOUT)?;
    // Several predictions per page.
    connection.pragma_update(None, "page_size", 16384)?;
    let set = |name: &str, value: &str| connection.pragma_update_and_check(None, name, value, |_| Ok(()));
    set("journal_mode", "wal")?;
    connection.execute_batch(
        "PRAGMA synchronous = full; PRAGMA fullfsync = on; PRAGMA checkpoint_fullfsync = on; PRAGMA foreign_keys = on;
         PRAGMA journal_size_limit = 67108864;",
    )
}

/// Upgrades a file of any older version, or an empty one, in one transaction.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    migrate_to(connection, VERSION)
}

fn migrate_to(connection: &mut Connection, wanted: u32) -> rusqlite::Result<()> {
    let found = version(connection)?;
    if found == wanted {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in &MIGRATIONS[found as usize..wanted as usize] {
        transaction.execute_batch(step)?;
    }
    set_version(&transaction, wanted)?;
    transaction.commit()
}

/// How the tables of a file of this or an older version differ from those that the program created then, as text;
/// `None` if they do not. SQLite's own checks do not notice it: a table with another name, or a dangling reference, is
/// valid in a database.
pub(super) fn fault(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut made = Connection::open_in_memory()?;
    migrate_to(&mut made, version(connection)?)?;
    for table in TABLES {
        let (found, expected) = (shape(connection, table)?, shape(&made, table)?);
        if found.is_empty() && !expected.is_empty() {
            return Ok(Some(format!("the table {table} is missing")));
        }
        if let Some(lost) = expected.difference(&found).next() {
            return Ok(Some(format!("the table {table} does not have {lost}")));
        }
        if let Some(strange) = found.difference(&expected).next() {
            return Ok(Some(format!("the table {table} has an unexpected {strange}")));
        }
    }
    Ok(None)
}

/// The properties of a table that the program's statements depend on, one per line; empty for a missing table.
fn shape(connection: &Connection, table: &str) -> rusqlite::Result<BTreeSet<String>> {
    let sql = "
        SELECT concat_ws(' ', 'column', name, type, iif(\"notnull\", 'not null', NULL), iif(pk, \
        concat('key ', pk), NULL))
        FROM pragma_table_info(?1)
        UNION ALL
        SELECT \
        concat('reference from ', \"from\", ' to ', \"table\", '.', \"to\", ' on delete ', on_delete)
        FROM \
        pragma_foreign_key_list(?1)
        UNION ALL
        SELECT concat('unique ', (SELECT group_concat(name) \
        FROM pragma_index_info(list.name)))
        FROM pragma_index_list(?1) AS list WHERE \"unique\"";
    let mut statement = connection.prepare(sql)?;
    let lines = statement.query_map([table], |row| row.get(0))?;
    lines.collect()
}

pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn set_version(transaction: &Transaction<'_>, version: u32) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)
}

pub(super) fn fact(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT value FROM facts WHERE name = ?1";
    connection.query_row(sql, [name], |row| row.get(0)).optional()
}

pub(super) fn set_fact(connection: &Connection, name: &str, value: Option<&str>) -> rusqlite::Result<()> {
    match value {
        Some(value) => {
            let sql = "INSERT INTO facts (name, value) VALUES (?1, ?2)
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            connection.execute(sql, [name, value])?;
        }
        None => {
            connection.execute("DELETE FROM facts WHERE name = ?1", [name])?;
        }
    }
    Ok(())
}

/// Stores the image folder: absolute, and relative to the file if both can move together.
pub(super) fn set_root(connection: &Connection, file: &Path, root: Option<&str>) -> rusqlite::Result<()> {
    let from_file = root.and_then(|root| root_from_file(file, root));
    set_fact(connection, "root", root)?;
    set_fact(connection, "root_from_file", from_file.as_deref())
}

/// The image folder: relative to the file if both moved together, otherwise unchanged.
pub(super) fn read_root(connection: &Connection, file: &Path) -> rusqlite::Result<Option<String>> {
    let from_file = fact(connection, "root_from_file")?;
    let moved =
        from_file.and_then(|from_file| root_next_to_file(file, &from_file)).filter(|root| Path::new(root).is_dir());
    match moved {
        Some(root) => Ok(Some(root)),
        None => fact(connection, "root"),
    }
}

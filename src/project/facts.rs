//! The table of facts: single values of a project, mainly its image folder.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::names::{root_beside_file, root_from_file};

pub(crate) fn fact(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT value FROM facts WHERE name = ?1";
    connection.query_row(sql, [name], |row| row.get(0)).optional()
}

pub(crate) fn set_fact(connection: &Connection, name: &str, value: Option<&str>) -> rusqlite::Result<()> {
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
pub(crate) fn set_root(connection: &Connection, file: &Path, root: Option<&str>) -> rusqlite::Result<()> {
    let from_file = root.and_then(|root| root_from_file(file, root));
    set_fact(connection, "root", root)?;
    set_fact(connection, "root_from_file", from_file.as_deref())
}

/// The image folder: relative to the file if both moved together, otherwise unchanged.
pub(crate) fn read_root(connection: &Connection, file: &Path) -> rusqlite::Result<Option<String>> {
    let from_file = fact(connection, "root_from_file")?;
    let beside =
        from_file.and_then(|from_file| root_beside_file(file, &from_file)).filter(|root| Path::new(root).is_dir());
    match beside {
        Some(root) => Ok(Some(root)),
        None => fact(connection, "root"),
    }
}

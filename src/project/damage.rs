//! Handles damaged files: keeps them under another name, and recovers readable data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::EXTENSION;
use super::columns::Kind;
use super::error::StoreError;
use super::files::{companion, remove_if_there};
use super::schema::TABLES;
use crate::tasks::now_ms;

/// Renames a damaged project to `name.damaged-2026-11-21.spotcheck` and returns the new path.
pub(super) fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let failed = |path: &Path| StoreError::io("rename the damaged project file", path);
    let aside = free_name(path);
    // The journal first: left behind, it would be mistaken for that of the new file.
    let journal = companion(path, "-wal");
    if journal.exists() {
        std::fs::rename(&journal, companion(&aside, "-wal")).map_err(failed(&journal))?;
    }
    std::fs::rename(path, &aside).map_err(failed(path))?;
    remove_if_there(&companion(path, "-shm"));
    Ok(aside)
}

/// The inverse of [`set_aside`], in case the new file could not be filled: the next attempt must find the damaged one.
pub(super) fn put_back(aside: &Path, path: &Path) {
    remove_if_there(&companion(path, "-wal"));
    remove_if_there(&companion(path, "-shm"));
    let journal = companion(aside, "-wal");
    let mut renamed = std::fs::rename(aside, path);
    if renamed.is_ok() && journal.exists() {
        renamed = std::fs::rename(&journal, companion(path, "-wal"));
    }
    if let Err(error) = renamed {
        log::error!("could not put {} back: {error}", aside.display());
    }
}

fn free_name(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let today = jiff::Timestamp::from_millisecond(now_ms()).unwrap_or_default();
    let today = today.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d").to_string();
    let name = |number: u32| match number {
        1 => format!("{stem}.damaged-{today}.{EXTENSION}"),
        _ => format!("{stem}.damaged-{today}-{number}.{EXTENSION}"),
    };
    let mut number = 1;
    loop {
        let aside = path.with_file_name(name(number));
        if !aside.exists() {
            return aside;
        }
        number += 1;
    }
}

/// Copies every readable row into the new project. Returns a description; empty if nothing is readable.
pub(super) fn rescue(fresh: &mut Connection, aside: &Path) -> rusqlite::Result<String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(damaged) = Connection::open_with_flags(aside, flags) else {
        return Ok(String::new());
    };
    // Lets SQLite read a truncated file.
    let _ = damaged.execute_batch("PRAGMA writable_schema = on");
    let transaction = fresh.transaction()?;
    let mut rescued = Vec::new();
    for table in TABLES {
        rescued.push((table, rescue_table(&transaction, &damaged, table)?));
    }
    // A prediction without its boxes is useless.
    let lost = transaction.execute(
        "DELETE FROM answers WHERE kind = ?1 AND length(classes) > 0 AND NOT EXISTS
         (SELECT 1 FROM boxes WHERE boxes.run = answers.run AND boxes.sample = answers.sample)",
        [Kind::Detections as i64],
    )?;
    let mut found = Vec::new();
    for (table, rows) in rescued {
        let rows = rows - if table == "answers" { lost } else { 0 };
        let name = match table {
            "facts" | "boxes" => continue,
            "samples" => "images",
            "answers" => "predictions",
            "views" => "settings",
            other => other,
        };
        match rows {
            0 => {}
            1 => found.push(format!("1 {}", name.trim_end_matches('s'))),
            rows => found.push(format!("{rows} {name}")),
        }
    }
    transaction.commit()?;
    drop(damaged);
    let journal = companion(aside, "-wal");
    if journal.metadata().is_ok_and(|metadata| metadata.len() == 0) {
        remove_if_there(&journal);
    }
    remove_if_there(&companion(aside, "-shm"));
    Ok(found.join(", "))
}

/// Copies rows up to the first unreadable one. Errors are those of the new file.
fn rescue_table(fresh: &Connection, damaged: &Connection, table: &str) -> rusqlite::Result<usize> {
    let Ok(there) = columns_of(damaged, table) else {
        return Ok(0);
    };
    let here = columns_of(fresh, table)?;
    let columns: Vec<&str> = there.intersection(&here).map(String::as_str).collect();
    if columns.is_empty() {
        return Ok(0);
    }
    let names = columns.join(", ");
    let Ok(mut read) = damaged.prepare(&format!("SELECT {names} FROM {table}")) else {
        return Ok(0);
    };
    let places = vec!["?"; columns.len()].join(", ");
    let insert = format!("INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})");
    let mut write = fresh.prepare(&insert)?;
    let mut rows = read.raw_query();
    let mut rescued = 0;
    while let Ok(Some(row)) = rows.next() {
        let values: Result<Vec<Value>, _> = (0..columns.len()).map(|index| row.get(index)).collect();
        let Ok(values) = values else { continue };
        match write.execute(params_from_iter(values)) {
            Ok(_) => rescued += 1,
            // It refers to a lost row, or lost a part of its own.
            Err(error) if super::error::is_of_the_change(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rescued)
}

fn columns_of(connection: &Connection, table: &str) -> rusqlite::Result<BTreeSet<String>> {
    let mut columns = BTreeSet::new();
    connection.pragma(None, "table_info", table, |row| {
        columns.insert(row.get("name")?);
        Ok(())
    })?;
    Ok(columns)
}

//! The contract of every source, tested on each one that needs no server.

#[path = "../../../tests/support/source_contract.rs"]
mod check;

use self::check::check_contract;
use super::tfrecord::record_of;
use super::{LocalSource, MemorySource, Page, Source, SourceError, WithRecords};
use crate::domain::SampleUri;

const FILES: [(&str, &[u8]); 4] =
    [("0.jpg", b""), ("2 with space & %.png", b"two"), ("10+.jpg", b"ten"), ("고양이.jpg", b"cat")];

#[test]
fn local_folder_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in FILES {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let missing = folder.path().join("missing.jpg");
    let missing = missing.to_string_lossy();
    check_contract(&LocalSource::open(folder.path()).unwrap(), &FILES, &missing);
}

#[test]
fn memory_keeps_the_contract() {
    let files = FILES.map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    check_contract(&MemorySource::new(files), &FILES, "missing.jpg");
}

#[test]
fn folder_with_records_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in FILES {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let missing = folder.path().join("missing.jpg");
    let missing = missing.to_string_lossy();
    check_contract(&WithRecords::open(folder.path()).unwrap(), &FILES, &missing);
}

#[test]
fn records_of_a_file_keep_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tfrecord");
    let records = FILES.map(|(name, bytes)| record_of(name, bytes));
    std::fs::write(&file, records.concat()).unwrap();
    let names = FILES.map(|(name, _)| format!("a.tfrecord/{name}"));
    let expected: Vec<(&str, &[u8])> =
        names.iter().zip(FILES).map(|(name, (_, bytes))| (name.as_str(), bytes)).collect();
    let missing = folder.path().join("missing.tfrecord");
    let missing = missing.to_string_lossy();
    check_contract(&WithRecords::open(&file).unwrap(), &expected, &missing);
}

//! The contract of every source, tested on each one that needs no server.

#[path = "../../../tests/support/source_contract.rs"]
mod check;

use self::check::check_contract;
use super::tfrecord::record_of;
use super::{LocalSource, MemorySource, Page, Source, SourceError, WithRecords, absolute};
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

#[cfg(unix)]
#[test]
fn dots_are_resolved_through_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("far/inside")).unwrap();
    std::fs::create_dir(root.join("photos")).unwrap();
    std::os::unix::fs::symlink(root.join("far/inside"), root.join("link")).unwrap();
    for (given, expected) in [
        ("photos", "photos"),
        ("link", "link"),
        ("photos/../link/a.jpg", "link/a.jpg"),
        ("link/../photos", "far/photos"),
        ("photos/../x.tfrecord/#3", "x.tfrecord/#3"),
        ("missing/../photos", "missing/../photos"),
    ] {
        let resolved = absolute(&root.join(given)).unwrap();
        assert_eq!(resolved.as_os_str(), root.join(expected).as_os_str());
    }
}

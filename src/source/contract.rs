//! What every source must do, tried on each of them.

use super::tfrecord::record_of;
use super::{LocalSource, MemorySource, Page, Source, SourceError, WithRecords};
use crate::domain::SampleUri;

/// `source` holds exactly `files`, in this order.
fn check_contract(source: &dyn Source, files: &[(&str, &[u8])]) {
    let pages: Vec<Page> = source.pages().collect();
    assert!(
        pages.iter().all(|page| page.problems.is_empty()),
        "{pages:?}"
    );
    let samples: Vec<_> = pages.into_iter().flat_map(|page| page.samples).collect();
    let names: Vec<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
    assert_eq!(
        names,
        files.iter().map(|(name, _)| *name).collect::<Vec<_>>()
    );
    for (sample, (_, bytes)) in samples.iter().zip(files) {
        assert_eq!(sample.size_bytes, bytes.len() as u64, "{}", sample.name);
        assert_eq!(source.read(&sample.uri).unwrap(), *bytes, "{}", sample.name);
        let len = bytes.len();
        for (start, end) in [(0, len), (1, 2), (0, len + 9), (len + 1, len + 9), (2, 1)] {
            let expected = &bytes[start.min(len)..end.clamp(start.min(len), len)];
            let range = start as u64..end as u64;
            let part = source.read_range(&sample.uri, range).unwrap();
            assert_eq!(part, *expected, "{} {start}..{end}", sample.name);
        }
    }
    let again: usize = source.pages().map(|page| page.samples.len()).sum();
    assert_eq!(again, files.len(), "a second listing equals the first");
    let missing = source.read(&SampleUri::new("/no/such/sample.jpg"));
    assert!(matches!(missing, Err(SourceError::NotFound)));
    let missing = source.read_range(&SampleUri::new("/no/such/sample.jpg"), 0..1);
    assert!(matches!(missing, Err(SourceError::NotFound)));
}

const FILES: [(&str, &[u8]); 4] = [
    ("0.jpg", b""),
    ("2 with space & %.png", b"two"),
    ("10+.jpg", b"ten"),
    ("고양이.jpg", b"cat"),
];

#[test]
fn a_local_folder_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in FILES {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    check_contract(&LocalSource::open(folder.path()).unwrap(), &FILES);
}

#[test]
fn memory_keeps_the_contract() {
    let files = FILES.map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    check_contract(&MemorySource::new(files), &FILES);
}

#[test]
fn a_folder_in_which_files_of_records_are_looked_for_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in FILES {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    check_contract(&WithRecords::open(folder.path()).unwrap(), &FILES);
}

#[test]
fn records_of_a_file_keep_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tfrecord");
    let records = FILES.map(|(name, bytes)| record_of(name, bytes));
    std::fs::write(&file, records.concat()).unwrap();
    let names = FILES.map(|(name, _)| format!("a.tfrecord/{name}"));
    let expected: Vec<(&str, &[u8])> = names
        .iter()
        .zip(FILES)
        .map(|(name, (_, bytes))| (name.as_str(), bytes))
        .collect();
    check_contract(&WithRecords::open(&file).unwrap(), &expected);
}

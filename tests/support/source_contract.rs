//! The contract of every source. Included by the tests of the library and by those on a real server, which import the
//! types.

use super::{Page, SampleUri, Source, SourceError};

/// `source` contains exactly `files`, in this order, and not `missing`.
pub(crate) fn check_contract(source: &dyn Source, files: &[(&str, &[u8])], missing: &str) {
    let pages: Vec<Page> = source.pages().collect();
    assert!(pages.iter().all(|page| page.problems.is_empty()), "{pages:?}");
    let samples: Vec<_> = pages.into_iter().flat_map(|page| page.samples).collect();
    let names: Vec<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
    assert_eq!(names, files.iter().map(|(name, _)| *name).collect::<Vec<_>>());
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
    let again: Vec<_> = source.pages().flat_map(|page| page.samples).collect();
    assert_eq!(again, samples, "a second listing equals the first");
    for missing in [missing, "/no/such/sample.jpg"] {
        let missing = SampleUri::new(missing);
        let read = source.read(&missing);
        assert!(matches!(read, Err(SourceError::NotFound)), "{read:?}");
        let read = source.read_range(&missing, 0..1);
        assert!(matches!(read, Err(SourceError::NotFound)), "{read:?}");
    }
}

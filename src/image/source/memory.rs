//! Images in memory: pasted, dropped by another program, or created by a test.

use std::ops::Range;

use super::{Page, Source, SourceError, cut};
use crate::domain::{Sample, SampleUri};

/// Named files in memory, listed in the given order.
#[derive(Debug, Clone, Default)]
pub struct MemorySource {
    files: Vec<(SampleUri, Vec<u8>)>,
}

impl MemorySource {
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self { files: files.into_iter().map(|(name, bytes)| (SampleUri::new(name), bytes)).collect() }
    }
}

impl Source for MemorySource {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        let samples = self.files.iter().map(|(uri, bytes)| Sample {
            uri: uri.clone(),
            name: uri.file_name().to_owned(),
            size_bytes: bytes.len() as u64,
            modified_ns: None,
            etag: None,
        });
        let page = Page { samples: samples.collect(), ..Page::default() };
        Box::new((!page.samples.is_empty()).then_some(page).into_iter())
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        let file = self.files.iter().find(|(known, _)| known == uri);
        file.map(|(_, bytes)| bytes.clone()).ok_or(SourceError::NotFound)
    }

    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.read(uri).map(|bytes| cut(bytes, range))
    }
}

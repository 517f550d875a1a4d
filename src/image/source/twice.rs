//! Images that two readers need one soon after the other, where reading costs time and money: the second one gets them
//! from memory.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Page, Source, SourceError, for_task};
use crate::domain::SampleUri;
use crate::tasks::TaskControl;

/// The memory for images that wait for the second reader. Beyond it, the oldest is dropped and read again.
const MAX_WAITING_BYTES: usize = 256 << 20;

/// A source whose images are read twice but fetched once.
pub struct ReadTwice {
    source: Arc<dyn Source>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    images: HashMap<SampleUri, Vec<u8>>,
    /// Oldest first.
    order: VecDeque<SampleUri>,
    bytes: usize,
}

impl ReadTwice {
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self { source, waiting: Arc::default() }
    }

    fn with_waiting<T>(&self, use_them: impl FnOnce(&mut Waiting) -> T) -> T {
        use_them(&mut self.waiting.lock())
    }
}

impl Waiting {
    fn take(&mut self, uri: &SampleUri) -> Option<Vec<u8>> {
        let bytes = self.images.remove(uri)?;
        self.bytes -= bytes.len();
        // Near the front: both readers follow the same order.
        if let Some(place) = self.order.iter().position(|other| other == uri) {
            self.order.remove(place);
        }
        Some(bytes)
    }

    fn put(&mut self, uri: &SampleUri, bytes: Vec<u8>) {
        self.take(uri);
        self.bytes += bytes.len();
        self.images.insert(uri.clone(), bytes);
        self.order.push_back(uri.clone());
        while self.bytes > MAX_WAITING_BYTES
            && let Some(oldest) = self.order.front().cloned()
        {
            self.take(&oldest);
        }
    }
}

impl Source for ReadTwice {
    fn name(&self) -> String {
        self.source.name()
    }

    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.source)
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        self.source.pages()
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        if let Some(bytes) = self.with_waiting(|waiting| waiting.take(uri)) {
            return Ok(bytes);
        }
        let bytes = self.source.read(uri)?;
        self.with_waiting(|waiting| waiting.put(uri, bytes.clone()));
        Ok(bytes)
    }

    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.source.read_range(uri, range)
    }

    fn for_task(&self, control: &TaskControl) -> Option<Arc<dyn Source>> {
        Some(Arc::new(Self { source: for_task(&self.source, control), waiting: Arc::clone(&self.waiting) }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::tasks::ProgressUnit;

    /// A source whose images have the size given in the URI.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Source for Counting {
        fn name(&self) -> String {
            "counting".to_owned()
        }

        fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
            Box::new(std::iter::empty())
        }

        fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let size = uri.as_str().rsplit('/').next().unwrap().parse();
            Ok(vec![7; size.unwrap()])
        }

        fn read_range(&self, uri: &SampleUri, _: Range<u64>) -> Result<Vec<u8>, SourceError> {
            self.read(uri)
        }
    }

    #[test]
    fn second_reader_costs_no_read() {
        let counting = Arc::new(Counting::default());
        let twice: Arc<dyn Source> = Arc::new(ReadTwice::new(counting.clone()));
        let for_run = for_task(&twice, &TaskControl::new(ProgressUnit::Images));
        let uri = SampleUri::new("a/10");
        for (reader, fetched) in [(&for_run, 1), (&twice, 1), (&twice, 2)] {
            assert_eq!(reader.read(&uri).unwrap().len(), 10);
            assert_eq!(counting.0.load(Ordering::Relaxed), fetched);
        }
    }

    #[test]
    fn unused_bytes_are_dropped_oldest_first() {
        let counting = Arc::new(Counting::default());
        let twice = ReadTwice::new(counting.clone());
        let uri = |name: char| SampleUri::new(format!("{name}/{}", MAX_WAITING_BYTES / 2 - 1));
        for name in ['a', 'b', 'c'] {
            twice.read(&uri(name)).unwrap();
        }
        twice.read(&uri('b')).unwrap();
        assert_eq!(counting.0.load(Ordering::Relaxed), 3);
        twice.read(&uri('a')).unwrap();
        assert_eq!(counting.0.load(Ordering::Relaxed), 4);
        let waiting = twice.with_waiting(|waiting| (waiting.images.len(), waiting.order.len()));
        assert_eq!(waiting, (2, 2));
    }
}

//! Reads the EXIF data that images can be searched for.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;

use crate::domain::{Capture, Sample};
use crate::image::decode::{Format, capture};
use crate::image::source::{Source, SourceError};
use crate::tasks::in_parallel;

/// The part of a file that is read first. In a JPEG, EXIF data comes first and has at most 64 KiB.
const BEGINNING: u64 = 128 << 10;
/// Most of them wait for a network most of the time.
const MAX_READERS: usize = 16;

/// Equal values share their memory, because most folders have few cameras, or no EXIF data at all.
#[derive(Default)]
pub struct CaptureReader {
    cameras: HashSet<Arc<str>>,
    nothing: Arc<Capture>,
}

impl CaptureReader {
    /// The number of images to read between two reports of progress.
    pub const CHUNK: usize = 256;

    /// Reads some images in parallel.
    pub fn read(&mut self, source: &dyn Source, samples: &[Sample]) -> Vec<Result<Arc<Capture>, SourceError>> {
        let readers = source.useful_reads().clamp(1, MAX_READERS);
        let Ok(read) =
            in_parallel(readers, samples.len(), |_, index| Ok::<_, Infallible>(read(source, &samples[index])));
        read.into_iter().map(|found| found.map(|found| self.shared(found))).collect()
    }

    fn shared(&mut self, mut found: Capture) -> Arc<Capture> {
        if found == *self.nothing {
            return Arc::clone(&self.nothing);
        }
        if let Some(camera) = &mut found.camera {
            match self.cameras.get(camera) {
                Some(known) => *camera = Arc::clone(known),
                None => drop(self.cameras.insert(Arc::clone(camera))),
            }
        }
        Arc::new(found)
    }
}

fn read(source: &dyn Source, sample: &Sample) -> Result<Capture, SourceError> {
    let beginning = source.read_once(&sample.uri, 0..BEGINNING)?;
    let is_enough = (beginning.len() as u64) < BEGINNING
        || matches!(Format::detect(&beginning), Ok(Format::Jpeg | Format::Bmp | Format::Gif) | Err(_));
    let bytes = if is_enough { beginning } else { source.read(&sample.uri)? };
    // A panic in a parser costs one image, never the others.
    std::panic::catch_unwind(|| capture(&bytes))
        .map_err(|_| SourceError::Damaged("its EXIF data is invalid".to_owned()))
}

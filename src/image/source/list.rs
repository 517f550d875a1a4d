//! Lists of images: a JSON file with some images of a folder or prefix, such as a sample that was drawn while listing.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ListingChange, Page, Source, SourceError, for_task, stamp_on_disk};
use crate::domain::{Location, Problem, Sample, SampleUri, is_document_name};
use crate::local_file;
use crate::review::{DrawBy, ImageDraw, Stratum};
use crate::tasks::{Cancelled, TaskControl};

/// The first key of every list, which tells it from other JSON files.
const BEGINNING: &str = r#"{"image_list":"#;
const FORMAT: u32 = 1;
/// More problems of a listing are only counted: ten million files can have as many.
const MAX_PROBLEMS: usize = 1000;

/// Images of a source, and how they were drawn from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageList {
    #[serde(rename = "image_list")]
    format: u32,
    /// The folder or prefix, with the access to S3.
    pub source: Location,
    pub by: DrawBy,
    pub seed: u64,
    /// The numbers of listed and drawn images.
    pub strata: Vec<Stratum>,
    pub images: Vec<ListedImage>,
}

/// An image in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedImage {
    pub uri: SampleUri,
    /// Relative to the source.
    pub name: String,
    /// The index of its stratum.
    pub stratum: usize,
    /// The probability with which it was drawn.
    pub probability: f64,
    pub size_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ns: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

impl ListedImage {
    pub fn new(sample: Sample, stratum: usize, strata: &[Stratum]) -> Self {
        let Sample { uri, name, size_bytes, modified_ns, etag, .. } = sample;
        let etag = etag.map(|etag| etag.to_string());
        Self { uri, name, stratum, probability: strata[stratum].probability(), size_bytes, modified_ns, etag }
    }
}

impl ImageList {
    pub fn new(source: Location, by: DrawBy, seed: u64, strata: Vec<Stratum>, images: Vec<ListedImage>) -> Self {
        Self { format: FORMAT, source, by, seed, strata, images }
    }

    /// The list in a file; `None` for any other file.
    ///
    /// # Errors
    /// It is a list, but damaged or of a newer version.
    pub fn in_file(path: &Path) -> Result<Option<Self>, SourceError> {
        if !is_document_name(&path.to_string_lossy()) || !begins_a_list(path) {
            return Ok(None);
        }
        let damaged = |reason: String| {
            SourceError::Damaged(format!("could not read the list of images: {reason}; draw it again"))
        };
        let list: Self =
            serde_json::from_slice(&local_file::read(path)?).map_err(|error| damaged(error.to_string()))?;
        if list.format > FORMAT {
            return Err(damaged("it was written by a newer version".to_owned()));
        }
        if list.images.iter().any(|image| image.stratum >= list.strata.len()) {
            return Err(damaged("an image is in none of the strata".to_owned()));
        }
        Ok(Some(list))
    }

    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)?.replace(r#"},{"uri""#, "},\n{\"uri\"") + "\n")
    }

    /// The number of images in the source.
    pub fn listed(&self) -> usize {
        self.strata.iter().map(|stratum| stratum.population).sum()
    }

    /// Only the listed images of `inner`, which reads them.
    pub fn over(&self, inner: Arc<dyn Source>, path: &Path) -> Arc<dyn Source> {
        let samples = self.images.iter().cloned().map(|image| Sample {
            uri: image.uri,
            name: image.name,
            size_bytes: image.size_bytes,
            modified_ns: image.modified_ns,
            etag: image.etag.map(Arc::from),
            capture: None,
        });
        let is_local = matches!(self.source, Location::Path(_));
        Arc::new(ListSource { inner, samples: samples.collect(), name: path.display().to_string(), is_local })
    }
}

fn begins_a_list(path: &Path) -> bool {
    use std::io::Read;
    let mut beginning = [0; BEGINNING.len()];
    let read = local_file::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && beginning == *BEGINNING.as_bytes()
}

/// What a source listed besides images, while a sample was drawn from them.
#[derive(Debug, Default)]
pub struct DrawnListing {
    pub notes: Vec<String>,
    /// The first 1,000.
    pub problems: Vec<Problem>,
    pub more_problems: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    #[error("canceled while listing the images")]
    Cancelled(#[from] Cancelled),
    /// The sample would not be of the whole.
    #[error("{0}. Nothing was drawn; try again")]
    Incomplete(String),
}

impl DrawnListing {
    /// Draws from all images of a source.
    ///
    /// # Errors
    /// Canceled, or the source cannot be listed completely.
    pub fn read(source: &dyn Source, draw: &mut ImageDraw<Sample>, control: &TaskControl) -> Result<Self, DrawError> {
        let mut listing = Self::default();
        for page in source.pages() {
            control.checkpoint()?;
            control.add_done(page.samples.len() as u64);
            for sample in page.samples {
                let name = sample.name.clone();
                draw.add(&name, || sample);
            }
            if let Some(problem) = page.problems.iter().find(|problem| problem.uri.is_none()) {
                return Err(DrawError::Incomplete(problem.message.trim_end_matches('.').to_owned()));
            }
            let room = MAX_PROBLEMS - listing.problems.len();
            listing.more_problems += page.problems.len().saturating_sub(room);
            listing.problems.extend(page.problems.into_iter().take(room));
            listing.notes.extend(page.notes);
        }
        control.checkpoint()?;
        Ok(listing)
    }
}

/// Some images of a source.
struct ListSource {
    inner: Arc<dyn Source>,
    samples: Arc<[Sample]>,
    name: String,
    is_local: bool,
}

impl ListSource {
    /// The image as it is now.
    fn current(&self, sample: &Sample) -> Result<Sample, Problem> {
        if !self.is_local || sample.uri.record().is_some() {
            return Ok(sample.clone());
        }
        let stamp = stamp_on_disk(&sample.uri);
        let stamp = stamp.ok_or_else(|| Problem::new(sample.uri.clone(), SourceError::NotFound.to_string()))?;
        Ok(Sample { size_bytes: stamp.size_bytes, modified_ns: stamp.modified_ns, ..sample.clone() })
    }
}

impl Source for ListSource {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.inner)
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        let mut page = Page::default();
        for sample in self.samples.iter() {
            match self.current(sample) {
                Ok(sample) => page.samples.push(sample),
                Err(problem) => page.problems.push(problem),
            }
        }
        Box::new(std::iter::once(page))
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        self.inner.read(uri)
    }

    fn read_range(&self, uri: &SampleUri, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.inner.read_range(uri, range)
    }

    fn for_task(&self, control: &TaskControl) -> Option<Arc<dyn Source>> {
        let (inner, samples, name) = (for_task(&self.inner, control), Arc::clone(&self.samples), self.name.clone());
        Some(Arc::new(Self { inner, samples, name, is_local: self.is_local }))
    }

    fn is_part(&self) -> bool {
        true
    }

    fn watch(&self, report: Box<dyn Fn(ListingChange) + Send + Sync>) {
        report(ListingChange::Unwatchable("a list of images does not report changes".to_owned()));
    }
}

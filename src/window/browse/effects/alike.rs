//! Compares all images or boxes with one, by the embeddings next to the project. The last vectors stay in memory.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::alike::{Cover, Embedding, Embeddings, METRIC};
use crate::domain::{
    Encoder, ImagePart, RunId, RunInfo, Sample, SampleId, SampleSet, SampleUri, SharedList, counted, grouped,
};
use crate::project::export::{
    BoxRow, BoxVectors, Vectors, find_named, missing_embeddings, stored_box_vectors, stored_vectors,
};
use crate::project::{EmbeddingStore, Project};
use crate::review::BoxChoice;
use crate::similar::{self, ModelPlace, why_no_box_embeddings, why_no_embeddings};
use crate::tasks::TaskControl;
use crate::window::effects::{Shared, unique_number};
use crate::window::state::{
    Alike, AlikeRequest, AlikeTo, BrowseEvent, ChosenBoxes, Failure, FoundAlike, LayRequest, SourceId, Ticket,
};

/// More are read from the disk for each search.
const MAX_KEPT_BYTES: usize = 1 << 30;

/// The vectors of the last search, of images and of boxes.
#[derive(Default)]
pub(crate) struct KeptVectors {
    images: Mutex<Option<Kept<Vectors>>>,
    boxes: Mutex<Option<Kept<BoxVectors>>>,
}

struct Kept<V> {
    key: u64,
    vectors: Arc<(Encoder, V)>,
}

pub(super) fn find(shared: &Arc<Shared>, request: AlikeRequest, ticket: Ticket) {
    shared.run_task(
        "find similar images",
        ticket,
        move |shared, ticket| compare(shared, &request, &ticket.control),
        |task, result| BrowseEvent::FoundAlike { task, result },
    );
}

/// # Errors
/// Why there is nothing to compare, and what to do.
fn compare(shared: &Shared, request: &AlikeRequest, control: &TaskControl) -> Result<FoundAlike, Failure> {
    let (project, info) =
        run_of(shared, request.source, request.run)?.ok_or_else(|| "Predict images first".to_owned())?;
    let (sample, part) = match &request.to {
        AlikeTo::Part(sample, part) => (*sample, *part),
        AlikeTo::Named(name) => {
            // While a name is typed, it is often incomplete: then the search finds nothing.
            let found = find_named(request.samples.iter(), name).map_err(|error| error.to_string())?;
            let Some(place) = found else {
                return Ok(FoundAlike::Nothing);
            };
            (SampleId::from_index(place), ImagePart::Whole)
        }
        AlikeTo::Cover(found, count) => return cover(shared, request, found, *count, control),
    };
    let query = request.samples.get(sample.index()).ok_or_else(|| "The image is no longer listed".to_owned())?.clone();
    let search = Search { shared, request, project, info, sample, part, query, control };
    match part {
        ImagePart::Whole => search.images(),
        ImagePart::Box(_) | ImagePart::Region(_) => search.boxes(),
    }
}

/// `count` of these images that cover the others. The same as `spotcheck alike --order cover` chooses.
fn cover(
    shared: &Shared,
    request: &AlikeRequest,
    found: &SampleSet,
    count: usize,
    control: &TaskControl,
) -> Result<FoundAlike, Failure> {
    const SEED: u64 = 1;
    control.set_step("reading embeddings");
    let (encoder, vectors) = embeddings(shared, request.source, request.run, &request.samples, control)?;
    let samples = found.iter().filter_map(|id| Some((&request.samples.get(id.index())?.uri, id)));
    let id_of: HashMap<&SampleUri, SampleId> = samples.collect();
    let (mut rows, mut ids) = (Embeddings::default(), Vec::new());
    for (row, uri) in vectors.uris.iter().enumerate() {
        let known = id_of.get(uri).zip(vectors.rows.row(row));
        ids.extend(known.filter(|(_, embedding)| rows.push(embedding)).map(|(id, _)| *id));
    }
    let Cover { chosen, coverage, .. } = Cover::choose(&rows, count, SEED, control)?;
    let least =
        coverage.last().ok_or_else(|| "No image on screen has an embedding; predict these images".to_owned())?;
    let mut covering = SampleSet::default();
    for row in chosen {
        covering.insert(ids[row]);
    }
    let without = match found.len() - ids.len() {
        0 => String::new(),
        count => format!("; {} without an embedding", grouped(count)),
    };
    let description = format!(
        "Selected {} of {}{without}. Each other one has a similarity of {least:.2} or more to one of them: {METRIC}, \
         {encoder}",
        grouped(covering.len()),
        counted(ids.len(), "image", "images")
    );
    Ok(FoundAlike::Cover(covering, description))
}

/// The embeddings of a run's images in their present versions, in listing order.
///
/// # Errors
/// Why there are none, and what to do.
pub(crate) fn embeddings(
    shared: &Shared,
    source: SourceId,
    run: RunId,
    samples: &SharedList<Sample>,
    control: &TaskControl,
) -> Result<(Encoder, Vectors), Failure> {
    let (project, info) = run_of(shared, source, run)?.ok_or_else(|| "Predict images first".to_owned())?;
    let stored = stored_vectors(&project, &info, control)?;
    let present = stored.map(|(encoder, vectors)| (encoder, vectors.of_samples(samples.iter())));
    let present = present.filter(|(_, vectors)| !vectors.uris.is_empty());
    Ok(present.ok_or_else(|| missing_embeddings(&info))?)
}

/// The embeddings of a run's boxes in the present versions of the images.
///
/// # Errors
/// Why there are none, and what to do.
pub(crate) fn box_embeddings(
    shared: &Shared,
    request: &LayRequest,
    control: &TaskControl,
) -> Result<(Encoder, BoxVectors), Failure> {
    let run = run_of(shared, request.source, request.run)?;
    let (project, info) = run.ok_or_else(|| "Predict images first".to_owned())?;
    let place = ModelPlace { dirs: &shared.dirs, runtime_library: request.runtime_library.as_deref() };
    read_boxes(&project, &info, &request.samples, &place, control)
}

fn read_boxes(
    project: &Project,
    info: &RunInfo,
    samples: &SharedList<Sample>,
    place: &ModelPlace<'_>,
    control: &TaskControl,
) -> Result<(Encoder, BoxVectors), Failure> {
    let stored = stored_box_vectors(project, info, samples.iter(), control)?;
    let stored = stored.ok_or_else(|| why_no_embeddings(info, place, control))?;
    let has_boxes = stored.0.boxes.is_some() && !stored.1.boxes.is_empty();
    Ok(has_boxes.then_some(stored).ok_or_else(|| why_no_box_embeddings(info, place, control))?)
}

/// The project of open images, and one of its runs; `None` if it has no such run.
pub(crate) fn run_of(shared: &Shared, source: SourceId, run: RunId) -> Result<Option<(Project, RunInfo)>, String> {
    let project = shared.project(source).ok_or("The project was closed; open the images again")?;
    let runs = project.runs().map_err(|error| error.to_string())?;
    Ok(runs.into_iter().find(|info| info.id == run).map(|info| (project, info)))
}

struct Search<'s> {
    shared: &'s Shared,
    request: &'s AlikeRequest,
    project: Project,
    info: RunInfo,
    sample: SampleId,
    part: ImagePart,
    query: Sample,
    control: &'s TaskControl,
}

impl Search<'_> {
    fn images(&self) -> Result<FoundAlike, Failure> {
        let samples = &self.request.samples;
        let read = || {
            let stored = stored_vectors(&self.project, &self.info, self.control)?;
            let (encoder, vectors) =
                stored.ok_or_else(|| why_no_embeddings(&self.info, &self.place(), self.control))?;
            Ok((encoder, vectors.of_samples(samples.iter())))
        };
        let kept = self.keep(&self.shared.vectors.images, read, |vectors| &vectors.rows)?;
        let (encoder, vectors) = &*kept;
        let row = vectors.uris.iter().position(|uri| *uri == self.query.uri);
        let row = match row.and_then(|row| vectors.rows.row(row)) {
            Some(row) => row,
            None => self.embed(encoder)?,
        };
        let description = format!("Sorted by similarity to {}: {METRIC}, {encoder}", self.query.name);
        let AlikeRequest { source, run, .. } = *self.request;
        self.control.set_step("comparing images");
        Ok(FoundAlike::Images(Alike {
            source,
            run,
            sample: self.sample,
            number: unique_number(),
            similarity: vectors.similarities(samples.iter(), &row),
            description,
        }))
    }

    fn boxes(&self) -> Result<FoundAlike, Failure> {
        let samples = &self.request.samples;
        let read = || read_boxes(&self.project, &self.info, samples, &self.place(), self.control);
        let kept = self.keep(&self.shared.vectors.boxes, read, |vectors| &vectors.rows)?;
        let (encoder, vectors) = &*kept;
        let known = match self.part {
            ImagePart::Box(index) => vectors.row_of(BoxRow { sample: self.sample.0, index }),
            ImagePart::Whole | ImagePart::Region(_) => None,
        };
        let query = match known.and_then(|row| vectors.rows.row(row)) {
            Some(query) => query,
            None => vectors
                .reduced(&self.embed(encoder)?)
                .ok_or_else(|| "The model has changed; predict the images again".to_owned())?,
        };
        self.control.set_step("comparing boxes");
        let similarities = vectors.boxes.iter().zip(vectors.rows.similarities(&query));
        let rows = similarities.map(|(row, similarity)| (SampleId(row.sample), u32::from(row.index), Some(similarity)));
        let AlikeRequest { source, run, .. } = *self.request;
        Ok(FoundAlike::Boxes(ChosenBoxes {
            source,
            run,
            boxes: Arc::new(BoxChoice::new(unique_number(), rows.collect())),
            title: "Most similar first",
            description: format!("Similar to a box of {}: {METRIC}, {}", self.query.name, encoder.text_of_boxes()),
        }))
    }

    /// The query by the model, because it has no stored vector.
    fn embed(&self, encoder: &Encoder) -> Result<Embedding, Failure> {
        self.control.set_step("loading the model");
        let opened = self.shared.source(self.request.source).ok_or_else(|| "The images were closed".to_owned())?;
        let bytes = opened.read(&self.query.uri).map_err(|error| error.to_string())?;
        let model = (self.info.clone(), encoder.clone());
        let embedded = similar::embed(&bytes, self.part, &model, &self.place(), self.control);
        self.control.checkpoint()?;
        Ok(embedded.map_err(|error| format!("Could not compare with {}: {error}", self.query.name))?)
    }

    /// The vectors of the last search if they are the same, otherwise from the disk.
    fn keep<V>(
        &self,
        kept: &Mutex<Option<Kept<V>>>,
        read: impl FnOnce() -> Result<(Encoder, V), Failure>,
        rows: impl Fn(&V) -> &Embeddings,
    ) -> Result<Arc<(Encoder, V)>, Failure> {
        self.control.set_step("reading embeddings");
        let key = self.key();
        let mut kept = kept.lock();
        if let Some(same) = kept.as_ref().filter(|kept| kept.key == key) {
            return Ok(Arc::clone(&same.vectors));
        }
        *kept = None;
        let vectors = Arc::new(read()?);
        let rows = rows(&vectors.1);
        if rows.len() * rows.dims() * size_of::<u16>() <= MAX_KEPT_BYTES {
            *kept = Some(Kept { key, vectors: Arc::clone(&vectors) });
        }
        Ok(vectors)
    }

    fn place(&self) -> ModelPlace<'_> {
        ModelPlace { dirs: &self.shared.dirs, runtime_library: self.request.runtime_library.as_deref() }
    }

    /// Differs if the vectors may.
    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.request.source.0, self.request.run.0).hash(&mut hasher);
        let files = self.project.path().map(|path| EmbeddingStore::files(&path));
        for path in files.into_iter().flatten() {
            let metadata = path.metadata().ok();
            metadata.map(|metadata| (metadata.len(), metadata.modified().ok())).hash(&mut hasher);
        }
        for sample in self.request.samples.iter() {
            (&sample.uri, sample.stamp()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

//! Reads outputs in parallel, with bounded memory, and passes on their predictions as they come.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Sender, bounded};

use super::join::Work;
use super::json::Json;
use super::named::Names;
use super::open::{EXAMPLES, FoundOutputs, not_sent_text};
use super::pending::PendingResults;
use super::reader::{OutputReader, failure_in};
use super::responses::{OneResponse, ResponseFile, ResponseFormat};
use crate::domain::{LabelSet, Prediction, Problem, Sample, SampleId, SampleSet, SampleUri, counted};
use crate::image::size::{SizeError, image_size};
use crate::image::source::{Source, SourceError};
use crate::predict::{ByteBudget, Gate, ResultSink, SampleResult};
use crate::tasks::{TaskControl, panic_text};

/// The memory for outputs in progress and their parsed forms. A larger one goes alone.
const MAX_BYTES: u64 = 256 << 20;
/// The memory of a parsed output, per byte of its text.
const TREE_BYTES: u64 = 8;
/// The maximum distance between the fastest and the slowest reader, in outputs.
const WINDOW: usize = 256;
/// The number of results that can wait to be passed on.
const WAITING: usize = 64;
/// The number of responses in one output that are passed on together.
const CHUNK: usize = 256;

/// Receives the results, on the thread that called [`FoundOutputs::read`].
pub trait OutputSink: ResultSink {
    /// Reports new class names, before the results that need them.
    fn labels(&mut self, labels: &LabelSet);
}

/// How responses are matched with images.
enum Rule {
    /// By the number of the response.
    InOrder,
    /// Responses name images, after a common prefix.
    Named { base: String },
    /// Each response belongs to the same line of the list, which may have no image.
    Lines { list: String, lines: Vec<Result<usize, String>> },
}

impl Rule {
    /// The image of a response; `None` if it belongs to a record or line without one.
    fn place(
        &self,
        work: &Work,
        number: u64,
        response: &OneResponse,
        names: &Names<'_>,
    ) -> Option<Result<usize, String>> {
        match (self, response) {
            (Self::InOrder, _) => work.place(number).map(Ok),
            (Self::Named { base }, Ok(response)) => Some(names.named_by(response, base)),
            (Self::Named { .. }, Err(reason)) => Some(Err(reason.clone())),
            (Self::Lines { lines, .. }, _) => {
                let line = lines.get(number as usize).cloned();
                Some(line.unwrap_or_else(|| Err("it grew while it was read".to_owned())))
            }
        }
    }
}

#[derive(Debug, Default)]
pub struct ReadOutcome {
    /// Images that have a prediction now.
    pub done: usize,
    /// Images that have a problem instead.
    pub failed: usize,
    /// Problems that concern no single image.
    pub problems: Vec<Problem>,
    /// Indices of images without an output. For images that lists may contain, only once everything was read.
    pub without_output: Vec<usize>,
    /// The number of images that no list of the job names, so they were not sent to it.
    pub not_sent: usize,
    /// Responses whose stated image size was not compared with the image, because that would require a download.
    pub sizes_unchecked: u64,
    /// Whether the task was canceled; results passed on earlier are kept.
    pub is_cancelled: bool,
    /// Why outputs or images became unreadable. Unread images have no result.
    pub unreachable: Option<String>,
}

impl ReadOutcome {
    /// A note about images that no list names; `None` if there are none.
    pub fn not_sent_text(&self) -> Option<String> {
        not_sent_text(self.not_sent)
    }

    /// A note about unchecked values; `None` if all were checked.
    pub fn unchecked_text(&self) -> Option<String> {
        let (responses, images) = match self.sizes_unchecked {
            0 => return None,
            1 => ("1 response gives".to_owned(), "its image"),
            count => (format!("{count} responses give"), "their images"),
        };
        Some(format!(
            "{responses} the size of {images}; this was not checked, because it would download each image from S3"
        ))
    }
}

/// A delivery from a reader thread.
struct Chunk {
    work: usize,
    results: Vec<(usize, SampleResult)>,
    /// Images with a response, including those that were not requested.
    covered: Vec<usize>,
    /// Whether a list may contain more images than those.
    is_unclear: bool,
    problems: Vec<Problem>,
    is_last: bool,
}

impl Chunk {
    fn new(work: usize) -> Self {
        Self { work, results: Vec::new(), covered: Vec::new(), is_unclear: false, problems: Vec::new(), is_last: false }
    }
}

struct Shared<'r> {
    found: &'r FoundOutputs,
    reader: &'r OutputReader,
    /// The source of image sizes.
    source: &'r dyn Source,
    /// Whether reading image sizes is cheap, because images are local, so that sizes in outputs are checked. For remote
    /// images, it would cost as much as the outputs.
    is_near: bool,
    sizes_unchecked: AtomicU64,
    works: &'r [&'r Work],
    wanted: &'r SampleSet,
    /// The names of images in lines; empty without a list.
    names: Names<'r>,
    control: &'r TaskControl,
    gate: &'r Gate,
    room: &'r ByteBudget,
    /// Why images became unreadable.
    unreachable: OnceLock<String>,
}

impl FoundOutputs {
    /// The outputs that may belong to an image in `wanted`.
    fn works_with(&self, wanted: &SampleSet) -> Vec<&Work> {
        let is_wanted = |work: &&Work| match work {
            Work::Named { .. } => !wanted.is_empty(),
            work => work.places().any(|place| wanted.contains(SampleId::from_index(place))),
        };
        self.joined.works.iter().filter(is_wanted).collect()
    }

    /// Reads the outputs of the images in `wanted` (indices into the listing) and passes on the results: as they come,
    /// and in image order for images with an output of their own. A broken output is a problem of its image; reading
    /// continues. If an ended job wrote no output for an image, the reason is passed on only in order, not as an
    /// arrived result: a retry may still bring one.
    pub fn read(
        &self,
        reader: &OutputReader,
        source: &Arc<dyn Source>,
        wanted: &SampleSet,
        control: &TaskControl,
        sink: &mut dyn OutputSink,
    ) -> ReadOutcome {
        let is_requested = |place: &usize| wanted.contains(SampleId::from_index(*place));
        let works = self.works_with(wanted);
        let predicted = works.iter().flat_map(|work| work.places());
        let mut places: Vec<usize> = predicted.filter(is_requested).collect();
        let outputs = places.len();
        let names_images = works.iter().any(|work| matches!(work, Work::Named { .. }));
        let names = Names::new(if names_images { &self.samples[..] } else { &[] });
        let all = if names_images { wanted.len() } else { outputs };
        control.set_total(Some(all as u64));
        control.set_done_before(0);
        places.extend(self.permanently_missing().filter(is_requested));
        places.sort_unstable();
        let readers = self.useful_reads().clamp(1, works.len().max(1));
        let gate = Arc::new(Gate::new(works.len(), WINDOW));
        let room = Arc::new(ByteBudget::new(MAX_BYTES));
        let (gate_of_hook, room_of_hook) = (Arc::clone(&gate), Arc::clone(&room));
        let _close_on_cancel = control.on_cancel(move || {
            gate_of_hook.close();
            room_of_hook.close();
        });
        let of_task = source.for_task(control);
        let is_near = of_task.is_none();
        let source = of_task.unwrap_or_else(|| Arc::clone(source));
        let shared = Shared {
            found: self,
            reader,
            source: &*source,
            is_near,
            sizes_unchecked: AtomicU64::new(0),
            works: &works,
            wanted,
            names,
            control,
            gate: &gate,
            room: &room,
            unreachable: OnceLock::new(),
        };
        let mut outcome = shared.deliver(readers, &places, sink);
        outcome.unreachable = shared.outage();
        outcome.sizes_unchecked = shared.sizes_unchecked.into_inner();
        outcome.problems.extend(self.problems());
        if self.lists() > 0 {
            // Images that are not requested keep their earlier prediction.
            outcome.without_output.retain(is_requested);
        }
        outcome.is_cancelled = control.is_cancelled();
        outcome
    }
}

/// Passes results to the sink: as they arrive, and in the order of `places` if they are in it.
struct Delivery<'d> {
    shared: &'d Shared<'d>,
    sink: &'d mut dyn OutputSink,
    places: &'d [usize],
    /// The number of `places` whose result was passed on.
    written: usize,
    pending: PendingResults,
    /// The number of classes that the sink knows.
    labels: usize,
    outcome: ReadOutcome,
    /// Images with a result.
    seen: SampleSet,
    /// Images with a response.
    covered: SampleSet,
    is_unclear: bool,
    /// Responses for images that already had a result.
    twice: usize,
    /// By number of the output.
    finished: Vec<bool>,
    finished_before: usize,
}

impl<'d> Delivery<'d> {
    fn new(shared: &'d Shared<'d>, places: &'d [usize], labels: usize, sink: &'d mut dyn OutputSink) -> Self {
        Self {
            shared,
            sink,
            places,
            written: 0,
            pending: PendingResults::new(),
            labels,
            outcome: ReadOutcome::default(),
            seen: SampleSet::default(),
            covered: SampleSet::default(),
            is_unclear: false,
            twice: 0,
            finished: vec![false; shared.works.len()],
            finished_before: 0,
        }
    }

    fn take(&mut self, chunk: Chunk) {
        self.outcome.problems.extend(chunk.problems);
        self.is_unclear |= chunk.is_unclear;
        for place in chunk.covered {
            self.covered.insert(SampleId::from_index(place));
        }
        let labels = self.shared.reader.labels();
        if labels.len() != self.labels {
            self.labels = labels.len();
            self.sink.labels(&labels);
        }
        self.shared.control.add_done(chunk.results.len() as u64);
        for (place, result) in chunk.results {
            let id = SampleId::from_index(place);
            if self.seen.contains(id) {
                self.twice += 1;
                continue;
            }
            self.seen.insert(id);
            match &result {
                Ok(_) => self.outcome.done += 1,
                Err(_) => self.outcome.failed += 1,
            }
            self.sink.arrived(place, &result);
            self.pending.insert(place, result);
        }
        while let Some(&place) = self.places.get(self.written)
            && let Some(result) = self.result_of(place)
        {
            self.sink.in_order(place, result);
            self.written += 1;
        }
        self.finished[chunk.work] |= chunk.is_last;
        while self.finished.get(self.finished_before) == Some(&true) {
            self.finished_before += 1;
        }
        self.shared.gate.set_written(self.finished_before);
    }

    /// The result of an image; `None` if it has not arrived.
    fn result_of(&mut self, place: usize) -> Option<SampleResult> {
        self.pending.remove(place).or_else(|| self.shared.found.failure(place).map(Err))
    }

    fn finish(mut self) -> ReadOutcome {
        // The images after a gap, and those without an output there.
        for &place in self.places.get(self.written..).unwrap_or_default() {
            if let Some(result) = self.result_of(place) {
                self.sink.in_order(place, result);
            }
        }
        // The results of lines that name images.
        while let Some((place, result)) = self.pending.remove_first() {
            self.sink.in_order(place, result);
        }
        let Self { mut outcome, covered, .. } = self;
        let found = self.shared.found;
        let without = found.joined.without_output.iter().copied();
        outcome.without_output = without.filter(|place| !covered.contains(SampleId::from_index(*place))).collect();
        if found.all_lists_have_outputs() && !self.is_unclear && self.finished_before == self.finished.len() {
            let before = outcome.without_output.len();
            outcome.without_output.retain(|place| found.missing_reason(*place).is_some());
            outcome.not_sent = before - outcome.without_output.len();
        }
        if self.twice > 0 {
            let text = format!("skipped responses for images that another output covers: {}", self.twice);
            outcome.problems.push(Problem::general(text));
        }
        outcome
    }
}

impl Shared<'_> {
    /// Reads with several threads and passes on the results for `places`, which are in image order.
    fn deliver(&self, readers: usize, places: &[usize], sink: &mut dyn OutputSink) -> ReadOutcome {
        // Taken before a reader adds labels.
        let labels = self.reader.labels().len();
        std::thread::scope(|scope| {
            let (sender, results) = bounded(WAITING);
            for _ in 0..readers {
                let sender = sender.clone();
                scope.spawn(move || self.read(&sender));
            }
            drop(sender);
            let mut delivery = Delivery::new(self, places, labels, sink);
            results.into_iter().for_each(|chunk| delivery.take(chunk));
            delivery.finish()
        })
    }

    fn read(&self, sender: &Sender<Chunk>) {
        while let Some(number) = self.gate.take() {
            if self.control.checkpoint().is_err() {
                return;
            }
            let work = self.works[number];
            let file = &self.found.files[work.output()];
            let Some(_room) = self.room.take(file.size_bytes.saturating_mul(TREE_BYTES)) else {
                return;
            };
            let mut chunk = Chunk::new(number);
            self.output(work, &mut chunk, sender);
            // A canceled read is not a problem of the image, and an unreadable output is reported once for all its
            // images.
            if self.control.is_cancelled() || self.outage().is_some() {
                self.gate.close();
                return;
            }
            chunk.is_last = true;
            if sender.send(chunk).is_err() {
                return;
            }
        }
    }

    fn outage(&self) -> Option<String> {
        let of_images = self.unreachable.get().map(String::as_str);
        of_images.or_else(|| self.found.outage()).map(str::to_owned)
    }

    /// Reads the responses in one output for the images they belong to.
    fn output(&self, work: &Work, chunk: &mut Chunk, sender: &Sender<Chunk>) {
        let name = self.found.name_of(work.output());
        let problem_of = |place: usize, reason: &str| {
            Problem::new(self.found.samples[place].uri.clone(), format!("{reason}: {name}"))
        };
        let mut list = name.clone();
        let mut lost = Unmatched::default();
        let mut refused = Unmatched::default();
        let mut number = 0;
        let mut read = || -> Result<(), String> {
            let rule = guarded(|| self.rule_of(work))?;
            if let Rule::Lines { list: input, .. } = &rule {
                list.clone_from(input);
            }
            let mut responses = self.found.responses(work, self.control).responses();
            while let Some(response) = guarded(|| responses.read_next())? {
                let place = rule.place(work, number, &response, &self.names);
                number += 1;
                match place {
                    Some(Ok(place)) => {
                        chunk.covered.push(place);
                        if self.is_requested(place) {
                            let result = guarded(|| self.predict(&response?, &self.found.samples[place]));
                            chunk.results.push((place, result.map_err(|reason| problem_of(place, &reason))));
                        }
                        self.send_full(chunk, sender);
                    }
                    Some(Err(reason)) => match response.as_ref().ok().and_then(failure_in) {
                        Some(why) => refused.add(format!("image {number}: {why}")),
                        None => lost.add(format!("response {number}: {reason}")),
                    },
                    None => {}
                }
            }
            Ok(())
        };
        let read = read();
        chunk.is_unclear = lost.count > 0;
        if let Err(reason) = read {
            let rest = work.places_from(number).filter(|place| self.is_requested(*place));
            chunk.results.extend(rest.map(|place| (place, Err(problem_of(place, &reason)))));
            if matches!(work, Work::Named { .. }) {
                chunk.is_unclear = true;
                chunk.problems.push(Problem::general(format!("{reason}: {name}")));
            }
        }
        let lost = lost.problem(|count| {
            let responses_match = counted(count, "response matches", "responses match");
            format!("{name}: {responses_match} no image")
        });
        let refused =
            refused.problem(|count| format!("{list}: the model rejected {}", counted(count, "image", "images")));
        chunk.problems.extend(lost.into_iter().chain(refused));
    }

    /// How the responses in an output are matched with images. Order counts only if each record, or each line of a
    /// list, has a response; otherwise, the match would be ambiguous.
    fn rule_of(&self, work: &Work) -> Result<Rule, String> {
        let responses = self.found.responses(work, self.control);
        match work {
            Work::One { .. } => Ok(Rule::InOrder),
            Work::Records { .. } => {
                let (count, records) = (responses.count()?, self.record_count(work)?);
                if count != records {
                    return Err(format!(
                        "the output has {count} responses for the {records} records of the file, so they cannot be \
                         matched"
                    ));
                }
                Ok(Rule::InOrder)
            }
            Work::Named { output } => match self.names.base_of(responses)? {
                Some(base) => Ok(Rule::Named { base }),
                None => self.rule_of_list(*output, responses),
            },
        }
    }

    fn rule_of_list(&self, output: usize, responses: ResponseFile<'_>) -> Result<Rule, String> {
        let (folder, file) = self
            .found
            .list_of(output, self.control)
            .map_err(|reason| format!("none of its responses names an image, and {reason}"))?;
        let list = folder.files.name_of(&file);
        let lines = ResponseFile { folder, file: &file, control: self.control, format: ResponseFormat::Several };
        let lines = self
            .names
            .images_of_list(lines, self.source)
            .map_err(|reason| format!("could not read the input list of the job: {reason}: {list}"))?;
        let count = responses.count()?;
        if count != lines.len() as u64 {
            return Err(format!(
                "the output has {count} responses for the {} lines of {list}, so they cannot be matched",
                lines.len()
            ));
        }
        match lines.first() {
            Some(Err(reason)) if lines.iter().all(Result::is_err) => {
                Err(format!("none of the lines of {list} matches an image by name or content; line 1: {reason}"))
            }
            _ => Ok(Rule::Lines { list, lines }),
        }
    }

    /// The number of records in the file of these images: each has a response, even one without an image.
    fn record_count(&self, work: &Work) -> Result<u64, String> {
        let uri = work.places().next().map(|place| &self.found.samples[place].uri);
        let file = uri.and_then(SampleUri::record).map(|(file, _)| file);
        let counted = file.map(|file| self.source.record_count(&SampleUri::new(file)));
        match counted.transpose() {
            Ok(Some(Some(records))) => Ok(records),
            Ok(_) => Err("the number of records in the file is unknown, so responses cannot be matched to \
                records"
                .to_owned()),
            Err(error) => Err(format!("could not count the records of the file: {error}")),
        }
    }

    fn predict(&self, response: &Json, sample: &Sample) -> Result<Prediction, String> {
        let size = match self.reader.shape().contains_size() {
            // An image that is unreadable here may have been readable for the model.
            true if self.is_near => self.size_of(sample).ok(),
            true => None,
            false => Some(self.size_of(sample)?),
        };
        let prediction = self.reader.read_json(response, size)?;
        if !self.is_near && size.is_none() {
            self.sizes_unchecked.fetch_add(1, Ordering::Relaxed);
        }
        Ok(prediction)
    }

    fn size_of(&self, sample: &Sample) -> Result<[u32; 2], String> {
        image_size(self.source, &sample.uri).map_err(|error| {
            if let SizeError::Unread(SourceError::Unreachable(reason)) = &error {
                self.unreachable.get_or_init(|| reason.clone());
            }
            error.to_string()
        })
    }

    fn send_full(&self, chunk: &mut Chunk, sender: &Sender<Chunk>) {
        let is_over = self.control.is_cancelled() || self.outage().is_some();
        if chunk.covered.len() >= CHUNK && !is_over {
            // The receiver is gone only if the task has ended.
            let _ = sender.send(std::mem::replace(chunk, Chunk::new(chunk.work)));
        }
    }

    fn is_requested(&self, place: usize) -> bool {
        self.wanted.contains(SampleId::from_index(place))
    }
}

/// Responses for none of the images.
#[derive(Default)]
struct Unmatched {
    count: u64,
    examples: Vec<String>,
}

impl Unmatched {
    fn add(&mut self, example: String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example);
        }
    }

    /// `text` states what is wrong with that many responses; the first ones follow.
    fn problem(&self, text: impl FnOnce(u64) -> String) -> Option<Problem> {
        let lead = match self.count {
            0 => return None,
            1 => ": ",
            _ => ", for example ",
        };
        Some(Problem::general(format!("{}{lead}{}", text(self.count), self.examples.join("; "))))
    }
}

/// A panic affects only one image.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(format!("an internal error stopped the read of the output: {}", panic_text(&*panic)))
    })
}

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::domain::{AxisTransform, PredictionContent, RgbImage, SampleUri};
use crate::image::source::{Page, SourceError};
use crate::model::{EncodedImage, EncodedPredictor, PredictError, Predictor, Prepared, Tensor};
use crate::tasks::ProgressUnit;

/// A 24-bit BMP of `width` x 1 pixels; tests tell images apart by their width.
fn bmp(width: u32) -> Vec<u8> {
    let row_bytes = (width * 3).next_multiple_of(4);
    let mut bytes = b"BM".to_vec();
    for field in [54 + row_bytes, 0, 54, 40, width, 1, 1 | 24 << 16, 0, row_bytes, 2835, 2835, 0, 0] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.resize(54 + row_bytes as usize, 128);
    bytes
}

/// Sample `n` is an image `n + 1` pixels wide, or not an image.
#[derive(Default)]
struct TestSource {
    len: usize,
    broken: Vec<usize>,
    /// From this one on, no image can be read.
    gone_from: Option<usize>,
    read_time: Duration,
    reads: AtomicUsize,
}

impl TestSource {
    fn samples(&self) -> Arc<[Sample]> {
        let sample = |number: usize| Sample::new(SampleUri::new(number.to_string()), number.to_string(), 0);
        (0..self.len).map(sample).collect()
    }
}

impl Source for TestSource {
    fn name(&self) -> String {
        "test".to_owned()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        let page = Page { samples: self.samples().to_vec(), ..Page::default() };
        Box::new(std::iter::once(page))
    }

    fn read_range(&self, _: &SampleUri, _: Range<u64>) -> Result<Vec<u8>, SourceError> {
        unreachable!("predictions read whole images")
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        std::thread::sleep(self.read_time);
        self.reads.fetch_add(1, Ordering::SeqCst);
        let number: usize = uri.as_str().parse().unwrap();
        if self.gone_from.is_some_and(|first| number >= first) {
            return Err(SourceError::Unreachable("unplugged".to_owned()));
        }
        if self.broken.contains(&number) {
            return Ok(b"not an image".to_vec());
        }
        Ok(bmp(number as u32 + 1))
    }
}

type Call = dyn Fn(&[u32], &TaskControl) -> Result<(), PredictError> + Send + Sync;

/// Returns the image's width; `call` sees the widths of each batch and can fail.
struct TestPredictor {
    lanes: usize,
    batch: usize,
    call: Box<Call>,
}

impl TestPredictor {
    fn new(
        lanes: usize,
        batch: usize,
        call: impl Fn(&[u32], &TaskControl) -> Result<(), PredictError> + Send + Sync + 'static,
    ) -> Self {
        Self { lanes, batch, call: Box::new(call) }
    }
}

impl Predictor for TestPredictor {
    fn prepare(&self, image: &RgbImage) -> Result<Prepared, PredictError> {
        Ok(Prepared {
            tensor: Tensor::u8([1, 1, 1, 3], vec![0; 3]),
            auxiliary: Vec::new(),
            image_from_model: AxisTransform::IDENTITY,
            canvas_size: [1, 1],
            image_size: [image.width(), image.height()],
        })
    }

    fn predict(
        &self,
        _lane: usize,
        batch: &[Prepared],
        control: &TaskControl,
    ) -> Result<Vec<Prediction>, PredictError> {
        let widths: Vec<u32> = batch.iter().map(|prepared| prepared.image_size[0]).collect();
        (self.call)(&widths, control)?;
        let prediction = |width| Prediction::new([width, 1], PredictionContent::Detections(Vec::new()));
        Ok(widths.into_iter().map(prediction).collect())
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn max_batch(&self) -> usize {
        self.batch
    }
}

fn request(source: TestSource, predictor: TestPredictor) -> PredictRequest {
    PredictRequest {
        samples: source.samples(),
        source: Arc::new(source),
        predictor: AnyPredictor::OfTensors(Arc::new(predictor)),
        limits: DecodeLimits::default(),
    }
}

fn run(request: &PredictRequest) -> (PredictOutcome, Vec<(usize, SampleResult)>) {
    let mut results = Vec::new();
    let control = TaskControl::new(ProgressUnit::Images);
    let outcome = predict(request, &control, |index, result| {
        results.push((index, result));
    });
    (outcome, results)
}

fn source(len: usize) -> TestSource {
    TestSource { len, ..TestSource::default() }
}

/// Checks that every result is in order and of the right image, with those in `broken` failed.
fn check_results(results: &[(usize, SampleResult)], len: usize, broken: &[usize]) {
    assert_eq!(results.iter().map(|(index, _)| *index).collect::<Vec<_>>(), (0..len).collect::<Vec<_>>());
    for (index, result) in results {
        match result {
            Ok(prediction) => assert_eq!(prediction.width as usize, index + 1),
            Err(problem) => assert!(broken.contains(index), "{problem}"),
        }
    }
}

#[test]
fn results_arrive_in_listing_order() {
    for (lanes, batch) in [(1, 1), (1, 8), (4, 1)] {
        let jitter = |widths: &[u32], _: &TaskControl| {
            std::thread::sleep(Duration::from_millis(u64::from(widths[0] * 7 % 5)));
            Ok(())
        };
        let (outcome, results) = run(&request(source(100), TestPredictor::new(lanes, batch, jitter)));
        assert_eq!((outcome.done, outcome.failed, outcome.stopped), (100, 0, None));
        check_results(&results, 100, &[]);
    }
}

#[test]
fn slow_source_and_model_overlap_in_bounded_memory() {
    const LEN: usize = 24;
    let step = Duration::from_millis(50);
    let computed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&computed);
    let slow = move |_: &[u32], _: &TaskControl| {
        std::thread::sleep(step);
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let source = Arc::new(TestSource { read_time: step, ..source(LEN) });
    let request = PredictRequest {
        samples: source.samples(),
        source: source.clone(),
        predictor: AnyPredictor::OfTensors(Arc::new(TestPredictor::new(1, 1, slow))),
        limits: DecodeLimits::default(),
    };
    let control = TaskControl::new(ProgressUnit::Images);
    let mut most_in_memory = 0;
    let start = Instant::now();
    let outcome = predict(&request, &control, |_, _| {
        let read = source.reads.load(Ordering::SeqCst);
        most_in_memory = most_in_memory.max(read - computed.load(Ordering::SeqCst));
    });
    let elapsed = start.elapsed();
    assert_eq!(outcome.done, LEN);
    let sum = step * 2 * LEN as u32;
    assert!(elapsed < sum * 3 / 4, "{elapsed:?} is too near to the {sum:?} of one after the other");
    let workers = std::thread::available_parallelism().unwrap().get();
    let bound = request.source.useful_reads() + 2 * workers + workers + 2 + 1;
    assert!(most_in_memory <= bound, "{most_in_memory} images in memory, at most {bound} were promised");
    assert_eq!(outcome.stages.slowest(), Some(Stage::Model));
}

#[test]
fn non_image_is_one_problem() {
    for (lanes, batch) in [(1, 4), (3, 1)] {
        let source = TestSource { broken: vec![3, 17], ..source(20) };
        let (outcome, results) = run(&request(source, TestPredictor::new(lanes, batch, |_, _| Ok(()))));
        assert_eq!((outcome.done, outcome.failed, outcome.stopped), (18, 2, None));
        check_results(&results, 20, &[3, 17]);
    }
}

#[test]
fn batches_hold_consecutive_images() {
    let batches = Arc::new(Mutex::new(BTreeMap::new()));
    for _ in 0..3 {
        let seen = Arc::clone(&batches);
        let record = move |widths: &[u32], _: &TaskControl| {
            let mut seen = seen.lock();
            let members = seen.entry(widths[0]).or_insert_with(|| widths.to_vec());
            assert_eq!(members, widths);
            Ok(())
        };
        run(&request(source(30), TestPredictor::new(1, 8, record)));
    }
    let batches = batches.lock();
    assert_eq!(batches.keys().copied().collect::<Vec<_>>(), [1, 9, 17, 25]);
    assert_eq!(batches[&25].len(), 6);
}

/// Records what arrived when, and in which order.
#[derive(Default)]
struct Record {
    arrived: Vec<usize>,
    in_order: Vec<(usize, SampleResult)>,
}

impl ResultSink for Record {
    fn arrived(&mut self, index: usize, _: &SampleResult) {
        self.arrived.push(index);
    }

    fn in_order(&mut self, index: usize, result: SampleResult) {
        self.in_order.push((index, result));
    }
}

#[test]
fn resumed_run_forms_the_same_batches() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    for (lanes, batch, expected) in
        [(1, 8, vec![(9..=16).collect::<Vec<u32>>(), (25..=30).collect()]), (3, 1, vec![vec![10], vec![12], vec![30]])]
    {
        let seen = Arc::clone(&calls);
        let record = move |widths: &[u32], _: &TaskControl| {
            seen.lock().push(widths.to_vec());
            Ok(())
        };
        let request = request(source(30), TestPredictor::new(lanes, batch, record));
        let missing: SampleSet = [9, 11, 29].map(SampleId).into_iter().collect();
        let control = TaskControl::new(ProgressUnit::Images);
        let mut sink = Record::default();
        let outcome = predict_some(&request, &missing, &control, &mut sink);
        assert_eq!((outcome.done, outcome.failed, outcome.stopped), (3, 0, None));
        let mut calls = std::mem::take(&mut *calls.lock());
        calls.sort();
        assert_eq!(calls, expected);
        let places: Vec<usize> = sink.in_order.iter().map(|(index, _)| *index).collect();
        assert_eq!(places, [9, 11, 29]);
        sink.arrived.sort_unstable();
        assert_eq!(sink.arrived, places);
        let progress = control.progress();
        let computed = expected.concat().len() as u64;
        assert_eq!((progress.done, progress.done_before), (30, 30 - computed));
    }
}

#[test]
fn result_can_arrive_early() {
    let slow_first = |widths: &[u32], _: &TaskControl| {
        if widths == [1] {
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    };
    let request = request(source(8), TestPredictor::new(2, 1, slow_first));
    let all = (0..8).map(SampleId).collect();
    let mut sink = Record::default();
    predict_some(&request, &all, &TaskControl::new(ProgressUnit::Images), &mut sink);
    assert_ne!(sink.arrived[0], 0);
    check_results(&sink.in_order, 8, &[]);
}

#[test]
fn out_of_memory_halves_the_batch() {
    let small_device = |widths: &[u32], _: &TaskControl| match widths.len() {
        0..=2 => Ok(()),
        _ => Err(PredictError::OutOfMemory("no more".to_owned())),
    };
    let (outcome, results) = run(&request(source(24), TestPredictor::new(1, 8, small_device)));
    assert_eq!((outcome.done, outcome.failed), (24, 0));
    check_results(&results, 24, &[]);
    assert_eq!(outcome.notes.len(), 2, "8 to 4, then 4 to 2: {:?}", outcome.notes);
    assert!(outcome.notes[1].contains("with 4 images"), "{:?}", outcome.notes);
}

#[test]
fn refused_image_costs_only_itself() {
    let picky = |widths: &[u32], _: &TaskControl| {
        if widths.contains(&6) {
            return Err(PredictError::Failed("I do not like this one".to_owned()));
        }
        Ok(())
    };
    let (outcome, results) = run(&request(source(16), TestPredictor::new(1, 8, picky)));
    assert_eq!((outcome.done, outcome.failed), (15, 1));
    check_results(&results, 16, &[5]);
}

#[test]
fn model_panic_is_a_problem_of_one_image() {
    let buggy = |widths: &[u32], _: &TaskControl| {
        assert_ne!(widths, [4], "oops");
        Ok(())
    };
    let (outcome, results) = run(&request(source(8), TestPredictor::new(2, 1, buggy)));
    assert_eq!((outcome.done, outcome.failed), (7, 1));
    let problem = results[3].1.as_ref().unwrap_err();
    assert!(problem.message.contains("oops"), "{problem}");
}

#[test]
fn lost_device_stops_the_run_and_keeps_results() {
    for lanes in [1, 2] {
        let predicted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&predicted);
        let dying = move |widths: &[u32], _: &TaskControl| {
            if widths[0] > 10 {
                return Err(PredictError::DeviceLost("unplugged".to_owned()));
            }
            count.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let (outcome, results) = run(&request(source(100), TestPredictor::new(lanes, 1, dying)));
        assert_eq!(outcome.stopped, Some(Stopped::DeviceLost("unplugged".to_owned())));
        assert_eq!(results.len(), predicted.load(Ordering::SeqCst));
        assert!(results.is_sorted_by_key(|(index, _)| *index));
        for (index, result) in results {
            assert_eq!(result.unwrap().width as usize, index + 1);
        }
    }
}

#[test]
fn cancel_ends_a_run_inside_the_model() {
    for lanes in [1, 2] {
        let (entered_sender, entered) = bounded(2);
        let endless = move |_: &[u32], control: &TaskControl| {
            let _ = entered_sender.try_send(());
            let (sender, cancelled) = bounded(1);
            let _hook = control.on_cancel(move || {
                let _ = sender.try_send(());
            });
            let _ = cancelled.recv();
            Err(PredictError::Cancelled)
        };
        let request = request(source(100), TestPredictor::new(lanes, 1, endless));
        let control = TaskControl::new(ProgressUnit::Images);
        let owner = control.clone();
        let run = std::thread::spawn(move || predict(&request, &control, |_, _| ()));
        entered.recv().unwrap();
        let start = Instant::now();
        owner.cancel();
        let outcome = run.join().unwrap();
        assert_eq!(outcome.stopped, Some(Stopped::Cancelled));
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
}

#[test]
fn paused_run_resumes() {
    let request = request(source(200), TestPredictor::new(2, 1, |_, _| Ok(())));
    let control = TaskControl::new(ProgressUnit::Images);
    control.pause();
    let owner = control.clone();
    let run = std::thread::spawn(move || {
        let mut results = Vec::new();
        let outcome = predict(&request, &control, |index, result| {
            results.push((index, result));
        });
        (outcome, results)
    });
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(owner.progress().done, 0);
    owner.resume();
    let (outcome, results) = run.join().unwrap();
    assert_eq!(outcome.done, 200);
    check_results(&results, 200, &[]);
}

#[test]
fn empty_run_ends_immediately() {
    let (outcome, results) = run(&request(source(0), TestPredictor::new(2, 1, |_, _| Ok(()))));
    assert_eq!((outcome.done, outcome.failed, outcome.stopped), (0, 0, None));
    assert!(results.is_empty());
}

/// Takes files; returns the width that it is given, and refuses some.
struct FilePredictor {
    lanes: usize,
    call: Box<dyn Fn(u32) -> Result<(), PredictError> + Send + Sync>,
}

impl EncodedPredictor for FilePredictor {
    fn predict(&self, image: &EncodedImage<'_>, _: &TaskControl) -> Result<Prediction, PredictError> {
        let [width, height] = image.size;
        assert_eq!(image.bytes, bmp(width), "the bytes are those of the file");
        (self.call)(width)?;
        Ok(Prediction::new([width, height], PredictionContent::Classes(Vec::new())))
    }

    fn lanes(&self) -> usize {
        self.lanes
    }
}

fn file_request(
    source: TestSource,
    lanes: usize,
    call: impl Fn(u32) -> Result<(), PredictError> + Send + Sync + 'static,
) -> PredictRequest {
    let call = Box::new(call);
    PredictRequest {
        samples: source.samples(),
        source: Arc::new(source),
        predictor: AnyPredictor::OfFiles(Arc::new(FilePredictor { lanes, call })),
        limits: DecodeLimits::default(),
    }
}

#[test]
fn file_model_receives_undecoded_images_in_order() {
    for lanes in [1, 5] {
        let source = TestSource { len: 40, broken: vec![3], ..TestSource::default() };
        let request = file_request(source, lanes, |width| match width {
            8 => Err(PredictError::Failed("not this one".to_owned())),
            9 => panic!("oh"),
            _ => Ok(()),
        });
        let (outcome, results) = run(&request);
        assert_eq!((outcome.done, outcome.failed), (37, 3), "{lanes}");
        assert_eq!(outcome.stopped, None);
        let places: Vec<usize> = results.iter().map(|(place, _)| *place).collect();
        assert!(places.iter().copied().eq(0..40), "{places:?}");
        for (place, result) in results {
            match result {
                Ok(prediction) => assert_eq!(prediction.width as usize, place + 1),
                Err(problem) => assert!([3, 7, 8].contains(&place), "{place}: {problem}"),
            }
        }
    }
}

#[test]
fn unreachable_model_ends_the_run_and_keeps_results() {
    let source = TestSource { len: 500, ..TestSource::default() };
    let request = file_request(source, 2, |width| match width {
        20.. => Err(PredictError::OutOfReach("gone".to_owned())),
        _ => Ok(()),
    });
    let (outcome, results) = run(&request);
    assert_eq!(outcome.stopped, Some(Stopped::OutOfReach("gone".to_owned())));
    assert_eq!((outcome.done, outcome.failed), (results.len(), 0));
    for (place, result) in results {
        assert!(place < 19 && result.is_ok(), "{place}");
    }
}

#[test]
fn unreachable_source_ends_the_run_without_results() {
    for lanes in [1, 2] {
        let source = TestSource { len: 500, broken: vec![3], gone_from: Some(20), ..TestSource::default() };
        let (outcome, results) = run(&file_request(source, lanes, |_| Ok(())));
        assert_eq!(outcome.stopped, Some(Stopped::SourceUnreachable("unplugged".to_owned())));
        assert_eq!((outcome.done, outcome.failed), (19, 1));
        assert!(results.iter().all(|(place, _)| *place < 20));
    }
}

//! Measures how long it takes to search, sort and count a hundred thousand images with a hundred boxes each, and how
//! much memory their predictions take. `README.md` explains how to run it, and the targets.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use strum::VariantArray;

use spotcheck::domain::{BoundingBox, LabelSet, ModelTask, Sample, SampleId, SampleUri, ViewSettings};
use spotcheck::review::{
    ArrangeRequest, Arranger, BoxOutcome, Direction, FilmOrder, FilmRequest, Mark, Marks, ObjectOutcome, OutcomeKind,
    Outcomes, Predictions, Query, Sort, SortBy, Suppressed, SuspectOrder, VerdictKind, filmstrip, outcome_counts,
    statistics,
};

const IMAGES: usize = 100_000;
const BOXES: usize = 100;
const CLASSES: u32 = 80;
const ROUNDS: usize = 9;
const NEVER: &dyn Fn() -> bool = &|| false;

fn main() {
    let mut random = Random(1);
    let before = resident_bytes();
    let predictions = predictions(&mut random);
    let after = resident_bytes();
    println!("{IMAGES} images with {BOXES} boxes each, median (worst) of {ROUNDS}\n");
    println!("memory of the predictions    {:>8.1} MB", megabytes(before, after));
    let mut request = ArrangeRequest {
        samples: (0..IMAGES).map(|index| sample(index, &mut random)).collect(),
        labels: labels(),
        marks: marks(&mut random),
        predictions: Some(predictions),
        ..ArrangeRequest::default()
    };
    let mut arranger = Arranger::default();
    let without_truth: Vec<SortBy> =
        SortBy::VARIANTS.iter().copied().filter(|by| !by.needs_truth() && *by != SortBy::Disagreement).collect();
    sorts(&mut request, &mut arranger, &without_truth);
    searches(&mut request, &mut arranger, &["img_12", "class:\"class 7\" score>0.8 !verdict", "boxes>3 or tag:night"]);
    thresholds(&mut request, &mut arranger, "threshold moved");
    request.suppressed = Some(suppressed(&request, &mut random));
    request.view.nms_iou = Some(0.5);
    thresholds(&mut request, &mut arranger, "the same, overlaps hidden");
    request.suppressed = None;
    request.view.nms_iou = None;
    let before = resident_bytes();
    request.outcomes = outcomes(&request, &mut random).map(Arc::new);
    println!("\nmemory of the outcomes       {:>8.1} MB", megabytes(before, resident_bytes()));
    thresholds(&mut request, &mut arranger, "threshold moved beside ground truth");
    counts_alone(&mut request);
    sorts(&mut request, &mut arranger, &[SortBy::Errors, SortBy::ConfidentError]);
    searches(&mut request, &mut arranger, &["fp class:\"class 7\"", "fn", "tp iou<0.7"]);
    filmstrips(&request);
    snapshots(&request);
    println!("\nmemory of everything     {:>8.1} MB", megabytes(0, resident_bytes()));
    println!("its highest              {:>8.1} MB", megabytes(0, highest_resident_bytes()));
}

fn sorts(request: &mut ArrangeRequest, arranger: &mut Arranger, sorts: &[SortBy]) {
    for &by in sorts {
        let mut turn = false;
        let name = format!("sort by {}", by.into_str().to_lowercase());
        measure(&name, || {
            turn = !turn;
            let direction = if turn { Direction::Descending } else { Direction::Ascending };
            request.sort = Sort { by, direction };
            let arrangement = arranger.arrange(request, NEVER);
            arrangement.map_or(0, |arrangement| arrangement.order().len())
        });
    }
    request.sort = Sort { by: SortBy::TopScore, direction: Direction::Descending };
}

fn searches(request: &mut ArrangeRequest, arranger: &mut Arranger, searches: &[&str]) {
    for text in searches {
        let Ok(query) = Query::parse(text) else {
            println!("{text} is not a query");
            continue;
        };
        request.query = query;
        measure(&format!("search {text}"), || {
            let arrangement = arranger.arrange(request, NEVER);
            arrangement.map_or(0, |arrangement| arrangement.order().len())
        });
    }
    request.query = Query::default();
}

/// The work after a move of the slider: the order with the filter counts, histogram and class table.
fn thresholds(request: &mut ArrangeRequest, arranger: &mut Arranger, name: &str) {
    let mut step = 0;
    measure(name, || {
        step += 1;
        request.view.min_score = 0.3 + 0.05 * step as f32;
        let arrangement = arranger.arrange(request, NEVER);
        let counted = request.predictions.as_ref().and_then(|predictions| {
            let suppressed = request.suppressed.as_ref();
            statistics(predictions, &request.view, suppressed, &request.marks, NEVER)
        });
        let outcomes = outcome_counts(request, NEVER);
        outcomes.map_or(0, |outcomes| outcomes.images as usize)
            + arrangement.map_or(0, |arrangement| arrangement.counts.no_box)
            + counted.map_or(0, |counted| counted.boxes_above)
    });
    request.view = ViewSettings { nms_iou: request.view.nms_iou, ..ViewSettings::default() };
}

/// Only the counts of true positives, false positives and false negatives.
fn counts_alone(request: &mut ArrangeRequest) {
    let mut step = 0;
    measure("counts beside ground truth alone", || {
        step += 1;
        request.view.min_score = 0.3 + 0.05 * step as f32;
        outcome_counts(request, NEVER).map_or(0, |counts| counts.all().wrong as usize)
    });
    request.view = ViewSettings::default();
}

/// All boxes of the search “fp”, by score.
fn filmstrips(request: &ArrangeRequest) {
    let Ok(query) = Query::parse("fp") else {
        return;
    };
    let images = ArrangeRequest { query, ..request.clone() };
    let film =
        FilmRequest { images, class: None, order: FilmOrder::HighestFirst, suspects: SuspectOrder::Gain, chosen: None };
    measure("filmstrip of all wrong boxes", || filmstrip(&film, NEVER).map_or(0, |frames| frames.len()));
}

/// Seven objects in each image, most of them matched by a box with a high score.
fn outcomes(request: &ArrangeRequest, random: &mut Random) -> Option<Outcomes> {
    const OBJECTS: usize = 7;
    let predictions = request.predictions.as_ref()?;
    let names = (0..CLASSES).map(|class| (Some(class.into()), format!("class {class}")));
    let mut outcomes = Outcomes::new(predictions.clone(), names, (0..CLASSES).map(|class| (class, class)));
    for (id, summary) in predictions.iter() {
        let wrong = OutcomeKind::VARIANTS.iter().filter(|kind| kind.is_wrong());
        let wrong: Vec<OutcomeKind> = wrong.copied().collect();
        let mut boxes: Vec<BoxOutcome> = summary
            .classes
            .iter()
            .map(|_| BoxOutcome {
                kind: Some(wrong[random.next() as usize % wrong.len()]),
                object: random.next() as u32 % OBJECTS as u32,
                iou: random.unit(),
            })
            .collect();
        let mut objects = Vec::new();
        for object in 0..OBJECTS {
            let shown_by = random.next() as usize % (2 * OBJECTS);
            boxes[shown_by] = BoxOutcome { kind: Some(OutcomeKind::Correct), object: object as u32, iou: 0.8 };
            let (class, bounds) = (summary.classes[shown_by], [1.0, 2.0, 3.0, 4.0]);
            objects.push(ObjectOutcome { class, bounds: bounds.into(), shown_by: shown_by as u32, counts: true });
        }
        outcomes.add(id, &boxes, &objects);
    }
    Some(outcomes)
}

/// The work of the window's thread to create a snapshot for a worker.
fn snapshots(request: &ArrangeRequest) {
    measure("snapshot for a worker", || {
        let snapshot = request.clone();
        snapshot.samples.len()
    });
}

fn measure(name: &str, mut work: impl FnMut() -> usize) {
    let mut times: Vec<Duration> = Vec::with_capacity(ROUNDS);
    let mut found = 0;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        found = std::hint::black_box(work());
        times.push(begun.elapsed());
    }
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "{name:<40} {:>8.2} ms ({:.2}), {found}",
        milliseconds(times[ROUNDS / 2]),
        milliseconds(times[ROUNDS - 1])
    );
}

fn predictions(random: &mut Random) -> Predictions {
    let mut predictions = Predictions::new(ModelTask::Detection);
    let (mut classes, mut scores) = (Vec::new(), Vec::new());
    for index in 0..IMAGES {
        classes.clear();
        scores.clear();
        for _ in 0..BOXES {
            classes.push(random.next() as u32 % CLASSES);
            // Most boxes have low scores, like those of a detector.
            scores.push(random.unit().powi(4));
        }
        scores.sort_by(|left, right| right.total_cmp(left));
        predictions.record_summary(SampleId::from_index(index), 1024, 768, &classes, &scores);
    }
    predictions
}

fn suppressed(request: &ArrangeRequest, random: &mut Random) -> Suppressed {
    let mut suppressed = Suppressed::new(0.5);
    let Some(predictions) = &request.predictions else {
        return suppressed;
    };
    for (id, summary) in predictions.iter() {
        let bounds: Vec<BoundingBox> = (0..BOXES)
            .map(|_| {
                let (x, y) = (random.unit() * 900.0, random.unit() * 600.0);
                BoundingBox::new(x, y, x + 120.0, y + 120.0)
            })
            .collect();
        suppressed.record(id, &bounds, summary.classes, summary.scores);
    }
    suppressed
}

fn sample(index: usize, random: &mut Random) -> Sample {
    let name = format!("folder {}/IMG_{}.jpg", index % 100, random.next() % 1_000_000);
    Sample {
        uri: SampleUri::new(format!("/photos/{name}")),
        name,
        size_bytes: random.next() % 4_000_000,
        modified_ns: Some(random.next() as i64),
        etag: None,
        capture: None,
    }
}

fn marks(random: &mut Random) -> Marks {
    let mut marks = Marks::default();
    for index in 0..IMAGES {
        if random.next().is_multiple_of(4) {
            let kind = VerdictKind::VARIANTS[random.next() as usize % 4];
            let mark = Mark {
                verdict: Some(kind),
                tags: vec!["night".to_owned(); usize::from(kind == VerdictKind::Unsure)].into(),
                ..Mark::default()
            };
            marks.set(SampleId::from_index(index), mark);
        }
    }
    marks
}

fn labels() -> LabelSet {
    let names = (0..CLASSES).map(|class| format!("class {class}"));
    let lines: Vec<String> = names.collect();
    LabelSet::parse(&lines.join("\n")).unwrap_or_default()
}

fn megabytes(before: u64, after: u64) -> f64 {
    after.saturating_sub(before) as f64 / 1e6
}

fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

fn highest_resident_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// A field of `/proc/self/status`; 0 on systems without it.
fn status_bytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// Marsaglia's xorshift64: the same numbers every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
    }
}

//! The search for error patterns: counts of images, and their tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::chance::{Draw, Hypergeometric, q_values};
use super::classification::OTHER_CLASS;
use super::ground_truth::{ImageSides, Sides};
use super::objects::{CORRECT_IOU, ImageObjects, Outcome, outcomes};
use super::patterns::{Attribute, ErrorKind, ErrorPattern, FoundPatterns, ImageGroup, SHOWN_Q};
use crate::domain::{BoxRole, ModelTask};
use crate::review::OutcomeKind;

/// Fewer images or errors say nothing.
const FEWEST_IMAGES: usize = 5;
const FEWEST_ERRORS: usize = 3;
/// The kinds of errors about classes that are tested, the most frequent ones.
const MOST_KINDS: usize = 100;

/// The errors of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ImageErrors {
    counts: BTreeMap<ErrorKind, u32>,
    /// The classes of its objects.
    classes: BTreeSet<u32>,
}

/// The patterns in the errors of `sides`; with `than`, in the errors that this other run does not make. `None` if
/// `is_cancelled`.
pub fn find_patterns(
    sides: &Sides,
    than: Option<&Sides>,
    groups: &[ImageGroup],
    is_cancelled: impl Fn() -> bool,
) -> Option<FoundPatterns> {
    let errors = errors_of_images(sides, than);
    let distribution = Hypergeometric::new(errors.len());
    let (mut patterns, mut p_values) = (Vec::new(), Vec::new());
    for kind in kinds_of(&errors, sides.task) {
        if is_cancelled() {
            return None;
        }
        let trial = Trial::new(kind, &errors);
        for group in groups.iter().filter(|group| !is_about(group, kind, sides)) {
            let Some(pattern) = trial.pattern(group, &distribution) else { continue };
            // A q-value is never below its p-value.
            if pattern.p <= SHOWN_Q {
                let with_error = trial.with_error(group);
                patterns.push((p_values.len(), ErrorPattern { with_error, ..pattern }));
            }
            p_values.push(pattern.p);
        }
    }
    let q_values = q_values(&p_values);
    let corrected = patterns.into_iter().map(|(at, pattern)| ErrorPattern { q: q_values[at], ..pattern });
    let patterns = most_specific(corrected.filter(|pattern| pattern.q <= SHOWN_Q).collect());
    Some(FoundPatterns { patterns, tests: p_values.len(), images: errors.iter().flatten().count() })
}

/// The images in which a kind of error could occur, and those in which it does.
struct Trial {
    kind: ErrorKind,
    /// By image.
    can_have: Vec<bool>,
    has: Vec<bool>,
    images: usize,
    with_error: usize,
}

impl Trial {
    fn new(kind: ErrorKind, errors: &[Option<ImageErrors>]) -> Self {
        let flags =
            |is: &dyn Fn(&ImageErrors) -> bool| errors.iter().map(|image| image.as_ref().is_some_and(is)).collect();
        let can_have: Vec<bool> = flags(&|image| image.can_have(kind));
        let has: Vec<bool> = flags(&|image| image.can_have(kind) && image.counts.contains_key(&kind));
        let count = |flags: &[bool]| flags.iter().filter(|flag| **flag).count();
        Self { kind, images: count(&can_have), with_error: count(&has), can_have, has }
    }

    /// The test of a group, without its images; `None` if there are too few, or no others.
    fn pattern(&self, group: &ImageGroup, distribution: &Hypergeometric) -> Option<ErrorPattern> {
        let count = |flags: &[bool]| group.images.iter().filter(|at| flags[**at as usize]).count();
        let images = count(&self.can_have);
        if images < FEWEST_IMAGES || images == self.images || self.with_error < FEWEST_ERRORS {
            return None;
        }
        let draw = Draw { population: self.images, successes: self.with_error, sample: images };
        Some(ErrorPattern {
            kind: self.kind,
            attribute: group.attribute,
            value: group.value.clone(),
            with_error: Vec::new(),
            images,
            expected: draw.expected(),
            p: distribution.at_least(count(&self.has), draw),
            q: 1.0,
        })
    }

    fn with_error(&self, group: &ImageGroup) -> Vec<u32> {
        group.images.iter().copied().filter(|at| self.has[*at as usize]).collect()
    }
}

/// The errors of each image; with `than`, those that this other run does not make, `None` for images that it lacks.
fn errors_of_images(sides: &Sides, than: Option<&Sides>) -> Vec<Option<ImageErrors>> {
    let mut errors: Vec<Option<ImageErrors>> = sides.images.iter().map(|image| Some(errors_of(sides, image))).collect();
    if let Some(other) = than {
        let by_name: HashMap<&str, &ImageSides> =
            other.images.iter().map(|image| (image.name.as_str(), image)).collect();
        for (image, errors) in sides.images.iter().zip(&mut errors) {
            let partner = by_name.get(image.name.as_str()).map(|partner| errors_of(other, partner));
            *errors = errors.take().zip(partner).map(|(errors, partner)| errors.without(&partner));
        }
    }
    errors
}

/// Without general kinds that occur in the same images of a group as a special one, lowest p-value first.
fn most_specific(mut patterns: Vec<ErrorPattern>) -> Vec<ErrorPattern> {
    let classes = |kind: ErrorKind| kind.classes().into_iter().flatten().count();
    patterns.sort_by_key(|pattern| std::cmp::Reverse(classes(pattern.kind)));
    let mut kept: HashMap<(Attribute, String), Vec<ErrorPattern>> = HashMap::new();
    for pattern in patterns {
        let of_group = kept.entry((pattern.attribute, pattern.value.clone())).or_default();
        if of_group.iter().all(|other| other.with_error != pattern.with_error) {
            of_group.push(pattern);
        }
    }
    let mut kept: Vec<ErrorPattern> = kept.into_values().flatten().collect();
    kept.sort_by(|one, other| {
        let order = one.p.total_cmp(&other.p).then_with(|| one.kind.cmp(&other.kind));
        order.then_with(|| (one.attribute, &one.value).cmp(&(other.attribute, &other.value)))
    });
    kept
}

/// Whether the group is defined by the class of the error, so that the result is trivial.
fn is_about(group: &ImageGroup, kind: ErrorKind, sides: &Sides) -> bool {
    let (ErrorKind::FalseNegative(Some(class)) | ErrorKind::FalsePositive(Some(class))) = kind else { return false };
    let name = sides.classes.get(class as usize).map(|class| class.name.as_str());
    group.attribute == Attribute::Class && name == Some(group.value.as_str())
}

/// The kinds to test, the general ones first.
fn kinds_of(errors: &[Option<ImageErrors>], task: ModelTask) -> Vec<ErrorKind> {
    let mut images: BTreeMap<ErrorKind, usize> = BTreeMap::new();
    for kind in errors.iter().flatten().flat_map(|image| image.counts.keys()) {
        *images.entry(*kind).or_default() += 1;
    }
    let is_general = |kind: ErrorKind| match kind {
        ErrorKind::Any => true,
        // A wrong class is both.
        ErrorKind::FalsePositive(None) | ErrorKind::FalseNegative(None) => task == ModelTask::Detection,
        _ => false,
    };
    let is_of_class = |kind: ErrorKind| match kind {
        ErrorKind::FalsePositive(class) | ErrorKind::FalseNegative(class) => class.is_some(),
        ErrorKind::Confused { .. } => true,
        ErrorKind::Any => false,
    };
    let mut of_classes: Vec<(ErrorKind, usize)> =
        images.iter().filter(|(kind, _)| is_of_class(**kind)).map(|(kind, count)| (*kind, *count)).collect();
    of_classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let general = images.keys().copied().filter(|kind| is_general(*kind));
    general.chain(of_classes.into_iter().take(MOST_KINDS).map(|(kind, _)| kind)).collect()
}

impl ImageErrors {
    fn add(&mut self, kind: ErrorKind) {
        *self.counts.entry(kind).or_default() += 1;
    }

    fn false_positive(&mut self, class: u32) {
        self.add(ErrorKind::Any);
        self.add(ErrorKind::FalsePositive(None));
        self.add(ErrorKind::FalsePositive(Some(class)));
    }

    fn false_negative(&mut self, class: u32) {
        self.add(ErrorKind::Any);
        self.add(ErrorKind::FalseNegative(None));
        self.add(ErrorKind::FalseNegative(Some(class)));
    }

    /// Whether a kind of error could occur in the image.
    fn can_have(&self, kind: ErrorKind) -> bool {
        match kind {
            ErrorKind::Any | ErrorKind::FalsePositive(_) => true,
            ErrorKind::FalseNegative(None) => !self.classes.is_empty(),
            ErrorKind::FalseNegative(Some(class)) | ErrorKind::Confused { truth: class, .. } => {
                self.classes.contains(&class)
            }
        }
    }

    /// The kinds of errors that are more frequent than in the other run.
    fn without(mut self, other: &Self) -> Self {
        self.counts.retain(|kind, count| *count > other.counts.get(kind).copied().unwrap_or_default());
        self
    }
}

fn errors_of(sides: &Sides, image: &ImageSides) -> ImageErrors {
    let mut errors = ImageErrors::default();
    match sides.task {
        ModelTask::Classification => add_class(&mut errors, image),
        ModelTask::Detection => add_boxes(&mut errors, &image.objects, &sides.thresholds),
    }
    errors
}

fn add_class(errors: &mut ImageErrors, image: &ImageSides) {
    let (Some(truth), Some(&(predicted, _))) = (image.truth_class, image.classes.first()) else { return };
    errors.classes.insert(truth);
    if truth != predicted {
        errors.false_negative(truth);
        if predicted != OTHER_CLASS {
            errors.false_positive(predicted);
            errors.add(ErrorKind::Confused { truth, predicted });
        }
    }
}

/// At the minimum scores and IoU 0.50, as the counts of the evaluation.
fn add_boxes(errors: &mut ImageErrors, objects: &ImageObjects, thresholds: &[f64]) {
    let counts = |at: usize| objects.truths[at].role == BoxRole::Object;
    errors.classes.extend((0..objects.truths.len()).filter(|at| counts(*at)).map(|at| objects.truths[at].class));
    let mut is_found = vec![false; objects.truths.len()];
    for (found, Outcome { kind, truth }) in objects.detections.iter().zip(outcomes(objects, CORRECT_IOU)) {
        let is_shown = thresholds.get(found.class as usize).is_some_and(|least| found.score >= *least);
        match (kind, truth) {
            _ if !is_shown => {}
            (OutcomeKind::Ignored, _) => {}
            (OutcomeKind::Correct, Some(truth)) => is_found[truth] = true,
            (OutcomeKind::Class, Some(truth)) => {
                errors.false_positive(found.class);
                errors.add(ErrorKind::Confused { truth: objects.truths[truth].class, predicted: found.class });
            }
            _ => errors.false_positive(found.class),
        }
    }
    for (at, object) in objects.truths.iter().enumerate() {
        if counts(at) && !is_found[at] {
            errors.false_negative(object.class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::detection::EvaluatedClass;
    use super::super::ground_truth::{Counted, MatchedClasses};
    use super::super::objects::{DetectedObject, TrueObject};
    use super::*;
    use crate::domain::ExactBox;

    const CAT: u32 = 0;
    const DOG: u32 = 1;

    fn sides(task: ModelTask, images: Vec<ImageSides>) -> Sides {
        let class = |name: &str| EvaluatedClass { id: None, name: name.to_owned() };
        Sides {
            task,
            classes: vec![class("cat"), class("dog")],
            matched: MatchedClasses::default(),
            model_classes: Vec::new(),
            images,
            thresholds: vec![0.5; 2],
            counted: Counted::default(),
            matching: crate::annotations::matching::MatchSummary::default(),
            split: None,
            notes: Vec::new(),
        }
    }

    /// An image of a cat, classified as this.
    fn classified(at: usize, predicted: u32) -> ImageSides {
        let (name, classes) = (format!("{at}.jpg"), vec![(predicted, 0.9)]);
        ImageSides { name, truth_class: Some(CAT), classes, ..ImageSides::default() }
    }

    fn group(value: &str, images: impl IntoIterator<Item = usize>) -> ImageGroup {
        let images = images.into_iter().map(|at| at as u32).collect();
        ImageGroup { attribute: Attribute::TimeOfDay, value: value.to_owned(), images }
    }

    #[test]
    fn cats_that_became_dogs_at_night_are_found() {
        // 30 of 200 images are taken at night. Ten of them are wrong, and five of the others.
        let is_wrong = |at: usize| at < 10 || (100..105).contains(&at);
        let wrong = |at: usize| classified(at, if is_wrong(at) { DOG } else { CAT });
        let now = sides(ModelTask::Classification, (0..200).map(wrong).collect());
        let groups = [group("night", 0..30), group("day", 30..200), group("even", (0..200).step_by(2))];
        let found = find_patterns(&now, None, &groups, || false).unwrap();
        // The general kinds of errors occur in the same images.
        let [pattern] = &found.patterns[..] else { panic!("{:?}", found.patterns) };
        let confused = ErrorKind::Confused { truth: CAT, predicted: DOG };
        assert_eq!((pattern.kind, &*pattern.value, pattern.images), (confused, "night", 30));
        assert_eq!(pattern.with_error, (0..10).collect::<Vec<_>>());
        assert!((pattern.expected - 30.0 * 15.0 / 200.0).abs() < 1e-12);
        // scipy.stats.hypergeom.sf(9, 200, 15, 30)
        assert!((pattern.p / 2.420_275_891_511_524e-6 - 1.0).abs() < 1e-6, "{}", pattern.p);
        assert_eq!((found.tests, found.images), (12, 200));
        assert!((pattern.q - pattern.p * 12.0 / 4.0).abs() < 1e-12);

        // The errors that another run does not make: those by day.
        let before = sides(
            ModelTask::Classification,
            (0..200).map(|at| classified(at, if at < 10 { DOG } else { CAT })).collect(),
        );
        let day = [group("morning", 100..110), group("night", 0..30)];
        let new = find_patterns(&now, Some(&before), &day, || false).unwrap();
        assert!(!new.patterns.is_empty() && new.patterns.iter().all(|pattern| pattern.value == "morning"));
        assert_eq!(new.patterns[0].with_error, (100..105).collect::<Vec<_>>());
        assert_eq!(find_patterns(&now, None, &groups, || true), None);
    }

    #[test]
    fn errors_of_boxes_are_counted_as_in_the_evaluation() {
        let bounds = |left: f64| ExactBox { left, top: 0.0, width: 10.0, height: 10.0 };
        let truth = |left, class| TrueObject { bounds: bounds(left), class, area: 100.0, role: BoxRole::Object };
        let found = |left, class, score| DetectedObject { bounds: bounds(left), class, score };
        let objects = ImageObjects {
            truths: vec![truth(0.0, CAT), truth(100.0, DOG), truth(200.0, CAT)],
            detections: vec![
                found(0.0, DOG, 0.9),
                found(100.0, DOG, 0.8),
                found(300.0, CAT, 0.7),
                found(200.0, CAT, 0.4),
            ],
        };
        let image = ImageSides { objects, ..ImageSides::default() };
        let errors = errors_of(&sides(ModelTask::Detection, Vec::new()), &image);
        let expected = [
            (ErrorKind::Any, 4),
            (ErrorKind::FalsePositive(None), 2),
            (ErrorKind::FalsePositive(Some(CAT)), 1),
            (ErrorKind::FalsePositive(Some(DOG)), 1),
            (ErrorKind::FalseNegative(None), 2),
            (ErrorKind::FalseNegative(Some(CAT)), 2),
            (ErrorKind::Confused { truth: CAT, predicted: DOG }, 1),
        ];
        assert_eq!(errors.counts, expected.into_iter().collect());
        assert_eq!(errors.classes, [CAT, DOG].into_iter().collect());
        assert!(errors.can_have(ErrorKind::Confused { truth: DOG, predicted: CAT }));
    }

    /// If errors have nothing to do with the groups, a false-discovery rate of 5% means that 5% of the searches find
    /// anything.
    #[test]
    fn shuffled_errors_rarely_give_a_pattern() {
        const SEARCHES: u64 = 400;
        const IMAGES: usize = 300;
        let mut with_patterns = 0;
        for seed in 0..SEARCHES {
            let mut random = fastrand::Rng::with_seed(seed);
            let images = (0..IMAGES).map(|at| classified(at, u32::from(random.f64() < 0.2))).collect();
            let mut group_of = |count: usize| -> Vec<usize> { (0..IMAGES).map(|_| random.usize(..count)).collect() };
            let mut groups = Vec::new();
            for count in [2, 5, 12] {
                let chosen = group_of(count);
                groups.extend((0..count).map(|own| group("", (0..IMAGES).filter(|at| chosen[*at] == own))));
            }
            let found = find_patterns(&sides(ModelTask::Classification, images), None, &groups, || false).unwrap();
            assert_eq!(found.tests, 4 * groups.len());
            with_patterns += u64::from(!found.patterns.is_empty());
        }
        // Three standard deviations above 5%.
        let most = (0.05 + 3.0 * (0.05 * 0.95 / SEARCHES as f64).sqrt()) * SEARCHES as f64;
        assert!(with_patterns > 0, "the test is never at its limit");
        assert!((with_patterns as f64) < most, "{with_patterns} of {SEARCHES}");
    }

    #[test]
    fn few_images_give_no_pattern() {
        for count in 0..6 {
            let wrong = sides(ModelTask::Classification, (0..count).map(|at| classified(at, DOG)).collect());
            let groups = [group("all", 0..count), group("one", 0..count.min(1))];
            let found = find_patterns(&wrong, None, &groups, || false).unwrap();
            assert_eq!((found.patterns.len(), found.tests, found.images), (0, 0, count));
        }
    }
}

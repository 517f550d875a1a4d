//! Compares with a plain implementation: every prediction is a `Prediction`, and `ViewSettings` answers every question.

use strum::VariantArray;

use super::super::testing::Random;
use super::*;
use crate::domain::{Capture, ClassScore, Detection, GeoPoint, Prediction, PredictionContent, SampleUri};
use crate::review::Mark;

const NEVER: &dyn Fn() -> bool = &|| false;
const NAMES: [&str; 6] = ["cat", "dog", "traffic light", "tree", "cat", "sofa"];

struct World {
    request: ArrangeRequest,
    given: Vec<Option<Prediction>>,
}

fn sample(name: &str, size_bytes: u64, modified_ns: Option<i64>) -> Sample {
    Sample {
        uri: SampleUri::new(format!("/photos/{name}")),
        name: name.to_owned(),
        size_bytes,
        modified_ns,
        etag: None,
        capture: None,
    }
}

fn prediction(random: &mut Random, task: ModelTask) -> Prediction {
    let mut scores: Vec<f32> = (0..random.below(6)).map(|_| (random.unit() * 20.0).round() / 20.0).collect();
    scores.sort_by(|left, right| right.total_cmp(left));
    let class = |random: &mut Random| random.below(NAMES.len()) as u32;
    Prediction {
        width: 10,
        height: 10,
        content: match task {
            ModelTask::Classification => PredictionContent::Classes(
                scores
                    .into_iter()
                    .map(|score| ClassScore { index: class(random), label: String::new(), score })
                    .collect(),
            ),
            ModelTask::Detection => PredictionContent::Detections(
                scores
                    .into_iter()
                    .map(|score| Detection {
                        bounds: [random.unit() * 4.0, 0.0, 6.0, 6.0].into(),
                        class_id: class(random),
                        label: String::new(),
                        score,
                        runners_up: Vec::new(),
                    })
                    .collect(),
            ),
        },
        warnings: Vec::new(),
    }
}

fn world(task: ModelTask, view: ViewSettings) -> World {
    let mut random = Random::new(7);
    let mut predictions = Predictions::new(task);
    let mut suppressed = Suppressed::new(0.5);
    let mut request =
        ArrangeRequest { labels: LabelSet::parse(&NAMES.join("\n")).unwrap(), ..ArrangeRequest::default() };
    let mut given = Vec::new();
    for index in 0..900 {
        let id = SampleId(index);
        let name = format!("{}/IMG_{}.jpg", random.below(4), random.below(400));
        let modified = (random.below(5) > 0).then(|| random.below(50) as i64 - 25);
        let size = random.below(30) as u64;
        request.samples.push(sample(&name, size, modified));
        let mut known = None;
        if index % 7 == 3 {
            request.outdated.insert(id);
        }
        match random.below(8) {
            0 => predictions.record_failure(id, "broken".to_owned()),
            1 => drop(request.unreadable.insert(id)),
            2 => {}
            _ => {
                let mut prediction = prediction(&mut random, task);
                if index % 5 == 2 {
                    prediction.warnings.push("is damaged".to_owned());
                }
                predictions.record(id, &prediction);
                let found = prediction.detections();
                let bounds: Vec<_> = found.iter().map(|found| found.bounds).collect();
                let classes: Vec<_> = found.iter().map(|found| found.class_id).collect();
                let scores: Vec<_> = found.iter().map(|found| found.score).collect();
                suppressed.record(id, &bounds, &classes, &scores);
                known = Some(prediction);
            }
        }
        given.push(known);
        if random.below(3) == 0 {
            let mut mark = Mark::default();
            let verdict = VerdictKind::VARIANTS.get(random.below(VerdictKind::VARIANTS.len())).copied();
            mark.verdict = verdict;
            let judged = (0..6).filter(|_| random.below(2) == 0).collect::<Vec<u32>>();
            let boxes = judged.into_iter().map(|at| {
                let kind = VerdictKind::VARIANTS[1 + random.below(4)];
                (at, kind)
            });
            mark.boxes = boxes.collect();
            mark.note = (random.below(2) == 0).then(|| "Too DARK".into());
            mark.tags = vec!["Night".to_owned(); random.below(2)].into();
            request.marks.set(id, mark);
        }
    }
    request.disagreement = Some((0..800).map(|_| random.unit()).collect());
    request.similarity =
        Some((0..700).map(|at| if at % 9 == 0 { f32::NAN } else { 1.0 - at as f32 / 400.0 }).collect());
    request.predictions = Some(predictions);
    request.suppressed = Some(suppressed);
    request.view = view;
    World { request, given }
}

impl World {
    fn there(&self) -> Vec<SampleId> {
        let ids = (0..self.request.samples.len()).map(SampleId::from_index);
        ids.collect()
    }

    fn prediction(&self, id: SampleId) -> Option<&Prediction> {
        self.given[id.index()].as_ref()
    }

    fn name(&self, id: SampleId) -> &str {
        &self.request.samples.get(id.index()).unwrap().name
    }

    fn mark(&self, id: SampleId) -> Mark {
        self.request.marks.get(id)
    }

    fn best(&self, id: SampleId) -> Option<f32> {
        let prediction = self.prediction(id)?;
        let view = &self.request.view;
        let boxes = prediction.detections().iter();
        let confirmed = self.confirmed(id);
        let shown = boxes.zip(0..).filter(|(found, at)| view.shows_class(found.class_id) || confirmed.contains(at));
        let boxes = shown.map(|(found, _)| found.score);
        let classes = prediction.classes().iter().map(|class| class.score);
        boxes.chain(classes).reduce(f32::max)
    }

    /// Scores of visible boxes of classes with this name.
    fn shown(&self, id: SampleId, name: &str) -> Vec<f32> {
        let Some(prediction) = self.prediction(id) else {
            return Vec::new();
        };
        let visible = self.visible(id);
        let boxes = visible.iter().map(|at| &prediction.detections()[*at]);
        let of_class = boxes.filter(|found| NAMES[found.class_id as usize] == name);
        of_class.map(|found| found.score).collect()
    }

    fn boxes(&self, id: SampleId) -> Option<usize> {
        self.prediction(id)?;
        Some(self.visible(id).len())
    }

    fn visible(&self, id: SampleId) -> Vec<usize> {
        let confirmed = self.confirmed(id);
        let view = &self.request.view;
        self.prediction(id).map_or_else(Vec::new, |prediction| view.visible_detections(prediction, &confirmed))
    }

    fn confirmed(&self, id: SampleId) -> Vec<u32> {
        let mark = self.mark(id);
        let boxes = mark.boxes.iter().filter(|(_, kind)| kind.confirms());
        boxes.map(|(at, _)| *at).collect()
    }

    /// The verdict of the image, or the worst one if it or every visible box is judged.
    fn verdict(&self, id: SampleId) -> Option<VerdictKind> {
        let mark = self.mark(id);
        if self.prediction(id).is_none() {
            return mark.verdict;
        }
        let is_open = |at: &usize| !mark.boxes.iter().any(|(of, _)| *of as usize == *at);
        if mark.verdict.is_none() && self.visible(id).iter().any(is_open) {
            return None;
        }
        let kinds = mark.boxes.iter().map(|(_, kind)| *kind);
        kinds.chain(mark.verdict).max()
    }

    fn first_class(&self, id: SampleId) -> Option<&str> {
        let classes = self.request.view.visible_classes(self.prediction(id)?);
        classes.first().map(|class| NAMES[class.index as usize])
    }

    fn problem(&self, id: SampleId) -> bool {
        let failed = self.request.predictions.as_ref().unwrap().failure(id).is_some();
        failed || self.request.unreadable.contains(id)
    }

    fn arranged(&self, query: &str, sort: Sort) -> Arrangement {
        let request = ArrangeRequest { query: Query::parse(query).unwrap(), sort, ..self.request.clone() };
        arrange(&request, NEVER).unwrap()
    }

    fn check(&self, query: &str, is_wanted: impl Fn(SampleId) -> bool) {
        let got = self.arranged(query, Sort::default());
        let mut expected = self.there();
        expected.retain(|id| is_wanted(*id));
        assert_eq!(&got.order()[..], &expected, "{query}");
        assert!(!expected.is_empty(), "{query} finds nothing to compare");
        assert!(expected.len() < self.there().len(), "{query} finds everything");
    }
}

fn detector() -> World {
    world(
        ModelTask::Detection,
        ViewSettings {
            min_score: 0.4,
            min_score_by_class: [(1, 0.6)].into(),
            hidden_classes: [3].into(),
            nms_iou: Some(0.5),
            ..ViewSettings::default()
        },
    )
}

#[test]
fn query_equals_a_full_scan() {
    let world = detector();
    let cats = |id| world.shown(id, "cat");
    let best = |id| world.best(id);
    let boxes = |id| world.boxes(id);
    world.check("img_1", |id| world.name(id).contains("IMG_1"));
    world.check("!img_1", |id| !world.name(id).contains("IMG_1"));
    world.check("class:cat", |id| !cats(id).is_empty());
    world.check("class:\"traffic light\" or class:dog", |id| {
        !world.shown(id, "traffic light").is_empty() || !world.shown(id, "dog").is_empty()
    });
    world.check("class:cat class:dog", |id| !cats(id).is_empty() && !world.shown(id, "dog").is_empty());
    world.check("class:cat score>0.7", |id| cats(id).into_iter().any(|score| score > 0.7));
    world.check("class:cat boxes>=2", |id| cats(id).len() >= 2);
    world.check("class:cat boxes:0", |id| world.prediction(id).is_some() && cats(id).is_empty());
    world.check("class:* !class:cat", |id| boxes(id).is_some_and(|count| count > 0) && cats(id).is_empty());
    world.check("score:0.5..0.8", |id| best(id).is_some_and(|best| (0.5..=0.8).contains(&best)));
    world.check("score<0.4", |id| best(id).is_some_and(|best| best < 0.4));
    world.check("boxes:0", |id| boxes(id) == Some(0));
    world.check("boxes>1 boxes<4", |id| boxes(id).is_some_and(|count| (2..4).contains(&count)));
    world.check("!verdict", |id| world.verdict(id).is_none());
    world.check("verdict:reject", |id| world.mark(id).has(VerdictKind::Reject));
    world.check("tag:night", |id| !world.mark(id).tags.is_empty());
    world.check("note:dark", |id| world.mark(id).note.is_some());
    world.check("problem", |id| world.problem(id));
    world.check("damaged", |id| {
        let prediction = world.prediction(id);
        prediction.is_some_and(|prediction| !prediction.warnings.is_empty())
    });
    world.check("outdated", |id| id.0 % 7 == 3);
    world.check("!answered !problem", |id| world.prediction(id).is_none() && !world.problem(id));
    world.check("answered (verdict or tag) !(img_1 or img_2)", |id| {
        let mark = world.mark(id);
        let name = world.name(id);
        world.prediction(id).is_some()
            && (world.verdict(id).is_some() || !mark.tags.is_empty())
            && !name.contains("IMG_1")
            && !name.contains("IMG_2")
    });
}

#[test]
fn classifier_query_tests_the_top_class() {
    let world = world(ModelTask::Classification, ViewSettings { min_class_score: 0.5, ..ViewSettings::default() });
    world.check("class:cat", |id| world.first_class(id) == Some("cat"));
    world.check("class:cat score<0.5", |id| {
        let classes = world.prediction(id).map(Prediction::classes);
        let first = classes.and_then(<[ClassScore]>::first);
        first.is_some_and(|first| NAMES[first.index as usize] == "cat" && first.score < 0.5)
    });
    world.check("margin<0.1", |id| {
        let Some([first, rest @ ..]) = world.prediction(id).map(Prediction::classes) else {
            return false;
        };
        first.score - rest.first().map_or(0.0, |second| second.score) < 0.1
    });
}

#[test]
fn sorts_rank_then_break_ties_by_listing() {
    let world = detector();
    let order = |by| {
        let sort = |direction| world.arranged("", Sort { by, direction });
        let ascending = sort(Direction::Ascending).order().to_vec();
        (ascending, sort(Direction::Descending).order().to_vec())
    };
    let check = |by: SortBy, rank: &dyn Fn(SampleId) -> Option<f64>| {
        let (mut ranked, unranked): (Vec<_>, Vec<_>) = world.there().into_iter().partition(|id| rank(*id).is_some());
        let (ascending, descending) = order(by);
        ranked.sort_by(|left, right| rank(*left).partial_cmp(&rank(*right)).unwrap());
        assert_eq!(ascending, [ranked.clone(), unranked.clone()].concat(), "{by:?}");
        ranked.sort();
        ranked.sort_by(|left, right| rank(*right).partial_cmp(&rank(*left)).unwrap());
        assert_eq!(descending, [ranked, unranked].concat(), "{by:?}");
    };
    let sample = |id: SampleId| world.request.samples.get(id.index()).unwrap();
    check(SortBy::Listing, &|id| Some(f64::from(id.0)));
    check(SortBy::Date, &|id| sample(id).modified_ns.map(|ns| ns as f64));
    check(SortBy::Size, &|id| Some(sample(id).size_bytes as f64));
    check(SortBy::TopScore, &|id| world.best(id).map(f64::from));
    check(SortBy::Boxes, &|id| world.boxes(id).map(|count| count as f64));
    check(SortBy::Verdict, &|id| world.verdict(id).map(|kind| f64::from(kind as u32)));
    check(SortBy::Disagreement, &|id| {
        let all = world.request.disagreement.as_ref().unwrap();
        all.get(id.index()).map(|value| f64::from(*value))
    });
    check(SortBy::Similarity, &|id| {
        let all = world.request.similarity.as_ref().unwrap();
        all.get(id.index()).filter(|value| !value.is_nan()).map(|value| f64::from(*value))
    });
    check(SortBy::Uncertainty, &|id| {
        let prediction = world.prediction(id)?;
        let view = &world.request.view;
        let all =
            ViewSettings { min_score: 0.0, min_score_by_class: std::collections::BTreeMap::new(), ..view.clone() };
        let boxes = all.visible_detections(prediction, &[]);
        let distance = |at: usize| {
            let found = &prediction.detections()[at];
            (found.score - view.min_score_of(found.class_id)).abs()
        };
        let nearest = boxes.into_iter().map(distance).reduce(f32::min);
        nearest.map(|nearest| -f64::from(nearest))
    });
    let (by_name, _) = order(SortBy::Name);
    let name = |id: &SampleId| world.name(*id);
    assert!(by_name.is_sorted_by(|left, right| {
        alphanumeric_sort::compare_str(name(left), name(right)).then(left.cmp(right)).is_lt()
    }));
}

#[test]
fn filter_counts_equal_their_queries() {
    let world = detector();
    let counts = world.arranged("class:cat", Sort::default()).counts;
    let found = |query: &str| world.arranged(query, Sort::default()).order().len();
    assert_eq!(counts.all, found(""));
    assert_eq!(counts.predicted, found("answered"));
    assert_eq!(counts.problems, found("problem"));
    assert_eq!(counts.damaged, found("damaged"));
    assert!(counts.damaged > 10);
    assert_eq!(counts.outdated, found("outdated"));
    assert_eq!(counts.no_box, found("boxes:0"));
    assert_eq!(counts.unjudged, found("!verdict"));
    for &kind in VerdictKind::VARIANTS {
        let query = format!("verdict:{}", kind.into_str());
        assert_eq!(counts.with_verdict[kind as usize], found(&query), "{query}");
    }
    let judged: usize = counts.verdicts.iter().sum();
    assert_eq!(counts.unjudged + judged, counts.all, "each image once");
    assert!(counts.is_exact);
    let mut unknown = world.request.clone();
    unknown.suppressed = None;
    assert!(!arrange(&unknown, NEVER).unwrap().counts.is_exact);
}

#[test]
fn late_names_are_sorted_in() {
    let sort = Sort { by: SortBy::Name, direction: Direction::Ascending };
    let mut arranger = Arranger::default();
    let mut request = ArrangeRequest { sort, ..ArrangeRequest::default() };
    let mut names = |request: &ArrangeRequest| {
        let arrangement = arranger.arrange(request, NEVER).unwrap();
        let order = arrangement.order().iter();
        let name = |id: &SampleId| request.samples.get(id.index()).unwrap().name.clone();
        order.map(name).collect::<Vec<_>>()
    };
    for name in ["img10", "img9", "b"] {
        request.samples.push(sample(name, 1, None));
    }
    assert_eq!(names(&request), ["b", "img9", "img10"]);
    request.samples.push(sample("a", 1, None));
    request.samples.push(sample("img9b", 1, None));
    assert_eq!(names(&request), ["a", "b", "img9", "img9b", "img10"]);
    let other = ArrangeRequest {
        listing: 2,
        samples: [sample("z", 1, None), sample("y", 1, None)].into_iter().collect(),
        sort,
        ..ArrangeRequest::default()
    };
    assert_eq!(names(&other), ["y", "z"]);
}

#[test]
fn unread_exif_data_matches_no_search() {
    let capture = |year| {
        let taken = Some(jiff::civil::date(year, 5, 1).at(12, 30, 0, 0));
        Some(Arc::new(Capture { taken, ..Capture::default() }))
    };
    let captures = [None, capture(2024), Some(Arc::default()), capture(2023)];
    let samples = captures.map(|capture| Sample { capture, ..sample("a", 1, None) });
    let found = |query: &str, by| {
        let request = ArrangeRequest {
            samples: samples.iter().cloned().collect(),
            query: Query::parse(query).unwrap(),
            sort: Sort { by, direction: Direction::Ascending },
            ..ArrangeRequest::default()
        };
        arrange(&request, NEVER).unwrap().order().iter().map(|id| id.0).collect::<Vec<_>>()
    };
    for (query, expected) in [
        ("taken", &[1, 3][..]),
        ("!taken", &[2]),
        ("taken:2024-05", &[1]),
        ("taken<2024", &[3]),
        ("taken>2023", &[1]),
        ("taken<=2024-05-01T12:30", &[1, 3]),
        ("taken:..2023", &[3]),
        ("!camera !near", &[1, 2, 3]),
    ] {
        assert_eq!(found(query, SortBy::Listing), expected, "{query}");
    }
    assert_eq!(found("", SortBy::Taken), [3, 1, 0, 2]);
}

#[test]
fn images_are_sorted_by_camera_and_distance() {
    let capture = |camera: &str, location: Option<[f64; 2]>| {
        let location = location.map(|[latitude, longitude]| GeoPoint::new(latitude, longitude).unwrap());
        let camera = (!camera.is_empty()).then(|| camera.into());
        Some(Arc::new(Capture { camera, location, ..Capture::default() }))
    };
    let captures = [
        capture("NIKON D70", Some([49.0, 11.0])),
        capture("Canon EOS 6D", Some([48.0, 11.0])),
        None,
        capture("Canon EOS 5D", None),
        capture("", Some([48.0, 12.0])),
    ];
    let samples = captures.map(|capture| Sample { capture, ..sample("a", 1, None) });
    let order = |query: &str, by, direction| {
        let request = ArrangeRequest {
            samples: samples.iter().cloned().collect(),
            query: Query::parse(query).unwrap(),
            sort: Sort { by, direction },
            ..ArrangeRequest::default()
        };
        arrange(&request, NEVER).unwrap().order().iter().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(order("", SortBy::Camera, Direction::Ascending), [3, 1, 0, 2, 4]);
    assert_eq!(order("", SortBy::Camera, Direction::Descending), [0, 1, 3, 2, 4]);
    // One degree of longitude is shorter than one of latitude.
    assert_eq!(order("near:48,11~9000km", SortBy::Distance, Direction::Ascending), [1, 4, 0]);
    assert_eq!(order("near:48,11~80km or camera", SortBy::Distance, Direction::Ascending), [1, 4, 0, 3]);
    assert_eq!(order("", SortBy::Distance, Direction::Ascending), [0, 1, 2, 3, 4]);
}

#[test]
fn folders_count_the_images_inside() {
    let names = ["b/10/x", "b/9/x", "a-1/x", "x", "a/x", "b/9/y", "a/deep/er/x", "/x", "b//x"];
    let mut arranger = Arranger::default();
    let mut request = ArrangeRequest::default();
    let mut counted = |request: &ArrangeRequest| {
        let folders = arranger.arrange(request, NEVER).unwrap().folders;
        let counts = folders.tree.iter().zip(folders.counts.iter());
        counts.map(|(folder, counts)| (folder.path.to_string(), folder.depth, folder.end, counts.images)).collect()
    };
    let check = |counted: Vec<(String, usize, usize, u32)>, expected: &[(&str, usize, usize, u32)]| {
        let counted: Vec<_> =
            counted.iter().map(|(path, depth, end, images)| (path.as_str(), *depth, *end, *images)).collect();
        assert_eq!(counted, expected);
    };
    request.samples = names[..4].iter().map(|name| sample(name, 1, None)).collect();
    check(counted(&request), &[("", 0, 5, 4), ("a-1", 1, 2, 1), ("b", 1, 5, 2), ("b/9", 2, 4, 1), ("b/10", 2, 5, 1)]);
    for name in &names[4..] {
        request.samples.push(sample(name, 1, None));
    }
    check(
        counted(&request),
        &[
            ("", 0, 9, 9),
            ("a", 1, 4, 2),
            ("a/deep", 2, 4, 1),
            ("a/deep/er", 3, 4, 1),
            ("a-1", 1, 5, 1),
            ("b", 1, 9, 4),
            ("b/", 2, 7, 1),
            ("b/9", 2, 8, 2),
            ("b/10", 2, 9, 1),
        ],
    );
}

#[test]
fn ranks_invert_the_order() {
    let world = detector();
    let arrangement = world.arranged("class:cat", Sort { by: SortBy::Size, direction: Direction::Descending });
    for (place, id) in arrangement.order().iter().enumerate() {
        assert_eq!(arrangement.place_of(*id), Some(place));
    }
    let listed = (0..world.request.samples.len()).map(SampleId::from_index);
    let placed = listed.filter(|id| arrangement.place_of(*id).is_some());
    assert_eq!(placed.count(), arrangement.order().len());
    assert_eq!(arrangement.place_of(SampleId(9_999_999)), None);
}

#[test]
fn removed_item_yields_its_position() {
    let before = [4, 2, 7, 5].map(SampleId);
    let ids = |ids: &[u32]| ids.iter().copied().map(SampleId).collect();
    let now = Arrangement::new(ids(&[2, 5, 9]), 10);
    let at = |place: usize| before.get(place).copied();
    assert_eq!(now.place_after(&at, 2), 1, "after 2, where 5 is now");
    assert_eq!(now.place_after(&at, 0), 0);
    assert_eq!(now.place_after(&at, 4), 2);
}

#[test]
fn canceled_request_is_not_arranged() {
    assert!(arrange(&detector().request, &|| true).is_none());
}

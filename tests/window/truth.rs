//! Predictions against ground truth: true positives, kinds of errors, and missed objects.

use std::path::{Path, PathBuf};

use egui::Key;
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::domain::{Location, Verdict};
use spotcheck::review::{BoxQuery, Direction, FilmBox, OutcomeCounts, OutcomeKind, OutcomeWord, Sort, SortBy};
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, BrowseCommand, EvaluationCommand, OutputsCommand, Overlay, ReviewCommand, SearchCommand, TruthAt,
    ViewChange,
};

use crate::evaluating::click_exactly;
use crate::remote::{open_place, replace_in, serve, type_into};
use crate::support::alone::alone;
use crate::support::seaweed::Seaweed;
use crate::window::{
    click, open, open_in, predict_samples, samples, sees, text_field, wait_for, wait_for_overlay, wait_until,
    wait_until_idle,
};

const DETECTOR: &str = "ssd-mobilenet-coco";
const CLASSIFIER: &str = "efficientnet-lite0";
const FIELD: &str = "Ground-truth file";
const CLASS_MAP: &str = "Class corrections file";

/// Above a score of 0.5, the model shows a person in `astronaut.png`, a cat in `chelsea.png`, a cup and a dining table
/// in `coffee.png`, a person and a tie in `grace_hopper.jpg`, and nothing in `rocket.jpg`. This ground truth has the
/// person and the cup in the same positions, another class for the cat, no table, half of the other person, the tie
/// elsewhere, and a person in `rocket.jpg`.
pub(crate) fn truth_of_samples(folder: &Path) -> PathBuf {
    let images = ["astronaut.png", "chelsea.png", "coffee.png", "grace_hopper.jpg", "rocket.jpg"];
    let boxes = [
        (1, 1, [24, 8, 344, 483]),
        (2, 18, [0, 3, 404, 295]),
        (3, 47, [173, 21, 239, 228]),
        (4, 1, [200, 15, 310, 582]),
        (4, 32, [400, 100, 80, 120]),
        (5, 1, [10, 10, 50, 50]),
    ];
    let images: Vec<_> = (1..).zip(images).map(|(id, name)| serde_json::json!({"id": id, "file_name": name})).collect();
    let annotations = boxes.map(
        |(image, class, bounds)| serde_json::json!({"id": 1, "image_id": image, "category_id": class, "bbox": bounds}),
    );
    let annotations: Vec<_> = (1..)
        .zip(annotations)
        .map(|(id, mut one)| {
            one["id"] = id.into();
            one
        })
        .collect();
    let classes = [(1, "person"), (18, "dog"), (17, "cat"), (47, "cup"), (32, "tie"), (67, "dining table")];
    let categories: Vec<_> = classes.iter().map(|(id, name)| serde_json::json!({"id": id, "name": name})).collect();
    let truth = serde_json::json!({"images": images, "annotations": annotations, "categories": categories});
    let file = folder.join("truth.json");
    std::fs::write(&file, truth.to_string()).unwrap();
    file
}

pub(crate) fn open_truth(window: &mut Harness<'static, App>, truth: PathBuf) {
    window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(Location::Path(truth))));
    wait_for_evaluation(window);
}

#[track_caller]
fn wait_for_evaluation(window: &mut Harness<'static, App>) {
    wait_until(window, "the evaluation", |window| {
        let state = window.state().state();
        state.outcome_counts().is_some() && state.tasks.is_idle()
    });
}

/// The images found by a search, and the boxes of the filmstrip.
fn found(window: &mut Harness<'static, App>, query: &str) -> (Vec<String>, Vec<(String, FilmBox)>) {
    window.state_mut().command(SearchCommand::ShowBoxes(BoxQuery::default()));
    window.state_mut().command(SearchCommand::SetQuery(query.to_owned()));
    window.run_steps(2);
    wait_until(window, query, |window| {
        let state = window.state().state();
        let strip = state.filmstrip.as_ref().unwrap();
        !state.arranging.is_under_way() && !strip.is_under_way()
    });
    let state = window.state().state();
    assert!(state.query_warnings().is_empty() && state.arranging.error().is_none(), "{query}");
    let order = state.order();
    let name = |id| state.samples.get(id).unwrap().name.clone();
    let images = (0..order.len()).map(|place| name(order.at(place).unwrap())).collect();
    let frames = state.filmstrip.as_ref().unwrap().frames();
    (images, frames.iter().map(|frame| (name(frame.sample), frame.shows)).collect())
}

#[test]
fn ground_truth_outcomes_are_counted_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    open_truth(&mut window, truth_of_samples(folder.path()));
    // A path typed above the thumbnails is recognized like a dropped one.
    window.state_mut().command(EvaluationCommand::CloseTruth);
    window.state_mut().command(BrowseCommand::OpenTyped(folder.path().join("truth.json")));
    wait_until_idle(&mut window);
    assert_eq!(window.state().state().samples.len(), 8);
    let counts = window.state().state().outcome_counts().unwrap().clone();
    let all = counts.all();
    assert_eq!((counts.images, all.correct, all.wrong, all.false_negatives, counts.undetected), (5, 3, 3, 3, 2));
    let kinds = [OutcomeKind::Class, OutcomeKind::Both, OutcomeKind::Background, OutcomeKind::Location];
    assert_eq!(kinds.map(|kind| counts.kind(kind)), [1, 1, 1, 0]);

    let (images, frames) = found(&mut window, "fp");
    assert_eq!(images, ["chelsea.png", "coffee.png", "grace_hopper.jpg"]);
    assert_eq!(frames.len(), 3);
    let (images, frames) = found(&mut window, "fn");
    assert_eq!(images, ["chelsea.png", "grace_hopper.jpg", "rocket.jpg"]);
    assert_eq!(frames.len(), 3);
    assert!(frames.iter().all(|(_, shows)| matches!(shows, FilmBox::FalseNegative(_))));
    assert_eq!(found(&mut window, "error:missed").0, ["grace_hopper.jpg", "rocket.jpg"]);
    assert_eq!(found(&mut window, "fn truth:person").0, ["rocket.jpg"]);
    assert_eq!(found(&mut window, "tp iou<0.7").0, ["grace_hopper.jpg"]);
    assert_eq!(found(&mut window, "tp iou<0.7").1.len(), 1);
    let (images, frames) = found(&mut window, "class:cat truth:dog error:class");
    assert_eq!(
        (images, frames),
        (vec!["chelsea.png".to_owned()], vec![("chelsea.png".to_owned(), FilmBox::Predicted(0))])
    );
    assert_eq!(found(&mut window, "error:both").0, ["coffee.png"]);
    assert_eq!(found(&mut window, "error:background class:tie").0, ["grace_hopper.jpg"]);
    assert_eq!(found(&mut window, "truth:person").0, ["astronaut.png", "grace_hopper.jpg", "rocket.jpg"]);
    assert_eq!(found(&mut window, "tp class:person score>0.7").0, ["grace_hopper.jpg"]);
    assert_eq!(found(&mut window, "!fp truth:*").0, ["astronaut.png", "rocket.jpg"]);

    window.state_mut().command(SearchCommand::SetQuery(String::new()));
    wait_for(&mut window, "FP 3");
    assert!(sees(&window, "FN 3") && sees(&window, "TP 3"));
    window.state_mut().command(ReviewCommand::ChangeView(ViewChange::MinScore(0.65)));
    wait_until(&mut window, "the tie to go", |window| {
        let counts = window.state().state().outcome_counts().unwrap();
        counts.all().wrong == 2 && counts.all().false_negatives == 3
    });
    let first = |window: &mut Harness<'static, App>, by| {
        window.state_mut().command(SearchCommand::SetSort(Sort { by, direction: Direction::Descending }));
        window.run_steps(2);
        wait_until(window, "the order", |window| !window.state().state().arranging.is_under_way());
        let state = window.state().state();
        state.samples.get(state.order().at(0).unwrap()).unwrap().name.clone()
    };
    assert_eq!(first(&mut window, SortBy::ConfidentError), "chelsea.png");
    assert_eq!(first(&mut window, SortBy::Errors), "chelsea.png");
    assert_eq!(first(&mut window, SortBy::Missed), "chelsea.png");
    click(&mut window, "chelsea.png, ");
    wait_for(&mut window, "ground truth (1)");
    wait_for(&mut window, "negatives (1)");
}

#[test]
fn wrong_class_shows_the_correct_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    open_truth(&mut window, truth_of_samples(folder.path()));
    click(&mut window, "chelsea.png, ");
    // In the list, with the object that was missed for this reason.
    wait_for(&mut window, "cat, is dog · FP");
    wait_for(&mut window, "dog · FN");
    window.state_mut().command(SearchCommand::ShowBoxes(OutcomeWord::Error(OutcomeKind::Class).into()));
    wait_for(&mut window, "% cat, is dog, chelsea.png");
    wait_until(&mut window, "the search", |window| !window.state().state().arranging.is_searching());
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.state_mut().command(Action::WrongClass);
    wait_for_overlay(&mut window, Overlay::WrongClass);
    let labels = window.query_all_by_role(Role::Button).filter_map(|node| node.accesskit_node().label());
    let classes = window.state().state().run().unwrap().labels().clone();
    let first = labels.into_iter().find(|label| classes.iter().any(|(_, class)| class == label));
    assert_eq!(first.as_deref(), Some("dog"));
}

#[test]
fn classifier_top_class_is_correct_or_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("truth.csv");
    std::fs::write(&truth, "image,class\nchelsea.png,tiger cat\ncoffee.png,espresso\nrocket.jpg,tabby\n").unwrap();
    let mut window = open(Some(&samples()), CLASSIFIER);
    predict_samples(&mut window);
    open_truth(&mut window, truth);
    let all = window.state().state().outcome_counts().unwrap().all();
    assert_eq!(all.correct + all.wrong, 3, "{all:?}");
    // An image with a wrong class would be a false positive and a false negative.
    let buttons = window.query_all_by_role(Role::Button).filter_map(|node| node.accesskit_node().label());
    let buttons: Vec<String> = buttons.collect();
    for (chip, is_there) in [("Incorrect ", true), ("Correct ", true), ("FP ", false), ("FN ", false), ("TP ", false)] {
        assert_eq!(buttons.iter().any(|name| name.starts_with(chip)), is_there, "{chip}: {buttons:?}");
    }
    assert_eq!(found(&mut window, "fn truth:tabby").0, ["rocket.jpg"]);
    assert_eq!(found(&mut window, "tp truth:\"tiger cat\"").0, ["chelsea.png"]);
    click(&mut window, "chelsea.png, ");
    wait_for(&mut window, "tiger cat (top class");
}

#[test]
fn project_keeps_ground_truth_and_corrections() {
    let folder = tempfile::tempdir().unwrap();
    let truth = truth_of_samples(folder.path());
    let text = std::fs::read_to_string(&truth).unwrap().replace("\"cup\"", "\"mug\"");
    std::fs::write(&truth, text).unwrap();
    let projects = folder.path().join("projects");
    let mut window = open_in(&projects, Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    open_truth(&mut window, truth);
    let correct =
        |window: &Harness<'static, App>| window.state().state().outcome_counts().map(|counts| counts.all().correct);
    assert_eq!(correct(&window), Some(2), "no mugs yet");
    window.state_mut().command(EvaluationCommand::CorrectClass { from: "cup".to_owned(), to: "mug".to_owned() });
    wait_until(&mut window, "the corrected numbers", |window| correct(window) == Some(3));
    drop(window);
    let mut window = open_in(&projects, Some(&samples()), DETECTOR);
    wait_until(&mut window, "the kept correction", |window| correct(window) == Some(3));
}

#[test]
fn ground_truth_opens_from_s3() {
    let mut plane = None;
    alone("truth::ground_truth_opens_from_s3", serve(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-truth");
        for name in ["chelsea.png", "coffee.png"] {
            bucket.put(&format!("photos/{name}"), &std::fs::read(samples().join(name)).unwrap());
        }
        bucket.put("truth.csv", b"image,class\nchelsea.png,tiger cat\ncoffee.png,tabby\n");
        let mut window = open_place(&bucket, 2);
        click(&mut window, "Predict all");
        wait_for(&mut window, "2 predicted");
        click(&mut window, "Evaluate");
        click(&mut window, "Open ground truth…");
        type_into(&mut window, FIELD, &bucket.uri("none.csv"));
        wait_for(&mut window, "Sign in with");
        click(&mut window, "Server and region");
        wait_for(&mut window, "Server address");
        window.key_press(Key::Enter);
        wait_for(&mut window, "does not exist");
        assert!(!sees(&window, "Sign in with"), "the dialog stays open");
        click(&mut window, "Open ground truth…");
        replace_in(&mut window, FIELD, &bucket.uri("truth.csv"));
        click_exactly(&mut window, "Open");
        wait_for_evaluation(&mut window);
        let state = window.state().state();
        let all = state.outcome_counts().unwrap().all();
        assert_eq!((all.correct, all.wrong), (1, 1), "{all:?}");
        let kept = &state.evaluating.as_ref().unwrap().at;
        let TruthAt::Files(Location::S3(place)) = kept else { panic!("{kept:?}") };
        assert_eq!(place.address.to_string(), bucket.uri("truth.csv"));
    });
}

#[test]
fn class_corrections_are_read_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let truth = truth_of_samples(folder.path());
    let text = std::fs::read_to_string(&truth).unwrap().replace("\"cup\"", "\"mug\"");
    std::fs::write(&truth, text).unwrap();
    let map = folder.path().join("classes.csv");
    std::fs::write(&map, "from,to\ncup,jug\n").unwrap();
    let projects = folder.path().join("projects");
    let mut window = open_in(&projects, Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    window.state_mut().command(Action::OpenTruth);
    wait_for(&mut window, "Class corrections");
    type_into(&mut window, FIELD, truth.to_str().unwrap());
    type_into(&mut window, CLASS_MAP, map.to_str().unwrap());
    click_exactly(&mut window, "Open");
    wait_for(&mut window, "classes.csv: line 2");
    wait_for(&mut window, "class “jug”");
    assert!(window.state().state().outcome_counts().is_none());
    std::fs::write(&map, "from,to\ncup,mug\nunicorn,cat\n").unwrap();
    click(&mut window, "Read again");
    wait_for_evaluation(&mut window);
    let correct =
        |window: &Harness<'static, App>| window.state().state().outcome_counts().map(|counts| counts.all().correct);
    assert_eq!(correct(&window), Some(3));
    click(&mut window, "Class matching");
    wait_for(&mut window, ": unicorn");
    wait_until(&mut window, "the project", |window| window.state().state().project.unsaved() == 0);
    drop(window);
    std::fs::remove_file(map).unwrap();
    let mut window = open_in(&projects, Some(&samples()), DETECTOR);
    wait_until(&mut window, "the kept correction", |window| correct(window) == Some(3));
}

#[test]
fn relative_ground_truth_path_is_made_absolute() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let truth = truth_of_samples(folder.path());
    let relative = Path::new(folder.path().file_name().unwrap()).join("truth.json");
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    open_truth(&mut window, relative);
    let kept = &window.state().state().evaluating.as_ref().unwrap().at;
    assert_eq!(*kept, TruthAt::Files(Location::Path(std::path::absolute(truth).unwrap())));
}

#[test]
fn broken_ground_truth_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("cut.json");
    std::fs::write(&broken, r#"{"images": [{"id": 1, "file_name": "coffee.png"}], "annotations": [{"id": 1,"#).unwrap();
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(Location::Path(broken))));
    wait_until(&mut window, "the failure", |window| {
        let evaluating = window.state().state().evaluating.as_ref();
        evaluating.is_some_and(|evaluating| evaluating.truth.failure().is_some())
    });
    open_truth(&mut window, truth_of_samples(folder.path()));
    assert_eq!(window.state().state().opened_truth().unwrap().images.matched, 5);
}

#[test]
fn comparison_shows_improved_and_worse_images() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    let first = window.state().state().run().unwrap().id();
    open_truth(&mut window, truth_of_samples(folder.path()));
    // The dog is found now and the person in the first image no longer; the last box of each other image is hidden.
    let results = serde_json::json!([
        {"image_id": 2, "category_id": 18, "bbox": [0, 3, 404, 295], "score": 0.9},
        {"image_id": 1, "category_id": 1, "bbox": [24, 8, 344, 483], "score": 0.01},
        {"image_id": 3, "category_id": 47, "bbox": [173, 21, 239, 228], "score": 0.9},
        {"image_id": 4, "category_id": 1, "bbox": [5, 15, 500, 580], "score": 0.9},
        {"image_id": 5, "category_id": 1, "bbox": [10, 10, 50, 50], "score": 0.01},
    ]);
    let file = folder.path().join("results.json");
    std::fs::write(&file, results.to_string()).unwrap();
    window.state_mut().command(OutputsCommand::OpenPredictions(Location::Path(file).into()));
    wait_until(&mut window, "the second run, evaluated", |window| {
        let state = window.state().state();
        state.run().unwrap().id() != first && state.outcome_counts().is_some() && state.tasks.is_idle()
    });
    window.state_mut().command(ReviewCommand::ChangeView(ViewChange::MinScore(0.5)));
    window.state_mut().command(ReviewCommand::Compare(first));
    wait_for(&mut window, "Better 3");
    assert!(sees(&window, "Worse 1"));
    assert_eq!(found(&mut window, "worse").0, ["astronaut.png"]);
    let mut better = found(&mut window, "better").0;
    better.sort();
    assert_eq!(better, ["chelsea.png", "coffee.png", "grace_hopper.jpg"]);
    for (word, by_errors) in [("fixed", "better !fp !fn"), ("regressed", "worse")] {
        let images = |window: &mut Harness<'static, App>, query: &str| {
            let mut images = found(window, query).0;
            images.sort();
            images
        };
        let of_word = images(&mut window, word);
        let expected = images(&mut window, by_errors);
        assert!(of_word == expected || word == "regressed" && of_word.is_empty(), "{word}: {of_word:?}");
        assert!(word == "regressed" || !of_word.is_empty());
    }
    let fixed = window.state().state().arranging.counts().unwrap().fixed;
    click(&mut window, &format!("Fixed: errors only in B, {fixed} image"));
    wait_until_idle(&mut window);
    let state = window.state().state();
    assert_eq!((state.arranging.text(), state.order().len()), ("fixed", fixed));
    assert!(state.shows_comparison(), "the page stays");
    click(&mut window, &format!("Fixed: errors only in B, {fixed} image"));
    wait_until_idle(&mut window);
    assert_eq!(window.state().state().arranging.text(), "");
    let state = window.state().state();
    let (_, other) = state.other_evaluated().unwrap();
    assert_eq!(
        (state.arranging.counts().unwrap().outcomes).map(|all| (all.correct, all.wrong, all.false_negatives)),
        [(3, 0, 3), (3, 3, 3)]
    );
    let (one, same) =
        (state.evaluated().unwrap(), other.outcomes.has_same_images(&state.evaluated().unwrap().outcomes));
    assert!(same && one.drawn[1].difference(&other.drawn[1]).is_some());
}

#[test]
fn verdicts_folders_and_names_are_ground_truth() {
    let mut window = open(Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    click(&mut window, "coffee.png, ");
    wait_for(&mut window, "cup ");
    window.state_mut().command(ReviewCommand::SetVerdict(Some(Verdict::Accept)));
    window.run_steps(2);
    window.state_mut().command(Action::TruthOfVerdicts);
    wait_until(&mut window, "the verdicts", |window| {
        let state = window.state().state();
        state.outcome_counts().is_some_and(|counts| counts.images == 1) && state.tasks.is_idle()
    });
    let all = window.state().state().outcome_counts().unwrap().all();
    assert_eq!((all.correct, all.wrong, all.false_negatives), (2, 0, 0), "the accepted boxes");
    assert!(!window.state().state().evaluation_is_outdated());
    window.state_mut().command(ReviewCommand::SetVerdict(Some(Verdict::Reject)));
    window.state_mut().command(EvaluationCommand::ShowPanel(true));
    wait_for(&mut window, "Evaluate again");
    window.state_mut().command(ReviewCommand::SetVerdict(Some(Verdict::Accept)));
    click(&mut window, "Evaluate again");
    wait_until(&mut window, "the verdicts again", |window| {
        !window.state().state().evaluation_is_outdated() && window.state().state().tasks.is_idle()
    });

    let folder = tempfile::tempdir().unwrap();
    for (class, image) in [("tiger cat", "chelsea.png"), ("espresso", "rocket.jpg")] {
        let of_class = folder.path().join(class);
        std::fs::create_dir(&of_class).unwrap();
        let name = format!("7_{}.{}", class.replace(' ', "-"), image.rsplit('.').next().unwrap());
        std::fs::copy(samples().join(image), of_class.join(name)).unwrap();
    }
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "2 predicted");
    window.state_mut().command(Action::TruthOfImages);
    let is_measured = |window: &Harness<'static, App>| {
        let state = window.state().state();
        let all = state.outcome_counts().map(OutcomeCounts::all);
        all.is_some_and(|all| (all.correct, all.false_negatives) == (1, 1)) && state.tasks.is_idle()
    };
    wait_until(&mut window, "the folders", is_measured);
    window.state_mut().command(EvaluationCommand::CloseTruth);
    window.run_steps(2);
    assert!(window.state().state().outcome_counts().is_none());
    window.state_mut().command(Action::OpenTruth);
    window.run_steps(2);
    type_into(&mut window, FIELD, "*_{class}");
    for named in ["class “tiger-cat”", "class “espresso”"] {
        wait_for(&mut window, named);
    }
    window.key_press(Key::Enter);
    wait_until(&mut window, "the names", is_measured);
}

/// Writes YOLO labels for three images: the boxes that the detector finds, with classes in the order of COCO's 80.
fn write_labels(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for (name, class, [left, top, width, height], [columns, rows]) in [
        ("astronaut", 0, [24.0, 8.0, 344.0, 483.0], [512.0, 512.0]),
        ("chelsea", 15, [0.0, 3.0, 404.0, 295.0], [451.0, 300.0]),
        ("coffee", 41, [173.0, 21.0, 239.0, 228.0], [600.0, 400.0]),
    ] {
        let [x, y]: [f64; 2] = [(left + width / 2.0) / columns, (top + height / 2.0) / rows];
        let label = format!("{class} {x} {y} {} {}\n", width / columns, height / rows);
        std::fs::write(folder.join(format!("{name}.txt")), label).unwrap();
    }
}

#[test]
fn classes_without_names_raise_a_question() {
    let folder = tempfile::tempdir().unwrap();
    write_labels(folder.path());
    let mut window = open(Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    open_truth(&mut window, folder.path().to_owned());
    let correct =
        |window: &Harness<'static, App>| window.state().state().outcome_counts().map(|counts| counts.all().correct);
    let unnamed = "no class names";
    wait_for(&mut window, unnamed);
    assert_eq!(correct(&window), Some(0));
    click(&mut window, "classes in order");
    wait_until(&mut window, "the numbers with names", |window| correct(window) == Some(3));
    wait_until_idle(&mut window);
    assert_eq!(window.state().state().opened_truth().unwrap().images.matched, 3);
    assert!(sees(&window, "3 of 3 images") && sees(&window, "3 of 3 classes"));
    assert!(!sees(&window, unnamed));
    window.state_mut().command(EvaluationCommand::CloseTruth);
    window.state_mut().command(Action::OpenTruth);
    wait_for(&mut window, "Class names");
    replace_in(&mut window, FIELD, folder.path().to_str().unwrap());
    click(&mut window, "Ground-truth class names");
    window.run_steps(3);
    click(&mut window, "COCO (80)");
    click_exactly(&mut window, "Open");
    wait_for_evaluation(&mut window);
    assert_eq!(correct(&window), Some(3));
}

#[test]
fn data_set_split_is_shown_and_chosen() {
    let folder = tempfile::tempdir().unwrap();
    write_labels(&folder.path().join("labels/val"));
    std::fs::create_dir_all(folder.path().join("labels/train")).unwrap();
    let (from, to) = ("labels/val/coffee.txt", "labels/train/coffee.txt");
    std::fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
    let names: Vec<String> = (0..80).map(|number| format!("  {number}: {}\n", coco_name(number))).collect();
    let yaml = format!("train: images/train\nval: images/val\nnames:\n{}", names.concat());
    std::fs::write(folder.path().join("data.yaml"), yaml).unwrap();
    let mut window = open(Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    open_truth(&mut window, folder.path().join("data.yaml"));
    let images = |window: &Harness<'static, App>| {
        let state = window.state().state();
        state.outcome_counts().filter(|_| state.tasks.is_idle()).map(|counts| (counts.images, counts.all().correct))
    };
    assert_eq!(images(&window), Some((2, 2)));
    click(&mut window, "Ground-truth split: val");
    window.run_steps(3);
    click_exactly(&mut window, "train");
    wait_until(&mut window, "the other split", |window| images(window) == Some((1, 1)));
    wait_for(&mut window, "Ground-truth split: train");
}

/// The names needed by the test.
fn coco_name(number: u32) -> String {
    match number {
        0 => "person".to_owned(),
        15 => "cat".to_owned(),
        41 => "cup".to_owned(),
        other => format!("thing {other}"),
    }
}

#[test]
fn resized_ground_truth_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let truth = truth_of_samples(folder.path());
    let mut sized: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&truth).unwrap()).unwrap();
    for image in sized["images"].as_array_mut().unwrap() {
        (image["width"], image["height"]) = (1000.into(), 900.into());
    }
    std::fs::write(&truth, sized.to_string()).unwrap();
    let mut window = open(Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(Location::Path(truth))));
    for fact in ["astronaut.png", "1000 × 900", "512 × 512"] {
        wait_for(&mut window, fact);
    }
    assert!(window.state().state().outcome_counts().is_none());
}

#[test]
fn ground_truth_survives_a_failed_change() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(Some(&samples()), DETECTOR);
    predict_samples(&mut window);
    open_truth(&mut window, truth_of_samples(folder.path()));
    let missing = TruthAt::Files(Location::Path(folder.path().join("missing.json")));
    window.state_mut().command(EvaluationCommand::open_truth(missing));
    wait_for(&mut window, "missing.json");
    wait_for_evaluation(&mut window);
    assert_eq!(window.state().state().outcome_counts().unwrap().images, 5);
}

#[test]
fn dialog_selects_its_previous_text() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    for text in ["one.json", "two.json"] {
        window.state_mut().command(Action::OpenTruth);
        wait_for(&mut window, FIELD);
        window.run_steps(3);
        window.event(egui::Event::Text(text.to_owned()));
        window.run_steps(2);
        let field = text_field(&window, FIELD);
        assert_eq!(field.accesskit_node().value().as_deref(), Some(text));
        window.key_press(Key::Escape);
        window.run_steps(3);
    }
}

//! Groups of duplicates next to each other, tags for copies, and sort orders by embedding.

use std::path::Path;

use egui_kittest::Harness;
use spotcheck::domain::SampleId;
use spotcheck::review::{Direction, Sort, SortBy};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, DuplicateOptions, SearchCommand};

use crate::window::{click, descriptions, open, samples, sees, wait_for, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";

/// The sample images, a copy of one, a small version of another, a mirrored one, and a crop.
pub(crate) fn with_copies(folder: &Path) {
    for entry in std::fs::read_dir(samples()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension != "md") {
            std::fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
    }
    let open = |name: &str| image::open(samples().join(name)).unwrap();
    std::fs::copy(samples().join("china.jpg"), folder.join("copy of china.jpg")).unwrap();
    let chelsea = open("chelsea.png");
    // Without its borders, so that the hashes differ in a few bits.
    let inner = chelsea.crop_imm(8, 8, chelsea.width() - 16, chelsea.height() - 16);
    inner.resize(150, 100, image::imageops::FilterType::Triangle).save(folder.join("small cat.jpg")).unwrap();
    open("rocket.jpg").fliph().to_rgb8().save(folder.join("turned rocket.jpg")).unwrap();
    chelsea.crop_imm(60, 30, 330, 240).to_rgb8().save(folder.join("z crop of cat.jpg")).unwrap();
}

fn names(window: &Harness<'static, App>) -> Vec<String> {
    let state = window.state().state();
    state.order().ids().filter_map(|id| state.samples.get(id)).map(|entry| entry.name.clone()).collect()
}

fn wait_for_names(window: &mut Harness<'static, App>, what: &str, expected: &[&str]) {
    wait_until(window, what, |window| names(window) == expected);
}

#[test]
fn duplicates_are_grouped_tagged_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    with_copies(folder.path());
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "12 images");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::FindDuplicates);
    let grouped = ["chelsea.png", "small cat.jpg", "china.jpg", "copy of china.jpg", "rocket.jpg", "turned rocket.jpg"];
    wait_for_names(&mut window, "three groups", &grouped);
    wait_for(&mut window, "3 groups with 3 copies: 1 exact, 2 near");
    wait_for(&mut window, "group 3: near, mirrored");
    let set = |window: &mut Harness<'static, App>, options| {
        window.state_mut().command(BrowseCommand::SetDuplicateOptions(options));
    };
    set(&mut window, DuplicateOptions { distance: 0, above: 0.95 });
    wait_for_names(&mut window, "no near copy with other bits", &grouped[2..]);
    set(&mut window, DuplicateOptions::default());
    wait_for_names(&mut window, "the groups again", &grouped);
    click(&mut window, Action::TagDuplicates.label());
    wait_until(&mut window, "tags", |window| {
        let state = window.state().state();
        let tagged = |id: SampleId| !state.judgments.tags(id).is_empty();
        state.order().ids().map(tagged).collect::<Vec<_>>() == [false, true, false, true, false, true]
    });
    window.state_mut().command(Action::Undo);
    wait_until(&mut window, "no tags", |window| window.state().state().judgments.known_tags().next().is_none());
    window.state_mut().command(Action::Redo);
    window.state_mut().command(SearchCommand::SetQuery("tag:duplicate".to_owned()));
    wait_for(&mut window, "3 of 12 images");
    window.state_mut().command(SearchCommand::SetQuery("!copy".to_owned()));
    wait_for(&mut window, "9 of 12 images");
    click(&mut window, "Done");
    wait_until(&mut window, "all images", |window| names(window).len() == 12);
    assert_eq!(window.state().state().arranging.sort(), Sort::default());
    assert!(folder.path().join("copy of china.jpg").exists());
}

#[test]
fn embeddings_add_alike_images_and_sort_orders() {
    let folder = tempfile::tempdir().unwrap();
    with_copies(folder.path());
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "12 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::FindDuplicates);
    wait_for(&mut window, "Alike by efficientnet-lite0");
    let options = DuplicateOptions { above: 0.7, ..DuplicateOptions::default() };
    window.state_mut().command(BrowseCommand::SetDuplicateOptions(options));
    wait_until(&mut window, "the crop", |window| names(window).contains(&"z crop of cat.jpg".to_owned()));
    wait_for(&mut window, "group 1: alike");
    assert_eq!(names(&window)[..3], ["chelsea.png", "small cat.jpg", "z crop of cat.jpg"]);
    let is_described = |window: &mut Harness<'static, App>, label: &str, parts: &[&str]| {
        wait_until(window, label, |window| {
            let described = descriptions(window, label);
            parts.iter().all(|part| described.contains(part))
        });
    };
    is_described(&mut window, "z crop of cat.jpg", &["pHash", "0.91", "6 bits", "cosine", "0.70", CLASSIFIER]);
    for (by, sign, metric) in [
        (SortBy::Uniqueness, "uniqueness", "cosine"),
        (SortBy::Outlier, "outlier score", "cosine"),
        (SortBy::Representativeness, "representativeness", "Euclidean"),
    ] {
        window.state_mut().command(SearchCommand::SetQuery(String::new()));
        window.state_mut().command(SearchCommand::SetSort(Sort { by, direction: by.default_direction() }));
        wait_for(&mut window, &format!("{sign} "));
        wait_until(&mut window, "all images", |window| {
            names(window).len() == 12 && !window.state().state().arranging.is_under_way()
        });
        assert!(!sees(&window, "groups with"), "{by:?}");
        is_described(&mut window, &format!("{sign} "), &[metric, CLASSIFIER, "/Reshape_output_0"]);
        is_described(&mut window, "Sort: ", &[metric, CLASSIFIER, "/Reshape_output_0"]);
    }
    // The copies are the least unique images.
    window
        .state_mut()
        .command(SearchCommand::SetSort(Sort { by: SortBy::Uniqueness, direction: Direction::Ascending }));
    wait_until(&mut window, "copies first", |window| {
        let is_copied = |name: &String| ["cat", "chelsea", "china", "rocket"].iter().any(|part| name.contains(part));
        names(window)[..7].iter().all(is_copied)
    });
}

#[test]
fn later_predictions_are_compared_too() {
    let folder = tempfile::tempdir().unwrap();
    with_copies(folder.path());
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    wait_until_idle(&mut window);
    let options = DuplicateOptions { above: 0.7, ..DuplicateOptions::default() };
    window.state_mut().command(BrowseCommand::SetDuplicateOptions(options));
    wait_for(&mut window, "3 groups with 3 copies");
    window.state_mut().command(SearchCommand::SetQuery(String::new()));
    let by = SortBy::Uniqueness;
    window.state_mut().command(SearchCommand::SetSort(Sort { by, direction: by.default_direction() }));
    wait_for(&mut window, "uniqueness 1.00");
    click(&mut window, "Predict all");
    wait_for(&mut window, "12 predicted");
    wait_for(&mut window, "china.jpg, uniqueness 0.");
    window.state_mut().command(Action::FindDuplicates);
    wait_until(&mut window, "the crop", |window| names(window).contains(&"z crop of cat.jpg".to_owned()));
}

#[test]
fn folder_without_duplicates_stays_as_it_is() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::FindDuplicates);
    wait_for(&mut window, "No duplicates found");
    assert_eq!((names(&window).len(), window.state().state().arranging.text()), (8, ""));
}

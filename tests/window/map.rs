//! The map of embeddings: points to hover, click and draw around, and clusters to select without a pointer.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::alike::MapView;
use spotcheck::dirs::AppDirs;
use spotcheck::domain::SampleId;
use spotcheck::review::{GroupBy, MapRow};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, MapCommand, MapLayout, MapStage, SearchCommand};

use crate::window::{
    click, combo_box, home_with_runtime, open, open_with_model_at, predict_samples, samples, sees, wait_for,
    wait_until, wait_until_idle,
};

const CLASSIFIER: &str = "efficientnet-lite0";
/// The margin around the points.
const MARGIN: f32 = 24.0;

/// All samples are predicted, and the map is finished.
fn mapped() -> Harness<'static, App> {
    let mut window = open(Some(&samples()), CLASSIFIER);
    predict_samples(&mut window);
    window.state_mut().command(Action::Map);
    wait_until(&mut window, "the map", |window| {
        let state = window.state().state();
        state.map_groups().is_some() && layout(window).is_some_and(|layout| layout.stage == MapStage::Finished)
    });
    wait_until_idle(&mut window);
    window
}

fn layout(window: &Harness<'static, App>) -> Option<MapLayout> {
    window.state().state().map_layout().cloned()
}

fn selected(window: &Harness<'static, App>) -> Vec<SampleId> {
    window.state().state().selection.selected().iter().collect()
}

fn on_screen(window: &Harness<'static, App>) -> usize {
    window.state().state().order().len()
}

/// Where each image is on screen.
fn places(window: &Harness<'static, App>) -> Vec<(SampleId, egui::Pos2)> {
    let layout = layout(window).unwrap();
    let rect = window.get_by_label_contains("Map of 8 images").rect();
    let size = [rect.width() as usize, rect.height() as usize];
    let view = MapView::fitting(&layout.points, size, MARGIN);
    let place = |point| egui::Pos2::from(view.pixel(point)) + rect.min.to_vec2();
    layout.rows.iter().map(|row| row.sample).zip(layout.points.iter().map(|point| place(*point))).collect()
}

fn draw_around(window: &mut Harness<'static, App>, corners: &[egui::Pos2]) {
    window.drag_at(corners[0]);
    window.step();
    for corner in &corners[1..] {
        window.hover_at(*corner);
        window.step();
    }
    window.drop_at(corners[corners.len() - 1]);
    window.run_steps(2);
}

#[test]
fn map_places_all_images_and_selects_by_line_and_click() {
    let mut window = mapped();
    let layout = layout(&window).unwrap();
    assert_eq!((layout.rows.len(), layout.without), (8, 0));
    assert!(layout.encoder.contains(CLASSIFIER), "{}", layout.encoder);
    let places = places(&window);
    let (sample, at) = places[3];
    window.hover_at(at);
    window.step();
    window.drag_at(at);
    window.drop_at(at);
    wait_until(&mut window, "the image under the pointer", |window| selected(window) == [sample]);
    assert!(window.state().state().map.is_shown);
    // Around the first three in their order on screen, from left to right.
    let mut across: Vec<f32> = places.iter().map(|(_, at)| at.x).collect();
    across.sort_by(f32::total_cmp);
    let edge = f32::midpoint(across[2], across[3]);
    let rect = window.get_by_label_contains("Map of 8 images").rect();
    let corner = |x: f32, y: f32| egui::pos2(x, y);
    let (top, bottom, left) = (rect.top() + 2.0, rect.bottom() - 2.0, rect.left() + 2.0);
    let line = [corner(left, top), corner(edge, top), corner(edge, bottom), corner(left, bottom)];
    draw_around(&mut window, &line);
    let mut expected: Vec<SampleId> = places.iter().filter(|(_, at)| at.x < edge).map(|(sample, _)| *sample).collect();
    expected.sort();
    assert_eq!(selected(&window), expected);
    click(&mut window, "Show only these");
    wait_until(&mut window, "the selected images", |window| on_screen(window) == 3);
    assert_eq!(window.state().state().arranging.text(), "picked");
    click(&mut window, "Show all");
    wait_until(&mut window, "all images", |window| on_screen(window) == 8);
}

/// The entries of finished maps in the cache below `folder`.
fn kept_maps(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let of_entry = |path: PathBuf| if path.is_dir() { kept_maps(&path) } else { vec![path] };
    let is_map = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "map");
    entries.flat_map(of_entry).filter(is_map).collect()
}

/// Opens these images with their project, and shows the finished map.
fn map_of(home: &Path, images: &Path) -> MapLayout {
    let mut window = open_with_model_at(AppDirs::below(home), CLASSIFIER);
    window.state_mut().command(BrowseCommand::Open(images.to_owned()));
    wait_for(&mut window, "predicted");
    wait_until_idle(&mut window);
    if window.state().state().run().unwrap().predictions.predicted() < window.state().state().samples.len() {
        click(&mut window, "Predict all");
        wait_until_idle(&mut window);
    }
    wait_for(&mut window, "All saved");
    window.state_mut().command(Action::Map);
    let is_finished = |layout: MapLayout| layout.stage == MapStage::Finished;
    wait_until(&mut window, "the map", |window| layout(window).is_some_and(is_finished));
    wait_until_idle(&mut window);
    layout(&window).unwrap()
}

#[test]
fn finished_map_is_kept_until_embeddings_change() {
    let (images, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let add = |name: &str| {
        std::fs::copy(samples().join(name), images.path().join(name)).unwrap();
    };
    for name in ["chelsea.png", "coffee.png", "rocket.jpg"] {
        add(name);
    }
    let cache = home_with_runtime(home.path()).cache;
    let first = map_of(home.path(), images.path());
    assert_eq!(first.points.len(), 3);
    let [kept] = kept_maps(&cache).try_into().unwrap();
    let bytes = std::fs::read(&kept).unwrap();
    // A computed map replaces the file, whose other link is then the only one.
    std::fs::hard_link(&kept, home.path().join("first")).unwrap();
    let links = || std::fs::metadata(&kept).unwrap().nlink();
    let again = map_of(home.path(), images.path());
    assert_eq!(links(), 2, "it is computed again");
    assert_eq!((&again.points, &again.clusters, &again.rows), (&first.points, &first.clusters, &first.rows));
    let mut damaged = bytes.clone();
    damaged[20] ^= 1;
    std::fs::write(&kept, damaged).unwrap();
    let repaired = map_of(home.path(), images.path());
    assert_eq!((links(), &repaired.points), (1, &first.points));
    assert_eq!(std::fs::read(&kept).unwrap(), bytes);
    add("astronaut.png");
    let more = map_of(home.path(), images.path());
    assert_eq!(more.points.len(), 4);
    assert_eq!(kept_maps(&cache).len(), 2);
}

#[test]
fn clusters_select_without_a_pointer() {
    let mut window = mapped();
    let groups = std::sync::Arc::clone(window.state().state().map_groups().unwrap());
    assert_eq!(groups.clusters.iter().map(|cluster| cluster.rows).sum::<usize>(), 8);
    assert!(groups.clusters.len() > 1, "{groups:?}");
    let label = format!("Select cluster 1: {} images", groups.clusters[0].rows);
    window.get_by_label_contains(&label).focus();
    window.step();
    window.key_press(egui::Key::Enter);
    wait_until(&mut window, "the images of the cluster", |window| selected(window).len() == groups.clusters[0].rows);
    let chosen = selected(&window);
    // What the search does not find cannot be selected.
    window.state_mut().command(SearchCommand::SetQuery("!chelsea".to_owned()));
    wait_until(&mut window, "the search", |window| on_screen(window) == 7);
    let everything = layout(&window).unwrap().rows.to_vec();
    window.state_mut().command(MapCommand::Pick(everything));
    window.step();
    assert_eq!(selected(&window).len(), 7);
    assert_ne!(selected(&window), chosen);
}

#[test]
fn colors_follow_the_chosen_groups() {
    let mut window = mapped();
    let choices = [
        ("Score", GroupBy::Score),
        ("Verdict", GroupBy::Verdict),
        ("Time of day", GroupBy::TimeOfDay),
        ("Year taken", GroupBy::YearTaken),
        ("Folder", GroupBy::Folder),
    ];
    for (choice, by) in choices {
        combo_box(&window, "Color of the points").click();
        window.run_steps(2);
        window.get_by_label(choice).click();
        wait_until(&mut window, choice, |window| {
            let state = window.state().state();
            let groups = state.map_groups().map(|groups| &groups.groups.groups);
            let count: usize = groups.iter().flat_map(|groups| groups.iter()).map(|group| group.count).sum();
            state.map.group_by == by && count == 8
        });
    }
    wait_for(&mut window, "this folder");
    let samples = &window.state().state().samples;
    assert!(samples.ids().all(|id| samples.get(id).unwrap().capture.is_some()), "the EXIF data is read");
}

#[test]
fn map_of_boxes_shows_them_in_the_filmstrip() {
    let mut window = open(Some(&samples()), "ssd-mobilenet-coco");
    predict_samples(&mut window);
    window.state_mut().command(Action::Map);
    wait_until(&mut window, "the map of images", |window| window.state().state().map_groups().is_some());
    combo_box(&window, "Points of the map").click();
    window.run_steps(2);
    window.get_by_label("Boxes").click();
    wait_until(&mut window, "the map of boxes", |window| {
        let is_finished = layout(window).is_some_and(|layout| layout.stage == MapStage::Finished);
        is_finished && window.state().state().map_groups().is_some()
    });
    let layout = layout(&window).unwrap();
    assert!(layout.of_boxes && layout.rows.len() > 8 && layout.without == 0, "{layout:?}");
    assert!(layout.rows.is_sorted(), "{layout:?}");
    let state = window.state().state();
    let run = state.run().unwrap();
    let score = |row: &MapRow| run.predictions.summary(row.sample).unwrap().scores[usize::from(row.index.unwrap())];
    let visible: Vec<MapRow> = layout.rows.iter().copied().filter(|row| score(row) >= state.view().min_score).collect();
    let legend = &state.map_groups().unwrap().groups.groups;
    assert!(legend.iter().all(|group| group.name != "no box"), "{legend:?}");
    for (row, group) in layout.rows.iter().zip(&*state.map_groups().unwrap().groups.group_of) {
        let summary = run.predictions.summary(row.sample).unwrap();
        let index = usize::from(row.index.unwrap());
        let is_hidden = summary.scores[index] < state.view().min_score;
        let class = if is_hidden { "hidden by filters".to_owned() } else { run.labels().name(summary.classes[index]) };
        assert!([class.as_str(), "other"].contains(&legend[usize::from(*group)].name.as_str()), "{class}, {legend:?}");
    }
    let (first, last) = (visible[0], visible[visible.len() - 1]);
    let index = last.index.map(usize::from);
    window.state_mut().command(MapCommand::Show(last));
    wait_until(&mut window, "the box", |window| window.state().state().shown.selected_box == index);
    assert_eq!(window.state().state().shown_sample(), Some(last.sample));
    window.state_mut().command(MapCommand::Pick(vec![last, first]));
    wait_until(&mut window, "the selected boxes", |window| {
        let strip = window.state().state().filmstrip.as_ref();
        let mut frames: Vec<_> = strip.iter().flat_map(|strip| strip.frames()).map(|frame| frame.sample).collect();
        frames.sort();
        frames == [first.sample, last.sample]
    });
    assert!(sees(&window, "Selected on the map"));
}

#[test]
fn map_without_embeddings_says_how_to_get_them() {
    let mut window = open(None, CLASSIFIER);
    window.state_mut().command(Action::ToggleEmbeddings);
    click(&mut window, "Open sample images");
    predict_samples(&mut window);
    assert!(!window.state().state().settings.save_embeddings);
    window.state_mut().command(Action::Map);
    wait_until(&mut window, "the reason", |window| window.state().state().map.status.failure().is_some());
    window.run_steps(2);
    assert!(sees(&window, "--resume"));
    click(&mut window, "Show the image");
    assert!(!window.state().state().map.is_shown);
}

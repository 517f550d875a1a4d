//! A model that only computes embeddings: added, used to compare images, and refused where there is nothing to judge.

use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::domain::CardTask;
use spotcheck::review::{GroupBy, PredictionStatus, Sort, SortBy};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand, ExportCommand, MapStage, SearchCommand, Step};

use crate::adding_models::{drop_case, wait_until_tried};
use crate::window::{
    choose_value, click, combo_box, home_with_runtime, open_at, samples, sees, wait_for, wait_for_notice, wait_until,
    wait_until_idle,
};

/// A window on the samples whose model is the encoder of a case, with one embedding.
fn with_encoder(home: &std::path::Path) -> Harness<'static, App> {
    let mut window = open_at(home_with_runtime(home), |builder| builder);
    window.state_mut().command(BrowseCommand::Open(samples()));
    drop_case(&mut window, "clip-image-encoder");
    wait_until_tried(&mut window);
    let form = window.state().state().import.as_ref().unwrap().form().unwrap();
    assert_eq!((form.card.task, form.card.input.mean[0]), (CardTask::Embedding, 0.481_454_66));
    assert_eq!(form.trial.as_ref().unwrap().embedding_dims, Some(100));
    assert!(sees(&window, "An embedding of 100 numbers") && !sees(&window, "Labels"));
    let find = window.get_by_role_and_label(Role::Button, "Find preprocessing…");
    assert!(find.accesskit_node().is_disabled());
    click(&mut window, "Add this model");
    wait_for_notice(&mut window, "model");
    wait_for(&mut window, "This image has an embedding");
    wait_for(&mut window, "1 embedded");
    window
}

fn compute_all(window: &mut Harness<'static, App>) {
    click(window, "Embed all");
    wait_for(window, "8 embedded");
    wait_until_idle(window);
}

#[test]
fn encoder_is_added_and_compares_images() {
    let home = tempfile::tempdir().unwrap();
    let mut window = with_encoder(home.path());
    compute_all(&mut window);
    click(&mut window, "Find similar images");
    wait_until(&mut window, "images by similarity", |window| {
        let state = window.state().state();
        state.arranging.sort().by == SortBy::Similarity && state.order().len() == 8
    });
    wait_for(&mut window, "similarity 1.00");
    window.state_mut().command(SearchCommand::SetQuery(String::new()));
    let by = SortBy::Outlier;
    window.state_mut().command(SearchCommand::SetSort(Sort { by, direction: by.default_direction() }));
    wait_for(&mut window, "outlier score ");
    window.state_mut().command(Action::FindDuplicates);
    wait_for(&mut window, "Alike by model");
    window.state_mut().command(SearchCommand::SetQuery(String::new()));
    window.state_mut().command(Action::Map);
    wait_until(&mut window, "the map", |window| {
        window.state().state().map_layout().is_some_and(|layout| layout.stage == MapStage::Finished)
    });
    let layout = window.state().state().map_layout().unwrap();
    assert_eq!((layout.rows.len(), layout.without), (8, 0));
    assert!(layout.encoder.contains("image_embeds"), "{}", layout.encoder);

    // The colors are those of folders, because there are no classes.
    wait_until(&mut window, "the colors", |window| window.state().state().map_groups().is_some());
    let state = window.state().state();
    assert_eq!((state.map.group_by, state.map_group_by()), (GroupBy::Class, GroupBy::Folder));
    let groups = &state.map_groups().unwrap().groups.groups;
    assert_eq!(groups.iter().map(|group| (&*group.name, group.count)).collect::<Vec<_>>(), [("this folder", 8)]);
    combo_box(&window, "Color of the points").click();
    window.run_steps(2);
    let offers = |name: &str| window.query_all_by_role_and_label(Role::Button, name).next().is_some();
    assert!(offers("Camera") && offers("Time of day"));
    assert!(!["Class", "Verdict", "Error", "Score"].into_iter().any(offers));
}

#[test]
fn what_needs_predictions_is_disabled_for_an_encoder() {
    let home = tempfile::tempdir().unwrap();
    let mut window = with_encoder(home.path());
    let slider = window.get_by_role_and_label(Role::Slider, "Minimum score");
    assert!(slider.accesskit_node().is_disabled());
    assert!(sees(&window, "Embed again") && !sees(&window, "Predict again") && !sees(&window, "Predict all"));
    let state = window.state().state();
    for action in [
        Action::Accept,
        Action::Explain,
        Action::OpenTruth,
        Action::CompareRuns,
        Action::SpotCheck,
        Action::ReviewReport,
        Action::NextUncertain,
        Action::StartJob,
        Action::DeployEndpoint,
    ] {
        let reason = action.check(state).expect_err("it needs predictions");
        assert!(reason.contains("encoder"), "{action:?}: {reason}");
    }
    for action in [Action::FindAlike, Action::FindDuplicates, Action::Map, Action::WriteNote, Action::AddTag] {
        assert_eq!(action.check(state), Ok(()), "{action:?}");
    }
    window.state_mut().command(Action::Export);
    wait_for(&mut window, "Embeddings of images");
    assert!(window.get_by_role_and_label(Role::Button, "JSON Lines").accesskit_node().is_disabled());
    assert!(!sees(&window, "Embeddings of boxes"));
    let array = home.path().join("array.npy");
    window.state_mut().command(ExportCommand::Start { path: array.clone(), replaces: false });
    wait_until(&mut window, "the export", |window| window.state().state().exported.is_some());
    assert!(std::fs::read_to_string(array.with_extension("csv")).unwrap().lines().count() == 1 + 1);
    window.state_mut().command(ExportCommand::Dismiss);
    // The run of a classifier over the same images has everything.
    choose_value(&mut window, "Model", "EfficientNet-Lite0");
    wait_for(&mut window, "1 predicted");
    let state = window.state().state();
    assert_eq!(Action::Accept.check(state), Ok(()));
    assert!(Action::CompareRuns.check(state).is_err(), "the other run has no predictions");
    assert_eq!(state.runs.iter().filter(|run| run.task().is_none()).count(), 1);
}

#[test]
fn only_images_with_a_saved_embedding_count_as_embedded() {
    let home = tempfile::tempdir().unwrap();
    let mut window = with_encoder(home.path());
    wait_until_idle(&mut window);
    let embedded = |window: &Harness<'static, App>| window.state().state().run().unwrap().predictions.predicted();
    let project = window.state().state().project.path.clone().unwrap();
    let mut file = project.into_os_string();
    file.push("-embeddings");
    // Nothing else can be written to the file, as on a full disk.
    let file = rusqlite::Connection::open(file).unwrap();
    let full = "CREATE TRIGGER no_room BEFORE INSERT ON embeddings BEGIN SELECT RAISE(ABORT, 'no room'); END";
    file.execute_batch(full).unwrap();
    click(&mut window, "Embed all");
    wait_until(&mut window, "the problem", |window| !window.state().state().problems.is_empty());
    wait_until_idle(&mut window);
    assert_eq!(embedded(&window), 1);
    // Nor does a single image.
    window.state_mut().command(BrowseCommand::Walk(Step::By(1)));
    window.state_mut().command(Action::PredictShown);
    window.step();
    wait_until(&mut window, "the image without an embedding", |window| {
        let state = window.state().state();
        state.run().unwrap().status(state.shown_sample().unwrap()) != PredictionStatus::Waiting
    });
    assert_eq!(embedded(&window), 1);

    file.execute_batch("DROP TRIGGER no_room").unwrap();
    compute_all(&mut window);
    let rows = file.query_row("SELECT count(*) FROM embeddings", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((embedded(&window), rows), (8, 8));
}

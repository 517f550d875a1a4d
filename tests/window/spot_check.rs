//! Judging a random sample: drawing it, walking through it, its statement, and its end.

use egui::Key;
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::{Location, ViewSettings};
use spotcheck::project::export::{RunReview, draw_sample, report_of_run, review_population, review_sample};
use spotcheck::project::{OpenMode, OpenRequest, Project};
use spotcheck::review::{ReviewSample, SampleBy, Target};
use spotcheck::tasks::{ProgressUnit, TaskControl};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, EvaluationCommand, ExportCommand, Overlay, TruthAt};

use crate::window::{
    click, folder_of, open_in, samples, sees, wait_for, wait_for_overlay, wait_until, wait_until_idle,
};

const DETECTOR: &str = "ssd-mobilenet-coco";

/// The image and box to judge next.
fn place(window: &Harness<'static, App>) -> (String, Option<u32>) {
    let state = window.state().state();
    let sample = state.samples.get(state.shown_sample().unwrap()).unwrap();
    (sample.name.clone(), state.shown.selected_box.map(|index| index as u32))
}

fn is_at(window: &Harness<'static, App>, sample: &ReviewSample, at: usize) -> bool {
    let unit = &sample.units[at];
    place(window) == (unit.image.clone(), unit.box_index)
}

fn press(window: &mut Harness<'static, App>, key: Key) {
    window.key_press(key);
    window.run_steps(3);
}

#[test]
fn sample_is_judged_to_its_end_across_a_restart() {
    let (folder, projects) = (folder_of(4, "coffee.png"), tempfile::tempdir().unwrap());
    let mut window = open_in(projects.path(), Some(folder.path()), DETECTOR);
    wait_for(&mut window, "cup ");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "4 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::SpotCheck);
    wait_for_overlay(&mut window, Overlay::SpotCheck);
    window.run_steps(2);
    window.get_by_role_and_label(Role::SpinButton, "Count").focus();
    window.run_steps(2);
    window.event(egui::Event::Text("5".to_owned()));
    press(&mut window, Key::Enter);
    click(&mut window, "By score");
    click(&mut window, "Draw sample");
    wait_for(&mut window, "Sample: 0 of 5 judged");
    wait_until_idle(&mut window);
    let path = window.state().state().project.path.clone().unwrap();
    let project = || {
        let request = OpenRequest { path: &path, root: None, mode: OpenMode::Read, program: "a test" };
        Project::open(&request, |_| ()).unwrap().project
    };
    let control = TaskControl::new(ProgressUnit::Images);
    let run = window.state().state().run().unwrap().info.clone();
    let view = window.state().state().view().into_owned();
    // As `spotcheck review sample` draws it.
    let population = review_population(&project(), &run, &view, &control).unwrap();
    let sample = draw_sample(&population, &run, view, SampleBy::Score, 5, 1);
    assert_eq!(review_sample(&project(), &run).unwrap(), Some(sample.clone()));
    wait_until(&mut window, "the first box", |window| is_at(window, &sample, 0));
    press(&mut window, Key::A);
    wait_for(&mut window, "Sample: 1 of 5 judged · Precision 1.000");
    wait_until(&mut window, "the second box", |window| is_at(window, &sample, 1));
    wait_until_idle(&mut window);
    drop(window);

    let mut window = open_in(projects.path(), Some(folder.path()), DETECTOR);
    wait_for(&mut window, "Sample: 1 of 5 judged");
    wait_until_idle(&mut window);
    press(&mut window, Key::J);
    for (at, key) in [(1, Key::R), (2, Key::A), (3, Key::U), (4, Key::A)] {
        wait_until(&mut window, "the next box", |window| is_at(window, &sample, at));
        press(&mut window, key);
    }
    wait_for_overlay(&mut window, Overlay::ReviewReport);
    wait_until_idle(&mut window);
    let report = report_of_run(&project(), &run, RunReview::new(&ViewSettings::default()), &control).unwrap();
    assert_eq!((report.total.judged, report.total.unsure), (4, 1));
    for sentence in report.sentences() {
        wait_for(&mut window, &sentence);
    }
    assert!(sees(&window, "The sample is judged"));
    wait_for(&mut window, &report.target(Target::USUAL).sentence());
    window.get_by_role_and_label(Role::SpinButton, "Target precision").focus();
    window.run_steps(2);
    window.event(egui::Event::Text("0.6".to_owned()));
    press(&mut window, Key::Enter);
    wait_until(&mut window, "the target", |window| window.state().state().target_precision == 0.6);
    wait_for(&mut window, &report.target(0.6).sentence());
    click(&mut window, "Sample more");
    wait_for_overlay(&mut window, Overlay::SpotCheck);
    assert!(sees(&window, "sample of 5 boxes, 5 of them judged"));
    click(&mut window, "Cancel");
    click(&mut window, "End spot check");
    wait_until(&mut window, "all images", |window| window.state().state().order().len() == 4);
    assert!(!sees(&window, "Sample: "));
}

#[test]
fn sample_by_embedding_draws_from_kinds_of_images() {
    let projects = tempfile::tempdir().unwrap();
    let mut window = open_in(projects.path(), Some(&samples()), "efficientnet-lite0");
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "8 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::SpotCheck);
    wait_for_overlay(&mut window, Overlay::SpotCheck);
    click(&mut window, "By embedding");
    click(&mut window, "Draw sample");
    wait_for(&mut window, "Sample: 0 of 8 judged");
    wait_until_idle(&mut window);
    let path = window.state().state().project.path.clone().unwrap();
    let request = OpenRequest { path: &path, root: None, mode: OpenMode::Read, program: "a test" };
    let project = Project::open(&request, |_| ()).unwrap().project;
    let run = window.state().state().run().unwrap().info.clone();
    let sample = review_sample(&project, &run).unwrap().unwrap();
    assert_eq!((sample.by, sample.units.len()), (SampleBy::Cover, 8));
    assert!(sample.strata.len() > 1, "{:?}", sample.strata);
}

#[test]
fn end_of_a_sample_leads_to_exports() {
    let (folder, projects) = (folder_of(1, "coffee.png"), tempfile::tempdir().unwrap());
    let mut window = open_in(projects.path(), Some(folder.path()), DETECTOR);
    wait_for(&mut window, "cup ");
    wait_until_idle(&mut window);
    let found = window.state().state().shown.prediction.as_ref().unwrap().detections()[0].bounds;
    let labels = serde_json::json!({
        "images": [{"id": 1, "file_name": "0-coffee.png"}],
        "categories": [{"id": 1, "name": "cup"}, {"id": 2, "name": "dining table"}],
        "annotations": [{
            "id": 1, "image_id": 1, "category_id": 1, "bbox": [found.x1, found.y1, found.width(), found.height()],
        }],
    });
    let file = projects.path().join("labels.json");
    std::fs::write(&file, labels.to_string()).unwrap();
    window.state_mut().command(EvaluationCommand::open_truth(TruthAt::Files(Location::Path(file))));
    wait_until(&mut window, "the evaluation", |window| window.state().state().evaluated().is_some());
    window.state_mut().command(Action::SpotCheck);
    wait_for_overlay(&mut window, Overlay::SpotCheck);
    click(&mut window, "Draw sample");
    wait_for(&mut window, "Sample: 0 of 2 judged");
    wait_until_idle(&mut window);
    wait_until(&mut window, "a box", |window| window.state().state().shown.selected_box.is_some());
    press(&mut window, Key::A);
    wait_for(&mut window, "Sample: 1 of 2 judged");
    press(&mut window, Key::A);
    wait_for_overlay(&mut window, Overlay::ReviewReport);
    // All of two are accepted, and one is a true positive: as chance would agree.
    wait_for(&mut window, "The ground truth agrees with 1 of 2 verdicts (Cohen's kappa 0.000)");
    click(&mut window, "Export report");
    wait_for_overlay(&mut window, Overlay::Export);
    let file = projects.path().join("report.html");
    window.state_mut().command(ExportCommand::Start { path: file.clone(), replaces: false });
    wait_until(&mut window, "the report", |_| file.exists());
    let html = std::fs::read_to_string(file).unwrap();
    for sentence in
        ["Precision 1.000", "2 verdicts on all 2 boxes", "agrees with 1 of 2 verdicts", "Precision 0.95 is reached at"]
    {
        assert!(html.contains(sentence), "{sentence}");
    }
}

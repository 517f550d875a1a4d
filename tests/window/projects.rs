//! Predictions and verdicts outlive the window: they are saved in the project of the folder.

use std::path::{Path, PathBuf};

use egui::{ViewportCommand, ViewportEvent, ViewportId};
use egui_kittest::Harness;
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{Prefer, SampleId, Verdict};
use spotcheck::review::VerdictKind;
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, BrowseCommand, Command, Display, InferenceCommand, MergeCommand, Notice, ProjectCommand, ProjectStatus,
    ReviewCommand, SearchCommand,
};

use super::support::runtime_home;
use super::window::{click, folder_of, open_at, open_in, sees, wait_for, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn project_files(projects: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(projects).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|it| it == "spotcheck")).collect()
}

#[test]
fn reopened_folder_has_its_predictions() {
    let (images, projects) = (folder_of(3, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "3 predicted");
    wait_for(&mut window, "All saved");
    drop(window);

    let mut again = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut again, "3 predicted");
    wait_for(&mut again, "tiger cat");
    let state = again.state().state();
    assert!(state.inference.local.status.ready().is_none(), "no model is loaded");
}

#[test]
fn deleted_run_id_is_not_reused() {
    let (images, projects) = (folder_of(1, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    wait_for(&mut window, "All saved");
    let deleted = window.state().state().run().unwrap().id();
    let delete = Command::Project(ProjectCommand::DeleteRun(deleted));
    window.state_mut().command(delete);
    wait_for(&mut window, "All saved");
    drop(window);

    let mut again = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut again, "1 predicted");
    assert!(again.state().state().run().unwrap().id() > deleted);
}

#[test]
fn reopened_folder_has_its_search() {
    let (images, projects) = (folder_of(3, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    let query = Command::Search(SearchCommand::SetQuery("name:1-".to_owned()));
    window.state_mut().command(query);
    wait_for(&mut window, "1 of 3 images");
    wait_for(&mut window, "All saved");
    drop(window);

    let mut again = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut again, "1 of 3 images");
}

fn shown_name(window: &Harness<'static, App>) -> Option<String> {
    let state = window.state().state();
    state.shown_sample().and_then(|sample| state.samples.get(sample)).map(|entry| entry.name.clone())
}

fn is_displayed(window: &Harness<'static, App>) -> bool {
    matches!(window.state().state().shown.display, Display::Ready(_))
}

#[test]
fn reopened_folder_shows_the_last_image_and_run() {
    let (images, projects) = (folder_of(4, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "4 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(InferenceCommand::SetThreads(Some(1)));
    window.state_mut().command(Action::PredictAll);
    wait_until(&mut window, "the second run", |window| window.state().state().runs.iter().count() == 2);
    wait_for(&mut window, "4 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::Accept);
    let first = window.state().state().runs.iter().next().unwrap().id();
    window.state_mut().command(ProjectCommand::SwitchRun(first));
    window.state_mut().command(BrowseCommand::Show(SampleId(2)));
    wait_until(&mut window, "the image", is_displayed);
    wait_until_idle(&mut window);
    let project = window.state().state().project.path.clone().unwrap();
    drop(window);

    // With another image before it, and through the project file.
    std::fs::copy(images.path().join("0-chelsea.png"), images.path().join("0-a.png")).unwrap();
    for source in [images.path(), &project] {
        let dirs = AppDirs { projects: projects.path().to_owned(), ..AppDirs::below(runtime_home()) };
        let mut again = open_at(dirs, |builder| builder);
        again.state_mut().command(BrowseCommand::Open(source.to_owned()));
        wait_until(&mut again, "the last image", |again| shown_name(again).as_deref() == Some("2-chelsea.png"));
        wait_until(&mut again, "the last run", |again| again.state().state().run().is_some());
        assert_eq!(again.state().state().run().unwrap().id(), first, "the verdicts are in the other run");
        // A choice of the user counts more than a late listing.
        again.state_mut().command(Action::NextImage);
        wait_until_idle(&mut again);
        assert_eq!(shown_name(&again).as_deref(), Some("3-chelsea.png"));
        again.state_mut().command(Action::PreviousImage);
        wait_until(&mut again, "the image", is_displayed);
        wait_until_idle(&mut again);
    }

    std::fs::remove_file(images.path().join("2-chelsea.png")).unwrap();
    let mut again = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut again, "tiger cat");
    wait_until_idle(&mut again);
    assert_eq!(shown_name(&again).as_deref(), Some("0-a.png"));
    let state = again.state().state();
    // Nothing is reported about the image.
    let is_about_verdicts = |notice: &Notice| notice.text.contains("judged in the run");
    assert!(state.notice.as_ref().is_none_or(is_about_verdicts), "{:?}", state.notice);
    assert!(state.problems.is_empty(), "{:?}", state.problems.entries());
}

/// Closes the window; returns whether it asks first.
fn close(window: &mut Harness<'static, App>) -> bool {
    let viewports = &mut window.input_mut().viewports;
    let root = viewports.get_mut(&ViewportId::ROOT).unwrap();
    root.events.push(ViewportEvent::Close);
    window.step();
    let root = &window.output().viewport_output[&ViewportId::ROOT];
    root.commands.contains(&ViewportCommand::CancelClose)
}

#[test]
fn closing_asks_before_losing_changes() {
    let (images, projects) = (folder_of(1, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    wait_for(&mut window, "All saved");
    assert!(!close(&mut window), "nothing would be lost");

    // A deleted file cannot be written to.
    let project = project_files(projects.path()).remove(0);
    let moved = projects.path().join("away");
    std::fs::rename(&project, &moved).unwrap();
    window.state_mut().command(Action::Accept);
    wait_until(&mut window, "the trouble", |window| window.state().state().project.trouble.is_some());
    assert!(close(&mut window));
    wait_for(&mut window, "1 change");
    assert!(!close(&mut window), "it asks once");

    // The next question is about another loss.
    std::fs::rename(&moved, &project).unwrap();
    wait_for(&mut window, "All saved");
    std::fs::rename(&project, &moved).unwrap();
    window.state_mut().command(Action::Reject);
    wait_until(&mut window, "the trouble", |window| window.state().state().project.trouble.is_some());
    assert!(close(&mut window));
}

#[test]
fn quitting_asks_during_predictions() {
    let images = folder_of(60, "chelsea.png");
    let mut window = open_in(home().path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    window.state_mut().command(Action::PauseTasks);
    assert!(close(&mut window));
    wait_for(&mut window, "Quit Spotcheck?");
    wait_for(&mut window, "“Predict all”");
    click(&mut window, "Keep running");
    wait_until(&mut window, "the question to close", |window| !sees(window, "Quit Spotcheck?"));
    assert!(close(&mut window));
    assert!(!close(&mut window), "it asks once");
}

#[test]
fn damaged_project_is_set_aside_and_rescued() {
    let (images, projects) = (folder_of(1, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::Accept);
    wait_for(&mut window, "All saved");
    drop(window);

    let project = project_files(projects.path()).remove(0);
    let connection = rusqlite::Connection::open(project).unwrap();
    let sql = "PRAGMA foreign_keys = off; DROP TABLE answers; DROP TABLE boxes";
    connection.execute_batch(sql).unwrap();
    drop(connection);
    let mut again = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut again, "1 predicted");
    wait_until_idle(&mut again);
    assert_eq!(project_files(projects.path()).len(), 2);
    let state = again.state().state();
    assert_eq!(state.problems.len(), 1, "{:?}", state.problems.entries());
    let first = state.samples.ids().next().unwrap();
    assert_eq!(state.verdict_of(first), Some(VerdictKind::Accept));
}

#[test]
fn unsavable_changes_go_to_another_file() {
    let (images, projects) = (folder_of(1, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    wait_for(&mut window, "All saved");
    let project = project_files(projects.path()).remove(0);
    let connection = rusqlite::Connection::open(project).unwrap();
    let sql = "CREATE TRIGGER t AFTER INSERT ON verdicts BEGIN INSERT INTO nowhere VALUES (1); END";
    connection.execute_batch(sql).unwrap();
    window.state_mut().command(Action::Accept);
    wait_until(&mut window, "the trouble", |window| window.state().state().project.trouble.is_some());
    let trouble = window.state().state().project.trouble.clone().unwrap();
    wait_for(&mut window, &trouble);
    assert_eq!(window.state().state().project.unsaved(), 1);

    connection.execute_batch("DROP TRIGGER t").unwrap();
    drop(connection);
    let copy = projects.path().join("copy.spotcheck");
    let save = Command::Project(ProjectCommand::SaveAs(copy.clone()));
    window.state_mut().command(save);
    wait_until(&mut window, "the copy", |window| window.state().state().project.path.as_ref() == Some(&copy));
    wait_for(&mut window, "All saved");
    assert_eq!(window.state().state().project.trouble, None);
    assert!(!sees(&window, &trouble));
}

#[test]
fn second_pass_shows_no_verdict_of_the_first() {
    let (images, projects) = (folder_of(2, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "2 predicted");
    window.key_press(egui::Key::R);
    wait_for(&mut window, "1 rejected");
    wait_for(&mut window, "All saved");
    let first = window.state().state().project.path.clone().unwrap();
    let second = projects.path().join("second.spotcheck");
    let start = Command::Project(ProjectCommand::StartSecondPass(second.clone()));
    window.state_mut().command(start);
    wait_for(&mut window, "Blind second pass");
    wait_for(&mut window, "2 predicted");
    wait_for(&mut window, "0 of 2 images judged");
    assert_eq!(window.state().state().project.path, Some(second));
    assert!(!sees(&window, "1 rejected"));
    assert!(Action::SecondPass.check(window.state().state()).is_err());
    window.key_press(egui::Key::A);
    wait_for(&mut window, "1 accepted");
    wait_for(&mut window, "All saved");
    drop(window);

    let mut again = open_in(projects.path(), Some(&first), CLASSIFIER);
    wait_for(&mut again, "1 rejected");
    assert!(!sees(&again, "Blind second pass"));
}

#[test]
fn two_projects_are_merged_conflict_by_conflict() {
    let (images, projects) = (folder_of(2, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "2 predicted");
    window.key_press(egui::Key::R);
    wait_for(&mut window, "1 rejected");
    window.key_press(egui::Key::A);
    wait_for(&mut window, "1 accepted");
    wait_for(&mut window, "All saved");
    let first = window.state().state().project.path.clone().unwrap();
    let second = projects.path().join("second.spotcheck");
    window.state_mut().command(Command::Project(ProjectCommand::StartSecondPass(second.clone())));
    wait_for(&mut window, "0 of 2 images judged");
    window.key_press(egui::Key::A);
    wait_for(&mut window, "1 accepted");
    window.key_press(egui::Key::A);
    wait_for(&mut window, "2 accepted");
    wait_for(&mut window, "All saved");

    let merge = |command| Command::Project(ProjectCommand::Merge(command));
    let failure = |window: &Harness<'static, App>| {
        let merging = window.state().state().merging.as_ref();
        merging.and_then(|merging| Some(merging.findings.failure()?.message().to_owned()))
    };
    let no_project = projects.path().join("text.spotcheck");
    std::fs::write(&no_project, "no project").unwrap();
    for (other, reason) in [(&no_project, "not a Spotcheck project"), (&second, "open project")] {
        window.state_mut().command(merge(MergeCommand::Compare(other.clone())));
        wait_until(&mut window, "the reason", |window| {
            failure(window).is_some_and(|message| message.contains(reason) && sees(window, &message))
        });
    }
    window.state_mut().command(merge(MergeCommand::Compare(first)));
    wait_for(&mut window, "Conflict 1 of 1");
    let found = window.state().state().merging.as_ref().unwrap().findings.ready().unwrap().clone();
    // Half of the pairs agree, as chance alone would.
    assert_eq!((found.pairs, found.added, found.kappa.kappa), (2, 0, Some(0.0)));
    assert!(sees(&window, "1 undecided conflict"));
    window.key_press(egui::Key::T);
    wait_for(&mut window, "all decided");
    // Closing the dialog keeps the decisions.
    click(&mut window, "Close");
    window.state_mut().command(Action::MergeProject);
    wait_for(&mut window, "all decided");
    assert_eq!(window.state().state().merging.as_ref().unwrap().choices, [Some(Prefer::Second)]);
    let merged = projects.path().join("merged.spotcheck");
    window.state_mut().command(merge(MergeCommand::Save(merged.clone())));
    wait_until(&mut window, "the merged project", |window| {
        let state = window.state().state();
        state.project.path.as_ref() == Some(&merged) && state.merging.is_none()
    });
    wait_for(&mut window, "1 rejected");
    assert!(sees(&window, "1 accepted") && !sees(&window, "Blind second pass"));
}

#[test]
fn verdict_on_the_whole_image_is_compared_with_its_boxes() {
    let (images, projects) = (folder_of(1, "coffee.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup ");
    wait_until_idle(&mut window);
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.state_mut().command(Action::Reject);
    wait_for(&mut window, "All saved");
    let first = window.state().state().project.path.clone().unwrap();
    let second = projects.path().join("second.spotcheck");
    window.state_mut().command(Command::Project(ProjectCommand::StartSecondPass(second.clone())));
    wait_until(&mut window, "the copy", |window| window.state().state().project.path.as_ref() == Some(&second));
    wait_for(&mut window, "cup ");
    wait_until_idle(&mut window);
    window.state_mut().command(ReviewCommand::SelectBox(None));
    window.state_mut().command(Action::Accept);
    wait_for(&mut window, "1 accepted");
    wait_for(&mut window, "All saved");
    window.state_mut().command(Command::Project(ProjectCommand::Merge(MergeCommand::Compare(first))));
    wait_for(&mut window, "Conflict 1 of 1");
    assert!(sees(&window, "accepted (whole image)"));
    window.key_press(egui::Key::T);
    wait_for(&mut window, "all decided");
    let merged = projects.path().join("merged.spotcheck");
    window.state_mut().command(Command::Project(ProjectCommand::Merge(MergeCommand::Save(merged.clone()))));
    wait_until(&mut window, "the merged project", |window| {
        let state = window.state().state();
        state.project.path.as_ref() == Some(&merged) && state.merging.is_none()
    });
    wait_for(&mut window, "1 rejected");
    let state = window.state().state();
    let sample = state.shown_sample().unwrap();
    let verdicts = (state.judgments.verdict(sample), state.judgments.box_verdict(sample, 0));
    assert_eq!(verdicts, (Some(&Verdict::Accept), Some(&Verdict::Reject)));
}

#[test]
fn second_window_is_read_only() {
    let (images, projects) = (folder_of(1, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "All saved");
    let mut second = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut second, "read-only");
    wait_until(&mut second, "the reason", |second| match &second.state().state().project.status {
        ProjectStatus::ReadOnly { reason } => reason.contains(&std::process::id().to_string()) && sees(second, reason),
        _ => false,
    });
}

#[test]
fn read_only_project_folder_allows_predicting() {
    let (images, projects) = (folder_of(1, "chelsea.png"), home());
    let blocked = projects.path().join("a-file");
    std::fs::write(&blocked, b"not a folder").unwrap();
    let mut window = open_in(&blocked, Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "Nothing is saved");
    wait_for(&mut window, "tiger cat");
}

#[test]
fn project_file_finds_moved_images() {
    let (images, projects) = (folder_of(2, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "2 predicted");
    wait_for(&mut window, "All saved");
    drop(window);
    let project = project_files(projects.path()).remove(0);
    let other_folder = home();
    let moved = other_folder.path().join("moved");
    std::fs::rename(images.path(), &moved).unwrap();

    let mut again = open_in(projects.path(), Some(&project), CLASSIFIER);
    wait_for(&mut again, "Locate images");
    assert!(again.state().state().samples.is_empty());
    again.state_mut().command(ProjectCommand::Move(moved));
    wait_until(&mut again, "the moved images", |window| sees(window, "2 predicted"));
}

#[test]
fn project_saved_elsewhere_continues_there() {
    let (images, projects) = (folder_of(2, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "2 predicted");
    let copy = images.path().join("mine.spotcheck");
    let save = Command::Project(ProjectCommand::SaveAs(copy.clone()));
    window.state_mut().command(save);
    wait_until(&mut window, "the copy", |window| window.state().state().project.path.as_ref() == Some(&copy));
    window.key_press(egui::Key::R);
    wait_for(&mut window, "1 rejected");
    wait_for(&mut window, "All saved");
    drop(window);

    let mut again = open_in(projects.path(), Some(&copy), CLASSIFIER);
    wait_for(&mut again, "2 predicted");
    wait_for(&mut again, "1 rejected");
}

//! Predictions and verdicts outlive the window: they are saved in the project of the folder.

use std::path::{Path, PathBuf};

use egui::{ViewportCommand, ViewportEvent, ViewportId};
use egui_kittest::Harness;
use spotcheck::app::App;
use spotcheck::review::VerdictKind;
use spotcheck::state::{Action, Command, ProjectCommand, ReviewCommand};

use super::window::{click, folder_of, open_in, sees, wait_for, wait_until, wait_until_idle};

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
fn what_was_predicted_is_there_when_the_folder_is_opened_again() {
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
    assert!(state.inference.local.status.ready().is_none(), "no model is loaded to look at what is there");
}

#[test]
fn the_number_of_a_deleted_run_is_not_given_again() {
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
fn a_search_is_there_when_the_folder_is_opened_again() {
    let (images, projects) = (folder_of(3, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    let query = Command::Review(ReviewCommand::SetQuery("name:1-".to_owned()));
    window.state_mut().command(query);
    wait_for(&mut window, "1 of 3 images");
    wait_for(&mut window, "All saved");
    drop(window);

    let mut again = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut again, "1 of 3 images");
}

/// Whether a window that is told to close holds that up.
fn close(window: &mut Harness<'static, App>) -> bool {
    let viewports = &mut window.input_mut().viewports;
    let root = viewports.get_mut(&ViewportId::ROOT).unwrap();
    root.events.push(ViewportEvent::Close);
    window.step();
    let root = &window.output().viewport_output[&ViewportId::ROOT];
    root.commands.contains(&ViewportCommand::CancelClose)
}

#[test]
fn closing_asks_once_before_it_loses_what_cannot_be_saved() {
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
    wait_for(&mut window, "1 change is not saved yet");
    assert!(!close(&mut window), "asked once, and the user means it");

    // What is asked about next time is another loss.
    std::fs::rename(&moved, &project).unwrap();
    wait_for(&mut window, "All saved");
    std::fs::rename(&project, &moved).unwrap();
    window.state_mut().command(Action::Reject);
    wait_until(&mut window, "the trouble", |window| window.state().state().project.trouble.is_some());
    assert!(close(&mut window));
}

#[test]
fn quitting_asks_while_images_are_predicted() {
    let images = folder_of(60, "chelsea.png");
    let mut window = open_in(home().path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    window.state_mut().command(Action::PauseTasks);
    assert!(close(&mut window));
    wait_for(&mut window, "Quit Spotcheck?");
    wait_for(&mut window, "Choose “Predict all” later");
    click(&mut window, "Keep running");
    wait_until(&mut window, "the question to close", |window| !sees(window, "Quit Spotcheck?"));
    assert!(close(&mut window));
    assert!(!close(&mut window), "asked, and the user means it");
}

#[test]
fn a_damaged_project_is_put_aside_and_what_can_be_read_of_it_is_there() {
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
fn what_can_never_be_saved_is_not_tried_again_and_goes_into_another_file() {
    let (images, projects) = (folder_of(1, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    wait_for(&mut window, "All saved");
    let project = project_files(projects.path()).remove(0);
    let connection = rusqlite::Connection::open(project).unwrap();
    let sql = "CREATE TRIGGER t AFTER INSERT ON verdicts BEGIN INSERT INTO nowhere VALUES (1); END";
    connection.execute_batch(sql).unwrap();
    window.state_mut().command(Action::Accept);
    wait_for(&mut window, "does not retry this");
    assert_eq!(window.state().state().project.unsaved(), 1);

    connection.execute_batch("DROP TRIGGER t").unwrap();
    drop(connection);
    let copy = projects.path().join("copy.spotcheck");
    let save = Command::Project(ProjectCommand::SaveAs(copy.clone()));
    window.state_mut().command(save);
    wait_for(&mut window, "All saved");
    assert_eq!(window.state().state().project.path, Some(copy));
    assert!(!sees(&window, "does not retry this"));
}

#[test]
fn a_second_window_on_the_same_folder_is_read_only_and_names_the_first() {
    let (images, projects) = (folder_of(1, "chelsea.png"), home());
    let mut window = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "All saved");
    let mut second = open_in(projects.path(), Some(images.path()), CLASSIFIER);
    wait_for(&mut second, "read-only");
    wait_for(&mut second, "the window of Spotcheck");
}

#[test]
fn a_project_folder_that_cannot_be_written_is_reported_and_predicting_still_works() {
    let (images, projects) = (folder_of(1, "chelsea.png"), home());
    let blocked = projects.path().join("a-file");
    std::fs::write(&blocked, b"not a folder").unwrap();
    let mut window = open_in(&blocked, Some(images.path()), CLASSIFIER);
    wait_for(&mut window, "Nothing is saved");
    wait_for(&mut window, "tiger cat");
}

#[test]
fn a_project_file_opens_its_images_and_finds_them_where_they_were_moved_to() {
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
    wait_for(&mut again, "are no longer in");
    assert!(sees(&again, "Locate images"));
    again.state_mut().command(ProjectCommand::Move(moved));
    wait_until(&mut again, "the images where they are now", |window| sees(window, "2 predicted"));
}

#[test]
fn a_project_that_is_saved_in_another_file_continues_there_with_its_predictions_and_verdicts() {
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
    wait_for(&mut window, "1 of 2 images judged: 1 rejected");
    wait_for(&mut window, "All saved");
    drop(window);

    let mut again = open_in(projects.path(), Some(&copy), CLASSIFIER);
    wait_for(&mut again, "2 predicted");
    wait_for(&mut again, "1 of 2 images judged: 1 rejected");
}

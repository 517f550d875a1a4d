//! Failures are reported where they occur, with a way to retry.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use egui::Key;
use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::dirs::AppDirs;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, BrowseCommand};

use crate::support::alone::alone;
use crate::support::http_server::{HttpServer, Reply};
use crate::window::{click, open_at, open_with_model_at, samples, sees, wait_for, wait_until};

const WEIGHTS: &[u8] = b"these are the weights";
const SHA256: &str = "1f37de1efe65eafa62eecff07876ee832138e32600cb5e50a041b51648f402e3";

/// A model of the user's own, “My model”, to download from `url`.
fn add_model(dirs: &AppDirs, url: &str) {
    let card = include_str!("../../models/efficientnet-lite0/model.toml")
        .replace("\"efficientnet-lite0\"", "\"mine\"")
        .replace("EfficientNet-Lite0\"\ntask", "My model\"\ntask")
        .replace("bytes = 18613976", &format!("bytes = {}\nurls = [\"{url}\"]", WEIGHTS.len()))
        .replace("c16c3290248698d2dbfb8db1ff41d301169c57ae0c4c2c6a474a284eb06dfd58", SHA256);
    let folder = dirs.data.join("models/mine");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("model.toml"), card).unwrap();
}

/// Chooses “My model”, which starts its download.
fn choose(window: &mut Harness<'static, App>) {
    wait_until(window, "the models", |window| window.state().state().models.get("mine").is_some());
    window.get_by_role_and_label(Role::ComboBox, "Model").click_accesskit();
    window.run_steps(2);
    click(window, "My model (download");
    // Nothing has a tooltip below an open list.
    window.key_press(Key::Escape);
    wait_for(window, "Could not download");
}

#[test]
fn failed_download_is_reported_once_with_retry() {
    let is_up = Arc::new(AtomicBool::new(false));
    let server = HttpServer::start({
        let is_up = Arc::clone(&is_up);
        move |request| {
            if is_up.load(Ordering::Relaxed) {
                Reply::file(WEIGHTS, "\"1\"", request)
            } else {
                Reply::status("404 Not Found")
            }
        }
    });
    let home = tempfile::tempdir().unwrap();
    let dirs = AppDirs::below(home.path());
    add_model(&dirs, &server.url("/weights"));
    let mut window = open_at(dirs, |builder| builder);
    choose(&mut window);
    assert!(sees(&window, "returned 404 Not Found"));
    // The window has buttons for what the command line has commands for.
    assert!(!sees(&window, "spotcheck models"));
    assert!(sees(&window, "Use a file…"));
    assert_eq!(window.state().state().problems.len(), 1);
    click(&mut window, "Dismiss");
    wait_until(&mut window, "the box to go", |window| !sees(window, "Use a file…"));
    click(&mut window, "Download ");
    wait_for(&mut window, "Use a file…");
    window.state_mut().command(BrowseCommand::Open(samples()));
    wait_until(&mut window, "the box to stay behind", |window| !sees(window, "Use a file…"));
    choose(&mut window);

    is_up.store(true, Ordering::Relaxed);
    click(&mut window, "Retry");
    wait_until(&mut window, "the model", |window| {
        let mine = window.state().state().models.get("mine");
        mine.is_some_and(|mine| mine.is_ready)
    });
    assert!(!sees(&window, "returned 404 Not Found"));
}

#[test]
fn truncated_line_has_one_tooltip() {
    let server = HttpServer::start(|_| Reply::status("404 Not Found"));
    let home = tempfile::tempdir().unwrap();
    let dirs = AppDirs::below(home.path());
    add_model(&dirs, &server.url("/weights"));
    let mut window = open_at(dirs, |builder| builder.with_size((900.0, 860.0)));
    choose(&mut window);
    if !window.state().state().settings.show_tasks_panel {
        window.state_mut().command(Action::ToggleTasks);
    }
    // Neither in the list of tasks, nor in that of problems, nor in the panels above.
    let line = "could not download";
    let count = |window: &Harness<'static, App>| window.query_all_by_label_contains(line).count();
    wait_until(&mut window, "both lines", |window| count(window) == 2);
    for place in 0..2 {
        let lines = window.query_all_by_label_contains(line);
        lines.into_iter().nth(place).unwrap().hover();
        wait_until(&mut window, "a tooltip", |window| count(window) > 2);
        window.run_steps(5);
        assert_eq!(count(&window), 3);
        window.hover_at(egui::Pos2::new(1.0, 1.0));
        wait_until(&mut window, "no tooltip", |window| count(window) == 2);
    }
}

#[test]
fn failed_installation_is_reported_with_retry() {
    alone(
        "failing::failed_installation_is_reported_with_retry",
        |command| {
            command.env("PATH", Path::new("/nowhere"));
        },
        || {
            let home = tempfile::tempdir().unwrap();
            let mut window = open_with_model_at(AppDirs::below(home.path()), "efficientnet-lite0");
            wait_until(&mut window, "the models", |window| window.state().state().models.is_listed());
            if !sees(&window, "Install for CUDA") {
                click(&mut window, "Device");
            }
            click(&mut window, "Install for CUDA");
            let failed = "ONNX Runtime with CUDA: ";
            wait_for(&mut window, failed);
            let button = window.get_by_label("Install for CUDA").rect();
            let banner = window.get_by_label_contains(failed).rect();
            assert!((0.0..120.0).contains(&(banner.top() - button.bottom())));
            let failures = || window.state().state().tasks.finished().count();
            let before = failures();
            click(&mut window, "Retry");
            wait_until(&mut window, "the second failure", |window| {
                window.state().state().tasks.finished().count() > before
            });
            wait_for(&mut window, failed);
        },
    );
}

//! Exporting from the window.

use std::path::Path;
use std::process::Command as Process;

use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::domain::class_color;
use spotcheck::project::export::options::{ExportFormat, ExportOptions};
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, BrowseCommand, Command, ExportCommand, ExportScope, InferenceCommand, Overlay, TaskOutcome,
};
use strum::VariantArray;

use crate::support::alone::alone;
use crate::window::{click, folder_of, open, samples, sees, wait_for, wait_for_notice, wait_until, wait_until_idle};

const SHOW_FILE: &str = "Show in file";

/// Waits until an export fails, and the open dialog shows why.
#[track_caller]
fn wait_for_failure(window: &mut Harness<'static, App>) {
    wait_until(window, "the failure", |window| {
        let failure = window.state().state().export.stage.failure();
        failure.is_some_and(|failure| sees(window, failure.message()))
    });
}

#[test]
fn visible_predictions_are_exported() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("boxes.json");
    let mut window = open(Some(&samples().join("coffee.png")), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup");
    for is_again in [false, true] {
        window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
        wait_for(&mut window, "Search results (1, with ");
        click(&mut window, "COCO");
        let field = window.get_by_role_and_label(Role::TextInput, "Target file");
        if !is_again {
            field.focus();
            field.type_text(target.to_str().unwrap());
        }
        window.step();
        click(&mut window, "Export now");
        if is_again {
            // The dialog stays open, with the problem and a solution.
            wait_for_failure(&mut window);
            assert_eq!(window.state().state().overlay, Overlay::Export);
            click(&mut window, "Overwrite if");
            click(&mut window, "Export now");
            wait_for(&mut window, "1 image and");
            assert_eq!(window.state().state().overlay, Overlay::None);
        } else {
            wait_for(&mut window, "1 image and");
            wait_for(&mut window, SHOW_FILE);
            click(&mut window, "Close");
            wait_until(&mut window, "the notice to close", |window| !sees(window, SHOW_FILE));
        }
    }
    let written: serde_json::Value = serde_json::from_slice(&std::fs::read(target).unwrap()).unwrap();
    assert_eq!(written["images"][0]["file_name"], "coffee.png");
    assert!(!written["annotations"].as_array().unwrap().is_empty());
}

#[test]
fn outdated_prediction_is_not_exported() {
    let images = folder_of(2, "coffee.png");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("boxes.json");
    let mut window = open(Some(images.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "2 predicted");
    window.state_mut().command(InferenceCommand::SetPredictOnOpen(false));
    let changed = images.path().join("1-coffee.png");
    std::fs::copy(samples().join("chelsea.png"), changed).unwrap();
    wait_for(&mut window, "1-coffee.png, outdated");
    let options = ExportOptions::for_format(ExportFormat::Coco);
    let set = Command::Export(ExportCommand::Set(options, ExportScope::All));
    window.state_mut().command(set);
    window.state_mut().command(ExportCommand::Start { path: path.clone(), replaces: false });
    wait_for(&mut window, "1 image and");
    let exported = window.state().state().exported.as_ref().unwrap();
    assert!(exported.notes.iter().any(|note| note.starts_with("1 prediction ") && sees(&window, note)), "{exported:?}");
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written.contains("0-coffee.png") && !written.contains("1-coffee.png"));
}

/// The number of rows of a NumPy array of 16-bit floats, and the lines of its table after the header.
fn read_embeddings(array: &Path) -> (usize, Vec<String>) {
    let bytes = std::fs::read(array).unwrap();
    let header = String::from_utf8_lossy(&bytes[..128]);
    let shape = header.split_once("'shape': (").unwrap().1.split(')').next().unwrap();
    let [rows, dims] = [0, 1].map(|side| shape.split(", ").nth(side).unwrap().parse::<usize>().unwrap());
    assert_eq!(bytes.len(), 128 + 2 * rows * dims);
    let table = std::fs::read_to_string(array.with_extension("csv")).unwrap();
    (rows, table.lines().skip(1).map(str::to_owned).collect())
}

#[test]
fn embeddings_are_exported() {
    let images = folder_of(2, "coffee.png");
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(Some(images.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "2 predicted");
    for (part, least) in [("images", 2), ("boxes", 3)] {
        window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
        wait_for(&mut window, "Search results (");
        click(&mut window, "Embeddings");
        wait_for(&mut window, "Embeddings of boxes");
        assert!(!sees(&window, "Search results ("), "all embeddings are exported");
        click(&mut window, &format!("Embeddings of {part}"));
        window.step();
        assert!(window.state().state().suggested_export().to_str().unwrap().ends_with("-embeddings.npy"));
        // The format's extension is added.
        window.state_mut().command(ExportCommand::Start { path: folder.path().join(part), replaces: false });
        wait_for(&mut window, SHOW_FILE);
        let (rows, table) = read_embeddings(&folder.path().join(part).with_extension("npy"));
        assert!(rows >= least && rows == table.len(), "{part}: {rows}, {table:?}");
        assert!(table.iter().all(|line| line.contains("coffee.png") && line.contains("ssd-mobilenet-coco")));
        click(&mut window, "Close");
        // Later exports are of predictions again.
        window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
        wait_for(&mut window, "Embeddings of boxes");
        click(&mut window, "COCO");
        wait_for(&mut window, "Search results (");
        window.key_press(egui::Key::Escape);
        wait_until(&mut window, "the dialog to close", |window| window.state().state().overlay == Overlay::None);
    }
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
    click(&mut window, "Embeddings");
    window.state_mut().command(ExportCommand::Start { path: folder.path().join("images.csv"), replaces: true });
    wait_until(&mut window, "the failure", |window| window.state().state().export.stage.failure().is_some());
}

#[test]
fn run_without_embeddings_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(None, "ssd-mobilenet-coco");
    window.state_mut().command(Action::ToggleEmbeddings);
    let image = samples().join("coffee.png");
    window.state_mut().command(BrowseCommand::Open(image));
    wait_for(&mut window, "cup");
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
    wait_for(&mut window, "Search results (");
    click(&mut window, "Embeddings");
    let array = folder.path().join("a.npy");
    window.state_mut().command(ExportCommand::Start { path: array.clone(), replaces: false });
    wait_until(&mut window, "the failure", |window| window.state().state().export.stage.failure().is_some());
    let state = window.state().state();
    assert!(state.export.stage.failure().unwrap().message().contains("no embeddings"));
    assert!(state.overlay == Overlay::Export && !array.exists());
}

#[test]
fn export_choices_show_box_counts() {
    let images = folder_of(2, "coffee.png");
    let mut window = open(Some(images.path()), "ssd-mobilenet-coco");
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "2 predicted");
    wait_for(&mut window, "cup ");
    let state = window.state().state();
    let prediction = state.shown.prediction.as_ref().unwrap();
    let shown = state.shown_boxes().len();
    let stored = prediction.detections().len();
    assert!(1 < shown && shown < stored);
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
    wait_for(&mut window, &format!("All images (2, with {} boxes)", 2 * shown));
    assert!(sees(&window, &format!("Selected images (1, with {shown} boxes)")));
    click(&mut window, "All stored boxes");
    wait_for(&mut window, &format!("All images (2, with {} boxes)", 2 * stored));
    click(&mut window, "Corrected labels");
    wait_for(&mut window, &format!("most {} boxes)", 2 * shown));
}

fn fill(window: &mut Harness<'static, App>, label: &str, path: &Path) {
    let field = window.get_by_role_and_label(Role::TextInput, label);
    field.focus();
    window.step();
    // The result of the earlier export is cleared.
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::A);
    window.step();
    let field = window.get_by_role_and_label(Role::TextInput, label);
    field.type_text(path.to_str().unwrap());
    window.step();
}

#[test]
fn suggested_path_follows_the_format() {
    let mut window = open(Some(&samples().join("coffee.png")), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup");
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
    wait_for(&mut window, "Export now");
    let path = |window: &Harness<'static, App>| {
        let mut fields = window.query_all_by_role(Role::TextInput);
        let field = fields.find(|field| {
            let label = field.accesskit_node().label().unwrap_or_default();
            label.starts_with("Target ")
        });
        field.unwrap().accesskit_node().value().unwrap()
    };
    let choose = |window: &mut Harness<'static, App>, format: ExportFormat| {
        window.get_by_label(format.name()).click_accesskit();
        window.run_steps(3);
        path(window)
    };
    let suggested = |name: &str| samples().join(name).display().to_string();
    assert_eq!(choose(&mut window, ExportFormat::Coco), suggested("coffee-coco.json"));
    assert_eq!(choose(&mut window, ExportFormat::Csv), suggested("coffee-predictions.csv"));
    assert_eq!(choose(&mut window, ExportFormat::Yolo), suggested("coffee-yolo"));
    fill(&mut window, "Target folder", Path::new("/out/mine"));
    assert_eq!(choose(&mut window, ExportFormat::Report), "/out/mine.html");
    assert_eq!(choose(&mut window, ExportFormat::Jsonl), "/out/mine.jsonl");
    fill(&mut window, "Target file", Path::new("/out/mine.txt"));
    assert_eq!(choose(&mut window, ExportFormat::Csv), "/out/mine.txt");
}

#[test]
fn every_format_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(Some(&samples().join("coffee.png")), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup");
    for &format in ExportFormat::VARIANTS {
        window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
        wait_for(&mut window, "Export now");
        let entry = window.get_by_label(format.name());
        entry.click_accesskit();
        window.run_steps(2);
        wait_for(&mut window, format.description());
        let mut target = folder.path().join(format!("out-{}", format.into_str()));
        let label = match format.extension() {
            Some(_) => "Target file",
            None => "Target folder",
        };
        fill(&mut window, label, &target);
        click(&mut window, "Export now");
        wait_for(&mut window, " written: ");
        click(&mut window, "Close");
        // A name without an extension gets that of the format.
        if let Some(extension) = format.extension() {
            target.set_extension(extension);
        }
        assert!(target.exists(), "{}", target.display());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 7);
}

#[test]
fn classifier_has_no_box_formats() {
    let mut window = open(Some(&samples().join("chelsea.png")), "efficientnet-lite0");
    wait_for(&mut window, "tiger cat 38.3%");
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
    wait_for(&mut window, "Export now");
    // The first suitable format is selected.
    assert_eq!(window.state().state().export.options.format, ExportFormat::Csv);
    for (format, is_offered) in [("YOLO", false), ("COCO", false), ("CSV", true)] {
        let entry = window.get_by_label(format);
        let is_disabled = entry.accesskit_node().is_disabled();
        assert_eq!(is_disabled, !is_offered, "{format}");
    }
    assert!(sees(&window, "All stored classes"));
}

#[test]
fn canceled_export_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = open(Some(&samples()), "ssd-mobilenet-coco");
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "8 predicted");
    wait_until(&mut window, "the task to end", |window| window.state().state().tasks.is_idle());
    let app = window.state_mut();
    app.command(Action::Export);
    let options = ExportOptions::for_format(ExportFormat::AnnotatedImages);
    app.command(ExportCommand::Set(options, ExportScope::All));
    app.command(ExportCommand::Start { path: folder.path().join("pictures"), replaces: false });
    app.command(Action::CancelTasks);
    wait_until(&mut window, "the end of the export", |window| window.state().state().tasks.is_idle());
    let finished = window.state().state().tasks.finished().next().unwrap();
    assert_eq!(finished.outcome, TaskOutcome::Cancelled);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn enter_exports_and_errors_name_one_path() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("taken.json");
    std::fs::write(&taken, b"{}").unwrap();
    let mut window = open(Some(&samples().join("coffee.png")), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup");
    window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
    wait_for(&mut window, "Search results (1, with ");
    click(&mut window, "COCO");
    let height = window.get_by_label("Export now").rect().bottom();
    fill(&mut window, "Target file", &taken);
    window.key_press(egui::Key::Enter);
    wait_for_failure(&mut window);
    let failure = window.state().state().export.stage.failure().unwrap().message().to_owned();
    fill(&mut window, "Target file", &folder.path().join("free.json"));
    assert!(!sees(&window, &failure));
    assert!(window.state().state().problems.is_empty(), "only the dialog shows it");
    click(&mut window, "CSV");
    click(&mut window, "YOLO");
    assert_eq!(window.get_by_label("Export now").rect().bottom(), height, "no button moves");
    click(&mut window, "COCO");
    fill(&mut window, "Target file", &folder.path().join("free.json"));
    window.key_press(egui::Key::Enter);
    wait_for(&mut window, SHOW_FILE);
    window.run_steps(2);
    window.key_press(egui::Key::Enter);
    wait_until(&mut window, "the notice to close", |window| !sees(window, SHOW_FILE));
}

/// Saves the shown image at a path, typed because the desktop has no file dialog.
#[cfg(target_os = "linux")]
fn save_image_as(window: &mut Harness<'static, App>, path: &Path) {
    window.state_mut().command(Command::DismissNotice);
    window.state_mut().command(Action::SaveImage);
    wait_for(window, "Save image as");
    fill(window, "Path", path);
    window.key_press(egui::Key::Enter);
    window.step();
}

#[cfg(target_os = "linux")]
#[test]
fn image_is_saved_with_its_boxes_or_a_reason() {
    let prepare = |command: &mut Process| {
        // A file beyond the size limit, which stands for a full disk, must not end the process.
        let mut limited = Process::new("sh");
        limited.args(["-c", r#"trap "" XFSZ; exec "$@""#, "sh"]).arg(command.get_program()).args(command.get_args());
        *command = limited;
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/none");
    };
    alone("exporting::image_is_saved_with_its_boxes_or_a_reason", prepare, || {
        let folder = tempfile::tempdir().unwrap();
        let mut window = open(Some(&samples().join("coffee.png")), "ssd-mobilenet-coco");
        wait_for(&mut window, "cup ");
        wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
        wait_until_idle(&mut window);

        let limit = |limit: &str| {
            let id = std::process::id().to_string();
            let status = Process::new("prlimit").args([&format!("--fsize={limit}:unlimited"), "--pid", &id]).status();
            assert!(status.unwrap().success());
        };
        let target = folder.path().join("a cup.png");
        limit("20000");
        save_image_as(&mut window, &target);
        let reason = wait_for_notice(&mut window, "Could not save the image");
        limit("unlimited");
        assert!(reason.contains(target.to_str().unwrap()), "{reason}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no part of it is left");

        save_image_as(&mut window, &target);
        wait_for_notice(&mut window, "Saved ");
        let written = std::fs::read(&target).unwrap();
        let saved = image::load_from_memory(&written).unwrap().to_rgb8();
        let original = image::open(samples().join("coffee.png")).unwrap().to_rgb8();
        assert_eq!(saved.dimensions(), original.dimensions());
        let state = window.state().state();
        let prediction = state.shown.prediction.as_ref().unwrap();
        let visible = state.shown_boxes();
        assert_eq!(visible.len(), 2);
        for index in visible {
            let found = &prediction.detections()[index];
            let color = image::Rgb(class_color(&found.label));
            // Somewhere in the middle of its left edge.
            let row = f32::midpoint(found.bounds.y1, found.bounds.y2) as u32;
            let columns = || (found.bounds.x1.max(3.0) as u32 - 3)..(found.bounds.x1.max(0.0) as u32 + 4);
            assert!(columns().any(|column| *saved.get_pixel(column, row) == color), "{}", found.label);
            assert!(columns().all(|column| *original.get_pixel(column, row) != color), "{}", found.label);
        }

        for (path, reason) in [
            (target.clone(), "never replaced"),
            (folder.path().join("none/cup.png"), "does not exist"),
            // Nobody can create a file there.
            ("/sys/cup.jpg".into(), "/sys/cup.jpg"),
        ] {
            save_image_as(&mut window, &path);
            let notice = wait_for_notice(&mut window, path.to_str().unwrap());
            assert!(notice.starts_with("Could not save the image") && notice.contains(reason), "{notice}");
        }
        assert_eq!(std::fs::read(&target).unwrap(), written);
        save_image_as(&mut window, &folder.path().join("cup.jpg"));
        wait_for_notice(&mut window, "cup.jpg");
        let jpeg = std::fs::read(folder.path().join("cup.jpg")).unwrap();
        assert_eq!(image::guess_format(&jpeg).unwrap(), image::ImageFormat::Jpeg);
    });
}

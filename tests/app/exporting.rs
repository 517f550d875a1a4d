//! Exporting from the window.

use egui::accesskit::Role;
use egui_kittest::kittest::Queryable;

use crate::window::{click, open, samples, sees, wait_for, wait_until};

#[test]
fn what_is_on_screen_is_exported_and_an_existing_file_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("boxes.json");
    let mut window = open(Some(&samples().join("coffee.png")), "ssd-mobilenet-coco");
    wait_for(&mut window, "cup");
    for is_again in [false, true] {
        window.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::E);
        wait_for(&mut window, "Images on screen (1)");
        click(&mut window, "COCO");
        let field = window.get_by_role_and_label(Role::TextInput, "File to write");
        if !is_again {
            field.focus();
            field.type_text(target.to_str().unwrap());
        }
        window.step();
        click(&mut window, "Export now");
        if is_again {
            wait_for(&mut window, "already a file or folder of that name");
        } else {
            wait_for(&mut window, "1 image and");
            click(&mut window, "Close");
            wait_until(&mut window, "the notice to close", |window| {
                !sees(window, "Show the export in the file manager")
            });
        }
    }
    let written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(target).unwrap()).unwrap();
    assert_eq!(written["images"][0]["file_name"], "coffee.png");
    assert!(!written["annotations"].as_array().unwrap().is_empty());
}

use egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable;

use crate::window::{click, open, samples, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";

#[test]
fn the_palette_finds_a_command_and_carries_it_out() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    window.key_press_modifiers(Modifiers::COMMAND, Key::K);
    wait_for(&mut window, "Type a command");
    window.step();
    window.get_by_label("Type a command").type_text("last im");
    window.step();
    window.key_press(Key::Enter);
    wait_for(&mut window, "8 of 8 images");
    assert!(!sees(&window, "Type a command"));
}

#[test]
fn help_lists_the_keys_and_escape_closes_it() {
    let mut window = open(None, CLASSIFIER);
    window.key_press(Key::F1);
    wait_for(&mut window, "Keys and mouse");
    assert!(sees(&window, "Hide the boxes"));
    window.key_press(Key::Escape);
    wait_until(&mut window, "help to close", |window| {
        !sees(window, "Keys and mouse")
    });
}

#[test]
fn a_menu_entry_does_what_its_key_does() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    click(&mut window, "Go");
    click(&mut window, "Next image");
    wait_for(&mut window, "2 of 8 images");
    window.key_press_modifiers(Modifiers::ALT, Key::ArrowLeft);
    wait_for(&mut window, "1 of 8 images");
}

#[test]
fn the_interface_grows_with_its_key() {
    let mut window = open(None, CLASSIFIER);
    window.key_press_modifiers(Modifiers::COMMAND, Key::Plus);
    wait_until(&mut window, "a larger interface", |window| {
        (window.ctx.zoom_factor() - 1.1).abs() < 0.01
    });
}

#[test]
fn diagnostics_name_version_and_model_and_go_to_the_clipboard() {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "tiger cat");
    window.key_press(Key::F1);
    wait_for(&mut window, "Copy diagnostics");
    click(&mut window, "Copy diagnostics");
    wait_for(&mut window, "Copied the diagnostics");
}

#[test]
fn zoom_keys_change_the_picture_and_fit_brings_it_back() {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "tiger cat");
    window.key_press(Key::Num1);
    wait_for(&mut window, "100 %");
    window.key_press(Key::F);
    wait_until(&mut window, "the fitted picture", |window| {
        !sees(window, "100 %")
    });
}

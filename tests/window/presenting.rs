use egui::Key;

use crate::window::{folder_of, open, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";

#[test]
fn presentation_shows_labels_without_panels() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3%");
    assert!(sees(&window, "chelsea.png") && sees(&window, "Predict all"));
    window.key_press(Key::F11);
    wait_for(&mut window, "Escape exits");
    wait_for(&mut window, "tiger cat 38%");
    let path = folder.path().to_str().unwrap();
    assert!(!sees(&window, path) && !sees(&window, "chelsea.png"));
    assert!(!sees(&window, "Predict all"));
    let first = window.state().state().shown_sample();
    window.key_press(Key::ArrowRight);
    wait_until(&mut window, "the next image", |window| window.state().state().shown_sample() != first);
    assert!(sees(&window, "Space plays"), "only the user starts a slide show");
    window.key_press(Key::Space);
    wait_for(&mut window, "Space pauses");
    window.key_press(Key::Escape);
    wait_for(&mut window, "2 of 3 images");
}

#[test]
fn slide_show_wraps_around() {
    let folder = folder_of(2, "chelsea.png");
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "tiger cat 38.3%");
    window.key_press(Key::F11);
    wait_for(&mut window, "Escape exits");
    window.key_press(Key::Space);
    // The window's clock advances with its frames.
    for place in [1, 0] {
        wait_until(&mut window, "the next slide", move |window| {
            let state = window.state().state();
            let shown = state.shown_sample();
            shown.and_then(|shown| state.order().place_of(shown)) == Some(place)
        });
    }
}

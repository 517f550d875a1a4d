//! A newcomer's first session as the manual describes it, with its keys, clicks and drags counted: open ten images,
//! judge all of them, repair three boxes, add one, and export the corrected labels.

use egui::{Event, Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::domain::{BoundingBox, SampleId, Verdict};
use spotcheck::review::VerdictKind;
use spotcheck::window::app::App;
use spotcheck::window::state::{ImageJudgment, Overlay};

use crate::browsing::drop_on;
use crate::repairing::on_screen_of;
use crate::window::{click, folder_of, open, wait_for, wait_for_overlay, wait_until};

const IMAGES: u32 = 10;

/// The window, and what the user did so far. Words that are typed count one key per letter.
struct Session {
    window: Harness<'static, App>,
    keys: usize,
    clicks: usize,
    drags: usize,
}

impl Session {
    fn key(&mut self, key: Key) {
        self.combination(Modifiers::NONE, key);
    }

    fn combination(&mut self, modifiers: Modifiers, key: Key) {
        self.keys += 1;
        self.window.key_press_modifiers(modifiers, key);
        self.window.run_steps(3);
    }

    fn write(&mut self, text: &str) {
        for letter in text.chars() {
            self.keys += 1;
            self.window.event(Event::Text(letter.to_string()));
            self.window.run_steps(2);
        }
    }

    fn click(&mut self, label: &str) {
        self.clicks += 1;
        click(&mut self.window, label);
    }

    /// From one point of the image to another.
    fn drag(&mut self, name: &str, [from, to]: [[f32; 2]; 2]) {
        self.drags += 1;
        let [from, to] = [from, to].map(|[x, y]| on_screen_of(&self.window, name, x, y));
        self.window.hover_at(from);
        self.window.run_steps(1);
        self.window.drag_at(from);
        self.window.run_steps(1);
        self.window.hover_at(from + (to - from) / 2.0);
        self.window.run_steps(1);
        self.window.hover_at(to);
        self.window.run_steps(1);
        self.window.drop_at(to);
        self.window.run_steps(3);
    }

    /// Waits until this image is on screen with its boxes.
    fn wait_for_image(&mut self, number: u32) {
        wait_until(&mut self.window, "the next image", |window| {
            let state = window.state().state();
            state.shown_sample() == Some(SampleId(number))
                && state.shown.prediction.is_some()
                && window.state().image_is_complete()
        });
    }

    fn selected(&self) -> Option<(usize, BoundingBox)> {
        let shown = &self.window.state().state().shown;
        let index = shown.selected_box?;
        Some((index, shown.prediction.as_ref()?.detections()[index].bounds))
    }

    fn verdicts(&self, image: u32) -> Vec<Verdict> {
        let judgment = self.window.state().state().judgments.get(SampleId(image));
        judgment.into_iter().flat_map(ImageJudgment::verdicts).map(|(_, verdict)| verdict.clone()).collect()
    }
}

#[test]
fn newcomer_needs_few_keys_per_image() {
    let images = folder_of(IMAGES as usize, "coffee.png");
    let mut session = Session { window: open(None, "ssd-mobilenet-coco"), keys: 0, clicks: 0, drags: 0 };
    session.drags += 1;
    drop_on(&mut session.window, images.path());
    wait_for(&mut session.window, "1 predicted");
    session.click("Predict all");
    wait_for(&mut session.window, "10 predicted");
    wait_for(&mut session.window, "All saved");
    let opened = session.keys + session.clicks + session.drags;

    for number in 0..6 {
        session.wait_for_image(number);
        session.key(Key::A);
    }
    // A wrong class, then the next box.
    session.wait_for_image(6);
    session.key(Key::CloseBracket);
    session.key(Key::W);
    wait_for_overlay(&mut session.window, Overlay::WrongClass);
    session.write("bowl");
    session.key(Key::Enter);
    session.key(Key::A);
    // The first box is selected now: its corner, then the next box.
    session.wait_for_image(7);
    let (_, BoundingBox { x1, y1, .. }) = session.selected().expect("the first box is selected");
    session.drag("7-coffee.png", [[x1, y1], [x1 + 20.0, y1 + 10.0]]);
    session.key(Key::CloseBracket);
    session.key(Key::A);
    // The same wrong class again is the first in the list.
    session.wait_for_image(8);
    session.key(Key::W);
    wait_for_overlay(&mut session.window, Overlay::WrongClass);
    session.write("1");
    session.key(Key::A);
    // A missing object.
    session.wait_for_image(9);
    session.key(Key::A);
    session.key(Key::A);
    session.key(Key::B);
    session.drag("9-coffee.png", [[40.0, 30.0], [160.0, 90.0]]);
    wait_for_overlay(&mut session.window, Overlay::WrongClass);
    session.write("spoon");
    session.key(Key::Enter);
    session.key(Key::M);
    let judged = session.keys + session.clicks + session.drags - opened;
    let state = session.window.state().state();
    let open = (0..IMAGES).filter(|image| state.verdict_of(SampleId(*image)).is_none()).collect::<Vec<_>>();
    assert!(open.is_empty(), "not judged: {open:?}");
    let kinds = |image| session.verdicts(image).iter().map(VerdictKind::from).collect::<Vec<_>>();
    assert!(kinds(6).contains(&VerdictKind::WrongClass) && kinds(8).contains(&VerdictKind::WrongClass));
    assert!(kinds(7).contains(&VerdictKind::Moved));
    assert!(kinds(9).contains(&VerdictKind::Added) && kinds(9).contains(&VerdictKind::Complete));

    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("corrected.json");
    session.combination(Modifiers::COMMAND, Key::E);
    wait_for(&mut session.window, "Search results (10, with ");
    session.click("COCO");
    session.click("Corrected labels");
    // In place of the system's dialog for files, which takes a click and Enter.
    session.clicks += 2;
    let field = session.window.get_by_role_and_label(egui::accesskit::Role::TextInput, "Target file");
    field.focus();
    field.type_text(target.to_str().unwrap());
    session.window.step();
    session.click("Export now");
    wait_for(&mut session.window, "10 images and");
    let written: serde_json::Value = serde_json::from_slice(&std::fs::read(target).unwrap()).unwrap();
    assert_eq!(written["images"].as_array().unwrap().len(), 10);
    // A cup and a table each, and a spoon.
    assert_eq!(written["annotations"].as_array().unwrap().len(), 21);

    let Session { keys, clicks, drags, .. } = session;
    // The numbers in the manual (docs/reviewing.md).
    assert_eq!([opened, judged, keys + clicks + drags], [2, 31, 39]);
}

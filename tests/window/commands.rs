use egui::accesskit::{Role, Toggled};
use egui::{AreaState, Id, Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, Command, Overlay};
use strum::VariantArray;

use crate::window::{click, home_with_runtime, open, open_at, samples, sees, wait_for, wait_until};

const CLASSIFIER: &str = "efficientnet-lite0";

#[test]
fn palette_runs_a_command() {
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
fn palette_keeps_its_height() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    window.key_press_modifiers(Modifiers::COMMAND, Key::K);
    wait_for(&mut window, "Type a command");
    window.run_steps(3);
    let height = |window: &Harness<'static, App>| {
        let area = AreaState::load(&window.ctx, Id::unique("command palette"));
        area.unwrap().size.unwrap().y
    };
    let at_first = height(&window);
    assert!(at_first > 300.0, "{at_first}");
    window.get_by_label("Type a command").type_text("no such thing");
    wait_for(&mut window, "No matching command");
    window.run_steps(3);
    assert!(height(&window) < 100.0);
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.step();
    window.key_press(Key::Backspace);
    window.run_steps(3);
    assert!((height(&window) - at_first).abs() < 1.0);
}

#[test]
fn palette_preselects_available_commands() {
    let mut window = open(None, CLASSIFIER);
    window.key_press_modifiers(Modifiers::COMMAND, Key::K);
    wait_for(&mut window, "Type a command");
    // What Enter would select: the pressed lines, and whether they are disabled.
    let preselected = |window: &Harness<'static, App>| -> Vec<(String, bool)> {
        let lines = window.query_all_by_role(Role::Button);
        let lines = lines.map(|line| line.accesskit_node());
        lines
            .filter(|line| line.toggled() == Some(Toggled::True))
            .filter_map(|line| Some((line.label()?, line.is_disabled())))
            .filter(|(name, _)| Action::VARIANTS.iter().any(|action| name.starts_with(action.label())))
            .collect()
    };
    let mut type_text = |text: &str| {
        window.key_press_modifiers(Modifiers::COMMAND, Key::A);
        window.step();
        window.get_by_label("Type a command").type_text(text);
        window.run_steps(2);
        preselected(&window)
    };
    // Nothing is open that could be viewed, compared or exported.
    let state = spotcheck::window::state::State::default();
    for text in ["e", "image", "export", "o"] {
        let lines = type_text(text);
        assert!(lines.iter().all(|(_, is_disabled)| !is_disabled), "{lines:?}");
        let can_be_done = |action: &&Action| {
            let label = action.label().to_lowercase();
            label.contains(text) && action.check(&state).is_ok()
        };
        let is_any = Action::VARIANTS.iter().any(|action| can_be_done(&action));
        assert_eq!(lines.len(), usize::from(is_any), "{text}: {lines:?}");
    }
    // Enter does nothing if there is no match.
    assert_eq!(type_text("export comparison"), []);
    window.key_press(Key::Enter);
    window.run_steps(2);
    assert_eq!(window.state().state().overlay, Overlay::Palette);
}

#[test]
fn help_lists_keys_and_closes_with_escape() {
    let mut window = open(None, CLASSIFIER);
    window.key_press(Key::F1);
    wait_for(&mut window, "Keys and mouse");
    assert!(sees(&window, "Hide the boxes"));
    window.key_press(Key::Escape);
    wait_until(&mut window, "help to close", |window| !sees(window, "Keys and mouse"));
}

#[test]
fn menu_entry_and_key_do_the_same() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    click(&mut window, "Go");
    click(&mut window, "Next image");
    wait_for(&mut window, "2 of 8 images");
    window.key_press_modifiers(Modifiers::ALT, Key::ArrowLeft);
    wait_for(&mut window, "1 of 8 images");
}

#[test]
fn interface_scales_by_key() {
    let mut window = open(None, CLASSIFIER);
    // A separate key, or Equals with Shift; systems differ in which one they report.
    let with_shift = Modifiers::COMMAND | Modifiers::SHIFT;
    for (step, (modifiers, key)) in
        [(Modifiers::COMMAND, Key::Plus), (with_shift, Key::Plus), (with_shift, Key::Equals)].into_iter().enumerate()
    {
        window.key_press_modifiers(modifiers, key);
        wait_until(&mut window, "a larger interface", |window| {
            let wanted = 1.0 + 0.1 * (step + 1) as f32;
            (window.ctx.zoom_factor() - wanted).abs() < 0.01
        });
    }
}

#[test]
fn diagnostics_are_copied() {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "tiger cat");
    window.key_press(Key::F1);
    wait_for(&mut window, "Copy diagnostics");
    click(&mut window, "Copy diagnostics");
    wait_for(&mut window, "Copied the diagnostics");
}

#[test]
fn update_offers_the_list_of_changes() {
    let home = tempfile::tempdir().unwrap();
    let dirs = home_with_runtime(home.path());
    std::fs::create_dir_all(&dirs.config).unwrap();
    std::fs::write(dirs.config.join("settings.json"), r#"{"seen_version":"0.0.1"}"#).unwrap();
    let mut window = open_at(dirs, |builder| builder);
    wait_for(&mut window, concat!("Spotcheck was updated to ", env!("CARGO_PKG_VERSION")));
    click(&mut window, "What’s new");
    wait_for(&mut window, "First numbered version.");
    window.key_press(Key::Escape);
    wait_until(&mut window, "the dialog to close", |window| !sees(window, "First numbered version."));
}

#[test]
fn zoom_keys_and_fit_change_the_view() {
    let mut window = open(Some(&samples().join("chelsea.png")), CLASSIFIER);
    wait_for(&mut window, "tiger cat");
    window.key_press(Key::Num1);
    wait_for(&mut window, "100%");
    window.key_press(Key::F);
    wait_until(&mut window, "the fitted image", |window| !sees(window, "100%"));
}

#[test]
fn dialogs_block_keys() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    wait_for(&mut window, "1 predicted");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    let before = window.state().state().shown_sample();
    for overlay in [Overlay::Help, Overlay::Export, Overlay::Jobs] {
        window.state_mut().command(Command::SetOverlay(overlay));
        window.run_steps(3);
        for (modifiers, key) in [
            (Modifiers::COMMAND, Key::A),
            (Modifiers::NONE, Key::R),
            (Modifiers::ALT, Key::ArrowRight),
            (Modifiers::NONE, Key::ArrowDown),
            (Modifiers::COMMAND, Key::B),
            (Modifiers::COMMAND, Key::K),
            (Modifiers::COMMAND, Key::G),
            (Modifiers::NONE, Key::F11),
        ] {
            window.key_press_modifiers(modifiers, key);
            window.run_steps(2);
            let state = window.state().state();
            assert_eq!(state.overlay, overlay, "{key:?}");
            assert_eq!(state.selection.selected().len(), 1, "{key:?}");
            assert_eq!(state.shown_sample(), before, "{key:?}");
            assert_eq!(state.judgments.iter().count(), 0, "{key:?}");
            assert!(state.presenting.is_none(), "{key:?}");
            assert!(!state.settings.thumbnails_only, "{key:?}");
        }
        window.state_mut().command(Command::SetOverlay(Overlay::None));
        window.run_steps(2);
    }
    // The same keys work once the dialog is closed.
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.run_steps(2);
    assert_eq!(window.state().state().selection.selected().len(), 8);
}

//! The keys and mouse gestures, and the changes of this version.

use strum::VariantArray;

use crate::window::ui::keys;
use crate::window::ui::prelude::*;

/// Keys and gestures without an action of their own.
const GESTURES: [(&str, &str); 15] = [
    ("Arrow keys, Page up and down", "Browse the images"),
    ("Shift with these", "Extend the selection"),
    ("Ctrl or Shift click", "Select individual images or a range"),
    ("Wheel or pinch", "Zoom at the pointer"),
    ("Drag", "Move the image"),
    ("Drag on the map", "Select the images inside the line; with Shift: move the map"),
    ("Double click", "Switch between fit and actual size"),
    ("Click on a box", "Select it on the image and in the list"),
    ("Ctrl and arrow keys", "Move the selected box by a pixel, or by half a pixel from a zoom of 200% on"),
    ("Ctrl, Shift and arrow keys", "Move only its right and bottom edges"),
    ("Alt, Shift and arrow keys", "Move only its left and top edges"),
    ("Hold H", "Hide the boxes"),
    ("1 to 9, when asked for a class", "Choose it"),
    ("Ctrl and 1 to 9, when asked for a class", "Assign the digit to it, or free the digit"),
    ("Escape", "Close dialogs; go back from a box to its image, or from several images to one"),
];

pub(crate) fn help_ui(ctx: &Context, state: &State, commands: &mut Commands) {
    if state.overlay != Overlay::Help {
        return;
    }
    dialog_ui(ctx, "help", 560.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        heading_ui(ui, "Keys and mouse", "");
        let height = (ui.ctx().content_rect().height() - 240.0).max(160.0);
        ScrollArea::vertical().max_height(height).show(ui, |ui| keys_ui(ui, state));
        ui.add_space(8.0);
        let version = format!("Spotcheck {}", env!("CARGO_PKG_VERSION"));
        ui.weak(version);
        ui.horizontal(|ui| {
            action_button_ui(ui, state, Action::CopyDiagnostics, commands);
            action_button_ui(ui, state, Action::OpenLog, commands);
            command_button_ui(ui, "Close", commands, || Command::CLOSE_OVERLAY);
        });
    });
}

/// The changelog, from its newest entry to the end of this version's section.
pub(crate) fn whats_new_ui(ctx: &Context, state: &State, commands: &mut Commands) {
    if state.overlay != Overlay::WhatsNew {
        return;
    }
    dialog_ui(ctx, "whats-new", 640.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        heading_ui(ui, concat!("What’s new in Spotcheck ", env!("CARGO_PKG_VERSION")), "");
        let height = (ui.ctx().content_rect().height() - 200.0).max(160.0);
        ScrollArea::vertical().max_height(height).show(ui, |ui| {
            for (level, text) in entries(changes(CHANGELOG, env!("CARGO_PKG_VERSION"))) {
                if level == 0 {
                    ui.horizontal_top(|ui| {
                        ui.label("•");
                        wrapped_ui(ui, text);
                    });
                } else {
                    ui.add_space(6.0);
                    ui.label(strong(text));
                }
            }
        });
        ui.add_space(8.0);
        command_button_ui(ui, "Close", commands, || Command::CLOSE_OVERLAY);
    });
}

const CHANGELOG: &str = include_str!("../../../CHANGELOG.md");

/// The sections of the changelog down to that of a version.
fn changes<'a>(changelog: &'a str, version: &str) -> &'a str {
    let start = changelog.find("\n## ").unwrap_or(0);
    let own = changelog.find(&format!("\n## {version} "));
    let end = own.and_then(|own| changelog[own + 1..].find("\n## ").map(|length| own + 1 + length));
    &changelog[start..end.unwrap_or(changelog.len())]
}

/// Headings with their level from 2 on, and list entries and paragraphs with level 0, each on one line.
fn entries(markdown: &str) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for line in markdown.lines() {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let text = line.trim_start_matches(['#', '-']).trim();
        let starts = level > 0 || line.starts_with("- ") || !goes_on;
        match entries.last_mut() {
            _ if text.is_empty() => {}
            Some((_, entry)) if !starts => entry.extend([" ", text]),
            _ => entries.push((level, text.to_owned())),
        }
        goes_on = !text.is_empty() && level == 0;
    }
    entries
}

fn keys_ui(ui: &mut Ui, state: &State) {
    Grid::new("keys").num_columns(2).spacing(vec2(24.0, 5.0)).show(ui, |ui| {
        for (gesture, meaning) in GESTURES {
            ui.label(gesture);
            ui.weak(meaning);
            ui.end_row();
        }
        for (digit, class) in state.class_digits() {
            ui.label(format!("{digit}, when asked for a class"));
            ui.weak(format!("Choose “{class}”"));
            ui.end_row();
        }
        for &action in Action::VARIANTS {
            if let Some(keys) = keys::shortcut_text(ui.ctx(), action) {
                ui.label(keys);
                ui.weak(action.label().trim_end_matches('…'));
                ui.end_row();
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_end_with_the_section_of_the_version() {
        let changelog = "# Changelog\n\n## Unreleased\n\n- Newer\n  still.\n\n## 0.2.0 - 2026-11-22\n\n### Added\n- One.\n\n\
                         ## 0.1.0 - 2026-11-01\n- Old.\n";
        let expected = [(2, "Unreleased"), (0, "Newer still."), (2, "0.2.0 - 2026-11-22"), (3, "Added"), (0, "One.")];
        let expected = expected.map(|(level, text)| (level, text.to_owned()));
        assert_eq!(entries(changes(changelog, "0.2.0")), expected);
    }
}

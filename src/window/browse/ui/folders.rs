//! The folder tree below the thumbnails: the current folder is a term of the search.

use eframe::egui::{Modifiers, Panel};

use crate::review::{Folder, FolderCounts, folder_in, folder_term, with_term, without_folders};
use crate::window::ui::prelude::*;

pub(crate) fn folders_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let least = 3.0 * TREE_ROW_HEIGHT;
    Panel::bottom("folders").resizable(true).default_size(180.0).size_range(least..=600.0).show(ui, |ui| {
        ui.set_min_height(ui.available_height());
        ui.add_space(4.0);
        let rows = state.folders.rows();
        let size = (ui.available_height(), rows.len());
        let mut typed = Commands::default();
        let take_keys = |ui: &Ui| take_keys(ui, state, &mut typed);
        tree_rows_ui(ui, (Id::unique("folder tree"), "Folders"), size, take_keys, |ui, row| {
            folder_ui(ui, state, rows[row], commands)
        });
        for command in typed.into_vec() {
            commands.push(command);
        }
    });
}

/// One line; true if it was clicked.
fn folder_ui(ui: &mut Ui, state: &State, place: usize, commands: &mut Commands) -> bool {
    let Some(folder) = state.folders.tree().get(place) else {
        return false;
    };
    let all = state.arranging.folders().map(|folders| &folders.counts);
    let counts = all.and_then(|counts| counts.get(place)).copied().unwrap_or_default();
    let name = if folder.parent.is_none() { "All folders" } else { folder.name() };
    let has_folders = folder.end > place + 1;
    let is_open = state.folders.is_open(folder);
    let line = TreeLine {
        id: Id::unique(("folder", &*folder.path)),
        depth: folder.depth,
        name,
        path: folder.path.to_string(),
        label: format!("{name}, {}", counts_text(counts)),
        note: grouped(counts.images as usize),
        is_open: (has_folders && folder.parent.is_some()).then_some(is_open),
        is_current: is_current(state, folder),
    };
    let click = line.ui(ui);
    if click.is_toggled {
        commands.push(BrowseCommand::SetFolderOpen(folder.path.clone(), !is_open));
    } else if click.response.clicked() {
        commands.push(search_in(state, folder));
    }
    menu_ui(&click.response, state, folder, commands);
    let path = if folder.path.is_empty() { name } else { &*folder.path };
    let response = click.response.on_hover_text(format!("{path}\n{}", counts_text(counts)));
    response.clicked() || click.is_toggled
}

/// The context menu of a folder, which does not change the search by itself.
fn menu_ui(response: &Response, state: &State, folder: &Folder, commands: &mut Commands) {
    response.context_menu(|ui| {
        let search = if folder.parent.is_none() { "Search in all folders" } else { "Search in this folder" };
        ui.button(search).on_click(commands, || search_in(state, folder));
        ui.separator();
        let path = || folder.path.clone();
        ui.button(Action::CopyFolderPath.label()).on_click(commands, || BrowseCommand::CopyFolderPath(path()));
        let check = Action::RevealFolder.check(state);
        ui.add_enabled(check.is_ok(), Button::new(Action::RevealFolder.label()))
            .on_disabled_hover_text(check.err().unwrap_or_default())
            .on_click(commands, || BrowseCommand::RevealFolder(path()));
    });
}

/// “128 images, 12 judged, 3 with errors”
fn counts_text(counts: FolderCounts) -> String {
    let mut texts = vec![counted(counts.images as usize, "image", "images")];
    let more = [(counts.judged, "judged"), (counts.wrong, "with errors")].into_iter().filter(|(count, _)| *count > 0);
    texts.extend(more.map(|(count, what)| format!("{} {what}", grouped(count as usize))));
    texts.join(", ")
}

/// Whether the search is limited to this folder.
fn is_current(state: &State, folder: &Folder) -> bool {
    folder_in(state.arranging.text()).unwrap_or_default().eq_ignore_ascii_case(&folder.path)
}

/// Searches in this folder instead of another one; the other terms stay.
fn search_in(state: &State, folder: &Folder) -> SearchCommand {
    let others = without_folders(state.arranging.text());
    let is_all = folder.parent.is_none();
    SearchCommand::SetQuery(if is_all { others } else { with_term(&others, &folder_term(&folder.path)) })
}

/// The keys of the tree while it has the focus. Returns the row to scroll to.
fn take_keys(ui: &Ui, state: &State, commands: &mut Commands) -> Option<usize> {
    const KEYS: [Key; 6] = [Key::ArrowDown, Key::ArrowUp, Key::Home, Key::End, Key::ArrowRight, Key::ArrowLeft];
    let take = |key: &Key| ui.input_mut(|input| input.consume_key(Modifiers::NONE, *key));
    let key = KEYS.into_iter().find(take)?;
    let (tree, rows) = (state.folders.tree(), state.folders.rows());
    let current = folder_in(state.arranging.text()).unwrap_or_default();
    let row = rows.iter().position(|place| tree[*place].path.eq_ignore_ascii_case(&current)).unwrap_or(0);
    let place = *rows.get(row)?;
    let folder = &tree[place];
    let has_folders = folder.end > place + 1;
    let is_open = state.folders.is_open(folder);
    let mut set_open = |is_open| {
        commands.push(BrowseCommand::SetFolderOpen(folder.path.clone(), is_open));
        None
    };
    let target = match key {
        Key::ArrowDown => Some(row + 1),
        Key::ArrowUp => row.checked_sub(1),
        Key::Home => Some(0),
        Key::End => rows.len().checked_sub(1),
        Key::ArrowRight if has_folders && !is_open => set_open(true),
        Key::ArrowRight if has_folders => Some(row + 1),
        Key::ArrowLeft if has_folders && is_open && folder.parent.is_some() => set_open(false),
        Key::ArrowLeft => folder.parent.and_then(|parent| rows.binary_search(&parent).ok()),
        _ => None,
    };
    let target = target.filter(|row| *row < rows.len())?;
    commands.push(search_in(state, &tree[rows[target]]));
    Some(target)
}

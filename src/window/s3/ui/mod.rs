//! The dialog for finding a folder in S3: an address, the credentials, and the tree of buckets and folders.

pub(crate) mod access;
pub(crate) mod sign_in;
mod tree;

use access::AccessMemory;
use eframe::egui::Modifiers;
use tree::TreeMemory;

use crate::domain::{S3Access, S3Address, S3Layout, S3Link, S3Place};
use crate::window::state::S3Command;
use crate::window::ui::prelude::*;

const WIDTH: f32 = 720.0;
/// The height of what is below the tree: the layout and the buttons.
const FOOTER_HEIGHT: f32 = 84.0;
const ADDRESS: &str = "S3 address";
const HINT: &str = "s3://bucket/folder/, or the URL of an object or of the AWS console";

#[derive(Default)]
pub(crate) struct OpenS3Memory {
    /// The serial of the request that was used last.
    taken_over: u64,
    address: String,
    layout: S3Layout,
    access: AccessMemory,
    tree: TreeMemory,
}

pub(crate) fn open_s3_ui(ctx: &Context, state: &State, memory: &mut OpenS3Memory, commands: &mut Commands) {
    if state.overlay != Overlay::OpenS3 {
        return;
    }
    let start = &state.s3.start;
    let is_new = memory.taken_over != start.serial;
    if is_new {
        memory.taken_over = start.serial;
        memory.address.clone_from(&start.address);
        memory.layout = start.layout;
    }
    renew_in_time(ctx, &state.s3.access, state, commands);
    dialog_ui(ctx, "open s3", WIDTH, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        let window_height = ctx.content_rect().height();
        let room = window_height - FOOTER_HEIGHT - 60.0;
        // In a low window, everything except the buttons scrolls.
        let request = ScrollArea::vertical()
            .max_height(room)
            .min_scrolled_height(room)
            .show(ui, |ui| {
                let request = contents_ui(ui, state, memory, is_new, commands);
                let height = ui.min_rect().height() + FOOTER_HEIGHT;
                memory.tree.fit(height, window_height);
                request
            })
            .inner;
        footer_ui(ui, memory, &request, commands);
    });
}

/// The access to open with, and whether to open now.
struct OpenRequest {
    access: S3Access,
    is_final: bool,
}

fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut OpenS3Memory,
    is_new: bool,
    commands: &mut Commands,
) -> OpenRequest {
    heading_ui(ui, "Open S3", "");
    // As the address changes it in this frame.
    let mut access = state.s3.access.clone();
    let is_entered = address_ui(ui, state, memory, is_new, &mut access, commands);
    ui.add_space(6.0);
    access::access_ui(ui, state, &mut memory.access, commands);
    ui.add_space(6.0);
    let current = S3Address::parse(&memory.address).ok();
    let mut request = OpenRequest { access, is_final: is_entered };
    match tree::tree_ui(ui, state, &mut memory.tree, current.as_ref(), commands) {
        Some(tree::Picked::Folder(folder)) => memory.address = folder.to_string(),
        Some(tree::Picked::Open) => request.is_final = true,
        None => {}
    }
    request
}

fn footer_ui(ui: &mut Ui, memory: &mut OpenS3Memory, request: &OpenRequest, commands: &mut Commands) {
    ui.add_space(8.0);
    ui.horizontal_wrapped(|ui| {
        let layouts = [(S3Layout::Flat, "With subfolders"), (S3Layout::Folder, "This folder only")];
        for (layout, name) in layouts {
            radio_ui(ui, &mut memory.layout, layout, name);
        }
    });
    ui.add_space(8.0);
    buttons_ui(ui, memory, request, commands);
}

/// The field, the interpretation of its text, and recent addresses. Returns true if Enter was pressed in it.
fn address_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut OpenS3Memory,
    is_new: bool,
    access: &mut S3Access,
    commands: &mut Commands,
) -> bool {
    let mut response = None;
    ends_ui(
        ui,
        "address and its buttons",
        memory,
        |ui, memory| {
            response = Some(Field::new(ADDRESS).hint(HINT).text_ui(ui, &mut memory.address));
        },
        |ui, memory| {
            if !state.settings.recent_places.is_empty() {
                ui.menu_button("Recent", |ui| recent_ui(ui, state, memory, commands));
            }
            let link = S3Link::parse(&memory.address);
            let browse = ui
                .add_enabled(link.is_ok(), Button::new("Browse"))
                .on_hover_text("Shows this folder in the tree, even if the buckets cannot be listed");
            if let (true, Ok(link)) = (browse.clicked(), link) {
                memory.address = link.address.to_string();
                *access = access_of(access, &link);
                commands.push(S3Command::SetAccess(access.clone()));
                commands.push(S3Command::BrowseTo(link.address));
            }
        },
    );
    let Some(field) = response else {
        return false;
    };
    if is_new {
        focus_whole_text(&field, &memory.address);
    }
    let enter = enter_pressed(&field);
    // As in the palette, the arrow key moves from the field to what is below it.
    if field.has_focus() && ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::ArrowDown)) {
        memory.tree.take_focus();
    }
    if field.lost_focus()
        && let Ok(link) = S3Link::parse(&memory.address)
    {
        // From here on, the address is normalized, and the fields contain the rest.
        memory.address = link.address.to_string();
        *access = access_of(access, &link);
        commands.push(S3Command::SetAccess(access.clone()));
    }
    understood_ui(ui, &memory.address);
    enter
}

/// The access, with the parts of a link.
pub(crate) fn access_of(known: &S3Access, link: &S3Link) -> S3Access {
    S3Access {
        endpoint: link.endpoint.clone().or_else(|| known.endpoint.clone()),
        region: link.region.clone().or_else(|| known.region.clone()),
        ..known.clone()
    }
}

fn understood_ui(ui: &mut Ui, address: &str) {
    if address.trim().is_empty() {
        ui.weak("Enter or paste an address, or choose a folder below");
        return;
    }
    match S3Link::parse(address) {
        Ok(link) => drop(ui.weak(understood(&link))),
        Err(error) => problem_ui(ui, error),
    }
}

/// “Bucket photos, folder 2024/may/, in eu-west-1”.
fn understood(link: &S3Link) -> String {
    let S3Address { bucket, prefix } = &link.address;
    let mut parts = vec![format!("Bucket {bucket}")];
    parts.push(match prefix.as_str() {
        "" => "whole bucket".to_owned(),
        folder if folder.ends_with('/') => format!("folder {folder}"),
        other => format!("object or folder {other}"),
    });
    if let Some(region) = &link.region {
        parts.push(format!("in {region}"));
    }
    if let Some(endpoint) = &link.endpoint {
        parts.push(format!("at {endpoint}"));
    }
    parts.join(", ")
}

fn recent_ui(ui: &mut Ui, state: &State, memory: &mut OpenS3Memory, commands: &mut Commands) {
    ui.set_min_width(320.0);
    for place in &state.settings.recent_places {
        let name = place.address.to_string();
        let button = Button::new(&name).right_text(RichText::new(how(&place.access)).weak());
        match recent_line_ui(ui, button, &name) {
            Some(RecentLine::Chosen) => {
                memory.address = name;
                memory.layout = place.layout;
                commands.push(S3Command::SetAccess(place.access.clone()));
            }
            Some(RecentLine::Forgotten) => {
                commands.push(BrowseCommand::ForgetRecentPlace(Box::new(place.clone())));
            }
            None => {}
        }
    }
}

/// “profile work, at `http://127.0.0.1:8333`”.
fn how(access: &S3Access) -> String {
    match &access.endpoint {
        Some(endpoint) => format!("{}, at {endpoint}", access.credentials),
        None => access.credentials.to_string(),
    }
}

fn buttons_ui(ui: &mut Ui, memory: &OpenS3Memory, request: &OpenRequest, commands: &mut Commands) {
    let link = S3Link::parse(&memory.address);
    let is_ready = link.is_ok() && memory.access.is_valid();
    ui.horizontal(|ui| {
        let missing = "Enter the address of a bucket or folder, or choose one in the tree";
        let open = primary_button_ui(ui, "Open this address", (!is_ready).then_some(missing));
        if let (true, Ok(link)) = (open.clicked() || (request.is_final && is_ready), link) {
            commands.push(BrowseCommand::OpenPlace(Box::new(S3Place {
                access: memory.access.with_drafts(access_of(&request.access, &link)),
                address: link.address,
                layout: memory.layout,
            })));
        }
        command_button_ui(ui, "Cancel", commands, || Command::CLOSE_OVERLAY);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_address_is_described() {
        for (address, expected) in [
            ("s3://photos", "Bucket photos, whole bucket"),
            (
                "https://photos.s3.eu-west-1.amazonaws.com/a/b.jpg",
                "Bucket photos, object or folder a/b.jpg, in eu-west-1",
            ),
            ("http://127.0.0.1:8333/photos/a/", "Bucket photos, folder a/, at http://127.0.0.1:8333"),
        ] {
            assert_eq!(understood(&S3Link::parse(address).unwrap()), expected);
        }
    }
}

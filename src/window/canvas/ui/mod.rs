//! The canvas: the image, its predictions, and the bars above and below it.

pub(crate) mod boxes;
pub(crate) mod editing;
pub(crate) mod labels;
pub(crate) mod magnifier;
pub(crate) mod placement;
pub(crate) mod presentation;

use eframe::egui::containers::menu::{MenuButton, MenuConfig};
use eframe::egui::{CentralPanel, Margin, Panel, PopupCloseBehavior};

use crate::domain::{Look, SampleId, problem_of};
use crate::window::comparison::ui::canvas::{DIVIDER_REACH, Side, divider_ui};
use crate::window::explain::ui::heat_ui;
use crate::window::state::{Display, Listing, ViewNumber};
use crate::window::ui::menu_bar::IMAGE_MENU;
use crate::window::ui::prelude::*;
use crate::window::ui::textures::Textures;
use crate::window::{browse, comparison};

pub(crate) use self::labels::Labels;
pub(crate) use self::placement::Placement;

pub(crate) fn canvas_ui(ui: &mut Ui, state: &State, textures: &mut Textures, commands: &mut Commands) {
    let fill = theme::canvas_fill(ui.visuals());
    CentralPanel::default().frame(Frame::new().fill(fill)).show(ui, |ui| {
        if state.shown_sample().is_none() {
            empty_ui(ui, state, commands);
            return;
        }
        title_bar_ui(ui, state, commands);
        let pointer = image_bar_ui(ui, state, textures, commands);
        image_ui(ui, state, textures, pointer, commands);
    });
}

/// What to do while no image is shown.
fn empty_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let listing = state.source.as_ref().map(|source| &source.listing);
    ui.vertical_centered(|ui| {
        ui.add_space((ui.available_height() * 0.34).max(20.0));
        match listing {
            None => {
                ui.label(strong("See what a vision model predicts").size(24.0));
                ui.add_space(6.0);
                ui.weak("Open a local or S3 folder of images, or drop one here");
                ui.add_space(18.0);
                row_of_buttons_ui(ui, state, commands);
            }
            Some(Listing::Running) => {
                ui.label(strong("Looking for images…").size(18.0));
            }
            Some(Listing::Done) => {
                ui.label(strong("No images in this folder").size(18.0));
                ui.add_space(6.0);
                ui.weak("Supported: JPEG, PNG, WebP, BMP, TIFF, GIF and TFRecord, including subfolders");
                ui.add_space(18.0);
                row_of_buttons_ui(ui, state, commands);
            }
            Some(Listing::Failed(reason)) => {
                ui.label(strong("This cannot be opened").size(18.0));
                ui.add_space(6.0);
                ui.label(reason);
                ui.add_space(18.0);
                row_of_buttons_ui(ui, state, commands);
            }
        }
    });
}

fn row_of_buttons_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    // Centered manually, because a horizontal layout inside a centered one is as wide as the panel.
    let width = 410.0;
    ui.allocate_ui_with_layout(vec2(width, 32.0), Layout::left_to_right(Align::Center), |ui| {
        ui.set_min_width(width);
        ui.spacing_mut().button_padding = vec2(16.0, 8.0);
        primary_action_button_ui(ui, state, Action::OpenFolder, commands);
        action_button_ui(ui, state, Action::OpenS3, commands);
        action_button_ui(ui, state, Action::OpenSamples, commands);
    });
}

/// A name up to this length is never shortened for the position next to it, in points.
const NAME_WIDTH: f32 = 160.0;

/// Below this width, there is no room for the zoom between its buttons, in points.
const ZOOM_BAR_WIDTH: f32 = 250.0;

/// From this width, the bar has room for “Draw box”, in points.
const DRAW_BAR_WIDTH: f32 = 480.0;

/// From this width, the bar also has room for “Mark complete”, in points.
const COMPLETE_BAR_WIDTH: f32 = 620.0;

fn bar_frame() -> Frame {
    Frame::new().inner_margin(Margin::symmetric(10, 6))
}

/// Above the image: its position among all images, and its actions.
fn title_bar_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let fill = ui.visuals().panel_fill;
    Panel::top("canvas title").frame(bar_frame().fill(fill)).show(ui, |ui| {
        // What does not fit between two wide panels is in the menus.
        let width = ui.available_width();
        let name_ui = |ui: &mut Ui, commands: &mut Commands| {
            action_icon_ui(ui, state, Action::PreviousImage, "←", commands);
            action_icon_ui(ui, state, Action::NextImage, "→", commands);
            name_ui(ui, state);
        };
        ends_ui(ui, "title of the image", commands, name_ui, |ui, commands| {
            if width > 340.0 {
                predict_ui(ui, state, commands);
            }
            if width > 600.0 {
                action_button_ui(ui, state, Action::CopyImage, commands);
            }
        });
    });
}

/// As wide with a prediction as without one: nothing next to it moves.
fn predict_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    if state.shown.prediction.is_none() {
        primary_action_button_ui(ui, state, Action::PredictShown, commands);
        return;
    }
    let font = FontId::new(TextStyle::Button.resolve(ui.style()).size, theme::strong_family());
    let label =
        ui.painter().layout_no_wrap(Action::PredictShown.label_in(state).to_owned(), font, Color32::PLACEHOLDER);
    let width = label.size().x + 2.0 * ui.spacing().button_padding.x;
    let again = if state.uses_encoder() { "Embed again" } else { "Predict again" };
    let button = Button::new(again).min_size(vec2(width, 0.0));
    button_of_action_ui(ui, state, Action::PredictShown, button, commands);
}

fn name_ui(ui: &mut Ui, state: &State) {
    let Some(sample) = state.shown_sample() else {
        return;
    };
    let Some(entry) = state.samples.get(sample) else {
        return;
    };
    let size = TextStyle::Body.resolve(ui.style()).size;
    let (font, color) = (FontId::new(size, theme::strong_family()), ui.visuals().text_color());
    let name = |ui: &Ui| {
        let width = ui.available_width();
        elided_in_middle(ui, &entry.name, &font, color, width)
    };
    // The name takes precedence over the position, which is also in its tooltip.
    let room = ui.available_width() - name(ui).size().x.min(NAME_WIDTH) - ui.spacing().item_spacing.x;
    let [position, short] = position_texts(state, sample);
    if let Some(text) = fitting(ui, [&position, &short], room) {
        ui.weak(text);
    }
    let shown = ui.add(Label::new(name(ui)));
    let shown = shown.on_hover_text(format!("{}\n{position}", entry.uri.as_str()));
    shown.widget_info(|| WidgetInfo::labeled(Role::Label, true, entry.name.as_str()));
}

/// The position of the image, in full and as short as possible.
pub(crate) fn position_texts(state: &State, sample: SampleId) -> [String; 2] {
    let order = state.order();
    let Some(place) = order.place_of(sample) else {
        return ["not in the search results".to_owned(), "not found".to_owned()];
    };
    let (number, count) = (grouped(place + 1), order.len());
    let full = if state.arranging.is_filtered() {
        format!("{number} of {} results", grouped(count))
    } else {
        format!("{number} of {}", image_count(count))
    };
    [full, format!("{number}/{}", grouped(count))]
}

/// The line below the image: what is under the pointer, and the zoom. Returns the pointer's position in the last frame.
fn image_bar_ui(ui: &mut Ui, state: &State, textures: &Textures, commands: &mut Commands) -> Option<[u32; 2]> {
    let fill = ui.visuals().panel_fill;
    let under_pointer: Option<[u32; 2]> = ui.data(|data| data.get_temp(pointer_id()));
    Panel::bottom("canvas bar").frame(bar_frame().fill(fill)).show(ui, |ui| {
        let width = ui.available_width();
        let pixel_ui = |ui: &mut Ui, _: &mut _| match state.shown.drawing {
            Some(_) => {
                let hints = ["Drag over the object. Escape: cancel", "Drag over the object", ""];
                let hint = fitting(ui, hints, ui.available_width()).unwrap_or_default();
                ui.weak(hint);
            }
            None => pixel_ui(ui, textures, under_pointer),
        };
        ends_ui(ui, "pixel and zoom", commands, pixel_ui, |ui, commands| {
            if width > DRAW_BAR_WIDTH && state.shown.prediction.as_ref().is_some_and(|shown| shown.is_of_boxes()) {
                let button = Button::new(Action::DrawBox.label()).selected(state.shown.drawing.is_some());
                button_of_action_ui(ui, state, Action::DrawBox, button, commands);
                if width > COMPLETE_BAR_WIDTH {
                    let is_on = Action::MarkComplete.is_on(state) == Some(true);
                    let button = Button::new(Action::MarkComplete.label()).selected(is_on);
                    button_of_action_ui(ui, state, Action::MarkComplete, button, commands);
                }
                ui.add_space(6.0);
            }
            if width > DRAW_BAR_WIDTH || state.settings.look() != Look::default() {
                look_ui(ui, state, commands);
                ui.add_space(6.0);
            }
            action_icon_ui(ui, state, Action::ZoomOut, "−", commands);
            if width > ZOOM_BAR_WIDTH {
                let percent = zoom_percent(ui.ctx());
                let percent = percent.map_or_else(String::new, |zoom| format!("{zoom:.0}%"));
                ui.add_sized([52.0, 18.0], Label::new(percent));
            }
            action_icon_ui(ui, state, Action::ZoomIn, "+", commands);
            action_icon_ui(ui, state, Action::FitImage, "Fit", commands);
            action_icon_ui(ui, state, Action::ActualSize, "1:1", commands);
        });
    });
    under_pointer
}

/// Brightness, contrast and outlines in a menu, which shows their values if the image is not drawn as it is.
fn look_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let look = state.settings.look();
    let config = MenuConfig::new().close_behavior(PopupCloseBehavior::CloseOnClickOutside);
    let Look { brightness, contrast } = look;
    let text = if look == Look::default() {
        RichText::new("Display")
    } else {
        let values = format!("Display {:+.0}%, {contrast:.1} ×", brightness * 100.0);
        RichText::new(values).color(ui.visuals().warn_fg_color)
    };
    let (response, _) = MenuButton::new(text).config(config).ui(ui, |ui| {
        for (name, number, value) in
            [("Brightness", ViewNumber::Brightness, brightness), ("Contrast", ViewNumber::Contrast, contrast)]
        {
            ui.label(name);
            view_slider_ui(ui, number, value, name, commands);
        }
        ui.add_space(4.0);
        action_menu_ui(ui, state, &[&[Action::ResetLook, Action::ToggleOutlines]], commands);
    });
    response.on_hover_text("Brightness and contrast on screen. Models receive the image as it is");
}

fn pointer_id() -> Id {
    Id::unique("pixel under the pointer")
}

fn zoom_id() -> Id {
    Id::unique("zoom in percent")
}

/// The zoom of the image on screen: 100 if each of its pixels is a pixel of the screen.
pub(crate) fn zoom_percent(ctx: &Context) -> Option<f32> {
    ctx.data(|data| data.get_temp(zoom_id()))
}

/// The position and value of a pixel: decimal, hexadecimal, and as a color sample.
fn pixel_ui(ui: &mut Ui, textures: &Textures, at: Option<[u32; 2]>) {
    let Some([x, y]) = at else {
        let hints = [
            "Wheel: zoom. Drag: move. Double-click: fit. Hold H: hide boxes",
            "Wheel: zoom. Drag: move. Double-click: fit",
            "Wheel: zoom. Drag: move",
            "",
        ];
        let hint = fitting(ui, hints, ui.available_width()).unwrap_or_default();
        ui.weak(hint);
        return;
    };
    let image = textures.image.as_ref();
    let Some([red, green, blue]) = image.and_then(|image| image.pixel(x, y)) else {
        let place = RichText::new(format!("x {x}  y {y}")).monospace();
        let place = Label::new(place).truncate().show_tooltip_when_elided(false);
        ui.add(place).on_hover_text("The color appears when the image is loaded at full size");
        return;
    };
    let (rect, _) = ui.allocate_exact_size(vec2(14.0, 14.0), Sense::hover());
    let color = Color32::from_rgb(red, green, blue);
    ui.painter().rect_filled(rect, 3.0, color);
    let line = Stroke::new(1.0, theme::line(ui.visuals()));
    ui.painter().rect_stroke(rect, 3.0, line, StrokeKind::Outside);
    let hex = format!("#{red:02x}{green:02x}{blue:02x}");
    let whole = format!("x {x}  y {y}   R {red}  G {green}  B {blue}   {hex}");
    let font = TextStyle::Monospace.resolve(ui.style());
    let digit = ui.painter().layout_no_wrap("0".to_owned(), font, Color32::PLACEHOLDER).size().x;
    let room = (ui.available_width() / digit) as usize;
    let texts = [whole.clone(), format!("x {x}  y {y}   {hex}"), format!("{x} {y} {hex}"), hex];
    if let Some(text) = texts.into_iter().find(|text| text.len() <= room) {
        let label = ui.label(RichText::new(text).monospace());
        label.widget_info(|| WidgetInfo::labeled(Role::Label, true, whole.as_str()));
        label.on_hover_text(whole);
    }
}

fn image_ui(
    ui: &mut Ui,
    state: &State,
    textures: &mut Textures,
    last_pointer: Option<[u32; 2]>,
    commands: &mut Commands,
) {
    let canvas = ui.available_rect_before_wrap();
    let Some(size) = image_size(state, textures) else {
        waiting_ui(ui, state, canvas);
        set_pointer(ui, last_pointer, None);
        return;
    };
    let undivided = Placement::new(canvas, size, state.canvas).on_screen;
    let mut side = Side::whole(canvas);
    if let Some(right) = state.right_side() {
        let [left, of_right] = Side::both(state, canvas, undivided);
        side = left;
        comparison::ui::canvas::image_ui(ui, state, textures, right, (of_right, size), commands);
    }
    // Not a Tab stop: everything that can be done with it has a key of its own.
    let response = ui.allocate_rect(side.clip, Sense::CLICK | Sense::DRAG);
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, image_name(state)));
    let painter = ui.painter_at(side.clip);
    let placement = Placement::new(side.canvas, size, state.canvas);
    paint_image(state, textures, &painter, placement.on_screen);
    heat_ui(&painter, state, textures, placement.on_screen);
    let pixels_per_point = ui.pixels_per_point();
    let percent = placement.zoom * pixels_per_point * 100.0;
    ui.data_mut(|data| data.insert_temp(zoom_id(), percent));
    let pointer = response.hover_pos().filter(|at| side.clip.contains(*at));
    let pixel = pointer.and_then(|at| placement.pixel_at(at));
    set_pointer(ui, last_pointer, pixel);
    if let Some([x, y]) = pixel
        && !state.tasks.prediction_is_running()
        && let Some(image) = &mut textures.image
    {
        image.request_pixel(x, y);
    }

    let editing = editing::Editing::new(ui, state, &placement, &response, commands);
    let drawing = BoxDrawing { painter: &painter, side, placement: &placement, pointer, editing };
    let (hovered, object) = drawing.ui(ui, state);
    select_ui(&response, state, hovered, object, commands);
    context_menu_ui(&response, state, IMAGE_MENU, commands);
    if let Some(view) = placement.navigated(ui, &response, state, !editing.is_dragging) {
        commands.push(ReviewCommand::SetCanvas(view));
    }
    if state.right_side().is_some() {
        divider_ui(ui, state, [canvas, undivided], DIVIDER_REACH, commands);
    }
    warning_ui(ui, state, canvas);
}

/// What the boxes of the image are drawn with.
struct BoxDrawing<'d> {
    painter: &'d Painter,
    side: Side,
    placement: &'d Placement,
    /// `None` if it is not over the image's side.
    pointer: Option<Pos2>,
    editing: editing::Editing,
}

impl BoxDrawing<'_> {
    /// Draws all boxes and labels. Returns the prediction's box and the missed object under the pointer.
    fn ui(&self, ui: &mut Ui, state: &State) -> (Option<usize>, Option<usize>) {
        let Self { painter, side, placement, pointer, editing } = *self;
        let hides_boxes = ui.input(|input| input.key_down(Key::H))
            && !browse::ui::grid::is_taken_remote(ui.ctx())
            && state.overlay == Overlay::None;
        if hides_boxes {
            return (None, None);
        }
        let mut labels = Labels::on_canvas(painter, side.clip);
        let objects = boxes::drawn_objects(state);
        let legend = boxes::legend(ui, state, &objects, side.half);
        if let Some(legend) = &legend {
            labels.reserve(legend.place);
        }
        boxes::reserve_small(&objects, placement, &mut labels);
        boxes::truth_ui(painter, &objects, placement, state.shown.selected_object);
        let hovered = boxes::boxes_ui(painter, state, placement, pointer, editing.moved, &mut labels);
        if !state.settings.outlines_only {
            boxes::truth_labels_ui(&objects, placement, &mut labels);
        }
        if state.right_side().is_none() {
            boxes::compared_ui(ui, state, placement, &mut labels);
        }
        labels.paint();
        editing.ui(painter, state, placement);
        if let Some(legend) = legend {
            legend.ui(ui, side.half);
        }
        (hovered, boxes::false_negative_under(state, &objects, placement, pointer, hovered))
    }
}

/// Selects what a click hits: the missed object, or else the box. The context menu is about the box under the pointer,
/// or else about what is selected.
fn select_ui(
    response: &Response,
    state: &State,
    hovered: Option<usize>,
    object: Option<usize>,
    commands: &mut Commands,
) {
    if response.clicked() && state.shown.drawing.is_none() {
        let new_object = object.filter(|index| state.shown.selected_object != Some(*index));
        let new_box = hovered.filter(|index| object.is_none() && state.shown.selected_box != Some(*index));
        commands.push(new_object.map_or(ReviewCommand::SelectBox(new_box), ReviewCommand::SelectObject));
    }
    if response.secondary_clicked() {
        commands.extend(object.map(|index| ReviewCommand::SelectObject(index).into()));
        commands.extend(hovered.filter(|_| object.is_none()).map(|index| ReviewCommand::SelectBox(Some(index)).into()));
    }
}

/// The description of the image for screen readers.
fn image_name(state: &State) -> String {
    let entry = state.shown_sample().and_then(|id| state.samples.get(id));
    format!("Image {}", entry.map_or("", |entry| entry.name.as_str()))
}

/// The status bar is already drawn: it shows the pointer's position one frame later, so one more frame is needed.
fn set_pointer(ui: &Ui, last: Option<[u32; 2]>, now: Option<[u32; 2]>) {
    if last != now {
        ui.data_mut(|data| match now {
            Some(at) => {
                data.insert_temp(pointer_id(), at);
            }
            None => {
                data.remove_temp::<[u32; 2]>(pointer_id());
            }
        });
        ui.ctx().request_repaint();
    }
}

/// The size in pixels; that of the thumbnail until the image is decoded.
pub(crate) fn image_size(state: &State, textures: &mut Textures) -> Option<Vec2> {
    let sample = state.shown_sample()?;
    if let Display::Ready(info) = &state.shown.display {
        return Some(vec2(info.size[0] as f32, info.size[1] as f32));
    }
    if let Some(prediction) = &state.shown.prediction {
        return Some(vec2(prediction.width as f32, prediction.height as f32));
    }
    match state.shown.display {
        Display::Loading => Some(textures.thumbnails.get(sample)?.size * 4.0),
        _ => None,
    }
}

/// Paints the image, or its thumbnail until the image is decoded.
pub(crate) fn paint_image(state: &State, textures: &mut Textures, painter: &Painter, on_screen: Rect) {
    let (Some(sample), Some(source)) = (state.shown_sample(), &state.source) else {
        return;
    };
    let shown = textures.image_of(source.id, sample);
    if shown.is_none_or(|shown| !shown.covers_all())
        && let Some(thumbnail) = textures.thumbnails.get(sample)
    {
        painter.image(thumbnail.texture, on_screen, thumbnail.uv, Color32::WHITE);
    }
    if let Some(shown) = textures.image_of(source.id, sample) {
        shown.paint(painter, on_screen);
    }
}

/// The text in place of an image that is not loaded yet, or cannot be shown.
fn waiting_ui(ui: &mut Ui, state: &State, canvas: Rect) {
    let text = match &state.shown.display {
        Display::Failed(reason) => {
            let entry = state.shown_sample().and_then(|id| state.samples.get(id));
            let name = entry.map_or("", |entry| entry.uri.file_name());
            format!("⚠ This image cannot be shown\n{}", problem_of(name, reason))
        }
        _ => "Reading…".to_owned(),
    };
    let width = canvas.width().min(460.0);
    let place = Rect::from_center_size(canvas.center(), vec2(width, 60.0));
    ui.put(place, Label::new(text).wrap());
}

/// Warns, over the image, that it is incomplete or is not the predicted version.
fn warning_ui(ui: &Ui, state: &State, canvas: Rect) {
    let damage = match &state.shown.display {
        Display::Ready(info) => info.warning.as_ref().map(|warning| format!("This image {warning}")),
        Display::Failed(reason) => Some(format!("Only the thumbnail can be shown: {reason}")),
        Display::Nothing | Display::Loading => return,
    };
    let outdated = state.shown_is_outdated().then_some("Outdated: the file changed after it was predicted");
    let warnings: Vec<String> = damage.into_iter().chain(outdated.map(str::to_owned)).collect();
    if warnings.is_empty() {
        return;
    }
    let font = TextStyle::Body.resolve(ui.style());
    let text = format!("⚠ {}", warnings.join(" · "));
    let galley = truncated(ui, &text, font, Color32::WHITE, canvas.width() - 40.0);
    let size = galley.size() + vec2(20.0, 12.0);
    let place = near_bottom(canvas, size);
    let painter = ui.painter();
    painter.rect_filled(place, 6.0, Color32::from_black_alpha(215));
    painter.galley(place.min + vec2(10.0, 6.0), galley, Color32::WHITE);
    let label = ui.interact(place, ui.scope_id().with("warning"), Sense::hover());
    label.widget_info(|| WidgetInfo::labeled(Role::Label, true, text.as_str()));
    label.on_hover_text(&text);
}

/// A rectangle of this size near the bottom of the canvas.
fn near_bottom(canvas: Rect, size: Vec2) -> Rect {
    let center = pos2(canvas.center().x, canvas.bottom() - size.y / 2.0 - 12.0);
    Rect::from_center_size(center, size)
}

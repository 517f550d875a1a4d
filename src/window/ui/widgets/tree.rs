//! A tree with the keys and roles of one: a single Tab stop, of which only visible lines are drawn.

use eframe::egui::{
    Align2, Color32, CornerRadius, EventFilter, Id, Rect, Response, Role, ScrollArea, Sense, Shape, Stroke, StrokeKind,
    TextStyle, Ui, WidgetInfo, pos2, vec2,
};

use super::truncated;
use crate::window::ui::theme;

pub(crate) const TREE_ROW_HEIGHT: f32 = 24.0;
pub(crate) const TREE_INDENT: f32 = 18.0;
pub(crate) const TREE_TOGGLE_WIDTH: f32 = 22.0;

/// The lines of a tree. While it has the focus, `take_keys` handles the keys and returns the row to scroll to; `row_ui`
/// draws a row and returns whether it was clicked.
pub(crate) fn tree_rows_ui(
    ui: &mut Ui,
    (id, name): (Id, &str),
    (height, rows): (f32, usize),
    take_keys: impl FnOnce(&Ui) -> Option<usize>,
    mut row_ui: impl FnMut(&mut Ui, usize) -> bool,
) {
    let frame = Rect::from_min_size(ui.cursor().min, vec2(ui.available_width(), height));
    let focus = ui.interact(frame, id, Sense::focusable_noninteractive());
    focus.widget_info(|| WidgetInfo::labeled(Role::Tree, true, name));
    let mut scroll_to = None;
    if focus.has_focus() {
        let keys = EventFilter { vertical_arrows: true, horizontal_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(id, keys));
        scroll_to = take_keys(ui);
        let line = Stroke::new(1.0, theme::accent(ui.visuals()));
        ui.painter().rect_stroke(frame.expand(3.0), 8.0, line, StrokeKind::Inside);
    }
    ui.spacing_mut().item_spacing.y = 0.0;
    let area = ScrollArea::vertical().id_salt(id).auto_shrink([false, false]).max_height(height);
    area.show_rows(ui, TREE_ROW_HEIGHT, rows, |ui, shown| {
        if let Some(row) = scroll_to {
            let top = ui.max_rect().top() + (row as f32 - shown.start as f32) * TREE_ROW_HEIGHT;
            let place = ui.max_rect().x_range();
            ui.scroll_to_rect(Rect::from_x_y_ranges(place, top..=top + TREE_ROW_HEIGHT), None);
        }
        for row in shown {
            if row_ui(ui, row) {
                focus.request_focus();
            }
        }
    });
}

/// One line of a tree.
pub(crate) struct TreeLine<'t> {
    pub(crate) id: Id,
    pub(crate) depth: usize,
    pub(crate) name: &'t str,
    /// Distinguishes lines of the same name.
    pub(crate) path: String,
    /// The accessible name.
    pub(crate) label: String,
    /// On the right.
    pub(crate) note: String,
    /// `None` if nothing is inside.
    pub(crate) is_open: Option<bool>,
    pub(crate) is_current: bool,
}

/// What the user did with a line.
pub(crate) struct TreeClick {
    pub(crate) response: Response,
    pub(crate) is_toggled: bool,
}

impl TreeLine<'_> {
    pub(crate) fn ui(self, ui: &mut Ui) -> TreeClick {
        let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), TREE_ROW_HEIGHT), Sense::hover());
        // Not a Tab stop: the tree is, and the arrow keys move inside it.
        let response = ui.interact(rect, self.id, Sense::CLICK);
        response.widget_info(|| WidgetInfo::selected(Role::TreeItem, true, self.is_current, self.label.as_str()));
        ui.ctx().accesskit_node_builder(self.id, |node| {
            node.set_level(self.depth + 1);
            if let Some(is_open) = self.is_open {
                node.set_expanded(is_open);
            }
        });
        let visuals = ui.visuals();
        if self.is_current {
            ui.painter().rect_filled(rect, CornerRadius::same(4), visuals.selection.bg_fill);
        } else if response.hovered() {
            ui.painter().rect_filled(rect, CornerRadius::same(4), theme::raised_fill(visuals));
        }
        let content = rect.with_min_x(rect.left() + self.depth as f32 * TREE_INDENT);
        let toggle_rect = content.with_max_x(content.left() + TREE_TOGGLE_WIDTH);
        let toggled = self.is_open.is_some_and(|is_open| self.toggle_ui(ui, toggle_rect, is_open));
        let visuals = ui.visuals();
        let font = TextStyle::Body.resolve(ui.style());
        let end = pos2(content.right() - 6.0, content.center().y);
        let note = ui.painter().text(end, Align2::RIGHT_CENTER, self.note, font.clone(), visuals.weak_text_color());
        let text = content.with_min_x(toggle_rect.right()).with_max_x(note.left() - 6.0);
        let galley = truncated(ui, self.name, font, visuals.text_color(), text.width().max(0.0));
        let top = text.center().y - galley.size().y / 2.0;
        ui.painter().galley(pos2(text.left(), top), galley, visuals.text_color());
        TreeClick { is_toggled: toggled || self.is_open.is_some() && response.double_clicked(), response }
    }

    fn toggle_ui(&self, ui: &Ui, rect: Rect, is_open: bool) -> bool {
        let toggle = ui.interact(rect, self.id.with("toggle"), Sense::CLICK);
        toggle.widget_info(|| {
            let verb = if is_open { "Collapse" } else { "Expand" };
            WidgetInfo::labeled(Role::Button, true, format!("{verb} {}", self.path))
        });
        let visuals = ui.visuals();
        let color = if toggle.hovered() { theme::accent(visuals) } else { visuals.weak_text_color() };
        ui.painter().add(triangle(rect, is_open, color));
        toggle.clicked()
    }
}

/// A triangle that points to the right, or down if the folder is open.
fn triangle(rect: Rect, is_open: bool, color: Color32) -> Shape {
    let at = |x: f32, y: f32| rect.center() + vec2(x, y);
    let corners = if is_open {
        vec![at(-4.0, -2.5), at(4.0, -2.5), at(0.0, 3.5)]
    } else {
        vec![at(-2.5, -4.0), at(3.5, 0.0), at(-2.5, 4.0)]
    };
    Shape::convex_polygon(corners, color, Stroke::NONE)
}
